#include "transforms/simplify_algebra.h"

#include <bit>

#include "ir/expr.h"
#include "ir/formula.h"
#include "ir/hash.h"
#include "transforms/graph_copy.h"
#include "transforms/remove_dead.h"
#include "transforms/rule_matcher.h"

namespace fusec {
namespace {

// No rule makes a node larger, and none is the other's way back: this many follow one another at most.
constexpr int kMostRewrites = 16;

using Key = std::vector<std::uint64_t>;
struct KeyHash {
  std::size_t operator()(const Key& key) const {
    std::size_t h = key.size();
    for (const std::uint64_t v : key) h = hash_mix(h, v);
    return h;
  }
};

class Simplification {
 public:
  explicit Simplification(CanonicalGraph& canonical)
      : canonical_(canonical),
        from_(canonical.graph),
        copy_(from_),
        is_output_(from_.value_count(), false),
        fates_(from_.nodes.size(), kDropped) {}

  void run() {
    for (const ValueId v : from_.outputs) is_output_[v] = true;
    for (NodeId n = 0; n < from_.nodes.size(); ++n) simplify(n);
    find_homes();
    std::unordered_map<NodeId, NodeId> looked_through;
    for (const auto& [inner, outer] : looked_through_)
      if (fates_[outer] != kDropped && fates_[outer] != inner) looked_through[inner] = fates_[outer];
    replace_graph(canonical_, std::move(copy_).finish(), fates_);
    canonical_.looked_through = std::move(looked_through);
  }

 private:
  Graph& to() { return copy_.graph(); }

  bool has_output(const Node& node) const {
    for (std::uint32_t o = 0; o < node.output_count; ++o)
      if (is_output_[node.first_output + o]) return true;
    return false;
  }

  void simplify(NodeId n) {
    const Node& old = from_.nodes[n];
    Node node = copy_.with_new_operands(old);
    const bool free = old.fuse && !old.pattern && !old.op->custom && old.op->special == Special::kNone;
    const bool keep_node = !free || has_output(old);
    if (free && old.output_count == 1 && apply_rules(n, node, keep_node)) return;
    if (!keep_node && (remove_identity(old, node) || merge_duplicate(old, node))) return;
    fates_[n] = copy_.add(std::move(node), old);
  }

  // True where a value that is there already takes the node's place; else the node may have become another.
  bool apply_rules(NodeId n, Node& node, bool keep_node) {
    const Node& old = from_.nodes[n];
    const ValueType& type = from_.type(old.first_output);
    if (type.is_tuple) return false;
    for (int step = 0; step < kMostRewrites; ++step) {
      std::optional<Replacement> replacement = matcher_.apply(to(), node, type.tensor, keep_node);
      if (!replacement) return false;
      for (const NodeId inner : replacement->looked_through) looked_through_.emplace(inner, n);
      if (replacement->value != kNone) {
        copy_.replace(old.first_output, replacement->value);
        return true;
      }
      node = std::move(replacement->node);
    }
    return false;
  }

  // What the node's formula depends on: numbers by their values, operands by their types.
  Key signature(const Node& node, TypeId result) const {
    const Graph& graph = copy_.graph();
    Key key{reinterpret_cast<std::uintptr_t>(node.op), node.attributes};
    for (const ValueId v : node.inputs) {
      if (v == kNone) {
        key.push_back(kNone);
        continue;
      }
      key.push_back(graph.value(v).type);
      if (graph.value(v).kind == Value::Kind::kNumber) {
        const Scalar& s = graph.number(v);
        key.insert(key.end(), {std::uint64_t{1} << 40, static_cast<std::uint64_t>(s.category),
                               static_cast<std::uint64_t>(s.integer), std::bit_cast<std::uint64_t>(s.real)});
      }
    }
    key.push_back(result);
    return key;
  }

  // The operand that the node hands on unchanged, element for element: its formula is a plain load of it.
  std::size_t identity_operand(const Node& node, TypeId type) {
    constexpr std::size_t kNo = SIZE_MAX;
    if (!node.op->formula) return kNo;
    bool candidate = false;
    for (const ValueId v : node.inputs) candidate = candidate || (v != kNone && to().value(v).type == type);
    if (!candidate) return kNo;
    const auto [it, fresh] = identities_.emplace(signature(node, type), kNo);
    if (!fresh) return it->second;
    ExprPool pool(to().symbols);
    std::vector<IndexExpr> index;
    const std::vector<ValueType> results{to().type_by_id(type)};
    for (const Dim& dim : results[0].tensor.shape) {
      if (dim.is(0)) return kNo;  // nothing is loaded from an empty tensor
      index.push_back(IndexExpr::axis(pool.new_axis(dim)));
    }
    const std::vector<Operand> operands = to().operands(node);
    Formula formula(pool, operands, to().attributes(node), results);
    const ExprNode& root = pool[node.op->formula(formula, 0, index)];
    if (root.op != ExprOp::kLoad || root.args[0] != kNoExpr) return kNo;
    for (std::size_t d = 0; d < index.size(); ++d) {
      const bool one = root.indices.size() == index.size() && root.indices[d].is(0) && pool.bounds().axes[d].is(1);
      if (root.indices.size() != index.size() || (root.indices[d] != index[d] && !one)) return kNo;
    }
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      if (node.inputs[i] == root.source && to().value(node.inputs[i]).type == type) return it->second = i;
    return kNo;
  }

  bool remove_identity(const Node& old, const Node& node) {
    if (old.output_count != 1) return false;
    const std::size_t i = identity_operand(node, from_.value(old.first_output).type);
    if (i == SIZE_MAX) return false;
    copy_.replace(old.first_output, node.inputs[i]);
    return true;
  }

  bool merge_duplicate(const Node& old, const Node& node) {
    if (!node.op->deterministic) return false;
    Key key{reinterpret_cast<std::uintptr_t>(node.op), node.attributes};
    key.insert(key.end(), node.inputs.begin(), node.inputs.end());
    key.push_back(from_.value(old.first_output).type);
    const auto [it, fresh] = computed_.emplace(std::move(key), static_cast<NodeId>(to().nodes.size()));
    if (fresh) return false;
    const Node& same = to().nodes[it->second];
    for (std::uint32_t o = 0; o < old.output_count; ++o) copy_.replace(old.first_output + o, same.first_output + o);
    return true;
  }

  // Where the nodes that went are at home: with the node that now has their value; where that is an input or stands
  // apart, with the first node that reads it. From the last to the first, since the readers' homes must be known.
  void find_homes() {
    const Uses uses = uses_of(from_);
    for (NodeId n = static_cast<NodeId>(from_.nodes.size()); n-- > 0;) {
      if (fates_[n] != kDropped) continue;
      const Node& old = from_.nodes[n];
      const NodeId producer = to().value(copy_.now(old.first_output)).producer;
      if (producer != kNone && to().nodes[producer].fuse) {
        fates_[n] = producer;
        continue;
      }
      for (const NodeId user : uses.of(old.first_output)) {
        if (fates_[user] == kDropped || !to().nodes[fates_[user]].fuse) continue;
        fates_[n] = fates_[user];
        break;
      }
    }
  }

  CanonicalGraph& canonical_;
  const Graph& from_;
  GraphCopy copy_;
  std::vector<bool> is_output_;
  std::vector<NodeId> fates_;
  RuleMatcher matcher_;
  std::unordered_map<Key, std::size_t, KeyHash> identities_;
  std::unordered_map<Key, NodeId, KeyHash> computed_;
  std::unordered_map<NodeId, NodeId> looked_through_;  // a new node: the first old one whose rule found it
};

}  // namespace

void simplify_algebra(CanonicalGraph& canonical) {
  Simplification(canonical).run();
  remove_dead(canonical);
}

}  // namespace fusec
