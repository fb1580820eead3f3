// The grouping by its definition, as plainly as it can be written: every count, path and merge is a full walk over
// sets. Slow; what transforms/partition must agree with on every graph.
#pragma once

#include <set>
#include <vector>

#include "analysis/post_dominators.h"

namespace fusec::test {

class PlainPartition {
 public:
  PlainPartition(const ForwardGraph& graph, std::uint64_t limit) : graph_(graph), post_(graph), limit_(limit) {
    for (Vertex v = 0; v < graph.size(); ++v) records_.push_back({v, graph.pattern[v], 1, is_complex(v)});
    for (int phase = 0; phase < 3; ++phase) {
      for (Vertex v = 0; v < graph.size(); ++v) consider(v, phase);
    }
  }

  LargeVector<Vertex> roots() const {
    LargeVector<Vertex> result;
    for (Vertex v = 0; v < graph_.size(); ++v) result.push_back(root(v));
    return result;
  }

 private:
  using P = OpPattern;
  struct Record {
    Vertex parent;
    P pattern;
    std::uint64_t nodes;
    bool has_anchor;
  };

  bool is_complex(Vertex v) const { return graph_.pattern[v] == P::kOutEwiseFusable; }
  Vertex root(Vertex v) const {
    while (records_[v].parent != v) v = records_[v].parent;
    return v;
  }

  // Strictly between v and its post-dominator.
  std::set<Vertex> between(Vertex v) const {
    std::set<Vertex> found, frontier{v};
    while (!frontier.empty()) {
      const Vertex at = *frontier.begin();
      frontier.erase(frontier.begin());
      for (const Vertex c : graph_.consumers(at)) {
        if (c != post_.parent(v) && found.insert(c).second) frontier.insert(c);
      }
    }
    return found;
  }

  void consider(Vertex v, int phase) {
    const Vertex meeting = post_.parent(v);
    const P kind = records_[v].pattern;
    if (kind == P::kOpaque || meeting == kNoVertex) return;
    const std::set<Vertex> way = between(v);
    std::uint64_t sum = records_[root(meeting)].nodes + records_[v].nodes;
    for (const Vertex u : way) sum += records_[u].nodes;
    if (sum > limit_) return;
    const auto way_at_most = [&](P greatest) {
      for (const Vertex u : way) {
        if (records_[root(u)].pattern > greatest) return false;
      }
      return true;
    };
    const P end = records_[root(meeting)].pattern;
    if (phase == 2) {
      if (kind <= P::kInjective && records_[meeting].pattern == P::kTuple && end <= P::kInjective &&
          way_at_most(P::kInjective)) {
        merge(v, way, meeting);
      }
      return;
    }
    if (root(v) == root(meeting) || records_[meeting].pattern == P::kTuple) return;
    const P path = post_.pattern_to_parent(v);
    bool joins = false;
    if (kind == P::kOutEwiseFusable) {
      joins = phase == 0 && path == P::kElemwise && end <= P::kBroadcast && way_at_most(P::kBroadcast);
    } else if (kind <= P::kBroadcast) {
      joins =
          (path <= P::kInjective || path == P::kCommReduce) && end <= P::kOutEwiseFusable && way_at_most(P::kInjective);
    } else if (kind == P::kInjective || kind == P::kTuple) {
      joins = phase == 1 && end <= P::kInjective && way_at_most(P::kInjective);
    }
    if (joins) merge(v, way, meeting);
  }

  void merge(Vertex v, std::set<Vertex> group, Vertex meeting) {
    group.insert(v);
    for (const Vertex u : group) {
      Record& from = records_[root(u)];
      Record& to = records_[root(meeting)];
      if (&from == &to) continue;
      from.parent = root(meeting);
      to.nodes += from.nodes;
      if (from.has_anchor) to.pattern = kind_of_path(from.pattern, to.pattern);
      to.has_anchor |= from.has_anchor;
    }
  }

  const ForwardGraph& graph_;
  const PostDominators post_;
  const std::uint64_t limit_;
  std::vector<Record> records_;
};

}  // namespace fusec::test
