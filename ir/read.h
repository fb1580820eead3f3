// Reads a model in the graph format (docs/graph_format.md), as JSON or as text (ir/text.h), into a Graph, and refuses
// what the format does not allow.
//
// Errors name the file, the JSON pointer of the offending element, what was found and what was expected. Nodes may
// stand in any order in the file; in the graph they are sorted topologically, among the ready ones always the earliest
// first.
#pragma once

#include <string>
#include <string_view>

#include "ir/graph.h"
#include "ir/limits.h"
#include "ir/op.h"

namespace fusec {

// "-" is standard input; weight files are then looked for in the working directory. Throws Error(kInput).
Graph read_model(const std::string& path, const OpTable& table = OpTable::builtin(), const Limits& limits = {});

// `file` is what messages call the text, `directory` where weight files are looked for.
Graph read_model_text(std::string_view text, const std::string& file, const std::string& directory,
                      const OpTable& table = OpTable::builtin(), const Limits& limits = {});

}  // namespace fusec
