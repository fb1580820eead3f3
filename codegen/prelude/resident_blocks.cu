// Barriers and reductions between blocks that share a row.

//@ part last_block
// True for all threads of the last one of `blocks` blocks to call it, which then sees what the others stored before. The
// counter `arrived` is 0 before and after.
__device__ __forceinline__ bool is_last_block(unsigned* arrived, unsigned blocks) {
  __shared__ unsigned before;
  __syncthreads();
  if (threadIdx.x == 0)
    asm volatile("atom.acq_rel.gpu.global.inc.u32 %0, [%1], %2;"
                 : "=r"(before)
                 : "l"(__cvta_generic_to_global(arrived)), "r"(blocks - 1)
                 : "memory");
  __syncthreads();
  return before == blocks - 1;
}

//@ part cohort
// Barriers between the n blocks of a row in an ordinary launch. Tickets number the blocks as they start; those of a row
// are consecutive. No deadlock if n blocks fit on the device at once.
__device__ __forceinline__ unsigned cohort_ticket(unsigned* next) {
  __shared__ unsigned ticket;
  if (threadIdx.x == 0) ticket = atomicAdd(next, 1u);
  __syncthreads();
  return ticket;
}
__device__ __forceinline__ void cohort_arrive(unsigned* arrived) {
  asm volatile("red.release.gpu.global.add.u32 [%0], 1;" : : "l"(__cvta_generic_to_global(arrived)) : "memory");
}
__device__ __forceinline__ void cohort_wait(unsigned* arrived, unsigned blocks) {
  while (true) {
    unsigned now;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(__cvta_generic_to_global(arrived)) : "memory");
    if (now >= blocks) break;
    __nanosleep(20);
  }
}
// Barrier: waits until the counter is `blocks`, which is n times the number of barriers so far, this one included.
// Every thread then sees what the threads of all n blocks stored before.
__device__ __forceinline__ void cohort_barrier(unsigned* arrived, unsigned blocks) {
  __syncthreads();
  if (threadIdx.x == 0) {
    cohort_arrive(arrived);
    cohort_wait(arrived, blocks);
  }
  __syncthreads();
}

//@ part cohort_reduce : cohort block_reduce
// Reduces over all threads of the kBlocks blocks of a row; every thread gets the result. Block `rank` stores its
// partial result in partials[rank], increments `arrived` and waits for the others. The calls in a kernel are numbered
// by kCall and have separate `partials`.
template <int kThreads, int kBlocks, int kCall, class Combine, class T>
__device__ __forceinline__ T cohort_reduce(T value, Combine combine, T* partials, unsigned* arrived, int rank) {
  __shared__ T of_blocks[kBlocks];
  value = block_reduce<kThreads, kCall>(value, combine);
  if (threadIdx.x == 0) {
    partials[rank] = value;
    cohort_arrive(arrived);
  }
  if (threadIdx.x < kBlocks) {  // each waits, because it reads a partial result
    cohort_wait(arrived, kBlocks * (kCall + 1));
    of_blocks[threadIdx.x] = partials[threadIdx.x];
  }
  __syncthreads();
  value = of_blocks[0];
#pragma unroll
  for (int block = 1; block < kBlocks; ++block) value = combine(value, of_blocks[block]);
  return value;
}
