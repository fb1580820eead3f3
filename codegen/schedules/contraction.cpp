#include "codegen/schedules/contraction.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/copy_expr.h"
#include "codegen/emit_expr.h"
#include "codegen/schedules/direct.h"
#include "ir/type.h"

namespace fusec {
namespace {

constexpr int kTile = 64;         // rows and columns of a block's tile
constexpr int kMmaDepth = 32;     // of a step along k on tensor cores
constexpr int kScalarDepth = 16;  // and without them
constexpr int kMmaThreads = 128, kScalarThreads = 256;

// A product as the schedule sees it: which axes are whose.
struct Product {
  ExprId reduction = kNoExpr;
  ExprId left = kNoExpr, right = kNoExpr;  // factors; rows are of the left one, columns of the right one
  std::vector<std::uint32_t> batch, rows, columns, depth;
  std::vector<std::uint32_t> shared_rest;  // output axes on which neither factor depends
};

bool contains(const std::vector<std::uint32_t>& axes, std::uint32_t axis) {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

bool all_one(const ExprPool& pool, const std::vector<std::uint32_t>& axes) {
  return std::all_of(axes.begin(), axes.end(), [&](std::uint32_t a) { return pool.extent(a).is(1); });
}

std::optional<Product> find_product(const Kernel& kernel, const ExprEmitter& emitter) {
  const ExprPool& pool = kernel.pool;
  std::vector<ExprId> roots;
  for (const KernelOutput& output : kernel.outputs) {
    if (output.axes != kernel.outputs[0].axes || bits(output.type.dtype) == 4) return std::nullopt;
    roots.push_back(output.expr);
  }
  Product p;
  for (const ExprId id : reachable(pool, roots)) {
    if (pool[id].op != ExprOp::kReduce) continue;
    if (p.reduction != kNoExpr) return std::nullopt;
    p.reduction = id;
  }
  if (p.reduction == kNoExpr || pool[p.reduction].reduction != Reduction::kSum) return std::nullopt;
  const ExprNode& body = pool[pool[p.reduction].args[0]];
  if (body.op != ExprOp::kMul) return std::nullopt;
  p.left = body.args[0];
  p.right = body.args[1];
  p.depth = pool[p.reduction].axes;
  const auto left = emitter.axes_of(p.left), right = emitter.axes_of(p.right);
  // Both factors must run along the summed axes, else this is a sum of another kind.
  for (const std::uint32_t k : p.depth)
    if (!contains(left, k) && !contains(right, k)) return std::nullopt;
  for (const std::uint32_t a : kernel.outputs[0].axes) {
    const bool in_left = contains(left, a), in_right = contains(right, a);
    if (pool.extent(a).is(1) || (!in_left && !in_right))
      p.shared_rest.push_back(a);
    else if (in_left && in_right)
      p.batch.push_back(a);
    else
      (in_left ? p.rows : p.columns).push_back(a);
  }
  if (std::any_of(p.shared_rest.begin(), p.shared_rest.end(), [&](std::uint32_t a) { return !pool.extent(a).is(1); }))
    return std::nullopt;
  if (all_one(pool, p.rows) || all_one(pool, p.columns) || all_one(pool, p.depth)) return std::nullopt;
  // The last axis of the result belongs to the columns: neighbouring threads then store neighbouring elements.
  std::uint32_t last = kNone;
  for (const std::uint32_t a : kernel.outputs[0].axes)
    if (!pool.extent(a).is(1)) last = a;
  if (contains(p.rows, last)) {
    std::swap(p.left, p.right);
    std::swap(p.rows, p.columns);
  }
  return p;
}

// The 16-bit dtype on whose grid a factor lies, so that nothing is lost on the way to the tensor core.
std::optional<DType> tensor_core_dtype(const ExprPool& pool, ExprId factor) {
  const ExprNode& n = pool[factor];
  auto usable = [](DType d) { return d == DType::kFloat16 || d == DType::kBFloat16; };
  if ((n.op == ExprOp::kLoad || n.op == ExprOp::kRound) && usable(n.dtype)) return n.dtype;
  if (n.op == ExprOp::kSelect) {
    const ExprNode& otherwise = pool[n.args[2]];
    if (otherwise.op == ExprOp::kConstant && otherwise.real == 0) return tensor_core_dtype(pool, n.args[1]);
  }
  return std::nullopt;
}

class Contraction {
 public:
  Contraction(const Kernel& kernel, const Graph& graph, ExprEmitter& emitter, KernelWriter& writer, Product product)
      : kernel_(kernel), pool_(kernel.pool), graph_(graph), emitter_(emitter), writer_(writer), p_(std::move(product)) {
    const auto left = tensor_core_dtype(pool_, p_.left), right = tensor_core_dtype(pool_, p_.right);
    if (left && right && *left == *right && pool_[p_.reduction].type == ScalarType::kFloat32) tensor_dtype_ = left;
    depth_ = tensor_dtype_ ? kMmaDepth : kScalarDepth;
    threads_ = tensor_dtype_ ? kMmaThreads : kScalarThreads;
  }

  KernelSource emit() {
    declare_tiles();
    place_block();
    for (const std::uint32_t a : p_.shared_rest) emitter_.bind(a, "0");
    main_loop();
    epilogue();
    KernelSource source = writer_.finish(comment(), threads_);
    source.name = kernel_name(graph_, kernel_.nodes);
    const Bounds& bounds = pool_.bounds();
    source.grid[0] =
        simplify(ceil_div(count(p_.rows), kTile) * ceil_div(count(p_.columns), kTile) * count(p_.batch), bounds);
    source.schedule = tensor_dtype_ ? "contraction_mma" : "contraction";
    return source;
  }

 private:
  IndexExpr count(const std::vector<std::uint32_t>& axes) const { return point_count(pool_, axes); }
  std::string integer() const { return writer_.index_type(); }
  std::string text(const IndexExpr& e) { return emitter_.index_text().tight(e); }

  std::vector<std::string> comment() const {
    std::vector<std::string> lines = kernel_comment(graph_, kernel_);
    lines.push_back(fmt::format("A block makes a {}x{} tile; {} of k at a time go through shared memory{}.", kTile,
                                kTile, depth_, tensor_dtype_ ? ", products on tensor cores" : ""));
    return lines;
  }

  // The element type in shared memory: the stored 16-bit format, or the type that is multiplied.
  std::string element() const { return tensor_dtype_ ? "unsigned short" : c_type(pool_[p_.reduction].type); }
  // A padded row of a tile: no two of the rows that are read at once start in one bank.
  int stride() const { return tensor_dtype_ ? depth_ + 8 : kTile + 1; }

  void declare_tiles() {
    left_tile_ = writer_.unique("left_tile");
    right_tile_ = writer_.unique("right_tile");
    const int lines = tensor_dtype_ ? kTile : depth_;
    for (const std::string& tile : {left_tile_, right_tile_})
      writer_.line(fmt::format("__shared__ __align__(16) {} {}[{}][{}];", element(), tile, lines, stride()));
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

  void main_loop() {
    const std::string type = c_type(pool_[p_.reduction].type);
    sum_ = writer_.unique("sum");
    if (tensor_dtype_) {
      writer_.line("const int warp = threadIdx.x / 32, warp_lane = threadIdx.x % 32;");
      writer_.line("const int warp_row = warp / 2 * 32, warp_column = warp % 2 * 32;");
      writer_.line(fmt::format("float {}[2][4][4] = {{}};", sum_));
    } else {
      writer_.line("const int thread_row = threadIdx.x / 16, thread_column = threadIdx.x % 16;");
      writer_.line(fmt::format("{} {}[4][4] = {{}};", type, sum_));
    }
    const std::string step = writer_.unique("k0");
    writer_.open(
        fmt::format("for ({0} {1} = 0; {1} < {2}; {1} += {3})", integer(), step, text(count(p_.depth)), depth_));
    fill_tile(left_tile_, p_.left, p_.rows, row0_, step);
    fill_tile(right_tile_, p_.right, p_.columns, column0_, step);
    writer_.line("__syncthreads();");
    if (tensor_dtype_)
      multiply_on_tensor_cores();
    else
      multiply_in_lanes();
    writer_.line("__syncthreads();");
    writer_.close();
  }

  // Does a plain load of 16-bit elements run along the axis in whole, aligned groups of eight?
  bool takes_vectors(ExprId factor, const std::vector<std::uint32_t>& along) const {
    const ExprNode& n = pool_[factor];
    if (!tensor_dtype_ || n.op != ExprOp::kLoad || n.args[0] != kNoExpr || along.empty()) return false;
    const std::uint32_t axis = along.back();
    const Variable v{Variable::Kind::kAxis, axis};
    const IndexExpr position = emitter_.position(factor);
    const auto coefficient = coefficient_of(position, v);
    if (!coefficient || *coefficient != 1) return false;
    const IndexExpr rest = position - IndexExpr::axis(axis);
    return proves_multiple_of(rest, 8, pool_.bounds()) && proves_multiple_of(pool_.extent(axis), 8, pool_.bounds());
  }

  // Loads one factor's tile: elements outside the matrix are 0.
  void fill_tile(const std::string& tile, ExprId factor, const std::vector<std::uint32_t>& across,
                 const std::string& across0, const std::string& step) {
    const bool depth_vectors = takes_vectors(factor, p_.depth);
    const bool across_vectors = !depth_vectors && takes_vectors(factor, across);
    const Variable last_across{Variable::Kind::kAxis, across.back()};
    const bool across_first = across_vectors || (!depth_vectors && runs_along(factor, last_across));
    const int width = depth_vectors || across_vectors ? 8 : 1;
    const int total = kTile * depth_ / width;
    const std::string e = writer_.unique("e"), line = writer_.unique("line"), place = writer_.unique("place");
    writer_.line("#pragma unroll");
    writer_.open(fmt::format("for (int {0} = threadIdx.x; {0} < {1}; {0} += {2})", e, total, threads_));
    const int fast = (across_first ? kTile : depth_) / width;
    const std::string slow_name = across_first ? place : line, fast_name = across_first ? line : place;
    writer_.line(fmt::format("const int {} = {} % {}{}, {} = {} / {};", fast_name, e, fast, width > 1 ? " * 8" : "",
                             slow_name, e, fast));
    const std::string at = writer_.unique("at"), k = writer_.unique("k");
    writer_.line(fmt::format("const {} {} = {} + {}, {} = {} + {};", integer(), at, across0, line, k, step, place));
    const std::string inside = fmt::format("{} < {} && {} < {}", at, text(count(across)), k, text(count(p_.depth)));
    if (width > 1)
      load_vector(tile, factor, across, at, k, line, place, inside, across_vectors);
    else
      load_element(tile, factor, across, at, k, line, place, inside);
    writer_.close();
  }

  bool runs_along(ExprId factor, Variable v) const {
    const ExprPool& pool = pool_;
    for (const ExprId id : reachable(pool, std::span(&factor, 1))) {
      if (pool[id].op != ExprOp::kLoad) continue;
      const auto c = coefficient_of(emitter_.position(id), v);
      if (c && *c == 1) return true;
    }
    return false;
  }

  std::string place_in(const std::string& tile, const std::string& line, const std::string& place) const {
    return tensor_dtype_ ? fmt::format("{}[{}][{}]", tile, line, place) : fmt::format("{}[{}][{}]", tile, place, line);
  }

  void load_vector(const std::string& tile, ExprId factor, const std::vector<std::uint32_t>& across,
                   const std::string& at, const std::string& k, const std::string& line, const std::string& place,
                   const std::string& inside, bool across_vectors) {
    const std::string eight = writer_.unique("eight");
    writer_.line(fmt::format("uint4 {} = make_uint4(0, 0, 0, 0);", eight));
    writer_.open(fmt::format("if ({})", inside));
    const ExprEmitter::Mark mark = emitter_.mark();
    bind_flat(emitter_, across, at, "mnopq");
    bind_flat(emitter_, p_.depth, k, "kluvw");
    const ExprNode& n = pool_[factor];
    writer_.line(fmt::format("{} = *(const uint4*)({} + {});", eight, writer_.input(n.source),
                             emitter_.index_text().tight(emitter_.position(factor))));
    emitter_.rewind(mark);
    writer_.close();
    if (!across_vectors) {
      writer_.line(fmt::format("*(uint4*)&{}[{}][{}] = {};", tile, line, place, eight));
      return;
    }
    const char* words[] = {"x", "y", "z", "w"};
    for (int i = 0; i < 8; ++i)
      writer_.line(fmt::format("{}[{} + {}][{}] = (unsigned short)({}.{}{});", tile, line, i, place, eight,
                               words[i / 2], i % 2 ? " >> 16" : ""));
  }

  void load_element(const std::string& tile, ExprId factor, const std::vector<std::uint32_t>& across,
                    const std::string& at, const std::string& k, const std::string& line, const std::string& place,
                    const std::string& inside) {
    const std::string one = writer_.unique("one");
    writer_.line(fmt::format("{} {} = 0;", element(), one));
    writer_.open(fmt::format("if ({})", inside));
    const ExprEmitter::Mark mark = emitter_.mark();
    bind_flat(emitter_, across, at, "mnopq");
    bind_flat(emitter_, p_.depth, k, "kluvw");
    const std::string value = emitter_.emit(factor);
    writer_.line(fmt::format("{} = {};", one, tensor_dtype_ ? narrow(*tensor_dtype_, value) : value));
    if (tensor_dtype_) writer_.use(*tensor_dtype_);
    emitter_.rewind(mark);
    writer_.close();
    writer_.line(fmt::format("{} = {};", place_in(tile, line, place), one));
  }

  void multiply_on_tensor_cores() {
    const std::string mma = *tensor_dtype_ == DType::kBFloat16 ? "mma_bf16" : "mma_fp16";
    writer_.use(mma);
    writer_.line("#pragma unroll");
    writer_.open(fmt::format("for (int kk = 0; kk < {}; kk += 16)", depth_));
    writer_.line("unsigned a[2][4], b[4][2];");
    writer_.line("const int group = warp_lane / 4, pair = kk + warp_lane % 4 * 2;");
    writer_.line("#pragma unroll");
    writer_.open("for (int i = 0; i < 2; ++i)");
    writer_.line(
        fmt::format("const unsigned short (*rows)[{}] = {} + warp_row + i * 16 + group;", stride(), left_tile_));
    writer_.line("a[i][0] = *(const unsigned*)&rows[0][pair], a[i][1] = *(const unsigned*)&rows[8][pair];");
    writer_.line("a[i][2] = *(const unsigned*)&rows[0][pair + 8], a[i][3] = *(const unsigned*)&rows[8][pair + 8];");
    writer_.close();
    writer_.line("#pragma unroll");
    writer_.open("for (int j = 0; j < 4; ++j)");
    writer_.line(fmt::format("const unsigned short* column = {}[warp_column + j * 8 + group];", right_tile_));
    writer_.line("b[j][0] = *(const unsigned*)&column[pair], b[j][1] = *(const unsigned*)&column[pair + 8];");
    writer_.close();
    writer_.line("#pragma unroll");
    writer_.line("for (int i = 0; i < 2; ++i)");
    writer_.line("#pragma unroll");
    writer_.line(fmt::format("  for (int j = 0; j < 4; ++j) {}({}[i][j], a[i], b[j]);", mma, sum_));
    writer_.close();
  }

  void multiply_in_lanes() {
    writer_.line("#pragma unroll");
    writer_.open(fmt::format("for (int kk = 0; kk < {}; ++kk)", depth_));
    writer_.line("#pragma unroll");
    writer_.line("for (int i = 0; i < 4; ++i)");
    writer_.line("#pragma unroll");
    writer_.line(fmt::format(
        "  for (int j = 0; j < 4; ++j) {}[i][j] += {}[kk][thread_row + 16 * i] * {}[kk][thread_column + 16 * j];", sum_,
        left_tile_, right_tile_));
    writer_.close();
  }

  void epilogue() {
    std::string element_text;
    const std::string row = writer_.unique("row"), column = writer_.unique("column");
    if (tensor_dtype_) {
      writer_.line("#pragma unroll");
      writer_.open("for (int tile_item = 0; tile_item < 32; ++tile_item)");
      writer_.line(
          fmt::format("const {} {} = {} + warp_row + tile_item / 16 * 16 + tile_item % 4 / 2 * 8 + warp_lane / 4;",
                      integer(), row, row0_));
      writer_.line(
          fmt::format("const {} {} = {} + warp_column + tile_item / 4 % 4 * 8 + warp_lane % 4 * 2 + tile_item % 2;",
                      integer(), column, column0_));
      element_text = fmt::format("{}[tile_item / 16][tile_item / 4 % 4][tile_item % 4]", sum_);
    } else {
      writer_.line("#pragma unroll");
      writer_.open("for (int tile_item = 0; tile_item < 16; ++tile_item)");
      writer_.line(fmt::format("const {} {} = {} + thread_row + tile_item / 4 * 16;", integer(), row, row0_));
      writer_.line(fmt::format("const {} {} = {} + thread_column + tile_item % 4 * 16;", integer(), column, column0_));
      element_text = fmt::format("{}[tile_item / 4][tile_item % 4]", sum_);
    }
    writer_.open(fmt::format("if ({} < {} && {} < {})", row, text(count(p_.rows)), column, text(count(p_.columns))));
    const ExprEmitter::Mark mark = emitter_.mark();
    bind_flat(emitter_, p_.rows, row, "mnopq");
    bind_flat(emitter_, p_.columns, column, "ijlst");
    emitter_.define(p_.reduction, element_text);
    std::vector<ExprId> roots;
    for (const KernelOutput& output : kernel_.outputs) roots.push_back(output.expr);
    const std::vector<std::string> values = emitter_.emit(roots);
    for (std::size_t i = 0; i < kernel_.outputs.size(); ++i) {
      const KernelOutput& output = kernel_.outputs[i];
      const IndexExpr position = simplify(flat_index(output.type.shape, output.index), pool_.bounds());
      writer_.line(store_text(writer_, output, emitter_.index(position), values[i]));
    }
    emitter_.rewind(mark);
    writer_.close();
    writer_.close();
  }

  const Kernel& kernel_;
  const ExprPool& pool_;
  const Graph& graph_;
  ExprEmitter& emitter_;
  KernelWriter& writer_;
  Product p_;
  std::optional<DType> tensor_dtype_;
  int depth_ = 0, threads_ = 0;
  std::string left_tile_, right_tile_, row0_, column0_, sum_;
};

std::optional<KernelSource> contraction_as_it_is(const Kernel& kernel, const Graph& graph) {
  KernelWriter writer(graph, needs_wide_index(kernel, graph, point_count(kernel.pool, kernel.outputs.at(0).axes)));
  ExprEmitter emitter(kernel, writer);
  auto product = find_product(kernel, emitter);
  if (!product) return std::nullopt;
  return Contraction(kernel, graph, emitter, writer, std::move(*product)).emit();
}

// The divisor c of an output axis that occurs in some load as axis // c: the channels of a group.
std::optional<std::pair<std::size_t, std::int64_t>> grouped_axis(const Kernel& kernel) {
  const ExprPool& pool = kernel.pool;
  std::vector<ExprId> roots;
  for (const KernelOutput& output : kernel.outputs) roots.push_back(output.expr);
  for (const ExprId id : reachable(pool, roots)) {
    if (pool[id].op != ExprOp::kLoad) continue;
    for (const IndexExpr& e : pool[id].indices)
      for (const IndexTerm& term : e.terms())
        for (const IndexAtomPtr& factor : term.factors) {
          if (factor->kind != IndexAtom::Kind::kFloorDiv) continue;
          const auto v = factor->a.as_variable();
          const auto c = factor->b.as_constant();
          if (!v || !c || *c < 8 || v->kind != Variable::Kind::kAxis) continue;
          const auto& axes = kernel.outputs[0].axes;
          const auto at = std::find(axes.begin(), axes.end(), v->id);
          const auto extent = pool.extent(v->id).as_constant();
          if (at != axes.end() && extent && *extent % *c == 0)
            return std::pair{static_cast<std::size_t>(at - axes.begin()), *c};
        }
  }
  return std::nullopt;
}

}  // namespace

std::optional<KernelSource> contraction(const Kernel& kernel, const Graph& graph, const Target&) {
  if (auto source = contraction_as_it_is(kernel, graph)) return source;
  const auto grouped = grouped_axis(kernel);
  if (!grouped) return std::nullopt;
  const Kernel split = change_axes(kernel, [&](ExprPool& pool) {
    AxisChange change;
    const std::vector<std::uint32_t>& axes = kernel.outputs[0].axes;
    for (std::size_t i = 0; i < axes.size(); ++i) {
      const IndexExpr extent = kernel.pool.extent(axes[i]);
      if (i != grouped->first) {
        change.new_axes.push_back(pool.new_axis(extent));
        change.values.push_back(IndexExpr::axis(change.new_axes.back()));
        continue;
      }
      const std::uint32_t group = pool.new_axis(floor_div(extent, grouped->second)),
                          member = pool.new_axis(grouped->second);
      change.new_axes.push_back(group);
      change.new_axes.push_back(member);
      change.values.push_back(IndexExpr::axis(group) * grouped->second + IndexExpr::axis(member));
    }
    return change;
  });
  return contraction_as_it_is(split, graph);
}

}  // namespace fusec
