// Attention by warpgroups: stores to shared memory that wgmma or wide stores read.

//@ part fence_tiles
// Makes this thread's stores to shared memory visible to wgmma (async proxy). Call it before the readers are signaled.
__device__ __forceinline__ void fence_tiles() { asm volatile("fence.proxy.async.shared::cta;" : : : "memory"); }

//@ part store_matrices
// Stores four 8x8 matrices of 16-bit elements, in the layout of mma accumulators, to shared memory (stmatrix). Lanes 8
// i to 8 i + 7 pass the addresses of the rows of matrix i.
__device__ __forceinline__ void store_matrices(unsigned row, const unsigned (&m)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%2,%3,%4};"
               :
               : "r"(row), "r"(m[0]), "r"(m[1]), "r"(m[2]), "r"(m[3])
               : "memory");
}
