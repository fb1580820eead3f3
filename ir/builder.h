// Builds graphs in C++. Types are inferred as nodes are added; unnamed nodes get names.
//
//   GraphBuilder b("swiglu");
//   const Dim tokens = b.symbol("tokens", {.max = 8192});
//   const auto x = b.input("x", DType::kBFloat16, {tokens, 4096});
//   const auto w = b.constant("w", DType::kBFloat16, {11008, 4096});
//   const auto h = b.op("silu", {b.op("linear", {x, w})});
//   b.output(b.op("sum", {h}, {{"dim", -1}, {"keepdim", true}}));
//   const Graph graph = b.finish();
//
// A wrong op, operand or attribute throws Error(kUsage).
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "ir/graph.h"

namespace fusec {

struct SymbolBounds {
  std::int64_t min = 1, max = 2147483647, multiple_of = 1;
  std::optional<std::int64_t> hint;
};

class GraphBuilder {
 public:
  // A value of the graph under construction.
  struct Tensor {
    ValueId id = kNone;
  };

  // An operand: a tensor, a weakly typed number, the value of a dimension, or nothing (Absent{}).
  struct Absent {};
  using Operand = std::variant<Absent, Tensor, Scalar, Dim>;
  class Arg {
   public:
    Arg(Tensor t) : operand(t) {}                       // NOLINT(google-explicit-constructor)
    Arg(Absent a) : operand(a) {}                       // NOLINT(google-explicit-constructor)
    Arg(bool v) : operand(Scalar::boolean(v)) {}        // NOLINT(google-explicit-constructor)
    Arg(int v) : operand(Scalar::whole(v)) {}           // NOLINT(google-explicit-constructor)
    Arg(std::int64_t v) : operand(Scalar::whole(v)) {}  // NOLINT(google-explicit-constructor)
    Arg(double v) : operand(Scalar::floating(v)) {}     // NOLINT(google-explicit-constructor)
    Arg(Scalar v) : operand(v) {}                       // NOLINT(google-explicit-constructor)
    Arg(Dim v) : operand(std::move(v)) {}               // NOLINT(google-explicit-constructor)
    Operand operand;
  };

  // An attribute as a model file would write it; it is converted to the type that the op's row declares.
  class Setting {
   public:
    Setting(std::string n, bool v) : name(std::move(n)), value(v) {}
    Setting(std::string n, int v) : name(std::move(n)), value(std::int64_t{v}) {}
    Setting(std::string n, std::int64_t v) : name(std::move(n)), value(v) {}
    Setting(std::string n, double v) : name(std::move(n)), value(v) {}
    Setting(std::string n, const char* v) : name(std::move(n)), value(std::string(v)) {}
    Setting(std::string n, std::string v) : name(std::move(n)), value(std::move(v)) {}
    Setting(std::string n, DType v) : name(std::move(n)), value(v) {}
    Setting(std::string n, Dim v) : name(std::move(n)), value(std::move(v)) {}
    Setting(std::string n, std::initializer_list<std::int64_t> v)
        : name(std::move(n)), value(std::vector<std::int64_t>(v)) {}
    Setting(std::string n, std::vector<std::int64_t> v) : name(std::move(n)), value(std::move(v)) {}
    Setting(std::string n, std::vector<Dim> v) : name(std::move(n)), value(std::move(v)) {}
    std::string name;
    AttributeValue value;
  };
  using Settings = std::vector<Setting>;

  explicit GraphBuilder(std::string model_name = "model", OpTable table = OpTable::builtin());

  Dim symbol(const std::string& name, const SymbolBounds& bounds = {});
  Tensor input(const std::string& name, DType dtype, Shape shape);
  Tensor constant(const std::string& name, DType dtype, Shape shape);  // its value is given at run time
  Tensor constant(const std::string& name, DType dtype, Shape shape, const std::vector<Scalar>& data);
  Tensor constant(const std::string& name, DType dtype, Shape shape, const std::string& safetensors_file,
                  const std::string& safetensors_tensor);

  // A node with one result. Without a name it is called after its op: "add", "add_1", ...
  Tensor op(const std::string& op_name, const std::vector<Arg>& args, const Settings& settings = {},
            const std::string& node_name = "");
  // A node with any number of results.
  std::vector<Tensor> results(const std::string& op_name, const std::vector<Arg>& args, const Settings& settings = {},
                              const std::string& node_name = "");
  // A node of an op that is not in the table; `types` are its result types. With a setting "expr"
  // (ir/scalar_expression.h) the op is elementwise or broadcasting and needs no launcher.
  std::vector<Tensor> custom(const std::string& op_name, const std::vector<Arg>& args,
                             const std::vector<TensorType>& types, const Settings& settings = {},
                             const std::string& node_name = "");

  void output(Tensor value);
  void alias(Tensor output, Tensor input);

  const TensorType& type(Tensor value) const { return graph_.tensor(value.id); }
  // Returns the verified graph and leaves the builder empty. Throws Error(kUsage) if it is no valid model.
  Graph finish();

 private:
  std::string fresh_name(const std::string& wanted);
  void check_name(const std::string& name) const;
  // The operand of a number. Infinities and NaN become 0-d constants, as in a model file.
  ValueId number_operand(const Scalar& number);
  std::vector<Tensor> add(const OpDef* row, const std::vector<Arg>& args, Attributes attributes,
                          const std::vector<ValueType>& declared, const std::string& node_name);

  Graph graph_;
  std::unordered_map<std::string, std::uint32_t> name_counts_;
};

}  // namespace fusec
