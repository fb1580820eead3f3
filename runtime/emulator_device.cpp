#include "runtime/emulator_device.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "ir/error.h"
#include "runtime/cubin_resources.h"
#include "runtime/device_call.h"
#include "runtime/emulator/tensor_map.h"
#include "runtime/emulator_arena.h"
#include "runtime/host_part/check_host_part.h"

namespace fusec {
namespace {

class EmulatorDevice {
 public:
  EmulatorDevice(const Graph& graph, const LaunchPlan& plan, const std::vector<emulator::Module>& modules,
                 const std::vector<std::uint32_t>& unit_of, const TensorMap& tensors, emulator::Options options)
      : graph_(graph), plan_(plan), unit_of_(unit_of), options_(options), modules_(modules) {
    symbols_ = solve_symbols(graph, tensors);
    require_executable(graph, plan);
    resolved_ = resolve_steps(plan, symbols_);
    for (std::uint32_t i = 0; i < graph.inputs.size(); ++i)
      add(BufferRef::Kind::kInput, i, graph.inputs[i], tensors.at(graph.value(graph.inputs[i]).name), true,
          is_alias_target(graph.inputs[i]));
    ConstantReader constants(graph);
    for (std::uint32_t i = 0; i < graph.constants.size(); ++i) {
      const Constant& constant = graph.constants[i];
      const auto given = tensors.find(graph.value(constant.value).name);
      HostTensor tensor = given != tensors.end() ? given->second : constants.read(constant);
      add(constant.data ? BufferRef::Kind::kEmbedded : BufferRef::Kind::kConstant, i, constant.value, std::move(tensor),
          true, false);
    }
    for (std::uint32_t i = 0; i < plan.results.size(); ++i) {
      const TensorType& type = graph.tensor(plan.results[i]);
      std::vector<std::int64_t> shape;
      for (const Dim& dim : type.shape) shape.push_back(value(dim));
      add(BufferRef::Kind::kOutput, i, plan.results[i], HostTensor(type.dtype, shape), false, true);
    }
    arena_.emplace(graph, "workspace", plan.arena, resolved_.arena, resolved_.workspace_bytes, memory_);
    prepared_.emplace(graph, "prepared memory", plan.prepared_values, resolved_.prepared_values,
                      resolved_.prepared_bytes, memory_);
  }

  EmulatorResult run(HostPart* host) {
    EmulatorResult result;
    Calls calls{planned(resolved_.prepare_steps), planned(resolved_.steps)};
    if (host) calls = recorded_calls(*host, calls);
    execute(resolved_.prepare_steps, calls.prepare, *prepared_, result.prepared, result.findings);
    prepared_->begin_step(static_cast<std::uint32_t>(plan_.prepare_steps.size()));
    if (options_.sample_blocks == 0) result.findings = prepared_->seal();
    execute(resolved_.steps, calls.launch, *arena_, result.profiles, result.findings);
    for (std::uint32_t i = 0; i < plan_.results.size(); ++i) {
      const ValueId v = plan_.results[i];
      const HostTensor* tensor = &held_.at({BufferRef::Kind::kOutput, i}).tensor;
      for (const Alias& alias : graph_.aliases)
        if (alias.output == v) tensor = &held_.at({BufferRef::Kind::kInput, graph_.value(alias.input).index}).tensor;
      result.outputs[graph_.value(v).name] = *tensor;
      check_written(i, tensor, result.findings);
    }
    return result;
  }

 private:
  struct Held {
    HostTensor tensor;
    emulator::Memory::Id id = 0;
  };
  using Key = std::pair<BufferRef::Kind, std::uint32_t>;

  // The operations that M_prepare and M_launch enqueue.
  struct Calls {
    std::vector<DeviceCall> prepare, launch;
  };

  std::vector<DeviceCall> planned(const std::vector<ResolvedStep>& steps) const {
    return planned_calls(graph_, plan_, steps, symbols_,
                         [this](BufferRef::Kind kind, std::uint32_t index) { return base_address(kind, index); });
  }

  void execute(const std::vector<ResolvedStep>& steps, const std::vector<DeviceCall>& calls, EmulatorArena& arena,
               std::vector<KernelProfile>& profiles, std::vector<std::string>& findings) {
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const ResolvedStep& step = steps[i];
      arena.begin_step(step.position);
      write_left_out();
      if (step.kind == LaunchStep::Kind::kCopy)
        copy(step, calls[i]);
      else if (step.kind == LaunchStep::Kind::kMatrixCall)
        multiply(step, *calls[i].product, findings);
      else if (step.kind == LaunchStep::Kind::kCollective)
        collect(step, calls[i], findings);
      else
        profiles.push_back(launch(step, calls[i]));
    }
  }

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

  HostArguments host_arguments() const {
    HostArguments a;
    for (const ValueId v : plan_.arguments) {
      const Value& value_of = graph_.value(v);
      const bool input = value_of.kind == Value::Kind::kInput;
      const Key key{input ? BufferRef::Kind::kInput : BufferRef::Kind::kConstant, value_of.index};
      a.arguments.push_back({base_address(key.first, key.second), held_.at(key).tensor.shape});
    }
    for (std::uint32_t i = 0; i < plan_.results.size(); ++i) {
      const bool aliased = std::any_of(graph_.aliases.begin(), graph_.aliases.end(),
                                       [&](const Alias& alias) { return alias.output == plan_.results[i]; });
      a.results.push_back(aliased ? 0 : base_address(BufferRef::Kind::kOutput, i));
    }
    return a;
  }

  // The operations that the compiled host part enqueues. Throws InternalError if they differ from the planned ones.
  Calls recorded_calls(HostPart& host, const Calls& planned) {
    const HostArguments arguments = host_arguments();
    const std::vector<std::string> wrong = check_host_part(host, graph_, plan_, arguments);
    if (!wrong.empty()) throw InternalError(fmt::format("the host part: {}", fmt::join(wrong, "\n  ")));
    std::string fault;
    const int created =
        host.create([&](std::size_t position, std::span<const std::byte> bytes) -> std::optional<std::uint64_t> {
          const std::uint32_t index = graph_.value(plan_.embedded.at(position)).index;
          const Held& constant = held_.at({BufferRef::Kind::kEmbedded, index});
          const std::vector<std::byte>& expected = constant.tensor.bytes;
          if (bytes.size() < expected.size() || !std::equal(expected.begin(), expected.end(), bytes.begin()))
            fault = "the bytes of constant \"" + graph_.value(plan_.embedded[position]).name + "\" are others";
          return memory_.address(constant.id);
        });
    if (created != 0 || !fault.empty()) throw InternalError("the host part: M_create fails: " + fault);
    const auto take = [](const char* function, HostAnswer answer, const std::vector<DeviceCall>& expected) {
      const std::string difference = first_difference(answer.calls, expected);
      if (answer.status != 0 || !difference.empty())
        throw InternalError(fmt::format("the host part: {} fails: {}{}", function, answer.error, difference));
      return std::move(answer.calls);
    };
    return {take("M_prepare", host.prepare(&arguments, prepared_->window()), planned.prepare),
            take("M_launch", host.launch(&arguments, prepared_->window(), arena_->window()), planned.launch)};
  }

  // Adds a finding if an output with its own buffer has an unwritten byte.
  void check_written(std::uint32_t result, const HostTensor* tensor, std::vector<std::string>& findings) const {
    const Held& held = held_.at({BufferRef::Kind::kOutput, result});
    if (tensor != &held.tensor || options_.sample_blocks != 0) return;
    const auto byte = memory_.first_unwritten(held.id);
    if (!byte) return;
    findings.push_back(
        fmt::format("nobody wrote byte {} of output \"{}\"", *byte, graph_.value(plan_.results[result]).name));
  }

  // The address of a buffer as the model's caller passes it. Workspace and prepared memory have one address each.
  std::uint64_t base_address(BufferRef::Kind kind, std::uint32_t index) const {
    if (kind == BufferRef::Kind::kWorkspace) return arena_->window();
    return kind == BufferRef::Kind::kPrepared ? prepared_->window() : memory_.address(held_.at({kind, index}).id);
  }

  // The emulator's buffer and offset of an address argument.
  struct Place {
    emulator::Memory::Id id;
    std::int64_t offset;
  };
  Place place_of(const ResolvedArgument& a, const std::vector<std::byte>& argument) const {
    const std::uint64_t address = address_of(argument);
    if (a.buffer == BufferRef::Kind::kWorkspace || a.buffer == BufferRef::Kind::kPrepared) {
      const EmulatorArena& arena = a.buffer == BufferRef::Kind::kWorkspace ? *arena_ : *prepared_;
      return {arena.buffer(a.index), arena.offset_in(a.index, address)};
    }
    return {held_.at({a.buffer, a.index}).id, static_cast<std::int64_t>(address - base_address(a.buffer, a.index))};
  }

  void copy(const ResolvedStep& step, const DeviceCall& call) {
    const Place to = place_of(step.arguments[0], call.arguments[0]);
    const Place from = place_of(step.arguments[1], call.arguments[1]);
    const auto bytes = static_cast<std::size_t>(call.bytes);
    const auto inside = [&](const Place& place) {
      return place.offset >= 0 &&
             static_cast<std::size_t>(place.offset) + bytes <= memory_.buffer(place.id).bytes.size();
    };
    if (!inside(to) || !inside(from)) throw InternalError("a copy of the launch plan is out of bounds");
    std::memmove(memory_.buffer(to.id).bytes.data() + to.offset, memory_.buffer(from.id).bytes.data() + from.offset,
                 bytes);
    memory_.mark_written(to.id, static_cast<std::size_t>(to.offset), bytes);
  }

  // Bytes at an address that a library call reads or writes; the address must be in a buffer of one of its arguments.
  std::span<std::byte> bytes_at(const ResolvedStep& step, std::uint64_t address, std::int64_t count, bool written,
                                std::vector<std::string>& findings) {
    const auto size = static_cast<std::size_t>(count);
    for (const ResolvedArgument& a : step.arguments) {
      const Place place = place_of(a, address_bytes(address));
      const std::span<std::byte> bytes = memory_.buffer(place.id).bytes;
      const auto offset = static_cast<std::size_t>(place.offset);
      if (place.offset < 0 || offset + size > bytes.size()) continue;
      const auto byte = written ? std::nullopt : memory_.first_unwritten(place.id, offset);
      if (byte && *byte < offset + size)
        findings.push_back(fmt::format("a library reads byte {} of \"{}\", which nobody has written", *byte,
                                       memory_.buffer(place.id).name));
      if (written) memory_.mark_written(place.id, offset, size);
      return bytes.subspan(offset, size);
    }
    throw InternalError("a call of a library is out of bounds");
  }

  // Computes a cuBLASLt call.
  void multiply(const ResolvedStep& step, const MatrixProduct& product, std::vector<std::string>& findings) {
    fusec::multiply(product, [&](std::uint64_t address, std::int64_t count, bool written) {
      return bytes_at(step, address, count, written, findings);
    });
  }

  // Executes an NCCL call for a group of one device, which copies the operand.
  void collect(const ResolvedStep& step, const DeviceCall& call, std::vector<std::string>& findings) {
    if (call.arguments.empty()) return;
    const std::int64_t bytes = call.extents.at(0) * (bits(graph_.tensor(step.step->reads[0]).dtype) / 8);
    for (std::size_t i = 0; i < call.arguments.size(); i += 2) {
      const auto from = bytes_at(step, address_of(call.arguments[i]), bytes, false, findings);
      const auto to = bytes_at(step, address_of(call.arguments[i + 1]), bytes, true, findings);
      std::memmove(to.data(), from.data(), from.size());
    }
  }

  // Marks as written what blocks of the last kernel outside the sample would have written.
  void write_left_out() {
    for (const Place& place : std::exchange(left_out_, {})) {
      const auto offset = static_cast<std::size_t>(place.offset);
      memory_.mark_written(place.id, offset, std::numeric_limits<std::size_t>::max() - offset);
    }
  }

  KernelProfile launch(const ResolvedStep& step, const DeviceCall& call) {
    emulator::Launch launch;
    launch.kernel = call.name;
    auto dims = [](const std::array<std::int64_t, 3>& d) {
      return emulator::Dim3{static_cast<std::uint32_t>(d[0]), static_cast<std::uint32_t>(d[1]),
                            static_cast<std::uint32_t>(d[2])};
    };
    launch.grid = dims(call.grid);
    launch.block = dims(call.block);
    launch.resident_blocks = static_cast<std::uint64_t>(plan_.kernels.at(step.kernel).resident_blocks);
    launch.dynamic_shared_bytes = static_cast<std::uint32_t>(call.dynamic_shared);
    launch.arguments = call.arguments;
    std::vector<Place> places;
    for (std::size_t i = 0; i < step.arguments.size(); ++i) {
      if (step.arguments[i].is_size) continue;
      const auto map = step.arguments[i].boxes ? emulator::decode_tensor_map(call.arguments[i]) : std::nullopt;
      const Place place = place_of(step.arguments[i], map ? address_bytes(map->address) : call.arguments[i]);
      launch.arguments[i] = map ? tensor_map_bytes(*step.arguments[i].boxes, memory_.address(place.id, place.offset))
                                : emulator::pointer_argument(memory_, place.id, place.offset);
      places.push_back(place);
    }
    KernelProfile profile;
    profile.kernel = call.name;
    profile.threads = static_cast<int>(launch.block.count());
    profile.dynamic_shared = call.dynamic_shared;
    for (const std::vector<ValueId>* list : {&step.step->reads, &step.step->writes})
      for (const ValueId v : *list) {
        const TensorType& type = graph_.tensor(v);
        profile.least_bytes += packed_bytes(type.dtype, value(*element_count(type.shape)));
      }
    profile.report = emulator::run(modules_.at(unit_of_[step.kernel]), launch, memory_, options_);
    if (profile.report.sampled) left_out_ = std::move(places);
    return profile;
  }

  const Graph& graph_;
  const LaunchPlan& plan_;
  const std::vector<std::uint32_t>& unit_of_;
  emulator::Options options_;
  const std::vector<emulator::Module>& modules_;
  std::vector<std::int64_t> symbols_;
  ResolvedPlan resolved_;
  emulator::Memory memory_;
  std::map<Key, Held> held_;
  std::optional<EmulatorArena> arena_, prepared_;
  std::vector<Place> left_out_;
};

}  // namespace

EmulatorResult run_on_emulator(const Graph& graph, const LaunchPlan& plan, const std::vector<emulator::Module>& modules,
                               const std::vector<std::uint32_t>& unit_of, const Target& target,
                               const TensorMap& tensors, emulator::Options options, HostPart* host) {
  options.max_shared_bytes = static_cast<std::uint64_t>(target.shared_bytes_per_block);
  return EmulatorDevice(graph, plan, modules, unit_of, tensors, options).run(host);
}

void add_costs(std::vector<KernelProfile>& profiles, const std::vector<CompiledModule>& modules,
               const std::vector<emulator::Module>& parsed, const Target& target) {
  std::map<std::string, KernelCost> costs;
  for (std::size_t u = 0; u < modules.size(); ++u) {
    if (modules[u].cubin.empty()) continue;
    for (const auto& [kernel, resources] : cubin_resources(modules[u].cubin)) {
      const auto local = static_cast<std::int64_t>(parsed[u].kernel(kernel).local_bytes);
      costs[kernel] = {resources.registers,
                       resources.stack_bytes,
                       std::max<std::int64_t>(0, resources.stack_bytes - local),
                       resources.static_shared_bytes,
                       {}};
    }
  }
  for (KernelProfile& profile : profiles) {
    const auto found = costs.find(profile.kernel);
    if (found == costs.end()) continue;
    KernelCost cost = found->second;
    cost.shared_bytes += profile.dynamic_shared;
    cost.occupancy = occupancy(target, profile.threads, cost.registers, cost.shared_bytes);
    profile.cost = cost;
  }
}

double counted_seconds(const KernelProfile& profile, const Target& target) {
  const emulator::Counters& c = profile.report.counters;
  double instructions = 0;
  for (const std::uint64_t count : c.warp_instructions) instructions += static_cast<double>(count);
  // Per cycle, four schedulers issue one instruction each, and sixteen special functions are computed.
  const double issued = target.special_rate / 16 * 4;
  const double together = static_cast<double>(target.multiprocessors) * std::max(1, profile.cost->occupancy.blocks);
  const double waves = std::max(1.0, static_cast<double>(profile.report.grid_blocks)) / together;
  const double filled = waves / std::ceil(waves);
  const double busy = std::max(static_cast<double>(c.requested_bytes()) / target.bandwidth, instructions / issued);
  return target.launch_seconds + busy / filled;
}

std::vector<emulator::Module> parse_units(const std::vector<CompiledModule>& modules) {
  std::vector<emulator::Module> parsed;
  for (std::size_t u = 0; u < modules.size(); ++u)
    parsed.emplace_back(modules[u].ptx, "unit " + std::to_string(u) + " of out.cu");
  return parsed;
}

}  // namespace fusec
