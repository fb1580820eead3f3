// What the command lines of fusec and fusec-run share: the compile options, how errors are told, exit statuses.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "fusec/fusec.h"
#include "pipeline.h"

namespace CLI {
class App;
}

namespace fusec {

struct CompileArguments {
  std::string model;
  Options options;
  std::vector<std::string> symbols, limits;  // NAME=VALUE
  std::string plan_file;
  bool no_cache = false;
  std::string color = "auto";
  bool time_passes = false;
  bool json = false, quiet = false, verbose = false;
};

// An option that may be given several times, with one value each.
void add_repeatable(CLI::App& app, const std::string& name, std::vector<std::string>& values, const std::string& help);

// Adds the options; the model is the positional argument, optional where `model_required` is false.
void add_compile_options(CLI::App& app, CompileArguments& arguments, bool model_required);

// Compile options by name ("max-fused-ops") and value, in the order in which they were set.
using GivenOptions = std::vector<std::pair<std::string, std::string>>;

// Sets one for callers without a command line, and gives what all of them say together. Its parser reads them, so that an
// option is declared once. A flag takes null, too; an option that may be repeated gets one value more. Two are known that
// programs decide by what they emit and by their environment: "ptx" and "nvrtc-library". Throws Error(kUsage).
CompileArguments with_option(GivenOptions& given, std::string name, const char* value);

// The library's options, with what was given as NAME=VALUE; without the plan and the cache's default folder.
Options given_options(const CompileArguments& arguments);

// `device` is the GPU that --arch=native means.
PipelineOptions pipeline_options(const CompileArguments& arguments, int device = 0);

// Reads the model and gives its symbols the hints of --symbol=NAME=VALUE.
Graph read_model(const CompileArguments& arguments);

// Runs a program: parses, calls `run` within the limits, shows errors (error_report.h) and turns them into an exit
// status. A program past a limit ends at once, whatever its threads still do. Throws std::bad_alloc.
int run_program(CLI::App& app, int argc, char** argv, const CompileArguments& arguments,
                const std::function<int()>& run);

// What a program's main does about std::bad_alloc: says so without any memory. Returns the exit status.
int end_without_memory() noexcept;

// Names given as A,B,C or as a JSON array of strings (for names with commas).
std::vector<std::string> name_list(const std::string& text);

void print_times(const std::vector<StageTime>& times);

}  // namespace fusec
