// Writes a file completely or not at all (ir/new_file.h). A link is followed. A device or pipe is written to directly.
#pragma once

#include <functional>
#include <ostream>
#include <string>

namespace fusec {

// Throws Error with the path and the system's reason if the file cannot be written.
void replace_file(const std::string& path, const std::function<void(std::ostream&)>& write);

}  // namespace fusec
