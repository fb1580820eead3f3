# cmake -DBUILD=<build folder> -DSOURCE=<repository> -DTYPE=<build type> -P run.cmake
#
# Installs the build into a fresh folder, builds tests/install against it with find_package, and runs the result.
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${ARGN}\nfailed (${status}):\n${output}")
  endif()
endfunction()

set(work ${BUILD}/install_test)
file(REMOVE_RECURSE ${work})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${work}/prefix)
foreach(internal ir analysis transforms codegen runtime src)
  if(EXISTS ${work}/prefix/include/${internal})
    message(FATAL_ERROR "internal headers were installed: include/${internal}")
  endif()
endforeach()

set(source ${SOURCE}/tests/install/consumer.cpp)
if(EXISTS ${SOURCE}/examples/front_end.cpp)
  set(source ${SOURCE}/examples/front_end.cpp)
endif()
run(${CMAKE_COMMAND} -G Ninja -S ${SOURCE}/tests/install -B ${work}/build -DCMAKE_BUILD_TYPE=${TYPE}
    -DCMAKE_PREFIX_PATH=${work}/prefix -DCONSUMER_SOURCE=${source} "-DCMAKE_CXX_FLAGS=${FLAGS}")
run(${CMAKE_COMMAND} --build ${work}/build)
run(${work}/build/consumer)
run(${work}/prefix/bin/fusec --version)
