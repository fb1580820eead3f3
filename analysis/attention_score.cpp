#include "analysis/attention_score.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

namespace fusec {
namespace {

// --- scales: constants go from the factors to the score, and from the score to the softmax

std::pair<ExprId, double> without_scale(const ExprPool& pool, ExprId factor) {
  double scale = 1;
  for (;;) {
    const ExprNode& n = pool[factor];
    const auto usable = [&](ExprId id) {
      const ExprNode& c = pool[id];
      return c.op == ExprOp::kConstant && is_float(c.type) && std::abs(c.real) > 1e-30 && std::abs(c.real) < 1e30;
    };
    if (n.op == ExprOp::kMul && (usable(n.args[0]) || usable(n.args[1]))) {
      const bool first = usable(n.args[0]);
      scale *= pool[n.args[first ? 0 : 1]].real;
      factor = n.args[first ? 1 : 0];
    } else if (n.op == ExprOp::kDiv && usable(n.args[1])) {
      scale /= pool[n.args[1]].real;
      factor = n.args[0];
    } else {
      return {factor, scale};
    }
  }
}

// `root` with `to` in the place of `from`.
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

// Through selects of -inf, which a positive scale leaves alone.
std::pair<ExprId, double> without_positive_scale(ExprPool& pool, ExprId score) {
  std::vector<std::pair<ExprId, bool>> conditions;  // the condition, and whether it keeps the score
  ExprId id = score;
  double scale = 1;
  for (;;) {
    const ExprNode n = pool[id];
    if (n.op == ExprOp::kSelect && is_bottom_value(pool[n.args[2]])) {
      conditions.push_back({n.args[0], true});
      id = n.args[1];
    } else if (n.op == ExprOp::kSelect && is_bottom_value(pool[n.args[1]])) {
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

// --- limits of keys: causal masks and windows, as comparisons of indices

// What must not be negative for the condition to hold, where it compares indices.
std::optional<IndexExpr> not_negative(const ExprPool& pool, const ExprNode& n) {
  const auto whole = [&](ExprId id) -> std::optional<IndexExpr> {
    const ExprNode* e = &pool[id];
    while (e->op == ExprOp::kConvert && !is_float(e->type) && e->type != ScalarType::kBool) e = &pool[e->args[0]];
    if (e->op == ExprOp::kIndex) return e->indices[0];
    if (e->op == ExprOp::kConstant && !is_float(e->type)) return IndexExpr(e->integer);
    return std::nullopt;
  };
  if (n.op != ExprOp::kGe && n.op != ExprOp::kGt && n.op != ExprOp::kLe && n.op != ExprOp::kLt) return std::nullopt;
  const auto a = whole(n.args[0]), b = whole(n.args[1]);
  if (!a || !b) return std::nullopt;
  switch (n.op) {
    case ExprOp::kGe:
      return *a - *b;
    case ExprOp::kGt:
      return *a - *b - 1;
    case ExprOp::kLe:
      return *b - *a;
    default:
      return *b - *a - 1;
  }
}

// margin >= 0 as a limit on the key, if it is one.
bool take_limit(Attention& form, const IndexExpr& margin) {
  const Variable key{Variable::Kind::kAxis, form.keys[0]};
  const auto by_key = coefficient_of(margin, key);
  if (!by_key || (*by_key != 1 && *by_key != -1)) return false;
  const IndexExpr rest = margin - IndexExpr::axis(key.id) * *by_key;
  const IndexExpr limit = simplify(*by_key == -1 ? rest : -rest, form.kernel.pool.bounds());
  for (const Variable v : variables_of(limit)) {
    if (v.kind == Variable::Kind::kValue) return false;
    if (v.kind != Variable::Kind::kAxis || std::find(form.batch.begin(), form.batch.end(), v.id) != form.batch.end())
      continue;
    const auto by_row = coefficient_of(limit, v);
    if (form.rows.size() != 1 || v.id != form.rows[0] || !by_row || *by_row < 0) return false;
  }
  std::optional<IndexExpr>& slot = *by_key == -1 ? form.last_key : form.first_key;
  slot = !slot ? limit : *by_key == -1 ? min(*slot, limit) : max(*slot, limit);
  return true;
}

}  // namespace

bool is_zero(const ExprNode& n) {
  return n.op == ExprOp::kConstant && is_float(n.type) && n.real == 0;
}

bool is_bottom_value(const ExprNode& n) {
  return n.op == ExprOp::kConstant && is_float(n.type) && n.real == -std::numeric_limits<double>::infinity();
}

std::optional<DType> tensor_core_grid(const ExprPool& pool, ExprId factor) {
  const ExprNode& n = pool[factor];
  const bool narrow = n.dtype == DType::kFloat16 || n.dtype == DType::kBFloat16;
  if ((n.op == ExprOp::kLoad || n.op == ExprOp::kRound) && narrow) return n.dtype;
  if (n.op == ExprOp::kSelect && is_zero(pool[n.args[2]])) return tensor_core_grid(pool, n.args[1]);
  return std::nullopt;
}

void take_out_scales(Attention& form) {
  ExprPool& pool = form.kernel.pool;
  double scale = 1;
  const bool exact = form.kernel.exact_steps;
  for (ExprId* factor : {&form.query, &form.key}) {
    const auto [inner, by] = without_scale(pool, *factor);
    if (exact || (tensor_core_grid(pool, *factor) && !tensor_core_grid(pool, inner))) continue;
    *factor = inner;
    scale *= by;
  }
  if (scale != 1) {
    const ScalarType type = pool[form.product].type;
    const ExprId bare = pool.reduce(Reduction::kSum, form.depth, pool.binary(ExprOp::kMul, form.query, form.key));
    const ExprId scaled = pool.binary(ExprOp::kMul, bare, pool.constant(type, scale));
    form.score = replaced(pool, form.score, form.product, scaled);
    form.product = bare;
  }
  if (!exact) {
    const auto [score, by] = without_positive_scale(pool, form.score);
    form.score = score;
    form.score_scale = by;
  }
}

void find_key_limits(Attention& form) {
  ExprPool& pool = form.kernel.pool;
  if (form.keys.size() != 1) return;
  std::vector<ExprId> masks;  // what must hold besides, outermost first
  ExprId score = form.score;
  for (;;) {
    const ExprNode n = pool[score];
    if (n.op != ExprOp::kSelect) break;
    const bool keeps = is_bottom_value(pool[n.args[2]]);
    if (!keeps && !is_bottom_value(pool[n.args[1]])) break;
    std::vector<ExprId> conditions{n.args[0]};
    while (!conditions.empty()) {
      const ExprId id = conditions.back();
      conditions.pop_back();
      const ExprNode c = pool[id];
      if (keeps && c.op == ExprOp::kAnd) {
        conditions.insert(conditions.end(), {c.args[1], c.args[0]});
        continue;
      }
      auto margin = not_negative(pool, c);
      if (margin && !keeps) margin = -*margin - 1;
      if (!margin || !take_limit(form, *margin)) masks.push_back(keeps ? id : pool.unary(ExprOp::kNot, id));
    }
    score = n.args[keeps ? 1 : 2];
  }
  const ExprId bottom = pool.constant(pool[score].type, -std::numeric_limits<double>::infinity());
  for (auto mask = masks.rbegin(); mask != masks.rend(); ++mask) score = pool.select(*mask, score, bottom);
  form.score = score;
}

}  // namespace fusec
