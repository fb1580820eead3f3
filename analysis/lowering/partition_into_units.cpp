#include "analysis/lowering/partition_into_units.h"

#include <iterator>
#include <utility>

#include "ir/tuple_field.h"

namespace fusec {
namespace {

constexpr std::size_t kMostOutputs = 8;

class Forming {
 public:
  Forming(const Graph& graph, const std::vector<NodeId>& nodes, const Inlining& inlining, const SharingLimits& limits)
      : graph_(graph), nodes_(nodes), inlining_(inlining), limits_(limits) {}

  std::vector<KernelUnit> run() {
    std::map<ValueId, std::size_t> made_by;
    for (const NodeId n : nodes_) {
      if (!inlining_.wanted(n)) continue;
      const Node& node = graph_.nodes[n];
      if (!node.op->formula && node.op->special != Special::kTuple) {
        KernelUnit unit{.kind = LoweredUnit::Kind::kSpecial, .values = {}, .node = n};
        for (std::uint32_t i = 0; i < node.output_count; ++i) {
          unit.values.push_back(node.first_output + i);
          made_by[node.first_output + i] = units_.size();
        }
        units_.push_back(std::move(unit));
        continue;
      }
      for (std::uint32_t i = 0; i < node.output_count; ++i) {
        const ValueId v = node.first_output + i;
        if (!inlining_.stored(v)) continue;
        if (const std::optional<ValueId> memory = inlining_.alias_of(v)) {
          KernelUnit alias{.kind = LoweredUnit::Kind::kAlias, .values = {v}, .node = n};
          if (made_by.contains(*memory)) {
            made_by[v] = units_.size();
            units_.push_back(std::move(alias));
          } else {
            views_of_inputs_.push_back(std::move(alias));
          }
        } else if (made_in_parts(v)) {
          form_parts(v);
          made_by[v] = units_.size() - 1;
        } else if (node.op->formula) {
          made_by[v] = place(v, made_by);
        }
      }
    }
    if (limits_.try_segments) join_rows_and_segments();
    units_.insert(units_.begin(), std::make_move_iterator(views_of_inputs_.begin()),
                  std::make_move_iterator(views_of_inputs_.end()));
    return std::move(units_);
  }

 private:
  // Joins a kernel of rows with the kernel that reduces segments of these rows, over the space of the segments.
  void join_rows_and_segments() {
    for (std::size_t b = units_.size(); b-- > 0;)
      for (std::size_t a = b; a-- > 0;) {
        if (!are_rows_and_segments(a, b)) continue;
        KernelUnit rows = std::move(units_[a]);
        units_.erase(units_.begin() + static_cast<std::ptrdiff_t>(a));
        join(units_[--b], rows);
      }
  }

  bool have_as_many_elements(ValueId a, ValueId b) const {
    const auto of_a = element_count(graph_.tensor(a).shape), of_b = element_count(graph_.tensor(b).shape);
    return of_a && of_b && simplify(*of_a - *of_b, graph_.bounds()).is(0);
  }

  bool are_rows_and_segments(std::size_t a, std::size_t b) const {
    const auto may_be = [](const KernelUnit& unit) {
      return unit.kind == LoweredUnit::Kind::kKernel && !unit.part && !unit.matmul && !unit.vector_contraction &&
             !unit.nested && !unit.joined;
    };
    const KernelUnit &rows = units_[a], &segments = units_[b];
    if (!may_be(rows) || !may_be(segments) || !segments.reduces) return false;
    if (rows.values.size() + segments.values.size() > kMostOutputs) return false;
    const auto reads_rows = [&](const KernelUnit& unit) {
      return std::ranges::any_of(
          unit.kind == LoweredUnit::Kind::kKernel ? unit.reads : reads_of(unit.values[0], nullptr),
          [&](ValueId v) { return contains(rows, v); });
    };
    if (!reads_rows(segments) || graph_.tensor(rows.space).shape == graph_.tensor(segments.space).shape ||
        !have_as_many_elements(rows.space, segments.space))
      return false;
    for (std::size_t between = a + 1; between < b; ++between)
      if (reads_rows(units_[between])) return false;
    return std::ranges::all_of(rows.values, [&](ValueId v) {
      return have_as_many_elements(v, segments.space) || dims_in_space(graph_, inlining_, v, segments.space);
    });
  }

  void join(KernelUnit& segments, const KernelUnit& rows) const {
    for (const ValueId v : rows.values) {
      if (have_as_many_elements(v, segments.space))
        segments.reshaped.insert(v);
      else
        segments.smaller[v] = *dims_in_space(graph_, inlining_, v, segments.space);
    }
    segments.values.insert(segments.values.begin(), rows.values.begin(), rows.values.end());
    segments.reads.clear();
    for (const ValueId v : segments.values) segments.reads.merge(reads_of(v, &segments));
  }

  // Returns whether `v` is made in parts. A value between a concat and an output may be stored for other reasons: it is
  // then the one in parts, and the output reads it.
  bool made_in_parts(ValueId v) const {
    if (!inlining_.any_stored_in_parts()) return false;
    const std::optional<ValueId> concat = concat_below(graph_, inlining_, v);
    return concat && inlining_.stored_in_parts(*concat);
  }

  // Adds a unit per operand of the concat below: it stores the operand's part of `whole`.
  void form_parts(ValueId whole) {
    for (ConcatPart& part : parts_of(graph_, inlining_, whole)) {
      KernelUnit unit{.values = {whole}, .space = part.operand, .smaller = {}};
      if (inlining_.inside(part.operand) && !inlining_.stored(part.operand) && inlining_.facts(part.operand)) {
        const Inlined& mine = inlining_.inlined(part.operand);
        unit.reduces = mine.reduces;
        unit.matmul = mine.matmul;
        unit.vector_contraction = mine.vector_contraction;
        unit.nested = mine.nested;
        unit.joined = mine.joined;
        unit.rows = mine.rows;
      }
      unit.part = std::move(part);
      units_.push_back(std::move(unit));
    }
  }

  // Returns the stored values that v's expression loads when the values of `together` are substituted.
  std::set<ValueId> reads_of(ValueId v, const KernelUnit* together) const {
    std::set<ValueId> reads, seen;
    std::vector<ValueId> stack{v};
    while (!stack.empty()) {
      const ValueId at = stack.back();
      stack.pop_back();
      const FormulaFacts* facts = inlining_.facts(at);
      if (!facts) continue;
      for (const LoadFact& load : facts->loads) {
        const ValueId source = resolve_tuple(graph_, load.source);
        const bool substituted = inlining_.substituted(source) || (together && contains(*together, source));
        if (!substituted) {
          reads.insert(source);
        } else if (seen.insert(source).second) {
          stack.push_back(source);
        }
      }
    }
    return reads;
  }

  // Returns whether the kernel of `unit` may make `v` and read the unit's values from registers.
  bool may_join(const KernelUnit& unit, ValueId v, const std::set<ValueId>& reads) const {
    if (limits_.no_sharing || unit.kind != LoweredUnit::Kind::kKernel || unit.values.size() >= kMostOutputs ||
        unit.part)
      return false;
    if (!unit.tentative.empty() || graph_.tensor(unit.space).shape != graph_.tensor(v).shape) return false;
    const Inlined& mine = inlining_.inlined(v);
    if (mine.nested || unit.nested) return false;
    if (mine.reduces && unit.reduces && limits_.across.contains(v)) return false;
    if (mine.matmul || unit.matmul) {
      if (inlining_.contractions_are_separate() || limits_.alone.contains(v)) return false;
      if (unit.matmul && mine.reduces && !mine.matmul) return may_reduce_rows_of(unit, v, reads);
      if (mine.reduces != mine.matmul || unit.reduces != unit.matmul) return false;
    } else if (mine.reduces && unit.reduces && mine.rows != unit.rows) {
      return reduces_only_row(unit, mine) && !inlining_.contractions_are_separate() && !limits_.alone.contains(v) &&
             may_reduce_rows_of(unit, v, reads);
    }
    if (is_mixed(unit, mine) && (inlining_.contractions_are_separate() || limits_.alone.contains(v))) return false;
    // Without a read from the unit, `v` joins only if both read some common value, and both or neither reduce.
    bool reads_unit = false, shares = false;
    for (const ValueId r : reads) {
      reads_unit = reads_unit || contains(unit, r);
      shares = shares || unit.reads.contains(r);
    }
    if (!reads_unit) return shares && mine.reduces == unit.reduces;
    // `v` reads values of the unit at its own index, or they are cheap enough to recompute.
    return reads_are_simple(v, unit, mine);
  }

  // Returns whether one has a row-times-matrix product and the other has other reductions.
  static bool is_mixed(const KernelUnit& unit, const Inlined& v) {
    return unit.reduces && v.reduces && unit.vector_contraction != v.vector_contraction;
  }

  // Returns whether the unit has a row-times-matrix product and `v` reduces its row.
  static bool reduces_only_row(const KernelUnit& unit, const Inlined& v) {
    return unit.vector_contraction && v.reduces && !v.vector_contraction && !v.matmul;
  }

  // Returns whether `v` reduces rows of the unit's products that are short enough for one block.
  bool may_reduce_rows_of(const KernelUnit& unit, ValueId v, const std::set<ValueId>& reads) const {
    return std::ranges::any_of(reads, [&](ValueId r) {
      return contains(unit, r) && inlining_.may_reduce(inlining_.inlined(r), r, inlining_.inlined(v));
    });
  }

  // Returns whether `v` may join on trial. It has another shape, or reads the unit's rows at other indices; the kernel
  // is valid only if it is rows throughout.
  bool may_try_rows(const KernelUnit& unit, ValueId v, const std::set<ValueId>& reads) const {
    if (limits_.no_sharing || unit.kind != LoweredUnit::Kind::kKernel || unit.values.size() >= kMostOutputs ||
        unit.part)
      return false;
    if (limits_.not_rows.contains(v) || limits_.across.contains(v)) return false;
    const Inlined& mine = inlining_.inlined(v);
    if (mine.nested || unit.nested || (!mine.reduces && !unit.reduces)) return false;
    const bool contractions = mine.matmul || unit.matmul;
    if (is_mixed(unit, mine) && (inlining_.contractions_are_separate() || limits_.alone.contains(v))) return false;
    if (contractions && (inlining_.reduced_contractions().empty() || inlining_.contractions_are_separate() ||
                         limits_.alone.contains(v)))
      return false;
    bool together = false;
    for (const ValueId r : reads) {
      together = together || contains(unit, r) || unit.reads.contains(r);
    }
    if (!together) return false;
    return graph_.tensor(unit.space).shape == graph_.tensor(v).shape ||
           dims_in_space(graph_, inlining_, v, unit.space) || dims_in_space(graph_, inlining_, unit.space, v);
  }

  // Maps the dimensions of `v`, new in the unit, to the unit's space. If `v` is larger, its shape becomes the space.
  void find_place(KernelUnit& unit, ValueId v) const {
    if (graph_.tensor(unit.space).shape == graph_.tensor(v).shape) return;
    if (auto dims = dims_in_space(graph_, inlining_, v, unit.space)) {
      unit.smaller[v] = std::move(*dims);
      return;
    }
    const DimsInSpace dims = *dims_in_space(graph_, inlining_, unit.space, v);
    for (const ValueId old : unit.values) {
      DimsInSpace& place = unit.smaller[old];
      if (place.empty())
        for (std::size_t d = 0; d < graph_.tensor(old).shape.size(); ++d) place.push_back(static_cast<int>(d));
      for (int& d : place) d = d == kUnitDim ? kUnitDim : dims[static_cast<std::size_t>(d)];
    }
    unit.space = v;
    unit.rows = rows_in_space(unit, unit.rows, dims);
  }

  // Rows by dimension of a value, as rows by dimension of the unit's space.
  std::vector<bool> rows_in_space(const KernelUnit& unit, const std::vector<bool>& rows,
                                  const DimsInSpace& dims) const {
    std::vector<bool> mapped(graph_.tensor(unit.space).shape.size(), false);
    for (std::size_t d = 0; d < rows.size(); ++d)
      if (rows[d] && dims[d] != kUnitDim) mapped[static_cast<std::size_t>(dims[d])] = true;
    return mapped;
  }

  bool reads_are_simple(ValueId v, const KernelUnit& unit, const Inlined& mine) const {
    std::set<ValueId> seen;
    std::vector<std::pair<ValueId, bool>> stack{{v, true}};  // value; true: reached at the index of `v`
    while (!stack.empty()) {
      const auto [at, same] = stack.back();
      stack.pop_back();
      for (const LoadFact& load : inlining_.facts(at)->loads) {
        const ValueId source = resolve_tuple(graph_, load.source);
        if (!inlining_.inside(source)) continue;
        const bool still_same = same && load.identity;
        if (contains(unit, source)) {
          const Inlined& other = inlining_.inlined(source);
          if (!still_same && (other.reduces || load.reused || load.times > 1 || other.cost > kCheapWindow))
            return false;
          if (!still_same && !mine.reduces) return false;
        } else if (inlining_.substituted(source) && seen.insert(source).second) {
          stack.push_back({source, still_same});
        }
      }
    }
    return true;
  }

  // Adds the value to the unit if allowed. Returns whether it did.
  bool takes(std::size_t u, ValueId v, const std::set<ValueId>& reads, const std::map<ValueId, std::size_t>& made_by) {
    KernelUnit& unit = units_[u];
    // Everything else that `v` reads must exist before the unit runs.
    for (const ValueId r : reads)
      if (const auto it = made_by.find(r); it != made_by.end() && it->second >= u && !contains(unit, r)) return false;
    const bool joins = may_join(unit, v, reads);
    if (!joins && !may_try_rows(unit, v, reads)) return false;
    if (!joins) {
      find_place(unit, v);
      unit.tentative.push_back(v);
    }
    unit.values.push_back(v);
    unit.reads.merge(reads_of(v, &unit));
    const Inlined& mine = inlining_.inlined(v);
    unit.joined = unit.joined || unit.matmul || mine.matmul || mine.joined || reduces_only_row(unit, mine) ||
                  is_mixed(unit, mine);
    unit.matmul = unit.matmul || mine.matmul;
    unit.vector_contraction = unit.vector_contraction || mine.vector_contraction;
    if (mine.reduces) {
      unit.reduces = true;
      const auto place = unit.smaller.find(v);
      unit.rows = place == unit.smaller.end() ? mine.rows : rows_in_space(unit, mine.rows, place->second);
    }
    return true;
  }

  std::size_t place(ValueId v, const std::map<ValueId, std::size_t>& made_by) {
    const std::set<ValueId> reads = reads_of(v, nullptr);
    std::size_t after = 0;  // the last unit that makes what `v` reads
    for (const ValueId r : reads)
      if (const auto it = made_by.find(r); it != made_by.end()) after = std::max(after, it->second);
    // Tries the last eight units, latest first; earlier ones share little. Units that make what `v` reads go before
    // units that read the same values: in the latter `v` would have to wait for the former.
    const std::size_t first = std::max(after, units_.size() > 8 ? units_.size() - 8 : 0);
    for (const bool reading : {true, false})
      for (std::size_t u = units_.size(); u-- > first;) {
        const auto made_here = [&](ValueId r) { return contains(units_[u], r); };
        if (std::ranges::any_of(reads, made_here) == reading && takes(u, v, reads, made_by)) return u;
      }
    const Inlined& mine = inlining_.inlined(v);
    units_.push_back({.values = {v},
                      .reduces = mine.reduces,
                      .matmul = mine.matmul,
                      .vector_contraction = mine.vector_contraction,
                      .nested = mine.nested,
                      .joined = mine.joined,
                      .rows = mine.rows,
                      .reads = reads,
                      .space = v,
                      .smaller = {}});
    return units_.size() - 1;
  }

  const Graph& graph_;
  const std::vector<NodeId>& nodes_;
  const Inlining& inlining_;
  const SharingLimits& limits_;
  std::vector<KernelUnit> units_;
  std::vector<KernelUnit> views_of_inputs_;  // views of memory that exists before any kernel runs
};

}  // namespace

std::vector<KernelUnit> partition_into_units(const Graph& graph, const std::vector<NodeId>& nodes,
                                             const Inlining& inlining, const SharingLimits& limits) {
  return Forming(graph, nodes, inlining, limits).run();
}

}  // namespace fusec
