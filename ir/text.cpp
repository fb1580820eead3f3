#include "ir/text.h"

#include <fmt/format.h>

#include "ir/attribute_text.h"
#include "ir/budget.h"
#include "ir/json_document.h"
#include "ir/spelling.h"
#include "ir/text_names.h"

namespace fusec {
namespace {

std::string operand_text(const Graph& graph, ValueId v) {
  if (v == kNone) return "null";
  const Value& value = graph.value(v);
  if (value.kind == Value::Kind::kDim) return "{" + to_string(graph.dim(v), graph.symbols) + "}";
  if (value.kind != Value::Kind::kNumber) return text_name(value.name);
  const Scalar& number = graph.number(v);
  // json_text quotes infinities and NaN; here a quoted word would be a name.
  return number.category == Category::kFloat ? json_number(number.real) : json_text(number);
}

std::string constant_text(const Graph& graph, const Constant& c) {
  const TensorType& type = graph.tensor(c.value);
  std::string text =
      fmt::format("constant {}: {}", text_name(graph.value(c.value).name), to_string(type, graph.symbols));
  if (c.data) {
    text += " = [";
    const char* separator = "";
    for (const Scalar& element : *c.data) {
      count_step();
      text += separator;
      text += element_text(element, type.dtype);
      separator = ", ";
    }
    text += "]";
  }
  if (!c.safetensors_file.empty())
    text += fmt::format(" = {} {}", json_string(c.safetensors_file), json_string(c.safetensors_tensor));
  return text;
}

}  // namespace

std::string node_text(const Graph& graph, const Node& node) {
  std::string text;
  for (ValueId v = node.first_output; v < node.first_output + node.output_count; ++v)
    text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", text_name(graph.value(v).name),
                        to_string(graph.type(v), graph.symbols));
  text += " = " + text_name(node.op->name) + "(";
  const char* separator = "";
  for (const ValueId v : node.inputs) {
    count_step();
    text += separator + operand_text(graph, v);
    separator = ", ";
  }
  for (const Attribute& a : graph.attributes(node).list()) {
    count_step();
    text += separator + text_name(a.name) + "=" + json_text(a.value, graph.symbols);
    separator = ", ";
  }
  text += ")";
  if (graph.value(node.first_output).name != node.name) text += " as " + text_name(node.name);
  if (node.pattern) text += fmt::format(" pattern={}", name(*node.pattern));
  if (!node.fuse) text += " fuse=false";
  if (node.prepared) text += "  # prepared";
  return text;
}

std::string graph_text(const Graph& graph) {
  std::string text = "model " + json_string(graph.name) + "\n";
  for (const Symbol& s : graph.symbols)
    text += fmt::format("symbol {} min={} max={} multiple_of={} hint={}\n", text_name(s.name), s.min, s.max,
                        s.multiple_of, s.hint);
  for (const ValueId v : graph.inputs)
    text += fmt::format("input {}: {}\n", text_name(graph.value(v).name), to_string(graph.tensor(v), graph.symbols));
  for (const Constant& c : graph.constants) text += constant_text(graph, c) + "\n";
  for (const Node& node : graph.nodes) text += node_text(graph, node) + "\n";
  const char* separator = "return ";
  for (const ValueId v : graph.outputs) {
    count_step();
    text += separator + text_name(graph.value(v).name);
    separator = ", ";
  }
  text += "\n";
  for (const Alias& alias : graph.aliases)
    text += fmt::format("alias {} -> {}\n", text_name(graph.value(alias.output).name),
                        text_name(graph.value(alias.input).name));
  return text;
}

}  // namespace fusec
