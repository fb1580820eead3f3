// What the parser and the decoder refuse, how they say so, and that no text makes them or the executor crash.
#include <doctest/doctest.h>

#include <random>

#include "emulator/harness.h"
#include "ir/error.h"
#include "runtime/emulator/ptx_target.h"

using namespace fusec;
using namespace fusec::emulator;
using namespace fusec::emulator::testing;

namespace {

std::string error_of(const std::string& text, bool decode = true) {
  try {
    const Module module(text, "a.ptx");
    if (decode) {
      for (const std::string& kernel : module.kernels()) module.kernel(kernel);
    }
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

std::string body_error(const std::string& body) {
  return error_of(kernel_text(body));
}

const char* const kSample = R"(
.version 8.0
.target sm_90a
.address_size 64
.const .align 4 .f32 table[4] = {0f3F800000, 2.0, 0f40400000, 4.0};
.visible .func (.param .b32 r) f(.param .b32 a, .param .align 8 .b8 s[16]) { ld.param.b32 %r1, [a]; ret; }
.visible .entry k(.param .u64 p_in, .param .u64 .ptr .global .align 16 p_out)
.maxntid 256, 1, 1
.minnctapersm 2
{
  .reg .pred %p<3>;
  .reg .b32 %r<10>;
  .reg .b64 %rd<5>;
  .shared .align 16 .b8 s[64];
  .local .align 8 .b8 depot[32];
  .loc 1 2 3, function_name $L__info_string0, inlined_at 1 4 5
  ld.param.u64 %rd1, [p_in];
  ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd1+16];
  setp.lt.s32 %p1|%p2, %r1, -5;
  @!%p1 bra $L__1;
  mul.lo.s32 %r5, %r1, 0x1F;
$L__1:
  st.shared.u32 [s+4], %r5;
  bar.sync 0;
  shfl.sync.bfly.b32 %r6|%p1, %r5, 1, 31, -1;
  { .reg .b32 t; mov.b32 t, %r6; mov.b64 {%r7, %r8}, %rd1; }
  cp.async.ca.shared.global [s], [%rd1], 16;
  mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%r1,%r2,%r3,%r4}, {%r5,%r6,%r7,%r8}, {%r1,%r2}, {%r1,%r2,%r3,%r4};
  ret;
}
)";

}  // namespace

TEST_CASE("an unknown instruction is named, with its line") {
  CHECK(error_of(kernel_text("frobnicate.u32 %r1, %r2;")) == "a.ptx:18: unknown instruction: found frobnicate.u32");
  CHECK(body_error("add.frob.u32 %r1, %r2, %r3;") == "a.ptx:18: unknown instruction: found add.frob.u32");
  CHECK(body_error("mma.sync.aligned.m16n8k256.row.col.f32.f16.f16.f32 {%r1}, {%r1}, {%r1}, {%r1};")
            .find("unknown instruction") != std::string::npos);
}

TEST_CASE("malformed text") {
  CHECK(body_error("bra NOWHERE;") == "a.ptx:18: unknown label: found NOWHERE");
  CHECK(body_error("add.u32 %r1, %r2;") == "a.ptx:18: too few operands: found add.u32");
  CHECK(body_error("add.u32 %r1, %r2, %r3, %r4;").find("too many operands") != std::string::npos);
  CHECK(body_error("add.u32 %rd1, %r2, %r3;").find("register of the instruction's width") != std::string::npos);
  CHECK(body_error("add.u32 %r1, %nosuch, 1;").find("unknown special register") != std::string::npos);
  CHECK(body_error("add.u32 %r1, nosuch, 1;").find("unknown name") != std::string::npos);
  CHECK(body_error("call nosuch;").find("does not define") != std::string::npos);
  CHECK(body_error("A:\nA:\n").find("label declared twice") != std::string::npos);
  CHECK(body_error("@%q bra A;").find("unknown guard") != std::string::npos);
  CHECK(error_of(".entry k() {").find("function without an end") != std::string::npos);
  CHECK(error_of(".entry k() { .reg .b32 %r<4000000000>; }").find("too many registers") != std::string::npos);
  CHECK(error_of(".global .b8 x[99999999999999];").find("too large") != std::string::npos);
  CHECK(error_of(".global .b8 x[2] = {1, 2, 3};").find("more initial values") != std::string::npos);
  CHECK(error_of(std::string(100000, '{')).find("unexpected text") != std::string::npos);
  CHECK(error_of(".entry k() " + std::string(100000, '{')).find("nested too deeply") != std::string::npos);
  CHECK(error_of(".entry k() { mov.b32 " + std::string(100000, '{')).find("nested too deeply") != std::string::npos);
  CHECK(error_of(".func f() { call f; ret; } .entry k() { call f; ret; }").find("recursive") != std::string::npos);
  CHECK(error_of("\x01").find("starts no PTX token") != std::string::npos);
  CHECK(error_of(kSample) == "none");
}

TEST_CASE("the largest offsets wrap around") {
  const std::string variable = ".shared .align 4 .b8 s[16];\n";
  for (const char* body : {"mov.u32 %r1, s-0x8000000000000000;", "ld.shared.u32 %r1, [s-0x8000000000000000];",
                           "ld.u32 %r1, [s+0x7fffffffffffffff];", "ld.global.u32 %r1, [%rd1-0x8000000000000000];"}) {
    CAPTURE(std::string(body));
    CHECK(body_error(variable + body) == "none");
  }
}

TEST_CASE("versions and targets that are too large are none") {
  CHECK(parse_ptx_target("sm_2147483647", "8.2147483647").capability == 0);
  CHECK(parse_ptx_target("sm_90a", "2147483647.0").version == 0);
  CHECK(parse_ptx_target("sm_90a", "8.2147483647").version == 80);
}

TEST_CASE("unknown kernels are listed") {
  const Module module(kernel_text("ret;"), "a.ptx");
  CHECK_THROWS_WITH_AS(module.kernel("x"), "a.ptx: no such kernel: found x, expected one of k", Error);
}

// Mutates known text; whatever comes out is either refused with an Error or runs within its budget.
TEST_CASE("mutated text never crashes") {
  std::mt19937 random(3);
  const std::string alphabet = "0123456789abcdefrxu%.,;:[]{}()|@!+-_ \n";
  int ran = 0;
  for (int round = 0; round < 1500; ++round) {
    std::string text = kSample;
    for (int edits = 1 + static_cast<int>(random() % 4); edits > 0; --edits) {
      const std::size_t at = random() % text.size();
      switch (random() % 4) {
        case 0:
          text.erase(at, 1 + random() % 8);
          break;
        case 1:
          text.insert(at, 1, alphabet[random() % alphabet.size()]);
          break;
        case 2:
          text[at] = alphabet[random() % alphabet.size()];
          break;
        default:
          text.insert(at, text.substr(random() % text.size(), random() % 30));
          break;
      }
    }
    try {
      const Module module(text, "a.ptx");
      std::vector<std::uint32_t> values(64);
      Memory memory;
      const auto id = memory.add({.name = "x", .bytes = std::as_writable_bytes(std::span(values))});
      for (const std::string& kernel : module.kernels()) {
        const Launch launch{
            .kernel = kernel, .block = {64}, .arguments = {pointer_argument(memory, id), pointer_argument(memory, id)}};
        run(module, launch, memory, {.max_instructions = 5000});
        ++ran;
      }
    } catch (const Error&) {
    }
  }
  CHECK(ran > 50);
}
