#include "analysis/lane_sectors.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <set>
#include <vector>

#include "analysis/loads.h"
#include "analysis/target.h"
#include "ir/type.h"

namespace fusec {
namespace {

constexpr std::int64_t kFew = 64;  // elements of a row: neighbouring lanes have those of other rows

constexpr std::int64_t kFar = 1 << 30;  // elements apart, as nobody knows

struct Along {
  std::int64_t step = 1, extent = 1;
};

// Bytes of sectors for each byte of elements that lie so, the nearest axis first.
double of_pieces(const std::vector<Along>& axes, std::int64_t element) {
  if (axes[0].step > 1)
    return static_cast<double>(std::min<std::int64_t>(kSectorBytes, axes[0].step * element)) /
           static_cast<double>(element);
  std::int64_t piece = 1,
               even = kSectorBytes;  // elements that follow one another; bytes that pieces are a multiple apart
  bool all = true;
  for (const Along& a : axes) {
    if (a.step <= piece) {
      piece = std::max(piece, a.step * (a.extent - 1) + piece);
    } else {
      all = false;
      even = std::gcd(even, a.step * element);
    }
  }
  if (all) return 1;
  const std::int64_t bytes = piece * element;
  return static_cast<double>(bytes + kSectorBytes - std::gcd(bytes, even)) / static_cast<double>(bytes);
}

class Counter {
 public:
  Counter(const RowForm& form, const Graph& graph, std::optional<std::uint32_t> neighbours)
      : form_(form), pool_(form.kernel.pool), graph_(graph), neighbours_(neighbours), along_(form.columns) {
    for (const ExprId r : form.reductions) along_.insert(along_.end(), pool_[r].axes.begin(), pool_[r].axes.end());
    std::ranges::sort(along_);
    along_.erase(std::ranges::unique(along_).begin(), along_.end());
  }

  double count() {
    std::set<ValueId> seen;
    for (const ExprId id : reachable(pool_, roots_of(form_.kernel))) {
      const ExprNode& n = pool_[id];
      if (n.op == ExprOp::kLoad && seen.insert(n.source).second)
        see(position_of(graph_, pool_, id), graph_.tensor(n.source));
    }
    for (const KernelOutput& o : form_.kernel.outputs)
      see(simplify(flat_index(o.type.shape, o.index), pool_.bounds()), o.type);
    return bytes_ == 0 ? 1 : asked_ / bytes_;
  }

 private:
  std::int64_t extent_of(std::uint32_t axis) const { return value_at_hint(pool_.extent(axis), pool_.bounds().symbols); }

  void see(const IndexExpr& at, const TensorType& type) {
    const double all = static_cast<double>(bytes_at_hint(type, graph_.symbols));
    bytes_ += all;
    asked_ += all * times_asked(at, std::max(1, bits(type.dtype) / 8));
  }

  double times_asked(const IndexExpr& at, std::int64_t element) const {
    const auto runs = [&](std::uint32_t a) { return mentions(at, Variable{Variable::Kind::kAxis, a}); };
    std::vector<std::uint32_t> axes;
    std::ranges::copy_if(along_, std::back_inserter(axes), runs);
    std::int64_t length = 1;
    for (const std::uint32_t a : axes) length *= extent_of(a);
    // What is the same for all rows, or a number for each, is of few bytes or asked for once.
    if (std::ranges::none_of(form_.rows, runs) || length < kFew) return 1;
    if (neighbours_) {
      const auto step = difference_along(at, *neighbours_, pool_.bounds());
      if (!step) return 1;
      const auto known = step->as_constant();
      return of_pieces({{.step = known ? std::abs(*known) : kFar, .extent = extent_of(*neighbours_)}}, element);
    }
    std::vector<Along> pieces;
    for (const std::uint32_t a : axes) {
      const auto step = difference_along(at, a, pool_.bounds());
      if (!step) return 1;
      const auto known = step->as_constant();  // else further apart than a sector
      if (known && *known == 0) return 1;
      pieces.push_back({.step = known ? std::abs(*known) : kFar, .extent = extent_of(a)});
    }
    std::ranges::sort(pieces, {}, &Along::step);
    return of_pieces(pieces, element);
  }

  const RowForm& form_;
  const ExprPool& pool_;
  const Graph& graph_;
  std::optional<std::uint32_t> neighbours_;
  std::vector<std::uint32_t> along_;
  double bytes_ = 0, asked_ = 0;
};

}  // namespace

std::optional<IndexExpr> difference_along(const IndexExpr& at, std::uint32_t axis, const Bounds& bounds) {
  const auto next = [&](Variable v) -> std::optional<IndexExpr> {
    if (v != Variable{Variable::Kind::kAxis, axis}) return std::nullopt;
    return IndexExpr::axis(axis) + 1;
  };
  const IndexExpr step = simplify(substitute(at, next) - at, bounds);
  for (const Variable v : variables_of(step))
    if (v.kind != Variable::Kind::kSymbol) return std::nullopt;
  return step;
}

double asked_for_by_lanes(const RowForm& form, const Graph& graph, std::optional<std::uint32_t> neighbours) {
  return Counter(form, graph, neighbours).count();
}

}  // namespace fusec
