#include "schedule/movement/staged_copy_padding.h"

#include <algorithm>
#include <limits>

#include "schedule/layout/memory_access.h"

namespace fusec {

std::int64_t run_elements(const TileRows& rows, const std::vector<TileAxis>& axes) {
  std::int64_t count = 1;
  for (const std::size_t i : rows.run) count += (axes[i].extent - 1) * rows.strides[i];
  return count;
}

std::int64_t row_count(const TileRows& rows, const std::vector<TileAxis>& axes) {
  std::int64_t count = 1;
  for (const std::size_t i : rows.across) count *= axes[i].extent;
  return count;
}

int row_bytes(const TileRows& rows, const std::vector<TileAxis>& axes, int element_bits, int from) {
  const std::int64_t bytes = run_elements(rows, axes) * element_bits / 8 + from - std::min(from, rows.aligned);
  return static_cast<int>((bytes + from - 1) / from) * from;
}

int words_of_row(const TileRows& rows, const std::vector<TileAxis>& axes, int element_bits) {
  return row_bytes(rows, axes, element_bits, kSectorBytes) / std::max(4, element_bits / 8);
}

std::int64_t ceil_quotient(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

RowThreads row_threads(std::int64_t rows, int pieces, int threads, int wanted_lanes) {
  const auto busy = [&](std::int64_t iterations) {
    return static_cast<double>(rows * pieces) / static_cast<double>(iterations * threads);
  };
  if (wanted_lanes > 0)
    return {.lanes = wanted_lanes,
            .busy = busy(ceil_quotient(rows, threads / wanted_lanes) * ceil_quotient(pieces, wanted_lanes))};
  RowThreads best{.busy = busy(ceil_quotient(rows * pieces, threads))};
  if (rows == 1) return best;
  constexpr double kAsBusy = 0.8;
  for (const int lanes : {pieces > kWarpLanes ? kWarpLanes : pieces, pieces}) {
    if (lanes > threads) continue;
    const RowThreads of_rows{.lanes = lanes,
                             .busy = busy(ceil_quotient(rows, threads / lanes) * ceil_quotient(pieces, lanes))};
    if (of_rows.busy >= kAsBusy * best.busy) return of_rows;
  }
  return best;
}

int elements_of_word(int element_bits) {
  return std::max(1, 32 / element_bits);
}

namespace {

constexpr std::int64_t kWarps = 4;  // that are looked at

using LanePlaces = std::array<std::int64_t, kWarpLanes>;  // bytes; negative: no access

// The lane's element along some of the axes, the fastest first, by its number among all of them.
void find_elements(const std::vector<std::size_t>& along, const std::vector<TileAxis>& axes, std::int64_t number,
                   int* elements) {
  for (const std::size_t i : along) {
    elements[i] = static_cast<int>(number % axes[i].extent);
    number /= axes[i].extent;
  }
}

// `each` accesses of every sampled warp; `add` gets the first of them, the lane and the item's number.
template <class Add>
std::vector<LaneAccess> sampled_accesses(std::int64_t items, int each, std::size_t axes, Add add) {
  const std::int64_t warps = ceil_quotient(items, kWarpLanes), seen = std::min(kWarps, warps);
  std::vector<LaneAccess> accesses(static_cast<std::size_t>(seen * each));
  for (LaneAccess& access : accesses) access.elements.resize(kWarpLanes * axes, 0);
  for (std::int64_t warp = 0; warp < seen; ++warp)
    for (std::size_t lane = 0; lane < kWarpLanes; ++lane) {
      const std::int64_t item = warp * warps / seen * kWarpLanes + static_cast<std::int64_t>(lane);
      if (item < items) add(&accesses[static_cast<std::size_t>(warp * each)], lane, item);
    }
  return accesses;
}

// For each access of so many bytes to a lane. Stops counting once there are `most`.
double conflicts_of(const StagedOperand& operand, const std::vector<LaneAccess>& accesses, int bytes, bool of_reads,
                    double most) {
  constexpr std::int64_t kFirst = 1 << 24;  // as far behind as elements of an axis that goes backwards may be before it
  const bool halves = operand.bits == 4 && operand.in_vectors;
  const std::size_t axes = operand.pitches.size();
  int conflicts = 0;
  for (const LaneAccess& access : accesses) {
    LanePlaces at;
    for (std::size_t lane = 0; lane < at.size(); ++lane) {
      at[lane] = access.active[lane] ? kFirst + access.byte_offset[lane] : kIdleLane;
      if (!access.active[lane]) continue;
      for (std::size_t i = 0; i < axes; ++i) {
        const std::int64_t element = access.elements[lane * axes + i];
        const std::int64_t place = halves && i == operand.rows.run[0] ? element / 2 : element * operand.pitches[i];
        at[lane] += of_reads && operand.rows.backwards[i] ? -place : place;
      }
    }
    conflicts += count_bank_conflicts(at, bytes);
    if (conflicts >= most * static_cast<double>(accesses.size())) break;
  }
  return accesses.empty() ? 0 : conflicts / static_cast<double>(accesses.size());
}

// Bytes that a thread copies at a time, and the multiples that rows are taken from.
int piece_bytes(const StagedOperand& operand) {
  return operand.in_vectors ? kVectorBytes : operand.element_bytes();
}

int pieces_of_row(const StagedOperand& operand, const std::vector<TileAxis>& axes) {
  if (!operand.in_vectors) return axes[operand.rows.run[0]].extent;
  return row_bytes(operand.rows, axes, operand.bits,
                   operand.rows.aligned < kVectorBytes ? kSectorBytes : kVectorBytes) /
         kVectorBytes;
}

std::vector<LaneAccess> writing_accesses(const StagedOperand& operand, const std::vector<TileAxis>& axes) {
  const int pieces = pieces_of_row(operand, axes), piece = piece_bytes(operand);
  return sampled_accesses(row_count(operand.rows, axes) * pieces, 1, axes.size(),
                          [&](LaneAccess* access, std::size_t lane, std::int64_t item) {
                            access->active[lane] = true;
                            access->byte_offset[lane] = static_cast<int>(item % pieces) * piece;
                            find_elements(operand.rows.across, axes, item / pieces,
                                          access->elements.data() + lane * axes.size());
                          });
}

// The least pitch of rows in bytes: a row with the rest of its first and last vector.
int slot_bytes(const StagedOperand& operand, const std::vector<TileAxis>& axes) {
  if (!operand.in_vectors) return axes[operand.rows.run[0]].extent * operand.element_bytes();
  const auto run = static_cast<int>(run_elements(operand.rows, axes) * operand.bits / 8);
  return run + 2 * (kVectorBytes - std::min(kVectorBytes, operand.rows.aligned));
}

int most_pitch(const StagedOperand& operand, std::size_t axis) {
  const int pitch = operand.pitches[axis];
  return operand.pitch_varies(axis) ? pitch / kVectorBytes * kVectorBytes + kVectorBytes - 1 : pitch;
}

// Pads the two fastest axes across rows by so many units.
void set_pitches(StagedOperand& operand, const std::vector<TileAxis>& axes, std::array<int, 2> gaps) {
  const TileRows& rows = operand.rows;
  const int unit = operand.in_vectors ? kVectorBytes : operand.element_bytes(), gap = std::max(4, unit);
  operand.pitches.assign(axes.size(), 0);
  for (const std::size_t i : rows.run)
    operand.pitches[i] = operand.in_vectors ? static_cast<int>(rows.strides[i] * operand.bits / 8) : unit;
  std::int64_t least = slot_bytes(operand, axes);
  for (std::size_t a = 0; a < rows.across.size(); ++a) {
    const std::size_t i = rows.across[a];
    const bool varies = operand.in_vectors && !operand.indexed && !rows.steps[i].is_constant() && operand.varies[i];
    const std::int64_t in_memory =
        operand.in_vectors && !operand.indexed && !varies ? rows.strides[i] * operand.bits / 8 % unit : 0;
    const std::int64_t at = (least - in_memory + unit - 1) / unit * unit + in_memory;
    operand.pitches[i] = static_cast<int>(at + (a < gaps.size() ? gap * gaps[a] : 0));
    least += std::int64_t{most_pitch(operand, i)} * (axes[i].extent - 1);
  }
}

}  // namespace

int staged_bytes(const StagedOperand& operand, const std::vector<TileAxis>& axes) {
  int bytes = slot_bytes(operand, axes) + kVectorBytes;
  for (const std::size_t i : operand.rows.across) bytes += (axes[i].extent - 1) * most_pitch(operand, i);
  return (bytes + kVectorBytes - 1) / kVectorBytes * kVectorBytes;
}

std::vector<LaneAccess> reading_accesses(const StagedCopy& plan, int result_bits) {
  const std::vector<TileAxis>& axes = plan.axes;
  if (plan.width > 0) {
    std::int64_t items = 1;
    for (const ItemDigit& digit : plan.items) items *= digit.count;
    return sampled_accesses(items, 1, axes.size(), [&](LaneAccess* access, std::size_t lane, std::int64_t item) {
      access->active[lane] = true;
      for (const ItemDigit& digit : plan.items) {
        access->elements[lane * axes.size() + digit.axis] += static_cast<int>(item % digit.count) * digit.step;
        item /= digit.count;
      }
    });
  }
  const TileRows& rows = plan.stored;
  const int each = elements_of_word(result_bits), bytes = result_bits / 8;
  const int words = words_of_row(rows, axes, result_bits);
  const int skew = rows.aligned < kSectorBytes ? kVectorBytes / bytes : 0;
  const std::int64_t run = run_elements(rows, axes), count = row_count(rows, axes);
  const int taken = plan.store_lanes > 0 ? std::min(plan.store_lanes, words) : words;  // of a row, one after the other
  return sampled_accesses(count * taken, each, axes.size(),
                          [&](LaneAccess* access, std::size_t lane, std::int64_t item) {
                            for (int e = 0; e < each; ++e) {
                              int* const elements = access[e].elements.data() + lane * axes.size();
                              find_elements(rows.across, axes, item / taken, elements);
                              const std::int64_t at = item % taken * each + e - (taken < words ? 0 : skew);
                              access[e].active[lane] = at >= 0 && at < run;
                              if (access[e].active[lane]) find_elements(rows.run, axes, at, elements);
                            }
                          });
}

PaddedOperand choose_padding(const StagedCopy& plan, StagedOperand operand, const std::vector<LaneAccess>& reads) {
  const std::vector<TileAxis>& axes = plan.axes;
  const int read = plan.planes > 1 ? 4 : operand.element_bytes();
  const std::vector<LaneAccess> writes = writing_accesses(operand, axes);
  PaddedOperand best;
  best.conflicts = std::numeric_limits<double>::infinity();
  constexpr int kGaps = 8;
  const std::size_t across = operand.rows.across.size();
  bool found = false;
  for (int outer = 0; outer < (across > 1 ? kGaps : 1); ++outer)
    for (int inner = 0; inner < (across > 0 ? kGaps : 1); ++inner) {
      set_pitches(operand, axes, {inner, outer});
      if (staged_bytes(operand, axes) > kMostStagedBytes) break;
      double conflicts = conflicts_of(operand, reads, read, true, best.conflicts);
      if (found && conflicts >= best.conflicts) continue;
      // A vector is written once for all that are read of it.
      const double of_writes = static_cast<double>(read) / piece_bytes(operand);
      conflicts +=
          conflicts_of(operand, writes, piece_bytes(operand), false, (best.conflicts - conflicts) / of_writes) *
          of_writes;
      if (found && conflicts >= best.conflicts) continue;
      found = true;
      best.conflicts = conflicts;
      best.operand = operand;
      if (conflicts == 0) inner = outer = kGaps;
    }
  if (!found) {
    best.operand = std::move(operand);
    best.conflicts = kWarpLanes;
  }
  double points = 1;
  for (const TileAxis& axis : axes) points *= axis.extent;
  const std::int64_t rows = row_count(best.operand.rows, axes);
  const int pieces = pieces_of_row(best.operand, axes);
  const double busy = row_threads(rows, pieces, plan.threads).busy;
  constexpr double kVector = 20, kElement = 24;
  const double taken = best.operand.in_vectors ? kVector : kElement;
  best.issued = static_cast<double>(rows * pieces) / busy * taken / points / 32;
  const double reading = 1.0 / plan.planes;  // accesses for a point
  best.passes = ((best.conflicts + std::max(1, read / 4)) * reading + best.operand.element_bytes() / 4.0) / 32;
  return best;
}

}  // namespace fusec
