#include "codegen/schedules/gemm.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "codegen/emit_expr.h"
#include "codegen/schedules/direct.h"
#include "codegen/schedules/gemm_epilogue.h"
#include "ir/type.h"

namespace fusec {
namespace {

constexpr int kTileGroup = 8;  // rows of tiles that blocks go through column by column

// One factor's tiles: what of them a thread copies, what a warp loads.
struct Factor {
  const GemmOperand* operand = nullptr;
  bool left = false;
  int across = 0;           // of the tile
  std::int64_t offset = 0;  // of the tile in its stage
  int units = 0;            // of 16 bytes in a line of the tile
  int lines = 0;            // of the tile
  int pass = 0;             // lines that the block copies at a time
  int copies = 0;           // of a thread
  std::string to, from, unit, line, fragments;
};

class GemmEmitter {
 public:
  GemmEmitter(const Kernel& kernel, const Product& product, const GemmForm& form, const Graph& graph,
              KernelWriter& writer)
      : kernel_(kernel),
        product_(product),
        form_(form),
        tiles_(form.tiles),
        pool_(kernel.pool),
        graph_(graph),
        writer_(writer),
        emitter_(kernel, writer) {}

  KernelSource emit() {
    for (const std::uint32_t a : product_.shared_rest) emitter_.bind(a, "0");
    stages_ = writer_.unique("stages");
    each_ = writer_.unique("each");
    writer_.use("dynamic_shared");
    writer_.use("load_matrices");
    writer_.line(fmt::format("const unsigned {} = shared_address(dynamic_shared);", stages_));
    place_block();
    declare_sums();
    for (std::size_t i = 0; i < form_.loops.size(); ++i) {
      if (form_.loops.size() > 1) writer_.open("");
      main_loop(product_.loops[i], form_.loops[i]);
      if (i + 1 < form_.loops.size()) writer_.line("__syncthreads();");
      if (form_.loops.size() > 1) writer_.close();
    }
    emit_epilogue({kernel_, product_, form_, sums_, row0_, column0_, batch_}, graph_, writer_);
    KernelSource source = writer_.finish(comment(), tiles_.threads(), least_blocks());
    source.name = kernel_name(graph_, kernel_.nodes);
    source.grid[0] = simplify(tiles_down() * tiles_across() * count(product_.batch), pool_.bounds());
    source.dynamic_shared = shared_bytes(form_);
    source.schedule = form_.tensor_cores() ? "gemm_mma" : "gemm";
    return source;
  }

 private:
  IndexExpr count(const std::vector<std::uint32_t>& axes) const { return point_count(pool_, axes); }
  IndexExpr tiles_down() const { return simplify(ceil_div(count(product_.rows), tiles_.rows), pool_.bounds()); }
  IndexExpr tiles_across() const { return simplify(ceil_div(count(product_.columns), tiles_.columns), pool_.bounds()); }
  int together() const { return 16 / form_.element_bytes(); }  // elements of a copy
  std::string integer() const { return writer_.index_type(); }
  std::string text(const IndexExpr& e) { return emitter_.index_text().tight(simplify(e, pool_.bounds())); }
  std::string stage(std::string_view number) const {
    return fmt::format("{} + {} * {}", stages_, number, stage_bytes(form_));
  }

  // In lanes, 16 warps of a multiprocessor hide one another's loads from shared memory: 128 registers each.
  int least_blocks() const {
    const auto sums = static_cast<int>(sums_.size()) * tiles_.warp_rows * tiles_.warp_columns / 32;
    return form_.tensor_cores() || sums > 64 ? 0 : 512 / tiles_.threads();
  }

  std::vector<std::string> comment() const {
    std::vector<std::string> lines = kernel_comment(graph_, kernel_);
    lines.push_back(
        fmt::format("A block makes {}x{}, each of its warps {}x{}, on tensor cores; {} of k are a tile, {} "
                    "tiles are in shared memory or on the way.",
                    tiles_.rows, tiles_.columns, tiles_.warp_rows, tiles_.warp_columns, tiles_.depth, tiles_.stages));
    return lines;
  }

  void place_block() {
    writer_.use("tile_order");
    row0_ = writer_.unique("row0");
    column0_ = writer_.unique("column0");
    const std::string tile = writer_.unique("tile"), down = text(tiles_down()), across = text(tiles_across());
    std::string number = "(int)blockIdx.x";
    if (!product_.batch.empty()) {
      const std::string of_batch = text(tiles_down() * tiles_across());
      batch_ = writer_.unique("batch");
      writer_.line(fmt::format("const {} {} = (int)blockIdx.x / {};", integer(), batch_, of_batch));
      bind_flat(emitter_, product_.batch, batch_, "bcdefgh");
      number += " % " + of_batch;
    }
    writer_.line(
        fmt::format("const TilePlace {} = tile_in_order<{}>({}, {}, {});", tile, kTileGroup, number, down, across));
    writer_.line(fmt::format("const {0} {1} = {2}.row * {3}, {4} = {2}.column * {5};", integer(), row0_, tile,
                             tiles_.rows, column0_, tiles_.columns));
    writer_.line("const int warp = threadIdx.x / 32, warp_lane = threadIdx.x % 32;");
    writer_.line(fmt::format("const int warp_row = warp / {0} * {1}, warp_column = warp % {0} * {2};",
                             tiles_.warps_across(), tiles_.warp_rows, tiles_.warp_columns));
  }

  void declare_sums() {
    for (const ProductLoop& loop : product_.loops)
      for (const ProductTerm& term : loop.terms) {
        std::string& sum = sums_[term.reduction] = writer_.unique("sum");
        if (form_.tensor_cores())
          writer_.line(fmt::format("{} {}[{}][{}][4] = {{}};", c_type(pool_[term.reduction].type), sum,
                                   tiles_.warp_rows / 16, tiles_.warp_columns / 8));
        else
          writer_.line(fmt::format("float {}[{}][{}] = {{}};", sum, tiles_.warp_rows / 4, tiles_.warp_columns / 8));
      }
  }

  std::vector<Factor> factors_of(const GemmLoop& loop) {
    std::vector<Factor> factors;
    std::int64_t offset = 0;
    for (const bool left : {true, false}) {
      const std::vector<GemmOperand>& operands = left ? loop.left : loop.right;
      for (std::size_t i = 0; i < operands.size(); ++i) {
        Factor f{
            .operand = &operands[i], .left = left, .across = left ? tiles_.rows : tiles_.columns, .offset = offset};
        f.units = (f.operand->along_depth ? tiles_.depth : f.across) / together();
        f.lines = f.operand->along_depth ? f.across : tiles_.depth;
        f.pass = tiles_.threads() / f.units;
        f.copies = std::max(1, f.lines / f.pass);
        const std::string name = writer_.wish(pool_[f.operand->load].source);
        f.to = writer_.unique(name + "_to");
        f.from = writer_.unique(name + "_from");
        f.unit = writer_.unique(name + "_unit");
        f.line = writer_.unique(name + "_line");
        f.fragments = writer_.unique(left ? "left" : "right");
        offset += std::int64_t{form_.element_bytes()} * f.across * tiles_.depth;
        factors.push_back(std::move(f));
      }
    }
    return factors;
  }

  // Where this thread's copies come from and go to.
  void declare_copies(const Factor& f) {
    writer_.use("copy_pipeline");
    writer_.use("swizzle");
    const GemmOperand& operand = *f.operand;
    const ExprNode& load = pool_[operand.load];
    writer_.line(fmt::format("const int {} = threadIdx.x % {} * {}, {} = threadIdx.x / {};", f.unit, f.units,
                             together(), f.line, f.units));
    if (f.copies == 1 || f.pass % 8 == 0)
      writer_.line(fmt::format("const unsigned {} = {}swizzled<{}>({}, {} / {});", f.to,
                               f.offset ? fmt::format("{} + ", f.offset) : "", f.units, f.line, f.unit, together()));
    writer_.line(fmt::format("const {}* {}[{}];", storage_type(load.dtype), f.from, f.copies));
    writer_.line("#pragma unroll");
    writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", each_, f.copies));
    const ExprEmitter::Mark mark = emitter_.mark();
    const std::vector<std::uint32_t>& axes = f.left ? product_.rows : product_.columns;
    const std::string at = writer_.unique(f.left ? "row" : "column");
    const std::string line = f.copies > 1 ? fmt::format("{} + {} * {}", f.line, each_, f.pass) : f.line;
    std::string here = fmt::format("{} + {}", f.left ? row0_ : column0_, operand.along_depth ? line : f.unit);
    // What lies beyond the last row or column is copied from there; nothing of its products is stored.
    if (!proves_multiple_of(count(axes), f.across, pool_.bounds()))
      here = fmt::format("min({0}({1}), {0}{2})", writer_.wide() ? "(long long)" : "", here,
                         text(count(axes) - (operand.along_depth ? 1 : together())));
    writer_.line(fmt::format("const {} {} = {};", integer(), at, here));
    bind_flat(emitter_, axes, at, f.left ? "mnopq" : "ijlst");
    std::string position = emitter_.index(operand.across);
    if (operand.depth_stride)
      position += operand.along_depth ? " + " + f.unit
                                      : fmt::format(" + ({}) * {}{}", line, writer_.wide() ? "(long long)" : "",
                                                    text(*operand.depth_stride));
    writer_.line(fmt::format("{}[{}] = {} + ({});", f.from, each_, writer_.input(load.source), position));
    emitter_.rewind(mark);
    writer_.close();
  }

  bool whole_tiles(const std::vector<std::uint32_t>& depth) const {
    return proves_multiple_of(count(depth), tiles_.depth, pool_.bounds());
  }

  // Starts the copies of the next tile into a stage.
  std::string declare_fetch(const std::vector<Factor>& factors, const std::vector<std::uint32_t>& depth) {
    const std::string fetch = writer_.unique("fetch"), into = writer_.unique("stage");
    const bool jumps = std::ranges::any_of(factors, [](const Factor& f) { return !f.operand->depth_stride; });
    const bool whole = whole_tiles(depth);
    const std::string next = writer_.unique("next_k");
    if (jumps || !whole) writer_.line(fmt::format("{} {} = 0;", integer(), next));
    writer_.open(fmt::format("const auto {} = [&](unsigned {})", fetch, into));
    for (const Factor& f : factors) copy(f, depth, into, next, whole);
    if (jumps || !whole) writer_.line(fmt::format("{} += {};", next, tiles_.depth));
    writer_.close("};");
    return fetch;
  }

  void copy(const Factor& f, const std::vector<std::uint32_t>& depth, const std::string& into, const std::string& next,
            bool whole) {
    const bool strides = f.operand->depth_stride.has_value();
    const bool some = f.lines < f.pass;
    if (some) writer_.open(fmt::format("if (threadIdx.x < {})", f.lines * f.units));
    const ExprEmitter::Mark mark = emitter_.mark();
    std::string jump;
    if (!strides) {
      const std::string k = writer_.unique("k");
      writer_.line(fmt::format("const {} {} = {} + {};", integer(), k, next, f.unit));
      bind_flat(emitter_, depth, k, "kluvw");
      jump = " + " + emitter_.index_text().tight(f.operand->depth);
    }
    writer_.line("#pragma unroll");
    writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", each_, f.copies));
    const std::string k_here = f.operand->along_depth ? f.unit
                               : f.copies > 1         ? fmt::format("{} + {} * {}", f.line, each_, f.pass)
                                                      : f.line;
    const std::string there = whole ? "" : fmt::format(", {} + {} < {}", next, k_here, text(count(depth)));
    // Units change places every eight lines: passes of so many find theirs where the first one has.
    const std::string to = f.copies == 1     ? f.to
                           : f.pass % 8 == 0 ? fmt::format("{} + {} * {}", f.to, each_, 16 * f.pass * f.units)
                                             : fmt::format("{} + swizzled<{}>({} + {} * {}, {} / {})", f.offset,
                                                           f.units, f.line, each_, f.pass, f.unit, together());
    writer_.line(fmt::format("copy_16_bytes({} + {}, {}[{}]{}{});", into, to, f.from, each_, jump, there));
    if (strides)
      writer_.line(fmt::format("{}[{}] += {};", f.from, each_, text(*f.operand->depth_stride * tiles_.depth)));
    writer_.close();
    emitter_.rewind(mark);
    if (some) writer_.close();
  }

  // Fragments of one slice of a tile, into one of two buffers.
  std::string declare_load(const std::vector<Factor>& factors) {
    writer_.use("tile_fragments");
    std::string names;
    for (const Factor& f : factors)
      names += fmt::format("{}{}[2][{}][4]", names.empty() ? "" : ", ", f.fragments,
                           (f.left ? tiles_.warp_rows : tiles_.warp_columns) / 16);
    writer_.line(fmt::format("unsigned {};", names));
    const std::string load = writer_.unique("load");
    writer_.open(fmt::format("const auto {} = [&](int buffer, unsigned stage, int depth)", load));
    for (const Factor& f : factors)
      writer_.line(fmt::format("load_fragments<{}, {}, {}>({}[buffer], stage{}, {}, depth, warp_lane);", f.left,
                               f.operand->along_depth, f.units, f.fragments,
                               f.offset ? fmt::format(" + {}", f.offset) : "", f.left ? "warp_row" : "warp_column"));
    writer_.close("};");
    return load;
  }

  void main_loop(const ProductLoop& loop, const GemmLoop& operands) {
    const std::vector<Factor> factors = factors_of(operands);
    for (const Factor& f : factors) declare_copies(f);
    const std::string fetch = declare_fetch(factors, loop.depth);
    const std::string steps = writer_.unique("steps");
    const int ahead = tiles_.stages - 1;
    writer_.line(fmt::format("const int {} = {};", steps, text(ceil_div(count(loop.depth), tiles_.depth))));
    writer_.line("#pragma unroll");
    writer_.open(fmt::format("for (int s = 0; s < {}; ++s)", ahead));
    writer_.line(fmt::format("if (s < {}) {}({});", steps, fetch, stage("s")));
    writer_.line("commit_copies();");
    writer_.close();
    const std::string reading = writer_.unique("reading"), writing = writer_.unique("writing");
    writer_.line(fmt::format("int {} = 0, {} = {};", reading, writing, ahead));
    const std::vector<std::string> fetch_next = {
        fmt::format("if (step + {} < {}) {}({});", ahead, steps, fetch, stage(writing)), "commit_copies();",
        fmt::format("{0} = {0} == {1} ? 0 : {0} + 1;", writing, ahead)};
    const std::string next_stage = fmt::format("{0} = {0} == {1} ? 0 : {0} + 1;", reading, ahead);
    const std::string wait = fmt::format("wait_for_groups<{}>();", ahead - 1);
    if (form_.tensor_cores())
      steps_on_tensor_cores(loop, factors, operands.left.size(), {steps, stage(reading), next_stage, wait, fetch_next});
    else
      steps_in_lanes(loop, factors, operands.left.size(), {steps, stage(reading), next_stage, wait, fetch_next});
  }

  // Lines of the loop over tiles along the depth.
  struct StepLines {
    const std::string& steps;
    std::string stage;  // that is read
    const std::string &next_stage, &wait;
    const std::vector<std::string>& fetch_next;
  };

  std::string mma_function(const Factor& left, const Factor& right) const {
    switch (form_.dtype) {
      case DType::kInt8:
        return "mma_s8";
      case DType::kFloat8E4M3FN: {
        const auto kind = [&](const Factor& f) {
          return pool_[f.operand->load].dtype == DType::kFloat8E5M2 ? "e5m2" : "e4m3";
        };
        return fmt::format("mma_{}_{}", kind(left), kind(right));
      }
      default:
        return form_.dtype == DType::kBFloat16 ? "mma_bf16" : "mma_fp16";
    }
  }

  // Fragments of the next slice, 32 bytes of a line, are loaded before the products of this one.
  void steps_on_tensor_cores(const ProductLoop& loop, const std::vector<Factor>& factors, std::size_t left_count,
                             const StepLines& lines) {
    const std::string load = declare_load(factors);
    const int slices = tiles_.depth * form_.element_bytes() / 32;
    writer_.line(lines.wait);
    writer_.line("__syncthreads();");
    writer_.line(fmt::format("{}(0, {}, 0);", load, stages_));
    writer_.open(fmt::format("for (int step = 0; step < {}; ++step)", lines.steps));
    writer_.line("#pragma unroll");
    writer_.open(fmt::format("for (int slice = 0; slice < {}; ++slice)", slices));
    writer_.open(fmt::format("if (slice == {})", slices - 1));
    writer_.line(lines.wait + "  // the next tile is there, and nobody needs the one before this");
    writer_.line("__syncthreads();");
    writer_.line(lines.next_stage);
    writer_.close();
    writer_.line(fmt::format("if (slice < {} || step + 1 < {}) {}((slice + 1) % 2, {}, (slice + 1) % {} * 16);",
                             slices - 1, lines.steps, load, lines.stage, slices));
    writer_.open("if (slice == 0)");
    for (const std::string& line : lines.fetch_next) writer_.line(line);
    writer_.close();
    writer_.use("multiply_fragments");
    for (const ProductTerm& term : loop.terms) {
      const Factor &left = factors[term.left], &right = factors[left_count + term.right];
      const std::string mma = mma_function(left, right);
      writer_.use(mma);
      writer_.line(fmt::format("multiply_fragments<{}>({}, {}[slice % 2], {}[slice % 2]);", mma,
                               sums_.at(term.reduction), left.fragments, right.fragments));
    }
    writer_.close();
    writer_.close();
  }

  void steps_in_lanes(const ProductLoop& loop, const std::vector<Factor>& factors, std::size_t left_count,
                      const StepLines& lines) {
    writer_.use("lane_fragments");
    writer_.open(fmt::format("for (int step = 0; step < {}; ++step)", lines.steps));
    writer_.line(lines.wait);
    writer_.line("__syncthreads();  // this tile is there, and nobody needs the one before");
    for (const std::string& line : lines.fetch_next) writer_.line(line);
    writer_.line(fmt::format("const unsigned char* const tile_now = dynamic_shared + {};",
                             lines.stage.substr(stages_.size() + 3)));
    writer_.line("#pragma unroll 1");  // other warps hide the loads; unrolled, they take all registers
    writer_.open(fmt::format("for (int k = 0; k < {}; k += 4)", tiles_.depth));
    const auto load = [&](const Factor& f, const std::string& across) {
      writer_.line(fmt::format("float {}[{}][4];", f.fragments, f.left ? 4 : tiles_.warp_columns / 8));
      writer_.line(fmt::format("load_lanes<{}, {}, {}>({}, tile_now{}, {}, k, {});", f.operand->along_depth, f.units,
                               f.left ? 4 : 8, f.fragments, f.offset ? fmt::format(" + {}", f.offset) : "", across,
                               f.left ? "warp_lane / 8" : "warp_lane % 8"));
    };
    for (const Factor& f : factors)
      if (!f.left) load(f, "warp_column");
    writer_.line("#pragma unroll");
    writer_.open(fmt::format("for (int i = 0; i < {}; i += 4)", tiles_.warp_rows / 4));
    for (const Factor& f : factors)
      if (f.left) load(f, "warp_row + i * 4");
    for (const ProductTerm& term : loop.terms)
      writer_.line(fmt::format("multiply_lanes({} + i, {}, {});", sums_.at(term.reduction),
                               factors[term.left].fragments, factors[left_count + term.right].fragments));
    writer_.close();
    writer_.close();
    writer_.line(lines.next_stage);
    writer_.close();
  }

  const Kernel& kernel_;
  const Product& product_;
  const GemmForm& form_;
  const GemmTiles& tiles_;
  const ExprPool& pool_;
  const Graph& graph_;
  KernelWriter& writer_;
  ExprEmitter emitter_;
  std::map<ExprId, std::string> sums_;
  std::string stages_, each_, row0_, column0_, batch_;
};

}  // namespace

KernelSource gemm(const Kernel& kernel, const Product& product, const GemmForm& form, const Graph& graph) {
  KernelWriter writer(graph, needs_wide_index(kernel, graph, point_count(kernel.pool, kernel.outputs.at(0).axes)));
  return GemmEmitter(kernel, product, form, graph, writer).emit();
}

}  // namespace fusec
