// Attention in many wirings, each a few lines of text: one kernel, which computes what the reference computes.
#pragma once

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <limits>

#include "runtime/tensor_file.h"
#include "support/check_lowered.h"
#include "support/short_model.h"

namespace fusec::test {

struct AttentionCase {
  const char* what;
  std::string inputs;
  std::string nodes;
  const char* outputs = "y";
  std::string schedule = "attention_mma";
  const char* symbols = "";
};

inline std::string schedules_of(const LoweredPlan& plan) {
  std::string names;
  for (const LoweredStep& step : plan.groups[0].steps)
    names += (names.empty() ? "" : " ") +
             (step.kind == LoweredStep::Kind::kKernel ? name(plan.kernels[step.kernel].schedule) : std::string("copy"));
  return names;
}

// Masks: the keys of the first and of the last row are all masked out.
inline void mask_rows(TensorMap& tensors) {
  HostTensor& mask = tensors.at("m");
  const std::int64_t keys = mask.shape.back();
  for (std::int64_t i = 0; i < keys; ++i)
    for (const std::int64_t at : {i, mask.size() - 1 - i}) {
      if (mask.dtype == DType::kBool)
        mask.set_integer(at, 0);
      else
        mask.set_real(at, -std::numeric_limits<double>::infinity());
    }
}

inline const char* const kCut = "no attention";

inline void check_case(const AttentionCase& c, const Target& target, bool empty_rows = false) {
  INFO(c.what, ": ", c.inputs, "; ", c.nodes);
  const Graph graph = short_model(c.inputs.c_str(), c.nodes.c_str(), c.outputs, c.symbols);
  const FusionPlan plan = plain_plan(graph, true);
  const std::string schedules = schedules_of(lower_plan(graph, plan, target, {}));
  if (c.schedule == kCut)
    CHECK(schedules.find("attention") == std::string::npos);
  else if (!(c.schedule == "attention_mma" && target.architecture_specific && schedules == "attention_wgmma"))
    CHECK(schedules == c.schedule);
  const auto nvrtc = nvrtc_or_skip();
  if (!nvrtc) return;
  TensorMap tensors = random_tensors(graph, 7);
  if (empty_rows) mask_rows(tensors);
  const TensorMap want = run_reference(graph, tensors);
  const TensorMap got = run_on_emulator(*nvrtc, graph, plan, tensors, {}, target);
  for (const auto& [name, tensor] : want) check_close(std::string(c.what) + ", " + name, got.at(name), tensor, 1);
}

inline void check_case(const AttentionCase& c, const char* arch, bool empty_rows = false) {
  check_case(c, target_for(arch), empty_rows);
}

// Where a few blocks fill the target, tiles are large.
inline void check_large(const std::vector<AttentionCase>& cases, bool empty_rows = false) {
  for (const AttentionCase& c : cases)
    for (const char* arch : {"sm_80", "sm_90a"}) {
      Target target = target_for(arch);
      target.multiprocessors = 2;
      check_case(c, target, empty_rows);
    }
}

inline void check_cases(const std::vector<AttentionCase>& cases, bool empty_rows = false) {
  const char* arch = "sm_80";
  for (const AttentionCase& c : cases) {
    check_case(c, arch, empty_rows);
    arch = std::string_view(arch) == "sm_80" ? "sm_90a" : "sm_80";
  }
}

inline const char* const kLanes = "attention";

// Scores of rank 4 as separate nodes; `between` makes `s` from `p`, the product.
inline std::string written_out(const std::string& between, const std::string& after = "softmax s {\"dim\": -1}") {
  return "t = transpose k {\"dim0\": 2, \"dim1\": 3}; p = matmul q t; " + between + "; w = " + after +
         "; y = matmul w v";
}

inline std::string operands(const std::string& dtype, int heads, int queries, int keys, int head, int value_head) {
  return fmt::format("q {0} 2,{1},{2},{4}; k {0} 2,{1},{3},{4}; v {0} 2,{1},{3},{5}", dtype, heads, queries, keys, head,
                     value_head);
}

}  // namespace fusec::test
