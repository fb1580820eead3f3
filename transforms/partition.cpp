#include "transforms/partition.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "ir/budget.h"
#include "ir/error.h"
#include "transforms/argument_count.h"

namespace fusec {
namespace {

// A set of vertices that is cleared in constant time.
class Marks {
 public:
  explicit Marks(Vertex n) : stamp_(n, 0) {}
  void clear() {
    if (++now_ != 0) return;
    std::fill(stamp_.begin(), stamp_.end(), 0);
    now_ = 1;
  }
  bool insert(Vertex v) {
    if (stamp_[v] == now_) return false;
    stamp_[v] = now_;
    return true;
  }

 private:
  LargeVector<std::uint32_t> stamp_;
  std::uint32_t now_ = 1;
};

class Partitioner {
 public:
  Partitioner(const ForwardGraph& graph, const PostDominators& post, const PartitionOptions& options)
      : graph_(graph),
        post_(post),
        limit_(options.max_fused_ops),
        to_parent_(count_to_parent(graph, post, saturating_next(options.max_fused_ops))),
        up_(graph.size()),
        counted_(graph.size(), 1),
        settled_(graph.size(), 0),
        marks_(graph.size()) {
    if (options.weight != nullptr && !options.weight->empty()) counted_ = *options.weight;
    result_.pattern = graph.pattern;
    result_.anchor.assign(graph.size(), kNoVertex);
    result_.decisions.resize(graph.size());
    for (Vertex v = 0; v < graph.size(); ++v) {
      count_step();
      up_[v] = v;
      if (graph.pattern[v] == OpPattern::kOutEwiseFusable) result_.anchor[v] = v;
      const FusionRule rule = before_asking(v, options);
      if (rule != FusionRule::kUndecided) refuse(v, 0, rule, kNoVertex, true);
    }
    if (options.max_args != 0) arguments_.emplace(graph, *options.arguments, options.max_args);
  }

  Partition run() && {
    run_phase(0);
    run_phase(1);
    if (std::find(graph_.pattern.begin(), graph_.pattern.end(), OpPattern::kTuple) != graph_.pattern.end())
      run_phase(2);
    result_.root.resize(graph_.size());
    for (Vertex v = 0; v < graph_.size(); ++v) result_.root[v] = find(v);
    return std::move(result_);
  }

 private:
  static std::uint32_t saturating_next(std::uint32_t x) {
    return x == std::numeric_limits<std::uint32_t>::max() ? x : x + 1;
  }

  FusionRule before_asking(Vertex v, const PartitionOptions& options) const {
    if (options.fusion_disabled != nullptr && (*options.fusion_disabled)[v] != 0) return FusionRule::kFusionDisabled;
    const FusionRule by_kind = may_fuse_kind(graph_.pattern[v]);
    if (by_kind != FusionRule::kUndecided) return by_kind;
    if (graph_.external[v]) return FusionRule::kGraphOutput;
    if (graph_.consumers(v).empty()) return FusionRule::kUnused;
    return post_.parent(v) == kNoVertex ? FusionRule::kNeverMeets : FusionRule::kUndecided;
  }

  // Asks only roots: another vertex has joined its post-dominator already.
  void run_phase(int phase) {
    for (Vertex v = 0; v < graph_.size(); ++v) {
      count_step();
      if (up_[v] == v && !settled_[v]) ask(v, phase);
    }
  }

  void ask(Vertex v, int phase) {
    const Vertex post_dominator = post_.parent(v);
    const Vertex target = find(post_dominator);
    const JoinAnswer answer = may_join({.phase = phase,
                                        .source = result_.pattern[v],
                                        .path_pattern = post_.pattern_to_parent(v),
                                        .post_dominator = result_.pattern[post_dominator],
                                        .post_dominator_group = result_.pattern[target]});
    if (answer.rule == FusionRule::kUndecided) return;
    if (answer.rule != FusionRule::kJoined) return refuse(v, phase, answer.rule, post_dominator, false);
    if (std::uint64_t{counted_[target]} + to_parent_[v] > limit_) {
      return refuse(v, phase, FusionRule::kTooManyNodes, post_dominator, true);
    }
    if (!answer.end.has(result_.pattern[target]))
      return refuse(v, phase, answer.if_blocked_at_end, post_dominator, false);
    if (!collect_between(v, post_dominator, target, phase, answer)) return;
    if (arguments_ && !arguments_->fits(v, between_, target, up_)) {
      return refuse(v, phase, FusionRule::kTooManyArguments, post_dominator, false);
    }
    join(v, target, phase);
  }

  // Fills between_ with the vertices strictly between v and its post-dominator. Returns false and notes the refusal if
  // a group on the path may not join or the count exceeds the limit. As in TVM, the count adds counted_ of each vertex:
  // a former root counts with the size that its group had when it stopped being a root.
  bool collect_between(Vertex v, Vertex post_dominator, Vertex target, int phase, const JoinAnswer& answer) {
    between_.clear();
    std::uint64_t sum = std::uint64_t{counted_[target]} + counted_[v];
    if (to_parent_[v] > 1) {
      marks_.clear();
      marks_.insert(post_dominator);
      Vertex at = v;
      for (std::size_t next = 0;; at = between_[next++]) {
        count_step();
        for (const Vertex consumer : graph_.consumers(at)) {
          if (!marks_.insert(consumer)) continue;
          if (!answer.between.has(result_.pattern[find(consumer)])) {
            refuse(v, phase, answer.if_blocked_between, consumer, false);
            return false;
          }
          between_.push_back(consumer);
          sum += counted_[consumer];
          if (sum > limit_) break;
        }
        if (sum > limit_ || next == between_.size()) break;
      }
    }
    if (sum > limit_) refuse(v, phase, FusionRule::kTooManyNodes, post_dominator, true);
    return sum <= limit_;
  }

  void join(Vertex v, Vertex target, int phase) {
    merge(v, target, phase, kNoVertex);
    for (const Vertex u : between_) merge(find(u), target, phase, v);
  }

  void merge(Vertex root, Vertex target, int phase, Vertex because_of) {
    if (root == target) return;
    up_[root] = target;
    counted_[target] += counted_[root];
    result_.decisions[root] = {FusionRule::kJoined, static_cast<std::uint8_t>(phase), because_of};
    if (arguments_) arguments_->merge(root, target);
    if (result_.anchor[root] == kNoVertex) return;
    if (result_.anchor[target] != kNoVertex) throw InternalError("partition: two complex ops in one group");
    result_.anchor[target] = result_.anchor[root];
    result_.pattern[target] = kind_of_path(result_.pattern[root], result_.pattern[target]);
  }

  void refuse(Vertex v, int phase, FusionRule rule, Vertex blocker, bool for_good) {
    result_.decisions[v] = {rule, static_cast<std::uint8_t>(phase), blocker};
    settled_[v] = for_good;
  }

  // Union-find with path halving. The root is always the group's last vertex.
  Vertex find(Vertex v) {
    while (up_[v] != v) v = up_[v] = up_[up_[v]];
    return v;
  }

  const ForwardGraph& graph_;
  const PostDominators& post_;
  const std::uint64_t limit_;
  const LargeVector<std::uint32_t> to_parent_;
  LargeVector<Vertex> up_;
  LargeVector<std::uint32_t> counted_;  // size of a root's group; for others the size when they stopped being a root
  LargeVector<std::uint8_t> settled_;   // 1: asking again gives the same answer
  Marks marks_;
  std::vector<Vertex> between_;
  std::optional<ArgumentCount> arguments_;
  Partition result_;
};

}  // namespace

Partition partition(const ForwardGraph& graph, const PostDominators& post_dominators, const PartitionOptions& options) {
  return Partitioner(graph, post_dominators, options).run();
}

LargeVector<std::uint32_t> count_to_parent(const ForwardGraph& graph, const PostDominators& post, std::uint32_t cap) {
  const Vertex n = graph.size();
  LargeVector<std::uint32_t> count(n, cap);
  // The count between a vertex and an ancestor in the post-dominator tree is the sum along the tree, so to_top keeps
  // sums from the tree's root. A saturated sum only makes differences smaller, so they stay lower bounds.
  LargeVector<std::uint32_t> to_top(n, 0);
  Marks marks(n);
  std::vector<Vertex> queue;
  for (Vertex v = n; v-- > 0;) {
    count_step();
    const Vertex parent = post.parent(v);
    if (parent == kNoVertex) continue;
    const auto consumers = graph.consumers(v);
    std::size_t at_least = 1;
    for (const Vertex c : consumers) at_least = std::max(at_least, std::size_t{1} + (to_top[c] - to_top[parent]));
    if (consumers.size() > 1 && at_least < cap) {
      queue.assign(1, v);
      marks.clear();
      marks.insert(parent);
      for (std::size_t next = 0; next < queue.size() && queue.size() < cap; ++next) {
        for (const Vertex c : graph.consumers(queue[next])) {
          if (marks.insert(c)) queue.push_back(c);
        }
      }
      at_least = queue.size();
    }
    count[v] = static_cast<std::uint32_t>(std::min<std::size_t>(at_least, cap));
    to_top[v] = to_top[parent] + std::min(count[v], std::numeric_limits<std::uint32_t>::max() - to_top[parent]);
  }
  return count;
}

}  // namespace fusec
