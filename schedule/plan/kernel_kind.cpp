#include "schedule/plan/kernel_kind.h"

#include <iterator>
#include <string_view>

namespace fusec {
namespace {

struct KindTraits {
  KernelKind kind;
  std::string_view name;
  bool finishes_elements = false;
};

constexpr KindTraits kTraits[] = {
    {KernelKind::kPointwise, "pointwise", true},
    {KernelKind::kStagedCopy, "staged_copy"},
    {KernelKind::kDirect, "direct", true},
    {KernelKind::kSlidingWindow, "sliding_window"},
    {KernelKind::kNhwcStencil, "nhwc_stencil"},
    {KernelKind::kNchwStencil, "nchw_stencil"},
    {KernelKind::kGroupedImplicitGemm, "grouped_implicit_gemm", true},
    {KernelKind::kRowReduction, "row_reduction"},
    {KernelKind::kColumnReduction, "column_reduction"},
    {KernelKind::kCounters, "counters"},
    {KernelKind::kSkinnyGemm, "skinny_gemm", true},
    {KernelKind::kGemm, "gemm", true},
    {KernelKind::kSplitKReduction, "split_k_reduction", true},
    {KernelKind::kConvolution, "convolution", true},
    {KernelKind::kContraction, "contraction", true},
    {KernelKind::kRowGemm, "row_gemm"},
    {KernelKind::kAttention, "attention"},
    {KernelKind::kScan, "scan"},
    {KernelKind::kSort, "sort"},
    {KernelKind::kScatter, "scatter"},
    {KernelKind::kIndexPut, "index_put"},
    {KernelKind::kUnpack, "unpack"},
    {KernelKind::kPack, "pack"},
    {KernelKind::kSideBySide, "side_by_side"},
    {KernelKind::kParameterTable, "parameter_table"},
};

// The table has a row for each kind, in their order.
constexpr bool is_complete() {
  for (std::size_t i = 0; i < std::size(kTraits); ++i)
    if (kTraits[i].kind != static_cast<KernelKind>(i)) return false;
  return std::size(kTraits) == static_cast<std::size_t>(KernelKind::kParameterTable) + 1;
}
static_assert(is_complete());

const KindTraits& traits(KernelKind kind) {
  return kTraits[static_cast<std::size_t>(kind)];
}

}  // namespace

std::string name(const Schedule& schedule) {
  const char* const unit = schedule.unit == MatrixUnit::kMma         ? "_mma"
                           : schedule.unit == MatrixUnit::kWarpgroup ? "_wgmma"
                                                                     : "";
  return std::string(traits(schedule.kind).name) + unit;
}

bool finishes_elements(KernelKind kind) {
  return traits(kind).finishes_elements;
}

}  // namespace fusec
