// Collects the values and scratch memory that a list of steps keeps in one arena, with their lifetimes, and then places
// them (codegen/launch/arena).
//
//   ArenaValues values(graph, lowered, BufferRef::Kind::kWorkspace);
//   for (each step) values.touch(step, position, buffers);      // values without a buffer so far
//   values.place(plan.arena, buffers, scratch);
#pragma once

#include <vector>

#include "codegen/launch/arena.h"
#include "codegen/launch/launch_plan.h"
#include "codegen/launch/lower_plan.h"

namespace fusec {

IndexExpr bytes_of(const TensorType& type);

class ArenaValues {
 public:
  ArenaValues(const Graph& graph, const LoweredPlan& lowered, BufferRef::Kind kind);

  // Marks the step's scratch memory, and its operands and results without a buffer (by root), as alive at `position`.
  void touch(const LoweredStep& step, std::uint32_t position, const std::vector<BufferRef>& buffers);
  void touch(ValueId root, std::uint32_t position);
  bool has(ValueId root) const { return request_of_[root] != kNone; }
  // Adds memory that belongs to no value and is alive at one step.
  std::uint32_t add(IndexExpr bytes, std::uint32_t position);

  // A kernel with two parameters that may share a buffer.
  struct InPlaceForm {
    std::uint32_t kernel;
    KernelSource::InPlace parameters;
  };
  // Offers that `written` takes the buffer of `read` at a step. Every form of the step's kernel allows it.
  void offer_in_place(ValueId read, ValueId written, std::uint32_t position, std::vector<InPlaceForm> forms);

  // The in-place pairs that place() accepted.
  const std::vector<InPlaceForm>& in_place() const { return in_place_; }

  // Fills in the buffers of all touched values and the list of arena values.
  Arena place(std::vector<ArenaValue>& values, std::vector<BufferRef>& buffers, std::vector<BufferRef>& scratch);
  BufferRef place_of(std::uint32_t request) const { return {kind_, request, offsets_[request]}; }

 private:
  struct Offer {
    ValueId read, written;
    std::uint32_t position;
    std::vector<InPlaceForm> forms;
  };
  std::vector<std::uint32_t> take_places();
  std::uint32_t alive(std::uint32_t& request, std::uint32_t position, const IndexExpr& bytes);

  const Graph& graph_;
  const LoweredPlan& lowered_;
  BufferRef::Kind kind_;
  std::vector<ArenaRequest> requests_;
  std::vector<std::uint32_t> request_of_, scratch_request_;  // by root; by scratch memory
  std::vector<Offer> offers_;
  std::vector<InPlaceForm> in_place_;
  std::vector<IndexExpr> offsets_;  // by request, after place()
};

}  // namespace fusec
