#include "codegen/reduction/row_chunk_results.h"

#include <fmt/format.h>

#include "codegen/reduction/row_partials.h"

namespace fusec {

void RowChunkResults::store(const std::vector<ExprEmitter::Accumulator>& accumulators, const std::string& count) {
  writer_.open(threads_.active().empty() ? fmt::format("if ({} == 0)", threads_.part())
                                         : fmt::format("if ({} == 0 && {})", threads_.part(), threads_.active()));
  for (const ExprEmitter::Accumulator& a : accumulators)
    writer_.line("{}[{}] = {};", memory_of(a), place(threads_.chunk()), a.name);
  if (!count.empty()) writer_.line("{}[{}] = {};", memory_of_counts(), place(threads_.chunk()), count);
  writer_.close();
}

void RowChunkResults::combine(const std::vector<ExprId>& reductions) {
  std::vector<ExprEmitter::Accumulator> accumulators;
  std::vector<std::string> memories;
  for (const ExprId r : reductions) {
    accumulators.push_back(emitter_.declared(r));
    memories.push_back(memory_of(accumulators.back()));
  }
  const std::string i = writer_.unique("i");
  writer_.use("combine");
  open_chunks(i);
  for (std::size_t n = 0; n < accumulators.size(); ++n) {
    const ExprEmitter::Accumulator& a = accumulators[n];
    writer_.line("{0} = {1}({0}, {2}[{3}]);", a.name, a.combine, memories[n], place(i));
  }
  writer_.close();
  threads_.reduce(accumulators);
  for (const ExprEmitter::Accumulator& a : accumulators) emitter_.define(a.reduction, emitter_.result(a));
}

std::string RowChunkResults::memory_of(const ExprEmitter::Accumulator& a) {
  return row_partials(writer_, form_, a, point_count(form_.kernel.pool, form_.rows) * threads_.chunks());
}

std::string RowChunkResults::memory_of_counts() {
  return counts_of_partials(writer_, form_, point_count(form_.kernel.pool, form_.rows) * threads_.chunks());
}

std::string RowChunkResults::place(const std::string& chunk) const {
  if (threads_.row() == "0") return chunk;
  if (layout_.reduction_group != ReductionGroup::kColumn)
    return fmt::format("{} * {} + {}", threads_.row(), threads_.chunk_count(), chunk);
  const IndexExpr rows = point_count(form_.kernel.pool, form_.rows);
  return fmt::format("{} * {} + {}", chunk, emitter_.index_text().tight(rows), threads_.row());
}

void RowChunkResults::open_chunks(const std::string& i) {
  writer_.open("for (int {0} = {1}; {0} < {2}; {0} += {3})", i, threads_.part(), threads_.chunk_count(), layout_.parts);
}

}  // namespace fusec
