#include "runtime/collective.h"

#include "codegen/host/emit_collective.h"
#include "ir/error.h"
#include "ir/spelling.h"
#include "ir/type.h"

namespace fusec {

DeviceCall collective_in_numbers(const Graph& graph, const LaunchStep& step, const std::vector<std::int64_t>& symbols,
                                 std::span<const std::uint64_t> addresses) {
  const CollectiveCall planned = collective_of(graph, step);
  const auto value = [&](const IndexExpr& e) { return evaluate(e, [&](Variable s) { return symbols.at(s.id); }); };
  DeviceCall call;
  call.kind = DeviceCall::Kind::kCollective;
  const std::int64_t slices = value(planned.slices), width = bits(graph.tensor(step.reads[0]).dtype) / 8;
  if (slices == 0) return call;  // an empty group
  call.name = planned.function;
  call.extents = {value(planned.count), planned.dtype.number, planned.reduction.number, planned.communicator};
  const std::int64_t from = value(planned.from_slice) * width, to = value(planned.to_slice) * width;
  for (std::int64_t slice = 0; slice < slices; ++slice) {
    call.arguments.push_back(address_bytes(addresses[0] + static_cast<std::uint64_t>(slice * from)));
    call.arguments.push_back(address_bytes(addresses[1] + static_cast<std::uint64_t>(slice * to)));
  }
  return call;
}

std::vector<Collective> collectives_of(const ManifestCollective& collective, const std::vector<std::int64_t>& symbols,
                                       void* source, void* target) {
  const auto value = [&](const IndexExpr& e) { return evaluate(e, [&](Variable s) { return symbols.at(s.id); }); };
  const CollectiveSlices slices =
      collective_slices(collective.op, collective.dim, collective.operand, collective.result);
  const std::int64_t width = bits(collective.operand.dtype) / 8;
  std::vector<Collective> calls;
  for (std::int64_t slice = 0; slice < value(slices.count); ++slice) {
    Collective& call = calls.emplace_back(Collective{.op = collective.op,
                                                     .group = collective.group,
                                                     .reduce_op = collective.reduce_op,
                                                     .dtype = std::string(name(collective.operand.dtype))});
    call.source_elements = value(slices.operand_elements);
    call.target_elements = value(slices.result_elements);
    call.source = static_cast<std::byte*>(source) + slice * call.source_elements * width;
    call.target = static_cast<std::byte*>(target) + slice * call.target_elements * width;
  }
  return calls;
}

void require_communication(const ManifestModel& model, const Communicate& communicate) {
  if (model.collectives.empty() || communicate) return;
  const ManifestCollective& first = model.collectives.front();
  throw Error(
      ErrorKind::kInput,
      Error::Parts{.what = "the model cannot be run here",
                   .found = first.op + " of the group " + in_quotes(first.group) + ", node " + in_quotes(first.node),
                   .expected = "a way to communicate",
                   .hint = "pass a Communicate (in Python: initialize torch.distributed), or link the emitted source "
                           "with NCCL"});
}

}  // namespace fusec
