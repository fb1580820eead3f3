// Measures the candidate schedules of a model's kernels (schedule/plan/schedule_choice.h), and keeps the fastest
// candidate of each kernel.
//
//   round 1   the predicted candidates             linear_gelu 231 us   softmax 14 us
//   round 2   the second candidate of each kernel  linear_gelu 210 us   softmax 15 us
//   ...                                            until the kernel with the most candidates has run all of them
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "codegen/tuning/tuning_database.h"
#include "pipeline.h"
#include "runtime/reference/reference.h"

namespace fusec {

// The measurements of one round.
struct MeasuredRun {
  TensorMap outputs;
  std::vector<double> kernel_seconds;  // by kernel of the launch plan: seconds of all its launches
};
using Measure = std::function<MeasuredRun(Pipeline&, const PlannedModel&, const GeneratedModel&)>;

struct TuningResult {
  std::vector<TunedKernel> kernels;  // kernels with several candidates, in the order of the launch plan
  std::vector<std::string> refused;  // rounds that are ignored, because their outputs differ from the first round's
};

// Ignores `options.emit.tuning`. `device` is recorded in the results.
TuningResult tune(const PlannedModel& planned, const PipelineOptions& options, const std::string& device,
                  const Measure& measure);

std::string tuning_text(const TuningResult& result);

}  // namespace fusec
