#include "codegen/schedules/interleaved_emitter.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <numeric>
#include <set>

#include "codegen/emit_expr.h"
#include "codegen/schedules/direct.h"
#include "codegen/schedules/interleaved_part.h"
#include "codegen/schedules/row_cohort.h"
#include "codegen/schedules/row_partials.h"
#include "codegen/schedules/vector_access.h"
#include "ir/type.h"

namespace fusec {
namespace {

bool contains(const std::vector<ExprId>& ids, ExprId id) {
  return std::ranges::find(ids, id) != ids.end();
}

class InterleavedEmitter {
 public:
  InterleavedEmitter(const Graph& graph, const InterleavedRows& way, bool wide, int stage)
      : form_(way.form),
        pool_(form_.kernel.pool),
        graph_(graph),
        way_(way),
        part_(interleaved_part(graph, way, stage)),
        writer_(graph, wide),
        emitter_(form_.kernel, writer_) {
    for (const ValueId value : part_.kept) kept_[value] = "";
  }

  KernelSource emit(const Kernel& original) {
    const IndexExpr groups = point_count(pool_, way_.outer) * way_.strips();
    open(groups);
    if (!way_.one_pass)
      reduce_all();
    else if (way_.one_pass->kind == RowOnePass::Kind::kExponentials)
      reduce_exponentials();
    else
      part_.outputs&& way_.chunks > 1 ? combine_moments() : reduce_moments();
    if (!part_.outputs) leave_partials();
    if (part_.outputs && !part_.outputs_of(true).empty()) store_rows();
    if (part_.outputs && !part_.outputs_of(false).empty()) store_elements();
    KernelSource source = writer_.finish(kernel_comment(graph_, original), way_.threads(), part_.blocks_at_once());
    source.grid[0] = simplify(ceil_div(groups, way_.teams) * (part_.chunked() ? way_.chunks : 1), pool_.bounds());
    source.cohort = way_.cohort ? way_.chunks : 1;
    source.name = kernel_name(graph_, original.nodes);
    source.schedule = "column_reduction";
    source.keeps_rows = part_.kept_turns > 0;
    source.any_start = true;
    // Each element is read by who stores it, and no vector has some of two teams.
    source.owns_rows = part_.outputs && (aligned_ || way_.in_strips) && !way_.shifted;
    return source;
  }

 private:
  using Outputs = InterleavedPart::Outputs;
  struct Done {
    ExprEmitter::Accumulator own;  // the result of the row that this thread stores
    std::string slots = "";        // an array of those of its places, where loops ask for them
    std::string function = "";     // of them, in place of themselves
  };

  // This team's rows, where the vectors of memory lie in them, and of which row the thread's first element is.
  void open(const IndexExpr& groups) {
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
    if (part_.chunked()) {
      chunk_ = writer_.unique(way_.cohort ? "rank" : "chunk");
      writer_.line(fmt::format("const int {} = {} % {};  // of its rows' blocks", chunk_, number, way_.chunks));
      block += fmt::format(" / {}", way_.chunks);
    }
    group_ = writer_.unique("group_of_rows");
    if (way_.teams > 1) {
      writer_.line(fmt::format("const int {} = threadIdx.x % {};", thread_, way_.team));
      writer_.line(
          fmt::format("const {} {} = {} * {} + threadIdx.x / {};", type, group_, block, way_.teams, way_.team));
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
  void find_strip() {
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
  int at_once() const { return way_.in_strips ? way_.parts / way_.lanes() : way_.parts; }

  // What a loop does for an element: `lane` is its place in the vector.
  struct Visit {
    std::function<void(const std::string& lane, const std::string& at)> element;
    std::function<void(const std::string& place)> before = [](const std::string&) {};  // where the vector lies
    std::function<void()> after = [] {};
    std::function<void()> behind = [] {};  // the last vector, before the elements at the ends
  };

  // The row of an element of a line.
  std::string row_at(const std::string& column) const {
    return way_.breadth == 1 ? column : fmt::format("({}) / {}", column, way_.breadth);
  }

  // The axes of a loop over elements, bound for the element at `at` of memory, or of the line `at` of a strip, and the
  // place `lane`.
  void bind_element(const std::vector<std::uint32_t>& axes, const std::string& at, const std::string& lane) {
    std::string k = at;
    const std::string row = writer_.unique("of");
    if (way_.in_strips) {
      writer_.line(fmt::format("const {} {} = {};", writer_.index_type(), row, row_at(phase_ + " + " + lane)));
    } else {
      k = writer_.unique("k");
      writer_.line(fmt::format("const {} {} = ({} - {}) / {};", writer_.index_type(), k, at, start_, way_.columns()));
      writer_.line(
          fmt::format("const int {} = {};", row, row_at(fmt::format("({} + {}) % {}", phase_, lane, way_.columns()))));
    }
    emitter_.bind(axes[0], k);
    if (axes.size() > 1) emitter_.bind(axes[1], fmt::format("(({} + {}) % {})", phase_, lane, way_.breadth));
    emitter_.bind(way_.inner, row);
    define_results(lane);
  }

  // At a place.
  void define_results(const std::string& lane) {
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
  std::vector<ExprId> made_of_reductions(const std::vector<std::uint32_t>& axes,
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
  void make_of_reductions(const std::vector<std::uint32_t>& axes, const std::vector<ExprId>& roots) {
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

  void over_elements(const std::vector<std::uint32_t>& axes, const std::vector<ExprId>& roots, const Visit& visit) {
    const ExprEmitter::Mark outside = emitter_.mark();
    emitter_.emit_independent(roots);
    make_of_reductions(axes, roots);
    const std::vector<ExprId> loads = part_.loads_of(roots);
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
    of_places_.clear();
    emitter_.rewind(outside);
  }

  void vector_loop(const std::vector<std::uint32_t>& axes, const std::vector<ExprId>& roots, const Visit& visit) {
    const std::vector<ExprId> loads = part_.loads_of(roots);
    const std::string v = writer_.unique("v"), e = writer_.unique("e"), type = writer_.index_type();
    const std::string first = way_.in_strips ? first_ : fmt::format("{} + {}", first_, thread_);
    std::string turn;
    if (!idle().empty()) writer_.open(fmt::format("if ({})", idle()));
    // Unless every turn is there for all: what is the same for its vectors is then computed once, where registers are
    // left for it.
    constexpr int kMostKept = 32768;  // words of a block
    const bool all_turns = way_.in_strips && part_.kept_turns > 0 && part_.kept_words * way_.threads() < kMostKept &&
                           way_.lines().is(std::int64_t{part_.kept_turns} * at_once() * way_.chunks);
    if (part_.kept_turns > 0) {
      turn = writer_.unique("turn");
      writer_.line("#pragma unroll");
      writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", turn, part_.kept_turns));
      const std::string number = part_.chunked() ? fmt::format("({} * {} + {})", turn, way_.chunks, chunk_) : turn;
      writer_.line(fmt::format("const {} {} = {} + {} * {};", type, v, first, number, at_once()));
      if (!all_turns) writer_.open(fmt::format("if ({} < {})", v, last_));
    } else {
      const std::string begin = part_.chunked() ? fmt::format("{} + {} * {}", first, chunk_, at_once()) : first;
      const int step = at_once() * (part_.chunked() ? way_.chunks : 1);
      writer_.line(fmt::format("#pragma unroll {}", turns_unrolled(code_of_element(form_, roots) * way_.width)));
      if (const auto lines = way_.lines().as_constant(); way_.in_strips && lines && *lines % step == 0) {
        turn = writer_.unique("turn");
        writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", turn, *lines / step));
        writer_.line(fmt::format("const {} {} = {} + {} * {};", type, v, begin, turn, step));
      } else {
        writer_.open(fmt::format("for ({0} {1} = {2}; {1} < {3}; {1} += {4})", type, v, begin, last_, step));
      }
    }
    const std::string place = way_.in_strips
                                  ? fmt::format("{} + {} * {}", start_, v, emitter_.index_text().tight(way_.line))
                                  : fmt::format("{} * {}", v, way_.width);
    std::map<ValueId, std::string> words;
    for (const ExprId load : loads) {
      const ExprNode& n = pool_[load];
      if (words.contains(n.source)) continue;
      writer_.use("words");
      const std::string text = words_at(load, place);
      if (const auto kept = kept_.find(n.source); part_.kept_turns > 0 && kept != kept_.end()) {
        words[n.source] = fmt::format("{}[{}]", kept->second, turn);
        if (!filled_.contains(n.source)) {
          writer_.line(fmt::format("{} = {};", words[n.source], text));
        } else if (part_.forgets()) {
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
      if (!contains(way_.loads, load)) return std::string();
      return element_text(pool_[load].dtype, words.at(pool_[load].source), e, writer_);
    };
    visit.element(e, "");
    emitter_.load_text = nullptr;
    emitter_.rewind(lanes);
    writer_.close();
    visit.after();
    writer_.close();
    if (part_.kept_turns > 0 && !all_turns) writer_.close();
    if (!idle().empty()) writer_.close();
  }

  // The words of the vector there; of the tensor's last one there may be a part.
  std::string words_at(ExprId load, const std::string& place) {
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
  std::string idle() const {
    return way_.in_strips || way_.parts == way_.team ? idle_ : fmt::format("{} < {}", thread_, way_.parts);
  }

  // The vectors that reach over an end, element by element, each for the thread whose places are of the same rows.
  void edges(const std::vector<std::uint32_t>& axes, const std::vector<ExprId>& loads, const Visit& visit) {
    const std::string type = writer_.index_type(), v = writer_.unique("v"), at = writer_.unique("at");
    const std::string here = part_.chunked() ? fmt::format("{} == 0 && ", chunk_) : "";
    std::string side, mine = fmt::format("{0} >= {1} && {2} == ({0} - {1}) % {3}", last_, first_, thread_, way_.parts);
    if (part_.chunked())
      mine += fmt::format(" && {} == ({} - {}) / {} % {}", chunk_, last_, first_, way_.parts, way_.chunks);
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
      writer_.line(fmt::format("const Words<{0}> {1} = edge_words<{0}, {2}>({3}, {4} * {2}, {5});",
                               part_.words_of(load), words[source], way_.width, writer_.input(source), v, all_));
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

  void reduce_all() {
    for (const ReductionLoop& loop : part_.loops) {
      if (!part_.outputs && loop.stage > part_.stage) break;
      if (way_.cohort)
        reduce_with_others(loop);
      else if (way_.chunks > 1 && (part_.outputs || loop.stage < part_.stage))
        for (const ExprId r : loop.reductions) combine_partials(r);
      else
        reduce(loop);
    }
  }

  // Those of the blocks that wait for one another: once each has left its own, each combines all.
  void reduce_with_others(const ReductionLoop& loop) {
    reduce(loop, false);
    leave_partials(loop.reductions);
    meet();
    for (const ExprId r : loop.reductions) combine_partials(r);
  }

  void meet() {
    writer_.line(fmt::format("cohort_meet({} + 1 + {}, {});", arrived_, group_, way_.chunks * ++meetings_));
  }

  bool is_asked_for(ExprId reduction) const { return part_.is_asked_for(reduction); }

  // This stage's reductions, all in one loop: their results at each place where loops ask for them, if any may.
  void reduce(const ReductionLoop& loop, bool places = true) {
    std::vector<ExprEmitter::Accumulator> accumulators;
    for (const ExprId r : loop.reductions) {
      const ExprEmitter::Accumulator a = emitter_.accumulator(r);
      const std::string slots = writer_.unique(a.name + "_at");
      writer_.line(fmt::format("{} {}[{}];", a.type, slots, way_.width));
      writer_.line("#pragma unroll");
      writer_.line(fmt::format("for (int e = 0; e < {}; ++e) {}[e] = {}{};", way_.width, slots, a.extreme ? a.type : "",
                               a.identity));
      accumulators.push_back(a);
      slots_[r] = slots;
    }
    const auto element = [&](const std::string& lane, const std::string&) {
      std::vector<ExprEmitter::Accumulator> here = accumulators;
      for (ExprEmitter::Accumulator& a : here) a.name = fmt::format("{}[{}]", slots_.at(a.reduction), lane);
      emitter_.accumulate(here);
    };
    over_elements(loop.axes, loop.bodies(pool_), {.element = element});
    for (const ExprEmitter::Accumulator& a : accumulators)
      join(a, slots_.at(a.reduction), way_.parts, way_.width, places && is_asked_for(a.reduction));
  }

  // The greatest elements, and the sums of exponentials below them: below the block's own where others share its rows.
  void reduce_exponentials() {
    writer_.use("running_exponentials");
    if (part_.outputs && way_.chunks > 1 && !way_.cohort) return combine_exponentials();
    if (part_.kept_turns > 0)
      exponentials_of_kept();
    else
      running_exponentials();
    if (!way_.cohort) return;
    leave_partials({way_.one_pass->first, way_.one_pass->second});
    meet();
    combine_exponentials();
  }

  // An infinite maximum of the block's may be none of the row's: elements are not subtracted from themselves then.
  void exponentials_of_kept() {
    reduce(part_.loops[0]);
    done_.at(way_.one_pass->first).function = "RunningExponentials::shift_of";
    reduce(part_.loops[1], false);
  }

  void running_exponentials() {
    const std::string running = writer_.unique("running");
    writer_.use("exponentials_of_places");
    writer_.line(fmt::format("ExponentialsOfPlaces<{}> {};", way_.width, running));
    std::string elements;
    Visit visit;
    visit.before = [&](const std::string&) {
      elements = writer_.unique("elements");
      writer_.line(fmt::format("float {}[{}];", elements, way_.width));
    };
    visit.element = [&](const std::string& lane, const std::string& at) {
      const std::string element = emitter_.emit(way_.one_pass->element);
      writer_.line(at.empty() ? fmt::format("{}[{}] = {};", elements, lane, element)
                              : fmt::format("{}.take_element({}, {});", running, lane, element));
    };
    visit.after = [&] { writer_.line(fmt::format("{}.take_elements({});", running, elements)); };
    over_elements(pool_[way_.one_pass->first].axes, {way_.one_pass->element}, visit);
    join_exponentials(fmt::format("{}.greatest_of(e)", running), fmt::format("{}.sum[e]", running),
                      fmt::format("{}.shift[e]", running), way_.parts, way_.width);
  }

  // The team's, of what threads have at place `e` of each of their places: the greatest, the sum below `shift`, and
  // that.
  void join_exponentials(const std::string& greatest, const std::string& sum, const std::string& shift, int parts,
                         int width) {
    const ExprEmitter::Accumulator first = emitter_.accumulator(way_.one_pass->first);
    const ExprEmitter::Accumulator second = emitter_.accumulator(way_.one_pass->second);
    const bool own = width == way_.width;
    const std::string greatest_at = writer_.unique(first.name + "_at"), sum_at = writer_.unique(second.name + "_at");
    writer_.line(fmt::format("float {}[{}], {}[{}];", greatest_at, width, sum_at, width));
    writer_.line("#pragma unroll");
    writer_.line(fmt::format("for (int e = 0; e < {}; ++e) {}[e] = {};", width, greatest_at, greatest));
    join(first, greatest_at, parts, width, is_asked_for(first.reduction));
    ExprEmitter::Accumulator all = first;
    if (own)
      all.name = done_.at(first.reduction).slots + "[e]";
    else if (parts > way_.rows)
      all.name = results_of_rows(first) + "[e]";
    writer_.line("#pragma unroll");
    writer_.open(fmt::format("for (int e = 0; e < {}; ++e)", width));
    const ExprEmitter::Mark outside = emitter_.mark();
    for (const std::uint32_t a : pool_[way_.one_pass->second].axes) emitter_.bind(a, "0");
    emitter_.bind(way_.inner, row_of_place(own ? "e" : ""));
    const std::string of_all = emitter_.result(all);
    emitter_.define(first.reduction, part_.outputs ? of_all : fmt::format("RunningExponentials::shift_of({})", of_all));
    emitter_.define(way_.one_pass->element, shift);
    const std::string below = emitter_.emit(pool_[way_.one_pass->second].args[0]);
    writer_.line(fmt::format("{}[e] = {} * ({});", sum_at, sum, below));
    emitter_.rewind(outside);
    writer_.close();
    join(second, sum_at, parts, width, is_asked_for(second.reduction));
  }

  // Sum and squares of differences to the mean: about an element of each thread's first.
  void reduce_moments() {
    const std::vector<std::uint32_t>& axes = pool_[way_.one_pass->first].axes;
    const std::string running = writer_.unique("running"), moments = writer_.unique("moments");
    writer_.use("shifted_moments");
    writer_.line(fmt::format("ShiftedMoments<{}> {};", way_.width, running));
    std::string elements;
    Visit visit;
    visit.before = [&](const std::string&) {
      elements = writer_.unique("elements");
      writer_.line(fmt::format("float {}[{}];", elements, way_.width));
    };
    visit.element = [&](const std::string& lane, const std::string& at) {
      const std::string element = emitter_.emit(way_.one_pass->element);
      writer_.line(at.empty() ? fmt::format("{}[{}] = {};", elements, lane, element)
                              : fmt::format("{}[{}].take_elements<1>({{{}}});", moments, lane, element));
    };
    visit.after = [&] { writer_.line(fmt::format("{}.take_elements({});", running, elements)); };
    visit.behind = [&] {
      writer_.line(fmt::format("RunningMoments {}[{}];", moments, way_.width));
      writer_.line("#pragma unroll");
      writer_.line(fmt::format("for (int e = 0; e < {}; ++e) {}[e] = {}.moments_of(e);", way_.width, moments, running));
    };
    over_elements(axes, {way_.one_pass->element}, visit);
    join_moments(moments, way_.parts, way_.width);
  }

  // The team's sums, and the squares of differences to their means, of what threads have at each of their places, where
  // means are counted from `about`.
  void join_moments(const std::string& moments, int parts, int width, const std::string& about = "") {
    const ExprEmitter::Accumulator first = emitter_.accumulator(way_.one_pass->first);
    const ExprEmitter::Accumulator second = emitter_.accumulator(way_.one_pass->second);
    const std::string sums = writer_.unique(first.name + "_at"), squares = writer_.unique(second.name + "_at");
    writer_.line(fmt::format("float {}[{}], {}[{}];", sums, width, squares, width));
    writer_.line("#pragma unroll");
    writer_.line(fmt::format("for (int e = 0; e < {}; ++e) {}[e] = {}[e].sum;", width, sums, moments));
    join(first, sums, parts, width, part_.is_asked_for(first.reduction));
    ExprEmitter::Accumulator all = first;
    const std::string e = writer_.unique("e");
    all.name = fmt::format("{}[{}]", width == way_.width ? done_.at(first.reduction).slots : results_of_rows(first), e);
    writer_.line("#pragma unroll");
    writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", e, width));
    const ExprEmitter::Mark outside = emitter_.mark();
    for (const std::uint32_t a : pool_[way_.one_pass->second].axes) emitter_.bind(a, "0");
    const bool own = width == way_.width;
    emitter_.bind(way_.inner, row_of_place(own ? e : ""));
    if (part_.outputs)
      emitter_.define(first.reduction, emitter_.result(all));
    else  // of what this block has of its rows
      emitter_.define(way_.one_pass->mean, fmt::format("({} / {})", all.name, elements_of_chunk(chunk_, own ? e : "")));
    emitter_.define(way_.one_pass->element, about.empty() ? fmt::format("{}[{}].mean", moments, e)
                                                          : fmt::format("({} + {}[{}].mean)", about, moments, e));
    const std::string of_all = emitter_.emit(pool_[way_.one_pass->second].args[0]);
    writer_.line(fmt::format("{0}[{1}] = {2}[{1}].squares + {2}[{1}].count * ({3});", squares, e, moments, of_all));
    emitter_.rewind(outside);
    writer_.close();
    join(second, squares, parts, width, part_.is_asked_for(second.reduction));
  }

  // The row of what a thread has at a place, or, where each has one (""), of that.
  std::string row_of_place(const std::string& place) const {
    if (way_.in_strips)
      return place.empty() ? fmt::format("({} + {} % {})", begins_, thread_, way_.rows)
                           : fmt::format("({})", row_at(fmt::format("{} + {}", phase_, place)));
    return place.empty() ? fmt::format("(({} + {}) % {})", begins_, thread_, way_.rows)
                         : fmt::format("({})", row_at(fmt::format("({} + {}) % {}", phase_, place, way_.columns())));
  }

  // How many elements a chunk has of the row of what a thread has at a place, or of its only one.
  std::string elements_of_chunk(const std::string& chunk, const std::string& place) {
    writer_.use("elements_of_chunk");
    if (way_.in_strips) {
      const std::string lines = fmt::format("lines_of_chunk<{}, {}>({}, {})", at_once(), way_.chunks, last_, chunk);
      return way_.breadth == 1 ? lines : fmt::format("({}.0f * {})", way_.breadth, lines);
    }
    const std::string row =
        place.empty() ? fmt::format("{} % {}", thread_, way_.rows)
                      : row_at(fmt::format("({} * {} + {}) % {}", thread_, way_.width, place, way_.columns()));
    const std::string vectors = fmt::format("{} * {}", first_, way_.width);
    return fmt::format("elements_of_chunk<{}, {}, {}, {}>({} - {}, (int)({} - {}), {}, {})", way_.parts * way_.width,
                       way_.chunks, way_.columns(), way_.breadth, stop_, vectors, vectors, start_, chunk, row);
  }

  // Where threads have an element each, of row `thread % rows`: that row's result, which a thread of it has found.
  std::string results_of_rows(const ExprEmitter::Accumulator& a) {
    const std::string mine = writer_.unique("mine");
    writer_.use("result_in_turn");
    writer_.line(fmt::format("const float {}[1] = {{result_in_turn<{}>({}, {})}};", mine, way_.rows, a.name, thread_));
    return mine;
  }

  // The team's results of what its threads have: in the accumulator's own name, and at each place where all ask.
  void join(const ExprEmitter::Accumulator& a, const std::string& mine, int parts, int width, bool all) {
    std::string places = mine;
    if (all && width != way_.width) {
      places = writer_.unique(a.name + "_all");
      writer_.line(fmt::format("{} {}[{}];", a.type, places, way_.width));
    }
    writer_.use("combine");
    if (a.extreme) {
      writer_.use("spread_extremes");
      writer_.use("extreme_lanes");
    }
    writer_.line(fmt::format("const {} {} = {};", a.type, a.name,
                             width == way_.width && (way_.shifted || way_.breadth > 1 || are_lines_of_warps())
                                 ? reduced_strip(a, mine, places, all ? width : 0)
                                 : reduced_in_turn(a, mine, places, parts, width, all)));
    done_[a.reduction] = {.own = a, .slots = all ? places : ""};
  }

  // Has each warp whole lines of a strip, and neither part nor rest of one?
  bool are_lines_of_warps() const {
    return way_.in_strips && 32 % way_.lanes() == 0 && way_.parts == way_.team;
  }

  std::string reduced_in_turn(const ExprEmitter::Accumulator& a, const std::string& mine, const std::string& places,
                              int parts, int width, bool all) {
    writer_.use("interleaved_reduce");
    return fmt::format("interleaved_reduce<{}, {}, {}, {}, {}, {}>({}, {}, {}, {})", way_.team, way_.teams, parts,
                       width, way_.rows, all ? way_.width : 0, mine, places, thread_, a.combine);
  }

  // Of strips, and of rows with several elements of a line.
  std::string reduced_strip(const ExprEmitter::Accumulator& a, const std::string& mine, const std::string& places,
                            int count) {
    const std::string none = a.extreme ? a.type + a.identity : fmt::format("({}){}", a.type, a.identity);
    const std::string first = fmt::format("(int)({} - {})", phase_, begins_);
    if (way_.breadth == 1 && !way_.shifted) {
      writer_.use("reduce_strip");
      return fmt::format("reduce_strip<{}, {}, {}>({}, {}, {})", way_.team, way_.lanes(), count, mine, places,
                         a.combine);
    }
    if (way_.breadth == 1) {
      writer_.use("shifted_lines");
      return fmt::format("reduce_shifted<{}, {}, {}, {}, {}>({}, {}, {}, {})", way_.team, way_.parts, way_.lanes(),
                         way_.rows, count, mine, places, first, a.combine);
    }
    writer_.use("reduce_pieces");
    if (!way_.shifted)
      return fmt::format("reduce_pieces<{}, {}, {}, {}, {}>({}, {}, {}, {})", way_.team, way_.parts, way_.breadth,
                         way_.rows, count, mine, places, none, a.combine);
    return fmt::format("reduce_piece<{}, {}, {}, {}, {}>({}, {}, {}, {}, {})", way_.team, way_.parts, way_.breadth,
                       count, pieces_reduced_++, mine, places, first, none, a.combine);
  }

  // --- blocks that share rows
  std::string partials(const ExprEmitter::Accumulator& a) {
    std::string& pointer = partials_[a.reduction];
    const IndexExpr teams = point_count(pool_, way_.outer) * way_.strips();
    if (pointer.empty()) pointer = row_partials(writer_, form_, a, teams * (std::int64_t{way_.chunks} * way_.rows));
    return pointer;
  }

  void leave_partials(const std::vector<ExprId>& reductions) {
    writer_.open(fmt::format("if ({} < {})", thread_, way_.rows));
    for (const ExprId r : reductions)
      if (!is_left_from_places(r)) leave_partial(partials(done_.at(r).own), thread_, done_.at(r).own.name);
    writer_.close();
    for (const ExprId r : reductions)
      if (is_left_from_places(r)) leave_from_places(done_.at(r));
  }

  void leave_partials() {
    std::vector<ExprId> here;
    for (const ReductionLoop& loop : part_.loops)
      if (way_.one_pass || loop.stage == part_.stage) std::ranges::copy(loop.reductions, std::back_inserter(here));
    leave_partials(here);
  }

  void leave_partial(const std::string& pointer, const std::string& row, const std::string& value) {
    writer_.line(
        fmt::format("{}[({} * {} + {}) * {} + {}] = {};", pointer, group_, way_.chunks, chunk_, way_.rows, row, value));
  }

  // What each place has of it is in registers. Of so many rows, another look into shared memory would meet in its
  // banks.
  bool is_left_from_places(ExprId reduction) const {
    return way_.one_pass && reduction == way_.one_pass->first && !way_.in_strips && way_.breadth == 1 &&
           way_.rows / std::gcd(way_.rows, way_.width) > 32;
  }

  // As many threads as have all rows between them, each those that are its own.
  void leave_from_places(const Done& done) {
    const int each = std::gcd(way_.rows, way_.width);
    const std::string e = writer_.unique("e"), pointer = partials(done.own);
    writer_.open(fmt::format("if ({} < {})", thread_, way_.rows / each));
    writer_.line("#pragma unroll");
    writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", e, each));
    leave_partial(pointer, fmt::format("({} * {} + {}) % {}", thread_, way_.width, e, way_.rows),
                  fmt::format("{}[{}]", done.slots, e));
    writer_.close();
    writer_.close();
  }

  // Threads that combine what blocks have left: one for each row where those are few.
  int combining() const { return way_.cohort ? way_.rows : way_.team / way_.rows * way_.rows; }

  // What the chunks have left, number i of row i % rows, and of the rows as this team counts them.
  void combine_partials(ExprId reduction) {
    const ExprEmitter::Accumulator a = emitter_.accumulator(reduction);
    const std::string mine = writer_.unique(a.name + "_at"), i = writer_.unique("i"), pointer = partials(a);
    const int parts = combining(), count = way_.chunks * way_.rows;
    writer_.line(fmt::format("{} {}[1] = {{{}{}}};", a.type, mine, a.extreme ? a.type : "", a.identity));
    writer_.line(fmt::format("if ({} < {})", thread_, parts));
    writer_.line(fmt::format("  for (int {0} = {1}; {0} < {2}; {0} += {3})", i, thread_, count, parts));
    writer_.use("combine");
    writer_.line(
        fmt::format("    {0}[0] = {1}({0}[0], {2}[{3} * {4} + {5}]);", mine, a.combine, pointer, group_, count, i));
    join(a, mine, parts, 1, part_.is_asked_for(reduction));
  }

  // As combine_partials, of chunks' greatest elements and the sums below those.
  void combine_exponentials() {
    const std::string first = partials(emitter_.accumulator(way_.one_pass->first));
    const std::string second = partials(emitter_.accumulator(way_.one_pass->second));
    const std::string running = writer_.unique("running"), i = writer_.unique("i"), at = writer_.unique("at");
    const int parts = combining(), count = way_.chunks * way_.rows;
    writer_.line(fmt::format("RunningExponentials {};", running));
    writer_.line(fmt::format("if ({} < {})", thread_, parts));
    writer_.open(fmt::format("  for (int {0} = {1}; {0} < {2}; {0} += {3})", i, thread_, count, parts));
    writer_.line(fmt::format("const {} {} = {} * {} + {};", writer_.index_type(), at, group_, count, i));
    writer_.line(fmt::format("{0}.take_part({1}[{3}], {2}[{3}]);", running, first, second, at));
    writer_.close();
    join_exponentials(running + ".greatest", running + ".sum", running + ".shift()", parts, 1);
  }

  // As combine_partials, of chunks' sums and the squares of differences to the means of each. What follows of those is
  // counted from the first one, so that little is lost where means are far from 0.
  void combine_moments() {
    const std::string sums = partials(emitter_.accumulator(way_.one_pass->first));
    const std::string squares = partials(emitter_.accumulator(way_.one_pass->second));
    const std::string moments = writer_.unique("moments"), i = writer_.unique("i"), at = writer_.unique("at");
    const std::string about = writer_.unique("about"), type = writer_.index_type();
    const int parts = combining(), count = way_.chunks * way_.rows;
    writer_.use("running_moments");
    writer_.line(fmt::format("RunningMoments {}[1];", moments));
    writer_.line(fmt::format("const float {} = {}[{} * {} + {} % {}] / {};", about, sums, group_, count, thread_,
                             way_.rows, elements_of_chunk("0", "")));
    writer_.line(fmt::format("if ({} < {})", thread_, parts));
    writer_.open(fmt::format("  for (int {0} = {1}; {0} < {2}; {0} += {3})", i, thread_, count, parts));
    writer_.line(fmt::format("const {} {} = {} * {} + {};", type, at, group_, count, i));
    writer_.line(fmt::format("{0}[0].take_part({1}[{3}], {2}[{3}], {4}, {5});", moments, sums, squares, at,
                             elements_of_chunk(fmt::format("{} / {}", i, way_.rows), ""), about));
    writer_.close();
    join_moments(moments, parts, 1, about);
  }

  // --- outputs
  void store_rows() {
    const Outputs outputs = part_.outputs_of(true);
    std::string condition = fmt::format("{} < {}", thread_, way_.rows);
    if (part_.chunked()) condition += fmt::format(" && {} == 0", chunk_);
    if (!whole_strips_)
      condition +=
          fmt::format(" && {} + {} < {}", row_at(begins_), thread_,
                      emitter_.index_text().tight(simplify(floor_div(way_.line, way_.breadth), pool_.bounds())));
    writer_.open(fmt::format("if ({})", condition));
    const ExprEmitter::Mark outside = emitter_.mark();
    const std::string row = writer_.unique("row");
    writer_.line(way_.in_strips
                     ? fmt::format("const {} {} = {} + {};", writer_.index_type(), row, row_at(begins_), thread_)
                     : fmt::format("const int {} = ({} + {}) % {};", row, begins_, thread_, way_.rows));
    emitter_.bind(way_.inner, row);
    for (const auto& [reduction, done] : done_) emitter_.define(reduction, emitter_.result(done.own));
    const std::vector<std::string> values = emitter_.emit(roots_of_outputs(outputs));
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const IndexExpr at = simplify(flat_index(outputs[i]->type.shape, outputs[i]->index), pool_.bounds());
      writer_.line(store_text(writer_, *outputs[i], emitter_.index(at), values[i]));
    }
    emitter_.rewind(outside);
    writer_.close();
  }

  void store_elements() {
    const Outputs outputs = part_.outputs_of(false);
    const std::vector<ExprId> roots = roots_of_outputs(outputs);
    std::vector<VectorStore> stores;
    Visit visit;
    visit.before = [&](const std::string& place) {
      for (const KernelOutput* output : outputs)
        stores.push_back(VectorStore::elsewhere(
            emitter_, *output, way_.width, fmt::format("store_words({} + {}, ", writer_.output(output->value), place)));
    };
    visit.element = [&](const std::string& lane, const std::string& at) {
      const std::vector<std::string> values = emitter_.emit(roots);
      for (std::size_t i = 0; i < outputs.size(); ++i) {
        if (at.empty())
          stores[i].put(emitter_, lane, values[i]);
        else
          writer_.line(store_text(writer_, *outputs[i], at, values[i]));
      }
    };
    visit.after = [&] {
      for (VectorStore& store : stores) store.finish(emitter_);
    };
    over_elements(form_.columns, roots, visit);
  }

  const RowForm& form_;
  const ExprPool& pool_;
  const Graph& graph_;
  const InterleavedRows& way_;
  const InterleavedPart part_;
  KernelWriter writer_;
  ExprEmitter emitter_;
  std::string thread_, chunk_, group_;  // in its team; of its rows' blocks; the team's rows
  std::string start_, stop_;            // of the rows' elements in memory
  std::string first_, last_;            // of the whole vectors there
  std::string all_;                     // elements of all rows
  std::string begins_, phase_;          // of which row the first vector's first element is, and this thread's
  std::string idle_;                    // "" where every thread has a vector of the strip
  bool whole_strips_ = true;
  bool aligned_ = false, whole_ = false;  // no vector reaches over the beginning; over any end
  int pieces_reduced_ = 0;                // calls with memory of their own
  std::string arrived_;                   // cohorts: their counters
  int meetings_ = 0;                      // and how often its blocks have met
  std::map<ExprId, std::string> slots_, partials_;
  std::map<ExprId, std::string> of_places_;  // arrays of what is made of reductions, while a loop is printed
  std::map<ExprId, Done> done_;
  std::map<ValueId, std::string> kept_;  // arrays of words; "" before they are declared
  std::set<ValueId> filled_;
};

}  // namespace

KernelSource emit_interleaved_rows(const Graph& graph, const InterleavedRows& way, bool wide, int stage,
                                   const Kernel& original) {
  return InterleavedEmitter(graph, way, wide, stage).emit(original);
}

}  // namespace fusec
