#include "transforms/patterns/conditions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "analysis/constant_nodes.h"
#include "ir/constant_data.h"
#include "ir/float_formats.h"
#include "ir/spelling.h"
#include "transforms/patterns/pattern_roots.h"

namespace fusec {
namespace {

using Argument = PatternCondition::Argument;

// The values and attributes that a condition's arguments name.
struct ConditionCall {
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

bool dtype(const ConditionCall& a) {
  if (is_number_value(a.graph(), a.value(0)) || a.graph().type(a.value(0)).is_tuple) return false;
  for (std::size_t i = 1; i < a.condition.arguments.size(); ++i)
    if (name(a.tensor(0).dtype) == a.condition.arguments[i].word) return true;
  return false;
}
bool never_nan(const ConditionCall& a) {
  return !is_float(a.tensor(0).dtype);
}
bool rank(const ConditionCall& a) {
  return static_cast<std::int64_t>(a.tensor(0).rank()) == a.number(1);
}
bool min_rank(const ConditionCall& a) {
  return static_cast<std::int64_t>(a.tensor(0).rank()) >= a.number(1);
}
bool extent(const ConditionCall& a) {
  const auto d = a.dim(0, 1);
  return d && a.tensor(0).shape[*d].is(a.number(2));
}
bool same_extent(const ConditionCall& a) {
  const auto d = a.dim(0, 1), e = a.dim(2, 3);
  return d && e && a.tensor(0).shape[*d] == a.tensor(2).shape[*e];
}
bool same_shape(const ConditionCall& a) {
  return a.tensor(0).shape == a.tensor(1).shape;
}
bool same_dtype(const ConditionCall& a) {
  return a.tensor(0).dtype == a.tensor(1).dtype;
}
bool same_type(const ConditionCall& a) {
  return same_shape(a) && same_dtype(a);
}
Dim count_of(const Shape& shape, std::size_t dims) {
  Dim count(1);
  for (std::size_t d = 0; d < dims; ++d) count = count * shape[d];
  return count;
}
bool same_size(const ConditionCall& a) {
  const Shape &x = a.tensor(0).shape, &y = a.tensor(1).shape;
  return count_of(x, x.size()) == count_of(y, y.size());
}
bool same_rows(const ConditionCall& a) {
  const Shape &x = a.tensor(0).shape, &y = a.tensor(1).shape;
  return !x.empty() && !y.empty() && count_of(x, x.size() - 1) == count_of(y, y.size() - 1);
}
bool made_by(const ConditionCall& a) {
  const NodeId producer = a.graph().value(a.value(0)).producer;
  if (producer == kNone) return false;
  for (std::size_t i = 1; i < a.condition.arguments.size(); ++i)
    if (means_op(a.condition.arguments[i].word, *a.graph().nodes[producer].op)) return true;
  return false;
}
bool quantized(const ConditionCall& a) {
  constexpr int kFarthest = 8;
  ValueId v = a.value(0);
  for (int i = 0; i < kFarthest && v != kNone; ++i) {
    if (is_number_value(a.graph(), v) || a.graph().type(v).is_tuple) return false;
    const DType dtype = a.graph().tensor(v).dtype;
    if (!is_float(dtype) || bits(dtype) < 16) return true;
    const NodeId producer = a.graph().value(v).producer;
    if (producer == kNone) return false;
    a.context.look_at(producer);
    const Node& node = a.graph().nodes[producer];
    if (node.op->family == "quantized") return true;
    const bool is_same = node.op->view || node.op->name == "cast" || means_op("piece", *node.op);
    if (!is_same || node.inputs.empty() || node.inputs[0] == kNone) return false;
    v = node.inputs[0];
  }
  return false;
}
bool number(const ConditionCall& a) {
  return number_of(a.graph(), a.value(0)).has_value();
}
bool tensor(const ConditionCall& a) {
  return !is_number_value(a.graph(), a.value(0)) && !a.graph().type(a.value(0)).is_tuple;
}
bool constant(const ConditionCall& a) {
  return a.graph().constant_of(a.value(0)) != nullptr;
}
bool data(const ConditionCall& a) {
  const Constant* c = a.graph().constant_of(a.value(0));
  return c && c->data;
}
bool made_of_constants(const ConditionCall& a) {
  return is_made_of_constants(a.graph(), a.value(0));
}
bool vector(const ConditionCall& a) {
  if (is_number_value(a.graph(), a.value(0))) return false;
  const Shape &b = a.tensor(0).shape, &x = a.tensor(1).shape;
  if (b.empty() || x.empty() || b.size() > x.size() || b.back() != x.back()) return false;
  return std::all_of(b.begin(), b.end() - 1, [](const Dim& d) { return d.is(1); });
}
bool last_dim(const ConditionCall& a) {
  const std::vector<std::int64_t> dims = a.dims(0);
  return dims.size() == 1 && dims[0] + 1 == static_cast<std::int64_t>(a.tensor(1).rank());
}
bool last_dims(const ConditionCall& a) {
  std::vector<std::int64_t> dims = a.dims(0);
  std::ranges::sort(dims);
  const auto rank = static_cast<std::int64_t>(a.tensor(1).rank());
  for (std::size_t i = 0; i < dims.size(); ++i)
    if (dims[i] != rank - static_cast<std::int64_t>(dims.size() - i)) return false;
  return !dims.empty();
}
// The value of argument i, an operand or an attribute, as a number.
std::optional<double> any_number(const ConditionCall& a, std::size_t i) {
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
bool greater(const ConditionCall& a) {
  const auto n = any_number(a, 0);
  return n && *n > *a.condition.arguments[1].number;
}
bool less(const ConditionCall& a) {
  const auto n = any_number(a, 0);
  return n && *n < *a.condition.arguments[1].number;
}
bool equals(const ConditionCall& a) {
  const auto n = any_number(a, 0);
  if (!n) return false;
  const bool is_tensor = a.value(0) != kNone && !is_number_value(a.graph(), a.value(0));
  return std::any_of(a.condition.arguments.begin() + 1, a.condition.arguments.end(), [&](const Argument& wanted) {
    const double w = *wanted.number;
    if (*n == w) return true;
    if (std::trunc(w) == w) return false;
    return std::abs(*n - w) <= 1e-6 * std::abs(w) ||
           (is_tensor && is_float(a.tensor(0).dtype) && *n == round_to_float(a.tensor(0).dtype, w));
  });
}
bool opposite(const ConditionCall& a) {
  const auto x = any_number(a, 0), y = any_number(a, 1);
  return x && y && *x == -*y;
}
bool distinct(const ConditionCall& a) {
  return a.value(0) != a.value(1);
}

// Whether v is `other`, or made of it by a few elementwise nodes.
bool is_made_of(const ConditionCall& a, ValueId v, ValueId other) {
  constexpr std::size_t kMost = 16;
  std::vector<ValueId> found = {v};
  for (std::size_t at = 0; at < found.size() && at < kMost; ++at) {
    if (found[at] == other) return true;
    const NodeId producer = a.graph().value(found[at]).producer;
    a.context.look_at(producer);
    if (producer == kNone || !is_chain_node(a.graph().nodes[producer])) continue;
    for (const ValueId operand : a.graph().nodes[producer].inputs)
      if (operand != kNone) found.push_back(operand);
  }
  return false;
}
bool independent(const ConditionCall& a) {
  return !is_made_of(a, a.value(0), a.value(1)) && !is_made_of(a, a.value(1), a.value(0));
}

bool is_given(const ConditionCall& a, std::size_t i) {
  ValueId v = a.value(i);
  while (a.graph().value(v).producer != kNone && a.graph().nodes[a.graph().value(v).producer].op->name == "cast") {
    a.context.look_at(a.graph().value(v).producer);
    v = a.graph().nodes[a.graph().value(v).producer].inputs[0];
  }
  const Value::Kind kind = a.graph().value(v).kind;
  return kind == Value::Kind::kConstant || kind == Value::Kind::kInput;
}
bool given(const ConditionCall& a) {
  return is_given(a, 0);
}
bool no_narrower(const ConditionCall& a) {
  return bits(a.tensor(0).dtype) >= bits(a.tensor(1).dtype) || is_given(a, 1);
}
bool widened(const ConditionCall& a) {
  const DType wide = a.tensor(0).dtype, narrow = a.tensor(1).dtype;
  if (wide == narrow) return true;
  return is_float(wide) && is_float(narrow) && bits(wide) >= 32 && bits(wide) > bits(narrow);
}

// The number of elements along the dimensions that the attribute names, or along all if the attribute is absent.
std::optional<double> count_along(const ConditionCall& a, std::size_t tensor, std::size_t attribute) {
  const Shape& shape = a.tensor(tensor).shape;
  std::vector<std::int64_t> dims;
  if (a.attribute(attribute))
    dims = a.dims(attribute);
  else
    for (std::size_t d = 0; d < shape.size(); ++d) dims.push_back(static_cast<std::int64_t>(d));
  double count = 1;
  for (const std::int64_t d : dims) {
    const std::int64_t at = d < 0 ? d + static_cast<std::int64_t>(shape.size()) : d;
    if (at < 0 || at >= static_cast<std::int64_t>(shape.size())) return std::nullopt;
    const auto extent = shape[static_cast<std::size_t>(at)].as_constant();
    if (!extent) return std::nullopt;
    count *= static_cast<double>(*extent);
  }
  return count;
}
bool count(const ConditionCall& a) {
  const auto n = number_of(a.graph(), a.value(0));
  return n && n->as_double() == count_along(a, 1, 2);
}
bool per_count(const ConditionCall& a) {
  const auto n = number_of(a.graph(), a.value(0));
  const auto wanted = count_along(a, 1, 2);
  return n && wanted && *wanted > 0 && std::abs(n->as_double() * *wanted - 1) < 1e-6;
}
bool along_channels(const ConditionCall& a) {
  const Shape &v = a.tensor(0).shape, &x = a.tensor(1).shape;
  if (x.size() < 2 || v.size() > x.size() || v.size() + 1 < x.size()) return false;
  const std::size_t channel = v.size() + 1 - x.size();
  for (std::size_t d = 0; d < v.size(); ++d)
    if (d == channel ? v[d] != x[1] : !v[d].is(1)) return false;
  return true;
}
bool along_batch_and_channels(const ConditionCall& a) {
  const Shape &v = a.tensor(0).shape, &x = a.tensor(1).shape;
  if (x.size() < 2 || v.size() != x.size() || v[0] != x[0] || v[1] != x[1]) return false;
  return std::all_of(v.begin() + 2, v.end(), [](const Dim& d) { return d.is(1); });
}
bool channel_groups(const ConditionCall& a) {
  const Shape &g = a.tensor(0).shape, &x = a.tensor(1).shape;
  if (g.size() < 3 || x.size() < 2 || g[0] != x[0]) return false;
  // [N, G, C / G, ...] or [N, G, everything else], with a whole number of channels in each group.
  const auto groups = g[1].as_constant(), channels = x[1].as_constant();
  return groups && channels && *groups > 0 && *channels % *groups == 0;
}
bool all_but_first(const ConditionCall& a) {
  const auto rank = static_cast<std::int64_t>(a.tensor(1).rank());
  // A normalized_shape stands for as many last dimensions as it has.
  if (const auto* shape = std::get_if<std::vector<Dim>>(&*a.attribute(0)))
    return static_cast<std::int64_t>(shape->size()) == rank - a.number(2);
  std::vector<std::int64_t> dims = a.dims(0);
  std::ranges::sort(dims);
  if (static_cast<std::int64_t>(dims.size()) != rank - a.number(2)) return false;
  for (std::size_t i = 0; i < dims.size(); ++i)
    if (dims[i] != a.number(2) + static_cast<std::int64_t>(i)) return false;
  return !dims.empty();
}
bool repeated_heads(const ConditionCall& a) {
  const Shape &r = a.tensor(0).shape, &e = a.tensor(1).shape, &u = a.tensor(2).shape, &k = a.tensor(3).shape;
  const std::size_t rank = k.size();
  if (rank < 3 || r.size() != rank || u.size() != rank + 1 || e.size() != rank + 1) return false;
  const std::size_t repeats = rank - 2;  // the dimension of u that k lacks
  if (!u[repeats].is(1)) return false;
  for (std::size_t d = 0; d <= rank; ++d)
    if (d != repeats && (u[d] != e[d] || u[d] != k[d > repeats ? d - 1 : d])) return false;
  for (std::size_t d = 0; d < rank; ++d)
    if (d != rank - 3 && r[d] != k[d]) return false;
  return true;
}
bool some_kept(const ConditionCall& a) {
  const Constant* c = a.graph().constant_of(a.value(0));
  if (!c || !c->data || a.tensor(0).rank() == 0) return false;
  const auto length = a.tensor(0).shape.back().as_constant();
  if (!length || *length == 0) return false;
  const bool flags = a.tensor(0).dtype == DType::kBool;
  const auto kept = [&](const Scalar& s) {
    return flags ? s.as_double() != 0 : s.as_double() > -std::numeric_limits<double>::infinity();
  };
  const auto row = static_cast<std::size_t>(*length);
  for (std::size_t i = 0; i + row <= c->data->size(); i += row) {
    const auto begin = c->data->begin() + static_cast<std::ptrdiff_t>(i);
    if (std::none_of(begin, begin + *length, kept)) return false;
  }
  return true;
}

// Whether element [i, j] keeps the key (true, or 0 to add) for j <= i, and masks it out (false, or -inf) otherwise.
bool causal(const ConditionCall& a) {
  const Constant* c = a.graph().constant_of(a.value(0));
  const Shape& shape = a.tensor(0).shape;
  if (!c || !c->data || shape.size() < 2) return false;
  if (!std::all_of(shape.begin(), shape.end() - 2, [](const Dim& d) { return d.is(1); })) return false;
  const auto rows = shape[shape.size() - 2].as_constant(), keys = shape.back().as_constant();
  if (!rows || !keys) return false;
  const bool flags = a.tensor(0).dtype == DType::kBool;
  for (std::int64_t i = 0; i < *rows; ++i)
    for (std::int64_t j = 0; j < *keys; ++j) {
      const double element = (*c->data)[static_cast<std::size_t>(i * *keys + j)].as_double();
      const double kept = flags ? 1 : 0, masked = flags ? 0 : -std::numeric_limits<double>::infinity();
      if (element != (j <= i ? kept : masked)) return false;
    }
  return true;
}

// Whether a cast of the constant to the value's dtype changes no element.
bool fits(const ConditionCall& a) {
  const Constant* c = a.graph().constant_of(a.value(0));
  const DType dtype = a.tensor(1).dtype;
  if (!c || !c->data || !is_float(a.tensor(0).dtype) || !is_float(dtype)) return false;
  return std::all_of(c->data->begin(), c->data->end(), [&](const Scalar& s) {
    const double exact = round_to_float(a.tensor(0).dtype, s.as_double());
    return std::isnan(exact) || round_to_float(dtype, exact) == exact;
  });
}

// Letters for a predicate's arguments: v a value, a an attribute, p an attribute that may be absent, e a value or an
// attribute, n a number, i an integer. The last may be w, o or m: one or more dtypes, ops or numbers.
struct Predicate {
  std::string_view name, arguments;
  bool (*holds)(const ConditionCall&);
};

constexpr Predicate kPredicates[] = {{"dtype", "vw", dtype},
                                     {"never_nan", "v", never_nan},
                                     {"rank", "vi", rank},
                                     {"min_rank", "vi", min_rank},
                                     {"extent", "vii", extent},
                                     {"same_extent", "vivi", same_extent},
                                     {"same_shape", "vv", same_shape},
                                     {"same_dtype", "vv", same_dtype},
                                     {"same_type", "vv", same_type},
                                     {"same_size", "vv", same_size},
                                     {"same_rows", "vv", same_rows},
                                     {"made_by", "vo", made_by},
                                     {"quantized", "v", quantized},
                                     {"number", "v", number},
                                     {"tensor", "v", tensor},
                                     {"greater", "en", greater},
                                     {"less", "en", less},
                                     {"constant", "v", constant},
                                     {"data", "v", data},
                                     {"made_of_constants", "v", made_of_constants},
                                     {"vector", "vv", vector},
                                     {"last_dim", "av", last_dim},
                                     {"last_dims", "av", last_dims},
                                     {"equals", "em", equals},
                                     {"opposite", "ee", opposite},
                                     {"distinct", "vv", distinct},
                                     {"independent", "vv", independent},
                                     {"given", "v", given},
                                     {"widened", "vv", widened},
                                     {"no_narrower", "vv", no_narrower},
                                     {"count", "vvp", count},
                                     {"per_count", "vvp", per_count},
                                     {"along_channels", "vv", along_channels},
                                     {"along_batch_and_channels", "vv", along_batch_and_channels},
                                     {"channel_groups", "vv", channel_groups},
                                     {"fits", "vv", fits},
                                     {"all_but_first", "avi", all_but_first},
                                     {"repeated_heads", "vvvv", repeated_heads},
                                     {"some_kept", "v", some_kept},
                                     {"causal", "v", causal}};

const Predicate* find_predicate(std::string_view name) {
  const auto found = std::ranges::find(kPredicates, name, &Predicate::name);
  return found == std::end(kPredicates) ? nullptr : found;
}

bool is_of_shape(const ConditionCall& a, std::size_t i) {
  return !is_number_value(a.graph(), a.value(i)) && !a.graph().type(a.value(i)).is_tuple;
}

}  // namespace

const std::vector<std::string_view>& condition_names() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> all;
    for (const Predicate& p : kPredicates) all.push_back(p.name);
    return all;
  }();
  return names;
}

std::optional<ConditionFault> wrong_in_condition(const PatternCondition& condition) {
  constexpr double kGreatest = 1e15;
  const Predicate* p = find_predicate(condition.predicate);
  if (!p) return ConditionFault{.what = "no such condition", .argument = {}, .expected = ""};
  const bool words = std::string_view("wom").find(p->arguments.back()) != std::string_view::npos;
  const std::size_t wanted = p->arguments.size();
  if (words ? condition.arguments.size() < wanted : condition.arguments.size() != wanted)
    return ConditionFault{.what = fmt::format("{} takes {}{} argument{}, not {}", p->name, words ? "at least " : "",
                                              wanted, wanted == 1 ? "" : "s", condition.arguments.size()),
                          .argument = {},
                          .expected = ""};
  for (std::size_t i = 0; i < condition.arguments.size(); ++i) {
    const Argument& argument = condition.arguments[i];
    const auto fault = [&](const char* what, const char* expected, bool wants_name = false) {
      return ConditionFault{.what = fmt::format("argument {} of {} is {}", i + 1, p->name, what),
                            .argument = i,
                            .expected = expected,
                            .wants_name = wants_name};
    };
    const char kind = p->arguments[std::min(i, wanted - 1)];
    if ((kind == 'n' || kind == 'm') && !argument.number) return fault("no number", "a number");
    if (kind == 'i' && (!argument.number || !(std::abs(*argument.number) < kGreatest) ||
                        std::trunc(*argument.number) != *argument.number))
      return fault("no whole number", "a whole number");
    if (kind == 'w' && (argument.word.empty() || !parse_dtype(argument.word)))
      return fault("no dtype", "a dtype such as float16");
    if (kind == 'o' && !OpTable::builtin().find(argument.word)) return fault("no op", "an op of the table");
    const bool wants_name = kind == 'v' || kind == 'a' || kind == 'p' || kind == 'e';
    if (wants_name && argument.name == kNoName) return fault("no name of the match", "a name of the match", true);
  }
  return std::nullopt;
}

std::string unmet(const PatternCondition& condition, const PatternCheckContext& context) {
  const Predicate& p = *find_predicate(condition.predicate);
  const ConditionCall asked{condition, context};
  const bool of_tensors = p.name != "number" && p.name != "tensor" && p.name != "constant" && p.name != "data" &&
                          p.name != "made_of_constants" && p.name != "greater" && p.name != "less" &&
                          p.name != "equals" && p.name != "distinct" && p.name != "dtype" && p.name != "vector" &&
                          p.name != "made_by" && p.name != "quantized" && p.name != "opposite" &&
                          p.name != "independent" && p.name != "count" && p.name != "per_count";
  bool holds = true;
  for (std::size_t i = 0; i < condition.arguments.size(); ++i) {
    const char kind = p.arguments[std::min(i, p.arguments.size() - 1)];
    if (std::string_view("niwom").find(kind) != std::string_view::npos) continue;
    if (!asked.is_met(i) || (kind == 'a' && !asked.attribute(i)) || (kind == 'v' && asked.value(i) == kNone)) return "";
    if (kind == 'v' && of_tensors && !is_of_shape(asked, i)) holds = false;
  }
  holds = holds && p.holds(asked);
  if (holds != condition.negated) return "";
  std::string why = fmt::format("{} does not hold", condition.text);
  if (p.name == "never_nan")
    why += fmt::format(": of a NaN in a {} another value would be made", name(asked.tensor(0).dtype));
  const auto found = p.name == "equals" ? any_number(asked, 0) : std::nullopt;
  return found ? fmt::format("{}: it is {}", why, *found) : why;
}

bool looks_unseen(const PatternCondition& condition) {
  return condition.predicate == "made_of_constants";
}

}  // namespace fusec
