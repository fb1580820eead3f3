#include "transforms/cost_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "analysis/group_signature.h"
#include "ir/spelling.h"
#include "schedule/form_memory.h"
#include "schedule/lowering/cublaslt_call_cost.h"
#include "schedule/lowering/launch_cost.h"
#include "schedule/lowering/node_work.h"

namespace fusec {
namespace {

std::string microseconds(double seconds) {
  return fmt::format("{:.4f}", seconds * 1e6);
}

std::string ratio(double unfused, double fused) {
  return fused == 0 ? "null" : fmt::format("{:.4f}", unfused / fused);
}

std::string additive(const Prediction& p) {
  return fmt::format(R"({{"compute_us": {}, "memory_us": {}, "launch_us": {}, "total_us": {}}})",
                     microseconds(p.compute), microseconds(p.memory), microseconds(p.launch),
                     microseconds(p.additive()));
}

// Fused and unfused time by both formulas of the cost model.
std::string comparison(const Prediction& unfused, const Prediction& fused) {
  return fmt::format(R"("predicted_us": {}, "unfused_us": {}, "speedup": {},)"
                     "\n   "
                     R"("additive_unfused": {},)"
                     "\n   "
                     R"("additive_fused": {}, "additive_speedup": {})",
                     microseconds(fused.total), microseconds(unfused.total), ratio(unfused.total, fused.total),
                     additive(unfused), additive(fused), ratio(unfused.additive(), fused.additive()));
}

std::string work(const Prediction& p) {
  return fmt::format(R"("launches": {}, "flops": {:.0f}, "bytes": {{"read": {:.0f}, "written": {:.0f}}})", p.launches,
                     p.flops, p.read, p.written);
}

class CostReportWriter {
 public:
  CostReportWriter(const Graph& graph, const FusionPlan& plan, const CostReportContext& context)
      : graph_(graph), plan_(plan), context_(context) {}

  std::string write() && {
    text_ = fmt::format(R"({{"fusec_report": 1, "model": {}, "strategy": "{}", "arch": {},)", json_string(graph_.name),
                        name(plan_.strategy), json_string(context_.target.arch));
    text_ += " \"numerics\": [";
    for (std::size_t i = 0; i < context_.numerics.size(); ++i)
      text_ += (i ? ", " : "") + json_string(context_.numerics[i]);
    text_ += "],";
    write_target();
    write_symbols();
    text_ += ",\n \"groups\": [";
    bool first = true;
    for (GroupId g = 0; g < plan_.groups.size(); ++g) {
      if (plan_.groups[g].prepared) continue;
      write_group(g, first);
      first = false;
    }
    text_ += first ? "],\n" : "\n ],\n";
    Prediction whole = sum_of(context_.groups);
    whole += context_.at_end;
    write_elsewhere();
    text_ += " " + comparison(context_.totals.front().second, whole) + ",\n";
    write_memory();
    write_totals();
    write_names(" \"to_measure\": [", [&](auto add) {
      for (GroupId g = 0; g < plan_.groups.size(); ++g)
        if (gains_little(g)) add(plan_.groups[g].name);
    });
    return std::move(text_) + "}\n";
  }

 private:
  void write_target() {
    const Target& t = context_.target;
    text_ += fmt::format(
        "\n \"target\": {{\"name\": {}, \"chip\": {}, \"multiprocessors\": {}, \"bandwidth\": {:.6g}, "
        "\"float32_rate\": {:.6g},\n   \"float64_rate\": {:.6g}, \"float16_rate\": {:.6g}, \"float8_rate\": {:.6g}, "
        "\"special_rate\": {:.6g},\n   \"launch_seconds\": {:.6g}, \"latency_seconds\": {:.6g}, \"source\": {}}},",
        json_string(t.name), json_string(t.chip), t.multiprocessors, t.bandwidth, t.float32_rate, t.float64_rate,
        t.float16_rate, t.float8_rate, t.special_rate, t.launch_seconds, t.latency_seconds, json_string(t.source));
  }

  void write_symbols() {
    text_ += "\n \"symbols\": [";
    for (std::size_t i = 0; i < graph_.symbols.size(); ++i)
      text_ += fmt::format("{}{{\"name\": {}, \"value\": {}}}", i == 0 ? "" : ", ", json_string(graph_.symbols[i].name),
                           graph_.symbols[i].hint);
    text_ += "]";
  }

  void write_group(GroupId g, bool first) {
    const FusionGroup& group = plan_.groups[g];
    const Prediction& fused = context_.groups[g];
    text_ += fmt::format("{}{{\"name\": {}, ", first ? "\n  " : ",\n  ", json_string(group.name));
    write_names("\"nodes\": [", [&](auto add) {
      for (const NodeId n : group.nodes) {
        if (context_.nodes.stands_for.empty()) add(graph_.nodes[n].name);
        if (!context_.nodes.stands_for.empty())
          for (const std::string_view origin : context_.nodes.stands_for[n]) add(std::string(origin));
      }
    });
    text_ += fmt::format(", \"codegen\": \"{}\",\n   {}, \"roofline\": {},\n   {}}}", name(group.code), work(fused),
                         fused.launches == 0 ? "null" : "\"" + std::string(name(fused.roof())) + "\"",
                         comparison(context_.unfused[g], fused));
  }

  bool gains_little(GroupId g) const {
    return !plan_.groups[g].prepared && context_.fused[g] > 1 &&
           context_.unfused[g].total < (1 + kSmallGain) * context_.groups[g].total;
  }

  void write_elsewhere() {
    write_names(" \"elsewhere\": {\"nodes\": [", [&](auto add) { std::ranges::for_each(context_.elsewhere, add); });
    text_ += fmt::format(",\n   {},\n   {}}},\n", work(context_.at_end),
                         comparison(context_.unfused_elsewhere, context_.at_end));
  }

  // Workspace bytes next to the least that any memory plan needs.
  void write_memory() {
    const auto& memory = context_.nodes.memory;
    text_ += " \"memory\": ";
    text_ += memory ? fmt::format(R"({{"workspace_bytes": {}, "least_workspace_bytes": {}, "prepared_bytes": {}}})",
                                  memory->workspace, memory->least_workspace, memory->prepared)
                    : "null";
    text_ += ",\n";
  }

  void write_totals() {
    text_ += " \"totals\": {";
    for (std::size_t i = 0; i < context_.totals.size(); ++i) {
      const auto& [strategy, total] = context_.totals[i];
      text_ += fmt::format("{}\"{}\": {{\"predicted_us\": {}, {}}}", i == 0 ? "" : ",\n   ", name(strategy),
                           microseconds(total.total), work(total));
    }
    text_ += "},\n";
  }

  template <typename F>
  void write_names(const char* begin, F for_each) {
    text_ += begin;
    bool first = true;
    for_each([&](const std::string& item) {
      text_ += (first ? "" : ", ") + json_string(item);
      first = false;
    });
    text_ += "]";
  }

  const Graph& graph_;
  const FusionPlan& plan_;
  const CostReportContext& context_;
  std::string text_;
};

// Predicts the groups of a plan. Groups of one signature are predicted once.
class GroupPredictor {
 public:
  GroupPredictor(const Graph& graph, const FusionPlan& plan, const Target& target, const Numerics& numerics,
                 FormMemory& forms, LoweringMemory* memory)
      : graph_(graph),
        plan_(plan),
        target_(target),
        numerics_(numerics),
        forms_(forms),
        memory_(memory),
        interfaces_(group_interfaces(graph, plan)),
        signatures_(graph) {}

  // No group takes less: one launch, unless all its nodes are views, or nothing has elements.
  double least_seconds(GroupId g) const {
    const FusionGroup& group = plan_.groups[g];
    const bool launched = std::ranges::any_of(group.nodes, [&](NodeId n) {
      const Node& node = graph_.nodes[n];
      return node.op->formula && !node.op->view && !may_have_no_elements(node.first_output);
    });
    return launched && !group.prepared ? target_.launch_seconds : 0;
  }

  Prediction of(GroupId g) {
    const FusionGroup& group = plan_.groups[g];
    if (group.prepared) return {};  // runs in M_prepare, not at each launch
    GroupKey key = signatures_.of(group.nodes, interfaces_[g].outputs);
    key.push_back(static_cast<std::uint64_t>(group.code));
    if (const auto found = known_.find(key); found != known_.end()) return found->second;
    return known_.emplace(std::move(key), predicted(group, interfaces_[g].outputs)).first->second;
  }

 private:
  bool may_have_no_elements(ValueId v) const {
    return std::ranges::any_of(graph_.tensor(v).shape, [](const Dim& d) { return !d.as_constant() || d.is(0); });
  }

  Prediction predicted(const FusionGroup& group, const std::vector<ValueId>& outputs) {
    const std::vector<NodeId> nodes(group.nodes.begin(), group.nodes.end());
    if (group.code == GroupCode::kCublasLt)
      if (const auto call = find_cublaslt_call(graph_, nodes, outputs, target_, false).call)
        return predict(graph_, *call, target_);
    return predict(graph_, nodes, outputs, plan_.strategy == Strategy::kFull, target_, numerics_, &forms_, memory_);
  }

  const Graph& graph_;
  const FusionPlan& plan_;
  const Target& target_;
  const Numerics& numerics_;
  FormMemory& forms_;
  LoweringMemory* memory_;
  const std::vector<GroupInterface> interfaces_;
  GroupSignatures signatures_;
  std::unordered_map<GroupKey, Prediction, GroupKeyHash> known_;
};

}  // namespace

std::vector<Prediction> predict_groups(const Graph& graph, const FusionPlan& plan, const Target& target,
                                       const Numerics& numerics) {
  FormMemory forms;
  GroupPredictor predictor(graph, plan, target, numerics, forms, nullptr);
  NodeWork work(graph);
  std::vector<Prediction> predictions;
  predictions.reserve(plan.groups.size());
  for (GroupId g = 0; g < plan.groups.size(); ++g) {
    predictions.push_back(predictor.of(g));
    if (plan.groups[g].prepared) continue;
    // Count operations by the nodes' formulas, as the partition report does.
    predictions.back().flops = 0;
    for (const NodeId n : plan.groups[g].nodes) predictions.back().flops += static_cast<double>(work.flops(n));
  }
  return predictions;
}

double seconds_of_groups(const Graph& graph, const FusionPlan& plan, const Target& target, const Numerics& numerics,
                         FormMemory& forms, LoweringMemory* memory, double enough) {
  GroupPredictor predictor(graph, plan, target, numerics, forms, memory);
  double seconds = 0;
  for (GroupId g = 0; g < plan.groups.size(); ++g) seconds += predictor.least_seconds(g);
  for (GroupId g = 0; g < plan.groups.size() && seconds < enough; ++g)
    seconds += predictor.of(g).total - predictor.least_seconds(g);
  return seconds;
}

Prediction sum_of(const std::vector<Prediction>& parts) {
  Prediction sum;
  for (const Prediction& part : parts) sum += part;
  return sum;
}

std::string cost_report(const Graph& graph, const FusionPlan& plan, const CostReportContext& context) {
  return CostReportWriter(graph, plan, context).write();
}

}  // namespace fusec
