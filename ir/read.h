// Reads a model in the graph format (docs/graph_format.md), as JSON or as text (ir/text.h), into a Graph. Models that
// break the format are refused.
//
// Errors name the file, the JSON pointer of the wrong element, what was found and what was expected. Nodes may be in
// any order in the file. The graph has them in topological order; among the ready ones the earliest comes first.
#pragma once

#include <string>
#include <string_view>

#include "ir/graph.h"
#include "ir/limits.h"
#include "ir/op.h"

namespace fusec {

// `path` "-" reads standard input and looks for weight files in the working directory. Throws Error(kInput).
Graph read_model(const std::string& path, const OpTable& table = OpTable::builtin(), const Limits& limits = {});

// `file` is the name of the text in messages, `directory` the folder of the weight files.
Graph read_model_text(std::string_view text, const std::string& file, const std::string& directory,
                      const OpTable& table = OpTable::builtin(), const Limits& limits = {});

}  // namespace fusec
