#include "codegen/emit_expr.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <numeric>

#include "ir/error.h"
#include "ir/type.h"

namespace fusec {
namespace {

// Longer expressions are cut into named pieces.
constexpr std::size_t kLongestInline = 90;

std::vector<std::uint32_t> united(const std::vector<std::uint32_t>& a, const std::vector<std::uint32_t>& b) {
  std::vector<std::uint32_t> u;
  std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(u));
  return u;
}

std::vector<std::uint32_t> axes_in(const IndexExpr& e) {
  std::vector<std::uint32_t> axes;
  for (const Variable v : variables_of(e))
    if (v.kind == Variable::Kind::kAxis) axes.push_back(v.id);
  std::sort(axes.begin(), axes.end());
  return axes;
}

bool is_extreme(const ExprNode& n) {
  return n.reduction == Reduction::kArgMax || n.reduction == Reduction::kArgMin;
}

std::string least_value(ScalarType t) {
  switch (t) {
    case ScalarType::kBool:
      return "false";
    case ScalarType::kInt32:
      return "(-2147483647 - 1)";
    case ScalarType::kInt64:
      return "(-9223372036854775807ll - 1)";
    case ScalarType::kUInt32:
      return "0u";
    case ScalarType::kUInt64:
      return "0ull";
    case ScalarType::kFloat32:
      return "__uint_as_float(0xff800000u)";
    case ScalarType::kFloat64:
      return "__longlong_as_double((long long)0xfff0000000000000ull)";
  }
  return {};
}

std::string greatest_value(ScalarType t) {
  switch (t) {
    case ScalarType::kBool:
      return "true";
    case ScalarType::kInt32:
      return "2147483647";
    case ScalarType::kInt64:
      return "9223372036854775807ll";
    case ScalarType::kUInt32:
      return "4294967295u";
    case ScalarType::kUInt64:
      return "18446744073709551615ull";
    case ScalarType::kFloat32:
      return "__uint_as_float(0x7f800000u)";
    case ScalarType::kFloat64:
      return "__longlong_as_double(0x7ff0000000000000ll)";
  }
  return {};
}

std::string zero(ScalarType t) {
  ExprNode n;
  n.type = t;
  return constant_text(n);
}

}  // namespace

std::string constant_text(const ExprNode& n) {
  char digits[64];
  switch (n.type) {
    case ScalarType::kBool:
      return n.integer ? "true" : "false";
    case ScalarType::kInt32:
      return n.integer == -2147483648ll ? "(-2147483647 - 1)" : std::to_string(n.integer);
    case ScalarType::kUInt32:
      return std::to_string(static_cast<std::uint32_t>(n.integer)) + "u";
    case ScalarType::kInt64:
      return n.integer == INT64_MIN ? "(-9223372036854775807ll - 1)" : std::to_string(n.integer) + "ll";
    case ScalarType::kUInt64:
      return std::to_string(static_cast<std::uint64_t>(n.integer)) + "ull";
    case ScalarType::kFloat32: {
      const auto v = static_cast<float>(n.real);
      if (!std::isfinite(v)) return fmt::format("__uint_as_float(0x{:08x}u)", std::bit_cast<std::uint32_t>(v));
      std::string text(digits, std::to_chars(digits, digits + sizeof digits, v).ptr);
      if (text.find_first_of(".e") == std::string::npos) text += ".0";
      return text + "f";
    }
    case ScalarType::kFloat64: {
      if (!std::isfinite(n.real))
        return fmt::format("__longlong_as_double((long long)0x{:016x}ull)", std::bit_cast<std::uint64_t>(n.real));
      std::string text(digits, std::to_chars(digits, digits + sizeof digits, n.real).ptr);
      if (text.find_first_of(".e") == std::string::npos) text += ".0";
      return text;
    }
  }
  return {};
}

ExprEmitter::ExprEmitter(const Kernel& kernel, KernelWriter& writer)
    : kernel_(kernel),
      pool_(kernel.pool),
      writer_(writer),
      index_text_{kernel.pool.bounds(), writer.wide(), {}, &writer.prelude},
      texts_(kernel.pool.size()),
      axis_text_(kernel.pool.bounds().axes.size()),
      names_(kernel.pool.size(), kNone) {
  index_text_.variable = [this](Variable v) -> std::string {
    switch (v.kind) {
      case Variable::Kind::kSymbol:
        return writer_.symbol(v.id);
      case Variable::Kind::kAxis:
        if (!bound(v.id)) throw InternalError("an index mentions an axis that has no variable");
        return axis_text_[v.id];
      case Variable::Kind::kValue:
        if (!available(v.id)) throw InternalError("an index mentions a value that was not emitted");
        return writer_.wide() ? texts_[v.id].text : "(int)" + texts_[v.id].text;
    }
    return {};
  };
  for (const NamedExpr& named : kernel.named)
    if (names_[named.expr] == kNone) names_[named.expr] = named.value;
  for (const KernelOutput& output : kernel.outputs) writer.output(output.value);  // the pointers have the plain names
  compute_dependences();
}

void ExprEmitter::compute_dependences() {
  dependences_.assign(pool_.size(), {});
  for (ExprId id = 0; id < pool_.size(); ++id) {  // operands stand before their users
    const ExprNode& n = pool_[id];
    std::vector<std::uint32_t>& mine = dependences_[id];
    for (const ExprId a : n.args)
      if (a != kNoExpr) mine = united(mine, dependences_[a]);
    for (const IndexExpr& e : n.indices) {
      mine = united(mine, axes_in(e));
      for (const Variable v : variables_of(e))
        if (v.kind == Variable::Kind::kValue) mine = united(mine, dependences_[v.id]);
    }
    if (n.op != ExprOp::kReduce) continue;
    std::erase_if(mine, [&](std::uint32_t a) { return std::find(n.axes.begin(), n.axes.end(), a) != n.axes.end(); });
    for (const std::uint32_t a : n.axes) mine = united(mine, axes_in(pool_.extent(a)));
  }
}

bool ExprEmitter::depends_on(ExprId id, std::uint32_t axis) const {
  return std::binary_search(dependences_[id].begin(), dependences_[id].end(), axis);
}

std::vector<std::uint32_t> ExprEmitter::axes_of(ExprId id) const {
  return dependences_[id];
}

bool ExprEmitter::here(ExprId id) const {
  return std::all_of(dependences_[id].begin(), dependences_[id].end(), [&](std::uint32_t a) { return bound(a); });
}

void ExprEmitter::bind(std::uint32_t axis, std::string variable) {
  axis_text_.at(axis) = std::move(variable);
  bound_.push_back(axis);
}

void ExprEmitter::define(ExprId id, std::string text) {
  const bool tight = text.find_first_of(" -") == std::string::npos;
  texts_[id] = {std::move(text), tight};
  defined_.push_back(id);
}

void ExprEmitter::rewind(Mark mark) {
  for (; defined_.size() > mark.defined; defined_.pop_back()) texts_[defined_.back()] = {};
  for (; bound_.size() > mark.axes; bound_.pop_back()) axis_text_[bound_.back()].clear();
}

IndexExpr ExprEmitter::position(ExprId load) const {
  const ExprNode& n = pool_[load];
  return simplify(flat_index(writer_.tensor_type(n.source).shape, n.indices), pool_.bounds());
}

std::string ExprEmitter::wish(ExprId id) const {
  if (names_[id] != kNone) return writer_.wish(names_[id]);
  const ExprNode& n = pool_[id];
  switch (n.op) {
    case ExprOp::kLoad:
      return writer_.wish(n.source) + "_v";
    case ExprOp::kReduce:
      return "row_" + std::string(name(n.reduction));
    case ExprOp::kIndex:
      return "position";
    default:
      return is_float(n.type) ? "t" : n.type == ScalarType::kBool ? "holds" : "n";
  }
}

std::string ExprEmitter::arg(const ExprNode& n, std::size_t i) const {
  const Text& t = texts_[n.args[i]];
  return t.tight ? t.text : "(" + t.text + ")";
}

std::string ExprEmitter::loose(const ExprNode& n, std::size_t i) const {
  return texts_[n.args[i]].text;
}

ExprEmitter::Text ExprEmitter::call(std::string_view function, const ExprNode& n) const {
  std::string text = std::string(function) + "(";
  for (std::size_t i = 0; i < static_cast<std::size_t>(arity(n.op)); ++i) text += (i ? ", " : "") + loose(n, i);
  return {text + ")", true};
}

ExprEmitter::Text ExprEmitter::make_load(ExprId id) {
  const ExprNode& n = pool_[id];
  std::string text;
  if (load_text) text = load_text(id);
  if (text.empty()) {
    const std::string at = index(position(id));
    const std::string& pointer = writer_.input(n.source);
    if (bits(n.dtype) == 4) {
      writer_.use("nibble");
      text = widen(n.dtype, fmt::format("nibble({}, {})", pointer, at));
    } else {
      text = widen(n.dtype, fmt::format("{}[{}]", pointer, at));
    }
  }
  if (n.args[0] == kNoExpr) return {text, !text.starts_with("(int)") && !text.starts_with("(unsigned)")};
  return {fmt::format("{} ? {} : {}", arg(n, 0), text, zero(n.type)), false};
}

// Sums, differences and products: integers wrap, floats contract only where they may.
ExprEmitter::Text ExprEmitter::arithmetic(const ExprNode& n) const {
  const char* sign = n.op == ExprOp::kAdd ? "+" : n.op == ExprOp::kSub ? "-" : "*";
  const char* word = n.op == ExprOp::kAdd ? "add" : n.op == ExprOp::kSub ? "sub" : "mul";
  if (n.type == ScalarType::kInt32 || n.type == ScalarType::kInt64) {
    writer_.use("int_arithmetic");
    return call(fmt::format("wrap_{}", word), n);
  }
  if (kernel_.exact_steps && is_float(n.type))
    return call(fmt::format("__{}{}_rn", n.type == ScalarType::kFloat32 ? "f" : "d", word), n);
  if (n.type == ScalarType::kBool)
    return {fmt::format("{} {} {}", arg(n, 0),
                        n.op == ExprOp::kAdd   ? "||"
                        : n.op == ExprOp::kSub ? "!="
                                               : "&&",
                        arg(n, 1)),
            false};
  return {fmt::format("{} {} {}", arg(n, 0), sign, arg(n, 1)), false};
}

ExprEmitter::Text ExprEmitter::unary(const ExprNode& n) {
  const bool real = is_float(n.type);
  const std::string suffix = n.type == ScalarType::kFloat32 ? "f" : "";
  switch (n.op) {
    case ExprOp::kNeg:
      if (real || n.type == ScalarType::kUInt32 || n.type == ScalarType::kUInt64) return {"-" + arg(n, 0), false};
      if (n.type == ScalarType::kBool) return {loose(n, 0), false};
      writer_.use("int_arithmetic");
      return call("wrap_neg", n);
    case ExprOp::kAbs:
      if (real) return call("fabs" + suffix, n);
      if (n.type == ScalarType::kInt32 || n.type == ScalarType::kInt64) {
        writer_.use("int_arithmetic");
        return {fmt::format("{0} < 0 ? wrap_neg({1}) : {1}", arg(n, 0), loose(n, 0)), false};
      }
      return {loose(n, 0), false};
    case ExprOp::kSign:
      writer_.use("sign");
      return call("sign_of", n);
    case ExprOp::kSigmoid:
      writer_.use("sigmoid");
      return call("sigmoid", n);
    case ExprOp::kReciprocal:
      return {(n.type == ScalarType::kFloat32 ? "1.0f / " : "1.0 / ") + arg(n, 0), false};
    case ExprOp::kRsqrt:
      if (n.type == ScalarType::kFloat64) return {"1.0 / sqrt(" + loose(n, 0) + ")", false};
      return call("rsqrtf", n);
    case ExprOp::kFloor:
    case ExprOp::kCeil:
    case ExprOp::kTrunc:
      if (!real) return {loose(n, 0), false};
      return call(std::string(name(n.op)) + suffix, n);
    case ExprOp::kRoundEven:
      if (!real) return {loose(n, 0), false};
      return call("rint" + suffix, n);
    case ExprOp::kNot:
      return {"!" + arg(n, 0), true};
    case ExprOp::kBitNot:
      if (n.type == ScalarType::kBool) return {"!" + arg(n, 0), true};
      return {"~" + arg(n, 0), true};
    case ExprOp::kIsNan:
      if (!is_float(pool_[n.args[0]].type)) return {"false", true};
      return {fmt::format("{0} != {0}", arg(n, 0)), false};
    case ExprOp::kIsInf:
      if (!is_float(pool_[n.args[0]].type)) return {"false", true};
      writer_.use("is_inf");
      return call("is_inf", n);
    default:  // the mathematical functions have the names of C's
      return call(std::string(name(n.op)) + suffix, n);
  }
}

ExprEmitter::Text ExprEmitter::binary(const ExprNode& n) {
  const bool real = is_float(pool_[n.args[0]].type);
  const std::string suffix = pool_[n.args[0]].type == ScalarType::kFloat32 ? "f" : "";
  auto infix = [&](std::string_view sign) -> Text {
    return {fmt::format("{} {} {}", arg(n, 0), sign, arg(n, 1)), false};
  };
  auto helper = [&](const char* part, std::string_view function) {
    writer_.use(part);
    return call(function, n);
  };
  const bool boolean = pool_[n.args[0]].type == ScalarType::kBool;
  switch (n.op) {
    case ExprOp::kAdd:
    case ExprOp::kSub:
    case ExprOp::kMul:
      return arithmetic(n);
    case ExprOp::kDiv:
      return real ? infix("/") : helper("int_division", "int_div");
    case ExprOp::kPow:
      return real ? call("pow" + suffix, n) : helper("int_pow", "int_pow");
    case ExprOp::kMax:
    case ExprOp::kMin: {
      const bool greatest = n.op == ExprOp::kMax;
      if (boolean) return infix(greatest ? "||" : "&&");
      if (real) return helper("nan_max", greatest ? "nan_max" : "nan_min");
      return call(greatest ? "max" : "min", n);
    }
    case ExprOp::kFloorDiv:
      return real ? helper("float_floor_division", "float_floor_div") : helper("int_division", "int_floor_div");
    case ExprOp::kFloorMod:
      return real ? helper("float_floor_division", "float_floor_mod") : helper("int_division", "int_floor_mod");
    case ExprOp::kFmod:
      return real ? call("fmod" + suffix, n) : helper("int_division", "int_fmod");
    case ExprOp::kAtan2:
      return call("atan2" + suffix, n);
    case ExprOp::kEq:
      return infix("==");
    case ExprOp::kNe:
      return infix("!=");
    case ExprOp::kLt:
      return infix("<");
    case ExprOp::kLe:
      return infix("<=");
    case ExprOp::kGt:
      return infix(">");
    case ExprOp::kGe:
      return infix(">=");
    case ExprOp::kAnd:
      return infix(boolean ? "&&" : "&");
    case ExprOp::kOr:
      return infix(boolean ? "||" : "|");
    case ExprOp::kXor:
      return infix(boolean ? "!=" : "^");
    case ExprOp::kShl:
      return helper("shift", "shift_left");
    case ExprOp::kShr:
      return helper("shift", "shift_right");
    default:
      throw InternalError("no binary operation: " + std::string(name(n.op)));
  }
}

ExprEmitter::Text ExprEmitter::make(ExprId id) {
  const ExprNode& n = pool_[id];
  switch (n.op) {
    case ExprOp::kConstant: {
      std::string text = constant_text(n);
      const bool tight = !text.starts_with("-");
      return {std::move(text), tight};
    }
    case ExprOp::kLoad:
      return make_load(id);
    case ExprOp::kIndex:
      return {"(long long)" + index_text_.tight(n.indices[0]), false};
    case ExprOp::kConvert:
      if (n.type == ScalarType::kBool) return {arg(n, 0) + " != 0", false};
      return {fmt::format("({}){}", c_type(n.type), arg(n, 0)), false};
    case ExprOp::kRound: {
      writer_.use(n.dtype);
      if (n.dtype == DType::kUInt4) return {fmt::format("{} & 15u", arg(n, 0)), false};
      const std::string narrowed = narrow(n.dtype, loose(n, 0));
      return {widen(n.dtype, narrowed), is_float(n.dtype) || n.dtype == DType::kInt4};
    }
    case ExprOp::kBitcast: {
      const ScalarType from = pool_[n.args[0]].type;
      if (n.type == ScalarType::kFloat32)
        return call(from == ScalarType::kUInt32 ? "__uint_as_float" : "__int_as_float", n);
      if (n.type == ScalarType::kFloat64) return {fmt::format("__longlong_as_double((long long){})", arg(n, 0)), true};
      if (from == ScalarType::kFloat32)
        return call(n.type == ScalarType::kUInt32 ? "__float_as_uint" : "__float_as_int", n);
      if (from == ScalarType::kFloat64)
        return {fmt::format("({})__double_as_longlong({})", c_type(n.type), loose(n, 0)), false};
      return {fmt::format("({}){}", c_type(n.type), arg(n, 0)), false};
    }
    case ExprOp::kSelect:
      return {fmt::format("{} ? {} : {}", arg(n, 0), arg(n, 1), arg(n, 2)), false};
    case ExprOp::kFma:
      if (!is_float(n.type)) {
        writer_.use("int_arithmetic");
        return {fmt::format("wrap_add(wrap_mul({}, {}), {})", loose(n, 0), loose(n, 1), loose(n, 2)), true};
      }
      return call(n.type == ScalarType::kFloat32 ? "fmaf" : "fma", n);
    case ExprOp::kReduce:
      throw InternalError("a reduction is no expression of C");
    default:
      return arity(n.op) == 1 ? unary(n) : binary(n);
  }
}

void ExprEmitter::declare(ExprId id, const Text& text) {
  const std::string variable = writer_.unique(wish(id));
  writer_.line(fmt::format("const {} {} = {};", c_type(pool_[id].type), variable, text.text));
  define(id, variable);
}

std::vector<std::string> ExprEmitter::emit(const std::vector<ExprId>& roots) {
  emit_block(roots);
  std::vector<std::string> texts;
  for (const ExprId root : roots) texts.push_back(texts_[root].text);
  return texts;
}

void ExprEmitter::emit_independent(const std::vector<ExprId>& roots) {
  // Roots that depend on unbound axes are skipped by the block as parts of a deeper one.
  emit_block(roots);
}

void ExprEmitter::emit_block(const std::vector<ExprId>& roots) {
  std::vector<ExprId> todo;
  for (const ExprId id : reachable_until(roots)) todo.push_back(id);
  // How often each is used by what is emitted in this block, and whether a deeper loop uses it.
  std::vector<std::uint32_t> uses(pool_.size(), 0);
  std::vector<std::uint32_t> level(pool_.size(), 0);
  constexpr std::uint32_t kMany = 2;
  for (const ExprId root : roots) ++uses[root];
  for (const ExprId id : todo) {
    const ExprNode& n = pool_[id];
    const bool inside_loop = !here(id) || n.op == ExprOp::kReduce;
    auto use = [&](ExprId operand, bool by_index) {
      uses[operand] += inside_loop || by_index ? kMany : 1;
      level[id] = std::max(level[id], level[operand]);
    };
    for (const ExprId a : n.args)
      if (a != kNoExpr) use(a, false);
    for (const IndexExpr& e : n.indices)
      for (const Variable v : variables_of(e))
        if (v.kind == Variable::Kind::kValue) use(v.id, true);
    if (n.op == ExprOp::kIsNan || n.op == ExprOp::kAbs) uses[n.args[0]] += 1;  // the text mentions it twice
    if (n.op == ExprOp::kReduce && here(id)) ++level[id];
  }
  std::erase_if(todo, [&](ExprId id) { return !here(id); });
  std::stable_sort(todo.begin(), todo.end(), [&](ExprId a, ExprId b) { return level[a] < level[b]; });
  for (std::size_t i = 0; i < todo.size();) {
    // Reductions of this level first: they need only what earlier levels made.
    std::size_t end = i;
    while (end < todo.size() && level[todo[end]] == level[todo[i]]) ++end;
    std::vector<ExprId> reductions;
    for (std::size_t k = i; k < end; ++k)
      if (pool_[todo[k]].op == ExprOp::kReduce) reductions.push_back(todo[k]);
    while (!reductions.empty()) {
      std::vector<ExprId> together, others;
      for (const ExprId r : reductions) (pool_[r].axes == pool_[reductions[0]].axes ? together : others).push_back(r);
      if (!reduce_hook || !reduce_hook(together)) serial_loops(together);
      reductions = std::move(others);
    }
    for (std::size_t k = i; k < end; ++k) {
      const ExprId id = todo[k];
      const ExprNode& n = pool_[id];
      if (n.op == ExprOp::kReduce || available(id)) continue;
      const Text text = make(id);
      const bool trivial = n.op == ExprOp::kConstant;
      const bool root = uses[id] == 1 && std::find(roots.begin(), roots.end(), id) != roots.end();
      const bool named = names_[id] != kNone && n.op != ExprOp::kLoad && !root;
      if (!trivial && (uses[id] >= kMany || named || text.text.size() > kLongestInline)) {
        declare(id, text);
      } else {
        texts_[id] = text;
        defined_.push_back(id);
      }
    }
    i = end;
  }
}

// As `reachable`, but not through what is available already.
std::vector<ExprId> ExprEmitter::reachable_until(const std::vector<ExprId>& roots) const {
  std::vector<ExprId> order;
  std::vector<std::uint8_t> state(pool_.size(), 0);
  std::vector<ExprId> stack(roots.rbegin(), roots.rend());
  while (!stack.empty()) {
    const ExprId id = stack.back();
    if (state[id] != 0 || available(id)) {
      stack.pop_back();
      if (state[id] == 1) order.push_back(id);
      state[id] = 2;
      continue;
    }
    state[id] = 1;
    const ExprNode& n = pool_[id];
    auto need = [&](ExprId operand) {
      if (state[operand] == 0) stack.push_back(operand);
    };
    for (std::size_t i = n.args.size(); i-- > 0;)
      if (n.args[i] != kNoExpr) need(n.args[i]);
    for (const IndexExpr& e : n.indices)
      for (const Variable v : variables_of(e))
        if (v.kind == Variable::Kind::kValue) need(v.id);
  }
  return order;
}

ExprEmitter::Accumulator ExprEmitter::accumulator(ExprId reduction) {
  const ExprNode& n = pool_[reduction];
  const ScalarType body = pool_[n.args[0]].type;
  Accumulator a{.reduction = reduction, .name = writer_.unique(wish(reduction)), .type = c_type(body)};
  switch (n.reduction) {
    case Reduction::kSum:
      a.identity = zero(body);
      a.combine = "Sum{}";
      break;
    case Reduction::kProd: {
      ExprNode one;
      one.type = body;
      one.integer = 1;
      one.real = 1;
      a.identity = constant_text(one);
      a.combine = "Product{}";
      break;
    }
    case Reduction::kMax:
      a.identity = least_value(body);
      a.combine = "Maximum{}";
      break;
    case Reduction::kMin:
      a.identity = greatest_value(body);
      a.combine = "Minimum{}";
      break;
    case Reduction::kAny:
      a.identity = "false";
      a.combine = "Any{}";
      break;
    case Reduction::kAll:
      a.identity = "true";
      a.combine = "All{}";
      break;
    case Reduction::kArgMax:
    case Reduction::kArgMin:
      writer_.use("extreme");
      a.extreme = true;
      a.type = "Extreme<" + a.type + ">";
      a.identity = "{" + zero(body) + ", -1}";
      a.combine = n.reduction == Reduction::kArgMax ? "FirstMaximum{}" : "FirstMinimum{}";
      break;
  }
  return a;
}

IndexExpr ExprEmitter::reduced_position(ExprId reduction) const {
  IndexExpr at = 0;
  for (const std::uint32_t a : pool_[reduction].axes) at = at * pool_.extent(a) + IndexExpr::axis(a);
  return simplify(at, pool_.bounds());
}

void ExprEmitter::accumulate(const std::vector<Accumulator>& accumulators) {
  std::vector<ExprId> bodies;
  for (const Accumulator& a : accumulators) bodies.push_back(pool_[a.reduction].args[0]);
  const std::vector<std::string> values = emit(bodies);
  for (std::size_t i = 0; i < accumulators.size(); ++i) {
    const Accumulator& a = accumulators[i];
    const ExprNode& n = pool_[a.reduction];
    const ScalarType type = pool_[n.args[0]].type;
    const bool exact = kernel_.exact_steps && is_float(type);
    const bool whole = type == ScalarType::kInt32 || type == ScalarType::kInt64;
    switch (n.reduction) {
      case Reduction::kSum:
      case Reduction::kProd: {
        const bool sum = n.reduction == Reduction::kSum;
        if (exact) {
          writer_.line(fmt::format("{0} = __{1}{2}_rn({0}, {3});", a.name, type == ScalarType::kFloat32 ? "f" : "d",
                                   sum ? "add" : "mul", values[i]));
        } else if (whole) {
          writer_.use("int_arithmetic");
          writer_.line(fmt::format("{0} = wrap_{1}({0}, {2});", a.name, sum ? "add" : "mul", values[i]));
        } else if (type == ScalarType::kBool) {
          writer_.line(fmt::format("{0} = {0} {1} ({2});", a.name, sum ? "||" : "&&", values[i]));
        } else {
          writer_.line(fmt::format("{} {}= {};", a.name, sum ? "+" : "*", values[i]));
        }
        break;
      }
      case Reduction::kMax:
      case Reduction::kMin: {
        const bool greatest = n.reduction == Reduction::kMax;
        if (is_float(type)) {
          writer_.use("nan_max");
          writer_.line(fmt::format("{0} = {1}({0}, {2});", a.name, greatest ? "nan_max" : "nan_min", values[i]));
        } else if (type == ScalarType::kBool) {
          writer_.line(fmt::format("{0} = {0} {1} ({2});", a.name, greatest ? "||" : "&&", values[i]));
        } else {
          writer_.line(fmt::format("{0} = {1}({0}, {2});", a.name, greatest ? "max" : "min", values[i]));
        }
        break;
      }
      case Reduction::kAny:
        writer_.line(fmt::format("{0} = {0} || ({1});", a.name, values[i]));
        break;
      case Reduction::kAll:
        writer_.line(fmt::format("{0} = {0} && ({1});", a.name, values[i]));
        break;
      case Reduction::kArgMax:
      case Reduction::kArgMin:
        writer_.line(fmt::format("{0} = {1}({0}, {2}{{{3}, {4}}});", a.name, a.combine, a.type, values[i],
                                 "(long long)" + index_text_.tight(reduced_position(a.reduction))));
        break;
    }
  }
}

std::string ExprEmitter::result(const Accumulator& a) const {
  return a.extreme ? a.name + ".position" : a.name;
}

void ExprEmitter::serial_loops(const std::vector<ExprId>& reductions) {
  std::vector<Accumulator> accumulators;
  for (const ExprId r : reductions) {
    accumulators.push_back(accumulator(r));
    const Accumulator& a = accumulators.back();
    writer_.line(a.extreme ? fmt::format("{} {}{};", a.type, a.name, a.identity)
                           : fmt::format("{} {} = {};", a.type, a.name, a.identity));
  }
  const Mark outside = mark();
  const std::vector<std::uint32_t>& axes = pool_[reductions[0]].axes;
  for (const std::uint32_t axis : axes) {
    const std::string variable = writer_.unique("k");
    const IndexExpr& extent = pool_.extent(axis);
    if (const auto c = extent.as_constant(); c && *c >= 2 && *c <= 4) writer_.line("#pragma unroll");
    writer_.open(
        fmt::format("for ({0} {1} = 0; {1} < {2}; ++{1})", writer_.index_type(), variable, index_text_.tight(extent)));
    bind(axis, variable);
  }
  accumulate(accumulators);
  rewind(outside);
  for (std::size_t i = 0; i < axes.size(); ++i) writer_.close();
  for (const Accumulator& a : accumulators) define(a.reduction, result(a));
}

bool needs_wide_index(const Kernel& kernel, const Graph& graph, const IndexExpr& threads) {
  const Bounds& bounds = kernel.pool.bounds();
  if (!fits_int32(threads + 4096, bounds)) return true;
  std::vector<ExprId> roots;
  for (const KernelOutput& output : kernel.outputs) {
    roots.push_back(output.expr);
    if (!fits_int32(simplify(flat_index(output.type.shape, output.index), bounds), bounds)) return true;
  }
  for (const ExprId id : reachable(kernel.pool, roots)) {
    const ExprNode& n = kernel.pool[id];
    if (n.op == ExprOp::kReduce)
      for (const std::uint32_t a : n.axes)
        if (!fits_int32(kernel.pool.extent(a), bounds)) return true;
    if (n.op == ExprOp::kReduce && is_extreme(n)) {
      IndexExpr count = 1;
      for (const std::uint32_t a : n.axes) count *= kernel.pool.extent(a);
      if (!fits_int32(count, bounds)) return true;
    }
    for (const IndexExpr& e : n.indices)
      if (!fits_int32(e, bounds)) return true;
    if (n.op == ExprOp::kLoad &&
        !fits_int32(simplify(flat_index(graph.tensor(n.source).shape, n.indices), bounds), bounds))
      return true;
  }
  return false;
}

std::string store_text(KernelWriter& writer, const KernelOutput& output, std::string_view position,
                       std::string_view value) {
  writer.use(output.type.dtype);
  return fmt::format("{}[{}] = {};", writer.output(output.value), position, narrow(output.type.dtype, value));
}

}  // namespace fusec
