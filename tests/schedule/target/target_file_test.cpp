#include "schedule/target/target_file.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "ir/error.h"

using namespace fusec;

namespace {

std::string error_of(std::string_view text) {
  try {
    read_target(text, "t.json");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kInput);
    CHECK(error.parts().file == "t.json");
    return error.parts().pointer + ": " + error.what();
  }
  return "";
}

bool says(const std::string& message, const std::string& pointer, const std::string& what) {
  INFO(message);
  return message.starts_with(pointer + ":") && message.find(what) != std::string::npos;
}

}  // namespace

TEST_CASE("a target says what is otherwise than on the known target of its architecture") {
  const Target t = read_target(
      R"({"fusec_target": 1, "arch": "sm_90a", "chip": "H20", "multiprocessors": 78, "bandwidth": 4e12,
          "float16_rate": 148000000000000, "launch_seconds": 0, "source": "ours"})",
      "t.json");
  const Target h100 = target_for("sm_90a");
  CHECK(t.arch == "sm_90a");
  CHECK(t.compute_capability == 90);
  CHECK(t.architecture_specific);
  CHECK(t.chip == "H20");
  CHECK(t.multiprocessors == 78);
  CHECK(t.bandwidth == 4e12);
  CHECK(t.float16_rate == 148e12);
  CHECK(t.launch_seconds == 0);
  CHECK(t.source == "ours");
  CHECK(t.float32_rate == h100.float32_rate);
  CHECK(t.shared_bytes_per_block == h100.shared_bytes_per_block);
  CHECK(read_target(R"({"arch": "sm_89", "fusec_target": 1})", "own.json").source == "own.json");
}

TEST_CASE("what is wrong in a target file is named with its place") {
  CHECK(says(error_of("[]"), "", "an object"));
  CHECK(says(error_of("{"), "", ""));
  CHECK(says(error_of(R"({"arch": "sm_80"})"), "", "fusec_target"));
  CHECK(says(error_of(R"({"fusec_target": 2, "arch": "sm_80"})"), "/fusec_target", "version"));
  CHECK(says(error_of(R"({"fusec_target": 1})"), "", "\"arch\""));
  CHECK(says(error_of(R"({"fusec_target": 1, "arch": 80})"), "/arch", "80"));
  CHECK(says(error_of(R"({"fusec_target": 1, "arch": "sm_70"})"), "/arch", "unknown architecture"));
  CHECK(says(error_of(R"({"fusec_target": 1, "arch": "h200"})"), "/arch", "\"sm_90a\""));
  CHECK(says(error_of(R"({"fusec_target": 1, "arch": "sm_80", "bandwith": 1e12})"), "/bandwith",
             "did you mean \"bandwidth\""));
  CHECK(says(error_of(R"({"fusec_target": 1, "arch": "sm_80", "bandwidth": "fast"})"), "/bandwidth", "a number"));
  CHECK(says(error_of(R"({"fusec_target": 1, "arch": "sm_80", "bandwidth": -1})"), "/bandwidth", "out of range"));
  CHECK(says(error_of(R"({"fusec_target": 1, "arch": "sm_80", "bandwidth": 1e999})"), "/bandwidth", ""));
  CHECK(says(error_of(R"({"fusec_target": 1, "arch": "sm_80", "multiprocessors": 0})"), "/multiprocessors", "from 1"));
  CHECK(says(error_of(R"({"fusec_target": 1, "arch": "sm_80", "multiprocessors": 1.5})"), "/multiprocessors",
             "an integer"));
  CHECK(says(error_of(R"({"fusec_target": 1, "arch": "sm_80", "l2_bytes": true})"), "/l2_bytes", "an integer"));
  CHECK(says(error_of(R"({"fusec_target": 1, "arch": "sm_80", "chip": 4})"), "/chip", "a string"));
}

TEST_CASE("every known target has all its figures and a source, and a name of its own") {
  for (const Target& t : known_targets()) {
    INFO(t.name);
    CHECK(&t == &*std::ranges::find(known_targets(), t.name, &Target::name));
    CHECK(target_for(t.name).chip == t.chip);
    CHECK(t.bandwidth > 1e11);
    CHECK(t.float16_rate > t.float32_rate);
    CHECK(t.float32_rate > t.float64_rate);
    CHECK(t.float64_rate > 1e11);
    CHECK(t.special_rate > 1e11);
    CHECK(t.latency_seconds > 1e-7);
    CHECK(t.latency_seconds < 1e-6);
    CHECK(!t.source.empty());
  }
  CHECK(target_for("h200").arch == "sm_90a");
  CHECK(target_for("h200").bandwidth == 4.8e12);
  CHECK(target_for("sm_103a").chip == "B200");
  CHECK(target_for("sm_87").name == "sm_87");
}
