#include "pipeline_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "codegen/tuning/tuning_database.h"
#include "ir/error.h"
#include "ir/mapped_file.h"
#include "ir/spelling.h"
#include "passes.h"
#include "pattern_options.h"
#include "runtime/cuda_device.h"
#include "schedule/target/target_file.h"

namespace fusec {

namespace {

// A target's name, or a file that describes one.
Target named_target(const std::string& text) {
  const auto known = std::ranges::find(known_targets(), text, &Target::name);
  if (known != known_targets().end()) return *known;
  std::error_code none;
  if (std::filesystem::exists(text, none)) return read_target(read_text_file(text), text);
  std::vector<std::string> list;
  for (const Target& t : known_targets()) list.push_back(t.name);
  const std::vector<std::string_view> names(list.begin(), list.end());
  throw Error(ErrorKind::kInput, {.what = "--target: neither a target nor a file",
                                  .found = in_quotes(text),
                                  .expected = "one of " + listed(list) + ", or a JSON file",
                                  .hint = did_you_mean(text, names)});
}

Target wanted_target(const Options& o, int device) {
  const Target of_arch = target_for(o.arch == "native" ? native_architecture(device) : o.arch);
  if (o.target.empty()) return of_arch;
  const Target target = named_target(o.target);
  // An --arch equal to the default counts as not given.
  if (o.arch != Options{}.arch && of_arch.arch != target.arch)
    throw Error(ErrorKind::kUsage, {.what = "the target is of another architecture than --arch",
                                    .found = in_quotes(target.arch),
                                    .expected = in_quotes(of_arch.arch)});
  return target;
}

}  // namespace

PipelineOptions pipeline_options(const Options& o, int device) {
  const auto strategy = parse_strategy(o.strategy);
  if (!strategy)
    throw Error(ErrorKind::kUsage,
                Error::Parts{.what = "strategy", .found = in_quotes(o.strategy), .expected = "none, tvm or full"});
  if (o.max_fused_ops == 0)
    throw Error(ErrorKind::kUsage, {.what = "max_fused_ops", .found = "0", .expected = "at least 1 node a group"});
  if (o.jobs < 0)
    throw Error(ErrorKind::kUsage, {.what = "jobs",
                                    .found = std::to_string(o.jobs),
                                    .expected = "at least 1, or 0 for as many as there are processors"});
  PipelineOptions options;
  options.strategy = *strategy;
  options.target = wanted_target(o, device);
  options.own_target =
      !o.target.empty() && std::ranges::find(known_targets(), o.target, &Target::name) == known_targets().end();
  options.emit = {
      .round_intermediates = o.round_intermediates,
      .numerics = {.precise_math = o.precise_math, .allow_tf32 = o.allow_tf32, .allow_atomics = o.allow_atomics}};
  if (!o.tuning_file.empty())
    options.emit.tuning =
        std::make_shared<const TuningDatabase>(read_tuning(read_text_file(o.tuning_file), o.tuning_file));
  options.max_fused_ops = o.max_fused_ops;
  options.max_args = o.max_args;
  options.no_fuse_ops = o.no_fuse_ops;
  options.no_fuse_nodes = o.no_fuse_nodes;
  // Parsing the built-in patterns takes longer than partitioning most models, so skip it if nothing uses patterns. A
  // cost report uses them, since it plans the model under `full`, too. A user's patterns are always parsed, to report
  // errors in them.
  const bool names_patterns = !o.patterns.empty() || !o.pattern_files.empty() || !o.disabled_patterns.empty();
  if (options.strategy == Strategy::kFull || names_patterns || o.report)
    options.patterns = pattern_list(o, options.target);
  require_optional_passes(o.disabled_passes);
  options.left_out = {.passes = o.disabled_passes, .patterns = o.disabled_patterns};
  options.plan_text = o.plan;
  options.plan_seconds = o.plan_deadline;
  options.compile = {.jobs = o.jobs, .cache_directory = o.cache_directory, .cache_bytes = o.cache_bytes};
  if (o.progress) {
    options.progress = [tell = o.progress](const Pass& pass) { tell({.stage = pass.name}); };
    options.compile.progress = [tell = o.progress](std::size_t done, std::size_t total) {
      tell({.stage = "nvrtc", .done = done, .total = total});
    };
  }
  options.limits = Limits(o.resources.sizes);
  return options;
}

void set_hints(Graph& graph, const std::map<std::string, std::int64_t>& values) {
  std::vector<Symbol> symbols = graph.symbols.list();
  for (const auto& [name, value] : values) {
    const auto symbol = std::ranges::find(symbols, name, &Symbol::name);
    if (symbol == symbols.end()) {
      std::vector<std::string_view> names;
      for (const Symbol& s : symbols) names.push_back(s.name);
      throw Error(ErrorKind::kInput, {.file = graph.file,
                                      .what = "the model has no symbol of this name",
                                      .found = in_quotes(name),
                                      .hint = did_you_mean(name, names)});
    }
    if (value < symbol->min || value > symbol->max || value % symbol->multiple_of != 0)
      throw Error(ErrorKind::kInput, {.file = graph.file,
                                      .what = "the value of symbol " + in_quotes(name),
                                      .found = std::to_string(value),
                                      .expected = fmt::format("{} to {}, a multiple of {}", symbol->min, symbol->max,
                                                              symbol->multiple_of)});
    symbol->hint = value;
  }
  graph.symbols = std::move(symbols);
}

}  // namespace fusec
