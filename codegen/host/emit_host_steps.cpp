#include "codegen/host/emit_host_steps.h"

#include <algorithm>
#include <utility>

#include "codegen/host/emit_collective.h"
#include "codegen/host/emit_tensor_maps.h"
#include "codegen/host/host_text.h"
#include "ir/error.h"
#include "ir/spelling.h"

namespace fusec {
namespace {

class Steps {
 public:
  explicit Steps(const HostSteps& host)
      : graph_(host.graph),
        plan_(host.plan),
        launch_(host.launch),
        names_(host.names),
        matrix_calls_(host.matrix_calls) {}

  std::string print(const std::vector<LaunchStep>& steps) && {
    std::uint32_t group = UINT32_MAX;
    for (const LaunchStep& step : steps) {
      if (step.group != group && step.group < plan_.groups.size()) {
        group = step.group;
        text_.line("  // {}", group_text(plan_.groups[group]));
      }
      enqueue(step);
    }
    return std::move(text_).take();
  }

 private:
  std::string sized(const IndexExpr& e) const { return names_.sized(e); }
  std::string pointer(const Argument& argument, bool written) const { return names_.pointer(argument.buffer, written); }

  std::string group_text(const FusionGroup& group) const {
    std::string text;
    for (const NodeId n : group.nodes) {
      if (text.size() > 90) return text + ", ...";
      text += (text.empty() ? "" : ", ") + comment_text(graph_.nodes[n].name, 40);
    }
    return text;
  }

  void enqueue(const LaunchStep& step) {
    switch (step.kind) {
      case LaunchStep::Kind::kKernel:
        return enqueue_kernel(step);
      case LaunchStep::Kind::kCopy:
        return enqueue_copy(step);
      case LaunchStep::Kind::kExternal:
        return enqueue_external(step);
      case LaunchStep::Kind::kCollective:
        return enqueue_collective(step);
      case LaunchStep::Kind::kMatrixCall:
        return enqueue_matrix_call(step);
    }
  }

  void enqueue_matrix_call(const LaunchStep& step) {
    MatrixCallOperands operands;
    for (std::size_t i = 0; i < step.arguments.size(); ++i)
      operands.pointers.push_back(pointer(step.arguments[i], i >= step.reads.size()));
    operands.refused =
        string_literal("cuBLASLt refused the product of node " + shown(graph_.value(step.matrix->d.value).name));
    text_.append(matrix_calls_.call(step, operands));
  }

  void enqueue_copy(const LaunchStep& step) {
    if (step.bytes.is(0)) return;
    const Range bytes = range_of(step.bytes, graph_.bounds());
    text_.line("  {}status = cudaMemcpyAsync({}, {}, size_t({}), cudaMemcpyDeviceToDevice, stream);",
               bytes.min > 0 ? "" : fmt::format("if ({} > 0) ", sized(step.bytes)), pointer(step.arguments[0], true),
               pointer(step.arguments[1], false), sized(step.bytes));
    text_.line("  if (status != cudaSuccess) return complain(ctx, status, {});",
               string_literal("a copy could not be enqueued"));
  }

  void enqueue_kernel(const LaunchStep& step) {
    if (step.special.empty()) return enqueue_form(step.kernel, step.arguments, step.grid, step.dynamic_shared);
    const char* otherwise = "";
    for (const LaunchStep::Specialization& form : step.special) {
      text_.line("  {}if ({}) {{", std::exchange(otherwise, "} else "),
                 guard_text(form.guard, [&](std::uint32_t s) { return "n." + names_.symbol(s); }));
      if (form.kernel == kNone)
        text_.line("  // the launch before has done this, too");
      else
        enqueue_form(form.kernel, form.arguments, form.grid, form.dynamic_shared);
    }
    text_.line("  }} else {{");
    enqueue_form(step.kernel, step.arguments, step.grid, step.dynamic_shared);
    text_.line("  }}");
  }

  void enqueue_form(std::uint32_t index, const std::vector<Argument>& list, const std::array<IndexExpr, 3>& grid,
                    const IndexExpr& dynamic_shared) {
    const KernelSource& kernel = launch_.kernels[index];
    const bool maps = std::ranges::any_of(list, [](const Argument& a) { return a.kind == Argument::Kind::kTensorMap; });
    if (maps) describe_tensors(list, grid);
    std::string arguments;
    for (std::size_t i = 0; i < list.size(); ++i) {
      const Argument& a = list[i];
      const bool written = kernel.parameters[i].written;
      arguments += ",\n                  ";
      if (a.kind == Argument::Kind::kTensorMap)
        arguments += fmt::format("map_{}", i);
      else if (a.kind == Argument::Kind::kBuffer)
        arguments += fmt::format("static_cast<{}void*>({})", written ? "" : "const ", pointer(a, written));
      else
        arguments += fmt::format("static_cast<{}>({})", a.bits == 64 ? "long long" : "int", sized(a.size));
    }
    text_.line("  status = launch(reinterpret_cast<const void*>({}), {}, {}, {}, dim3({}, {}, {}), {}, stream{});",
               kernel.name, sized(grid[0]), sized(grid[1]), sized(grid[2]), kernel.block[0], kernel.block[1],
               kernel.block[2], sized(dynamic_shared), arguments);
    text_.line("  if (status != cudaSuccess) return complain(ctx, status, {});",
               string_literal(kernel.name + " could not be launched"));
    if (maps) text_.line("  }}");
  }

  // Opens the scope of a launch with TMA descriptors. They are encoded only if the grid is not empty.
  void describe_tensors(const std::vector<Argument>& arguments, const std::array<IndexExpr, 3>& grid) {
    std::string blocks;
    for (const IndexExpr& extent : grid)
      if (range_of(extent, graph_.bounds()).min <= 0)
        blocks += fmt::format("{}({}) > 0", blocks.empty() ? "" : " && ", sized(extent));
    text_.line("  {}{{", blocks.empty() ? "" : fmt::format("if ({}) ", blocks));
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      if (arguments[i].kind != Argument::Kind::kTensorMap) continue;
      text_.line("  CUtensorMap map_{};", i);
      text_.line("  status = {};", tensor_map_call(names_, arguments[i], fmt::format("map_{}", i)));
      text_.line("  if (status != cudaSuccess) return status;");
    }
  }

  void enqueue_external(const LaunchStep& step) {
    const Node& node = graph_.nodes[step.node];
    std::string inputs, outputs, extents;
    auto add_extents = [&](ValueId v) {
      for (const Dim& dim : graph_.tensor(v).shape) extents += (extents.empty() ? "" : ", ") + sized(dim);
    };
    for (std::size_t i = 0; i < step.arguments.size(); ++i) {
      const bool output = i >= step.reads.size();
      std::string& list = output ? outputs : inputs;
      list += (list.empty() ? "" : ", ") + pointer(step.arguments[i], output);
      add_extents(output ? step.writes[i - step.reads.size()] : step.reads[i]);
    }
    text_.line("  {{");
    text_.line("    const void* const inputs[] = {{{}}};", inputs.empty() ? "nullptr" : inputs);
    text_.line("    void* const outputs[] = {{{}}};", outputs.empty() ? "nullptr" : outputs);
    text_.line("    const long long extents[] = {{{}}};", extents.empty() ? "0" : extents);
    text_.line("    status = ::{}(inputs, outputs, extents, {}, stream);", external_symbol(graph_, node),
               string_literal(attributes_json(node)));
    text_.line("  }}");
    text_.line("  if (status != cudaSuccess) return complain(ctx, status, {});",
               string_literal("the launcher of node " + shown(node.name) + " failed"));
  }

  std::string attributes_json(const Node& node) const {
    std::string json = "{";
    for (const Attribute& a : graph_.attributes(node).list()) {
      const auto* raw = std::get_if<RawJson>(&a.value);
      const auto* text = std::get_if<std::string>(&a.value);
      if (!raw && !text) throw InternalError("an attribute of a custom op that is no JSON");
      json += (json.size() > 1 ? "," : "") + json_string(a.name) + ":" + (raw ? raw->text : json_string(*text));
    }
    return json + "}";
  }

  void enqueue_collective(const LaunchStep& step) {
    const Node& node = graph_.nodes[step.node];
    text_.append(collective_call(graph_, step,
                                 {.from = pointer(step.arguments[0], false),
                                  .to = pointer(step.arguments[1], true),
                                  .communicators = "ctx->libraries.nccl_comms",
                                  .sized = [this](const IndexExpr& e) { return sized(e); }}));
    text_.line("    return complain(ctx, cudaErrorUnknown, {});",
               string_literal("NCCL refused the collective of node " + shown(node.name)));
  }

  const Graph& graph_;
  const FusionPlan& plan_;
  const LaunchPlan& launch_;
  const HostNames& names_;
  const MatrixCallsText& matrix_calls_;
  HostText text_;
};

}  // namespace

std::string external_symbol(const Graph& graph, const Node& node) {
  if (!node.op->symbol.empty()) return node.op->symbol;
  const AttributeValue* given = graph.attributes(node).find("symbol");
  if (!given) throw InternalError("an external node without a symbol");
  if (const auto* text = std::get_if<std::string>(given)) return *text;
  const std::string& json = std::get<RawJson>(*given).text;  // a JSON string
  return json.substr(1, json.size() - 2);
}

std::string steps_text(const HostSteps& host, const std::vector<LaunchStep>& steps) {
  return Steps(host).print(steps);
}

}  // namespace fusec
