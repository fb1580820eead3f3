#include "analysis/vector_product.h"

namespace fusec {

std::optional<VectorProduct> find_vector_product(const Kernel& kernel, const Graph& graph, const Target& target) {
  ProductAnswer answer = find_product(kernel, true);
  if (!answer.product) return std::nullopt;
  auto few = find_few_rows(graph, answer.kernel ? *answer.kernel : kernel, *answer.product, target);
  if (!few) return std::nullopt;
  return VectorProduct{std::move(answer), *std::move(few)};
}

}  // namespace fusec
