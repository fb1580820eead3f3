// sm_90a: TMA copies, mbarriers, clusters, and warpgroups with wgmma.

//@ part tensor_map
// A TMA descriptor in the driver's encoding (CUtensorMap), passed by value.
struct alignas(64) TensorMap {
  unsigned long long words[16];
};

//@ part cluster
__device__ __forceinline__ int cluster_rank() {
  int rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
__device__ __forceinline__ void sync_cluster() {
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" : : : "memory");
}
// The cluster address of the same place in the shared memory of block `rank`.
__device__ __forceinline__ unsigned in_block(unsigned address, int rank) {
  unsigned there;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address), "r"(rank));
  return there;
}

//@ part mbarrier
// A phase of an mbarrier ends after `arrivals` arrivals, when all expected bytes are there.
__device__ __forceinline__ void init_mbarrier(unsigned barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" : : "r"(barrier), "r"(arrivals) : "memory");
}
// Makes initialized mbarriers visible to the cluster and to TMA, before the barrier of the block or cluster.
__device__ __forceinline__ void fence_mbarriers() {
  asm volatile("fence.mbarrier_init.release.cluster;\nfence.proxy.async.shared::cta;" : : : "memory");
}
__device__ __forceinline__ void arrive_expecting(unsigned barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" : : "r"(barrier), "r"(bytes) : "memory");
}
// Arrives at an mbarrier of any block of the cluster (address from in_block) to release a stage that wgmma has read.
// After the wait for wgmma, no release at cluster scope is needed (a fence of the whole device).
__device__ __forceinline__ void arrive_in_cluster(unsigned barrier) {
  asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" : : "r"(barrier) : "memory");
}
__device__ __forceinline__ void arrive(unsigned barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" : : "r"(barrier) : "memory");
}
// Waits until the phase of this parity is over.
__device__ __forceinline__ void wait_for_phase(unsigned barrier, int parity) {
  unsigned over;
  do {
    asm volatile(
        "{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
        : "=r"(over)
        : "r"(barrier), "r"(parity)
        : "memory");
  } while (!over);
}

//@ part load_box : tensor_map
// Copies a box of a tensor to shared memory by TMA, for one thread to call; its bytes complete at the mbarrier.
// Coordinates: innermost first.
__device__ __forceinline__ void load_box(unsigned to, const TensorMap& map, unsigned barrier, int i, int j) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];"
      :
      : "r"(to), "l"(&map), "r"(barrier), "r"(i), "r"(j)
      : "memory");
}
__device__ __forceinline__ void load_box(unsigned to, const TensorMap& map, unsigned barrier, int i, int j, int k) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}], [%2];"
      :
      : "r"(to), "l"(&map), "r"(barrier), "r"(i), "r"(j), "r"(k)
      : "memory");
}
__device__ __forceinline__ void load_box(unsigned to, const TensorMap& map, unsigned barrier, int i, int j, int k,
                                         int l) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6}], [%2];"
      :
      : "r"(to), "l"(&map), "r"(barrier), "r"(i), "r"(j), "r"(k), "r"(l)
      : "memory");
}
__device__ __forceinline__ void load_box(unsigned to, const TensorMap& map, unsigned barrier, int i, int j, int k,
                                         int l, int m) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6, %7}], "
      "[%2];"
      :
      : "r"(to), "l"(&map), "r"(barrier), "r"(i), "r"(j), "r"(k), "r"(l), "r"(m)
      : "memory");
}

//@ part written_tiles : mbarrier
// Signals at mbarrier `full` that the warp has written its part of a stage, which wgmma reads through the async proxy.
__device__ __forceinline__ void signal_written(unsigned full, int lane) {
  asm volatile("fence.proxy.async.shared::cta;" : : : "memory");
  __syncwarp();
  if (lane == 0) arrive(full);
}

//@ part picked_tiles : copy_pipeline
// Byte offset of the thread's first unit in a tile of gathered rows with the 128-byte swizzle. Thread t of 128 has the
// 16-byte unit t % 8 of rows t / 8 + 16 i.
__device__ __forceinline__ unsigned gathered_offset() {
  return threadIdx.x / 8 * 128 + (threadIdx.x ^ threadIdx.x / 8) % 8 * 16;
}
// Copies the thread's unit of kCount gathered rows (cp.async), and advances from[] by 128 bytes. Unless kWholeLines,
// zeros if not `there` (beyond K).
template <bool kWholeLines, class Element, int kCount>
__device__ __forceinline__ void copy_gathered_rows(unsigned to, const Element* (&from)[kCount], bool there) {
  constexpr int kApart = 16 * 128;
  if constexpr (kWholeLines) {
    copy_lines<kApart>(to, from);
  } else {
    int bytes[kCount];
#pragma unroll
    for (int i = 0; i < kCount; ++i) bytes[i] = there ? 16 : 0;
    copy_lines<kApart>(to, from, bytes);
  }
#pragma unroll
  for (int i = 0; i < kCount; ++i) from[i] += 128 / sizeof(Element);
}

//@ part image_tiles : picked_tiles k_offset_entry
// Copies the thread's unit of kCount rows of an implicit GEMM (cp.async). from[i]: byte offset of a row in the image;
// outside[i]: bits of its taps outside the image, which read as zeros.
template <class Element, int kCount>
__device__ __forceinline__ void copy_image(unsigned to, const Element* image, const unsigned (&from)[kCount],
                                           const unsigned (&outside)[kCount], KOffsetEntry step) {
  const unsigned char* at[kCount];
  int bytes[kCount];
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    at[i] = (const unsigned char*)image + (from[i] + (unsigned)step.add * (unsigned)sizeof(Element));
    bytes[i] = step.taps & outside[i] ? 0 : 16;
  }
  copy_lines<16 * 128>(to, at, bytes);
}

//@ part placed_image_tiles : picked_tiles k_offset_entry
// Copies the thread's unit of kCount rows of an implicit GEMM (cp.async). places[step.taps + 16 i]: element offset of a
// row in the image, or -1 outside (zeros); `places` begins at the thread's first row.
template <int kCount, class Element>
__device__ __forceinline__ void copy_placed_image(unsigned to, const Element* image, const int* places,
                                                  KOffsetEntry step) {
  const Element* at[kCount];
  int bytes[kCount];
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    const int place = places[step.taps + 16 * i];
    at[i] = image + (place >= 0 ? place + step.add : 0);
    bytes[i] = place >= 0 ? 16 : 0;
  }
  copy_lines<16 * 128>(to, at, bytes);
}

//@ part warpgroup_barrier
// Named barrier of a warpgroup's 128 threads; number 0 is that of __syncthreads.
__device__ __forceinline__ void sync_warpgroup(int number) { asm volatile("bar.sync %0, 128;" : : "r"(number) : "memory"); }

//@ part warpgroup_turns
// Warpgroups 1 and 2 take turns: each waits at a named barrier of its own (4 or 5) until the other arrives there.
__device__ __forceinline__ void take_turn(int mine) { asm volatile("bar.sync %0, 256;" : : "r"(3 + mine) : "memory"); }
__device__ __forceinline__ void give_turn(int mine) { asm volatile("bar.arrive %0, 256;" : : "r"(6 - mine) : "memory"); }

//@ part warpgroup_offsets
// Barrier of the two warpgroups that multiply a tile (256 threads).
__device__ __forceinline__ void sync_multipliers() { asm volatile("bar.sync 2, 256;" : : : "memory"); }
// The number of threads that sum a column of the right operand's int8 tile: each takes a part of its 128 values.
__device__ constexpr int threads_of_column(int columns) {
  return columns > 128 || 256 % columns != 0 ? 1 : columns < 32 ? 8 : 256 / columns;
}
// sum += the thread's part of a column of a tile with the 128-byte swizzle.
template <int kColumns>
__device__ __forceinline__ void add_lines(int& sum, unsigned tile) {
  constexpr int kParts = threads_of_column(kColumns), kPieces = 8 / kParts;
  const int thread = threadIdx.x - 128, line = thread % kColumns, first = thread / kColumns * kPieces;
  if (kParts * kColumns < 256 && thread >= kParts * kColumns) return;
#pragma unroll
  for (int piece = 0; piece < kPieces; ++piece) {
    int four[4];
    asm volatile("ld.shared.v4.s32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(four[0]), "=r"(four[1]), "=r"(four[2]), "=r"(four[3])
                 : "r"(tile + line * 128 + ((first + piece) ^ line % 8) * 16)
                 : "memory");
#pragma unroll
    for (int k = 0; k < 4; ++k) asm("dp4a.s32.s32 %0, %1, %2, %0;" : "+r"(sum) : "r"(four[k]), "r"(0x01010101));
  }
}
// sum -= offset * (sum of the column along K), for zero points: (x - o) w = x w - o sum w. `part`: from add_lines;
// `shared`: room for 256 ints.
template <int kColumns, int kEights>
__device__ __forceinline__ void subtract_zero_point_rows(int (&sum)[kEights][4], int part, int offset, int* shared) {
  constexpr int kParts = threads_of_column(kColumns);
  const int thread = threadIdx.x - 128;
  sync_multipliers();  // earlier readers are done
  if (kParts * kColumns == 256 || thread < kParts * kColumns) shared[thread] = offset * part;
  sync_multipliers();
#pragma unroll
  for (int j = 0; j < kEights; ++j)
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      int taken = 0;
#pragma unroll
      for (int p = 0; p < kParts; ++p)
        taken += shared[p * kColumns + j % (kColumns / 8) * 8 + thread % 4 * 2 + k];
      sum[j][k] -= taken;
      sum[j][k + 2] -= taken;
    }
  sync_multipliers();
}

//@ part delayed_signals : copy_pipeline written_tiles
// Signals the mbarriers of stages that the warp copies (cp.async): each kBehind stages late, so that kBehind stages
// stay in flight. `full`: mbarrier of stage 0.
template <int kBehind, int kStages>
struct DelayedSignals {
  int under_way = 0, stage = 0;
  __device__ __forceinline__ void tell_one(unsigned full, int lane) {
    signal_written(full + 8 * stage, lane);
    if (++stage == kStages) stage = 0;
  }
  __device__ __forceinline__ void tell(unsigned full, int lane) {
    commit_copies();
    if (under_way == kBehind) {
      wait_for_groups<kBehind>();
      tell_one(full, lane);
    } else {
      ++under_way;
    }
  }
  __device__ __forceinline__ void tell_all(unsigned full, int lane) {
    wait_for_groups<0>();
    for (; under_way > 0; --under_way) tell_one(full, lane);
  }
};

//@ part load_box_multicast : tensor_map
// Copies a box by TMA to the same place in both blocks of a cluster (multicast); its bytes complete at each block's
// mbarrier.
__device__ __forceinline__ void load_box_multicast(unsigned to, const TensorMap& map, unsigned barrier, int i, int j) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%3, "
      "%4}], [%2], %5;"
      :
      : "r"(to), "l"(&map), "r"(barrier), "r"(i), "r"(j), "h"((unsigned short)3)
      : "memory");
}
__device__ __forceinline__ void load_box_multicast(unsigned to, const TensorMap& map, unsigned barrier, int i, int j,
                                                 int k) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%3, "
      "%4, %5}], [%2], %6;"
      :
      : "r"(to), "l"(&map), "r"(barrier), "r"(i), "r"(j), "r"(k), "h"((unsigned short)3)
      : "memory");
}
__device__ __forceinline__ void load_box_multicast(unsigned to, const TensorMap& map, unsigned barrier, int i, int j,
                                                 int k, int l) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%3, "
      "%4, %5, %6}], [%2], %7;"
      :
      : "r"(to), "l"(&map), "r"(barrier), "r"(i), "r"(j), "r"(k), "r"(l), "h"((unsigned short)3)
      : "memory");
}
__device__ __forceinline__ void load_box_multicast(unsigned to, const TensorMap& map, unsigned barrier, int i, int j,
                                                 int k, int l, int m) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%3, "
      "%4, %5, %6, %7}], [%2], %8;"
      :
      : "r"(to), "l"(&map), "r"(barrier), "r"(i), "r"(j), "r"(k), "r"(l), "r"(m), "h"((unsigned short)3)
      : "memory");
}

//@ part store_box : tensor_map words
// Shared address of a byte of a box with the 128-byte swizzle.
__device__ __forceinline__ unsigned place_in_box(unsigned box, unsigned line, unsigned byte) {
  return box + line * 128 + (byte ^ line % 8 * 16);
}
template <int kWords>
__device__ __forceinline__ void store_in_box(unsigned place, const Words<kWords>& words) {
  if constexpr (kWords == 2)
    asm volatile("st.shared.v2.b32 [%0], {%1, %2};" : : "r"(place), "r"(words.w[0]), "r"(words.w[1]) : "memory");
  else
#pragma unroll
    for (int i = 0; i < kWords; i += 4)
      asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};"
                   :
                   : "r"(place ^ 4 * i), "r"(words.w[i]), "r"(words.w[i + 1]), "r"(words.w[i + 2]), "r"(words.w[i + 3])
                   : "memory");
}
// Makes a lane's stores visible to TMA: each lane calls it before one calls store_box.
__device__ __forceinline__ void fence_boxes() { asm volatile("fence.proxy.async.shared::cta;" : : : "memory"); }
// Copies a box to a tensor by TMA, for one thread to call; elements outside the tensor are skipped. Coordinates:
// innermost first.
__device__ __forceinline__ void store_box(const TensorMap& map, unsigned from, int i, int j) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];"
               :
               : "l"(&map), "r"(i), "r"(j), "r"(from)
               : "memory");
}
__device__ __forceinline__ void store_box(const TensorMap& map, unsigned from, int i, int j, int k) {
  asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%1, %2, %3}], [%4];"
               :
               : "l"(&map), "r"(i), "r"(j), "r"(k), "r"(from)
               : "memory");
}
__device__ __forceinline__ void store_box(const TensorMap& map, unsigned from, int i, int j, int k, int l) {
  asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%1, %2, %3, %4}], [%5];"
               :
               : "l"(&map), "r"(i), "r"(j), "r"(k), "r"(l), "r"(from)
               : "memory");
}
// Stores the first lines of a box by a warp, to lines `apart` bytes apart in global memory. `bytes`: valid ones per
// line.
__device__ __forceinline__ void store_lines(void* to, long long apart, unsigned from, int lines, int bytes, int lane) {
  const int byte = lane % 8 * 16;
  if (byte >= bytes) return;
#pragma unroll 1
  for (int line = lane / 8; line < lines; line += 4) {
    uint4 words;
    asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words.x), "=r"(words.y), "=r"(words.z), "=r"(words.w)
                 : "r"(place_in_box(from, line, byte))
                 : "memory");
    *(uint4*)((unsigned char*)to + line * apart + byte) = words;
  }
}
__device__ __forceinline__ void commit_boxes() { asm volatile("cp.async.bulk.commit_group;" : : : "memory"); }
// Waits until TMA has read the thread's boxes, which may then be overwritten.
__device__ __forceinline__ void wait_for_stored_boxes() { asm volatile("cp.async.bulk.wait_group.read 0;" : : : "memory"); }

//@ part warpgroup
// Sets the registers per thread: fewer in a warpgroup that copies, more in one that multiplies.
template <int kRegisters>
__device__ __forceinline__ void warpgroup_reg_dealloc() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" : : "n"(kRegisters));
}
template <int kRegisters>
__device__ __forceinline__ void warpgroup_reg_alloc() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" : : "n"(kRegisters));
}
// Keeps the compiler from moving accesses of wgmma accumulators across a fence or wait. A lane has, of each eight
// columns, two of row lane / 4 and two of row lane / 4 + 8. One statement for eight of these keeps NVRTC's time low.
__device__ __forceinline__ void hold_eight(float (*sum)[4]) {
  asm volatile(""
               : "+f"(sum[0][0]), "+f"(sum[0][1]), "+f"(sum[0][2]), "+f"(sum[0][3]),
                 "+f"(sum[1][0]), "+f"(sum[1][1]), "+f"(sum[1][2]), "+f"(sum[1][3]),
                 "+f"(sum[2][0]), "+f"(sum[2][1]), "+f"(sum[2][2]), "+f"(sum[2][3]),
                 "+f"(sum[3][0]), "+f"(sum[3][1]), "+f"(sum[3][2]), "+f"(sum[3][3]),
                 "+f"(sum[4][0]), "+f"(sum[4][1]), "+f"(sum[4][2]), "+f"(sum[4][3]),
                 "+f"(sum[5][0]), "+f"(sum[5][1]), "+f"(sum[5][2]), "+f"(sum[5][3]),
                 "+f"(sum[6][0]), "+f"(sum[6][1]), "+f"(sum[6][2]), "+f"(sum[6][3]),
                 "+f"(sum[7][0]), "+f"(sum[7][1]), "+f"(sum[7][2]), "+f"(sum[7][3])
               :
               : "memory");
}
__device__ __forceinline__ void hold_eight(int (*sum)[4]) {
  asm volatile(""
               : "+r"(sum[0][0]), "+r"(sum[0][1]), "+r"(sum[0][2]), "+r"(sum[0][3]),
                 "+r"(sum[1][0]), "+r"(sum[1][1]), "+r"(sum[1][2]), "+r"(sum[1][3]),
                 "+r"(sum[2][0]), "+r"(sum[2][1]), "+r"(sum[2][2]), "+r"(sum[2][3]),
                 "+r"(sum[3][0]), "+r"(sum[3][1]), "+r"(sum[3][2]), "+r"(sum[3][3]),
                 "+r"(sum[4][0]), "+r"(sum[4][1]), "+r"(sum[4][2]), "+r"(sum[4][3]),
                 "+r"(sum[5][0]), "+r"(sum[5][1]), "+r"(sum[5][2]), "+r"(sum[5][3]),
                 "+r"(sum[6][0]), "+r"(sum[6][1]), "+r"(sum[6][2]), "+r"(sum[6][3]),
                 "+r"(sum[7][0]), "+r"(sum[7][1]), "+r"(sum[7][2]), "+r"(sum[7][3])
               :
               : "memory");
}
__device__ __forceinline__ void hold_one(float (&sum)[4]) {
  asm volatile("" : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3]) : : "memory");
}
__device__ __forceinline__ void hold_one(int (&sum)[4]) {
  asm volatile("" : "+r"(sum[0]), "+r"(sum[1]), "+r"(sum[2]), "+r"(sum[3]) : : "memory");
}
template <class Sum, int kEights>
__device__ __forceinline__ void hold(Sum (&sum)[kEights][4]) {
#pragma unroll
  for (int j = 0; j < kEights / 8 * 8; j += 8) hold_eight(sum + j);
#pragma unroll
  for (int j = kEights / 8 * 8; j < kEights; ++j) hold_one(sum[j]);
}
__device__ __forceinline__ void fence_products() { asm volatile("wgmma.fence.sync.aligned;" : : : "memory"); }
__device__ __forceinline__ void commit_products() { asm volatile("wgmma.commit_group.sync.aligned;" : : : "memory"); }
// Waits for all groups of wgmma but the newest kNewest.
template <int kNewest>
__device__ __forceinline__ void wait_for_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" : : "n"(kNewest) : "memory");
}
// wgmma descriptor of a tile with the 128-byte swizzle: groups of eight lines are 1024 bytes apart. MN-major tiles have
// lines of 64 rows (or columns) of one k, in pieces of 64 lines, 8 KiB, or of `piece` bytes.
__device__ __forceinline__ unsigned long long wgmma_descriptor(unsigned address, unsigned long long piece = 8192) {
  return 1ull << 62 | 1024ull / 16 << 32 | piece / 16 << 16 | (address & 0x3ffff) >> 4;
}

//@ part narrow_descriptor : warpgroup
// wgmma descriptor of an MN-major 16-bit tile with lines of kAcross = 32, 16 or 8 rows (or columns) of one k, in pieces
// of 64 lines. Lines of 16 bytes are not swizzled, which swaps the leading and the stride distance.
template <int kAcross>
__device__ __forceinline__ unsigned long long narrow_descriptor(unsigned address) {
  constexpr unsigned long long kLine = 2 * kAcross, kEight = 8 * kLine / 16, kPiece = 64 * kLine / 16;
  constexpr unsigned long long kSwizzle = kAcross == 32 ? 2 : kAcross == 16 ? 3 : 0;
  constexpr unsigned long long kLeading = kSwizzle ? kPiece : kEight, kStride = kSwizzle ? kEight : kPiece;
  return kSwizzle << 62 | kStride << 32 | kLeading << 16 | (address & 0x3ffff) >> 4;
}

//@ part add_warpgroup_parts
// sum += part * (row scale) * (column scale), after a block of K that has scales of its own.
template <bool kRowsScaled, bool kColumnsScaled, class Part, int kEights>
__device__ __forceinline__ void add_warpgroup_parts(float (&sum)[kEights][4], const Part (&part)[kEights][4],
                                                    const float* of_rows, const float* of_columns, int lane) {
  float row[2] = {1.0f, 1.0f};
  if constexpr (kRowsScaled) row[0] = of_rows[lane / 4], row[1] = of_rows[lane / 4 + 8];
#pragma unroll
  for (int j = 0; j < kEights; ++j) {
    float column[2] = {1.0f, 1.0f};
    if constexpr (kColumnsScaled) {
      const float2 two = *(const float2*)(of_columns + 8 * j + lane % 4 * 2);
      column[0] = two.x, column[1] = two.y;
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) sum[j][i] += (float)part[j][i] * (row[i / 2] * column[i % 2]);
  }
}

//@ part fence_tiles
// Makes this thread's stores to shared memory visible to wgmma (async proxy). Call it before the readers are signaled.
__device__ __forceinline__ void fence_tiles() { asm volatile("fence.proxy.async.shared::cta;" : : : "memory"); }
