// A launch plan with the symbols' values put in: all grids, sizes and offsets as numbers.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "codegen/launch/launch_plan.h"

namespace fusec {

// TensorMapBoxes with numbers; strides in bytes.
struct ResolvedBoxes {
  int element_bytes = 2;
  std::vector<std::int64_t> extents, strides;
  std::vector<std::uint32_t> box;
};

struct ResolvedArgument {
  bool is_size = false;
  std::int64_t size = 0;  // is_size
  int bits = 32;
  BufferRef::Kind buffer = BufferRef::Kind::kNowhere;
  std::uint32_t index = 0;
  std::int64_t offset = 0;                            // bytes
  std::optional<ResolvedBoxes> boxes = std::nullopt;  // set for a tensor map (TMA)
};

struct ResolvedStep {
  LaunchStep::Kind kind = LaunchStep::Kind::kKernel;
  std::uint32_t kernel = 0;
  std::array<std::int64_t, 3> grid{1, 1, 1};
  std::int64_t dynamic_shared = 0;
  std::int64_t bytes = 0;  // kCopy: size; kMatrixCall: size of the workspace
  std::vector<ResolvedArgument> arguments;
  const LaunchStep* step = nullptr;
  std::uint32_t position = 0;  // of the step in LaunchPlan::steps, or prepare_steps
};

struct ResolvedArenaValue {
  std::int64_t offset = 0, bytes = 0;
};

struct ResolvedPlan {
  std::vector<ResolvedStep> steps, prepare_steps;          // without steps of an empty grid or size
  std::vector<ResolvedArenaValue> arena, prepared_values;  // in the order of LaunchPlan
  std::int64_t workspace_bytes = 0, prepared_bytes = 0;
};

// Throws Error(kInput) if sizes that must agree do not.
ResolvedPlan resolve_steps(const LaunchPlan& plan, const std::vector<std::int64_t>& symbols);

// Throws Error(kInput) for a step that fusec-run cannot execute on the CPU: an external launcher, or a collective with
// different shapes of result and operand (a group of several devices).
void require_executable(const Graph& graph, const LaunchPlan& plan);

// Throws Error(kInput) for a step that calls a library or an external launcher.
void require_kernels_only(const Graph& graph, const LaunchPlan& plan);

}  // namespace fusec
