#include "analysis/repeated_blocks.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <string>

#include "analysis/repeated_groups.h"
#include "ir/text.h"

namespace fusec::test {
namespace {

// A chain: each item reads the one before it.
BlockItems chain(const std::string& kinds) {
  BlockItems items{.kinds = {}, .operand_begin = {0}, .operands = {}};
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    items.kinds.push_back(static_cast<std::uint32_t>(kinds[i]));
    items.operands.push_back(i == 0 ? kOutside : static_cast<std::uint32_t>(i) - 1);
    items.operand_begin.push_back(static_cast<std::uint32_t>(i) + 1);
  }
  return items;
}

std::string text_of(const std::vector<RepeatedBlock>& blocks) {
  std::string text;
  for (const RepeatedBlock& b : blocks) {
    text += (text.empty() ? "" : " ") + std::to_string(b.first) + "+" + std::to_string(b.length) + "x" +
            std::to_string(b.count);
    if (!b.inside.empty()) text += "(" + text_of(b.inside) + ")";
  }
  return text;
}

std::string blocks_of(const std::string& kinds) {
  return text_of(repeated_blocks(chain(kinds)));
}

std::uint32_t folded(const std::vector<RepeatedBlock>& blocks) {
  std::uint32_t sum = 0;
  for (const RepeatedBlock& b : blocks) sum += b.length * (b.count - 1);
  return sum;
}

// The most that one run folds, by trying all.
std::uint32_t most_folded_by_one(const std::string& s) {
  std::uint32_t most = 0;
  for (std::size_t begin = 0; begin < s.size(); ++begin)
    for (std::size_t period = 1; begin + 2 * period <= s.size(); ++period) {
      std::size_t end = begin + period;
      while (end < s.size() && s[end] == s[end - period]) ++end;
      const std::size_t count = (end - begin) / period;
      if (count > 1) most = std::max(most, static_cast<std::uint32_t>((count - 1) * period));
    }
  return most;
}

}  // namespace

TEST_CASE("repeated blocks: layers between a beginning and an end") {
  CHECK(blocks_of("") == "");
  CHECK(blocks_of("a") == "");
  CHECK(blocks_of("abc") == "");
  CHECK(blocks_of("aa") == "0+1x2");
  CHECK(blocks_of("axyzxyzxyzb") == "1+3x3");
  CHECK(blocks_of("axyxyxybzwzwzw") == "1+2x3 8+2x3");
}

TEST_CASE("repeated blocks: blocks within blocks") {
  CHECK(blocks_of("paaaqpaaaqpaaaq") == "0+5x3(1+1x3)");
  CHECK(blocks_of("daabdaabdaabc") == "0+4x3(1+1x2)");
}

TEST_CASE("repeated blocks: of overlapping runs the one that folds more, the rest as it goes") {
  CHECK(blocks_of("aabaabaabaab") == "0+3x4(0+1x2)");
  CHECK(blocks_of("abababcbcbcbc") == "0+2x2 5+2x4");
}

TEST_CASE("repeated blocks: a block ends where copies are wired otherwise") {
  BlockItems items = chain("xyxyxyxy");
  CHECK(text_of(repeated_blocks(items)) == "0+2x4");
  items.operands[6] = 3;  // the last copy reads what the second one made, not the third
  CHECK(text_of(repeated_blocks(items)) == "0+2x3");
  items = chain("xyxyxyxy");
  for (const std::uint32_t reader : {2u, 4u, 6u}) items.operands[reader] = kOutside;  // branches side by side
  CHECK(text_of(repeated_blocks(items)) == "0+2x4");
}

TEST_CASE("repeated blocks: what is made once may be read by all copies, the first may read from elsewhere") {
  // 0: mask, 1: embedding; copies of (2: reads the layer before and the mask, 3: reads 2 and the layer before).
  BlockItems items{.kinds = {0, 1}, .operand_begin = {0, 0, 0}, .operands = {}};
  std::uint32_t layer = 1;
  for (std::uint32_t i = 2; i < 10; i += 2) {
    items.kinds.insert(items.kinds.end(), {2, 3});
    items.operands.insert(items.operands.end(), {layer, 0, i, layer});
    items.operand_begin.insert(items.operand_begin.end(),
                               {items.operand_begin.back() + 2, items.operand_begin.back() + 4});
    layer = i + 1;
  }
  CHECK(text_of(repeated_blocks(items)) == "2+2x4");
}

TEST_CASE("repeated blocks: in random lists copies are equal, side by side, and no run folds more than all blocks") {
  std::mt19937 random(5);
  for (int round = 0; round < 2000; ++round) {
    std::string kinds;
    const std::uint32_t letters = 1 + random() % 3;
    for (std::uint32_t length = random() % 24; length > 0; --length)
      kinds += static_cast<char>('a' + random() % letters);
    CAPTURE(kinds);
    const std::vector<RepeatedBlock> blocks = repeated_blocks(chain(kinds));
    std::uint32_t end = 0;
    for (const RepeatedBlock& b : blocks) {
      CHECK(b.first >= end);
      CHECK(b.count >= 2);
      end = b.end();
      REQUIRE(end <= kinds.size());
      for (std::uint32_t i = b.first + b.length; i < end; ++i) CHECK(kinds[i] == kinds[i - b.length]);
    }
    CHECK(folded(blocks) >= most_folded_by_one(kinds));
  }
}

TEST_CASE("repeated blocks: a hundred thousand items take no square of time") {
  CHECK(blocks_of(std::string(100000, 'a')) == "0+1x100000");
  std::string thue_morse = "a";  // has many runs, none of three copies
  while (thue_morse.size() < 100000) {
    std::string other = thue_morse;
    for (char& c : other) c = c == 'a' ? 'b' : 'a';
    thue_morse += other;
  }
  CHECK(folded(repeated_blocks(chain(thue_morse))) > 0);
}

TEST_CASE("repeated groups: equal layers whatever their weights are called; prepared groups are left out") {
  Graph graph = parse_graph_text(R"(model "m"
input x: float32[4, 8]
constant w0: float32[8, 8]
constant w1: float32[8, 8]
constant w2: float32[8, 4]
t: float32[8, 8] = exp(w0)
a0: float32[4, 8] = linear(x, t)
b0: float32[4, 8] = relu(a0)
a1: float32[4, 8] = linear(b0, w1)
b1: float32[4, 8] = relu(a1)
y: float32[4, 8] = tanh(b1)
return y
)");
  FusionPlan plan;
  const auto add = [&](std::vector<NodeId> nodes, bool prepared) {
    FusionGroup group;
    group.nodes = std::move(nodes);
    group.prepared = prepared;
    plan.groups.push_back(std::move(group));
  };
  add({0}, true);
  add({1, 2}, false);
  add({3, 4}, false);
  add({5}, false);
  index_groups(graph, plan);
  const RepeatedGroups repeated = repeated_groups(graph, plan);
  CHECK(repeated.items == std::vector<GroupId>{1, 2, 3});
  CHECK(text_of(repeated.blocks) == "0+1x2");  // what was made of weights once is one
  plan.groups[0].prepared = false;
  CHECK(text_of(repeated_groups(graph, plan).blocks) == "");
}

}  // namespace fusec::test
