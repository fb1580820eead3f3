#include "codegen/gemm/contraction.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>

#include "analysis/kernel/loads.h"
#include "codegen/access/direct.h"
#include "codegen/expr/emit_expr.h"
#include "codegen/expr/limit_unrolling.h"
#include "ir/type.h"
#include "schedule/layout/memory_access.h"
#include "schedule/reduction/row_form.h"

namespace fusec {
namespace {

constexpr int kTile = 64;     // rows and columns of a block's tile
constexpr int kMmaK = 32;     // K per step on tensor cores
constexpr int kScalarK = 16;  // K per step without tensor cores
constexpr int kMmaThreads = 128, kScalarThreads = 256;

class ContractionEmitter {
 public:
  ContractionEmitter(const Kernel& kernel, const Graph& graph, ExprEmitter& emitter, KernelWriter& writer,
                     Contraction contraction)
      : kernel_(kernel),
        pool_(kernel.pool),
        graph_(graph),
        emitter_(emitter),
        writer_(writer),
        p_(std::move(contraction)) {
    block_k_ = p_.tensor_dtype ? kMmaK : kScalarK;
    threads_ = p_.tensor_dtype ? kMmaThreads : kScalarThreads;
  }

  KernelSource emit() {
    declare_tiles();
    place_block();
    for (const std::uint32_t a : p_.shared_rest) emitter_.bind(a, "0");
    rows_of_block();
    main_loops();
    epilogue();
    KernelSource source = writer_.finish(comment(), threads_);
    source.name = kernel_name(graph_, kernel_.nodes);
    const Bounds& bounds = pool_.bounds();
    source.grid[0] =
        simplify(ceil_div(count(p_.rows), kTile) * ceil_div(count(p_.columns), kTile) * count(p_.batch), bounds);
    source.schedule = {KernelKind::kContraction, mma_if(p_.tensor_dtype.has_value())};
    return source;
  }

 private:
  IndexExpr count(const std::vector<std::uint32_t>& axes) const { return point_count(pool_, axes); }
  std::string integer() const { return writer_.index_type(); }
  std::string text(const IndexExpr& e) { return emitter_.index_text().tight(e); }

  std::vector<std::string> comment() const {
    std::vector<std::string> lines = kernel_comment(graph_, kernel_);
    lines.push_back(fmt::format("A block makes a {}x{} tile; {} of k at a time go through shared memory{}.", kTile,
                                kTile, block_k_, p_.tensor_dtype ? ", products on tensor cores" : ""));
    return lines;
  }

  ScalarType accumulator_type() const { return pool_[p_.loops[0].terms[0].reduction].type; }
  // The element type in shared memory: the stored 16-bit format, or the compute type.
  std::string element() const { return p_.tensor_dtype ? "unsigned short" : c_type(accumulator_type()); }
  // Elements per line of a tile. On tensor cores a line runs along K, or across K (`across`) if vector loads do;
  // ldmatrix transposes those. Without tensor cores all lines run across K. Padding avoids bank conflicts.
  int stride(bool across) const {
    if (p_.tensor_dtype) return (across ? kTile : block_k_) + 8;
    return kTile + (is_wide(accumulator_type()) ? 1 : 2);
  }

  // Loops run one after the other and share the tiles.
  void declare_tiles() {
    std::size_t left = 0, right = 0;
    for (const ContractionLoop& loop : p_.loops) {
      left = std::max(left, loop.left.size());
      right = std::max(right, loop.right.size());
    }
    for (std::size_t i = 0; i < left; ++i) left_tiles_.push_back(writer_.unique("left_tile"));
    for (std::size_t i = 0; i < right; ++i) right_tiles_.push_back(writer_.unique("right_tile"));
    const int elements = std::max(block_k_ * stride(true), p_.tensor_dtype ? kTile * stride(false) : 0);
    for (const auto* tiles : {&left_tiles_, &right_tiles_})
      for (const std::string& tile : *tiles)
        writer_.line(fmt::format("__shared__ __align__(16) {} {}[{}];", element(), tile, elements));
  }

  void place_block() {
    const IndexExpr across = simplify(ceil_div(count(p_.columns), kTile), pool_.bounds());
    const IndexExpr down = simplify(ceil_div(count(p_.rows), kTile), pool_.bounds());
    row0_ = writer_.unique("row0");
    column0_ = writer_.unique("column0");
    const std::string tile = writer_.unique("tile");
    writer_.line(fmt::format("const {} {} = blockIdx.x;", integer(), tile));
    writer_.line(fmt::format("const {} {} = {} % {} * {};", integer(), column0_, tile, text(across), kTile));
    writer_.line(
        fmt::format("const {} {} = {} / {} % {} * {};", integer(), row0_, tile, text(across), text(down), kTile));
    if (!p_.batch.empty()) {
      const std::string batch = writer_.unique("batch");
      writer_.line(fmt::format("const {} {} = {} / ({} * {});", integer(), batch, tile, text(across), text(down)));
      bind_flat(emitter_, p_.batch, batch, "bcdefgh");
    }
  }

  void main_loops() {
    if (p_.tensor_dtype) {
      writer_.line("const int warp = threadIdx.x / 32, warp_lane = threadIdx.x % 32;");
      writer_.line("const int warp_row = warp / 2 * 32, warp_column = warp % 2 * 32;");
    } else {
      writer_.line("const int thread_row = threadIdx.x / 16, thread_column = threadIdx.x % 16;");
    }
    for (const ContractionLoop& loop : p_.loops)
      for (const ContractionTerm& term : loop.terms) {
        std::string& sum = accumulators_[term.reduction] = writer_.unique("sum");
        if (p_.tensor_dtype)
          writer_.line(fmt::format("float {}[2][4][4] = {{}};", sum));
        else
          writer_.line(fmt::format("{} {}[4][4] = {{}};", c_type(pool_[term.reduction].type), sum));
      }
    if (p_.expert_index) open_expert_loop();
    for (const ContractionLoop& loop : p_.loops) main_loop(loop);
    if (p_.expert_index) writer_.close();
  }

  // Declares per-row values in shared memory: values that are the same for all columns, and the chosen matrix (-1 for
  // rows outside).
  void rows_of_block() {
    if (p_.row_values.empty() && !p_.expert_index) return;
    for (const ExprId id : p_.row_values) {
      std::string& name = row_values_[id] = writer_.unique("of_row");
      writer_.line(fmt::format("__shared__ {} {}[{}];", c_type(pool_[id].type), name, kTile));
    }
    if (p_.expert_index) {
      expert_of_row_ = writer_.unique("matrix_of_row");
      writer_.line(fmt::format("__shared__ int {}[{}];", expert_of_row_, kTile));
      writer_.line(fmt::format("if (threadIdx.x < {}) {}[threadIdx.x] = -1;", kTile, expert_of_row_));
    }
    const std::string row = writer_.unique("row");
    writer_.line(fmt::format("const {} {} = {} + threadIdx.x;", integer(), row, row0_));
    writer_.open(fmt::format("if (threadIdx.x < {} && {} < {})", kTile, row, text(count(p_.rows))));
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
    writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", line, kTile));
    writer_.line(fmt::format("if ({0}[{1}] >= 0) {2} = min({2}, {0}[{1}]);", expert_of_row_, line, first));
    writer_.line(fmt::format("{2} = max({2}, {0}[{1}]);", expert_of_row_, line, last));
    writer_.close();
    writer_.open(fmt::format("for (int {0} = {1}; {0} <= {2}; ++{0})", matrix_, first, last));
    writer_.line(fmt::format("bool {} = false;", wanted));
    writer_.line(fmt::format("for (int {0} = 0; {0} < {1}; ++{0}) {2} = {2} || {3}[{0}] == {4};", line, kTile, wanted,
                             expert_of_row_, matrix_));
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
        fmt::format("for ({0} {1} = 0; {1} < {2}; {1} += {3})", integer(), step, text(count(loop.k)), block_k_));
    for (std::size_t i = 0; i < loop.left.size(); ++i) fill_tile(left_tiles_[i], loop.left[i], true, step);
    for (std::size_t i = 0; i < loop.right.size(); ++i) fill_tile(right_tiles_[i], loop.right[i], false, step);
    writer_.line("__syncthreads();");
    if (p_.tensor_dtype)
      multiply_on_tensor_cores(loop);
    else
      multiply_in_lanes(loop);
    writer_.line("__syncthreads();");
    writer_.close();
  }

  // True if a plain 16-bit load has whole, aligned groups of eight along the axis.
  bool takes_vectors(ExprId operand, const std::vector<std::uint32_t>& along) const {
    const ExprNode& n = pool_[operand];
    if (!p_.tensor_dtype || n.op != ExprOp::kLoad || n.dtype != *p_.tensor_dtype || along.empty()) return false;
    const std::uint32_t axis = along.back();
    if (n.args[0] != kNoExpr && emitter_.depends_on(n.args[0], axis)) return false;
    const Variable v{Variable::Kind::kAxis, axis};
    const IndexExpr position = emitter_.position(operand);
    const auto coefficient = coefficient_of(position, v);
    if (!coefficient || *coefficient != 1 || is_indirect_along(position, {axis}, pool_)) return false;
    const IndexExpr rest = position - IndexExpr::axis(axis);
    return proves_multiple_of(rest, 8, pool_.bounds()) && proves_multiple_of(pool_.extent(axis), 8, pool_.bounds());
  }

  // Loads the tile of one operand. Elements outside the matrix are 0.
  void fill_tile(const std::string& tile, ExprId operand, bool is_left, const std::string& step) {
    const std::vector<std::uint32_t>& across = is_left ? p_.rows : p_.columns;
    const std::string& across0 = is_left ? row0_ : column0_;
    const bool k_vectors = takes_vectors(operand, k_axes_);
    const bool across_vectors = vectors_across(operand, is_left);
    const bool across_first = across_vectors || (!k_vectors && runs_across(operand, across));
    if (across_first && !across_vectors && p_.tensor_dtype) return fill_columns_of_eight(tile, operand, is_left, step);
    const int width = k_vectors || across_vectors ? 8 : 1;
    const int total = kTile * block_k_ / width;
    const std::string e = writer_.unique("e"), line = writer_.unique("line"), place = writer_.unique("place");
    const int fast = (across_first ? kTile : block_k_) / width;
    const std::string slow_name = across_first ? place : line, fast_name = across_first ? line : place;
    std::string slow = fmt::format("{} / {}", e, fast);
    if (k_vectors) {  // a line spans half of the banks: lines four apart use different halves
      const std::string first = writer_.unique("first_line");
      writer_.line(
          fmt::format("const int {} = threadIdx.x / 32 * 8 + threadIdx.x / 4 % 2 * 4 + threadIdx.x / 8 % 4;", first));
      slow = fmt::format("{} + ({} - (int)threadIdx.x) / {}", first, e, fast);
    }
    writer_.line(kUnrollToFit);
    writer_.open(fmt::format("for (int {0} = threadIdx.x; {0} < {1}; {0} += {2})", e, total, threads_));
    writer_.line(fmt::format("const int {} = {} % {}{};", fast_name, e, fast, width > 1 ? " * 8" : ""));
    writer_.line(fmt::format("const int {} = {};", slow_name, slow));
    const std::string at = writer_.unique("at"), k_index = writer_.unique("k");
    writer_.line(
        fmt::format("const {} {} = {} + {}, {} = {} + {};", integer(), at, across0, line, k_index, step, place));
    std::string inside = fmt::format("{} < {} && {} < {}", at, text(count(across)), k_index, text(count(k_axes_)));
    if (is_left && p_.expert_index) inside += fmt::format(" && {}[{}] == {}", expert_of_row_, line, matrix_);
    const ExprEmitter::Mark mark = emitter_.mark();
    if (is_left) define_row_values(line);
    if (!is_left && p_.expert_index) emitter_.bind(p_.expert_index->axis, matrix_);
    if (width > 1)
      load_vector(place_in(tile, line, place, across_vectors), operand, across, at, k_index, inside);
    else
      load_element(place_in(tile, line, place, !p_.tensor_dtype), operand, across, at, k_index, inside);
    emitter_.rewind(mark);
    writer_.close();
  }

  // Each thread loads eight places of a line, and neighbouring threads neighbouring lines. Single elements would cause
  // bank conflicts.
  void fill_columns_of_eight(const std::string& tile, ExprId operand, bool is_left, const std::string& step) {
    const std::vector<std::uint32_t>& across = is_left ? p_.rows : p_.columns;
    const std::string e = writer_.unique("e"), line = writer_.unique("line"), place = writer_.unique("place");
    writer_.line(kUnrollToFit);
    writer_.open(fmt::format("for (int {0} = threadIdx.x; {0} < {1}; {0} += {2})", e, kTile * block_k_ / 8, threads_));
    const std::string eight = writer_.unique("eight"), i = writer_.unique("i");
    writer_.line(fmt::format("const int {} = {} % {};", line, e, kTile));
    writer_.line(fmt::format("unsigned {}[4] = {{}};", eight));
    writer_.line("#pragma unroll");
    writer_.open(fmt::format("for (int {0} = 0; {0} < 8; ++{0})", i));
    writer_.line(fmt::format("const int {} = {} / {} * 8 + {};", place, e, kTile, i));
    const std::string at = writer_.unique("at"), k_index = writer_.unique("k");
    writer_.line(fmt::format("const {} {} = {} + {}, {} = {} + {};", integer(), at, is_left ? row0_ : column0_, line,
                             k_index, step, place));
    std::string inside = fmt::format("{} < {} && {} < {}", at, text(count(across)), k_index, text(count(k_axes_)));
    if (is_left && p_.expert_index) inside += fmt::format(" && {}[{}] == {}", expert_of_row_, line, matrix_);
    const ExprEmitter::Mark mark = emitter_.mark();
    if (is_left) define_row_values(line);
    if (!is_left && p_.expert_index) emitter_.bind(p_.expert_index->axis, matrix_);
    const std::string one = make_element(operand, across, at, k_index, inside);
    emitter_.rewind(mark);
    writer_.line(fmt::format("{}[{} / 2] |= (unsigned){} << ({} % 2 * 16);", eight, i, one, i));
    writer_.close();
    const std::string first = fmt::format("{} / {} * 8", e, kTile);
    writer_.line(fmt::format("*(uint4*)&{0} = make_uint4({1}[0], {1}[1], {1}[2], {1}[3]);",
                             place_in(tile, line, first, false), eight));
    writer_.close();
  }

  bool vectors_across(ExprId operand, bool is_left) const {
    return !takes_vectors(operand, k_axes_) && takes_vectors(operand, is_left ? p_.rows : p_.columns);
  }

  // True if some load is contiguous across K, or if loads across K touch fewer sectors than loads along K.
  bool runs_across(ExprId operand, const std::vector<std::uint32_t>& across) const {
    if (k_axes_.empty()) return true;
    const Variable last_across{Variable::Kind::kAxis, across.back()};
    int asked_across = 0, asked_along = 0;
    for (const ExprId id : reachable(pool_, std::span(&operand, 1))) {
      if (pool_[id].op != ExprOp::kLoad) continue;
      if (coefficient_of(emitter_.position(id), last_across) == 1) return true;
      asked_across += sectors_of_warp(id, across.back());
      asked_along += sectors_of_warp(id, k_axes_.back());
    }
    return asked_across > 0 && asked_across < asked_along;
  }

  // Sectors that a warp touches if its lanes are neighbours along the axis; 0 if all lanes load the same element.
  int sectors_of_warp(ExprId load, std::uint32_t axis) const {
    const IndexExpr position = emitter_.position(load);
    const auto step = coefficient_of(position, Variable{Variable::Kind::kAxis, axis});
    if (!step || is_indirect_along(position, {axis}, pool_)) return 32;
    const std::int64_t bytes = std::abs(*step) * bits(pool_[load].dtype) / 8;
    if (bytes == 0) return 0;
    std::array<std::int64_t, 32> addresses;
    for (std::size_t lane = 0; lane < addresses.size(); ++lane)
      addresses[lane] = static_cast<std::int64_t>(lane) * bytes;
    return static_cast<int>(count_sectors(addresses));
  }

  std::string place_in(const std::string& tile, const std::string& line, const std::string& place, bool across) const {
    const std::string slow = across ? place : line;
    return fmt::format("{}[{} * {} + {}]", tile, slow.find(' ') == std::string::npos ? slow : "(" + slow + ")",
                       stride(across), across ? line : place);
  }

  void load_vector(const std::string& to, ExprId operand, const std::vector<std::uint32_t>& across,
                   const std::string& at, const std::string& k_index, const std::string& inside) {
    const std::string eight = writer_.unique("eight");
    writer_.line(fmt::format("uint4 {} = make_uint4(0, 0, 0, 0);", eight));
    writer_.open(fmt::format("if ({})", inside));
    const ExprEmitter::Mark mark = emitter_.mark();
    bind_flat(emitter_, across, at, "mnopq");
    bind_flat(emitter_, k_axes_, k_index, "kluvw");
    const ExprNode& n = pool_[operand];
    const IndexExpr position = emitter_.position(operand);
    std::vector<ExprId> needed = values_in(position);
    if (n.args[0] != kNoExpr) needed.push_back(n.args[0]);
    const std::vector<std::string> texts = emitter_.emit(needed);
    writer_.line(fmt::format("{}{} = *(const uint4*)({} + {});",
                             n.args[0] == kNoExpr ? "" : "if (" + texts.back() + ") ", eight, writer_.input(n.source),
                             emitter_.index_text().tight(position)));
    emitter_.rewind(mark);
    writer_.close();
    writer_.line(fmt::format("*(uint4*)&{} = {};", to, eight));
  }

  void load_element(const std::string& to, ExprId operand, const std::vector<std::uint32_t>& across,
                    const std::string& at, const std::string& k_index, const std::string& inside) {
    const std::string one = make_element(operand, across, at, k_index, inside);
    writer_.line(fmt::format("{} = {};", to, one));
  }

  // Declares a variable with the operand's element, or 0 outside, and returns its name.
  std::string make_element(ExprId operand, const std::vector<std::uint32_t>& across, const std::string& at,
                           const std::string& k_index, const std::string& inside) {
    const std::string one = writer_.unique("one");
    writer_.line(fmt::format("{} {} = 0;", element(), one));
    writer_.open(fmt::format("if ({})", inside));
    const ExprEmitter::Mark mark = emitter_.mark();
    bind_flat(emitter_, across, at, "mnopq");
    bind_flat(emitter_, k_axes_, k_index, "kluvw");
    if (const std::string stored = stored_element(operand); !stored.empty()) {
      writer_.line(fmt::format("{} = {};", one, stored));
    } else {
      const std::string value = emitter_.emit(operand);
      writer_.line(fmt::format("{} = {};", one, p_.tensor_dtype ? narrow(*p_.tensor_dtype, value) : value));
      if (p_.tensor_dtype) writer_.use(*p_.tensor_dtype);
    }
    emitter_.rewind(mark);
    writer_.close();
    return one;
  }

  // For a plain load of the multiplied dtype: the text of its bits. "" for other operands.
  std::string stored_element(ExprId operand) {
    const ExprNode& n = pool_[operand];
    if (!p_.tensor_dtype || n.op != ExprOp::kLoad || n.args[0] != kNoExpr || n.dtype != *p_.tensor_dtype) return "";
    const IndexExpr position = emitter_.position(operand);
    emitter_.emit(values_in(position));
    return fmt::format("{}[{}]", writer_.input(n.source), emitter_.index_text().tight(position));
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
    writer_.open(fmt::format("for (int kk = 0; kk < {}; kk += 16)", block_k_));
    std::string fragments;
    for (std::size_t i = 0; i < loop.left.size(); ++i) fragments += fmt::format("{}{}[2][4]", i ? ", " : "", a(i));
    for (std::size_t i = 0; i < loop.right.size(); ++i) fragments += fmt::format(", {}[2][4]", b(i));
    writer_.line(fmt::format("unsigned {};", fragments));
    for (std::size_t f = 0; f < loop.left.size(); ++f)
      load_fragments(a(f), left_tiles_[f], true, vectors_across(loop.left[f], true));
    for (std::size_t f = 0; f < loop.right.size(); ++f)
      load_fragments(b(f), right_tiles_[f], false, vectors_across(loop.right[f], false));
    for (const ContractionTerm& term : loop.terms) {
      writer_.line("#pragma unroll");
      writer_.line("for (int i = 0; i < 2; ++i)");
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
    writer_.line(fmt::format("load_pieces{}<{}>({}, shared_address(&{}));", across ? "_transposed" : "",
                             32 * (across ? 1 : stride(false)), fragments, place_in(tile, line, place, across)));
  }

  void multiply_in_lanes(const ContractionLoop& loop) {
    writer_.line("#pragma unroll");
    writer_.open(fmt::format("for (int kk = 0; kk < {}; ++kk)", block_k_));
    for (const ContractionTerm& term : loop.terms) {
      writer_.line("#pragma unroll");
      writer_.line("for (int i = 0; i < 4; ++i)");
      writer_.line("#pragma unroll");
      writer_.line(fmt::format("  for (int j = 0; j < 4; ++j) {}[i][j] += {} * {};", accumulators_.at(term.reduction),
                               place_in(left_tiles_[term.left], "thread_row + 16 * i", "kk", true),
                               place_in(right_tiles_[term.right], "thread_column + 16 * j", "kk", true)));
    }
    writer_.close();
  }

  void epilogue() {
    const std::string row = writer_.unique("row"), column = writer_.unique("column");
    if (p_.tensor_dtype) {
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
    const std::vector<std::string> values = emitter_.emit(roots_of(kernel_));
    for (std::size_t i = 0; i < kernel_.outputs.size(); ++i) {
      const KernelOutput& output = kernel_.outputs[i];
      const IndexExpr position = simplify(flat_index(output.type.shape, output.index), pool_.bounds());
      writer_.line(store_text(writer_, output, emitter_.index(position), values[i]));
    }
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
  Contraction p_;
  int block_k_ = 0, threads_ = 0;
  std::vector<std::uint32_t> k_axes_;  // of the current loop
  std::vector<std::string> left_tiles_, right_tiles_;
  std::map<ExprId, std::string> accumulators_;
  std::map<ExprId, std::string> row_values_;  // in shared memory, one per row of the tile
  std::string row0_, column0_, expert_of_row_, matrix_;
};

}  // namespace

KernelSource emit_contraction(const Kernel& kernel, const Contraction& contraction, const Graph& graph) {
  KernelWriter writer(graph, needs_wide_index(kernel, graph, point_count(kernel.pool, kernel.outputs.at(0).axes)));
  ExprEmitter emitter(kernel, writer);
  return ContractionEmitter(kernel, graph, emitter, writer, contraction).emit();
}

}  // namespace fusec
