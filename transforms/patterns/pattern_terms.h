// Parses the terms of a pattern, both the match and the replacement. A form (`define`) is parsed once. A use copies its
// terms, with the arguments in place of the parameters.
//
//   define silu_of(g) = silu(g) | mul(g, sigmoid(g))
//   mul(silu_of(~gate), up)        ->        mul((silu(~gate) | mul(~gate, sigmoid(~gate))), up)
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "transforms/patterns/pattern.h"
#include "transforms/patterns/pattern_cursor.h"

namespace fusec {

class PatternTermReader {
 public:
  // Terms are kept in `memory`.
  PatternTermReader(PatternCursor& cursor, PatternMemory& memory) : cursor_(cursor), memory_(memory) {}

  // Parses a form after "define". Later terms of the file may use it.
  void read_form();
  // Begins a new pattern. Its names are appended to `names`.
  void begin_pattern(std::vector<std::string>& names);
  PatternTerm read_match() { return alternatives(); }
  PatternTerm read_replacement();

  // Reads a name and returns its number. Fails if the match has no such name.
  std::uint32_t known_name();
  std::optional<std::uint32_t> find_name(std::string_view word) const;
  std::string nearest_name(std::string_view word) const;  // "did you mean ...?", or ""

 private:
  // define silu_of(g) = silu(g) | mul(g, sigmoid(g))
  struct Form {
    std::vector<std::string_view> parameters;
    std::vector<std::string> names;  // of the body: the parameters, then its own names, which are fresh in each use
    PatternTerm body;
    bool has_own_names() const { return names.size() > parameters.size(); }
  };
  using Arguments = std::vector<PatternTerm>;
  struct Used {
    Arguments arguments;
    PatternTerm term;
  };
  struct Deeper;
  class Expansion;

  PatternTerm alternatives();
  PatternTerm alternative();
  PatternTerm primary();
  PatternTerm around(PatternTerm::Kind kind, const PatternTerm& inner);
  PatternTerm shared(const PatternTerm& term, std::size_t token);
  PatternTerm optional_of(const PatternTerm& term);
  PatternTerm call(std::string_view word, std::size_t token);
  void read_operands(PatternTerm& term, const OpDef* op, std::size_t token);
  PatternTerm known(std::string_view word);
  PatternTerm chain();
  PatternTerm use(std::string_view word, const Form& form, std::size_t token);
  [[noreturn]] void no_op(std::string_view word, std::size_t token) const;
  [[noreturn]] void too_deep(std::size_t token) const;

  PatternAttribute attribute(const OpDef* op);
  void attribute_value(PatternAttribute& a);
  void name_value(PatternAttribute& a);
  void list(PatternAttribute& a);
  void factors(PatternAttribute& a);
  void function_value(PatternAttribute& a);

  bool is_parameter(std::string_view word) const;
  std::uint32_t name_number(std::string_view word);
  std::uint32_t known_name(std::string_view word, std::size_t token) const;
  static bool are_same(const Arguments& a, const Arguments& b);

  PatternCursor& cursor_;
  PatternMemory& memory_;
  std::map<std::string_view, Form> forms_;
  std::vector<std::string>* names_ = nullptr;  // names of the current pattern
  // Expansions of forms without own names in this pattern. The same arguments give the same term, which is shared.
  std::map<std::string_view, std::vector<Used>> used_;
  const Form* form_ = nullptr;  // the form that is being read
  int uses_ = 0;
  std::size_t depth_ = 0, terms_ = 0;
  bool replacing_ = false;
};

}  // namespace fusec
