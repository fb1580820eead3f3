#include "codegen/schedules/interleaved_elements.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/schedules/direct.h"
#include "codegen/schedules/row_cohort.h"
#include "codegen/schedules/vector_access.h"
#include "codegen/schedules/windows.h"

namespace fusec {
namespace {}  // namespace

InterleavedElements::InterleavedElements(const InterleavedPart& part, KernelWriter& writer, ExprEmitter& emitter)
    : form_(part.way.form),
      pool_(form_.kernel.pool),
      way_(part.way),
      part_(part),
      writer_(writer),
      emitter_(emitter),
      values_(form_, writer, emitter) {
  values_.keep(part_.values, way_.threads());
  for (const ValueId value : part_.kept) kept_[value] = "";
}

void InterleavedElements::open(const IndexExpr& groups) {
  const std::string type = writer_.index_type();
  std::string number = "blockIdx.x";
  if (way_.cohort) {
    writer_.use("cohort");
    arrived_ = cohort_counters(writer_, form_);
    number = writer_.unique("ticket");
    writer_.line(fmt::format("const unsigned {} = cohort_ticket({});", number, arrived_));
  }
  std::string block = (writer_.wide() ? "(long long)" : "") + number;
  thread_ = writer_.unique("thread");
  chunk_ = "0";
  chunks_ = std::to_string(way_.chunks);
  if (const IndexExpr chunks = part_.chunks(); !chunks.as_constant()) {
    chunks_ = writer_.unique("chunks");
    writer_.line(fmt::format("const int {} = (int)({});  // blocks of a team's rows", chunks_, emitter_.index(chunks)));
  }
  if (part_.chunked()) {
    chunk_ = writer_.unique(way_.cohort ? "rank" : "chunk");
    writer_.line(fmt::format("const int {} = {} % {};  // of its rows' blocks", chunk_, number, chunks_));
    block += fmt::format(" / {}", chunks_);
  }
  group_ = writer_.unique("group_of_rows");
  if (way_.teams > 1) {
    writer_.line(fmt::format("const int {} = threadIdx.x % {};", thread_, way_.team));
    writer_.line(fmt::format("const {} {} = {} * {} + threadIdx.x / {};", type, group_, block, way_.teams, way_.team));
    if (!proves_multiple_of(groups, way_.teams, pool_.bounds()))
      writer_.line(fmt::format("if ({} >= {}) return;", group_, emitter_.index_text().tight(groups)));
  } else {
    writer_.line(fmt::format("const int {} = threadIdx.x;", thread_));
    writer_.line(fmt::format("const {} {} = {};", type, group_, groups.is(1) ? "0" : block));
  }
  if (way_.in_strips) return find_strip();
  bind_flat(emitter_, way_.outer, group_);
  const IndexExpr elements = way_.lines() * way_.columns();
  start_ = writer_.unique("start"), stop_ = writer_.unique("stop");
  first_ = writer_.unique("first"), last_ = writer_.unique("last");
  const std::string count = emitter_.index_text().tight(simplify(elements, pool_.bounds()));
  writer_.line(fmt::format("const {0} {1} = {2} * {3}, {4} = {1} + {3};", type, start_, group_, count, stop_));
  all_ = fmt::format("({}){}", type, emitter_.index_text().tight(simplify(elements * groups, pool_.bounds())));
  aligned_ = way_.outer.empty() || proves_multiple_of(elements, way_.width, pool_.bounds());
  whole_ = proves_multiple_of(elements, way_.width, pool_.bounds());
  writer_.line(fmt::format("const {0} {1} = ({2} + {3}) / {4}, {5} = {6} / {4};  // whole vectors", type, first_,
                           start_, aligned_ ? 0 : way_.width - 1, way_.width, last_, stop_));
  phase_ = writer_.unique("phase"), begins_ = writer_.unique("begins");
  writer_.line(fmt::format("const int {0} = (int)({1} * {2} - {3}) % {4}, {5} = ({0} + {6} * {2}) % {4};  // rows",
                           begins_, first_, way_.width, start_, way_.columns(), phase_, thread_));
}

// The strip of the line that this team has, and of it this thread's vector.
void InterleavedElements::find_strip() {
  const std::string type = writer_.index_type(), strips = emitter_.index_text().tight(way_.strips());
  const std::string line = emitter_.index_text().tight(way_.line);
  const bool one = way_.strips().is(1);
  std::string outer = group_;
  if (!one) {
    outer = writer_.unique("rest");
    writer_.line(fmt::format("const {} {} = {} / {};", type, outer, group_, strips));
  }
  bind_flat(emitter_, way_.outer, outer);
  aligned_ = whole_ = true;
  begins_ = one ? "0" : writer_.unique("strip");
  if (!one) writer_.line(fmt::format("const {} {} = {} % {} * {};", type, begins_, group_, strips, way_.columns()));
  phase_ = writer_.unique("begin"), first_ = writer_.unique("line"), start_ = writer_.unique("first");
  const IndexExpr length = way_.lines();
  last_ = emitter_.index_text().tight(length);
  writer_.line(fmt::format("const int {} = {} / {};", first_, thread_, way_.lanes()));
  const std::string before = fmt::format("{} * {}", way_.outer.empty() ? "0" : outer,
                                         emitter_.index_text().tight(simplify(length * way_.line, pool_.bounds())));
  writer_.line(fmt::format(
      "const {} {} = {} + {} % {} * {}{};  // of the rows", type, phase_, begins_, thread_, way_.lanes(), way_.width,
      way_.shifted ? fmt::format(" - ({} + {} * {} + {}) % {}", before, first_, line, begins_, way_.width) : ""));
  whole_strips_ = proves_multiple_of(way_.line, way_.columns(), pool_.bounds());
  if (way_.shifted)  // what lies behind the strip's columns is the next one's, or line's
    idle_ = fmt::format("{} < min({} + {}, ({}){})", phase_, begins_, way_.columns(), type, line);
  else if (!whole_strips_)
    idle_ = fmt::format("{} < {}", phase_, line);
  if (way_.parts < way_.team)
    idle_ = fmt::format("{}{} < {}", idle_.empty() ? "" : idle_ + " && ", thread_, way_.parts);
  writer_.line(fmt::format("const {} {} = {} + {};", type, start_, before, phase_));
}

// Threads of a loop's turn, or lines that they take.
int InterleavedElements::at_once() const {
  return way_.in_strips ? way_.parts / way_.lanes() : way_.parts;
}

std::string InterleavedElements::inside() const {
  const std::string end = fmt::format("min({} + {}, ({}){})", begins_, way_.columns(), writer_.index_type(),
                                      emitter_.index_text().tight(way_.line));
  return fmt::format("(int)({} - {}), (int)({} - {})", begins_, phase_, end, phase_);
}

std::string InterleavedElements::row_at(const std::string& column) const {
  return way_.breadth == 1 ? column : fmt::format("({}) / {}", column, way_.breadth);
}

// Of a strip; where lines begin anywhere, places beyond a line's ends, of which nothing is taken, are its first or its
// last: what the element is computed with besides may have no more.
std::string InterleavedElements::column_of_place(const std::string& place) const {
  if (!way_.shifted) return fmt::format("{} + {}", phase_, place);
  return fmt::format("min(max({0} + {1}, ({2})0), ({2}){3} - 1)", phase_, place, writer_.index_type(),
                     emitter_.index_text().tight(way_.line));
}

std::string InterleavedElements::row_of_place(const std::string& place) const {
  if (way_.in_strips)
    return place.empty() ? fmt::format("({} + {} % {})", row_at(begins_), thread_, way_.rows)
                         : fmt::format("({})", row_at(column_of_place(place)));
  return place.empty() ? fmt::format("(({} + {}) % {})", begins_, thread_, way_.rows)
                       : fmt::format("({})", row_at(fmt::format("({} + {}) % {}", phase_, place, way_.columns())));
}

std::string InterleavedElements::elements_of_chunk(const std::string& chunk, const std::string& place) {
  writer_.use("elements_of_chunk");
  if (way_.in_strips) {
    const std::string lines = fmt::format("lines_of_chunk<{}>({}, {}, {})", at_once(), last_, chunks_, chunk);
    return way_.breadth == 1 ? lines : fmt::format("({}.0f * {})", way_.breadth, lines);
  }
  const std::string row = place.empty()
                              ? fmt::format("{} % {}", thread_, way_.rows)
                              : row_at(fmt::format("({} * {} + {}) % {}", thread_, way_.width, place, way_.columns()));
  const std::string vectors = fmt::format("{} * {}", first_, way_.width);
  return fmt::format("elements_of_chunk<{}, {}, {}>({} - {}, (int)({} - {}), {}, {}, {})", way_.parts * way_.width,
                     way_.columns(), way_.breadth, stop_, vectors, vectors, start_, chunks_, chunk, row);
}

// The axes of a loop over elements, bound for the element at `at` of memory, or of the line `at` of a strip, and the
// place `lane`.
void InterleavedElements::bind_element(const std::vector<std::uint32_t>& axes, const std::string& at,
                                       const std::string& lane) {
  std::string k = at;
  const std::string row = writer_.unique("of");
  if (way_.in_strips) {
    writer_.line(fmt::format("const {} {} = {};", writer_.index_type(), row, row_at(column_of_place(lane))));
  } else {
    k = writer_.unique("k");
    writer_.line(fmt::format("const {} {} = ({} - {}) / {};", writer_.index_type(), k, at, start_, way_.columns()));
    writer_.line(
        fmt::format("const int {} = {};", row, row_at(fmt::format("({} + {}) % {}", phase_, lane, way_.columns()))));
  }
  emitter_.bind(axes[0], k);
  if (axes.size() > 1) {
    const std::string column = way_.in_strips ? column_of_place(lane) : fmt::format("{} + {}", phase_, lane);
    emitter_.bind(axes[1], fmt::format("(({}) % {})", column, way_.breadth));
  }
  emitter_.bind(way_.inner, row);
  define_results(lane);
}

// At a place.
void InterleavedElements::define_results(const std::string& lane) {
  for (auto& [reduction, done] : done_) {
    if (done.slots.empty()) continue;
    ExprEmitter::Accumulator at_lane = done.own;
    at_lane.name = fmt::format("{}[{}]", done.slots, lane);
    const std::string result = emitter_.result(at_lane);
    emitter_.define(reduction, done.function.empty() ? result : fmt::format("{}({})", done.function, result));
  }
  for (const auto& [id, name] : of_places_) emitter_.define(id, fmt::format("{}[{}]", name, lane));
}

// What the roots make of reductions alone is the same for a place of all a thread's vectors.
std::vector<ExprId> InterleavedElements::made_of_reductions(const std::vector<std::uint32_t>& axes,
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

// That, once, where turns that are not all there keep ptxas from doing so.
void InterleavedElements::make_of_reductions(const std::vector<std::uint32_t>& axes, const std::vector<ExprId>& roots) {
  if (part_.kept_turns == 0) return;
  for (const ExprId id : made_of_reductions(axes, roots)) {
    const std::string name = writer_.unique("of_place");
    writer_.line(fmt::format("{} {}[{}];", c_type(pool_[id].type), name, way_.width));
    writer_.line("#pragma unroll");
    writer_.open(fmt::format("for (int e = 0; e < {}; ++e)", way_.width));
    const ExprEmitter::Mark outside = emitter_.mark();
    emitter_.bind(way_.inner, row_of_place("e"));
    define_results("e");
    writer_.line(fmt::format("{}[e] = {};", name, emitter_.emit(id)));
    emitter_.rewind(outside);
    writer_.close();
    of_places_[id] = name;
  }
}

void InterleavedElements::over_elements(const std::vector<std::uint32_t>& axes, const std::vector<ExprId>& roots,
                                        const Visit& visit) {
  const ExprEmitter::Mark outside = emitter_.mark();
  emitter_.emit_independent(roots);
  make_of_reductions(axes, roots);
  const std::vector<ExprId> loads = loads_of(roots);
  values_.declare_arrays(axes);
  for (const ExprId load : loads)
    if (const auto at = kept_.find(pool_[load].source);
        part_.kept_turns > 0 && at != kept_.end() && at->second.empty()) {
      at->second = writer_.unique(writer_.wish(at->first) + "_row");
      writer_.use("words");
      writer_.line(fmt::format("Words<{}> {}[{}];", part_.words_of(load), at->second, part_.kept_turns));
    }
  vector_loop(axes, roots, visit);
  visit.behind();
  if (!aligned_ || !whole_) edges(axes, loads, visit);
  for (const ExprId load : loads)
    if (kept_.contains(pool_[load].source)) filled_.insert(pool_[load].source);
  values_.loop_is_done(part_.loop_over(axes, roots));
  of_places_.clear();
  emitter_.rewind(outside);
}

void InterleavedElements::vector_loop(const std::vector<std::uint32_t>& axes, const std::vector<ExprId>& roots,
                                      const Visit& visit) {
  const std::string v = writer_.unique("v"), e = writer_.unique("e"), type = writer_.index_type();
  const std::string first = way_.in_strips ? first_ : fmt::format("{} + {}", first_, thread_);
  std::string turn;
  if (way_.shifted) beside_.merge(words_beside(roots));
  if (!idle().empty()) writer_.open(fmt::format("if ({})", idle()));
  if (!way_.shifted) beside_ = words_beside(roots);
  // Unless every turn is there for all: what is the same for its vectors is then computed once, where registers are
  // left for it.
  constexpr int kMostKept = 32768;  // words of a block
  const bool all_turns = way_.in_strips && part_.kept_turns > 0 && part_.kept_words * way_.threads() < kMostKept &&
                         way_.lines().is(std::int64_t{part_.kept_turns} * at_once() * way_.chunks);
  if (part_.kept_turns > 0) {
    turn = writer_.unique("turn");
    writer_.line("#pragma unroll");
    writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", turn, part_.kept_turns));
    if (!part_.values.slots.empty()) values_.enter(turn);
    const std::string number = part_.chunked() ? fmt::format("({} * {} + {})", turn, chunks_, chunk_) : turn;
    writer_.line(fmt::format("const {} {} = {} + {} * {};", type, v, first, number, at_once()));
    if (!all_turns) writer_.open(fmt::format("if ({}{} < {})", turns_of_all(turn), v, last_));
  } else {
    const std::string begin = part_.chunked() ? fmt::format("{} + {} * {}", first, chunk_, at_once()) : first;
    const int step = at_once() * (part_.chunked() ? way_.chunks : 1);
    writer_.line(fmt::format("#pragma unroll {}", turns_unrolled(code_of_element(form_, roots) * way_.width)));
    if (const auto lines = way_.lines().as_constant(); way_.in_strips && lines && *lines % step == 0) {
      turn = writer_.unique("turn");
      writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", turn, *lines / step));
      writer_.line(fmt::format("const {} {} = {} + {} * {};", type, v, begin, turn, step));
    } else {
      writer_.open(fmt::format("for ({0} {1} = {2}; {1} < {3}; {1} += {4})", type, v, begin, last_,
                               part_.chunked() && part_.chunks().as_constant() == std::nullopt
                                   ? fmt::format("{} * {}", at_once(), chunks_)
                                   : std::to_string(step)));
    }
  }
  const std::string place = way_.in_strips
                                ? fmt::format("{} + {} * {}", start_, v, emitter_.index_text().tight(way_.line))
                                : fmt::format("{} * {}", v, way_.width);
  std::map<ValueId, std::string> words;
  for (const ExprId load : loads_of(roots)) {
    const ExprNode& n = pool_[load];
    if (words.contains(n.source)) continue;
    writer_.use("words");
    const std::string text = words_at(load, place);
    if (const auto kept = kept_.find(n.source); part_.kept_turns > 0 && kept != kept_.end()) {
      words[n.source] = fmt::format("{}[{}]", kept->second, turn);
      if (!filled_.contains(n.source)) writer_.line(fmt::format("{} = {};", words[n.source], text));
      if (part_.forgets()) {  // behind the load as well: it would be made once more
        writer_.use("forget_words");
        writer_.line(fmt::format("forget_words({});", words[n.source]));
      }
      continue;
    }
    words[n.source] = writer_.unique(writer_.wish(n.source) + "_w");
    writer_.line(fmt::format("const Words<{}> {} = {};", part_.words_of(load), words[n.source], text));
  }
  visit.before(place);
  writer_.line("#pragma unroll");
  writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", e, way_.width));
  const ExprEmitter::Mark lanes = emitter_.mark();
  bind_element(axes, way_.in_strips ? v : fmt::format("({} + {})", place, e), e);
  emitter_.load_text = [&](ExprId load) {
    if (const auto beside = beside_.find(load); beside != beside_.end())
      return element_text(pool_[load].dtype, beside->second, e, writer_);
    if (!contains(way_.loads, load)) return std::string();
    return element_text(pool_[load].dtype, words.at(pool_[load].source), e, writer_);
  };
  values_.define_values(roots, fmt::format("{} * {} + {}", turn, way_.width, e));
  visit.element(e, "");
  emitter_.load_text = nullptr;
  emitter_.rewind(lanes);
  writer_.close();
  visit.after();
  values_.leave();
  writer_.close();
  if (part_.kept_turns > 0 && !all_turns) writer_.close();
  if (!idle().empty()) writer_.close();
}

// The loads of elements as they follow one another that no value stands for which is kept.
std::vector<ExprId> InterleavedElements::loads_of(const std::vector<ExprId>& roots) const {
  std::vector<ExprId> loads = values_.loads_of(roots);
  std::erase_if(loads, [&](ExprId load) { return !contains(way_.loads, load); });
  return loads;
}

// Of a strip's turns those that all threads have: nothing is asked in them, where that leaves no rest.
std::string InterleavedElements::turns_of_all(const std::string& turn) const {
  const auto lines = way_.lines().as_constant();
  const std::int64_t all = way_.in_strips && lines && !way_.cohort ? *lines / at_once() : 0;
  return all > 0 && all < part_.kept_turns ? fmt::format("{} < {} || ", turn, all) : "";
}

// Of what is the same for all lines, those of this thread's places. Where lines begin anywhere, all threads come here,
// and what an earlier loop has read is there.
std::map<ExprId, std::string> InterleavedElements::words_beside(const std::vector<ExprId>& roots) {
  std::map<ExprId, std::string> words;
  if (!way_.in_strips) return words;
  if (!part_.values.slots.empty()) values_.enter("0");  // what stands for them in any turn
  const std::vector<ExprId> loads = values_.loads_of(roots);
  values_.leave();
  for (const ExprId id : loads) {
    if (!contains(way_.beside, id) || (way_.shifted && beside_.contains(id))) continue;
    const std::string loaded = words_of_places(id);
    if (loaded.empty()) continue;
    words[id] = writer_.unique(writer_.wish(pool_[id].source) + "_w");
    writer_.line(fmt::format("const auto {} = {};", words[id], loaded));
  }
  return words;
}

// Whole vectors, if they are; of lines that begin anywhere, those of memory in which the places lie. Else "".
std::string InterleavedElements::words_of_places(ExprId load) {
  constexpr int kVector = 128, kMostVectors = 2;  // bits; more take longer than elements
  const ExprNode& n = pool_[load];
  const Shape& shape = writer_.tensor_type(n.source).shape;
  const IndexExpr at = simplify(flat_index(shape, n.indices), pool_.bounds());
  const ExprEmitter::Mark outside = emitter_.mark();
  if (way_.breadth > 1)  // rows' elements follow one another in the line
    for (const Variable v : variables_of(at)) emitter_.bind(v.id, phase_);
  emitter_.bind(way_.inner, way_.breadth > 1 ? "0" : phase_);
  const int vectors = (way_.width * bits(n.dtype) + kVector - 1) / kVector;
  std::string text;
  if (way_.shifted && vectors <= kMostVectors) {
    const IndexExpr count = element_count(shape).value_or(0);
    const Window window = {.load = load,
                           .first = at,
                           .element = 0,
                           .words = vectors * kVector / 32,
                           .whole = proves_multiple_of(count, kVector / bits(n.dtype), pool_.bounds())};
    text = window_text(emitter_, window, idle(), true, 1);
  } else if (!way_.shifted && part_.words_of(load) > 0 &&
             (way_.breadth > 1 || proves_multiple_of(at - IndexExpr::axis(way_.inner), way_.width, pool_.bounds()))) {
    writer_.use("words");
    text = fmt::format("load_words<{}>({} + {})", part_.words_of(load), writer_.input(n.source), emitter_.index(at));
  }
  emitter_.rewind(outside);
  return text;
}

// The words of the vector there; of the tensor's last one there may be a part.
std::string InterleavedElements::words_at(ExprId load, const std::string& place) {
  const ExprNode& n = pool_[load];
  if (!way_.shifted)
    return fmt::format("load_words<{}>({} + {})", part_.words_of(load), writer_.input(n.source), place);
  const IndexExpr count = simplify(point_count(pool_, way_.outer) * way_.lines() * way_.line, pool_.bounds());
  if (proves_multiple_of(count, way_.width, pool_.bounds()))
    return fmt::format("load_words<{}>({} + {})", part_.words_of(load), writer_.input(n.source), place);
  writer_.use("edge_words");
  return fmt::format("edge_words<{}, {}>({}, {}, ({}){})", part_.words_of(load), way_.width, writer_.input(n.source),
                     place, writer_.index_type(), emitter_.index_text().tight(count));
}

// "" where all threads work.
std::string InterleavedElements::idle() const {
  return way_.in_strips || way_.parts == way_.team ? idle_ : fmt::format("{} < {}", thread_, way_.parts);
}

// The vectors that reach over an end, element by element, each for the thread whose places are of the same rows.
void InterleavedElements::edges(const std::vector<std::uint32_t>& axes, const std::vector<ExprId>& loads,
                                const Visit& visit) {
  const std::string type = writer_.index_type(), v = writer_.unique("v"), at = writer_.unique("at");
  const std::string here = part_.chunked() ? fmt::format("{} == 0 && ", chunk_) : "";
  std::string side, mine = fmt::format("{0} >= {1} && {2} == ({0} - {1}) % {3}", last_, first_, thread_, way_.parts);
  if (part_.chunked()) mine += fmt::format(" && {} == ({} - {}) / {} % {}", chunk_, last_, first_, way_.parts, chunks_);
  if (!aligned_) {
    side = writer_.unique("side");
    writer_.line("#pragma unroll 1");
    writer_.open(fmt::format("for (int {0} = 0; {0} < 2; ++{0})", side));
    writer_.line(fmt::format("const {} {} = {} == 0 ? {} - 1 : {};", type, v, side, first_, last_));
    mine = fmt::format("{} == 0 ? {}{} == {} : {}", side, here, thread_, way_.parts - 1, mine);
  } else {
    writer_.line(fmt::format("const {} {} = {};", type, v, last_));
  }
  writer_.open(fmt::format("if ({})", mine));
  std::map<ValueId, std::string> words;
  for (const ExprId load : loads) {
    const ValueId source = pool_[load].source;
    if (words.contains(source)) continue;
    writer_.use("edge_words");
    words[source] = writer_.unique(writer_.wish(source) + "_w");
    writer_.line(fmt::format("const Words<{0}> {1} = edge_words<{0}, {2}>({3}, {4} * {2}, {5});", part_.words_of(load),
                             words[source], way_.width, writer_.input(source), v, all_));
  }
  const std::string e = writer_.unique("e");
  writer_.line("#pragma unroll");
  writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", e, way_.width));
  writer_.line(fmt::format("const {} {} = {} * {} + {};", type, at, v, way_.width, e));
  writer_.open(fmt::format("if ({0} >= {1} && {0} < {2})", at, start_, stop_));
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
