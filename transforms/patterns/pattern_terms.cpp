#include "transforms/patterns/pattern_terms.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <unordered_map>

#include "ir/budget.h"
#include "ir/spelling.h"

namespace fusec {
namespace {

using Kind = PatternTerm::Kind;

constexpr std::size_t kLongestPattern = 20000;  // terms after the expansion of forms
constexpr std::size_t kDeepestPattern = 200;

bool begins_with_node(const PatternTerm& t) {
  if (t.kind == Kind::kAlternatives) return std::ranges::all_of(t.operands, begins_with_node);
  return t.kind == Kind::kNode;
}

// Whether the op has at most `count` operands. An op with a list ("tensors*", "tensors+") has no limit.
bool takes_no_more(const OpDef& op, std::size_t count) {
  const bool is_list = !op.operands.empty() && op.operands.back().find_first_of("*+") != std::string::npos;
  return !is_list && count >= op.operands.size();
}

// The first required operand of the op after the `count` given ones.
std::optional<std::string_view> missing_operand(const OpDef& op, std::size_t count) {
  for (std::size_t i = count; i < op.operands.size(); ++i)
    if (op.operands[i].find_first_of("?*+") == std::string::npos) return op.operands[i];
  return std::nullopt;
}

}  // namespace

struct PatternTermReader::Deeper {
  explicit Deeper(PatternTermReader& reader) : reader_(reader) {
    const PatternCursor& cursor = reader.cursor_;
    if (++reader_.depth_ > kDeepestPattern) reader_.too_deep(cursor.at());
    if (++reader_.terms_ > kLongestPattern) cursor.fail(cursor.at(), "a pattern too large");
  }
  ~Deeper() { --reader_.depth_; }
  PatternTermReader& reader_;
};

PatternTerm PatternTermReader::around(Kind kind, const PatternTerm& inner) {
  PatternTerm term{.kind = kind};
  term.operands = memory_.keep(std::span(&inner, 1));
  return term;
}

void PatternTermReader::too_deep(std::size_t token) const {
  cursor_.fail(token, "terms inside of terms, too deep");
}

void PatternTermReader::read_form() {
  const std::size_t name_token = cursor_.at();
  const std::string_view name = cursor_.word("the name of a form");
  if (is_clause(name) || starts_declaration(name)) cursor_.fail(name_token, "a name that is a word of the language");
  if (forms_.contains(name)) cursor_.fail(name_token, "a form of this name is there already");
  if (OpTable::builtin().find(name)) cursor_.fail(name_token, "a form may not be called as an op is");
  Form form;
  cursor_.demand('(');
  while (!cursor_.take(')')) {
    count_step();
    if (!form.parameters.empty()) cursor_.demand(',');
    const std::size_t token = cursor_.at();
    const std::string_view parameter = cursor_.word("the name of a parameter");
    if (std::ranges::find(form.parameters, parameter) != form.parameters.end())
      cursor_.fail(token, "two parameters of one name");
    form.parameters.push_back(parameter);
  }
  cursor_.demand('=');
  begin_pattern(form.names);
  for (const std::string_view p : form.parameters) name_number(p);
  form_ = &form;
  form.body = alternatives();
  form_ = nullptr;
  forms_.emplace(name, std::move(form));
}

void PatternTermReader::begin_pattern(std::vector<std::string>& names) {
  names_ = &names;
  terms_ = 0;
  used_.clear();
}

PatternTerm PatternTermReader::read_replacement() {
  replacing_ = true;
  PatternTerm term = alternative();
  replacing_ = false;
  return term;
}

PatternTerm PatternTermReader::alternatives() {
  PatternTerm first = alternative();
  if (!cursor_.is_sign('|')) return first;
  PatternTerm all{.kind = Kind::kAlternatives};
  all.token = first.token;
  std::vector<PatternTerm> each = {first};
  while (cursor_.take('|')) each.push_back(alternative());
  all.operands = memory_.keep(each);
  return all;
}

// [name ":"] primary
PatternTerm PatternTermReader::alternative() {
  const Deeper deeper(*this);
  std::uint32_t name = kNoName;
  if (cursor_.is_word() && cursor_.is_sign(':', 1)) {
    name = name_number(cursor_.word("a name"));
    cursor_.take(':');
  }
  const std::size_t term_token = cursor_.at();
  PatternTerm term = primary();
  if (term.token == 0) term.token = term_token;
  if (name == kNoName) return term;
  if (term.name == kNoName && term.kind != Kind::kName) {
    term.name = name;
    return term;
  }
  // A term with a name gets a second name from a term around it.
  PatternTerm named = around(Kind::kAlternatives, term);
  named.name = name;
  named.token = term_token;
  return named;
}

PatternTerm PatternTermReader::primary() {
  if (cursor_.take('(')) {
    PatternTerm inner = alternatives();
    cursor_.demand(')');
    return optional_of(inner);
  }
  if (cursor_.take('~')) return around(Kind::kThrough, alternative());
  if (cursor_.is_number()) {
    PatternTerm term{.kind = Kind::kNumber};
    const std::string_view digits = cursor_.peek().text;
    term.exact = digits.find_first_of(".eE") == std::string_view::npos || digits.ends_with("inf");
    term.number = cursor_.number();
    return term;
  }
  const std::size_t token = cursor_.at();
  const std::string_view word = cursor_.word("a term");
  if (word == "_") return {};
  if (cursor_.take('(')) return call(word, token);  // where(...) is an op, too
  if (is_clause(word) || starts_declaration(word)) cursor_.fail(token, "a word of the language", "a term");
  PatternTerm term{.kind = Kind::kName, .name = replacing_ ? known_name(word, token) : name_number(word)};
  term.may_be_absent = !is_parameter(word) && cursor_.take('?');
  return term;
}

// A copy of a term that occurs elsewhere, counted against the limit.
PatternTerm PatternTermReader::shared(const PatternTerm& term, std::size_t token) {
  terms_ += 1 + term.operands.count_in_all();
  if (terms_ > kLongestPattern) cursor_.fail(token, "a pattern too large");
  return term;
}

// Parses the "?" of "cast(x)?": the node, or else its first operand.
PatternTerm PatternTermReader::optional_of(const PatternTerm& term) {
  if (!cursor_.is_sign('?')) return term;
  const std::size_t token = cursor_.at();
  cursor_.take('?');
  const bool is_node = term.kind == Kind::kNode || term.kind == Kind::kChain;
  if (!is_node || term.operands.empty()) cursor_.fail(token, "only a node with an operand may be absent", "cast(x)?");
  PatternTerm either{.kind = Kind::kAlternatives};
  either.operands = memory_.keep(std::array{term, term.operands.front()});
  return either;
}

PatternTerm PatternTermReader::call(std::string_view word, std::size_t token) {
  if (const auto form = forms_.find(word); form != forms_.end()) return optional_of(use(word, form->second, token));
  if (word == "chain" && !replacing_) return chain();
  if ((word == "known" || word == "folded") && replacing_) return known(word);
  const OpDef* op = OpTable::builtin().find(word);
  const bool is_class =
      (word == "view" || word == "permutation" || word == "transposed" || word == "piece") && !replacing_;
  if (!op && !is_class && (word.find('.') == std::string_view::npos || replacing_)) no_op(word, token);
  PatternTerm term{.kind = Kind::kNode, .op = op ? std::string_view(op->name) : memory_.keep(word)};
  read_operands(term, is_class ? nullptr : op, token);
  if (cursor_.is_sign('.') && cursor_.is_number(1)) {
    cursor_.take('.');
    term.output = static_cast<std::uint32_t>(cursor_.whole_number());
  }
  return optional_of(term);
}

void PatternTermReader::no_op(std::string_view word, std::size_t token) const {
  const std::string nearest = OpTable::builtin().nearest(word);
  cursor_.fail(token, "no such op",
               "an op of the table, view, permutation, transposed, piece, chain, a form defined above, or a custom op",
               nearest.empty() ? "" : "did you mean " + in_quotes(nearest) + "?");
}

// Parses operands and then attributes, up to the closing parenthesis.
void PatternTermReader::read_operands(PatternTerm& term, const OpDef* op, std::size_t token) {
  std::vector<PatternTerm> operands;
  std::vector<PatternAttribute> attributes;
  if (op) operands.reserve(op->operands.size());
  bool first = true;
  while (!cursor_.take(')')) {
    count_step();
    if (!first) cursor_.demand(',');
    first = false;
    if (cursor_.is_word() && cursor_.is_sign('=', 1)) {
      attributes.push_back(attribute(op));
      continue;
    }
    if (!attributes.empty()) cursor_.unexpected("an attribute");
    if (op && takes_no_more(*op, operands.size()))
      cursor_.fail(cursor_.at(), fmt::format("{} has no operand {}", op->name, operands.size() + 1),
                   op->operands.empty() ? "no operands" : fmt::format("at most {}", fmt::join(op->operands, ", ")));
    operands.push_back(alternatives());
  }
  if (op && !op->custom) {
    if (const auto missing = missing_operand(*op, operands.size()))
      cursor_.fail(token, fmt::format("{} has an operand {} that is never absent", op->name, *missing),
                   fmt::format("{}({})", op->name, fmt::join(op->operands, ", ")), "_ is any value");
  }
  term.operands = memory_.keep(operands);
  term.attributes = memory_.keep(std::move(attributes));
}

// known(...) is computed at compile time. folded(...) is computed at compile time, or else by M_prepare.
PatternTerm PatternTermReader::known(std::string_view word) {
  const std::size_t token = cursor_.at();
  PatternTerm term = around(Kind::kNode, alternative());
  term.op = memory_.keep(word);
  cursor_.demand(')');
  if (term.operands.front().kind != Kind::kNode)
    cursor_.fail(token, fmt::format("what is {} is no node", word), "an op");
  return term;
}

// Parses the rest of "chain(term)".
PatternTerm PatternTermReader::chain() {
  const std::size_t token = cursor_.at();
  PatternTerm term = around(Kind::kChain, alternatives());
  if (!begins_with_node(term.operands.front()))
    cursor_.fail(token, "a chain does not begin with a node", "an op and its operands");
  cursor_.demand(')');
  return optional_of(term);
}

// The terms of a form, with these arguments in place of its parameters and with new own names.
class PatternTermReader::Expansion {
 public:
  Expansion(PatternTermReader& reader, const Form& form, const Arguments& arguments)
      : reader_(reader), form_(form), arguments_(arguments), prefix_(std::to_string(++reader.uses_) + "'") {
    may_share_ = std::ranges::none_of(arguments, [](const auto& each) { return each.kind == Kind::kAny; });
  }

  PatternTerm of(const PatternTerm& t) {
    count_step();
    if (t.kind == Kind::kName && t.name < arguments_.size()) return arguments_[t.name];
    if (reader_.replacing_ && t.kind == Kind::kNode && !OpTable::builtin().find(t.op)) reader_.no_op(t.op, t.token);
    PatternTerm term = t;
    if (t.name != kNoName) term.name = name(t.name, t.token);
    term.operands = of(t.operands);
    term.attributes = of(t.attributes, t.token);
    // "g: x" names the argument itself if it has no name.
    if (t.kind != Kind::kAlternatives || t.operands.size() != 1) return term;
    PatternTerm inner = term.operands.front();
    if (inner.name != kNoName || inner.kind == Kind::kName) return term;
    inner.name = term.name;
    return inner;
  }

 private:
  PatternTerms of(const PatternTerms& terms) {
    if (terms.empty()) return terms;
    if (const auto known = made_.find(terms.begin()); known != made_.end()) return known->second;
    const std::span<PatternTerm> each = reader_.memory_.room_for(terms.size());
    for (std::size_t i = 0; i < each.size(); ++i) each[i] = of(terms[i]);
    const PatternTerms result = reader_.memory_.kept(each);
    if (may_share_) made_.emplace(terms.begin(), result);
    return result;
  }

  std::span<const PatternAttribute> of(std::span<const PatternAttribute> attributes, std::size_t token) {
    const auto is_bound = [](const PatternAttribute& a) { return a.bound != kNoName; };
    if (std::ranges::none_of(attributes, is_bound)) return attributes;
    std::vector<PatternAttribute> each(attributes.begin(), attributes.end());
    for (PatternAttribute& attribute : each)
      if (is_bound(attribute)) attribute.bound = name(attribute.bound, token);
    return reader_.memory_.keep(std::move(each));
  }

  std::uint32_t name(std::uint32_t number, std::size_t token) {
    if (number >= arguments_.size())
      return reader_.replacing_ ? reader_.known_name(form_.names[number], token)
                                : reader_.name_number(prefix_ + form_.names[number]);
    const PatternTerm& given = arguments_[number];
    if (given.kind == Kind::kName) return given.name;
    if (given.kind != Kind::kAny)
      reader_.cursor_.fail(given.token, "what names something is given something else than a name");
    return reader_.name_number("_" + std::to_string(++reader_.uses_));
  }

  PatternTermReader& reader_;
  const Form& form_;
  const Arguments& arguments_;
  const std::string prefix_;  // of own names
  bool may_share_ = true;     // false if an argument is "_", which gets a new name at each place
  std::pmr::monotonic_buffer_resource memory_;
  std::pmr::unordered_map<const PatternTerm*, PatternTerms> made_{&memory_};
};

PatternTerm PatternTermReader::use(std::string_view word, const Form& form, std::size_t token) {
  const auto wrong_count = [&](std::size_t at) {
    cursor_.fail(at, "wrong number of arguments of a form",
                 fmt::format("{}({})", word, fmt::join(form.parameters, ", ")));
  };
  Arguments arguments;
  while (!cursor_.take(')')) {
    count_step();
    if (!arguments.empty()) cursor_.demand(',');
    if (arguments.size() == form.parameters.size()) wrong_count(cursor_.at());
    arguments.push_back(alternatives());
  }
  if (arguments.size() != form.parameters.size()) wrong_count(token);
  const Deeper deeper(*this);
  std::vector<Used>& used = used_[word];
  const auto found = std::ranges::find_if(used, [&](const Used& u) { return are_same(u.arguments, arguments); });
  if (found != used.end()) return shared(found->term, token);
  PatternTerm term = Expansion(*this, form, arguments).of(form.body);
  if (depth_ + term.operands.depth() > kDeepestPattern) too_deep(token);
  if (!form.has_own_names()) used.push_back({std::move(arguments), term});
  return shared(term, token);
}

// Compares arguments shallowly: terms with operands are equal only if they share them.
bool PatternTermReader::are_same(const Arguments& a, const Arguments& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    count_step();
    const PatternTerm &x = a[i], &y = b[i];
    if (x.kind != y.kind || x.kind == Kind::kAny || x.name != y.name || x.may_be_absent != y.may_be_absent ||
        x.number != y.number || x.exact != y.exact || x.op != y.op || x.output != y.output || !x.attributes.empty() ||
        !y.attributes.empty() || x.operands.begin() != y.operands.begin())
      return false;
  }
  return true;
}

bool PatternTermReader::is_parameter(std::string_view word) const {
  return form_ && std::ranges::find(form_->parameters, word) != form_->parameters.end();
}

std::uint32_t PatternTermReader::name_number(std::string_view word) {
  const std::ptrdiff_t number = std::ranges::find(*names_, word) - names_->begin();
  if (static_cast<std::size_t>(number) == names_->size()) names_->emplace_back(word);
  return static_cast<std::uint32_t>(number);
}

std::uint32_t PatternTermReader::known_name() {
  const std::size_t token = cursor_.at();
  return known_name(cursor_.word("a name of the match"), token);
}

std::uint32_t PatternTermReader::known_name(std::string_view word, std::size_t token) const {
  const std::optional<std::uint32_t> found = find_name(word);
  if (!found) cursor_.fail(token, "a name that the match does not have", "a name of the match", nearest_name(word));
  return *found;
}

std::optional<std::uint32_t> PatternTermReader::find_name(std::string_view word) const {
  const auto it = std::ranges::find(*names_, word);
  if (it == names_->end()) return std::nullopt;
  return static_cast<std::uint32_t>(it - names_->begin());
}

std::string PatternTermReader::nearest_name(std::string_view word) const {
  std::vector<std::string_view> names;
  for (const std::string& name : *names_)  // generated names and those of forms are no candidates
    if (!name.starts_with('_') && name.find('\'') == std::string::npos) names.push_back(name);
  return did_you_mean(word, names);
}

}  // namespace fusec
