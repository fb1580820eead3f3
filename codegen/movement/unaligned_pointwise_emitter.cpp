#include "codegen/movement/unaligned_pointwise_emitter.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "analysis/kernel/loads.h"
#include "codegen/access/direct.h"
#include "codegen/access/vector_access.h"
#include "ir/type.h"

namespace fusec {
namespace {

class UnalignedPointwiseEmitter {
 public:
  UnalignedPointwiseEmitter(const Kernel& merged, const Graph& graph, const Target& target, UnalignedPlan plan)
      : merged_(merged),
        graph_(graph),
        target_(target),
        plan_(std::move(plan)),
        kernel_(plan_.kernel),
        tail_(!plan_.total.is(0) && !proves_multiple_of(plan_.total, plan_.width, kernel_.pool.bounds())),
        threads_(threads_for()),
        writer_(graph, needs_wide()),
        emitter_(kernel_, writer_),
        single_(merged, writer_) {
    for (const UnalignedPlan::Read& read : plan_.reads)
      if (read.window.together && vectors_of(read.window) % 2 == 0)
        group_stride_ = std::max(group_stride_, vectors_of(read.window));
    for (const int vectors : plan_.together)
      if (vectors % 2 == 0) group_stride_ = std::max(group_stride_, vectors);
  }

  KernelSource emit() {
    find_group();
    if (plan_.crosses_rows)
      read_two_rows();
    else
      read_one_row();
    const ExprEmitter::Mark mark = emitter_.mark();
    if (plan_.plane) {
      emit_planes();
    } else {
      writer_.open_if(wanted_);
      emit_lanes(stores_of("true"), 0);
    }
    emitter_.rewind(mark);
    if (tail_) {
      writer_.open_else();
      writer_.open_if(in_range_);
      emit_tail();
      writer_.end();
    }
    if (!plan_.plane) writer_.end();
    writer_.tidy();
    // One block at a time is enough: for more of them ptxas would spill a few registers.
    KernelSource source = writer_.finish({}, threads_, 1);
    source.work = "A thread makes " + std::to_string(plan_.width * plan_.planes) +
                  " neighbouring elements; a warp reads whole vectors and shuffles elements into place.";
    source.grid[0] = simplify(ceil_div(plan_.groups, threads_), kernel_.pool.bounds());
    source.unaligned_vectors = tail_ || plan_.crosses_rows;
    return source;
  }

 private:
  int threads_for() const {
    const std::int64_t groups = value_at_hint(plan_.groups, graph_.symbols);
    return groups < std::int64_t{target_.multiprocessors} * kPointwiseThreads ? 128 : kPointwiseThreads;
  }
  bool needs_wide() const {
    const IndexExpr points = plan_.groups * plan_.width + 4096;
    return needs_wide_index(merged_, graph_, points) || needs_wide_index(kernel_, graph_, points);
  }

  CExpr declared(std::string_view preferred_name, const CExpr& value) {
    return writer_.declared("const " + writer_.index_type(), preferred_name, value);
  }
  CExpr declared_bool(std::string_view preferred_name, const CExpr& value) {
    return writer_.declared("const bool", preferred_name, value);
  }
  std::string open_lanes() {
    std::string e = writer_.unique("e");
    writer_.open_for("int", e, plan_.width, 0);
    return e;
  }
  CExpr text(const IndexExpr& e) const { return emitter_.index_text().tight(e); }

  // This thread's group: one that there is, so that whatever does not depend on lanes may be read for it. `wanted_`:
  // that all its lanes are there; threads of a warp stay together all the same.
  void find_group() {
    group_ = declared("t", flat_thread(writer_, threads_));
    if (group_stride_ > 1) {  // the groups of neighbouring threads' windows lie apart, those of a load together
      const CExpr t = group_;
      group_ = declared("group", t - t % 32 + t % group_stride_ * (32 / group_stride_) + t % 32 / group_stride_);
    }
    if (!proves_multiple_of(plan_.groups, threads_, kernel_.pool.bounds())) {
      in_range_ = declared_bool("here", group_ < text(plan_.groups));
      group_ = declared("group", select(in_range_, group_, text(plan_.groups - 1)));
      wanted_ = in_range_;
    }
    if (tail_) wanted_ = declared_bool("all", in_range_ && group_ * plan_.width + plan_.width <= text(plan_.total));
  }

  void read_one_row() {
    std::vector<std::uint32_t> axes = plan_.outer;
    axes.push_back(plan_.group);
    bind_flat(emitter_, axes, group_.text());
    emit_looked_up();
    for (int plane = 0; plane < plan_.planes; ++plane) {
      const ExprEmitter::Mark mark = emitter_.mark();
      if (plan_.plane) {
        emitter_.bind(*plan_.plane, std::to_string(plane));
        emit_looked_up();
      }
      for (const UnalignedPlan::Read& read : plan_.reads) {
        const ExprId load = read.window.load;
        auto& words = words_of_planes_[{plane, load}];
        words = plane > 0 && !differs_by_plane(read) ? words_of_planes_.at({0, load}) : read_window(read);
      }
      emitter_.rewind(mark);
      read_.clear();
      select_plane(0);
    }
  }

  bool differs_by_plane(const UnalignedPlan::Read& read) const {
    return !read.all_planes && emitter_.depends_on(read.window.load, *plan_.plane);
  }

  void select_plane(int plane) {
    for (const auto& [key, name] : words_of_planes_)
      if (key.first == plane) words_[key.second] = {name, std::nullopt};
  }

  // All planes one after the other, by all threads of a warp; only stores ask whether this one's points are there.
  void emit_planes() {
    std::vector<std::optional<VectorStore>> together;
    for (std::size_t i = 0; i < kernel_.outputs.size(); ++i) {
      const KernelOutput& output = kernel_.outputs[i];
      together.emplace_back();
      if (plan_.together[i] == 0) continue;
      writer_.use("windows");
      together.back() = VectorStore::elsewhere(emitter_, output, plan_.width * plan_.planes,
                                               "store_coalesced<" + std::to_string(plan_.together[i]) + ">",
                                               {writer_.output(output.value), cast("int", vector_number(i)), wanted_});
    }
    for (int plane = 0; plane < plan_.planes; ++plane) {
      const ExprEmitter::Mark mark = emitter_.mark();
      emitter_.bind(*plan_.plane, std::to_string(plane));
      select_plane(plane);
      std::vector<std::optional<VectorStore>> stores = stores_of(wanted_);
      for (std::size_t i = 0; i < stores.size(); ++i)
        if (together[i]) stores[i] = together[i];
      emit_lanes(std::move(stores), plane);
      emitter_.rewind(mark);
    }
    for (std::optional<VectorStore>& store : together)
      if (store) store->finish(emitter_);
  }

  void read_two_rows() {
    const CExpr first = declared("first", group_ * plan_.width), length = text(plan_.row_length);
    const CExpr row = declared("row", first / length), column = declared("column", first % length);
    left_in_row_ = declared("left", length - column);
    if (std::ranges::any_of(plan_.reads, &UnalignedPlan::Read::next_row))
      some_cross_rows_ = declared_bool("some_cross", call("__any_sync", {"~0u", left_in_row_ < plan_.width}));
    const CExpr next = declared("next", select(row + 1 < text(point_count(kernel_.pool, plan_.outer)), row + 1, row));
    emitter_.bind(plan_.group, group_.text());
    emitter_.emit_independent(roots_of(kernel_));
    const std::vector<ExprId> of_rows = values_of_rows();
    const ExprEmitter::Mark mark = emitter_.mark();
    for (const bool later : {false, true}) {
      bind_flat(emitter_, plan_.outer, (later ? next : row).text());
      const CExpr at = later ? declared("column", column - length) : column;
      emitter_.bind(plan_.column, at.text());
      columns_.push_back(at);
      rows_.emplace_back();
      for (const std::uint32_t axis : plan_.outer) rows_.back().push_back(emitter_.index(IndexExpr::axis(axis)));
      const std::vector<std::string> texts = emitter_.emit(of_rows);
      for (std::size_t i = 0; i < of_rows.size(); ++i)
        of_rows_[of_rows[i]].push_back(writer_.declared("const " + c_type(kernel_.pool[of_rows[i]].type),
                                                        emitter_.plain_name(of_rows[i]) + "_r", texts[i]));
      for (const ExprId id : of_rows) emitter_.define(id, of_rows_[id].back().text());
      for (const UnalignedPlan::Read& read : plan_.reads) read_of_row(read, later);
      emitter_.rewind(mark);
      read_.clear();
    }
  }

  // Lanes of both rows take from one window where that goes on from row to row; their guards then have a say each.
  void read_of_row(const UnalignedPlan::Read& read, bool later) {
    auto& [first, second] = words_[read.window.load];
    const ExprId guard = kernel_.pool[read.window.load].args[0];
    if (read.next_row) {
      const CExpr words = read_window(read, later);
      if (!later) first = words;
      if (later) second = words, join(read.window);
    } else if (guard == kNoExpr) {
      if (!later) first = read_window(read);
    } else {
      const std::string name = writer_.preferred_name(kernel_.pool[read.window.load].source);
      auto& [of_row, of_both] = guards_[guard];
      if (!later) {
        if (!of_row) of_row = lanes_wanted(guard, name);
        return;
      }
      if (!of_both) of_both = *of_row || (left_in_row_ < plan_.width && lanes_wanted(guard, name));
      first = read_window(read, false, of_both);
    }
  }

  // Lanes that take one element after the other take those of both rows from the same words.
  void join(const UnalignedLoad& window) {
    auto& [first, second] = words_[window.load];
    if (window.element != IndexExpr::axis(plan_.lane)) return;
    const auto [known, fresh] = joined_.try_emplace({first.text(), second->text()});
    const ExprNode& n = kernel_.pool[window.load];
    if (fresh)
      known->second = writer_.declared(
          "const " + words_type(window), writer_.preferred_name(n.source) + "_w",
          select(some_cross_rows_,
                 call("first_of<" + std::to_string(bits(n.dtype)) + ">", {first, *second, left_in_row_}), first));
    first = known->second;
    second.reset();
  }

  bool of_lanes(ExprId id) const {
    return emitter_.depends_on(id, plan_.lane) || (plan_.crosses_rows && emitter_.depends_on(id, plan_.column));
  }

  // What lanes need that is the same all along a row.
  std::vector<ExprId> values_of_rows() const {
    const ExprPool& pool = kernel_.pool;
    const std::vector<ExprId> roots = roots_of(kernel_);
    std::vector<bool> needed(pool.size(), false);
    for (const ExprId root : roots) needed[root] = !of_lanes(root);
    const std::vector<ExprId> ids = reachable(pool, roots);
    for (const ExprId id : ids) {
      if (!of_lanes(id)) continue;
      for (const ExprId a : pool[id].args)
        if (a != kNoExpr && !of_lanes(a)) needed[a] = true;
      for (const IndexExpr& e : pool[id].indices)
        for (const Variable v : variables_of(e))
          if (v.kind == Variable::Kind::kValue && !of_lanes(v.id)) needed[v.id] = true;
    }
    std::vector<ExprId> found;
    for (const ExprId id : ids)
      if (needed[id] && !emitter_.axes_of(id).empty()) found.push_back(id);
    return found;
  }

  // Loaded values that windows' places depend on.
  void emit_looked_up() {
    std::vector<ExprId> values;
    for (const UnalignedPlan::Read& read : plan_.reads)
      for (const ExprId value : values_in(kernel_.pool[read.window.load])) values.push_back(value);
    emitter_.emit_independent(values);
  }

  static std::string words_type(const UnalignedLoad& window) { return "Words<" + std::to_string(window.words) + ">"; }

  // A variable with the window's words. `later`: for lanes of the next row, if there are any. `guarded`: where the
  // guard holds for some lane, if that is known.
  CExpr read_window(const UnalignedPlan::Read& read, bool later = false,
                    const std::optional<CExpr>& guarded = std::nullopt) {
    UnalignedLoad window = read.window;
    const ExprNode& n = kernel_.pool[window.load];
    const ExprId guard = n.args[0];
    for (const auto& [known, name] : read_)
      if (kernel_.pool[known.load].source == n.source && known.first == window.first && known.words == window.words &&
          known.aligned == window.aligned && kernel_.pool[known.load].args[0] == guard)
        return name;
    CExpr wanted = wanted_;
    if (guard != kNoExpr)
      wanted = wanted && (guarded ? *guarded : lanes_wanted(guard, writer_.preferred_name(n.source)));
    if (later) wanted = wanted && left_in_row_ < plan_.width;
    window.stream = streams_past_caches(emitter_, graph_, window.load, target_.l2_bytes);
    // One row's window goes on where lanes are the other row's: ahead of the tensor's first row read backwards, or
    // behind its last one where rows are backwards.
    const CExpr words = unaligned_load_text(emitter_, window, wanted.is_true() ? "" : wanted.text(),
                                            tail_ || read.next_row, group_stride_);
    const CExpr name =
        writer_.declared("const " + words_type(window), writer_.preferred_name(n.source) + "_w",
                         select(some_want(window, guard, wanted, later), words, words_type(window) + "{}"));
    read_.emplace_back(window, name);
    return name;
  }

  // Whether a thread of the warp wants it, where many warps have none: of the next row, and one of several windows that
  // points choose from.
  CExpr some_want(const UnalignedLoad& window, ExprId guard, const CExpr& wanted, bool later) const {
    if (!window.together) return "true";
    const auto guarded = std::ranges::count_if(plan_.reads, [&](const UnalignedPlan::Read& read) {
      return kernel_.pool[read.window.load].args[0] != kNoExpr;
    });
    if (guard != kNoExpr && guarded > 1) return call("__any_sync", {"~0u", wanted});
    return later ? some_cross_rows_ : "true";
  }

  // Whether the guard holds for some lane; where that takes much to say, it may be true though it does not.
  CExpr lanes_wanted(ExprId guard, const std::string& of) {
    const ExprEmitter::Mark mark = emitter_.mark();
    if (const auto known = holds_for_some_lane(guard, true)) {
      const CExpr name = declared_bool(of + "_wanted", *known);
      emitter_.rewind(mark);
      return name;
    }
    const CExpr name = writer_.declared("bool", of + "_wanted", "false");
    emitter_.bind(plan_.lane, open_lanes());
    writer_.assign(name, name || emitter_.emit(guard));
    emitter_.rewind(mark);
    writer_.end();
    return name;
  }

  // A comparison of indices that grow or shrink with the lane holds for some lane where it does for the first or the
  // last one. Nothing where it is nothing like that; `wanted`: that it holds, or that it does not.
  std::optional<CExpr> holds_for_some_lane(ExprId condition, bool wanted) {
    const ExprPool& pool = kernel_.pool;
    const ExprNode& n = pool[condition];
    if (n.op == ExprOp::kNot) return holds_for_some_lane(n.args[0], !wanted);
    if (n.op == ExprOp::kAnd || n.op == ExprOp::kOr) {
      const auto a = holds_for_some_lane(n.args[0], wanted), b = holds_for_some_lane(n.args[1], wanted);
      if (!a || !b) return std::nullopt;
      return (n.op == ExprOp::kAnd) == wanted ? *a && *b : *a || *b;
    }
    std::string lane;
    if (emitter_.depends_on(condition, plan_.lane)) {
      if (n.op != ExprOp::kLt && n.op != ExprOp::kGe) return std::nullopt;
      const auto index = [&](ExprId id) -> std::optional<IndexExpr> {
        if (pool[id].op == ExprOp::kIndex) return pool[id].indices[0];
        if (pool[id].op == ExprOp::kConstant) return IndexExpr(pool[id].integer);
        return std::nullopt;
      };
      const auto a = index(n.args[0]), b = index(n.args[1]);
      if (!a || !b) return std::nullopt;
      const auto step = coefficient_of(simplify(*a - *b, pool.bounds()), axis_variable(plan_.lane));
      if (!step) return std::nullopt;
      const bool holds_late = (*step > 0) == ((n.op == ExprOp::kGe) == wanted);
      lane = holds_late ? std::to_string(plan_.width - 1) : "0";
    }
    const ExprEmitter::Mark mark = emitter_.mark();
    if (!lane.empty()) emitter_.bind(plan_.lane, lane);
    const CExpr holds = emitter_.emit(condition);
    emitter_.rewind(mark);
    return wanted ? holds : !holds;
  }

  // Of lanes that are stored by themselves.
  std::vector<std::optional<VectorStore>> stores_of(const CExpr& condition) {
    std::vector<std::optional<VectorStore>> stores(kernel_.outputs.size());
    for (std::size_t i = 0; i < kernel_.outputs.size(); ++i) {
      if (plan_.together[i] > 0) continue;
      const KernelOutput& output = kernel_.outputs[i];
      const bool stream = bytes_at_hint(output.type, graph_.symbols) >= target_.l2_bytes &&
                          bits(output.type.dtype) * plan_.width % 128 == 0;
      if (plan_.crosses_rows) emitter_.bind(plan_.group, group_.text());
      writer_.use(stream ? "stream_words" : "words");
      stores[i] = VectorStore::elsewhere(emitter_, output, plan_.width, stream ? "stream_words_out" : "store_words",
                                         {CExpr(writer_.output(output.value)) + text(plan_.stores[i])}, condition);
    }
    return stores;
  }

  // Where an output's lanes of all planes begin, in vectors.
  CExpr vector_number(std::size_t output) const {
    const int each = 128 / bits(kernel_.outputs[output].type.dtype);
    return text(simplify(floor_div(plan_.stores[output], each), kernel_.pool.bounds()));
  }

  void emit_lanes(std::vector<std::optional<VectorStore>> stores, int plane) {
    if (!plan_.crosses_rows) emitter_.emit_independent(roots_of(kernel_));
    const std::string e = open_lanes();
    const ExprEmitter::Mark mark = emitter_.mark();
    if (plan_.crosses_rows) bind_row_of(e);
    emitter_.bind(plan_.lane, e);
    emitter_.load_text = [&](ExprId load) { return element_of(load); };
    const std::vector<std::string> values = emitter_.emit(roots_of(kernel_));
    for (std::size_t i = 0; i < stores.size(); ++i)
      stores[i]->put(emitter_, plan_.together[i] > 0 ? (CExpr(e) * plan_.planes + plane).text() : e, values[i]);
    emitter_.load_text = nullptr;
    emitter_.rewind(mark);
    writer_.end();
    for (std::size_t i = 0; i < stores.size(); ++i)
      if (plan_.together[i] == 0) stores[i]->finish(emitter_);
  }

  void bind_row_of(const CExpr& lane) {
    in_next_row_ = declared_bool("later", lane >= left_in_row_);
    const auto chosen = [&](std::string_view name, const CExpr& here, const CExpr& next) {
      return here == next ? here : declared(name, select(in_next_row_, next, here));
    };
    for (std::size_t i = 0; i < plan_.outer.size(); ++i)
      emitter_.bind(plan_.outer[i], chosen("i", rows_[0][i], rows_[1][i]).tight());
    emitter_.bind(plan_.column, chosen("j", columns_[0], columns_[1]).tight());
    for (const auto& [id, names] : of_rows_) emitter_.define(id, select(in_next_row_, names[1], names[0]).tight());
  }

  std::string element_of(ExprId load) {
    const auto words = words_.find(load);
    if (words == words_.end()) return "";
    const auto read = std::ranges::find(plan_.reads, load, [](const UnalignedPlan::Read& r) { return r.window.load; });
    const DType dtype = kernel_.pool[load].dtype;
    const CExpr at = emitter_.index(read->window.element);
    const auto raw = [&](const CExpr& of) {
      writer_.use(bits(dtype) == 64 ? "words64" : "words");
      return bits(dtype) == 64 ? call("element64", {of, at})
                               : call("element<" + std::to_string(bits(dtype)) + ">", {of, at});
    };
    const auto& [first, second] = words->second;
    return value_of_bits(dtype, (second ? select(in_next_row_, raw(*second), raw(first)) : raw(first)).tight(),
                         writer_);
  }

  // The elements that are left, one by one.
  void emit_tail() {
    const std::string e = writer_.unique("e");
    const CExpr first = group_ * plan_.width;
    writer_.open_for("int", e, text(plan_.total) - first);
    const ExprEmitter::Mark mark = single_.mark();
    bind_flat(single_, merged_.outputs[0].axes, declared("at", first + e).text());
    store_scalars(single_, single_.emit(roots_of(merged_)));
    single_.rewind(mark);
    writer_.end();
  }

  const Kernel& merged_;
  const Graph& graph_;
  const Target& target_;
  const UnalignedPlan plan_;
  const Kernel& kernel_;
  const bool tail_;
  const int threads_;
  KernelWriter writer_;
  ExprEmitter emitter_, single_;
  int group_stride_ = 1;  // how many threads further the next group is
  CExpr group_, in_range_ = "true", wanted_ = "true";
  CExpr left_in_row_, in_next_row_;
  CExpr some_cross_rows_;                 // some thread of the warp has lanes of two rows
  std::vector<CExpr> columns_;            // of this row, and of the next one
  std::vector<std::vector<CExpr>> rows_;  // the same, each outer axis
  std::map<ExprId, std::vector<CExpr>> of_rows_;
  std::map<std::pair<int, ExprId>, CExpr> words_of_planes_;
  std::map<ExprId, std::pair<CExpr, std::optional<CExpr>>> words_;  // of this row, and of the next one where it has any
  std::map<ExprId, std::pair<std::optional<CExpr>, std::optional<CExpr>>>
      guards_;                                                   // of windows: of one row, and of two
  std::map<std::pair<std::string, std::string>, CExpr> joined_;  // such words of two rows
  std::vector<std::pair<UnalignedLoad, CExpr>> read_;            // so far, of one row
};

}  // namespace

KernelSource emit_unaligned_pointwise(const Kernel& merged, const Graph& graph, const Target& target,
                                      UnalignedPlan plan) {
  return UnalignedPointwiseEmitter(merged, graph, target, std::move(plan)).emit();
}

}  // namespace fusec
