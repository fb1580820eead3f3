#include "transforms/patterns/pattern_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <map>

#include "ir/error.h"
#include "ir/spelling.h"
#include "transforms/patterns/conditions.h"
#include "transforms/patterns/pattern_tokens.h"

namespace fusec {
namespace {

using Token = PatternToken;

constexpr std::string_view kClauses[] = {"match", "where", "becomes", "escapes", "attributes", "bind_constants"};
constexpr std::string_view kFunctions[] = {"shape", "dtype", "number", "last_dims", "extents", "extent", "batched"};
constexpr std::size_t kLongestPattern = 20000;  // terms, after forms have been put in
constexpr int kDeepest = 200;

bool is_clause(std::string_view word) {
  return std::ranges::find(kClauses, word) != std::end(kClauses);
}
bool starts_declaration(std::string_view word) {
  return word == "pattern" || word == "define";
}

// define silu_of(g) = silu(g) | mul(g, sigmoid(g))
struct Form {
  std::vector<std::string_view> parameters;
  std::size_t body = 0;  // index of its first token
};

class PatternParser {
 public:
  PatternParser(std::string_view text, const std::string& file)
      : text_(text), file_(file), tokens_(pattern_tokens(text, file)) {}

  std::vector<FusionPattern> run() {
    while (peek().kind != Token::Kind::kEnd) {
      if (take_word("define"))
        form();
      else if (take_word("pattern"))
        pattern();
      else
        unexpected("pattern or define");
    }
    return std::move(patterns_);
  }

 private:
  const Token& peek(std::size_t ahead = 0) const { return tokens_[std::min(at_ + ahead, tokens_.size() - 1)]; }
  bool is_sign(char c, std::size_t ahead = 0) const {
    return peek(ahead).kind == Token::Kind::kSign && peek(ahead).text[0] == c;
  }
  bool take(char c) {
    if (!is_sign(c)) return false;
    ++at_;
    return true;
  }
  void demand(char c) {
    if (!take(c)) unexpected(fmt::format("'{}'", c));
  }
  bool take_word(std::string_view word) {
    if (peek().kind != Token::Kind::kWord || peek().text != word) return false;
    ++at_;
    return true;
  }
  std::string_view word(const char* expected) {
    if (peek().kind != Token::Kind::kWord) unexpected(expected);
    return tokens_[at_++].text;
  }

  [[noreturn]] void fail(std::size_t token, std::string what, std::string expected = "", std::string hint = "") const {
    const Token& t = tokens_[std::min(token, tokens_.size() - 1)];
    throw Error(ErrorKind::kInput, {.file = file_.empty() ? "built-in patterns" : file_,
                                    .what = fmt::format("{}: {}", place_in_text(text_, t.offset), what),
                                    .found = t.kind == Token::Kind::kEnd ? "the end of the file" : in_quotes(t.text),
                                    .expected = std::move(expected),
                                    .hint = std::move(hint)});
  }
  [[noreturn]] void unexpected(const std::string& expected) const { fail(at_, "unexpected word", expected); }

  // --- declarations

  void form() {
    const std::size_t name_token = at_;
    const std::string_view name = word("the name of a form");
    if (forms_.contains(name)) fail(name_token, "a form of this name is there already");
    if (OpTable::builtin().find(name)) fail(name_token, "a form may not be called as an op is");
    Form form;
    demand('(');
    while (!take(')')) {
      if (!form.parameters.empty()) demand(',');
      form.parameters.push_back(word("the name of a parameter"));
    }
    demand('=');
    form.body = at_;
    // Read once for what is wrong in it; where it is used it is read again, with what its parameters stand for.
    FusionPattern trial;
    current_ = &trial;
    terms_ = 0;
    std::map<std::string_view, PatternTerm> arguments;
    for (const std::string_view p : form.parameters) arguments[p] = PatternTerm{};
    parameters_ = &arguments;
    alternatives();
    parameters_ = nullptr;
    forms_.emplace(name, std::move(form));
  }

  void pattern() {
    FusionPattern result;
    current_ = &result;
    result.file = file_;
    terms_ = 0;
    const std::size_t name_token = at_;
    result.name = word("the pattern's name");
    if (result.name.find('.') == std::string::npos)
      fail(name_token, "a pattern's name begins with its backend", "a name such as \"fusec.swiglu\"");
    if (std::ranges::find(patterns_, result.name, &FusionPattern::name) != patterns_.end())
      fail(name_token, "two patterns of one name", "another name than a pattern above has");
    if (take_word("priority")) result.priority = static_cast<int>(whole_number());
    if (peek().kind == Token::Kind::kText) result.summary = tokens_[at_++].text;
    bool has_match = false, has_becomes = false;
    std::size_t attributes_token = 0;
    while (peek().kind == Token::Kind::kWord && !starts_declaration(peek().text)) {
      const std::size_t clause_token = at_;
      const std::string_view clause = word("a clause");
      if (clause == "match") {
        if (has_match) fail(clause_token, "a second match");
        const std::size_t begin = peek().offset;
        result.match = alternatives();
        result.match_text = text_since(begin);
        has_match = true;
      } else if (clause == "where") {
        if (!has_match) fail(clause_token, "where before match");
        conditions();
      } else if (clause == "becomes") {
        if (!has_match) fail(clause_token, "becomes before match");
        becomes();
        has_becomes = true;
      } else if (clause == "escapes") {
        do result.escaping.push_back(known_name());
        while (take(','));
      } else if (clause == "attributes") {
        attributes_token = clause_token;
        do group_attribute();
        while (take(','));
      } else if (clause == "bind_constants") {
        result.bind_constants = true;
      } else {
        fail(clause_token, "no such clause", fmt::format("one of {}", fmt::join(kClauses, ", ")));
      }
    }
    // Told where the pattern ends.
    if (!has_match) fail(at_, fmt::format("{} is a pattern without match", result.name), "match");
    if (!has_becomes) fail(at_, fmt::format("{} is a pattern without becomes", result.name), "becomes");
    check_whole(attributes_token, result);
    patterns_.push_back(std::move(result));
  }

  void check_whole(std::size_t attributes_token, const FusionPattern& p) const {
    using Kind = PatternTerm::Kind;
    check_roots(p.match);
    if (p.becomes != Becomes::kRewrite) return;
    if (const PatternTerm* through = find_term(p.match, [](Kind k) { return k == Kind::kThrough; }))
      fail(through->token, "a rewriting pattern looks through transparent nodes", "no '~'",
           "name what may stand between: cast(x)?");
    const PatternTerm* open =
        find_term(p.replacement, [](Kind k) { return k != Kind::kName && k != Kind::kNumber && k != Kind::kNode; });
    if (open)
      fail(open->token, "what a pattern becomes leaves open which value is meant",
           "a name of the match, a number, or an op and its operands");
    if (!p.group_attributes.empty()) fail(attributes_token, "attributes are of groups", "none beside a rewrite");
  }

  void check_roots(const PatternTerm& t) const {
    using Kind = PatternTerm::Kind;
    if (t.kind == Kind::kAlternatives) {
      for (const PatternTerm& each : t.operands) check_roots(each);
    } else if (t.kind != Kind::kChain && (t.kind != Kind::kNode || t.may_be_absent || t.output)) {
      fail(t.token, "the match does not begin with a node", "an op and its operands");
    }
  }

  template <typename IsIt>
  static const PatternTerm* find_term(const PatternTerm& t, const IsIt& is_it) {
    if (is_it(t.kind)) return &t;
    for (const PatternTerm& operand : t.operands)
      if (const PatternTerm* found = find_term(operand, is_it)) return found;
    return nullptr;
  }

  void becomes() {
    FusionPattern& p = *current_;
    const std::size_t begin = peek().offset;
    if (take_word("group")) {
      p.becomes = Becomes::kGroup;
    } else if (take_word("call")) {
      p.becomes = Becomes::kLibrary;
      const std::size_t library_token = at_;
      if (word("a library") != "cublaslt") fail(library_token, "no such library", "cublaslt");
      p.code = GroupCode::kCublasLt;
    } else {
      p.becomes = Becomes::kRewrite;
      replacing_ = true;
      const std::size_t token = at_;
      p.replacement = alternative();
      replacing_ = false;
      if (p.replacement.kind != PatternTerm::Kind::kNode)
        fail(token, "what it becomes is no node", "group, call, or an op and its operands");
    }
    p.becomes_text = text_since(begin);
  }

  void group_attribute() {
    const std::string attribute(word("an attribute's name"));
    demand('=');
    current_->group_attributes.emplace_back(attribute, known_name());
  }

  bool is_condition_next() const {
    return peek().kind == Token::Kind::kWord && !is_clause(peek().text) && !starts_declaration(peek().text);
  }

  // "a(x) b(x)", "a(x), b(x)", "a(x) and b(x)": all of them.
  void conditions() {
    while (is_condition_next()) {
      current_->conditions.push_back(condition());
      const bool goes_on = take(',') || take_word("and");
      if (goes_on && !is_condition_next()) unexpected("a condition");
    }
  }

  PatternCondition condition() {
    PatternCondition c;
    const std::size_t begin = peek().offset;
    c.negated = take_word("not");
    const std::size_t token = at_;
    c.predicate = word("a condition");
    const std::vector<std::string_view> known = condition_names();
    if (std::ranges::find(known, c.predicate) == known.end()) no_condition(token, known);
    demand('(');
    std::vector<std::size_t> places;
    while (!take(')')) {
      if (!c.arguments.empty()) demand(',');
      places.push_back(at_);
      c.arguments.push_back(condition_argument());
    }
    c.text = text_since(begin);
    if (const auto fault = wrong_in_condition(c)) {
      const std::string& word = fault->argument ? c.arguments[*fault->argument].word : "";
      fail(fault->argument ? places[*fault->argument] : token, fault->what, fault->expected,
           fault->wants_name ? nearest_name(word) : "");
    }
    return c;
  }

  // It may be a clause that is misspelt, too.
  [[noreturn]] void no_condition(std::size_t token, const std::vector<std::string_view>& known) const {
    std::vector<std::string_view> words = known;
    words.insert(words.end(), std::begin(kClauses), std::end(kClauses));
    fail(token, "no such condition", fmt::format("one of {}", fmt::join(known, ", ")),
         did_you_mean(tokens_[token].text, words));
  }

  PatternCondition::Argument condition_argument() {
    PatternCondition::Argument argument;
    if (peek().kind == Token::Kind::kNumber) {
      argument.number = number();
    } else {
      const std::string_view w = word("a name, a number or a word");
      argument.word = w;
      if (const auto known = std::ranges::find(current_->names, w); known != current_->names.end())
        argument.name = static_cast<std::uint32_t>(known - current_->names.begin());
    }
    return argument;
  }

  // --- terms

  struct Deeper {
    explicit Deeper(PatternParser& parser) : parser_(parser) {
      if (++parser_.depth_ > kDeepest) parser_.fail(parser_.at_, "terms inside of terms, too deep");
      if (++parser_.terms_ > kLongestPattern) parser_.fail(parser_.at_, "a pattern too large");
    }
    ~Deeper() { --parser_.depth_; }
    PatternParser& parser_;
  };

  PatternTerm alternatives() {
    PatternTerm first = alternative();
    if (!is_sign('|')) return first;
    PatternTerm all{.kind = PatternTerm::Kind::kAlternatives};
    all.token = first.token;
    all.operands.push_back(std::move(first));
    while (take('|')) all.operands.push_back(alternative());
    return all;
  }

  // [name ":"] primary
  PatternTerm alternative() {
    const Deeper deeper(*this);
    std::uint32_t name = kNoName;
    if (peek().kind == Token::Kind::kWord && is_sign(':', 1)) {
      const std::size_t token = at_;
      name = given_name(word("a name"), token);
      ++at_;
    }
    const std::size_t term_token = at_;
    PatternTerm term = primary();
    if (term.token == 0) term.token = term_token;
    if (name == kNoName) return term;
    if (term.name == kNoName && term.kind != PatternTerm::Kind::kName) {
      term.name = name;
      return term;
    }
    // What has a name already gets a second one around it.
    PatternTerm named{.kind = PatternTerm::Kind::kAlternatives, .name = name};
    named.token = term_token;
    named.operands.push_back(std::move(term));
    return named;
  }

  PatternTerm primary() {
    using Kind = PatternTerm::Kind;
    if (take('(')) {
      PatternTerm inner = alternatives();
      demand(')');
      return optional_of(std::move(inner));
    }
    if (take('~')) {
      PatternTerm through{.kind = Kind::kThrough};
      through.operands.push_back(alternative());
      return through;
    }
    if (peek().kind == Token::Kind::kNumber) {
      PatternTerm term{.kind = Kind::kNumber};
      term.exact = peek().text.find_first_of(".eE") == std::string_view::npos || peek().text.ends_with("inf");
      term.number = number();
      return term;
    }
    const std::size_t token = at_;
    const std::string_view w = word("a term");
    if (w == "_") return {};
    if (take('(')) return call(w, token);
    if (is_clause(w) || starts_declaration(w)) fail(token, "a name that is a word of the language");
    if (parameters_) {
      if (const auto it = parameters_->find(w); it != parameters_->end()) {
        terms_ += size_of(it->second);
        if (terms_ > kLongestPattern) fail(token, "a pattern too large");
        return it->second;
      }
    }
    PatternTerm term{.kind = Kind::kName, .name = replacing_ ? known_name(w, token) : name_number(w)};
    term.may_be_absent = take('?');
    return term;
  }

  // "term?": the node, or what its first operand is.
  PatternTerm optional_of(PatternTerm term) {
    if (!is_sign('?')) return term;
    const std::size_t token = at_++;
    const PatternTerm* node = &term;
    const bool is_node = node->kind == PatternTerm::Kind::kNode || node->kind == PatternTerm::Kind::kChain;
    if (!is_node || node->operands.empty()) fail(token, "only a node with an operand may be absent", "cast(x)?");
    PatternTerm either{.kind = PatternTerm::Kind::kAlternatives};
    PatternTerm operand = term.operands[0];
    either.operands.push_back(std::move(term));
    either.operands.push_back(std::move(operand));
    return either;
  }

  static std::size_t size_of(const PatternTerm& t) {
    std::size_t size = 1;
    for (const PatternTerm& operand : t.operands) size += size_of(operand);
    return size;
  }

  PatternTerm call(std::string_view w, std::size_t token) {
    if (const auto form = forms_.find(w); form != forms_.end()) return optional_of(use(form->second, token));
    PatternTerm term{.kind = PatternTerm::Kind::kNode, .op = std::string(w)};
    const OpDef* op = OpTable::builtin().find(w);
    if (w == "chain" && !replacing_) return chain();
    if (w == "known" && replacing_) return known();
    const bool is_class = (w == "view" || w == "permutation" || w == "transposed" || w == "piece") && !replacing_;
    if (!op && !is_class && (w.find('.') == std::string_view::npos || replacing_)) {
      const std::string nearest = OpTable::builtin().nearest(w);
      fail(token, "no such op",
           "an op of the table, view, permutation, transposed, piece, chain, a form defined above, or a custom op",
           nearest.empty() ? "" : "did you mean " + in_quotes(nearest) + "?");
    }
    bool first = true;
    while (!take(')')) {
      if (!first) demand(',');
      first = false;
      if (peek().kind == Token::Kind::kWord && is_sign('=', 1)) {
        term.attributes.push_back(attribute(op));
      } else {
        if (!term.attributes.empty()) unexpected("an attribute");
        if (op && !is_class && takes_no_more(*op, term.operands.size()))
          fail(at_, fmt::format("{} has no operand {}", op->name, term.operands.size() + 1),
               op->operands.empty() ? "no operands" : fmt::format("at most {}", fmt::join(op->operands, ", ")));
        term.operands.push_back(alternatives());
      }
    }
    if (is_sign('.') && peek(1).kind == Token::Kind::kNumber) {
      ++at_;
      term.output = static_cast<std::uint32_t>(whole_number());
    }
    return optional_of(std::move(term));
  }

  // A list ("tensors*", "tensors+") goes on without end.
  static bool takes_no_more(const OpDef& op, std::size_t count) {
    const bool is_list = !op.operands.empty() && op.operands.back().find_first_of("*+") != std::string::npos;
    return !is_list && count >= op.operands.size();
  }

  // known(...): computed now.
  PatternTerm known() {
    PatternTerm term{.kind = PatternTerm::Kind::kNode, .op = "known"};
    const std::size_t token = at_;
    term.operands.push_back(alternative());
    demand(')');
    if (term.operands[0].kind != PatternTerm::Kind::kNode) fail(token, "what is known is no node", "an op");
    return term;
  }

  // The rest of "chain(term)".
  PatternTerm chain() {
    PatternTerm term{.kind = PatternTerm::Kind::kChain};
    const std::size_t token = at_;
    term.operands.push_back(alternatives());
    if (!begins_with_node(term.operands[0]))
      fail(token, "a chain does not begin with a node", "an op and its operands");
    demand(')');
    return optional_of(std::move(term));
  }

  static bool begins_with_node(const PatternTerm& t) {
    if (t.kind == PatternTerm::Kind::kAlternatives) return std::ranges::all_of(t.operands, begins_with_node);
    return t.kind == PatternTerm::Kind::kNode;
  }

  PatternTerm use(const Form& form, std::size_t token) {
    std::map<std::string_view, PatternTerm> arguments;
    for (std::size_t i = 0; i < form.parameters.size(); ++i) {
      if (i > 0) demand(',');
      arguments[form.parameters[i]] = alternatives();
    }
    if (!take(')')) fail(token, "wrong number of arguments of a form", std::to_string(form.parameters.size()));
    const Deeper deeper(*this);
    const std::size_t after = at_;
    const auto* outer_parameters = parameters_;
    const std::string outer_prefix = prefix_;
    parameters_ = &arguments;
    prefix_ = fmt::format("{}'", ++uses_);
    at_ = form.body;
    PatternTerm term = alternatives();
    at_ = after;
    parameters_ = outer_parameters;
    prefix_ = outer_prefix;
    return term;
  }

  PatternAttribute attribute(const OpDef* op) {
    const std::size_t token = at_;
    PatternAttribute a{.name = std::string(word("an attribute"))};
    if (op && !op->custom &&
        std::ranges::none_of(op->attributes, [&](const AttributeSpec& s) { return s.name == a.name; }))
      fail(token, fmt::format("{} has no such attribute", op->name));
    demand('=');
    if (take('(')) {
      do attribute_value(a);
      while (take('|'));
      demand(')');
    } else {
      attribute_value(a);
    }
    return a;
  }

  void attribute_value(PatternAttribute& a) {
    if (peek().kind == Token::Kind::kText) {
      a.allowed.emplace_back(std::string(tokens_[at_++].text));
    } else if (replacing_ && (is_sign('*', 1) || is_sign('/', 1))) {
      factors(a);
    } else if (peek().kind == Token::Kind::kNumber) {
      if (peek().text.find_first_of(".eEi") == std::string_view::npos)
        a.allowed.emplace_back(integer());
      else
        a.allowed.emplace_back(number());
    } else if (take('[')) {
      std::vector<std::int64_t> list;
      while (!take(']')) {
        if (!list.empty()) demand(',');
        list.push_back(whole_number());
      }
      a.allowed.emplace_back(std::move(list));
    } else if (take_word("true")) {
      a.allowed.emplace_back(true);
    } else if (take_word("false")) {
      a.allowed.emplace_back(false);
    } else if (take_word("absent")) {
      a.may_be_absent = true;
    } else if (is_sign('(', 1)) {
      function_value(a);
    } else {
      const std::size_t token = at_;
      const std::string_view w = word("a literal or a name");
      if (w == "_") {
        a.may_be_absent = true;
        a.bound = name_number("_" + std::to_string(++uses_));
      } else {
        a.bound = replacing_ ? known_name(w, token) : given_name(w, token);
      }
    }
  }

  // A form's parameter stands for the name that it is given.
  std::uint32_t given_name(std::string_view w, std::size_t token) {
    const bool is_parameter = parameters_ && parameters_->contains(w);
    if (!is_parameter) return name_number(w);
    const PatternTerm& argument = parameters_->at(w);
    if (argument.kind == PatternTerm::Kind::kName) return argument.name;
    if (argument.kind != PatternTerm::Kind::kAny)
      fail(token, "what names something is given something else than a name");
    return name_number("_" + std::to_string(++uses_));
  }

  // "1/a", "a*b/c"
  void factors(PatternAttribute& a) {
    bool divides = false;
    do {
      PatternAttribute::Factor factor{.divides = divides};
      if (peek().kind == Token::Kind::kNumber)
        factor.number = number();
      else
        factor.name = known_name();
      a.factors.push_back(factor);
      if (take('*'))
        divides = false;
      else if (take('/'))
        divides = true;
      else
        break;
    } while (true);
  }

  void function_value(PatternAttribute& a) {
    const std::size_t token = at_;
    a.function = word("a function");
    if (!replacing_ || std::ranges::find(kFunctions, a.function) == std::end(kFunctions))
      fail(token, "no such function here", fmt::format("in what a pattern becomes: {}", fmt::join(kFunctions, ", ")));
    demand('(');
    a.argument = known_name();
    if (a.function == "extents" || a.function == "batched") {
      demand(',');
      a.second = known_name();
    } else if (take(',')) {
      a.count = whole_number();
    }
    demand(')');
  }

  // --- names and numbers

  std::uint32_t name_number(std::string_view w) {
    const std::string full = prefix_ + std::string(w);
    std::vector<std::string>& names = current_->names;
    const auto it = std::ranges::find(names, full);
    if (it != names.end()) return static_cast<std::uint32_t>(it - names.begin());
    names.push_back(full);
    return static_cast<std::uint32_t>(names.size() - 1);
  }

  std::uint32_t known_name() {
    const std::size_t token = at_;
    return known_name(word("a name of the match"), token);
  }
  std::uint32_t known_name(std::string_view w, std::size_t token) const {
    const auto it = std::ranges::find(current_->names, w);
    if (it == current_->names.end())
      fail(token, "a name that the match does not have", "a name of the match", nearest_name(w));
    return static_cast<std::uint32_t>(it - current_->names.begin());
  }

  std::string nearest_name(std::string_view w) const {
    std::vector<std::string_view> names;
    for (const std::string& name : current_->names)  // those of forms, and those that no one wrote, cannot be meant
      if (!name.starts_with('_') && name.find('\'') == std::string::npos) names.push_back(name);
    return did_you_mean(w, names);
  }

  double number() {
    if (peek().kind != Token::Kind::kNumber) unexpected("a number");
    const std::string digits(tokens_[at_++].text);
    char* end = nullptr;
    const double value = std::strtod(digits.c_str(), &end);
    if (end != digits.c_str() + digits.size()) fail(at_ - 1, "no number");
    if (std::isinf(value) && !digits.ends_with("inf")) fail(at_ - 1, "a number too large", "one that float64 holds");
    return value;
  }
  std::int64_t integer() {
    const std::string_view digits = tokens_[at_++].text;
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error == std::errc::result_out_of_range) fail(at_ - 1, "a number too large", "one that int64 holds");
    if (error != std::errc() || end != digits.data() + digits.size()) fail(at_ - 1, "no number");
    return value;
  }
  std::int64_t whole_number() {
    const std::size_t token = at_;
    const double value = number();
    if (!(std::abs(value) < 1e9) || value != std::floor(value)) fail(token, "no whole number");
    return static_cast<std::int64_t>(value);
  }

  // From there to the end of the last word read, with single blanks.
  std::string text_since(std::size_t begin) const {
    const Token& last = tokens_[at_ - 1];
    const std::size_t end = last.offset + last.text.size() + (last.kind == Token::Kind::kText ? 2 : 0);
    std::string result;
    for (const char c : text_.substr(begin, end - begin)) {
      const bool blank = c == ' ' || c == '\n' || c == '\t' || c == '\r';
      if (!blank) result += c;
      if (blank && !result.empty() && result.back() != ' ') result += ' ';
    }
    return result;
  }

  std::string_view text_;
  const std::string& file_;
  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  std::map<std::string_view, Form> forms_;
  std::vector<FusionPattern> patterns_;
  FusionPattern* current_ = nullptr;
  const std::map<std::string_view, PatternTerm>* parameters_ = nullptr;
  std::string prefix_;  // of names inside a form that is used: each use has its own
  int uses_ = 0, depth_ = 0;
  std::size_t terms_ = 0;
  bool replacing_ = false;
};

}  // namespace

std::vector<FusionPattern> parse_patterns(std::string_view text, const std::string& file) {
  return PatternParser(text, file).run();
}

PatternList ordered(std::vector<FusionPattern> patterns) {
  std::map<std::string, std::string> files;  // by name
  for (const FusionPattern& p : patterns) {
    const auto [first, is_new] = files.emplace(p.name, p.file);
    if (is_new) continue;
    // A user's pattern stands before the built-in ones: it is the user's file that can be mended.
    const std::string& other = first->second.empty() ? first->second : p.file;
    throw Error(ErrorKind::kInput,
                {.file = first->second.empty() ? p.file : first->second,
                 .what = "two patterns of one name",
                 .found = in_quotes(p.name),
                 .expected = fmt::format("another name than {} has",
                                         other.empty() ? "a built-in pattern" : "a pattern of " + other)});
  }
  std::ranges::stable_sort(patterns, [](const auto& a, const auto& b) { return a.priority > b.priority; });
  PatternList list;
  for (FusionPattern& p : patterns) list.push_back(std::make_shared<const FusionPattern>(std::move(p)));
  return list;
}

}  // namespace fusec
