// An operator is one row of the op table: its name, operands, attributes, type inference and formula. Everything else
// that the compiler needs (pattern kind, index maps, FLOPs, reference evaluation, kernel) follows from the formula.
// The rows are in ir/ops/, one file per family; ir/ops/table.h lists them.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/attributes.h"
#include "ir/expr.h"
#include "ir/op_pattern.h"
#include "ir/type.h"

namespace fusec {

enum class AttributeType : std::uint8_t {
  kFlag,            // bool
  kInteger,         // int64
  kNumber,          // double (any JSON number)
  kText,            // std::string, one of `choices` unless that list is empty
  kDType,           // DType
  kScalar,          // Scalar: number, boolean, or "nan" "inf" "-inf"
  kDim,             // Dim: integer or dimension string
  kIntegers,        // vector<int64>; a single integer stands for a list of one
  kDims,            // vector<Dim>; a single one stands for a list of one
  kIntegersOrText,  // a convolution's padding: "same", "valid" (std::string) or integers
  kScalarOrDim,     // arange's start, end, step: a Scalar for a number in the file, a Dim for a string
  kDimOrDims        // split_sizes: a Dim for one value in the file, vector<Dim> for a list
};

struct AttributeSpec {
  std::string name;
  AttributeType type;
  bool required = false;
  std::vector<std::string> choices;  // kText, kIntegersOrText
};

// An operand as inference and formulas see it.
struct Operand {
  enum class Kind : std::uint8_t { kAbsent, kTensor, kTuple, kNumber, kDim };
  Kind kind = Kind::kAbsent;
  ValueType type;           // for numbers and dims: 0-d with the default dtype of the category
  Scalar number;            // kNumber
  Dim dim;                  // kDim: a weakly typed integer
  std::uint32_t value = 0;  // kTensor, kTuple: the ValueId
};

// Two dimensions that must be equal, checked at launch because the bounds do not decide it.
struct LaunchCheck {
  Dim left, right;
  std::string what;  // "operands 0 and 1 of add \"h\""
};

// One use of an op: the input of type inference.
struct OpCall {
  std::span<const Operand> operands;
  const Attributes& attributes;
  const Symbols& symbols;
  std::span<const ValueType> declared;  // output types that the file declares; empty without a declaration
  std::vector<LaunchCheck>* checks = nullptr;

  bool has(std::size_t i) const { return i < operands.size() && operands[i].kind != Operand::Kind::kAbsent; }
  const TensorType& tensor(std::size_t i) const { return operands[i].type.tensor; }
};

// The exception of type inference; the reader adds file and pointer. `place` is "inputs/1", "attrs/dim", or "" for the
// node itself.
struct OpError {
  std::string place, what, found, expected, hint;
};

class Formula;

// How an op without a formula is evaluated and compiled.
enum class Special : std::uint8_t {
  kNone,     // it has a formula
  kScan,     // cumsum, cumprod
  kSort,     // sort, topk
  kScatter,  // scatter, index_put
  kCollective,
  kTuple,     // tuple, get_item: no computation
  kExternal,  // a custom op's launcher
};

struct OpDef {
  std::string name;
  std::string family;   // "unary", "movement", ..., as in docs/graph_format.md
  std::string summary;  // one sentence for --list-ops
  // Operand names: "x"; "weight?" optional; "tensors*" any number; "tensors?*" any number, each may be null; "tensors+"
  // at least one.
  std::vector<std::string> operands;
  std::vector<AttributeSpec> attributes;
  bool several = false;  // results are always name.0, name.1, ...
  std::function<std::vector<ValueType>(const OpCall&)> infer;
  // The value of result `output` at `index`, which has one expression per dimension of that result.
  std::function<ExprId(Formula&, std::size_t output, std::span<const IndexExpr> index)> formula;
  Special special = Special::kNone;
  bool view = false;  // same elements in the same order (reshape): needs no kernel when memory is shared
  bool deterministic = true;
  std::optional<OpPattern> pattern;  // set if the formula does not tell the kind (custom ops, specials)
  std::string symbol;                // kExternal: the launcher's name
  bool custom = false;               // not a row of the format's table
};

// Built-in rows and those that a user registered. Copies share the rows.
class OpTable {
 public:
  static const OpTable& builtin();
  // A table with one more row. Throws Error(kUsage) if the name is taken or the row is incomplete.
  OpTable with(OpDef row) const;
  const OpDef* find(std::string_view name) const;
  std::vector<const OpDef*> rows() const;  // by family, then as declared
  // The op name nearest to a misspelt one; "" if none is near.
  std::string nearest(std::string_view name) const;

 private:
  std::vector<std::shared_ptr<const OpDef>> rows_;
  std::shared_ptr<const std::vector<std::pair<std::string, const OpDef*>>> sorted_;
};

}  // namespace fusec
