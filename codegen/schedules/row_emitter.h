// Prints a kernel of rows: the loops over a row, the teams of threads that reduce it, what is stored of it.
// codegen/schedules/row_reduction decides how; here is the text.
#pragma once

#include <cstdint>
#include <vector>

#include "codegen/kernel_source.h"
#include "codegen/schedules/row_form.h"
#include "codegen/schedules/row_vectors.h"
#include "ir/graph.h"

namespace fusec {

enum class RowTeam : std::uint8_t {
  kWarp,    // 32 threads a row, several rows a block
  kBlock,   // the whole block
  kColumn,  // 32 neighbouring rows a block, each with some threads far apart
};

struct RowLayout {
  RowTeam team = RowTeam::kBlock;
  int threads = 256;  // of a block
  int rows = 1;       // of a block
  int parts = 256;    // threads of a row
};

inline constexpr int kColumnRows = 32;  // of a block whose team is kColumn

// A reduction to one value in two kernels: blocks leave partial results in scratch memory, one block combines them.
enum class RowStep : std::uint8_t { kWhole, kPartial, kFinal };

struct RowKernel {
  const RowForm& form;
  const Graph& graph;
  RowLayout layout;
  RowSplit split;
  bool wide = false;  // 64-bit indices
  RowStep step = RowStep::kWhole;
  int partial_blocks = 1;
};

// `original` is the kernel as lowered, for its name and comment.
KernelSource emit_rows(const RowKernel& kernel, const Kernel& original);

}  // namespace fusec
