// What stands behind a product, for sums that are in a warp's registers: they go through shared memory, 16 rows at a
// time, to lanes that have eight neighbours of one row (or one element, where rows are no multiple of eight).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "analysis/gemm_form.h"
#include "codegen/kernel_writer.h"

namespace fusec {

struct GemmEpilogue {
  const Kernel& kernel;
  const Product& product;
  const GemmForm& form;
  std::map<ExprId, std::string> sums;  // the registers of each sum
  std::string row0, column0, batch;    // of the block
};

void emit_epilogue(const GemmEpilogue& epilogue, const Graph& graph, KernelWriter& writer);

}  // namespace fusec
