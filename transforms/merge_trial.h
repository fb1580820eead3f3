// Whether groups would be one kernel is not foretold, it is tried: their nodes are lowered together, and the answer is
// yes where one kernel comes out, of a form no worse than theirs.
//
//     {linear}, {gelu}       one kernel, a product as before          yes
//     {softmax}, {linear}    two kernels: softmax is stored           no: kNotOneKernel
//     {linear}, {cumsum}     an op without a formula                  no
//
// A trial costs what lowering costs, so its result is kept under what decided it (ops, attributes, types, and who reads
// whom): in a model of many equal layers each question is answered once. A model of ever new shapes has a budget, after
// which questions that are new get the answer no.
#pragma once

#include <span>
#include <unordered_map>
#include <vector>

#include "analysis/group_graph.h"
#include "analysis/value_bytes.h"
#include "ir/fusion_plan.h"

namespace fusec {

class MergeTrial {
 public:
  MergeTrial(const GroupGraph& groups, std::span<const OpPattern> kinds, const FusionPlan& plan);

  // Whether anything may join this group: fused by us, every op in it of known meaning and free to fuse.
  bool open(GroupId g) const;

  // kJoined, or the rule that keeps these groups apart. Whether they close a circle is not asked here.
  FusionRule ask(std::span<const GroupId> parts);
  // The same for two groups of which neither reads the other's results, if they are to run side by side.
  FusionRule ask_beside(GroupId a, GroupId b);
  // From now on products may take in reductions of their rows: what may be part of attention must have had its turn.
  void allow_row_products() { row_products_ = true; }
  std::int64_t bytes(GroupId g) { return lowered(groups_.nodes(g)).bytes; }

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
  };
  const Lowered& lowered(std::span<const NodeId> nodes);
  void write_key(std::span<const NodeId> nodes, std::span<const ValueId> outputs);
  std::size_t argument_count(std::span<const NodeId> nodes) const;
  FusionRule within_limits(std::span<const GroupId> parts) const;

  struct KeyHash {
    std::size_t operator()(const std::vector<std::uint64_t>& key) const;
  };

  const GroupGraph& groups_;
  std::span<const OpPattern> kinds_;
  const FusionPlan& plan_;
  std::vector<std::uint64_t> key_;
  std::unordered_map<std::vector<std::uint64_t>, Lowered, KeyHash> tried_;
  std::vector<std::uint32_t> external_;  // of a value: its number in the key being written
  std::vector<std::uint32_t> external_stamp_;
  std::uint32_t now_ = 0;
  bool row_products_ = false;
  std::int64_t budget_;
  ValueBytes bytes_;
};

}  // namespace fusec
