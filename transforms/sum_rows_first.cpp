#include "transforms/sum_rows_first.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/infer.h"
#include "ir/ops/common.h"
#include "transforms/remove_dead.h"

namespace fusec {
namespace {

bool is_elementwise(const Node& node) {
  return node.op->family == "unary" || node.op->family == "binary" || node.op->family == "ternary";
}

class SumRowsFirst {
 public:
  explicit SumRowsFirst(CanonicalGraph& canonical)
      : canonical_(canonical),
        graph_(canonical.graph),
        uses_(uses_of(graph_)),
        is_output_(graph_.value_count(), false) {
    for (const ValueId v : graph_.outputs) is_output_[v] = true;
  }

  bool run() {
    const auto count = static_cast<NodeId>(graph_.nodes.size());
    bool changed = false;
    for (NodeId n = 0; n < count; ++n) {
      const std::optional<std::vector<std::int64_t>> others = dimensions_beside_rows(n);
      if (!others || !waits_for_rows(graph_.nodes[n].inputs[0])) continue;
      take_apart(n, *others);
      changed = true;
    }
    return changed;
  }

 private:
  // For a sum or mean over the last dimension and others, whose operand nothing else reads: the other dimensions.
  // Nothing for other nodes.
  std::optional<std::vector<std::int64_t>> dimensions_beside_rows(NodeId n) const {
    const Node& node = graph_.nodes[n];
    if ((node.op->name != "sum" && node.op->name != "mean") || !node.fuse || node.pattern) return std::nullopt;
    const ValueId x = node.inputs[0];
    const TensorType& type = graph_.tensor(x);
    if (!is_float(type.dtype) || type.rank() < 2 || uses_.of(x).size() != 1 || is_output_[x]) return std::nullopt;
    std::vector<std::int64_t> others;
    bool rows = false;
    for (const std::size_t d : ops::reduced_dims(graph_.attributes(node), type.rank())) {
      rows = rows || d + 1 == type.rank();
      if (d + 1 < type.rank() && !type.shape[d].is(1)) others.push_back(static_cast<std::int64_t>(d));
    }
    return rows && !others.empty() ? std::optional(others) : std::nullopt;
  }

  // Whether x is made by elementwise ops of a softmax along the last dimension with x's shape.
  bool waits_for_rows(ValueId x) const {
    constexpr std::size_t kMostNodes = 64;
    const Shape& shape = graph_.tensor(x).shape;
    std::vector<NodeId> seen;
    const auto see = [&](ValueId v) {
      const NodeId producer = v == kNone ? kNone : graph_.value(v).producer;
      if (producer != kNone && std::ranges::find(seen, producer) == seen.end()) seen.push_back(producer);
    };
    see(x);
    for (std::size_t i = 0; i < seen.size() && seen.size() < kMostNodes; ++i) {
      const Node& node = graph_.nodes[seen[i]];
      if (!node.fuse || node.pattern || graph_.type(node.first_output).is_tuple) continue;
      const auto rank = static_cast<std::int64_t>(shape.size());
      if (node.op->name == "softmax" || node.op->name == "log_softmax") {
        const std::int64_t dim = graph_.attributes(node).integer("dim");
        if ((dim == -1 || dim == rank - 1) && graph_.tensor(node.first_output).shape == shape) return true;
      } else if (is_elementwise(node)) {
        for (const ValueId v : node.inputs) see(v);
      }
    }
    return false;
  }

  void take_apart(NodeId n, std::vector<std::int64_t> others) {
    const Node node = graph_.nodes[n];
    const ValueId x = node.inputs[0];
    const DType dtype = graph_.tensor(x).dtype;
    const bool keepdim = graph_.attributes(node).flag("keepdim", false);
    // Dimensions of extent 1 are reduced together with the rows.
    std::vector<std::int64_t> rows;
    for (const std::size_t d : ops::reduced_dims(graph_.attributes(node), graph_.tensor(x).rank()))
      if (std::ranges::find(others, static_cast<std::int64_t>(d)) == others.end())
        rows.push_back(static_cast<std::int64_t>(d));
    if (!keepdim)
      for (std::int64_t& d : others) d -= std::ranges::count_if(rows, [d](std::int64_t row) { return row < d; });
    ValueId last = x;
    const bool is_narrow = bits(dtype) < 32;
    if (is_narrow) last = add(n, "cast", last, Attributes({{"dtype", DType::kFloat32}}));
    last = add(n, node.op->name, last, Attributes({{"dim", rows}, {"keepdim", keepdim}}));
    const Attributes rest({{"dim", others}, {"keepdim", keepdim}});
    if (is_narrow) last = add(n, node.op->name, last, rest);
    Node& now = graph_.nodes[n];
    now.inputs[0] = last;
    now.attributes = graph_.intern(is_narrow ? Attributes({{"dtype", dtype}}) : rest);
    if (is_narrow) now.op = graph_.op("cast");
  }

  ValueId add(NodeId n, std::string_view op, ValueId input, const Attributes& attributes) {
    Node made;
    made.op = graph_.op(op);
    made.inputs.push_back(input);
    made.file_position = graph_.nodes[n].file_position;
    std::vector<LaunchCheck> checks;
    const std::vector<ValueType> types = infer_types(graph_, *made.op, made.inputs, attributes, {}, "", &checks);
    made.attributes = graph_.intern(attributes);
    made.name = free_name(graph_.nodes[n].name);
    const std::string name = made.name;
    const NodeId added = graph_.add_node(std::move(made), types, {name});
    canonical_.stands_for.resize(graph_.nodes.size());
    canonical_.stands_for.copy(n, added);
    return graph_.nodes[added].first_output;
  }

  std::string free_name(const std::string& wanted) {
    for (int i = 1;; ++i) {
      std::string candidate = fmt::format("{}.rows{}", wanted, i);
      if (graph_.find_node(candidate) == kNone && graph_.find_value(candidate) == kNone) return candidate;
    }
  }

  CanonicalGraph& canonical_;
  Graph& graph_;
  const Uses uses_;
  std::vector<bool> is_output_;
};

}  // namespace

void sum_rows_first(CanonicalGraph& canonical) {
  const bool changed = SumRowsFirst(canonical).run();
  canonical.heirs.clear();
  if (changed) remove_dead(canonical);
}

}  // namespace fusec
