// Rows of what only moves elements are pieces of lines, and begin at the same columns everywhere.
#include "codegen/schedules/row_pieces.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "analysis/lower.h"
#include "ir/text.h"

namespace fusec::test {
namespace {

// "0 =, 1 >, 113 =": columns at which pieces begin, and whether they are one constant or go forwards, backwards or
// nowhere; "" where there are none.
std::string pieces_text(const std::string& body) {
  const Graph graph = parse_graph_text("model \"m\"\n" + body);
  std::vector<NodeId> nodes;
  for (NodeId n = 0; n < graph.nodes.size(); ++n) nodes.push_back(n);
  const std::vector<LoweredUnit> units = lower_group(graph, nodes, graph.outputs);
  REQUIRE(units.size() == 1);
  const auto rows = pieces_of_rows(units[0].kernel, graph);
  if (!rows) return "";
  const auto name = [&](Variable v) { return graph.symbols[v.id].name; };
  std::string text;
  for (const RowPiece& piece : rows->pieces) {
    const char way = piece.constant ? '=' : piece.step > 0 ? '>' : piece.step < 0 ? '<' : '.';
    text += (text.empty() ? "" : ", ") + to_string(piece.begin, name) + " " + way;
  }
  return text + " of " + to_string(rows->length, name);
}

}  // namespace

TEST_CASE("row pieces: pads") {
  const auto padded = [](const std::string& attributes) {
    return pieces_text("input x: float16[4, 9, 112]\ny: float16[4, 11, 116] = pad(x, pad=[3, 1, 1, 1]" + attributes +
                       ")\nreturn y\n");
  };
  CHECK(padded("") == "0 =, 3 >, 115 = of 116");
  CHECK(padded(", mode=\"reflect\"") == "0 <, 4 >, 115 > of 116");  // x[0] is of either, one element goes any way
  CHECK(padded(", mode=\"replicate\"") == "0 ., 4 >, 115 > of 116");
  CHECK(padded(", mode=\"circular\"") == "0 >, 3 >, 115 > of 116");
}

TEST_CASE("row pieces: colours of pixels") {
  const auto padded = [](const std::string& attributes) {
    return pieces_text("input x: uint8[4, 9, 112, 3]\ny: uint8[4, 9, 115, 3] = pad(x, pad=[0, 0, 2, 1]" + attributes +
                       ")\nreturn y\n");
  };
  CHECK(padded("") == "0 =, 6 >, 342 = of 345");
  CHECK(padded(", mode=\"reflect\"") == "0 >, 3 >, 6 >, 9 >, 342 > of 345");
}

TEST_CASE("row pieces: joined, rolled, and of any length") {
  CHECK(pieces_text(R"(input x: int8[50, 77]
input z: int8[50, 33]
y: int8[50, 110] = concat(x, z, dim=1)
return y
)") == "0 >, 77 > of 110");
  CHECK(pieces_text(R"(input x: int8[50, 77]
y: int8[50, 77] = roll(x, shifts=[3], dims=[1])
return y
)") == "0 >, 3 > of 77");
  CHECK(pieces_text(R"(symbol n min=8 hint=100
input x: int8[50, n]
y: int8[50, n] = roll(x, shifts=[3], dims=[1])
return y
)") == "0 >, 3 > of n");
  CHECK(pieces_text(R"(symbol n min=8 hint=100
input x: float16[50, n]
y: float16[50, n+3] = pad(x, pad=[2, 1])
return y
)") == "0 =, 2 >, n+2 = of n+3");
}

TEST_CASE("row pieces: none of what is computed, looked up or strided") {
  const std::string x = "input x: float16[50, 77]\n";
  CHECK(pieces_text(x + "y: float16[50, 77] = relu(x)\nreturn y\n").empty());
  CHECK(pieces_text(x + "y: float16[50, 39] = slice(x, dim=1, start=0, end=77, step=2)\nreturn y\n").empty());
  CHECK(pieces_text(x + "input i: int64[9]\ny: float16[50, 9] = index_select(x, i, dim=1)\nreturn y\n").empty());
}

}  // namespace fusec::test
