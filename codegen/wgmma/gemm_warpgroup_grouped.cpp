// Tiles of a grouped GEMM, where each group of rows has its own matrix (schedule/gemm/grouped_gemm.h). A tile has rows
// of one group. The copying warps and the multiplying warpgroups each walk through the groups on their own, in the
// order of the tiles, so they exchange nothing.
//
//   rows of the next group       are copied and multiplied with a group's last tile, but not stored
//   rows after the last group    have no matrix: nothing is copied for their tiles, and their accumulators are 0
#include <fmt/format.h>

#include "codegen/gemm/gemm_block.h"
#include "codegen/gemm/grouped_gemm_offsets.h"
#include "codegen/wgmma/gemm_warpgroup_emitter.h"

namespace fusec {

void WarpgroupEmitter::declare_groups() {
  Part& part = *parts_[0];
  const std::string memory = writer_.unique("group_ends");
  const std::string at = writer_.unique("kGroupEndsAt");
  writer_.line(fmt::format("constexpr int {} = {};", at, shared_bytes_ - group_bytes(part.form)));
  writer_.line(fmt::format("int* const {} = (int*)(dynamic_tiles + {});", memory, at));
  ends_of_groups_ = emit_group_ends(part.emitter, part.contraction, *part.form.groups, tiles_.kThreads, memory);
}

void WarpgroupEmitter::open_tiles_of_groups(const std::string& tile, const std::string& place) {
  writer_.use("group_tiles");
  Part& part = *parts_[0];
  const std::string at = writer_.unique("group"), of = tiles_.cluster > 1 ? fmt::format(" / {}", tiles_.cluster) : "";
  writer_.line(fmt::format("GroupTiles {};", at));
  writer_.open(
      fmt::format("for (int {0} = blockIdx.x{1}; find_group<{2}>({3}, {4}, {5}, {6}, {7}, {0}); {0} += gridDim.x{1})",
                  tile, of, tiles_.rows() * tiles_.cluster, at, ends_of_groups_, part.form.matrices,
                  part.text(part.count(part.contraction.rows)), part.across));
  row0_ = writer_.unique("row0"), column0_ = writer_.unique("column0");
  matrix_ = writer_.unique("matrix"), row_end_ = writer_.unique("row_end");
  writer_.line(fmt::format("const TilePlace {0} = tile_in_order<{1}>({2} - {3}.before, {3}.down, {4});", place,
                           kTileGroup, tile, at, part.across));
  writer_.line(fmt::format("const int {} = {}.first + {} * {}, {} = {}.column * {};", row0_, at, row_of(place),
                           tiles_.rows(), column0_, place, part.form.tiles.columns));
  writer_.line(fmt::format("const int {0} = {1}.group, {2} = {1}.end;", matrix_, at, row_end_));
  part.emitter.bind(part.contraction.expert_index->axis, matrix_);
  part.emitter.define(part.form.groups->number, fmt::format("(long long){}", matrix_));
}

// `value` if the rows have a matrix, else 0. For an empty `value`, an if statement with that condition.
std::string WarpgroupEmitter::if_of_group(const std::string& value) const {
  if (!in_groups()) return value;
  const std::string has = fmt::format("{} < {}", matrix_, parts_[0]->form.matrices);
  return value.empty() ? fmt::format("if ({})", has) : fmt::format("({} ? {} : 0)", has, value);
}

void WarpgroupEmitter::know_group(Part& part, GemmEpilogue& epilogue) {
  epilogue.known[part.form.groups->number] = fmt::format("(long long){}", matrix_);
  epilogue.row_end = row_end_;
  for (std::size_t i = 0; i < epilogue.boxes.size(); ++i) {
    if (epilogue.boxes[i].map.empty()) continue;
    const WarpgroupStore& store = *part.form.stores[i];
    epilogue.boxes[i].to = writer_.output_with_lane_stores(part.kernel.outputs[i].value);
    if (!store.offset.is(0)) epilogue.boxes[i].to += " + " + part.text(store.offset);
    epilogue.boxes[i].distance = part.text(store.stride);
  }
}

}  // namespace fusec
