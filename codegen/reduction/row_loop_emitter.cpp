#include "codegen/reduction/row_loop_emitter.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <set>

#include "analysis/kernel/loads.h"
#include "codegen/access/concat_loads.h"
#include "codegen/access/direct.h"
#include "codegen/access/vector_access.h"
#include "codegen/reduction/row_registers.h"
#include "ir/type.h"
#include "schedule/target/target.h"

namespace fusec {
namespace {

// Registers per thread for computation, in addition to kept values; and more for unaligned rows, symbolic lengths or
// kept scalars.
constexpr int kComputingInRow = 64, kUnalignedRowRegisters = 16;
// With only this many registers left, ptxas spills: for one tensor, for several, for comparisons with positions.
constexpr int kComputingOne = 32, kComputingSeveral = 40, kComputingPlaces = 48;
constexpr int kMaxRegisterElements = 64;  // words that a thread keeps as values
// Registers for each loop over operands with one value per plane, when planes end within vectors: ptxas keeps those
// ends.
constexpr int kEndsOfPlanes = 8;

}  // namespace

RowLoopEmitter::RowLoopEmitter(const Row& row, KernelWriter& writer, ExprEmitter& emitter)
    : row_(row), writer_(writer), emitter_(emitter), resident_row_(row.form, writer, emitter) {}

void RowLoopEmitter::plan_reuse(const std::vector<RowLoop>& loops) {
  const int parts = row_.layout.parts, threads = row_.layout.threads;
  if (row_.layout.blocks > 0) return plan_sequential(loops);
  RowRegisters plan = plan_row_registers(row_.form, row_.graph, loops, parts, threads);
  const auto in_shared_memory = [&](bool as_loaded) {
    return plan_row_in_shared_memory(row_.form, row_.graph, loops, parts, threads, shared_bytes_of_block(), as_loaded);
  };
  needs_spare_registers_ = needs_spare_registers(plan, loops);
  const auto of_planes = std::ranges::count_if(loops, [&](const RowLoop& loop) { return has_planes(loop); });
  ends_of_planes_ = kEndsOfPlanes * static_cast<int>(of_planes);
  code_of_iterations_ = 0;
  for (const RowLoop& loop : loops) code_of_iterations_ += code_of_element(row_.form, loop.roots) * loop.width;
  if (is_short_of_registers(plan, loops))
    if (auto shared = in_shared_memory(false)) plan = *std::move(shared);
  // The ends of unaligned rows, and of those with a length known only at launch, need more registers.
  if (row_.layout.reduction_group == ReductionGroup::kBlock && row_.layout.blocks_sharing_row() == 1 &&
      !row_.split.start && !has_length_of_launch())
    if (auto packed =
            plan_packed_row(row_.form, row_.graph, loops, parts, threads, static_cast<int>(tensors_along(loops)), plan))
      plan = *std::move(packed);
  keep(std::move(plan), loops);
  if (!resident_row_.in_shared_memory() || !tiles_ || !tiles_->lacks_room()) return;
  // 16-bit elements need half the memory in their storage type.
  auto smaller = in_shared_memory(true);
  if (smaller && !smaller->keeps_prefix_only && 4 * threads * smaller->shared_words < resident_row_.most_shared_bytes())
    keep(*std::move(smaller), loops);
}

void RowLoopEmitter::plan_sequential(const std::vector<RowLoop>& loops) {
  ahead_.reset();
  if (row_.layout.rows_ahead > 0) ahead_.emplace(row_.form, row_.layout, loops, writer_, emitter_);
  if (ahead_) ahead_->take_loads_of_rows();
  if (ahead_ && ahead_->empty()) ahead_.reset();
  const auto elsewhere = [this](ExprId load) { return ahead_ && ahead_->has(load); };
  constexpr int kMostWords = 128;
  RowRegisters plan = plan_sequential_rows(row_.form, row_.graph, loops, row_.layout.parts,
                                           ahead_ ? row_.layout.kept_words : kMostWords, elsewhere);
  if (ahead_) ahead_->take_shared_loads(plan.slot_of);
  keep(std::move(plan), loops);
}

void RowLoopEmitter::keep(RowRegisters plan, const std::vector<RowLoop>& loops) {
  keeps_rows_ = !plan.slots.empty();
  register_words_ = plan.words;
  blocks_planned_ = plan.blocks_at_once;
  keeps_elements_ = std::ranges::any_of(plan.slots, [](const RowRegisters::Slot& slot) { return slot.width == 1; });
  has_several_axes_ =
      std::ranges::any_of(loops, [](const RowLoop& loop) { return loop.axes.size() > (loop.width > 1 ? 2U : 1U); });
  resident_row_.keep(std::move(plan), row_.layout.threads);
  tiles_.reset();
  if (row_.layout.blocks == 0) plan_tiles(loops);
}

// True if the row length is known only at launch.
bool RowLoopEmitter::has_length_of_launch() const {
  const ExprPool& pool = row_.form.kernel.pool;
  return !point_count(pool, pool[row_.form.reductions.back()].axes).as_constant();
}

// Shared memory for kept rows, without the memory of the block reduction (kColumn: a result per thread). It is divided
// among the blocks of a multiprocessor. With a dynamic size, the longest row may use all of it.
std::int64_t RowLoopEmitter::shared_bytes_of_block() const {
  const bool alone = has_length_of_launch() || row_.layout.blocks_sharing_row() > 1 || row_.layout.threads >= 512;
  const bool by_columns = row_.layout.reduction_group == ReductionGroup::kColumn;
  const auto times = static_cast<int>(row_.form.reductions.size());
  const std::int64_t reducing = by_columns ? row_.layout.threads * bytes_of_partials(row_.form, times) : 0;
  return alone ? row_.shared_bytes - std::max<std::int64_t>(4096, reducing) : row_.shared_bytes * 5 / 8;
}

// True if kept values leave ptxas too few registers to compute, if the row is too long for registers, or if its loops
// are too long to unroll. Several tensors along the row need more registers.
bool RowLoopEmitter::is_short_of_registers(const RowRegisters& plan, const std::vector<RowLoop>& loops) const {
  if (!row_.form.segments.empty()) return false;
  if (plan.code > kMaxUnrolledInstructions) return true;
  if (row_.layout.reduction_group == ReductionGroup::kWarp) return false;
  if (row_.layout.reduction_group == ReductionGroup::kColumn)
    return plan.wanted + kComputingOne > kMultiprocessorRegisters / row_.layout.threads;
  if (plan.slots.empty()) return true;
  const int left = kMultiprocessorRegisters / row_.layout.threads - plan.words;
  if (left <= kComputingOne || (left <= kComputingInRow && needs_spare_registers_)) return true;
  // In loops that compare positions, ptxas may keep the results of the comparisons too.
  const int of_places = plan.words >= kMaxRegisterElements ? kComputingInRow : kComputingPlaces;
  if (row_.split.exact_ends && left <= of_places) return true;
  const int computing = row_.split.start ? kComputingInRow + kUnalignedRowRegisters : kComputingSeveral + 1;
  if (left >= computing + ends_of_planes_) return false;
  return tensors_along(loops) > 1;
}

// True for a case in which ptxas needs spare registers: blocks share a row, each thread keeps the maximum, and the
// loops read three tensors with a partial last iteration or 64-bit arithmetic.
bool RowLoopEmitter::needs_spare_registers(const RowRegisters& plan, const std::vector<RowLoop>& loops) const {
  const auto ends_early = [&](const RowLoop& loop) {
    return !proves_multiple_of(point_count(row_.form.kernel.pool, loop.axes), row_.layout.parts * loop.width, bounds());
  };
  return row_.layout.blocks_sharing_row() > 1 && plan.words >= kMaxRegisterElements &&
         (reductions_of_64_bits() > 0 || std::ranges::any_of(loops, ends_early)) && tensors_along(loops) > 2;
}

// True if the loop reads an operand at a quotient of the lane's position.
bool RowLoopEmitter::has_planes(const RowLoop& loop) const {
  if (loop.width == 1) return false;
  const ExprPool& pool = row_.form.kernel.pool;
  const Variable lane{Variable::Kind::kAxis, loop.axes.back()};
  return std::ranges::any_of(outside_reductions(row_.form, loop.roots), [&](ExprId id) {
    if (pool[id].op != ExprOp::kLoad) return false;
    const IndexExpr position = position_of(row_.graph, pool, id);
    return mentions(position, lane) && !coefficient_of(position, lane);
  });
}

std::size_t RowLoopEmitter::tensors_along(const std::vector<RowLoop>& loops) const {
  std::set<ValueId> along;
  for (const RowLoop& loop : loops)
    for (const ExprId id : outside_reductions(row_.form, loop.roots)) {
      const ExprNode& n = row_.form.kernel.pool[id];
      const auto runs = [&](std::uint32_t axis) { return emitter_.depends_on(id, axis); };
      if (n.op == ExprOp::kLoad && std::ranges::any_of(loop.axes, runs)) along.insert(n.source);
    }
  return along.size();
}

void RowLoopEmitter::begin(Place place) {
  place_ = std::move(place);
  if (row_.split.start) find_vectors();
  if (tiles_)
    tiles_->begin({.first = first_,
                   .last = last_,
                   .thread = row_.layout.blocks_sharing_row() > 1 ? "threadIdx.x" : place_.part,
                   .block = place_.block});
}

// Plans tiles for misaligned operands. There are none if registers are short (ptxas would spill), if the row fills
// shared memory, or if a thread has a row alone (an operand shared by rows is then one element per warp).
void RowLoopEmitter::plan_tiles(const std::vector<RowLoop>& loops) {
  if (row_.layout.parts == 1 || resident_row_.keeps_prefix_only() || !row_.form.segments.empty() ||
      kMultiprocessorRegisters / row_.layout.threads < register_words_ + kComputingInRow + kUnalignedRowRegisters)
    return;
  int iterations = row_.layout.parts * 64;
  for (const RowLoop& loop : loops)
    if (loop.width > 1) iterations = std::min(iterations, resident_row_.iterations_of(loop.axes));
  tiles_.emplace(BroadcastTiles::Row{.form = row_.form,
                                     .graph = row_.graph,
                                     .layout = row_.layout,
                                     .split = row_.split,
                                     .iterations = iterations,
                                     .most_bytes = shared_bytes_of_block() - resident_row_.most_shared_bytes(),
                                     .first_byte = resident_row_.most_shared_bytes()},
                 loops, emitter_);
}

int RowLoopEmitter::reductions_of_64_bits() const {
  const ExprPool& pool = row_.form.kernel.pool;
  return static_cast<int>(
      std::ranges::count_if(row_.form.reductions, [&](ExprId r) { return is_wide(pool[pool[r].args[0]].type); }));
}

int RowLoopEmitter::blocks_at_once() const {
  if (blocks_planned_ > 0) return blocks_planned_;
  if (row_.layout.blocks > 0) return row_.layout.blocks_at_once;
  constexpr int kRegistersOfQuarter = kMultiprocessorRegisters / 4, kWide = 16, kFewest = 64, kBarrierRegisters = 8,
                kOf64Bits = 40, kSeveralOf64Bits = 48;
  constexpr int kNarrowThreads = 1024, kWideThreads = 768;  // with 64 registers each, and with 80
  if (row_.layout.chunks > 1 || !keeps_rows_)
    return std::max(1, (writer_.wide() || row_.split.start ? kWideThreads : kNarrowThreads) / row_.layout.threads);
  const int of_32_bits = kComputingInRow +
                         (row_.split.start || keeps_elements_ || has_length_of_launch() ? kUnalignedRowRegisters : 0) +
                         (has_tiles() ? register_words_ / 2 : 0) +
                         (ends_of_planes_ > kEndsOfPlanes ? ends_of_planes_ : 0) + (writer_.wide() ? kWide : 0) +
                         (row_.layout.resident_blocks > 1 || needs_spare_registers_ ? kBarrierRegisters : 0);
  const int of_64_bits = reductions_of_64_bits();
  const int computing = of_32_bits + (of_64_bits > 1 ? kSeveralOf64Bits : of_64_bits * kOf64Bits);
  const int of_thread = std::max(kFewest, (register_words_ + computing + 7) / 8 * 8);
  const int warps = 4 * (kRegistersOfQuarter / (32 * of_thread));  // rounded down per quarter of a multiprocessor
  return std::max(1, 32 * warps / row_.layout.threads);
}

bool RowLoopEmitter::keeps_too_many_registers() const {
  constexpr int kHalf = 1024, kPlaces = 40;  // of a multiprocessor's threads; registers in addition to kept values
  return row_.layout.reduction_group == ReductionGroup::kBlock && (keeps_elements_ || has_several_axes_) &&
         register_words_ + kPlaces > kMultiprocessorRegisters / kHalf;
}

RowLoop RowLoopEmitter::loop_over(const std::vector<std::uint32_t>& axes, std::vector<ExprId> roots) const {
  int width = axes == row_.split.reduction ? row_.split.reduction_width : 1;
  if (axes == row_.form.columns) width = row_.split.column_width;
  RowLoop loop{.axes = axes, .width = width, .roots = std::move(roots), .joins = width > 1 && !row_.split.start};
  if (width > 1 && row_.split.start) loop.vectors = simplify(floor_div(*row_.split.length, width), bounds());
  return loop;
}

// Declares where the whole vectors of an unaligned row begin and end. The remaining elements at its ends go to the
// first threads, one each.
void RowLoopEmitter::find_vectors() {
  const std::string type = writer_.index_type();
  const int width = row_.split.reduction_width;
  const IndexExpr& length = *row_.split.length;
  const IndexExpr end = simplify(*row_.split.start + length, bounds());
  const std::string stop = writer_.unique("stop");
  last_ = writer_.unique("last");
  edge_ = writer_.unique("edge");
  const std::string start = writer_.unique("start"), head = writer_.unique("head");
  first_ = writer_.unique("first");
  writer_.line("const {} {} = {}, {} = {};", type, start, emitter_.index(*row_.split.start), stop, emitter_.index(end));
  writer_.line("const {0} {1} = ({2} + {3}) >> {4}, {5} = {6} >> {4};  // whole vectors", type, first_, start,
               width - 1, std::countr_zero(static_cast<unsigned>(width)), last_, stop);
  const bool one_at_least = range_of(length, bounds()).min >= 2 * width;
  const std::string before = fmt::format("{} * {}", first_, width);
  const std::string vectors_end = one_at_least ? last_ : fmt::format("max({}, {})", first_, last_);
  writer_.line("const {} {} = {} - {};  // elements before them", type, head,
               one_at_least ? before : fmt::format("min({}, {})", before, stop), start);
  writer_.line("const {0} {1} = {2} < {3} ? {4} + {2} : {5} * {6} + ({2} - {3});", type, edge_, place_.part, head,
               start, vectors_end, width);
  edge_condition_ = fmt::format("{} < {}", edge_, stop);
  if (place_.chunks > 1) edge_condition_ = fmt::format("{} == 0 && {}", place_.block, edge_condition_);
}

void RowLoopEmitter::over_row(const RowLoop& loop, std::string_view preferred_name, const Visit& visit) {
  if (tiles_ && loop.width > 1) tiles_->wait_for(loop.roots);
  emitter_.positions_rise = true;
  emit_iterations(loop, preferred_name, visit, 0);
  const int register_iterations = resident_row_.iterations_of(loop.axes);
  if (resident_row_.keeps_prefix_only() && register_iterations > 0)
    emit_iterations(loop, preferred_name, visit, register_iterations);
  emitter_.positions_rise = false;
  if (loop.width > 1 && row_.split.start) edge_iteration(loop, visit);
  resident_row_.loop_is_done(loop);
}

void RowLoopEmitter::load_row_invariants(const std::vector<RowLoop>& loops) {
  for (RowLoop loop : loops) {
    const std::vector<ExprId> shared = resident_row_.row_invariant_loads(loop.roots);
    if (shared.empty() || resident_row_.iterations_of(loop.axes) == 0) continue;
    loop.roots = shared;
    emit_iterations(loop, "k", {.element = nullptr}, 0);
    resident_row_.loop_is_done(loop);
  }
}

// Emits the first iterations, from which something is kept (or all iterations); `prefix_iterations`: the remaining
// ones.
void RowLoopEmitter::emit_iterations(const RowLoop& loop, std::string_view preferred_name, const Visit& visit,
                                     int prefix_iterations) {
  const ExprEmitter::Mark outside = emitter_.mark();
  std::vector<std::uint32_t> axes = loop.axes;
  if (loop.width > 1) axes.pop_back();
  open_loop(loop, axes, preferred_name, prefix_iterations);
  if (loop.width > 1) {
    vector_iteration(loop, visit);
  } else {
    resident_row_.read_elements(loop.roots);
    resident_row_.define_values(loop.roots, resident_row_.iteration());
    if (visit.element) visit.element("");
    emitter_.load_text = nullptr;
  }
  emitter_.rewind(outside);
  close_loop();
}

void RowLoopEmitter::vector_iteration(const RowLoop& loop, const Visit& visit) {
  VectorLoads loads(emitter_, row_.graph, loop.axes.back(), loop.width);
  loads.unaligned = row_.split.start.has_value();
  loads.steps = true;
  lane_ = writer_.unique("e");
  loads.elsewhere = [this](ExprId id) { return (tiles_ && tiles_->has(id)) || (ahead_ && ahead_->has(id)); };
  loads.declare(declare_joined(loop), lane_, [this](ExprId id, const auto& fill) { return words_elsewhere(id, fill); });
  if (ahead_ && visit.element && loop.axes == row_.form.columns)
    ahead_->copy_later_row(resident_row_.iteration(), vector_);
  emitter_.emit_independent(loop.roots);
  visit.before();
  if (visit.element) over_vector(loop, loop.roots, visit.element);
  visit.after();
  emitter_.load_text = nullptr;
}

// The words of a load that shared memory or registers keep; "" for others.
std::string RowLoopEmitter::words_elsewhere(ExprId load, const std::function<void(const std::string& place)>& fill) {
  if (tiles_ && tiles_->has(load)) return tiles_->words_of(load, resident_row_.iteration(), vector_);
  if (ahead_ && ahead_->has(load)) return ahead_->words_of(load, resident_row_.iteration());
  return resident_row_.words_of(load, fill);
}

// Declares the words of concatenated operands, with lanes as their elements. Returns the other loads.
std::vector<ExprId> RowLoopEmitter::declare_joined(const RowLoop& loop) {
  const ExprPool& pool = row_.form.kernel.pool;
  const std::uint32_t lane_axis = loop.axes.back();
  const auto is_joined = [&](ExprId id) {
    return loop.joins && is_concat_vector(row_.graph, pool, id, lane_axis, loop.width);
  };
  std::vector<ExprId> loads = resident_row_.loads_of(loop.roots, is_joined);
  for (const ExprId id : loads) {
    if (!is_joined(id)) continue;
    const DType dtype = loaded_dtype(pool, id);
    const auto fill = [&](const std::string& to) {
      writer_.line("{} = {};", to, concat_words(emitter_, id, lane_axis, loop.width));
    };
    std::string words = resident_row_.words_of(id, fill);
    if (words.empty()) {
      words = writer_.unique(emitter_.plain_name(id) + "_w");
      fill(fmt::format("const Words<{}> {}", bits(dtype) * loop.width / 32, words));
    }
    emitter_.define(id, element_text(dtype, words, lane_, writer_));
  }
  std::erase_if(loads, is_joined);
  return loads;
}

void RowLoopEmitter::over_vector(const RowLoop& loop, const std::vector<ExprId>& roots,
                                 const std::function<void(const std::string& lane)>& element) {
  writer_.open_unrolled(lane_, loop.width);
  const ExprEmitter::Mark lanes = emitter_.mark();
  emitter_.bind(loop.axes.back(), lane_);
  resident_row_.define_values(roots, fmt::format("{} * {} + {}", resident_row_.iteration(), loop.width, lane_));
  element(lane_);
  emitter_.rewind(lanes);
  writer_.close();
}

// Unaligned rows: emits the elements before the first whole vector and after the last one, one per thread.
void RowLoopEmitter::edge_iteration(const RowLoop& loop, const Visit& visit) {
  const ExprEmitter::Mark outside = emitter_.mark();
  const bool keeps = resident_row_.iterations_of(loop.axes) > 0;
  if (keeps) resident_row_.declare_edges(loop.roots);
  writer_.open("if ({})", edge_condition_);
  const std::uint32_t vector_axis = loop.axes[loop.axes.size() - 2], lane_axis = loop.axes.back();
  if (row_.split.exact_ends) {
    const std::string vector = writer_.unique("edge_vector"), lane = writer_.unique("edge_lane");
    writer_.line("const {0} {1} = {2} / {3}, {4} = {2} % {3};", writer_.index_type(), vector, edge_, loop.width, lane);
    emitter_.bind(vector_axis, vector);
    emitter_.bind(lane_axis, lane);
  } else {
    emitter_.bind(vector_axis, "0");
    emitter_.bind(lane_axis, edge_);
  }
  if (keeps) resident_row_.enter_edge();
  resident_row_.read_elements(loop.roots);
  resident_row_.define_values(loop.roots, "");
  visit.element("");
  emitter_.load_text = nullptr;
  resident_row_.leave();
  writer_.close();
  emitter_.rewind(outside);
}

// Opens `for (k = lane; k < count; k += parts)` and binds the loop's axes except the lane axis of a vector. The loop
// stays open.
void RowLoopEmitter::open_loop(const RowLoop& loop, const std::vector<std::uint32_t>& axes,
                               std::string_view preferred_name, int prefix_iterations) {
  const std::vector<std::uint32_t>& all_axes = loop.axes;
  const int iterations_at_once =
      unroll_factor(code_of_element(row_.form, loop.roots) * loop.width, code_of_iterations_);
  const std::string unroll = fmt::format("#pragma unroll {}", iterations_at_once);
  const bool floats = row_.split.start && axes.size() < all_axes.size();  // steps through the vectors of the tensor
  const IndexExpr count = point_count(row_.form.kernel.pool, axes);
  const std::string limit = floats ? last_ : emitter_.index_text().tight(count);
  vector_ = writer_.unique(preferred_name);
  condition_open_ = false;
  const int iterations = prefix_iterations == 0 ? resident_row_.iterations_of(all_axes) : 0;
  std::string first =
      place_.chunks > 1 ? fmt::format("{} * {} + {}", place_.block, row_.layout.parts, place_.part) : place_.part;
  if (floats && first_ != "0") first = first_ + " + " + first;
  if (iterations > 0) {
    resident_row_.declare_arrays(all_axes);
    resident_row_.enter(writer_.unique("turn"));
    const std::int64_t whole = iterations_without_end(count, floats);
    if (resident_row_.in_shared_memory() && whole == 0)
      open_iterations_of_launch(first, limit, iterations, unroll);
    else
      open_counted_iterations(first, limit, iterations, whole, floats, unroll);
  } else {
    if (prefix_iterations > 0) first += fmt::format(" + {}", prefix_iterations * row_.layout.parts);
    // Keeps several loads in flight if there are enough iterations.
    const std::int64_t stride = std::int64_t{row_.layout.parts} * place_.chunks;
    const std::string type = writer_.index_type();
    const auto known = count.as_constant();
    if (!floats && prefix_iterations == 0 && known && *known <= stride) {
      writer_.open("if (const {0} {1} = {2}; {1} < {3})", type, vector_, first, limit);
    } else {
      if (value_at_hint(count, bounds().symbols) >= 8 * stride) writer_.line(unroll);
      const bool fewer = place_.chunks > 1 && place_.chunk_count != std::to_string(place_.chunks);
      writer_.open("for ({0} {1} = {2}; {1} < {3}; {1} += {4})", type, vector_, first, limit,
                   fewer ? fmt::format("{} * {}", row_.layout.parts, place_.chunk_count) : std::to_string(stride));
    }
  }
  bind_flat(emitter_, axes, vector_, "cdefghuvw");
}

// If the loop keeps something in registers, it has a constant trip count and is unrolled; the last iterations may be
// past the end.
void RowLoopEmitter::open_counted_iterations(const std::string& first, const std::string& limit, int iterations,
                                             std::int64_t whole, bool floats, const std::string& unroll) {
  // Unrolling would load shared-memory elements into registers too early.
  writer_.line(resident_row_.in_shared_memory() ? unroll : "#pragma unroll");
  writer_.open("for (int {0} = 0; {0} < {1}; ++{0})", resident_row_.iteration(), iterations);
  const std::string now = fmt::format("{} + {} * {}", first, resident_row_.iteration(), row_.layout.parts);
  // In 64 bits, iterations have a constant distance for all accesses, which becomes an immediate offset.
  const bool far = floats && !row_.split.exact_ends && !writer_.wide();
  writer_.line(far ? fmt::format("const long long {} = (long long)({}) + {} * {};", vector_, first,
                                 resident_row_.iteration(), row_.layout.parts)
                   : fmt::format("const {} {} = {};", writer_.index_type(), vector_, now));
  condition_open_ = whole < iterations;
  if (!condition_open_) return;
  // For lengths known at launch, compares the constant iteration with the remaining length. The comparison is
  // recomputed where it is needed; others would be kept in registers, as packed bits.
  const std::string before = first.find(' ') != std::string::npos ? "(" + first + ")" : first;
  const std::string inside = has_length_of_launch() ? fmt::format("{} * {} < {} - {}", resident_row_.iteration(),
                                                                  row_.layout.parts, limit, before)
                                                    : fmt::format("{} < {}", far ? now : vector_, limit);
  writer_.open(whole > 0 ? fmt::format("if ({} < {} || {})", resident_row_.iteration(), whole, inside)
                         : fmt::format("if ({})", inside));
}

// For rows in shared memory with a length known at launch: as many iterations as the row needs.
void RowLoopEmitter::open_iterations_of_launch(const std::string& first, const std::string& limit, int iterations,
                                               const std::string& unroll) {
  const std::string within =
      resident_row_.keeps_prefix_only() ? fmt::format("{} < {} && ", resident_row_.iteration(), iterations) : "";
  writer_.line(unroll);
  writer_.open("for ({0} {1} = {2}, {3} = 0; {4}{1} < {5}; {1} += {6}, ++{3})", writer_.index_type(), vector_, first,
               resident_row_.iteration(), within, limit, row_.layout.parts);
}

// The number of iterations in which every thread has an element.
std::int64_t RowLoopEmitter::iterations_without_end(const IndexExpr& count, bool floats) const {
  const int width = row_.split.reduction_width;
  const std::int64_t least =
      floats ? (range_of(*row_.split.length, bounds()).min - (width - 1)) / width : range_of(count, bounds()).min;
  return std::max<std::int64_t>(least, 0) / row_.layout.parts;
}

void RowLoopEmitter::close_loop() {
  if (condition_open_) writer_.close();
  condition_open_ = false;
  writer_.close();
  resident_row_.leave();
}

}  // namespace fusec
