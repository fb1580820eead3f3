// Short rows through shared memory: every element has one thread, and the lanes of a warp, side by side, different
// banks.
#include "schedule/reduction/multi_row_block.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "schedule/lowering/lower_group.h"
#include "support/short_model.h"

using namespace fusec;
using fusec::test::short_model;

namespace {

std::vector<MultiRowBlock> candidates_of(int rows, int columns, const std::string& dtype, const std::string& nodes) {
  const std::string shape = std::to_string(rows) + "," + std::to_string(columns);
  const Graph graph =
      short_model("x " + dtype + " " + shape + "; w " + dtype + " " + std::to_string(columns), nodes, "y");
  std::vector<NodeId> all;
  for (NodeId n = 0; n < graph.nodes.size(); ++n) all.push_back(n);
  for (LoweredUnit& unit : lower_group(graph, all, graph.outputs)) {
    if (unit.kind != LoweredUnit::Kind::kKernel) continue;
    const auto form = row_form(unit.kernel, graph);
    REQUIRE(form);
    return multi_row_block(*form, graph, Target{});
  }
  return {};
}

// The elements of a row that a lane of it has, in turns; -1 where it has none.
std::vector<int> elements_of(const MultiRowBlock& plan, int lane) {
  std::vector<int> elements;
  for (int iteration = 0; iteration < plan.iterations; ++iteration) {
    const int element = plan.stride > 1 ? lane + iteration * plan.stride : lane * plan.step + iteration;
    const bool is_mine = element < plan.length && (plan.stride > 1 || iteration < plan.step);
    elements.push_back(is_mine ? element : -1);
  }
  return elements;
}

// Which row of a run a thread of its first warp takes.
int row_of(const MultiRowBlock& plan, int thread) {
  return thread / plan.lanes * plan.warp_row_stride;
}

void check_way(const MultiRowBlock& plan) {
  std::vector<int> sequential_runs(static_cast<std::size_t>(plan.length), 0);
  for (int lane = 0; lane < plan.lanes; ++lane) {
    const std::vector<int> elements = elements_of(plan, lane);
    for (const int element : elements)
      if (element >= 0) ++sequential_runs[static_cast<std::size_t>(element)];
    CHECK(std::ranges::count(elements, -1) <= plan.iterations - plan.min_iterations());
  }
  for (const int t : sequential_runs) REQUIRE(t == 1);
  for (int iteration = 0; iteration < plan.iterations; ++iteration) {
    std::multiset<int> banks;
    for (int thread = 0; thread < 32; ++thread) {
      const int element = elements_of(plan, thread % plan.lanes)[static_cast<std::size_t>(iteration)];
      if (element >= 0) banks.insert((row_of(plan, thread) * plan.length + element) % 32);
    }
    REQUIRE(std::set<int>(banks.begin(), banks.end()).size() == banks.size());
  }
  CHECK(plan.threads % (32 * plan.warp_row_stride) == 0);
  CHECK(plan.rows * plan.lanes == plan.threads);
  CHECK(plan.elements * 4 <= 80 * 1024);
}

}  // namespace

TEST_CASE("short rows: every element once, and no bank conflicts") {
  for (int columns = 2; columns <= 320; ++columns) {
    const std::vector<MultiRowBlock> candidates = candidates_of(4096, columns, "float32", "y = softmax x {\"dim\": 1}");
    CHECK_MESSAGE((columns % 8 == 0 ? candidates.empty() : columns % 2 == 0 || !candidates.empty()), columns,
                  " columns: ", candidates.size(), " ways");
    for (const MultiRowBlock& plan : candidates) check_way(plan);
  }
}

TEST_CASE("short rows: few lanes a row of any length, one where nothing of it is kept, none where lanes take vectors") {
  for (const int columns : {45, 49, 61, 77, 83, 121, 197}) {
    CHECK(candidates_of(200000, columns, "bfloat16", "y = softmax x {\"dim\": 1}").front().lanes <= 8);
    if (columns > 96) continue;
    CHECK(candidates_of(200000, columns, "bfloat16", "y = mean x {\"dim\": [1]}").front().lanes == 1);
  }
  for (const int columns : {2, 4, 8, 16})
    CHECK(candidates_of(200000, columns, "bfloat16", "y = softmax x {\"dim\": 1}").empty());
}

TEST_CASE("short rows: not few of them, not longer ones, not others' loads") {
  const char* const softmax = "y = softmax x {\"dim\": 1}";
  CHECK(!candidates_of(64, 33, "bfloat16", softmax).empty());
  CHECK(candidates_of(32, 33, "bfloat16", softmax).empty());
  CHECK(candidates_of(4096, 1001, "bfloat16", softmax).empty());
  CHECK(candidates_of(4096, 64, "bfloat16", softmax).empty());  // they begin at sectors
  CHECK(candidates_of(4096, 33, "float64", softmax).empty());
  CHECK(!candidates_of(4096, 33, "float16", "s = mul x w; y = softmax s {\"dim\": 1}").empty());
  CHECK(candidates_of(4096, 33, "float16", "t = flip x {\"dims\": [1]}; s = add x t; y = softmax s {\"dim\": 1}")
            .empty());
}

TEST_CASE("short rows: operands that repeat over rows are shared by runs") {
  const auto ways_beside = [](const std::string& operand) {
    const Graph graph =
        short_model("x float16 64,6,49,49; m float16 " + operand, "a = add x m; y = softmax a {\"dim\": 3}", "y");
    std::vector<NodeId> all;
    for (NodeId n = 0; n < graph.nodes.size(); ++n) all.push_back(n);
    std::vector<LoweredUnit> units = lower_group(graph, all, graph.outputs);
    REQUIRE(units.size() == 1);
    return multi_row_block(with_rows_merged(*row_form(units[0].kernel, graph), graph), graph, Target{});
  };
  for (const char* const operand : {"6,49,49", "49,49", "64,1,49,49"}) {
    const std::vector<MultiRowBlock> candidates = ways_beside(operand);
    REQUIRE(!candidates.empty());
    CHECK(candidates.front().along_last);
    CHECK(candidates.front().runs() > 1);
    for (const MultiRowBlock& plan : candidates) check_way(plan);
  }
  for (const char* const operand : {"64,1,1,49", "64,6,1,49", "1,6,1,49"}) {  // a row of them serves a whole run
    const std::vector<MultiRowBlock> candidates = ways_beside(operand);
    REQUIRE(!candidates.empty());
    CHECK(candidates.front().along_last);
    CHECK(std::ranges::count(candidates.front().tiles, true, &MultiRowBlock::Tile::broadcast) == 1);
  }
  CHECK(!ways_beside("64,6,49,49").front().along_last);
  CHECK(!ways_beside("49").front().along_last);
  CHECK(ways_beside("64,6,49,1").front().tiles.size() == 1);  // an element a row
}
