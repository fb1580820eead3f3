#include "analysis/lowering/shared_space.h"

#include <algorithm>

#include "analysis/kernel/kernel.h"
#include "ir/tuple_field.h"
#include "ir/type.h"

namespace fusec {
namespace {

constexpr std::size_t kMostValues = 64;  // most values visited between the two

bool is_unit(const Graph& graph, ValueId v, std::size_t d) {
  return graph.tensor(v).shape[d].is(1);
}

// Returns the mapping between shapes that are equal up to dimensions of extent 1.
std::optional<DimsInSpace> equal_but_for_units(const Graph& graph, ValueId rows, ValueId space) {
  DimsInSpace dims(graph.tensor(rows).shape.size(), kUnitDim);
  std::size_t s = 0;
  const auto next = [&] {
    while (s < graph.tensor(space).shape.size() && is_unit(graph, space, s)) ++s;
    return s < graph.tensor(space).shape.size();
  };
  for (std::size_t d = 0; d < dims.size(); ++d) {
    if (is_unit(graph, rows, d)) continue;
    if (!next() || graph.tensor(space).shape[s] != graph.tensor(rows).shape[d]) return std::nullopt;
    dims[d] = static_cast<int>(s++);
  }
  return next() ? std::nullopt : std::optional(dims);
}

// Returns, for each dimension of the first value in from's formula for which `is_it` holds, the dimension of `from`
// that indexes it; -1 for none. Looks through substituted values.
template <typename IsIt>
std::optional<DimsInSpace> dims_loaded(const Graph& graph, const Inlining& inlining, ValueId from, IsIt is_it) {
  std::vector<std::pair<ValueId, DimsInSpace>> queue;
  std::set<ValueId> seen{from};
  DimsInSpace same(graph.tensor(from).shape.size());
  for (std::size_t d = 0; d < same.size(); ++d) same[d] = static_cast<int>(d);
  queue.emplace_back(from, same);
  for (std::size_t next = 0; next < queue.size() && queue.size() < kMostValues; ++next) {
    const auto [at, dims_of_at] = queue[next];
    const FormulaFacts* facts = inlining.facts(at);
    if (facts == nullptr) continue;
    for (const LoadFact& load : facts->loads) {
      const ValueId source = resolve_tuple(graph, load.source);
      if (!seen.insert(source).second) continue;
      DimsInSpace dims;
      for (const int d : load.dims) dims.push_back(d < 0 ? -1 : dims_of_at[static_cast<std::size_t>(d)]);
      if (is_it(source)) return dims;
      if (inlining.inside(source)) queue.emplace_back(source, std::move(dims));
    }
  }
  return std::nullopt;
}

bool fits(const Graph& graph, ValueId rows, ValueId space, const DimsInSpace& dims) {
  std::vector<bool> used(graph.tensor(space).shape.size(), false);
  for (std::size_t d = 0; d < dims.size(); ++d) {
    if (is_unit(graph, rows, d)) continue;
    if (dims[d] < 0) return false;
    const auto s = static_cast<std::size_t>(dims[d]);
    if (used[s] || graph.tensor(space).shape[s] != graph.tensor(rows).shape[d]) return false;
    used[s] = true;
  }
  return true;
}

DimsInSpace without_units(const Graph& graph, ValueId rows, DimsInSpace dims) {
  for (std::size_t d = 0; d < dims.size(); ++d)
    if (is_unit(graph, rows, d)) dims[d] = kUnitDim;
  return dims;
}

}  // namespace

std::optional<DimsInSpace> dims_in_space(const Graph& graph, const Inlining& inlining, ValueId rows, ValueId space) {
  if (auto equal = equal_but_for_units(graph, rows, space)) return equal;
  // The space reads `rows`.
  const auto read = dims_loaded(graph, inlining, space, [&](ValueId v) { return v == rows; });
  if (read && fits(graph, rows, space, *read)) return without_units(graph, rows, *read);
  // `rows` reads the space, or a value of its shape.
  const Shape& shape = graph.tensor(space).shape;
  const auto made_of = dims_loaded(graph, inlining, rows, [&](ValueId v) {
    return v == space || (graph.value(v).kind != Value::Kind::kNumber && graph.value(v).kind != Value::Kind::kDim &&
                          !graph.type(v).is_tuple && graph.tensor(v).shape == shape);
  });
  if (!made_of) return std::nullopt;
  DimsInSpace dims(graph.tensor(rows).shape.size(), kUnitDim);
  for (std::size_t s = 0; s < made_of->size(); ++s)
    if ((*made_of)[s] >= 0) dims[static_cast<std::size_t>((*made_of)[s])] = static_cast<int>(s);
  if (!fits(graph, rows, space, dims)) return std::nullopt;
  return without_units(graph, rows, dims);
}

bool is_rows_throughout(const Kernel& kernel) {
  const ExprPool& pool = kernel.pool;
  const auto depends = dependences(pool);
  const std::vector<std::uint32_t>& axes = kernel.outputs[0].axes;
  const auto without_units_of = [&](std::span<const std::uint32_t> given) {
    std::vector<std::uint32_t> list;
    std::ranges::copy_if(given, std::back_inserter(list), [&](std::uint32_t a) { return !pool.extent(a).is(1); });
    std::ranges::sort(list);
    return list;
  };
  std::optional<std::vector<std::uint32_t>> rows;
  for (const ExprId id : reachable(pool, roots_of(kernel))) {
    if (pool[id].op != ExprOp::kReduce) continue;
    std::vector<std::uint32_t> mine = without_units_of(depends[id]);
    if (!std::ranges::all_of(mine, [&](std::uint32_t a) { return std::ranges::count(axes, a) != 0; })) return false;
    if (rows && *rows != mine) return false;
    rows = std::move(mine);
  }
  if (!rows || writes_half_bytes(kernel)) return false;
  const std::vector<std::uint32_t> all = without_units_of(axes);
  for (const KernelOutput& output : kernel.outputs) {
    std::vector<std::uint32_t> along;
    for (const IndexExpr& e : output.index)
      if (const auto v = e.as_variable()) along.push_back(v->id);
    along = without_units_of(along);
    if (along != all && along != *rows) return false;
  }
  return true;
}

}  // namespace fusec
