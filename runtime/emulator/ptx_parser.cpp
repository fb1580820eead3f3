// A recursive descent parser for PTX. kMaxDepth bounds its depth and the other kMax constants its sizes, so no text can
// make it crash or use up the machine's memory.
#include <memory>
#include <optional>
#include <unordered_map>

#include "runtime/emulator/ptx_declaration.h"
#include "runtime/emulator/ptx_module.h"
#include "runtime/emulator/ptx_scope.h"
#include "runtime/emulator/ptx_token_reader.h"

namespace fusec::emulator {
namespace {

constexpr int kMaxDepth = 64;
constexpr std::uint64_t kMaxRegisters = 1u << 18;

struct Fixup {
  std::uint32_t instruction;
  int scope;
};

class Parser {
 public:
  Parser(std::string_view text, const std::string& file) : in_(text, file) { module_.file = file; }

  PtxModule run() {
    while (in_.peek().kind != Token::Kind::kEnd) module_item();
    return std::move(module_);
  }

 private:
  // ---- module level
  void module_item() {
    const Token& token = in_.peek();
    if (in_.accept(";")) return;
    if (token.kind != Token::Kind::kDotWord) in_.fail("unexpected text", "a directive");
    if (token.text == "version") {
      in_.take();
      module_.version = std::string(in_.peek().text);
      in_.skip_line();
    } else if (token.text == "target") {
      in_.take();
      module_.target = in_.peek().kind == Token::Kind::kIdentifier ? std::string(in_.peek().text) : "";
      in_.skip_line();
    } else if (token.text == "file") {
      file_directive();
    } else if (token.text == "address_size" || token.text == "loc") {
      in_.skip_line();
    } else if (token.text == "section") {
      in_.take();
      while (!in_.peek().is("{") && in_.peek().kind != Token::Kind::kEnd) in_.take();
      in_.skip_braces();
    } else if (token.text == "pragma" || token.text == "alias") {
      while (!in_.peek().is(";") && in_.peek().kind != Token::Kind::kEnd) in_.take();
    } else {
      declaration();
    }
  }

  void file_directive() {
    const int line = in_.take().line;
    const int number = static_cast<int>(in_.integer());
    if (in_.peek().kind == Token::Kind::kString)
      module_.source_files.emplace_back(number, std::string(in_.peek().text));
    while (in_.peek().kind != Token::Kind::kEnd && in_.peek().line == line) in_.take();
  }

  void declaration() {
    bool is_extern = false;
    while (true) {
      if (in_.accept_dot("visible") || in_.accept_dot("weak") || in_.accept_dot("common")) continue;
      if (!in_.accept_dot("extern")) break;
      is_extern = true;
    }
    if (in_.accept_dot("attribute")) in_.skip_parentheses();
    if (in_.accept_dot("entry")) return function(true);
    if (in_.accept_dot("func")) return function(false);
    if (std::optional<Space> space = accept_variable_space(in_)) {
      for (PtxVariable& variable : parse_variables(in_, *space, is_extern)) {
        const auto index = static_cast<std::uint32_t>(module_.variables.size());
        names_.push_back(std::make_unique<std::string>(variable.name));
        globals_[*names_.back()] = index;
        module_.variables.push_back(std::move(variable));
      }
      return;
    }
    in_.fail("unknown directive");
  }

  // ---- functions
  void function(bool is_entry) {
    PtxFunction made{.is_entry = is_entry, .line = in_.peek().line};
    function_ = &made;
    scopes_.assign(1, Scope{});
    scope_ = 0;
    fixups_.clear();
    if (in_.accept_dot("attribute")) in_.skip_parentheses();
    if (!is_entry && in_.peek().is("(")) parameter_list(made.results);
    made.name = std::string(in_.identifier());
    if (in_.peek().is("(")) parameter_list(made.parameters);
    function_directives(made);
    if (!in_.accept(";")) {
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
      if (known.has_body && made.has_body) in_.fail("function defined twice: " + made.name);
      if (made.has_body) known = std::move(made);
      return;
    }
    module_.functions.push_back(std::move(made));
  }

  void parameter_list(std::vector<std::uint32_t>& list) {
    in_.expect("(");
    while (!in_.accept(")")) {
      if (in_.accept_dot("reg")) in_.fail("functions with register parameters are not supported");
      if (!in_.accept_dot("param")) in_.fail("malformed parameter", ".param");
      PtxVariable variable = parse_parameter(in_);
      list.push_back(declare_variable(std::move(variable)));
      if (!in_.peek().is(")")) in_.expect(",");
    }
  }

  void function_directives(PtxFunction& made) {
    while (in_.peek().kind == Token::Kind::kDotWord) {
      const std::string_view word = in_.take().text;
      if (word == "reqntid")
        made.required_threads = dimensions();
      else if (word == "maxntid")
        made.max_threads = dimensions();
      else if (word == "reqnctapercluster")
        made.required_cluster = dimensions();
      else if (word == "minnctapersm" || word == "maxnctapersm" || word == "maxnreg" || word == "maxclusterrank" ||
               word == "abi_preserve" || word == "abi_preserve_control")
        in_.integer();
      else if (word == "pragma") {
        while (!in_.peek().is(";") && in_.peek().kind != Token::Kind::kEnd) in_.take();
        in_.expect(";");
      } else if (word != "noreturn" && word != "explicitcluster" && word != "blocksareclusters" && word != "unique") {
        in_.fail("unknown directive of a function: ." + std::string(word));
      }
    }
  }

  std::array<std::uint32_t, 3> dimensions() {
    std::array<std::uint32_t, 3> size{1, 1, 1};
    std::size_t count = 0;
    do {
      if (count == 3) in_.fail("more than three dimensions");
      size[count++] = static_cast<std::uint32_t>(in_.integer());
    } while (in_.accept(","));
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
    in_.expect("{");
    int depth = 1;
    location_file_ = location_line_ = 0;
    while (depth > 0) {
      if (in_.peek().kind == Token::Kind::kEnd) in_.fail("function without an end");
      if (in_.accept("{")) {
        if (++depth > kMaxDepth) in_.fail("blocks nested too deeply");
        scopes_.push_back(Scope{.parent = scope_});
        scope_ = static_cast<int>(scopes_.size()) - 1;
      } else if (in_.accept("}")) {
        --depth;
        if (depth > 0) scope_ = scopes_[scope_].parent;
      } else {
        statement(made);
      }
    }
  }

  void statement(PtxFunction& made) {
    if (in_.accept(";")) return;
    if (in_.peek().kind == Token::Kind::kDotWord) return body_directive(made);
    if (in_.peek().kind == Token::Kind::kIdentifier && in_.peek(1).is(":")) {
      const std::string_view label = in_.take().text;
      in_.take();
      if (in_.peek().is_dot("branchtargets")) {
        in_.take();
        auto& list = scopes_[scope_].label_lists[label];
        do {
          list.push_back(in_.identifier());
        } while (in_.accept(","));
        in_.expect(";");
      } else if (in_.peek().is_dot("callprototype") || in_.peek().is_dot("calltargets")) {
        while (!in_.peek().is(";") && in_.peek().kind != Token::Kind::kEnd) in_.take();
      } else if (!scopes_[scope_].labels.emplace(label, made.instructions.size()).second) {
        in_.fail("label declared twice: " + std::string(label));
      }
      return;
    }
    instruction(made);
  }

  void body_directive(PtxFunction& made) {
    if (in_.accept_dot("reg")) return register_declaration(made);
    if (in_.peek().is_dot("loc")) {
      const int line = in_.take().line;
      location_file_ = static_cast<int>(in_.integer());
      location_line_ = static_cast<int>(in_.integer());
      while (in_.peek().kind != Token::Kind::kEnd && in_.peek().line == line) in_.take();
      return;
    }
    if (in_.peek().is_dot("file")) return file_directive();
    if (in_.accept_dot("pragma")) {
      while (!in_.peek().is(";") && in_.peek().kind != Token::Kind::kEnd) in_.take();
      in_.expect(";");
      return;
    }
    const bool is_extern = in_.accept_dot("extern");
    if (std::optional<Space> space = accept_variable_space(in_)) {
      for (PtxVariable& variable : parse_variables(in_, *space, is_extern)) declare_variable(std::move(variable));
      return;
    }
    in_.fail("unknown directive");
  }

  void register_declaration(PtxFunction& made) {
    int lanes = 1;
    Type type = Type::kNone;
    while (in_.peek().kind == Token::Kind::kDotWord) {
      const std::string_view word = in_.take().text;
      if (word == "v2" || word == "v4")
        lanes = word[1] - '0';
      else if (word == "align")
        in_.integer();
      else if (std::optional<Type> parsed = parse_type(word))
        type = *parsed;
      else
        in_.fail("unknown register type: ." + std::string(word));
    }
    if (type == Type::kNone) in_.fail("registers without a type");
    if (lanes != 1) in_.fail("vector registers are not supported");
    do {
      const std::string_view name = in_.identifier();
      std::uint64_t count = 1;
      const auto first = static_cast<std::uint32_t>(made.registers.size());
      if (in_.accept("<")) {
        count = in_.integer();
        in_.expect(">");
        if (count > kMaxRegisters) in_.fail("too many registers");
        scopes_[scope_].register_ranges[name] = {first, static_cast<std::uint32_t>(count)};
      } else {
        scopes_[scope_].registers[name] = first;
      }
      if (made.registers.size() + count > kMaxRegisters) in_.fail("too many registers");
      made.registers.resize(made.registers.size() + count, PtxRegister{type});
    } while (in_.accept(","));
    in_.expect(";");
  }

  // ---- instructions
  void instruction(PtxFunction& made) {
    PtxInstruction made_instruction{
        .line = in_.peek().line, .source_file = location_file_, .source_line = location_line_};
    if (in_.accept("@")) {
      made_instruction.guarded = true;
      made_instruction.guard_negated = in_.accept("!");
      const std::optional<std::uint32_t> found = find_register(scopes_, scope_, in_.identifier());
      if (!found) in_.fail("unknown guard predicate");
      made_instruction.guard = *found;
    }
    made_instruction.line = in_.peek().line;
    made_instruction.base = std::string(in_.identifier());
    made_instruction.opcode = made_instruction.base;
    while (in_.peek().kind == Token::Kind::kDotWord) {
      made_instruction.suffixes.emplace_back(in_.take().text);
      made_instruction.opcode += "." + made_instruction.suffixes.back();
    }
    while (!in_.accept(";")) {
      made_instruction.operands.push_back(operand(0));
      if (in_.peek().is(";")) continue;
      in_.expect(",");
    }
    fixups_.push_back({static_cast<std::uint32_t>(made.instructions.size()), scope_});
    made.instructions.push_back(std::move(made_instruction));
  }

  PtxOperand operand(int depth) {
    if (depth > 4) in_.fail("operand nested too deeply");
    PtxOperand first = simple_operand(depth);
    if (in_.accept("|")) {
      PtxOperand pair{.kind = PtxOperand::Kind::kPair};
      pair.parts.push_back(std::move(first));
      pair.parts.push_back(simple_operand(depth));
      return pair;
    }
    return first;
  }

  PtxOperand simple_operand(int depth) {
    if (in_.accept("{")) return list("}", PtxOperand::Kind::kVector, depth);
    if (in_.accept("(")) return list(")", PtxOperand::Kind::kVector, depth);
    if (in_.accept("[")) return address(depth);
    if (in_.accept("!")) {
      PtxOperand inner = operand(depth + 1);
      inner.negated = true;
      return inner;
    }
    if (in_.peek().is("-") || in_.peek().is("+") || in_.peek().is("~") || in_.peek().kind == Token::Kind::kInteger ||
        in_.peek().kind == Token::Kind::kFloat32 || in_.peek().kind == Token::Kind::kFloat64) {
      return literal();
    }
    PtxOperand named = named_operand();
    if (named.kind == PtxOperand::Kind::kVariable && (in_.peek().is("+") || in_.peek().is("-"))) {
      const bool negative = in_.take().is("-");
      const std::uint64_t value = in_.integer();
      named.offset =
          static_cast<std::int64_t>(static_cast<std::uint64_t>(named.offset) + (negative ? 0 - value : value));
    }
    return named;
  }

  PtxOperand list(std::string_view end, PtxOperand::Kind kind, int depth) {
    PtxOperand made{.kind = kind};
    while (!in_.accept(end)) {
      made.parts.push_back(operand(depth + 1));
      if (made.parts.size() > 4096) in_.fail("operand list too long");
      if (!in_.peek().is(end)) in_.expect(",");
    }
    return made;
  }

  PtxOperand literal() {
    bool negative = false, inverted = false;
    while (in_.peek().is("-") || in_.peek().is("+") || in_.peek().is("~")) {
      const Token& sign = in_.take();
      negative ^= sign.is("-");
      inverted ^= sign.is("~");
    }
    const Token& token = in_.take();
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
      in_.fail("malformed operand");
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
    while (in_.peek().is("+") || in_.peek().is("-")) {
      const bool negative = in_.take().is("-");
      const std::uint64_t value = in_.integer();
      made.offset = static_cast<std::int64_t>(static_cast<std::uint64_t>(made.offset) + (negative ? 0 - value : value));
    }
    while (in_.accept(",")) made.parts.push_back(operand(depth + 1));
    in_.expect("]");
    return made;
  }

  PtxOperand named_operand() {
    const std::string_view word = in_.identifier();
    PtxOperand made;
    if (word == "_") return made;
    if (const std::optional<std::uint32_t> found = find_register(scopes_, scope_, word)) {
      made.kind = PtxOperand::Kind::kRegister;
      made.index = *found;
      return made;
    }
    if (word[0] == '%') {
      made.kind = PtxOperand::Kind::kSpecial;
      made.name = std::string(word.substr(1));
      if (in_.peek().kind == Token::Kind::kDotWord) made.name += "." + std::string(in_.take().text);
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

  // ---- labels
  void resolve_labels(PtxFunction& made) {
    for (const Fixup& fixup : fixups_) {
      PtxInstruction& instruction = made.instructions[fixup.instruction];
      if (instruction.base != "bra" && instruction.base != "brx") continue;
      for (PtxOperand& operand : instruction.operands) resolve_label(operand, instruction, fixup.scope);
    }
  }

  void resolve_label(PtxOperand& operand, const PtxInstruction& instruction, int scope) {
    if (operand.kind != PtxOperand::Kind::kName) return;
    const std::uint32_t found = find_label(scopes_, scope, operand.name);
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
        const std::uint32_t target = find_label(scopes_, at, word);
        if (target == kNoLabel) throw_ptx_error(module_.file, instruction.line, "unknown label", std::string(word));
        operand.parts.push_back({.kind = PtxOperand::Kind::kLabel, .index = target});
      }
      return;
    }
    throw_ptx_error(module_.file, instruction.line, "unknown label", operand.name);
  }

  PtxModule module_;
  TokenReader in_;
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
