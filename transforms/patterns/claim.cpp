#include "transforms/patterns/claim.h"

#include <optional>

#include "transforms/patterns/claiming.h"
#include "transforms/patterns/merge_claims.h"
#include "transforms/patterns/pattern_roots.h"

namespace fusec {

std::vector<PatternClaim> claim_patterns(CanonicalGraph& canonical, const PatternList& patterns,
                                         const ClaimLimits& limits, TrialMemory* memory) {
  TrialMemory own;
  const PatternRoots roots(canonical.graph);
  std::optional<Claiming> claiming;
  for (const ListedPattern& pattern : patterns) {
    if (!claims_nodes(pattern.becomes())) continue;
    const std::vector<NodeId> nodes = roots.of(pattern);
    if (nodes.empty()) continue;
    if (!claiming) claiming.emplace(canonical.graph, limits, memory ? *memory : own);
    claiming->run(*pattern, nodes);
  }
  if (!claiming) return {};
  const std::vector<std::uint32_t> claim_of = claiming->claim_of();
  std::vector<PatternClaim> claims = std::move(*claiming).claims();
  if (!claims.empty()) merge_claims(canonical, claims, claim_of);
  return claims;
}

}  // namespace fusec
