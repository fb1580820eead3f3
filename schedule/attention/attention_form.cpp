#include "schedule/attention/attention_form.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "analysis/kernel/copy_expr.h"
#include "ir/type.h"
#include "schedule/attention/attention_outputs.h"
#include "schedule/attention/attention_score.h"
#include "schedule/attention/peel_sinks.h"

namespace fusec {
namespace {

using Axes = std::vector<std::uint32_t>;

// Every attention has at least three sums and a maximum.
bool may_be_attention(const Kernel& kernel) {
  int sums = 0, maxima = 0;
  for (const ExprId id : reachable(kernel.pool, roots_of(kernel))) {
    const ExprNode& n = kernel.pool[id];
    if (n.op != ExprOp::kReduce) continue;
    sums += n.reduction == Reduction::kSum ? 1 : 0;
    maxima += n.reduction == Reduction::kMax ? 1 : 0;
  }
  return sums >= 3 && maxima >= 1;
}

// Lets reductions of the same nesting depth and extent share an axis, so that equal terms of a softmax become one
// expression. Returns nothing if an axis belongs to reductions of both depths.
std::optional<Kernel> with_softmax_axes(const Kernel& kernel) {
  const ExprPool& old = kernel.pool;
  const auto depends = dependences(old);
  const Axes& outputs = kernel.outputs[0].axes;
  bool mixed = false;
  Kernel shared = change_axes(kernel, [&](ExprPool& pool, ExprCopier& copier) {
    AxisChange change = same_axes(kernel, pool);
    std::map<std::tuple<bool, std::size_t, IndexExpr>, std::uint32_t> made;
    std::map<std::uint32_t, bool> depth_in;
    for (const ExprId id : reachable(old, roots_of(kernel))) {
      const ExprNode& n = old[id];
      if (n.op != ExprOp::kReduce) continue;
      const bool nested = !std::ranges::all_of(depends[id], [&](std::uint32_t a) { return contains(outputs, a); });
      for (std::size_t k = 0; k < n.axes.size(); ++k) {
        const auto [known, first] = depth_in.try_emplace(n.axes[k], nested);
        mixed = mixed || known->second != nested;
        if (!first) continue;
        const auto [it, fresh] = made.try_emplace({nested, k, old.extent(n.axes[k])}, 0);
        if (fresh) it->second = pool.new_axis(old.extent(n.axes[k]));
        copier.axis[n.axes[k]] = IndexExpr::axis(it->second);
      }
    }
    return change;
  });
  if (mixed) return std::nullopt;
  return shared;
}

// Splits output axis `which` into two, the second of extent `inner`.
Kernel split_axis(const Kernel& kernel, std::size_t which, std::int64_t inner) {
  return change_axes(kernel, [&](ExprPool& pool) {
    AxisChange change;
    const Axes& axes = kernel.outputs[0].axes;
    for (std::size_t i = 0; i < axes.size(); ++i) {
      const IndexExpr extent = kernel.pool.extent(axes[i]);
      if (i != which) {
        change.new_axes.push_back(pool.new_axis(extent));
        change.values.push_back(IndexExpr::axis(change.new_axes.back()));
        continue;
      }
      const std::uint32_t a = pool.new_axis(simplify(floor_div(extent, inner), pool.bounds()));
      const std::uint32_t b = pool.new_axis(inner);
      change.new_axes.insert(change.new_axes.end(), {a, b});
      change.values.push_back(IndexExpr::axis(a) * inner + IndexExpr::axis(b));
    }
    return change;
  });
}

bool has_more_digits(DType a, DType b) {
  return a == DType::kFloat16 && b == DType::kBFloat16;
}

class Recognizer {
 public:
  explicit Recognizer(Kernel kernel) : depends_(dependences(kernel.pool)) {
    found_.kernel = std::move(kernel);
    const ExprPool& pool = found_.kernel.pool;
    reduces_.assign(pool.size(), 0);
    for (ExprId id = 0; id < pool.size(); ++id) {
      reduces_[id] = pool[id].op == ExprOp::kReduce;
      for (const ExprId a : pool[id].args)
        if (a != kNoExpr) reduces_[id] |= reduces_[a];
    }
  }

  // Returns "" if everything was found.
  std::string_view recognize() {
    if (const auto why = find_result(); !why.empty()) return why;
    if (const auto why = peel_weight(); !why.empty()) return why;
    if (const auto why = find_row_reductions(); !why.empty()) return why;
    if (const auto why = find_contraction(); !why.empty()) return why;
    if (const auto why = check_steps(); !why.empty()) return why;
    if (found_.shift != kNoExpr) {
      ExprPool& pool = found_.kernel.pool;
      found_.shrink = pool.unary(ExprOp::kExp, pool.binary(ExprOp::kSub, found_.row_maximum, found_.shift));
    }
    hoist_score_scale(found_);
    depends_ = dependences(found_.kernel.pool);
    assign_axes();
    return "";
  }

  // Returns a batch axis that the operands use in parts: head and column, or key head and query head of its group.
  std::optional<std::pair<std::size_t, std::int64_t>> axis_in_parts() const {
    const ExprPool& pool = found_.kernel.pool;
    const Axes& outputs = found_.kernel.outputs[0].axes;
    std::optional<std::pair<std::size_t, std::int64_t>> found;
    for (const ExprId id : reachable(pool, std::vector<ExprId>{found_.query, found_.key, found_.value})) {
      if (pool[id].op != ExprOp::kLoad) continue;
      for (const IndexExpr& index : pool[id].indices)
        rewrite_atoms(index, [&](IndexAtom::Kind kind, const IndexExpr& a, const IndexExpr& b) {
          const auto v = a.as_variable();
          const auto inner = b.as_constant();
          const bool part = kind == IndexAtom::Kind::kFloorDiv || kind == IndexAtom::Kind::kMod;
          if (!found && part && v && inner && v->kind == Variable::Kind::kAxis && contains(found_.batch, v->id)) {
            const auto extent = pool.extent(v->id).as_constant();
            if (*inner > 1 && extent && *extent % *inner == 0 && *extent > *inner) {
              const auto at = std::find(outputs.begin(), outputs.end(), v->id);
              found = std::pair{static_cast<std::size_t>(at - outputs.begin()), *inner};
            }
          }
          return IndexExpr(0);
        });
    }
    return found;
  }

  const Kernel& kernel() const { return found_.kernel; }

  std::string_view finish(Attention& attention) {
    if (const auto why = classify_outputs(found_); !why.empty()) return why;
    if (const auto why = check_heads(); !why.empty()) return why;
    choose_rows();
    find_key_range(found_);
    found_.tensor_dtype = tensor_dtype();
    if (!found_.tensor_dtype) find_score_buffer(found_);
    attention = std::move(found_);
    return "";
  }

 private:
  const ExprNode& at(ExprId id) const { return found_.kernel.pool[id]; }
  bool on_keys(ExprId id) const {
    return std::ranges::any_of(depends_[id], [&](std::uint32_t a) { return contains(found_.keys, a); });
  }

  // Finds the weighted sum of values among the outermost reductions. Others may be a row's maximum or sum that is an
  // output.
  std::string_view find_result() {
    const ExprPool& pool = found_.kernel.pool;
    std::vector<std::uint8_t> seen(pool.size(), 0);
    std::vector<ExprId> stack = roots_of(found_.kernel);
    while (!stack.empty()) {
      const ExprId id = stack.back();
      stack.pop_back();
      if (std::exchange(seen[id], 1)) continue;
      const ExprNode& n = pool[id];
      if (n.op != ExprOp::kReduce) {
        for (const ExprId a : n.args)
          if (a != kNoExpr) stack.push_back(a);
        continue;
      }
      const ExprNode& body = pool[n.args[0]];
      if (n.reduction != Reduction::kSum || body.op != ExprOp::kMul) continue;
      const bool left = reduces_[body.args[0]], right = reduces_[body.args[1]];
      if (left == right) continue;
      if (found_.result != kNoExpr) return "it holds more than one weighted sum";
      found_.result = id;
      weight_ = body.args[left ? 0 : 1];
      found_.value = body.args[left ? 1 : 0];
    }
    if (found_.result == kNoExpr) return "it holds no sum of weighted values";
    found_.keys = at(found_.result).axes;
    return "";
  }

  // Follows linear steps from the weight down to exp(score - maximum).
  std::string_view peel_weight() {
    constexpr std::string_view kNoSoftmax = "its weights are no softmax of scores";
    ExprId id = weight_;
    for (;;) {
      const ExprNode& n = at(id);
      if (n.op == ExprOp::kExp) break;
      switch (n.op) {
        case ExprOp::kRound:
          rounded_ = n.dtype;
          id = n.args[0];
          break;
        case ExprOp::kMul: {
          const bool first = on_keys(n.args[0]) && (!on_keys(n.args[1]) || !reduces_[n.args[1]]);
          add_step(WeightStep::Kind::kTimes, n.args[first ? 1 : 0]);
          id = n.args[first ? 0 : 1];
          break;
        }
        case ExprOp::kDiv:
          add_step(WeightStep::Kind::kOver, n.args[1]);
          id = n.args[0];
          break;
        case ExprOp::kSelect: {
          const bool where = is_zero(at(n.args[2]));
          if (!where && !is_zero(at(n.args[1]))) return kNoSoftmax;
          add_step(where ? WeightStep::Kind::kWhere : WeightStep::Kind::kWhereNot, n.args[0]);
          id = n.args[where ? 1 : 2];
          break;
        }
        default:
          return kNoSoftmax;
      }
    }
    found_.exponential = id;
    const ExprNode& shifted = at(at(id).args[0]);
    if (shifted.op != ExprOp::kSub) return kNoSoftmax;
    found_.score = found_.masked_score = shifted.args[0];
    found_.row_maximum = shifted.args[1];
    found_.empty_rows_are_nan = true;
    if (const ExprNode& guard = at(found_.row_maximum); guard.op == ExprOp::kSelect) {
      const ExprNode& test = at(guard.args[0]);
      if (test.op != ExprOp::kEq || !is_zero(at(guard.args[1]))) return kNoSoftmax;
      found_.row_maximum = guard.args[2];
      const bool first = test.args[0] == found_.row_maximum;
      if (test.args[first ? 0 : 1] != found_.row_maximum || !is_negative_infinity(at(test.args[first ? 1 : 0])))
        return kNoSoftmax;
      found_.empty_rows_are_nan = false;
    }
    take_sink();
    const ExprNode& row_maximum = at(found_.row_maximum);
    if (row_maximum.op != ExprOp::kReduce || row_maximum.reduction != Reduction::kMax ||
        row_maximum.axes != found_.keys || row_maximum.args[0] != found_.score)
      return kNoSoftmax;
    return "";
  }

  void take_sink() {
    const ExprNode& n = at(found_.row_maximum);
    if (n.op != ExprOp::kMax) return;
    const bool first = reduces_[n.args[0]];
    if (first == static_cast<bool>(reduces_[n.args[1]]) || on_keys(n.args[first ? 1 : 0])) return;
    found_.shift = found_.row_maximum;
    found_.row_maximum = n.args[first ? 0 : 1];
    found_.empty_rows_are_nan = false;
  }

  void add_step(WeightStep::Kind kind, ExprId operand) {
    (on_keys(operand) ? found_.key_weight_steps : found_.row_weight_steps).push_back({kind, operand});
  }

  // Assigns every other reduction of the kernel to one that the online softmax keeps.
  std::string_view find_row_reductions() {
    for (const ExprId id : reachable(found_.kernel.pool, roots_of(found_.kernel))) {
      const ExprNode& n = at(id);
      if (n.op != ExprOp::kReduce || id == found_.result || id == found_.row_maximum) continue;
      const ExprNode& body = at(n.args[0]);
      if (n.axes != found_.keys) {
        if (found_.contraction != kNoExpr) return "its scores hold more than one product";
        found_.contraction = id;
      } else if (n.reduction == Reduction::kSum && n.args[0] == found_.exponential) {
        found_.total = id;
      } else if (n.reduction == Reduction::kSum && is_shifted(body)) {
        found_.shifted_total = id;
      } else if (n.reduction == Reduction::kAny && is_above_bottom(body)) {
        found_.some_key.push_back(id);
      } else if (n.reduction == Reduction::kAll && is_bottom(body)) {
        found_.no_key.push_back(id);
      } else {
        return "it holds a reduction over keys beside the softmax's";
      }
    }
    if (found_.contraction == kNoExpr) return "its scores hold no product";
    return "";
  }

  // Matches exp(score - where(isinf(maximum), 0, maximum)).
  bool is_shifted(const ExprNode& n) const {
    if (n.op != ExprOp::kExp || found_.shift != kNoExpr) return false;
    const ExprNode& less = at(n.args[0]);
    if (less.op != ExprOp::kSub || less.args[0] != found_.masked_score) return false;
    const ExprNode& shift = at(less.args[1]);
    return shift.op == ExprOp::kSelect && at(shift.args[0]).op == ExprOp::kIsInf &&
           at(shift.args[0]).args[0] == found_.row_maximum && is_zero(at(shift.args[1])) &&
           shift.args[2] == found_.row_maximum;
  }

  bool is_bottom_test(const ExprNode& n, ExprOp op) const {
    return n.op == op && ((n.args[0] == found_.score && is_negative_infinity(at(n.args[1]))) ||
                          (n.args[1] == found_.score && is_negative_infinity(at(n.args[0]))));
  }
  bool is_bottom(const ExprNode& n) const { return is_bottom_test(n, ExprOp::kEq); }
  bool is_above_bottom(const ExprNode& n) const {
    return is_bottom_test(n, ExprOp::kNe) || (n.op == ExprOp::kNot && is_bottom(at(n.args[0])));
  }

  std::string_view find_contraction() {
    const ExprNode& n = at(found_.contraction);
    if (n.reduction != Reduction::kSum || at(n.args[0]).op != ExprOp::kMul)
      return "its scores are made of a reduction that is no product";
    const ExprNode& body = at(n.args[0]);
    if (reduces_[n.args[0]]) return "a factor of its scores holds a reduction";
    found_.head_dim = n.axes;
    const bool left_is_key = on_keys(body.args[0]);
    if (left_is_key == on_keys(body.args[1])) return "one factor of its scores must run along the keys, and one not";
    found_.query = body.args[left_is_key ? 1 : 0];
    found_.key = body.args[left_is_key ? 0 : 1];
    return "";
  }

  // An operand per key must be made of indices and loads, since it is recomputed for each weight.
  std::string_view check_steps() const {
    for (const WeightStep& step : found_.key_weight_steps)
      if (reduces_[step.operand]) return "a step between softmax and values holds a reduction";
    return "";
  }

  // --- axes

  void assign_axes() {
    for (Axes* axes : {&found_.batch, &found_.rows, &found_.columns, &found_.unit}) axes->clear();
    std::vector<ExprId> of_weight{found_.score, found_.query, found_.key};
    for (const auto* steps : {&found_.row_weight_steps, &found_.key_weight_steps})
      for (const WeightStep& step : *steps) of_weight.push_back(step.operand);
    for (const std::uint32_t a : found_.kernel.outputs[0].axes) {
      const bool in_value = contains(depends_[found_.value], a);
      const bool in_weight = std::ranges::any_of(of_weight, [&](ExprId id) { return contains(depends_[id], a); });
      if (found_.kernel.pool.extent(a).is(1))
        found_.unit.push_back(a);
      else if (in_value && !in_weight)
        found_.columns.push_back(a);
      else if (!in_value && !contains(depends_[found_.key], a))
        found_.rows.push_back(a);
      else
        found_.batch.push_back(a);
    }
  }

  std::string_view check_heads() {
    const ExprPool& pool = found_.kernel.pool;
    const auto fits = [&](const Axes& axes) {
      const auto count = point_count(pool, axes).as_constant();
      return count && *count >= 1 && *count <= kMaxHeadSize;
    };
    while (!fits(found_.columns) && found_.columns.size() > 1) {
      found_.batch.push_back(found_.columns.front());
      found_.columns.erase(found_.columns.begin());
    }
    if (!fits(found_.columns) || !fits(found_.head_dim)) return "its head size is no constant of at most 256";
    return "";
  }

  // Chooses the rows of a tile: neighbours along the longest axis. If that is short (decoding), the other row axes join
  // it, so that query heads with a common key head read the key once.
  void choose_rows() {
    if (found_.rows.empty()) return;
    const ExprPool& pool = found_.kernel.pool;
    const auto length = [&](std::uint32_t a) { return value_at_hint(pool.extent(a), pool.bounds().symbols); };
    std::uint32_t main = found_.rows[0];
    for (const std::uint32_t a : found_.rows)
      if (length(a) >= length(main)) main = a;
    std::erase(found_.rows, main);
    if (length(main) >= kManyRows) {
      found_.batch.insert(found_.batch.end(), found_.rows.begin(), found_.rows.end());
      found_.rows.clear();
    }
    found_.rows.push_back(main);
  }

  // --- tensor cores

  // Weights may be rounded to `dtype` if the graph rounds them, or the result, to a dtype that is no finer.
  bool weights_may_have(DType dtype) const {
    const auto coarse = [&](DType to) { return is_float(to) && bits(to) <= 16 && !has_more_digits(to, dtype); };
    if (rounded_ && coarse(*rounded_)) return true;
    bool rounded = true;
    for (const ExprId id : reachable(found_.kernel.pool, roots_of(found_.kernel))) {
      const ExprNode& n = at(id);
      if (std::find(n.args.begin(), n.args.end(), found_.result) != n.args.end())
        rounded = rounded && n.op == ExprOp::kRound && coarse(n.dtype);
    }
    return std::ranges::all_of(found_.kernel.outputs, [&](const KernelOutput& o) {
      return o.axes != found_.kernel.outputs[0].axes || coarse(o.type.dtype) || (rounded && o.expr != found_.result);
    });
  }

  std::optional<DType> tensor_dtype() const {
    const auto query = tensor_core_grid(found_.kernel.pool, found_.query);
    if (!query || tensor_core_grid(found_.kernel.pool, found_.key) != query ||
        tensor_core_grid(found_.kernel.pool, found_.value) != query || !weights_may_have(*query) ||
        at(found_.contraction).type != ScalarType::kFloat32 || at(found_.result).type != ScalarType::kFloat32)
      return std::nullopt;
    return query;
  }

  Dependences depends_;
  std::vector<std::uint8_t> reduces_;  // by expression: is or contains a reduction
  Attention found_;
  ExprId weight_ = kNoExpr;
  std::optional<DType> rounded_;  // dtype that the weights are rounded to
};

}  // namespace

std::int64_t Attention::query_head_size() const {
  return *point_count(kernel.pool, head_dim).as_constant();
}

std::int64_t Attention::value_head_size() const {
  return *point_count(kernel.pool, columns).as_constant();
}

AttentionAnswer find_attention(const Kernel& kernel) {
  if (!may_be_attention(kernel)) return {std::nullopt, ""};
  for (const KernelOutput& output : kernel.outputs) {
    if (bits(output.type.dtype) == 4) return {std::nullopt, "it writes half-byte elements"};
  }
  const std::optional<Kernel> apart = peel_sinks(kernel);
  std::optional<Kernel> shared = with_softmax_axes(apart ? *apart : kernel);
  constexpr int kMostParts = 6;
  for (int parts = 0; shared && parts < kMostParts; ++parts) {
    Recognizer recognizer(std::move(*shared));
    if (const auto why = recognizer.recognize(); !why.empty()) return {std::nullopt, why};
    if (const auto split = recognizer.axis_in_parts()) {
      shared = with_softmax_axes(split_axis(recognizer.kernel(), split->first, split->second));
      continue;
    }
    Attention attention;
    if (const auto why = recognizer.finish(attention); !why.empty()) return {std::nullopt, why};
    return {std::move(attention), ""};
  }
  return {std::nullopt, "its reductions nest in no way that is known"};
}

}  // namespace fusec
