#include "transforms/patterns/match_memory.h"

#include <algorithm>
#include <bit>

#include "transforms/patterns/conditions.h"

namespace fusec {
namespace {

constexpr std::size_t kMostLooks = 50'000;     // distinct looks; further new nodes are kUnlike
constexpr std::size_t kMostMatchReaders = 32;  // readers of a value; nodes with more are kUnlike
constexpr std::size_t kMostOfSameRoot = 8;     // remembered searches for one looks of the root
constexpr std::uint64_t kFarAway = 1u << 20;   // in a key: a distant reader
constexpr std::uint64_t kAbsent = 1u << 21;    // in a key: an absent operand

}  // namespace

std::size_t NodeLooks::KeyHash::operator()(const std::vector<std::uint64_t>& key) const {
  std::uint64_t hash = key.size();
  for (const std::uint64_t word : key) {
    hash = (hash ^ word) * 0xff51afd7ed558ccdu;
    hash ^= hash >> 32;
  }
  return hash;
}

NodeLooks::NodeLooks(const SearchedGraph& searched)
    : searched_(searched), known_(searched.graph.nodes.size(), kUnknown) {}

std::uint32_t NodeLooks::of(NodeId n) {
  if (known_[n] != kUnknown) return known_[n];
  if (!write_key(n)) return known_[n] = kUnlike;
  if (const auto it = numbers_.find(key_); it != numbers_.end()) return known_[n] = it->second;
  if (numbers_.size() == kMostLooks) return known_[n] = kUnlike;
  return known_[n] = numbers_.emplace(key_, static_cast<std::uint32_t>(numbers_.size() + 1)).first->second;
}

// Whether the value's last reader is more than kNear after its producer, or after its first reader. All readers then
// write it into their keys by its id.
bool NodeLooks::is_read_far_away(ValueId v) const {
  const auto readers = searched_.uses.of(v);
  if (readers.empty()) return false;
  const NodeId producer = searched_.graph.value(v).producer;
  return readers.back() - (producer == kNone ? readers.front() : producer) > kNear;
}

bool NodeLooks::stands_for_itself(NodeId n) const {
  const Node& node = searched_.graph.nodes[n];
  for (ValueId v = node.first_output; v < node.first_output + node.output_count; ++v)
    if (is_read_far_away(v)) return true;
  return false;
}

bool NodeLooks::write_key(NodeId n) {
  const Graph& graph = searched_.graph;
  const Node& node = graph.nodes[n];
  key_.clear();
  key_.push_back(std::bit_cast<std::uintptr_t>(node.op));
  const std::uint64_t flags = (node.fuse ? 1u : 0u) | (node.prepared ? 2u : 0u) |
                              (node.pattern ? 4u + 8u * static_cast<std::uint64_t>(*node.pattern) : 0u);
  key_.push_back(std::uint64_t{node.attributes} << 32 | flags);
  key_.push_back(std::uint64_t{node.output_count} << 32 | node.inputs.size());
  for (ValueId v = node.first_output; v < node.first_output + node.output_count; ++v)
    if (!write_readers(n, v)) return false;
  for (const ValueId v : node.inputs) write_operand(n, v);
  return true;
}

bool NodeLooks::write_readers(NodeId n, ValueId v) {
  const auto readers = searched_.uses.of(v);
  if (readers.size() > kMostMatchReaders) return false;
  key_.push_back(std::uint64_t{searched_.graph.value(v).type} << 32 | readers.size() << 1 | searched_.is_output[v]);
  for (const NodeId reader : readers) key_.push_back(reader - n > kNear ? kFarAway : reader - n);
  return true;
}

void NodeLooks::write_operand(NodeId n, ValueId v) {
  if (v == kNone) {
    key_.push_back(kAbsent);
    return;
  }
  const Graph& graph = searched_.graph;
  const Value& value = graph.value(v);
  key_.push_back(std::uint64_t{value.type} << 32 | static_cast<std::uint64_t>(value.kind));
  if (value.kind == Value::Kind::kNumber) {
    const Scalar& number = graph.number(v);
    key_.insert(key_.end(), {static_cast<std::uint64_t>(number.category), static_cast<std::uint64_t>(number.integer),
                             std::bit_cast<std::uint64_t>(number.real)});
    return;
  }
  const Constant* constant = graph.constant_of(v);
  if (value.kind == Value::Kind::kDim || (constant && constant->data) || is_read_far_away(v)) {
    key_.push_back(std::uint64_t{1} << 63 | v);
    return;
  }
  if (value.producer != kNone) {
    key_.push_back(std::uint64_t{n - value.producer} << 32 | value.index);
    return;
  }
  // An input or a constant is identified by its first reader and the operand's position there.
  const NodeId first = searched_.uses.of(v).front();
  const auto& operands = graph.nodes[first].inputs;
  const auto place = std::find(operands.begin(), operands.end(), v) - operands.begin();
  key_.push_back(std::uint64_t{n - first} << 32 | static_cast<std::uint64_t>(place));
}

MatchMemory::MatchMemory(const SearchedGraph& searched, NodeLooks& looks, const FusionPattern& pattern)
    : searched_(searched),
      looks_(looks),
      pattern_(pattern),
      may_remember_(!pattern.check && !pattern.attributes_getter &&
                    std::ranges::none_of(pattern.conditions, looks_unseen)) {}

bool MatchMemory::is_like(const RememberedMatch& remembered, NodeId root) {
  return std::ranges::all_of(remembered.seen_, [&](const RememberedMatch::Seen& seen) {
    if (seen.itself) return is_free(seen.node) == seen.free;
    if (seen.node > root) return false;
    const NodeId n = root - seen.node;
    return is_free(n) == seen.free && looks_.of(n) == seen.looks;
  });
}

RememberedMatch* MatchMemory::find(NodeId root) {
  if (!may_remember_) return nullptr;
  const auto it = known_.find(looks_.of(root));
  if (it == known_.end()) return nullptr;
  const auto found = std::ranges::find_if(it->second, [&](const auto& each) { return is_like(each, root); });
  return found == it->second.end() ? nullptr : &*found;
}

PatternMatch MatchMemory::match(const RememberedMatch& remembered, NodeId root) const {
  PatternMatch match{
      .pattern = &pattern_, .root = root, .nodes = {}, .values = {}, .attributes = remembered.attributes_};
  match.nodes.reserve(remembered.nodes_.size());
  for (const NodeId distance : remembered.nodes_) match.nodes.push_back(root - distance);
  match.values.reserve(remembered.values_.size());
  for (const RememberedMatch::Place& place : remembered.values_) {
    if (place.distance == kNone) {
      match.values.push_back(kNone);
      continue;
    }
    const Node& node = searched_.graph.nodes[root - place.distance];
    match.values.push_back(place.is_result ? node.first_output + place.number : node.inputs[place.number]);
  }
  return match;
}

std::optional<PatternMatch> MatchMemory::search(NodeId root, RememberedMatch*& remembered) {
  remembered = nullptr;
  if (!may_remember_) return match_pattern(searched_, pattern_, root);
  seen_.assign(1, root);
  std::optional<PatternMatch> match = match_pattern(searched_, pattern_, root, nullptr, &seen_);
  const std::uint32_t looks = looks_.of(root);
  if (looks == NodeLooks::kUnlike) return match;
  std::vector<RememberedMatch>& known = known_[looks];
  RememberedMatch fresh;
  if (known.size() == kMostOfSameRoot || !note_seen(root, fresh) || (match && !note_match(*match, fresh))) return match;
  known.push_back(std::move(fresh));
  remembered = &known.back();
  return match;
}

// Also notes the producers of the examined nodes' operands, since match_pattern need not report them.
bool MatchMemory::note_seen(NodeId root, RememberedMatch& remembered) {
  std::ranges::sort(seen_);
  seen_.erase(std::unique(seen_.begin(), seen_.end()), seen_.end());
  const std::size_t count = seen_.size();
  for (std::size_t i = 0; i < count; ++i)
    for (const ValueId v : searched_.graph.nodes[seen_[i]].inputs)
      if (v != kNone && searched_.graph.value(v).producer != kNone) seen_.push_back(searched_.graph.value(v).producer);
  std::ranges::sort(seen_);
  seen_.erase(std::unique(seen_.begin(), seen_.end()), seen_.end());
  if (seen_.back() >= searched_.taken.size()) return false;  // added after the SearchedGraph
  for (auto it = seen_.rbegin(); it != seen_.rend(); ++it) {
    const bool itself = looks_.stands_for_itself(*it);
    const std::uint32_t looks = looks_.of(*it);
    if (!itself && looks == NodeLooks::kUnlike) return false;
    if (itself && *it == root) return false;
    remembered.seen_.push_back(
        {.node = itself ? *it : root - *it, .looks = looks, .itself = itself, .free = is_free(*it)});
    if (itself)
      remembered.far_.push_back(*it);
    else
      remembered.reach_ = std::max(remembered.reach_, root - *it);
  }
  return true;
}

bool MatchMemory::note_match(const PatternMatch& match, RememberedMatch& remembered) const {
  remembered.matched_ = true;
  for (const NodeId n : match.nodes) {
    const auto is_it = [&](const RememberedMatch::Seen& seen) { return !seen.itself && seen.node == match.root - n; };
    if (std::ranges::none_of(remembered.seen_, is_it)) return false;
    remembered.nodes_.push_back(match.root - n);
  }
  remembered.attributes_ = match.attributes;
  const auto place_of = [&](ValueId v) -> RememberedMatch::Place {
    for (const RememberedMatch::Seen& seen : remembered.seen_) {
      if (seen.itself) continue;
      const Node& node = searched_.graph.nodes[match.root - seen.node];
      if (v >= node.first_output && v < node.first_output + node.output_count)
        return {.distance = seen.node, .number = v - node.first_output, .is_result = true};
      for (std::uint32_t i = 0; i < node.inputs.size(); ++i)
        if (node.inputs[i] == v) return {.distance = seen.node, .number = i};
    }
    return {};
  };
  for (const ValueId v : match.values) {
    remembered.values_.push_back(v == kNone ? RememberedMatch::Place{} : place_of(v));
    if (v != kNone && remembered.values_.back().distance == kNone) return false;
  }
  return true;
}

}  // namespace fusec
