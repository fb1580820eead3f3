// How long cuBLASLt takes for a product, predicted as kernels of our own are (analysis/cost_model.h): the library at
// its best, with every multiprocessor busy and each matrix through memory once.
#pragma once

#include "analysis/cost_model.h"
#include "analysis/matrix_call.h"

namespace fusec {

Prediction predict(const Graph& graph, const MatrixCall& call, const Target& target);

// Of a kernel that reads these bytes, does little with them and writes others: what reads a call's result apart from
// it.
Prediction predict_pass(double read, double written, const Target& target);

}  // namespace fusec
