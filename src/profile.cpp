#include "profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "ir/error.h"
#include "ir/mapped_file.h"
#include "ir/spelling.h"

namespace fusec {

std::string profile_text(const std::vector<KernelProfile>& profiles) {
  std::string text = fmt::format("{:<48} {:>14} {:>14} {:>14} {:>10} {:>16} {:>9} {:>6} {:>7}  {}\n", "kernel",
                                 "least bytes", "distinct", "requested", "conflicts", "warp instructions", "registers",
                                 "spills", "shared", "occupancy");
  for (const KernelProfile& p : profiles) {
    const emulator::Counters& c = p.report.counters;
    std::uint64_t instructions = 0;
    for (const std::uint64_t count : c.warp_instructions) instructions += count;
    text += fmt::format("{:<48} {:>14} {:>14} {:>14} {:>10} {:>16}", p.kernel, p.least_bytes, c.distinct_bytes(),
                        c.requested_bytes(), c.shared_bank_conflicts, instructions);
    if (p.cost)
      text += fmt::format(" {:>9} {:>6} {:>7}  {:.0f}% ({} blocks, by {})", p.cost->registers, p.cost->spill_bytes,
                          p.cost->shared_bytes, 100 * p.cost->occupancy.fraction, p.cost->occupancy.blocks,
                          name(p.cost->occupancy.limit));
    if (p.report.sampled) text += fmt::format("  (of {} of {} blocks)", c.blocks, p.report.grid_blocks);
    text += "\n";
  }
  return text;
}

namespace {

nlohmann::ordered_json resources_json(const KernelCost& cost) {
  return {{"registers", cost.registers},
          {"stack_bytes", cost.stack_bytes},
          {"spill_bytes", cost.spill_bytes},
          {"shared_bytes", cost.shared_bytes},
          {"blocks_per_multiprocessor", cost.occupancy.blocks},
          {"occupancy", cost.occupancy.fraction},
          {"limited_by", std::string(name(cost.occupancy.limit))}};
}

}  // namespace

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
                              {"requested_bytes_of_small", c.small_requested_bytes()},
                              {"distinct_bytes_of_small", c.small_distinct_bytes()},
                              {"least_bytes", p.least_bytes},
                              {"sectors", c.sectors_read + c.sectors_written},
                              {"bank_conflicts", c.shared_bank_conflicts},
                              {"instructions", instructions},
                              {"tensor_multiply_adds", c.tensor_multiply_adds},
                              {"barriers", c.barriers},
                              {"findings", p.report.findings.size()}});
    if (p.report.sampled) out["kernels"].back()["sample"] = {{"blocks", c.blocks}, {"of", p.report.grid_blocks}};
    if (p.cost) out["kernels"].back()["resources"] = resources_json(*p.cost);
  }
  return out.dump(2) + "\n";
}

std::string read_profile(const std::string& path) {
  const nlohmann::json json = nlohmann::json::parse(read_text_file(path), nullptr, false);
  const auto version = json.is_object() ? json.find("fusec_profile") : json.end();
  if (version == json.end() || *version != 1)
    throw Error(ErrorKind::kInput, Error::Parts{.file = path,
                                                .what = "the file is no profile",
                                                .expected = "what `fusec-run --profile=FILE --json` writes"});
  return json.dump();
}

void require_profile_of(const std::string& profile, const std::string& path, const std::string& model,
                        const std::vector<std::string>& kernels) {
  std::vector<std::string> lacking;
  const nlohmann::json json = nlohmann::json::parse(profile);
  for (const nlohmann::json& kernel : json.value("kernels", nlohmann::json::array())) {
    const std::string name = kernel.is_object() && kernel.contains("name") && kernel["name"].is_string()
                                 ? kernel["name"].get<std::string>()
                                 : "";
    if (std::ranges::find(kernels, name) == kernels.end()) lacking.push_back(in_quotes(name));
  }
  if (!lacking.empty())
    throw Error(ErrorKind::kInput,
                Error::Parts{.file = path,
                             .what = "the profile has kernels that model " + in_quotes(model) + " lacks",
                             .found = listed(lacking, 4),
                             .expected = "a profile of this model",
                             .hint = "fusec-run makes it with the same model and options"});
}

}  // namespace fusec
