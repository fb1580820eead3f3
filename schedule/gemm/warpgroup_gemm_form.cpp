#include "schedule/gemm/warpgroup_gemm_form.h"

#include <algorithm>
#include <cmath>

#include "analysis/kernel/loads.h"
#include "schedule/gemm/split_k.h"
#include "schedule/gemm/tma_image_boxes.h"
#include "schedule/target/target.h"

namespace fusec {
namespace {

using Axes = std::vector<std::uint32_t>;

// wgmma accumulates float8 with 14 bits of mantissa. For a large K this is not exact enough, so partial sums of this
// much K are added in float32. 0: K is short.
std::int64_t float8_depth(const ExprPool& pool, const Axes& k) {
  constexpr std::int64_t kShort = 1024, kAdded = 512;
  IndexExpr count = 1;
  for (const std::uint32_t a : k) count *= pool.extent(a);
  return range_of(count, pool.bounds()).max <= kShort ? 0 : kAdded;
}

std::optional<std::vector<WarpgroupLoop>> loops_of(const ExprPool& pool, const GemmForm& form,
                                                   const Contraction& contraction) {
  std::vector<WarpgroupLoop> loops;
  Axes of_matrices = contraction.batch;
  if (contraction.expert_index) of_matrices.insert(of_matrices.begin(), contraction.expert_index->axis);
  const WarpgroupElements elements = warpgroup_elements(form.element_bytes());
  for (std::size_t i = 0; i < form.loops.size(); ++i) {
    const GemmLoop& given = form.loops[i];
    const Axes& k = contraction.loops[i].k;
    WarpgroupLoop& loop = loops.emplace_back();
    loop.block = given.scaled() ? given.block : 0;
    if (loop.block % elements.k != 0) return std::nullopt;
    if (form.dtype == DType::kFloat8E4M3FN && loop.block == 0) loop.promotion_interval = float8_depth(pool, k);
    for (const bool left : {true, false})
      for (const GemmOperand& operand : left ? given.left : given.right) {
        // The sums of columns for zero points are computed by the multiplying threads, for left operands only.
        if (operand.offset != kNoExpr && (!left || form.groups)) return std::nullopt;
        // The host creates tensor maps and does not know loaded values.
        const bool looked_up = by_values(operand.across);
        if (looked_up && !left) return std::nullopt;
        // Groups begin at any row. TMA can copy from there, but threads cannot copy unaligned pieces across the rows.
        if (left && form.groups && operand.transformed() && !operand.k_major) return std::nullopt;
        auto found = operand.transformed() ? computed_operand(pool, operand)
                     : looked_up           ? gathered_operand(operand)
                                 : tensor_operand(pool, operand, left ? contraction.rows : contraction.columns, k,
                                                  left ? contraction.batch : of_matrices, elements);
        if (!found && left && !operand.transformed()) found = gathered_operand(operand);
        if (!found) return std::nullopt;
        found->zero_point = operand.offset;
        (left ? loop.left : loop.right).push_back(*std::move(found));
      }
  }
  return loops;
}

// Loops of a channels-last image and weights with the same order of K.
std::optional<std::vector<WarpgroupLoop>> loops_of(const ExprPool& pool, const ConvolutionForm& form,
                                                   const Contraction& contraction) {
  if (form.left.offset != kNoExpr || form.right.offset != kNoExpr) return std::nullopt;
  const bool image_left = form.left.fill == ConvolutionFill::kVectorGather;
  auto image = image_operand(form, image_left), weights = weights_operand(pool, form, contraction, !image_left);
  if (!image || !weights) return std::nullopt;
  std::vector<WarpgroupLoop> loops(1);
  if (form.dtype == DType::kFloat8E4M3FN) loops[0].promotion_interval = float8_depth(pool, contraction.loops[0].k);
  (image_left ? loops[0].left : loops[0].right).push_back(*std::move(image));
  (image_left ? loops[0].right : loops[0].left).push_back(*std::move(weights));
  return loops;
}

struct LoopSizes {
  double k, terms;
};

struct WarpgroupSizes {
  double rows, columns, batch;
  double groups;  // groups of rows: the last tile of each is half full
  std::vector<LoopSizes> loops;
};

WarpgroupSizes sizes_of(const WarpgroupCandidate& c, const WarpgroupGemmForm& form) {
  const ExprPool& pool = form.pairs ? form.pairs->kernel.pool : c.kernel->pool;
  const Contraction& contraction = form.pairs         ? form.pairs->contraction
                                   : form.contraction ? *form.contraction
                                                      : *c.contraction;
  WarpgroupSizes sizes{.rows = points_at_hint(pool, contraction.rows),
                       .columns = points_at_hint(pool, contraction.columns),
                       .batch = points_at_hint(pool, contraction.batch),
                       .groups = c.form->groups ? points_at_hint(pool, {contraction.expert_index->axis}) : 0,
                       .loops = {}};
  for (std::size_t i = 0; i < contraction.loops.size(); ++i) {
    const std::int64_t tiled = form.loops[i].padded_k;
    sizes.loops.push_back({tiled > 0 ? static_cast<double>(tiled) : points_at_hint(pool, contraction.loops[i].k),
                           static_cast<double>(contraction.loops[i].terms.size())});
  }
  return sizes;
}

double cluster_tiles(const WarpgroupTiles& t, const WarpgroupSizes& sizes) {
  return (std::ceil(sizes.rows / (t.rows() * t.cluster)) + sizes.groups / 2) * std::ceil(sizes.columns / t.columns) *
         sizes.batch;
}

// Boxes of pixels that are not aligned to sectors read one more sector per line.
double sectors_of_boxes(const WarpgroupOperand& operand) {
  const double line = 2.0 * operand.boxes->pixels;
  return operand.k_major || operand.boxes->taps.empty() ? 1 : (line + kSectorBytes) / line;
}

// Work per element of K: bytes copied, and instructions of transformed operands.
struct StepWork {
  double bytes = 0, instructions = 0;
};

StepWork step_work(const WarpgroupGemmForm& form, const WarpgroupLoop& loop) {
  const WarpgroupTiles& t = form.tiles;
  StepWork work;
  for (const bool left : {true, false})
    for (const WarpgroupOperand& operand : left ? loop.left : loop.right) {
      const double across = left ? t.rows() : static_cast<double>(t.columns) / t.cluster;
      const double bytes = operand.transformed ? static_cast<double>(bits_copied(operand)) / 8 : form.element_bytes();
      work.bytes += across * bytes * (operand.boxes ? sectors_of_boxes(operand) : 1);
      work.instructions += across * operand.instructions;
    }
  return work;
}

// Cycles per tile on one multiprocessor, as in gemm_form's model. wgmma makes 2048 multiply-adds of 16 bits per cycle.
// The four copying warps compute meanwhile, one instruction every two cycles.
double tile_cycles(const WarpgroupGemmForm& form, const WarpgroupSizes& sizes) {
  const WarpgroupTiles& t = form.tiles;
  const double accumulators = static_cast<double>(t.rows()) * t.columns;
  double cycles = 500 + accumulators * form.accumulators / 64;
  for (std::size_t i = 0; i < form.loops.size(); ++i) {
    const auto [k, terms] = sizes.loops[i];
    const StepWork step = step_work(form, form.loops[i]);
    const double contractions = accumulators * terms * form.element_bytes() / 4096,
                 computing = step.instructions * 2 / 128;
    cycles += k * std::max({contractions, step.bytes / kCacheBytes, computing});
  }
  return cycles;
}

// True if several GEMMs may share a kernel: each has one loop over K.
bool fit_one_launch(std::span<const WarpgroupCandidate> contractions) {
  return contractions.size() == 1 || std::ranges::all_of(contractions, [&](const WarpgroupCandidate& c) {
           return c.contraction->loops.size() == 1 && c.contraction->batch.empty() && !c.form->groups &&
                  !c.form->pairs && c.form->dtype == contractions[0].form->dtype &&
                  !(c.form->loops[0].scaled() && c.form->loops[0].block != 0);
         });
}

// A thread's registers per column of accumulators: half a register, twice that with partial sums.
double registers_of_column(const WarpgroupGemmForm& form) {
  const bool has_partial_accumulators =
      std::ranges::any_of(form.loops, [](const WarpgroupLoop& loop) { return loop.has_partial_accumulators(); });
  return form.accumulators * (has_partial_accumulators ? 1.0 : 0.5);
}

// Sets as many stages as fit, the same for all forms. Returns false if there is no room for enough stages.
bool fit(std::span<WarpgroupGemmForm> forms, const Target& target) {
  constexpr int kMostStages = 8, kLeastStages = 3, kGoodStages = 4;
  // Columns staged for one accumulator; for each of several.
  constexpr int kStaged[][2] = {{32, 32}, {32, 16}, {16, 16}};
  for (const auto& [least, boxes] :
       {std::pair{kGoodStages, true}, {kGoodStages, false}, {kLeastStages, true}, {kLeastStages, false}})
    for (const auto& [of_one, of_several] : kStaged)
      for (int stages = kMostStages; stages >= least; --stages) {
        for (WarpgroupGemmForm& form : forms) {
          form.tiles.stages = stages;
          form.tiles.staged_columns = form.pairs ? 2 * of_several : form.accumulators == 1 ? of_one : of_several;
          form.tiles.stores_boxes = boxes;
        }
        if (shared_bytes(forms) <= target.shared_bytes_per_block) return true;
      }
  return false;
}

// Finds how TMA can store an output. Boxes need columns in multiples of eight.
std::optional<WarpgroupStore> store_of(const ExprPool& pool, const KernelOutput& output,
                                       const Contraction& contraction) {
  const int element = bits(output.type.dtype);
  if (element != 8 && element != 16 && element != 32) return std::nullopt;
  const int aligned = 128 / element;
  const IndexExpr position = position_of(pool, output);
  if (by_values(position)) return std::nullopt;
  const std::optional<IndexExpr> columns = flat_stride(position, contraction.columns, pool);
  const std::optional<IndexExpr> rows = flat_stride(position, contraction.rows, pool);
  if (!rows || !columns || !columns->is(1)) return std::nullopt;
  auto batch = batch_of(pool, position, contraction.batch, aligned);
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

// In grouped GEMMs, lanes store the last rows of a group from the boxes, 16 bytes each.
std::vector<std::optional<WarpgroupStore>> stores_of(const Kernel& kernel, const Contraction& contraction,
                                                     bool groups) {
  std::vector<std::optional<WarpgroupStore>> stores;
  IndexExpr columns = 1;
  for (const std::uint32_t a : contraction.columns) columns *= kernel.pool.extent(a);
  columns = simplify(columns, kernel.pool.bounds());
  for (const KernelOutput& output : kernel.outputs) {
    const int together = groups && bits(output.type.dtype) == 8 ? 16 : 8;
    stores.push_back(proves_multiple_of(columns, together, kernel.pool.bounds())
                         ? store_of(kernel.pool, output, contraction)
                         : std::nullopt);
  }
  return stores;
}

// Loops of an image in boxes, with the contraction that they belong to.
std::optional<std::vector<WarpgroupLoop>> loops_of_image_boxes(const WarpgroupCandidate& c,
                                                               std::optional<Contraction>& contraction) {
  if (!c.graph) return std::nullopt;
  auto boxes = find_tma_image_boxes(*c.graph, *c.kernel, *c.contraction);
  if (!boxes) return std::nullopt;
  std::vector<WarpgroupLoop> loops;
  for (ImageLoop& loop : boxes->loops)
    loops.push_back({.left = std::move(loop.left), .right = std::move(loop.right), .padded_k = loop.padded_k});
  contraction = std::move(boxes->contraction);
  return loops;
}

// True if little of K is padding. Otherwise copying by threads is cheaper, because it does not pad each tap to whole
// tiles.
bool is_mostly_whole(const std::vector<WarpgroupLoop>& boxes, const ConvolutionForm& form) {
  return 8 * boxes[0].padded_k <= 9 * form.k;
}

std::optional<WarpgroupGemmForm> form_of(const WarpgroupCandidate& c) {
  const int bits_multiplied = bits(c.form->dtype);
  if (bits_multiplied != 16 && bits_multiplied != 8) return std::nullopt;
  std::optional<Contraction> contraction;
  std::optional<std::vector<WarpgroupLoop>> loops;
  const InterleavedColumns* const pairs = c.form->pairs.get();
  if (!c.form->loops.empty() && !c.convolution)
    loops = loops_of(pairs ? pairs->kernel.pool : c.kernel->pool, *c.form, pairs ? pairs->contraction : *c.contraction);
  if (!loops && !pairs) loops = loops_of_image_boxes(c, contraction);
  if (c.convolution && !(loops && is_mostly_whole(*loops, *c.convolution)))
    if (auto gathered = loops_of(c.kernel->pool, *c.convolution, *c.contraction)) {
      loops = std::move(gathered);
      contraction.reset();
    }
  if (!loops) return std::nullopt;
  const std::int64_t matrices =
      c.form->groups ? *c.kernel->pool.extent(c.contraction->expert_index->axis).as_constant() : 0;
  return WarpgroupGemmForm{
      .dtype = c.form->dtype,
      .loops = *std::move(loops),
      .tiles = {},
      .accumulators = c.form->accumulators,
      .float_accumulators = c.form->float_accumulators,
      .stores = stores_of(*c.kernel, contraction ? *contraction : *c.contraction, c.form->groups.has_value()),
      .groups = c.form->groups,
      .matrices = static_cast<int>(matrices),
      .contraction = std::move(contraction),
      .pairs = c.form->pairs};
}

bool has_gathered_columns(const WarpgroupGemmForm& form) {
  return std::ranges::any_of(form.loops, [](const WarpgroupLoop& loop) { return loop.has_gathered_columns(); });
}

bool computes(const WarpgroupGemmForm& form) {
  return std::ranges::any_of(form.loops, [](const WarpgroupLoop& loop) { return loop.computes(); });
}

// Row blocks need accumulators that are used by nothing but the epilogue.
bool may_have_row_blocks(const WarpgroupGemmForm& form) {
  const auto plain = [](const WarpgroupLoop& loop) { return !loop.scaled() && !loop.has_partial_accumulators(); };
  return computes(form) && bits(form.dtype) == 16 && std::ranges::all_of(form.loops, plain);
}

// Sets tiles with this many columns, or fewer if registers are short. Returns false if no width is possible.
bool cut(std::vector<WarpgroupGemmForm>& forms, std::span<const WarpgroupSizes> sizes, int columns, int cluster,
         int row_blocks, const Target& target) {
  constexpr int kMostAccumulators = 128, kLeastColumns = 64;  // per thread, in registers
  constexpr int kMaxGathered = 128;                           // columns for which a thread has eight positions each
  double rows = 0;
  for (const WarpgroupSizes& s : sizes) rows = std::max(rows, s.rows);
  if (cluster > 1 && (rows <= WarpgroupTiles::kRows || target.multiprocessors < cluster)) return false;
  // Threads compute and copy tiles for their own block only.
  if (cluster > 1 && (std::ranges::any_of(forms, computes) || std::ranges::any_of(forms, has_gathered_columns)))
    return false;
  if (row_blocks > 1 && (rows <= WarpgroupTiles::kRows || !std::ranges::all_of(forms, may_have_row_blocks)))
    return false;
  for (WarpgroupGemmForm& form : forms) {
    form.tiles.columns = has_gathered_columns(form) ? std::min(columns, kMaxGathered) : columns;
    form.tiles.cluster = cluster;
    form.tiles.row_blocks = row_blocks;
    const double each = registers_of_column(form) * row_blocks;
    while (form.tiles.columns > kLeastColumns && form.tiles.columns * each > kMostAccumulators) form.tiles.columns /= 2;
    if (form.tiles.columns * each > kMostAccumulators) return false;
    // Each block of a cluster copies pieces of 64 columns.
    if (form.tiles.columns < 64 * cluster) return false;
  }
  return fit(forms, target);
}

// The form with the best number of splits of K.
std::optional<WarpgroupGemms> with_split_k(WarpgroupGemmForm form, const WarpgroupSizes& sizes, const Target& target) {
  const WarpgroupTiles& t = form.tiles;
  const double clusters = cluster_tiles(t, sizes), at_a_time = target.multiprocessors / t.cluster;
  const double steps = std::ceil(sizes.loops[0].k / form.k());
  std::optional<std::pair<double, int>> best;
  const int together = steps_per_scale_block(form.loops[0].block, form.k());
  for (const int split_k : split_k_candidates(clusters * t.cluster, steps, together, target)) {
    WarpgroupSizes shared = sizes;
    shared.loops[0].k = steps_per_split(steps, together, split_k) * form.k();
    const double cycles = 1500 + std::ceil(clusters * split_k / at_a_time) * tile_cycles(form, shared);
    const double accumulators = clusters * t.cluster * t.rows() * t.columns * form.accumulators;
    const double all = split_k_cycles(cycles, accumulators, split_k, target);
    if (!best || all < best->first) best = {all, split_k};
  }
  if (!best) return std::nullopt;
  form.tiles.split_k = best->second;
  WarpgroupGemms made{.forms = {std::move(form)}, .cycles = best->first};
  fit(made.forms, target);  // nothing is staged with split-K
  return made;
}

}  // namespace

bool has_warpgroups(const Target& target) {
  return target.compute_capability == 90 && target.architecture_specific;
}

std::vector<WarpgroupGemms> rank_warpgroup_gemms(std::span<const WarpgroupCandidate> contractions,
                                                 const Target& target) {
  if (!has_warpgroups(target) || !fit_one_launch(contractions)) return {};
  std::vector<WarpgroupGemmForm> forms;
  std::vector<WarpgroupSizes> sizes;
  for (const WarpgroupCandidate& c : contractions) {
    auto form = form_of(c);
    if (!form) return {};
    const bool has_gathered =
        std::ranges::any_of(form->loops, [](const WarpgroupLoop& l) { return l.has_gathered_rows(); });
    if (has_gathered && (contractions.size() > 1 || form->scales_in_stages() || computes(*form))) return {};
    sizes.push_back(sizes_of(c, *form));
    forms.push_back(*std::move(form));
  }
  std::vector<WarpgroupGemms> ranking;
  constexpr std::pair<int, int> kDown[] = {{2, 1}, {1, 1}, {1, 2}};  // blocks per cluster, row blocks
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
      if (contractions.size() > 1 || row_blocks > 1 || forms[0].loops.size() != 1 || forms[0].groups ||
          forms[0].pairs ||
          !has_few_tiles_and_large_k(contractions[0].kernel->pool, *contractions[0].contraction, target))
        continue;
      if (auto shared = with_split_k(forms[0], sizes[0], target)) ranking.push_back(*std::move(shared));
    }
  std::ranges::stable_sort(ranking, {}, &WarpgroupGemms::cycles);
  return ranking;
}

namespace {

// At least half of the smallest tile must have rows, so that both warpgroups have work.
constexpr double kHalfFull = WarpgroupTiles::kRows / 2.0 + 1;
// For channels-first images a quarter is enough, because the alternative gathers elements one by one.
constexpr double kQuarterFull = WarpgroupTiles::kRows / 4.0;

bool fills_tiles(const Kernel& kernel, const Contraction& contraction, double rows) {
  constexpr double kFewColumns = 32;
  return points_at_hint(kernel.pool, contraction.rows) >= rows &&
         points_at_hint(kernel.pool, contraction.columns) >= kFewColumns;
}

bool has_channels_first(const WarpgroupGemmForm& form) {
  const auto across = [](const WarpgroupOperand& o) { return !o.k_major; };
  return std::ranges::any_of(form.loops, [&](const WarpgroupLoop& loop) {
    return std::ranges::any_of(loop.left, across) || std::ranges::any_of(loop.right, across);
  });
}

}  // namespace

std::vector<WarpgroupGemms> rank_warpgroup_convolutions(const Graph& graph, const Kernel& kernel,
                                                        const Contraction& contraction, const ConvolutionForm& form,
                                                        const Target& target) {
  if (!fills_tiles(kernel, contraction, kHalfFull)) return rank_warpgroup_images(graph, kernel, contraction, target);
  const GemmForm as_gemm_form = as_gemm(form);
  const WarpgroupCandidate candidate{&kernel, &contraction, &as_gemm_form, &form, &graph};
  return rank_warpgroup_gemms({&candidate, 1}, target);
}

std::vector<WarpgroupGemms> rank_warpgroup_images(const Graph& graph, const Kernel& kernel,
                                                  const Contraction& contraction, const Target& target) {
  if (!contraction.tensor_dtype || !fills_tiles(kernel, contraction, kQuarterFull)) return {};
  const GemmForm as_gemm_form{.dtype = *contraction.tensor_dtype,
                              .loops = {},
                              .tiles = {},
                              .accumulators = static_cast<int>(term_count(contraction))};
  const WarpgroupCandidate candidate{&kernel, &contraction, &as_gemm_form, nullptr, &graph};
  std::vector<WarpgroupGemms> ranking = rank_warpgroup_gemms({&candidate, 1}, target);
  if (ranking.empty()) return ranking;
  // The contraction as tiled, with images in its batch.
  const WarpgroupGemmForm& form = ranking[0].forms[0];
  if (!fills_tiles(kernel, *form.contraction, has_channels_first(form) ? kQuarterFull : kHalfFull)) return {};
  return ranking;
}

std::vector<WarpgroupGemmForm> find_warpgroup_gemms(std::span<const WarpgroupCandidate> contractions,
                                                    const Target& target) {
  std::vector<WarpgroupGemms> ranking = rank_warpgroup_gemms(contractions, target);
  std::erase_if(ranking, [](const WarpgroupGemms& gemms) { return gemms.forms[0].tiles.split_k > 1; });
  double at_hand = 0;
  for (const WarpgroupCandidate& c : contractions) at_hand += c.form->cycles;
  return ranking.empty() || ranking[0].cycles >= at_hand ? std::vector<WarpgroupGemmForm>{} : ranking[0].forms;
}

}  // namespace fusec
