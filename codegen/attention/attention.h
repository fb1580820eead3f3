// Emits attention as one kernel (flash attention). A block takes a tile of query rows of one head and streams keys and
// values through shared memory tile by tile. The softmax is updated online, so scores need no global memory.
//
//   for each tile of keys:  s = q * k;  m' = max(m, s);  shrink = exp(m - m');  w = exp(s - m')
//                           sum = sum * shrink + w * v;  total = total * shrink + w
//   result = sum / total
//
// If queries, keys and values share one 16-bit dtype, tensor cores compute both products. A warp has 16 or 32 rows, and
// the weights stay in registers between the products. On sm_90a, with enough rows and operands that TMA can copy,
// warpgroups of 64 rows are used (attention_warpgroup.cpp). Other dtypes use fused multiply-adds, with eight lanes per
// row. The prologue (rope, scales, grouped heads) is computed while a tile is loaded, masks, caps and biases on the
// scores in registers, and the epilogue on the result.
#pragma once

#include <vector>

#include "codegen/expr/kernel_source.h"
#include "schedule/attention/attention_form.h"
#include "schedule/attention/attention_tiles.h"
#include "schedule/target/target.h"

namespace fusec {

// Returns one kernel. For few rows and many keys (decoding) it splits the keys of a row among several blocks
// (split-KV), and the last one to finish combines their partial results in the order of the keys. Where outputs have an
// element per key, a second kernel does.
std::vector<KernelSource> attention(const Attention& form, const AttentionCandidates& candidates, const Graph& graph,
                                    const Target& target);

}  // namespace fusec
