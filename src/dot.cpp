#include "dot.h"

#include <fmt/format.h>

#include "ir/error.h"
#include "ir/mapped_file.h"
#include "ir/program.h"
#include "output_file.h"

namespace fusec {
namespace {

std::string label_text(std::string_view text, std::size_t longest = 60) {
  std::string out;
  for (const char c : text.substr(0, longest)) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  // A cut must not leave half a character.
  while (text.size() > longest && !out.empty() && (static_cast<unsigned char>(out.back()) & 0xc0) == 0x80)
    out.pop_back();
  if (text.size() > longest) {
    if (!out.empty() && static_cast<unsigned char>(out.back()) >= 0xc0) out.pop_back();
    out += "...";
  }
  return out;
}

std::string_view colour(OpPattern pattern) {
  switch (pattern) {
    case OpPattern::kElemwise:
      return "#d5e8d4";
    case OpPattern::kBroadcast:
      return "#dae8fc";
    case OpPattern::kInjective:
      return "#e1d5e7";
    case OpPattern::kCommReduce:
      return "#ffe6cc";
    case OpPattern::kOutEwiseFusable:
      return "#f8cecc";
    case OpPattern::kTuple:
      return "#fff2cc";
    case OpPattern::kOpaque:
      return "#f5f5f5";
  }
  return "white";
}

[[noreturn]] void refuse_picture() {
  throw Error(ErrorKind::kEnvironment, {.what = "the picture cannot be laid out",
                                        .found = "no working `dot` program",
                                        .expected = "Graphviz",
                                        .hint = "apt-get install graphviz, or take --emit=dot"});
}

}  // namespace

std::string to_dot(const Graph& graph, const FusionPlan& plan, std::span<const OpPattern> kinds) {
  std::string out = fmt::format(
      "digraph \"{}\" {{\n  graph [fontname=\"Helvetica\", rankdir=TB, labeljust=l]\n"
      "  node [shape=box, style=\"rounded,filled\", fontname=\"Helvetica\", fontsize=11]\n"
      "  edge [color=\"#666666\", fontname=\"Helvetica\", fontsize=9]\n",
      label_text(graph.name));
  auto leaf = [&](ValueId v, const char* shape) {
    out += fmt::format("  v{} [shape={}, style=filled, fillcolor=white, label=\"{}\\n{}\"]\n", v, shape,
                       label_text(graph.value(v).name), label_text(to_string(graph.type(v), graph.symbols)));
  };
  for (const ValueId v : graph.inputs) leaf(v, "ellipse");
  for (const Constant& constant : graph.constants) leaf(constant.value, "note");
  for (std::size_t g = 0; g < plan.groups.size(); ++g) {
    const FusionGroup& group = plan.groups[g];
    out += fmt::format(
        "  subgraph cluster_{} {{\n    label=\"{}\"\n    style=\"rounded,filled\"\n    fillcolor=\"#fafafa\"\n"
        "    color=\"#999999\"\n",
        g, label_text(group.name) + (group.prepared ? " (prepared)" : ""));
    for (const NodeId n : group.nodes) {
      const Node& node = graph.nodes[n];
      out += fmt::format("    n{} [fillcolor=\"{}\", label=\"{}\\n{} ({})\"]\n", n, colour(kinds[n]),
                         label_text(node.name), label_text(node.op->name), name(kinds[n]));
    }
    out += "  }\n";
  }
  for (NodeId n = 0; n < graph.nodes.size(); ++n)
    for (const ValueId v : graph.nodes[n].inputs) {
      if (v == kNone) continue;
      const Value& value = graph.value(v);
      if (value.kind == Value::Kind::kResult)
        out += fmt::format("  n{} -> n{} [tooltip=\"{}\"]\n", value.producer, n,
                           label_text(to_string(graph.type(v), graph.symbols)));
      else if (value.kind == Value::Kind::kInput || value.kind == Value::Kind::kConstant)
        out += fmt::format("  v{} -> n{}\n", v, n);
    }
  for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
    const ValueId v = graph.outputs[i];
    out += fmt::format("  out{} [shape=ellipse, style=filled, fillcolor=\"#eeeeee\", label=\"{}\"]\n", i,
                       label_text(graph.value(v).name));
    const NodeId producer = graph.value(v).producer;
    out += producer == kNone ? fmt::format("  v{} -> out{}\n", v, i) : fmt::format("  n{} -> out{}\n", producer, i);
  }
  return out + "}\n";
}

void require_graphviz() {
  if (find_program("dot").empty()) refuse_picture();
}

std::string to_svg(const std::string& dot_text) {
  const TemporaryFile input, output;
  write_output(input.path(), dot_text);
  const std::string dot = find_program("dot");
  if (dot.empty() || run_program({dot, "-Tsvg", "-o", output.path(), input.path()}, "/dev/null") != 0) refuse_picture();
  return read_text_file(output.path());
}

}  // namespace fusec
