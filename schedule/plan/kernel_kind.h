// The schedule of a kernel, and the unit that multiplies. Conditions compare these values, not names. A plan has them
// (KernelPlan::schedule), each emitter sets them (KernelSource::schedule), and a test holds one against the other.
#pragma once

#include <cstdint>
#include <string>

namespace fusec {

enum class KernelKind : std::uint8_t {
  kPointwise,
  kStagedCopy,
  kDirect,  // one thread per element, with a loop per reduction
  // Windows
  kSlidingWindow,
  kNhwcStencil,
  kNchwStencil,
  kGroupedImplicitGemm,
  // Reductions
  kRowReduction,
  kColumnReduction,
  kCounters,
  // Contractions
  kSkinnyGemm,
  kGemm,
  kSplitKReduction,
  kConvolution,
  kContraction,
  kRowGemm,
  kAttention,
  // Ops that are no expression of their index
  kScan,
  kSort,
  kScatter,
  kIndexPut,
  kUnpack,
  kPack,
  // Launches
  kSideBySide,
  kParameterTable
};

enum class MatrixUnit : std::uint8_t { kScalar, kMma, kWarpgroup };

constexpr MatrixUnit mma_if(bool tensor_cores) {
  return tensor_cores ? MatrixUnit::kMma : MatrixUnit::kScalar;
}

struct Schedule {
  KernelKind kind = KernelKind::kDirect;
  MatrixUnit unit = MatrixUnit::kScalar;

  bool operator==(const Schedule&) const = default;
};

std::string name(const Schedule& schedule);  // for reports: "row_reduction", "gemm_mma"

// True if each element is stored by the thread that also loads its other operands, at that time. Accumulated operands
// are excepted.
bool finishes_elements(KernelKind kind);

}  // namespace fusec
