// Expressions of emitted CUDA C++ as values. Operators simplify while they build, so that emitted code has no `0 * 2`
// and no `x - 0`, and a schedule can ask whether something is 0.
//
//   const CExpr place = piece * 16 + start;    with start = 0:   piece * 16
//
// A leaf may hold text that was printed before, such as an operand from ExprEmitter. Names in it are found as words.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fusec {

class CExpr {
 public:
  enum class Kind : std::uint8_t {
    kInteger,
    kName,    // of a variable: `text`
    kText,    // any other operand that was printed before: `text`
    kUnary,   // `text` is the operator
    kBinary,  // `text` is the operator
    kSelect,  // a ? b : c
    kCast,    // (text)a
    kCall,    // text(a, b)
    kIndex,   // a[b]
  };

  CExpr() : CExpr(0) {}
  CExpr(std::integral auto value) : node_(integer(static_cast<std::int64_t>(value))) {}  // NOLINT: reads as a literal
  // A leaf. An integer or a name is recognized as one.
  CExpr(std::string_view text);                                      // NOLINT
  CExpr(const std::string& text) : CExpr(std::string_view(text)) {}  // NOLINT
  CExpr(const char* text) : CExpr(std::string_view(text)) {}         // NOLINT

  static CExpr operation(Kind kind, std::string text, std::vector<CExpr> operands);

  Kind kind() const { return node_->kind; }
  const std::string& word() const { return node_->text; }
  const std::vector<CExpr>& operands() const { return node_->operands; }
  std::optional<std::int64_t> as_integer() const;
  bool is(std::int64_t value) const { return as_integer() == value; }
  bool is_true() const { return is_name("true"); }
  bool is_false() const { return is_name("false"); }
  bool is_leaf() const { return kind() == Kind::kInteger || kind() == Kind::kName; }

  // The expression as C++. `tight` adds parentheses where it binds less than a name.
  std::string text() const;
  std::string tight() const;

  friend bool operator==(const CExpr& a, const CExpr& b);

 private:
  struct Node {
    Kind kind;
    std::string text;
    std::int64_t value = 0;
    std::vector<CExpr> operands = {};
  };
  static std::shared_ptr<const Node> integer(std::int64_t value);
  bool is_name(std::string_view name) const { return kind() == Kind::kName && word() == name; }
  int precedence() const;
  std::string operand(int outer) const;

  std::shared_ptr<const Node> node_;
};

CExpr operator+(const CExpr& a, const CExpr& b);
CExpr operator-(const CExpr& a, const CExpr& b);
CExpr operator*(const CExpr& a, const CExpr& b);
CExpr operator/(const CExpr& a, const CExpr& b);
CExpr operator%(const CExpr& a, const CExpr& b);
CExpr operator<(const CExpr& a, const CExpr& b);
CExpr operator<=(const CExpr& a, const CExpr& b);
CExpr operator>(const CExpr& a, const CExpr& b);
CExpr operator>=(const CExpr& a, const CExpr& b);
CExpr operator&&(const CExpr& a, const CExpr& b);
CExpr operator||(const CExpr& a, const CExpr& b);
CExpr operator&(const CExpr& a, const CExpr& b);
CExpr operator!(const CExpr& a);
CExpr operator-(const CExpr& a);

CExpr select(const CExpr& condition, const CExpr& yes, const CExpr& no);
CExpr cast(std::string_view type, const CExpr& value);
CExpr call(std::string_view function, std::vector<CExpr> arguments = {});
CExpr element(const CExpr& array, const CExpr& index);
// *address, *(type*)address
CExpr pointee(const CExpr& address);
CExpr pointee(std::string_view type, const CExpr& address);

// The same with other leaves, simplified again.
CExpr with_leaves(const CExpr& e, const std::function<CExpr(const CExpr& leaf)>& replacement);
void for_each_leaf(const CExpr& e, const std::function<void(const CExpr& leaf)>& visit);

// How many brackets a character opens (1) or closes (-1): ()[]{}, and <> of template arguments, which have no space
// before them.
int bracket(std::string_view text, std::size_t at);

// Calls `visit` with first and last of each identifier of the text that may name a variable: not those of members,
// numbers and strings.
void for_each_word(std::string_view text, const std::function<void(std::size_t first, std::size_t last)>& visit);

}  // namespace fusec
