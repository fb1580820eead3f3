# Texts of the source tree that the libraries hold, so that an installed program needs no file of its own.

# Defines `std::span<const TYPE> fusec::FUNCTION()`, which HEADER declares, in the target: the entries are lines of C++.
# GCC and clang take string literals of any length; clang says that others may not.
function(fusec_define_list target function type header entries)
  set(out ${CMAKE_BINARY_DIR}/generated/${function}.cpp)
  file(CONFIGURE OUTPUT ${out} CONTENT [[// Made by cmake/EmbedFiles.cmake.
#ifdef __clang__
#pragma clang diagnostic ignored "-Woverlength-strings"
#endif
#include "@header@"

namespace fusec {

std::span<const @type@> @function@() {
  static constexpr @type@ kList[] = {
@entries@  };
  return kList;
}

}  // namespace fusec
]] @ONLY)
  target_sources(${target} PRIVATE ${out})
  set_source_files_properties(${out} TARGET_DIRECTORY ${target} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON
                              INCLUDE_DIRECTORIES ${PROJECT_SOURCE_DIR}/src)
endfunction()

# Sets the variable to the files of the source tree that match the patterns. A change of one configures anew.
function(fusec_find_files variable)
  list(TRANSFORM ARGN PREPEND ${PROJECT_SOURCE_DIR}/ OUTPUT_VARIABLE patterns)
  file(GLOB files CONFIGURE_DEPENDS ${patterns})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${files})
  set(${variable} ${files} PARENT_SCOPE)
endfunction()

# fusec_embed_files(TARGET FUNCTION TYPE HEADER PATTERN...): the same for the texts of files. An entry is the text, or
# {file name, text} where TYPE is no string.
function(fusec_embed_files target function type header)
  fusec_find_files(files ${ARGN})
  set(entries "")
  foreach(file ${files})
    file(READ ${file} text)
    get_filename_component(file_name ${file} NAME)
    if(type STREQUAL "std::string_view")
      string(APPEND entries "      R\"EMBEDDED(${text})EMBEDDED\",\n")
    else()
      string(APPEND entries "      {\"${file_name}\", R\"EMBEDDED(${text})EMBEDDED\"},\n")
    endif()
  endforeach()
  fusec_define_list(${target} ${function} ${type} ${header} "${entries}")
endfunction()

# fusec_embed_lines(TARGET FUNCTION HEADER FILE): the lines of a file.
function(fusec_embed_lines target function header file)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${file})
  file(READ ${PROJECT_SOURCE_DIR}/${file} text)
  string(REGEX REPLACE "([^\n]+)\n" "    \"\\1\",\n" entries "${text}")
  fusec_define_list(${target} ${function} std::string_view ${header} "${entries}")
endfunction()

# fusec_embed_names(TARGET FUNCTION HEADER PATTERN...): what files of CUDA source define, sorted: words of at least two
# characters that stand before "(" or after "using" or "struct". Calls name functions, too, which gives a few names too
# many.
function(fusec_embed_names target function header)
  fusec_find_files(files ${ARGN})
  set(names "")
  foreach(file ${files})
    file(READ ${file} text)
    string(REGEX MATCHALL "[A-Za-z0-9_][A-Za-z0-9_]+\\(|(using|struct) [A-Za-z0-9_]+" found "${text}")
    list(APPEND names ${found})
  endforeach()
  list(TRANSFORM names REPLACE "^(using|struct) " "")
  list(TRANSFORM names REPLACE "\\($" "")
  list(REMOVE_DUPLICATES names)
  list(SORT names)
  list(TRANSFORM names REPLACE "(.+)" "    \"\\1\",\n")
  string(CONCAT entries ${names})
  fusec_define_list(${target} ${function} std::string_view ${header} "${entries}")
endfunction()
