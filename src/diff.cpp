#include "diff.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "ir/error.h"
#include "ir/mapped_file.h"
#include "ir/spelling.h"
#include "model_cost.h"
#include "output_file.h"
#include "summary.h"
#include "usage_errors.h"

namespace fusec {
namespace {

using Json = nlohmann::ordered_json;

struct DiffGroup {
  std::string name;
  std::vector<std::string> nodes;
  std::optional<double> seconds;
};

// One side of the comparison. A plan has only groups.
struct Side {
  std::string title;
  std::map<std::string, double> figures;  // by a key of kFigures
  std::vector<DiffGroup> groups;
};

struct Figure {
  const char* key;
  const char* title;
  std::string (*text)(double);
};

std::string count_text(double count) {
  return fmt::format("{:.0f}", count);
}

constexpr Figure kFigures[] = {
    {"launches", "launches a run", count_text}, {"kernels", "kernels in the source", count_text},
    {"groups", "groups", count_text},           {"bytes", "bytes moved", bytes_text},
    {"predicted", "predicted time", time_text}, {"unfused", "each operator alone", time_text}};

// Reads a side from a partition, report or plan.
Side side_of_file(const Json& json, const std::string& file) {
  Side side{.title = file, .figures = {}, .groups = {}};
  const auto take = [&](const char* key, const char* name, double scale) {
    if (json.contains(name) && json[name].is_number()) side.figures[key] = json[name].get<double>() * scale;
  };
  take("launches", "launches", 1);
  take("kernels", "kernels", 1);
  take("predicted", "predicted_us", 1e-6);
  take("unfused", "unfused_us", 1e-6);
  Json totals = json.value("global_bytes", Json::object());
  if (json.contains("totals") && json.contains("strategy")) {  // a report
    const Json& own = json["totals"].value(json["strategy"].get<std::string>(), Json::object());
    if (own.contains("launches")) side.figures["launches"] = own["launches"].get<double>();
    totals = own.value("bytes", Json::object());
  }
  if (totals.contains("read") && totals.contains("written"))
    side.figures["bytes"] = totals["read"].get<double>() + totals["written"].get<double>();
  for (const Json& group : json.value("groups", Json::array())) {
    DiffGroup g{
        .name = group.value("name", ""), .nodes = group.value("nodes", std::vector<std::string>()), .seconds = {}};
    if (group.contains("predicted_us")) g.seconds = group["predicted_us"].get<double>() * 1e-6;
    side.groups.push_back(std::move(g));
  }
  side.figures["groups"] = static_cast<double>(side.groups.size());
  return side;
}

Side side_of_model(const CompileArguments& arguments) {
  const Graph file = read_model(arguments);
  Pipeline pipeline(pipeline_options(arguments));
  PlannedModel planned = pipeline.plan(file);
  const GeneratedModel generated = pipeline.generate(planned, 1);
  const ComparedModel compared = compared_with_unfused(file, planned, &generated.launch, pipeline.options());
  const Summary s = summarize(planned, &generated.launch, &compared, file.nodes.size(), pipeline.options().target);
  Side side{.title = fmt::format("{} ({}, {})", s.model, s.strategy, s.arch),
            .figures = {{"launches", static_cast<double>(s.launches)},
                        {"kernels", static_cast<double>(s.kernels + s.variants)},
                        {"groups", static_cast<double>(s.groups - s.prepared_groups)},
                        {"bytes", s.total.read + s.total.written},
                        {"predicted", s.total.total},
                        {"unfused", s.unfused.total}},
            .groups = {}};
  for (const LaunchRow& row : s.rows)
    side.groups.push_back({.name = row.kernel, .nodes = row.nodes, .seconds = row.fused.total});
  return side;
}

constexpr const char* kSides = "a model, or a partition, report or plan of fusec's";

// Refuses manifests, profiles and what else has no groups to compare.
void refuse_other_kinds(const Json& json, const std::string& file) {
  if (!json.is_object()) return;
  std::string kind;
  for (const auto& [key, value] : json.items()) {
    if (key == "fusec_partition" || key == "fusec_report" || key == "fusec_plan") return;
    if (kind.empty() && key.starts_with("fusec_")) kind = key;
  }
  throw Error(
      ErrorKind::kInput,
      {.file = file, .what = "fusec diff does not compare such a file", .found = in_quotes(kind), .expected = kSides});
}

Side side_of(CompileArguments arguments, const std::string& file) {
  arguments.model = file;
  if (file != "-") {
    const std::string text = read_text_file(file);
    if (text.find("\"fusec_") < 64) {  // no model: "fusec_partition", "fusec_report", "fusec_plan"
      const Json json = Json::parse(text, nullptr, false);
      refuse_other_kinds(json, file);
      try {
        if (json.is_object()) return side_of_file(json, file);
      } catch (const Json::exception&) {
      }
      throw Error(
          ErrorKind::kInput,
          Error::Parts{
              .file = file, .what = "a side of the comparison cannot be read", .found = "", .expected = kSides});
    }
  }
  return side_of_model(arguments);
}

CompileArguments with_options(const CompileArguments& arguments, std::vector<std::string> options) {
  CompileArguments changed = arguments;
  CLI::App app;
  app.set_help_flag();
  add_compile_options(app, changed, false);
  for (const std::string& option : options)
    if (!option.starts_with('-'))
      throw Error(ErrorKind::kUsage, {.what = "--against",
                                      .found = in_quotes(option),
                                      .expected = "an option with its dashes",
                                      .hint = "--against=--" + option});
  parse_options(app, std::move(options));
  return changed;
}

// The groups of `a` that `b` does not have.
std::vector<const DiffGroup*> groups_of_one(const Side& a, const Side& b) {
  std::vector<std::vector<std::string>> others;
  const auto sorted = [](std::vector<std::string> nodes) {
    std::ranges::sort(nodes);
    return nodes;
  };
  for (const DiffGroup& group : b.groups) others.push_back(sorted(group.nodes));
  std::ranges::sort(others);
  std::vector<const DiffGroup*> alone;
  for (const DiffGroup& group : a.groups)
    if (!std::ranges::binary_search(others, sorted(group.nodes))) alone.push_back(&group);
  return alone;
}

std::string groups_text(const char* title, const std::vector<const DiffGroup*>& groups) {
  constexpr std::size_t kMost = 40;
  std::string text = fmt::format("\ngroups of {} alone: {}\n", title, groups.empty() ? "none" : "");
  for (std::size_t i = 0; i < std::min(groups.size(), kMost); ++i)
    text += fmt::format("  {:>9}  {}\n", groups[i]->seconds ? time_text(*groups[i]->seconds) : "",
                        listed(groups[i]->nodes, 12));
  if (groups.size() > kMost) text += fmt::format("  ... ({} in all)\n", groups.size());
  return text;
}

std::string diff_text(const Side& a, const Side& b) {
  const std::size_t width = std::clamp<std::size_t>(std::max(a.title.size(), b.title.size()) + 2, 14, 40);
  const auto fit = [&](const std::string& text) {
    return text.size() < width ? text : "..." + text.substr(text.size() - width + 4);
  };
  std::string text = fmt::format("{:<22}{:>{}}{:>{}}{:>9}\n", "", "A", width, "B", width, "B / A");
  text += fmt::format("{:<22}{:>{}}{:>{}}\n", "", fit(a.title), width, fit(b.title), width);
  for (const Figure& figure : kFigures) {
    const auto of_a = a.figures.find(figure.key), of_b = b.figures.find(figure.key);
    if (of_a == a.figures.end() && of_b == b.figures.end()) continue;
    const bool both = of_a != a.figures.end() && of_b != b.figures.end();
    text += fmt::format("{:<22}{:>{}}{:>{}}{:>9}\n", figure.title,
                        of_a == a.figures.end() ? "-" : figure.text(of_a->second), width,
                        of_b == b.figures.end() ? "-" : figure.text(of_b->second), width,
                        both && of_a->second > 0 ? fmt::format("{:.2f}", of_b->second / of_a->second) : "");
  }
  const auto alone = groups_of_one(a, b);
  const std::size_t same = a.groups.size() - alone.size();
  text += fmt::format("\n{} {} the same\n", same, same == 1 ? "group is" : "groups are");
  return text + groups_text("A", alone) + groups_text("B", groups_of_one(b, a));
}

Json side_json(const Side& side, const std::vector<const DiffGroup*>& alone) {
  Json json = {{"title", side.title}};
  for (const Figure& figure : kFigures)
    if (const auto at = side.figures.find(figure.key); at != side.figures.end()) {
      const bool is_time = figure.text == time_text;
      json[is_time ? std::string(figure.key) + "_us" : figure.key] = at->second * (is_time ? 1e6 : 1);
    }
  json["groups_alone"] = Json::array();
  for (const DiffGroup* group : alone) json["groups_alone"].push_back({{"name", group->name}, {"nodes", group->nodes}});
  return json;
}

}  // namespace

void add_diff_options(CLI::App& app, std::vector<std::string>& sides, std::vector<std::string>& against) {
  app.description(
      "fusec diff sets two models, partitions, reports or plans side by side,\n"
      "or one model under two sets of options.\n\n"
      "  fusec diff A.json B.json\n"
      "  fusec diff model.json --against=--strategy=tvm\n");
  if (CLI::Option* word = app.get_option_no_throw("model")) word->group("");  // which is "diff"
  app.add_option("sides", sides, "the two models, partitions, reports or plans; one model with --against");
  add_repeatable(app, "--against", against, "OPTION: an option of the second side alone, as --against=--strategy=tvm");
}

int run_diff(const CompileArguments& arguments, const std::vector<std::string>& sides,
             const std::vector<std::string>& against) {
  const bool one = sides.size() == 1 && !against.empty();
  if (sides.size() != 2 && !one)
    throw Error(ErrorKind::kUsage, Error::Parts{.what = "fusec diff",
                                                .found = fmt::format("{} files", sides.size()),
                                                .expected = "two",
                                                .hint = "fusec diff A.json B.json, or fusec diff MODEL.json "
                                                        "--against=--strategy=tvm"});
  const Side a = side_of(arguments, sides.front());
  const Side b = side_of(with_options(arguments, against), sides.back());
  const Json json = {{"a", side_json(a, groups_of_one(a, b))}, {"b", side_json(b, groups_of_one(b, a))}};
  write_output("-", arguments.json ? json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n" : diff_text(a, b));
  return 0;
}

}  // namespace fusec
