// Gathers rows that TMA cannot copy: rows of the left operands that are looked up (tokens of experts), and rows of an
// image. All four warps of the copying warpgroup copy them with cp.async, 16 bytes per thread of each of up to eight
// rows, to the addresses that TMA would use. wgmma reads shared memory through the async proxy, so each thread waits
// for its own copies of a stage and fences them before its warp signals that they are ready. Copies of later stages are
// in flight by then. One thread has TMA copy the other operands.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/kernel/loads.h"
#include "codegen/access/direct.h"
#include "codegen/gemm/k_offset_table.h"
#include "codegen/wgmma/gemm_warpgroup_emitter.h"

namespace fusec {

bool WarpgroupEmitter::gathers_rows() const {
  return std::ranges::any_of(parts_[0]->form.loops, [](const WarpgroupLoop& loop) { return loop.has_gathered_rows(); });
}

// A stage is waited for when the last but one has been read, so only the stages between may be in flight.
int WarpgroupEmitter::stages_in_flight() const {
  constexpr int kMost = 2;
  return std::min(kMost, tiles_.stages - 2);
}

void WarpgroupEmitter::gather_tiles() {
  for (const char* part : {"picked_tiles", "delayed_signals"}) writer_.use(part);
  Part& part = *parts_[0];
  const std::string copies = writer_.unique("copies"), place = writer_.unique("place_in_tile");
  writer_.line(fmt::format("const unsigned {} = gathered_offset();", place));
  writer_.line(fmt::format("DelayedSignals<{}, {}> {};", stages_in_flight(), tiles_.stages, copies));
  open_tiles();
  const ExprEmitter::Mark mark = part.emitter.mark();
  if (!part.contraction.batch.empty()) bind_flat(part.emitter, part.contraction.batch, batch_, "bcdefgh");
  const std::string k0 = writer_.unique("k"), into = writer_.unique("into"), ready = writer_.unique("ready");
  for (std::size_t i = 0; i < part.loops.size(); ++i) {
    Loop& loop = part.loops[i];
    if (part.loops.size() > 1) writer_.open("");
    for (OperandTile& f : loop.operand_tiles)
      if (f.gathered()) find_rows(part, f);
    open_steps(k0, k_of(i), part.form.k());
    writer_.line(fmt::format("wait_for_phase({} + 8 * {}, {} ^ 1);", empty_, stage_, phase_));
    writer_.line(fmt::format("const unsigned {} = {} + {} * {}, {} = {} + 8 * {};", into, tiles_at_, stage_,
                             stage_size_, ready, full_, stage_));
    writer_.open("if (threadIdx.x == 0)");
    writer_.line(fmt::format("arrive_expecting({}, {});", ready, loop.bytes_name));
    for (const OperandTile& f : loop.operand_tiles)
      if (f.copied_by_tma()) copy(part, f, k0, into, ready);
    writer_.close();
    for (const OperandTile& f : loop.operand_tiles)
      if (f.gathered()) copy_rows(part, i, f, k0, into + " + " + place);
    writer_.line(fmt::format("{}.tell({}, warp_lane);", copies, full_));
    next_stage();
    writer_.close();
    if (part.loops.size() > 1) writer_.close();
  }
  part.emitter.rewind(mark);
  writer_.close();
  writer_.line(fmt::format("{}.tell_all({}, warp_lane);", copies, full_));
}

// Builds the tables, by all threads, before the block's barrier.
void WarpgroupEmitter::make_tables() {
  Part& part = *parts_[0];
  for (Loop& loop : part.loops)
    for (OperandTile& f : loop.operand_tiles) {
      if (!f.operand->image) continue;
      const WarpgroupOperand::Image& image = *f.operand->image;
      const std::string name = writer_.preferred_name(part.kernel.pool[f.operand->load].source);
      f.table = writer_.unique(name + "_steps");
      f.outside = writer_.unique(name + "_outside");
      writer_.use("k_offset_entry");
      const std::string at = writer_.unique("kTableAt");
      writer_.line(fmt::format("constexpr int {} = {};", at, shared_bytes_ - table_bytes(part.form)));
      writer_.line(fmt::format("KOffsetEntry* const {} = (KOffsetEntry*)(dynamic_tiles + {});", f.table, at));
      emit_k_offset_table(part.emitter,
                          {image.convolution_operand, image.axes, image.k, table_entries(part.form),
                           16 / part.form.element_bytes(), kPositionTableStride},
                          f.table, tiles_.kThreads);
      if (!image.convolution_operand.has_position_table) continue;
      f.places = writer_.unique(name + "_places");
      writer_.line(fmt::format("int* const {} = (int*)({} + {});", f.places, f.table, table_entries(part.form)));
      writer_.open(fmt::format("if (threadIdx.x < {})", f.across));
      writer_.line(fmt::format("{}[{} + threadIdx.x] = -1;  // beyond the depth", f.places,
                               image.convolution_operand.places * kPositionTableStride));
      writer_.close();
    }
}

// Binds the row (or column) of the tile with this number. Numbers beyond the end stand for the last row.
void WarpgroupEmitter::bind_row(Part& part, const OperandTile& f, const std::string& number) {
  const std::string row = writer_.unique(f.left ? "row" : "column");
  const std::string end = f.left && in_groups() ? row_end_ : part.text(part.count(part.axes(f.left)));
  writer_.line(fmt::format("const {0} {1} = min(({0})({2} + {3}), ({0})({4} - 1));", writer_.index_type(), row,
                           f.left ? row0_ : column0_, number, end));
  bind_flat(part.emitter, part.axes(f.left), row, f.left ? "mnopq" : "ijlst");
}

// Computes the positions of all taps, one thread per row of the tile.
void WarpgroupEmitter::make_position_table(Part& part, const OperandTile& f) {
  writer_.use("warpgroup_barrier");
  writer_.line("sync_warpgroup(1);  // nobody needs those of the last tile any more");
  writer_.open(f.across < kCopierThreads ? fmt::format("if (threadIdx.x < {})", f.across) : "");
  const ExprEmitter::Mark mark = part.emitter.mark();
  bind_row(part, f, "threadIdx.x");
  find_positions(part.emitter, f.operand->image->convolution_operand,
                 {.places = fmt::format("({} + threadIdx.x)", f.places), .there = {}, .stride = kPositionTableStride});
  part.emitter.rewind(mark);
  writer_.close();
  writer_.line("sync_warpgroup(1);");
}

// Finds the positions of the thread's rows of a tile.
void WarpgroupEmitter::find_rows(Part& part, OperandTile& f) {
  if (!f.places.empty()) return make_position_table(part, f);
  const ExprNode& load = part.kernel.pool[f.operand->load];
  const IndexExpr& position = *f.operand->gathered;
  const std::string each = writer_.unique("each");
  f.rows = writer_.unique(writer_.preferred_name(load.source) + "_from");
  const bool image = f.operand->image.has_value();
  const std::string place = image ? "unsigned" : fmt::format("const {}*", storage_type(load.dtype));
  const int rows = f.across / kRowsAtATime;
  writer_.line(fmt::format("{} {}[{}];", place, f.rows, rows));
  if (image) writer_.line(fmt::format("unsigned {}[{}];", f.outside, rows));
  writer_.line("#pragma unroll");
  writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", each, rows));
  const ExprEmitter::Mark mark = part.emitter.mark();
  bind_row(part, f, fmt::format("threadIdx.x / 8 + {} * {}", each, kRowsAtATime));
  part.emitter.emit(values_in(position));
  if (image) {
    const std::string outside = fmt::format("{}[{}]", f.outside, each);
    writer_.use("kept");
    writer_.line(fmt::format("{}[{}] = kept({}u * (unsigned){});", f.rows, each, part.form.element_bytes(),
                             part.emitter.index_text().tight(position)));
    writer_.line(outside + " = 1u << 31;");
    find_taps_outside(part.emitter, f.operand->image->convolution_operand, outside);
  } else {
    const std::string share =
        tiles_.split_k > 1 ? fmt::format(" + ({}){} * {}", writer_.index_type(), first_step_, part.form.k()) : "";
    writer_.line(fmt::format("{}[{}] = {} + ({} + (int)threadIdx.x % 8 * {}{});", f.rows, each,
                             writer_.input(load.source), part.emitter.index(position), 16 / part.form.element_bytes(),
                             share));
  }
  part.emitter.rewind(mark);
  writer_.close();
}

void WarpgroupEmitter::copy_rows(const Part& part, std::size_t loop, const OperandTile& f, const std::string& k0,
                                 const std::string& to) {
  const std::string place = to + in_stage(f);
  if (f.operand->image) {
    const std::string image = writer_.input(part.kernel.pool[f.operand->load].source);
    const std::string step =
        fmt::format("{}[{} / {} + (int)threadIdx.x % 8]", f.table, k0, 16 / part.form.element_bytes());
    if (!f.places.empty()) {
      writer_.use("placed_image_tiles");
      writer_.line(fmt::format("copy_placed_image<{}>({}, {}, {} + threadIdx.x / 8, {});", f.across / kRowsAtATime,
                               place, image, f.places, step));
      return;
    }
    writer_.use("image_tiles");
    writer_.line(fmt::format("copy_image({}, {}, {}, {}, {});", place, image, f.rows, f.outside, step));
    return;
  }
  const bool whole =
      proves_multiple_of(part.count(part.contraction.loops[loop].k), part.form.k(), part.kernel.pool.bounds());
  const std::string at = fmt::format("{} + (int)threadIdx.x % 8 * {}", k0, 16 / part.form.element_bytes());
  writer_.line(fmt::format("copy_gathered_rows<{}>({}, {}, {});", whole, place, f.rows,
                           whole ? "true" : fmt::format("{} < {}", at, part.loops[loop].k)));
}

}  // namespace fusec
