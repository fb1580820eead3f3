#include "schedule/reduction/strided_reduction_threads.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "ir/type.h"
#include "schedule/reduction/strided_reduction_layout.h"

namespace fusec {
namespace {

constexpr int kMaxSharedPerPosition = 40 * 1024;  // bytes of a reduction's partial results, one per lane
constexpr int kMostOfAll = 46 * 1024;             // bytes of the partial results of all reductions
constexpr std::int64_t kElementsOfWarp = 2048;    // the most of the rows that a warp takes

int bytes_of_partial(const RowForm& form) {
  int bytes = 4;
  for (const ExprId r : form.reductions) bytes = std::max(bytes, bytes_of_partial(form, r));
  return bytes;
}

bool have_room(std::int64_t threads, int width, int partial, int all, std::int64_t more = 0) {
  const std::int64_t places = threads * width * 33 / 32 + more;
  return places * partial <= kMaxSharedPerPosition && places * all <= kMostOfAll;
}

int vectors_of_chunk(std::optional<RowOnePass::Kind> pass) {
  return !pass ? 8 : pass == RowOnePass::Kind::kExponentials ? 32 : 16;
}

// Limits chunks so that the partial results are small compared with the operands, and that each has enough vectors.
int limited_chunks(int chunks, std::int64_t vectors, const StridedReduction& plan, const StridedReductionWork& work) {
  const std::int64_t partials = work.length * work.bits / 8 / (std::int64_t{64} * work.partial),
                     joins = vectors / (vectors_of_chunk(work.pass) * plan.group_threads);
  return static_cast<int>(std::max<std::int64_t>(1, std::min({std::int64_t{chunks}, partials, joins})));
}

// The blocks that share a strip.
int chunks_of_strips(const StridedReduction& plan, const StridedReductionWork& work, bool on_chip,
                     const Target& target) {
  const int chunks = chunks_of_columns(rows_to_reduce(plan, work), target, on_chip ? 1 : 0);
  return limited_chunks(chunks, work.length * plan.lanes(), plan, work);
}

// Sets the threads of a group and the blocks of a strip for `lanes` lanes per line. False if shared memory has no room.
bool shape_strips(StridedReduction& plan, StridedReductionWork work, int lanes, const Target& target) {
  const std::int64_t line = value_at_hint(plan.line_stride, plan.form.kernel.pool.bounds().symbols);
  plan.rows = lanes * plan.width;
  work.groups *= (line + plan.rows - 1) / plan.rows;
  plan.group_threads = std::max(64, plan.rows);
  while (may_have_threads(2 * plan.group_threads, plan, work) &&
         work.length > std::int64_t{8} * plan.group_threads / lanes)
    plan.group_threads *= 2;
  plan.parts = plan.group_threads;
  const bool on_chip = work.length <= std::int64_t{kMaxRegisterVectors} * plan.group_threads / lanes;
  plan.chunks = chunks_of_strips(plan, work, on_chip, target);
  return may_have_threads(plan.group_threads, plan, work);
}

int narrowest_bits(const StridedReduction& plan) {
  int found = 64;
  for (const ExprId load : plan.loads) found = std::min(found, bits(plan.form.kernel.pool[load].dtype));
  for (const KernelOutput& output : plan.form.extra_outputs) found = std::min(found, bits(output.type.dtype));
  return found;
}

// Chooses the lanes per line: 32, or fewer if that gives as many strips, if there are fewer blocks than
// multiprocessors, or if registers cannot hold operands that are read twice. Blocks that share strips keep 32.
bool choose_strips(StridedReduction& plan, StridedReductionWork work, const Target& target) {
  constexpr int kFewestLines = 32, kLine = 64, kBytes = 256;  // bytes per line for aligned and unaligned lines
  if (work.length < kFewestLines) return false;               // shorter rows: one thread per row is better
  const ExprPool& pool = plan.form.kernel.pool;
  const std::int64_t line = value_at_hint(plan.line_stride, pool.bounds().symbols);
  const auto strips = [&](int lanes) { return (line + lanes * plan.width - 1) / (lanes * plan.width); };
  int wide = 32;
  while (wide > 4 && strips(wide / 2) == strips(wide)) wide /= 2;
  const bool even = proves_multiple_of(plan.line_stride, 8 * kLine / work.bits, pool.bounds());
  int lanes = wide;
  const auto vectors_held = [](int of_line) {
    return std::int64_t{kMaxRegisterVectors} * (kMaxStridedThreads / of_line);
  };
  const auto holds = [&] { return work.length <= vectors_held(lanes); };
  // Narrow elements next to wide ones also get whole sectors.
  while (lanes * plan.width * work.bits / 8 > (even ? kLine : kBytes) &&
         lanes * plan.width * narrowest_bits(plan) / 8 > kSectorBytes &&
         (work.groups * strips(lanes) < target.multiprocessors || (!plan.form.columns.empty() && !holds())))
    lanes /= 2;
  // One sector per line, if threads can then keep what they would read again.
  const bool of_sectors = proves_multiple_of(plan.line_stride, 8 * kSectorBytes / work.bits, pool.bounds());
  if (const int few = std::max(1, 8 * kSectorBytes / (work.bits * plan.width));
      of_sectors && !plan.form.columns.empty() && !holds() && few < lanes && work.length <= vectors_held(few))
    lanes = few;
  if (!shape_strips(plan, work, lanes, target)) return false;
  // Without per-line operands, threads with single elements keep the rows just as well.
  if (plan.chunks == 1 &&
      (plan.form.columns.empty() || (holds() && (plan.line_broadcasts || work.length > kOnChipOfColumns))))
    return true;
  return (plan.form.columns.empty() || work.length > kOnChipOfColumns) && shape_strips(plan, work, wide, target) &&
         plan.chunks > 1;
}

// The number of different alignments of lines to vectors.
int unlike_lines(const StridedReduction& plan) {
  return plan.width / static_cast<int>(std::gcd(*plan.line_stride.as_constant(), std::int64_t{plan.width}));
}

// Strips of unaligned lines with `bytes` bytes per line. The lines taken at once are a multiple of the number of
// different alignments. False if shared memory has no room.
bool shape_unaligned(StridedReduction& plan, StridedReductionWork work, int bytes, const Target& target) {
  constexpr int kIterations = 8;
  const std::int64_t line = *plan.line_stride.as_constant();
  const int unlike = unlike_lines(plan);
  const int most = bytes * 8 / work.bits - plan.width;  // without the vector that is shared with the next strip
  const std::int64_t strips = (line + most - 1) / most, wanted = (line + strips - 1) / strips;
  plan.rows = static_cast<int>(wanted + plan.width - 1) / plan.width * plan.width;
  work.groups *= strips;
  const bool once = work.stages == 1;
  int lines = unlike;
  while (lines * plan.lanes() < std::max(64, plan.rows)) lines += unlike;
  const auto may_be_more = [&] { return (lines + unlike) * plan.lanes() <= kMaxStridedThreads; };
  while (may_be_more() && work.length > (once ? kIterations : kMaxRegisterVectors) * std::int64_t{lines})
    lines += unlike;
  plan.parts = lines * plan.lanes();
  plan.group_threads = (plan.parts + 31) / 32 * 32;
  if (work.length < 2 * lines) return false;
  plan.chunks = once ? chunks_of_strips(plan, work, false, target) : 1;
  return may_have_threads(plan.group_threads, plan, work, target.strip_threads);
}

// Chooses the width of unaligned strips. Narrow strips are used only if no other blocks share them. Strips that are
// kept and stored must save more than combining threads of different alignments costs, must give every multiprocessor a
// block, and must be wide enough that few stores are partial vectors.
bool choose_unaligned(StridedReduction& plan, StridedReductionWork work, const Target& target) {
  constexpr int kWide = 1024, kNarrow = 256, kNarrowStored = 512, kMinIterations = 5;
  const bool stores = !plan.form.columns.empty();
  for (int bytes = kWide; bytes >= (stores ? kNarrowStored : kNarrow); bytes /= 2) {
    if (!shape_unaligned(plan, work, bytes, target) || plan.chunks > 1) continue;
    const std::int64_t strips = value_at_hint(plan.strips(), plan.form.kernel.pool.bounds().symbols);
    const bool are_worth_it = work.length * work.bits >= 16 * kMinIterations * (plan.parts / plan.lanes()) &&
                              work.groups * strips >= target.multiprocessors &&
                              plan.columns() * work.bits >= 8 * kNarrowStored / 2;
    if (!stores || are_worth_it) return true;
  }
  return !stores && shape_unaligned(plan, work, kWide, target);
}

// Takes as many lines at once as leave each thread `iterations` iterations and as fit in shared memory.
void take_lines(StridedReduction& plan, const StridedReductionWork& work, int iterations) {
  const auto take = [&](int lines) {
    plan.parts = lines * plan.lanes();
    plan.group_threads = (plan.parts + 31) / 32 * 32;
  };
  int lines = std::max(1, 64 / plan.lanes());
  while (2 * lines * plan.lanes() <= kMaxStridedThreads && work.length >= std::int64_t{2} * iterations * lines)
    lines *= 2;
  take(lines);
  while (lines > 1 && !may_have_threads(plan.group_threads, plan, work)) take(lines /= 2);
}

// One row per group, with enough elements per line for a vector per thread.
bool shape_long_lines(StridedReduction& plan, StridedReductionWork work, const Target& target) {
  constexpr int kIterations = 16;
  plan.rows = 1;
  plan.unaligned = true;  // its first and last vectors belong to neighbours too
  if (plan.lanes() > 2 * kMaxStridedThreads || !plan.form.columns.empty() || !plan.form.extra_outputs.empty() ||
      work.stages > 1)
    return false;
  work.groups *= value_at_hint(plan.strips(), plan.form.kernel.pool.bounds().symbols);
  take_lines(plan, work, kIterations);
  plan.group_threads = static_cast<int>(std::bit_ceil(static_cast<unsigned>(plan.group_threads)));
  plan.chunks = chunks_of_strips(plan, work, false, target);
  return true;
}

// Chunks of strips that are read again: enough for all multiprocessors, with several iterations each.
int chunks_for_all(const StridedReduction& plan, const StridedReductionWork& work, const Target& target) {
  constexpr int kIterations = 4;
  const std::int64_t most = work.length / (kIterations * (plan.parts / plan.lanes()));
  return static_cast<int>(std::max<std::int64_t>(1, std::min(most, target.multiprocessors / work.groups)));
}

// Strips of rows with several elements per line. The number of rows avoids sectors shared with other strips; many lines
// allow more lines at once. False if there are too few strips and blocks cannot share them.
bool shape_elements_per_line(StridedReduction& plan, StridedReductionWork work, const Target& target) {
  constexpr int kFewLanes = 32, kMostLanes = 512, kIterations = 16, kRegisterIterations = 8, kFewStrips = 6,
                kFewestElements = 32;
  // Shorter rows: one thread per row is better.
  if (work.length * plan.elements_per_line < kFewestElements) return false;
  const bool once = work.stages == 1 && (plan.form.columns.empty() || (work.again && plan.in_strips));
  const std::int64_t line = value_at_hint(plan.line_stride, plan.form.kernel.pool.bounds().symbols);
  const auto strips = [&](int columns) { return work.groups * ((line + columns - 1) / columns); };
  const auto are_enough = [&](int columns) { return once || kFewStrips * strips(columns) >= target.multiprocessors; };
  plan.rows = plan.width / std::gcd(plan.width, plan.elements_per_line);
  if (plan.elements_per_line * work.bits < 8 * kSectorBytes)
    plan.rows = columns_of_strip(plan, work) / plan.elements_per_line;
  const auto may_be_twice = [&] {
    return 2 * plan.lanes() <= kMostLanes && 2 * plan.columns() <= line && are_enough(2 * plan.columns());
  };
  // Narrow rows have fewer iterations, and registers for broadcast operands.
  const auto are_few = [&] { return plan.line_invariant_loads.empty() && plan.lanes() < kFewLanes; };
  while (may_be_twice() && (plan.columns() * work.bits % (8 * kSectorBytes) != 0 || are_few())) plan.rows *= 2;
  if (plan.lanes() > kMostLanes) return shape_long_lines(plan, work, target);
  if (!are_enough(plan.columns())) return false;
  work.groups = strips(plan.columns());
  take_lines(plan, work, once ? kIterations : kRegisterIterations);
  if (once) plan.chunks = chunks_of_strips(plan, work, false, target);
  if (once && !plan.form.columns.empty()) plan.chunks = std::max(plan.chunks, chunks_for_all(plan, work, target));
  return plan.rows <= plan.group_threads && may_have_threads(plan.group_threads, plan, work);
}

// Chooses threads for a few interleaved rows.
bool shape_interleaved(StridedReduction& plan, StridedReductionWork work, const Target& target) {
  const std::int64_t length = work.length * plan.columns(), vectors = (length + plan.width - 1) / plan.width;
  if (length < 64 * plan.columns()) return false;  // short rows: about one thread per row
  // Three quarters of a group's threads must work, or half of them with many rows.
  const auto busy = [&](int group_threads) {
    const int quarters = plan.columns() <= kMaxStripRows ? 3 : 2;
    return group_threads >= plan.columns() &&
           4 * interleaved_threads(group_threads, plan.columns(), plan.width) >= quarters * group_threads;
  };
  if (length <= kElementsOfWarp && work.groups > 1 && busy(32)) {
    plan.group_threads = 32;
    plan.groups_per_block = 4;
  } else {
    plan.group_threads = 64;
    while (may_have_threads(2 * plan.group_threads, plan, work) &&
           (!busy(plan.group_threads) || vectors > 8 * plan.group_threads))
      plan.group_threads *= 2;
    // Twice the threads, if they then keep everything.
    const auto iterations = [&](int group_threads) {
      return vectors / interleaved_threads(group_threads, plan.columns(), plan.width);
    };
    if (!plan.form.columns.empty() && busy(2 * plan.group_threads) &&
        may_have_threads(2 * plan.group_threads, plan, work, target.strip_threads) &&
        iterations(plan.group_threads) >= kMaxRegisterVectors &&
        iterations(2 * plan.group_threads) < kMaxRegisterVectors * 5 / 8)
      plan.group_threads *= 2;
    if (!busy(plan.group_threads)) return false;
    const bool on_chip = iterations(plan.group_threads) < kMaxRegisterVectors;
    // For 16-bit elements of many rows this needs more instructions than threads with single elements.
    if (plan.columns() > kMaxStripRows && !plan.form.columns.empty() && work.length <= kOnChipOfColumns &&
        !(on_chip && work.bits >= 32))
      return false;
    plan.chunks =
        limited_chunks(chunks_of_columns(rows_to_reduce(plan, work), target, on_chip ? 1 : 0), vectors, plan, work);
  }
  plan.parts = interleaved_threads(plan.group_threads, plan.columns(), plan.width);
  return true;
}

}  // namespace

int interleaved_threads(int group_threads, int rows, int width) {
  const int period = rows / std::gcd(rows, width);
  return group_threads / period * period;
}

int working_threads(int group_threads, const StridedReduction& plan) {
  if (!plan.in_strips) return interleaved_threads(group_threads, plan.columns(), plan.width);
  const int lines = group_threads / plan.lanes();
  return (plan.unaligned ? lines / unlike_lines(plan) * unlike_lines(plan) : lines) * plan.lanes();
}

bool may_have_threads(int threads, const StridedReduction& plan, const StridedReductionWork& work, int most) {
  std::int64_t more = 0;  // for sums of pieces and parts of rows
  if (const int odd = plan.elements_per_line / (plan.elements_per_line & -plan.elements_per_line);
      plan.elements_per_line > 1)
    more = (odd > 1 ? std::int64_t{threads} * plan.width / odd : 0) + threads;
  return threads <= most && have_room(threads, plan.width, work.partial, work.all, more);
}

RowsToReduce rows_to_reduce(const StridedReduction& plan, const StridedReductionWork& work) {
  return {.blocks = work.groups,
          .length = work.length * plan.columns(),
          .stages = static_cast<int>(work.stages),
          .passes = static_cast<int>(work.stages),
          .columns = !plan.form.columns.empty(),
          .bytes = work.bits / 8.0,
          .bytes_read = work.bits / 8.0,
          .rows_per_block = plan.rows,
          .partial_bytes = work.pass == RowOnePass::Kind::kExponentials ? 8.0 : 4.0};
}

int columns_of_strip(const StridedReduction& plan, const StridedReductionWork& work) {
  const Bounds& bounds = plan.form.kernel.pool.bounds();
  const bool of_sectors = proves_multiple_of(plan.line_stride, 8 * kSectorBytes / work.bits, bounds);
  const int whole = std::lcm(plan.width, plan.elements_per_line),
            bits = 8 * (of_sectors ? kSectorBytes : 8 * kSectorBytes);
  const int even = std::lcm(whole, std::max(1, bits / work.bits));
  return of_sectors || plan.elements_per_line == 1 || even <= value_at_hint(plan.line_stride, bounds.symbols) ? even
                                                                                                              : whole;
}

StridedReductionWork strided_reduction_work(const StridedReduction& plan, int widest_bits,
                                            const std::optional<RowOnePass>& pass) {
  const ExprPool& pool = plan.form.kernel.pool;
  const Symbols& symbols = pool.bounds().symbols;
  return {.groups = std::max<std::int64_t>(1, value_at_hint(point_count(pool, plan.outer), symbols)),
          .length = value_at_hint(plan.lines(), symbols),
          .stages = pass ? 1 : stage_count(plan.form),
          .partial = bytes_of_partial(plan.form),
          .all = bytes_of_partials(plan.form, 2),  // partial results per lane that are read, and those that are not
          .bits = widest_bits,
          .pass = pass ? std::optional(pass->kind) : std::nullopt};
}

bool choose_threads(StridedReduction& plan, const StridedReductionWork& work, const Target& target) {
  if (plan.unaligned) return choose_unaligned(plan, work, target);
  if (!plan.in_strips) return shape_interleaved(plan, work, target);
  return plan.elements_per_line > 1 ? shape_elements_per_line(plan, work, target) : choose_strips(plan, work, target);
}

int vectors_of_chunk(const StridedReduction& plan) {
  return vectors_of_chunk(plan.one_pass ? std::optional(plan.one_pass->kind) : std::nullopt);
}

bool has_room_for_results(const StridedReduction& plan, int threads) {
  return have_room(threads, plan.width, bytes_of_partial(plan.form), bytes_of_partials(plan.form, 2));
}

}  // namespace fusec
