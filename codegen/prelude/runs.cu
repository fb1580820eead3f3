// 16 bytes of results that are a run of a tensor, taken from shared memory wherever they begin there.

//@ part runs : stretches dynamic_shared
// 16 bytes of dynamic_shared.
__device__ __forceinline__ Words<4> run_at(int from) {
  const uint4* const vectors = (const uint4*)(dynamic_shared + (from & ~15));
  const uint4 low = vectors[0];
  uint4 behind = low;
  if (from & 15) behind = vectors[1];
  const bool two = from & 8, one = from & 4;
  const unsigned shift = 8 * (from & 3);
  const unsigned a = two ? low.z : low.x, b = two ? low.w : low.y, c = two ? behind.x : low.z;
  const unsigned d = two ? behind.y : low.w, e = two ? behind.z : behind.x, f = two ? behind.w : behind.y;
  const unsigned u = one ? b : a, v = one ? c : b, w = one ? d : c, x = one ? e : d, y = one ? f : e;
  return {{__funnelshift_r(u, v, shift), __funnelshift_r(v, w, shift), __funnelshift_r(w, x, shift),
           __funnelshift_r(x, y, shift)}};
}
// Puts down which of a warp's groups are none; `groups`: -1 where it is one. What was -1 stays, else it becomes the
// place in the list, whose length this is.
template <int kTurns>
__device__ __forceinline__ int list_of_warp(int* list, int (&groups)[kTurns]) {
  int count = 0;
#pragma unroll
  for (int turn = 0; turn < kTurns; ++turn) {
    const unsigned all = __ballot_sync(~0u, groups[turn] >= 0);
    if (groups[turn] >= 0) {
      const int place = count + __popc(all & ((1u << (threadIdx.x & 31)) - 1));
      list[place] = groups[turn];
      groups[turn] = place;
    }
    count += __popc(all);
  }
  __syncwarp();
  return count;
}
