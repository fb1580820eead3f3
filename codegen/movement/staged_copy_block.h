// A block of a staged copy: which tile it has, and how its operands' rows come to shared memory
// (schedule/movement/staged_copy).
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "codegen/expr/emit_expr.h"
#include "schedule/movement/staged_copy.h"

namespace fusec {

// Texts of sums and products without what changes nothing.
std::string plus(const std::string& a, const std::string& b);
std::string times(const std::string& a, const std::string& by);
inline std::string times(const std::string& a, std::int64_t by) {
  return times(a, std::to_string(by));
}
std::string quotient(const std::string& of, std::int64_t by);  // of what is below 65536

class StagedCopyBlock {
 public:
  StagedCopyBlock(const StagedCopy& plan, const Graph& graph);

 protected:
  using Coordinates = std::map<std::size_t, std::string>;  // in the tile, by its axes

  // Declares a variable and gives its name.
  std::string declared(std::string_view type, std::string_view preferred_name, const std::string& value);
  std::string declared_index(std::string_view preferred_name, const std::string& value) {
    return declared("const " + writer_.index_type(), preferred_name, value);
  }
  std::string open_unrolled(std::string_view preferred_name, int count);

  // Where the tile begins along each axis, and what of the axis is left from there on where that may be less than the
  // tile has.
  void find_block();
  // All operands, to shared memory.
  void copy_operands();

  void add_condition(std::string& condition, std::size_t i, const std::string& coordinate) const;
  // A loop over so many turns, of which as many are unrolled as are few; gives its variable.
  std::string open_turns(std::int64_t turns, int unrolled);
  // Gives the body every row that this thread has a piece of: its coordinates, the condition under which it exists, and
  // the piece's number.
  using RowBody = std::function<void(const Coordinates& row, const std::string& condition, const std::string& piece)>;
  void over_pieces(const TileRows& rows, int pieces, int unrolled, int wanted_lanes, const RowBody& body);
  // Bytes of this block's rows.
  std::string run_bytes(const TileRows& rows, int element_bits) const;
  void bind_axes(const Coordinates& coordinates);
  void bind_origins();
  // Bytes of shared memory from one element of the tile's axis to the next.
  std::string step_of(const StagedOperand& operand, std::size_t i) const;
  // The value of the element at an address of shared memory.
  std::string value_text(const StagedOperand& operand, const std::string& place);
  IndexExpr grid() const;  // blocks

  template <class Stride>
  static std::string offset(const Coordinates& coordinates, Stride stride) {
    std::string sum = "0";
    for (const auto& [i, coordinate] : coordinates) sum = plus(sum, times(coordinate, stride(i)));
    return sum;
  }

  const StagedCopy& plan_;
  const Kernel& kernel_;
  const Graph& graph_;
  const Bounds& bounds_;
  KernelWriter writer_;
  ExprEmitter emitter_;
  ExprEmitter::Mark tile_mark_{};          // before the tile's axes are bound
  std::vector<std::string> origin_;        // of the tile's axes
  std::vector<std::string> remaining_;     // of each of them; "" where all of it is always there
  std::map<ExprId, std::string> tiles_{};  // of each operand: its first element in shared memory

 private:
  std::string count_of(std::size_t i) const;
  std::string find_row(const TileRows& rows, const std::string& row, Coordinates& coordinates);
  void copy_indexed_rows(const StagedOperand& operand);
  std::string bytes_text(const IndexExpr& elements, int element_bits) const;
  void copy_rows(const StagedOperand& operand);
  void copy_elements(const StagedOperand& operand);
  std::string first_element(const StagedOperand& operand);
  void find_places(const StagedOperand& operand);
  std::string find_tile(const StagedOperand& operand);
  std::string place_of(const StagedOperand& operand, std::size_t i) const { return places_.at(operand.load)[i]; }

  std::map<ExprId, std::vector<std::string>> places_{};  // of each operand: bytes between neighbours along the axes
};

}  // namespace fusec
