# cmake -DBUILD=<build folder> -DSOURCE=<repository> -DTYPE=<build type> -DFLAGS=<compiler flags> -P run.cmake
#
# Installs the build into a fresh folder, and against that, with find_package, builds examples/front_end.cpp and the
# program that README.md shows; runs both.
function(run)
  execute_process(COMMAND ${ARGN} WORKING_DIRECTORY ${work} RESULT_VARIABLE status OUTPUT_VARIABLE output
                  ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${ARGN}\nfailed (${status}):\n${output}")
  endif()
endfunction()

set(work ${BUILD}/install_test)
file(REMOVE_RECURSE ${work})
file(MAKE_DIRECTORY ${work})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${work}/prefix)
foreach(internal ir analysis transforms codegen runtime src)
  if(EXISTS ${work}/prefix/include/${internal})
    message(FATAL_ERROR "internal headers were installed: include/${internal}")
  endif()
endforeach()

# The installed programs find the NVRTC that those of the tree find.
file(GLOB unpacked RELATIVE ${SOURCE}/.deps/nvrtc/lib ${SOURCE}/.deps/nvrtc/lib/*.so*)
foreach(library ${unpacked})
  if(NOT EXISTS ${work}/prefix/lib/fusec/${library})
    message(FATAL_ERROR "lib/fusec/${library} was not installed")
  endif()
endforeach()

file(READ ${SOURCE}/README.md readme)
string(FIND "${readme}" "```cpp\n" begin)
string(SUBSTRING "${readme}" ${begin} -1 readme)
string(SUBSTRING "${readme}" 7 -1 readme)
string(FIND "${readme}" "```" end)
string(SUBSTRING "${readme}" 0 ${end} readme)
file(WRITE ${work}/readme.cpp "${readme}")

run(${CMAKE_COMMAND} -G Ninja -S ${SOURCE}/tests/install -B ${work}/build -DCMAKE_BUILD_TYPE=${TYPE}
    -DCMAKE_PREFIX_PATH=${work}/prefix -Dfront_end_source=${SOURCE}/examples/front_end.cpp
    -Dreadme_source=${work}/readme.cpp -DCMAKE_CXX_FLAGS=${FLAGS})
run(${CMAKE_COMMAND} --build ${work}/build)
run(${work}/build/front_end)
run(${work}/build/readme)
run(${work}/prefix/bin/fusec --version)
