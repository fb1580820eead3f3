// A model: a directed acyclic graph of tensor operators in SSA form. Nodes are in topological order; among the nodes
// that are ready, the reader takes the one earliest in the file. Values are numbered; each distinct type is stored
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
  // kResult: number of the result; kInput, kConstant: position in Graph::inputs, constants; kNumber, kDim: position in
  // the graph's list of numbers or dimensions.
  std::uint32_t index = 0;
};

// A weight or another constant tensor. Its value comes from `data`, from a safetensors file, or by name at run time.
struct Constant {
  ValueId value;
  // Elements in row-major order, rounded to the dtype and range-checked; null without data in the model.
  std::shared_ptr<const std::vector<Scalar>> data;
  std::string safetensors_file;  // as the model names it, relative to the model's folder; "" without one
  std::string safetensors_tensor;
};

struct Node {
  std::string name;
  const OpDef* op = nullptr;     // row of the op table or one of the graph's custom rows
  ShortList<ValueId, 4> inputs;  // kNone for an absent operand
  ValueId first_output = 0;      // its results are first_output, first_output + 1, ...
  std::uint32_t output_count = 1;
  std::uint32_t attributes = 0;      // index into Graph's attribute sets
  std::optional<OpPattern> pattern;  // pattern kind given in the file, in place of the op's own
  bool fuse = true;                  // "fuse": false
  bool feeds_quantization = false;   // its value is quantized later (analysis/lowering/feeds_quantization.h)
  bool prepared = false;             // computed once per set of weights, before any launch (transforms/prepare.h)
  std::uint32_t file_position = 0;   // index in the file's "nodes" (for error pointers)
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
  std::vector<ValueId> outputs;  // a value may occur twice
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
  ValueId find_value(std::string_view value_name) const;  // kNone without one
  NodeId find_node(std::string_view node_name) const;
  // Throws Error(kInput) if no node has the name; the error lists the nearest name or the first names. `who` is the
  // message's prefix, for example "--no-fuse-node: ".
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
  // Appends a node; its operands must exist. `types` and `output_names` describe its results.
  NodeId add_node(Node node, const std::vector<ValueType>& types, std::vector<std::string> output_names);
  NodeId add_node(Node node, std::span<const TypeId> types, std::vector<std::string> output_names);
  std::uint32_t add_symbol(Symbol symbol);
  // The row of an op by name: a row of the table or a custom row made for this graph.
  const OpDef* op(std::string_view op_name);
  const OpTable& table() const { return table_; }

  // A copy without inputs, constants, nodes and outputs, for a pass that rebuilds the graph. Ids of types and attribute
  // sets and the rows of custom ops stay valid.
  Graph emptied() const;

  // Keeps these nodes, in this order, and the constants that `kept_constants` marks. Each node must come after those
  // that it reads, and outputs and aliases must not name results of removed nodes. All inputs stay; numbers and
  // dimensions stay if a node reads them. Returns the new id of each value, kNone for removed values.
  std::vector<ValueId> rearrange(std::span<const NodeId> order, const std::vector<bool>& kept_constants);

  // --- views
  Operand operand(ValueId v) const;  // an absent operand for kNone
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

// The value of a node's result at `index`, as an expression that loads the node's operands. Analysis, the reference
// device and lowering start here.
ExprId build_formula(ExprPool& pool, const Graph& graph, const Node& node, std::size_t output,
                     std::span<const IndexExpr> index, ExprId guard = kNoExpr);

// For each value the nodes that use it, in order, once per operand; stored as compressed rows.
struct Uses {
  std::vector<std::uint32_t> begin;  // value_count + 1
  std::vector<NodeId> nodes;
  std::span<const NodeId> of(ValueId v) const { return {nodes.data() + begin[v], nodes.data() + begin[v + 1]}; }
};
Uses uses_of(const Graph& graph);

// Results of these nodes that are graph outputs or that other nodes read, in order. `nodes` is ascending; `is_output`
// is indexed by ValueId.
std::vector<ValueId> needed_of(const Graph& graph, const Uses& uses, const std::vector<std::uint8_t>& is_output,
                               std::span<const NodeId> nodes);

}  // namespace fusec
