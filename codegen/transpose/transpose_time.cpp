#include <algorithm>
#include <functional>

#include "analysis/kernel/loads.h"
#include "codegen/access/access_samples.h"
#include "codegen/access/vector_access.h"
#include "codegen/access/vectorized_loads.h"
#include "codegen/transpose/transpose_tiles.h"
#include "ir/type.h"
#include "schedule/layout/memory_access.h"
#include "schedule/target/target.h"

namespace fusec {
namespace {

// Counts sectors that some warps of some blocks touch.
class Sampler {
 public:
  Sampler(const TransposeTiles& tiles, const Kernel& kernel, const Graph& graph)
      : tiles_(tiles),
        kernel_(kernel),
        graph_(graph),
        samples_(kernel, graph),
        split_(tiles.vector > 1 ? split_last_axis(kernel, tiles.vector) : kernel) {}

  // For a point.
  double sectors_of(const StagedLoad& load) {
    const int lines = tiles_.tiled[0].extent / load.packed;
    double elements = static_cast<double>(tiles_.tiled[0].extent) * tiles_.tiled[load.along].extent;
    for (const std::size_t i : load.others) elements *= tiles_.tiled[i].extent;
    const double sectors =
        sectors_of(load.items, load.packed, load.width, load.bits, [&](int fast, int rest, int iteration) {
          std::vector<int> at(tiles_.tiled.size(), 0);
          at[0] = rest % lines * load.packed + iteration;
          at[load.along] = fast * load.width;
          int other = rest / lines;
          for (std::size_t i = load.others.size(); i-- > 0; other /= tiles_.tiled[load.others[i]].extent)
            at[load.others[i]] = other % tiles_.tiled[load.others[i]].extent;
          return go_to(at) ? samples_.position(load.load) : std::nullopt;
        });
    return sectors * elements / points();
  }

  // Of what is read or written where results are: `together` by one access for a thread's neighbours.
  double sectors_of_unstaged(const std::function<std::optional<std::int64_t>()>& position, int element_bits,
                             bool together) {
    const int width = together ? tiles_.vector : 1;
    return sectors_of(tiles_.items, tiles_.vector / width, width, element_bits,
                      [&](int fast, int rest, int iteration) -> std::optional<std::int64_t> {
                        std::vector<int> at(tiles_.tiled.size(), 0);
                        at[0] = fast * tiles_.vector + iteration;
                        for (std::size_t i = 1; i < at.size(); rest /= tiles_.tiled[i++].extent)
                          at[i] = rest % tiles_.tiled[i].extent;
                        return go_to(at) ? position() : std::nullopt;
                      });
  }
  double sectors_of_output(std::size_t i) {
    const KernelOutput& output = kernel_.outputs[i];
    const IndexExpr position = simplify(flat_index(output.type.shape, output.index), kernel_.pool.bounds());
    return sectors_of_unstaged([&] { return samples_.value(position); }, bits(output.type.dtype),
                               is_vector(split_.outputs[i]));
  }
  double sectors_of_unstaged(ExprId load) {
    if (samples_.is_small_table(load)) return 0;
    const DType dtype = kernel_.pool[load].dtype;
    return sectors_of_unstaged(
        [&] { return samples_.position(load); }, bits(dtype),
        coefficient_of(position_of(graph_, kernel_.pool, load), {Variable::Kind::kAxis, tiles_.stored}) == 1);
  }

 private:
  // As it is emitted, in groups of neighbours.
  bool is_vector(const KernelOutput& split) const {
    const Bounds& bounds = split_.pool.bounds();
    return tiles_.vector == 1 || is_vector_position(simplify(flat_index(split.type.shape, split.index), bounds),
                                                    split.axes.back(), tiles_.vector, split.type.dtype, bounds);
  }

  // For an element, of items that `at` gives the positions of, in `turns` accesses each.
  template <class At>
  double sectors_of(const ItemOrder& order, int iterations, int width, int element_bits, At at) {
    constexpr int kBlocks = 3, kWarps = 3;
    std::int64_t sectors = 0;
    double elements = 0;
    for (const std::int64_t point : samples_.starts(1, kBlocks)) {
      find_block(point);
      const int warps = (order.count() + kWarpLanes - 1) / kWarpLanes, seen = std::min(kWarps, warps);
      for (int w = 0; w < seen; ++w)
        for (int iteration = 0; iteration < iterations; ++iteration) {
          std::vector<std::int64_t> places;
          for (int item = w * warps / seen * kWarpLanes; item < w * warps / seen * kWarpLanes + kWarpLanes; ++item) {
            if (item >= order.count()) break;
            const int rest = item / order.lanes % order.rest;
            const int fast = item / (order.lanes * order.rest) * order.lanes + item % order.lanes;
            if (order.real > 0 && fast >= order.real) continue;
            const auto found = at(fast, rest, iteration);
            if (!found) continue;
            elements += width;
            for (int e = 0; e < width; ++e) places.push_back((*found + e) * element_bits / 8);
          }
          sectors += count_sectors(places);
        }
    }
    return elements > 0 ? static_cast<double>(sectors) / elements : 0;
  }

  void find_block(std::int64_t point) {
    for (std::size_t i = kernel_.outputs[0].axes.size(); i-- > 0;) {
      const std::uint32_t axis = kernel_.outputs[0].axes[i];
      const std::int64_t extent = std::max<std::int64_t>(1, samples_.hint(kernel_.pool.extent(axis)));
      std::int64_t first = point % extent;
      point /= extent;
      const auto tiled = std::ranges::find(tiles_.tiled, axis, &TiledAxis::axis);
      if (tiled != tiles_.tiled.end()) first = first / tiled->extent * tiled->extent;
      samples_.set(axis, first);
      if (tiled == tiles_.tiled.end()) continue;
      firsts_.resize(tiles_.tiled.size());
      firsts_[static_cast<std::size_t>(tiled - tiles_.tiled.begin())] = {first, extent};
    }
  }

  // To places of the tile along its axes; false where the tensor ends before.
  bool go_to(const std::vector<int>& at) {
    for (std::size_t i = 0; i < at.size(); ++i) {
      const auto [first, extent] = firsts_[i];
      if (first + at[i] >= extent) return false;
      samples_.set(tiles_.tiled[i].axis, first + at[i]);
    }
    return true;
  }

  double points() const {
    double count = 1;
    for (const TiledAxis& tiled : tiles_.tiled) count *= tiled.extent;
    return count;
  }

  const TransposeTiles& tiles_;
  const Kernel& kernel_;
  const Graph& graph_;
  AccessSamples samples_;
  const Kernel split_;
  std::vector<std::pair<std::int64_t, std::int64_t>> firsts_;  // of the tiled axes: this block's first, and the extent
};

}  // namespace

double transpose_time(const TransposeTiles& tiles, const Kernel& kernel, const Graph& graph) {
  Sampler sampler(tiles, kernel, graph);
  double sectors = 0, instructions = 0;  // for a point
  // Of an element, and of an access of several.
  constexpr double kElement = 2, kLoad = 16, kStore = 20;
  for (const StagedLoad& load : tiles.loads) {
    sectors += sampler.sectors_of(load);
    instructions += kElement + kLoad / load.width;
  }
  for (std::size_t i = 0; i < kernel.outputs.size(); ++i) {
    sectors += sampler.sectors_of_output(i);
    instructions += kElement + kStore / tiles.vector;
  }
  for (const ExprId id : reachable(kernel.pool, roots_of(kernel)))
    if (kernel.pool[id].op == ExprOp::kLoad &&
        std::ranges::find(tiles.loads, id, &StagedLoad::load) == tiles.loads.end())
      sectors += sampler.sectors_of_unstaged(id);
  return movement_time(sectors, instructions / 32, 0);
}

}  // namespace fusec
