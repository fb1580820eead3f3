#include "analysis/interleaved_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <utility>

#include "analysis/interleaved_lines.h"
#include "analysis/kept_strips.h"
#include "analysis/outputs_beside.h"
#include "analysis/row_teams.h"
#include "analysis/target.h"
#include "ir/type.h"

namespace fusec {
namespace {

constexpr int kMostInterleavedTurns = 16;
constexpr int kMostSharedOfPlace = 40 * 1024,
              kMostOfAll = 46 * 1024;           // for a partial result of each place, for all of them
constexpr std::int64_t kElementsOfWarp = 2048;  // elements that a warp takes

bool has_wide_values(const RowForm& form) {
  const ExprPool& pool = form.kernel.pool;
  return std::ranges::any_of(form.reductions, [&](ExprId r) { return is_wide(pool[pool[r].args[0]].type); });
}

int bytes_of_partial(const RowForm& form) {
  int bytes = 4;
  for (const ExprId r : form.reductions) bytes = std::max(bytes, bytes_of_partial(form, r));
  return bytes;
}

// Threads of a team of which so many work.
int working(int team, int rows, int width) {
  const int period = rows / std::gcd(rows, width);
  return team / period * period;
}

// What there is to reduce, with symbols at their hints.
struct InterleavedWork {
  std::int64_t groups = 1, length = 1;  // places of the outer axes; elements of a row
  std::int64_t stages = 1;
  int partial = 4;                                      // bytes of a partial result
  int all = 4;                                          // of those that have memory at once
  int bits = 32;                                        // of the widest element
  bool again = false;                                   // what is read may be read once more
  std::optional<RowOnePass::Kind> pass = std::nullopt;  // in which one pass makes both reductions
};

constexpr int kMostInterleavedThreads = 512;

bool have_room(std::int64_t threads, int width, int partial, int all, std::int64_t more = 0) {
  const std::int64_t places = threads * width * 33 / 32 + more;
  return places * partial <= kMostSharedOfPlace && places * all <= kMostOfAll;
}

bool may_be(int threads, const InterleavedRows& way, const InterleavedWork& work, int most = kMostInterleavedThreads) {
  std::int64_t more = 0;  // pieces' sums, and rows' parts
  if (const int odd = way.breadth / (way.breadth & -way.breadth); way.breadth > 1)
    more = (odd > 1 ? std::int64_t{threads} * way.width / odd : 0) + threads;
  return threads <= most && have_room(threads, way.width, work.partial, work.all, more);
}

RowsToReduce to_reduce(const InterleavedRows& way, const InterleavedWork& work) {
  return {.blocks = work.groups,
          .length = work.length * way.columns(),
          .stages = static_cast<int>(work.stages),
          .passes = static_cast<int>(work.stages),
          .columns = !way.form.columns.empty(),
          .bytes = work.bits / 8.0,
          .bytes_read = work.bits / 8.0,
          .side_by_side = way.rows,
          .bytes_left = work.pass == RowOnePass::Kind::kExponentials ? 8.0 : 4.0};
}

// Beside what they read.
int chunks_that_leave_little(int chunks, const InterleavedWork& work) {
  const std::int64_t most = work.length * work.bits / 8 / (std::int64_t{64} * work.partial);
  return static_cast<int>(std::clamp<std::int64_t>(most, 1, chunks));
}

int turns_of_chunk(std::optional<RowOnePass::Kind> pass) {
  return !pass ? 8 : pass == RowOnePass::Kind::kExponentials ? 32 : 16;
}

int chunks_that_join_little(int chunks, std::int64_t vectors, const InterleavedRows& way, const InterleavedWork& work) {
  const int turns = turns_of_chunk(work.pass);
  return static_cast<int>(std::clamp<std::int64_t>(vectors / (turns * way.team), 1, std::max(chunks, 1)));
}

// Fewer where each then has as many lines as every other one: a loop over a number of turns that is known is shorter.
int even_chunks(int chunks, const InterleavedRows& way, const InterleavedWork& work) {
  const std::int64_t lines = way.parts / way.lanes(), turns = work.length / lines;
  if (chunks == 1 || work.length % lines != 0) return chunks;
  const std::int64_t fewest = (turns + chunks - 1) / chunks;
  for (std::int64_t each = fewest; each <= fewest + fewest / 4; ++each)
    if (turns % each == 0) return static_cast<int>(turns / each);
  return chunks;
}

// The blocks of a strip.
int chunks_of_strips(const InterleavedRows& way, const InterleavedWork& work, bool held, const Target& target) {
  const int chunks = chunks_that_leave_little(chunks_of_columns(to_reduce(way, work), target, held ? 1 : 0), work);
  return even_chunks(chunks_that_join_little(chunks, work.length * way.lanes(), way, work), way, work);
}

// With so many lanes to a line: the threads of a team, the blocks of a strip. False where shared memory has no room.
bool shape_strips(InterleavedRows& way, InterleavedWork work, int lanes, const Target& target) {
  const std::int64_t line = value_at_hint(way.line, way.form.kernel.pool.bounds().symbols);
  way.rows = lanes * way.width;
  work.groups *= (line + way.rows - 1) / way.rows;
  way.team = std::max(64, way.rows);
  while (may_be(2 * way.team, way, work) && work.length > std::int64_t{8} * way.team / lanes) way.team *= 2;
  way.parts = way.team;
  const bool held = work.length <= std::int64_t{kMostInterleavedTurns} * way.team / lanes;
  way.chunks = chunks_of_strips(way, work, held, target);
  return may_be(way.team, way, work);
}

int narrowest_bits(const InterleavedRows& way) {
  int found = 64;
  for (const ExprId load : way.loads) found = std::min(found, bits(way.form.kernel.pool[load].dtype));
  for (const KernelOutput& output : way.form.beside) found = std::min(found, bits(output.type.dtype));
  return found;
}

// Lines of 32 lanes; of fewer, where those make as many strips, where there is not a block for every multiprocessor, or
// where registers do not hold what a team reads twice; but not where blocks share strips.
bool choose_strips(InterleavedRows& way, InterleavedWork work, const Target& target) {
  constexpr int kFewestLines = 32, kLine = 64, kBytes = 256;  // of lanes, where lines begin at so many bytes, or not
  if (work.length < kFewestLines) return false;               // a thread had better have all of a row
  const ExprPool& pool = way.form.kernel.pool;
  const std::int64_t line = value_at_hint(way.line, pool.bounds().symbols);
  const auto strips = [&](int lanes) { return (line + lanes * way.width - 1) / (lanes * way.width); };
  int wide = 32;
  while (wide > 4 && strips(wide / 2) == strips(wide)) wide /= 2;
  const bool even = proves_multiple_of(way.line, 8 * kLine / work.bits, pool.bounds());
  int lanes = wide;
  const auto turns_held = [](int of_line) {
    return std::int64_t{kMostInterleavedTurns} * (kMostInterleavedThreads / of_line);
  };
  const auto holds = [&] { return work.length <= turns_held(lanes); };
  // Narrow elements beside wide ones are whole sectors of a line as well.
  while (lanes * way.width * work.bits / 8 > (even ? kLine : kBytes) &&
         lanes * way.width * narrowest_bits(way) / 8 > kSectorBytes &&
         (work.groups * strips(lanes) < target.multiprocessors || (!way.form.columns.empty() && !holds())))
    lanes /= 2;
  // Lines of a sector, where threads then keep what they would read again.
  const bool of_sectors = proves_multiple_of(way.line, 8 * kSectorBytes / work.bits, pool.bounds());
  if (const int few = std::max(1, 8 * kSectorBytes / (work.bits * way.width));
      of_sectors && !way.form.columns.empty() && !holds() && few < lanes && work.length <= turns_held(few))
    lanes = few;
  if (!shape_strips(way, work, lanes, target)) return false;
  // What a team keeps without such loads is as well kept by threads with an element of each line.
  if (way.chunks == 1 && (way.form.columns.empty() || (holds() && (way.apart || work.length > kHeldByColumns))))
    return true;
  return (way.form.columns.empty() || work.length > kHeldByColumns) && shape_strips(way, work, wide, target) &&
         way.chunks > 1;
}

// Lines of which no two begin alike, to vectors.
int unlike_lines(const InterleavedRows& way) {
  return way.width / static_cast<int>(std::gcd(*way.line.as_constant(), std::int64_t{way.width}));
}

// Strips of lines that begin anywhere, of so many bytes a line: as many lines at once as begin unlike, or some times as
// many. False where shared memory has no room.
bool shape_shifted(InterleavedRows& way, InterleavedWork work, int bytes, const Target& target) {
  constexpr int kTurns = 8;
  const std::int64_t line = *way.line.as_constant();
  const int unlike = unlike_lines(way);
  const int most = bytes * 8 / work.bits - way.width;  // beside the vector that is a part of the next strip's
  const std::int64_t strips = (line + most - 1) / most, wanted = (line + strips - 1) / strips;
  way.rows = static_cast<int>(wanted + way.width - 1) / way.width * way.width;
  work.groups *= strips;
  const bool once = work.stages == 1;
  int lines = unlike;
  while (lines * way.lanes() < std::max(64, way.rows)) lines += unlike;
  const auto may_be_more = [&] { return (lines + unlike) * way.lanes() <= kMostInterleavedThreads; };
  while (may_be_more() && work.length > (once ? kTurns : kMostInterleavedTurns) * std::int64_t{lines}) lines += unlike;
  way.parts = lines * way.lanes();
  way.team = (way.parts + 31) / 32 * 32;
  if (work.length < 2 * lines) return false;
  way.chunks = once ? chunks_of_strips(way, work, false, target) : 1;
  return may_be(way.team, way, work, target.threads_of_strip);
}

// Narrower ones only where these need no other blocks. What is kept to be stored has to be worth what threads of unlike
// lines do to join their results, by blocks for all multiprocessors, and so wide that little of it is stored in parts
// of vectors.
bool choose_shifted(InterleavedRows& way, InterleavedWork work, const Target& target) {
  constexpr int kWide = 1024, kNarrow = 256, kNarrowStored = 512, kFewestTurns = 5;
  const bool stores = !way.form.columns.empty();
  for (int bytes = kWide; bytes >= (stores ? kNarrowStored : kNarrow); bytes /= 2) {
    if (!shape_shifted(way, work, bytes, target) || way.chunks > 1) continue;
    const std::int64_t strips = value_at_hint(way.strips(), way.form.kernel.pool.bounds().symbols);
    const bool are_worth_it = work.length * work.bits >= 16 * kFewestTurns * (way.parts / way.lanes()) &&
                              work.groups * strips >= target.multiprocessors &&
                              way.columns() * work.bits >= 8 * kNarrowStored / 2;
    if (!stores || are_worth_it) return true;
  }
  return !stores && shape_shifted(way, work, kWide, target);
}

// As many lines at once as leave each thread so many turns, and as shared memory has room for.
void take_lines(InterleavedRows& way, const InterleavedWork& work, int turns) {
  const auto take = [&](int lines) {
    way.parts = lines * way.lanes();
    way.team = (way.parts + 31) / 32 * 32;
  };
  int lines = std::max(1, 64 / way.lanes());
  while (2 * lines * way.lanes() <= kMostInterleavedThreads && work.length >= std::int64_t{2} * turns * lines)
    lines *= 2;
  take(lines);
  while (lines > 1 && !may_be(way.team, way, work)) take(lines /= 2);
}

// A row to a team, of as many elements of each line as are vectors for all of its threads.
bool shape_long_pieces(InterleavedRows& way, InterleavedWork work, const Target& target) {
  constexpr int kTurns = 16;
  way.rows = 1;
  way.shifted = true;  // its first and last vectors are others' as well
  if (way.lanes() > 2 * kMostInterleavedThreads || !way.form.columns.empty() || !way.form.beside.empty() ||
      work.stages > 1)
    return false;
  work.groups *= value_at_hint(way.strips(), way.form.kernel.pool.bounds().symbols);
  take_lines(way, work, kTurns);
  way.team = static_cast<int>(std::bit_ceil(static_cast<unsigned>(way.team)));
  way.chunks = chunks_of_strips(way, work, false, target);
  return true;
}

// Columns of which strips that share no sector, or few, are multiples, and whose rows and vectors are whole.
int columns_of_strip(const InterleavedRows& way, const InterleavedWork& work) {
  const Bounds& bounds = way.form.kernel.pool.bounds();
  const bool of_sectors = proves_multiple_of(way.line, 8 * kSectorBytes / work.bits, bounds);
  const int whole = std::lcm(way.width, way.breadth), bits = 8 * (of_sectors ? kSectorBytes : 8 * kSectorBytes);
  const int even = std::lcm(whole, std::max(1, bits / work.bits));
  return of_sectors || way.breadth == 1 || even <= value_at_hint(way.line, bounds.symbols) ? even : whole;
}

// What is read again by blocks that share strips is not kept however few these are: each has some turns, where there
// are not blocks for all multiprocessors.
int chunks_for_all(const InterleavedRows& way, const InterleavedWork& work, const Target& target) {
  constexpr int kTurns = 4;
  const std::int64_t most = work.length / (kTurns * (way.parts / way.lanes()));
  return static_cast<int>(std::max<std::int64_t>(1, std::min(most, target.multiprocessors / work.groups)));
}

// Strips of rows that have several elements of each line: so many rows as share no sector with others', and more lines
// at once where there are many. False where those that blocks cannot share are few.
bool shape_pieces(InterleavedRows& way, InterleavedWork work, const Target& target) {
  constexpr int kFewLanes = 32, kMostLanes = 512, kTurns = 16, kTurnsKept = 8, kFewStrips = 6, kFewestElements = 32;
  if (work.length * way.breadth < kFewestElements) return false;  // a thread had better have all of a row
  const bool once = work.stages == 1 && (way.form.columns.empty() || (work.again && way.in_strips));
  const std::int64_t line = value_at_hint(way.line, way.form.kernel.pool.bounds().symbols);
  const auto strips = [&](int columns) { return work.groups * ((line + columns - 1) / columns); };
  const auto are_enough = [&](int columns) { return once || kFewStrips * strips(columns) >= target.multiprocessors; };
  way.rows = way.width / std::gcd(way.width, way.breadth);
  if (way.breadth * work.bits < 8 * kSectorBytes) way.rows = columns_of_strip(way, work) / way.breadth;
  const auto may_be_twice = [&] {
    return 2 * way.lanes() <= kMostLanes && 2 * way.columns() <= line && are_enough(2 * way.columns());
  };
  // Narrow ones have fewer turns, and registers for what is beside them.
  const auto are_few = [&] { return way.beside.empty() && way.lanes() < kFewLanes; };
  while (may_be_twice() && (way.columns() * work.bits % (8 * kSectorBytes) != 0 || are_few())) way.rows *= 2;
  if (way.lanes() > kMostLanes) return shape_long_pieces(way, work, target);
  if (!are_enough(way.columns())) return false;
  work.groups = strips(way.columns());
  take_lines(way, work, once ? kTurns : kTurnsKept);
  if (once) way.chunks = chunks_of_strips(way, work, false, target);
  if (once && !way.form.columns.empty()) way.chunks = std::max(way.chunks, chunks_for_all(way, work, target));
  return way.rows <= way.team && may_be(way.team, way, work);
}

// The same of rows that take turns.
bool shape_turns(InterleavedRows& way, InterleavedWork work, const Target& target) {
  const std::int64_t length = work.length * way.columns(), vectors = (length + way.width - 1) / way.width;
  if (length < 64 * way.columns()) return false;  // short ones: a thread each, or so
  // Three quarters of a team's threads, or half of those of many rows.
  const auto busy = [&](int team) {
    const int quarters = way.columns() <= kFewRows ? 3 : 2;
    return team >= way.columns() && 4 * working(team, way.columns(), way.width) >= quarters * team;
  };
  if (length <= kElementsOfWarp && work.groups > 1 && busy(32)) {
    way.team = 32;
    way.teams = 4;
  } else {
    way.team = 64;
    while (may_be(2 * way.team, way, work) && (!busy(way.team) || vectors > 8 * way.team)) way.team *= 2;
    // Twice as many where they then keep it all.
    const auto turns = [&](int team) { return vectors / working(team, way.columns(), way.width); };
    if (!way.form.columns.empty() && busy(2 * way.team) && may_be(2 * way.team, way, work, target.threads_of_strip) &&
        turns(way.team) >= kMostInterleavedTurns && turns(2 * way.team) < kMostInterleavedTurns * 5 / 8)
      way.team *= 2;
    if (!busy(way.team)) return false;
    const bool held = turns(way.team) < kMostInterleavedTurns;
    // 16-bit elements of many rows take more instructions than those threads do.
    if (way.columns() > kFewRows && !way.form.columns.empty() && work.length <= kHeldByColumns &&
        !(held && work.bits >= 32))
      return false;
    way.chunks = chunks_that_leave_little(chunks_of_columns(to_reduce(way, work), target, held ? 1 : 0), work);
  }
  // Few threads to a chunk: what they have is joined.
  while (way.chunks > 1 && way.team > 128 && busy(way.team / 2) && vectors / way.chunks < 16 * way.team) way.team /= 2;
  way.chunks = chunks_that_join_little(way.chunks, vectors, way, work);
  way.parts = working(way.team, way.columns(), way.width);
  return true;
}

// Instructions for an element in all loops: each computes what it needs of what was read anew.
int code_of_loops(const RowForm& form) {
  int code = 0;
  for (const ReductionLoop& loop : reduction_loops(form)) code += code_of_element(form, loop.bodies(form.kernel.pool));
  std::vector<ExprId> of_elements = roots_beside(form);
  for (const KernelOutput& output : form.kernel.outputs)
    if (!is_of_rows(form, output)) of_elements.push_back(output.expr);
  return code + code_of_element(form, of_elements);
}

// The most vectors that a team and those beside it have of its rows.
std::int64_t most_vectors(const InterleavedRows& way) {
  const int of_line = way.in_strips ? way.lanes() * way.width : way.columns();
  return range_of(way.lines() * of_line, way.form.kernel.pool.bounds()).max / way.width;
}

// Threads of such a team that work.
int parts_of(int team, const InterleavedRows& way) {
  if (!way.in_strips) return working(team, way.columns(), way.width);
  const int lines = team / way.lanes();
  return (way.shifted ? lines / unlike_lines(way) * unlike_lines(way) : lines) * way.lanes();
}

// Instructions with which a team's threads join their results.
std::int64_t code_of_joining(const InterleavedRows& way) {
  constexpr int kJoining = 40;  // of a result at a place of threads' vectors
  return static_cast<std::int64_t>(way.form.reductions.size()) * way.width * kJoining;
}

// For what is the same for all lines, too, beside results at each place: left alone, ptxas spills some.
bool has_registers_beside(const InterleavedRows& way, const InterleavedWork& work) {
  constexpr int kRegisters = 65536, kOfPlace = 8, kComputing = 36;  // of a multiprocessor; of a thread
  const int kept = way.kept_turns * way.width * work.bits / 32;
  return way.beside.empty() || way.breadth == 1 || way.team * (kept + kOfPlace * way.width + kComputing) <= kRegisters;
}

// What a thread keeps is known by number of a turn, so that its loops are unrolled: more threads with fewer turns each
// where that is too much code. False where a single vector is too much, and one more for rows that end within one.
bool keep_turns(InterleavedRows& way, const InterleavedWork& work) {
  const std::int64_t most = most_vectors(way), code = code_of_loops(way.form) * way.width;
  const auto turns = [&](int parts) { return (most + parts - 1) / parts; };
  if (2 * code > kMostUnrolled) return false;
  const std::vector<int> stages = stages_of(way.form);
  if (way.form.columns.empty() && *std::ranges::max_element(stages) == 0) return true;  // one loop
  if (way.chunks > 1 || turns(way.parts) < 1 || turns(way.parts) > kMostInterleavedTurns) return true;
  while (way.teams == 1 && turns(way.parts) > 1 && turns(way.parts) * code + code_of_joining(way) > kMostUnrolled &&
         may_be(2 * way.team, way, work)) {
    way.team *= 2;
    way.parts = parts_of(way.team, way);
  }
  if (turns(way.parts) * code <= kMostUnrolled) way.kept_turns = static_cast<int>(turns(way.parts));
  if (!has_registers_beside(way, work)) way.kept_turns = 0;
  return true;
}

// Moments whose mean a thread makes of the sum alone; exponentials where these `may` be.
std::optional<RowOnePass> one_pass_of(const InterleavedRows& way, bool may_be_exponentials) {
  const ExprPool& pool = way.form.kernel.pool;
  const std::optional<RowOnePass> pass = row_one_pass(way.form);
  if (!pass) return std::nullopt;
  if (pass->kind == RowOnePass::Kind::kExponentials) return may_be_exponentials ? pass : std::nullopt;
  return dependences(pool)[pool[pass->mean].args[1]].empty() ? pass : std::nullopt;
}

// What such rows are to reduce, of whose widest element there are so many bits.
InterleavedWork work_of(const InterleavedRows& way, int widest_bits, const std::optional<RowOnePass>& pass) {
  const ExprPool& pool = way.form.kernel.pool;
  const Symbols& symbols = pool.bounds().symbols;
  const std::vector<int> stages = stages_of(way.form);
  return {.groups = std::max<std::int64_t>(1, value_at_hint(point_count(pool, way.outer), symbols)),
          .length = value_at_hint(way.lines(), symbols),
          .stages = pass ? 1 : 1 + *std::ranges::max_element(stages),
          .partial = bytes_of_partial(way.form),
          .all = bytes_of_partials(way.form, 2),  // what is asked for at each place, and what is not
          .bits = widest_bits,
          .pass = pass ? std::optional(pass->kind) : std::nullopt};
}

// Threads for such rows, which may be read `again`: below sums of exponentials that run along with the greatest so far,
// or, pieces, by blocks that have shared a strip; nothing where others do better.
std::optional<InterleavedRows> with_threads(InterleavedRows way, int widest_bits, bool again, const Target& target) {
  const std::optional<RowOnePass> one_pass = one_pass_of(way, again);
  InterleavedWork work = work_of(way, widest_bits, one_pass);
  work.again = again;
  const auto shape = way.shifted       ? choose_shifted
                     : !way.in_strips  ? shape_turns
                     : way.breadth > 1 ? shape_pieces
                                       : choose_strips;
  if (!shape(way, work, target)) return std::nullopt;
  if (!keep_turns(way, work)) return std::nullopt;
  if (way.kept_turns == 0) way.one_pass = one_pass;
  // What blocks that have single rows may keep.
  const bool shared = again && way.breadth > 1 && way.in_strips && way.chunks > 1;
  if ((way.breadth > 1 || way.shifted) && way.kept_turns == 0 &&
      (work.stages > 1 || (!way.form.columns.empty() && !shared)))
    return std::nullopt;
  return way;
}

// Vectors that a thread may keep: of so many registers, and of so much code.
std::int64_t most_turns_kept(const InterleavedRows& way) {
  const int code = std::max(1, code_of_loops(way.form) * way.width);
  return std::min({std::int64_t{kMostInterleavedTurns}, std::int64_t{kMostKeptWords} / words_of_turn(way),
                   (kMostUnrolled - code_of_joining(way)) / code});
}

// With so many threads and as few blocks as keep their rows between them, or some more.
bool shape_cohort(InterleavedRows& way, int team, InterleavedWork work, const Target& target) {
  way.team = team;
  way.parts = parts_of(team, way);
  if (const int even = working(team, 2 * way.columns(), way.width); !way.in_strips && even > 0) way.parts = even;
  const std::int64_t turns = most_turns_kept(way), most = most_vectors(way);
  if (way.parts == 0 || way.team < way.rows || turns < 1 || !may_be(team, way, work)) return false;
  if (way.in_strips) work.groups *= value_at_hint(way.strips(), way.form.kernel.pool.bounds().symbols);
  if (most > turns * way.parts * largest_cohort(target)) return false;
  way.chunks = cohort_of_columns(to_reduce(way, work), (most + turns * way.parts - 1) / (turns * way.parts), target);
  if (way.chunks == 0) return false;
  const std::int64_t at_once = std::int64_t{way.parts} * way.chunks;
  way.kept_turns = static_cast<int>((most + at_once - 1) / at_once);
  way.cohort = true;
  if (const auto pass = row_one_pass(way.form); pass && pass->kind == RowOnePass::Kind::kExponentials)
    way.one_pass = pass;
  return true;
}

bool leaves_little(const InterleavedRows& way, const InterleavedWork& work) {
  return way.chunks <= blocks_that_leave_little(to_reduce(way, work));
}

// What registers of one block do not hold and would be read again: kept by blocks that wait for one another. Strips are
// as wide as leave little for one another, of whole sectors; those of pieces so narrow that all multiprocessors work.
std::optional<InterleavedRows> kept_by_cohort(InterleavedRows way, int widest_bits, const Target& target) {
  const InterleavedWork work = work_of(way, widest_bits, std::nullopt);
  const auto shaped = [&](std::int64_t columns) -> std::optional<InterleavedRows> {
    for (const int team : {kMostInterleavedThreads / 2, kMostInterleavedThreads}) {
      InterleavedRows found = way;
      if (way.in_strips) found.rows = static_cast<int>(columns / way.breadth);
      if (shape_cohort(found, team, work, target)) return found;
    }
    return std::nullopt;
  };
  if ((way.breadth > 1 && !way.in_strips) || (way.shifted && !way.form.columns.empty())) return std::nullopt;
  if (!way.in_strips || way.shifted) return shaped(0);
  constexpr int kWide = 32;  // lanes
  const Bounds& bounds = way.form.kernel.pool.bounds();
  const int fewest = columns_of_strip(way, work);
  const std::int64_t line = value_at_hint(way.line, bounds.symbols);
  const auto is_enough = [&](const InterleavedRows& found) {
    const std::int64_t blocks = work.groups * value_at_hint(found.strips(), bounds.symbols) * found.chunks;
    return leaves_little(found, work) && (way.breadth == 1 || blocks >= target.multiprocessors);
  };
  std::optional<InterleavedRows> found;
  for (std::int64_t strips = std::max<std::int64_t>(1, line / (kWide * way.width)); strips <= line; strips *= 2) {
    std::int64_t columns = (line + strips - 1) / strips;
    if (strips > 1) columns = (columns + fewest - 1) / fewest * fewest;
    if (std::optional<InterleavedRows> narrower = shaped(columns)) found = narrower;
    if (columns <= fewest || (found && is_enough(*found))) break;
  }
  return found;
}

// Is what a thread has of its rows read once for each loop?
bool reads_again(const InterleavedRows& way) {
  const std::vector<int> stages = stages_of(way.form);
  const bool once = way.one_pass || *std::ranges::max_element(stages) == 0;
  return way.kept_turns == 0 && !(once && way.form.columns.empty());
}

// In less time than one launch more takes, at the hints.
bool is_soon_read_again(const InterleavedRows& way, int widest_bits, const Target& target) {
  const ExprPool& pool = way.form.kernel.pool;
  const std::int64_t elements =
      value_at_hint(point_count(pool, way.outer) * way.lines() * way.line, pool.bounds().symbols);
  const std::vector<int> stages = stages_of(way.form);
  const double bytes = static_cast<double>(elements) * widest_bits / 8 * *std::ranges::max_element(stages);
  return bytes < target.launch_seconds * target.bandwidth;
}

// By blocks that do not wait for one another.
std::optional<InterleavedRows> by_blocks(const InterleavedLines& lines, bool again, const Target& target) {
  InterleavedRows way = lines.way;
  const RowForm& form = way.form;
  const std::vector<int> stages = stages_of(form);
  std::optional<InterleavedRows> found = with_threads(way, lines.widest_bits, again, target);
  // Those that are read again had better be kept, or one pass make moments of them; of few rows, as they take turns.
  const bool is_well_found = found && (found->kept_turns > 0 || (found->one_pass && found->columns() <= kFewRows));
  if (!way.in_strips && way.breadth == 1 && lines.may_be_shifted && !is_well_found &&
      *std::ranges::max_element(stages) > 0) {
    way.in_strips = way.shifted = true;
    std::optional<InterleavedRows> strips = with_threads(way, lines.widest_bits, again, target);
    if (strips || form.columns.empty()) return strips ? strips : found;
    way.in_strips = way.shifted = false;
  }
  // A few that are read again had better be strips that are kept.
  if (form.columns.empty() || (found && found->kept_turns > 0) || way.in_strips || way.breadth > 1 || way.width == 1 ||
      !proves_multiple_of(way.line, way.width, form.kernel.pool.bounds()))
    return found;
  way.in_strips = true;
  std::optional<InterleavedRows> strips = with_threads(way, lines.widest_bits, again, target);
  return strips && strips->kept_turns > 0 ? strips : found;
}

// Pieces of a word share sectors with both neighbours, each time that lanes read or store.
bool asks_for_less(const InterleavedRows& shifted, const InterleavedRows& pieces, int narrowest_bits) {
  return shifted.kept_turns > 0 && pieces.width * narrowest_bits <= 32;
}

}  // namespace

std::optional<InterleavedRows> interleaved_rows(const RowForm& original, const Graph& graph, const Target& target) {
  const RowForm form = with_outputs_beside(with_rows_merged(original, graph));
  // Results of 8 bytes at several places would meet in the banks of shared memory, but for moments of one pass seldom.
  const std::vector<int> stages = stages_of(form);
  const bool reads_twice = *std::ranges::max_element(stages) > 0 || !form.columns.empty(), wide = has_wide_values(form);
  if (wide && reads_twice && !(form.columns.empty() && row_one_pass(form))) return std::nullopt;
  const std::optional<InterleavedLines> lines = interleaved_lines(form, graph);
  std::optional<InterleavedRows> found = lines ? by_blocks(*lines, false, target) : std::nullopt;
  if (reads_twice && !wide)
    if (std::optional<InterleavedRows> kept = kept_strips(form, graph, target))
      return found && found->shifted && asks_for_less(*found, *kept, lines->narrowest_bits) ? found : kept;
  if (!lines) return std::nullopt;
  if (wide && reads_twice) return found && found->one_pass ? found : std::nullopt;
  const IndexExpr length = lines->way.lines();
  if (found ? !reads_again(*found)
            : value_at_hint(length * lines->way.breadth, form.kernel.pool.bounds().symbols) <= kHeldByColumns)
    return found;
  const bool one_launch = found && found->chunks == 1 && is_soon_read_again(lines->way, lines->widest_bits, target);
  if (!one_launch && (!form.columns.empty() || !one_pass_of(lines->way, true)))
    if (std::optional<InterleavedRows> kept = kept_by_cohort(lines->way, lines->widest_bits, target)) return kept;
  std::optional<InterleavedRows> once = by_blocks(*lines, true, target);
  return once && !(one_launch && once->chunks > 1) ? once : found;
}

int turns_of_chunk(const InterleavedRows& way) {
  return turns_of_chunk(way.one_pass ? std::optional(way.one_pass->kind) : std::nullopt);
}

int words_of_turn(const InterleavedRows& way) {
  const ExprPool& pool = way.form.kernel.pool;
  std::map<ValueId, int> words;
  for (const ExprId load : way.loads) words[pool[load].source] = std::max(1, way.width * bits(pool[load].dtype) / 32);
  int of_turn = 0;
  for (const auto& [tensor, count] : words) of_turn += count;
  return of_turn;
}

bool has_room_for_results(const InterleavedRows& way, int threads) {
  return have_room(threads, way.width, bytes_of_partial(way.form), bytes_of_partials(way.form, 2));
}

int launches_of(const InterleavedRows& way) {
  const std::vector<int> stages = stages_of(way.form);
  if (way.chunks == 1) return 1;
  return way.one_pass || way.cohort ? 2 : 2 + *std::ranges::max_element(stages);
}

std::string name_of(const InterleavedRows& way) {
  const char* how = way.breadth > 1 ? "rows of pieces side by side"
                    : way.in_strips ? "rows side by side"
                                    : "interleaved rows";
  return fmt::format("{} threads for {} {}, {} {}blocks each", way.parts, way.rows, how, way.chunks,
                     way.cohort ? "waiting " : "");
}

}  // namespace fusec
