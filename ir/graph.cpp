#include "ir/graph.h"

#include <algorithm>
#include <bit>

#include "ir/budget.h"
#include "ir/error.h"
#include "ir/formula.h"
#include "ir/hash.h"
#include "ir/scalar_expression.h"
#include "ir/spelling.h"

namespace fusec {
namespace {

std::size_t hash_of(const ValueType& type) {
  std::size_t h = static_cast<std::size_t>(type.tensor.dtype) + (type.is_tuple ? 64 : 0);
  for (const Dim& dim : type.tensor.shape) h = hash_mix(h, dim.hash());
  for (const ValueType& field : type.fields) h = hash_mix(h, hash_of(field));
  return h;
}

// A hash of the attributes' names and most kinds of values; equality decides.
std::size_t hash_of(const Attributes& attributes) {
  std::size_t h = attributes.list().size();
  for (const Attribute& a : attributes.list()) {
    h = hash_mix(h, std::hash<std::string>{}(a.name));
    if (const auto* v = std::get_if<std::int64_t>(&a.value)) h = hash_mix(h, static_cast<std::size_t>(*v));
    if (const auto* v = std::get_if<double>(&a.value)) h = hash_mix(h, std::hash<double>{}(*v));
    if (const auto* v = std::get_if<Scalar>(&a.value))
      h = hash_mix(h, std::bit_cast<std::uint64_t>(v->real) ^ static_cast<std::uint64_t>(v->integer));
    if (const auto* v = std::get_if<DType>(&a.value)) h = hash_mix(h, static_cast<std::size_t>(*v));
    if (const auto* v = std::get_if<bool>(&a.value)) h = hash_mix(h, *v ? 1 : 0);
    if (const auto* v = std::get_if<std::vector<double>>(&a.value))
      for (const double x : *v) h = hash_mix(h, std::bit_cast<std::uint64_t>(x));
    if (const auto* v = std::get_if<std::string>(&a.value)) h = hash_mix(h, std::hash<std::string>{}(*v));
    if (const auto* v = std::get_if<Dim>(&a.value)) h = hash_mix(h, v->hash());
    if (const auto* v = std::get_if<std::vector<std::int64_t>>(&a.value))
      for (const std::int64_t x : *v) h = hash_mix(h, static_cast<std::size_t>(x));
    if (const auto* v = std::get_if<std::vector<Dim>>(&a.value))
      for (const Dim& x : *v) h = hash_mix(h, x.hash());
    if (const auto* v = std::get_if<RawJson>(&a.value)) h = hash_mix(h, std::hash<std::string>{}(v->text));
  }
  return h;
}

// Equality by bits: NaN equals NaN, so attribute sets with a NaN are found again, and -0.0 differs from 0.0.
bool same_bits(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

bool same_attribute(const Attribute& a, const Attribute& b) {
  if (a.name != b.name || a.value.index() != b.value.index()) return false;
  if (const auto* x = std::get_if<Scalar>(&a.value)) {
    const Scalar& y = std::get<Scalar>(b.value);
    return x->category == y.category && x->integer == y.integer && same_bits(x->real, y.real);
  }
  if (const auto* x = std::get_if<double>(&a.value)) return same_bits(*x, std::get<double>(b.value));
  return a.value == b.value;
}

DType default_dtype(Category category) {
  switch (category) {
    case Category::kBool:
      return DType::kBool;
    case Category::kInteger:
      return DType::kInt64;
    case Category::kFloat:
      return DType::kFloat32;
  }
  return DType::kFloat32;
}

}  // namespace

Graph::Graph(OpTable table) : table_(std::move(table)) {
  types_.push_back(TensorType{DType::kFloat32, {}});
  type_index_.emplace(hash_of(types_[0]), 0);
  attribute_sets_.emplace_back();
  attribute_index_.emplace(hash_of(attribute_sets_[0]), 0);
}

TypeId Graph::intern(ValueType type) {
  const std::size_t h = hash_of(type);
  const auto [first, last] = type_index_.equal_range(h);
  for (auto it = first; it != last; ++it)
    if (types_[it->second] == type) return it->second;
  const TypeId id = static_cast<TypeId>(types_.size());
  types_.push_back(std::move(type));
  type_index_.emplace(h, id);
  return id;
}

std::uint32_t Graph::intern(Attributes attributes) {
  if (attributes.empty()) return 0;
  const std::size_t h = hash_of(attributes);
  const auto [first, last] = attribute_index_.equal_range(h);
  for (auto it = first; it != last; ++it)
    if (std::ranges::equal(attribute_sets_[it->second].list(), attributes.list(), same_attribute)) return it->second;
  const std::uint32_t id = static_cast<std::uint32_t>(attribute_sets_.size());
  attribute_sets_.push_back(std::move(attributes));
  attribute_index_.emplace(h, id);
  return id;
}

ValueId Graph::add_value(Value value) {
  count_step();
  const ValueId id = static_cast<ValueId>(values_.size());
  const auto name_of = [&](ValueId v) -> const std::string& { return values_[v].name; };
  if (!value.name.empty() && !value_names_.add(value.name, id, name_of))
    throw InternalError("a value named \"" + value.name + "\" exists already");
  values_.push_back(std::move(value));
  return id;
}

ValueId Graph::add_input(std::string value_name, TensorType type) {
  Value value{.kind = Value::Kind::kInput, .name = std::move(value_name), .type = intern(std::move(type))};
  value.index = static_cast<std::uint32_t>(inputs.size());
  const ValueId id = add_value(std::move(value));
  inputs.push_back(id);
  return id;
}

ValueId Graph::add_constant(std::string value_name, TensorType type) {
  Value value{.kind = Value::Kind::kConstant, .name = std::move(value_name), .type = intern(std::move(type))};
  value.index = static_cast<std::uint32_t>(constants.size());
  const ValueId id = add_value(std::move(value));
  constants.push_back({.value = id});
  return id;
}

ValueId Graph::add_number(Scalar number) {
  Value value{.kind = Value::Kind::kNumber, .type = intern(TensorType{default_dtype(number.category), {}})};
  value.index = static_cast<std::uint32_t>(numbers_.size());
  numbers_.push_back(number);
  return add_value(std::move(value));
}

ValueId Graph::add_dim(Dim dim) {
  Value value{.kind = Value::Kind::kDim, .type = intern(TensorType{DType::kInt64, {}})};
  value.index = static_cast<std::uint32_t>(dims_.size());
  dims_.push_back(std::move(dim));
  return add_value(std::move(value));
}

NodeId Graph::add_node(Node node, const std::vector<ValueType>& types, std::vector<std::string> output_names) {
  std::vector<TypeId> ids;
  for (const ValueType& type : types) ids.push_back(intern(type));
  return add_node(std::move(node), ids, std::move(output_names));
}

NodeId Graph::add_node(Node node, std::span<const TypeId> types, std::vector<std::string> output_names) {
  const NodeId id = static_cast<NodeId>(nodes.size());
  if (!node_names_.add(node.name, id, [&](NodeId n) -> const std::string& { return nodes[n].name; }))
    throw InternalError("a node named \"" + node.name + "\" exists already");
  node.first_output = static_cast<ValueId>(values_.size());
  node.output_count = static_cast<std::uint32_t>(types.size());
  for (std::size_t i = 0; i < types.size(); ++i) {
    Value value{.kind = Value::Kind::kResult, .name = std::move(output_names[i]), .type = types[i], .producer = id};
    value.index = static_cast<std::uint32_t>(i);
    add_value(std::move(value));
  }
  nodes.push_back(std::move(node));
  return id;
}

std::uint32_t Graph::add_symbol(Symbol symbol) {
  symbols.add(std::move(symbol));
  return static_cast<std::uint32_t>(symbols.size() - 1);
}

const OpDef* Graph::op(std::string_view op_name) {
  if (const OpDef* row = table_.find(op_name)) return row;
  const std::string key(op_name);
  if (const auto it = custom_rows_.find(key); it != custom_rows_.end()) return it->second.get();
  if (is_expression_key(op_name)) {
    auto row = std::make_shared<const OpDef>(expression_row(op_of_expression_key(op_name)));
    return custom_rows_.emplace(key, std::move(row)).first->second.get();
  }
  auto row = std::make_shared<OpDef>();
  row->name = op_name;
  row->family = "custom";
  row->summary = "a custom op of this model";
  row->operands = {"operands*"};
  row->special = Special::kExternal;
  row->custom = true;
  row->infer = [](const OpCall& call) { return std::vector<ValueType>(call.declared.begin(), call.declared.end()); };
  custom_rows_.emplace(key, row);
  return row.get();
}

Graph Graph::emptied() const {
  Graph graph(table_);
  graph.name = name;
  graph.file = file;
  graph.directory = directory;
  graph.symbols = symbols;
  graph.checks = checks;
  graph.custom_rows_ = custom_rows_;
  graph.types_ = types_;
  graph.type_index_ = type_index_;
  graph.attribute_sets_ = attribute_sets_;
  graph.attribute_index_ = attribute_index_;
  graph.nodes.reserve(nodes.size());
  graph.values_.reserve(values_.size());
  graph.value_names_.reserve(values_.size());
  graph.node_names_.reserve(nodes.size());
  return graph;
}

const Constant* Graph::constant_of(ValueId v) const {
  return values_[v].kind == Value::Kind::kConstant ? &constants[values_[v].index] : nullptr;
}

ValueId Graph::find_value(std::string_view value_name) const {
  return value_names_.find(value_name, [&](ValueId v) -> const std::string& { return values_[v].name; });
}

NodeId Graph::find_node(std::string_view node_name) const {
  return node_names_.find(node_name, [&](NodeId n) -> const std::string& { return nodes[n].name; });
}

NodeId Graph::required_node(std::string_view node_name, std::string_view who) const {
  constexpr std::size_t kMostListed = 12;
  if (const NodeId n = find_node(node_name); n != kNone) return n;
  std::vector<std::string_view> names;
  for (const Node& node : nodes) names.push_back(node.name);
  const std::string hint = did_you_mean(node_name, names);
  std::vector<std::string> shown;
  if (hint.empty())
    for (const std::string_view known : names) shown.push_back(in_quotes(known));
  throw Error(ErrorKind::kInput, {.file = file,
                                  .what = std::string(who) + "no such node",
                                  .found = in_quotes(node_name),
                                  .expected = hint.empty() ? "one of " + listed(shown, kMostListed) : "",
                                  .hint = hint});
}

Operand Graph::operand(ValueId v) const {
  Operand o;
  if (v == kNone) return o;
  o.type = type(v);
  o.value = v;
  switch (values_[v].kind) {
    case Value::Kind::kNumber:
      o.kind = Operand::Kind::kNumber;
      o.number = number(v);
      break;
    case Value::Kind::kDim:
      o.kind = Operand::Kind::kDim;
      o.dim = dim(v);
      break;
    case Value::Kind::kInput:
    case Value::Kind::kConstant:
    case Value::Kind::kResult:
      o.kind = o.type.is_tuple ? Operand::Kind::kTuple : Operand::Kind::kTensor;
      break;
  }
  return o;
}

std::vector<Operand> Graph::operands(const Node& node) const {
  std::vector<Operand> list;
  list.reserve(node.inputs.size());
  for (const ValueId v : node.inputs) list.push_back(operand(v));
  return list;
}

std::vector<ValueType> Graph::result_types(const Node& node) const {
  std::vector<ValueType> list;
  for (std::uint32_t i = 0; i < node.output_count; ++i) list.push_back(type(node.first_output + i));
  return list;
}

ExprId build_formula(ExprPool& pool, const Graph& graph, const Node& node, std::size_t output,
                     std::span<const IndexExpr> index, ExprId guard) {
  if (!node.op->formula) throw InternalError("op " + node.op->name + " has no formula");
  // The formula of an empty tensor is never evaluated and might divide by a dimension of 0.
  const TensorType& type = graph.tensor(node.first_output + static_cast<ValueId>(output));
  for (const Dim& dim : type.shape)
    if (dim.is(0)) return pool.constant(compute_type(type.dtype), std::int64_t{0});
  const std::vector<Operand> operands = graph.operands(node);
  // Formulas use only the type of the first result; there may be many results.
  Formula formula(pool, operands, graph.attributes(node), std::span(&graph.type(node.first_output), 1));
  formula.set_guard(guard);
  return node.op->formula(formula, output, index);
}

Uses uses_of(const Graph& graph) {
  Uses uses;
  uses.begin.assign(graph.value_count() + 1, 0);
  for (const Node& node : graph.nodes)
    for (const ValueId v : node.inputs)
      if (v != kNone) ++uses.begin[v + 1];
  for (std::size_t v = 0; v < graph.value_count(); ++v) uses.begin[v + 1] += uses.begin[v];
  uses.nodes.resize(uses.begin.back());
  std::vector<std::uint32_t> next(uses.begin.begin(), uses.begin.end() - 1);
  for (NodeId n = 0; n < graph.nodes.size(); ++n)
    for (const ValueId v : graph.nodes[n].inputs)
      if (v != kNone) uses.nodes[next[v]++] = n;
  return uses;
}

std::vector<ValueId> needed_of(const Graph& graph, const Uses& uses, const std::vector<std::uint8_t>& is_output,
                               std::span<const NodeId> nodes) {
  const auto is_further = [&](NodeId reader) { return !std::ranges::binary_search(nodes, reader); };
  std::vector<ValueId> needed;
  for (const NodeId n : nodes) {
    const Node& node = graph.nodes[n];
    for (ValueId v = node.first_output; v < node.first_output + node.output_count; ++v)
      if (is_output[v] != 0 || std::ranges::any_of(uses.of(v), is_further)) needed.push_back(v);
  }
  return needed;
}

}  // namespace fusec
