#include "transforms/graph_copy.h"

#include <bit>

namespace fusec {

void GraphCopy::copy_inputs() {
  for (const ValueId v : from_.inputs) now_[v] = to_.add_input(from_.value(v).name, from_.tensor(v));
}

void GraphCopy::copy_constant(const Constant& constant) {
  const ValueId v = to_.add_constant(from_.value(constant.value).name, from_.tensor(constant.value));
  now_[constant.value] = v;
  to_.constants.back() = constant;
  to_.constants.back().value = v;
}

ValueId GraphCopy::now(ValueId old) {
  if (old == kNone || now_[old] != kNone) return old == kNone ? kNone : now_[old];
  if (from_.value(old).kind == Value::Kind::kDim) return now_[old] = to_.add_dim(from_.dim(old));
  const Scalar& number = from_.number(old);
  const auto [it, fresh] =
      numbers_.emplace(std::tuple{number.category, number.integer, std::bit_cast<std::uint64_t>(number.real)}, kNone);
  if (fresh) it->second = to_.add_number(number);
  return now_[old] = it->second;
}

Node GraphCopy::with_new_operands(const Node& old) {
  Node node = old;
  for (ValueId& v : node.inputs) v = now(v);
  return node;
}

NodeId GraphCopy::add(Node node, const Node& old) {
  std::vector<std::string> names;
  for (std::uint32_t o = 0; o < old.output_count; ++o) names.push_back(from_.value(old.first_output + o).name);
  node.name = old.name;
  const NodeId n = to_.add_node(std::move(node), from_.result_types(old), std::move(names));
  for (std::uint32_t o = 0; o < old.output_count; ++o) now_[old.first_output + o] = to_.nodes[n].first_output + o;
  return n;
}

Graph GraphCopy::finish() && {
  for (const ValueId v : from_.outputs) to_.outputs.push_back(now(v));
  for (const Alias& alias : from_.aliases) to_.aliases.push_back({now(alias.output), now(alias.input)});
  return std::move(to_);
}

}  // namespace fusec
