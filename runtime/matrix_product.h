// One cuBLASLt matrix product with all sizes as numbers. The launch plan gives the expected call, the compiled host
// part passes the actual one to the library's stand-in, and the emulator computes it in the library's place.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "ir/dtype.h"
#include "schedule/lowering/cublaslt_call.h"

namespace fusec {

// A matrix as cuBLASLt describes it: column-major, with the extents as stored (before transposition).
struct MatrixInNumbers {
  DType dtype = DType::kFloat32;
  std::uint64_t address = 0;
  std::int64_t rows = 0, columns = 0, leading = 0, batch_stride = 0;
  bool transposed = false;
  bool operator==(const MatrixInNumbers&) const = default;
};

struct MatrixProduct {
  MatrixInNumbers a, b, c, d;  // c equals d if no matrix is added
  std::int64_t batch = 1;
  CublasLtCompute compute = CublasLtCompute::kFloat32;
  double alpha = 1, beta = 0;
  bool has_bias = false, has_aux = false;
  CublasLtEpilogue activation = CublasLtEpilogue::kIdentity;
  DType bias_dtype = DType::kFloat32;
  std::uint64_t bias = 0, a_scale = 0, b_scale = 0, aux = 0;  // addresses; 0: none
  bool outer_scales = false;
  std::uint64_t workspace = 0;
  std::int64_t workspace_bytes = 0;
  bool operator==(const MatrixProduct&) const = default;
};

// The call with its sizes put in. `addresses` holds the addresses of the values in the order of reads_of(call), then
// writes_of(call), then the workspace.
MatrixProduct in_numbers(const CublasLtCall& call, const std::function<std::int64_t(const IndexExpr&)>& value,
                         std::span<const std::uint64_t> addresses, std::int64_t workspace_bytes);

// Returns `count` bytes at an address; `written` tells whether they will be stored to. Throws if they are not inside a
// buffer.
using BytesAt = std::function<std::span<std::byte>(std::uint64_t address, std::int64_t count, bool written)>;

// Computes the product in double (integers exactly) and rounds it to the dtype of d.
void multiply(const MatrixProduct& product, const BytesAt& bytes_at);

// "m 64 n 32 k 16 of bfloat16 ...", for messages.
std::string to_string(const MatrixProduct& product);

}  // namespace fusec
