// A partition that can be tried with changes: what stands between two nodes, and which small change would remove it.
// The answer of --explain is tried out, not guessed.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/fusion_graph.h"
#include "ir/fusion_plan.h"
#include "transforms/argument_count.h"
#include "transforms/partition.h"

namespace fusec {

// A group, led by its last vertex, that was not joined to what follows.
struct VertexObstacle {
  Vertex leader = kNoVertex;
  Vertex meeting = kNoVertex;
  VertexDecision decision;  // its blocker made precise: the vertex whose kind or use is to blame
};

// "nothing that you can set: "y" would have to be elemwise (it is comm_reduce)": kinds follow from operators, and
// only those that a front end declares are its own to change.
std::string nothing_but_another_kind(const std::string& names, bool several, OpPattern wanted, OpPattern is);

class FusionTrial {
 public:
  FusionTrial(const Graph& graph, std::span<const OpPattern> kinds, const FusionPlan& plan);

  const FusionGraph& fusion() const { return fusion_; }
  const Partition& result() const { return result_; }
  Vertex vertex_of(NodeId n) const { return fusion_.vertex_of[n]; }
  NodeId node_of(Vertex v) const { return v == kNoVertex ? kNone : fusion_.node_of[v]; }
  bool together(std::span<const Vertex> vertices) const;

  // What keeps vertices a < b apart, from the first group on; nothing where they are together.
  std::vector<VertexObstacle> obstacles(Vertex a, Vertex b) const;

  // What stopped the group of this leader; precise: its blocker searched on the ways onward.
  VertexObstacle obstacle_of(Vertex leader, bool precise) const;

  // Changes the trial so that this obstacle between `vertices` is gone (a limit: so that it is in no way between them
  // any more), and says what was changed; nothing where a user can change nothing.
  std::optional<std::string> remove(const VertexObstacle& obstacle, const std::vector<Vertex>& vertices);
  // The same as a suggestion only; where a user can change nothing, it says so and why.
  std::optional<std::string> suggest(const VertexObstacle& obstacle) const;

 private:
  struct Change;
  std::optional<Change> change_for(const VertexObstacle& obstacle) const;
  void run();
  Vertex precise_blocker(Vertex leader, const VertexDecision& decision) const;
  std::vector<Vertex> reachable(Vertex from, Vertex up_to) const;
  std::string raise_limit(FusionRule rule, const std::vector<Vertex>& vertices, std::uint32_t& limit,
                          const char* option);
  std::string name_of(Vertex v) const;
  Change of_kind(Vertex v, OpPattern allowed) const;
  bool are_stopped_by(FusionRule rule, const std::vector<Vertex>& vertices) const;

  const Graph& graph_;
  std::span<const OpPattern> kinds_;
  std::span<const PatternClaim> claims_;
  Strategy strategy_;
  FusionGraph fusion_;
  ArgumentTable arguments_;
  std::uint32_t max_fused_ops_, max_args_;
  std::optional<PostDominators> post_;
  Partition result_;
};

}  // namespace fusec
