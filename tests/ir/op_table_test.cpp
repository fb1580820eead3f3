// The op table as a whole: look-up, order, completeness, registration.
#include <doctest/doctest.h>

#include <set>

#include "ir/error.h"
#include "ir/op.h"

using namespace fusec;

namespace {

OpDef minimal_row(std::string name) {
  OpDef row;
  row.name = std::move(name);
  row.family = "unary";
  row.operands = {"x"};
  row.infer = [](const OpCall& call) { return std::vector<ValueType>{call.tensor(0)}; };
  row.formula = [](Formula&, std::size_t, std::span<const IndexExpr>) { return ExprId{0}; };
  return row;
}

}  // namespace

TEST_CASE("every row is complete and its name is its own") {
  std::set<std::string> names;
  for (const OpDef* row : OpTable::builtin().rows()) {
    CAPTURE(row->name);
    CHECK(names.insert(row->name).second);
    CHECK(OpTable::builtin().find(row->name) == row);
    CHECK(!row->family.empty());
    CHECK(!row->summary.empty());
    CHECK(row->infer);
    CHECK((row->formula || row->special != Special::kNone));
    CHECK(!row->custom);
  }
}

TEST_CASE("look-up by name and by a misspelt name") {
  const OpTable& table = OpTable::builtin();
  REQUIRE(table.find("softmax"));
  CHECK(table.find("softmax")->family == "composite");
  CHECK(table.find("") == nullptr);
  CHECK(table.find("softmaxx") == nullptr);
  CHECK(table.nearest("sofmax") == "softmax");
  CHECK(table.nearest("layernorm") == "layer_norm");
  CHECK(table.nearest("completely_unlike_any") == "");
  CHECK(table.nearest(std::string(100000, 'a')) == "");
}

TEST_CASE("a registered row joins a copy of the table") {
  const OpTable table = OpTable::builtin().with(minimal_row("my_scale"));
  REQUIRE(table.find("my_scale"));
  CHECK(OpTable::builtin().find("my_scale") == nullptr);
  CHECK(table.rows().size() == OpTable::builtin().rows().size() + 1);
  // rows stand by family: a unary row comes before the binary ones
  const auto rows = table.rows();
  std::size_t own = 0, add = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i]->name == "my_scale") own = i;
    if (rows[i]->name == "add") add = i;
  }
  CHECK(own < add);
  CHECK_THROWS_AS(table.with(minimal_row("my_scale")), Error);
  CHECK_THROWS_AS(table.with(minimal_row("add")), Error);
  CHECK_THROWS_AS(table.with(minimal_row("")), Error);
  OpDef incomplete = minimal_row("no_meaning");
  incomplete.formula = nullptr;
  CHECK_THROWS_AS(table.with(incomplete), Error);
}
