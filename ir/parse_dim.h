// Dimension strings: "2*tokens+1", "(h - 3)//2 + 1", "min(tokens, 512)".
//
//   sum     = product { ("+" | "-") product }
//   product = factor { ("*" | "//" | "%") factor }
//   factor  = integer | symbol | "-" factor | "(" sum ")" | ("min" | "max") "(" sum "," sum ")"
//
// Blanks are allowed everywhere. Text that to_string prints parses to the same expression.
#pragma once

#include <string_view>
#include <unordered_map>

#include "ir/bounds.h"
#include "ir/index_expr.h"

namespace fusec {

// The symbols of a model by name.
class SymbolNames {
 public:
  explicit SymbolNames(Symbols symbols);
  const std::uint32_t* find(std::string_view name) const;
  const Symbols& symbols() const { return symbols_; }

 private:
  Symbols symbols_;
  std::unordered_map<std::string_view, std::uint32_t> ids_;
};

bool is_identifier(std::string_view text);

// Throws OpError with an empty `place`.
Dim parse_dim(std::string_view text, const SymbolNames& names);

}  // namespace fusec
