# The Python package, where it is built (FUSEC_PYTHON): its tests run with the interpreter that it is built for. Launches
# on a GPU run against a stand-in of the CUDA driver, which executes PTX on the emulator.
add_library(stand_in_cuda MODULE ${CMAKE_CURRENT_SOURCE_DIR}/environment/stand_in_cuda.cpp)
fusec_compile_options(stand_in_cuda)
target_link_libraries(stand_in_cuda PRIVATE fusec_runtime)

# A Python process does not find the NVRTC that scripts/setup.sh unpacks, as the programs do beside their folder.
file(GLOB unpacked_nvrtc ${PROJECT_SOURCE_DIR}/.deps/nvrtc/lib/libnvrtc.so.1[23])
set(python_environment PYTHONPATH=${CMAKE_BINARY_DIR}/python)
if(unpacked_nvrtc)
  list(APPEND python_environment FUSEC_NVRTC=${unpacked_nvrtc})
endif()

# PyTorch and ONNX are in an interpreter of their own, where scripts/test_torch.sh could fetch them. Without it the tests
# that need them skip themselves.
set(library_python ${Python_EXECUTABLE})
if(EXISTS ${PROJECT_SOURCE_DIR}/.deps/torch/bin/python)
  set(library_python ${PROJECT_SOURCE_DIR}/.deps/torch/bin/python)
endif()

function(fusec_python_test name)
  cmake_parse_arguments(ARG "" "INTERPRETER" "ENVIRONMENT" ${ARGN})
  if(NOT ARG_INTERPRETER)
    set(ARG_INTERPRETER ${Python_EXECUTABLE})
  endif()
  if(FUSEC_PYTHON)
    add_test(NAME python_${name} COMMAND ${CMAKE_COMMAND} -E env ${python_environment} ${ARG_ENVIRONMENT}
                                         ${ARG_INTERPRETER} ${CMAKE_CURRENT_SOURCE_DIR}/python/test_${name}.py)
  else()
    add_test(NAME python_${name} COMMAND ${CMAKE_COMMAND} -E echo
                                         "skipped: the Python package is not built (cmake -DFUSEC_PYTHON=ON)")
  endif()
  set_tests_properties(python_${name} PROPERTIES LABELS "fast;full" TIMEOUT 300 SKIP_RETURN_CODE 77
                       SKIP_REGULAR_EXPRESSION "skipped: the Python package is not built")
endfunction()

fusec_python_test(compile)
fusec_python_test(module)
fusec_python_test(graphs)
fusec_python_test(gpu ENVIRONMENT FUSEC_CUDA_DRIVER=$<TARGET_FILE:stand_in_cuda>)
fusec_python_test(readme)
fusec_python_test(typing)
set_tests_properties(python_typing PROPERTIES LABELS full)  # mypy reads NumPy anew: 20 seconds

foreach(name from_torch torch_calls backend eager_operators explain cuda_graphs collectives from_onnx)
  fusec_python_test(${name} INTERPRETER ${library_python})
endforeach()

# A script of python/ with its options, where the package is built; it skips itself where its interpreter lacks a library.
function(fusec_python_check name labels timeout)
  if(FUSEC_PYTHON)
    add_test(NAME python_${name} COMMAND ${CMAKE_COMMAND} -E env ${python_environment} ${library_python}
                                         ${CMAKE_CURRENT_SOURCE_DIR}/python/${ARGN})
    set_tests_properties(python_${name} PROPERTIES LABELS "${labels}" TIMEOUT ${timeout} SKIP_RETURN_CODE 77)
  endif()
endfunction()

fusec_python_check(from_onnx_all full 3600 test_from_onnx.py --tier=full)
fusec_python_check(op_db full 7200 check_op_db.py)
fusec_python_check(random_modules full 7200 check_random_modules.py)
fusec_python_check(library_models "fast;full" 300 check_library_models.py --sample)
fusec_python_check(library_models_all full 3600 check_library_models.py --seconds=1200
                   --known=${CMAKE_CURRENT_SOURCE_DIR}/results/library_models.json)
