// Loads and stores of vectors that reach beyond the end of a tensor or a strip.

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
