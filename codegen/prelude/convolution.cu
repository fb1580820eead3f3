// Gathered operand tiles of convolutions: a table has the offset that each step along K adds to a position.

//@ part k_offset_entry
// Entry of the K offset table. `add`: offset in elements. `taps`: the bits of its taps; the element is 0 if a line has
// any of them in `outside`, its taps outside of the image. With a position table: the index of the tap's first line.
struct KOffsetEntry {
  int add;
  unsigned taps;
};

//@ part copy_channels : copy_pipeline k_offset_entry
// Copies 16 bytes along K of one line to shared memory asynchronously; zeros if a tap is in `outside`.
template <class Element>
__device__ __forceinline__ void copy_channels(unsigned to, const Element* from, KOffsetEntry step, unsigned outside) {
  const bool there = !(step.taps & outside);
  copy_16_bytes(to, from + (there ? step.add : 0), there);
}

//@ part copy_placed_channels : copy_channels
// Copies 16 bytes along K of one line to shared memory asynchronously. places[step.taps] is the line's position for the
// tap, or -1 outside of the image.
template <class Element>
__device__ __forceinline__ void copy_channels(unsigned to, const Element* from, KOffsetEntry step, const int* places) {
  const int place = places[step.taps];
  copy_16_bytes(to, from + (place >= 0 ? place + step.add : 0), place >= 0);
}

//@ part gather_to_registers : k_offset_entry
// 16 bytes along K of one line in registers: separate elements until the store, so that their loads stay in flight.
template <class Element>
struct GatheredElements {
  Element v[16 / sizeof(Element)];
};
template <class Element>
__device__ __forceinline__ void gather(GatheredElements<Element>& to, const void* from, const KOffsetEntry* steps,
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
__device__ __forceinline__ void store_gathered(void* to, const GatheredElements<Element>& from) {
  constexpr int kEach = 4 / sizeof(Element);
  unsigned w[4] = {};
#pragma unroll
  for (int i = 0; i < 4 * kEach; ++i) w[i / kEach] |= (unsigned)from.v[i] << (i % kEach * 8 * (int)sizeof(Element));
  *(uint4*)to = make_uint4(w[0], w[1], w[2], w[3]);
}

//@ part gather_placed : gather_to_registers
// Gathers 16 bytes along K of one line to registers. places[taps] is the line's position for a tap, or -1 outside of
// the image.
template <class Element>
__device__ __forceinline__ void gather(GatheredElements<Element>& to, const void* from, const KOffsetEntry* steps,
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

//@ part gather_32_bits : k_offset_entry
// Copies one element to shared memory asynchronously; 0 if a tap is in `outside`.
__device__ __forceinline__ void gather_one(unsigned to, const float* from, const KOffsetEntry& step, unsigned outside) {
  const bool there = !(step.taps & outside);
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;"
               :
               : "r"(to), "l"(__cvta_generic_to_global(from + (there ? step.add : 0))), "r"(there ? 4 : 0));
}

//@ part gather_32_by_position : gather_32_bits
// Copies one element to shared memory asynchronously. places[step.taps] is the line's position for the tap, or -1
// outside of the image.
__device__ __forceinline__ void gather_one(unsigned to, const float* from, const KOffsetEntry& step,
                                           const int* places) {
  const int place = places[step.taps];
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;"
               :
               : "r"(to), "l"(__cvta_generic_to_global(from + (place >= 0 ? place + step.add : 0))),
                 "r"(place >= 0 ? 4 : 0));
}

//@ part copy_one : copy_pipeline
// Copies one element to shared memory asynchronously; 0 if !there.
__device__ __forceinline__ void copy_one(unsigned to, const float* from, bool there) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;"
               :
               : "r"(to), "l"(__cvta_generic_to_global(from)), "r"(there ? 4 : 0));
}
