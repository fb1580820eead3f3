// {"fusec_view": 1, "model", "arch", "chip", "asked": "full", "file_nodes", "symbols": [[name, value]],
//  "profile": null or the profile's JSON, "colours": {pattern kind: colour}, "rules": {fusion rule: sentence},
//  "strategies": {"none": S, "tvm": S, "full": S}}
//
// S: {"partition", "report", "ledger": as --emit writes them,
//     "nodes": [{name, op, kind, call}], "edges": [[from group, to group, value, bytes]],
//     "groups": [{name, prepared, nodes: [place in nodes], inputs, outputs: ["x: float32[4]"],
//                 steps: [place in steps]}],
//     "items": [groups of a run], "blocks": [{first, length, count, inside}],
//     "steps": [{what, kernel, grid, grid_text, block, shared, reads, writes, forms: [{kernel, when}]}],
//     "kernels": [{name, schedule, source, lines: [[places in its group's nodes]], registers, stack, shared}],
//     "arena": [{value, offset, bytes, first, last}], "workspace": bytes}
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <optional>

#include "analysis/value_bytes.h"
#include "ir/error.h"
#include "ir/json_writer.h"
#include "kernel_at_hints.h"
#include "model_cost.h"
#include "picture.h"
#include "source_lines.h"
#include "transforms/explain_print.h"
#include "view_page.h"

namespace fusec {
namespace {

constexpr std::array kStrategies{Strategy::kUnfused, Strategy::kTvm, Strategy::kFull};

class StrategyWriter {
 public:
  StrategyWriter(JsonWriter& out, const Picture& picture, const std::map<std::string, KernelResources>& resources)
      : out_(out),
        picture_(picture),
        graph_(picture.planned.graph),
        source_graph_(picture.planned.source_graph()),
        plan_(picture.planned.plan),
        resources_(resources),
        hints_(hints_of(graph_.symbols)) {}

  void write(const CostReportContext& costs) {
    out_.object([&] {
      out_.member("partition", [&] { out_.written(partition_report(graph_, plan_, picture_.planned.report)); });
      out_.member("report", [&] { out_.written(cost_report(graph_, plan_, costs)); });
      out_.member("ledger", [&] { out_.written(ledger_json(graph_, picture_.planned.kinds, plan_)); });
      out_.member("nodes", [&] { nodes(); });
      groups();
      out_.member("items", picture_.repeated.items);
      out_.member("blocks", [&] { blocks(picture_.repeated.blocks); });
      if (picture_.launch) launch(*picture_.launch);
    });
  }

 private:
  void nodes() {
    out_.array([&] {
      for (NodeId n = 0; n < graph_.nodes.size(); ++n) {
        const Node& node = graph_.nodes[n];
        out_.object([&] {
          out_.member("name", node.name);
          out_.member("op", node.op->name);
          out_.member("kind", name(picture_.planned.kinds[n]));
          out_.member("call", call_text(graph_, node));
        });
      }
    });
  }

  std::string typed(ValueId v) const { return graph_.value(v).name + ": " + to_string(graph_.type(v), graph_.symbols); }

  void groups() {
    const std::vector<GroupInterface> interfaces = group_interfaces(graph_, plan_);
    const std::vector<std::vector<std::uint32_t>> steps = steps_of_groups(picture_);
    ValueBytes bytes(graph_);
    out_.member("groups", [&] {
      out_.array([&] {
        for (GroupId g = 0; g < plan_.groups.size(); ++g) out_.object([&] { group(g, interfaces[g], steps[g]); });
      });
    });
    out_.member("edges", [&] {
      out_.array([&] {
        for (GroupId g = 0; g < plan_.groups.size(); ++g)
          for (const ValueId v : interfaces[g].inputs)
            if (const NodeId producer = graph_.value(v).producer; producer != kNone)
              out_.array([&] {
                out_.value(plan_.group_of[producer]);
                out_.value(g);
                out_.value(typed(v));
                out_.value(bytes.of(v));
              });
      });
    });
  }

  void group(GroupId g, const GroupInterface& interface, const std::vector<std::uint32_t>& steps) {
    const FusionGroup& group = plan_.groups[g];
    out_.member("name", group.name);
    out_.member("pattern", name(group.pattern));
    if (group.prepared) out_.member("prepared", true);
    out_.member("nodes", group.nodes);
    out_.member("inputs", [&] { out_.array_of(interface.inputs, [&](ValueId v) { out_.value(typed(v)); }); });
    out_.member("outputs", [&] { out_.array_of(interface.outputs, [&](ValueId v) { out_.value(typed(v)); }); });
    out_.member("steps", steps);
  }

  void blocks(const std::vector<RepeatedBlock>& list) {
    out_.array_of(list, [&](const RepeatedBlock& block) {
      out_.object([&] {
        out_.member("first", block.first);
        out_.member("length", block.length);
        out_.member("count", block.count);
        out_.member("inside", [&] { blocks(block.inside); });
      });
    });
  }

  std::int64_t at_hint(const IndexExpr& e) const { return value_at_hint(e, graph_.symbols); }
  std::string text(const IndexExpr& e) const { return to_string(e, graph_.symbols); }

  void launch(const LaunchPlan& plan) {
    naming_group_.assign(plan.kernels.size(), kNone);
    out_.member("steps", [&] { out_.array_of(plan.steps, [&](const LaunchStep& s) { step(plan, s); }); });
    for (const LaunchStep& s : plan.prepare_steps) note_names(s);
    out_.member("kernels", [&] {
      out_.array([&] {
        for (std::uint32_t k = 0; k < plan.kernels.size(); ++k) kernel(plan.kernels[k], naming_group_[k]);
      });
    });
    out_.member("arena", [&] {
      out_.array_of(plan.arena, [&](const ArenaValue& value) {
        out_.object([&] {
          if (value.value != kNone) out_.member("value", source_graph_.value(value.value).name);
          out_.member("offset", at_hint(value.offset));
          out_.member("bytes", at_hint(value.bytes));
          out_.member("first", value.first_step);
          out_.member("last", value.last_step);
        });
      });
    });
    out_.member("workspace", at_hint(plan.workspace_bytes));
  }

  // A kernel that several groups share has the names of the first.
  void note_names(const LaunchStep& step) {
    if (step.kind != LaunchStep::Kind::kKernel) return;
    const auto note = [&](std::uint32_t kernel) {
      if (kernel != kNone && naming_group_[kernel] == kNone) naming_group_[kernel] = step.group;
    };
    note(step.kernel);
    for (const LaunchStep::Specialization& form : step.special) note(form.kernel);
  }

  static std::string_view what(LaunchStep::Kind kind) {
    switch (kind) {
      case LaunchStep::Kind::kKernel:
        return "kernel";
      case LaunchStep::Kind::kCopy:
        return "copy";
      case LaunchStep::Kind::kExternal:
        return "launcher of the caller";
      case LaunchStep::Kind::kCollective:
        return "collective";
      case LaunchStep::Kind::kMatrixCall:
        return "cuBLASLt";
    }
    return "";
  }

  std::string condition(const Guard& guard) const {
    std::vector<std::string> parts;
    for (const GuardCondition& c : guard) {
      IndexExpr product = 1;
      for (const std::uint32_t s : c.symbols) product *= IndexExpr::symbol(s);
      std::string part = text(product);
      if (c.multiple_of != 1) part += fmt::format(" % {} == 0", c.multiple_of);
      if (c.at_least > 0) part = fmt::format("{} <= {}", c.at_least, part);
      if (c.at_most != GuardCondition::kNoLimit) part += fmt::format(" <= {}", c.at_most);
      parts.push_back(std::move(part));
    }
    return fmt::format("{}", fmt::join(parts, ", "));
  }

  void step(const LaunchPlan& plan, const LaunchStep& step) {
    note_names(step);
    const LaunchStep::Specialization* form = form_at_hints(step, hints_);
    const std::uint32_t taken = kernel_at_hints(step, hints_);
    out_.object([&] {
      out_.member("what", what(step.kind));
      if (taken != kNone) {
        const std::array<IndexExpr, 3>& grid = form ? form->grid : step.grid;
        out_.member("kernel", taken);
        out_.member("grid", [&] { out_.array_of(grid, [&](const IndexExpr& e) { out_.value(at_hint(e)); }); });
        out_.member("grid_text", fmt::format("{}, {}, {}", text(grid[0]), text(grid[1]), text(grid[2])));
        out_.member("block", plan.kernels[taken].block);
        out_.member("cluster", plan.kernels[taken].cluster);
        out_.member("shared", at_hint(form ? form->dynamic_shared : step.dynamic_shared));
      }
      if (step.kind == LaunchStep::Kind::kCopy) out_.member("bytes", at_hint(step.bytes));
      values("reads", step.reads);
      values("writes", step.writes);
      if (step.special.empty()) return;
      out_.member("forms", [&] {
        out_.array_of(step.special, [&](const LaunchStep::Specialization& f) {
          out_.object([&] {
            out_.member("when", condition(f.guard));
            if (f.kernel != kNone) out_.member("kernel", f.kernel);
          });
        });
      });
      out_.member("general", step.kernel);
    });
  }

  void values(std::string_view key, const std::vector<ValueId>& list) {
    out_.member(key, [&] { out_.array_of(list, [&](ValueId v) { out_.value(source_graph_.value(v).name); }); });
  }

  void kernel(const KernelSource& kernel, GroupId group) {
    out_.object([&] {
      out_.member("name", kernel.name);
      out_.member("schedule", name(kernel.schedule));
      out_.member("source", kernel.text);
      if (group < plan_.groups.size()) {
        const auto& source_plan = picture_.planned.source_plan();
        out_.member("lines", nodes_of_lines(source_graph_, source_plan.groups[group], kernel.text));
      }
      const auto found = resources_.find(kernel.name);
      if (found == resources_.end()) return;
      out_.member("registers", found->second.registers);
      out_.member("stack", found->second.stack_bytes);
      out_.member("static_shared", found->second.static_shared_bytes);
    });
  }

  JsonWriter& out_;
  const Picture& picture_;
  const Graph &graph_, &source_graph_;
  const FusionPlan& plan_;
  const std::map<std::string, KernelResources>& resources_;
  const std::vector<std::int64_t> hints_;
  std::vector<GroupId> naming_group_;  // of each kernel
};

// One strategy's plan and launches: the asked one's as they are, the others' made here.
struct Compiled {
  std::optional<PlannedModel> made;
  GeneratedModel generated;
  const PlannedModel* planned = nullptr;
  const LaunchPlan* launch = nullptr;
};

void compile_as(Strategy strategy, const ViewedModel& model, Compiled& compiled) {
  compiled.planned = &model.planned;
  compiled.launch = model.launch;
  if (strategy == model.options.strategy) return;
  Pipeline pipeline(options_as(strategy, model.options));
  compiled.made = pipeline.plan(model.file);
  compiled.planned = &*compiled.made;
  compiled.launch = nullptr;
  if (model.file.nodes.size() > kLargestToRun) return;
  try {
    compiled.generated = pipeline.generate(*compiled.made, 1);
    compiled.launch = &compiled.generated.launch;
  } catch (const Error&) {
    // No source can be made of it: launches are those that the cost model foresees.
  }
}

void write_strategies(JsonWriter& out, const ViewedModel& model) {
  std::array<Compiled, kStrategies.size()> compiled;
  std::vector<Picture> pictures;
  pictures.reserve(kStrategies.size());
  for (std::size_t s = 0; s < kStrategies.size(); ++s) {
    compile_as(kStrategies[s], model, compiled[s]);
    pictures.push_back(picture_of(*compiled[s].planned, compiled[s].launch, model.options));
  }
  const PredictedModel unfused = unfused_cost(*compiled[0].planned, compiled[0].launch, model.options);
  const std::map<std::string, KernelResources> none;
  for (std::size_t s = 0; s < kStrategies.size(); ++s) {
    const PlannedModel& planned = *compiled[s].planned;
    const ComparedModel compared = compared_with_unfused(model.file, planned, pictures[s].predicted, unfused);
    CostReportContext costs = report_context(planned, compared, model.options);
    for (std::size_t other = 0; other < kStrategies.size(); ++other)
      costs.totals.emplace_back(kStrategies[other], pictures[other].predicted.total());
    const bool is_asked = kStrategies[s] == model.options.strategy;
    out.member(name(kStrategies[s]),
               [&] { StrategyWriter(out, pictures[s], is_asked ? model.resources : none).write(costs); });
  }
}

}  // namespace

std::string view_data(const ViewedModel& model) {
  JsonWriter out;
  out.object([&] {
    out.member("fusec_view", 1);
    out.member("model", model.file.name);
    out.member("arch", model.options.target.arch);
    out.member("chip", model.options.target.chip);
    out.member("asked", name(model.options.strategy));
    out.member("file_nodes", model.file.nodes.size());
    out.member("symbols", [&] {
      out.array_of(model.file.symbols, [&](const Symbol& symbol) {
        out.array([&] {
          out.value(symbol.name);
          out.value(symbol.hint);
        });
      });
    });
    out.member("profile", [&] { model.profile.empty() ? out.null() : out.written(model.profile); });
    out.member("colours", [&] {
      out.object([&] {
        for (const OpPattern kind :
             {OpPattern::kElemwise, OpPattern::kBroadcast, OpPattern::kInjective, OpPattern::kCommReduce,
              OpPattern::kOutEwiseFusable, OpPattern::kTuple, OpPattern::kOpaque})
          out.member(name(kind), colour(kind));
      });
    });
    out.member("rules", [&] {
      out.object([&] {
        for (std::size_t r = 0; r < kFusionRuleCount; ++r)
          out.member(name(static_cast<FusionRule>(r)), sentence(static_cast<FusionRule>(r)));
      });
    });
    out.member("strategies", [&] { out.object([&] { write_strategies(out, model); }); });
  });
  return std::move(out).text();
}

}  // namespace fusec
