# The CUDA program among the examples, with the emulator as its device.
add_executable(test_host_example examples/host_example.cpp emulator/compile.cpp)
fusec_compile_options(test_host_example)
target_include_directories(test_host_example PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
target_compile_definitions(test_host_example PRIVATE FUSEC_TESTS_DIR="${CMAKE_CURRENT_SOURCE_DIR}"
                                                     FUSEC_EXAMPLES_DIR="${PROJECT_SOURCE_DIR}/examples")
target_link_libraries(test_host_example PRIVATE fusec_test_main fusec)
add_test(NAME example_host COMMAND test_host_example)
set_tests_properties(example_host PROPERTIES LABELS "fast;full;nvcc" TIMEOUT 600
                     SKIP_REGULAR_EXPRESSION "skipped: nvcc is missing")
