// Prints several PTX instructions as one inline assembly statement. Compile time depends on the number of statements
// and operands more than on the instructions inside.
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
  std::vector<std::string> instructions;       // without the trailing semicolons
  bool scoped = false;                         // in braces, so declarations are local
  std::vector<std::string> results, operands;  // constraints and expressions such as "\"=f\"(x)", numbered from %0
  bool writes_memory = false;
};

void write_statement(const PtxStatement& statement, KernelWriter& writer);

}  // namespace fusec
