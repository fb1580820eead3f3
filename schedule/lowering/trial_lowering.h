// Lowers nodes on trial to find out what they become: how many kernels and launches, and how long these take. Claims
// and merges decide by the answers. Each answer is cached by group signature, so equal layers are lowered once. The
// cache outlives the pass, so merges reuse the answers of claims.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "analysis/group_signature.h"
#include "analysis/value_bytes.h"
#include "ir/deadline.h"
#include "ir/graph.h"
#include "schedule/cost/work.h"
#include "schedule/form_memory.h"
#include "schedule/lowering/kernel_memory.h"
#include "schedule/target/target.h"

namespace fusec {

struct TrialResult {
  bool known = true;  // false: the budget was spent, or the deadline passed
  bool whole = true;  // false: several launches, and no other member is set (TrialLowering::of_one_launch)
  std::uint32_t kernels = 0;
  std::uint32_t launches = 0;  // fewer where kernels run side by side
  int strength = 0;            // of the strongest form among them
  bool has_elements = false;   // a kernel in no form at all
  bool row_gemm = false;       // a product whose rows are reduced
  std::int64_t bytes = 0;    // that the kernels read and write, at the hints
  double seconds = 0;        // that they are predicted to take
  double form_seconds = 0;   // the same with products as their forms fetch factors (TrialMemory::distinguish_forms)
  std::optional<Work> work;  // where they are one launch
  std::vector<std::uint32_t> stored;  // places in the list of the nodes whose results one kernel stores for another
};

// Answers for graphs that are made of one another (Graph::emptied, Graph::rearrange): ids of types and attributes mean
// the same in all of them.
class TrialMemory {
 public:
  explicit TrialMemory(Target target = known_targets().front(),
                       std::shared_ptr<FormMemory> forms = std::make_shared<FormMemory>())
      : target_(std::move(target)), forms_(std::move(forms)) {}
  const Target& target() const { return target_; }
  // For other graphs: the same target, forms and deadline, and no answers.
  TrialMemory without_answers() const {
    TrialMemory other(target_, forms_);
    other.deadline_ = deadline_;
    return other;
  }

  // From then on nothing new is lowered; questions without a kept answer are not answered.
  void set_deadline(Deadline deadline) { deadline_ = deadline; }

  // Answers from now on tell apart how factors of products are fetched: in pieces, or one element after the other.
  void distinguish_forms() { distinguishes_forms_ = true; }
  double seconds(const TrialResult& result) const {
    return distinguishes_forms_ ? result.form_seconds : result.seconds;
  }

  // Keeps the uses of values, the facts of formulas and the kernels of units for all passes. Call it once the graph no
  // longer changes; without it each pass finds them itself.
  std::shared_ptr<LoweringMemory> keep_uses_and_kernels(const Graph& graph) {
    uses_ = std::make_shared<const Uses>(uses_of(graph));
    return lowering_ = std::make_shared<LoweringMemory>();
  }
  // Of the same graph.
  void share_with(const TrialMemory& other) {
    uses_ = other.uses_;
    lowering_ = other.lowering_;
    forms_ = other.forms_;
  }
  std::shared_ptr<const Uses> uses(const Graph& graph) const {
    return uses_ ? uses_ : std::make_shared<const Uses>(uses_of(graph));
  }

 private:
  friend class TrialLowering;
  Target target_;
  std::unordered_map<GroupKey, TrialResult, GroupKeyHash> tried_;
  std::uint64_t searches_ = 0;
  bool distinguishes_forms_ = false;
  Deadline deadline_;
  std::shared_ptr<const Uses> uses_;
  std::shared_ptr<LoweringMemory> lowering_;
  std::shared_ptr<FormMemory> forms_;
};

class TrialLowering {
 public:
  // `budget`: nodes that may be lowered, those of known answers not counted. The graph may not change meanwhile.
  TrialLowering(const Graph& graph, TrialMemory& memory, std::int64_t budget);

  // Of nodes in topological order; `outputs`, in order, are what others need of their results.
  const TrialResult& of(std::span<const NodeId> nodes, std::span<const ValueId> outputs);
  // For callers that need the result only if it is one launch; ends early if it is not.
  const TrialResult& of_one_launch(std::span<const NodeId> nodes, std::span<const ValueId> outputs);

  const Target& target() const { return memory_.target(); }
  double seconds(const TrialResult& result) const { return memory_.seconds(result); }
  // Some question was not answered for want of budget.
  bool is_spent() const { return budget_ < 0; }

 private:
  const TrialResult& answer(std::span<const NodeId> nodes, std::span<const ValueId> outputs, bool whole);
  TrialResult lower(std::span<const NodeId> nodes, std::span<const ValueId> outputs, bool whole);

  const Graph& graph_;
  TrialMemory& memory_;
  std::int64_t budget_;
  GroupSignatures signatures_;
  ValueBytes bytes_;
  std::shared_ptr<LoweringMemory> lowering_;
};

}  // namespace fusec
