#include "analysis/product_code.h"

#include <algorithm>

#include "analysis/convolution_form.h"
#include "analysis/few_rows_form.h"
#include "analysis/gemm_form.h"
#include "analysis/operation_work.h"
#include "analysis/warpgroup_gemm_form.h"

namespace fusec {
namespace {

constexpr double kCodeOfFewRows = 1.5, kTiles = 1.75, kGathered = 2.6;
constexpr double kSum = 0.5, kInLanes = 0.55, kFunctions = 0.5, kFunction = 0.35, kOutput = 0.25;
// Of functions of much code, which warpgroups cannot call.
constexpr double kMuchCode = 1.0 / 25, kMuchCodeByWarpgroup = 1.0 / 12;
constexpr double kComputed = 1.25, kComputedByWarpgroup = 2, kAcross = 0.5, kAcrossFewRows = 3.5;
constexpr double kWideTiles = 1.6, kComputedInWide = 1;
constexpr int kWideTile = 256;  // columns

bool is_function(ExprOp op) {
  return (op >= ExprOp::kExp && op <= ExprOp::kSigmoid) || op == ExprOp::kPow || op == ExprOp::kDiv;
}

// Of what is computed behind the sums, and stored.
double code_behind(const Kernel& kernel, double much_code) {
  constexpr int kSome = 8, kMuch = 13;  // instructions
  const ExprPool& pool = kernel.pool;
  bool any = false;
  int some = 0, much = 0;
  std::vector<ExprId> queue = roots_of(kernel);
  std::vector<std::uint8_t> seen(pool.size(), 0);
  for (std::size_t next = 0; next < queue.size(); ++next) {
    const ExprNode& n = pool[queue[next]];
    any = any || is_function(n.op);
    const int code = code_of(n);
    if (code > kMuch) much += code;
    if (code >= kSome && code <= kMuch) ++some;
    if (n.op == ExprOp::kReduce) continue;
    for (const ExprId a : n.args)
      if (a != kNoExpr && seen[a]++ == 0) queue.push_back(a);
  }
  return std::max(any ? kFunctions : 0, kFunction * some) + much_code * much +
         kOutput * static_cast<double>(kernel.outputs.size() - 1);
}

// Of sums and what stands behind them.
double code_of_sums(const Kernel& kernel, const Product& product, double much_code = kMuchCode) {
  return kSum * static_cast<double>(term_count(product) - 1) + code_behind(kernel, much_code);
}

double code_of_factors(const GemmForm& form, double computed) {
  double code = 0;
  for (const GemmLoop& loop : form.loops)
    for (const auto* factors : {&loop.left, &loop.right})
      for (const GemmOperand& f : *factors)
        if (f.computed()) code += computed + (f.along_depth ? 0 : kAcross);
  return code;
}

// Lanes multiply all that a thread has of the sums, written out.
double code_in_lanes(const GemmForm& form) {
  if (form.tensor_cores()) return 0;
  const double sixteens = form.tiles.warp_rows * form.tiles.warp_columns / 32.0 / 16;
  return kInLanes * form.sums * std::max(0.0, sixteens - 1);
}

// What is computed of a factor as the graph has it: more than a load that is rounded or guarded.
bool is_computed(const ExprPool& pool, ExprId factor) {
  const ExprNode& n = pool[factor];
  if (n.op == ExprOp::kRound) return pool[n.args[0]].op != ExprOp::kLoad || bits(pool[n.args[0]].dtype) < 16;
  if (n.op == ExprOp::kSelect) return is_computed(pool, n.args[1]);
  return n.op != ExprOp::kLoad;
}

// Do neighbours of a load that the factor is made of lie across the depth?
bool lies_across(const ExprPool& pool, ExprId factor, const std::vector<std::uint32_t>& depth) {
  return std::ranges::any_of(reachable(pool, std::span(&factor, 1)), [&](ExprId id) {
    const ExprNode& n = pool[id];
    if (n.op != ExprOp::kLoad || bits(n.dtype) >= 16 || n.indices.empty()) return false;
    return std::ranges::none_of(variables_of(n.indices.back()), [&](const Variable& v) {
      return v.kind == Variable::Kind::kAxis && std::ranges::find(depth, v.id) != depth.end();
    });
  });
}

}  // namespace

ProductCode few_rows_code(const Kernel& kernel, const Product& product, const FewRowsForm& form) {
  double computed = 0;
  for (const FewRowsLoop& loop : form.loops)
    for (const auto* factors : {&loop.left, &loop.right})
      for (const FewRowsFactor& f : *factors) computed += f.plain ? 0 : kComputed;
  for (const ProductLoop& loop : product.loops)
    for (const auto* factors : {&loop.left, &loop.right})
      for (const ExprId factor : *factors)
        if (lies_across(kernel.pool, factor, loop.depth)) computed += kAcrossFewRows;
  return {kCodeOfFewRows + code_of_sums(kernel, product) + computed};
}

ProductCode product_code(const Graph& graph, const Kernel& kernel, const FormOfKernel& form, const Target& target) {
  if (!form.product) return {};
  const Kernel& shaped = form.rewritten ? *form.rewritten : kernel;
  const Product& product = *form.product;
  if (const auto few = find_few_rows(graph, shaped, product, target)) return few_rows_code(shaped, product, *few);
  const double sums = code_of_sums(shaped, product);
  const auto gemm = find_gemm(graph, shaped, product, target);
  if (!gemm) return {kGathered + sums};
  const WarpgroupCandidate candidate{&shaped, &product, &*gemm};
  const std::vector<WarpgroupGemmForm> forms = find_warpgroup_gemms({&candidate, 1}, target);
  if (forms.empty()) return {kTiles + sums + code_of_factors(*gemm, kComputed) + code_in_lanes(*gemm)};
  const double own =
      kTiles + code_of_sums(shaped, product, kMuchCodeByWarpgroup) + code_of_factors(*gemm, kComputedByWarpgroup);
  const bool is_computed = code_of_factors(*gemm, kComputed) > 0;
  return {own, is_computed ? kComputedInWide : 0, forms[0].tiles.columns == kWideTile ? kWideTiles : 0};
}

bool is_too_much_code(const ExprPool& pool, const Product& product) {
  const std::size_t sums = term_count(product);
  double code = kTiles + kSum * static_cast<double>(sums - 1);
  for (const ProductLoop& loop : product.loops)
    for (const auto* factors : {&loop.left, &loop.right})
      for (const ExprId factor : *factors)
        if (is_computed(pool, factor)) code += kComputed + (lies_across(pool, factor, loop.depth) ? kAcross : 0);
  return sums > 2 && code > kMostCode;
}

}  // namespace fusec
