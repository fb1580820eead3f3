#include "schedule/plan/count_work.h"

#include <algorithm>
#include <cmath>

#include "ir/type.h"
#include "schedule/attention/split_kv.h"
#include "schedule/plan/contraction_work.h"
#include "schedule/plan/kernel_planner.h"
#include "schedule/plan/work_counter.h"

namespace fusec {
namespace {

constexpr double kLoadBytes = 16;  // per thread at a time

// The two products, which are counted by their sizes, and the softmax, which is counted by what the kernel executes and
// not by its formulas.
std::vector<ExprId> counted_apart(const Attention& form) {
  const ExprPool& pool = form.kernel.pool;
  std::vector<ExprId> counted = {form.contraction,          form.result,      pool[form.contraction].args[0],
                                 pool[form.result].args[0], form.row_maximum, form.total,
                                 form.shifted_total};
  counted.insert(counted.end(), form.some_key.begin(), form.some_key.end());
  counted.insert(counted.end(), form.no_key.begin(), form.no_key.end());
  return counted;
}

// Work after the sum over keys, without the softmax that the outputs' expressions contain below it.
std::vector<ExprId> after_the_keys(const Attention& form, const WorkCounter& count,
                                   const std::vector<ExprId>& counted) {
  std::vector<ExprId> behind = count.between(roots_of(form.kernel), counted);
  std::erase_if(behind, [&](ExprId id) {
    const auto inside = [&](std::span<const std::uint32_t> axes) {
      return std::ranges::any_of(axes,
                                 [&](std::uint32_t a) { return contains(form.keys, a) || contains(form.head_dim, a); });
    };
    return inside(count.depends(id)) || inside(form.kernel.pool[id].axes);
  });
  return behind;
}

void count_attention(const KernelPlanner& planner, const WorkCounter& count, Work& work) {
  const Attention& form = *planner.form().attention;
  const Target& target = planner.target();
  const ExprPool& pool = form.kernel.pool;
  const Axes rows = united(united(form.batch, form.rows), form.unit);
  const double scores = count.points(rows) * count.points(form.keys);
  // Extra outputs need the scores again: recomputed, or reloaded from the score buffer.
  const double passes = form.extra_outputs.empty() || form.score_buffer ? 1 : 2;
  if (form.score_buffer) {
    const double score_buffer = scores * bits(form.kernel.outputs[*form.score_buffer].type.dtype) / 8;
    work.written += score_buffer;
    work.read += score_buffer;
  }
  const AttentionTiles& tile = planner.attention().by_warps;
  const int splits = expected_splits(form, tile, target);
  // Whether TMA can copy the operands is not known yet; usually it can.
  const bool wide = splits == 1 && planner.attention().by_warpgroups;
  const double pairs = form.tensor_dtype && !wide ? mma_sync_cost(target) * scores : scores;
  add_multiply_adds(passes * pairs * count.points(form.head_dim), form.tensor_dtype.has_value(),
                    pool[form.contraction].type, work);
  add_multiply_adds(pairs * count.points(form.columns), form.tensor_dtype.has_value(), pool[form.result].type, work);
  const std::vector<ExprId> counted = counted_apart(form);
  work.float32 += 6 * scores;  // scale, maximum, subtraction, total; the exponential is two more
  work.special += scores;
  const double row_tiles = std::ceil(count.points(form.rows) / tile.rows);
  count.execute_all(count.between({form.query}, counted), {}, 1, work);
  count.execute_all(count.between({form.key}, counted), {}, row_tiles, work);
  count.execute_all(count.between({form.value}, counted), {}, row_tiles, work);
  std::vector<ExprId> rest = {form.score};
  for (const auto& steps : {form.row_weight_steps, form.key_weight_steps})
    for (const WeightStep& step : steps) rest.push_back(step.operand);
  count.execute_all(count.between(rest, counted), {}, 1, work);
  count.execute_all(after_the_keys(form, count, counted), {}, 1, work);
  work.blocks = count.points(form.batch) * row_tiles * splits;
  work.threads = tile.threads;
  work.in_flight_bytes = bytes_in_flight(tile);
  work.registers = 64 + static_cast<double>(tile.columns) * tile.rows / tile.threads;
  if (splits == 1) return;
  // Each split writes, and the last one reads, a row's accumulators, maximum and total.
  const double left = 4 * count.points(rows) * splits * (count.points(form.columns) + 2);
  work.written += left;
  work.read += left;
  work.launches = launches_of_splits(form);
}

// Returns whether a reduction uses an output axis as axis // c (groups of channels, blocks of rows).
bool divides_rows(const Kernel& kernel, const std::vector<ExprId>& reductions) {
  const auto is_divided_row = [&](const IndexAtom& atom) {
    const auto variable = atom.kind == IndexAtom::Kind::kFloorDiv ? atom.a.as_variable() : std::nullopt;
    return variable && variable->kind == Variable::Kind::kAxis &&
           std::ranges::count(kernel.outputs[0].axes, variable->id) != 0;
  };
  for (const ExprId id : reachable(kernel.pool, reductions))
    for (const IndexExpr& e : kernel.pool[id].indices)
      for (const IndexTerm& term : e.terms())
        if (std::ranges::any_of(term.factors, [&](const IndexAtomPtr& factor) { return is_divided_row(*factor); }))
          return true;
  return false;
}

// Counts what is computed for rows. The share `on_chip` of a row that a block keeps is computed once, the rest again
// for each reduction. Reductions of segments count once per segment.
void compute_rows(const WorkCounter& count, const Kernel& kernel, const RowForm& form, double on_chip, Work& work) {
  const Axes& rows = form.rows;
  if (on_chip < 1) {
    const double again = 1 - on_chip;
    count.execute_all(form.reductions, rows, again, work);
    count.execute_all(count.between(roots_of(kernel), form.reductions), rows, again, work);
    for (const ExprId id : form.reductions)
      count.execute_all(count.between({kernel.pool[id].args[0]}, form.reductions), rows, again, work);
  }
  std::vector<ExprId> computed = count.between(roots_of(kernel), {});
  if (form.reductions.size() + form.segments.size() > 1) computed = count.distinct(computed);
  for (const ExprId id : computed) {
    const bool of_segment = std::ranges::find(form.segments, id) != form.segments.end();
    const double times = count.points(united(rows, count.depends(id)));
    count.execute(id, on_chip * (of_segment ? times / static_cast<double>(form.segment) : times), work);
  }
}

void count_rows(const KernelPlanner& planner, const WorkCounter& count, Work& work) {
  const Kernel& kernel = planner.kernel();
  RowForm whole;
  whole.reductions = row_reductions(kernel);
  std::ranges::sort(whole.reductions);
  double length = 1;
  std::size_t fewest = count.depends(whole.reductions[0]).size(), most = 0;
  for (const ExprId id : whole.reductions) {
    length = std::max(length, count.points(kernel.pool[id].axes));
    whole.rows = united(std::move(whole.rows), count.depends(id));
    fewest = std::min(fewest, count.depends(id).size());
    most = std::max(most, count.depends(id).size());
  }
  // Blocks never split shorter rows.
  constexpr double kShortestDivided = 256;
  const bool may_divide = std::max(length, count.points(kernel.outputs[0].axes)) >= kShortestDivided;
  const RowLaunch launch = may_divide ? planner.row_launch() : RowLaunch{};
  const double on_chip = launch.chunks == 1 ? launch.on_chip : 0;
  // If reductions use parts of output axes, these parts are the rows.
  const bool divided = fewest < most || divides_rows(kernel, whole.reductions);
  const RowForm* form = divided ? row_form_of(kernel, planner.form(), planner.graph()) : nullptr;
  double rows = count.points(whole.rows);
  if (form) {
    const WorkCounter of_form(form->kernel);
    rows = of_form.points(form->rows);
    compute_rows(of_form, form->kernel, *form, on_chip, work);
  } else {
    compute_rows(count, kernel, whole, on_chip, work);
  }
  // Threads per row: about one per 32 elements, in whole warps, in each of the row's blocks.
  const double of_block = length / (launch.blocks_per_row * launch.chunks);
  const double threads = std::clamp(std::exp2(std::ceil(std::log2(of_block / 32))), 32.0, 1024.0);
  work.threads = std::clamp(threads, 256.0, 1024.0);
  work.blocks = std::max(1.0, std::ceil(rows * threads / work.threads)) * launch.blocks_per_row * launch.chunks;
  work.launches = launch.launches;
  work.sector_overfetch = launch.sector_overfetch;
  // A thread issues all loads of its part of a row before it uses any.
  work.in_flight_bytes = kLoadBytes * work.threads * std::clamp(of_block / threads / 4, 1.0, 4.0);
  work.registers += std::min(of_block / threads, 64.0);
  if (launch.blocks == 0) return;
  constexpr double kAtOnce = 4;  // vectors in flight per thread
  work.blocks = launch.blocks;
  work.threads = launch.threads;
  work.shared = launch.shared_bytes;
  work.in_flight_bytes = kAtOnce * kLoadBytes * work.threads;
}

void count_elements(const WorkCounter& count, const Kernel& kernel, double of_thread, Work& work) {
  const Axes& axes = kernel.outputs[0].axes;
  count.execute_all(count.between(roots_of(kernel), {}), axes, 1, work);
  work.blocks = std::max(1.0, std::ceil(count.points(axes) / (of_thread * work.threads)));
  work.in_flight_bytes = kLoadBytes * work.threads;
}

double bytes_of(const Graph& graph, ValueId v) {
  const ValueType& type = graph.type(v);
  double sum = 0;
  std::vector<const ValueType*> left = {&type};
  while (!left.empty()) {
    const ValueType* next = left.back();
    left.pop_back();
    if (!next->is_tuple) sum += static_cast<double>(bytes_at_hint(next->tensor, graph.symbols));
    for (const ValueType& field : next->fields) left.push_back(&field);
  }
  return sum;
}

// Returns whether a scatter or index_put updates an input's buffer in place: it then touches the indexed elements only.
bool changes_in_place(const Graph& graph, const Node& node) {
  return node.op->special == Special::kScatter && std::ranges::any_of(graph.aliases, [&](const Alias& alias) {
           return alias.output == node.first_output && alias.input == node.inputs.at(0);
         });
}

Work work_of_update(const Graph& graph, const Node& node) {
  Work work;
  for (std::size_t i = 1; i < node.inputs.size(); ++i)
    if (node.inputs[i] != kNone) work.read += bytes_of(graph, node.inputs[i]);
  work.written = bytes_of(graph, node.inputs.at(node.op->name == "scatter" ? 2 : 1));
  work.blocks = std::max(1.0, std::ceil(work.written / 4096));
  return work;
}

}  // namespace

Work count_work(const KernelPlanner& planner) {
  Work work;
  const FormOfKernel& form = planner.form();
  const Kernel& shaped = form.attention  ? form.attention->kernel
                         : form.row_gemm ? form.row_gemm->kernel
                                         : planner.shaped();
  WorkCounter count(shaped);
  count.count_bytes(planner.graph(), work);
  count.count_registers(work);
  if (planner.groups()) {
    count_grouped_gemm(*planner.groups(), planner.target(), work);
    return work;
  }
  switch (form.form) {
    case KernelForm::kTensorCoreContraction:
    case KernelForm::kContraction:
      count_contraction(planner, count, work);
      break;
    case KernelForm::kRowGemm:
      count_row_gemm(planner, count, work);
      break;
    case KernelForm::kAttention:
      count_attention(planner, count, work);
      break;
    case KernelForm::kRowReduction:
      count_rows(planner, count, work);
      break;
    case KernelForm::kPointwise:
      count_elements(count, shaped, 4, work);
      break;
    case KernelForm::kThreadPerElement:
      count_elements(count, shaped, 1, work);
      break;
  }
  return work;
}

Work work_of_special(const Graph& graph, const Node& node) {
  if (changes_in_place(graph, node)) return work_of_update(graph, node);
  Work work;
  std::vector<ValueId> read;
  for (const ValueId v : node.inputs) {
    if (v == kNone || std::ranges::find(read, v) != read.end()) continue;
    const Value::Kind kind = graph.value(v).kind;
    if (kind == Value::Kind::kNumber || kind == Value::Kind::kDim) continue;
    read.push_back(v);
    work.read += bytes_of(graph, v);
  }
  for (std::uint32_t i = 0; i < node.output_count; ++i) work.written += bytes_of(graph, node.first_output + i);
  work.blocks = std::max(1.0, std::ceil(work.written / 4096));
  return work;
}

}  // namespace fusec
