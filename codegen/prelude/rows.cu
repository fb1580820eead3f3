// Reductions over rows: tiles of unaligned operands, one-pass accumulators, barriers between the blocks of a row, and
// block-wide reductions of strided rows.

//@ part beside_tile : words
// cp.async of kBytes from address from + kAt to shared-memory address to + kAt.
template <int kBytes, int kAt = 0>
__device__ __forceinline__ void copy_bytes(unsigned to, const void* from) {
  asm volatile("cp.async.ca.shared.global [%0+%2], [%1+%2], %3;"
               :
               : "r"(to), "l"(__cvta_generic_to_global(from)), "n"(kAt), "n"(kBytes));
}
// One thread's copies of `words` words, kLeast <= words <= kMost: kEach words at `first`, first + kEach * kThreads, ...
// `to` and `from` point to word `first`. It is negative for a few threads, because a warp begins at a 32-byte sector.
template <int kThreads, int kEach, int kLeast, int kMost, int kTurn = 0>
__device__ __forceinline__ void copy_words(unsigned to, const unsigned* from, int words, int first) {
  constexpr int kStep = kEach * kThreads;
  const bool begun = kTurn * kStep >= 8 - kEach || first + kTurn * kStep >= 0;
  if (begun && ((kTurn + 1) * kStep <= kLeast || first + kTurn * kStep + kEach <= words))
    copy_bytes<4 * kEach, 4 * kTurn * kStep>(to, from);
  if constexpr ((kTurn + 1) * kStep - (8 - kEach) < kMost)
    copy_words<kThreads, kEach, kLeast, kMost, kTurn + 1>(to, from, words, first);
}
// Copies the last words % kEach words, one per thread.
template <int kCount, int kEach>
__device__ __forceinline__ void copy_last_words(unsigned to, const unsigned* from, int words, int thread) {
  if constexpr (kCount % kEach != 0)
    if (const int left = words % kEach; thread < left)
      copy_bytes<4>(to + 4 * (words - left + thread), from + words - left + thread);
}
// Copies up to kPieces pieces of kPiece words, kFrom words apart in memory and kTo words apart in the tile.
template <int kThreads, int kEach, int kCount, int kPiece, int kPieces, int kTo, int kFrom>
__device__ __forceinline__ void copy_pieces(unsigned to, const unsigned* from, int words, int first, int thread) {
#pragma unroll 1  // limits code size: the copies of one piece are unrolled
  for (int piece = 0; piece < kPieces && words > 0; ++piece) {
    if (words >= kPiece) {
      copy_words<kThreads, kEach, kPiece, kPiece>(to + 4 * first, from + first, kPiece, first);
    } else {
      copy_words<kThreads, kEach, 0, kPiece>(to + 4 * first, from + first, words, first);
      copy_last_words<kCount, kEach>(to, from, words, thread);
    }
    to += 4 * kTo, from += kFrom, words -= kFrom;
  }
}
// The size of a tile: kLeast to kMost words (kMost = 0: no bound), or several pieces as in copy_pieces.
template <int kLeastOf, int kMostOf, int kPiecesOf = 1, int kToOf = 0, int kFromOf = 0>
struct TileWords {
  static constexpr int kLeast = kLeastOf, kMost = kMostOf, kPieces = kPiecesOf, kTo = kToOf, kFrom = kFromOf;
};
template <class Tile, int kThreads, int kEach, int kCount>
__device__ __forceinline__ void copy_tile(unsigned to, const unsigned* from, int words, int behind, int thread) {
  const int first = kEach * thread - behind;
  if constexpr (Tile::kPieces > 1) {
    copy_pieces<kThreads, kEach, kCount, Tile::kMost, Tile::kPieces, Tile::kTo, Tile::kFrom>(to, from, words, first,
                                                                                             thread);
  } else if constexpr (Tile::kMost > 0) {
    copy_words<kThreads, kEach, Tile::kLeast, Tile::kMost>(to + 4 * first, from + first, words, first);
    copy_last_words<kCount, kEach>(to, from, words, thread);
  } else {
#pragma unroll 4
    for (int i = first; i + kEach <= words; i += kEach * kThreads)
      if (i >= 0) copy_bytes<4 * kEach>(to + 4 * i, from + i);
    copy_last_words<kCount, kEach>(to, from, words, thread);
  }
}
// Copies `vectors` vectors of kCount words to a tile, from element `at` of a tensor on. The tile begins with the word
// that holds this element. Returns the number of bits before the element in that word. As many bits of the word after
// the last are copied too; its other bits become 0.
template <class Tile, int kThreads, int kBits, int kCount, class Index>
__device__ __forceinline__ int vectors_to_tile(unsigned* tile, const void* tensor, Index at, int vectors, int thread) {
  const int bytes = kBits < 32 ? (int)(at * (kBits / 8)) & 3 : 0, words = vectors * kCount;
  const Index word = kBits < 32 ? at >> (kBits == 16 ? 1 : 2) : at * (kBits / 32);
  const int behind = (int)word & 7;
  if (Tile::kLeast == 0 && vectors <= 0) return 0;
  const unsigned to = (unsigned)__cvta_generic_to_shared(tile);
  const unsigned* const from = (const unsigned*)tensor + word;
  if (!(behind & 3))
    copy_tile<Tile, kThreads, 4, kCount>(to, from, words, behind, thread);
  else if (!(behind & 1))
    copy_tile<Tile, kThreads, 2, kCount>(to, from, words, behind, thread);
  else
    copy_tile<Tile, kThreads, 1, kCount>(to, from, words, behind, thread);
  // One warp per piece: the last words of several pieces may be in the same bank.
  if (kBits < 32 && (Tile::kPieces > 1 ? thread % 32 : thread) == 0) {
    constexpr int kWarps = kThreads < 32 ? 1 : kThreads / 32;
#pragma unroll
    for (int piece = 0; piece < Tile::kPieces; ++piece) {
      const int last = min(words - piece * Tile::kFrom, Tile::kPieces > 1 ? Tile::kMost : words);
      if (Tile::kPieces > 1 && (thread / 32 != piece % kWarps || last <= 0)) continue;
      asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;"
                   :
                   : "r"(to + 4 * (piece * Tile::kTo + last)),
                     "l"(__cvta_generic_to_global(from + piece * Tile::kFrom + last)), "r"(bytes));
    }
  }
  return 8 * bytes;
}
__device__ __forceinline__ void wait_for_tiles() {
  asm volatile("cp.async.wait_all;" : : : "memory");
}
// Loads the thread's vector of kCount words from a tile, without the first `bits` bits (see vectors_to_tile). The next
// vector is loaded whole, because single words of several threads would be in the same bank.
template <int kBits, int kCount>
__device__ __forceinline__ Words<kCount> words_of_tile(const unsigned* tile, int bits) {
  if constexpr (kCount == 8) {  // four of eight threads load their second half first: no bank conflict
    const bool flip = threadIdx.x & 4;
    const Words<4> a = load_words<4>(tile + (flip ? 4 : 0)), b = load_words<4>(tile + (flip ? 0 : 4));
    Words<8> words;
#pragma unroll
    for (int i = 0; i < 4; ++i) words.w[i] = flip ? b.w[i] : a.w[i], words.w[i + 4] = flip ? a.w[i] : b.w[i];
    return words;
  }
  Words<kCount> words = load_words<kCount>(tile);
  if constexpr (kBits < 32) {
    Words<kCount> next = load_words<kCount>(tile + kCount);
    if constexpr (kCount == 4)
      asm("" : "+r"(next.w[0]), "+r"(next.w[1]), "+r"(next.w[2]), "+r"(next.w[3]));
    else if constexpr (kCount == 2)
      asm("" : "+r"(next.w[0]), "+r"(next.w[1]));
#pragma unroll
    for (int i = 0; i < kCount; ++i)
      words.w[i] = __funnelshift_r(words.w[i], i + 1 < kCount ? words.w[i + 1] : next.w[0], bits);
  }
  return words;
}

//@ part running_exponentials : exp_fast nan_max
// Online softmax: the maximum of the elements so far, and the sum of e^(element - maximum).
struct RunningExponentials {
  // Minus infinity. Not an intrinsic, because nvcc compiles member initializers for the host as well.
  float greatest = -1.0e38f * 10.0f;
  float sum = 0.0f;
  // What is subtracted from elements if their maximum is x: finite, because infinity - infinity is NaN. After a NaN,
  // the sum is NaN anyway.
  __device__ __forceinline__ static float shift_of(float x) {
    return fminf(fmaxf(x, -3.402823466e38f), 3.402823466e38f);
  }
  __device__ __forceinline__ float shift() const { return shift_of(greatest); }
  template <int kCount>
  __device__ __forceinline__ void take_elements(const float (&elements)[kCount]) {
    float now = greatest;
#pragma unroll
    for (int e = 0; e < kCount; ++e) now = nan_max(now, elements[e]);
    if (!(now <= greatest)) {  // also if `now` is NaN
      sum *= exp_fast(shift() - shift_of(now));
      greatest = now;
    }
#pragma unroll
    for (int e = 0; e < kCount; ++e) sum += exp_fast(elements[e] - shift());
  }
  // Merges a partial result: its maximum `more` and its sum `below`, relative to that maximum.
  __device__ __forceinline__ void take_part(float more, float below) {
    const float now = nan_max(greatest, more);
    if (!(now <= greatest)) {
      sum *= exp_fast(shift() - shift_of(now));
      greatest = now;
    }
    sum += below * exp_fast(shift_of(more) - shift());
  }
};

//@ part exponentials_of_places : running_exponentials
// Online softmax for each of kWidth vector lanes: sum[e] of e^(element - shift[e]), where shift[e] is the maximum
// clamped to finite numbers. Every element rescales the sum: nearly always, some thread of the warp has a new maximum.
template <int kWidth>
struct ExponentialsOfPlaces {
  float shift[kWidth], sum[kWidth];
  __device__ __forceinline__ ExponentialsOfPlaces() {
#pragma unroll
    for (int e = 0; e < kWidth; ++e) shift[e] = -3.402823466e38f, sum[e] = 0.0f;
  }
  __device__ __forceinline__ void take_element(int place, float element) {
    const float before = shift[place], now = fminf(fmaxf(before, element), 3.402823466e38f);
    sum[place] = sum[place] * exp_fast(before - now) + exp_fast(element - now);
    shift[place] = now;
  }
  __device__ __forceinline__ void take_elements(const float (&elements)[kWidth]) {
#pragma unroll
    for (int e = 0; e < kWidth; ++e) take_element(e, elements[e]);
  }
  // The maximum, not clamped: minus infinity if the sum is 0, and the sum itself if that is infinite or NaN.
  __device__ __forceinline__ float greatest_of(int place) const {
    const float all = sum[place], infinity = __uint_as_float(0x7f800000u);
    if (all == 0.0f) return -infinity;
    return all < infinity ? shift[place] : all;
  }
};

//@ part running_moments : reciprocal_fast
// The fraction elements / count.
__device__ __forceinline__ float share_of(float elements, float count) { return elements * reciprocal_fast(count); }
__device__ __forceinline__ double share_of(double elements, double count) { return elements / count; }
// Welford moments: the sum times 2^-kScale, count, mean and squared deviations from the mean. Parts a and b merge as
//   squares = squares_a + squares_b + (mean_b - mean_a)^2 * count_a * count_b / count
template <class T, int kScale>
struct MomentsOf {
  static constexpr T kUnit = T(1) / T(1ll << kScale);
  T sum = 0, count = 0, mean = 0, squares = 0;
  template <int kCount>
  __device__ __forceinline__ void take_elements(const T (&elements)[kCount]) {
    T more = 0, beside = 0;
#pragma unroll
    for (int e = 0; e < kCount; ++e) more += elements[e] * kUnit;
    const T here = more * (T(1) / (kCount * kUnit));
#pragma unroll
    for (int e = 0; e < kCount; ++e) beside += (elements[e] - here) * (elements[e] - here);
    const T before = count, apart = here - mean;
    sum += more;
    count += kCount;
    const T share = share_of(T(kCount), count);
    mean += apart * share;
    squares += beside + apart * share * (apart * before);  // before = 0: adds 0, even where apart^2 overflows
  }
  // Merges a partial result: its scaled sum `more`, squared deviations `beside` and count. `mean` is relative to
  // `about`, a number near all means, because means that are far from 0 lose precision.
  __device__ __forceinline__ void take_part(T more, T beside, T elements, T about) {
    if (elements == 0) return;
    const T before = count, apart = more / (elements * kUnit) - about - mean;
    sum += more;
    count += elements;
    const T share = elements / count;
    mean += apart * share;
    squares += beside + apart * share * (apart * before);  // before = 0: adds 0, even where apart^2 overflows
  }
};
//@ part places_of_pieces
// Thread i < kRows passes the result of row i, which has columns i * kBreadth ... (i + 1) * kBreadth - 1. places[e]
// becomes the result of the row of column first + e.
template <int kBreadth, int kRows, int kPlaces, class T>
__device__ __forceinline__ void places_of_pieces(T result, T (&places)[kPlaces], int first) {
  __shared__ T rows[kRows];
  __syncthreads();
  if (threadIdx.x < kRows) rows[threadIdx.x] = result;
  __syncthreads();
#pragma unroll
  for (int e = 0; e < kPlaces; ++e) places[e] = rows[(first + e) / kBreadth];
}
//@ part result_in_turn
// Thread i < kRows passes the result of row i. Every thread i gets that of row i % kRows. The first 31 results are
// repeated after the last, so that each warp reads consecutive words.
template <int kRows, class T>
__device__ __forceinline__ T result_in_turn(T result, int thread) {
  __shared__ T results[kRows + 31];
  if (thread < kRows) results[thread] = result;
  if (kRows > 31 && thread < 31) results[kRows + thread] = result;
  __syncthreads();
  return results[kRows > 31 ? (thread - thread % 32) % kRows + thread % 32 : thread % kRows];
}
//@ part elements_of_chunk
// The number of lines for block `chunk`, if `chunks` blocks take kAtOnce lines at a time in turn.
template <int kAtOnce>
__device__ __forceinline__ float lines_of_chunk(int lines, int chunks, int chunk) {
  const int turns = lines / (kAtOnce * chunks), left = lines - turns * (kAtOnce * chunks) - chunk * kAtOnce;
  return (float)(turns * kAtOnce + min(max(left, 0), kAtOnce));
}
// How many of the first `elements` elements are of row `row`. A line has kLine elements, kBreadth of each row.
template <int kLine, int kBreadth, class Index>
__device__ __forceinline__ Index elements_of_row(Index elements, int row) {
  return elements / kLine * kBreadth + min(max((int)(elements % kLine) - row * kBreadth, 0), kBreadth);
}
// The number of elements of row `row` for block `chunk`, if `chunks` blocks take kAtOnce elements (whole lines) at a
// time in turn. Block 0 also takes the `before` elements (up to 8 lines) before the first of these.
template <int kAtOnce, int kLine, int kBreadth, class Index>
__device__ __forceinline__ float elements_of_chunk(Index elements, int before, int chunks, int chunk, int row) {
  constexpr int kAll = 8 * kLine;
  const int turn = kAtOnce * chunks;
  const Index turns = elements / turn, left = elements - turns * turn - chunk * kAtOnce;
  const int here = left < 0 ? 0 : left < kAtOnce ? (int)left : kAtOnce;
  Index found = turns * (kAtOnce / kLine * kBreadth) + elements_of_row<kLine, kBreadth>(here, row);
  if (chunk == 0) found += 8 * kBreadth - elements_of_row<kLine, kBreadth>(kAll - before, row);
  return (float)found;
}

//@ part shifted_moments : running_moments
// Moments for each of kWidth vector lanes. `shift` is the lane's first element, or 0 if that is not finite:
//   squared deviations from the mean = sum of (x - shift)^2 - (sum of (x - shift))^2 / count
// This loses little: the first sum is at most `count` times the result, because shift is one of the elements.
template <int kWidth, class T, int kScale>
struct ShiftedMoments {
  T shift[kWidth] = {}, apart[kWidth] = {}, squares[kWidth] = {}, count = 0;
  __device__ __forceinline__ void take_elements(const T (&elements)[kWidth]) {
    if (count == 0) {
#pragma unroll
      for (int e = 0; e < kWidth; ++e) shift[e] = isfinite(elements[e]) ? elements[e] : T(0);
    }
    count += 1;
#pragma unroll
    for (int e = 0; e < kWidth; ++e) {
      const T here = elements[e] - shift[e];
      apart[e] += here * MomentsOf<T, kScale>::kUnit;
      squares[e] += here * here;
    }
  }
  __device__ __forceinline__ MomentsOf<T, kScale> moments_of(int place) const {
    MomentsOf<T, kScale> all;
    const T mean = apart[place] / (max(count, T(1)) * all.kUnit);
    const T left = squares[place] - apart[place] / all.kUnit * mean;
    all.sum = shift[place] * (count * all.kUnit) + apart[place];
    all.count = count;
    all.mean = shift[place] + mean;
    all.squares = isinf(squares[place]) ? squares[place] : left < 0 ? T(0) : left;  // keeps NaN
    return all;
  }
};

//@ part cohort
// Barriers between the n blocks of a row in an ordinary launch. Tickets number the blocks as they start; those of a row
// are consecutive. No deadlock if n blocks fit on the device at once.
__device__ __forceinline__ unsigned cohort_ticket(unsigned* next) {
  __shared__ unsigned ticket;
  if (threadIdx.x == 0) ticket = atomicAdd(next, 1u);
  __syncthreads();
  return ticket;
}
__device__ __forceinline__ void cohort_arrive(unsigned* arrived) {
  asm volatile("red.release.gpu.global.add.u32 [%0], 1;" : : "l"(__cvta_generic_to_global(arrived)) : "memory");
}
__device__ __forceinline__ void cohort_wait(unsigned* arrived, unsigned blocks) {
  while (true) {
    unsigned now;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(__cvta_generic_to_global(arrived)) : "memory");
    if (now >= blocks) break;
    __nanosleep(20);
  }
}
// Barrier: waits until the counter is `blocks`, which is n times the number of barriers so far, this one included.
// Every thread then sees what the threads of all n blocks stored before.
__device__ __forceinline__ void cohort_meet(unsigned* arrived, unsigned blocks) {
  __syncthreads();
  if (threadIdx.x == 0) {
    cohort_arrive(arrived);
    cohort_wait(arrived, blocks);
  }
  __syncthreads();
}

//@ part cohort_reduce : cohort block_reduce
// Reduces over all threads of the kBlocks blocks of a row; every thread gets the result. Block `rank` stores its
// partial result in partials[rank], increments `arrived` and waits for the others. The calls in a kernel are numbered
// by kCall and have separate `partials`.
template <int kThreads, int kBlocks, int kCall, class Combine, class T>
__device__ __forceinline__ T cohort_reduce(T value, Combine combine, T* partials, unsigned* arrived, int rank) {
  __shared__ T of_blocks[kBlocks];
  value = block_reduce<kThreads, kCall>(value, combine);
  if (threadIdx.x == 0) {
    partials[rank] = value;
    cohort_arrive(arrived);
  }
  if (threadIdx.x < kBlocks) {  // each waits, because it reads a partial result
    cohort_wait(arrived, kBlocks * (kCall + 1));
    of_blocks[threadIdx.x] = partials[threadIdx.x];
  }
  __syncthreads();
  value = of_blocks[0];
#pragma unroll
  for (int block = 1; block < kBlocks; ++block) value = combine(value, of_blocks[block]);
  return value;
}

//@ part spread_partials
// A shared-memory array with padding after every kLine elements. No bank conflicts between threads that access elements
// 2, 4 or 8 apart, or between 16 with neighbouring elements. put_dense and get_dense ignore the padding.
template <class T, int kCount>
struct SpreadPartials {
  static constexpr int kLine = sizeof(T) == 8 ? 16 : 32;
  T value[kCount + kCount / kLine + 1];
  __device__ __forceinline__ void put(int i, T from) { value[i + i / kLine] = from; }
  __device__ __forceinline__ T get(int i) const { return value[i + i / kLine]; }
  __device__ __forceinline__ void put_dense(int i, T from) { value[i] = from; }
  __device__ __forceinline__ T get_dense(int i) const { return value[i]; }
};
template <int kCount>
struct SpreadPartials<bool, kCount> {  // as words: several bytes share a bank
  static constexpr int kLine = 32;
  SpreadPartials<int, kCount> words;
  __device__ __forceinline__ void put(int i, bool from) { words.put(i, from); }
  __device__ __forceinline__ bool get(int i) const { return words.get(i) != 0; }
  __device__ __forceinline__ void put_dense(int i, bool from) { words.put_dense(i, from); }
  __device__ __forceinline__ bool get_dense(int i) const { return words.get_dense(i) != 0; }
};

//@ part spread_extremes : spread_partials extreme
template <class T, class P, int kCount>
struct SpreadPartials<Extreme<T, P>, kCount> {
  static constexpr int kLine = SpreadPartials<T, 1>::kLine;
  SpreadPartials<T, kCount> value;
  SpreadPartials<P, kCount> position;
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

//@ part edge_words : words
// Loads elements first ... first + kWidth - 1 of a tensor; those outside of its `count` elements are 0.
template <int kCount, int kWidth, class Element, class Index>
__device__ __forceinline__ Words<kCount> edge_words(const Element* tensor, Index first, Index count) {
  if (first >= 0 && first + kWidth <= count) return load_words<kCount>(tensor + first);
  union {
    Words<kCount> words;
    Element elements[kWidth];
  };
  words = {};
#pragma unroll
  for (int e = 0; e < kWidth; ++e)
    if (first + e >= 0 && first + e < count) elements[e] = tensor[first + e];
  return words;
}

//@ part store_edge_words : words
// Stores elements first ... last - 1 of an aligned vector of kWidth elements: whole, or in pieces of 8 and 4 bytes and
// single elements.
template <int kWidth, int kCount, class Element>
__device__ __forceinline__ void store_edge_words(Element* to, int first, int last, const Words<kCount>& words) {
  constexpr int kBytes = 4 * kCount / kWidth;
  if (first <= 0 && last >= kWidth) return store_words(to, words);
  const auto inside = [&](int byte, int bytes) { return byte >= first * kBytes && byte + bytes <= last * kBytes; };
#pragma unroll
  for (int i = 0; i < kCount; i += 2) {
    if (i + 1 < kCount && inside(4 * i, 8)) {
      ((uint2*)to)[i / 2] = make_uint2(words.w[i], words.w[i + 1]);
      continue;
    }
#pragma unroll
    for (int j = i; j < i + 2 && j < kCount; ++j) {
      if (inside(4 * j, 4)) {
        ((unsigned*)to)[j] = words.w[j];
        continue;
      }
#pragma unroll
      for (int byte = 0; byte < 4; byte += kBytes) {
        if (!inside(4 * j + byte, kBytes)) continue;
        if (kBytes == 1) ((unsigned char*)to)[4 * j + byte] = (unsigned char)(words.w[j] >> (8 * byte));
        if (kBytes == 2) ((unsigned short*)to)[2 * j + byte / 2] = (unsigned short)(words.w[j] >> (8 * byte));
      }
    }
  }
}

//@ part put_places : words
// How shared memory holds a T: its type there, and whether that is a 32-bit word.
template <class T>
struct PlaceOf {
  using Type = T;
  static constexpr bool kIsWord = false;
};
template <class T>
struct WordPlace {
  using Type = T;
  static constexpr bool kIsWord = true;
};
template <>
struct PlaceOf<float> : WordPlace<float> {};
template <>
struct PlaceOf<int> : WordPlace<int> {};
template <>
struct PlaceOf<unsigned> : WordPlace<unsigned> {};
template <>
struct PlaceOf<bool> : PlaceOf<int> {};
// Stores the thread's vector at all[thread * kWidth]. If kWidth = 8, four of eight threads store their second half
// first, which avoids bank conflicts.
template <class T, class From, int kWidth>
__device__ __forceinline__ void put_places(T* all, const From (&slots)[kWidth], int thread) {
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
__device__ __forceinline__ void get_places(T* places, const From* all, int thread) {
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

//@ part shifted_lines : put_places spread_partials
// Reduces kRows columns over unaligned lines. kParts threads have partial results, kLanes per line: slots[e] is of
// column first + e. Vectors are aligned in memory, so the first and last of a line may reach beyond the columns. Thread
// i < kRows gets the result of column i; places[e] becomes that of column first + e, for e < kPlaces.
template <int kTeam, int kParts, int kLanes, int kRows, int kPlaces, int kWidth, class Combine, class T>
__device__ __forceinline__ T reduce_shifted(const T (&slots)[kWidth], T* places, int first, Combine combine) {
  constexpr int kLines = kParts / kLanes;
  constexpr bool kDense = PlaceOf<T>::kIsWord && kWidth % 4 == 0;
  __shared__ alignas(16) SpreadPartials<typename PlaceOf<T>::Type, kParts * kWidth> all;
  __shared__ int begins[kLines];  // index of each line's column 0
  const int thread = threadIdx.x;
  __syncthreads();
  if (thread < kParts) {
    if constexpr (kDense) {
      put_places(all.value, slots, thread);
    } else {
#pragma unroll
      for (int e = 0; e < kWidth; ++e) all.put(thread * kWidth + e, slots[e]);
    }
    if (thread % kLanes == 0) begins[thread / kLanes] = thread * kWidth - first;
  }
  __syncthreads();
  const auto of_line = [&](int line) {
    const int place = begins[line] + thread;
    if constexpr (kDense) return (T)all.get_dense(place);
    return (T)all.get(place);
  };
  T value = slots[0];
  if (thread < kRows) {
    value = of_line(0);
#pragma unroll 8
    for (int line = 1; line < kLines; ++line) value = combine(value, of_line(line));
  }
  if constexpr (kPlaces > 0) {  // overwrites each line's partial results with its columns' results
    __syncthreads();
    if (thread < kRows) {
#pragma unroll 8
      for (int line = 0; line < kLines; ++line) {
        if constexpr (kDense)
          all.put_dense(begins[line] + thread, value);
        else
          all.put(begins[line] + thread, value);
      }
    }
    __syncthreads();
    if constexpr (kDense) {
      if (thread < kParts) get_places<kWidth>(places, all.value, thread);
    } else {
#pragma unroll
      for (int e = 0; e < kPlaces; ++e) places[e] = (T)all.get(thread < kParts ? thread * kWidth + e : 0);
    }
  }
  return value;
}

//@ part interleaved_reduce : spread_partials warp_reduce
// A layout of the results of kRows interleaved rows, from which lane e of thread t reads row (t * kPlaces + e) % kRows.
//   row r is at r % kShared * kLine + r / kShared * kToNext % kPeriod     (kShared: greatest common divisor)
// For each e, neighbouring threads read neighbouring words. Threads kPeriod apart read the same row. The first 31
// results of a period are repeated after it, because a warp may begin anywhere in it.
template <int kRows, int kPlaces>
struct ResultsInTurn {
  static constexpr __device__ int common_divisor(int a, int b) { return b == 0 ? a : common_divisor(b, a % b); }
  static constexpr int kShared = common_divisor(kRows, kPlaces), kPeriod = kRows / kShared, kLine = kPeriod + 31;
  static constexpr __device__ int threads_to_next_row() {
    int threads = 0;
    while (kPeriod > 1 && threads * (kPlaces / kShared) % kPeriod != 1) ++threads;
    return threads;
  }
  static constexpr int kToNext = threads_to_next_row();
  // Neighbouring threads write rows kStep apart: 2 if neighbouring rows are in the same banks.
  static constexpr bool kNearBank = (kToNext + 1) % 32 <= 2;
  static constexpr int kStep = kRows % 2 == 1 && (kPlaces == 2 || kNearBank) ? 2 : 1;
  // Not for periods that fit in a warp: results in the order of rows are as good then.
  static constexpr bool kWanted = kPlaces > 0 && kPeriod > 32;

  static __device__ __forceinline__ int place_of(int row) {
    return row % kShared * kLine + row / kShared * kToNext % kPeriod;
  }
  template <class T, class Partials>
  static __device__ __forceinline__ void put(Partials& all, int row, T value) {
    const int place = place_of(row);
    all.put_dense(place, value);
    if (place % kLine < 31) all.put_dense(place + kPeriod, value);
  }
  template <class T, class Partials>
  static __device__ __forceinline__ void get(const Partials& all, int thread, T* places) {
    const int lane = thread % 32, first = (thread - lane) % kPeriod;
#pragma unroll
    for (int e = 0; e < kPlaces; ++e) {
      const int begin = first + e / kShared * kToNext % kPeriod;
      places[e] = all.get_dense(e % kShared * kLine + (begin < kPeriod ? begin : begin - kPeriod) + lane);
    }
  }
};

// Combines elements first, first + kWorking, ... of kCount.
template <int kWorking, int kCount, class Combine, class T, class Partials>
__device__ __forceinline__ T every_so_many(const Partials& all, int first, Combine combine) {
  T value = all.get(first);
#pragma unroll 8
  for (int i = kWorking; i < kCount; i += kWorking)  // same trip count for all threads
    if (first + i < kCount) value = combine(value, all.get(first + i));
  return value;
}
// Reduces kRows interleaved rows over a team of kTeam threads: a block, or one of its kTeams warps. kParts of them have
// partial results: slots[e] is of row (thread * kWidth + e) % kRows. Thread i < kRows gets the result of row i;
// places[e] becomes that of row (thread * kPlaces + e) % kRows. Only kLanes threads of a warp read shared memory at a
// time, which avoids bank conflicts.
template <int kTeam, int kTeams, int kParts, int kWidth, int kRows, int kPlaces, class Combine, class T>
__device__ __forceinline__ T interleaved_reduce(const T (&slots)[kWidth], T* places, int thread, Combine combine) {
  constexpr bool kAlike = kWidth % kRows == 0 && kParts == kTeam;  // slots[e] is of row e % kRows in every thread
  constexpr int kLanes = sizeof(T) > 4 ? 8 : 16, kReaders = kTeam / 32 * kLanes, kWorking = kReaders / kRows * kRows;
  constexpr int kAll = kAlike ? kTeam / 32 * kRows : kParts * kWidth;
  constexpr bool kTwice = kWorking > kRows && kAll > kWorking;
  constexpr int kLeft = kTwice ? kWorking : kAll;
  using Results = ResultsInTurn<kRows, kPlaces>;
  constexpr int kResults = Results::kWanted ? Results::kShared * Results::kLine : 0;
  using Shared = SpreadPartials<T, (kAll > kResults ? kAll : kResults)>;
  __shared__ Shared teams[kTeams];
  Shared& all = teams[kTeams == 1 ? 0 : threadIdx.x / kTeam];
  const auto meet = [] {
    if constexpr (kTeams > 1)
      __syncwarp();
    else
      __syncthreads();
  };
  meet();
  if constexpr (kAlike) {
#pragma unroll
    for (int row = 0; row < kRows; ++row) {
      T value = slots[row];
#pragma unroll
      for (int e = row + kRows; e < kWidth; e += kRows) value = combine(value, slots[e]);
      value = warp_reduce(value, combine);
      if (thread % 32 == row) all.put(thread / 32 * kRows + row, value);
    }
  } else if (thread < kParts) {
#pragma unroll
    for (int e = 0; e < kWidth; ++e) all.put(thread * kWidth + e, slots[e]);
  }
  meet();
  const int reader = thread % 32 < kLanes ? thread / 32 * kLanes + thread % 32 : kAll;
  if constexpr (kTwice) {
    T value = slots[0];
    if (reader < kWorking) value = every_so_many<kWorking, kAll, Combine, T>(all, reader, combine);
    meet();
    if (reader < kWorking) all.put(reader, value);
    meet();
  }
  const auto row_of = [](int i) { return Results::kWanted ? i * Results::kStep % kRows : i; };
  T results[(kRows + kReaders - 1) / kReaders];
#pragma unroll
  for (int first = 0; first < kRows; first += kReaders) {
    results[first / kReaders] = slots[0];
    if (reader + first < kRows)
      results[first / kReaders] = every_so_many<kRows, kLeft, Combine, T>(all, row_of(reader + first), combine);
  }
  meet();
#pragma unroll
  for (int first = 0; first < kRows; first += kReaders) {
    if (reader + first >= kRows) continue;
    if constexpr (Results::kWanted)
      Results::put(all, row_of(reader + first), results[first / kReaders]);
    else
      all.put(reader + first, results[first / kReaders]);
  }
  meet();
  if constexpr (Results::kWanted) {
    Results::get(all, thread, places);
    return all.get_dense(Results::place_of(thread < kRows ? thread : 0));
  }
#pragma unroll
  for (int e = 0; e < kPlaces; ++e) places[e] = all.get((thread * kPlaces + e) % kRows);
  return all.get(thread < kRows ? thread : 0);
}

//@ part reduce_pieces : put_places spread_partials block_reduce
// Reduces kRows rows with kBreadth neighbouring elements per line. kParts threads have partial results: slots[e] is of
// row (thread * kWidth + e) / kBreadth % kRows. Thread i < kRows gets the result of row i; places[e] becomes that of
// the row of slots[e], for e < kPlaces. `none` is the identity of `combine`.
template <int kTeam, int kParts, int kBreadth, int kRows, int kPlaces, int kWidth, class Combine, class T>
__device__ __forceinline__ T reduce_pieces(const T (&slots)[kWidth], T* places, T none, Combine combine) {
  constexpr int kColumns = kRows * kBreadth, kCount = kParts * kWidth, kLines = kCount / kColumns;
  constexpr int kEven = kBreadth & -kBreadth, kPiece = kBreadth / kEven, kPieces = kCount / kPiece;
  constexpr bool kDense = PlaceOf<T>::kIsWord && kWidth % 4 == 0, kAlone = kDense && kPiece <= 64;
  constexpr int kAtOnce = 16;  // more unrolling makes NVRTC slow
  constexpr int kOfRow = kLines * kEven;  // pieces of a row; kHelpers threads share them
  constexpr int kHelpers = kOfRow <= 32 ? 1 : kTeam / kRows >= 32 ? 32 : kTeam / kRows >= 8 ? 8 : 1;
  const int thread = threadIdx.x;
  __shared__ T rows[kRows];
  __syncthreads();
  if constexpr (kAlone) {  // a thread reduces a piece; its length is odd: no bank conflict
    __shared__ alignas(16) typename PlaceOf<T>::Type all[kCount];
    __shared__ SpreadPartials<T, kPiece == 1 ? 1 : kPieces> pieces;
    if (thread < kParts) put_places(all, slots, thread);
    __syncthreads();
    if constexpr (kPiece > 1) {
#pragma unroll 1
      for (int piece = thread; piece < kPieces; piece += kTeam) {
        T value = (T)all[piece * kPiece];
#pragma unroll
        for (int i = 1; i < kPiece; ++i) value = combine(value, (T)all[piece * kPiece + i]);
        pieces.put(piece, value);
      }
      __syncthreads();
    }
    const auto piece_at = [&](int i) { return kPiece == 1 ? (T)all[i] : pieces.get(kPiece == 1 ? 0 : i); };
    T value = none;
    if (thread < kHelpers * kRows) {
#pragma unroll kAtOnce
      for (int i = thread / kRows; i < kOfRow; i += kHelpers) {
        const int row = thread % kRows, even = (i % kEven + row * kEven / 32) % kEven;  // rotated: no bank conflict
        value = combine(value, piece_at((i / kEven * kRows + row) * kEven + even));
      }
    }
    if constexpr (kHelpers > 1) {
      __shared__ T helped[kHelpers * kRows];
      if (thread < kHelpers * kRows) helped[thread] = value;
      __syncthreads();
      if (thread < kRows) {
#pragma unroll
        for (int i = 1; i < kHelpers; ++i) value = combine(value, helped[i * kRows + thread]);
      }
    }
    if (thread < kRows) rows[thread] = value;
  } else {  // a warp reduces a row; it reads padded elements from multiples of 32 on
    __shared__ alignas(16) SpreadPartials<typename PlaceOf<T>::Type, kCount> all;
    if (thread < kParts) {
      if constexpr (kDense) {
        put_places(all.value, slots, thread);
      } else {
#pragma unroll
        for (int e = 0; e < kWidth; ++e) all.put(thread * kWidth + e, slots[e]);
      }
    }
    __syncthreads();
#pragma unroll 1
    for (int row = thread / 32; row < kRows; row += kTeam / 32) {
      T value = none;
#pragma unroll 1
      for (int first = row * kBreadth; first < kCount; first += kColumns)
#pragma unroll 4
        for (int i = (kDense ? first : first / 32 * 32) + thread % 32; i < first + kBreadth; i += 32)
          if (kDense)
            value = combine(value, (T)all.get_dense(i));
          else if (i >= first)
            value = combine(value, (T)all.get(i));
      value = warp_reduce(value, combine);
      if (thread % 32 == 0) rows[row] = value;
    }
  }
  __syncthreads();
#pragma unroll
  for (int e = 0; e < kPlaces; ++e) {
    const int column = kColumns % kWidth == 0 ? thread % (kColumns / kWidth) * kWidth + e
                                              : (thread * kWidth + e) % kColumns;  // a vector may span two lines
    places[e] = rows[column / kBreadth];
  }
  return rows[thread < kRows ? thread : 0];
}
// Reduces one row with kBreadth neighbouring elements per line, at any alignment. slots[e] is of element first + e of
// these, and ignored outside 0 ... kBreadth - 1. All threads get the result, also in `places`.
template <int kTeam, int kParts, int kBreadth, int kPlaces, int kCall, int kWidth, class Combine, class T>
__device__ __forceinline__ T reduce_piece(const T (&slots)[kWidth], T* places, int first, T none, Combine combine) {
  T value = none;
  if (threadIdx.x < kParts) {
#pragma unroll
    for (int e = 0; e < kWidth; ++e)
      if (first + e >= 0 && first + e < kBreadth) value = combine(value, slots[e]);
  }
  value = block_reduce<kTeam, kCall>(value, combine);
#pragma unroll
  for (int e = 0; e < kPlaces; ++e) places[e] = value;
  return value;
}
