#include "schedule/lowering/node_work.h"

#include <cmath>
#include <limits>
#include <unordered_map>

#include "analysis/kernel/formula_flops.h"
#include "ir/hash.h"
#include "schedule/lowering/lower_group.h"

namespace fusec {
namespace {

std::int64_t as_count(double flops) {
  constexpr double kMost = 9.2e18;
  return flops >= kMost ? std::numeric_limits<std::int64_t>::max() : static_cast<std::int64_t>(std::llround(flops));
}

std::int64_t counted(const Graph& graph, NodeId n) {
  const Node& node = graph.nodes[n];
  if (node.op->view || node.op->special == Special::kTuple) return 0;
  if (!node.op->formula) return 0;
  std::vector<ValueId> outputs;
  for (std::uint32_t o = 0; o < node.output_count; ++o) outputs.push_back(node.first_output + o);
  double flops = 0;
  for (const LoweredUnit& unit : lower_group(graph, {n}, outputs))
    if (unit.kind == LoweredUnit::Kind::kKernel) flops += formula_flops(unit.kernel);
  return as_count(flops);
}

}  // namespace

struct NodeWork::Known {
  using Signature = std::vector<std::uint64_t>;
  struct SignatureHash {
    std::size_t operator()(const Signature& s) const {
      std::size_t h = s.size();
      for (const std::uint64_t v : s) h = hash_mix(h, v);
      return h;
    }
  };
  std::unordered_map<Signature, std::int64_t, SignatureHash> flops;
  Signature signature;
};

NodeWork::NodeWork(const Graph& graph) : graph_(graph), known_(std::make_unique<Known>()) {}
NodeWork::~NodeWork() = default;

std::int64_t NodeWork::flops(NodeId n) {
  const Node& node = graph_.nodes[n];
  Known::Signature& signature = known_->signature;
  signature.assign({reinterpret_cast<std::uintptr_t>(node.op), node.attributes});
  for (const ValueId v : node.inputs) {
    const bool is_number = v != kNone && graph_.value(v).kind == Value::Kind::kNumber;
    signature.push_back(v == kNone ? kNone : std::uint64_t{graph_.value(v).type} * 2 + is_number);
  }
  signature.push_back(node.output_count);
  for (ValueId v = node.first_output; v < node.first_output + node.output_count; ++v)
    signature.push_back(graph_.value(v).type);
  const auto found = known_->flops.find(signature);
  if (found != known_->flops.end()) return found->second;
  const std::int64_t flops = counted(graph_, n);
  known_->flops.emplace(signature, flops);
  return flops;
}

}  // namespace fusec
