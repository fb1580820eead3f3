#include "analysis/lowering/concat_parts.h"

#include <algorithm>
#include <set>
#include <vector>

#include "ir/tuple_field.h"
#include "ir/type.h"

namespace fusec {
namespace {

const Node& producer(const Graph& graph, ValueId v) {
  return graph.nodes[graph.value(v).producer];
}

bool made_of_reduction(const Graph& graph, const Inlining& inlining, ValueId v) {
  std::set<ValueId> seen{v};
  std::vector<ValueId> stack{v};
  while (!stack.empty()) {
    const FormulaFacts* facts = inlining.facts(stack.back());
    stack.pop_back();
    if (!facts) continue;
    if (facts->reduces) return true;
    for (const LoadFact& load : facts->loads)
      if (const ValueId source = resolve_tuple(graph, load.source);
          inlining.inside(source) && seen.insert(source).second)
        stack.push_back(source);
  }
  return false;
}

}  // namespace

std::optional<ValueId> concat_below(const Graph& graph, const Inlining& inlining, ValueId v) {
  constexpr std::size_t kMostBetween = 32;
  std::set<ValueId> seen{v};
  std::vector<ValueId> queue{v};
  for (std::size_t next = 0; next < queue.size() && next < kMostBetween; ++next) {
    const FormulaFacts* facts = inlining.facts(queue[next]);
    if (!facts || facts->reduces) continue;
    if (producer(graph, queue[next]).op->name == "concat") return queue[next];
    for (const LoadFact& load : facts->loads) {
      const ValueId source = resolve_tuple(graph, load.source);
      if (load.identity && inlining.inside(source) && !inlining.must_be_stored(source) && seen.insert(source).second)
        queue.push_back(source);
    }
  }
  return std::nullopt;
}

bool may_be_in_parts(const Graph& graph, const Inlining& inlining, ValueId v) {
  if (!inlining.inside(v) || bits(graph.tensor(v).dtype) == 4) return false;
  const std::optional<ValueId> concat = concat_below(graph, inlining, v);
  if (!concat) return false;
  const auto is_tensor = [&](ValueId operand) {
    return graph.value(operand).kind != Value::Kind::kNumber && graph.value(operand).kind != Value::Kind::kDim;
  };
  const Node& node = producer(graph, *concat);
  return std::ranges::all_of(node.inputs, is_tensor) && std::ranges::any_of(node.inputs, [&](ValueId operand) {
           return made_of_reduction(graph, inlining, resolve_tuple(graph, operand));
         });
}

std::vector<ConcatPart> parts_of(const Graph& graph, const Inlining& inlining, ValueId v) {
  const Node& concat = producer(graph, *concat_below(graph, inlining, v));
  const auto rank = static_cast<std::int64_t>(graph.tensor(v).rank());
  const std::int64_t dim = graph.attributes(concat).integer("dim", 0);
  ConcatPart next{.dim = static_cast<std::size_t>(dim < 0 ? dim + rank : dim), .offset = 0};
  std::vector<ConcatPart> parts;
  for (const ValueId input : concat.inputs) {
    next.operand = resolve_tuple(graph, input);
    const Dim& extent = graph.tensor(next.operand).shape[next.dim];
    if (extent.is(0)) continue;
    parts.push_back(next);
    next.offset += extent;
  }
  return parts;
}

}  // namespace fusec
