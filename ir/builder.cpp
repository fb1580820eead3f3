#include "ir/builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "ir/attribute_text.h"
#include "ir/error.h"
#include "ir/infer.h"
#include "ir/json_document.h"
#include "ir/read_attributes.h"
#include "ir/read_values.h"
#include "ir/scalar_expression.h"
#include "ir/spelling.h"
#include "ir/type_rules.h"
#include "ir/verify.h"
#include "ir/write.h"

namespace fusec {
namespace {

[[noreturn]] void usage(std::string what, std::string found = "", std::string expected = "", std::string hint = "") {
  throw Error(
      ErrorKind::kUsage,
      {.what = std::move(what), .found = std::move(found), .expected = std::move(expected), .hint = std::move(hint)});
}

// Runs `f` and turns its errors about a model file into Error(kUsage), since they are wrong API arguments here.
template <class F>
auto as_usage(const std::string& where, const F& f) {
  try {
    return f();
  } catch (const OpError& e) {
    usage(where + (e.place.empty() ? "" : ", " + e.place) + ": " + e.what, e.found, e.expected, e.hint);
  } catch (const Error& e) {
    const Error::Parts& parts = e.parts();
    usage(where + (parts.pointer.empty() ? "" : ", attrs" + parts.pointer) + ": " + parts.what, parts.found,
          parts.expected, parts.hint);
  }
}

// Writes the settings as the "attrs" of a model file and reads them with the file's reader.
Attributes normalized(const GraphBuilder::Settings& settings, const OpDef& op, const Symbols& symbols) {
  if (settings.empty() && op.custom) return {};
  std::string text = "{";
  for (const GraphBuilder::Setting& setting : settings)
    text += (text.size() > 1 ? "," : "") + json_string(setting.name) + ":" + json_text(setting.value, symbols);
  text += "}";
  const std::string file;
  const JsonDocument document = JsonDocument::parse(text, file);
  return read_attributes({document, file}, document.root(), document.root(), op, SymbolNames(symbols));
}

// The pattern kind of a node with an expression: elementwise if all operands have the result's shape, else broadcast.
OpPattern pointwise_kind(const Graph& graph, const Node& node) {
  for (const ValueId v : node.inputs)
    if (graph.operand(v).kind == Operand::Kind::kTensor &&
        graph.tensor(v).shape != graph.tensor(node.first_output).shape)
      return OpPattern::kBroadcast;
  return OpPattern::kElemwise;
}

}  // namespace

GraphBuilder::GraphBuilder(std::string model_name, OpTable table) : graph_(std::move(table)) {
  graph_.name = std::move(model_name);
}

Dim GraphBuilder::symbol(const std::string& name, const SymbolBounds& bounds) {
  for (const Symbol& s : graph_.symbols)
    if (s.name == name) usage("a symbol of this name exists already", in_quotes(name));
  std::string text = fmt::format(R"({{{}:{{"min":{},"max":{},"multiple_of":{})", json_string(name), bounds.min,
                                 bounds.max, bounds.multiple_of);
  if (bounds.hint) text += fmt::format(",\"hint\":{}", *bounds.hint);
  text += "}}";
  const std::string file;
  return as_usage("symbol " + in_quotes(name), [&] {
    const JsonDocument document = JsonDocument::parse(text, file);
    return Dim::symbol(graph_.add_symbol(read_symbols({document, file}, document.root()).front()));
  });
}

void GraphBuilder::check_name(const std::string& name) const {
  if (name.empty()) usage("a value needs a name");
  if (graph_.find_value(name) != kNone) usage("a value of this name exists already", in_quotes(name));
}

GraphBuilder::Tensor GraphBuilder::input(const std::string& name, DType dtype, Shape shape) {
  check_name(name);
  const TensorType type{dtype, std::move(shape)};
  const std::string what = "input " + in_quotes(name);
  as_usage(what, [&] { check_type(type, graph_.symbols, &graph_.checks, what); });
  return {graph_.add_input(name, type)};
}

GraphBuilder::Tensor GraphBuilder::constant(const std::string& name, DType dtype, Shape shape) {
  check_name(name);
  const TensorType type{dtype, std::move(shape)};
  const std::string what = "constant " + in_quotes(name);
  as_usage(what, [&] { check_type(type, graph_.symbols, &graph_.checks, what); });
  return {graph_.add_constant(name, type)};
}

GraphBuilder::Tensor GraphBuilder::constant(const std::string& name, DType dtype, Shape shape,
                                            const std::vector<Scalar>& data) {
  const auto count = element_count(shape);
  if (!count || !count->is(static_cast<std::int64_t>(data.size())))
    usage("constant " + in_quotes(name) + ": data of the wrong length", fmt::format("{} elements", data.size()),
          shape_text(shape, graph_.symbols));
  std::vector<Scalar> rounded;
  as_usage("constant " + in_quotes(name), [&] {
    const std::string file;
    for (const Scalar& element : data) {
      const JsonDocument document = JsonDocument::parse(json_text(element), file);
      rounded.push_back(read_element({document, file}, document.root(), dtype));
    }
  });
  const Tensor tensor = constant(name, dtype, std::move(shape));
  graph_.constants.back().data = std::make_shared<const std::vector<Scalar>>(std::move(rounded));
  return tensor;
}

GraphBuilder::Tensor GraphBuilder::constant(const std::string& name, DType dtype, Shape shape,
                                            const std::string& safetensors_file,
                                            const std::string& safetensors_tensor) {
  const Tensor tensor = constant(name, dtype, std::move(shape));
  graph_.constants.back().safetensors_file = safetensors_file;
  graph_.constants.back().safetensors_tensor = safetensors_tensor;
  return tensor;
}

std::string GraphBuilder::fresh_name(const std::string& wanted) {
  const auto taken = [&](const std::string& name) {
    return graph_.find_node(name) != kNone || graph_.find_value(name) != kNone ||
           graph_.find_value(name + ".0") != kNone;
  };
  std::uint32_t& count = name_counts_[wanted];
  std::string name = count == 0 ? wanted : fmt::format("{}_{}", wanted, count);
  while (taken(name)) name = fmt::format("{}_{}", wanted, ++count);
  ++count;
  return name;
}

ValueId GraphBuilder::number_operand(const Scalar& number) {
  if (number.category != Category::kFloat || std::isfinite(number.real)) return graph_.add_number(number);
  // JSON has no number for infinity and NaN.
  return constant(fresh_name(std::isnan(number.real) ? "nan" : "infinity"), DType::kFloat32, {}, {number}).id;
}

std::vector<GraphBuilder::Tensor> GraphBuilder::add(const OpDef* row, const std::vector<Arg>& args,
                                                    Attributes attributes, const std::vector<ValueType>& declared,
                                                    const std::string& node_name) {
  if (!node_name.empty() && graph_.find_node(node_name) != kNone)
    usage("a node of this name exists already", in_quotes(node_name));
  Node node{.name = node_name.empty() ? fresh_name(row->name) : node_name, .op = row};
  const std::string where = "node " + in_quotes(node.name);
  for (const Arg& arg : args) {
    if (const auto* tensor = std::get_if<Tensor>(&arg.operand))
      node.inputs.push_back(tensor->id);
    else if (const auto* number = std::get_if<Scalar>(&arg.operand))
      node.inputs.push_back(number_operand(*number));
    else if (const auto* dim = std::get_if<Dim>(&arg.operand))
      node.inputs.push_back(graph_.add_dim(*dim));
    else if (is_optional(*row, node.inputs.size()))
      node.inputs.push_back(kNone);
    else
      usage(where + ": an operand of " + row->name + " cannot be absent");
    if (const ValueId v = node.inputs.back(); v != kNone && v >= graph_.value_count())
      usage(where + ": an operand of another graph");
  }
  const std::vector<ValueType> types = as_usage(where, [&] {
    check_operand_count(*row, node.inputs.size());
    return infer_types(graph_, *row, node.inputs, attributes, declared, node.name, &graph_.checks);
  });
  if (!row->custom)
    while (!node.inputs.empty() && node.inputs.back() == kNone) node.inputs.pop_back();
  node.attributes = graph_.intern(std::move(attributes));
  std::vector<std::string> names;
  for (std::uint32_t i = 0; i < types.size(); ++i) {
    // A custom op's row does not tell its number of results.
    names.push_back(row->custom && types.size() > 1 ? fmt::format("{}.{}", node.name, i)
                                                    : default_result_name(node, i));
    check_name(names.back());
  }
  node.file_position = static_cast<std::uint32_t>(graph_.nodes.size());
  const NodeId id = graph_.add_node(std::move(node), types, std::move(names));
  std::vector<Tensor> tensors;
  for (std::uint32_t i = 0; i < types.size(); ++i) tensors.push_back({graph_.nodes[id].first_output + i});
  return tensors;
}

std::vector<GraphBuilder::Tensor> GraphBuilder::results(const std::string& op_name, const std::vector<Arg>& args,
                                                        const Settings& settings, const std::string& node_name) {
  const OpDef* row = graph_.table().find(op_name);
  if (!row) {
    const std::string nearest = graph_.table().nearest(op_name);
    usage("unknown op", in_quotes(op_name), "an op of the table; custom() takes others",
          nearest.empty() ? "" : "did you mean " + in_quotes(nearest) + "?");
  }
  Attributes attributes = as_usage(op_name + (node_name.empty() ? "" : " " + in_quotes(node_name)),
                                   [&] { return normalized(settings, *row, graph_.symbols); });
  return add(row, args, std::move(attributes), {}, node_name);
}

GraphBuilder::Tensor GraphBuilder::op(const std::string& op_name, const std::vector<Arg>& args,
                                      const Settings& settings, const std::string& node_name) {
  const std::vector<Tensor> tensors = results(op_name, args, settings, node_name);
  if (tensors.size() != 1)
    usage("an op with several results", fmt::format("{} results of {}", tensors.size(), op_name), "results()");
  return tensors.front();
}

std::vector<GraphBuilder::Tensor> GraphBuilder::custom(const std::string& op_name, const std::vector<Arg>& args,
                                                       const std::vector<TensorType>& types, const Settings& settings,
                                                       const std::string& node_name) {
  if (op_name.empty() || types.empty()) usage("a custom op needs a name and at least one result");
  const bool expression =
      std::any_of(settings.begin(), settings.end(), [](const Setting& s) { return s.name == "expr"; });
  const OpDef* row = expression ? graph_.op(expression_key(op_name)) : graph_.op(op_name);
  Attributes attributes = as_usage(op_name, [&] { return normalized(settings, *row, graph_.symbols); });
  std::vector<Tensor> tensors = add(row, args, std::move(attributes), {types.begin(), types.end()}, node_name);
  if (expression) graph_.nodes.back().pattern = pointwise_kind(graph_, graph_.nodes.back());
  return tensors;
}

void GraphBuilder::output(Tensor value) {
  if (value.id >= graph_.value_count()) usage("an output of another graph");
  if (graph_.type(value.id).is_tuple) usage("an output must be a tensor", "a tuple", "", "get_item takes a field");
  graph_.outputs.push_back(value.id);
}

void GraphBuilder::alias(Tensor output, Tensor input) {
  graph_.aliases.push_back({output.id, input.id});
}

Graph GraphBuilder::finish() {
  name_counts_.clear();
  const std::string problem = first_problem(graph_);
  if (!problem.empty()) usage(problem);
  return std::exchange(graph_, Graph(graph_.table()));
}

}  // namespace fusec
