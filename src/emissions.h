// The outputs that a command line asks for by -o and --emit, and their files.
//
//   -o out.cu --emit=report=r.json --emit=ir    ->   cu in out.cu, report in r.json, ir on standard output
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fusec {

struct Emission {
  std::string kind;  // "cu", "header", "report", ...
  std::string path;  // "-" is standard output
};

std::span<const std::string_view> emission_kinds();

// Combines -o and --emit. The file of -o goes to the first --emit without a file that its extension allows; if there is
// none, it adds the kind of its extension. Throws Error(kUsage) for an unknown kind, and if an output would overwrite
// another output or one of the files that are read.
std::vector<Emission> emissions(const std::string& output, const std::vector<std::string>& emits,
                                std::span<const std::string> read, bool no_nvrtc);

}  // namespace fusec
