// Options by the command line's names: its own parser reads them.
#include "c_api/handles.h"
#include "fusec/doctor.h"
#include "ir/mapped_file.h"
#include "ir/spelling.h"
#include "lists.h"
#include "pattern_options.h"

using namespace fusec;
using namespace fusec::c_api;

namespace {

void set_option(fusec_options& options, std::string name, const char* value) {
  GivenOptions given = options.given;
  const CompileArguments arguments = with_option(given, std::move(name), value);
  Options made = given_options(arguments);
  made.patterns = options.options.patterns;
  if (arguments.plan_file.empty()) made.plan = options.options.plan;
  made.progress = options.options.progress;
  options.options = std::move(made);
  options.plan_file = arguments.plan_file;
  options.uses_cache = !arguments.no_cache;
  options.given = std::move(given);
}

Options with_files(const fusec_options& given) {
  Options options = given.options;
  if (!given.plan_file.empty()) options.plan = read_text_file(given.plan_file);
  if (!given.uses_cache)
    options.cache_directory.clear();
  else if (options.cache_directory.empty())
    options.cache_directory = users_cache_directory();
  return options;
}

}  // namespace

Options c_api::options_of(const fusec_options* options) {
  return with_files(options ? *options : fusec_options{});
}

fusec_status fusec_options_new(fusec_options** options, fusec_error** error) {
  return guarded_new(options, error, [] { return new fusec_options{}; });
}

fusec_status fusec_options_set(fusec_options* options, const char* name, const char* value, fusec_error** error) {
  return guarded(error, [&] {
    require(options, "options");
    require(name, "the option's name");
    set_option(*options, name, value);
  });
}

fusec_status fusec_options_add_patterns(fusec_options* options, const char* text, fusec_error** error) {
  return guarded(error, [&] {
    require(options, "options");
    require(text, "the patterns");
    options->options.patterns.push_back({.text = text, .check = {}, .attributes = {}});
  });
}

fusec_status fusec_options_set_plan(fusec_options* options, const char* text, fusec_error** error) {
  return guarded(error, [&] {
    require(options, "options");
    require(text, "the plan");
    options->options.plan = text;
    options->plan_file.clear();
  });
}

fusec_status fusec_options_set_progress(fusec_options* options, fusec_progress progress, void* user,
                                        fusec_error** error) {
  return guarded(error, [&] {
    require(options, "options");
    options->options.progress = nullptr;
    if (!progress) return;
    options->options.progress = [progress, user](const Progress& p) {
      if (progress(user, std::string(p.stage).c_str(), p.done, p.total) != 0) throw Cancelled();
    };
  });
}

void fusec_options_free(fusec_options* options) {
  delete options;
}

fusec_status fusec_list(const char* what, const fusec_options* options, fusec_text** list, fusec_error** error) {
  return guarded_new(list, error, [&] {
    require(what, "what is listed");
    const std::string wanted = what;
    if (wanted == "ops") return new_text(list_ops(true));
    if (wanted == "passes") return new_text(list_passes(true));
    if (wanted == "targets") return new_text(list_targets(true));
    if (wanted == "patterns") return new_text(list_patterns(pattern_list(options_of(options)), true));
    throw Error(ErrorKind::kUsage,
                {.what = "a list", .found = in_quotes(wanted), .expected = "ops, passes, patterns or targets"});
  });
}

fusec_status fusec_doctor(const fusec_options* options, int32_t json, fusec_text** findings, fusec_error** error) {
  return guarded_new(findings, error, [&] {
    const std::vector<Finding> found = examine(options_of(options));
    return new_text(json ? findings_json(found) : findings_text(found));
  });
}
