// fusec-run: executes a model on the reference device, on the PTX emulator or on a GPU.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <thread>

#include "command_line.h"
#include "ir/error.h"
#include "ir/mapped_file.h"
#include "ir/spelling.h"
#include "option_values.h"
#include "output_file.h"
#include "profile.h"
#include "run_report.h"
#include "runtime/compare_outputs.h"
#include "runtime/cuda_device.h"
#include "runtime/emulator/ptx_command.h"
#include "runtime/emulator_device.h"
#include "runtime/find_wrong_node.h"
#include "runtime/tensor_file.h"
#include "tune.h"

namespace fusec {
namespace {

struct Arguments {
  CompileArguments compile;
  std::string device = "reference";
  std::string inputs, outputs, expected, tolerance, profile;
  std::string host_part = "plan";
  std::optional<std::uint64_t> random;
  std::string verify;
  bool verify_given = false, tune = false;
  int bench = -1;
  std::uint64_t sample_blocks = 0;
  // Options that run a kernel of a PTX file instead of a model.
  std::string ptx, kernel, grid = "1", block = "1", cluster;
  std::vector<std::string> kernel_arguments;
  std::uint32_t shared = 0;
};

int device_number(const std::string& device) {
  const std::size_t colon = device.find(':');
  if (device.substr(0, colon) != "cuda") return -1;
  if (colon == std::string::npos) return 0;
  int number = -1;
  const char* const end = device.data() + device.size();
  const auto parsed = std::from_chars(device.data() + colon + 1, end, number);
  if (parsed.ec != std::errc() || parsed.ptr != end || number < 0)
    throw Error(ErrorKind::kUsage, Error::Parts{.what = "--device", .found = in_quotes(device), .expected = "cuda:N"});
  return number;
}

template <typename Number>
Number number_in(const std::string& text, const char* option) {
  Number number{};
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size() || number < Number{})
    throw Error(ErrorKind::kUsage, Error::Parts{.what = option, .found = in_quotes(text), .expected = "a number"});
  return number;
}

// Parses an option's value RTOL,ATOL; nothing for the default.
std::optional<Tolerance> tolerance_of(const std::string& text, const char* option) {
  if (text.empty() || text == "default") return std::nullopt;
  Tolerance t{};
  const char* const end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, t.rtol);
  const auto second = first.ptr != end && *first.ptr == ',' ? std::from_chars(first.ptr + 1, end, t.atol) : first;
  if (first.ec != std::errc() || second.ec != std::errc() || second.ptr != end || second.ptr == first.ptr)
    throw Error(ErrorKind::kUsage, Error::Parts{.what = option, .found = text, .expected = "RTOL,ATOL"});
  if (!(t.rtol >= 0 && t.atol >= 0 && std::isfinite(t.rtol) && std::isfinite(t.atol)))
    throw Error(ErrorKind::kUsage,
                Error::Parts{.what = option, .found = text, .expected = "RTOL,ATOL: finite, not negative"});
  return t;
}

// The tolerance of comparisons: --verify=RTOL,ATOL, else --tolerance=RTOL,ATOL, else nothing (each dtype's own).
std::optional<Tolerance> tolerance_of(const Arguments& a) {
  const std::optional<Tolerance> verify = tolerance_of(a.verify, "--verify");
  const std::optional<Tolerance> of_all = tolerance_of(a.tolerance, "--tolerance");
  return verify ? verify : of_all;
}

// Refuses options that the device ignores.
void require_devices_of_options(const Arguments& a) {
  const auto require = [&](bool given, const char* option, bool fits, const char* devices) {
    if (given && !fits)
      throw Error(ErrorKind::kUsage, Error::Parts{.what = std::string(option) + " is not for this device",
                                                  .found = "--device=" + a.device,
                                                  .expected = devices,
                                                  .hint = "choose the device, or leave the option out"});
  };
  const bool emulator = a.device == "emulator";
  const bool cuda = device_number(a.device) >= 0;
  require(a.bench >= 0, "--bench", cuda, "--device=cuda[:N]");
  require(!a.profile.empty(), "--profile", emulator, "--device=emulator");
  require(a.sample_blocks != 0, "--sample-blocks", emulator, "--device=emulator");
  require(a.host_part != "plan", "--host-part", emulator, "--device=emulator");
  tolerance_of(a);  // check it before anything runs
  if (a.sample_blocks != 0 && (a.verify_given || !a.expected.empty()))
    throw Error(ErrorKind::kUsage, Error::Parts{.what = "--verify or --expect with --sample-blocks",
                                                .found = "outputs of which only a part is computed",
                                                .hint = "leave one of them out"});
}

class Run {
 public:
  explicit Run(const Arguments& a)
      : a_(a), cuda_(device_number(a.device)), report_(a.compile.json, a.compile.quiet, a.device) {}

  int run() {
    // Only the reference runs without NVRTC. Check this before the slow stages.
    if (a_.device != "reference") nvrtc_ = Nvrtc::require();
    Graph graph;
    timed("read", [&] { graph = read_model(a_.compile); });
    const TensorMap tensors = tensors_for(graph);
    if (a_.tune) return tune_kernels(graph, tensors);
    if (const std::string why = cache_warning(a_.compile); !why.empty() && nvrtc_) report_.warning(why);
    TensorMap outputs;
    if (a_.device == "reference")
      timed("reference", [&] { outputs = run_reference(graph, tensors); });
    else
      outputs = run_compiled(graph, tensors);
    bool good = findings_ == 0;
    timed("compare", [&] { good = compare(graph, tensors, outputs) && good; });
    if (!a_.outputs.empty()) save_tensors(a_.outputs, graph, outputs);
    if (a_.compile.time_passes) report_.times(times());
    report_.finish(good, outputs.size(), a_.outputs);
    return good ? 0 : 1;
  }

 private:
  void timed(const char* stage, const std::function<void()>& run) {
    const auto begin = std::chrono::steady_clock::now();
    run();
    times_.push_back({stage, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count()});
  }

  // Times of this program's stages. Those of the compiler follow the first stage, which reads the model.
  std::vector<StageTime> times() const {
    std::vector<StageTime> all = times_;
    if (pipeline_) all.insert(all.begin() + 1, pipeline_->times().begin(), pipeline_->times().end());
    return all;
  }

  TensorMap tensors_for(const Graph& graph) const {
    if (!a_.inputs.empty()) return load_tensors(graph, a_.inputs);
    if (!a_.random && needs_tensors(graph))
      throw Error(ErrorKind::kUsage, Error::Parts{.what = "no inputs", .expected = "--inputs=FILE or --random[=SEED]"});
    return random_tensors(graph, a_.random.value_or(0));
  }

  // Compares the outputs with a file, with the reference, or with both. Returns whether they agree.
  bool compare(const Graph& graph, const TensorMap& tensors, const TensorMap& outputs) {
    const Tolerances tolerances = tolerances_of(graph, tolerance_of(a_), a_.compile.options.allow_tf32);
    bool good = true;
    if (!a_.expected.empty()) {
      ExpectedOutputs expected(graph, tensors, tolerances, load_expected_outputs(graph, a_.expected));
      good = agrees(expected.compare(outputs), a_.expected);
    }
    if (a_.verify_given) {
      ExpectedOutputs expected(graph, tensors, tolerances, ExpectedOutputs::Values::kOutputs);
      if (!agrees(expected.compare(outputs), "the reference")) {
        good = false;
        if (planned_) tell_why(graph, tensors);
      }
    }
    return good;
  }

  // Whether they agree, which is told.
  bool agrees(const Comparison& comparison, const std::string& with) {
    report_.compared(comparison, with);
    return !comparison.difference;
  }

  // --tune: measures candidates, and adds the fastest to the tuning database.
  int tune_kernels(const Graph& graph, const TensorMap& tensors) {
    const std::string& file = a_.compile.options.tuning_file;
    TuningDatabase database;
    if (std::filesystem::exists(file)) database = read_tuning(read_text_file(file), file);
    CompileArguments arguments = a_.compile;
    arguments.options.tuning_file.clear();
    const PipelineOptions options = pipeline_options(arguments, std::max(cuda_, 0));
    const PlannedModel planned = Pipeline(options).plan(graph);
    const auto measure = [&](Pipeline& pipeline, const PlannedModel& model, const GeneratedModel& generated) {
      const std::vector<CompiledModule> modules = pipeline.compile(*nvrtc_, generated);
      return cuda_ >= 0 ? time_kernels(model, generated, modules, tensors)
                        : count_kernels(pipeline.options().target, model, generated, modules, tensors);
    };
    const TuningResult result = tune(planned, options, cuda_ >= 0 ? device_name(cuda_) : "emulator", measure);
    for (const TunedKernel& kernel : result.kernels) database.set(kernel);
    write_output(file, write_tuning(database));
    report_.tuning(result,
                   cuda_ < 0 ? "times are of the cost model, for what the emulator counted: nothing was timed" : "");
    report_.finish(result.refused.empty());
    return result.refused.empty() ? 0 : 1;
  }

  MeasuredRun time_kernels(const PlannedModel& model, const GeneratedModel& generated,
                           const std::vector<CompiledModule>& modules, const TensorMap& tensors) const {
    CudaResult timed = run_on_cuda(model.source_graph(), generated.launch, modules, tensors, cuda_,
                                   a_.bench > 0 ? a_.bench : 20, Timing::kEachKernel);
    return {std::move(timed.outputs), std::move(timed.kernel_seconds)};
  }

  MeasuredRun count_kernels(const Target& target, const PlannedModel& model, const GeneratedModel& generated,
                            const std::vector<CompiledModule>& modules, const TensorMap& tensors) const {
    emulator::Options options;
    options.threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    const std::vector<emulator::Module> parsed = parse_units(modules);
    EmulatorResult counted = run_on_emulator(model.source_graph(), generated.launch, parsed, generated.file.unit_of,
                                             target, tensors, options);
    add_costs(counted.profiles, modules, parsed, target);
    std::vector<double> seconds(generated.launch.kernels.size(), 0);
    for (const KernelProfile& profile : counted.profiles)
      for (std::size_t k = 0; k < seconds.size(); ++k)
        if (generated.launch.kernels[k].name == profile.kernel) seconds[k] += counted_seconds(profile, target);
    return {std::move(counted.outputs), std::move(seconds)};
  }

  TensorMap run_compiled(const Graph& graph, const TensorMap& tensors) {
    PipelineOptions options = pipeline_options(a_.compile, std::max(cuda_, 0));
    // The emulator runs PTX. Only a profile needs the cubin, for the number of registers.
    if (cuda_ < 0 && a_.profile.empty()) options.compile.cubin = CubinUse::kProof;
    pipeline_.emplace(std::move(options));
    planned_.emplace(pipeline_->plan(graph));
    return execute(*planned_, tensors, cuda_ >= 0 ? std::max(a_.bench, 0) : 0, [this](EmulatorRun& run) { tell(run); });
  }

  struct EmulatorRun {
    EmulatorResult result;
    const std::vector<CompiledModule>& modules;
    const std::vector<emulator::Module>& parsed;
  };

  // Compiles the planned model and runs it. On the emulator calls `told` with the run's findings and profiles.
  TensorMap execute(PlannedModel& planned, const TensorMap& tensors, int bench,
                    const std::function<void(EmulatorRun&)>& told) {
    const unsigned processors = std::max(1u, std::thread::hardware_concurrency());
    const GeneratedModel generated = pipeline_->generate(planned, processors);
    for (const std::string& warning : generated.launch.warnings) report_.warning(warning);
    const std::vector<CompiledModule> modules = pipeline_->compile(*nvrtc_, generated);
    if (cuda_ >= 0) return run_on_gpu(planned, generated, modules, tensors, bench);
    emulator::Options options;
    options.threads = static_cast<int>(processors);
    options.sample_blocks = a_.sample_blocks;
    std::optional<HostPart> host;
    if (a_.host_part == "recorded") host.emplace(generated.file.text, planned.source_graph(), generated.launch);
    const std::vector<emulator::Module> parsed = parse_units(modules);
    EmulatorRun run{{}, modules, parsed};
    timed("run", [&] {
      run.result = run_on_emulator(planned.source_graph(), generated.launch, parsed, generated.file.unit_of,
                                   pipeline_->options().target, tensors, options, host ? &*host : nullptr);
    });
    told(run);
    return std::move(run.result.outputs);
  }

  // Prints the emulator's findings, and writes the profile if requested.
  void tell(EmulatorRun& run) {
    EmulatorResult& result = run.result;
    findings_ += result.findings.size();
    for (const std::string& finding : result.findings) report_.finding(finding);
    for (const std::vector<KernelProfile>* profiles : {&result.prepared, &result.profiles})
      for (const KernelProfile& profile : *profiles) {
        findings_ += profile.report.findings.size();
        for (const emulator::Finding& finding : profile.report.findings) report_.finding(emulator::describe(finding));
      }
    if (a_.profile.empty()) return;
    add_costs(result.profiles, run.modules, run.parsed, pipeline_->options().target);
    write_output(a_.profile,
                 a_.compile.json || a_.profile != "-" ? profile_json(result.profiles) : profile_text(result.profiles));
  }

  TensorMap run_on_gpu(const PlannedModel& planned, const GeneratedModel& generated,
                       const std::vector<CompiledModule>& modules, const TensorMap& tensors, int bench) {
    CudaResult result;
    timed("run",
          [&] { result = run_on_cuda(planned.source_graph(), generated.launch, modules, tensors, cuda_, bench); });
    if (!result.seconds.empty()) {
      std::sort(result.seconds.begin(), result.seconds.end());
      report_.bench(result.seconds);
    }
    return std::move(result.outputs);
  }

  void tell_why(const Graph& graph, const TensorMap& tensors) {
    tell_wrong_node(tensors, tolerance_of(a_));
    if (quantizes(graph) && !pipeline_->options().emit.round_intermediates)
      report_.hint(
          "values are quantized on the way, and kernels round fewer intermediates than the reference: one "
          "code more or less may be the whole difference, which --round-intermediates tells");
  }

  static bool quantizes(const Graph& graph) {
    return std::ranges::any_of(graph.nodes, [](const Node& node) { return node.op->name.starts_with("quantize"); });
  }

  void tell_wrong_node(const TensorMap& tensors, const std::optional<Tolerance>& tolerance) {
    const auto run_again = [&](const Graph& graph, const FusionPlan& plan) {
      PlannedModel again{graph, {}, planned_->kinds, plan, planned_->report, {}};
      return execute(again, tensors, 0, [](EmulatorRun&) {});
    };
    const auto wrong =
        find_wrong_node(planned_->graph, planned_->plan, tensors, tolerance, run_again, a_.compile.options.allow_tf32);
    if (!wrong) {
      report_.finding("the values between the kernels agree when they are looked at");
      return;
    }
    report_.wrong_node(wrong->node, planned_->plan.groups[wrong->group].name, wrong->inside, wrong->difference);
  }

  const Arguments& a_;
  int cuda_;
  std::size_t findings_ = 0;
  std::shared_ptr<const Nvrtc> nvrtc_;
  std::optional<Pipeline> pipeline_;
  std::optional<PlannedModel> planned_;
  std::vector<StageTime> times_;
  RunReport report_;
};

// Runs one kernel of a PTX file on the emulator.
int run_ptx(const Arguments& a) {
  if (a.kernel.empty()) throw Error(ErrorKind::kUsage, Error::Parts{.what = "--ptx without --kernel"});
  check_written(std::vector{a.outputs, a.profile}, std::vector{a.ptx, a.inputs});
  emulator::PtxCommand command;
  command.ptx_file = a.ptx;
  command.kernel = a.kernel;
  command.grid = emulator::parse_dim3(a.grid, "--grid");
  command.block = emulator::parse_dim3(a.block, "--block");
  if (!a.cluster.empty()) command.cluster = emulator::parse_dim3(a.cluster, "--cluster");
  command.dynamic_shared_bytes = a.shared;
  command.arguments = a.kernel_arguments;
  command.inputs_file = a.inputs;
  command.outputs_file = a.outputs;
  command.options.threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  command.options.sample_blocks = a.sample_blocks;
  KernelProfile profile;
  profile.kernel = a.kernel;
  const emulator::PtxReport report = emulator::run_ptx_command(command);
  profile.report = report;
  profile.least_bytes = static_cast<std::int64_t>(report.least_bytes);
  const bool good = profile.report.findings.empty();
  RunReport told(a.compile.json, a.compile.quiet, "emulator");
  for (const emulator::Finding& finding : profile.report.findings) told.finding(emulator::describe(finding));
  if (!a.profile.empty()) {
    const bool json = a.compile.json || a.profile != "-";
    write_output(a.profile, json ? profile_json({profile}) : profile_text({profile}));
  }
  told.finish(good);
  return good ? 0 : 1;
}

int run(const Arguments& a) {
  if (!a.ptx.empty()) {
    if (!a.compile.model.empty())
      throw Error(ErrorKind::kUsage, Error::Parts{.what = "a model and --ptx", .expected = "one of them"});
    return run_ptx(a);
  }
  if (a.compile.model.empty())
    throw Error(ErrorKind::kUsage,
                Error::Parts{.what = "no model is given", .expected = "a model file, or --ptx=FILE"});
  if (a.device != "reference" && a.device != "emulator" && device_number(a.device) < 0)
    throw Error(
        ErrorKind::kUsage,
        Error::Parts{.what = "--device",
                     .found = in_quotes(a.device),
                     .expected = "reference, emulator or cuda[:N]",
                     .hint = did_you_mean(a.device, std::vector<std::string_view>{"reference", "emulator", "cuda"})});
  require_devices_of_options(a);
  std::vector<std::string> read = files_read(a.compile);
  read.insert(read.end(), {a.inputs, a.expected});
  check_written(std::vector{a.outputs, a.profile}, read);
  if (a.tune && (a.device == "reference" || a.compile.options.tuning_file.empty()))
    throw Error(ErrorKind::kUsage, Error::Parts{.what = "--tune",
                                                .found = "no --tuning-db=FILE, or a device without kernels",
                                                .expected = "--tune --tuning-db=FILE --device=cuda (or emulator)"});
  return Run(a).run();
}

}  // namespace
}  // namespace fusec

int main(int argc, char** argv) try {
  CLI::App app{
      "fusec-run executes a model: on the reference device, on the PTX emulator, or on a GPU.\n\n"
      "  fusec-run model.json --inputs=in.safetensors --outputs=out.safetensors --device=emulator\n"};
  app.set_version_flag("--version", std::string("fusec-run ") + FUSEC_VERSION);
  fusec::Arguments a;
  fusec::add_compile_options(app, a.compile, false);
  app.add_option("--device", a.device, "DEVICE: reference, emulator or cuda[:N], for which --arch is native by default")
      ->capture_default_str();
  app.add_option("--inputs", a.inputs, "FILE: the inputs and data-less constants by name, as safetensors");
  app.add_option("--outputs", a.outputs, "FILE: where the outputs go, as safetensors");
  // Flags with optional values: a value only follows "=", so that the model may follow the flag.
  std::string seed, runs;
  auto* random = app.add_flag("--random{0}", seed, "make the inputs at random; =SEED");
  auto* verify =
      app.add_flag("--verify{default}", a.verify,
                   "compare with the reference device; =RTOL,ATOL, taken as they are; else by dtype: "
                   "float32 2e-5,1e-4; float16 1e-2,1e-2; bfloat16 3e-2,3e-2, those of 16 bits also for what is "
                   "computed from values of theirs; under --allow-tf32 2e-3,2e-2 for what float32 products lead to; "
                   "times an output's root mean square where that is over 1; or no further from float64 than op-by-op "
                   "rounding is (docs/numerics.md)");
  app.add_option("--expect", a.expected, "FILE: compare with the outputs in this safetensors file, by name");
  app.add_option("--tolerance", a.tolerance, "RTOL,ATOL: for --expect and --verify, in place of the defaults");
  auto* bench = app.add_flag("--bench{100}", runs, "time that many further runs (cuda); =N");
  app.add_flag(
      "--tune", a.tune,
      "measure the ways that kernels can go, and keep the fastest in the file of --tuning-db, for --tuning-db of "
      "later compilations (cuda; on the emulator from counted figures)");
  app.add_option("--profile", a.profile, "FILE: what every kernel touched; - is standard output (emulator)");
  fusec::one_of(
      app.add_option("--host-part", a.host_part,
                     "plan, or recorded: compile the host part of out.cu with $CXX against a stand-in of the CUDA "
                     "runtime, hold it against the plan, and execute what it launches (emulator)"),
      {"plan", "recorded"})
      ->capture_default_str();
  fusec::whole_number(
      app.add_option("--sample-blocks", a.sample_blocks, "N: run only about so many blocks of each kernel (emulator)"),
      0);
  app.add_option("--ptx", a.ptx, "FILE: run one of the kernels of this PTX on the emulator instead of a model");
  app.add_option("--kernel", a.kernel, "NAME: the kernel");
  app.add_option("--grid", a.grid, "X,Y,Z: blocks")->capture_default_str();
  app.add_option("--block", a.block, "X,Y,Z: threads of a block")->capture_default_str();
  app.add_option("--cluster", a.cluster, "X,Y,Z: blocks of a cluster");
  fusec::whole_number(app.add_option("--shared", a.shared, "N: bytes of dynamic shared memory"), 0);
  app.add_option("--arg", a.kernel_arguments,
                 "ARG: one a parameter: in:NAME, out:NAME:DTYPE:SHAPE, i32:V, null, tensormap:NAME:BOX:SWIZZLE, ...")
      ->allow_extra_args(false)
      ->take_all();
  return fusec::run_program(app, argc, argv, a.compile, [&] {
    a.verify_given = verify->count() > 0;
    if (random->count() > 0) a.random = fusec::number_in<std::uint64_t>(seed, "--random");
    const bool names_target = app.get_option_no_throw("--arch")->count() > 0 || !a.compile.options.target.empty();
    if (!names_target && fusec::device_number(a.device) >= 0) a.compile.options.arch = "native";
    if (bench->count() > 0) a.bench = fusec::number_in<int>(runs, "--bench");
    return fusec::run(a);
  });
} catch (const std::bad_alloc&) {
  return fusec::end_without_memory();
}
