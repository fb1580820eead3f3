// Short rows through shared memory: every element has one thread, and the lanes of a warp, side by side, different
// banks.
#include "analysis/short_rows.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "analysis/lower.h"
#include "support/short_model.h"

using namespace fusec;
using fusec::test::short_model;

namespace {

std::vector<ShortRows> ways_of(int rows, int columns, const std::string& dtype, const std::string& nodes) {
  const std::string shape = std::to_string(rows) + "," + std::to_string(columns);
  const Graph graph =
      short_model("x " + dtype + " " + shape + "; w " + dtype + " " + std::to_string(columns), nodes, "y");
  std::vector<NodeId> all;
  for (NodeId n = 0; n < graph.nodes.size(); ++n) all.push_back(n);
  for (LoweredUnit& unit : lower_group(graph, all, graph.outputs)) {
    if (unit.kind != LoweredUnit::Kind::kKernel) continue;
    const auto form = row_form(unit.kernel, graph);
    REQUIRE(form);
    return short_rows(*form, graph, Target{});
  }
  return {};
}

// The elements of a row that a lane of it has, in turns; -1 where it has none.
std::vector<int> elements_of(const ShortRows& way, int lane) {
  std::vector<int> elements;
  for (int turn = 0; turn < way.turns; ++turn) {
    const int element = way.stride > 1 ? lane + turn * way.stride : lane * way.step + turn;
    const bool is_mine = element < way.length && (way.stride > 1 || turn < way.step);
    elements.push_back(is_mine ? element : -1);
  }
  return elements;
}

// Which row of a run a thread of its first warp takes.
int row_of(const ShortRows& way, int thread) {
  return thread / way.lanes * way.apart;
}

void check_way(const ShortRows& way) {
  std::vector<int> times(static_cast<std::size_t>(way.length), 0);
  for (int lane = 0; lane < way.lanes; ++lane) {
    const std::vector<int> elements = elements_of(way, lane);
    for (const int element : elements)
      if (element >= 0) ++times[static_cast<std::size_t>(element)];
    CHECK(std::ranges::count(elements, -1) <= way.turns - way.least_turns());
  }
  for (const int t : times) REQUIRE(t == 1);
  for (int turn = 0; turn < way.turns; ++turn) {
    std::multiset<int> banks;
    for (int thread = 0; thread < 32; ++thread) {
      const int element = elements_of(way, thread % way.lanes)[static_cast<std::size_t>(turn)];
      if (element >= 0) banks.insert((row_of(way, thread) * way.length + element) % 32);
    }
    REQUIRE(std::set<int>(banks.begin(), banks.end()).size() == banks.size());
  }
  CHECK(way.threads % (32 * way.apart) == 0);
  CHECK(way.rows * way.lanes == way.threads);
  CHECK(way.elements * 4 <= 80 * 1024);
}

}  // namespace

TEST_CASE("short rows: every element once, and no bank conflicts") {
  for (int columns = 2; columns <= 320; ++columns) {
    const std::vector<ShortRows> ways = ways_of(4096, columns, "float32", "y = softmax x {\"dim\": 1}");
    CHECK_MESSAGE((columns % 8 == 0 ? ways.empty() : columns % 2 == 0 || !ways.empty()), columns,
                  " columns: ", ways.size(), " ways");
    for (const ShortRows& way : ways) check_way(way);
  }
}

TEST_CASE("short rows: few lanes a row of any length, one where nothing of it is kept, none where lanes take vectors") {
  for (const int columns : {45, 49, 61, 77, 83, 121, 197}) {
    CHECK(ways_of(200000, columns, "bfloat16", "y = softmax x {\"dim\": 1}").front().lanes <= 8);
    if (columns > 96) continue;
    CHECK(ways_of(200000, columns, "bfloat16", "y = mean x {\"dim\": [1]}").front().lanes == 1);
  }
  for (const int columns : {2, 4, 8, 16})
    CHECK(ways_of(200000, columns, "bfloat16", "y = softmax x {\"dim\": 1}").empty());
}

TEST_CASE("short rows: not few of them, not longer ones, not others' loads") {
  const char* const softmax = "y = softmax x {\"dim\": 1}";
  CHECK(!ways_of(64, 33, "bfloat16", softmax).empty());
  CHECK(ways_of(32, 33, "bfloat16", softmax).empty());
  CHECK(ways_of(4096, 1001, "bfloat16", softmax).empty());
  CHECK(ways_of(4096, 64, "bfloat16", softmax).empty());  // they begin at sectors
  CHECK(ways_of(4096, 33, "float64", softmax).empty());
  CHECK(!ways_of(4096, 33, "float16", "s = mul x w; y = softmax s {\"dim\": 1}").empty());
  CHECK(ways_of(4096, 33, "float16", "t = flip x {\"dims\": [1]}; s = add x t; y = softmax s {\"dim\": 1}").empty());
}

TEST_CASE("short rows: operands that repeat over rows are shared by runs") {
  const auto ways_beside = [](const std::string& operand) {
    const Graph graph =
        short_model("x float16 64,6,49,49; m float16 " + operand, "a = add x m; y = softmax a {\"dim\": 3}", "y");
    std::vector<NodeId> all;
    for (NodeId n = 0; n < graph.nodes.size(); ++n) all.push_back(n);
    std::vector<LoweredUnit> units = lower_group(graph, all, graph.outputs);
    REQUIRE(units.size() == 1);
    return short_rows(with_rows_merged(*row_form(units[0].kernel, graph), graph), graph, Target{});
  };
  for (const char* const operand : {"6,49,49", "49,49", "64,1,49,49"}) {
    const std::vector<ShortRows> ways = ways_beside(operand);
    REQUIRE(!ways.empty());
    CHECK(ways.front().along_last);
    CHECK(ways.front().runs() > 1);
    for (const ShortRows& way : ways) check_way(way);
  }
  for (const char* const operand : {"64,1,1,49", "64,6,1,49", "1,6,1,49"}) {  // a row of them serves a whole run
    const std::vector<ShortRows> ways = ways_beside(operand);
    REQUIRE(!ways.empty());
    CHECK(ways.front().along_last);
    CHECK(std::ranges::count(ways.front().tiles, true, &ShortRows::Tile::beside) == 1);
  }
  CHECK(!ways_beside("64,6,49,49").front().along_last);
  CHECK(!ways_beside("49").front().along_last);
  CHECK(ways_beside("64,6,49,1").front().tiles.size() == 1);  // an element a row
}
