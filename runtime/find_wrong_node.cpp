#include "runtime/find_wrong_node.h"

#include <algorithm>
#include <set>

namespace fusec {
namespace {

class Search {
 public:
  Search(const Graph& graph, const FusionPlan& plan, const TensorMap& tensors,
         const std::optional<Tolerance>& tolerance,
         const std::function<TensorMap(const Graph&, const FusionPlan&)>& run, bool allow_tf32)
      : graph_(graph),
        plan_(plan),
        run_(run),
        expected_(graph, tensors, tolerances_of(graph, tolerance, allow_tf32), ExpectedOutputs::Values::kAll) {}

  std::optional<WrongNode> find() {
    std::set<ValueId> values;
    for (const GroupInterface& group : group_interfaces(graph_, plan_))
      values.insert(group.outputs.begin(), group.outputs.end());
    const auto result = first_wrong(values);
    if (!result) return std::nullopt;
    values.clear();
    for (const NodeId n : plan_.groups[result->group].nodes)
      for (std::uint32_t o = 0; o < graph_.nodes[n].output_count; ++o) values.insert(graph_.nodes[n].first_output + o);
    auto inner = first_wrong(values);
    if (!inner) return result;
    inner->inside = true;
    return inner;
  }

 private:
  // Runs the graph with these values as additional outputs. Returns the first wrong one, in the order of nodes.
  std::optional<WrongNode> first_wrong(const std::set<ValueId>& values) {
    Graph graph = graph_;
    for (const ValueId v : values)
      if (can_be_output(v)) graph.outputs.push_back(v);
    FusionPlan plan = plan_;
    // The launch must compute all outputs, so no node is prepared.
    for (Node& node : graph.nodes) node.prepared = false;
    for (FusionGroup& group : plan.groups) group.prepared = false;
    index_groups(graph, plan);
    const TensorMap got = run_(graph, plan);
    for (const ValueId v : values) {
      const std::string& name = graph_.value(v).name;
      const auto found = got.find(name);
      if (found == got.end() || !expected_.has(name)) continue;
      const auto difference = expected_.compare({*found}).difference;
      if (!difference) continue;
      const NodeId producer = graph_.value(v).producer;
      return WrongNode{graph_.nodes[producer].name, *difference, plan_.group_of[producer], false};
    }
    return std::nullopt;
  }

  bool can_be_output(ValueId v) const {
    return graph_.value(v).kind == Value::Kind::kResult && !graph_.type(v).is_tuple &&
           std::find(graph_.outputs.begin(), graph_.outputs.end(), v) == graph_.outputs.end();
  }

  const Graph& graph_;
  const FusionPlan& plan_;
  const std::function<TensorMap(const Graph&, const FusionPlan&)>& run_;
  ExpectedOutputs expected_;
};

}  // namespace

std::optional<WrongNode> find_wrong_node(const Graph& graph, const FusionPlan& plan, const TensorMap& tensors,
                                         const std::optional<Tolerance>& tolerance,
                                         const std::function<TensorMap(const Graph&, const FusionPlan&)>& run,
                                         bool allow_tf32) {
  return Search(graph, plan, tensors, tolerance, run, allow_tf32).find();
}

}  // namespace fusec
