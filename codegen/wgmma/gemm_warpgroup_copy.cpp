// Fills a block's stages: TMA copies tiles of the operands, and warps that copy nothing load the scales of blocks of K.
#include <fmt/format.h>

#include "codegen/wgmma/gemm_warpgroup_emitter.h"

namespace fusec {

// Opens the loop over K, or over the tile's split of it.
void WarpgroupEmitter::open_steps(const std::string& k0, const std::string& all, int k) {
  const bool share = tiles_.split_k > 1;
  writer_.open(fmt::format("for (int {0} = {1}; {0} < {2}; {0} += {3})", k0,
                           share ? fmt::format("{} * {}", first_step_, k) : "0",
                           share ? fmt::format("{} * {}", end_step_, k) : all, k));
}

// Warp 0: all lanes wait and one lane copies. For boxes of an image each lane copies a box.
void WarpgroupEmitter::copy_tiles() {
  open_tiles();
  Part& first = *parts_[0];
  const ExprEmitter::Mark mark = first.emitter.mark();
  if (!first.contraction.batch.empty()) bind_flat(first.emitter, first.contraction.batch, batch_, "bcdefgh");
  const std::string k0 = writer_.unique("k"), into = writer_.unique("into"), ready = writer_.unique("ready");
  for (std::size_t i = 0; i < first.loops.size(); ++i) {
    if (first.loops.size() > 1) writer_.open("");
    for (OperandTile& f : first.loops[i].operand_tiles)
      if (f.in_image_boxes()) place_image_boxes(first, f);  // for a single GEMM
    open_steps(k0, k_of(i), first.form.k());
    writer_.line(fmt::format("wait_for_phase({} + 8 * {}, {} ^ 1);", empty_, stage_, phase_));
    writer_.open("if (warp_lane == 0)");
    writer_.line(fmt::format("const unsigned {} = {} + {} * {}, {} = {} + 8 * {};", into, tiles_at_, stage_,
                             stage_size_, ready, full_, stage_));
    writer_.line(fmt::format("arrive_expecting({}, {});", ready,
                             of_part([&](std::size_t p) { return parts_[p]->loops[i].bytes_name; })));
    for_part([&](Part& part) {
      for (const OperandTile& f : part.loops[i].operand_tiles)
        if (!f.in_image_boxes()) copy(part, f, k0, into, ready);
    });
    writer_.close();
    for (const OperandTile& f : first.loops[i].operand_tiles)
      if (f.in_image_boxes()) copy_image_boxes(first, f, k0);
    next_stage();
    writer_.close();
    if (first.loops.size() > 1) writer_.close();
  }
  first.emitter.rewind(mark);
  writer_.close();
}

void WarpgroupEmitter::copy(Part& part, const OperandTile& f, const std::string& k0, const std::string& into,
                            const std::string& ready) {
  const bool both = shared_by_cluster(f);
  const char* const load = both ? "load_box_multicast" : "load_box";
  writer_.use(load);
  const int pieces = pieces_copied(f), boxes = f.operand->k_major ? 1 : pieces;
  for (int i = 0; i < boxes; ++i) {
    std::string to = into + in_stage(f), across = f.left ? row0_ : column0_;
    if (i > 0) to += fmt::format(" + {} * {}", i, kPieceBytes);
    if (i > 0) across += fmt::format(" + {}", i * kSwizzleTileRows);
    if (both) {
      to += fmt::format(" + {} * {} * {}", rank_, pieces, kPieceBytes);
      across += fmt::format(" + {} * {}", rank_, pieces * kSwizzleTileRows);
    }
    std::string coordinates = f.operand->k_major ? k0 + ", " + across : across + ", " + k0;
    if (f.operand->k_segments) {
      const std::string extent = tiled_segment(part, f.operand->k_segments->extent);
      coordinates = fmt::format("{0} % {1}, {2}, {0} / {1}", k0, extent, across);
    }
    for (const WarpgroupOperand::Batch& batch : f.operand->batch)
      coordinates += ", " + part.emitter.index(simplify(batch.position, part.kernel.pool.bounds()));
    writer_.line(fmt::format("{}({}, {}, {}, {});", load, to, f.map, ready, coordinates));
  }
}

// Warps 1 to 3: the scales of a stage's rows and columns, which become ready together with its tiles.
void WarpgroupEmitter::scale_tiles() {
  open_tiles();
  Part& part = *parts_[0];
  const ExprEmitter::Mark mark = part.emitter.mark();
  if (!part.contraction.batch.empty()) bind_flat(part.emitter, part.contraction.batch, batch_, "bcdefgh");
  const std::string k0 = writer_.unique("k");
  for (std::size_t i = 0; i < part.loops.size(); ++i) {
    const Loop& loop = part.loops[i];
    open_steps(k0, k_of(i), part.form.k());
    writer_.line(fmt::format("wait_for_phase({} + 8 * {}, {} ^ 1);", empty_, stage_, phase_));
    if (loop.form->block != 0)
      for (const OperandTile& f : loop.operand_tiles)
        if (f.scaled()) scale(part, part.contraction.loops[i], f, k0, kCopierWarps - kScalingWarps);
    writer_.line("__syncwarp();");
    writer_.line(fmt::format("if (warp_lane == 0) arrive({} + 8 * {});", full_, stage_));
    next_stage();
    writer_.close();
  }
  part.emitter.rewind(mark);
  writer_.close();
}

// Loads scales with the copying warps from `first_warp` on.
void WarpgroupEmitter::scale(Part& part, const ContractionLoop& contraction, const OperandTile& f,
                             const std::string& k0, int first_warp) {
  const std::string i = writer_.unique("i"), at = writer_.unique(f.left ? "row" : "column");
  writer_.line("#pragma unroll 1");
  writer_.open(fmt::format("for (int {0} = (int)threadIdx.x - {1}; {0} < {2}; {0} += {3})", i, 32 * first_warp,
                           f.across, 32 * (kCopierWarps - first_warp)));
  const ExprEmitter::Mark mark = part.emitter.mark();
  const std::vector<std::uint32_t>& axes = part.axes(f.left);
  writer_.line(fmt::format("const {} {} = min({} + {}, {});", writer_.index_type(), at, f.left ? row0_ : column0_, i,
                           part.text(part.count(axes) - 1)));
  bind_flat(part.emitter, axes, at, f.left ? "mnopq" : "ijlst");
  bind_flat(part.emitter, contraction.k, k0, "kluvw");
  std::string value;
  for (const std::string& scale : part.emitter.emit(f.operand->scales))
    value += (value.empty() ? "(" : " * (") + scale + ")";
  writer_.line(
      fmt::format("((float*)(dynamic_tiles + {} * {} + {}))[{}] = {};", stage_, stage_size_, f.scales_at, i, value));
  part.emitter.rewind(mark);
  writer_.close();
}

}  // namespace fusec
