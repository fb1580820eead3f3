// Matches a group of nodes with one cuBLASLt matmul: its operands, their layouts, and its epilogue. The match reads the
// kernel that the group is lowered to (schedule/lowering/lower_group). Permutes, views and slices of operands are then
// part of the loads' indices, and an index that is linear in the axes is a strided matrix.
//
//   h[i, j] = gelu(sum_k x[i, k] * w[j, k] + bias[j])       m = columns of h, n = rows of h, k
//
// cuBLASLt's matrices are column-major: a row-major h[i, j] is an m x n matrix with row j and column i. So a is the
// operand that depends on j (w, transposed: k has stride 1), b the one that depends on i (x), and a bias along j runs
// along cuBLASLt's rows. The match leaves out what cuBLASLt computes differently from the graph (cublaslt_support
// checks dtypes and sizes):
//
//   - its GELU is the tanh form, so the erf form is not matched
//   - its ReLU returns 0 for NaN, as where(x > 0, x, 0) does; relu, maximum and clamp return NaN and are not matched
//   - float32 is computed in float32, never in tf32
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "schedule/target/target.h"

namespace fusec {

// A column-major matrix: element (r, c) of batch b is `offset + r + c * leading + b * batch_stride` elements after the
// start of the value.
struct CublasLtMatrix {
  ValueId value = kNone;
  DType dtype = DType::kFloat32;
  IndexExpr offset = 0, rows = 0, columns = 0, leading = 0, batch_stride = 0;
  bool transposed = false;  // the matmul uses the transpose
  int alignment = 16;       // bytes, proven for the first element of every batch
};

enum class CublasLtEpilogue : std::uint8_t { kIdentity, kRelu, kGeluTanh };
enum class CublasLtCompute : std::uint8_t { kFloat32, kFloat64, kInt32 };

// d = activation(alpha * a_scale * b_scale * a @ b + beta * c + bias), with the bias along the rows of d. `aux`, if
// set, receives the activation's argument in the layout of d. Each scale is one number; with `outer_scales` a_scale has
// one per row of d and b_scale one per column.
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
  std::string why_not;  // "" if there is a call
};

// `nodes` are in topological order; `outputs` are the values that others need.
CublasLtMatch find_cublaslt_call(const Graph& graph, const std::vector<NodeId>& nodes,
                                 const std::vector<ValueId>& outputs, const Target& target, bool round_intermediates);

// Returns what the call reads, in the argument order of the host code and the emulator: those of a, b, c, bias and
// scales that are set. writes_of returns d, then aux if set.
std::vector<ValueId> reads_of(const CublasLtCall& call);
std::vector<ValueId> writes_of(const CublasLtCall& call);

// Returns the size of the call's workspace as NVIDIA recommends for the architecture.
std::int64_t cublaslt_workspace_bytes(const Target& target);

}  // namespace fusec
