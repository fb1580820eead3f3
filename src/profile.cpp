#include "profile.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace fusec {

std::string profile_text(const std::vector<KernelProfile>& profiles) {
  std::string text = fmt::format("{:<48} {:>14} {:>14} {:>14} {:>10} {:>16}\n", "kernel", "least bytes", "distinct",
                                 "requested", "conflicts", "warp instructions");
  for (const KernelProfile& p : profiles) {
    const emulator::Counters& c = p.report.counters;
    std::uint64_t instructions = 0;
    for (const std::uint64_t count : c.warp_instructions) instructions += count;
    text += fmt::format("{:<48} {:>14} {:>14} {:>14} {:>10} {:>16}\n", p.kernel, p.least_bytes, c.distinct_bytes(),
                        c.requested_bytes(), c.shared_bank_conflicts, instructions);
  }
  return text;
}

std::string profile_json(const std::vector<KernelProfile>& profiles) {
  using Json = nlohmann::ordered_json;
  Json out;
  out["fusec_profile"] = 1;
  out["kernels"] = Json::array();
  for (const KernelProfile& p : profiles) {
    const emulator::Counters& c = p.report.counters;
    Json instructions;
    for (std::size_t i = 0; i < emulator::kInstructionClasses; ++i)
      instructions[std::string(name(static_cast<emulator::InstructionClass>(i)))] = c.warp_instructions[i];
    out["kernels"].push_back({{"name", p.kernel},
                              {"requested_bytes", c.requested_bytes()},
                              {"distinct_bytes", c.distinct_bytes()},
                              {"least_bytes", p.least_bytes},
                              {"sectors", c.sectors_read + c.sectors_written},
                              {"bank_conflicts", c.shared_bank_conflicts},
                              {"instructions", instructions},
                              {"tensor_multiply_adds", c.tensor_multiply_adds},
                              {"barriers", c.barriers},
                              {"findings", p.report.findings.size()}});
  }
  return out.dump(2) + "\n";
}

}  // namespace fusec
