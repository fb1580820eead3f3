#include "codegen/reduction/row_registers.h"

#include <algorithm>
#include <compare>
#include <functional>
#include <optional>
#include <set>

#include "analysis/kernel/loads.h"
#include "codegen/access/concat_loads.h"
#include "codegen/access/direct.h"
#include "codegen/access/vector_access.h"
#include "ir/type.h"
#include "schedule/reduction/row_values.h"

namespace fusec {
namespace {

constexpr int kMostRowWords = 64;         // per thread, for everything that it keeps
constexpr int kMostSequential = 128;      // per thread that takes rows one after the other
constexpr int kRegistersOfBlock = 32768;  // half of a multiprocessor's; the rest is for computation
constexpr int kMostOfAccess = 4;          // words of shared memory per access
constexpr int kMostElements = 64;         // of an unrolled loop, which emits each of them
constexpr int kMostOfMemory = 4096;       // of a loop that keeps them in shared memory and is not unrolled

// The points of a loop that threads visit: vectors, or elements.
IndexExpr points_of(const ExprPool& pool, const RowLoop& loop) {
  std::vector<std::uint32_t> axes = loop.axes;
  if (loop.width > 1) axes.pop_back();
  return loop.vectors ? *loop.vectors : point_count(pool, axes);
}

// Instructions to compute an element's position from the loop's linear index.
int code_of_position(const ExprPool& pool, const RowLoop& loop) {
  constexpr int kByNumber = 4, kByLaunch = 24;
  int code = 0;
  const std::size_t axes = loop.axes.size() - (loop.width > 1 ? 1 : 0);
  for (std::size_t i = 1; i < axes; ++i) code += pool.extent(loop.axes[i]).is_constant() ? kByNumber : kByLaunch;
  return code;
}

// The maximum trip count of a thread; 0 if it is unknown or makes too many elements.
int iterations_of(const ExprPool& pool, const RowLoop& loop, int parts, int most_elements) {
  const auto most = range_of(points_of(pool, loop), pool.bounds()).max;
  if (most < 1 || most > std::int64_t{parts} * most_elements) return 0;
  const auto iterations = static_cast<int>((most + parts - 1) / parts);
  return iterations * loop.width <= most_elements ? iterations : 0;
}

// Plans computed values that later loops need, by value number: equal expressions in loops of one kind are the same
// value.
class ValuePlanner {
 public:
  ValuePlanner(const RowForm& form, const Graph& graph, const std::vector<RowLoop>& loops, int parts, int most_elements)
      : form_(form), pool_(form.kernel.pool), loops_(loops), values_(form, graph) {
    for (const RowLoop& loop : loops) iterations_.push_back(iterations_of(pool_, loop, parts, most_elements));
  }

  // Nothing if they need more than `most_words` registers.
  std::optional<RowRegisters> run(int most_words) {
    const RowValueSpans values = spans_of_values(values_, loops_, iterations_);
    return words_between(values) <= most_words ? std::optional(registers_for(values)) : std::nullopt;
  }

  // Registers for all values that later loops need.
  int words() { return words_between(spans_of_values(values_, loops_, iterations_)); }

  // Drops the values that are cheapest to recompute until the rest fits.
  std::optional<RowRegisters> plan_prefix(int most_words) {
    std::set<std::uint32_t> left_out;
    while (true) {
      const RowValueSpans values = spans_of_values(values_, loops_, iterations_, left_out);
      std::vector<std::uint32_t> kept;
      for (const auto& [number, span] : values.spans)
        if (span.is_kept()) kept.push_back(number);
      if (kept.empty()) return std::nullopt;
      if (words_between(values) <= most_words) return registers_for(values);
      left_out.insert(*std::ranges::min_element(kept, {}, [&](std::uint32_t c) { return code_recomputed(values, c); }));
    }
  }

 private:
  using Span = RowValueSpans::Span;

  // One of the expressions with this value, in the first loop that computes it.
  static ExprId first_of(const RowValueSpans& values, std::uint32_t number) {
    const auto& first = values.computed[values.spans.at(number).first];
    return std::ranges::find_if(first, [&](const auto& e) { return e.second == number; })->first;
  }

  // Instructions to recompute an element's value from other kept values.
  int code_recomputed(const RowValueSpans& values, std::uint32_t number) const {
    const auto& first = values.computed[values.spans.at(number).first];
    const ExprId here = first_of(values, number);
    const auto known = [&](ExprId id) {
      const auto at = first.find(id);
      return id != here && at != first.end() && values.spans.at(at->second).is_kept();
    };
    return code_of_element(form_, {here}, known);
  }

  // The maximum number of words kept from one loop to the next.
  int words_between(const RowValueSpans& values) const {
    std::vector<int> words(loops_.size(), 0);
    for (const auto& [number, span] : values.spans)
      for (std::size_t l = span.first; l < span.last; ++l)
        words[l] += iterations_[span.first] * loops_[span.first].width * words_of(pool_[first_of(values, number)].type);
    return words.empty() ? 0 : *std::ranges::max_element(words);
  }

  static int words_of(ScalarType type) { return is_wide(type) ? 2 : 1; }

  RowRegisters registers_for(const RowValueSpans& values) const {
    RowRegisters plan;
    plan.words = words_between(values);
    std::map<std::uint32_t, std::size_t> slot_of_number;
    std::map<std::uint32_t, int> times;  // number of loads
    for (std::size_t l = 0; l < loops_.size(); ++l) {
      const auto known = [&](ExprId id) {
        const auto at = values.computed[l].find(id);
        if (at == values.computed[l].end()) return false;
        const Span& span = values.spans.at(at->second);
        return span.is_kept() && span.first < l;
      };
      plan.code += iterations_[l] * (loops_[l].width * code_of_element(form_, loops_[l].roots, known) +
                                     code_of_position(pool_, loops_[l]));
      for (const auto& [id, number] : values.computed[l]) {
        const bool loads = pool_[id].op == ExprOp::kLoad && values_.runs_along(id, loops_[l].axes);
        if (loads && !known(id) && ++times[number] == 2) ++plan.reloads;
        const Span& span = values.spans.at(number);
        if (!span.is_kept()) continue;
        const auto [at, fresh] = slot_of_number.try_emplace(number, plan.slots.size());
        if (fresh)
          plan.slots.push_back({.expr = id,
                                .width = loops_[l].width,
                                .iterations = iterations_[l],
                                .words = false,
                                .words_of_element = words_of(pool_[id].type),
                                .first = span.first,
                                .last = span.last});
        plan.slot_of[id] = at->second;
        plan.iterations_of[loops_[l].axes] = iterations_[l];
      }
    }
    return plan;
  }

  const RowForm& form_;
  const ExprPool& pool_;
  const std::vector<RowLoop>& loops_;
  std::vector<int> iterations_;
  RowValues values_;
};

class LoadPlanner {
 public:
  // `sequential`: row-invariant loads are kept even if only one loop reads them.
  LoadPlanner(const RowForm& form, const Graph& graph, bool sequential = false)
      : form_(form), graph_(graph), pool_(form.kernel.pool), values_(form, graph), sequential_(sequential) {}

  RowRegisters run(const std::vector<RowLoop>& loops, int parts, int most_words, int most_elements) {
    see(loops, [&](const RowLoop& loop) { return iterations_of(pool_, loop, parts, most_elements); });
    RowRegisters plan;
    for (const std::uint32_t place : in_order_) {
      if (places_.at(place).second < 2 && !(sequential_ && is_shared(place))) continue;
      const auto [iterations, width] = iterations_.at(place);
      if (plan.words + iterations * words_of_vectors(place) <= most_words)
        add(place, loops, plan);
      else
        ++plan.reloads;
    }
    count_iterations(loops, plan);
    return plan;
  }

  // Keeps as many first iterations of each load as fit, if rows of the hinted length are longer. Only for lengths known
  // at launch, with so many threads per row that few rows at once saturate memory.
  std::optional<RowRegisters> plan_prefix(const std::vector<RowLoop>& loops, int parts, int most_words) {
    const auto hinted = [&](const RowLoop& loop) {
      const std::int64_t iterations = value_at_hint(points_of(pool_, loop), pool_.bounds().symbols) / parts;
      return static_cast<int>(std::min<std::int64_t>(iterations, most_words));
    };
    see(loops, hinted);
    int per_iteration = 0;
    for (const std::uint32_t place : in_order_)
      if (places_.at(place).second > 1) per_iteration += words_of_vectors(place);
    const int iterations = per_iteration > 0 ? most_words / per_iteration : 0;
    constexpr int kEnough = 256;
    const bool all = std::ranges::all_of(loops, [&](const RowLoop& loop) {
      const int made = hinted(loop);
      const bool known = points_of(pool_, loop).as_constant().has_value();
      return made >= iterations || (made > 0 && !known && parts >= kEnough);
    });
    if (iterations == 0 || !all) return std::nullopt;
    RowRegisters plan;
    plan.keeps_prefix_only = true;
    for (const std::uint32_t place : in_order_) {
      iterations_.at(place).first = iterations;
      if (places_.at(place).second > 1) add(place, loops, plan);
    }
    count_iterations(loops, plan);
    return plan;
  }

 private:
  // Records which loads read the same positions, and the trip counts of their loops; loops with trip count 0 are
  // skipped.
  void see(const std::vector<RowLoop>& loops, const std::function<int(const RowLoop&)>& iterations_of_loop) {
    for (const RowLoop& loop : loops) {
      const int iterations = iterations_of_loop(loop);
      if (iterations == 0) continue;
      const std::map<ExprId, std::uint32_t> numbers = values_.in_loop(loop, loops);
      std::set<std::uint32_t> here;
      for (const ExprId id : outside_reductions(form_, loop.roots)) {
        if (!may_be_kept(id, loop)) continue;
        const std::uint32_t place = numbers.at(id);
        const auto [it, fresh] = places_.try_emplace(place);
        if (fresh) in_order_.push_back(place);
        it->second.first.insert(id);
        if (here.insert(place).second) ++it->second.second;
        iterations_[place] = {iterations, loop.width};
      }
    }
  }

  bool is_shared(std::uint32_t place) const {
    return !values_.runs_along(*places_.at(place).first.begin(), form_.rows);
  }

  int words_of_vectors(std::uint32_t place) const {
    const DType dtype = loaded_dtype(pool_, *places_.at(place).first.begin());
    return std::max(1, iterations_.at(place).second * bits(dtype) / 32);
  }

  void add(std::uint32_t place, const std::vector<RowLoop>& loops, RowRegisters& plan) const {
    const auto [iterations, width] = iterations_.at(place);
    const std::set<ExprId>& loads = places_.at(place).first;
    plan.words += iterations * words_of_vectors(place);
    for (const ExprId id : loads) plan.slot_of[id] = plan.slots.size();
    plan.slots.push_back({.expr = *loads.begin(),
                          .width = width,
                          .iterations = iterations,
                          .words = true,
                          .words_of_element = words_of_vectors(place),
                          .last = loops.size()});
  }

  // The trip counts of the loops that read kept values.
  void count_iterations(const std::vector<RowLoop>& loops, RowRegisters& plan) const {
    for (const RowLoop& loop : loops)
      for (const ExprId id : outside_reductions(form_, loop.roots))
        if (const auto slot = plan.slot_of.find(id); slot != plan.slot_of.end() && may_be_kept(id, loop))
          plan.iterations_of[loop.axes] = plan.slots[slot->second].iterations;
    for (const RowLoop& loop : loops)
      if (const auto iterations = plan.iterations_of.find(loop.axes); iterations != plan.iterations_of.end())
        plan.code +=
            iterations->second * (loop.width * code_of_element(form_, loop.roots) + code_of_position(pool_, loop));
  }

  bool may_be_kept(ExprId id, const RowLoop& loop) const {
    const ExprNode& n = pool_[id];
    if (is_joined(id, loop)) return true;
    if (n.op != ExprOp::kLoad || n.args[0] != kNoExpr || bits(n.dtype) == 4) return false;
    const IndexExpr position = position_of(graph_, pool_, id);
    bool runs = false;
    for (const Variable v : variables_of(position)) {
      if (v.kind == Variable::Kind::kValue) return false;
      runs = runs || (v.kind == Variable::Kind::kAxis && std::ranges::find(loop.axes, v.id) != loop.axes.end());
    }
    return runs &&
           (loop.width == 1 || is_vector_position(position, loop.axes.back(), loop.width, n.dtype, pool_.bounds()));
  }

  bool is_joined(ExprId id, const RowLoop& loop) const {
    return loop.joins && is_concat_vector(graph_, pool_, id, loop.axes.back(), loop.width);
  }

  const RowForm& form_;
  const Graph& graph_;
  const ExprPool& pool_;
  RowValues values_;
  bool sequential_;
  // By value number of the position: the loads, and the number of loops with them.
  std::map<std::uint32_t, std::pair<std::set<ExprId>, int>> places_;
  std::vector<std::uint32_t> in_order_;
  std::map<std::uint32_t, std::pair<int, int>> iterations_;  // trip count and width
};

// Places the slots in shared memory. A slot reuses one of equal size that is no longer needed: a thread reads its old
// element before it writes the new one (RegisterResidentRow::define_values).
bool is_placed(RowRegisters& plan, int most_words) {
  std::vector<RowRegisters::Slot*> slots;
  for (RowRegisters::Slot& slot : plan.slots) slots.push_back(&slot);
  std::ranges::stable_sort(slots, {}, [](const RowRegisters::Slot* slot) { return slot->first; });
  std::vector<RowRegisters::Slot*> places;  // the last slot at each place
  plan.shared_words = 0;
  for (RowRegisters::Slot* slot : slots) {
    if (slot->words_of_element > kMostOfAccess) return false;
    const auto free = std::ranges::find_if(places, [&](const RowRegisters::Slot* other) {
      return other->last <= slot->first && !other->words && !slot->words && other->iterations == slot->iterations &&
             other->width == slot->width && other->words_of_element == slot->words_of_element;
    });
    if (free != places.end()) {
      slot->place = (*free)->place;
      *free = slot;
      continue;
    }
    slot->place = plan.shared_words;
    plan.shared_words += plan.words_of(*slot);
    places.push_back(slot);
  }
  return plan.shared_words > 0 && plan.shared_words <= most_words;
}

}  // namespace

RowRegisters plan_sequential_rows(const RowForm& form, const Graph& graph, const std::vector<RowLoop>& loops,
                                  int parts) {
  return LoadPlanner(form, graph, true).run(loops, parts, kMostSequential, kMostElements);
}

std::optional<RowRegisters> plan_row_values(const RowForm& form, const Graph& graph, const std::vector<RowLoop>& loops,
                                            int parts, int threads) {
  const int most_words = std::min(kMostRowWords, kRegistersOfBlock / threads);
  return ValuePlanner(form, graph, loops, parts, kMostElements).run(most_words);
}

RowRegisters plan_row_registers(const RowForm& form, const Graph& graph, const std::vector<RowLoop>& loops, int parts,
                                int threads) {
  const int most_words = std::min(kMostRowWords, kRegistersOfBlock / threads);
  ValuePlanner values(form, graph, loops, parts, kMostElements);
  if (auto all = values.run(most_words)) return *std::move(all);
  RowRegisters loads = LoadPlanner(form, graph).run(loops, parts, most_words, kMostElements);
  loads.wanted = values.words();
  std::optional<RowRegisters> some = values.plan_prefix(most_words);
  if (!some) return loads;
  // Computed values that take more registers than loads must be worth it.
  const bool is_cheap = some->words <= loads.words || loads.code > kMaxUnrolledInstructions;
  const bool better =
      some->reloads == loads.reloads ? is_cheap && some->code < loads.code : some->reloads < loads.reloads;
  some->wanted = loads.wanted;
  return better ? *std::move(some) : loads;
}

std::optional<RowRegisters> plan_row_in_shared_memory(const RowForm& form, const Graph& graph,
                                                      const std::vector<RowLoop>& loops, int parts, int threads,
                                                      std::int64_t bytes, bool as_loaded) {
  const auto most_words = static_cast<int>(bytes / (4 * std::int64_t{threads}));
  std::optional<RowRegisters> plan;
  if (!as_loaded) plan = ValuePlanner(form, graph, loops, parts, kMostOfMemory).run(most_words);
  if (!plan || !is_placed(*plan, most_words)) {
    plan = LoadPlanner(form, graph).run(loops, parts, most_words, kMostOfMemory);
    std::optional<RowRegisters> partly = LoadPlanner(form, graph).plan_prefix(loops, parts, most_words);
    const bool keeps_all = !plan->slots.empty() && plan->reloads == 0;
    if (partly && !keeps_all && partly->words > plan->words) plan = std::move(partly);
    if (plan->reloads > 0 && !as_loaded) {
      std::optional<RowRegisters> some = ValuePlanner(form, graph, loops, parts, kMostOfMemory).plan_prefix(most_words);
      if (some && some->reloads < plan->reloads && is_placed(*some, most_words)) plan = std::move(some);
    }
  }
  if (!is_placed(*plan, most_words)) return std::nullopt;
  plan->words = 0;
  plan->shared_bytes = std::int64_t{4} * threads * plan->shared_words;
  const RowRegisters::Slot& first = plan->slots.front();
  if (plan->words_of(first) == plan->shared_words)
    for (const RowLoop& loop : loops)
      if (plan->iterations_of.contains(loop.axes)) {
        const IndexExpr iterations = ceil_div(points_of(form.kernel.pool, loop), parts);
        plan->shared_bytes =
            simplify((plan->keeps_prefix_only ? min(iterations, IndexExpr(first.iterations)) : iterations) * threads *
                         4 * (plan->shared_words / first.iterations),
                     form.kernel.pool.bounds());
      }
  return plan;
}

}  // namespace fusec
