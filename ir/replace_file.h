// Writes a file whole or not at all (ir/new_file). A device or pipe is written to, and a link followed: only a file is
// replaced.
#pragma once

#include <functional>
#include <ostream>
#include <string>

namespace fusec {

// Throws Error with the path and the system's reason where it cannot be written.
void replace_file(const std::string& path, const std::function<void(std::ostream&)>& write);

}  // namespace fusec
