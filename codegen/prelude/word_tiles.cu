// Lines that begin anywhere in memory, a word of them to a lane.

//@ part word_tiles : words words64
// The word at `from`, of whose elements `left` and the ones behind them are beyond the tensor; those are 0.
template <int kBits, bool kWhole, class Index>
__device__ __forceinline__ auto load_word(const void* from, Index left) {
  constexpr int kEach = kBits < 32 ? 32 / kBits : 1;
  if constexpr (kBits == 64) {
    return load_words<2>(from);
  } else {
    if (kWhole || left >= kEach) return load_words<1>(from);
    Words<1> word = {};
#pragma unroll
    for (int e = 0; e + 1 < kEach; ++e)
      if (e < left)
        put_element<kBits>(word, e, kBits == 16 ? ((const unsigned short*)from)[e] : ((const unsigned char*)from)[e]);
    return word;
  }
}
// Its elements, to lines of the tile that are `pitch` elements apart.
template <int kBits, int kPitch, class Element, int kWords>
__device__ __forceinline__ void put_word(Element* tile, const Words<kWords>& word) {
  if constexpr (kBits == 64) {
    *tile = element64(word, 0);
  } else {
#pragma unroll
    for (int e = 0; e < 32 / kBits; ++e) tile[e * kPitch] = (Element)element<kBits>(word, e);
  }
}
// Those elements of a word whose places, the first of which is `place`, are not negative and below `count`.
template <int kBits, int kWords>
__device__ __forceinline__ void store_elements(void* to, const Words<kWords>& word, int place, int count) {
  if constexpr (kBits < 32) {
#pragma unroll
    for (int e = 0; e < 32 / kBits; ++e) {
      if (place + e < 0 || place + e >= count) continue;
      if constexpr (kBits == 16)
        ((unsigned short*)to)[e] = (unsigned short)element<kBits>(word, e);
      else
        ((unsigned char*)to)[e] = (unsigned char)element<kBits>(word, e);
    }
  }
}
