#include "transforms/origins.h"

#include <algorithm>

namespace fusec {

std::size_t Origins::Names::size() const {
  return static_cast<std::size_t>(std::distance(begin(), end()));
}

bool Origins::Names::operator==(const std::vector<std::string>& names) const {
  return std::equal(begin(), end(), names.begin(), names.end());
}

Origins::Origins(const Graph& graph) : links_(graph.nodes.size()), lists_(graph.nodes.size()) {
  std::size_t bytes = 0;
  for (const Node& node : graph.nodes) bytes += node.name.size();
  text_.reserve(bytes);
  for (NodeId n = 0; n < graph.nodes.size(); ++n) {
    const std::string& name = graph.nodes[n].name;
    links_[n] = {text_.size(), static_cast<std::uint32_t>(name.size()), kEnd};
    lists_[n] = {n, n};
    text_.insert(text_.end(), name.begin(), name.end());
  }
}

bool Origins::operator==(const std::vector<std::vector<std::string>>& lists) const {
  if (size() != lists.size()) return false;
  for (std::size_t n = 0; n < size(); ++n)
    if (!((*this)[n] == lists[n])) return false;
  return true;
}

void Origins::copy(NodeId from, NodeId to) {
  lists_[to] = {};
  for (std::uint32_t at = lists_[from].first; at != kEnd; at = links_[at].next) {
    const auto made = static_cast<std::uint32_t>(links_.size());
    copied_.push_back(at);
    links_.push_back({links_[at].begin, links_[at].size, kEnd});
    if (lists_[to].first == kEnd)
      lists_[to].first = made;
    else
      links_[lists_[to].last].next = made;
    lists_[to].last = made;
  }
}

std::vector<std::string_view> Origins::copied() const {
  std::vector<std::string_view> names;
  for (const std::uint32_t at : copied_) names.push_back(name(at));
  return names;
}

}  // namespace fusec
