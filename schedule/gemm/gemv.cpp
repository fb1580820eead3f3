#include "schedule/gemm/gemv.h"

namespace fusec {

std::optional<Gemv> find_gemv(const Kernel& kernel, const Graph& graph, const Target& target) {
  ContractionMatch answer = find_contraction(kernel, true);
  if (!answer.contraction) return std::nullopt;
  auto few = find_skinny_gemm(graph, answer.kernel ? *answer.kernel : kernel, *answer.contraction, target);
  if (!few) return std::nullopt;
  return Gemv{std::move(answer), *std::move(few)};
}

}  // namespace fusec
