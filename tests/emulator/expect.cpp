#include "emulator/expect.h"

#include <doctest/doctest.h>

#include <numeric>

namespace fusec::emulator::testing {

void clean(const RunResult& result) {
  INFO(describe(result.report));
  CHECK(result.report.findings.empty());
}

void finds(FindingKind kind, const RunResult& result, const std::string& text) {
  INFO(describe(result.report));
  REQUIRE(result.has(kind));
  bool said = false;
  for (const Finding& finding : result.report.findings) {
    if (finding.kind != kind) continue;
    said = said || describe(finding).find(text) != std::string::npos;
    CHECK((kind == FindingKind::kLaunch || finding.ptx_line > 0));
    CHECK(finding.kernel == "k");
  }
  CHECK(said);
}

std::vector<std::uint32_t> counting(std::size_t count) {
  std::vector<std::uint32_t> values(count);
  std::iota(values.begin(), values.end(), 0u);
  return values;
}

}  // namespace fusec::emulator::testing
