# Puts the page of --emit=html (src/view) and the libraries that it holds (third_party/view) into a target, as the
# function fusec::view_files(). GCC and clang take string literals of any length; clang says that others may not.
function(fusec_embed_view target)
  file(GLOB files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/view/* ${PROJECT_SOURCE_DIR}/third_party/view/*.js)
  set(entries "")
  foreach(file ${files})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    file(READ ${file} text)
    get_filename_component(file_name ${file} NAME)
    string(APPEND entries "      {\"${file_name}\", R\"VIEW(${text})VIEW\"},\n")
  endforeach()
  set(out ${CMAKE_BINARY_DIR}/generated/view_files.cpp)
  file(CONFIGURE OUTPUT ${out} CONTENT [[// Made by cmake/EmbedView.cmake.
#ifdef __clang__
#pragma clang diagnostic ignored "-Woverlength-strings"
#endif
#include "view_files.h"

namespace fusec {

std::span<const ViewFile> view_files() {
  static constexpr ViewFile kFiles[] = {
@entries@  };
  return kFiles;
}

}  // namespace fusec
]] @ONLY)
  target_sources(${target} PRIVATE ${out})
  set_source_files_properties(${out} PROPERTIES INCLUDE_DIRECTORIES ${PROJECT_SOURCE_DIR}/src
                              SKIP_UNITY_BUILD_INCLUSION ON)  # the pragma is for it alone
endfunction()
