#include "codegen/gemm/row_gemm.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/access/direct.h"
#include "codegen/expr/emit_expr.h"
#include "codegen/gemm/row_gemm_epilogue.h"
#include "codegen/gemm/tile_load.h"
#include "ir/type.h"

namespace fusec {
namespace {

class RowGemmEmitter {
 public:
  RowGemmEmitter(const RowGemm& form, const Graph& graph, KernelWriter& writer, ExprEmitter& emitter)
      : form_(form),
        contraction_(form.contraction),
        pool_(form.kernel.pool),
        graph_(graph),
        writer_(writer),
        emitter_(emitter),
        tiles_(tiles_of(form)),
        loads_(emitter, writer, tiles_.threads) {}

  KernelSource emit() {
    declare_shared();
    place_block();
    multiply_chunks();
    constexpr int kMostNeighbours = 2;  // 16 bytes of float64
    emit_row_gemm_epilogue({form_, rows_, row0_, form_.rows, tiles_.row_stride, tiles_.threads,
                            row_vector_width(form_, tiles_.row_stride, kMostNeighbours)},
                           graph_, writer_, emitter_);
    // Shared memory has room for two blocks. Without this bound ptxas limits registers for more blocks, and spills.
    KernelSource source = writer_.finish(comment(), tiles_.threads, 2);
    source.name = kernel_name(graph_, form_.kernel.nodes);
    source.grid[0] = simplify(row_tiles() * count(contraction_.batch), pool_.bounds());
    source.dynamic_shared = tiles_.bytes;
    source.schedule = {KernelKind::kRowGemm, mma_if(contraction_.tensor_dtype.has_value())};
    return source;
  }

 private:
  IndexExpr count(const std::vector<std::uint32_t>& axes) const { return point_count(pool_, axes); }
  IndexExpr row_tiles() const { return simplify(ceil_div(count(contraction_.rows), form_.rows), pool_.bounds()); }
  std::string integer() const { return writer_.index_type(); }
  std::string text(const IndexExpr& e) { return emitter_.index_text().tight(simplify(e, pool_.bounds())); }
  ScalarType accumulator_type() const { return pool_[contraction_.loops[0].terms[0].reduction].type; }
  std::string element() const { return contraction_.tensor_dtype ? "unsigned short" : c_type(accumulator_type()); }
  // Elements per line of a tile. The padding avoids bank conflicts between lines that are read together.
  int stride() const { return tiles_.k + (contraction_.tensor_dtype ? 8 : 1); }

  std::vector<std::string> comment() const {
    std::vector<std::string> lines = kernel_comment(graph_, form_.kernel);
    lines.push_back(fmt::format("A block makes {} whole rows, {} columns at a time{}; then a warp takes a row.",
                                form_.rows, tiles_.chunk, contraction_.tensor_dtype ? ", on tensor cores" : ""));
    return lines;
  }

  void declare_shared() {
    writer_.use("dynamic_shared");
    std::string at = "dynamic_shared";
    const auto place = [&](std::string_view preferred_name, const std::string& type, std::int64_t elements) {
      const std::string name = writer_.unique(preferred_name);
      writer_.line(fmt::format("{0}* const {1} = ({0}*){2};", type, name, at));
      at = fmt::format("({} + {})", name, elements);
      return name;
    };
    for (const ContractionLoop& loop : contraction_.loops)
      for (const ContractionTerm& term : loop.terms)
        rows_[term.reduction] = place("whole_rows", c_type(accumulator_type()), form_.rows * tiles_.row_stride);
    std::size_t left = 0, right = 0;
    for (const ContractionLoop& loop : contraction_.loops) {
      left = std::max(left, loop.left.size());
      right = std::max(right, loop.right.size());
    }
    for (std::size_t i = 0; i < left; ++i) left_tiles_.push_back(place("left_tile", element(), form_.rows * stride()));
    for (std::size_t i = 0; i < right; ++i)
      right_tiles_.push_back(place("right_tile", element(), tiles_.chunk * stride()));
  }

  void place_block() {
    row0_ = writer_.unique("row0");
    const std::string tile = writer_.unique("tile");
    writer_.line(fmt::format("const {} {} = blockIdx.x;", integer(), tile));
    writer_.line(fmt::format("const {} {} = {} % {} * {};", integer(), row0_, tile, text(row_tiles()), form_.rows));
    for (const std::uint32_t a : contraction_.shared_rest) emitter_.bind(a, "0");
    if (!contraction_.batch.empty()) {
      const std::string batch = writer_.unique("batch");
      writer_.line(fmt::format("const {} {} = {} / {};", integer(), batch, tile, text(row_tiles())));
      bind_flat(emitter_, contraction_.batch, batch, "bcdefgh");
    }
    writer_.line("const int warp = threadIdx.x / 32, warp_lane = threadIdx.x % 32;");
    if (!contraction_.tensor_dtype)
      writer_.line("const int thread_row = threadIdx.x / 16, thread_column = threadIdx.x % 16;");
  }

  // --- the GEMM, into shared memory

  void multiply_chunks() {
    column0_ = writer_.unique("column0");
    writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; {0} += {2})", column0_, form_.columns, tiles_.chunk));
    for (const auto& [reduction, rows] : rows_) {
      std::string& sum = accumulators_[reduction] = writer_.unique("sum");
      writer_.line(contraction_.tensor_dtype
                       ? fmt::format("float {}[{}][4][4] = {{}};", sum, form_.rows / 16)
                       : fmt::format("{} {}[{}][4] = {{}};", c_type(accumulator_type()), sum, form_.rows / 16));
    }
    for (const ContractionLoop& loop : contraction_.loops) multiply(loop);
    for (const auto& [reduction, rows] : rows_) store_sums(accumulators_.at(reduction), rows);
    writer_.close();
    writer_.line("__syncthreads();");
  }

  void multiply(const ContractionLoop& loop) {
    const std::string step = writer_.unique("k0");
    writer_.open(
        fmt::format("for ({0} {1} = 0; {1} < {2}; {1} += {3})", integer(), step, text(count(loop.k)), tiles_.k));
    for (std::size_t i = 0; i < loop.left.size(); ++i)
      loads_.load(load_of(loop, left_tiles_[i], loop.left[i], true, step));
    for (std::size_t i = 0; i < loop.right.size(); ++i)
      loads_.load(load_of(loop, right_tiles_[i], loop.right[i], false, step));
    writer_.line("__syncthreads();");
    for (const ContractionTerm& term : loop.terms)
      contraction_.tensor_dtype ? multiply_on_tensor_cores(term) : multiply_in_lanes(term);
    writer_.line("__syncthreads();");
    writer_.close();
  }

  TileLoad load_of(const ContractionLoop& loop, const std::string& tile, ExprId operand, bool left,
                   const std::string& step) const {
    return {.tile = tile,
            .stride = stride(),
            .lines = left ? form_.rows : tiles_.chunk,
            .places = tiles_.k,
            .operand = operand,
            .line_axes = left ? contraction_.rows : contraction_.columns,
            .position_axes = loop.k,
            .line0 = left ? row0_ : column0_,
            .place0 = step,
            .narrowed = contraction_.tensor_dtype};
  }

  // A warp computes 32 columns of the chunk, for all rows.
  void multiply_on_tensor_cores(const ContractionTerm& term) {
    const std::string mma = *contraction_.tensor_dtype == DType::kBFloat16 ? "mma_bf16" : "mma_fp16";
    writer_.use(mma);
    const std::string &left = left_tiles_[term.left], &right = right_tiles_[term.right];
    const int warps = tiles_.chunk / 32;
    if (warps < tiles_.threads / 32) writer_.open(fmt::format("if (warp < {})", warps));
    writer_.line("#pragma unroll");
    writer_.open(fmt::format("for (int kk = 0; kk < {}; kk += 16)", tiles_.k));
    writer_.line(fmt::format("unsigned a[{}][4], b[4][2];", form_.rows / 16));
    writer_.line("const int group = warp_lane / 4, pair = kk + warp_lane % 4 * 2;");
    writer_.line("#pragma unroll");
    writer_.open(fmt::format("for (int i = 0; i < {}; ++i)", form_.rows / 16));
    writer_.line(fmt::format("const unsigned short* row = {} + (i * 16 + group) * {} + pair;", left, stride()));
    writer_.line(fmt::format("a[i][0] = *(const unsigned*)row, a[i][1] = *(const unsigned*)(row + {});", 8 * stride()));
    writer_.line(fmt::format("a[i][2] = *(const unsigned*)(row + 8), a[i][3] = *(const unsigned*)(row + {});",
                             8 * stride() + 8));
    writer_.close();
    writer_.line("#pragma unroll");
    writer_.open("for (int j = 0; j < 4; ++j)");
    writer_.line(
        fmt::format("const unsigned short* column = {} + (warp * 32 + j * 8 + group) * {} + pair;", right, stride()));
    writer_.line("b[j][0] = *(const unsigned*)column, b[j][1] = *(const unsigned*)(column + 8);");
    writer_.close();
    writer_.line("#pragma unroll");
    writer_.line(fmt::format("for (int i = 0; i < {}; ++i)", form_.rows / 16));
    writer_.line("#pragma unroll");
    writer_.line(
        fmt::format("  for (int j = 0; j < 4; ++j) {}({}[i][j], a[i], b[j]);", mma, accumulators_.at(term.reduction)));
    writer_.close();
    if (warps < tiles_.threads / 32) writer_.close();
  }

  void multiply_in_lanes(const ContractionTerm& term) {
    writer_.line("#pragma unroll");
    writer_.open(fmt::format("for (int kk = 0; kk < {}; ++kk)", tiles_.k));
    writer_.line("#pragma unroll");
    writer_.line(fmt::format("for (int i = 0; i < {}; ++i)", form_.rows / 16));
    writer_.line("#pragma unroll");
    writer_.line(fmt::format(
        "  for (int j = 0; j < 4; ++j) {0}[i][j] += {1}[(thread_row + 16 * i) * {3} + kk] * {2}[(thread_column + 16 * "
        "j) * {3} + kk];",
        accumulators_.at(term.reduction), left_tiles_[term.left], right_tiles_[term.right], stride()));
    writer_.close();
  }

  void store_sums(const std::string& sum, const std::string& rows) {
    if (contraction_.tensor_dtype) return store_fragments(sum, rows);
    writer_.line("#pragma unroll");
    writer_.line(fmt::format("for (int i = 0; i < {}; ++i)", form_.rows / 16));
    writer_.line("#pragma unroll");
    writer_.open("  for (int j = 0; j < 4; ++j)");
    const std::string line = writer_.unique("line"), column = writer_.unique("column");
    writer_.line(
        fmt::format("const int {} = thread_row + 16 * i, {} = {} + thread_column + 16 * j;", line, column, column0_));
    writer_.line(fmt::format("if ({} < {}) {}[{} * {} + {}] = {}[i][j];", column, form_.columns, rows, line,
                             tiles_.row_stride, column, sum));
    writer_.close();
  }

  // Stores pairs of columns. The last pair of a row may exceed it; the row has room for that.
  void store_fragments(const std::string& sum, const std::string& rows) {
    writer_.use("neighbours");
    writer_.line("#pragma unroll");
    writer_.line(fmt::format("for (int i = 0; i < {}; ++i)", form_.rows / 16));
    writer_.line("#pragma unroll");
    writer_.open("  for (int j = 0; j < 4; ++j)");
    const std::string column = writer_.unique("column"), to = writer_.unique("to");
    writer_.line(fmt::format("const int {} = {} + warp * 32 + j * 8 + warp_lane % 4 * 2;", column, column0_));
    writer_.line(
        fmt::format("float* const {} = {} + (i * 16 + warp_lane / 4) * {} + {};", to, rows, tiles_.row_stride, column));
    writer_.open(fmt::format("if ({} < {})", column, form_.columns));
    writer_.line(fmt::format("*(Neighbours<float, 2>*){} = {{{}[i][j][0], {}[i][j][1]}};", to, sum, sum));
    writer_.line(fmt::format("*(Neighbours<float, 2>*)({} + {}) = {{{}[i][j][2], {}[i][j][3]}};", to,
                             8 * tiles_.row_stride, sum, sum));
    writer_.close();
    writer_.close();
  }

  const RowGemm& form_;
  const Contraction& contraction_;
  const ExprPool& pool_;
  const Graph& graph_;
  KernelWriter& writer_;
  ExprEmitter& emitter_;
  RowGemmTiles tiles_;
  TileLoader loads_;
  std::map<ExprId, std::string> rows_,
      accumulators_;  // per accumulator: whole rows in shared memory; a chunk in registers
  std::vector<std::string> left_tiles_, right_tiles_;
  std::string row0_, column0_;
};

}  // namespace

KernelSource emit_row_gemm(const RowGemm& form, const Graph& graph) {
  const IndexExpr points = point_count(form.kernel.pool, form.kernel.outputs.at(0).axes);
  KernelWriter writer(graph, needs_wide_index(form.kernel, graph, points));
  ExprEmitter emitter(form.kernel, writer);
  return RowGemmEmitter(form, graph, writer, emitter).emit();
}

}  // namespace fusec
