// Rows that begin anywhere in memory, beside operands that lie differently to vectors than they do.

//@ part beside_tile : words
// Words into shared memory while the thread goes on, from where one is copied to where it is, as word `first` of some:
// kLeast and kMost bound how many there are. A warp's copies begin with sectors: few threads have turns before word 0.
template <int kBytes, int kAt = 0>
__device__ __forceinline__ void copy_bytes(unsigned to, const void* from) {
  asm volatile("cp.async.ca.shared.global [%0+%2], [%1+%2], %3;"
               :
               : "r"(to), "l"(__cvta_generic_to_global(from)), "n"(kAt), "n"(kBytes));
}
template <int kThreads, int kEach, int kLeast, int kMost, int kTurn = 0>
__device__ __forceinline__ void copy_words(unsigned to, const unsigned* from, int words, int first) {
  constexpr int kStep = kEach * kThreads;
  const bool begun = kTurn * kStep >= 8 - kEach || first + kTurn * kStep >= 0;
  if (begun && ((kTurn + 1) * kStep <= kLeast || first + kTurn * kStep + kEach <= words))
    copy_bytes<4 * kEach, 4 * kTurn * kStep>(to, from);
  if constexpr ((kTurn + 1) * kStep - (8 - kEach) < kMost)
    copy_words<kThreads, kEach, kLeast, kMost, kTurn + 1>(to, from, words, first);
}
// Word by word of what is left over.
template <int kCount, int kEach>
__device__ __forceinline__ void copy_last_words(unsigned to, const unsigned* from, int words, int thread) {
  if constexpr (kCount % kEach != 0)
    if (const int left = words % kEach; thread < left)
      copy_bytes<4>(to + 4 * (words - left + thread), from + words - left + thread);
}
// In pieces of kPiece words, which lie kFrom words apart, to places kTo words apart.
template <int kThreads, int kEach, int kCount, int kPiece, int kPieces, int kTo, int kFrom>
__device__ __forceinline__ void copy_pieces(unsigned to, const unsigned* from, int words, int first, int thread) {
#pragma unroll 1  // or else all copies of each piece stand in the text
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
// What there is of a tile's words: as bounds where that is one piece, else in such pieces; kMost 0: one, not bounded.
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
// Vectors of kCount words from element `at` of a tensor on. The word in which that begins comes first, and how many
// bits of it lie before is returned; of the word behind the last as much is there, and zeros.
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
  // Of each piece one warp: places of several may be in one bank.
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
// A thread's words, which touch its neighbours', without that many bits. Whole vectors are read, also where one word of
// the next is needed: several threads would read it from the same bank.
template <int kBits, int kCount>
__device__ __forceinline__ Words<kCount> words_of_tile(const unsigned* tile, int bits) {
  if constexpr (kCount == 8) {  // four threads begin with their second half, so that all eight are in different banks
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
// Of the elements so far the greatest, and the sum of their exponentials below it.
struct RunningExponentials {
  // Minus infinity. It is no intrinsic: nvcc compiles member initializers for the host as well.
  float greatest = -1.0e38f * 10.0f;
  float sum = 0.0f;
  // What is subtracted before exponentials: a finite number, so that infinite elements are not subtracted from
  // themselves. NaN is in the sum as soon as it is the greatest.
  __device__ __forceinline__ static float shift_of(float x) {
    return fminf(fmaxf(x, -3.402823466e38f), 3.402823466e38f);
  }
  __device__ __forceinline__ float shift() const { return shift_of(greatest); }
  template <int kCount>
  __device__ __forceinline__ void take_elements(const float (&elements)[kCount]) {
    float now = greatest;
#pragma unroll
    for (int e = 0; e < kCount; ++e) now = nan_max(now, elements[e]);
    if (!(now <= greatest)) {  // NaN, too
      sum *= exp_fast(shift() - shift_of(now));
      greatest = now;
    }
#pragma unroll
    for (int e = 0; e < kCount; ++e) sum += exp_fast(elements[e] - shift());
  }
  // Others' greatest and their sum below it.
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
// The same for each of kWidth places. Sums below the greatest so far become smaller with every element that is greater:
// some lane nearly always has one, so that all are scaled. Below a finite number, they say whether that is the greatest.
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
  // None, or only infinite ones, have a sum of 0; NaN's is NaN.
  __device__ __forceinline__ float greatest_of(int place) const {
    const float all = sum[place], infinity = __uint_as_float(0x7f800000u);
    if (all == 0.0f) return -infinity;
    return all < infinity ? shift[place] : all;
  }
};

//@ part running_moments : reciprocal_fast
// Of the elements so far their sum times 2^-kScale, how many there are, their mean and the squares of their differences
// to it.
__device__ __forceinline__ float share_of(float elements, float count) { return elements * reciprocal_fast(count); }
__device__ __forceinline__ double share_of(double elements, double count) { return elements / count; }
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
    squares += beside + apart * share * (apart * before);  // 0 of the first, however large
  }
  // Others' sum and squares of differences to their mean. Means are counted from `about` here: what lies between them
  // is far less than they are and is not rounded as they are.
  __device__ __forceinline__ void take_part(T more, T beside, T elements, T about) {
    if (elements == 0) return;
    const T before = count, apart = more / (elements * kUnit) - about - mean;
    sum += more;
    count += elements;
    const T share = elements / count;
    mean += apart * share;
    squares += beside + apart * share * (apart * before);  // 0 of the first, however large
  }
};
//@ part places_of_pieces
// Thread i < kRows has the result of row i: all get those of their places, of which the first is element `first` of a
// line's.
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
// Thread i < kRows has the result of row i: that of row i % kRows for every thread i. A warp begins anywhere among them:
// the first 31 stand once more behind the last.
template <int kRows, class T>
__device__ __forceinline__ T result_in_turn(T result, int thread) {
  __shared__ T results[kRows + 31];
  if (thread < kRows) results[thread] = result;
  if (kRows > 31 && thread < 31) results[kRows + thread] = result;
  __syncthreads();
  return results[kRows > 31 ? (thread - thread % 32) % kRows + thread % 32 : thread % kRows];
}
//@ part elements_of_chunk
// Of lines that `chunks` blocks take in turn, so many at once, those of one.
template <int kAtOnce>
__device__ __forceinline__ float lines_of_chunk(int lines, int chunks, int chunk) {
  const int turns = lines / (kAtOnce * chunks), left = lines - turns * (kAtOnce * chunks) - chunk * kAtOnce;
  return (float)(turns * kAtOnce + min(max(left, 0), kAtOnce));
}
// The same of elements of which kBreadth at a time are of one row, kLine of all rows, and of which so many are before
// the first that chunks take: those of row `row`.
template <int kLine, int kBreadth, class Index>
__device__ __forceinline__ Index elements_of_row(Index elements, int row) {
  return elements / kLine * kBreadth + min(max((int)(elements % kLine) - row * kBreadth, 0), kBreadth);
}
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
// The same of elements that come one at a time, for each of kWidth places. What is summed up is how far they lie from
// the first one (0 where that is infinite): squares of this are at most `count` times as many as those of differences
// to the mean, since the first element is one of them, so that little is lost where one is taken from the other.
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
    all.squares = isinf(squares[place]) ? squares[place] : left < 0 ? T(0) : left;  // NaN is left as it is
    return all;
  }
};

//@ part cohort
// Blocks that wait for one another. One that has ticket t waits for none with a ticket beyond its row's.
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
// What the threads of all blocks have stored before is there for those of each behind it.
__device__ __forceinline__ void cohort_meet(unsigned* arrived, unsigned blocks) {
  __syncthreads();
  if (threadIdx.x == 0) {
    cohort_arrive(arrived);
    cohort_wait(arrived, blocks);
  }
  __syncthreads();
}

//@ part cohort_reduce : cohort block_reduce
// For the kBlocks blocks that share a row, of which this is number `rank`: as block_reduce, over all their threads.
// Each leaves its result in `partials`, says in `arrived` that it has, and waits until all have; calls of one kernel
// have partials of their own, and count on.
template <int kThreads, int kBlocks, int kCall, class Combine, class T>
__device__ __forceinline__ T cohort_reduce(T value, Combine combine, T* partials, unsigned* arrived, int rank) {
  __shared__ T of_blocks[kBlocks];
  value = block_reduce<kThreads, kCall>(value, combine);
  if (threadIdx.x == 0) {
    partials[rank] = value;
    cohort_arrive(arrived);
  }
  if (threadIdx.x < kBlocks) {  // of one warp, each for itself
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
// Elements in shared memory so that threads which are 2, 4 or 8 apart find theirs in different banks, and 16
// neighbours.
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
struct SpreadPartials<bool, kCount> {  // as words: bytes would meet in a bank
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
// The elements of a vector of memory of which not all may be there: 0 for the others.
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
// The elements from `first` to before `last` of a vector, which are all but of those that reach over an end: these go in
// pieces of 8 and 4 bytes and what is left over one by one.
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
// Places of threads' vectors in shared memory.
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
// As they follow one another: of eight threads four begin with their second half, so that all are in different banks.
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
// Lines that begin anywhere, whose vectors lie as those of memory: the first and last have elements of others as well.
// The partial results of kParts threads of a block, kLanes to a line, each of kWidth neighbouring columns from `first`
// on, of which there are kRows. Thread i < kRows gets that of column i, and all get those of kPlaces places.
template <int kTeam, int kParts, int kLanes, int kRows, int kPlaces, int kWidth, class Combine, class T>
__device__ __forceinline__ T reduce_shifted(const T (&slots)[kWidth], T* places, int first, Combine combine) {
  constexpr int kLines = kParts / kLanes;
  constexpr bool kDense = PlaceOf<T>::kIsWord && kWidth % 4 == 0;
  __shared__ alignas(16) SpreadPartials<typename PlaceOf<T>::Type, kParts * kWidth> all;
  __shared__ int begins[kLines];  // places of each line before column 0
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
  if constexpr (kPlaces > 0) {  // each line's places get what their columns have
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
// Where the results of kRows rows lie for threads with kPlaces places each, number i of all of row i % kRows: at a
// place, neighbouring threads find theirs side by side, so that a warp's lie in as many banks. Threads kPeriod apart
// have the same rows, and a warp begins anywhere in a period: its first 31 results stand once more behind it.
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
  // Rows that are put side by side: not the next ones where those lie in the same banks.
  static constexpr bool kNearBank = (kToNext + 1) % 32 <= 2;
  static constexpr int kStep = kRows % 2 == 1 && (kPlaces == 2 || kNearBank) ? 2 : 1;
  // Else a warp has all rows of a place, and rows that follow one another do as well.
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

// Elements of kRows rows in turn: the partial results of kParts threads of a team, kWidth each; number i of all is one
// of row i % kRows. Thread i < kRows gets that of row i, and all get those of kPlaces places, numbered as the others.
// Of a warp no more than 16 threads, or 8, read side by side: they would meet in a bank otherwise.
template <int kWorking, int kCount, class Combine, class T, class Partials>
__device__ __forceinline__ T every_so_many(const Partials& all, int first, Combine combine) {
  T value = all.get(first);
#pragma unroll 8
  for (int i = kWorking; i < kCount; i += kWorking)  // as often for each thread: they stay side by side
    if (first + i < kCount) value = combine(value, all.get(first + i));
  return value;
}
template <int kTeam, int kTeams, int kParts, int kWidth, int kRows, int kPlaces, class Combine, class T>
__device__ __forceinline__ T interleaved_reduce(const T (&slots)[kWidth], T* places, int thread, Combine combine) {
  constexpr bool kAlike = kWidth % kRows == 0 && kParts == kTeam;  // all threads' places are of the same rows
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
// Rows of kBreadth neighbouring elements in each line: the partial results of kParts threads of a block, kWidth each;
// number i of all is one of row i / kBreadth % kRows. Thread i < kRows gets that of row i, and all get those of kPlaces
// places, numbered as the others.
template <int kTeam, int kParts, int kBreadth, int kRows, int kPlaces, int kWidth, class Combine, class T>
__device__ __forceinline__ T reduce_pieces(const T (&slots)[kWidth], T* places, T none, Combine combine) {
  constexpr int kColumns = kRows * kBreadth, kCount = kParts * kWidth, kLines = kCount / kColumns;
  constexpr int kEven = kBreadth & -kBreadth, kPiece = kBreadth / kEven, kPieces = kCount / kPiece;
  constexpr bool kDense = PlaceOf<T>::kIsWord && kWidth % 4 == 0, kAlone = kDense && kPiece <= 64;
  constexpr int kAtOnce = 16;  // NVRTC takes long for more
  constexpr int kOfRow = kLines * kEven;  // parts of a row, which so many threads share if they are many for one
  constexpr int kHelpers = kOfRow <= 32 ? 1 : kTeam / kRows >= 32 ? 32 : kTeam / kRows >= 8 ? 8 : 1;
  const int thread = threadIdx.x;
  __shared__ T rows[kRows];
  __syncthreads();
  if constexpr (kAlone) {  // a thread goes over an odd number of elements, its neighbour over the next ones
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
        const int row = thread % kRows, even = (i % kEven + row * kEven / 32) % kEven;  // in different banks
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
  } else {  // a warp goes over a row, from a multiple of 32 on where what lies between multiples is no place
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
                                              : (thread * kWidth + e) % kColumns;  // lines begin within vectors
    places[e] = rows[column / kBreadth];
  }
  return rows[thread < kRows ? thread : 0];
}
// The same of one row whose pieces begin anywhere: of a thread's places those are its elements that are less than
// kBreadth behind its first, which the thread's first is `first` behind.
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
