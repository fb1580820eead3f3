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
#include "schedule/target/target.h"

namespace fusec {
namespace {

constexpr int kMostRowWords = 64;         // per thread, for everything that it keeps
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

// Keeps all computed values that later loops need. Equal expressions in loops of one kind are the same value.
RowRegisters all_values(const RowForm& form, const Graph& graph, const std::vector<RowLoop>& loops, int parts,
                        int most_elements) {
  const ExprPool& pool = form.kernel.pool;
  std::vector<int> iterations, words;  // by loop: its trip count, and what is kept after it
  for (const RowLoop& loop : loops) iterations.push_back(iterations_of(pool, loop, parts, most_elements));
  words.resize(loops.size(), 0);
  RowValues numbers(form, graph);
  const RowValueSpans values = spans_of_values(numbers, loops, iterations);
  RowRegisters plan;
  std::map<std::uint32_t, std::size_t> slot_of_number;
  for (std::size_t l = 0; l < loops.size(); ++l) {
    const auto known = [&](ExprId id) {
      const auto at = values.computed[l].find(id);
      return at != values.computed[l].end() && values.spans.at(at->second).is_kept() &&
             values.spans.at(at->second).first < l;
    };
    plan.code += iterations[l] *
                 (loops[l].width * code_of_element(form, loops[l].roots, known) + code_of_position(pool, loops[l]));
    for (const auto& [id, number] : values.computed[l]) {
      const RowValueSpans::Span& span = values.spans.at(number);
      if (!span.is_kept()) continue;
      const auto [at, fresh] = slot_of_number.try_emplace(number, plan.slots.size());
      plan.slot_of[id] = at->second;
      plan.iterations_of[loops[l].axes] = iterations[l];
      if (!fresh) continue;
      plan.slots.push_back({.expr = id,
                            .width = loops[l].width,
                            .iterations = iterations[l],
                            .words = false,
                            .words_of_element = is_wide(pool[id].type) ? 2 : 1,
                            .first = span.first,
                            .last = span.last});
      for (std::size_t after = span.first; after < span.last; ++after) words[after] += plan.words_of(plan.slots.back());
    }
  }
  plan.words = *std::ranges::max_element(words);
  return plan;
}

class LoadPlanner {
 public:
  // `sequential`: row-invariant loads are kept even if only one loop reads them. `loads`: which may be kept; null:
  // contiguous ones. `elsewhere`: which are not.
  LoadPlanner(const RowForm& form, const Graph& graph, bool sequential = false,
              const std::vector<ExprId>* loads = nullptr, const std::function<bool(ExprId)>& elsewhere = nullptr)
      : form_(form),
        graph_(graph),
        pool_(form.kernel.pool),
        values_(form, graph),
        sequential_(sequential),
        loads_(loads),
        elsewhere_(elsewhere) {}

  RowRegisters run(const std::vector<RowLoop>& loops, int parts, int most_words, int most_elements) {
    return run(loops, most_words,
               [&](const RowLoop& loop) { return iterations_of(pool_, loop, parts, most_elements); });
  }
  RowRegisters run(const std::vector<RowLoop>& loops, int most_words,
                   const std::function<int(const RowLoop&)>& iterations_of_loop) {
    see(loops, iterations_of_loop);
    RowRegisters plan;
    for (const Place& place : places_) {
      if (place.loops < 2 && !(sequential_ && !values_.runs_along(*place.loads.begin(), form_.rows))) continue;
      if (plan.words + place.iterations * words_of_vectors(place) <= most_words)
        add(place, plan);
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
    for (const Place& place : places_) per_iteration += place.loops > 1 ? words_of_vectors(place) : 0;
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
    for (Place& place : places_) {
      place.iterations = iterations;
      if (place.loops > 1) add(place, plan);
    }
    count_iterations(loops, plan);
    return plan;
  }

 private:
  // Loads of the same positions, in some loops.
  struct Place {
    std::set<ExprId> loads = {};
    int loops = 0, iterations = 0, width = 1;
  };

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
        const auto [at, fresh] = place_of_number_.try_emplace(numbers.at(id), places_.size());
        if (fresh) places_.emplace_back();
        Place& place = places_[at->second];
        place.loads.insert(id);
        place.loops += here.insert(at->first).second ? 1 : 0;
        place.iterations = iterations, place.width = loop.width;
      }
    }
  }

  int words_of_vectors(const Place& place) const {
    return std::max(1, place.width * bits(loaded_dtype(pool_, *place.loads.begin())) / 32);
  }

  void add(const Place& place, RowRegisters& plan) const {
    for (const ExprId id : place.loads) plan.slot_of[id] = plan.slots.size();
    plan.slots.push_back({.expr = *place.loads.begin(),
                          .width = place.width,
                          .iterations = place.iterations,
                          .words = true,
                          .words_of_element = words_of_vectors(place)});
    plan.words += plan.words_of(plan.slots.back());
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
    if (loads_) return contains(*loads_, id);
    if (elsewhere_ && elsewhere_(id)) return false;
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
  const std::vector<ExprId>* loads_;
  const std::function<bool(ExprId)> elsewhere_;
  std::vector<Place> places_;
  std::map<std::uint32_t, std::size_t> place_of_number_;  // by value number of the position
};

// True if memory takes longer to move an element than a multiprocessor to compute it in each loop anew.
bool is_cheap_to_recompute(const RowForm& form, const Graph& graph, const std::vector<RowLoop>& loops,
                           const RowRegisters& loads) {
  // A multiprocessor of sm_80 or sm_90 executes so many while memory moves a byte for it.
  constexpr double kInstructionsPerByte = 6, kFunctionsPerByte = 0.8;
  double bytes = 0;
  for (const RowRegisters::Slot& slot : loads.slots) bytes += 4.0 * slot.words_of_element / slot.width;
  for (const KernelOutput* output : outputs_of(form, false)) bytes += bits(output->type.dtype) / 8.0;
  int code = static_cast<int>(form.reductions.size());
  for (const RowLoop& loop : loops) code += code_of_element(form, loop.roots);
  return code <= kInstructionsPerByte * bytes && functions_of_row(form, graph, true) <= kFunctionsPerByte * bytes;
}

// Places the slots in shared memory. A value takes the place of one of equal size that is no longer needed.
bool is_placed(RowRegisters& plan, int most_words) {
  plan.shared_words = 0;
  std::vector<RowRegisters::Slot*> places;  // the last slot at each place
  for (RowRegisters::Slot& slot : plan.slots) {
    if (slot.words_of_element > kMostOfAccess) return false;
    const auto free = std::ranges::find_if(places, [&](const RowRegisters::Slot* other) {
      return !other->words && !slot.words && other->last <= slot.first &&
             other->words_of_element == slot.words_of_element && other->iterations == slot.iterations &&
             other->width == slot.width;
    });
    if (free != places.end()) {
      slot.place = (*free)->place;
      *free = &slot;
      continue;
    }
    slot.place = plan.shared_words;
    plan.shared_words += plan.words_of(slot);
    places.push_back(&slot);
  }
  return plan.shared_words > 0 && plan.shared_words <= most_words;
}

}  // namespace

RowRegisters plan_sequential_rows(const RowForm& form, const Graph& graph, const std::vector<RowLoop>& loops, int parts,
                                  int most_words, const std::function<bool(ExprId)>& elsewhere) {
  RowRegisters plan = LoadPlanner(form, graph, true, nullptr, elsewhere).run(loops, parts, most_words, kMostElements);
  // Accumulators of columns are registers, so all loops are unrolled.
  for (const RowLoop& loop : loops)
    plan.iterations_of[loop.axes] = iterations_of(form.kernel.pool, loop, parts, kMostElements);
  return plan;
}

RowRegisters plan_row_values(const RowForm& form, const Graph& graph, const std::vector<RowLoop>& loops, int parts,
                             int threads) {
  RowRegisters values = all_values(form, graph, loops, parts, kMostElements);
  return values.words <= std::min(kMostRowWords, kRegistersOfBlock / threads) ? values : RowRegisters{};
}

RowRegisters plan_row_loads(const RowForm& form, const Graph& graph, const std::vector<RowLoop>& loops,
                            const std::vector<ExprId>& loads, int iterations, int most_words) {
  return LoadPlanner(form, graph, false, &loads).run(loops, most_words, [&](const RowLoop&) { return iterations; });
}

RowRegisters plan_row_registers(const RowForm& form, const Graph& graph, const std::vector<RowLoop>& loops, int parts,
                                int threads) {
  const int most_words = std::min(kMostRowWords, kRegistersOfBlock / threads);
  RowRegisters values = all_values(form, graph, loops, parts, kMostElements);
  if (values.words <= most_words) return values;
  RowRegisters loads = LoadPlanner(form, graph).run(loops, parts, most_words, kMostElements);
  loads.wanted = values.words;
  return loads;
}

std::optional<RowRegisters> plan_packed_row(const RowForm& form, const Graph& graph, const std::vector<RowLoop>& loops,
                                            int parts, int threads, int tensors, const RowRegisters& plan) {
  constexpr int kBlocks = 2;
  // Registers besides what is kept. Halves of words of float16 are registers of their own.
  constexpr int kComputing = 24, kTensor = 8, kHalves = 8, kComputingValues = 64;
  const bool halves = std::ranges::any_of(reachable(form.kernel.pool, form.reductions), [&](ExprId id) {
    return form.kernel.pool[id].op == ExprOp::kLoad && form.kernel.pool[id].dtype == DType::kFloat16;
  });
  const int computing = kComputing + kTensor * tensors + (halves ? kHalves : 0);
  const int of_thread = kMultiprocessorRegisters / (kBlocks * threads);
  if (plan.words + kComputingValues <= of_thread) return std::nullopt;
  RowRegisters loads = LoadPlanner(form, graph).run(loops, parts, of_thread - computing, kMostElements);
  if (loads.slots.empty() || loads.reloads > 0 || loads.code > kMaxUnrolledInstructions ||
      !is_cheap_to_recompute(form, graph, loops, loads))
    return std::nullopt;
  loads.blocks_at_once = kBlocks;
  return loads;
}

std::optional<RowRegisters> plan_row_in_shared_memory(const RowForm& form, const Graph& graph,
                                                      const std::vector<RowLoop>& loops, int parts, int threads,
                                                      std::int64_t bytes, bool as_loaded) {
  const auto most_words = static_cast<int>(bytes / (4 * std::int64_t{threads}));
  std::optional<RowRegisters> plan;
  if (!as_loaded) plan = all_values(form, graph, loops, parts, kMostOfMemory);
  if (!plan || plan->words > most_words || !is_placed(*plan, most_words)) {
    plan = LoadPlanner(form, graph).run(loops, parts, most_words, kMostOfMemory);
    std::optional<RowRegisters> partly = LoadPlanner(form, graph).plan_prefix(loops, parts, most_words);
    const bool keeps_all = !plan->slots.empty() && plan->reloads == 0;
    if (partly && !keeps_all && partly->words > plan->words) plan = std::move(partly);
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
