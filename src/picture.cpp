#include "picture.h"

#include <fmt/format.h>

#include "ir/attribute_text.h"

namespace fusec {
namespace {

// Maps every item of a repeated block, and of blocks inside it, to the corresponding item of the first copy.
void fold(const std::vector<RepeatedBlock>& blocks, std::vector<std::uint32_t>& places) {
  for (const RepeatedBlock& block : blocks) {
    fold(block.inside, places);
    for (std::uint32_t i = block.first + block.length; i < block.end(); ++i) places[i] = places[i - block.length];
  }
}

// Fewest boxes that folding a block must save. Two linear layers of one input, for example, stay two boxes.
constexpr std::uint32_t kLeastFolded = 3;

std::vector<RepeatedBlock> worth_folding(std::vector<RepeatedBlock> blocks) {
  std::erase_if(blocks, [](const RepeatedBlock& b) { return b.length * (b.count - 1) < kLeastFolded; });
  for (RepeatedBlock& block : blocks) block.inside = worth_folding(std::move(block.inside));
  return blocks;
}

}  // namespace

Picture picture_of(const PlannedModel& planned, const LaunchPlan* launch, const PipelineOptions& options) {
  RepeatedGroups repeated = repeated_groups(planned.graph, planned.plan);
  repeated.blocks = worth_folding(std::move(repeated.blocks));
  return {planned, launch, options.target, predicted(planned, launch, options), std::move(repeated)};
}

std::vector<std::vector<std::uint32_t>> steps_of_groups(const Picture& picture) {
  std::vector<std::vector<std::uint32_t>> steps(picture.planned.plan.groups.size());
  if (!picture.launch) return steps;
  for (std::uint32_t s = 0; s < picture.launch->steps.size(); ++s)
    if (const GroupId g = picture.launch->steps[s].group; g < steps.size()) steps[g].push_back(s);
  return steps;
}

std::vector<std::uint32_t> folded_places(const RepeatedGroups& repeated) {
  std::vector<std::uint32_t> places(repeated.items.size());
  for (std::uint32_t i = 0; i < places.size(); ++i) places[i] = i;
  fold(repeated.blocks, places);
  return places;
}

std::string call_text(const Graph& graph, const Node& node) {
  std::string text(node.op->name);
  text += '(';
  bool first = true;
  for (const ValueId v : node.inputs) {
    if (!first) text += ", ";
    first = false;
    if (v == kNone)
      text += "none";
    else if (graph.value(v).kind == Value::Kind::kNumber)
      text += json_text(graph.number(v));
    else if (graph.value(v).kind == Value::Kind::kDim)
      text += to_string(graph.dim(v), graph.symbols);
    else
      text += graph.value(v).name;
  }
  return text + ')';
}

std::string_view colour(OpPattern pattern) {
  switch (pattern) {
    case OpPattern::kElemwise:
      return "#d5e8d4";
    case OpPattern::kBroadcast:
      return "#dae8fc";
    case OpPattern::kInjective:
      return "#e1d5e7";
    case OpPattern::kCommReduce:
      return "#ffe6cc";
    case OpPattern::kOutEwiseFusable:
      return "#f8cecc";
    case OpPattern::kTuple:
      return "#fff2cc";
    case OpPattern::kOpaque:
      return "#ececec";
  }
  return "white";
}

std::string short_bytes(double bytes) {
  constexpr std::string_view kUnits[] = {"B", "kB", "MB", "GB", "TB"};
  std::size_t unit = 0;
  for (; bytes >= 999.5 && unit + 1 < std::size(kUnits); ++unit) bytes /= 1000;
  return unit == 0 || bytes >= 9.95 ? fmt::format("{:.0f} {}", bytes, kUnits[unit])
                                    : fmt::format("{:.1f} {}", bytes, kUnits[unit]);
}

std::string short_time(double seconds) {
  const double us = seconds * 1e6;
  if (us >= 9995) return fmt::format("{:.1f} ms", us / 1000);
  return us >= 99.5 ? fmt::format("{:.0f} µs", us) : fmt::format("{:.1f} µs", us);
}

}  // namespace fusec
