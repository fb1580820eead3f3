#include "ir/synonyms.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "ir/dtype.h"
#include "ir/op.h"
#include "ir/spelling.h"

namespace fusec {

TEST_CASE("other libraries' names lead to ours") {
  const OpTable& table = OpTable::builtin();
  CHECK(table.nearest("swish") == "silu");
  CHECK(table.nearest("Conv") == "conv2d");
  CHECK(table.nearest("aten.relu.default") == "relu");
  CHECK(table.nearest("torch.nn.functional.layer_norm") == "layer_norm");
  CHECK(table.nearest("sofmax") == "softmax");  // a misspelling still is one
  CHECK(table.nearest("my_great_op") == "");
  const std::vector<std::string_view> dtypes = {"float32", "float16", "bfloat16"};
  CHECK(did_you_mean("bf16", dtypes) == "did you mean \"bfloat16\"?");
  CHECK(did_you_mean("torch.float16", dtypes) == "did you mean \"float16\"?");
  CHECK(did_you_mean("fp64", dtypes) == "");  // float64 is no candidate
  const std::vector<std::string_view> one = {"x", "dim"}, several = {"x", "dims"};
  CHECK(nearest_name("axis", one) == "dim");
  CHECK(nearest_name("axis", several) == "dims");
  CHECK(nearest_name("X", one) == "x");
  CHECK(nearest_name("", one) == "");
}

TEST_CASE("no word of the table is lost: each leads to a name, and is written as it is looked for") {
  std::set<std::string_view> names;
  for (const Synonyms& row : synonyms()) {
    CAPTURE(row.name);
    CHECK(names.insert(row.name).second);
    CHECK(std::ranges::none_of(row.words, [](char c) { return c >= 'A' && c <= 'Z'; }));
    CHECK(row.words.find("  ") == std::string_view::npos);
    const std::vector<std::string_view> candidates = {row.name};
    const std::string word(row.words.substr(0, row.words.find(' ')));
    CHECK(name_by_synonym(word, candidates) == row.name);
  }
  // What the table calls an op or a dtype is one: the first row of each.
  CHECK(OpTable::builtin().find("silu") != nullptr);
  std::set<std::string> known = {"op",        "name",   "inputs", "outputs", "attrs",    "nodes", "constants",
                                 "symbols",   "dtype",  "shape",  "fuse",    "metadata", "fusec", "sm_80",
                                 "sm_86",     "sm_89",  "sm_90a", "sm_100a", "cu",       "ptx",   "cubin",
                                 "partition", "report", "ledger", "svg",     "dot",      "ir"};
  for (const OpDef* row : OpTable::builtin().rows()) {
    known.insert(row->name);
    for (const AttributeSpec& attribute : row->attributes) known.insert(attribute.name);
  }
  for (const DTypeInfo& row : all_dtypes()) known.emplace(row.name);
  for (const Synonyms& row : synonyms())
    if (!row.name.starts_with('-')) CHECK_MESSAGE(known.contains(std::string(row.name)), row.name);
}

}  // namespace fusec
