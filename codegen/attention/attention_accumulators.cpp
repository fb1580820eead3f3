// Accumulators of attention on tensor cores, in named PTX registers that live from the loop over keys to the result.
// C++ variables would be operands of every statement and every branch that touches them, which costs a tenth of NVRTC's
// time.
#include <fmt/format.h>

#include <algorithm>

#include "codegen/attention/attention_emitter.h"
#include "codegen/expr/ptx_statement.h"

namespace fusec {

int AttentionEmitter::accumulator_count() const {
  return tiles_.m16_fragments * tiles_.columns / 2;
}

std::string AttentionEmitter::accumulator_register(int m16_fragment, int n8_tile, int i) const {
  return fmt::format("{}{}", kAccumulators, (m16_fragment * (tiles_.columns / 8) + n8_tile) * 4 + i);
}

void AttentionEmitter::declare_accumulators() {
  write_statement({.instructions = {fmt::format(".reg .f32 {}<{}>", kAccumulators, accumulator_count())}}, writer_);
}

void AttentionEmitter::clear_accumulators() {
  PtxStatement statement;
  for (int i = 0; i < accumulator_count(); ++i)
    statement.instructions.push_back(fmt::format("mov.f32 {}{}, 0f00000000", kAccumulators, i));
  write_statement(statement, writer_);
}

void AttentionEmitter::rescale_accumulators(const std::string& by) {
  PtxStatement statement;
  for (int r = 0; r < tiles_.thread_rows; ++r) {
    statement.operands.push_back(fmt::format("\"f\"({}[{}])", by, r));
    for (int m = 0; m < tiles_.columns / 4; ++m) {
      const std::string sum = accumulator_register(r / 2, m / 2, r % 2 * 2 + m % 2);
      statement.instructions.push_back(fmt::format("mul.f32 {0}, {0}, %{1}", sum, r));
    }
  }
  write_statement(statement, writer_);
}

// Multiplies the weights of 16 keys by their values, a few fragments of 16 columns per asm statement.
void AttentionEmitter::add_values_by_warp(const std::string& weight, const std::string& values) {
  const int all = tiles_.columns / 16, pieces = all % 4 == 0 ? 4 : all % 3 == 0 ? 3 : all % 2 == 0 ? 2 : 1;
  const std::string type = *form_.tensor_dtype == DType::kBFloat16 ? "bf16" : "f16";
  const int weights = 4 * tiles_.m16_fragments;
  for (int first = 0; first < all; first += pieces) {
    PtxStatement statement{.instructions = {fmt::format(".reg .b32 b<{}>", 4 * pieces)}, .scoped = true};
    for (int w = 0; w < weights; ++w)
      statement.operands.push_back(fmt::format("\"r\"({}[{}][{}])", weight, w / 4, w % 4));
    statement.operands.push_back(fmt::format("\"r\"({})", values));
    for (int p = 0; p < pieces; ++p)
      statement.instructions.push_back(
          fmt::format("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {{b{},b{},b{},b{}}}, [%{}+{}]", 4 * p, 4 * p + 1,
                      4 * p + 2, 4 * p + 3, weights, 32 * (first + p)));
    for (int i = 0; i < 2 * pieces * tiles_.m16_fragments; ++i) {
      const int n8_tile = i / tiles_.m16_fragments, s = i % tiles_.m16_fragments, b = n8_tile / 2 * 4 + n8_tile % 2;
      std::string sums;
      for (int k = 0; k < 4; ++k) sums += (k ? "," : "") + accumulator_register(s, 2 * first + n8_tile, k);
      statement.instructions.push_back(
          fmt::format("mma.sync.aligned.m16n8k16.row.col.f32.{0}.{0}.f32 {{{1}}}, {{%{2},%{3},%{4},%{5}}}, "
                      "{{b{6},b{7}}}, {{{1}}}",
                      type, sums, 4 * s, 4 * s + 1, 4 * s + 2, 4 * s + 3, b, b + 2));
    }
    write_statement(statement, writer_);
  }
}

void AttentionEmitter::store_accumulators(const std::string& at, const std::string& by, int row_bytes,
                                          int n8_tile_bytes, int first, int columns) {
  for (int r = 0; r < tiles_.thread_rows; ++r) {
    PtxStatement statement{.instructions = {".reg .f32 a, b"},
                           .scoped = true,
                           .operands = {fmt::format("\"r\"({})", at), fmt::format("\"f\"({}[{}])", by, r)},
                           .writes_memory = true};
    for (int n8_tile = 0; n8_tile < columns / 8; ++n8_tile) {
      for (int i = 0; i < 2; ++i)
        statement.instructions.push_back(fmt::format("mul.f32 {}, {}, %1", "ab"[i],
                                                     accumulator_register(r / 2, first / 8 + n8_tile, r % 2 * 2 + i)));
      statement.instructions.push_back(
          fmt::format("st.shared.v2.f32 [%0+{}], {{a, b}}", r * row_bytes + n8_tile * n8_tile_bytes));
    }
    write_statement(statement, writer_);
  }
}

// As C++ variables, 64 or 128 results would take longer to compile than the rest of the kernel.
void AttentionEmitter::store_accumulator_matrices(const std::string& at, const std::string& by) {
  constexpr int kTogether = 4;
  const std::string pack =
      form_.kernel.outputs[stored_rows()[0]].type.dtype == DType::kBFloat16 ? "cvt.rn.bf16x2.f32" : "cvt.rn.f16x2.f32";
  for (int first = 0; first < tiles_.columns / 16; first += kTogether) {
    PtxStatement statement{
        .instructions = {".reg .f32 a, b", ".reg .b32 w<4>"},
        .scoped = true,
        .operands = {fmt::format("\"r\"({})", at), fmt::format("\"f\"({}[0])", by), fmt::format("\"f\"({}[1])", by)},
        .writes_memory = true};
    for (int m = first; m < std::min(first + kTogether, tiles_.columns / 16); ++m) {
      for (int w = 0; w < 4; ++w) {
        const int r = w % 2, n8_tile = 2 * m + w / 2;
        for (int i = 0; i < 2; ++i)
          statement.instructions.push_back(
              fmt::format("mul.f32 {}, {}, %{}", "ab"[i], accumulator_register(0, n8_tile, 2 * r + i), 1 + r));
        statement.instructions.push_back(fmt::format("{} w{}, b, a", pack, w));
      }
      statement.instructions.push_back(
          fmt::format("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0+{}], {{w0, w1, w2, w3}}", 32 * m));
    }
    write_statement(statement, writer_);
  }
}

void AttentionEmitter::fetch_accumulators() {
  if (const std::vector<std::size_t> stored = stored_rows();
      tiles_.key_warps == 1 && (has_epilogue(stored) || stores_matrices(stored)))
    return;
  constexpr int kTogether = 32;
  writer_.line(fmt::format("float {}[{}][{}][4];", accumulator_, tiles_.m16_fragments, tiles_.columns / 8));
  for (int first = 0; first < accumulator_count(); first += kTogether) {
    PtxStatement statement;
    for (int i = first; i < std::min(first + kTogether, accumulator_count()); ++i) {
      statement.instructions.push_back(fmt::format("mov.f32 %{}, {}{}", i - first, kAccumulators, i));
      const int of_m16_fragment = tiles_.columns / 2;
      statement.results.push_back(
          fmt::format("\"=f\"({}[{}][{}][{}])", accumulator_, i / of_m16_fragment, i % of_m16_fragment / 4, i % 4));
    }
    write_statement(statement, writer_);
  }
}

}  // namespace fusec
