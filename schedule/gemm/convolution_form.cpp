#include "schedule/gemm/convolution_form.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "analysis/kernel/loads.h"
#include "ir/type.h"
#include "schedule/gemm/split_k.h"

namespace fusec {
namespace {

using Axes = std::vector<std::uint32_t>;

constexpr std::int64_t kMostTapsOfWord = 31;  // bits of a word; the last one is for elements beyond K
constexpr std::int64_t kMostTableTaps = 128;  // per line: taps with positions in a table
constexpr std::int64_t kMostEntries = 6144;   // of a table in shared memory
constexpr int kMostLines = 8;                 // per thread, which keeps their positions and taps in registers
constexpr double kFewColumns = 32;            // with fewer, most of a tile is empty
constexpr double kGatherInstructions = 8;     // per element or piece
constexpr double kPositionInstructions = 24;  // per entry of a position table
constexpr int kStages = 3;
constexpr int kKBits = 512;                       // per line of a tile
constexpr double kMaxAccumulatorsPerThread = 96;  // of several terms, in registers; copies need the others

// Groups the guards by the axes of K that they depend on; guards that share an axis are in one group. Returns nullopt
// if a word has too few bits.
std::optional<std::vector<ConvolutionTaps>> taps_of(const ExprPool& pool, const std::vector<ExprId>& guards,
                                                    const Axes& k) {
  const auto depends = dependences(pool);
  std::vector<ConvolutionTaps> taps;
  for (const ExprId guard : guards) {
    ConvolutionTaps now{.axes = {}, .guards = {guard}};
    for (const std::uint32_t a : k)
      if (std::ranges::binary_search(depends[guard], a)) now.axes.push_back(a);
    for (std::size_t i = taps.size(); i-- > 0;) {
      const bool split_k = now.axes == taps[i].axes ||
                           std::ranges::any_of(taps[i].axes, [&](std::uint32_t a) { return contains(now.axes, a); });
      if (!split_k) continue;
      for (const std::uint32_t a : taps[i].axes)
        if (!contains(now.axes, a)) now.axes.push_back(a);
      now.guards.insert(now.guards.end(), taps[i].guards.begin(), taps[i].guards.end());
      taps.erase(taps.begin() + static_cast<std::ptrdiff_t>(i));
    }
    taps.push_back(std::move(now));
  }
  std::int64_t bit = 0;
  for (ConvolutionTaps& t : taps) {
    const auto points = simplified_point_count(pool, t.axes).as_constant();
    if (!points || *points > kMostTapsOfWord) return std::nullopt;
    t.first_bit = static_cast<int>(bit);
    bit += *points;
  }
  if (bit > kMostTapsOfWord) return std::nullopt;
  return taps;
}

IndexExpr without_axes(const IndexExpr& e, const Axes& axes, const ExprPool& pool) {
  return simplify(substitute(e,
                             [&](Variable v) -> std::optional<IndexExpr> {
                               if (v.kind != Variable::Kind::kAxis || !contains(axes, v.id)) return std::nullopt;
                               return IndexExpr(0);
                             }),
                  pool.bounds());
}

// True if some guard requires that the expression is a multiple of the divisor.
bool guards_say_multiple(const ExprPool& pool, const std::vector<ExprId>& guards, const IndexExpr& e,
                         std::int64_t divisor) {
  return std::ranges::any_of(guards, [&](ExprId id) {
    const auto quotient = whole_quotient(pool, id);
    return quotient && quotient->divisor.is(divisor) &&
           proves_multiple_of(simplify(e - quotient->dividend, pool.bounds()), divisor, pool.bounds());
  });
}

// A transposed convolution reads (i + 1 - u) // 2 where that has no remainder. Then i + 1 and u have the same
// remainder, and the index is (i + 1) // 2 - u // 2: a column part plus a K part.
IndexExpr with_divisions_apart(const ExprPool& pool, const IndexExpr& position, const std::vector<ExprId>& guards,
                               const Axes& k) {
  return rewrite_atoms(position, [&](IndexAtom::Kind kind, const IndexExpr& a, const IndexExpr& b) -> IndexExpr {
    if (kind == IndexAtom::Kind::kMod) return floor_mod(a, b);
    if (kind != IndexAtom::Kind::kFloorDiv) return kind == IndexAtom::Kind::kMin ? min(a, b) : max(a, b);
    const auto divisor = b.as_constant();
    const IndexExpr column = without_axes(a, k, pool), step = simplify(column - a, pool.bounds());
    const bool mixed = divisor && *divisor > 1 && !step.is_constant() && !column.is_constant();
    if (!mixed || !guards_say_multiple(pool, guards, a, *divisor)) return floor_div(a, b);
    return floor_div(column, b) - floor_div(step, b);
  });
}

// True if the expression depends on no other axes than these.
bool is_of(const IndexExpr& e, const Axes& axes) {
  return std::ranges::all_of(variables_of(e),
                             [&](Variable v) { return v.kind != Variable::Kind::kAxis || contains(axes, v.id); });
}

// The axes of K that, combined with the line, determine a position or a guard.
Axes axes_beside_lines(const ExprPool& pool, const IndexExpr& position, const std::vector<ExprId>& guards,
                       const Axes& k) {
  const auto depends = dependences(pool);
  Axes found;
  for (const std::uint32_t a : k) {
    const Variable axis{Variable::Kind::kAxis, a};
    const bool in_term = std::ranges::any_of(position.terms(), [&](const IndexTerm& term) {
      const IndexExpr alone = from_terms({term}, 0);
      return mentions(alone, axis) && !is_of(alone, k);
    });
    const bool in_guard =
        std::ranges::any_of(guards, [&](ExprId g) { return std::ranges::binary_search(depends[g], a); });
    if (in_term || in_guard) found.push_back(a);
  }
  return found;
}

// An operand with positions from a table by line and tap.
std::optional<ConvolutionOperand> find_position_table(const ExprPool& pool, const GuardedLoad& guarded,
                                                      const IndexExpr& position, const Axes& k) {
  ConvolutionTaps taps{.axes = axes_beside_lines(pool, position, guarded.guards, k), .guards = guarded.guards};
  const auto places = simplified_point_count(pool, taps.axes).as_constant();
  if (taps.axes.empty() || !places || *places > kMostTableTaps) return std::nullopt;
  Axes others;
  for (const std::uint32_t a : k)
    if (!contains(taps.axes, a)) others.push_back(a);
  ConvolutionOperand found{.load = guarded.load, .has_position_table = true, .places = *places};
  found.across = without_axes(position, others, pool);
  found.k = simplify(position - found.across, pool.bounds());
  if (!is_of(found.k, others)) return std::nullopt;
  found.taps.push_back(std::move(taps));
  return found;
}

std::optional<ConvolutionOperand> find_operand(const Graph& graph, const ExprPool& pool, ExprId factor,
                                               const Axes& across, const Axes& k) {
  const std::optional<GuardedLoad> guarded = guarded_load(pool, factor);
  if (!guarded) return std::nullopt;
  const IndexExpr flat = position_of(graph, pool, guarded->load);
  if (by_values(flat)) return std::nullopt;
  const IndexExpr position = simplify(with_divisions_apart(pool, flat, guarded->guards, k), pool.bounds());
  ConvolutionOperand found{.load = guarded->load};
  found.across = without_axes(position, k, pool);
  found.k = simplify(position - found.across, pool.bounds());
  if (std::ranges::none_of(across, [&](std::uint32_t a) { return mentions(found.across, {Variable::Kind::kAxis, a}); }))
    return std::nullopt;
  auto taps = taps_of(pool, guarded->guards, k);
  if (!taps || !is_of(found.k, k)) return find_position_table(pool, *guarded, position, k);
  found.taps = std::move(*taps);
  return found;
}

// True if each piece is 16 contiguous bytes along the last axis of K, with the same guards.
bool is_vector_gather(const ExprPool& pool, const ConvolutionOperand& f, const Axes& k, int together) {
  const Variable last{Variable::Kind::kAxis, k.back()};
  for (const ConvolutionTaps& t : f.taps)
    if (contains(t.axes, last.id)) return false;
  const IndexExpr rest = simplify(f.k - IndexExpr::axis(last.id), pool.bounds());
  return !mentions(rest, last) && proves_multiple_of(pool.extent(last.id), together, pool.bounds()) &&
         proves_multiple_of(rest, together, pool.bounds()) && proves_multiple_of(f.across, together, pool.bounds());
}

// Finds the period of the table if channels come before taps: after some channels (whole tiles), positions repeat with
// a constant offset.
void find_period(const ExprPool& pool, ConvolutionOperand& f, const Axes& k, int tile_k) {
  const std::uint32_t channel = k[0];
  for (const ConvolutionTaps& t : f.taps)
    if (contains(t.axes, channel)) return;
  const auto channels = pool.extent(channel).as_constant(), all = simplified_point_count(pool, k).as_constant();
  if (!channels || !all) return;
  const std::int64_t taps = *all / *channels, together = tile_k / std::gcd(taps, std::int64_t{tile_k});
  if (*channels % together != 0 || *channels == together) return;
  const IndexExpr later = substitute(f.k, [&](Variable v) -> std::optional<IndexExpr> {
    if (v.kind != Variable::Kind::kAxis || v.id != channel) return std::nullopt;
    return IndexExpr::axis(channel) + together;
  });
  const IndexExpr further = simplify(later - f.k, pool.bounds());
  if (std::ranges::any_of(k, [&](std::uint32_t a) { return mentions(further, {Variable::Kind::kAxis, a}); })) return;
  f.period = together * taps;
  f.further = further;
}

// Chooses how the operand's tiles are filled.
void choose_fill(const ExprPool& pool, ConvolutionOperand& f, const Axes& across, const Axes& k, DType dtype) {
  const int together = 128 / bits(dtype);
  IndexExpr flat = 0;
  for (const std::uint32_t a : k) flat = flat * pool.extent(a) + IndexExpr::axis(a);
  f.has_offset_table = !f.taps.empty() || !simplify(flat - f.k, pool.bounds()).is(0);
  if (f.has_offset_table && is_vector_gather(pool, f, k, together)) {
    f.fill = ConvolutionFill::kVectorGather;
    return;
  }
  if (f.has_offset_table) {
    // If the operand is strided across K, loads along K touch fewer sectors.
    const bool strided = coefficient_of(f.across, {Variable::Kind::kAxis, across.back()}) != 1;
    f.fill = strided && !f.has_position_table && bits(dtype) == 32 ? ConvolutionFill::kScalarAlongK
                                                                   : ConvolutionFill::kScalarAcrossK;
    find_period(pool, f, k, kKBits / bits(dtype));
    return;
  }
  const bool aligned = !f.widened && proves_multiple_of(simplified_point_count(pool, k), together, pool.bounds()) &&
                       proves_multiple_of(f.across, together, pool.bounds());
  f.fill = aligned ? ConvolutionFill::kVectorCopy : ConvolutionFill::kScalarAlongK;
}

// True if the threads of a block can divide the tile evenly. For kScalarAcrossK each thread has one line, for
// kScalarAlongK one element of its lines.
bool splits_k(const ConvolutionForm& form, const ConvolutionOperand& f, int across) {
  const int threads = form.tiles.threads(), k = form.tiles.k;
  if (f.has_position_table && threads % across != 0) return false;
  switch (f.fill) {
    case ConvolutionFill::kVectorCopy:
      return true;
    case ConvolutionFill::kVectorGather:
      return across * k / (16 / form.element_bytes()) <= kMostLines * threads;
    case ConvolutionFill::kScalarAlongK:
      return threads % k == 0 && across % (threads / k) == 0 &&
             (!f.has_offset_table || across / (threads / k) <= kMostLines);
    case ConvolutionFill::kScalarAcrossK:
      return threads % across == 0 && (form.words() ? k : k * form.element_bytes() / 16) % (threads / across) == 0;
  }
  return false;
}

// True for tiles so narrow that the other operand would be gathered too often.
bool gathers_often(const ConvolutionForm& form, double rows, double columns) {
  constexpr double kWide = 64;
  return form.tiles.rows < std::min(rows, kWide) || form.tiles.columns < std::min(columns, kWide);
}

// A model to compare tiles: cycles of the busiest multiprocessor. `kept`: accumulators of other terms in registers.
double predicted_cycles(const ConvolutionForm& form, double rows, double columns, double batch, const Target& target,
                        double kept = 0) {
  const GemmTiles& t = form.tiles;
  const double tiles = std::ceil(rows / t.rows) * std::ceil(columns / t.columns) * batch, blocks = tiles * t.split_k;
  const double k = std::ceil(static_cast<double>(form.entries()) / t.k / t.split_k) * t.k;
  const double accumulators = static_cast<double>(t.rows) * t.columns, warps = t.threads() / 32.0;
  const double fragments = t.warp_rows / 4 + t.warp_columns / 8 + 24;  // loads and addresses per four of K
  const double multiply = form.tensor_cores()
                              ? (form.tf32 ? 2 : 1) * std::max(accumulators * 16 / 1024,
                                                               0.9 * warps * (t.warp_rows + t.warp_columns) * 32 / 128)
                              : accumulators * 16 / 128 + warps * fragments;
  const auto gathered = [&](const ConvolutionOperand& f, double lines) {
    return f.fill == ConvolutionFill::kVectorCopy ? 0 : lines / form.entry_elements(f);
  };
  const double gather =
      (gathered(form.left, t.rows) + gathered(form.right, t.columns)) * 16 * kGatherInstructions / 128;
  const double registers = 80 + accumulators * (1 + kept) / t.threads();
  const double resident = resident_blocks(t, registers, form.shared_bytes(), target);
  const double of_one = std::ceil(blocks / target.multiprocessors), at_a_time = std::min(resident, of_one);
  // Warps without results take issue slots from the others.
  const double full = rows * columns * batch / (tiles * accumulators);
  const double busy = std::min(1.0, 0.45 + 0.55 * warps * full * at_a_time / 8);
  const double places =
      static_cast<double>(form.position_table_bytes(form.left) + form.position_table_bytes(form.right)) / 4;
  const double ends = 2000 + accumulators / 64 +
                      static_cast<double>(form.table_bytes(form.left) + form.table_bytes(form.right)) / 64 +
                      places * kPositionInstructions / 128;
  const double from_cache = cache_cycles(t, static_cast<double>(form.stage_bytes()), at_a_time);
  const double cycles =
      of_one * k / 16 * (std::max(multiply, from_cache) + gather) / busy + std::ceil(of_one / at_a_time) * ends;
  return t.split_k == 1 ? cycles : split_k_cycles(cycles, tiles * accumulators, t.split_k, target);
}

// The numbers of splits to try.
std::vector<int> split_k_values(const ConvolutionForm& form, double rows, double columns, double batch, bool may,
                                const Target& target) {
  std::vector<int> numbers{1};
  if (!may) return numbers;
  const GemmTiles& t = form.tiles;
  const double tiles = std::ceil(rows / t.rows) * std::ceil(columns / t.columns) * batch;
  for (const int split_k : split_k_candidates(tiles, static_cast<double>(form.entries()) / t.k, 1, target))
    numbers.push_back(split_k);
  return numbers;
}

// The given order of K, and each with another axis last, because it is not known yet which axis is contiguous.
std::vector<Axes> orders_of(const ExprPool& pool, const Axes& k) {
  std::vector<Axes> orders{k};
  for (std::size_t i = 0; i + 1 < k.size(); ++i) {
    if (pool.extent(k[i]).is(1)) continue;
    orders.push_back(k);
    std::rotate(orders.back().begin() + static_cast<std::ptrdiff_t>(i),
                orders.back().begin() + static_cast<std::ptrdiff_t>(i) + 1, orders.back().end());
  }
  return orders;
}

// Tiles for byte elements that are loaded one by one. Each byte uses a register, so a thread has few lines.
std::vector<GemmTiles> byte_strip_tiles() {
  constexpr int kDepth = 64;
  return {
      {.rows = 128, .columns = 128, .warp_rows = 32, .warp_columns = 32, .k = kDepth},
      {.rows = 128, .columns = 64, .warp_rows = 32, .warp_columns = 16, .k = kDepth},
      {.rows = 64, .columns = 128, .warp_rows = 16, .warp_columns = 32, .k = kDepth},
      {.rows = 64, .columns = 64, .warp_rows = 16, .warp_columns = 32, .k = kDepth},
      {.rows = 64, .columns = 32, .warp_rows = 16, .warp_columns = 16, .k = kDepth},
      {.rows = 32, .columns = 64, .warp_rows = 16, .warp_columns = 16, .k = kDepth},
      {.rows = 32, .columns = 32, .warp_rows = 16, .warp_columns = 16, .k = kDepth},
  };
}

// The operands of a term, with the axes of K in this order; tiles are not chosen.
std::optional<ConvolutionForm> operands_in_order(const Graph& graph, const ExprPool& pool,
                                                 const Contraction& contraction, const ContractionAccumulator& term,
                                                 const Axes& axes, bool tf32, const Target& target) {
  const auto k = simplified_point_count(pool, axes).as_constant();
  if (!k) return std::nullopt;
  ConvolutionForm form{
      .dtype = multiplied_dtype(pool, contraction, term, target), .ranking = {}, .axes = axes, .k = *k};
  form.tf32 = tf32 && form.words();
  form.reduction = term.reduction;
  for (const bool left : {true, false}) {
    const Axes& across = left ? contraction.rows : contraction.columns;
    ExprId value = left ? term.left : term.right;
    const auto offset = form.dtype == DType::kInt8 ? offset_of(pool, value, {across, axes}) : std::nullopt;
    if (offset) value = pool[value].args[0];
    auto factor = find_operand(graph, pool, value, across, axes);
    if (!factor || (offset && form.left.offset != kNoExpr)) return std::nullopt;
    factor->offset = offset.value_or(kNoExpr);
    const DType stored = pool[factor->load].dtype;
    factor->widened = form.dtype == DType::kFloat16 && multiplies(DType::kFloat8E4M3FN, stored);
    if (!factor->widened && !multiplies(form.dtype, stored)) return std::nullopt;
    choose_fill(pool, *factor, across, axes, form.dtype);
    if (factor->widened && (factor->has_offset_table || factor->fill != ConvolutionFill::kScalarAlongK))
      return std::nullopt;
    const std::int64_t listed = factor->period > 0 ? factor->period : *k;
    if (factor->has_offset_table && listed > kMostEntries * form.entry_elements(*factor)) return std::nullopt;
    (left ? form.left : form.right) = std::move(*factor);
  }
  return form;
}

std::vector<GemmTiles> tiles_for(const ConvolutionForm& form) {
  const auto in_byte_strips = [&](const ConvolutionOperand& f) {
    return bits(form.dtype) == 8 && f.fill == ConvolutionFill::kScalarAlongK;
  };
  return in_byte_strips(form.left) || in_byte_strips(form.right) ? byte_strip_tiles()
                                                                 : convolution_tile_table(form.dtype, form.tf32);
}

// True if the block's threads and shared memory suffice.
bool fits(const ConvolutionForm& form, double rows, double columns, const Target& target) {
  return splits_k(form, form.left, form.tiles.rows) && splits_k(form, form.right, form.tiles.columns) &&
         form.shared_bytes() <= most_tile_bytes(target) && !gathers_often(form, rows, columns);
}

// The candidate tiles that all terms can use: terms with single byte elements have the fewest.
std::vector<GemmTiles> tiles_of_all(const std::vector<ConvolutionForm>& forms) {
  std::vector<GemmTiles> fewest = tiles_for(forms[0]);
  for (const ConvolutionForm& form : forms)
    if (auto tiles = tiles_for(form); tiles.size() < fewest.size()) fewest = std::move(tiles);
  return fewest;
}

std::optional<ConvolutionForm> find_in_order(const Graph& graph, const ExprPool& pool, const Contraction& contraction,
                                             const ContractionAccumulator& term, const Axes& axes, bool tf32,
                                             const Target& target) {
  auto found = operands_in_order(graph, pool, contraction, term, axes, tf32, target);
  if (!found) return std::nullopt;
  ConvolutionForm& form = *found;
  const double rows = points_at_hint(pool, contraction.rows), columns = points_at_hint(pool, contraction.columns);
  const double batch = points_at_hint(pool, contraction.batch);
  if (!form.tensor_cores() && columns < kFewColumns) return std::nullopt;
  std::vector<std::pair<double, GemmTiles>> ranked;
  const bool few_tiles_and_large_k = has_few_tiles_and_large_k(pool, contraction, target);
  for (const GemmTiles& tiles : tiles_for(form)) {
    form.tiles = tiles;
    form.tiles.stages = kStages;
    if (!fits(form, rows, columns, target)) continue;
    for (const int split_k : split_k_values(form, rows, columns, batch, few_tiles_and_large_k, target)) {
      form.tiles.split_k = split_k;
      ranked.emplace_back(predicted_cycles(form, rows, columns, batch, target), form.tiles);
    }
  }
  if (ranked.empty()) return std::nullopt;
  form.ranking = rank(ranked);
  form.tiles = form.ranking.front();
  form.cycles = ranked.front().first;
  return found;
}

// The form with the order of K that is predicted to be fastest.
std::optional<ConvolutionForm> find_term(const Graph& graph, const Kernel& kernel, const Contraction& contraction,
                                         const Axes& k, const ContractionAccumulator& term, const Target& target) {
  const ExprPool& pool = kernel.pool;
  const ScalarType accumulators = pool[term.reduction].type;
  if (accumulators != ScalarType::kFloat32 && accumulators != ScalarType::kInt32) return std::nullopt;
  std::optional<ConvolutionForm> best;
  for (const Axes& axes : orders_of(pool, k))
    if (auto form = find_in_order(graph, pool, contraction, term, axes, kernel.numerics.allow_tf32, target);
        form && (!best || form->cycles < best->cycles))
      best = std::move(form);
  return best;
}

}  // namespace

DType multiplied_dtype(const ExprPool& pool, const Contraction& contraction, const ContractionAccumulator& sum,
                       const Target& target) {
  if (pool[sum.reduction].type == ScalarType::kInt32) return DType::kInt8;
  const auto is_float8_load = [&](ExprId factor) {
    const auto guarded = guarded_load(pool, factor);
    return guarded && multiplies(DType::kFloat8E4M3FN, pool[guarded->load].dtype);
  };
  constexpr int kMultipliesFloat8 = 89;
  if (target.compute_capability >= kMultipliesFloat8 && is_float8_load(sum.left) && is_float8_load(sum.right))
    return DType::kFloat8E4M3FN;
  return contraction.tensor_dtype.value_or(DType::kFloat32);
}

std::vector<GemmTiles> convolution_tile_table(DType dtype, bool tf32) {
  if (bits(dtype) > 16 && !tf32) return gemm_tile_table(DType::kFloat32);
  std::vector<GemmTiles> table = {
      {.rows = 128, .columns = 128, .warp_rows = 32, .warp_columns = 64},
      {.rows = 128, .columns = 64, .warp_rows = 32, .warp_columns = 32},
      {.rows = 64, .columns = 128, .warp_rows = 32, .warp_columns = 32},
      {.rows = 64, .columns = 64, .warp_rows = 32, .warp_columns = 32},
      {.rows = 128, .columns = 32, .warp_rows = 32, .warp_columns = 32},
      {.rows = 64, .columns = 32, .warp_rows = 16, .warp_columns = 32},
      {.rows = 32, .columns = 128, .warp_rows = 32, .warp_columns = 32},
      {.rows = 32, .columns = 64, .warp_rows = 16, .warp_columns = 32},
      {.rows = 16, .columns = 64, .warp_rows = 16, .warp_columns = 16},
  };
  for (GemmTiles& t : table) t.k = t.k * 16 / bits(dtype);
  return table;
}

GemmForm as_gemm(const ConvolutionForm& form, std::size_t accumulators) {
  GemmForm gemm;
  gemm.accumulators = static_cast<int>(accumulators);
  gemm.dtype = form.dtype;
  gemm.tf32 = form.tf32;
  gemm.float_accumulators = form.dtype != DType::kInt8;
  gemm.tiles = form.tiles;
  gemm.cycles = form.cycles;
  gemm.loops.resize(1);
  for (const bool left : {true, false}) {
    const ConvolutionOperand& factor = left ? form.left : form.right;
    GemmOperand operand;
    operand.load = factor.load;
    operand.k_major = !form.words() || !factor.gathered();
    (left ? gemm.loops[0].left : gemm.loops[0].right).push_back(operand);
  }
  return gemm;
}

std::optional<ConvolutionForm> find_convolution(const Graph& graph, const Kernel& kernel,
                                                const Contraction& contraction, const Target& target) {
  if (contraction.expert_index || !contraction.row_values.empty() || term_count(contraction) != 1) return std::nullopt;
  const ContractionLoop& loop = contraction.loops[0];
  return find_term(graph, kernel, contraction, loop.k, {loop.terms[0].reduction, loop.left[0], loop.right[0]}, target);
}

std::optional<JoinedConvolutions> find_joined_convolutions(const Graph& graph, const Kernel& kernel,
                                                           const Contraction& contraction, const Target& target) {
  if (contraction.expert_index || !contraction.row_values.empty() || term_count(contraction) < 2) return std::nullopt;
  JoinedConvolutions joined;
  for (const ContractionLoop& loop : contraction.loops)
    for (const ContractionTerm& t : loop.terms) {
      auto form =
          find_term(graph, kernel, contraction, loop.k, {t.reduction, loop.left[t.left], loop.right[t.right]}, target);
      // Without tensor cores the mapping of accumulators to lanes depends on the layouts, which may differ between
      // terms.
      if (!form || !form->tensor_cores()) return std::nullopt;
      if (!joined.forms.empty() && form->dtype != joined.forms[0].dtype) return std::nullopt;
      form->ranking.clear();
      joined.forms.push_back(std::move(*form));
    }
  const ExprPool& pool = kernel.pool;
  const double rows = points_at_hint(pool, contraction.rows), columns = points_at_hint(pool, contraction.columns);
  const double batch = points_at_hint(pool, contraction.batch), others = static_cast<double>(joined.forms.size() - 1);
  std::vector<std::pair<double, GemmTiles>> ranked;
  for (GemmTiles tiles : tiles_of_all(joined.forms)) {
    tiles.stages = kStages;
    joined.take(tiles);
    const double of_thread = static_cast<double>(tiles.rows) * tiles.columns / tiles.threads() * (1 + others);
    if (of_thread > kMaxAccumulatorsPerThread) continue;
    if (!std::ranges::all_of(joined.forms, [&](const auto& form) { return fits(form, rows, columns, target); }))
      continue;
    double cycles = 0;
    for (const ConvolutionForm& form : joined.forms)
      cycles += predicted_cycles(form, rows, columns, batch, target, others);
    ranked.emplace_back(cycles, tiles);
  }
  if (ranked.empty()) return std::nullopt;
  joined.ranking = rank(ranked);
  joined.take(joined.ranking.front());
  joined.cycles = ranked.front().first;
  return joined;
}

}  // namespace fusec
