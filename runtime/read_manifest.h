// Reads a manifest (codegen/host/manifest.h): all that running the kernels needs, without the model and the compiler.
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
  std::optional<std::uint32_t> alias_of;  // position of the input that it overwrites
};

struct ManifestCollective {
  std::string node, op, group, reduce_op;
  std::int64_t dim = 0;
  TensorType operand, result;
};

struct ManifestModel {
  Graph graph;  // symbols, inputs, constants; no nodes
  // The launch plan: kernels without text, steps, checks, bytes. Inputs are numbered as in Graph::inputs, constants as
  // in Graph::constants, results as in `results`. Workspace and prepared memory have index 0 and an offset.
  LaunchPlan plan;
  std::vector<ManifestResult> results;
  std::vector<ManifestCollective> collectives;      // LaunchStep::node is an index into this list
  std::vector<std::optional<HostTensor>> embedded;  // by constant: the value, if the manifest contains it
  std::string arch;
};

// Throws Error(kInput) for text that is not a manifest of this version.
ManifestModel read_manifest(std::string_view text);

}  // namespace fusec
