// Strips of lines that go through shared memory as they lie in memory.

//@ part line_strips : words words64 shared_address copied_vectors
// Where they are: lines are kPitch bytes apart, kGroup of them kGap bytes more, and each begins as many bytes behind
// its place as in memory behind a sector; of kRing bytes, if that is not 0, what is further along the line takes the
// place of what is behind.
template <int kRing, int kPitch, int kGroup, int kGap>
struct Strip {
  unsigned char* begin;
  int first_behind, each_behind;  // a sector: the first line, and any line more than the one before it

  __device__ __forceinline__ int behind(int line) const { return (first_behind + line * each_behind) & 31; }
  static __device__ __forceinline__ int slot(int line) {
    return line * kPitch + (kGap == 0 ? 0 : (int)((unsigned)line / kGroup) * kGap);
  }
  static __device__ __forceinline__ int in_ring(int at) { return kRing == 0 ? at : at & (kRing - 1); }
};
// The sectors of kStep bytes that follow in each of the lines, from the `step`th of these steps on, up to `length`
// bytes, threads that are served together kApart lines apart; `end` is the tensor's, beyond which no vector reaches
// where kWhole.
template <int kStep, int kThreads, int kApart, bool kWhole, int kRing, int kPitch, int kGroup, int kGap>
__device__ __forceinline__ void copy_step(const Strip<kRing, kPitch, kGroup, kGap>& strip, const unsigned char* first,
                                          long long line_bytes, int lines, int step, int length, const void* end) {
  constexpr int kPieces = kStep / 16, kLines = kThreads / kPieces;
  constexpr int kNeighbours = 8 / kPieces;  // are served with one another
  const int thread = threadIdx.x / kPieces;
  const int first_line = thread / (kNeighbours * kApart) * (kNeighbours * kApart) + thread % kNeighbours * kApart +
                         thread / kNeighbours % kApart;
  const int behind = strip.behind(first_line), begun = behind > 0 ? 32 : 0;
  const int to = min((step + 1) * kStep + begun, behind + length);
  for (int at = (step > 0 ? step * kStep + begun : 0) + threadIdx.x % kPieces * 16; at < to; at += kStep) {
    unsigned slot = shared_address(strip.begin) + strip.slot(first_line) + strip.in_ring(at);
    const unsigned char* from = first + first_line * line_bytes - behind + at;
#pragma unroll 4
    for (int line = first_line; line < lines; line += kLines, slot += strip.slot(kLines), from += kLines * line_bytes)
      if (kWhole)
        copy_vector(slot, from);
      else
        copy_vector(slot, from, end);
  }
}
// All of the lines, of which none is more than kPieces vectors; `begin` gives the element of the tensor in which a line
// begins.
template <int kPieces, int kThreads, bool kWhole, int kPitch, int kGroup, int kGap, class Element, class Begin>
__device__ __forceinline__ void copy_lines(const Strip<0, kPitch, kGroup, kGap>& strip, const Element* tensor,
                                           int lines, int length, const void* end, Begin begin) {
#pragma unroll 2
  for (int piece = threadIdx.x; piece < lines * kPieces; piece += kThreads) {
    const int line = (unsigned)piece / kPieces, at = (piece - line * kPieces) * 16;
    const auto first = begin(line);
    const int behind = (int)(first * sizeof(Element)) & 31;
    if (at >= behind + length) continue;
    const unsigned char* const from = (const unsigned char*)(tensor + first) - behind + at;
    if (kWhole)
      copy_vector(shared_address(strip.begin) + strip.slot(line) + at, from);
    else
      copy_vector(shared_address(strip.begin) + strip.slot(line) + at, from, end);
  }
}
// Four words' first bytes; nothing else is in these.
__device__ __forceinline__ Words<1> word_of_bytes(const Words<1> (&bytes)[4]) {
  return {__byte_perm(__byte_perm(bytes[0].w[0], bytes[1].w[0], 0x4040),
                      __byte_perm(bytes[2].w[0], bytes[3].w[0], 0x4040), 0x5410)};
}
