// With rounded intermediates, fusion changes no bit: random models of elementwise, broadcast and injective ops under
// `full` against `none`, on the emulator. Several models are compiled at a time.
#include <doctest/doctest.h>

#include "analysis/annotate.h"
#include "codegen/launch/build_launch_plan.h"
#include "codegen/launch/lower_plan.h"
#include "codegen/nvrtc/nvrtc.h"
#include "codegen/prelude/prelude.h"
#include "ir/text.h"
#include "runtime/emulator_device.h"
#include "runtime/tensor_file.h"
#include "support/random_pointwise.h"
#include "transforms/fold_constants.h"
#include "transforms/fuse.h"
#include "transforms/remove_dead.h"
#include "transforms/simplify_algebra.h"

using namespace fusec;

namespace {

struct Planned {
  Graph graph;
  LaunchPlan launch;
};

Planned plan_model(Graph graph, Strategy strategy, const Target& target) {
  if (strategy == Strategy::kFull) {
    CanonicalGraph canonical{.graph = std::move(graph)};
    canonical.stands_for = as_given(canonical.graph);
    remove_dead(canonical);
    fold_exact_constants(canonical);
    simplify_algebra(canonical);
    graph = std::move(canonical.graph);
  }
  const std::vector<OpPattern> kinds = annotate(graph, pattern_source(strategy));
  const FusionPlan plan = fuse(graph, kinds, {.strategy = strategy});
  LaunchPlan launch = build_launch_plan(graph, lower_plan(graph, plan, target, {.round_intermediates = true}));
  return {std::move(graph), std::move(launch)};
}

struct Pair {
  Planned fused, apart;
};

// One translation unit with the kernels of all these models. For a virtual architecture: PTX alone is made.
emulator::Module compile(const Nvrtc& nvrtc, const std::vector<Pair>& pairs) {
  std::set<std::string> parts;
  std::string kernels;
  for (const Pair& pair : pairs)
    for (const Planned* planned : {&pair.fused, &pair.apart})
      for (const KernelSource& kernel : planned->launch.kernels) {
        parts.insert(kernel.prelude.begin(), kernel.prelude.end());
        kernels += kernel.text + "\n";
      }
  const std::string source = "namespace {\n" + prelude_text(parts) + "}  // namespace\n\n" + kernels;
  return emulator::Module(nvrtc.compile(source, "batch.cu", "compute_80").ptx, "batch.ptx");
}

TensorMap run(const Planned& planned, const emulator::Module& module, const TensorMap& tensors, const Target& target,
              std::string& findings) {
  const std::vector<std::uint32_t> unit_of(planned.launch.kernels.size(), 0);
  EmulatorResult result = run_on_emulator(planned.graph, planned.launch, {module}, unit_of, target, tensors, {});
  for (const KernelProfile& profile : result.profiles) findings += emulator::describe(profile.report);
  return std::move(result.outputs);
}

// The first element of another bit pattern, NaN equal to NaN; "" where there is none.
std::string difference(const TensorMap& got, const TensorMap& want) {
  for (const auto& [name, expected] : want) {
    const HostTensor& actual = got.at(name);
    if (actual.bytes == expected.bytes) continue;
    for (std::int64_t i = 0; i < expected.size(); ++i) {
      if (actual.raw(i) == expected.raw(i)) continue;
      if (is_float(expected.dtype) && std::isnan(actual.real(i)) && std::isnan(expected.real(i))) continue;
      return fmt::format("{}[{}]: fused {:#x} ({}), apart {:#x} ({})", name, i, actual.raw(i), actual.real(i),
                         expected.raw(i), expected.real(i));
    }
  }
  return "";
}

// Random, with zeros of both signs, infinities, NaN, and what is too small or too large for narrow formats.
TensorMap awkward_tensors(const Graph& graph, std::uint64_t seed) {
  static constexpr double kAwkward[] = {0.0, -0.0, INFINITY, -INFINITY, NAN, 1e-40, -6e-8, 3e38, 65520, 448, 1.0};
  TensorMap tensors = random_tensors(graph, seed);
  test::Random random(seed);
  for (auto& [name, tensor] : tensors)
    for (std::int64_t i = 0; is_float(tensor.dtype) && i < tensor.size(); ++i)
      if (random.chance(10)) tensor.set_real(i, kAwkward[random.below(std::size(kAwkward))]);
  return tensors;
}

void check_models(std::uint64_t first, std::uint64_t count) {
  const auto nvrtc = Nvrtc::load();
  if (!nvrtc) {
    MESSAGE("skipped: no NVRTC");
    return;
  }
  const Target target = target_for("sm_80");
  std::size_t fused_kernels = 0, kernels = 0;
  constexpr std::uint64_t kBatch = 30;
  for (std::uint64_t begin = first; begin < first + count; begin += kBatch) {
    std::vector<Pair> pairs;
    for (std::uint64_t seed = begin; seed < std::min(begin + kBatch, first + count); ++seed) {
      const auto model = [&](const char* end) {
        return test::RandomPointwise("g" + std::to_string(seed) + end, seed).make();
      };
      pairs.push_back(
          {plan_model(model("f"), Strategy::kFull, target), plan_model(model("n"), Strategy::kUnfused, target)});
    }
    const emulator::Module module = compile(*nvrtc, pairs);
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      const TensorMap tensors = awkward_tensors(pairs[i].apart.graph, begin + i);
      std::string findings;
      const TensorMap apart = run(pairs[i].apart, module, tensors, target, findings);
      const TensorMap fused = run(pairs[i].fused, module, tensors, target, findings);
      kernels += pairs[i].apart.launch.steps.size();
      fused_kernels += pairs[i].fused.launch.steps.size();
      CHECK_MESSAGE(findings == "", "seed ", begin + i, ": ", findings);
      const std::string differs = difference(fused, apart);
      CHECK_MESSAGE(differs == "", "seed ", begin + i, ": ", differs, "\n", graph_text(pairs[i].apart.graph));
    }
  }
  MESSAGE(count, " models: ", kernels, " launches apart, ", fused_kernels, " fused");
  CHECK(4 * fused_kernels < 3 * kernels);
}

}  // namespace

TEST_SUITE("rounded intermediates") {
  TEST_CASE("fusion changes no bit: a sample of random models") {
    check_models(0, 60);
  }
}

TEST_SUITE("full") {
  TEST_CASE("fusion changes no bit: random models") {
    check_models(0, 2000);
  }
}
