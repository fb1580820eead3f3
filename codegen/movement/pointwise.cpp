#include "codegen/movement/pointwise.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analysis/kernel/axis_merging.h"
#include "codegen/access/direct.h"
#include "codegen/access/vector_access.h"
#include "codegen/access/vector_width.h"
#include "codegen/access/vectorized_loads.h"
#include "codegen/expr/formula_text.h"
#include "codegen/movement/loop_interchange.h"
#include "codegen/movement/split_axes.h"
#include "codegen/movement/staged_copy_emitter.h"
#include "codegen/movement/thread_coarsening.h"
#include "codegen/movement/unaligned_pointwise.h"
#include "codegen/movement/unaligned_pointwise_emitter.h"
#include "ir/type.h"
#include "schedule/kernel_forms.h"
#include "schedule/movement/access_samples.h"
#include "schedule/movement/concat_slices.h"
#include "schedule/movement/staged_copy.h"

namespace fusec {
namespace {

// How the points are given to threads: groups of `width` neighbours, `turns` groups to a thread, a block's threads
// apart.
struct GroupShape {
  int width = 1;
  int iterations = 1;
  int threads = kPointwiseThreads;
};

// Loads of 16 bytes that a thread has on their way before it needs the first.
constexpr std::int64_t kLoadsInFlight = 4;

// As many groups to a thread as keep that many loads in flight, where every multiprocessor has a block of threads all
// the same; and smaller blocks, where there are too few of them.
GroupShape shape_of(const Kernel& merged, const Graph& graph, const Target& target, int width) {
  GroupShape shape{.width = width};
  std::int64_t loads = 0;
  for (const ExprId id : reachable(merged.pool, roots_of(merged))) {
    const ExprNode& n = merged.pool[id];
    if (n.op == ExprOp::kLoad) loads += std::max(1, bits(n.dtype) * width / 128);
  }
  const IndexExpr count = point_count(merged.pool, merged.outputs[0].axes);
  const std::int64_t groups = value_at_hint(count, graph.symbols) / width;
  constexpr int kSmallBlock = 128;
  const std::int64_t least = std::int64_t{target.multiprocessors} * kSmallBlock;
  while (loads > 0 && shape.iterations * 2 * loads <= kLoadsInFlight && groups / (shape.iterations * 2) >= least)
    shape.iterations *= 2;
  if (groups / shape.iterations < std::int64_t{target.multiprocessors} * kPointwiseThreads) shape.threads = kSmallBlock;
  return shape;
}

// The same for other numbers of threads and groups, where there are enough groups for a block on every multiprocessor.
GroupShape choose_shape(const GroupShape& predicted, const Kernel& merged, const Graph& graph, const Target& target,
                        ScheduleChoice& choices) {
  std::vector<GroupShape> shapes = {predicted};
  const std::int64_t groups =
      value_at_hint(point_count(merged.pool, merged.outputs[0].axes), graph.symbols) / predicted.width;
  for (const int iterations : {1, 2, 4})
    for (const int threads : {128, 256, 512}) {
      if (iterations == predicted.iterations && threads == predicted.threads) continue;
      if (groups < std::int64_t{target.multiprocessors} * iterations * threads) continue;
      shapes.push_back({.width = predicted.width, .iterations = iterations, .threads = threads});
    }
  std::vector<std::string> candidates;
  for (const GroupShape& shape : shapes)
    candidates.push_back(
        fmt::format("{} threads with {} vectors of {} each", shape.threads, shape.iterations, shape.width));
  return shapes[choices.take(std::move(candidates))];
}

// The vectors of all iterations, loaded before the first result is computed: an array for each load.
using PreloadedWords = std::map<ExprId, std::string>;

// Bytes from which on a tensor is no guest of the cache: the next kernel would not find it there.
std::int64_t stream_bytes(const Target& target) {
  return target.l2_bytes;
}

// The lanes of one group: loads of whole vectors (or those that are `kept`), a loop over the lanes, stores of whole
// vectors.
void emit_vector(ExprEmitter& emitter, const Kernel& kernel, const Graph& graph, const Target& target, int width,
                 const PreloadedWords& preloaded, const std::string& iteration) {
  KernelWriter& writer = emitter.writer();
  const std::uint32_t lane_axis = kernel.outputs[0].axes.back();
  VectorLoads loads(emitter, graph, lane_axis, width);
  loads.stream_from = stream_bytes(target);
  loads.parts_of_words = true;
  const std::string e = writer.unique("e");
  loads.declare(roots_of(kernel), e, [&](ExprId load, const VectorLoads::Fill&) {
    const auto it = preloaded.find(load);
    return it == preloaded.end() ? std::string() : element(it->second, iteration).text();
  });
  std::vector<VectorStore> stores;
  for (const KernelOutput& output : kernel.outputs)
    stores.push_back(VectorStore::plan(emitter, output, lane_axis, width,
                                       bytes_at_hint(output.type, graph.symbols) >= stream_bytes(target)));
  emitter.emit_independent(roots_of(kernel));
  writer.open_for("int", e, width, 0);
  const ExprEmitter::Mark mark = emitter.mark();
  emitter.bind(lane_axis, e);
  const std::vector<std::string> values = emitter.emit(roots_of(kernel));
  for (std::size_t i = 0; i < stores.size(); ++i) stores[i].put(emitter, e, values[i]);
  emitter.rewind(mark);
  writer.end();
  for (VectorStore& store : stores) store.finish(emitter);
  emitter.load_text = nullptr;
}

// All lanes that are left, one by one.
void emit_tail(ExprEmitter& emitter, const Kernel& kernel, const std::string& group, const IndexExpr& count,
               int width) {
  KernelWriter& writer = emitter.writer();
  const std::uint32_t lane_axis = kernel.outputs[0].axes.back();
  const std::string e = writer.unique("e");
  writer.open_for("int", e, CExpr(emitter.index_text().tight(count)) - CExpr(group) * width);
  const ExprEmitter::Mark mark = emitter.mark();
  emitter.bind(lane_axis, e);
  store_scalars(emitter, emitter.emit(roots_of(kernel)));
  emitter.rewind(mark);
  writer.end();
}

class Vectorized {
 public:
  Vectorized(const Kernel& merged, const Graph& graph, const Target& target, GroupShape shape)
      : graph_(graph),
        target_(target),
        shape_(shape),
        inner_(merged.pool.extent(merged.outputs[0].axes.back())),
        tail_(!proves_multiple_of(inner_, shape.width, merged.pool.bounds())),
        kernel_(split_last_axis(merged, shape.width)),
        outer_(kernel_.outputs[0].axes.begin(), kernel_.outputs[0].axes.end() - 1),
        groups_(point_count(kernel_.pool, outer_)),
        writer_(graph, needs_wide_index(merged, graph, groups_ * shape.width) ||
                           needs_wide_index(kernel_, graph, groups_ * shape.width + shape.width)),
        emitter_(kernel_, writer_) {}

  KernelSource emit() {
    const int each = shape_.threads * shape_.iterations;
    if (shape_.iterations == 1) {
      const std::string group = open_flat_threads(writer_, emitter_.index_text(), groups_, shape_.threads);
      emit_group(group, {}, "");
    } else {
      const std::string first = writer_.declared("const " + writer_.index_type(), "t", flat_thread(writer_, each));
      const PreloadedWords preloaded = load_iterations(first);
      open_iterations(
          first,
          [&](const std::string& group, const std::string& iteration) { emit_group(group, preloaded, iteration); },
          tail_ ? IndexExpr(0) : groups_);
    }
    writer_.tidy();
    KernelSource source = writer_.finish({}, shape_.threads, one_block_is_enough() ? 1 : 0);
    source.work = fmt::format("A thread makes {} neighbouring elements", shape_.width);
    if (shape_.iterations > 1) source.work += fmt::format(" at each of {} places", shape_.iterations);
    source.work += ".";
    source.grid[0] = simplify(ceil_div(groups_, each), kernel_.pool.bounds());
    source.unaligned_vectors = tail_;
    return source;
  }

 private:
  // ptxas spills a few registers for more blocks at a time, unless it is told that one is enough: of loads that are
  // guarded, and of many whose words hold several elements each.
  bool one_block_is_enough() const {
    constexpr int kManyRegisters = 44;
    int registers = 0;
    for (const ExprId id : reachable(kernel_.pool, roots_of(kernel_))) {
      const ExprNode& n = kernel_.pool[id];
      if (n.op != ExprOp::kLoad) continue;
      if (n.args[0] != kNoExpr) return true;
      if (bits(n.dtype) < 32) registers += bits(n.dtype) * shape_.width / 32;
    }
    return registers > kManyRegisters;
  }

  // `for (turn) { const int group = ...; if (group < limit) {` unless every group that the grid has is within the
  // limit: the grid is made for all groups, of which fewer are whole vectors where there is a tail. A limit of 0 is
  // none.
  template <class Body>
  void open_iterations(const std::string& first, Body body, const IndexExpr& limit) {
    const std::string iteration = writer_.unique("turn");
    writer_.open_for("int", iteration, shape_.iterations, 0);
    const std::string group =
        writer_.declared("const " + writer_.index_type(), "group", CExpr(first) + CExpr(iteration) * shape_.threads);
    const int each = shape_.threads * shape_.iterations;
    const bool whole = limit.is(0) || (!tail_ && proves_multiple_of(limit, each, kernel_.pool.bounds()));
    writer_.open_if(whole ? CExpr("true") : CExpr(group) < emitter_.index_text().tight(limit));
    const ExprEmitter::Mark mark = emitter_.mark();
    body(group, iteration);
    emitter_.rewind(mark);
    writer_.end();
    writer_.end();
  }

  // The vectors of every turn, into arrays.
  PreloadedWords load_iterations(const std::string& first) {
    VectorLoads loads(emitter_, graph_, kernel_.outputs[0].axes.back(), shape_.width);
    loads.stream_from = stream_bytes(target_);
    loads.parts_of_words = true;
    const ExprEmitter::Mark mark = emitter_.mark();
    for (const std::uint32_t axis : outer_) emitter_.bind(axis, "anywhere");  // to ask which loads are vectors
    PreloadedWords preloaded;
    for (const auto& [load, type] : loads.vector_loads(roots_of(kernel_))) {
      preloaded[load] = writer_.unique(emitter_.plain_name(load) + "_w");
      writer_.declare_array(type, preloaded[load], shape_.iterations);
    }
    emitter_.rewind(mark);
    // Where the last group is no whole one, its elements are read one by one.
    const IndexExpr whole_groups = tail_ ? simplify(floor_div(inner_, shape_.width), kernel_.pool.bounds()) : groups_;
    writer_.use("words");
    open_iterations(
        first,
        [&](const std::string& group, const std::string& iteration) {
          bind_flat(emitter_, outer_, group);
          loads.declare(roots_of(kernel_), "0", [&](ExprId load, const VectorLoads::Fill& fill) {
            fill(element(preloaded.at(load), iteration).text());
            return preloaded.at(load);
          });
          emitter_.load_text = nullptr;
        },
        whole_groups);
    return preloaded;
  }

  void emit_group(const std::string& group, const PreloadedWords& preloaded, const std::string& iteration) {
    bind_flat(emitter_, outer_, group);
    if (!tail_) {
      emit_vector(emitter_, kernel_, graph_, target_, shape_.width, preloaded, iteration);
      return;
    }
    const ExprEmitter::Mark mark = emitter_.mark();
    writer_.open_if(CExpr(group) * shape_.width + shape_.width <= emitter_.index_text().tight(inner_));
    emit_vector(emitter_, kernel_, graph_, target_, shape_.width, preloaded, iteration);
    emitter_.rewind(mark);
    writer_.open_else();
    emit_tail(emitter_, kernel_, group, inner_, shape_.width);
    emitter_.rewind(mark);
    writer_.end();
  }

  const Graph& graph_;
  const Target& target_;
  const GroupShape shape_;
  const IndexExpr inner_;
  const bool tail_;
  const Kernel kernel_;
  const std::vector<std::uint32_t> outer_;
  const IndexExpr groups_;
  KernelWriter writer_;
  ExprEmitter emitter_;
};

// Sectors for a point that all results take.
double sectors_of_stores(const Kernel& kernel) {
  double bytes = 0;
  for (const KernelOutput& output : kernel.outputs) bytes += bits(output.type.dtype) / 8.0;
  return bytes / 32;
}

// A schedule with more instructions must need at most this share of the sectors of the alternative; one with equal
// sectors at most this share of its accesses.
constexpr double kBetterSectors = 0.87, kFewerAccesses = 0.9;

// A copy through shared memory must take at most this share of the predicted time of the alternative.
constexpr double kFaster = 0.95;

// Bank conflicts, for an access to a tile, that hardly count.
constexpr double kFewConflicts = 0.3;

// Counted instructions of each way to move elements.
constexpr double kInstructionsOneByOne = 20;  // an element alone, and kInstructionsOfAxis for each axis of its position
constexpr double kInstructionsOfAxis = 12;
constexpr double kInstructionsOfVector = 40;   // a vector
constexpr double kInstructionsOfWindow = 200;  // a window of unaligned words
constexpr double kMostInWindows = 25;          // an element of a window, at most

// Whether a staged copy with bank conflicts or small tiles is still better: the alternative reads about `otherwise`
// sectors for a point, many more.
bool better_in_tiles(const StagedCopy& tiles, const Kernel& merged, double otherwise) {
  double least = 0;
  for (const ExprId id : reachable(merged.pool, roots_of(merged)))
    if (merged.pool[id].op == ExprOp::kLoad) least += bits(merged.pool[id].dtype) / 256.0;
  const double stores = sectors_of_stores(merged), worse = tiles.conflicts > kFewConflicts ? 4 : 2;
  return otherwise + stores > worse * (least + stores);
}

KernelSource schedule_pointwise(const Kernel& given, const Graph& graph, const Target& target,
                                ScheduleChoice& choices) {
  const auto with_slices = concat_slices_to_axes(given);
  const Kernel& kernel = with_slices ? *with_slices : given;
  const Kernel merged = merge_axes(kernel, graph);
  if (!merged.outputs[0].axes.empty())
    if (auto source = unaligned_planes(merged, graph, target, wanted_planes_width(merged))) return *std::move(source);
  const Kernel apart = split_axes(merged, graph);
  const Kernel split_merged = merge_axes(apart, graph);
  auto tiles = plan_staged_vectors(split_merged, graph, target);
  // A roll divides an axis that is merged above. Where the kernel also transposes, the axis is better kept alone.
  if (!tiles) tiles = plan_staged_vectors(drop_unit_axes(kernel), graph, target);
  const auto in_words = [&](double otherwise) -> std::optional<KernelSource> {
    const auto words = plan_staged_words(split_merged, graph, target);
    if (!words || words->time > kFaster * otherwise) return std::nullopt;
    return emit_staged_copy(*words, graph);
  };
  if (tiles && tiles->conflicts <= kFewConflicts && !tiles->few_points) {
    constexpr double kMuchFaster = 0.8;  // than vectors of 16 bytes
    const bool whole = tiles->width * bits(merged.outputs[0].type.dtype) >= 128;
    if (auto source = in_words(whole ? kMuchFaster * tiles->time : tiles->time / kFaster)) return *std::move(source);
    return emit_staged_copy(*tiles, graph);
  }
  const std::vector<std::uint32_t>& axes = merged.outputs[0].axes;
  int width = axes.empty() ? 1 : wanted_width(merged, graph);
  if (width > 1) {
    const IndexExpr& inner = merged.pool.extent(axes.back());
    // A tail is possible where the axis is the only one; else the extent must be a multiple.
    const bool flat = axes.size() == 1 && !writes_half_bytes(merged);
    while (width > 1 && !proves_multiple_of(inner, width, merged.pool.bounds()) && !flat) width /= 2;
    const auto points = inner.as_constant();
    if (points && *points < width) width = 1;
    if (width > 1 && !some_access_is_vector(merged, graph, width)) width = 1;
  }
  std::optional<UnalignedChoice> windows;
  if (!axes.empty()) windows = choose_unaligned_loads(kernel, merged, graph, wanted_width(merged, graph), width);
  const auto parts = axes.empty() ? std::nullopt : coarsen_threads(apart, graph, target);
  std::optional<Kernel> interchanged;
  bool coarsened = false;  // what parts of axes share is read once
  bool lines = false;      // all that is loaded lies as the results do
  if (!axes.empty()) {
    const VectorizedLoads loads = vectorize_loads(merged, graph, width);
    const bool contiguous = !windows && width > 1 && loads.apart.empty();
    lines = contiguous;
    if (contiguous) interchanged = interchange_short_lines(split_merged, graph, width);
    const double interchanged_sectors =
        interchanged ? sectors_of_loads(vectorize_loads(*interchanged, graph, width), graph, width) : 0;
    if (interchanged && interchanged_sectors > kBetterSectors * sectors_of_loads(loads, graph, width))
      interchanged.reset();
    // With at most two axes, rows that lie as the result's do are read in whole sectors.
    const bool in_lines = contiguous && !parts && !tiles && !interchanged && axes.size() < 3;
    double least = in_lines ? 0 : windows ? sectors_of_loads(*windows, graph) : sectors_of_loads(loads, graph, width);
    const bool fewer = parts && contiguous && parts->in_vectors && parts->sectors <= least &&
                       parts->accesses < kFewerAccesses * accesses_of_loads(loads, width);
    coarsened = parts && (fewer || parts->sectors < kBetterSectors * least);
    if (coarsened) least = parts->sectors;
    if (interchanged && !coarsened) least = interchanged_sectors;
    if (!in_lines) {
      const double of_element =
          coarsened    ? kInstructionsOfVector / parts->width
          : windows    ? std::min(kInstructionsOfWindow / wanted_width(merged, graph), kMostInWindows)
          : contiguous ? kInstructionsOfVector / width
                       : kInstructionsOneByOne + kInstructionsOfAxis * static_cast<double>(axes.size());
      const double otherwise = movement_time(least + sectors_of_stores(merged), of_element / 32, 0);
      const bool vectors = tiles && tiles->width > 1;
      if (auto words = in_words(vectors ? std::min(tiles->time, otherwise) : otherwise)) return *words;
      if (tiles && tiles->time < kFaster * otherwise) return emit_staged_copy(*tiles, graph);
    }
    if (tiles && better_in_tiles(*tiles, merged, least)) return emit_staged_copy(*tiles, graph);
  }
  if (coarsened)
    return Vectorized(parts->kernel, graph, target,
                      choose_shape(shape_of(parts->kernel, graph, target, parts->width), parts->kernel, graph, target,
                                   choices))
        .emit();
  if (windows) return emit_unaligned_pointwise(windows->kernel, graph, target, std::move(windows->plan));
  if (width > 1 && !(writes_half_bytes(merged) && width < 8)) {
    if (lines && !writes_half_bytes(merged)) width = std::min(width, coalesced_width(merged, graph));
    const Kernel& walked = interchanged ? *interchanged : merged;
    return Vectorized(walked, graph, target,
                      choose_shape(shape_of(walked, graph, target, width), walked, graph, target, choices))
        .emit();
  }
  return direct(writes_half_bytes(merged) ? kernel : merged, graph, target);
}

}  // namespace

KernelSource pointwise(const Kernel& kernel, const Graph& graph, const Target& target, ScheduleChoice& choices) {
  KernelSource source = schedule_pointwise(kernel, graph, target, choices);
  source.name = kernel_name(graph, kernel.nodes);
  if (source.schedule.kind != KernelKind::kStagedCopy) source.schedule = {KernelKind::kPointwise};
  std::vector<std::string> comment = kernel_comment(graph, kernel);
  for (std::string& line : formula_lines(graph, kernel)) comment.push_back(std::move(line));
  set_comment(source, std::move(comment));
  return source;
}

bool coarsens_in_vectors(const Kernel& given, const Graph& graph, const Target& target) {
  const auto with_slices = concat_slices_to_axes(given);
  const Kernel apart = split_axes(merge_axes(with_slices ? *with_slices : given, graph), graph);
  const auto parts = coarsen_threads(apart, graph, target);
  return parts && parts->in_vectors;
}

}  // namespace fusec
