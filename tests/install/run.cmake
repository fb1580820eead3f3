# cmake -DBUILD=<build folder> -DSOURCE=<repository> -DTYPE=<build type> -DFLAGS=<compiler flags> -P run.cmake
#
# Installs the build into a fresh folder, and against that builds examples/front_end.cpp, the program that README.md
# shows, and examples/c/compile.c, the last with find_package and with pkg-config; runs all of them.
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
foreach(internal ir analysis schedule transforms codegen runtime src)
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

# libfusec.so: a C compiler, no C++ one and no other library.
run(${CMAKE_COMMAND} -G Ninja -S ${SOURCE}/tests/install -B ${work}/build_c -DCMAKE_PREFIX_PATH=${work}/prefix
    -Dc_source=${SOURCE}/examples/c/compile.c -DCMAKE_C_FLAGS=${FLAGS})
run(${CMAKE_COMMAND} --build ${work}/build_c)
run(${work}/build_c/compile)
find_program(pkg_config NAMES pkg-config pkgconf)
find_program(c_compiler NAMES cc gcc clang)
if(pkg_config AND c_compiler AND NOT FLAGS)
  set(ENV{PKG_CONFIG_PATH} ${work}/prefix/lib/pkgconfig)
  execute_process(COMMAND ${pkg_config} --cflags --libs fusec OUTPUT_VARIABLE flags OUTPUT_STRIP_TRAILING_WHITESPACE
                  COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(flags)
  run(${c_compiler} -std=c11 ${SOURCE}/examples/c/compile.c -o ${work}/compile ${flags} -lm)
  set(ENV{LD_LIBRARY_PATH} ${work}/prefix/lib)
  run(${work}/compile)
endif()
