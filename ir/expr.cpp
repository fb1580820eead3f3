#include "ir/expr.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

#include "ir/budget.h"
#include "ir/error.h"
#include "ir/hash.h"
#include "ir/per_thread.h"

namespace fusec {
namespace {

std::size_t hash_of(const ExprNode& n) {
  std::size_t h = static_cast<std::size_t>(n.op);
  h = hash_mix(h, static_cast<std::size_t>(n.type));
  h = hash_mix(h, static_cast<std::size_t>(n.dtype));
  h = hash_mix(h, static_cast<std::size_t>(n.reduction));
  for (const ExprId a : n.args) h = hash_mix(h, a);
  h = hash_mix(h, n.source);
  h = hash_mix(h, static_cast<std::size_t>(n.integer));
  h = hash_mix(h, std::hash<double>{}(n.real));
  for (const IndexExpr& e : n.indices) h = hash_mix(h, e.hash());
  for (const std::uint32_t a : n.axes) h = hash_mix(h, a);
  return h;
}

// Equality for the pool: NaN equals NaN, and -0.0 differs from 0.0.
bool same_node(const ExprNode& a, const ExprNode& b) {
  const bool reals =
      std::isnan(a.real) ? std::isnan(b.real) : a.real == b.real && std::signbit(a.real) == std::signbit(b.real);
  return reals && a.op == b.op && a.type == b.type && a.dtype == b.dtype && a.reduction == b.reduction &&
         a.args == b.args && a.source == b.source && a.integer == b.integer && a.indices == b.indices &&
         a.axes == b.axes;
}

std::int64_t wrap(std::int64_t v, ScalarType t) {
  switch (t) {
    case ScalarType::kBool:
      return v != 0;
    case ScalarType::kInt32:
      return static_cast<std::int32_t>(v);
    case ScalarType::kUInt32:
      return static_cast<std::uint32_t>(v);
    case ScalarType::kInt64:
    case ScalarType::kUInt64:
    case ScalarType::kFloat32:
    case ScalarType::kFloat64:
      break;
  }
  return v;
}

constexpr bool is_comparison(ExprOp op) {
  return op >= ExprOp::kEq && op <= ExprOp::kGe;
}

// Integer arithmetic that is cheap to fold and common in index-like formulas.
bool fold_integers(ExprOp op, ScalarType operand, std::int64_t a, std::int64_t b, std::int64_t& result) {
  const auto ua = static_cast<std::uint64_t>(a), ub = static_cast<std::uint64_t>(b);
  const bool is_unsigned = operand == ScalarType::kUInt64;
  switch (op) {
    case ExprOp::kAdd:
      result = static_cast<std::int64_t>(ua + ub);
      return true;
    case ExprOp::kSub:
      result = static_cast<std::int64_t>(ua - ub);
      return true;
    case ExprOp::kMul:
      result = static_cast<std::int64_t>(ua * ub);
      return true;
    case ExprOp::kEq:
      result = a == b;
      return true;
    case ExprOp::kNe:
      result = a != b;
      return true;
    case ExprOp::kLt:
      result = is_unsigned ? ua < ub : a < b;
      return true;
    case ExprOp::kLe:
      result = is_unsigned ? ua <= ub : a <= b;
      return true;
    case ExprOp::kGt:
      result = is_unsigned ? ua > ub : a > b;
      return true;
    case ExprOp::kGe:
      result = is_unsigned ? ua >= ub : a >= b;
      return true;
    case ExprOp::kAnd:
      result = a & b;
      return true;
    case ExprOp::kOr:
      result = a | b;
      return true;
    case ExprOp::kXor:
      result = a ^ b;
      return true;
    default:
      return false;
  }
}

}  // namespace

ScalarType compute_type(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return ScalarType::kFloat64;
    case DType::kFloat32:
    case DType::kFloat16:
    case DType::kBFloat16:
    case DType::kFloat8E4M3FN:
    case DType::kFloat8E5M2:
    case DType::kFloat8E8M0FNU:
    case DType::kFloat4E2M1FN:
      return ScalarType::kFloat32;
    case DType::kInt64:
      return ScalarType::kInt64;
    case DType::kInt32:
    case DType::kInt16:
    case DType::kInt8:
    case DType::kInt4:
      return ScalarType::kInt32;
    case DType::kUInt64:
      return ScalarType::kUInt64;
    case DType::kUInt32:
    case DType::kUInt16:
    case DType::kUInt8:
    case DType::kUInt4:
      return ScalarType::kUInt32;
    case DType::kBool:
      return ScalarType::kBool;
  }
  throw InternalError("unknown dtype");
}

int arity(ExprOp op) {
  if (op <= ExprOp::kIndex) return 0;
  if (op <= ExprOp::kIsInf) return 1;
  if (op <= ExprOp::kShr) return 2;
  return op == ExprOp::kReduce ? 1 : 3;
}

bool operator==(const ExprPool& a, const ExprPool& b) {
  return a.hash_ == b.hash_ && std::ranges::equal(a.nodes_, b.nodes_, same_node) && a.bounds_.axes == b.bounds_.axes &&
         a.bounds_.value_max == b.bounds_.value_max && a.bounds_.symbols == b.bounds_.symbols &&
         a.bounds_.products == b.bounds_.products;
}

std::uint32_t ExprPool::new_axis(IndexExpr extent) {
  hash_ = hash_mix(hash_, extent.hash());
  bounds_.axes.push_back(std::move(extent));
  return static_cast<std::uint32_t>(bounds_.axes.size() - 1);
}

void ExprPool::grow_places() {
  places_.assign(std::bit_ceil(4 * nodes_.size() + 4), kNoExpr);
  for (ExprId id = 0; id < nodes_.size(); ++id) {
    std::size_t at = hashes_[id] & (places_.size() - 1);
    while (places_[at] != kNoExpr) at = (at + 1) & (places_.size() - 1);
    places_[at] = id;
  }
}

ExprId ExprPool::add(ExprNode node) {
  count_step();
  if (places_.size() <= 2 * nodes_.size()) grow_places();
  const std::size_t h = hash_of(node);
  std::size_t at = h & (places_.size() - 1);
  for (; places_[at] != kNoExpr; at = (at + 1) & (places_.size() - 1))
    if (hashes_[places_[at]] == h && same_node(nodes_[places_[at]], node)) return places_[at];
  const ExprId id = static_cast<ExprId>(nodes_.size());
  nodes_.push_back(std::move(node));
  hashes_.push_back(h);
  places_[at] = id;
  hash_ = hash_mix(hash_, h);
  return id;
}

ExprId ExprPool::constant(ScalarType type, double value) {
  if (type == ScalarType::kBool) return boolean(value != 0);
  if (!is_float(type)) return constant(type, static_cast<std::int64_t>(value));
  ExprNode n;
  n.type = type;
  n.real = type == ScalarType::kFloat32 ? static_cast<double>(static_cast<float>(value)) : value;
  return add(std::move(n));
}

ExprId ExprPool::constant(ScalarType type, std::int64_t value) {
  if (is_float(type)) return constant(type, static_cast<double>(value));
  ExprNode n;
  n.type = type;
  n.integer = wrap(value, type);
  return add(std::move(n));
}

ExprId ExprPool::load(std::uint32_t source, DType dtype, std::vector<IndexExpr> indices, ExprId guard) {
  if (guard != kNoExpr && nodes_[guard].op == ExprOp::kConstant) {
    if (nodes_[guard].integer == 0) return constant(compute_type(dtype), std::int64_t{0});
    guard = kNoExpr;
  }
  ExprNode n;
  n.op = ExprOp::kLoad;
  n.type = compute_type(dtype);
  n.dtype = dtype;
  n.source = source;
  n.args[0] = guard;
  for (IndexExpr& e : indices) e = simplified(e);
  n.indices = std::move(indices);
  return add(std::move(n));
}

ExprId ExprPool::index(IndexExpr e) {
  e = simplified(e);
  if (const auto c = e.as_constant()) return constant(ScalarType::kInt64, *c);
  if (const auto v = e.as_variable(); v && v->kind == Variable::Kind::kValue) return v->id;
  ExprNode n;
  n.op = ExprOp::kIndex;
  n.type = ScalarType::kInt64;
  n.indices.push_back(std::move(e));
  return add(std::move(n));
}

ExprId ExprPool::convert(ExprId e, ScalarType to) {
  const ExprNode& n = nodes_[e];
  if (n.type == to) return e;
  if (n.op == ExprOp::kConstant) {
    if (is_float(n.type)) {
      if (is_float(to)) return constant(to, n.real);
      if (to == ScalarType::kBool) return boolean(n.real != 0);
      if (std::abs(n.real) < 9e18) return constant(to, static_cast<std::int64_t>(n.real));
    } else if (n.type != ScalarType::kUInt64) {
      return constant(to, n.integer);
    }
  }
  ExprNode c;
  c.op = ExprOp::kConvert;
  c.type = to;
  c.args[0] = e;
  return add(std::move(c));
}

ExprId ExprPool::round(ExprId e, DType to) {
  const ExprNode& n = nodes_[e];
  if (n.type != compute_type(to)) throw InternalError("round keeps the compute type; convert first");
  if (to == DType::kFloat32 || to == DType::kFloat64 || to == DType::kInt32 || to == DType::kInt64 ||
      to == DType::kUInt32 || to == DType::kUInt64 || to == DType::kBool)
    return e;
  if ((n.op == ExprOp::kRound || (n.op == ExprOp::kLoad)) && n.dtype == to) return e;
  if (n.op == ExprOp::kConstant && !is_float(n.type)) {
    const int width = bits(to);
    std::int64_t v = n.integer & ((std::int64_t{1} << width) - 1);
    if (info(to).is_signed && (v >> (width - 1))) v -= std::int64_t{1} << width;
    return constant(n.type, v);
  }
  ExprNode r;
  r.op = ExprOp::kRound;
  r.type = n.type;
  r.dtype = to;
  r.args[0] = e;
  return add(std::move(r));
}

ExprId ExprPool::unary(ExprOp op, ExprId a) {
  const ExprNode& x = nodes_[a];
  if (op == ExprOp::kNot && x.op == ExprOp::kConstant) return boolean(x.integer == 0);
  if (op == ExprOp::kNot && x.op == ExprOp::kNot) return x.args[0];
  if (op == ExprOp::kNeg && x.op == ExprOp::kConstant)
    return is_float(x.type) ? constant(x.type, -x.real)
                            : constant(x.type, static_cast<std::int64_t>(-static_cast<std::uint64_t>(x.integer)));
  ExprNode n;
  n.op = op;
  n.type = op == ExprOp::kNot || op == ExprOp::kIsNan || op == ExprOp::kIsInf ? ScalarType::kBool : x.type;
  n.args[0] = a;
  return add(std::move(n));
}

ExprId ExprPool::binary(ExprOp op, ExprId a, ExprId b) {
  const ExprNode& x = nodes_[a];
  const ExprNode& y = nodes_[b];
  const bool shift = op == ExprOp::kShl || op == ExprOp::kShr;
  if (!shift && x.type != y.type)
    throw InternalError("operands of " + std::string(name(op)) + " differ in type: " + std::string(name(x.type)) +
                        " and " + std::string(name(y.type)));
  const ScalarType type = is_comparison(op) ? ScalarType::kBool : x.type;
  const bool whole = !is_float(x.type);
  if (whole && !shift && x.op == ExprOp::kConstant && y.op == ExprOp::kConstant) {
    std::int64_t r;
    if (fold_integers(op, x.type, x.integer, y.integer, r)) return constant(type, r);
  }
  if (x.type == ScalarType::kBool && (op == ExprOp::kAnd || op == ExprOp::kOr)) {
    for (const auto& [known, other] : {std::pair{a, b}, std::pair{b, a}})
      if (nodes_[known].op == ExprOp::kConstant) {
        const bool value = nodes_[known].integer != 0;
        if (op == ExprOp::kAnd) return value ? other : boolean(false);
        return value ? boolean(true) : other;
      }
    if (a == b) return a;
  }
  if (whole && y.op == ExprOp::kConstant) {
    if (y.integer == 0 && (op == ExprOp::kAdd || op == ExprOp::kSub)) return a;
    if (y.integer == 1 && op == ExprOp::kMul) return a;
  }
  // x * 1 and x / 1 are exactly x in any format.
  if (!whole && y.op == ExprOp::kConstant && y.real == 1.0 && (op == ExprOp::kMul || op == ExprOp::kDiv)) return a;
  if (!whole && x.op == ExprOp::kConstant && x.real == 1.0 && op == ExprOp::kMul) return b;
  ExprNode n;
  n.op = op;
  n.type = type;
  n.args[0] = a;
  n.args[1] = b;
  return add(std::move(n));
}

ExprId ExprPool::select(ExprId condition, ExprId then, ExprId otherwise) {
  if (nodes_[then].type != nodes_[otherwise].type) throw InternalError("the sides of a select differ in type");
  if (nodes_[condition].type != ScalarType::kBool) throw InternalError("the condition of a select is no bool");
  if (nodes_[condition].op == ExprOp::kConstant) return nodes_[condition].integer ? then : otherwise;
  if (then == otherwise) return then;
  ExprNode n;
  n.op = ExprOp::kSelect;
  n.type = nodes_[then].type;
  n.args = {condition, then, otherwise};
  return add(std::move(n));
}

ExprId ExprPool::reduce(Reduction r, std::vector<std::uint32_t> axes, ExprId body) {
  if (axes.empty()) {
    if (r == Reduction::kArgMax || r == Reduction::kArgMin) return constant(ScalarType::kInt64, std::int64_t{0});
    // A sum starts with +0, so -0 becomes +0.
    const ScalarType type = nodes_[body].type;
    return r == Reduction::kSum && is_float(type) ? binary(ExprOp::kAdd, body, constant(type, 0.0)) : body;
  }
  ExprNode n;
  n.op = ExprOp::kReduce;
  n.type = r == Reduction::kArgMax || r == Reduction::kArgMin ? ScalarType::kInt64 : nodes_[body].type;
  n.reduction = r;
  n.axes = std::move(axes);
  n.args[0] = body;
  return add(std::move(n));
}

namespace {

// An expression without division that is >= 0 if and only if e is. x // q + k >= 0 means x + k * q >= 0;
// k - x // q >= 0 means x < (k + 1) * q.
std::optional<IndexExpr> undivided(const IndexExpr& e) {
  if (e.terms().size() != 1 || e.terms()[0].factors.size() != 1) return std::nullopt;
  const IndexTerm& term = e.terms()[0];
  const IndexAtom& atom = *term.factors[0];
  const auto q = atom.kind == IndexAtom::Kind::kFloorDiv ? atom.b.as_constant() : std::nullopt;
  if (!q || *q < 1) return std::nullopt;
  if (term.coefficient == 1) return atom.a + IndexExpr(e.constant_term()) * *q;
  if (term.coefficient == -1) return (IndexExpr(e.constant_term()) + 1) * *q - 1 - atom.a;
  return std::nullopt;
}

}  // namespace

ExprId ExprPool::nonnegative(const IndexExpr& a) {
  const IndexExpr e = simplified(a);
  if (proves_nonnegative(e, bounds_)) return boolean(true);
  if (proves_nonnegative(-e - 1, bounds_)) return boolean(false);
  if (const auto whole = undivided(e)) return nonnegative(*whole);
  return binary(ExprOp::kGe, index(e), constant(ScalarType::kInt64, std::int64_t{0}));
}

ExprId ExprPool::less(const IndexExpr& a, const IndexExpr& b) {
  const IndexExpr gap = simplified(b - a - 1);
  if (proves_nonnegative(gap, bounds_)) return boolean(true);
  if (proves_nonnegative(-gap - 1, bounds_)) return boolean(false);
  if (const auto whole = undivided(gap)) return less(0, simplified(*whole + 1));
  return binary(ExprOp::kLt, index(a), index(b));
}

IndexExpr ExprPool::as_index(ExprId e, const IndexExpr& extent) {
  const ExprNode& n = nodes_[e];
  if (is_float(n.type)) throw InternalError("an index is an integer");
  if (n.op == ExprOp::kConstant && extent.is_constant()) {
    const std::int64_t last = std::max<std::int64_t>(extent.constant_term() - 1, 0);
    return n.integer < 0 ? IndexExpr(0) : IndexExpr(std::min(n.integer, last));
  }
  if (n.op == ExprOp::kIndex && proves_nonnegative(n.indices[0], bounds_) && proves_less(n.indices[0], extent, bounds_))
    return n.indices[0];
  const ExprId zero = constant(ScalarType::kInt64, std::int64_t{0});
  ExprId clamped = binary(ExprOp::kMin, convert(e, ScalarType::kInt64), index(extent - 1));
  return known_index(binary(ExprOp::kMax, clamped, zero), extent);
}

IndexExpr ExprPool::known_index(ExprId e, const IndexExpr& extent) {
  const ExprNode& n = nodes_[e];
  if (n.op == ExprOp::kConstant) return n.integer;
  if (n.op == ExprOp::kIndex) return n.indices[0];
  const IndexExpr unknown(std::numeric_limits<std::int64_t>::max());
  if (bounds_.value_max.size() <= e) bounds_.value_max.resize(e + 1, unknown);
  IndexExpr& known = bounds_.value_max[e];
  if (known != unknown && known != extent) simplifier_.forget();
  known = extent;
  return IndexExpr::value(e);
}

namespace {

// Whether the index is an axis or a symbol, the usual case.
bool is_axis_or_symbol(const IndexExpr& e) {
  const std::optional<Variable> variable = e.as_variable();
  return variable && variable->kind != Variable::Kind::kValue;
}

// What a walk over a pool needs, kept between walks, which saves their allocations.
struct Walk {
  std::vector<ExprId> stack, order;
  std::vector<std::uint8_t> state;  // by node: 1: operands are on the stack above, 2: done
};

// Also after an exception the walk is kept. A walk inside of another one finds it empty.
struct BorrowedWalk {
  BorrowedWalk() : walk(std::exchange(kept, {})) {}
  ~BorrowedWalk() { kept = std::move(walk); }
  BorrowedWalk(const BorrowedWalk&) = delete;
  BorrowedWalk& operator=(const BorrowedWalk&) = delete;
  Walk& kept = PerThread<Walk>::get();
  Walk walk;
};

}  // namespace

std::vector<ExprId> reachable(const ExprPool& pool, std::span<const ExprId> roots,
                              const std::function<bool(ExprId)>& ends) {
  BorrowedWalk borrowed;
  auto& [stack, order, state] = borrowed.walk;
  state.assign(pool.size(), 0);
  // Without push_back, whose checks would take most of the time: each node pushes its arguments once.
  constexpr std::size_t kArguments = std::tuple_size_v<decltype(ExprNode::args)>;
  const std::size_t most = roots.size() + pool.size() * kArguments;
  if (stack.size() < most) stack.resize(most);
  if (order.size() < pool.size()) order.resize(pool.size());
  std::ranges::reverse_copy(roots, stack.begin());
  std::size_t depth = roots.size(), ordered = 0;
  const bool has_indirect_loads = pool.has_values();
  while (depth > 0) {
    const ExprId id = stack[depth - 1];
    if (state[id] != 0) {
      --depth;
      if (state[id] == 1) {
        state[id] = 2;
        order[ordered++] = id;
      }
      continue;
    }
    state[id] = 1;
    count_step();
    if (ends && ends(id)) continue;
    const ExprNode& n = pool[id];
    for (std::size_t i = n.args.size(); i-- > 0;)
      if (n.args[i] != kNoExpr && state[n.args[i]] == 0) stack[depth++] = n.args[i];
    if (!has_indirect_loads) continue;
    for (const IndexExpr& e : n.indices) {
      if (is_axis_or_symbol(e)) continue;
      for (const Variable v : variables_of(e)) {
        if (v.kind != Variable::Kind::kValue || state[v.id] != 0) continue;
        // Leaves room for the arguments of all nodes, whatever was pushed before.
        if (depth + 1 + pool.size() * kArguments > stack.size()) stack.resize(stack.size() * 2);
        stack[depth++] = v.id;
      }
    }
  }
  return {order.begin(), order.begin() + static_cast<std::ptrdiff_t>(ordered)};
}

}  // namespace fusec
