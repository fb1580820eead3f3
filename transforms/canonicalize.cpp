#include "transforms/canonicalize.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <unordered_map>

#include "ir/expr.h"

namespace fusec {
namespace {

struct KeyHash {
  std::size_t operator()(const std::vector<std::uint64_t>& key) const {
    std::size_t h = key.size();
    for (const std::uint64_t v : key) h = (h ^ v) * 0x9e3779b97f4a7c15ull + (h >> 29);
    return h;
  }
};
using Key = std::vector<std::uint64_t>;

// The nodes that outputs need, operands before their users: by depth from the outputs, so that the order follows from
// the wiring alone and not from where a node stands in the file.
std::vector<NodeId> structural_order(const Graph& graph) {
  std::vector<NodeId> order;
  std::vector<std::uint8_t> visited(graph.nodes.size(), 0);
  struct Frame {
    NodeId node;
    std::uint32_t next_operand;
  };
  std::vector<Frame> stack;
  auto visit = [&](ValueId v) {
    if (v == kNone || graph.value(v).producer == kNone || visited[graph.value(v).producer]) return;
    visited[graph.value(v).producer] = 1;
    stack.push_back({graph.value(v).producer, 0});
  };
  for (const ValueId output : graph.outputs) {
    visit(output);
    while (!stack.empty()) {
      const NodeId n = stack.back().node;
      const auto& operands = graph.nodes[n].inputs;
      if (stack.back().next_operand < operands.size()) {
        visit(operands[stack.back().next_operand++]);
      } else {
        order.push_back(n);
        stack.pop_back();
      }
    }
  }
  return order;
}

class Canonicalizer {
 public:
  explicit Canonicalizer(const Graph& graph)
      : from_(graph), map_(graph.value_count(), kNone), is_output_(graph.value_count(), false) {
    result_.graph = graph.emptied();
  }

  CanonicalGraph run() {
    for (const ValueId v : from_.outputs) is_output_[v] = true;
    for (const ValueId v : from_.inputs) map_[v] = to().add_input(from_.value(v).name, from_.tensor(v));
    for (const Constant& constant : from_.constants) {
      const ValueId v = to().add_constant(from_.value(constant.value).name, from_.tensor(constant.value));
      map_[constant.value] = v;
      to().constants.back() = constant;
      to().constants.back().value = v;
    }
    std::vector<bool> needed(from_.nodes.size(), false);
    for (const NodeId n : structural_order(from_)) {
      needed[n] = true;
      const Node& node = from_.nodes[n];
      if (!remove_identity(node) && !merge_duplicate(node)) keep(node);
    }
    for (NodeId n = 0; n < from_.nodes.size(); ++n)
      if (!needed[n]) result_.dropped.push_back(from_.nodes[n].name);
    for (const ValueId v : from_.outputs) to().outputs.push_back(map_[v]);
    for (const Alias& alias : from_.aliases) to().aliases.push_back({map_[alias.output], map_[alias.input]});
    return std::move(result_);
  }

 private:
  Graph& to() { return result_.graph; }

  bool has_output(const Node& node) const {
    for (std::uint32_t o = 0; o < node.output_count; ++o)
      if (is_output_[node.first_output + o]) return true;
    return false;
  }

  // May the node go, its users taking another value?
  bool replaceable(const Node& node) const {
    return node.fuse && !node.pattern && node.op->special == Special::kNone && !has_output(node);
  }

  // What the node's formula depends on: numbers by their values, operands by their types.
  Key signature(const Node& node) const {
    Key key{reinterpret_cast<std::uintptr_t>(node.op), node.attributes};
    for (const ValueId v : node.inputs) {
      if (v == kNone) {
        key.push_back(kNone);
        continue;
      }
      key.push_back(from_.value(v).type);
      if (from_.value(v).kind == Value::Kind::kNumber) {
        const Scalar& s = from_.number(v);
        std::uint64_t bits;
        static_assert(sizeof bits == sizeof s.real);
        __builtin_memcpy(&bits, &s.real, sizeof bits);
        key.insert(key.end(), {std::uint64_t{1} << 40, static_cast<std::uint64_t>(s.category),
                               static_cast<std::uint64_t>(s.integer), bits});
      }
    }
    key.push_back(from_.value(node.first_output).type);
    return key;
  }

  // The operand that the node hands on unchanged, element for element: its formula is a plain load of it.
  std::size_t identity_operand(const Node& node) {
    constexpr std::size_t kNo = SIZE_MAX;
    if (node.output_count != 1 || !node.op->formula) return kNo;
    const TypeId type = from_.value(node.first_output).type;
    bool candidate = false;
    for (const ValueId v : node.inputs) candidate = candidate || (v != kNone && from_.value(v).type == type);
    if (!candidate) return kNo;
    const auto [it, fresh] = identities_.emplace(signature(node), kNo);
    if (!fresh) return it->second;
    ExprPool pool(from_.symbols);
    std::vector<IndexExpr> index;
    for (const Dim& dim : from_.tensor(node.first_output).shape) {
      if (dim.is(0)) return kNo;  // nothing is loaded from an empty tensor
      index.push_back(IndexExpr::axis(pool.new_axis(dim)));
    }
    const ExprNode& root = pool[build_formula(pool, from_, node, 0, index)];
    if (root.op != ExprOp::kLoad || root.args[0] != kNoExpr) return kNo;
    for (std::size_t d = 0; d < index.size(); ++d) {
      const bool one = root.indices.size() == index.size() && root.indices[d].is(0) && pool.bounds().axes[d].is(1);
      if (root.indices.size() != index.size() || (root.indices[d] != index[d] && !one)) return kNo;
    }
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      if (node.inputs[i] == root.source && from_.value(node.inputs[i]).type == type) return it->second = i;
    return kNo;
  }

  bool remove_identity(const Node& node) {
    if (!replaceable(node)) return false;
    const std::size_t i = identity_operand(node);
    if (i == SIZE_MAX) return false;
    const ValueId operand = map_[node.inputs[i]];
    const NodeId producer = to().value(operand).producer;
    map_[node.first_output] = operand;
    if (producer != kNone) {
      result_.stands_for[producer].push_back(node.name);
    } else {
      // An input by another name, which no group computes: told of with the first node that reads it.
      std::vector<std::string> names = waiting_names(node);
      names.push_back(node.name);
      waiting_names_.emplace(node.first_output, std::move(names));
    }
    return true;
  }

  // Names of removed nodes that stand with this node, the first to read their values.
  std::vector<std::string> waiting_names(const Node& node) {
    std::vector<std::string> names;
    if (waiting_names_.empty()) return names;
    for (const ValueId v : node.inputs)
      if (auto entry = waiting_names_.extract(v)) std::ranges::move(entry.mapped(), std::back_inserter(names));
    return names;
  }

  ValueId mapped(ValueId v) {
    if (v == kNone || map_[v] != kNone) return v == kNone ? kNone : map_[v];
    // Equal numbers are one value, so that duplicates are seen.
    if (from_.value(v).kind == Value::Kind::kNumber) {
      const Scalar& s = from_.number(v);
      std::uint64_t bits;
      __builtin_memcpy(&bits, &s.real, sizeof bits);
      const auto [it, fresh] = numbers_.emplace(std::tuple{s.category, s.integer, bits}, kNone);
      if (fresh) it->second = to().add_number(s);
      return map_[v] = it->second;
    }
    return map_[v] = to().add_dim(from_.dim(v));
  }

  bool merge_duplicate(const Node& node) {
    Key key{reinterpret_cast<std::uintptr_t>(node.op), node.attributes};
    for (const ValueId v : node.inputs) key.push_back(mapped(v));
    if (!replaceable(node) || !node.op->deterministic) return false;
    key.push_back(from_.value(node.first_output).type);
    const auto [it, fresh] = computed_.emplace(std::move(key), static_cast<NodeId>(to().nodes.size()));
    if (fresh) return false;
    const NodeId same = it->second;
    for (std::uint32_t o = 0; o < node.output_count; ++o)
      map_[node.first_output + o] = to().nodes[same].first_output + o;
    std::ranges::move(waiting_names(node), std::back_inserter(result_.stands_for[same]));
    result_.stands_for[same].push_back(node.name);
    return true;
  }

  void keep(const Node& node) {
    Node copy = node;
    for (ValueId& v : copy.inputs) v = mapped(v);
    std::vector<std::string> names;
    for (std::uint32_t o = 0; o < node.output_count; ++o) names.push_back(from_.value(node.first_output + o).name);
    const NodeId n = to().add_node(std::move(copy), from_.result_types(node), std::move(names));
    for (std::uint32_t o = 0; o < node.output_count; ++o) map_[node.first_output + o] = to().nodes[n].first_output + o;
    result_.stands_for.push_back(waiting_names(node));
    result_.stands_for.back().push_back(node.name);
  }

  const Graph& from_;
  CanonicalGraph result_;
  std::vector<ValueId> map_;  // of each old value: the new one
  std::vector<bool> is_output_;
  std::unordered_map<ValueId, std::vector<std::string>> waiting_names_;  // by the old value
  std::unordered_map<Key, std::size_t, KeyHash> identities_;
  std::unordered_map<Key, NodeId, KeyHash> computed_;
  std::map<std::tuple<Category, std::int64_t, std::uint64_t>, ValueId> numbers_;
};

}  // namespace

CanonicalGraph canonicalize(const Graph& graph) {
  return Canonicalizer(graph).run();
}

}  // namespace fusec
