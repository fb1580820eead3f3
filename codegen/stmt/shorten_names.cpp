#include "codegen/stmt/shorten_names.h"

#include "ir/budget.h"

namespace fusec {
namespace {

using Names = std::map<std::string, std::string, std::less<>>;

void declared_in(const Statements& statements, std::set<std::string, std::less<>>& declared) {
  for (const Statement& s : statements) {
    if (!s.name.empty()) declared.insert(s.name);
    declared_in(s.body, declared);
    declared_in(s.otherwise, declared);
  }
}

class Namer {
 public:
  Namer(const Names& wanted, std::set<std::string, std::less<>> visible)
      : wanted_(wanted), visible_(std::move(visible)) {}

  void name(const std::string& so_far) {
    const auto wish = wanted_.find(so_far);
    const std::string& base = wish == wanted_.end() ? so_far : wish->second;
    int& number = numbers_[base];
    scope_.push_back({.base = base, .number_before = number});
    std::string& chosen = scope_.back().chosen;
    do {
      chosen = ++number == 1 ? base : base + "_" + std::to_string(number);
    } while (!visible_.insert(chosen).second);
    names_[so_far] = chosen;
  }

  void name_all(const Statements& statements) {
    const std::size_t outside = scope_.size();
    for (const Statement& s : statements) {
      count_step();
      if (s.kind == Statement::Kind::kDeclare) name(s.name);
      const std::size_t around = scope_.size();
      if (s.kind == Statement::Kind::kFor) name(s.name);
      name_all(s.body);
      leave(around);
      name_all(s.otherwise);
    }
    leave(outside);
  }

  Names take() { return std::move(names_); }

 private:
  void leave(std::size_t outside) {
    for (; scope_.size() > outside; scope_.pop_back()) {
      visible_.erase(scope_.back().chosen);
      numbers_[scope_.back().base] = scope_.back().number_before;
    }
  }

  struct Visible {
    std::string chosen = {};
    std::string base;
    int number_before;
  };

  const Names& wanted_;
  std::set<std::string, std::less<>> visible_;
  std::unordered_map<std::string, int> numbers_;  // the last that a visible name of the base has: `base` alone is 1
  std::vector<Visible> scope_;
  Names names_;
};

}  // namespace

Names shorten_names(Statements& statements, const std::vector<std::string>& parameters, const Names& wanted,
                    std::set<std::string, std::less<>> taken) {
  std::set<std::string, std::less<>> declared(parameters.begin(), parameters.end());
  declared_in(statements, declared);
  for_each_use(statements, [&](std::string_view word) {
    if (!declared.contains(word)) taken.emplace(word);
  });
  Namer namer(wanted, std::move(taken));
  for (const std::string& parameter : parameters) namer.name(parameter);
  namer.name_all(statements);
  Names names = namer.take();
  std::map<std::string, CExpr, std::less<>> replaced;
  for (const auto& [so_far, name] : names)
    if (so_far != name) replaced.emplace(so_far, name);
  if (!replaced.empty()) replace_leaves(statements, replaced);
  return names;
}

}  // namespace fusec
