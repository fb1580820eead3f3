#include "analysis/gemm_form.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "ir/type.h"

namespace fusec {
namespace {

constexpr int kCopyBytes = 16;
using Axes = std::vector<std::uint32_t>;

bool mentions_any(const IndexExpr& e, const Axes& axes) {
  return std::ranges::any_of(axes, [&](std::uint32_t a) { return mentions(e, {Variable::Kind::kAxis, a}); });
}

bool has_axes(const IndexExpr& e) {
  return std::ranges::any_of(variables_of(e), [](Variable v) { return v.kind != Variable::Kind::kSymbol; });
}

IndexExpr with_axes_at(const IndexExpr& e, const Axes& axes, const std::function<IndexExpr(std::uint32_t)>& value) {
  return substitute(e, [&](Variable v) -> std::optional<IndexExpr> {
    if (v.kind != Variable::Kind::kAxis || std::ranges::find(axes, v.id) == axes.end()) return std::nullopt;
    return value(v.id);
  });
}

// What one step along the axis adds, where that is the same everywhere.
std::optional<IndexExpr> stride_along(const IndexExpr& e, std::uint32_t axis, const Bounds& bounds) {
  const IndexExpr next = with_axes_at(e, {axis}, [](std::uint32_t a) { return IndexExpr::axis(a) + 1; });
  IndexExpr stride = simplify(next - e, bounds);
  if (has_axes(stride)) return std::nullopt;
  return stride;
}

// The same of the axes flattened.
std::optional<IndexExpr> stride_along(const IndexExpr& e, const Axes& axes, const ExprPool& pool) {
  std::optional<IndexExpr> innermost;
  IndexExpr expected;
  for (std::size_t i = axes.size(); i-- > 0;) {
    if (pool.extent(axes[i]).is(1)) continue;
    const std::optional<IndexExpr> stride = stride_along(e, axes[i], pool.bounds());
    if (!stride || (innermost && *stride != expected)) return std::nullopt;
    if (!innermost) innermost = stride;
    expected = simplify(*stride * pool.extent(axes[i]), pool.bounds());
  }
  return innermost;
}

std::optional<std::uint32_t> last_axis(const Axes& axes, const ExprPool& pool) {
  for (std::size_t i = axes.size(); i-- > 0;)
    if (!pool.extent(axes[i]).is(1)) return axes[i];
  return std::nullopt;
}

// Takes a member of a group of so many out of divisions by multiples of that: (8q + e) // 16 is q // 2 for groups of 8.
IndexExpr members_apart(const IndexExpr& e, Variable member, int together, const Bounds& bounds) {
  return rewrite_atoms(e, [&](IndexAtom::Kind kind, IndexExpr a, IndexExpr b) -> IndexExpr {
    const bool divides = kind == IndexAtom::Kind::kFloorDiv, remains = kind == IndexAtom::Kind::kMod;
    if (!divides && !remains) return kind == IndexAtom::Kind::kMin ? min(a, b) : max(a, b);
    const IndexExpr groups = a - IndexExpr::variable(member);
    const bool apart = coefficient_of(a, member) == 1 && range_of(b, bounds).min > 0 &&
                       proves_multiple_of(b, together, bounds) && proves_multiple_of(groups, together, bounds);
    if (!apart) return divides ? floor_div(a, b) : floor_mod(a, b);
    const IndexExpr group = floor_div(groups, together), of = floor_div(b, together);
    return divides ? floor_div(group, of) : floor_mod(group, of) * together + IndexExpr::variable(member);
  });
}

// Do whole, aligned groups of neighbours lie along the last of the axes? The axis may stand in divisions (heads).
bool runs_along(const IndexExpr& position, const Axes& axes, int together, const ExprPool& pool) {
  const std::optional<std::uint32_t> axis = last_axis(axes, pool);
  if (!axis || !proves_multiple_of(pool.extent(*axis), together, pool.bounds())) return false;
  Bounds bounds = pool.bounds();
  const auto group = static_cast<std::uint32_t>(bounds.axes.size()), member = group + 1;
  bounds.axes.push_back(simplify(floor_div(pool.extent(*axis), together), bounds));
  bounds.axes.push_back(together);
  const IndexExpr split = with_axes_at(
      position, {*axis}, [&](std::uint32_t) { return IndexExpr::axis(group) * together + IndexExpr::axis(member); });
  const Variable of_group{Variable::Kind::kAxis, member};
  const IndexExpr at = simplify(members_apart(simplify(split, bounds), of_group, together, bounds), bounds);
  return coefficient_of(at, of_group) == 1 && proves_multiple_of(at - IndexExpr::axis(member), together, bounds);
}

std::optional<GemmOperand> find_operand(const Graph& graph, const ExprPool& pool, ExprId factor, const Axes& across,
                                        const Axes& depth) {
  const ExprNode& n = pool[factor];
  if (n.op != ExprOp::kLoad || n.args[0] != kNoExpr) return std::nullopt;
  const IndexExpr position = simplify(flat_index(graph.tensor(n.source).shape, n.indices), pool.bounds());
  for (const Variable v : variables_of(position))
    if (v.kind == Variable::Kind::kValue) return std::nullopt;
  GemmOperand operand{.load = factor};
  operand.across = simplify(with_axes_at(position, depth, [](std::uint32_t) { return IndexExpr(0); }), pool.bounds());
  operand.depth = simplify(position - operand.across, pool.bounds());
  for (const Variable v : variables_of(operand.depth))
    if (v.kind == Variable::Kind::kAxis && std::ranges::find(depth, v.id) == depth.end()) return std::nullopt;
  if (!mentions_any(operand.across, across)) return std::nullopt;
  operand.depth_stride = stride_along(operand.depth, depth, pool);
  const int together = 8 * kCopyBytes / bits(n.dtype);
  operand.along_depth = runs_along(position, depth, together, pool);
  if (!operand.along_depth && !(runs_along(position, across, together, pool) && operand.depth_stride))
    return std::nullopt;
  return operand;
}

double at_hint(const ExprPool& pool, const Axes& axes) {
  double count = 1;
  for (const std::uint32_t a : axes)
    count *= std::max(1.0, static_cast<double>(value_at_hint(pool.extent(a), pool.bounds().symbols)));
  return count;
}

struct Sizes {
  double rows, columns, batch, depth;
  double terms, left, right;  // the most of a loop; sums are those of all loops
  double element_bytes;
};

std::int64_t stage_bytes(const GemmTiles& t, const Sizes& sizes) {
  return static_cast<std::int64_t>((t.rows * sizes.left + t.columns * sizes.right) * t.depth * sizes.element_bytes);
}

// Of 16 along the depth: cycles of a multiprocessor for the products (its tensor cores make 1024 of 16-bit factors in
// one, its lanes 64), and for what warps read of shared memory, 128 bytes a cycle.
double product_cycles(const GemmTiles& t, const Sizes& sizes) {
  const double sums = static_cast<double>(t.rows) * t.columns * sizes.terms;
  const double warps = t.threads() / 32.0;
  if (sizes.element_bytes <= 2)
    return std::max(
        sums * 16 / 2048 * sizes.element_bytes,
        0.9 * warps * (t.warp_rows * sizes.left + t.warp_columns * sizes.right) * 16 * sizes.element_bytes / 128);
  const double loads = warps * 4 * (t.warp_rows / 4 * sizes.left + t.warp_columns / 8 * sizes.right);
  return sums * 16 / 64 + 2 * loads / 4;
}

// A model for comparing tiles with one another.
double predicted_cycles(const GemmTiles& t, const Sizes& sizes, const Target& target) {
  const double tiles = std::ceil(sizes.rows / t.rows) * std::ceil(sizes.columns / t.columns) * sizes.batch;
  const double sums = static_cast<double>(t.rows) * t.columns * sizes.terms;
  const double warps = t.threads() / 32.0;
  const double registers = 64 + sums / t.threads();
  const double resident =
      std::max(1.0, std::min({std::floor(target.registers_per_multiprocessor / (registers * t.threads())),
                              std::floor(static_cast<double>(target.shared_bytes_per_block) /
                                         static_cast<double>(stage_bytes(t, sizes) * t.stages)),
                              std::floor(target.max_threads_per_multiprocessor / static_cast<double>(t.threads()))}));
  const double of_one = std::ceil(tiles / target.multiprocessors);  // tiles that the busiest one makes
  const double at_a_time = std::min(resident, of_one);
  // A multiprocessor takes 40 bytes a cycle from the L2 cache, or what its tiles on the way are in one latency.
  constexpr double kMostBytes = 40, kLatency = 466;
  const double of_stage = static_cast<double>(stage_bytes(t, sizes));
  const double from_cache =
      of_stage / t.depth * 16 / std::min(kMostBytes, at_a_time * (t.stages - 1) * of_stage / kLatency);
  // Few warps leave the units waiting for one another's operands.
  const double busy = std::min(1.0, 0.45 + 0.55 * warps * at_a_time / 8);
  const double steps = sizes.depth / 16;
  const double tile = steps * std::max(product_cycles(t, sizes), from_cache) / busy;
  const double ends = 1500 + sums / 64;  // the first tiles' way from memory, and the results'
  return of_one * tile + std::ceil(of_one / at_a_time) * ends;
}

bool multiplies(DType multiplied, DType stored) {
  return stored == multiplied || (multiplied == DType::kFloat8E4M3FN && stored == DType::kFloat8E5M2);
}

// Does the factor of every sum lie in memory as elements of the dtype?
bool all_factors_are(const ExprPool& pool, const Product& product, DType dtype) {
  const auto is = [&](ExprId factor) {
    return pool[factor].op == ExprOp::kLoad && multiplies(dtype, pool[factor].dtype);
  };
  return std::ranges::all_of(product.loops, [&](const ProductLoop& loop) {
    return std::ranges::all_of(loop.left, is) && std::ranges::all_of(loop.right, is);
  });
}

// The dtype in which the factors are multiplied.
std::optional<DType> multiplied_dtype(const ExprPool& pool, const Product& product, const Target& target) {
  const ScalarType sums = pool[product.loops[0].terms[0].reduction].type;
  if (sums == ScalarType::kInt32) {
    if (all_factors_are(pool, product, DType::kInt8)) return DType::kInt8;
    return std::nullopt;
  }
  if (sums != ScalarType::kFloat32) return std::nullopt;
  if (target.compute_capability >= 89 && all_factors_are(pool, product, DType::kFloat8E4M3FN))
    return DType::kFloat8E4M3FN;
  return product.tensor_dtype.value_or(DType::kFloat32);
}

bool alike(const GemmForm& form, bool left) {
  std::optional<bool> along_depth;
  for (const GemmLoop& loop : form.loops)
    for (const GemmOperand& operand : left ? loop.left : loop.right) {
      if (along_depth && *along_depth != operand.along_depth) return false;
      along_depth = operand.along_depth;
    }
  return true;
}

}  // namespace

std::optional<IndexExpr> flat_stride(const IndexExpr& position, const Axes& axes, const ExprPool& pool) {
  return stride_along(position, axes, pool);
}

double points_at_hint(const ExprPool& pool, const Axes& axes) {
  return at_hint(pool, axes);
}

std::int64_t stage_bytes(const GemmForm& form) {
  std::size_t most = 0;
  for (const GemmLoop& loop : form.loops)
    most = std::max(most, loop.left.size() * static_cast<std::size_t>(form.tiles.rows) +
                              loop.right.size() * static_cast<std::size_t>(form.tiles.columns));
  return static_cast<std::int64_t>(most) * form.tiles.depth * form.element_bytes();
}

std::int64_t staged_bytes(const GemmForm& form) {
  return 16ll * (form.tiles.warp_columns + 8) * 4 * form.sums;
}

std::int64_t shared_bytes(const GemmForm& form) {
  return std::max(stage_bytes(form) * form.tiles.stages, staged_bytes(form) * form.tiles.threads() / 32);
}

std::vector<GemmTiles> gemm_tile_table(DType multiplied) {
  if (bits(multiplied) == 32)
    return {
        {.rows = 128, .columns = 128, .warp_rows = 32, .warp_columns = 64, .depth = 16, .stages = 3},
        {.rows = 128, .columns = 64, .warp_rows = 32, .warp_columns = 64, .depth = 16, .stages = 3},
        {.rows = 64, .columns = 128, .warp_rows = 32, .warp_columns = 64, .depth = 16, .stages = 3},
        {.rows = 64, .columns = 64, .warp_rows = 16, .warp_columns = 32, .depth = 16, .stages = 3},
        {.rows = 32, .columns = 64, .warp_rows = 16, .warp_columns = 32, .depth = 16, .stages = 3},
        {.rows = 16, .columns = 64, .warp_rows = 16, .warp_columns = 32, .depth = 16, .stages = 3},
    };
  std::vector<GemmTiles> table = {
      {.rows = 128, .columns = 256, .warp_rows = 64, .warp_columns = 64},
      {.rows = 128, .columns = 128, .warp_rows = 64, .warp_columns = 64},
      {.rows = 128, .columns = 64, .warp_rows = 64, .warp_columns = 32},
      {.rows = 64, .columns = 128, .warp_rows = 32, .warp_columns = 64},
      {.rows = 64, .columns = 64, .warp_rows = 32, .warp_columns = 32},
      {.rows = 32, .columns = 128, .warp_rows = 32, .warp_columns = 32},
      {.rows = 32, .columns = 64, .warp_rows = 16, .warp_columns = 32},
      {.rows = 16, .columns = 128, .warp_rows = 16, .warp_columns = 32},
      {.rows = 16, .columns = 64, .warp_rows = 16, .warp_columns = 16},
      {.rows = 16, .columns = 32, .warp_rows = 16, .warp_columns = 16, .depth = 64},
  };
  for (GemmTiles& t : table) t.depth = t.depth * 16 / bits(multiplied);
  return table;
}

std::optional<GemmForm> find_gemm(const Graph& graph, const Kernel& kernel, const Product& product,
                                  const Target& target) {
  constexpr int kMostSums = 128;  // of a thread, in registers
  // Other products may stand in the same launch, with up to 40 KiB of their own (analysis/side_by_side).
  const std::int64_t most_shared = target.shared_bytes_per_block - (40 << 10);
  const ExprPool& pool = kernel.pool;
  if (product.choice || !product.row_values.empty()) return std::nullopt;
  const std::optional<DType> multiplied = multiplied_dtype(pool, product, target);
  if (!multiplied) return std::nullopt;
  GemmForm form{.dtype = *multiplied, .loops = {}, .tiles = {}, .sums = static_cast<int>(term_count(product))};
  Sizes sizes{.rows = at_hint(pool, product.rows),
              .columns = at_hint(pool, product.columns),
              .batch = at_hint(pool, product.batch),
              .depth = 0,
              .terms = static_cast<double>(term_count(product)),
              .left = 0,
              .right = 0,
              .element_bytes = static_cast<double>(form.element_bytes())};
  for (const ProductLoop& loop : product.loops) {
    GemmLoop operands;
    for (const bool left : {true, false})
      for (const ExprId factor : left ? loop.left : loop.right) {
        auto operand = find_operand(graph, pool, factor, left ? product.rows : product.columns, loop.depth);
        if (!operand || !multiplies(form.dtype, pool[factor].dtype)) return std::nullopt;
        // ldmatrix transposes elements of 16 bits alone.
        if (bits(form.dtype) == 8 && !operand->along_depth) return std::nullopt;
        (left ? operands.left : operands.right).push_back(std::move(*operand));
      }
    sizes.left = std::max(sizes.left, static_cast<double>(loop.left.size()));
    sizes.right = std::max(sizes.right, static_cast<double>(loop.right.size()));
    sizes.depth += at_hint(pool, loop.depth);
    form.loops.push_back(std::move(operands));
  }
  // In lanes, which of the tile's rows and columns are a lane's goes by how the factors lie.
  if (!form.tensor_cores() && !(alike(form, true) && alike(form, false))) return std::nullopt;
  double least = 0;
  for (GemmTiles t : gemm_tile_table(form.dtype)) {
    if (t.warp_rows * t.warp_columns / 32 * sizes.terms > kMostSums) continue;
    while (t.stages > 2 && stage_bytes(t, sizes) * t.stages > most_shared) --t.stages;
    if (t.stages < 3) continue;
    const double cycles = predicted_cycles(t, sizes, target);
    if (form.tiles.rows != 0 && cycles >= least) continue;
    least = form.cycles = cycles;
    form.tiles = t;
  }
  if (form.tiles.rows == 0) return std::nullopt;
  return form;
}

}  // namespace fusec
