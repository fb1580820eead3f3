#include "transforms/exact_node.h"

#include <algorithm>

#include "ir/expr.h"

namespace fusec {
namespace {

bool is_exact(const ExprPool& pool, const ExprNode& n) {
  switch (n.op) {
    case ExprOp::kExp:
    case ExprOp::kExp2:
    case ExprOp::kExpm1:
    case ExprOp::kLog:
    case ExprOp::kLog2:
    case ExprOp::kLog10:
    case ExprOp::kLog1p:
    case ExprOp::kRsqrt:
    case ExprOp::kSin:
    case ExprOp::kCos:
    case ExprOp::kTan:
    case ExprOp::kAsin:
    case ExprOp::kAcos:
    case ExprOp::kAtan:
    case ExprOp::kSinh:
    case ExprOp::kCosh:
    case ExprOp::kTanh:
    case ExprOp::kAsinh:
    case ExprOp::kAcosh:
    case ExprOp::kAtanh:
    case ExprOp::kErf:
    case ExprOp::kSigmoid:
    case ExprOp::kAtan2:
    case ExprOp::kPow:
    case ExprOp::kFloorDiv:
    case ExprOp::kFloorMod:
    case ExprOp::kFmod:
      return !is_float(n.type);
    case ExprOp::kConvert:
      return is_float(n.type) || n.type == ScalarType::kBool || !is_float(pool[n.args[0]].type);
    case ExprOp::kReduce:
      return !is_float(n.type) || (n.reduction != Reduction::kSum && n.reduction != Reduction::kProd);
    default:
      return true;
  }
}

}  // namespace

bool is_exact(const Graph& graph, const Node& node) {
  for (std::uint32_t o = 0; o < node.output_count; ++o) {
    const TensorType& type = graph.tensor(node.first_output + o);
    if (node.op->special == Special::kScan && is_float(type.dtype)) return false;
    if (node.op->special != Special::kNone) continue;
    ExprPool pool(graph.symbols);
    std::vector<IndexExpr> index;
    for (const Dim& extent : type.shape) index.push_back(IndexExpr::axis(pool.new_axis(extent)));
    build_formula(pool, graph, node, o, index);
    for (ExprId id = 0; id < pool.size(); ++id)
      if (!is_exact(pool, pool[id])) return false;
  }
  return true;
}

}  // namespace fusec
