#include "emissions.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "ir/error.h"
#include "ir/spelling.h"
#include "output_file.h"

namespace fusec {
namespace {

constexpr std::string_view kKinds[] = {"cu", "header", "ptx",    "cubin", "manifest", "partition", "plan",
                                       "ir", "report", "ledger", "dot",   "svg",      "html"};

[[noreturn]] void usage(std::string what, std::string found = "", std::string expected = "", std::string hint = "") {
  throw Error(
      ErrorKind::kUsage,
      {.what = std::move(what), .found = std::move(found), .expected = std::move(expected), .hint = std::move(hint)});
}

bool extension_allows(const std::string& extension, const std::string& kind) {
  if (extension == ".json")
    return kind == "manifest" || kind == "partition" || kind == "plan" || kind == "ledger" || kind == "report";
  if (extension == ".txt") return kind == "ir";
  if (extension == ".h") return kind == "header";
  return extension == "." + kind;
}

std::string extension_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::size_t dot = path.rfind('.');
  if (dot == std::string::npos || (slash != std::string::npos && dot < slash)) return "";
  return path.substr(dot);
}

std::string kind_of_extension(const std::string& extension) {
  if (extension == ".json") return "manifest";
  if (extension == ".txt") return "ir";
  if (extension == ".h") return "header";
  for (const std::string_view kind : {"cu", "ptx", "cubin", "dot", "svg", "html"})
    if (extension == "." + std::string(kind)) return std::string(kind);
  return "";
}

}  // namespace

std::span<const std::string_view> emission_kinds() {
  return kKinds;
}

std::vector<Emission> emissions(const std::string& output, const std::vector<std::string>& emits,
                                std::span<const std::string> read, bool no_nvrtc) {
  std::vector<Emission> list;
  for (const std::string& text : emits) {
    const std::size_t equals = text.find('=');
    Emission e{text.substr(0, equals), equals == std::string::npos ? "" : text.substr(equals + 1)};
    if (std::find(std::begin(kKinds), std::end(kKinds), e.kind) == std::end(kKinds))
      usage("--emit", in_quotes(e.kind), fmt::format("one of {}", fmt::join(kKinds, ", ")),
            did_you_mean(e.kind, kKinds));
    if (equals != std::string::npos && e.path.empty()) usage("--emit=" + e.kind + "= has no file");
    list.push_back(std::move(e));
  }
  if (!output.empty()) {
    const std::string extension = output == "-" ? "" : extension_of(output);
    const bool any = output == "-" || (kind_of_extension(extension).empty());
    auto taker = std::find_if(list.begin(), list.end(), [&](const Emission& e) {
      return e.path.empty() && (any || extension_allows(extension, e.kind));
    });
    if (taker != list.end()) {
      taker->path = output;
    } else {
      const std::string kind = output == "-" ? "cu" : kind_of_extension(extension);
      if (kind.empty())
        usage("the extension of " + output + " names no kind of output", "\"" + extension + "\"",
              ".cu, .h, .ptx, .cubin, .dot, .svg, .html, .json or .txt");
      list.push_back({kind, output});
    }
  }
  std::size_t to_standard_output = 0;
  for (Emission& e : list) {
    if (e.path.empty()) e.path = "-";
    to_standard_output += e.path == "-";
  }
  if (to_standard_output > 1) usage("more than one result would go to standard output; give files: --emit=KIND=FILE");
  std::vector<std::string> written;
  for (const Emission& e : list) written.push_back(e.path);
  check_written(written, read);
  for (const Emission& e : list)
    if (no_nvrtc && (e.kind == "ptx" || e.kind == "cubin")) usage("--no-nvrtc leaves no way to make a " + e.kind);
  return list;
}

}  // namespace fusec
