#include "codegen/schedules/row_emitter.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <map>
#include <optional>

#include "analysis/row_segments.h"
#include "codegen/emit_expr.h"
#include "codegen/in_place.h"
#include "codegen/schedules/beside_tiles.h"
#include "codegen/schedules/direct.h"
#include "codegen/schedules/kept_row.h"
#include "codegen/schedules/row_registers.h"
#include "codegen/schedules/vector_access.h"
#include "ir/type.h"

namespace fusec {
namespace {

constexpr int kPartialBytes = 16;  // the largest accumulator
constexpr int kRegisters = 65536;  // of a multiprocessor
// A thread's, beside what it keeps; and where rows begin anywhere.
constexpr int kComputing = 64, kBesideRows = 16;

// The reductions, those over the same axes together.
std::vector<std::vector<ExprId>> by_axes(const RowForm& form) {
  std::vector<std::vector<ExprId>> groups;
  for (const ExprId r : form.reductions) {
    const auto same = std::find_if(groups.begin(), groups.end(), [&](const std::vector<ExprId>& group) {
      return form.kernel.pool[group[0]].axes == form.kernel.pool[r].axes;
    });
    if (same == groups.end())
      groups.push_back({r});
    else
      same->push_back(r);
  }
  return groups;
}

class RowEmitter {
 public:
  explicit RowEmitter(const RowKernel& kernel)
      : form_(kernel.form),
        graph_(kernel.graph),
        layout_(kernel.layout),
        split_(kernel.split),
        stages_(stages_of(kernel.form)),
        stage_(kernel.stage),
        outputs_(kernel.layout.chunks == 1 || kernel.stage > *std::ranges::max_element(stages_)),
        writer_(kernel.graph, kernel.wide),
        emitter_(kernel.form.kernel, writer_),
        kept_(form_, writer_, emitter_) {
    if (layout_.chunks > 1) return;
    RowRegisters plan = plan_row_registers(form_, graph_, loops(), layout_.parts, layout_.threads);
    keeps_rows_ = !plan.slots.empty();
    kept_words_ = plan.words;
    kept_.keep(std::move(plan));
    plan_tiles(kernel.shared_bytes);
  }

  KernelSource emit(const Kernel& original) {
    const ExprPool& pool = form_.kernel.pool;
    const IndexExpr rows = point_count(pool, form_.rows);
    open_rows(rows);
    emitter_.reduce_hook = [this](const std::vector<ExprId>& reductions) { return reduce(reductions); };
    if (outputs_) {
      emitter_.emit_independent(roots_of(form_.kernel));
      if (const Outputs of_row = outputs_of(true); !of_row.empty()) store_row(of_row);
      if (const Outputs of_columns = outputs_of(false); !of_columns.empty()) store_columns(of_columns);
    } else {
      for (const std::vector<ExprId>& together : by_axes(form_)) leave_partials(together);
    }
    KernelSource source =
        writer_.finish(kernel_comment(graph_, original), layout_.threads, blocks_at_once(), layout_.cluster);
    if (tiles_) source.dynamic_shared = tiles_->shared_bytes();
    source.grid[0] =
        simplify(ceil_div(rows, layout_.rows) * (layout_.cluster * (chunked() ? layout_.chunks : 1)), pool.bounds());
    source.name = kernel_name(graph_, original.nodes);
    source.schedule = layout_.team == RowTeam::kColumn ? "column_reduction" : "row_reduction";
    source.keeps_rows = keeps_rows_;
    // Threads that only work along read a row of others', which those may store before; where that is no place of
    // something else, or all meet in between, it does not matter. The last kernel of several reduces nothing but what
    // the others have left: there each element is read by who stores it.
    const bool meet = layout_.team != RowTeam::kWarp && layout_.parts > 1;
    source.owns_rows = outputs_ && (active_.empty() || meet || !looks_up(form_.kernel));
    source.any_start = split_.start.has_value();
    for (KernelParameter& p : source.parameters) p.address_only = p.address_only || (p.written && !outputs_);
    return source;
  }

 private:
  using Outputs = std::vector<const KernelOutput*>;

  // Blocks that share a multiprocessor have their tiles at once. Where registers are short, ptxas would spill some.
  void plan_tiles(std::int64_t shared_bytes) {
    constexpr std::int64_t kBeside = 4096;  // what blocks reduce through
    if (!form_.segments.empty() || kRegisters / layout_.threads < kept_words_ + kComputing + kBesideRows) return;
    const bool alone = layout_.cluster > 1 || layout_.threads >= 512;
    const std::vector<RowLoop> all = loops();
    int turns = layout_.parts * 64;
    for (const RowLoop& loop : all)
      if (loop.width > 1) turns = std::min(turns, kept_.turns_of(loop.axes));
    tiles_.emplace(BesideTiles::Row{.form = form_,
                                    .graph = graph_,
                                    .layout = layout_,
                                    .split = split_,
                                    .turns = turns,
                                    .most_bytes = alone ? shared_bytes - kBeside : shared_bytes * 5 / 8},
                   all, emitter_);
  }

  bool has_tiles() const { return tiles_ && !tiles_->empty(); }

  // Left alone, ptxas spills registers of what shares a row, or keeps it, for more blocks on a multiprocessor than
  // these.
  int blocks_at_once() const {
    constexpr int kRegistersOfQuarter = kRegisters / 4, kWide = 16, kFewest = 64;
    if (layout_.chunks > 1 || (!keeps_rows_ && layout_.team == RowTeam::kBlock)) return 1024 / layout_.threads;
    if (!keeps_rows_) return 0;
    const int computing = kComputing + (split_.start ? kBesideRows : 0) + (has_tiles() ? kept_words_ / 2 : 0) +
                          (writer_.wide() ? kWide : 0);
    const int of_thread = std::max(kFewest, (kept_words_ + computing + 7) / 8 * 8);
    const int warps = 4 * (kRegistersOfQuarter / (32 * of_thread));  // whole ones for each quarter of a multiprocessor
    return std::max(1, 32 * warps / layout_.threads);
  }

  // Does a block take one chunk of its row? Not where what is left to do is to combine the partial results.
  bool chunked() const { return layout_.chunks > 1 && (!outputs_ || !outputs_of(false).empty()); }

  int stage_of(ExprId reduction) const {
    const auto at = std::ranges::find(form_.reductions, reduction);
    return stages_[static_cast<std::size_t>(at - form_.reductions.begin())];
  }

  // Those with an element a row, or those with one a column.
  Outputs outputs_of(bool row) const {
    Outputs outputs;
    for (const KernelOutput& output : form_.kernel.outputs)
      if ((columns_without(form_, output).size() == columns_with_extent()) == row) outputs.push_back(&output);
    return outputs;
  }

  // The loops in the order in which they run: reductions by how many others they wait for, then the columns.
  std::vector<RowLoop> loops() const {
    const ExprPool& pool = form_.kernel.pool;
    std::map<std::pair<int, std::vector<std::uint32_t>>, std::vector<ExprId>> bodies;
    for (const ExprId r : form_.reductions) bodies[{stage_of(r), pool[r].axes}].push_back(pool[r].args[0]);
    std::vector<RowLoop> result;
    for (const auto& [key, roots] : bodies) result.push_back(loop_over(key.second, roots));
    if (const Outputs columns = outputs_of(false); !columns.empty())
      result.push_back(loop_over(form_.columns, roots_of_outputs(columns)));
    return result;
  }

  RowLoop loop_over(const std::vector<std::uint32_t>& axes, std::vector<ExprId> roots) const {
    int width = axes == split_.reduction ? split_.reduction_width : 1;
    if (axes == form_.columns) width = split_.column_width;
    RowLoop loop{.axes = axes, .width = width, .roots = std::move(roots)};
    if (width > 1 && split_.start)
      loop.vectors = simplify(floor_div(*split_.length, width), form_.kernel.pool.bounds());
    return loop;
  }

  void open_rows(const IndexExpr& rows) {
    const std::string type = writer_.index_type();
    std::string block = writer_.wide() ? "(long long)blockIdx.x" : "blockIdx.x";
    if (const int of_row = layout_.cluster * (chunked() ? layout_.chunks : 1); of_row > 1) {
      chunk_ = writer_.unique(layout_.cluster > 1 ? "rank" : "chunk");
      writer_.line(fmt::format("const int {} = blockIdx.x % {};  // of its row's blocks", chunk_, of_row));
      block += fmt::format(" / {}", of_row);
    }
    part_ = writer_.unique(layout_.team == RowTeam::kColumn ? "part" : "lane");
    std::string row = "0";
    switch (layout_.team) {
      case RowTeam::kWarp:
        writer_.line(fmt::format("const int {} = threadIdx.x % {};", part_, layout_.parts));
        row = fmt::format("{} * {} + threadIdx.x / {}", block, layout_.rows, layout_.parts);
        if (proves_multiple_of(rows, 32 / layout_.parts, form_.kernel.pool.bounds())) {
          const std::string mine = writer_.unique("row");
          writer_.line(fmt::format("const {} {} = {};", type, mine, row));
          if (!proves_multiple_of(rows, layout_.rows, form_.kernel.pool.bounds()))
            writer_.line(fmt::format("if ({} >= {}) return;", mine, emitter_.index_text().tight(rows)));
          row = mine;
        } else {
          row = row_that_is_there(row, rows);
        }
        break;
      case RowTeam::kBlock:
        writer_.line(layout_.cluster > 1
                         ? fmt::format("const int {} = {} * {} + threadIdx.x;", part_, chunk_, layout_.threads)
                         : fmt::format("const int {} = threadIdx.x;", part_));
        if (layout_.cluster > 1) {
          writer_.use("cluster_reduce");
          writer_.line("cluster_arrive();");
        }
        if (form_.rows.empty()) break;
        row = writer_.unique("row");
        writer_.line(fmt::format("const {} {} = {};", type, row, block));
        break;
      case RowTeam::kColumn: {
        writer_.line(fmt::format("const int {} = threadIdx.x / {};", part_, kColumnRows));
        row = row_that_is_there(fmt::format("{} * {} + threadIdx.x % {}", block, kColumnRows, kColumnRows), rows);
        break;
      }
    }
    row_ = row;
    bind_flat(emitter_, form_.rows, row);
    if (split_.start) find_vectors();
    if (tiles_)
      tiles_->begin(
          {.first = first_, .last = last_, .thread = layout_.cluster > 1 ? "threadIdx.x" : part_, .block = chunk_});
  }

  // Threads whose row would be past the end take the last one and store nothing: others of their warp need them.
  std::string row_that_is_there(const std::string& text, const IndexExpr& rows) {
    const std::string type = writer_.index_type(), wanted = writer_.unique("wanted_row");
    const std::string limit = emitter_.index_text().tight(rows);
    active_ = writer_.unique("active");
    writer_.line(fmt::format("const {} {} = {};", type, wanted, text));
    writer_.line(
        fmt::format("const bool {} = {} < {};  // the others work along, and store nothing", active_, wanted, limit));
    const std::string row = writer_.unique("row");
    writer_.line(fmt::format("const {} {} = {} ? {} : {} - 1;", type, row, active_, wanted, limit));
    return row;
  }

  // Where memory's vectors lie in this row, which begins anywhere: those that are the row's alone, and what is left at
  // its ends, an element to each of the first threads.
  void find_vectors() {
    const std::string type = writer_.index_type();
    const int width = split_.reduction_width;
    const IndexExpr& length = *split_.length;
    const Bounds& bounds = form_.kernel.pool.bounds();
    const IndexExpr end = simplify(*split_.start + length, bounds);
    const std::string stop = writer_.unique("stop");
    last_ = writer_.unique("last");
    edge_ = writer_.unique("edge");
    if (proves_multiple_of(*split_.start, width, bounds)) {  // what is left stands behind them
      first_ = emitter_.index_text().tight(simplify(floor_div(*split_.start, width), bounds));
      writer_.line(fmt::format("const {} {} = {}, {} = {};  // whole vectors before it", type, stop,
                               emitter_.index(end), last_, emitter_.index(simplify(floor_div(end, width), bounds))));
      writer_.line(fmt::format("const {} {} = {} * {} + {};", type, edge_, last_, width, part_));
    } else {
      const std::string start = writer_.unique("start"), head = writer_.unique("head");
      first_ = writer_.unique("first");
      writer_.line(fmt::format("const {} {} = {}, {} = {};", type, start, emitter_.index(*split_.start), stop,
                               emitter_.index(end)));
      writer_.line(fmt::format("const {0} {1} = ({2} + {3}) >> {4}, {5} = {6} >> {4};  // whole vectors", type, first_,
                               start, width - 1, std::countr_zero(static_cast<unsigned>(width)), last_, stop));
      const bool one_at_least = range_of(length, bounds).min >= 2 * width;
      const std::string before = fmt::format("{} * {}", first_, width);
      const std::string behind = one_at_least ? last_ : fmt::format("max({}, {})", first_, last_);
      writer_.line(fmt::format("const {} {} = {} - {};  // elements before them", type, head,
                               one_at_least ? before : fmt::format("min({}, {})", before, stop), start));
      writer_.line(fmt::format("const {0} {1} = {2} < {3} ? {4} + {2} : {5} * {6} + ({2} - {3});", type, edge_, part_,
                               head, start, behind, width));
    }
    edge_condition_ = fmt::format("{} < {}", edge_, stop);
    if (chunked()) edge_condition_ = fmt::format("{} == 0 && {}", chunk_, edge_condition_);
  }

  // What one of the loops over a row does: `element` prints it for one element, with `lane` the number of that element
  // in its vector, "" where it is none; `before` and `after` stand around the elements of a vector.
  struct Visit {
    std::function<void(const std::string& lane)> element;
    std::function<void()> before = [] {};
    std::function<void()> after = [] {};
  };

  void over_row(const RowLoop& loop, std::string_view wish, const Visit& visit) {
    if (tiles_ && loop.width > 1) tiles_->wait_for(loop.roots);
    const ExprEmitter::Mark outside = emitter_.mark();
    std::vector<std::uint32_t> axes = loop.axes;
    if (loop.width > 1) axes.pop_back();
    open_loop(axes, loop.axes, wish);
    if (loop.width > 1) {
      vector_turn(loop, visit);
    } else {
      kept_.read_elements(loop.roots);
      kept_.define_values(loop.roots, kept_.turn());
      visit.element("");
      emitter_.load_text = nullptr;
    }
    emitter_.rewind(outside);
    close_loop();
    if (loop.width > 1 && split_.start) edge_turn(loop, visit);
    kept_.loop_is_done(loop);
  }

  void vector_turn(const RowLoop& loop, const Visit& visit) {
    const std::uint32_t lane_axis = loop.axes.back();
    VectorLoads loads(emitter_, graph_, lane_axis, loop.width);
    loads.beside = split_.start.has_value();
    loads.steps = true;
    const std::string e = writer_.unique("e");
    if (tiles_) loads.elsewhere = [this](ExprId id) { return tiles_->has(id); };
    loads.declare(kept_.loads_of(loop.roots), e, [this](ExprId id, const auto& fill) {
      return tiles_ && tiles_->has(id) ? tiles_->words_of(id, kept_.turn(), vector_) : kept_.words_of(id, fill);
    });
    visit.before();
    emitter_.emit_independent(loop.roots);
    reduce_segments(loop, e);
    writer_.line("#pragma unroll");
    writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", e, loop.width));
    const ExprEmitter::Mark lanes = emitter_.mark();
    emitter_.bind(lane_axis, e);
    kept_.define_values(loop.roots, fmt::format("{} * {} + {}", kept_.turn(), loop.width, e));
    visit.element(e);
    emitter_.rewind(lanes);
    writer_.close();
    visit.after();
    emitter_.load_text = nullptr;
  }

  // The reductions of the segment in which this turn's vector is, of which neighbouring lanes have the others.
  void reduce_segments(const RowLoop& loop, const std::string& e) {
    if (loop.axes != form_.columns) return;
    for (const ExprId segment : form_.segments) {
      const ExprEmitter::Accumulator a = declared(segment);
      writer_.line("#pragma unroll");
      writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", e, loop.width));
      const ExprEmitter::Mark lanes = emitter_.mark();
      emitter_.bind(loop.axes.back(), e);
      kept_.define_values({form_.kernel.pool[segment].args[0]},
                          fmt::format("{} * {} + {}", kept_.turn(), loop.width, e));
      emitter_.accumulate({a});
      emitter_.rewind(lanes);
      writer_.close();
      if (const std::int64_t lanes_of_segment = form_.segment / loop.width; lanes_of_segment > 1) {
        writer_.use("combine");
        writer_.use("segment_reduce");
        writer_.line(fmt::format("{0} = segment_reduce<{1}>({0}, {2});", a.name, lanes_of_segment, a.combine));
      }
      emitter_.define(segment, emitter_.result(a));
    }
  }

  // What a row has an element of for each segment: the first lane of a segment stores it.
  void store_segments(const Outputs& outputs) {
    if (outputs.empty()) return;
    const std::uint32_t vector = form_.columns[0], lane = form_.columns[1];
    const ExprEmitter::Mark outside = emitter_.mark();
    emitter_.bind(lane, "0");
    const std::vector<std::string> values = emitter_.emit(roots_of_outputs(outputs));
    const std::int64_t vectors = form_.segment / split_.column_width;
    if (vectors > 1) writer_.open(fmt::format("if ({} % {} == 0)", emitter_.index(IndexExpr::axis(vector)), vectors));
    for (std::size_t i = 0; i < outputs.size(); ++i) store_scalar(*outputs[i], values[i]);
    if (vectors > 1) writer_.close();
    emitter_.rewind(outside);
  }

  // Rows that begin anywhere: the elements before the first whole vector and behind the last one, one to a thread.
  void edge_turn(const RowLoop& loop, const Visit& visit) {
    const ExprEmitter::Mark outside = emitter_.mark();
    const bool keeps = kept_.turns_of(loop.axes) > 0;
    if (keeps) kept_.declare_edges(loop.roots);
    writer_.open(fmt::format("if ({})", edge_condition_));
    const std::uint32_t vector_axis = loop.axes[loop.axes.size() - 2], lane_axis = loop.axes.back();
    if (split_.exact_ends) {
      const std::string vector = writer_.unique("edge_vector"), lane = writer_.unique("edge_lane");
      writer_.line(fmt::format("const {0} {1} = {2} / {3}, {4} = {2} % {3};", writer_.index_type(), vector, edge_,
                               loop.width, lane));
      emitter_.bind(vector_axis, vector);
      emitter_.bind(lane_axis, lane);
    } else {
      emitter_.bind(vector_axis, "0");
      emitter_.bind(lane_axis, edge_);
    }
    if (keeps) kept_.enter_edge();
    kept_.read_elements(loop.roots);
    kept_.define_values(loop.roots, "");
    visit.element("");
    emitter_.load_text = nullptr;
    kept_.leave();
    writer_.close();
    emitter_.rewind(outside);
  }

  // `for (k = lane; k < count; k += team)`: the axes are bound, the loop stays open. `all_axes` have the lanes of a
  // vector, too. Where the loop keeps something in registers, its turns are counted and unrolled.
  void open_loop(const std::vector<std::uint32_t>& axes, const std::vector<std::uint32_t>& all_axes,
                 std::string_view wish) {
    const bool floats = split_.start && axes.size() < all_axes.size();  // from vector to vector of memory
    const IndexExpr count = point_count(form_.kernel.pool, axes);
    const std::string k = writer_.unique(wish), limit = floats ? last_ : emitter_.index_text().tight(count);
    condition_open_ = false;
    if (const int turns = kept_.turns_of(all_axes); turns > 0) {
      kept_.declare_arrays(all_axes);
      const std::string turn = writer_.unique("turn");
      kept_.enter(turn);
      writer_.line("#pragma unroll");
      writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", turn, turns));
      writer_.line(fmt::format("const {} {} = {}{} + {} * {};", writer_.index_type(), k,
                               floats && first_ != "0" ? first_ + " + " : "", part_, turn, layout_.parts));
      const std::int64_t whole = turns_without_end(count, floats);
      condition_open_ = whole < turns;
      if (condition_open_)
        writer_.open(whole > 0 ? fmt::format("if ({} < {} || {} < {})", turn, whole, k, limit)
                               : fmt::format("if ({} < {})", k, limit));
    } else {
      std::string first = chunked() ? fmt::format("{} * {} + {}", chunk_, layout_.parts, part_) : part_;
      if (floats && first_ != "0") first = first_ + " + " + first;
      // Several loads on the way at once, where there are so many turns.
      const std::int64_t stride = std::int64_t{layout_.parts} * (chunked() ? layout_.chunks : 1);
      if (value_at_hint(count, form_.kernel.pool.bounds().symbols) >= 8 * stride) writer_.line("#pragma unroll 4");
      writer_.open(fmt::format("for ({0} {1} = {2}; {1} < {3}; {1} += {4})", writer_.index_type(), k, first, limit,
                               layout_.parts * (chunked() ? layout_.chunks : 1)));
    }
    vector_ = k;
    bind_flat(emitter_, axes, k, "cdefghuvw");
  }

  // So many turns of a loop find something to do for every thread.
  std::int64_t turns_without_end(const IndexExpr& count, bool floats) const {
    const Bounds& bounds = form_.kernel.pool.bounds();
    const int width = split_.reduction_width;
    const std::int64_t least =
        floats ? (range_of(*split_.length, bounds).min - (width - 1)) / width : range_of(count, bounds).min;
    return std::max<std::int64_t>(least, 0) / layout_.parts;
  }

  void close_loop() {
    if (condition_open_) writer_.close();
    condition_open_ = false;
    writer_.close();
    kept_.leave();
  }

  std::string team_reduce(const ExprEmitter::Accumulator& a) {
    writer_.use("combine");
    if (a.extreme) writer_.use("extreme_lanes");
    switch (layout_.team) {
      case RowTeam::kWarp:
        writer_.use("warp_reduce");
        return fmt::format("warp_reduce{}({}, {})", layout_.parts < 32 ? fmt::format("<{}>", layout_.parts) : "",
                           a.name, a.combine);
      case RowTeam::kBlock:
        writer_.use("block_reduce");
        if (layout_.cluster > 1)
          return fmt::format("cluster_reduce<{}, {}, {}>({}, {}, {})", layout_.threads, layout_.cluster,
                             block_reductions_++, a.name, a.combine, chunk_);
        return fmt::format("block_reduce<{}, {}>({}, {})", layout_.threads, block_reductions_++, a.name, a.combine);
      case RowTeam::kColumn:
        writer_.use("column_reduce");
        return fmt::format("column_reduce<{}, {}>({}, {})", kColumnRows, layout_.parts, a.name, a.combine);
    }
    return {};
  }

  bool reduce(const std::vector<ExprId>& reductions) {
    if (std::ranges::find(form_.reductions, reductions[0]) == form_.reductions.end()) return false;
    if (layout_.chunks > 1) {
      for (const ExprId r : reductions) combine_partials(declared(r));
      return true;
    }
    for (const ExprEmitter::Accumulator& a : reduced(reductions)) emitter_.define(a.reduction, emitter_.result(a));
    return true;
  }

  ExprEmitter::Accumulator declared(ExprId reduction) {
    ExprEmitter::Accumulator a = emitter_.accumulator(reduction);
    writer_.line(fmt::format("{} {}{}{};", a.type, a.name, a.extreme ? "" : " = ", a.identity));
    return a;
  }

  // The loop over the row, or over this block's chunk of it; all threads have the results.
  std::vector<ExprEmitter::Accumulator> reduced(const std::vector<ExprId>& reductions) {
    std::vector<ExprEmitter::Accumulator> accumulators;
    std::vector<ExprId> bodies;
    for (const ExprId r : reductions) {
      accumulators.push_back(declared(r));
      bodies.push_back(form_.kernel.pool[r].args[0]);
    }
    over_row(loop_over(form_.kernel.pool[reductions[0]].axes, bodies), "k",
             {.element = [&](const std::string&) { emitter_.accumulate(accumulators); }});
    for (const ExprEmitter::Accumulator& a : accumulators)
      if (layout_.parts > 1) writer_.line(fmt::format("{} = {};", a.name, team_reduce(a)));
    return accumulators;
  }

  // This stage's reductions over a chunk of the row.
  void leave_partials(const std::vector<ExprId>& same_axes) {
    std::vector<ExprId> now, bodies;
    for (const ExprId r : same_axes)
      if (stage_of(r) == stage_) now.push_back(r);
    if (now.empty()) return;
    for (const ExprId r : now) bodies.push_back(form_.kernel.pool[r].args[0]);
    emitter_.emit_independent(bodies);  // what earlier stages have left is combined
    const std::vector<ExprEmitter::Accumulator> accumulators = reduced(now);
    writer_.open(active_.empty() ? fmt::format("if ({} == 0)", part_)
                                 : fmt::format("if ({} == 0 && {})", part_, active_));
    for (const ExprEmitter::Accumulator& a : accumulators)
      writer_.line(fmt::format("{}[{}] = {};", partials(a), partial_place(chunk_), a.name));
    writer_.close();
  }

  // Scratch memory with a partial result of this reduction for each chunk of each row.
  std::string partials(const ExprEmitter::Accumulator& a) {
    const auto number = std::ranges::find(form_.reductions, a.reduction) - form_.reductions.begin();
    return writer_.workspace(point_count(form_.kernel.pool, form_.rows) * (kPartialBytes * layout_.chunks),
                             static_cast<std::uint32_t>(number), a.type + " partial");
  }

  // Neighbouring threads read neighbouring chunks, or rows.
  std::string partial_place(const std::string& chunk) const {
    if (row_ == "0") return chunk;
    if (layout_.team != RowTeam::kColumn) return fmt::format("{} * {} + {}", row_, layout_.chunks, chunk);
    const IndexExpr rows = point_count(form_.kernel.pool, form_.rows);
    return fmt::format("{} * {} + {}", chunk, emitter_.index_text().tight(rows), row_);
  }

  void combine_partials(const ExprEmitter::Accumulator& a) {
    const std::string pointer = partials(a), i = writer_.unique("i");
    writer_.use("combine");
    writer_.open(fmt::format("for (int {0} = {1}; {0} < {2}; {0} += {3})", i, part_, layout_.chunks, layout_.parts));
    writer_.line(fmt::format("{0} = {1}({0}, {2}[{3}]);", a.name, a.combine, pointer, partial_place(i)));
    writer_.close();
    if (layout_.parts > 1) writer_.line(fmt::format("{} = {};", a.name, team_reduce(a)));
    emitter_.define(a.reduction, emitter_.result(a));
  }

  static std::vector<ExprId> roots_of_outputs(const Outputs& outputs) {
    std::vector<ExprId> roots;
    for (const KernelOutput* output : outputs) roots.push_back(output->expr);
    return roots;
  }

  std::size_t columns_with_extent() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(form_.columns, [&](std::uint32_t a) { return !form_.kernel.pool.extent(a).is(1); }));
  }

  // Outputs with an element a row.
  void store_row(const Outputs& outputs) {
    const std::vector<std::string> values = emitter_.emit(roots_of_outputs(outputs));
    std::string mine = part_ + " == 0";
    if (chunked()) mine += " && " + chunk_ + " == 0";
    if (!active_.empty()) mine += " && " + active_;
    writer_.open("if (" + mine + ")");
    for (std::size_t i = 0; i < outputs.size(); ++i) store_scalar(*outputs[i], values[i]);
    writer_.close();
  }

  void store_scalar(const KernelOutput& output, const std::string& value) {
    const IndexExpr at = simplify(flat_index(output.type.shape, output.index), form_.kernel.pool.bounds());
    writer_.line(store_text(writer_, output, emitter_.index(at), value));
  }

  // In the loop over columns: an output that lacks some of them is stored where these are 0.
  void store_where_it_runs(const KernelOutput& output, const std::string& value) {
    std::string condition;
    for (const std::uint32_t a : columns_without(form_, output))
      condition += fmt::format("{}{} == 0", condition.empty() ? "" : " && ", emitter_.index(IndexExpr::axis(a)));
    if (!condition.empty()) writer_.open(fmt::format("if ({})", condition));
    store_scalar(output, value);
    if (!condition.empty()) writer_.close();
  }

  void store_columns(const Outputs& outputs) {
    Outputs of_columns, of_segments;
    for (const KernelOutput* output : outputs)
      (is_of_segments(form_, *output) ? of_segments : of_columns).push_back(output);
    const std::vector<ExprId> roots = roots_of_outputs(of_columns);
    if (!active_.empty()) writer_.open(fmt::format("if ({})", active_));
    std::vector<VectorStore> stores;
    Visit visit;
    visit.before = [&] {
      for (const KernelOutput* output : of_columns)
        stores.push_back(VectorStore::plan(emitter_, *output, form_.columns.back(), split_.column_width));
    };
    visit.element = [&](const std::string& lane) {
      const std::vector<std::string> values = emitter_.emit(roots);
      for (std::size_t i = 0; i < of_columns.size(); ++i) {
        if (lane.empty())
          store_where_it_runs(*of_columns[i], values[i]);
        else
          stores[i].put(emitter_, lane, values[i]);
      }
    };
    visit.after = [&] {
      for (VectorStore& store : stores) store.finish(emitter_);
      store_segments(of_segments);
    };
    over_row(loop_over(form_.columns, roots_of_outputs(outputs)), "j", visit);
    if (!active_.empty()) writer_.close();
  }

  const RowForm& form_;
  const Graph& graph_;
  const RowLayout layout_;
  const RowSplit split_;
  const std::vector<int> stages_;  // of form_.reductions
  const int stage_;
  const bool outputs_;  // this kernel's are the form's
  KernelWriter writer_;
  ExprEmitter emitter_;
  std::string part_, row_;
  std::string chunk_;   // which block of its row's this is
  std::string active_;  // column teams: is the row a real one
  KeptRow kept_;
  std::optional<BesideTiles> tiles_;
  bool keeps_rows_ = false;
  int kept_words_ = 0;
  int block_reductions_ = 0;
  std::string first_, last_;           // rows that begin anywhere: where the row's whole vectors begin and end
  std::string vector_;                 // the one that a loop is at
  std::string edge_, edge_condition_;  // and this thread's element of the others, where it has one
  bool condition_open_ = false;        // inside a loop whose turns are counted and whose last may be past the end
};

}  // namespace

KernelSource emit_rows(const RowKernel& kernel, const Kernel& original) {
  return RowEmitter(kernel).emit(original);
}

}  // namespace fusec
