// Unaligned access: loads and stores of consecutive elements that begin at any element of a tensor, as words.

//@ part unaligned_words : words
// Loads words `bytes` (0, 4, 8 or 12) past a multiple of 16 bytes, the same in all threads of a warp, by the widest
// accesses that are aligned.
template <int kCount>
__device__ __forceinline__ Words<kCount> load_words_at_offset(const unsigned* from, int bytes) {
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
__device__ __forceinline__ Words<kCount> load_words_unaligned(const void* first, int elements) {
  const int bytes = elements * (kBits / 8) & 15;
  if constexpr (kBits == 32) return load_words_at_offset<kCount>((const unsigned*)first, bytes);
  if (!(bytes & 2)) return load_words_at_offset<kCount>((const unsigned*)first, bytes);
  const unsigned short* const halves = (const unsigned short*)first;
  Words<kCount> words = load_words_at_offset<kCount>((const unsigned*)(halves - 1), bytes - 2);
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
__device__ __forceinline__ void transpose_vectors(Words<4 * kVectors>& words, int mine) {
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
    transpose_vectors<kVectors>(words, mine);
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
__device__ __forceinline__ void store_coalesced(void* tensor, int number, bool wanted, Words<4 * kVectors> words) {
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
    if constexpr (kVectors == 2 || kVectors == 4) transpose_vectors<kVectors>(words, mine);
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
