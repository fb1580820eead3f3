# fusec_folder(NAME [OPTIMIZE_LESS] USES a b ...): makes the static library fusec_NAME of every source below NAME/.
#
# A source includes a header by its path from the root ("ir/graph.h"). For that each library exports one include
# directory that holds nothing but a link to its own folder; what a library does not use it cannot include.
function(fusec_folder name)
  cmake_parse_arguments(ARG "OPTIMIZE_LESS" "" "USES" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${name}/*.cpp)
  add_library(fusec_${name} STATIC ${sources})
  fusec_compile_options(fusec_${name})
  set(view ${CMAKE_BINARY_DIR}/headers/${name})
  file(MAKE_DIRECTORY ${view})
  file(CREATE_LINK ${CMAKE_CURRENT_SOURCE_DIR}/${name} ${view}/${name} SYMBOLIC)
  target_include_directories(fusec_${name} PUBLIC $<BUILD_INTERFACE:${view}>
                                                  $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/include>)
  target_link_libraries(fusec_${name} PUBLIC ${FUSEC_FMT} Threads::Threads $<BUILD_INTERFACE:Boost::headers>)
  foreach(used ${ARG_USES})
    target_link_libraries(fusec_${name} PUBLIC fusec_${used})
  endforeach()
  fusec_unity_build(fusec_${name})
  if(ARG_OPTIMIZE_LESS)
    fusec_optimize_less(fusec_${name})
    fusec_precompiled_headers(fusec_${name} fusec_codegen)
  else()
    fusec_precompiled_headers(fusec_${name} fusec_ir)
  endif()
endfunction()

# Several sources are compiled as one. Not under ccache, which would compile all of a batch for a change in one of them.
function(fusec_unity_build target)
  if(FUSEC_UNITY AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 20)
    target_compile_options(${target} PRIVATE -Wno-shadow)  # of a constant in another source of the batch
  endif()
endfunction()

# What nearly every source includes, compiled once by the target `from` for all that are optimized as it is: GCC 13 refuses
# a header that was compiled at another level. Saves a sixth of the time of a clean build. Not under ccache, which would
# find nothing again; those builds also show where a source forgets an include.
function(fusec_precompiled_headers target from)
  if(CMAKE_CXX_COMPILER_LAUNCHER)
    return()
  endif()
  if(target STREQUAL from)
    target_precompile_headers(${target} PRIVATE <algorithm> <array> <functional> <map> <memory> <optional> <set> <span>
                                                <string> <string_view> <unordered_map> <variant> <vector>
                                                <fmt/format.h>)
  else()
    target_precompile_headers(${target} REUSE_FROM ${from})
  endif()
endfunction()

# For libraries that -O2 hardly makes faster. GCC compiles codegen in two thirds of the time at -O1; emitting the source of
# 207 library models then takes 1 % more CPU time.
function(fusec_optimize_less target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
endfunction()

# Warnings are errors everywhere; sanitizers as the preset asks.
function(fusec_compile_options target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wno-missing-field-initializers
                                           -Werror)
  # What GCC says after inlining, or of any reference that a call returns, is too often wrong to stop a build. The
  # sanitizers look for the same faults.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -Wno-array-bounds -Wno-maybe-uninitialized -Wno-restrict
                                             -Wno-stringop-overflow -Wno-stringop-overread -Wno-dangling-reference)
  endif()
  if(FUSEC_SANITIZE)
    target_compile_options(${target} PUBLIC -fsanitize=${FUSEC_SANITIZE} -fno-omit-frame-pointer
                                            -fno-sanitize-recover=all)
    target_link_options(${target} PUBLIC -fsanitize=${FUSEC_SANITIZE})
  endif()
endfunction()
