// Copies rows of consecutive elements between global memory and tiles of four bytes per element in shared memory.

//@ part row_tiles : words shared_address
// Copies consecutive elements between global memory (Stored) and a tile in shared memory (T, four bytes each). `thread`
// is one of the kThreads that copy. The first element is `before` elements past a multiple of 16 bytes, in the tile
// `before` values. A vector of 16 bytes is kPieces pieces of four values in the tile; threads whose pieces would
// conflict in banks begin with different ones. Partial vectors at the ends are copied by elements.
template <int kPieces>
__device__ __forceinline__ int first_piece() { return kPieces == 1 ? 0 : threadIdx.x / (8 / kPieces) % kPieces; }
// Exchanges the pieces of a vector: piece p becomes piece p ^ by.
template <int kPieces>
__device__ __forceinline__ Words<4> exchanged(Words<4> words, int by) {
#pragma unroll
  for (int bit = 1; bit < kPieces; bit *= 2) {
    constexpr int kWords = 4 / kPieces;  // of a piece
#pragma unroll
    for (int i = 0; i < 4; ++i)
      if (!(i / kWords & bit)) {
        const int j = i + bit * kWords;
        const unsigned a = words.w[i], b = words.w[j];
        words.w[i] = by & bit ? b : a, words.w[j] = by & bit ? a : b;
      }
  }
  return words;
}
template <class Stored>
__device__ __forceinline__ unsigned bits_of(Stored element) {
  if constexpr (sizeof(Stored) == 4)
    return *(const unsigned*)&element;
  else
    return (unsigned)element;
}
// Stores four values by one access. The compiler merges four stores only if it knows the tile's alignment.
template <class T>
__device__ __forceinline__ void store_four(unsigned to, const T (&values)[4]) {
  asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(bits_of(values[0])), "r"(bits_of(values[1])),
               "r"(bits_of(values[2])), "r"(bits_of(values[3]))
               : "memory");
}
// Copies `count` elements, at most kMost, to the tile one by one. `widen` converts the bits of an element.
template <int kThreads, int kMost, class T, class Stored, class Widen>
__device__ __forceinline__ void elements_to_tile(int thread, T* tile, const Stored* from, int count, Widen widen) {
#pragma unroll
  for (int turn = 0; turn < (kMost + kThreads - 1) / kThreads; ++turn)
    if (const int i = turn * kThreads + thread; i < count) tile[i] = widen(bits_of(from[i]));
}
// The elements, at most, of all vectors of kEach that hold any of `most` consecutive elements.
template <int kEach, bool kAligned>
__device__ constexpr int room_of_rows(int most) {
  return kAligned ? most : (most + 2 * (kEach - 1)) / kEach * kEach;
}
// Calls visit(place) for the first vector from `before` on and for the whole vector that contains `end`, if they are
// partial. With several warps, two of them do this at the same time.
template <int kEach, int kThreads, class Visit>
__device__ __forceinline__ void visit_partial_vectors(int thread, int before, int end, Visit visit) {
  const int last = end / kEach * kEach, warp = thread / 32, lane = thread % 32;
#pragma unroll
  for (int side = 0; side < (kThreads > 32 ? 1 : 2); ++side) {
    const bool begins = kThreads > 32 ? warp == 0 : side == 0;
    const bool cut = begins ? before > 0 : last < end && (before == 0 || last > 0);
    if (cut && lane < kEach && (begins ? warp == 0 && lane >= before : warp == (kThreads > 32)))
      visit(begins ? lane : last + lane);
  }
}
// Copies `count` elements, at most kMost, to the tile and sets the rest of the tile to 0. kAligned: `before` is 0.
template <int kThreads, int kMost, bool kAligned, class T, class Stored, class Widen>
__device__ __forceinline__ void rows_to_tile(int thread, T* tile, const Stored* rows, int before, int count,
                                             Widen widen) {
  constexpr int kEach = 16 / sizeof(Stored), kPieces = kEach / 4;
  constexpr int kRoom = room_of_rows<kEach, kAligned>(kMost);
  constexpr int kTurns = (kRoom / kEach + kThreads - 1) / kThreads;
  tile -= before, rows -= before;
  const int end = before + count;
  Words<4> words[kTurns];  // all loads are in flight at once
#pragma unroll
  for (int turn = 0; turn < kTurns; ++turn) {
    const int at = (turn * kThreads + thread) * kEach;
    if (at >= before && at + kEach <= end) words[turn] = load_words<4>(rows + at);
  }
  const int first = first_piece<kPieces>();
  const unsigned room = shared_address(tile);
#pragma unroll
  for (int turn = 0; turn < kTurns; ++turn) {
    const int at = (turn * kThreads + thread) * kEach;
    if (at >= before && at + kEach <= end) {
      const Words<4> ordered = exchanged<kPieces>(words[turn], first);
#pragma unroll
      for (int piece = 0; piece < kPieces; ++piece) {
        T four[4];
#pragma unroll
        for (int e = 0; e < 4; ++e) four[e] = widen(element<8 * sizeof(Stored)>(ordered, 4 * piece + e));
        store_four(room + 4 * (at + 4 * (piece ^ first)), four);
      }
    } else if (at >= end && at < kRoom) {
#pragma unroll
      for (int piece = 0; piece < kPieces; ++piece) {
        const T none[4] = {};
        store_four(room + 4 * (at + 4 * (piece ^ first)), none);
      }
    }
  }
  if constexpr (kAligned) {
    if (count % kEach == 0 || thread >= kEach) return;
    const int at = count / kEach * kEach + thread;
    tile[at] = at < count ? widen(bits_of(rows[at])) : T{};
  } else {
    visit_partial_vectors<kEach, kThreads>(thread, before, end,
                                [&](int at) { tile[at] = at < end ? widen(bits_of(rows[at])) : T{}; });
  }
}
// Narrows four values one by one and packs them into words.
template <class Narrow>
struct OneByOne {
  Narrow narrow;
  template <class T>
  __device__ __forceinline__ auto operator()(const T (&values)[4]) const {
    using Stored = decltype(narrow(values[0]));
    Words<sizeof(Stored)> words = {};
#pragma unroll
    for (int e = 0; e < 4; ++e) put_element<8 * sizeof(Stored)>(words, e, bits_of(narrow(values[e])));
    return words;
  }
};
// Copies `count` values, at most kMost, to global memory. `narrow` converts one value, `four_words` packs four.
template <int kThreads, int kMost, bool kAligned, class T, class Stored, class Narrow, class Four>
__device__ __forceinline__ void tile_to_rows(int thread, Stored* rows, const T* tile, int before, int count,
                                             Narrow narrow, Four four_words) {
  constexpr int kEach = 16 / sizeof(Stored), kPieces = kEach / 4;
  constexpr int kRoom = room_of_rows<kEach, kAligned>(kMost);
  tile -= before, rows -= before;
  const int first = first_piece<kPieces>(), end = before + count;
#pragma unroll
  for (int turn = 0; turn < (kRoom / kEach + kThreads - 1) / kThreads; ++turn) {
    const int at = (turn * kThreads + thread) * kEach;
    if (at < before || at + kEach > end) continue;
    Words<4> words;
#pragma unroll
    for (int piece = 0; piece < kPieces; ++piece) {
      struct alignas(16) Values {
        T v[4];
      };
      const Values four = *(const Values*)(tile + at + 4 * (piece ^ first));
      const auto of_piece = four_words(four.v);
#pragma unroll
      for (int i = 0; i < 4 / kPieces; ++i) words.w[4 / kPieces * piece + i] = of_piece.w[i];
    }
    const Words<4> vector = exchanged<kPieces>(words, first);
    __stwb((uint4*)(rows + at), make_uint4(vector.w[0], vector.w[1], vector.w[2], vector.w[3]));
  }
  if constexpr (kAligned) {
    if (count % kEach == 0) return;
    if (const int at = count / kEach * kEach + thread; at < count) rows[at] = (Stored)narrow(tile[at]);
  } else {
    visit_partial_vectors<kEach, kThreads>(thread, before, end, [&](int at) {
      if (at < end) rows[at] = (Stored)narrow(tile[at]);
    });
  }
}
template <int kThreads, int kMost, bool kAligned, class T, class Stored, class Narrow>
__device__ __forceinline__ void tile_to_rows(int thread, Stored* rows, const T* tile, int before, int count,
                                             Narrow narrow) {
  tile_to_rows<kThreads, kMost, kAligned>(thread, rows, tile, before, count, narrow, OneByOne<Narrow>{narrow});
}
