#include "transforms/patterns/conditions.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/constant_data.h"
#include "ir/spelling.h"
#include "transforms/patterns/pattern_roots.h"

namespace fusec {
namespace {

using Argument = PatternCondition::Argument;

// The values and attributes behind a condition's arguments.
struct Asked {
  const PatternCondition& condition;
  const PatternCheckContext& context;

  const Graph& graph() const { return context.graph(); }
  ValueId value(std::size_t i) const { return context.match.values[condition.arguments[i].name]; }
  const std::optional<AttributeValue>& attribute(std::size_t i) const {
    return context.match.attributes[condition.arguments[i].name];
  }
  bool is_met(std::size_t i) const { return value(i) != kNone || attribute(i); }
  std::int64_t number(std::size_t i) const { return static_cast<std::int64_t>(*condition.arguments[i].number); }
  const TensorType& tensor(std::size_t i) const { return graph().tensor(value(i)); }

  std::optional<std::size_t> dim(std::size_t i, std::size_t number_at) const {
    const auto rank = static_cast<std::int64_t>(tensor(i).rank());
    const std::int64_t d = number(number_at) < 0 ? number(number_at) + rank : number(number_at);
    if (d < 0 || d >= rank) return std::nullopt;
    return static_cast<std::size_t>(d);
  }
  // The attribute as dimensions.
  std::vector<std::int64_t> dims(std::size_t i) const {
    if (const auto* one = std::get_if<std::int64_t>(&*attribute(i))) return {*one};
    if (const auto* list = std::get_if<std::vector<std::int64_t>>(&*attribute(i))) return *list;
    return {};
  }
};

bool is_number_value(const Graph& graph, ValueId v) {
  const Value::Kind kind = graph.value(v).kind;
  return kind == Value::Kind::kNumber || kind == Value::Kind::kDim;
}

bool dtype(const Asked& a) {
  if (is_number_value(a.graph(), a.value(0)) || a.graph().type(a.value(0)).is_tuple) return false;
  for (std::size_t i = 1; i < a.condition.arguments.size(); ++i)
    if (name(a.tensor(0).dtype) == a.condition.arguments[i].word) return true;
  return false;
}
bool rank(const Asked& a) {
  return static_cast<std::int64_t>(a.tensor(0).rank()) == a.number(1);
}
bool min_rank(const Asked& a) {
  return static_cast<std::int64_t>(a.tensor(0).rank()) >= a.number(1);
}
bool extent(const Asked& a) {
  const auto d = a.dim(0, 1);
  return d && a.tensor(0).shape[*d].is(a.number(2));
}
bool same_extent(const Asked& a) {
  const auto d = a.dim(0, 1), e = a.dim(2, 3);
  return d && e && a.tensor(0).shape[*d] == a.tensor(2).shape[*e];
}
bool same_shape(const Asked& a) {
  return a.tensor(0).shape == a.tensor(1).shape;
}
bool same_dtype(const Asked& a) {
  return a.tensor(0).dtype == a.tensor(1).dtype;
}
bool same_type(const Asked& a) {
  return same_shape(a) && same_dtype(a);
}
Dim count_of(const Shape& shape, std::size_t dims) {
  Dim count(1);
  for (std::size_t d = 0; d < dims; ++d) count = count * shape[d];
  return count;
}
bool same_size(const Asked& a) {
  const Shape &x = a.tensor(0).shape, &y = a.tensor(1).shape;
  return count_of(x, x.size()) == count_of(y, y.size());
}
bool same_rows(const Asked& a) {
  const Shape &x = a.tensor(0).shape, &y = a.tensor(1).shape;
  return !x.empty() && !y.empty() && count_of(x, x.size() - 1) == count_of(y, y.size() - 1);
}
bool made_by(const Asked& a) {
  const NodeId producer = a.graph().value(a.value(0)).producer;
  if (producer == kNone) return false;
  for (std::size_t i = 1; i < a.condition.arguments.size(); ++i)
    if (means_op(a.condition.arguments[i].word, *a.graph().nodes[producer].op)) return true;
  return false;
}
bool quantized(const Asked& a) {
  constexpr int kFarthest = 8;
  ValueId v = a.value(0);
  for (int i = 0; i < kFarthest && v != kNone; ++i) {
    if (is_number_value(a.graph(), v) || a.graph().type(v).is_tuple) return false;
    const DType dtype = a.graph().tensor(v).dtype;
    if (!is_float(dtype) || bits(dtype) < 16) return true;
    const NodeId producer = a.graph().value(v).producer;
    if (producer == kNone) return false;
    const Node& node = a.graph().nodes[producer];
    if (node.op->family == "quantized") return true;
    if ((!node.op->view && node.op->name != "cast") || node.inputs.empty()) return false;
    v = node.inputs[0];
  }
  return false;
}
bool number(const Asked& a) {
  return number_of(a.graph(), a.value(0)).has_value();
}
bool tensor(const Asked& a) {
  return !is_number_value(a.graph(), a.value(0)) && !a.graph().type(a.value(0)).is_tuple;
}
bool greater(const Asked& a) {
  const auto n = number_of(a.graph(), a.value(0));
  return n && n->as_double() > *a.condition.arguments[1].number;
}
bool less(const Asked& a) {
  const auto n = number_of(a.graph(), a.value(0));
  return n && n->as_double() < *a.condition.arguments[1].number;
}
bool constant(const Asked& a) {
  return a.graph().constant_of(a.value(0)) != nullptr;
}
bool data(const Asked& a) {
  const Constant* c = a.graph().constant_of(a.value(0));
  return c && c->data;
}
bool vector(const Asked& a) {
  if (is_number_value(a.graph(), a.value(0))) return false;
  const Shape &b = a.tensor(0).shape, &x = a.tensor(1).shape;
  if (b.empty() || x.empty() || b.size() > x.size() || b.back() != x.back()) return false;
  return std::all_of(b.begin(), b.end() - 1, [](const Dim& d) { return d.is(1); });
}
bool last_dim(const Asked& a) {
  const std::vector<std::int64_t> dims = a.dims(0);
  return dims.size() == 1 && dims[0] + 1 == static_cast<std::int64_t>(a.tensor(1).rank());
}
bool last_dims(const Asked& a) {
  std::vector<std::int64_t> dims = a.dims(0);
  std::ranges::sort(dims);
  const auto rank = static_cast<std::int64_t>(a.tensor(1).rank());
  for (std::size_t i = 0; i < dims.size(); ++i)
    if (dims[i] != rank - static_cast<std::int64_t>(dims.size() - i)) return false;
  return !dims.empty();
}
// The number that an operand or an attribute is.
std::optional<double> any_number(const Asked& a, std::size_t i) {
  if (a.value(i) != kNone) {
    const auto n = number_of(a.graph(), a.value(i));
    return n ? std::optional(n->as_double()) : std::nullopt;
  }
  const AttributeValue& v = *a.attribute(i);
  if (const auto* whole = std::get_if<std::int64_t>(&v)) return static_cast<double>(*whole);
  if (const auto* d = std::get_if<double>(&v)) return *d;
  if (const auto* s = std::get_if<Scalar>(&v)) return s->as_double();
  return std::nullopt;
}
bool equals(const Asked& a) {
  const auto n = any_number(a, 0);
  return n && *n == *a.condition.arguments[1].number;
}
bool opposite(const Asked& a) {
  const auto x = any_number(a, 0), y = any_number(a, 1);
  return x && y && *x == -*y;
}
bool distinct(const Asked& a) {
  return a.value(0) != a.value(1);
}

// Is v made of `other`, a few elementwise nodes in between?
bool is_made_of(const Graph& graph, ValueId v, ValueId other) {
  constexpr std::size_t kMost = 16;
  std::vector<ValueId> found = {v};
  for (std::size_t at = 0; at < found.size() && at < kMost; ++at) {
    if (found[at] == other) return true;
    const NodeId producer = graph.value(found[at]).producer;
    if (producer == kNone || !is_chain_node(graph.nodes[producer])) continue;
    for (const ValueId operand : graph.nodes[producer].inputs)
      if (operand != kNone) found.push_back(operand);
  }
  return false;
}
bool independent(const Asked& a) {
  return !is_made_of(a.graph(), a.value(0), a.value(1)) && !is_made_of(a.graph(), a.value(1), a.value(0));
}

// The kinds of a predicate's arguments: v a value, a an attribute, e either, n a number, w dtypes, o ops (any number of
// these last).
struct Predicate {
  std::string_view name, arguments;
  bool (*holds)(const Asked&);
};

constexpr Predicate kPredicates[] = {{"dtype", "vw", dtype},
                                     {"rank", "vn", rank},
                                     {"min_rank", "vn", min_rank},
                                     {"extent", "vnn", extent},
                                     {"same_extent", "vnvn", same_extent},
                                     {"same_shape", "vv", same_shape},
                                     {"same_dtype", "vv", same_dtype},
                                     {"same_type", "vv", same_type},
                                     {"same_size", "vv", same_size},
                                     {"same_rows", "vv", same_rows},
                                     {"made_by", "vo", made_by},
                                     {"quantized", "v", quantized},
                                     {"number", "v", number},
                                     {"tensor", "v", tensor},
                                     {"greater", "vn", greater},
                                     {"less", "vn", less},
                                     {"constant", "v", constant},
                                     {"data", "v", data},
                                     {"vector", "vv", vector},
                                     {"last_dim", "av", last_dim},
                                     {"last_dims", "av", last_dims},
                                     {"equals", "en", equals},
                                     {"opposite", "ee", opposite},
                                     {"distinct", "vv", distinct},
                                     {"independent", "vv", independent}};

const Predicate* find_predicate(std::string_view name) {
  const auto found = std::ranges::find(kPredicates, name, &Predicate::name);
  return found == std::end(kPredicates) ? nullptr : found;
}

bool is_of_shape(const Asked& a, std::size_t i) {
  return !is_number_value(a.graph(), a.value(i)) && !a.graph().type(a.value(i)).is_tuple;
}

}  // namespace

std::optional<Scalar> number_of(const Graph& graph, ValueId v) {
  if (v == kNone) return std::nullopt;
  if (graph.value(v).kind == Value::Kind::kNumber) return graph.number(v);
  const Constant* constant = graph.constant_of(v);
  return constant ? uniform_value(*constant) : std::nullopt;
}

std::string known_conditions() {
  std::vector<std::string_view> names;
  for (const Predicate& p : kPredicates) names.push_back(p.name);
  return fmt::format("one of {}", fmt::join(names, ", "));
}

std::string wrong_in_condition(const PatternCondition& condition) {
  const Predicate* p = find_predicate(condition.predicate);
  if (!p) return "no such condition";
  const bool words = p->arguments.back() == 'w' || p->arguments.back() == 'o';
  const std::size_t wanted = p->arguments.size();
  if (words ? condition.arguments.size() < wanted : condition.arguments.size() != wanted)
    return fmt::format("{} takes {}{} arguments, not {}", p->name, words ? "at least " : "", wanted,
                       condition.arguments.size());
  for (std::size_t i = 0; i < condition.arguments.size(); ++i) {
    const Argument& argument = condition.arguments[i];
    const char kind = p->arguments[std::min(i, wanted - 1)];
    if (kind == 'n' && !argument.number) return fmt::format("argument {} of {} is no number", i + 1, p->name);
    if (kind == 'w' && (argument.word.empty() || !parse_dtype(argument.word)))
      return fmt::format("argument {} of {} is no dtype", i + 1, p->name);
    if (kind == 'o' && !OpTable::builtin().find(argument.word))
      return fmt::format("argument {} of {} is no op", i + 1, p->name);
    if ((kind == 'v' || kind == 'a' || kind == 'e') && argument.name == kNoName)
      return fmt::format("argument {} of {} is no name of the match", i + 1, p->name);
  }
  return "";
}

std::string unmet(const PatternCondition& condition, const PatternCheckContext& context) {
  const Predicate& p = *find_predicate(condition.predicate);
  const Asked asked{condition, context};
  const bool of_tensors = p.name != "number" && p.name != "tensor" && p.name != "constant" && p.name != "data" &&
                          p.name != "greater" && p.name != "less" && p.name != "equals" && p.name != "distinct" &&
                          p.name != "dtype" && p.name != "vector" && p.name != "made_by" && p.name != "quantized" &&
                          p.name != "opposite" && p.name != "independent";
  bool holds = true;
  for (std::size_t i = 0; i < condition.arguments.size(); ++i) {
    const char kind = p.arguments[std::min(i, p.arguments.size() - 1)];
    if (kind == 'n' || kind == 'w' || kind == 'o') continue;
    if (!asked.is_met(i) || (kind == 'a' && !asked.attribute(i)) || (kind == 'v' && asked.value(i) == kNone)) return "";
    if (kind == 'v' && of_tensors && !is_of_shape(asked, i)) holds = false;
  }
  holds = holds && p.holds(asked);
  return holds == condition.negated ? fmt::format("{} does not hold", condition.text) : "";
}

}  // namespace fusec
