// Every built-in pattern takes its example (examples/*.txt) and leaves what is made of it mechanically (mutations.h),
// saying why. What it may take all the same is listed with the example, and means the same as before.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "fusec/error.h"
#include "schedule/target/target.h"
#include "support/canonicalized.h"
#include "transforms/patterns/library_patterns.h"
#include "transforms/patterns/match.h"
#include "transforms/patterns/mutations.h"
#include "transforms/patterns/near_misses.h"
#include "transforms/patterns/recognized.h"

using namespace fusec;
using namespace fusec::test;

namespace {

// All built-in patterns, those of libraries with what the library has.
const PatternList& all_patterns() {
  static const PatternList list =
      with_library_patterns(ordered(listed(builtin_pattern_table())), Gemm::kCublasLt, target_for("sm_90"), false);
  return list;
}

// The line that makes the value, without its type.
std::string line_of(const Graph& graph, const std::string& value) {
  const std::string text = graph_text(graph);
  const std::size_t at = text.find("\n" + value + ": ");
  return at == std::string::npos ? "" : text.substr(at, text.find('\n', at + 1) - at);
}

std::set<std::string> names_of(const Graph& graph, const std::vector<NodeId>& nodes) {
  std::set<std::string> names;
  for (const NodeId n : nodes) names.insert(graph.nodes[n].name);
  return names;
}

// Does the pattern, alone, take all these nodes? Where it rewrites them, the model must mean the same.
bool takes(const ListedPattern& pattern, const Graph& graph, const std::set<std::string>& nodes,
           const std::string& root) {
  CanonicalGraph canonical = canonical_of(graph);
  if (pattern->becomes == Becomes::kRewrite) {
    recognize_patterns(canonical, {pattern});
    CHECK(first_problem(canonical.graph) == "");
    if (line_of(canonical.graph, root) == line_of(graph, root)) return false;
    const auto inputs = random_inputs(graph, 1);
    const std::vector<HostTensor> got = outputs_of(canonical.graph, inputs), want = outputs_of(graph, inputs);
    REQUIRE(got.size() == want.size());
    for (std::size_t i = 0; i < got.size(); ++i) check_near(got[i], want[i]);
    return true;
  }
  const std::vector<PatternClaim> claims = claim_patterns(canonical, {pattern});
  CHECK(first_problem(canonical.graph) == "");
  return std::ranges::any_of(claims, [&](const PatternClaim& claim) {
    const std::set<std::string> names = names_of(canonical.graph, claim.nodes);
    return std::ranges::includes(names, nodes);
  });
}

// The example's match: of its last output's node.
std::optional<PatternMatch> match_in(const ListedPattern& pattern, const Graph& graph, const std::string& root) {
  const SearchedGraph searched(graph);
  const NodeId n = graph.find_node(root);
  return n == kNone ? std::nullopt : match_pattern(searched, *pattern, n);
}

void check_example(const ListedPattern& pattern, const PatternExample& example) {
  const Graph graph = graph_of(example.model);
  const std::string& root = example.model.outputs.back();
  const std::optional<PatternMatch> match = match_in(pattern, graph, root);
  CHECK_MESSAGE(match, "the example does not match");
  if (!match) return;
  const std::set<std::string> nodes = names_of(graph, match->nodes);
  CHECK(takes(pattern, graph, nodes, root));
  std::set<std::string> still;
  std::string silent;
  for (const Mutation& mutation : mutations_of(example.model, graph, *match)) {
    CAPTURE(mutation.name);
    const Graph changed = graph_of(mutation.model);
    if (takes(pattern, changed, nodes, root)) {
      still.insert(mutation.name);
      continue;
    }
    if (match_in(pattern, changed, root)) continue;  // fewer nodes, of which the changed one is none
    if (near_misses(changed, {pattern}, {}, {changed.find_node(root)}).empty()) silent += mutation.name + ", ";
  }
  CHECK_MESSAGE(still == example.still, fmt::format("{} takes: {}", pattern->name, fmt::join(still, ", ")));
  CHECK_MESSAGE(silent == "", fmt::format("{} does not say why not: {}", pattern->name, silent));
}

}  // namespace

TEST_CASE("every built-in pattern takes its examples, and nothing that is made of them by a change that matters") {
  const auto examples = pattern_examples();
  CHECK(examples.size() == all_patterns().size());
  for (const ListedPattern& pattern : all_patterns()) {
    CAPTURE(pattern->name);
    const auto found = examples.find(pattern->name);
    CHECK_MESSAGE(found != examples.end(), "no example in tests/transforms/patterns/examples");
    if (found == examples.end()) continue;
    for (const PatternExample& example : found->second) check_example(pattern, example);
  }
}
