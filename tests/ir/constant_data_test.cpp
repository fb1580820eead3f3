#include "ir/constant_data.h"

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "ir/read.h"

using namespace fusec;

namespace {

// "start + steps * places" of a constant with this data, "" where it is none.
std::string progression(const std::string& dtype, const std::string& shape, const std::string& data) {
  const Graph graph = read_model_text(R"({"fusec": 1, "inputs": [], "constants": [{"name": "c", "dtype": ")" + dtype +
                                          R"(", "shape": )" + shape + R"(, "data": )" + data +
                                          R"(}], "nodes": [{"name": "y", "op": "identity", "inputs": ["c"]}], )" +
                                          R"("outputs": ["y"]})",
                                      "test.json", ".");
  const std::optional<Progression> found = progression_of(graph, graph.constants[0]);
  if (!found) return "";
  std::string text = std::to_string(found->start);
  for (const std::int64_t step : found->steps) text += " " + std::to_string(step);
  return text;
}

}  // namespace

TEST_CASE("constants whose elements follow from their places") {
  CHECK(progression("int64", "[5]", "[0, 1, 2, 3, 4]") == "0 1");
  CHECK(progression("int32", "[4]", "[7, 4, 1, -2]") == "7 -3");
  CHECK(progression("int64", "[2, 3]", "[0, 1, 2, 3, 4, 5]") == "0 3 1");
  CHECK(progression("int64", "[3, 1, 2]", "[5, 5, 6, 6, 7, 7]") == "5 1 0 0");
  CHECK(progression("float32", "[4]", "[0.0, 2.0, 4.0, 6.0]") == "0 2");
}

TEST_CASE("constants that are others") {
  CHECK(progression("int64", "[5]", "[0, 1, 2, 3, 5]").empty());
  CHECK(progression("int64", "[2, 3]", "[0, 1, 2, 3, 4, 6]").empty());
  CHECK(progression("int64", "[4]", "[3, 3, 3, 3]").empty());
  CHECK(progression("int64", "[3]", "[0, 1, 2]").empty());
  CHECK(progression("int64", "[4]", "[0, 3000000000, 6000000000, 9000000000]").empty());
  CHECK(progression("bool", "[4]", "[false, true, true, true]").empty());
  CHECK(progression("float32", "[4]", "[0.0, 0.5, 1.0, 1.5]").empty());
  CHECK(progression("float32", "[4]", "[-0.0, 1.0, 2.0, 3.0]").empty());
  // Not all of them are numbers of the dtype.
  CHECK(progression("bfloat16", "[4]", "[255, 256, 257, 258]").empty());
  CHECK(progression("bfloat16", "[4]", "[253, 254, 255, 256]") == "253 1");
}
