#include "codegen/lower_plan.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "analysis/lower.h"
#include "codegen/kernel_signature.h"
#include "codegen/parameter_table.h"
#include "codegen/schedules/schedules.h"
#include "codegen/schedules/special.h"
#include "ir/error.h"
#include "ir/fusion_plan.h"
#include "ir/type.h"

namespace fusec {
namespace {

// Scratch memory of parameter tables: numbers that no schedule takes.
constexpr std::uint32_t kFirstTable = 1u << 16;

// Kernels made for a signature, and the tensors they were made with.
struct Made {
  std::vector<std::uint32_t> kernels;  // indices into LoweredPlan::kernels
  std::vector<ValueId> tensors;
};

class PlanLowering {
 public:
  PlanLowering(const Graph& graph, const Target& target, const EmitOptions& options)
      : graph_(graph), target_(target), options_(options) {
    plan_.storage_of.resize(graph.value_count());
    for (ValueId v = 0; v < graph.value_count(); ++v) plan_.storage_of[v] = v;
    for (const ValueId v : graph.outputs) is_output_.insert(v);
  }

  void add_group(const std::vector<NodeId>& nodes, const std::vector<ValueId>& outputs) {
    plan_.groups.emplace_back();
    for (const LoweredUnit& unit : lower_group(graph_, nodes, outputs, options_.round_intermediates)) {
      switch (unit.kind) {
        case LoweredUnit::Kind::kKernel:
          add_kernel(unit.kernel);
          break;
        case LoweredUnit::Kind::kSpecial:
          add_special(unit.node);
          break;
        case LoweredUnit::Kind::kAlias:
          add_alias(unit.value, unit.of);
          break;
      }
    }
  }

  LoweredPlan finish() { return std::move(plan_); }

 private:
  std::vector<LoweredStep>& steps() { return plan_.groups.back().steps; }

  bool nothing_in(ValueId v) const {
    const Shape& shape = graph_.tensor(v).shape;
    return std::any_of(shape.begin(), shape.end(), [](const Dim& d) { return d.is(0); });
  }

  void claim(ValueId v) {
    if (is_output_.contains(v)) claimed_.insert(plan_.storage_of[v]);
  }

  void add_alias(ValueId value, ValueId of) {
    const ValueId root = plan_.storage_of[of];
    const Value::Kind kind = graph_.value(root).kind;
    const bool own_memory = is_output_.contains(value) && (kind != Value::Kind::kResult || claimed_.contains(root));
    if (!own_memory) {
      plan_.storage_of[value] = root;
      claim(value);
      return;
    }
    claimed_.insert(value);
    if (nothing_in(value)) return;
    steps().push_back({.kind = LoweredStep::Kind::kCopy,
                       .parameters = {},
                       .reads = {of},
                       .writes = {value},
                       .nodes = {graph_.value(value).producer}});
  }

  void add_kernel(const Kernel& kernel) {
    for (const KernelOutput& output : kernel.outputs) claim(output.value);
    if (std::ranges::all_of(kernel.outputs, [&](const KernelOutput& o) { return nothing_in(o.value); })) return;
    KernelSignature signature = signature_of(kernel, graph_);
    auto [it, fresh] = made_.try_emplace(std::move(signature.text));
    Made& made = it->second;
    if (fresh) {
      made.tensors = signature.tensors;
      made.kernels = keep(schedule(kernel, graph_, target_, options_));
    }
    std::map<ValueId, ValueId> instead;
    for (std::size_t i = 0; i < made.tensors.size(); ++i) instead[made.tensors[i]] = signature.tensors[i];
    launch(made.kernels, instead, kernel.nodes);
  }

  // Analysis takes any custom op; source needs to know what to call.
  void require_launcher(const Node& node) const {
    if (node.op->special != Special::kExternal || !node.op->symbol.empty()) return;
    if (graph_.attributes(node).has("symbol")) return;
    throw Error(ErrorKind::kInput,
                {.file = graph_.file,
                 .pointer = "/nodes/" + std::to_string(node.file_position),
                 .what = "no source for a custom op",
                 .found = "op \"" + node.op->name + "\" without a launcher",
                 .expected = node.op->custom ? "attrs.symbol, or attrs.expr on an elemwise or broadcast op"
                                             : "a launcher or an expression in its OpDescription"});
  }

  void add_special(NodeId id) {
    const Node& node = graph_.nodes[id];
    for (std::uint32_t i = 0; i < node.output_count; ++i) claim(node.first_output + i);
    if (node.op->special == Special::kExternal || node.op->special == Special::kCollective) {
      require_launcher(node);
      LoweredStep step{.kind = node.op->special == Special::kExternal ? LoweredStep::Kind::kExternal
                                                                      : LoweredStep::Kind::kCollective,
                       .parameters = {},
                       .node = id,
                       .reads = {},
                       .writes = {},
                       .nodes = {id}};
      for (const ValueId v : node.inputs)
        if (v != kNone && graph_.operand(v).kind == Operand::Kind::kTensor) step.reads.push_back(v);
      for (std::uint32_t i = 0; i < node.output_count; ++i) step.writes.push_back(node.first_output + i);
      steps().push_back(std::move(step));
      return;
    }
    if (nothing_in(node.first_output)) return;
    launch(keep(special(graph_, id, target_)), {}, {id});
  }

  std::vector<std::uint32_t> keep(std::vector<KernelSource> sources) {
    std::vector<std::uint32_t> kept;
    std::uint32_t table = kFirstTable;
    for (KernelSource& source : sources)
      for (KernelSource& kernel : with_filled_table(std::move(source), table++)) {
        kept.push_back(static_cast<std::uint32_t>(plan_.kernels.size()));
        plan_.kernels.push_back(std::move(kernel));
      }
    return kept;
  }

  static void touch(LoweredStep& step, const KernelParameter& p) {
    std::vector<ValueId>& list = p.written ? step.writes : step.reads;
    if (std::find(list.begin(), list.end(), p.value) == list.end()) list.push_back(p.value);
  }

  // One step a kernel, with tensors replaced as `instead` says and scratch memory of its own.
  void launch(const std::vector<std::uint32_t>& kernels, const std::map<ValueId, ValueId>& instead,
              const std::vector<NodeId>& nodes) {
    std::map<std::uint32_t, std::uint32_t> scratch;
    for (const std::uint32_t k : kernels) {
      LoweredStep step{
          .kernel = k, .parameters = plan_.kernels[k].parameters, .reads = {}, .writes = {}, .nodes = nodes};
      for (KernelParameter& p : step.parameters) {
        if (p.kind == KernelParameter::Kind::kWorkspace) {
          const auto [it, fresh] =
              scratch.try_emplace(p.scratch, static_cast<std::uint32_t>(plan_.scratch_bytes.size()));
          if (fresh) plan_.scratch_bytes.push_back(p.size);
          p.scratch = it->second;
        }
        if (p.kind != KernelParameter::Kind::kTensor) continue;
        if (const auto it = instead.find(p.value); it != instead.end()) p.value = it->second;
        if (!p.address_only) touch(step, p);
      }
      for (KernelParameter p : plan_.kernels[k].tabled) {
        if (p.kind != KernelParameter::Kind::kTensor) continue;
        if (const auto it = instead.find(p.value); it != instead.end()) p.value = it->second;
        touch(step, p);
      }
      steps().push_back(std::move(step));
    }
  }

  const Graph& graph_;
  const Target& target_;
  const EmitOptions& options_;
  LoweredPlan plan_;
  std::set<ValueId> is_output_;
  std::set<ValueId> claimed_;  // buffers that are an output's
  std::map<std::string, Made> made_;
};

}  // namespace

LoweredPlan lower_plan(const Graph& graph, const FusionPlan& plan, const Target& target, const EmitOptions& options) {
  PlanLowering lowering(graph, target, options);
  const std::vector<GroupInterface> interfaces = group_interfaces(graph, plan);
  for (std::size_t g = 0; g < plan.groups.size(); ++g) lowering.add_group(plan.groups[g].nodes, interfaces[g].outputs);
  return lowering.finish();
}

}  // namespace fusec
