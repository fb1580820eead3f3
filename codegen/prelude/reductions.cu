// Reductions and scans over the lanes of a warp, the threads of a block, and the blocks of a cluster.

//@ part combine : nan_max
// Function objects that combine two partial results of a reduction.
struct Sum {
  template <class T>
  __device__ __forceinline__ T operator()(T a, T b) const { return a + b; }
};
struct Product {
  template <class T>
  __device__ __forceinline__ T operator()(T a, T b) const { return a * b; }
};
struct Maximum {  // NaN if either is
  template <class T>
  __device__ __forceinline__ T operator()(T a, T b) const { return nan_max(a, b); }
};
struct Minimum {
  template <class T>
  __device__ __forceinline__ T operator()(T a, T b) const { return nan_min(a, b); }
};
struct Any {
  __device__ __forceinline__ bool operator()(bool a, bool b) const { return a || b; }
};
struct All {
  __device__ __forceinline__ bool operator()(bool a, bool b) const { return a && b; }
};

//@ part extreme
// Argmax and argmin: a value and its position. The first of equal values wins; NaN wins over every number. A reduction
// begins with the least (greatest) value of T at position 0.
template <class T, class Position = int>
struct Extreme {
  T value;
  Position position;
};
// operator() combines partial results of any positions; next() combines `a` with an element b at a later position.
struct FirstMaximum {
  template <class T, class P>
  __device__ __forceinline__ Extreme<T, P> operator()(Extreme<T, P> a, Extreme<T, P> b) const {
    const bool b_nan = b.value != b.value, same = a.value == b.value || (a.value != a.value && b_nan);
    const bool greater = !(b.value <= a.value) && a.value == a.value;
    return greater || (same && b.position < a.position) ? b : a;
  }
  template <class T, class P>
  __device__ __forceinline__ Extreme<T, P> next(Extreme<T, P> a, Extreme<T, P> b) const {
    return !(b.value <= a.value) && a.value == a.value ? b : a;
  }
};
struct FirstMinimum {
  template <class T, class P>
  __device__ __forceinline__ Extreme<T, P> operator()(Extreme<T, P> a, Extreme<T, P> b) const {
    const bool b_nan = b.value != b.value, same = a.value == b.value || (a.value != a.value && b_nan);
    const bool less = !(b.value >= a.value) && a.value == a.value;
    return less || (same && b.position < a.position) ? b : a;
  }
  template <class T, class P>
  __device__ __forceinline__ Extreme<T, P> next(Extreme<T, P> a, Extreme<T, P> b) const {
    return !(b.value >= a.value) && a.value == a.value ? b : a;
  }
};

//@ part lanes
// The value of lane (this lane ^ mask).
template <class T>
__device__ __forceinline__ T from_lane_xor(T value, int mask) { return __shfl_xor_sync(0xffffffffu, value, mask); }
__device__ __forceinline__ bool from_lane_xor(bool value, int mask) {
  return __shfl_xor_sync(0xffffffffu, (int)value, mask) != 0;
}
// kCount partial results in shared memory; neighbouring results are in neighbouring banks.
template <class T, int kCount>
struct Partials {
  T value[kCount];
  __device__ __forceinline__ void put(int i, T from) { value[i] = from; }
  __device__ __forceinline__ T get(int i) const { return value[i]; }
};

//@ part extreme_lanes : extreme lanes
// Shuffles and stores the value and the position separately.
template <class T, class P>
__device__ __forceinline__ Extreme<T, P> from_lane_xor(Extreme<T, P> value, int mask) {
  return {from_lane_xor(value.value, mask), from_lane_xor(value.position, mask)};
}
template <class T, class P, int kCount>
struct Partials<Extreme<T, P>, kCount> {
  T value[kCount];
  P position[kCount];
  __device__ __forceinline__ void put(int i, Extreme<T, P> from) { value[i] = from.value, position[i] = from.position; }
  __device__ __forceinline__ Extreme<T, P> get(int i) const { return {value[i], position[i]}; }
};

//@ part reduce_pairs : lanes
// Two values that are reduced together, each by its own combination: they share shuffles' latency and barriers. A pair
// in a pair makes three.
template <class A, class B>
struct Pair {
  A first;
  B second;
};
template <class A, class B>
__device__ __forceinline__ Pair<A, B> pair(A first, B second) { return {first, second}; }
template <class First, class Second>
struct Pairwise {
  template <class A, class B>
  __device__ __forceinline__ Pair<A, B> operator()(Pair<A, B> a, Pair<A, B> b) const {
    return {First{}(a.first, b.first), Second{}(a.second, b.second)};
  }
};
template <class First, class Second>
__device__ __forceinline__ Pairwise<First, Second> pairwise(First, Second) { return {}; }
template <class A, class B>
__device__ __forceinline__ Pair<A, B> from_lane_xor(Pair<A, B> value, int mask) {
  return {from_lane_xor(value.first, mask), from_lane_xor(value.second, mask)};
}
template <class A, class B, int kCount>
struct Partials<Pair<A, B>, kCount> {
  Partials<A, kCount> first;
  Partials<B, kCount> second;
  __device__ __forceinline__ void put(int i, Pair<A, B> from) { first.put(i, from.first), second.put(i, from.second); }
  __device__ __forceinline__ Pair<A, B> get(int i) const { return {first.get(i), second.get(i)}; }
};

//@ part warp_reduce : lanes
// Reduces over each kLanes neighbouring lanes, a power of two, in a fixed order; all of them get the result.
template <int kLanes = 32, class Combine, class T>
__device__ __forceinline__ T warp_reduce(T value, Combine combine) {
#pragma unroll
  for (int mask = kLanes / 2; mask > 0; mask >>= 1) value = combine(value, from_lane_xor(value, mask));
  return value;
}

//@ part tree_reduce
template <class T>
__device__ __forceinline__ T from_lane(T value, int lane) { return __shfl_sync(0xffffffffu, value, lane); }
__device__ __forceinline__ bool from_lane(bool value, int lane) {
  return __shfl_sync(0xffffffffu, (int)value, lane) != 0;
}
// Reduces over each kLanes neighbouring lanes, no power of two, counted from lane 0; all of them get the result.
template <int kLanes, class Combine, class T>
__device__ __forceinline__ T tree_reduce(T value, Combine combine) {
  const int lane = threadIdx.x % 32, mine = lane % kLanes;
#pragma unroll
  for (int step = kLanes > 16 ? 16 : kLanes > 8 ? 8 : kLanes > 4 ? 4 : 2; step > 0; step >>= 1) {
    const T other = from_lane(value, lane + step);
    if (mine < step && mine + step < kLanes) value = combine(value, other);
  }
  return from_lane(value, lane - mine);
}

//@ part extreme_odd_lanes : extreme tree_reduce
template <class T, class P>
__device__ __forceinline__ Extreme<T, P> from_lane(Extreme<T, P> value, int lane) {
  return {from_lane(value.value, lane), from_lane(value.position, lane)};
}

//@ part segment_reduce
// Reduces over each kLanes neighbouring lanes, a power of two; all of them get the result. Other groups of the warp may
// be inactive.
template <int kLanes, class Combine, class T>
__device__ __forceinline__ T segment_reduce(T value, Combine combine) {
  const unsigned lanes = 0xffffffffu >> (32 - kLanes) << (threadIdx.x % 32 / kLanes * kLanes);
#pragma unroll
  for (int mask = kLanes / 2; mask > 0; mask >>= 1) value = combine(value, (T)__shfl_xor_sync(lanes, value, mask));
  return value;
}

//@ part block_reduce : warp_reduce
// Reduces over the block; every thread gets the result. The number of warps is a power of two. Each call in a kernel
// has its own kCall and so its own shared memory: no barrier is needed between calls.
template <int kThreads, int kCall, class Combine, class T>
__device__ __forceinline__ T block_reduce(T value, Combine combine) {
  __shared__ Partials<T, kThreads / 32> partial;
  value = warp_reduce(value, combine);
  if (threadIdx.x % 32 == 0) partial.put(threadIdx.x / 32, value);
  __syncthreads();
  value = partial.get(threadIdx.x % (kThreads / 32));
#pragma unroll
  for (int mask = kThreads / 64; mask > 0; mask >>= 1) value = combine(value, from_lane_xor(value, mask));
  return value;
}

//@ part cluster_reduce : block_reduce
// Reduces over all threads of a cluster of kBlocks blocks; every thread gets the result. Block `rank` writes its result
// to the shared memory of all. The kernel begins with cluster_arrive(); call 0 waits until all blocks have started.
__device__ __forceinline__ void cluster_arrive() { asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory"); }
__device__ __forceinline__ void cluster_wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }
template <int kThreads, int kBlocks, int kCall, class Combine, class T>
__device__ __forceinline__ T cluster_reduce(T value, Combine combine, int rank) {
  __shared__ T of_blocks[kBlocks];
  value = block_reduce<kThreads, kCall>(value, combine);
  if constexpr (kCall == 0) cluster_wait();
  if (threadIdx.x < kBlocks) {
    unsigned long long there;
    asm("mapa.u64 %0, %1, %2;" : "=l"(there) : "l"((unsigned long long)&of_blocks[rank]), "r"((unsigned)threadIdx.x));
    *(T*)there = value;
  }
  cluster_arrive();
  cluster_wait();
  value = of_blocks[0];
#pragma unroll
  for (int block = 1; block < kBlocks; ++block) value = combine(value, of_blocks[block]);
  return value;
}

//@ part column_reduce : lanes
// Reduces kRows rows; thread t has a part of row t % kRows, of which all kParts threads get the result.
template <int kRows, int kParts, class Combine, class T>
__device__ __forceinline__ T column_reduce(T value, Combine combine) {
  __shared__ Partials<T, kRows> partial[kParts];
  const int row = threadIdx.x % kRows;
  partial[threadIdx.x / kRows].put(row, value);
  __syncthreads();
  T result = partial[0].get(row);
#pragma unroll
  for (int part = 1; part < kParts; ++part) result = combine(result, partial[part].get(row));
  __syncthreads();
  return result;
}

//@ part block_scan
// Inclusive scan over the block: thread i gets the combination of the values of threads 0 to i, `total` that of all.
template <int kThreads, class Combine, class T>
__device__ __forceinline__ T block_scan(T value, Combine combine, T& total) {
  __shared__ T partial[kThreads / 32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const T before = __shfl_up_sync(0xffffffffu, value, step);
    if (lane >= step) value = combine(before, value);
  }
  if (lane == 31) partial[warp] = value;
  __syncthreads();
  T earlier = partial[0];
  total = partial[0];
#pragma unroll
  for (int w = 1; w < kThreads / 32; ++w) {
    total = combine(total, partial[w]);
    if (w < warp) earlier = combine(earlier, partial[w]);
  }
  __syncthreads();
  return warp > 0 ? combine(earlier, value) : value;
}
