#include "runtime/emulator/ptx_declaration.h"

#include <bit>

namespace fusec::emulator {
namespace {

constexpr int kMaxInitializerDepth = 64;
constexpr std::uint64_t kMaxVariableBytes = std::uint64_t{1} << 32;
constexpr std::uint64_t kMaxInitializedBytes = std::uint64_t{1} << 28;

void initial_value(TokenReader& in, PtxVariable& variable, std::vector<std::byte>& values, std::size_t element) {
  std::uint64_t value = 0;
  if (values.size() > kMaxInitializedBytes) in.fail("initializer too large");
  if (in.peek().kind == Token::Kind::kIdentifier) {
    PtxVariable::Relocation relocation{.at = values.size()};
    std::string_view word = in.take().text;
    if (word == "generic" && in.accept("(")) {
      relocation.generic = true;
      word = in.identifier();
      if (in.accept("+")) relocation.offset = static_cast<std::int64_t>(in.integer());
      in.expect(")");
    } else if (word == "mask") {
      in.fail("mask() initializers are not supported");
    }
    relocation.variable = std::string(word);
    if (in.accept("+"))
      relocation.offset = static_cast<std::int64_t>(static_cast<std::uint64_t>(relocation.offset) + in.integer());
    if (element != 8) in.fail("a variable's address needs 8 bytes");
    variable.relocations.push_back(std::move(relocation));
  } else {
    const bool negative = in.accept("-");
    const Token& token = in.take();
    switch (token.kind) {
      case Token::Kind::kInteger:
        value = negative ? 0 - token.value : token.value;
        break;
      case Token::Kind::kFloat32:
        value = token.value ^ (negative ? 0x80000000u : 0u);
        break;
      case Token::Kind::kFloat64: {
        const double number = std::bit_cast<double>(token.value) * (negative ? -1 : 1);
        value = element == 4 ? std::bit_cast<std::uint32_t>(static_cast<float>(number))
                             : std::bit_cast<std::uint64_t>(number);
        break;
      }
      default:
        in.fail("malformed initializer");
    }
    if (token.kind == Token::Kind::kFloat32 && variable.type == Type::kF64) {
      value =
          std::bit_cast<std::uint64_t>(static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(value))));
    }
  }
  for (std::size_t i = 0; i < element; ++i) {
    values.push_back(i < 8 ? static_cast<std::byte>(value >> (8 * i)) : std::byte{0});
  }
}

void initializer(TokenReader& in, PtxVariable& variable) {
  const std::size_t element = static_cast<std::size_t>(bytes(variable.type));
  std::vector<std::byte> values;
  int depth = 0;
  do {
    if (in.accept("{")) {
      if (++depth > kMaxInitializerDepth) in.fail("initializer nested too deeply");
      continue;
    }
    if (in.accept("}")) {
      --depth;
      continue;
    }
    if (in.accept(",")) continue;
    initial_value(in, variable, values, element);
  } while (depth > 0 || in.peek().is(","));
  if (variable.bytes == 0) variable.bytes = values.size();
  if (values.size() > variable.bytes) in.fail("more initial values than the variable holds");
  if (variable.bytes > kMaxInitializedBytes) in.fail("variable too large");
  values.resize(variable.bytes);
  variable.initial = std::move(values);
}

PtxVariable variable_head(TokenReader& in, Space space) {
  PtxVariable variable{.space = space, .line = in.peek().line};
  int lanes = 1;
  bool aligned = false;
  while (in.peek().kind == Token::Kind::kDotWord) {
    const std::string_view word = in.take().text;
    if (word == "align") {
      const std::uint64_t alignment = in.integer();
      if (alignment == 0 || alignment > 4096 || !std::has_single_bit(alignment))
        in.fail("alignment that is no power of two");
      variable.alignment = static_cast<int>(alignment);
      aligned = true;
    } else if (word == "attribute") {
      in.skip_parentheses();
    } else if (word == "ptr") {  // .ptr .global .align 16: a promise about what a kernel's parameter points to
      if (!accept_variable_space(in)) in.accept_dot("generic");
      if (in.accept_dot("align")) in.integer();
    } else if (word == "v2" || word == "v4" || word == "v8") {
      lanes = word[1] - '0';
    } else if (std::optional<Type> type = parse_type(word)) {
      variable.type = *type;
    } else {
      in.fail("unknown word in a declaration: ." + std::string(word));
    }
  }
  if (variable.type == Type::kNone || variable.type == Type::kPred) in.fail("declaration without a type");
  variable.bytes = static_cast<std::uint64_t>(bytes(variable.type)) * lanes;
  if (!aligned) variable.alignment = static_cast<int>(variable.bytes);
  return variable;
}

PtxVariable variable_tail(TokenReader& in, const PtxVariable& base) {
  PtxVariable variable = base;
  variable.name = std::string(in.identifier());
  if (in.accept("<")) in.fail("parameterized variable names are known for registers only");
  while (in.accept("[")) {
    const std::uint64_t count = in.peek().is("]") ? 0 : in.integer();
    in.expect("]");
    if (count != 0 && variable.bytes > kMaxVariableBytes / count) in.fail("variable too large");
    variable.bytes *= count;
  }
  if (in.accept("=")) initializer(in, variable);
  return variable;
}

}  // namespace

std::optional<Space> accept_variable_space(TokenReader& in) {
  if (in.accept_dot("global")) return Space::kGlobal;
  if (in.accept_dot("const")) return Space::kConst;
  if (in.accept_dot("shared") || in.accept_dot("shared::cta")) return Space::kShared;
  if (in.accept_dot("local")) return Space::kLocal;
  if (in.accept_dot("param")) return Space::kParam;
  return std::nullopt;
}

std::vector<PtxVariable> parse_variables(TokenReader& in, Space space, bool is_extern) {
  std::vector<PtxVariable> found;
  PtxVariable base = variable_head(in, space);
  base.is_extern = is_extern;
  do {
    found.push_back(variable_tail(in, base));
  } while (in.accept(","));
  in.expect(";");
  return found;
}

PtxVariable parse_parameter(TokenReader& in) {
  return variable_tail(in, variable_head(in, Space::kParam));
}

}  // namespace fusec::emulator
