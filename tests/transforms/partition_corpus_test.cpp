// The partitioner against TVM's own grouping on every graph of the corpus.
#include <algorithm>
#include <filesystem>

#include "doctest/doctest.h"
#include "support/forward_graph_json.h"
#include "transforms/partition.h"

namespace fusec::test {
namespace {

using Groups = std::vector<std::vector<std::string>>;

Groups groups_of(const NamedForwardGraph& named, const Partition& result) {
  std::map<Vertex, std::vector<std::string>> by_root;
  for (Vertex v = 0; v < named.graph.size(); ++v) {
    if (!named.is_item[v]) by_root[result.root[v]].push_back(named.node_of[v]);
  }
  Groups groups;
  for (auto& [root, members] : by_root) groups.push_back(std::move(members));
  for (auto& g : groups) std::sort(g.begin(), g.end());
  std::sort(groups.begin(), groups.end());
  return groups;
}

PartitionOptions options_of(const nlohmann::json& expectation) {
  PartitionOptions options;
  const std::string prefix = "--max-fused-ops=";
  const std::vector<std::string> arguments = expectation.value("args", std::vector<std::string>{});
  for (const std::string& argument : arguments) {
    if (argument.starts_with(prefix)) options.max_fused_ops = std::stoul(argument.substr(prefix.size()));
  }
  return options;
}

void check_folder(const std::string& folder, std::size_t cases) {
  std::size_t seen = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string path = entry.path().string();
    if (!path.ends_with(".groups.json")) continue;
    ++seen;
    const nlohmann::json expectation = load_json(path);
    const NamedForwardGraph named = load_forward_graph(load_json(path.substr(0, path.size() - 12) + ".json"));
    const Partition result = partition(named.graph, PostDominators(named.graph), options_of(expectation));
    Groups expected = expectation.at("groups");
    for (auto& g : expected) std::sort(g.begin(), g.end());
    std::sort(expected.begin(), expected.end());
    CHECK_MESSAGE(groups_of(named, result) == expected, path);
  }
  CHECK(seen == cases);
}

}  // namespace

TEST_CASE("partition: equal to TVM on the corpus") {
  const std::string corpus = std::string(FUSEC_TESTS_DIR) + "/corpus/partition/";
  check_folder(corpus + "dev", 400);
  check_folder(corpus + "dev_depth", 100);
  check_folder(corpus + "quirks", 37);
}

}  // namespace fusec::test
