// Stages operands in shared memory that are aligned differently than the stored row. Example: rows are unaligned, but
// the weights shared by all rows start at a multiple of 16 bytes, or rows of another operand have another stride. A
// group of threads copies the part that it needs to shared memory. Each sector is then requested once, and each thread
// reads its vector whole.
//
//   x[4095 * row + k]   whole vectors begin at k = 1, 5, 9 ...   w[k]   ->   w_tile[k - 1]
//
// The copies overlap with the reduction of the row.
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
  // `iterations`: trip count of loops over vectors; 0 if unknown. `most_bytes`: limit for tiles, per block.
  struct Row {
    const RowForm& form;
    const Graph& graph;
    const RowLayout& layout;
    const RowSplit& split;
    int iterations = 0;
    std::int64_t most_bytes = 0;
    std::int64_t first_byte = 0;  // offset in shared memory
  };
  BroadcastTiles(const Row& row, const std::vector<RowLoop>& loops, ExprEmitter& emitter);

  bool empty() const { return all_.empty(); }
  bool lacks_room() const { return lacks_room_; }  // some misaligned operand has no tile
  bool has(ExprId load) const { return tile_of_.contains(load); }
  const IndexExpr& shared_bytes() const { return bytes_; }

  // Names of variables: the row's whole vectors [first, last), this thread in its group, this block among those of its
  // row.
  struct Place {
    std::string first, last, thread, block;
  };
  void begin(Place place);
  // Call before the first loop that reads the tiles: waits for the copies that these roots need.
  void wait_for(const std::vector<ExprId>& roots);
  // A variable with the load's words. Give either `vector`, or the thread's `iteration`; the other is "".
  std::string words_of(ExprId load, const std::string& iteration, const std::string& vector);

 private:
  struct Tile {
    ValueId tensor;
    std::uint32_t vector_axis;
    IndexExpr position;  // of lane 0, over that axis and the axes of rows
    DType dtype;
    int words;              // per vector
    std::string name = "";  // of the pointer to shared memory
    std::string bits = "";  // bits copied before the first element
  };
  void add_load(ExprId load, const Tile& tile);
  int words_of_vectors(int words) const { return words * row_.layout.threads + std::max(4, words); }
  IndexExpr bytes_of(int words) const;
  void fill(Tile& tile, const Place& place);

  const Row row_;
  ExprEmitter& emitter_;
  std::vector<Tile> all_;
  std::map<ExprId, std::size_t> tile_of_;  // by load
  IndexExpr vectors_ = 0;                  // upper bound per row
  int width_ = 1;
  IndexExpr bytes_ = 0;  // per block
  std::string first_vector_, lane_;
  bool waited_ = false, lacks_room_ = false;
};

}  // namespace fusec
