#include "codegen/launch/lower_plan.h"

#include <algorithm>
#include <map>
#include <set>

#include "codegen/dispatch/special.h"
#include "codegen/expr/clear_counters.h"
#include "codegen/launch/group_launches.h"
#include "codegen/launch/kernel_generator.h"
#include "ir/budget.h"
#include "ir/error.h"
#include "ir/fusion_plan.h"
#include "ir/tuple_field.h"
#include "ir/type.h"
#include "schedule/lowering/lower_group.h"

namespace fusec {
namespace {

class PlanLowering {
 public:
  PlanLowering(const Graph& graph, const Target& target, const EmitOptions& options, FormMemory& forms,
               LoweringMemory* memory)
      : graph_(graph),
        target_(target),
        options_(options),
        generator_(graph, target, options, forms, plan_),
        launches_(graph, target, options, forms, memory, generator_) {
    plan_.storage_of.resize(graph.value_count());
    for (ValueId v = 0; v < graph.value_count(); ++v) plan_.storage_of[v] = v;
    plan_.numerics = requested_numerics(options);
    plan_.most_shared_bytes = target.shared_bytes_per_block;
    for (const ValueId v : graph.outputs) is_output_.insert(v);
  }

  // `together`: independent kernels share a launch.
  void add_group(const std::vector<NodeId>& nodes, const std::vector<ValueId>& outputs, bool together) {
    plan_.groups.emplace_back();
    for (const GroupAction& action : launches_.of(nodes, outputs, together)) perform(action);
  }

  // A group that was planned as a cuBLASLt call, with only views before the product. It is lowered as an ordinary group
  // if it no longer matches (inner values became outputs while debugging).
  void add_matrix_call(const std::vector<NodeId>& nodes, const std::vector<ValueId>& outputs, bool together) {
    CublasLtMatch answer = find_cublaslt_call(graph_, nodes, outputs, target_, options_.round_intermediates);
    if (!answer.call) return add_group(nodes, outputs, together);
    plan_.groups.emplace_back();
    for (const LoweredUnit& unit : lower_group(graph_, nodes, outputs, options_.round_intermediates))
      if (unit.kind == LoweredUnit::Kind::kAlias) add_alias(unit.value, unit.of);
    LoweredStep step{.kind = LoweredStep::Kind::kMatrixCall,
                     .parameters = {{.kind = KernelParameter::Kind::kWorkspace,
                                     .name = "workspace",
                                     .size = cublaslt_workspace_bytes(target_)}},
                     .reads = reads_of(*answer.call),
                     .writes = writes_of(*answer.call),
                     .nodes = nodes};
    for (const ValueId v : step.writes) claim(v);
    if (has_no_elements(graph_, answer.call->d.value)) return;
    if (library_scratch_ == kNone) {
      library_scratch_ = static_cast<std::uint32_t>(plan_.scratch_bytes.size());
      plan_.scratch_bytes.push_back(step.parameters[0].size);
    }
    step.parameters[0].scratch = library_scratch_;
    step.matrix = std::make_shared<const CublasLtCall>(*std::move(answer.call));
    steps().push_back(std::move(step));
  }

  // Marks the last group as prepared. Its results are constants to the other groups.
  void note_prepared(std::span<const NodeId> nodes) {
    plan_.groups.back().prepared = true;
    for (const NodeId n : nodes)
      for (std::uint32_t i = 0; i < graph_.nodes[n].output_count; ++i)
        prepared_.insert(graph_.nodes[n].first_output + i);
  }

  // A get_item that no step copied is the tuple's field itself.
  LoweredPlan finish() {
    for (ValueId v = 0; v < graph_.value_count(); ++v)
      if (plan_.storage_of[v] == v && !claimed_.contains(v))
        plan_.storage_of[v] = plan_.storage_of[resolve_tuple(graph_, v)];
    if (counters_ != kNone)
      for (const bool prepared : {true, false}) add_clear_counters(prepared);
    return std::move(plan_);
  }

 private:
  std::vector<LoweredStep>& steps() { return plan_.groups.back().steps; }

  void perform(const GroupAction& action) {
    switch (action.kind) {
      case GroupAction::Kind::kLaunch:
        for (const ValueId v : action.stores) claim(v);
        if (action.launch.generated) launch_made(action.launch);
        break;
      case GroupAction::Kind::kSpecial:
        add_special(action.node);
        break;
      case GroupAction::Kind::kAlias:
        add_alias(action.value, action.of);
        break;
    }
  }

  void launch_made(const GeneratedLaunch& launched) {
    const GeneratedKernels& generated = *launched.generated;
    std::map<ValueId, ValueId> instead;
    for (std::size_t i = 0; i < generated.tensors.size(); ++i) instead[generated.tensors[i]] = launched.tensors[i];
    launch(generated.kernels, instead, launched.nodes, generated.special);
  }

  void claim(ValueId v) {
    if (is_output_.contains(v)) claimed_.insert(plan_.storage_of[v]);
  }

  void add_alias(ValueId value, ValueId of) {
    const ValueId root = plan_.storage_of[of];
    const Value::Kind kind = graph_.value(root).kind;
    const bool own_memory = is_output_.contains(value) &&
                            (kind != Value::Kind::kResult || prepared_.contains(root) || claimed_.contains(root));
    if (!own_memory) {
      plan_.storage_of[value] = root;
      claim(value);
      return;
    }
    claimed_.insert(value);
    if (has_no_elements(graph_, value)) return;
    steps().push_back({.kind = LoweredStep::Kind::kCopy,
                       .parameters = {},
                       .reads = {of},
                       .writes = {value},
                       .nodes = {graph_.value(value).producer}});
  }

  // Analysis accepts any custom op, but source needs the name of its launcher.
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
    if (has_no_elements(graph_, node.first_output)) return;
    launch(generator_.keep(special(graph_, id, target_)), {}, {id});
  }

  static void touch(LoweredStep& step, const KernelParameter& p) {
    std::vector<ValueId>& list = p.written ? step.writes : step.reads;
    if (std::find(list.begin(), list.end(), p.value) == list.end()) list.push_back(p.value);
  }

  // Adds a step per kernel, with tensors replaced by `instead` and its own scratch memory. `special`: the kernels'
  // specialized forms, if any.
  void launch(const std::vector<std::uint32_t>& kernels, const std::map<ValueId, ValueId>& instead,
              const std::vector<NodeId>& nodes, const std::vector<GeneratedKernels::Special>& special = {}) {
    std::map<std::uint32_t, std::uint32_t> scratch;
    const auto place = [&](LoweredStep& step, std::vector<KernelParameter>& parameters) {
      for (KernelParameter& p : parameters) {
        count_step();
        if (p.kind == KernelParameter::Kind::kWorkspace) {
          const auto fresh = static_cast<std::uint32_t>(plan_.scratch_bytes.size());
          if (p.counters && counters_ == kNone) counters_ = fresh;
          p.scratch = p.counters ? counters_ : scratch.try_emplace(p.scratch, fresh).first->second;
          if (p.scratch == fresh) plan_.scratch_bytes.push_back(p.size);
          IndexExpr& bytes = plan_.scratch_bytes[p.scratch];
          if (bytes != p.size) bytes = simplify(max(bytes, p.size), graph_.bounds());
        }
        if (p.kind != KernelParameter::Kind::kTensor && p.kind != KernelParameter::Kind::kTensorMap) continue;
        if (const auto it = instead.find(p.value); it != instead.end()) p.value = it->second;
        if (!p.address_only) touch(step, p);
      }
    };
    for (std::size_t i = 0; i < kernels.size(); ++i) {
      count_step();
      const std::uint32_t k = kernels[i];
      LoweredStep step{
          .kernel = k, .parameters = plan_.kernels[k].parameters, .reads = {}, .writes = {}, .nodes = nodes};
      place(step, step.parameters);
      for (const GeneratedKernels::Special& other : special) {
        LoweredStep::Specialization form{.guard = other.guard, .kernel = kNone, .parameters = {}};
        if (i < other.kernels.size()) {
          form.kernel = other.kernels[i];
          form.parameters = plan_.kernels[form.kernel].parameters;
          place(step, form.parameters);
        }
        step.special.push_back(std::move(form));
      }
      for (KernelParameter p : plan_.kernels[k].table_parameters) {
        if (p.kind != KernelParameter::Kind::kTensor) continue;
        if (const auto it = instead.find(p.value); it != instead.end()) p.value = it->second;
        touch(step, p);
      }
      steps().push_back(std::move(step));
    }
  }

  static bool uses_counters(const LoweredStep& step) {
    const auto counts = [](const KernelParameter& p) { return p.counters; };
    return std::ranges::any_of(step.parameters, counts) ||
           std::ranges::any_of(step.special, [&](const LoweredStep::Specialization& form) {
             return std::ranges::any_of(form.parameters, counts);
           });
  }

  // Clears the counters before the first step that uses them. Each kernel leaves them at 0 for the next.
  void add_clear_counters(bool prepared) {
    for (LoweredGroup& group : plan_.groups) {
      if (group.prepared != prepared) continue;
      const auto user = std::ranges::find_if(group.steps, uses_counters);
      if (user == group.steps.end()) continue;
      const IndexExpr count = simplify(floor_div(plan_.scratch_bytes[counters_], 4), graph_.bounds());
      const std::uint32_t kernel =
          generator_.keep({clear_counters(count, counters_, graph_.bounds(), graph_, false)})[0];
      group.steps.insert(user, {.kernel = kernel,
                                .parameters = plan_.kernels[kernel].parameters,
                                .reads = {},
                                .writes = {},
                                .nodes = user->nodes});
      return;
    }
  }

  const Graph& graph_;
  const Target& target_;
  const EmitOptions& options_;
  LoweredPlan plan_;
  KernelGenerator generator_;  // makes the plan's kernels
  GroupLaunches launches_;
  std::set<ValueId> is_output_;
  std::set<ValueId> claimed_;              // buffers that belong to an output
  std::set<ValueId> prepared_;             // computed before any launch
  std::uint32_t library_scratch_ = kNone;  // shared by all calls, which run in order on one stream
  std::uint32_t counters_ = kNone;         // scratch memory of counters, shared by all kernels
};

}  // namespace

LoweredPlan lower_plan(const Graph& graph, const FusionPlan& plan, const Target& target, const EmitOptions& options,
                       FormMemory* forms, LoweringMemory* memory) {
  FormMemory own_forms;
  PlanLowering lowering(graph, target, options, forms ? *forms : own_forms, memory);
  const std::vector<GroupInterface> interfaces = group_interfaces(graph, plan);
  for (std::size_t g = 0; g < plan.groups.size(); ++g) {
    count_step();
    const FusionGroup& group = plan.groups[g];
    const bool together = plan.strategy == Strategy::kFull;
    if (group.code == GroupCode::kCublasLt)
      lowering.add_matrix_call(group.nodes, interfaces[g].outputs, together);
    else
      lowering.add_group(group.nodes, interfaces[g].outputs, together);
    if (group.prepared) lowering.note_prepared(group.nodes);
  }
  return lowering.finish();
}

}  // namespace fusec
