// Statements of emitted CUDA C++ as values: what lies between a schedule and the text of its kernel.
//
//   StatementBuilder (a schedule) -> statements -> simplify_statements -> shorten_names -> print_statements
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "codegen/stmt/c_expr.h"

namespace fusec {

struct Statement {
  enum class Kind : std::uint8_t {
    kText,     // a line that a schedule printed itself: `text`
    kBlock,    // text { body, and then the line `end`; "" for a line that is not there
    kDeclare,  // text name = operands[0];   text name[count];
    kAssign,   // operands[0] = operands[1];
    kRun,      // operands[0];   a call of a prelude function, an asynchronous copy, a barrier
    kIf,       // if (operands[0]) { body } else { otherwise }
    kFor,      // for (text name = operands[0]; name < operands[1]; ++name) { body }
    kReturn,   // return;
  };
  Kind kind;
  std::string text = "", name = "", end = "";
  std::vector<CExpr> operands = {};
  int count = 0;  // kDeclare: elements of an array; 0: no array
  // kFor: 0 copies the body for every iteration, n for n of them; nothing: as compilers do.
  std::optional<int> unroll = {};
  std::vector<Statement> body = {}, otherwise = {};
};

using Statements = std::vector<Statement>;

// The names that statements declare are all different. Calls `visit` with every other use of a word, in order.
void for_each_use(const Statements& statements, const std::function<void(std::string_view word)>& visit);

// Replaces names of variables, where they are declared and used. Expressions are simplified again.
void replace_leaves(Statements& statements, const std::map<std::string, CExpr, std::less<>>& replaced);

}  // namespace fusec
