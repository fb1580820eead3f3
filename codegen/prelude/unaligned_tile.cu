// Asynchronous copies of unaligned operands to tiles in shared memory, and loads of a thread's vector from them.

//@ part unaligned_tile : words
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
__device__ __forceinline__ int stage_unaligned(unsigned* tile, const void* tensor, Index at, int vectors, int thread) {
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
// Loads the thread's vector of kCount words from a tile, without the first `bits` bits (see stage_unaligned). The next
// vector is loaded whole, because single words of several threads would be in the same bank.
template <int kBits, int kCount>
__device__ __forceinline__ Words<kCount> load_staged_vector(const unsigned* tile, int bits) {
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
