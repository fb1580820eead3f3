// Seeds from files of the repository.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace fusec::fuzzing {

// The contents of the files of a folder (a path from the root) with this suffix, in the order of their names. Larger
// files than `most` bytes are left out.
std::vector<std::string> files_of(const std::string& folder, std::string_view suffix, std::size_t most = 8192);

// The content of one file (a path from the root).
std::string file_text(const std::string& path);

}  // namespace fusec::fuzzing
