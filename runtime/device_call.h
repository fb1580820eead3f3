// One operation that a launch of the model enqueues, in numbers: what a device executes. The launch plan says which
// they should be; the compiled host part says which they are (runtime/host_part/).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/matrix_product.h"
#include "runtime/resolve_steps.h"

namespace fusec {

struct DeviceCall {
  enum class Kind : std::uint8_t { kKernel, kCopy, kExternal, kProduct, kCollective };
  Kind kind = Kind::kKernel;
  std::string name;  // kKernel: of the kernel; kExternal: of the launcher; kCollective: of NCCL's function
  std::array<std::int64_t, 3> grid{}, block{};
  std::int64_t dynamic_shared = 0;
  // kKernel: the bytes of each parameter. kCopy: the addresses of target and source. kExternal: the addresses of
  // inputs, then outputs. kCollective: source and target of each call, for groups of calls one after the other.
  std::vector<std::vector<std::byte>> arguments;
  std::int64_t bytes = 0;             // kCopy
  std::vector<std::int64_t> extents;  // kExternal; kCollective: count, dtype, reduction, which communicator
  std::optional<MatrixProduct> product = std::nullopt;  // kProduct: all there is

  friend bool operator==(const DeviceCall&, const DeviceCall&) = default;
};

// The description of a tensor at this address as the emulator has it; the driver's own is opaque.
std::vector<std::byte> tensor_map_bytes(const ResolvedBoxes& boxes, std::uint64_t address);

std::vector<std::byte> address_bytes(std::uint64_t address);
std::uint64_t address_of(const std::vector<std::byte>& bytes);

// The name of the function that launches an external node.
std::string launcher_symbol(const Graph& graph, const Node& node);

// What these steps of the plan enqueue, buffers where `base` says that they begin.
std::vector<DeviceCall> planned_calls(const Graph& graph, const LaunchPlan& plan, std::span<const ResolvedStep> steps,
                                      const std::vector<std::int64_t>& symbols,
                                      const std::function<std::uint64_t(BufferRef::Kind, std::uint32_t index)>& base);

// Where the two lists differ, in words; "" where they do not.
std::string first_difference(const std::vector<DeviceCall>& got, const std::vector<DeviceCall>& expected);

}  // namespace fusec
