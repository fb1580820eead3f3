// Loads and stores of several neighbouring elements at once, for schedules whose innermost loop walks the lanes of one
// thread: `lane_axis` has the extent `width`.
//
//   const Words<4> gate_w = load_words<4>(gate + 8 * t);
//   for (int e = 0; e < 8; ++e) ... from_bf16(element<16>(gate_w, e)) ...
//
// What stays the same over more elements than a vector has (a weight of a channel of 4095) is read twice for a vector,
// as its first and its last lane need it: `e < here ? first : next`.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "codegen/expr/emit_expr.h"

namespace fusec {

// An element's bits, an unsigned number, as the value of the compute type.
std::string value_of_bits(DType dtype, const std::string& raw, KernelWriter& writer);

// A pointer to the element at `position`, from which a vector is read or to which one is written: half-byte elements
// have byte addresses.
std::string address(const std::string& pointer, DType dtype, const IndexExpr& position, const IndexText& text,
                    const Bounds& bounds, bool written = false);

// Is the position consecutive along the axis, starting at a multiple of what an access of `width` elements takes?
bool is_vector_position(const IndexExpr& position, std::uint32_t lane_axis, int width, DType dtype,
                        const Bounds& bounds);

// Would splitting the kernel's last axis by `width` give some load or store of a whole vector?
bool some_access_is_vector(const Kernel& kernel, const Graph& graph, int width);

// Element `lane` of words, as a value of the compute type; and the statement that puts a value there.
std::string element_text(DType dtype, const std::string& words, const std::string& lane, KernelWriter& writer);
std::string put_text(DType dtype, const std::string& words, const std::string& lane, const std::string& value,
                     KernelWriter& writer);

// Is it of a tensor of `bytes` and more of which every point reads elements of its own? Such go past the caches.
bool streams_past_caches(const ExprEmitter& emitter, const Graph& graph, ExprId load, std::int64_t bytes);

class VectorLoads {
 public:
  VectorLoads(ExprEmitter& emitter, const Graph& graph, std::uint32_t lane_axis, int width)
      : emitter_(emitter), graph_(graph), lane_axis_(lane_axis), width_(width) {}

  // Loads all vectors that the roots need (guarded ones, too, where a guard holds for whole vectors), before the loop
  // over lanes `lane`; the emitter then takes elements of them. Axes other than the lane must be bound. `kept` may name
  // a variable that has, or gets by `fill`, a load's words.
  using Fill = std::function<void(const std::string& variable)>;
  void declare(const std::vector<ExprId>& roots, const std::string& lane,
               const std::function<std::string(ExprId load, const Fill& fill)>& preloaded = nullptr);

  // The loads that `declare` would make, each with the type of its words, "Words<4>".
  std::vector<std::pair<ExprId, std::string>> vector_loads(const std::vector<ExprId>& roots) const;

  // Vectors of tensors of so many bytes and more may go past the caches. 0: none.
  std::int64_t stream_from = 0;
  // Elements that together are a byte or half a word are loaded as that.
  bool parts_of_words = false;
  // Loads whose vectors begin anywhere in memory, equally for all threads of a warp, are made by a few narrower
  // accesses instead of element by element.
  bool unaligned = false;
  // Loads whose words `kept` has, whatever their places are.
  std::function<bool(ExprId load)> elsewhere;
  // Loads of what stays the same for more lanes than a vector has are made as the first and the last lane need them.
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
  std::map<ExprId, std::string> conditions_;  // of guarded loads
  // Loads that change once within a vector at most: what they are before and behind that.
  struct Step {
    IndexExpr lanes;                // in front of it
    std::optional<IndexExpr> size;  // from one step to the next, where that may be less than a vector
    std::string here = "", first = "", last = "";
  };
  std::map<ExprId, Step> steps_;
};

class VectorStore {
 public:
  // Declares the words, where the output's elements are consecutive; else elements are stored one by one.
  // `stream`: past the caches.
  static VectorStore plan(ExprEmitter& emitter, const KernelOutput& output, std::uint32_t lane_axis, int width,
                          bool stream = false);
  // The same for words that go elsewhere: `store` is a call that lacks them, "store_in_box(box, line, unit, ".
  static VectorStore elsewhere(ExprEmitter& emitter, const KernelOutput& output, int width, std::string store);
  void put(ExprEmitter& emitter, const std::string& lane, const std::string& value);  // inside the lane loop
  void finish(ExprEmitter& emitter);                                                  // after it
  bool stores_one_by_one() const { return words_.empty(); }

 private:
  void declare(KernelWriter& writer);
  bool packs() const;  // two elements by one conversion, when all lanes have their values

  const KernelOutput* output_ = nullptr;
  int width_ = 1;
  std::string words_;  // "" where stored one by one; where elements are packed, the values
  std::string store_;  // a call that lacks the words
};

}  // namespace fusec
