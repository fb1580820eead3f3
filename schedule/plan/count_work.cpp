#include "schedule/plan/count_work.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "analysis/kernel/counted_points.h"
#include "analysis/kernel/operation_work.h"
#include "ir/type.h"
#include "schedule/attention/split_kv.h"
#include "schedule/gemm/split_k.h"
#include "schedule/plan/kernel_planner.h"

namespace fusec {
namespace {

constexpr double kAddresses = 24;  // registers for addresses and loop counters

// Counts executed operations, moved bytes and live registers.
class WorkCounter : public CountedPoints {
 public:
  explicit WorkCounter(const Kernel& kernel) : CountedPoints(kernel), kernel_(kernel), pool_(kernel.pool) {}

  // Adds the work of `times` evaluations. A reduction counts once per element it reduces.
  void execute(ExprId id, double times, Work& work) const {
    const ExprNode& node = pool_[id];
    if (node.op == ExprOp::kReduce) times *= points(node.axes);
    const OperationWork one = operation_work(node);
    if (node.type == ScalarType::kFloat64) {
      work.float64 += times * (one.arithmetic + 16 * one.special);
    } else {
      work.float32 += times * one.arithmetic;
      work.special += times * one.special;
    }
  }

  // Adds the work at all points of `space` and of the axes that a node depends on besides.
  void execute_all(const std::vector<ExprId>& nodes, const Axes& space, double times, Work& work) const {
    for (const ExprId id : nodes) execute(id, times * points(united(space, depends(id))), work);
  }

  void count_bytes(const Graph& graph, Work& work) const;
  void count_registers(Work& work) const;

 private:
  const Kernel& kernel_;
  const ExprPool& pool_;
};

// Counts bytes read. A load reads at most one element per value of its index. Loads of one tensor read the sum of
// these, but at most the whole tensor.
void WorkCounter::count_bytes(const Graph& graph, Work& work) const {
  std::map<ValueId, std::map<std::vector<IndexExpr>, double>> read;  // by tensor and index
  for (const ExprId id : between(roots_of(kernel_), {})) {
    const ExprNode& node = pool_[id];
    if (node.op != ExprOp::kLoad) continue;
    Axes axes;
    for (const IndexExpr& e : node.indices)
      for (const Variable v : variables_of(e)) {
        if (v.kind == Variable::Kind::kAxis) axes = united(std::move(axes), std::span(&v.id, 1));
        if (v.kind == Variable::Kind::kValue) axes = united(std::move(axes), depends(v.id));
      }
    read[node.source][node.indices] = points(axes) * bits(node.dtype) / 8;
  }
  for (const auto& [value, parts] : read) {
    double bytes = 0;
    for (const auto& [index, part] : parts) bytes += part;
    work.read += std::min(std::ceil(bytes), static_cast<double>(bytes_at_hint(graph.tensor(value), graph.symbols)));
  }
  // An output may have one element per row only, and a kernel may store only a part of an output.
  for (const KernelOutput& output : kernel_.outputs)
    work.written += std::min(std::ceil(points(output.axes) * bits(output.type.dtype) / 8),
                             static_cast<double>(bytes_at_hint(output.type, graph.symbols)));
}

// Counts the registers of values that are live at once if nodes run in the order of the pool (constants take none),
// plus registers for addresses and loop counters.
void WorkCounter::count_registers(Work& work) const {
  const std::vector<ExprId> nodes = between(roots_of(kernel_), {});
  std::vector<ExprId> last_use(pool_.size(), kNoExpr);
  for (const ExprId id : nodes)
    for (const ExprId a : pool_[id].args)
      if (a != kNoExpr) last_use[a] = id;
  std::vector<double> ends(pool_.size(), 0);
  double alive = 0, most = 0;
  for (const ExprId id : nodes) {
    const ScalarType type = pool_[id].type;
    const bool constant = pool_[id].op == ExprOp::kConstant;
    const bool wide = type == ScalarType::kFloat64 || type == ScalarType::kInt64 || type == ScalarType::kUInt64;
    const double size = constant ? 0 : wide ? 2 : 1;
    alive += size;
    most = std::max(most, alive);
    if (last_use[id] == kNoExpr)
      alive -= size;  // stored immediately
    else
      ends[last_use[id]] += size;
    alive -= ends[id];
  }
  work.registers = kAddresses + most;
}

constexpr double kLoadBytes = 16;  // per thread at a time
constexpr double kTile = 64;       // rows and columns of the tile of a product without pipelined tiles
constexpr double kStepBytes = 64;  // of a tile's line, loaded at a time

double tiles(double extent, double tile = kTile) {
  return std::ceil(extent / tile);
}

// Adds multiply-adds to the unit that executes them.
void multiply(double pairs, bool tensor_cores, ScalarType type, Work& work) {
  double& unit = tensor_cores ? work.tensor : type == ScalarType::kFloat64 ? work.float64 : work.float32;
  unit += 2 * pairs;
}

// The tile of a product that a block computes at a time, and its resources.
struct ContractionTiles {
  double rows = kTile, columns = kTile, threads = 256;
  double in_flight_bytes = 0, shared = 0;
  double fragments = 0;  // registers per thread for operand fragments
  double split_k = 1;    // splits of K, one per block
};

ContractionTiles tiles_of(const GemmForm& form) {
  const GemmTiles& t = form.tiles;
  ContractionTiles tiles{.rows = static_cast<double>(t.rows),
                         .columns = static_cast<double>(form.pairs ? t.columns / 2 : t.columns),
                         .threads = static_cast<double>(t.threads()),
                         .in_flight_bytes = static_cast<double>(stage_bytes(form) * (t.stages - 1)),
                         .shared = static_cast<double>(shared_bytes(form))};
  // Tensor cores hold two K slices of 16; without them a thread holds one slice of 4 for four of its rows at a time.
  for (const GemmLoop& loop : form.loops) {
    const auto left = static_cast<double>(loop.left.size()), right = static_cast<double>(loop.right.size());
    tiles.fragments =
        std::max(tiles.fragments, form.tensor_cores() ? 2 * (left * t.warp_rows + right * t.warp_columns) / 4
                                                      : left * 16 + right * t.warp_columns / 2);
  }
  return tiles;
}

ContractionTiles tiles_of(const ConvolutionForm& form) {
  const GemmTiles& t = form.tiles;
  return {.rows = static_cast<double>(t.rows),
          .columns = static_cast<double>(t.columns),
          .threads = static_cast<double>(t.threads()),
          .in_flight_bytes = static_cast<double>(form.stage_bytes() * (t.stages - 1)),
          .shared = static_cast<double>(form.shared_bytes()),
          .split_k = static_cast<double>(t.split_k)};
}

ContractionTiles tiles_of(const Contraction& contraction) {
  ContractionTiles tiles{.threads = contraction.tensor_dtype ? 128.0 : 256.0};
  for (const ContractionLoop& loop : contraction.loops)
    tiles.in_flight_bytes =
        std::max(tiles.in_flight_bytes, static_cast<double>(loop.left.size() + loop.right.size()) * kTile * kStepBytes);
  return tiles;
}

// Returns the tiles of the chosen candidate.
ContractionTiles tiles_taken(const GemmForm& form, const WarpgroupGemms* wide) {
  ContractionTiles tiles = tiles_of(form);
  tiles.split_k = wide ? wide->forms[0].tiles.split_k : form.tiles.split_k;
  return tiles;
}

ContractionTiles tiles_taken(const ConvolutionForm& form, const WarpgroupGemms* wide) {
  ContractionTiles tiles = tiles_of(form);
  if (wide) tiles.split_k = wide->forms[0].tiles.split_k;
  return tiles;
}

// mma.sync (warps) is slower than wgmma (warpgroups): its operations count this many times.
double times_by_warps(const Target& target) {
  return 1 / target.mma_sync_rate;
}

bool of_float8(const ExprPool& pool, const Contraction& contraction) {
  return std::ranges::all_of(contraction.loops, [&](const ContractionLoop& loop) {
    const auto stored = [&](ExprId factor) { return multiplies(DType::kFloat8E4M3FN, pool[factor].dtype); };
    return std::ranges::all_of(loop.left, stored) && std::ranges::all_of(loop.right, stored);
  });
}

void count_contraction(const KernelPlanner& planner, WorkCounter& count, Work& work) {
  const Kernel& kernel = planner.shaped();
  const Contraction& contraction = *planner.form().contraction;
  const Target& target = planner.target();
  const GemmForm* gemm = planner.gemm();
  ContractionTiles tile = gemm ? tiles_of(*gemm) : tiles_of(contraction);
  const bool whole = kernel.pool[contraction.loops[0].terms[0].reduction].type == ScalarType::kInt32;
  // With `of_tiles` the chosen tiles are counted; otherwise only whether warpgroups multiply matters.
  const bool of_tiles = gemm ? can_split_k(kernel.pool, contraction, *gemm, target)
                             : whole || of_float8(kernel.pool, contraction) || kernel.numerics.allow_tf32 ||
                                   has_few_tiles_and_large_k(kernel.pool, contraction, target);
  const bool asks = of_tiles || target.mma_sync_rate < 1;
  const WarpgroupGemms* wide = asks ? planner.best_warpgroups() : nullptr;
  const ConvolutionForm* gathered = asks && !gemm ? planner.convolution() : nullptr;
  if (of_tiles && gemm) tile = tiles_taken(*gemm, wide);
  if (of_tiles && gathered) tile = tiles_taken(*gathered, wide);
  const bool gathered_bytes = gathered && bits(gathered->dtype) == 8;
  const bool tf32 = (gemm && gemm->tf32) || (gathered && gathered->tf32);
  if (contraction.expert_index) count.choose_along(contraction.expert_index->axis);
  const Axes rows = united(contraction.batch, contraction.rows);
  const double batches = count.points(contraction.batch);
  const double row_tiles = tiles(count.points(contraction.rows), tile.rows);
  const double column_tiles = tiles(count.points(contraction.columns), tile.columns);
  std::vector<ExprId> sums;
  for (const ContractionLoop& loop : contraction.loops)
    for (const ContractionTerm& term : loop.terms) sums.push_back(term.reduction);
  std::vector<ExprId> stops = sums;
  stops.insert(stops.end(), contraction.row_values.begin(), contraction.row_values.end());
  // Tiles at the edges count as full tiles. 8-bit operands are faster and tf32 is slower: both count as 16-bit
  // operations of equal time.
  const bool bytes = gathered_bytes || (gemm && bits(gemm->dtype) == 8);
  double as_wide = bytes ? target.float16_rate / target.float8_rate : tf32 ? 2 : 1;
  const bool on_tensor_cores =
      gemm ? gemm->tensor_cores() : gathered_bytes || tf32 || contraction.tensor_dtype.has_value();
  if (on_tensor_cores && !wide) as_wide *= times_by_warps(target);
  const double padded = as_wide * batches * row_tiles * tile.rows * column_tiles * tile.columns;
  for (const ContractionLoop& loop : contraction.loops) {
    const double k = count.points(loop.k);
    for (const ContractionTerm& term : loop.terms)
      multiply(padded * k, on_tensor_cores, kernel.pool[term.reduction].type, work);
    count.execute_all(count.between(loop.left, stops), {}, column_tiles, work);
    count.execute_all(count.between(loop.right, stops), {}, row_tiles, work);
  }
  count.execute_all(count.between(contraction.row_values, sums), rows, column_tiles, work);
  count.execute_all(count.between(roots_of(kernel), stops), united(rows, contraction.columns), 1, work);
  work.blocks = batches * row_tiles * column_tiles * tile.split_k;
  if (tile.split_k > 1) {  // partial sums are written and read once
    const double left = 4 * work.blocks * tile.rows * tile.columns * static_cast<double>(sums.size());
    work.written += left;
    work.read += left;
    work.launches = 2;
  }
  work.threads = tile.threads;
  work.in_flight_bytes = tile.in_flight_bytes;
  work.shared = tile.shared;
  // The epilogue runs after the last multiplication, when the fragments are dead.
  work.registers = std::max(work.registers, kAddresses + tile.fragments) +
                   tile.rows * tile.columns / tile.threads * static_cast<double>(sums.size());
}

// The form knows its instruction count; it counts instructions of half rate as a multiply-add.
void count_groups(const GroupedImplicitGemm& groups, const Target& target, Work& work) {
  const double as_wide = bits(groups.dtype) == 8    ? target.float16_rate / target.float8_rate
                         : bits(groups.dtype) == 32 ? 2
                                                    : 1;
  work.tensor = 2 * as_wide * times_by_warps(target) * groups.multiply_adds();
  work.float32 = groups.instructions;
  work.blocks = groups.blocks;
  work.threads = groups.threads();
  work.shared = static_cast<double>(groups.shared_bytes());
  work.in_flight_bytes = static_cast<double>(16 * groups.positions() * groups.units());
  work.registers = std::max(work.registers, static_cast<double>(groups.registers()));
}

// Operations to copy an operand's element to shared memory: address, guard, load, conversion and store.
constexpr double kOperationsOfCopy = 60;

// A block computes whole rows. The accumulators occur in the expressions once at the output's columns and once per
// reduction.
void count_row_gemm(const KernelPlanner& planner, const WorkCounter& count, Work& work) {
  const RowGemm& form = *planner.form().row_gemm;
  const Target& target = planner.target();
  const Contraction& contraction = form.contraction;
  const GemmForm* pipelined = planner.pipelined_row_gemm();
  const RowGemmTiles layout = tiles_of(form);
  const Axes rows = united(contraction.batch, contraction.rows);
  const double batches = count.points(contraction.batch);
  const double of_block = pipelined ? pipelined->tiles.rows : form.rows;
  // A warp computes 32 columns of the chunk even if only some exist.
  const int chunk_of_warps = contraction.tensor_dtype ? layout.block.threads : layout.block.columns;
  const double chunk = pipelined ? pipelined->tiles.columns : chunk_of_warps;
  const double row_tiles = tiles(count.points(contraction.rows), of_block);
  std::vector<ExprId> stops;
  for (const ContractionLoop& loop : contraction.loops)
    for (const ContractionTerm& term : loop.terms) stops.push_back(term.reduction);
  for (const auto& [twin, sum] : form.accumulator_at_columns) stops.push_back(twin);
  const double columns = tiles(count.points(contraction.columns), chunk) * chunk;
  const bool on_tensor_cores = contraction.tensor_dtype.has_value();
  const double padded = (on_tensor_cores ? times_by_warps(target) : 1) * batches * row_tiles * of_block * columns;
  for (const ContractionLoop& loop : contraction.loops) {
    for (const ContractionTerm& term : loop.terms)
      multiply(padded * count.points(loop.k), on_tensor_cores, form.kernel.pool[term.reduction].type, work);
    count.execute_all(count.between(loop.left, stops), {}, columns / chunk, work);
    count.execute_all(count.between(loop.right, stops), {}, row_tiles, work);
    if (!pipelined)
      work.float32 +=
          kOperationsOfCopy * batches * row_tiles * count.points(loop.k) * (of_block * columns / chunk + columns);
  }
  count.execute_all(count.between(roots_of(form.kernel), stops), rows, 1, work);
  work.blocks = batches * row_tiles;
  work.threads = pipelined ? pipelined->tiles.threads() : layout.block.threads;
  work.in_flight_bytes = pipelined ? static_cast<double>(stage_bytes(*pipelined) * (pipelined->tiles.stages - 1))
                                   : (of_block + chunk) * kStepBytes;
  if (pipelined) work.shared = static_cast<double>(std::max(tile_bytes(*pipelined), whole_rows_bytes(*pipelined)));
  work.registers += of_block * chunk / work.threads;
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
  const double pairs = form.tensor_dtype && !wide ? times_by_warps(target) * scores : scores;
  multiply(passes * pairs * count.points(form.head_dim), form.tensor_dtype.has_value(), pool[form.contraction].type,
           work);
  multiply(pairs * count.points(form.columns), form.tensor_dtype.has_value(), pool[form.result].type, work);
  // The two products are counted above. The softmax is counted by what the kernel executes, not by its formulas.
  std::vector<ExprId> counted = {form.contraction,          form.result,      pool[form.contraction].args[0],
                                 pool[form.result].args[0], form.row_maximum, form.total};
  counted.push_back(form.shifted_total);
  counted.insert(counted.end(), form.some_key.begin(), form.some_key.end());
  counted.insert(counted.end(), form.no_key.begin(), form.no_key.end());
  work.float32 += 6 * scores;  // scale, maximum, subtraction, total; the exponential is two more
  work.special += scores;
  const double row_tiles = tiles(count.points(form.rows), tile.rows);
  count.execute_all(count.between({form.query}, counted), {}, 1, work);
  count.execute_all(count.between({form.key}, counted), {}, row_tiles, work);
  count.execute_all(count.between({form.value}, counted), {}, row_tiles, work);
  std::vector<ExprId> rest = {form.score};
  for (const auto& steps : {form.row_weight_steps, form.key_weight_steps})
    for (const WeightStep& step : steps) rest.push_back(step.operand);
  count.execute_all(count.between(rest, counted), {}, 1, work);
  // Work after the sum over keys, without the softmax that the outputs' expressions contain below it.
  std::vector<ExprId> behind = count.between(roots_of(form.kernel), counted);
  std::erase_if(behind, [&](ExprId id) {
    const auto inside = [&](std::span<const std::uint32_t> axes) {
      return std::ranges::any_of(axes, [&](std::uint32_t a) {
        return std::ranges::find(form.keys, a) != form.keys.end() ||
               std::ranges::find(form.head_dim, a) != form.head_dim.end();
      });
    };
    return inside(count.depends(id)) || inside(pool[id].axes);
  });
  count.execute_all(behind, {}, 1, work);
  work.blocks = count.points(form.batch) * row_tiles * splits;
  work.threads = tile.threads;
  work.in_flight_bytes = bytes_in_flight(tile);
  work.registers = 64 + static_cast<double>(tile.columns) * tile.rows / tile.threads;
  if (splits == 1) return;
  // Each split writes, and the second kernel reads, a row's accumulators, maximum and total.
  const double left = 4 * count.points(rows) * splits * (count.points(form.columns) + 2);
  work.written += left;
  work.read += left;
  work.launches = 2;
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
    count_groups(*planner.groups(), planner.target(), work);
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
