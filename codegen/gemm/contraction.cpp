#include "codegen/gemm/contraction.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "codegen/access/direct.h"
#include "codegen/expr/emit_expr.h"
#include "codegen/expr/limit_unrolling.h"
#include "codegen/gemm/row_gemm_epilogue.h"
#include "codegen/gemm/tile_load.h"
#include "ir/type.h"
#include "schedule/gemm/contraction_tiles.h"

namespace fusec {
namespace {

class ContractionEmitter {
 public:
  // `rows`: if whole rows are reduced, instead of the kernel's elements being stored.
  ContractionEmitter(const Kernel& kernel, const Contraction& contraction, const RowGemm* rows, const Graph& graph,
                     ExprEmitter& emitter, KernelWriter& writer)
      : kernel_(kernel),
        pool_(kernel.pool),
        graph_(graph),
        emitter_(emitter),
        writer_(writer),
        p_(contraction),
        rows_(rows),
        tiles_(rows ? tiles_of(*rows).block : tiles_of(kernel.pool, contraction)),
        loads_(emitter, writer, tiles_.threads) {}

  KernelSource emit() {
    if (rows_) declare_whole_rows();
    declare_tiles();
    place_block();
    for (const std::uint32_t a : p_.shared_rest) emitter_.bind(a, "0");
    rows_of_block();
    place_threads();
    rows_ ? make_whole_rows() : make_tile();
    // Shared memory has room for two blocks of whole rows. Without this bound ptxas limits registers for more blocks,
    // and spills.
    KernelSource source = writer_.finish(comment(), tiles_.threads, rows_ ? 2 : 0);
    source.name = kernel_name(graph_, kernel_.nodes);
    source.grid[0] = simplify(tiles_down() * (rows_ ? IndexExpr(1) : tiles_across()) * count(p_.batch), pool_.bounds());
    if (rows_) source.dynamic_shared = tiles_of(*rows_).bytes;
    source.schedule = {rows_ ? KernelKind::kRowGemm : KernelKind::kContraction, mma_if(tiles_.tensor_cores)};
    return source;
  }

 private:
  IndexExpr count(const std::vector<std::uint32_t>& axes) const { return point_count(pool_, axes); }
  std::string integer() const { return writer_.index_type(); }
  std::string text(const IndexExpr& e) { return emitter_.index_text().tight(e); }

  IndexExpr tiles_down() const { return simplify(ceil_div(count(p_.rows), tiles_.rows), pool_.bounds()); }
  IndexExpr tiles_across() const { return simplify(ceil_div(count(p_.columns), tiles_.columns), pool_.bounds()); }

  std::vector<std::string> comment() const {
    std::vector<std::string> lines = kernel_comment(graph_, kernel_);
    if (rows_)
      lines.push_back(fmt::format("A block makes {} whole rows, {} columns at a time{}; then a warp takes a row.",
                                  tiles_.rows, tiles_.columns, tiles_.tensor_cores ? ", on tensor cores" : ""));
    else
      lines.push_back(fmt::format("A block makes a {}x{} tile; {} of k at a time go through shared memory{}.",
                                  tiles_.rows, tiles_.columns, tiles_.k(),
                                  tiles_.tensor_cores ? ", products on tensor cores" : ""));
    return lines;
  }

  ScalarType accumulator_type() const { return pool_[p_.loops[0].terms[0].reduction].type; }
  // The element type in shared memory: the stored 16-bit format, or the compute type.
  std::string element() const { return tiles_.tensor_cores ? "unsigned short" : c_type(accumulator_type()); }
  int size(bool is_left) const { return is_left ? tiles_.rows : tiles_.columns; }

  // Whole rows need more shared memory than a kernel may declare, and share it with the tiles.
  std::string declare_shared(std::string_view preferred_name, const std::string& type, std::int64_t elements) {
    const std::string name = writer_.unique(preferred_name);
    if (!rows_) {
      writer_.line(fmt::format("__shared__ __align__(16) {} {}[{}];", type, name, elements));
      return name;
    }
    writer_.line(fmt::format("{0}* const {1} = ({0}*){2};", type, name, shared_at_));
    shared_at_ = fmt::format("({} + {})", name, elements);
    return name;
  }

  void declare_whole_rows() {
    writer_.use("dynamic_shared");
    const std::int64_t elements = std::int64_t{tiles_.rows} * tiles_of(*rows_).row_stride;
    for (const ContractionLoop& loop : p_.loops)
      for (const ContractionTerm& term : loop.terms)
        whole_rows_[term.reduction] = declare_shared("whole_rows", c_type(accumulator_type()), elements);
  }

  // Loops run one after the other and share the tiles.
  void declare_tiles() {
    for (const bool left : {true, false}) {
      std::size_t most = 0;
      for (const ContractionLoop& loop : p_.loops) most = std::max(most, (left ? loop.left : loop.right).size());
      for (std::size_t i = 0; i < most; ++i)
        (left ? left_tiles_ : right_tiles_)
            .push_back(declare_shared(left ? "left_tile" : "right_tile", element(), tiles_.elements(size(left))));
    }
  }

  // Whole rows come one block after the other; the columns of a row are a loop.
  void place_block() {
    const std::string across = rows_ ? "" : text(tiles_across()), down = text(tiles_down());
    row0_ = writer_.unique("row0");
    column0_ = writer_.unique("column0");
    const std::string tile = writer_.unique("tile");
    writer_.line(fmt::format("const {} {} = blockIdx.x;", integer(), tile));
    if (!rows_)
      writer_.line(fmt::format("const {} {} = {} % {} * {};", integer(), column0_, tile, across, tiles_.columns));
    writer_.line(fmt::format("const {} {} = {}{} % {} * {};", integer(), row0_, tile, rows_ ? "" : " / " + across, down,
                             tiles_.rows));
    if (p_.batch.empty()) return;
    const std::string batch = writer_.unique("batch");
    writer_.line(fmt::format("const {} {} = {} / {};", integer(), batch, tile,
                             rows_ ? down : fmt::format("({} * {})", across, down)));
    bind_flat(emitter_, p_.batch, batch, "bcdefgh");
  }

  void place_threads() {
    writer_.line("const int warp = threadIdx.x / 32, warp_lane = threadIdx.x % 32;");
    if (tiles_.tensor_cores)
      writer_.line(fmt::format("const int warp_row = warp / {0} * {1}, warp_column = warp % {0} * 32;",
                               tiles_.warps_across(), tiles_.warp_rows));
    else
      writer_.line("const int thread_row = threadIdx.x / 16, thread_column = threadIdx.x % 16;");
  }

  int m16_tiles() const { return tiles_.warp_rows / 16; }

  void declare_accumulators() {
    for (const ContractionLoop& loop : p_.loops)
      for (const ContractionTerm& term : loop.terms) {
        std::string& sum = accumulators_[term.reduction] = writer_.unique("sum");
        if (tiles_.tensor_cores)
          writer_.line(fmt::format("float {}[{}][4][4] = {{}};", sum, m16_tiles()));
        else
          writer_.line(fmt::format("{} {}[{}][4] = {{}};", c_type(pool_[term.reduction].type), sum, tiles_.rows / 16));
      }
  }

  void make_tile() {
    declare_accumulators();
    if (p_.expert_index) open_expert_loop();
    for (const ContractionLoop& loop : p_.loops) main_loop(loop);
    if (p_.expert_index) writer_.close();
    epilogue();
  }

  // Makes the rows in shared memory, some columns at a time. Then each warp takes a row.
  void make_whole_rows() {
    const int stride = tiles_of(*rows_).row_stride;
    writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; {0} += {2})", column0_, rows_->columns, tiles_.columns));
    declare_accumulators();
    for (const ContractionLoop& loop : p_.loops) main_loop(loop);
    for (const auto& [reduction, rows] : whole_rows_) store_sums(accumulators_.at(reduction), rows, stride);
    writer_.close();
    writer_.line("__syncthreads();");
    constexpr int kMostNeighbours = 2;  // 16 bytes of float64
    emit_row_gemm_epilogue({*rows_, whole_rows_, row0_, tiles_.rows, stride, tiles_.threads,
                            row_vector_width(*rows_, stride, kMostNeighbours)},
                           graph_, writer_, emitter_);
  }

  // Declares per-row values in shared memory: values that are the same for all columns, and the chosen matrix (-1 for
  // rows outside).
  void rows_of_block() {
    if (p_.row_values.empty() && !p_.expert_index) return;
    for (const ExprId id : p_.row_values) {
      std::string& name = row_values_[id] = writer_.unique("of_row");
      writer_.line(fmt::format("__shared__ {} {}[{}];", c_type(pool_[id].type), name, tiles_.rows));
    }
    if (p_.expert_index) {
      expert_of_row_ = writer_.unique("matrix_of_row");
      writer_.line(fmt::format("__shared__ int {}[{}];", expert_of_row_, tiles_.rows));
      writer_.line(fmt::format("if (threadIdx.x < {}) {}[threadIdx.x] = -1;", tiles_.rows, expert_of_row_));
    }
    const std::string row = writer_.unique("row");
    writer_.line(fmt::format("const {} {} = {} + threadIdx.x;", integer(), row, row0_));
    writer_.open(fmt::format("if (threadIdx.x < {} && {} < {})", tiles_.rows, row, text(count(p_.rows))));
    const ExprEmitter::Mark mark = emitter_.mark();
    bind_flat(emitter_, p_.rows, row, "mnopq");
    std::vector<ExprId> wanted = p_.row_values;
    if (p_.expert_index) wanted.push_back(p_.expert_index->value);
    const std::vector<std::string> values = emitter_.emit(wanted);
    for (std::size_t i = 0; i < p_.row_values.size(); ++i)
      writer_.line(fmt::format("{}[threadIdx.x] = {};", row_values_.at(wanted[i]), values[i]));
    if (p_.expert_index) writer_.line(fmt::format("{}[threadIdx.x] = (int){};", expert_of_row_, values.back()));
    emitter_.rewind(mark);
    writer_.close();
    writer_.line("__syncthreads();");
  }

  // Opens a loop over the matrices that some row of the tile chooses.
  void open_expert_loop() {
    const std::string first = writer_.unique("first_matrix"), last = writer_.unique("last_matrix");
    matrix_ = writer_.unique("matrix");
    const std::string line = writer_.unique("line"), wanted = writer_.unique("wanted");
    writer_.line(fmt::format("int {} = 2147483647, {} = -1;", first, last));
    writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", line, tiles_.rows));
    writer_.line(fmt::format("if ({0}[{1}] >= 0) {2} = min({2}, {0}[{1}]);", expert_of_row_, line, first));
    writer_.line(fmt::format("{2} = max({2}, {0}[{1}]);", expert_of_row_, line, last));
    writer_.close();
    writer_.open(fmt::format("for (int {0} = {1}; {0} <= {2}; ++{0})", matrix_, first, last));
    writer_.line(fmt::format("bool {} = false;", wanted));
    writer_.line(fmt::format("for (int {0} = 0; {0} < {1}; ++{0}) {2} = {2} || {3}[{0}] == {4};", line, tiles_.rows,
                             wanted, expert_of_row_, matrix_));
    writer_.line(fmt::format("if (!{}) continue;", wanted));
  }

  // Defines the values of a row; `line`: its index in the tile.
  void define_row_values(const std::string& line) {
    for (const auto& [id, name] : row_values_) emitter_.define(id, fmt::format("{}[{}]", name, line));
  }

  void main_loop(const ContractionLoop& loop) {
    k_axes_ = loop.k;
    const std::string step = writer_.unique("k0");
    writer_.open(
        fmt::format("for ({0} {1} = 0; {1} < {2}; {1} += {3})", integer(), step, text(count(loop.k)), tiles_.k()));
    for (std::size_t i = 0; i < loop.left.size(); ++i) fill_tile(left_tiles_[i], loop.left[i], true, step);
    for (std::size_t i = 0; i < loop.right.size(); ++i) fill_tile(right_tiles_[i], loop.right[i], false, step);
    writer_.line("__syncthreads();");
    const bool some = tiles_.tensor_cores && tiles_.warps() < tiles_.threads / 32;
    if (some) writer_.open(fmt::format("if (warp < {})", tiles_.warps()));
    tiles_.tensor_cores ? multiply_on_tensor_cores(loop) : multiply_in_lanes(loop);
    if (some) writer_.close();
    writer_.line("__syncthreads();");
    writer_.close();
  }

  // The load of an operand's tile; `across`: a line of it runs across K.
  TileLoad load_of(const std::string& tile, ExprId operand, bool is_left, bool across, const std::string& step) const {
    TileLoad load{.tile = tile,
                  .stride = tiles_.stride(size(is_left), across),
                  .lines = size(is_left),
                  .places = tiles_.k(),
                  .operand = operand,
                  .line_axes = is_left ? p_.rows : p_.columns,
                  .position_axes = k_axes_,
                  .line0 = is_left ? row0_ : column0_,
                  .place0 = step,
                  .unrolled = TileLoad::kToFit,
                  .narrowed = p_.tensor_dtype};
    if (!across) return load;
    std::swap(load.lines, load.places);
    std::swap(load.line_axes, load.position_axes);
    std::swap(load.line0, load.place0);
    return load;
  }

  // True if lines run across K: always without tensor cores, and on these if only such lines are loaded as vectors.
  bool runs_across(ExprId operand, bool is_left) const {
    if (!tiles_.tensor_cores) return true;
    const int along = loads_.vector_width(load_of("", operand, is_left, false, ""));
    return along < loads_.vector_width(load_of("", operand, is_left, true, ""));
  }

  void fill_tile(const std::string& tile, ExprId operand, bool is_left, const std::string& step) {
    const bool across = runs_across(operand, is_left);
    TileLoad load = load_of(tile, operand, is_left, across, step);
    if (is_left)
      load.more = [this, across](const std::string& line, const std::string& place) -> std::string {
        const std::string& row = across ? place : line;
        define_row_values(row);
        return p_.expert_index ? fmt::format("{}[{}] == {}", expert_of_row_, row, matrix_) : "";
      };
    const ExprEmitter::Mark mark = emitter_.mark();
    if (!is_left && p_.expert_index) emitter_.bind(p_.expert_index->axis, matrix_);
    loads_.load(load);
    emitter_.rewind(mark);
  }

  std::string place_in(const std::string& tile, const std::string& line, const std::string& place, bool is_left,
                       bool across) const {
    const std::string slow = across ? place : line;
    return fmt::format("{}[{} * {} + {}]", tile, slow.find(' ') == std::string::npos ? slow : "(" + slow + ")",
                       tiles_.stride(size(is_left), across), across ? line : place);
  }

  // The name, with a number if there are several: "a", or "a0", "a1".
  static std::string numbered(std::string_view name, std::size_t i, std::size_t count) {
    return count == 1 ? std::string(name) : fmt::format("{}{}", name, i);
  }

  void multiply_on_tensor_cores(const ContractionLoop& loop) {
    const std::string mma = *p_.tensor_dtype == DType::kBFloat16 ? "mma_bf16" : "mma_fp16";
    writer_.use(mma);
    writer_.use("load_pieces");
    const auto a = [&](std::size_t i) { return numbered("a", i, loop.left.size()); };
    const auto b = [&](std::size_t i) { return numbered("b", i, loop.right.size()); };
    writer_.line("#pragma unroll");
    writer_.open(fmt::format("for (int kk = 0; kk < {}; kk += 16)", tiles_.k()));
    std::string fragments;
    for (std::size_t i = 0; i < loop.left.size(); ++i)
      fragments += fmt::format("{}{}[{}][4]", i ? ", " : "", a(i), m16_tiles());
    for (std::size_t i = 0; i < loop.right.size(); ++i) fragments += fmt::format(", {}[2][4]", b(i));
    writer_.line(fmt::format("unsigned {};", fragments));
    for (std::size_t f = 0; f < loop.left.size(); ++f)
      load_fragments(a(f), left_tiles_[f], true, runs_across(loop.left[f], true));
    for (std::size_t f = 0; f < loop.right.size(); ++f)
      load_fragments(b(f), right_tiles_[f], false, runs_across(loop.right[f], false));
    for (const ContractionTerm& term : loop.terms) {
      writer_.line("#pragma unroll");
      writer_.line(fmt::format("for (int i = 0; i < {}; ++i)", m16_tiles()));
      writer_.line("#pragma unroll");
      writer_.line(fmt::format(
          "  for (int j = 0; j < 4; ++j) {0}({1}[i][j], {2}[i], {{{3}[j / 2][j % 2 * 2], {3}[j / 2][j % 2 * 2 + 1]}});",
          mma, accumulators_.at(term.reduction), a(term.left), b(term.right)));
    }
    writer_.close();
  }

  // Loads fragments with ldmatrix: each eight lanes have the lines of one 8x8 matrix. The four matrices of the left
  // operand come across K first, those of the right operand along K first.
  void load_fragments(const std::string& fragments, const std::string& tile, bool is_left, bool across) {
    const char* across_k = is_left ? "warp_lane / 8 % 2 * 8" : "warp_lane / 16 * 8";
    const char* k_major = is_left ? "warp_lane / 16 * 8" : "warp_lane / 8 % 2 * 8";
    const std::string line =
        fmt::format("{} + {}{}", is_left ? "warp_row" : "warp_column", across_k, across ? "" : " + warp_lane % 8");
    const std::string place = fmt::format("kk + {}{}", k_major, across ? " + warp_lane % 8" : "");
    const int stride = across ? 1 : tiles_.stride(size(is_left), false);
    writer_.line(fmt::format("load_pieces{}<{}>({}, shared_address(&{}));", across ? "_transposed" : "", 32 * stride,
                             fragments, place_in(tile, line, place, is_left, across)));
  }

  void multiply_in_lanes(const ContractionLoop& loop) {
    writer_.open_unrolled("kk", tiles_.k());
    for (const ContractionTerm& term : loop.terms) {
      writer_.line("#pragma unroll");
      writer_.line(fmt::format("for (int i = 0; i < {}; ++i)", tiles_.rows / 16));
      writer_.line("#pragma unroll");
      writer_.line(fmt::format("  for (int j = 0; j < 4; ++j) {}[i][j] += {} * {};", accumulators_.at(term.reduction),
                               place_in(left_tiles_[term.left], "thread_row + 16 * i", "kk", true, true),
                               place_in(right_tiles_[term.right], "thread_column + 16 * j", "kk", false, true)));
    }
    writer_.close();
  }

  // Stores some columns of whole rows; fragments as pairs of columns. The last pair of a row may exceed it; the row has
  // room for that.
  void store_sums(const std::string& sum, const std::string& rows, int stride) {
    const bool pairs = tiles_.tensor_cores, some = pairs && tiles_.warps() < tiles_.threads / 32;
    if (some) writer_.open(fmt::format("if (warp < {})", tiles_.warps()));
    writer_.line("#pragma unroll");
    writer_.line(fmt::format("for (int i = 0; i < {}; ++i)", tiles_.rows / 16));
    writer_.line("#pragma unroll");
    writer_.open("  for (int j = 0; j < 4; ++j)");
    const std::string line = writer_.unique("line"), column = writer_.unique("column"), to = writer_.unique("to");
    writer_.line(fmt::format("const int {} = {}, {} = {} + {};", line,
                             pairs ? "i * 16 + warp_lane / 4" : "thread_row + 16 * i", column, column0_,
                             pairs ? "warp_column + j * 8 + warp_lane % 4 * 2" : "thread_column + 16 * j"));
    writer_.line(
        fmt::format("{}* const {} = {} + {} * {} + {};", c_type(accumulator_type()), to, rows, line, stride, column));
    writer_.open(fmt::format("if ({} < {})", column, rows_->columns));
    if (pairs) {
      writer_.use("neighbours");
      writer_.line(fmt::format("*(Neighbours<float, 2>*){} = {{{}[i][j][0], {}[i][j][1]}};", to, sum, sum));
      writer_.line(
          fmt::format("*(Neighbours<float, 2>*)({} + {}) = {{{}[i][j][2], {}[i][j][3]}};", to, 8 * stride, sum, sum));
    } else {
      writer_.line(fmt::format("*{} = {}[i][j];", to, sum));
    }
    writer_.close();
    writer_.close();
    if (some) writer_.close();
  }

  void epilogue() {
    const std::string row = writer_.unique("row"), column = writer_.unique("column");
    if (tiles_.tensor_cores) {
      take_items(32, "[i / 16][i / 4 % 4][i % 4]");
      writer_.line(
          fmt::format("const {} {} = {} + warp_row + tile_item / 16 * 16 + tile_item % 4 / 2 * 8 + warp_lane / 4;",
                      integer(), row, row0_));
      writer_.line(
          fmt::format("const {} {} = {} + warp_column + tile_item / 4 % 4 * 8 + warp_lane % 4 * 2 + tile_item % 2;",
                      integer(), column, column0_));
    } else {
      take_items(16, "[i / 4][i % 4]");
      writer_.line(fmt::format("const {} {} = {} + thread_row + tile_item / 4 * 16;", integer(), row, row0_));
      writer_.line(fmt::format("const {} {} = {} + thread_column + tile_item % 4 * 16;", integer(), column, column0_));
    }
    writer_.open(fmt::format("if ({} < {} && {} < {})", row, text(count(p_.rows)), column, text(count(p_.columns))));
    const ExprEmitter::Mark mark = emitter_.mark();
    bind_flat(emitter_, p_.rows, row, "mnopq");
    bind_flat(emitter_, p_.columns, column, "ijlst");
    define_row_values(fmt::format("{} - {}", row, row0_));
    if (p_.expert_index) emitter_.bind(p_.expert_index->axis, "0");  // the accumulators include all matrices
    store_scalars(emitter_, emitter_.emit(roots_of(kernel_)));
    emitter_.rewind(mark);
    writer_.close();
    writer_.close();
  }

  // Copies the accumulators into an indexable array and opens a loop over them.
  void take_items(int items, const char* place) {
    for (const auto& [reduction, sum] : accumulators_) {
      const std::string all = writer_.unique(sum + "_items");
      writer_.line(fmt::format("{} {}[{}];", c_type(pool_[reduction].type), all, items));
      writer_.line("#pragma unroll");
      writer_.line(fmt::format("for (int i = 0; i < {}; ++i) {}[i] = {}{};", items, all, sum, place));
      emitter_.define(reduction, all + "[tile_item]");
    }
    writer_.line(kUnrollToFit);
    writer_.open(fmt::format("for (int tile_item = 0; tile_item < {0}; ++tile_item)", items));
  }

  const Kernel& kernel_;
  const ExprPool& pool_;
  const Graph& graph_;
  ExprEmitter& emitter_;
  KernelWriter& writer_;
  const Contraction& p_;
  const RowGemm* rows_;
  const ContractionTiles tiles_;
  TileLoader loads_;
  std::vector<std::uint32_t> k_axes_;  // of the current loop
  std::vector<std::string> left_tiles_, right_tiles_;
  std::map<ExprId, std::string> accumulators_;
  std::map<ExprId, std::string> whole_rows_;  // of each accumulator, in shared memory
  std::map<ExprId, std::string> row_values_;  // in shared memory, one per row of the tile
  std::string row0_, column0_, expert_of_row_, matrix_;
  std::string shared_at_ = "dynamic_shared";  // where the next part of it begins
};

KernelSource emit_by_expressions(const Kernel& kernel, const Contraction& contraction, const RowGemm* rows,
                                 const Graph& graph) {
  KernelWriter writer(graph, needs_wide_index(kernel, graph, point_count(kernel.pool, kernel.outputs.at(0).axes)));
  ExprEmitter emitter(kernel, writer);
  return ContractionEmitter(kernel, contraction, rows, graph, emitter, writer).emit();
}

}  // namespace

KernelSource emit_contraction(const Kernel& kernel, const Contraction& contraction, const Graph& graph) {
  return emit_by_expressions(kernel, contraction, nullptr, graph);
}

KernelSource emit_row_gemm(const RowGemm& form, const Graph& graph) {
  return emit_by_expressions(form.kernel, form.contraction, &form, graph);
}

}  // namespace fusec
