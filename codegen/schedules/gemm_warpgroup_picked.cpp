// Rows of the left factors that are looked up (tokens of experts), or are an image's, lie in no boxes: all four warps
// of the copying warpgroup bring them by cp.async, 16 bytes a thread of each of eight rows, to where TMA would have put
// them. wgmma reads memory in another way than threads write it, so that each thread waits for its own copies of a
// stage and fences them before its warp says that they are there, when those of later stages are under way. One thread
// has TMA copy the other factors.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/loads.h"
#include "codegen/schedules/depth_table.h"
#include "codegen/schedules/direct.h"
#include "codegen/schedules/gemm_warpgroup_emitter.h"

namespace fusec {

bool WarpgroupEmitter::picks() const {
  return std::ranges::any_of(parts_[0]->form.loops, [](const WarpgroupLoop& loop) { return loop.picks_rows(); });
}

// A stage is waited for when the one before the last has been read: no more than those between may be on their way.
int WarpgroupEmitter::stages_behind() const {
  constexpr int kMost = 2;
  return std::min(kMost, tiles_.stages - 2);
}

void WarpgroupEmitter::pick_tiles() {
  for (const char* part : {"picked_tiles", "copies_behind"}) writer_.use(part);
  Part& part = *parts_[0];
  const std::string copies = writer_.unique("copies"), place = writer_.unique("place_in_tile");
  writer_.line(fmt::format("const unsigned {} = picked_place();", place));
  writer_.line(fmt::format("CopiesBehind<{}, {}> {};", stages_behind(), tiles_.stages, copies));
  open_tiles();
  const ExprEmitter::Mark mark = part.emitter.mark();
  if (!part.product.batch.empty()) bind_flat(part.emitter, part.product.batch, batch_, "bcdefgh");
  const std::string k = writer_.unique("k"), into = writer_.unique("into"), ready = writer_.unique("ready");
  for (std::size_t i = 0; i < part.loops.size(); ++i) {
    Loop& loop = part.loops[i];
    if (part.loops.size() > 1) writer_.open("");
    for (Factor& f : loop.factors)
      if (f.picked()) find_rows(part, f);
    open_steps(k, depth_of(i), part.form.depth());
    writer_.line(fmt::format("wait_for_phase({} + 8 * {}, {} ^ 1);", empty_, stage_, phase_));
    writer_.line(fmt::format("const unsigned {} = {} + {} * {}, {} = {} + 8 * {};", into, tiles_at_, stage_,
                             stage_bytes_, ready, full_, stage_));
    writer_.open("if (threadIdx.x == 0)");
    writer_.line(fmt::format("arrive_expecting({}, {});", ready, loop.bytes));
    for (const Factor& f : loop.factors)
      if (f.boxed()) copy(part, f, k, into, ready);
    writer_.close();
    for (const Factor& f : loop.factors)
      if (f.picked()) copy_rows(part, i, f, k, into + " + " + place);
    writer_.line(fmt::format("{}.tell({}, warp_lane);", copies, full_));
    next_stage();
    writer_.close();
    if (part.loops.size() > 1) writer_.close();
  }
  part.emitter.rewind(mark);
  writer_.close();
  writer_.line(fmt::format("{}.tell_all({}, warp_lane);", copies, full_));
}

// By all threads, ahead of the block's barrier.
void WarpgroupEmitter::make_tables() {
  Part& part = *parts_[0];
  for (Loop& loop : part.loops)
    for (Factor& f : loop.factors) {
      if (!f.operand->image) continue;
      const WarpgroupOperand::Image& image = *f.operand->image;
      const std::string name = writer_.wish(part.kernel.pool[f.operand->load].source);
      f.table = writer_.unique(name + "_steps");
      f.outside = writer_.unique(name + "_outside");
      writer_.use("depth_step");
      writer_.line(fmt::format("DepthStep* const {} = (DepthStep*)(dynamic_tiles + {});", f.table,
                               shared_bytes_ - table_bytes(part.form)));
      make_depth_table(
          part.emitter,
          {image.factor, image.axes, image.depth, table_entries(part.form), 16 / part.form.element_bytes()}, f.table,
          tiles_.kThreads);
    }
}

// Where the thread's eight rows of a tile lie; the last row stands for those that are not the tile's.
void WarpgroupEmitter::find_rows(Part& part, Factor& f) {
  const ExprNode& load = part.kernel.pool[f.operand->load];
  const IndexExpr& position = *f.operand->picked;
  const std::string each = writer_.unique("each"), row = writer_.unique("row");
  f.rows = writer_.unique(writer_.wish(load.source) + "_from");
  const bool image = f.operand->image.has_value();
  const std::string place = image ? "unsigned" : fmt::format("const {}*", storage_type(load.dtype));
  writer_.line(fmt::format("{} {}[{}];", place, f.rows, kRowsOfThread));
  if (image) writer_.line(fmt::format("unsigned {}[{}];", f.outside, kRowsOfThread));
  writer_.line("#pragma unroll");
  writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", each, kRowsOfThread));
  const ExprEmitter::Mark mark = part.emitter.mark();
  const std::string end = in_groups() ? row_end_ : part.text(part.count(part.product.rows));
  writer_.line(fmt::format("const {0} {1} = min(({0})({2} + threadIdx.x / 8 + {3} * {4}), ({0})({5} - 1));",
                           writer_.index_type(), row, row0_, each, WarpgroupTiles::kRows / kRowsOfThread, end));
  bind_flat(part.emitter, part.product.rows, row, "mnopq");
  part.emitter.emit(values_in(position));
  if (image) {
    const std::string outside = fmt::format("{}[{}]", f.outside, each);
    writer_.use("kept");
    writer_.line(fmt::format("{}[{}] = kept({}u * (unsigned){});", f.rows, each, part.form.element_bytes(),
                             part.emitter.index_text().tight(position)));
    writer_.line(outside + " = 1u << 31;");
    find_taps_outside(part.emitter, f.operand->image->factor, outside);
  } else {
    const std::string share =
        tiles_.shares > 1 ? fmt::format(" + ({}){} * {}", writer_.index_type(), first_step_, part.form.depth()) : "";
    writer_.line(fmt::format("{}[{}] = {} + ({} + (int)threadIdx.x % 8 * {}{});", f.rows, each,
                             writer_.input(load.source), part.emitter.index(position), 16 / part.form.element_bytes(),
                             share));
  }
  part.emitter.rewind(mark);
  writer_.close();
}

void WarpgroupEmitter::copy_rows(const Part& part, std::size_t loop, const Factor& f, const std::string& k,
                                 const std::string& to) {
  const std::string place = f.offset > 0 ? fmt::format("{} + {}", to, f.offset) : to;
  if (f.operand->image) {
    const int each = 16 / part.form.element_bytes();
    writer_.use("image_tiles");
    writer_.line(fmt::format("copy_image({}, {}, {}, {}, {}[{} / {} + (int)threadIdx.x % 8]);", place,
                             writer_.input(part.kernel.pool[f.operand->load].source), f.rows, f.outside, f.table, k,
                             each));
    return;
  }
  const bool whole =
      proves_multiple_of(part.count(part.product.loops[loop].depth), part.form.depth(), part.kernel.pool.bounds());
  const std::string at = fmt::format("{} + (int)threadIdx.x % 8 * {}", k, 16 / part.form.element_bytes());
  writer_.line(fmt::format("copy_picked<{}>({}, {}, {});", whole, place, f.rows,
                           whole ? "true" : fmt::format("{} < {}", at, part.loops[loop].depth)));
}

}  // namespace fusec
