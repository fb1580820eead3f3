// The internals that a public Compilation keeps for fusec/inspect.h.
#pragma once

#include <memory>
#include <vector>

#include "codegen/nvrtc/nvrtc.h"
#include "pipeline.h"

namespace fusec {

struct CompilationDetails {
  Graph graph;  // the model as it was read
  PlannedModel planned;
  GeneratedModel generated;  // without the file's text
  PipelineOptions options;
  std::shared_ptr<const Nvrtc> nvrtc;  // null if nothing was compiled
  std::vector<StageTime> times;
};

}  // namespace fusec
