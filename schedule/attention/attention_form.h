// Attention, recognized from a kernel's expressions and not from an op's name: two products with a softmax between.
//
//   out[.., i, d] = sum over keys j of weight(i, j) * value[.., j, d]
//   weight(i, j)  = exp(score(i, j) - max over j) / sum over j, and linear steps after it (a row's 0, a dropout mask);
//                   a row's sink may be among what maximum and sum are over (schedule/attention/peel_sinks)
//   score(i, j)   = any function of sum over e of query[.., i, e] * key[.., j, e], of i, j, and of loads at them
//
// One kernel computes it, the scores of a tile of keys at a time, when row maximum and sum are kept while keys stream
// by: what is multiplied with a row's exponentials comes last. The softmax may be one op or its primitives, the masks
// loads, comparisons of indices or absent; rows without any key give what their formula gives (0 or NaN).
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "analysis/kernel/kernel.h"

namespace fusec {

// A linear step from exp(score - greatest) to the weight.
struct WeightStep {
  enum class Kind : std::uint8_t { kTimes, kOver, kWhere, kWhereNot };  // kWhere: 0 where `operand` does not hold
  Kind kind = Kind::kTimes;
  ExprId operand = kNoExpr;
};

struct Attention {
  // As found, but reductions over the same thing share their axes, and an axis that stands for head and column is two.
  Kernel kernel;
  ExprId product = kNoExpr, query = kNoExpr, key = kNoExpr;  // the sum over `depth` of query * key
  // The score is score_scale * `score`, -inf for keys beyond the limits.
  ExprId score = kNoExpr;
  double score_scale = 1;
  std::optional<IndexExpr> first_key, last_key;  // over batch axes and the last of `rows`, never falling along it
  ExprId result = kNoExpr, value = kNoExpr;      // the sum over `keys` of weight * value
  // Reductions of a row: of its scores, of the exponentials, whether some (no) score is above -inf.
  ExprId row_maximum = kNoExpr, total = kNoExpr;
  // Where a sink stands beside the keys: what exponentials are of scores less than, max(greatest, sink), and by what
  // those of scores less the greatest shrink then, exp(greatest - shift).
  ExprId shift = kNoExpr, shrink = kNoExpr;
  std::vector<ExprId> some_key, no_key;
  ExprId shifted_total = kNoExpr;  // as logsumexp has the total: of exponentials less 0 where the greatest is infinite
  // Nodes as the kernel has them: the score, and exp(score - greatest). Outputs beside the first ones are made of them.
  ExprId masked_score = kNoExpr, exponential = kNoExpr;
  std::vector<std::size_t> extra_outputs;  // which outputs have an element for each row and key: weights, scores
  std::vector<std::size_t> row_outputs;    // which have an element for each row: totals, their logarithms
  // One of those beside has room for scores as they are: they wait there for their row's maximum and sum.
  std::optional<std::size_t> score_buffer;
  bool empty_rows_are_nan = false;  // where all scores are -inf: the formula subtracts -inf from -inf
  std::vector<WeightStep> row_weight_steps,
      key_weight_steps;  // whose operands are the same for a row's keys, or are not
  // Output axes: queries number the rows, columns are those of the values; the rest is common to both.
  std::vector<std::uint32_t> batch, rows, columns, unit, keys, depth;
  std::optional<DType> tensor_dtype;  // query, key, value and weight may be multiplied in this 16-bit format

  std::int64_t query_head_size() const;  // head sizes of queries and of values
  std::int64_t value_head_size() const;
};

inline constexpr std::int64_t kMaxHeadSize = 256;

struct AttentionAnswer {
  std::optional<Attention> attention;
  std::string_view why_not;  // "" where it looks like no attention at all
};

// Cheap for kernels that are none.
AttentionAnswer find_attention(const Kernel& kernel);

}  // namespace fusec
