#include "schedule/attention/attention_score.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

namespace fusec {
namespace {

// --- scales: constants move from the operands to the score, and from the score to the softmax

std::pair<ExprId, double> without_scale(const ExprPool& pool, ExprId operand_expr) {
  double scale = 1;
  for (;;) {
    const ExprNode& n = pool[operand_expr];
    const auto usable = [&](ExprId id) {
      const ExprNode& c = pool[id];
      return c.op == ExprOp::kConstant && is_float(c.type) && std::abs(c.real) > 1e-30 && std::abs(c.real) < 1e30;
    };
    if (n.op == ExprOp::kMul && (usable(n.args[0]) || usable(n.args[1]))) {
      const bool first = usable(n.args[0]);
      scale *= pool[n.args[first ? 0 : 1]].real;
      operand_expr = n.args[first ? 1 : 0];
    } else if (n.op == ExprOp::kDiv && usable(n.args[1])) {
      scale /= pool[n.args[1]].real;
      operand_expr = n.args[0];
    } else {
      return {operand_expr, scale};
    }
  }
}

// Returns `root` with `from` replaced by `to`.
ExprId replaced(ExprPool& pool, ExprId root, ExprId from, ExprId to) {
  std::map<ExprId, ExprId> now{{from, to}};
  for (const ExprId id : reachable(pool, std::span(&root, 1))) {
    if (now.contains(id)) continue;
    ExprNode n = pool[id];
    bool changed = false;
    for (ExprId& a : n.args)
      if (a != kNoExpr && now.at(a) != a) {
        a = now.at(a);
        changed = true;
      }
    now[id] = changed && n.op != ExprOp::kReduce ? pool.add(std::move(n)) : id;
  }
  return now.at(root);
}

// Moves a positive scale out of the score, also through selects of -inf, which it does not change.
std::pair<ExprId, double> without_positive_scale(ExprPool& pool, ExprId score) {
  std::vector<std::pair<ExprId, bool>> conditions;  // condition, and whether it keeps the score
  ExprId id = score;
  double scale = 1;
  for (;;) {
    const ExprNode n = pool[id];
    if (n.op == ExprOp::kSelect && is_negative_infinity(pool[n.args[2]])) {
      conditions.push_back({n.args[0], true});
      id = n.args[1];
    } else if (n.op == ExprOp::kSelect && is_negative_infinity(pool[n.args[1]])) {
      conditions.push_back({n.args[0], false});
      id = n.args[2];
    } else if (const auto [inner, by] = without_scale(pool, id); inner != id && by > 0) {
      id = inner;
      scale *= by;
    } else {
      break;
    }
  }
  const ExprId bottom = pool.constant(pool[id].type, -std::numeric_limits<double>::infinity());
  for (auto it = conditions.rbegin(); it != conditions.rend(); ++it)
    id = it->second ? pool.select(it->first, id, bottom) : pool.select(it->first, bottom, id);
  return {id, scale};
}

// --- key limits: causal masks and windows as comparisons of indices

// Returns a sum or difference of indices and constants that does not overflow int32.
std::optional<IndexExpr> whole(const ExprPool& pool, ExprId id) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  const auto narrow = [&](const IndexExpr& e) {
    const Range range = range_of(e, pool.bounds());
    return range.min >= -kMost && range.max <= kMost ? std::optional(e) : std::nullopt;
  };
  const ExprNode& n = pool[id];
  if (n.type != ScalarType::kInt32 && n.type != ScalarType::kInt64) return std::nullopt;
  if (n.op == ExprOp::kIndex) return narrow(n.indices[0]);
  if (n.op == ExprOp::kConstant) return narrow(IndexExpr(n.integer));
  if (n.op == ExprOp::kConvert) return whole(pool, n.args[0]);
  if (n.op != ExprOp::kAdd && n.op != ExprOp::kSub) return std::nullopt;
  const auto a = whole(pool, n.args[0]), b = whole(pool, n.args[1]);
  if (!a || !b) return std::nullopt;
  return narrow(n.op == ExprOp::kAdd ? *a + *b : *a - *b);
}

// Returns what must be >= 0 for the comparison to hold (or not to hold, if `holds` is false). A comparison of an
// absolute value gives two margins.
std::vector<IndexExpr> not_negative(const ExprPool& pool, const ExprNode& n, bool holds) {
  if (n.op != ExprOp::kGe && n.op != ExprOp::kGt && n.op != ExprOp::kLe && n.op != ExprOp::kLt) return {};
  const bool first_less = (n.op == ExprOp::kLe || n.op == ExprOp::kLt) == holds;
  const bool equal = (n.op == ExprOp::kGe || n.op == ExprOp::kLe) == holds;
  const ExprId less = n.args[first_less ? 0 : 1];
  const auto more = whole(pool, n.args[first_less ? 1 : 0]);
  const bool distance = pool[less].op == ExprOp::kAbs;
  const auto lesser = whole(pool, distance ? pool[less].args[0] : less);
  if (!more || !lesser) return {};
  const IndexExpr most = *more - (equal ? 0 : 1);
  if (distance) return {most - *lesser, most + *lesser};
  return {most - *lesser};
}

// Returns margin >= 0 as a limit on the key: the member of Attention, and the limit.
using KeyLimit = std::pair<std::optional<IndexExpr> Attention::*, IndexExpr>;
std::optional<KeyLimit> limit_of(const Attention& form, const IndexExpr& margin) {
  const Variable key{Variable::Kind::kAxis, form.keys[0]};
  const auto by_key = coefficient_of(margin, key);
  if (!by_key || (*by_key != 1 && *by_key != -1)) return std::nullopt;
  const IndexExpr rest = margin - IndexExpr::axis(key.id) * *by_key;
  const IndexExpr limit = simplify(*by_key == -1 ? rest : -rest, form.kernel.pool.bounds());
  for (const Variable v : variables_of(limit)) {
    if (v.kind == Variable::Kind::kValue) return std::nullopt;
    if (v.kind != Variable::Kind::kAxis || std::find(form.batch.begin(), form.batch.end(), v.id) != form.batch.end())
      continue;
    const auto by_row = coefficient_of(limit, v);
    if (form.rows.size() != 1 || v.id != form.rows[0] || !by_row || *by_row < 0) return std::nullopt;
  }
  return KeyLimit{*by_key == -1 ? &Attention::last_key : &Attention::first_key, limit};
}

// Stores all margins >= 0 as limits on the key; stores none and returns false if some margin is not a limit.
bool take_limits(Attention& form, const std::vector<IndexExpr>& margins) {
  std::vector<KeyLimit> limits;
  for (const IndexExpr& margin : margins) {
    const auto limit = limit_of(form, margin);
    if (!limit) return false;
    limits.push_back(*limit);
  }
  for (const auto& [slot, limit] : limits) {
    std::optional<IndexExpr>& now = form.*slot;
    now = !now ? limit : slot == &Attention::last_key ? min(*now, limit) : max(*now, limit);
  }
  return !limits.empty();
}

}  // namespace

bool is_zero(const ExprNode& n) {
  return n.op == ExprOp::kConstant && is_float(n.type) && n.real == 0;
}

bool is_negative_infinity(const ExprNode& n) {
  return n.op == ExprOp::kConstant && is_float(n.type) && n.real == -std::numeric_limits<double>::infinity();
}

std::optional<DType> tensor_core_grid(const ExprPool& pool, ExprId operand_expr) {
  const ExprNode& n = pool[operand_expr];
  const bool narrow = n.dtype == DType::kFloat16 || n.dtype == DType::kBFloat16;
  if ((n.op == ExprOp::kLoad || n.op == ExprOp::kRound) && narrow) return n.dtype;
  if (n.op == ExprOp::kSelect && is_zero(pool[n.args[2]])) return tensor_core_grid(pool, n.args[1]);
  return std::nullopt;
}

void hoist_score_scale(Attention& form) {
  ExprPool& pool = form.kernel.pool;
  double scale = 1;
  const bool exact = form.kernel.exact_steps;
  for (ExprId* operand_expr : {&form.query, &form.key}) {
    const auto [inner, by] = without_scale(pool, *operand_expr);
    if (exact || (tensor_core_grid(pool, *operand_expr) && !tensor_core_grid(pool, inner))) continue;
    *operand_expr = inner;
    scale *= by;
  }
  if (scale != 1) {
    const ScalarType type = pool[form.contraction].type;
    const ExprId bare = pool.reduce(Reduction::kSum, form.head_dim, pool.binary(ExprOp::kMul, form.query, form.key));
    const ExprId scaled = pool.binary(ExprOp::kMul, bare, pool.constant(type, scale));
    form.score = replaced(pool, form.score, form.contraction, scaled);
    form.contraction = bare;
  }
  if (!exact) {
    const auto [score, by] = without_positive_scale(pool, form.score);
    form.score = score;
    form.score_scale = by;
  }
}

void find_key_range(Attention& form) {
  ExprPool& pool = form.kernel.pool;
  if (form.keys.size() != 1) return;
  std::vector<ExprId> masks;  // conditions that remain in the score, outermost first
  ExprId score = form.score;
  for (;;) {
    const ExprNode n = pool[score];
    if (n.op != ExprOp::kSelect) break;
    const bool keeps = is_negative_infinity(pool[n.args[2]]);
    if (!keeps && !is_negative_infinity(pool[n.args[1]])) break;
    std::vector<std::pair<ExprId, bool>> conditions{{n.args[0], keeps}};  // condition, and whether it must hold
    while (!conditions.empty()) {
      const auto [id, holds] = conditions.back();
      conditions.pop_back();
      const ExprNode c = pool[id];
      if (c.op == ExprOp::kNot)
        conditions.emplace_back(c.args[0], !holds);
      else if (c.op == (holds ? ExprOp::kAnd : ExprOp::kOr))
        conditions.insert(conditions.end(), {{c.args[1], holds}, {c.args[0], holds}});
      else if (!take_limits(form, not_negative(pool, c, holds)))
        masks.push_back(holds ? id : pool.unary(ExprOp::kNot, id));
    }
    score = n.args[keeps ? 1 : 2];
  }
  const ExprId bottom = pool.constant(pool[score].type, -std::numeric_limits<double>::infinity());
  for (auto mask = masks.rbegin(); mask != masks.rend(); ++mask) score = pool.select(*mask, score, bottom);
  form.score = score;
}

}  // namespace fusec
