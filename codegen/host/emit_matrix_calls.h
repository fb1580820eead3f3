// Emits cuBLASLt matrix products in the host part. M_create makes the descriptors once. It also picks the algorithms;
// for sizes known only at launch, the first launch with those sizes picks. The calls neither allocate nor wait.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/launch/launch_plan.h"
#include "ir/graph.h"

namespace fusec {

// The arguments of one call, as C expressions. `pointers` has the order of LaunchStep::arguments.
struct MatrixCallOperands {
  std::vector<std::string> pointers;
  std::string refused;  // text for M_error if the library fails: a C string literal
};

class MatrixCallsText {
 public:
  // `sized` prints a size as a C expression over the symbols at launch.
  MatrixCallsText(const Graph& graph, const LaunchPlan& launch, std::function<std::string(const IndexExpr&)> sized);

  bool empty() const { return products_.empty(); }
  std::string types() const;           // before the context type
  std::string context_fields() const;  // fields of the context
  std::string functions() const;       // after the context type
  std::string create() const;          // lines of M_create; they use its variables `made` and `status`
  std::string call(const LaunchStep& step, const MatrixCallOperands& operands) const;  // lines of M_launch

 private:
  // Calls of one kind and equal sizes (repeated layers) share a descriptor.
  struct Product {
    std::string kind, sizes;
    bool known = false;  // all sizes are constants: M_create picks the algorithm
    bool outer_scales = false;
    bool operator==(const Product&) const = default;
  };
  Product product_of(const CublasLtCall& call) const;
  std::string with_identifier(std::string_view text) const;

  const Graph& graph_;
  const std::string& m_;
  std::function<std::string(const IndexExpr&)> sized_;
  std::vector<Product> products_;
  std::int64_t workspace_bytes_ = 0;
};

// The cuBLASLt constants: "CUBLASLT_EPILOGUE_GELU_BIAS", "CUBLAS_COMPUTE_32F", "CUDA_R_32F".
std::string epilogue_name(const CublasLtCall& call);
std::string compute_type_name(const CublasLtCall& call);
std::string scale_type_name(const CublasLtCall& call);

}  // namespace fusec
