// `fusec MODEL`: compiles a model and writes what is asked for.
#pragma once

#include <string>
#include <vector>

#include "command_line.h"

namespace fusec {

struct FusecArguments {
  CompileArguments compile;
  std::vector<std::string> words;  // of the command line
  std::string output, name;
  std::vector<std::string> emits;
  std::vector<std::string> one_kernel;
  std::vector<std::string> explain;
  bool no_nvrtc = false, stats = false;
  bool view = false;
  bool list_ops = false, list_passes = false, list_patterns = false, list_targets = false;
  std::string dump_before, dump_after;
  std::string bisect;
  std::string profile;
  std::vector<std::string> sides, against;  // of `fusec diff`
  std::string cache_action = "show";        // of `fusec cache`
};

// Returns the exit status. Errors are thrown.
int run_compilation(const FusecArguments& arguments);

}  // namespace fusec
