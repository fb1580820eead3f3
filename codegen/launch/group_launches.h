// What runs of one group, in order: launches of generated kernels, special ops and aliases. Repeated layers have groups
// of one signature (analysis/group_signature); these are lowered once and then renamed.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "analysis/group_signature.h"
#include "codegen/launch/emit_options.h"
#include "codegen/launch/kernel_generator.h"
#include "ir/graph.h"
#include "schedule/lowering/cross_row_reduction.h"
#include "schedule/lowering/lower_group.h"
#include "schedule/target/target.h"

namespace fusec {

struct GroupAction {
  enum class Kind : std::uint8_t {
    kAlias,    // `value` is memory of `of`
    kSpecial,  // `node`, which has no formula
    kLaunch,   // `launch`, which stores `stores`; without `generated` if these have no elements
  };
  Kind kind = Kind::kLaunch;
  ValueId value = kNone, of = kNone;
  NodeId node = kNone;
  std::vector<ValueId> stores;
  GeneratedLaunch launch;
};

// Whether some extent is 0.
bool has_no_elements(const Graph& graph, ValueId v);

class GroupLaunches {
 public:
  GroupLaunches(const Graph& graph, const Target& target, const EmitOptions& options, FormMemory& forms,
                LoweringMemory* memory, KernelGenerator& generator)
      : graph_(graph),
        target_(target),
        options_(options),
        forms_(forms),
        memory_(memory),
        generator_(generator),
        signatures_(graph) {}

  // `together`: independent kernels share a launch; the same for all groups.
  std::vector<GroupAction> of(const std::vector<NodeId>& nodes, const std::vector<ValueId>& outputs, bool together);

 private:
  struct Known {
    GroupParts parts;
    std::vector<GroupAction> actions;
  };

  void lower(const std::vector<NodeId>& nodes, const std::vector<ValueId>& outputs, bool together);
  std::vector<GroupAction> renamed(const Known& known, const GroupParts& parts) const;
  bool makes_nothing(const Kernel& kernel) const;
  void add_unit(const LoweredUnit& unit);
  void add_kernel(const Kernel& kernel);
  void add_launch(const std::vector<LoweredUnit>& units, std::span<const std::uint32_t> launch);
  const CrossRowUnits* folded_at(std::span<const std::uint32_t> launch, std::size_t at) const;
  void add_folded(const std::vector<LoweredUnit>& units, const CrossRowUnits& folded);
  bool add_joined(const std::vector<LoweredUnit>& units, std::span<const std::uint32_t> launch);
  std::vector<LaunchPart> parts_of(const std::vector<LoweredUnit>& units, std::span<const std::uint32_t> launch) const;

  const Graph& graph_;
  const Target& target_;
  const EmitOptions& options_;
  FormMemory& forms_;
  LoweringMemory* memory_;  // null: none is kept
  KernelGenerator& generator_;
  GroupSignatures signatures_;
  std::unordered_map<GroupKey, Known, GroupKeyHash> known_;
  std::vector<GroupAction> actions_;   // of the current group
  std::vector<CrossRowUnits> folded_;  // of the current group
};

}  // namespace fusec
