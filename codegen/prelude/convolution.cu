// Tiles whose elements are gathered one by one, by a table of what each step along the depth adds to a position.

//@ part depth_step
// An entry of the table: what the depth adds, and the bits of the taps, of which a thread's own word has none where the
// element is inside.
struct DepthStep {
  int add;
  unsigned taps;
};

//@ part copy_channels : copy_pipeline depth_step
// 16 bytes along the depth of one line; zeros where the tap is outside.
template <class Element>
__device__ __forceinline__ void copy_channels(unsigned to, const Element* from, DepthStep step, unsigned outside) {
  const bool there = !(step.taps & outside);
  copy_16_bytes(to, from + (there ? step.add : 0), there);
}

//@ part copy_placed_channels : copy_channels
// `taps` is where the tap's places are in the table of those, behind one another for a tile's lines; -1 is outside.
template <class Element>
__device__ __forceinline__ void copy_channels(unsigned to, const Element* from, DepthStep step, const int* places) {
  const int place = places[step.taps];
  copy_16_bytes(to, from + (place >= 0 ? place + step.add : 0), place >= 0);
}

//@ part gather_to_registers : depth_step
// 16 bytes along the depth of one line, as they are on their way: each element once it is stored.
template <class Element>
struct OnTheWay {
  Element v[16 / sizeof(Element)];
};
template <class Element>
__device__ __forceinline__ void gather(OnTheWay<Element>& to, const void* from, const DepthStep* steps,
                                       unsigned outside) {
  const Element* const elements = (const Element*)from;
#pragma unroll
  for (int i = 0; i < 16 / (int)sizeof(Element); i += 2) {
    const uint4 two = *(const uint4*)(steps + i);
    to.v[i] = 0, to.v[i + 1] = 0;
    if (!(two.y & outside)) to.v[i] = elements[(int)two.x];
    if (!(two.w & outside)) to.v[i + 1] = elements[(int)two.z];
  }
}
template <class Element>
__device__ __forceinline__ void store_gathered(void* to, const OnTheWay<Element>& from) {
  constexpr int kEach = 4 / sizeof(Element);
  unsigned w[4] = {};
#pragma unroll
  for (int i = 0; i < 4 * kEach; ++i) w[i / kEach] |= (unsigned)from.v[i] << (i % kEach * 8 * (int)sizeof(Element));
  *(uint4*)to = make_uint4(w[0], w[1], w[2], w[3]);
}

//@ part gather_placed : gather_to_registers
// `taps` is where the tap's places are in the table of those, behind one another for a tile's lines; -1 is outside.
template <class Element>
__device__ __forceinline__ void gather(OnTheWay<Element>& to, const void* from, const DepthStep* steps,
                                       const int* places) {
  const Element* const elements = (const Element*)from;
#pragma unroll
  for (int i = 0; i < 16 / (int)sizeof(Element); i += 2) {
    const uint4 two = *(const uint4*)(steps + i);
    const int first = places[two.y], second = places[two.w];
    to.v[i] = 0, to.v[i + 1] = 0;
    if (first >= 0) to.v[i] = elements[first + (int)two.x];
    if (second >= 0) to.v[i + 1] = elements[second + (int)two.z];
  }
}

//@ part gather_32_bits : depth_step
// One element, asynchronously; 0 where a tap is outside.
__device__ __forceinline__ void gather_one(unsigned to, const float* from, const DepthStep& step, unsigned outside) {
  const bool there = !(step.taps & outside);
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;"
               :
               : "r"(to), "l"(__cvta_generic_to_global(from + (there ? step.add : 0))), "r"(there ? 4 : 0));
}

//@ part gather_placed_32_bits : gather_32_bits
// `taps` is where the tap's places are in the table of those, behind one another for a tile's lines; -1 is outside.
__device__ __forceinline__ void gather_one(unsigned to, const float* from, const DepthStep& step, const int* places) {
  const int place = places[step.taps];
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;"
               :
               : "r"(to), "l"(__cvta_generic_to_global(from + (place >= 0 ? place + step.add : 0))),
                 "r"(place >= 0 ? 4 : 0));
}

//@ part copy_one : copy_pipeline
__device__ __forceinline__ void copy_one(unsigned to, const float* from, bool there) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;"
               :
               : "r"(to), "l"(__cvta_generic_to_global(from)), "r"(there ? 4 : 0));
}
