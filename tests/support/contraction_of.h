// The product that a small model is, as forms of products are asked for it.
#pragma once

#include <doctest/doctest.h>

#include <numeric>
#include <utility>
#include <vector>

#include "schedule/kernel_forms.h"
#include "schedule/lowering/lower_group.h"

namespace fusec::test {

struct KernelOfProduct {
  Kernel kernel;  // in the shape that the product is of
  Contraction contraction;
};

// Of a graph that is one kernel, whatever views stand around it.
inline KernelOfProduct product_of(const Graph& graph) {
  std::vector<NodeId> nodes(graph.nodes.size());
  std::iota(nodes.begin(), nodes.end(), NodeId{0});
  std::vector<LoweredUnit> units = lower_group(graph, nodes, graph.outputs, false);
  std::erase_if(units, [](const LoweredUnit& u) { return u.kind != LoweredUnit::Kind::kKernel; });
  REQUIRE(units.size() == 1);
  FormOfKernel form = form_of(units[0].kernel);
  REQUIRE(form.contraction);
  return {form.rewritten ? *std::move(form.rewritten) : std::move(units[0].kernel), *std::move(form.contraction)};
}

}  // namespace fusec::test
