#include "codegen/attention/attention_unrolling.h"

#include <algorithm>
#include <limits>
#include <span>
#include <utility>

#include "analysis/kernel/operation_work.h"
#include "codegen/attention/attention_emitter.h"

namespace fusec {
namespace {

// A model of NVRTC's time in milliseconds, cubin included. For most of a hundred different kernels the error is below a
// fifth, so the limit leaves a fifth below 400 ms.
constexpr double kMost = 320, kAnyAttention = 120, kWarpgroups = 80, kWarpgroupKey = 0.75;
constexpr double kWarpgroupColumn = 0.5;                         // per element of the head beyond 128
constexpr double kLanes = 10, kScoreOrAccumulatorInLanes = 1.8;  // per register of scores or accumulators
constexpr double kMmaOfKeys = 0.0035, kMmaOfValues = 0.0129;     // per key and element of the head
constexpr double kOperation = 0.049;                             // per operation of a score
constexpr double kGuard = 0.5, kGuardedLoad = 0.58;              // a branch per score
constexpr double kVector = 3.5;                                  // per unrolled vector of eight computed elements
constexpr double kVectorWithTwoFragments = 18;                   // per vector, if the accumulators leave few registers
constexpr double kSecondLoop = 80;                               // the second loop over the keys, for extra outputs
constexpr double kResultOperation = 0.125;
constexpr double kLoad = 3;  // in operations

struct Operations {
  double operations = 0, loads = 0;
  double all() const { return operations + kLoad * loads; }
};

// Counts the operations of `roots`, without those of `known`.
Operations operations_of(const ExprPool& pool, std::vector<ExprId> roots, const std::vector<ExprId>& known) {
  Operations sum;
  std::vector<std::uint8_t> seen(pool.size(), 0);
  for (const ExprId id : known)
    if (id != kNoExpr) seen[id] = 1;
  while (!roots.empty()) {
    const ExprId id = roots.back();
    roots.pop_back();
    if (std::exchange(seen[id], 1) || pool[id].op == ExprOp::kReduce) continue;
    sum.operations += instruction_count(pool[id]);
    sum.loads += pool[id].op == ExprOp::kLoad ? 1 : 0;
    for (const ExprId a : pool[id].args)
      if (a != kNoExpr) roots.push_back(a);
  }
  return sum;
}

}  // namespace

AttentionUnrolling attention_unrolling(const Attention& form, const Graph& graph, const AttentionTiles& tiles,
                                       const Target& target, AttentionPart part, KeySplits splits) {
  KernelWriter writer(graph, false);
  ExprEmitter emitter(form.kernel, writer);
  AttentionUnrolling best;
  double least = std::numeric_limits<double>::infinity();
  using Levels = std::span<const AttentionUnrolling>;
  for (const AttentionUnrolling& code :
       tiles.warpgroups ? Levels(kWarpgroupUnrollings) : Levels(kAttentionUnrollings)) {
    const AttentionTiles unrolled_tiles = code.short_tiles ? with_fewer_keys(tiles, target) : tiles;
    const double ms = AttentionEmitter(form, graph, unrolled_tiles, writer, emitter, code, part, splits).expected_ms();
    if (ms >= least) continue;
    least = ms;
    best = code;
    if (ms <= kMost) break;
  }
  return best;
}

double AttentionEmitter::expected_ms() const {
  double ms = kAnyAttention;
  if (!tiles_.tensor_cores)
    ms += kLanes + kScoreOrAccumulatorInLanes * tiles_.thread_rows * (tiles_.thread_keys() + tiles_.thread_columns());
  else if (tiles_.warpgroups)
    ms += kWarpgroups + kWarpgroupKey * tiles_.keys +
          kWarpgroupColumn * std::max(0, std::max(tiles_.head_dim, tiles_.columns) - 128);
  else
    ms += tiles_.warp_keys() * (kMmaOfKeys * tiles_.head_dim + kMmaOfValues * tiles_.columns);
  if (!form_.extra_outputs.empty()) ms += kSecondLoop;
  return ms + ms_of_scores() + ms_of_operands() + ms_of_results();
}

bool AttentionEmitter::recomputes_scores() const {
  return !form_.extra_outputs.empty() && !form_.score_buffer;
}

double AttentionEmitter::ms_of_scores() const {
  const int scores = keys_at_once() * (loop_over_rows() ? 1 : tiles_.thread_rows);
  const auto of_one = [&](const Operations& code) {
    const bool guarded = code.loads > 0 && !whole_keys();
    return kOperation * code.operations + (guarded ? kGuard + kGuardedLoad * code.loads : 0);
  };
  double ms = of_one(operations_of(pool_, {form_.score}, {form_.contraction})) * (recomputes_scores() ? 2 : 1);
  std::vector<ExprId> extra_outputs;
  for (const std::size_t i : form_.extra_outputs) extra_outputs.push_back(form_.kernel.outputs[i].expr);
  ms += of_one(
      operations_of(pool_, extra_outputs, {form_.masked_score, form_.exponential, form_.total, form_.row_maximum}));
  return scores * ms;
}

double AttentionEmitter::ms_of_operands() const {
  constexpr int kElements = 8, kThreads = 128, kMaxUnrolledVectors = 6, kMaxVectorsWithTwoFragments = 2;
  const auto ms_of_operand = [&](ExprId operand, int lines, int places) {
    constexpr double kUnchanged = 1 + kLoad + 1;  // a load without conversion
    if (operations_of(pool_, {operand}, {}).all() <= kUnchanged) return 0.0;
    const int unrolled = tiles_.m16_fragments > 1 ? kMaxVectorsWithTwoFragments : kMaxUnrolledVectors;
    const int most = code_.vectors_at_once > 0 ? code_.vectors_at_once : unrolled;
    return (tiles_.m16_fragments > 1 ? kVectorWithTwoFragments : kVector) *
           std::min(most, (lines * places + kElements * kThreads - 1) / (kElements * kThreads));
  };
  const int copies_of_keys = (tiles_.warpgroups || code_.keys_loaded_once ? 1 : 2) + (recomputes_scores() ? 1 : 0);
  return ms_of_operand(form_.query, tiles_.rows, tiles_.head_dim) +
         copies_of_keys * ms_of_operand(form_.key, tiles_.keys, tiles_.head_dim) +
         ms_of_operand(form_.value, tiles_.keys, tiles_.columns);
}

double AttentionEmitter::ms_of_results() const {
  const bool splits = part_ == AttentionPart::kSplit;
  if (splits && !form_.extra_outputs.empty()) return 0;
  const std::vector<std::size_t> stored = stored_rows();
  std::vector<ExprId> roots;
  for (const std::size_t i : stored) roots.push_back(form_.kernel.outputs[i].expr);
  const int rows = loop_over_result_rows() ? 1 : tiles_.thread_rows;
  const int results = splits                 ? combine_tiles(tiles_).thread_columns()
                      : has_epilogue(stored) ? 4
                                             : rows * tiles_.thread_columns();
  return kResultOperation * results * operations_of(pool_, roots, {form_.result, form_.total, form_.row_maximum}).all();
}

}  // namespace fusec
