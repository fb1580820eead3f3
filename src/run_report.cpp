#include "run_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "command_line.h"
#include "messages.h"

namespace fusec {
namespace {

std::string difference_text(const Difference& difference) {
  return fmt::format("\"{}\" [{}]: got {:.9g}, expected {:.9g}{}; {} elements differ", difference.output,
                     fmt::join(difference.index, ", "), difference.got, difference.expected,
                     difference.float64 ? fmt::format(", in float64 {:.9g}", *difference.float64) : "",
                     difference.count);
}

nlohmann::ordered_json difference_json(const Difference& difference) {
  nlohmann::ordered_json json = {{"output", difference.output},
                                 {"index", difference.index},
                                 {"got", difference.got},
                                 {"expected", difference.expected}};
  if (difference.float64) json["float64"] = *difference.float64;
  json["elements"] = difference.count;
  return json;
}

}  // namespace

struct RunReport::Facts {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
};

RunReport::RunReport(bool json, bool quiet, std::string device)
    : json_(json), quiet_(quiet), device_(std::move(device)), facts_(std::make_unique<Facts>()) {}

RunReport::~RunReport() = default;

void RunReport::warning(const std::string& text) {
  if (json_)
    facts_->json["warnings"].push_back(text);
  else
    print_message("warning: {}\n", text);
}

void RunReport::finding(const std::string& text) {
  if (json_)
    facts_->json["findings"].push_back(text);
  else
    print_message("{}\n", text);
}

void RunReport::hint(const std::string& text) {
  if (json_)
    facts_->json["hint"] = text;
  else
    print_message("hint: {}\n", text);
}

void RunReport::times(const std::vector<StageTime>& times) {
  if (!json_) return print_times(times);
  for (const StageTime& time : times)
    facts_->json["times"].push_back({{"stage", time.name}, {"milliseconds", time.seconds * 1e3}});
}

void RunReport::bench(const std::vector<double>& seconds) {
  const double median = seconds[seconds.size() / 2] * 1e6, least = seconds.front() * 1e6;
  if (json_)
    facts_->json["bench"] = {{"runs", seconds.size()}, {"median_us", median}, {"least_us", least}};
  else
    print_message("{} runs: median {:.1f} us, least {:.1f} us\n", seconds.size(), median, least);
}

void RunReport::tuning(const TuningResult& result, const std::string& note) {
  if (!json_) return print_message("{}{}", tuning_text(result), note.empty() ? "" : note + "\n");
  facts_->json["tuned"] = nlohmann::ordered_json::array();
  for (const TunedKernel& kernel : result.kernels) {
    nlohmann::ordered_json times = nlohmann::ordered_json::object();
    for (const auto& [candidate, microseconds] : kernel.microseconds) times[candidate] = microseconds;
    facts_->json["tuned"].push_back({{"kernel", kernel.kernel}, {"choice", kernel.choice}, {"candidates_us", times}});
  }
  if (!result.refused.empty()) facts_->json["refused"] = result.refused;
  if (!note.empty()) facts_->json["note"] = note;
}

void RunReport::compared(const Comparison& comparison, const std::string& with) {
  const auto& difference = comparison.difference;
  if (json_) {
    nlohmann::ordered_json entry = {{"with", with}, {"agrees", !difference}};
    if (difference)
      entry["difference"] = difference_json(*difference);
    else
      entry.update({{"largest_error", comparison.largest_error},
                    {"share_of_allowed", comparison.largest_share},
                    {"largest_in", comparison.largest_in},
                    {"elements_by_float64", comparison.by_float64}});
    facts_->json["compared"].push_back(std::move(entry));
  } else if (difference) {
    print_message("output {}\n", difference_text(*difference));
  } else {
    told_ += "; verified against " + with + ": ";
    told_ += comparison.largest_error == 0
                 ? "no difference"
                 : fmt::format("largest error {:.3g}, {:.2g} of what is allowed, in \"{}\"", comparison.largest_error,
                               comparison.largest_share, comparison.largest_in);
    if (comparison.by_float64 > 0)
      told_ += fmt::format("; {} elements by the float64 evaluation alone", comparison.by_float64);
  }
}

void RunReport::wrong_node(const std::string& node, const std::string& group, bool inside,
                           const Difference& difference) {
  if (json_)
    facts_->json["begins_with"] = {
        {"node", node}, {"group", group}, {"inside_group", inside}, {"difference", difference_json(difference)}};
  else
    print_message("it begins with node \"{}\" in group \"{}\"{}: {}\n", node, group,
                  inside ? "" : " (the values inside the group agree when they are stored)",
                  difference_text(difference));
}

void RunReport::finish(bool good, std::size_t outputs, const std::string& file) {
  if (json_) {
    if (!facts_->json.contains("compared")) facts_->json["compared"] = nlohmann::ordered_json::array();
    facts_->json["outputs"] = outputs;
    if (!file.empty()) facts_->json["outputs_file"] = file;
    return finish(good);
  }
  if (!good || quiet_) return;
  const std::string count = fmt::format("{} output{}", outputs, outputs == 1 ? "" : "s");
  print_message("{}: {}{}\n", device_, file.empty() ? count : count + " written to " + file,
                told_.empty() ? "; compared with nothing (--verify compares with the reference)" : told_);
}

void RunReport::finish(bool good) {
  if (!json_ || (good && quiet_)) return;
  nlohmann::ordered_json all = {{"device", device_}, {"good", good}};
  all.update(facts_->json);
  print_message("{}\n", all.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

}  // namespace fusec
