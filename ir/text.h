// A graph as text to be read: --emit=ir, dumps between passes, models written by hand. The programs and the library read
// it wherever they read a model.
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
// One statement a line; # begins a comment. A node's types may be left out: "gate = linear(x, w)". A name is bare where it
// is letters, digits, _ and . with no digit first and no word of the grammar, else a JSON string. Operands come first
// (names, numbers, true, false, null, {dimension}), then attributes, whose values are JSON. `as` gives the node's name
// where it is not the first result's.
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

// Whether a model's text is of this form: its first statement is of a model, a symbol, an input or a constant.
bool is_graph_text(std::string_view text);

// Reads what graph_text prints, with all checks of a model file. Errors tell the line. Weight files are looked for in
// `directory`; `file` is what messages call the text.
Graph parse_graph_text(std::string_view text, const OpTable& table = OpTable::builtin(),
                       const std::string& directory = "", const std::string& file = "graph text",
                       const Limits& limits = {});

}  // namespace fusec
