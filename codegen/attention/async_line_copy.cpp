#include "codegen/attention/async_line_copy.h"

#include <fmt/format.h>

#include <utility>

#include "codegen/access/direct.h"
#include "ir/type.h"
#include "schedule/gemm/gemm_form.h"

namespace fusec {
std::optional<AsyncLineCopy> AsyncLineCopy::plan(const TileLoader& loader, ExprEmitter& emitter, const TileLoad& load,
                                                 int threads) {
  const ExprPool& pool = emitter.kernel().pool;
  const int elements_per_copy = loader.vector_width(load);
  if (!load.narrowed || elements_per_copy == 1) return std::nullopt;
  AsyncLineCopy made;
  made.elements_per_copy_ = elements_per_copy;
  made.element_bytes_ = bits(*load.narrowed) / 8;
  made.load_ = load;
  made.threads_ = threads;
  made.position_ = emitter.position(load.operand);
  made.copies_per_line_ =
      static_cast<int>(pool.extent(load.position_axes[0]).as_constant().value_or(0) / elements_per_copy);
  made.count_ = simplify(point_count(pool, load.line_axes), pool.bounds());
  if (!made.count_.is(1)) {
    const auto stride = flat_stride(made.position_, load.line_axes, pool);
    if (!stride) return std::nullopt;
    made.stride_ = *stride;
  }
  if (made.copies_per_line_ == 0 || (made.element_bytes_ != 2 && made.has_rest())) return std::nullopt;
  return made;
}

std::string AsyncLineCopy::lines_type() const {
  const int of_copy = element_bytes_ * elements_per_copy_;
  const std::string bytes = of_copy == 16 ? "" : fmt::format(", {}", of_copy);
  return fmt::format("Lines<{}, {}, {}{}>", threads_ / 32, load_.lines, copies_per_line_, bytes);
}

void AsyncLineCopy::declare(ExprEmitter& emitter) {
  KernelWriter& writer = emitter.writer();
  writer.use("line_copies");
  place_ = writer.unique(load_.tile + "_lines");
  to_ = writer.unique(load_.tile + "_to");
  at_ = writer.unique(load_.tile + "_at");
  writer.line(fmt::format("const {} {}(threadIdx.x);", lines_type(), place_));
  writer.line(fmt::format("const unsigned {} = shared_address({} + {}.line * {} + {}.unit * {});", to_, load_.tile,
                          place_, load_.stride, place_, elements_per_copy_));
  const ExprEmitter::Mark mark = emitter.mark();
  for (const std::uint32_t a : load_.line_axes) emitter.bind(a, "0");
  emitter.bind(load_.position_axes[0], fmt::format("{}.unit * {}", place_, elements_per_copy_));
  emitter.emit_independent({load_.operand});
  const std::string step = emitter.index_text().tight(stride_);
  const std::string start = emitter.index(position_);
  writer.line(fmt::format("const {} {} = {} + {}.line * {};", writer.index_type(), at_, start, place_, step));
  emitter.rewind(mark);
}

bool AsyncLineCopy::same_offsets(const AsyncLineCopy& other) const {
  const IndexExpr position = substitute(position_, [&](Variable v) -> std::optional<IndexExpr> {
    if (v != Variable{Variable::Kind::kAxis, load_.position_axes[0]}) return std::nullopt;
    return IndexExpr::axis(other.load_.position_axes[0]);
  });
  return position == other.position_ && stride_ == other.stride_ && copies_per_line_ == other.copies_per_line_ &&
         elements_per_copy_ == other.elements_per_copy_ && load_.lines == other.load_.lines &&
         load_.stride == other.load_.stride;
}

void AsyncLineCopy::declare_like(const AsyncLineCopy& other, int bytes) {
  place_ = other.place_;
  to_ = fmt::format("{} + {}", other.to_, bytes);
  at_ = other.at_;
}

void AsyncLineCopy::clear_rest(KernelWriter& writer, int stages, int stage_elements) const {
  if (!has_rest()) return;
  const std::string e = writer.unique("e"), line = writer.unique("line"), unit = writer.unique("unit");
  const auto [type, zero] = elements_per_copy_ == 8   ? std::pair("uint4", "make_uint4(0, 0, 0, 0)")
                            : elements_per_copy_ == 4 ? std::pair("uint2", "make_uint2(0, 0)")
                                                      : std::pair("unsigned", "0");
  // Eight neighbouring lanes write the same 16 bytes of eight lines, which are in different banks.
  const int of_sixteen = 8 / elements_per_copy_, first = copies_per_line_ / of_sixteen, rest = load_.places / 8 - first;
  writer.open(
      fmt::format("for (int {0} = threadIdx.x; {0} < {1}; {0} += {2})", e, load_.lines * rest * of_sixteen, threads_));
  writer.line(
      fmt::format("const int {0} = {1} / {2} * 8 + {1} / {3} % 8, {4} = {5} + {1} / {6} % {7} * {3} + {1} % {3};", line,
                  e, 8 * of_sixteen * rest, of_sixteen, unit, first * of_sixteen, 8 * of_sixteen, rest));
  for (int stage = 0; stage < stages; ++stage) {
    const std::string store = fmt::format("*({}*)({} + {} * {} + {} * {} + {}) = {};", type, load_.tile, line,
                                          load_.stride, unit, elements_per_copy_, stage * stage_elements, zero);
    writer.line(copies_per_line_ % of_sixteen == 0 ? store
                                                   : fmt::format("if ({} >= {}) {}", unit, copies_per_line_, store));
  }
  writer.close();
}

void AsyncLineCopy::copy(ExprEmitter& emitter, const std::string& first, const std::string& stage) const {
  KernelWriter& writer = emitter.writer();
  const Bounds& bounds = emitter.kernel().pool.bounds();
  const std::string step = emitter.index_text().tight(stride_), count = emitter.index_text().tight(count_);
  const std::string at = first == "0" ? at_ : fmt::format("({} + ({}) * {})", at_, first, step);
  const std::string from = fmt::format("{} + {}", writer.input(emitter.kernel().pool[load_.operand].source), at);
  const std::string to = stage.empty() ? to_ : fmt::format("{} + {}", to_, stage);
  const auto issue = [&](bool all) {
    writer.line(fmt::format("{}.copy{}<{}>({}, {}, {}{});", place_, all ? "" : "_some", element_bytes_ * load_.stride,
                            to, from, step, all ? "" : fmt::format(", {} - ({})", count, first)));
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
