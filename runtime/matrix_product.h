// A product as cuBLASLt is asked for it, in numbers: what the launch plan says, what the compiled host part passed to
// the library's stand-in, and what the emulator computes in the library's place.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "ir/dtype.h"
#include "schedule/lowering/cublaslt_call.h"

namespace fusec {

// As cuBLASLt has it: column-major, as stored.
struct MatrixInNumbers {
  DType dtype = DType::kFloat32;
  std::uint64_t address = 0;
  std::int64_t rows = 0, columns = 0, leading = 0, batch_stride = 0;
  bool transposed = false;
  bool operator==(const MatrixInNumbers&) const = default;
};

struct MatrixProduct {
  MatrixInNumbers a, b, c, d;  // c is d where nothing is added
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

// The call with its sizes put in; addresses are where `address` says that values begin (those of call.a, call.b, ...
// in the order of reads_of, writes_of and the workspace).
MatrixProduct in_numbers(const CublasLtCall& call, const std::function<std::int64_t(const IndexExpr&)>& value,
                         std::span<const std::uint64_t> addresses, std::int64_t workspace_bytes);

// The bytes at an address: `count` of them, of which `written` says whether they are stored. Throws where they are no
// part of a buffer.
using BytesAt = std::function<std::span<std::byte>(std::uint64_t address, std::int64_t count, bool written)>;

// Computes it, in double (integers exactly), and rounds to the dtype of d.
void multiply(const MatrixProduct& product, const BytesAt& bytes_at);

// "m 64 n 32 k 16 of bfloat16 ...", for messages.
std::string to_string(const MatrixProduct& product);

}  // namespace fusec
