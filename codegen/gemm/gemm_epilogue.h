// What stands behind a product, for sums that are in a warp's registers: they go through shared memory, 16 rows at a
// time, to lanes that have eight neighbours of one row (or one element, where rows are no multiple of eight).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "codegen/expr/kernel_writer.h"
#include "schedule/gemm/gemm_form.h"

namespace fusec {

// An output whose finished rows go to memory by TMA: from a warp's 16 lines of 128 bytes in shared memory, swizzled,
// which it copies whenever they are full.
struct TmaStore {
  std::string map;    // "": it is stored to memory by the lanes
  std::string lines;  // their address
  std::string batch;  // coordinates behind the row's, ", b"
  // Where rows that follow the block's are another block's: the tensor, and how many elements its rows are apart. Of a
  // box that is not full, lanes store the lines that are.
  std::string to = {}, apart = {};
};

struct GemmEpilogue {
  const Kernel& kernel;
  const Contraction& product;
  const GemmForm& form;
  std::map<ExprId, std::string> accumulators;  // the registers of each sum
  std::string row0, column0, batch;            // of the block
  // Where a warp's 16 rows of sums (float[parts * warp_columns / 8][4]) are staged in parts, one after the other: how
  // many, and the warp's own memory for one; `warp_column` is then made here.
  int parts = 0;
  std::string staged = {};
  // Where those parts are finished of two blocks of rows in turn: the block's number, and for each sum's name that of
  // the second one. "": of one block.
  std::string block = {};
  std::map<std::string, std::string> below = {};
  // Where sums, and those of `below`, are PTX registers by name: the number of each one's first.
  std::map<std::string, int> registers = {};
  std::map<ExprId, std::string> known = {};  // values that are the same for all of the block, and their text
  std::string row_end = {};                  // behind the block's last row; "": what the rows' number says
  std::string row_begin = {};                // the block's first row; "": that of its tile
  std::vector<TmaStore> boxes = {};          // with parts: of each output, or none
  // The registers of two sums whose columns take turns (schedule/gemm/interleaved_columns); "": each has its own.
  // Columns of the form's tiles are those of both, and `sums` says which is which.
  std::string pairs = {};
};

inline constexpr const char *kEven = "even", *kOdd = "odd";

void emit_epilogue(const GemmEpilogue& epilogue, const Graph& graph, KernelWriter& writer);

}  // namespace fusec
