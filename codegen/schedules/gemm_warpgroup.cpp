#include "codegen/schedules/gemm_warpgroup.h"

#include <fmt/format.h>

#include <map>

#include "codegen/emit_expr.h"
#include "codegen/schedules/direct.h"
#include "codegen/schedules/gemm_epilogue.h"

namespace fusec {
namespace {

constexpr int kTileGroup = 8;                   // rows of clusters' tiles that are gone through column by column
constexpr int kPiece = 64, kPieceBytes = 8192;  // rows or columns that are swizzled together, and their tile
constexpr int kCopierRegisters = 40, kRegisters = 232;  // of 168 that each thread begins with
constexpr int kConsumerWarps = 4 * WarpgroupTiles::kConsumers;

// One factor's tiles in a stage.
struct Factor {
  const WarpgroupOperand* operand = nullptr;
  bool left = false;
  int pieces = 0;
  int offset = 0;  // of the tile in its stage, bytes
  std::string map;
};

struct Loop {
  std::vector<Factor> factors;  // left ones first
  std::string depth;
  int bytes = 0;
};

class WarpgroupEmitter {
 public:
  WarpgroupEmitter(const Kernel& kernel, const Product& product, const WarpgroupGemmForm& form, const Graph& graph,
                   const Target& target, KernelWriter& writer)
      : kernel_(kernel),
        product_(product),
        form_(form),
        tiles_(form.tiles),
        pool_(kernel.pool),
        graph_(graph),
        target_(target),
        writer_(writer),
        emitter_(kernel, writer) {}

  KernelSource emit() {
    for (const char* part : {"dynamic_tiles", "mbarrier", "cluster", "warpgroup", "tile_order", "load_matrices"})
      writer_.use(part);
    for (std::size_t i = 0; i < form_.loops.size(); ++i) loops_.push_back(loop_of(i));
    declare_barriers();
    writer_.open("if (warp < 4)");
    writer_.line(fmt::format("give_registers_back<{}>();", kCopierRegisters));
    writer_.open("if (warp == 0)");
    copy_tiles();
    writer_.line("__syncwarp();");
    writer_.close();
    writer_.close("} else {");
    writer_.reopen();
    writer_.line(fmt::format("take_registers<{}>();", kRegisters));
    multiply_tiles();
    writer_.close();
    if (tiles_.cluster > 1)
      writer_.line("sync_cluster();  // until then the other block may copy here, and arrive at barriers");
    KernelSource source = writer_.finish(comment(), tiles_.kThreads, 1, tiles_.cluster);
    source.name = kernel_name(graph_, kernel_.nodes);
    const int resident = target_.multiprocessors / tiles_.cluster;
    source.grid[0] = simplify(min(cluster_tiles(), resident) * tiles_.cluster, pool_.bounds());
    source.dynamic_shared = shared_bytes(form_);
    source.schedule = "gemm_wgmma";
    return source;
  }

 private:
  IndexExpr count(const std::vector<std::uint32_t>& axes) const { return point_count(pool_, axes); }
  IndexExpr clusters_down() const { return ceil_div(count(product_.rows), tiles_.kRows * tiles_.cluster); }
  IndexExpr tiles_across() const { return ceil_div(count(product_.columns), tiles_.columns); }
  IndexExpr cluster_tiles() const {
    return simplify(clusters_down() * tiles_across() * count(product_.batch), pool_.bounds());
  }
  std::string text(const IndexExpr& e) { return emitter_.index_text().tight(simplify(e, pool_.bounds())); }

  std::vector<std::string> comment() const {
    std::vector<std::string> lines = kernel_comment(graph_, kernel_);
    lines.push_back(
        fmt::format("A block makes {}x{} at a time, by two warpgroups of {} rows; {} of k are a tile, {} tiles "
                    "are in shared memory or on the way.",
                    tiles_.kRows, tiles_.columns, kPiece, tiles_.kDepth, tiles_.stages));
    return lines;
  }

  // Extents of which a tensor may have none are described as one: such a tensor is never copied from.
  IndexExpr extent(const IndexExpr& e) const {
    return range_of(e, pool_.bounds()).min > 0 ? simplify(e, pool_.bounds()) : max(e, 1);
  }

  Loop loop_of(std::size_t number) {
    const WarpgroupLoop& operands = form_.loops[number];
    const IndexExpr depth = count(product_.loops[number].depth);
    Loop loop{.factors = {}, .depth = text(depth)};
    for (const bool left : {true, false})
      for (const WarpgroupOperand& operand : left ? operands.left : operands.right) {
        Factor f{.operand = &operand,
                 .left = left,
                 .pieces = (left ? tiles_.kRows : tiles_.columns) / kPiece,
                 .offset = loop.bytes,
                 .map = {}};
        const IndexExpr across = count(left ? product_.rows : product_.columns);
        TensorBoxes boxes{
            .offset = operand.offset,
            .extents = {extent(operand.along_depth ? depth : across), extent(operand.along_depth ? across : depth)},
            .strides = {operand.stride},
            .box = {kPiece, tiles_.kDepth}};
        // Along the depth, what a block copies at a time lies in one box.
        if (operand.along_depth) boxes.box[1] = static_cast<std::uint32_t>(kPiece * pieces_copied(f));
        for (const WarpgroupOperand::Batch& batch : operand.batch) {
          boxes.extents.push_back(extent(batch.extent));
          boxes.strides.push_back(batch.stride);
          boxes.box.push_back(1);
        }
        f.map = writer_.tensor_map(pool_[operand.load].source, std::move(boxes));
        loop.bytes += f.pieces * kPieceBytes;
        loop.factors.push_back(std::move(f));
      }
    return loop;
  }

  bool shared_by_cluster(const Factor& f) const { return !f.left && tiles_.cluster > 1; }
  int pieces_copied(const Factor& f) const { return shared_by_cluster(f) ? f.pieces / tiles_.cluster : f.pieces; }

  void declare_barriers() {
    tiles_at_ = writer_.unique("tiles");
    full_ = writer_.unique("full");
    empty_ = writer_.unique("empty");
    count_ = writer_.unique("tile_count");
    stage_ = writer_.unique("stage");
    phase_ = writer_.unique("phase");
    if (tiles_.cluster > 1) rank_ = writer_.unique("rank");
    staged_offset_ = stage_bytes(form_) * tiles_.stages;
    const std::int64_t barriers = staged_offset_ + staged_bytes(form_) * kConsumerWarps;
    writer_.line("const int warp = threadIdx.x / 32, warp_lane = threadIdx.x % 32;");
    if (tiles_.cluster > 1) writer_.line(fmt::format("const int {} = cluster_rank();", rank_));
    writer_.line(fmt::format("const int {} = {};", count_, text(cluster_tiles())));
    writer_.line(fmt::format("const unsigned {0} = shared_address(dynamic_tiles), {1} = {0} + {2}, {3} = {1} + {4};",
                             tiles_at_, full_, barriers, empty_, 8 * tiles_.stages));
    writer_.open("if (threadIdx.x == 0)");
    writer_.open(fmt::format("for (int s = 0; s < {}; ++s)", tiles_.stages));
    writer_.line(fmt::format("init_mbarrier({} + 8 * s, 1);", full_));
    writer_.line(fmt::format("init_mbarrier({} + 8 * s, {});", empty_, kConsumerWarps * tiles_.cluster));
    writer_.close();
    writer_.line("fence_mbarriers();");
    writer_.close();
    writer_.line(tiles_.cluster > 1 ? "sync_cluster();" : "__syncthreads();");
  }

  void open_tiles() {
    writer_.line(fmt::format("int {} = 0, {} = 0;", stage_, phase_));
    const std::string tile = writer_.unique("tile"), place = writer_.unique("place");
    const std::string of = tiles_.cluster > 1 ? fmt::format(" / {}", tiles_.cluster) : "";
    writer_.open(fmt::format("for (int {0} = blockIdx.x{1}; {0} < {2}; {0} += gridDim.x{1})", tile, of, count_));
    std::string number = tile;
    const std::string down = text(clusters_down()), across = text(tiles_across());
    row0_ = writer_.unique("row0");
    column0_ = writer_.unique("column0");
    if (!product_.batch.empty()) {
      const std::string of_batch = text(clusters_down() * tiles_across());
      batch_ = writer_.unique("batch");
      writer_.line(fmt::format("const {} {} = {} / {};", writer_.index_type(), batch_, tile, of_batch));
      number += " % " + of_batch;
    }
    writer_.line(
        fmt::format("const TilePlace {} = tile_in_order<{}>({}, {}, {});", place, kTileGroup, number, down, across));
    const std::string row =
        tiles_.cluster > 1 ? fmt::format("({}.row * {} + {})", place, tiles_.cluster, rank_) : place + ".row";
    writer_.line(fmt::format("const int {} = {} * {}, {} = {}.column * {};", row0_, row, tiles_.kRows, column0_, place,
                             tiles_.columns));
  }

  void next_stage() {
    writer_.line(fmt::format("if (++{0} == {1}) {0} = 0, {2} ^= 1;", stage_, tiles_.stages, phase_));
  }

  // Warp 0: all its lanes wait, one copies.
  void copy_tiles() {
    open_tiles();
    const ExprEmitter::Mark mark = emitter_.mark();
    if (!product_.batch.empty()) bind_flat(emitter_, product_.batch, batch_, "bcdefgh");
    const std::string k = writer_.unique("k"), into = writer_.unique("into"), ready = writer_.unique("ready");
    for (const Loop& loop : loops_) {
      writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; {0} += {2})", k, loop.depth, tiles_.kDepth));
      writer_.line(fmt::format("wait_for_phase({} + 8 * {}, {} ^ 1);", empty_, stage_, phase_));
      writer_.open("if (warp_lane == 0)");
      writer_.line(fmt::format("const unsigned {} = {} + {} * {}, {} = {} + 8 * {};", into, tiles_at_, stage_,
                               stage_bytes(form_), ready, full_, stage_));
      writer_.line(fmt::format("arrive_expecting({}, {});", ready, loop.bytes));
      for (const Factor& f : loop.factors) copy(f, k, into, ready);
      writer_.close();
      next_stage();
      writer_.close();
    }
    emitter_.rewind(mark);
    writer_.close();
  }

  void copy(const Factor& f, const std::string& k, const std::string& into, const std::string& ready) {
    const bool both = shared_by_cluster(f);
    writer_.use(both ? "load_box_to_both" : "load_box");
    const int pieces = pieces_copied(f), boxes = f.operand->along_depth ? 1 : pieces;
    for (int i = 0; i < boxes; ++i) {
      std::string to = into, across = f.left ? row0_ : column0_;
      if (f.offset + i * kPieceBytes > 0) to += fmt::format(" + {}", f.offset + i * kPieceBytes);
      if (i > 0) across += fmt::format(" + {}", i * kPiece);
      if (both) {
        to += fmt::format(" + {} * {}", rank_, pieces * kPieceBytes);
        across += fmt::format(" + {} * {}", rank_, pieces * kPiece);
      }
      std::string coordinates = f.operand->along_depth ? k + ", " + across : across + ", " + k;
      for (const WarpgroupOperand::Batch& batch : f.operand->batch)
        coordinates += fmt::format(", {}", emitter_.index(simplify(batch.position, pool_.bounds())));
      writer_.line(
          fmt::format("{}({}, {}, {}, {});", both ? "load_box_to_both" : "load_box", to, f.map, ready, coordinates));
    }
  }

  void multiply_tiles() {
    const int first = 4, own = static_cast<int>(staged_bytes(form_));
    const std::string staged = writer_.unique("staged");
    writer_.line(fmt::format("const int warp_row = (warp - {}) * 16;", first));
    writer_.line(fmt::format("float* const {} = (float*)(dynamic_tiles + {} + (warp - {}) * {});", staged,
                             staged_offset_, first, own));
    open_tiles();
    for (const ProductLoop& loop : product_.loops)
      for (const ProductTerm& term : loop.terms) {
        std::string& sum = sums_[term.reduction];
        sum = writer_.unique("sum");
        writer_.line(fmt::format("float {}[{}][4] = {{}};", sum, tiles_.columns / 8));
        writer_.line(fmt::format("hold({});", sum));
      }
    for (std::size_t i = 0; i < loops_.size(); ++i) {
      if (loops_.size() > 1) writer_.open("");
      multiply_loop(product_.loops[i], loops_[i]);
      if (loops_.size() > 1) writer_.close();
    }
    for (const auto& [reduction, sum] : sums_) writer_.line(fmt::format("hold({});", sum));
    GemmForm pieces{.dtype = form_.dtype, .loops = {}, .tiles = {}, .sums = form_.sums};
    pieces.tiles.rows = tiles_.kRows;
    pieces.tiles.columns = tiles_.columns;
    pieces.tiles.warp_rows = 16;
    pieces.tiles.warp_columns = tiles_.staged_columns;
    emit_epilogue(
        {kernel_, product_, pieces, sums_, row0_, column0_, batch_, tiles_.columns / tiles_.staged_columns, staged},
        graph_, writer_);
    writer_.close();
  }

  // Products of one stage are under way while the next one is waited for; a stage is empty when its products are done.
  void multiply_loop(const ProductLoop& loop, const Loop& tiles) {
    const std::string steps = writer_.unique("steps"), before = writer_.unique("before");
    writer_.line(fmt::format("const int {} = ({} + {}) / {};", steps, tiles.depth, tiles_.kDepth - 1, tiles_.kDepth));
    writer_.line(fmt::format("int {} = 0;", before));
    writer_.line("#pragma unroll 1");
    writer_.open(fmt::format("for (int step = 0; step < {}; ++step)", steps));
    writer_.line(fmt::format("wait_for_phase({} + 8 * {}, {});", full_, stage_, phase_));
    writer_.line("fence_products();");
    for (std::size_t i = 0; i < tiles.factors.size(); ++i) {
      const Factor& f = tiles.factors[i];
      const std::string own = f.left ? fmt::format(" + (warp / 4 - 1) * {}", kPieceBytes) : "";
      writer_.line(fmt::format("const unsigned long long {}_{} = swizzled_tile({} + {} * {}{}{});",
                               f.left ? "left" : "right", i, tiles_at_, stage_, stage_bytes(form_),
                               f.offset > 0 ? fmt::format(" + {}", f.offset) : "", own));
    }
    multiply_stage(loop, tiles);
    writer_.line("commit_products();");
    writer_.line("wait_for_products<1>();");
    writer_.line(release(before, "step > 0"));
    writer_.line(fmt::format("{} = {};", before, stage_));
    next_stage();
    writer_.close();
    writer_.line("wait_for_products<0>();");
    writer_.line(release(before, steps + " > 0"));
  }

  void multiply_stage(const ProductLoop& loop, const Loop& tiles) {
    const std::string multiply =
        fmt::format("multiply_warpgroup_{}", form_.dtype == DType::kBFloat16 ? "bf16" : "fp16");
    writer_.use(fmt::format("{}_{}", multiply, tiles_.columns));
    const std::size_t left_count = product_left_count(tiles);
    writer_.line("#pragma unroll");
    writer_.open(fmt::format("for (int slice = 0; slice < {}; ++slice)", tiles_.kDepth / 16));
    for (const ProductTerm& term : loop.terms) {
      const Factor &a = tiles.factors[term.left], &b = tiles.factors[left_count + term.right];
      // 16 of the depth are 32 bytes of a line, or 16 lines; descriptors count in 16 bytes.
      const auto along = [](const Factor& f) { return f.operand->along_depth ? 2 : 128; };
      writer_.line(fmt::format("{}<{}, {}>({}, left_{} + slice * {}, right_{} + slice * {});", multiply,
                               !a.operand->along_depth, !b.operand->along_depth, sums_.at(term.reduction), term.left,
                               along(a), left_count + term.right, along(b)));
    }
    writer_.close();
  }

  static std::size_t product_left_count(const Loop& tiles) {
    std::size_t count = 0;
    for (const Factor& f : tiles.factors) count += f.left ? 1 : 0;
    return count;
  }

  // A warp is through with a stage, of which it tells all that copy into it.
  std::string release(const std::string& stage, const std::string& where) const {
    if (tiles_.cluster == 1) return fmt::format("if ({} && warp_lane == 0) arrive({} + 8 * {});", where, empty_, stage);
    return fmt::format("if ({} && warp_lane < {}) arrive_in_cluster(in_block({} + 8 * {}, warp_lane));", where,
                       tiles_.cluster, empty_, stage);
  }

  const Kernel& kernel_;
  const Product& product_;
  const WarpgroupGemmForm& form_;
  const WarpgroupTiles& tiles_;
  const ExprPool& pool_;
  const Graph& graph_;
  const Target& target_;
  KernelWriter& writer_;
  ExprEmitter emitter_;
  std::vector<Loop> loops_;
  std::map<ExprId, std::string> sums_;
  std::int64_t staged_offset_ = 0;
  std::string tiles_at_, full_, empty_, count_, stage_, phase_, rank_, row0_, column0_, batch_;
};

}  // namespace

KernelSource gemm_warpgroup(const Kernel& kernel, const Product& product, const WarpgroupGemmForm& form,
                            const Graph& graph, const Target& target) {
  KernelWriter writer(graph, needs_wide_index(kernel, graph, point_count(kernel.pool, kernel.outputs.at(0).axes)));
  return WarpgroupEmitter(kernel, product, form, graph, target, writer).emit();
}

}  // namespace fusec
