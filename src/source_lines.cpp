#include "source_lines.h"

#include <algorithm>
#include <map>
#include <string>

#include "codegen/expr/identifiers.h"

namespace fusec {
namespace {

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

class LineReader {
 public:
  LineReader(const Graph& graph, const FusionGroup& group) {
    for (std::uint32_t place = 0; place < group.nodes.size(); ++place) {
      const Node& node = graph.nodes[group.nodes[place]];
      defined_.emplace("// " + comment_text(node.name) + " = ", place);
      for (std::uint32_t i = 0; i < node.output_count; ++i)
        names_.insert_or_assign(clean_identifier(graph.value(node.first_output + i).name), place);
    }
    // Operands from outside have names, too, which may begin like a node's name.
    for (const NodeId n : group.nodes)
      for (const ValueId v : graph.nodes[n].inputs)
        if (v != kNone && !graph.value(v).name.empty()) names_.emplace(clean_identifier(graph.value(v).name), kNone);
  }

  std::vector<std::uint32_t> read(std::string_view line) const {
    const std::size_t begin = line.find_first_not_of(' ');
    if (begin == std::string_view::npos) return {};
    if (line.substr(begin).starts_with("//")) {
      for (const auto& [start, place] : defined_)
        if (line.substr(begin).starts_with(start)) return {place};
      return {};
    }
    const std::size_t assignment = line.find(" = ");
    std::vector<std::uint32_t> places = named(line.substr(0, assignment));
    return places.empty() && assignment != std::string_view::npos ? named(line.substr(assignment)) : places;
  }

 private:
  std::vector<std::uint32_t> named(std::string_view text) const {
    std::vector<std::uint32_t> places;
    for (std::size_t at = 0; at < text.size();) {
      std::size_t end = at;
      while (end < text.size() && is_word(text[end])) ++end;
      if (end > at)
        if (const std::uint32_t place = place_of(text.substr(at, end - at)); place != kNone) places.push_back(place);
      at = std::max(end, at + 1);
    }
    std::ranges::sort(places);
    places.erase(std::unique(places.begin(), places.end()), places.end());
    return places;
  }

  // The variable "h_v_2" belongs to the value "h_v" if there is one, else to "h".
  std::uint32_t place_of(std::string_view word) const {
    for (;;) {
      if (const auto found = names_.find(word); found != names_.end()) return found->second;
      const std::size_t cut = word.rfind('_');
      if (cut == std::string_view::npos || cut == 0) return kNone;
      word = word.substr(0, cut);
    }
  }

  std::map<std::string, std::uint32_t> defined_;  // beginning of a node's comment to the node's index
  std::map<std::string, std::uint32_t, std::less<>> names_;
};

}  // namespace

std::vector<std::vector<std::uint32_t>> nodes_of_lines(const Graph& graph, const FusionGroup& group,
                                                       std::string_view text) {
  const LineReader reader(graph, group);
  std::vector<std::vector<std::uint32_t>> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    lines.push_back(reader.read(text.substr(0, end)));
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  }
  return lines;
}

}  // namespace fusec
