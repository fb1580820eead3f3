// A tile whose elements are computed, eight neighbouring places at a time where what they are made of lies side by side
// in memory: what stands before a product (rope, scales) then reads 16 bytes with each access.
//
//   tile[line][8 u + e] = q[8 u + e] * cos[8 u + e] + turned[8 u + e] * sin[8 u + e]
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
  // Nothing where eights of places are not whole, or no load has them side by side.
  static std::optional<TransformedTile> plan(ExprEmitter& emitter, const Graph& graph, const TileLoad& load);

  // Axes other than the load's must be bound in the emitter, under which all was planned. `place` is where the tile has
  // an eight of a line, swizzled, if not where the load says. `ahead`: several eights of codes are on their way
  // together, with nothing between their loads but what is computed of them. `unrolled`: so many otherwise, 0: as the
  // compiler likes.
  using Place = std::function<std::string(const std::string& line, const std::string& eight)>;
  void load(ExprEmitter& emitter, const Graph& graph, const TileLoad& load, int threads, const Place& place = nullptr,
            bool ahead = false, int unrolled = 0) const;

 private:
  // What the words `made` get: the eight's values, narrowed.
  std::optional<Dequantize> dequantize_of(ExprEmitter& emitter, const Graph& graph, DType narrowed) const;
  void compute_dequantized(const Dequantize& quantized, ExprEmitter& emitter, const Graph& graph, DType narrowed,
                           const std::string& made) const;
  void compute_elements(ExprEmitter& emitter, const Graph& graph, DType narrowed, const std::string& made) const;

  Kernel kernel_;
  ExprId value_ = kNoExpr;
  std::vector<std::uint32_t> lines_, places_;                    // places: of eights
  std::vector<std::pair<std::uint32_t, std::uint32_t>> others_;  // axes of the emitter's kernel, and ours
  std::uint32_t lane_ = 0;
};

}  // namespace fusec
