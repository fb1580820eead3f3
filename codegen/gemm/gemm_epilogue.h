// Emits the epilogue for accumulators in a warp's registers. They are staged in shared memory, 16 rows at a time, for
// lanes that have eight neighbours of a row (or one element, if the columns are no multiple of eight).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "codegen/expr/kernel_writer.h"
#include "schedule/gemm/gemm_form.h"

namespace fusec {

// An output that TMA stores: from 16 swizzled lines of 128 bytes per warp in shared memory, whenever they are full.
struct TmaStore {
  std::string map;    // name of the tensor map; "" if lanes store the output
  std::string lines;  // shared memory address of the lines
  std::string batch;  // coordinates after the row, such as ", b"
  // Set if the next rows belong to another block: a pointer to the tensor, and elements from row to row. Lanes then
  // store the valid lines of an incomplete box.
  std::string to = {}, distance = {};
};

struct GemmEpilogue {
  const Kernel& kernel;
  const Contraction& contraction;
  const GemmForm& form;
  std::map<ExprId, std::string> accumulators;  // the registers of each accumulator
  std::string row0, column0, batch;            // of the block
  // If a warp's 16 rows of accumulators (float[parts * warp_columns / 8][4], or Registers) are staged part by part: the
  // number of parts, and the warp's memory for one part. The epilogue then declares `warp_column`.
  int parts = 0;
  std::string staged = {};
  // If a loop runs the epilogue of two row blocks: the variable of the row block, and for each accumulator's name that
  // of the second row block. "" for a single row block.
  std::string block = {};
  std::map<std::string, std::string> below = {};
  std::map<ExprId, std::string> known = {};  // values that are constant in the block, and their text
  std::string row_end = {};                  // one past the block's last row; "": the number of rows
  std::string row_begin = {};                // the block's first row; "": that of its tile
  std::vector<TmaStore> boxes = {};          // with parts: one per output, or none
  // The registers of two accumulators with interleaved columns (schedule/gemm/interleaved_columns); "" if each has its
  // own. The form's columns then count both, and `accumulators` says which one is even and which is odd.
  std::string pairs = {};
};

inline constexpr const char *kEven = "even", *kOdd = "odd";

void emit_epilogue(const GemmEpilogue& epilogue, const Graph& graph, KernelWriter& writer);

}  // namespace fusec
