// Attention by warpgroups: what its two of them need besides products.

//@ part fence_tiles
// What this thread has stored in shared memory is there for wgmma, once the readers have been told.
__device__ __forceinline__ void fence_tiles() { asm volatile("fence.proxy.async.shared::cta;" : : : "memory"); }

//@ part store_matrices
// Four 8x8 matrices of 16-bit elements to shared memory, from fragments as mma leaves its sums, two to a word: lanes 0 to
// 7 have the addresses of the rows of the first matrix, 8 to 15 those of the second, and so on.
__device__ __forceinline__ void store_matrices(unsigned row, const unsigned (&m)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%2,%3,%4};"
               :
               : "r"(row), "r"(m[0]), "r"(m[1]), "r"(m[2]), "r"(m[3])
               : "memory");
}
