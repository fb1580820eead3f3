#include "ir/write.h"

#include <fmt/format.h>

#include <cmath>
#include <set>

#include "ir/attribute_text.h"
#include "ir/budget.h"
#include "ir/error.h"
#include "ir/spelling.h"

namespace fusec {
namespace {

class Writer {
 public:
  Writer(const Graph& graph, bool declare_types) : graph_(graph), declare_types_(declare_types) {}

  std::string write() {
    out_ = "{\n  \"fusec\": 1,\n  \"name\": " + json_string(graph_.name);
    write_symbols();
    list("inputs", graph_.inputs, [&](ValueId v) { return "{" + declaration(v) + "}"; });
    if (!graph_.constants.empty()) list("constants", graph_.constants, [&](const Constant& c) { return constant(c); });
    list("nodes", graph_.nodes, [&](const Node& n) { return node(n); });
    list("outputs", graph_.outputs, [&](ValueId v) { return json_string(graph_.value(v).name); });
    if (!graph_.aliases.empty()) write_aliases();
    return std::move(out_) + "\n}\n";
  }

 private:
  template <class Elements, class Print>
  void list(const char* key, const Elements& elements, const Print& print) {
    out_ += fmt::format(",\n  \"{}\": [", key);
    const char* separator = "\n    ";
    for (const auto& element : elements) {
      count_step();
      out_ += separator + print(element);
      separator = ",\n    ";
    }
    out_ += elements.empty() ? "]" : "\n  ]";
  }

  void write_symbols() {
    if (graph_.symbols.empty()) return;
    out_ += ",\n  \"symbols\": {";
    const char* separator = "\n    ";
    for (const Symbol& s : graph_.symbols) {
      count_step();
      out_ += separator;
      out_ += fmt::format("{}: {{\"min\": {}, \"max\": {}, \"multiple_of\": {}, \"hint\": {}}}", json_string(s.name),
                          s.min, s.max, s.multiple_of, s.hint);
      separator = ",\n    ";
    }
    out_ += "\n  }";
  }

  void write_aliases() {
    out_ += ",\n  \"aliases\": {";
    const char* separator = "";
    for (const Alias& alias : graph_.aliases) {
      count_step();
      out_ +=
          separator + json_string(graph_.value(alias.output).name) + ": " + json_string(graph_.value(alias.input).name);
      separator = ", ";
    }
    out_ += "}";
  }

  std::string shape(const Shape& dims) {
    std::string text = "[";
    for (const Dim& dim : dims) text += (text.size() > 1 ? ", " : "") + json_text(dim, graph_.symbols);
    return text + "]";
  }

  std::string declaration(ValueId v) {
    const TensorType& type = graph_.tensor(v);
    return fmt::format("\"name\": {}, \"dtype\": \"{}\", \"shape\": {}", json_string(graph_.value(v).name),
                       name(type.dtype), shape(type.shape));
  }

  std::string constant(const Constant& c) {
    std::string text = "{" + declaration(c.value);
    if (c.data) {
      text += ", \"data\": [";
      const char* separator = "";
      for (const Scalar& scalar : *c.data) {
        count_step();
        text += separator + element_text(scalar, graph_.tensor(c.value).dtype);
        separator = ", ";
      }
      text += "]";
    }
    if (!c.safetensors_file.empty())
      text += fmt::format(", \"safetensors\": {{\"file\": {}, \"tensor\": {}}}", json_string(c.safetensors_file),
                          json_string(c.safetensors_tensor));
    return text + "}";
  }

  std::string operand(ValueId v) {
    if (v == kNone) return "null";
    switch (graph_.value(v).kind) {
      case Value::Kind::kNumber:
        if (graph_.number(v).category == Category::kFloat && !std::isfinite(graph_.number(v).real))
          throw InternalError("a weak infinity or NaN has no place in a model file");
        return json_text(graph_.number(v));
      case Value::Kind::kDim:
        return "{\"dim\": " + json_text(graph_.dim(v), graph_.symbols) + "}";
      case Value::Kind::kInput:
      case Value::Kind::kConstant:
      case Value::Kind::kResult:
        break;
    }
    return json_string(graph_.value(v).name);
  }

  bool has_default_names(const Node& n) {
    for (std::uint32_t i = 0; i < n.output_count; ++i)
      if (graph_.value(n.first_output + i).name != default_result_name(n, i)) return false;
    return true;
  }

  std::string outputs(const Node& n) {
    std::string text = "[";
    const bool declared = declare_types_ || n.op->custom || n.op->special == Special::kCollective;
    for (ValueId v = n.first_output; v < n.first_output + n.output_count; ++v) {
      count_step();
      if (text.size() > 1) text += ", ";
      text += declared && !graph_.type(v).is_tuple ? "{" + declaration(v) + "}" : json_string(graph_.value(v).name);
    }
    return text + "]";
  }

  std::string node(const Node& n) {
    std::string text =
        fmt::format("{{\"name\": {}, \"op\": {}, \"inputs\": [", json_string(n.name), json_string(n.op->name));
    const char* separator = "";
    for (const ValueId v : n.inputs) {
      count_step();
      text += separator + operand(v);
      separator = ", ";
    }
    text += "]";
    const bool declared = declare_types_ || n.op->custom || n.op->special == Special::kCollective;
    if (declared || !has_default_names(n)) text += ", \"outputs\": " + outputs(n);
    if (const Attributes& attributes = graph_.attributes(n); !attributes.empty()) {
      text += ", \"attrs\": {";
      separator = "";
      for (const Attribute& a : attributes.list()) {
        count_step();
        text += separator + json_string(a.name) + ": " + json_text(a.value, graph_.symbols);
        separator = ", ";
      }
      text += "}";
    }
    if (n.pattern) text += fmt::format(", \"pattern\": \"{}\"", name(*n.pattern));
    if (!n.fuse) text += ", \"fuse\": false";
    return text + "}";
  }

  const Graph& graph_;
  bool declare_types_;
  std::string out_;
};

}  // namespace

std::string default_result_name(const Node& node, std::uint32_t index) {
  return node.op->several ? fmt::format("{}.{}", node.name, index) : node.name;
}

std::string model_text(const Graph& graph, bool declare_types) {
  return Writer(graph, declare_types).write();
}

}  // namespace fusec
