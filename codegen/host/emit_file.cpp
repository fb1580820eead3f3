#include "codegen/host/emit_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "codegen/expr/identifiers.h"
#include "codegen/prelude/prelude.h"

namespace fusec {
namespace {

std::string bytes_text(std::int64_t bytes) {
  if (bytes >= 10'000'000) return fmt::format("{} MB", bytes / 1'000'000);
  if (bytes >= 10'000) return fmt::format("{} kB", bytes / 1'000);
  return fmt::format("{} B", bytes);
}

std::string value_list(const Graph& graph, const std::vector<ValueId>& values) {
  std::string text;
  std::int64_t bytes = 0;
  for (const ValueId v : values) {
    if (!graph.type(v).is_tuple) bytes += bytes_at_hint(graph.tensor(v), graph.symbols);
    if (text.size() < 40)
      text += (text.empty() ? "" : ", ") + comment_text(graph.value(v).name, 24);
    else if (!text.ends_with("..."))
      text += ", ...";
  }
  return text + " " + bytes_text(bytes);
}

// The table at the head of the file: what each kernel computes, and the bytes that it moves.
std::string header(const Graph& graph, const LaunchPlan& launch, const Target& target) {
  std::string text = fmt::format(
      "// Made by fusec from \"{}\" for {}. Compiles with NVRTC (no include path) and with nvcc -arch={}.\n//\n",
      comment_text(graph.name, 60), target.arch, target.arch);
  if (!launch.numerics.empty()) text += fmt::format("// Numerics: --{}.\n//\n", fmt::join(launch.numerics, ", --"));
  std::vector<bool> seen(launch.kernels.size(), false);
  const auto name_of_symbol = [&](std::uint32_t s) { return graph.symbols[s].name; };
  for (const LaunchStep& step : launch.prepare_steps) {
    if (step.kind != LaunchStep::Kind::kKernel || seen[step.kernel]) continue;
    seen[step.kernel] = true;
    text +=
        fmt::format("//   {}, once for each set of weights\n//       reads {}; writes {}\n",
                    launch.kernels[step.kernel].name, value_list(graph, step.reads), value_list(graph, step.writes));
  }
  for (const LaunchStep& step : launch.steps) {
    if (step.kind == LaunchStep::Kind::kMatrixCall)
      text += fmt::format("//   cublasLtMatmul\n//       reads {}; writes {}\n", value_list(graph, step.reads),
                          value_list(graph, step.writes));
    if (step.kind != LaunchStep::Kind::kKernel || seen[step.kernel]) continue;
    seen[step.kernel] = true;
    text += fmt::format("//   {}\n//       reads {}; writes {}\n", launch.kernels[step.kernel].name,
                        value_list(graph, step.reads), value_list(graph, step.writes));
    for (const LaunchStep::Specialization& form : step.special)
      text +=
          fmt::format("//       or {}, where {}\n", form.kernel == kNone ? "nothing" : launch.kernels[form.kernel].name,
                      comment_text(guard_text(form.guard, name_of_symbol), 200));
  }
  if (!graph.symbols.empty()) {
    text += "//\n// Sizes are at";
    for (std::size_t i = 0; i < graph.symbols.size(); ++i)
      text += fmt::format("{} {} = {}", i ? "," : "", comment_text(graph.symbols[i].name, 24), graph.symbols[i].hint);
    text += ".\n";
  }

  return text;
}

std::int64_t line_count(std::string_view text) {
  return std::count(text.begin(), text.end(), '\n');
}

std::string prelude_of(const std::set<std::string>& parts) {
  if (parts.empty()) return "";
  return "namespace {\n\n" + prelude_text(parts) + "\n}  // namespace\n\n";
}

}  // namespace

EmittedFile emit_file(const Graph& graph, const FusionPlan& plan, const LaunchPlan& launch, const Target& target,
                      std::size_t units) {
  EmittedFile file;
  std::set<std::string> parts;
  for (const KernelSource& kernel : launch.kernels) parts.insert(kernel.prelude.begin(), kernel.prelude.end());
  file.text = header(graph, launch, target);
  file.text += "\n// ---- prelude: only what this file uses " + std::string(60, '-') + "\n" + prelude_of(parts);
  std::vector<std::int64_t> first_line;
  std::size_t counted = 0;  // characters of the text up to which lines are counted
  std::int64_t lines = 0;
  for (const KernelSource& kernel : launch.kernels) {
    const std::string ruler(std::max<std::size_t>(4, 100 - std::min<std::size_t>(90, kernel.name.size())), '-');
    file.text += fmt::format("// ---- {} {}\n", kernel.name, ruler);
    lines += line_count(std::string_view(file.text).substr(counted));
    counted = file.text.size();
    first_line.push_back(lines + 1);
    file.text += kernel.text + "\n";
  }
  file.text += "#ifndef __CUDACC_RTC__  // ---- host part " + std::string(60, '-') + "\n";
  file.text += emit_host(graph, plan, launch);
  file.text += "#endif  // __CUDACC_RTC__\n";

  // Large kernels first, each into the unit with the least code so far.
  const std::size_t count = std::max<std::size_t>(1, std::min(units, launch.kernels.size()));
  std::vector<std::size_t> by_size(launch.kernels.size()), load(count, 0);
  std::iota(by_size.begin(), by_size.end(), std::size_t{0});
  std::stable_sort(by_size.begin(), by_size.end(), [&](std::size_t a, std::size_t b) {
    return launch.kernels[a].text.size() > launch.kernels[b].text.size();
  });
  file.unit_of.resize(launch.kernels.size());
  for (const std::size_t k : by_size) {
    const auto unit = std::min_element(load.begin(), load.end()) - load.begin();
    file.unit_of[k] = static_cast<std::uint32_t>(unit);
    load[static_cast<std::size_t>(unit)] += launch.kernels[k].text.size();
  }
  for (std::size_t u = 0; u < count; ++u) {
    std::set<std::string> unit_parts;
    std::string body;
    for (std::size_t k = 0; k < launch.kernels.size(); ++k) {
      if (file.unit_of[k] != u) continue;
      unit_parts.insert(launch.kernels[k].prelude.begin(), launch.kernels[k].prelude.end());
      body += fmt::format("#line {} \"out.cu\"\n{}\n", first_line[k], launch.kernels[k].text);
    }
    file.units.push_back(prelude_of(unit_parts) + body);
  }
  return file;
}

}  // namespace fusec
