// A model: a directed acyclic graph of tensor operators in SSA form. Nodes stand in topological order (the reader
// takes, among the nodes that are ready, always the one earliest in the file); values are numbered, types are stored
// once.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ir/attributes.h"
#include "ir/large_vector.h"
#include "ir/name_index.h"
#include "ir/op.h"
#include "ir/short_list.h"
#include "ir/type.h"

namespace fusec {

using ValueId = std::uint32_t;
using NodeId = std::uint32_t;
using TypeId = std::uint32_t;
inline constexpr std::uint32_t kNone = 0xffffffffu;  // an absent operand, no producer

struct Value {
  enum class Kind : std::uint8_t { kInput, kConstant, kNumber, kDim, kResult };
  Kind kind;
  std::string name;  // empty for numbers and dims
  TypeId type = 0;
  NodeId producer = kNone;  // kResult
  std::uint32_t index =
      0;  // kResult: which result; kInput, kConstant: position in that list; kNumber, kDim: in numbers, dims
};

// A tensor known before run time. Its value comes from `data`, from a safetensors file, or at run time by name.
struct Constant {
  ValueId value;
  // Elements as `data` gives them, in row-major order (numbers already range-checked), or empty.
  std::shared_ptr<const std::vector<Scalar>> data;
  std::string safetensors_file;  // as the model names it, relative to the model's folder; "" where there is none
  std::string safetensors_tensor;
};

struct Node {
  std::string name;
  const OpDef* op = nullptr;     // owned by the table or by the graph's custom rows
  ShortList<ValueId, 4> inputs;  // kNone for an absent operand
  ValueId first_output = 0;      // its results are first_output, first_output + 1, ...
  std::uint32_t output_count = 1;
  std::uint32_t attributes = 0;      // index into Graph's attribute sets
  std::optional<OpPattern> pattern;  // as the file overrules it
  bool fuse = true;                  // "fuse": false
  bool feeds_quantization = false;  // some wide result becomes a code in the end (analysis/lowering/feeds_quantization)
  bool prepared = false;            // computed once for each set of weights, before any launch (transforms/prepare)
  std::uint32_t file_position = 0;  // index in the file's "nodes" (for error pointers)
};

struct Alias {
  ValueId output, input;
};

class Graph {
 public:
  explicit Graph(OpTable table = OpTable::builtin());

  std::string name = "model";
  std::string file;       // as the user named it, for messages
  std::string directory;  // where weight files are looked for
  Symbols symbols;
  std::vector<ValueId> inputs;
  std::vector<Constant> constants;
  LargeVector<Node> nodes;
  std::vector<ValueId> outputs;  // a value may stand twice
  std::vector<Alias> aliases;
  std::vector<LaunchCheck> checks;

  // --- values
  const Value& value(ValueId v) const { return values_[v]; }
  std::size_t value_count() const { return values_.size(); }
  const ValueType& type(ValueId v) const { return types_[values_[v].type]; }
  const TensorType& tensor(ValueId v) const { return type(v).tensor; }
  const ValueType& type_by_id(TypeId t) const { return types_[t]; }
  std::size_t type_count() const { return types_.size(); }
  const Scalar& number(ValueId v) const { return numbers_[values_[v].index]; }
  const Dim& dim(ValueId v) const { return dims_[values_[v].index]; }
  const Constant* constant_of(ValueId v) const;
  ValueId find_value(std::string_view value_name) const;  // kNone where there is none
  NodeId find_node(std::string_view node_name) const;
  // Throws Error(kInput), with the nearest name or the first ones, where there is none. `who`: "--no-fuse-node: ".
  NodeId required_node(std::string_view node_name, std::string_view who = "") const;

  // --- building (the reader and the builder use these; names must be unique: throws InternalError)
  TypeId intern(ValueType type);
  std::uint32_t intern(Attributes attributes);
  const Attributes& attributes(const Node& node) const { return attribute_sets_[node.attributes]; }
  const Attributes& attribute_set(std::uint32_t id) const { return attribute_sets_[id]; }
  ValueId add_input(std::string value_name, TensorType type);
  ValueId add_constant(std::string value_name, TensorType type);
  ValueId add_number(Scalar number);
  ValueId add_dim(Dim dim);
  // Appends a node whose operands exist; `types` are its results' types, `output_names` their names.
  NodeId add_node(Node node, const std::vector<ValueType>& types, std::vector<std::string> output_names);
  std::uint32_t add_symbol(Symbol symbol);
  // The row of an op by name: the table's, or a custom row made for this graph.
  const OpDef* op(std::string_view op_name);
  const OpTable& table() const { return table_; }

  // The same model without inputs, constants, nodes and outputs: what a pass fills anew. Ids of types and of attribute
  // sets, and the rows of custom ops, stay what they are.
  Graph emptied() const;

  // Keeps these nodes, in this order (each behind those that it reads; outputs and aliases among their results), and
  // the constants that are marked, by place in the list. Inputs stay; numbers and dimensions as far as they are read.
  // Gives the new id of each value, kNone for what went.
  std::vector<ValueId> rearrange(std::span<const NodeId> order, const std::vector<bool>& kept_constants);

  // --- views
  Operand operand(ValueId v) const;  // kNone gives an absent one
  std::vector<Operand> operands(const Node& node) const;
  std::vector<ValueType> result_types(const Node& node) const;
  Bounds bounds() const { return {symbols, {}, {}}; }

 private:
  ValueId add_value(Value value);

  OpTable table_;
  std::unordered_map<std::string, std::shared_ptr<const OpDef>> custom_rows_;
  LargeVector<Value> values_;
  std::vector<ValueType> types_;
  std::unordered_multimap<std::size_t, TypeId> type_index_;
  std::vector<Attributes> attribute_sets_;
  std::unordered_multimap<std::size_t, std::uint32_t> attribute_index_;
  std::vector<Scalar> numbers_;
  std::vector<Dim> dims_;
  NameIndex value_names_, node_names_;
};

// The formula of a node's result, its operands loaded: the entry for analysis, reference and lowering.
ExprId build_formula(ExprPool& pool, const Graph& graph, const Node& node, std::size_t output,
                     std::span<const IndexExpr> index, ExprId guard = kNoExpr);

// For each value, the nodes that use it (once for every operand), in order; compressed rows.
struct Uses {
  std::vector<std::uint32_t> begin;  // value_count + 1
  std::vector<NodeId> nodes;
  std::span<const NodeId> of(ValueId v) const { return {nodes.data() + begin[v], nodes.data() + begin[v + 1]}; }
};
Uses uses_of(const Graph& graph);

// What others need of these nodes (ascending), in order: results that are outputs, as `is_output` has it by value, or
// that further nodes read.
std::vector<ValueId> needed_of(const Graph& graph, const Uses& uses, const std::vector<std::uint8_t>& is_output,
                               std::span<const NodeId> nodes);

}  // namespace fusec
