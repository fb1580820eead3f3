#include "schedule/movement/word_copy.h"

#include <algorithm>
#include <bit>
#include <set>

#include "analysis/kernel/copy_expr.h"
#include "analysis/kernel/loads.h"
#include "ir/float_formats.h"
#include "ir/type.h"
#include "schedule/movement/bitcast_copy.h"

namespace fusec {
namespace {

DType word_of(int word_bits) {
  return word_bits == 8    ? DType::kUInt8
         : word_bits == 16 ? DType::kUInt16
         : word_bits == 32 ? DType::kUInt32
                           : DType::kUInt64;
}

// e / each, where that is a polynomial as e is one.
std::optional<IndexExpr> exact_quotient(const IndexExpr& e, std::int64_t each, const Bounds& bounds) {
  const IndexExpr quotient = simplify(floor_div(e, each), bounds);
  return quotient * each == e ? std::optional(quotient) : std::nullopt;
}

// Q where e is each * Q + part, for every value of the axis `part` below `each`: as a sum, or as a remainder of one.
std::optional<IndexExpr> without_part(const IndexExpr& e, std::uint32_t part, std::int64_t each, const Bounds& bounds) {
  const Variable variable{Variable::Kind::kAxis, part};
  for (const IndexTerm& term : e.terms()) {
    const IndexExpr here = from_terms({term}, 0);
    if (!mentions(here, variable)) continue;
    if (term.coefficient != 1 || term.factors.size() != 1) return std::nullopt;
    const auto others = exact_quotient(e - here, each, bounds);
    if (!others || mentions(*others, variable)) return std::nullopt;
    const IndexAtom& atom = *term.factors[0];
    if (atom.kind == IndexAtom::Kind::kVariable) return others;
    if (atom.kind != IndexAtom::Kind::kMod) return std::nullopt;
    const auto a = without_part(atom.a, part, each, bounds), b = exact_quotient(atom.b, each, bounds);
    if (!a || !b || mentions(*b, variable)) return std::nullopt;
    return simplify(*others + floor_mod(*a, *b), bounds);
  }
  return std::nullopt;
}

// The tensor as words: of its last dimension, or, `flat`, of all it has; nothing where that is no whole number of them.
std::optional<TensorType> in_words(const TensorType& type, int each, bool flat) {
  Shape shape = type.shape;
  if (flat) {
    const auto count = element_count(shape);
    if (!count) return std::nullopt;
    shape = {*count};
  }
  if (shape.empty() || !shape.back().is_constant()) return std::nullopt;
  const auto words = exact_quotient(shape.back(), each, {});
  if (!words) return std::nullopt;
  shape.back() = *words;
  return TensorType{.dtype = word_of(bits(type.dtype) * each), .shape = std::move(shape)};
}

// A constant of the dtype, `each` times.
std::int64_t repeated(const ExprNode& constant, DType dtype, int each) {
  const int size = bits(dtype);
  std::uint64_t element = static_cast<std::uint64_t>(constant.integer);
  if (is_float(constant.type))
    element = dtype == DType::kFloat32 ? std::bit_cast<std::uint32_t>(static_cast<float>(constant.real))
                                       : encode_float(dtype, constant.real);
  element &= (std::uint64_t{1} << size) - 1;
  std::uint64_t word = 0;
  for (int i = 0; i < each; ++i) word |= element << (i * size);
  return static_cast<std::int64_t>(word);
}

// Rewrites one kernel for one number of elements to a word.
class CopyWidener {
 public:
  CopyWidener(const Kernel& kernel, const Graph& graph, int each) : original_(kernel), graph_(graph), each_(each) {}

  std::optional<WordCopy> run() {
    if (!split() || !find_places()) return std::nullopt;
    WordCopy words{.kernel = Kernel(), .graph = Graph(graph_.table()), .values = {}};
    words.graph.name = graph_.name;
    words.graph.symbols = graph_.symbols;
    words.kernel = change_axes(parted_, [&](ExprPool& pool, ExprCopier& copier) {
      copier.rewritten = [&](ExprId id, const ExprCopier::Copied& copied) {
        return rewritten(id, pool, copier, copied, words);
      };
      AxisChange change = same_axes(parted_, pool);
      change.new_axes.pop_back();
      change.values.back() = 0;
      axes_ = change.values;
      return change;
    });
    words.kernel.nodes.clear();
    for (std::size_t i = 0; i < words.kernel.outputs.size(); ++i) {
      KernelOutput& output = words.kernel.outputs[i];
      output.type = *in_words(output.type, each_, true);
      output.value = value_in(words, output.value, output.type);
      output.index = {on_new_axes(output_places_[i], words.kernel.pool.bounds())};
    }
    return words;
  }

 private:
  // The last axis as words and a word's elements.
  bool split() {
    const std::vector<std::uint32_t>& axes = original_.outputs.at(0).axes;
    const IndexExpr words = simplify(floor_div(original_.pool.extent(axes.back()), each_), original_.pool.bounds());
    if (words * each_ != original_.pool.extent(axes.back())) return false;
    parted_ = change_axes(original_, [&](ExprPool& pool) {
      AxisChange change;
      for (const std::uint32_t axis : axes) {
        const bool last = axis == axes.back();
        change.new_axes.push_back(pool.new_axis(last ? words : original_.pool.extent(axis)));
        change.values.push_back(IndexExpr::axis(change.new_axes.back()));
      }
      change.new_axes.push_back(pool.new_axis(each_));
      change.values.back() = change.values.back() * each_ + IndexExpr::axis(change.new_axes.back());
      return change;
    });
    parted_.named.clear();
    part_ = parted_.outputs[0].axes.back();
    return true;
  }

  // Where words lie; false where something asks for a word's elements apart.
  bool find_places() {
    const auto copied_nodes = find_copied(parted_);
    if (!copied_nodes) return false;
    copied_nodes_ = *copied_nodes;
    const Bounds& bounds = parted_.pool.bounds();
    const auto depends = dependences(parted_.pool);
    const auto by_part = [&](ExprId id) { return std::ranges::binary_search(depends[id], part_); };
    places_.resize(parted_.pool.size());
    for (const ExprId id : reachable(parted_.pool, roots_of(parted_))) {
      const ExprNode& n = parted_.pool[id];
      if (copied_nodes_[id] && n.op == ExprOp::kLoad) {
        if (bits(graph_.tensor(n.source).dtype) != bits(n.dtype)) return false;
        if (!by_dimensions(n)) flat_.insert(n.source);
      } else if (!copied_nodes_[id] && by_part(id) && n.op != ExprOp::kIndex && !is_comparison_of_words(n)) {
        const bool of_words = std::ranges::all_of(n.args, [&](ExprId arg) {
          return arg == kNoExpr || !by_part(arg) || parted_.pool[arg].op != ExprOp::kIndex;
        });
        if (!of_words || n.op == ExprOp::kLoad) return false;
      }
    }
    for (ExprId id = 0; id < copied_nodes_.size(); ++id)
      if (copied_nodes_[id] && parted_.pool[id].op == ExprOp::kLoad && !find_place(id)) return false;
    for (const KernelOutput& output : parted_.outputs) {
      const auto place =
          without_part(simplify(flat_index(output.type.shape, output.index), bounds), part_, each_, bounds);
      if (!place || !in_words(output.type, each_, true) || parted_.pool[output.expr].op == ExprOp::kConstant)
        return false;
      output_places_.push_back(*place);
    }
    return true;
  }

  // A load's index of words, where only that of the last dimension says which of a word's elements it is.
  std::optional<std::vector<IndexExpr>> by_dimensions(const ExprNode& load) const {
    if (!in_words(graph_.tensor(load.source), each_, false)) return std::nullopt;
    std::vector<IndexExpr> indices = load.indices;
    for (std::size_t d = 0; d + 1 < indices.size(); ++d)
      if (mentions(indices[d], {Variable::Kind::kAxis, part_})) return std::nullopt;
    const auto last = without_part(indices.back(), part_, each_, parted_.pool.bounds());
    if (!last) return std::nullopt;
    indices.back() = *last;
    return indices;
  }
  bool find_place(ExprId id) {
    const ExprNode& n = parted_.pool[id];
    if (!flat_.contains(n.source)) {
      places_[id] = *by_dimensions(n);
      return true;
    }
    const auto place = without_part(position_of(graph_, parted_.pool, id), part_, each_, parted_.pool.bounds());
    if (!place || !in_words(graph_.tensor(n.source), each_, true)) return false;
    places_[id] = {*place};
    return true;
  }

  // What a comparison holds to be no less than 0.
  std::optional<IndexExpr> compared(const ExprNode& n) const {
    if (n.op != ExprOp::kLt && n.op != ExprOp::kGe) return std::nullopt;
    const auto whole = [&](ExprId id) -> std::optional<IndexExpr> {
      const ExprNode& side = parted_.pool[id];
      if (side.op == ExprOp::kIndex) return side.indices[0];
      if (side.op == ExprOp::kConstant && side.type == ScalarType::kInt64) return IndexExpr(side.integer);
      return std::nullopt;
    };
    const auto a = whole(n.args[0]), b = whole(n.args[1]);
    if (!a || !b) return std::nullopt;
    return simplify(n.op == ExprOp::kLt ? *b - *a - 1 : *a - *b, parted_.pool.bounds());
  }

  // each * Q, or its negative, with the part above or below: what holds for one of a word's elements holds for all.
  std::optional<IndexExpr> words_compared(const ExprNode& n) const {
    const auto e = compared(n);
    if (!e) return std::nullopt;
    const Bounds& bounds = parted_.pool.bounds();
    if (auto above = without_part(*e, part_, each_, bounds)) return above;
    const auto below = without_part(-1 - *e, part_, each_, bounds);
    return below ? std::optional(simplify(-1 - *below, bounds)) : std::nullopt;
  }
  bool is_comparison_of_words(const ExprNode& n) const { return words_compared(n).has_value(); }

  IndexExpr on_new_axes(const IndexExpr& place, const Bounds& bounds) const {
    const std::vector<std::uint32_t>& old = parted_.outputs[0].axes;
    return simplify(substitute(place,
                               [&](Variable v) -> std::optional<IndexExpr> {
                                 if (v.kind != Variable::Kind::kAxis) return std::nullopt;
                                 const auto at = std::ranges::find(old, v.id);
                                 return axes_[static_cast<std::size_t>(at - old.begin())];
                               }),
                    bounds);
  }

  ExprId rewritten(ExprId id, ExprPool& to, ExprCopier& copier, const ExprCopier::Copied& copied, WordCopy& words) {
    const ExprNode& n = parted_.pool[id];
    if (n.op == ExprOp::kConstant && copied_nodes_[id])
      return to.constant(compute_type(word_of(bits(*copied_nodes_[id]) * each_)),
                         repeated(n, *copied_nodes_[id], each_));
    if (n.op == ExprOp::kLoad) {
      TensorType type = graph_.tensor(n.source);
      std::vector<IndexExpr> indices;
      if (copied_nodes_[id]) {
        type = *in_words(type, each_, flat_.contains(n.source));
        for (const IndexExpr& index : places_[id]) indices.push_back(copier.copy(index));
      } else {
        for (const IndexExpr& index : n.indices) indices.push_back(copier.copy(index));
      }
      const DType dtype = copied_nodes_[id] ? type.dtype : n.dtype;
      return to.load(value_in(words, n.source, type), dtype, std::move(indices),
                     n.args[0] == kNoExpr ? kNoExpr : copied(n.args[0]));
    }
    if (n.op == ExprOp::kLt || n.op == ExprOp::kGe)
      if (const auto whole = words_compared(n)) return to.nonnegative(copier.copy(*whole));
    return kNoExpr;
  }

  // The value of the words' graph that is this one of the model.
  ValueId value_in(WordCopy& words, ValueId value, const TensorType& type) const {
    const auto at = std::ranges::find(words.values, value);
    if (at != words.values.end()) return static_cast<ValueId>(at - words.values.begin());
    words.values.push_back(value);
    return words.graph.add_input(graph_.value(value).name, type);
  }

  const Kernel& original_;
  const Graph& graph_;
  const int each_;
  Kernel parted_;
  std::uint32_t part_ = 0;  // the axis of a word's elements
  CopiedNodes copied_nodes_;
  std::set<ValueId> flat_;                      // tensors that are words in a row
  std::vector<std::vector<IndexExpr>> places_;  // of loads
  std::vector<IndexExpr> output_places_;
  std::vector<IndexExpr> axes_;  // what the parted axes are in the end
};

}  // namespace

std::optional<WordCopy> widen_copies(const Kernel& kernel, const Graph& graph, int widest) {
  if (kernel.outputs.at(0).axes.empty()) return std::nullopt;
  const int size = bits(kernel.outputs[0].type.dtype);
  const auto as_wide = [&](const KernelOutput& output) { return bits(output.type.dtype) == size; };
  if (!std::ranges::all_of(kernel.outputs, as_wide) || !find_copied(kernel)) return std::nullopt;
  for (int each = widest / size; each > 1; each /= 2)
    if (auto words = CopyWidener(kernel, graph, each).run()) return words;
  return std::nullopt;
}

}  // namespace fusec
