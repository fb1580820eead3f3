// Results onto disk: written to a temporary file beside the target and renamed, so that a failed run leaves nothing.
#pragma once

#include <string>
#include <string_view>

namespace fusec {

// "-" is standard output. Throws Error(kEnvironment) when it cannot be written.
void write_output(const std::string& path, std::string_view content);

}  // namespace fusec
