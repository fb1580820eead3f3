// A guarded kernel gives the same in either form: where the guard holds, the special one is launched, and the general
// one, put in its place, computes what it does; 64-bit indices are thereby executed at sizes that an emulator can hold.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>

#include "runtime/resolve_steps.h"
#include "support/built_model.h"
#include "support/check_lowered.h"

using namespace fusec;
using test::BuiltModel;

namespace {

std::string model(const std::string& node, const std::string& symbols = R"("b": {}, "n": {})") {
  return R"({ "fusec": 1, "name": "guarded", "symbols": {)" + symbols + R"(},
    "inputs": [ { "name": "x", "dtype": "float32", "shape": ["b", "n"] },
                { "name": "w", "dtype": "float32", "shape": ["n"] } ],
    "nodes": [ )" +
         node + R"( ], "outputs": ["y"] })";
}
const std::string kAdd = R"({ "name": "y", "op": "add", "inputs": ["x", "w"] })";
const std::string kSoftmax = R"({ "name": "y", "op": "softmax", "inputs": ["x"], "attrs": { "dim": 1 } })";

TensorMap tensors(std::int64_t b, std::int64_t n) {
  TensorMap map;
  for (const auto& [name, shape] : {std::pair<std::string, std::vector<std::int64_t>>{"x", {b, n}}, {"w", {n}}}) {
    HostTensor tensor(DType::kFloat32, shape);
    for (std::size_t i = 0; i < tensor.bytes.size() / 4; ++i) {
      const float value = static_cast<float>(i * 7919 % 1000) / 250.0f - 2.0f;
      std::memcpy(tensor.bytes.data() + 4 * i, &value, 4);
    }
    map[name] = tensor;
  }
  return map;
}

struct Run {
  std::vector<std::byte> y;
  std::vector<std::string> kernels;
  std::string findings;
};

Run run(const BuiltModel& model, std::int64_t b, std::int64_t n) {
  const auto nvrtc = Nvrtc::load();
  REQUIRE(nvrtc);
  const EmulatorResult result = run_on_emulator(model.graph, model.launch, parse_units(model.compile(*nvrtc)),
                                                model.file.unit_of, model.target, tensors(b, n), {});
  Run run{.y = result.outputs.at("y").bytes, .kernels = {}, .findings = test::findings_of(result)};
  for (const KernelProfile& profile : result.profiles) run.kernels.push_back(profile.kernel);
  return run;
}

// Do blocks count in 64 bits? What is within a row may do so for the sake of its addresses.
bool has_long_indices(const KernelSource& kernel) {
  return kernel.text.find("(long long)blockIdx") != std::string::npos;
}

}  // namespace

TEST_CASE("each form of a guarded kernel computes the same") {
  for (const std::string& node : {kAdd, kSoftmax}) {
    BuiltModel guarded(model(node));
    REQUIRE(guarded.launch.steps.size() == 1);
    const auto& special = guarded.launch.steps[0].special;
    REQUIRE(special.size() == 1);
    const KernelSource& general_kernel = guarded.launch.kernels[guarded.launch.steps[0].kernel];
    const KernelSource& special_kernel = guarded.launch.kernels[special[0].kernel];
    CHECK(has_long_indices(general_kernel));
    CHECK_FALSE(has_long_indices(special_kernel));
    CHECK(special_kernel.text.starts_with("// Where "));

    const Run taken = run(guarded, 3, 64);
    CHECK(taken.findings == "");
    CHECK(taken.kernels == std::vector{special_kernel.name});
    const std::string general_name = general_kernel.name;
    guarded.launch.steps[0].special.clear();
    const Run general = run(guarded, 3, 64);
    CHECK(general.findings == "");
    CHECK(general.kernels == std::vector{general_name});
    if (node == kAdd) CHECK(taken.y == general.y);
    CHECK(taken.y.size() == general.y.size());
  }
}

TEST_CASE("a launch takes the form that its guard says") {
  const BuiltModel guarded(model(kAdd));
  const LaunchStep& step = guarded.launch.steps.at(0);
  REQUIRE(step.special.size() == 1);
  const auto kernel_at = [&](std::int64_t b, std::int64_t n) {
    const ResolvedPlan resolved = resolve_steps(guarded.launch, {b, n});
    return resolved.steps.at(0).kernel;
  };
  CHECK(kernel_at(1, 4) == step.special[0].kernel);
  CHECK(kernel_at(1, 6) == step.kernel);
  CHECK(kernel_at(1 << 16, 1 << 14) == step.special[0].kernel);
  CHECK(kernel_at(1 << 20, 1 << 14) == step.kernel);  // beyond 2^31 elements
  CHECK(kernel_at(INT32_MAX, INT32_MAX / 8 * 8) == step.kernel);
}

TEST_CASE("no guard where the bounds say all there is to know") {
  CHECK(BuiltModel(model(kAdd, R"("b": { "max": 64 }, "n": { "max": 4096, "multiple_of": 8 })"))
            .launch.steps.at(0)
            .special.empty());
  // A multiple that no value can be, a length that all rows exceed.
  CHECK(BuiltModel(model(kAdd, R"("b": { "max": 64 }, "n": { "min": 1, "max": 3, "hint": 2 })"))
            .launch.steps.at(0)
            .special.empty());
  const BuiltModel long_rows(
      model(kSoftmax, R"("b": { "max": 64 }, "n": { "min": 40000, "max": 90000, "hint": 50000 })"));
  for (const LaunchStep& step : long_rows.launch.steps) CHECK(step.special.empty());
}

namespace {

// y[rows, 256] = x[rows, 512] times a matrix, plus r.
std::string product(const std::string& symbols, const std::string& rows) {
  return R"({ "fusec": 1, "name": "guarded", "symbols": {)" + symbols + R"(},
    "inputs": [ { "name": "x", "dtype": "float16", "shape": [)" +
         rows + R"(, 512] } ],
    "constants": [ { "name": "w", "dtype": "float16", "shape": [256, 512] } ],
    "nodes": [ { "name": "y", "op": "linear", "inputs": ["x", "w"] } ], "outputs": ["y"] })";
}

// How many eights of rows the form has that the launch takes, 0: tiles. One form serves 1 to 32 rows, since it reads as
// many bytes for 8 as for 32 and is predicted to take as long.
int eights_taken(const BuiltModel& model, const std::vector<std::int64_t>& symbols) {
  const ResolvedPlan resolved = resolve_steps(model.launch, symbols);
  REQUIRE(resolved.steps.size() == 1);
  const KernelSource& kernel = model.launch.kernels.at(resolved.steps[0].kernel);
  if (kernel.schedule.kind != KernelKind::kSkinnyGemm) return 0;
  for (const int eights : {1, 2, 3, 4})
    if (kernel.text.find("bool row_there[" + std::to_string(eights) + "];") != std::string::npos) return eights;
  return -1;
}

}  // namespace

TEST_CASE("a product of a symbol's rows is one of few rows where these are few") {
  const BuiltModel model(product(R"("t": { "max": 8192, "hint": 2048 })", R"("t")"));
  CHECK(model.launch.steps.at(0).special.size() == 1);
  CHECK(eights_taken(model, {1}) == 4);
  CHECK(eights_taken(model, {8}) == 4);
  CHECK(eights_taken(model, {17}) == 4);
  CHECK(eights_taken(model, {32}) == 4);
  CHECK(eights_taken(model, {33}) == 0);
  CHECK(eights_taken(model, {8192}) == 0);
}

TEST_CASE("rows that are a multiple of eight may still be fewer than the form has") {
  const BuiltModel model(product(R"("t": { "max": 32, "hint": 16, "multiple_of": 8 })", R"("t")"));
  CHECK(eights_taken(model, {8}) == 4);
}

TEST_CASE("no rows at all are no launch, in no form") {
  const BuiltModel model(product(R"("t": { "min": 0, "max": 8192, "hint": 2048 })", R"("t")"));
  CHECK(resolve_steps(model.launch, {0}).steps.empty());
  CHECK(eights_taken(model, {1}) == 4);
}

TEST_CASE("few rows may be a product of symbols and constants") {
  const BuiltModel model(
      product(R"("b": { "max": 64, "hint": 4 }, "t": { "max": 8192, "hint": 2048 })", R"("b", 2, "t")"));
  CHECK(eights_taken(model, {1, 4}) == 4);
  CHECK(eights_taken(model, {16, 1}) == 4);
  CHECK(eights_taken(model, {17, 1}) == 0);
  CHECK(eights_taken(model, {1, 17}) == 0);
}

TEST_CASE("rows that are few or many whatever the symbols have no further form") {
  CHECK(BuiltModel(product(R"("t": { "max": 8, "hint": 1 })", R"("t")")).launch.steps.at(0).special.empty());
  CHECK(BuiltModel(product(R"("t": { "min": 33, "max": 8192, "hint": 2048 })", R"("t")"))
            .launch.steps.at(0)
            .special.empty());
}
