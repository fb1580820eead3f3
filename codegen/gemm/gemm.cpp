#include "codegen/gemm/gemm.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "codegen/access/direct.h"
#include "codegen/expr/emit_expr.h"
#include "codegen/gemm/gemm_block.h"
#include "codegen/gemm/gemm_epilogue.h"
#include "codegen/gemm/gemm_operand_loader.h"
#include "codegen/gemm/grouped_gemm_offsets.h"
#include "codegen/gemm/row_gemm_epilogue.h"
#include "codegen/gemm/split_k.h"
#include "ir/type.h"
#include "schedule/gemm/split_k.h"

namespace fusec {
namespace {

class GemmEmitter {
 public:
  GemmEmitter(const Kernel& kernel, const Contraction& contraction, const GemmForm& form, const RowGemm* rows,
              const Graph& graph, KernelWriter& writer)
      : kernel_(form.pairs ? form.pairs->kernel : kernel),
        contraction_(form.pairs ? form.pairs->contraction : contraction),
        results_(contraction),
        form_(form),
        rows_(rows),
        tiles_(form.tiles),
        pool_(kernel_.pool),
        graph_(graph),
        writer_(writer),
        emitter_(kernel_, writer) {}

  KernelSource emit() {
    for (const std::uint32_t a : contraction_.shared_rest) emitter_.bind(a, "0");
    block_.stages = writer_.unique("stages");
    block_.each = writer_.unique("each");
    writer_.use("dynamic_shared");
    writer_.use("load_matrices");
    writer_.line(fmt::format("const unsigned {} = shared_address(dynamic_shared);", block_.stages));
    place_block();
    declare_accumulators();
    for (std::size_t i = 0; i < form_.loops.size(); ++i) {
      if (form_.loops.size() > 1) writer_.open("");
      main_loop(contraction_.loops[i], form_.loops[i]);
      if (i + 1 < form_.loops.size()) writer_.line("__syncthreads();");
      if (form_.loops.size() > 1) writer_.close();
    }
    if (tiles_.split_k > 1)
      store_partials();
    else
      rows_ ? reduce_rows() : finish_tile();
    const int blocks =
        min_blocks_per_multiprocessor(tiles_, form_.tensor_cores(), accumulators_.size(), threads_at_a_time());
    KernelSource source = writer_.finish(comment(), tiles_.threads(), blocks);
    source.name = kernel_name(graph_, kernel_.nodes) + (tiles_.split_k > 1 ? "_shares" : "");
    source.grid[0] = simplify(tiles_down() * tiles_across() * count(contraction_.batch), pool_.bounds());
    source.grid[1] = tiles_.split_k;
    source.dynamic_shared = rows_ ? std::max(tile_bytes(form_), whole_rows_bytes(form_)) : shared_bytes(form_);
    source.schedule = {rows_ ? KernelKind::kRowGemm : KernelKind::kGemm, mma_if(form_.tensor_cores())};
    return source;
  }

 private:
  // Threads per multiprocessor for the register limit. ptxas converts float8 to float16 in extra registers; partial
  // sums and several transformed operands also need registers.
  int threads_at_a_time() const {
    if (form_.dtype == DType::kFloat8E4M3FN) return 256;
    const bool needs_registers = std::ranges::any_of(form_.loops, [&](const GemmLoop& loop) {
      const auto transformed = [](const GemmOperand& operand) { return operand.transformed(); };
      return form_.has_partial_accumulators(loop) ||
             std::ranges::count_if(loop.left, transformed) + std::ranges::count_if(loop.right, transformed) > 1;
    });
    return needs_registers ? 384 : 512;
  }

  void finish_tile() {
    GemmEpilogue epilogue{.kernel = kernel_,
                          .contraction = results_,
                          .form = form_,
                          .accumulators = accumulators_,
                          .row0 = block_.row0,
                          .column0 = block_.column0,
                          .batch = block_.batch};
    if (form_.pairs) {
      epilogue.pairs = accumulators_.begin()->second;
      epilogue.accumulators = {{form_.pairs->even, kEven}, {form_.pairs->odd, kOdd}};
      epilogue.column0 = writer_.unique("first_pair");
      writer_.line(fmt::format("const {} {} = {} / 2;", integer(), epilogue.column0, block_.column0));
    }
    if (form_.groups) {
      epilogue.known[form_.groups->number] = fmt::format("(long long){}", block_.matrix);
      epilogue.row_end = block_.row_end;
      epilogue.row_begin = block_.row_begin;
    }
    emit_epilogue(epilogue, graph_, writer_);
  }

  // The accumulators in the order of the contraction's terms.
  void store_partials() {
    const SplitKPartials split_k(tiles_.split_k, contraction_, pool_, tiles_.rows, tiles_.columns);
    const SplitPosition place{split_, block_.batch, block_.row0 + " + warp_row", block_.column0 + " + warp_column"};
    std::string partial;
    int which = 0;
    for (const ContractionLoop& loop : contraction_.loops)
      for (const ContractionTerm& term : loop.terms) {
        const ScalarType type = pool_[term.reduction].type;
        if (partial.empty()) partial = declare_partial(writer_, split_k, type);
        store_partial(emitter_, split_k, partial, place, which++, accumulators_.at(term.reduction), type,
                      tiles_.warp_rows / 16, tiles_.warp_columns, form_.tensor_cores() ? 1 : 4);
      }
  }

  // Stages whole rows of all accumulators; then each warp takes a row.
  void reduce_rows() {
    const int stride = tiles_.columns + 8;
    const int neighbours = row_vector_width(*rows_, stride, form_.tensor_cores() ? 8 : 4);
    writer_.use(form_.tensor_cores() ? "whole_rows" : "whole_lane_rows");
    writer_.line("__syncthreads();  // the tiles' memory is free");
    std::map<ExprId, std::string> rows;
    for (const auto& [reduction, accumulator] : accumulators_) {
      const std::size_t before = rows.size() * static_cast<std::size_t>(tiles_.rows * stride);
      std::string& whole = rows[reduction] = writer_.unique("whole_rows");
      writer_.line(fmt::format("float* const {} = (float*)dynamic_shared{};", whole,
                               before == 0 ? "" : fmt::format(" + {}", before)));
      writer_.line("#pragma unroll");
      writer_.line(fmt::format("for (int i = 0; i < {}; ++i)", tiles_.warp_rows / 16));
      const std::string at = fmt::format("{} + (warp_row + i * 16) * {} + warp_column", whole, stride);
      if (form_.tensor_cores())
        writer_.line(fmt::format("  store_whole_rows<{}, {}>({}{}, {}[i], warp_lane);", tiles_.columns, neighbours == 8,
                                 at, neighbours == 8 ? " / 2" : "", accumulator));
      else
        writer_.line(fmt::format("  store_whole_lane_rows<{}, {}, {}>({}, {}, i, warp_lane);",
                                 form_.loops[0].left[0].k_major, form_.loops[0].right[0].k_major, stride, at,
                                 accumulator));
    }
    writer_.line("__syncthreads();");
    emit_row_gemm_epilogue({*rows_, rows, block_.row0, tiles_.rows, stride, tiles_.threads(), neighbours}, graph_,
                           writer_, emitter_);
  }

  IndexExpr count(const std::vector<std::uint32_t>& axes) const { return point_count(pool_, axes); }
  // Groups begin at any row, but copies across rows need pieces of aligned rows.
  int aligned_rows() const {
    const bool across = std::ranges::any_of(form_.loops, [](const GemmLoop& loop) {
      return std::ranges::any_of(loop.left, [](const GemmOperand& operand) { return !operand.k_major; });
    });
    return form_.groups && across ? 8 : 1;
  }
  // Each group may end with a partial tile, and so may the rows after the last group. A tile that begins before its
  // group, to be aligned, has up to a = aligned_rows() - 1 rows of other groups. A group of n rows then has at most
  // ceil((n + a) / t) <= (n + a - 1) / t + 1 tiles of t rows.
  IndexExpr tiles_down() const {
    const IndexExpr groups = form_.groups ? pool_.extent(contraction_.expert_index->axis) : 0;
    const IndexExpr ahead = aligned_rows() > 1 ? groups * (aligned_rows() - 2) : 0;
    return simplify(ceil_div(count(contraction_.rows) + ahead, tiles_.rows) + groups, pool_.bounds());
  }
  IndexExpr tiles_across() const {
    return simplify(ceil_div(count(contraction_.columns), tiles_.columns), pool_.bounds());
  }
  std::string integer() const { return writer_.index_type(); }
  std::string text(const IndexExpr& e) { return emitter_.index_text().tight(simplify(e, pool_.bounds())); }
  std::vector<std::string> comment() const {
    std::vector<std::string> lines = kernel_comment(graph_, kernel_);
    if (tiles_.split_k > 1)
      lines.push_back(fmt::format("Sums of {} shares of the depth, which the next kernel adds up.", tiles_.split_k));
    lines.push_back(tiles_comment(tiles_, form_.tensor_cores()) +
                    (rows_ ? " Its tile has whole rows: behind the sums, a warp takes a row." : ""));
    return lines;
  }

  void place_block() {
    block_.row0 = writer_.unique("row0");
    block_.column0 = writer_.unique("column0");
    const auto [tile, batch] = fusec::place_block(emitter_, contraction_, tiles_down(), tiles_across());
    block_.batch = batch;
    if (tiles_.split_k > 1) {
      split_ = writer_.unique("share");
      writer_.line(fmt::format("const int {} = (int)blockIdx.y;", split_));
    }
    if (form_.groups)
      place_in_group(tile);
    else
      writer_.line(fmt::format("const {0} {1} = {2}.row * {3}, {4} = {2}.column * {5};", integer(), block_.row0, tile,
                               tiles_.rows, block_.column0, tiles_.columns));
    place_warps(writer_, tiles_);
  }

  // Sets the block's group and rows. There may be fewer tiles than blocks; the others return.
  void place_in_group(const std::string& tile) {
    writer_.use("row_groups");
    const std::string all = text(pool_.extent(contraction_.expert_index->axis)), memory = writer_.unique("ends");
    block_.matrix = writer_.unique("matrix");
    block_.row_end = writer_.unique("row_end");
    writer_.line(fmt::format("__shared__ int {}[2 * {}];", memory, all));
    const std::string ends = emit_group_ends(emitter_, contraction_, *form_.groups, tiles_.threads(), memory);
    const std::string group = writer_.unique("rows_of_tile");
    writer_.line(fmt::format("const RowsOfTile {} = rows_of_tile<{}, {}>({}, {}, {}, {}.row);", group, tiles_.rows,
                             aligned_rows(), ends, all, text(count(contraction_.rows)), tile));
    if (aligned_rows() > 1) block_.row_begin = group + ".begin";
    writer_.line(fmt::format("if ({0}.first >= {0}.end) return;", group));
    writer_.line(fmt::format("const {0} {1} = {2}.first, {3} = {2}.end, {4} = {2}.group;", integer(), block_.row0,
                             group, block_.row_end, block_.matrix));
    writer_.line(fmt::format("const {} {} = {}.column * {};", integer(), block_.column0, tile, tiles_.columns));
    emitter_.bind(contraction_.expert_index->axis, block_.matrix);
    emitter_.define(form_.groups->number, fmt::format("(long long){}", block_.matrix));
  }

  void declare_accumulators() {
    for (std::size_t i = 0; i < contraction_.loops.size(); ++i)
      for (const ContractionTerm& term : contraction_.loops[i].terms) {
        std::string& accumulator = accumulators_[term.reduction] = writer_.unique("sum");
        declare_accumulator(writer_, tiles_, form_.tensor_cores(), pool_[term.reduction].type, accumulator);
        if (form_.tensor_cores() && form_.has_partial_accumulators(form_.loops[i]))
          declare_accumulator(writer_, tiles_, true,
                              form_.dtype == DType::kInt8 ? ScalarType::kInt32 : ScalarType::kFloat32,
                              parts_[term.reduction] = writer_.unique("part"));
      }
  }

  // Declares a lambda that loads the fragments of one slice into one of two buffers. Computed tiles alternate between
  // two places.
  std::string declare_load(const GemmOperandLoader& operand_loader) {
    writer_.use("placed_fragments");
    const int slices = tiles_.k * form_.element_bytes() / 32;
    std::string names;
    for (const GemmOperandTile& f : operand_loader.all()) {
      const int pieces = (f.left ? tiles_.warp_rows : tiles_.warp_columns) / 16;
      names += fmt::format("{}{}[2][{}][4]", names.empty() ? "" : ", ", f.fragments, pieces);
      const std::string type = form_.tf32 && !f.operand->k_major
                                   ? fmt::format("Tf32Addresses<{}, {}, {}, {}>", f.left, f.units, pieces, slices)
                                   : fmt::format("FragmentAddresses<{}, {}, {}, {}, {}>", f.left, f.operand->k_major,
                                                 f.units, pieces, slices);
      writer_.line(fmt::format("const {} {}({} + {}, {}, warp_lane);", type, f.fragment_addresses, block_.stages,
                               f.tile, f.left ? "warp_row" : "warp_column"));
    }
    writer_.line(fmt::format("unsigned {};", names));
    const std::string load = writer_.unique("load");
    writer_.open(fmt::format("const auto {} = [&](int buffer, unsigned stage, {}int slice)", load,
                             operand_loader.computes() ? "int place, " : ""));
    for (const GemmOperandTile& f : operand_loader.all())
      writer_.line(fmt::format("{}.load({}[buffer], {}, slice);", f.fragment_addresses, f.fragments,
                               f.operand->transformed() ? fmt::format("place * {}", f.bytes) : "stage"));
    writer_.close("};");
    return load;
  }

  void main_loop(const ContractionLoop& loop, const GemmLoop& operands) {
    const std::string steps = writer_.unique("steps");
    const IndexExpr all_steps = ceil_div(count(loop.k), tiles_.k);
    const std::string all = text(all_steps);
    const int unsplit_steps = steps_per_scale_block(operands.block, tiles_.k);
    if (tiles_.split_k > 1) {
      const SplitSteps split = split_steps(emitter_, split_, all_steps, unsplit_steps, tiles_.split_k);
      block_.first_step = writer_.unique("first_step");
      writer_.line(
          fmt::format("const int {0} = {1}, {2} = {3} - {0};", block_.first_step, split.first, steps, split.end));
    }
    GemmOperandLoader operand_loader(contraction_, loop, operands, form_, block_, graph_, emitter_);
    operand_loader.declare_copies();
    operand_loader.load_k_invariant_scales();
    const std::string fetch = operand_loader.declare_fetch();
    operand_loader.declare_compute();
    const int ahead = tiles_.stages - 1;
    const std::int64_t least_steps = range_of(all_steps, pool_.bounds()).min / unsplit_steps / tiles_.split_k;
    if (form_.groups)  // rows after the last group have no matrix
      writer_.line(fmt::format("const int {} = {} < {} ? {} : 0;", steps, block_.matrix,
                               text(pool_.extent(contraction_.expert_index->axis)), all));
    else if (tiles_.split_k == 1)
      writer_.line(fmt::format("const int {} = {};", steps, all));
    writer_.open_unrolled("s", ahead);
    writer_.line(fmt::format("if (s < {}) {}(s * {});", steps, fetch, stage_bytes(form_)));
    writer_.line("commit_copies();");
    writer_.close();
    const std::string reading = writer_.unique("reading"), writing = writer_.unique("writing");
    const std::int64_t of_stage = stage_bytes(form_), last = ahead * of_stage;
    writer_.line(fmt::format("unsigned {} = 0, {} = {};  // where stages begin", reading, writing, last));
    const std::string next = fmt::format("{0} == {1} ? 0 : {0} + {2}", reading, last, of_stage);
    StepLines lines{
        .steps = steps,
        .reading = reading,
        .next_stage = fmt::format("{} = {}, {} = {};", writing, reading, reading, next),
        .wait = fmt::format("wait_for_groups<{}>();", ahead - 1),
        .fetch_next = {fmt::format("if (step + {} < {}) {}({});", ahead, steps, fetch, writing), "commit_copies();"},
        .has_tile = !form_.groups && least_steps > 0,
        .all_stages = !form_.groups && least_steps >= tiles_.stages && !operand_loader.has_to_compute(),
        .stage_behind = next};
    if (form_.tensor_cores())
      steps_on_tensor_cores(loop, operands, operand_loader, lines);
    else
      steps_in_lanes(loop, operand_loader, lines);
  }

  // Text for the loop over tiles along K.
  struct StepLines {
    std::string steps, reading;  // reading: offset of the stage that is read
    std::string next_stage, wait;
    std::vector<std::string> fetch_next;
    bool has_tile;             // at least one step in any case
    bool all_stages;           // all stages are filled in any case
    std::string stage_behind;  // the stage after the one that is read
  };

  // Computes tiles from the copies that are ready.
  void compute_first(GemmOperandLoader& operand_loader, const StepLines& lines) {
    writer_.open(fmt::format("if ({} > 0)", lines.steps));
    operand_loader.compute("0", "0", true);
    writer_.close();
  }
  void compute_next(GemmOperandLoader& operand_loader, const StepLines& lines) {
    writer_.line(lines.wait);
    writer_.open(fmt::format("if (step + 1 < {})", lines.steps));
    const std::string stage = writer_.unique("stage");
    writer_.line(fmt::format("const int {} = {};", stage, lines.stage_behind));
    operand_loader.compute("step + 1", stage, false);
    writer_.close();
  }

  std::string mma_function(const GemmOperandTile& left, const GemmOperandTile& right) const {
    return mma_name(form_.dtype, pool_[left.operand->load].dtype, pool_[right.operand->load].dtype);
  }

  // Loads the fragments of the next slice (32 bytes of a line) before this slice is multiplied. The next tile is
  // computed after the first slice.
  void steps_on_tensor_cores(const ContractionLoop& loop, const GemmLoop& operands, GemmOperandLoader& operand_loader,
                             const StepLines& lines) {
    const std::string load = declare_load(operand_loader);
    const std::vector<Offset> offsets = declare_offsets(loop, operand_loader);
    const int slices = tiles_.k * form_.element_bytes() / 32;
    const bool computes = operand_loader.has_to_compute(), two_tiles = operand_loader.computes();
    writer_.line(lines.wait);
    if (computes) compute_first(operand_loader, lines);
    writer_.line("__syncthreads();");
    // Without a matrix, or with an empty K, there is no tile.
    writer_.line(fmt::format("{}{}(0, 0, {}0);", lines.has_tile ? "" : fmt::format("if ({} > 0) ", lines.steps), load,
                             two_tiles ? "0, " : ""));
    writer_.open(fmt::format("for (int step = 0; step < {}; ++step)", lines.steps));
    writer_.open_unrolled("slice", slices);
    writer_.open(fmt::format("if (slice == {})", slices - 1));
    if (!computes) writer_.line(lines.wait + "  // the next tile is there, and nobody needs the one before this");
    writer_.line("__syncthreads();");
    writer_.line(lines.next_stage);
    writer_.close();
    const std::string place = two_tiles ? fmt::format("(step + (slice == {})) % 2, ", slices - 1) : "";
    // After the last tile, stale fragments are loaded but never multiplied.
    const std::string there =
        lines.all_stages ? "" : fmt::format("if (slice < {} || step + 1 < {}) ", slices - 1, lines.steps);
    writer_.line(
        fmt::format("{}{}((slice + 1) % 2, {}, {}(slice + 1) % {});", there, load, lines.reading, place, slices));
    writer_.open("if (slice == 0)");
    for (const std::string& line : lines.fetch_next) writer_.line(line);
    writer_.close();
    writer_.use("multiply_fragments");
    if (form_.tf32)
      for (const GemmOperandTile& f : operand_loader.all())
        writer_.line(fmt::format("round_to_tf32({}[slice % 2]);", f.fragments));
    for (const ContractionTerm& term : loop.terms) {
      const GemmOperandTile &left = operand_loader.left(term.left), &right = operand_loader.right(term.right);
      const std::string mma = mma_function(left, right);
      writer_.use(mma);
      writer_.line(
          fmt::format("multiply_fragments<{}>({}, {}[slice % 2], {}[slice % 2]);", mma,
                      parts_.contains(term.reduction) ? parts_.at(term.reduction) : accumulators_.at(term.reduction),
                      left.fragments, right.fragments));
    }
    for (const Offset& o : offsets)
      writer_.line(
          fmt::format("add_fragments<{}>({}, {}[slice % 2]);", o.other->left, o.accumulators, o.other->fragments));
    if (operands.block != 0 && operand_loader.blocks_per_step() > 1) add_parts_of_slices(loop, operand_loader, slices);
    if (computes) {
      writer_.open("if (slice == 0)");
      compute_next(operand_loader, lines);
      writer_.close();
    }
    writer_.close();
    if (operand_loader.blocks_per_step() == 1) add_parts(loop, operands, operand_loader, lines.steps);
    writer_.close();
    if (operands.block == 0) add_all_parts(loop, operand_loader, "0");
    take_offsets(offsets);
  }

  // A term with a zero point in one operand, and the sums of the other operand along K.
  struct Offset {
    std::string accumulator, accumulators;
    const GemmOperandTile* other;
    ExprId offset;
  };

  std::vector<Offset> declare_offsets(const ContractionLoop& loop, const GemmOperandLoader& operand_loader) {
    std::vector<Offset> offsets;
    for (const ContractionTerm& term : loop.terms) {
      const GemmOperandTile &left = operand_loader.left(term.left), &right = operand_loader.right(term.right);
      for (const auto& [f, other] : {std::pair{&left, &right}, {&right, &left}}) {
        if (f->operand->offset == kNoExpr) continue;
        writer_.use("fragment_sums");
        offsets.push_back({accumulators_.at(term.reduction), writer_.unique("codes"), other, f->operand->offset});
        writer_.line(fmt::format("int {}[{}] = {{}};", offsets.back().accumulators,
                                 (other->left ? tiles_.warp_rows : tiles_.warp_columns) / 8));
      }
    }
    return offsets;
  }

  void take_offsets(const std::vector<Offset>& offsets) {
    if (offsets.empty()) return;
    const ExprEmitter::Mark mark = emitter_.mark();
    if (!contraction_.batch.empty()) bind_flat(emitter_, contraction_.batch, block_.batch, "bcdefgh");
    for (const Offset& o : offsets)
      writer_.line(fmt::format("subtract_zero_point<{}>({}, {}, {}, warp_lane);", !o.other->left, o.accumulator,
                               o.accumulators, emitter_.emit(o.offset)));
    emitter_.rewind(mark);
  }

  void add_all_parts(const ContractionLoop& loop, GemmOperandLoader& operand_loader, const std::string& slot) {
    for (const ContractionTerm& term : loop.terms)
      if (parts_.contains(term.reduction))
        operand_loader.add_parts(term, accumulators_.at(term.reduction), parts_.at(term.reduction), slot);
  }

  // Adds the partial sums if a block of K ends with this step.
  void add_parts(const ContractionLoop& loop, const GemmLoop& operands, GemmOperandLoader& operand_loader,
                 const std::string& all) {
    if (operands.block == 0) return;
    const int steps = operand_loader.steps_per_block();
    if (steps > 1) writer_.open(fmt::format("if (step % {} == {} || step + 1 == {})", steps, steps - 1, all));
    add_all_parts(loop, operand_loader, steps > 1 ? fmt::format("(step / {} % 3)", steps) : "(step % 3)");
    if (steps > 1) writer_.close();
  }

  // Adds the partial sums of blocks that are parts of a tile.
  void add_parts_of_slices(const ContractionLoop& loop, GemmOperandLoader& operand_loader, int slices) {
    const int blocks = operand_loader.blocks_per_step(), each = slices / blocks;
    if (each > 1) writer_.open(fmt::format("if (slice % {} == {})", each, each - 1));
    add_all_parts(loop, operand_loader, fmt::format("(step % 3 * {} + slice / {})", blocks, each));
    if (each > 1) writer_.close();
  }

  void steps_in_lanes(const ContractionLoop& loop, GemmOperandLoader& operand_loader, const StepLines& lines) {
    const bool computes = operand_loader.has_to_compute();
    if (computes) {
      writer_.line(lines.wait);
      compute_first(operand_loader, lines);
    }
    writer_.open(fmt::format("for (int step = 0; step < {}; ++step)", lines.steps));
    if (!computes) writer_.line(lines.wait);
    writer_.line("__syncthreads();  // this tile is there, and nobody needs the one before");
    for (const std::string& line : lines.fetch_next) writer_.line(line);
    if (computes) compute_next(operand_loader, lines);
    writer_.line(fmt::format("const unsigned char* const tile_now = dynamic_shared + {};", lines.reading));
    std::vector<LaneTile> tiles;
    for (const GemmOperandTile& f : operand_loader.all()) {
      std::string at = fmt::format("tile_now{}", f.tile ? fmt::format(" + {}", f.tile) : "");
      if (f.operand->transformed()) at = fmt::format("dynamic_shared + {} + step % 2 * {}", f.tile, f.bytes);
      tiles.push_back({f.left, f.operand->k_major, f.units, f.fragments, std::move(at)});
    }
    std::vector<LaneTerm> terms;
    for (const ContractionTerm& term : loop.terms)
      terms.push_back({accumulators_.at(term.reduction), operand_loader.left(term.left).fragments,
                       operand_loader.right(term.right).fragments});
    multiply_in_lanes(writer_, tiles_, tiles, terms);
    writer_.line(lines.next_stage);
    writer_.close();
  }

  const Kernel& kernel_;
  const Contraction& contraction_;  // what is multiplied
  const Contraction& results_;      // the epilogue uses its axes
  const GemmForm& form_;
  const RowGemm* rows_;
  const GemmTiles& tiles_;
  const ExprPool& pool_;
  const Graph& graph_;
  KernelWriter& writer_;
  ExprEmitter emitter_;
  std::map<ExprId, std::string> accumulators_, parts_;  // parts: partial sums of a block of K, or integers
  GemmBlockContext block_;
  std::string split_;  // split-K: the block's split
};

}  // namespace

KernelSource emit_gemm(const Kernel& kernel, const Contraction& contraction, const GemmForm& form, const Graph& graph) {
  KernelWriter writer(graph, needs_wide_index(kernel, graph, point_count(kernel.pool, kernel.outputs.at(0).axes)));
  return GemmEmitter(kernel, contraction, form, nullptr, graph, writer).emit();
}

KernelSource emit_pipelined_row_gemm(const RowGemm& rows, const GemmForm& form, const Graph& graph) {
  const Kernel& kernel = rows.kernel;
  KernelWriter writer(graph, needs_wide_index(kernel, graph, point_count(kernel.pool, kernel.outputs.at(0).axes)));
  return GemmEmitter(kernel, rows.contraction, form, &rows, graph, writer).emit();
}

}  // namespace fusec
