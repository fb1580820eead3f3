#include "runtime/read_manifest.h"

#include <nlohmann/json.hpp>
#include <unordered_map>

#include "ir/error.h"
#include "ir/op.h"
#include "ir/parse_dim.h"
#include "ir/spelling.h"

namespace fusec {
namespace {

using Json = nlohmann::json;

[[noreturn]] void refuse(const std::string& found, const std::string& expected) {
  throw Error(ErrorKind::kInput,
              Error::Parts{.what = "this is no manifest that can be run", .found = found, .expected = expected});
}

const std::string& text_of(const Json& json) {
  return json.get_ref<const std::string&>();
}

class Reader {
 public:
  explicit Reader(const Json& json) : json_(json) {
    if (!json.is_object() || !json.contains("fusec_manifest") || json["fusec_manifest"] != 1)
      refuse("no \"fusec_manifest\": 1", "what --emit=manifest writes");
  }

  ManifestModel read() {
    model_.graph.name = text_of(json_.at("model"));
    model_.arch = text_of(json_.at("arch"));
    model_.plan.identifier = text_of(json_.at("identifier"));
    for (const Json& s : json_.at("symbols"))
      model_.graph.add_symbol({text_of(s.at("name")), s.at("min"), s.at("max"), s.at("multiple_of"), s.at("hint")});
    names_.emplace(model_.graph.symbols);
    arguments();
    results();
    embedded();
    for (const Json& c : json_.at("checks"))
      model_.plan.checks.push_back({formula(c.at("left")), formula(c.at("right")), text_of(c.at("what"))});
    model_.plan.workspace_bytes = formula(json_.at("workspace_bytes"));
    model_.plan.prepared_bytes = formula(json_.at("prepared_bytes"));
    for (const Json& k : json_.at("kernels")) kernel(k);
    for (const Json& step : json_.at("prepare")) model_.plan.prepare_steps.push_back(launch_step(step));
    for (const Json& step : json_.at("launches")) model_.plan.steps.push_back(launch_step(step));
    return std::move(model_);
  }

 private:
  IndexExpr formula(const Json& text) const { return parse_dim(text_of(text), *names_); }

  TensorType type(const Json& tensor, const char* shape = "shape") const {
    const std::string& dtype = text_of(tensor.at("dtype"));
    const auto known = parse_dtype(dtype);
    if (!known) refuse("dtype " + in_quotes(dtype), "a dtype of this version");
    TensorType type{.dtype = *known, .shape = {}};
    for (const Json& dim : tensor.at(shape)) type.shape.push_back(formula(dim));
    return type;
  }

  void arguments() {
    for (const Json& a : json_.at("arguments")) {
      const std::string& name = text_of(a.at("name"));
      if (a.value("constant", false))
        add_constant(name, type(a));
      else
        add_input(name, type(a));
    }
  }

  void add_input(const std::string& name, TensorType type) {
    places_[name] = {BufferRef::Kind::kInput, static_cast<std::uint32_t>(model_.graph.inputs.size()), 0};
    model_.graph.add_input(name, std::move(type));
  }

  void add_constant(const std::string& name, TensorType type) {
    places_[name] = {BufferRef::Kind::kConstant, static_cast<std::uint32_t>(model_.graph.constants.size()), 0};
    model_.graph.add_constant(name, std::move(type));
    model_.embedded.emplace_back();
  }

  void results() {
    for (const Json& r : json_.at("results")) {
      ManifestResult result{text_of(r.at("name")), type(r), std::nullopt};
      if (r.contains("alias_of")) result.alias_of = places_.at(text_of(r["alias_of"])).index;
      results_[result.name] = static_cast<std::uint32_t>(model_.results.size());
      model_.results.push_back(std::move(result));
    }
  }

  void embedded() {
    for (const Json& e : json_.at("embedded")) {
      const std::string& name = text_of(e.at("name"));
      const TensorType type = this->type(e);
      std::vector<std::int64_t> shape;
      for (const Dim& dim : type.shape) shape.push_back(dim.as_constant().value_or(-1));
      HostTensor tensor(type.dtype, shape);
      tensor.bytes = bytes_of(text_of(e.at("data")), tensor.bytes.size());
      add_constant(name, type);
      model_.embedded.back() = std::move(tensor);
      places_[name].kind = BufferRef::Kind::kEmbedded;
    }
  }

  static std::vector<std::byte> bytes_of(const std::string& digits, std::size_t count) {
    const auto value = [](char c) {
      if (c >= '0' && c <= '9') return c - '0';
      if (c >= 'a' && c <= 'f') return c - 'a' + 10;
      refuse(in_quotes(std::string(1, c)), "a hexadecimal digit");
    };
    if (digits.size() != 2 * count) refuse("a constant of another length", std::to_string(count) + " bytes");
    std::vector<std::byte> bytes;
    for (std::size_t i = 0; i < digits.size(); i += 2)
      bytes.push_back(static_cast<std::byte>(value(digits[i]) * 16 + value(digits[i + 1])));
    return bytes;
  }

  void kernel(const Json& k) {
    KernelSource kernel;
    kernel.name = text_of(k.at("name"));
    kernel.block = k.at("block").get<std::array<int, 3>>();
    kernel.cluster = k.at("cluster").get<std::array<int, 3>>();
    for (const Json& p : k.at("parameters")) {
      KernelParameter parameter;
      parameter.name = text_of(p.at("name"));
      const std::string& kind = text_of(p.at("kind"));
      parameter.kind = kind == "pointer"      ? KernelParameter::Kind::kTensor
                       : kind == "tensor_map" ? KernelParameter::Kind::kTensorMap
                                              : KernelParameter::Kind::kSize;
      parameter.bits = kind == "int64" ? 64 : 32;
      kernel.parameters.push_back(std::move(parameter));
    }
    kernels_[kernel.name] = static_cast<std::uint32_t>(model_.plan.kernels.size());
    model_.plan.kernels.push_back(std::move(kernel));
  }

  BufferRef buffer(const Json& a) const {
    if (a.contains("workspace")) return {BufferRef::Kind::kWorkspace, 0, formula(a["workspace"])};
    if (a.contains("prepared")) return {BufferRef::Kind::kPrepared, 0, formula(a["prepared"])};
    if (a.contains("result")) return {BufferRef::Kind::kOutput, results_.at(text_of(a["result"])), 0};
    return places_.at(text_of(a.contains("embedded") ? a["embedded"] : a.at("argument")));
  }

  TensorMapBoxes boxes(const Json& map) const {
    TensorMapBoxes boxes;
    boxes.element_bytes = map.at("element_bytes").get<int>();
    boxes.offset = formula(map.at("offset"));
    for (const Json& e : map.at("extents")) boxes.extents.push_back(formula(e));
    for (const Json& s : map.at("strides")) boxes.strides.push_back(formula(s));
    boxes.box = map.at("box").get<std::vector<std::uint32_t>>();
    return boxes;
  }

  // `kernel` is null for a copy or a collective.
  std::vector<Argument> arguments_of(const Json& list, const KernelSource* kernel) const {
    std::vector<Argument> arguments;
    if (kernel && list.size() != kernel->parameters.size()) refuse("a launch of " + kernel->name, "its parameters");
    for (const Json& a : list) {
      Argument argument;
      if (a.contains("size")) {
        argument.kind = Argument::Kind::kSize;
        argument.size = formula(a["size"]);
        if (kernel) argument.bits = kernel->parameters[arguments.size()].bits;
      } else {
        argument.buffer = buffer(a);
        if (a.contains("tensor_map")) {
          argument.kind = Argument::Kind::kTensorMap;
          argument.boxes = boxes(a["tensor_map"]);
        }
      }
      arguments.push_back(std::move(argument));
    }
    return arguments;
  }

  std::array<IndexExpr, 3> grid(const Json& g) const { return {formula(g.at(0)), formula(g.at(1)), formula(g.at(2))}; }

  // The symbols of a condition's product, from its formula.
  std::vector<std::uint32_t> symbols_of(const IndexExpr& product) const {
    std::vector<std::uint32_t> symbols;
    if (product.terms().size() != 1) refuse("a condition on a sum", "a product of symbols");
    for (const IndexAtomPtr& factor : product.terms()[0].factors) symbols.push_back(factor->variable.id);
    return symbols;
  }

  LaunchStep::Specialization special_form(const Json& s) const {
    LaunchStep::Specialization form;
    for (const Json& w : s.at("when"))
      form.guard.push_back({.symbols = symbols_of(formula(w.at("value"))),
                            .multiple_of = w.value("multiple_of", std::int64_t{1}),
                            .at_most = w.value("at_most", GuardCondition::kNoLimit),
                            .at_least = w.value("at_least", std::int64_t{0})});
    form.kernel = kNone;
    if (!s.contains("kernel")) return form;
    form.kernel = kernels_.at(text_of(s["kernel"]));
    form.arguments = arguments_of(s.at("arguments"), &model_.plan.kernels[form.kernel]);
    form.grid = grid(s.at("grid"));
    form.dynamic_shared = formula(s.at("dynamic_shared_bytes"));
    return form;
  }

  LaunchStep collective_step(const Json& s) {
    const Json& c = s.at("communication");
    LaunchStep step;
    step.kind = LaunchStep::Kind::kCollective;
    step.node = static_cast<NodeId>(model_.collectives.size());
    step.arguments = arguments_of(s.at("arguments"), nullptr);
    if (step.arguments.size() != 2) refuse("a collective of other arguments", "an operand and a result");
    model_.collectives.push_back({.node = text_of(s["collective"]),
                                  .op = text_of(c.at("op")),
                                  .group = text_of(c.at("group")),
                                  .reduce_op = c.value("reduce_op", ""),
                                  .dim = c.value("dim", std::int64_t{0}),
                                  .operand = type(c, "operand_shape"),
                                  .result = type(c, "result_shape")});
    return step;
  }

  LaunchStep launch_step(const Json& s) {
    LaunchStep step;
    if (s.contains("copy_bytes")) {
      step.kind = LaunchStep::Kind::kCopy;
      step.bytes = formula(s["copy_bytes"]);
      step.arguments = arguments_of(s.at("arguments"), nullptr);
      return step;
    }
    if (s.contains("collective")) return collective_step(s);
    if (!s.contains("kernel")) refuse_call(s);
    step.kernel = kernels_.at(text_of(s["kernel"]));
    step.arguments = arguments_of(s.at("arguments"), &model_.plan.kernels[step.kernel]);
    step.grid = grid(s.at("grid"));
    step.dynamic_shared = formula(s.at("dynamic_shared_bytes"));
    if (s.contains("special"))
      for (const Json& form : s["special"]) step.special.push_back(special_form(form));
    return step;
  }

  [[noreturn]] static void refuse_call(const Json& s) {
    const auto call = [&](const std::string& found, const std::string& hint) {
      throw Error(ErrorKind::kInput, Error::Parts{.what = "the model cannot be run here",
                                                  .found = found,
                                                  .expected = "kernels, copies and collectives alone",
                                                  .hint = hint});
    };
    if (s.contains("library")) call("a call of cuBLASLt", "gemm=\"builtin\", or link the emitted source with cuBLASLt");
    if (s.contains("external"))
      call("a launcher of one's own for node " + in_quotes(text_of(s["external"])), "link the emitted source");
    refuse("a step without a kernel", "a kernel, a copy or a call");
  }

  const Json& json_;
  ManifestModel model_;
  std::optional<SymbolNames> names_;
  std::unordered_map<std::string, BufferRef> places_;  // by name: arguments and embedded constants
  std::unordered_map<std::string, std::uint32_t> results_, kernels_;
};

}  // namespace

ManifestModel read_manifest(std::string_view text) {
  try {
    const Json json = Json::parse(text);
    return Reader(json).read();
  } catch (const Json::exception& error) {
    refuse(error.what(), "what --emit=manifest writes");
  } catch (const std::out_of_range&) {
    refuse("a name that nothing has", "a tensor or kernel of the manifest");
  } catch (const OpError& error) {
    refuse(error.found, error.expected);
  }
}

}  // namespace fusec
