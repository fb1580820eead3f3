#include "analysis/interleaved_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

#include "analysis/axis_merging.h"
#include "analysis/kernel_forms.h"
#include "analysis/row_teams.h"
#include "ir/type.h"

namespace fusec {
namespace {

constexpr int kFewRows = 32, kMostRows = 512;  // that take turns: where a line could be strips; where it could not
constexpr int kMostTurns = 16;
constexpr int kMostShared = 40 * 1024, kMostOfAll = 46 * 1024;  // for a partial result of each place, for all of them
constexpr std::int64_t kOfWarp = 2048;                          // elements that a warp takes
constexpr int kSector = 32;
constexpr std::int64_t kMostOfPiece = 8192;    // elements of a row in a line
constexpr std::int64_t kHeldByColumns = 1024;  // lines that threads with an element of each keep

// Reads the form: which loads and stores are of elements as they follow one another.
class Reader {
 public:
  Reader(const RowForm& form, const Graph& graph)
      : form_(form), graph_(graph), pool_(form.kernel.pool), depends_(dependences(pool_)) {}

  std::optional<InterleavedRows> read() {
    if (!find_axes()) return std::nullopt;
    for (const ExprId id : reachable(pool_, roots_of(form_.kernel)))
      if (!see(id)) return std::nullopt;
    if (way_.loads.empty()) return std::nullopt;
    for (const KernelOutput& output : form_.kernel.outputs) {
      const std::size_t lacking = columns_without(form_, output).size();
      if (form_.columns.empty() || lacking == form_.columns.size()) continue;
      const DType dtype = output.type.dtype;
      if (lacking != 0 || bits(dtype) < 8 ||
          !follows(simplify(flat_index(output.type.shape, output.index), pool_.bounds()), form_.columns))
        return std::nullopt;
      see_width(dtype);
    }
    way_.width = std::clamp(128 / widest_, 1, 8);
    if (way_.width * narrowest_ % 32 != 0) return std::nullopt;
    if (way_.breadth > 1) return has_pieces_of_sectors() ? std::nullopt : in_pieces();
    const auto rows = way_.line.as_constant();
    way_.in_strips =
        !(rows && *rows <= kFewRows) && way_.width > 1 && proves_multiple_of(way_.line, way_.width, pool_.bounds());
    if (!way_.in_strips && (apart_ || !rows || *rows > kMostRows)) {
      if (!may_be_shifted()) return std::nullopt;
      way_.in_strips = way_.shifted = true;
    }
    if (!way_.in_strips) way_.rows = static_cast<int>(*rows);
    way_.apart = apart_;
    return way_;
  }
  int widest_bits() const { return widest_; }
  // What is stored of a line's first and last vectors would be single elements.
  bool may_be_shifted() const { return !apart_ && way_.width > 1 && form_.columns.empty() && way_.line.as_constant(); }

 private:
  // Rows of whole sectors in each line are as well taken one by one.
  bool has_pieces_of_sectors() const { return way_.breadth * narrowest_ % (8 * kSector) == 0; }

  std::optional<InterleavedRows> in_pieces() {
    if (way_.width == 1 || apart_) return std::nullopt;
    const auto line = way_.line.as_constant();
    way_.in_strips = proves_multiple_of(way_.line, way_.width, pool_.bounds());
    if (!way_.in_strips && (!line || *line > kMostRows || !way_.outer.empty())) return std::nullopt;
    if (!way_.in_strips) way_.rows = static_cast<int>(*line) / way_.breadth;
    return way_;
  }

  bool find_axes() {
    if (form_.rows.empty()) return false;
    if (!form_.columns.empty()) walks_.push_back(form_.columns);
    for (const ExprId r : form_.reductions) walks_.push_back(pool_[r].axes);
    const auto extents_of = [&](const std::vector<std::uint32_t>& axes) {
      std::vector<IndexExpr> extents;
      for (const std::uint32_t a : axes) extents.push_back(pool_.extent(a));
      return extents;
    };
    const std::vector<IndexExpr> extents = extents_of(walks_[0]);
    if (std::ranges::any_of(walks_, [&](const auto& axes) { return extents_of(axes) != extents; })) return false;
    const auto breadth = extents.size() == 2 ? extents[1].as_constant() : 1;
    if (extents.size() > 2 || !breadth || *breadth > kMostOfPiece) return false;
    length_ = extents[0];
    way_.breadth = static_cast<int>(*breadth);
    for (const auto& axes : walks_) along_.insert(along_.end(), axes.begin(), axes.end());
    std::ranges::sort(along_);
    for (const std::uint32_t a : form_.rows) {  // the first load says which is the inner one
      if (range_of(pool_.extent(a), pool_.bounds()).min < 2 || !is_innermost(a)) continue;
      way_.inner = a;
      way_.line = pool_.extent(a) * way_.breadth;
      for (const std::uint32_t other : form_.rows)
        if (other != a) {
          way_.outer.push_back(other);
          outer_ = outer_ * pool_.extent(other) + IndexExpr::axis(other);
        }
      return true;
    }
    return false;
  }

  IndexExpr position(const ExprNode& load) const {
    return simplify(flat_index(graph_.tensor(load.source).shape, load.indices), pool_.bounds());
  }
  bool runs_along(ExprId id) const {
    return std::ranges::any_of(along_, [&](std::uint32_t a) { return std::ranges::binary_search(depends_[id], a); });
  }

  bool is_innermost(std::uint32_t axis) const {
    for (const ExprId id : reachable(pool_, roots_of(form_.kernel)))
      if (pool_[id].op == ExprOp::kLoad && runs_along(id) && std::ranges::binary_search(depends_[id], axis))
        return coefficient_of(position(pool_[id]), {Variable::Kind::kAxis, axis}) == way_.breadth;
    return false;
  }

  bool follows(const IndexExpr& at, const std::vector<std::uint32_t>& walk) const {
    const IndexExpr row = IndexExpr::axis(way_.inner) * way_.breadth;
    IndexExpr place = (outer_ * length_ + IndexExpr::axis(walk[0])) * way_.line + row;
    if (walk.size() > 1) place += IndexExpr::axis(walk[1]);
    return simplify(at - place, pool_.bounds()).is(0);
  }

  void see_width(DType dtype) {
    widest_ = std::max(widest_, bits(dtype));
    narrowest_ = std::min(narrowest_, bits(dtype));
  }

  bool see(ExprId id) {
    const ExprNode& n = pool_[id];
    if (n.op == ExprOp::kReduce && std::ranges::find(form_.reductions, id) == form_.reductions.end()) return false;
    if (n.op != ExprOp::kLoad || !runs_along(id)) return true;
    if (n.args[0] != kNoExpr || bits(n.dtype) < 8) return false;
    const IndexExpr at = position(n);
    if (std::ranges::none_of(walks_, [&](const auto& walk) { return follows(at, walk); })) {
      apart_ = true;  // the same for all of a line: an element for several lanes
      return !std::ranges::binary_search(depends_[id], way_.inner);
    }
    see_width(n.dtype);
    way_.loads.push_back(id);
    return true;
  }

  const RowForm& form_;
  const Graph& graph_;
  const ExprPool& pool_;
  std::vector<std::vector<std::uint32_t>> depends_;
  std::vector<std::vector<std::uint32_t>> walks_;  // axes of the loops over a row
  std::vector<std::uint32_t> along_;               // all of them
  IndexExpr length_ = 1, outer_ = 0;
  bool apart_ = false;
  int widest_ = 8, narrowest_ = 64;
  InterleavedRows way_;
};

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
struct Work {
  std::int64_t groups = 1, length = 1;  // places of the outer axes; elements of a row
  std::int64_t stages = 1;
  int partial = 4;  // bytes of a partial result
  int all = 4;      // of those that have memory at once
  int bits = 32;    // of the widest element
  bool in_one_pass = false;
};

constexpr int kMostThreads = 512;

bool may_be(int threads, const InterleavedRows& way, const Work& work, int most = kMostThreads) {
  const std::int64_t places = std::int64_t{threads} * way.width * 33 / 32;
  return places * work.partial <= kMostShared && places * work.all <= kMostOfAll && threads <= most;
}

RowsToReduce to_reduce(const InterleavedRows& way, const Work& work) {
  return {.blocks = work.groups,
          .length = work.length * way.columns(),
          .stages = static_cast<int>(work.stages),
          .passes = static_cast<int>(work.stages),
          .columns = !way.form.columns.empty(),
          .bytes = work.bits / 8.0,
          .bytes_read = work.bits / 8.0,
          .side_by_side = way.rows};
}

// Beside what they read.
int chunks_that_leave_little(int chunks, const Work& work) {
  const std::int64_t most = work.length * work.bits / 8 / (std::int64_t{64} * work.partial);
  return static_cast<int>(std::clamp<std::int64_t>(most, 1, chunks));
}

// Joining moments takes as much as some turns.
int chunks_that_join_little(int chunks, std::int64_t vectors, const InterleavedRows& way, const Work& work) {
  constexpr int kTurnsOfChunk = 16;
  return work.in_one_pass
             ? static_cast<int>(std::clamp<std::int64_t>(vectors / (kTurnsOfChunk * way.team), 1, std::max(chunks, 1)))
             : chunks;
}

// The blocks of a strip.
int chunks_of_strips(const InterleavedRows& way, const Work& work, bool held, const Target& target) {
  const int chunks = chunks_that_leave_little(chunks_of_columns(to_reduce(way, work), target, held ? 1 : 0), work);
  return chunks_that_join_little(chunks, work.length * way.lanes(), way, work);
}

// With so many lanes to a line: the threads of a team, the blocks of a strip. False where shared memory has no room.
bool shape_strips(InterleavedRows& way, Work work, int lanes, const Target& target) {
  const std::int64_t line = value_at_hint(way.line, way.form.kernel.pool.bounds().symbols);
  way.rows = lanes * way.width;
  work.groups *= (line + way.rows - 1) / way.rows;
  way.team = std::max(64, way.rows);
  while (may_be(2 * way.team, way, work) && work.length > std::int64_t{8} * way.team / lanes) way.team *= 2;
  way.parts = way.team;
  const bool held = work.length <= std::int64_t{kMostTurns} * way.team / lanes;
  way.chunks = chunks_of_strips(way, work, held, target);
  return may_be(way.team, way, work);
}

// Lines of 32 lanes; of fewer, where those make as many strips, where there is not a block for every multiprocessor, or
// where registers do not hold what a team reads twice; but not where blocks share strips.
bool choose_strips(InterleavedRows& way, Work work, const Target& target) {
  constexpr int kFewestLines = 32, kLine = 64, kBytes = 256;  // of lanes, where lines begin at so many bytes, or not
  if (work.length < kFewestLines) return false;               // a thread had better have all of a row
  const ExprPool& pool = way.form.kernel.pool;
  const std::int64_t line = value_at_hint(way.line, pool.bounds().symbols);
  const auto strips = [&](int lanes) { return (line + lanes * way.width - 1) / (lanes * way.width); };
  int wide = 32;
  while (wide > 4 && strips(wide / 2) == strips(wide)) wide /= 2;
  const bool even = proves_multiple_of(way.line, 8 * kLine / work.bits, pool.bounds());
  int lanes = wide;
  const auto turns_held = [](int of_line) { return std::int64_t{kMostTurns} * (kMostThreads / of_line); };
  const auto holds = [&] { return work.length <= turns_held(lanes); };
  while (lanes * way.width * work.bits / 8 > (even ? kLine : kBytes) &&
         (work.groups * strips(lanes) < target.multiprocessors || (!way.form.columns.empty() && !holds())))
    lanes /= 2;
  // Lines of a sector, where threads then keep what they would read again.
  const bool of_sectors = proves_multiple_of(way.line, 8 * kSector / work.bits, pool.bounds());
  if (const int few = std::max(1, 8 * kSector / (work.bits * way.width));
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
bool shape_shifted(InterleavedRows& way, Work work, int bytes, const Target& target) {
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
  const auto may_be_more = [&] { return (lines + unlike) * way.lanes() <= kMostThreads; };
  while (may_be_more() && work.length > (once ? kTurns : kMostTurns) * std::int64_t{lines}) lines += unlike;
  way.parts = lines * way.lanes();
  way.team = (way.parts + 31) / 32 * 32;
  if (work.length < 2 * lines) return false;
  way.chunks = once ? chunks_of_strips(way, work, false, target) : 1;
  return may_be(way.team, way, work, 2 * kMostThreads);
}

// Narrower ones only where these need no other blocks.
bool choose_shifted(InterleavedRows& way, Work work, const Target& target) {
  constexpr int kWide = 1024, kNarrow = 256;
  for (int bytes = kWide; bytes >= kNarrow; bytes /= 2)
    if (shape_shifted(way, work, bytes, target) && way.chunks == 1) return true;
  return shape_shifted(way, work, kWide, target);
}

// As many lines at once as leave each thread so many turns.
void take_lines(InterleavedRows& way, const Work& work, int turns) {
  int lines = std::max(1, 64 / way.lanes());
  while (2 * lines * way.lanes() <= kMostThreads && work.length >= std::int64_t{2} * turns * lines) lines *= 2;
  way.parts = lines * way.lanes();
  way.team = (way.parts + 31) / 32 * 32;
}

// A row to a team, of as many elements of each line as are vectors for all of its threads.
bool shape_long_pieces(InterleavedRows& way, Work work, const Target& target) {
  constexpr int kTurns = 16;
  way.rows = 1;
  way.shifted = true;  // its first and last vectors are others' as well
  if (way.lanes() > 2 * kMostThreads || !way.form.columns.empty() || work.stages > 1) return false;
  work.groups *= value_at_hint(way.strips(), way.form.kernel.pool.bounds().symbols);
  take_lines(way, work, kTurns);
  way.team = static_cast<int>(std::bit_ceil(static_cast<unsigned>(way.team)));
  way.chunks = chunks_of_strips(way, work, false, target);
  return true;
}

// Strips of rows that have several elements of each line: so many rows as share no sector with others', and more lines
// at once where there are many. False where those that blocks cannot share are few.
bool shape_pieces(InterleavedRows& way, Work work, const Target& target) {
  constexpr int kFewLanes = 32, kMostLanes = 512, kTurns = 16, kTurnsKept = 8, kFewStrips = 6;
  const bool once = way.form.columns.empty() && work.stages == 1;
  const std::int64_t line = value_at_hint(way.line, way.form.kernel.pool.bounds().symbols);
  const auto strips = [&](int columns) { return work.groups * ((line + columns - 1) / columns); };
  const auto are_enough = [&](int columns) { return once || kFewStrips * strips(columns) >= target.multiprocessors; };
  way.rows = way.width / std::gcd(way.width, way.breadth);
  const auto may_be_twice = [&] {
    return 2 * way.lanes() <= kMostLanes && 2 * way.columns() <= line && are_enough(2 * way.columns());
  };
  while (may_be_twice() && (way.columns() * work.bits % (8 * kSector) != 0 || way.lanes() < kFewLanes)) way.rows *= 2;
  if (way.lanes() > kMostLanes) return shape_long_pieces(way, work, target);
  if (!are_enough(way.columns())) return false;
  work.groups = strips(way.columns());
  take_lines(way, work, once ? kTurns : kTurnsKept);
  if (once) way.chunks = chunks_of_strips(way, work, false, target);
  return way.rows <= way.team && may_be(way.team, way, work);
}

// The same of rows that take turns.
bool shape_turns(InterleavedRows& way, Work work, const Target& target) {
  const std::int64_t length = work.length * way.columns(), vectors = (length + way.width - 1) / way.width;
  if (length < 64 * way.columns()) return false;  // short ones: a thread each, or so
  // Three quarters of a team's threads, or half of those of many rows.
  const auto busy = [&](int team) {
    const int quarters = way.columns() <= kFewRows ? 3 : 2;
    return team >= way.columns() && 4 * working(team, way.columns(), way.width) >= quarters * team;
  };
  if (length <= kOfWarp && work.groups > 1 && busy(32)) {
    way.team = 32;
    way.teams = 4;
  } else {
    way.team = 64;
    while (may_be(2 * way.team, way, work) && (!busy(way.team) || vectors > 8 * way.team)) way.team *= 2;
    // Twice as many where they then keep it all.
    const auto turns = [&](int team) { return vectors / working(team, way.columns(), way.width); };
    if (!way.form.columns.empty() && busy(2 * way.team) && may_be(2 * way.team, way, work, 2 * kMostThreads) &&
        turns(way.team) >= kMostTurns && turns(2 * way.team) < kMostTurns * 5 / 8)
      way.team *= 2;
    if (!busy(way.team)) return false;
    const bool held = turns(way.team) < kMostTurns;
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
  std::vector<ExprId> of_elements;
  for (const KernelOutput& output : form.kernel.outputs)
    if (!is_of_rows(form, output)) of_elements.push_back(output.expr);
  return code + code_of_element(form, of_elements);
}

// What a thread keeps is known by number of a turn, so that its loops are unrolled: more threads with fewer turns each
// where that is too much code. False where a single vector is too much, and one more for rows that end within one.
bool keep_turns(InterleavedRows& way, const IndexExpr& length, const Work& work) {
  constexpr int kJoining = 40;  // instructions, of a result at a place of threads' vectors
  const ExprPool& pool = way.form.kernel.pool;
  const int of_line = way.in_strips ? way.lanes() * way.width : way.columns();
  const std::int64_t most = range_of(length * of_line, pool.bounds()).max, code = code_of_loops(way.form) * way.width;
  const auto turns = [&](int parts) { return (most / way.width + parts - 1) / parts; };
  if (2 * code > kMostUnrolled) return false;
  if (way.chunks > 1 || turns(way.parts) < 1 || turns(way.parts) > kMostTurns) return true;
  const auto parts = [&](int team) {
    if (!way.in_strips) return working(team, way.columns(), way.width);
    const int lines = team / way.lanes();
    return (way.shifted ? lines / unlike_lines(way) * unlike_lines(way) : lines) * way.lanes();
  };
  const auto joining = static_cast<std::int64_t>(way.form.reductions.size()) * way.width * kJoining;
  while (way.teams == 1 && turns(way.parts) > 1 && turns(way.parts) * code + joining > kMostUnrolled &&
         may_be(2 * way.team, way, work)) {
    way.team *= 2;
    way.parts = parts(way.team);
  }
  if (turns(way.parts) * code <= kMostUnrolled) way.kept_turns = static_cast<int>(turns(way.parts));
  return true;
}

// Moments whose mean a thread makes of the sum alone.
std::optional<RowOnePass> moments_of(const InterleavedRows& way) {
  const ExprPool& pool = way.form.kernel.pool;
  const std::optional<RowOnePass> pass = row_one_pass(way.form);
  if (!pass || pass->kind != RowOnePass::Kind::kMoments) return std::nullopt;
  return dependences(pool)[pool[pass->mean].args[1]].empty() ? pass : std::nullopt;
}

// Threads for such rows, of whose widest element there are so many bits; nothing where others do better.
std::optional<InterleavedRows> with_threads(InterleavedRows way, int widest_bits, const Target& target) {
  const ExprPool& pool = way.form.kernel.pool;
  const std::vector<Symbol>& symbols = pool.bounds().symbols;
  const std::vector<int> stages = stages_of(way.form);
  const std::optional<RowOnePass> one_pass = moments_of(way);
  const IndexExpr length = way.lines();
  const Work work{.groups = std::max<std::int64_t>(1, value_at_hint(point_count(pool, way.outer), symbols)),
                  .length = value_at_hint(length, symbols),
                  .stages = one_pass ? 1 : 1 + *std::ranges::max_element(stages),
                  .partial = bytes_of_partial(way.form),
                  .all = bytes_of_partials(way.form, 2),  // what is asked for at each place, and what is not
                  .bits = widest_bits,
                  .in_one_pass = one_pass.has_value()};
  const auto shape = way.shifted       ? choose_shifted
                     : !way.in_strips  ? shape_turns
                     : way.breadth > 1 ? shape_pieces
                                       : choose_strips;
  if (!shape(way, work, target)) return std::nullopt;
  if (!keep_turns(way, length, work)) return std::nullopt;
  if (way.kept_turns == 0) way.one_pass = one_pass;
  // What blocks that have single rows may keep.
  if ((way.breadth > 1 || way.shifted) && way.kept_turns == 0 && (work.stages > 1 || !way.form.columns.empty()))
    return std::nullopt;
  return way;
}

}  // namespace

std::optional<InterleavedRows> interleaved_rows(const RowForm& original, const Graph& graph, const Target& target) {
  const RowForm form = with_rows_merged(original, graph);
  Reader reader(form, graph);
  std::optional<InterleavedRows> way = reader.read();
  if (!way) return std::nullopt;
  way->form = form;
  // Results of 8 bytes at several places would meet in the banks of shared memory.
  const std::vector<int> stages = stages_of(form);
  if (has_wide_values(form) && (*std::ranges::max_element(stages) > 0 || !form.columns.empty())) return std::nullopt;
  std::optional<InterleavedRows> found = with_threads(*way, reader.widest_bits(), target);
  // Those that are read again had better be kept, or one pass make moments of them; of few rows, as they take turns.
  const bool is_well_found = found && (found->kept_turns > 0 || (found->one_pass && found->columns() <= kFewRows));
  if (!way->in_strips && way->breadth == 1 && reader.may_be_shifted() && !is_well_found &&
      *std::ranges::max_element(stages) > 0) {
    way->in_strips = way->shifted = true;
    std::optional<InterleavedRows> strips = with_threads(*way, reader.widest_bits(), target);
    return strips ? strips : found;
  }
  // A few that are read again had better be strips that are kept.
  if (form.columns.empty() || (found && found->kept_turns > 0) || way->in_strips || way->breadth > 1 ||
      way->width == 1 || !proves_multiple_of(way->line, way->width, form.kernel.pool.bounds()))
    return found;
  way->in_strips = true;
  std::optional<InterleavedRows> strips = with_threads(*way, reader.widest_bits(), target);
  return strips && strips->kept_turns > 0 ? strips : found;
}

int launches_of(const InterleavedRows& way) {
  const std::vector<int> stages = stages_of(way.form);
  if (way.chunks == 1) return 1;
  return way.one_pass ? 2 : 2 + *std::ranges::max_element(stages);
}

std::string name_of(const InterleavedRows& way) {
  if (way.breadth > 1)
    return fmt::format("{} threads for {} rows of pieces side by side, {} blocks each", way.parts, way.rows,
                       way.chunks);
  if (way.in_strips)
    return fmt::format("{} threads for {} rows side by side, {} blocks each", way.parts, way.rows, way.chunks);
  return fmt::format("{} threads for {} interleaved rows, {} blocks each", way.parts, way.rows, way.chunks);
}

}  // namespace fusec
