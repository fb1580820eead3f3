#include "codegen/expr/in_place.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string_view>

#include "analysis/kernel/loads.h"
#include "ir/type.h"

namespace fusec {
namespace {

std::uint32_t parameter_of(const KernelSource& source, ValueId value, bool written) {
  for (std::uint32_t i = 0; i < source.parameters.size(); ++i) {
    const KernelParameter& p = source.parameters[i];
    const bool is =
        p.kind == KernelParameter::Kind::kTensor || (written && p.kind == KernelParameter::Kind::kTensorMap);
    if (is && p.value == value && p.written == written) return i;
  }
  return kNone;
}

// Replaces axes of extent 1 by 0.
IndexExpr without_axes_of_one(const IndexExpr& place, const ExprPool& pool) {
  return simplify(substitute(place,
                             [&](Variable v) -> std::optional<IndexExpr> {
                               if (v.kind != Variable::Kind::kAxis || !pool.extent(v.id).is(1)) return std::nullopt;
                               return IndexExpr(0);
                             }),
                  pool.bounds());
}

// True if each point of the kernel stores its own element.
bool has_element_at_every_point(const Kernel& kernel, const KernelOutput& output) {
  std::vector<IndexExpr> extents;
  for (const std::uint32_t axis : output.axes) extents.push_back(kernel.pool.extent(axis));
  return element_count(extents) == element_count(output.type.shape);
}

std::vector<ExprId> loads_of(ValueId operand, std::span<const ExprId> roots, const ExprPool& pool) {
  std::vector<ExprId> loads = reachable(pool, roots);
  std::erase_if(loads, [&](ExprId id) { return pool[id].op != ExprOp::kLoad || pool[id].source != operand; });
  return loads;
}

// True if every load of `operand` happens before the output is stored. Loads that only another output needs may come
// later. In row kernels, the operands of reductions are loaded before; in other kernels such a load is at another
// position than the element's.
bool is_loaded_for(const Kernel& kernel, const KernelOutput& output, ValueId operand) {
  const std::vector<ExprId> needed = loads_of(operand, std::span(&output.expr, 1), kernel.pool);
  const ExprPool& pool = kernel.pool;
  const auto reduces = [&](ExprId id) { return pool[id].op == ExprOp::kReduce; };
  return std::ranges::all_of(reachable(pool, roots_of(kernel), reduces), [&](ExprId id) {
    const ExprNode& node = pool[id];
    return node.op != ExprOp::kLoad || node.source != operand || std::ranges::find(needed, id) != needed.end();
  });
}

// True if the row's element of this operand is loaded exactly once, before the output is known. That holds if a
// reduction depends on it, because its threads wait for each other.
bool is_loaded_before(const Kernel& kernel, const KernelOutput& output, ValueId operand) {
  if (loads_of(operand, roots_of(kernel), kernel.pool).size() != 1) return false;
  return std::ranges::any_of(reachable(kernel.pool, std::span(&output.expr, 1)), [&](ExprId id) {
    return kernel.pool[id].op == ExprOp::kReduce && !loads_of(operand, std::span(&id, 1), kernel.pool).empty();
  });
}

// True if each row of the kernel stores its own element, and nothing reads this operand later.
bool has_element_of_row(const Kernel& kernel, const KernelOutput& output, ValueId operand, bool of_one_block) {
  IndexExpr points = 1;
  std::vector<std::uint32_t> named;
  for (const IndexExpr& index : output.index)
    for (const Variable v : variables_of(index))
      if (v.kind == Variable::Kind::kAxis && std::ranges::find(named, v.id) == named.end()) {
        named.push_back(v.id);
        points *= kernel.pool.extent(v.id);
      }
  if (points != element_count(output.type.shape)) return false;
  return (of_one_block && is_loaded_before(kernel, output, operand)) ||
         std::ranges::none_of(kernel.outputs, [&](const KernelOutput& other) {
           return other.value != output.value && !loads_of(operand, std::span(&other.expr, 1), kernel.pool).empty();
         });
}

// In a row kernel: reduced axis -> the output column that it runs along, for reductions over whole rows. Reductions of
// another length match no output column.
std::map<std::uint32_t, std::uint32_t> columns_of_reductions(const Kernel& kernel, const std::vector<ExprId>& nodes) {
  const ExprPool& pool = kernel.pool;
  const auto depends = dependences(pool);
  const auto with_extent = [&](std::vector<std::uint32_t> axes) {
    std::erase_if(axes, [&](std::uint32_t a) { return pool.extent(a).is(1); });
    return axes;
  };
  std::map<std::uint32_t, std::uint32_t> columns;
  for (const ExprId id : nodes) {
    if (pool[id].op != ExprOp::kReduce) continue;
    std::vector<std::uint32_t> of_row = kernel.outputs.at(0).axes;
    std::erase_if(of_row, [&](std::uint32_t a) { return std::ranges::binary_search(depends[id], a); });
    of_row = with_extent(std::move(of_row));
    const std::vector<std::uint32_t> reduced = with_extent(pool[id].axes);
    const bool alike = std::ranges::equal(
        reduced, of_row, [&](std::uint32_t a, std::uint32_t b) { return pool.extent(a) == pool.extent(b); });
    if (!alike) continue;
    for (std::size_t i = 0; i < reduced.size(); ++i)
      if (columns.try_emplace(reduced[i], of_row[i]).first->second != of_row[i]) return {};
  }
  return columns;
}

}  // namespace

std::vector<KernelSource::InPlace> find_in_place(const Kernel& kernel, const Graph& graph, const KernelSource& source,
                                                 bool alone) {
  std::vector<KernelSource::InPlace> pairs;
  if (!(finishes_elements(source.schedule.kind) || source.owns_rows) || !source.table_parameters.empty()) return pairs;
  const std::vector<ExprId> nodes = reachable(kernel.pool, roots_of(kernel));
  const bool of_one_block = alone && source.cluster == std::array{1, 1, 1} && source.resident_blocks == 1;
  std::map<std::uint32_t, std::uint32_t> columns;
  if (source.owns_rows) columns = columns_of_reductions(kernel, nodes);
  const auto loaded_at = [&](const ExprNode& load) {
    const IndexExpr at = substitute(
        flat_index(graph.tensor(load.source).shape, load.indices), [&](Variable v) -> std::optional<IndexExpr> {
          const auto column = v.kind == Variable::Kind::kAxis ? columns.find(v.id) : columns.end();
          return column == columns.end() ? std::nullopt : std::optional(IndexExpr::axis(column->second));
        });
    return without_axes_of_one(at, kernel.pool);
  };
  for (const KernelOutput& output : kernel.outputs) {
    if (bits(output.type.dtype) < 8) continue;
    const bool everywhere = has_element_at_every_point(kernel, output);
    if (!everywhere && !source.owns_rows) continue;
    const IndexExpr stored = without_axes_of_one(flat_index(output.type.shape, output.index), kernel.pool);
    for (const ValueId input : inputs_of(kernel)) {
      const TensorType& type = graph.tensor(input);
      if (type.dtype != output.type.dtype || element_count(type.shape) != element_count(output.type.shape)) continue;
      if (everywhere ? !is_loaded_for(kernel, output, input) : !has_element_of_row(kernel, output, input, of_one_block))
        continue;
      const bool same_place = std::ranges::all_of(nodes, [&](ExprId id) {
        const ExprNode& node = kernel.pool[id];
        return node.op != ExprOp::kLoad || node.source != input || loaded_at(node) == stored;
      });
      const std::uint32_t read = parameter_of(source, input, false), written = parameter_of(source, output.value, true);
      if (same_place && read != kNone && written != kNone) pairs.push_back({read, written});
    }
  }
  return pairs;
}

bool has_indirect_loads(const Kernel& kernel) {
  return std::ranges::any_of(reachable(kernel.pool, roots_of(kernel)), [&](ExprId id) {
    const ExprNode& node = kernel.pool[id];
    return node.op == ExprOp::kLoad && !values_in(node).empty();
  });
}

// The kernel's parameter list follows the functions of its parts and ends where the body begins.
void allow_alias(KernelSource& source, std::span<const KernelSource::InPlace> pairs) {
  constexpr std::string_view kRestrict = "__restrict__ ";
  std::set<std::string_view> names;
  for (const KernelSource::InPlace& pair : pairs)
    for (const std::uint32_t i : {pair.read, pair.written}) names.insert(source.parameters[i].name);
  const std::size_t kernel = source.text.find("__global__"), body = source.text.find(") {", kernel);
  const std::string_view text = source.text;
  std::string list;
  std::size_t done = kernel;
  for (std::size_t at = text.find(kRestrict, kernel); at < body; at = text.find(kRestrict, at + 1)) {
    const std::size_t name = at + kRestrict.size();
    if (!names.contains(text.substr(name, text.find_first_of(",)", name) - name))) continue;
    list += text.substr(done, at - done);
    done = name;
  }
  if (done != kernel) source.text = std::string(text.substr(0, kernel)) + list + std::string(text.substr(done));
}

}  // namespace fusec
