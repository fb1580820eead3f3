#include "tune.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>

#include "ir/error.h"
#include "runtime/compare_outputs.h"
#include "runtime/tolerance.h"

namespace fusec {
namespace {

class Tuning {
 public:
  Tuning(const PlannedModel& planned, const PipelineOptions& options, const std::string& device, const Measure& measure)
      : planned_(planned), options_(options), device_(device), measure_(measure) {}

  TuningResult run() {
    std::size_t rounds = 1;
    for (std::size_t round = 0; round < rounds; ++round) {
      one_round(round);
      for (const Kernel& kernel : kernels_) rounds = std::max(rounds, kernel.candidates.size());
    }
    for (Kernel& kernel : kernels_) {
      std::ranges::stable_sort(kernel.tuned.microseconds, {}, [](const auto& candidate) { return candidate.second; });
      kernel.tuned.choice = kernel.tuned.microseconds.front().first;
      result_.kernels.push_back(std::move(kernel.tuned));
    }
    return std::move(result_);
  }

 private:
  struct Kernel {
    std::vector<std::string> candidates;
    TunedKernel tuned;
  };

  // The candidates of this round. A kernel without a further candidate uses its predicted one.
  std::shared_ptr<const TuningDatabase> trial_of(std::size_t round) const {
    auto trial = std::make_shared<TuningDatabase>();
    for (const Kernel& kernel : kernels_) {
      TunedKernel wanted = kernel.tuned;
      wanted.choice = kernel.candidates[round < kernel.candidates.size() ? round : 0];
      trial->set(std::move(wanted));
    }
    return trial;
  }

  void one_round(std::size_t round) {
    PipelineOptions options = options_;
    options.emit.tuning = trial_of(round);
    Pipeline pipeline(std::move(options));
    PlannedModel planned = planned_;
    const GeneratedModel generated = pipeline.generate(planned, 1);
    MeasuredRun measured = measure_(pipeline, planned, generated);
    if (round == 0) {
      outputs_ = std::move(measured.outputs);
    } else if (const auto difference =
                   first_difference(measured.outputs, outputs_, tolerances_of(planned_.graph, std::nullopt))) {
      result_.refused.push_back(
          fmt::format("round {}: output \"{}\" is not that of the first round", round + 1, difference->output));
      return;
    }
    note(generated.launch, measured.kernel_seconds, round);
  }

  void note(const LaunchPlan& launch, const std::vector<double>& seconds, std::size_t round) {
    std::map<std::string, double> of_key;  // seconds by tuning key, which several kernels may share
    for (std::size_t k = 0; k < launch.kernels.size(); ++k) {
      const KernelSource::Tuning& tuning = launch.kernels[k].tuning;
      if (tuning.key.empty()) continue;
      of_key[tuning.key] += seconds.at(k);
      if (round == 0 && !number_of_.contains(tuning.key)) {
        number_of_[tuning.key] = kernels_.size();
        kernels_.push_back({tuning.candidates,
                            {.arch = options_.target.arch,
                             .key = tuning.key,
                             .kernel = launch.kernels[k].name,
                             .device = device_,
                             .choice = "",
                             .microseconds = {}}});
      }
    }
    for (const auto& [key, time] : of_key) {
      const auto number = number_of_.find(key);
      if (number == number_of_.end()) throw InternalError("a kernel that depends on how others go");
      Kernel& kernel = kernels_[number->second];
      if (round < kernel.candidates.size())
        kernel.tuned.microseconds.emplace_back(kernel.candidates[round], time * 1e6);
    }
  }

  const PlannedModel& planned_;
  const PipelineOptions& options_;
  const std::string& device_;
  const Measure& measure_;
  std::vector<Kernel> kernels_;
  std::map<std::string, std::size_t> number_of_;  // tuning key to index into kernels_
  TensorMap outputs_;                             // outputs of the first round
  TuningResult result_;
};

}  // namespace

TuningResult tune(const PlannedModel& planned, const PipelineOptions& options, const std::string& device,
                  const Measure& measure) {
  return Tuning(planned, options, device, measure).run();
}

std::string tuning_text(const TuningResult& result) {
  std::string text;
  for (const TunedKernel& kernel : result.kernels) {
    text += kernel.kernel + "\n";
    for (const auto& [candidate, time] : kernel.microseconds)
      text += fmt::format("  {:>10.2f} us  {}{}\n", time, candidate, candidate == kernel.choice ? "  <- kept" : "");
  }
  for (const std::string& refused : result.refused) text += refused + "\n";
  if (result.kernels.empty()) text += "no kernel of this model can go in several ways\n";
  return text;
}

}  // namespace fusec
