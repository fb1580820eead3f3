// The annotation against the kinds that TVM derives, row by row: tests/corpus/partition/tvm_op_patterns.json has the
// kinds, annotation_rows.txt says how each row is written here.
#include "analysis/annotate.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "analysis/fusion_graph.h"
#include "ir/read.h"

using namespace fusec;
using Json = nlohmann::ordered_json;

namespace {

struct Row {
  std::string operands, attributes, kind, why_not;
};

using RowKey = std::pair<std::string, std::string>;  // op and variant, as tvm_op_patterns.json has them

std::string trimmed(const std::string& text) {
  const std::size_t first = text.find_first_not_of(' ');
  return first == std::string::npos ? "" : text.substr(first, text.find_last_not_of(' ') - first + 1);
}

std::map<RowKey, Row> written_rows() {
  std::ifstream in(FUSEC_TESTS_DIR "/analysis/annotation_rows.txt");
  std::map<RowKey, Row> rows;
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::vector<std::string> fields(1);
    for (const char c : line) c == '|' ? void(fields.emplace_back()) : fields.back().push_back(c);
    for (std::string& field : fields) field = trimmed(field);
    fields.resize(5);
    Row row{fields[2], fields[3], fields[4], ""};
    if (row.operands.starts_with("- ")) row.why_not = row.operands.substr(2);
    const bool fresh = rows.emplace(RowKey{fields[0], fields[1]}, std::move(row)).second;
    CHECK_MESSAGE(fresh, "twice: " << line);
  }
  return rows;
}

Json tvm_rows() {
  std::ifstream in(FUSEC_TESTS_DIR "/corpus/partition/tvm_op_patterns.json");
  return Json::parse(in);
}

// "float32[n,32]" as an input's type.
Json input_of(const std::string& name, const std::string& type) {
  const std::size_t bracket = type.find('[');
  Json shape = Json::array();
  std::string dim;
  for (const char c : type.substr(bracket + 1)) {
    if (c != ',' && c != ']') {
      dim += c;
    } else if (!dim.empty()) {
      shape.push_back(std::isdigit(static_cast<unsigned char>(dim[0])) ? Json::parse(dim) : Json(dim));
      dim.clear();
    }
  }
  return {{"name", name}, {"dtype", type.substr(0, bracket)}, {"shape", shape}};
}

// A model of the node "y" alone, and of what a tuple operand or result takes.
Json model_of(const std::string& op, const Row& row) {
  Json model = {{"fusec", 1}, {"inputs", Json::array()}, {"nodes", Json::array()}, {"outputs", Json::array()}};
  Json operands = Json::array();
  auto new_input = [&](const std::string& type) {
    const std::string name = "x" + std::to_string(model["inputs"].size());
    model["inputs"].push_back(input_of(name, type));
    return name;
  };
  for (std::size_t begin = 0; begin < row.operands.size();) {
    const std::size_t end = std::min(row.operands.find(' ', begin), row.operands.size());
    const std::string operand = row.operands.substr(begin, end - begin);
    begin = end + 1;
    if (operand[0] == '@') {
      operands.push_back(operands[std::stoul(operand.substr(1))]);
    } else if (operand[0] == '(') {  // (TYPE,TYPE), both alike
      const std::string type = operand.substr(1, operand.find("],"));
      model["nodes"].push_back({{"name", "t"}, {"op", "tuple"}, {"inputs", {new_input(type), new_input(type)}}});
      operands.push_back("t");
    } else if (operand.find('[') != std::string::npos) {
      operands.push_back(new_input(operand));
    } else {
      operands.push_back(Json::parse(operand));
    }
  }
  const Json attributes = row.attributes.empty() ? Json::object() : Json::parse(row.attributes);
  model["nodes"].push_back({{"name", "y"}, {"op", op}, {"inputs", operands}, {"attrs", attributes}});
  const bool several = OpTable::builtin().find(op)->several;
  if (op == "tuple")
    model["nodes"].push_back({{"name", "z"}, {"op", "get_item"}, {"inputs", {"y"}}, {"attrs", {{"index", 0}}}});
  model["outputs"].push_back(op == "tuple" ? "z" : several ? "y.0" : "y");
  if (row.operands.find("[n,") != std::string::npos) model["symbols"] = {{"n", {{"max", 4096}}}};
  return model;
}

std::string kind_of_y(const Json& model, PatternSource source) {
  const Graph graph = read_model_text(model.dump(), "row", ".");
  return std::string(name(annotate(graph, source)[graph.find_node("y")]));
}

// The name of an op as the format has it: a few rows say "(not in ir.md)" of ops that it has by now.
std::string op_name(const std::string& op) {
  return op.substr(0, op.find(" ("));
}

}  // namespace

TEST_CASE("every row of TVM's kinds has its node here, or a reason why not, and none is made up") {
  const auto written = written_rows();
  std::set<RowKey> theirs;
  for (const Json& row : tvm_rows()) theirs.emplace(row["op"], row["variant"]);
  for (const RowKey& key : theirs) CHECK_MESSAGE(written.contains(key), key.first << " | " << key.second);
  for (const auto& [key, row] : written) CHECK_MESSAGE(theirs.contains(key), key.first << " | " << key.second);
}

TEST_CASE("under tvm a node's kind is TVM's; under full it is the formula's, which is better for exactly these rows") {
  const auto written = written_rows();
  std::map<std::string, std::string> better;
  std::size_t held = 0;
  for (const Json& theirs : tvm_rows()) {
    const RowKey key{theirs["op"], theirs["variant"]};
    const Row& row = written.at(key);
    if (!row.why_not.empty()) continue;
    const std::string what = key.first + " | " + key.second;
    CAPTURE(what);
    const Json model = model_of(op_name(key.first), row);
    const std::string kind = kind_of_y(model, PatternSource::kTvm);
    const std::string formula = kind_of_y(model, PatternSource::kFormula);
    const bool has_kind = !theirs["kind"].is_null();
    CHECK(has_kind == row.kind.empty());
    CHECK(kind == (has_kind ? theirs["kind"].get<std::string>() : row.kind));
    if (formula != kind) better[what] = formula;
    ++held;
  }
  CHECK(held >= 260);
  const std::map<std::string, std::string> expected = {
      {"reshape | [8,16,32]->[8,16,32] same", "elemwise"},
      {"reshape | [16]->[1,16,1]", "broadcast"},
      {"reshape | [8,16]->[8,16,1] (an unsqueeze by reshape)", "broadcast"},
      {"reshape | [8,1,16]->[8,16] (a squeeze by reshape)", "broadcast"},
      {"reshape | symbolic [n,32]->[n*32]", "injective"},
      {"reshape | symbolic [n,32]->[n,4,8]", "injective"},
      {"addcmul | as relax.ewise_fma(a*b+c), value=1", "elemwise"},
      {"embedding | mode=clip", "injective"},
      {"embedding | weight [1000,64], ids [8,16]", "injective"},
      {"index_select | dim 1", "injective"},
      {"gather | dim 1", "injective"},
      {"select | as relax.take of a scalar index", "injective"},
      {"batch_norm | training=False, LegalizeOps alone", "elemwise"},
      {"matmul | K=1 [16,1]x[1,64]", "broadcast"},
      {"adaptive_avg_pool2d | (7,7)", "out_ewise_fusable"},
  };
  for (const auto& [row, kind] : better)
    CHECK_MESSAGE(expected.contains(row), "a further row: " << row << ": " << kind);
  for (const auto& [row, kind] : expected) CHECK_MESSAGE(better[row] == kind, row);
}

TEST_CASE("collectives are opaque") {
  for (const char* op : {"all_gather", "reduce_scatter"}) {
    const bool grows = std::string(op) == "all_gather";
    const Json model = {{"fusec", 1},
                        {"inputs", {input_of("x", "float32[8,16]")}},
                        {"nodes",
                         {{{"name", "y"},
                           {"op", op},
                           {"inputs", {"x"}},
                           {"outputs", {{{"name", "y"}, {"dtype", "float32"}, {"shape", {grows ? 16 : 4, 16}}}}},
                           {"attrs", grows ? Json{{"group", "g"}, {"dim", 0}}
                                           : Json{{"group", "g"}, {"dim", 0}, {"reduce_op", "sum"}}}}}},
                        {"outputs", {"y"}}};
    CHECK(kind_of_y(model, PatternSource::kTvm) == "opaque");
    CHECK(kind_of_y(model, PatternSource::kFormula) == "opaque");
  }
}

TEST_CASE("the results of a node are injective to TVM; under full those of an elementwise node are elementwise") {
  const char* const text = R"({"fusec": 1, "inputs": [{"name": "x", "dtype": "float32", "shape": [8, 16]}],
    "nodes": [{"name": "two", "op": "my.two", "inputs": ["x"], "pattern": "PATTERN",
               "outputs": [{"name": "a", "dtype": "float32", "shape": [8, 16]},
                           {"name": "b", "dtype": "float32", "shape": [8, 16]}]},
              {"name": "y", "op": "add", "inputs": ["a", "b"]}], "outputs": ["y"]})";
  for (const OpPattern pattern : {OpPattern::kElemwise, OpPattern::kBroadcast, OpPattern::kInjective,
                                  OpPattern::kOutEwiseFusable, OpPattern::kOpaque}) {
    std::string model = text;
    model.replace(model.find("PATTERN"), 7, name(pattern));
    CAPTURE(model);
    const Graph graph = read_model_text(model, "row", ".");
    for (const auto source : {PatternSource::kTvm, PatternSource::kFormula}) {
      const FusionGraph fusion = build_fusion_graph(graph, annotate(graph, source), source);
      REQUIRE(fusion.forward.size() == 4);
      const OpPattern item =
          source == PatternSource::kTvm ? OpPattern::kInjective : std::min(pattern, OpPattern::kInjective);
      CHECK(fusion.forward.pattern[1] == item);
      CHECK(fusion.forward.pattern[2] == item);
    }
  }
}
