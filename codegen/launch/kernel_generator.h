// Makes the kernels of a plan. Kernels with the same signature (analysis/kernel/kernel_signature) are made once and
// launched with different tensors.
//
//   y = softmax(x), v = softmax(u)      one kernel k(x; y), launched as k(x; y) and k(u; v)
//
// A kernel is emitted alone, as rows with a fused cross-row reduction (schedule/lowering/cross_row_reduction), as one
// of several GEMMs that share a tile loop, or as a part of a horizontal fusion (schedule/lowering/horizontal_fusion).
// Specialized forms are added where guards on symbols allow them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/kernel/kernel.h"
#include "analysis/kernel/kernel_signature.h"
#include "codegen/dispatch/guarded_schedule.h"
#include "codegen/dispatch/horizontal_fusion.h"
#include "codegen/expr/kernel_source.h"
#include "codegen/launch/emit_options.h"
#include "codegen/launch/lower_plan.h"
#include "ir/graph.h"
#include "schedule/lowering/cross_row_reduction.h"
#include "schedule/lowering/lower_group.h"
#include "schedule/target/target.h"

namespace fusec {

// The kernels of one signature and the tensors that they were made with.
struct GeneratedKernels {
  std::vector<std::uint32_t> kernels;  // indices into LoweredPlan::kernels, launched in order
  std::vector<ValueId> tensors;
  bool too_much = false;  // too much code for one kernel
  struct Special {
    Guard guard;
    std::vector<std::uint32_t> kernels;  // at most as many as the general ones
  };
  std::vector<Special> special = {};
};

// What one launch runs. is_none() if there is no kernel for it.
struct GeneratedLaunch {
  const GeneratedKernels* generated = nullptr;
  std::vector<ValueId> tensors;  // replace those of `generated`, in order
  std::vector<NodeId> nodes;     // what it computes
  bool is_none() const { return generated->kernels.empty(); }
};

// One of the kernels that share a launch: the kernel itself, or its unit's rows with the fused cross-row reduction.
struct LaunchPart {
  const Kernel* kernel = nullptr;
  const CrossRowUnits* folded = nullptr;
};

class KernelGenerator {
 public:
  // Adds kernels and warnings to the plan.
  KernelGenerator(const Graph& graph, const Target& target, const EmitOptions& options, FormMemory& forms,
                  LoweredPlan& plan)
      : graph_(graph), target_(target), options_(options), forms_(forms), plan_(plan) {}

  // The functions below take kernels that have results. Returned references to generated kernels stay valid.
  GeneratedLaunch alone(const Kernel& kernel);
  GeneratedLaunch folded(const std::vector<LoweredUnit>& units, const CrossRowUnits& folded);
  // For two or more kernels. None if no single kernel can loop over all tiles; `too_much` may then be set.
  GeneratedLaunch together(std::span<const Kernel* const> kernels);
  // For two or more parts. Nothing if one of the kernels cannot be a part, or if the code would exceed NVRTC's time
  // limit.
  std::optional<GeneratedLaunch> fused_horizontally(const std::vector<LoweredUnit>& units,
                                                    std::span<const LaunchPart> parts);

  std::vector<std::uint32_t> keep(std::vector<KernelSource> sources);

 private:
  // A kernel as the first of its signature made it, for use as a part.
  struct Part {
    std::vector<KernelSource> sources;        // in launch order; empty if it cannot be a part
    std::vector<SpecializedSources> special;  // each has at most as many sources
    std::vector<ValueId> tensors;
  };
  // A part with the tensors of one launch in place of those it was made with.
  struct PlacedPart {
    const Part* part = nullptr;
    std::vector<ValueId> tensors;
  };
  using FormOfPart = std::function<const SpecializedSources*(const Part&)>;
  // The measured choice for a kernel.
  struct Wanted {
    std::string key, candidate;  // "": as predicted
  };

  Wanted wanted_of(std::string signature) const;
  GuardedSources sources_of(const Kernel& kernel, const Target& target, const std::string& wanted);
  void warn_of_unknown(const Wanted& wanted, const GuardedSources& sources);
  std::vector<KernelSource>& as_expected(GuardedSources& sources) const;
  void allow_in_place(const Kernel& kernel, const std::vector<std::uint32_t>& kernels);
  const Part& part_of(const Kernel& kernel, const KernelSignature& signature);
  const Part& part_of_folded(const std::vector<LoweredUnit>& units, const CrossRowUnits& folded,
                             const KernelSignature& signature);
  std::vector<KernelSource> sources_of_folded(const std::vector<LoweredUnit>& units, const CrossRowUnits& folded) const;
  static KernelPart with_tensors(const std::vector<KernelSource>& sources, const PlacedPart& placed);
  void add_skinny_gemm(GeneratedKernels& generated, const std::vector<PlacedPart>& parts,
                       const std::vector<NodeId>& nodes);
  void add_special(GeneratedKernels& generated, const std::vector<PlacedPart>& parts, const std::vector<NodeId>& nodes,
                   const FormOfPart& form_of);
  void keep_special(GeneratedKernels& generated, Guard guard, std::vector<std::uint32_t> kernels);

  const Graph& graph_;
  const Target& target_;
  const EmitOptions& options_;
  FormMemory& forms_;
  LoweredPlan& plan_;
  std::map<std::string, GeneratedKernels> generated_;
  std::map<std::string, Part> parts_;
};

}  // namespace fusec
