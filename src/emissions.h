// What a command line asks to be written, and where: -o and --emit.
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

// -o takes the first --emit without a file that its extension allows, else its extension's kind. Throws Error(kUsage)
// where a kind is unknown, and where two results, or one and the model, would be one file.
std::vector<Emission> emissions(const std::string& output, const std::vector<std::string>& emits,
                                const std::string& model, bool no_nvrtc);

}  // namespace fusec
