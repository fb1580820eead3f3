// Random models of elementwise, broadcast and injective ops over all dtypes: small tensors, values used more than once,
// outputs in the middle. A proposed node that the format's rules refuse is left out. The same seed makes the same
// model.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <vector>

#include "ir/error.h"
#include "ir/read.h"
#include "support/random_graph.h"

namespace fusec::test {

class RandomPointwise {
 public:
  RandomPointwise(std::string name, std::uint64_t seed) : name_(std::move(name)), random_(seed) {}

  Graph make() {
    static constexpr const char* kDTypes[] = {"float32", "float16", "bfloat16",      "float64",
                                              "int32",   "int8",    "uint8",         "bool",
                                              "int64",   "float32", "float8_e4m3fn", "float8_e5m2"};
    const std::uint32_t inputs = 2 + random_.below(3);
    const char* const main = kDTypes[random_.below(3)];
    for (std::uint32_t i = 0; i < inputs; ++i) {
      const char* dtype = random_.chance(65) ? main : kDTypes[random_.below(std::size(kDTypes))];
      inputs_ +=
          fmt::format("{}{{\"name\": \"x{}\", \"dtype\": \"{}\", \"shape\": {}}}", i ? ", " : "", i, dtype,
                      random_.chance(60) ? "[3, 4, 8]" : one_of({"[4, 8]", "[8]", "[3, 1, 8]", "[1]", "[4, 1]"}));
      values_.push_back(fmt::format("x{}", i));
    }
    // Sometimes constants, which `full` may compute with at compile time.
    if (random_.chance(20)) {
      constants_ = R"({"name": "c0", "dtype": ")" + std::string(main) +
                   R"(", "shape": [8], "data": [0.5, -1, 2, 3.25, 0, -0.125, 7, 1]})";
      values_.push_back("c0");
    }
    const std::uint32_t nodes = 2 + random_.below(11);
    for (std::uint32_t tries = 0; tries < 10 * nodes && nodes_.size() < nodes; ++tries) propose();
    if (nodes_.empty()) append(R"("op": "neg", "inputs": ["x0"])");
    if (nodes_.empty()) append(R"("op": "logical_not", "inputs": ["x0"])");
    return read(text(true));
  }

 private:
  std::string one_of(std::initializer_list<const char*> list) {
    return *(list.begin() + random_.below(static_cast<std::uint32_t>(list.size())));
  }
  // Rather a late value, so that chains grow.
  std::string value() {
    const auto count = static_cast<std::uint32_t>(values_.size());
    const std::uint32_t reach = random_.chance(60) ? std::min(count, 3u) : count;
    return "\"" + values_[count - 1 - random_.below(reach)] + "\"";
  }
  std::string value_or_number() {
    return random_.chance(20) ? one_of({"0.5", "-1.75", "3", "1e-3", "0.1", "2", "7.25"}) : value();
  }

  void propose() {
    const std::uint32_t kind = random_.below(100);
    if (kind < 30)
      append(fmt::format(R"("op": "{}", "inputs": [{}])",
                         one_of({"neg",      "abs",       "exp",        "log",         "sqrt",   "rsqrt", "reciprocal",
                                 "sigmoid",  "tanh",      "relu",       "gelu",        "silu",   "sin",   "cos",
                                 "floor",    "ceil",      "round",      "erf",         "sign",   "mish",  "elu",
                                 "softplus", "hardswish", "leaky_relu", "logical_not", "square", "exp2",  "log1p"}),
                         value()));
    else if (kind < 62)
      append(fmt::format(R"("op": "{}", "inputs": [{}, {}])",
                         one_of({"add", "sub", "mul", "div", "maximum", "minimum", "add", "mul", "sub", "mul", "add",
                                 "pow", "eq", "lt", "ge", "remainder", "floor_divide", "logical_and", "atan2"}),
                         value(), value_or_number()));
    else if (kind < 70)
      append(fmt::format(R"("op": "where", "inputs": [{}, {}, {}])", value(), value(), value_or_number()));
    else if (kind < 74)
      append(fmt::format(R"("op": "{}", "inputs": [{}, {}, {}])", one_of({"lerp", "addcmul", "addcdiv"}), value(),
                         value(), value()));
    else if (kind < 78)
      append(fmt::format(R"("op": "clamp", "inputs": [{}], "attrs": {{"min": -0.75, "max": 1.5}})", value()));
    else if (kind < 85)
      append(fmt::format(R"("op": "cast", "inputs": [{}], "attrs": {{"dtype": "{}"}})", value(),
                         one_of({"float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "int32", "int8",
                                 "bool", "uint8", "float64"})));
    else
      propose_movement();
  }

  void propose_movement() {
    const std::string x = value();
    switch (random_.below(9)) {
      case 0:
        return append(fmt::format(R"("op": "transpose", "inputs": [{}], "attrs": {{"dim0": -1, "dim1": -2}})", x));
      case 1:
        return append(fmt::format(R"("op": "reshape", "inputs": [{}], "attrs": {{"shape": {}}})", x,
                                  one_of({"[-1]", "[4, 24]", "[8, 12]", "[3, 4, 8]", "[2, -1]"})));
      case 2:
        return append(
            fmt::format(R"("op": "slice", "inputs": [{}], "attrs": {{"dim": -1, "start": {}, "end": {}, "step": {}}})",
                        x, random_.below(3), 4 + random_.below(5), 1 + random_.below(2)));
      case 3:
        return append(fmt::format(R"("op": "concat", "inputs": [{}, {}], "attrs": {{"dim": {}}})", x, value(),
                                  one_of({"0", "-1"})));
      case 4:
        return append(fmt::format(R"("op": "stack", "inputs": [{}, {}], "attrs": {{"dim": 0}})", x, value()));
      case 5:
        return append(fmt::format(R"("op": "flip", "inputs": [{}], "attrs": {{"dims": [-1]}})", x));
      case 6:
        return append(fmt::format(
            R"("op": "pad", "inputs": [{}], "attrs": {{"pad": [1, 2], "mode": "constant", "value": 0.5}})", x));
      case 7:
        return append(fmt::format(R"("op": "unsqueeze", "inputs": [{}], "attrs": {{"dim": 0}})", x));
      default:
        return append(fmt::format(R"("op": "roll", "inputs": [{}], "attrs": {{"shifts": 3, "dims": -1}})", x));
    }
  }

  static Graph read(const std::string& text) { return read_model_text(text, "random", "."); }

  std::string text(bool final) {
    std::string outputs;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      const std::string name = fmt::format("n{}", i);
      bool used = false;
      for (std::size_t j = i + 1; j < nodes_.size(); ++j)
        used = used || nodes_[j].find("\"" + name + "\"") != std::string::npos;
      if (!final || !used || random_.chance(10)) outputs += (outputs.empty() ? "\"" : ", \"") + name + "\"";
    }
    return fmt::format(
        R"({{"fusec": 1, "name": "{}", "inputs": [{}], "constants": [{}], "nodes": [{}], "outputs": [{}]}})", name_,
        inputs_, constants_, fmt::join(nodes_, ", "), outputs);
  }

  void append(const std::string& rest) {
    const std::string name = fmt::format("n{}", nodes_.size());
    nodes_.push_back(fmt::format("{{\"name\": \"{}\", {}}}", name, rest));
    try {
      const Graph graph = read(text(false));
      std::int64_t count = 1;
      for (const Dim& dim : graph.tensor(graph.find_value(name)).shape) count *= dim.as_constant().value_or(0);
      if (count > 0 && count <= 1000) return values_.push_back(name);
    } catch (const Error&) {  // the op does not take these operands
    }
    nodes_.pop_back();
  }

  std::string name_;
  Random random_;
  std::string inputs_, constants_;
  std::vector<std::string> nodes_, values_;
};

}  // namespace fusec::test
