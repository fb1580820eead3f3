#include "analysis/kept_strips.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>

#include "analysis/row_teams.h"
#include "analysis/row_values.h"
#include "analysis/target.h"
#include "ir/type.h"

namespace fusec {
namespace {

constexpr int kMostStripThreads = 512, kWarpsOfBlock = 4;
constexpr int kMostTurnsOfWarp = 64, kMostTurnsOfBlock = 16;
constexpr int kMeeting = 60;              // instructions for warps to join what they have of a reduction
constexpr int kInstructionsOfAccess = 4;  // instructions of a load or store, with where it lies

// What there is to reduce, with symbols at their hints.
struct StripWork {
  std::int64_t groups = 1, line = 1, length = 1, longest = 1;
  int reductions = 1, accesses = 2, widest_bits = 32;
  int code = 1, values = 1;  // where values are kept from loop to loop, and how many
  int code_anew = 1;         // where they are not
  int apart = 0;             // tensors of which each line has one element
  bool are_of_sectors = false;
};

struct StripCost {
  double work = 0;  // instructions of warps, as much more as is asked for beside what is needed
  double time = 0;  // those, as many times as multiprocessors lack warps or blocks
};

struct Strips {
  InterleavedRows way;
  StripCost cost = {};
};

StripWork lines_of(const InterleavedLines& lines, const Graph& graph) {
  const InterleavedRows& way = lines.way;
  const ExprPool& pool = way.form.kernel.pool;
  const Symbols& symbols = pool.bounds().symbols;
  std::map<ValueId, int> tensors;
  for (const ExprId load : way.loads) ++tensors[pool[load].source];
  const auto depends = dependences(pool);
  std::set<ValueId> apart;
  for (const ExprId id : reachable(pool, roots_of(way.form.kernel)))
    if (way.apart && pool[id].op == ExprOp::kLoad && !tensors.contains(pool[id].source) &&
        !std::ranges::binary_search(depends[id], way.inner))
      apart.insert(pool[id].source);
  int stored = 0;
  for (const KernelOutput& output : way.form.kernel.outputs) stored += is_of_rows(way.form, output) ? 0 : 1;
  return {.groups = std::max<std::int64_t>(1, value_at_hint(point_count(pool, way.outer), symbols)),
          .line = value_at_hint(way.line, symbols),
          .length = value_at_hint(way.lines(), symbols),
          .longest = range_of(way.lines(), pool.bounds()).max,
          .reductions = static_cast<int>(way.form.reductions.size()),
          .accesses = static_cast<int>(tensors.size()) + stored,
          .widest_bits = lines.widest_bits,
          .code = code_of_row(way.form, graph),
          .values = values_between_loops(way.form, graph),
          .code_anew = code_of_row(way.form, graph, true),
          .apart = static_cast<int>(apart.size()),
          .are_of_sectors = proves_multiple_of(way.line, 8 * kSectorBytes / lines.narrowest_bits, pool.bounds())};
}

// What warps ask for, over what is needed, with so many lanes to a line: sectors that a strip shares with its
// neighbours, and those of tensors of which each line has one element.
double asked_for(const StripWork& lines, int lanes, int width) {
  const double bytes = lines.widest_bits / 8.0, of_line = bytes * lanes * width;
  const double shared = lines.are_of_sectors || lanes * width >= lines.line ? 0 : kSectorBytes - bytes * width;
  const double of_lines = std::max(1.0, 32 / lanes * bytes / kSectorBytes) * kSectorBytes / lines.accesses;
  return 1 + shared / of_line + lines.apart * of_lines / (32 * bytes * width);
}

// Instructions with which a thread joins what it has of its columns with those that have their other lines.
double joining(const StripWork& lines, int width, int at_once, int team) {
  if (at_once == 1) return 0;
  if (team == kWarpLanes) return 3.0 * lines.reductions * width * std::countr_zero(static_cast<unsigned>(at_once));
  return lines.reductions * (5.0 * width + team / 16.0 + kMeeting);
}

StripCost cost_of(double warps, int warps_of_block, double of_thread, double asked_for, const Target& target) {
  constexpr int kWarpsWanted = 4;
  const double lacking =
      std::max(kWarpsWanted * target.multiprocessors / warps, target.multiprocessors * warps_of_block / warps);
  const double work = warps * of_thread * asked_for;
  return {.work = work, .time = work * std::max(1.0, lacking)};
}

// Threads with single elements of columns, which lie side by side over all groups (RowTeam::kColumn).
StripCost cost_of_single_elements(const StripWork& lines, const Target& target) {
  const double warps_of_part = static_cast<double>(lines.groups * lines.line) / 32;
  const bool few = warps_of_part < 2 * target.multiprocessors;
  const auto eighth = static_cast<unsigned>(std::max<std::int64_t>(1, lines.length / 8));
  const int threads = std::min(static_cast<int>(std::bit_ceil(eighth)), few ? 32 : 8);
  const double elements = static_cast<double>(lines.length + threads - 1) / threads;
  const double joining = threads > 1 ? kMeeting * lines.reductions : 0;
  return cost_of(warps_of_part * threads, threads,
                 elements * (lines.code + kInstructionsOfAccess * lines.accesses) + joining, asked_for(lines, 32, 1),
                 target);
}

// A strip of so many lanes' pieces to a team of so many threads; nothing where they do not keep it.
std::optional<Strips> shape(const InterleavedLines& from, const StripWork& lines, int lanes, int team,
                            const Target& target) {
  Strips found{from.way};
  InterleavedRows& way = found.way;
  const int at_once = team / lanes;
  // A block has single elements as well without strips.
  if (at_once > lines.length || (way.width == 1 && team > kWarpLanes)) return std::nullopt;
  way.rows = lanes * way.width;
  way.team = way.parts = team;
  const auto turns = static_cast<int>((lines.longest + at_once - 1) / at_once);
  const int most = team == kWarpLanes ? kMostTurnsOfWarp : kMostTurnsOfBlock;
  const bool keeps_values = turns * way.width * lines.values <= kMostKeptWords;
  const int code = (keeps_values ? lines.code : lines.code_anew) * way.width;
  if (turns > most || !(keeps_values || turns * words_of_turn(way) <= kMostKeptWords) || turns * code > kMostUnrolled)
    return std::nullopt;
  if (team > kWarpLanes && (team < way.rows || !has_room_for_results(way, team))) return std::nullopt;
  way.kept_turns = turns;
  const std::int64_t strips = lines.groups * ((lines.line + way.rows - 1) / way.rows);
  way.teams = team > kWarpLanes ? 1 : kWarpsOfBlock;
  while (way.teams > 1 && strips < way.teams * target.multiprocessors) way.teams /= 2;
  const double of_turn = code + kInstructionsOfAccess * lines.accesses;
  found.cost =
      cost_of(static_cast<double>(strips * (team / 32)), way.threads() / 32,
              turns * of_turn + joining(lines, way.width, at_once, team), asked_for(lines, lanes, way.width), target);
  return found;
}

// Pieces of a line that leave little of a sector to others.
bool is_wide_enough(const StripWork& lines, int columns) {
  constexpr int kLine = 64;
  return columns >= lines.line || columns * lines.widest_bits / 8 >= (lines.are_of_sectors ? kSectorBytes : kLine);
}

}  // namespace

std::optional<InterleavedRows> kept_strips(const RowForm& form, const Graph& graph, const Target& target) {
  constexpr double kWorthNarrower = 0.97;
  std::optional<InterleavedLines> found = lines_in_pieces(form, graph);
  if (!found) return std::nullopt;
  const StripWork lines = lines_of(*found, graph);
  if (lines.longest > kHeldByColumns || lines.line <= kFewRows) return std::nullopt;
  std::optional<Strips> best;
  for (; found->way.width * found->narrowest_bits >= 32; found->way.width /= 2)
    for (int lanes = 32; lanes > 1; lanes /= 2) {
      if (!is_wide_enough(lines, lanes * found->way.width)) break;
      for (int team = kWarpLanes; team <= kMostStripThreads; team *= 2)
        if (const std::optional<Strips> now = shape(*found, lines, lanes, team, target);
            now && (!best || now->cost.time < kWorthNarrower * best->cost.time))
          best = now;
    }
  const StripCost single = cost_of_single_elements(lines, target);
  if (!best || best->cost.time > single.time || best->cost.work > single.work) return std::nullopt;
  return best->way;
}

}  // namespace fusec
