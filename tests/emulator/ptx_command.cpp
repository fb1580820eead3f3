// Kernels run from files, as `fusec-run --ptx` does.
#include "runtime/emulator/ptx_command.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "emulator/harness.h"
#include "ir/error.h"
#include "ir/safetensors.h"

using namespace fusec;
using namespace fusec::emulator;

namespace {

struct Folder {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("fusec_ptx_command_" + std::to_string(getpid()));
  Folder() { std::filesystem::create_directories(path); }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string file(const char* name) const { return (path / name).string(); }
};

const char* const kScale = R"(
.version 8.0
.target sm_80
.address_size 64
.visible .entry scale(.param .u64 x, .param .u64 y, .param .align 8 .b8 s[24], .param .f32 factor)
{
  .reg .b64 %rd<6>;
  .reg .b32 %r<3>;
  .reg .f32 %f<5>;
  ld.param.u64 %rd1, [x];
  ld.param.u64 %rd2, [y];
  ld.param.f32 %f1, [factor];
  ld.param.f32 %f2, [s+4];
  ld.param.u64 %rd4, [s+8];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd3, %r1, 4;
  add.u64 %rd1, %rd1, %rd3;
  add.u64 %rd2, %rd2, %rd3;
  add.u64 %rd4, %rd4, %rd3;
  ld.global.f32 %f3, [%rd1];
  fma.rn.f32 %f3, %f3, %f1, %f2;
  st.global.f32 [%rd2], %f3;
  st.global.f32 [%rd4], %f1;
  ret;
}
)";

}  // namespace

TEST_CASE("a kernel from a file, its buffers from and to safetensors") {
  const Folder folder;
  std::ofstream(folder.file("k.ptx")) << kScale;
  const float x[4] = {1, 2, 3, 4};
  write_safetensors(folder.file("in.safetensors"),
                    {{"x", stored_type(DType::kFloat32, {4}), {reinterpret_cast<const char*>(x), 16}}});
  PtxCommand command{
      .ptx_file = folder.file("k.ptx"),
      .kernel = "scale",
      .block = {4},
      .arguments = {"in:x", "out:y:float32:2x2", "struct:{u8:1;f32:0.5;zeros:z:z:float32:4;bytes:0102}", "f32:10"},
      .inputs_file = folder.file("in.safetensors"),
      .outputs_file = folder.file("out.safetensors")};
  const Report report = run_ptx_command(command);
  INFO(describe(report));
  CHECK(report.findings.empty());
  const SafetensorsFile outputs(folder.file("out.safetensors"));
  REQUIRE(outputs.find("y") != nullptr);
  REQUIRE(outputs.find("z:z") != nullptr);
  CHECK(outputs.find("x") == nullptr);
  CHECK(outputs.find("y")->type.shape == std::vector<std::int64_t>{2, 2});
  float y[4];
  std::memcpy(y, outputs.find("y")->bytes.data(), 16);
  CHECK(y[0] == 10.5f);
  CHECK(y[3] == 40.5f);
  command.arguments[1] = "out:y:float32:3";
  CHECK(run_ptx_command(command).findings.at(0).kind == FindingKind::kOutOfBounds);
  command.arguments[1] = "in:x";
  CHECK(run_ptx_command(command).findings.at(0).kind == FindingKind::kReadOnlyWrite);
  command.arguments[1] = "inout:x";
  CHECK(run_ptx_command(command).findings.empty());
  command.arguments.pop_back();
  CHECK(run_ptx_command(command).findings.at(0).kind == FindingKind::kLaunch);
  for (const char* bad : {"in:nosuch", "i32:x", "i8:300", "out:y:float99:4", "out:y:float32:ax", "struct:{i32:1",
                          "bytes:0", "bytes:zz", "what", "tensormap:x:1", "null:1"}) {
    CAPTURE(bad);
    command.arguments = {bad};
    CHECK_THROWS_AS(run_ptx_command(command), Error);
  }
}

// Copies a box of 4 x 8 floats from one tensor map to another; no parameter is a plain pointer.
const char* const kMaps = R"(
.version 8.0
.target sm_90
.address_size 64
.visible .entry copy(.param .align 64 .b8 from[128], .param .align 64 .b8 to[128])
{
  .reg .b64 %rd<4>;
  .reg .b32 %r<4>;
  .reg .pred %p;
  .shared .align 128 .b8 tile[128];
  .shared .align 8 .b64 bar;
  mov.b64 %rd1, from;
  mov.b64 %rd2, to;
  cvta.param.u64 %rd1, %rd1;
  cvta.param.u64 %rd2, %rd2;
  mov.u32 %r1, tile;
  mov.u32 %r2, bar;
  mbarrier.init.shared::cta.b64 [%r2], 1;
  fence.proxy.async.shared::cta;
  mbarrier.arrive.expect_tx.shared::cta.b64 %rd3, [%r2], 128;
  mov.u32 %r3, 0;
  cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r3, %r3}], [%r2];
W:
  mbarrier.try_wait.parity.shared::cta.b64 %p, [%r2], 0;
  @!%p bra W;
  cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%rd2, {%r3, %r3}], [%r1];
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
  ret;
}
)";

TEST_CASE("tensor maps over tensors that no other argument names") {
  const Folder folder;
  std::ofstream(folder.file("m.ptx")) << kMaps;
  std::vector<float> x(32);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  write_safetensors(folder.file("in.safetensors"),
                    {{"x", stored_type(DType::kFloat32, {4, 8}), {reinterpret_cast<const char*>(x.data()), 128}}});
  PtxCommand command{.ptx_file = folder.file("m.ptx"),
                     .kernel = "copy",
                     .block = {1},
                     .inputs_file = folder.file("in.safetensors"),
                     .outputs_file = folder.file("out.safetensors")};
  for (const char* from : {"tensormap:x:4x8:none", "tensormap:in:x:4x8:none", "tensormap:inout:x:4x8:none"}) {
    for (const char* to : {"tensormap:out:a:b:float32:4x8:4x8:none", "tensormap:zeros:a:b:float32:4x8:4x8:none"}) {
      CAPTURE(from);
      command.arguments = {from, to};
      const Report report = run_ptx_command(command);
      INFO(describe(report));
      CHECK(report.findings.empty());
      const SafetensorsFile outputs(folder.file("out.safetensors"));
      REQUIRE(outputs.find("a:b") != nullptr);
      CHECK(std::memcmp(outputs.find("a:b")->bytes.data(), x.data(), 128) == 0);
      CHECK((outputs.find("x") != nullptr) == (std::string(from).find("inout") != std::string::npos));
    }
  }
  // A reduction is of the element type that the tensor has.
  std::string adding(kMaps);
  const std::string plain = "cp.async.bulk.tensor.2d.global.shared::cta.tile";
  adding.replace(adding.find(plain), plain.size(), "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile");
  std::ofstream(folder.file("add.ptx")) << adding;
  PtxCommand reduction = command;
  reduction.ptx_file = folder.file("add.ptx");
  reduction.arguments = {"tensormap:x:4x8:none", "tensormap:zeros:sums:float32:4x8:4x8:none"};
  const Report added = run_ptx_command(reduction);
  INFO(describe(added));
  CHECK(added.findings.empty());
  const SafetensorsFile sums(folder.file("out.safetensors"));
  REQUIRE(sums.find("sums") != nullptr);
  CHECK(std::memcmp(sums.find("sums")->bytes.data(), x.data(), 128) == 0);
  // An input is not written, and a name that is nowhere is an error.
  command.arguments = {"tensormap:x:4x8:none", "tensormap:x:4x8:none"};
  x[0] = 1;
  CHECK(run_ptx_command(command).findings.empty() == false);
  for (const char* bad : {"tensormap:y:4x8:none", "tensormap:in:y:4x8:none", "tensormap:out:y:4x8:none",
                          "tensormap:x:4:none", "tensormap:x:4x8:16", "tensormap:x"}) {
    CAPTURE(bad);
    command.arguments = {"tensormap:x:4x8:none", bad};
    CHECK_THROWS_AS(run_ptx_command(command), Error);
  }
}

TEST_CASE("dimensions") {
  CHECK(parse_dim3("4", "--grid") == Dim3{4, 1, 1});
  CHECK(parse_dim3("4,5,6", "--grid") == Dim3{4, 5, 6});
  for (const char* bad : {"", "a", "1,", "1,2,3,4", "-1"}) CHECK_THROWS_AS(parse_dim3(bad, "--grid"), Error);
}

TEST_CASE("what a kernel must move, and of how many blocks that is") {
  const Folder folder;
  std::ofstream(folder.file("k.ptx")) << R"(
.version 8.0
.target sm_80
.address_size 64
.visible .entry add(.param .u64 x, .param .u64 y, .param .u64 sum)
{
  .reg .b64 %rd<5>;
  .reg .b32 %r<6>;
  ld.param.u64 %rd1, [x];
  ld.param.u64 %rd2, [y];
  ld.param.u64 %rd3, [sum];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ctaid.x;
  mad.lo.u32 %r1, %r2, 32, %r1;
  mul.wide.u32 %rd4, %r1, 4;
  add.u64 %rd1, %rd1, %rd4;
  add.u64 %rd2, %rd2, %rd4;
  ld.global.u32 %r3, [%rd1];
  ld.global.u32 %r3, [%rd1];
  st.global.u32 [%rd2], %r3;
  ld.global.u32 %r4, [%rd2];
  red.global.add.u32 [%rd3], %r4;
  ret;
}
)";
  const std::vector<std::int32_t> x(256, 1);
  write_safetensors(folder.file("in.safetensors"),
                    {{"x", stored_type(DType::kInt32, {256}), {reinterpret_cast<const char*>(x.data()), 1024}}});
  PtxCommand command{.ptx_file = folder.file("k.ptx"),
                     .kernel = "add",
                     .grid = {8},
                     .block = {32},
                     .arguments = {"in:x", "out:y:int32:256", "zeros:sum:int32:1"},
                     .inputs_file = folder.file("in.safetensors")};
  // x once, y once though it is read again, and the sum.
  PtxReport report = run_ptx_command(command);
  CHECK(report.findings.empty());
  CHECK(report.least_bytes == 1024 + 1024 + 4);
  CHECK(report.grid_blocks == 8);
  CHECK(!report.sampled);
  command.options.sample_blocks = 2;
  report = run_ptx_command(command);
  CHECK(report.sampled);
  CHECK(report.grid_blocks == 8);
  CHECK(report.counters.blocks == 2);
  CHECK(report.least_bytes == 2 * 256 + 4);
}
