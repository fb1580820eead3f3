#include "command_line.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>

#include "error_report.h"
#include "heap.h"
#include "help_text.h"
#include "ir/budget.h"
#include "ir/error.h"
#include "ir/mapped_file.h"
#include "ir/new_file.h"
#include "ir/read.h"
#include "ir/several_errors.h"
#include "ir/spelling.h"
#include "messages.h"
#include "option_values.h"
#include "pipeline_options.h"
#include "terminal.h"
#include "usage_errors.h"
#include "watchdog.h"

namespace fusec {
namespace {

void print_error(const std::string& color, const std::string& message) {
  const bool colored = wants_color(color);
  print_message("{}error:{} {}\n", colored ? "\033[1;31m" : "", colored ? "\033[0m" : "", message);
}

// The text of a model that came through standard input, kept for errors that quote a line of it.
std::string& standard_input() {
  static std::string text;
  return text;
}

// The text of a file, for errors that quote it; nothing for a file that cannot be read twice (a pipe).
std::optional<std::string> text_of_file(const std::string& file) {
  if (file == "-") return standard_input();
  std::error_code none;
  if (!std::filesystem::is_regular_file(file, none)) return std::nullopt;
  try {
    return read_text_file(file);
  } catch (const Error&) {
    return std::nullopt;
  }
}

// Prints the errors. Returns the exit status.
int show_errors(const CompileArguments& arguments, bool json, std::span<const Error> errors) {
  if (json) {
    print_message("{}\n", errors_json(errors, text_of_file));
  } else {
    const ErrorStyle style{.colored = wants_color(arguments.color), .width = terminal_width()};
    for (const Error& error : errors) print_error(arguments.color, error_text(error, text_of_file, style));
    if (errors.size() == ErrorList::kMost) print_message("{} errors are shown; there may be more\n", errors.size());
  }
  return errors.front().exit_status();
}

// Opens descriptors 0 to 2 if they are closed, so that a file opened later does not become standard output or error.
// O_PATH makes reads and writes of them fail.
void fill_standard_descriptors() {
  for (const int file : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(file, F_GETFD) == -1) open("/dev/null", O_PATH);  // open takes the least free number
}

// Removes partial files, and ends the program with status 128 + signal.
extern "C" void end_interrupted(int signal) {
  remove_unfinished_files();
  _exit(128 + signal);
}

void handle_signals() {
  struct sigaction end {};
  end.sa_handler = end_interrupted;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before {};
    // Keep a signal ignored that the parent ignores (nohup).
    if (sigaction(signal, nullptr, &before) == 0 && before.sa_handler != SIG_IGN) sigaction(signal, &end, nullptr);
  }
  std::signal(SIGXFSZ, SIG_IGN);  // a write beyond the size limit then fails, as on a full disk
}

Error empty_value(const std::string& option) {
  return {ErrorKind::kUsage, Error::Parts{.what = option, .found = "an empty value", .expected = "a value"}};
}

// An empty value is always a mistake ("--outputs=$FILE" with FILE unset). CLI11 would take the next argument instead.
void refuse_missing_values(std::span<const std::string> arguments) {
  for (const std::string& word : arguments)
    if (word.starts_with('-') && word.find('=') == word.size() - 1) throw empty_value(word.substr(0, word.size() - 1));
}

// The same for "-o $FILE".
void refuse_empty_values(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options())
    if (std::ranges::find(option->results(), "") != option->results().end()) throw empty_value(option->get_name());
}

// Flushes standard output and throws if any of it could not be written.
void finish_standard_output() {
  std::cout.flush();
  if (!std::cout || std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
    throw Error(ErrorKind::kEnvironment, "standard output cannot be written");
}

// Prints --help or --version. Returns the exit status.
int print_information(CLI::App& app, const CLI::ParseError& wanted, const std::string& color) {
  arrange_help(app);
  app.exit(wanted);
  try {
    finish_standard_output();
    return 0;
  } catch (const Error& error) {
    print_error(color, error.what());
    return error.exit_status();
  }
}

// The peak memory of this program. getrusage is only the fallback, because exec does not reset its value and it may be
// the parent's peak.
long peak_kibibytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (long kibibytes = 0; word == "VmHWM:" && status >> kibibytes) return kibibytes;
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

// Parses the NAME=VALUE texts of an option.
std::map<std::string, std::int64_t> assignments(const std::string& option, const std::vector<std::string>& texts) {
  std::map<std::string, std::int64_t> values;
  for (const std::string& text : texts) {
    const std::size_t equals = text.rfind('=');
    std::int64_t value = 0;
    const char* const end = text.data() + text.size();
    const char* const digits = equals == std::string::npos ? end : text.data() + equals + 1;
    const auto parsed = std::from_chars(digits, end, value);
    if (digits == end || parsed.ec != std::errc() || parsed.ptr != end)
      throw Error(ErrorKind::kUsage, {.what = option, .found = in_quotes(text), .expected = "NAME=VALUE"});
    values[text.substr(0, equals)] = value;
  }
  return values;
}

// A parser of the compile options, without those that control what a program prints.
class OptionParser {
 public:
  OptionParser() {
    app_.set_help_flag();
    add_compile_options(app_, arguments_, false);
    // Search the list, because get_option ends the program when memory runs out.
    for (CLI::Option* option : app_.get_options())
      if (option->get_lnames().empty() || is_about_printing(*option)) app_.remove_option(option);
    app_.add_flag("--ptx", arguments_.options.ptx);
    app_.add_option("--nvrtc-library", arguments_.options.nvrtc_library);
  }

  const CLI::Option& option(const std::string& name) {
    for (const CLI::Option* option : app_.get_options())
      if (option->check_lname(name)) return *option;
    std::vector<std::string_view> names;
    for (const CLI::Option* option : app_.get_options()) names.emplace_back(option->get_lnames().front());
    throw Error(ErrorKind::kUsage,
                {.what = "unknown option", .found = in_quotes(name), .hint = did_you_mean(name, names)});
  }

  static bool is_about_printing(const CLI::Option& option) {
    constexpr const char* kNames[] = {"color", "time-passes", "json", "quiet", "verbose"};
    return std::ranges::any_of(kNames, [&](const char* name) { return option.check_lname(name); });
  }

  CompileArguments parsed(const GivenOptions& given) {
    std::vector<std::string> words;
    for (const auto& [name, value] : given) words.push_back("--" + name + "=" + value);
    parse_options(app_, std::move(words));
    return arguments_;
  }

 private:
  CLI::App app_;
  CompileArguments arguments_;
};

}  // namespace

CompileArguments with_option(GivenOptions& given, std::string name, const char* value) {
  if (name.starts_with("--")) name.erase(0, 2);
  OptionParser parser;
  const CLI::Option& option = parser.option(name);
  const bool is_flag = option.get_items_expected_max() == 0;
  if ((!value && !is_flag) || (value && !*value))
    throw Error(ErrorKind::kUsage,
                {.what = "the value of option " + in_quotes(name), .found = value ? "an empty text" : "null"});
  GivenOptions all = given;
  if (option.get_multi_option_policy() != CLI::MultiOptionPolicy::TakeAll)
    std::erase_if(all, [&](const auto& one) { return one.first == name; });
  all.emplace_back(name, value ? value : "true");
  CompileArguments arguments = parser.parsed(all);
  given = std::move(all);
  return arguments;
}

void add_repeatable(CLI::App& app, const std::string& name, std::vector<std::string>& values, const std::string& help) {
  // Without allow_extra_args(false) CLI11 takes the next argument (the model) for a further value, and parses [...] as
  // a list.
  app.add_option(name, values, help + "; repeatable")->take_all()->allow_extra_args(false);
}

void add_compile_options(CLI::App& app, CompileArguments& a, bool model_required) {
  auto* model = app.add_option("model", a.model, "the model file (JSON); - is standard input");
  if (model_required) model->required();
  one_of(app.add_option("--strategy", a.options.strategy,
                        "none: a group a node; tvm: the three phases alone; full: all of fusec"),
         {"none", "tvm", "full"})
      ->capture_default_str();
  app.add_option("--arch", a.options.arch, "ARCH: sm_80 or newer, as sm_90a, or native: the GPU at hand")
      ->capture_default_str();
  app.add_option("--target", a.options.target,
                 "NAME|FILE: sizes and rates for the cost model, of --list-targets or a JSON file");
  add_repeatable(app, "--symbol", a.symbols, "NAME=VALUE: a symbol's value for costs, reports and random inputs");
  whole_number(
      app.add_option("--max-fused-ops", a.options.max_fused_ops,
                     "N: nodes of a group at most, those of parts that nothing connects counted each for itself"),
      1)
      ->capture_default_str();
  whole_number(app.add_option("--max-args", a.options.max_args, "N: arguments of a group at most"), 1);
  add_repeatable(app, "--no-fuse", a.options.no_fuse_ops, "OP: an op whose nodes stay alone");
  add_repeatable(app, "--no-fuse-node", a.options.no_fuse_nodes, "NODE: a node that stays alone");
  add_repeatable(app, "--patterns", a.options.pattern_files, "FILE: further patterns");
  add_repeatable(app, "--disable-pattern", a.options.disabled_patterns, "NAME: a pattern that is not tried, or all");
  add_repeatable(app, "--disable-pass", a.options.disabled_passes,
                 "PASS: a pass of `full` that is left out (--list-passes)");
  one_of(
      app.add_option("--gemm", a.options.gemm, "who multiplies matrices: kernels of our own, cuBLASLt, or the faster"),
      {"builtin", "cublaslt", "auto"})
      ->capture_default_str();
  add_repeatable(app, "--limit", a.limits, "NAME=VALUE: a limit on sizes, in place of its default (docs/limits.md)");
  app.add_option("--plan", a.plan_file, "FILE: compile with this (edited) plan");
  app.add_option("--tuning-db", a.options.tuning_file, "FILE: measured configurations, from fusec-run --tune");
  app.add_flag("--round-intermediates", a.options.round_intermediates,
               "round fused intermediates to their dtypes, and contract no product and sum of two nodes into one "
               "multiply-add, as a * x + b * x is by default (docs/numerics.md)");
  app.add_flag("--precise-math", a.options.precise_math, "exact in place of fast functions (docs/numerics.md)");
  app.add_flag("--allow-tf32", a.options.allow_tf32,
               "float32 products and convolutions in one pass of tf32; attention stays accurate (docs/numerics.md)");
  app.add_flag("--allow-atomics", a.options.allow_atomics,
               "float atomics: results may differ from run to run (no kernel has such a form yet)");
  whole_number(
      app.add_option("--jobs", a.options.jobs, "N: NVRTC compilations at a time (default: as many as processors)"), 0);
  size_in_bytes(app.add_option("--max-memory", a.options.resources.memory_bytes,
                               "SIZE: end with an error where the process would have more memory, as 512M or 2G"));
  seconds_of_time(
      app.add_option("--timeout", a.options.resources.seconds, "SECONDS: end with an error where it takes longer"));
  seconds_of_time(app.add_option("--plan-deadline", a.options.plan_deadline,
                                 "SECONDS: of planning, after which the best plan so far is taken, with a warning"));
  size_in_bytes(app.add_option(
      "--max-file-size", a.options.resources.file_bytes,
      "SIZE: the largest model, header, text file or pipe that is read; 0 for no limit (default: 512M)"));
  app.add_option("--cache-dir", a.options.cache_directory,
                 "FOLDER: where results are kept (default: $XDG_CACHE_HOME/fusec or ~/.cache/fusec)");
  size_in_bytes(
      app.add_option("--cache-size", a.options.cache_bytes,
                     "SIZE: how large that may become, as 200M or 2G; what was not used for the longest time goes"))
      ->envname("FUSEC_CACHE_SIZE")
      ->default_str("512M");
  app.add_flag("--no-cache", a.no_cache, "compile everything anew");
  one_of(app.add_option("--color", a.color, "whether errors and tables are coloured"), {"auto", "always", "never"});
  app.add_flag("--time-passes", a.time_passes, "tell where the time went");
  app.add_flag("--json", a.json, "print as JSON: lists, explanations, profiles, the summary, errors");
  auto* quiet = app.add_flag("--quiet", a.quiet, "print warnings and errors alone");
  app.add_flag("-v,--verbose", a.verbose, "print more: every launch, times")->excludes(quiet);
}

Options given_options(const CompileArguments& a) {
  Options options = a.options;
  options.symbols = assignments("--symbol", a.symbols);
  options.resources.sizes = assignments("--limit", a.limits);
  return options;
}

std::string cache_warning(const CompileArguments& a) {
  if (a.no_cache) return "";
  if (const std::string& given = a.options.cache_directory; !given.empty()) {
    const std::string why = why_not_usable(given);
    return why.empty() ? "" : fmt::format("nothing is kept in {}: {}", given, why);
  }
  const std::string folder = default_cache_directory(), why = why_not_private(folder);
  if (why.empty()) return "";
  return fmt::format("nothing is kept in {}, to which others can write ({}); chmod go-w, or take --cache-dir", folder,
                     why);
}

std::string cache_folder(const CompileArguments& a) {
  if (a.no_cache || !a.options.cache_directory.empty()) return a.no_cache ? "" : a.options.cache_directory;
  const std::string folder = default_cache_directory();
  return why_not_private(folder).empty() ? folder : "";
}

PipelineOptions pipeline_options(const CompileArguments& a, int device) {
  Options shared = given_options(a);
  shared.cache_directory = cache_folder(a);
  PipelineOptions options = pipeline_options(shared, device);
  options.plan_file = a.plan_file;
  if (const char* level = std::getenv("FUSEC_DEBUG")) options.debug_level = std::atoi(level);
  return options;
}

std::vector<std::string> files_read(const CompileArguments& a) {
  std::vector<std::string> files = a.options.pattern_files;
  files.insert(files.end(), {a.model, a.plan_file, a.options.target, a.options.tuning_file});
  return files;
}

Graph read_model(const CompileArguments& a) {
  const std::map<std::string, std::int64_t> hints = assignments("--symbol", a.symbols);
  const Limits limits(assignments("--limit", a.limits));
  if (a.model == "-") standard_input() = read_standard_input();
  Graph graph = a.model == "-" ? read_model_text(standard_input(), a.model, "", OpTable::builtin(), limits)
                               : read_model(a.model, OpTable::builtin(), limits);
  set_hints(graph, hints);
  return graph;
}

int run_program(CLI::App& app, int argc, char** argv, const CompileArguments& arguments,
                const std::function<int()>& run) {
  prepare_heap();
  fill_standard_descriptors();
  handle_signals();
  int status = 0;
  std::optional<Budget> budget;
  // Search argv, so that --json applies to errors of the parser, too.
  const bool json = std::find(argv, argv + argc, std::string_view("--json")) != argv + argc;
  const auto show = [&](std::span<const Error> errors) { return show_errors(arguments, json, errors); };
  try {
    refuse_missing_values(std::vector<std::string>(argv, argv + argc));
    app.parse(argc, argv);
    refuse_empty_values(app);
    budget.emplace(arguments.options.resources, Budget::Memory::kOfProcess);
    const BudgetScope scope(&*budget);
    const Watchdog watchdog(*budget, [&](const std::string& excess) { print_error(arguments.color, excess); });
    status = run();
    finish_standard_output();
    return status;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return print_information(app, error, arguments.color);
    status = show(std::vector{usage_error(app, error)});
  } catch (const SeveralErrors& errors) {
    status = show(errors.all());
  } catch (const Error& error) {
    status = show(std::vector{error});
  } catch (const std::bad_alloc&) {
    throw;  // main calls end_without_memory; other messages allocate
  } catch (const std::exception& error) {
    const std::string advice = " (a bug in fusec; please report it with the model)";
    status = show(std::vector{Error(ErrorKind::kEnvironment, std::string("internal error: ") + error.what() + advice)});
  }
  if (budget && budget->is_exceeded()) std::_Exit(status);  // skip destructors, which may take long
  return status;
}

int end_without_memory() noexcept {
  constexpr std::string_view kMessage = "error: there is not enough memory\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kMessage.data(), kMessage.size());
  return static_cast<int>(ErrorKind::kEnvironment);
}

std::vector<std::string> name_list(const std::string& text) {
  if (!text.empty() && text.front() == '[') {
    const auto json = nlohmann::json::parse(text, nullptr, false);
    if (!json.is_array())
      throw Error(ErrorKind::kUsage, {.what = "a list of names", .found = text, .expected = "a JSON array"});
    std::vector<std::string> names;
    for (const auto& entry : json) {
      if (!entry.is_string())
        throw Error(ErrorKind::kUsage, {.what = "a list of names", .found = entry.dump(), .expected = "a string"});
      names.push_back(entry.get<std::string>());
    }
    return names;
  }
  std::vector<std::string> names;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    names.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return names;
}

void print_times(const std::vector<StageTime>& times) {
  double total = 0;
  for (const StageTime& t : times) total += t.seconds;
  for (const StageTime& t : times) print_message("{:>10.3f} ms  {}\n", t.seconds * 1e3, t.name);
  print_message("{:>10.3f} ms  in all; {} MiB at the peak\n", total * 1e3, peak_kibibytes() / 1024);
}

}  // namespace fusec
