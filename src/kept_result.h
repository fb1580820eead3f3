// The results of a whole compilation in the compile cache, so that the same command ends after reading the model.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "codegen/nvrtc/compile_cache.h"
#include "command_line.h"
#include "summary.h"

namespace fusec {

struct KeptResult {
  enum class Message { kWarning, kNote };
  std::vector<std::string> contents;  // by output of the command line
  Summary summary;
  std::vector<std::pair<Message, std::string>> messages;
  bool proven = false;  // compiled by NVRTC
};

// The file of the NVRTC that a compilation is going to load; "" where only the loader can tell.
std::string nvrtc_file(const std::string& chosen);

// Everything that the results depend on: this build of fusec, the words of the command line, the model and the other
// files that they name, NVRTC's file, and `more`. The elements of weights do not count: a compilation reads their
// types and shapes alone. Nothing where some of that cannot be told without the work itself.
std::optional<std::string> result_key(const CompileArguments& arguments, const std::vector<std::string>& words,
                                      const std::string& more);

// Nothing unless an entry has so many outputs.
std::optional<KeptResult> find_result(const CompileCache& cache, const std::string& key, std::size_t outputs);
void keep_result(CompileCache& cache, const std::string& key, const KeptResult& result);

}  // namespace fusec
