// What is taken from the memory of matches is what a search finds: on graphs of few kinds of layers in random order,
// with operands that are now the same value and now another, values that all layers read, outputs in the middle, and
// nodes that are taken while the search goes on.
#include "transforms/patterns/match_memory.h"

#include <doctest/doctest.h>

#include "ir/read.h"
#include "support/random_graph.h"
#include "transforms/patterns/builtin_patterns.h"
#include "transforms/patterns/pattern_list.h"
#include "transforms/patterns/pattern_roots.h"
#include "transforms/patterns/pattern_text.h"

using namespace fusec;

namespace {

class Layers {
 public:
  explicit Layers(std::uint64_t seed) : random_(seed) {}

  Graph read(int layers) {
    constants_ = R"({"name":"shared","dtype":"float32","shape":[8,8]})";
    std::string x = "x";
    for (layer_ = 0; layer_ < layers; ++layer_) {
      x = layer(x);
      if (random_.chance(10)) outputs_ += "\"" + x + "\",";
    }
    return read_model_text(R"({"fusec":1,"inputs":[{"name":"x","dtype":"float32","shape":[8,8]}],"constants":[)" +
                               constants_ + R"(],"nodes":[)" + nodes_ + R"(],"outputs":[)" + outputs_ + "\"" + x +
                               "\"]}",
                           "layers.json", ".");
  }

 private:
  std::string add(const std::string& op, const std::string& operands, const std::string& attributes = "{}") {
    const std::string name = "n" + std::to_string(count_++);
    nodes_ += (nodes_.empty() ? "" : ",") +
              (R"({"name":")" + name + R"(","op":")" + op + R"(","inputs":[)" + operands) + R"(],"attrs":)" +
              attributes + "}";
    return name;
  }
  static std::string two(const std::string& a, const std::string& b) { return "\"" + a + "\",\"" + b + "\""; }
  static std::string one(const std::string& a) { return "\"" + a + "\""; }
  std::string weight() {
    if (random_.chance(20)) return "shared";
    const std::string name = "w" + std::to_string(layer_) + "_" + std::to_string(count_);
    constants_ += R"(,{"name":")" + name + R"(","dtype":"float32","shape":[8,8]})";
    return name;
  }

  std::string layer(const std::string& x) {
    switch (random_.below(5)) {
      case 0: {  // gate and up; the gate is now and then another value in the product than in the sigmoid
        const std::string gate = add("linear", two(x, weight())), up = add("linear", two(x, weight()));
        const std::string other = random_.chance(30) ? up : gate;
        return add("mul", two(add("mul", two(gate, add("sigmoid", one(other)))), up));
      }
      case 1:
        return add("add", two(add("relu", one(add("linear", two(x, weight())))), random_.chance(50) ? x : "shared"));
      case 2: {
        const std::string mean = add("mean", one(add("pow", one(x) + ",2")), R"({"dim":[1],"keepdim":true})");
        return add("mul", two(x, add("rsqrt", one(add("add", one(mean) + ",1e-5")))));
      }
      case 3:
        return add("maximum", one(x) + (random_.chance(50) ? ",0" : ",1"));
      default:
        return add("matmul", two(x, add("transpose", one(weight()), R"({"dim0":0,"dim1":1})")));
    }
  }

  test::Random random_;
  std::string nodes_, constants_, outputs_;
  int count_ = 0, layer_ = 0;
};

bool same(const std::optional<PatternMatch>& a, const std::optional<PatternMatch>& b) {
  if (!a || !b) return a.has_value() == b.has_value();
  return a->root == b->root && a->nodes == b->nodes && a->values == b->values && a->attributes == b->attributes;
}

}  // namespace

TEST_CASE("remembered matches are those that a search finds") {
  const PatternList patterns = ordered(builtin_patterns());
  std::size_t matches = 0, remembered_matches = 0, remembered_misses = 0;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    const Graph graph = Layers(seed).read(400);
    const PatternRoots roots(graph);
    test::Random random(seed);
    SearchedGraph searched(graph);
    NodeLooks looks(searched);
    for (const auto& pattern : patterns) {
      MatchMemory memory(searched, looks, *pattern);
      for (const NodeId root : roots.of(*pattern)) {
        const std::optional<PatternMatch> want = match_pattern(searched, *pattern, root);
        matches += want ? 1 : 0;
        std::optional<PatternMatch> got;
        if (RememberedMatch* known = memory.find(root)) {
          if (known->matched()) got = memory.match(*known, root);
          ++(got ? remembered_matches : remembered_misses);
        } else {
          RememberedMatch* fresh = nullptr;
          got = memory.search(root, fresh);
        }
        CAPTURE(seed);
        CAPTURE(pattern->name);
        CAPTURE(graph.nodes[root].name);
        REQUIRE(same(got, want));
        if (want && random.chance(40))
          for (const NodeId n : want->nodes) searched.taken[n] = true;
      }
    }
  }
  CHECK(matches > 5000);
  CHECK(remembered_matches > 500);
  CHECK(remembered_misses > 1000);
}
