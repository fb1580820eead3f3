// Parts of kernels of one warp that copy 128 bytes in bulk: %r1 the shared words of s, %r3 the thread's own, %r2 the
// mbarrier, %rd2 the thread's word of `out`, %p1 in lane 0 only.
#pragma once

#include <string>

namespace fusec::emulator::testing::bulk_parts {

// The mbarrier is initialized.
inline const std::string kHead = R"(
  .shared .align 128 .b8 s[512];
  .shared .align 8 .b64 bar;
  mov.u32 %r1, s;
  mov.u32 %r2, bar;
  shl.b32 %r3, %t, 2;
  add.u32 %r3, %r3, %r1;
  mul.wide.u32 %rd2, %t, 4;
  add.u64 %rd2, %rd2, %rout;
  setp.eq.u32 %p1, %t, 0;
  @%p1 mbarrier.init.shared::cta.b64 [%r2], 1;
)";
inline const std::string kLoad =
    "@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 128;\n"
    "@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rin], 128, [%r2];\n";
inline const std::string kWait = "W: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2], 0;\n@!%p2 bra W;\n";

}  // namespace fusec::emulator::testing::bulk_parts
