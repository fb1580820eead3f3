#include "codegen/movement/unaligned_pointwise_emitter.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
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
      if (!wanted_.empty()) writer_.open(fmt::format("if ({})", wanted_));
      emit_lanes(stores_of(""), 0);
    }
    emitter_.rewind(mark);
    if (tail_) {
      writer_.close(in_range_.empty() ? "} else {" : fmt::format("}} else if ({}) {{", in_range_));
      writer_.reopen();
      emit_tail();
    }
    if (!wanted_.empty() && !plan_.plane) writer_.close();
    // One block at a time is enough: for more of them ptxas would spill a few registers.
    KernelSource source = writer_.finish(kernel_comment(graph_, merged_), threads_, 1);
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

  std::string declared(std::string_view preferred_name, const std::string& value) {
    const std::string name = writer_.unique(preferred_name);
    writer_.line(fmt::format("const {} {} = {};", writer_.index_type(), name, value));
    return name;
  }
  std::string declared_bool(std::string_view preferred_name, const std::string& value) {
    const std::string name = writer_.unique(preferred_name);
    writer_.line(fmt::format("const bool {} = {};", name, value));
    return name;
  }
  std::string text(const IndexExpr& e) const { return emitter_.index_text().tight(e); }

  // This thread's group: one that there is, so that whatever does not depend on lanes may be read for it. `wanted_`:
  // that all its lanes are there; threads of a warp stay together all the same.
  void find_group() {
    group_ =
        declared("t", fmt::format("{}blockIdx.x * {} + threadIdx.x", writer_.wide() ? "(long long)" : "", threads_));
    if (group_stride_ > 1)  // the groups of neighbouring threads' windows lie apart, those of a load together
      group_ = declared("group", fmt::format("{0} - {0} % 32 + {0} % {1} * {2} + {0} % 32 / {1}", group_, group_stride_,
                                             32 / group_stride_));
    if (!proves_multiple_of(plan_.groups, threads_, kernel_.pool.bounds())) {
      in_range_ = declared_bool("here", fmt::format("{} < {}", group_, text(plan_.groups)));
      group_ = declared("group", fmt::format("{} ? {} : {}", in_range_, group_, text(plan_.groups - 1)));
      wanted_ = in_range_;
    }
    if (tail_)
      wanted_ = declared_bool("all", fmt::format("{}{} * {} + {} <= {}", in_range_.empty() ? "" : in_range_ + " && ",
                                                 group_, plan_.width, plan_.width, text(plan_.total)));
  }

  void read_one_row() {
    std::vector<std::uint32_t> axes = plan_.outer;
    axes.push_back(plan_.group);
    bind_flat(emitter_, axes, group_);
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
      if (key.first == plane) words_[key.second] = {name, ""};
  }

  // All planes one after the other, by all threads of a warp; only stores ask whether this one's points are there.
  void emit_planes() {
    const std::string condition = wanted_.empty() ? "" : fmt::format("if ({}) ", wanted_);
    std::vector<std::optional<VectorStore>> together;
    for (std::size_t i = 0; i < kernel_.outputs.size(); ++i) {
      const KernelOutput& output = kernel_.outputs[i];
      together.emplace_back();
      if (plan_.together[i] == 0) continue;
      writer_.use("windows");
      together.back() =
          VectorStore::elsewhere(emitter_, output, plan_.width * plan_.planes,
                                 fmt::format("store_vectors_together<{}>({}, (int)({} / {}), {}, ", plan_.together[i],
                                             writer_.output(output.value), text(plan_.stores[i]),
                                             128 / bits(output.type.dtype), wanted_.empty() ? "true" : wanted_));
    }
    for (int plane = 0; plane < plan_.planes; ++plane) {
      const ExprEmitter::Mark mark = emitter_.mark();
      emitter_.bind(*plan_.plane, std::to_string(plane));
      select_plane(plane);
      std::vector<std::optional<VectorStore>> stores = stores_of(condition);
      for (std::size_t i = 0; i < stores.size(); ++i)
        if (together[i]) stores[i] = together[i];
      emit_lanes(std::move(stores), plane);
      emitter_.rewind(mark);
    }
    for (std::optional<VectorStore>& store : together)
      if (store) store->finish(emitter_);
  }

  void read_two_rows() {
    const std::string first = declared("first", fmt::format("{} * {}", group_, plan_.width));
    const std::string length = text(plan_.row_length);
    const std::string row = declared("row", fmt::format("{} / {}", first, length));
    const std::string column = declared("column", fmt::format("{} % {}", first, length));
    left_in_row_ = declared("left", fmt::format("{} - {}", length, column));
    if (std::ranges::any_of(plan_.reads, &UnalignedPlan::Read::next_row))
      some_cross_rows_ =
          declared_bool("some_cross", fmt::format("__any_sync(~0u, {} < {})", left_in_row_, plan_.width));
    const std::string rows = text(point_count(kernel_.pool, plan_.outer));
    const std::string next = declared("next", fmt::format("{0} + 1 < {1} ? {0} + 1 : {0}", row, rows));
    emitter_.bind(plan_.group, group_);
    emitter_.emit_independent(roots_of(kernel_));
    const std::vector<ExprId> of_rows = values_of_rows();
    const ExprEmitter::Mark mark = emitter_.mark();
    for (const bool later : {false, true}) {
      bind_flat(emitter_, plan_.outer, later ? next : row);
      const std::string at = later ? declared("column", fmt::format("{} - {}", column, length)) : column;
      emitter_.bind(plan_.column, at);
      columns_.push_back(at);
      rows_.emplace_back();
      for (const std::uint32_t axis : plan_.outer) rows_.back().push_back(emitter_.index(IndexExpr::axis(axis)));
      const std::vector<std::string> texts = emitter_.emit(of_rows);
      for (std::size_t i = 0; i < of_rows.size(); ++i) {
        const std::string name = writer_.unique(emitter_.plain_name(of_rows[i]) + "_r");
        writer_.line(fmt::format("const {} {} = {};", c_type(kernel_.pool[of_rows[i]].type), name, texts[i]));
        of_rows_[of_rows[i]].push_back(name);
      }
      for (const ExprId id : of_rows) emitter_.define(id, of_rows_[id].back());
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
      (later ? second : first) = read_window(read, later);
      if (later) join(read.window);
    } else if (guard == kNoExpr) {
      if (!later) first = read_window(read);
    } else {
      const std::string name = writer_.preferred_name(kernel_.pool[read.window.load].source);
      std::string& wanted = guards_[guard];
      if (!later) {
        if (wanted.empty()) wanted = lanes_wanted(guard, name);
        return;
      }
      if (!wanted.starts_with("("))
        wanted = fmt::format("({} || ({} < {} && {}))", wanted, left_in_row_, plan_.width, lanes_wanted(guard, name));
      first = read_window(read, false, wanted);
    }
  }

  // Lanes that take one element after the other take those of both rows from the same words.
  void join(const UnalignedLoad& window) {
    auto& [first, second] = words_[window.load];
    if (window.element != IndexExpr::axis(plan_.lane)) return;
    const auto known = joined_.try_emplace({first, second}, "");
    std::string& name = known.first->second;
    if (known.second) {
      name = writer_.unique(writer_.preferred_name(kernel_.pool[window.load].source) + "_w");
      writer_.line(fmt::format("const Words<{}> {} = {} ? first_of<{}>({}, {}, {}) : {};", window.words, name,
                               some_cross_rows_, bits(kernel_.pool[window.load].dtype), first, second, left_in_row_,
                               first));
    }
    first = name;
    second.clear();
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

  // A variable with the window's words. `later`: for lanes of the next row, if there are any. `guarded`: where the
  // guard holds for some lane, if that is known.
  std::string read_window(const UnalignedPlan::Read& read, bool later = false, const std::string& guarded = "") {
    UnalignedLoad window = read.window;
    const ExprNode& n = kernel_.pool[window.load];
    const ExprId guard = n.args[0];
    for (const auto& [known, name] : read_)
      if (kernel_.pool[known.load].source == n.source && known.first == window.first && known.words == window.words &&
          known.aligned == window.aligned && kernel_.pool[known.load].args[0] == guard)
        return name;
    std::string wanted = wanted_;
    const auto also = [&](const std::string& condition) {
      wanted = wanted.empty() ? condition : fmt::format("{} && {}", wanted, condition);
    };
    if (guard != kNoExpr) also(!guarded.empty() ? guarded : lanes_wanted(guard, writer_.preferred_name(n.source)));
    if (later) also(fmt::format("{} < {}", left_in_row_, plan_.width));
    window.stream = streams_past_caches(emitter_, graph_, window.load, target_.l2_bytes);
    const std::string name = writer_.unique(writer_.preferred_name(n.source) + "_w");
    // One row's window goes on where lanes are the other row's: ahead of the tensor's first row read backwards, or
    // behind its last one where rows are backwards.
    const std::string words = unaligned_load_text(emitter_, window, wanted, tail_ || read.next_row, group_stride_);
    const std::string some = some_want(window, guard, wanted, later);
    writer_.line(some.empty() ? fmt::format("const Words<{}> {} = {};", window.words, name, words)
                              : fmt::format("const Words<{0}> {1} = {2} ? {3} : Words<{0}>{{}};", window.words, name,
                                            some, words));
    read_.emplace_back(window, name);
    return name;
  }

  // Whether a thread of the warp wants it, where many warps have none: of the next row, and one of several windows that
  // points choose from.
  std::string some_want(const UnalignedLoad& window, ExprId guard, const std::string& wanted, bool later) const {
    if (!window.together) return "";
    const auto guarded = std::ranges::count_if(plan_.reads, [&](const UnalignedPlan::Read& read) {
      return kernel_.pool[read.window.load].args[0] != kNoExpr;
    });
    if (guard != kNoExpr && guarded > 1) return fmt::format("__any_sync(~0u, {})", wanted);
    return later ? some_cross_rows_ : "";
  }

  // Whether the guard holds for some lane; where that takes much to say, it may be true though it does not.
  std::string lanes_wanted(ExprId guard, const std::string& of) {
    const ExprEmitter::Mark mark = emitter_.mark();
    const std::string known = holds_for_some_lane(guard, true);
    if (!known.empty()) {
      const std::string name = declared_bool(of + "_wanted", known);
      emitter_.rewind(mark);
      return name;
    }
    const std::string name = writer_.unique(of + "_wanted"), e = writer_.unique("e");
    writer_.line(fmt::format("bool {} = false;", name));
    writer_.line("#pragma unroll");
    writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", e, plan_.width));
    emitter_.bind(plan_.lane, e);
    writer_.line(fmt::format("{0} = {0} || ({1});", name, emitter_.emit(guard)));
    emitter_.rewind(mark);
    writer_.close();
    return name;
  }

  // A comparison of indices that grow or shrink with the lane holds for some lane where it does for the first or the
  // last one. "" where it is nothing like that; `wanted`: that it holds, or that it does not.
  std::string holds_for_some_lane(ExprId condition, bool wanted) {
    const ExprPool& pool = kernel_.pool;
    const ExprNode& n = pool[condition];
    if (n.op == ExprOp::kNot) return holds_for_some_lane(n.args[0], !wanted);
    if (n.op == ExprOp::kAnd || n.op == ExprOp::kOr) {
      const std::string a = holds_for_some_lane(n.args[0], wanted), b = holds_for_some_lane(n.args[1], wanted);
      if (a.empty() || b.empty()) return "";
      return fmt::format("({} {} {})", a, (n.op == ExprOp::kAnd) == wanted ? "&&" : "||", b);
    }
    std::string lane;
    if (emitter_.depends_on(condition, plan_.lane)) {
      if (n.op != ExprOp::kLt && n.op != ExprOp::kGe) return "";
      const auto index = [&](ExprId id) -> std::optional<IndexExpr> {
        if (pool[id].op == ExprOp::kIndex) return pool[id].indices[0];
        if (pool[id].op == ExprOp::kConstant) return IndexExpr(pool[id].integer);
        return std::nullopt;
      };
      const auto a = index(n.args[0]), b = index(n.args[1]);
      if (!a || !b) return "";
      const auto step = coefficient_of(simplify(*a - *b, pool.bounds()), axis_variable(plan_.lane));
      if (!step) return "";
      const bool holds_late = (*step > 0) == ((n.op == ExprOp::kGe) == wanted);
      lane = holds_late ? std::to_string(plan_.width - 1) : "0";
    }
    const ExprEmitter::Mark mark = emitter_.mark();
    if (!lane.empty()) emitter_.bind(plan_.lane, lane);
    const std::string text = emitter_.emit(condition);
    emitter_.rewind(mark);
    return fmt::format("{}({})", wanted ? "" : "!", text);
  }

  // Of lanes that are stored by themselves.
  std::vector<std::optional<VectorStore>> stores_of(const std::string& condition) {
    std::vector<std::optional<VectorStore>> stores(kernel_.outputs.size());
    for (std::size_t i = 0; i < kernel_.outputs.size(); ++i) {
      if (plan_.together[i] > 0) continue;
      const KernelOutput& output = kernel_.outputs[i];
      const bool stream = bytes_at_hint(output.type, graph_.symbols) >= target_.l2_bytes &&
                          bits(output.type.dtype) * plan_.width % 128 == 0;
      if (plan_.crosses_rows) emitter_.bind(plan_.group, group_);
      writer_.use(stream ? "stream_words" : "words");
      stores[i] =
          VectorStore::elsewhere(emitter_, output, plan_.width,
                                 fmt::format("{}{}({} + {}, ", condition, stream ? "stream_words_out" : "store_words",
                                             writer_.output(output.value), text(plan_.stores[i])));
    }
    return stores;
  }

  void emit_lanes(std::vector<std::optional<VectorStore>> stores, int plane) {
    if (!plan_.crosses_rows) emitter_.emit_independent(roots_of(kernel_));
    const std::string e = writer_.unique("e");
    writer_.line("#pragma unroll");
    writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", e, plan_.width));
    const ExprEmitter::Mark mark = emitter_.mark();
    if (plan_.crosses_rows) bind_row_of(e);
    emitter_.bind(plan_.lane, e);
    emitter_.load_text = [&](ExprId load) { return element_of(load); };
    const std::vector<std::string> values = emitter_.emit(roots_of(kernel_));
    for (std::size_t i = 0; i < stores.size(); ++i)
      stores[i]->put(emitter_, plan_.together[i] > 0 ? fmt::format("{} * {} + {}", e, plan_.planes, plane) : e,
                     values[i]);
    emitter_.load_text = nullptr;
    emitter_.rewind(mark);
    writer_.close();
    for (std::size_t i = 0; i < stores.size(); ++i)
      if (plan_.together[i] == 0) stores[i]->finish(emitter_);
  }

  void bind_row_of(const std::string& lane) {
    in_next_row_ = declared_bool("later", fmt::format("{} >= {}", lane, left_in_row_));
    for (std::size_t i = 0; i < plan_.outer.size(); ++i)
      emitter_.bind(plan_.outer[i], rows_[0][i] == rows_[1][i] ? rows_[0][i]
                                                               : declared("i", fmt::format("{} ? {} : {}", in_next_row_,
                                                                                           rows_[1][i], rows_[0][i])));
    emitter_.bind(plan_.column, declared("j", fmt::format("{} ? {} : {}", in_next_row_, columns_[1], columns_[0])));
    for (const auto& [id, names] : of_rows_)
      emitter_.define(id, fmt::format("({} ? {} : {})", in_next_row_, names[1], names[0]));
  }

  std::string element_of(ExprId load) {
    const auto words = words_.find(load);
    if (words == words_.end()) return "";
    const auto read = std::ranges::find(plan_.reads, load, [](const UnalignedPlan::Read& r) { return r.window.load; });
    const DType dtype = kernel_.pool[load].dtype;
    const std::string at = emitter_.index(read->window.element);
    const auto raw = [&](const std::string& name) {
      writer_.use(bits(dtype) == 64 ? "words64" : "words");
      return bits(dtype) == 64 ? fmt::format("element64({}, {})", name, at)
                               : fmt::format("element<{}>({}, {})", bits(dtype), name, at);
    };
    const auto& [first, second] = words->second;
    const std::string bits_text =
        second.empty() ? raw(first) : fmt::format("({} ? {} : {})", in_next_row_, raw(second), raw(first));
    return value_of_bits(dtype, bits_text, writer_);
  }

  // The elements that are left, one by one.
  void emit_tail() {
    const std::string e = writer_.unique("e");
    const std::string at = fmt::format("{} * {} + {}", group_, plan_.width, e);
    writer_.open(fmt::format("for (int {0} = 0; {1} < {2}; ++{0})", e, at, text(plan_.total)));
    const ExprEmitter::Mark mark = single_.mark();
    bind_flat(single_, merged_.outputs[0].axes, declared("at", at));
    store_scalars(single_, single_.emit(roots_of(merged_)));
    single_.rewind(mark);
    writer_.close();
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
  int group_stride_ = 1;                   // how many threads further the next group is
  std::string group_, in_range_, wanted_;  // in_range_, wanted_: "" is always
  std::string left_in_row_, in_next_row_;
  std::string some_cross_rows_;                 // some thread of the warp has lanes of two rows
  std::vector<std::string> columns_;            // of this row, and of the next one
  std::vector<std::vector<std::string>> rows_;  // the same, each outer axis
  std::map<ExprId, std::vector<std::string>> of_rows_;
  std::map<std::pair<int, ExprId>, std::string> words_of_planes_;
  std::map<ExprId, std::pair<std::string, std::string>> words_;  // of this row, and of the next one where it has any
  std::map<ExprId, std::string> guards_;                         // of windows of two rows
  std::map<std::pair<std::string, std::string>, std::string> joined_;  // such words of two rows
  std::vector<std::pair<UnalignedLoad, std::string>> read_;            // so far, of one row
};

}  // namespace

KernelSource emit_unaligned_pointwise(const Kernel& merged, const Graph& graph, const Target& target,
                                      UnalignedPlan plan) {
  return UnalignedPointwiseEmitter(merged, graph, target, std::move(plan)).emit();
}

}  // namespace fusec
