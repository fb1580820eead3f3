// A block of a staged copy: which tile it has, and how its operands' rows come to shared memory
// (schedule/movement/staged_copy).
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "codegen/expr/emit_expr.h"
#include "schedule/movement/staged_copy.h"

namespace fusec {

CExpr quotient(const CExpr& of, std::int64_t by);  // of / by, exact while their product is below 2^32

class StagedCopyBlock {
 public:
  StagedCopyBlock(const StagedCopy& plan, const Graph& graph);

 protected:
  using Coordinates = std::map<std::size_t, CExpr>;  // in the tile, by its axes

  // Declares a variable and gives its name. A constant needs none.
  CExpr declared(std::string_view type, std::string_view preferred_name, const CExpr& value);
  CExpr declared_int(std::string_view preferred_name, const CExpr& value) {
    return declared("const int", preferred_name, value);
  }
  CExpr declared_index(std::string_view preferred_name, const CExpr& value) {
    return declared("const " + writer_.index_type(), preferred_name, value);
  }
  // Loops, to be ended: their variable, or 0 of a single iteration. Of `turns` as many are unrolled as are few.
  CExpr open_unrolled(std::string_view preferred_name, int count);
  CExpr open_turns(std::int64_t turns, int unrolled);

  // Where the tile begins along each axis, and what of the axis is left from there on where that may be less than the
  // tile has.
  void find_block();
  // All operands, to shared memory.
  void copy_operands();

  void add_condition(CExpr& condition, std::size_t i, const CExpr& coordinate) const;
  // Gives the body every row that this thread has a piece of: its coordinates, the condition under which it exists, and
  // the piece's number.
  using RowBody = std::function<void(const Coordinates& row, const CExpr& condition, const CExpr& piece)>;
  void over_pieces(const TileRows& rows, int pieces, int unrolled, int wanted_lanes, const RowBody& body);
  // Bytes of this block's rows.
  CExpr run_bytes(const TileRows& rows, int element_bits) const;
  // `first` and what lies a distance behind it, under a name.
  CExpr declared_behind(std::string_view type, std::string_view preferred_name, const CExpr& first,
                        const CExpr& distance);
  void bind_axes(const Coordinates& coordinates);
  void bind_origins();
  // Bytes of shared memory from one element of the tile's axis to the next.
  CExpr step_of(const StagedOperand& operand, std::size_t i) const;
  // The value of the element at an address of shared memory.
  std::string value_text(const StagedOperand& operand, const CExpr& place);
  IndexExpr grid() const;  // blocks

  template <class Stride>
  static CExpr offset(const Coordinates& coordinates, Stride stride) {
    CExpr sum = 0;
    for (const auto& [i, coordinate] : coordinates) sum = sum + coordinate * stride(i);
    return sum;
  }

  const StagedCopy& plan_;
  const Kernel& kernel_;
  const Graph& graph_;
  const Bounds& bounds_;
  KernelWriter writer_;
  ExprEmitter emitter_;
  ExprEmitter::Mark tile_mark_{};                // before the tile's axes are bound
  std::vector<CExpr> origin_;                    // of the tile's axes
  std::vector<std::optional<CExpr>> remaining_;  // of each of them; nothing where all of it is always there
  std::map<ExprId, CExpr> tiles_{};              // of each operand: its first element in shared memory

 private:
  CExpr count_of(std::size_t i) const;
  CExpr find_row(const TileRows& rows, const CExpr& row, Coordinates& coordinates);
  void over_all_pieces(const TileRows& rows, int pieces, int unrolled, const RowBody& body);
  void copy_indexed_rows(const StagedOperand& operand);
  CExpr bytes_text(const IndexExpr& elements, int element_bits) const;
  CExpr end_of(const StagedOperand& operand);
  CExpr first_bytes(const StagedOperand& operand);
  void copy_rows(const StagedOperand& operand);
  void copy_elements(const StagedOperand& operand);
  void find_places(const StagedOperand& operand);
  CExpr find_tile(const StagedOperand& operand, const CExpr& behind = 0);
  const CExpr& place_of(const StagedOperand& operand, std::size_t i) const { return places_.at(operand.load)[i]; }

  std::map<ExprId, std::vector<CExpr>> places_{};  // of each operand: bytes between neighbours along the axes
};

}  // namespace fusec
