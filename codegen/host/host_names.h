// Names in the host part: fields of M_args, sizes over the symbols, and pointers to buffers.
#pragma once

#include <string>
#include <vector>

#include "codegen/expr/identifiers.h"
#include "codegen/launch/launch_plan.h"
#include "ir/graph.h"

namespace fusec {

class HostNames {
 public:
  HostNames(const Graph& graph, const LaunchPlan& launch);

  const std::string& model() const { return launch_.identifier; }                     // M
  const std::string& field(std::size_t argument) const { return fields_[argument]; }  // of LaunchPlan::arguments
  // "" for a scalar, which has no shape
  const std::string& shape(std::size_t argument) const { return shapes_[argument]; }
  const std::string& result(std::size_t i) const { return results_[i]; }  // of LaunchPlan::results
  const std::string& symbol(std::size_t i) const { return symbols_[i]; }
  bool has_arguments() const { return !fields_.empty() || !results_.empty(); }

  std::string field_of(ValueId argument) const;
  const Alias* alias_of(ValueId result) const;
  std::string type_text(ValueId v) const;

  // The size as an expression; `n`, the array of symbol values, must be in scope.
  std::string sized(const IndexExpr& e) const;
  // The buffer as an expression; `work`, `ready`, `args` and `ctx` must be in scope.
  std::string pointer(const BufferRef& buffer, bool written) const;

 private:
  const Graph& graph_;
  const LaunchPlan& launch_;
  UniqueNames names_;
  std::vector<std::string> fields_, shapes_, results_, symbols_;
};

}  // namespace fusec
