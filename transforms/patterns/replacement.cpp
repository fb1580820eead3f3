#include "transforms/patterns/replacement.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/constant_nodes.h"
#include "ir/budget.h"
#include "ir/constant_data.h"
#include "ir/error.h"
#include "ir/infer.h"
#include "ir/spelling.h"
#include "transforms/algebraic_rules.h"
#include "transforms/patterns/conditions.h"
#include "transforms/patterns/known_value.h"

namespace fusec {
namespace {

// Thrown with the reason if a match cannot be replaced.
struct NoReplacement {
  std::string why;
};

// Converts the value to the attribute's type. Throws NoReplacement if that is not possible.
AttributeValue fitted(const AttributeSpec& spec, const AttributeValue& value) {
  const auto number = [&]() -> std::optional<double> {
    if (const auto* i = std::get_if<std::int64_t>(&value)) return static_cast<double>(*i);
    if (const auto* d = std::get_if<double>(&value)) return *d;
    if (const auto* s = std::get_if<Scalar>(&value)) return s->as_double();
    return std::nullopt;
  }();
  switch (spec.type) {
    case AttributeType::kNumber:
      if (number) return *number;
      break;
    case AttributeType::kScalar:
      if (std::holds_alternative<Scalar>(value)) return value;
      if (const auto* i = std::get_if<std::int64_t>(&value)) return Scalar::whole(*i);
      if (number) return Scalar::floating(*number);
      break;
    case AttributeType::kInteger:
      if (std::holds_alternative<std::int64_t>(value)) return value;
      break;
    case AttributeType::kFlag:
      if (std::holds_alternative<bool>(value)) return value;
      break;
    case AttributeType::kText:
      if (std::holds_alternative<std::string>(value)) return value;
      break;
    case AttributeType::kDType:
      if (std::holds_alternative<DType>(value)) return value;
      if (const auto* text = std::get_if<std::string>(&value)) {
        if (const auto dtype = parse_dtype(*text)) return *dtype;
      }
      break;
    case AttributeType::kDim:
      if (const auto* i = std::get_if<std::int64_t>(&value)) return Dim(*i);
      if (std::holds_alternative<Dim>(value)) return value;
      break;
    case AttributeType::kIntegers:
      if (const auto* i = std::get_if<std::int64_t>(&value)) return std::vector<std::int64_t>{*i};
      if (std::holds_alternative<std::vector<std::int64_t>>(value)) return value;
      break;
    case AttributeType::kDims:
      if (std::holds_alternative<std::vector<Dim>>(value)) return value;
      if (const auto* list = std::get_if<std::vector<std::int64_t>>(&value))
        return std::vector<Dim>(list->begin(), list->end());
      break;
    case AttributeType::kIntegersOrText:
      if (std::holds_alternative<std::int64_t>(value) || std::holds_alternative<std::string>(value) ||
          std::holds_alternative<std::vector<std::int64_t>>(value))
        return value;
      break;
    default:
      break;
  }
  throw NoReplacement{fmt::format("the attribute {} cannot have that value", spec.name)};
}

// Whether folded weights stay in the range of their dtype. bfloat16 has the range of float32, which is used for
// computing. float16 elements may overflow, or their root mean square may fall below the least normal number (allowed
// for a bias, which is added only once).
bool keeps_range(const Constant& constant, const TensorType& type) {
  if (type.dtype != DType::kFloat16) return true;
  double squares = 0;
  for (const Scalar& element : *constant.data) squares += element.as_double() * element.as_double();
  constexpr double kLeastNormal = 0x1p-14;
  const double least = kLeastNormal * kLeastNormal * static_cast<double>(constant.data->size());
  return std::isfinite(squares) && (type.rank() < 2 || squares >= least);
}

class MatchReplacing {
 public:
  MatchReplacing(Graph& graph, const PatternMatch& match) : graph_(graph), match_(match) {}

  void run() {
    const PatternTerm& term = match_.pattern->replacement;
    Node made = node(term);
    const ValueId result = graph_.nodes[match_.root].first_output;
    const std::vector<ValueType> types = types_of(made);
    if (types.size() != 1) throw NoReplacement{fmt::format("{} has several results", term.op)};
    if (types[0] != graph_.type(result))
      throw NoReplacement{fmt::format("{} would have another type: {}, not {}", term.op,
                                      to_string(types[0], graph_.symbols),
                                      to_string(graph_.type(result), graph_.symbols))};
    Node& root = graph_.nodes[match_.root];
    root.op = made.op;
    root.inputs = made.inputs;
    root.attributes = made.attributes;
  }

 private:
  Node node(const PatternTerm& term) {
    Node made;
    made.op = graph_.op(term.op);
    for (const PatternTerm& operand : term.operands) made.inputs.push_back(value(operand));
    while (!made.inputs.empty() && made.inputs.back() == kNone) made.inputs.pop_back();
    Attributes attributes;
    for (const PatternAttribute& a : term.attributes) {
      count_step();
      const auto spec = std::ranges::find(made.op->attributes, a.name, &AttributeSpec::name);
      if (spec == made.op->attributes.end()) throw NoReplacement{fmt::format("no attribute {}", a.name)};
      if (const std::optional<AttributeValue> v = attribute(a)) attributes.set(a.name, fitted(*spec, *v));
    }
    // A name that only another alternative of the match binds has no value here.
    for (const AttributeSpec& spec : made.op->attributes)
      if (spec.required && !attributes.find(spec.name))
        throw NoReplacement{fmt::format("the attribute {} of {} has no value", spec.name, term.op)};
    made.attributes = graph_.intern(std::move(attributes));
    made.file_position = graph_.nodes[match_.root].file_position;
    return made;
  }

  std::vector<ValueType> types_of(const Node& made) const {
    std::vector<LaunchCheck> checks;
    try {
      std::vector<ValueType> types =
          infer_types(graph_, *made.op, made.inputs, graph_.attributes(made), {}, made.name, &checks);
      if (!checks.empty()) throw NoReplacement{fmt::format("{} would need checks at launch", made.op->name)};
      return types;
    } catch (const OpError& error) {
      throw NoReplacement{fmt::format("{} does not take these operands: {}", made.op->name, error.what)};
    }
  }

  ValueId value(const PatternTerm& term) {
    switch (term.kind) {
      case PatternTerm::Kind::kName:
        return match_.values[term.name];
      case PatternTerm::Kind::kNumber:
        return graph_.add_number(term.exact &&
                                         term.number == static_cast<double>(static_cast<std::int64_t>(term.number))
                                     ? Scalar::whole(static_cast<std::int64_t>(term.number))
                                     : Scalar::floating(term.number));
      case PatternTerm::Kind::kNode:
        break;
      default:
        throw InternalError("a replacement holds a term that is no value: " + match_.pattern->name);
    }
    if (term.op == "known" || term.op == "folded") return known(term.operands[0], term.op == "folded");
    Node made = node(term);
    std::vector<ValueType> types = types_of(made);
    if (const ValueId same = same_value(made, types); same != kNone) return same;
    if (types.size() != 1) throw NoReplacement{fmt::format("{} has several results", term.op)};
    made.name = free_name();
    const std::string name = made.name;
    return graph_.nodes[graph_.add_node(std::move(made), types, {name})].first_output;
  }

  // The value of known(...) or folded(...); kNone for an absent operand. A folded value that is not known at compile
  // time is left to M_prepare.
  ValueId known(const PatternTerm& term, bool may_be_prepared) {
    const PatternTerm& first = term.operands.front();
    if (first.kind == PatternTerm::Kind::kName && match_.values[first.name] == kNone) return kNone;
    const ValueId made = value(term);
    const TensorType type = graph_.tensor(made);
    if (const ValueId found = known_value(graph_, made, free_name()); found != kNone) {
      if (may_be_prepared && !keeps_range(*graph_.constant_of(found), type))
        throw NoReplacement{fmt::format("folded, a value would leave the range of {}", name(type.dtype))};
      return found;
    }
    if (!may_be_prepared) throw NoReplacement{"a value that would have to be known is not"};
    if (!is_made_of_constants(graph_, made)) throw NoReplacement{"a value is not made of constants alone"};
    if (type.dtype == DType::kFloat16)
      throw NoReplacement{"whether float16 holds what would be folded is known only when its values are"};
    return made;
  }

  // An existing value that equals the result of `made`, else kNone. Finds one for a cast or reshape to the operand's
  // own type, and for a transpose that reverses the operand's permutation.
  ValueId same_value(const Node& made, const std::vector<ValueType>& types) const {
    if (made.inputs.empty() || made.inputs[0] == kNone) return kNone;
    const ValueId x = made.inputs[0];
    if (made.op->name == "cast" || made.op->name == "reshape")
      return types == std::vector<ValueType>{graph_.type(x)} ? x : kNone;
    const NodeId producer = graph_.value(x).producer;
    if (made.op->name != "transpose" || producer == kNone || !is_meant("permutation", *graph_.nodes[producer].op))
      return kNone;
    const std::size_t rank = graph_.tensor(x).rank();
    const std::vector<std::int64_t> outer = permutation_of(graph_, made, rank);
    const std::vector<std::int64_t> inner = permutation_of(graph_, graph_.nodes[producer], rank);
    for (std::size_t d = 0; d < rank; ++d)
      if (inner[static_cast<std::size_t>(outer[d])] != static_cast<std::int64_t>(d)) return kNone;
    return graph_.nodes[producer].inputs[0];
  }

  std::string free_name() const {
    for (int i = 1;; ++i) {
      count_step();
      std::string candidate = fmt::format("{}.{}", graph_.nodes[match_.root].name, i);
      if (graph_.find_node(candidate) == kNone && graph_.find_value(candidate) == kNone) return candidate;
    }
  }

  std::optional<AttributeValue> attribute(const PatternAttribute& a) const {
    if (!a.allowed.empty()) return a.allowed[0];
    if (!a.elements.empty()) return list(a);
    if (!a.factors.empty()) return product(a);
    if (a.bound != kNoName) {
      if (match_.attributes[a.bound]) return match_.attributes[a.bound];
      return number(match_.values[a.bound]);
    }
    const ValueId v = match_.values[a.argument];
    if (v == kNone) return std::nullopt;
    if (a.function == "number") return number(v);
    const TensorType& type = graph_.tensor(v);
    if (a.function == "dtype") return type.dtype;
    std::vector<Dim> dims(type.shape.begin(), type.shape.end());
    if (a.function == "shape") return dims;
    if (a.function == "batched") {
      const Shape& last = graph_.tensor(match_.values[a.second]).shape;
      if (dims.size() < 2 || last.size() < 2) throw NoReplacement{"an operand has too few dimensions"};
      std::copy(last.end() - 2, last.end(), dims.end() - 2);
      return dims;
    }
    if (a.function == "extents") return extents(dims, a.second);
    if (a.function == "extent") return extent(dims, a.count);
    if (a.function == "last_dims") {
      const auto count = static_cast<std::size_t>(std::max<std::int64_t>(a.count, 1));
      if (count > dims.size()) throw NoReplacement{"an operand has too few dimensions"};
      return std::vector<Dim>(dims.end() - static_cast<std::ptrdiff_t>(count), dims.end());
    }
    throw InternalError("a replacement calls an unknown function: " + a.function);
  }

  AttributeValue list(const PatternAttribute& a) const {
    std::vector<Dim> dims;
    for (const PatternAttribute& element : a.elements) {
      count_step();
      const AttributeValue found = attribute(element).value_or(std::int64_t{1});
      if (const auto* whole = std::get_if<std::int64_t>(&found))
        dims.emplace_back(*whole);
      else if (const auto* dim = std::get_if<Dim>(&found))
        dims.push_back(*dim);
      else
        throw NoReplacement{fmt::format("an element of {} is no extent", a.name)};
    }
    return dims;
  }

  AttributeValue product(const PatternAttribute& a) const {
    double result = 1;
    for (const PatternAttribute::Factor& factor : a.factors) {
      count_step();
      double by = factor.number;
      if (factor.name != kNoName) {
        if (match_.values[factor.name] == kNone) continue;
        by = std::get<Scalar>(*number(match_.values[factor.name])).as_double();
      }
      result = factor.divides ? result / by : result * by;
    }
    if (!std::isfinite(result)) throw NoReplacement{fmt::format("{} would be no number", a.name)};
    return result;
  }

  // The extents of the dimensions that a matched attribute names, in ascending order of dimensions.
  AttributeValue extents(const std::vector<Dim>& dims, std::uint32_t named) const {
    const std::optional<AttributeValue>& found = match_.attributes[named];
    std::vector<std::int64_t> list;
    if (const auto* one = found ? std::get_if<std::int64_t>(&*found) : nullptr) list = {*one};
    if (const auto* all = found ? std::get_if<std::vector<std::int64_t>>(&*found) : nullptr) list = *all;
    std::ranges::sort(list);
    std::vector<Dim> result;
    for (const std::int64_t d : list) {
      count_step();
      if (d < 0 || d >= static_cast<std::int64_t>(dims.size())) throw NoReplacement{"a dimension that is not there"};
      result.push_back(dims[static_cast<std::size_t>(d)]);
    }
    return result;
  }

  AttributeValue extent(const std::vector<Dim>& dims, std::int64_t at) const {
    if (at < 0) at += static_cast<std::int64_t>(dims.size());
    if (at < 0 || at >= static_cast<std::int64_t>(dims.size())) throw NoReplacement{"a dimension that is not there"};
    const Dim& dim = dims[static_cast<std::size_t>(at)];
    if (const auto known = dim.as_constant()) return *known;
    return dim;
  }

  std::optional<AttributeValue> number(ValueId v) const {
    if (v == kNone) return std::nullopt;
    const std::optional<Scalar> scalar = number_of(graph_, v);
    if (!scalar) throw NoReplacement{fmt::format("{} is no number", in_quotes(graph_.value(v).name))};
    return *scalar;
  }

  Graph& graph_;
  const PatternMatch& match_;
};

}  // namespace

std::string replace_match(Graph& graph, const PatternMatch& match) {
  try {
    MatchReplacing(graph, match).run();
    return "";
  } catch (const NoReplacement& no) {
    return no.why;
  }
}

}  // namespace fusec
