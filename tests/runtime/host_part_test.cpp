// The host part of the emitted file, compiled and called: as printed it does what the plan says; with a defect planted
// into its text the check finds it.
#include <doctest/doctest.h>

#include "ir/error.h"
#include "runtime/compare_outputs.h"
#include "runtime/host_part/check_host_part.h"
#include "support/built_model.h"

using namespace fusec;
using test::BuiltModel;

namespace {

// Symbols in products and sums, a data-less and an embedded constant, an alias, a copy, values in the workspace.
const char* const kModel = R"({
  "fusec": 1, "name": "host",
  "symbols": { "b": { "min": 0, "max": 64, "hint": 3 }, "t": { "min": 4, "max": 4096, "multiple_of": 4, "hint": 8 } },
  "inputs": [
    { "name": "x", "dtype": "float32", "shape": ["b", "2*t+1"] },
    { "name": "y", "dtype": "float32", "shape": ["b", "t"] },
    { "name": "state", "dtype": "float32", "shape": ["b", "t"] }
  ],
  "constants": [
    { "name": "scale", "dtype": "float32", "shape": [1] },
    { "name": "table", "dtype": "float32", "shape": [3, 1, 1], "data": [1.5, -2.25, 1e30] }
  ],
  "nodes": [
    { "name": "part", "op": "exp", "inputs": ["x"] },
    { "name": "total", "op": "sum", "inputs": ["part"], "attrs": { "dim": [1], "keepdim": true } },
    { "name": "scaled", "op": "mul", "inputs": ["y", "scale"] },
    { "name": "shifted", "op": "add", "inputs": ["scaled", "total"] },
    { "name": "wide", "op": "mul", "inputs": ["shifted", "table"] },
    { "name": "state_next", "op": "add", "inputs": ["state", "shifted"] },
    { "name": "late", "op": "neg", "inputs": ["state"] }
  ],
  "outputs": ["wide", "state_next", "late", "y"],
  "aliases": { "state_next": "state" }
})";

HostArguments good_arguments(const BuiltModel& model) {
  HostArguments a;
  std::uint64_t next = 0x10'0000'0000;
  for (const ValueId v : model.launch.arguments) {
    HostArguments::Tensor tensor{next += 0x1000'0000, {}};
    for (const Dim& dim : model.graph.tensor(v).shape)
      tensor.extents.push_back(value_at_hint(dim, model.graph.symbols));
    a.arguments.push_back(tensor);
  }
  for (const ValueId v : model.launch.results) {
    const auto alias = std::find_if(model.graph.aliases.begin(), model.graph.aliases.end(),
                                    [&](const Alias& entry) { return entry.output == v; });
    a.results.push_back(alias == model.graph.aliases.end() ? next += 0x1000'0000 : 0);
  }
  return a;
}

std::vector<std::string> complaints(const BuiltModel& model, const std::string& out_cu) {
  HostPart host(out_cu, model.graph, model.launch);
  return check_host_part(host, model.graph, model.launch, good_arguments(model));
}

void check_clean(const BuiltModel& model) {
  for (const std::string& wrong : complaints(model, model.file.text)) FAIL_CHECK(wrong);
}

// The check finds the text changed in its first place after the host part begins.
void check_found(const BuiltModel& model, const std::string& original, const std::string& planted) {
  CAPTURE(original);
  std::string text = model.file.text;
  const std::size_t at = text.find(original, text.find("#ifndef __CUDACC_RTC__"));
  REQUIRE(at != std::string::npos);
  text.replace(at, original.size(), planted);
  CHECK(!complaints(model, text).empty());
}

}  // namespace

TEST_SUITE("host part") {
  TEST_CASE("as printed, it does what the plan says") {
    check_clean(BuiltModel(kModel));
    check_clean(BuiltModel(kModel, true));
  }

  TEST_CASE("planted defects are found") {
    const BuiltModel model(kModel);
    check_found(model, "dim3(128, 1, 1)", "dim3(256, 1, 1)");
    check_found(model, "cudaMemcpyAsync(", "cudaMemcpyAsync(16 + (char*)");
    check_found(model, "if (args->state_next && args->state_next != args->state)", "if (false)");
    check_found(model, "% 16 != 0", "% 8 != 0");
    check_found(model, "if (!args->x", "if (false && !args->x");
    check_found(model, "if (!args->scale", "if (false && !args->scale");
    check_found(model, "if (!args->late", "if (false && !args->late");
    check_found(model, "if (!args->y && n.b > 0", "if (!args->y");
    check_found(model, "if (!workspace", "if (false && !workspace");
    check_found(model, ": size_t(-1)", ": 0");
    check_found(model, "static_cast<void*>(work)", "static_cast<void*>(work + 256)");
    check_found(model, "if (status != cudaSuccess) return complain(ctx, status, \"host_0",
                "if (false) return complain(ctx, status, \"host_0");
    check_found(model, "return solve(nullptr, args, n) == cudaSuccess ? size_t(",
                "return solve(nullptr, args, n) == cudaSuccess ? 256 + size_t(");
    check_found(model, "snprintf(", "if (false) snprintf(");
    check_found(model, "n.b > 64", "n.b > 65");
    check_found(model, "% 4 != 0", "% 1 != 0");
  }

  TEST_CASE("prepared memory and what it is made of are required") {
    const BuiltModel model(R"({
      "fusec": 1, "name": "kept",
      "inputs": [ { "name": "x", "dtype": "float32", "shape": [8, 4] } ],
      "constants": [ { "name": "w", "dtype": "float32", "shape": [8, 4] } ],
      "nodes": [
        { "name": "scaled", "op": "exp", "inputs": ["w"], "fuse": false },
        { "name": "y", "op": "mul", "inputs": ["x", "scaled"] }
      ],
      "outputs": ["y"] })");
    check_clean(model);
  }

  TEST_CASE("a collective is not launched without communicators") {
    const BuiltModel model(R"({
      "fusec": 1, "name": "group",
      "inputs": [ { "name": "x", "dtype": "float32", "shape": [8] } ],
      "nodes": [ { "name": "y", "op": "all_reduce", "inputs": ["x"], "attrs": { "group": "g", "reduce_op": "sum" } } ],
      "outputs": ["y"] })");
    check_clean(model);
  }

  TEST_CASE("a launcher of a custom op gets buffers and extents") {
    const BuiltModel model(R"({
      "fusec": 1, "name": "custom",
      "symbols": { "n": { "min": 1, "max": 100, "hint": 7 } },
      "inputs": [ { "name": "x", "dtype": "float32", "shape": ["n", 12] } ],
      "nodes": [
        { "name": "before", "op": "abs", "inputs": ["x"] },
        { "name": "sorted_rows", "op": "acme.bitonic", "inputs": ["before"],
          "outputs": [ { "name": "ordered", "dtype": "float32", "shape": ["n", 12] } ],
          "attrs": { "symbol": "acme_bitonic_sort", "descending": true } },
        { "name": "y", "op": "sqrt", "inputs": ["ordered"] }
      ],
      "outputs": ["y"] })");
    check_clean(model);
    check_found(model, "extents[] = {n.n, 12, n.n, 12}", "extents[] = {n.n, 12, 12, n.n}");
  }

  TEST_CASE("text that does not compile is told with the compiler's words") {
    const BuiltModel model(kModel);
    std::string text = model.file.text;
    text.insert(text.rfind("extern \"C\" {"), "int unfinished(\n");
    try {
      complaints(model, text);
      FAIL("it compiled");
    } catch (const Error& error) {
      CHECK(std::string(error.what()).find("unfinished") != std::string::npos);
    }
  }

  // Blocks that wait for one another have to be there at once.
  TEST_CASE("it asks whether the device has room for the blocks of a row") {
    const auto softmax = [](const char* columns) {
      return std::string(R"({"fusec": 1, "inputs": [{"name": "x", "dtype": "float32", "shape": [3, )") + columns +
             R"(]}], "nodes": [{"name": "y", "op": "softmax", "inputs": ["x"], "attrs": {"dim": 1}}], "outputs": ["y"]})";
    };
    const BuiltModel shared(softmax("100003"), true), alone(softmax("1000"), true);
    CHECK(shared.file.text.find("status = has_room(reinterpret_cast<const void*>(") != std::string::npos);
    CHECK(alone.file.text.find("has_room") == std::string::npos);
    CHECK(complaints(shared, shared.file.text).empty());
  }

  TEST_CASE("what it launches is what the emulator executes") {
    const auto nvrtc = Nvrtc::load();
    if (!nvrtc) {
      MESSAGE("skipped: no NVRTC");
      return;
    }
    for (const bool together : {false, true}) {
      const BuiltModel model(kModel, together);
      HostPart host(model.file.text, model.graph, model.launch);
      const TensorMap tensors = random_tensors(model.graph, 4);
      const EmulatorResult result = run_on_emulator(model.graph, model.launch, parse_units(model.compile(*nvrtc)),
                                                    model.file.unit_of, model.target, tensors, {}, &host);
      CHECK(test::findings_of(result) == "");
      CHECK(!first_difference(result.outputs, run_reference(model.graph, tensors), {}));
    }
  }

  TEST_CASE("constants of other bytes are noticed") {
    const auto nvrtc = Nvrtc::load();
    if (!nvrtc) {
      MESSAGE("skipped: no NVRTC");
      return;
    }
    const BuiltModel model(kModel);
    std::string text = model.file.text;
    const std::size_t bytes = text.find("const unsigned char constant_0");
    REQUIRE(bytes != std::string::npos);
    text.replace(text.find("192,63", bytes), 6, "193,63");
    HostPart host(text, model.graph, model.launch);
    CHECK_THROWS_AS(run_on_emulator(model.graph, model.launch, parse_units(model.compile(*nvrtc)), model.file.unit_of,
                                    model.target, random_tensors(model.graph, 4), {}, &host),
                    InternalError);
  }
}
