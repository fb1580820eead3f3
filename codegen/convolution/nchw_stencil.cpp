#include "codegen/convolution/nchw_stencil.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analysis/kernel/loads.h"
#include "codegen/access/direct.h"
#include "codegen/convolution/masked_vector.h"
#include "codegen/convolution/sum_text.h"
#include "codegen/expr/emit_expr.h"
#include "codegen/gemm/epilogue_vectors.h"
#include "ir/type.h"

namespace fusec {
namespace {

using Accumulator = ExprEmitter::Accumulator;

class NchwStencilEmitter {
 public:
  NchwStencilEmitter(const Kernel& original, const NchwStencil& stencil, const Graph& graph)
      : original_(original),
        w_(stencil),
        t_(stencil.tiles),
        pool_(w_.kernel.pool),
        graph_(graph),
        plane_count_(point_count(pool_, w_.planes)),
        writer_(graph, needs_wide_index(original, graph, blocks() * t_.threads())),
        input_emitter_(w_.kernel, writer_),
        results_(w_.vectors.kernel, writer_) {}

  KernelSource emit() {
    writer_.use("words");
    place_block();
    place_thread();
    declare_tiles();
    declare_accumulators();
    const bool in_steps = t_.points_per_stage < w_.points();
    if (in_steps) {
      from_ = writer_.unique("from");
      writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; {0} += {2})", from_, w_.points(), t_.points_per_stage));
      writer_.line(fmt::format("if ({} > 0) __syncthreads();", from_));
    }
    stage_weights();
    stage_places();
    writer_.line("__syncthreads();");
    add_up();
    if (in_steps) writer_.close();
    finish_results();
    KernelSource source = writer_.finish(comment(), t_.threads());
    source.name = kernel_name(graph_, original_.nodes);
    source.grid[0] = blocks();
    source.schedule = {KernelKind::kNchwStencil};
    return source;
  }

 private:
  std::string text(const IndexExpr& e) { return input_emitter_.index_text().tight(simplify(e, pool_.bounds())); }
  std::string integer() const { return writer_.index_type(); }
  const IndexExpr& width() const { return pool_.extent(w_.columns.result); }
  IndexExpr height() const { return w_.rows ? pool_.extent(w_.rows->result) : IndexExpr(1); }
  IndexExpr across() const { return simplify(ceil_div(width(), t_.block_columns()), pool_.bounds()); }
  IndexExpr down() const { return simplify(ceil_div(height(), t_.block_rows()), pool_.bounds()); }
  IndexExpr blocks() const { return simplify(ceil_div(plane_count_, t_.planes) * across() * down(), pool_.bounds()); }
  int busy_threads() const { return t_.thread_columns * t_.thread_rows * t_.planes; }
  bool idle_threads() const { return busy_threads() < t_.threads(); }
  bool whole(const IndexExpr& extent, std::int64_t of_block) const {
    return proves_multiple_of(extent, of_block, pool_.bounds());
  }

  // Opens a loop with an optional unroll pragma and returns its variable. A single iteration needs no loop: returns
  // "0".
  std::string open_each(const std::string& preferred_name, std::int64_t count,
                        std::string_view unroll = "#pragma unroll") {
    opened_.push_back(count > 1);
    if (count == 1) return "0";
    const std::string i = writer_.unique(preferred_name);
    if (!unroll.empty()) writer_.line(unroll);
    writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", i, count));
    return i;
  }

  void close_each(int loops = 1) {
    for (; loops > 0; --loops) {
      if (opened_.back()) writer_.close();
      opened_.pop_back();
    }
  }

  std::vector<std::string> comment() const {
    std::vector<std::string> lines = kernel_comment(graph_, original_);
    lines.push_back(fmt::format("A block makes {} x {} results of {} planes, a thread {} x {} of them.",
                                t_.block_rows(), t_.block_columns(), t_.planes, t_.rows, t_.columns));
    return lines;
  }

  // Declares the block's first result and plane.
  void place_block() {
    column0_ = row0_ = "0";
    std::string rest = "blockIdx.x";
    const auto take = [&](const IndexExpr& count, const std::string& preferred_name, int of_block) -> std::string {
      if (count.is(1)) return "0";
      const std::string name = writer_.unique(preferred_name), left = writer_.unique("rest");
      writer_.line(fmt::format("const {0} {1} = {2} % {3} * {4}, {5} = {2} / {3};", integer(), name,
                               rest == "blockIdx.x" ? "(int)blockIdx.x" : rest, text(count), of_block, left));
      rest = left;
      return name;
    };
    column0_ = take(across(), "column0", t_.block_columns());
    row0_ = take(down(), "row0", t_.block_rows());
    plane0_ = writer_.unique("plane0");
    writer_.line(fmt::format("const {} {} = {};", integer(), plane0_,
                             times(t_.planes, rest == "blockIdx.x" ? "(int)blockIdx.x" : rest)));
  }

  void place_thread() {
    const int of_plane = t_.thread_columns * t_.thread_rows;
    const auto take = [&](int count, int below, const std::string& preferred_name) -> std::string {
      if (count == 1) return "0";
      const std::string name = writer_.unique(preferred_name), at = below == 1 ? "" : fmt::format(" / {}", below);
      const std::string beyond = below * count >= busy_threads() ? "" : fmt::format(" % {}", count);
      writer_.line(fmt::format("const int {} = threadIdx.x{}{};", name, at, beyond));
      return name;
    };
    column_ = take(t_.thread_columns, 1, "column");
    row_ = take(t_.thread_rows, t_.thread_columns, "row");
    plane_ = take(t_.planes, of_plane, "plane");
  }

  void declare_tiles() {
    const auto declare = [&](ExprId id, const std::string& preferred_name, std::int64_t elements) {
      const std::string name = tiles_[id] = writer_.unique(preferred_name);
      writer_.line(
          fmt::format("__shared__ __align__(16) {} {}[{}];", c_type(pool_[id].type), name, (elements + 3) / 4 * 4));
    };
    for (const ExprId id : w_.staged) {
      declare(id, "places", w_.tile_elements());
      addresses_[id] = writer_.unique("places_at");
      writer_.line(
          fmt::format("const unsigned {} = (unsigned)__cvta_generic_to_shared({});", addresses_[id], tiles_[id]));
    }
    for (const ExprId id : w_.weights) declare(id, "weights", w_.weight_elements());
  }

  // name[member][row][column]
  void declare_accumulators() {
    for (const ExprId r : w_.reductions_of_vectors) {
      const Accumulator sum = accumulators_.emplace_back(results_.accumulator(r));
      writer_.line(fmt::format("{} {}[{}][{}][{}];", sum.type, sum.name, w_.members(), t_.rows, t_.columns));
      const std::string i = writer_.unique("i");
      writer_.line("#pragma unroll");
      writer_.line(fmt::format("for (int {0} = 0; {0} < {1}; ++{0}) (({2}*){3})[{0}] = {4};", i,
                               w_.members() * t_.rows * t_.columns, sum.type, sum.name, sum.identity));
    }
  }

  void add_up() {
    writer_.use("load_staged");
    if (idle_threads()) writer_.open(fmt::format("if (threadIdx.x < {})", busy_threads()));
    const std::string point = open_each("point", t_.points_per_stage, "#pragma unroll 1");
    constexpr std::int64_t kMostWritten = 800;  // unrolled multiply-adds
    if (w_.taps() * w_.members() * t_.rows * t_.columns <= kMostWritten)
      add_all_rows(point);
    else
      add_row_by_row(point);
    close_each();
    if (idle_threads()) writer_.close();
  }

  // Reads each line of positions once, for all its results and taps.
  void add_all_rows(const std::string& point) {
    const StencilAxis rows = w_.rows.value_or(StencilAxis{});
    std::map<ExprId, std::string> taps, lines;
    for (const ExprId id : w_.weights) taps[id] = load_taps(id, times(rows.taps, point), rows.taps);
    const auto first = lines_of_thread(point);
    const std::string r = open_each("r", rows.reach(t_.rows));
    for (const ExprId id : w_.staged) lines[id] = load_line(id, first.at(id), r);
    const std::string u = open_each("u", rows.taps);
    std::string i = "0";
    if (r != "0") {
      i = writer_.unique("i");
      const std::string further = u == "0" ? r : fmt::format("{} - {}", r, times(rows.dilation, u));
      const std::string between =
          rows.stride == 1 ? "" : fmt::format(" || {} % {} != 0", in_parentheses(further), rows.stride);
      writer_.line(fmt::format("const int {} = {}{};", i, rows.stride == 1 ? further : in_parentheses(further),
                               rows.stride == 1 ? "" : fmt::format(" / {}", rows.stride)));
      writer_.line(fmt::format("if ({} < 0 || {} >= {}{}) continue;", further, i, t_.rows, between));
    }
    add_line(taps, lines, u, i);
    close_each(2);
  }

  // Unrolls only few of the taps.
  void add_row_by_row(const std::string& point) {
    const StencilAxis rows = w_.rows.value_or(StencilAxis{});
    std::map<ExprId, std::string> taps, lines;
    const auto first = lines_of_thread(point);
    const std::string u = open_each("u", rows.taps, "#pragma unroll 1");
    for (const ExprId id : w_.weights) taps[id] = load_taps(id, sum_of_terms({times(rows.taps, point), u}), 1);
    const std::string i = open_each("i", t_.rows);
    const std::string row = sum_of_terms({times(rows.stride, i), times(rows.dilation, u)});
    for (const ExprId id : w_.staged) lines[id] = load_line(id, first.at(id), row);
    add_line(taps, lines, "0", i);
    close_each(2);
  }

  // Loads `rows` rows of weights from `at` on: [row of taps][tap][member].
  std::string load_taps(ExprId id, const std::string& at, std::int64_t rows) {
    const std::string name = writer_.unique("taps"), type = c_type(pool_[id].type);
    const std::int64_t members = w_.members(), points_per_stage = w_.members_per_weight_vector();
    writer_.line(fmt::format("{}{} {}[{}][{}][{}];",
                             points_per_stage > 1 ? fmt::format("__align__({}) ", 4 * points_per_stage) : "", type,
                             name, rows, w_.columns.taps, members));
    const std::string vector = points_per_stage == 1 ? type : fmt::format("{}{}", type, points_per_stage);
    const std::string u = open_each("u", rows), v = open_each("v", w_.columns.taps);
    const std::string m = open_each("m", members / points_per_stage), first = times(points_per_stage, m);
    const std::string row = in_parentheses(sum_of_terms({at, u}));
    const std::string from = times(members, in_parentheses(sum_of_terms({times(w_.columns.taps, row), v})));
    writer_.line(fmt::format("*({0}*)&{1}[{2}][{3}][{4}] = *(const {0}*)&{5}[{6}];", vector, name, u, v, first,
                             tiles_.at(id), sum_of_terms({times(w_.weights_per_plane(), plane_), from, first})));
    close_each(3);
    return name;
  }

  // The address in shared memory of the first line that a thread's results need.
  std::map<ExprId, std::string> lines_of_thread(const std::string& point) {
    const std::int64_t rows = w_.rows ? t_.rows * w_.rows->stride : 0;
    const std::string plane = in_parentheses(sum_of_terms({times(t_.points_per_stage, plane_), point}));
    const std::string first = sum_of_terms({times(t_.plane, plane), rows == 0 ? "0" : times(t_.line * rows, row_),
                                            times(t_.columns * w_.columns.stride, column_)});
    std::map<ExprId, std::string> lines;
    for (const ExprId id : w_.staged) {
      lines[id] = writer_.unique("lines_at");
      writer_.line(fmt::format("const unsigned {} = {};", lines[id],
                               sum_of_terms({addresses_.at(id), times(4, in_parentheses(first))})));
    }
    return lines;
  }

  std::string load_line(ExprId id, const std::string& first, const std::string& row) {
    const std::string name = writer_.unique("line"), type = c_type(pool_[id].type);
    writer_.line(fmt::format("{} {}[{}][4];", type, name, w_.elements_per_thread_line() / 4));
    const std::string k = open_each("k", w_.elements_per_thread_line() / 4);
    writer_.line(fmt::format("load_staged({}[{}], {});", name, k,
                             sum_of_terms({first, times(4 * t_.line, in_parentheses(row)), times(16, k)})));
    close_each();
    return name;
  }

  void add_line(const std::map<ExprId, std::string>& taps, const std::map<ExprId, std::string>& lines,
                const std::string& u, const std::string& i) {
    const std::string v = open_each("v", w_.columns.taps), m = open_each("m", w_.members()),
                      e = open_each("e", t_.columns);
    const ExprEmitter::Mark mark = results_.mark();
    // All values that depend on axes have names, so any binding will do.
    for (std::uint32_t axis = 0; axis < w_.vectors.kernel.pool.bounds().axes.size(); ++axis) results_.bind(axis, "0");
    const std::string place = in_parentheses(
        sum_of_terms({std::to_string(w_.before), times(w_.columns.stride, e), times(w_.columns.dilation, v)}));
    for (std::size_t k = 0; k < w_.staged.size(); ++k)
      results_.define(w_.staged_of_vectors[k], fmt::format("{0}[{1} / 4][{1} % 4]", lines.at(w_.staged[k]), place));
    for (std::size_t k = 0; k < w_.weights.size(); ++k)
      results_.define(w_.weights_of_vectors[k], fmt::format("{}[{}][{}][{}]", taps.at(w_.weights[k]), u, v, m));
    std::vector<Accumulator> sums = accumulators_;
    for (Accumulator& sum : sums) sum.name += fmt::format("[{}][{}][{}]", m, i, e);
    results_.accumulate(sums);
    results_.rewind(mark);
    close_each(3);
  }

  void finish_results() {
    const std::string plane = writer_.unique("here");
    writer_.line(fmt::format("const {} {} = {};", integer(), plane, sum_of_terms({plane0_, plane_})));
    std::string beyond = idle_threads() ? fmt::format("threadIdx.x >= {}", busy_threads()) : "";
    const auto or_beyond = [&](const std::string& what) { beyond += (beyond.empty() ? "" : " || ") + what; };
    if (!whole(plane_count_, t_.planes)) or_beyond(fmt::format("{} >= {}", plane, text(plane_count_)));
    const std::string vector = writer_.unique("vector");
    writer_.line(
        fmt::format("const {} {} = {};", integer(), vector,
                    sum_of_terms({column0_ == "0" ? "0" : fmt::format("{} / {}", column0_, t_.columns), column_})));
    if (!whole(width(), t_.block_columns()))
      or_beyond(fmt::format("{} >= {}", times(t_.columns, vector), text(width())));
    if (!beyond.empty()) writer_.line(fmt::format("if ({}) return;", beyond));
    std::vector<std::uint32_t> planes;  // the results' axes have other ids in `vectors`
    for (const std::uint32_t a : w_.planes) planes.push_back(w_.vectors.now.at(a));
    bind_flat(results_, planes, plane, "nopq");
    results_.bind(w_.vectors.vector, vector);
    const std::string i = open_each("i", t_.rows);
    if (w_.rows) {
      const std::string row = writer_.unique("row");
      writer_.line(fmt::format("const {} {} = {};", integer(), row, sum_of_terms({row0_, times(t_.rows, row_), i})));
      if (!whole(height(), t_.block_rows()))
        writer_.line(fmt::format("if ({} >= {}) {};", row, text(height()), t_.rows > 1 ? "break" : "return"));
      results_.bind(w_.vectors.now.at(w_.rows->result), row);
    }
    const std::string m = open_each("m", w_.members());
    if (w_.member) results_.bind(w_.vectors.now.at(*w_.member), m);
    finish_vector(fmt::format("[{}][{}]", m, i), vector);
    close_each(2);
  }

  // Whole vectors are loaded and stored if the results end with a whole vector.
  void finish_vector(const std::string& of, const std::string& vector) {
    std::map<ExprId, std::string> sums;
    for (const Accumulator& sum : accumulators_) sums[sum.reduction] = sum.name + of;
    if (whole(width(), t_.columns))
      return emit_epilogue_vector(results_, graph_, w_.vectors.lane, t_.columns, sums, {}, true);
    const std::string e = open_each("e", t_.columns);
    writer_.line(fmt::format("if ({} >= {}) break;", sum_of_terms({times(t_.columns, vector), e}), text(width())));
    const ExprEmitter::Mark mark = results_.mark();
    results_.bind(w_.vectors.lane, e);
    for (const auto& [reduction, sum] : sums) results_.define(reduction, fmt::format("{}[{}]", sum, e));
    emit_epilogue_scalar(results_);
    results_.rewind(mark);
    close_each();
  }

  // Binds the looped axes to the `point`-th point in shared memory.
  void bind_point(ExprEmitter& emitter, const std::string& point) {
    std::string at = sum_of_terms({from_.empty() ? "0" : from_, point});
    if (at.find(' ') != std::string::npos) {
      const std::string name = writer_.unique("k");
      writer_.line(fmt::format("const int {} = {};", name, at));
      at = name;
    }
    bind_flat(emitter, w_.rolled_axes, at, "cdefgh");
  }

  // Weights in shared memory: [plane][point][tap][member].
  void stage_weights() {
    if (w_.weights.empty()) return;
    const std::string e = writer_.unique("e");
    const std::int64_t of_plane = t_.points_per_stage * w_.taps() * w_.members();
    const bool once = t_.planes == 1 && of_plane <= t_.threads();
    if (once) writer_.line(fmt::format("const int {} = threadIdx.x;", e));
    writer_.open(once ? fmt::format("if ({} < {})", e, of_plane)
                      : fmt::format("for (int {0} = threadIdx.x; {0} < {1}; {0} += {2})", e, t_.planes * of_plane,
                                    t_.threads()));
    const ExprEmitter::Mark mark = input_emitter_.mark();
    std::string rest = e;
    const auto take = [&](std::int64_t count, const std::string& preferred_name) -> std::string {
      if (count == 1) return "0";
      const std::string name = writer_.unique(preferred_name), left = writer_.unique("rest");
      writer_.line(fmt::format("const int {0} = {1} % {2}, {3} = {1} / {2};", name, rest, count, left));
      rest = left;
      return name;
    };
    if (w_.member) input_emitter_.bind(*w_.member, take(w_.members(), "m"));
    input_emitter_.bind(w_.columns.tap, take(w_.columns.taps, "v"));
    if (w_.rows) input_emitter_.bind(w_.rows->tap, take(w_.rows->taps, "u"));
    bind_point(input_emitter_, take(t_.points_per_stage, "point"));
    const std::string plane = writer_.unique("here");
    writer_.line(
        fmt::format("const {} {} = {};", integer(), plane, sum_of_terms({plane0_, t_.planes == 1 ? "0" : rest})));
    if (t_.planes > 1 && !whole(plane_count_, t_.planes))
      writer_.line(fmt::format("if ({} >= {}) break;", plane, text(plane_count_)));
    bind_flat(input_emitter_, w_.planes, plane, "nopq");
    const std::vector<std::string> values = input_emitter_.emit(w_.weights);
    for (std::size_t i = 0; i < values.size(); ++i)
      writer_.line(fmt::format("{}[{}] = {};", tiles_.at(w_.weights[i]),
                               t_.planes == 1 || w_.weights_per_plane() == of_plane
                                   ? e
                                   : sum_of_terms({e, times(w_.weights_per_plane() - of_plane, rest)}),
                               values[i]));
    input_emitter_.rewind(mark);
    writer_.close();
  }

  // Distributes threads over the vectors of a line, then lines, then planes. A thread copies all points of a plane.
  void stage_places() {
    const auto copies = static_cast<int>(std::min<std::int64_t>(w_.copies(), t_.threads()));
    const int lines = std::max(1, std::min(static_cast<int>(w_.block_height()), t_.threads() / copies));
    const int planes = std::max(1, std::min(t_.planes, t_.threads() / (copies * lines)));
    const std::string columns_here =
        places_here(w_.columns, width(), t_.block_columns(), w_.block_width(), column0_, "columns_here");
    const std::string rows_here =
        w_.rows ? places_here(*w_.rows, height(), t_.block_rows(), w_.block_height(), row0_, "rows_here") : "1";
    const std::string copy = writer_.unique("copy"), line = writer_.unique("line");
    writer_.line(fmt::format("const int {0} = threadIdx.x % {1}, {2} = threadIdx.x / {1}{3};", copy, copies, line,
                             planes == 1 ? "" : fmt::format(" % {}", lines)));
    const int more = w_.before + w_.copy_width - 1;
    const std::string end =
        w_.copy_width == 1 ? columns_here : fmt::format("({} + {}) / {}", columns_here, more, w_.copy_width);
    const std::string busy =
        planes * lines * copies == t_.threads() ? "" : fmt::format("threadIdx.x < {} && ", planes * lines * copies);
    writer_.open(fmt::format("if ({}{} < {})", busy, copy, end));
    const ExprEmitter::Mark mark = input_emitter_.mark();
    if (copies == w_.copies()) begin_copy(copy);
    std::string p = "0";
    if (t_.planes > 1) {
      p = writer_.unique("p");
      writer_.open(fmt::format("for (int {0} = {1}; {0} < {2}; {0} += {3})", p,
                               planes == 1 ? "0" : fmt::format("threadIdx.x / {}", copies * lines), t_.planes, planes));
    }
    const std::string plane = writer_.unique("here");
    writer_.line(fmt::format("const {} {} = {};", integer(), plane, sum_of_terms({plane0_, p})));
    if (t_.planes > 1 && !whole(plane_count_, t_.planes))
      writer_.line(fmt::format("if ({} >= {}) break;", plane, text(plane_count_)));
    bind_flat(input_emitter_, w_.planes, plane, "nopq");
    const std::string point = open_each("point", t_.points_per_stage, "");
    bind_point(input_emitter_, point);
    const std::string r = writer_.unique("r");
    writer_.open(fmt::format("for (int {0} = {1}; {0} < {2}; {0} += {3})", r, line, rows_here, lines));
    if (w_.rows) bind_place(*w_.rows, row0_, r);
    std::string c = copy;
    if (copies < w_.copies()) {
      c = writer_.unique("c");
      writer_.open(fmt::format("for (int {0} = {1}; {0} < {2}; {0} += {3})", c, copy, end, copies));
      begin_copy(c);
    }
    const std::string at =
        sum_of_terms({times(t_.plane, in_parentheses(sum_of_terms({times(t_.points_per_stage, p), point}))),
                      times(t_.line, r), times(w_.copy_width, c)});
    w_.copy_width == 1 ? copy_one(c, at) : copy_vector(at);
    if (copies < w_.copies()) writer_.close();
    writer_.close();
    close_each();
    if (t_.planes > 1) writer_.close();
    writer_.close();
    input_emitter_.rewind(mark);
  }

  // Emits the values that do not depend on the line, before the loop over lines.
  void begin_copy(const std::string& c) {
    first_ = c;
    if (w_.copy_width > 1) {
      first_ = writer_.unique("first");
      writer_.line(fmt::format("const int {} = {}{};", first_, times(w_.copy_width, c),
                               w_.before > 0 ? " - " + std::to_string(w_.before) : ""));
    }
    bind_place(w_.columns, column0_, first_);
    std::vector<ExprId> guards;
    for (const ExprId id : reachable(pool_, w_.staged))
      if (pool_[id].type == ScalarType::kBool && is_of_indices(pool_, id)) guards.push_back(id);
    input_emitter_.emit_independent(guards);
  }

  // The number of positions that the block's existing results need.
  std::string places_here(const StencilAxis& window, const IndexExpr& extent, std::int64_t of_block, std::int64_t most,
                          const std::string& first, const std::string& preferred_name) {
    if (whole(extent, of_block)) return std::to_string(most);
    const std::string name = writer_.unique(preferred_name);
    const IndexExpr results = simplify(extent - 1, pool_.bounds());
    const std::string further =
        times(window.stride, fmt::format("(int)({}{})", text(results), first == "0" ? "" : " - " + first));
    writer_.line(
        fmt::format("const int {} = min({}, {} + {});", name, most, further, (window.taps - 1) * window.dilation + 1));
    return name;
  }

  // Binds a result and a tap that meet at a position of the block; one of them is fixed to the first.
  void bind_place(const StencilAxis& window, const std::string& first, const std::string& place) {
    const bool results_move = window.stride == 1;
    input_emitter_.bind(window.result, !results_move  ? first
                                       : first == "0" ? place
                                                      : fmt::format("({} + {})", first, place));
    input_emitter_.bind(window.tap, results_move ? "0" : place);
  }

  void copy_one(const std::string& c, const std::string& at) {
    const ExprEmitter::Mark mark = input_emitter_.mark();
    bind_place(w_.columns, column0_, c);
    const std::vector<std::string> values = input_emitter_.emit(w_.staged);
    for (std::size_t i = 0; i < values.size(); ++i)
      writer_.line(fmt::format("{}[{}] = {};", tiles_.at(w_.staged[i]), at, values[i]));
    input_emitter_.rewind(mark);
  }

  void copy_vector(const std::string& at) {
    const ExprId staged = w_.staged[0];
    const std::string four = emit_masked_vector(
        input_emitter_, staged, w_.copy_width, w_.columns,
        [this](const std::string& e) { bind_place(w_.columns, column0_, fmt::format("({} + {})", first_, e)); });
    const std::string vector =
        (pool_[staged].type == ScalarType::kInt32 ? "int" : "float") + std::to_string(w_.copy_width);
    writer_.line(fmt::format("*({0}*)&{1}[{2}] = *(const {0}*){3};", vector, tiles_.at(staged), at, four));
  }

  const Kernel& original_;
  const NchwStencil& w_;
  const NchwStencilTiles& t_;
  const ExprPool& pool_;
  const Graph& graph_;
  const IndexExpr plane_count_;
  KernelWriter writer_;
  ExprEmitter input_emitter_, results_;  // for copies; for columns as vectors
  std::string column0_, row0_, plane0_, column_, row_, plane_, from_, first_;
  std::map<ExprId, std::string> tiles_, addresses_;
  std::vector<ExprEmitter::Accumulator> accumulators_;
  std::vector<bool> opened_;  // loops that are still open
};

}  // namespace

KernelSource emit_nchw_stencil(const Kernel& kernel, const NchwStencil& stencil, const Graph& graph) {
  return NchwStencilEmitter(kernel, stencil, graph).emit();
}

}  // namespace fusec
