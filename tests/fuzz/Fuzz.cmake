# fuzz_mutations runs for a time with any compiler. fuzz_ptx is the libFuzzer target, clang only (-DFUSEC_FUZZ=ON): the
# emulator's sources are compiled once more for it, with coverage and sanitizers of its own.
set(fuzz ${CMAKE_CURRENT_SOURCE_DIR}/fuzz)

add_executable(fuzz_mutations ${fuzz}/mutations.cpp ${fuzz}/mutate.cpp ${fuzz}/execute.cpp)
fusec_compile_options(fuzz_mutations)
target_include_directories(fuzz_mutations PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
target_link_libraries(fuzz_mutations PRIVATE fusec_runtime)
add_test(NAME fuzz_mutations_sample COMMAND fuzz_mutations ${fuzz}/seeds 60 1)
add_test(NAME fuzz_mutations COMMAND fuzz_mutations ${fuzz}/seeds 600 2)
set_tests_properties(fuzz_mutations_sample PROPERTIES LABELS fast TIMEOUT 120)
set_tests_properties(fuzz_mutations PROPERTIES LABELS full TIMEOUT 900)

if(FUSEC_FUZZ AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  file(GLOB emulator_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/runtime/emulator/*.cpp)
  list(FILTER emulator_sources EXCLUDE REGEX "ptx_command")  # the command line, which no PTX reaches
  add_executable(fuzz_ptx ${fuzz}/libfuzzer.cpp ${fuzz}/mutate.cpp ${fuzz}/execute.cpp ${emulator_sources}
                          ${PROJECT_SOURCE_DIR}/ir/error.cpp)
  target_compile_features(fuzz_ptx PRIVATE cxx_std_20)
  target_include_directories(fuzz_ptx PRIVATE ${CMAKE_CURRENT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}
                                              ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(fuzz_ptx PRIVATE fmt::fmt Threads::Threads)
  set(fuzz_flags -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -O1 -g1)
  target_compile_options(fuzz_ptx PRIVATE ${fuzz_flags})
  target_link_options(fuzz_ptx PRIVATE ${fuzz_flags})
  add_test(NAME fuzz_libfuzzer
           COMMAND fuzz_ptx -max_total_time=60 -timeout=20 -rss_limit_mb=4096 -max_len=8192 ${fuzz}/seeds)
else()
  add_test(NAME fuzz_libfuzzer COMMAND ${CMAKE_COMMAND} -E echo "skipped: needs clang and -DFUSEC_FUZZ=ON")
  set_tests_properties(fuzz_libfuzzer PROPERTIES SKIP_REGULAR_EXPRESSION "skipped:")
endif()
set_tests_properties(fuzz_libfuzzer PROPERTIES LABELS full TIMEOUT 300)
