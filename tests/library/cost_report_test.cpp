// The cost report through the library: there where it is asked for, of the target that is asked for.
#include <doctest/doctest.h>

#include "fusec/fusec.h"

using namespace fusec;

namespace {

Model gated_unit() {
  ModelBuilder builder("unit");
  builder.symbol("tokens", {.max = 4096, .hint = 16});
  const auto gate = builder.input("gate", "float16", {"tokens", 4096});
  const auto up = builder.input("up", "float16", {"tokens", 4096});
  builder.output(builder.op("mul", {builder.op("silu", {gate}, {}, "act"), up}, {}, "h"));
  return builder.build();
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a compilation has a cost report where one is asked for") {
  CHECK(compile(gated_unit()).report.empty());
  const std::string at_hint = compile(gated_unit(), {.report = true}).report;
  CHECK(has(at_hint, "\"fusec_report\": 1"));
  CHECK(has(at_hint, "\"value\": 16"));
  // silu and a product: four operations an element.
  CHECK(has(at_hint, "\"flops\": " + std::to_string(4 * 16 * 4096)));
  const std::string wide = compile(gated_unit(), {.symbols = {{"tokens", 4096}}, .report = true}).report;
  CHECK(has(wide, "\"flops\": " + std::to_string(4 * 4096 * 4096)));
  CHECK(has(wide, "\"roofline\": \"memory\""));
}

TEST_CASE("a target is named, or a file that must be there") {
  const std::string h200 = compile(gated_unit(), {.target = "h200", .report = true}).report;
  CHECK(has(h200, "\"arch\": \"sm_90a\""));
  CHECK(has(h200, "\"chip\": \"H200 SXM\""));
  CHECK_THROWS_AS(compile(gated_unit(), {.target = "no_such_file.json"}), Error);
  CHECK_THROWS_AS(compile(gated_unit(), {.arch = "sm_89", .target = "h200"}), Error);
}
