#include "runtime/emulated_call.h"

#include <algorithm>
#include <cstring>
#include <thread>

#include "ir/error.h"
#include "runtime/collective.h"
#include "runtime/device_call.h"
#include "schedule/target/target.h"

namespace fusec {
namespace {

class Call {
 public:
  Call(const ManifestModel& model, const ResolvedCall& call, const EmulatedKernels& kernels,
       const Communicate& communicate)
      : model_(model), call_(call), kernels_(kernels), communicate_(communicate) {}

  void hold(std::span<void* const> arguments, std::span<void* const> results) {
    const Graph& graph = model_.graph;
    std::size_t argument = 0;
    for (std::uint32_t i = 0; i < graph.inputs.size(); ++i) {
      const bool written = std::ranges::any_of(model_.results, [&](const auto& r) { return r.alias_of == i; });
      add(BufferRef::Kind::kInput, i, graph.value(graph.inputs[i]).name, arguments[argument++],
          bytes_of(graph.tensor(graph.inputs[i])), true, written);
    }
    for (std::uint32_t c = 0; c < graph.constants.size(); ++c) {
      const ValueId v = graph.constants[c].value;
      const auto& embedded = model_.embedded[c];
      void* data = embedded ? const_cast<std::byte*>(embedded->bytes.data()) : arguments[argument++];
      add(embedded ? BufferRef::Kind::kEmbedded : BufferRef::Kind::kConstant, c, graph.value(v).name, data,
          bytes_of(graph.tensor(v)), true, false);
    }
    for (std::uint32_t i = 0; i < model_.results.size(); ++i)
      if (!model_.results[i].alias_of)
        add(BufferRef::Kind::kOutput, i, model_.results[i].name, results[i], bytes_of(model_.results[i].type), false,
            true);
    workspace_.resize(static_cast<std::size_t>(call_.plan.workspace_bytes));
    prepared_.resize(static_cast<std::size_t>(call_.plan.prepared_bytes));
    add(BufferRef::Kind::kWorkspace, 0, "workspace", workspace_.data(), workspace_.size(), false, true);
    add(BufferRef::Kind::kPrepared, 0, "prepared memory", prepared_.data(), prepared_.size(), false, true);
  }

  void run(int threads) {
    options_.threads = threads > 0 ? threads : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    options_.max_shared_bytes = static_cast<std::uint64_t>(target_for(model_.arch).shared_bytes_per_block);
    run(call_.plan.prepare_steps);
    run(call_.plan.steps);
  }

 private:
  using Key = std::pair<BufferRef::Kind, std::uint32_t>;

  std::size_t bytes_of(const TensorType& type) const {
    const Dim count = element_count(type.shape).value();
    const std::int64_t elements = evaluate(count, [&](Variable v) { return call_.symbols.at(v.id); });
    return static_cast<std::size_t>(packed_bytes(type.dtype, elements));
  }

  void add(BufferRef::Kind kind, std::uint32_t index, const std::string& name, void* data, std::size_t bytes,
           bool initialized, bool writable) {
    ids_[{kind, index}] = memory_.add({.name = name,
                                       .bytes = {static_cast<std::byte*>(data), bytes},
                                       .initialized = initialized,
                                       .writable = writable});
  }

  void run(const std::vector<ResolvedStep>& steps) {
    const auto base = [&](BufferRef::Kind kind, std::uint32_t index) {
      return memory_.address(ids_.at({kind, index}));
    };
    for (const ResolvedStep& step : steps) {
      if (step.kind == LaunchStep::Kind::kCopy)
        copy(step);
      else if (step.kind == LaunchStep::Kind::kCollective)
        communicate(step);
      else
        launch(planned_calls(model_.graph, model_.plan, {&step, 1}, call_.symbols, base).front());
    }
  }

  std::byte* host_memory(const ResolvedArgument& a) {
    return memory_.buffer(ids_.at({a.buffer, a.index})).bytes.data() + a.offset;
  }
  void mark_written(const ResolvedArgument& a, std::size_t bytes) {
    memory_.mark_written(ids_.at({a.buffer, a.index}), static_cast<std::size_t>(a.offset), bytes);
  }

  void copy(const ResolvedStep& step) {
    const auto bytes = static_cast<std::size_t>(step.bytes);
    std::memmove(host_memory(step.arguments[0]), host_memory(step.arguments[1]), bytes);
    mark_written(step.arguments[0], bytes);
  }

  void communicate(const ResolvedStep& step) {
    const ManifestCollective& collective = model_.collectives[step.step->node];
    const ResolvedArgument &from = step.arguments[0], &to = step.arguments[1];
    for (const Collective& call : collectives_of(collective, call_.symbols, host_memory(from), host_memory(to)))
      communicate_(call, nullptr);
    mark_written(to, bytes_of(collective.result));
  }

  void launch(const DeviceCall& call) {
    const auto dims = [](const std::array<std::int64_t, 3>& d) {
      return emulator::Dim3{static_cast<std::uint32_t>(d[0]), static_cast<std::uint32_t>(d[1]),
                            static_cast<std::uint32_t>(d[2])};
    };
    const emulator::Launch launch{.kernel = call.name,
                                  .grid = dims(call.grid),
                                  .block = dims(call.block),
                                  .dynamic_shared_bytes = static_cast<std::uint32_t>(call.dynamic_shared),
                                  .arguments = call.arguments};
    const emulator::Report report = emulator::run(kernels_.module_of(call.name), launch, memory_, options_);
    if (!report.findings.empty())
      throw Error(ErrorKind::kEnvironment,
                  Error::Parts{.what = "the emulator found a fault in " + call.name,
                               .found = emulator::describe(report),
                               .hint = "this is a bug in fusec; please report it with the model"});
  }

  const ManifestModel& model_;
  const ResolvedCall& call_;
  const EmulatedKernels& kernels_;
  const Communicate& communicate_;
  emulator::Options options_;
  emulator::Memory memory_;
  std::map<Key, emulator::Memory::Id> ids_;
  std::vector<std::byte> workspace_, prepared_;
};

}  // namespace

EmulatedKernels::EmulatedKernels(std::span<const KernelImage> images) {
  for (const KernelImage& image : images) {
    if (!image.ptx || image.ptx->empty())
      throw Error(ErrorKind::kEnvironment, Error::Parts{.what = "the module has no PTX, which the emulator executes",
                                                        .hint = "compile with PTX, or run on a GPU or the reference"});
    modules_.emplace_back(*image.ptx, "image " + std::to_string(modules_.size()));
    for (const std::string& kernel : modules_.back().kernels()) module_of_[kernel] = modules_.size() - 1;
  }
}

const emulator::Module& EmulatedKernels::module_of(const std::string& kernel) const {
  const auto found = module_of_.find(kernel);
  if (found == module_of_.end())
    throw Error(ErrorKind::kInput, Error::Parts{.what = "the compiled kernels lack one", .found = kernel});
  return modules_[found->second];
}

void run_on_emulator(const ManifestModel& model, const ResolvedCall& call, const EmulatedKernels& kernels,
                     std::span<void* const> arguments, std::span<void* const> results, int threads,
                     const Communicate& communicate) {
  require_communication(model, communicate);
  Call emulated(model, call, kernels, communicate);
  emulated.hold(arguments, results);
  emulated.run(threads);
}

}  // namespace fusec
