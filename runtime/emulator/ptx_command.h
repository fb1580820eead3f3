// `fusec-run --ptx=FILE --kernel=NAME --arg=...`: any kernel of any PTX file on the emulator, its buffers filled from
// and written to safetensors files. The command line itself is parsed by the program; this carries it out.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/emulator/emulator.h"

namespace fusec::emulator {

struct PtxCommand {
  std::string ptx_file;
  std::string kernel;
  Dim3 grid, block;
  Dim3 cluster{0, 0, 0};  // zeros: as the kernel says
  std::uint32_t dynamic_shared_bytes = 0;
  // One a kernel parameter:
  //   in:NAME  inout:NAME                    a buffer that holds that tensor of the inputs file
  //   out:NAME:DTYPE:D0xD1...                a fresh buffer, its bytes uninitialized;  zeros:... the same of zeros
  //   i8 u8 i16 u16 i32 u32 i64 u64 f16 bf16 f32 f64:VALUE
  //   null   bytes:HEX   struct:{ARG;ARG;...}   (C layout; arguments nest)
  //   tensormap:NAME:BOX:SWIZZLE             a tensor map over that buffer; BOX is B0xB1..., SWIZZLE none 32 64 128.
  //     Where no other argument is that buffer, NAME is a tensor of the inputs file, or an in:, inout:, out: or zeros:
  //     as above: tensormap:out:y:float32:64x64:8x64:128
  // The same NAME twice is one buffer.
  std::vector<std::string> arguments;
  std::string inputs_file, outputs_file;  // may be empty
  Options options;
};

struct PtxReport : Report {
  // The bytes that the kernel reads of in and inout buffers and writes of out, zeros and inout buffers, each once.
  std::uint64_t least_bytes = 0;
};

// Runs it and writes every out, zeros and inout buffer to the outputs file. The caller prints the report and decides on
// the exit status. Throws Error: kUsage for a malformed argument, kInput for the files.
PtxReport run_ptx_command(const PtxCommand& command);

// "X", "X,Y" or "X,Y,Z". Throws Error (kUsage) that names `option`.
Dim3 parse_dim3(std::string_view text, std::string_view option);

}  // namespace fusec::emulator
