#include "codegen/stmt/print_statements.h"

#include <algorithm>

#include "ir/budget.h"

namespace fusec {
namespace {

// Where to break a line that is too long: at the space with the fewest brackets around it, the last one of several. The
// text has no other place before `least`.
std::size_t break_of(std::string_view text, std::size_t least, std::size_t most) {
  constexpr std::string_view kBehind = ",&|+=?:";
  std::size_t best = std::string_view::npos;
  int depth = 0, fewest = 0;
  for (std::size_t i = 0; i < std::min(most, text.size()); ++i) {
    depth += bracket(text, i);
    if (text[i] != ' ' || i <= least) continue;
    if (kBehind.find(text[i - 1]) == std::string_view::npos) continue;
    // A list is broken between its members before one of these is.
    const bool inside_member = best != std::string_view::npos && text[best - 1] == ',' && text[i - 1] != ',';
    if (best != std::string_view::npos && (depth > fewest || (depth == fewest && inside_member))) continue;
    best = i;
    fewest = depth;
  }
  return best;
}

class Printer {
 public:
  explicit Printer(std::size_t columns) : columns_(columns) {}

  void print(const Statements& statements, int depth) {
    for (const Statement& s : statements) {
      count_step();
      print(s, depth);
    }
  }
  std::string take() { return std::move(text_); }

 private:
  void line(std::string_view text, int depth) {
    if (!text.starts_with("#") && !text.empty()) text_.append(static_cast<std::size_t>(2 * depth), ' ');
    text_ += text;
    text_ += '\n';
  }

  void broken(std::string text, int depth) {
    for (int indent = depth;; indent = depth + 2) {
      const auto before = static_cast<std::size_t>(2 * indent);
      const bool fits = columns_ == 0 || before + text.size() <= columns_;
      const std::size_t at = fits ? std::string::npos : break_of(text, 20, columns_ - std::min(columns_ - 40, before));
      line(text.substr(0, at), indent);
      if (at == std::string::npos) return;
      text.erase(0, at + 1);
    }
  }

  void body(const Statements& statements, int depth) { print(statements, depth + 1); }

  void branch(const Statement& s, const std::string& head, int depth) {
    broken(head + s.operands[0].text() + ") {", depth);
    body(s.body, depth);
    if (s.otherwise.size() == 1 && s.otherwise[0].kind == Statement::Kind::kIf)
      return branch(s.otherwise[0], "} else if (", depth);
    if (!s.otherwise.empty()) line("} else {", depth);
    body(s.otherwise, depth);
    line("}", depth);
  }

  void print(const Statement& s, int depth) {
    const std::vector<CExpr>& e = s.operands;
    switch (s.kind) {
      case Statement::Kind::kText:
        return s.text.empty() ? void(text_ += '\n') : line(s.text, depth);
      case Statement::Kind::kBlock:
        if (!s.text.empty()) line(s.text, depth);
        body(s.body, depth);
        return s.end.empty() ? void() : line(s.end, depth);
      case Statement::Kind::kDeclare: {
        const std::string array = s.count > 0 ? "[" + std::to_string(s.count) + "]" : "";
        return broken(s.text + " " + s.name + array + (e.empty() ? "" : " = " + e[0].text()) + ";", depth);
      }
      case Statement::Kind::kAssign:
        return broken(e[0].text() + " = " + e[1].text() + ";", depth);
      case Statement::Kind::kRun:
        return broken(e[0].text() + ";", depth);
      case Statement::Kind::kIf:
        if (s.otherwise.empty() && s.body.size() == 1 && s.body[0].kind == Statement::Kind::kReturn)
          return broken("if (" + e[0].text() + ") return;", depth);
        return branch(s, "if (", depth);
      case Statement::Kind::kFor:
        if (s.unroll) line("#pragma unroll" + (*s.unroll == 0 ? "" : " " + std::to_string(*s.unroll)), 0);
        line("for (" + s.text + " " + s.name + " = " + e[0].text() + "; " + (CExpr(s.name) < e[1]).text() + "; ++" +
                 s.name + ") {",
             depth);
        body(s.body, depth);
        return line("}", depth);
      case Statement::Kind::kReturn:
        return line("return;", depth);
    }
  }

  std::size_t columns_;
  std::string text_;
};

}  // namespace

std::string print_statements(const Statements& statements, int depth, std::size_t columns) {
  Printer printer(columns);
  printer.print(statements, depth);
  return printer.take();
}

}  // namespace fusec
