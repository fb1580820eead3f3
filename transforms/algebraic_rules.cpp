#include "transforms/algebraic_rules.h"

#include <algorithm>
#include <charconv>

#include "ir/error.h"

namespace fusec {
namespace {

// --- attributes of replacements

std::optional<Attributes> shape_of_result(const RuleMatch& match) {
  return Attributes({{"shape", match.result.shape}});
}

std::optional<Attributes> composed_permutation(const RuleMatch& match) {
  const std::size_t rank = match.result.rank();
  const auto inner = permutation_of(match.graph, match.graph.nodes[match.inner[0]], rank);
  const auto outer = permutation_of(match.graph, match.outer, rank);
  std::vector<std::int64_t> dims;
  for (const std::int64_t dim : outer) dims.push_back(inner[static_cast<std::size_t>(dim)]);
  return Attributes({{"dims", dims}});
}

// The precision in bits and the range of exponents of a float format.
struct Reach {
  int significant, least_exponent, greatest_exponent;
};
std::optional<Reach> reach_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return Reach{53, -1074, 1023};
    case DType::kFloat32:
      return Reach{24, -149, 127};
    case DType::kFloat16:
      return Reach{11, -24, 15};
    case DType::kBFloat16:
      return Reach{8, -133, 127};
    case DType::kFloat8E4M3FN:
      return Reach{4, -9, 8};
    case DType::kFloat8E5M2:
      return Reach{3, -16, 15};
    case DType::kFloat8E8M0FNU:
      return Reach{1, -127, 127};
    case DType::kFloat4E2M1FN:
      return Reach{2, -1, 2};
    default:
      return std::nullopt;
  }
}

// Whether every value of `from` is a value of `to`.
bool is_widening(DType from, DType to) {
  if (from == to) return true;
  if (from == DType::kBool) return to != DType::kFloat8E8M0FNU;    // kFloat8E8M0FNU has no 0
  const auto wide = bits(to) >= 16 ? reach_of(to) : std::nullopt;  // formats below 16 bits saturate differently
  const auto narrow = reach_of(from);
  if (is_integer(from) && is_integer(to)) {
    if (info(from).is_signed) return info(to).is_signed && bits(to) >= bits(from);
    return bits(to) > bits(from) || (!info(to).is_signed && bits(to) == bits(from));
  }
  if (is_integer(from)) return wide && bits(from) <= wide->significant && bits(from) <= wide->greatest_exponent;
  return wide && narrow && narrow->significant <= wide->significant && narrow->least_exponent >= wide->least_exponent &&
         narrow->greatest_exponent <= wide->greatest_exponent;
}

std::optional<Attributes> outer_cast(const RuleMatch& match) {
  const DType from = match.graph.tensor(match.variables[1]).dtype;
  const DType between = match.graph.tensor(match.graph.nodes[match.inner[0]].first_output).dtype;
  if (!is_widening(from, between)) return std::nullopt;
  // A cast between integers wraps; a cast of a float beyond the integer's range is undefined.
  if (is_integer(from) && is_float(between) && !is_float(match.result.dtype)) return std::nullopt;
  return match.graph.attributes(match.outer);
}

std::optional<Attributes> none_if_inner_has_the_same(const RuleMatch& match) {
  if (match.graph.nodes[match.inner[0]].attributes != match.outer.attributes) return std::nullopt;
  return Attributes();
}

// --- the rules

constexpr AlgebraicRule kRules[] = {
    // Neutral elements. x + 0.0 is not one: it turns -0 into +0.
    {"add(x, 0) -> x", RuleHolds::kIntegers},
    {"add(x, -0.0) -> x", RuleHolds::kFloats},
    {"sub(x, 0) -> x"},
    {"mul(x, 1) -> x"},
    {"div(x, 1) -> x"},
    {"pow(x, 1) -> x"},
    {"logical_and(x, 1) -> x", RuleHolds::kBools},
    {"logical_or(x, 0) -> x", RuleHolds::kBools},
    {"logical_xor(x, 0) -> x", RuleHolds::kBools},
    {"bitwise_and(x, -1) -> x", RuleHolds::kIntegers},
    {"bitwise_or(x, 0) -> x"},
    {"bitwise_xor(x, 0) -> x"},
    // Involutions.
    {"neg(neg(x)) -> x", RuleHolds::kSigned},
    {"logical_not(logical_not(x)) -> x", RuleHolds::kBools},
    {"bitwise_not(bitwise_not(x)) -> x"},
    {"flip(flip(x)) -> x", RuleHolds::kAll, none_if_inner_has_the_same},
    // Idempotent ops.
    {"abs(abs(x)) -> abs(x)"},
    {"relu(relu(x)) -> relu(x)"},
    {"relu6(relu6(x)) -> relu6(x)"},
    {"relu(relu6(x)) -> relu6(x)"},
    {"sign(sign(x)) -> sign(x)", RuleHolds::kSigned},
    {"floor(floor(x)) -> floor(x)"},
    {"ceil(ceil(x)) -> ceil(x)"},
    {"round(round(x)) -> round(x)"},
    {"trunc(trunc(x)) -> trunc(x)"},
    // A value with itself.
    {"maximum(x, x) -> x"},
    {"minimum(x, x) -> x"},
    {"bitwise_and(x, x) -> x"},
    {"bitwise_or(x, x) -> x"},
    {"logical_and(x, x) -> x", RuleHolds::kBools},
    {"logical_or(x, x) -> x", RuleHolds::kBools},
    {"where(c, x, x) -> x"},
    // Signs.
    {"mul(x, -1) -> neg(x)", RuleHolds::kSigned},
    {"add(x, neg(y)) -> sub(x, y)", RuleHolds::kSigned},
    {"sub(x, neg(y)) -> add(x, y)", RuleHolds::kSigned},
    {"mul(neg(x), neg(y)) -> mul(x, y)", RuleHolds::kSigned},
    {"div(neg(x), neg(y)) -> div(x, y)", RuleHolds::kFloats},
    {"abs(neg(x)) -> abs(x)", RuleHolds::kSigned},
    {"square(neg(x)) -> square(x)", RuleHolds::kSigned},
    {"square(abs(x)) -> square(x)", RuleHolds::kSigned},
    // The formula of pow computes this power as a product.
    {"pow(x, 2) -> mul(x, x)"},
    // Negated comparisons. For floats only eq and ne: with NaN, not (x < y) is not x >= y.
    {"logical_not(eq(x, y)) -> ne(x, y)", RuleHolds::kAnyOperands},
    {"logical_not(ne(x, y)) -> eq(x, y)", RuleHolds::kAnyOperands},
    {"logical_not(lt(x, y)) -> ge(x, y)", RuleHolds::kIntegerOperands},
    {"logical_not(le(x, y)) -> gt(x, y)", RuleHolds::kIntegerOperands},
    {"logical_not(gt(x, y)) -> le(x, y)", RuleHolds::kIntegerOperands},
    {"logical_not(ge(x, y)) -> lt(x, y)", RuleHolds::kIntegerOperands},
    // Two data movements become one.
    {"view(view(x)) -> reshape(x)", RuleHolds::kAll, shape_of_result},
    {"permutation(permutation(x)) -> permute(x)", RuleHolds::kAll, composed_permutation},
    {"expand(expand(x)) -> expand(x)", RuleHolds::kAll, shape_of_result},
    // The inner cast goes if its dtype holds every value of x.
    {"cast(cast(x)) -> cast(x)", RuleHolds::kAnyOperands, outer_cast},
};

// --- parsing

constexpr std::string_view kVariables = "cxyz";

class RuleReader {
 public:
  explicit RuleReader(std::string_view text) : rest_(text), text_(text) {}

  RuleTerm term() {
    skip_blanks();
    const std::size_t length = std::min(rest_.find_first_of("(), "), rest_.size());
    const std::string_view word = rest_.substr(0, length);
    rest_.remove_prefix(length);
    if (word.empty()) fail();
    if (take("(")) return operands_of(word);
    if (word.size() == 1 && kVariables.find(word[0]) != std::string_view::npos)
      return {.kind = RuleTerm::Kind::kVariable, .variable = kVariables.find(word[0])};
    RuleTerm number{.kind = RuleTerm::Kind::kNumber};
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number.number);
    if (error != std::errc() || end != word.data() + word.size()) fail();
    return number;
  }

  bool take(std::string_view expected) {
    skip_blanks();
    if (!rest_.starts_with(expected)) return false;
    rest_.remove_prefix(expected.size());
    return true;
  }

  bool at_end() const { return rest_.empty(); }
  [[noreturn]] void fail() const { throw InternalError("no algebraic rule: " + std::string(text_)); }

 private:
  RuleTerm operands_of(std::string_view op) {
    RuleTerm term{.kind = RuleTerm::Kind::kOp, .name = std::string(op)};
    do {
      term.operands.push_back(this->term());
    } while (take(","));
    if (!take(")")) fail();
    return term;
  }

  void skip_blanks() {
    while (rest_.starts_with(' ')) rest_.remove_prefix(1);
  }

  std::string_view rest_, text_;
};

}  // namespace

std::vector<std::int64_t> permutation_of(const Graph& graph, const Node& node, std::size_t rank) {
  const Attributes& attributes = graph.attributes(node);
  const auto wrapped = [&](std::int64_t dim) { return dim < 0 ? dim + static_cast<std::int64_t>(rank) : dim; };
  if (node.op->name == "permute") {
    std::vector<std::int64_t> dims = *attributes.integers("dims");
    for (std::int64_t& dim : dims) dim = wrapped(dim);
    return dims;
  }
  std::vector<std::int64_t> dims;
  for (std::size_t d = 0; d < rank; ++d) dims.push_back(static_cast<std::int64_t>(d));
  if (rank > 0)
    std::swap(dims[static_cast<std::size_t>(wrapped(attributes.integer("dim0")))],
              dims[static_cast<std::size_t>(wrapped(attributes.integer("dim1")))]);
  return dims;
}

bool RuleTerm::operator==(const RuleTerm& other) const {
  return kind == other.kind && name == other.name && variable == other.variable && number == other.number &&
         operands == other.operands;
}

std::span<const AlgebraicRule> algebraic_rules() {
  return kRules;
}

ParsedRule parse_rule(const AlgebraicRule& rule) {
  RuleReader reader(rule.text);
  ParsedRule parsed{.rule = &rule, .pattern = reader.term(), .replacement = {}};
  if (!reader.take("->")) reader.fail();
  parsed.replacement = reader.term();
  if (!reader.at_end() || parsed.pattern.kind != RuleTerm::Kind::kOp) reader.fail();
  return parsed;
}

bool is_meant(std::string_view word, const OpDef& op) {
  if (op.custom) return false;
  if (word == "view") return op.view && op.special == Special::kNone;
  if (word == "permutation") return op.name == "permute" || op.name == "transpose";
  return op.name == word;
}

bool is_commutative(std::string_view op) {
  for (const std::string_view known : {"add", "mul", "maximum", "minimum", "logical_and", "logical_or", "logical_xor",
                                       "bitwise_and", "bitwise_or", "bitwise_xor"})
    if (op == known) return true;
  return false;
}

bool holds(RuleHolds condition, const RuleMatch& match) {
  const auto is_tensor = [&](ValueId v) {
    const Value::Kind kind = match.graph.value(v).kind;
    return kind != Value::Kind::kNumber && kind != Value::Kind::kDim && !match.graph.type(v).is_tuple;
  };
  for (std::size_t i = 1; i < match.variables.size(); ++i) {
    const ValueId v = match.variables[i];
    if (v == kNone || condition == RuleHolds::kAnyOperands) continue;
    if (!is_tensor(v)) return false;
    const DType dtype = match.graph.tensor(v).dtype;
    if (condition == RuleHolds::kIntegerOperands ? is_float(dtype) : dtype != match.result.dtype) return false;
  }
  const DType dtype = match.result.dtype;
  switch (condition) {
    case RuleHolds::kFloats:
      return is_float(dtype);
    case RuleHolds::kIntegers:
      return is_integer(dtype);
    case RuleHolds::kSigned:
      return dtype != DType::kBool && info(dtype).is_signed;
    case RuleHolds::kBools:
      return dtype == DType::kBool;
    default:
      return true;
  }
}

}  // namespace fusec
