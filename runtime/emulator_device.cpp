#include "runtime/emulator_device.h"

#include <cstring>
#include <map>

#include "ir/error.h"
#include "runtime/resolve_steps.h"

namespace fusec {
namespace {

class Device {
 public:
  Device(const Graph& graph, const LaunchPlan& plan, const std::vector<CompiledModule>& modules,
         const std::vector<std::uint32_t>& unit_of, const TensorMap& tensors, emulator::Options options)
      : graph_(graph), plan_(plan), unit_of_(unit_of), options_(options) {
    for (std::size_t u = 0; u < modules.size(); ++u)
      modules_.emplace_back(modules[u].ptx, "unit " + std::to_string(u) + " of out.cu");
    symbols_ = solve_symbols(graph, tensors);
    resolved_ = resolve_steps(graph, plan, symbols_);
    for (std::uint32_t i = 0; i < graph.inputs.size(); ++i)
      add(BufferRef::Kind::kInput, i, graph.inputs[i], tensors.at(graph.value(graph.inputs[i]).name), true,
          is_alias_target(graph.inputs[i]));
    for (std::uint32_t i = 0; i < graph.constants.size(); ++i) {
      const Constant& constant = graph.constants[i];
      const auto given = tensors.find(graph.value(constant.value).name);
      HostTensor tensor = given != tensors.end() ? given->second : constant_tensor(graph, constant);
      add(constant.data ? BufferRef::Kind::kEmbedded : BufferRef::Kind::kConstant, i, constant.value, std::move(tensor),
          true, false);
    }
    for (std::uint32_t i = 0; i < plan.results.size(); ++i) {
      const TensorType& type = graph.tensor(plan.results[i]);
      std::vector<std::int64_t> shape;
      for (const Dim& dim : type.shape) shape.push_back(value(dim));
      add(BufferRef::Kind::kOutput, i, plan.results[i], HostTensor(type.dtype, shape), false, true);
    }
    workspace_.resize(static_cast<std::size_t>(resolved_.workspace_bytes));
    workspace_id_ = memory_.add({.name = "workspace", .bytes = workspace_, .initialized = false, .writable = true});
  }

  EmulatorResult run() {
    EmulatorResult result;
    for (const ResolvedStep& step : resolved_.steps) {
      if (step.kind == LaunchStep::Kind::kCopy)
        copy(step);
      else
        result.profiles.push_back(launch(step));
    }
    for (std::uint32_t i = 0; i < plan_.results.size(); ++i) {
      const ValueId v = plan_.results[i];
      const HostTensor* tensor = &held_.at({BufferRef::Kind::kOutput, i}).tensor;
      for (const Alias& alias : graph_.aliases)
        if (alias.output == v) tensor = &held_.at({BufferRef::Kind::kInput, graph_.value(alias.input).index}).tensor;
      result.outputs[graph_.value(v).name] = *tensor;
    }
    return result;
  }

 private:
  struct Held {
    HostTensor tensor;
    emulator::Memory::Id id = 0;
  };
  using Key = std::pair<BufferRef::Kind, std::uint32_t>;

  std::int64_t value(const IndexExpr& e) const {
    return evaluate(e, [&](Variable v) { return symbols_.at(v.id); });
  }

  bool is_alias_target(ValueId v) const {
    for (const Alias& alias : graph_.aliases)
      if (alias.input == v) return true;
    return false;
  }

  void add(BufferRef::Kind kind, std::uint32_t index, ValueId v, HostTensor tensor, bool initialized, bool writable) {
    Held& held = held_[{kind, index}];
    held.tensor = std::move(tensor);
    held.id = memory_.add(
        {.name = graph_.value(v).name, .bytes = held.tensor.bytes, .initialized = initialized, .writable = writable});
  }

  emulator::Memory::Id id_of(const ResolvedArgument& a) const {
    return a.buffer == BufferRef::Kind::kWorkspace ? workspace_id_ : held_.at({a.buffer, a.index}).id;
  }

  void copy(const ResolvedStep& step) {
    const ResolvedArgument &to = step.arguments[0], &from = step.arguments[1];
    const auto bytes = static_cast<std::size_t>(step.bytes);
    const auto at = static_cast<std::size_t>(to.offset);
    std::memmove(memory_.buffer(id_of(to)).bytes.data() + at, memory_.buffer(id_of(from)).bytes.data() + from.offset,
                 bytes);
    memory_.mark_written(id_of(to), at, bytes);
  }

  KernelProfile launch(const ResolvedStep& step) {
    const KernelSource& kernel = plan_.kernels[step.kernel];
    emulator::Launch launch;
    launch.kernel = kernel.name;
    auto dims = [](auto x, auto y, auto z) {
      return emulator::Dim3{static_cast<std::uint32_t>(x), static_cast<std::uint32_t>(y),
                            static_cast<std::uint32_t>(z)};
    };
    launch.grid = dims(step.grid[0], step.grid[1], step.grid[2]);
    launch.block = dims(kernel.block[0], kernel.block[1], kernel.block[2]);
    launch.dynamic_shared_bytes = static_cast<std::uint32_t>(step.dynamic_shared);
    for (const ResolvedArgument& a : step.arguments) {
      if (!a.is_size)
        launch.arguments.push_back(emulator::pointer_argument(memory_, id_of(a), a.offset));
      else if (a.bits == 64)
        launch.arguments.push_back(emulator::scalar_argument<std::int64_t>(a.size));
      else
        launch.arguments.push_back(emulator::scalar_argument<std::int32_t>(static_cast<std::int32_t>(a.size)));
    }
    KernelProfile profile;
    profile.kernel = kernel.name;
    for (const std::vector<ValueId>* list : {&step.step->reads, &step.step->writes})
      for (const ValueId v : *list) {
        const TensorType& type = graph_.tensor(v);
        profile.least_bytes += packed_bytes(type.dtype, value(*element_count(type.shape)));
      }
    profile.report = emulator::run(modules_.at(unit_of_[step.kernel]), launch, memory_, options_);
    return profile;
  }

  const Graph& graph_;
  const LaunchPlan& plan_;
  const std::vector<std::uint32_t>& unit_of_;
  emulator::Options options_;
  std::vector<emulator::Module> modules_;
  std::vector<std::int64_t> symbols_;
  ResolvedPlan resolved_;
  emulator::Memory memory_;
  std::map<Key, Held> held_;
  std::vector<std::byte> workspace_;
  emulator::Memory::Id workspace_id_ = 0;
};

}  // namespace

EmulatorResult run_on_emulator(const Graph& graph, const LaunchPlan& plan, const std::vector<CompiledModule>& modules,
                               const std::vector<std::uint32_t>& unit_of, const Target& target,
                               const TensorMap& tensors, emulator::Options options) {
  options.max_shared_bytes = static_cast<std::uint64_t>(target.shared_bytes_per_block);
  return Device(graph, plan, modules, unit_of, tensors, options).run();
}

}  // namespace fusec
