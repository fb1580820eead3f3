// Several PTX instructions as one statement of inline assembly: compilers spend their time on statements and their
// operands, not on what stands inside.
//
//   asm volatile(
//       "mul.f32 sum0, sum0, %0; mul.f32 sum1, sum1, %0;\n"
//       "mul.f32 sum2, sum2, %1; mul.f32 sum3, sum3, %1;\n"
//       :
//       : "f"(by[0]), "f"(by[1]));
#pragma once

#include <string>
#include <vector>

#include "codegen/expr/kernel_writer.h"

namespace fusec {

struct PtxStatement {
  std::vector<std::string> instructions;       // without the semicolon behind each
  bool scoped = false;                         // in braces: what it declares is its own
  std::vector<std::string> results, operands;  // "\"=f\"(x)": %0 and on
  bool writes_memory = false;
};

void write_statement(const PtxStatement& statement, KernelWriter& writer);

}  // namespace fusec
