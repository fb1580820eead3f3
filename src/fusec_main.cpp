// fusec: reads a model, fuses it, emits CUDA source (and what else is asked for).
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "codegen/nvrtc/compile_cache.h"
#include "command_line.h"
#include "compile_command.h"
#include "diff.h"
#include "emissions.h"
#include "fusec/doctor.h"
#include "ir/error.h"
#include "lists.h"
#include "option_values.h"
#include "output_file.h"
#include "passes.h"
#include "summary.h"
#include "usage_errors.h"

namespace fusec {
namespace {

int run_doctor(const FusecArguments& a) {
  const std::vector<Finding> findings = examine(a.compile.options);
  write_output("-", a.compile.json ? findings_json(findings) : findings_text(findings));
  return can_compile(findings) ? 0 : static_cast<int>(ErrorKind::kEnvironment);
}

// `fusec cache show|prune|clear`: what the compile cache holds, after removing what is to go.
int run_cache(const FusecArguments& a) {
  const std::string folder = cache_folder(a.compile);
  if (folder.empty())
    throw Error(ErrorKind::kEnvironment,
                {.what = "no compile cache", .found = cache_warning(a.compile), .hint = "name one: --cache-dir=DIR"});
  const std::uint64_t limit = a.compile.options.cache_bytes;
  const CompileCache private_one(folder, limit);  // refuses a folder to which others can write
  CacheUse removed;
  if (a.cache_action != "show") removed = prune_cache(folder, a.cache_action == "clear" ? 0 : limit);
  const CacheUse use = cache_use(folder);
  if (a.compile.json) {
    const nlohmann::ordered_json report = {{"folder", folder},           {"entries", use.entries},
                                           {"bytes", use.bytes},         {"limit_bytes", limit},
                                           {"removed", removed.entries}, {"removed_bytes", removed.bytes}};
    write_output("-", report.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
    return 0;
  }
  const auto counted = [](const CacheUse& some) {
    return fmt::format("{} {}, {}", some.entries, some.entries == 1 ? "entry" : "entries",
                       bytes_text(static_cast<double>(some.bytes)));
  };
  std::string text = fmt::format("{}: {} of {}\n", folder, counted(use), bytes_text(static_cast<double>(limit)));
  if (a.cache_action != "show") text += fmt::format("removed: {}\n", counted(removed));
  write_output("-", text);
  return 0;
}

// Whether a browser was started.
bool shows_in_browser(const std::string& path) {
#ifdef __APPLE__
  const char* const opener = "open";
#else
  const char* const opener = "xdg-open";
  if (!std::getenv("DISPLAY") && !std::getenv("WAYLAND_DISPLAY")) return false;
#endif
  const char* const words[] = {opener, path.c_str(), nullptr};
  pid_t child = 0;
  int status = 0;
  if (posix_spawnp(&child, opener, nullptr, nullptr, const_cast<char* const*>(words), environ) != 0) return false;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// `fusec view`: the page of --emit=html, in -o FILE or a temporary file; its path is printed where no browser shows it.
int run_view(FusecArguments a) {
  const std::string extension = std::filesystem::path(a.output).extension();
  if (!extension.empty() && extension != ".html" && extension != ".htm")
    throw Error(ErrorKind::kUsage, {.what = "fusec view writes a page",
                                    .found = "-o " + a.output,
                                    .expected = "a file that ends in .html or .htm",
                                    .hint = "fusec MODEL -o FILE writes other kinds"});
  const bool is_temporary = a.output.empty();
  const std::string path = is_temporary ? new_temporary_file(".html") : std::exchange(a.output, "");
  a.emits.push_back("html=" + path);
  try {
    run_compilation(a);
  } catch (...) {
    std::error_code ignored;
    if (is_temporary) std::filesystem::remove(path, ignored);
    throw;
  }
  if (path != "-" && !shows_in_browser(path)) write_output("-", path + "\n");
  return 0;
}

int run(const FusecArguments& a) {
  if (a.compile.model == "doctor") return run_doctor(a);
  if (a.compile.model == "cache") return run_cache(a);
  if (a.compile.model == "diff") return run_diff(a.compile, a.sides, a.against);
  if (a.list_ops || a.list_passes || a.list_targets) {
    write_output("-", a.list_ops      ? list_ops(a.compile.json)
                      : a.list_passes ? list_passes(a.compile.json)
                                      : list_targets(a.compile.json));
    return 0;
  }
  if (a.list_patterns) {
    write_output("-", list_patterns(pipeline_options(a.compile).patterns, a.compile.json));
    return 0;
  }
  if (a.compile.model.empty())
    throw Error(ErrorKind::kUsage, {.what = "no model is given",
                                    .found = {},
                                    .expected = a.view ? "fusec view model.json" : "fusec model.json -o out.cu"});
  if (!a.dump_before.empty()) find_pass(a.dump_before);
  if (!a.dump_after.empty() && a.dump_after != "all") find_pass(a.dump_after);
  return a.view ? run_view(a) : run_compilation(a);
}

}  // namespace
}  // namespace fusec

int main(int given, char** words) try {
  // `fusec help diff` is `fusec diff --help`.
  std::vector<char*> line(words, words + given);
  std::string help = "--help";
  if (given > 1 && std::string_view(words[1]) == "help" && (given == 2 || fusec::is_command(words[2]))) {
    line.erase(line.begin() + 1);
    line.push_back(help.data());
  }
  const bool view = line.size() > 1 && std::string_view(line[1]) == "view";
  if (view) line.erase(line.begin() + 1);
  line.push_back(nullptr);
  char** const argv = line.data();
  const int argc = static_cast<int>(line.size()) - 1;
  CLI::App app{
      "fusec compiles neural-network graphs to fused CUDA source.\n\n  fusec model.json -o out.cu\n"
      "  fusec diff A B  two models, partitions, reports or plans side by side\n"
      "  fusec view A    the model in a browser: the page of --emit=html\n"
      "  fusec cache     the compile cache: show, prune or clear\n"
      "  fusec doctor    what this machine has and lacks, and what to do about it\n"
      "  fusec help      this text; fusec help diff: that of diff\n"};
  app.set_version_flag("--version", std::string("fusec ") + FUSEC_VERSION);
  fusec::FusecArguments a;
  a.view = view;
  a.words.assign(words + 1, words + given);
  fusec::add_compile_options(app, a.compile, false);
  app.add_option(
      "-o", a.output,
      "FILE: the output; its extension says what: .cu .h .ptx .cubin .dot .svg .html .json (manifest) .txt (ir)");
  fusec::add_repeatable(app, "--emit", a.emits,
                        fmt::format("KIND[=FILE]: {}", fmt::join(fusec::emission_kinds(), " ")));
  fusec::add_repeatable(app, "--require-one-kernel", a.one_kernel,
                        "A,B,...: fail unless these nodes end up in one kernel; also a JSON array");
  fusec::add_repeatable(app, "--explain", a.explain,
                        "A,B,...: why nodes are, or are not, in one kernel; or all; also a JSON array");
  app.add_flag("--no-nvrtc", a.no_nvrtc, "emit without compiling");
  app.add_option("--name", a.name, "NAME: the model's name in what is emitted (default: the one in the file)");
  app.add_flag("--stats", a.stats, "tell where time and memory went, and what the compile cache had");
  app.add_flag("--list-ops", a.list_ops, "the operators");
  app.add_flag("--list-passes", a.list_passes, "the stages of a compilation");
  app.add_flag("--list-patterns", a.list_patterns, "the fusion patterns, in the order in which they are tried");
  app.add_flag("--list-targets", a.list_targets, "the targets");
  app.add_option("--bisect", a.bisect,
                 "CMD: find the fusion with which this command fails (FUSEC_PLAN names the plan)");
  app.add_option("--profile", a.profile, "FILE: what fusec-run --profile=FILE --json wrote, shown by --emit=html");
  app.add_option("--dump-ir-before", a.dump_before, "PASS: the graph as text, on standard error");
  app.add_option("--dump-ir-after", a.dump_after, "PASS: the graph after it; all for every pass");
  if (argc > 1 && std::string_view(argv[1]) == "diff") fusec::add_diff_options(app, a.sides, a.against);
  if (argc > 1 && std::string_view(argv[1]) == "cache")
    fusec::one_of(app.add_option("action", a.cache_action, "show, prune (down to --cache-size) or clear"),
                  {"show", "prune", "clear"});
  return fusec::run_program(app, argc, argv, a.compile, [&] { return fusec::run(a); });
} catch (const std::bad_alloc&) {
  return fusec::end_without_memory();
}
