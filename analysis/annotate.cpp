#include "analysis/annotate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <unordered_map>

#include "ir/budget.h"
#include "ir/error.h"

namespace fusec {
namespace {

bool is_axis(const IndexExpr& e, std::uint32_t axis) {
  const auto v = e.as_variable();
  return v && v->kind == Variable::Kind::kAxis && v->id == axis;
}

// Derives the kind of a node from how its formula reads its operands.
class Reading {
 public:
  Reading(const Graph& graph, const Node& node) : graph_(graph), node_(node) {}

  OpPattern kind() {
    OpPattern combined = OpPattern::kElemwise;
    for (std::uint32_t o = 0; o < node_.output_count; ++o) combined = kind_of_path(combined, kind_of_result(o));
    return combined;
  }

 private:
  OpPattern kind_of_result(std::uint32_t output) {
    const TensorType& type = graph_.tensor(node_.first_output + output);
    ExprPool pool(graph_.symbols);
    std::vector<IndexExpr> index;
    axes_.clear();
    for (const Dim& dim : type.shape) {
      count_step();
      axes_.push_back(pool.new_axis(dim));
      index.push_back(IndexExpr::axis(axes_.back()));
    }
    const ExprId root = build_formula(pool, graph_, node_, output, index);
    const std::vector<ExprId> order = reachable(pool, std::span(&root, 1));
    const bool reduces =
        std::any_of(order.begin(), order.end(), [&](ExprId id) { return pool[id].op == ExprOp::kReduce; });
    return reduces ? kind_of_reduction(pool, root, order) : kind_of_map(pool, order);
  }

  OpPattern kind_of_map(const ExprPool& pool, const std::vector<ExprId>& order) const {
    OpPattern combined = OpPattern::kElemwise;
    bool has_elemwise = false;
    for (const ExprId id : order) {
      count_step();
      const ExprNode& n = pool[id];
      if (n.op != ExprOp::kLoad) continue;
      const OpPattern kind = kind_of_load(n);
      has_elemwise |= kind == OpPattern::kElemwise;
      combined = kind_of_path(combined, kind);
    }
    // a[i, j] + b[j] is elementwise, since one operand is indexed as the result is.
    return combined == OpPattern::kBroadcast && has_elemwise ? OpPattern::kElemwise : combined;
  }

  OpPattern kind_of_load(const ExprNode& load) const {
    const Shape& shape = graph_.tensor(load.source).shape;
    auto constant_of_one = [&](std::size_t d) { return load.indices[d].is(0) && shape[d].is(1); };
    if (load.indices.size() == axes_.size()) {
      bool same = true;
      for (std::size_t d = 0; d < axes_.size(); ++d) {
        count_step();
        const bool both_one = constant_of_one(d) && graph_.tensor(node_.first_output).shape[d].is(1);
        same = same && (is_axis(load.indices[d], axes_[d]) || both_one);
      }
      if (same) return OpPattern::kElemwise;
    }
    std::size_t next = 0;
    bool in_order = true;
    for (std::size_t d = 0; d < load.indices.size() && in_order; ++d) {
      count_step();
      if (constant_of_one(d)) continue;
      while (next < axes_.size() && !is_axis(load.indices[d], axes_[next])) ++next;
      in_order = next++ < axes_.size();
    }
    return in_order ? OpPattern::kBroadcast : OpPattern::kInjective;
  }

  OpPattern kind_of_reduction(const ExprPool& pool, ExprId root, const std::vector<ExprId>& order) const {
    ExprId top = root;
    while (pool[top].op == ExprOp::kConvert || pool[top].op == ExprOp::kRound) top = pool[top].args[0];
    const ExprNode& n = pool[top];
    if (n.op != ExprOp::kReduce || n.reduction == Reduction::kArgMax || n.reduction == Reduction::kArgMin)
      return OpPattern::kOutEwiseFusable;
    std::size_t reductions = 0, loads = 0, reused = 0;
    bool plain = true;
    for (const ExprId id : order) {
      count_step();
      const ExprNode& inner = pool[id];
      reductions += inner.op == ExprOp::kReduce;
      if (inner.op != ExprOp::kLoad) continue;
      ++loads;
      reused += leaves_out_an_axis(inner);
      for (const IndexExpr& e : inner.indices) plain = plain && (e.is_constant() || e.as_variable());
    }
    if (reductions > 1 || !plain) return OpPattern::kOutEwiseFusable;
    // A matrix product: each operand is read for many results.
    return loads > 1 && reused == loads ? OpPattern::kOutEwiseFusable : OpPattern::kCommReduce;
  }

  bool leaves_out_an_axis(const ExprNode& load) const {
    return std::any_of(axes_.begin(), axes_.end(), [&](std::uint32_t axis) {
      return std::none_of(load.indices.begin(), load.indices.end(), [&](const IndexExpr& e) {
        return mentions(e, {Variable::Kind::kAxis, axis});
      });
    });
  }

  const Graph& graph_;
  const Node& node_;
  std::vector<std::uint32_t> axes_;
};

bool has_symbols(const Graph& graph, ValueId v) {
  const Shape& shape = graph.tensor(v).shape;
  return std::any_of(shape.begin(), shape.end(), [](const Dim& dim) { return !dim.is_constant(); });
}

// Returns whether K is 1: each element of this matrix product is a single multiplication.
bool has_single_products(const Graph& graph, const Node& node) {
  const Shape& left = graph.tensor(node.inputs[node.op->name == "addmm" ? 1 : 0]).shape;
  return !left.empty() && left.back().is(1);
}

// Returns TVM's kind where it differs from the formula's. tests/corpus/partition/tvm_op_patterns.json lists the cases.
std::optional<OpPattern> tvm_exception(const Graph& graph, const Node& node) {
  const std::string& op = node.op->name;
  if (op == "reshape" || op == "flatten")  // TVM cannot analyze a symbolic flat index
    return has_symbols(graph, node.inputs[0]) || has_symbols(graph, node.first_output) ? OpPattern::kOpaque
                                                                                       : OpPattern::kInjective;
  for (const std::string_view opaque : {"embedding", "index_select", "gather", "select", "addcmul"})
    if (op == opaque) return OpPattern::kOpaque;
  if (op == "batch_norm") return OpPattern::kInjective;
  if (op == "mean") return OpPattern::kOutEwiseFusable;  // TVM sees a division after the sum, even of a single element
  for (const std::string_view product : {"matmul", "bmm", "linear", "addmm"})
    if (op == product && has_single_products(graph, node)) {
      // TVM keeps the loop over K = 1, which the formula does not have.
      const bool of_vector = graph.tensor(node.inputs[0]).rank() == 1 || graph.tensor(node.inputs[1]).rank() == 1;
      return of_vector && op == "matmul" ? OpPattern::kCommReduce : OpPattern::kOutEwiseFusable;
    }
  if (op == "adaptive_avg_pool2d") {  // window sizes depend on the position unless there is one window
    const Shape& out = graph.tensor(node.first_output).shape;
    const bool one = out.size() >= 2 && out[out.size() - 1].is(1) && out[out.size() - 2].is(1);
    return one ? OpPattern::kOutEwiseFusable : OpPattern::kOpaque;
  }
  return std::nullopt;
}

bool is_convolution(const std::string& op) {
  return op.starts_with("conv");
}

// All that the kind of a node depends on. Nodes with equal signatures have the same kind.
struct KindSignature {
  const OpDef* op;
  std::uint32_t attributes;
  std::vector<std::uint32_t> types;
  bool operator==(const KindSignature&) const = default;
};

struct KindSignatureHash {
  std::size_t operator()(const KindSignature& s) const {
    std::size_t h = reinterpret_cast<std::uintptr_t>(s.op) >> 4;
    auto mix = [&](std::size_t v) { h = (h ^ v) * 0x9e3779b97f4a7c15ull; };
    mix(s.attributes);
    for (const std::uint32_t t : s.types) mix(t);
    return h ^ (h >> 32);
  }
};

void require_not_below(const Graph& graph, const Node& node, OpPattern derived) {
  if (node.op->custom || *node.pattern >= derived) return;
  throw Error(
      ErrorKind::kInput,
      {.file = graph.file,
       .pointer = fmt::format("/nodes/{}/pattern", node.file_position),
       .what = fmt::format("the pattern kind of node \"{}\" is below that of its op {}", node.name, node.op->name),
       .found = fmt::format("\"{}\"", name(*node.pattern)),
       .expected = fmt::format("\"{}\" or a later one of elemwise, broadcast, injective, comm_reduce, "
                               "out_ewise_fusable, tuple, opaque",
                               name(derived))});
}

}  // namespace

OpPattern derived_pattern(const Graph& graph, const Node& node, PatternSource source) {
  const OpDef& op = *node.op;
  if (op.name == "get_item") return OpPattern::kInjective;
  if (op.pattern) return *op.pattern;
  if (!op.formula) return OpPattern::kOpaque;
  if (source == PatternSource::kTvm)
    if (const auto kind = tvm_exception(graph, node)) return *kind;
  if (is_convolution(op.name)) return OpPattern::kOutEwiseFusable;
  return Reading(graph, node).kind();
}

void require_allowed_kinds(const Graph& graph, PatternSource source) {
  for (const Node& node : graph.nodes)
    if (node.pattern && !node.op->custom) require_not_below(graph, node, derived_pattern(graph, node, source));
}

std::vector<OpPattern> annotate(const Graph& graph, PatternSource source) {
  std::vector<OpPattern> kinds;
  kinds.reserve(graph.nodes.size());
  std::unordered_map<KindSignature, OpPattern, KindSignatureHash> known;
  KindSignature signature;
  for (const Node& node : graph.nodes) {
    count_step();
    if (node.pattern && node.op->custom) {
      kinds.push_back(*node.pattern);
      continue;
    }
    signature.op = node.op;
    signature.attributes = node.attributes;
    signature.types.clear();
    for (const ValueId v : node.inputs)
      signature.types.push_back(v == kNone ? kNone
                                           : graph.value(v).type * 2 + (graph.value(v).kind == Value::Kind::kNumber));
    signature.types.push_back(node.output_count);
    for (std::uint32_t o = 0; o < node.output_count; ++o)
      signature.types.push_back(graph.value(node.first_output + o).type);
    auto it = known.find(signature);
    if (it == known.end()) it = known.emplace(signature, derived_pattern(graph, node, source)).first;
    if (node.pattern) require_not_below(graph, node, it->second);
    kinds.push_back(node.pattern.value_or(it->second));
  }
  return kinds;
}

bool is_product(const Node& node) {
  return node.op->family == "matrix" || node.op->family == "quantized";
}

}  // namespace fusec
