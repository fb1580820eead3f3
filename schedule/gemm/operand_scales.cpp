#include "schedule/gemm/operand_scales.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "ir/dtype.h"

namespace fusec {
namespace {

using Axes = std::vector<std::uint32_t>;
constexpr std::int64_t kMinScaleBlock = 16;  // K of one mma

std::optional<Range> range_of_dtype(DType dtype) {
  if (dtype == DType::kBool) return Range{0, 1};
  if (!is_integer(dtype) || bits(dtype) > 16) return std::nullopt;
  const std::int64_t values = std::int64_t{1} << bits(dtype);
  return info(dtype).is_signed ? Range{-values / 2, values / 2 - 1} : Range{0, values - 1};
}

// True if the dtype represents all integers in the range.
bool holds_integers(DType dtype, const Range& range) {
  const std::int64_t most = dtype == DType::kFloat16 ? 2048 : dtype == DType::kBFloat16 ? 256 : 127;
  const std::int64_t least = dtype == DType::kInt8 ? -128 : -most;
  return range.min >= least && range.max <= most;
}

bool holds_floats(DType dtype, DType stored) {
  const bool small = stored == DType::kFloat8E4M3FN || stored == DType::kFloat8E5M2 || stored == DType::kFloat4E2M1FN;
  if (dtype == DType::kBFloat16 && stored == DType::kFloat8E8M0FNU) return true;
  return (dtype == DType::kFloat16 || dtype == DType::kBFloat16) && (stored == dtype || small);
}

// The integer ranges of a pool's nodes, including float32 nodes with integer values. Operands are added before users.
class Ranges {
 public:
  explicit Ranges(const ExprPool& pool) : pool_(pool), of_(pool.size()) {}

  void add(ExprId id) { of_[id] = make(pool_[id]); }
  const std::optional<Range>& operator[](ExprId id) const { return of_[id]; }

 private:
  std::optional<Range> make(const ExprNode& n) const {
    // int32 arithmetic must not overflow, and float32 must represent all integers.
    const std::int64_t most = is_float(n.type) ? 1 << 24 : 1 << 30;
    const auto arg = [&](std::size_t i) { return n.args[i] == kNoExpr ? std::nullopt : of_[n.args[i]]; };
    std::optional<Range> a, b;
    switch (n.op) {
      case ExprOp::kConstant:
        if (!is_float(n.type)) return Range{n.integer, n.integer};
        if (std::fabs(n.real) > static_cast<double>(most) || n.real != std::floor(n.real)) return std::nullopt;
        return Range{static_cast<std::int64_t>(n.real), static_cast<std::int64_t>(n.real)};
      case ExprOp::kLoad:
        a = range_of_dtype(n.dtype);
        if (a && n.args[0] != kNoExpr) a = Range{std::min<std::int64_t>(a->min, 0), std::max<std::int64_t>(a->max, 0)};
        return a;
      case ExprOp::kRound:
        return range_of_dtype(n.dtype);
      case ExprOp::kConvert:
        a = is_float(pool_[n.args[0]].type) ? std::nullopt : arg(0);
        return a && std::max(-a->min, a->max) <= most ? a : std::nullopt;
      case ExprOp::kNeg:
        a = arg(0);
        return a ? std::optional(Range{-a->max, -a->min}) : std::nullopt;
      case ExprOp::kSelect:
        a = arg(1), b = arg(2);
        return a && b ? std::optional(Range{std::min(a->min, b->min), std::max(a->max, b->max)}) : std::nullopt;
      case ExprOp::kAdd:
      case ExprOp::kSub:
      case ExprOp::kMul:
        a = arg(0), b = arg(1);
        break;
      default:
        return std::nullopt;
    }
    if (!a || !b || (is_float(n.type) && n.type != ScalarType::kFloat32)) return std::nullopt;
    const auto near = [&](const Range& r) -> std::optional<Range> {
      return r.min < -most || r.max > most ? std::nullopt : std::optional(r);
    };
    if (!near(*a) || !near(*b)) return std::nullopt;
    if (n.op == ExprOp::kSub) b = Range{-b->max, -b->min};
    if (n.op != ExprOp::kMul) return near({a->min + b->min, a->max + b->max});
    const auto [low, high] = std::minmax({a->min * b->min, a->min * b->max, a->max * b->min, a->max * b->max});
    return near({low, high});
  }

  const ExprPool& pool_;
  std::vector<std::optional<Range>> of_;
};

bool is_load_of(const ExprNode& n, DType dtype) {
  return n.op == ExprOp::kLoad && n.dtype == dtype;
}

// The longest block of flattened K in which the index is constant; 0 if it is constant for all of K.
std::int64_t scale_block_of(const IndexExpr& index, const Axes& k, const ExprPool& pool) {
  std::int64_t inner = 1;
  for (std::size_t i = k.size(); i-- > 0;) {
    const Variable axis{Variable::Kind::kAxis, k[i]};
    const auto extent = pool.extent(k[i]).as_constant();
    if (!mentions(index, axis)) {
      const bool outer = std::any_of(k.begin(), k.begin() + static_cast<std::ptrdiff_t>(i), [&](std::uint32_t a) {
        return mentions(index, {Variable::Kind::kAxis, a});
      });
      if (!outer) return 0;
      if (!extent) return 1;
      inner *= *extent;
      continue;
    }
    std::int64_t divisor = 0;
    const IndexExpr rest = rewrite_atoms(index, [&](IndexAtom::Kind kind, IndexExpr a, IndexExpr b) -> IndexExpr {
      const auto c = b.as_constant();
      if (kind == IndexAtom::Kind::kFloorDiv && a.as_variable() == axis && c && *c > 0) {
        divisor = std::gcd(divisor, *c);
        return 0;
      }
      if (kind == IndexAtom::Kind::kFloorDiv) return floor_div(a, b);
      if (kind == IndexAtom::Kind::kMod) return floor_mod(a, b);
      return kind == IndexAtom::Kind::kMin ? min(a, b) : max(a, b);
    });
    return mentions(rest, axis) ? 1 : inner * divisor;
  }
  return 0;
}

}  // namespace

std::int64_t scale_block_of(const ExprPool& pool, ExprId value, const Axes& k) {
  std::int64_t block = 0;
  for (const ExprId id : reachable(pool, std::span(&value, 1)))
    for (const IndexExpr& e : pool[id].indices) block = common_scale_block(block, scale_block_of(e, k, pool));
  return block;
}

std::int64_t common_scale_block(std::int64_t a, std::int64_t b) {
  return std::gcd(a, b);
}

ExprId without_conversion(const ExprPool& pool, ExprId value) {
  const ExprNode& n = pool[value];
  const bool widens = n.op == ExprOp::kConvert && n.type == ScalarType::kFloat32 && !is_float(pool[n.args[0]].type);
  return widens ? n.args[0] : value;
}

bool is_exact_in(const ExprPool& pool, ExprId value, DType dtype) {
  Ranges ranges(pool);
  std::vector<std::uint8_t> holds(pool.size(), 0);
  const auto whole = [&](ExprId id) { return ranges[id] && holds_integers(dtype, *ranges[id]); };
  for (const ExprId id : reachable(pool, std::span(&value, 1))) {
    const ExprNode& n = pool[id];
    ranges.add(id);
    switch (n.op) {
      case ExprOp::kLoad:
      case ExprOp::kRound:
        holds[id] = is_float(n.dtype) ? holds_floats(dtype, n.dtype) : whole(id);
        break;
      case ExprOp::kConstant:
        holds[id] = is_float(n.type) ? n.real == std::floor(n.real) && std::fabs(n.real) <= 64 : whole(id);
        break;
      case ExprOp::kConvert:
        holds[id] = whole(n.args[0]);
        break;
      case ExprOp::kNeg:
      case ExprOp::kAbs:
        holds[id] = is_float(n.type) ? holds[n.args[0]] : whole(id);
        break;
      case ExprOp::kSelect:
        holds[id] = is_float(n.type) ? holds[n.args[1]] && holds[n.args[2]] : whole(id);
        break;
      case ExprOp::kMul: {
        const auto scaled = [&](ExprId a, ExprId b) {
          return is_load_of(pool[a], DType::kFloat4E2M1FN) && is_load_of(pool[b], DType::kFloat8E8M0FNU);
        };
        const bool power = scaled(n.args[0], n.args[1]) || scaled(n.args[1], n.args[0]);
        holds[id] = (dtype == DType::kBFloat16 && power) || whole(id);
        break;
      }
      default:
        holds[id] = whole(id);
    }
  }
  return holds[value] != 0;
}

OperandWithScales split_scales(const ExprPool& pool, ExprId operand, const Axes& k) {
  OperandWithScales parts;
  std::vector<ExprId> left{operand};
  bool several = false;
  while (!left.empty()) {
    const ExprId id = left.back();
    left.pop_back();
    const ExprNode& n = pool[id];
    if (n.op == ExprOp::kMul && n.type == ScalarType::kFloat32) {
      left.push_back(n.args[1]);
      left.push_back(n.args[0]);
      continue;
    }
    const std::int64_t block = scale_block_of(pool, id, k);
    if (block == 0 || block >= kMinScaleBlock) {
      parts.scales.push_back(id);
      parts.block = common_scale_block(parts.block, block);
      continue;
    }
    several = several || parts.value != kNoExpr;
    parts.value = id;
  }
  if (several || parts.value == kNoExpr) return {.value = operand, .scales = {}, .block = 0};
  return parts;
}

}  // namespace fusec
