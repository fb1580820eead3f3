#include "codegen/schedules/convolution.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/emit_expr.h"
#include "codegen/schedules/convolution_tiles.h"
#include "codegen/schedules/direct.h"
#include "codegen/schedules/gemm_block.h"
#include "codegen/schedules/gemm_epilogue.h"
#include "codegen/schedules/gemm_shares.h"
#include "ir/type.h"

namespace fusec {
namespace {

class Convolution {
 public:
  Convolution(const Kernel& kernel, const Product& product, const ConvolutionForm& form, const Graph& graph,
              KernelWriter& writer)
      : kernel_(kernel),
        product_(product),
        form_(form),
        tiles_(form.tiles),
        pool_(kernel.pool),
        graph_(graph),
        writer_(writer),
        emitter_(kernel, writer),
        factors_(kernel, product, form, writer, emitter_),
        left_(factors_.left()),
        right_(factors_.right()) {}

  KernelSource emit() {
    for (const std::uint32_t a : product_.shared_rest) emitter_.bind(a, "0");
    writer_.use("dynamic_shared");
    writer_.use("load_matrices");
    writer_.use("copy_pipeline");
    writer_.use("swizzle");
    stages_ = writer_.unique("stages");
    writer_.line(fmt::format("const unsigned {} = shared_address(dynamic_shared);", stages_));
    place_block();
    place_share();
    sum_ = writer_.unique("sum");
    declare_sum(writer_, tiles_, form_.tensor_cores(), pool_[reduction()].type, sum_);
    factors_.place(row0_, column0_, stages_, first_, end_);
    factors_.declare();
    main_loop();
    if (tiles_.shares > 1)
      leave_sums();
    else
      emit_epilogue({kernel_, product_, as_gemm(form_), {{reduction(), sum_}}, row0_, column0_, batch_}, graph_,
                    writer_);
    KernelSource source = writer_.finish(comment(), tiles_.threads(), blocks_at_a_time());
    source.name = kernel_name(graph_, kernel_.nodes) + (tiles_.shares > 1 ? "_shares" : "");
    source.grid[1] = tiles_.shares;
    source.grid[0] = simplify(tiles_down() * tiles_across() * count(product_.batch), pool_.bounds());
    source.dynamic_shared = std::max(form_.shared_bytes(), shared_bytes(as_gemm(form_)));
    source.schedule = form_.tensor_cores() ? "convolution_mma" : "convolution";
    return source;
  }

 private:
  ExprId reduction() const { return product_.loops[0].terms[0].reduction; }
  IndexExpr count(const std::vector<std::uint32_t>& axes) const { return point_count(pool_, axes); }
  IndexExpr tiles_down() const { return simplify(ceil_div(count(product_.rows), tiles_.rows), pool_.bounds()); }
  IndexExpr tiles_across() const { return simplify(ceil_div(count(product_.columns), tiles_.columns), pool_.bounds()); }
  std::int64_t steps() const { return factors_.steps(); }

  // The block's steps along the depth: all, or its share of them.
  void place_share() {
    end_ = std::to_string(steps());
    if (tiles_.shares == 1) return;
    share_ = writer_.unique("share"), first_ = writer_.unique("first_step"), end_ = writer_.unique("end_step");
    writer_.line(fmt::format("const int {0} = (int)blockIdx.y, {1} = {0} * {2} / {3}, {4} = ({0} + 1) * {2} / {3};",
                             share_, first_, steps(), tiles_.shares, end_));
  }

  void leave_sums() {
    const GemmShares shares(tiles_.shares, product_, pool_, tiles_.rows, tiles_.columns);
    const SharePlace place{share_, batch_, row0_ + " + warp_row", column0_ + " + warp_column"};
    const ScalarType type = pool_[reduction()].type;
    leave_share(emitter_, shares, declare_partial(writer_, shares, type), place, 0, sum_, type, tiles_.warp_rows / 16,
                tiles_.warp_columns, form_.tensor_cores() ? 1 : 4);
  }

  std::vector<std::string> comment() const {
    std::vector<std::string> lines = kernel_comment(graph_, kernel_);
    lines.push_back(tiles_comment(tiles_, form_.tensor_cores()) +
                    fmt::format(" Where {} is what its column adds and what k adds, by a table.",
                                form_.in_pieces() ? "a piece of 16 bytes lies" : "an element lies"));
    return lines;
  }

  // What is gathered, and where pieces lie, is kept in registers for a step: ptxas takes too few by itself, and spills.
  int blocks_at_a_time() const {
    // Float8 is multiplied as halves that ptxas makes of it.
    const int threads = form_.dtype == DType::kFloat8E4M3FN ? 256 : 384;
    if (form_.tensor_cores()) return std::max(1, threads / tiles_.threads());
    const auto in_strips = [&](const ConvolutionFactor& f) {
      return f.fill == ConvolutionFill::kStrips && (form_.left.tabled || form_.right.tabled);
    };
    const int blocks = least_blocks(tiles_, false, 1);
    const bool full = tiles_.warp_rows * tiles_.warp_columns / 32 >= 64;  // the lanes' registers, of sums and factors
    // Strips by a table have a place and its taps for each of their lines, too; beside one, what their lines are.
    return full && (in_strips(form_.left) || in_strips(form_.right)) ? (3 * blocks + 3) / 4 : blocks;
  }

  void place_block() {
    row0_ = writer_.unique("row0");
    column0_ = writer_.unique("column0");
    const auto [tile, batch] = fusec::place_block(emitter_, product_, tiles_down(), tiles_across());
    batch_ = batch;
    writer_.line(fmt::format("const int {0} = {1}.row * {2}, {3} = {1}.column * {4};", row0_, tile, tiles_.rows,
                             column0_, tiles_.columns));
    place_warps(writer_, tiles_);
  }

  void main_loop() {
    fetch_ = factors_.declare_fetch();
    if (factors_.keeps()) keep_ = factors_.declare_keep();
    const int ahead = tiles_.stages - 1;
    const std::int64_t bytes = form_.stage_bytes();
    factors_.keeps_in_loop() ? fetch_first_in_loop() : fetch_first();
    writer_.line(fmt::format("int reading = 0, writing = {};", ahead * bytes));
    const std::string next_reading = fmt::format("reading = reading == {0} ? 0 : reading + {1};", ahead * bytes, bytes);
    const std::vector<std::string> fetch_next = {
        fmt::format("if (step + {} < {}) {};", ahead, end_, fetch(fmt::format("step + {}", ahead), "writing")),
        "commit_copies();", fmt::format("writing = writing == {0} ? 0 : writing + {1};", ahead * bytes, bytes)};
    const std::string wait = fmt::format("wait_for_groups<{}>();", ahead - 1);
    form_.tensor_cores() ? steps_on_tensor_cores(wait, next_reading, fetch_next)
                         : steps_in_lanes(wait, next_reading, fetch_next);
  }

  // Fetches a tile, and begins to load what the next one has by way of registers.
  std::string fetch(const std::string& step, const std::string& into) const {
    return fmt::format("{}({}, {})", fetch_, step, into) +
           (keep_.empty() ? "" : fmt::format(", {}({} + 1)", keep_, step));
  }

  void fetch_first() {
    if (!keep_.empty()) writer_.line(fmt::format("{}({});", keep_, first_));
    for (int s = 0; s < tiles_.stages - 1; ++s) {
      const std::string step = first_ == "0" ? std::to_string(s) : fmt::format("{} + {}", first_, s);
      const std::string if_there = first_ == "0" ? "" : fmt::format("if ({} < {}) ", step, end_);
      if (s < steps()) writer_.line(if_there + fetch(step, std::to_string(s * form_.stage_bytes())) + ";");
      writer_.line("commit_copies();");
    }
  }

  // Begins a step before the first, of which there is nothing to fetch: what is loaded into registers is many
  // statements, and what NVRTC takes goes with their number.
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

  // Fragments of the next slice are loaded before the products of this one.
  void steps_on_tensor_cores(const std::string& wait, const std::string& next_reading,
                             const std::vector<std::string>& fetch_next) {
    writer_.use(form_.tf32 ? "tf32_fragments" : "tile_fragments");
    const int slices = tiles_.depth * form_.element_bytes() / 32;
    writer_.line(fmt::format("unsigned {}[2][{}][4], {}[2][{}][4];", left_.fragments, tiles_.warp_rows / 16,
                             right_.fragments, tiles_.warp_columns / 16));
    for (const ConvolutionTile* t : {&left_, &right_}) declare_words(*t, slices);
    writer_.open("const auto load = [&](int buffer, unsigned stage, int depth)");
    for (const ConvolutionTile* t : {&left_, &right_})
      if (!t->along_depth)
        writer_.line(fmt::format("{}.load({}[buffer], stage, depth / 16);", t->places, t->fragments));
      else
        writer_.line(fmt::format("load_fragments<{}, true, {}>({}[buffer], stage + {}, {}, depth, warp_lane);", t->left,
                                 t->units, t->fragments, t->offset, t->left ? "warp_row" : "warp_column"));
    writer_.close("};");
    writer_.line(wait);
    writer_.line("__syncthreads();");
    writer_.line(fmt::format("load(0, {}, 0);", stages_));
    writer_.line("#pragma unroll 1");
    writer_.open(fmt::format("for (int step = {}; step < {}; ++step)", first_, end_));
    writer_.line("#pragma unroll");
    writer_.open(fmt::format("for (int slice = 0; slice < {}; ++slice)", slices));
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
      for (const ConvolutionTile* t : {&left_, &right_})
        writer_.line(fmt::format("round_to_tf32({}[slice % 2]);", t->fragments));
    writer_.use("multiply_fragments");
    writer_.use(mma);
    writer_.line(fmt::format("multiply_fragments<{}>({}, {}[slice % 2], {}[slice % 2]);", mma, sum_, left_.fragments,
                             right_.fragments));
    writer_.close();
    writer_.close();
  }

  // Where a lane finds the words of a tile whose lines run across.
  void declare_words(const ConvolutionTile& t, int slices) {
    if (t.along_depth) return;
    const int across = t.left ? tiles_.warp_rows : tiles_.warp_columns;
    writer_.line(fmt::format("const WordPlaces<{}, {}, {}, {}> {}({}, {}, warp_lane);", t.left, t.units, across / 16,
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
    for (const ConvolutionTile* t : {&left_, &right_})
      tiles.push_back(
          {t->left, t->along_depth, t->units, t->fragments, fmt::format("dynamic_shared + reading + {}", t->offset)});
    multiply_in_lanes(writer_, tiles_, tiles, std::vector<LaneTerm>{{sum_, left_.fragments, right_.fragments}});
    writer_.line(next_reading);
    writer_.close();
  }

  const Kernel& kernel_;
  const Product& product_;
  const ConvolutionForm& form_;
  const GemmTiles& tiles_;
  const ExprPool& pool_;
  const Graph& graph_;
  KernelWriter& writer_;
  ExprEmitter emitter_;
  std::string stages_, row0_, column0_, batch_, sum_, share_, first_ = "0", end_;
  std::string fetch_, keep_;  // functions of the emitted text; keep_: "" where nothing goes by way of registers
  ConvolutionTiles factors_;
  const ConvolutionTile &left_, &right_;
};

}  // namespace

std::vector<KernelSource> convolution(const Kernel& kernel, const Product& product, const ConvolutionForm& form,
                                      const Graph& graph) {
  KernelWriter writer(graph, false);
  std::vector<KernelSource> sources{Convolution(kernel, product, form, graph, writer).emit()};
  const GemmTiles& t = form.tiles;
  if (t.shares > 1)
    sources.push_back(add_gemm_shares(kernel, product, as_gemm(form),
                                      GemmShares(t.shares, product, kernel.pool, t.rows, t.columns), graph));
  return sources;
}

}  // namespace fusec
