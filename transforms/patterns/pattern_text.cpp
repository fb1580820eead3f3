#include "transforms/patterns/pattern_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "ir/error.h"
#include "ir/spelling.h"
#include "transforms/patterns/conditions.h"
#include "transforms/patterns/pattern_cursor.h"
#include "transforms/patterns/pattern_terms.h"

namespace fusec {
namespace {

using Kind = PatternTerm::Kind;

template <typename IsIt>
const PatternTerm* find_term(const PatternTerm& t, const IsIt& is_it) {
  if (is_it(t.kind)) return &t;
  for (const PatternTerm& operand : t.operands)
    if (const PatternTerm* found = find_term(operand, is_it)) return found;
  return nullptr;
}

// Parses the declarations of a file, clause by clause.
class PatternReader {
 public:
  PatternReader(std::string_view text, const std::string& file)
      : file_(file), cursor_(text, file), terms_(cursor_, *memory_) {}

  std::vector<FusionPattern> run() {
    while (!cursor_.is_end()) {
      if (cursor_.take_word("define"))
        terms_.read_form();
      else if (cursor_.take_word("pattern"))
        pattern();
      else
        cursor_.unexpected("pattern or define");
    }
    return std::move(patterns_);
  }

 private:
  // The token of each clause that the pattern has had so far.
  struct Met {
    std::optional<std::size_t> match, becomes, attributes, bind_constants;
  };

  void pattern() {
    FusionPattern result;
    current_ = &result;
    met_ = {};
    result.file = file_;
    result.memory = memory_;
    terms_.begin_pattern(result.names);
    header();
    while (!cursor_.is_end() && !(cursor_.is_word() && starts_declaration(cursor_.peek().text))) clause();
    // Report missing clauses at the end of the pattern.
    if (!met_.match) cursor_.fail(cursor_.at(), fmt::format("{} is a pattern without match", result.name), "match");
    if (!met_.becomes)
      cursor_.fail(cursor_.at(), fmt::format("{} is a pattern without becomes", result.name), "becomes");
    check_whole();
    patterns_.push_back(std::move(result));
  }

  // name [priority number] ["summary"]
  void header() {
    FusionPattern& p = *current_;
    const std::size_t token = cursor_.at();
    p.name = cursor_.word("the pattern's name");
    if (!file_.empty())
      p.line = cursor_.line_of(token);  // counted from the text's beginning: not for the built-in ones
    if (p.name.find('.') == std::string::npos)
      cursor_.fail(token, "a pattern's name begins with its backend", "a name such as \"fusec.swiglu\"");
    if (std::ranges::find(patterns_, p.name, &FusionPattern::name) != patterns_.end())
      cursor_.fail(token, "two patterns of one name", "another name than a pattern above has");
    if (cursor_.take_word("priority")) p.priority = static_cast<int>(cursor_.whole_number());
    if (cursor_.is_text()) p.summary = cursor_.text();
  }

  void clause() {
    FusionPattern& p = *current_;
    const std::size_t token = cursor_.at();
    const std::string_view word = cursor_.word("a clause");
    if (!is_clause(word))
      cursor_.fail(token, "no such clause", fmt::format("one of {}", fmt::join(clause_names(), ", ")),
                   did_you_mean(word, clause_names()));
    if (word == "match") {
      once(met_.match, word, token);
      const std::size_t begin = cursor_.peek().offset;
      p.match = terms_.read_match();
      p.match_text = cursor_.text_since(begin);
      return;
    }
    if (!met_.match) cursor_.fail(token, fmt::format("{} before match", word), "match");
    if (word == "where") {
      conditions();
    } else if (word == "becomes") {
      once(met_.becomes, word, token);
      becomes();
    } else if (word == "escapes") {
      do p.escaping.push_back(terms_.known_name());
      while (cursor_.take(','));
    } else if (word == "attributes") {
      met_.attributes = token;
      do group_attribute();
      while (cursor_.take(','));
    } else {
      once(met_.bind_constants, word, token);
      p.bind_constants = true;
    }
  }

  void once(std::optional<std::size_t>& met, std::string_view clause, std::size_t token) const {
    if (met) cursor_.fail(token, fmt::format("a second {}", clause), "one in a pattern");
    met = token;
  }

  void check_whole() const {
    const FusionPattern& p = *current_;
    check_roots(p.match);
    if (p.becomes != Becomes::kRewrite) return;
    if (const PatternTerm* through = find_term(p.match, [](Kind k) { return k == Kind::kThrough; }))
      cursor_.fail(through->token, "a rewriting pattern looks through transparent nodes", "no '~'",
                   "name what may stand between: cast(x)?");
    const PatternTerm* open =
        find_term(p.replacement, [](Kind k) { return k != Kind::kName && k != Kind::kNumber && k != Kind::kNode; });
    if (open)
      cursor_.fail(open->token, "what a pattern becomes leaves open which value is meant",
                   "a name of the match, a number, or an op and its operands");
    if (met_.attributes) cursor_.fail(*met_.attributes, "attributes are of groups", "none beside a rewrite");
    if (met_.bind_constants)
      cursor_.fail(*met_.bind_constants, "constants are bound to groups", "none beside a rewrite");
  }

  void check_roots(const PatternTerm& t) const {
    if (t.kind == Kind::kAlternatives) {
      for (const PatternTerm& each : t.operands) check_roots(each);
    } else if (t.kind != Kind::kChain && (t.kind != Kind::kNode || t.may_be_absent || t.output)) {
      cursor_.fail(t.token, "the match does not begin with a node", "an op and its operands");
    }
  }

  void becomes() {
    FusionPattern& p = *current_;
    const std::size_t begin = cursor_.peek().offset;
    if (cursor_.take_word("group")) {
      p.becomes = Becomes::kGroup;
    } else if (cursor_.take_word("call")) {
      p.becomes = Becomes::kLibrary;
      const std::size_t token = cursor_.at();
      if (cursor_.word("a library") != "cublaslt") cursor_.fail(token, "no such library", "cublaslt");
      p.code = GroupCode::kCublasLt;
    } else {
      p.becomes = Becomes::kRewrite;
      const std::size_t token = cursor_.at();
      if (!cursor_.is_word() || !cursor_.is_sign('(', 1))
        cursor_.fail(token, "what it becomes is no node", "group, call, or an op and its operands");
      p.replacement = terms_.read_replacement();
      if (p.replacement.kind != Kind::kNode)
        cursor_.fail(token, "what it becomes is no node", "group, call, or an op and its operands");
    }
    p.becomes_text = cursor_.text_since(begin);
  }

  void group_attribute() {
    const std::string attribute(cursor_.word("an attribute's name"));
    cursor_.demand('=');
    current_->group_attributes.emplace_back(attribute, terms_.known_name());
  }

  // --- conditions

  bool is_condition_next() const {
    return cursor_.is_word() && !is_clause(cursor_.peek().text) && !starts_declaration(cursor_.peek().text);
  }

  // Conditions that must all hold: "a(x) b(x)", "a(x), b(x)" or "a(x) and b(x)".
  void conditions() {
    do {
      if (!is_condition_next()) cursor_.unexpected("a condition");
      current_->conditions.push_back(condition());
    } while (cursor_.take(',') || cursor_.take_word("and") || is_condition_next());
  }

  PatternCondition condition() {
    PatternCondition c;
    const std::size_t begin = cursor_.peek().offset;
    c.negated = cursor_.take_word("not");
    const std::size_t token = cursor_.at();
    c.predicate = cursor_.word("a condition");
    const std::vector<std::string_view>& known = condition_names();
    if (std::ranges::find(known, c.predicate) == known.end()) no_condition(token, known);
    cursor_.demand('(');
    std::vector<std::size_t> places;
    while (!cursor_.take(')')) {
      if (!c.arguments.empty()) cursor_.demand(',');
      places.push_back(cursor_.at());
      c.arguments.push_back(condition_argument());
    }
    c.text = cursor_.text_since(begin);
    if (const auto fault = wrong_in_condition(c)) {
      const std::string& word = fault->argument ? c.arguments[*fault->argument].word : "";
      cursor_.fail(fault->argument ? places[*fault->argument] : token, fault->what, fault->expected,
                   fault->wants_name ? terms_.nearest_name(word) : "");
    }
    return c;
  }

  // The hint also considers clauses, since the word may be a misspelt clause.
  [[noreturn]] void no_condition(std::size_t token, const std::vector<std::string_view>& known) const {
    std::vector<std::string_view> words = known;
    for (const std::string_view clause : clause_names()) words.push_back(clause);
    cursor_.fail(token, "no such condition", fmt::format("one of {}", fmt::join(known, ", ")),
                 did_you_mean(cursor_.token(token).text, words));
  }

  PatternCondition::Argument condition_argument() {
    PatternCondition::Argument argument;
    if (cursor_.is_number()) {
      argument.number = cursor_.number();
    } else {
      argument.word = cursor_.word("a name, a number or a word");
      if (const auto name = terms_.find_name(argument.word)) argument.name = *name;
    }
    return argument;
  }

  const std::string& file_;
  PatternCursor cursor_;
  const std::shared_ptr<PatternMemory> memory_ = std::make_shared<PatternMemory>();
  PatternTermReader terms_;
  std::vector<FusionPattern> patterns_;
  FusionPattern* current_ = nullptr;
  Met met_;
};

}  // namespace

std::vector<FusionPattern> parse_patterns(std::string_view text, const std::string& file) {
  return PatternReader(text, file).run();
}

}  // namespace fusec
