// Shared memory: dynamic shared memory, shared addresses, and vector accesses.

//@ part shared_address
__device__ __forceinline__ unsigned shared_address(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }

//@ part dynamic_shared
// Dynamic shared memory, with its size set at launch.
extern __shared__ __align__(16) unsigned char dynamic_shared[];

//@ part dynamic_tiles
// Dynamic shared memory, aligned for tiles with the 128-byte swizzle, which repeats every 1024 bytes.
extern __shared__ __align__(1024) unsigned char dynamic_tiles[];

//@ part neighbours
// kCount elements that are read or written by one vector access.
template <class T, int kCount>
struct alignas(sizeof(T) * kCount) Neighbours {
  T v[kCount];
};
