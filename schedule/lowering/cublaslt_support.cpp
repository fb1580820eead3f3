#include "schedule/lowering/cublaslt_support.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>

#include "ir/spelling.h"
#include "ir/type.h"

namespace fusec {
namespace {

bool is_float8(DType d) {
  return d == DType::kFloat8E4M3FN || d == DType::kFloat8E5M2;
}

bool has_product(DType a, DType b, DType d) {
  const auto gives = [&](std::initializer_list<DType> results) {
    return std::ranges::find(results, d) != results.end();
  };
  switch (a) {
    case DType::kFloat16:
    case DType::kBFloat16:
      return a == b && gives({a, DType::kFloat32});
    case DType::kFloat32:
    case DType::kFloat64:
      return a == b && gives({a});
    case DType::kInt8:
      return a == b && gives({DType::kInt32});
    case DType::kFloat8E4M3FN:
    case DType::kFloat8E5M2:
      return is_float8(b) && (a == DType::kFloat8E4M3FN || b == DType::kFloat8E4M3FN) &&
             gives({DType::kFloat16, DType::kBFloat16, DType::kFloat32});
    default:
      return false;
  }
}

std::string why_no_dtypes(const CublasLtCall& call, const Graph& graph, const Target& target) {
  const DType a = call.a.dtype, b = call.b.dtype, d = call.d.dtype;
  const auto shown = [&](ValueId v) { return in_quotes(graph.value(v).name); };
  const bool float8 = multiplies_float8(call);
  if (!has_product(a, b, d))
    return fmt::format("cuBLASLt has no product of {} and {} that gives {}", name(a), name(b), name(d));
  if (float8 && target.compute_capability < 89)
    return fmt::format("cuBLASLt multiplies float8 from sm_89 on, and this is for {}", target.arch);
  const bool plain = call.activation == CublasLtEpilogue::kIdentity && call.bias == kNone;
  if (call.compute != CublasLtCompute::kFloat32 && !plain)
    return fmt::format("cuBLASLt has no epilogue for {}", name(d));
  if (call.compute == CublasLtCompute::kInt32 && (call.c || call.alpha != 1))
    return "cuBLASLt's integer product is taken as it is";
  if (float8 && call.activation != CublasLtEpilogue::kIdentity) return "no epilogue with an activation for float8";
  if (call.c && call.c->dtype != d) return fmt::format("{} is not of the result's dtype", shown(call.c->value));
  const DType bias = float8 && d == DType::kFloat32 ? DType::kBFloat16 : d;
  if (call.bias != kNone && call.bias_dtype != bias)
    return fmt::format("the bias {} is not of dtype {}", shown(call.bias), name(bias));
  return "";
}

// Checks what tensor cores require of 8-bit operands: `multiple` is of their sizes, `alignment` in bytes.
std::string why_no_layout(const CublasLtCall& call, const Graph& graph, std::int64_t multiple, int alignment) {
  const CublasLtMatrix &a = call.a, &b = call.b;
  const std::string_view dtype = name(a.dtype);
  if (!a.transposed || b.transposed)
    return fmt::format("cuBLASLt multiplies {} where both factors run along the inner dimension", dtype);
  for (const IndexExpr& size : {call.m, call.k, a.leading, b.leading})
    if (!proves_multiple_of(size, multiple, graph.bounds()))
      return fmt::format("cuBLASLt multiplies {} in sizes of a multiple of {}", dtype, multiple);
  if (a.alignment < alignment || b.alignment < alignment)
    return fmt::format("cuBLASLt multiplies {} that is aligned to {} bytes", dtype, alignment);
  return "";
}

std::string why_no_sizes(const CublasLtCall& call, const Graph& graph) {
  const Range k = range_of(call.k, graph.bounds());
  if (k.min < 1) return "its inner dimension may be 0";
  if (call.aux != kNone) {
    if (!call.batch.is(1)) return "cuBLASLt stores no value before an activation of batches";
    if (!proves_multiple_of(call.m, 8, graph.bounds()))
      return "cuBLASLt stores a value before its activation in rows of a multiple of 8";
  }
  if (multiplies_float8(call)) return why_no_layout(call, graph, 16, 16);
  if (call.a.dtype != DType::kInt8) return "";
  // A longer int8 sum may overflow int32, where the graph's wraps.
  if (k.max > 131071) return "its sums may leave int32";
  return why_no_layout(call, graph, 4, 4);
}

}  // namespace

bool multiplies_float8(const CublasLtCall& call) {
  return is_float8(call.a.dtype);
}

CublasLtCompute cublaslt_compute(DType operands) {
  if (operands == DType::kFloat64) return CublasLtCompute::kFloat64;
  return operands == DType::kInt8 ? CublasLtCompute::kInt32 : CublasLtCompute::kFloat32;
}

std::string why_unsupported(const CublasLtCall& call, const Graph& graph, const Target& target) {
  std::string why = why_no_dtypes(call, graph, target);
  return why.empty() ? why_no_sizes(call, graph) : why;
}

}  // namespace fusec
