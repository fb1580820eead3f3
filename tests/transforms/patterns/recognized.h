// What the built-in rewriting patterns make of a model, held against the model node by node.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <string>

#include "analysis/evaluate/evaluate_node.h"
#include "ir/constant_data.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "support/canonicalized.h"
#include "support/short_model.h"
#include "transforms/patterns/builtin_patterns.h"
#include "transforms/patterns/claim.h"
#include "transforms/patterns/near_misses.h"
#include "transforms/patterns/pattern_list.h"
#include "transforms/patterns/recognize.h"

namespace fusec::test {

inline const PatternList& builtin_list() {
  static const PatternList list = ordered(listed(builtin_pattern_table()));
  return list;
}

// Numbers of the size that activations have, a few of them large; masks with a key in every row and one without.
inline HostTensor random_tensor(const TensorType& type, std::mt19937& random) {
  HostTensor tensor(type.dtype, concrete_shape(type.shape, {}));
  std::normal_distribution<double> normal(0, 1);
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    if (type.dtype == DType::kBool)
      tensor.set_integer(i, random() % 4 != 0);
    else if (is_integer(type.dtype))
      tensor.set_integer(i, static_cast<std::int64_t>(random() % 9) - 4);
    else
      tensor.set_real(i, normal(random) * (random() % 16 == 0 ? 6 : 1));
  }
  return tensor;
}

inline std::map<std::string, HostTensor> random_inputs(const Graph& graph, unsigned seed) {
  std::mt19937 random(seed);
  std::map<std::string, HostTensor> tensors;
  const auto add = [&](ValueId v) {
    const std::string& name = graph.value(v).name;
    HostTensor tensor = random_tensor(graph.tensor(v), random);
    if (name.ends_with("var"))  // a variance is positive
      for (std::int64_t i = 0; i < tensor.size(); ++i) tensor.set_real(i, std::abs(tensor.real(i)) + 0.1);
    tensors.emplace(name, std::move(tensor));
  };
  for (const ValueId v : graph.inputs) add(v);
  for (const Constant& c : graph.constants)
    if (!c.data) add(c.value);
  return tensors;
}

inline std::vector<HostTensor> outputs_of(const Graph& graph, const std::map<std::string, HostTensor>& inputs) {
  std::vector<HostTensor> values(graph.value_count());
  for (const ValueId v : graph.inputs) values[v] = inputs.at(graph.value(v).name);
  for (const Constant& c : graph.constants) {
    if (c.data) {
      values[c.value] = HostTensor(graph.tensor(c.value).dtype, concrete_shape(graph.tensor(c.value).shape, {}));
      values[c.value].bytes = constant_bytes(*c.data, values[c.value].dtype);
    } else {
      values[c.value] = inputs.at(graph.value(c.value).name);
    }
  }
  for (const Node& node : graph.nodes) {
    std::vector<HostTensor> results =
        evaluate_node(graph, node, {}, [&](ValueId v) -> const HostTensor& { return values[v]; });
    for (std::uint32_t o = 0; o < node.output_count; ++o) values[node.first_output + o] = std::move(results[o]);
  }
  std::vector<HostTensor> outputs;
  for (const ValueId v : graph.outputs) outputs.push_back(values[v]);
  return outputs;
}

// As near as the rounding of what lies between allows; where large terms cancel, to what they round to (as --verify
// does).
inline void check_near(const HostTensor& got, const HostTensor& want) {
  REQUIRE(got.shape == want.shape);
  REQUIRE(got.dtype == want.dtype);
  const double tolerance = bits(want.dtype) == 16 ? (want.dtype == DType::kBFloat16 ? 0.06 : 0.01) : 2e-5;
  double squares = 0;
  for (std::int64_t i = 0; i < want.size(); ++i)
    if (std::isfinite(want.real(i))) squares += want.real(i) * want.real(i);
  const double root_mean_square = want.size() == 0 ? 0 : std::sqrt(squares / static_cast<double>(want.size()));
  const double typical = bits(want.dtype) == 16 ? std::max(1.0, root_mean_square) : 1.0;
  for (std::int64_t i = 0; i < got.size(); ++i) {
    const double a = got.real(i), b = want.real(i);
    CAPTURE(i);
    CAPTURE(a);
    CAPTURE(b);
    const bool near =
        (std::isnan(a) && std::isnan(b)) || a == b || std::abs(a - b) <= tolerance * (typical + std::abs(b));
    REQUIRE(near);
  }
}

// The graph as text after recognition; its outputs are those of the model as it was given.
inline std::string recognized(const Graph& model, unsigned seed = 1) {
  CanonicalGraph canonical = canonicalized(model);
  recognize_patterns(canonical, builtin_list());
  CHECK(first_problem(canonical.graph) == "");
  CHECK(canonical.stands_for.size() == canonical.graph.nodes.size());
  const auto inputs = random_inputs(model, seed);
  const std::vector<HostTensor> got = outputs_of(canonical.graph, inputs), want = outputs_of(model, inputs);
  REQUIRE(got.size() == want.size());
  for (std::size_t i = 0; i < got.size(); ++i) check_near(got[i], want[i]);
  return graph_text(canonical.graph);
}

// The ops of the nodes after recognition, in order: "cast softmax".
inline std::string ops_after(const std::string& inputs, const std::string& nodes, const std::string& outputs = "y") {
  const Graph model = short_model(inputs, nodes, outputs);
  recognized(model);
  CanonicalGraph canonical = canonicalized(model);
  recognize_patterns(canonical, builtin_list());
  std::string ops;
  for (const Node& node : canonical.graph.nodes) ops += (ops.empty() ? "" : " ") + node.op->name;
  return ops;
}

// The line of the graph after recognition that makes y, behind "y: dtype[shape] = ".
inline std::string y_after(const std::string& inputs, const std::string& nodes, const std::string& outputs = "y") {
  const std::string text = recognized(short_model(inputs, nodes, outputs));
  std::size_t at = text.find("\ny: ");
  if (at == std::string::npos) return text;
  at = text.find(" = ", at) + 3;
  return text.substr(at, text.find('\n', at) - at);
}

// Why that pattern does not match at the node.
inline std::string why_no(const std::string& pattern, const std::string& inputs, const std::string& nodes,
                          const std::string& outputs = "y", const char* node = "y") {
  CanonicalGraph canonical = canonicalized(short_model(inputs, nodes, outputs));
  recognize_patterns(canonical, builtin_list());
  const NodeId n = canonical.graph.find_node(node);
  if (n == kNone) return "the node is gone";
  for (const NotClaimed& miss : near_misses(canonical.graph, builtin_list(), {}, {n}))
    if (miss.pattern == pattern) return miss.why;
  return "";
}

}  // namespace fusec::test
