#include "schedule/target/target.h"

#include <algorithm>
#include <cctype>

#include "ir/error.h"
#include "ir/spelling.h"

namespace fusec {
namespace {

struct Figures {
  std::string_view name, arch, chip;
  int capability, multiprocessors, shared_kib, l2_mib;
  double bandwidth, float32_rate, float64_rate, float16_rate, float8_rate, latency_seconds;
  std::string_view source;
};

// Rates are dense, which is half of the sparse rates that data sheets print from Ada on. Latencies are cycles measured
// for A100 (466), RTX 4090 (542) and H100 (479) by Luo et al., arXiv:2402.13499, over boost clocks of 1.41, 2.04 and
// 1.755 GHz; A10 uses A100's cycles at 1.695 GHz, Blackwell uses H100's latency.
constexpr Figures kChipFigures[] = {
    {"sm_80", "sm_80", "A100 SXM 40GB", 80, 108, 163, 40, 1.555e12, 19.5e12, 9.7e12, 312e12, 624e12, 331e-9,
     "NVIDIA A100 data sheet and architecture white paper"},
    {"sm_86", "sm_86", "A10", 86, 72, 99, 6, 0.6e12, 31.2e12, 0.4875e12, 125e12, 250e12, 275e-9,
     "NVIDIA A10 data sheet; float64 a 64th of float32 (GA102 white paper)"},
    {"sm_89", "sm_89", "L4", 89, 58, 99, 48, 0.3e12, 30.3e12, 0.473e12, 121e12, 242e12, 266e-9,
     "NVIDIA L4 data sheet; float64 a 64th of float32 (Ada white paper)"},
    {"sm_90", "sm_90", "H100 SXM", 90, 132, 227, 50, 3.35e12, 67e12, 34e12, 989e12, 1979e12, 273e-9,
     "NVIDIA H100 data sheet and architecture white paper"},
    {"sm_90a", "sm_90a", "H100 SXM", 90, 132, 227, 50, 3.35e12, 67e12, 34e12, 989e12, 1979e12, 273e-9,
     "NVIDIA H100 data sheet and architecture white paper"},
    {"h200", "sm_90a", "H200 SXM", 90, 132, 227, 50, 4.8e12, 67e12, 34e12, 989e12, 1979e12, 273e-9,
     "NVIDIA H200 data sheet; sizes as H100"},
    {"sm_100", "sm_100", "B200", 100, 148, 227, 126, 7.7e12, 75e12, 37e12, 2250e12, 4500e12, 273e-9,
     "NVIDIA HGX B200 data sheet; multiprocessors and L2 as the driver tells them"},
    {"sm_100a", "sm_100a", "B200", 100, 148, 227, 126, 7.7e12, 75e12, 37e12, 2250e12, 4500e12, 273e-9,
     "NVIDIA HGX B200 data sheet; multiprocessors and L2 as the driver tells them"},
    {"sm_120", "sm_120", "RTX PRO 6000 Blackwell", 120, 188, 99, 128, 1.79e12, 125e12, 1.95e12, 500e12, 1000e12, 273e-9,
     "NVIDIA RTX PRO 6000 data sheet; float64 a 64th of float32"},
};

// mma.sync's share of the dense rate on H100, averaged over shapes and types; 1 on earlier chips (Luo et al.).
constexpr double kHopperMmaSyncRate = 0.63;

// From the tables of the CUDA C++ Programming Guide: 2048 threads per multiprocessor (1536 on chips not for data
// centres); 16 special functions a clock for 128 float32 multiply-adds (64 on 8.0).
Target make(const Figures& f) {
  Target t;
  t.name = f.name;
  t.arch = f.arch;
  t.compute_capability = f.capability;
  t.architecture_specific = f.arch.back() == 'a';
  t.chip = f.chip;
  t.multiprocessors = f.multiprocessors;
  t.shared_bytes_per_block = f.shared_kib * 1024;
  t.max_threads_per_multiprocessor = f.capability == 86 || f.capability == 89 || f.capability >= 120 ? 1536 : 2048;
  t.l2_bytes = std::int64_t{f.l2_mib} << 20;
  t.bandwidth = f.bandwidth;
  t.float32_rate = f.float32_rate;
  t.float64_rate = f.float64_rate;
  t.special_rate = f.float32_rate / (f.capability == 80 ? 8 : 16);
  t.float16_rate = f.float16_rate;
  t.float8_rate = f.float8_rate;
  if (f.capability == 90) t.mma_sync_rate = kHopperMmaSyncRate;
  t.latency_seconds = f.latency_seconds;
  t.source = f.source;
  return t;
}

}  // namespace

const std::vector<Target>& known_targets() {
  static const std::vector<Target> targets = [] {
    std::vector<Target> list;
    for (const Figures& f : kChipFigures) list.push_back(make(f));
    return list;
  }();
  return targets;
}

Target target_for(std::string_view arch) {
  const std::vector<Target>& known = known_targets();
  for (const Target& t : known)
    if (t.name == arch) return t;
  // A newer or less common chip of a known generation uses the figures of the nearest older one.
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
    std::vector<std::string> list;
    for (const Target& t : known) list.push_back(t.name);
    const std::vector<std::string_view> names(list.begin(), list.end());
    const bool too_old = numeric && capability > 0 && capability < known.front().compute_capability;
    throw Error(ErrorKind::kUsage, {.what = "unknown architecture",
                                    .found = in_quotes(arch),
                                    .expected = listed(list),
                                    .hint = too_old ? known.front().arch + " is the least that fusec compiles for"
                                                    : did_you_mean(arch, names)});
  }
  const Target* nearest = &known.front();
  for (const Target& t : known)
    if (t.compute_capability <= capability && t.compute_capability >= nearest->compute_capability && t.name == t.arch)
      nearest = &t;
  Target t = *nearest;
  t.name = arch;
  t.arch = arch;
  t.compute_capability = capability;
  t.architecture_specific = specific;
  return t;
}

}  // namespace fusec
