#include "transforms/algebraic_rules.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <map>
#include <random>

#include "analysis/evaluate/evaluate_node.h"
#include "ir/constant_data.h"
#include "ir/infer.h"
#include "transforms/rule_matcher.h"

using namespace fusec;

namespace {

// 32 elements that are most likely to show a difference.
std::vector<std::uint64_t> telling_bits(DType dtype) {
  if (dtype == DType::kBool) {
    std::vector<std::uint64_t> both(32, 0);
    for (std::size_t i = 0; i < both.size(); i += 2) both[i] = 1;
    return both;
  }
  HostTensor one(dtype, {2});
  std::vector<std::uint64_t> found;
  const std::uint64_t mask = bits(dtype) == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits(dtype)) - 1;
  const std::uint64_t top = std::uint64_t{1} << (bits(dtype) - 1);
  const auto add = [&](std::uint64_t pattern) { found.push_back(pattern & mask); };
  for (const std::uint64_t pattern :
       {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{2}, top, top + 1, top - 1, mask})
    add(pattern);
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double value : {1.0, -1.0, 0.5, -0.5, 2.0, -2.5, 6.0, 6.5, -7.25, 100.0, infinity, -infinity}) {
    if (!is_float(dtype) && std::isinf(value)) continue;
    one.set_real(0, value);
    add(one.raw(0));
  }
  if (is_float(dtype)) {
    one.set_real(0, std::numeric_limits<double>::quiet_NaN());
    add(one.raw(0));
  }
  std::mt19937_64 random(7);
  while (found.size() < 32) add(random());
  return found;
}

// Both tensors together hold every pair.
HostTensor telling_tensor(DType dtype, bool outer) {
  const std::vector<std::uint64_t> bits = telling_bits(dtype);
  HostTensor tensor(dtype, {1024});
  for (std::int64_t i = 0; i < 1024; ++i) tensor.set_raw(i, bits[static_cast<std::size_t>(outer ? i / 32 : i % 32)]);
  return tensor;
}

bool same_values(const HostTensor& a, const HostTensor& b) {
  if (a.dtype != b.dtype || a.shape != b.shape) return false;
  for (std::int64_t i = 0; i < a.size(); ++i)
    if (a.raw(i) != b.raw(i) && !(is_float(a.dtype) && std::isnan(a.real(i)) && std::isnan(b.real(i)))) return false;
  return true;
}

// A pattern as a graph over inputs c, x, y of these dtypes.
class Example {
 public:
  Example(DType xy, bool number_is_constant) : number_is_constant_(number_is_constant) {
    add_input("c", DType::kBool, false);
    add_input("x", xy, true);
    add_input("y", xy, false);
    dtype_ = xy;
  }

  // The value of a term, or nothing where an op does not take these dtypes.
  ValueId build(const RuleTerm& term) {
    if (term.kind == RuleTerm::Kind::kVariable) return static_cast<ValueId>(term.variable);
    if (term.kind == RuleTerm::Kind::kNumber) return number(term.number);
    Node node;
    for (const RuleTerm& operand : term.operands) {
      node.inputs.push_back(build(operand));
      if (node.inputs.back() == kNone) return kNone;
    }
    node.op = graph.table().find(term.name);
    REQUIRE(node.op);
    node.name = "n" + std::to_string(graph.nodes.size());
    try {
      const auto types = infer_types(graph, *node.op, node.inputs, {}, {}, node.name, nullptr);
      const std::string value_name = node.name;
      return graph.nodes[graph.add_node(std::move(node), types, {value_name})].first_output;
    } catch (const OpError&) {
      return kNone;
    }
  }

  HostTensor evaluate(const Node& node) {
    return evaluate_node(graph, node, {}, [&](ValueId v) -> const HostTensor& { return value(v); }).at(0);
  }

  const HostTensor& value(ValueId v) {
    const auto it = values_.find(v);
    if (it != values_.end()) return it->second;
    return values_[v] = evaluate(graph.nodes[graph.value(v).producer]);
  }

  Graph graph;

 private:
  void add_input(const std::string& input, DType dtype, bool outer) {
    values_[graph.add_input(input, {dtype, {1024}})] = telling_tensor(dtype, outer);
  }

  ValueId number(double value) {
    const bool whole = value == std::floor(value) && !std::signbit(value == 0 ? value : 0.0);
    if (!number_is_constant_)
      return graph.add_number(whole ? Scalar::whole(static_cast<std::int64_t>(value)) : Scalar::floating(value));
    HostTensor tensor(dtype_, {2});
    for (std::int64_t i = 0; i < 2; ++i)
      is_float(dtype_) ? tensor.set_real(i, value) : tensor.set_integer(i, static_cast<std::int64_t>(value));
    HostTensor one(dtype_, {1});
    one.set_raw(0, tensor.raw(0));
    const ValueId v = graph.add_constant("number" + std::to_string(graph.constants.size()), {dtype_, {1}});
    graph.constants.back().data = std::make_shared<const std::vector<Scalar>>(constant_data(one));
    values_[v] = one;
    return v;
  }

  bool number_is_constant_;
  DType dtype_ = DType::kFloat32;
  std::map<ValueId, HostTensor> values_;
};

// Applies the rule to its own pattern: true where it fired, and then both sides are the same.
bool fires_and_is_exact(const AlgebraicRule& rule, DType dtype, bool number_is_constant) {
  Example example(dtype, number_is_constant);
  const ValueId v = example.build(parse_rule(rule).pattern);
  if (v == kNone) return false;
  const Node node = example.graph.nodes[example.graph.value(v).producer];
  RuleMatcher matcher;
  const auto replacement = matcher.apply(example.graph, node, example.graph.tensor(v), false);
  if (!replacement || replacement->rule->text != rule.text) return false;
  Node other = replacement->node;
  if (replacement->value == kNone) {
    other.name = "replacement";
    const NodeId n = example.graph.add_node(other, {example.graph.tensor(v)}, {"replacement"});
    other = example.graph.nodes[n];
  }
  const HostTensor now =
      replacement->value != kNone ? example.value(replacement->value) : example.value(other.first_output);
  CHECK(same_values(example.value(v), now));
  return true;
}

}  // namespace

TEST_CASE("every algebraic rule without attributes is exact, for every dtype that it holds for") {
  for (const AlgebraicRule& rule : algebraic_rules()) {
    if (rule.attributes) continue;
    CAPTURE(rule.text);
    int fired = 0;
    for (const DTypeInfo& dtype : all_dtypes())
      for (const bool number_is_constant : {false, true}) {
        CAPTURE(dtype.name);
        CAPTURE(number_is_constant);
        fired += fires_and_is_exact(rule, dtype.dtype, number_is_constant);
      }
    CHECK(fired > 0);
  }
}

TEST_CASE("a cast after a widening cast is exact, for all dtypes") {
  const auto cast = [](Graph& graph, ValueId v, DType to) {
    const OpDef* op = graph.table().find("cast");
    Node node;
    node.op = op;
    node.name = "cast" + std::to_string(graph.nodes.size());
    node.inputs = {v};
    node.attributes = graph.intern(Attributes({{"dtype", to}}));
    const std::string value_name = node.name;
    return graph.nodes[graph.add_node(std::move(node), {TensorType{to, graph.tensor(v).shape}}, {value_name})];
  };
  int fired = 0;
  for (const DTypeInfo& from : all_dtypes())
    for (const DTypeInfo& between : all_dtypes())
      for (const DTypeInfo& to : all_dtypes()) {
        Graph graph;
        const ValueId x = graph.add_input("x", {from.dtype, {1024}});
        const Node inner = cast(graph, x, between.dtype);
        const Node outer = cast(graph, inner.first_output, to.dtype);
        RuleMatcher matcher;
        auto replacement = matcher.apply(graph, outer, {to.dtype, {1024}}, false);
        if (!replacement) continue;
        ++fired;
        CAPTURE(from.name);
        CAPTURE(between.name);
        CAPTURE(to.name);
        const HostTensor given = telling_tensor(from.dtype, false);
        const auto given_of = [&](ValueId) -> const HostTensor& { return given; };
        const HostTensor middle = evaluate_node(graph, inner, {}, given_of).at(0);
        const HostTensor twice =
            evaluate_node(graph, outer, {}, [&](ValueId) -> const HostTensor& { return middle; }).at(0);
        replacement->node.name = "once";
        const NodeId n = graph.add_node(replacement->node, {graph.tensor(outer.first_output)}, {"once"});
        CHECK(same_values(twice, evaluate_node(graph, graph.nodes[n], {}, given_of).at(0)));
      }
  CHECK(fired > 500);
}
