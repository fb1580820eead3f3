// `fusec-run --ptx=FILE --kernel=NAME --arg=...`: runs any kernel of any PTX file on the emulator, with buffers read
// from and written to safetensors files. The program parses the command line; this file executes it.
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
  Dim3 cluster{0, 0, 0};  // zeros: the kernel's required cluster, or none
  std::uint32_t dynamic_shared_bytes = 0;
  // One per kernel parameter:
  //   in:NAME  inout:NAME                    a buffer with that tensor of the inputs file
  //   out:NAME:DTYPE:D0xD1...                a new buffer, uninitialized;  zeros:NAME:DTYPE:D0xD1... filled with zeros
  //   i8 u8 i16 u16 i32 u32 i64 u64 f16 bf16 f32 f64:VALUE
  //   null   bytes:HEX   struct:{ARG;ARG;...}   (C layout; arguments nest)
  //   tensormap:NAME:BOX:SWIZZLE             a tensor map over that buffer; BOX is B0xB1..., SWIZZLE none 32 64 128.
  //     Without another argument for that buffer, NAME is a tensor of the inputs file, or an in:, inout:, out: or
  //     zeros: argument: tensormap:out:y:float32:64x64:8x64:128
  // Arguments with the same NAME share one buffer.
  std::vector<std::string> arguments;
  std::string inputs_file, outputs_file;  // may be empty
  Options options;
};

struct PtxReport : Report {
  // Bytes that the kernel reads from in and inout buffers and writes to out, zeros and inout buffers, each byte once.
  std::uint64_t least_bytes = 0;
};

// Runs the kernel and writes every out, zeros and inout buffer to the outputs file. The caller prints the report and
// chooses the exit status. Throws Error: kUsage for a malformed argument, kInput for the files.
PtxReport run_ptx_command(const PtxCommand& command);

// "X", "X,Y" or "X,Y,Z". Throws Error (kUsage) that names `option`.
Dim3 parse_dim3(std::string_view text, std::string_view option);

}  // namespace fusec::emulator
