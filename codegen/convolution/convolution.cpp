#include "codegen/convolution/convolution.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>

#include "codegen/access/direct.h"
#include "codegen/convolution/convolution_mainloop.h"
#include "codegen/expr/emit_expr.h"
#include "codegen/gemm/gemm_block.h"
#include "codegen/gemm/gemm_epilogue.h"
#include "codegen/gemm/split_k.h"
#include "ir/type.h"

namespace fusec {
namespace {

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

  ConvolutionMainloopContext place(const ConvolutionForm& form, const std::string& first,
                                   const std::string& end) const {
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
