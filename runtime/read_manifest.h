// Reads a manifest (codegen/host/manifest.h) back: what is needed to run the kernels, without the model and the
// compiler.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/launch/launch_plan.h"
#include "ir/host_tensor.h"

namespace fusec {

struct ManifestResult {
  std::string name;
  TensorType type;
  std::optional<std::uint32_t> alias_of;  // the input in whose memory it is written, by position
};

struct ManifestCollective {
  std::string node, op, group, reduce_op;
  std::int64_t dim = 0;
  TensorType operand, result;
};

struct ManifestModel {
  Graph graph;  // symbols, inputs, constants; no nodes
  // What launches and their sizes need: kernels without text, steps, checks, bytes. Buffers are numbered as in the
  // graph: inputs by Graph::inputs, constants by Graph::constants; results by `results`. Workspace and prepared memory
  // are addressed by offset alone (index 0).
  LaunchPlan plan;
  std::vector<ManifestResult> results;
  std::vector<ManifestCollective> collectives;      // LaunchStep::node says which a step does
  std::vector<std::optional<HostTensor>> embedded;  // of each constant, the bytes that the manifest has
  std::string arch;
};

// Throws Error(kInput) for text that is no manifest of this version.
ManifestModel read_manifest(std::string_view text);

}  // namespace fusec
