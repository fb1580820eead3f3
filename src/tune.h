// Measures the ways that a model's kernels can go (codegen/tuning/schedule_choice.h), and keeps the fastest of each.
//
//   round 1   every kernel as predicted       linear_gelu 231 us   softmax 14 us
//   round 2   every kernel's second way       linear_gelu 210 us   softmax 15 us
//   ...                                       until the kernel with the most ways has been through all of them
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "codegen/tuning/tuning_database.h"
#include "pipeline.h"
#include "runtime/reference/reference.h"

namespace fusec {

// One compilation, run.
struct MeasuredRun {
  TensorMap outputs;
  std::vector<double> kernel_seconds;  // by kernel of the launch plan, all its launches together
};
using Measure = std::function<MeasuredRun(Pipeline&, const PlannedModel&, const GeneratedModel&)>;

struct TuningResult {
  std::vector<TunedKernel> kernels;  // that have several ways, in the order of the launch plan
  std::vector<std::string> refused;  // rounds that count for nothing, since their outputs are not those of the first
};

// `options.emit.tuning` does not count; `device` is what the results say they were measured on.
TuningResult tune(const PlannedModel& planned, const PipelineOptions& options, const std::string& device,
                  const Measure& measure);

std::string tuning_text(const TuningResult& result);

}  // namespace fusec
