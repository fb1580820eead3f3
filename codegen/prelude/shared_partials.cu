// Layouts of partial results in shared memory that avoid bank conflicts.

//@ part padded_partials
// A shared-memory array with padding after every kLine elements. No bank conflicts between threads that access elements
// 2, 4 or 8 apart, or between 16 with neighbouring elements. put_dense and get_dense ignore the padding.
template <class T, int kCount>
struct PaddedPartials {
  static constexpr int kLine = sizeof(T) == 8 ? 16 : 32;
  T value[kCount + kCount / kLine + 1];
  __device__ __forceinline__ void put(int i, T from) { value[i + i / kLine] = from; }
  __device__ __forceinline__ T get(int i) const { return value[i + i / kLine]; }
  __device__ __forceinline__ void put_dense(int i, T from) { value[i] = from; }
  __device__ __forceinline__ T get_dense(int i) const { return value[i]; }
};
template <int kCount>
struct PaddedPartials<bool, kCount> {  // as words: several bytes share a bank
  static constexpr int kLine = 32;
  PaddedPartials<int, kCount> words;
  __device__ __forceinline__ void put(int i, bool from) { words.put(i, from); }
  __device__ __forceinline__ bool get(int i) const { return words.get(i) != 0; }
  __device__ __forceinline__ void put_dense(int i, bool from) { words.put_dense(i, from); }
  __device__ __forceinline__ bool get_dense(int i) const { return words.get_dense(i) != 0; }
};

//@ part padded_extremes : padded_partials extreme
template <class T, class P, int kCount>
struct PaddedPartials<Extreme<T, P>, kCount> {
  static constexpr int kLine = PaddedPartials<T, 1>::kLine;
  PaddedPartials<T, kCount> value;
  PaddedPartials<P, kCount> position;
  __device__ __forceinline__ void put(int i, Extreme<T, P> from) {
    value.put(i, from.value), position.put(i, from.position);
  }
  __device__ __forceinline__ Extreme<T, P> get(int i) const { return {value.get(i), position.get(i)}; }
  __device__ __forceinline__ void put_dense(int i, Extreme<T, P> from) {
    value.put_dense(i, from.value), position.put_dense(i, from.position);
  }
  __device__ __forceinline__ Extreme<T, P> get_dense(int i) const {
    return {value.get_dense(i), position.get_dense(i)};
  }
};

//@ part store_lanes_shared : words
// How shared memory holds a T: its type there, and whether that is a 32-bit word.
template <class T>
struct SharedTypeOf {
  using Type = T;
  static constexpr bool kIsWord = false;
};
template <class T>
struct WordPlace {
  using Type = T;
  static constexpr bool kIsWord = true;
};
template <>
struct SharedTypeOf<float> : WordPlace<float> {};
template <>
struct SharedTypeOf<int> : WordPlace<int> {};
template <>
struct SharedTypeOf<unsigned> : WordPlace<unsigned> {};
template <>
struct SharedTypeOf<bool> : SharedTypeOf<int> {};
// Stores the thread's vector at all[thread * kWidth]. If kWidth = 8, four of eight threads store their second half
// first, which avoids bank conflicts.
template <class T, class From, int kWidth>
__device__ __forceinline__ void store_lanes_shared(T* all, const From (&slots)[kWidth], int thread) {
  const int flip = kWidth == 8 ? thread & 4 : 0;
#pragma unroll
  for (int half = 0; half < kWidth; half += 4) {
    Words<4> words;
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const T value = (T)(flip ? slots[(half + 4 + e) % kWidth] : slots[half + e]);
      words.w[e] = *(const unsigned*)&value;
    }
    store_words(all + thread * kWidth + (half ^ flip), words);
  }
}
// Loads the thread's vector from all[thread * kWidth].
template <int kWidth, class T, class From>
__device__ __forceinline__ void load_lanes_shared(T* places, const From* all, int thread) {
  const int flip = kWidth == 8 ? thread & 4 : 0;
  Words<4> halves[kWidth / 4];
#pragma unroll
  for (int half = 0; half < kWidth; half += 4)
    halves[half / 4] = load_words<4>(all + thread * kWidth + (half ^ flip));
#pragma unroll
  for (int e = 0; e < kWidth; ++e) {
    const unsigned word = flip ? halves[(e / 4 + 1) % (kWidth / 4)].w[e % 4] : halves[e / 4].w[e % 4];
    places[e] = (T) * (const From*)&word;
  }
}
