#include "schedule/convolution/grouped_implicit_gemm.h"

#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "analysis/kernel/copy_expr.h"
#include "analysis/kernel/loads.h"
#include "ir/type.h"
#include "schedule/convolution/windows.h"
#include "schedule/gemm/convolution_form.h"
#include "schedule/gemm/gemm_form.h"
#include "schedule/kernel_forms.h"

namespace fusec {
namespace {

using Axes = std::vector<std::uint32_t>;

constexpr std::int64_t kMaxGroupTaps = 128;
constexpr std::int64_t kMostMembers = 64;  // output channels of one group
constexpr std::int64_t kMaxGroupShared = 96 << 10;
constexpr std::int64_t kMaxGroupAccumulators = 64;  // registers per thread
constexpr std::int64_t kMostWeights = 48;           // registers per thread
constexpr int kMostWarps = 16;
constexpr std::int64_t kFewMembers = 16;  // output channels; larger groups fill MMA tiles well enough

// The results with channels in vectors of eight as the last axes, also if the last vector is partial.
Kernel with_channel_vectors(const GroupedImplicitGemm& found, std::vector<ExprId>& follow,
                            std::uint32_t& channel_vector, std::uint32_t& lane,
                            std::vector<std::optional<std::uint32_t>>& results) {
  const Kernel& kernel = found.kernel;
  std::map<std::uint32_t, std::uint32_t> now;
  Kernel epilogue = change_axes(
      kernel,
      [&](ExprPool& pool, ExprCopier&) {
        AxisChange made;
        for (const std::uint32_t a : kernel.outputs[0].axes)
          if (a != found.group && a != found.member)
            made.new_axes.push_back(now[a] = pool.new_axis(kernel.pool.extent(a)));
        channel_vector = pool.new_axis((found.groups * found.members + 7) / 8);
        lane = pool.new_axis(8);
        made.new_axes.insert(made.new_axes.end(), {channel_vector, lane});
        const IndexExpr channel = IndexExpr::axis(channel_vector) * 8 + IndexExpr::axis(lane);
        for (const std::uint32_t a : kernel.outputs[0].axes)
          made.values.push_back(a == found.group                         ? floor_div(channel, found.members)
                                : a == found.member && found.groups == 1 ? channel
                                : a == found.member                      ? floor_mod(channel, found.members)
                                                                         : IndexExpr::axis(now[a]));
        return made;
      },
      follow);
  for (const ImplicitGemmAxis& a : found.axes)
    results.push_back(a.result ? std::optional(now.at(*a.result)) : std::nullopt);
  return epilogue;
}

// The results with their last axis split into vectors of `width`.
Kernel with_vectors_of_last(GroupedImplicitGemm& found, std::vector<ExprId>& follow) {
  const std::uint32_t last = *found.axes.back().result;
  LaneSplit split = with_lanes(found.kernel, last, found.width, follow);
  split.now[last] = found.channel_vector = split.vector;
  found.lane = split.lane;
  for (const ImplicitGemmAxis& a : found.axes)
    found.results.push_back(a.result ? std::optional(split.now.at(*a.result)) : std::nullopt);
  found.result_member = split.now.at(found.member);
  found.result_group = found.groups > 1 ? split.now.at(found.group) : found.result_member;
  return std::move(split.kernel);
}

class GroupedImplicitGemmFinder {
 public:
  GroupedImplicitGemmFinder(const Graph& graph, const Kernel& kernel, const Contraction& contraction,
                            const Target& target)
      : graph_(graph), target_(target) {
    found_.kernel = kernel;
    found_.contraction = contraction;
  }

  std::optional<GroupedImplicitGemm> run() {
    if (!find_operands() || !find_channels()) return std::nullopt;
    if (!find_axes() || !is_vector_gather() || !stores_channels()) return std::nullopt;
    if (found_.groups == 1 && found_.taps() == 1) return std::nullopt;  // a GEMM
    if (!choose_tiles()) return std::nullopt;
    return std::move(found_);
  }

 private:
  const ExprPool& pool() const { return found_.kernel.pool; }
  const ContractionLoop& loop() const { return found_.contraction.loops[0]; }
  std::int64_t extent(std::uint32_t a) const { return pool().extent(a).as_constant().value_or(0); }
  double results_of(const ImplicitGemmAxis& a) const {
    return a.result ? static_cast<double>(value_at_hint(pool().extent(*a.result), graph_.symbols)) : 1;
  }

  // Requires one product of two loads, of which the image may be masked. The image is the operand of the rows, or of
  // the columns if output channels come before positions.
  bool find_operands() {
    Contraction& p = found_.contraction;
    if (p.expert_index || !p.row_values.empty() || term_count(p) != 1 || p.batch.size() > 1) return false;
    if (p.columns.size() != 1 || is_of_image(p.columns[0])) {
      std::swap(p.rows, p.columns);
      std::swap(p.loops[0].left, p.loops[0].right);
    }
    if (p.columns.size() != 1) return false;
    const ScalarType sums = pool()[loop().terms[0].reduction].type;
    if (sums != ScalarType::kFloat32 && sums != ScalarType::kInt32) return false;
    const auto image = guarded_load(pool(), loop().left[0]), weights = guarded_load(pool(), loop().right[0]);
    if (!image || !weights || !weights->guards.empty()) return false;
    found_.dtype = multiplied_dtype(pool(), p, {loop().terms[0].reduction, loop().left[0], loop().right[0]}, target_);
    found_.image = image->load, found_.guards = image->guards, found_.weights = weights->load;
    if (!multiplies(found_.dtype, pool()[found_.image].dtype)) return false;
    if (!multiplies(found_.dtype, pool()[found_.weights].dtype)) return false;
    if (found_.dtype == DType::kFloat32 && !found_.kernel.numerics.allow_tf32) return false;
    for (const ExprId id : {found_.image, found_.weights})
      if (by_values(position_of(graph_, pool(), id))) return false;
    return true;
  }

  std::int64_t coefficient(ExprId load, std::uint32_t a) const {
    return coefficient_of(position_of(graph_, pool(), load), axis_variable(a)).value_or(0);
  }

  // True if a tap moves the axis along a line of the image.
  bool is_of_image(std::uint32_t a) const {
    return std::ranges::any_of(loop().k, [&](std::uint32_t tap) {
      return std::ranges::any_of(loop().right, [&](ExprId factor) {
        const auto load = guarded_load(pool(), factor);
        return load && std::ranges::any_of(pool()[load->load].indices, [&](const IndexExpr& e) {
                 return mentions(e, axis_variable(a)) && mentions(e, axis_variable(tap));
               });
      });
    });
  }

  // Finds the input channels: contiguous or at a constant stride, group after group.
  bool find_channels() {
    const bool one = found_.contraction.batch.empty();
    found_.group = one ? found_.kernel.pool.new_axis(1) : found_.contraction.batch[0];
    found_.member = found_.contraction.columns[0];
    found_.groups = extent(found_.group), found_.members = extent(found_.member);
    if ((!one && found_.groups < 2) || found_.members < 1) return false;
    if (found_.members > (one ? kFewMembers : kMostMembers)) return false;
    for (const std::uint32_t a : loop().k)
      if (coefficient(found_.image, a) == 1 && !mentions_guard(a)) {
        if (found_.channel) return false;
        found_.channel = a;
      }
    if (!found_.channel || moves_with_results(*found_.channel)) find_nchw_channels();
    found_.channels = found_.channel ? extent(*found_.channel) : 1;
    if (found_.channels < 1 || !groups_follow(one)) return false;
    return found_.group_bytes() % 4 == 0 && (one || !mentions_guard(found_.group));
  }

  bool moves_with_results(std::uint32_t a) const {
    return std::ranges::any_of(pool()[found_.image].indices, [&](const IndexExpr& e) {
      return mentions(e, axis_variable(a)) && std::ranges::any_of(found_.contraction.rows, [&](std::uint32_t r) {
               return mentions(e, axis_variable(r));
             });
    });
  }

  // Finds the input channel axis of an NCHW image: a K axis that no mask uses, in an index of its own or with the
  // group.
  void find_nchw_channels() {
    found_.channel.reset();
    for (const std::uint32_t a : loop().k) {
      if (mentions_guard(a) || moves_with_results(a) || pool().extent(a).is(1)) continue;
      const auto stride = step_of(a);
      if (!stride) continue;
      if (found_.channel) return found_.channel.reset();
      found_.channel = a, found_.channel_stride = *stride, found_.image_is_nchw = true;
    }
  }

  // The stride of the axis in the image, if it is uniform.
  std::optional<IndexExpr> step_of(std::uint32_t a) const {
    const IndexExpr at = position_of(graph_, pool(), found_.image);
    const IndexExpr next = substitute(at, [&](Variable v) -> std::optional<IndexExpr> {
      return v == axis_variable(a) ? std::optional(IndexExpr::axis(a) + 1) : std::nullopt;
    });
    const IndexExpr step = simplify(next - at, pool().bounds());
    const bool even =
        std::ranges::all_of(variables_of(step), [](Variable v) { return v.kind == Variable::Kind::kSymbol; });
    return even ? std::optional(step) : std::nullopt;
  }

  bool groups_follow(bool one) const {
    if (one) return true;
    const auto step = step_of(found_.group);
    return step && simplify(*step - found_.channel_stride * found_.channels, pool().bounds()).is(0);
  }

  bool mentions_guard(std::uint32_t a) const {
    const auto depends = dependences(pool());
    return std::ranges::any_of(found_.guards, [&](ExprId g) { return std::ranges::binary_search(depends[g], a); });
  }

  // All indices that determine an image element's position and mask.
  std::vector<IndexExpr> image_indices() const {
    std::vector<IndexExpr> all = pool()[found_.image].indices;
    for (const ExprId id : reachable(pool(), found_.guards))
      all.insert(all.end(), pool()[id].indices.begin(), pool()[id].indices.end());
    return all;
  }

  bool find_axes() {
    const std::vector<IndexExpr> indices = image_indices();
    Axes taps = loop().k;
    if (found_.channel) std::erase(taps, *found_.channel);
    for (const std::uint32_t result : found_.contraction.rows) {
      std::optional<StencilAxis> window;
      for (const std::uint32_t tap : taps)
        if (const auto moved = window_of(pool(), pool()[found_.image].indices, result, tap)) {
          if (window) return false;
          window = moved;
        }
      found_.axes.push_back({.result = result});
      if (!window) continue;
      std::erase(taps, window->tap);
      found_.axes.back() = {.result = result,
                            .tap = window->tap,
                            .stride = window->stride,
                            .dilation = window->dilation,
                            .taps = window->taps};
      if (!std::ranges::all_of(indices, [&](const IndexExpr& e) { return moves_along(e, *window); })) return false;
    }
    for (const std::uint32_t tap : taps) {
      // Reversed windows (a tap that moves against the result) share no positions in this scheme: each tap would have
      // its own.
      const bool backwards = std::ranges::any_of(indices, [&](const IndexExpr& e) {
        return mentions(e, axis_variable(tap)) && std::ranges::any_of(found_.contraction.rows, [&](std::uint32_t r) {
                 return mentions(e, axis_variable(r));
               });
      });
      if (backwards && (found_.image_is_nchw || found_.groups == 1)) return false;
      if (!std::ranges::all_of(indices,
                               [&](const IndexExpr& e) { return coefficient_of(e, axis_variable(tap)).has_value(); }))
        return false;
      found_.axes.insert(found_.axes.begin(), ImplicitGemmAxis{.result = {}, .tap = tap, .taps = extent(tap)});
    }
    return found_.taps() >= 1 && found_.taps() <= kMaxGroupTaps;
  }

  // True if 16 bytes of the image's channels are contiguous, and also four bytes of a group's weights.
  bool is_vector_gather() {
    const std::int64_t together = 16 / found_.element_bytes();
    const auto without = [&](ExprId load, bool of_group) {
      return simplify(substitute(position_of(graph_, pool(), load),
                                 [&](Variable v) -> std::optional<IndexExpr> {
                                   if (v.kind != Variable::Kind::kAxis) return std::nullopt;
                                   if (v.id == found_.channel || (of_group && v.id == found_.group))
                                     return IndexExpr(0);
                                   return std::nullopt;
                                 }),
                      pool().bounds());
    };
    if (!found_.image_is_nchw && found_.groups * found_.group_bytes() % 16 != 0) return false;
    const std::int64_t word = 4 / found_.element_bytes();
    found_.weights_in_words = word == 1 || (found_.channel && coefficient(found_.weights, *found_.channel) == 1 &&
                                            proves_multiple_of(without(found_.weights, false), word, pool().bounds()));
    return found_.image_is_nchw || proves_multiple_of(without(found_.image, true), together, pool().bounds());
  }

  // True if the results' channels are contiguous, or the results along their last axis.
  bool stores_channels() {
    for (const KernelOutput& output : found_.kernel.outputs)
      if (output.axes != found_.kernel.outputs[0].axes || bits(output.type.dtype) < 8) return false;
    const auto together = [&](std::uint32_t a) {
      return std::ranges::all_of(found_.kernel.outputs, [&](const KernelOutput& output) {
        const IndexExpr at = position_of(pool(), output);
        return coefficient_of(at, axis_variable(a)) == 1;
      });
    };
    std::vector<ExprId> follow{loop().terms[0].reduction};
    const auto last = found_.axes.empty() ? std::nullopt : found_.axes.back().result;
    found_.results_are_nchw = !together(found_.member) && last && together(*last);
    if (found_.results_are_nchw) {
      while (!proves_multiple_of(pool().extent(*last), found_.width, pool().bounds())) found_.width /= 2;
      found_.epilogue = with_vectors_of_last(found_, follow);
      found_.accumulator = follow[0];
      return true;
    }
    found_.epilogue = with_channel_vectors(found_, follow, found_.channel_vector, found_.lane, found_.results);
    found_.accumulator = follow[0];
    const ExprPool& pool = found_.epilogue.pool;
    return std::ranges::all_of(found_.epilogue.outputs, [&](const KernelOutput& output) {
      const IndexExpr at = position_of(pool, output);
      return coefficient_of(at, axis_variable(found_.lane)) == 1;
    });
  }

  // --- tile sizes of a block

  bool choose_tiles() {
    std::vector<int> of_block;
    for (int groups = 1; groups <= std::min<std::int64_t>(kMostWarps, found_.groups); ++groups) {
      const bool whole = groups == found_.groups || ((found_.results_are_nchw || groups * found_.members % 8 == 0) &&
                                                     (found_.image_is_nchw || groups * found_.group_bytes() % 16 == 0));
      if (found_.groups % groups == 0 && whole) of_block.push_back(groups);
    }
    std::optional<GroupedImplicitGemm> best;
    const auto weigh = [&] {
      for (const int groups : of_block)
        for (const int m16_tiles : {8, 4, 2, 1}) {
          found_.groups_per_block = groups, found_.m16_tiles = m16_tiles;
          if (!fits()) continue;
          predict();
          if (!best || found_.cycles < best->cycles) best = found_;
        }
    };
    take_results(0, 1, weigh);
    if (!best) return false;
    found_ = *std::move(best);
    return true;
  }

  // Tries results per block that are powers of two along each axis, so that m16 tiles have constant strides. The last
  // axis has at least eight, which are read together.
  template <class F>
  void take_results(std::size_t a, int so_far, const F& weigh) {
    constexpr int kFewest = 16, kMost = 512, kVector = 8;
    if (a == found_.axes.size()) {
      if (so_far >= kFewest) weigh();
      return;
    }
    const bool last = a + 1 == found_.axes.size();
    for (int results = last ? kVector : 1; so_far * results <= kMost; results *= 2) {
      if (results >= 2 * results_of(found_.axes[a]) && results > (last ? 2 * kVector : 1)) break;
      found_.axes[a].results = results;
      take_results(a + 1, so_far * results, weigh);
    }
  }

  std::int64_t place_of(std::int64_t result) const {
    std::int64_t place = 0, below = 1;
    for (std::size_t a = found_.axes.size(); a-- > 0; below *= found_.axes[a].positions()) {
      place += result % found_.axes[a].results * below;
      result /= found_.axes[a].results;
    }
    return place;
  }

  bool fits() {
    GroupedImplicitGemm& f = found_;
    if (f.m16_tiles * f.columns() * 4 > kMaxGroupAccumulators || f.results_per_block() % (16 * f.m16_tiles) != 0)
      return false;
    if (f.warps() > kMostWarps || f.shared_bytes() > kMaxGroupShared) return false;
    if (f.registers() > std::min<std::int64_t>(255, target_.registers_per_multiprocessor / f.threads())) return false;
    f.m16_tile_stride = f.m16_tiles > 1 ? place_of(16) - place_of(0) : 0;
    f.half_tile_stride = place_of(8) - place_of(0);
    for (std::int64_t r = 16; r < f.results_per_block(); ++r)
      if (r / 16 % f.m16_tiles != 0 && place_of(r) - place_of(r - 16) != f.m16_tile_stride) return false;
    return true;
  }

  // Predicts cycles of the busiest multiprocessor (128 lanes), and its cache traffic.
  void predict() {
    GroupedImplicitGemm& f = found_;
    constexpr double kBegin = 90, kPlace = 32, kUnit = 6, kWeight = 6, kStep = 4, kEight = 55, kSum = 1.5;
    constexpr double kElement = 1.7, kResult = 25, kOfResult = 4;  // for transposed (NCHW) data
    const auto units = static_cast<double>(f.units()), positions = static_cast<double>(f.positions());
    const auto steps = static_cast<double>(f.steps()), columns = static_cast<double>(f.columns());
    const auto vectors = static_cast<double>(f.channel_vectors()), results = static_cast<double>(f.results_per_block());
    const double threads = f.threads(), m16_tiles = f.m16_tiles;
    const double of_unit = f.image_is_nchw ? kUnit + kElement * 16 / static_cast<double>(f.element_bytes()) : kUnit;
    const auto sides = static_cast<double>(f.image_is_nchw ? f.threads_per_position() : f.units_per_copy());
    const double copying = positions * (sides * kPlace + units * of_unit);
    const double elements = f.weights_in_words ? 1 : 4.0 / static_cast<double>(f.element_bytes());
    const double weights = threads * steps * 2 * (3 + columns * elements * kWeight);
    const double loads = f.slot_bytes() == 16 ? 1 : f.slot_bytes() == 8 ? 2 : 4;
    const double multiplying = threads * steps * (kStep + m16_tiles * (loads + columns));
    const double finishing =
        f.results_are_nchw ? results * static_cast<double>(f.channels_per_block()) * (kResult / f.width + kOfResult)
                           : results * vectors * kEight;
    const double ends = finishing + threads * m16_tiles * columns * 4 * kSum;
    const double of_block = threads * kBegin + copying + weights + multiplying + ends;
    f.blocks = static_cast<double>(f.groups / f.groups_per_block);
    for (const ImplicitGemmAxis& a : f.axes) f.blocks *= std::ceil(results_of(a) / a.results);
    f.instructions = f.blocks * of_block;
    // Sectors requested for input positions, weights and results. Weights that are not in words need a sector each.
    constexpr double kCached = 32, kApart = 16;  // bytes per cycle; sectors for contiguous bytes
    const double copied = bytes_of_positions() +
                          threads / 32 * steps * columns * 256 * (f.weights_in_words ? 1 : kApart) + bytes_of_results();
    const double waves = std::ceil(f.blocks / target_.multiprocessors),
                 warps =
                     std::min({8.0, threads / 32 * waves,
                               threads / 32 *
                                   std::floor(target_.shared_bytes_per_block / static_cast<double>(f.shared_bytes()))});
    const double of_one = of_block / 128 + copied / kCached;
    f.cycles = 2000 + waves * of_one / (0.45 + 0.55 * warps / 8) + f.blocks * of_one / target_.multiprocessors;
  }

  // Bytes of whole sectors. An NCHW image is read in lines along the last axis, which start and end inside sectors.
  double bytes_of_positions() const {
    const GroupedImplicitGemm& f = found_;
    const auto units = static_cast<double>(f.units()), positions = static_cast<double>(f.positions());
    if (!f.image_is_nchw) return positions * std::max<double>(kSectorBytes, 16 * units);
    const ImplicitGemmAxis& last = f.axes.back();
    const auto of_line = static_cast<double>(last.positions() * last.stride * f.element_bytes());
    return static_cast<double>(f.groups_per_block * f.channels) * positions / static_cast<double>(last.positions()) *
           (of_line + kSectorBytes);
  }
  double bytes_of_results() const {
    const GroupedImplicitGemm& f = found_;
    const auto results = static_cast<double>(f.results_per_block());
    if (!f.results_are_nchw)
      return results * std::max<double>(kSectorBytes, 16 * static_cast<double>(f.channel_vectors()));
    const double lines = results / f.axes.back().results * static_cast<double>(f.channels_per_block());
    return lines * (2.0 * f.axes.back().results + kSectorBytes / 2.0);
  }

  const Graph& graph_;
  const Target& target_;
  GroupedImplicitGemm found_;
};

}  // namespace

std::int64_t GroupedImplicitGemm::taps() const {
  std::int64_t count = 1;
  for (const ImplicitGemmAxis& a : axes) count *= a.taps;
  return count;
}

std::int64_t GroupedImplicitGemm::results_per_block() const {
  std::int64_t count = 1;
  for (const ImplicitGemmAxis& a : axes) count *= a.results;
  return count;
}

std::int64_t GroupedImplicitGemm::positions() const {
  std::int64_t count = 1;
  for (const ImplicitGemmAxis& a : axes) count *= a.positions();
  return count;
}

std::int64_t GroupedImplicitGemm::slots_per_line() const {
  const std::int64_t step = slots_per_step(), slots = axes.back().taps * slots_per_tap();
  const std::int64_t whole = (slots + step - 1) / step * step;
  const bool free = slot_bytes() < 16 && lines() * whole / step == (lines() * slots + step - 1) / step;
  return free ? whole : slots;
}

std::int64_t GroupedImplicitGemm::shared_bytes() const {
  return std::max(positions() * pitch(), results_are_nchw ? 4 * channels_per_block() * nchw_pitch()
                                                          : 32 * results_per_block() * channel_vectors());
}

std::int64_t GroupedImplicitGemm::threads_per_position() const {
  constexpr std::int64_t kPlace = 4;  // registers per unit: its position, and whether it exists
  std::int64_t best = 1, least = 0;
  for (std::int64_t sides = 1; sides <= std::min<std::int64_t>(units(), warps()); ++sides) {
    if (warps() % sides != 0) continue;
    const std::int64_t together = threads() / sides;
    const std::int64_t iterations = (positions() + together - 1) / together * (kPlace + (units() + sides - 1) / sides);
    if (least == 0 || iterations < least) best = sides, least = iterations;
  }
  return best;
}

std::int64_t GroupedImplicitGemm::steps_in_registers() const {
  const std::int64_t most = std::max<std::int64_t>(1, kMostWeights / (2 * columns()));
  const std::int64_t iterations = (steps() + most - 1) / most;
  return (steps() + iterations - 1) / iterations;
}

std::int64_t GroupedImplicitGemm::registers() const {
  // Registers for a unit's elements in flight, and their addresses.
  constexpr std::int64_t kAddresses = 64, kGathered = 16;
  return kAddresses + (image_is_nchw ? kGathered : 0) + 4 * m16_tiles * (columns() + 1) +
         2 * columns() * steps_in_registers();
}

double GroupedImplicitGemm::multiply_adds() const {
  return blocks * warps() * static_cast<double>(steps() * 32 / element_bytes() * 16 * m16_tiles * 8 * columns());
}

std::optional<GroupedImplicitGemm> find_grouped_implicit_gemm(const Graph& graph, const Kernel& kernel,
                                                              const Contraction& contraction, const Target& target) {
  return GroupedImplicitGemmFinder(graph, kernel, contraction, target).run();
}

std::optional<GroupedImplicitGemm> find_grouped_implicit_gemm(const Graph& graph, const Kernel& kernel,
                                                              const Target& target) {
  const std::optional<Kernel> grouped = with_groups_as_axis(kernel);
  if (!grouped) return std::nullopt;
  ContractionMatch answer = find_contraction(*grouped);
  if (!answer.contraction) return std::nullopt;
  return find_grouped_implicit_gemm(graph, answer.kernel ? *answer.kernel : *grouped, *answer.contraction, target);
}

}  // namespace fusec
