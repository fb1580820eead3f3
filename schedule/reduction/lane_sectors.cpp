#include "schedule/reduction/lane_sectors.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <vector>

#include "analysis/kernel/loads.h"
#include "ir/type.h"
#include "schedule/layout/memory_access.h"
#include "schedule/target/target.h"

namespace fusec {
namespace {

constexpr std::int64_t kFew = 64;  // elements of a row; in shorter rows, neighbouring lanes have elements of other rows

class SectorCounter {
 public:
  SectorCounter(const RowForm& form, const Graph& graph, std::optional<std::uint32_t> neighbours)
      : form_(form), pool_(form.kernel.pool), graph_(graph), neighbours_(neighbours) {}

  double count() {
    for (const ReductionLoop& loop : reduction_loops(form_)) see_loads(loop.axes, loop.bodies(pool_));
    for (const KernelOutput& o : form_.kernel.outputs) {
      const bool of_row = form_.columns.empty() || is_of_rows(form_, o);
      if (!of_row) see_loads(form_.columns, {o.expr});
      add(o.type, of_row ? 1 : overfetch_of(position_of(pool_, o), form_.columns, bytes_of(o.type.dtype)));
    }
    for (const auto& [value, times] : loads_) add(graph_.tensor(value), times);
    return bytes_ == 0 ? 1 : requested_bytes_ / bytes_;
  }

 private:
  static std::int64_t bytes_of(DType dtype) { return std::max(1, bits(dtype) / 8); }
  std::int64_t extent_of(std::uint32_t axis) const { return value_at_hint(pool_.extent(axis), pool_.bounds().symbols); }

  void add(const TensorType& type, double times) {
    const auto all = static_cast<double>(bytes_at_hint(type, graph_.symbols));
    bytes_ += all;
    requested_bytes_ += all * times;
  }

  // Counts the maximum over the loops that load a tensor: values kept by one loop may be in another loop's order.
  void see_loads(const std::vector<std::uint32_t>& axes, const std::vector<ExprId>& roots) {
    for (const ExprId id : outside_reductions(form_, roots)) {
      const ExprNode& n = pool_[id];
      if (n.op != ExprOp::kLoad) continue;
      double& times = loads_.try_emplace(n.source, 1).first->second;
      times = std::max(times, overfetch_of(position_of(graph_, pool_, id), axes, bytes_of(n.dtype)));
    }
  }

  // `along`: the axes along which lanes run, the fastest last.
  double overfetch_of(const IndexExpr& at, const std::vector<std::uint32_t>& along, std::int64_t element) const {
    const auto runs = [&](std::uint32_t a) { return mentions(at, Variable{Variable::Kind::kAxis, a}); };
    std::int64_t length = 1;
    for (const std::uint32_t a : along) length *= runs(a) ? extent_of(a) : 1;
    // Operands that are equal for all rows, or have one number per row, are small or read once.
    if (std::ranges::none_of(form_.rows, runs) || length < kFew || by_values(at)) return 1;
    return of_sampled(at, neighbours_ ? std::vector{*neighbours_} : along, element);
  }

  // The position of lane `lane` of a row's first warp, with index `row` on each axis of rows.
  std::int64_t place_of(const IndexExpr& at, const std::vector<std::uint32_t>& along, std::int64_t row,
                        std::int64_t lane) const {
    std::map<std::uint32_t, std::int64_t> places;
    for (const std::uint32_t a : form_.rows) places[a] = std::min(row, extent_of(a) - 1);
    for (std::size_t i = along.size(); i-- > 0;) {
      const std::int64_t extent = std::max<std::int64_t>(1, extent_of(along[i]));
      places[along[i]] = lane % extent;
      lane /= extent;
    }
    return evaluate(at, [&](Variable v) -> std::int64_t {
      if (v.kind == Variable::Kind::kSymbol) return pool_.bounds().symbols[v.id].hint;
      const auto known = places.find(v.id);
      return known == places.end() ? 0 : known->second;
    });
  }

  // Sector bytes per element byte for the accesses of one warp, averaged over the alignments that rows and their pieces
  // can have.
  double of_sampled(const IndexExpr& at, const std::vector<std::uint32_t>& along, std::int64_t element) const {
    constexpr std::int64_t kLanes = 32;
    std::vector<std::int64_t> bytes;
    std::int64_t even = kSectorBytes;  // the pieces' distances are multiples of it, in bytes
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
      bytes.push_back(element * place_of(at, along, 1, lane));
      if (lane == 0 || bytes[bytes.size() - 2] + element != bytes.back()) even = std::gcd(even, bytes.back());
    }
    std::ranges::sort(bytes);
    bytes.erase(std::unique(bytes.begin(), bytes.end()), bytes.end());
    const auto count = static_cast<std::int64_t>(bytes.size());
    if (bytes.back() - bytes.front() == (count - 1) * element) return 1;  // whole vectors, at any alignment
    double sectors = 0;
    for (std::int64_t begin = 0; begin < kSectorBytes; begin += even) {
      std::vector<std::int64_t> addresses;
      for (const std::int64_t b : bytes) addresses.push_back(b - bytes.front() + begin);
      sectors += static_cast<double>(count_sectors(addresses));
    }
    return sectors * static_cast<double>(even) / static_cast<double>(count * element);
  }

  const RowForm& form_;
  const ExprPool& pool_;
  const Graph& graph_;
  std::optional<std::uint32_t> neighbours_;
  std::map<ValueId, double> loads_;
  double bytes_ = 0, requested_bytes_ = 0;
};

}  // namespace

std::optional<IndexExpr> difference_along(const IndexExpr& at, std::uint32_t axis, const Bounds& bounds) {
  const IndexExpr step = simplify(with_axis(at, axis, IndexExpr::axis(axis) + 1) - at, bounds);
  for (const Variable v : variables_of(step))
    if (v.kind != Variable::Kind::kSymbol) return std::nullopt;
  return step;
}

double sector_overfetch_of_lanes(const RowForm& form, const Graph& graph, std::optional<std::uint32_t> neighbours) {
  return SectorCounter(form, graph, neighbours).count();
}

}  // namespace fusec
