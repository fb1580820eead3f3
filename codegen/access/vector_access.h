// Vector loads and stores for schedules with an innermost loop over the lanes of one thread. `lane_axis` has the extent
// `width`.
//
//   const Words<4> gate_w = load_words<4>(gate + 8 * t);
//   for (int e = 0; e < 8; ++e) ... from_bf16(element<16>(gate_w, e)) ...
//
// A broadcast operand may change once within a vector (the weight of a channel of 4095 elements). It is loaded twice
// per vector, for the first and for the last lane: `e < here ? first : next`.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "codegen/expr/emit_expr.h"

namespace fusec {

// The value of an element in the compute type, from its bits as an unsigned number.
std::string value_of_bits(DType dtype, const std::string& raw, KernelWriter& writer);

// A pointer to the element at `position`, for a vector load or store. 4-bit elements have byte addresses.
std::string address(const std::string& pointer, DType dtype, const IndexExpr& position, const IndexText& text,
                    const Bounds& bounds, bool written = false);

// True if the position is consecutive along the axis and aligned for an access of `width` elements.
bool is_vector_position(const IndexExpr& position, std::uint32_t lane_axis, int width, DType dtype,
                        const Bounds& bounds);

// True if a vector of `width` along the kernel's last axis makes some load or store a whole vector.
bool some_access_is_vector(const Kernel& kernel, const Graph& graph, int width);

// The text of element `lane` of words in the compute type, and the statement that sets it.
std::string element_text(DType dtype, const std::string& words, const std::string& lane, KernelWriter& writer);
std::string put_text(DType dtype, const std::string& words, const std::string& lane, const std::string& value,
                     KernelWriter& writer);

// True if each point reads its own elements of a tensor of at least `bytes`. These loads bypass the caches.
bool streams_past_caches(const ExprEmitter& emitter, const Graph& graph, ExprId load, std::int64_t bytes);

class VectorLoads {
 public:
  VectorLoads(ExprEmitter& emitter, const Graph& graph, std::uint32_t lane_axis, int width)
      : emitter_(emitter), graph_(graph), lane_axis_(lane_axis), width_(width) {}

  // Emits all vector loads that the roots need, before the loop over `lane`. It includes masked loads if one condition
  // holds for the whole vector. The emitter then reads elements of the vectors. All axes other than the lane axis must
  // be bound. `preloaded` may return a variable that holds a load's words, or that `fill` sets.
  using Fill = std::function<void(const std::string& variable)>;
  void declare(const std::vector<ExprId>& roots, const std::string& lane,
               const std::function<std::string(ExprId load, const Fill& fill)>& preloaded = nullptr);

  // The loads that `declare` would emit, with the type of their words: "Words<4>".
  std::vector<std::pair<ExprId, std::string>> vector_loads(const std::vector<ExprId>& roots) const;

  // Smallest tensor, in bytes, with vector loads that may bypass the caches. 0: none.
  std::int64_t stream_from = 0;
  // Allows vectors that are smaller than a word: one or two bytes.
  bool parts_of_words = false;
  // Loads unaligned vectors by a few narrower accesses instead of element by element. The misalignment must be equal
  // for all threads of a warp.
  bool unaligned = false;
  // True for loads with words that `preloaded` provides, at any position.
  std::function<bool(ExprId load)> elsewhere;
  // Allows two loads (first and last lane) of an operand that changes at most once within a vector.
  bool steps = false;

 private:
  bool is_vector(ExprId load) const;
  bool is_unaligned(ExprId load) const;
  bool can_be_loaded_here(ExprId load) const;
  bool streams(ExprId load) const;
  struct Step;
  std::optional<Step> step_of(ExprId load) const;
  std::string step_text(ExprId load, const std::string& lane) const;
  void declare_steps(const std::vector<ExprId>& roots);
  bool is_lane_uniform(ExprId condition) const;
  std::string condition_of_vector(ExprId condition);

  ExprEmitter& emitter_;
  const Graph& graph_;
  std::uint32_t lane_axis_;
  int width_;
  std::map<ExprId, std::string> words_;
  std::map<ExprId, std::string> conditions_;  // of masked loads
  // A load that changes at most once within a vector, with its values before and after the change.
  struct Step {
    IndexExpr lanes;                // lanes before the change
    std::optional<IndexExpr> size;  // elements between changes, if that may be less than a vector
    std::string here = "", first = "", last = "";
  };
  std::map<ExprId, Step> steps_;
};

class VectorStore {
 public:
  // Declares the words if the output's elements are consecutive; otherwise elements are stored one by one. `stream`:
  // the stores bypass the caches.
  static VectorStore plan(ExprEmitter& emitter, const KernelOutput& output, std::uint32_t lane_axis, int width,
                          bool stream = false);
  // A store to another destination. `store` is a call without its last argument, the words: "store_in_box(box, line,
  // unit, ".
  static VectorStore elsewhere(ExprEmitter& emitter, const KernelOutput& output, int width, std::string store);
  // The same, by a function and under a condition. `arguments` go before the last one, the words.
  static VectorStore elsewhere(ExprEmitter& emitter, const KernelOutput& output, int width, std::string function,
                               std::vector<CExpr> arguments, const CExpr& condition = "true");
  void put(ExprEmitter& emitter, const std::string& lane, const std::string& value);  // inside the lane loop
  void finish(ExprEmitter& emitter);                                                  // after the lane loop
  bool stores_scalars() const { return words_.empty(); }

 private:
  void declare(KernelWriter& writer);
  bool packs() const;  // converts two elements at a time, once all lanes have their values

  const KernelOutput* output_ = nullptr;
  int width_ = 1;
  std::string words_;             // "" for scalar stores; the values if elements are packed
  std::string store_;             // a call without its last argument, the words; "": as the next ones say
  std::string function_;          // that stores the words, its last argument
  std::vector<CExpr> arguments_;  // before them
  CExpr condition_ = "true";
};

}  // namespace fusec
