// The graphs of a corpus folder.
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

namespace fusec {

// The graph files below a folder, sorted by path; what else lies there (indices, expectations) left out.
inline std::vector<std::string> corpus_graphs(const std::string& folder) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    const std::string file = entry.path().filename().string();
    const bool other = file == "index.json" || file == "launches.json" || file == "baselines.json" ||
                       file == "tvm_op_patterns.json" || file.ends_with(".groups.json");
    if (file.ends_with(".json") && !other) paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace fusec
