// Skinny GEMM, y = x w with at most 32 rows of x: mma computes y^T, with columns of w as its 16 rows. Lane 4 g + p has
// part p of four of K, of column (or row) g of each eight; K is permuted equally in both operands.

//@ part multiply_piece_bf16 : mma_bf16 words
// sum += w^T x^T for 16 columns of w and 8 * kEights rows of x. `first`, `second`: the lane's values of columns lane /
// 4 and lane / 4 + 8 of w.
template <int kEights, int kWords>
__device__ __forceinline__ void multiply_piece_bf16(float (&sum)[kEights][4], const Words<kWords>& first,
                                                    const Words<kWords>& second, const Words<kWords> (&rows)[kEights]) {
#pragma unroll
  for (int k = 0; k < kWords; k += 2)
#pragma unroll
    for (int m = 0; m < kEights; ++m)
      mma_bf16(sum[m], {first.w[k], second.w[k], first.w[k + 1], second.w[k + 1]}, {rows[m].w[k], rows[m].w[k + 1]});
}

//@ part multiply_few_bf16 : multiply_piece_bf16
// sum += w^T x^T for 16 * kPieces columns of w and 8 * kEights rows of x.
template <int kPieces, int kEights, int kWords>
__device__ __forceinline__ void multiply_few_bf16(float (&sum)[kPieces][kEights][4],
                                                  const Words<kWords> (&columns)[2 * kPieces],
                                                  const Words<kWords> (&rows)[kEights]) {
#pragma unroll
  for (int p = 0; p < kPieces; ++p) multiply_piece_bf16(sum[p], columns[2 * p], columns[2 * p + 1], rows);
}

//@ part multiply_piece_fp16 : mma_fp16 words
// sum += w^T x^T for 16 columns of w and 8 * kEights rows of x. `first`, `second`: the lane's values of columns lane /
// 4 and lane / 4 + 8 of w.
template <int kEights, int kWords>
__device__ __forceinline__ void multiply_piece_fp16(float (&sum)[kEights][4], const Words<kWords>& first,
                                                    const Words<kWords>& second, const Words<kWords> (&rows)[kEights]) {
#pragma unroll
  for (int k = 0; k < kWords; k += 2)
#pragma unroll
    for (int m = 0; m < kEights; ++m)
      mma_fp16(sum[m], {first.w[k], second.w[k], first.w[k + 1], second.w[k + 1]}, {rows[m].w[k], rows[m].w[k + 1]});
}

//@ part multiply_few_fp16 : multiply_piece_fp16
// sum += w^T x^T for 16 * kPieces columns of w and 8 * kEights rows of x.
template <int kPieces, int kEights, int kWords>
__device__ __forceinline__ void multiply_few_fp16(float (&sum)[kPieces][kEights][4],
                                                  const Words<kWords> (&columns)[2 * kPieces],
                                                  const Words<kWords> (&rows)[kEights]) {
#pragma unroll
  for (int p = 0; p < kPieces; ++p) multiply_piece_fp16(sum[p], columns[2 * p], columns[2 * p + 1], rows);
}

//@ part multiply_piece_s8 : mma_s8 words
// sum += w^T x^T for 16 columns of w and 8 * kEights rows of x. `first`, `second`: the lane's values of columns lane /
// 4 and lane / 4 + 8 of w.
template <int kEights, int kWords>
__device__ __forceinline__ void multiply_piece_s8(int (&sum)[kEights][4], const Words<kWords>& first,
                                                    const Words<kWords>& second, const Words<kWords> (&rows)[kEights]) {
#pragma unroll
  for (int k = 0; k < kWords; k += 2)
#pragma unroll
    for (int m = 0; m < kEights; ++m)
      mma_s8(sum[m], {first.w[k], second.w[k], first.w[k + 1], second.w[k + 1]}, {rows[m].w[k], rows[m].w[k + 1]});
}

//@ part multiply_few_s8 : multiply_piece_s8
// sum += w^T x^T for 16 * kPieces columns of w and 8 * kEights rows of x.
template <int kPieces, int kEights, int kWords>
__device__ __forceinline__ void multiply_few_s8(int (&sum)[kPieces][kEights][4],
                                                  const Words<kWords> (&columns)[2 * kPieces],
                                                  const Words<kWords> (&rows)[kEights]) {
#pragma unroll
  for (int p = 0; p < kPieces; ++p) multiply_piece_s8(sum[p], columns[2 * p], columns[2 * p + 1], rows);
}

//@ part add_scaled_piece
// sum += part * scale after a block of K. `first`, `second`: scales of the lane's two columns of w.
template <class Part, int kEights>
__device__ __forceinline__ void add_scaled_piece(float (&sum)[kEights][4], const Part (&part)[kEights][4], float first,
                                                 float second) {
#pragma unroll
  for (int m = 0; m < kEights; ++m)
#pragma unroll
    for (int i = 0; i < 4; ++i) sum[m][i] += (float)part[m][i] * (i < 2 ? first : second);
}

//@ part sum_few : words
// Sums rows of x along K, for zero points, as mma with ones: sum[m][i] is that of row 8 m + 2 part + i, as in the
// lane's accumulators. One mma takes two groups of eight rows, or two parts of K of one group.
template <auto kMma, unsigned kOnes, int kEights, int kWords>
__device__ __forceinline__ void sum_few(float (&sum)[kEights][2], const Words<kWords> (&rows)[kEights], int part) {
#pragma unroll
  for (int m = 0; m < kEights; m += 2) {
    const bool alone = m + 1 == kEights;
    const Words<kWords>&first = rows[m], &second = rows[alone ? m : m + 1];
    float both[4] = {};
#pragma unroll
    for (int k = 0; k < kWords; k += alone ? 4 : 2)
      kMma(both, {first.w[k], second.w[alone ? k + 2 : k], first.w[k + 1], second.w[alone ? k + 3 : k + 1]},
           {kOnes, kOnes});
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      sum[m][i] = __shfl_sync(0xffffffffu, alone ? both[0] + both[2] : both[0], 8 * part + 4 * i);
      if (!alone) sum[m + 1][i] = __shfl_sync(0xffffffffu, both[2], 8 * part + 4 * i);
    }
  }
}

//@ part add_rows_piece
// sum += scale * (sum of the row of x), for zero points. `first`, `second`: scales of the lane's two columns of w.
template <int kEights>
__device__ __forceinline__ void add_rows_piece(float (&sum)[kEights][4], const float (&row_sums)[kEights][2],
                                               float first, float second) {
#pragma unroll
  for (int m = 0; m < kEights; ++m)
#pragma unroll
    for (int i = 0; i < 4; ++i) sum[m][i] += row_sums[m][i % 2] * (i < 2 ? first : second);
}

//@ part pack_bf16 : words
template <int kWords>
__device__ __forceinline__ Words<kWords> pack_bf16(const float (&values)[2 * kWords]) {
  Words<kWords> words;
#pragma unroll
  for (int i = 0; i < kWords; ++i)
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(words.w[i]) : "f"(values[2 * i + 1]), "f"(values[2 * i]));
  return words;
}

//@ part pack_fp16 : words
template <int kWords>
__device__ __forceinline__ Words<kWords> pack_fp16(const float (&values)[2 * kWords]) {
  Words<kWords> words;
#pragma unroll
  for (int i = 0; i < kWords; ++i)
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(words.w[i]) : "f"(values[2 * i + 1]), "f"(values[2 * i]));
  return words;
}

//@ part transpose_8x8 : words
// Transposes 8x8 16-bit elements: rows[k] has eight columns at K index k, columns[c] eight of K of column c.
__device__ __forceinline__ void transpose_8x8(Words<4> (&columns)[8], const Words<4> (&rows)[8]) {
#pragma unroll
  for (int c = 0; c < 8; ++c)
#pragma unroll
    for (int k = 0; k < 4; ++k)
      columns[c].w[k] = __byte_perm(rows[2 * k].w[c / 2], rows[2 * k + 1].w[c / 2], c % 2 ? 0x7632 : 0x5410);
}

//@ part gather_runs : words
// Redistributes a row's runs of 16 bytes among its four lanes, through the warp's shared memory: lane p has loaded runs
// 4 i + p (coalesced) and gets runs kRuns * p + i. The padding avoids bank conflicts.
template <int kRuns, int kEights>
__device__ __forceinline__ void gather_runs(Words<4 * kRuns> (&rows)[kEights], const Words<4> (&runs)[kEights * kRuns],
                                            void* staged, int lane) {
  constexpr int kRow = 4 * kRuns + 4;
  uint4* const line = (uint4*)staged + lane / 4 * kRow;
  uint4* const to = line + lane % 4;
  const uint4* const from = line + lane % 4 * kRuns / 4 * 5 + lane % 4 * kRuns % 4;
  __syncwarp();
#pragma unroll
  for (int i = 0; i < kEights * kRuns; ++i) {
    const unsigned(&w)[4] = runs[i].w;
    to[i / kRuns * 8 * kRow + i % kRuns * 5] = make_uint4(w[0], w[1], w[2], w[3]);
  }
  __syncwarp();
#pragma unroll
  for (int i = 0; i < kEights * kRuns; ++i) {
    const uint4 v = from[i / kRuns * 8 * kRow + i % kRuns];
    unsigned* const w = rows[i / kRuns].w + i % kRuns * 4;
    w[0] = v.x, w[1] = v.y, w[2] = v.z, w[3] = v.w;
  }
}

//@ part stage_few_sums : staged_sums
// Stages a warp's accumulators, a line per row of x. Eight rows have the order 0, 2, 4, 6, 1, 3, 5, 7, which avoids
// bank conflicts. kAlongDepth: w is K-major, and a lane's columns are 8 apart; else they are neighbours.
template <bool kAlongDepth, class Sum, int kPieces, int kEights>
__device__ __forceinline__ void stage_few_sums(Sum* staged, const Sum (&sum)[kPieces][kEights][4], int lane) {
  constexpr int kWidth = 16 * kPieces;
#pragma unroll
  for (int m = 0; m < kEights; ++m)
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int line = 8 * m + 4 * i + lane % 4;
      if constexpr (kAlongDepth) {
#pragma unroll
        for (int c = 0; c < 2 * kPieces; ++c)
          staged[staged_place<kWidth>(line, 8 * c + lane / 4)] = sum[c / 2][m][i + c % 2 * 2];
      } else {
#pragma unroll
        for (int c = 0; c < 8; c += 4)
          *(float4*)(staged + staged_place<kWidth>(line, lane / 4 * 8 + c)) =
              make_float4(sum[c / 2][m][i], sum[c / 2][m][i + 2], sum[c / 2 + 1][m][i], sum[c / 2 + 1][m][i + 2]);
      }
    }
}
// The row of x that a staged line holds.
__device__ __forceinline__ int row_of_line(int line) { return line / 8 * 8 + line % 4 * 2 + line % 8 / 4; }
// Adds the staged accumulators of all warps in order: each has a part of K.
template <int kWidth, int kWarps, class Sum>
__device__ __forceinline__ EightSums<Sum> eight_of_warps(const Sum* staged, int of_warp, int line, int column) {
  EightSums<Sum> sums = eight_staged<kWidth>(staged, line, column);
#pragma unroll
  for (int w = 1; w < kWarps; ++w) {
    const EightSums<Sum> more = eight_staged<kWidth>(staged + w * of_warp, line, column);
#pragma unroll
    for (int e = 0; e < 8; ++e) sums.v[e] += more.v[e];
  }
  return sums;
}
template <int kWidth, int kWarps, class Sum>
__device__ __forceinline__ Sum one_of_warps(const Sum* staged, int of_warp, int line, int column) {
  Sum sum = 0;
#pragma unroll
  for (int w = 0; w < kWarps; ++w) sum += staged[w * of_warp + staged_place<kWidth>(line, column)];
  return sum;
}

//@ part quantized_to_float : words
// Converts quantized value e (8 or 4 bits) to float32: it becomes the low mantissa bits of 2^23, which is faster than a
// conversion instruction.
template <int kBits, bool kSigned, int kCount>
__device__ __forceinline__ float quantized_to_float(const Words<kCount>& words, int e) {
  constexpr unsigned kFlip = !kSigned ? 0u : kBits == 8 ? 0x80808080u : 0x88888888u;  // -128 becomes 0
  const unsigned word = words.w[e / (32 / kBits)] ^ kFlip;
  const unsigned bits = kBits == 8 ? __byte_perm(word, 0x4b000000u, 0x7540 | e % 4)
                                   : (word >> 4 * (e % 8) & 15u) | 0x4b000000u;
  return __uint_as_float(bits) - (8388608.0f + (kSigned ? (float)(1 << (kBits - 1)) : 0.0f));
}
