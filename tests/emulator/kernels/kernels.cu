// Kernels of the kinds that compilers emit, for tests/emulator/compiled.cpp to run. Compiled to PTX when the tests run.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

extern "C" {

__constant__ float kTable[4] = {1.0f, 2.0f, 3.0f, 4.0f};
__device__ int g_ticket;
__device__ const int kPrimes[8] = {2, 3, 5, 7, 11, 13, 17, 19};

__global__ void math(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float v = x[i];
  float* o = y + i * 12;
  o[0] = sinf(v * 1000.0f);
  o[1] = expf(v);
  o[2] = tanhf(v);
  o[3] = erff(v);
  o[4] = logf(fabsf(v) + 0.5f);
  o[5] = powf(fabsf(v) + 0.1f, 1.7f);
  o[6] = rsqrtf(fabsf(v) + 1.0f);
  o[7] = v / 3.0f;
  o[8] = (float)sin((double)v);
  o[9] = fmodf(v * 100.0f, 7.0f);
  o[10] = __expf(v);
  o[11] = kTable[i & 3] + kPrimes[i & 7];
}

__global__ void softmax(const float* x, float* y, int columns) {
  __shared__ float scratch[32];
  const float* row = x + (long long)blockIdx.x * columns;
  float most = -3.0e38f;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) most = fmaxf(most, row[i]);
  for (int d = 16; d > 0; d /= 2) most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, d));
  if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = most;
  __syncthreads();
  most = scratch[0];
  for (int w = 1; w < blockDim.x / 32; ++w) most = fmaxf(most, scratch[w]);
  __syncthreads();
  float sum = 0;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) sum += expf(row[i] - most);
  for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
  if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = 0;
  for (int w = 0; w < blockDim.x / 32; ++w) sum += scratch[w];
  for (int i = threadIdx.x; i < columns; i += blockDim.x) y[(long long)blockIdx.x * columns + i] = expf(row[i] - most) / sum;
}

__device__ __noinline__ long long collatz(long long n) {
  long long steps = 0;
  while (n != 1) {
    n = n % 2 == 0 ? n / 2 : 3 * n + 1;
    ++steps;
  }
  return steps;
}

__global__ void integers(const int* x, long long* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  long long v = x[i];
  long long r = 0;
  switch (v % 7) {
    case 0: r = collatz(v + 1); break;
    case 1: r = v * v / 3; break;
    case 2: r = __popcll(v) + __clzll(v); break;
    case 3: r = __brev(x[i]); break;
    case 4: r = v << 3 ^ v >> 2; break;
    case 5: r = __mulhi(x[i], 123456789); break;
    default: r = (v % 11) * 1000 + collatz(v + 2);
  }
  y[i] = r;
}

__global__ void local_array(const int* x, int* y, int n) {
  int i = threadIdx.x;
  int bins[16];
  for (int j = 0; j < 16; ++j) bins[j] = 0;
  for (int j = 0; j < n; ++j) bins[(x[j] + i) & 15] += j;
  int best = 0;
  for (int j = 0; j < 16; ++j) best = max(best, bins[j]);
  y[i] = best + bins[i & 15];
}

__global__ void halves(const __half* x, const __nv_bfloat16* b, __half* y, __nv_bfloat16* z, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (2 * i >= n) return;
  __half2 v = ((const __half2*)x)[i];
  ((__half2*)y)[i] = __hfma2(v, v, __hadd2(v, __float2half2_rn(0.5f)));
  __nv_bfloat162 w = ((const __nv_bfloat162*)b)[i];
  ((__nv_bfloat162*)z)[i] = __hfma2(w, w, __hmul2(w, __float2bfloat162_rn(0.5f)));
}

// The last block to finish adds up what all wrote.
__global__ void grid_sum(const float* x, float* partial, float* y, int n) {
  float sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += x[i];
  for (int d = 16; d > 0; d /= 2) sum += __shfl_down_sync(0xffffffffu, sum, d);
  __shared__ float warps[32];
  __shared__ bool last;
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    float total = 0;
    for (int w = 0; w < blockDim.x / 32; ++w) total += warps[w];
    partial[blockIdx.x] = total;
    __threadfence();
    last = atomicAdd(&g_ticket, 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && threadIdx.x == 0) {
    __threadfence();
    float total = 0;
    for (int b = 0; b < gridDim.x; ++b) total += partial[b];
    *y = total;
    g_ticket = 0;
  }
}

__global__ void spin_lock(int* lock, int* counter) {
  bool done = false;
  while (!done) {
    if (atomicCAS(lock, 0, 1) == 0) {
      __threadfence();
      *(volatile int*)counter = *(volatile int*)counter + 1;
      __threadfence();
      atomicExch(lock, 0);
      done = true;
    }
  }
}

// Every lane takes the lock by itself and waits without leaving the loop.
__global__ void spin_wait(int* lock, int* counter) {
  while (atomicCAS(lock, 0, 1) != 0) {
  }
  *(volatile int*)counter = *(volatile int*)counter + 1;
  __threadfence();
  atomicExch(lock, 0);
}

__global__ void transpose(const float* x, float* y, int rows, int columns) {
  __shared__ float tile[32][33];
  int c = blockIdx.x * 32 + threadIdx.x, r = blockIdx.y * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) {
    if (r + j < rows && c < columns) tile[threadIdx.y + j][threadIdx.x] = x[(r + j) * columns + c];
  }
  __syncthreads();
  c = blockIdx.y * 32 + threadIdx.x;
  r = blockIdx.x * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) {
    if (r + j < columns && c < rows) y[(r + j) * rows + c] = tile[threadIdx.x][threadIdx.y + j];
  }
}

// C (m x n) = A (m x k) B (k x n), 16-bit, one warp for each 16 x 8 tile, a two-stage pipeline through shared memory.
__global__ void gemm(const __half* a, const __half* b, float* c, int m, int n, int k) {
  __shared__ __align__(128) __half sa[2][16 * 16];
  __shared__ __align__(128) __half sb[2][16 * 8];
  int lane = threadIdx.x, row0 = blockIdx.y * 16, col0 = blockIdx.x * 8;
  auto fetch = [&](int stage, int k0) {
    unsigned ta = (unsigned)__cvta_generic_to_shared(&sa[stage][(lane / 2) * 16 + (lane % 2) * 8]);
    const __half* ga = a + (row0 + lane / 2) * k + k0 + (lane % 2) * 8;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(ta), "l"(ga));
    if (lane < 16) {
      unsigned tb = (unsigned)__cvta_generic_to_shared(&sb[stage][lane * 8]);
      const __half* gb = b + (k0 + lane) * n + col0;
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(tb), "l"(gb));
    }
    asm volatile("cp.async.commit_group;");
  };
  float acc[4] = {0, 0, 0, 0};
  fetch(0, 0);
  for (int k0 = 0, stage = 0; k0 < k; k0 += 16, stage ^= 1) {
    if (k0 + 16 < k) {
      fetch(stage ^ 1, k0 + 16);
      asm volatile("cp.async.wait_group 1;");
    } else {
      asm volatile("cp.async.wait_group 0;");
    }
    __syncthreads();
    unsigned fa[4], fb[2];
    unsigned ta = (unsigned)__cvta_generic_to_shared(&sa[stage][(lane % 16) * 16 + (lane / 16) * 8]);
    unsigned tb = (unsigned)__cvta_generic_to_shared(&sb[stage][(lane % 16) * 8]);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(fa[0]), "=r"(fa[1]), "=r"(fa[2]), "=r"(fa[3]) : "r"(ta));
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];" : "=r"(fb[0]), "=r"(fb[1]) : "r"(tb));
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(acc[0]), "+f"(acc[1]), "+f"(acc[2]), "+f"(acc[3])
                 : "r"(fa[0]), "r"(fa[1]), "r"(fa[2]), "r"(fa[3]), "r"(fb[0]), "r"(fb[1]));
    __syncthreads();
  }
  for (int i = 0; i < 4; ++i) c[(row0 + lane / 4 + 8 * (i / 2)) * n + col0 + 2 * (lane % 4) + i % 2] = acc[i];
}

}  // extern "C"
