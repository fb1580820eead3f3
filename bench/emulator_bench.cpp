// The emulator's speed with all checks on: lane-instructions a second and core on a pointwise kernel, multiply-adds a
// second and core on products by mma.sync and by wgmma. The kernels are PTX written here, so that no compiler is
// needed.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "runtime/emulator/emulator.h"

namespace {

using namespace fusec::emulator;

constexpr const char* kHead =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry k(.param .u64 p_in, .param .u64 p_out)\n{\n"
    ".reg .pred %p<8>;\n.reg .b32 %r<64>;\n.reg .f32 %f<64>;\n.reg .b64 %rd<16>;\n"
    "ld.param.u64 %rd1, [p_in];\nld.param.u64 %rd2, [p_out];\n"
    "mov.u32 %r1, %ctaid.x;\nmov.u32 %r2, %ntid.x;\nmov.u32 %r3, %tid.x;\nmad.lo.s32 %r4, %r1, %r2, %r3;\n"
    "mul.wide.s32 %rd3, %r4, 4;\nadd.s64 %rd1, %rd1, %rd3;\nadd.s64 %rd2, %rd2, %rd3;\n";

std::string pointwise() {
  std::string body = "ld.global.f32 %f1, [%rd1];\n";
  for (int i = 0; i < 4; ++i) {
    body +=
        "fma.rn.f32 %f2, %f1, %f1, 0f3F000000;\nsetp.gt.f32 %p1, %f2, 0f00000000;\nmul.f32 %f3, %f2, 0f3DCCCCCD;\n"
        "selp.f32 %f4, %f2, %f3, %p1;\nadd.f32 %f1, %f4, %f1;\n";
  }
  return kHead + body + "st.global.f32 [%rd2], %f1;\nret;\n}\n";
}

// Each warp multiplies 32 x 32 tiles from shared memory, as a GEMM's main loop does: 4 ldmatrix for 8 products.
std::string products() {
  std::string body =
      ".shared .align 128 .b8 s[4096];\nmov.u32 %r5, s;\nshl.b32 %r6, %r3, 4;\nadd.u32 %r5, %r5, %r6;\n"
      "mov.b32 %r7, 0x3c003c00;\nst.shared.v4.b32 [%r5], {%r7, %r7, %r7, %r7};\n"
      "st.shared.v4.b32 [%r5+512], {%r7, %r7, %r7, %r7};\nbar.warp.sync -1;\nmov.u32 %r8, 0;\n";
  for (int i = 0; i < 32; ++i) body += "mov.f32 %f" + std::to_string(i) + ", 0f00000000;\n";
  body +=
      "LOOP:\nldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r10, %r11, %r12, %r13}, [%r5];\n"
      "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r14, %r15, %r16, %r17}, [%r5+512];\n";
  for (int tile = 0; tile < 8; ++tile) {
    std::string sums;
    for (int i = 0; i < 4; ++i) sums += (i == 0 ? "%f" : ", %f") + std::to_string(4 * tile + i);
    body += "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {" + sums + "}, {%r10, %r11, %r12, %r13}, {%r" +
            std::to_string(14 + tile % 2 * 2) + ", %r" + std::to_string(15 + tile % 2 * 2) + "}, {" + sums + "};\n";
  }
  body += "add.u32 %r8, %r8, 1;\nsetp.lt.u32 %p1, %r8, 64;\n@%p1 bra LOOP;\n";
  return kHead + body + "st.global.f32 [%rd2], %f0;\nret;\n}\n";
}

// A warp group multiplies 64 x 128 tiles along k = 64 in shared memory, a group of products at a time.
std::string group_products() {
  std::string text = kHead,
              body =
                  ".shared .align 1024 .b8 s[32768];\n.reg .b64 %d<2>;\n.reg .f32 %c<64>;\nmov.u32 %r5, s;\n"
                  "shl.b32 %r6, %r3, 8;\nadd.u32 %r6, %r5, %r6;\nmov.b32 %r7, 0x3c003c00;\n";
  text.replace(text.find("sm_80"), 5, "sm_90a");
  for (int i = 0; i < 16; ++i) body += "st.shared.v4.b32 [%r6+" + std::to_string(16 * i) + "], {%r7, %r7, %r7, %r7};\n";
  std::string sums;
  for (int i = 0; i < 64; ++i) {
    sums += (i == 0 ? "%c" : ", %c") + std::to_string(i);
    body += "mov.f32 %c" + std::to_string(i) + ", 0f00000000;\n";
  }
  // Lines of 128 bytes, swizzled; eight of them 1024 bytes apart.
  body +=
      "fence.proxy.async;\nbar.sync 0;\nshr.u32 %r5, %r5, 4;\ncvt.u64.u32 %d0, %r5;\n"
      "or.b64 %d0, %d0, 0x4000004000010000;\nadd.u64 %d1, %d0, 512;\nsetp.eq.u32 %p2, 0, 0;\nmov.u32 %r8, 0;\n"
      "LOOP:\nwgmma.fence.sync.aligned;\n";
  for (int part = 0; part < 4; ++part) {
    body += "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {" + sums + "}, %d0, %d1, %p2, 1, 1, 0, 0;\n";
  }
  body +=
      "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\nadd.u32 %r8, %r8, 1;\n"
      "setp.lt.u32 %p1, %r8, 16;\n@%p1 bra LOOP;\n";
  return text + body + "st.global.f32 [%rd2], %c0;\nret;\n}\n";
}

Report run_once(const Module& module, std::uint32_t blocks, std::uint32_t threads) {
  std::vector<float> x(blocks * threads, 0.5f), y(blocks * threads);
  Memory memory;
  const auto xi = memory.add({.name = "x", .bytes = std::as_writable_bytes(std::span(x)), .writable = false});
  const auto yi = memory.add({.name = "y", .bytes = std::as_writable_bytes(std::span(y)), .initialized = false});
  return run(module,
             {.kernel = "k",
              .grid = {blocks},
              .block = {threads},
              .arguments = {pointer_argument(memory, xi), pointer_argument(memory, yi)}},
             memory);
}

void emulate_pointwise(benchmark::State& state) {
  const Module module(pointwise(), "pointwise.ptx");
  double lanes = 0;
  for (auto _ : state) {
    const Report report = run_once(module, 512, 256);
    if (!report.findings.empty()) state.SkipWithError("findings");
    lanes += std::accumulate(report.counters.lane_instructions.begin(), report.counters.lane_instructions.end(), 0.0);
  }
  state.counters["lane_instructions"] = benchmark::Counter(lanes, benchmark::Counter::kIsRate);
}
BENCHMARK(emulate_pointwise);

void emulate_products(benchmark::State& state) {
  const Module module(products(), "products.ptx");
  double multiply_adds = 0;
  for (auto _ : state) {
    const Report report = run_once(module, 32, 32);
    if (!report.findings.empty()) state.SkipWithError("findings");
    multiply_adds += static_cast<double>(report.counters.tensor_multiply_adds);
  }
  state.counters["multiply_adds"] = benchmark::Counter(multiply_adds, benchmark::Counter::kIsRate);
}
BENCHMARK(emulate_products);

void emulate_group_products(benchmark::State& state) {
  const Module module(group_products(), "group_products.ptx");
  double multiply_adds = 0;
  for (auto _ : state) {
    const Report report = run_once(module, 4, 128);
    if (!report.findings.empty()) state.SkipWithError("findings");
    multiply_adds += static_cast<double>(report.counters.tensor_multiply_adds);
  }
  state.counters["multiply_adds"] = benchmark::Counter(multiply_adds, benchmark::Counter::kIsRate);
}
BENCHMARK(emulate_group_products);

}  // namespace

BENCHMARK_MAIN();
