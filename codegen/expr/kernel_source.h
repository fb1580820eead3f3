// A scheduled kernel: its CUDA text and its launch parameters. Schedules create these values, the file emitter prints
// them, and the launch plan binds them to buffers.
#pragma once

#include <array>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ir/index_expr.h"
#include "schedule/plan/kernel_kind.h"

namespace fusec {

// A tensor as TMA sees it (CUtensorMap). Each copy moves one box. In shared memory the lines of a box follow one
// another; lines of 128, 64 or 32 bytes are swizzled. Elements outside the extents read as zero.
constexpr std::uint32_t swizzle_of_lines(std::uint32_t bytes) {
  return bytes == 128 || bytes == 64 || bytes == 32 ? bytes : 0;
}

struct TensorMapBoxes {
  int element_bytes = 2;
  IndexExpr offset = 0;            // elements from the start of the tensor; a multiple of 16 bytes
  std::vector<IndexExpr> extents;  // innermost first
  std::vector<IndexExpr> strides;  // elements; of dimension 1 and up; multiples of 16 bytes
  // Elements, innermost first; a line is 128, 64 or 32 bytes (swizzled), or 16 (not swizzled).
  std::vector<std::uint32_t> box;

  std::size_t rank() const { return extents.size(); }
  std::uint32_t swizzle_bytes() const { return swizzle_of_lines(box[0] * static_cast<std::uint32_t>(element_bytes)); }
  friend bool operator==(const TensorMapBoxes&, const TensorMapBoxes&) = default;
};

struct KernelParameter {
  enum class Kind : std::uint8_t {
    kTensor,     // a pointer to the tensor `value`
    kSize,       // an integer: `size`, over symbols, passed as int (bits 32) or long long (bits 64)
    kWorkspace,  // a pointer to `size` bytes of scratch memory; launches of a group with the same `scratch` share it
    kTensorMap,  // a 128-byte TMA descriptor of the tensor `value`, passed by value: `boxes`
  };
  Kind kind = Kind::kTensor;
  std::string name;           // as in the source
  ValueId value = kNone;      // kTensor
  bool written = false;       // kTensor, kTensorMap: an output
  bool address_only = false;  // kTensor: the kernel uses the pointer's value but never dereferences it
  IndexExpr size;             // kSize, kWorkspace
  int bits = 32;              // kSize
  std::uint32_t scratch = 0;  // kWorkspace: index of the scratch memory, per schedule; per plan after lowering
  bool counters = false;      // kWorkspace: zero before and after each kernel, so all kernels of a plan share them
  TensorMapBoxes boxes = {};  // kTensorMap
};

struct KernelSource {
  // Indices of two parameters that may share one buffer (codegen/expr/in_place.h).
  struct InPlace {
    std::uint32_t read, written;
  };

  // The candidates that --tune may measure.
  struct Tuning {
    std::string key;                      // key in the tuning database; "" if there is nothing to measure
    std::vector<std::string> candidates;  // best predicted first
  };

  std::string name;  // `text` contains the placeholder `@KERNEL@`; the file emitter assigns final names
  std::string text;  // `extern "C" __global__ ... { ... }` and the comment above it, without the prelude
  std::optional<double> compile_ms;  // predicted NVRTC time of `text`, set by limit_unrolling
  std::string work;                  // a sentence on what a thread or a block makes; "" where the schedule does not say
  // The pieces of `text`, for kernels that may become part of a horizontal fusion (codegen/dispatch/horizontal_fusion);
  // "" otherwise. `declarations` has one entry per parameter, such as "const float* __restrict__ ".
  std::string comment, body;
  std::vector<std::string> declarations;
  std::set<std::string> prelude;  // prelude parts that the text uses: "bf16", "fp8_e4m3", "block_reduce"
  std::vector<KernelParameter> parameters;
  // Tensors and sizes that are passed through a table (codegen/expr/parameter_table.h). parameters[0] points to the
  // table.
  std::vector<KernelParameter> table_parameters;
  std::array<IndexExpr, 3> grid{1, 1, 1};  // over symbols; a grid with a 0 is not launched
  std::array<int, 3> block{1, 1, 1};
  std::array<int, 3> cluster{1, 1, 1};
  int resident_blocks = 1;       // co-resident blocks that wait for each other, in ticket order
  IndexExpr dynamic_shared = 0;  // bytes
  std::vector<InPlace> in_place;
  // The kernel copies its operand to its result, and later kernels overwrite parts of the result. The copy does nothing
  // if both share one buffer.
  bool copies_for_update = false;
  bool owns_rows = false;  // row kernels: each row is fully read by its own thread or group before any of it is stored
  bool rows_stay_resident = false;        // row kernels: every value that a later loop reads again stays on chip
  bool unaligned_vectors = false;         // reads along the last axis use vectors at any alignment
  int min_blocks_per_multiprocessor = 0;  // second argument of __launch_bounds__; 0: none
  bool has_named_registers = false;       // uses named PTX registers: the body may occur at most once per function
  Tuning tuning = {};
  Schedule schedule = {};  // that made it
};

}  // namespace fusec
