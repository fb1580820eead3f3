#include "analysis/warpgroup_gemm_form.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/depth_shares.h"
#include "analysis/loads.h"
#include "analysis/operation_work.h"

namespace fusec {
namespace {

using Axes = std::vector<std::uint32_t>;
constexpr std::size_t kMostBatch = 2;

// Elements of a factor: those of 16 bytes, of which TMA's strides are multiples, and of a tile along the depth.
struct Elements {
  int aligned, depth;
};

IndexExpr at_origin(const IndexExpr& e, const Bounds& bounds) {
  return simplify(substitute(e,
                             [](Variable v) -> std::optional<IndexExpr> {
                               if (v.kind == Variable::Kind::kAxis) return IndexExpr(0);
                               return std::nullopt;
                             }),
                  bounds);
}

// The batch's dimensions: those whose steps are the same as of one flattened are one.
std::optional<std::vector<WarpgroupOperand::Batch>> batch_of(const ExprPool& pool, const IndexExpr& position,
                                                             const Axes& axes, int aligned) {
  std::vector<WarpgroupOperand::Batch> batch;
  for (std::size_t i = axes.size(); i-- > 0;) {
    const IndexExpr& extent = pool.extent(axes[i]);
    if (extent.is(1)) continue;
    const std::optional<IndexExpr> stride = flat_stride(position, {axes[i]}, pool);
    if (!stride) return std::nullopt;
    if (stride->is(0)) continue;
    if (!proves_multiple_of(*stride, aligned, pool.bounds())) return std::nullopt;
    if (!batch.empty() && simplify(batch.back().stride * batch.back().extent, pool.bounds()) == *stride) {
      batch.back().position += IndexExpr::axis(axes[i]) * batch.back().extent;
      batch.back().extent = simplify(batch.back().extent * extent, pool.bounds());
    } else {
      batch.push_back({IndexExpr::axis(axes[i]), extent, *stride});
    }
  }
  if (batch.size() > kMostBatch) return std::nullopt;
  return batch;
}

std::optional<IndexExpr> step_along(const IndexExpr& e, std::uint32_t axis, const Bounds& bounds) {
  const IndexExpr next = substitute(e, [&](Variable v) -> std::optional<IndexExpr> {
    if (v.kind != Variable::Kind::kAxis || v.id != axis) return std::nullopt;
    return IndexExpr::axis(axis) + 1;
  });
  IndexExpr step = simplify(next - e, bounds);
  for (const Variable v : variables_of(step))
    if (v.kind != Variable::Kind::kSymbol) return std::nullopt;
  return step;
}

// The depth of a factor whose lines run along it, in stretches: one axis, of which a division tells them apart.
std::optional<WarpgroupOperand::Stretches> stretches_of(const ExprPool& pool, const IndexExpr& position,
                                                        const Axes& depth, const Elements& elements) {
  std::optional<std::uint32_t> axis;
  for (const std::uint32_t a : depth) {
    if (pool.extent(a).is(1)) continue;
    if (axis) return std::nullopt;
    axis = a;
  }
  const auto extent = axis ? pool.extent(*axis).as_constant() : std::nullopt;
  if (!extent) return std::nullopt;
  constexpr std::int64_t kMostLength = 1024;
  for (std::int64_t length = elements.depth; length < std::min(kMostLength, *extent); length += elements.depth) {
    if (*extent % length != 0) continue;
    Bounds bounds = pool.bounds();
    const auto outer = static_cast<std::uint32_t>(bounds.axes.size()), inner = outer + 1;
    bounds.axes.emplace_back(*extent / length);
    bounds.axes.emplace_back(length);
    const IndexExpr split = simplify(substitute(position,
                                                [&](Variable v) -> std::optional<IndexExpr> {
                                                  if (v.kind != Variable::Kind::kAxis || v.id != *axis)
                                                    return std::nullopt;
                                                  return IndexExpr::axis(outer) * length + IndexExpr::axis(inner);
                                                }),
                                     bounds);
    const std::optional<IndexExpr> apart = step_along(split, outer, bounds), beside = step_along(split, inner, bounds);
    if (apart && beside && beside->is(1) && proves_multiple_of(*apart, elements.aligned, bounds))
      return WarpgroupOperand::Stretches{length, *extent / length, *apart};
  }
  return std::nullopt;
}

// Neighbours along the depth are in pieces of 16 bytes, which threads copy.
std::optional<WarpgroupOperand> picked_operand(const GemmOperand& given) {
  if (!given.along_depth || !given.depth_stride || !given.depth_stride->is(1)) return std::nullopt;
  return WarpgroupOperand{.load = given.load,
                          .along_depth = true,
                          .offset = 0,
                          .stride = 0,
                          .stretches = {},
                          .batch = {},
                          .scales = given.scales,
                          .picked = given.across};
}

// Pieces of what it is computed from are so far apart along the depth, everywhere.
std::optional<WarpgroupOperand> computed_operand(const ExprPool& pool, const GemmOperand& given) {
  const auto strides = [](const GemmOperand& copy) { return copy.depth_stride.has_value(); };
  if (!std::ranges::all_of(given.copies, strides)) return std::nullopt;
  double instructions = 4;  // from words and into them
  for (const ExprId id : reachable(pool, std::span(&given.value, 1))) {
    const OperationWork work = operation_work(pool[id]);
    instructions += work.arithmetic + 4 * work.special;
  }
  return WarpgroupOperand{.load = given.load,
                          .along_depth = given.along_depth,
                          .offset = 0,
                          .stride = 0,
                          .stretches = {},
                          .batch = {},
                          .scales = given.scales,
                          .picked = {},
                          .computed = given,
                          .instructions = instructions};
}

std::optional<WarpgroupOperand> operand_of(const ExprPool& pool, const GemmOperand& given, const Axes& across,
                                           const Axes& depth, const Axes& batch_axes, const Elements& elements) {
  const std::optional<IndexExpr> stride = flat_stride(given.across, across, pool);
  if (!stride) return std::nullopt;
  WarpgroupOperand operand{.load = given.load,
                           .along_depth = given.along_depth,
                           .offset = at_origin(given.across + given.depth, pool.bounds()),
                           .stride = *stride,
                           .stretches = {},
                           .batch = {},
                           .scales = given.scales};
  if (given.depth_stride) {
    const bool beside = given.along_depth ? given.depth_stride->is(1) : stride->is(1);
    if (!beside) return std::nullopt;
    if (!given.along_depth) operand.stride = *given.depth_stride;
  } else {
    if (given.along_depth) operand.stretches = stretches_of(pool, given.depth, depth, elements);
    if (!operand.stretches) return std::nullopt;
  }
  auto batch = batch_of(pool, given.across, batch_axes, elements.aligned);
  if (!batch || batch->size() + (operand.stretches ? 1 : 0) > kMostBatch) return std::nullopt;
  operand.batch = *std::move(batch);
  const bool aligned = proves_multiple_of(operand.stride, elements.aligned, pool.bounds()) &&
                       proves_multiple_of(operand.offset, elements.aligned, pool.bounds());
  if (!aligned || range_of(operand.stride, pool.bounds()).min <= 0) return std::nullopt;
  return operand;
}

// wgmma keeps 14 bits of what it sums of float8, and drops the others. Over long depths that would be seen, so that
// what is summed of so much of it is added in float32; 0 where all of it is short.
std::int64_t float8_depth(const ExprPool& pool, const Axes& depth) {
  constexpr std::int64_t kShort = 1024, kAdded = 512;
  IndexExpr count = 1;
  for (const std::uint32_t a : depth) count *= pool.extent(a);
  return range_of(count, pool.bounds()).max <= kShort ? 0 : kAdded;
}

std::optional<std::vector<WarpgroupLoop>> loops_of(const ExprPool& pool, const GemmForm& form, const Product& product) {
  std::vector<WarpgroupLoop> loops;
  Axes of_matrices = product.batch;
  if (product.choice) of_matrices.insert(of_matrices.begin(), product.choice->axis);
  const Elements elements{.aligned = 16 / form.element_bytes(),
                          .depth = WarpgroupTiles::kLineBytes / form.element_bytes()};
  for (std::size_t i = 0; i < form.loops.size(); ++i) {
    const GemmLoop& given = form.loops[i];
    const Axes& depth = product.loops[i].depth;
    WarpgroupLoop& loop = loops.emplace_back();
    loop.block = given.scaled() ? given.block : 0;
    if (loop.block % elements.depth != 0) return std::nullopt;
    if (form.dtype == DType::kFloat8E4M3FN && loop.block == 0) loop.added_after = float8_depth(pool, depth);
    for (const bool left : {true, false})
      for (const GemmOperand& operand : left ? given.left : given.right) {
        if (operand.offset != kNoExpr) return std::nullopt;
        // The host makes tensor maps: it knows no loaded values.
        const bool looked_up = by_values(operand.across);
        if (looked_up && !left) return std::nullopt;
        auto found = operand.computed() ? computed_operand(pool, operand)
                     : looked_up        ? picked_operand(operand)
                                        : operand_of(pool, operand, left ? product.rows : product.columns, depth,
                                              left ? product.batch : of_matrices, elements);
        if (!found && left && !operand.computed()) found = picked_operand(operand);
        if (!found) return std::nullopt;
        (left ? loop.left : loop.right).push_back(*std::move(found));
      }
  }
  return loops;
}

// Of an element of a factor that is computed, what it is computed from.
std::int64_t bits_copied(const WarpgroupOperand& operand) {
  std::int64_t all = 0;
  for (const GemmOperand& copy : operand.computed->copies) all += copy.element_bits;
  return all;
}

// Of an image whose channels lie last, and weights that lie as the depth goes.
std::optional<std::vector<WarpgroupLoop>> loops_of(const ExprPool& pool, const ConvolutionForm& form,
                                                   const Product& product) {
  if (form.left.fill != ConvolutionFill::kPieces || form.right.fill != ConvolutionFill::kCopies) return std::nullopt;
  GemmOperand weights;
  weights.load = form.right.load;
  weights.along_depth = true;
  weights.across = form.right.across;
  weights.depth = form.right.depth;
  weights.depth_stride = 1;
  const Elements elements{.aligned = 16 / form.element_bytes(),
                          .depth = WarpgroupTiles::kLineBytes / form.element_bytes()};
  auto right = operand_of(pool, weights, product.columns, form.axes, product.batch, elements);
  if (!right) return std::nullopt;
  WarpgroupOperand image{.load = form.left.load,
                         .along_depth = true,
                         .offset = 0,
                         .stride = 0,
                         .stretches = {},
                         .batch = {},
                         .scales = {},
                         .picked = form.left.across,
                         .image = WarpgroupOperand::Image{form.left, form.axes, form.depth}};
  std::vector<WarpgroupLoop> loops(1);
  loops[0].left.push_back(std::move(image));
  loops[0].right.push_back(*std::move(right));
  return loops;
}

struct Sizes {
  double rows, columns, batch, depth;
  double groups;  // of rows: the last tile of each is half full
};

Sizes sizes_of(const WarpgroupCandidate& c) {
  const ExprPool& pool = c.kernel->pool;
  Sizes sizes{.rows = points_at_hint(pool, c.product->rows),
              .columns = points_at_hint(pool, c.product->columns),
              .batch = points_at_hint(pool, c.product->batch),
              .depth = 0,
              .groups = c.form->groups ? points_at_hint(pool, {c.product->choice->axis}) : 0};
  for (const ProductLoop& loop : c.product->loops) sizes.depth += points_at_hint(pool, loop.depth);
  return sizes;
}

double cluster_tiles(const WarpgroupTiles& t, const Sizes& sizes) {
  return (std::ceil(sizes.rows / (t.rows() * t.cluster)) + sizes.groups / 2) * std::ceil(sizes.columns / t.columns) *
         sizes.batch;
}

// Of a step of the depth: bytes that are copied, and instructions for what is computed.
struct StepWork {
  double bytes = 0, instructions = 0;
};

StepWork step_work(const WarpgroupGemmForm& form) {
  const WarpgroupTiles& t = form.tiles;
  StepWork most;
  for (const WarpgroupLoop& loop : form.loops) {
    StepWork work;
    for (const bool left : {true, false})
      for (const WarpgroupOperand& operand : left ? loop.left : loop.right) {
        const double across = left ? t.rows() : static_cast<double>(t.columns) / t.cluster;
        work.bytes +=
            across * (operand.computed ? static_cast<double>(bits_copied(operand)) / 8 : form.element_bytes());
        work.instructions += across * operand.instructions;
      }
    most = {std::max(most.bytes, work.bytes), std::max(most.instructions, work.instructions)};
  }
  return most;
}

// As gemm_form's model: cycles of a multiprocessor for a tile. Its tensor cores make 2048 multiply-adds of 16 bits in
// one by wgmma. Beside them four warps compute, each an instruction in two cycles.
double tile_cycles(const WarpgroupGemmForm& form, const Sizes& sizes) {
  const WarpgroupTiles& t = form.tiles;
  const double sums = static_cast<double>(t.rows()) * t.columns * form.sums;
  const StepWork step = step_work(form);
  const double products = sums * form.element_bytes() / 4096, computing = step.instructions * 2 / 128;
  return sizes.depth * std::max({products, step.bytes / kCacheBytes, computing}) + 500 + sums / 64;
}

// Blocks go from one product's tiles to another's with one loop over the depth each.
bool stand_together(std::span<const WarpgroupCandidate> products) {
  return products.size() == 1 || std::ranges::all_of(products, [&](const WarpgroupCandidate& c) {
           return c.product->loops.size() == 1 && c.product->batch.empty() && !c.form->groups &&
                  c.form->dtype == products[0].form->dtype &&
                  !(c.form->loops[0].scaled() && c.form->loops[0].block != 0);
         });
}

// A thread's registers for a column of sums: half of one, twice where parts of the depth are added to them.
double registers_of_column(const WarpgroupGemmForm& form) {
  const bool in_parts = std::ranges::any_of(form.loops, [](const WarpgroupLoop& loop) { return loop.in_parts(); });
  return form.sums * (in_parts ? 1.0 : 0.5);
}

// As many stages as there is room for, of the same size for all; false where they are too few.
bool fit(std::span<WarpgroupGemmForm> forms, const Target& target) {
  constexpr int kMostStages = 8, kLeastStages = 3, kGoodStages = 4;
  constexpr int kStaged[][2] = {{32, 32}, {32, 16}, {16, 16}};  // columns of one sum; of each of several
  for (const auto& [least, boxes] :
       {std::pair{kGoodStages, true}, {kGoodStages, false}, {kLeastStages, true}, {kLeastStages, false}})
    for (const auto& [of_one, of_several] : kStaged)
      for (int stages = kMostStages; stages >= least; --stages) {
        for (WarpgroupGemmForm& form : forms) {
          form.tiles.stages = stages;
          form.tiles.staged_columns = form.sums == 1 ? of_one : of_several;
          form.tiles.stores_boxes = boxes;
        }
        if (shared_bytes(forms) <= target.shared_bytes_per_block) return true;
      }
  return false;
}

// Boxes are made of eights of columns.
std::optional<WarpgroupStore> store_of(const ExprPool& pool, const KernelOutput& output, const Product& product) {
  const int element = bits(output.type.dtype);
  if (element != 8 && element != 16 && element != 32) return std::nullopt;
  const int aligned = 128 / element;
  const IndexExpr position = simplify(flat_index(output.type.shape, output.index), pool.bounds());
  if (by_values(position)) return std::nullopt;
  const std::optional<IndexExpr> columns = flat_stride(position, product.columns, pool);
  const std::optional<IndexExpr> rows = flat_stride(position, product.rows, pool);
  if (!rows || !columns || !columns->is(1)) return std::nullopt;
  auto batch = batch_of(pool, position, product.batch, aligned);
  if (!batch) return std::nullopt;
  WarpgroupStore store{.element_bytes = element / 8,
                       .offset = at_origin(position, pool.bounds()),
                       .stride = *rows,
                       .batch = *std::move(batch)};
  const bool fits = proves_multiple_of(store.stride, aligned, pool.bounds()) &&
                    proves_multiple_of(store.offset, aligned, pool.bounds()) &&
                    range_of(store.stride, pool.bounds()).min > 0;
  return fits ? std::optional(std::move(store)) : std::nullopt;
}

// Of groups' last rows, lanes store 16 bytes each of what is in a box.
std::vector<std::optional<WarpgroupStore>> stores_of(const Kernel& kernel, const Product& product, bool groups) {
  std::vector<std::optional<WarpgroupStore>> stores;
  IndexExpr columns = 1;
  for (const std::uint32_t a : product.columns) columns *= kernel.pool.extent(a);
  columns = simplify(columns, kernel.pool.bounds());
  for (const KernelOutput& output : kernel.outputs) {
    const int together = groups && bits(output.type.dtype) == 8 ? 16 : 8;
    stores.push_back(proves_multiple_of(columns, together, kernel.pool.bounds())
                         ? store_of(kernel.pool, output, product)
                         : std::nullopt);
  }
  return stores;
}

std::optional<WarpgroupGemmForm> form_of(const WarpgroupCandidate& c) {
  const int bits_multiplied = bits(c.form->dtype);
  if (bits_multiplied != 16 && bits_multiplied != 8) return std::nullopt;
  auto loops = c.convolution ? loops_of(c.kernel->pool, *c.convolution, *c.product)
                             : loops_of(c.kernel->pool, *c.form, *c.product);
  if (!loops) return std::nullopt;
  const std::int64_t matrices = c.form->groups ? *c.kernel->pool.extent(c.product->choice->axis).as_constant() : 0;
  return WarpgroupGemmForm{.dtype = c.form->dtype,
                           .loops = *std::move(loops),
                           .tiles = {},
                           .sums = c.form->sums,
                           .float_sums = c.form->float_sums,
                           .stores = stores_of(*c.kernel, *c.product, c.form->groups.has_value()),
                           .groups = c.form->groups,
                           .matrices = static_cast<int>(matrices)};
}

bool computes(const WarpgroupGemmForm& form) {
  return std::ranges::any_of(form.loops, [](const WarpgroupLoop& loop) { return loop.computes(); });
}

// Sums that wait for nothing but what stands behind the product.
bool may_have_row_blocks(const WarpgroupGemmForm& form) {
  const auto plain = [](const WarpgroupLoop& loop) { return !loop.scaled() && !loop.in_parts(); };
  return computes(form) && bits(form.dtype) == 16 && std::ranges::all_of(form.loops, plain);
}

// Tiles of so many columns, or fewer where registers do not hold their sums; false where that cannot be.
bool cut(std::vector<WarpgroupGemmForm>& forms, std::span<const Sizes> sizes, int columns, int cluster, int row_blocks,
         const Target& target) {
  constexpr int kMostSums = 128, kLeastColumns = 64;  // of a thread, in registers
  double rows = 0;
  for (const Sizes& s : sizes) rows = std::max(rows, s.rows);
  if (cluster > 1 && (rows <= WarpgroupTiles::kRows || target.multiprocessors < cluster)) return false;
  // Threads make tiles for their own block.
  if (cluster > 1 && std::ranges::any_of(forms, computes)) return false;
  if (row_blocks > 1 && (rows <= WarpgroupTiles::kRows || !std::ranges::all_of(forms, may_have_row_blocks)))
    return false;
  for (WarpgroupGemmForm& form : forms) {
    form.tiles.columns = columns;
    form.tiles.cluster = cluster;
    form.tiles.row_blocks = row_blocks;
    const double each = registers_of_column(form) * row_blocks;
    while (form.tiles.columns > kLeastColumns && form.tiles.columns * each > kMostSums) form.tiles.columns /= 2;
    if (form.tiles.columns * each > kMostSums) return false;
    // Each block of a cluster copies pieces of 64 columns.
    if (form.tiles.columns < 64 * cluster) return false;
  }
  return fit(forms, target);
}

}  // namespace

std::int64_t box_bytes(const WarpgroupGemmForm& form) {
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < form.stores.size(); ++i)
    if (form.stores_boxes_of(i)) bytes += WarpgroupStore::kLines * WarpgroupStore::kLine;
  return bytes;
}

std::int64_t box_bytes(std::span<const WarpgroupGemmForm> forms) {
  std::int64_t most = 0;
  for (const WarpgroupGemmForm& form : forms) most = std::max(most, box_bytes(form));
  return most;
}

bool WarpgroupLoop::scaled() const {
  const auto is = [](const WarpgroupOperand& o) { return !o.scales.empty(); };
  return std::ranges::any_of(left, is) || std::ranges::any_of(right, is);
}

bool WarpgroupLoop::picks_rows() const {
  return std::ranges::any_of(left, [](const WarpgroupOperand& o) { return o.picked.has_value(); });
}

bool WarpgroupLoop::computes() const {
  const auto is = [](const WarpgroupOperand& o) { return o.computed.has_value(); };
  return std::ranges::any_of(left, is) || std::ranges::any_of(right, is);
}

bool WarpgroupLoop::has_image() const {
  return std::ranges::any_of(left, [](const WarpgroupOperand& o) { return o.image.has_value(); });
}

bool WarpgroupGemmForm::scales_in_stages() const {
  return std::ranges::any_of(loops, [](const WarpgroupLoop& loop) { return loop.block != 0; });
}

std::int64_t stage_bytes(const WarpgroupGemmForm& form) {
  constexpr std::int64_t kSwizzled = 1024;  // tiles repeat so
  std::int64_t most = 0;
  for (const WarpgroupLoop& loop : form.loops) {
    std::int64_t tiles = 0, scales = 0;
    for (const bool left : {true, false})
      for (const WarpgroupOperand& operand : left ? loop.left : loop.right) {
        const int across = left ? form.tiles.rows() : form.tiles.columns;
        tiles += std::int64_t{across} * WarpgroupTiles::kLineBytes;
        if (loop.block != 0 && !operand.scales.empty()) scales += std::int64_t{across} * 4;
      }
    most = std::max(most, tiles + (scales + kSwizzled - 1) / kSwizzled * kSwizzled);
  }
  return most;
}

std::int64_t copied_bytes(const WarpgroupGemmForm& form) {
  std::int64_t most = 0;
  for (const WarpgroupLoop& loop : form.loops) {
    std::int64_t bits_deep = 0;  // of one step of the depth
    for (const bool left : {true, false})
      for (const WarpgroupOperand& operand : left ? loop.left : loop.right)
        if (operand.computed) bits_deep += bits_copied(operand) * (left ? form.tiles.rows() : form.tiles.columns);
    most = std::max(most, bits_deep * form.depth() / 8);
  }
  return most;
}

std::int64_t staged_bytes(const WarpgroupGemmForm& form) {
  return form.tiles.shares > 1 ? 0 : 16ll * (form.tiles.staged_columns + 8) * 4 * form.sums;
}

std::int64_t stage_bytes(std::span<const WarpgroupGemmForm> forms) {
  std::int64_t most = 0;
  for (const WarpgroupGemmForm& form : forms) most = std::max(most, stage_bytes(form));
  return most;
}

std::int64_t copied_bytes(std::span<const WarpgroupGemmForm> forms) {
  std::int64_t most = 0;
  for (const WarpgroupGemmForm& form : forms) most = std::max(most, copied_bytes(form));
  return most;
}

std::int64_t staged_bytes(std::span<const WarpgroupGemmForm> forms) {
  std::int64_t most = 0;
  for (const WarpgroupGemmForm& form : forms) most = std::max(most, staged_bytes(form));
  return most;
}

std::int64_t group_bytes(const WarpgroupGemmForm& form) {
  return 2ll * 4 * form.matrices;
}

std::int64_t table_entries(const WarpgroupGemmForm& form) {
  constexpr std::int64_t kOfTile = WarpgroupTiles::kLineBytes / 16;
  const WarpgroupLoop& loop = form.loops[0];  // alone, where it has an image
  return loop.has_image() ? (loop.left[0].image->depth + form.depth() - 1) / form.depth() * kOfTile : 0;
}

std::int64_t table_bytes(const WarpgroupGemmForm& form) {
  return 8 * table_entries(form);
}

std::int64_t shared_bytes(std::span<const WarpgroupGemmForm> forms) {
  return forms[0].tiles.stages * (stage_bytes(forms) + 16) +
         (box_bytes(forms) + staged_bytes(forms)) * 4 * WarpgroupTiles::kConsumers + group_bytes(forms[0]) +
         copied_bytes(forms) * WarpgroupTiles::kCopiesAhead + table_bytes(forms[0]);
}

std::string name_of(const WarpgroupTiles& t) {
  return fmt::format("{}x{} by warpgroups, {} stages, {}{}", t.rows(), t.columns, t.stages,
                     t.cluster == 1 ? "single blocks" : fmt::format("{} blocks of a cluster", t.cluster),
                     t.shares > 1 ? fmt::format(", {} shares of the depth", t.shares) : "");
}

namespace {

// The form with the number of shares of its depth that suits it best.
std::optional<WarpgroupGemms> with_shares(WarpgroupGemmForm form, const Sizes& sizes, const Target& target) {
  const WarpgroupTiles& t = form.tiles;
  const double clusters = cluster_tiles(t, sizes), at_a_time = target.multiprocessors / t.cluster;
  const double steps = std::ceil(sizes.depth / form.depth());
  std::optional<std::pair<double, int>> best;
  const int together = steps_together(form.loops[0].block, form.depth());
  for (const int shares : depth_shares(clusters * t.cluster, steps, together, target)) {
    Sizes shared = sizes;
    shared.depth = steps_of_share(steps, together, shares) * form.depth();
    const double cycles = 1500 + std::ceil(clusters * shares / at_a_time) * tile_cycles(form, shared);
    const double sums = clusters * t.cluster * t.rows() * t.columns * form.sums;
    const double all = shared_cycles(cycles, sums, shares, target);
    if (!best || all < best->first) best = {all, shares};
  }
  if (!best) return std::nullopt;
  form.tiles.shares = best->second;
  WarpgroupGemms made{.forms = {std::move(form)}, .cycles = best->first};
  fit(made.forms, target);  // nothing is staged
  return made;
}

}  // namespace

std::vector<WarpgroupGemms> rank_warpgroup_gemms(std::span<const WarpgroupCandidate> products, const Target& target) {
  if (target.compute_capability != 90 || !target.architecture_specific || !stand_together(products)) return {};
  std::vector<WarpgroupGemmForm> forms;
  std::vector<Sizes> sizes;
  for (const WarpgroupCandidate& c : products) {
    auto form = form_of(c);
    if (!form) return {};
    const bool picks = std::ranges::any_of(form->loops, [](const WarpgroupLoop& l) { return l.picks_rows(); });
    if (picks && (products.size() > 1 || form->scales_in_stages() || computes(*form))) return {};
    forms.push_back(*std::move(form));
    sizes.push_back(sizes_of(c));
  }
  std::vector<WarpgroupGemms> ranking;
  constexpr std::pair<int, int> kDown[] = {{2, 1}, {1, 1}, {1, 2}};  // blocks of a cluster, of rows
  for (const int columns : {256, 128, 64})
    for (const auto& [cluster, row_blocks] : kDown) {
      if (!cut(forms, sizes, columns, cluster, row_blocks, target)) continue;
      const auto same = [&](const WarpgroupGemms& other) {
        return std::ranges::equal(
            other.forms, forms, {}, [](const auto& f) { return name_of(f.tiles); },
            [](const auto& f) { return name_of(f.tiles); });
      };
      if (std::ranges::any_of(ranking, same)) continue;
      double count = 0, longest = 0;
      for (std::size_t i = 0; i < forms.size(); ++i) {
        count += cluster_tiles(forms[i].tiles, sizes[i]);
        longest = std::max(longest, tile_cycles(forms[i], sizes[i]));
      }
      ranking.push_back({forms, 1500 + std::ceil(count / (target.multiprocessors / cluster)) * longest});
      if (products.size() > 1 || row_blocks > 1 ||
          !may_share_depth(products[0].kernel->pool, *products[0].product, *products[0].form, target))
        continue;
      if (auto shared = with_shares(forms[0], sizes[0], target)) ranking.push_back(*std::move(shared));
    }
  std::ranges::stable_sort(ranking, {}, &WarpgroupGemms::cycles);
  return ranking;
}

std::optional<WarpgroupGemms> best_warpgroup_gemm(const WarpgroupCandidate& product, const Target& target) {
  std::vector<WarpgroupGemms> ranking = rank_warpgroup_gemms({&product, 1}, target);
  if (ranking.empty() || ranking[0].cycles >= product.form->cycles) return std::nullopt;
  return std::move(ranking[0]);
}

std::optional<WarpgroupGemms> best_warpgroup_convolution(const Kernel& kernel, const Product& product,
                                                         const ConvolutionForm& form, const Target& target) {
  // Half of the least tile is full at least: of few rows, one of two warpgroups alone would multiply anything.
  constexpr double kFewColumns = 32;
  if (points_at_hint(kernel.pool, product.rows) <= WarpgroupTiles::kRows / 2.0) return std::nullopt;
  if (points_at_hint(kernel.pool, product.columns) < kFewColumns) return std::nullopt;
  const GemmForm as_product = as_gemm(form);
  return best_warpgroup_gemm({&kernel, &product, &as_product, &form}, target);
}

std::vector<WarpgroupGemmForm> find_warpgroup_gemms(std::span<const WarpgroupCandidate> products,
                                                    const Target& target) {
  std::vector<WarpgroupGemms> ranking = rank_warpgroup_gemms(products, target);
  std::erase_if(ranking, [](const WarpgroupGemms& gemms) { return gemms.forms[0].tiles.shares > 1; });
  double at_hand = 0;
  for (const WarpgroupCandidate& c : products) at_hand += c.form->cycles;
  return ranking.empty() || ranking[0].cycles >= at_hand ? std::vector<WarpgroupGemmForm>{} : ranking[0].forms;
}

}  // namespace fusec
