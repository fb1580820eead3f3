#include "transforms/explain_print.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "ir/spelling.h"

namespace fusec {
namespace {

using Out = std::back_insert_iterator<std::string>;

std::string node_text(const Graph& graph, NodeId n) {
  return in_quotes(graph.nodes[n].name);
}
std::string node_json(const Graph& graph, NodeId n) {
  return n == kNone ? "null" : json_string(graph.nodes[n].name);
}
std::string text_json(const std::string& text) {
  return text.empty() ? "null" : json_string(text);
}

std::string joined_nodes(const Graph& graph, std::span<const NodeId> nodes) {
  std::vector<std::string> names;
  for (const NodeId n : nodes) names.push_back(node_text(graph, n));
  return listed(names);
}

// "1 234 567 bytes": sizes are read by people here.
std::string bytes_text(std::int64_t bytes) {
  std::string digits = std::to_string(bytes);
  for (std::ptrdiff_t i = std::ssize(digits) - 3; i > (bytes < 0 ? 1 : 0); i -= 3)
    digits.insert(static_cast<std::size_t>(i), " ");
  return digits + (bytes == 1 ? " byte" : " bytes");
}

// "save 8 192 bytes", or "cost 8 192 bytes more", as where weights would be prepared anew in every run.
std::string saved_text(std::int64_t bytes) {
  return bytes < 0 ? fmt::format("cost {} more", bytes_text(-bytes)) : fmt::format("save {}", bytes_text(bytes));
}

// "; as one kernel 12.3 us are predicted, as they are 11.9 us: 0.4 us more".
std::string predicted_text(float joined_us, float apart_us) {
  if (apart_us <= 0) return "";
  return fmt::format("; as one kernel {:.2f} us are predicted, as they are {:.2f} us: {:.2f} us {}", joined_us,
                     apart_us, std::abs(joined_us - apart_us), joined_us > apart_us ? "more" : "less");
}

std::string predicted_json(float joined_us, float apart_us) {
  if (apart_us <= 0) return "";
  return fmt::format(", \"joined_us\": {:.4f}, \"apart_us\": {:.4f}", joined_us, apart_us);
}

void write_decision(const Graph& graph, NodeId n, const FusionDecision& decision, Out out) {
  if (decision.rule == FusionRule::kGivenPlan)
    fmt::format_to(out, "  {}: {}\n", node_text(graph, n), sentence(decision.rule));
  if (decision.rule != FusionRule::kJoined) return;
  fmt::format_to(out, "  {}: {} joined", stage(decision.rule, decision.phase), node_text(graph, n));
  if (decision.meeting != kNone) fmt::format_to(out, " {}", node_text(graph, decision.meeting));
  if (decision.blocker != kNone) fmt::format_to(out, ", taken along by {}", node_text(graph, decision.blocker));
  fmt::format_to(out, "\n");
}

void write_obstacle(const Graph& graph, const Obstacle& o, Out out) {
  const std::string_view when = stage(o.rule, o.phase);
  fmt::format_to(out, "  {}{}{} did not join", when, when.empty() ? "" : ": ", node_text(graph, o.from));
  const std::string to = o.to == kNone    ? "what follows"
                         : o.to == o.from ? "the item that takes its results apart"
                                          : node_text(graph, o.to);
  fmt::format_to(out, " {}: {}\n", to, sentence(o.rule));
  fmt::format_to(out, "    rule {}", name(o.rule));
  if (o.blocker != kNone) fmt::format_to(out, ", blocked by {}", node_text(graph, o.blocker));
  if (o.to != kNone) fmt::format_to(out, "; joining would {}", saved_text(o.bytes_saved));
  fmt::format_to(out, "{}\n", predicted_text(o.joined_us, o.apart_us));
  if (!o.would_allow.empty()) fmt::format_to(out, "    what helps: {}\n", o.would_allow);
}

void write_obstacle_json(const Graph& graph, const Obstacle& o, Out out) {
  fmt::format_to(out, "{{\"from\": {}, \"to\": {}, \"phase\": {}, \"rule\": \"{}\", \"reason\": {}, \"blocker\": {}, ",
                 node_json(graph, o.from), node_json(graph, o.to), o.phase, name(o.rule), json_string(sentence(o.rule)),
                 node_json(graph, o.blocker));
  fmt::format_to(out, "\"bytes_saved\": {}, \"would_allow\": {}{}}}", o.bytes_saved, text_json(o.would_allow),
                 predicted_json(o.joined_us, o.apart_us));
}

void write_split(const Graph& graph, const std::string& group, const Explanation& explanation, Out out) {
  fmt::format_to(out, "not one kernel: one group, {}, but {} kernels\n", group, explanation.split.kernels);
  std::vector<std::string> names;
  for (const ValueId v : explanation.split.stored) names.push_back(in_quotes(graph.value(v).name));
  if (!names.empty())
    fmt::format_to(out, "  stored between them: {}; one kernel would save {}\n", listed(names),
                   bytes_text(explanation.bytes_saved));
}

std::string_view reason(const AbsentNode& node) {
  return node.folded ? "its value is a constant and known now" : "no output needs it";
}

template <typename List, typename WriteItem>
void write_list(const List& list, std::string_view separator, Out out, WriteItem write_item) {
  bool first = true;
  for (const auto& item : list) {
    if (!first) fmt::format_to(out, "{}", separator);
    first = false;
    write_item(item);
  }
}

void write_patterns(const std::vector<std::string>& sentences, Out out) {
  for (const std::string& sentence : sentences) fmt::format_to(out, "  pattern {}\n", sentence);
}

void write_edge(const Graph& graph, const LedgerEntry& e, Out out) {
  fmt::format_to(out, "{} -> {}: not fused: {}\n", node_text(graph, e.from), node_text(graph, e.to), sentence(e.rule));
  const std::string_view when = stage(e.rule, e.phase);
  fmt::format_to(out, "    {}{}rule {}", when, when.empty() ? "" : ", ", name(e.rule));
  if (e.blocker != kNone) fmt::format_to(out, ", blocked by {}", node_text(graph, e.blocker));
  fmt::format_to(out, "; would {}{}\n", saved_text(e.bytes_saved), predicted_text(e.joined_us, e.apart_us));
  if (!e.would_allow.empty()) fmt::format_to(out, "    what helps: {}\n", e.would_allow);
}

// Of a large group only the first.
void write_edges(const Graph& graph, const std::vector<LedgerEntry>& edges, Out out) {
  constexpr std::size_t kMost = 20;
  for (std::size_t i = 0; i < std::min(edges.size(), kMost); ++i) write_edge(graph, edges[i], out);
  if (edges.size() > kMost) fmt::format_to(out, "and {} more (--emit=ledger)\n", edges.size() - kMost);
}

void write_ledger(const Graph& graph, const std::vector<LedgerEntry>& edges, Out out) {
  write_list(edges, ",", out, [&](const LedgerEntry& e) {
    fmt::format_to(out, "\n  {{\"from\": {}, \"to\": {}, \"phase\": {}, \"rule\": \"{}\", \"blocker\": {}, ",
                   node_json(graph, e.from), node_json(graph, e.to), e.phase, name(e.rule),
                   node_json(graph, e.blocker));
    fmt::format_to(out, "\"bytes_saved\": {}, \"would_allow\": {}{}}}", e.bytes_saved, text_json(e.would_allow),
                   predicted_json(e.joined_us, e.apart_us));
  });
}

}  // namespace

std::string explanation_text(const Graph& graph, const FusionPlan& plan, const Explanation& explanation) {
  std::string text;
  const Out out(text);
  for (const auto& [asked, now] : explanation.standing_in)
    fmt::format_to(out, "{} was rewritten away: {} computes its value\n", in_quotes(asked), in_quotes(now));
  for (const AbsentNode& node : explanation.absent)
    fmt::format_to(out, "{}: in no kernel, {}\n", in_quotes(node.name), reason(node));
  if (explanation.nodes.empty()) return text.empty() ? "nothing to explain\n" : text;
  fmt::format_to(out, "{}: ", joined_nodes(graph, explanation.nodes));
  if (explanation.one_kernel || explanation.split.kernels > 1) {
    const std::string& group = plan.groups[plan.group_of[explanation.nodes[0]]].name;
    if (explanation.one_kernel)
      fmt::format_to(out, "one kernel, {}\n", group);
    else
      write_split(graph, group, explanation, out);
    for (std::size_t i = 0; i < explanation.nodes.size(); ++i) {
      write_decision(graph, explanation.nodes[i], explanation.joined[i], out);
    }
    write_edges(graph, explanation.edges, out);
    write_patterns(explanation.patterns, out);
    return text;
  }
  fmt::format_to(out, "not one kernel\n");
  for (const Obstacle& o : explanation.obstacles) write_obstacle(graph, o, out);
  fmt::format_to(out, "  their groups as one kernel would {}\n", saved_text(explanation.bytes_saved));
  if (!explanation.would_allow.empty()) {
    fmt::format_to(out, "  they would be one kernel: ");
    write_list(explanation.would_allow, "; and ", out, [&](const std::string& c) { fmt::format_to(out, "{}", c); });
    fmt::format_to(out, "\n");
  }
  write_patterns(explanation.patterns, out);
  return text;
}

std::string explanation_json(const Graph& graph, const FusionPlan& plan, const Explanation& explanation) {
  std::string text;
  const Out out(text);
  fmt::format_to(out, "{{\"nodes\": [");
  write_list(explanation.nodes, ", ", out, [&](NodeId n) { fmt::format_to(out, "{}", node_json(graph, n)); });
  const bool one = (explanation.one_kernel || explanation.split.kernels > 1) && !explanation.nodes.empty();
  fmt::format_to(out, "], \"one_kernel\": {}, \"group\": {}, \"kernels\": {}, \"stored\": [",
                 explanation.one_kernel && explanation.absent.empty(),
                 one ? json_string(plan.groups[plan.group_of[explanation.nodes[0]]].name) : "null",
                 explanation.one_kernel ? "1"
                 : one                  ? std::to_string(explanation.split.kernels)
                                        : "null");
  write_list(explanation.split.stored, ", ", out,
             [&](ValueId v) { fmt::format_to(out, "{}", json_string(graph.value(v).name)); });
  fmt::format_to(out, "], \"standing_in\": [");
  write_list(explanation.standing_in, ", ", out, [&](const auto& pair) {
    fmt::format_to(out, "{{\"node\": {}, \"in\": {}}}", json_string(pair.first), json_string(pair.second));
  });
  fmt::format_to(out, "], \"absent\": [");
  write_list(explanation.absent, ", ", out, [&](const AbsentNode& node) {
    fmt::format_to(out, "{{\"node\": {}, \"reason\": {}}}", json_string(node.name), json_string(reason(node)));
  });
  fmt::format_to(out, "],\n \"joined\": [");
  for (std::size_t i = 0; i < explanation.joined.size(); ++i) {
    const FusionDecision& d = explanation.joined[i];
    fmt::format_to(out, "{}{{\"node\": {}, \"rule\": \"{}\", \"phase\": {}, \"to\": {}, \"because_of\": {}}}",
                   i == 0 ? "" : ", ", node_json(graph, explanation.nodes[i]), name(d.rule), d.phase,
                   node_json(graph, d.meeting), d.rule == FusionRule::kJoined ? node_json(graph, d.blocker) : "null");
  }
  fmt::format_to(out, "],\n \"obstacles\": [");
  write_list(explanation.obstacles, ",\n  ", out, [&](const Obstacle& o) { write_obstacle_json(graph, o, out); });
  fmt::format_to(out, "],\n \"bytes_saved\": {}, \"would_allow\": [", explanation.bytes_saved);
  write_list(explanation.would_allow, ", ", out,
             [&](const std::string& c) { fmt::format_to(out, "{}", json_string(c)); });
  fmt::format_to(out, "],\n \"patterns\": [");
  write_list(explanation.patterns, ", ", out, [&](const std::string& s) { fmt::format_to(out, "{}", json_string(s)); });
  return text + "]}\n";
}

std::string explain_all_text(const Graph& graph, std::span<const OpPattern> kinds, const FusionPlan& plan,
                             const std::vector<std::string>& patterns) {
  std::string text;
  const Out out(text);
  for (const FusionGroup& group : plan.groups) {
    fmt::format_to(out, "{} ({}): {}\n", group.name, name(group.pattern), joined_nodes(graph, group.nodes));
    if (group.nodes.size() == 1) continue;
    for (const NodeId n : group.nodes) write_decision(graph, n, plan.decisions[n], out);
  }
  for (const LedgerEntry& e : ledger(graph, kinds, plan)) write_edge(graph, e, out);
  write_patterns(patterns, out);
  return text;
}

std::string explain_all_json(const Graph& graph, std::span<const OpPattern> kinds, const FusionPlan& plan,
                             const std::vector<std::string>& patterns) {
  std::string text = "{\"groups\": [";
  const Out out(text);
  write_list(plan.groups, ",", out, [&](const FusionGroup& group) {
    fmt::format_to(out, "\n  {{\"name\": {}, \"pattern\": \"{}\", \"nodes\": [", json_string(group.name),
                   name(group.pattern));
    write_list(group.nodes, ", ", out, [&](NodeId n) {
      const FusionDecision& d = plan.decisions[n];
      fmt::format_to(out, "{{\"name\": {}, \"rule\": \"{}\", \"phase\": {}}}", node_json(graph, n), name(d.rule),
                     d.phase);
    });
    text += "]}";
  });
  text += "],\n \"edges\": [";
  write_ledger(graph, ledger(graph, kinds, plan), out);
  fmt::format_to(out, "],\n \"patterns\": [");
  write_list(patterns, ", ", out, [&](const std::string& s) { fmt::format_to(out, "{}", json_string(s)); });
  return text + "]}\n";
}

std::string ledger_json(const Graph& graph, std::span<const OpPattern> kinds, const FusionPlan& plan) {
  std::string text = "{\"fusec_ledger\": 1, \"model\": " + json_string(graph.name) + ", \"strategy\": \"";
  text.append(name(plan.strategy)).append("\", \"edges\": [");
  write_ledger(graph, ledger(graph, kinds, plan), Out(text));
  return text + "]}\n";
}

}  // namespace fusec
