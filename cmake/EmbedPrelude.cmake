# Puts the text of codegen/prelude/*.cu into fusec_codegen, as the function fusec::prelude_files().
function(fusec_embed_prelude target)
  file(GLOB files CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/codegen/prelude/*.cu)
  set(entries "")
  foreach(file ${files})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    file(READ ${file} text)
    string(APPEND entries "      R\"PRELUDE(${text})PRELUDE\",\n")
  endforeach()
  set(out ${CMAKE_BINARY_DIR}/generated/prelude_files.cpp)
  file(CONFIGURE OUTPUT ${out} CONTENT [[// Made by cmake/EmbedPrelude.cmake.
#include "codegen/prelude.h"

namespace fusec {

std::span<const std::string_view> prelude_files() {
  static constexpr std::string_view kFiles[] = {
@entries@  };
  return kFiles;
}

}  // namespace fusec
]] @ONLY)
  target_sources(${target} PRIVATE ${out})
endfunction()

# Puts the headers of runtime/host_part/stand_in into fusec_runtime, as the function fusec::stand_in_headers().
function(fusec_embed_stand_in target)
  file(GLOB files CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/runtime/host_part/stand_in/*.h)
  set(entries "")
  foreach(file ${files})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    file(READ ${file} text)
    get_filename_component(file_name ${file} NAME)
    string(APPEND entries "      {\"${file_name}\", R\"HEADER(${text})HEADER\"},\n")
  endforeach()
  set(out ${CMAKE_BINARY_DIR}/generated/stand_in_headers.cpp)
  file(CONFIGURE OUTPUT ${out} CONTENT [[// Made by cmake/EmbedPrelude.cmake.
#include "runtime/host_part/stand_in_headers.h"

namespace fusec {

std::span<const StandInHeader> stand_in_headers() {
  static constexpr StandInHeader kHeaders[] = {
@entries@  };
  return kHeaders;
}

}  // namespace fusec
]] @ONLY)
  target_sources(${target} PRIVATE ${out})
endfunction()

# Puts the text of transforms/patterns/builtin/*.patterns into fusec_transforms, as the function
# fusec::builtin_pattern_files().
function(fusec_embed_patterns target)
  file(GLOB files CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/transforms/patterns/builtin/*.patterns)
  set(entries "")
  foreach(file ${files})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    file(READ ${file} text)
    string(APPEND entries "      R\"PATTERNS(${text})PATTERNS\",\n")
  endforeach()
  set(out ${CMAKE_BINARY_DIR}/generated/pattern_files.cpp)
  file(CONFIGURE OUTPUT ${out} CONTENT [[// Made by cmake/EmbedPrelude.cmake.
#include "transforms/patterns/builtin_patterns.h"

namespace fusec {

std::span<const std::string_view> builtin_pattern_files() {
  static constexpr std::string_view kFiles[] = {
@entries@  };
  return kFiles;
}

}  // namespace fusec
]] @ONLY)
  target_sources(${target} PRIVATE ${out})
endfunction()

# Puts the lines of ir/library_symbols.txt into fusec_ir, as the function fusec::library_symbols().
function(fusec_embed_library_symbols target)
  set(file ${CMAKE_CURRENT_SOURCE_DIR}/ir/library_symbols.txt)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  file(READ ${file} text)
  string(REGEX REPLACE "([^\n]+)\n" "    \"\\1\",\n" entries "${text}")
  set(out ${CMAKE_BINARY_DIR}/generated/library_symbols.cpp)
  file(CONFIGURE OUTPUT ${out} CONTENT [[// Made by cmake/EmbedPrelude.cmake.
#include "ir/library_symbols.h"

namespace fusec {

std::span<const std::string_view> library_symbols() {
  static constexpr std::string_view kSymbols[] = {
@entries@  };
  return kSymbols;
}

}  // namespace fusec
]] @ONLY)
  target_sources(${target} PRIVATE ${out})
endfunction()
