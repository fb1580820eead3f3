// Fills a tile with computed elements, eight neighbours at a time, if their sources are contiguous in memory. Prologues
// (rope, scales) then read 16 bytes per access.
//
//   tile[line][8 u + e] = q[8 u + e] * cos[8 u + e] + rotated[8 u + e] * sin[8 u + e]
//     ->  const Words<4> q_w = load_words<4>(q + 8 * u), ...; for (int e = 0; e < 8; ++e) ...; store_words(tile, made);
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "codegen/gemm/dequantize.h"
#include "codegen/gemm/tile_load.h"

namespace fusec {

class TransformedTile {
 public:
  // Returns nullopt if lines are no multiple of eight, or if no load has the eight elements contiguous.
  static std::optional<TransformedTile> plan(ExprEmitter& emitter, const Graph& graph, const TileLoad& load);

  // Axes other than those of the load must be bound in the emitter. `place`: the address of eight elements of a line in
  // a swizzled tile; null: the load's layout. `ahead`: loads several vectors of quantized values before any is
  // converted. `unrolled`: vectors per iteration otherwise; 0: the compiler chooses.
  using Place = std::function<std::string(const std::string& line, const std::string& vector_index)>;
  // The lines of one source that are in shared memory already: `tile` is a pointer to bytes.
  struct Staged {
    ValueId source = kNone;
    std::string tile;
    int stride = 0;  // bytes
  };
  void load(ExprEmitter& emitter, const Graph& graph, const TileLoad& load, int threads, const Place& place = nullptr,
            bool ahead = false, int unrolled = 0, const std::optional<Staged>& staged = std::nullopt) const;

 private:
  // These functions fill the words `made` with the eight values, narrowed.
  std::optional<Dequantize> dequantize_of(ExprEmitter& emitter, const Graph& graph, DType narrowed) const;
  // `words`: the words of a load that is staged, or "".
  using Words = std::function<std::string(ExprId load)>;
  void compute_dequantized(const Dequantize& quantized, ExprEmitter& emitter, const Graph& graph, DType narrowed,
                           const std::string& made, const Words& words) const;
  void compute_elements(ExprEmitter& emitter, const Graph& graph, DType narrowed, const std::string& made,
                        const Words& words) const;

  Kernel kernel_;
  ExprId value_ = kNoExpr;
  std::vector<std::uint32_t> lines_, places_;                    // places: groups of eight
  std::vector<std::pair<std::uint32_t, std::uint32_t>> others_;  // axes of the emitter's kernel, and of this kernel
  std::uint32_t lane_ = 0;
};

}  // namespace fusec
