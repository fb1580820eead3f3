#include "analysis/evaluate/evaluate_formula.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "analysis/evaluate/compiled_index.h"
#include "analysis/evaluate/scalar_functions.h"
#include "analysis/kernel/kernel.h"
#include "ir/budget.h"
#include "ir/error.h"

namespace fusec {
namespace {

constexpr std::size_t kLanes = 256;
constexpr std::int64_t kLargestTable = std::int64_t{1} << 24;  // elements
using Lanes = std::vector<Lane>;

class Evaluation {
 public:
  Evaluation(const ExprPool& pool, ExprId root, const std::vector<std::uint32_t>& axes,
             const std::vector<std::int64_t>& symbols, const std::function<const HostTensor&(std::uint32_t)>& tensor_of,
             Precision precision)
      : pool_(pool), root_(root), axes_(axes), symbols_(symbols), precision_(precision) {
    prepare_axes();
    tables_.resize(pool.size());
    find_tables(tensor_of);
    find_dependencies();
    lanes_.resize(pool.size());
    indices_.resize(pool.size());
    tensors_.resize(pool.size());
    for (const ExprId id : order_) {
      count_step();
      lanes_[id].resize(kLanes);
      const ExprNode& n = pool[id];
      if (tables_[id]) indices_[id] = compile(tables_[id]->position());
      if (n.op == ExprOp::kIndex) indices_[id] = compile(with_symbols(n.indices[0]));
      if (n.op != ExprOp::kLoad) continue;
      tensors_[id] = &tensor_of(n.source);
      Shape shape(tensors_[id]->shape.begin(), tensors_[id]->shape.end());
      std::vector<IndexExpr> concrete;
      for (const IndexExpr& e : n.indices) concrete.push_back(with_symbols(e));
      for (const IndexExpr& e : concrete) load_axes_[id].push_back(compile(e));
      indices_[id] = compile(flat_index_of(shape, concrete));
    }
  }

  HostTensor run(DType dtype) {
    std::vector<std::int64_t> shape;
    for (const std::uint32_t a : axes_) shape.push_back(extent(a));
    HostTensor result(held_dtype(dtype, precision_), shape);
    const bool real = is_float(pool_[root_].type);
    if (real != is_float(dtype)) throw InternalError("a formula's type does not fit its output's dtype");
    for_each_element([&](std::int64_t element, Lane value) {
      if (real)
        result.set_real(element, value.real);
      else
        result.set_integer(element, value.whole);
    });
    return result;
  }

  // Returns the number of scalar operations for all elements; the largest integer on overflow.
  std::int64_t steps() const {
    std::int64_t count = steps_of(top_level_);
    for (const std::uint32_t a : axes_) count = saturating_product(count, extent(a));
    for (const std::unique_ptr<Table>& table : tables_)
      if (table && __builtin_add_overflow(count, table->evaluation->steps(), &count))
        return std::numeric_limits<std::int64_t>::max();
    return count;
  }

 private:
  // A reduction that depends on only some output axes is computed once per index of these axes, not once per element:
  // the sum of a softmax once per row, the scores of attention once for all columns.
  struct Table {
    std::vector<std::uint32_t> axes;
    std::vector<std::int64_t> extents;
    std::unique_ptr<Evaluation> evaluation;
    Lanes values;

    IndexExpr position() const {
      IndexExpr flat = 0;
      for (std::size_t i = 0; i < axes.size(); ++i) flat = flat * extents[i] + IndexExpr::axis(axes[i]);
      return flat;
    }
  };

  // Finds the outermost such reductions, and the nodes that remain without them.
  void find_tables(const std::function<const HostTensor&(std::uint32_t)>& tensor_of) {
    const auto depends = dependences(pool_);
    std::vector<std::uint8_t> visited(pool_.size(), 0);
    std::vector<ExprId> stack{root_};
    const auto visit = [&](ExprId id) {
      if (id != kNoExpr && !visited[id]) stack.push_back(id);
    };
    while (!stack.empty()) {
      count_step();
      const ExprId id = stack.back();
      stack.pop_back();
      if (visited[id]) continue;
      visited[id] = 1;
      const ExprNode& n = pool_[id];
      if (n.op == ExprOp::kReduce && id != root_ && make_table(id, depends[id])) {
        tables_[id]->evaluation =
            std::make_unique<Evaluation>(pool_, id, tables_[id]->axes, symbols_, tensor_of, precision_);
        continue;
      }
      for (const ExprId a : n.args) visit(a);
      for (const IndexExpr& e : n.indices)
        for (const Variable v : variables_of(e))
          if (v.kind == Variable::Kind::kValue) visit(v.id);
    }
    for (const ExprId id : reachable(pool_, std::span(&root_, 1)))
      if (visited[id]) order_.push_back(id);
  }

  bool make_table(ExprId id, std::span<const std::uint32_t> depends) {
    std::int64_t spared = 1, size = 1;
    for (const std::uint32_t a : axes_)
      if (!std::ranges::binary_search(depends, a)) spared = saturating_product(spared, extent(a));
    for (const std::uint32_t a : depends) size = saturating_product(size, extent(a));
    if (spared <= 1 || size > kLargestTable) return false;
    tables_[id] = std::make_unique<Table>();
    tables_[id]->axes.assign(depends.begin(), depends.end());
    for (const std::uint32_t a : depends) tables_[id]->extents.push_back(extent(a));
    return true;
  }

  void fill_tables() {
    for (const std::unique_ptr<Table>& table : tables_) {
      count_step();
      if (!table || !table->values.empty()) continue;
      std::int64_t size = 1;
      for (const std::int64_t e : table->extents) size *= e;
      table->values.resize(static_cast<std::size_t>(size));
      table->evaluation->for_each_element(
          [&](std::int64_t element, Lane value) { table->values[static_cast<std::size_t>(element)] = value; });
    }
  }

  // Calls f(position, value) for every element of the output, in row-major order.
  template <class F>
  void for_each_element(F f) {
    fill_tables();
    std::vector<std::int64_t> shape;
    std::int64_t total = 1;
    for (const std::uint32_t a : axes_) {
      count_step();
      shape.push_back(extent(a));
      total *= shape.back();
    }
    output_lanes_.assign(axes_.size(), std::vector<std::int64_t>(kLanes));
    for (std::int64_t begin = 0; begin < total; begin += kLanes) {
      count_step();
      count_ = static_cast<std::size_t>(std::min<std::int64_t>(kLanes, total - begin));
      for (std::size_t lane = 0; lane < count_; ++lane) {
        std::int64_t rest = begin + static_cast<std::int64_t>(lane);
        for (std::size_t a = axes_.size(); a-- > 0; rest /= shape[a]) output_lanes_[a][lane] = rest % shape[a];
      }
      for (const ExprId id : top_level_) compute(id);
      const Lanes& values = lanes_[root_];
      for (std::size_t lane = 0; lane < count_; ++lane) f(begin + static_cast<std::int64_t>(lane), values[lane]);
    }
  }

  static std::int64_t saturating_product(std::int64_t a, std::int64_t b) {
    std::int64_t product;
    return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<std::int64_t>::max() : product;
  }

  // Counts the operations of these nodes. The recursion is as deep as the formula nests reductions.
  std::int64_t steps_of(const std::vector<ExprId>& nodes) const {
    std::int64_t count = 0;
    for (const ExprId id : nodes) {
      count_step();
      std::int64_t mine = 1;
      if (pool_[id].op == ExprOp::kReduce && !tables_[id]) {
        mine = steps_of(body_[id]) + 1;
        for (const std::uint32_t a : pool_[id].axes) mine = saturating_product(mine, extent(a));
      }
      if (__builtin_add_overflow(count, mine, &count)) return std::numeric_limits<std::int64_t>::max();
    }
    return count;
  }

  static IndexExpr flat_index_of(const Shape& shape, const std::vector<IndexExpr>& index) {
    IndexExpr flat = 0;
    for (std::size_t i = 0; i < shape.size(); ++i) flat = flat * shape[i] + index[i];
    return flat;
  }

  IndexExpr with_symbols(const IndexExpr& e) const {
    return substitute(e, [&](Variable v) -> std::optional<IndexExpr> {
      if (v.kind != Variable::Kind::kSymbol) return std::nullopt;
      return IndexExpr(symbols_.at(v.id));
    });
  }

  std::int64_t extent(std::uint32_t axis) const {
    const auto e = with_symbols(pool_.extent(axis)).as_constant();
    if (!e) throw InternalError("the extent of a loop axis depends on an index");
    return *e;
  }

  void prepare_axes() {
    is_output_.assign(pool_.bounds().axes.size(), -1);
    for (std::size_t i = 0; i < axes_.size(); ++i) is_output_[axes_[i]] = static_cast<int>(i);
    axis_value_.assign(pool_.bounds().axes.size(), 0);
    load_axes_.resize(pool_.size());
  }

  // Finds the loop axes that each node depends on, and the nodes that each reduction recomputes at every step.
  void find_dependencies() {
    std::vector<std::vector<std::uint32_t>> needs(pool_.size());
    auto merge = [](std::vector<std::uint32_t>& into, const std::vector<std::uint32_t>& from) {
      std::vector<std::uint32_t> all;
      std::set_union(into.begin(), into.end(), from.begin(), from.end(), std::back_inserter(all));
      into = std::move(all);
    };
    auto merge_index = [&](std::vector<std::uint32_t>& into, const IndexExpr& e) {
      for (const Variable v : variables_of(e)) {
        count_step();
        if (v.kind == Variable::Kind::kAxis && is_output_[v.id] < 0) merge(into, {v.id});
        if (v.kind == Variable::Kind::kValue) merge(into, needs[v.id]);
      }
    };
    for (const ExprId id : order_) {
      count_step();
      const ExprNode& n = pool_[id];
      if (tables_[id]) {
        for (const std::uint32_t a : tables_[id]->axes)
          if (is_output_[a] < 0) merge(needs[id], {a});
        continue;
      }
      for (const ExprId a : n.args)
        if (a != kNoExpr) merge(needs[id], needs[a]);
      for (const IndexExpr& e : n.indices) merge_index(needs[id], e);
      if (n.op == ExprOp::kReduce) {
        std::vector<std::uint32_t> bound = n.axes, left;
        std::sort(bound.begin(), bound.end());
        std::set_difference(needs[id].begin(), needs[id].end(), bound.begin(), bound.end(), std::back_inserter(left));
        needs[id] = std::move(left);
      }
    }
    body_.resize(pool_.size());
    for (const ExprId id : order_)
      if (needs[id].empty()) top_level_.push_back(id);
    // A node belongs to the body of a reduction if it needs one of the reduction's axes and no axis of an inner
    // reduction.
    std::vector<std::vector<std::uint32_t>> available(pool_.size());
    for (auto it = order_.rbegin(); it != order_.rend(); ++it) {
      count_step();
      const ExprNode& n = pool_[*it];
      if (n.op != ExprOp::kReduce || tables_[*it]) continue;
      std::vector<std::uint32_t> bound = n.axes;
      std::sort(bound.begin(), bound.end());
      available[*it] = needs[*it];
      merge(available[*it], bound);
      // The body may also use axes of enclosing loops, through nodes computed at this level.
      const ExprId body = n.args[0];
      for (const ExprId inner : reachable(pool_, std::span(&body, 1))) {
        const auto& need = needs[inner];
        const bool here = std::find_first_of(need.begin(), need.end(), bound.begin(), bound.end()) != need.end();
        const bool known = std::includes(available[*it].begin(), available[*it].end(), need.begin(), need.end());
        if (here && known) body_[*it].push_back(inner);
      }
    }
  }

  CompiledIndex compile(const IndexExpr& e) const { return compile_index(e, is_output_); }

  void evaluate_index(const CompiledIndex& c, std::vector<std::int64_t>& out) const {
    fusec::evaluate_index(c, {count_, output_lanes_, axis_value_, lanes_}, out);
  }

  void load(ExprId id) {
    const ExprNode& n = pool_[id];
    const HostTensor& tensor = *tensors_[id];
    const Lane* guard = n.args[0] == kNoExpr ? nullptr : lanes_[n.args[0]].data();
    std::vector<std::int64_t> flat, axis;
    std::vector<bool> outside(count_, false);
    for (std::size_t d = 0; d < n.indices.size(); ++d) {
      count_step();
      evaluate_index(load_axes_[id][d], axis);
      for (std::size_t i = 0; i < count_; ++i)
        if (axis[i] < 0 || axis[i] >= tensor.shape[d]) outside[i] = true;
    }
    evaluate_index(indices_[id], flat);
    const bool real = is_float(n.type);
    for (std::size_t i = 0; i < count_; ++i) {
      count_step();
      Lane& lane = lanes_[id][i];
      if (guard && !guard[i].whole) {
        if (real)
          lane.real = 0;
        else
          lane.whole = 0;
        continue;
      }
      if (outside[i]) throw InternalError("a formula reads outside its operand: " + to_string(pool_, id));
      if (real)
        lane.real = tensor.real(flat[i]);
      else
        lane.whole = tensor.integer(flat[i]);
    }
  }

  void reduce(ExprId id) {
    const ExprNode& n = pool_[id];
    const ScalarType type = pool_[n.args[0]].type;
    const bool position = n.reduction == Reduction::kArgMax || n.reduction == Reduction::kArgMin;
    Lanes accumulated(count_, reduction_start(n.reduction, type));
    std::vector<std::int64_t> where(count_, 0);
    std::vector<std::int64_t> extents, step;
    std::int64_t total = 1;
    for (const std::uint32_t a : n.axes) {
      count_step();
      extents.push_back(extent(a));
      total *= extents.back();
      axis_value_[a] = 0;
    }
    for (std::int64_t k = 0; k < total; ++k) {
      count_step();
      std::int64_t rest = k;
      for (std::size_t a = n.axes.size(); a-- > 0; rest /= extents[a]) axis_value_[n.axes[a]] = rest % extents[a];
      for (const ExprId inner : body_[id]) compute(inner);
      const Lanes& body = lanes_[n.args[0]];
      for (std::size_t i = 0; i < count_; ++i) {
        if (!position) {
          accumulated[i] = reduction_step(n.reduction, type, accumulated[i], body[i]);
        } else if (k == 0 || better(n.reduction, type, body[i], accumulated[i])) {
          accumulated[i] = body[i];
          where[i] = k;
        }
      }
    }
    for (std::size_t i = 0; i < count_; ++i) {
      count_step();
      if (position)
        lanes_[id][i].whole = where[i];
      else
        lanes_[id][i] = accumulated[i];
      if (rounds_to_float32(n)) lanes_[id][i].real = static_cast<float>(lanes_[id][i].real);
    }
  }

  bool rounds_to_float32(const ExprNode& n) const {
    return n.type == ScalarType::kFloat32 && precision_ == Precision::kDeclared;
  }

  // Returns whether float64 evaluation skips this rounding.
  bool is_left_out(const ExprNode& n) const {
    return n.op == ExprOp::kRound && held_dtype(n.dtype, precision_) != n.dtype &&
           pool_[n.args[0]].op != ExprOp::kConstant;
  }

  void look_up(ExprId id) {
    std::vector<std::int64_t> at;
    evaluate_index(indices_[id], at);
    for (std::size_t i = 0; i < count_; ++i) lanes_[id][i] = tables_[id]->values[static_cast<std::size_t>(at[i])];
  }

  // Returns whether the candidate is strictly more extreme, so that the first of equal values wins. NaN is the most
  // extreme.
  static bool better(Reduction reduction, ScalarType type, Lane candidate, Lane best) {
    const bool largest = reduction == Reduction::kArgMax;
    if (!is_float(type)) {
      if (type == ScalarType::kUInt64) {
        const auto c = static_cast<std::uint64_t>(candidate.whole), b = static_cast<std::uint64_t>(best.whole);
        return largest ? c > b : c < b;
      }
      return largest ? candidate.whole > best.whole : candidate.whole < best.whole;
    }
    if (std::isnan(best.real)) return false;
    if (std::isnan(candidate.real)) return true;
    return largest ? candidate.real > best.real : candidate.real < best.real;
  }

  void compute(ExprId id) {
    const ExprNode& n = pool_[id];
    switch (n.op) {
      case ExprOp::kConstant:
        for (std::size_t i = 0; i < count_; ++i) {
          count_step();
          if (is_float(n.type))
            lanes_[id][i].real = n.real;
          else
            lanes_[id][i].whole = n.integer;
        }
        return;
      case ExprOp::kLoad:
        return load(id);
      case ExprOp::kIndex: {
        std::vector<std::int64_t> values;
        evaluate_index(indices_[id], values);
        for (std::size_t i = 0; i < count_; ++i) lanes_[id][i].whole = values[i];
        return;
      }
      case ExprOp::kReduce:
        return tables_[id] ? look_up(id) : reduce(id);
      default:
        break;
    }
    const std::size_t count = count_;
    const ScalarType operand = pool_[n.args[0]].type;
    const Lane* a = lanes_[n.args[0]].data();
    const Lane* b = n.args[1] == kNoExpr ? a : lanes_[n.args[1]].data();
    const Lane* c = n.args[2] == kNoExpr ? a : lanes_[n.args[2]].data();
    Lane* out = lanes_[id].data();
    // Addition and multiplication, the operations of a matrix product, run without a call per lane.
    if (is_left_out(n)) {
      std::copy_n(a, count, out);
    } else if (rounds_to_float32(n) && n.op == ExprOp::kMul) {
      for (std::size_t i = 0; i < count; ++i) out[i].real = static_cast<float>(a[i].real * b[i].real);
    } else if (rounds_to_float32(n) && n.op == ExprOp::kAdd) {
      for (std::size_t i = 0; i < count; ++i) out[i].real = static_cast<float>(a[i].real + b[i].real);
    } else {
      for (std::size_t i = 0; i < count; ++i) out[i] = apply_scalar(n, operand, a[i], b[i], c[i], precision_);
    }
  }

  const ExprPool& pool_;
  ExprId root_;
  const std::vector<std::uint32_t> axes_;
  const std::vector<std::int64_t>& symbols_;
  const Precision precision_;
  std::vector<std::unique_ptr<Table>> tables_;  // by node
  std::vector<ExprId> order_, top_level_;
  std::vector<std::vector<ExprId>> body_;
  std::vector<int> is_output_;
  std::vector<std::int64_t> axis_value_;
  std::vector<Lanes> lanes_;
  std::vector<CompiledIndex> indices_;
  std::vector<std::vector<CompiledIndex>> load_axes_;
  std::vector<const HostTensor*> tensors_;
  std::vector<std::vector<std::int64_t>> output_lanes_;
  std::size_t count_ = 0;
};

}  // namespace

std::optional<HostTensor> evaluate_formula_within(std::int64_t& steps_left, const ExprPool& pool, ExprId expr,
                                                  const std::vector<std::uint32_t>& axes, DType dtype,
                                                  const std::vector<std::int64_t>& symbols,
                                                  const std::function<const HostTensor&(std::uint32_t)>& tensor_of,
                                                  Precision precision) {
  // An empty result needs no evaluation. Its formula may divide by an extent of 0.
  std::vector<std::int64_t> shape;
  for (const std::uint32_t axis : axes)
    shape.push_back(evaluate(pool.extent(axis), [&](Variable v) { return symbols.at(v.id); }));
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return HostTensor(held_dtype(dtype, precision), shape);
  Evaluation evaluation(pool, expr, axes, symbols, tensor_of, precision);
  const std::int64_t steps = evaluation.steps();
  if (steps > steps_left) return std::nullopt;
  steps_left -= steps;
  return evaluation.run(dtype);
}

HostTensor evaluate_formula(const ExprPool& pool, ExprId expr, const std::vector<std::uint32_t>& axes, DType dtype,
                            const std::vector<std::int64_t>& symbols,
                            const std::function<const HostTensor&(std::uint32_t)>& tensor_of, Precision precision) {
  std::int64_t unlimited = std::numeric_limits<std::int64_t>::max();
  return *evaluate_formula_within(unlimited, pool, expr, axes, dtype, symbols, tensor_of, precision);
}

}  // namespace fusec
