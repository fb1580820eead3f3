#include "schedule/lowering/separate_rows.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "schedule/kernel_forms.h"
#include "schedule/plan/kernel_planner.h"
#include "schedule/reduction/blocks_per_row.h"
#include "schedule/reduction/row_form.h"

namespace fusec {
namespace {

// Shorter rows are read again from L1, and their pieces of the result are only a few sectors.
constexpr std::int64_t kMinSeparateRow = 32;

// The part of a tensor that is read, as a range per dimension.
struct Region {
  ValueId tensor;
  std::vector<Range> dims;

  bool meets(const Region& other) const {
    if (tensor != other.tensor) return false;
    for (std::size_t d = 0; d < dims.size(); ++d)
      if (dims[d].max < other.dims[d].min || other.dims[d].max < dims[d].min) return false;
    return true;
  }
};

// Returns the regions that reductions read, without those that all rows share.
std::vector<Region> regions_reduced(const RowForm& form) {
  const ExprPool& pool = form.kernel.pool;
  const auto depends = dependences(pool);
  std::vector<Region> regions;
  for (const ExprId id : reachable(pool, form.reductions)) {
    const ExprNode& n = pool[id];
    if (n.op != ExprOp::kLoad || (!form.rows.empty() && !std::ranges::any_of(form.rows, [&](std::uint32_t row) {
          return std::ranges::binary_search(depends[id], row);
        })))
      continue;
    Region region{.tensor = n.source, .dims = {}};
    for (const IndexExpr& e : n.indices) region.dims.push_back(range_of(e, pool.bounds()));
    regions.push_back(std::move(region));
  }
  return regions;
}

// Returns whether all reduced rows are long, and fit one block.
bool fit_one_block(const RowForm& form) {
  const ExprPool& pool = form.kernel.pool;
  return std::ranges::all_of(form.reductions, [&](ExprId r) {
    const std::int64_t length = value_at_hint(point_count(pool, pool[r].axes), pool.bounds().symbols);
    return length >= kMinSeparateRow && length <= kOnChipOfBlock;
  });
}

}  // namespace

bool are_separate_rows(const std::vector<LoweredUnit>& parts, const Graph& graph) {
  std::vector<Region> before;
  for (const LoweredUnit& part : parts) {
    const auto form = part.form ? part.form : std::make_shared<const FormOfKernel>(form_of(part.kernel));
    if (form->form == KernelForm::kPointwise) continue;
    if (form->form != KernelForm::kRowReduction) return false;
    const RowForm* rows = row_form_of(part.kernel, *form, graph);
    if (!rows || !fit_one_block(*rows)) return false;
    const std::vector<Region> reduced = regions_reduced(*rows);
    for (const Region& region : reduced)
      if (std::ranges::any_of(before, [&](const Region& other) { return region.meets(other); })) return false;
    before.insert(before.end(), reduced.begin(), reduced.end());
  }
  return true;
}

}  // namespace fusec
