#include "codegen/schedules/line_copy.h"

#include <fmt/format.h>

#include "analysis/gemm_form.h"
#include "codegen/schedules/direct.h"
#include "ir/type.h"

namespace fusec {
std::optional<LineCopy> LineCopy::plan(const TileLoader& loader, ExprEmitter& emitter, const TileLoad& load,
                                       int threads) {
  const ExprPool& pool = emitter.kernel().pool;
  if (!load.narrowed || loader.vector_width(load) != kTogether) return std::nullopt;
  LineCopy made;
  made.load_ = load;
  made.threads_ = threads;
  made.position_ = emitter.position(load.factor);
  made.units_ = static_cast<int>(pool.extent(load.along_places[0]).as_constant().value_or(0) / kTogether);
  made.count_ = simplify(point_count(pool, load.along_lines), pool.bounds());
  if (!made.count_.is(1)) {
    const auto stride = flat_stride(made.position_, load.along_lines, pool);
    if (!stride) return std::nullopt;
    made.stride_ = *stride;
  }
  if (made.units_ == 0) return std::nullopt;
  return made;
}

std::string LineCopy::lines_type() const {
  return fmt::format("Lines<{}, {}, {}>", threads_ / 32, load_.lines, units_);
}

void LineCopy::declare(ExprEmitter& emitter) {
  KernelWriter& writer = emitter.writer();
  writer.use("line_copies");
  place_ = writer.unique(load_.tile + "_lines");
  to_ = writer.unique(load_.tile + "_to");
  at_ = writer.unique(load_.tile + "_at");
  writer.line(fmt::format("const {} {}(threadIdx.x);", lines_type(), place_));
  writer.line(fmt::format("const unsigned {} = shared_address({} + {}.line * {} + {}.unit * {});", to_, load_.tile,
                          place_, load_.stride, place_, kTogether));
  const ExprEmitter::Mark mark = emitter.mark();
  for (const std::uint32_t a : load_.along_lines) emitter.bind(a, "0");
  emitter.bind(load_.along_places[0], fmt::format("{}.unit * {}", place_, kTogether));
  emitter.emit_independent({load_.factor});
  const std::string step = emitter.index_text().tight(stride_);
  const std::string start = emitter.index(position_);
  writer.line(fmt::format("const {} {} = {} + {}.line * {};", writer.index_type(), at_, start, place_, step));
  emitter.rewind(mark);
}

bool LineCopy::same_places(const LineCopy& other) const {
  const IndexExpr position = substitute(position_, [&](Variable v) -> std::optional<IndexExpr> {
    if (v != Variable{Variable::Kind::kAxis, load_.along_places[0]}) return std::nullopt;
    return IndexExpr::axis(other.load_.along_places[0]);
  });
  return position == other.position_ && stride_ == other.stride_ && units_ == other.units_ &&
         load_.lines == other.load_.lines && load_.stride == other.load_.stride;
}

void LineCopy::declare_like(const LineCopy& other, int bytes) {
  place_ = other.place_;
  to_ = fmt::format("{} + {}", other.to_, bytes);
  at_ = other.at_;
}

void LineCopy::clear_rest(KernelWriter& writer) const {
  if (!has_rest()) return;
  const int rest = load_.places / kTogether - units_;
  const std::string e = writer.unique("e");
  writer.open(fmt::format("for (int {0} = threadIdx.x; {0} < {1}; {0} += {2})", e, load_.lines * rest, threads_));
  writer.line(fmt::format("*(uint4*)({} + {} / {} * {} + {} + {} % {} * {}) = make_uint4(0, 0, 0, 0);", load_.tile, e,
                          rest, load_.stride, units_ * kTogether, e, rest, kTogether));
  writer.close();
}

void LineCopy::copy(ExprEmitter& emitter, const std::string& first) const {
  KernelWriter& writer = emitter.writer();
  const Bounds& bounds = emitter.kernel().pool.bounds();
  const std::string step = emitter.index_text().tight(stride_), count = emitter.index_text().tight(count_);
  const std::string at = first == "0" ? at_ : fmt::format("({} + ({}) * {})", at_, first, step);
  const std::string from = fmt::format("{} + {}", writer.input(emitter.kernel().pool[load_.factor].source), at);
  const auto issue = [&](bool all) {
    writer.line(fmt::format("{}.copy{}<{}>({}, {}, {}{});", place_, all ? "" : "_some", 2 * load_.stride, to_, from,
                            step, all ? "" : fmt::format(", {} - ({})", count, first)));
  };
  if (proves_multiple_of(count_, load_.lines, bounds)) {
    issue(true);
    return;
  }
  writer.open(fmt::format("if ({} + {} <= {})", first, load_.lines, count));
  issue(true);
  writer.close("} else {");
  writer.reopen();
  issue(false);
  writer.close();
}

}  // namespace fusec
