#include "codegen/manifest.h"

#include <nlohmann/json.hpp>

#include "codegen/emit_matrix_calls.h"

namespace fusec {
namespace {

using Json = nlohmann::ordered_json;

class Printer {
 public:
  Printer(const Graph& graph, const FusionPlan& plan, const LaunchPlan& launch)
      : graph_(graph), plan_(plan), launch_(launch) {}

  Json print(const Target& target) const {
    Json out;
    out["fusec_manifest"] = 1;
    out["model"] = graph_.name;
    out["identifier"] = launch_.identifier;
    out["arch"] = target.arch;
    out["numerics"] = launch_.numerics;
    out["symbols"] = symbols();
    out["arguments"] = tensors(launch_.arguments);
    out["results"] = tensors(launch_.results);
    out["embedded"] = tensors(launch_.embedded);
    out["checks"] = Json::array();
    for (const LaunchCheck& check : launch_.checks)
      out["checks"].push_back({{"left", formula(check.left)}, {"right", formula(check.right)}, {"what", check.what}});
    out["workspace_bytes"] = formula(launch_.workspace_bytes);
    out["prepared_bytes"] = formula(launch_.prepared_bytes);
    out["least_workspace_bytes"] = formula(launch_.live_bytes);
    out["kernels"] = Json::array();
    for (const KernelSource& kernel : launch_.kernels) out["kernels"].push_back(describe(kernel));
    out["prepare"] = steps(launch_.prepare_steps);
    out["launches"] = steps(launch_.steps);
    return out;
  }

 private:
  std::string formula(const IndexExpr& e) const { return to_string(e, graph_.symbols); }

  Json symbols() const {
    Json list = Json::array();
    for (std::size_t i = 0; i < graph_.symbols.size(); ++i) {
      const Symbol& s = graph_.symbols[i];
      Json row = {{"name", s.name}, {"min", s.min}, {"max", s.max}, {"multiple_of", s.multiple_of}, {"hint", s.hint}};
      for (const SymbolStep& solution : launch_.solutions)
        if (solution.symbol == i)
          row["from"] = {{"input", graph_.value(graph_.inputs[solution.input]).name},
                         {"dimension", solution.dimension},
                         {"coefficient", formula(solution.coefficient)},
                         {"rest", formula(solution.rest)}};
      list.push_back(std::move(row));
    }
    return list;
  }

  Json tensors(const std::vector<ValueId>& values) const {
    Json list = Json::array();
    for (const ValueId v : values) {
      Json shape = Json::array();
      for (const Dim& dim : graph_.tensor(v).shape) shape.push_back(formula(dim));
      list.push_back(
          {{"name", graph_.value(v).name}, {"dtype", std::string(name(graph_.tensor(v).dtype))}, {"shape", shape}});
    }
    return list;
  }

  Json describe(const KernelSource& kernel) const {
    Json parameters = Json::array();
    for (const KernelParameter& p : kernel.parameters) {
      if (p.kind == KernelParameter::Kind::kSize)
        parameters.push_back({{"name", p.name}, {"kind", p.bits == 64 ? "int64" : "int32"}});
      else if (p.kind == KernelParameter::Kind::kTensorMap)
        parameters.push_back({{"name", p.name}, {"kind", "tensor_map"}});
      else
        parameters.push_back({{"name", p.name}, {"kind", "pointer"}, {"written", p.written}});
    }
    return {{"name", kernel.name},
            {"schedule", kernel.schedule},
            {"block", kernel.block},
            {"cluster", kernel.cluster},
            {"parameters", parameters}};
  }

  Json buffer(const BufferRef& b) const {
    switch (b.kind) {
      case BufferRef::Kind::kInput:
        return {{"argument", graph_.value(graph_.inputs[b.index]).name}};
      case BufferRef::Kind::kConstant:
        return {{"argument", graph_.value(graph_.constants[b.index].value).name}};
      case BufferRef::Kind::kEmbedded:
        return {{"embedded", graph_.value(graph_.constants[b.index].value).name}};
      case BufferRef::Kind::kOutput:
        return {{"result", graph_.value(launch_.results[b.index]).name}};
      case BufferRef::Kind::kWorkspace:
        return {{"workspace", formula(b.offset)}};
      case BufferRef::Kind::kPrepared:
        return {{"prepared", formula(b.offset)}};
      case BufferRef::Kind::kNowhere:
        break;
    }
    return nullptr;
  }

  // Elements, innermost dimension first.
  Json boxes(const TensorBoxes& boxes) const {
    Json extents = Json::array(), strides = Json::array();
    for (const IndexExpr& e : boxes.extents) extents.push_back(formula(e));
    for (const IndexExpr& e : boxes.strides) strides.push_back(formula(e));
    return {{"element_bytes", boxes.element_bytes},
            {"offset", formula(boxes.offset)},
            {"extents", extents},
            {"strides", strides},
            {"box", boxes.box},
            {"swizzle_bytes", boxes.swizzle_bytes()}};
  }

  Json matrix(const MatrixView& view) const {
    return {{"tensor", graph_.value(view.value).name},
            {"dtype", std::string(name(view.dtype))},
            {"offset", formula(view.offset)},
            {"rows", formula(view.rows)},
            {"columns", formula(view.columns)},
            {"leading", formula(view.leading)},
            {"batch_stride", formula(view.batch_stride)},
            {"transposed", view.transposed},
            {"alignment", view.alignment}};
  }

  // Column-major, as cuBLASLt has it.
  Json product(const MatrixCall& call) const {
    Json out = {{"m", formula(call.m)}, {"n", formula(call.n)}, {"k", formula(call.k)}, {"batch", formula(call.batch)}};
    out["compute_type"] = compute_type_name(call);
    out["scale_type"] = scale_type_name(call);
    out["epilogue"] = epilogue_name(call);
    out["alpha"] = call.alpha;
    out["beta"] = call.beta;
    out["a"] = matrix(call.a);
    out["b"] = matrix(call.b);
    if (call.c) out["c"] = matrix(*call.c);
    out["d"] = matrix(call.d);
    if (call.bias != kNone)
      out["bias"] = {{"tensor", graph_.value(call.bias).name},
                     {"dtype", std::string(name(call.bias_dtype))},
                     {"offset", formula(call.bias_offset)}};
    if (call.a_scale != kNone) out["a_scale"] = graph_.value(call.a_scale).name;
    if (call.b_scale != kNone) out["b_scale"] = graph_.value(call.b_scale).name;
    if (call.outer_scales) out["outer_scales"] = true;
    if (call.aux != kNone) out["aux"] = graph_.value(call.aux).name;
    return out;
  }

  Json arguments(const std::vector<Argument>& list) const {
    Json out = Json::array();
    for (const Argument& a : list) {
      out.push_back(a.kind == Argument::Kind::kSize ? Json{{"size", formula(a.size)}} : buffer(a.buffer));
      if (a.kind == Argument::Kind::kTensorMap) out.back()["tensor_map"] = boxes(a.boxes);
    }
    return out;
  }

  // What is launched instead, where all of `when` holds; nothing where no kernel is named.
  Json special_form(const LaunchStep::SpecialForm& form) const {
    Json when = Json::array();
    for (const GuardCondition& condition : form.guard) {
      IndexExpr product = 1;
      for (const std::uint32_t s : condition.symbols) product *= IndexExpr::symbol(s);
      Json row = {{"value", formula(product)}};
      if (condition.multiple_of != 1) row["multiple_of"] = condition.multiple_of;
      if (condition.at_least > 0) row["at_least"] = condition.at_least;
      if (condition.at_most != GuardCondition::kNoLimit) row["at_most"] = condition.at_most;
      when.push_back(std::move(row));
    }
    if (form.kernel == kNone) return {{"when", std::move(when)}};
    return {{"when", std::move(when)},
            {"kernel", launch_.kernels[form.kernel].name},
            {"grid", {formula(form.grid[0]), formula(form.grid[1]), formula(form.grid[2])}},
            {"dynamic_shared_bytes", formula(form.dynamic_shared)},
            {"arguments", arguments(form.arguments)}};
  }

  Json steps(const std::vector<LaunchStep>& list) const {
    Json out = Json::array();
    for (const LaunchStep& step : list) {
      Json row;
      switch (step.kind) {
        case LaunchStep::Kind::kKernel:
          row["kernel"] = launch_.kernels[step.kernel].name;
          row["grid"] = {formula(step.grid[0]), formula(step.grid[1]), formula(step.grid[2])};
          row["dynamic_shared_bytes"] = formula(step.dynamic_shared);
          for (const LaunchStep::SpecialForm& form : step.special) row["special"].push_back(special_form(form));
          break;
        case LaunchStep::Kind::kCopy:
          row["copy_bytes"] = formula(step.bytes);
          break;
        case LaunchStep::Kind::kExternal:
          row["external"] = graph_.nodes[step.node].name;
          break;
        case LaunchStep::Kind::kCollective:
          row["collective"] = graph_.nodes[step.node].name;
          break;
        case LaunchStep::Kind::kMatrixCall:
          row["library"] = "cublaslt";
          row["workspace_bytes"] = formula(step.bytes);
          row["product"] = product(*step.matrix);
          break;
      }
      if (step.group < plan_.groups.size()) row["group"] = plan_.groups[step.group].name;
      row["arguments"] = arguments(step.arguments);
      out.push_back(std::move(row));
    }
    return out;
  }

  const Graph& graph_;
  const FusionPlan& plan_;
  const LaunchPlan& launch_;
};

}  // namespace

std::string manifest(const Graph& graph, const FusionPlan& plan, const LaunchPlan& launch, const Target& target) {
  return Printer(graph, plan, launch).print(target).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) +
         "\n";
}

}  // namespace fusec
