// Words of 32 bits in registers: loads, stores, and the elements packed in them.

//@ part words
// kCount words of 32 bits in registers. Loads and stores use the widest access, 4, 8 or 16 bytes, that divides them;
// the address must be a multiple of that.
template <int kCount>
struct Words {
  unsigned w[kCount];
};
template <int kCount>
__device__ __forceinline__ Words<kCount> load_words(const void* from) {
  Words<kCount> words;
  if constexpr (kCount % 4 == 0) {
#pragma unroll
    for (int i = 0; i < kCount; i += 4) {
      const uint4 four = *(const uint4*)((const unsigned*)from + i);
      words.w[i] = four.x, words.w[i + 1] = four.y, words.w[i + 2] = four.z, words.w[i + 3] = four.w;
    }
  } else if constexpr (kCount % 2 == 0) {
#pragma unroll
    for (int i = 0; i < kCount; i += 2) {
      const uint2 two = *(const uint2*)((const unsigned*)from + i);
      words.w[i] = two.x, words.w[i + 1] = two.y;
    }
  } else {
#pragma unroll
    for (int i = 0; i < kCount; ++i) words.w[i] = ((const unsigned*)from)[i];
  }
  return words;
}
template <int kCount>
__device__ __forceinline__ void store_words(void* to, const Words<kCount>& words) {
  if constexpr (kCount % 4 == 0) {
#pragma unroll
    for (int i = 0; i < kCount; i += 4)
      *(uint4*)((unsigned*)to + i) = make_uint4(words.w[i], words.w[i + 1], words.w[i + 2], words.w[i + 3]);
  } else if constexpr (kCount % 2 == 0) {
#pragma unroll
    for (int i = 0; i < kCount; i += 2) *(uint2*)((unsigned*)to + i) = make_uint2(words.w[i], words.w[i + 1]);
  } else {
#pragma unroll
    for (int i = 0; i < kCount; ++i) ((unsigned*)to)[i] = words.w[i];
  }
}
// Element e of kBits bits, zero-extended. put_element ORs an element into words whose bits there are 0.
template <int kBits, int kCount>
__device__ __forceinline__ unsigned element(const Words<kCount>& words, int e) {
  if constexpr (kBits == 32) return words.w[e];
  constexpr int kEach = 32 / kBits;
  return (words.w[e / kEach] >> (kBits * (e % kEach))) & ((1u << (kBits & 31)) - 1u);
}
template <int kBits, int kCount>
__device__ __forceinline__ void put_element(Words<kCount>& words, int e, unsigned bits) {
  constexpr int kEach = 32 / kBits;
  words.w[e / kEach] |= (kBits == 32 ? bits : bits & ((1u << (kBits & 31)) - 1u)) << (kBits * (e % kEach) & 31);
}

//@ part part_of_word : words
// Loads and stores elements that together have kBits, 8 or 16, less than a word.
template <int kBits>
__device__ __forceinline__ Words<1> load_part(const void* from) {
  if constexpr (kBits == 8) return {*(const unsigned char*)from};
  return {*(const unsigned short*)from};
}
template <int kBits>
__device__ __forceinline__ void store_part(void* to, const Words<1>& words) {
  if constexpr (kBits == 8)
    *(unsigned char*)to = (unsigned char)words.w[0];
  else
    *(unsigned short*)to = (unsigned short)words.w[0];
}

//@ part fp16_element : words
// Converts float16 element e to float. The halves of the word are named as 16-bit registers, which needs no shift.
template <int kCount>
__device__ __forceinline__ float fp16_element(const Words<kCount>& words, int e) {
  unsigned short low, high;
  asm("mov.b32 {%0, %1}, %2;" : "=h"(low), "=h"(high) : "r"(words.w[e / 2]));
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(e % 2 == 0 ? low : high));
  return x;
}

//@ part e4m3_pair
// Converts two of four float8 e4m3 to packed float16: the last two if `second`. Before sm_89: shifted into place, the
// bits are float16 of 2^-8 times the value; NaN (0x7f + 1 sets the top bit) gets an exponent of all ones.
__device__ __forceinline__ unsigned e4m3_pair(unsigned four, int second) {
  unsigned pair;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  unsigned short low, high;
  asm("mov.b32 {%0, %1}, %2;" : "=h"(low), "=h"(high) : "r"(four));
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(pair) : "h"(second ? high : low));
#else
  const unsigned magnitude = four & 0x7f7f7f7fu;
  const unsigned marked = magnitude | ((magnitude + 0x01010101u) & 0x80808080u);
  const unsigned sign = __byte_perm(four, 0u, second ? 0x3424 : 0x1404) & 0x80008000u;
  pair = __byte_perm(marked, 0u, second ? 0x4342 : 0x4140) << 7 | sign;
  asm("fma.rn.f16x2 %0, %0, %1, %2;" : "+r"(pair) : "r"(0x5c005c00u), "r"(0x80008000u));  // * 256 - 0
#endif
  return pair;
}

//@ part widen_e4m3 : e4m3_pair
// Converts float8 e4m3, in the low byte of each element, to float16 in place, four at a time.
template <int kCount>
__device__ __forceinline__ void widen_e4m3(unsigned short (&elements)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; i += 4) {
    const unsigned four = elements[i] | elements[i + 1] << 8 | elements[i + 2] << 16 | elements[i + 3] << 24;
    const unsigned first = e4m3_pair(four, 0), second = e4m3_pair(four, 1);
    elements[i] = first, elements[i + 1] = first >> 16;
    elements[i + 2] = second, elements[i + 3] = second >> 16;
  }
}

//@ part e4m3_element : words e4m3_pair fp16_element
// Converts float8 e4m3 element e to float. The compiler converts a pair once for both of its elements.
template <int kCount>
__device__ __forceinline__ float e4m3_element(const Words<kCount>& words, int e) {
  return fp16_element(Words<1>{e4m3_pair(words.w[e / 4], e / 2 % 2)}, e % 2);
}

//@ part packed_words : words pack_pair
// Rounds values to 16-bit floats and packs them, two per conversion.
template <int kCount>
__device__ __forceinline__ Words<kCount / 2> bf16_words(const float (&values)[kCount]) {
  Words<kCount / 2> words;
#pragma unroll
  for (int i = 0; i < kCount / 2; ++i) words.w[i] = pack_bf16(values[2 * i], values[2 * i + 1]);
  return words;
}
template <int kCount>
__device__ __forceinline__ Words<kCount / 2> fp16_words(const float (&values)[kCount]) {
  Words<kCount / 2> words;
#pragma unroll
  for (int i = 0; i < kCount / 2; ++i) words.w[i] = pack_fp16(values[2 * i], values[2 * i + 1]);
  return words;
}

//@ part words_beside : words
// Loads words `bytes` (0, 4, 8 or 12) past a multiple of 16 bytes, the same in all threads of a warp, by the widest
// accesses that are aligned.
template <int kCount>
__device__ __forceinline__ Words<kCount> load_words_behind(const unsigned* from, int bytes) {
  static_assert(kCount % 4 == 0);
  if (bytes == 0) return load_words<kCount>(from);
  Words<kCount> words;
  if (bytes == 8) {
#pragma unroll
    for (int i = 0; i < kCount; i += 2) {
      const uint2 two = *(const uint2*)(from + i);
      words.w[i] = two.x, words.w[i + 1] = two.y;
    }
    return words;
  }
#pragma unroll
  for (int i = 0; i < kCount; i += 4) {
    const uint2 two = *(const uint2*)(from + i + 1);
    words.w[i] = from[i], words.w[i + 1] = two.x, words.w[i + 2] = two.y, words.w[i + 3] = from[i + 3];
  }
  return words;
}
// Loads unaligned elements of kBits, 16 or 32, as kCount words. `first` is `elements` past a multiple of 16 bytes, the
// same number modulo 16 bytes in all threads of a warp. Nothing after the last element is read.
template <int kBits, int kCount>
__device__ __forceinline__ Words<kCount> load_words_beside(const void* first, int elements) {
  const int bytes = elements * (kBits / 8) & 15;
  if constexpr (kBits == 32) return load_words_behind<kCount>((const unsigned*)first, bytes);
  if (!(bytes & 2)) return load_words_behind<kCount>((const unsigned*)first, bytes);
  const unsigned short* const halves = (const unsigned short*)first;
  Words<kCount> words = load_words_behind<kCount>((const unsigned*)(halves - 1), bytes - 2);
#pragma unroll
  for (int i = 0; i < kCount; ++i)
    words.w[i] = __byte_perm(words.w[i], i + 1 < kCount ? words.w[i + 1] : halves[2 * kCount - 1], 0x5432u);
  return words;
}

//@ part windows : words
// Unaligned loads: each thread loads a window of consecutive elements. All threads of a warp call these functions
// together. Vector `number` is a tensor's 16 bytes from byte 16 * number on. It is inside the tensor (kSure), inside or
// outside as a whole (kWholeVectors), or unknown; bytes outside read as 0.
constexpr int kNoVector = -(1 << 30);  // is outside of every tensor
enum class Inside { kUnknown, kWholeVectors, kSure };
// Loads a vector of a tensor of `count` elements; kStream: with the streaming cache hint.
template <int kBits, Inside kInside, bool kStream, class Index>
__device__ __forceinline__ Words<4> vector_of_tensor(const void* tensor, Index count, int number) {
  constexpr int kEach = 128 / kBits;
  if (kInside == Inside::kSure || (unsigned)number < (unsigned)(count / kEach)) {
    const uint4* const from = (const uint4*)tensor + number;
    const uint4 four = kStream ? __ldcs(from) : *from;
    return {{four.x, four.y, four.z, four.w}};
  }
  Words<4> words = {};
  if constexpr (kInside == Inside::kUnknown) {
    if (number < 0) return words;
    if (number > (int)(count / kEach)) return words;
    const int left = (int)(count % kEach);
    if constexpr (kBits >= 32) {
      const unsigned* const from = (const unsigned*)tensor + 4ll * number;
#pragma unroll
      for (int i = 0; i < 3; ++i)
        if (i < left * (kBits / 32)) words.w[i] = from[i];
    } else if constexpr (kBits == 16) {
      const unsigned short* const from = (const unsigned short*)tensor + 8ll * number;
#pragma unroll
      for (int i = 0; i < 7; ++i)
        if (i < left) words.w[i / 2] |= (unsigned)from[i] << (16 * (i % 2));
    } else {
      const unsigned char* const from = (const unsigned char*)tensor + 16ll * number;
#pragma unroll
      for (int i = 0; i < 15; ++i)
        if (i < left) words.w[i / 4] |= (unsigned)from[i] << (8 * (i % 4));
    }
  }
  return words;
}
// Transposes vectors among kVectors neighbouring lanes: vector i of lane j becomes vector j of lane i. `mine` is j.
template <int kVectors>
__device__ __forceinline__ void exchange_vectors(Words<4 * kVectors>& words, int mine) {
#pragma unroll
  for (int bit = 1; bit < kVectors; bit *= 2) {
    const bool upper = mine & bit;
#pragma unroll
    for (int s = 0; s < kVectors; ++s) {
      if (s & bit) continue;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        unsigned& low = words.w[4 * s + i];
        unsigned& high = words.w[4 * (s + bit) + i];
        const unsigned got = __shfl_xor_sync(~0u, upper ? low : high, bit);
        low = upper ? got : low, high = upper ? high : got;
      }
    }
  }
}
// Loads kVectors vectors from `number` on for each thread. Loads are coalesced: neighbouring lanes load neighbouring
// vectors, and shuffles bring each to its thread.
template <int kBits, int kVectors, Inside kInside, bool kStream, class Index>
__device__ __forceinline__ Words<4 * kVectors> vectors_of_tensor(const void* tensor, Index count, int number) {
  if constexpr (kVectors == 1) return vector_of_tensor<kBits, kInside, kStream>(tensor, count, number);
  const int lane = threadIdx.x & 31;
  Words<4 * kVectors> words;
  if constexpr (kVectors == 3) {
    Words<4> read[3];
#pragma unroll
    for (int s = 0; s < 3; ++s) {
      const int v = 32 * s + lane;
      read[s] = vector_of_tensor<kBits, kInside, kStream>(tensor, count, __shfl_sync(~0u, number, v / 3) + v % 3);
    }
#pragma unroll
    for (int part = 0; part < 3; ++part) {
      const int slot = (3 * ((lane - part) * 11 & 31) + part) / 32;  // the vector of this lane that another one needs
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const unsigned given = slot == 0 ? read[0].w[i] : slot == 1 ? read[1].w[i] : read[2].w[i];
        words.w[4 * part + i] = __shfl_sync(~0u, given, (3 * lane + part) & 31);
      }
    }
  } else if constexpr (kVectors == 2 || kVectors == 4) {
    const int mine = lane % kVectors;
#pragma unroll
    for (int s = 0; s < kVectors; ++s) {
      const int first = __shfl_sync(~0u, number, lane - mine + s);
      const Words<4> read = vector_of_tensor<kBits, kInside, kStream>(tensor, count, first + mine);
#pragma unroll
      for (int i = 0; i < 4; ++i) words.w[4 * s + i] = read.w[i];
    }
    exchange_vectors<kVectors>(words, mine);
  }
  return words;
}
// Loads the window of 4 * kVectors words from element `first` on, if `wanted` or kSure.
//
//   vectors  | number |  ...  | number + kVectors |
//   window        <-------------------->             kAligned: from the beginning of a vector
//
// A shuffle gets vector number + kVectors from the lane kStep further (or before) if that lane's window begins there.
template <int kBits, int kVectors, bool kAligned, Inside kInside, bool kStream, int kStep, class Index>
__device__ __forceinline__ Words<4 * kVectors> load_window(const void* tensor, Index count, Index first, bool wanted) {
  constexpr int kEach = 128 / kBits;
  constexpr int kShift = kEach == 2 ? 1 : kEach == 4 ? 2 : kEach == 8 ? 3 : 4;
  const int number = kInside == Inside::kSure || wanted ? (int)(first >> kShift) : kNoVector;
  const Words<4 * kVectors> low = vectors_of_tensor<kBits, kVectors, kInside, kStream>(tensor, count, number);
  if constexpr (kAligned) return low;
  const int bytes = ((int)first & (kEach - 1)) * (kBits / 8);
  constexpr int kLanes = kStep < 0 ? -kStep : kStep;
  const int next = kStep < 0 ? __shfl_up_sync(~0u, number, kLanes) : __shfl_down_sync(~0u, number, kLanes);
  unsigned w[4 * kVectors + 4];
#pragma unroll
  for (int i = 0; i < 4 * kVectors; ++i) w[i] = low.w[i];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    w[4 * kVectors + i] =
        kStep < 0 ? __shfl_up_sync(~0u, low.w[i], kLanes) : __shfl_down_sync(~0u, low.w[i], kLanes);
  if (wanted && bytes != 0 && next != number + kVectors) {
    constexpr Inside kBehind = kInside == Inside::kSure ? Inside::kWholeVectors : kInside;
    const Words<4> behind = vector_of_tensor<kBits, kBehind, kStream>(tensor, count, number + kVectors);
#pragma unroll
    for (int i = 0; i < 4; ++i) w[4 * kVectors + i] = behind.w[i];
  }
  if (bytes & 8) {
#pragma unroll
    for (int i = 0; i < 4 * kVectors + 2; ++i) w[i] = w[i + 2];
  }
  if (kBits < 64 && bytes & 4) {
#pragma unroll
    for (int i = 0; i <= 4 * kVectors; ++i) w[i] = w[i + 1];
  }
  Words<4 * kVectors> words;
#pragma unroll
  for (int i = 0; i < 4 * kVectors; ++i)
    words.w[i] = kBits >= 32 ? w[i] : __funnelshift_r(w[i], w[i + 1], 8 * (bytes & 3));
  return words;
}

// Stores each thread's kVectors vectors from `number` on, if `wanted`. Stores are coalesced: shuffles first bring
// neighbouring vectors to neighbouring lanes.
template <int kVectors>
__device__ __forceinline__ void store_vectors_together(void* tensor, int number, bool wanted, Words<4 * kVectors> words) {
  const int lane = threadIdx.x & 31;
  const int place = wanted ? number : kNoVector;
  const auto store = [&](int at, int s) {
    if (at >= 0)
      ((uint4*)tensor)[at] = make_uint4(words.w[4 * s], words.w[4 * s + 1], words.w[4 * s + 2], words.w[4 * s + 3]);
  };
  if constexpr (kVectors == 3) {
    const Words<12> mine = words;
#pragma unroll
    for (int part = 0; part < 3; ++part) {
      const int from = (lane - part) * 11 & 31;  // the lane with vector number 3 * from + part, which this lane stores
      const int slot = (3 * from + part) / 32;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const unsigned got = __shfl_sync(~0u, mine.w[4 * part + i], from);
        if (slot == 0) words.w[i] = got;
        if (slot == 1) words.w[4 + i] = got;
        if (slot == 2) words.w[8 + i] = got;
      }
    }
#pragma unroll
    for (int s = 0; s < 3; ++s) {
      const int v = 32 * s + lane;
      store(__shfl_sync(~0u, place, v / 3) + v % 3, s);
    }
  } else {
    const int mine = lane % kVectors;
    if constexpr (kVectors == 2 || kVectors == 4) exchange_vectors<kVectors>(words, mine);
#pragma unroll
    for (int s = 0; s < kVectors; ++s) store(__shfl_sync(~0u, place, lane - mine + s) + mine, s);
  }
}
// Selects elements of kBits: element e of a if e < count, else element e of b.
template <int kBits, int kCount>
__device__ __forceinline__ Words<kCount> first_of(const Words<kCount>& a, const Words<kCount>& b, int count) {
  Words<kCount> words;
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    const int left = count - i * 32 / kBits;
    if constexpr (kBits >= 32) {
      words.w[i] = left > 0 ? a.w[i] : b.w[i];
    } else {
      const unsigned mask = __funnelshift_lc(~0u, 0u, (left > 0 ? left : 0) * kBits);
      words.w[i] = (a.w[i] & mask) | (b.w[i] & ~mask);
    }
  }
  return words;
}

//@ part kept
// Returns the value, which the compiler then cannot recompute at each use.
template <typename Integer>
__device__ __forceinline__ Integer kept(Integer value) {
  if constexpr (sizeof(Integer) == 8) {
    asm("" : "+l"(value));
  } else {
    asm("" : "+r"(value));
  }
  return value;
}

//@ part forget_words : words
// Makes the compiler convert these words again at the next use, instead of keeping converted values in registers.
template <int kCount>
__device__ __forceinline__ void forget_words(Words<kCount>& words) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm("" : "+r"(words.w[i]));
}

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
__device__ __forceinline__ void visit_ends(int thread, int before, int end, Visit visit) {
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
    visit_ends<kEach, kThreads>(thread, before, end,
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
    visit_ends<kEach, kThreads>(thread, before, end, [&](int at) {
      if (at < end) rows[at] = (Stored)narrow(tile[at]);
    });
  }
}
template <int kThreads, int kMost, bool kAligned, class T, class Stored, class Narrow>
__device__ __forceinline__ void tile_to_rows(int thread, Stored* rows, const T* tile, int before, int count,
                                             Narrow narrow) {
  tile_to_rows<kThreads, kMost, kAligned>(thread, rows, tile, before, count, narrow, OneByOne<Narrow>{narrow});
}

//@ part stream_words : words
// Loads and stores words with the streaming cache hint, for data that is used once and exceeds the cache.
template <int kCount>
__device__ __forceinline__ Words<kCount> stream_words(const void* from) {
  static_assert(kCount % 4 == 0);
  Words<kCount> words;
#pragma unroll
  for (int i = 0; i < kCount; i += 4) {
    const uint4 four = __ldcs((const uint4*)((const unsigned*)from + i));
    words.w[i] = four.x, words.w[i + 1] = four.y, words.w[i + 2] = four.z, words.w[i + 3] = four.w;
  }
  return words;
}
template <int kCount>
__device__ __forceinline__ void stream_words_out(void* to, const Words<kCount>& words) {
  static_assert(kCount % 4 == 0);
#pragma unroll
  for (int i = 0; i < kCount; i += 4)
    __stcs((uint4*)((unsigned*)to + i), make_uint4(words.w[i], words.w[i + 1], words.w[i + 2], words.w[i + 3]));
}

//@ part transposed_lines : words
// Loads an element into the low bits of a word, or one of 64 bits into two words.
template <int kBits>
__device__ __forceinline__ auto load_element(const void* from) {
  if constexpr (kBits == 64)
    return load_words<2>(from);
  else if constexpr (kBits == 32)
    return Words<1>{{*(const unsigned*)from}};
  else if constexpr (kBits == 16)
    return Words<1>{{*(const unsigned short*)from}};
  else
    return Words<1>{{*(const unsigned char*)from}};
}
// Transposes kLines neighbouring lines of kCount elements: tile[i] gets element i of each line, the first line's in its
// low bits.
template <int kBits, int kCount, int kWords, int kLines>
__device__ __forceinline__ void put_lines(unsigned* tile, const Words<kWords> (&lines)[kLines]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    if constexpr (kLines == 1) {
      tile[i] = element<kBits>(lines[0], i);
    } else if constexpr (kLines == 2) {
      tile[i] = __byte_perm(lines[0].w[i / 2], lines[1].w[i / 2], i % 2 ? 0x7632u : 0x5410u);
    } else {
      static_assert(kBits == 8 && kLines == 4);
      const unsigned bytes = (unsigned)(i % 4) | (unsigned)(i % 4 + 4) << 4;
      const unsigned low = __byte_perm(lines[0].w[i / 4], lines[1].w[i / 4], bytes);
      tile[i] = __byte_perm(low, __byte_perm(lines[2].w[i / 4], lines[3].w[i / 4], bytes), 0x5410u);
    }
  }
}

//@ part words64 : words
// Element e of 64 bits is two words, the low one first.
template <int kCount>
__device__ __forceinline__ unsigned long long element64(const Words<kCount>& words, int e) {
  return (unsigned long long)words.w[2 * e + 1] << 32 | words.w[2 * e];
}
template <int kCount>
__device__ __forceinline__ void put_element64(Words<kCount>& words, int e, unsigned long long bits) {
  words.w[2 * e] = (unsigned)bits, words.w[2 * e + 1] = (unsigned)(bits >> 32);
}
