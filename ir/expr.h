// Scalar expressions: what a kernel computes at one index of its output. A pool holds each distinct node once, operands
// before users: equal subterms share a node, and a walk needs no recursion.
//
//   silu at [i, j]           x = load x[i, j];  x * sigmoid(x)
//   row sum at [i]           reduce sum over k < K of (load x[i, k])
//
// Arithmetic happens in compute types. A load widens 16-bit and 8-bit floats to float32 and the store narrows the
// result. kRound rounds a value to a narrower dtype (a cast that the user wrote); it wraps integers.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "ir/bounds.h"
#include "ir/dtype.h"
#include "ir/index_expr.h"

namespace fusec {

enum class ScalarType : std::uint8_t { kBool, kInt32, kUInt32, kInt64, kUInt64, kFloat32, kFloat64 };

// The type in which values of a dtype are computed: float32 for all floats but float64, int32 for signed integers of
// at most 32 bits, uint32 for unsigned integers of at most 32 bits.
ScalarType compute_type(DType dtype);
inline bool is_float(ScalarType t) {
  return t == ScalarType::kFloat32 || t == ScalarType::kFloat64;
}

enum class ExprOp : std::uint8_t {
  // leaves
  kConstant,  // `real` or `integer`
  kLoad,      // tensor `source` at `indices`; if the optional guard args[0] is false: 0, without an access
  kIndex,     // the value of indices[0], an int64
  // conversions
  kConvert,  // to `type`, as C++ (float to integer truncates; to bool: != 0)
  kRound,    // to a value of `dtype`, keeping the compute type: narrows and widens again
  kBitcast,  // same bits, other type of the same size
  // unary
  kNeg,
  kAbs,
  kSign,
  kExp,
  kExp2,
  kExpm1,
  kLog,
  kLog2,
  kLog10,
  kLog1p,
  kSqrt,
  kRsqrt,
  kReciprocal,
  kSin,
  kCos,
  kTan,
  kAsin,
  kAcos,
  kAtan,
  kSinh,
  kCosh,
  kTanh,
  kAsinh,
  kAcosh,
  kAtanh,
  kErf,
  kSigmoid,
  kFloor,
  kCeil,
  kRoundEven,
  kTrunc,
  kNot,  // logical, of a bool
  kBitNot,
  kIsNan,
  kIsInf,
  // binary; both operands have the same type (kShl and kShr: the count is int32)
  kAdd,
  kSub,
  kMul,
  kDiv,  // floats: IEEE; integers: truncating, a zero divisor gives 0
  kPow,
  kMax,
  kMin,  // NaN if either operand is NaN, as PyTorch's maximum
  kFloorDiv,
  kFloorMod,  // rounding to minus infinity, sign of the divisor (Python's), zero divisor: integers give 0
  kFmod,      // sign of the dividend
  kAtan2,
  kEq,
  kNe,
  kLt,
  kLe,
  kGt,
  kGe,
  kAnd,
  kOr,
  kXor,  // logical on bools, bitwise on integers
  kShl,
  kShr,
  // ternary
  kSelect,  // args[0] (bool) ? args[1] : args[2]; both sides may be evaluated
  kFma,     // only where a formula asks for a fused multiply-add
  // over axes
  kReduce,  // `reduction` of args[0] over `axes`
};

enum class Reduction : std::uint8_t {
  kSum,
  kProd,
  kMax,
  kMin,  // propagate NaN
  kAny,
  kAll,  // of bools
  kArgMax,
  kArgMin,  // int64 flat position, over the axes, of the first extreme value; NaN counts as extreme
};

using ExprId = std::uint32_t;
inline constexpr ExprId kNoExpr = 0xffffffffu;

struct ExprNode {
  ExprOp op = ExprOp::kConstant;
  ScalarType type = ScalarType::kFloat32;
  DType dtype = DType::kFloat32;          // kRound; kLoad: the stored type
  Reduction reduction = Reduction::kSum;  // kReduce
  std::array<ExprId, 3> args{kNoExpr, kNoExpr, kNoExpr};
  std::uint32_t source = 0;         // kLoad: the tensor, a ValueId of the graph
  std::int64_t integer = 0;         // kConstant of bool and integers
  double real = 0;                  // kConstant of floats
  std::vector<IndexExpr> indices;   // kLoad: one a dimension; kIndex: one
  std::vector<std::uint32_t> axes;  // kReduce: axis ids, outermost first
  bool operator==(const ExprNode&) const = default;
};

// Whether a list of axes or of ExprIds holds `id`.
inline bool contains(std::span<const std::uint32_t> ids, std::uint32_t id) {
  return std::ranges::find(ids, id) != ids.end();
}

class ExprPool {
 public:
  explicit ExprPool(Symbols symbols = {}) { bounds_.symbols = std::move(symbols); }
  // With the symbols and product limits of `of`.
  explicit ExprPool(const Bounds& of) {
    bounds_.symbols = of.symbols;
    bounds_.products = of.products;
  }

  const ExprNode& operator[](ExprId id) const { return nodes_[id]; }
  std::size_t size() const { return nodes_.size(); }
  const Bounds& bounds() const { return bounds_; }
  // Whether some index uses a loaded value (made by as_index or known_index).
  bool has_values() const { return !bounds_.value_max.empty(); }
  // Equal nodes, axes and bounds under the same ids. Equal pools that were filled in the same order have equal hashes.
  friend bool operator==(const ExprPool& a, const ExprPool& b);
  std::size_t hash() const { return hash_; }
  // Replaces the bounds of the symbols. Nodes that exist already are not simplified again.
  void assume(Symbols symbols, std::vector<ProductLimit> products) {
    bounds_.symbols = std::move(symbols);
    bounds_.products = std::move(products);
    simplifier_.forget();
  }
  // The simplest equal expression under the pool's bounds.
  IndexExpr simplified(const IndexExpr& e) { return simplifier_(e, bounds_); }
  // Frees what is remembered for further expressions: of a pool that is complete.
  void forget_simplifications() { simplifier_.forget(); }

  // A loop axis 0 <= axis < extent.
  std::uint32_t new_axis(IndexExpr extent);
  const IndexExpr& extent(std::uint32_t axis) const { return bounds_.axes[axis]; }

  // Returns the equal node if there is one, else adds the node. Folds a select with a known condition, arithmetic on
  // integer constants, conversions of constants, x*1 and x+0 of integers, and repeated rounding to one dtype.
  // Float arithmetic is folded only if the result is exact.
  ExprId add(ExprNode node);

  ExprId constant(ScalarType type, double value);
  ExprId constant(ScalarType type, std::int64_t value);
  ExprId boolean(bool value) { return constant(ScalarType::kBool, static_cast<std::int64_t>(value)); }
  ExprId load(std::uint32_t source, DType dtype, std::vector<IndexExpr> indices, ExprId guard = kNoExpr);
  ExprId index(IndexExpr e);  // int64; simplified; a kConstant node if `e` is constant
  ExprId convert(ExprId e, ScalarType to);
  ExprId round(ExprId e, DType to);
  ExprId unary(ExprOp op, ExprId a);
  ExprId binary(ExprOp op, ExprId a, ExprId b);
  ExprId select(ExprId condition, ExprId then, ExprId otherwise);
  ExprId reduce(Reduction r, std::vector<std::uint32_t> axes, ExprId body);
  // a < b, and a >= 0, as a bool; a constant if the bounds decide it.
  ExprId less(const IndexExpr& a, const IndexExpr& b);
  ExprId nonnegative(const IndexExpr& a);

  // An integer expression, clamped to [0, extent), as an index for a load.
  IndexExpr as_index(ExprId e, const IndexExpr& extent);
  // An integer expression that is known to be in [0, extent), as an index for a load. For copies of as_index results.
  IndexExpr known_index(ExprId e, const IndexExpr& extent);

 private:
  void grow_places();

  std::vector<ExprNode> nodes_;
  std::vector<std::size_t> hashes_;  // by node
  // A hash table by linear probing: each node has a place, the others hold kNoExpr. Its size is a power of two.
  std::vector<ExprId> places_;
  Bounds bounds_;
  IndexSimplifier simplifier_;
  std::size_t hash_ = 0;  // of all added nodes, in order
};

int arity(ExprOp op);                        // number of args that are always present (kLoad: 0)
std::string_view name(ExprOp op);            // "sigmoid"
std::string_view name(Reduction reduction);  // "sum"
std::string_view name(ScalarType type);      // "float32"

// Every node that the roots need, operands before users, including the loaded values that indices use. The walk does
// not go below a node for which `ends` returns true.
std::vector<ExprId> reachable(const ExprPool& pool, std::span<const ExprId> roots,
                              const std::function<bool(ExprId)>& ends = nullptr);

// For dumps and tests: "reduce sum[k<4096] (x[i, k] * 2)".
std::string to_string(const ExprPool& pool, ExprId id);

}  // namespace fusec
