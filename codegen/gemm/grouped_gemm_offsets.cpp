#include "codegen/gemm/grouped_gemm_offsets.h"

#include <fmt/format.h>

namespace fusec {

std::string emit_group_ends(ExprEmitter& emitter, const Contraction& contraction, const GroupedGemm& groups,
                            int threads, const std::string& memory) {
  KernelWriter& writer = emitter.writer();
  const ExprPool& pool = emitter.kernel().pool;
  writer.use("sorted_ends");
  const std::string count = emitter.index_text().tight(simplify(pool.extent(groups.axis), pool.bounds()));
  const std::string rows = emitter.index_text().tight(point_count(pool, contraction.rows));
  const std::string e = writer.unique("e");
  writer.line("#pragma unroll 1");
  writer.open_strided(e, count, threads);
  const ExprEmitter::Mark mark = emitter.mark();
  emitter.bind(groups.axis, e);
  writer.line(fmt::format("{}[{}] = (int)min(max((long long)({}), 0ll), (long long){});", memory, e,
                          emitter.emit(groups.end), rows));
  emitter.rewind(mark);
  writer.close();
  std::string sorted = fmt::format("({} + {})", memory, count);
  writer.line(fmt::format("sort_ends<{}>({}, {}, {});", threads, memory, sorted, count));
  return sorted;
}

}  // namespace fusec
