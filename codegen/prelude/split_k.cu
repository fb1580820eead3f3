// Partial sums of split-K in global memory.

//@ part split_k_sums : neighbours
// Stores 16 rows of a warp's partial sums of split-K, as share[column / 8][lane][4].
template <class Sum, int kEights>
__device__ __forceinline__ void store_split_k(Sum* share, const Sum (&sum)[kEights][4], int lane) {
#pragma unroll
  for (int j = 0; j < kEights; ++j)
    *(Neighbours<Sum, 4>*)(share + j * 128 + lane * 4) = {sum[j][0], sum[j][1], sum[j][2], sum[j][3]};
}
// Adds the partial sums of all splits in order; they are `apart` elements apart.
template <class Sum, int kEights>
__device__ __forceinline__ void sum_split_k(Sum (&sum)[kEights][4], const Sum* first, int shares, long long apart,
                                           int lane) {
  const Sum* share = first + lane * 4;
#pragma unroll 4
  for (int s = 0; s < shares; ++s, share += apart)
#pragma unroll
    for (int j = 0; j < kEights; ++j) {
      const auto four = *(const Neighbours<Sum, 4>*)(share + j * 128);
#pragma unroll
      for (int i = 0; i < 4; ++i) sum[j][i] += four.v[i];
    }
}
