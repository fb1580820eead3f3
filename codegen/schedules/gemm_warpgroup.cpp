#include "codegen/schedules/gemm_warpgroup.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>

#include "codegen/emit_expr.h"
#include "codegen/schedules/direct.h"
#include "codegen/schedules/gemm_block.h"
#include "codegen/schedules/gemm_epilogue.h"

namespace fusec {
namespace {

constexpr int kPiece = 64, kPieceBytes = 8192;          // rows or columns that are swizzled together, and their tile
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
  std::size_t left_count = 0;
  std::string depth;
  int bytes = 0;
};

// A product with what is made of it.
struct Part {
  Part(const WarpgroupPart& given, KernelWriter& writer)
      : kernel(given.kernel), product(given.product), form(given.form), emitter(given.kernel, writer) {
    for (const std::uint32_t a : product.shared_rest) emitter.bind(a, "0");
  }
  const Kernel& kernel;
  const Product& product;
  const WarpgroupGemmForm& form;
  ExprEmitter emitter;
  std::vector<Loop> loops;
  std::string down, across;  // clusters' tiles
  IndexExpr tiles;

  std::string text(const IndexExpr& e) const { return emitter.index_text().tight(simplify(e, kernel.pool.bounds())); }
  IndexExpr count(const std::vector<std::uint32_t>& axes) const { return point_count(kernel.pool, axes); }
};

class WarpgroupEmitter {
 public:
  WarpgroupEmitter(std::span<const WarpgroupPart> parts, const Graph& graph, const Target& target, KernelWriter& writer)
      : tiles_(parts[0].form.tiles), graph_(graph), target_(target), writer_(writer) {
    std::vector<WarpgroupGemmForm> forms;
    for (const WarpgroupPart& part : parts) {
      parts_.push_back(std::make_unique<Part>(part, writer));
      forms.push_back(part.form);
    }
    stage_bytes_ = stage_bytes(forms);
    staged_bytes_ = staged_bytes(forms);
    shared_bytes_ = shared_bytes(forms);
  }

  KernelSource emit() {
    for (const char* part : {"dynamic_tiles", "mbarrier", "cluster", "warpgroup", "tile_order", "load_matrices"})
      writer_.use(part);
    IndexExpr all = 0;
    for (const auto& part : parts_) {
      prepare(*part);
      all += part->tiles;
      ends_.push_back(all);
    }
    writer_.line("#ifdef __CUDA_ARCH_FEAT_SM90_ALL  // nvcc compiles for compute_90 as well, which has none of this");
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
    writer_.line("#endif");
    KernelSource source = writer_.finish(comment(), tiles_.kThreads, 1, tiles_.cluster);
    std::vector<NodeId> nodes;
    for (const auto& part : parts_) nodes.insert(nodes.end(), part->kernel.nodes.begin(), part->kernel.nodes.end());
    if (parts_.size() > 1) {
      std::ranges::sort(nodes);
      nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
    }
    source.name = kernel_name(graph_, nodes);
    const int resident = target_.multiprocessors / tiles_.cluster;
    source.grid[0] = simplify(min(all, resident) * tiles_.cluster, parts_[0]->kernel.pool.bounds());
    source.dynamic_shared = shared_bytes_;
    source.schedule = "gemm_wgmma";
    return source;
  }

 private:
  std::vector<std::string> comment() const {
    std::vector<std::string> lines;
    for (const auto& part : parts_)
      for (std::string& line : kernel_comment(graph_, part->kernel)) lines.push_back(std::move(line));
    std::string columns;
    for (const auto& part : parts_)
      columns += fmt::format("{}{}", columns.empty() ? "" : " or ", part->form.tiles.columns);
    lines.push_back(
        fmt::format("A block makes {}x{} at a time, by two warpgroups of {} rows; {} of k are a tile, {} tiles "
                    "are in shared memory or on the way.",
                    tiles_.kRows, columns, kPiece, tiles_.kDepth, tiles_.stages));
    return lines;
  }

  void prepare(Part& part) {
    const IndexExpr down = ceil_div(part.count(part.product.rows), tiles_.kRows * tiles_.cluster);
    const IndexExpr across = ceil_div(part.count(part.product.columns), part.form.tiles.columns);
    part.down = part.text(down);
    part.across = part.text(across);
    part.tiles = simplify(down * across * part.count(part.product.batch), part.kernel.pool.bounds());
    for (std::size_t i = 0; i < part.form.loops.size(); ++i) part.loops.push_back(loop_of(part, i));
  }

  Loop loop_of(const Part& part, std::size_t number) {
    const WarpgroupLoop& operands = part.form.loops[number];
    const IndexExpr depth = part.count(part.product.loops[number].depth);
    Loop loop{.factors = {}, .left_count = operands.left.size(), .depth = part.text(depth)};
    for (const bool left : {true, false})
      for (const WarpgroupOperand& operand : left ? operands.left : operands.right) {
        Factor f{.operand = &operand,
                 .left = left,
                 .pieces = (left ? tiles_.kRows : part.form.tiles.columns) / kPiece,
                 .offset = loop.bytes,
                 .map = {}};
        const IndexExpr across = part.count(left ? part.product.rows : part.product.columns);
        f.map = writer_.tensor_map(part.kernel.pool[operand.load].source, boxes_of(f, across, depth, part));
        loop.bytes += f.pieces * kPieceBytes;
        loop.factors.push_back(std::move(f));
      }
    return loop;
  }

  TensorBoxes boxes_of(const Factor& f, const IndexExpr& across, const IndexExpr& depth, const Part& part) const {
    const WarpgroupOperand& operand = *f.operand;
    const Bounds& bounds = part.kernel.pool.bounds();
    // Of which there may be none: described as one, since such a tensor is never copied from.
    const auto extent = [&](const IndexExpr& e) {
      return range_of(e, bounds).min > 0 ? simplify(e, bounds) : max(e, 1);
    };
    const IndexExpr beside = operand.stretches ? operand.stretches->extent : operand.along_depth ? depth : across;
    TensorBoxes boxes{.offset = operand.offset,
                      .extents = {extent(beside), extent(operand.along_depth ? across : depth)},
                      .strides = {operand.stride},
                      .box = {kPiece, tiles_.kDepth}};
    // Along the depth, what a block copies at a time lies in one box.
    if (operand.along_depth) boxes.box[1] = static_cast<std::uint32_t>(kPiece * pieces_copied(f));
    const auto add = [&](const IndexExpr& count, const IndexExpr& stride) {
      boxes.extents.push_back(extent(count));
      boxes.strides.push_back(stride);
      boxes.box.push_back(1);
    };
    if (operand.stretches) add(operand.stretches->count, operand.stretches->stride);
    for (const WarpgroupOperand::Batch& batch : operand.batch) add(batch.extent, batch.stride);
    return boxes;
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
    staged_offset_ = stage_bytes_ * tiles_.stages;
    const std::int64_t barriers = staged_offset_ + staged_bytes_ * kConsumerWarps;
    writer_.line("const int warp = threadIdx.x / 32, warp_lane = threadIdx.x % 32;");
    if (tiles_.cluster > 1) writer_.line(fmt::format("const int {} = cluster_rank();", rank_));
    writer_.line(fmt::format("const int {} = {};", count_, parts_[0]->text(ends_.back())));
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

  // What differs from part to part, by number.
  template <class F>
  std::string of_part(F value) const {
    const std::string last = value(parts_.size() - 1);
    bool alike = true;
    std::string text;
    for (std::size_t p = 0; p + 1 < parts_.size(); ++p) {
      const std::string own = value(p);
      alike = alike && own == last;
      text += fmt::format("{} == {} ? {} : ", part_, p, own);
    }
    return alike ? last : "(" + text + last + ")";
  }

  // Lines that differ from part to part.
  template <class F>
  void for_part(F write) {
    for (std::size_t p = 0; p < parts_.size(); ++p) {
      const bool last = p + 1 == parts_.size();
      if (parts_.size() > 1 && p == 0) writer_.open(fmt::format("if ({} == 0)", part_));
      if (p > 0) {
        writer_.close(last ? "} else {" : fmt::format("}} else if ({} == {}) {{", part_, p));
        writer_.reopen();
      }
      write(*parts_[p]);
    }
    if (parts_.size() > 1) writer_.close();
  }

  void open_tiles() {
    writer_.line(fmt::format("int {} = 0, {} = 0;", stage_, phase_));
    const std::string tile = writer_.unique("tile"), place = writer_.unique("place");
    const std::string of = tiles_.cluster > 1 ? fmt::format(" / {}", tiles_.cluster) : "";
    writer_.open(fmt::format("for (int {0} = blockIdx.x{1}; {0} < {2}; {0} += gridDim.x{1})", tile, of, count_));
    std::string number = tile;
    if (parts_.size() > 1) number = open_part(tile);
    row0_ = writer_.unique("row0");
    column0_ = writer_.unique("column0");
    const Part& first = *parts_[0];
    if (!first.product.batch.empty()) {
      const std::string of_batch = fmt::format("({} * {})", first.down, first.across);
      batch_ = writer_.unique("batch");
      writer_.line(fmt::format("const {} {} = {} / {};", writer_.index_type(), batch_, tile, of_batch));
      number += " % " + of_batch;
    }
    writer_.line(fmt::format("const TilePlace {} = tile_in_order<{}>({}, {}, {});", place, kTileGroup, number,
                             of_part([&](std::size_t p) { return parts_[p]->down; }),
                             of_part([&](std::size_t p) { return parts_[p]->across; })));
    const std::string row =
        tiles_.cluster > 1 ? fmt::format("({}.row * {} + {})", place, tiles_.cluster, rank_) : place + ".row";
    writer_.line(fmt::format("const int {} = {} * {}, {} = {}.column * {};", row0_, row, tiles_.kRows, column0_, place,
                             of_part([&](std::size_t p) { return std::to_string(parts_[p]->form.tiles.columns); })));
  }

  // Whose tile it is; its number among them.
  std::string open_part(const std::string& tile) {
    part_ = writer_.unique("part");
    std::string behind;
    for (std::size_t p = 0; p + 1 < parts_.size(); ++p)
      behind += fmt::format("{}({} >= {})", p == 0 ? "" : " + ", tile, parts_[0]->text(ends_[p]));
    writer_.line(fmt::format("const int {} = {};", part_, behind));
    return fmt::format("{} - {}", tile, of_part([&](std::size_t p) {
                         return p == 0 ? std::string("0") : parts_[0]->text(ends_[p - 1]);
                       }));
  }

  std::string depth_of(std::size_t loop) const {
    return of_part([&](std::size_t p) { return parts_[p]->loops[loop].depth; });
  }

  void next_stage() {
    writer_.line(fmt::format("if (++{0} == {1}) {0} = 0, {2} ^= 1;", stage_, tiles_.stages, phase_));
  }

  // Warp 0: all its lanes wait, one copies.
  void copy_tiles() {
    open_tiles();
    Part& first = *parts_[0];
    const ExprEmitter::Mark mark = first.emitter.mark();
    if (!first.product.batch.empty()) bind_flat(first.emitter, first.product.batch, batch_, "bcdefgh");
    const std::string k = writer_.unique("k"), into = writer_.unique("into"), ready = writer_.unique("ready");
    for (std::size_t i = 0; i < first.loops.size(); ++i) {
      writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; {0} += {2})", k, depth_of(i), tiles_.kDepth));
      writer_.line(fmt::format("wait_for_phase({} + 8 * {}, {} ^ 1);", empty_, stage_, phase_));
      writer_.open("if (warp_lane == 0)");
      writer_.line(fmt::format("const unsigned {} = {} + {} * {}, {} = {} + 8 * {};", into, tiles_at_, stage_,
                               stage_bytes_, ready, full_, stage_));
      writer_.line(fmt::format("arrive_expecting({}, {});", ready,
                               of_part([&](std::size_t p) { return std::to_string(parts_[p]->loops[i].bytes); })));
      for_part([&](Part& part) {
        for (const Factor& f : part.loops[i].factors) copy(part, f, k, into, ready);
      });
      writer_.close();
      next_stage();
      writer_.close();
    }
    first.emitter.rewind(mark);
    writer_.close();
  }

  void copy(Part& part, const Factor& f, const std::string& k, const std::string& into, const std::string& ready) {
    const bool both = shared_by_cluster(f);
    const char* const load = both ? "load_box_to_both" : "load_box";
    writer_.use(load);
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
      if (f.operand->stretches) {
        const std::string extent = part.text(f.operand->stretches->extent);
        coordinates = fmt::format("{0} % {1}, {2}, {0} / {1}", k, extent, across);
      }
      for (const WarpgroupOperand::Batch& batch : f.operand->batch)
        coordinates += ", " + part.emitter.index(simplify(batch.position, part.kernel.pool.bounds()));
      writer_.line(fmt::format("{}({}, {}, {}, {});", load, to, f.map, ready, coordinates));
    }
  }

  void multiply_tiles() {
    const std::string staged = writer_.unique("staged");
    writer_.line("const int warp_row = (warp - 4) * 16;");
    writer_.line(fmt::format("float* const {} = (float*)(dynamic_tiles + {} + (warp - 4) * {});", staged,
                             staged_offset_, staged_bytes_));
    open_tiles();
    for_part([&](const Part& part) { multiply_tile(part, staged); });
    writer_.close();
  }

  void multiply_tile(const Part& part, const std::string& staged) {
    std::vector<std::string> sums;
    for (int i = 0; i < part.form.sums; ++i) {
      sums.push_back(writer_.unique("sum"));
      writer_.line(fmt::format("float {}[{}][4] = {{}};", sums.back(), part.form.tiles.columns / 8));
      writer_.line(fmt::format("hold({});", sums.back()));
    }
    std::size_t next = 0;
    for (std::size_t i = 0; i < part.loops.size(); ++i) {
      if (part.loops.size() > 1) writer_.open("");
      multiply_loop(part, i, sums, next);
      next += part.product.loops[i].terms.size();
      if (part.loops.size() > 1) writer_.close();
    }
    for (const std::string& sum : sums) writer_.line(fmt::format("hold({});", sum));
    finish(part, sums, staged);
  }

  void finish(const Part& part, const std::vector<std::string>& sums, const std::string& staged) {
    std::map<ExprId, std::string> of_reduction;
    std::size_t next = 0;
    for (const ProductLoop& loop : part.product.loops)
      for (const ProductTerm& term : loop.terms) of_reduction[term.reduction] = sums[next++];
    const WarpgroupTiles& tiles = part.form.tiles;
    GemmForm pieces{.dtype = part.form.dtype, .loops = {}, .tiles = {}, .sums = part.form.sums};
    pieces.tiles.rows = tiles.kRows;
    pieces.tiles.columns = tiles.columns;
    pieces.tiles.warp_rows = 16;
    pieces.tiles.warp_columns = tiles.staged_columns;
    emit_epilogue({part.kernel, part.product, pieces, std::move(of_reduction), row0_, column0_, batch_,
                   tiles.columns / tiles.staged_columns, staged},
                  graph_, writer_);
  }

  // Products of one stage are under way while the next one is waited for; a stage is empty when its products are done.
  void multiply_loop(const Part& part, std::size_t number, const std::vector<std::string>& sums,
                     std::size_t first_sum) {
    const std::string steps = writer_.unique("steps"), before = writer_.unique("before");
    const Loop& tiles = part.loops[number];
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
                               f.left ? "left" : "right", i, tiles_at_, stage_, stage_bytes_,
                               f.offset > 0 ? fmt::format(" + {}", f.offset) : "", own));
    }
    multiply_stage(part, part.product.loops[number], tiles, sums, first_sum);
    writer_.line("commit_products();");
    writer_.line("wait_for_products<1>();");
    writer_.line(release(before, "step > 0"));
    writer_.line(fmt::format("{} = {};", before, stage_));
    next_stage();
    writer_.close();
    writer_.line("wait_for_products<0>();");
    writer_.line(release(before, steps + " > 0"));
  }

  void multiply_stage(const Part& part, const ProductLoop& loop, const Loop& tiles,
                      const std::vector<std::string>& sums, std::size_t first_sum) {
    const std::string multiply =
        fmt::format("multiply_warpgroup_{}", part.form.dtype == DType::kBFloat16 ? "bf16" : "fp16");
    writer_.use(fmt::format("{}_{}", multiply, part.form.tiles.columns));
    writer_.line("#pragma unroll");
    writer_.open(fmt::format("for (int slice = 0; slice < {}; ++slice)", tiles_.kDepth / 16));
    for (const ProductTerm& term : loop.terms) {
      const std::size_t right = tiles.left_count + term.right;
      const Factor &a = tiles.factors[term.left], &b = tiles.factors[right];
      // 16 of the depth are 32 bytes of a line, or 16 lines; descriptors count in 16 bytes.
      const auto along = [](const Factor& f) { return f.operand->along_depth ? 2 : 128; };
      writer_.line(fmt::format("{}<{}, {}>({}, left_{} + slice * {}, right_{} + slice * {});", multiply,
                               !a.operand->along_depth, !b.operand->along_depth, sums[first_sum++], term.left, along(a),
                               right, along(b)));
    }
    writer_.close();
  }

  // A warp is through with a stage, of which it tells all that copy into it.
  std::string release(const std::string& stage, const std::string& where) const {
    if (tiles_.cluster == 1) return fmt::format("if ({} && warp_lane == 0) arrive({} + 8 * {});", where, empty_, stage);
    return fmt::format("if ({} && warp_lane < {}) arrive_in_cluster(in_block({} + 8 * {}, warp_lane));", where,
                       tiles_.cluster, empty_, stage);
  }

  const WarpgroupTiles& tiles_;  // of the first part: rows, depth, stages and cluster are those of all
  const Graph& graph_;
  const Target& target_;
  KernelWriter& writer_;
  std::vector<std::unique_ptr<Part>> parts_;
  std::vector<IndexExpr> ends_;  // of each part's tiles among all
  std::int64_t stage_bytes_ = 0, staged_bytes_ = 0, shared_bytes_ = 0, staged_offset_ = 0;
  std::string tiles_at_, full_, empty_, count_, stage_, phase_, rank_, part_, row0_, column0_, batch_;
};

}  // namespace

KernelSource gemm_warpgroup(std::span<const WarpgroupPart> parts, const Graph& graph, const Target& target) {
  const bool wide = std::ranges::any_of(parts, [&](const WarpgroupPart& part) {
    return needs_wide_index(part.kernel, graph, point_count(part.kernel.pool, part.kernel.outputs.at(0).axes));
  });
  KernelWriter writer(graph, wide);
  return WarpgroupEmitter(parts, graph, target, writer).emit();
}

}  // namespace fusec
