#include "analysis/few_rows_form.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/copy_expr.h"
#include "analysis/factor_grid.h"
#include "analysis/loads.h"
#include "ir/type.h"

namespace fusec {
namespace {

using Axes = std::vector<std::uint32_t>;

constexpr int kMostRows = 32;
constexpr double kLeastDepth = 128;  // below, a block's start and end are most of it
constexpr std::int64_t kMostSharedBytes = 96 << 10;
constexpr std::int64_t kLeastBlockOfCodes = 64;  // a lane has 16 of the depth at least: 8 bytes of int4
constexpr int kMostColumns = 64;                 // of a block: its warps have sums of all of them
constexpr double kWorthWidening = 0.9;
constexpr int kMostRowsOfBits = 16;  // with more, their sums take tensor cores longer than codes come

double count_at_hint(const ExprPool& pool, const Axes& axes) {
  return static_cast<double>(value_at_hint(simplified_point_count(pool, axes), pool.bounds().symbols));
}

// The load of a factor that runs through the whole matrix: unguarded, by nothing that was loaded, neighbours along the
// axis.
std::optional<ExprId> matrix_load(const Graph& graph, const ExprPool& pool, ExprId factor, std::uint32_t axis,
                                  const Axes& columns, const Axes& depth) {
  const auto depends = dependences(pool);
  for (const ExprId id : reachable(pool, std::span(&factor, 1))) {
    if (pool[id].op != ExprOp::kLoad || pool[id].args[0] != kNoExpr) continue;
    const auto runs = [&](const Axes& axes) {
      return std::ranges::all_of(
          axes, [&](std::uint32_t a) { return pool.extent(a).is(1) || std::ranges::binary_search(depends[id], a); });
    };
    if (!runs(columns) || !runs(depth)) continue;
    const IndexExpr at = position_of(graph, pool, id);
    if (!by_values(at) && coefficient_of(at, {Variable::Kind::kAxis, axis}) == 1) return id;
  }
  return std::nullopt;
}

bool is_vector(const Graph& graph, const ExprPool& pool, ExprId load, std::uint32_t member, int width) {
  const IndexExpr at = position_of(graph, pool, load);
  const Variable v{Variable::Kind::kAxis, member};
  const int together = std::min(width, 128 / bits(pool[load].dtype));
  return coefficient_of(at, v) == 1 && proves_multiple_of(at - IndexExpr::axis(member), together, pool.bounds());
}

class FindFewRows {
 public:
  FindFewRows(const Graph& graph, const Kernel& kernel, const Product& product, const Target& target)
      : graph_(graph), kernel_(kernel), pool_(kernel.pool), product_(product), target_(target) {}

  std::optional<FewRowsForm> find() {
    if (product_.choice) return std::nullopt;
    const IndexExpr rows = simplified_point_count(pool_, product_.rows);
    const Range range = range_of(rows, pool_.bounds());
    if (range.max > kMostRows || range.max < 1) return std::nullopt;
    form_.most_rows = static_cast<int>(range.max);
    form_.sums = static_cast<int>(term_count(product_));
    for (const ProductLoop& loop : product_.loops) {
      if (count_at_hint(pool_, loop.depth) < kLeastDepth || pool_.extent(loop.depth.back()).is(1)) return std::nullopt;
    }
    if (take_codes() && arrange(true)) return std::move(form_);
    if (!take_factors()) return std::nullopt;
    if (arrange(true)) return std::move(form_);
    if (form_.dtype == DType::kInt8 || in_blocks() || !arrange(false)) return std::nullopt;
    return std::move(form_);
  }

 private:
  // Of a loop: what is multiplied of each factor, and by what sums of blocks are.
  struct Parts {
    std::vector<ExprId> left, right;
    std::vector<std::vector<ExprId>> scales;  // of each right one
    std::vector<std::optional<ShiftedCodes>> shifted;
    std::int64_t block = 0;        // 0: the whole depth
    bool zeros_of_blocks = false;  // of which zero points are, too
  };

  bool arrange(bool along_depth) {
    form_.along_depth = along_depth;
    if (!choose_width() || !split()) return false;
    choose_block();
    return true;
  }

  bool in_blocks() const {
    return std::ranges::any_of(parts_, [](const Parts& parts) { return parts.block != 0; });
  }

  // Codes and their scales, each on its own: no code is made a number before it is multiplied, nor rounded where the
  // graph does that.
  bool take_codes() {
    if (kernel_.exact_steps || pool_[product_.loops[0].terms[0].reduction].type != ScalarType::kFloat32) return false;
    const auto dtype = product_.tensor_dtype ? product_.tensor_dtype : common_dtype();
    if (!dtype || bits(*dtype) != 16) return false;
    form_.dtype = *dtype;
    parts_.clear();
    for (const ProductLoop& loop : product_.loops) {
      Parts parts{.left = loop.left, .right = {}, .scales = {}, .shifted = {}, .block = 0, .zeros_of_blocks = false};
      for (const ExprId factor : loop.right)
        if (!take_code(loop, factor, parts)) return false;
      if (parts.block != 0 && parts.block < kLeastBlockOfCodes) return false;
      parts_.push_back(std::move(parts));
    }
    return true;
  }

  bool take_code(const ProductLoop& loop, ExprId factor, Parts& parts) const {
    const ExprNode& n = pool_[factor];
    const bool rounded = n.op == ExprOp::kRound && n.dtype == form_.dtype;
    const FactorParts split = split_scales(pool_, rounded ? n.args[0] : factor, loop.depth);
    auto codes = find_shifted_codes(pool_, split.value, form_.dtype, loop.depth);
    if (!codes || split.scales.empty() || !lies_on_grid(pool_, split.value, form_.dtype)) return false;
    parts.block = common_block(parts.block, split.block);
    parts.block = common_block(parts.block, codes->block);
    parts.zeros_of_blocks = true;
    if (form_.most_rows > kMostRowsOfBits) codes.reset();
    parts.right.push_back(split.value);
    parts.scales.push_back(split.scales);
    parts.shifted.push_back(codes);
    return true;
  }

  bool take_factors() {
    const ScalarType sums = pool_[product_.loops[0].terms[0].reduction].type;
    if (sums == ScalarType::kInt32) {
      form_.dtype = DType::kInt8;
      form_.whole_sums = true;
      return take_parts();
    }
    if (sums != ScalarType::kFloat32) return false;
    if (const auto dtype = product_.tensor_dtype ? product_.tensor_dtype : common_dtype()) {
      form_.dtype = *dtype;
      parts_.clear();
      for (const ProductLoop& loop : product_.loops)
        parts_.push_back({loop.left, loop.right, std::vector<std::vector<ExprId>>(loop.right.size()),
                          std::vector<std::optional<ShiftedCodes>>(loop.right.size()), 0});
      return true;
    }
    for (const DType dtype : {DType::kInt8, DType::kFloat16, DType::kBFloat16}) {
      form_.dtype = dtype;
      if (take_parts() && in_blocks()) return true;
    }
    return false;
  }

  // Factors as what the dtype holds, those of the matrix times scales of blocks.
  bool take_parts() {
    constexpr std::int64_t kLeastBlock = 32;  // four lanes have eight of the depth each
    parts_.clear();
    for (const ProductLoop& loop : product_.loops) {
      Parts parts;
      for (const ExprId factor : loop.left) {
        parts.left.push_back(value_of(factor));
        if (!is_held(parts.left.back())) return false;
      }
      for (const ExprId factor : loop.right) {
        FactorParts split{.value = value_of(factor), .scales = {}, .block = 0};
        if (!is_multiplied(split.value)) split = split_scales(pool_, factor, loop.depth);
        parts.right.push_back(value_of(split.value));
        if (!is_multiplied(parts.right.back()) || (!split.scales.empty() && split.block < kLeastBlock)) return false;
        parts.scales.push_back(split.scales);
        parts.shifted.push_back(std::nullopt);
        parts.block = common_block(parts.block, split.block);
      }
      if (parts.block != 0 && parts.block < kLeastBlock) return false;
      parts_.push_back(std::move(parts));
    }
    return true;
  }

  ExprId value_of(ExprId factor) const {
    return form_.dtype == DType::kInt8 ? without_conversion(pool_, factor) : factor;
  }

  bool is_held(ExprId value) const {
    return (form_.dtype != DType::kInt8 || !is_float(pool_[value].type)) && lies_on_grid(pool_, value, form_.dtype);
  }

  // The matrix' bytes are taken as they lie in memory, or made of half-byte integers.
  bool is_multiplied(ExprId value) const {
    const ExprNode& n = pool_[value];
    const bool whole = n.op == ExprOp::kLoad && n.args[0] == kNoExpr && is_integer(n.dtype);
    return (form_.dtype != DType::kInt8 || (whole && (n.dtype == DType::kInt8 || bits(n.dtype) == 4))) &&
           is_held(value);
  }

  // A 16-bit dtype that has all factors' values. A vector's are no tensor cores' yet when kernels are built, nor are
  // codes of eight bits and less, which become float16 in fewer instructions.
  std::optional<DType> common_dtype() const {
    for (const DType dtype : {DType::kFloat16, DType::kBFloat16})
      if (std::ranges::all_of(product_.loops, [&](const ProductLoop& loop) {
            const auto fits_all = [&](const std::vector<ExprId>& factors) {
              return std::ranges::all_of(factors, [&](ExprId factor) { return fits(factor, dtype); });
            };
            return fits_all(loop.left) && fits_all(loop.right);
          }))
        return dtype;
    return std::nullopt;
  }

  // Is the value on the dtype's grid, or one that the graph rounds to it, computed here more exactly?
  bool fits(ExprId id, DType dtype) const {
    const ExprNode& n = pool_[id];
    if (n.op == ExprOp::kLoad || n.op == ExprOp::kRound)
      return n.dtype == dtype || (is_float(n.dtype) && bits(n.dtype) <= 8 &&
                                  (n.dtype != DType::kFloat8E8M0FNU || dtype == DType::kBFloat16));
    if (n.op == ExprOp::kConvert && codes_of_integers(n.args[0])) return true;
    if (n.op == ExprOp::kMul && scaled_codes(n.args[0], n.args[1], dtype)) return true;
    if (kernel_.exact_steps) return false;
    return std::ranges::any_of(kernel_.named, [&](const NamedExpr& named) {
      return named.expr == id && graph_.tensor(named.value).dtype == dtype;
    });
  }

  bool codes_of_integers(ExprId id) const {
    const ExprNode& n = pool_[id];
    return n.op == ExprOp::kLoad && !is_float(n.dtype) && bits(n.dtype) <= 8;
  }

  // A power of two times what has few bits.
  bool scaled_codes(ExprId a, ExprId b, DType dtype) const {
    const auto is_load = [&](ExprId id, DType d) { return pool_[id].op == ExprOp::kLoad && pool_[id].dtype == d; };
    const auto is_pair = [&](ExprId code, ExprId scale) {
      return (is_load(code, DType::kFloat4E2M1FN) || is_load(code, DType::kFloat8E4M3FN)) &&
             is_load(scale, DType::kFloat8E8M0FNU);
    };
    return dtype == DType::kBFloat16 && (is_pair(a, b) || is_pair(b, a));
  }

  // Codes are widened together where they have one scale.
  void keep_within_blocks(ExprId factor, const Axes& depth) {
    for (const ExprId id : reachable(pool_, std::span(&factor, 1))) {
      if (pool_[id].op != ExprOp::kLoad) continue;
      const std::int64_t block = block_of(pool_, id, depth);
      if (block >= 8 && block < most_together_ && most_together_ % block == 0) most_together_ = static_cast<int>(block);
    }
  }

  // How many neighbours are a lane's: 16 bytes of the narrowest matrix.
  bool choose_width() {
    form_.together = 8;
    const std::uint32_t column = product_.columns.back();
    right_bits_ = computed_ = 0;
    most_together_ = 32;
    for (std::size_t i = 0; i < product_.loops.size(); ++i) {
      const ProductLoop& loop = product_.loops[i];
      int right_bits = 0, computed = 0;
      for (const ExprId factor : parts_[i].right) {
        const auto load = matrix_load(graph_, pool_, factor, form_.along_depth ? loop.depth.back() : column,
                                      product_.columns, loop.depth);
        if (!load) return false;
        const int of_element = bits(pool_[*load].dtype);
        if (form_.along_depth) form_.together = std::max(form_.together, 128 / of_element);
        if (form_.along_depth) keep_within_blocks(factor, loop.depth);
        right_bits += of_element;
        computed += *load != factor || bits(pool_[factor].dtype) < bits(form_.dtype);
      }
      right_bits_ = std::max(right_bits_, right_bits);
      computed_ = std::max(computed_, computed);
    }
    form_.together = std::min(form_.together, most_together_);
    const auto divides = [&] {
      return std::ranges::all_of(product_.loops, [&](const ProductLoop& l) {
        return proves_multiple_of(pool_.extent(l.depth.back()), form_.together, pool_.bounds());
      });
    };
    const auto within_blocks = [&] {
      return std::ranges::all_of(parts_, [&](const Parts& parts) { return parts.block % (4 * form_.together) == 0; });
    };
    while (form_.together > 8 && !(divides() && within_blocks())) form_.together /= 2;
    form_.runs = runs_of_rows();
    if (!within_blocks()) return false;
    return divides() && (form_.along_depth || proves_multiple_of(pool_.extent(column), 8, pool_.bounds()));
  }

  // Operands of a run are 16 bytes, as are loads of rows that come as they are multiplied. Of few rows, to ask for each
  // sector twice takes less time than to hand runs from lane to lane.
  int runs_of_rows() const {
    constexpr double kBytesOfRequests = 32;  // while a multiprocessor issues an instruction, of which it does four
    const auto depends = dependences(pool_);
    int widest = 0;
    for (std::size_t i = 0; i < parts_.size(); ++i)
      for (const ExprId id : reachable(pool_, parts_[i].left))
        if (pool_[id].op == ExprOp::kLoad && std::ranges::binary_search(depends[id], product_.loops[i].depth.back()))
          widest = std::max(widest, bits(pool_[id].dtype));
    const int runs = form_.together * bits(form_.dtype) / 128;
    if (!form_.along_depth || form_.together * widest <= 128 || widest > bits(form_.dtype)) return 1;
    const double twice = count_at_hint(pool_, product_.rows) * 4 * form_.together * widest / 8;
    return twice / kBytesOfRequests > 2 + 2 * runs * form_.eights_of_rows() ? runs : 1;
  }

  bool split() {
    std::vector<ExprId> follow = product_.row_values;
    for (const Parts& parts : parts_) {
      follow.insert(follow.end(), parts.left.begin(), parts.left.end());
      follow.insert(follow.end(), parts.right.begin(), parts.right.end());
      for (const auto& scales : parts.scales) follow.insert(follow.end(), scales.begin(), scales.end());
      for (const auto& shifted : parts.shifted) {
        if (!shifted) continue;
        follow.push_back(shifted->codes);
        if (shifted->zero != kNoExpr) follow.push_back(shifted->zero);
      }
    }
    form_.loops.assign(product_.loops.size(), {});
    std::map<std::uint32_t, std::uint32_t> now;
    form_.kernel = change_axes(
        kernel_, [&](ExprPool& pool, ExprCopier& copier) { return split_axes(pool, copier, now); }, follow);
    const auto renamed = [&](const Axes& old) {
      Axes list;
      for (const std::uint32_t a : old) list.push_back(now.at(a));
      return list;
    };
    form_.batch = renamed(product_.batch);
    form_.rows = renamed(product_.rows);
    form_.columns = renamed(product_.columns);
    form_.ones = renamed(product_.shared_rest);
    auto next = follow.begin();
    form_.row_values_before = product_.row_values;
    form_.row_values.assign(next, next + static_cast<std::ptrdiff_t>(product_.row_values.size()));
    next += static_cast<std::ptrdiff_t>(product_.row_values.size());
    for (std::size_t i = 0; i < product_.loops.size(); ++i) {
      FewRowsLoop& loop = form_.loops[i];
      loop.terms = product_.loops[i].terms;
      for (std::size_t k = 0; k < product_.loops[i].left.size(); ++k)
        loop.left.push_back({*next, is_plain(*next, loop.member, form_.together), {}}), ++next;
      for (std::size_t k = 0; k < product_.loops[i].right.size(); ++k) {
        loop.right.push_back({*next,
                              is_plain(*next, form_.along_depth ? loop.member : form_.column_member,
                                       form_.along_depth ? form_.together : 8),
                              {}});
        if (!streams(*next, loop)) return false;
        ++next;
      }
      for (std::size_t k = 0; k < parts_[i].scales.size(); ++k)
        for (std::size_t n = 0; n < parts_[i].scales[k].size(); ++n) {
          if (varies_within(*next, loop.member)) return false;
          loop.right[k].scales.push_back(*next++);
        }
      loop.one_block = parts_[i].block == 0;
      for (FewRowsFactor& f : loop.right) f.zero_of_block = parts_[i].zeros_of_blocks && !loop.one_block;
      for (std::size_t k = 0; k < parts_[i].shifted.size(); ++k) {
        if (!(loop.right[k].shifted = parts_[i].shifted[k])) continue;
        loop.right[k].shifted->codes = *next++;
        if (loop.right[k].shifted->zero != kNoExpr) loop.right[k].shifted->zero = *next++;
      }
    }
    if (form_.runs > 1) split_runs();
    return true;
  }

  // Rows' factors have the neighbours in runs; what reductions give is one value for a row and stays.
  void split_runs() {
    ExprPool& pool = form_.kernel.pool;
    const ExprPool before = pool;
    form_.run = pool.new_axis(form_.runs);
    form_.place = pool.new_axis(form_.run_length());
    for (FewRowsLoop& loop : form_.loops) {
      ExprCopier copier(before, pool);
      for (std::uint32_t a = 0; a < before.bounds().axes.size(); ++a) copier.axis[a] = IndexExpr::axis(a);
      copier.axis[loop.member] = IndexExpr::axis(form_.run) * form_.run_length() + IndexExpr::axis(form_.place);
      copier.rewritten = [&](ExprId id, const ExprCopier::Copied&) {
        return before[id].op == ExprOp::kReduce ? id : kNoExpr;
      };
      for (FewRowsFactor& f : loop.left) {
        f.factor = copier.copy(f.factor);
        f.plain = is_plain(f.factor, form_.place, form_.run_length());
      }
    }
  }

  bool varies_within(ExprId id, std::uint32_t member) const {
    return std::ranges::binary_search(dependences(form_.kernel.pool)[id], member);
  }

  AxisChange split_axes(ExprPool& pool, ExprCopier& copier, std::map<std::uint32_t, std::uint32_t>& now) {
    AxisChange change;
    for (const std::uint32_t a : kernel_.outputs[0].axes) {
      const IndexExpr& extent = pool_.extent(a);
      const bool in_eights = !form_.along_depth && a == product_.columns.back();
      now[a] = pool.new_axis(in_eights ? simplify(floor_div(extent, 8), pool.bounds()) : extent);
      change.new_axes.push_back(now[a]);
      change.values.push_back(IndexExpr::axis(now[a]));
      if (!in_eights) continue;
      form_.column_member = pool.new_axis(8);
      change.new_axes.push_back(form_.column_member);
      change.values.back() = IndexExpr::axis(now[a]) * 8 + IndexExpr::axis(form_.column_member);
    }
    for (std::size_t i = 0; i < product_.loops.size(); ++i) {
      const Axes& depth = product_.loops[i].depth;
      FewRowsLoop& loop = form_.loops[i];
      for (const std::uint32_t a : depth) {
        const bool last = a == depth.back();
        loop.depth.push_back(pool.new_axis(last ? simplify(floor_div(pool_.extent(a), form_.together), pool.bounds())
                                                : pool_.extent(a)));
        copier.axis[a] = IndexExpr::axis(loop.depth.back());
      }
      loop.member = pool.new_axis(form_.together);
      copier.axis[depth.back()] = IndexExpr::axis(loop.depth.back()) * form_.together + IndexExpr::axis(loop.member);
      Axes split = loop.depth;
      split.push_back(loop.member);
      copier.reduction_axes[depth] = split;
    }
    return change;
  }

  bool is_plain(ExprId factor, std::uint32_t member, int width) const {
    const ExprPool& pool = form_.kernel.pool;
    const ExprNode& n = pool[factor];
    return n.op == ExprOp::kLoad && n.args[0] == kNoExpr && n.dtype == form_.dtype &&
           !by_values(position_of(graph_, pool, factor)) && is_vector(graph_, pool, factor, member, width);
  }

  // Does the matrix come by vectors, once it is split?
  bool streams(ExprId factor, const FewRowsLoop& loop) const {
    const ExprPool& pool = form_.kernel.pool;
    const std::uint32_t member = form_.along_depth ? loop.member : form_.column_member;
    const auto load = matrix_load(graph_, pool, factor, member, form_.columns, loop.depth);
    return load && is_vector(graph_, pool, *load, member, form_.along_depth ? form_.together : 8);
  }

  void choose_block() {
    for (const FewRowsLoop& loop : form_.loops) {
      steps_ = std::min(steps_, count_at_hint(form_.kernel.pool, loop.depth) / 4);
      left_ = std::max(left_, loop.left.size());
    }
    const double columns = count_at_hint(pool_, product_.columns) * count_at_hint(pool_, product_.batch);
    const auto blocks = [&] { return columns / form_.block.columns; };
    form_.block.columns = !form_.along_depth ? 64 : form_.most_rows > 8 || form_.sums == 1 ? 32 : 16;
    if (form_.along_depth && blocks() < 0.75 * target_.multiprocessors) form_.block.columns = 16;
    fill_block(blocks() < target_.multiprocessors ? 16 : 8);
    if (form_.along_depth) widen_block(columns);
    const FewRowsBlock predicted = form_.block;
    form_.ways = {predicted};
    const auto add = [&] {
      if (std::ranges::find(form_.ways, form_.block) == form_.ways.end()) form_.ways.push_back(form_.block);
    };
    if (form_.block.ahead > 1) {
      form_.block.ahead /= 2;
      add();
    }
    for (const int wide : {16, 32, 64})
      for (const int warps : {4, 8, 16}) {
        if (!form_.along_depth && wide != 64) continue;
        form_.block.columns = wide;
        if (fill_block(warps) || wide < 64) add();
      }
    form_.block = predicted;
  }

  // Each block reads all rows: wider ones are taken where that is much less for the multiprocessor that has the most
  // blocks, as long as there are blocks for most of them.
  void widen_block(double columns) {
    while (form_.block.columns < kMostColumns &&
           columns / (2 * form_.block.columns) >= 0.75 * target_.multiprocessors) {
      const FewRowsBlock narrow = form_.block;
      const double before = bytes_of_time(columns);
      form_.block.columns *= 2;
      if (fill_block(narrow.warps) && bytes_of_time(columns) < kWorthWidening * before) continue;
      form_.block = narrow;
      return;
    }
  }

  // Bytes of device memory that come in the time in which the matrix comes and then, through L2, what the blocks read.
  double bytes_of_time(double columns) const {
    constexpr double kRateOfL2 = 2;  // of device memory's
    double rows = 0, column = 0;     // bytes of all rows, and of a column
    for (const FewRowsLoop& loop : form_.loops) {
      const double depth = count_at_hint(form_.kernel.pool, loop.depth) * form_.together / 8;
      rows += depth * bits(form_.dtype) * static_cast<double>(loop.left.size()) * count_at_hint(pool_, product_.rows);
      column += depth * right_bits_;
    }
    const double blocks = std::ceil(columns / form_.block.columns);
    const double turns = std::ceil(blocks / target_.multiprocessors);
    return columns * column + turns * (rows + form_.block.columns * column) * target_.multiprocessors / kRateOfL2;
  }

  // At most so many warps, for the columns that were chosen; as many steps ahead as registers hold. Do they hold one?
  bool fill_block(int warps) {
    FewRowsBlock& block = form_.block;
    const int elements = form_.along_depth ? block.columns / 8 * form_.together : 64;
    const int of_step = elements * right_bits_ / 32 +
                        static_cast<int>(left_) * form_.eights_of_rows() * form_.together * bits(form_.dtype) / 32;
    constexpr int kMostWords = 96;  // of a lane, on their way
    const bool scaled = std::ranges::any_of(form_.loops, [](const FewRowsLoop& loop) { return loop.scaled(); });
    // What is computed at a time is several steps' where codes are widened: fewer warps have more registers each.
    if (scaled) warps = std::min(warps, 8);
    const int registers = warps > 8 ? 120 : scaled ? 200 : 136;  // for them, sums and what is computed
    const int scales = scaled ? block.columns / 4 + 4 * form_.eights_of_rows() : 0;  // and sums of rows
    const int sums = form_.sums * (scaled ? 2 : 1) * block.columns / 16 * form_.eights_of_rows() * 4 +
                     computed_ * form_.together + scales;
    // Of more than two steps, products wait to be scaled.
    const auto waiting = [&] { return scaled && block.ahead > 2 ? (block.ahead - 2) * 4 * form_.eights_of_rows() : 0; };
    block.ahead = 4;
    while (block.ahead > 1 &&
           (block.ahead * of_step > kMostWords || block.ahead * of_step + sums + waiting() > registers))
      block.ahead /= 2;
    const bool fits = block.ahead * of_step + sums <= registers;
    block.warps = fits ? warps : std::min(warps, 8);  // which may have more registers each
    while (block.warps > 1 && (block.warps / 2 >= steps_ || shared_bytes(form_) > kMostSharedBytes)) block.warps /= 2;
    while (block.ahead > 1 && block.ahead / 2 * block.warps >= steps_) block.ahead /= 2;
    return fits;
  }

  const Graph& graph_;
  const Kernel& kernel_;
  const ExprPool& pool_;
  const Product& product_;
  const Target& target_;
  FewRowsForm form_;
  std::vector<Parts> parts_;  // of each loop
  double steps_ = 1e30;       // the least of a loop
  std::size_t left_ = 0;      // the most factors of a loop
  int most_together_ = 32;    // neighbours of one scale
  int right_bits_ = 0;        // the most of a loop's matrices' elements together
  int computed_ = 0;          // of these, so many at most
};

}  // namespace

std::int64_t shared_bytes_of_runs(const FewRowsForm& form) {
  return form.runs > 1 ? 16 * 8 * form.eights_of_rows() * (4 * form.runs + 4) : 0;
}

std::int64_t shared_bytes(const FewRowsForm& form) {
  const std::int64_t sums = std::int64_t{4} * form.sums * 8 * form.eights_of_rows() * (form.block.columns + 8);
  return form.block.warps * std::max(sums, shared_bytes_of_runs(form));
}

std::string name_of(const FewRowsBlock& block) {
  return fmt::format("{} columns by {} warps, {} steps ahead", block.columns, block.warps, block.ahead);
}

std::optional<FewRowsForm> find_few_rows(const Graph& graph, const Kernel& kernel, const Product& product,
                                         const Target& target) {
  return FindFewRows(graph, kernel, product, target).find();
}

}  // namespace fusec
