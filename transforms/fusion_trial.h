// Repeats the partition with small changes, for --explain: what keeps two nodes in different groups, and which change
// would let them fuse. Each suggested change is tried, not guessed.
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

// A group that was not merged with its post-dominator.
struct VertexObstacle {
  Vertex leader = kNoVertex;   // the group's last vertex
  Vertex meeting = kNoVertex;  // the leader's post-dominator
  VertexDecision decision;     // `blocker` is the vertex whose kind or use prevents the merge
};

// "nothing that you can set: "y" would have to be elemwise (it is comm_reduce)". Pattern kinds follow from operators; a
// front end can change those of its custom ops only.
std::string nothing_but_another_kind(const std::string& names, bool several, OpPattern wanted, OpPattern is);

class FusionTrial {
 public:
  FusionTrial(const Graph& graph, std::span<const OpPattern> kinds, const FusionPlan& plan);

  const FusionGraph& fusion() const { return fusion_; }
  const Partition& result() const { return result_; }
  Vertex vertex_of(NodeId n) const { return fusion_.vertex_of[n]; }
  NodeId node_of(Vertex v) const { return v == kNoVertex ? kNone : fusion_.node_of[v]; }
  bool together(std::span<const Vertex> vertices) const;

  // The obstacles between vertices a < b, in order of their leaders; empty if a and b are in one group.
  std::vector<VertexObstacle> obstacles(Vertex a, Vertex b) const;

  // What stopped the group of this leader. `precise`: searches the paths to the post-dominator for the blocker.
  VertexObstacle obstacle_of(Vertex leader, bool precise) const;

  // Changes the trial so that this obstacle disappears, and describes the change; nothing if no user can change it. A
  // limit is raised until it separates none of `vertices`.
  std::optional<std::string> remove(const VertexObstacle& obstacle, const std::vector<Vertex>& vertices);
  // Describes the change without making it. If no user can change it, says so, with the reason.
  std::optional<std::string> suggest(const VertexObstacle& obstacle) const;

 private:
  struct Change;
  std::optional<Change> change_for(const VertexObstacle& obstacle) const;
  void run();
  Vertex precise_blocker(Vertex leader, const VertexDecision& decision) const;
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
