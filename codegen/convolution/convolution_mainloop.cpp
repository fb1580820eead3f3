#include "codegen/convolution/convolution_mainloop.h"

#include <fmt/format.h>

#include "codegen/gemm/gemm_block.h"
#include "ir/type.h"

namespace fusec {

ConvolutionMainloop::ConvolutionMainloop(const Kernel& kernel, const Contraction& contraction,
                                         const ConvolutionForm& form, KernelWriter& writer, ExprEmitter& emitter)
    : form_(form),
      tiles_(form.tiles),
      pool_(kernel.pool),
      writer_(writer),
      emitter_(emitter),
      operand_tiles_(kernel, contraction, form, writer, emitter),
      left_(operand_tiles_.left()),
      right_(operand_tiles_.right()) {}

void ConvolutionMainloop::emit(const ConvolutionMainloopContext& place) {
  stages_ = place.stages, accumulator_ = place.sum, first_ = place.first, end_ = place.end;
  operand_tiles_.place(place.row0, place.column0, stages_, first_, end_);
  operand_tiles_.declare();
  fetch_ = operand_tiles_.declare_fetch();
  if (operand_tiles_.keeps()) keep_ = operand_tiles_.declare_keep();
  const int ahead = tiles_.stages - 1;
  const std::int64_t bytes = form_.stage_bytes();
  operand_tiles_.keeps_in_loop() ? fetch_first_in_loop() : fetch_first();
  writer_.line(fmt::format("int reading = 0, writing = {};", ahead * bytes));
  const std::string next_reading = fmt::format("reading = reading == {0} ? 0 : reading + {1};", ahead * bytes, bytes);
  const std::vector<std::string> fetch_next = {
      fmt::format("if (step + {} < {}) {};", ahead, end_, fetch(fmt::format("step + {}", ahead), "writing")),
      "commit_copies();", fmt::format("writing = writing == {0} ? 0 : writing + {1};", ahead * bytes, bytes)};
  const std::string wait = fmt::format("wait_for_groups<{}>();", ahead - 1);
  form_.tensor_cores() ? steps_on_tensor_cores(wait, next_reading, fetch_next)
                       : steps_in_lanes(wait, next_reading, fetch_next);
}

// Fetches a tile and starts the register loads of the next one.
std::string ConvolutionMainloop::fetch(const std::string& step, const std::string& into) const {
  return fmt::format("{}({}, {})", fetch_, step, into) +
         (keep_.empty() ? "" : fmt::format(", {}({} + 1)", keep_, step));
}

void ConvolutionMainloop::fetch_first() {
  if (!keep_.empty()) writer_.line(fmt::format("{}({});", keep_, first_));
  for (int s = 0; s < tiles_.stages - 1; ++s) {
    const std::string step = first_ == "0" ? std::to_string(s) : fmt::format("{} + {}", first_, s);
    const std::string if_there = first_ == "0" ? "" : fmt::format("if ({} < {}) ", step, end_);
    if (s < operand_tiles_.steps()) writer_.line(if_there + fetch(step, std::to_string(s * form_.stage_bytes())) + ";");
    writer_.line("commit_copies();");
  }
}

// The prologue as a loop that starts one step early, without a fetch. Register loads are many statements, and NVRTC's
// time grows with their number.
void ConvolutionMainloop::fetch_first_in_loop() {
  const std::string step = first_ == "0" ? "s" : first_ + " + s";
  writer_.line("#pragma unroll 1");
  writer_.open(fmt::format("for (int s = -1; s < {}; ++s)", tiles_.stages - 1));
  writer_.open("if (s >= 0)");
  writer_.line(fmt::format("if ({} < {}) {}({}, s * {});", step, end_, fetch_, step, form_.stage_bytes()));
  writer_.line("commit_copies();");
  writer_.close();
  writer_.line(fmt::format("{}({} + 1);", keep_, step));
  writer_.close();
}

// Fragments of the next slice are loaded before the MMAs of this one.
void ConvolutionMainloop::steps_on_tensor_cores(const std::string& wait, const std::string& next_reading,
                                                const std::vector<std::string>& fetch_next) {
  writer_.use(form_.tf32 ? "tf32_fragments" : "tile_fragments");
  const int slices = tiles_.k * form_.element_bytes() / 32;
  writer_.line(fmt::format("unsigned {}[2][{}][4], {}[2][{}][4];", left_.fragments, tiles_.warp_rows / 16,
                           right_.fragments, tiles_.warp_columns / 16));
  for (const ConvolutionOperandTile* t : {&left_, &right_}) declare_words(*t, slices);
  writer_.open("const auto load = [&](int buffer, unsigned stage, int depth)");
  for (const ConvolutionOperandTile* t : {&left_, &right_})
    if (!t->k_major)
      writer_.line(fmt::format("{}.load({}[buffer], stage, depth / 16);", t->places, t->fragments));
    else
      writer_.line(fmt::format("load_fragments<{}, true, {}>({}[buffer], stage + {}, {}, depth, warp_lane);", t->left,
                               t->units, t->fragments, t->offset, t->left ? "warp_row" : "warp_column"));
  writer_.close("};");
  writer_.line(wait);
  writer_.line("__syncthreads();");
  writer_.line(fmt::format("load(0, {}, 0);", stages_));
  const ConvolutionOperandTile* const summed = other_with_offset();
  if (summed) {
    writer_.use("fragment_sums");
    other_quantized_ = writer_.unique("codes");
    writer_.line(fmt::format("int {}[{}] = {{}};", other_quantized_,
                             (summed->left ? tiles_.warp_rows : tiles_.warp_columns) / 8));
  }
  writer_.line("#pragma unroll 1");
  writer_.open(fmt::format("for (int step = {}; step < {}; ++step)", first_, end_));
  writer_.open_unrolled("slice", slices);
  writer_.open(fmt::format("if (slice == {})", slices - 1));
  writer_.line(wait + "  // the next tile is there, and nobody needs the one before this");
  writer_.line("__syncthreads();");
  writer_.line(next_reading);
  writer_.close();
  writer_.line(
      fmt::format("if (slice < {} || step + 1 < {}) load((slice + 1) % 2, {} + reading, (slice + 1) % {} * 16);",
                  slices - 1, end_, stages_, slices));
  writer_.open("if (slice == 0)");
  for (const std::string& line : fetch_next) writer_.line(line);
  writer_.close();
  const std::string mma = mma_name(form_.dtype, pool_[form_.left.load].dtype, pool_[form_.right.load].dtype);
  if (form_.tf32)
    for (const ConvolutionOperandTile* t : {&left_, &right_})
      writer_.line(fmt::format("round_to_tf32({}[slice % 2]);", t->fragments));
  writer_.use("multiply_fragments");
  writer_.use(mma);
  writer_.line(fmt::format("multiply_fragments<{}>({}, {}[slice % 2], {}[slice % 2]);", mma, accumulator_,
                           left_.fragments, right_.fragments));
  if (summed)
    writer_.line(
        fmt::format("add_fragments<{}>({}, {}[slice % 2]);", summed->left, other_quantized_, summed->fragments));
  writer_.close();
  writer_.close();
  if (summed) take_offset(*summed);
}

// The operand with quantized values to be summed along K: the other one has a zero point.
const ConvolutionOperandTile* ConvolutionMainloop::other_with_offset() const {
  if (form_.left.offset != kNoExpr) return &right_;
  return form_.right.offset != kNoExpr ? &left_ : nullptr;
}

// (x - o) w = x w - o * (sum of w). Past the end of K, w is 0.
void ConvolutionMainloop::take_offset(const ConvolutionOperandTile& other) {
  const ExprId offset = other.left ? form_.right.offset : form_.left.offset;
  writer_.line(fmt::format("take_offset<{}>({}, {}, {}, warp_lane);", !other.left, accumulator_, other_quantized_,
                           emitter_.emit(offset)));
}

// Declares where a lane finds the words of a tile whose lines run across K.
void ConvolutionMainloop::declare_words(const ConvolutionOperandTile& t, int slices) {
  if (t.k_major) return;
  const int across = t.left ? tiles_.warp_rows : tiles_.warp_columns;
  writer_.line(fmt::format("const WordPlaces<{}, {}, {}, {}> {}({}, {}, warp_lane);", t.left, t.units, across / 16,
                           slices, t.places, t.offset, t.left ? "warp_row" : "warp_column"));
}

void ConvolutionMainloop::steps_in_lanes(const std::string& wait, const std::string& next_reading,
                                         const std::vector<std::string>& fetch_next) {
  writer_.line("#pragma unroll 1");
  writer_.open(fmt::format("for (int step = {}; step < {}; ++step)", first_, end_));
  writer_.line(wait);
  writer_.line("__syncthreads();  // this tile is there, and nobody needs the one before");
  for (const std::string& line : fetch_next) writer_.line(line);
  std::vector<LaneTile> tiles;
  for (const ConvolutionOperandTile* t : {&left_, &right_})
    tiles.push_back(
        {t->left, t->k_major, t->units, t->fragments, fmt::format("dynamic_shared + reading + {}", t->offset)});
  multiply_in_lanes(writer_, tiles_, tiles, std::vector<LaneTerm>{{accumulator_, left_.fragments, right_.fragments}});
  writer_.line(next_reading);
  writer_.close();
}

}  // namespace fusec
