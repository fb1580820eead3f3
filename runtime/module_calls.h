// Resolves calls of a compiled model: checks the tensors against the manifest and computes all sizes from their shapes.
// Results are cached for later calls with the same shapes.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "runtime/read_manifest.h"
#include "runtime/resolve_steps.h"

namespace fusec {

struct CallTensor {
  std::string_view dtype;
  std::span<const std::int64_t> shape;
};

struct ResolvedCall {
  std::vector<std::int64_t> symbols;
  ResolvedPlan plan;
  std::vector<std::vector<std::int64_t>> result_shapes;
};

class ModuleCalls {
 public:
  explicit ModuleCalls(const ManifestModel& model) : model_(model) {}

  // Thread-safe. Throws Error(kInput) if a tensor is not as declared or sizes contradict each other.
  std::shared_ptr<const ResolvedCall> resolve(std::span<const CallTensor> arguments);
  // Throws Error(kInput) if a result tensor has a wrong dtype or shape. Results in an input's memory are not checked.
  void require_results(const ResolvedCall& call, std::span<const CallTensor> results) const;

 private:
  ResolvedCall resolved(std::vector<std::int64_t> symbols) const;

  const ManifestModel& model_;
  std::mutex mutex_;
  std::map<std::vector<std::int64_t>, std::shared_ptr<const ResolvedCall>> calls_;  // by the symbols' values
};

}  // namespace fusec
