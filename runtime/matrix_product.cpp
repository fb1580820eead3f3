#include "runtime/matrix_product.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "ir/error.h"
#include "ir/float_formats.h"

namespace fusec {
namespace {

std::int64_t width_of(DType dtype) {
  return bits(dtype) / 8;
}

double element(std::span<const std::byte> bytes, std::int64_t at, DType dtype) {
  const auto width = static_cast<std::size_t>(width_of(dtype));
  std::uint64_t stored = 0;
  std::memcpy(&stored, bytes.data() + static_cast<std::size_t>(at) * width, width);
  return is_float(dtype) ? decode_float(dtype, stored)
                         : static_cast<double>(wrap_integer(dtype, static_cast<std::int64_t>(stored)));
}

void store(std::span<std::byte> bytes, std::int64_t at, DType dtype, double value) {
  const auto width = static_cast<std::size_t>(width_of(dtype));
  const std::uint64_t stored =
      is_float(dtype) ? encode_float(dtype, value) : static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
  std::memcpy(bytes.data() + static_cast<std::size_t>(at) * width, &stored, width);
}

// The bytes of all batches of a matrix.
std::span<std::byte> all_of(const MatrixInNumbers& matrix, std::int64_t batch, const BytesAt& bytes_at, bool written) {
  const std::int64_t count = (batch - 1) * matrix.batch_stride + (matrix.columns - 1) * matrix.leading + matrix.rows;
  return bytes_at(matrix.address, count * width_of(matrix.dtype), written);
}

// One batch of an operand after transposition, as row-major values.
std::vector<double> taken(std::span<const std::byte> bytes, const MatrixInNumbers& matrix, std::int64_t batch,
                          std::int64_t rows, std::int64_t columns) {
  std::vector<double> values(static_cast<std::size_t>(rows * columns));
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < columns; ++c) {
      const std::int64_t at = matrix.transposed ? c + r * matrix.leading : r + c * matrix.leading;
      values[static_cast<std::size_t>(r * columns + c)] =
          element(bytes, batch * matrix.batch_stride + at, matrix.dtype);
    }
  return values;
}

double activated(double x, CublasLtEpilogue activation) {
  switch (activation) {
    case CublasLtEpilogue::kIdentity:
      return x;
    case CublasLtEpilogue::kRelu:
      return x > 0 ? x : 0;  // 0 for NaN
    case CublasLtEpilogue::kGeluTanh:
      return 0.5 * x * (1 + std::tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x)));
  }
  throw InternalError("unknown activation");
}

// The scale of each row or column: one each (`outer`) or one for all; 1 without scales.
std::vector<double> scales_at(std::uint64_t address, bool outer, std::int64_t count, const BytesAt& bytes_at) {
  std::vector<double> scales(static_cast<std::size_t>(count), 1.0);
  if (address == 0) return scales;
  const std::span<const std::byte> bytes = bytes_at(address, outer ? 4 * count : 4, false);
  for (std::int64_t i = 0; i < count; ++i)
    scales[static_cast<std::size_t>(i)] = element(bytes, outer ? i : 0, DType::kFloat32);
  return scales;
}

MatrixInNumbers in_numbers(const CublasLtMatrix& view, const std::function<std::int64_t(const IndexExpr&)>& value,
                           std::uint64_t address) {
  return {.dtype = view.dtype,
          .address = address + static_cast<std::uint64_t>(value(view.offset) * width_of(view.dtype)),
          .rows = value(view.rows),
          .columns = value(view.columns),
          .leading = value(view.leading),
          .batch_stride = value(view.batch_stride),
          .transposed = view.transposed};
}

}  // namespace

MatrixProduct in_numbers(const CublasLtCall& call, const std::function<std::int64_t(const IndexExpr&)>& value,
                         std::span<const std::uint64_t> addresses, std::int64_t workspace_bytes) {
  MatrixProduct p;
  std::size_t next = 0;
  const auto address = [&] { return addresses[next++]; };
  p.a = in_numbers(call.a, value, address());
  p.b = in_numbers(call.b, value, address());
  if (call.c) p.c = in_numbers(*call.c, value, address());
  p.has_bias = call.bias != kNone;
  p.bias_dtype = p.has_bias ? call.bias_dtype : call.d.dtype;
  if (p.has_bias) p.bias = address() + static_cast<std::uint64_t>(value(call.bias_offset) * width_of(call.bias_dtype));
  if (call.a_scale != kNone) p.a_scale = address();
  if (call.b_scale != kNone) p.b_scale = address();
  p.outer_scales = call.outer_scales;
  p.d = in_numbers(call.d, value, address());
  if (!call.c) p.c = p.d;
  p.has_aux = call.aux != kNone;
  if (p.has_aux) p.aux = address();
  p.workspace = address();
  p.workspace_bytes = workspace_bytes;
  p.batch = value(call.batch);
  p.compute = call.compute;
  const bool narrow = call.compute == CublasLtCompute::kFloat32;
  p.alpha = narrow ? static_cast<double>(static_cast<float>(call.alpha)) : call.alpha;
  p.beta = narrow ? static_cast<double>(static_cast<float>(call.beta)) : call.beta;
  p.activation = call.activation;
  return p;
}

void multiply(const MatrixProduct& p, const BytesAt& bytes_at) {
  const std::int64_t m = p.d.rows, n = p.d.columns, k = p.a.transposed ? p.a.rows : p.a.columns;
  const std::span<const std::byte> a = all_of(p.a, p.batch, bytes_at, false), b = all_of(p.b, p.batch, bytes_at, false);
  const std::span<std::byte> d = all_of(p.d, p.batch, bytes_at, true);
  std::span<const std::byte> c, bias;
  std::span<std::byte> aux;
  if (p.beta != 0) c = all_of(p.c, p.batch, bytes_at, false);
  if (p.has_bias) bias = bytes_at(p.bias, m * width_of(p.bias_dtype), false);
  if (p.has_aux) {
    MatrixInNumbers before = p.d;
    before.address = p.aux;
    aux = all_of(before, p.batch, bytes_at, true);
  }
  const std::vector<double> a_scales = scales_at(p.a_scale, p.outer_scales, m, bytes_at),
                            b_scales = scales_at(p.b_scale, p.outer_scales, n, bytes_at);
  for (std::int64_t batch = 0; batch < p.batch; ++batch) {
    const std::vector<double> left = taken(a, p.a, batch, m, k), right = taken(b, p.b, batch, k, n);
    std::vector<double> sums(static_cast<std::size_t>(n));
    for (std::int64_t row = 0; row < m; ++row) {
      std::fill(sums.begin(), sums.end(), 0.0);
      for (std::int64_t depth = 0; depth < k; ++depth) {
        const double factor = left[static_cast<std::size_t>(row * k + depth)];
        const double* const line = right.data() + depth * n;
        for (std::int64_t column = 0; column < n; ++column)
          sums[static_cast<std::size_t>(column)] += factor * line[column];
      }
      for (std::int64_t column = 0; column < n; ++column) {
        double value = p.alpha * a_scales[static_cast<std::size_t>(row)] * b_scales[static_cast<std::size_t>(column)] *
                       sums[static_cast<std::size_t>(column)];
        if (p.beta != 0) value += p.beta * element(c, batch * p.c.batch_stride + row + column * p.c.leading, p.c.dtype);
        if (p.has_bias) value += element(bias, row, p.bias_dtype);
        const std::int64_t at = batch * p.d.batch_stride + row + column * p.d.leading;
        if (p.has_aux) store(aux, at, p.d.dtype, value);
        store(d, at, p.d.dtype, activated(value, p.activation));
      }
    }
  }
}

std::string to_string(const MatrixProduct& p) {
  const auto shown = [](const MatrixInNumbers& x) {
    return fmt::format("{}{} {}x{} leading {} stride {} at {:#x}", x.transposed ? "transposed " : "", name(x.dtype),
                       x.rows, x.columns, x.leading, x.batch_stride, x.address);
  };
  return fmt::format(
      "a product: a {}; b {}; c {}; d {}; batches {}; alpha {} beta {}; epilogue {}, bias {:#x}, aux {:#x}, {}scales "
      "{:#x} {:#x}; compute {}; workspace {:#x} of {} bytes",
      shown(p.a), shown(p.b), shown(p.c), shown(p.d), p.batch, p.alpha, p.beta, static_cast<int>(p.activation), p.bias,
      p.aux, p.outer_scales ? "outer " : "", p.a_scale, p.b_scale, static_cast<int>(p.compute), p.workspace,
      p.workspace_bytes);
}

}  // namespace fusec
