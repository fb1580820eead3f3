// Recognizes attention from a kernel's expressions, not from an op's name: two products with a softmax between.
//
//   out[.., i, d] = sum over keys j of weight(i, j) * value[.., j, d]
//   weight(i, j)  = exp(score(i, j) - max over j) / sum over j, then linear steps (0 for some rows, a dropout mask);
//                   maximum and sum may include a sink of the row (schedule/attention/peel_sinks)
//   score(i, j)   = any function of sum over e of query[.., i, e] * key[.., j, e], of i, j, and of loads at them
//
// One kernel computes it with an online softmax: it loops over tiles of keys and keeps each row's maximum and sum.
// Everything that multiplies a row's exponentials is applied at the end. The softmax may be one op or primitive ops;
// masks may be loads, index comparisons or absent. A row without keys gives what its formula gives (0 or NaN).
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "analysis/kernel/kernel.h"

namespace fusec {

// A linear step from exp(score - maximum) to the weight.
struct WeightStep {
  enum class Kind : std::uint8_t { kTimes, kOver, kWhere, kWhereNot };  // kWhere: 0 where `operand` is false
  Kind kind = Kind::kTimes;
  ExprId operand = kNoExpr;
};

struct Attention {
  // The kernel found, with shared axes for reductions over the same keys, and with merged axes (head and column) split.
  Kernel kernel;
  // `contraction` is the sum over `head_dim` of query * key.
  ExprId contraction = kNoExpr, query = kNoExpr, key = kNoExpr;
  // The score is score_scale * `score`, and -inf for keys outside [first_key, last_key].
  ExprId score = kNoExpr;
  double score_scale = 1;
  // Over batch axes and the last of `rows`, and non-decreasing along it.
  std::optional<IndexExpr> first_key, last_key;
  ExprId result = kNoExpr, value = kNoExpr;  // `result` is the sum over `keys` of weight * value
  // Reductions of a row: the maximum of its scores, and the sum of its exponentials.
  ExprId row_maximum = kNoExpr, total = kNoExpr;
  // With a sink: weights are exp(score - shift) with shift = max(maximum, sink). `shrink` is exp(maximum - shift), the
  // factor from exp(score - maximum) to the weights.
  ExprId shift = kNoExpr, shrink = kNoExpr;
  // Reductions that test whether some score, or none, of a row is above -inf.
  std::vector<ExprId> some_key, no_key;
  // The total as logsumexp has it: of exponentials that subtract 0 if the maximum is infinite.
  ExprId shifted_total = kNoExpr;
  // The kernel's own nodes for the score and for exp(score - maximum). Extra outputs are made of them.
  ExprId masked_score = kNoExpr, exponential = kNoExpr;
  std::vector<std::size_t> extra_outputs;  // indices of outputs with an element per row and key: weights, scores
  std::vector<std::size_t> row_outputs;    // indices of outputs with an element per row: totals, their logarithms
  // The extra output that holds a row's raw scores until its maximum and sum are known.
  std::optional<std::size_t> score_buffer;
  bool empty_rows_are_nan = false;  // a row with all scores -inf is NaN: the formula subtracts -inf from -inf
  // Steps whose operand is equal for all keys of a row, and steps whose operand depends on the key.
  std::vector<WeightStep> row_weight_steps, key_weight_steps;
  // Axes: `rows` number the queries, `columns` are those of the values, `batch` are common to both, `unit` have extent
  // 1; `keys` and `head_dim` are those of the two products' reductions.
  std::vector<std::uint32_t> batch, rows, columns, unit, keys, head_dim;
  // 16-bit dtype in which query, key, value and weight may be multiplied on tensor cores.
  std::optional<DType> tensor_dtype;

  std::int64_t query_head_size() const;  // elements per head of queries, and of values
  std::int64_t value_head_size() const;
};

inline constexpr std::int64_t kMaxHeadSize = 256;
inline constexpr std::int64_t kManyRows = 64;  // queries along one axis that fill a tile by themselves

struct AttentionAnswer {
  std::optional<Attention> attention;
  std::string_view why_not;  // "" if it does not resemble attention
};

// Fast for kernels that are not attention.
AttentionAnswer find_attention(const Kernel& kernel);

}  // namespace fusec
