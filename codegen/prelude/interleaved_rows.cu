// Block-wide reductions of rows whose elements interleave in memory: element i of a line is of row i % rows, or of row
// i / breadth % rows if a row has several neighbouring elements per line.

//@ part broadcast_row_results
// Thread i < kRows passes the result of row i, which has columns i * kBreadth ... (i + 1) * kBreadth - 1. places[e]
// becomes the result of the row of column first + e.
template <int kBreadth, int kRows, int kPlaces, class T>
__device__ __forceinline__ void broadcast_row_results(T result, T (&places)[kPlaces], int first) {
  __shared__ T rows[kRows];
  __syncthreads();
  if (threadIdx.x < kRows) rows[threadIdx.x] = result;
  __syncthreads();
#pragma unroll
  for (int e = 0; e < kPlaces; ++e) places[e] = rows[(first + e) / kBreadth];
}

//@ part interleaved_result
// Thread i < kRows passes the result of row i. Every thread i gets that of row i % kRows. The first 31 results are
// repeated after the last, so that each warp reads consecutive words.
template <int kRows, class T>
__device__ __forceinline__ T interleaved_result(T result, int thread) {
  __shared__ T results[kRows + 31];
  if (thread < kRows) results[thread] = result;
  if (kRows > 31 && thread < 31) results[kRows + thread] = result;
  __syncthreads();
  return results[kRows > 31 ? (thread - thread % 32) % kRows + thread % 32 : thread % kRows];
}

//@ part interleaved_reduce : padded_partials warp_reduce
// A layout of the results of kRows interleaved rows, from which lane e of thread t reads row (t * kPlaces + e) % kRows.
//   row r is at r % kShared * kLine + r / kShared * kToNext % kPeriod     (kShared: greatest common divisor)
// For each e, neighbouring threads read neighbouring words. Threads kPeriod apart read the same row. The first 31
// results of a period are repeated after it, because a warp may begin anywhere in it.
template <int kRows, int kPlaces>
struct InterleavedResults {
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
__device__ __forceinline__ T combine_strided(const Partials& all, int first, Combine combine) {
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
  using Results = InterleavedResults<kRows, kPlaces>;
  constexpr int kResults = Results::kWanted ? Results::kShared * Results::kLine : 0;
  using Shared = PaddedPartials<T, (kAll > kResults ? kAll : kResults)>;
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
    if (reader < kWorking) value = combine_strided<kWorking, kAll, Combine, T>(all, reader, combine);
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
      results[first / kReaders] = combine_strided<kRows, kLeft, Combine, T>(all, row_of(reader + first), combine);
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

//@ part reduce_pieces : store_lanes_shared padded_partials block_reduce
// Reduces kRows rows with kBreadth neighbouring elements per line. kParts threads have partial results: slots[e] is of
// row (thread * kWidth + e) / kBreadth % kRows. Thread i < kRows gets the result of row i; places[e] becomes that of
// the row of slots[e], for e < kPlaces. `none` is the identity of `combine`.
template <int kTeam, int kParts, int kBreadth, int kRows, int kPlaces, int kWidth, class Combine, class T>
__device__ __forceinline__ T reduce_pieces(const T (&slots)[kWidth], T* places, T none, Combine combine) {
  constexpr int kColumns = kRows * kBreadth, kCount = kParts * kWidth, kLines = kCount / kColumns;
  constexpr int kEven = kBreadth & -kBreadth, kPiece = kBreadth / kEven, kPieces = kCount / kPiece;
  constexpr bool kDense = SharedTypeOf<T>::kIsWord && kWidth % 4 == 0, kAlone = kDense && kPiece <= 64;
  constexpr int kAtOnce = 16;  // more unrolling makes NVRTC slow
  constexpr int kOfRow = kLines * kEven;  // pieces of a row; kHelpers threads share them
  constexpr int kHelpers = kOfRow <= 32 ? 1 : kTeam / kRows >= 32 ? 32 : kTeam / kRows >= 8 ? 8 : 1;
  const int thread = threadIdx.x;
  __shared__ T rows[kRows];
  __syncthreads();
  if constexpr (kAlone) {  // a thread reduces a piece; its length is odd: no bank conflict
    __shared__ alignas(16) typename SharedTypeOf<T>::Type all[kCount];
    __shared__ PaddedPartials<T, kPiece == 1 ? 1 : kPieces> pieces;
    if (thread < kParts) store_lanes_shared(all, slots, thread);
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
    __shared__ alignas(16) PaddedPartials<typename SharedTypeOf<T>::Type, kCount> all;
    if (thread < kParts) {
      if constexpr (kDense) {
        store_lanes_shared(all.value, slots, thread);
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
