# Every target of targets/ is a program with one of two drivers: mutate_NAME runs seeded mutations for a time, with any
# compiler. fuzz_NAME is its libFuzzer twin; scripts/fuzz.sh builds those (clang, -DFUSEC_FUZZ=ON) and runs them.
set(fuzz ${CMAKE_CURRENT_SOURCE_DIR}/fuzz)

function(fusec_fuzz_target name library)
  if(FUSEC_FUZZ)
    set(program fuzz_${name})
    set(driver ${fuzz}/libfuzzer.cpp)
  else()
    set(program mutate_${name})
    set(driver ${fuzz}/mutations.cpp)
  endif()
  add_executable(${program} ${driver} ${fuzz}/targets/${name}.cpp ${fuzz}/mutate.cpp ${fuzz}/seed_files.cpp
                            ${fuzz}/input_pipe.cpp)
  fusec_compile_options(${program})
  target_include_directories(${program} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  target_compile_definitions(${program} PRIVATE FUSEC_TESTS_DIR="${CMAKE_CURRENT_SOURCE_DIR}"
                                                $<$<BOOL:${FUSEC_SANITIZE}>:FUSEC_SANITIZED>)
  target_link_libraries(${program} PRIVATE ${library})
  if(FUSEC_FUZZ)
    target_link_options(${program} PRIVATE -fsanitize=fuzzer)
  else()
    add_test(NAME mutate_${name}_sample COMMAND ${program} 5 1)
    add_test(NAME mutate_${name} COMMAND ${program} 300 2)
    set_tests_properties(mutate_${name}_sample PROPERTIES LABELS fast TIMEOUT 120)
    set_tests_properties(mutate_${name} PROPERTIES LABELS full TIMEOUT 900)
  endif()
endfunction()

fusec_fuzz_target(model       fusec_ir)
fusec_fuzz_target(text        fusec_ir)
fusec_fuzz_target(safetensors fusec_ir)
fusec_fuzz_target(tuning      fusec_codegen)
fusec_fuzz_target(ptx         fusec_runtime)
fusec_fuzz_target(target      fusec)
fusec_fuzz_target(patterns    fusec)
fusec_fuzz_target(plan        fusec)
fusec_fuzz_target(manifest    fusec)

# All of them for a minute each, in a build of their own.
if(NOT FUSEC_FUZZ)
  add_test(NAME libfuzzer COMMAND ${PROJECT_SOURCE_DIR}/scripts/fuzz.sh --seconds=60)
  set_tests_properties(libfuzzer PROPERTIES LABELS full TIMEOUT 7200 SKIP_RETURN_CODE 77)
endif()
