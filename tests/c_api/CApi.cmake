# The C API, used from C: what it makes and says, eight threads, memory that runs out, the symbols of libfusec.so; and
# the examples that use it.
enable_language(C)
function(fusec_c_program name)
  add_executable(${name} ${ARGN})
  set_target_properties(${name} PROPERTIES C_STANDARD 11 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF)
  target_compile_options(${name} PRIVATE -Wall -Wextra -Werror)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests/c_api)
  target_link_libraries(${name} PRIVATE fusec::c Threads::Threads m)
  if(FUSEC_SANITIZE)
    target_compile_options(${name} PRIVATE -fsanitize=${FUSEC_SANITIZE})
    target_link_options(${name} PRIVATE -fsanitize=${FUSEC_SANITIZE})
  endif()
endfunction()

fusec_c_program(c_api_test c_api/c_api_test.c)
add_test(NAME c_api COMMAND c_api_test ${PROJECT_VERSION})
add_test(NAME c_api_gpu COMMAND c_api_test ${PROJECT_VERSION} gpu)  # the emulator stands in for it
set_tests_properties(c_api_gpu PROPERTIES ENVIRONMENT FUSEC_CUDA_DRIVER=$<TARGET_FILE:stand_in_cuda>)
fusec_c_program(c_api_threads c_api/threads.c)
add_test(NAME c_api_threads COMMAND c_api_threads)
fusec_c_program(example_compile_c ${PROJECT_SOURCE_DIR}/examples/c/compile.c)
add_test(NAME example_c COMMAND example_compile_c)
set_tests_properties(c_api c_api_gpu c_api_threads example_c PROPERTIES LABELS "fast;full" TIMEOUT 300)

if(CMAKE_SYSTEM_NAME STREQUAL "Linux" AND NOT FUSEC_SANITIZE)
  fusec_c_program(c_api_out_of_memory c_api/out_of_memory.c)
  target_link_libraries(c_api_out_of_memory PRIVATE ${CMAKE_DL_LIBS})
  add_test(NAME c_api_out_of_memory_sample COMMAND c_api_out_of_memory 60)
  add_test(NAME c_api_out_of_memory COMMAND c_api_out_of_memory 2000)
  set_tests_properties(c_api_out_of_memory_sample PROPERTIES LABELS fast TIMEOUT 300)
  set_tests_properties(c_api_out_of_memory PROPERTIES LABELS full TIMEOUT 3600)
  fusec_script_test(c_api_symbols "fast;full" 60 check_c_api_symbols.py $<TARGET_FILE:fusec_shared>
                    ${PROJECT_SOURCE_DIR}/src/c_api/fusec.map ${PROJECT_SOURCE_DIR}/include/fusec/c_api.h)
endif()
fusec_script_test(example_rust "fast;full" 300 check_rust_example.py $<TARGET_FILE_DIR:fusec_shared>
                  ${PROJECT_SOURCE_DIR}/examples/rust/compile.rs)
