// One operation that a launch of the model enqueues on the device, with all sizes as numbers. The launch plan gives the
// expected operations; the compiled host part records the actual ones (runtime/host_part/).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/emulator/tensor_map.h"
#include "runtime/matrix_product.h"
#include "runtime/resolve_steps.h"

namespace fusec {

struct DeviceCall {
  enum class Kind : std::uint8_t { kKernel, kCopy, kExternal, kProduct, kCollective };
  Kind kind = Kind::kKernel;
  std::string name;  // kKernel: kernel name; kExternal: launcher name; kCollective: name of NCCL's function
  std::array<std::int64_t, 3> grid{}, block{};
  std::int64_t dynamic_shared = 0;
  // kKernel: the bytes of each parameter. kCopy: the addresses of target and source. kExternal: the addresses of
  // inputs, then outputs. kCollective: source and target address of each call of the group.
  std::vector<std::vector<std::byte>> arguments;
  std::int64_t bytes = 0;                               // kCopy
  std::vector<std::int64_t> extents;                    // kExternal; kCollective: count, dtype, reduction, communicator
  std::optional<MatrixProduct> product = std::nullopt;  // kProduct: the whole call

  friend bool operator==(const DeviceCall&, const DeviceCall&) = default;
};

// The tensor map of a tensor at this address, and its encoding for the emulator; the driver's encoding is opaque.
emulator::TensorMap tensor_map_of(const ResolvedBoxes& boxes, std::uint64_t address);
std::vector<std::byte> tensor_map_bytes(const ResolvedBoxes& boxes, std::uint64_t address);

std::vector<std::byte> address_bytes(std::uint64_t address);
std::uint64_t address_of(const std::vector<std::byte>& bytes);

// The name of the function that launches an external node.
std::string launcher_symbol(const Graph& graph, const Node& node);

// The operations that these steps of the plan enqueue. `base` returns the address of a buffer.
std::vector<DeviceCall> planned_calls(const Graph& graph, const LaunchPlan& plan, std::span<const ResolvedStep> steps,
                                      const std::vector<std::int64_t>& symbols,
                                      const std::function<std::uint64_t(BufferRef::Kind, std::uint32_t index)>& base);

// The first difference of two lists in words; "" if they are equal.
std::string first_difference(const std::vector<DeviceCall>& got, const std::vector<DeviceCall>& expected);

}  // namespace fusec
