#include "schedule/gemm/gemm_operand.h"

#include <algorithm>
#include <functional>

#include "analysis/kernel/kernel.h"
#include "analysis/kernel/loads.h"
#include "ir/type.h"

namespace fusec {
namespace {

constexpr int kCopyBytes = 16;
using Axes = std::vector<std::uint32_t>;

bool has_axes(const IndexExpr& e) {
  return std::ranges::any_of(variables_of(e), [](Variable v) { return v.kind != Variable::Kind::kSymbol; });
}

IndexExpr with_axes_at(const IndexExpr& e, const Axes& axes, const std::function<IndexExpr(std::uint32_t)>& value) {
  return substitute(e, [&](Variable v) -> std::optional<IndexExpr> {
    if (v.kind != Variable::Kind::kAxis || std::ranges::find(axes, v.id) == axes.end()) return std::nullopt;
    return value(v.id);
  });
}

// What one step along the axis adds; nullopt if that varies.
std::optional<IndexExpr> stride_along(const IndexExpr& e, std::uint32_t axis, const Bounds& bounds) {
  const IndexExpr next = with_axes_at(e, {axis}, [](std::uint32_t a) { return IndexExpr::axis(a) + 1; });
  IndexExpr stride = simplify(next - e, bounds);
  if (has_axes(stride)) return std::nullopt;
  return stride;
}

// What one step along the flattened axes adds; nullopt if that varies.
std::optional<IndexExpr> stride_along(const IndexExpr& e, const Axes& axes, const ExprPool& pool) {
  std::optional<IndexExpr> innermost;
  IndexExpr expected;
  for (std::size_t i = axes.size(); i-- > 0;) {
    if (pool.extent(axes[i]).is(1)) continue;
    const std::optional<IndexExpr> stride = stride_along(e, axes[i], pool.bounds());
    if (!stride || (innermost && *stride != expected)) return std::nullopt;
    if (!innermost) innermost = stride;
    expected = simplify(*stride * pool.extent(axes[i]), pool.bounds());
  }
  return innermost;
}

std::optional<std::uint32_t> last_axis(const Axes& axes, const ExprPool& pool) {
  for (std::size_t i = axes.size(); i-- > 0;)
    if (!pool.extent(axes[i]).is(1)) return axes[i];
  return std::nullopt;
}

// Removes a group member from divisions: with e < 8, (8q + e) // 16 is q // 2.
IndexExpr separate_members(const IndexExpr& e, Variable member, int together, const Bounds& bounds) {
  return rewrite_atoms(e, [&](IndexAtom::Kind kind, IndexExpr a, IndexExpr b) -> IndexExpr {
    const bool divides = kind == IndexAtom::Kind::kFloorDiv, remains = kind == IndexAtom::Kind::kMod;
    if (!divides && !remains) return kind == IndexAtom::Kind::kMin ? min(a, b) : max(a, b);
    const IndexExpr groups = a - IndexExpr::variable(member);
    const bool apart = coefficient_of(a, member) == 1 && range_of(b, bounds).min > 0 &&
                       proves_multiple_of(b, together, bounds) && proves_multiple_of(groups, together, bounds);
    if (!apart) return divides ? floor_div(a, b) : floor_mod(a, b);
    const IndexExpr group = floor_div(groups, together), of = floor_div(b, together);
    return divides ? floor_div(group, of) : floor_mod(group, of) * together + IndexExpr::variable(member);
  });
}

// True if the position has whole, aligned groups along the last axis. The axis may be in divisions (heads).
bool runs_along(const IndexExpr& position, const Axes& axes, int together, const ExprPool& pool) {
  const std::optional<std::uint32_t> axis = last_axis(axes, pool);
  if (!axis || !proves_multiple_of(pool.extent(*axis), together, pool.bounds())) return false;
  Bounds bounds = pool.bounds();
  const auto group = static_cast<std::uint32_t>(bounds.axes.size()), member = group + 1;
  bounds.axes.push_back(simplify(floor_div(pool.extent(*axis), together), bounds));
  bounds.axes.push_back(together);
  const IndexExpr split = with_axes_at(
      position, {*axis}, [&](std::uint32_t) { return IndexExpr::axis(group) * together + IndexExpr::axis(member); });
  const Variable of_group{Variable::Kind::kAxis, member};
  const IndexExpr at = simplify(separate_members(simplify(split, bounds), of_group, together, bounds), bounds);
  return coefficient_of(at, of_group) == 1 && proves_multiple_of(at - IndexExpr::axis(member), together, bounds);
}

// True if the value depends on the axes, or contains a reduction other than `known`.
bool varies_along(const ExprPool& pool, ExprId value, const Axes& axes, ExprId known) {
  return std::ranges::any_of(reachable(pool, std::span(&value, 1)), [&](ExprId id) {
    return (pool[id].op == ExprOp::kReduce && id != known) ||
           std::ranges::any_of(pool[id].indices, [&](const IndexExpr& e) { return mentions_any(e, axes); });
  });
}

// The load in pieces of `together` contiguous elements.
std::optional<GemmOperand> find_copied_operand(const Graph& graph, const ExprPool& pool, ExprId operand_expr,
                                               const OperandAxes& axes, int together) {
  const Axes &across = axes.across, &k = axes.k;
  const ExprNode& n = pool[operand_expr];
  if (n.op != ExprOp::kLoad) return std::nullopt;
  if (n.args[0] != kNoExpr && !(axes.holds && axes.holds(n.args[0]))) return std::nullopt;
  const IndexExpr position = position_of(graph, pool, operand_expr);
  bool has_indirect_loads = false;
  for (const Variable v : variables_of(position)) {
    if (v.kind != Variable::Kind::kValue) continue;
    if (varies_along(pool, v.id, k, axes.known)) return std::nullopt;
    has_indirect_loads = true;
  }
  GemmOperand operand{.load = operand_expr, .element_bits = bits(n.dtype)};
  operand.across = simplify(with_axes_at(position, k, [](std::uint32_t) { return IndexExpr(0); }), pool.bounds());
  operand.k = simplify(position - operand.across, pool.bounds());
  for (const Variable v : variables_of(operand.k))
    if (v.kind == Variable::Kind::kAxis && std::ranges::find(k, v.id) == k.end()) return std::nullopt;
  if (!has_indirect_loads && !mentions_any(operand.across, across)) return std::nullopt;
  operand.k_stride = stride_along(operand.k, k, pool);
  operand.k_major = runs_along(position, k, together, pool);
  if (!operand.k_major && !(runs_along(position, across, together, pool) && operand.k_stride)) return std::nullopt;
  return operand;
}

// The loads of a value that can be copied in pieces along one direction.
std::vector<GemmOperand> find_copies(const Graph& graph, const ExprPool& pool, ExprId value, const OperandAxes& axes,
                                     int piece, bool k_major) {
  std::vector<GemmOperand> copies;
  for (const ExprId id : reachable(pool, std::span(&value, 1))) {
    const ExprNode& n = pool[id];
    if (n.op != ExprOp::kLoad || bits(n.dtype) * piece < 32) continue;
    auto operand = find_copied_operand(graph, pool, id, axes, piece);
    if (operand && operand->k_major == k_major && mentions_any(operand->k, axes.k))
      copies.push_back(std::move(*operand));
  }
  return copies;
}

bool holds_reduction(const ExprPool& pool, ExprId value, ExprId known) {
  return std::ranges::any_of(reachable(pool, std::span(&value, 1)),
                             [&](ExprId id) { return pool[id].op == ExprOp::kReduce && id != known; });
}

// Removes roundings that change nothing, such as a float8 that was cast to 16 bits.
ExprId without_rounding(const ExprPool& pool, ExprId value) {
  while (pool[value].op == ExprOp::kRound && is_float(pool[value].dtype) &&
         is_exact_in(pool, pool[value].args[0], pool[value].dtype))
    value = pool[value].args[0];
  return value;
}

// A piece is as long as 16 bytes of the narrowest copy, if all copies allow that.
std::optional<GemmOperand> find_transformed(const Graph& graph, const ExprPool& pool, ExprId value,
                                            const OperandAxes& axes, bool is_k_only) {
  constexpr int kLeast = 8, kMost = 32;
  if (holds_reduction(pool, value, axes.known)) return std::nullopt;
  GemmOperand operand;
  for (const bool k_major : {true, false}) {
    if (!k_major && is_k_only) continue;
    const auto axis = last_axis(k_major ? axes.k : axes.across, pool);
    if (!axis || !proves_multiple_of(pool.extent(*axis), kLeast, pool.bounds())) continue;
    auto copies = find_copies(graph, pool, value, axes, kLeast, k_major);
    if (copies.size() <= operand.copies.size()) continue;
    operand = copies[0];
    operand.copies = std::move(copies);
    operand.piece = kLeast;
  }
  if (operand.copies.empty()) return std::nullopt;
  operand.value = value;
  int narrowest = 64;
  for (const GemmOperand& copy : operand.copies) narrowest = std::min(narrowest, copy.element_bits);
  for (int piece = 2 * kLeast; piece <= kMost && piece * narrowest <= 8 * kCopyBytes; piece *= 2) {
    auto copies = find_copies(graph, pool, value, axes, piece, operand.k_major);
    if (copies.size() != operand.copies.size()) break;
    operand.copies = std::move(copies);
    operand.piece = piece;
  }
  return operand;
}

}  // namespace

std::optional<ExprId> offset_of(const ExprPool& pool, ExprId operand_expr, const OperandAxes& axes) {
  const ExprNode& n = pool[operand_expr];
  const bool is = n.op == ExprOp::kSub && n.type == ScalarType::kInt32 &&
                  !varies_along(pool, n.args[1], axes.across, kNoExpr) &&
                  !varies_along(pool, n.args[1], axes.k, kNoExpr);
  return is ? std::optional(n.args[1]) : std::nullopt;
}

std::optional<IndexExpr> flat_stride(const IndexExpr& position, const Axes& axes, const ExprPool& pool) {
  if (is_indirect_along(position, axes, pool)) return std::nullopt;
  return stride_along(position, axes, pool);
}

bool multiplies(DType multiplied, DType stored) {
  return stored == multiplied || (multiplied == DType::kFloat8E4M3FN && stored == DType::kFloat8E5M2);
}

std::optional<GemmOperand> find_gemm_operand(const Graph& graph, const ExprPool& pool, ExprId operand_expr,
                                             const OperandAxes& axes, DType multiplied, std::int64_t& block) {
  const bool native = multiplied == DType::kFloat8E4M3FN;
  const auto fits = [&](ExprId value) {
    const ExprNode& n = pool[value];
    return multiplied == DType::kFloat32 ||
           (native ? n.op == ExprOp::kLoad && multiplies(multiplied, n.dtype) : is_exact_in(pool, value, multiplied));
  };
  if (native) operand_expr = without_rounding(pool, operand_expr);
  OperandWithScales parts{.value = operand_expr, .scales = {}, .block = 0};
  ExprId offset = kNoExpr;
  if (multiplied == DType::kInt8 && !fits(operand_expr))
    if (const auto taken = offset_of(pool, operand_expr, axes)) {
      offset = *taken;
      parts.value = pool[operand_expr].args[0];
    }
  if (!fits(parts.value)) parts = split_scales(pool, operand_expr, axes.k);
  if (native) parts.value = without_rounding(pool, parts.value);
  if (!fits(parts.value)) return std::nullopt;
  if (multiplied == DType::kInt8) parts.value = without_conversion(pool, parts.value);
  if (multiplied == DType::kInt8 && is_float(pool[parts.value].type)) return std::nullopt;
  const ExprNode& n = pool[parts.value];
  const bool eight_bits = bits(multiplied) == 8;  // ldmatrix transposes only 16-bit elements
  std::optional<GemmOperand> operand;
  if (n.op == ExprOp::kLoad && multiplies(multiplied, n.dtype))
    operand = find_copied_operand(graph, pool, parts.value, axes, 8 * kCopyBytes / bits(n.dtype));
  if (operand && eight_bits && !operand->k_major) return std::nullopt;
  if (!operand && !native) operand = find_transformed(graph, pool, parts.value, axes, eight_bits);
  if (!operand) return std::nullopt;
  operand->scales = parts.scales;
  operand->offset = offset;
  block = common_scale_block(block, parts.block);
  return operand;
}

}  // namespace fusec
