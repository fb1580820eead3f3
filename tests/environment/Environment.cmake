# What surrounds a compilation: the compile cache, libraries and their places, full disks, signals, standard error. A
# stand-in of NVRTC makes these tests quick, and possible where there is none.
foreach(library stand_in_nvrtc fail_calls)
  add_library(${library} MODULE ${CMAKE_CURRENT_LIST_DIR}/${library}.cpp)
  target_compile_features(${library} PRIVATE cxx_std_20)
  target_compile_options(${library} PRIVATE -Wall -Wextra -Wshadow -Werror)
  target_link_libraries(${library} PRIVATE ${CMAKE_DL_LIBS})
endforeach()
set_property(SOURCE ${CMAKE_CURRENT_SOURCE_DIR}/codegen/nvrtc/compile_all_test.cpp
             APPEND PROPERTY COMPILE_DEFINITIONS FUSEC_STAND_IN_NVRTC="$<TARGET_FILE:stand_in_nvrtc>")
add_dependencies(test_codegen stand_in_nvrtc)

set(environment ${fusec} ${fusec_run} $<TARGET_FILE:stand_in_nvrtc> $<TARGET_FILE:fail_calls>)
fusec_script_test(cache_sample fast 300 environment/check_cache.py ${environment} --flips=20 --kills=20)
fusec_script_test(cache full 1800 environment/check_cache.py ${environment} --flips=200 --kills=200)
fusec_script_test(environment "fast;full" 300 environment/check_environment.py ${environment})
fusec_script_test(full_disk_sample fast 300 environment/check_full_disk.py ${environment} --every=3)
fusec_script_test(full_disk full 900 environment/check_full_disk.py ${environment})
