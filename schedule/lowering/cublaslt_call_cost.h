// Predicts the time of a cuBLASLt matmul with the cost model of our own kernels (schedule/cost/cost_model.h). It
// assumes the library at its best: all multiprocessors busy, and each matrix read or written once.
#pragma once

#include "schedule/cost/cost_model.h"
#include "schedule/lowering/cublaslt_call.h"

namespace fusec {

Prediction predict(const Graph& graph, const CublasLtCall& call, const Target& target);

// Predicts a kernel that moves these bytes and computes little, such as a separate epilogue of a matmul.
Prediction predict_pass(double read, double written, const Target& target);

}  // namespace fusec
