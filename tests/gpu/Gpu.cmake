# The emulator against a GPU, where there is one; its CPU half is checked everywhere.
file(GLOB gpu_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/gpu/*.cpp)
add_executable(compare_gpu ${gpu_sources})
fusec_compile_options(compare_gpu)
target_include_directories(compare_gpu PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
target_link_libraries(compare_gpu PRIVATE fusec_runtime fusec_without_libfmt)
# The self-check sets the host's rounding mode.
set_source_files_properties(gpu/scalar_model.cpp PROPERTIES COMPILE_OPTIONS -frounding-math)
add_test(NAME gpu_self_check COMMAND compare_gpu --self-check)
add_test(NAME gpu COMMAND compare_gpu --rounds=2)  # each launch is assembled anew
set_tests_properties(gpu_self_check PROPERTIES LABELS "fast;full" TIMEOUT 300)
set_tests_properties(gpu PROPERTIES LABELS "fast;full" TIMEOUT 1200 SKIP_RETURN_CODE 77)
find_program(ptxas_found ptxas HINTS /usr/local/cuda/bin)
fusec_script_test(gpu_assembles full 600 gpu/assemble.py $<TARGET_FILE:compare_gpu>
                  $<IF:$<BOOL:${ptxas_found}>,${ptxas_found},ptxas>)

# bench/gpu/first_contact.sh, rehearsed against stand-ins of the driver, of nvcc and of PyTorch's CUDA device. The programs
# of a build with sanitizers need libraries that no package may need.
if(NOT FUSEC_SANITIZE)
  set(rehearsal $<TARGET_FILE_DIR:fusec_program> $<TARGET_FILE:stand_in_cuda> ${CMAKE_BINARY_DIR}/tests/gpu_package)
  foreach(part pack contact table)
    fusec_script_test(first_contact_${part} "fast;full" 300 gpu/check_first_contact.py ${part} ${rehearsal}
                      ${library_python})
  endforeach()
  set_tests_properties(first_contact_pack PROPERTIES FIXTURES_SETUP gpu_package)
  set_tests_properties(first_contact_contact first_contact_table PROPERTIES FIXTURES_REQUIRED gpu_package)
endif()
