#include "summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "codegen/expr/identifiers.h"
#include "kernel_at_hints.h"

namespace fusec {
namespace {

std::string counted(std::size_t count, std::string_view one, std::string_view several) {
  return fmt::format("{} {}", count, count == 1 ? one : several);
}

// The number of distinct kernels that a launch runs at the hints of the symbols.
std::size_t kernels_at_hints(const LaunchPlan& launch, const Symbols& symbols) {
  const std::vector<std::int64_t> hints = hints_of(symbols);
  std::set<std::uint32_t> kernels;
  for (const LaunchStep& step : launch.steps) kernels.insert(kernel_at_hints(step, hints));
  kernels.erase(kNone);
  return kernels.size();
}

std::size_t kernels_of_any_size(const LaunchPlan& launch) {
  std::set<std::uint32_t> kernels;
  for (const LaunchStep& step : launch.steps) {
    if (step.kind != LaunchStep::Kind::kKernel) continue;
    kernels.insert(step.kernel);
    for (const LaunchStep::Specialization& special : step.special) kernels.insert(special.kernel);
  }
  kernels.erase(kNone);
  return kernels.size();
}

// Explains why the counts of groups and launches differ.
std::string remarks_on(const FusionPlan& plan, const LaunchPlan& launch) {
  std::string text;
  std::vector<std::size_t> launches(plan.groups.size());
  std::size_t copies = 0;
  for (const LaunchStep& step : launch.steps)
    if (step.group < launches.size())
      ++launches[step.group];
    else
      ++copies;
  std::size_t none = 0, several = 0;
  for (std::size_t g = 0; g < launches.size(); ++g) {
    none += launches[g] == 0 && !plan.groups[g].prepared;
    several += launches[g] > 1;
  }
  if (none) text += fmt::format(", {} without a launch (views, or part of another group's launch)", none);
  if (several) text += fmt::format(", {} of more than one launch", several);
  if (copies) text += ", " + counted(copies, "copy of an output", "copies of outputs");
  return text;
}

std::string what_runs(const LaunchStep& step, const LaunchPlan& launch, const Graph& graph,
                      const std::vector<std::int64_t>& hints) {
  switch (step.kind) {
    case LaunchStep::Kind::kKernel: {
      const std::uint32_t kernel = kernel_at_hints(step, hints);
      return kernel == kNone ? "" : launch.kernels[kernel].name;
    }
    case LaunchStep::Kind::kCopy:
      return "(copy)";
    case LaunchStep::Kind::kMatrixCall:
      return "(cuBLASLt)";
    case LaunchStep::Kind::kExternal:
    case LaunchStep::Kind::kCollective:
      return "(" + comment_text(graph.nodes[step.node].op->name) + ")";
  }
  return "";
}

// By group: the kernel of its first launch, and the number of further launches.
std::vector<std::string> kernels_of_groups(const PlannedModel& planned, const LaunchPlan& launch) {
  const std::vector<std::int64_t> hints = hints_of(planned.graph.symbols);
  std::vector<std::vector<std::string>> names(planned.plan.groups.size());
  for (const LaunchStep& step : launch.steps)
    if (step.group < names.size())
      if (std::string name = what_runs(step, launch, planned.source_graph(), hints); !name.empty())
        names[step.group].push_back(std::move(name));
  std::vector<std::string> texts;
  for (const auto& list : names)
    texts.push_back(list.empty()       ? ""
                    : list.size() == 1 ? list.front()
                                       : fmt::format("{} +{}", list.front(), list.size() - 1));
  return texts;
}

std::vector<std::string> file_nodes_of(const PlannedModel& planned, GroupId g) {
  std::vector<std::string> names;
  for (const NodeId n : planned.plan.groups[g].nodes) {
    if (planned.report.stands_for.empty())
      names.push_back(comment_text(planned.graph.nodes[n].name));
    else
      for (const std::string_view origin : planned.report.stands_for[n]) names.push_back(comment_text(origin));
  }
  return names;
}

void add_cost(Summary& summary, const PlannedModel& planned, const LaunchPlan* launch, const ComparedModel& compared) {
  summary.has_cost = true;
  const std::vector<std::string> kernels =
      launch ? kernels_of_groups(planned, *launch) : std::vector<std::string>(planned.plan.groups.size());
  for (GroupId g = 0; g < planned.plan.groups.size(); ++g) {
    const FusionGroup& group = planned.plan.groups[g];
    if (group.prepared || compared.own.groups[g].launches == 0) {
      summary.unfused_elsewhere += compared.unfused_of_group[g];
      continue;
    }
    summary.rows.push_back({.kernel = kernels[g].empty() ? group.name : kernels[g],
                            .nodes = file_nodes_of(planned, g),
                            .fused = compared.own.groups[g],
                            .unfused = compared.unfused_of_group[g]});
  }
  if (compared.own.at_end.launches > 0)
    summary.rows.push_back({.kernel = "(copies of outputs)", .nodes = {}, .fused = compared.own.at_end, .unfused = {}});
  summary.total = compared.own.total();
  summary.unfused = compared.unfused.total();
  summary.unfused_elsewhere += compared.unfused_elsewhere;
}

// A number with three significant digits.
std::string three_digits(double number, std::string_view unit) {
  const int decimals = number < 9.995 ? 2 : number < 99.95 ? 1 : 0;
  return fmt::format("{:.{}f} {}", number, decimals, unit);
}

std::string cut(const std::string& text, std::size_t width) {
  return text.size() <= width ? text : text.substr(0, width - 3) + "...";
}

// As many names as fit into the width, and the number of the others.
std::string names_within(const std::vector<std::string>& names, std::size_t width) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::size_t left = names.size() - i - 1;
    const std::string more = left ? fmt::format(" +{}", left) : "";
    const std::string longer = text + (i ? ", " : "") + names[i];
    if (longer.size() + more.size() <= width) {
      text = longer;
      continue;
    }
    const std::string rest = fmt::format(" +{}", left + 1);
    return text.empty() ? cut(names[i], width - more.size()) + more : cut(text + rest, width);
  }
  return text;
}

// A row of the table. In a long table a row combines all launches of its kernel.
struct ShownRow {
  LaunchRow launch;
  std::size_t times = 1;
};

std::vector<ShownRow> by_kernel(const std::vector<LaunchRow>& launches) {
  std::vector<ShownRow> rows;
  for (const LaunchRow& launch : launches) {
    const auto same =
        std::ranges::find_if(rows, [&](const ShownRow& row) { return row.launch.kernel == launch.kernel; });
    if (same == rows.end()) {
      rows.push_back({launch});
      continue;
    }
    same->launch.fused += launch.fused;
    same->launch.unfused += launch.unfused;
    ++same->times;
  }
  return rows;
}

// If there are few launches, one row each. Otherwise one row a kernel: the kernels with the longest times, in execution
// order, and one row for all others.
std::vector<ShownRow> shown_rows(const Summary& summary, std::size_t most) {
  if (most == 0 || summary.rows.size() <= most) {
    std::vector<ShownRow> all;
    for (const LaunchRow& launch : summary.rows) all.push_back({launch});
    return all;
  }
  const std::vector<ShownRow> kernels = by_kernel(summary.rows);
  if (kernels.size() <= most + 1) return kernels;
  std::vector<double> times;
  for (const ShownRow& row : kernels) times.push_back(row.launch.fused.total);
  std::ranges::sort(times, std::greater<>());
  std::vector<ShownRow> rows;
  ShownRow others{.launch = {.kernel = "(others)", .nodes = {"-v shows every launch"}, .fused = {}, .unfused = {}},
                  .times = 0};
  for (const ShownRow& row : kernels) {
    if (rows.size() < most && row.launch.fused.total >= times[most - 1]) {
      rows.push_back(row);
      continue;
    }
    others.launch.fused += row.launch.fused;
    others.launch.unfused += row.launch.unfused;
    others.times += row.times;
  }
  rows.push_back(std::move(others));
  return rows;
}

// The number of launches and the kernel's name, or the end of a name that is too long.
std::string kernel_text(const ShownRow& row, std::size_t width) {
  const std::string times = row.times > 1 ? fmt::format("{} x ", row.times) : "";
  const std::string& name = row.launch.kernel;
  const std::size_t room = width - std::min(width - 4, times.size());
  return times + (name.size() <= room ? name : "..." + name.substr(name.size() - room + 3));
}

struct Columns {
  std::size_t kernel, nodes;
  static constexpr std::size_t kNumbers = 11 + 11 + 11 + 8;
};

Columns columns_of(const std::vector<ShownRow>& rows, std::size_t width) {
  const std::size_t room = std::max<std::size_t>(width, 72) - Columns::kNumbers - 4;
  std::size_t kernel = 6, nodes = 5;
  for (const ShownRow& row : rows) {
    std::size_t names = 0;
    for (const std::string& node : row.launch.nodes) names += node.size() + 2;
    kernel = std::max(kernel, row.launch.kernel.size() + (row.times > 1 ? 5 : 0));
    nodes = std::max(nodes, names < 2 ? 0 : names - 2);
  }
  if (kernel + nodes > room) kernel = std::min(kernel, std::max(room / 2, nodes < room ? room - nodes : 0));
  return {.kernel = kernel, .nodes = std::min(nodes, room - kernel)};
}

std::string table_row(const Columns& columns, const std::string& kernel, const std::string& nodes,
                      const std::string& bytes, const std::string& fused, const std::string& unfused,
                      const std::string& share) {
  return fmt::format("  {:<{}}  {:<{}}{:>11}{:>11}{:>11}{:>8}\n", kernel, columns.kernel, nodes, columns.nodes, bytes,
                     fused, unfused, share);
}

std::string moved(const Prediction& p) {
  return fmt::format("{} in {}, {} moved", time_text(p.total), counted(p.launches, "launch", "launches"),
                     bytes_text(p.read + p.written));
}

// "1.6 times as fast"
std::string comparison_text(const Summary& summary) {
  if (summary.total.total <= 0) return "";
  const double speedup = summary.unfused.total / summary.total.total;
  return fmt::format("fused is {:.{}f} times as fast", speedup, speedup < 9.95 ? 2 : 0);
}

}  // namespace

std::string time_text(double seconds) {
  const double us = seconds * 1e6;
  return us < 999.5 ? three_digits(us, "us") : us < 999.5e3 ? three_digits(us / 1e3, "ms") : three_digits(seconds, "s");
}

std::string bytes_text(double bytes) {
  if (bytes < 999.5) return fmt::format("{:.0f} B", bytes);
  if (bytes < 999.5e3) return three_digits(bytes / 1e3, "kB");
  return bytes < 999.5e6 ? three_digits(bytes / 1e6, "MB") : three_digits(bytes / 1e9, "GB");
}

std::string folded(const std::string& text, std::size_t width) {
  constexpr std::size_t kIndent = 4, kNone = std::string::npos;
  if (width == 0) return text;
  std::string out;
  std::size_t begin = 0, column = 0, separator = kNone, blank = kNone;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\033') {  // a colour takes no column
      i = std::min(text.find('m', i), text.size() - 1);
      continue;
    }
    if ((static_cast<unsigned char>(text[i]) & 0xc0) != 0x80) ++column;
    if (text[i] == ' ' && i > begin) (text[i - 1] == ',' || text[i - 1] == ';' ? separator : blank) = i;
    if (column <= width || (separator == kNone && blank == kNone)) continue;
    const std::size_t at = separator != kNone ? separator : blank;
    out += text.substr(begin, at - begin) + "\n" + std::string(kIndent, ' ');
    begin = at + 1;
    i = at;
    column = kIndent;
    separator = blank = kNone;
  }
  return out + text.substr(begin);
}

Summary summarize(const PlannedModel& planned, const LaunchPlan* launch, const ComparedModel* compared,
                  std::size_t file_nodes, const Target& target) {
  const Symbols& symbols = planned.graph.symbols;
  Summary summary{.model = comment_text(planned.graph.name),
                  .strategy = std::string(name(planned.plan.strategy)),
                  .arch = target.arch,
                  .chip = target.chip,
                  .nodes = file_nodes,
                  .groups = planned.plan.groups.size()};
  summary.prepared_groups =
      static_cast<std::size_t>(std::ranges::count_if(planned.plan.groups, &FusionGroup::prepared));
  for (const Symbol& symbol : symbols)
    summary.symbols += fmt::format("{}{} = {}", summary.symbols.empty() ? "" : ", ", symbol.name, symbol.hint);
  if (launch) {
    summary.has_launches = true;
    summary.remarks = remarks_on(planned.plan, *launch);
    summary.launches = launch->steps.size();
    summary.kernels = kernels_at_hints(*launch, symbols);
    summary.variants = kernels_of_any_size(*launch) - summary.kernels;
    summary.prepare_launches = launch->prepare_steps.size();
    summary.workspace_bytes = value_at_hint(launch->workspace_bytes, symbols);
  }
  if (compared) add_cost(summary, planned, launch, *compared);
  return summary;
}

std::string summary_line(const Summary& s) {
  std::string text =
      fmt::format("{}: {} in {}", s.model, counted(s.nodes, "node", "nodes"), counted(s.groups, "group", "groups"));
  if (s.prepared_groups) text += fmt::format(", {} of them prepared once for each set of weights", s.prepared_groups);
  text += s.remarks;
  if (!s.has_launches) return text;
  text +=
      fmt::format("; {} a run ({}", counted(s.launches, "launch", "launches"), counted(s.kernels, "kernel", "kernels"));
  if (s.variants) text += fmt::format(", and {} for other sizes", counted(s.variants, "variant", "variants"));
  text += ")";
  if (s.prepare_launches) text += fmt::format(", {} to prepare", counted(s.prepare_launches, "launch", "launches"));
  return text + "; workspace " + bytes_text(static_cast<double>(s.workspace_bytes));
}

std::string launch_table(const Summary& summary, const SummaryStyle& style) {
  if (!summary.has_cost) return "";
  const char* const bold = style.colored ? "\033[1m" : "";
  const char* const green = style.colored ? "\033[1;32m" : "";
  const char* const plain = style.colored ? "\033[0m" : "";
  const std::vector<ShownRow> rows = shown_rows(summary, style.rows);
  const Columns columns = columns_of(rows, style.width);
  std::string text = bold + table_row(columns, "kernel", "nodes", "bytes", "predicted", "unfused", "share") + plain;
  for (const ShownRow& row : rows) {
    const LaunchRow& launch = row.launch;
    const double share = summary.total.total > 0 ? launch.fused.total / summary.total.total : 0;
    text += table_row(columns, kernel_text(row, columns.kernel), names_within(launch.nodes, columns.nodes),
                      bytes_text(launch.fused.read + launch.fused.written), time_text(launch.fused.total),
                      time_text(launch.unfused.total), fmt::format("{:.0f} %", share * 100));
  }
  if (summary.unfused_elsewhere.launches > 0)
    text += table_row(columns, cut("(no launch a run)", columns.kernel),
                      names_within({"prepared, folded or dropped"}, columns.nodes), "", "",
                      time_text(summary.unfused_elsewhere.total), "");
  std::string on = "predicted on " + summary.chip;
  if (!summary.symbols.empty()) on += " at " + cut(summary.symbols, 40);
  const std::string alone = "each operator alone";
  const std::size_t width = std::max(on.size(), alone.size()) + 1;
  const std::string faster = comparison_text(summary);
  std::string of_unfused = fmt::format("{:<{}} {}", alone + ":", width, moved(summary.unfused));
  if (!faster.empty()) of_unfused += fmt::format("; {}{}{}", green, faster, plain);
  text += folded(fmt::format("{:<{}} {}", on + ":", width, moved(summary.total)), style.line_width) + "\n";
  return text + folded(of_unfused, style.line_width) + "\n";
}

std::string summary_json(const Summary& s, const Outcome& outcome) {
  using Json = nlohmann::ordered_json;
  const auto cost = [](const Prediction& p) {
    return Json{{"predicted_us", p.total * 1e6},
                {"launches", p.launches},
                {"bytes_read", p.read},
                {"bytes_written", p.written}};
  };
  Json json = {{"model", s.model}, {"strategy", s.strategy}, {"arch", s.arch},
               {"nodes", s.nodes}, {"groups", s.groups},     {"prepared_groups", s.prepared_groups}};
  if (s.has_launches)
    json.update({{"launches", s.launches},
                 {"kernels", s.kernels},
                 {"variants", s.variants},
                 {"prepare_launches", s.prepare_launches},
                 {"workspace_bytes", s.workspace_bytes}});
  if (s.has_cost) {
    json["fused"] = cost(s.total);
    json["unfused"] = cost(s.unfused);
    if (s.total.total > 0) json["speedup"] = s.unfused.total / s.total.total;
    json["table"] = Json::array();
    for (const LaunchRow& row : s.rows)
      json["table"].push_back(
          {{"kernel", row.kernel}, {"nodes", row.nodes}, {"fused", cost(row.fused)}, {"unfused", cost(row.unfused)}});
  }
  json["milliseconds"] = std::round(outcome.seconds * 1e3);
  json["compiled_by_nvrtc"] = outcome.proven;
  json["from_cache"] = outcome.was_kept;
  if (!outcome.memory.empty()) json["memory"] = outcome.memory;
  if (!outcome.cache.empty()) json["cache"] = outcome.cache;
  if (!outcome.times.empty()) json["times"] = Json::array();
  for (const StageTime& time : outcome.times)
    json["times"].push_back({{"stage", time.name}, {"milliseconds", time.seconds * 1e3}});
  json["warnings"] = outcome.warnings;
  json["wrote"] = Json::array();
  for (const auto& [kind, file] : outcome.wrote) json["wrote"].push_back({{"kind", kind}, {"file", file}});
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace fusec
