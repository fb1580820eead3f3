// An operator is one row: its name, operands, attributes, type inference and its meaning as a tensor expression. What
// else the compiler needs to know of it (pattern kind, index maps, FLOPs, reference evaluation, kernel) follows from
// the formula. The rows are in ir/ops/, one file a family; ir/ops/table.h lists them.
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
  kText,            // std::string, one of `choices` where those are given
  kDType,           // DType
  kScalar,          // Scalar: number, boolean, or "nan" "inf" "-inf"
  kDim,             // Dim: integer or dimension string
  kIntegers,        // vector<int64>; a single integer stands for a list of one
  kDims,            // vector<Dim>; a single one stands for a list of one
  kIntegersOrText,  // a convolution's padding: "same", "valid" (std::string) or integers
  kScalarOrDim,     // arange's start, end, step: a Scalar where the file has a number, a Dim where it has a string
  kDimOrDims        // split_sizes: a Dim where the file has one value, vector<Dim> where it has a list
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
  ValueType type;           // kTensor, kTuple; of numbers and dims: 0-d with the default dtype of the category
  Scalar number;            // kNumber
  Dim dim;                  // kDim: a weak integer
  std::uint32_t value = 0;  // kTensor, kTuple: the ValueId
};

// Two dimensions that must agree and that the bounds do not decide: checked at launch.
struct LaunchCheck {
  Dim left, right;
  std::string what;  // "operands 0 and 1 of add \"h\""
};

// One use of an op: what inference is asked about.
struct OpCall {
  std::span<const Operand> operands;
  const Attributes& attributes;
  const Symbols& symbols;
  std::span<const ValueType> declared;  // the types that the file declares for the outputs; empty where it does not
  std::vector<LaunchCheck>* checks = nullptr;

  bool has(std::size_t i) const { return i < operands.size() && operands[i].kind != Operand::Kind::kAbsent; }
  const TensorType& tensor(std::size_t i) const { return operands[i].type.tensor; }
};

// What inference throws; the reader adds file and pointer. `place` is "inputs/1", "attrs/dim", or "" for the node.
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
  std::string family;                 // "unary", "movement", ... as in the table of the format
  std::string summary;                // one sentence for --list-ops
  std::vector<std::string> operands;  // "x", "weight?" optional, "tensors*" any number from there on ("tensors?*": null
                                      // among them), "tensors+" at least one
  std::vector<AttributeSpec> attributes;
  bool several = false;  // results are always name.0, name.1, ...
  std::function<std::vector<ValueType>(const OpCall&)> infer;
  // The value of result `output` at `index` (one expression a dimension of that result).
  std::function<ExprId(Formula&, std::size_t output, std::span<const IndexExpr> index)> formula;
  Special special = Special::kNone;
  bool view = false;  // same elements in the same order (reshape): no kernel of its own where memory is shared
  bool deterministic = true;
  std::optional<OpPattern> pattern;  // set for ops whose kind the formula cannot tell (custom ops, specials)
  std::string symbol;                // kExternal: the launcher's name
  bool custom = false;               // not a row of the format's table
};

// Built-in rows plus those that a user registered. A value; copying shares the rows.
class OpTable {
 public:
  static const OpTable& builtin();
  // Throws Error(kUsage) when the name is taken or the row is incomplete.
  OpTable with(OpDef row) const;
  const OpDef* find(std::string_view name) const;
  std::vector<const OpDef*> rows() const;  // by family, then as declared
  // "did you mean" for a misspelt op: the nearest name, if near enough
  std::string nearest(std::string_view name) const;

 private:
  std::vector<std::shared_ptr<const OpDef>> rows_;
  std::shared_ptr<const std::vector<std::pair<std::string, const OpDef*>>> sorted_;
};

}  // namespace fusec
