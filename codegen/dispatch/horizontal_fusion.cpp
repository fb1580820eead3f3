#include "codegen/dispatch/horizontal_fusion.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "codegen/expr/identifiers.h"
#include "codegen/expr/kernel_writer.h"
#include "codegen/expr/parameter_table.h"
#include "schedule/target/target.h"

namespace fusec {
namespace {

constexpr std::string_view kBlockIndex = "blockIdx.x";

std::string with_block_variable(std::string body) {
  for (std::size_t at = body.find(kBlockIndex); at != std::string::npos; at = body.find(kBlockIndex, at))
    body.replace(at, kBlockIndex.size(), "block");
  return body;
}

// Offsets of the parts' scratch memory within that of the launches, in bytes.
class SharedScratch {
 public:
  explicit SharedScratch(std::span<const KernelPart> parts) {
    std::map<std::pair<std::size_t, std::uint32_t>, std::int64_t> room;
    for (std::size_t i = 0; i < parts.size(); ++i)
      for (const KernelOfPart& kernel : parts[i])
        for (const KernelParameter& p : kernel.parameters)
          if (p.kind == KernelParameter::Kind::kWorkspace) {
            std::int64_t& bytes = room[{i, p.scratch}];
            bytes = std::max(bytes, p.size.as_constant().value_or(0));
          }
    constexpr std::int64_t kAligned = 16;
    for (const auto& [key, bytes] : room) {
      begins_[key] = bytes_;
      bytes_ += (bytes + kAligned - 1) / kAligned * kAligned;
    }
  }

  std::int64_t begin_of(std::size_t part, std::uint32_t scratch) const { return begins_.at({part, scratch}); }
  std::int64_t bytes() const { return bytes_; }

 private:
  std::map<std::pair<std::size_t, std::uint32_t>, std::int64_t> begins_;
  std::int64_t bytes_ = 0;
};

// One launch of the horizontally fused kernel.
class SideBySide {
 public:
  SideBySide(std::span<const KernelPart> parts, std::size_t stage, const SharedScratch& scratch)
      : scratch_(scratch), only_launch_(std::ranges::all_of(parts, [](const auto& part) { return part.size() == 1; })) {
    names_.take("block");
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (parts[i].size() <= stage) continue;
      parts_.push_back(parts[i][stage]);
      part_numbers_.push_back(i);
      threads_ = std::max(threads_, parts_.back().source->block[0]);
    }
  }

  KernelSource combine() {
    IndexExpr blocks = 0;
    std::int64_t shared = 0;  // a block belongs to one part, so the parts share it
    std::string before;
    std::map<const KernelSource*, std::size_t> uses;
    for (const KernelOfPart& part : parts_) ++uses[part.source];
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      const KernelOfPart& part = parts_[i];
      std::string arguments = before.empty() ? "block" : "block - " + before;
      std::vector<std::uint32_t> numbers;
      for (std::size_t k = 0; k < part.parameters.size(); ++k) {
        const KernelParameter& parameter = part.parameters[k];
        const std::string& declaration = part.source->declarations[k];
        const bool scratch = parameter.kind == KernelParameter::Kind::kWorkspace;
        numbers.push_back(scratch ? number_of_scratch() : number_of(parameter, declaration));
        arguments += ", " + (scratch ? scratch_argument(numbers.back(), part_numbers_[i], parameter, declaration)
                                     : argument(numbers.back(), declaration));
      }
      numbers_.push_back(std::move(numbers));
      const bool compiled_once =
          uses[part.source] > (parts_.size() > kMostInlined ? 1 : kMostInlined) || part.source->has_named_registers;
      calls_.push_back(fmt::format("{}({});", function_of(*part.source, compiled_once), arguments));
      blocks += part.source->grid[0];
      shared = std::max(shared, part.source->dynamic_shared.as_constant().value_or(0));
      if (i + 1 == parts_.size()) break;
      before = blocks_text(blocks);
      ends_.push_back(before);
    }
    std::string calls;
    write_calls(0, parts_.size(), "  ", calls);
    result_.text = comment_ + functions_;
    result_.text +=
        fmt::format("extern \"C\" __global__ void {}\n@KERNEL@({}) {{\n",
                    launch_bounds(threads_, min_blocks_per_multiprocessor()), fmt::join(declared_, ",\n         "));
    result_.text += "  const int block = blockIdx.x;\n" + calls + "}\n";
    result_.grid[0] = blocks;
    result_.dynamic_shared = shared;
    result_.block = {threads_, 1, 1};
    result_.schedule = {KernelKind::kSideBySide};
    find_in_place();
    return std::move(result_);
  }

 private:
  // The minimum over all parts. Without it, ptxas spills a few GEMM values to fit a third block.
  int min_blocks_per_multiprocessor() const {
    constexpr int kRegisters = 65536;
    int of_thread = 0;
    for (const KernelOfPart& part : parts_)
      if (part.source->min_blocks_per_multiprocessor > 0)
        of_thread =
            std::max(of_thread, kRegisters / (part.source->block[0] * part.source->min_blocks_per_multiprocessor));
    return of_thread > 0 ? std::max(1, kRegisters / (threads_ * of_thread)) : 0;
  }

  // Prints the calls of parts first .. last - 1; a block runs one of them. Many parts are dispatched by binary search.
  void write_calls(std::size_t first, std::size_t last, const std::string& indent, std::string& text) {
    if (last - first > kMostInARow) {
      const std::size_t middle = first + (last - first) / 2;
      text += fmt::format("{}if (block < {}) {{\n", indent, ends_[middle - 1]);
      write_calls(first, middle, indent + "  ", text);
      text += fmt::format("{}  return;\n{}}}\n", indent, indent);
      return write_calls(middle, last, indent, text);
    }
    for (std::size_t i = first; i + 1 < last; ++i)
      text += fmt::format("{}if (block < {}) return {}\n", indent, ends_[i], calls_[i]);
    text += indent + calls_[last - 1] + "\n";
  }

  // A number, or a size parameter that the host computes.
  std::string blocks_text(const IndexExpr& blocks) {
    if (const auto number = blocks.as_constant()) return std::to_string(*number);
    KernelParameter p{.kind = KernelParameter::Kind::kSize, .name = "blocks", .size = blocks};
    return result_.parameters[number_of(p, "const int ")].name;
  }

  // A part may work in place as it would alone, if no other part touches the same tensors. With several launches,
  // another launch may touch them, so nothing is in place.
  void find_in_place() {
    if (!only_launch_) return;
    std::vector<int> parts_with(result_.parameters.size(), 0);
    for (const std::vector<std::uint32_t>& numbers : numbers_)
      for (const std::uint32_t number : std::set(numbers.begin(), numbers.end())) ++parts_with[number];
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      for (const KernelSource::InPlace& pair : parts_[i].source->in_place) {
        const std::uint32_t read = numbers_[i][pair.read], written = numbers_[i][pair.written];
        if (parts_with[read] == 1 && parts_with[written] == 1) result_.in_place.push_back({read, written});
      }
    }
  }

  // The index of the parameter in the fused kernel. Equal arguments share one parameter.
  std::uint32_t number_of(KernelParameter p, const std::string& declaration) {
    const bool tensor = p.kind == KernelParameter::Kind::kTensor;
    const auto next = static_cast<std::uint32_t>(result_.parameters.size());
    const auto [there, is_new] = number_of_.try_emplace(
        {p.kind, tensor ? p.value : kNone, tensor ? IndexExpr(0) : p.size, p.bits, p.written}, next);
    if (!is_new) return there->second;
    p.name = names_.take(p.name);
    types_.push_back(type_of(declaration));
    declared_.push_back(declaration + p.name);
    result_.parameters.push_back(p);
    return next;
  }

  std::uint32_t number_of_scratch() {
    return number_of(
        {.kind = KernelParameter::Kind::kWorkspace, .name = "partials", .written = true, .size = scratch_.bytes()},
        "char* __restrict__ ");
  }
  std::string scratch_argument(std::uint32_t number, std::size_t part, const KernelParameter& parameter,
                               const std::string& declaration) const {
    const std::int64_t begin = scratch_.begin_of(part, parameter.scratch);
    const std::string& name = result_.parameters[number].name;
    return begin == 0 ? fmt::format("({}){}", type_of(declaration), name)
                      : fmt::format("({})({} + {})", type_of(declaration), name, begin);
  }

  static std::string type_of(const std::string& declaration) {
    return declaration.substr(0, declaration.find(" __restrict__"));
  }
  // A tensor that one part moves as words (schedule/movement/word_copy) may have another type in another part.
  std::string argument(std::uint32_t number, const std::string& declaration) const {
    const std::string& name = result_.parameters[number].name;
    const std::string type = type_of(declaration);
    return type == types_[number] || !type.ends_with('*') ? name : fmt::format("({}){}", type, name);
  }

  // The device function of a source, emitted on first use. A function with many callers is not inlined.
  std::string function_of(const KernelSource& source, bool compiled_once) {
    const auto [it, fresh] = made_.try_emplace(&source, fmt::format("@KERNEL@_part_{}", made_.size()));
    if (!fresh) return it->second;
    comment_ += source.comment;
    functions_ += fmt::format("static __device__ {} void {}(const int block",
                              compiled_once ? "__noinline__" : "__forceinline__", it->second);
    for (std::uint32_t i = 0; i < source.parameters.size(); ++i)
      functions_ += ",\n         " + declaration_of(source, i) + source.parameters[i].name;
    functions_ += ") {\n";
    if (source.block[0] < threads_) functions_ += fmt::format("  if (threadIdx.x >= {}) return;\n", source.block[0]);
    functions_ += with_block_variable(source.body) + "}\n\n";
    result_.prelude.insert(source.prelude.begin(), source.prelude.end());
    return it->second;
  }

  // Pointers of in-place pairs may be equal; the kernel's own declarations decide on __restrict__.
  static std::string declaration_of(const KernelSource& source, std::uint32_t parameter) {
    std::string declaration = source.declarations[parameter];
    const bool in_place = std::ranges::any_of(source.in_place, [&](const KernelSource::InPlace& pair) {
      return pair.read == parameter || pair.written == parameter;
    });
    constexpr std::string_view restricted = "__restrict__ ";
    if (const std::size_t at = declaration.find(restricted); in_place && at != std::string::npos)
      declaration.erase(at, restricted.size());
    return declaration;
  }

  static constexpr std::size_t kMostInlined = 8, kMostInARow = 16;

  const SharedScratch& scratch_;
  const bool only_launch_;
  std::vector<KernelOfPart> parts_;
  std::vector<std::size_t> part_numbers_;
  std::vector<std::vector<std::uint32_t>> numbers_;  // by part: indices of the fused kernel's parameters
  std::vector<std::string> calls_;
  std::vector<std::string> ends_;  // by part, without the last: first block after it
  int threads_ = 0;
  UniqueNames names_;
  // By kind, tensor or else size, bits, and whether it is written.
  std::map<std::tuple<KernelParameter::Kind, ValueId, IndexExpr, int, bool>, std::uint32_t> number_of_;
  KernelSource result_;
  std::vector<std::string> declared_, types_;  // of the fused kernel's parameters
  std::map<const KernelSource*, std::string> made_;
  std::string comment_, functions_;
};

}  // namespace

bool can_be_part(const KernelSource& source) {
  const auto plain = [](const KernelParameter& p) {
    return p.kind == KernelParameter::Kind::kTensor || p.kind == KernelParameter::Kind::kSize ||
           (p.kind == KernelParameter::Kind::kWorkspace && p.size.is_constant() && !p.counters);
  };
  return source.table_parameters.empty() && source.dynamic_shared.is_constant() &&
         source.cluster == std::array<int, 3>{1, 1, 1} && source.resident_blocks == 1 && source.block[1] == 1 &&
         source.block[2] == 1 && source.grid[1].is(1) && source.grid[2].is(1) && !source.body.empty() &&
         std::ranges::all_of(source.parameters, plain);
}

std::vector<KernelSource> horizontally_fused(std::span<const KernelPart> parts, const std::string& name) {
  const SharedScratch scratch(parts);
  std::size_t launches = 0;
  for (const KernelPart& part : parts) launches = std::max(launches, part.size());
  std::vector<KernelSource> sources;
  for (std::size_t stage = 0; stage < launches; ++stage) {
    sources.push_back(SideBySide(parts, stage, scratch).combine());
    sources.back().name = name;
    if (parameter_bytes(sources.back().parameters) > static_cast<std::size_t>(kMaxLargeParameterBytes)) return {};
  }
  return sources;
}

}  // namespace fusec
