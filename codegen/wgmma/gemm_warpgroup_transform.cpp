// Computes tiles of transformed operands (dequantization, prologues) with all four warps of the copying warpgroup. Each
// thread copies the pieces that it needs some stages ahead, computes their elements when the stage is empty, and stores
// them where TMA would. wgmma reads shared memory through the async proxy, so the thread fences its stores before its
// warp signals that the stage is ready. One thread has TMA copy the other operands.
//
//   K-major      a line is a row (or column) of the tile with 128 bytes of K
//   otherwise    a line is one K step of 64 columns; the lines of the next 64 columns follow
#include <fmt/format.h>

#include <algorithm>

#include "analysis/kernel/loads.h"
#include "codegen/access/direct.h"
#include "codegen/expr/limit_unrolling.h"
#include "codegen/gemm/transformed_operand.h"
#include "codegen/wgmma/gemm_warpgroup_emitter.h"

namespace fusec {

bool WarpgroupEmitter::computes() const {
  return std::ranges::any_of(parts_, [](const auto& part) {
    return std::ranges::any_of(part->form.loops, [](const WarpgroupLoop& loop) { return loop.computes(); });
  });
}

void WarpgroupEmitter::compute_tiles() {
  for (const char* part : {"copy_pieces", "units_in_place", "written_tiles"}) writer_.use(part);
  open_tiles();
  Part& first = *parts_[0];
  const ExprEmitter::Mark mark = first.emitter.mark();
  if (!first.contraction.batch.empty()) bind_flat(first.emitter, first.contraction.batch, batch_, "bcdefgh");
  for (std::size_t i = 0; i < first.loops.size(); ++i) {
    if (first.loops.size() > 1) writer_.open("");
    compute_steps(i);
    if (first.loops.size() > 1) writer_.close();
  }
  first.emitter.rewind(mark);
  writer_.close();
}

void WarpgroupEmitter::compute_steps(std::size_t number) {
  constexpr int kAhead = WarpgroupTiles::kCopiesAhead;
  for (const auto& part : parts_) declare_copies(*part, number);
  for_part([&](Part& part) {
    for (const OperandTile& f : part.loops[number].operand_tiles)
      for (const Copies& c : f.copies) place_copies(part, f, c);
  });
  const int k = parts_[0]->form.k();
  const std::string steps = writer_.unique("steps"), step = writer_.unique("step"), copied = writer_.unique("copied");
  writer_.line(fmt::format("const int {} = {};", steps,
                           tiles_.split_k > 1 ? fmt::format("{} - {}", end_step_, first_step_)
                                              : fmt::format("({} + {}) / {}", k_of(number), k - 1, k)));
  writer_.line(fmt::format("int {} = 0;  // where the copies are that a step computes from", copied));
  writer_.line("#pragma unroll 1");
  writer_.open(fmt::format("for (int {0} = -{1}; {0} < {2}; ++{0})", step, kAhead, steps));
  writer_.open(fmt::format("if ({} >= 0)", step));
  compute_step(number, step, copied);
  writer_.close();
  writer_.open(fmt::format("if ({} + {} < {})", step, kAhead, steps));
  for_part([&](Part& part) { fetch(part, number, fmt::format("({} + {})", step, kAhead), copied); });
  writer_.close();
  writer_.line("commit_copies();");
  writer_.line(fmt::format("{0} = {0} == {1} * {2} ? 0 : {0} + {2};", copied, kAhead - 1, copies_size_));
  writer_.close();
}

void WarpgroupEmitter::compute_step(std::size_t number, const std::string& step, const std::string& copied) {
  const std::string k0 = writer_.unique("k"), ready = writer_.unique("ready"), into = writer_.unique("into");
  writer_.line(fmt::format("const int {} = {};", k0, k_at(step, parts_[0]->form.k())));
  writer_.line(fmt::format("wait_for_groups<{}>();", WarpgroupTiles::kCopiesAhead - 1));
  writer_.line(fmt::format("wait_for_phase({} + 8 * {}, {} ^ 1);", empty_, stage_, phase_));
  writer_.open("if (threadIdx.x == 0)");
  writer_.line(fmt::format("const unsigned {} = {} + {} * {}, {} = {} + 8 * {};", into, tiles_at_, stage_, stage_size_,
                           ready, full_, stage_));
  writer_.line(fmt::format("arrive_expecting({}, {});", ready,
                           of_part([&](std::size_t p) { return parts_[p]->loops[number].bytes_name; })));
  for_part([&](Part& part) {
    for (const OperandTile& f : part.loops[number].operand_tiles)
      if (f.copied_by_tma()) copy(part, f, k0, into, ready);
  });
  writer_.close();
  for_part([&](Part& part) {
    const Loop& loop = part.loops[number];
    for (const OperandTile& f : loop.operand_tiles) {
      if (f.transformed()) compute(part, number, f, k0, copied);
      if (loop.form->block != 0 && f.scaled()) scale(part, part.contraction.loops[number], f, k0, 0);
    }
  });
  writer_.line(fmt::format("signal_written({} + 8 * {}, warp_lane);", full_, stage_));
  next_stage();
}

// The start of the block's step along K.
std::string WarpgroupEmitter::k_at(const std::string& step, int k) const {
  return tiles_.split_k > 1 ? fmt::format("({} + {}) * {}", first_step_, step, k) : fmt::format("{} * {}", step, k);
}

// How the threads divide an operand's lines of 128 bytes.
WarpgroupEmitter::Pieces WarpgroupEmitter::pieces_of(const Part& part, const OperandTile& f) {
  Pieces pieces;
  pieces.elements = f.operand->transformed->piece;
  pieces.per_line = WarpgroupTiles::kLineBytes / (pieces.elements * part.form.element_bytes());
  pieces.lines = kCopierThreads / pieces.per_line;
  pieces.per_thread = f.across / pieces.lines;
  return pieces;
}

std::string WarpgroupEmitter::byte_of_unit(const Part& part, const OperandTile& f) {
  const int bytes = part.form.element_bytes();
  return bytes == 1 ? f.unit : fmt::format("{} * {}", f.unit, bytes);
}

void WarpgroupEmitter::declare_copies(Part& part, std::size_t number) {
  for (OperandTile& f : part.loops[number].operand_tiles) {
    if (!f.transformed()) continue;
    const Pieces pieces = pieces_of(part, f);
    const std::string name = writer_.preferred_name(part.kernel.pool[f.operand->load].source);
    f.unit = writer_.unique(name + "_unit"), f.line = writer_.unique(name + "_line");
    writer_.line(fmt::format("const int {} = threadIdx.x % {} * {}, {} = threadIdx.x / {};", f.unit, pieces.per_line,
                             pieces.elements, f.line, pieces.per_line));
    // kept(): when few registers are in use, NVRTC would recompute the positions at each step.
    f.place = writer_.unique(name + "_place");
    writer_.line(
        fmt::format("const int {} = kept(swizzled_offset<8>({}, {}));", f.place, f.line, byte_of_unit(part, f)));
    for (Copies& c : f.copies) {
      const ExprNode& load = part.kernel.pool[c.operand->load];
      c.from = writer_.unique(writer_.preferred_name(load.source) + "_from");
      writer_.line(fmt::format("const {}* {}[{}];", storage_type(load.dtype), c.from, pieces.per_thread));
    }
  }
}

void WarpgroupEmitter::place_copies(Part& part, const OperandTile& f, const Copies& c) {
  const Bounds& bounds = part.kernel.pool.bounds();
  const GemmOperand& operand = *c.operand;
  const Pieces pieces = pieces_of(part, f);
  const std::string each = writer_.unique("each"), at = writer_.unique(f.left ? "row" : "column");
  writer_.line("#pragma unroll");
  writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", each, pieces.per_thread));
  const ExprEmitter::Mark mark = part.emitter.mark();
  writer_.line(fmt::format("const {} {} = {};", writer_.index_type(), at, across_at(part, f, each)));
  bind_flat(part.emitter, part.axes(f.left), at, f.left ? "mnopq" : "ijlst");
  part.emitter.emit(values_in(operand.across));
  std::string position = part.emitter.index(in_storage(operand.across, operand, bounds));
  const std::string stride = part.text(in_storage(*operand.k_stride, operand, bounds));
  const std::string wide = writer_.wide() ? "(long long)" : "";
  if (operand.k_major)
    position += fmt::format(" + {}{}", f.unit, operand.element_bits == 4 ? " / 2" : "");
  else
    position += fmt::format(" + {}({} % {}) * {}", wide, line_of(part, f, each), part.form.k(), stride);
  if (tiles_.split_k > 1)
    position += fmt::format(" + {}{} * {}", wide, first_step_,
                            part.text(in_storage(*operand.k_stride * part.form.k(), operand, bounds)));
  writer_.line(
      fmt::format("{}[{}] = {} + ({});", c.from, each, writer_.input(part.kernel.pool[operand.load].source), position));
  part.emitter.rewind(mark);
  writer_.close();
}

std::string WarpgroupEmitter::line_of(const Part& part, const OperandTile& f, const std::string& each) const {
  return fmt::format("{} + {} * {}", f.line, each, pieces_of(part, f).lines);
}

// The row or column at which a piece begins. Beyond the end it is that of the last piece; such products are not stored.
std::string WarpgroupEmitter::across_at(Part& part, const OperandTile& f, const std::string& each) const {
  const std::string line = line_of(part, f, each);
  std::string place = fmt::format("{} + {}", f.left ? row0_ : column0_, line);
  if (!f.operand->k_major)
    place = fmt::format("{} + ({}) / {} * {} + {}", f.left ? row0_ : column0_, line, part.form.k(), kSwizzleTileRows,
                        f.unit);
  const IndexExpr count = part.count(part.axes(f.left));
  const bool anywhere = f.left && in_groups();
  if (!anywhere && proves_multiple_of(count, f.across, part.kernel.pool.bounds())) return place;
  const int elements = f.operand->k_major ? 1 : f.operand->transformed->piece;
  return fmt::format("min(({0})({1}), ({0}){2})", writer_.index_type(), place, part.text(count - elements));
}

// The K offset of a piece in its tile.
std::string WarpgroupEmitter::k_of_piece(const Part& part, const OperandTile& f, const std::string& each) const {
  return f.operand->k_major ? f.unit : fmt::format("({}) % {}", line_of(part, f, each), part.form.k());
}

bool WarpgroupEmitter::whole_steps(const Part& part, std::size_t loop) const {
  return proves_multiple_of(part.count(part.contraction.loops[loop].k), part.form.k(), part.kernel.pool.bounds());
}

// Starts the copies that a step is computed from.
void WarpgroupEmitter::fetch(Part& part, std::size_t number, const std::string& step, const std::string& copied) {
  const Loop& loop = part.loops[number];
  const bool whole = whole_steps(part, number);
  for (const OperandTile& f : loop.operand_tiles)
    for (const Copies& c : f.copies) {
      const Pieces pieces = pieces_of(part, f);
      const std::string each = writer_.unique("each");
      const IndexExpr stride = *c.operand->k_stride * part.form.k();
      writer_.line("#pragma unroll");
      writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", each, pieces.per_thread));
      const std::string there =
          whole ? "true" : fmt::format("{} + {} < {}", k_at(step, part.form.k()), k_of_piece(part, f, each), loop.k);
      writer_.line(fmt::format("copy_piece<{}, {}>({} + {} + {}, {}[{}], {}, {});",
                               pieces.elements * c.operand->element_bits / 8, kCopierThreads, tiles_at_, in_copies(c),
                               copied, c.from, each, each, there));
      writer_.line(fmt::format("{}[{}] += {};", c.from, each,
                               part.text(in_storage(stride, *c.operand, part.kernel.pool.bounds()))));
      writer_.close();
    }
}

void WarpgroupEmitter::compute(Part& part, std::size_t number, const OperandTile& f, const std::string& k0,
                               const std::string& copied) {
  const Pieces pieces = pieces_of(part, f);
  const bool whole = whole_steps(part, number);
  const int element_bytes = part.form.element_bytes();
  const std::string each = writer_.unique("each"), k = part.loops[number].k;
  const std::string at = fmt::format("{} + {}", k0, k_of_piece(part, f, each));
  // A thread's lines are a multiple of eight apart, so their swizzle is the same.
  const std::string tile = fmt::format("dynamic_tiles + {} * {}{} + {} * {}", stage_, stage_size_, in_stage(f), each,
                                       pieces.lines * WarpgroupTiles::kLineBytes);
  writer_.line(kUnrollToFit);
  writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", each, pieces.per_thread));
  if (!whole) writer_.open(fmt::format("if ({} < {})", at, k));
  const std::string made = emit_transformed_piece(
      {.kernel = part.kernel,
       .graph = graph_,
       .writer = writer_,
       .operand = *f.operand->transformed,
       .axes = {part.axes(f.left), part.contraction.loops[number].k,
                holds_within_groups(part.kernel.pool, part.contraction, part.form.groups)},
       .batch = part.contraction.batch,
       .unit_axes = part.contraction.shared_rest,
       .expert_index =
           part.contraction.expert_index ? std::optional(part.contraction.expert_index->axis) : std::nullopt,
       .matrix = matrix_,
       .multiplied = part.form.dtype,
       .piece = pieces.elements,
       .batch_number = batch_,
       .across_at = across_at(part, f, each),
       .k_at = at,
       .words = [&](std::size_t i) {
         const Copies& c = f.copies[i];
         return fmt::format("load_copied_piece<{}, {}>(dynamic_tiles + {} + {}, {})",
                            pieces.elements * c.operand->element_bits / 8, kCopierThreads, in_copies(c), copied, each);
       }});
  writer_.line(fmt::format("store_in_place({}, {}, {});", tile, f.place, made));
  if (!whole) {
    writer_.close("} else {");
    writer_.reopen();
    writer_.line(
        fmt::format("store_in_place({}, {}, Words<{}>{{}});", tile, f.place, pieces.elements * element_bytes / 4));
    writer_.close();
  }
  writer_.close();
}

}  // namespace fusec
