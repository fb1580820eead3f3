#include "ir/read_nodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "ir/budget.h"
#include "ir/error.h"
#include "ir/index_size.h"
#include "ir/infer.h"
#include "ir/read_attributes.h"
#include "ir/scalar_expression.h"
#include "ir/spelling.h"
#include "ir/type_rules.h"

namespace fusec {
namespace {

constexpr std::size_t kMostListed = 20;  // nodes of a cycle in a message

enum { kNodeName, kNodeOp, kNodeInputs, kNodeOutputs, kNodeAttrs, kNodePattern, kNodeFuse };

// Splits "s.12" into "s" and 12; nothing without such a suffix.
std::optional<std::pair<std::string_view, std::uint32_t>> split_result_name(std::string_view name) {
  const auto dot = name.rfind('.');
  if (dot == std::string_view::npos || dot + 1 == name.size()) return std::nullopt;
  const std::string_view digits = name.substr(dot + 1);
  if (digits.size() > 1 && digits[0] == '0') return std::nullopt;
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  return std::pair{name.substr(0, dot), number};
}

}  // namespace

// --- names

ValueNames::ValueNames(const ReadContext& context)
    : context_(context), definitions_(context.document.strings().size()) {}

void ValueNames::define(Json at, StringId name, ValueId value, NodeId node) {
  Definition& definition = definitions_[name];
  if (definition.at != kNone)
    context_.fail(at, "duplicate value name", in_quotes(context_.document.strings()[name]),
                  "a name of its own; " + Json(context_.document, definition.at).pointer() + " has this one");
  definition = {value, node, at.index()};
}

void ValueNames::undefined(Json at, const char* what, std::string hint) const {
  if (hint.empty()) {
    std::vector<std::string_view> names;
    for (StringId id = 0; id < definitions_.size(); ++id)
      if (defined(id)) names.push_back(context_.document.strings()[id]);
    hint = did_you_mean(at.text(), names);
  }
  context_.unfit(at, what, "the name of an input, a constant or a node's result", std::move(hint));
}

// --- reading in file order

void NodeReader::read(Json nodes) {
  context_.array(nodes, "the model's nodes");
  op_of_name_.assign(context_.document.strings().size(), kNone);
  node_of_name_.assign(context_.document.strings().size(), kNone);
  nodes_.reserve(nodes.size());
  NodeId id = 0;
  try {
    for (const Json node : nodes) read_node(id++, node);
  } catch (const Error&) {
    unknown_ops_.raise();  // they come before this error and may be its cause
    throw;
  }
  unknown_ops_.raise();
  resolve_operands();
  const std::vector<NodeId> order = topological_order(reversed(needs_));
  if (order.size() < nodes_.size()) report_cycle();
  graph_.nodes.reserve(nodes_.size());
  for (const NodeId next : order) add(next);
}

void NodeReader::read_node(NodeId id, Json at) {
  const Fields fields(context_, at, "a node",
                      {{"name", true},
                       {"op", true},
                       {"inputs", true},
                       {"outputs", false},
                       {"attrs", false},
                       {"pattern", false},
                       {"fuse", false}});
  FileNode node{.at = at.index()};
  context_.name(*fields[kNodeName], "a node's name");
  node.name = fields[kNodeName]->string();
  if (const NodeId other = node_of_name_[node.name]; other != kNone)
    context_.fail(*fields[kNodeName], "duplicate node name", fields[kNodeName]->description(),
                  "a name of its own; " + json(nodes_[other].at).pointer() + " has this one");
  node_of_name_[node.name] = id;
  context_.name(*fields[kNodeOp], "a node's op");
  node.inputs = context_.array(*fields[kNodeInputs], "a node's inputs").index();
  if (fields[kNodeOutputs]) node.outputs = context_.array(*fields[kNodeOutputs], "a node's outputs").index();
  if (fields[kNodeAttrs]) node.attributes = fields[kNodeAttrs]->index();
  if (fields[kNodePattern]) {
    const std::string_view text = context_.string(*fields[kNodePattern], "a pattern kind").text();
    node.pattern = parse_op_pattern(text);
    if (!node.pattern) {
      const std::vector<std::string> kinds(kOpPatternNames.begin(), kOpPatternNames.end());
      context_.unfit(*fields[kNodePattern], "unknown pattern kind", "one of " + listed(kinds),
                     did_you_mean(text, kOpPatternNames));
    }
  }
  if (fields[kNodeFuse]) node.fuse = context_.flag(*fields[kNodeFuse], "a node's fuse");
  node.op = find_op(*fields[kNodeOp], declares_outputs(fields[kNodeOutputs]));
  node.default_names = !fields[kNodeOutputs] && ops_[node.op].row->several;
  define_outputs(id, node);
  nodes_.push_back(node);
}

bool NodeReader::declares_outputs(const std::optional<Json>& outputs) const {
  if (!outputs || outputs->size() == 0) return false;
  for (const Json output : *outputs)
    if (!output.is(JsonKind::kObject)) return false;
  return true;
}

std::uint32_t NodeReader::find_op(Json at, bool declares) {
  std::uint32_t& index = op_of_name_[at.string()];
  const bool is_new = index == kNone;
  if (is_new) {
    Op op;
    op.row = graph_.op(at.text());
    op.operands = operand_count(*op.row);
    ops_.push_back(op);
    index = static_cast<std::uint32_t>(ops_.size() - 1);
  }
  // Report each unknown op once.
  if (ops_[index].row->custom && !declares && (is_new || unknown_ops_.empty()))
    unknown_ops_.attempt([&] {
      const std::string nearest = graph_.table().nearest(at.text());
      context_.unfit(at, "unknown op",
                     "an op of the table, or outputs that declare the dtype and shape of a custom op's results",
                     nearest.empty() ? "" : "did you mean " + in_quotes(nearest) + "?");
    });
  return index;
}

void NodeReader::define_outputs(NodeId id, const FileNode& node) {
  if (node.outputs == kNone) {
    if (!node.default_names) values_.define(json(node.at), node.name, kNone, id);
    return;
  }
  for (const Json output : json(node.outputs)) {
    count_step();
    if (output.is(JsonKind::kString)) {
      context_.name(output, "an output's name");
      values_.define(output, output.string(), kNone, id);
      continue;
    }
    if (!output.is(JsonKind::kObject))
      context_.unfit(output, "a node's output", "a name, or an object with name, dtype and shape");
    const bool custom = ops_[node.op].row->custom;
    const Fields fields(context_, output, "an output", {{"name", true}, {"dtype", custom}, {"shape", custom}});
    context_.name(*fields[0], "an output's name");
    values_.define(*fields[0], fields[0]->string(), kNone, id);
  }
}

// --- order

NodeId NodeReader::producer_of(Json operand) const {
  if (values_.defined(operand.string())) return values_[operand.string()].node;
  if (const auto split = split_result_name(operand.text())) {
    const StringId name = context_.document.strings().find(split->first);
    const NodeId node = name == kNoString ? kNone : node_of_name_[name];
    if (node != kNone && nodes_[node].default_names) return node;
  }
  // A node with several results has no result with the node's name.
  const NodeId node = node_of_name_[operand.string()];
  std::string hint;
  if (node != kNone && nodes_[node].default_names) {
    const std::string first = std::string(operand.text()) + ".0";
    hint = "its results are called " + in_quotes(first) + " and so on";
  }
  values_.undefined(operand, "undefined operand", hint);
}

void NodeReader::resolve_operands() {
  ErrorList undefined;
  std::set<StringId> told;  // names already reported
  needs_.first.push_back(0);
  const auto producer = [&](Json operand) {
    NodeId node = kNone;
    if (!told.contains(operand.string()) && !undefined.attempt([&] { node = producer_of(operand); }))
      told.insert(operand.string());
    return node;
  };
  for (const FileNode& node : nodes_) {
    count_step();
    for (const Json operand : json(node.inputs))
      if (const NodeId needed = operand.is(JsonKind::kString) ? producer(operand) : kNone; needed != kNone)
        needs_.targets.push_back(needed);
    needs_.first.push_back(static_cast<std::uint32_t>(needs_.targets.size()));
  }
  undefined.raise();
}

void NodeReader::report_cycle() const {
  std::vector<NodeId> cycle = find_cycle(needs_);  // against the flow of data
  std::ranges::reverse(cycle);
  std::rotate(cycle.begin(), std::ranges::min_element(cycle), cycle.end());

  std::string path;
  for (std::size_t i = 0; i < std::min(cycle.size(), kMostListed); ++i)
    path += in_quotes(context_.document.strings()[nodes_[cycle[i]].name]) + " -> ";
  if (cycle.size() > kMostListed) path += fmt::format("... ({} nodes in all) -> ", cycle.size());
  path += in_quotes(context_.document.strings()[nodes_[cycle[0]].name]);
  context_.fail(json(nodes_[cycle[0]].at), "a cycle", path, "nodes that can be put in an order");
}

// --- into the graph

void NodeReader::add(NodeId id) {
  const FileNode& file_node = nodes_[id];
  const Op& op = ops_[file_node.op];
  Node node{.name = std::string(context_.document.strings()[file_node.name]), .op = row_of(file_node)};
  node.inputs = operands(file_node, op);
  const std::optional<Json> attrs =
      file_node.attributes == kNone ? std::nullopt : std::optional(json(file_node.attributes));
  node.attributes = graph_.intern(read_attributes(context_, json(file_node.at), attrs, *node.op, symbols_));
  const bool makes_tuple = node.op->special == Special::kTuple && node.op->name == "tuple";
  const TupleSize tuple = makes_tuple ? checked_tuple(file_node, node.inputs) : TupleSize{};
  const std::vector<TypeId> types = result_types(file_node, node);
  node.pattern = file_node.pattern;
  node.fuse = file_node.fuse;
  node.file_position = id;
  std::vector<std::string> names;
  std::vector<StringId> name_ids;
  for (ResultName& name : result_names(file_node, types.size())) {
    if (file_node.default_names && name.id != kNoString) values_.define(json(file_node.at), name.id, kNone, id);
    names.push_back(std::move(name.text));
    name_ids.push_back(name.id);
  }
  const NodeId added = graph_.add_node(std::move(node), types, std::move(names));
  publish(id, added, name_ids);
  if (!makes_tuple) return;
  const TypeId type = graph_.value(graph_.nodes[added].first_output).type;
  if (tuple_sizes_.size() <= type) tuple_sizes_.resize(type + 1);
  tuple_sizes_[type] = tuple;
}

const OpDef* NodeReader::row_of(const FileNode& node) {
  const OpDef* row = ops_[node.op].row;
  const bool pointwise = node.pattern == OpPattern::kElemwise || node.pattern == OpPattern::kBroadcast;
  if (!row->custom || !pointwise || node.attributes == kNone || !json(node.attributes).is(JsonKind::kObject))
    return row;
  for (const Json member : json(node.attributes))
    if (member.key_text() == "expr") return graph_.op(expression_key(row->name));
  return row;
}

std::vector<ValueId> NodeReader::operands(const FileNode& node, const Op& op) {
  const Json inputs = json(node.inputs);
  if (inputs.size() < op.operands.least || inputs.size() > op.operands.most) {
    try {
      check_operand_count(*op.row, inputs.size());
    } catch (const OpError& error) {
      context_.fail(json(node.at), error);
    }
  }
  context_.require_within(&Limits::operands, inputs.size(), inputs);
  std::vector<ValueId> values;
  values.reserve(inputs.size());
  for (const Json input : inputs) values.push_back(operand(input, values.size(), op));
  // Drop absent operands at the end.
  if (!op.row->custom)
    while (!values.empty() && values.back() == kNone) values.pop_back();
  return values;
}

ValueId NodeReader::operand(Json at, std::size_t position, const Op& op) {
  switch (at.kind()) {
    case JsonKind::kString: {
      const ValueId value = values_[at.string()].value;
      if (value == kNone) values_.undefined(at, "undefined operand");
      return value;
    }
    case JsonKind::kNull: {
      if (!is_optional(*op.row, position))
        context_.unfit(at, "an absent operand of " + op.row->name, "a value: only an optional operand may be null");
      return kNone;
    }
    case JsonKind::kBool:
    case JsonKind::kInteger:
    case JsonKind::kUnsigned:
    case JsonKind::kHuge:
    case JsonKind::kFloat:
      return graph_.add_number(read_scalar(context_, at, "a number as operand"));
    case JsonKind::kObject: {
      const Fields fields(context_, at, "an operand", {{"dim", true}});
      return graph_.add_dim(dim_operand(*fields[0]));
    }
    case JsonKind::kArray:
      break;
  }
  context_.unfit(at, "an operand", "a value's name, a number, true, false, null or {\"dim\": ...}");
}

// A dimension operand. An expression may have any integer value, a number must be a valid extent.
Dim NodeReader::dim_operand(Json at) const {
  if (!at.is(JsonKind::kString)) return read_dim(context_, at, symbols_);
  try {
    return parse_dim(at.text(), symbols_);
  } catch (const OpError& error) {
    context_.fail(at, error);
  }
}

std::vector<ValueType> NodeReader::declared_types(const FileNode& node) const {
  std::vector<ValueType> types;
  if (node.outputs == kNone) return types;
  for (const Json output : json(node.outputs)) {
    count_step();
    if (!output.is(JsonKind::kObject)) return {};
    const Fields fields(context_, output, "an output", {{"name", true}, {"dtype", false}, {"shape", false}});
    if (!fields[1] || !fields[2]) return {};
    types.push_back(read_type(context_, *fields[1], *fields[2], symbols_));
  }
  return types;
}

std::vector<TypeId> NodeReader::result_types(const FileNode& file_node, const Node& node) {
  const std::vector<ValueType> declared = declared_types(file_node);
  std::vector<TypeId> declared_ids, ids;
  for (const ValueType& type : declared) declared_ids.push_back(graph_.intern(type));
  const std::vector<TypeId>* known = inferred_.find(graph_, node, declared_ids);
  if (known) {
    ids = *known;
  } else {
    std::vector<ValueType> types = infer(file_node, node, declared);
    check_dimensions(file_node, types);
    for (ValueType& type : types) ids.push_back(graph_.intern(std::move(type)));
    inferred_.add(ids);
  }
  const auto results = static_cast<std::int64_t>(ids.size());
  context_.require_within(&Limits::results, results, json(file_node.at));
  context_.require_within(&Limits::values, results_ += results, json(file_node.at));
  // An equal node with the same declared types was checked before. A custom op has only declared types.
  const bool is_checked = known && !declared.empty();
  if (file_node.outputs != kNone && !node.op->custom && !is_checked) check_declared(file_node, ids);
  return ids;
}

std::vector<ValueType> NodeReader::infer(const FileNode& file_node, const Node& node,
                                         const std::vector<ValueType>& declared) {
  try {
    return infer_types(graph_, *node.op, node.inputs, graph_.attributes(node), declared, node.name, &graph_.checks);
  } catch (const OpError& error) {
    context_.fail(json(file_node.at), error);
  }
}

void NodeReader::check_dimensions(const FileNode& node, const std::vector<ValueType>& types) {
  if (graph_.symbols.empty()) return;
  const auto check = [&](std::int64_t Limits::*limit, auto count, const Dim& dim) {
    const auto most = static_cast<std::size_t>(context_.limits.*limit);
    context_.require_within(limit, static_cast<std::int64_t>(count(dim, most)), json(node.at));
  };
  for (const ValueType& type : types)
    for (const Dim& dim : type.tensor.shape) {
      check(&Limits::dimension_size, index_size, dim);
      check(&Limits::dimension_terms, term_count, dim);
    }
}

// Checks the size of a tuple before its type is made, since the type contains the types of all fields.
TupleSize NodeReader::checked_tuple(const FileNode& node, std::span<const ValueId> fields) {
  TupleSize size{.fields = 0, .depth = 1};
  for (const ValueId v : fields) {
    if (v == kNone) continue;
    const TypeId type = graph_.value(v).type;
    const TupleSize field = type < tuple_sizes_.size() ? tuple_sizes_[type] : TupleSize{};
    size.fields += 1 + field.fields;
    size.depth = std::max(size.depth, field.depth + 1);
    context_.require_within(&Limits::tuple_fields, tuple_fields_ + size.fields, json(node.at));
  }
  context_.require_within(&Limits::tuple_depth, size.depth, json(node.at));
  tuple_fields_ += size.fields;
  return size;
}

void NodeReader::check_declared(const FileNode& node, const std::vector<TypeId>& types) {
  const Json outputs = json(node.outputs);
  if (outputs.size() != types.size())
    context_.fail(outputs, "wrong number of outputs", std::to_string(outputs.size()), std::to_string(types.size()));
  std::size_t i = 0;
  for (const Json output : outputs) {
    count_step();
    const ValueType& type = graph_.type_by_id(types[i++]);
    if (!output.is(JsonKind::kObject)) continue;
    const Fields fields(context_, output, "an output", {{"name", true}, {"dtype", false}, {"shape", false}});
    if (!fields[1] && !fields[2]) continue;
    if (type.is_tuple)
      context_.fail(output, "a declared type does not agree with inference", "a tensor",
                    to_string(type, graph_.symbols));
    const DType dtype = fields[1] ? read_dtype(context_, *fields[1], "an output's dtype") : type.tensor.dtype;
    if (dtype != type.tensor.dtype)
      context_.fail(*fields[1], "a declared dtype does not agree with inference", in_quotes(name(dtype)),
                    in_quotes(name(type.tensor.dtype)));
    if (!fields[2]) continue;
    const TensorType declared{dtype, read_shape(context_, *fields[2], symbols_)};
    const std::string what = "the declared shape of " + in_quotes(context_.document.strings()[node.name]);
    if (!types_agree(declared, type.tensor, graph_.symbols, &graph_.checks, what))
      context_.fail(*fields[2], "a declared shape does not agree with inference",
                    shape_text(declared.shape, graph_.symbols), shape_text(type.tensor.shape, graph_.symbols));
  }
}

std::vector<NodeReader::ResultName> NodeReader::result_names(const FileNode& node, std::size_t count) const {
  std::vector<ResultName> names;
  const StringTable& strings = context_.document.strings();
  const std::string own(strings[node.name]);
  if (node.outputs == kNone) {
    if (!node.default_names && count == 1) return {{own, node.name}};
    if (!node.default_names)
      context_.fail(json(node.at), "a node without outputs", fmt::format("{} results", count), "one result");
    for (std::size_t i = 0; i < count; ++i) {
      count_step();
      std::string name = fmt::format("{}.{}", own, i);
      const StringId id = strings.find(name);
      names.push_back({std::move(name), id});
    }
    return names;
  }
  const auto add = [&](Json name) { names.push_back({std::string(name.text()), name.string()}); };
  for (const Json output : json(node.outputs)) {
    count_step();
    if (output.is(JsonKind::kString)) {
      add(output);
    } else {
      for (const Json member : output)
        if (member.key_text() == "name") add(member);
    }
  }
  return names;
}

void NodeReader::publish(NodeId id, NodeId graph_node, const std::vector<StringId>& names) {
  const Node& added = graph_.nodes[graph_node];
  for (std::uint32_t i = 0; i < added.output_count; ++i) {
    count_step();
    if (names[i] != kNoString && values_[names[i]].node == id) values_.set_value(names[i], added.first_output + i);
  }
}

}  // namespace fusec
