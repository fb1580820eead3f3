// mma fragments in shared memory: swizzled tiles, and the loads and stores of fragments (ldmatrix, stmatrix).

//@ part swizzle
// Byte offset of a unit of 16 bytes in an XOR-swizzled tile with kUnits units per line: ldmatrix reads the same unit of
// eight lines without bank conflicts.
template <int kUnits>
__device__ __forceinline__ unsigned swizzled(int line, int unit) {
  constexpr int kLinesABank = kUnits < 8 ? 8 / kUnits : 1, kTurns = kUnits < 8 ? kUnits : 8;
  return 16 * (line * kUnits + (unit ^ (line / kLinesABank % kTurns)));
}

//@ part swizzle_advance : swizzle
// Byte offset of the swizzled unit that is `lines` lines and `units` units after the one at offset `at`. They must have
// no bits in common with the line and the unit at `at`.
template <int kUnits>
__device__ __forceinline__ unsigned swizzle_advance(unsigned at, int lines, int units) {
  constexpr int kLinesABank = kUnits < 8 ? 8 / kUnits : 1, kTurns = kUnits < 8 ? kUnits : 8;
  return (at ^ 16 * (units % kTurns ^ lines / kLinesABank % kTurns)) + 16 * (lines * kUnits + units / kTurns * kTurns);
}

//@ part tile_fragments : load_matrices swizzle
// Byte offset of the row that the lane passes to ldmatrix for the 16x16 fragment at (across, depth) of a tile.
// `across`: M or N; `depth`: K in units of two bytes; kAlongDepth: the tile is K-major. The 8x8 matrices come in this
// order of (across, K): left operand (0, 0) (8, 0) (0, 8) (8, 8), right operand (0, 0) (0, 8) (8, 0) (8, 8).
template <bool kLeft, bool kAlongDepth, int kUnits>
__device__ __forceinline__ unsigned ldmatrix_offset(int across, int depth, int lane) {
  const int first = lane / 8 % 2 * 8, second = lane / 16 * 8;
  const int lane_across = across + (kLeft ? first : second), lane_depth = depth + (kLeft ? second : first);
  return kAlongDepth ? swizzled<kUnits>(lane_across + lane % 8, lane_depth / 8)
                     : swizzled<kUnits>(lane_depth + lane % 8, lane_across / 8);
}
// Loads kPieces 16x16 mma fragments that are 16 apart in M or N.
template <bool kLeft, bool kAlongDepth, int kUnits, int kPieces>
__device__ __forceinline__ void load_fragments(unsigned (&pieces)[kPieces][4], unsigned tile, int across, int depth,
                                               int lane) {
#pragma unroll
  for (int i = 0; i < kPieces; ++i) {
    if constexpr (kAlongDepth)
      load_matrices(pieces[i], tile + i * 256 * kUnits + ldmatrix_offset<kLeft, true, kUnits>(across, depth, lane));
    else
      load_matrices_transposed(pieces[i], tile + depth * 16 * kUnits +
                                              ldmatrix_offset<kLeft, false, kUnits>(across + 16 * i, 0, lane));
  }
}

//@ part placed_fragments : tile_fragments load_pieces
// ldmatrix addresses of a warp's fragments, computed before the loop over K: one per slice of K (32 bytes) for K-major
// tiles, one per fragment for MN-major ones. All others are at constant distances from these.
template <bool kLeft, bool kAlongDepth, int kUnits, int kPieces, int kSlices>
struct FragmentAddresses {
  unsigned at[kAlongDepth ? kSlices : kPieces];

  __device__ __forceinline__ FragmentAddresses(unsigned tile, int across, int lane) {
#pragma unroll
    for (int i = 0; i < (kAlongDepth ? kSlices : kPieces); ++i) {
      at[i] = tile + ldmatrix_offset<kLeft, kAlongDepth, kUnits>(across + (kAlongDepth ? 0 : 16 * i),
                                                                kAlongDepth ? 16 * i : 0, lane);
      asm("" : "+r"(at[i]));  // keeps it in a register; the compiler would recompute it
    }
  }
  template <int kSlice = 0>
  __device__ __forceinline__ void load(unsigned (&pieces)[kPieces][4], unsigned stage, int slice) const {
    if constexpr (kAlongDepth) {
      load_pieces<256 * kUnits>(pieces, at[slice] + stage);
    } else if (slice == kSlice) {
#pragma unroll
      for (int i = 0; i < kPieces; ++i) load_matrices_transposed<256 * kUnits * kSlice>(pieces[i], at[i] + stage);
    } else if constexpr (kSlice + 1 < kSlices) {
      load<kSlice + 1>(pieces, stage, slice);
    }
  }
};

//@ part tf32_fragments : tile_fragments
// Byte offset of a unit of 16 bytes in an MN-major float32 tile: pairs of units are XOR-swizzled, so that a warp reads
// eight neighbouring words of four lines without bank conflicts.
template <int kUnits>
__device__ __forceinline__ unsigned swizzled_in_pairs(int line, int unit) {
  constexpr int kLinesABank = kUnits < 8 ? 8 / kUnits : 1, kTurns = kUnits < 8 ? kUnits : 8;
  return 16 * (line * kUnits + (unit ^ (line % 4 / kLinesABank * 2 % kTurns)));
}
// Shared addresses of a warp's tf32 fragments (16 of M or N by 8 of K) in an MN-major tile: the halves of the first
// two; others are at constant distances.
template <bool kLeft, int kUnits, int kPieces, int kSlices>
struct Tf32Addresses {
  unsigned at[4];

  __device__ __forceinline__ Tf32Addresses(unsigned tile, int across, int lane) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int column = across + 8 * i + lane / 4;
      at[i] = tile + swizzled_in_pairs<kUnits>(lane % 4, column / 4) + column % 4 * 4;
      asm("" : "+r"(at[i]));  // keeps it in a register; the compiler would recompute it
    }
  }
  __device__ __forceinline__ void load(unsigned (&pieces)[kPieces][4], unsigned stage, int slice) const {
#pragma unroll
    for (int i = 0; i < kPieces; ++i)
#pragma unroll
      for (int half = 0; half < 2; ++half)
#pragma unroll
        for (int later = 0; later < 2; ++later) {
          const unsigned from = at[i % 2 * 2 + half] + stage + (i / 2 * 128 + (slice * 8 + later * 4) * 16 * kUnits);
          unsigned& word = pieces[i][kLeft ? half + 2 * later : 2 * half + later];
          asm volatile("ld.shared.u32 %0, [%1];" : "=r"(word) : "r"(from));
        }
  }
};
// Rounds float32 to tf32, to nearest.
template <int kPieces>
__device__ __forceinline__ void round_to_tf32(unsigned (&pieces)[kPieces][4]) {
#pragma unroll
  for (int i = 0; i < kPieces; ++i)
#pragma unroll
    for (int k = 0; k < 4; ++k) asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(pieces[i][k]) : "f"(__uint_as_float(pieces[i][k])));
}

//@ part load_matrices : shared_address
// Loads four 8x8 matrices of 16-bit elements as mma fragments (ldmatrix). Lanes 8 i to 8 i + 7 pass the addresses of
// the rows of matrix i.
__device__ __forceinline__ void load_matrices(unsigned (&m)[4], unsigned row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
               : "r"(row));
}
template <int kOffset = 0>
__device__ __forceinline__ void load_matrices_transposed(unsigned (&m)[4], unsigned row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4+%5];"
               : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
               : "r"(row), "n"(kOffset));
}

//@ part load_pieces : load_matrices
// Loads kCount mma fragments (ldmatrix) that are kStep bytes apart.
template <int kStep, int kAt = 0, int kCount>
__device__ __forceinline__ void load_pieces(unsigned (&m)[kCount][4], unsigned row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4+%5];"
               : "=r"(m[kAt][0]), "=r"(m[kAt][1]), "=r"(m[kAt][2]), "=r"(m[kAt][3])
               : "r"(row), "n"(kAt * kStep));
  if constexpr (kAt + 1 < kCount) load_pieces<kStep, kAt + 1>(m, row);
}
template <int kStep, int kAt = 0, int kCount>
__device__ __forceinline__ void load_pieces_transposed(unsigned (&m)[kCount][4], unsigned row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4+%5];"
               : "=r"(m[kAt][0]), "=r"(m[kAt][1]), "=r"(m[kAt][2]), "=r"(m[kAt][3])
               : "r"(row), "n"(kAt * kStep));
  if constexpr (kAt + 1 < kCount) load_pieces_transposed<kStep, kAt + 1>(m, row);
}
