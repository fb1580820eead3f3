#include "codegen/convolution/convolution.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>

#include "codegen/access/direct.h"
#include "codegen/convolution/convolution_tile_loader.h"
#include "codegen/expr/emit_expr.h"
#include "codegen/gemm/gemm_block.h"
#include "codegen/gemm/gemm_epilogue.h"
#include "codegen/gemm/split_k.h"
#include "ir/type.h"

namespace fusec {
namespace {

// Names of C variables, or numbers: the block's tile origin, the pipeline's shared memory, the accumulator registers,
// and the block's K range as steps [first, end).
struct MainloopPlace {
  std::string row0, column0, stages, sum, first, end;
};

// The K loop of one accumulator. The loads of the next tiles overlap with the multiplication of the current one.
class ConvolutionMainloop {
 public:
  ConvolutionMainloop(const Kernel& kernel, const Contraction& contraction, const ConvolutionForm& form,
                      KernelWriter& writer, ExprEmitter& emitter)
      : form_(form),
        tiles_(form.tiles),
        pool_(kernel.pool),
        writer_(writer),
        emitter_(emitter),
        operand_tiles_(kernel, contraction, form, writer, emitter),
        left_(operand_tiles_.left()),
        right_(operand_tiles_.right()) {}

  void emit(const MainloopPlace& place) {
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

  std::int64_t steps() const { return operand_tiles_.steps(); }

 private:
  // Fetches a tile and starts the register loads of the next one.
  std::string fetch(const std::string& step, const std::string& into) const {
    return fmt::format("{}({}, {})", fetch_, step, into) +
           (keep_.empty() ? "" : fmt::format(", {}({} + 1)", keep_, step));
  }

  void fetch_first() {
    if (!keep_.empty()) writer_.line(fmt::format("{}({});", keep_, first_));
    for (int s = 0; s < tiles_.stages - 1; ++s) {
      const std::string step = first_ == "0" ? std::to_string(s) : fmt::format("{} + {}", first_, s);
      const std::string if_there = first_ == "0" ? "" : fmt::format("if ({} < {}) ", step, end_);
      if (s < operand_tiles_.steps())
        writer_.line(if_there + fetch(step, std::to_string(s * form_.stage_bytes())) + ";");
      writer_.line("commit_copies();");
    }
  }

  // The prologue as a loop that starts one step early, without a fetch. Register loads are many statements, and NVRTC's
  // time grows with their number.
  void fetch_first_in_loop() {
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
  void steps_on_tensor_cores(const std::string& wait, const std::string& next_reading,
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
    if (summed) subtract_zero_point(*summed);
  }

  // The operand with quantized values to be summed along K: the other one has a zero point.
  const ConvolutionOperandTile* other_with_offset() const {
    if (form_.left.offset != kNoExpr) return &right_;
    return form_.right.offset != kNoExpr ? &left_ : nullptr;
  }

  // (x - o) w = x w - o * (sum of w). Past the end of K, w is 0.
  void subtract_zero_point(const ConvolutionOperandTile& other) {
    const ExprId offset = other.left ? form_.right.offset : form_.left.offset;
    writer_.line(fmt::format("subtract_zero_point<{}>({}, {}, {}, warp_lane);", !other.left, accumulator_,
                             other_quantized_, emitter_.emit(offset)));
  }

  // Declares the offsets at which a lane reads the 32-bit words of an operand tile that is not K-major: element (row,
  // k) is at [k][row].
  void declare_words(const ConvolutionOperandTile& t, int slices) {
    if (t.k_major) return;
    const int across = t.left ? tiles_.warp_rows : tiles_.warp_columns;
    writer_.line(fmt::format("const Tf32Addresses<{}, {}, {}, {}> {}({}, {}, warp_lane);", t.left, t.units, across / 16,
                             slices, t.places, t.offset, t.left ? "warp_row" : "warp_column"));
  }

  void steps_in_lanes(const std::string& wait, const std::string& next_reading,
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

  const ConvolutionForm& form_;
  const GemmTiles& tiles_;
  const ExprPool& pool_;
  KernelWriter& writer_;
  ExprEmitter& emitter_;
  std::string stages_, accumulator_, first_, end_;
  std::string other_quantized_;  // accumulated quantized values of the other operand, for a zero point
  std::string fetch_, keep_;     // names of device functions; keep_: "" if nothing is staged in registers
  ConvolutionTileLoader operand_tiles_;
  const ConvolutionOperandTile &left_, &right_;
};

class ConvolutionEmitter {
 public:
  ConvolutionEmitter(const Kernel& kernel, const Contraction& contraction, std::span<const ConvolutionForm> forms,
                     const Graph& graph, KernelWriter& writer)
      : kernel_(kernel),
        contraction_(contraction),
        forms_(forms),
        form_(forms[0]),
        tiles_(form_.tiles),
        pool_(kernel.pool),
        graph_(graph),
        writer_(writer),
        emitter_(kernel, writer) {
    for (const ConvolutionForm& form : forms) loops_.emplace_back(kernel, contraction, form, writer, emitter_);
  }

  KernelSource emit() {
    for (const std::uint32_t a : contraction_.shared_rest) emitter_.bind(a, "0");
    writer_.use("dynamic_shared");
    writer_.use("load_matrices");
    writer_.use("copy_pipeline");
    writer_.use("swizzle");
    stages_ = writer_.unique("stages");
    writer_.line(fmt::format("const unsigned {} = shared_address(dynamic_shared);", stages_));
    place_block();
    for (const ConvolutionForm& form : forms_) {
      std::string& sum = accumulators_[form.reduction] = writer_.unique("sum");
      declare_accumulator(writer_, tiles_, form.tensor_cores(), pool_[form.reduction].type, sum);
    }
    if (forms_.size() == 1)
      sum_alone();
    else
      sum_one_by_one();
    const GemmForm gemm = as_gemm(form_, forms_.size());
    if (tiles_.split_k > 1)
      store_partials();
    else
      emit_epilogue({kernel_, contraction_, gemm, accumulators_, row0_, column0_, batch_}, graph_, writer_);
    KernelSource source = writer_.finish(comment(), tiles_.threads(), blocks_at_a_time());
    source.name = kernel_name(graph_, kernel_.nodes) + (tiles_.split_k > 1 ? "_shares" : "");
    source.grid[1] = tiles_.split_k;
    source.grid[0] = simplify(tiles_down() * tiles_across() * count(contraction_.batch), pool_.bounds());
    source.dynamic_shared = shared_bytes(gemm);
    for (const ConvolutionForm& form : forms_)
      source.dynamic_shared = std::max(*source.dynamic_shared.as_constant(), form.shared_bytes());
    source.schedule = {KernelKind::kConvolution, mma_if(form_.tensor_cores())};
    return source;
  }

 private:
  IndexExpr count(const std::vector<std::uint32_t>& axes) const { return point_count(pool_, axes); }
  IndexExpr tiles_down() const { return simplify(ceil_div(count(contraction_.rows), tiles_.rows), pool_.bounds()); }
  IndexExpr tiles_across() const {
    return simplify(ceil_div(count(contraction_.columns), tiles_.columns), pool_.bounds());
  }

  MainloopPlace place(const ConvolutionForm& form, const std::string& first, const std::string& end) const {
    return {row0_, column0_, stages_, accumulators_.at(form.reduction), first, end};
  }

  // The block's K steps: all, or its split.
  void sum_alone() {
    const std::int64_t steps = loops_[0].steps();
    if (tiles_.split_k == 1) return loops_[0].emit(place(form_, "0", std::to_string(steps)));
    split_ = writer_.unique("share");
    const std::string first = writer_.unique("first_step"), end = writer_.unique("end_step");
    writer_.line(fmt::format("const int {0} = (int)blockIdx.y, {1} = {0} * {2} / {3}, {4} = ({0} + 1) * {2} / {3};",
                             split_, first, steps, tiles_.split_k, end));
    loops_[0].emit(place(form_, first, end));
  }

  // Tables and tiles reuse the shared memory of the previous accumulator.
  void sum_one_by_one() {
    for (std::size_t i = 0; i < forms_.size(); ++i) {
      const ExprEmitter::Mark mark = emitter_.mark();
      if (i > 0) writer_.line("__syncthreads();  // nobody reads what the sum before was made of");
      writer_.open("");
      loops_[i].emit(place(forms_[i], "0", std::to_string(loops_[i].steps())));
      writer_.close();
      emitter_.rewind(mark);
    }
  }

  void store_partials() {
    const SplitKPartials split_k(tiles_.split_k, contraction_, pool_, tiles_.rows, tiles_.columns);
    const SplitPosition place{split_, batch_, row0_ + " + warp_row", column0_ + " + warp_column"};
    const ScalarType type = pool_[form_.reduction].type;
    store_partial(emitter_, split_k, declare_partial(writer_, split_k, type), place, 0,
                  accumulators_.at(form_.reduction), type, tiles_.warp_rows / 16, tiles_.warp_columns,
                  form_.tensor_cores() ? 1 : 4);
  }

  std::vector<std::string> comment() const {
    std::vector<std::string> lines = kernel_comment(graph_, kernel_);
    lines.push_back(tiles_comment(tiles_, form_.tensor_cores()) +
                    fmt::format(" Where {} is what its column adds and what k adds, by a table.",
                                form_.has_vector_gather() ? "a piece of 16 bytes lies" : "an element lies"));
    if (forms_.size() > 1) lines.push_back(fmt::format("{} sums, one after the other.", forms_.size()));
    return lines;
  }

  // Minimum of resident blocks per multiprocessor. Gathered elements and positions stay in registers for a step;
  // without this number, ptxas uses too few registers and spills.
  int blocks_at_a_time() const {
    // Float8 is converted to float16 for the MMA; with several accumulators, the finished ones stay in registers.
    const int threads = form_.dtype == DType::kFloat8E4M3FN || forms_.size() > 1 ? 256 : 384;
    if (form_.tensor_cores()) return std::max(1, threads / tiles_.threads());
    const bool in_strips = std::ranges::any_of(forms_, [](const ConvolutionForm& form) {
      const bool strips =
          form.left.fill == ConvolutionFill::kScalarAlongK || form.right.fill == ConvolutionFill::kScalarAlongK;
      return strips && (form.left.has_offset_table || form.right.has_offset_table);
    });
    const int blocks = min_blocks_per_multiprocessor(tiles_, false, forms_.size());
    // The lanes' registers hold accumulators and operands.
    const bool full = tiles_.warp_rows * tiles_.warp_columns / 32 >= 64;
    // Gathered strips also keep a position and taps per line; with a gathered operand next to them, the data of its
    // lines.
    return full && in_strips ? (3 * blocks + 3) / 4 : blocks;
  }

  void place_block() {
    row0_ = writer_.unique("row0");
    column0_ = writer_.unique("column0");
    const auto [tile, batch] = fusec::place_block(emitter_, contraction_, tiles_down(), tiles_across());
    batch_ = batch;
    writer_.line(fmt::format("const int {0} = {1}.row * {2}, {3} = {1}.column * {4};", row0_, tile, tiles_.rows,
                             column0_, tiles_.columns));
    place_warps(writer_, tiles_);
  }

  const Kernel& kernel_;
  const Contraction& contraction_;
  const std::span<const ConvolutionForm> forms_;
  const ConvolutionForm& form_;  // the first of forms_
  const GemmTiles& tiles_;
  const ExprPool& pool_;
  const Graph& graph_;
  KernelWriter& writer_;
  ExprEmitter emitter_;
  std::string stages_, row0_, column0_, batch_, split_;
  std::map<ExprId, std::string> accumulators_;
  std::deque<ConvolutionMainloop> loops_;  // one per form; a deque, so that they keep their addresses
};

}  // namespace

std::vector<KernelSource> emit_convolution(const Kernel& kernel, const Contraction& contraction,
                                           std::span<const ConvolutionForm> forms, const Graph& graph) {
  KernelWriter writer(graph, false);
  std::vector<KernelSource> sources{ConvolutionEmitter(kernel, contraction, forms, graph, writer).emit()};
  const GemmTiles& t = forms[0].tiles;
  if (t.split_k > 1)
    sources.push_back(emit_split_k_reduction(kernel, contraction, as_gemm(forms[0]),
                                             SplitKPartials(t.split_k, contraction, kernel.pool, t.rows, t.columns),
                                             graph));
  return sources;
}

}  // namespace fusec
