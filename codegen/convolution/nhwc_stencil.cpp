#include "codegen/convolution/nhwc_stencil.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "codegen/access/direct.h"
#include "codegen/access/vector_access.h"
#include "codegen/expr/emit_expr.h"
#include "codegen/gemm/epilogue_vectors.h"
#include "ir/type.h"

namespace fusec {
namespace {

using NhwcStencilPoint = NhwcStencil::Point;
using Accumulator = ExprEmitter::Accumulator;

constexpr std::size_t kAtATime = 24;  // points with loads in flight together
constexpr int kTaken = 8;             // points of a channel that neighbouring threads stage

class NhwcStencilEmitter {
 public:
  NhwcStencilEmitter(const Kernel& original, const NhwcStencil& stencil, const Graph& graph)
      : original_(original),
        w_(stencil),
        kernel_(stencil.kernel),
        pool_(kernel_.pool),
        graph_(graph),
        points_(point_count(pool_, tiled_axes())),
        writer_(graph, needs_wide_index(kernel_, graph, points_ * pool_.extent(w_.vectors) + NhwcStencil::kThreads)),
        emitter_(kernel_, writer_) {}

  KernelSource emit() {
    writer_.use("words");
    place();
    stage();
    bind_point();
    declare_accumulators();
    add_up();
    finish_results();
    KernelSource source = writer_.finish(kernel_comment(graph_, original_), NhwcStencil::kThreads);
    source.name = kernel_name(graph_, original_.nodes);
    source.grid[0] = simplify(ceil_div(points_, points_of_block()) * slabs(), pool_.bounds());
    source.schedule = {KernelKind::kNhwcStencil};
    return source;
  }

 private:
  std::string text(const IndexExpr& e) { return emitter_.index_text().tight(simplify(e, pool_.bounds())); }
  int points_of_block() const { return NhwcStencil::kThreads / w_.vectors_per_block; }
  IndexExpr slabs() const { return simplify(ceil_div(pool_.extent(w_.vectors), w_.vectors_per_block), pool_.bounds()); }
  int channels() const { return w_.vectors_per_block * w_.lanes; }

  // The axes that number the threads: coarsened axes are counted in threads.
  std::vector<std::uint32_t> tiled_axes() const {
    std::vector<std::uint32_t> axes = w_.rest;
    for (std::uint32_t& a : axes)
      for (const CoarsenedAxis& walk : w_.coarsened_axes)
        if (walk.axis == a) a = walk.tiles;
    return axes;
  }

  // Declares the block's first vector of channels, the thread's vector, and its point.
  void place() {
    const bool one_slab = slabs().is(1);
    const std::string block = one_slab ? "blockIdx.x" : writer_.unique("points_of");
    first_ = "0";
    if (!one_slab) {
      first_ = writer_.unique("first");
      writer_.line(fmt::format("const {0} {1} = (int)blockIdx.x % {2} * {3}, {4} = (int)blockIdx.x / {2};",
                               writer_.index_type(), first_, text(slabs()), w_.vectors_per_block, block));
    }
    vector_ = writer_.unique("vector"), point_ = writer_.unique("point");
    writer_.line(fmt::format("const int {} = threadIdx.x % {};", vector_, w_.vectors_per_block));
    writer_.line(fmt::format("const {0} {1} = {2}{3} * {4} + threadIdx.x / {5};", writer_.index_type(), point_,
                             writer_.wide() ? "(long long)" : "", one_slab ? "(int)" + block : block, points_of_block(),
                             w_.vectors_per_block));
  }

  bool whole_slabs() const {
    return proves_multiple_of(pool_.extent(w_.vectors), w_.vectors_per_block, pool_.bounds());
  }

  IndexExpr flat_point() const {
    IndexExpr flat = 0;
    for (const std::uint32_t a : summed()) flat = flat * pool_.extent(a) + IndexExpr::axis(a);
    return flat;
  }
  const std::vector<std::uint32_t>& summed() const { return pool_[w_.reductions[0]].axes; }

  // True if a channel's points are contiguous and its channels are not. A warp then stages eight points of four
  // channels, unless there are far fewer points than eight.
  bool by_points(const WindowLoad& w) const {
    const std::optional<std::int64_t> points = simplify(point_count(pool_, summed()), pool_.bounds()).as_constant();
    const auto step = [&](std::uint32_t axis) {
      return coefficient_of(emitter_.position(w.load), {Variable::Kind::kAxis, axis});
    };
    return points && 2 * ((*points + kTaken - 1) / kTaken * kTaken) <= 3 * *points && step(summed().back()) == 1 &&
           step(w_.lane) != 1;
  }

  // Elements from one staged point to the next. Staging by points uses an odd number of vectors, so that eight points
  // are in different banks.
  int line(const WindowLoad& w) const { return by_points(w) ? (w_.vectors_per_block | 1) * w_.lanes : channels(); }

  // Neighbouring threads stage neighbouring channels, or neighbouring points if by_points.
  void stage() {
    bool some = false;
    const IndexExpr points = simplify(point_count(pool_, summed()), pool_.bounds());
    for (const WindowLoad& w : w_.loads) {
      if (!w.staged) continue;
      const ExprNode& load = pool_[w.load];
      const bool turned = by_points(w);
      const IndexExpr rounded = turned ? ceil_div(points, kTaken) * kTaken : points;
      const IndexExpr count = simplify(rounded * channels(), pool_.bounds());
      const std::string type = storage_type(load.dtype);
      std::string& tile = staged_[w.load] = writer_.unique(writer_.preferred_name(load.source) + "_tile");
      writer_.line(fmt::format("__shared__ __align__(16) {} {}[{}];", type, tile, text(points * line(w))));
      const std::string at = writer_.unique("at");
      writer_.open_strided(at, text(count), NhwcStencil::kThreads);
      const ExprEmitter::Mark mark = emitter_.mark();
      const std::string channel = writer_.unique("channel");
      writer_.line(fmt::format("const int {} = {}{} % {};", channel, at, turned ? fmt::format(" / {}", kTaken) : "",
                               channels()));
      if (!whole_slabs())
        writer_.line(fmt::format("if ({} + {} / {} >= {}) continue;", first_, channel, w_.lanes,
                                 text(pool_.extent(w_.vectors))));
      emitter_.bind(w_.vectors, fmt::format("({} + {} / {})", first_, channel, w_.lanes));
      emitter_.bind(w_.lane, fmt::format("({} % {})", channel, w_.lanes));
      const std::string point = writer_.unique("k");
      if (turned) {
        writer_.line(
            fmt::format("const int {0} = {1} / {2} * {3} + {1} % {3};", point, at, channels() * kTaken, kTaken));
        if (!proves_multiple_of(points, kTaken, pool_.bounds()))
          writer_.line(fmt::format("if ({} >= {}) continue;", point, text(points)));
      } else {
        writer_.line(fmt::format("const int {} = {} / {};", point, at, channels()));
      }
      bind_flat(emitter_, summed(), point, "kluvw");
      const std::string to = turned ? fmt::format("{} * {} + {}", point, line(w), channel) : at;
      writer_.line(fmt::format("{}[{}] = {}[{}];", tile, to, writer_.input(load.source),
                               emitter_.index(emitter_.position(w.load))));
      emitter_.rewind(mark);
      writer_.close();
      some = true;
    }
    if (some) writer_.line("__syncthreads();");
  }

  void bind_point() {
    std::string beyond = fmt::format("{} >= {}", point_, text(points_));
    if (!whole_slabs()) beyond += fmt::format(" || {} + {} >= {}", first_, vector_, text(pool_.extent(w_.vectors)));
    writer_.line(fmt::format("if ({}) return;", beyond));
    emitter_.bind(w_.vectors, first_ == "0" ? vector_ : fmt::format("({} + {})", first_, vector_));
    bind_flat(emitter_, tiled_axes(), point_, "nijpq");
    // The last thread of an axis is shifted to end at the axis' end: some results may be computed twice.
    for (const CoarsenedAxis& walk : w_.coarsened_axes) {
      const IndexExpr last = simplify(pool_.extent(walk.axis) - walk.steps, pool_.bounds());
      const std::string place = text(IndexExpr::axis(walk.tiles) * walk.steps);
      std::string& first = first_of_[walk.axis] = writer_.unique("at");
      const bool whole = proves_multiple_of(pool_.extent(walk.axis), walk.steps, pool_.bounds());
      const std::string clipped = whole ? place : fmt::format("min({}, {})", place, text(last));
      writer_.line(fmt::format("const {} {} = {};", writer_.index_type(), first,
                               walk.enough ? clipped : fmt::format("max({}, 0)", clipped)));
    }
  }

  // Declares the accumulators of a thread's results: name[i][j][lane].
  void declare_accumulators() {
    for (const ExprId r : w_.reductions) {
      accumulators_.push_back(emitter_.accumulator(r));
      std::string sizes, all = std::to_string(w_.lanes);
      for (const CoarsenedAxis& walk : w_.coarsened_axes) {
        sizes += fmt::format("[{}]", walk.steps);
        all += fmt::format(" * {}", walk.steps);
      }
      const Accumulator& sum = accumulators_.back();
      writer_.line(fmt::format("{} {}{}[{}];", sum.type, sum.name, sizes, w_.lanes));
      writer_.line("#pragma unroll");
      const std::string i = writer_.unique("i");
      writer_.line(fmt::format("for (int {0} = 0; {0} < {1}; ++{0}) (({2}*){3})[{0}] = {4};", i, all, sum.type,
                               sum.name, sum.identity));
    }
  }

  void add_up() {
    const ExprEmitter::Mark mark = emitter_.mark();
    for (const std::uint32_t axis : w_.rolled_axes) {
      const std::string k = writer_.unique("k");
      writer_.line("#pragma unroll 1");
      writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", k, text(pool_.extent(axis))));
      emitter_.bind(axis, k);
    }
    const std::vector<NhwcStencilPoint> points = points_in_memory_order(w_, graph_);
    for (std::size_t i = 0; i < points.size(); i += kAtATime) {
      const std::span<const NhwcStencilPoint> now(points.data() + i, std::min(kAtATime, points.size() - i));
      for (const NhwcStencilPoint& p : now) load_vectors(p);
      const std::string lane = writer_.unique("e");
      writer_.open_unrolled(lane, w_.lanes);
      for (const NhwcStencilPoint& p : now) take_elements(p, lane);
      for (const NhwcStencilPoint& p : now) add_point(p, lane);
      elements_.clear();
      writer_.close();
    }
    for (std::size_t i = 0; i < w_.rolled_axes.size(); ++i) writer_.close();
    emitter_.rewind(mark);
    vectors_.clear();
  }

  void bind_to(const NhwcStencilPoint& p) {
    for (std::size_t i = 0; i < w_.coarsened_axes.size(); ++i) {
      const std::string& first = first_of_.at(w_.coarsened_axes[i].axis);
      emitter_.bind(w_.coarsened_axes[i].axis, p[i] == 0 ? first : fmt::format("({} + {})", first, p[i]));
    }
    for (std::size_t i = 0; i < w_.unrolled_axes.size(); ++i)
      emitter_.bind(w_.unrolled_axes[i], std::to_string(p[w_.coarsened_axes.size() + i]));
  }

  using Key = std::pair<ExprId, std::vector<std::int64_t>>;
  Key key_of(const WindowLoad& w, const NhwcStencilPoint& p) const {
    if (!w.staged) return {w.load, vector_key(w_, w.load, emitter_.position(w.load), p)};
    return {w.load, {p.begin() + static_cast<std::ptrdiff_t>(w_.coarsened_axes.size()), p.end()}};
  }

  // The condition that a result exists, for axes that may be shorter than a thread's steps. A vector is loaded for the
  // first of its results.
  std::string is_result(const NhwcStencilPoint& p) {
    std::string there;
    for (std::size_t i = 0; i < w_.coarsened_axes.size(); ++i)
      if (!w_.coarsened_axes[i].enough && p[i] > 0)
        there += fmt::format("{}{} + {} < {}", there.empty() ? "" : " && ", first_of_.at(w_.coarsened_axes[i].axis),
                             p[i], text(pool_.extent(w_.coarsened_axes[i].axis)));
    return there;
  }

  // Loads the vectors of a point that are not loaded so far.
  void load_vectors(const NhwcStencilPoint& p) {
    for (const WindowLoad& w : w_.loads) {
      const Key key = key_of(w, p);
      if (vectors_.contains(key)) continue;
      const ExprNode& load = pool_[w.load];
      const int words = bits(load.dtype) * w_.lanes / 32;
      const ExprEmitter::Mark mark = emitter_.mark();
      bind_to(p);
      emitter_.bind(w_.lane, "0");
      const std::string from =
          w.staged ? fmt::format("{} + ({} * {} + {} * {})", staged_.at(w.load), text(flat_point()), line(w), vector_,
                                 w_.lanes)
                   : fmt::format("{} + {}", writer_.input(load.source), text(emitter_.position(w.load)));
      std::string loaded = fmt::format("load_words<{}>({})", words, from);
      std::string there = w.staged ? "" : is_result(p);
      if (load.args[0] != kNoExpr)
        there += fmt::format("{}({})", there.empty() ? "" : " && ", emitter_.emit(load.args[0]));
      if (!there.empty()) loaded = fmt::format("{} ? {} : Words<{}>{{}}", there, loaded, words);
      emitter_.rewind(mark);
      std::string& name = vectors_[key] = writer_.unique(writer_.preferred_name(load.source) + "_w");
      writer_.line(fmt::format("const Words<{}> {} = {};", words, name, loaded));
    }
  }

  // Converts the lane's element of each of the point's vectors, once for all points that share it.
  void take_elements(const NhwcStencilPoint& p, const std::string& lane) {
    for (const WindowLoad& w : w_.loads) {
      const Key key = key_of(w, p);
      if (elements_.contains(key)) continue;
      const ExprNode& load = pool_[w.load];
      std::string& name = elements_[key] = writer_.unique(writer_.preferred_name(load.source) + "_v");
      writer_.line(fmt::format("const {} {} = {};", c_type(load.type), name,
                               element_text(load.dtype, vectors_.at(key), lane, writer_)));
    }
  }

  // Defines `there ? x : 0` as the load itself, because masked vectors are zeros.
  void define_zeros_elsewhere() {
    for (const ExprId id : reachable(pool_, w_.reductions)) {
      const ExprNode& n = pool_[id];
      if (n.op != ExprOp::kSelect || pool_[n.args[1]].op != ExprOp::kLoad) continue;
      const ExprNode& otherwise = pool_[n.args[2]];
      const bool zero = otherwise.op == ExprOp::kConstant && otherwise.real == 0 && otherwise.integer == 0;
      if (zero && pool_[n.args[1]].args[0] == n.args[0] && is_float(n.type))
        if (const std::string element = emitter_.load_text(n.args[1]); !element.empty()) emitter_.define(id, element);
    }
  }

  void add_point(const NhwcStencilPoint& p, const std::string& lane) {
    const ExprEmitter::Mark mark = emitter_.mark();
    bind_to(p);
    emitter_.bind(w_.lane, lane);
    emitter_.load_text = [&](ExprId id) -> std::string {
      const auto w = std::ranges::find(w_.loads, id, &WindowLoad::load);
      if (w == w_.loads.end()) return "";
      return elements_.at(key_of(*w, p));
    };
    define_zeros_elsewhere();
    std::vector<Accumulator> sums = accumulators_;
    for (Accumulator& sum : sums) {
      for (std::size_t i = 0; i < w_.coarsened_axes.size(); ++i) sum.name += fmt::format("[{}]", p[i]);
      sum.name += fmt::format("[{}]", lane);
    }
    emitter_.accumulate(sums);
    emitter_.load_text = nullptr;
    emitter_.rewind(mark);
  }

  void finish_results() {
    std::string index;
    for (const CoarsenedAxis& walk : w_.coarsened_axes) {
      const std::string i = writer_.unique("i");
      writer_.open_unrolled(i, walk.steps);
      emitter_.bind(walk.axis, fmt::format("({} + {})", first_of_.at(walk.axis), i));
      if (!walk.enough)
        writer_.line(
            fmt::format("if ({} + {} >= {}) break;", first_of_.at(walk.axis), i, text(pool_.extent(walk.axis))));
      index += fmt::format("[{}]", i);
    }
    std::map<ExprId, std::string> sums;
    for (const Accumulator& sum : accumulators_) sums[sum.reduction] = sum.name + index;
    emit_epilogue_vector(emitter_, graph_, w_.lane, w_.lanes, sums, {}, true);
    for (std::size_t i = 0; i < w_.coarsened_axes.size(); ++i) writer_.close();
  }

  const Kernel& original_;
  const NhwcStencil& w_;
  const Kernel& kernel_;
  const ExprPool& pool_;
  const Graph& graph_;
  const IndexExpr points_;  // points that number the threads
  KernelWriter writer_;
  ExprEmitter emitter_;
  std::string first_, vector_, point_;
  std::map<ExprId, std::string> staged_;
  std::map<std::uint32_t, std::string> first_of_;  // by coarsened axis
  std::vector<Accumulator> accumulators_;
  // Available vectors, in a loop over lanes; available elements, of one lane.
  std::map<Key, std::string> vectors_, elements_;
};

}  // namespace

KernelSource emit_nhwc_stencil(const Kernel& kernel, const NhwcStencil& stencil, const Graph& graph) {
  return NhwcStencilEmitter(kernel, stencil, graph).emit();
}

}  // namespace fusec
