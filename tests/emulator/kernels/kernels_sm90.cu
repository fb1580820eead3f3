// Kernels with Hopper's asynchronous machinery, for tests/emulator/hopper.cpp. Compiled to PTX when the tests run.
#include <cuda_fp16.h>

__device__ unsigned shared_address(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ void barrier_init(unsigned long long* b, int count) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(b)), "r"(count)); }
__device__ void expect(unsigned long long* b, int bytes) {
  asm volatile("{ .reg .b64 s; mbarrier.arrive.expect_tx.shared::cta.b64 s, [%0], %1; }" ::"r"(shared_address(b)), "r"(bytes));
}
__device__ void wait(unsigned long long* b, int parity) {
  asm volatile(
      "{\n.reg .pred p;\nLAB_WAIT:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@p bra DONE;\nbra LAB_WAIT;\nDONE:\n}" ::"r"(shared_address(b)),
      "r"(parity)
      : "memory");
}
struct alignas(64) Map { unsigned char bytes[128]; };
__device__ void load_2d(void* to, const Map* map, int x, int y, unsigned long long* b) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(shared_address(to)), "l"(map), "r"(x), "r"(y), "r"(shared_address(b)) : "memory");
}

extern "C" {

// Copies n floats (at most 256) through shared memory by bulk copies; `mistake` 1 skips the wait, 2 the proxy fence.
__global__ void bulk_copy(const float* x, float* y, int n, int mistake) {
  __shared__ alignas(128) float buffer[256];
  __shared__ unsigned long long barrier;
  if (threadIdx.x == 0) {
    barrier_init(&barrier, 1);
    asm volatile("fence.mbarrier_init.release.cluster;");
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    expect(&barrier, n * 4);
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(shared_address(buffer)), "l"(x), "r"(n * 4), "r"(shared_address(&barrier)) : "memory");
  }
  if (mistake != 1) wait(&barrier, 0);
  for (int i = threadIdx.x; i < n; i += blockDim.x) buffer[i] = buffer[i] * 2;
  if (mistake != 2) asm volatile("fence.proxy.async.shared::cta;");
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(y), "r"(shared_address(buffer)), "r"(n * 4) : "memory");
    asm volatile("cp.async.bulk.commit_group;");
    asm volatile("cp.async.bulk.wait_group.read 0;");
  }
}

// One 8 x 16 box of floats at (x, y), stored as it lies in shared memory.
__global__ void tensor_box(const __grid_constant__ Map map, float* out, int x, int y) {
  __shared__ alignas(1024) float box[8 * 16];
  __shared__ unsigned long long barrier;
  if (threadIdx.x == 0) {
    barrier_init(&barrier, 1);
    expect(&barrier, sizeof(box));
    load_2d(box, &map, x, y, &barrier);
  }
  __syncthreads();
  wait(&barrier, 0);
  for (int i = threadIdx.x; i < 8 * 16; i += blockDim.x) out[i] = box[i];
}

// C (64 x 32, float) = A (64 x k) B^T (32 x k), halves, by tensor maps with 128-byte swizzle, two stages, one warp group
// and one producer warp.
__global__ void warp_group_gemm(const __grid_constant__ Map map_a, const __grid_constant__ Map map_b, float* c, int k) {
  __shared__ alignas(1024) __half a[2][64 * 64];
  __shared__ alignas(1024) __half b[2][32 * 64];
  __shared__ unsigned long long full[2], empty[2];
  if (threadIdx.x == 0) {
    for (int s = 0; s < 2; ++s) {
      barrier_init(&full[s], 1);
      barrier_init(&empty[s], 128);
    }
    asm volatile("fence.mbarrier_init.release.cluster;");
  }
  __syncthreads();
  const int steps = k / 64;
  if (threadIdx.x >= 128) {
    if (threadIdx.x == 128) {
      for (int i = 0; i < steps; ++i) {
        const int s = i % 2;
        if (i >= 2) wait(&empty[s], (i / 2 - 1) & 1);
        expect(&full[s], sizeof(a[0]) + sizeof(b[0]));
        load_2d(a[s], &map_a, i * 64, 0, &full[s]);
        load_2d(b[s], &map_b, i * 64, 0, &full[s]);
      }
    }
    return;
  }
  float d[16];
  for (int i = 0; i < 16; ++i) d[i] = 0;
  for (int i = 0; i < steps; ++i) {
    const int s = i % 2;
    wait(&full[s], (i / 2) & 1);
    asm volatile("wgmma.fence.sync.aligned;");
    for (int j = 0; j < 4; ++j) {
      auto descriptor = [&](const void* p) {
        return (unsigned long long)((shared_address(p) & 0x3ffff) >> 4) | (1ull << 16) | ((unsigned long long)(1024 >> 4) << 32) | (1ull << 62);
      };
      const unsigned long long da = descriptor(a[s] + j * 16), db = descriptor(b[s] + j * 16);
      asm volatile(
          "{\n.reg .pred p;\nsetp.ne.b32 p, 1, 0;\n"
          "wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15}, %16, %17, p, 1, 1, 0, 0;\n}"
          : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15])
          : "l"(da), "l"(db));
    }
    asm volatile("wgmma.commit_group.sync.aligned;");
    asm volatile("wgmma.wait_group.sync.aligned 0;");
    asm volatile("{ .reg .b64 t; mbarrier.arrive.shared::cta.b64 t, [%0]; }" ::"r"(shared_address(&empty[s])) : "memory");
  }
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int i = 0; i < 16; ++i) {
    const int row = warp * 16 + lane / 4 + 8 * (i / 2 % 2), column = 8 * (i / 4) + 2 * (lane % 4) + i % 2;
    c[row * 32 + column] = d[i];
  }
}

// Each block of a cluster of four reads what its neighbour has put into shared memory.
__global__ void __cluster_dims__(4, 1, 1) neighbours(int* out) {
  __shared__ int mine[32];
  unsigned rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  mine[threadIdx.x] = blockIdx.x * 100 + threadIdx.x;
  asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
  unsigned remote;
  int value;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(shared_address(&mine[31 - threadIdx.x])), "r"((rank + 1) % 4));
  asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(value) : "r"(remote));
  asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
  out[blockIdx.x * 32 + threadIdx.x] = value;
}

}  // extern "C"
