#include "analysis/target.h"

#include <algorithm>
#include <cctype>

#include "ir/error.h"

namespace fusec {
namespace {

// Figures of NVIDIA's data sheets and of the CUDA C++ Programming Guide's table of compute capabilities.
Target make(std::string arch, int capability, std::string chip, int multiprocessors, int shared_kib, double bandwidth,
            double float32_rate, double float16_rate, double float8_rate, std::int64_t l2_mib, std::string source) {
  Target t;
  t.architecture_specific = arch.back() == 'a';
  t.arch = std::move(arch);
  t.compute_capability = capability;
  t.chip = std::move(chip);
  t.multiprocessors = multiprocessors;
  t.shared_bytes_per_block = shared_kib * 1024;
  t.bandwidth = bandwidth;
  t.float32_rate = float32_rate;
  t.float16_rate = float16_rate;
  t.float8_rate = float8_rate;
  t.l2_bytes = l2_mib << 20;
  t.max_threads_per_multiprocessor = capability == 86 || capability == 89 || capability >= 120 ? 1536 : 2048;
  t.source = std::move(source);
  return t;
}

}  // namespace

const std::vector<Target>& known_targets() {
  static const std::vector<Target> targets = {
      make("sm_80", 80, "A100 SXM 40GB", 108, 163, 1.555e12, 19.5e12, 312e12, 624e12, 40, "NVIDIA A100 data sheet"),
      make("sm_86", 86, "A10", 72, 99, 0.6e12, 31.2e12, 125e12, 250e12, 6, "NVIDIA A10 data sheet"),
      make("sm_89", 89, "L4", 58, 99, 0.3e12, 30.3e12, 121e12, 242e12, 48, "NVIDIA L4 data sheet"),
      make("sm_90", 90, "H100 SXM", 132, 227, 3.35e12, 67e12, 989e12, 1979e12, 50, "NVIDIA H100 data sheet"),
      make("sm_90a", 90, "H100 SXM", 132, 227, 3.35e12, 67e12, 989e12, 1979e12, 50, "NVIDIA H100 data sheet"),
      make("sm_100", 100, "B200", 148, 227, 8e12, 75e12, 2250e12, 4500e12, 126, "NVIDIA DGX B200 data sheet"),
      make("sm_100a", 100, "B200", 148, 227, 8e12, 75e12, 2250e12, 4500e12, 126, "NVIDIA DGX B200 data sheet"),
      make("sm_120", 120, "RTX PRO 6000 Blackwell", 188, 99, 1.79e12, 125e12, 500e12, 1000e12, 128,
           "NVIDIA RTX PRO 6000 data sheet"),
  };
  return targets;
}

Target target_for(std::string_view arch) {
  const std::vector<Target>& known = known_targets();
  for (const Target& t : known)
    if (t.arch == arch) return t;
  // A newer or rarer chip of a known generation: the figures of the nearest older one.
  std::string digits(arch.starts_with("sm_") ? arch.substr(3) : std::string_view());
  const bool specific = !digits.empty() && (digits.back() == 'a' || digits.back() == 'f');
  if (specific) digits.pop_back();
  const bool numeric = !digits.empty() && digits.size() <= 3 &&
                       std::all_of(digits.begin(), digits.end(), [](unsigned char c) { return std::isdigit(c); });
  const int capability = numeric ? std::stoi(digits) : 0;
  static constexpr int kOthers[] = {87, 88, 103, 110, 121};
  const bool exists =
      std::find(std::begin(kOthers), std::end(kOthers), capability) != std::end(kOthers) ||
      std::any_of(known.begin(), known.end(), [&](const Target& t) { return t.compute_capability == capability; });
  if (!exists || (specific && capability < 90)) {
    std::string names;
    for (const Target& t : known) names += (names.empty() ? "" : ", ") + t.arch;
    throw Error(ErrorKind::kUsage,
                {.what = "unknown architecture", .found = "\"" + std::string(arch) + "\"", .expected = names});
  }
  const Target* nearest = &known.front();
  for (const Target& t : known)
    if (t.compute_capability <= capability && t.compute_capability >= nearest->compute_capability) nearest = &t;
  Target t = *nearest;
  t.arch = arch;
  t.compute_capability = capability;
  t.architecture_specific = specific;
  return t;
}

}  // namespace fusec
