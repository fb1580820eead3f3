#include "transforms/sink_split.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <optional>

#include "ir/budget.h"
#include "ir/infer.h"
#include "transforms/remove_dead.h"

namespace fusec {
namespace {

// Positions start, start + step, ... of one dimension of a tensor.
struct SlicePiece {
  ValueId whole = kNone;
  std::int64_t dim = 0, step = 1;
  Dim start;
};

bool is_split(const Node& node) {
  return node.op->name == "split" || node.op->name == "chunk";
}
bool is_piece(const Node& node) {
  return is_split(node) || node.op->name == "slice" || node.op->name == "select";
}

// Whether the graph has any piece; most large models have none. Caches ops that are no pieces, because comparing names
// is slow.
bool has_pieces(const Graph& graph) {
  constexpr std::size_t kPlaces = 64;
  std::array<const OpDef*, kPlaces> others{};
  for (const Node& node : graph.nodes) {
    count_step();
    const OpDef*& other = others[std::bit_cast<std::uintptr_t>(node.op) / alignof(OpDef) % kPlaces];
    if (node.op == other) continue;
    if (is_piece(node)) return true;
    other = node.op;
  }
  return false;
}

class Sinking {
 public:
  explicit Sinking(CanonicalGraph& canonical)
      : canonical_(canonical), graph_(canonical.graph), now_(graph_.value_count()) {
    for (ValueId v = 0; v < now_.size(); ++v) now_[v] = v;
    is_output_.assign(graph_.value_count(), false);
    for (const ValueId v : graph_.outputs) is_output_[v] = true;
  }

  // Visits nodes in topological order and appends new nodes at the end. Returns whether anything changed.
  bool run() {
    const NodeId count = static_cast<NodeId>(graph_.nodes.size());
    canonical_.heirs.assign(count, kNone);
    bool changed = false;
    for (NodeId n = 0; n < count; ++n)
      if (graph_.nodes[n].op->name == "select" && may_change(graph_.nodes[n]))
        changed = look_through_view(n) || changed;
    find_trees();
    if (trees_ == 0) return changed;
    for (NodeId n = 0; n < count; ++n) {
      count_step();
      for (ValueId& v : graph_.nodes[n].inputs)
        if (v != kNone) v = now_[v];
      if (!in_tree_[n]) continue;
      if (is_split(graph_.nodes[n]))
        take_apart(n);
      else
        compose(n);
    }
    canonical_.heirs.resize(graph_.nodes.size(), kNone);
    canonical_.stands_for.resize(graph_.nodes.size());
    return true;
  }

 private:
  bool may_change(const Node& node) const { return is_piece(node) && node.fuse && !node.pattern; }

  std::int64_t dim_of(const Node& node) const {
    const auto rank = static_cast<std::int64_t>(graph_.tensor(node.inputs[0]).rank());
    const std::int64_t dim = graph_.attributes(node).integer("dim", 0);
    return dim < 0 ? dim + rank : dim;
  }

  // Turns a select on one half of a dimension that a reshape split in two into a slice, contiguous or with a step:
  // select(reshape(x, [n, 2, 8]), dim=1, index=1) is slice(x, dim=1, start=8, end=16).
  bool look_through_view(NodeId n) {
    Node& node = graph_.nodes[n];
    const NodeId producer = graph_.value(node.inputs[0]).producer;
    if (producer == kNone) return false;
    const Node& view = graph_.nodes[producer];
    if (!view.op->view || view.op->special != Special::kNone || !view.fuse || view.pattern) return false;
    const Shape &seen = graph_.tensor(node.inputs[0]).shape, &whole = graph_.tensor(view.inputs[0]).shape;
    const auto selected = static_cast<std::size_t>(dim_of(node));
    const std::optional<Dim> index = select_index(node);
    const auto at = index ? index->as_constant() : std::nullopt;
    if (!at || seen.size() != whole.size() + 1) return false;
    for (const std::size_t first : {selected, selected - 1}) {  // the outer half is selected, or the inner
      if (first >= whole.size() || !is_split_in_two(whole, seen, first)) continue;
      const auto outer = seen[first].as_constant(), inner = seen[first + 1].as_constant();
      if (!outer || !inner || *outer < 2 || *inner < 2) continue;
      const bool neighbours = first == selected;
      const SlicePiece piece{.whole = view.inputs[0],
                             .dim = static_cast<std::int64_t>(first),
                             .step = neighbours ? 1 : *inner,
                             .start = Dim(neighbours ? *at * *inner : *at)};
      const auto attributes = slice_attributes(piece, Dim(neighbours ? *inner : *outer));
      const OpDef* slice = graph_.op("slice");
      if (!attributes || !gives(*slice, piece.whole, *attributes, graph_.type(node.first_output))) continue;
      node.op = slice;
      node.inputs[0] = piece.whole;
      node.attributes = graph_.intern(*attributes);
      canonical_.heirs[producer] = n;
      return true;
    }
    return false;
  }

  static bool is_split_in_two(const Shape& whole, const Shape& seen, std::size_t dim) {
    for (std::size_t d = 0; d < whole.size(); ++d)
      if (d != dim && whole[d] != seen[d < dim ? d : d + 1]) return false;
    return whole[dim] == seen[dim] * seen[dim + 1];
  }

  // Marks pieces that are cut from another piece along the same dimension, and the pieces that they are cut from.
  void find_trees() {
    in_tree_.assign(graph_.nodes.size(), false);
    for (NodeId n = 0; n < graph_.nodes.size(); ++n) {
      count_step();
      const Node& node = graph_.nodes[n];
      if (!may_change(node) || node.inputs.empty() || node.inputs[0] == kNone) continue;
      const NodeId from = graph_.value(node.inputs[0]).producer;
      if (from == kNone || !may_change(graph_.nodes[from]) || graph_.nodes[from].op->name == "select") continue;
      if (dim_of(node) != dim_of(graph_.nodes[from])) continue;
      trees_ += 1;
      in_tree_[n] = in_tree_[from] = true;
    }
  }

  std::optional<Dim> start_of_slice(const Node& node) const {
    const Attributes& attributes = graph_.attributes(node);
    const Dim start = attributes.dim("start").value_or(Dim(0));
    const Dim& size = graph_.tensor(node.inputs[0]).shape[static_cast<std::size_t>(dim_of(node))];
    const Dim& length = graph_.tensor(node.first_output).shape[static_cast<std::size_t>(dim_of(node))];
    const auto known = start.as_constant(), extent = size.as_constant();
    if (known && *known == 0) return start;
    if (known && extent) return Dim(std::clamp<std::int64_t>(*known < 0 ? *known + *extent : *known, 0, *extent));
    // With symbols the start is known only if the slice clamps nothing.
    const auto end = attributes.dim("end");
    if (attributes.integer("step", 1) != 1) return std::nullopt;
    if (end && length == *end - start) return start;
    if (length == size - start) return start;
    if (known && *known < 0 && length == Dim(-*known)) return size - length;
    return std::nullopt;
  }

  // v as a slice, if a split, a chunk or a slice at a known start makes it.
  std::optional<SlicePiece> piece_of(ValueId v) const {
    const NodeId producer = graph_.value(v).producer;
    if (producer == kNone || !may_change(graph_.nodes[producer])) return std::nullopt;
    const Node& node = graph_.nodes[producer];
    SlicePiece piece{.whole = node.inputs[0], .dim = dim_of(node)};
    if (is_split(node)) {
      for (ValueId before = node.first_output; before < v; ++before)
        piece.start = piece.start + graph_.tensor(before).shape[static_cast<std::size_t>(piece.dim)];
      return piece;
    }
    if (node.op->name != "slice") return std::nullopt;
    const std::optional<Dim> start = start_of_slice(node);
    if (!start) return std::nullopt;
    piece.start = *start;
    piece.step = graph_.attributes(node).integer("step", 1);
    return piece;
  }

  // Composes the piece with the pieces that it is cut from, as long as they are along the same dimension.
  SlicePiece sunk(SlicePiece piece) const {
    while (const std::optional<SlicePiece> outer = piece_of(piece.whole)) {
      count_step();
      if (outer->dim != piece.dim) break;
      piece = {.whole = outer->whole,
               .dim = piece.dim,
               .step = piece.step * outer->step,
               .start = outer->start + Dim(outer->step) * piece.start};
    }
    return piece;
  }

  std::optional<Attributes> slice_attributes(const SlicePiece& piece, const Dim& length) const {
    Attributes attributes;
    attributes.set("dim", piece.dim);
    attributes.set("start", piece.start);
    const auto known = length.as_constant();
    if (piece.step == 1)
      attributes.set("end", piece.start + length);
    else if (known && *known > 0)
      attributes.set("end", piece.start + Dim(piece.step * (*known - 1) + 1));
    else
      return std::nullopt;
    attributes.set("step", piece.step);
    return attributes;
  }

  bool gives(const OpDef& op, ValueId whole, const Attributes& attributes, const ValueType& wanted) const {
    std::vector<LaunchCheck> checks;
    try {
      return infer_types(graph_, op, std::span(&whole, 1), attributes, {}, "", &checks) ==
                 std::vector<ValueType>{wanted} &&
             checks.empty();
    } catch (const OpError&) {
      return false;
    }
  }

  // Makes a slice of each result of a split.
  void take_apart(NodeId n) {
    const Node node = graph_.nodes[n];
    for (ValueId v = node.first_output; v < node.first_output + node.output_count; ++v)
      if (is_output_[v]) return;
    const OpDef* slice = graph_.op("slice");
    for (ValueId v = node.first_output; v < node.first_output + node.output_count; ++v) {
      count_step();
      const SlicePiece piece = sunk(*piece_of(v));
      const auto attributes = slice_attributes(piece, graph_.tensor(v).shape[static_cast<std::size_t>(piece.dim)]);
      if (!attributes || !gives(*slice, piece.whole, *attributes, graph_.type(v))) continue;
      Node made;
      made.name = free_name(graph_.value(v).name);
      made.op = slice;
      made.inputs.push_back(piece.whole);
      made.attributes = graph_.intern(*attributes);
      made.file_position = node.file_position;
      const std::string name = made.name;
      const NodeId added = graph_.add_node(std::move(made), {graph_.type(v)}, {name});
      now_[v] = graph_.nodes[added].first_output;
      canonical_.heirs.resize(graph_.nodes.size(), kNone);
      canonical_.stands_for.resize(graph_.nodes.size());
      if (canonical_.heirs[n] == kNone)
        canonical_.heirs[n] = added;
      else
        canonical_.stands_for.copy(n, added);
      inherit(node.inputs[0], added);
    }
  }

  // Changes a slice or select in place.
  void compose(NodeId n) {
    Node& node = graph_.nodes[n];
    const ValueId before = node.inputs[0];
    const bool is_select = node.op->name == "select";
    const std::optional<Dim> start = is_select ? select_index(node) : start_of_slice(node);
    if (!start) return;
    const SlicePiece own{.whole = before,
                         .dim = dim_of(node),
                         .step = is_select ? 1 : graph_.attributes(node).integer("step", 1),
                         .start = *start};
    const SlicePiece piece = sunk(own);
    if (piece.whole == before) return;
    std::optional<Attributes> attributes;
    if (is_select) {
      attributes.emplace();
      attributes->set("dim", piece.dim);
      attributes->set("index", piece.start);
    } else {
      attributes = slice_attributes(piece, graph_.tensor(node.first_output).shape[static_cast<std::size_t>(piece.dim)]);
    }
    if (!attributes || !gives(*node.op, piece.whole, *attributes, graph_.type(node.first_output))) return;
    node.inputs[0] = piece.whole;
    node.attributes = graph_.intern(*attributes);
    inherit(before, n);
  }

  std::optional<Dim> select_index(const Node& node) const {
    const Dim index = graph_.attributes(node).dim("index").value_or(Dim(0));
    const auto known = index.as_constant();
    if (known && *known < 0) return graph_.tensor(node.inputs[0]).shape[static_cast<std::size_t>(dim_of(node))] + index;
    return known ? std::optional(index) : std::nullopt;
  }

  // `heir` no longer reads v. Makes it the heir of v's producer, if that has none.
  void inherit(ValueId v, NodeId heir) {
    const NodeId producer = graph_.value(v).producer;
    if (producer != kNone && producer != heir && canonical_.heirs[producer] == kNone) canonical_.heirs[producer] = heir;
  }

  std::string free_name(const std::string& wanted) const {
    for (int i = 0;; ++i) {
      count_step();
      std::string candidate = i == 0 ? wanted + ".piece" : fmt::format("{}.piece{}", wanted, i);
      if (graph_.find_node(candidate) == kNone && graph_.find_value(candidate) == kNone) return candidate;
    }
  }

  CanonicalGraph& canonical_;
  Graph& graph_;
  std::vector<ValueId> now_;     // by value of the original graph: the value that replaces it
  std::vector<bool> is_output_;  // by value of the original graph
  std::vector<bool> in_tree_;    // by node
  std::size_t trees_ = 0;
};

}  // namespace

void sink_split(CanonicalGraph& canonical) {
  if (has_pieces(canonical.graph) && Sinking(canonical).run())
    remove_dead(canonical);
  else
    canonical.heirs.clear();
}

}  // namespace fusec
