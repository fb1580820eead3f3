// Operands that lie differently to vectors than what is stored of a row. Of a row that begins anywhere: weights that
// all rows share, which begin at a multiple of 16 bytes, rows of another pitch. The part of them that a team of threads
// needs goes through shared memory, so that each sector is asked for once and each thread reads its vector as a whole.
//
//   x[4095 * row + k]   whole vectors begin at k = 1, 5, 9 ...   w[k]   ->   w_tile[k - 1]
//
// The copies are on the way while the row is reduced.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "codegen/expr/emit_expr.h"
#include "codegen/reduction/row_registers.h"
#include "codegen/reduction/row_vectors.h"
#include "schedule/reduction/row_layout.h"

namespace fusec {

class BroadcastTiles {
 public:
  // Loops over vectors make so many turns; 0: not known. Nothing more than `most_bytes` a block.
  struct Row {
    const RowForm& form;
    const Graph& graph;
    const RowLayout& layout;
    const RowSplit& split;
    int iterations = 0;
    std::int64_t most_bytes = 0;
    std::int64_t first_byte = 0;  // of shared memory
  };
  BroadcastTiles(const Row& row, const std::vector<RowLoop>& loops, ExprEmitter& emitter);

  bool empty() const { return all_.empty(); }
  bool lacks_room() const { return lacks_room_; }  // for some of what lies so
  bool has(ExprId load) const { return tile_of_.contains(load); }
  const IndexExpr& shared_bytes() const { return bytes_; }

  // Names of variables: the row's first whole vector and the one behind its last, this thread among its team, this
  // block among its row's.
  struct Place {
    std::string first, last, thread, block;
  };
  void begin(Place place);
  // Before the first loop that reads of them: what these roots need has come.
  void wait_for(const std::vector<ExprId>& roots);
  // A variable with the load's words of `vector`, the thread's `turn`; one of the two is "".
  std::string words_of(ExprId load, const std::string& iteration, const std::string& vector);

 private:
  // Tensors that lie alike: one tile behind the other.
  struct TileGroup {
    std::uint32_t vector_axis;
    IndexExpr position;  // of lane 0, over that axis and those of rows
    DType dtype;
    int words;  // of a vector
    std::vector<ValueId> tensors = {};
    std::string name = "", tensors_name = "", stride = "";  // stride: words of a tile
    std::string bits = "";                                  // that come along before the first element
  };
  void add_load(ExprId load, const TileGroup& place);
  int words_of_vectors(int words) const { return words * row_.layout.threads + std::max(4, words); }
  IndexExpr bytes_of(int words) const;
  void fill(TileGroup& tiles, const Place& place);

  const Row row_;
  ExprEmitter& emitter_;
  std::vector<TileGroup> all_;
  std::map<ExprId, std::pair<std::size_t, std::size_t>> tile_of_;  // of a load: which together, which of these
  IndexExpr vectors_ = 0;                                          // of a row, at most
  int width_ = 1;
  IndexExpr bytes_ = 0;  // of a block
  std::string first_vector_, lane_;
  bool waited_ = false, lacks_room_ = false;
};

}  // namespace fusec
