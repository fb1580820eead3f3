#include "ir/index_size.h"

namespace fusec {
namespace {

void count(const IndexExpr& e, std::size_t most, std::size_t& size) {
  for (const IndexTerm& term : e.terms())
    for (const IndexAtomPtr& factor : term.factors) {
      if (factor->kind == IndexAtom::Kind::kVariable) continue;
      if (++size > most) return;
      count(factor->a, most, size);
      count(factor->b, most, size);
    }
}

void count_terms(const IndexExpr& e, std::size_t most, std::size_t& size) {
  size += e.terms().size();
  for (const IndexTerm& term : e.terms())
    for (const IndexAtomPtr& factor : term.factors) {
      if (size > most) return;
      count_terms(factor->a, most, size);
      count_terms(factor->b, most, size);
    }
}

}  // namespace

std::size_t index_size(const IndexExpr& e, std::size_t most) {
  std::size_t size = 0;
  count(e, most, size);
  return size;
}

std::size_t term_count(const IndexExpr& e, std::size_t most) {
  std::size_t size = 0;
  count_terms(e, most, size);
  return size;
}

}  // namespace fusec
