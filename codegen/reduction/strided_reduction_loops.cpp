#include "codegen/reduction/strided_reduction_loops.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/access/direct.h"
#include "codegen/access/unaligned_load_text.h"
#include "codegen/access/vector_access.h"
#include "codegen/reduction/resident_blocks.h"

namespace fusec {
StridedReductionLoops::StridedReductionLoops(const StridedReductionKernel& part, KernelWriter& writer,
                                             ExprEmitter& emitter)
    : form_(part.plan.form),
      pool_(form_.kernel.pool),
      plan_(part.plan),
      kernel_(part),
      writer_(writer),
      emitter_(emitter),
      values_(form_, writer, emitter) {
  values_.keep(kernel_.registers, plan_.threads());
}

void StridedReductionLoops::open(const IndexExpr& groups) {
  const std::string type = writer_.index_type();
  std::string number = "blockIdx.x";
  if (plan_.resident_blocks) {
    writer_.use("cohort");
    arrived_ = resident_block_counters(writer_, form_);
    number = writer_.unique("ticket");
    writer_.line("const unsigned {} = cohort_ticket({});", number, arrived_);
  }
  std::string block = (writer_.wide() ? "(long long)" : "") + number;
  thread_ = writer_.unique("thread");
  chunk_ = "0";
  chunks_ = std::to_string(plan_.chunks);
  if (const IndexExpr chunks = kernel_.chunks(); !chunks.as_constant()) {
    chunks_ = writer_.unique("chunks");
    writer_.line("const int {} = (int)({});  // blocks of a team's rows", chunks_, emitter_.index(chunks));
  }
  if (kernel_.chunked()) {
    chunk_ = writer_.unique(plan_.resident_blocks ? "rank" : "chunk");
    writer_.line("const int {} = {} % {};  // of its rows' blocks", chunk_, number, chunks_);
    block += fmt::format(" / {}", chunks_);
  }
  group_ = writer_.unique("group_of_rows");
  if (plan_.groups_per_block > 1) {
    writer_.line("const int {} = threadIdx.x % {};", thread_, plan_.group_threads);
    writer_.line("const {} {} = {} * {} + threadIdx.x / {};", type, group_, block, plan_.groups_per_block,
                 plan_.group_threads);
    if (!proves_multiple_of(groups, plan_.groups_per_block, pool_.bounds()))
      writer_.line("if ({} >= {}) return;", group_, emitter_.index_text().tight(groups));
  } else {
    writer_.line("const int {} = threadIdx.x;", thread_);
    writer_.line("const {} {} = {};", type, group_, groups.is(1) ? "0" : block);
  }
  if (plan_.in_strips) return find_strip();
  bind_flat(emitter_, plan_.outer, group_);
  const IndexExpr elements = plan_.lines() * plan_.columns();
  start_ = writer_.unique("start"), stop_ = writer_.unique("stop");
  first_ = writer_.unique("first"), last_ = writer_.unique("last");
  const std::string count = emitter_.index_text().tight(simplify(elements, pool_.bounds()));
  writer_.line("const {0} {1} = {2} * {3}, {4} = {1} + {3};", type, start_, group_, count, stop_);
  all_ = fmt::format("({}){}", type, emitter_.index_text().tight(simplify(elements * groups, pool_.bounds())));
  aligned_ = plan_.outer.empty() || proves_multiple_of(elements, plan_.width, pool_.bounds());
  whole_ = proves_multiple_of(elements, plan_.width, pool_.bounds());
  writer_.line("const {0} {1} = ({2} + {3}) / {4}, {5} = {6} / {4};  // whole vectors", type, first_, start_,
               aligned_ ? 0 : plan_.width - 1, plan_.width, last_, stop_);
  phase_ = writer_.unique("phase"), first_row_ = writer_.unique("begins");
  writer_.line("const int {0} = (int)({1} * {2} - {3}) % {4}, {5} = ({0} + {6} * {2}) % {4};  // rows", first_row_,
               first_, plan_.width, start_, plan_.columns(), phase_, thread_);
}

// Declares this group's strip of the line and this thread's vector in it.
void StridedReductionLoops::find_strip() {
  const std::string type = writer_.index_type(), strips = emitter_.index_text().tight(plan_.strips());
  const std::string line = emitter_.index_text().tight(plan_.line_stride);
  const bool one = plan_.strips().is(1);
  std::string outer = group_;
  if (!one) {
    outer = writer_.declared("const " + type, "rest", fmt::format("{} / {}", group_, strips));
  }
  bind_flat(emitter_, plan_.outer, outer);
  aligned_ = whole_ = true;
  first_row_ = one ? "0" : writer_.unique("strip");
  if (!one) writer_.line("const {} {} = {} % {} * {};", type, first_row_, group_, strips, plan_.columns());
  phase_ = writer_.unique("begin"), first_ = writer_.unique("line"), start_ = writer_.unique("first");
  const IndexExpr length = plan_.lines();
  last_ = emitter_.index_text().tight(length);
  writer_.line("const int {} = {} / {};", first_, thread_, plan_.lanes());
  const std::string before =
      fmt::format("{} * {}", plan_.outer.empty() ? "0" : outer,
                  emitter_.index_text().tight(simplify(length * plan_.line_stride, pool_.bounds())));
  writer_.line(
      "const {} {} = {} + {} % {} * {}{};  // of the rows", type, phase_, first_row_, thread_, plan_.lanes(),
      plan_.width,
      plan_.unaligned ? fmt::format(" - ({} + {} * {} + {}) % {}", before, first_, line, first_row_, plan_.width) : "");
  whole_strips_ = proves_multiple_of(plan_.line_stride, plan_.columns(), pool_.bounds());
  if (plan_.unaligned)  // what follows the strip's columns belongs to the next strip or line
    idle_ = fmt::format("{} < min({} + {}, ({}){})", phase_, first_row_, plan_.columns(), type, line);
  else if (!whole_strips_)
    idle_ = fmt::format("{} < {}", phase_, line);
  if (plan_.parts < plan_.group_threads)
    idle_ = fmt::format("{}{} < {}", idle_.empty() ? "" : idle_ + " && ", thread_, plan_.parts);
  writer_.line("const {} {} = {} + {};", type, start_, before, phase_);
}

// Threads, or lines, per iteration.
int StridedReductionLoops::at_once() const {
  return plan_.in_strips ? plan_.parts / plan_.lanes() : plan_.parts;
}

std::string StridedReductionLoops::inside() const {
  const std::string end = fmt::format("min({} + {}, ({}){})", first_row_, plan_.columns(), writer_.index_type(),
                                      emitter_.index_text().tight(plan_.line_stride));
  return fmt::format("(int)({} - {}), (int)({} - {})", first_row_, phase_, end, phase_);
}

std::string StridedReductionLoops::row_at(const std::string& column) const {
  return plan_.elements_per_line == 1 ? column : fmt::format("({}) / {}", column, plan_.elements_per_line);
}

// The column of a lane in a strip. Unaligned lines: lanes beyond a line's ends are clamped to its first or last column,
// because other operands may end there; nothing of these lanes is used.
std::string StridedReductionLoops::column_at_lane(const std::string& place) const {
  if (!plan_.unaligned) return fmt::format("{} + {}", phase_, place);
  return fmt::format("min(max({0} + {1}, ({2})0), ({2}){3} - 1)", phase_, place, writer_.index_type(),
                     emitter_.index_text().tight(plan_.line_stride));
}

std::string StridedReductionLoops::row_at_lane(const std::string& place) const {
  if (plan_.in_strips)
    return place.empty() ? fmt::format("({} + {} % {})", row_at(first_row_), thread_, plan_.rows)
                         : fmt::format("({})", row_at(column_at_lane(place)));
  return place.empty() ? fmt::format("(({} + {}) % {})", first_row_, thread_, plan_.rows)
                       : fmt::format("({})", row_at(fmt::format("({} + {}) % {}", phase_, place, plan_.columns())));
}

std::string StridedReductionLoops::elements_of_chunk(const std::string& chunk, const std::string& place) {
  writer_.use("elements_of_chunk");
  if (plan_.in_strips) {
    const std::string lines = fmt::format("lines_of_chunk<{}>({}, {}, {})", at_once(), last_, chunks_, chunk);
    return plan_.elements_per_line == 1 ? lines : fmt::format("({}.0f * {})", plan_.elements_per_line, lines);
  }
  const std::string row =
      place.empty() ? fmt::format("{} % {}", thread_, plan_.rows)
                    : row_at(fmt::format("({} * {} + {}) % {}", thread_, plan_.width, place, plan_.columns()));
  const std::string vectors = fmt::format("{} * {}", first_, plan_.width);
  return fmt::format("elements_of_chunk<{}, {}, {}>({} - {}, (int)({} - {}), {}, {}, {})", plan_.parts * plan_.width,
                     plan_.columns(), plan_.elements_per_line, stop_, vectors, vectors, start_, chunks_, chunk, row);
}

// Binds the axes of a loop over elements: the element at position `at` of the tensor, or lane `lane` of line `at` of a
// strip.
void StridedReductionLoops::bind_element(const std::vector<std::uint32_t>& axes, const std::string& at,
                                         const std::string& lane) {
  std::string k = at;
  const std::string row = writer_.unique("of");
  if (plan_.in_strips) {
    writer_.line("const {} {} = {};", writer_.index_type(), row, row_at(column_at_lane(lane)));
  } else {
    k = writer_.declared("const " + writer_.index_type(), "k",
                         fmt::format("({} - {}) / {}", at, start_, plan_.columns()));
    writer_.line("const int {} = {};", row, row_at(fmt::format("({} + {}) % {}", phase_, lane, plan_.columns())));
  }
  emitter_.bind(axes[0], k);
  if (axes.size() > 1) {
    const std::string column = plan_.in_strips ? column_at_lane(lane) : fmt::format("{} + {}", phase_, lane);
    emitter_.bind(axes[1], fmt::format("(({}) % {})", column, plan_.elements_per_line));
  }
  emitter_.bind(plan_.inner, row);
  define_results(lane);
}

// Defines the results of one lane.
void StridedReductionLoops::define_results(const std::string& lane) {
  for (auto& [reduction, done] : done_) {
    if (done.slots.empty()) continue;
    ExprEmitter::Accumulator at_lane = done.own;
    at_lane.name = fmt::format("{}[{}]", done.slots, lane);
    emitter_.define(reduction, emitter_.result(at_lane));
  }
  for (const auto& [id, name] : derived_arrays_) emitter_.define(id, fmt::format("{}[{}]", name, lane));
}

// Values computed from reductions alone, which are the same for a lane in all of a thread's vectors.
std::vector<ExprId> StridedReductionLoops::values_of_reductions(const std::vector<std::uint32_t>& axes,
                                                                const std::vector<ExprId>& roots) const {
  const auto depends = dependences(pool_);
  const auto runs = [&](ExprId id) {
    return std::ranges::any_of(axes, [&](auto a) { return std::ranges::binary_search(depends[id], a); });
  };
  const auto is_made = [&](ExprId id) {
    if (pool_[id].op == ExprOp::kReduce || runs(id)) return false;
    const std::vector<ExprId> parts = outside_reductions(form_, {id});
    const auto is_of = [&](ExprOp op) { return [&, op](ExprId part) { return pool_[part].op == op; }; };
    return std::ranges::any_of(parts, is_of(ExprOp::kReduce)) && std::ranges::none_of(parts, is_of(ExprOp::kLoad));
  };
  std::set<ExprId> found;
  for (const ExprId id : outside_reductions(form_, roots)) {
    if (!runs(id)) continue;
    for (const ExprId a : pool_[id].args)
      if (a != kNoExpr && is_made(a)) found.insert(a);
  }
  return {found.begin(), found.end()};
}

// Emits those values once, before the loop. With a bounds check per iteration, ptxas would not hoist them.
void StridedReductionLoops::compute_values_of_reductions(const std::vector<std::uint32_t>& axes,
                                                         const std::vector<ExprId>& roots) {
  if (kernel_.register_vectors == 0) return;
  for (const ExprId id : values_of_reductions(axes, roots)) {
    const std::string name = writer_.unique("of_place");
    writer_.line("{} {}[{}];", c_type(pool_[id].type), name, plan_.width);
    writer_.open_unrolled("e", plan_.width);
    const ExprEmitter::Mark outside = emitter_.mark();
    emitter_.bind(plan_.inner, row_at_lane("e"));
    define_results("e");
    writer_.line("{}[e] = {};", name, emitter_.emit(id));
    emitter_.rewind(outside);
    writer_.close();
    derived_arrays_[id] = name;
  }
}

void StridedReductionLoops::over_elements(const std::vector<std::uint32_t>& axes, const std::vector<ExprId>& roots,
                                          const Visit& visit) {
  const ExprEmitter::Mark outside = emitter_.mark();
  emitter_.emit_independent(roots);
  compute_values_of_reductions(axes, roots);
  const std::vector<ExprId> loads = loads_of(roots);
  values_.declare_arrays(axes);
  vector_loop(axes, roots, visit);
  visit.after_vectors();
  if (!aligned_ || !whole_) edges(axes, loads, visit);
  values_.loop_is_done(kernel_.loop_over(axes, roots));
  derived_arrays_.clear();
  emitter_.rewind(outside);
}

void StridedReductionLoops::vector_loop(const std::vector<std::uint32_t>& axes, const std::vector<ExprId>& roots,
                                        const Visit& visit) {
  const std::string v = writer_.unique("v"), e = writer_.unique("e"), type = writer_.index_type();
  const std::string first = plan_.in_strips ? first_ : fmt::format("{} + {}", first_, thread_);
  std::string iteration;
  if (plan_.unaligned) broadcast_words_.merge(words_of_broadcasts(roots));
  if (!idle().empty()) writer_.open("if ({})", idle());
  if (!plan_.unaligned) broadcast_words_ = words_of_broadcasts(roots);
  // If all iterations exist for all threads, ptxas computes per-lane values once, if registers are left.
  constexpr int kMaxRegisterElements = 32768;  // words per block
  const bool all_iterations = plan_.in_strips && kernel_.register_vectors > 0 &&
                              kernel_.registers.words * plan_.threads() < kMaxRegisterElements &&
                              plan_.lines().is(std::int64_t{kernel_.register_vectors} * at_once() * plan_.chunks);
  if (kernel_.register_vectors > 0) {
    iteration = writer_.unique("turn");
    writer_.open_unrolled(iteration, kernel_.register_vectors);
    if (!kernel_.registers.slots.empty()) values_.enter(iteration);
    const std::string number =
        kernel_.chunked() ? fmt::format("({} * {} + {})", iteration, chunks_, chunk_) : iteration;
    writer_.line("const {} {} = {} + {} * {};", type, v, first, number, at_once());
    if (!all_iterations) writer_.open("if ({}{} < {})", within_all_iterations(iteration), v, last_);
  } else {
    const std::string begin = kernel_.chunked() ? fmt::format("{} + {} * {}", first, chunk_, at_once()) : first;
    const int step = at_once() * (kernel_.chunked() ? plan_.chunks : 1);
    writer_.line("#pragma unroll {}", unroll_factor(code_of_element(form_, roots) * plan_.width));
    if (const auto lines = plan_.lines().as_constant(); plan_.in_strips && lines && *lines % step == 0) {
      iteration = writer_.unique("turn");  // a constant trip count
      writer_.open("for (int {0} = 0; {0} < {1}; ++{0})", iteration, *lines / step);
      writer_.line("const {} {} = {} + {} * {};", type, v, begin, iteration, step);
    } else {
      writer_.open("for ({0} {1} = {2}; {1} < {3}; {1} += {4})", type, v, begin, last_,
                   kernel_.chunked() && kernel_.chunks().as_constant() == std::nullopt
                       ? fmt::format("{} * {}", at_once(), chunks_)
                       : std::to_string(step));
    }
  }
  const std::string place = plan_.in_strips
                                ? fmt::format("{} + {} * {}", start_, v, emitter_.index_text().tight(plan_.line_stride))
                                : fmt::format("{} * {}", v, plan_.width);
  std::map<ValueId, std::string> words;
  for (const ExprId load : loads_of(roots)) {
    const ExprNode& n = pool_[load];
    if (words.contains(n.source)) continue;
    writer_.use("words");
    const std::string text = words_at(load, place);
    words[n.source] = values_.words_of(load, [&](const std::string& to) { writer_.line("{} = {};", to, text); });
    if (!words[n.source].empty()) continue;
    words[n.source] = writer_.unique(writer_.preferred_name(n.source) + "_w");
    writer_.line("const Words<{}> {} = {};", kernel_.words_of(load), words[n.source], text);
  }
  visit.before(place);
  writer_.open_unrolled(e, plan_.width);
  const ExprEmitter::Mark lanes = emitter_.mark();
  bind_element(axes, plan_.in_strips ? v : fmt::format("({} + {})", place, e), e);
  emitter_.load_text = [&](ExprId load) {
    if (const auto broadcast = broadcast_words_.find(load); broadcast != broadcast_words_.end())
      return element_text(pool_[load].dtype, broadcast->second, e, writer_);
    if (!contains(plan_.loads, load)) return std::string();
    return element_text(pool_[load].dtype, words.at(pool_[load].source), e, writer_);
  };
  values_.define_values(roots, fmt::format("{} * {} + {}", iteration, plan_.width, e));
  visit.element(e, "");
  emitter_.load_text = nullptr;
  emitter_.rewind(lanes);
  writer_.close();
  visit.after();
  values_.leave();
  writer_.close();
  if (kernel_.register_vectors > 0 && !all_iterations) writer_.close();
  if (!idle().empty()) writer_.close();
}

// The contiguous loads that are not part of a kept value.
std::vector<ExprId> StridedReductionLoops::loads_of(const std::vector<ExprId>& roots) const {
  std::vector<ExprId> loads = values_.loads_of(roots);
  std::erase_if(loads, [&](ExprId load) { return !contains(plan_.loads, load); });
  return loads;
}

// The condition for iterations of a strip that all threads have; these skip the bounds check.
std::string StridedReductionLoops::within_all_iterations(const std::string& iteration) const {
  const auto lines = plan_.lines().as_constant();
  const std::int64_t all = plan_.in_strips && lines && !plan_.resident_blocks ? *lines / at_once() : 0;
  return all > 0 && all < kernel_.register_vectors ? fmt::format("{} < {} || ", iteration, all) : "";
}

// Loads the line-invariant operands for this thread's lanes. Unaligned lines: all threads execute this, and the words
// of an earlier loop are available.
std::map<ExprId, std::string> StridedReductionLoops::words_of_broadcasts(const std::vector<ExprId>& roots) {
  std::map<ExprId, std::string> words;
  if (!plan_.in_strips) return words;
  if (!kernel_.registers.slots.empty()) values_.enter("0");  // the words that replace them, valid in any iteration
  const std::vector<ExprId> loads = values_.loads_of(roots);
  values_.leave();
  for (const ExprId id : loads) {
    if (!contains(plan_.line_invariant_loads, id) || (plan_.unaligned && broadcast_words_.contains(id))) continue;
    const std::string loaded = words_at_lanes(id);
    if (loaded.empty()) continue;
    words[id] = writer_.unique(writer_.preferred_name(pool_[id].source) + "_w");
    writer_.line("const auto {} = {};", words[id], loaded);
  }
  return words;
}

// The words of a thread's lanes, if they are whole vectors. Unaligned lines: the aligned vectors that contain the
// lanes. Else "".
std::string StridedReductionLoops::words_at_lanes(ExprId load) {
  constexpr int kVector = 128, kMostVectors = 2;  // bits; more vectors take longer than scalar loads
  const ExprNode& n = pool_[load];
  const Shape& shape = writer_.tensor_type(n.source).shape;
  const IndexExpr at = simplify(flat_index(shape, n.indices), pool_.bounds());
  const ExprEmitter::Mark outside = emitter_.mark();
  if (plan_.elements_per_line > 1)  // a row's elements are contiguous in the line
    for (const Variable v : variables_of(at)) emitter_.bind(v.id, phase_);
  emitter_.bind(plan_.inner, plan_.elements_per_line > 1 ? "0" : phase_);
  const int vectors = (plan_.width * bits(n.dtype) + kVector - 1) / kVector;
  std::string text;
  if (plan_.unaligned && vectors <= kMostVectors) {
    const IndexExpr count = element_count(shape).value_or(0);
    const UnalignedLoad window = {.load = load,
                                  .first = at,
                                  .element = 0,
                                  .words = vectors * kVector / 32,
                                  .whole = proves_multiple_of(count, kVector / bits(n.dtype), pool_.bounds())};
    text = unaligned_load_text(emitter_, window, idle(), true, 1);
  } else if (!plan_.unaligned && kernel_.words_of(load) > 0 &&
             (plan_.elements_per_line > 1 ||
              proves_multiple_of(at - IndexExpr::axis(plan_.inner), plan_.width, pool_.bounds()))) {
    writer_.use("words");
    text = fmt::format("load_words<{}>({} + {})", kernel_.words_of(load), writer_.input(n.source), emitter_.index(at));
  }
  emitter_.rewind(outside);
  return text;
}

// The words of the vector at a position; the tensor's last vector may be partial.
std::string StridedReductionLoops::words_at(ExprId load, const std::string& place) {
  const ExprNode& n = pool_[load];
  if (!plan_.unaligned)
    return fmt::format("load_words<{}>({} + {})", kernel_.words_of(load), writer_.input(n.source), place);
  const IndexExpr count = simplify(point_count(pool_, plan_.outer) * plan_.lines() * plan_.line_stride, pool_.bounds());
  if (proves_multiple_of(count, plan_.width, pool_.bounds()))
    return fmt::format("load_words<{}>({} + {})", kernel_.words_of(load), writer_.input(n.source), place);
  writer_.use("edge_words");
  return fmt::format("edge_words<{}, {}>({}, {}, ({}){})", kernel_.words_of(load), plan_.width, writer_.input(n.source),
                     place, writer_.index_type(), emitter_.index_text().tight(count));
}

// "" if all threads work.
std::string StridedReductionLoops::idle() const {
  return plan_.in_strips || plan_.parts == plan_.group_threads ? idle_ : fmt::format("{} < {}", thread_, plan_.parts);
}

// Emits vectors that cross an end element by element, each by the thread with lanes of the same rows.
void StridedReductionLoops::edges(const std::vector<std::uint32_t>& axes, const std::vector<ExprId>& loads,
                                  const Visit& visit) {
  const std::string type = writer_.index_type(), v = writer_.unique("v"), at = writer_.unique("at");
  const std::string here = kernel_.chunked() ? fmt::format("{} == 0 && ", chunk_) : "";
  std::string side, mine = fmt::format("{0} >= {1} && {2} == ({0} - {1}) % {3}", last_, first_, thread_, plan_.parts);
  if (kernel_.chunked())
    mine += fmt::format(" && {} == ({} - {}) / {} % {}", chunk_, last_, first_, plan_.parts, chunks_);
  if (!aligned_) {
    side = writer_.unique("side");
    writer_.line("#pragma unroll 1");
    writer_.open("for (int {0} = 0; {0} < 2; ++{0})", side);
    writer_.line("const {} {} = {} == 0 ? {} - 1 : {};", type, v, side, first_, last_);
    mine = fmt::format("{} == 0 ? {}{} == {} : {}", side, here, thread_, plan_.parts - 1, mine);
  } else {
    writer_.line("const {} {} = {};", type, v, last_);
  }
  writer_.open("if ({})", mine);
  std::map<ValueId, std::string> words;
  for (const ExprId load : loads) {
    const ValueId source = pool_[load].source;
    if (words.contains(source)) continue;
    writer_.use("edge_words");
    words[source] = writer_.unique(writer_.preferred_name(source) + "_w");
    writer_.line("const Words<{0}> {1} = edge_words<{0}, {2}>({3}, {4} * {2}, {5});", kernel_.words_of(load),
                 words[source], plan_.width, writer_.input(source), v, all_);
  }
  const std::string e = writer_.unique("e");
  writer_.open_unrolled(e, plan_.width);
  writer_.line("const {} {} = {} * {} + {};", type, at, v, plan_.width, e);
  writer_.open("if ({0} >= {1} && {0} < {2})", at, start_, stop_);
  const ExprEmitter::Mark lanes = emitter_.mark();
  bind_element(axes, at, e);
  emitter_.load_text = [&](ExprId load) {
    if (!contains(loads, load)) return std::string();
    return element_text(pool_[load].dtype, words.at(pool_[load].source), e, writer_);
  };
  visit.element(e, at);
  emitter_.load_text = nullptr;
  emitter_.rewind(lanes);
  writer_.close();
  writer_.close();
  writer_.close();
  if (!aligned_) writer_.close();
}

}  // namespace fusec
