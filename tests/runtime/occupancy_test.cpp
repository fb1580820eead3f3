// What the cubin says of a kernel, and how many blocks then fit a multiprocessor.
#include "runtime/occupancy.h"

#include <doctest/doctest.h>

#include "codegen/nvrtc/nvrtc.h"
#include "ir/error.h"
#include "runtime/cubin_resources.h"

using namespace fusec;

namespace {

const char* const kSource = R"(
extern "C" __global__ void small(float* x) { x[threadIdx.x] *= 2; }
extern "C" __global__ void __launch_bounds__(256) exchange(float* x, int n) {
  __shared__ float s[512];
  s[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = s[(threadIdx.x + n) % 512];
}
extern "C" __global__ void __launch_bounds__(1024, 2) crowded(float* x, int n) {
  float a[64];
  for (int i = 0; i < 64; ++i) a[i] = x[i * n + threadIdx.x];
  for (int k = 0; k < n; ++k) {
#pragma unroll
    for (int i = 0; i < 64; ++i) a[i] = a[i] * a[(i + 7) % 64] + a[(i + 13) % 64];
  }
#pragma unroll
  for (int i = 0; i < 64; ++i) x[i * n + threadIdx.x] = a[i];
}
extern "C" __global__ void chosen(float* x, int n) {
  float a[100];
  for (int i = 0; i < 100; ++i) a[i] = x[i];
  x[0] = a[n];
}
)";

}  // namespace

TEST_SUITE("occupancy") {
  TEST_CASE("registers, stack and shared memory of a cubin") {
    const auto nvrtc = Nvrtc::load();
    if (!nvrtc) {
      MESSAGE("skipped: no NVRTC");
      return;
    }
    for (const char* arch : {"sm_80", "sm_90a"}) {
      CAPTURE(arch);
      const auto kernels = cubin_resources(nvrtc->compile(kSource, "kernels.cu", arch).cubin);
      REQUIRE(kernels.size() == 4);
      CHECK(kernels.at("small").registers >= 4);
      CHECK(kernels.at("small").registers <= 16);
      CHECK(kernels.at("small").stack_bytes == 0);
      CHECK(kernels.at("small").static_shared_bytes == 0);
      CHECK(kernels.at("exchange").static_shared_bytes == 2048);
      CHECK(kernels.at("crowded").registers == 32);
      CHECK(kernels.at("crowded").stack_bytes > 64);
      CHECK(kernels.at("chosen").stack_bytes == 400);
    }
  }

  TEST_CASE("what is no cubin is refused") {
    CHECK_THROWS_AS(cubin_resources(""), Error);
    CHECK_THROWS_AS(cubin_resources(std::string(64, 'x')), Error);
    std::string cut = "\177ELF\2";
    cut.resize(64, '\377');
    CHECK_THROWS_AS(cubin_resources(cut), Error);
  }

  // Worked out from the tables of CUDA's programming guide.
  TEST_CASE("blocks of a multiprocessor and what limits them") {
    const Target a100 = target_for("sm_80");
    const auto check = [&](int threads, int registers, std::int64_t shared, int blocks, std::string_view limit) {
      const Occupancy o = occupancy(a100, threads, registers, shared);
      CHECK(o.blocks == blocks);
      CHECK(name(o.limit) == limit);
      CHECK(o.fraction == doctest::Approx(blocks * ((threads + 31) / 32) / 64.0));
    };
    check(256, 32, 0, 8, "threads");
    check(256, 33, 0, 6, "registers");  // 40 a thread in units of 8: 1280 a warp, 12 warps a quarter
    check(256, 128, 0, 2, "registers");
    check(1024, 65, 0, 0, "registers");
    check(32, 16, 0, 32, "blocks");
    check(128, 32, 48 * 1024, 3, "shared memory");
    check(128, 32, 163 * 1024, 1, "shared memory");
  }
}
