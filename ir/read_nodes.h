// Reads the nodes of a model: resolves names, sorts the nodes topologically and infers types.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/digraph.h"
#include "ir/infer.h"
#include "ir/inferred_types.h"
#include "ir/read_context.h"
#include "ir/several_errors.h"

namespace fusec {

// What each name of a model defines. Names are StringIds of the document, so each name is hashed once.
class ValueNames {
 public:
  explicit ValueNames(const ReadContext& context);

  struct Definition {
    ValueId value = kNone;     // set once the value is in the graph
    NodeId node = kNone;       // the node of the file that produces it; kNone for inputs and constants
    std::uint32_t at = kNone;  // index in the document of the element that defines it
  };
  const Definition& operator[](StringId name) const { return definitions_[name]; }
  bool defined(StringId name) const { return definitions_[name].at != kNone; }
  // Throws Error if the name is taken.
  void define(Json at, StringId name, ValueId value, NodeId node);
  void set_value(StringId name, ValueId value) { definitions_[name].value = value; }
  // Throws for an operand or output with an unknown name.
  [[noreturn]] void undefined(Json at, const char* what, std::string hint = "") const;

 private:
  const ReadContext& context_;
  std::vector<Definition> definitions_;
};

// The size of a tuple type: the number of its fields, with those of nested tuples, and the nesting depth. 0 and 0 for a
// tensor type.
struct TupleSize {
  std::int64_t fields = 0, depth = 0;
};

class NodeReader {
 public:
  NodeReader(const ReadContext& context, const SymbolNames& symbols, ValueNames& values, Graph& graph)
      : context_(context), symbols_(symbols), values_(values), graph_(graph) {}

  // Reads the array of nodes and appends them to the graph in topological order.
  void read(Json nodes);

 private:
  struct Op {
    const OpDef* row = nullptr;
    OperandCount operands;
  };
  // A node of the file, before its place in the order is known.
  struct FileNode {
    std::uint32_t at = 0;  // document indices: the node's object, then the values of its keys
    std::uint32_t inputs = 0, outputs = kNone, attributes = kNone;
    StringId name = 0;
    std::uint32_t op = 0;  // index into ops_
    std::optional<OpPattern> pattern;
    bool fuse = true;
    bool default_names = false;  // results are name.0, name.1, ...; inference tells how many
  };

  Json json(std::uint32_t index) const { return {context_.document, index}; }
  void read_node(NodeId id, Json at);
  std::uint32_t find_op(Json at, bool declares_outputs);
  bool declares_outputs(const std::optional<Json>& outputs) const;
  void define_outputs(NodeId id, const FileNode& node);
  void resolve_operands();
  NodeId producer_of(Json operand) const;
  [[noreturn]] void report_cycle() const;

  void add(NodeId id);
  // The op's row. A custom op has a second row for nodes that carry an expression.
  const OpDef* row_of(const FileNode& node);
  std::vector<ValueId> operands(const FileNode& node, const Op& op);
  ValueId operand(Json at, std::size_t position, const Op& op);
  Dim dim_operand(Json at) const;
  std::vector<ValueType> declared_types(const FileNode& node) const;
  // Infers the types and compares them with those that the file declares.
  std::vector<TypeId> result_types(const FileNode& file_node, const Node& node);
  std::vector<ValueType> infer(const FileNode& file_node, const Node& node, const std::vector<ValueType>& declared);
  void check_dimensions(const FileNode& node, const std::vector<ValueType>& types);
  TupleSize checked_tuple(const FileNode& node, std::span<const ValueId> fields);
  void check_declared(const FileNode& node, const std::vector<TypeId>& types);
  // kNoString: no other node of the document uses the name.
  struct ResultName {
    std::string text;
    StringId id = kNoString;
  };
  std::vector<ResultName> result_names(const FileNode& node, std::size_t count) const;
  void publish(NodeId id, NodeId graph_node, const std::vector<StringId>& names);

  const ReadContext& context_;
  const SymbolNames& symbols_;
  ValueNames& values_;
  Graph& graph_;
  std::vector<FileNode> nodes_;
  std::vector<Op> ops_;
  std::vector<std::uint32_t> op_of_name_;  // by StringId: index into ops_, or kNone
  ErrorList unknown_ops_;
  std::vector<NodeId> node_of_name_;  // by StringId
  Digraph needs_;                     // edges from each node of the file to those that produce its operands
  // Counts so far, for the limits.
  std::int64_t results_ = 0, tuple_fields_ = 0;
  std::vector<TupleSize> tuple_sizes_;  // by TypeId
  InferredTypes inferred_;
};

}  // namespace fusec
