// The files of the page that --emit=html writes: src/view and the libraries in third_party/view, embedded by the build
// (cmake/EmbedFiles.cmake).
#pragma once

#include <span>
#include <string_view>

namespace fusec {

struct ViewFile {
  std::string_view name, text;
};
std::span<const ViewFile> view_files();

}  // namespace fusec
