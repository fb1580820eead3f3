#include "ir/inferred_types.h"

#include <bit>

#include "ir/hash.h"

namespace fusec {

std::size_t InferredTypes::KeyHash::operator()(const std::vector<std::uint64_t>& key) const {
  std::size_t hash = key.size();
  for (const std::uint64_t part : key) hash = hash_mix(hash, part);
  return hash;
}

const std::vector<TypeId>* InferredTypes::find(const Graph& graph, const Node& node, std::span<const TypeId> declared) {
  key_ = {std::bit_cast<std::uintptr_t>(node.op), node.attributes, node.inputs.size()};
  for (const ValueId v : node.inputs) {
    if (v == kNone) {
      key_.push_back(kNone);
      continue;
    }
    const Value& value = graph.value(v);
    if (value.kind == Value::Kind::kNumber || value.kind == Value::Kind::kDim) {
      key_.clear();
      return nullptr;
    }
    key_.push_back(value.type);
  }
  key_.insert(key_.end(), declared.begin(), declared.end());
  const auto found = types_.find(key_);
  return found == types_.end() ? nullptr : &found->second;
}

void InferredTypes::add(const std::vector<TypeId>& types) {
  if (!key_.empty()) types_.emplace(key_, types);
}

}  // namespace fusec
