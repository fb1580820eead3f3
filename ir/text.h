// The readable text form of a graph, for --emit=ir, dumps between passes and models written by hand. The programs and
// the library read it wherever they read a model.
//
//   model "swiglu"
//   symbol tokens min=1 max=8192 multiple_of=1 hint=2048
//   input x: bfloat16[tokens, 4096]
//   constant w: bfloat16[11008, 4096]                          # given at run time
//   constant two: float32[] = [2.0]
//   constant v: bfloat16[64] = "weights.safetensors" "mlp.v"   # file, tensor
//   gate: bfloat16[tokens, 11008] = linear(x, w)
//   s.0: float32[2], s.1: float32[2] = split(y, split_sizes=[2, 2], dim=0) as s
//   h: bfloat16[tokens, 11008] = custom.op(gate, 2.0, null, {2*tokens}, k=3) pattern=elemwise fuse=false
//   return h, h
//   alias h -> x
//
// One statement per line; # begins a comment. A node's types may be left out: "gate = linear(x, w)". A name of letters,
// digits, _ and . is bare, unless it begins with a digit or is a word of the grammar; other names are JSON strings.
// Operands come first (names, numbers, true, false, null, {dimension}), then attributes with JSON values. `as` gives
// the node's name if it differs from the first result's.
#pragma once

#include <string>
#include <string_view>

#include "ir/graph.h"
#include "ir/limits.h"
#include "ir/op.h"

namespace fusec {

std::string graph_text(const Graph& graph);
// One node's line, without the line break.
std::string node_text(const Graph& graph, const Node& node);

// Whether a model's text has this form: its first statement is a model, symbol, input or constant statement.
bool is_graph_text(std::string_view text);

// Reads text that graph_text prints, with all checks of a model file. Errors name the line. `directory` is the folder
// of the weight files, `file` the name of the text in messages.
Graph parse_graph_text(std::string_view text, const OpTable& table = OpTable::builtin(),
                       const std::string& directory = "", const std::string& file = "graph text",
                       const Limits& limits = {});

}  // namespace fusec
