#include "transforms/patterns/library_patterns.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "analysis/constant_nodes.h"
#include "ir/type.h"
#include "schedule/lowering/cublaslt_call.h"
#include "schedule/lowering/cublaslt_call_cost.h"
#include "schedule/lowering/launch_cost.h"

namespace fusec {
namespace {

// Whether the library call is predicted to be faster than a generated kernel, which could fuse the readers of the
// result as its epilogue.
bool is_predicted_faster(const CublasLtCall& call, const PatternCheckContext& context,
                         const std::vector<ValueId>& outputs, const Target& target) {
  const Graph& graph = context.graph();
  double library = predict(graph, call, target).total;
  const bool is_taken_along = std::ranges::any_of(context.searched.uses.of(call.d.value), [&](NodeId reader) {
    return graph.nodes[reader].op->formula && graph.nodes[reader].op->family != "matrix";
  });
  const auto result = static_cast<double>(bytes_at_hint(graph.tensor(call.d.value), graph.symbols));
  if (is_taken_along) library += predict_pass(result, result, target).total;
  return library < predict(graph, context.match.nodes, outputs, true, target).total;
}

constexpr const char* kOwnIsFaster = "a kernel of our own is predicted to take less time";

// Fills `call` with the integer product of static_quant_linear(x, w, ...). Returns why there is none, "" if there is.
// Scales, bias and the correction for a zero point follow the call in other kernels.
std::string find_integer_product(const Graph& graph, const Node& node, CublasLtCall& call) {
  constexpr std::int64_t kDeepest = 131071;  // largest K whose int8 products surely fit an int32 accumulator
  const Shape& x = graph.tensor(node.inputs[0]).shape;
  const Shape& w = graph.tensor(node.inputs[1]).shape;
  const Bounds bounds = graph.bounds();
  call.k = w[1];
  call.m = w[0];
  for (std::size_t d = 0; d + 1 < x.size(); ++d) call.n *= x[d];
  for (const IndexExpr* size : {&call.m, &call.k})
    if (!proves_multiple_of(*size, 4, bounds)) return "cuBLASLt multiplies int8 in sizes of a multiple of 4";
  if (node.inputs.size() > 4 && node.inputs[4] != kNone && !is_made_of_constants(graph, node.inputs[1]))
    return "what the offset takes from the product is known from constant weights alone";
  const auto depth = range_of(call.k, bounds);
  if (depth.min < 1 || depth.max > kDeepest) return "its sums may leave int32, or there are none";
  call.a = {.value = node.inputs[1], .dtype = DType::kInt8, .rows = call.k, .columns = call.m};
  call.b = {.value = node.inputs[0], .dtype = DType::kInt8, .rows = call.k, .columns = call.n};
  call.d = {.dtype = DType::kInt32, .rows = call.m, .columns = call.n};
  call.compute = CublasLtCompute::kInt32;
  return "";
}

std::string why_no_integer_product(const PatternCheckContext& context, bool must_be_faster, const Target& target) {
  const Graph& graph = context.graph();
  const Node& node = graph.nodes[context.match.root];
  CublasLtCall call;
  call.n = 1;
  if (std::string why = find_integer_product(graph, node, call); !why.empty()) return why;
  if (!must_be_faster) return "";
  const auto result = static_cast<double>(bytes_at_hint(graph.tensor(node.first_output), graph.symbols));
  const double sums = static_cast<double>(value_at_hint(call.m * call.n, graph.symbols)) * 4;
  const double library = predict(graph, call, target).total + predict_pass(sums, result, target).total;
  return library < predict(graph, {context.match.root}, {node.first_output}, true, target).total ? "" : kOwnIsFaster;
}

// Whether a built-in rewriting pattern serves a library; its name begins with the library's name.
bool is_rewrite_for_library(const ListedPattern& p) {
  return p.becomes() == Becomes::kRewrite && p.name().starts_with("cublaslt.") && p.is_builtin();
}

using Check = std::function<std::string(const PatternCheckContext&)>;

// The check of a pattern that becomes a library call. `own` is the check that it had.
Check library_check(Gemm gemm, const Target& target, bool round_intermediates, Check own) {
  if (gemm == Gemm::kBuiltin)
    return [](const PatternCheckContext&) {
      return std::string("--gemm=builtin calls no library: --gemm=cublaslt and --gemm=auto do");
    };
  return [gemm, target, round_intermediates, own = std::move(own)](const PatternCheckContext& context) {
    const SearchedGraph& searched = context.searched;
    const std::vector<NodeId>& nodes = context.match.nodes;
    const std::vector<ValueId> outputs = needed_of(searched.graph, searched.uses, searched.is_output, nodes);
    const CublasLtMatch answer = find_cublaslt_call(searched.graph, nodes, outputs, target, round_intermediates);
    if (!answer.call) return answer.why_not;
    if (gemm == Gemm::kAuto && !is_predicted_faster(*answer.call, context, outputs, target))
      return std::string(kOwnIsFaster);
    return own ? own(context) : "";
  };
}

}  // namespace

std::optional<Gemm> parse_gemm(std::string_view text) {
  if (text == "builtin") return Gemm::kBuiltin;
  if (text == "cublaslt") return Gemm::kCublasLt;
  if (text == "auto") return Gemm::kAuto;
  return std::nullopt;
}

PatternList with_library_patterns(PatternList patterns, Gemm gemm, const Target& target, bool round_intermediates) {
  const auto is_library = [](const ListedPattern& p) { return p.becomes() == Becomes::kLibrary; };
  // A user's library patterns stay, to say why they match nothing.
  if (gemm == Gemm::kBuiltin)
    std::erase_if(patterns, [&](const ListedPattern& p) {
      return (is_library(p) && p.is_builtin()) || is_rewrite_for_library(p);
    });
  for (ListedPattern& listed : patterns) {
    if (!is_library(listed) && !is_rewrite_for_library(listed)) continue;
    FusionPattern pattern = *listed;
    if (is_library(listed))
      pattern.check = library_check(gemm, target, round_intermediates, std::move(pattern.check));
    else
      pattern.check = [must_be_faster = gemm == Gemm::kAuto, target](const PatternCheckContext& context) {
        return why_no_integer_product(context, must_be_faster, target);
      };
    listed = ListedPattern(std::move(pattern));
  }
  return patterns;
}

}  // namespace fusec
