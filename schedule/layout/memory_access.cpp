#include "schedule/layout/memory_access.h"

#include <algorithm>
#include <array>
#include <vector>

#include "schedule/target/target.h"

namespace fusec {
namespace {

constexpr int kBanks = 32, kBankBytes = 4;

// Rounds towards minus infinity: an address may be before the beginning of its tensor.
std::int64_t sector_of(std::int64_t address) {
  return address >= 0 ? address / kSectorBytes : -1 - (-1 - address) / kSectorBytes;
}

}  // namespace

std::int64_t count_sectors(std::span<const std::int64_t> addresses) {
  std::vector<std::int64_t> sectors(addresses.size());
  std::ranges::transform(addresses, sectors.begin(), sector_of);
  std::ranges::sort(sectors);
  return std::unique(sectors.begin(), sectors.end()) - sectors.begin();
}

double mean_sectors_of_run(std::int64_t bytes, int alignment) {
  const std::int64_t last = std::max<std::int64_t>(1, bytes) - 1;
  std::int64_t touched = 0;
  for (int begin = 0; begin < kSectorBytes; begin += alignment) touched += (begin + last) / kSectorBytes + 1;
  return static_cast<double>(touched) * alignment / kSectorBytes;
}

int count_bank_conflicts(std::span<const std::int64_t> addresses, int bytes) {
  const std::int64_t unit = std::max(kBankBytes, bytes);
  const auto lanes = static_cast<std::size_t>(kBanks * kBankBytes / unit);  // served at once; also units of all banks
  int conflicts = 0;
  for (std::size_t first = 0; first < addresses.size(); first += lanes) {
    std::array<std::array<std::int64_t, kBanks>, kBanks> accessed;  // distinct units of each bank
    std::array<int, kBanks> count{};
    int cycles = 1;
    for (std::size_t i = first; i < std::min(first + lanes, addresses.size()); ++i) {
      if (addresses[i] == kIdleLane) continue;
      const std::int64_t at = addresses[i] / unit;
      const std::size_t bank = static_cast<std::size_t>(at) % lanes;
      const auto end = accessed[bank].begin() + count[bank];
      if (std::find(accessed[bank].begin(), end, at) != end) continue;
      *end = at;
      cycles = std::max(cycles, ++count[bank]);
    }
    conflicts += cycles - 1;
  }
  return conflicts;
}

}  // namespace fusec
