#include "transforms/patterns/library_patterns.h"

#include <algorithm>

#include "analysis/matrix_call.h"
#include "ir/type.h"

namespace fusec {
namespace {

double rate_of(const MatrixCall& call, const Target& target) {
  if (call.compute == MatrixCompute::kFloat64) return target.float64_rate;
  if (bits(call.a.dtype) == 8) return target.float8_rate;
  return bits(call.a.dtype) == 16 ? target.float16_rate : target.float32_rate;
}

// Does the library's call take less time than a kernel of our own, which could take along what reads the result? The
// library comes nearer to the peak; the result then goes through memory once more.
bool is_predicted_faster(const MatrixCall& call, const SearchedGraph& searched, const Target& target) {
  constexpr double kLibraryShare = 0.85, kOwnShare = 0.4;  // of the peak rate
  const Graph& graph = searched.graph;
  const auto at_hint = [&](const IndexExpr& e) { return static_cast<double>(value_at_hint(e, graph.symbols)); };
  const double operations = 2 * at_hint(call.m) * at_hint(call.n) * at_hint(call.k) * at_hint(call.batch);
  double bytes = 0;
  for (const ValueId v : reads_of(call)) bytes += static_cast<double>(bytes_at_hint(graph.tensor(v), graph.symbols));
  const auto result = static_cast<double>(bytes_at_hint(graph.tensor(call.d.value), graph.symbols));
  bytes += result;
  const bool is_taken_along = std::ranges::any_of(searched.uses.of(call.d.value), [&](NodeId reader) {
    return graph.nodes[reader].op->formula && graph.nodes[reader].op->family != "matrix";
  });
  const auto seconds = [&](double share, double moved) {
    return std::max(operations / (share * rate_of(call, target)), moved / target.bandwidth);
  };
  const double library =
      seconds(kLibraryShare, bytes) + (is_taken_along ? target.launch_seconds + 2 * result / target.bandwidth : 0);
  return library < seconds(kOwnShare, bytes);
}

}  // namespace

std::optional<Gemm> parse_gemm(std::string_view text) {
  if (text == "builtin") return Gemm::kBuiltin;
  if (text == "cublaslt") return Gemm::kCublasLt;
  if (text == "auto") return Gemm::kAuto;
  return std::nullopt;
}

void choose_library_patterns(std::vector<FusionPattern>& patterns, Gemm gemm, const Target& target,
                             bool round_intermediates) {
  const auto is_library = [](const FusionPattern& p) { return p.becomes == Becomes::kLibrary; };
  // A user's own stay, to say why nothing comes of them.
  if (gemm == Gemm::kBuiltin)
    std::erase_if(patterns, [&](const FusionPattern& p) { return is_library(p) && is_builtin(p); });
  for (FusionPattern& pattern : patterns) {
    if (!is_library(pattern)) continue;
    if (gemm == Gemm::kBuiltin) {
      pattern.check = [](const PatternCheckContext&) {
        return std::string("--gemm=builtin calls no library: --gemm=cublaslt and --gemm=auto do");
      };
      continue;
    }
    pattern.check = [gemm, target, round_intermediates, own = pattern.check](const PatternCheckContext& context) {
      const SearchedGraph& searched = context.searched;
      const std::vector<NodeId>& nodes = context.match.nodes;
      const MatrixCallAnswer answer =
          find_matrix_call(searched.graph, nodes, needed_of(searched.graph, searched.uses, searched.is_output, nodes),
                           target, round_intermediates);
      if (!answer.call) return answer.why_not;
      if (gemm == Gemm::kAuto && !is_predicted_faster(*answer.call, searched, target))
        return std::string("a kernel of our own is predicted to take less time");
      return own ? own(context) : "";
    };
  }
}

}  // namespace fusec
