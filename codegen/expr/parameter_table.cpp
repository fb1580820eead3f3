#include "codegen/expr/parameter_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "schedule/target/target.h"

namespace fusec {
namespace {

constexpr std::size_t kPointersAtOnce = 500;
static_assert(8 * (kPointersAtOnce + 1) <= kMaxParameterBytes);

// A kernel that writes entries first .. first + entries.size() - 1 of the table.
KernelSource filler(std::span<const KernelParameter> entries, std::size_t first, const KernelParameter& table) {
  KernelSource source;
  std::string parameters, body;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    KernelParameter entry = entries[i];
    const bool size = entry.kind == KernelParameter::Kind::kSize;
    entry.name = fmt::format("p{}", i);
    entry.written = false;
    entry.address_only = !size;
    entry.bits = 64;
    parameters +=
        fmt::format("{} {},{}", size ? "long long" : "const void*", entry.name, i % 8 == 7 ? "\n         " : " ");
    body += fmt::format("  table[{}] = (unsigned long long){};\n", first + i, entry.name);
    source.parameters.push_back(std::move(entry));
  }
  source.parameters.push_back(table);
  source.parameters.back().name = "table";
  source.parameters.back().written = true;
  source.text = fmt::format(
      "// The next kernel's parameters {} to {}: it has too many for a parameter list.\n"
      "extern \"C\" __global__ void __launch_bounds__(1)\n@KERNEL@({}unsigned long long* __restrict__ table) "
      "{{\n{}}}\n",
      first, first + entries.size() - 1, parameters, body);
  source.name = "fill_table";
  source.schedule = {KernelKind::kParameterTable};
  return source;
}

}  // namespace

std::size_t parameter_bytes(const std::vector<KernelParameter>& parameters) {
  std::size_t bytes = 0;
  for (const KernelParameter& p : parameters) {
    const bool map = p.kind == KernelParameter::Kind::kTensorMap;
    const std::size_t own = map ? 128 : p.kind == KernelParameter::Kind::kSize && p.bits == 32 ? 4 : 8;
    const std::size_t alignment = map ? 64 : own;
    bytes = (bytes + alignment - 1) / alignment * alignment + own;
  }
  return bytes;
}

std::vector<KernelSource> with_filled_table(KernelSource kernel, std::uint32_t scratch) {
  std::vector<KernelSource> kernels;
  if (!kernel.table_parameters.empty()) {
    KernelParameter& table = kernel.parameters.front();
    table.scratch = scratch;
    const std::span<const KernelParameter> entries(kernel.table_parameters);
    for (std::size_t first = 0; first < entries.size(); first += kPointersAtOnce)
      kernels.push_back(
          filler(entries.subspan(first, std::min(kPointersAtOnce, entries.size() - first)), first, table));
  }
  kernels.push_back(std::move(kernel));
  return kernels;
}

}  // namespace fusec
