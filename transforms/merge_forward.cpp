#include <algorithm>
#include <unordered_map>

#include "analysis/annotate.h"
#include "analysis/group_graph.h"
#include "transforms/merge_groups.h"
#include "transforms/merge_trial.h"
#include "transforms/separate_reductions.h"

namespace fusec {
namespace {

constexpr std::uint8_t kForwardPhase = 3;
constexpr int kMostQuestions = 64;               // trials for one group
constexpr std::size_t kMostForwardReaders = 16;  // readers of a value that are examined

class ForwardMerger {
 public:
  ForwardMerger(const Graph& graph, std::span<const OpPattern> kinds, FusionPlan& plan, TrialMemory& memory)
      : plan_(plan), kinds_(kinds), groups_(graph, plan, memory.uses(graph)), trial_(groups_, kinds, plan, memory) {}

  // Visits groups from last to first, so that a group merges its producers before it is merged itself. The first round
  // merges elementwise groups into the products that they read: as an epilogue they are computed once, as a prologue of
  // the next product they would be computed in every tile. Later rounds form attention and products over rows.
  void run() {
    bool changed = false;
    for (const bool only_products : {true, false})
      for (GroupId g = static_cast<GroupId>(groups_.size()); g-- > 0;) {
        if (!groups_.alive(g) || !trial_.open(g)) continue;
        if (!only_products || is_pointwise(g)) changed |= take_producers(g, only_products);
      }
    for (GroupId g = static_cast<GroupId>(groups_.size()); g-- > 0;)
      if (groups_.alive(g) && trial_.open(g) && is_complex(g) && take_stream(g)) {
        take_producers(g, false);
        changed = true;
      }
    trial_.allow_row_gemms();
    for (GroupId g = static_cast<GroupId>(groups_.size()); g-- > 0;)
      if (groups_.alive(g) && trial_.open(g) && (!is_complex(g) || trial_.is_rows(g)) && reads_product(g))
        changed |= take_producers(g, false);
    // Append the refusals of attention after those of pairs, which only say that two of the three groups are no kernel.
    plan_.refused.insert(plan_.refused.end(), refused_streams_.begin(), refused_streams_.end());
    if (changed) groups_.write_to(plan_, kinds_);
  }

 private:
  // Whether the group is elementwise and computes something.
  bool is_pointwise(GroupId g) const {
    return plan_.groups[g].pattern <= OpPattern::kInjective &&
           std::ranges::any_of(groups_.nodes(g), [&](NodeId n) { return kinds_[n] <= OpPattern::kBroadcast; });
  }

  bool is_complex(GroupId g) const {
    return std::ranges::any_of(groups_.nodes(g), [&](NodeId n) { return kinds_[n] == OpPattern::kOutEwiseFusable; });
  }

  bool reads_product(GroupId g) const {
    return groups_.any_producer(g, [&](GroupId producer) { return is_complex(producer); });
  }

  // Merges three groups into attention: scores, their softmax, and the product with values (g). No two of the three are
  // one kernel, so they must be tried together.
  bool take_stream(GroupId g) {
    int questions = 0;
    for (const GroupId softmax : groups_.producers(g)) {
      if (!trial_.open(softmax)) continue;
      const std::uint64_t kind = trial_.in_haste() ? ~kind_of_edge(softmax, g) : 0;
      if (trial_.hopeless(kind)) continue;
      for (const GroupId scores : groups_.producers(softmax)) {
        if (!trial_.open(scores) || !is_complex(scores)) continue;
        // The group between two products must be a softmax, which a product with its rows' reduction is not.
        if (trial_.is_row_gemm(softmax) && trial_.is_product_group(scores) && trial_.is_product_group(g)) continue;
        if (++questions > kMostQuestions) return false;
        const std::vector<GroupId> parts{scores, softmax, g};
        const NodeId consumer = groups_.nodes(g).back();
        const std::vector<NodeId> joining{groups_.nodes(scores).back(), groups_.nodes(softmax).back()};
        MergeAnswer answer = trial_.ask(parts);
        if (answer.yes() && !groups_.contract(parts)) answer.rule = FusionRule::kClosesCycle;
        const bool joined = answer.yes();
        trial_.note(kind, joined);
        if (!joined && answer.rule != FusionRule::kNotOneKernel) {
          refused_streams_.push_back({joining[0], joining[1], decision(answer, joining[1])});
          refused_streams_.push_back({joining[1], consumer, decision(answer, consumer)});
        }
        if (!joined) continue;
        for (const NodeId n : joining) plan_.decisions[n] = decision(answer, consumer);
        return true;
      }
    }
    return false;
  }

  bool is_product_group(GroupId g) const { return plan_.groups[g].pattern == OpPattern::kOutEwiseFusable; }

  // Whether the producer is a product whose results only g reads, so that they need not be stored.
  bool is_product_for(GroupId producer, GroupId g) const {
    if (!is_product_group(producer)) return false;
    const std::vector<ValueId> outputs = groups_.outputs_of(groups_.nodes(producer));
    return groups_.consumers(producer) == std::vector<GroupId>{g} &&
           std::ranges::none_of(outputs, [&](ValueId v) { return groups_.is_output(v); });
  }

  // Whether another group has a product of the same left operand. Such products belong into one group (merge-siblings),
  // not into a group that reads one of them.
  bool is_one_of_several_products(GroupId producer, GroupId g) const {
    return std::ranges::any_of(groups_.nodes(producer), [&](NodeId n) {
      if (!is_product(groups_.graph().nodes[n])) return false;
      const auto all = groups_.uses().of(groups_.graph().nodes[n].inputs[0]);
      return std::ranges::any_of(all.first(std::min(all.size(), kMostForwardReaders)), [&](NodeId reader) {
        const GroupId there = groups_.group_of(reader);
        return is_product(groups_.graph().nodes[reader]) && there != producer && there != g;
      });
    });
  }

  // Of producers of one kind by one group.
  struct Refusals {
    std::uint32_t count = 0;
    MergeAnswer answer = {};  // the last one
  };

  // A kind of producer that was refused kRefusalsUntilHopeless times is refused without a trial from then on.
  bool take_producers(GroupId g, bool only_products) {
    bool changed = false;
    int questions = 0;
    for (bool again = true; again && questions < kMostQuestions;) {
      again = false;
      if (only_products && !groups_.any_producer(g, [&](GroupId producer) { return is_product_group(producer); }))
        break;
      groups_.find_producers(g, producers_);
      const std::vector<GroupId> apart = separate_reductions(groups_, kinds_, producers_);
      std::unordered_map<std::uint64_t, Refusals> refusals;  // by kind of producer
      for (const GroupId producer : producers_) {
        if (questions == kMostQuestions) break;
        if (!trial_.open(producer)) continue;
        if (only_products && !is_product_for(producer, g)) continue;
        if (std::ranges::find(apart, producer) != apart.end()) continue;
        if (is_complex(g) && is_complex(producer) && is_one_of_several_products(producer, g)) continue;
        const std::uint64_t kind = kind_of_edge(producer, g);
        if (trial_.hopeless(kind)) continue;
        ++questions;
        Refusals& alike = refusals[kind_of_producer(kind, producer, g)];
        if (alike.count == MergeTrial::kRefusalsUntilHopeless) {
          refuse(producer, g, alike.answer);
          continue;
        }
        const MergeAnswer answer = take(producer, g);
        trial_.note(kind, answer.yes());
        if (!answer.yes()) {
          alike = {alike.count + 1, answer};
          continue;
        }
        changed = again = true;
        break;
      }
    }
    return changed;
  }

  // The kind of question for the first edge between the two groups.
  std::uint64_t kind_of_edge(GroupId producer, GroupId g) const {
    for (const NodeId n : groups_.nodes(g))
      for (const ValueId v : groups_.graph().nodes[n].inputs) {
        if (v == kNone || groups_.graph().value(v).kind != Value::Kind::kResult) continue;
        const NodeId from = groups_.graph().value(v).producer;
        if (groups_.group_of(from) == producer) return trial_.kind_of_question(producer, g, from, n);
      }
    return 0;
  }

  // The kind of the edge, and of each node of the producer: heads of attention that one concat reads are all alike.
  std::uint64_t kind_of_producer(std::uint64_t kind_of_edge, GroupId producer, GroupId g) const {
    std::uint64_t kind = kind_of_edge;
    for (const NodeId n : groups_.nodes(producer)) kind = 31 * kind + trial_.kind_of_question(producer, g, n, n);
    return kind;
  }

  MergeAnswer take(GroupId producer, GroupId g) {
    const NodeId last = groups_.nodes(producer).back(), consumer = groups_.nodes(g).back();
    MergeAnswer answer = trial_.ask(std::vector{producer, g});
    if (answer.yes() && !groups_.contract(std::vector{producer, g})) answer.rule = FusionRule::kClosesCycle;
    if (answer.yes())
      plan_.decisions[last] = decision(answer, consumer);
    else
      refuse(producer, g, answer);
    return answer;
  }

  void refuse(GroupId producer, GroupId g, const MergeAnswer& answer) {
    const NodeId last = groups_.nodes(producer).back(), consumer = groups_.nodes(g).back();
    FusionDecision& now = plan_.decisions[last];
    if (now.rule != FusionRule::kJoined) now = decision(answer, consumer);
    plan_.refused.push_back({last, consumer, decision(answer, consumer)});
  }

  static FusionDecision decision(const MergeAnswer& answer, NodeId meeting) {
    return {.meeting = meeting,
            .rule = answer.rule,
            .phase = kForwardPhase,
            .joined_us = answer.joined_us,
            .apart_us = answer.apart_us};
  }

  FusionPlan& plan_;
  std::span<const OpPattern> kinds_;
  GroupGraph groups_;
  MergeTrial trial_;
  std::vector<RefusedMerge> refused_streams_;
  std::vector<GroupId> producers_;  // producers of the current group
};

}  // namespace

void merge_forward(const Graph& graph, std::span<const OpPattern> kinds, FusionPlan& plan, TrialMemory& memory) {
  ForwardMerger(graph, kinds, plan, memory).run();
}

}  // namespace fusec
