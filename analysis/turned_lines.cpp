#include "analysis/turned_lines.h"

#include <algorithm>

#include "analysis/copy_expr.h"
#include "analysis/interleaved_rows.h"
#include "analysis/kernel_forms.h"
#include "analysis/lane_sectors.h"
#include "ir/type.h"

namespace fusec {
namespace {

constexpr int kAccessOfThread = 16, kAccessOfNeighbours = 64;  // bytes: of a thread, and of neighbouring ones
constexpr int kBanks = 32, kUnit = 4;                          // words of a vector of shared memory
constexpr int kReserved = 1024, kForResults = 48 * 1024;       // bytes of shared memory

// The greatest power of two of lines that an access may have.
int lines_of_access(const InterleavedRows& way, const TurnedLines& tile) {
  const Bounds& bounds = way.form.kernel.pool.bounds();
  int lines = kAccessOfThread / tile.bytes();
  const auto fits = [&](const IndexExpr& e) { return proves_multiple_of(e, lines, bounds); };
  while (lines > 1 && !(fits(tile.pitch) && fits(tile.start) && fits(way.lines()))) lines /= 2;
  return lines;
}

int round_up(std::int64_t n, int unit) {
  return static_cast<int>((n + unit - 1) / unit) * unit;
}

bool has_whole_strips(const InterleavedRows& way) {
  return way.teams == 1 && proves_multiple_of(way.line, way.columns(), way.form.kernel.pool.bounds());
}

// Of how many lines a block's are a multiple.
int choose_accesses(InterleavedRows& way) {
  int unit = 1;
  for (TurnedLines& tile : way.turned) {
    tile.vector = lines_of_access(way, tile);
    tile.lanes = std::clamp(kAccessOfNeighbours / (tile.vector * tile.bytes()), 1, kBanks);
    unit = std::max(unit, tile.vector * tile.lanes);
  }
  return unit;
}

void place_tiles(InterleavedRows& way) {
  way.turned_words = 0;
  for (TurnedLines& tile : way.turned) {
    // Lanes of one element, and those of the next ones', are in different banks.
    tile.words = round_up((way.columns() * tile.bytes() + 3) / 4, kUnit);
    const int apart = std::max(kUnit, kBanks / tile.lanes);
    tile.skew = ((apart - tile.vector * tile.words) % kBanks + kBanks) % kBanks;
    tile.place = way.turned_words;
    way.turned_words += way.lines_of_block * tile.words + way.lines_of_block / tile.vector * tile.skew;
    way.turned_words = round_up(way.turned_words, kUnit);
  }
}

}  // namespace

int TurnedLines::bytes() const {
  return bits(dtype) / 8;
}

std::optional<RowForm> over_lines(const RowForm& form, std::uint32_t pieces) {
  const ExprPool& pool = form.kernel.pool;
  if (form.columns.size() != 2 || !form.beside.empty() || !form.segments.empty() || form.pieces != 1)
    return std::nullopt;
  const std::uint32_t line = form.columns[0] == pieces ? form.columns[1] : form.columns[0];
  const IndexExpr lines = pool.extent(line), breadth = pool.extent(pieces);
  // Those over one axis go over it as it lies where lines are turned.
  const auto goes_over = [&](const std::vector<std::uint32_t>& axes) {
    if (axes.size() == 1) return simplify(pool.extent(axes[0]) - lines * breadth, pool.bounds()).is(0);
    if (axes.size() != 2 || lines == breadth) return false;
    const IndexExpr &first = pool.extent(axes[0]), &second = pool.extent(axes[1]);
    return (first == lines && second == breadth) || (first == breadth && second == lines);
  };
  if (!std::ranges::all_of(form.reductions, [&](ExprId r) { return goes_over(pool[r].axes); })) return std::nullopt;
  RowForm result = form;
  result.kernel = change_axes(form.kernel, [&](ExprPool& changed, ExprCopier& copier) {
    AxisChange change = same_axes(form.kernel, changed);
    for (const ExprId r : form.reductions) {
      const std::vector<std::uint32_t>& axes = pool[r].axes;
      std::vector<std::uint32_t>& after = copier.reduction_axes[axes];
      if (!after.empty()) continue;
      after = {changed.new_axis(lines), changed.new_axis(breadth)};
      const IndexExpr of_line = IndexExpr::axis(after[0]), piece = IndexExpr::axis(after[1]);
      if (axes.size() == 1) {
        copier.axis[axes[0]] = piece * lines + of_line;
      } else {
        const bool in_order = pool.extent(axes[0]) == lines;
        copier.axis[axes[0]] = in_order ? of_line : piece;
        copier.axis[axes[1]] = in_order ? piece : of_line;
      }
    }
    return change;
  });
  const std::vector<std::uint32_t>& axes = result.kernel.outputs[0].axes;
  const auto now = [&](std::uint32_t axis) {
    const auto& before = form.kernel.outputs[0].axes;
    return axes[static_cast<std::size_t>(std::ranges::find(before, axis) - before.begin())];
  };
  for (std::uint32_t& a : result.rows) a = now(a);
  result.columns = {now(line), now(pieces)};
  result.reductions = row_reductions(result.kernel);
  return result;
}

std::optional<TurnedLines> turned_lines(const IndexExpr& at, std::uint32_t line, std::uint32_t inner,
                                        std::int64_t breadth, std::uint32_t piece, const Bounds& bounds) {
  const auto along = difference_along(at, line, bounds), pitch = difference_along(at, piece, bounds);
  const auto of_rows = difference_along(at, inner, bounds);
  if (!along || !pitch || !of_rows || !along->is(1) || pitch->is(0)) return std::nullopt;
  if (!simplify(*pitch * breadth - *of_rows, bounds).is(0)) return std::nullopt;
  TurnedLines tile{.pitch = *pitch};
  tile.start = simplify(substitute(at,
                                   [&](Variable v) -> std::optional<IndexExpr> {
                                     const auto is = [&](auto a) { return v == Variable{Variable::Kind::kAxis, a}; };
                                     if (is(line) || is(inner) || is(piece)) return IndexExpr(0);
                                     return std::nullopt;
                                   }),
                        bounds);
  return tile;
}

bool keep_turned_lines(InterleavedRows& way, const Target& target) {
  const std::int64_t lines = range_of(way.lines(), way.form.kernel.pool.bounds()).max;
  if (lines > (std::int64_t{1} << 20) || !has_whole_strips(way)) return false;
  const int unit = choose_accesses(way);
  way.lines_of_block = round_up((lines + way.chunks - 1) / way.chunks, unit);
  way.chunks = static_cast<int>((lines + way.lines_of_block - 1) / way.lines_of_block);
  way.cohort = way.cohort && way.chunks > 1;
  const int at_once = way.parts / way.lanes();
  way.kept_turns = static_cast<int>((std::min<std::int64_t>(lines, way.lines_of_block) + at_once - 1) / at_once);
  place_tiles(way);
  return 4 * way.turned_words + kForResults + kReserved <= target.shared_bytes_per_block;
}

bool stream_turned_lines(InterleavedRows& way) {
  constexpr int kBytes = 32 * 1024, kTurns = 2;  // so little that several blocks have room
  if (!has_whole_strips(way)) return false;
  const int unit = choose_accesses(way);
  for (way.lines_of_block = round_up(kTurns * (way.parts / way.lanes()), unit);; way.lines_of_block -= unit) {
    place_tiles(way);
    if (way.lines_of_block == unit || 4 * way.turned_words <= kBytes) break;
  }
  const std::int64_t lines = value_at_hint(way.lines(), way.form.kernel.pool.bounds().symbols);
  way.chunks = static_cast<int>(std::clamp<std::int64_t>(lines / way.lines_of_block, 1, way.chunks));
  return 4 * way.turned_words <= kBytes && way.chunks > 1;
}

}  // namespace fusec
