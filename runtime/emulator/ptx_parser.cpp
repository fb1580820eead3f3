// Recursive descent over the tokens of a PTX file. Depth is bounded by kMaxDepth, sizes by the kMax... constants, so
// that no text can make it crash or eat the machine's memory.
#include <bit>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>

#include "runtime/emulator/ptx_lexer.h"
#include "runtime/emulator/ptx_module.h"

namespace fusec::emulator {
namespace {

constexpr int kMaxDepth = 64;
constexpr std::uint64_t kMaxRegisters = 1u << 18;
constexpr std::uint64_t kMaxVariableBytes = std::uint64_t{1} << 32;
constexpr std::uint64_t kMaxInitializedBytes = std::uint64_t{1} << 28;
constexpr std::uint32_t kNoLabel = 0xffffffffu;

// Names declared between two braces. Labels may be used before they are declared, so they are resolved at the end of
// the function, walking outwards from the scope of the use.
struct Scope {
  int parent = -1;
  std::unordered_map<std::string_view, std::uint32_t> registers;
  struct Range {
    std::uint32_t first, count;
  };
  std::unordered_map<std::string_view, Range> register_ranges;  // "%r" of %r<5>
  std::unordered_map<std::string_view, std::uint32_t> variables;
  std::unordered_map<std::string_view, std::uint32_t> labels;
  std::map<std::string_view, std::vector<std::string_view>> label_lists;  // .branchtargets
};

struct Fixup {
  std::uint32_t instruction;
  int scope;
};

class Parser {
 public:
  Parser(std::string_view text, const std::string& file) : tokens_(lex_ptx(text, file)) { module_.file = file; }

  PtxModule run() {
    while (peek().kind != Token::Kind::kEnd) module_item();
    return std::move(module_);
  }

 private:
  // ---- tokens
  const Token& peek(std::size_t ahead = 0) const { return tokens_[std::min(at_ + ahead, tokens_.size() - 1)]; }
  const Token& take() {
    const Token& token = peek();
    if (at_ + 1 < tokens_.size()) ++at_;
    return token;
  }
  bool accept(std::string_view punctuation) {
    if (!peek().is(punctuation)) return false;
    take();
    return true;
  }
  bool accept_dot(std::string_view word) {
    if (!peek().is_dot(word)) return false;
    take();
    return true;
  }
  [[noreturn]] void fail(std::string what, std::string expected = {}) const {
    throw_ptx_error(module_.file, peek().line, std::move(what), shown(peek()), std::move(expected));
  }
  static std::string shown(const Token& token) {
    if (token.kind == Token::Kind::kEnd) return "the end of the file";
    return (token.kind == Token::Kind::kDotWord ? "." : "") + std::string(token.text.substr(0, 80));
  }
  void expect(std::string_view punctuation) {
    if (!accept(punctuation)) fail("unexpected text", "\"" + std::string(punctuation) + "\"");
  }
  std::string_view identifier() {
    if (peek().kind != Token::Kind::kIdentifier) fail("a name is missing");
    return take().text;
  }
  std::uint64_t integer() {
    const bool negative = accept("-");
    if (peek().kind != Token::Kind::kInteger) fail("an integer is missing");
    const std::uint64_t value = take().value;
    return negative ? 0 - value : value;
  }
  void skip_line() {
    const int line = peek().line;
    while (peek().kind != Token::Kind::kEnd && peek().line == line) take();
  }
  void skip_braces() {
    int depth = 0;
    do {
      if (peek().is("{")) ++depth;
      if (peek().is("}")) --depth;
      if (peek().kind == Token::Kind::kEnd) fail("section without an end");
      take();
    } while (depth > 0);
  }

  // ---- module level
  void module_item() {
    const Token& token = peek();
    if (accept(";")) return;
    if (token.kind != Token::Kind::kDotWord) fail("unexpected text", "a directive");
    if (token.text == "version") {
      take();
      module_.version = std::string(peek().text);
      skip_line();
    } else if (token.text == "target") {
      take();
      module_.target = peek().kind == Token::Kind::kIdentifier ? std::string(peek().text) : "";
      skip_line();
    } else if (token.text == "file") {
      file_directive();
    } else if (token.text == "address_size" || token.text == "loc") {
      skip_line();
    } else if (token.text == "section") {
      take();
      while (!peek().is("{") && peek().kind != Token::Kind::kEnd) take();
      skip_braces();
    } else if (token.text == "pragma" || token.text == "alias") {
      while (!peek().is(";") && peek().kind != Token::Kind::kEnd) take();
    } else {
      declaration();
    }
  }

  void file_directive() {
    const int line = take().line;
    const int number = static_cast<int>(integer());
    if (peek().kind == Token::Kind::kString) module_.source_files.emplace_back(number, std::string(peek().text));
    while (peek().kind != Token::Kind::kEnd && peek().line == line) take();
  }

  void declaration() {
    bool is_extern = false;
    while (true) {
      if (accept_dot("visible") || accept_dot("weak") || accept_dot("common")) continue;
      if (!accept_dot("extern")) break;
      is_extern = true;
    }
    if (accept_dot("attribute")) skip_parentheses();
    if (accept_dot("entry")) return function(true);
    if (accept_dot("func")) return function(false);
    if (std::optional<Space> space = accept_variable_space()) {
      for (PtxVariable& variable : variable_declaration(*space, is_extern)) {
        const auto index = static_cast<std::uint32_t>(module_.variables.size());
        names_.push_back(std::make_unique<std::string>(variable.name));
        globals_[*names_.back()] = index;
        module_.variables.push_back(std::move(variable));
      }
      return;
    }
    fail("unknown directive");
  }

  void skip_parentheses() {
    int depth = 0;
    do {
      if (peek().is("(")) ++depth;
      if (peek().is(")")) --depth;
      if (peek().kind == Token::Kind::kEnd) fail("parenthesis without an end");
      take();
    } while (depth > 0);
  }

  std::optional<Space> accept_variable_space() {
    if (accept_dot("global")) return Space::kGlobal;
    if (accept_dot("const")) return Space::kConst;
    if (accept_dot("shared") || accept_dot("shared::cta")) return Space::kShared;
    if (accept_dot("local")) return Space::kLocal;
    if (accept_dot("param")) return Space::kParam;
    return std::nullopt;
  }

  // After the state space: `.align 4 .b8 name[16] = {...}, other;`
  std::vector<PtxVariable> variable_declaration(Space space, bool is_extern) {
    std::vector<PtxVariable> found;
    PtxVariable base = variable_head(space);
    base.is_extern = is_extern;
    do {
      found.push_back(variable_tail(base));
    } while (accept(","));
    expect(";");
    return found;
  }

  PtxVariable variable_head(Space space) {
    PtxVariable variable{.space = space, .line = peek().line};
    int lanes = 1;
    bool aligned = false;
    while (peek().kind == Token::Kind::kDotWord) {
      const std::string_view word = take().text;
      if (word == "align") {
        const std::uint64_t alignment = integer();
        if (alignment == 0 || alignment > 4096 || !std::has_single_bit(alignment))
          fail("alignment that is no power of two");
        variable.alignment = static_cast<int>(alignment);
        aligned = true;
      } else if (word == "attribute") {
        skip_parentheses();
      } else if (word == "ptr") {  // .ptr .global .align 16: of a kernel's parameter, a promise about what it points to
        if (!accept_variable_space()) accept_dot("generic");
        if (accept_dot("align")) integer();
      } else if (word == "v2" || word == "v4" || word == "v8") {
        lanes = word[1] - '0';
      } else if (std::optional<Type> type = parse_type(word)) {
        variable.type = *type;
      } else {
        fail("unknown word in a declaration: ." + std::string(word));
      }
    }
    if (variable.type == Type::kNone || variable.type == Type::kPred) fail("declaration without a type");
    variable.bytes = static_cast<std::uint64_t>(bytes(variable.type)) * lanes;
    if (!aligned) variable.alignment = static_cast<int>(variable.bytes);
    return variable;
  }

  PtxVariable variable_tail(const PtxVariable& base) {
    PtxVariable variable = base;
    variable.name = std::string(identifier());
    if (accept("<")) fail("parameterized variable names are known for registers only");
    while (accept("[")) {
      const std::uint64_t count = peek().is("]") ? 0 : integer();
      expect("]");
      if (count != 0 && variable.bytes > kMaxVariableBytes / count) fail("variable too large");
      variable.bytes *= count;
    }
    if (accept("=")) initializer(variable);
    return variable;
  }

  void initializer(PtxVariable& variable) {
    const std::size_t element = static_cast<std::size_t>(bytes(variable.type));
    std::vector<std::byte> values;
    int depth = 0;
    do {
      if (accept("{")) {
        if (++depth > kMaxDepth) fail("initializer nested too deeply");
        continue;
      }
      if (accept("}")) {
        --depth;
        continue;
      }
      if (accept(",")) continue;
      initial_value(variable, values, element);
    } while (depth > 0 || peek().is(","));
    if (variable.bytes == 0) variable.bytes = values.size();
    if (values.size() > variable.bytes) fail("more initial values than the variable holds");
    if (variable.bytes > kMaxInitializedBytes) fail("variable too large");
    values.resize(variable.bytes);
    variable.initial = std::move(values);
  }

  void initial_value(PtxVariable& variable, std::vector<std::byte>& values, std::size_t element) {
    std::uint64_t value = 0;
    if (values.size() > kMaxInitializedBytes) fail("initializer too large");
    if (peek().kind == Token::Kind::kIdentifier) {
      PtxVariable::Relocation relocation{.at = values.size()};
      std::string_view word = take().text;
      if (word == "generic" && accept("(")) {
        relocation.generic = true;
        word = identifier();
        if (accept("+")) relocation.offset = static_cast<std::int64_t>(integer());
        expect(")");
      } else if (word == "mask") {
        fail("mask() initializers are not supported");
      }
      relocation.variable = std::string(word);
      if (accept("+")) relocation.offset += static_cast<std::int64_t>(integer());
      if (element != 8) fail("a variable's address needs 8 bytes");
      variable.relocations.push_back(std::move(relocation));
    } else {
      const bool negative = accept("-");
      const Token& token = take();
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
          fail("malformed initializer");
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

  // ---- functions
  void function(bool is_entry) {
    PtxFunction made{.is_entry = is_entry, .line = peek().line};
    function_ = &made;
    scopes_.assign(1, Scope{});
    scope_ = 0;
    fixups_.clear();
    if (accept_dot("attribute")) skip_parentheses();
    if (!is_entry && peek().is("(")) parameter_list(made.results);
    made.name = std::string(identifier());
    if (peek().is("(")) parameter_list(made.parameters);
    function_directives(made);
    if (!accept(";")) {
      made.has_body = true;
      body(made);
      resolve_labels(made);
    }
    function_ = nullptr;
    add_function(std::move(made));
  }

  void add_function(PtxFunction made) {
    for (PtxFunction& known : module_.functions) {
      if (known.name != made.name) continue;
      if (known.has_body && made.has_body) fail("function defined twice: " + made.name);
      if (made.has_body) known = std::move(made);
      return;
    }
    module_.functions.push_back(std::move(made));
  }

  void parameter_list(std::vector<std::uint32_t>& list) {
    expect("(");
    while (!accept(")")) {
      if (accept_dot("reg")) fail("functions with register parameters are not supported");
      if (!accept_dot("param")) fail("malformed parameter", ".param");
      PtxVariable variable = variable_tail(variable_head(Space::kParam));
      list.push_back(declare_variable(std::move(variable)));
      if (!peek().is(")")) expect(",");
    }
  }

  void function_directives(PtxFunction& made) {
    while (peek().kind == Token::Kind::kDotWord) {
      const std::string_view word = take().text;
      if (word == "reqntid")
        made.required_threads = dimensions();
      else if (word == "maxntid")
        made.max_threads = dimensions();
      else if (word == "reqnctapercluster")
        made.required_cluster = dimensions();
      else if (word == "minnctapersm" || word == "maxnctapersm" || word == "maxnreg" || word == "maxclusterrank" ||
               word == "abi_preserve" || word == "abi_preserve_control")
        integer();
      else if (word == "pragma") {
        while (!peek().is(";") && peek().kind != Token::Kind::kEnd) take();
        expect(";");
      } else if (word != "noreturn" && word != "explicitcluster" && word != "blocksareclusters" && word != "unique") {
        fail("unknown directive of a function: ." + std::string(word));
      }
    }
  }

  std::array<std::uint32_t, 3> dimensions() {
    std::array<std::uint32_t, 3> size{1, 1, 1};
    std::size_t count = 0;
    do {
      if (count == 3) fail("more than three dimensions");
      size[count++] = static_cast<std::uint32_t>(integer());
    } while (accept(","));
    return size;
  }

  std::uint32_t declare_variable(PtxVariable variable) {
    const auto index = static_cast<std::uint32_t>(function_->variables.size());
    names_.push_back(std::make_unique<std::string>(variable.name));
    scopes_[scope_].variables[*names_.back()] = index;
    function_->variables.push_back(std::move(variable));
    return index;
  }

  void body(PtxFunction& made) {
    expect("{");
    int depth = 1;
    location_file_ = location_line_ = 0;
    while (depth > 0) {
      if (peek().kind == Token::Kind::kEnd) fail("function without an end");
      if (accept("{")) {
        if (++depth > kMaxDepth) fail("blocks nested too deeply");
        scopes_.push_back(Scope{.parent = scope_});
        scope_ = static_cast<int>(scopes_.size()) - 1;
      } else if (accept("}")) {
        --depth;
        if (depth > 0) scope_ = scopes_[scope_].parent;
      } else {
        statement(made);
      }
    }
  }

  void statement(PtxFunction& made) {
    if (accept(";")) return;
    if (peek().kind == Token::Kind::kDotWord) return body_directive(made);
    if (peek().kind == Token::Kind::kIdentifier && peek(1).is(":")) {
      const std::string_view label = take().text;
      take();
      if (peek().is_dot("branchtargets")) {
        take();
        auto& list = scopes_[scope_].label_lists[label];
        do {
          list.push_back(identifier());
        } while (accept(","));
        expect(";");
      } else if (peek().is_dot("callprototype") || peek().is_dot("calltargets")) {
        while (!peek().is(";") && peek().kind != Token::Kind::kEnd) take();
      } else if (!scopes_[scope_].labels.emplace(label, made.instructions.size()).second) {
        fail("label declared twice: " + std::string(label));
      }
      return;
    }
    instruction(made);
  }

  void body_directive(PtxFunction& made) {
    if (accept_dot("reg")) return register_declaration(made);
    if (peek().is_dot("loc")) {
      const int line = take().line;
      location_file_ = static_cast<int>(integer());
      location_line_ = static_cast<int>(integer());
      while (peek().kind != Token::Kind::kEnd && peek().line == line) take();
      return;
    }
    if (peek().is_dot("file")) return file_directive();
    if (accept_dot("pragma")) {
      while (!peek().is(";") && peek().kind != Token::Kind::kEnd) take();
      expect(";");
      return;
    }
    const bool is_extern = accept_dot("extern");
    if (std::optional<Space> space = accept_variable_space()) {
      for (PtxVariable& variable : variable_declaration(*space, is_extern)) declare_variable(std::move(variable));
      return;
    }
    fail("unknown directive");
  }

  void register_declaration(PtxFunction& made) {
    int lanes = 1;
    Type type = Type::kNone;
    while (peek().kind == Token::Kind::kDotWord) {
      const std::string_view word = take().text;
      if (word == "v2" || word == "v4")
        lanes = word[1] - '0';
      else if (word == "align")
        integer();
      else if (std::optional<Type> parsed = parse_type(word))
        type = *parsed;
      else
        fail("unknown register type: ." + std::string(word));
    }
    if (type == Type::kNone) fail("registers without a type");
    if (lanes != 1) fail("vector registers are not supported");
    do {
      const std::string_view name = identifier();
      std::uint64_t count = 1;
      const auto first = static_cast<std::uint32_t>(made.registers.size());
      if (accept("<")) {
        count = integer();
        expect(">");
        if (count > kMaxRegisters) fail("too many registers");
        scopes_[scope_].register_ranges[name] = {first, static_cast<std::uint32_t>(count)};
      } else {
        scopes_[scope_].registers[name] = first;
      }
      if (made.registers.size() + count > kMaxRegisters) fail("too many registers");
      made.registers.resize(made.registers.size() + count, PtxRegister{type});
    } while (accept(","));
    expect(";");
  }

  // ---- instructions
  void instruction(PtxFunction& made) {
    PtxInstruction made_instruction{.line = peek().line, .source_file = location_file_, .source_line = location_line_};
    if (accept("@")) {
      made_instruction.guarded = true;
      made_instruction.guard_negated = accept("!");
      const std::optional<std::uint32_t> found = find_register(identifier());
      if (!found) fail("unknown guard predicate");
      made_instruction.guard = *found;
    }
    made_instruction.line = peek().line;
    made_instruction.base = std::string(identifier());
    made_instruction.opcode = made_instruction.base;
    while (peek().kind == Token::Kind::kDotWord) {
      made_instruction.suffixes.emplace_back(take().text);
      made_instruction.opcode += "." + made_instruction.suffixes.back();
    }
    while (!accept(";")) {
      made_instruction.operands.push_back(operand(0));
      if (peek().is(";")) continue;
      expect(",");
    }
    fixups_.push_back({static_cast<std::uint32_t>(made.instructions.size()), scope_});
    made.instructions.push_back(std::move(made_instruction));
  }

  PtxOperand operand(int depth) {
    if (depth > 4) fail("operand nested too deeply");
    PtxOperand first = simple_operand(depth);
    if (accept("|")) {
      PtxOperand pair{.kind = PtxOperand::Kind::kPair};
      pair.parts.push_back(std::move(first));
      pair.parts.push_back(simple_operand(depth));
      return pair;
    }
    return first;
  }

  PtxOperand simple_operand(int depth) {
    if (accept("{")) return list("}", PtxOperand::Kind::kVector, depth);
    if (accept("(")) return list(")", PtxOperand::Kind::kVector, depth);
    if (accept("[")) return address(depth);
    if (accept("!")) {
      PtxOperand inner = operand(depth + 1);
      inner.negated = true;
      return inner;
    }
    if (peek().is("-") || peek().is("+") || peek().is("~") || peek().kind == Token::Kind::kInteger ||
        peek().kind == Token::Kind::kFloat32 || peek().kind == Token::Kind::kFloat64) {
      return literal();
    }
    PtxOperand named = named_operand();
    if (named.kind == PtxOperand::Kind::kVariable && (peek().is("+") || peek().is("-"))) {
      const bool negative = take().is("-");
      const auto value = static_cast<std::int64_t>(integer());
      named.offset += negative ? -value : value;
    }
    return named;
  }

  PtxOperand list(std::string_view end, PtxOperand::Kind kind, int depth) {
    PtxOperand made{.kind = kind};
    while (!accept(end)) {
      made.parts.push_back(operand(depth + 1));
      if (made.parts.size() > 4096) fail("operand list too long");
      if (!peek().is(end)) expect(",");
    }
    return made;
  }

  PtxOperand literal() {
    bool negative = false, inverted = false;
    while (peek().is("-") || peek().is("+") || peek().is("~")) {
      const Token& sign = take();
      negative ^= sign.is("-");
      inverted ^= sign.is("~");
    }
    const Token& token = take();
    PtxOperand made;
    if (token.kind == Token::Kind::kInteger) {
      made.kind = PtxOperand::Kind::kInteger;
      made.value = negative ? 0 - token.value : token.value;
      if (inverted) made.value = ~made.value;
    } else if (token.kind == Token::Kind::kFloat32) {
      made.kind = PtxOperand::Kind::kFloat32;
      made.value = token.value ^ (negative ? 0x80000000u : 0u);
    } else if (token.kind == Token::Kind::kFloat64) {
      made.kind = PtxOperand::Kind::kFloat;
      made.value = token.value ^ (negative ? std::uint64_t{1} << 63 : 0);
    } else {
      fail("malformed operand");
    }
    return made;
  }

  PtxOperand address(int depth) {
    PtxOperand made{.kind = PtxOperand::Kind::kAddress};
    made.parts.push_back(simple_operand(depth + 1));
    if (made.parts[0].kind == PtxOperand::Kind::kVariable) {
      made.offset = made.parts[0].offset;
      made.parts[0].offset = 0;
    }
    while (peek().is("+") || peek().is("-")) {
      const bool negative = take().is("-");
      const auto value = static_cast<std::int64_t>(integer());
      made.offset = static_cast<std::int64_t>(static_cast<std::uint64_t>(made.offset) +
                                              static_cast<std::uint64_t>(negative ? 0 - value : value));
    }
    while (accept(",")) made.parts.push_back(operand(depth + 1));
    expect("]");
    return made;
  }

  PtxOperand named_operand() {
    const std::string_view word = identifier();
    PtxOperand made;
    if (word == "_") return made;
    if (const std::optional<std::uint32_t> found = find_register(word)) {
      made.kind = PtxOperand::Kind::kRegister;
      made.index = *found;
      return made;
    }
    if (word[0] == '%') {
      made.kind = PtxOperand::Kind::kSpecial;
      made.name = std::string(word.substr(1));
      if (peek().kind == Token::Kind::kDotWord) made.name += "." + std::string(take().text);
      return made;
    }
    if (word == "WARP_SZ") {
      made.kind = PtxOperand::Kind::kInteger;
      made.value = 32;
      return made;
    }
    for (int scope = scope_; scope >= 0; scope = scopes_[scope].parent) {
      const auto found = scopes_[scope].variables.find(word);
      if (found == scopes_[scope].variables.end()) continue;
      made.kind = PtxOperand::Kind::kVariable;
      made.index = found->second;
      return made;
    }
    if (const auto found = globals_.find(word); found != globals_.end()) {
      made.kind = PtxOperand::Kind::kVariable;
      made.global = true;
      made.index = found->second;
      return made;
    }
    made.kind = PtxOperand::Kind::kName;
    made.name = std::string(word);
    return made;
  }

  std::optional<std::uint32_t> find_register(std::string_view word) const {
    std::size_t digits = word.size();
    while (digits > 0 && word[digits - 1] >= '0' && word[digits - 1] <= '9') --digits;
    const std::string_view prefix = word.substr(0, digits);
    std::uint64_t number = 0;
    const bool canonical =
        digits < word.size() && word.size() - digits <= 9 && (word.size() - digits == 1 || word[digits] != '0');
    if (canonical) {
      for (char c : word.substr(digits)) number = number * 10 + static_cast<std::uint64_t>(c - '0');
    }
    for (int scope = scope_; scope >= 0; scope = scopes_[scope].parent) {
      const Scope& current = scopes_[scope];
      if (const auto found = current.registers.find(word); found != current.registers.end()) return found->second;
      if (!canonical) continue;
      const auto range = current.register_ranges.find(prefix);
      if (range != current.register_ranges.end() && number < range->second.count) {
        return range->second.first + static_cast<std::uint32_t>(number);
      }
    }
    return std::nullopt;
  }

  // ---- labels
  std::uint32_t find_label(std::string_view word, int scope) const {
    for (; scope >= 0; scope = scopes_[scope].parent) {
      const auto found = scopes_[scope].labels.find(word);
      if (found != scopes_[scope].labels.end()) return found->second;
    }
    return kNoLabel;
  }

  void resolve_labels(PtxFunction& made) {
    for (const Fixup& fixup : fixups_) {
      PtxInstruction& instruction = made.instructions[fixup.instruction];
      if (instruction.base != "bra" && instruction.base != "brx") continue;
      for (PtxOperand& operand : instruction.operands) resolve_label(operand, instruction, fixup.scope);
    }
  }

  void resolve_label(PtxOperand& operand, const PtxInstruction& instruction, int scope) {
    if (operand.kind != PtxOperand::Kind::kName) return;
    const std::uint32_t found = find_label(operand.name, scope);
    if (found != kNoLabel) {
      operand.kind = PtxOperand::Kind::kLabel;
      operand.index = found;
      return;
    }
    for (int at = scope; at >= 0; at = scopes_[at].parent) {
      const auto list = scopes_[at].label_lists.find(operand.name);
      if (list == scopes_[at].label_lists.end()) continue;
      operand.kind = PtxOperand::Kind::kVector;
      for (std::string_view word : list->second) {
        const std::uint32_t target = find_label(word, at);
        if (target == kNoLabel) throw_ptx_error(module_.file, instruction.line, "unknown label", std::string(word));
        operand.parts.push_back({.kind = PtxOperand::Kind::kLabel, .index = target});
      }
      return;
    }
    throw_ptx_error(module_.file, instruction.line, "unknown label", operand.name);
  }

  PtxModule module_;
  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  std::unordered_map<std::string_view, std::uint32_t> globals_;
  std::vector<std::unique_ptr<std::string>> names_;  // keeps the keys of the maps alive
  PtxFunction* function_ = nullptr;
  std::vector<Scope> scopes_;
  int scope_ = 0;
  std::vector<Fixup> fixups_;
  int location_file_ = 0, location_line_ = 0;
};

}  // namespace

PtxModule parse_ptx(std::string_view text, const std::string& file) {
  return Parser(text, file).run();
}

const PtxFunction* PtxModule::find_function(std::string_view wanted) const {
  for (const PtxFunction& function : functions) {
    if (function.name == wanted) return &function;
  }
  return nullptr;
}

}  // namespace fusec::emulator
