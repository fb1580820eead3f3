// Matrix products that cuBLASLt computes, in the host part: descriptors made once by M_create, algorithms picked there
// (where sizes are known only at launch, by the first launch with them), calls that neither allocate nor wait.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/launch/launch_plan.h"
#include "ir/graph.h"

namespace fusec {

// What one call is given, as C expressions: pointers in the order of LaunchStep::arguments.
struct MatrixCallOperands {
  std::vector<std::string> pointers;
  std::string refused;  // what M_error says where the library refuses: a C string literal
};

class MatrixCallsText {
 public:
  // `sized` writes a size as a C expression of the symbols at launch.
  MatrixCallsText(const Graph& graph, const LaunchPlan& launch, std::function<std::string(const IndexExpr&)> sized);

  bool empty() const { return products_.empty(); }
  std::string types() const;           // before the context
  std::string context_fields() const;  // in it
  std::string functions() const;       // after it
  std::string create() const;          // lines of M_create: `made`, `status`
  std::string call(const LaunchStep& step, const MatrixCallOperands& operands) const;  // lines of M_launch

 private:
  // Calls of one kind and of the same sizes share a descriptor: layers that repeat.
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

// As cuBLASLt names them: "CUBLASLT_EPILOGUE_GELU_BIAS", "CUBLAS_COMPUTE_32F", "CUDA_R_32F".
std::string epilogue_name(const CublasLtCall& call);
std::string compute_type_name(const CublasLtCall& call);
std::string scale_type_name(const CublasLtCall& call);

}  // namespace fusec
