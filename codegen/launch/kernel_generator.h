// The kernels of a plan, each made once: what has the same signature (analysis/kernel/kernel_signature) is the same
// kernel with other tensors.
//
//   y = softmax(x), v = softmax(u)      one kernel k(x; y), launched as k(x; y) and k(u; v)
//
// By itself, as rows that columns are folded beside (schedule/lowering/cross_row_reduction), or with others: products
// whose tiles blocks go through one after the other, or parts in blocks of their own
// (schedule/lowering/horizontal_fusion). Where guards on symbols allow other forms, these are made, too.
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

// Kernels made for a signature, and the tensors they were made with.
struct GeneratedKernels {
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
struct GeneratedLaunch {
  const GeneratedKernels* generated = nullptr;
  std::vector<ValueId> tensors;  // in place of those it was made with
  std::vector<NodeId> nodes;     // what it computes
  bool is_none() const { return generated->kernels.empty(); }
};

// One of the kernels that share a launch: itself, or its unit's rows with what is folded beside them.
struct LaunchPart {
  const Kernel* kernel = nullptr;
  const CrossRowUnits* folded = nullptr;
};

class KernelGenerator {
 public:
  // Kernels, and warnings, are added to the plan.
  KernelGenerator(const Graph& graph, const Target& target, const EmitOptions& options, LoweredPlan& plan)
      : graph_(graph), target_(target), options_(options), plan_(plan) {}

  // Each of these is of kernels that make something. References to what is made stay valid.
  GeneratedLaunch alone(const Kernel& kernel);
  GeneratedLaunch folded(const std::vector<LoweredUnit>& units, const CrossRowUnits& folded);
  // None, and perhaps `too_much`, where they are no kernel whose tiles are of all. Of two kernels or more.
  GeneratedLaunch together(std::span<const Kernel* const> kernels);
  // Nothing where one cannot be a part, or there is more code than NVRTC should get at a time. Of two parts or more.
  std::optional<GeneratedLaunch> fused_horizontally(const std::vector<LoweredUnit>& units,
                                                    std::span<const LaunchPart> parts);

  std::vector<std::uint32_t> keep(std::vector<KernelSource> sources);

 private:
  // A kernel as the first of its signature made it, to stand beside others.
  struct Part {
    std::vector<KernelSource> sources;        // one after the other; none where it cannot
    std::vector<SpecializedSources> special;  // of no more sources
    std::vector<ValueId> tensors;
  };
  // A part with a launch's tensors in place of those that it was made with.
  struct PlacedPart {
    const Part* part = nullptr;
    std::vector<ValueId> tensors;
  };
  using FormOfPart = std::function<const SpecializedSources*(const Part&)>;
  // What was measured of a kernel.
  struct Wanted {
    std::string key, candidate;  // "": as predicted
  };

  Wanted wanted_of(std::string signature) const;
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
  LoweredPlan& plan_;
  std::map<std::string, GeneratedKernels> generated_;
  std::map<std::string, Part> parts_;
};

}  // namespace fusec
