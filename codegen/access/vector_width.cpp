#include "codegen/access/vector_width.h"

#include <algorithm>

#include "ir/type.h"

namespace fusec {
namespace {

// Element sizes, in bits, of the tensors along the last axis.
struct BitsAlong {
  int narrowest = 64, widest = 4;
};

BitsAlong bits_along_last(const Kernel& kernel, const Graph& graph) {
  BitsAlong found;
  const Variable last{Variable::Kind::kAxis, kernel.outputs[0].axes.back()};
  auto see = [&](const Shape& shape, const std::vector<IndexExpr>& index, DType dtype) {
    if (coefficient_of(simplify(flat_index(shape, index), kernel.pool.bounds()), last) != 1) return;
    found.narrowest = std::min(found.narrowest, bits(dtype));
    found.widest = std::max(found.widest, bits(dtype));
  };
  for (const KernelOutput& output : kernel.outputs) see(output.type.shape, output.index, output.type.dtype);
  for (const ExprId id : reachable(kernel.pool, roots_of(kernel))) {
    const ExprNode& n = kernel.pool[id];
    if (n.op == ExprOp::kLoad) see(graph.tensor(n.source).shape, n.indices, n.dtype);
  }
  return found;
}

}  // namespace

int registers_of_loads(const Kernel& kernel, int width) {
  int registers = 0;
  for (const ExprId id : reachable(kernel.pool, roots_of(kernel)))
    if (const ExprNode& n = kernel.pool[id]; n.op == ExprOp::kLoad)
      registers += std::max(1, bits(n.dtype) * width / 32);
  return registers;
}

int wanted_width(const Kernel& kernel, const Graph& graph) {
  constexpr int kMostRegisters = 192;
  const BitsAlong along = bits_along_last(kernel, graph);
  int width = std::clamp(std::max(128 / along.widest, 32 / along.narrowest), 1, 16);
  while (width > 1 && registers_of_loads(kernel, width) > kMostRegisters) width /= 2;
  return width;
}

int coalesced_width(const Kernel& kernel, const Graph& graph) {
  return std::clamp(128 / bits_along_last(kernel, graph).widest, 2, 16);
}

int wanted_planes_width(const Kernel& kernel) {
  int widest = 8;
  for (const KernelOutput& output : kernel.outputs) widest = std::max(widest, bits(output.type.dtype));
  for (const ExprId id : reachable(kernel.pool, roots_of(kernel)))
    if (kernel.pool[id].op == ExprOp::kLoad) widest = std::max(widest, bits(kernel.pool[id].dtype));
  return 128 / widest;
}

}  // namespace fusec
