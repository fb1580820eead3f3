#include "runtime/collective.h"

#include "codegen/emit_collective.h"
#include "ir/type.h"

namespace fusec {

DeviceCall collective_in_numbers(const Graph& graph, const LaunchStep& step, const std::vector<std::int64_t>& symbols,
                                 std::span<const std::uint64_t> addresses) {
  const CollectiveCall planned = collective_of(graph, step);
  const auto value = [&](const IndexExpr& e) { return evaluate(e, [&](Variable s) { return symbols.at(s.id); }); };
  DeviceCall call;
  call.kind = DeviceCall::Kind::kCollective;
  const std::int64_t slices = value(planned.slices), width = bits(graph.tensor(step.reads[0]).dtype) / 8;
  if (slices == 0) return call;  // a group of no calls
  call.name = planned.function;
  call.extents = {value(planned.count), planned.dtype.number, planned.reduction.number, planned.communicator};
  const std::int64_t from = value(planned.from_slice) * width, to = value(planned.to_slice) * width;
  for (std::int64_t slice = 0; slice < slices; ++slice) {
    call.arguments.push_back(address_bytes(addresses[0] + static_cast<std::uint64_t>(slice * from)));
    call.arguments.push_back(address_bytes(addresses[1] + static_cast<std::uint64_t>(slice * to)));
  }
  return call;
}

}  // namespace fusec
