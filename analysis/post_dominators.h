// The post-dominator tree of a forward graph. The parent of a vertex is its immediate post-dominator: the nearest
// vertex on all paths from it to the end. Each vertex also stores the greatest pattern on any edge from it to its
// parent, which the fusion rules need.
//
//     a ──▶ b ──▶ d       parent: a→d, b→d, c→d; the stored pattern of a is the greatest of b, c and d
//     └───▶ c ───▶┘
//
// A vertex has no parent if it is a graph output, has no consumer, or its consumers have no common post-dominator.
//
// One pass runs from the last vertex to the first: the parent is the lowest common ancestor of the consumers in the
// tree built so far. Each vertex keeps one jump pointer to an ancestor, spaced by skew-binary numbers. An ancestor
// query thus takes logarithmic time, also across long skip connections.
#pragma once

#include <vector>

#include "analysis/forward_graph.h"

namespace fusec {

class PostDominators {
 public:
  explicit PostDominators(const ForwardGraph& graph);

  Vertex parent(Vertex v) const { return entries_[v].parent; }  // kNoVertex: none
  OpPattern pattern_to_parent(Vertex v) const { return entries_[v].pattern; }
  std::uint32_t depth(Vertex v) const { return entries_[v].depth; }  // 1 if there is no parent

  // Returns the nearest vertex that is a or b, or post-dominates both; kNoVertex if there is none.
  Vertex common(Vertex a, Vertex b) const;

 private:
  struct Entry {
    Vertex parent = kNoVertex;
    Vertex jump = kNoVertex;  // an ancestor; the vertex itself if it is a root
    std::uint32_t depth = 1;
    OpPattern pattern = OpPattern::kOpaque;            // greatest pattern on the edges to the parent
    OpPattern pattern_to_jump = OpPattern::kElemwise;  // greatest pattern on the edges to `jump`
  };

  void attach(Vertex v, Vertex parent, OpPattern pattern);
  Vertex climb_to_depth(Vertex v, std::uint32_t depth, OpPattern& seen) const;
  Vertex common(Vertex a, Vertex b, OpPattern& seen) const;

  LargeVector<Entry> entries_;
};

}  // namespace fusec
