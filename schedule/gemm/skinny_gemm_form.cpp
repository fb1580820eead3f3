#include "schedule/gemm/skinny_gemm_form.h"

#include <algorithm>
#include <map>

#include "analysis/kernel/copy_expr.h"
#include "analysis/kernel/loads.h"
#include "ir/type.h"
#include "schedule/gemm/operand_scales.h"

namespace fusec {
namespace {

using Axes = std::vector<std::uint32_t>;

constexpr int kMaxRows = 32;
constexpr double kMinK = 128;                           // below, the start and end of a block dominate
constexpr std::int64_t kMinScaleBlockOfQuantized = 64;  // a lane has at least 16 of K: 8 bytes of int4
// With more rows, the sums of x take longer than loading the quantized values.
constexpr int kMaxRowsOfMagicDequantize = 16;

double count_at_hint(const ExprPool& pool, const Axes& axes) {
  return static_cast<double>(value_at_hint(simplified_point_count(pool, axes), pool.bounds().symbols));
}

// The load of an operand that covers the whole matrix: unguarded, not indirect, contiguous along the axis.
std::optional<ExprId> matrix_load(const Graph& graph, const ExprPool& pool, ExprId operand, std::uint32_t axis,
                                  const Axes& columns, const Axes& k) {
  const auto depends = dependences(pool);
  for (const ExprId id : reachable(pool, std::span(&operand, 1))) {
    if (pool[id].op != ExprOp::kLoad || pool[id].args[0] != kNoExpr) continue;
    const auto runs = [&](const Axes& axes) {
      return std::ranges::all_of(
          axes, [&](std::uint32_t a) { return pool.extent(a).is(1) || std::ranges::binary_search(depends[id], a); });
    };
    if (!runs(columns) || !runs(k)) continue;
    const IndexExpr at = position_of(graph, pool, id);
    if (!by_values(at) && coefficient_of(at, {Variable::Kind::kAxis, axis}) == 1) return id;
  }
  return std::nullopt;
}

bool is_vector(const Graph& graph, const ExprPool& pool, ExprId load, std::uint32_t member, int width) {
  const IndexExpr at = position_of(graph, pool, load);
  const Variable v{Variable::Kind::kAxis, member};
  const int k_per_lane = std::min(width, 128 / bits(pool[load].dtype));
  return coefficient_of(at, v) == 1 && proves_multiple_of(at - IndexExpr::axis(member), k_per_lane, pool.bounds());
}

class SkinnyGemmFinder {
 public:
  SkinnyGemmFinder(const Graph& graph, const Kernel& kernel, const Contraction& contraction, const Target& target)
      : graph_(graph), kernel_(kernel), pool_(kernel.pool), contraction_(contraction), target_(target) {}

  std::optional<SkinnyGemmForm> find() {
    if (contraction_.expert_index) return std::nullopt;
    const IndexExpr rows = simplified_point_count(pool_, contraction_.rows);
    const Range range = range_of(rows, pool_.bounds());
    if (range.max > kMaxRows || range.max < 1) return std::nullopt;
    form_.max_rows = static_cast<int>(range.max);
    form_.accumulators = static_cast<int>(term_count(contraction_));
    for (const ContractionLoop& loop : contraction_.loops) {
      if (count_at_hint(pool_, loop.k) < kMinK || pool_.extent(loop.k.back()).is(1)) return std::nullopt;
    }
    if (take_quantized() && arrange(true)) return std::move(form_);
    if (!take_operands()) return std::nullopt;
    if (arrange(true)) return std::move(form_);
    if (form_.dtype == DType::kInt8 || in_blocks() || !arrange(false)) return std::nullopt;
    return std::move(form_);
  }

 private:
  // The parts of a loop: what is multiplied of each operand, and the scales of the partial sums.
  struct Parts {
    std::vector<ExprId> left, right;
    std::vector<std::vector<ExprId>> scales;  // per right operand
    std::vector<std::optional<MagicDequantize>> magic_dequantize;
    std::int64_t block = 0;        // length of K with constant scales; 0: all of K
    bool blockwise_zeros = false;  // zero points have the same blocks
  };

  bool arrange(bool k_major) {
    form_.k_major = k_major;
    if (!choose_width() || !split()) return false;
    for (const SkinnyGemmLoop& loop : form_.loops) sizes_.k_groups.push_back(count_at_hint(form_.kernel.pool, loop.k));
    sizes_.rows = count_at_hint(pool_, contraction_.rows);
    sizes_.columns = count_at_hint(pool_, contraction_.columns) * count_at_hint(pool_, contraction_.batch);
    choose_block(form_, sizes_, target_);
    return true;
  }

  bool in_blocks() const {
    return std::ranges::any_of(parts_, [](const Parts& parts) { return parts.block != 0; });
  }

  // Takes the operands as quantized values and scales (magic dequantization). A rounding of dequantized values in the
  // graph is skipped, so kernels with exact_steps are excluded.
  bool take_quantized() {
    if (kernel_.exact_steps || pool_[contraction_.loops[0].terms[0].reduction].type != ScalarType::kFloat32)
      return false;
    const auto dtype = contraction_.tensor_dtype ? contraction_.tensor_dtype : common_dtype();
    if (!dtype || bits(*dtype) != 16) return false;
    form_.dtype = *dtype;
    parts_.clear();
    for (const ContractionLoop& loop : contraction_.loops) {
      Parts parts{
          .left = loop.left, .right = {}, .scales = {}, .magic_dequantize = {}, .block = 0, .blockwise_zeros = false};
      for (const ExprId operand : loop.right)
        if (!take_one_quantized(loop, operand, parts)) return false;
      if (parts.block != 0 && parts.block < kMinScaleBlockOfQuantized) return false;
      parts_.push_back(std::move(parts));
    }
    return true;
  }

  bool take_one_quantized(const ContractionLoop& loop, ExprId operand, Parts& parts) const {
    const ExprNode& n = pool_[operand];
    const bool rounded = n.op == ExprOp::kRound && n.dtype == form_.dtype;
    const OperandWithScales split = split_scales(pool_, rounded ? n.args[0] : operand, loop.k);
    auto quantized = find_magic_dequantize(pool_, split.value, form_.dtype, loop.k);
    if (!quantized || split.scales.empty() || !is_exact_in(pool_, split.value, form_.dtype)) return false;
    parts.block = common_scale_block(parts.block, split.block);
    parts.block = common_scale_block(parts.block, quantized->block);
    parts.blockwise_zeros = true;
    if (form_.max_rows > kMaxRowsOfMagicDequantize) quantized.reset();
    parts.right.push_back(split.value);
    parts.scales.push_back(split.scales);
    parts.magic_dequantize.push_back(quantized);
    return true;
  }

  bool take_operands() {
    const ScalarType accumulators = pool_[contraction_.loops[0].terms[0].reduction].type;
    if (accumulators == ScalarType::kInt32) {
      form_.dtype = DType::kInt8;
      form_.int32_accumulators = true;
      return take_parts();
    }
    if (accumulators != ScalarType::kFloat32) return false;
    if (const auto dtype = contraction_.tensor_dtype ? contraction_.tensor_dtype : common_dtype()) {
      form_.dtype = *dtype;
      parts_.clear();
      for (const ContractionLoop& loop : contraction_.loops)
        parts_.push_back({loop.left, loop.right, std::vector<std::vector<ExprId>>(loop.right.size()),
                          std::vector<std::optional<MagicDequantize>>(loop.right.size()), 0});
      return true;
    }
    for (const DType dtype : {DType::kInt8, DType::kFloat16, DType::kBFloat16}) {
      form_.dtype = dtype;
      if (take_parts() && in_blocks()) return true;
    }
    return false;
  }

  // Takes the operands as values that the dtype represents, those of the matrix times scales per block.
  bool take_parts() {
    constexpr std::int64_t kLeastBlock = 32;  // four lanes have eight of K each
    parts_.clear();
    for (const ContractionLoop& loop : contraction_.loops) {
      Parts parts;
      for (const ExprId operand : loop.left) {
        parts.left.push_back(value_of(operand));
        if (!is_held(parts.left.back())) return false;
      }
      for (const ExprId operand : loop.right) {
        OperandWithScales split{.value = value_of(operand), .scales = {}, .block = 0};
        if (!is_multiplied(split.value)) split = split_scales(pool_, operand, loop.k);
        parts.right.push_back(value_of(split.value));
        if (!is_multiplied(parts.right.back()) || (!split.scales.empty() && split.block < kLeastBlock)) return false;
        parts.scales.push_back(split.scales);
        parts.magic_dequantize.push_back(std::nullopt);
        parts.block = common_scale_block(parts.block, split.block);
      }
      if (parts.block != 0 && parts.block < kLeastBlock) return false;
      parts_.push_back(std::move(parts));
    }
    return true;
  }

  ExprId value_of(ExprId operand) const {
    return form_.dtype == DType::kInt8 ? without_conversion(pool_, operand) : operand;
  }

  bool is_held(ExprId value) const {
    return (form_.dtype != DType::kInt8 || !is_float(pool_[value].type)) && is_exact_in(pool_, value, form_.dtype);
  }

  // int8: the matrix has stored bytes or 4-bit integers. Other dtypes: any value that they represent exactly.
  bool is_multiplied(ExprId value) const {
    const ExprNode& n = pool_[value];
    const bool whole = n.op == ExprOp::kLoad && n.args[0] == kNoExpr && is_integer(n.dtype);
    return (form_.dtype != DType::kInt8 || (whole && (n.dtype == DType::kInt8 || bits(n.dtype) == 4))) &&
           is_held(value);
  }

  // A 16-bit dtype for all operands, if the contraction has none yet: for vectors, and for quantized values of up to 8
  // bits, which convert to float16 in fewer instructions.
  std::optional<DType> common_dtype() const {
    for (const DType dtype : {DType::kFloat16, DType::kBFloat16})
      if (std::ranges::all_of(contraction_.loops, [&](const ContractionLoop& loop) {
            const auto fits_all = [&](const std::vector<ExprId>& operands) {
              return std::ranges::all_of(operands, [&](ExprId operand) { return fits(operand, dtype); });
            };
            return fits_all(loop.left) && fits_all(loop.right);
          }))
        return dtype;
    return std::nullopt;
  }

  // True if the dtype represents the value, or if the graph rounds the value to it.
  bool fits(ExprId id, DType dtype) const {
    const ExprNode& n = pool_[id];
    if (n.op == ExprOp::kLoad || n.op == ExprOp::kRound)
      return n.dtype == dtype || (is_float(n.dtype) && bits(n.dtype) <= 8 &&
                                  (n.dtype != DType::kFloat8E8M0FNU || dtype == DType::kBFloat16));
    if (n.op == ExprOp::kConvert && quantized_of_integers(n.args[0])) return true;
    if (n.op == ExprOp::kMul && scaled_quantized(n.args[0], n.args[1], dtype)) return true;
    if (kernel_.exact_steps) return false;
    return std::ranges::any_of(kernel_.named, [&](const NamedExpr& named) {
      return named.expr == id && graph_.tensor(named.value).dtype == dtype;
    });
  }

  bool quantized_of_integers(ExprId id) const {
    const ExprNode& n = pool_[id];
    return n.op == ExprOp::kLoad && !is_float(n.dtype) && bits(n.dtype) <= 8;
  }

  // A power of two times a float with few bits.
  bool scaled_quantized(ExprId a, ExprId b, DType dtype) const {
    const auto is_load = [&](ExprId id, DType d) { return pool_[id].op == ExprOp::kLoad && pool_[id].dtype == d; };
    const auto is_pair = [&](ExprId code, ExprId scale) {
      return (is_load(code, DType::kFloat4E2M1FN) || is_load(code, DType::kFloat8E4M3FN)) &&
             is_load(scale, DType::kFloat8E8M0FNU);
    };
    return dtype == DType::kBFloat16 && (is_pair(a, b) || is_pair(b, a));
  }

  // Limits `max_k_per_lane_` so that values that are dequantized together have one scale.
  void keep_within_blocks(ExprId operand, const Axes& k) {
    for (const ExprId id : reachable(pool_, std::span(&operand, 1))) {
      if (pool_[id].op != ExprOp::kLoad) continue;
      const std::int64_t block = scale_block_of(pool_, id, k);
      if (block >= 8 && block < max_k_per_lane_ && max_k_per_lane_ % block == 0)
        max_k_per_lane_ = static_cast<int>(block);
    }
  }

  // Chooses the elements per lane: 16 bytes of the narrowest matrix.
  bool choose_width() {
    form_.k_per_lane = 8;
    const std::uint32_t column = contraction_.columns.back();
    sizes_ = {};
    max_k_per_lane_ = 32;
    for (std::size_t i = 0; i < contraction_.loops.size(); ++i) {
      const ContractionLoop& loop = contraction_.loops[i];
      int right_bits = 0, computed = 0;
      for (const ExprId operand : parts_[i].right) {
        const auto load =
            matrix_load(graph_, pool_, operand, form_.k_major ? loop.k.back() : column, contraction_.columns, loop.k);
        if (!load) return false;
        const int of_element = bits(pool_[*load].dtype);
        if (form_.k_major) form_.k_per_lane = std::max(form_.k_per_lane, 128 / of_element);
        if (form_.k_major) keep_within_blocks(operand, loop.k);
        right_bits += of_element;
        computed += *load != operand || bits(pool_[operand].dtype) < bits(form_.dtype);
      }
      sizes_.right_bits = std::max(sizes_.right_bits, right_bits);
      sizes_.computed_right = std::max(sizes_.computed_right, computed);
    }
    form_.k_per_lane = std::min(form_.k_per_lane, max_k_per_lane_);
    const auto divides = [&] {
      return std::ranges::all_of(contraction_.loops, [&](const ContractionLoop& l) {
        return proves_multiple_of(pool_.extent(l.k.back()), form_.k_per_lane, pool_.bounds());
      });
    };
    const auto within_blocks = [&] {
      return std::ranges::all_of(parts_, [&](const Parts& parts) { return parts.block % (4 * form_.k_per_lane) == 0; });
    };
    while (form_.k_per_lane > 8 && !(divides() && within_blocks())) form_.k_per_lane /= 2;
    form_.runs = runs_of_rows();
    if (!within_blocks()) return false;
    return divides() && (form_.k_major || proves_multiple_of(pool_.extent(column), 8, pool_.bounds()));
  }

  // The number of runs: a run has 16 bytes as operand. With few rows, loading each sector twice is faster than
  // exchanging runs between lanes.
  int runs_of_rows() const {
    constexpr double kBytesOfRequests = 32;  // bytes of requests per instruction that a multiprocessor issues
    const auto depends = dependences(pool_);
    int widest = 0;
    for (std::size_t i = 0; i < parts_.size(); ++i)
      for (const ExprId id : reachable(pool_, parts_[i].left))
        if (pool_[id].op == ExprOp::kLoad && std::ranges::binary_search(depends[id], contraction_.loops[i].k.back()))
          widest = std::max(widest, bits(pool_[id].dtype));
    const int runs = form_.k_per_lane * bits(form_.dtype) / 128;
    if (!form_.k_major || form_.k_per_lane * widest <= 128 || widest > bits(form_.dtype)) return 1;
    const double twice = count_at_hint(pool_, contraction_.rows) * 4 * form_.k_per_lane * widest / 8;
    return twice / kBytesOfRequests > 2 + 2 * runs * form_.n8_row_tiles() ? runs : 1;
  }

  // What the split follows: the values of rows, then the operands, scales and quantized values of each loop, in the
  // order in which take_loop() reads the copies.
  std::vector<ExprId> followed() const {
    std::vector<ExprId> follow = contraction_.row_values;
    for (const Parts& parts : parts_) {
      follow.insert(follow.end(), parts.left.begin(), parts.left.end());
      follow.insert(follow.end(), parts.right.begin(), parts.right.end());
      for (const auto& scales : parts.scales) follow.insert(follow.end(), scales.begin(), scales.end());
      for (const auto& magic_dequantize : parts.magic_dequantize) {
        if (!magic_dequantize) continue;
        follow.push_back(magic_dequantize->quantized);
        if (magic_dequantize->zero != kNoExpr) follow.push_back(magic_dequantize->zero);
      }
    }
    return follow;
  }

  bool split() {
    std::vector<ExprId> follow = followed();
    form_.loops.assign(contraction_.loops.size(), {});
    std::map<std::uint32_t, std::uint32_t> now;
    form_.kernel = change_axes(
        kernel_, [&](ExprPool& pool, ExprCopier& copier) { return split_axes(pool, copier, now); }, follow);
    const auto renamed = [&](const Axes& old) {
      Axes list;
      for (const std::uint32_t a : old) list.push_back(now.at(a));
      return list;
    };
    form_.batch = renamed(contraction_.batch);
    form_.rows = renamed(contraction_.rows);
    form_.columns = renamed(contraction_.columns);
    form_.unit_axes = renamed(contraction_.shared_rest);
    auto next = follow.cbegin() + static_cast<std::ptrdiff_t>(contraction_.row_values.size());
    form_.row_values_before = contraction_.row_values;
    form_.row_values.assign(follow.cbegin(), next);
    for (std::size_t i = 0; i < contraction_.loops.size(); ++i)
      if (!take_loop(i, next)) return false;
    if (form_.runs > 1) split_runs();
    return true;
  }

  // Sets the operands of a loop to the copies from `next` on. False if a matrix is not loaded by vectors, or if its
  // scales change within a lane's group of K.
  bool take_loop(std::size_t i, std::vector<ExprId>::const_iterator& next) {
    SkinnyGemmLoop& loop = form_.loops[i];
    const Parts& parts = parts_[i];
    loop.terms = contraction_.loops[i].terms;
    for (std::size_t n = 0; n < parts.left.size(); ++n, ++next)
      loop.left.push_back({*next, is_plain(*next, loop.member, form_.k_per_lane), {}});
    for (std::size_t n = 0; n < parts.right.size(); ++n, ++next) {
      loop.right.push_back(
          {*next,
           is_plain(*next, form_.k_major ? loop.member : form_.column_member, form_.k_major ? form_.k_per_lane : 8),
           {}});
      if (!streams(*next, loop)) return false;
    }
    for (std::size_t n = 0; n < parts.scales.size(); ++n)
      for (std::size_t scale = 0; scale < parts.scales[n].size(); ++scale) {
        if (varies_within(*next, loop.member)) return false;
        loop.right[n].scales.push_back(*next++);
      }
    loop.k_invariant_scales = parts.block == 0;
    for (SkinnyGemmOperand& f : loop.right) f.blockwise_zero = parts.blockwise_zeros && !loop.k_invariant_scales;
    for (std::size_t n = 0; n < parts.magic_dequantize.size(); ++n) {
      std::optional<MagicDequantize>& dequantize = loop.right[n].magic_dequantize;
      if (!(dequantize = parts.magic_dequantize[n])) continue;
      dequantize->quantized = *next++;
      if (dequantize->zero != kNoExpr) dequantize->zero = *next++;
    }
    return true;
  }

  // Splits the left operands' neighbours into runs. Reductions are one value per row and stay unchanged.
  void split_runs() {
    ExprPool& pool = form_.kernel.pool;
    const ExprPool before = pool;
    form_.run = pool.new_axis(form_.runs);
    form_.place = pool.new_axis(form_.run_length());
    for (SkinnyGemmLoop& loop : form_.loops) {
      ExprCopier copier(before, pool);
      for (std::uint32_t a = 0; a < before.bounds().axes.size(); ++a) copier.axis[a] = IndexExpr::axis(a);
      copier.axis[loop.member] = IndexExpr::axis(form_.run) * form_.run_length() + IndexExpr::axis(form_.place);
      copier.rewritten = [&](ExprId id, const ExprCopier::Copied&) {
        return before[id].op == ExprOp::kReduce ? id : kNoExpr;
      };
      for (SkinnyGemmOperand& f : loop.left) {
        f.operand = copier.copy(f.operand);
        f.plain = is_plain(f.operand, form_.place, form_.run_length());
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
      const bool in_vectors = !form_.k_major && a == contraction_.columns.back();
      now[a] = pool.new_axis(in_vectors ? simplify(floor_div(extent, 8), pool.bounds()) : extent);
      change.new_axes.push_back(now[a]);
      change.values.push_back(IndexExpr::axis(now[a]));
      if (!in_vectors) continue;
      form_.column_member = pool.new_axis(8);
      change.new_axes.push_back(form_.column_member);
      change.values.back() = IndexExpr::axis(now[a]) * 8 + IndexExpr::axis(form_.column_member);
    }
    for (std::size_t i = 0; i < contraction_.loops.size(); ++i) {
      const Axes& k = contraction_.loops[i].k;
      SkinnyGemmLoop& loop = form_.loops[i];
      for (const std::uint32_t a : k) {
        const bool last = a == k.back();
        loop.k.push_back(pool.new_axis(last ? simplify(floor_div(pool_.extent(a), form_.k_per_lane), pool.bounds())
                                            : pool_.extent(a)));
        copier.axis[a] = IndexExpr::axis(loop.k.back());
      }
      loop.member = pool.new_axis(form_.k_per_lane);
      copier.axis[k.back()] = IndexExpr::axis(loop.k.back()) * form_.k_per_lane + IndexExpr::axis(loop.member);
      Axes split = loop.k;
      split.push_back(loop.member);
      copier.reduction_axes[k] = split;
    }
    return change;
  }

  bool is_plain(ExprId operand, std::uint32_t member, int width) const {
    const ExprPool& pool = form_.kernel.pool;
    const ExprNode& n = pool[operand];
    return n.op == ExprOp::kLoad && n.args[0] == kNoExpr && n.dtype == form_.dtype &&
           !by_values(position_of(graph_, pool, operand)) && is_vector(graph_, pool, operand, member, width);
  }

  // True if the matrix is loaded by vectors after the split.
  bool streams(ExprId operand, const SkinnyGemmLoop& loop) const {
    const ExprPool& pool = form_.kernel.pool;
    const std::uint32_t member = form_.k_major ? loop.member : form_.column_member;
    const auto load = matrix_load(graph_, pool, operand, member, form_.columns, loop.k);
    return load && is_vector(graph_, pool, *load, member, form_.k_major ? form_.k_per_lane : 8);
  }

  const Graph& graph_;
  const Kernel& kernel_;
  const ExprPool& pool_;
  const Contraction& contraction_;
  const Target& target_;
  SkinnyGemmForm form_;
  std::vector<Parts> parts_;  // per loop
  int max_k_per_lane_ = 32;   // elements with one scale
  SkinnyGemmSizes sizes_;
};

}  // namespace

std::int64_t shared_bytes_of_runs(const SkinnyGemmForm& form) {
  return form.runs > 1 ? 16 * 8 * form.n8_row_tiles() * (4 * form.runs + 4) : 0;
}

std::int64_t shared_bytes(const SkinnyGemmForm& form) {
  const std::int64_t accumulators =
      std::int64_t{4} * form.accumulators * 8 * form.n8_row_tiles() * (form.block.columns + 8);
  return form.block.warps * std::max(accumulators, shared_bytes_of_runs(form));
}

std::optional<SkinnyGemmForm> find_skinny_gemm(const Graph& graph, const Kernel& kernel, const Contraction& contraction,
                                               const Target& target) {
  return SkinnyGemmFinder(graph, kernel, contraction, target).find();
}

}  // namespace fusec
