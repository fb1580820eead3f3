// How long cuBLASLt takes for a product, predicted as kernels of our own are (schedule/cost/cost_model.h): the library
// at its best, with every multiprocessor busy and each matrix through memory once.
#pragma once

#include "schedule/cost/cost_model.h"
#include "schedule/lowering/cublaslt_call.h"

namespace fusec {

Prediction predict(const Graph& graph, const CublasLtCall& call, const Target& target);

// Of a kernel that reads these bytes, does little with them and writes others: what reads a call's result apart from
// it.
Prediction predict_pass(double read, double written, const Target& target);

}  // namespace fusec
