// Recognition and claims take the same time for a node of a large graph as for one of a small graph. The bound is wide:
// what is quadratic misses it, a busy machine does not.
#include <doctest/doctest.h>

#include <ctime>

#include "ir/read.h"
#include "support/canonicalized.h"
#include "transforms/patterns/builtin_patterns.h"
#include "transforms/patterns/claim.h"
#include "transforms/patterns/pattern_list.h"
#include "transforms/patterns/pattern_text.h"
#include "transforms/patterns/recognize.h"

using namespace fusec;

namespace {

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Layers as an exporter writes them: a norm, gate and up, silu by its sigmoid, a product back, a residual.
Graph layers(int nodes) {
  std::string text;
  int count = 0;
  const auto add = [&](const std::string& op, const std::string& operands, const std::string& attributes = "{}") {
    const std::string name = "n" + std::to_string(count++);
    text += (text.empty() ? "" : ",") + (R"({"name":")" + name + R"(","op":")" + op + R"(","inputs":[)" + operands) +
            R"(],"attrs":)" + attributes + "}";
    return "\"" + name + "\"";
  };
  std::string x = "\"x\"";
  const auto linear = [&](const std::string& of) {
    return add("matmul", of + "," + add("transpose", "\"w\"", R"({"dim0":0,"dim1":1})"));
  };
  while (count < nodes) {
    const std::string mean = add("mean", add("pow", x + ",2"), R"({"dim":[1],"keepdim":true})");
    const std::string h = add("mul", x + "," + add("rsqrt", add("add", mean + ",1e-5")));
    const std::string gate = linear(h), up = linear(h);
    const std::string act = add("mul", gate + "," + add("sigmoid", gate));
    x = add("add", x + "," + linear(add("mul", act + "," + up)));
  }
  return read_model_text(
      R"({"fusec":1,"inputs":[{"name":"x","dtype":"float32","shape":[8,8]}],"constants":[{"name":"w",)"
      R"("dtype":"float32","shape":[8,8]}],"nodes":[)" +
          text + R"(],"outputs":[)" + x + "]}",
      "layers.json", ".");
}

double seconds_a_node(int nodes) {
  std::vector<FusionPattern> patterns = builtin_patterns();
  std::erase_if(patterns, [](const FusionPattern& p) { return p.becomes == Becomes::kLibrary; });
  const PatternList list = ordered(std::move(patterns));
  CanonicalGraph canonical = canonicalized(layers(nodes));
  const auto count = static_cast<double>(canonical.graph.nodes.size());
  const double start = cpu_seconds();
  recognize_patterns(canonical, list);
  const std::vector<PatternClaim> claims = claim_patterns(canonical, list);
  const double seconds = cpu_seconds() - start;
  CHECK(claims.size() > static_cast<std::size_t>(nodes) / 20);
  return seconds / count;
}

}  // namespace

TEST_CASE("patterns take linear time") {
  seconds_a_node(2000);  // what is read and allocated once
  CHECK(seconds_a_node(100'000) < 3 * seconds_a_node(10'000) + 1e-6);
}
