// A manifest that is read back resolves to the steps of the launch plan that it was printed from.
#include "runtime/read_manifest.h"

#include <doctest/doctest.h>

#include "codegen/host/manifest.h"
#include "ir/error.h"
#include "runtime/resolve_steps.h"
#include "support/built_model.h"

using namespace fusec;
using test::BuiltModel;

namespace {

// Symbols in products, a data-less and an embedded constant, an alias, a copy, values in the workspace, guards.
const char* const kModel = R"({
  "fusec": 1, "name": "manifest",
  "symbols": { "b": { "min": 0, "max": 64, "hint": 3 }, "t": { "min": 4, "max": 4096, "hint": 8 } },
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
    { "name": "product", "op": "matmul", "inputs": ["wide", "flat"] },
    { "name": "flat", "op": "permute", "inputs": ["y"], "attrs": { "dims": [1, 0] } },
    { "name": "state_next", "op": "add", "inputs": ["state", "shifted"] }
  ],
  "outputs": ["wide", "state_next", "product", "y"],
  "aliases": { "state_next": "state" }
})";

void compare(const LaunchPlan& planned, const std::vector<ResolvedStep>& a, const LaunchPlan& read,
             const std::vector<ResolvedStep>& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    CHECK(a[i].kind == b[i].kind);
    if (a[i].kind == LaunchStep::Kind::kKernel) {
      CHECK(planned.kernels[a[i].kernel].name == read.kernels[b[i].kernel].name);
      CHECK(planned.kernels[a[i].kernel].block == read.kernels[b[i].kernel].block);
    }
    CHECK(a[i].grid == b[i].grid);
    CHECK(a[i].dynamic_shared == b[i].dynamic_shared);
    CHECK(a[i].bytes == b[i].bytes);
    REQUIRE(a[i].arguments.size() == b[i].arguments.size());
    for (std::size_t k = 0; k < a[i].arguments.size(); ++k) {
      const ResolvedArgument &p = a[i].arguments[k], &r = b[i].arguments[k];
      CHECK(p.is_size == r.is_size);
      CHECK(p.size == r.size);
      CHECK(p.offset == r.offset);
      CHECK(p.boxes.has_value() == r.boxes.has_value());
      if (p.is_size)
        CHECK(p.bits == r.bits);
      else
        CHECK(p.buffer == r.buffer);
    }
  }
}

}  // namespace

TEST_CASE("a manifest holds all that a launch needs") {
  const BuiltModel built(kModel);
  const ManifestModel read = read_manifest(manifest(built.graph, built.plan, built.launch, built.target));
  CHECK(read.graph.inputs.size() == 3);
  REQUIRE(read.results.size() == 4);
  CHECK(read.results[1].alias_of == 2);
  CHECK(!read.results[0].alias_of);
  for (const std::int64_t t : {4, 7, 8, 33, 4096})
    for (const std::int64_t b : {0, 1, 3, 64}) {
      const ResolvedPlan planned = resolve_steps(built.launch, {b, t});
      const ResolvedPlan again = resolve_steps(read.plan, {b, t});
      compare(built.launch, planned.steps, read.plan, again.steps);
      compare(built.launch, planned.prepare_steps, read.plan, again.prepare_steps);
      CHECK(planned.workspace_bytes == again.workspace_bytes);
      CHECK(planned.prepared_bytes == again.prepared_bytes);
    }
}

TEST_CASE("what is no manifest is refused") {
  for (const char* text : {"", "{", "[]", "{}", "{\"fusec_manifest\": 2}", "{\"fusec_manifest\": 1, \"model\": 3}"})
    CHECK_THROWS_AS(read_manifest(text), Error);
  const BuiltModel built(kModel);
  for (const char* part : {"\"argument\": \"x\"", "\"kernel\": \"", "\"float32\"", "4*b"}) {
    std::string text = manifest(built.graph, built.plan, built.launch, built.target);
    const std::size_t at = text.find(part);
    if (at == std::string::npos) continue;
    text.replace(at, std::string(part).size(), "\"nothing\"");
    CHECK_THROWS_AS(read_manifest(text), Error);
  }
}
