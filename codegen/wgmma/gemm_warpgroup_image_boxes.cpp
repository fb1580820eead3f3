// Copies images with TMA boxes (schedule/gemm/tma_image_boxes.h). Each lane of the copying warp copies one box: pixels
// that are neighbours in an output row of the tile, shifted by the tap.
//
//   tile          channels first: boxes side by side, a line per channel; 64 pixels use the 128-byte swizzle, fewer
//                 pixels the swizzle of their width
//                 channels last: boxes below one another, a K-major line per pixel
//   coordinates   the positions of the lane's pixels, once per tile, plus the shift of the step's tap
#include <fmt/format.h>

#include "codegen/access/direct.h"
#include "codegen/wgmma/gemm_warpgroup_emitter.h"

namespace fusec {
namespace {

IndexExpr without(const IndexExpr& e, const std::vector<std::uint32_t>& axes) {
  return substitute(e, [&](Variable v) -> std::optional<IndexExpr> {
    if (v.kind != Variable::Kind::kAxis || std::ranges::find(axes, v.id) == axes.end()) return std::nullopt;
    return IndexExpr(0);
  });
}

}  // namespace

TensorMapBoxes WarpgroupEmitter::boxes_of_image(const OperandTile& f, const Part& part) const {
  const WarpgroupOperand::ImageBoxes& image = *f.operand->boxes;
  TensorMapBoxes boxes{.element_bytes = part.form.element_bytes()};
  for (std::size_t d = 0; d < image.dimensions.size(); ++d) {
    boxes.extents.push_back(image.dimensions[d].extent);
    if (d > 0) boxes.strides.push_back(image.dimensions[d].stride);
    boxes.box.push_back(static_cast<std::uint32_t>(d == image.neighbours ? image.pixels
                                                   : d == image.channels ? part.form.k()
                                                                         : 1));
  }
  return boxes;
}

void WarpgroupEmitter::place_image_boxes(Part& part, OperandTile& f) {
  const WarpgroupOperand::ImageBoxes& boxes = *f.operand->boxes;
  const std::string pixel = writer_.unique("pixel");
  const int pieces = f.pieces() / (shared_by_cluster(f) ? tiles_.cluster : 1);
  std::string first = fmt::format("{} + warp_lane * {}", f.left ? row0_ : column0_, boxes.pixels);
  if (shared_by_cluster(f)) first += fmt::format(" + {} * {}", rank_, pieces * boxes.pixels);
  writer_.line(fmt::format("const int {} = {};", pixel, first));
  const ExprEmitter::Mark mark = part.emitter.mark();
  bind_flat(part.emitter, part.axes(f.left), pixel, f.left ? "mnopq" : "ijlst");
  f.begins.clear();
  for (const WarpgroupOperand::ImageBoxes::Dimension& dimension : boxes.dimensions) {
    f.begins.push_back(writer_.unique(writer_.preferred_name(part.kernel.pool[f.operand->load].source) + "_at"));
    writer_.line(
        fmt::format("const int {} = {};", f.begins.back(), part.text(without(dimension.position, boxes.taps))));
  }
  part.emitter.rewind(mark);
}

void WarpgroupEmitter::copy_image_boxes(Part& part, const OperandTile& f, const std::string& k0) {
  const WarpgroupOperand::ImageBoxes& boxes = *f.operand->boxes;
  const bool both = shared_by_cluster(f);
  const char* const load = both ? "load_box_multicast" : "load_box";
  writer_.use(load);
  const int pieces = f.pieces() / (both ? tiles_.cluster : 1);
  writer_.open(fmt::format("if (warp_lane < {})", pieces));
  const std::string channels = tiled_segment(part, boxes.k);
  const ExprEmitter::Mark mark = part.emitter.mark();
  if (!boxes.taps.empty()) {
    const std::string tap = writer_.unique("tap");
    writer_.line(fmt::format("const int {} = {} / {};", tap, k0, channels));
    bind_flat(part.emitter, boxes.taps, tap, "uvwst");
  }
  std::string coordinates;
  for (std::size_t d = 0; d < boxes.dimensions.size(); ++d) {
    const IndexExpr& position = boxes.dimensions[d].position;
    const IndexExpr tap = simplify(position - without(position, boxes.taps), part.kernel.pool.bounds());
    coordinates += ", " + f.begins[d];
    if (!tap.is(0)) coordinates += " + " + part.emitter.index(tap);
    if (d == boxes.channels) coordinates += boxes.taps.empty() ? " + " + k0 : fmt::format(" + {} % {}", k0, channels);
  }
  const std::string lane = both ? fmt::format("({} * {} + warp_lane)", rank_, pieces) : std::string("warp_lane");
  writer_.line(fmt::format("{}({} + {} * {}{} + {} * {}, {}, {} + 8 * {}{});", load, tiles_at_, stage_, stage_size_,
                           in_stage(f), lane, f.piece_bytes(), f.map, full_, stage_, coordinates));
  part.emitter.rewind(mark);
  writer_.close();
}

// The extent of a tap or of a segment of K, rounded up to whole tiles.
std::string WarpgroupEmitter::tiled_segment(const Part& part, const IndexExpr& extent) {
  return part.text(ceil_div(extent, part.form.k()) * part.form.k());
}

}  // namespace fusec
