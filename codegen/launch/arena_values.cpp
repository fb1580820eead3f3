#include "codegen/launch/arena_values.h"

#include <algorithm>
#include <numeric>
#include <utility>

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
  const auto touch_parameter = [&](const KernelParameter& parameter) {
    // A pointer that the kernel passes on keeps its address, so its buffer is alive from here.
    if (parameter.kind == KernelParameter::Kind::kTensor && parameter.address_only) touch_value(parameter.value);
    if (parameter.kind == KernelParameter::Kind::kWorkspace)
      alive(scratch_request_.at(parameter.scratch), position, lowered_.scratch_bytes[parameter.scratch]);
  };
  std::ranges::for_each(step.parameters, touch_parameter);
  for (const LoweredStep::Specialization& form : step.special) std::ranges::for_each(form.parameters, touch_parameter);
}

void ArenaValues::offer_in_place(ValueId read, ValueId written, std::uint32_t position,
                                 std::vector<InPlaceForm> forms) {
  offers_.push_back({read, written, position, std::move(forms)});
}

// By request: the request that it overwrites in place. That is an operand of the same size which dies at the step that
// creates the result.
std::vector<std::uint32_t> ArenaValues::take_places() {
  std::vector<std::uint32_t> instead_of(requests_.size(), kNone);
  std::vector<bool> taken(requests_.size(), false);
  for (const Offer& offer_in_place : offers_) {
    const std::uint32_t from = request_of_[offer_in_place.read], to = request_of_[offer_in_place.written];
    if (from == kNone || to == kNone || taken[from] || instead_of[to] != kNone) continue;
    if (requests_[from].last != offer_in_place.position || requests_[to].first != offer_in_place.position) continue;
    if (requests_[from].bytes != requests_[to].bytes) continue;
    instead_of[to] = from;
    taken[from] = true;
    in_place_.insert(in_place_.end(), offer_in_place.forms.begin(), offer_in_place.forms.end());
  }
  return instead_of;
}

Arena ArenaValues::place(std::vector<ArenaValue>& values, std::vector<BufferRef>& buffers,
                         std::vector<BufferRef>& scratch) {
  const std::vector<std::uint32_t> instead_of = take_places();
  // A chain of in-place values is one request, from the first value to the last.
  std::vector<ArenaRequest> places;
  std::vector<std::uint32_t> place(requests_.size(), kNone);
  std::vector<std::uint32_t> by_birth(requests_.size());
  std::iota(by_birth.begin(), by_birth.end(), 0u);
  std::ranges::stable_sort(by_birth, {}, [&](std::uint32_t r) { return requests_[r].first; });
  for (const std::uint32_t r : by_birth) {
    if (instead_of[r] == kNone) {
      place[r] = static_cast<std::uint32_t>(places.size());
      places.push_back(requests_[r]);
    } else {
      place[r] = place[instead_of[r]];
      places[place[r]].last = requests_[r].last;
    }
  }
  Arena arena = plan_arena(places, graph_.bounds());
  for (std::size_t r = 0; r < requests_.size(); ++r) {
    offsets_.push_back(arena.offsets[place[r]]);
    values.push_back({.offset = offsets_[r],
                      .bytes = requests_[r].bytes,
                      .in_place_of = instead_of[r],
                      .first_step = requests_[r].first,
                      .last_step = requests_[r].last});
  }
  for (ValueId v = 0; v < request_of_.size(); ++v)
    if (request_of_[v] != kNone) {
      buffers[v] = place_of(request_of_[v]);
      values[request_of_[v]].value = v;
    }
  for (std::size_t s = 0; s < scratch_request_.size(); ++s)
    if (scratch_request_[s] != kNone) scratch[s] = place_of(scratch_request_[s]);
  return arena;
}

}  // namespace fusec
