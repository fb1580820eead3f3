#include "codegen/stmt/simplify_statements.h"

#include <set>

#include "ir/budget.h"

namespace fusec {
namespace {

using Wanted = std::map<std::string, std::string, std::less<>>;

class Simplifier {
 public:
  explicit Simplifier(Wanted& wanted) : wanted_(wanted) {}

  void run(Statements& statements) {
    drop_settled_ifs(statements);
    do {
      uses_.clear();
      for_each_use(statements, [&](std::string_view word) { ++count_of(word); });
      copies_.clear();
      types_.clear();
      changed_ = false;
      sweep(statements);
      if (!copies_.empty()) replace_leaves(statements, copies_);
    } while (changed_);
    drop_settled_ifs(statements);
  }

 private:
  static void drop_settled_ifs(Statements& statements) {
    Statements kept;
    for (Statement& s : statements) {
      count_step();
      drop_settled_ifs(s.body);
      drop_settled_ifs(s.otherwise);
      const bool settled = s.kind == Statement::Kind::kIf && (s.operands[0].is_true() || s.operands[0].is_false());
      if (!settled) {
        kept.push_back(std::move(s));
        continue;
      }
      Statements& taken = s.operands[0].is_true() ? s.body : s.otherwise;
      for (Statement& inner : taken) kept.push_back(std::move(inner));
    }
    statements = std::move(kept);
  }

  int& count_of(std::string_view word) {
    const auto found = uses_.find(word);
    return found == uses_.end() ? uses_.emplace(word, 0).first->second : found->second;
  }

  void sweep(Statements& statements) {
    std::erase_if(statements, [&](Statement& s) {
      count_step();
      sweep(s.body);
      sweep(s.otherwise);
      const bool empty = s.body.empty() && s.otherwise.empty();
      if (empty && (s.kind == Statement::Kind::kIf || s.kind == Statement::Kind::kFor)) return changed_ = true;
      if (s.kind != Statement::Kind::kDeclare) return false;
      if (count_of(s.name) == 0 || copies(s)) return changed_ = true;
      types_[s.name] = s.text;
      return false;
    });
  }

  // Whether a constant is only another name of one that is declared before it in this or an outer body.
  bool copies(const Statement& s) {
    if (s.operands.empty() || s.operands[0].kind() != CExpr::Kind::kName || !s.text.starts_with("const ")) return false;
    const std::string& of = s.operands[0].word();
    const auto type = types_.find(of);
    if (type == types_.end() || type->second != s.text) return false;
    if (count_of(of) == 1)
      if (const auto name = wanted_.find(s.name); name != wanted_.end()) wanted_[of] = name->second;
    copies_.emplace(s.name, of);
    return true;
  }

  Wanted& wanted_;
  std::map<std::string, int, std::less<>> uses_;
  std::map<std::string, CExpr, std::less<>> copies_;
  std::map<std::string, std::string, std::less<>> types_;
  bool changed_ = false;
};

}  // namespace

void simplify_statements(Statements& statements, std::map<std::string, std::string, std::less<>>& wanted) {
  Simplifier(wanted).run(statements);
}

}  // namespace fusec
