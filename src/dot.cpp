#include "dot.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "ir/error.h"
#include "ir/mapped_file.h"
#include "ir/program.h"
#include "kernel_at_hints.h"
#include "output_file.h"

namespace fusec {
namespace {

constexpr std::size_t kMostRows = 14;    // nodes named in a box
constexpr std::size_t kLongestRow = 46;  // characters
constexpr std::size_t kLongestName = 40, kLongestNode = 24;
constexpr std::size_t kMostEllipses = 40;  // of more inputs or outputs, all are one
constexpr std::string_view kRow = R"(<tr><td align="left")";

// The first `longest` bytes of the text, cut between UTF-8 characters, with control characters replaced by blanks.
std::string cut(std::string_view text, std::size_t longest) {
  std::string out(text.substr(0, longest));
  if (text.size() > longest) {
    while (!out.empty() && (static_cast<unsigned char>(text[out.size()]) & 0xc0) == 0x80) out.pop_back();
    out += "...";
  }
  for (char& c : out)
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  return out;
}

// Escapes text for an HTML-like label of Graphviz.
std::string html(std::string_view text, std::size_t longest = kLongestRow) {
  std::string out;
  for (const char c : cut(text, longest)) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

// Escapes text for a label in quotes.
std::string quoted_label(std::string_view text, std::size_t longest = kLongestName) {
  std::string out;
  for (const char c : cut(text, longest)) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

[[noreturn]] void refuse_picture() {
  throw Error(ErrorKind::kEnvironment, {.what = "the picture cannot be laid out",
                                        .found = "no working `dot` program",
                                        .expected = "Graphviz",
                                        .hint = "apt-get install graphviz, or take --emit=dot"});
}

class DotWriter {
 public:
  explicit DotWriter(const Picture& picture)
      : picture_(picture),
        graph_(picture.planned.graph),
        plan_(picture.planned.plan),
        interfaces_(group_interfaces(graph_, plan_)),
        steps_(steps_of_groups(picture)),
        places_(folded_places(picture.repeated)),
        place_of_(plan_.groups.size(), kNone) {
    for (std::uint32_t i = 0; i < places_.size(); ++i) place_of_[picture_.repeated.items[i]] = places_[i];
  }

  std::string write() && {
    out_ = fmt::format(
        "digraph \"{}\" {{\n  graph [fontname=\"Helvetica\", rankdir=TB, nodesep=0.25, ranksep=0.35, labelloc=t, "
        "labeljust=l,\n         label=<{}>]\n"
        "  node [shape=plain, fontname=\"Helvetica\", fontsize=10]\n"
        "  edge [color=\"#666666\", arrowsize=0.6, fontname=\"Helvetica\", fontsize=9]\n",
        quoted_label(graph_.name), title());
    write_inputs();
    write_items(0, static_cast<std::uint32_t>(places_.size()), picture_.repeated.blocks, 1);
    write_prepared();
    write_edges();
    write_outputs();
    write_legend();
    return std::move(out_) + "}\n";
  }

 private:
  std::string title() const {
    const Prediction total = picture_.predicted.total();
    const std::size_t launches = picture_.launch ? picture_.launch->steps.size() : total.launches;
    return fmt::format(
        "<b>{}</b>: {} nodes after the passes, in {} launches; predicted {} on {}, {} read and {} written<br "
        "align=\"left\"/>",
        html(graph_.name), graph_.nodes.size(), launches, short_time(total.total),
        html(picture_.target.chip.empty() ? picture_.target.arch : picture_.target.chip), short_bytes(total.read),
        short_bytes(total.written));
  }

  // "v7", the input's ellipse: that of all inputs where they are too many.
  std::string input(ValueId v) const { return graph_.inputs.size() > kMostEllipses ? "inputs" : fmt::format("v{}", v); }
  std::string output(std::size_t i) const {
    return graph_.outputs.size() > kMostEllipses ? "outputs" : fmt::format("out{}", i);
  }

  // "600 inputs: x0, ..., x599", in one ellipse.
  void write_together(std::string_view what, const std::vector<ValueId>& values) {
    out_ += fmt::format("  {} [shape=ellipse, style=filled, fillcolor=white, label=\"{} {}: {}, ..., {}\"]\n", what,
                        values.size(), what, quoted_label(graph_.value(values.front()).name, kLongestName),
                        quoted_label(graph_.value(values.back()).name, kLongestName));
  }

  void write_inputs() {
    if (graph_.inputs.size() > kMostEllipses) return write_together("inputs", graph_.inputs);
    for (const ValueId v : graph_.inputs)
      out_ += fmt::format(
          "  {} [shape=ellipse, style=filled, fillcolor=white, label=<{}<br/><font point-size=\"9\">{}</font>>]\n",
          input(v), html(graph_.value(v).name, kLongestName), html(to_string(graph_.type(v), graph_.symbols)));
  }

  // Writes the items [from, to). Of a repeated block only the first copy.
  void write_items(std::uint32_t from, std::uint32_t to, const std::vector<RepeatedBlock>& blocks, int depth) {
    auto block = blocks.begin();
    for (std::uint32_t i = from; i < to;) {
      if (block == blocks.end() || i != block->first) {
        write_group(picture_.repeated.items[i++], depth);
        continue;
      }
      const std::string indent(static_cast<std::size_t>(2 * depth), ' ');
      out_ += fmt::format(
          "{0}subgraph cluster_{1}_{2} {{\n{0}  label=<<b>&times; {3}</b> ({4})>\n{0}  style=\"rounded,dashed\"\n"
          "{0}  color=\"#7a4b00\"\n{0}  fontcolor=\"#7a4b00\"\n",
          indent, i, depth, block->count, short_time(seconds_of(*block) * block->count));
      write_items(i, i + block->length, block->inside, depth + 1);
      out_ += indent + "}\n";
      i = block->end();
      ++block;
    }
  }

  double seconds_of(const RepeatedBlock& block) const {
    double seconds = 0;
    for (std::uint32_t i = block.first; i < block.first + block.length; ++i)
      seconds += picture_.predicted.groups[picture_.repeated.items[i]].total;
    return seconds;
  }

  void write_group(GroupId g, int depth) {
    const FusionGroup& group = plan_.groups[g];
    out_ += fmt::format(
        "{}g{} [label=<<table border=\"1\" color=\"#777777\" cellborder=\"0\" cellspacing=\"0\" cellpadding=\"3\" "
        "style=\"rounded\" bgcolor=\"white\">",
        std::string(static_cast<std::size_t>(2 * depth), ' '), g);
    out_ += fmt::format(R"(<tr><td align="left" bgcolor="{}"><b>{}</b></td></tr>)", colour(group.pattern),
                        html(group.name, kLongestName));
    std::size_t rows = 0;
    for (const NodeId n : group.nodes) {
      const Node& node = graph_.nodes[n];
      if (++rows > kMostRows && group.nodes.size() > kMostRows + 1) {
        out_ += fmt::format("{}>and {} more</td></tr>", kRow, group.nodes.size() - kMostRows);
        break;
      }
      out_ += fmt::format("{} bgcolor=\"{}\">{}</td></tr>", kRow, colour(picture_.planned.kinds[n]),
                          html(cut(node.name, kLongestNode) + " = " + call_text(graph_, node)));
    }
    for (const std::string& line : footer(g))
      out_ += fmt::format("{}><font point-size=\"9\" color=\"#333333\">{}</font></td></tr>", kRow, html(line, 60));
    out_ += "</table>>]\n";
  }

  // The last lines of a box: the schedules of its kernels, then bytes and time.
  std::vector<std::string> footer(GroupId g) const {
    const Prediction& cost = picture_.predicted.groups[g];
    std::vector<std::string> lines;
    const std::vector<std::int64_t> hints = hints_of(graph_.symbols);
    std::map<std::string, int> schedules;
    for (const std::uint32_t s : steps_[g])
      if (const std::uint32_t k = kernel_at_hints(picture_.launch->steps[s], hints); k != kNone)
        ++schedules[name(picture_.launch->kernels[k].schedule)];
    std::string text;
    for (const auto& [schedule, count] : schedules)
      text += (text.empty() ? "" : ", ") + schedule + (count > 1 ? fmt::format(" x{}", count) : "");
    if (plan_.groups[g].code != GroupCode::kFusec) text = std::string(name(plan_.groups[g].code));
    if (!text.empty()) lines.push_back(std::move(text));
    if (cost.launches == 0)
      lines.emplace_back("no launch");
    else
      lines.push_back(fmt::format("{}{} read, {} written, {}",
                                  cost.launches > 1 ? fmt::format("{} launches, ", cost.launches) : "",
                                  short_bytes(cost.read), short_bytes(cost.written), short_time(cost.total)));
    return lines;
  }

  void write_prepared() {
    const auto groups = std::ranges::count_if(plan_.groups, &FusionGroup::prepared);
    if (groups == 0) return;
    out_ += fmt::format(
        "  prepared [shape=note, style=filled, fillcolor=\"#fffbe6\", label=\"prepared once for each set of "
        "weights:\\n{} {}, no part of a launch\"]\n",
        groups, groups == 1 ? "group" : "groups");
  }

  GroupId shown(GroupId g) const { return place_of_[g] == kNone ? kNone : picture_.repeated.items[place_of_[g]]; }

  // Writes edges between boxes, each pair once. An edge from one copy of a block to the next leads back to the first.
  void write_edges() {
    std::set<std::pair<GroupId, GroupId>> known;
    std::set<std::pair<std::string, GroupId>> taken;
    for (const GroupId g : picture_.repeated.items) {
      const GroupId to = shown(g);
      for (const ValueId v : interfaces_[g].inputs) {
        const Value& value = graph_.value(v);
        if (value.kind == Value::Kind::kInput && taken.emplace(input(v), to).second)
          out_ += fmt::format("  {} -> g{}\n", input(v), to);
        if (value.producer == kNone) continue;
        const GroupId from = shown(plan_.group_of[value.producer]);
        if (from == kNone || !known.emplace(from, to).second) continue;
        const bool is_back = place_of_[from] >= place_of_[to];
        out_ += fmt::format("  g{} -> g{} [tooltip=\"{}\"{}]\n", from, to,
                            quoted_label(value.name + ": " + to_string(graph_.type(v), graph_.symbols), 80),
                            is_back ? ", constraint=false, style=dashed, color=\"#7a4b00\"" : "");
      }
    }
  }

  void write_outputs() {
    if (graph_.outputs.size() > kMostEllipses) write_together("outputs", graph_.outputs);
    std::set<std::string> edges;
    for (std::size_t i = 0; i < graph_.outputs.size(); ++i) {
      const ValueId v = graph_.outputs[i];
      if (graph_.outputs.size() <= kMostEllipses)
        out_ += fmt::format("  {} [shape=ellipse, style=filled, fillcolor=\"#eeeeee\", label=\"{}\"]\n", output(i),
                            quoted_label(graph_.value(v).name));
      const NodeId producer = graph_.value(v).producer;
      const GroupId from = producer == kNone ? kNone : shown(plan_.group_of[producer]);
      if (from != kNone)
        edges.insert(fmt::format("  g{} -> {}\n", from, output(i)));
      else if (graph_.value(v).kind == Value::Kind::kInput)
        edges.insert(fmt::format("  {} -> {}\n", input(v), output(i)));
    }
    for (const std::string& edge : edges) out_ += edge;
  }

  // Writes a legend of the pattern kinds that occur.
  void write_legend() {
    const std::set<OpPattern> kinds(picture_.planned.kinds.begin(), picture_.planned.kinds.end());
    if (kinds.empty()) return;
    out_ += "  legend [label=<<table border=\"0\" cellborder=\"0\" cellspacing=\"2\" cellpadding=\"3\"><tr>";
    for (const OpPattern kind : kinds) out_ += fmt::format("<td bgcolor=\"{}\">{}</td>", colour(kind), name(kind));
    out_ +=
        "</tr><tr><td colspan=\"" + std::to_string(kinds.size()) +
        "\" align=\"left\"><font point-size=\"9\">a box: one group, its nodes, the schedule of its kernel, bytes and "
        "predicted time";
    if (!picture_.repeated.blocks.empty()) out_ += "; a dashed frame: layers, with how often they follow one another";
    out_ += "</font></td></tr></table>>]\n";
  }

  const Picture& picture_;
  const Graph& graph_;
  const FusionPlan& plan_;
  const std::vector<GroupInterface> interfaces_;
  const std::vector<std::vector<std::uint32_t>> steps_;  // by group
  const std::vector<std::uint32_t> places_;
  std::vector<std::uint32_t> place_of_;  // by group: the item that shows it; kNone: prepared
  std::string out_;
};

}  // namespace

std::string to_dot(const Picture& picture) {
  return DotWriter(picture).write();
}

void require_graphviz() {
  if (find_program("dot").empty()) refuse_picture();
}

std::string to_svg(const std::string& dot_text) {
  const TemporaryFile input, output;
  write_output(input.path(), dot_text);
  const std::string dot = find_program("dot");
  if (dot.empty() || run_program({dot, "-Tsvg", "-o", output.path(), input.path()}, "/dev/null") != 0) refuse_picture();
  return read_text_file(output.path());
}

}  // namespace fusec
