#include "codegen/wgmma/gemm_warpgroup.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "codegen/gemm/gemm_block.h"
#include "codegen/gemm/split_k.h"
#include "codegen/wgmma/gemm_warpgroup_emitter.h"
#include "schedule/gemm/split_k.h"

namespace fusec {
namespace {

// "kFcWeight" for "fc.weight".
std::string constant_name(std::string_view name) {
  std::string text = "k";
  bool begins = true;
  for (const char c : name) {
    const bool in_word = std::isalnum(static_cast<unsigned char>(c)) != 0;
    if (in_word) text += begins ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    begins = !in_word;
  }
  return text;
}

}  // namespace

WarpgroupEmitter::Part::Part(const WarpgroupPart& given, KernelWriter& writer)
    : kernel(given.form.pairs ? given.form.pairs->kernel : given.kernel),
      contraction(given.form.pairs ? given.form.pairs->contraction : given.contraction),
      results(given.contraction),
      form(given.form),
      emitter(kernel, writer) {
  for (const std::uint32_t a : contraction.shared_rest) emitter.bind(a, "0");
}

WarpgroupEmitter::WarpgroupEmitter(std::span<const WarpgroupPart> parts, const Graph& graph, const Target& target,
                                   KernelWriter& writer)
    : tiles_(parts[0].form.tiles), graph_(graph), target_(target), writer_(writer) {
  std::vector<WarpgroupGemmForm> forms;
  for (const WarpgroupPart& part : parts) {
    parts_.push_back(std::make_unique<Part>(part, writer));
    forms.push_back(part.form);
  }
  stage_bytes_ = stage_bytes(forms);
  staged_bytes_ = staged_bytes(forms);
  box_bytes_ = box_bytes(forms);
  copied_bytes_ = copied_bytes(forms);
  shared_bytes_ = shared_bytes(forms);
}

KernelSource WarpgroupEmitter::emit() {
  for (const char* part : {"dynamic_tiles", "mbarrier", "cluster", "warpgroup", "tile_order", "load_matrices"})
    writer_.use(part);
  IndexExpr all = 0;
  for (const auto& part : parts_) {
    prepare(*part);
    all += part->tiles;
    ends_.push_back(all);
  }
  writer_.line("#ifdef __CUDA_ARCH_FEAT_SM90_ALL  // compute_90, for which nvcc -arch=sm_90a compiles too, lacks this");
  declare_offsets();
  declare_barriers();
  declare_registers();
  writer_.open("if (warp < 4)");
  writer_.line(fmt::format("warpgroup_reg_dealloc<{}>();", computes()       ? kTransformRegisters
                                                           : gathers_rows() ? kGatherRegisters
                                                                            : kCopierRegisters));
  if (computes()) {
    compute_tiles();
  } else if (gathers_rows()) {
    gather_tiles();
  } else {
    writer_.open("if (warp == 0)");
    copy_tiles();
    if (scales_in_stages()) {
      writer_.close("} else {");
      writer_.reopen();
      scale_tiles();
    }
    writer_.line("__syncwarp();");
    writer_.close();
  }
  writer_.close("} else {");
  writer_.reopen();
  writer_.line(fmt::format("warpgroup_reg_alloc<{}>();", computes()       ? kConsumerRegistersWithTransform
                                                         : gathers_rows() ? kConsumerRegistersWithGather
                                                                          : kRegisters));
  multiply_tiles();
  writer_.close();
  if (tiles_.cluster > 1)
    writer_.line("sync_cluster();  // until then the other block may copy here, and arrive at barriers");
  writer_.line("#else");
  writer_.line("__trap();");
  writer_.line("#endif");
  KernelSource source = writer_.finish(comment(), tiles_.kThreads, 1, tiles_.cluster);
  std::vector<NodeId> nodes;
  for (const auto& part : parts_) nodes.insert(nodes.end(), part->kernel.nodes.begin(), part->kernel.nodes.end());
  if (parts_.size() > 1) {
    std::ranges::sort(nodes);
    nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  }
  source.name = kernel_name(graph_, nodes) + (tiles_.split_k > 1 ? "_shares" : "");
  const int resident = target_.multiprocessors / tiles_.cluster;
  // The grid: as many blocks as there are tiles, at most those that are resident. Groups have tiles even without any
  // row; then there is nothing to do, and no tensor that the driver would describe to TMA: no block.
  const Bounds& bounds = parts_[0]->kernel.pool.bounds();
  IndexExpr tiles_in_use = 0;
  for (const auto& part : parts_) {
    const IndexExpr rows = part->count(part->contraction.rows);
    tiles_in_use += part->form.groups && range_of(rows, bounds).min < 1 ? part->tiles * min(rows, 1) : part->tiles;
  }
  source.grid[0] = simplify(min(tiles_in_use * tiles_.split_k, resident) * tiles_.cluster, bounds);
  source.dynamic_shared = shared_bytes_;
  source.has_named_registers = has_named_accumulators();
  const bool of_image = std::ranges::any_of(
      parts_[0]->form.loops, [](const WarpgroupLoop& loop) { return loop.image() || loop.has_image_boxes(); });
  source.schedule = {of_image ? KernelKind::kConvolution : KernelKind::kGemm, MatrixUnit::kWarpgroup};
  return source;
}

// "sum[m, n] = sum of x[m, k] * weight[n, k] over k < 1024", for each term. Indices are in the order of memory.
std::vector<std::string> WarpgroupEmitter::formulas(const Part& part) const {
  std::vector<std::string> lines;
  const std::string batch = part.contraction.batch.empty() ? "" : "b, ";
  const auto element = [&](const OperandTile& f) {
    const std::string name = comment_text(writer_.preferred_name(part.kernel.pool[f.operand->load].source), 40);
    const bool image = f.operand->image || f.in_image_boxes();
    const bool batched = image || !f.operand->batch.empty() || !f.copied_by_tma();
    const std::string across = f.left ? "m" : "n", first = !f.left && in_groups() ? "group, " : "";
    return fmt::format("{}[{}{}{}]", image ? "im2col(" + name + ")" : name, batched ? batch : "", first,
                       f.operand->k_major ? across + ", k" : "k, " + across);
  };
  for (std::size_t i = 0; i < part.loops.size(); ++i)
    for (const ContractionTerm& term : part.contraction.loops[i].terms)
      lines.push_back(fmt::format("sum[{}m, n] = sum of {} * {} over k < {}", batch,
                                  element(part.loops[i].left(term.left)), element(part.loops[i].right(term.right)),
                                  part.loops[i].k));
  return lines;
}

std::vector<std::string> WarpgroupEmitter::comment() const {
  std::vector<std::string> lines;
  for (const auto& part : parts_) {
    for (std::string& line : kernel_comment(graph_, part->kernel)) lines.push_back(std::move(line));
    for (std::string& line : formulas(*part)) lines.push_back(std::move(line));
  }
  std::string columns;
  for (const auto& part : parts_)
    columns += fmt::format("{}{}", columns.empty() ? "" : " or ", part->form.tiles.columns);
  lines.push_back(
      fmt::format("A block makes {}x{} at a time, by two warpgroups of {} rows; {} of k are a tile, {} "
                  "tiles are in shared memory or on the way.",
                  tiles_.rows(), columns, kSwizzleTileRows, parts_[0]->form.k(), tiles_.stages));
  return lines;
}

void WarpgroupEmitter::prepare(Part& part) {
  IndexExpr down = ceil_div(part.count(part.contraction.rows), tiles_.rows() * tiles_.cluster);
  const IndexExpr across = ceil_div(part.count(part.contraction.columns), part.form.tiles.columns);
  // Each group may end with a partial tile, and so may the rows after the last group.
  if (part.form.groups) down += part.form.matrices;
  part.down = part.text(down);
  part.across = part.text(across);
  part.tiles = simplify(down * across * part.count(part.contraction.batch), part.kernel.pool.bounds());
  for (std::size_t i = 0; i < part.form.loops.size(); ++i) part.loops.push_back(loop_of(part, i));
}

WarpgroupEmitter::Loop WarpgroupEmitter::loop_of(const Part& part, std::size_t number) {
  const WarpgroupLoop& operands = part.form.loops[number];
  const std::vector<std::uint32_t>& k = part.contraction.loops[number].k;
  Loop loop{.form = &operands,
            .operand_tiles = {},
            .left_count = operands.left.size(),
            .k_count = operands.padded_k > 0 ? IndexExpr(operands.padded_k) : part.count(k),
            .k = {},
            .bytes = 0};
  loop.k = part.text(loop.k_count);
  int beside = 0, copied = 0;
  for (const bool left : {true, false})
    for (const WarpgroupOperand& operand : left ? operands.left : operands.right) {
      OperandTile f{.operand = &operand,
                    .left = left,
                    .across = left ? tiles_.rows() : part.form.tiles.columns,
                    .offset = beside,
                    .scales = 0,
                    .map = {},
                    .rows = {}};
      beside += f.bytes();
      if (f.copied_by_tma()) {
        f.map = writer_.tensor_map(part.kernel.pool[operand.load].source,
                                   f.in_image_boxes() ? boxes_of_image(f, part) : boxes_of(f, part, k));
        loop.bytes += f.bytes();
      }
      for (std::size_t i = 0; f.transformed() && i < operand.transformed->copies.size(); ++i) {
        const GemmOperand& copy = operand.transformed->copies[i];
        f.copies.push_back({.operand = &copy, .offset = copied, .from = {}});
        copied += f.across * part.form.k() * copy.element_bits / 8;
      }
      loop.operand_tiles.push_back(std::move(f));
    }
  for (OperandTile& f : loop.operand_tiles) {
    f.scales = beside;
    if (operands.block != 0 && f.scaled()) beside += 4 * f.across;
  }
  return loop;
}

TensorMapBoxes WarpgroupEmitter::boxes_of(const OperandTile& f, const Part& part,
                                          const std::vector<std::uint32_t>& k_axes) const {
  const WarpgroupOperand& operand = *f.operand;
  const Bounds& bounds = part.kernel.pool.bounds();
  const IndexExpr across = part.count(part.axes(f.left)), k = part.count(k_axes);
  // TMA needs positive extents, also for an empty tensor that is never copied from.
  const auto extent = [&](const IndexExpr& e) { return range_of(e, bounds).min > 0 ? simplify(e, bounds) : max(e, 1); };
  const IndexExpr beside = operand.k_segments ? operand.k_segments->extent : operand.k_major ? k : across;
  const auto tile_k = static_cast<std::uint32_t>(part.form.k());
  TensorMapBoxes boxes{.element_bytes = part.form.element_bytes(),
                       .offset = operand.offset,
                       .extents = {extent(beside), extent(operand.k_major ? across : k)},
                       .strides = {operand.stride},
                       .box = {kSwizzleTileRows, tile_k}};
  // If K is contiguous, one box holds all that a block copies at a time.
  if (operand.k_major) boxes.box = {tile_k, static_cast<std::uint32_t>(kSwizzleTileRows * pieces_copied(f))};
  const auto add = [&](const IndexExpr& count, const IndexExpr& stride) {
    boxes.extents.push_back(extent(count));
    boxes.strides.push_back(stride);
    boxes.box.push_back(1);
  };
  if (operand.k_segments) add(operand.k_segments->count, operand.k_segments->stride);
  for (const WarpgroupOperand::Batch& batch : operand.batch) add(batch.extent, batch.stride);
  return boxes;
}

// Names the parts of shared memory: stages, boxes to store, copies that tiles are computed from, staged accumulators,
// barriers. Boxes are swizzled like tiles, so they come first.
void WarpgroupEmitter::declare_offsets() {
  const auto constant = [&](std::string_view preferred_name, const auto& value) {
    std::string name = writer_.unique(preferred_name);
    writer_.line(fmt::format("constexpr int {} = {};", name, value));
    return name;
  };
  writer_.line(fmt::format("constexpr int {} = {} * {};  // {} swizzled lines of a tile", kPieceBytes, kSwizzleTileRows,
                           WarpgroupTiles::kLineBytes, kSwizzleTileRows));
  stage_size_ = constant("kStageBytes", stage_bytes_);
  for (const auto& part : parts_)
    for (Loop& loop : part->loops) {
      for (OperandTile& f : loop.operand_tiles) {
        const std::string name = constant_name(writer_.preferred_name(part->kernel.pool[f.operand->load].source));
        if (f.offset > 0) f.at = constant(name + "At", f.offset);
        if (loop.form->block != 0 && f.scaled()) f.scales_at = constant(name + "ScalesAt", f.scales);
      }
      loop.bytes_name = loop.bytes == stage_bytes_ ? stage_size_ : constant("kTmaBytes", loop.bytes);
    }
  std::string end = fmt::format("{} * {}", tiles_.stages, stage_size_);
  const auto take = [&](std::string& at, std::string& size, const std::string& name, std::int64_t bytes, int count) {
    if (bytes == 0) return;
    at = constant(name + "At", end);
    size = constant(name + "Bytes", bytes);
    end = fmt::format("{} + {} * {}", at, count, size);
  };
  take(boxes_at_, box_size_, "kBoxes", box_bytes_, kConsumerWarps);
  take(copies_at_, copies_size_, "kCopies", copied_bytes_, WarpgroupTiles::kCopiesAhead);
  take(staged_at_, staged_size_, "kStaged", staged_bytes_, kConsumerWarps);
  barriers_at_ = constant("kBarriersAt", end);
}

void WarpgroupEmitter::declare_barriers() {
  tiles_at_ = writer_.unique("tiles");
  full_ = writer_.unique("full");
  empty_ = writer_.unique("empty");
  count_ = writer_.unique("tile_count");
  stage_ = writer_.unique("stage");
  phase_ = writer_.unique("phase");
  if (tiles_.cluster > 1) rank_ = writer_.unique("rank");
  writer_.line("const int warp = threadIdx.x / 32, warp_lane = threadIdx.x % 32;");
  if (tiles_.cluster > 1) writer_.line(fmt::format("const int {} = cluster_rank();", rank_));
  if (!in_groups())
    writer_.line(fmt::format("const int {} = {};", count_, parts_[0]->text(ends_.back() * tiles_.split_k)));
  writer_.line(fmt::format("const unsigned {0} = shared_address(dynamic_tiles), {1} = {0} + {2}, {3} = {1} + 8 * {4};",
                           tiles_at_, full_, barriers_at_, empty_, tiles_.stages));
  writer_.open("if (threadIdx.x == 0)");
  writer_.open(fmt::format("for (int s = 0; s < {}; ++s)", tiles_.stages));
  const int beside = computes() || gathers_rows() ? kCopierWarps : scales_in_stages() ? kScalingWarps : 0;
  writer_.line(fmt::format("init_mbarrier({} + 8 * s, {});", full_, 1 + beside));
  writer_.line(fmt::format("init_mbarrier({} + 8 * s, {});", empty_, kConsumerWarps * tiles_.cluster));
  writer_.close();
  writer_.line("fence_mbarriers();");
  writer_.close();
  if (gathers_rows()) make_tables();
  writer_.line(tiles_.cluster > 1 ? "sync_cluster();" : "__syncthreads();");
  if (in_groups()) declare_groups();
}

void WarpgroupEmitter::open_tiles() {
  writer_.line(fmt::format("int {} = 0, {} = 0;", stage_, phase_));
  const std::string tile = writer_.unique("tile"), place = writer_.unique("place");
  if (in_groups()) return open_tiles_of_groups(tile, place);
  const std::string of = tiles_.cluster > 1 ? fmt::format(" / {}", tiles_.cluster) : "";
  writer_.open(fmt::format("for (int {0} = blockIdx.x{1}; {0} < {2}; {0} += gridDim.x{1})", tile, of, count_));
  std::string number = tile;
  if (parts_.size() > 1) number = open_part(tile);
  if (tiles_.split_k > 1) number = open_split(tile);
  row0_ = writer_.unique("row0");
  column0_ = writer_.unique("column0");
  const Part& first = *parts_[0];
  if (!first.contraction.batch.empty()) {
    const std::string of_batch = fmt::format("({} * {})", first.down, first.across);
    batch_ = writer_.unique("batch");
    writer_.line(fmt::format("const {} {} = {} / {};", writer_.index_type(), batch_, number, of_batch));
    number += " % " + of_batch;
  }
  writer_.line(fmt::format("const TilePlace {} = tile_in_order<{}>({}, {}, {});", place, kTileGroup, number,
                           of_part([&](std::size_t p) { return parts_[p]->down; }),
                           of_part([&](std::size_t p) { return parts_[p]->across; })));
  writer_.line(fmt::format("const int {} = {} * {}, {} = {}.column * {};", row0_, row_of(place), tiles_.rows(),
                           column0_, place,
                           of_part([&](std::size_t p) { return std::to_string(parts_[p]->form.tiles.columns); })));
}

// The block's row of tiles. The blocks of a cluster are below one another.
std::string WarpgroupEmitter::row_of(const std::string& place) const {
  return tiles_.cluster > 1 ? fmt::format("({}.row * {} + {})", place, tiles_.cluster, rank_) : place + ".row";
}

// Declares the part of a tile, and returns the number of the tile in its part.
std::string WarpgroupEmitter::open_part(const std::string& tile) {
  part_ = writer_.unique("part");
  std::string behind;
  for (std::size_t p = 0; p + 1 < parts_.size(); ++p)
    behind += fmt::format("{}({} >= {})", p == 0 ? "" : " + ", tile, parts_[0]->text(ends_[p]));
  writer_.line(fmt::format("const int {} = {};", part_, behind));
  return fmt::format("{} - {}", tile,
                     of_part([&](std::size_t p) { return p == 0 ? std::string("0") : parts_[0]->text(ends_[p - 1]); }));
}

// Declares the split of a tile (split-K), and returns the number of the tile in its split.
std::string WarpgroupEmitter::open_split(const std::string& tile) {
  const Part& part = *parts_[0];
  const std::string all = part.text(part.tiles), number = writer_.unique("tile_of_share");
  const IndexExpr steps = ceil_div(part.loops[0].k_count, part.form.k());
  split_ = writer_.unique("share");
  first_step_ = writer_.unique("first_step"), end_step_ = writer_.unique("end_step");
  writer_.line(fmt::format("const int {0} = {1} / {2}, {3} = {1} % {2};", split_, tile, all, number));
  const SplitSteps bounds = split_steps(part.emitter, split_, steps,
                                        steps_per_scale_block(part.form.loops[0].block, part.form.k()), tiles_.split_k);
  writer_.line(fmt::format("const int {} = {}, {} = {};", first_step_, bounds.first, end_step_, bounds.end));
  return number;
}

std::string WarpgroupEmitter::k_of(std::size_t loop) const {
  return if_of_group(of_part([&](std::size_t p) { return parts_[p]->loops[loop].k; }));
}

void WarpgroupEmitter::next_stage() {
  writer_.line(fmt::format("if (++{0} == {1}) {0} = 0, {2} ^= 1;", stage_, tiles_.stages, phase_));
}

KernelSource gemm_warpgroup(std::span<const WarpgroupPart> parts, const Graph& graph, const Target& target) {
  const bool wide = std::ranges::any_of(parts, [&](const WarpgroupPart& part) {
    return needs_wide_index(part.kernel, graph, point_count(part.kernel.pool, part.kernel.outputs.at(0).axes));
  });
  KernelWriter writer(graph, wide);
  return WarpgroupEmitter(parts, graph, target, writer).emit();
}

}  // namespace fusec
