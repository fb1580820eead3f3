#include "codegen/expr/emit_expr.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <numeric>
#include <utility>

#include "analysis/kernel/loads.h"
#include "ir/error.h"
#include "ir/type.h"

namespace fusec {
namespace {

// Longer expressions are split into named variables. Each word has the same length here, so that the split does not
// depend on the names of the model's values.
constexpr std::size_t kLongestInline = 90;
constexpr std::size_t kWordLength = 7;

std::size_t reading_length(std::string_view text) {
  std::size_t length = 0;
  bool in_word = false;
  for (const char c : text) {
    const bool word = c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (!word) ++length;
    if (word && !in_word) length += kWordLength;
    in_word = word;
  }
  return length;
}

// How a nest of loops over short reduction axes is unrolled, by axis. Only nests with few points are; others would need
// too many registers.
std::vector<std::optional<int>> unrolled(const ExprPool& pool, const std::vector<std::uint32_t>& axes) {
  constexpr std::int64_t kLongest = 4, kMostPoints = 64;
  std::vector<std::optional<int>> found(axes.size());
  std::int64_t points = 1;
  for (std::size_t i = axes.size(); i-- > 0;) {
    const auto count = pool.extent(axes[i]).as_constant();
    if (!count || *count < 2 || *count > kLongest) continue;
    points *= *count;
    found[i] = points <= kMostPoints ? 0 : 1;
  }
  return found;
}

}  // namespace

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
        return (writer_.wide() ? "" : "(int)") +
               (texts_[v.id].tight ? texts_[v.id].text : "(" + texts_[v.id].text + ")");
    }
    return {};
  };
  for (const NamedExpr& named : kernel.named)
    if (names_[named.expr] == kNone) names_[named.expr] = named.value;
  // Outputs first: their pointers get the plain names.
  for (const KernelOutput& output : kernel.outputs) writer.output(output.value);
  dependences_ = dependences(pool_);
}

bool ExprEmitter::depends_on(ExprId id, std::uint32_t axis) const {
  return std::binary_search(dependences_[id].begin(), dependences_[id].end(), axis);
}

std::vector<std::uint32_t> ExprEmitter::axes_of(ExprId id) const {
  const auto axes = dependences_[id];
  return {axes.begin(), axes.end()};
}

bool ExprEmitter::here(ExprId id) const {
  return std::all_of(dependences_[id].begin(), dependences_[id].end(), [&](std::uint32_t a) { return bound(a); });
}

void ExprEmitter::bind(std::uint32_t axis, std::string variable) {
  axis_text_.at(axis) = std::move(variable);
  bound_.push_back(axis);
}

void ExprEmitter::define(ExprId id, std::string text) {
  const bool element = text.ends_with(']') && text.find_first_of(" -(") > text.find('[');  // "row[4 * turn + e]"
  const bool tight = element || text.find_first_of(" -") == std::string::npos;
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

std::string ExprEmitter::plain_name(ExprId id) const {
  return pool_[id].op == ExprOp::kLoad ? writer_.preferred_name(pool_[id].source) : preferred_name(id);
}

std::string ExprEmitter::preferred_name(ExprId id) const {
  if (names_[id] != kNone) return writer_.preferred_name(names_[id]);
  const ExprNode& n = pool_[id];
  switch (n.op) {
    case ExprOp::kLoad:
      return writer_.preferred_name(n.source) + "_v";
    case ExprOp::kReduce:
      return "row_" + std::string(name(n.reduction));
    case ExprOp::kIndex:
      return "position";
    default:
      return is_float(n.type) ? "t" : n.type == ScalarType::kBool ? "holds" : "n";
  }
}

void ExprEmitter::declare(ExprId id, const Text& text) {
  define(id, writer_.declared("const " + c_type(pool_[id].type), preferred_name(id), text.text));
}

std::vector<std::string> ExprEmitter::emit(const std::vector<ExprId>& roots) {
  emit_block(roots);
  std::vector<std::string> texts;
  for (const ExprId root : roots) texts.push_back(texts_[root].text);
  return texts;
}

void ExprEmitter::emit_independent(const std::vector<ExprId>& roots) {
  // emit_block skips roots that depend on unbound axes, as parts of an inner loop.
  emit_block(roots);
}

void ExprEmitter::emit_block(const std::vector<ExprId>& roots) {
  std::vector<ExprId> todo;
  for (const ExprId id : reachable_until(roots)) todo.push_back(id);
  // Per node: its uses in this block, and whether an inner loop uses it.
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
    const bool of_indices = compares_indices(n);
    for (const ExprId a : n.args)
      if (a != kNoExpr && !of_indices) use(a, false);
    for (const IndexExpr& e : n.indices)
      for (const Variable v : variables_of(e))
        if (v.kind == Variable::Kind::kValue) use(v.id, true);
    if (n.op == ExprOp::kIsNan || n.op == ExprOp::kAbs) uses[n.args[0]] += 1;  // the text contains the operand twice
    if (n.op == ExprOp::kReduce && here(id)) ++level[id];
  }
  std::erase_if(todo, [&](ExprId id) { return !here(id); });
  std::stable_sort(todo.begin(), todo.end(), [&](ExprId a, ExprId b) { return level[a] < level[b]; });
  for (std::size_t i = 0; i < todo.size();) {
    // Reductions of this level come first: they need only values of earlier levels.
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
      if (n.op == ExprOp::kReduce || available(id) || uses[id] == 0) continue;
      const Text text = make(id);
      const bool trivial = n.op == ExprOp::kConstant;
      const bool root = uses[id] == 1 && std::find(roots.begin(), roots.end(), id) != roots.end();
      const bool named = names_[id] != kNone && n.op != ExprOp::kLoad && !root;
      if (!trivial && (uses[id] >= kMany || named || reading_length(text.text) > kLongestInline)) {
        declare(id, text);
      } else {
        texts_[id] = text;
        defined_.push_back(id);
      }
    }
    i = end;
  }
}

// True if both sides can be printed as the integer index expressions that they convert.
bool ExprEmitter::compares_indices(const ExprNode& n) const {
  if (writer_.wide() || n.op < ExprOp::kEq || n.op > ExprOp::kGe) return false;
  const auto is_int = [&](ExprId id) {
    const ExprNode& side = pool_[id];
    if (side.op == ExprOp::kConstant)
      return side.type == ScalarType::kInt64 && side.integer == static_cast<std::int32_t>(side.integer);
    return side.op == ExprOp::kIndex && std::ranges::none_of(variables_of(side.indices[0]), [](Variable v) {
             return v.kind == Variable::Kind::kValue;
           });
  };
  return is_int(n.args[0]) && is_int(n.args[1]);
}

// Like `reachable`, but without available nodes and what only these need.
std::vector<ExprId> ExprEmitter::reachable_until(const std::vector<ExprId>& roots) const {
  const auto is_available = [this](ExprId id) { return available(id); };
  std::vector<ExprId> order = reachable(pool_, roots, is_available);
  std::erase_if(order, is_available);
  return order;
}

void ExprEmitter::serial_loops(const std::vector<ExprId>& reductions) {
  std::vector<Accumulator> accumulators;
  for (const ExprId r : reductions) {
    accumulators.push_back(accumulator(r));
    const Accumulator& a = accumulators.back();
    if (a.extreme)
      writer_.line(fmt::format("{} {}{};", a.type, a.name, a.identity));
    else
      writer_.declare(a.type, a.name, a.identity);
  }
  const Mark outside = mark();
  const std::vector<std::uint32_t>& axes = pool_[reductions[0]].axes;
  const std::vector<std::optional<int>> copies = unrolled(pool_, axes);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::uint32_t axis = axes[i];
    const std::string variable = writer_.unique("k");
    const IndexExpr& extent = pool_.extent(axis);
    writer_.open_for(writer_.index_type(), variable, index_text_.tight(extent), copies[i]);
    bind(axis, variable);
  }
  const bool rise = std::exchange(positions_rise, true);
  accumulate(accumulators);
  positions_rise = rise;
  rewind(outside);
  for (std::size_t i = 0; i < axes.size(); ++i) writer_.end();
  for (const Accumulator& a : accumulators) define(a.reduction, result(a));
}

std::string store_text(KernelWriter& writer, const KernelOutput& output, std::string_view position,
                       std::string_view value) {
  writer.use(output.type.dtype);
  return fmt::format("{}[{}] = {};", writer.output(output.value), position, narrow(output.type.dtype, value));
}

void store_scalar(KernelWriter& writer, const KernelOutput& output, const CExpr& position, std::string_view value) {
  writer.use(output.type.dtype);
  writer.assign(element(writer.output(output.value), position), narrow(output.type.dtype, value));
}

}  // namespace fusec
