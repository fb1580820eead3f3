#include "schedule/gemm/contraction_code_size.h"

#include <algorithm>

#include "analysis/kernel/operation_work.h"
#include "schedule/gemm/warpgroup_gemm_form.h"

namespace fusec {
namespace {

constexpr double kCodeOfSkinnyGemm = 1.5, kTiles = 1.75, kGathered = 2.6;
constexpr double kSum = 0.5, kInLanes = 0.55, kFunctions = 0.5, kFunction = 0.35, kOutput = 0.25;
// For large functions. Warpgroup kernels cannot call them, so they are inlined there.
constexpr double kMuchCode = 1.0 / 25, kMuchCodeByWarpgroup = 1.0 / 12;
constexpr double kComputed = 1.25, kComputedByWarpgroup = 2, kAcross = 0.5, kAcrossSkinnyGemm = 3.5;
constexpr double kWideTiles = 1.6, kComputedInWide = 1;
constexpr int kWideTile = 256;  // columns

bool is_function(ExprOp op) {
  return (op >= ExprOp::kExp && op <= ExprOp::kSigmoid) || op == ExprOp::kPow || op == ExprOp::kDiv;
}

// The code size of the epilogue and its stores.
double epilogue_code(const Kernel& kernel, double much_code) {
  constexpr int kSome = 8, kMuch = 13;  // instructions
  const ExprPool& pool = kernel.pool;
  bool any = false;
  int some = 0, much = 0;
  std::vector<ExprId> queue = roots_of(kernel);
  std::vector<std::uint8_t> seen(pool.size(), 0);
  for (std::size_t next = 0; next < queue.size(); ++next) {
    const ExprNode& n = pool[queue[next]];
    any = any || is_function(n.op);
    const int code = instruction_count(n);
    if (code > kMuch) much += code;
    if (code >= kSome && code <= kMuch) ++some;
    if (n.op == ExprOp::kReduce) continue;
    for (const ExprId a : n.args)
      if (a != kNoExpr && seen[a]++ == 0) queue.push_back(a);
  }
  return std::max(any ? kFunctions : 0, kFunction * some) + much_code * much +
         kOutput * static_cast<double>(kernel.outputs.size() - 1);
}

// The code size of accumulators and epilogue.
double code_of_accumulators(const Kernel& kernel, const Contraction& contraction, double much_code = kMuchCode) {
  return kSum * static_cast<double>(term_count(contraction) - 1) + epilogue_code(kernel, much_code);
}

double code_of_operands(const GemmForm& form, double transformed) {
  double code = 0;
  for (const GemmLoop& loop : form.loops)
    for (const auto* operands : {&loop.left, &loop.right})
      for (const GemmOperand& f : *operands)
        if (f.transformed()) code += transformed + (f.k_major ? 0 : kAcross);
  return code;
}

// Without tensor cores, the multiply-adds of all accumulators of a thread are unrolled.
double code_in_lanes(const GemmForm& form) {
  if (form.tensor_cores()) return 0;
  const double sixteens = form.tiles.warp_rows * form.tiles.warp_columns / 32.0 / 16;
  return kInLanes * form.accumulators * std::max(0.0, sixteens - 1);
}

// True if the operand is more than a load with rounding or guards.
bool is_computed(const ExprPool& pool, ExprId operand) {
  const ExprNode& n = pool[operand];
  if (n.op == ExprOp::kRound) return pool[n.args[0]].op != ExprOp::kLoad || bits(pool[n.args[0]].dtype) < 16;
  if (n.op == ExprOp::kSelect) return is_computed(pool, n.args[1]);
  return n.op != ExprOp::kLoad;
}

// True if the operand has a load that is not contiguous along K.
bool is_contiguous_across_k(const ExprPool& pool, ExprId operand, const std::vector<std::uint32_t>& k) {
  return std::ranges::any_of(reachable(pool, std::span(&operand, 1)), [&](ExprId id) {
    const ExprNode& n = pool[id];
    if (n.op != ExprOp::kLoad || bits(n.dtype) >= 16 || n.indices.empty()) return false;
    return std::ranges::none_of(variables_of(n.indices.back()), [&](const Variable& v) {
      return v.kind == Variable::Kind::kAxis && std::ranges::find(k, v.id) != k.end();
    });
  });
}

}  // namespace

ContractionCodeSize skinny_gemm_code_size(const Kernel& kernel, const Contraction& contraction,
                                          const SkinnyGemmForm& form) {
  double transformed = 0;
  for (const SkinnyGemmLoop& loop : form.loops)
    for (const auto* operands : {&loop.left, &loop.right})
      for (const SkinnyGemmOperand& f : *operands) transformed += f.plain ? 0 : kComputed;
  for (const ContractionLoop& loop : contraction.loops)
    for (const auto* operands : {&loop.left, &loop.right})
      for (const ExprId operand : *operands)
        if (is_contiguous_across_k(kernel.pool, operand, loop.k)) transformed += kAcrossSkinnyGemm;
  return {kCodeOfSkinnyGemm + code_of_accumulators(kernel, contraction) + transformed};
}

ContractionCodeSize contraction_code_size(const Kernel& shaped, const Contraction& contraction, const GemmForm* gemm,
                                          const Target& target) {
  const double accumulators = code_of_accumulators(shaped, contraction);
  if (!gemm) return {kGathered + accumulators};
  const WarpgroupCandidate candidate{&shaped, &contraction, gemm};
  const std::vector<WarpgroupGemmForm> forms = find_warpgroup_gemms({&candidate, 1}, target);
  if (forms.empty()) return {kTiles + accumulators + code_of_operands(*gemm, kComputed) + code_in_lanes(*gemm)};
  const double own = kTiles + code_of_accumulators(shaped, contraction, kMuchCodeByWarpgroup) +
                     code_of_operands(*gemm, kComputedByWarpgroup);
  const bool is_computed = code_of_operands(*gemm, kComputed) > 0;
  return {own, is_computed ? kComputedInWide : 0, forms[0].tiles.columns == kWideTile ? kWideTiles : 0};
}

bool exceeds_code_size(const ExprPool& pool, const Contraction& contraction) {
  const std::size_t accumulators = term_count(contraction);
  double code = kTiles + kSum * static_cast<double>(accumulators - 1);
  for (const ContractionLoop& loop : contraction.loops)
    for (const auto* operands : {&loop.left, &loop.right})
      for (const ExprId operand : *operands)
        if (is_computed(pool, operand))
          code += kComputed + (is_contiguous_across_k(pool, operand, loop.k) ? kAcross : 0);
  return accumulators > 2 && code > kMaxCodeSize;
}

}  // namespace fusec
