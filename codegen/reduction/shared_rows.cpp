#include "codegen/reduction/shared_rows.h"

#include <fmt/format.h>

#include <algorithm>

namespace fusec {

SharedRows::SharedRows(const RowForm& form, const Graph& graph, int lanes, int elements, int threads,
                       ExprEmitter& emitter)
    : form_(form), lanes_(lanes), emitter_(emitter), registers_(form, emitter.writer(), emitter) {
  std::vector<RowLoop> loops = loops_over_row(form);
  for (RowLoop& loop : loops) loop.vectors = elements;
  RowRegisters plan = plan_row_registers(form, graph, loops, 1, threads);
  if (std::ranges::any_of(plan.slots, &RowRegisters::Slot::words) || plan.code > kMaxUnrolledInstructions) return;
  register_words_ = plan.words;
  registers_.keep(std::move(plan), threads);
}

bool SharedRows::reduce(const std::vector<ExprId>& reductions, const OverRow& over_row) {
  if (std::ranges::find(form_.reductions, reductions[0]) == form_.reductions.end()) return false;
  const ExprPool& pool = form_.kernel.pool;
  std::vector<ExprEmitter::Accumulator> accumulators;
  RowLoop loop{.axes = pool[reductions[0]].axes, .roots = {}};
  for (const ExprId r : reductions) {
    accumulators.push_back(emitter_.declared(r));
    loop.roots.push_back(pool[r].args[0]);
  }
  over_row(loop, [&] { emitter_.accumulate(accumulators); });
  KernelWriter& writer = emitter_.writer();
  for (const ExprEmitter::Accumulator& a : accumulators) {
    if (lanes_ > 1) {
      writer.use("combine");
      if (a.extreme) writer.use("extreme_lanes");
      writer.use("warp_reduce");
      writer.line("{0} = warp_reduce<{1}>({0}, {2});", a.name, lanes_, a.combine);
    }
    emitter_.define(a.reduction, emitter_.result(a));
  }
  return true;
}

bool SharedRows::enter(const RowLoop& loop, const std::string& iteration) {
  if (registers_.iterations_of(loop.axes) == 0) return false;
  registers_.declare_arrays(loop.axes);
  registers_.enter(iteration);
  return true;
}

void SharedRows::leave(const RowLoop& loop) {
  registers_.leave();
  registers_.loop_is_done(loop);
}

}  // namespace fusec
