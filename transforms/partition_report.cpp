#include "transforms/partition_report.h"

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <unordered_set>

#include "analysis/value_bytes.h"
#include "ir/spelling.h"
#include "schedule/lowering/node_work.h"

namespace fusec {
namespace {

bool is_view(const Node& node) {
  return node.op->view || node.op->special == Special::kTuple;
}

// Appends JSON text directly: the report of a graph with a million nodes is about 100 MB, too much for a JSON tree.
class PartitionReportWriter {
 public:
  PartitionReportWriter(const Graph& graph, const FusionPlan& plan, const PartitionReportContext& context)
      : graph_(graph),
        plan_(plan),
        context_(context),
        interfaces_(group_interfaces(graph, plan)),
        work_(graph),
        bytes_(graph) {
    for (const std::string_view name : context.stands_for.copied()) shared_.emplace(name, kNone);
  }

  std::string write() && {
    text_ = "{\"fusec_partition\": 1, \"model\": " + json_string(graph_.name) + ", \"strategy\": \"";
    text_.append(name(plan_.strategy)).append("\", \"arch\": ").append(json_string(context_.arch));
    text_ += ",\n \"groups\": [";
    auto recomputed = plan_.recomputed.begin();
    bool first_group = true;
    for (GroupId g = 0; g < plan_.groups.size(); ++g) {
      if (plan_.groups[g].prepared) continue;
      std::vector<NodeId> duplicated;
      for (; recomputed != plan_.recomputed.end() && recomputed->group == g; ++recomputed) {
        duplicated.push_back(recomputed->node);
      }
      text_ += first_group ? "\n  " : ",\n  ";
      first_group = false;
      write_group(g, duplicated);
    }
    text_ += first_group ? "]" : "\n ]";
    write_names(",\n \"dropped\"", context_.dropped);
    write_names(", \"folded\"", context_.folded);
    write_names(", \"prepared\"", prepared_names());
    write_totals();
    return std::move(text_);
  }

 private:
  void write_group(GroupId g, const std::vector<NodeId>& duplicated) {
    const FusionGroup& group = plan_.groups[g];
    text_ += "{\"name\": " + json_string(group.name);
    write_nodes(g, duplicated);
    text_.append(", \"pattern\": \"").append(name(group.pattern)).append("\", \"anchor\": ");
    text_ += group.anchor == kNone ? "null" : json_string(graph_.nodes[group.anchor].name);
    text_ += ", \"claimed_by\": ";
    text_ += group.claimed_by == kNone ? "null" : json_string(plan_.claims[group.claimed_by].pattern);
    if (group.claimed_by != kNone) write_claim(plan_.claims[group.claimed_by]);
    text_.append(", \"codegen\": \"").append(name(group.code)).append("\", \"launches\": ");
    text_ += std::to_string(launches_of(g));
    write_values(", \"inputs\"", interfaces_[g].inputs);
    write_values(", \"outputs\"", interfaces_[g].outputs);
    if (group.claimed_by != kNone && !plan_.claims[group.claimed_by].bound_constants.empty())
      write_values(", \"bound_constants\"", plan_.claims[group.claimed_by].bound_constants);
    write_work(g);
    text_ += "}";
  }

  // Operations of the group's nodes, and bytes of its inputs and outputs.
  void write_work(GroupId g) {
    const FusionGroup& group = plan_.groups[g];
    std::int64_t flops = 0, bytes = 0;
    for (const NodeId n : group.nodes) flops = added(flops, work_.flops(n));
    if (!is_only_views(graph_, group)) {
      for (const ValueId v : interfaces_[g].inputs) bytes = added(bytes, bytes_.of(v));
      for (const ValueId v : interfaces_[g].outputs) bytes = added(bytes, bytes_.of(v));
    }
    text_ += ", \"flops\": " + std::to_string(flops) + ", \"bytes\": " + std::to_string(bytes);
  }

  static std::int64_t added(std::int64_t a, std::int64_t b) {
    constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
    return a > kMost - b ? kMost : a + b;
  }

  // The group's attributes from the pattern, and the nodes of the pattern's named parts.
  void write_claim(const PatternClaim& claim) {
    text_ += ", \"attributes\": {";
    for (std::size_t i = 0; i < claim.attributes.size(); ++i) {
      text_ += i == 0 ? "" : ", ";
      text_ += json_string(claim.attributes[i].first) + ": " + json_string(claim.attributes[i].second);
    }
    text_ += "}, \"parts\": {";
    for (std::size_t i = 0; i < claim.parts.size(); ++i) {
      text_ += i == 0 ? "" : ", ";
      text_ += json_string(claim.parts[i].first) + ": " + json_string(graph_.nodes[claim.parts[i].second].name);
    }
    text_ += "}";
  }

  void write_totals() {
    std::uint32_t launches = 0;
    for (GroupId g = 0; g < plan_.groups.size(); ++g) launches += launches_of(g);
    const std::uint32_t kernels = context_.kernels != kNone ? context_.kernels : launches;
    if (context_.launches != kNone) launches = context_.launches;
    const GlobalBytes fused = global_bytes(graph_, plan_, interfaces_);
    const GlobalBytes unfused = unfused_global_bytes(graph_);
    text_ += ", \"kernels\": " + std::to_string(kernels) + ", \"launches\": " + std::to_string(launches);
    text_ += ",\n \"global_bytes\": {\"read\": " + std::to_string(fused.read);
    text_ += ", \"written\": " + std::to_string(fused.written);
    text_ += ", \"unfused_read\": " + std::to_string(unfused.read);
    text_ += ", \"unfused_written\": " + std::to_string(unfused.written) + "}}\n";
  }

  // The file's nodes that only prepared groups compute.
  std::vector<std::string> prepared_names() const {
    std::vector<std::string> names;
    std::unordered_set<std::string_view> known;
    const auto for_each_name = [&](bool prepared, auto f) {
      for (const FusionGroup& group : plan_.groups) {
        if (group.prepared != prepared) continue;
        for (const NodeId n : group.nodes) {
          if (context_.stands_for.empty()) f(graph_.nodes[n].name);
          if (!context_.stands_for.empty()) std::ranges::for_each(context_.stands_for[n], f);
        }
      }
    };
    if (std::ranges::none_of(plan_.groups, &FusionGroup::prepared)) return names;
    for_each_name(false, [&](std::string_view name) { known.insert(name); });
    for_each_name(true, [&](std::string_view name) {
      if (known.insert(name).second) names.emplace_back(name);
    });
    return names;
  }

  std::uint32_t launches_of(GroupId g) const {
    if (plan_.groups[g].prepared) return 0;
    if (!context_.group_launches.empty()) return context_.group_launches[g];
    return is_only_views(graph_, plan_.groups[g]) ? 0 : 1;
  }

  void begin_list(const char* key) {
    text_.append(key).append(": [");
    first_ = true;
  }
  void add(std::string_view item) {
    if (!first_) text_ += ", ";
    first_ = false;
    text_ += json_string(item);
  }
  void write_names(const char* key, const std::vector<std::string>& names) {
    begin_list(key);
    for (const std::string& n : names) add(n);
    text_ += "]";
  }
  void write_nodes(GroupId g, const std::vector<NodeId>& recomputed) {
    std::vector<std::string_view> again;  // names that an earlier group computes, too
    std::vector<std::string_view> here;   // shared names that this group has already listed
    begin_list(", \"nodes\"");
    for (const NodeId n : plan_.groups[g].nodes) {
      const bool is_recomputed = std::ranges::binary_search(recomputed, n);
      const auto write = [&](std::string_view name) {
        const auto shared = shared_.find(name);
        if (shared != shared_.end()) {
          if (std::ranges::find(here, name) != here.end()) return;
          here.push_back(name);
          if (shared->second == kNone) shared->second = g;
        }
        if (is_recomputed || (shared != shared_.end() && shared->second != g)) again.push_back(name);
        add(name);
      };
      if (context_.stands_for.empty()) write(graph_.nodes[n].name);
      if (!context_.stands_for.empty()) std::ranges::for_each(context_.stands_for[n], write);
    }
    text_ += "]";
    begin_list(", \"duplicated\"");
    for (const std::string_view name : again) add(name);
    text_ += "]";
  }

  void write_values(const char* key, const std::vector<ValueId>& values) {
    begin_list(key);
    for (const ValueId v : values) add(graph_.value(v).name);
    text_ += "]";
  }

  const Graph& graph_;
  const FusionPlan& plan_;
  const PartitionReportContext& context_;
  const std::vector<GroupInterface> interfaces_;
  std::unordered_map<std::string_view, GroupId> shared_;  // copied name to the first group that lists it
  NodeWork work_;
  ValueBytes bytes_;
  std::string text_;
  bool first_ = true;
};

}  // namespace

std::string partition_report(const Graph& graph, const FusionPlan& plan, const PartitionReportContext& context) {
  return PartitionReportWriter(graph, plan, context).write();
}

bool is_only_views(const Graph& graph, const FusionGroup& group) {
  return std::ranges::all_of(group.nodes, [&](NodeId n) { return is_view(graph.nodes[n]); });
}

GlobalBytes global_bytes(const Graph& graph, const FusionPlan& plan, const std::vector<GroupInterface>& interfaces) {
  GlobalBytes total;
  ValueBytes bytes(graph);
  for (GroupId g = 0; g < plan.groups.size(); ++g) {
    if (plan.groups[g].prepared || is_only_views(graph, plan.groups[g])) continue;
    for (const ValueId v : interfaces[g].inputs) total.read += bytes.of(v);
    for (const ValueId v : interfaces[g].outputs) total.written += bytes.of(v);
  }
  return total;
}

GlobalBytes unfused_global_bytes(const Graph& graph) {
  GlobalBytes total;
  ValueBytes bytes(graph);
  std::vector<NodeId> read_by(graph.value_count(), kNone);
  std::vector<std::uint8_t> needed(graph.value_count(), 0);
  for (const Node& node : graph.nodes) {
    for (const ValueId v : node.inputs) {
      if (v != kNone) needed[v] = 1;
    }
  }
  for (const ValueId v : graph.outputs) needed[v] = 1;
  for (NodeId n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    if (is_view(node)) continue;
    for (const ValueId v : node.inputs) {
      if (v == kNone || read_by[v] == n) continue;
      const Value::Kind kind = graph.value(v).kind;
      if (kind == Value::Kind::kNumber || kind == Value::Kind::kDim) continue;
      read_by[v] = n;
      total.read += bytes.of(v);
    }
    for (ValueId v = node.first_output; v < node.first_output + node.output_count; ++v) {
      if (needed[v]) total.written += bytes.of(v);
    }
  }
  return total;
}

}  // namespace fusec
