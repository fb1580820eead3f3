#include "transforms/plan_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <unordered_set>

#include "ir/error.h"
#include "ir/json_document.h"
#include "ir/spelling.h"
#include "transforms/verify_plan.h"

namespace fusec {
namespace {

class PlanReader {
 public:
  PlanReader(const std::string& file, const Graph& graph, const FuseOptions& options) : file_(file), graph_(graph) {
    plan_.strategy = options.strategy;
    plan_.max_fused_ops = options.max_fused_ops;
    plan_.max_args = options.max_args;
    plan_.max_args_side_by_side = options.max_args_side_by_side;
  }

  FusionPlan read(Json root) && {
    expect(root, JsonKind::kObject, "an object");
    bool has_version = false, has_groups = false;
    for (const Json member : root) {
      const std::string_view key = member.key_text();
      if (key == "fusec_plan") {
        if (!member.is(JsonKind::kInteger) || member.integer() != 1) fail(member, "wrong plan version", "1");
        has_version = true;
      } else if (key == "model") {
        expect(member, JsonKind::kString, "the model's name");
        if (member.text() != graph_.name) fail(member, "the plan is for another model", in_quotes(graph_.name));
      } else if (key == "strategy") {
        expect(member, JsonKind::kString, "a strategy");
        const auto strategy = parse_strategy(member.text());
        if (!strategy) fail(member, "unknown strategy", "none, tvm or full");
        if (*strategy != plan_.strategy)
          fail(member, "the plan is of another strategy", std::string(name(plan_.strategy)));
      } else if (key == "max_fused_ops") {
        plan_.max_fused_ops = read_limit(member);
      } else if (key == "max_args") {
        plan_.max_args = member.is(JsonKind::kNull) ? 0 : read_limit(member);
      } else if (key == "groups") {
        expect(member, JsonKind::kArray, "an array of groups");
        for (const Json group : member) read_group(group);
        has_groups = true;
      } else if (key != "disabled_passes" && key != "disabled_patterns") {  // left_out_of reads these
        fail_unknown_key(member,
                         "fusec_plan, model, strategy, max_fused_ops, max_args, disabled_passes, disabled_patterns or "
                         "groups");
      }
    }
    if (!has_version) fail(root, "missing key \"fusec_plan\"", "");
    if (!has_groups) fail(root, "missing key \"groups\"", "");
    return std::move(plan_);
  }

  // Names the groups without a name. Generated names differ from all names in the file.
  static void complete_names(const Graph& graph, FusionPlan& plan) {
    FusionPlan made_up{.groups = plan.groups};
    name_groups(graph, made_up);
    std::unordered_set<std::string> given;
    for (const FusionGroup& group : plan.groups) given.insert(group.name);
    for (GroupId g = 0; g < plan.groups.size(); ++g) {
      if (!plan.groups[g].name.empty()) continue;
      std::string candidate = made_up.groups[g].name;
      while (!given.insert(candidate).second) candidate += "_b";
      plan.groups[g].name = candidate;
    }
  }

 private:
  void read_group(Json group) {
    expect(group, JsonKind::kObject, "a group");
    FusionGroup& result = plan_.groups.emplace_back();
    bool has_nodes = false;
    for (const Json member : group) {
      const std::string_view key = member.key_text();
      if (key == "name") {
        expect(member, JsonKind::kString, "a name");
        result.name = member.text();
        if (!is_group_name(result.name)) {
          fail(member, "a kernel cannot be called so", "letters, digits and '_', 128 at most");
        }
      } else if (key == "nodes") {
        result.nodes = read_nodes(member);
        has_nodes = true;
      } else if (key == "recomputed") {
        const GroupId g = static_cast<GroupId>(plan_.groups.size() - 1);
        for (const NodeId n : read_nodes(member)) plan_.recomputed.push_back({g, n});
      } else if (key == "prepared") {
        if (!member.is(JsonKind::kBool)) fail(member, "wrong type", "true or false");
        result.prepared = member.boolean();
      } else {
        fail_unknown_key(member, "name, nodes, recomputed or prepared");
      }
    }
    if (!has_nodes) fail(group, "missing key \"nodes\"", "");
    if (result.nodes.empty()) fail(group, "a group without nodes", "at least one");
  }

  std::vector<NodeId> read_nodes(Json list) {
    expect(list, JsonKind::kArray, "an array of node names");
    std::vector<NodeId> nodes;
    for (const Json item : list) {
      expect(item, JsonKind::kString, "a node's name");
      const NodeId n = graph_.find_node(item.text());
      if (n == kNone) fail(item, "no such node in the graph", "");
      nodes.push_back(n);
    }
    std::ranges::sort(nodes);
    return nodes;
  }

  std::uint32_t read_limit(Json limit) {
    const bool fits = limit.is(JsonKind::kInteger) && limit.integer() >= 1 &&
                      limit.integer() <= std::numeric_limits<std::uint32_t>::max();
    if (!fits) fail(limit, "a limit out of range", "an integer from 1 to 4294967295");
    return static_cast<std::uint32_t>(limit.integer());
  }

  void expect(Json value, JsonKind kind, const char* what) {
    if (!value.is(kind)) fail(value, "wrong type", what);
  }

  [[noreturn]] void fail_unknown_key(Json member, const char* known) {
    throw Error(ErrorKind::kInput,
                Error::Parts{.file = file_, .pointer = member.pointer(), .what = "unknown key", .expected = known});
  }

  [[noreturn]] void fail(Json where, std::string what, std::string expected) {
    throw Error(ErrorKind::kInput, Error::Parts{.file = file_,
                                                .pointer = where.pointer(),
                                                .what = std::move(what),
                                                .found = where.description(),
                                                .expected = std::move(expected)});
  }

  const std::string& file_;
  const Graph& graph_;
  FusionPlan plan_;
};

void append_nodes(const Graph& graph, std::span<const NodeId> nodes, std::string& text) {
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    text += i == 0 ? "" : ", ";
    text += json_string(graph.nodes[nodes[i]].name);
  }
}

// A JSON member with a list of names, "" if there are none.
std::string named_list(const char* key, const std::vector<std::string>& names) {
  if (names.empty()) return "";
  std::string text = fmt::format("\"{}\": [", key);
  for (std::size_t i = 0; i < names.size(); ++i) text += (i == 0 ? "" : ", ") + json_string(names[i]);
  return text + "],\n ";
}

}  // namespace

LeftOut left_out_of(std::string_view text, const std::string& file) {
  const JsonDocument document = JsonDocument::parse(text, file);
  LeftOut left_out;
  if (!document.root().is(JsonKind::kObject)) return left_out;  // read_plan reports the error
  const auto require_kind = [&](const Json& json, JsonKind kind, const char* expected) {
    if (json.is(kind)) return;
    throw Error(ErrorKind::kInput, Error::Parts{.file = file,
                                                .pointer = json.pointer(),
                                                .what = "wrong type",
                                                .found = json.description(),
                                                .expected = expected});
  };
  for (const Json member : document.root()) {
    const bool passes = member.key_text() == "disabled_passes";
    if (!passes && member.key_text() != "disabled_patterns") continue;
    require_kind(member, JsonKind::kArray, "an array of names");
    for (const Json item : member) {
      require_kind(item, JsonKind::kString, "a name");
      (passes ? left_out.passes : left_out.patterns).emplace_back(item.text());
    }
  }
  return left_out;
}

std::string write_plan(const Graph& graph, const FusionPlan& plan, const LeftOut& left_out) {
  std::string text = fmt::format(
      "{{\"fusec_plan\": 1, \"model\": {}, \"strategy\": \"{}\", \"max_fused_ops\": {}, \"max_args\": {},\n "
      "{}\"groups\": [",
      json_string(graph.name), name(plan.strategy), plan.max_fused_ops,
      plan.max_args == 0 ? "null" : std::to_string(plan.max_args),
      named_list("disabled_passes", left_out.passes) + named_list("disabled_patterns", left_out.patterns));
  auto recomputed = plan.recomputed.begin();
  for (GroupId g = 0; g < plan.groups.size(); ++g) {
    text += g == 0 ? "\n  " : ",\n  ";
    text += "{\"name\": " + json_string(plan.groups[g].name) + ", \"nodes\": [";
    append_nodes(graph, plan.groups[g].nodes, text);
    text += "]";
    std::vector<NodeId> again;
    for (; recomputed != plan.recomputed.end() && recomputed->group == g; ++recomputed)
      again.push_back(recomputed->node);
    if (!again.empty()) {
      text += ", \"recomputed\": [";
      append_nodes(graph, again, text);
      text += "]";
    }
    if (plan.groups[g].prepared) text += ", \"prepared\": true";
    text += "}";
  }
  return text + (plan.groups.empty() ? "]}\n" : "\n ]}\n");
}

FusionPlan read_plan(std::string_view text, const std::string& file, const Graph& graph,
                     std::span<const OpPattern> kinds, const FuseOptions& options) {
  const JsonDocument document = JsonDocument::parse(text, file);
  FusionPlan plan = PlanReader(file, graph, options).read(document.root());
  PlanReader::complete_names(graph, plan);
  for (FusionGroup& group : plan.groups) classify_group(kinds, group);
  plan.decisions.assign(graph.nodes.size(), {.rule = FusionRule::kGivenPlan});
  std::optional<PlanFault> fault = find_cover_fault(graph, plan);
  if (!fault) {
    order_groups(graph, plan);
    fault = find_plan_fault(graph, kinds, plan);
  }
  if (!fault) return plan;
  const std::string where = fault->group == kNone ? "" : ", group " + in_quotes(plan.groups[fault->group].name);
  throw Error(ErrorKind::kInput, Error::Parts{.file = file, .what = "illegal plan" + where + ": " + fault->what});
}

}  // namespace fusec
