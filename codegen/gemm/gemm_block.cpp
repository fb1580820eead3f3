#include "codegen/gemm/gemm_block.h"

#include <fmt/format.h>

#include "codegen/access/direct.h"

namespace fusec {

std::string tiles_comment(const GemmTiles& tiles, bool tensor_cores) {
  return fmt::format(
      "A block makes {}x{}, each of its warps {}x{}{}; {} of k are a tile, {} tiles are in shared memory or on the "
      "way.",
      tiles.rows, tiles.columns, tiles.warp_rows, tiles.warp_columns, tensor_cores ? ", on tensor cores" : "", tiles.k,
      tiles.stages);
}

std::string mma_name(DType multiplied, DType left, DType right) {
  const auto kind = [](DType stored) { return stored == DType::kFloat8E5M2 ? "e5m2" : "e4m3"; };
  switch (multiplied) {
    case DType::kInt8:
      return "mma_s8";
    case DType::kFloat32:
      return "mma_tf32";
    case DType::kFloat8E4M3FN:
      return fmt::format("mma_{}_{}", kind(left), kind(right));
    default:
      return multiplied == DType::kBFloat16 ? "mma_bf16" : "mma_fp16";
  }
}

BlockPosition place_block(ExprEmitter& emitter, const Contraction& contraction, const IndexExpr& down,
                          const IndexExpr& across) {
  KernelWriter& writer = emitter.writer();
  const Bounds& bounds = emitter.kernel().pool.bounds();
  const auto text = [&](const IndexExpr& e) { return emitter.index_text().tight(simplify(e, bounds)); };
  writer.use("tile_order");
  BlockPosition place{.tile = writer.unique("tile"), .batch = ""};
  std::string number = "(int)blockIdx.x";
  if (!contraction.batch.empty()) {
    const std::string of_batch = text(down * across);
    place.batch = writer.unique("batch");
    writer.line(fmt::format("const {} {} = {} / {};", writer.index_type(), place.batch, number, of_batch));
    bind_flat(emitter, contraction.batch, place.batch, "bcdefgh");
    number += " % " + of_batch;
  }
  writer.line(fmt::format("const TilePlace {} = tile_in_order<{}>({}, {}, {});", place.tile, kTileGroup, number,
                          text(down), text(across)));
  return place;
}

void place_warps(KernelWriter& writer, const GemmTiles& tiles) {
  writer.line("const int warp = threadIdx.x / 32, warp_lane = threadIdx.x % 32;");
  writer.line(fmt::format("const int warp_row = warp / {0} * {1}, warp_column = warp % {0} * {2};",
                          tiles.warps_across(), tiles.warp_rows, tiles.warp_columns));
}

void declare_accumulator(KernelWriter& writer, const GemmTiles& tiles, bool tensor_cores, ScalarType type,
                         const std::string& name) {
  writer.line(fmt::format("{} {}[{}][{}]{} = {{}};", c_type(type), name, tiles.warp_rows / (tensor_cores ? 16 : 4),
                          tiles.warp_columns / 8, tensor_cores ? "[4]" : ""));
}

// Without tensor cores, 16 warps per multiprocessor hide shared memory latency, so a thread may use 128 registers.
int min_blocks_per_multiprocessor(const GemmTiles& tiles, bool tensor_cores, std::size_t accumulators, int threads) {
  const int of_thread = static_cast<int>(accumulators) * tiles.warp_rows * tiles.warp_columns / 32;
  // Without a bound, ptxas limits registers for more small blocks than shared memory allows, and spills.
  const bool small = tiles.threads() <= 64 || of_thread <= 32;
  return of_thread > 64 || (tensor_cores && !small) ? 0 : std::max(1, threads / tiles.threads());
}

void multiply_in_lanes(KernelWriter& writer, const GemmTiles& tiles, std::span<const LaneTile> operands,
                       std::span<const LaneTerm> terms) {
  writer.use("lane_fragments");
  writer.line("#pragma unroll 1");  // other warps hide the loads; unrolling would use all registers
  writer.open(fmt::format("for (int k = 0; k < {}; k += 4)", tiles.k));
  const auto load = [&](bool left, const char* warp, const char* first, const char* part) {
    for (const LaneTile& f : operands) {
      if (f.left != left) continue;
      writer.line(fmt::format("float {}[{}][4];", f.fragments, left ? 4 : tiles.warp_columns / 8));
      writer.line(fmt::format("load_lanes<{}, {}, {}>({}, {}, {}, {}, k, {});", f.k_major, f.units, left ? 4 : 8,
                              f.fragments, f.at, warp, first, part));
    }
  };
  load(false, "warp_column", "0", "warp_lane % 8");
  writer.line("#pragma unroll");
  writer.open(fmt::format("for (int i = 0; i < {}; i += 4)", tiles.warp_rows / 4));
  load(true, "warp_row", "i * 4", "warp_lane / 8");
  for (const LaneTerm& term : terms)
    writer.line(fmt::format("multiply_lanes<{}>({} + i, {}, {});", tiles.warp_columns / 8, term.accumulator, term.left,
                            term.right));
  writer.close();
  writer.close();
}

}  // namespace fusec
