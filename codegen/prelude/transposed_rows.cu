// Tiles of rows that are strided in memory (one element per line) and contiguous in shared memory, in 32-bit words of
// neighbouring elements.

//@ part transposed_rows : transposed_lines
// The first word of a row in a tile: kPitch words per row, and kSkew words of padding after every kVector rows.
template <int kVector, int kPitch, int kSkew>
__device__ __forceinline__ int word_of_row(int row) {
  return row * kPitch + (kSkew == 0 ? 0 : row / kVector * kSkew);
}
// A thread's work in one turn of a transposition: a vector of kVector rows from each of kLines = 4 / kBytes lines,
// which is one word of each row. An element has kBytes bytes, a row kLength elements.
//   memory, line l:  x[l][r], x[l][r + 1], ...        tile, row r:  words (x[l][r] ... x[l + kLines - 1][r]), ...
// kLanes lanes of a warp take vectors of the same lines; the others take the next words of the rows.
template <int kThreads, int kBytes, int kVector, int kLanes, int kRows, int kLength>
struct TransposeItem {
  static constexpr int kLines = 4 / kBytes, kDown = 32 / kLanes, kGroups = kRows / kVector / kLanes;
  static constexpr int kColumns = (kLength + kLines - 1) / kLines, kBlocks = (kColumns + kDown - 1) / kDown;
  static constexpr int kTurns = (kBlocks * kGroups * 32 + kThreads - 1) / kThreads;
  static constexpr int kWords = kVector * kBytes < 4 ? 1 : kVector * kBytes / 4;  // per vector
  static constexpr int kWarps = kThreads / 32;
  int row, column;
  bool here;
  __device__ __forceinline__ TransposeItem(int turn, int first, int end) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    if constexpr (kWarps % kGroups == 0) {  // the same rows in every turn
      row = (warp % kGroups * kLanes + lane % kLanes) * kVector;
      column = warp / kGroups * kDown + lane / kLanes + turn * (kWarps / kGroups * kDown);
    } else {
      row = ((turn * kWarps + warp) % kGroups * kLanes + lane % kLanes) * kVector;
      column = (turn * kWarps + warp) / kGroups * kDown + lane / kLanes;
    }
    here = row >= first && row < end && column < kColumns;
  }
  __device__ __forceinline__ bool has(int line) const {
    return here && (kLength % kLines == 0 || column * kLines + line < kLength);
  }
};
template <int kBytes>
__device__ __forceinline__ auto load_vector(const void* from) {
  if constexpr (kBytes >= 4)
    return load_words<kBytes / 4>(from);
  else
    return load_element<8 * kBytes>(from);
}
template <int kBytes, int kWords>
__device__ __forceinline__ void store_vector(void* to, const Words<kWords>& words) {
  if constexpr (kBytes >= 4)
    store_words(to, words);
  else if constexpr (kBytes == 2)
    *(unsigned short*)to = (unsigned short)words.w[0];
  else
    *(unsigned char*)to = (unsigned char)words.w[0];
}
// Transposes strided rows begin ... end - 1 to a tile: element l of row r is at lines[l * pitch + r].
template <int kThreads, int kVector, int kLanes, int kRows, int kLength, int kPitch, int kSkew, class T, class Index>
__device__ __forceinline__ void lines_to_rows(unsigned* tile, const T* lines, Index pitch, int end,
                                              int begin = 0) {
  constexpr int kBytes = sizeof(T);
  using Item = TransposeItem<kThreads, kBytes, kVector, kLanes, kRows, kLength>;
  constexpr int kTogether = kBytes == 1 ? 2 : 4;  // turns with loads in flight at once
#pragma unroll 1
  for (int first = 0; first < Item::kTurns; first += kTogether) {
    Words<Item::kWords> words[kTogether][Item::kLines];
#pragma unroll
    for (int i = 0; i < kTogether; ++i) {
      const Item item(first + i, begin, end);
#pragma unroll
      for (int line = 0; line < Item::kLines; ++line) {
        const Index at = (Index)(item.column * Item::kLines + line) * pitch + item.row;
        if (item.has(line))
          words[i][line] = load_vector<kVector * kBytes>(lines + at);
        else
          words[i][line] = Words<Item::kWords>{};
      }
    }
#pragma unroll
    for (int i = 0; i < kTogether; ++i) {
      const Item item(first + i, begin, end);
      if (!item.here) continue;
      unsigned of_rows[kVector];
      transpose_lines<8 * kBytes, kVector>(of_rows, words[i]);
      unsigned* const to = tile + word_of_row<kVector, kPitch, kSkew>(item.row) + item.column;
#pragma unroll
      for (int row = 0; row < kVector; ++row) to[row * kPitch] = of_rows[row];
    }
  }
}
// Packs element `line` of each of kCount words.
template <int kBytes, int kCount>
__device__ __forceinline__ auto line_of_words(const unsigned (&words)[kCount], int line) {
  Words<(kCount * kBytes + 3) / 4> elements = {};
#pragma unroll
  for (int i = 0; i < kCount * kBytes / 4; ++i) {
    if constexpr (kBytes == 4) {
      elements.w[i] = words[i];
    } else if constexpr (kBytes == 2) {
      elements.w[i] = __byte_perm(words[2 * i], words[2 * i + 1], line == 0 ? 0x5410u : 0x7632u);
    } else {
      const unsigned bytes = (unsigned)line | (unsigned)(line + 4) << 4;
      const unsigned low = __byte_perm(words[4 * i], words[4 * i + 1], bytes);
      elements.w[i] = __byte_perm(low, __byte_perm(words[4 * i + 2], words[4 * i + 3], bytes), 0x5410u);
    }
  }
  if constexpr (kCount * kBytes < 4) {
#pragma unroll
    for (int i = 0; i < kCount; ++i)
      elements.w[0] |= (words[i] >> 8 * kBytes * line & ((1u << 8 * kBytes) - 1u)) << 8 * kBytes * i;
  }
  return elements;
}
// Transposes rows begin ... end - 1 of a tile to memory: element l of row r goes to lines[l * pitch + r].
template <int kThreads, int kVector, int kLanes, int kRows, int kLength, int kPitch, int kSkew, class T, class Index>
__device__ __forceinline__ void rows_to_lines(T* lines, const unsigned* tile, Index pitch, int end,
                                              int begin = 0) {
  constexpr int kBytes = sizeof(T);
  using Item = TransposeItem<kThreads, kBytes, kVector, kLanes, kRows, kLength>;
#pragma unroll 2
  for (int turn = 0; turn < Item::kTurns; ++turn) {
    const Item item(turn, begin, end);
    if (!item.here) continue;
    const unsigned* const from = tile + word_of_row<kVector, kPitch, kSkew>(item.row) + item.column;
    unsigned of_rows[kVector];
#pragma unroll
    for (int row = 0; row < kVector; ++row) of_rows[row] = from[row * kPitch];
#pragma unroll
    for (int line = 0; line < Item::kLines; ++line) {
      const Index at = (Index)(item.column * Item::kLines + line) * pitch + item.row;
      if (item.has(line)) store_vector<kVector * kBytes>(lines + at, line_of_words<kBytes>(of_rows, line));
    }
  }
}
// Copies contiguous rows begin ... end - 1, `pitch` elements apart, to a tile, kAccess elements at a time.
template <int kThreads, int kAccess, int kVector, int kRows, int kLength, int kPitch, int kSkew, class T, class Index>
__device__ __forceinline__ void rows_to_rows(unsigned* tile, const T* from, Index pitch, int end,
                                             int begin = 0) {
  constexpr int kOfRow = kLength / kAccess, kBytes = kAccess * sizeof(T);
#pragma unroll 4
  for (int i = threadIdx.x; i < kRows * kOfRow; i += kThreads) {
    const int row = i / kOfRow, at = i % kOfRow * kAccess;
    if (row >= end) break;
    if (row < begin) continue;
    T* const to = (T*)(tile + word_of_row<kVector, kPitch, kSkew>(row)) + at;
    store_vector<kBytes>(to, load_vector<kBytes>(from + row * pitch + at));
  }
}
// Clears the elements of each row's last word that are behind the row's end.
template <int kThreads, int kVector, int kRows, int kLength, int kPitch, int kSkew, class T>
__device__ __forceinline__ void clear_row_padding(T* tile) {
  constexpr int kEach = 4 / sizeof(T), kEnd = (kLength + kEach - 1) / kEach * kEach;
  for (int row = threadIdx.x; row < kRows; row += kThreads)
#pragma unroll
    for (int at = kLength; at < kEnd; ++at) tile[kEach * word_of_row<kVector, kPitch, kSkew>(row) + at] = T{};
}
// Stores `rows` rows of a tile one after the other, a word at a time. `to` is 4-byte aligned; a word may span two rows.
template <int kThreads, int kVector, int kRows, int kLength, int kPitch, int kSkew, class T>
__device__ __forceinline__ void rows_to_words(T* to, const unsigned* tile, int rows) {
  constexpr int kBytes = sizeof(T), kEach = 4 / kBytes;
  constexpr int kStep = kThreads * kEach;
  const int count = rows * kLength;
  int next_row = threadIdx.x * kEach / kLength, next = threadIdx.x * kEach % kLength;
#pragma unroll 4
  for (int first = threadIdx.x * kEach; first < kRows * kLength; first += kStep) {
    if (first >= count) break;
    int row = next_row, at = next;
    next_row += kStep / kLength, next += kStep % kLength;
    if (next >= kLength) next -= kLength, ++next_row;
    const T* from = (const T*)(tile + word_of_row<kVector, kPitch, kSkew>(row));
    const int left = count - first;
    Words<1> word = {};
#pragma unroll
    for (int e = 0; e < kEach; ++e) {
      if (e > 0 && at == kLength) {
        at = 0;
        from = (const T*)(tile + word_of_row<kVector, kPitch, kSkew>(++row));
      }
      if (e < left) put_element<8 * kBytes>(word, e, load_vector<kBytes>(from + at).w[0]);
      ++at;
    }
    if (left >= kEach) {
      store_words<1>(to + first, word);
      continue;
    }
#pragma unroll
    for (int e = 0; e < kEach; ++e)
      if (e < left) store_vector<kBytes>(to + first + e, Words<1>{{element<8 * kBytes>(word, e)}});
  }
}
