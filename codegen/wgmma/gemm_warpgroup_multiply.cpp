// The multiplying warpgroups: products of a stage's tiles, partial sums, and the epilogue.
//
//   plain accumulators                      wgmma adds to them
//   zero point of the left operand          threads sum up lines of the right tiles meanwhile; zero point times these
//                                           sums is subtracted from the accumulators
//   scales that are the same for all of K   multiply the accumulators of wgmma at the end
//   parts of K (with own scales, or         wgmma's accumulators of a part are added to the main ones after its last
//   promotion of float8 sums)               stage, and the first product of the next part overwrites them
//
// Right operands that share a left operand are contiguous in a stage, so they are one operand to wgmma.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "codegen/gemm/split_k.h"
#include "codegen/wgmma/gemm_warpgroup_emitter.h"
#include "ir/type.h"

namespace fusec {
namespace {

// Stages per part of K; 0 if all of K is one part.
std::int64_t stages_of_part(const WarpgroupLoop& loop, int k) {
  return (loop.block != 0 ? loop.block : loop.promotion_interval) / k;
}

}  // namespace

void WarpgroupEmitter::multiply_tiles() {
  writer_.line("const int warp_row = (warp - 4) * 16;");
  open_tiles();
  if (parts_.size() > 1 && multiplied_alike()) {
    const std::vector<AccumulatorRegisters> accumulators = declare_accumulators(*parts_[0]);
    multiply_tile(*parts_[0], accumulators, true);
    for_part([&](Part& part) { finish(part, accumulators); });
  } else {
    for_part([&](Part& part) {
      const std::vector<AccumulatorRegisters> accumulators = declare_accumulators(part);
      multiply_tile(part, accumulators, false);
      finish(part, accumulators);
    });
  }
  writer_.close();
  if (box_bytes_ > 0) writer_.line("if (warp_lane == 0) wait_for_stored_boxes();");
}

std::vector<WarpgroupEmitter::Multiplication> WarpgroupEmitter::multiplications(const Part& part,
                                                                                std::size_t number) const {
  constexpr std::size_t kMostColumns = 256;
  const std::vector<ContractionTerm>& terms = part.contraction.loops[number].terms;
  const Loop& loop = part.loops[number];
  const auto columns = static_cast<std::size_t>(part.form.tiles.columns);
  const auto is_behind = [&](std::size_t t) {
    const OperandTile &f = loop.right(terms[t].right), &first = loop.right(terms[0].right);
    return terms[t].left == terms[0].left && terms[t].right == terms[0].right + t &&
           f.operand->k_major == first.operand->k_major && f.piece() == first.piece() &&
           dtype_of(part, f) == dtype_of(part, first);
  };
  bool one = !loop.form->scaled() && terms.size() * columns <= kMostColumns;
  for (std::size_t t = 0; t < terms.size(); ++t) one = one && is_behind(t);
  if (one) return {{.first = 0, .terms = terms.size()}};
  std::vector<Multiplication> each;
  for (std::size_t t = 0; t < terms.size(); ++t) each.push_back({.first = t, .terms = 1});
  return each;
}

DType WarpgroupEmitter::dtype_of(const Part& part, const OperandTile& f) {
  return f.transformed() ? part.form.dtype : part.kernel.pool[f.operand->load].dtype;
}

// True when the tiles of all parts have the same layout and dtypes. One loop then multiplies them; only epilogues
// differ.
bool WarpgroupEmitter::multiplied_alike() const {
  const Part& first = *parts_[0];
  return std::ranges::all_of(parts_, [&](const auto& part) {
    const Loop &a = part->loops[0], &b = first.loops[0];
    const auto operands_alike = [&](const OperandTile& f, const OperandTile& g) {
      return f.offset == g.offset && f.operand->k_major == g.operand->k_major &&
             dtype_of(*part, f) == dtype_of(first, g);
    };
    const auto alike = [&](const Multiplication& m, const Multiplication& n) {
      const ContractionTerm &s = part->contraction.loops[0].terms[m.first],
                            &t = first.contraction.loops[0].terms[n.first];
      return columns_of(*part, m) == columns_of(first, n) && operands_alike(a.left(s.left), b.left(t.left)) &&
             operands_alike(a.right(s.right), b.right(t.right));
    };
    return part->form.float_accumulators == first.form.float_accumulators && !a.form->scaled() &&
           !part->form.takes_offsets() && a.form->promotion_interval == b.form->promotion_interval &&
           std::ranges::equal(multiplications(*part, 0), multiplications(first, 0), alike);
  });
}

void WarpgroupEmitter::multiply_tile(Part& part, const std::vector<AccumulatorRegisters>& accumulators, bool of_all) {
  std::size_t next = 0;
  for (std::size_t i = 0; i < part.loops.size(); ++i) {
    if (part.loops.size() > 1) writer_.open("");
    const std::span<const AccumulatorRegisters> own =
        std::span(accumulators).subspan(next, multiplications(part, i).size());
    multiply_loop(part, i, own, of_all);
    for (const AccumulatorRegisters& accumulator : own)
      if (!has_named_accumulators()) writer_.line(fmt::format("hold({});", accumulator.accumulated));
    subtract_offsets(part, i, own);
    if (in_groups() && part.loops[i].form->scaled()) writer_.open(if_of_group(""));
    scale_accumulators(part, i, own);
    if (in_groups() && part.loops[i].form->scaled()) writer_.close();
    next += own.size();
    if (part.loops.size() > 1) writer_.close();
  }
}

// Stores the accumulators of a split for the reduction kernel.
void WarpgroupEmitter::store_partial_accumulators(Part& part, const std::vector<AccumulatorRegisters>& accumulators) {
  const ScalarType type = part.form.float_accumulators ? ScalarType::kFloat32 : ScalarType::kInt32;
  const SplitKPartials split_k(tiles_.split_k, part.contraction, part.kernel.pool, tiles_.rows() * tiles_.cluster,
                               tiles_.columns);
  if (partial_.empty()) partial_ = declare_partial(writer_, split_k, type);
  int which = 0;
  for (const std::string& accumulator : accumulators_of_terms(part, accumulators, 0))
    store_partial(part.emitter, split_k, partial_, {split_, batch_, row0_ + " + warp_row", column0_}, which++,
                  accumulator, type, 1, tiles_.columns, 0);
}

void WarpgroupEmitter::finish(Part& part, const std::vector<AccumulatorRegisters>& accumulators) {
  if (tiles_.split_k > 1) return store_partial_accumulators(part, accumulators);
  std::map<ExprId, std::string> of_reduction;
  const std::vector<std::string> of_terms = accumulators_of_terms(part, accumulators, 0);
  std::size_t next = 0;
  for (const ContractionLoop& loop : part.contraction.loops)
    for (const ContractionTerm& term : loop.terms) of_reduction[term.reduction] = of_terms[next++];
  std::string column0 = column0_;
  if (const auto& pairs = part.form.pairs) {
    of_reduction = {{pairs->even, kEven}, {pairs->odd, kOdd}};
    column0 = writer_.unique("first_pair");
    writer_.line(fmt::format("const int {} = {} / 2;", column0, column0_));
  }
  // A loop runs the epilogue of one row block after the other, so its code appears once.
  std::map<std::string, std::string> below;
  std::string row0 = row0_, block;
  if (tiles_.row_blocks > 1) {
    const std::vector<std::string> of_those = accumulators_of_terms(part, accumulators, 1);
    for (std::size_t t = 0; t < of_terms.size(); ++t) below[of_terms[t]] = of_those[t];
    block = writer_.unique("row_block"), row0 = writer_.unique("row0_of_block");
    writer_.line("#pragma unroll 1");
    writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", block, tiles_.row_blocks));
    writer_.line(fmt::format("const int {} = {} + {} * {};", row0, row0_, block, WarpgroupTiles::kRows));
  }
  const std::string staged = writer_.unique("staged");
  const char* const type = part.form.float_accumulators ? "float" : "int";
  writer_.line(fmt::format("{0}* const {1} = ({0}*)(dynamic_tiles + {2} + (warp - 4) * {3});", type, staged, staged_at_,
                           staged_size_));
  const WarpgroupTiles& tiles = part.form.tiles;
  GemmForm pieces{.dtype = part.form.dtype, .loops = {}, .tiles = {}, .accumulators = part.form.accumulators};
  pieces.tiles.rows = tiles.rows() * tiles.cluster;  // a cluster's last tile may have no rows
  pieces.tiles.columns = tiles.columns;
  pieces.tiles.warp_rows = 16;
  pieces.tiles.warp_columns = tiles.staged_columns;
  const ExprEmitter::Mark mark = part.emitter.mark();
  GemmEpilogue epilogue{.kernel = part.kernel,
                        .contraction = part.results,
                        .form = pieces,
                        .accumulators = std::move(of_reduction),
                        .row0 = row0,
                        .column0 = column0,
                        .batch = batch_,
                        .parts = tiles.columns / tiles.staged_columns,
                        .staged = staged,
                        .block = block,
                        .below = std::move(below),
                        .boxes = boxes_of_outputs(part),
                        .pairs = part.form.pairs ? of_terms[0] : ""};
  if (in_groups()) know_group(part, epilogue);
  emit_epilogue(epilogue, graph_, writer_);
  part.emitter.rewind(mark);
  if (tiles_.row_blocks > 1) writer_.close();
}

std::vector<TmaStore> WarpgroupEmitter::boxes_of_outputs(Part& part) {
  constexpr int kLine = WarpgroupStore::kLine, kLines = WarpgroupStore::kLines;
  if (!part.form.tiles.stores_boxes) return {};
  std::vector<TmaStore> all;
  const Bounds& bounds = part.kernel.pool.bounds();
  const auto extent = [&](const IndexExpr& e) { return range_of(e, bounds).min > 0 ? simplify(e, bounds) : max(e, 1); };
  int before = 0;
  bool bound = false;
  for (std::size_t i = 0; i < part.form.stores.size(); ++i) {
    TmaStore& stored = all.emplace_back();
    if (!part.form.stores_boxes_of(i)) continue;
    const WarpgroupStore& store = *part.form.stores[i];
    const KernelOutput& output = part.kernel.outputs[i];
    const int element = store.element_bytes;
    TensorMapBoxes boxes{
        .element_bytes = element,
        .offset = store.offset,
        .extents = {extent(part.count(part.results.columns)), extent(part.count(part.contraction.rows))},
        .strides = {store.stride},
        .box = {static_cast<std::uint32_t>(kLine / element), kLines}};
    if (!bound && !store.batch.empty()) bind_flat(part.emitter, part.contraction.batch, batch_, "bcdefgh");
    bound = bound || !store.batch.empty();
    for (const WarpgroupOperand::Batch& batch : store.batch) {
      boxes.extents.push_back(extent(batch.extent));
      boxes.strides.push_back(batch.stride);
      boxes.box.push_back(1);
      stored.batch += ", " + part.emitter.index(simplify(batch.position, bounds));
    }
    stored.map = writer_.tensor_map(output.value, std::move(boxes), true);
    stored.lines = writer_.unique("lines");
    writer_.line(fmt::format("const unsigned {} = {} + {} + (warp - 4) * {}{};", stored.lines, tiles_at_, boxes_at_,
                             box_size_, before > 0 ? fmt::format(" + {}", before) : ""));
    before += kLine * kLines;
  }
  return all;
}

// The products of a stage run while the next stage is waited for. A stage is released when its products are complete.
void WarpgroupEmitter::multiply_loop(const Part& part, std::size_t number,
                                     std::span<const AccumulatorRegisters> accumulators, bool of_all) {
  const std::string steps = writer_.unique("steps"), before = writer_.unique("before");
  const Loop& loop = part.loops[number];
  const std::int64_t stages = stages_of_part(*loop.form, part.form.k());
  const int k = part.form.k();
  if (tiles_.split_k > 1)
    writer_.line(fmt::format("const int {} = {} - {};", steps, end_step_, first_step_));
  else
    writer_.line(
        fmt::format("const int {} = ({} + {}) / {};", steps, of_all ? k_of(number) : if_of_group(loop.k), k - 1, k));
  if (stages != 1) writer_.line(fmt::format("int {} = 0;", before));
  writer_.line("#pragma unroll 1");
  writer_.open(fmt::format("for (int step = 0; step < {}; ++step)", steps));
  writer_.line(fmt::format("wait_for_phase({} + 8 * {}, {});", full_, stage_, phase_));
  writer_.line("fence_products();");
  multiply_stage(part, number, accumulators);
  writer_.line("commit_products();");
  add_lines(part, number, accumulators);
  if (stages == 1) {
    add_parts(part, number, accumulators);
    writer_.line(release(stage_, ""));
    next_stage();
    writer_.close();
    return;
  }
  writer_.line("wait_for_products<1>();");
  writer_.line(release(before, "step > 0"));
  if (stages > 1) {
    writer_.open(fmt::format("if (step % {} == {} || step + 1 == {})", stages, stages - 1, steps));
    add_parts(part, number, accumulators);
    writer_.close();
  }
  writer_.line(fmt::format("{} = {};", before, stage_));
  next_stage();
  writer_.close();
  writer_.line("wait_for_products<0>();");
  writer_.line(release(before, steps + " > 0"));
}

std::string WarpgroupEmitter::multiply_function(const Part& part, const OperandTile& left, const OperandTile& right,
                                                const AccumulatorRegisters& accumulator, int columns, int block) const {
  const auto float8 = [&](const OperandTile& f) { return dtype_of(part, f) == DType::kFloat8E5M2 ? "e5m2" : "e4m3"; };
  const std::string name = part.form.dtype == DType::kBFloat16  ? "bf16"
                           : part.form.dtype == DType::kFloat16 ? "fp16"
                           : part.form.dtype == DType::kInt8    ? "s8"
                                                                : fmt::format("{}_{}", float8(left), float8(right));
  const std::string registers =
      has_named_accumulators() ? fmt::format("_registers_{}", accumulator.first + block * columns / 2) : "";
  writer_.use(fmt::format("multiply_warpgroup_{}_{}{}", name, columns, registers));
  if (part.form.element_bytes() == 1) return "multiply_warpgroup_" + name;
  const auto across = [](const OperandTile& f) { return f.operand->k_major ? 0 : f.piece(); };
  return fmt::format("multiply_warpgroup_{}<{}, {}>", name, across(left), across(right));
}

void WarpgroupEmitter::multiply_stage(const Part& part, std::size_t number,
                                      std::span<const AccumulatorRegisters> accumulators) {
  const Loop& loop = part.loops[number];
  const std::vector<Multiplication> all = multiplications(part, number);
  const std::vector<ContractionTerm>& terms = part.contraction.loops[number].terms;
  std::set<std::size_t> operand_tiles;
  for (const Multiplication& m : all)
    operand_tiles.insert({terms[m.first].left, loop.left_count + terms[m.first].right});
  for (const std::size_t i : operand_tiles) {
    const OperandTile& f = loop.operand_tiles[i];
    const std::string own = f.left ? fmt::format(" + (warp / 4 - 1) * {}", kPieceBytes) : "";
    std::string described = "wgmma_descriptor";
    if (f.piece() != kSwizzleTileRows && !f.operand->k_major) {
      described = fmt::format("narrow_descriptor<{}>", f.piece());
      writer_.use("narrow_descriptor");
    }
    writer_.line(fmt::format("const unsigned long long {}_{} = {}({} + {} * {}{}{});", f.left ? "left" : "right", i,
                             described, tiles_at_, stage_, stage_size_, in_stage(f), own));
  }
  const std::int64_t stages = stages_of_part(*loop.form, part.form.k());
  const std::string adds = stages == 0 ? "" : stages == 1 ? ", false" : fmt::format(", step % {} > 0", stages);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const ContractionTerm& term = terms[all[i].first];
    const OperandTile &left = loop.left(term.left), &right = loop.right(term.right);
    const int columns = columns_of(part, all[i]);
    for (int block = 0; block < tiles_.row_blocks; ++block) {
      // Descriptor units from row block to row block.
      constexpr int kDescribed = WarpgroupTiles::kRows * WarpgroupTiles::kLineBytes / 16;
      const std::string below = block == 0 ? "" : fmt::format(" + {}", block * kDescribed);
      const std::string left_tile = fmt::format("left_{}{}", term.left, below);
      const std::string right_tile = fmt::format("right_{}", loop.left_count + term.right);
      writer_.line(fmt::format("{}({}, {}, {}{});",
                               multiply_function(part, left, right, accumulators[i], columns, block),
                               accumulators_of_block(accumulators[i], columns, block), left_tile, right_tile, adds));
    }
  }
}

// Each thread sums up lines of a right operand's tile while the tile is multiplied.
void WarpgroupEmitter::add_lines(const Part& part, std::size_t number,
                                 std::span<const AccumulatorRegisters> accumulators) {
  if (!part.form.takes_offsets()) return;
  const Loop& loop = part.loops[number];
  const std::vector<Multiplication> all = multiplications(part, number);
  for (std::size_t t = 0; t < accumulators.size(); ++t) {
    if (accumulators[t].line_sums.empty()) continue;
    const OperandTile& right = loop.right(part.contraction.loops[number].terms[all[t].first].right);
    writer_.use("warpgroup_offsets");
    writer_.line(fmt::format("add_lines<{}>({}, {} + {} * {}{});", columns_of(part, all[t]), accumulators[t].line_sums,
                             tiles_at_, stage_, stage_size_, in_stage(right)));
  }
  writer_.line("__syncwarp();  // all lanes have their lines");
}

// Subtracts the zero point: (x - o) w = x w - o sum(w).
void WarpgroupEmitter::subtract_offsets(Part& part, std::size_t number,
                                        std::span<const AccumulatorRegisters> accumulators) {
  if (!part.form.takes_offsets()) return;
  const Loop& loop = part.loops[number];
  const std::vector<Multiplication> all = multiplications(part, number);
  const ExprEmitter::Mark tile = part.emitter.mark();
  if (!part.contraction.batch.empty()) bind_flat(part.emitter, part.contraction.batch, batch_, "bcdefgh");
  for (std::size_t t = 0; t < accumulators.size(); ++t) {
    if (accumulators[t].line_sums.empty()) continue;
    const OperandTile& left = loop.left(part.contraction.loops[number].terms[all[t].first].left);
    const std::string offset = part.emitter.emit(left.operand->zero_point);
    writer_.line(fmt::format("subtract_zero_point_rows<{}>({}, {}, {}, (int*)(dynamic_tiles + {}));",
                             columns_of(part, all[t]), accumulators[t].accumulated, accumulators[t].line_sums, offset,
                             staged_at_));
  }
  part.emitter.rewind(tile);
}

// Adds the accumulators of a part of K to the main accumulators.
void WarpgroupEmitter::add_parts(const Part& part, std::size_t number,
                                 std::span<const AccumulatorRegisters> accumulators) {
  const Loop& loop = part.loops[number];
  writer_.use("add_warpgroup_parts");
  writer_.line("wait_for_products<0>();");
  const bool scaled = loop.form->block != 0;
  const auto scales = [&](const OperandTile& f) -> std::string {
    if (!scaled || !f.scaled()) return "nullptr";
    return fmt::format("(const float*)(dynamic_tiles + {} * {} + {}){}", stage_, stage_size_, f.scales_at,
                       f.left ? " + warp_row" : "");
  };
  const std::vector<ContractionTerm>& terms = part.contraction.loops[number].terms;
  for (std::size_t t = 0; t < accumulators.size(); ++t) {  // scaled operands have one term per accumulator
    const OperandTile &a = loop.left(terms[t].left), &b = loop.right(terms[t].right);
    writer_.line(fmt::format("hold({});", accumulators[t].accumulated));
    writer_.line(fmt::format("add_warpgroup_parts<{}, {}>({}, {}, {}, {}, warp_lane);", scaled && a.scaled(),
                             scaled && b.scaled(), accumulators[t].name, accumulators[t].accumulated, scales(a),
                             scales(b)));
  }
  if (scaled) writer_.line("__syncwarp();  // all lanes have their scales");
}

// Applies scales that are the same for all of K, and converts integer accumulators to float.
void WarpgroupEmitter::scale_accumulators(Part& part, std::size_t number,
                                          std::span<const AccumulatorRegisters> accumulators) {
  const Loop& loop = part.loops[number];
  if (loop.form->block != 0) return;
  const std::vector<ContractionTerm>& terms = part.contraction.loops[number].terms;
  const std::vector<Multiplication> all = multiplications(part, number);
  for (std::size_t t = 0; t < accumulators.size(); ++t) {
    const OperandTile &a = loop.left(terms[t].left), &b = loop.right(terms[t].right);
    const std::string& unscaled =
        loop.form->promotion_interval != 0 ? accumulators[t].name : accumulators[t].accumulated;
    if (a.scaled() || b.scaled()) {
      scale_accumulator(part, a, b, accumulators[t], unscaled);
    } else if (unscaled != accumulators[t].name) {
      writer_.line("#pragma unroll");
      writer_.line(fmt::format("for (int e = 0; e < {}; ++e) {}[e / 4][e % 4] = (float){}[e / 4][e % 4];",
                               columns_of(part, all[t]) / 2, accumulators[t].name, unscaled));
    }
  }
}

void WarpgroupEmitter::scale_accumulator(Part& part, const OperandTile& left, const OperandTile& right,
                                         const AccumulatorRegisters& accumulator, const std::string& unscaled) {
  const ExprEmitter::Mark tile = part.emitter.mark();
  if (!part.contraction.batch.empty()) bind_flat(part.emitter, part.contraction.batch, batch_, "bcdefgh");
  // Loads two row or column scales. Positions beyond the end use the last scale.
  const auto scales = [&](const OperandTile& f, const std::string& first, const std::string& step) -> std::string {
    if (!f.scaled()) return "";
    const std::string scale = writer_.unique(f.left ? "row_scale" : "column_scale");
    const std::string at = writer_.unique(f.left ? "row" : "column");
    writer_.line(fmt::format("float {}[2];", scale));
    writer_.line("#pragma unroll");
    writer_.open("for (int i = 0; i < 2; ++i)");
    const ExprEmitter::Mark mark = part.emitter.mark();
    writer_.line(fmt::format("const {} {} = min({} + {} + i{}, {});", writer_.index_type(), at,
                             f.left ? row0_ : column0_, first, step, part.text(part.count(part.axes(f.left)) - 1)));
    bind_flat(part.emitter, part.axes(f.left), at, f.left ? "mnopq" : "ijlst");
    std::string value;
    for (const std::string& text : part.emitter.emit(f.operand->scales))
      value += (value.empty() ? "(" : " * (") + text + ")";
    writer_.line(fmt::format("{}[i] = {};", scale, value));
    part.emitter.rewind(mark);
    writer_.close();
    return scale;
  };
  const std::string rows = scales(left, "warp_row + warp_lane / 4", " * 8");
  writer_.line("#pragma unroll");
  writer_.open(fmt::format("for (int j = 0; j < {}; ++j)", part.form.tiles.columns / 8));
  const std::string columns = scales(right, "8 * j + warp_lane % 4 * 2", "");
  writer_.line("#pragma unroll");
  std::string value = fmt::format("(float){}[j][i]", unscaled);
  if (!rows.empty()) value += fmt::format(" * {}[i / 2]", rows);
  if (!columns.empty()) value += fmt::format(" * {}[i % 2]", columns);
  writer_.line(fmt::format("for (int i = 0; i < 4; ++i) {}[j][i] = {};", accumulator.name, value));
  writer_.close();
  part.emitter.rewind(tile);
}

// Releases a stage of a warp, to all blocks that copy into it.
std::string WarpgroupEmitter::release(const std::string& stage, const std::string& where) const {
  const std::string when = where.empty() ? "" : where + " && ";
  if (tiles_.cluster == 1) return fmt::format("if ({}warp_lane == 0) arrive({} + 8 * {});", when, empty_, stage);
  return fmt::format("if ({}warp_lane < {}) arrive_in_cluster(in_block({} + 8 * {}, warp_lane));", when, tiles_.cluster,
                     empty_, stage);
}

}  // namespace fusec
