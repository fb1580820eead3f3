# Memory runs out at places spread over a compilation: in the library (operator new fails) and in the program (malloc
# fails, by a preloaded library; not under sanitizers, whose malloc is their own).
set(allocation_models ${PROJECT_SOURCE_DIR}/examples/llama_block.json)
foreach(name attention canonical split_concat symbols)
  list(APPEND allocation_models ${CMAKE_CURRENT_SOURCE_DIR}/golden/${name}.json)
endforeach()

add_executable(fail_allocation allocation/fail_allocation.cpp)
fusec_compile_options(fail_allocation)
target_link_libraries(fail_allocation PRIVATE fusec)
add_test(NAME allocation_in_library_sample COMMAND fail_allocation 50 ${allocation_models})
add_test(NAME allocation_in_library COMMAND fail_allocation 2000 ${allocation_models})
set_tests_properties(allocation_in_library_sample PROPERTIES LABELS fast TIMEOUT 300)
set_tests_properties(allocation_in_library PROPERTIES LABELS full TIMEOUT 3600)

if(CMAKE_SYSTEM_NAME STREQUAL "Linux" AND NOT FUSEC_SANITIZE)
  enable_language(C)
  add_library(fail_malloc MODULE allocation/fail_malloc.c)
  target_link_libraries(fail_malloc PRIVATE ${CMAKE_DL_LIBS})
  fusec_script_test(allocation_in_program_sample fast 300 check_allocation.py $<TARGET_FILE:fusec_program>
                    $<TARGET_FILE:fail_malloc> ${allocation_models} --places=100)
  fusec_script_test(allocation_in_program full 3600 check_allocation.py $<TARGET_FILE:fusec_program>
                    $<TARGET_FILE:fail_malloc> ${allocation_models} --places=2000)
endif()
