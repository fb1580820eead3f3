// The kernels of a plan, each made once: what has the same signature (analysis/kernel_signature) is the same kernel
// with other tensors.
//
//   y = softmax(x), v = softmax(u)      one kernel k(x; y), launched as k(x; y) and k(u; v)
//
// By itself, as rows that columns are folded beside (analysis/column_folds), or with others: products whose tiles
// blocks go through one after the other, or parts in blocks of their own (analysis/side_by_side). Where guards on
// symbols allow other forms, these are made, too.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/column_folds.h"
#include "analysis/kernel.h"
#include "analysis/kernel_signature.h"
#include "analysis/lower.h"
#include "analysis/target.h"
#include "codegen/emit_options.h"
#include "codegen/guarded_schedule.h"
#include "codegen/kernel_source.h"
#include "codegen/lower_plan.h"
#include "codegen/schedules/side_by_side.h"
#include "ir/graph.h"

namespace fusec {

// Kernels made for a signature, and the tensors they were made with.
struct MadeKernels {
  std::vector<std::uint32_t> kernels;  // indices into LoweredPlan::kernels, one launched after the other
  std::vector<ValueId> tensors;
  bool too_much = false;  // code for one kernel
  struct Special {
    Guard guard;
    std::vector<std::uint32_t> kernels;  // no more than the general ones
  };
  std::vector<Special> special = {};
};

// What a launch is of; none where there is no such kernel.
struct MadeLaunch {
  const MadeKernels* made = nullptr;
  std::vector<ValueId> tensors;  // in place of those it was made with
  std::vector<NodeId> nodes;     // what it computes
  bool is_none() const { return made->kernels.empty(); }
};

// One of the kernels that share a launch: itself, or its unit's rows with what is folded beside them.
struct LaunchPart {
  const Kernel* kernel = nullptr;
  const FoldedUnits* folded = nullptr;
};

class KernelMaker {
 public:
  // Kernels, and warnings, are added to the plan.
  KernelMaker(const Graph& graph, const Target& target, const EmitOptions& options, LoweredPlan& plan)
      : graph_(graph), target_(target), options_(options), plan_(plan) {}

  // Each of these is of kernels that make something. References to what is made stay valid.
  MadeLaunch alone(const Kernel& kernel);
  MadeLaunch folded(const std::vector<LoweredUnit>& units, const FoldedUnits& folded);
  // None, and perhaps `too_much`, where they are no kernel whose tiles are of all. Of two kernels or more.
  MadeLaunch together(std::span<const Kernel* const> kernels);
  // Nothing where one cannot be a part, or there is more code than NVRTC should get at a time. Of two parts or more.
  std::optional<MadeLaunch> beside(const std::vector<LoweredUnit>& units, std::span<const LaunchPart> parts);

  std::vector<std::uint32_t> keep(std::vector<KernelSource> sources);

 private:
  // A kernel as the first of its signature made it, to stand beside others.
  struct Part {
    std::vector<KernelSource> sources;    // one after the other; none where it cannot
    std::vector<SpecialSources> special;  // of no more sources
    std::vector<ValueId> tensors;
  };
  // A part with a launch's tensors in place of those that it was made with.
  struct PlacedPart {
    const Part* part = nullptr;
    std::vector<ValueId> tensors;
  };
  using FormOfPart = std::function<const SpecialSources*(const Part&)>;
  // What was measured of a kernel.
  struct Wanted {
    std::string key, way;  // "": as predicted
  };

  Wanted wanted_of(std::string signature) const;
  void warn_of_unknown(const Wanted& wanted, const GuardedSources& sources);
  std::vector<KernelSource>& as_expected(GuardedSources& sources) const;
  void let_in_place(const Kernel& kernel, const std::vector<std::uint32_t>& kernels);
  const Part& part_of(const Kernel& kernel, const KernelSignature& signature);
  const Part& part_of_folded(const std::vector<LoweredUnit>& units, const FoldedUnits& folded,
                             const KernelSignature& signature);
  std::vector<KernelSource> sources_of_folded(const std::vector<LoweredUnit>& units, const FoldedUnits& folded) const;
  static KernelPart with_tensors(const std::vector<KernelSource>& sources, const PlacedPart& placed);
  void add_few_rows(MadeKernels& made, const std::vector<PlacedPart>& parts, const std::vector<NodeId>& nodes);
  void add_special(MadeKernels& made, const std::vector<PlacedPart>& parts, const std::vector<NodeId>& nodes,
                   const FormOfPart& form_of);
  void keep_special(MadeKernels& made, Guard guard, std::vector<std::uint32_t> kernels);

  const Graph& graph_;
  const Target& target_;
  const EmitOptions& options_;
  LoweredPlan& plan_;
  std::map<std::string, MadeKernels> made_;
  std::map<std::string, Part> parts_;
};

}  // namespace fusec
