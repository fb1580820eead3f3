#include "ir/inferred_types.h"

#include <bit>

#include "ir/hash.h"

namespace fusec {

std::size_t InferredTypes::KeyHash::operator()(const std::vector<std::uint64_t>& key) const {
  std::size_t hash = key.size();
  for (const std::uint64_t part : key) hash = hash_mix(hash, part);
  return hash;
}

const std::vector<TypeId>* InferredTypes::find(const Graph& graph, const OpDef& op, std::span<const ValueId> operands,
                                               std::uint32_t attributes) {
  key_.clear();
  if (op.custom) return nullptr;
  for (const ValueId v : operands) {
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
  key_.push_back(attributes);
  key_.push_back(std::bit_cast<std::uintptr_t>(&op));
  const auto found = types_.find(key_);
  return found == types_.end() ? nullptr : &found->second;
}

void InferredTypes::add(const std::vector<TypeId>& types) {
  if (!key_.empty()) types_.emplace(key_, types);
}

}  // namespace fusec
