#include "schedule/lowering/cublaslt_call_cost.h"

#include "ir/type.h"

namespace fusec {
namespace {

constexpr double kInFlightBytes = 32768;  // bytes of loads in flight per block of a pipelined kernel

Work filling(double read, double written, const Target& target) {
  return {.read = read, .written = written, .blocks = 8.0 * target.multiprocessors, .in_flight_bytes = kInFlightBytes};
}

}  // namespace

Prediction predict(const Graph& graph, const CublasLtCall& call, const Target& target) {
  const auto at_hint = [&](const IndexExpr& e) { return static_cast<double>(value_at_hint(e, graph.symbols)); };
  const auto bytes = [&](const CublasLtMatrix& view) {
    const double batches = view.batch_stride.is(0) ? 1 : at_hint(call.batch);
    return batches * at_hint(view.rows) * at_hint(view.columns) * bits(view.dtype) / 8;
  };
  double read = bytes(call.a) + bytes(call.b) + (call.c ? bytes(*call.c) : 0);
  if (call.bias != kNone) read += at_hint(call.m) * bits(call.bias_dtype) / 8;
  for (const ValueId scale : {call.a_scale, call.b_scale})
    if (scale != kNone) read += static_cast<double>(bytes_at_hint(graph.tensor(scale), graph.symbols));
  Work work = filling(read, bytes(call.d) * (call.aux == kNone ? 1 : 2), target);
  const double operations = 2 * at_hint(call.m) * at_hint(call.n) * at_hint(call.k) * at_hint(call.batch);
  if (call.compute == CublasLtCompute::kFloat64)
    work.float64 = operations;
  else if (bits(call.a.dtype) == 32)
    work.float32 = operations;
  else
    work.tensor = operations * (bits(call.a.dtype) == 8 ? target.float16_rate / target.float8_rate : 1);
  Prediction prediction = predict(work, target);
  prediction.flops = operations;
  return prediction;
}

Prediction predict_pass(double read, double written, const Target& target) {
  return predict(filling(read, written, target), target);
}

}  // namespace fusec
