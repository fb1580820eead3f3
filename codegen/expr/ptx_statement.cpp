#include "codegen/expr/ptx_statement.h"

namespace fusec {
namespace {

constexpr std::size_t kWidth = 100;

// Prints a list over several lines; `before` starts the first line.
void write_list(const std::vector<std::string>& items, const std::string& before, const std::string& after,
                KernelWriter& writer) {
  std::string line = before;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::string item = items[i] + (i + 1 < items.size() ? "," : "");
    if (!line.empty() && line.size() + item.size() > kWidth) {
      writer.line(line);
      line = "    ";
    }
    line += (line.empty() || line.back() == ' ' ? "" : " ") + item;
  }
  writer.line(line + after);
}

// Puts as many instructions on a line as fit.
void write_instructions(const PtxStatement& statement, KernelWriter& writer) {
  std::string line = statement.scoped ? "{" : "";
  for (const std::string& instruction : statement.instructions) {
    if (line.size() > 1 && line.size() + instruction.size() > kWidth) {
      writer.line("    \"" + line + "\\n\"");
      line.clear();
    }
    line += (line.empty() || line == "{" ? "" : " ") + instruction + ";";
  }
  writer.line("    \"" + line + (statement.scoped ? "}" : "") + "\"");
}

}  // namespace

void write_statement(const PtxStatement& statement, KernelWriter& writer) {
  writer.line("asm volatile(");
  write_instructions(statement, writer);
  const bool operands = !statement.operands.empty(), writes = statement.writes_memory;
  write_list(statement.results, "    :", operands || writes ? "" : ");", writer);
  if (operands || writes) write_list(statement.operands, "    :", writes ? "" : ");", writer);
  if (writes) writer.line("    : \"memory\");");
}

}  // namespace fusec
