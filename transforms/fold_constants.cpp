#include "transforms/fold_constants.h"

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <optional>

#include "analysis/constant_nodes.h"
#include "analysis/evaluate/evaluate_node.h"
#include "ir/constant_data.h"
#include "transforms/exact_node.h"

namespace fusec {
namespace {

constexpr std::int64_t kSmallValue = 4096;           // bytes that any folded value may have
constexpr std::int64_t kMostFoldedBytes = 1 << 20;   // bytes of all folded values beyond the model's own data
constexpr std::int64_t kMostStepsOfNode = 1 << 22;   // scalar operations a node: hundredths of a second
constexpr std::int64_t kMostStepsOfModel = 1 << 25;  // scalar operations a model: tenths of a second

// A value that is known at compile time.
struct Known {
  std::shared_ptr<const HostTensor> tensor;
  std::int64_t data_bytes = 0;  // bytes of the largest constant it is made of
  ValueId same = kNone;         // an operand that equals this tensor
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
      : graph_(graph), exact_only_(exact_only), place_(graph.value_count(), kNone), written_(graph.value_count()) {
    for (const Alias& alias : graph.aliases) written_[alias.output] = true;
    for (const Constant& constant : graph.constants)
      if (constant.data) data_bytes_ += bytes_of(constant.value);
  }

  // By node: whether it is folded.
  std::vector<bool> run() {
    std::vector<bool> folded(graph_.nodes.size(), false);
    for (NodeId n = 0; n < folded.size(); ++n) folded[n] = fold(graph_.nodes[n]);
    return folded;
  }

  const HostTensor& value(ValueId v) const { return *find(v)->tensor; }

  // The earliest value that equals this tensor and from which it was made by identities; else v itself.
  ValueId origin(ValueId v) const { return !find(v) || find(v)->same == kNone ? v : find(v)->same; }

 private:
  std::int64_t bytes_of(ValueId v) const {
    constexpr std::int64_t kBeyondAll = std::int64_t{1} << 40;
    const TensorType& type = graph_.tensor(v);
    return packed_bytes(type.dtype, std::min(kBeyondAll, element_count(type.shape)->constant_term()));
  }

  const Known* find(ValueId v) const { return place_[v] == kNone ? nullptr : &known_[place_[v]]; }
  const Known& keep(ValueId v, Known known) {
    place_[v] = static_cast<std::uint32_t>(known_.size());
    return known_.emplace_back(std::move(known));
  }

  // The known value of v, nullptr if there is none. Reads a constant's data when a node first needs it.
  const Known* known(ValueId v) {
    if (const Known* found = find(v)) return found;
    const Constant* constant = graph_.constant_of(v);
    if (!constant || !constant->data) return nullptr;
    const TensorType& type = graph_.tensor(v);
    auto tensor = std::make_shared<HostTensor>(type.dtype, concrete_shape(type.shape, {}));
    tensor->bytes = constant_bytes(*constant->data, type.dtype);
    return &keep(v, {std::move(tensor), bytes_of(v)});
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
        return place_[v] != kNone;
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
    if (made > kMostFoldedBytes + data_bytes_ - made_) return false;
    std::int64_t steps = std::min(kMostStepsOfNode, steps_left_);
    const std::int64_t before = steps;
    std::optional<std::vector<HostTensor>> results = evaluate_node_within(
        steps, graph_, node, {}, [&](ValueId v) -> const HostTensor& { return *known(v)->tensor; });
    steps_left_ -= before - steps;
    if (!results) return false;
    made_ += made;
    for (std::uint32_t o = 0; o < node.output_count; ++o) {
      const ValueId same = operand_like(node, (*results)[o]);
      keep(node.first_output + o, {std::make_shared<HostTensor>(std::move((*results)[o])), data_bytes, same});
    }
    return true;
  }

  ValueId operand_like(const Node& node, const HostTensor& result) const {
    for (const ValueId v : node.inputs)
      if (const Known* known = v == kNone ? nullptr : find(v); known && *known->tensor == result) return origin(v);
    return kNone;
  }

  std::int64_t known_data_bytes(ValueId v) const { return graph_.constant_of(v) ? bytes_of(v) : find(v)->data_bytes; }

  const Graph& graph_;
  bool exact_only_;
  LargeVector<std::uint32_t> place_;  // by value: index into known_, or kNone
  std::deque<Known> known_;
  std::vector<bool> written_;  // by value: written into an input's buffer
  std::int64_t data_bytes_ = 0, made_ = 0;
  std::int64_t steps_left_ = kMostStepsOfModel;
};

// Makes a constant of each folded value that a remaining node reads. An output gets a constant under its own name.
class ConstantReplacing {
 public:
  ConstantReplacing(Graph& graph, const Folding& folding, const std::vector<bool>& folded)
      : graph_(graph), folding_(folding), folded_(folded), constant_of_(graph.value_count(), kNone) {}

  // Removes the folded nodes. Returns the fate of each node.
  std::vector<NodeId> run() {
    for (const ValueId v : graph_.outputs)
      if (is_folded(v) && constant_of_[v] == kNone) make(v);
    for (std::size_t i = 0; i < graph_.outputs.size(); ++i) need(graph_.outputs[i], {kNone, i});
    std::vector<NodeId> fates(folded_.size(), kFolded), order;
    for (NodeId n = 0; n < fates.size(); ++n) {
      if (folded_[n]) continue;
      fates[n] = static_cast<NodeId>(order.size());
      order.push_back(n);
      Node& node = graph_.nodes[n];
      for (std::size_t i = 0; i < node.inputs.size(); ++i) node.inputs[i] = need(node.inputs[i], {fates[n], i});
    }
    const std::vector<bool> all(graph_.constants.size(), true);
    graph_.rearrange(order, all);
    std::vector<ValueId> added;
    for (Made& made : made_) {
      added.push_back(graph_.add_constant(std::move(made.name), std::move(made.type)));
      graph_.constants.back().data = std::move(made.data);
    }
    for (const auto& [place, made] : readers_)
      (place.node == kNone ? graph_.outputs[place.operand] : graph_.nodes[place.node].inputs[place.operand]) =
          added[made];
    return fates;
  }

 private:
  struct Place {  // operand `operand` of a node of the new graph; the graph output of that number if `node` is kNone
    NodeId node;
    std::size_t operand;
  };
  struct Made {  // a constant to add after the folded nodes are removed, which frees its name
    std::string name;
    TensorType type;
    std::shared_ptr<const std::vector<Scalar>> data;
  };
  using Key = std::pair<TypeId, std::vector<std::byte>>;

  bool is_folded(ValueId v) const {
    return v != kNone && graph_.value(v).kind == Value::Kind::kResult && folded_[graph_.value(v).producer];
  }
  Key key_of(ValueId v) const { return {graph_.value(v).type, folding_.value(v).bytes}; }

  void make(ValueId v) {
    constant_of_[v] = static_cast<std::uint32_t>(made_.size());
    made_.push_back({graph_.value(v).name, graph_.tensor(v),
                     std::make_shared<const std::vector<Scalar>>(constant_data(folding_.value(v)))});
    equal_.emplace(key_of(v), constant_of_[v]);
  }

  // Returns the operand that replaces v: v itself, another value that equals it, or kNone until the constant is added.
  ValueId need(ValueId v, Place place) {
    if (!is_folded(v)) return v;
    if (constant_of_[v] == kNone) {
      const ValueId origin = folding_.origin(v);
      if (!is_folded(origin)) return origin;
      if (constant_of_[origin] == kNone) {
        if (const auto equal = equal_.find(key_of(v)); equal != equal_.end())
          constant_of_[v] = equal->second;
        else
          make(origin);
      }
      if (constant_of_[v] == kNone) constant_of_[v] = constant_of_[origin];
    }
    readers_.emplace_back(place, constant_of_[v]);
    return kNone;
  }

  Graph& graph_;
  const Folding& folding_;
  const std::vector<bool>& folded_;
  std::vector<std::uint32_t> constant_of_;  // by value: index into made_, or kNone
  std::vector<Made> made_;
  std::vector<std::pair<Place, std::uint32_t>> readers_;  // operands, and the entry of made_ that each reads
  std::map<Key, std::uint32_t> equal_;
};

void fold(CanonicalGraph& canonical, bool exact_only) {
  Folding folding(canonical.graph, exact_only);
  const std::vector<bool> folded = folding.run();
  if (std::find(folded.begin(), folded.end(), true) == folded.end()) return;
  note_fates(canonical, ConstantReplacing(canonical.graph, folding, folded).run());
}

}  // namespace

void fold_constants(CanonicalGraph& canonical) {
  fold(canonical, false);
}

void fold_exact_constants(CanonicalGraph& canonical) {
  fold(canonical, true);
}

}  // namespace fusec
