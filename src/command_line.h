// The parts that the command lines of fusec and fusec-run share: compile options, error output, exit statuses.
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

// Adds an option that may be given several times, with one value each.
void add_repeatable(CLI::App& app, const std::string& name, std::vector<std::string>& values, const std::string& help);

// Adds the compile options. The model is the positional argument, optional unless `model_required`.
void add_compile_options(CLI::App& app, CompileArguments& arguments, bool model_required);

// Compile options by name ("max-fused-ops") and value, in the order in which they were set.
using GivenOptions = std::vector<std::pair<std::string, std::string>>;

// Sets an option for callers without a command line (the C API), and returns all given options as arguments. The parser
// of the command line reads them, so options are declared once. A flag may have a null value; a repeatable option gets
// one more value. Also knows "ptx" and "nvrtc-library", which the programs set otherwise. Throws Error(kUsage).
CompileArguments with_option(GivenOptions& given, std::string name, const char* value);

// The library's options, including those given as NAME=VALUE. Lacks the plan and the cache's default folder.
Options given_options(const CompileArguments& arguments);

// Why nothing is kept though no option forbids it, as a warning; "" if something is. Makes a folder of --cache-dir.
std::string cache_warning(const CompileArguments& arguments);

// Where results are kept; "" for nowhere.
std::string cache_folder(const CompileArguments& arguments);

// `device` is the GPU that --arch=native means.
PipelineOptions pipeline_options(const CompileArguments& arguments, int device = 0);

// The files that a compilation with these arguments reads, but for weights.
std::vector<std::string> files_read(const CompileArguments& arguments);

// Reads the model and gives its symbols the hints of --symbol=NAME=VALUE.
Graph read_model(const CompileArguments& arguments);

// Runs a program: parses the arguments, calls `run` within the limits, prints errors (error_report.h) and returns the
// exit status. A program that exceeds a limit ends at once, whatever its threads still do. Throws std::bad_alloc.
int run_program(CLI::App& app, int argc, char** argv, const CompileArguments& arguments,
                const std::function<int()>& run);

// Handles std::bad_alloc in main: prints a message without allocating. Returns the exit status.
int end_without_memory() noexcept;

// Names given as A,B,C or as a JSON array of strings (for names with commas).
std::vector<std::string> name_list(const std::string& text);

void print_times(const std::vector<StageTime>& times);

}  // namespace fusec
