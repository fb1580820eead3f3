// Whether groups would be one kernel is not foretold, it is tried: their nodes are lowered together, and the answer is
// yes where one kernel comes out, of a form no worse than theirs.
//
//     {linear}, {gelu}       one kernel, a product as before          yes
//     {softmax}, {linear}    two kernels: softmax is stored           no: kNotOneKernel
//     {linear}, {cumsum}     an op without a formula                  no
//
// A trial costs what lowering costs, so its result is kept under what decided it (ops, attributes, types, and who reads
// whom): in a model of many equal layers each question is answered once. A model of ever new shapes has a budget, after
// which questions that are new get the answer no. In a graph of very many nodes a kind of question that was answered no
// again and again is put no more, so that the time a node does not grow.
#pragma once

#include <span>
#include <unordered_map>
#include <vector>

#include "analysis/group_graph.h"
#include "analysis/target.h"
#include "analysis/value_bytes.h"
#include "ir/fusion_plan.h"

namespace fusec {

class MergeTrial {
 public:
  MergeTrial(const GroupGraph& groups, std::span<const OpPattern> kinds, const FusionPlan& plan, const Target& target);

  // Whether anything may join this group: fused by us, every op in it of known meaning and free to fuse.
  bool open(GroupId g);

  // kJoined, or the rule that keeps these groups apart. Whether they close a circle is not asked here.
  FusionRule ask(std::span<const GroupId> parts);
  // The same for two groups of which neither reads the other's results, if they are to run side by side.
  FusionRule ask_beside(GroupId a, GroupId b);
  // From now on products may take in reductions of their rows: what may be part of attention must have had its turn.
  void allow_row_products() { row_products_ = true; }
  // Whether the reader would be one kernel, in a form no worse, if it computed the producer's nodes itself; and the
  // bytes of that.
  FusionRule ask_again(GroupId producer, GroupId reader, std::int64_t& bytes);
  std::int64_t bytes(GroupId g) { return of_group(g).bytes; }
  // Nothing but element by element, or views.
  bool is_pointwise(GroupId g) { return of_group(g).strength == 0 && !of_group(g).has_elements; }

  // In graphs of very many nodes: a short description of the question whether these may join, by the nodes between
  // which data flows (or which read the same); whether it is hopeless; and what became of it.
  bool in_haste() const { return groups_.graph().nodes.size() > kMostNodesWithCare; }
  std::uint64_t kind_of_question(GroupId a, GroupId b, NodeId from, NodeId to) const;
  bool hopeless(std::uint64_t kind) const;
  void note(std::uint64_t kind, bool joined);

 private:
  // What nodes become when they are lowered together.
  struct Lowered {
    std::uint32_t kernels = 0;
    std::uint32_t launches = 0;  // fewer where kernels run side by side
    int strength = 0;            // of the strongest form among them
    bool has_elements = false;   // a kernel in no form at all
    bool row_product = false;    // a product whose rows are reduced
    bool known = true;           // false: the budget was spent
    std::int64_t bytes = 0;      // that the kernels read and write, at the hints
    double seconds = 0;          // that they are predicted to take
  };
  static constexpr std::size_t kMostNodesWithCare = 20'000;
  const Lowered& lowered(std::span<const NodeId> nodes) { return lowered(nodes, groups_.outputs_of(nodes)); }
  const Lowered& lowered(std::span<const NodeId> nodes, const std::vector<ValueId>& outputs);
  const Lowered& of_group(GroupId g);
  FusionRule compare(const Lowered& together, std::span<const GroupId> parts);
  void write_key(std::span<const NodeId> nodes, std::span<const ValueId> outputs);
  std::size_t argument_count(std::span<const NodeId> nodes) const;
  FusionRule within_limits(std::span<const GroupId> parts) const;

  struct KeyHash {
    std::size_t operator()(const std::vector<std::uint64_t>& key) const;
  };

  const GroupGraph& groups_;
  std::span<const OpPattern> kinds_;
  const FusionPlan& plan_;
  const Target& target_;
  std::vector<std::uint64_t> key_;
  std::unordered_map<std::vector<std::uint64_t>, Lowered, KeyHash> tried_;
  std::vector<std::uint32_t> external_;  // of a value: its number in the key being written
  std::vector<std::uint32_t> external_stamp_;
  std::uint32_t now_ = 0;
  bool row_products_ = false;
  std::int64_t budget_;
  struct OfGroup {
    std::size_t nodes = 0;  // of the group when this was found out
    Lowered lowered;
  };
  std::vector<OfGroup> of_group_;
  std::vector<std::uint8_t> open_;  // of a group: 0 not known yet, 1 no, 2 yes
  struct Record {
    std::uint32_t yes = 0, no = 0;
  };
  std::unordered_map<std::uint64_t, Record> records_;
  ValueBytes bytes_;
};

}  // namespace fusec
