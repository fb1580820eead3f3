#include "emulator/harness.h"

#include <fmt/format.h>

#include <algorithm>

namespace fusec::emulator::testing {

std::string kernel_text(const std::string& body, const std::string& globals) {
  return ".version 8.0\n.target sm_90a\n.address_size 64\n" + globals +
         "\n.visible .entry k(.param .u64 p_in, .param .u64 p_out)\n{\n"
         ".reg .pred %p<32>;\n.reg .b16 %h<32>;\n.reg .b32 %r<64>;\n.reg .b32 %f<64>;\n.reg .b64 %rd<32>;\n"
         ".reg .b64 %rin;\n.reg .b64 %rout;\n.reg .b32 %t;\n"
         "ld.param.u64 %rin, [p_in];\nld.param.u64 %rout, [p_out];\nmov.u32 %t, %tid.x;\n" +
         body + "\nret;\n}\n";
}

bool RunResult::has(FindingKind kind) const {
  return std::any_of(report.findings.begin(), report.findings.end(),
                     [kind](const Finding& finding) { return finding.kind == kind; });
}

RunResult run_body(const std::string& body, const std::vector<std::uint32_t>& in, std::size_t out_words,
                   std::uint32_t threads, std::uint32_t blocks, const std::string& globals, Options options,
                   std::uint32_t dynamic_shared) {
  const Module module(kernel_text(body, globals), "test.ptx");
  std::vector<std::uint32_t> input = in;
  RunResult result;
  result.out.assign(out_words, 0xdeadbeefu);
  Memory memory;
  const auto in_id = memory.add({.name = "in", .bytes = std::as_writable_bytes(std::span(input)), .writable = false});
  const auto out_id =
      memory.add({.name = "out", .bytes = std::as_writable_bytes(std::span(result.out)), .initialized = false});
  const Launch launch{.kernel = "k",
                      .grid = {blocks},
                      .block = {threads},
                      .dynamic_shared_bytes = dynamic_shared,
                      .arguments = {pointer_argument(memory, in_id), pointer_argument(memory, out_id)}};
  result.report = run(module, launch, memory, options);
  return result;
}

std::uint64_t evaluate(const std::string& instruction, const std::string& result_type,
                       const std::vector<std::pair<std::string, std::uint64_t>>& operands) {
  std::string body;
  std::vector<std::uint32_t> in;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const auto& [type, bits] = operands[i];
    in.push_back(static_cast<std::uint32_t>(bits));
    in.push_back(static_cast<std::uint32_t>(bits >> 32));
    if (type == "pred") {
      body += fmt::format(".reg .pred %a{};\nld.global.u32 %r1, [%rin+{}];\nsetp.ne.u32 %a{}, %r1, 0;\n", i, 8 * i, i);
    } else {
      body += fmt::format(".reg .{} %a{};\nld.global.{} %a{}, [%rin+{}];\n", type, i, type, i, 8 * i);
    }
  }
  if (result_type == "pred") {
    body += fmt::format(".reg .pred %d;\n{};\nselp.b64 %rd1, 1, 0, %d;\nst.global.b64 [%rout], %rd1;\n", instruction);
  } else {
    body +=
        fmt::format("mov.b64 %rd1, 0;\nst.global.b64 [%rout], %rd1;\n.reg .{} %d;\n{};\nst.global.{} [%rout], %d;\n",
                    result_type, instruction, result_type);
  }
  const RunResult result = run_body(body, in, 2, 1);
  if (!result.report.findings.empty()) return 0xbadbadbadbadbadu;
  return result.out[0] | (static_cast<std::uint64_t>(result.out[1]) << 32);
}

}  // namespace fusec::emulator::testing
