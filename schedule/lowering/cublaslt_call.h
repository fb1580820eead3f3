// A group of nodes as one matrix product of cuBLASLt: which operands it has, how they lie in memory, what is done to
// the product before it is stored. The group's kernel (schedule/lowering/lower_group) is read: whatever was permuted,
// viewed or cut before the product is by then part of a load's index, and an index that is linear in the axes is a
// matrix with a stride.
//
//   h[i, j] = gelu(sum_k x[i, k] * w[j, k] + bias[j])       m = columns of h, n = rows of h, k
//
// cuBLASLt's matrices are column-major; a row-major h[i, j] is its m x n matrix of rows j and columns i. So a is the
// factor that depends on j (w, transposed: k is its unit stride), b the one that depends on i (x), and a bias along j
// is its bias along rows. Nothing is delegated that cuBLASLt would compute otherwise than the graph says:
//
//   - its GELU is the tanh form; the erf form is not delegated
//   - its ReLU answers 0 for NaN, as where(x > 0, x, 0) does; relu, maximum and clamp answer NaN, and are not delegated
//   - float32 is computed in float32, never in tf32
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "schedule/target/target.h"

namespace fusec {

// A matrix in memory, column-major: element (r, c) of batch b is `offset + r + c * leading + b * batch_stride`
// elements behind the beginning of the value.
struct CublasLtMatrix {
  ValueId value = kNone;
  DType dtype = DType::kFloat32;
  IndexExpr offset = 0, rows = 0, columns = 0, leading = 0, batch_stride = 0;
  bool transposed = false;  // the product takes its transpose
  int alignment = 16;       // bytes: proven of every batch's first element
};

enum class CublasLtEpilogue : std::uint8_t { kIdentity, kRelu, kGeluTanh };
enum class CublasLtCompute : std::uint8_t { kFloat32, kFloat64, kInt32 };

// d = activation(alpha * a_scale * b_scale * a @ b + beta * c + bias), the bias along the rows of d; `aux`, where it is
// there, is what stands inside of the activation, and lies as d does. The scales are one number each, or `outer`: one
// for each row of d (a_scale) and one for each column (b_scale).
struct CublasLtCall {
  CublasLtMatrix a, b, d;
  std::optional<CublasLtMatrix> c;
  IndexExpr m = 0, n = 0, k = 0, batch = 1;
  double alpha = 1, beta = 0;
  ValueId bias = kNone;
  DType bias_dtype = DType::kFloat32;
  IndexExpr bias_offset = 0;  // elements
  ValueId a_scale = kNone, b_scale = kNone, aux = kNone;
  bool outer_scales = false;
  CublasLtEpilogue activation = CublasLtEpilogue::kIdentity;
  CublasLtCompute compute = CublasLtCompute::kFloat32;
};

struct CublasLtMatch {
  std::optional<CublasLtCall> call;
  std::string why_not;  // else
};

// The nodes in topological order; `outputs` are the values that others need.
CublasLtMatch find_cublaslt_call(const Graph& graph, const std::vector<NodeId>& nodes,
                                 const std::vector<ValueId>& outputs, const Target& target, bool round_intermediates);

// What the call is given, in the order in which host part and emulator pass it: a, b, c, bias and scales, as far as
// they are there; and what it writes: d, then aux.
std::vector<ValueId> reads_of(const CublasLtCall& call);
std::vector<ValueId> writes_of(const CublasLtCall& call);

// Memory for the call's own use: what NVIDIA recommends for the architecture.
std::int64_t cublaslt_workspace_bytes(const Target& target);

}  // namespace fusec
