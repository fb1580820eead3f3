#include "codegen/dispatch/word_copy_schedule.h"

#include <fmt/format.h>

#include "analysis/kernel/axis_merging.h"
#include "analysis/kernel/loads.h"
#include "codegen/access/vector_access.h"
#include "codegen/access/vectorized_loads.h"
#include "codegen/dispatch/schedules.h"
#include "codegen/expr/formula_text.h"
#include "codegen/expr/kernel_writer.h"
#include "ir/type.h"
#include "schedule/movement/staged_copy.h"
#include "schedule/movement/word_copy.h"

namespace fusec {
namespace {

// True if the copy already consists of contiguous 16-byte vectors and whole sectors; wider elements would not be
// faster.
bool is_stored_in_vectors(const Kernel& kernel, const Graph& graph) {
  const Kernel merged = merge_axes(kernel, graph);
  const std::vector<std::uint32_t>& axes = merged.outputs[0].axes;
  const int size = bits(merged.outputs[0].type.dtype), width = 128 / size;
  if (axes.empty() || size < 8) return false;
  const IndexExpr& last = merged.pool.extent(axes.back());
  if (range_of(last, merged.pool.bounds()).min < 2 * width || !proves_multiple_of(last, width, merged.pool.bounds()))
    return false;
  const VectorizedLoads loads = vectorize_loads(merged, graph, width);
  const Bounds& bounds = loads.kernel.pool.bounds();
  const auto is_vector = [&](const KernelOutput& output) {
    const IndexExpr at = simplify(flat_index(output.type.shape, output.index), bounds);
    return is_vector_position(at, output.axes.back(), width, output.type.dtype, bounds);
  };
  return loads.apart.empty() && std::ranges::all_of(loads.kernel.outputs, is_vector) &&
         !has_crossing_load(merged, graph);
}

// A copy of 8-byte elements if it goes through tiles. Otherwise words of 4 bytes, which neighbouring threads access
// without bank conflicts.
std::optional<WordCopy> as_words(const Kernel& kernel, const Graph& graph) {
  auto words = widen_copies(kernel, graph, 64);
  if (!words || bits(words->kernel.outputs[0].type.dtype) < 64) return words;
  if (has_crossing_load(merge_axes(words->kernel, words->graph), words->graph)) return words;
  return widen_copies(kernel, graph, 32);
}

void name_as_in_model(KernelSource& source, const Kernel& kernel, const Graph& graph, const WordCopy& words) {
  for (std::vector<KernelParameter>* list : {&source.parameters, &source.table_parameters})
    for (KernelParameter& p : *list)
      if (p.value != kNone) p.value = words.values.at(p.value);
  source.name = kernel_name(graph, kernel.nodes);
  std::vector<std::string> comment = kernel_comment(graph, kernel);
  for (std::string& line : formula_lines(graph, kernel)) comment.push_back(std::move(line));
  comment.push_back(fmt::format("moved as {}", name(words.kernel.outputs[0].type.dtype)));
  set_comment(source, std::move(comment));
}

}  // namespace

std::vector<KernelSource> schedule_word_copy(const Kernel& kernel, const Graph& graph, const Target& target,
                                             const std::string& wanted, FormMemory& forms) {
  const std::optional<WordCopy> words = as_words(kernel, graph);
  if (!words || is_stored_in_vectors(kernel, graph)) return schedule(kernel, graph, target, forms, wanted);
  std::vector<KernelSource> sources = schedule(words->kernel, words->graph, target, forms, wanted);
  for (KernelSource& source : sources) name_as_in_model(source, kernel, graph, *words);
  return sources;
}

}  // namespace fusec
