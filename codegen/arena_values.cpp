#include "codegen/arena_values.h"

#include "ir/error.h"

namespace fusec {

IndexExpr bytes_of(const TensorType& type) {
  const auto count = element_count(type.shape);
  if (!count) throw InternalError("a tensor's size overflows");
  const int width = bits(type.dtype);
  return width >= 8 ? *count * (width / 8) : floor_div(*count + 1, 2);
}

ArenaValues::ArenaValues(const Graph& graph, const LoweredPlan& lowered, BufferRef::Kind kind)
    : graph_(graph),
      lowered_(lowered),
      kind_(kind),
      request_of_(graph.value_count(), kNone),
      scratch_request_(lowered.scratch_bytes.size(), kNone) {}

std::uint32_t ArenaValues::alive(std::uint32_t& request, std::uint32_t position, const IndexExpr& bytes) {
  if (request == kNone) {
    request = static_cast<std::uint32_t>(requests_.size());
    requests_.push_back({bytes, position, position});
  }
  requests_[request].last = position;
  return request;
}

void ArenaValues::touch(ValueId root, std::uint32_t position) {
  alive(request_of_[root], position, bytes_of(graph_.tensor(root)));
}

std::uint32_t ArenaValues::add(IndexExpr bytes, std::uint32_t position) {
  std::uint32_t request = kNone;
  return alive(request, position, bytes);
}

void ArenaValues::touch(const LoweredStep& step, std::uint32_t position, const std::vector<BufferRef>& buffers) {
  const auto touch_value = [&](ValueId v) {
    const ValueId root = lowered_.storage_of[v];
    if (buffers[root].kind == BufferRef::Kind::kNowhere) touch(root, position);
  };
  for (const ValueId v : step.reads) touch_value(v);
  for (const ValueId v : step.writes) touch_value(v);
  for (const KernelParameter& parameter : step.parameters) {
    // An address that is passed on is fixed from then on.
    if (parameter.kind == KernelParameter::Kind::kTensor && parameter.address_only) touch_value(parameter.value);
    if (parameter.kind == KernelParameter::Kind::kWorkspace)
      alive(scratch_request_.at(parameter.scratch), position, lowered_.scratch_bytes[parameter.scratch]);
  }
}

Arena ArenaValues::place(std::vector<ArenaValue>& values, std::vector<BufferRef>& buffers,
                         std::vector<BufferRef>& scratch) {
  arena_ = plan_arena(requests_, graph_.bounds());
  for (std::size_t r = 0; r < requests_.size(); ++r)
    values.push_back({kNone, arena_.offsets[r], requests_[r].bytes, requests_[r].first, requests_[r].last});
  for (ValueId v = 0; v < request_of_.size(); ++v)
    if (request_of_[v] != kNone) {
      buffers[v] = place_of(request_of_[v]);
      values[request_of_[v]].value = v;
    }
  for (std::size_t s = 0; s < scratch_request_.size(); ++s)
    if (scratch_request_[s] != kNone) scratch[s] = place_of(scratch_request_[s]);
  return arena_;
}

}  // namespace fusec
