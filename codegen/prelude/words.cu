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

//@ part subword : words
// Loads and stores elements that together have kBits, 8 or 16, less than a word.
template <int kBits>
__device__ __forceinline__ Words<1> load_subword(const void* from) {
  if constexpr (kBits == 8) return {*(const unsigned char*)from};
  return {*(const unsigned short*)from};
}
template <int kBits>
__device__ __forceinline__ void store_subword(void* to, const Words<1>& words) {
  if constexpr (kBits == 8)
    *(unsigned char*)to = (unsigned char)words.w[0];
  else
    *(unsigned short*)to = (unsigned short)words.w[0];
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
__device__ __forceinline__ void transpose_lines(unsigned* tile, const Words<kWords> (&lines)[kLines]) {
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
