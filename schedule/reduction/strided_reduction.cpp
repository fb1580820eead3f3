#include "schedule/reduction/strided_reduction.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <map>
#include <numeric>
#include <utility>

#include "ir/type.h"
#include "schedule/reduction/blocks_per_row.h"
#include "schedule/reduction/extra_outputs.h"
#include "schedule/reduction/register_resident_strip.h"
#include "schedule/reduction/strided_reduction_layout.h"
#include "schedule/target/target.h"

namespace fusec {
namespace {

constexpr int kMaxRegisterVectors = 16;
constexpr int kMaxSharedPerPosition = 40 * 1024,
              kMostOfAll = 46 * 1024;           // bytes of partial results per lane, and of all of them
constexpr std::int64_t kElementsOfWarp = 2048;  // elements per warp

bool has_wide_values(const RowForm& form) {
  const ExprPool& pool = form.kernel.pool;
  return std::ranges::any_of(form.reductions, [&](ExprId r) { return is_wide(pool[pool[r].args[0]].type); });
}

int bytes_of_partial(const RowForm& form) {
  int bytes = 4;
  for (const ExprId r : form.reductions) bytes = std::max(bytes, bytes_of_partial(form, r));
  return bytes;
}

// Threads of a group that work.
int working(int group_threads, int rows, int width) {
  const int period = rows / std::gcd(rows, width);
  return group_threads / period * period;
}

// The size of the reduction, with symbols at their hints.
struct StridedReductionWork {
  std::int64_t groups = 1, length = 1;  // points of the outer axes; elements per row
  std::int64_t stages = 1;
  int partial = 4;                                      // bytes of a partial result
  int all = 4;                                          // bytes of the partial results that have memory at once
  int bits = 32;                                        // of the widest element
  bool again = false;                                   // operands may be read twice
  std::optional<RowOnePass::Kind> pass = std::nullopt;  // set if one pass makes both reductions
};

constexpr int kMaxStridedThreads = 512;

bool have_room(std::int64_t threads, int width, int partial, int all, std::int64_t more = 0) {
  const std::int64_t places = threads * width * 33 / 32 + more;
  return places * partial <= kMaxSharedPerPosition && places * all <= kMostOfAll;
}

bool may_be(int threads, const StridedReduction& plan, const StridedReductionWork& work,
            int most = kMaxStridedThreads) {
  std::int64_t more = 0;  // for sums of pieces and parts of rows
  if (const int odd = plan.elements_per_line / (plan.elements_per_line & -plan.elements_per_line);
      plan.elements_per_line > 1)
    more = (odd > 1 ? std::int64_t{threads} * plan.width / odd : 0) + threads;
  return threads <= most && have_room(threads, plan.width, work.partial, work.all, more);
}

RowsToReduce to_reduce(const StridedReduction& plan, const StridedReductionWork& work) {
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
  const int chunks = chunks_of_columns(to_reduce(plan, work), target, on_chip ? 1 : 0);
  return limited_chunks(chunks, work.length * plan.lanes(), plan, work);
}

// Sets the threads of a group and the blocks of a strip for `lanes` lanes per line. False if shared memory has no room.
bool shape_strips(StridedReduction& plan, StridedReductionWork work, int lanes, const Target& target) {
  const std::int64_t line = value_at_hint(plan.line_stride, plan.form.kernel.pool.bounds().symbols);
  plan.rows = lanes * plan.width;
  work.groups *= (line + plan.rows - 1) / plan.rows;
  plan.group_threads = std::max(64, plan.rows);
  while (may_be(2 * plan.group_threads, plan, work) && work.length > std::int64_t{8} * plan.group_threads / lanes)
    plan.group_threads *= 2;
  plan.parts = plan.group_threads;
  const bool on_chip = work.length <= std::int64_t{kMaxRegisterVectors} * plan.group_threads / lanes;
  plan.chunks = chunks_of_strips(plan, work, on_chip, target);
  return may_be(plan.group_threads, plan, work);
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
  return may_be(plan.group_threads, plan, work, target.strip_threads);
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
  while (lines > 1 && !may_be(plan.group_threads, plan, work)) take(lines /= 2);
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

// The number of columns that makes rows and vectors whole and avoids shared sectors; strips are multiples of it.
int columns_of_strip(const StridedReduction& plan, const StridedReductionWork& work) {
  const Bounds& bounds = plan.form.kernel.pool.bounds();
  const bool of_sectors = proves_multiple_of(plan.line_stride, 8 * kSectorBytes / work.bits, bounds);
  const int whole = std::lcm(plan.width, plan.elements_per_line),
            bits = 8 * (of_sectors ? kSectorBytes : 8 * kSectorBytes);
  const int even = std::lcm(whole, std::max(1, bits / work.bits));
  return of_sectors || plan.elements_per_line == 1 || even <= value_at_hint(plan.line_stride, bounds.symbols) ? even
                                                                                                              : whole;
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
  return plan.rows <= plan.group_threads && may_be(plan.group_threads, plan, work);
}

// Chooses threads for a few interleaved rows.
bool shape_interleaved(StridedReduction& plan, StridedReductionWork work, const Target& target) {
  const std::int64_t length = work.length * plan.columns(), vectors = (length + plan.width - 1) / plan.width;
  if (length < 64 * plan.columns()) return false;  // short rows: about one thread per row
  // Three quarters of a group's threads must work, or half of them with many rows.
  const auto busy = [&](int group_threads) {
    const int quarters = plan.columns() <= kMaxStripRows ? 3 : 2;
    return group_threads >= plan.columns() &&
           4 * working(group_threads, plan.columns(), plan.width) >= quarters * group_threads;
  };
  if (length <= kElementsOfWarp && work.groups > 1 && busy(32)) {
    plan.group_threads = 32;
    plan.groups_per_block = 4;
  } else {
    plan.group_threads = 64;
    while (may_be(2 * plan.group_threads, plan, work) &&
           (!busy(plan.group_threads) || vectors > 8 * plan.group_threads))
      plan.group_threads *= 2;
    // Twice the threads, if they then keep everything.
    const auto iterations = [&](int group_threads) {
      return vectors / working(group_threads, plan.columns(), plan.width);
    };
    if (!plan.form.columns.empty() && busy(2 * plan.group_threads) &&
        may_be(2 * plan.group_threads, plan, work, target.strip_threads) &&
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
        limited_chunks(chunks_of_columns(to_reduce(plan, work), target, on_chip ? 1 : 0), vectors, plan, work);
  }
  plan.parts = working(plan.group_threads, plan.columns(), plan.width);
  return true;
}

// Instructions per element in all loops; each loop computes its values from the loads again.
int code_of_loops(const RowForm& form) {
  int code = 0;
  for (const ReductionLoop& loop : reduction_loops(form)) code += code_of_element(form, loop.bodies(form.kernel.pool));
  std::vector<ExprId> of_elements = roots_of_extra_outputs(form);
  std::ranges::copy(roots_of(outputs_of(form, false)), std::back_inserter(of_elements));
  return code + code_of_element(form, of_elements);
}

// The maximum number of vectors of a group's rows, over all its blocks.
std::int64_t most_vectors(const StridedReduction& plan) {
  const int of_line = plan.in_strips ? plan.lanes() * plan.width : plan.columns();
  return range_of(plan.lines() * of_line, plan.form.kernel.pool.bounds()).max / plan.width;
}

// Threads of a group with `group_threads` threads that work.
int parts_of(int group_threads, const StridedReduction& plan) {
  if (!plan.in_strips) return working(group_threads, plan.columns(), plan.width);
  const int lines = group_threads / plan.lanes();
  return (plan.unaligned ? lines / unlike_lines(plan) * unlike_lines(plan) : lines) * plan.lanes();
}

// Instructions with which a group's threads combine their results.
std::int64_t code_of_joining(const StridedReduction& plan) {
  constexpr int kJoining = 40;  // per result of a lane
  return static_cast<std::int64_t>(plan.form.reductions.size()) * plan.width * kJoining;
}

// Plans the vectors kept in registers. Register arrays need constant indices, so the loops are unrolled; if that is too
// much code, more threads take fewer iterations each. False if even one vector (two for unaligned rows) is too much.
bool plan_register_vectors(StridedReduction& plan, const StridedReductionWork& work) {
  const std::int64_t most = most_vectors(plan), code = code_of_loops(plan.form) * plan.width;
  const auto iterations = [&](int parts) { return (most + parts - 1) / parts; };
  if (2 * code > kMaxUnrolledInstructions) return false;
  if (plan.form.columns.empty() && stage_count(plan.form) == 1) return true;  // one loop
  if (plan.chunks > 1 || iterations(plan.parts) < 1 || iterations(plan.parts) > kMaxRegisterVectors) return true;
  while (plan.groups_per_block == 1 && iterations(plan.parts) > 1 &&
         iterations(plan.parts) * code + code_of_joining(plan) > kMaxUnrolledInstructions &&
         may_be(2 * plan.group_threads, plan, work)) {
    plan.group_threads *= 2;
    plan.parts = parts_of(plan.group_threads, plan);
  }
  if (iterations(plan.parts) * code <= kMaxUnrolledInstructions)
    plan.register_vectors = static_cast<int>(iterations(plan.parts));
  return true;
}

// The one-pass pair: moments with a mean that depends on the sum alone, or exponentials if `may_be_exponentials`.
std::optional<RowOnePass> one_pass_of(const StridedReduction& plan, bool may_be_exponentials) {
  const ExprPool& pool = plan.form.kernel.pool;
  const std::optional<RowOnePass> pass = row_one_pass(plan.form);
  if (!pass) return std::nullopt;
  if (pass->kind == RowOnePass::Kind::kExponentials) return may_be_exponentials ? pass : std::nullopt;
  return dependences(pool)[pool[pass->mean].args[1]].empty() ? pass : std::nullopt;
}

// The size of the reduction; `widest_bits`: bits of the widest element.
StridedReductionWork work_of(const StridedReduction& plan, int widest_bits, const std::optional<RowOnePass>& pass) {
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

// Chooses the threads. `again`: operands may be read twice, for online softmax or by blocks that share a strip of rows
// with several elements per line. Nothing if other schedules are faster.
std::optional<StridedReduction> with_threads(StridedReduction plan, int widest_bits, bool again, const Target& target) {
  const std::optional<RowOnePass> one_pass = one_pass_of(plan, again);
  StridedReductionWork work = work_of(plan, widest_bits, one_pass);
  work.again = again;
  const auto shape = plan.unaligned               ? choose_unaligned
                     : !plan.in_strips            ? shape_interleaved
                     : plan.elements_per_line > 1 ? shape_elements_per_line
                                                  : choose_strips;
  if (!shape(plan, work, target)) return std::nullopt;
  if (!plan_register_vectors(plan, work)) return std::nullopt;
  if (plan.register_vectors == 0) plan.one_pass = one_pass;
  // Without kept vectors, these rows are read again here. The layouts of row_layout may keep them instead.
  const bool shared = again && plan.elements_per_line > 1 && plan.in_strips && plan.chunks > 1;
  if ((plan.elements_per_line > 1 || plan.unaligned) && plan.register_vectors == 0 &&
      (work.stages > 1 || (!plan.form.columns.empty() && !shared)))
    return std::nullopt;
  return plan;
}

// The maximum number of vectors that a thread can keep, limited by registers and code size.
std::int64_t max_register_vectors(const StridedReduction& plan) {
  const int code = std::max(1, code_of_loops(plan.form) * plan.width);
  return std::min({std::int64_t{kMaxRegisterVectors}, std::int64_t{kMaxRegisterWords} / words_of_vectors(plan),
                   (kMaxUnrolledInstructions - code_of_joining(plan)) / code});
}

// Sets `group_threads` and the least number of blocks, or slightly more, that keep their rows on chip together.
bool shape_resident_blocks(StridedReduction& plan, int group_threads, StridedReductionWork work, const Target& target) {
  plan.group_threads = group_threads;
  plan.parts = parts_of(group_threads, plan);
  if (const int even = working(group_threads, 2 * plan.columns(), plan.width); !plan.in_strips && even > 0)
    plan.parts = even;
  const std::int64_t iterations = max_register_vectors(plan), most = most_vectors(plan);
  if (plan.parts == 0 || plan.group_threads < plan.rows || iterations < 1 || !may_be(group_threads, plan, work))
    return false;
  if (plan.in_strips) work.groups *= value_at_hint(plan.strips(), plan.form.kernel.pool.bounds().symbols);
  if (most > iterations * plan.parts * max_resident_blocks(target)) return false;
  plan.chunks = resident_blocks_of_columns(to_reduce(plan, work),
                                           (most + iterations * plan.parts - 1) / (iterations * plan.parts), target);
  if (plan.chunks == 0) return false;
  const std::int64_t at_once = std::int64_t{plan.parts} * plan.chunks;
  plan.register_vectors = static_cast<int>((most + at_once - 1) / at_once);
  plan.resident_blocks = true;
  return true;
}

bool has_few_partials(const StridedReduction& plan, const StridedReductionWork& work) {
  return plan.chunks <= max_blocks_with_few_partials(to_reduce(plan, work));
}

// Rows that one block's registers do not hold and that would be read again, kept by co-resident blocks. Strips have
// whole sectors and share little with their neighbours. For rows with several elements per line, they are narrow enough
// to occupy all multiprocessors.
std::optional<StridedReduction> kept_by_resident_blocks(StridedReduction plan, int widest_bits, const Target& target) {
  const StridedReductionWork work = work_of(plan, widest_bits, std::nullopt);
  const auto shaped = [&](std::int64_t columns) -> std::optional<StridedReduction> {
    for (const int group_threads : {kMaxStridedThreads / 2, kMaxStridedThreads}) {
      StridedReduction found = plan;
      if (plan.in_strips) found.rows = static_cast<int>(columns / plan.elements_per_line);
      if (shape_resident_blocks(found, group_threads, work, target)) return found;
    }
    return std::nullopt;
  };
  if ((plan.elements_per_line > 1 && !plan.in_strips) || (plan.unaligned && !plan.form.columns.empty()))
    return std::nullopt;
  if (!plan.in_strips || plan.unaligned) return shaped(0);
  constexpr int kWide = 32;  // lanes
  const Bounds& bounds = plan.form.kernel.pool.bounds();
  const int fewest = columns_of_strip(plan, work);
  const std::int64_t line = value_at_hint(plan.line_stride, bounds.symbols);
  const auto is_enough = [&](const StridedReduction& found) {
    const std::int64_t blocks = work.groups * value_at_hint(found.strips(), bounds.symbols) * found.chunks;
    return has_few_partials(found, work) && (plan.elements_per_line == 1 || blocks >= target.multiprocessors);
  };
  std::optional<StridedReduction> found;
  for (std::int64_t strips = std::max<std::int64_t>(1, line / (kWide * plan.width)); strips <= line; strips *= 2) {
    std::int64_t columns = (line + strips - 1) / strips;
    if (strips > 1) columns = (columns + fewest - 1) / fewest * fewest;
    if (std::optional<StridedReduction> narrower = shaped(columns)) found = narrower;
    if (columns <= fewest || (found && is_enough(*found))) break;
  }
  return found;
}

// True if a thread reads its operands once per loop.
bool reads_again(const StridedReduction& plan) {
  const bool once = plan.one_pass || stage_count(plan.form) == 1;
  return plan.register_vectors == 0 && !(once && plan.form.columns.empty());
}

// True if reading the rows again takes less time than one more launch, at the hints.
bool is_cheap_to_reread(const StridedReduction& plan, int widest_bits, const Target& target) {
  const ExprPool& pool = plan.form.kernel.pool;
  const std::int64_t elements =
      value_at_hint(point_count(pool, plan.outer) * plan.lines() * plan.line_stride, pool.bounds().symbols);
  const double bytes = static_cast<double>(elements) * widest_bits / 8 * (stage_count(plan.form) - 1);
  return bytes < target.launch_seconds * target.bandwidth;
}

// Rows reduced by independent blocks.
std::optional<StridedReduction> by_blocks(const StridedReductionLayout& lines, bool again, const Target& target) {
  StridedReduction plan = lines.plan;
  const RowForm& form = plan.form;
  std::optional<StridedReduction> found = with_threads(plan, lines.widest_bits, again, target);
  // If rows are read again, they should be kept, or moments should be made in one pass. Interleaved rows are good if
  // there are few.
  const bool is_well_found =
      found && (found->register_vectors > 0 || (found->one_pass && found->columns() <= kMaxStripRows));
  if (!plan.in_strips && plan.elements_per_line == 1 && lines.may_be_unaligned && !is_well_found &&
      stage_count(form) > 1) {
    plan.in_strips = plan.unaligned = true;
    std::optional<StridedReduction> strips = with_threads(plan, lines.widest_bits, again, target);
    if (strips || form.columns.empty()) return strips ? strips : found;
    plan.in_strips = plan.unaligned = false;
  }
  // A few rows that are read again are better as kept strips.
  if (form.columns.empty() || (found && found->register_vectors > 0) || plan.in_strips || plan.elements_per_line > 1 ||
      plan.width == 1 || !proves_multiple_of(plan.line_stride, plan.width, form.kernel.pool.bounds()))
    return found;
  plan.in_strips = true;
  std::optional<StridedReduction> strips = with_threads(plan, lines.widest_bits, again, target);
  return strips && strips->register_vectors > 0 ? strips : found;
}

// Pieces of one word share sectors with both neighbours on every access.
bool reads_less(const StridedReduction& unaligned, const StridedReduction& pieces, int narrowest_bits) {
  return unaligned.register_vectors > 0 && pieces.width * narrowest_bits <= 32;
}

}  // namespace

std::optional<StridedReduction> strided_reduction(const RowForm& original, const Graph& graph, const Target& target) {
  const RowForm form = with_extra_outputs(with_rows_merged(original, graph));
  // 8-byte results of several lanes would have bank conflicts in shared memory, except for one-pass moments.
  const bool reads_twice = stage_count(form) > 1 || !form.columns.empty(), wide = has_wide_values(form);
  if (wide && reads_twice && !(form.columns.empty() && row_one_pass(form))) return std::nullopt;
  const std::optional<StridedReductionLayout> lines = strided_reduction_layout(form, graph);
  std::optional<StridedReduction> found = lines ? by_blocks(*lines, false, target) : std::nullopt;
  if (reads_twice && !wide)
    if (std::optional<StridedReduction> kept = register_resident_strip(form, graph, target))
      return found && found->unaligned && reads_less(*found, *kept, lines->narrowest_bits) ? found : kept;
  if (!lines) return std::nullopt;
  if (wide && reads_twice) return found && found->one_pass ? found : std::nullopt;
  const IndexExpr length = lines->plan.lines();
  if (found ? !reads_again(*found)
            : value_at_hint(length * lines->plan.elements_per_line, form.kernel.pool.bounds().symbols) <=
                  kOnChipOfColumns)
    return found;
  const bool one_launch = found && found->chunks == 1 && is_cheap_to_reread(lines->plan, lines->widest_bits, target);
  if (!one_launch && (!form.columns.empty() || !one_pass_of(lines->plan, true)))
    if (std::optional<StridedReduction> kept = kept_by_resident_blocks(lines->plan, lines->widest_bits, target))
      return kept;
  std::optional<StridedReduction> once = by_blocks(*lines, true, target);
  return once && !(one_launch && once->chunks > 1) ? once : found;
}

int vectors_of_chunk(const StridedReduction& plan) {
  return vectors_of_chunk(plan.one_pass ? std::optional(plan.one_pass->kind) : std::nullopt);
}

int words_of_vectors(const StridedReduction& plan) {
  const ExprPool& pool = plan.form.kernel.pool;
  std::map<ValueId, int> words;
  for (const ExprId load : plan.loads) words[pool[load].source] = std::max(1, plan.width * bits(pool[load].dtype) / 32);
  int per_iteration = 0;
  for (const auto& [tensor, count] : words) per_iteration += count;
  return per_iteration;
}

bool has_room_for_results(const StridedReduction& plan, int threads) {
  return have_room(threads, plan.width, bytes_of_partial(plan.form), bytes_of_partials(plan.form, 2));
}

int launches_of(const StridedReduction& plan) {
  if (plan.chunks == 1) return 1;
  return plan.one_pass || plan.resident_blocks ? 2 : 1 + stage_count(plan.form);
}

std::string name_of(const StridedReduction& plan) {
  const char* how = plan.elements_per_line > 1 ? "rows of pieces side by side"
                    : plan.in_strips           ? "rows side by side"
                                               : "interleaved rows";
  return fmt::format("{} threads for {} {}, {} {}blocks each", plan.parts, plan.rows, how, plan.chunks,
                     plan.resident_blocks ? "waiting " : "");
}

}  // namespace fusec
