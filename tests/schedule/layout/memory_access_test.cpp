// Counts of sectors and bank conflicts against their definitions, byte by byte.
#include "schedule/layout/memory_access.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <vector>

namespace fusec {
namespace {

int conflicts_by_definition(const std::vector<std::int64_t>& addresses, int bytes) {
  const std::size_t lanes = bytes <= 4 ? 32 : 128 / static_cast<std::size_t>(bytes);
  int sum = 0;
  for (std::size_t first = 0; first < addresses.size(); first += lanes) {
    std::map<std::int64_t, std::set<std::int64_t>> words;  // of each bank
    for (std::size_t i = first; i < std::min(addresses.size(), first + lanes); ++i)
      for (int b = 0; b < bytes && addresses[i] != kIdleLane; ++b) {
        const std::int64_t word = (addresses[i] + b) / 4;
        words[word % 32].insert(word);
      }
    int most = 1;
    for (const auto& [bank, accessed] : words) most = std::max(most, static_cast<int>(accessed.size()));
    sum += most - 1;
  }
  return sum;
}

TEST_CASE("bank conflicts: as by definition, for accesses of each width, with idle lanes") {
  std::mt19937 random(1);
  for (int round = 0; round < 20000; ++round) {
    const int bytes = 1 << random() % 5;
    const unsigned range = 8u << random() % 6;
    std::vector<std::int64_t> addresses(1 + random() % 64);
    for (std::int64_t& a : addresses)
      a = random() % 8 == 0 ? kIdleLane : static_cast<std::int64_t>(random() % range) * bytes;
    REQUIRE(count_bank_conflicts(addresses, bytes) == conflicts_by_definition(addresses, bytes));
  }
}

TEST_CASE("bank conflicts: of a stride of words, its greatest common divisor with the banks less one") {
  for (int stride = 1; stride < 130; ++stride) {
    std::vector<std::int64_t> addresses;
    for (int lane = 0; lane < 32; ++lane) addresses.push_back(4 * lane * stride);
    CHECK(count_bank_conflicts(addresses, 4) == std::gcd(stride, 32) - 1);
  }
}

TEST_CASE("sectors: as by definition, addresses below zero included") {
  std::mt19937 random(2);
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::int64_t> addresses(random() % 40);
    std::set<std::int64_t> sectors;
    for (std::int64_t& a : addresses) {
      a = static_cast<std::int64_t>(random() % 2000) - 500;
      sectors.insert((a + 3200) / 32);
    }
    REQUIRE(count_sectors(addresses) == std::ssize(sectors));
  }
}

TEST_CASE("sectors of a run: the mean over its alignments") {
  for (int alignment = 1; alignment <= 32; alignment *= 2)
    for (int bytes = 0; bytes < 200; ++bytes) {
      double touched = 0;
      for (int begin = 0; begin < 32; begin += alignment) {
        std::vector<std::int64_t> run(static_cast<std::size_t>(std::max(1, bytes)));
        std::iota(run.begin(), run.end(), begin);
        touched += static_cast<double>(count_sectors(run));
      }
      CHECK(mean_sectors_of_run(bytes, alignment) == touched / (32 / alignment));
    }
}

}  // namespace
}  // namespace fusec
