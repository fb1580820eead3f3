// Models for built-in patterns (examples/*.txt) and what is made of them mechanically that a pattern must not take for
// its own: an inner value that is an output or read elsewhere, a cast that changes it, a circle, another axis, a gate
// used twice, a quantized operand.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "transforms/patterns/pattern.h"

namespace fusec::test {

struct ShortNode {
  std::string name, op;
  std::vector<std::string> operands;
  std::string attributes;  // JSON, or ""
};

struct ShortModel {
  std::vector<std::string> inputs;  // "x float32 4,8", with "constant", "filled" or "= [1, 2]" behind it for constants
  std::vector<ShortNode> nodes;
  std::vector<std::string> outputs;
};

// Throws fusec::Error where types do not fit.
Graph graph_of(const ShortModel& model);

struct PatternExample {
  ShortModel model;
  std::set<std::string> still;  // mutations that the pattern may take all the same
};
// By pattern; one or several.
std::map<std::string, std::vector<PatternExample>> pattern_examples();

struct Mutation {
  std::string name;  // "cast s": of what it is made
  ShortModel model;
};
// Of a match in the example's graph; those whose types do not fit are left out.
std::vector<Mutation> mutations_of(const ShortModel& model, const Graph& graph, const PatternMatch& match);

}  // namespace fusec::test
