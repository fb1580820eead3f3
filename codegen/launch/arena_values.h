// What a list of steps keeps in one piece of memory: collects values and scratch memory with the steps during which
// they are alive, then gives each its place (codegen/launch/arena).
//
//   ArenaValues values(graph, lowered, BufferRef::Kind::kWorkspace);
//   for (each step) values.touch(step, position, buffers);      // those that have no buffer yet
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

  // What this step reads and writes, as far as it has no buffer (by root), and its scratch memory are alive now.
  void touch(const LoweredStep& step, std::uint32_t position, const std::vector<BufferRef>& buffers);
  void touch(ValueId root, std::uint32_t position);
  bool has(ValueId root) const { return request_of_[root] != kNone; }
  // Memory of no value of its own, alive at one step.
  std::uint32_t add(IndexExpr bytes, std::uint32_t position);

  // A kernel two of whose parameters may alias.
  struct InPlaceForm {
    std::uint32_t kernel;
    KernelSource::InPlace parameters;
  };
  // Two roots at a step whose kernel, in each of these forms, may write the one where it reads the other.
  void offer_in_place(ValueId read, ValueId written, std::uint32_t position, std::vector<InPlaceForm> forms);

  // Of the steps that write in place.
  const std::vector<InPlaceForm>& in_place() const { return in_place_; }

  // Fills in the buffers of what was touched, and the arena's values.
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
  std::vector<IndexExpr> offsets_;  // by request, once placed
};

}  // namespace fusec
