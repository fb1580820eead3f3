// The post-dominator tree of a forward graph: the parent of a vertex is the nearest one that every way onward from it
// passes. Together with the parent goes the kind of what lies between: the greatest pattern on any edge from the
// vertex to its parent, which is what fusion asks about.
//
//     a ──▶ b ──▶ d       parent: a→d, b→d, c→d; the kind of a is the greatest of b, c and d
//     └───▶ c ───▶┘
//
// A graph output, a value that nobody uses, and one whose consumers never meet again have no parent.
//
// One pass from the last vertex to the first: the parent is the lowest common ancestor, in the tree built so far, of
// the consumers. Jump pointers (each vertex keeps one ancestor far above, spaced as the digits of a skew-binary
// number) make an ancestor query logarithmic with two words a vertex, so that long skip connections cost no climb.
#pragma once

#include <vector>

#include "analysis/forward_graph.h"

namespace fusec {

class PostDominators {
 public:
  explicit PostDominators(const ForwardGraph& graph);

  Vertex parent(Vertex v) const { return entries_[v].parent; }  // kNoVertex: none
  OpPattern pattern_to_parent(Vertex v) const { return entries_[v].pattern; }
  std::uint32_t depth(Vertex v) const { return entries_[v].depth; }  // 1 where there is no parent

  // The nearest vertex that is a or b or post-dominates both; kNoVertex if there is none.
  Vertex common(Vertex a, Vertex b) const;

 private:
  struct Entry {
    Vertex parent = kNoVertex;
    Vertex jump = kNoVertex;  // an ancestor; the vertex itself at the top of a tree
    std::uint32_t depth = 1;
    OpPattern pattern = OpPattern::kOpaque;            // on the way to the parent
    OpPattern pattern_to_jump = OpPattern::kElemwise;  // on the way to the ancestor jumped to
  };

  void attach(Vertex v, Vertex parent, OpPattern pattern);
  Vertex climb_to_depth(Vertex v, std::uint32_t depth, OpPattern& seen) const;
  Vertex common(Vertex a, Vertex b, OpPattern& seen) const;

  LargeVector<Entry> entries_;
};

}  // namespace fusec
