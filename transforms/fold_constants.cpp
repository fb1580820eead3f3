#include "transforms/fold_constants.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>

#include "analysis/constant_nodes.h"
#include "analysis/evaluate/evaluate_node.h"
#include "ir/constant_data.h"
#include "transforms/exact_node.h"
#include "transforms/graph_copy.h"

namespace fusec {
namespace {

constexpr std::int64_t kSmallValue = 4096;           // bytes that any folded value may have
constexpr std::int64_t kMostGrowth = 1 << 20;        // bytes of all folded values beyond the model's own data
constexpr std::int64_t kMostStepsOfNode = 1 << 22;   // scalar operations: some hundredths of a second
constexpr std::int64_t kMostStepsOfModel = 1 << 25;  // and some tenths

// A value that is known at compile time.
struct Known {
  std::shared_ptr<const HostTensor> tensor;
  std::int64_t data_bytes = 0;  // of the largest constant it is made of
  ValueId same = kNone;         // an operand that is the very same tensor
};

bool may_be_evaluated(const Node& node) {
  if (!node.fuse || node.pattern || node.op->custom || !node.op->deterministic) return false;
  switch (node.op->special) {
    case Special::kNone:
      return static_cast<bool>(node.op->formula);
    case Special::kScan:
    case Special::kSort:
    case Special::kScatter:
      return true;
    default:
      return false;
  }
}

class Folding {
 public:
  Folding(const Graph& graph, bool exact_only)
      : graph_(graph), exact_only_(exact_only), known_(graph.value_count()), written_(graph.value_count()) {
    for (const Alias& alias : graph.aliases) written_[alias.output] = true;
    for (const Constant& constant : graph.constants)
      if (constant.data) data_bytes_ += bytes_of(constant.value);
  }

  // Which nodes are folded.
  std::vector<bool> run() {
    std::vector<bool> folded(graph_.nodes.size(), false);
    for (NodeId n = 0; n < folded.size(); ++n) folded[n] = fold(graph_.nodes[n]);
    return folded;
  }

  const HostTensor& value(ValueId v) const { return *known_[v].tensor; }

  // The value that is this very tensor and from which it came through identities.
  ValueId origin(ValueId v) const { return known_[v].same == kNone ? v : known_[v].same; }

 private:
  std::int64_t bytes_of(ValueId v) const {
    constexpr std::int64_t kBeyondAll = std::int64_t{1} << 40;
    const TensorType& type = graph_.tensor(v);
    return packed_bytes(type.dtype, std::min(kBeyondAll, element_count(type.shape)->constant_term()));
  }

  // Reads the data of constants only when something is made of them.
  const Known* known(ValueId v) {
    if (known_[v].tensor) return &known_[v];
    const Constant* constant = graph_.constant_of(v);
    if (!constant || !constant->data) return nullptr;
    const TensorType& type = graph_.tensor(v);
    auto tensor = std::make_shared<HostTensor>(type.dtype, concrete_shape(type.shape, {}));
    tensor->bytes = constant_bytes(*constant->data, type.dtype);
    known_[v] = {std::move(tensor), bytes_of(v)};
    return &known_[v];
  }

  bool is_known(ValueId v) const {
    switch (graph_.value(v).kind) {
      case Value::Kind::kNumber:
        return true;
      case Value::Kind::kDim:
        return graph_.dim(v).is_constant();
      case Value::Kind::kConstant:
        return graph_.constant_of(v)->data != nullptr;
      default:
        return known_[v].tensor != nullptr;
    }
  }

  bool is_candidate(const Node& node) const {
    if (!may_be_evaluated(node) || has_symbols(graph_.attributes(node))) return false;
    for (const ValueId v : node.inputs)
      if (v != kNone && !is_known(v)) return false;
    for (ValueId v = node.first_output; v < node.first_output + node.output_count; ++v)
      if (written_[v] || graph_.type(v).is_tuple || has_symbols(graph_.tensor(v).shape)) return false;
    return true;
  }

  bool fold(const Node& node) {
    if (!is_candidate(node) || (exact_only_ && !is_exact(graph_, node))) return false;
    std::int64_t data_bytes = 0, made = 0;
    for (const ValueId v : node.inputs)
      if (v != kNone && graph_.value(v).kind != Value::Kind::kNumber && graph_.value(v).kind != Value::Kind::kDim)
        data_bytes = std::max(data_bytes, known_data_bytes(v));
    for (ValueId v = node.first_output; v < node.first_output + node.output_count; ++v) {
      if (bytes_of(v) > std::max(kSmallValue, data_bytes)) return false;
      made += bytes_of(v);
    }
    if (made > kMostGrowth + data_bytes_ - made_) return false;
    std::int64_t steps = std::min(kMostStepsOfNode, steps_left_);
    const std::int64_t before = steps;
    std::optional<std::vector<HostTensor>> results = evaluate_node_within(
        steps, graph_, node, {}, [&](ValueId v) -> const HostTensor& { return *known(v)->tensor; });
    steps_left_ -= before - steps;
    if (!results) return false;
    made_ += made;
    for (std::uint32_t o = 0; o < node.output_count; ++o) {
      const ValueId same = operand_like(node, (*results)[o]);
      known_[node.first_output + o] = {std::make_shared<HostTensor>(std::move((*results)[o])), data_bytes, same};
    }
    return true;
  }

  ValueId operand_like(const Node& node, const HostTensor& result) const {
    for (const ValueId v : node.inputs)
      if (v != kNone && known_[v].tensor && *known_[v].tensor == result) return origin(v);
    return kNone;
  }

  std::int64_t known_data_bytes(ValueId v) const { return graph_.constant_of(v) ? bytes_of(v) : known_[v].data_bytes; }

  const Graph& graph_;
  bool exact_only_;
  std::vector<Known> known_;
  std::vector<bool> written_;  // into an input's buffer
  std::int64_t data_bytes_ = 0, made_ = 0;
  std::int64_t steps_left_ = kMostStepsOfModel;
};

void fold(CanonicalGraph& canonical, bool exact_only) {
  const Graph& from = canonical.graph;
  Folding folding(from, exact_only);
  const std::vector<bool> folded = folding.run();
  if (std::find(folded.begin(), folded.end(), true) == folded.end()) return;
  GraphCopy copy(from);
  // A folded value becomes a constant where something that stays reads it; an output has one under its own name.
  std::map<std::pair<TypeId, std::vector<std::byte>>, ValueId> made;
  const auto is_folded = [&](ValueId v) {
    return v != kNone && from.value(v).kind == Value::Kind::kResult && folded[from.value(v).producer];
  };
  const auto make = [&](ValueId v) {
    const ValueId constant = copy.graph().add_constant(from.value(v).name, from.tensor(v));
    copy.graph().constants.back().data = std::make_shared<const std::vector<Scalar>>(constant_data(folding.value(v)));
    copy.replace(v, constant);
    made.emplace(std::pair{from.value(v).type, folding.value(v).bytes}, constant);
  };
  const auto need = [&](ValueId v) {
    if (!is_folded(v) || copy.has(v)) return;
    const ValueId origin = folding.origin(v);
    const auto equal = made.find({from.value(v).type, folding.value(v).bytes});
    if (copy.has(origin))
      copy.replace(v, copy.now(origin));
    else if (equal != made.end())
      copy.replace(v, equal->second);
    else
      make(origin);
    if (!copy.has(v)) copy.replace(v, copy.now(origin));
  };
  for (const ValueId v : from.outputs)
    if (is_folded(v) && !copy.has(v)) make(v);
  std::vector<NodeId> fates(from.nodes.size(), kFolded);
  for (NodeId n = 0; n < fates.size(); ++n) {
    if (folded[n]) continue;
    for (const ValueId v : from.nodes[n].inputs) need(v);
    fates[n] = copy.keep(from.nodes[n]);
  }
  replace_graph(canonical, std::move(copy).finish(), fates);
}

}  // namespace

void fold_constants(CanonicalGraph& canonical) {
  fold(canonical, false);
}

void fold_exact_constants(CanonicalGraph& canonical) {
  fold(canonical, true);
}

}  // namespace fusec
