// Attention as one kernel: a block takes a tile of query rows of one head, keys and values stream through shared memory
// tile by tile, and the softmax is kept as it goes, so that no score ever is in memory.
//
//   for each tile of keys:  score = query * keys;  weight = exp(score - maximum so far);  sum = sum * shrink + weight *
//   values out = sum / total
//
// Where query, key and value are of one 16-bit format, both products run on tensor cores (a warp has 16 or 32 rows, the
// weights go from one product to the next in registers; on sm_90a, where TMA can copy values and there are rows
// enough, warpgroups have 64: attention_warpgroup.cpp); else with fused multiply-adds (eight lanes share their rows).
// What stands before the products (rope, scales, grouped heads) is computed while a tile is loaded, what stands between
// them (masks, caps, biases) on the scores in registers, what stands after on the result.
#pragma once

#include <vector>

#include "codegen/expr/kernel_source.h"
#include "schedule/attention/attention_form.h"
#include "schedule/target/target.h"

namespace fusec {

// Where few rows look at many keys (decoding), several blocks share the keys of a row, and a second kernel combines
// what they leave, in the order of the keys.
std::vector<KernelSource> attention(const Attention& form, const Graph& graph, const Target& target);

}  // namespace fusec
