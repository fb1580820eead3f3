// The ordered list of the passes of a compilation. The pipeline runs its rows. --list-passes, --time-passes,
// --dump-ir-before, --dump-ir-after and the library's run_pass use their names.
//
// The order: the user's wishes are noted before any rewriting, so that names mean the file's nodes. Rewriting comes
// before annotation, because pattern kinds belong to the rewritten nodes. Annotation comes before fusion, which needs
// the kinds.
//
// A new rewriting is a function void f(CanonicalGraph&) and one row in passes.cpp.
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

// The state that passes share. Each part of a compilation fills in what it needs.
struct CompilationState {
  const PipelineOptions& options;
  PlannedModel* planned = nullptr;
  std::shared_ptr<FormMemory> forms = std::make_shared<FormMemory>();
  TrialMemory trials{options.target, forms};  // merges reuse the trials of claims
  LoweredPlan lowered;
  GeneratedModel* generated = nullptr;
  std::size_t units = 1;  // as in emit_file
  const Nvrtc* nvrtc = nullptr;
  std::span<const std::string> sources;  // what NVRTC compiles
  std::vector<CompiledModule> modules;
};

// The part of the pipeline that runs a pass.
enum class CompilationPart : std::uint8_t {
  kRead,     // done before the pipeline gets the graph
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
  bool under_full_alone = false;  // runs under `full` only; `none` and `tvm` take the graph exactly as given
  bool needed = false;            // under_full_alone, but cannot be disabled
};

std::span<const Pass> passes();

// Throws Error(kUsage) with a list of the names if there is no such pass.
const Pass& find_pass(std::string_view name);

// Throws Error(kUsage) unless all of these are passes that can be disabled (--disable-pass).
void require_optional_passes(std::span<const std::string> names);

}  // namespace fusec
