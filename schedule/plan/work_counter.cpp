#include "schedule/plan/work_counter.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "analysis/kernel/operation_work.h"
#include "ir/type.h"

namespace fusec {

void WorkCounter::execute(ExprId id, double times, Work& work) const {
  const ExprNode& node = pool_[id];
  if (node.op == ExprOp::kReduce) times *= points(node.axes);
  const OperationWork one = operation_work(node);
  if (node.type == ScalarType::kFloat64) {
    work.float64 += times * (one.arithmetic + 16 * one.special);
  } else {
    work.float32 += times * one.arithmetic;
    work.special += times * one.special;
  }
}

void WorkCounter::execute_all(const std::vector<ExprId>& nodes, const Axes& space, double times, Work& work) const {
  for (const ExprId id : nodes) execute(id, times * points(united(space, depends(id))), work);
}

void WorkCounter::count_bytes(const Graph& graph, Work& work) const {
  std::map<ValueId, std::map<std::vector<IndexExpr>, double>> read;  // by tensor and index
  for (const ExprId id : between(roots_of(kernel_), {})) {
    const ExprNode& node = pool_[id];
    if (node.op != ExprOp::kLoad) continue;
    Axes axes;
    for (const IndexExpr& e : node.indices)
      for (const Variable v : variables_of(e)) {
        if (v.kind == Variable::Kind::kAxis) axes = united(std::move(axes), std::span(&v.id, 1));
        if (v.kind == Variable::Kind::kValue) axes = united(std::move(axes), depends(v.id));
      }
    read[node.source][node.indices] = points(axes) * bits(node.dtype) / 8;
  }
  for (const auto& [value, parts] : read) {
    double bytes = 0;
    for (const auto& [index, part] : parts) bytes += part;
    work.read += std::min(std::ceil(bytes), static_cast<double>(bytes_at_hint(graph.tensor(value), graph.symbols)));
  }
  // An output may have one element per row only, and a kernel may store only a part of an output.
  for (const KernelOutput& output : kernel_.outputs)
    work.written += std::min(std::ceil(points(output.axes) * bits(output.type.dtype) / 8),
                             static_cast<double>(bytes_at_hint(output.type, graph.symbols)));
}

void WorkCounter::count_registers(Work& work) const {
  const std::vector<ExprId> nodes = between(roots_of(kernel_), {});
  std::vector<ExprId> last_use(pool_.size(), kNoExpr);
  for (const ExprId id : nodes)
    for (const ExprId a : pool_[id].args)
      if (a != kNoExpr) last_use[a] = id;
  std::vector<double> ends(pool_.size(), 0);
  double alive = 0, most = 0;
  for (const ExprId id : nodes) {
    const ScalarType type = pool_[id].type;
    const bool constant = pool_[id].op == ExprOp::kConstant;
    const bool wide = type == ScalarType::kFloat64 || type == ScalarType::kInt64 || type == ScalarType::kUInt64;
    const double size = constant ? 0 : wide ? 2 : 1;
    alive += size;
    most = std::max(most, alive);
    if (last_use[id] == kNoExpr)
      alive -= size;  // stored immediately
    else
      ends[last_use[id]] += size;
    alive -= ends[id];
  }
  work.registers = kAddressRegisters + most;
}

void add_multiply_adds(double count, bool tensor_cores, ScalarType type, Work& work) {
  double& unit = tensor_cores ? work.tensor : type == ScalarType::kFloat64 ? work.float64 : work.float32;
  unit += 2 * count;
}

double mma_sync_cost(const Target& target) {
  return 1 / target.mma_sync_rate;
}

}  // namespace fusec
