#include "transforms/simplify_algebra.h"

#include <bit>
#include <map>
#include <tuple>
#include <unordered_map>

#include "ir/budget.h"
#include "ir/expr.h"
#include "ir/formula.h"
#include "ir/hash.h"
#include "ir/large_vector.h"
#include "transforms/remove_dead.h"
#include "transforms/rule_matcher.h"

namespace fusec {
namespace {

// Most rewrites of one node. No rule makes a node larger and no rule reverses another, so this is never reached.
constexpr int kMostRewrites = 16;

using Key = std::vector<std::uint64_t>;
struct KeyHash {
  std::size_t operator()(const Key& key) const {
    std::size_t h = key.size();
    for (const std::uint64_t v : key) h = hash_mix(h, v);
    return h;
  }
};

// Finds nodes by what they compute: op, attributes, operands and type. An open-addressing hash table with linear
// probing and room for twice the nodes.
class ComputedNodes {
 public:
  explicit ComputedNodes(const Graph& graph) : graph_(graph), slots_(std::bit_ceil(2 * graph.nodes.size() + 1)) {}

  // The slot where a later lookup of node n will probably begin, for prefetching: in a large graph the cache miss
  // dominates. (The caller prefetches, because GCC removes a function that only does that.)
  const void* likely_place(NodeId n, const std::vector<ValueId>& now) const {
    const Node& node = graph_.nodes[n];
    std::uint64_t h = begin_hash(node);
    for (const ValueId v : node.inputs) h = mixed(h, v == kNone ? v : now[v]);
    return &slots_[finished(h) & (slots_.size() - 1)];
  }

  // Returns an earlier node that computes the same; else adds n and returns it.
  NodeId find_or_add(NodeId n) {
    const Node& node = graph_.nodes[n];
    const std::uint64_t hash = hash_of(node);
    const auto tag = static_cast<std::uint32_t>(hash >> 32);
    std::size_t at = hash & (slots_.size() - 1);
    while (slots_[at].node != kNone && !(slots_[at].tag == tag && same(graph_.nodes[slots_[at].node], node)))
      at = (at + 1) & (slots_.size() - 1);
    if (slots_[at].node == kNone) slots_[at] = {n, tag};
    return slots_[at].node;
  }

 private:
  // Mixes all bits, because the operands of nodes in a long chain differ by little.
  static std::uint64_t hash_of(const Node& node) {
    std::uint64_t h = begin_hash(node);
    for (const ValueId v : node.inputs) h = mixed(h, v);
    return finished(h);
  }
  static std::uint64_t begin_hash(const Node& node) {
    return node.attributes ^ reinterpret_cast<std::uintptr_t>(node.op);
  }
  static std::uint64_t mixed(std::uint64_t h, ValueId v) {
    h = (h ^ v) * 0xff51afd7ed558ccdull;
    return h ^ h >> 32;
  }
  static std::uint64_t finished(std::uint64_t h) {
    h *= 0xc4ceb9fe1a85ec53ull;
    return h ^ h >> 29;
  }
  bool same(const Node& a, const Node& b) const {
    return a.op == b.op && a.attributes == b.attributes && a.inputs == b.inputs &&
           graph_.value(a.first_output).type == graph_.value(b.first_output).type;
  }

  struct Slot {
    NodeId node = kNone;
    std::uint32_t tag = 0;  // high bits of the node's hash: most other nodes differ, and need not be loaded
  };
  const Graph& graph_;
  LargeVector<Slot> slots_;
};

// Works in place: a replaced node stays in the graph without readers until remove_dead removes it.
class Simplification {
 public:
  explicit Simplification(CanonicalGraph& canonical)
      : graph_(canonical.graph), heirs_(canonical.heirs), now_(graph_.value_count(), kNone), computed_(graph_) {
    for (ValueId v = 0; v < now_.size(); ++v) now_[v] = v;
    heirs_.assign(graph_.nodes.size(), kNone);
    is_output_.assign(graph_.value_count(), false);
    for (const ValueId v : graph_.outputs) is_output_[v] = true;
  }

  void run() {
    merge_numbers();
    constexpr NodeId kAhead = 8;
    const auto count = static_cast<NodeId>(graph_.nodes.size());
    for (NodeId n = 0; n < count; ++n) {
      count_step();
      if (n + kAhead < count) __builtin_prefetch(computed_.likely_place(n + kAhead, now_));
      simplify(n);
    }
  }

 private:
  using NumberKey = std::tuple<Category, std::int64_t, std::uint64_t>;
  static NumberKey key_of(const Scalar& s) { return {s.category, s.integer, std::bit_cast<std::uint64_t>(s.real)}; }

  // Makes equal numbers one value, so that duplicate nodes have equal operands.
  void merge_numbers() {
    std::map<NumberKey, ValueId> first;
    for (ValueId v = 0; v < now_.size(); ++v)
      if (graph_.value(v).kind == Value::Kind::kNumber)
        now_[v] = first.emplace(key_of(graph_.number(v)), v).first->second;
  }

  bool has_output(const Node& node) const {
    for (std::uint32_t o = 0; o < node.output_count; ++o)
      if (is_output_[node.first_output + o]) return true;
    return false;
  }

  void simplify(NodeId n) {
    Node& node = graph_.nodes[n];
    for (ValueId& v : node.inputs) {
      count_step();
      if (v == kNone) continue;
      if (!homeless_.empty()) take_in(n, v);
      v = now_[v];
    }
    if (node.op->special == Special::kTuple && look_through_tuple(n)) return;
    const bool free = node.fuse && !node.pattern && !node.op->custom && node.op->special == Special::kNone;
    const bool keep_node = !free || has_output(node);
    if (!keep_node && remove_identity(n)) return;
    if (free && node.output_count == 1 && apply_rules(n, keep_node)) return;
    if (free) become_stack(n);
    if (!keep_node) merge_duplicate(n);
  }

  // Rewrites reshape(concat(a, b, c, dim=1), shape=[n, 3, d]) to stack(a, b, c, dim=1) if nothing else reads the
  // concat.
  void become_stack(NodeId n) {
    Node& node = graph_.nodes[n];
    const NodeId producer = node.op->view && node.inputs.size() == 1 ? graph_.value(node.inputs[0]).producer : kNone;
    if (producer == kNone) return;
    const Node& concat = graph_.nodes[producer];
    if (concat.op->name != "concat" || concat.op->custom || !concat.fuse || concat.pattern) return;
    const Shape &seen = graph_.tensor(node.first_output).shape, &whole = graph_.tensor(concat.first_output).shape;
    const auto named = graph_.attributes(concat).integer("dim", 0);
    const auto dim = static_cast<std::size_t>(named < 0 ? named + static_cast<std::int64_t>(whole.size()) : named);
    if (seen.size() != whole.size() + 1 || seen[dim] != Dim(static_cast<std::int64_t>(concat.inputs.size()))) return;
    const TypeId piece = graph_.value(concat.inputs[0]).type;
    for (const ValueId v : concat.inputs)
      if (graph_.value(v).type != piece) return;
    Shape stacked = graph_.tensor(concat.inputs[0]).shape;
    stacked.insert(stacked.begin() + static_cast<std::ptrdiff_t>(dim), seen[dim]);
    if (stacked != seen || graph_.tensor(concat.inputs[0]).dtype != graph_.tensor(node.first_output).dtype) return;
    if (has_output(concat) || readers_of(concat.first_output) > 1) return;
    Attributes attributes;
    attributes.set("dim", static_cast<std::int64_t>(dim));
    node.op = graph_.op("stack");
    node.inputs = concat.inputs;
    node.attributes = graph_.intern(attributes);
    if (heirs_[producer] == kNone) heirs_[producer] = n;
  }

  // The number of readers of v, as of the first call.
  std::uint32_t readers_of(ValueId v) {
    if (readers_.empty()) {
      readers_.assign(graph_.value_count(), 0);
      for (const Node& node : graph_.nodes)
        for (const ValueId read : node.inputs)
          if (read != kNone) ++readers_[now_[read]];
    }
    return readers_[v];
  }

  // get_item(tuple(a, b), 1) is b.
  bool look_through_tuple(NodeId n) {
    const Node& node = graph_.nodes[n];
    if (node.op->name != "get_item" || !node.fuse || has_output(node)) return false;
    const NodeId tuple = graph_.value(node.inputs[0]).producer;
    if (tuple == kNone || graph_.nodes[tuple].op->name != "tuple" || !graph_.nodes[tuple].fuse) return false;
    const ShortList<ValueId, 4>& fields = graph_.nodes[tuple].inputs;
    const std::int64_t i = graph_.attributes(node).integer("index");
    const ValueId field = fields[static_cast<std::size_t>(i < 0 ? i + std::int64_t{fields.size()} : i)];
    if (graph_.value(field).type != graph_.value(node.first_output).type) return false;
    if (heirs_[tuple] == kNone) heirs_[tuple] = n;
    replace(n, field);
    return true;
  }

  // Replaces the node's results by values from `value` on. The node's origins go to the producer of `value`; if that is
  // an input or a node with "fuse": false, they go to the first node that reads the value.
  void replace(NodeId n, ValueId value) {
    const Node& node = graph_.nodes[n];
    for (std::uint32_t o = 0; o < node.output_count; ++o) now_[node.first_output + o] = value + o;
    const NodeId producer = graph_.value(value).producer;
    if (producer != kNone && graph_.nodes[producer].fuse)
      heirs_[n] = producer;
    else
      homeless_.emplace(node.first_output, n);
  }

  void take_in(NodeId reader, ValueId read) {
    const auto it = homeless_.find(read);
    if (it == homeless_.end() || !graph_.nodes[reader].fuse) return;
    heirs_[it->second] = reader;
    homeless_.erase(it);
  }

  // Returns true if an existing value replaced the node. Otherwise the node may have become another node.
  bool apply_rules(NodeId n, bool keep_node) {
    const ValueId result = graph_.nodes[n].first_output;
    if (graph_.type(result).is_tuple) return false;
    for (int step = 0; step < kMostRewrites; ++step) {
      count_step();
      std::optional<Replacement> replacement =
          matcher_.apply(graph_, graph_.nodes[n], graph_.tensor(result), keep_node);
      if (!replacement) return false;
      for (const NodeId inner : replacement->looked_through)
        if (heirs_[inner] == kNone) heirs_[inner] = n;
      if (replacement->value != kNone) {
        replace(n, replacement->value);
        return true;
      }
      graph_.nodes[n] = std::move(replacement->node);
      if (!keep_node && remove_identity(n)) return true;
    }
    return false;
  }

  // A key of all that the node's formula depends on: values of numbers, types of operands, and which operands are the
  // same value (where(c, x, x) is x, where(c, x, y) is not).
  const Key& signature(const Node& node, TypeId result) {
    Key& key = signature_;
    key.assign({reinterpret_cast<std::uintptr_t>(node.op), node.attributes});
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      count_step();
      const ValueId v = node.inputs[i];
      if (v == kNone) {
        key.push_back(kNone);
        continue;
      }
      key.push_back(graph_.value(v).type);
      if (operand_at_.size() <= v) operand_at_.resize(graph_.value_count(), kNone);
      if (operand_at_[v] != kNone)
        key.push_back(std::uint64_t{1} << 41 | operand_at_[v]);
      else
        operand_at_[v] = static_cast<std::uint32_t>(i);
      if (graph_.value(v).kind == Value::Kind::kNumber) {
        const Scalar& s = graph_.number(v);
        key.insert(key.end(), {std::uint64_t{1} << 40, static_cast<std::uint64_t>(s.category),
                               static_cast<std::uint64_t>(s.integer), std::bit_cast<std::uint64_t>(s.real)});
      }
    }
    for (const ValueId v : node.inputs)
      if (v != kNone) operand_at_[v] = kNone;
    key.push_back(result);
    return key;
  }

  std::size_t first_of_type(const Node& node, TypeId type) const {
    std::size_t i = 0;
    while (node.inputs[i] == kNone || graph_.value(node.inputs[i]).type != type) ++i;
    return i;
  }

  // The position of the operand that the node returns unchanged, SIZE_MAX for none. The formula of such a node only
  // loads that operand at the result's own index.
  std::size_t identity_operand(const Node& node, TypeId type) {
    constexpr std::size_t kNo = SIZE_MAX;
    if (!node.op->formula) return kNo;
    bool candidate = false;
    for (const ValueId v : node.inputs) candidate = candidate || (v != kNone && graph_.value(v).type == type);
    if (!candidate) return kNo;
    const Key& key = signature(node, type);
    if (const auto known = identities_.find(key); known != identities_.end()) return known->second;
    const auto it = identities_.emplace(key, kNo).first;
    ExprPool pool(graph_.symbols);
    std::vector<IndexExpr> index;
    const std::vector<ValueType> results{graph_.type_by_id(type)};
    for (const Dim& dim : results[0].tensor.shape) {
      count_step();
      if (dim.is(0)) return it->second = first_of_type(node, type);  // empty tensors of one type are the same
      index.push_back(IndexExpr::axis(pool.new_axis(dim)));
    }
    const std::vector<Operand> operands = graph_.operands(node);
    Formula formula(pool, operands, graph_.attributes(node), results);
    const ExprNode& root = pool[node.op->formula(formula, 0, index)];
    if (root.op != ExprOp::kLoad || root.args[0] != kNoExpr) return kNo;
    for (std::size_t d = 0; d < index.size(); ++d) {
      count_step();
      const bool one = root.indices.size() == index.size() && root.indices[d].is(0) && pool.bounds().axes[d].is(1);
      if (root.indices.size() != index.size() || (root.indices[d] != index[d] && !one)) return kNo;
    }
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      if (node.inputs[i] == root.source && graph_.value(node.inputs[i]).type == type) return it->second = i;
    return kNo;
  }

  bool remove_identity(NodeId n) {
    const Node& node = graph_.nodes[n];
    if (node.output_count != 1) return false;
    const std::size_t i = identity_operand(node, graph_.value(node.first_output).type);
    if (i == SIZE_MAX) return false;
    replace(n, node.inputs[i]);
    return true;
  }

  void merge_duplicate(NodeId n) {
    const Node& node = graph_.nodes[n];
    if (!node.op->deterministic) return;
    const NodeId same = computed_.find_or_add(n);
    if (same != n) replace(n, graph_.nodes[same].first_output);
  }

  Graph& graph_;
  std::vector<NodeId>& heirs_;
  std::vector<ValueId> now_;  // by value: the value that replaces it
  std::vector<bool> is_output_;
  std::vector<std::uint32_t> readers_;  // by value; made at the first call of readers_of
  RuleMatcher matcher_;
  std::unordered_map<Key, std::size_t, KeyHash> identities_;
  Key signature_;
  std::vector<std::uint32_t> operand_at_;  // by value: its first position among the current node's operands, or kNone
  ComputedNodes computed_;
  std::unordered_map<ValueId, NodeId> homeless_;  // by result: replaced nodes that have no heir yet
};

}  // namespace

void simplify_algebra(CanonicalGraph& canonical) {
  Simplification(canonical).run();
  remove_dead(canonical);
}

}  // namespace fusec
