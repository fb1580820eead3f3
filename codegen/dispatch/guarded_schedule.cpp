#include "codegen/dispatch/guarded_schedule.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "codegen/dispatch/attention_cases.h"
#include "codegen/dispatch/word_copy_schedule.h"
#include "ir/type.h"
#include "schedule/cost/cost_model.h"
#include "schedule/movement/bitcast_copy.h"
#include "schedule/plan/kernel_planner.h"

namespace fusec {
namespace {

constexpr std::int64_t kSmall = std::int64_t{1} << 40;  // larger bounds are ignored
// Element limit under which all indices of a tensor, and of threads slightly past the end, fit in int.
constexpr std::int64_t kIntElements = (std::int64_t{1} << 31) - (std::int64_t{1} << 16);
constexpr std::int64_t kThreadsOfRow = 1024;
constexpr std::int64_t kLongestRow = 1 << 15, kShortestRow = 1 << 10;  // row lengths for which registers may be tried
constexpr std::int64_t kLongestOfCluster = 8 * kLongestRow;
constexpr std::int64_t kLongerThanHint = 8;  // longest length relative to the hint, if that is shorter
constexpr std::size_t kMostWeakened = 24;    // longer guards are not simplified

bool of_few_rows(const std::vector<KernelSource>& sources) {
  return sources.size() == 1 && sources[0].schedule.kind == KernelKind::kSkinnyGemm;
}

class Search {
 public:
  Search(const Kernel& kernel, const Graph& graph, const Target& target, const std::string& wanted, FormMemory& forms)
      : kernel_(kernel), graph_(graph), target_(target), wanted_(wanted), forms_(forms) {
    see_kernel();
  }

  GuardedSources run() {
    GuardedSources result{.general = schedule_word_copy(kernel_, graph_, target_, wanted_, forms_), .special = {}};
    if (symbols_.empty() || !may_stand_in(result.general)) return result;
    made_[Guard{}] = result.general;
    result.special = for_few_rows(result.general);
    add_better(result);
    return result;
  }

 private:
  // The specialized form for typical sizes.
  void add_better(GuardedSources& result) {
    std::vector<GuardCondition> sizes = limits();
    const auto row = row_limit(result.general, sizes);
    if (row) sizes.insert(sizes.begin(), row->begin(), row->end());
    auto found = under(sizes);
    // Rows in registers at the expected length are worth more than vectors for other lengths.
    const bool as_expected = found && row && holds_as_expected(sizes) && !holds_as_expected(multiples());
    if (!found || (!takes_any_start(*found) && !as_expected)) {
      std::vector<GuardCondition> all = multiples();
      all.insert(all.end(), sizes.begin(), sizes.end());
      const std::vector<KernelSource>& so_far = found ? *found : result.general;
      // A kernel that reads a row again also makes more wide accesses.
      if (auto sources = under(all); sources && is_wider(*sources, so_far) && (keeps(*sources) || !keeps(so_far))) {
        found = std::move(sources);
        sizes = std::move(all);
      }
    }
    if (!found || same(*found, result.general) || found->size() != result.general.size()) return;
    result.special.push_back(least(std::move(sizes), *std::move(found)));
    if (row)
      if (auto longer = for_longer(*row, result)) result.general = *std::move(longer);
  }

  // Skinny GEMM forms for a GEMM with possibly few rows: of at most 32, and of at most 16 or 8 where that form is
  // predicted to take at most two thirds of the time of the larger one. The smallest comes first.
  std::vector<SpecializedSources> for_few_rows(const std::vector<KernelSource>& general) {
    std::vector<SpecializedSources> forms;
    const std::shared_ptr<const FormOfKernel> form = forms_.of(kernel_);
    if (!form->contraction || of_few_rows(general)) return forms;
    IndexExpr rows = 1;
    const ExprPool& pool = (form->rewritten ? *form->rewritten : kernel_).pool;
    for (const std::uint32_t a : form->contraction->rows) rows *= pool.extent(a);
    std::optional<Guard> larger;
    for (const std::int64_t most : {32, 16, 8}) {
      Guard few;
      limit(std::span(&rows, 1), most, few);
      Guard whole = multiples();  // multiples, for example of K
      whole.insert(whole.end(), few.begin(), few.end());
      for (const Guard& guard : {few, whole}) {
        if (few.empty() || !may_have_few_rows(guard)) continue;
        if (larger && !is_plainly_faster(guard, *larger)) break;
        const auto& sources = under(guard);
        if (!sources || !of_few_rows(*sources)) continue;
        forms.insert(forms.begin(), least(guard, *sources));
        larger = guard;
        break;
      }
    }
    return forms;
  }
  // Whether the kernel under `guard` is predicted to take at most two thirds of the time that the one under the guard
  // `larger`, which allows more rows, takes for the same sizes.
  bool is_plainly_faster(const Guard& guard, const Guard& larger) const {
    constexpr double kWorthAThird = 2.0 / 3;
    const std::optional<Kernel> kernel = kernel_under(guard);
    std::optional<Kernel> other = kernel_under(larger);
    if (!kernel || !other) return false;
    std::vector<Symbol> symbols = other->pool.bounds().symbols.list();
    for (std::size_t i = 0; i < symbols.size(); ++i) symbols[i].hint = kernel->pool.bounds().symbols[i].hint;
    other->pool.assume(std::move(symbols), other->pool.bounds().products);
    return seconds_of(*kernel) <= kWorthAThird * seconds_of(*other);
  }
  double seconds_of(const Kernel& kernel) const {
    const std::shared_ptr<const FormOfKernel> form = forms_.of(kernel);
    return predict(KernelPlanner(kernel, *form, graph_, target_).work(), target_).total;
  }
  bool may_have_few_rows(const Guard& guard) const {
    const std::optional<Kernel> kernel = kernel_under(guard);
    if (!kernel) return false;
    const std::shared_ptr<const FormOfKernel> form = forms_.of(*kernel);
    return KernelPlanner(*kernel, *form, graph_, target_).skinny() != nullptr;
  }
  void see(const Shape& shape, DType dtype) {
    shapes_.insert(shape);
    narrowest_ = std::min(narrowest_, std::max(bits(dtype), 8));
    for (const Dim& dim : shape) see(dim);
  }
  void see(const IndexExpr& e) {
    for (const Variable v : variables_of(e))
      if (v.kind == Variable::Kind::kSymbol) symbols_.insert(v.id);
  }

  void see_kernel() {
    for (const KernelOutput& output : kernel_.outputs) see(output.type.shape, output.type.dtype);
    for (const ExprId id : reachable(kernel_.pool, roots_of(kernel_))) {
      const ExprNode& n = kernel_.pool[id];
      if (n.op == ExprOp::kLoad) see(graph_.tensor(n.source).shape, n.dtype);
      if (n.op != ExprOp::kReduce) continue;
      IndexExpr length = 1;
      for (const std::uint32_t axis : n.axes) length *= kernel_.pool.extent(axis);
      see(length);
      row_lengths_.insert(length);
    }
    std::erase_if(symbols_, [&](std::uint32_t s) {
      const Symbol& symbol = graph_.symbols[s];
      return symbol.multiple_of > kSmall || symbol.min > kSmall;
    });
  }

  // If vectors work at any alignment, a form for multiples is not needed. Exception: a vector shared by all rows has a
  // different alignment relative to each row.
  bool takes_any_start(const std::vector<KernelSource>& sources) const {
    const bool alike = std::ranges::all_of(
        shapes_, [&](const Shape& shape) { return element_count(shape) == element_count(*shapes_.begin()); });
    return std::ranges::all_of(sources, [&](const KernelSource& source) {
      return source.unaligned_vectors && (alike || source.schedule.kind == KernelKind::kPointwise);
    });
  }

  static bool keeps(const std::vector<KernelSource>& sources) {
    return std::ranges::any_of(sources, &KernelSource::rows_stay_resident);
  }

  // True if a uses another schedule or wider accesses than b. A missing comparison alone does not count.
  static bool is_wider(const std::vector<KernelSource>& a, const std::vector<KernelSource>& b) {
    if (a.size() != b.size()) return false;
    std::int64_t words = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (a[i].schedule != b[i].schedule) return true;
      words += words_at_a_time(a[i].text) - words_at_a_time(b[i].text);
    }
    return words > 0;
  }
  static std::int64_t words_at_a_time(std::string_view text) {
    std::int64_t bytes = 0;
    for (const auto& [accessed, unit] : {std::pair<std::string_view, int>{"Words<", 4}, {"copy_async<", 1}})
      for (std::size_t at = text.find(accessed); at != std::string_view::npos; at = text.find(accessed, at + 1)) {
        std::int64_t count = 0;
        for (std::size_t digit = at + accessed.size(); text[digit] >= '0' && text[digit] <= '9'; ++digit)
          count = 10 * count + (text[digit] - '0');
        bytes += count * unit;
      }
    return bytes / 4;
  }

  // A table of parameters belongs to one kernel.
  static bool may_stand_in(const std::vector<KernelSource>& sources) {
    return std::ranges::all_of(sources, [](const KernelSource& source) { return source.table_parameters.empty(); });
  }

  static bool same(const std::vector<KernelSource>& a, const std::vector<KernelSource>& b) {
    return std::ranges::equal(a, b, [](const KernelSource& x, const KernelSource& y) {
      return x.text == y.text && x.block == y.block && x.cluster == y.cluster;
    });
  }

  // The sources under a guard. Nothing if no value satisfies the guard, or if the kernels cannot replace the general
  // ones. Each guard is tried once.
  const std::optional<std::vector<KernelSource>>& under(const Guard& guard) {
    const auto [at, fresh] = made_.try_emplace(guard);
    if (fresh) at->second = schedule_under(guard);
    return at->second;
  }
  // The kernel with what a guard says about its symbols. Nothing if no value satisfies the guard.
  std::optional<Kernel> kernel_under(const Guard& guard) const {
    GuardedSymbols known = assume(guard, kernel_.pool.bounds().symbols);
    if (!is_possible(known)) return std::nullopt;
    Kernel kernel = kernel_;
    kernel.pool.assume(std::move(known.symbols), std::move(known.products));
    return kernel;
  }
  std::optional<std::vector<KernelSource>> schedule_under(const Guard& guard) const {
    const std::optional<Kernel> kernel = kernel_under(guard);
    if (!kernel) return std::nullopt;
    std::vector<KernelSource> sources = schedule_word_copy(*kernel, graph_, target_, wanted_, forms_);
    if (!may_stand_in(sources)) return std::nullopt;
    return sources;
  }

  bool holds_as_expected(const Guard& guard) const {
    std::vector<std::int64_t> hints;
    for (const Symbol& symbol : kernel_.pool.bounds().symbols) hints.push_back(symbol.hint);
    return holds(guard, hints);
  }

  Guard multiples() const {
    Guard guard;
    for (const std::uint32_t s : symbols_)
      guard.push_back({.symbols = {s}, .multiple_of = std::clamp(128 / narrowest_, 2, 16)});
    return guard;
  }

  // Limits that make indices fit in int: of whole tensors, then of rows together with their threads.
  Guard limits() const {
    Guard guard;
    for (const Shape& shape : shapes_) limit(shape, kIntElements, guard);
    for (const Shape& shape : shapes_)
      if (shape.size() > 1) limit(std::span(shape).first(shape.size() - 1), kIntElements / kThreadsOfRow, guard);
    return guard;
  }

  // Distributes an element limit equally over the products of symbols in the element count.
  void limit(std::span<const Dim> shape, std::int64_t elements, Guard& guard) const {
    const auto count = element_count(shape);
    if (!count) return;
    const Bounds bounds = graph_.bounds();
    for (const IndexTerm& term : count->terms()) {
      GuardCondition condition;
      IndexExpr product = 1;
      for (const IndexAtomPtr& factor : term.factors) {
        if (factor->kind != IndexAtom::Kind::kVariable) return;
        condition.symbols.push_back(factor->variable.id);
        product *= IndexExpr::symbol(factor->variable.id);
      }
      if (term.coefficient <= 0) return;
      std::ranges::sort(condition.symbols);
      condition.at_most = elements / static_cast<std::int64_t>(count->terms().size()) / term.coefficient;
      const bool known = range_of(product, bounds).max <= condition.at_most;
      if (!known && condition.at_most > 0 && std::ranges::find(guard, condition) == guard.end())
        guard.push_back(std::move(condition));
    }
  }

  // The maximum row length that registers hold, if they do not hold every length within the bounds.
  std::optional<Guard> row_limit(const std::vector<KernelSource>& general, const Guard& limits) {
    const auto of_rows = [](const KernelSource& source) { return source.schedule.kind == KernelKind::kRowReduction; };
    const auto of_strips = [](const KernelSource& source) {
      return source.schedule.kind == KernelKind::kColumnReduction;
    };
    const bool shared = general.size() == 2 && std::ranges::all_of(general, of_strips);  // which read rows again
    if (keeps(general) || !(shared || (of_rows(general.back()) && std::ranges::count_if(general, of_rows) == 1)))
      return std::nullopt;
    std::int64_t expected = 1;
    for (const IndexExpr& length : row_lengths_)
      expected = std::max(expected, kLongerThanHint * value_at_hint(length, graph_.symbols));
    std::int64_t first = kLongestRow, last = kShortestRow;
    while (first < kLongestOfCluster && first < 2 * (expected / kLongerThanHint)) first *= 2;
    if (expected < kShortestRow) {  // every further iteration would only cost a bounds check
      last = 1;
      while (last < expected) last *= 2;
      first = last;
    }
    for (std::int64_t most = first; most >= last; most /= 2) {
      Guard guard;
      for (const IndexExpr& length : row_lengths_) limit(std::span(&length, 1), most, guard);
      if (guard.empty() || !holds_as_expected(guard)) continue;
      Guard all = guard;
      all.insert(all.end(), limits.begin(), limits.end());
      if (const auto sources = under(all); sources && keeps(*sources)) return guard;
    }
    return std::nullopt;
  }

  // The general form runs for rows longer than the special form's, so it is scheduled for longer hints, as long as the
  // number of kernels stays the same. If co-resident blocks would share such rows, the hints are only somewhat longer.
  std::optional<std::vector<KernelSource>> for_longer(const Guard& row, const GuardedSources& generated) const {
    constexpr std::int64_t kFarLonger = 4, kForManyWarps = 1 << 14;  // enough for the warps to saturate memory
    const bool of_multiples = std::ranges::any_of(
        generated.special.back().guard, [](const GuardCondition& condition) { return condition.multiple_of > 1; });
    if (of_multiples) return std::nullopt;
    std::int64_t longest = 1;  // of the special form
    const Symbols at_most = expecting(row, kOnce);
    for (const IndexExpr& length : row_lengths_) longest = std::max(longest, value_at_hint(length, at_most));
    for (std::int64_t quarters = kOnce * std::max(kFarLonger, kForManyWarps / longest); quarters > 0; quarters /= 2) {
      Kernel kernel = kernel_;
      kernel.pool.assume(expecting(row, quarters), kernel.pool.bounds().products);
      std::vector<KernelSource> sources = schedule_word_copy(kernel, graph_, target_, wanted_, forms_);
      if (sources.size() == generated.general.size() && may_stand_in(sources)) return sources;
    }
    return std::nullopt;
  }
  // The symbols with hints of `quarters` / 4 times the guard's limits, if the hints were smaller.
  static constexpr std::int64_t kOnce = 4;
  std::vector<Symbol> expecting(const Guard& guard, std::int64_t quarters) const {
    std::vector<Symbol> symbols = kernel_.pool.bounds().symbols.list();
    for (const GuardCondition& condition : guard) {
      if (condition.symbols.size() > 1) continue;
      Symbol& symbol = symbols[condition.symbols[0]];
      const std::int64_t hint = std::clamp(quarters * condition.at_most / kOnce, symbol.hint, symbol.max);
      symbol.hint = std::max(symbol.hint, hint / symbol.multiple_of * symbol.multiple_of);
    }
    return symbols;
  }

  // Drops and weakens the guard's conditions as far as the kernels stay the same. Each trial schedules the kernels
  // again. A guard with many conditions would need as many schedules, so it is left unchanged.
  SpecializedSources least(Guard guard, std::vector<KernelSource> sources) {
    if (guard.size() > kMostWeakened) return {std::move(guard), std::move(sources)};
    const auto keep_if_same = [&](Guard weaker) {
      auto generated = under(weaker);
      if (!generated || !same(*generated, sources)) return false;
      guard = std::move(weaker);
      sources = *std::move(generated);
      return true;
    };
    for (std::size_t i = guard.size(); i-- > 0;) {
      Guard without = guard;
      without.erase(without.begin() + static_cast<std::ptrdiff_t>(i));
      if (keep_if_same(std::move(without))) continue;
      while (guard[i].multiple_of > 2) {
        Guard weaker = guard;
        weaker[i].multiple_of /= 2;
        if (!keep_if_same(std::move(weaker))) break;
      }
    }
    return {std::move(guard), std::move(sources)};
  }

  const Kernel& kernel_;
  const Graph& graph_;
  const Target& target_;
  const std::string& wanted_;  // KernelSource::tuning
  FormMemory& forms_;
  std::set<std::uint32_t> symbols_;  // that affect the guard
  std::set<Shape> shapes_;
  std::set<IndexExpr> row_lengths_;  // of reductions
  int narrowest_ = 64;
  std::map<Guard, std::optional<std::vector<KernelSource>>> made_;  // by guard: the sources tried so far
};

// Joins the sources for launches where the condition holds (all their forms) with those for the others. The special
// sources come first. Their scratch memory is only as large as they need.
GuardedSources joined(GuardedSources general, GuardedSources special, const GuardCondition& condition) {
  const bool stands_in =
      std::ranges::all_of(general.general, [](const KernelSource& s) { return s.table_parameters.empty(); });
  if (!stands_in) return general;
  if (condition.at_least > 0) {
    const auto most = [&](Variable v) -> std::optional<IndexExpr> {
      if (v.kind != Variable::Kind::kSymbol || v.id != condition.symbols[0]) return std::nullopt;
      return min(IndexExpr::symbol(v.id), condition.at_least - 1);
    };
    const auto narrow = [&](std::vector<KernelSource>& sources) {
      for (KernelSource& source : sources)
        for (KernelParameter& p : source.parameters)
          if (p.kind == KernelParameter::Kind::kWorkspace) p.size = substitute(p.size, most);
    };
    narrow(general.general);
    for (SpecializedSources& form : general.special) narrow(form.sources);
  }
  std::vector<SpecializedSources> forms;
  const auto take = [&](Guard guard, std::vector<KernelSource> sources) {
    guard.insert(guard.begin(), condition);
    forms.push_back({std::move(guard), std::move(sources)});
  };
  for (SpecializedSources& form : special.special) take(std::move(form.guard), std::move(form.sources));
  take({}, std::move(special.general));
  std::ranges::move(general.special, std::back_inserter(forms));
  general.special = std::move(forms);
  return general;
}

}  // namespace

bool has_skinny_gemm(const SpecializedSources& special) {
  return of_few_rows(special.sources);
}

GuardedSources schedule_with_guard(const Kernel& kernel, const Graph& graph, const Target& target,
                                   const std::string& wanted, FormMemory& forms) {
  const Kernel moving = bitcast_copies(kernel);
  const auto search = [&](const Kernel& k) { return Search(k, graph, target, wanted, forms).run(); };
  const auto by_keys = [&](const Kernel& k) {
    const auto cases = key_count_cases(k, target, forms);
    return cases ? joined(search(cases->general), search(cases->special), cases->condition) : search(k);
  };
  if (const auto cases = query_count_cases(moving, target, forms)) {
    GuardedSources few = by_keys(cases->general), many = search(cases->special);
    if (many.general.size() <= few.general.size()) return joined(std::move(few), std::move(many), cases->condition);
  }
  return by_keys(moving);
}

}  // namespace fusec
