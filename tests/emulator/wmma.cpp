// wmma: fragments loaded in each layout, multiplied and stored, against the product worked out element by element.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <random>

#include "emulator/harness.h"
#include "runtime/emulator/numerics.h"

using namespace fusec::emulator;
using namespace fusec::emulator::testing;

namespace {

struct Case {
  int m, n, k;
  std::string a, d;  // types
  int a_registers, b_registers, d_registers;
  bool a_column_major = false, b_column_major = false, d_column_major = false;
};

int bytes_of(const std::string& type) {
  return type == "f64" ? 8 : type == "f16" || type == "bf16" ? 2 : type == "s8" || type == "u8" ? 1 : 4;
}

std::uint64_t encode(const std::string& type, int value) {
  if (type == "f64") return bits_of(double(value));
  if (type == "f32" || type == "tf32") return bits_of(float(value));
  if (type == "bf16") return bits_of(float(value)) >> 16;
  if (type == "f16") return float_to_half(float(value));
  return static_cast<std::uint32_t>(value);
}

double decode(const std::string& type, std::uint64_t raw) {
  if (type == "f64") {
    double value;
    std::memcpy(&value, &raw, 8);
    return value;
  }
  if (type == "f32") return static_cast<double>(float_of(static_cast<std::uint32_t>(raw)));
  if (type == "f16") return static_cast<double>(half_to_float(static_cast<std::uint16_t>(raw)));
  return static_cast<std::int32_t>(raw);
}

// Element (row, column) of a matrix of `rows` x `columns` at `begin`, with 16 elements more than needed in each line.
std::size_t place(std::size_t begin, int rows, int columns, bool column_major, int row, int column, int size) {
  const int at = column_major ? column * (rows + 16) + row : row * (columns + 16) + column;
  return begin + static_cast<std::size_t>(at * size);
}

void check(const Case& c) {
  CAPTURE(fmt::format("m{}n{}k{} {} {} {}{}{}", c.m, c.n, c.k, c.a, c.d, c.a_column_major, c.b_column_major,
                      c.d_column_major));
  const int in_size = bytes_of(c.a), out_size = bytes_of(c.d);
  constexpr std::size_t kPart = 16384;
  std::vector<std::uint32_t> in(3 * kPart / 4);
  auto* bytes = reinterpret_cast<std::byte*>(in.data());
  std::mt19937 random(5);
  const auto draw = [&] { return c.a == "u8" ? static_cast<int>(random() % 9) : static_cast<int>(random() % 9) - 4; };
  std::vector<double> a(static_cast<std::size_t>(c.m * c.k)), b(static_cast<std::size_t>(c.k * c.n));
  const auto fill = [&](std::vector<double>& values, std::size_t begin, int rows, int columns, bool column_major) {
    for (int r = 0; r < rows; ++r) {
      for (int q = 0; q < columns; ++q) {
        const int value = draw();
        values[static_cast<std::size_t>(r * columns + q)] = value;
        const std::uint64_t raw = encode(c.a, value);
        std::memcpy(bytes + place(begin, rows, columns, column_major, r, q, in_size), &raw,
                    static_cast<std::size_t>(in_size));
      }
    }
  };
  fill(a, 0, c.m, c.k, c.a_column_major);
  fill(b, kPart, c.k, c.n, c.b_column_major);
  for (int r = 0; r < c.m; ++r) {
    for (int q = 0; q < c.n; ++q) {
      const std::uint64_t raw = encode(c.d, r - q);
      std::memcpy(bytes + place(2 * kPart, c.m, c.n, c.d_column_major, r, q, out_size), &raw,
                  static_cast<std::size_t>(out_size));
    }
  }
  const auto list = [](const char* letter, int count) {
    std::string text;
    for (int i = 0; i < count; ++i) text += fmt::format("{}%{}{}", i == 0 ? "" : ", ", letter, i);
    return "{" + text + "}";
  };
  const auto layout = [](bool column_major) { return column_major ? "col" : "row"; };
  const auto stride = [](int rows, int columns, bool column_major) { return (column_major ? rows : columns) + 16; };
  const char* type = c.a == "f64" ? "b64" : "b32";
  const std::string shape = fmt::format("m{}n{}k{}", c.m, c.n, c.k);
  std::string body = fmt::format(".reg .{0} %wa<8>;\n.reg .{0} %wb<8>;\n.reg .{0} %wc<8>;\n", type);
  body += fmt::format("wmma.load.a.sync.aligned.{}.{}.global.{} {}, [%rin], {};\n", layout(c.a_column_major), shape,
                      c.a, list("wa", c.a_registers), stride(c.m, c.k, c.a_column_major));
  body += fmt::format("wmma.load.b.sync.aligned.{}.{}.{} {}, [%rin+{}], {};\n", layout(c.b_column_major), shape, c.a,
                      list("wb", c.b_registers), kPart, stride(c.k, c.n, c.b_column_major));
  body += fmt::format("wmma.load.c.sync.aligned.{}.{}.global.{} {}, [%rin+{}], {};\n", layout(c.d_column_major), shape,
                      c.d, list("wc", c.d_registers), 2 * kPart, stride(c.m, c.n, c.d_column_major));
  const std::string types = c.a == "f16" ? c.d + "." + c.d : c.d + "." + c.a + "." + c.a + "." + c.d;
  const std::string sums = list("wc", c.d_registers);
  body += fmt::format("wmma.mma.sync.aligned.{}.{}.{}.{} {}, {}, {}, {};\n", layout(c.a_column_major),
                      layout(c.b_column_major), shape, types, sums, list("wa", c.a_registers),
                      list("wb", c.b_registers), sums);
  body += fmt::format("wmma.store.d.sync.aligned.{}.{}.global.{} [%rout], {};\n", layout(c.d_column_major), shape, c.d,
                      sums);
  const RunResult result = run_body(body, in, static_cast<std::size_t>(c.m * c.n * out_size / 4));
  INFO(describe(result.report));
  REQUIRE(result.report.findings.empty());
  CHECK(result.report.counters.tensor_multiply_adds == static_cast<std::uint64_t>(c.m * c.n * c.k));
  const auto* out = reinterpret_cast<const std::byte*>(result.out.data());
  for (int r = 0; r < c.m; ++r) {
    for (int q = 0; q < c.n; ++q) {
      double wanted = r - q;
      for (int p = 0; p < c.k; ++p)
        wanted += a[static_cast<std::size_t>(r * c.k + p)] * b[static_cast<std::size_t>(p * c.n + q)];
      std::uint64_t raw = 0;
      std::memcpy(&raw, out + (c.d_column_major ? q * c.m + r : r * c.n + q) * out_size,
                  static_cast<std::size_t>(out_size));
      REQUIRE(decode(c.d, raw) == wanted);
    }
  }
}

}  // namespace

TEST_CASE("wmma is the product of its fragments") {
  for (bool turned : {false, true}) {
    for (const char* d : {"f32", "f16"}) {
      const int registers = std::string_view(d) == "f32" ? 8 : 4;
      check({16, 16, 16, "f16", d, 8, 8, registers, turned, !turned, turned});
      check({32, 8, 16, "f16", d, 8, 8, registers, turned, turned, !turned});
      check({8, 32, 16, "f16", d, 8, 8, registers, turned, turned, turned});
    }
    check({16, 16, 16, "bf16", "f32", 4, 4, 8, turned, !turned, turned});
    check({32, 8, 16, "bf16", "f32", 8, 2, 8, turned, turned, turned});
    check({8, 32, 16, "bf16", "f32", 2, 8, 8, turned, turned, !turned});
    check({16, 16, 8, "tf32", "f32", 4, 4, 8, turned, !turned, turned});
    check({8, 8, 4, "f64", "f64", 1, 1, 2, turned, !turned, turned});
    for (const char* a : {"s8", "u8"}) {
      check({16, 16, 16, a, "s32", 2, 2, 8, turned, !turned, turned});
      check({32, 8, 16, a, "s32", 4, 1, 8, turned, turned, turned});
      check({8, 32, 16, a, "s32", 1, 4, 8, turned, turned, !turned});
    }
  }
}

TEST_CASE("wmma reads within its bounds") {
  // The last row of a 16 x 16 matrix of halves with a stride of 32 begins at byte 960 and has 32 bytes.
  const auto load = [](std::size_t words) {
    return run_body(
        ".reg .b32 %wa<8>;\nwmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%wa0, %wa1, %wa2, %wa3, %wa4, %wa5, "
        "%wa6, "
        "%wa7}, [%rin], 32;\n",
        std::vector<std::uint32_t>(words), 1);
  };
  CHECK(load(248).report.findings.empty());
  CHECK(load(247).has(FindingKind::kOutOfBounds));
}
