#include "codegen/stmt/statement.h"

namespace fusec {
namespace {

using Replaced = std::map<std::string, CExpr, std::less<>>;

std::string with_words(const std::string& text, const Replaced& replaced) {
  std::string result;
  std::size_t copied = 0;
  for_each_word(text, [&](std::size_t first, std::size_t last) {
    const auto found = replaced.find(std::string_view(text).substr(first, last - first));
    if (found == replaced.end()) return;
    result += text.substr(copied, first - copied) + found->second.tight();
    copied = last;
  });
  return copied == 0 ? text : result + text.substr(copied);
}

}  // namespace

void for_each_use(const Statements& statements, const std::function<void(std::string_view word)>& visit) {
  const auto in_text = [&](std::string_view text) {
    for_each_word(text, [&](std::size_t first, std::size_t last) { visit(text.substr(first, last - first)); });
  };
  for (const Statement& s : statements) {
    in_text(s.text);
    for (const CExpr& e : s.operands) for_each_leaf(e, [&](const CExpr& leaf) { in_text(leaf.word()); });
    for_each_use(s.body, visit);
    for_each_use(s.otherwise, visit);
    in_text(s.end);
  }
}

void replace_leaves(Statements& statements, const Replaced& replaced) {
  const auto replacement = [&](const CExpr& leaf) -> CExpr {
    if (leaf.kind() == CExpr::Kind::kText) return with_words(leaf.word(), replaced);
    const auto found = replaced.find(leaf.word());
    return found == replaced.end() ? leaf : found->second;
  };
  for (Statement& s : statements) {
    if (s.kind == Statement::Kind::kText || s.kind == Statement::Kind::kBlock) {
      s.text = with_words(s.text, replaced);
      s.end = with_words(s.end, replaced);
    }
    if (const auto found = replaced.find(s.name); found != replaced.end()) s.name = found->second.word();
    for (CExpr& e : s.operands) e = with_leaves(e, replacement);
    replace_leaves(s.body, replaced);
    replace_leaves(s.otherwise, replaced);
  }
}

}  // namespace fusec
