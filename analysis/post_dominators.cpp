#include "analysis/post_dominators.h"

namespace fusec {

PostDominators::PostDominators(const ForwardGraph& graph) : entries_(graph.size()) {
  for (Vertex v = graph.size(); v-- > 0;) {
    const auto consumers = graph.consumers(v);
    Vertex meeting = kNoVertex;
    OpPattern pattern = OpPattern::kOpaque;
    if (!graph.external[v] && !consumers.empty()) {
      meeting = consumers.front();
      pattern = graph.pattern[meeting];
      for (const Vertex consumer : consumers.subspan(1)) {
        pattern = kind_of_path(pattern, graph.pattern[consumer]);
        meeting = common(meeting, consumer, pattern);
        if (meeting == kNoVertex) break;
      }
    }
    attach(v, meeting, pattern);
  }
}

void PostDominators::attach(Vertex v, Vertex parent, OpPattern pattern) {
  Entry& entry = entries_[v];
  if (parent == kNoVertex) {
    entry = {.parent = kNoVertex, .jump = v};
    return;
  }
  const Entry& above = entries_[parent];
  const Entry& landing = entries_[above.jump];
  entry = {.parent = parent, .jump = parent, .depth = above.depth + 1, .pattern = pattern, .pattern_to_jump = pattern};
  // The parent's jump and the next one have equal length: the new jump spans both.
  if (above.depth - landing.depth == landing.depth - entries_[landing.jump].depth && landing.jump != above.jump) {
    entry.jump = landing.jump;
    entry.pattern_to_jump = kind_of_path(pattern, kind_of_path(above.pattern_to_jump, landing.pattern_to_jump));
  }
}

Vertex PostDominators::climb_to_depth(Vertex v, std::uint32_t depth, OpPattern& seen) const {
  while (entries_[v].depth > depth) {
    const Entry& entry = entries_[v];
    if (entries_[entry.jump].depth >= depth) {
      seen = kind_of_path(seen, entry.pattern_to_jump);
      v = entry.jump;
    } else {
      seen = kind_of_path(seen, entry.pattern);
      v = entry.parent;
    }
  }
  return v;
}

// Raises `seen` to the greatest pattern on both paths. `seen` is meaningless if there is no common ancestor.
Vertex PostDominators::common(Vertex a, Vertex b, OpPattern& seen) const {
  if (entries_[a].depth > entries_[b].depth) a = climb_to_depth(a, entries_[b].depth, seen);
  if (entries_[b].depth > entries_[a].depth) b = climb_to_depth(b, entries_[a].depth, seen);
  while (a != b) {
    const Entry& left = entries_[a];
    const Entry& right = entries_[b];
    // Vertices of equal depth jump to equal depths, so both sides stay level.
    if (left.jump != right.jump) {
      if (left.depth == 1) return kNoVertex;
      seen = kind_of_path(seen, kind_of_path(left.pattern_to_jump, right.pattern_to_jump));
      a = left.jump;
      b = right.jump;
    } else {
      seen = kind_of_path(seen, kind_of_path(left.pattern, right.pattern));
      a = left.parent;
      b = right.parent;
    }
  }
  return a;
}

Vertex PostDominators::common(Vertex a, Vertex b) const {
  OpPattern ignored = OpPattern::kElemwise;
  return common(a, b, ignored);
}

}  // namespace fusec
