#include "schedule/movement/bitcast_copy.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "analysis/kernel/copy_expr.h"
#include "analysis/kernel/loads.h"
#include "ir/float_formats.h"

namespace fusec {
namespace {

bool is_narrow_float(DType dtype) {
  return is_float(dtype) && bits(dtype) <= 16;
}

// Marks what hands on an output's elements, and collects what else is needed for that. False where something is
// computed, or one element is moved into two dtypes.
bool mark_copied(const ExprPool& pool, const KernelOutput& output, CopiedNodes& copied_nodes,
                 std::vector<ExprId>& value_uses) {
  std::vector<ExprId> left{output.expr};
  while (!left.empty()) {
    const ExprId id = left.back();
    left.pop_back();
    const ExprNode& n = pool[id];
    if (copied_nodes[id] && *copied_nodes[id] != output.type.dtype) return false;
    if (copied_nodes[id]) continue;
    copied_nodes[id] = output.type.dtype;
    if (n.op == ExprOp::kSelect) {
      value_uses.push_back(n.args[0]);
      left.insert(left.end(), {n.args[1], n.args[2]});
    } else if (n.op == ExprOp::kLoad && n.dtype == output.type.dtype) {
      if (n.args[0] != kNoExpr) value_uses.push_back(n.args[0]);
    } else if (n.op != ExprOp::kConstant) {
      return false;
    }
  }
  return true;
}

DType bits_of(DType dtype) {
  return bits(dtype) == 4 ? DType::kUInt4 : bits(dtype) == 8 ? DType::kUInt8 : DType::kUInt16;
}

ExprId as_bits(const ExprNode& n, DType dtype, ExprPool& to, ExprCopier& copier, const ExprCopier::Copied& copied) {
  if (!is_narrow_float(dtype)) return kNoExpr;
  switch (n.op) {
    case ExprOp::kConstant:
      return to.constant(ScalarType::kUInt32, static_cast<std::int64_t>(encode_float(dtype, n.real)));
    case ExprOp::kLoad: {
      std::vector<IndexExpr> indices;
      for (const IndexExpr& index : n.indices) indices.push_back(copier.copy(index));
      return to.load(n.source, bits_of(dtype), std::move(indices), n.args[0] == kNoExpr ? kNoExpr : copied(n.args[0]));
    }
    default:
      return kNoExpr;
  }
}

}  // namespace

std::optional<CopiedNodes> find_copied(const Kernel& kernel) {
  CopiedNodes copied_nodes(kernel.pool.size());
  std::vector<ExprId> value_uses;
  for (const KernelOutput& output : kernel.outputs)
    if (!mark_copied(kernel.pool, output, copied_nodes, value_uses)) return std::nullopt;
  // Values that are looked up for places are needed as what they are.
  for (ExprId id = 0; id < copied_nodes.size(); ++id)
    if (copied_nodes[id])
      for (const ExprId value : values_in(kernel.pool[id])) value_uses.push_back(value);
  const std::vector<ExprId> needed = reachable(kernel.pool, value_uses);
  const bool computed = std::ranges::any_of(needed, [&](ExprId id) { return copied_nodes[id].has_value(); });
  return computed ? std::nullopt : std::optional(std::move(copied_nodes));
}

Kernel bitcast_copies(const Kernel& kernel) {
  const bool narrow = std::ranges::any_of(
      kernel.outputs, [](const KernelOutput& output) { return is_narrow_float(output.type.dtype); });
  const std::optional<CopiedNodes> copied_nodes = narrow ? find_copied(kernel) : std::nullopt;
  if (!copied_nodes) return kernel;
  // What the outputs do not need may compute with what is moved, and has a name nevertheless.
  Kernel needed = kernel;
  const std::vector<ExprId> inside = reachable(kernel.pool, roots_of(kernel));
  std::erase_if(needed.named,
                [&](const NamedExpr& named) { return std::ranges::find(inside, named.expr) == inside.end(); });
  Kernel changed = change_axes(needed, [&](ExprPool& to, ExprCopier& copier) {
    copier.rewritten = [&](ExprId id, const ExprCopier::Copied& copied) {
      const std::optional<DType>& dtype = (*copied_nodes)[id];
      return dtype ? as_bits(needed.pool[id], *dtype, to, copier, copied) : kNoExpr;
    };
    return same_axes(needed, to);
  });
  for (KernelOutput& output : changed.outputs)
    if (is_narrow_float(output.type.dtype)) output.type.dtype = bits_of(output.type.dtype);
  return changed;
}

}  // namespace fusec
