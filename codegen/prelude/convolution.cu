// Tiles whose elements are gathered one by one, by a table of what each step along the depth adds to a position.

//@ part gathered : copy_pipeline swizzle
// An entry of the table: what the depth adds, and the bits of the taps, of which a thread's own word has none where the
// element is inside.
struct DepthStep {
  int add;
  unsigned taps;
};

//@ part copy_channels : gathered
// 16 bytes along the depth of one line; zeros where the tap is outside.
template <class Element>
__device__ __forceinline__ void copy_channels(unsigned to, const Element* from, DepthStep step, unsigned outside) {
  const bool there = !(step.taps & outside);
  copy_16_bytes(to, from + (there ? step.add : 0), there);
}

//@ part gather_16_bits : gathered
// Eight along the depth of one line, as they are on their way: each element once it is stored.
struct EightOnTheWay {
  unsigned short v[8];
};
__device__ __forceinline__ EightOnTheWay gather_eight(const unsigned short* from, const DepthStep* steps,
                                                      unsigned outside) {
  EightOnTheWay eight;
#pragma unroll
  for (int i = 0; i < 8; i += 2) {
    const uint4 two = *(const uint4*)(steps + i);
    eight.v[i] = 0, eight.v[i + 1] = 0;
    if (!(two.y & outside)) eight.v[i] = from[(int)two.x];
    if (!(two.w & outside)) eight.v[i + 1] = from[(int)two.z];
  }
  return eight;
}
__device__ __forceinline__ void store_eight(void* to, const EightOnTheWay& eight) {
  const unsigned short* v = eight.v;
  *(uint4*)to = make_uint4(v[0] | v[1] << 16, v[2] | v[3] << 16, v[4] | v[5] << 16, v[6] | v[7] << 16);
}

//@ part gather_32_bits : gathered
// One element, asynchronously; 0 where a tap is outside.
__device__ __forceinline__ void gather_one(unsigned to, const float* from, const DepthStep& step, unsigned outside) {
  const bool there = !(step.taps & outside);
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;"
               :
               : "r"(to), "l"(__cvta_generic_to_global(from + (there ? step.add : 0))), "r"(there ? 4 : 0));
}

//@ part copy_one : copy_pipeline
__device__ __forceinline__ void copy_one(unsigned to, const float* from, bool there) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;"
               :
               : "r"(to), "l"(__cvta_generic_to_global(from)), "r"(there ? 4 : 0));
}
