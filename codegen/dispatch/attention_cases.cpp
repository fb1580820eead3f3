#include "codegen/dispatch/attention_cases.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "schedule/attention/attention_form.h"
#include "schedule/attention/attention_tiles.h"
#include "schedule/attention/split_kv.h"

namespace fusec {
namespace {

constexpr std::int64_t kExpected = 2048;  // assumed hint of a symbol without one

IndexExpr count(const ExprPool& pool, const std::vector<std::uint32_t>& axes) {
  IndexExpr product = 1;
  for (const std::uint32_t a : axes) product *= pool.extent(a);
  return simplify(product, pool.bounds());
}

std::int64_t allowed(const Symbol& symbol, std::int64_t hint) {
  const std::int64_t of_multiple = symbol.multiple_of;
  const std::int64_t least = (symbol.min + of_multiple - 1) / of_multiple * of_multiple;
  return std::max(least, std::min(hint, symbol.max) / of_multiple * of_multiple);
}

Kernel expecting(Kernel kernel, std::uint32_t symbol, std::int64_t hint) {
  std::vector<Symbol> symbols = kernel.pool.bounds().symbols.list();
  symbols[symbol].hint = allowed(symbols[symbol], hint);
  kernel.pool.assume(std::move(symbols), kernel.pool.bounds().products);
  return kernel;
}

std::optional<Kernel> assuming(Kernel kernel, const GuardCondition& condition) {
  GuardedSymbols known = assume({condition}, kernel.pool.bounds().symbols);
  if (!is_possible(known)) return std::nullopt;
  kernel.pool.assume(std::move(known.symbols), kernel.pool.bounds().products);
  return kernel;
}

// A symbol times a constant.
struct Multiple {
  std::uint32_t symbol;
  std::int64_t times;
};
std::optional<Multiple> as_multiple(const IndexExpr& e) {
  if (e.terms().size() != 1 || e.terms()[0].factors.size() != 1) return std::nullopt;
  const IndexTerm& term = e.terms()[0];
  const IndexAtom& factor = *term.factors[0];
  if (factor.kind != IndexAtom::Kind::kVariable || factor.variable.kind != Variable::Kind::kSymbol ||
      term.coefficient <= 0)
    return std::nullopt;
  return Multiple{factor.variable.id, term.coefficient};
}

std::shared_ptr<const Attention> attention_of(const Kernel& kernel, FormMemory& forms) {
  if (kernel.pool.bounds().symbols.empty()) return nullptr;
  const std::shared_ptr<const FormOfKernel> form = forms.of(kernel);
  return form->attention ? std::shared_ptr<const Attention>(form, &*form->attention) : nullptr;
}

// The number of splits of the keys if the symbol has the value `hint`.
int splits_at(Attention form, std::uint32_t symbol, std::int64_t hint, const Target& target) {
  form.kernel = expecting(std::move(form.kernel), symbol, hint);
  return expected_splits(form, attention_tiles(form, target), target);
}

// The symbol in the key count that can be largest.
std::optional<std::uint32_t> symbol_of_keys(const Attention& form) {
  std::optional<std::uint32_t> most;
  const Symbols& symbols = form.kernel.pool.bounds().symbols;
  for (const Variable v : variables_of(count(form.kernel.pool, form.keys)))
    if (v.kind == Variable::Kind::kSymbol && (!most || symbols[v.id].max > symbols[*most].max)) most = v.id;
  return most;
}

}  // namespace

std::optional<AttentionCases> query_count_cases(const Kernel& kernel, const Target& target, FormMemory& forms) {
  const auto form = attention_of(kernel, forms);
  if (!form) return std::nullopt;
  const auto rows = as_multiple(count(form->kernel.pool, form->rows));
  if (!rows) return std::nullopt;
  // The form with one query: heads share its tile of rows.
  const auto one = attention_of(expecting(kernel, rows->symbol, 1), forms);
  const auto tile_rows = one ? as_multiple(count(one->kernel.pool, one->rows)) : std::nullopt;
  if (!tile_rows || tile_rows->symbol != rows->symbol) return std::nullopt;
  const AttentionTiles tiles = attention_tiles(*one, target);
  const Symbol& symbol = kernel.pool.bounds().symbols[rows->symbol];
  const std::int64_t few = (tiles.tensor_cores ? kManyRows : tiles.rows) / tile_rows->times;
  const auto special = assuming(kernel, {.symbols = {rows->symbol}, .at_least = few + 1});
  const auto known_few = assuming(kernel, {.symbols = {rows->symbol}, .at_most = few});
  if (!special || !known_few) return std::nullopt;
  // If the keys are the queries' own, few queries mean little work in any form.
  if (range_of(count(form->kernel.pool, form->keys), known_few->pool.bounds()).max < 4 * tiles.keys)
    return std::nullopt;
  return AttentionCases{
      .general = expecting(kernel, rows->symbol, symbol.hint > few ? 1 : symbol.hint),  // decoding, beside prompts
      .special = expecting(*special, rows->symbol, symbol.hint > few ? symbol.hint : kExpected),
      .condition = {.symbols = {rows->symbol}, .at_least = few + 1},
  };
}

std::optional<AttentionCases> key_count_cases(const Kernel& kernel, const Target& target, FormMemory& forms) {
  const auto form = attention_of(kernel, forms);
  const auto counted = form ? symbol_of_keys(*form) : std::nullopt;
  if (!counted) return std::nullopt;
  const Symbol& symbol = kernel.pool.bounds().symbols[*counted];
  const auto splits = [&](std::int64_t hint) { return splits_at(*form, *counted, hint, target); };
  const std::int64_t many = allowed(symbol, std::max(kKeyHeadroom * symbol.hint, kExpected));
  if (splits(many) == 1) return std::nullopt;
  const bool many_expected = splits(symbol.hint) > 1;
  std::int64_t few = many_expected ? allowed(symbol, 1) : symbol.hint;
  if (splits(few) > 1) return std::nullopt;
  while (2 * few <= many && splits(2 * few) == 1) few *= 2;
  const GuardCondition condition = {.symbols = {*counted}, .at_most = few};
  auto special = assuming(kernel, condition);
  if (!special) return std::nullopt;
  return AttentionCases{.general = expecting(kernel, *counted, many_expected ? symbol.hint : many),
                        .special = *std::move(special),
                        .condition = condition};
}

}  // namespace fusec
