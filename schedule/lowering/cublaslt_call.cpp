#include "schedule/lowering/cublaslt_call.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/kernel/linear_index.h"
#include "ir/error.h"
#include "ir/ops/common.h"
#include "ir/spelling.h"
#include "ir/type.h"
#include "schedule/lowering/cublaslt_support.h"
#include "schedule/lowering/lower_group.h"

namespace fusec {
namespace {

// Returns whether the expression equals `wanted`, in which the single load matches anything. Stores the match in
// `stands_for`.
bool has_form(const ExprPool& forms, ExprId wanted, const ExprPool& pool, ExprId found, ExprId& stands_for) {
  const ExprNode& w = forms[wanted];
  if (w.op == ExprOp::kLoad) {
    if (stands_for == kNoExpr) stands_for = found;
    return stands_for == found;
  }
  const ExprNode& f = pool[found];
  if (w.op != f.op || w.type != f.type || w.integer != f.integer || w.real != f.real) return false;
  if (w.op == ExprOp::kRound && w.dtype != f.dtype) return false;
  for (std::size_t i = 0; i < w.args.size(); ++i) {
    if ((w.args[i] == kNoExpr) != (f.args[i] == kNoExpr)) return false;
    if (w.args[i] != kNoExpr && !has_form(forms, w.args[i], pool, f.args[i], stands_for)) return false;
  }
  return true;
}

constexpr const char* kScaledTwice = "it scales the product more than once";
constexpr const char* kScaledInPart =
    "cuBLASLt scales row by row where both factors have a scale a row, not one of them";
constexpr const char* kErfForm = "cuBLASLt's GELU is the tanh form, and this one the erf form";

bool is_power_of_two(double v) {
  int exponent = 0;
  return v != 0 && std::isfinite(v) && std::abs(std::frexp(v, &exponent)) == 0.5;
}

class CublasLtCallFinder {
 public:
  CublasLtCallFinder(const Graph& graph, const Kernel& kernel, const Target& target)
      : graph_(graph), kernel_(kernel), pool_(kernel.pool), target_(target) {}

  // Returns "" if the kernel is a call, else why not.
  std::string run() {
    for (const auto step :
         {&CublasLtCallFinder::find_output, &CublasLtCallFinder::find_terms, &CublasLtCallFinder::find_contraction,
          &CublasLtCallFinder::find_axes, &CublasLtCallFinder::find_matrices, &CublasLtCallFinder::find_added,
          &CublasLtCallFinder::find_scales})
      if (std::string why = (this->*step)(); !why.empty()) return why;
    return why_unsupported(call_, graph_, target_);
  }

  CublasLtCall take() { return std::move(call_); }

 private:
  struct Added {
    ExprId load;
    double factor;
  };

  std::string shown(ValueId v) const { return in_quotes(graph_.value(v).name); }

  bool is_number(ExprId id, double value) const {
    const ExprNode& n = pool_[id];
    return n.op == ExprOp::kConstant && is_float(n.type) && n.real == value;
  }

  // Returns the output's expression without rounding to the dtype in which it is stored.
  ExprId stored_expr(const KernelOutput& output) const {
    ExprId id = output.expr;
    while (pool_[id].op == ExprOp::kRound && pool_[id].dtype == output.type.dtype) id = pool_[id].args[0];
    return id;
  }

  // Returns the argument of the activation if it is one of cuBLASLt's, else `id`.
  ExprId inside_activation(ExprId id) {
    if (compute_type(main_->type.dtype) != ScalarType::kFloat32) return id;
    ExprPool forms;
    const E x{&forms, forms.load(0, DType::kFloat32, {})};
    ExprId inside = kNoExpr;
    if (has_form(forms, ops::gelu(x, "tanh"), pool_, id, inside)) {
      call_.activation = CublasLtEpilogue::kGeluTanh;
      return inside;
    }
    // The graph may compare with 0 in the tensor's own precision.
    const E zero{&forms, forms.constant(ScalarType::kFloat32, 0.0)};
    const E narrow{&forms, forms.round(zero, main_->type.dtype)};
    for (const E& bound : {zero, narrow}) {
      inside = kNoExpr;
      if (!has_form(forms, select(x > bound, x, 0.0), pool_, id, inside)) continue;
      call_.activation = CublasLtEpilogue::kRelu;
      return inside;
    }
    return id;
  }

  std::string find_output() {
    if (kernel_.outputs.size() > 2) return "it has more than two results";
    for (const KernelOutput& output : kernel_.outputs) {
      if (output.axes != kernel_.outputs[0].axes || output.index.size() != output.axes.size())
        return "its results run over different axes";
      for (std::size_t d = 0; d < output.axes.size(); ++d)
        if (output.index[d] != IndexExpr::axis(output.axes[d])) return "its results run over different axes";
    }
    main_ = &kernel_.outputs.back();
    pre_ = inside_activation(stored_expr(*main_));
    if (kernel_.outputs.size() == 1) return "";
    const KernelOutput& aux = kernel_.outputs.front();
    if (call_.activation == CublasLtEpilogue::kIdentity || stored_expr(aux) != pre_)
      return "its second result is not what stands inside of an activation";
    if (call_.activation == CublasLtEpilogue::kRelu) return "cuBLASLt stores no value before its ReLU, only a bit mask";
    if (aux.type.dtype != main_->type.dtype) return "its two results differ in dtype";
    call_.aux = aux.value;
    return "";
  }

  // Splits alpha * product + beta * c + bias into terms, each with its factor.
  std::string find_terms() {
    std::vector<std::pair<ExprId, double>> stack{{pre_, 1.0}};
    while (!stack.empty()) {
      const auto [id, sign] = stack.back();
      stack.pop_back();
      const ExprNode& n = pool_[id];
      if (n.op == ExprOp::kAdd || n.op == ExprOp::kSub) {
        stack.push_back({n.args[1], n.op == ExprOp::kSub ? -sign : sign});
        stack.push_back({n.args[0], sign});
        if (stack.size() > 8) return "it adds too much to the product";
        continue;
      }
      if (std::string why = add_term(id, sign); !why.empty()) return why;
    }
    return reduction_ == kNoExpr ? "it holds no product of matrices" : "";
  }

  std::string add_term(ExprId id, double factor) {
    std::vector<ExprId> scales;
    int factors = 0;
    for (;;) {
      const ExprNode& n = pool_[id];
      if (n.op == ExprOp::kReduce) {
        if (reduction_ != kNoExpr) return "it is a sum of two products";
        reduction_ = id;
        call_.alpha = factor;
        scales_ = scales;
        return factors > 1 ? kScaledTwice : "";
      }
      if (n.op == ExprOp::kLoad) {
        if (!scales.empty() || factors > 1) return "what it adds to the product is itself a product";
        added_.push_back({id, factor});
        return added_.size() > 2 ? "it adds more than a matrix and a bias" : "";
      }
      if (n.op == ExprOp::kRound && n.dtype == DType::kInt32) {
        id = n.args[0];
      } else if (n.op == ExprOp::kNeg) {
        factor = -factor;
        id = n.args[0];
      } else if (n.op == ExprOp::kDiv && pool_[n.args[1]].op == ExprOp::kConstant &&
                 is_power_of_two(pool_[n.args[1]].real)) {
        factor /= pool_[n.args[1]].real;
        id = n.args[0];
      } else if (n.op == ExprOp::kMul && is_float(n.type)) {
        const std::size_t number = pool_[n.args[0]].op == ExprOp::kConstant ? 0 : 1;
        const ExprNode& by = pool_[n.args[number]];
        if (by.op == ExprOp::kConstant) {
          factor *= by.real;
          factors += !is_power_of_two(by.real);
        } else if (by.op == ExprOp::kLoad) {
          scales.push_back(n.args[number]);
        } else {
          return holds_erf(id) ? kErfForm : "it computes with the product what cuBLASLt does not";
        }
        id = n.args[1 - number];
      } else if (n.op == ExprOp::kMax) {
        return "cuBLASLt's ReLU answers 0 for NaN, and this one NaN";
      } else {
        return fmt::format("cuBLASLt has no epilogue with {}", name(n.op));
      }
    }
  }

  bool holds_erf(ExprId root) const {
    return std::ranges::any_of(reachable(pool_, std::span(&root, 1)),
                               [&](ExprId id) { return pool_[id].op == ExprOp::kErf; });
  }

  std::string find_contraction() {
    const ExprNode& sum = pool_[reduction_];
    if (sum.reduction != Reduction::kSum) return "it holds a reduction that is no sum";
    if (sum.axes.size() != 1) return "its inner dimension is several";
    k_axis_ = sum.axes[0];
    const ExprNode& body = pool_[sum.args[0]];
    if (body.op != ExprOp::kMul) return "it sums something else than products";
    for (std::size_t i = 0; i < 2; ++i) {
      const ExprNode& factor = pool_[body.args[i]];
      if (factor.op != ExprOp::kLoad) return "a factor of its product is computed";
      if (factor.args[0] != kNoExpr) return "a factor of its product is read under a condition";
      factors_[i] = body.args[i];
    }
    return "";
  }

  // Returns the position of a load in its tensor, linear in the output's axes and, last, k.
  std::optional<LinearIndex> place_of(ExprId load) const {
    const ExprNode& n = pool_[load];
    const Shape& shape = graph_.tensor(n.source).shape;
    IndexExpr flat = 0;
    for (std::size_t d = 0; d < shape.size(); ++d) flat = flat * shape[d] + n.indices[d];
    flat = substitute(flat, [&](Variable v) -> std::optional<IndexExpr> {
      if (v.kind != Variable::Kind::kAxis || !pool_.extent(v.id).is(1)) return std::nullopt;
      return IndexExpr(0);
    });
    std::vector<std::uint32_t> axes = axes_;
    axes.push_back(k_axis_);
    return linear_in(simplify(flat, pool_.bounds()), axes);
  }

  // Returns whether the axes [begin, end) form one axis with one stride at this place.
  bool collapses(const LinearIndex& place, std::size_t begin, std::size_t end) const {
    for (std::size_t i = begin; i + 1 < end; ++i)
      if (place.strides[i] != place.strides[i + 1] * pool_.extent(axes_[i + 1])) return false;
    return true;
  }
  IndexExpr extent_of(std::size_t begin, std::size_t end) const {
    IndexExpr extent = 1;
    for (std::size_t i = begin; i < end; ++i) extent *= pool_.extent(axes_[i]);
    return extent;
  }
  static IndexExpr stride_of(const LinearIndex& place, std::size_t begin, std::size_t end) {
    return begin == end ? IndexExpr(0) : place.strides[end - 1];
  }

  // Finds which axes are batches, columns and rows of d: [0, columns_), [columns_, rows_), [rows_, end).
  std::string find_axes() {
    for (const std::uint32_t axis : main_->axes)
      if (!pool_.extent(axis).is(1)) axes_.push_back(axis);
    if (axes_.empty()) return "its result is one element";
    std::array<LinearIndex, 2> places;
    for (std::size_t i = 0; i < 2; ++i) {
      const auto place = place_of(factors_[i]);
      if (!place) return fmt::format("{} is no matrix with strides where it is read", shown(pool_[factors_[i]].source));
      places[i] = *place;
    }
    const std::size_t last = axes_.size() - 1;
    const auto only = [&](std::size_t axis, std::size_t factor) {
      return !places[factor].strides[axis].is(0) && places[1 - factor].strides[axis].is(0);
    };
    if (!only(last, 0) && !only(last, 1)) return "the last dimension of its result is not that of one factor";
    const std::size_t a = only(last, 0) ? 0 : 1;
    rows_ = last;
    while (rows_ > 0 && only(rows_ - 1, a) && collapses(places[a], rows_ - 1, axes_.size())) --rows_;
    columns_ = rows_;
    while (columns_ > 0 && only(columns_ - 1, 1 - a) && collapses(places[1 - a], columns_ - 1, rows_)) --columns_;
    for (const LinearIndex& place : places)
      if (!collapses(place, 0, columns_)) return "its batches do not lie at one stride";
    a_ = factors_[a];
    b_ = factors_[1 - a];
    a_place_ = places[a];
    b_place_ = places[1 - a];
    call_.m = extent_of(rows_, axes_.size());
    call_.n = extent_of(columns_, rows_);
    call_.batch = extent_of(0, columns_);
    call_.k = pool_.extent(k_axis_);
    return "";
  }

  // Sets a rows x columns matrix with these strides; `transposed` if the columns have stride 1.
  std::string set_view(CublasLtMatrix& view, ExprId load, const LinearIndex& place, const IndexExpr& rows,
                       const IndexExpr& row_stride, const IndexExpr& columns, const IndexExpr& column_stride) const {
    view.value = pool_[load].source;
    view.dtype = pool_[load].dtype;
    view.offset = place.base;
    view.batch_stride = stride_of(place, 0, columns_);
    // The stride of an axis of extent 1 does not matter.
    view.transposed = !(row_stride.is(1) || (rows.is(1) && !column_stride.is(1)));
    view.rows = view.transposed ? columns : rows;
    view.columns = view.transposed ? rows : columns;
    const IndexExpr& unit = view.transposed ? column_stride : row_stride;
    view.leading = view.transposed ? row_stride : column_stride;
    if (!unit.is(1) && !view.rows.is(1)) return fmt::format("{} has no unit stride", shown(view.value));
    if (view.columns.is(1)) view.leading = view.rows;
    if (!proves_nonnegative(view.leading - view.rows, graph_.bounds()))
      return fmt::format("the rows of {} overlap", shown(view.value));
    find_alignment(view);
    return "";
  }

  void find_alignment(CublasLtMatrix& view) const {
    const std::int64_t width = bits(view.dtype) / 8;
    const auto aligned = [&](int bytes) {
      return proves_multiple_of(view.offset * width, bytes, graph_.bounds()) &&
             (call_.batch.is(1) || proves_multiple_of(view.batch_stride * width, bytes, graph_.bounds()));
    };
    while (view.alignment > width && !aligned(view.alignment)) view.alignment /= 2;
  }

  std::string find_matrices() {
    const std::size_t k_position = axes_.size();
    if (std::string why = set_view(call_.a, a_, a_place_, call_.m, stride_of(a_place_, rows_, k_position), call_.k,
                                   a_place_.strides[k_position]);
        !why.empty())
      return why;
    if (std::string why = set_view(call_.b, b_, b_place_, call_.k, b_place_.strides[k_position], call_.n,
                                   stride_of(b_place_, columns_, rows_));
        !why.empty())
      return why;
    call_.compute = cublaslt_compute(call_.a.dtype);
    CublasLtMatrix& d = call_.d;
    d = {.value = main_->value, .dtype = main_->type.dtype, .rows = call_.m, .columns = call_.n, .leading = call_.m};
    if (!call_.batch.is(1)) d.batch_stride = call_.m * call_.n;
    find_alignment(d);
    return "";
  }

  // What is added must have the layout of d, or be a vector along its rows.
  std::string find_added() {
    for (const Added& added : added_) {
      const ExprNode& load = pool_[added.load];
      const auto place = load.args[0] == kNoExpr ? place_of(added.load) : std::nullopt;
      if (!place) return fmt::format("{} is no matrix with strides where it is added", shown(load.source));
      const std::size_t end = axes_.size();
      for (const auto& [begin, until] : {std::pair(std::size_t{0}, columns_), {columns_, rows_}, {rows_, end}})
        if (!collapses(*place, begin, until))
          return fmt::format("{} is no matrix with strides where it is added", shown(load.source));
      const IndexExpr row = stride_of(*place, rows_, end), column = stride_of(*place, columns_, rows_),
                      batch = stride_of(*place, 0, columns_);
      if (!row.is(1)) return fmt::format("{} is added along another dimension than a bias is", shown(load.source));
      const bool vector = column.is(0) && batch.is(0);
      if (vector && call_.bias == kNone && added.factor == 1) {
        call_.bias = load.source;
        call_.bias_dtype = load.dtype;
        call_.bias_offset = place->base;
        if (!proves_multiple_of(place->base * (bits(load.dtype) / 8), 16, graph_.bounds()))
          return fmt::format("{} begins where 16 bytes do not", shown(load.source));
        continue;
      }
      if (call_.c || (vector && !call_.n.is(1))) return "it adds more than a matrix and a bias";
      call_.beta = added.factor;
      if (std::string why = set_view(call_.c.emplace(), added.load, *place, call_.m, row, call_.n, column);
          !why.empty())
        return why;
      if (call_.c->transposed) return fmt::format("{} lies otherwise than the result", shown(load.source));
    }
    return "";
  }

  // Scales are one number per matrix, or one per row and per column of the result.
  std::string find_scales() {
    if (scales_.size() > 2) return kScaledTwice;
    std::vector<ValueId> single;
    for (const ExprId scale : scales_) {
      const ExprNode& load = pool_[scale];
      if (load.dtype != DType::kFloat32 || !multiplies_float8(call_))
        return "cuBLASLt takes scales in memory for float8 alone, as float32";
      const Shape& shape = graph_.tensor(load.source).shape;
      if (std::ranges::all_of(shape, [](const Dim& d) { return d.is(1); }))
        single.push_back(load.source);
      else if (std::string why = add_outer_scale(scale); !why.empty())
        return why;
    }
    for (const ValueId scale : single) {
      // With a single row or column, a single scale is a vector of scales.
      const bool for_a = call_.outer_scales ? call_.m.is(1) && call_.a_scale == kNone : call_.a_scale == kNone;
      const bool for_b = call_.b_scale == kNone && (!call_.outer_scales || call_.n.is(1));
      if (!for_a && !for_b) return kScaledInPart;
      (for_a ? call_.a_scale : call_.b_scale) = scale;
    }
    if (!call_.outer_scales) return "";
    if (call_.a_scale == kNone || call_.b_scale == kNone) return kScaledInPart;
    if (target_.compute_capability != 90)
      return fmt::format("cuBLASLt scales float8 row by row on sm_90 alone, and this is for {}", target_.arch);
    return "";
  }

  std::string add_outer_scale(ExprId scale) {
    const ExprNode& load = pool_[scale];
    const auto place = load.args[0] == kNoExpr ? place_of(scale) : std::nullopt;
    const std::size_t end = axes_.size();
    if (!place || !place->base.is(0) || !collapses(*place, columns_, rows_) || !collapses(*place, rows_, end))
      return fmt::format("{} is no vector of scales for a whole matrix", shown(load.source));
    const IndexExpr row = stride_of(*place, rows_, end), column = stride_of(*place, columns_, rows_);
    const bool of_rows = row.is(1) && column.is(0), of_columns = row.is(0) && column.is(1);
    if (columns_ != 0 || (!of_rows && !of_columns))
      return fmt::format("{} is neither a scale for each row nor one for each column", shown(load.source));
    ValueId& place_in_call = of_rows ? call_.a_scale : call_.b_scale;
    if (place_in_call != kNone) return kScaledTwice;
    place_in_call = load.source;
    call_.outer_scales = true;
    return "";
  }

  const Graph& graph_;
  const Kernel& kernel_;
  const ExprPool& pool_;
  const Target& target_;
  CublasLtCall call_;
  const KernelOutput* main_ = nullptr;
  ExprId pre_ = kNoExpr, reduction_ = kNoExpr, a_ = kNoExpr, b_ = kNoExpr;
  std::array<ExprId, 2> factors_{};
  LinearIndex a_place_, b_place_;
  std::vector<ExprId> scales_;
  std::vector<Added> added_;
  std::vector<std::uint32_t> axes_;  // output axes with extent > 1
  std::uint32_t k_axis_ = 0;
  std::size_t columns_ = 0, rows_ = 0;
};

}  // namespace

CublasLtMatch find_cublaslt_call(const Graph& graph, const std::vector<NodeId>& nodes,
                                 const std::vector<ValueId>& outputs, const Target& target, bool round_intermediates) {
  const Kernel* kernel = nullptr;
  const std::vector<LoweredUnit> units = lower_group(graph, nodes, outputs, round_intermediates);
  for (const LoweredUnit& unit : units) {
    if (unit.kind == LoweredUnit::Kind::kAlias) continue;
    if (unit.kind == LoweredUnit::Kind::kSpecial) return {{}, "it holds an op that is no expression"};
    if (kernel) return {{}, "its nodes would be several kernels"};
    kernel = &unit.kernel;
  }
  if (!kernel) return {{}, "it computes nothing"};
  CublasLtCallFinder find(graph, *kernel, target);
  if (std::string why = find.run(); !why.empty()) return {{}, std::move(why)};
  return {find.take(), ""};
}

std::vector<ValueId> reads_of(const CublasLtCall& call) {
  std::vector<ValueId> reads{call.a.value, call.b.value};
  if (call.c) reads.push_back(call.c->value);
  for (const ValueId v : {call.bias, call.a_scale, call.b_scale})
    if (v != kNone) reads.push_back(v);
  return reads;
}

std::vector<ValueId> writes_of(const CublasLtCall& call) {
  std::vector<ValueId> writes{call.d.value};
  if (call.aux != kNone) writes.push_back(call.aux);
  return writes;
}

std::int64_t cublaslt_workspace_bytes(const Target& target) {
  return target.compute_capability >= 90 ? std::int64_t{32} << 20 : std::int64_t{4} << 20;
}

}  // namespace fusec
