#include "runtime/device_call.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "codegen/expr/kernel_source.h"
#include "ir/error.h"
#include "runtime/collective.h"

namespace fusec {
namespace {

template <class T>
std::vector<std::byte> bytes_of(const T& value) {
  std::vector<std::byte> bytes(sizeof value);
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

std::string describe(const DeviceCall& call) {
  std::string text;
  switch (call.kind) {
    case DeviceCall::Kind::kKernel:
      text = fmt::format("{} grid {} block {} with {} bytes of shared memory", call.name, fmt::join(call.grid, ","),
                         fmt::join(call.block, ","), call.dynamic_shared);
      break;
    case DeviceCall::Kind::kCopy:
      text = fmt::format("a copy of {} bytes", call.bytes);
      break;
    case DeviceCall::Kind::kExternal:
      text = fmt::format("{} with extents {}", call.name, fmt::join(call.extents, ","));
      break;
    case DeviceCall::Kind::kCollective:
      text = fmt::format("{} of count, dtype, reduction and communicator {}", call.name, fmt::join(call.extents, ","));
      break;
    case DeviceCall::Kind::kProduct:
      return to_string(*call.product);
  }
  text += ", arguments";
  for (const std::vector<std::byte>& argument : call.arguments) {
    std::uint64_t value = 0;
    std::memcpy(&value, argument.data(), std::min(argument.size(), sizeof value));
    text += fmt::format(" {:#x}", value);
  }
  return text;
}

}  // namespace

emulator::TensorMap tensor_map_of(const ResolvedBoxes& boxes, std::uint64_t address) {
  emulator::TensorMap map{.address = address,
                          .element_bytes = static_cast<std::uint32_t>(boxes.element_bytes),
                          .rank = static_cast<std::uint32_t>(boxes.extents.size()),
                          .swizzle = swizzle_of_lines(boxes.box[0] * static_cast<std::uint32_t>(boxes.element_bytes))};
  map.strides[0] = map.element_bytes;
  for (std::size_t d = 0; d < boxes.extents.size(); ++d) {
    map.extents[d] = static_cast<std::uint64_t>(boxes.extents[d]);
    map.box[d] = boxes.box[d];
    if (d > 0) map.strides[d] = static_cast<std::uint64_t>(boxes.strides[d - 1]);
  }
  return map;
}

std::vector<std::byte> tensor_map_bytes(const ResolvedBoxes& boxes, std::uint64_t address) {
  return emulator::encode_tensor_map(tensor_map_of(boxes, address));
}

std::vector<std::byte> address_bytes(std::uint64_t address) {
  return bytes_of(address);
}

std::uint64_t address_of(const std::vector<std::byte>& bytes) {
  std::uint64_t address = 0;
  if (bytes.size() != sizeof address) throw InternalError("an address that is not of 8 bytes");
  std::memcpy(&address, bytes.data(), sizeof address);
  return address;
}

std::string launcher_symbol(const Graph& graph, const Node& node) {
  if (!node.op->symbol.empty()) return node.op->symbol;
  const AttributeValue* given = graph.attributes(node).find("symbol");
  if (!given) throw InternalError("an external node without a symbol");
  if (const auto* text = std::get_if<std::string>(given)) return *text;
  const std::string& json = std::get<RawJson>(*given).text;  // a JSON string
  return json.substr(1, json.size() - 2);
}

std::vector<DeviceCall> planned_calls(const Graph& graph, const LaunchPlan& plan, std::span<const ResolvedStep> steps,
                                      const std::vector<std::int64_t>& symbols,
                                      const std::function<std::uint64_t(BufferRef::Kind, std::uint32_t)>& base) {
  std::vector<DeviceCall> calls;
  for (const ResolvedStep& step : steps) {
    DeviceCall call;
    switch (step.kind) {
      case LaunchStep::Kind::kKernel: {
        const KernelSource& kernel = plan.kernels[step.kernel];
        call.name = kernel.name;
        call.grid = step.grid;
        std::copy(kernel.block.begin(), kernel.block.end(), call.block.begin());
        call.dynamic_shared = step.dynamic_shared;
        break;
      }
      case LaunchStep::Kind::kCopy:
        call.kind = DeviceCall::Kind::kCopy;
        call.bytes = step.bytes;
        break;
      case LaunchStep::Kind::kExternal:
        call.kind = DeviceCall::Kind::kExternal;
        call.name = launcher_symbol(graph, graph.nodes[step.step->node]);
        for (const std::vector<ValueId>* list : {&step.step->reads, &step.step->writes})
          for (const ValueId v : *list)
            for (const Dim& dim : graph.tensor(v).shape)
              call.extents.push_back(evaluate(dim, [&](Variable s) { return symbols.at(s.id); }));
        break;
      case LaunchStep::Kind::kMatrixCall: {
        std::vector<std::uint64_t> addresses;
        for (const ResolvedArgument& a : step.arguments)
          addresses.push_back(base(a.buffer, a.index) + static_cast<std::uint64_t>(a.offset));
        call.kind = DeviceCall::Kind::kProduct;
        call.product = in_numbers(
            *step.step->matrix,
            [&](const IndexExpr& e) { return evaluate(e, [&](Variable s) { return symbols.at(s.id); }); }, addresses,
            step.bytes);
        calls.push_back(std::move(call));
        continue;
      }
      case LaunchStep::Kind::kCollective: {
        std::vector<std::uint64_t> addresses;
        for (const ResolvedArgument& a : step.arguments)
          addresses.push_back(base(a.buffer, a.index) + static_cast<std::uint64_t>(a.offset));
        calls.push_back(collective_in_numbers(graph, *step.step, symbols, addresses));
        continue;
      }
    }
    for (const ResolvedArgument& a : step.arguments) {
      if (a.boxes)
        call.arguments.push_back(
            tensor_map_bytes(*a.boxes, base(a.buffer, a.index) + static_cast<std::uint64_t>(a.offset)));
      else if (!a.is_size)
        call.arguments.push_back(bytes_of(base(a.buffer, a.index) + static_cast<std::uint64_t>(a.offset)));
      else if (a.bits == 64)
        call.arguments.push_back(bytes_of(a.size));
      else
        call.arguments.push_back(bytes_of(static_cast<std::int32_t>(a.size)));
    }
    calls.push_back(std::move(call));
  }
  return calls;
}

std::string first_difference(const std::vector<DeviceCall>& got, const std::vector<DeviceCall>& expected) {
  for (std::size_t i = 0; i < std::min(got.size(), expected.size()); ++i)
    if (got[i] != expected[i])
      return fmt::format("operation {} is {}; expected {}", i, describe(got[i]), describe(expected[i]));
  if (got.size() == expected.size()) return "";
  const bool more = got.size() > expected.size();
  return fmt::format("{} operations, expected {}; the first {}: {}", got.size(), expected.size(),
                     more ? "surplus" : "missing",
                     describe((more ? got : expected)[std::min(got.size(), expected.size())]));
}

}  // namespace fusec
