// A scheduled kernel: its CUDA text and how it is launched. Schedules make these; the file emitter prints them, and the
// launch plan says with which buffers they run.
#pragma once

#include <array>
#include <set>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ir/index_expr.h"

namespace fusec {

// How TMA sees a tensor (CUtensorMap): boxes of it lie in shared memory as their lines follow one another, swizzled
// over a line; what is outside of the extents is zero there.
constexpr std::uint32_t swizzle_of_lines(std::uint32_t bytes) {
  return bytes == 128 || bytes == 64 || bytes == 32 ? bytes : 0;
}

struct TensorMapBoxes {
  int element_bytes = 2;
  IndexExpr offset = 0;            // elements from the tensor's beginning, a multiple of 16 bytes
  std::vector<IndexExpr> extents;  // innermost first
  std::vector<IndexExpr> strides;  // elements, of the second dimension and those behind it; multiples of 16 bytes
  std::vector<std::uint32_t> box;  // a line is 128 bytes, or 64, 32, or 16 that are not swizzled

  std::size_t rank() const { return extents.size(); }
  std::uint32_t swizzle_bytes() const { return swizzle_of_lines(box[0] * static_cast<std::uint32_t>(element_bytes)); }
  friend bool operator==(const TensorMapBoxes&, const TensorMapBoxes&) = default;
};

struct KernelParameter {
  enum class Kind : std::uint8_t {
    kTensor,     // a pointer to the tensor `value`
    kSize,       // an integer: `size`, over symbols, passed as int (bits 32) or long long (bits 64)
    kWorkspace,  // a pointer to scratch memory of `size` bytes; launches of a group that name one `scratch` share it
    kTensorMap,  // 128 bytes that describe the tensor `value` to TMA, by value: `boxes`
  };
  Kind kind = Kind::kTensor;
  std::string name;           // as in the source
  ValueId value = kNone;      // kTensor
  bool written = false;       // kTensor, kTensorMap: an output
  bool address_only = false;  // kTensor: the pointer is passed on, what it points to is not touched
  IndexExpr size;             // kSize, kWorkspace
  int bits = 32;              // kSize
  std::uint32_t scratch = 0;  // kWorkspace: which scratch memory (of a schedule's kernels; of the plan once lowered)
  TensorMapBoxes boxes = {};  // kTensorMap
};

struct KernelSource {
  // Two of `parameters`: what is written may lie where what is read lies (codegen/expr/in_place.h).
  struct InPlace {
    std::uint32_t read, written;
  };

  // What --tune may measure of it.
  struct Tuning {
    std::string key;                      // as the tuning database has it; "" where nothing is measured
    std::vector<std::string> candidates;  // the best first, as predicted
  };

  std::string name;  // a placeholder is `@KERNEL@` in `text`; the file emitter gives kernels their final names
  std::string text;  // `extern "C" __global__ ... { ... }` with the comment above it, without the prelude
  // What `text` is made of, for a kernel that stands in another one (codegen/dispatch/horizontal_fusion); "" where it
  // never does: the comment, how each of `parameters` is declared ("const float* __restrict__ "), the body.
  std::string comment, body;
  std::vector<std::string> declarations;
  std::set<std::string>
      prelude;  // names of the prelude's parts that the text uses ("bf16", "fp8_e4m3", "block_reduce")
  std::vector<KernelParameter> parameters;
  // Tensors and sizes that come through a table instead (codegen/expr/parameter_table.h), whose pointer is
  // parameters[0].
  std::vector<KernelParameter> table_parameters;
  std::array<IndexExpr, 3> grid{1, 1, 1};  // over symbols; a grid with a 0 is not launched
  std::array<int, 3> block{1, 1, 1};
  std::array<int, 3> cluster{1, 1, 1};
  int resident_blocks = 1;       // so many blocks wait for one another, in the order in which they begin
  IndexExpr dynamic_shared = 0;  // bytes
  std::vector<InPlace> in_place;
  // Copies its operand to its result, which later kernels change in places: nothing where both are one buffer.
  bool copies_for_update = false;
  bool owns_rows = false;  // of rows: who reads of a row has read it before any of it is stored, itself or its team
  bool rows_stay_resident = false;  // of rows: all is kept that later loops over a row read again
  bool unaligned_vectors = false;   // what is read along its last axis is read in vectors wherever it begins and ends
  int min_blocks_per_multiprocessor = 0;  // that registers of a multiprocessor must do for; 0: as ptxas likes
  bool has_named_registers = false;       // PTX registers by name: its body stands in one function at most once
  Tuning tuning = {};
  std::string schedule;  // "pointwise", "row_reduction", "contraction_mma", ... for reports
};

}  // namespace fusec
