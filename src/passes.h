// The one ordered list of what a compilation does. The pipeline runs its rows; --list-passes, --time-passes,
// --dump-ir-before and --dump-ir-after, and the library's run_pass go by their names.
//
// The order: what the user asked is noted before any rewriting, so that names mean the file's nodes; rewriting comes
// before annotation, since kinds follow from the nodes that are left; kinds before fusion, which reasons with them.
//
// A new rewriting is a function void f(CanonicalGraph&) and one row here.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/launch/lower_plan.h"
#include "pipeline.h"
#include "schedule/lowering/trial_lowering.h"

namespace fusec {

// What passes take from one another. Each part of a compilation fills in what it needs.
struct CompilationState {
  const PipelineOptions& options;
  PlannedModel* planned = nullptr;
  std::shared_ptr<FormMemory> forms = std::make_shared<FormMemory>();
  TrialMemory trials{options.target, forms};  // claims' serve the merges
  LoweredPlan lowered;
  GeneratedModel* generated = nullptr;
  std::size_t units = 1;  // as in emit_file
  const Nvrtc* nvrtc = nullptr;
  std::span<const std::string> sources;  // what NVRTC compiles
  std::vector<CompiledModule> modules;
};

// Which of the pipeline's functions runs a pass.
enum class CompilationPart : std::uint8_t {
  kRead,     // done by whoever brings the graph
  kGraph,    // from graph to graph; verified, and shown by --dump-ir-after=all
  kPlan,     // from graph to plan
  kSource,   // from plan to CUDA source
  kProgram,  // from source to PTX and cubin
};

struct Pass {
  std::string_view name;
  std::string_view summary;
  CompilationPart part;
  void (*run)(CompilationState&);
  bool under_full_alone = false;  // `none` and `tvm` take the graph exactly as given
  bool needed = false;            // under_full_alone: cannot be left out all the same
};

std::span<const Pass> passes();

// Throws Error(kUsage), which lists the names, for any other.
const Pass& find_pass(std::string_view name);

// Throws Error(kUsage) unless all of these are passes that can be left out (--disable-pass).
void require_optional_passes(std::span<const std::string> names);

}  // namespace fusec
