#include "codegen/schedules/line_strips.h"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>

#include "analysis/kernel_forms.h"
#include "analysis/loads.h"
#include "analysis/target.h"
#include "codegen/schedules/access_samples.h"
#include "codegen/schedules/box_walk.h"
#include "ir/type.h"

namespace fusec {
namespace {

constexpr int kMostStripBytes = 80 * 1024;  // two such blocks have any multiprocessor

class LineStripsPlanner {
 public:
  LineStripsPlanner(const TransposeChoice& choice, const Graph& graph, const Target& target)
      : kernel_(choice.kernel),
        pool_(kernel_.pool),
        graph_(graph),
        target_(target),
        staged_(choice.tiles),
        output_(kernel_.outputs[0]),
        size_(bits(output_.type.dtype) / 8) {}

  std::optional<LineStrips> run() {
    if (!takes_words() || !begins_between_vectors() || !long_lines() || !find_lines()) return std::nullopt;
    // The first of those that are nearly as good where no two lanes meet in banks, or in the fewest.
    constexpr double kAsGood = 1.03;
    const std::vector<Candidate> candidates = ranked();
    std::optional<LineStrips> best;
    int fewest = 0, tried = 0;
    constexpr int kMostTried = 8;
    for (const Candidate& candidate : candidates) {
      if (best && (candidate.cost > kAsGood * candidates[0].cost || tried++ > kMostTried)) break;
      int conflicts = 0;
      auto strips = laid_out(candidate, conflicts);
      if (!strips || (best && conflicts >= fewest)) continue;
      fewest = conflicts;
      best = std::move(strips);
      if (fewest == 0) break;
    }
    return best;
  }

 private:
  struct Lines {
    ExprId load;
    int size;             // bytes of an element
    std::int64_t stride;  // elements, from one line to the next
    bool evenly;          // they lie; else the first of them begin so
    std::vector<std::int64_t> begins;
    bool stride_known;
    int aligned;  // bytes that lines begin at multiples of
  };
  struct Candidate {
    int width, height, step;  // the strip's lines; the result's of a block, and of a step
    double time, cost;
  };

  // One result; loads along one other axis that are all there, of no wider elements where a word of the result has
  // several (lanes would read every other word of the strip); what else is loaded along the result's lines is a word of
  // each lane as well.
  bool takes_words() const {
    if (kernel_.outputs.size() != 1 || size_ < 1 || staged_.tiled.size() != 2) return false;
    std::vector<ExprId> staged;
    for (const StagedLoad& load : staged_.loads) {
      if (!load.linear || load.bits < 8 || pool_[load.load].args[0] != kNoExpr) return false;
      if (size_ < 4 && load.bits > 8 * size_) return false;
      staged.push_back(load.load);
    }
    if (size_ >= 4) return true;
    const auto depends = dependences(pool_);
    return std::ranges::all_of(reachable(pool_, roots_of(kernel_)), [&](ExprId id) {
      return pool_[id].op != ExprOp::kLoad || std::ranges::find(staged, id) != staged.end() ||
             std::ranges::find(depends[id], staged_.stored) == depends[id].end();
    });
  }

  std::uint32_t along() const { return staged_.tiled[1].axis; }
  IndexExpr stored_position() const { return simplify(flat_index(output_.type.shape, output_.index), pool_.bounds()); }
  std::int64_t hint(const IndexExpr& e) const { return value_at_hint(e, graph_.symbols); }

  // Then every access of it is of so many elements.
  bool lies_in(int elements, const IndexExpr& position, std::uint32_t axis) const {
    return proves_multiple_of(position - IndexExpr::axis(axis), elements, pool_.bounds()) &&
           proves_multiple_of(pool_.extent(axis), elements, pool_.bounds());
  }
  bool begins_between_vectors() const {
    const bool loads = std::ranges::all_of(staged_.loads, [&](const StagedLoad& load) {
      return lies_in(128 / load.bits, position_of(graph_, pool_, load.load), along());
    });
    return !loads || !lies_in(kVectorBytes / size_, stored_position(), staged_.stored);
  }

  bool long_lines() const {
    constexpr std::int64_t kShortest = 64;
    return std::ranges::all_of(staged_.tiled,
                               [&](const TiledAxis& tiled) { return hint(pool_.extent(tiled.axis)) >= kShortest; });
  }

  // The result's lines lie evenly apart.
  bool find_lines() {
    const auto of_result = step_along(stored_position(), along(), pool_.bounds());
    if (!of_result || hint(*of_result) <= 0) return false;
    result_stride_ = hint(*of_result);
    columns_ = hint(pool_.extent(staged_.stored));
    rows_ = hint(pool_.extent(along()));
    known_ = pool_.extent(staged_.stored).as_constant().has_value();
    follow_ = known_ && of_result->is(columns_);
    whole_sectors_ = lies_in(kSectorBytes / size_, stored_position(), staged_.stored);
    blocks_beside_ = 1;
    for (const std::uint32_t axis : output_.axes)
      if (axis != staged_.stored && axis != along()) blocks_beside_ *= hint(pool_.extent(axis));
    for (const StagedLoad& load : staged_.loads) {
      const IndexExpr position = position_of(graph_, pool_, load.load);
      const auto stride = step_along(position, staged_.stored, pool_.bounds());
      const std::int64_t distance = stride ? hint(*stride) : 1;
      if (distance <= 0) return false;
      lines_.push_back({.load = load.load,
                        .size = load.bits / 8,
                        .stride = distance,
                        .evenly = stride.has_value(),
                        .begins = stride ? std::vector<std::int64_t>{} : first_lines(load.load),
                        .stride_known = stride && stride->is_constant(),
                        .aligned = alignment_of(position - IndexExpr::axis(along()), load.bits, pool_.bounds())});
    }
    return true;
  }

  std::vector<std::int64_t> first_lines(ExprId load) const {
    AccessSamples samples(kernel_, graph_);
    std::vector<std::int64_t> begins;
    constexpr std::int64_t kLines = 256;
    for (std::int64_t line = 0; line < std::min(kLines, columns_); ++line) {
      samples.set(staged_.stored, line);
      begins.push_back(samples.position(load).value_or(0));
    }
    return begins;
  }

  // Lines in rings and as wholes, the strips and what a block has of them in equal parts.
  std::vector<Candidate> ranked() const {
    std::vector<Candidate> candidates;
    int least = 8, most = 1;
    for (const Lines& lines : lines_) least = std::min(least, lines.size), most = std::max(most, lines.size);
    const int sector = kSectorBytes / size_;
    const bool in_steps = std::ranges::all_of(lines_, &Lines::evenly);
    const auto consider = [&](int width, std::int64_t height, int step) {
      Candidate candidate{.width = width, .height = static_cast<int>(height), .step = step, .time = 0, .cost = 0};
      if (bytes_at_least(candidate) > kMostStripBytes) return;
      find_cost(candidate);
      candidates.push_back(candidate);
    };
    constexpr int kMostOfStep = 32;  // what is known of more lines would take too many registers
    int before = 0;
    constexpr std::int64_t kWidest = 1280;
    for (std::int64_t strips = ceil_quotient(columns_, kWidest); strips <= columns_; strips += 1 + strips / 8) {
      const std::int64_t part = ceil_quotient(columns_, strips);
      const int width = static_cast<int>(strips == 1 && known_ ? columns_ : ceil_quotient(part, sector) * sector);
      if (width < std::min<std::int64_t>(columns_, 64)) break;
      if (width == before) continue;
      before = width;
      const int waits = joined(width) ? 1 : 0;  // for the next line
      for (std::int64_t parts = 1; parts <= rows_; parts += 1 + parts / 8) {
        const std::int64_t height = ceil_quotient(rows_, parts);
        if (height < std::min<std::int64_t>(rows_, 32)) break;
        for (const int step_bytes : {64, 32})
          if (const int step = step_bytes / least;
              in_steps && height > step && step * most <= 128 && step % sector == 0 && step <= kMostOfStep)
            consider(width, ceil_quotient(height + waits, step) * step - waits, step);
        const std::int64_t in_one = parts == 1 ? height : ceil_quotient(height, sector) * sector;
        if (in_one <= 4096) consider(width, in_one, static_cast<int>(in_one));
      }
    }
    std::ranges::stable_sort(candidates, {}, &Candidate::cost);
    return candidates;
  }

  int more_lines(int width) const {
    return whole_sectors_ || (known_ && width >= columns_) ? 0 : kSectorBytes / size_ - 1;
  }
  int lines_of(const Candidate& candidate) const { return candidate.width + more_lines(candidate.width); }
  bool joined(int width) const { return follow_ && !whole_sectors_ && width >= columns_; }

  static int ring_of(const Candidate& candidate, const Lines& lines) {
    if (candidate.height <= candidate.step) return 0;
    return static_cast<int>(std::bit_ceil(static_cast<unsigned>(candidate.step * lines.size + kSectorBytes)));
  }
  // Bytes of a line in shared memory.
  int length_of(const Candidate& candidate, const Lines& lines) const {
    if (const int ring = ring_of(candidate, lines)) return ring;
    const int bytes = candidate.step * lines.size + kSectorBytes - std::min(kSectorBytes, lines.aligned);
    return (bytes + kVectorBytes - 1) / kVectorBytes * kVectorBytes;
  }
  std::int64_t bytes_at_least(const Candidate& candidate) const {
    std::int64_t bytes = 0;
    for (const Lines& lines : lines_) bytes += std::int64_t{lines_of(candidate)} * length_of(candidate, lines);
    return bytes;
  }

  // Lines that all strips copy, for each one of the tensor.
  double copied(const Candidate& candidate) const {
    const std::int64_t strips = ceil_quotient(columns_, candidate.width);
    return 1 + static_cast<double>((strips - 1) * more_lines(candidate.width)) / static_cast<double>(columns_);
  }

  double sectors_of(const Candidate& candidate) const {
    const std::int64_t parts = ceil_quotient(rows_, candidate.height);
    const auto columns = static_cast<double>(columns_), rows = static_cast<double>(rows_);
    double sectors = joined(candidate.width) || whole_sectors_
                         ? size_ / 32.0
                         : sectors_of_stretch(columns_ * size_, std::min(size_, kSectorBytes)) / columns;
    for (const Lines& lines : lines_) {
      const bool one_behind_another = parts == 1 && candidate.step >= rows_ && lines.evenly && lines.stride == rows_;
      const int aligned = parts == 1
                              ? lines.aligned
                              : std::gcd(lines.aligned, static_cast<int>(candidate.height * lines.size % kSectorBytes));
      const double of_line =
          one_behind_another ? rows * lines.size / 32.0
                             : static_cast<double>(parts) *
                                   sectors_of_stretch(ceil_quotient(rows_, parts) * lines.size, std::max(1, aligned));
      sectors += copied(candidate) * of_line / rows;
    }
    return sectors;
  }

  // Of a thread, for a point: of the result's lines, some of which a warp has at a time.
  double instructions_of_lines(const Candidate& candidate, int lines_of_warp) const {
    constexpr double kOfLine = 16, kOfElement = 4, kOfEnd = 8, kWord = 4;
    const int each = elements_of_word(8 * size_), lanes = kWarpLanes / lines_of_warp * each;
    const auto loads = static_cast<double>(lines_.size());
    const double width = std::min<double>(candidate.width, static_cast<double>(columns_));
    const double of_line = kOfLine + kOfElement * each * loads + (whole_sectors_ ? 0 : kOfEnd);
    const double of_words = static_cast<double>(ceil_quotient(candidate.width, lanes)) * (kWord + 2 * each * loads);
    return (of_line + of_words) * kWarpLanes / lines_of_warp / width;
  }
  double instructions_of(const Candidate& candidate) const {
    constexpr double kOfPiece = 8, kWholePiece = 20, kStep = 40, kPlaces = 200;
    double instructions = std::min(instructions_of_lines(candidate, 1), instructions_of_lines(candidate, 2));
    for (const Lines& lines : lines_)
      instructions +=
          copied(candidate) * (ring_of(candidate, lines) > 0 ? kOfPiece : kWholePiece) * lines.size / kVectorBytes;
    const double width = std::min<double>(candidate.width, static_cast<double>(columns_));
    return instructions + 256 / width * (kStep / candidate.step + kPlaces / candidate.height);
  }

  // A little more where blocks are too few for all multiprocessors, much more where they move so many bytes each that
  // a launch would wait for few of them.
  void find_cost(Candidate& candidate) const {
    const double blocks = static_cast<double>(blocks_beside_ * ceil_quotient(columns_, candidate.width) *
                                              ceil_quotient(rows_, candidate.height));
    const double points = static_cast<double>(blocks_beside_ * columns_ * rows_);
    const double loads = static_cast<double>(lines_.size());
    candidate.time = movement_time(sectors_of(candidate), instructions_of(candidate) / 32, 2 * loads / 32);
    candidate.cost = candidate.time;
    const double wanted = target_.multiprocessors;
    if (blocks < wanted) candidate.cost *= 1 + 0.02 * (1 - blocks / wanted);
    int moved = size_;  // bytes, of a point
    for (const Lines& lines : lines_) moved += lines.size;
    constexpr double kMostMoved = 1 << 17;
    const double needed = std::min(wanted, points * moved / kMostMoved);
    if (blocks < needed) candidate.cost *= needed / blocks;
    if (bytes_at_least(candidate) > kMostStripBytes * 2 / 3) candidate.cost *= 1.005;
  }

  // With as few conflicts of banks, and then instructions, as possible.
  std::optional<LineStrips> laid_out(const Candidate& candidate, int& fewest) const {
    const LineStrips empty{.tiled = {{staged_.stored, candidate.width}, {along(), candidate.height}},
                           .loads = {},
                           .step = candidate.step,
                           .more_lines = more_lines(candidate.width),
                           .joined = joined(candidate.width),
                           .whole_sectors = whole_sectors_,
                           .time = candidate.time};
    const bool in_one = candidate.height <= candidate.step;
    const int each = elements_of_word(8 * size_);
    std::optional<LineStrips> best;
    double least = 0;
    for (const int lines_of_warp : {1, 2, 4})
      for (const int apart : {each, 8, 16, 32}) {
        if (apart != each && (lines_of_warp == 1 || !in_one || apart <= each)) continue;
        LineStrips strips = empty;
        strips.lines_of_warp = lines_of_warp;
        strips.apart = apart;
        if (!in_one)
          strips.threads = std::min(strips.threads, std::max(1, candidate.step / lines_of_warp) * kWarpLanes);
        const double instructions = instructions_of_lines(candidate, lines_of_warp);
        int conflicts = 0;
        bool alike = true;
        for (const Lines& lines : lines_) {
          alike = alike && (lines_of_warp == 1 || begin_alike(lines, lines_of_warp));
          conflicts += place(candidate, lines, strips);
        }
        if (!alike || strips.bytes > kMostStripBytes) continue;
        if (best && (conflicts > fewest || (conflicts == fewest && instructions >= least))) continue;
        fewest = conflicts;
        least = instructions;
        best = std::move(strips);
      }
    return best;
  }

  // Whether what a lane has next of a line of the result lies in lines that begin as the ones before do, by sectors.
  bool begin_alike(const Lines& lines, int lines_of_warp) const {
    return lines.stride_known &&
           lines.stride * lines.size * elements_of_word(8 * size_) * (kWarpLanes / lines_of_warp) % kSectorBytes == 0;
  }

  // Groups of lines and gaps without bank conflicts, or with few; gives how many were found.
  int place(const Candidate& candidate, const Lines& of, LineStrips& strips) const {
    const int each = elements_of_word(8 * size_), lanes = kWarpLanes / strips.lines_of_warp;
    StripLines lines{.load = of.load, .ring = ring_of(candidate, of), .evenly = of.evenly}, best = lines;
    int fewest = -1;
    // Lines that begin differently in sectors are whole sectors apart.
    const int unit = of.aligned < kSectorBytes ? kSectorBytes : kVectorBytes;
    const int length = (length_of(candidate, of) + unit - 1) / unit * unit;
    // Threads go on from one group to another.
    const int most_lines = lines.ring > 0
                               ? std::min(lanes * each, strips.threads * kVectorBytes / (candidate.step * of.size))
                               : lanes * each;
    for (int more = 0; more < (lines.ring > 0 ? 1 : 4) && fewest != 0; ++more)
      for (int group = 1; group <= most_lines && fewest != 0; group *= 2)
        for (int gap = 0; gap < 128 && fewest != 0; gap += kVectorBytes) {
          lines.pitch = length + more * unit;
          lines.group = gap == 0 ? 1 : group;
          lines.gap = gap;
          int conflicts = conflicts_of(of, lines, strips.lines_of_warp, strips.apart);
          if (lines.ring == 0) conflicts += conflicts_of_copies(of, lines, length_of(candidate, of) / kVectorBytes);
          if (fewest >= 0 && conflicts >= fewest) continue;
          fewest = conflicts;
          best = lines;
        }
    if (best.ring > 0) {
      const int apart = lines_apart(candidate, of, best, strips.threads);
      best.apart = std::max(1, apart);
      if (apart == 0) ++fewest;
    }
    best.pieces = length_of(candidate, of) / kVectorBytes;
    best.start = strips.bytes;
    const int bytes = best.slot(lines_of(candidate) - 1) + best.pitch;
    strips.bytes += (bytes + kSectorBytes - 1) / kSectorBytes * kSectorBytes;
    strips.loads.push_back(best);
    return fewest;
  }

  static int behind(const Lines& of, std::int64_t line) {
    const std::int64_t begin =
        of.evenly ? line * of.stride : of.begins[static_cast<std::size_t>(line % std::ssize(of.begins))];
    return static_cast<int>(begin * of.size % kSectorBytes);
  }

  // How often lanes of a warp want different words of one bank, in some of the result's lines and at the end of these.
  int conflicts_of(const Lines& of, const StripLines& lines, int lines_of_warp, int apart) const {
    const int each = elements_of_word(8 * size_), lanes = kWarpLanes / lines_of_warp, sector = kSectorBytes / size_;
    int conflicts = 0;
    for (const int row : {0, 1, 2, 5, 11}) {
      const int begin =
          of.aligned < kSectorBytes ? 7 * row * of.size % kSectorBytes : 0;  // strips begin anywhere in sectors
      for (int e = 0; e < each; ++e)
        conflicts += conflicts_among(of, lines, begin, kWarpLanes, [&](int lane) {
          const int mine = row + lane / lanes * apart;
          const int up = whole_sectors_ ? 0 : static_cast<int>((sector - mine * result_stride_ % sector) % sector);
          return std::pair{mine, up + lane % lanes * each + e};
        });
      if (!whole_sectors_ && lines_of_warp == 1)
        conflicts += conflicts_among(of, lines, begin, sector, [&](int lane) { return std::pair{row, lane}; });
    }
    return conflicts;
  }
  // `place_of`: the result's line and the load's of a lane's element.
  template <class PlaceOf>
  static int conflicts_among(const Lines& of, const StripLines& lines, int begin, int lanes, PlaceOf place_of) {
    const int unit = std::max(4, of.size), banks = 128 / unit;
    int conflicts = 0;
    for (int from = 0; from < lanes; from += banks) {
      std::array<std::array<int, kWarpLanes>, kWarpLanes> wanted;
      std::array<int, kWarpLanes> count{};
      int most = 1;
      for (int lane = from; lane < std::min(lanes, from + banks); ++lane) {
        const auto [row, line] = place_of(lane);
        int at = row * of.size + (behind(of, line) + begin) % kSectorBytes;
        if (lines.ring > 0) at %= lines.ring;
        const int place = (lines.slot(line) + at) / unit;
        const auto bank = static_cast<std::size_t>(place % banks);
        const auto end = wanted[bank].begin() + count[bank];
        if (std::find(wanted[bank].begin(), end, place) != end) continue;
        *end = place;
        most = std::max(most, ++count[bank]);
      }
      conflicts += most - 1;
    }
    return conflicts;
  }

  // The same of vectors that neighbouring threads copy, of lines that are copied as wholes: where a line ends.
  static int conflicts_of_copies(const Lines& of, const StripLines& lines, int pieces) {
    constexpr int kLines = 8, kTogether = 8;  // threads that are served at a time
    int conflicts = 0;
    for (int first = 0; first < kLines * pieces; first += kTogether) {
      if (first / pieces == (first + kTogether - 1) / pieces) continue;
      std::array<int, kTogether> count{};
      for (int piece = first; piece < first + kTogether; ++piece) {
        const int line = piece / pieces, at = piece % pieces * kVectorBytes;
        if (piece % pieces == pieces - 1 && behind(of, line) == 0 && of.aligned < kSectorBytes) continue;
        ++count[static_cast<std::size_t>((lines.slot(line) + at) / kVectorBytes % kTogether)];
      }
      conflicts += *std::ranges::max_element(count) - 1;
    }
    return conflicts;
  }

  // So many lines between those of threads that copy with one another, for which they do not meet in banks; 0: none.
  static int lines_apart(const Candidate& candidate, const Lines& of, const StripLines& lines, int threads) {
    const int bytes = candidate.step * of.size, of_line = bytes / kVectorBytes, neighbours = 8 / of_line;
    for (int apart = 1; apart * neighbours * of_line <= threads && neighbours > 0; apart *= 2) {
      unsigned banks = 0;  // units of 16 bytes of 128
      bool meet = false;
      for (int n = 0; n < neighbours; ++n)
        for (int piece = 0; piece < of_line; ++piece) {
          const int begun = behind(of, n * apart) > 0 ? kSectorBytes : 0;
          const int at = (begun + piece * kVectorBytes) % lines.ring;
          const unsigned bank = 1u << (lines.slot(n * apart) + at) / kVectorBytes % 8;
          meet = meet || (banks & bank) != 0;
          banks |= bank;
        }
      if (!meet) return apart;
    }
    return 0;
  }

  const Kernel& kernel_;
  const ExprPool& pool_;
  const Graph& graph_;
  const Target& target_;
  const TransposeTiles& staged_;
  const KernelOutput& output_;
  const int size_;  // bytes of an element of the result
  std::vector<Lines> lines_;
  std::int64_t columns_ = 0, rows_ = 0, result_stride_ = 0, blocks_beside_ = 1;
  bool known_ = false;          // how long the result's lines are
  bool follow_ = false;         // they follow one another
  bool whole_sectors_ = false;  // each of them
};

}  // namespace

std::optional<LineStrips> plan_line_strips(const TransposeChoice& choice, const Graph& graph, const Target& target) {
  return LineStripsPlanner(choice, graph, target).run();
}

}  // namespace fusec
