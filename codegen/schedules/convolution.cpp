#include "codegen/schedules/convolution.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "codegen/emit_expr.h"
#include "codegen/schedules/direct.h"
#include "codegen/schedules/gemm_block.h"
#include "codegen/schedules/gemm_epilogue.h"
#include "ir/type.h"

namespace fusec {
namespace {

// One factor's tile.
struct Tile {
  const ConvolutionFactor* factor = nullptr;
  bool left = false;
  bool along_depth = true;  // its lines run along the depth
  int across = 0;
  int units = 0;            // of 16 bytes in a line
  std::int64_t offset = 0;  // in its stage
  std::string table, from, outside, line, part, to, waiting, fragments;
};

class Convolution {
 public:
  Convolution(const Kernel& kernel, const Product& product, const ConvolutionForm& form, const Graph& graph,
              KernelWriter& writer)
      : kernel_(kernel),
        product_(product),
        form_(form),
        tiles_(form.tiles),
        pool_(kernel.pool),
        graph_(graph),
        writer_(writer),
        emitter_(kernel, writer),
        left_(tile(form.left, true)),
        right_(tile(form.right, false)) {}

  KernelSource emit() {
    for (const std::uint32_t a : product_.shared_rest) emitter_.bind(a, "0");
    writer_.use("dynamic_shared");
    writer_.use("load_matrices");
    writer_.use("copy_pipeline");
    writer_.use("swizzle");
    stages_ = writer_.unique("stages");
    writer_.line(fmt::format("const unsigned {} = shared_address(dynamic_shared);", stages_));
    place_block();
    sum_ = writer_.unique("sum");
    declare_sum(writer_, tiles_, form_.tensor_cores(), ScalarType::kFloat32, sum_);
    for (Tile* t : {&left_, &right_})
      if (t->factor->tabled) make_table(*t);
    for (Tile* t : {&left_, &right_}) declare(*t);
    if (form_.left.tabled || form_.right.tabled) writer_.line("__syncthreads();  // the tables are there");
    main_loop();
    emit_epilogue({kernel_, product_, as_gemm(), {{reduction(), sum_}}, row0_, column0_, batch_}, graph_, writer_);
    KernelSource source = writer_.finish(comment(), tiles_.threads(), least_blocks(tiles_, form_.tensor_cores(), 1));
    source.name = kernel_name(graph_, kernel_.nodes);
    source.grid[0] = simplify(tiles_down() * tiles_across() * count(product_.batch), pool_.bounds());
    source.dynamic_shared = std::max(form_.shared_bytes(), shared_bytes(as_gemm()));
    source.schedule = form_.tensor_cores() ? "convolution_mma" : "convolution";
    return source;
  }

 private:
  const std::vector<std::uint32_t>& depth() const { return product_.loops[0].depth; }
  ExprId reduction() const { return product_.loops[0].terms[0].reduction; }
  IndexExpr count(const std::vector<std::uint32_t>& axes) const { return point_count(pool_, axes); }
  IndexExpr tiles_down() const { return simplify(ceil_div(count(product_.rows), tiles_.rows), pool_.bounds()); }
  IndexExpr tiles_across() const { return simplify(ceil_div(count(product_.columns), tiles_.columns), pool_.bounds()); }
  std::string text(const IndexExpr& e) { return emitter_.index_text().tight(simplify(e, pool_.bounds())); }
  int together() const { return 16 / form_.element_bytes(); }
  const std::vector<std::uint32_t>& across(const Tile& t) const { return t.left ? product_.rows : product_.columns; }
  std::int64_t steps() const { return form_.entries() / tiles_.depth; }

  Tile tile(const ConvolutionFactor& factor, bool left) {
    Tile t{.factor = &factor, .left = left};
    t.along_depth = form_.tensor_cores() || !factor.gathered();
    t.across = left ? tiles_.rows : tiles_.columns;
    t.units = (t.along_depth ? tiles_.depth : t.across) / together();
    t.offset = left ? 0 : std::int64_t{form_.element_bytes()} * tiles_.rows * tiles_.depth;
    const std::string name = writer_.wish(pool_[factor.load].source);
    for (auto [member, wish] : {std::pair{&t.table, "_steps"},
                                {&t.from, "_from"},
                                {&t.outside, "_outside"},
                                {&t.line, "_line"},
                                {&t.part, "_part"},
                                {&t.to, "_to"},
                                {&t.waiting, "_waiting"}})
      *member = writer_.unique(name + wish);
    t.fragments = writer_.unique(left ? "left" : "right");
    return t;
  }

  GemmForm as_gemm() const {
    GemmForm gemm;
    gemm.dtype = form_.dtype;
    gemm.tiles = tiles_;
    gemm.loops.resize(1);
    for (const Tile* t : {&left_, &right_}) {
      GemmOperand operand;
      operand.load = t->factor->load;
      operand.along_depth = t->along_depth;
      (t->left ? gemm.loops[0].left : gemm.loops[0].right).push_back(operand);
    }
    return gemm;
  }

  std::vector<std::string> comment() const {
    std::vector<std::string> lines = kernel_comment(graph_, kernel_);
    lines.push_back(tiles_comment(tiles_, form_.tensor_cores()) +
                    " Where an element lies is what its column adds and what k adds, by a table.");
    return lines;
  }

  void place_block() {
    row0_ = writer_.unique("row0");
    column0_ = writer_.unique("column0");
    const auto [tile, batch] = fusec::place_block(emitter_, product_, tiles_down(), tiles_across());
    batch_ = batch;
    writer_.line(fmt::format("const int {0} = {1}.row * {2}, {3} = {1}.column * {4};", row0_, tile, tiles_.rows,
                             column0_, tiles_.columns));
    place_warps(writer_, tiles_);
  }

  // --- gathered elements

  void make_table(const Tile& t) {
    writer_.use("gathered");
    const std::int64_t at =
        form_.stage_bytes() * tiles_.stages + (t.left || !form_.left.tabled ? 0 : 8 * form_.entries());
    const std::string k = writer_.unique("k"), add = writer_.unique("add"), taps = writer_.unique("taps");
    writer_.line(fmt::format("DepthStep* const {} = (DepthStep*)(dynamic_shared + {});", t.table, at));
    writer_.open(
        fmt::format("for (int {0} = threadIdx.x; {0} < {1}; {0} += {2})", k, form_.entries(), tiles_.threads()));
    writer_.line(fmt::format("int {} = 0;", add));
    writer_.line(fmt::format("unsigned {} = 1u << 31;", taps));
    writer_.open(fmt::format("if ({} < {})", k, form_.depth));
    const ExprEmitter::Mark mark = emitter_.mark();
    bind_flat(emitter_, depth(), k, "kluvw");
    writer_.line(fmt::format("{} = {};", add, emitter_.index(t.factor->depth)));
    std::string bits;
    for (const ConvolutionTaps& group : t.factor->taps) {
      IndexExpr bit = 0;
      for (const std::uint32_t a : group.axes) bit = bit * pool_.extent(a) + IndexExpr::axis(a);
      bits += fmt::format("{}1u << ({})", bits.empty() ? "" : " | ",
                          emitter_.index(simplify(bit + group.first_bit, pool_.bounds())));
    }
    writer_.line(fmt::format("{} = {};", taps, bits.empty() ? "0" : bits));
    emitter_.rewind(mark);
    writer_.close();
    writer_.line(fmt::format("{}[{}] = {{{}, {}}};", t.table, k, add, taps));
    writer_.close();
  }

  void declare(const Tile& t) {
    switch (t.factor->fill) {
      case ConvolutionFill::kCopies:
        return declare_copy(t);
      case ConvolutionFill::kStrips:
        return declare_strips(t);
      case ConvolutionFill::kGathered:
        return declare_gather(t);
    }
  }

  // This thread's line: where it begins, and which taps are outside.
  void declare_gather(const Tile& t) {
    const ExprNode& load = pool_[t.factor->load];
    writer_.line(
        fmt::format("const int {} = threadIdx.x % {}, {} = threadIdx.x / {};", t.line, t.across, t.part, t.across));
    writer_.line(fmt::format("const {}* {} = {};", storage_type(load.dtype), t.from, writer_.input(load.source)));
    writer_.line(fmt::format("unsigned {} = ~0u;", t.outside));
    find_line(t, t.line, t.from, t.outside);
    writer_.use(form_.tensor_cores() ? "gather_16_bits" : "gather_32_bits");
    if (!form_.tensor_cores()) return;
    writer_.line(fmt::format("EightOnTheWay {}[{}];", t.waiting, units_of_thread(t)));
  }

  // Where a line of the tile begins, and its taps outside; both stay as they are where there is no such row or column.
  void find_line(const Tile& t, const std::string& line, const std::string& from, const std::string& outside) {
    const std::string at = writer_.unique(t.left ? "row" : "column");
    writer_.line(fmt::format("const int {} = {} + {};", at, t.left ? row0_ : column0_, line));
    writer_.open(fmt::format("if ({} < {})", at, text(count(across(t)))));
    const ExprEmitter::Mark mark = emitter_.mark();
    bind_flat(emitter_, across(t), at, t.left ? "mnopq" : "ijlst");
    writer_.line(fmt::format("{} += {};", from, emitter_.index(t.factor->across)));
    writer_.line(fmt::format("{} = 1u << 31;", outside));
    for (const ConvolutionTaps& group : t.factor->taps) find_outside(group, outside);
    emitter_.rewind(mark);
    writer_.close();
  }

  void find_outside(const ConvolutionTaps& group, const std::string& outside) {
    const std::string tap = writer_.unique("tap");
    writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", tap, text(count(group.axes))));
    const ExprEmitter::Mark mark = emitter_.mark();
    if (!group.axes.empty()) bind_flat(emitter_, group.axes, tap, "kluvw");
    std::string holds;
    for (const std::string& guard : emitter_.emit(group.guards))
      holds += fmt::format("{}({})", holds.empty() ? "" : " && ", guard);
    writer_.line(fmt::format("if (!({})) {} |= 1u << ({} + {});", holds, outside, group.first_bit, tap));
    emitter_.rewind(mark);
    writer_.close();
  }

  // Of 16-bit elements: eights of its line that a thread gathers; of float32: elements.
  int units_of_thread(const Tile& t) const {
    const int of_line = form_.tensor_cores() ? t.units : tiles_.depth;
    return of_line / (tiles_.threads() / t.across);
  }

  void gather_to_registers(const Tile& t, const std::string& step) {
    writer_.line("#pragma unroll");
    writer_.line(fmt::format("for (int i = 0; i < {}; ++i)", units_of_thread(t)));
    writer_.line(fmt::format("  {}[i] = gather_eight({}, {} + ({} * {} + {} * {} + i) * 8, {});", t.waiting, t.from,
                             t.table, step, t.units, t.part, units_of_thread(t), t.outside));
  }

  void store_gathered(const Tile& t, const std::string& into) {
    writer_.line("#pragma unroll");
    writer_.line(fmt::format("for (int i = 0; i < {}; ++i)", units_of_thread(t)));
    writer_.line(fmt::format("  store_eight(dynamic_shared + {} + {} + swizzled<{}>({}, {} * {} + i), {}[i]);", into,
                             t.offset, t.units, t.line, t.part, units_of_thread(t), t.waiting));
  }

  // Neighbouring threads have neighbouring columns: what they copy at a time goes to different banks.
  void gather_asynchronously(const Tile& t, const std::string& into, const std::string& step) {
    writer_.line("#pragma unroll");
    writer_.open(fmt::format("for (int i = 0; i < {}; ++i)", units_of_thread(t)));
    writer_.line(fmt::format("const int k = {} + i * {};", t.part, tiles_.threads() / t.across));
    writer_.line(
        fmt::format("gather_one({} + {} + {} + swizzled<{}>(k, {} / 4) + {} % 4 * 4, {}, {}[{} * {} + k], {});",
                    stages_, into, t.offset, t.units, t.line, t.line, t.from, t.table, step, tiles_.depth, t.outside));
    writer_.close();
  }

  // --- what is copied as it lies

  int pass(const Tile& t) const { return tiles_.threads() / t.units; }
  int copies(const Tile& t) const { return std::max(1, t.across / pass(t)); }

  bool fills(const Tile& t) const { return proves_multiple_of(count(across(t)), t.across, pool_.bounds()); }

  // The flattened row or column of a tile's line, or the last one for what lies beyond; binds its axes.
  void bind_line(const Tile& t, const std::string& line) {
    const std::string at = writer_.unique(t.left ? "row" : "column");
    std::string here = fmt::format("{} + {}", t.left ? row0_ : column0_, line);
    if (!fills(t)) here = fmt::format("min({}, {})", here, text(count(across(t)) - 1));
    writer_.line(fmt::format("const int {} = {};", at, here));
    bind_flat(emitter_, across(t), at, t.left ? "mnopq" : "ijlst");
  }

  std::string is_there(const Tile& t, const std::string& line) {
    return fills(t) ? "" : fmt::format("{} + {} < {}", t.left ? row0_ : column0_, line, text(count(across(t))));
  }

  void declare_copy(const Tile& t) {
    const ExprNode& load = pool_[t.factor->load];
    writer_.line(
        fmt::format("const int {} = threadIdx.x % {}, {} = threadIdx.x / {};", t.part, t.units, t.line, t.units));
    writer_.line(fmt::format("const {}* {}[{}];", storage_type(load.dtype), t.from, copies(t)));
    writer_.line("#pragma unroll");
    writer_.open(fmt::format("for (int i = 0; i < {}; ++i)", copies(t)));
    const ExprEmitter::Mark mark = emitter_.mark();
    bind_line(t, fmt::format("{} + i * {}", t.line, pass(t)));
    writer_.line(fmt::format("{}[i] = {} + ({} + {} * {});", t.from, writer_.input(load.source),
                             emitter_.index(t.factor->across), t.part, together()));
    emitter_.rewind(mark);
    writer_.close();
  }

  void copy(const Tile& t, const std::string& into, const std::string& step) {
    const bool some = t.across < pass(t);
    if (some) writer_.open(fmt::format("if (threadIdx.x < {})", t.across * t.units));
    writer_.line("#pragma unroll");
    writer_.open(fmt::format("for (int i = 0; i < {}; ++i)", copies(t)));
    const std::string line = fmt::format("{} + i * {}", t.line, pass(t));
    std::string there = is_there(t, line);
    if (form_.depth % tiles_.depth != 0)
      there += fmt::format("{}{} * {} + {} * {} < {}", there.empty() ? "" : " && ", step, tiles_.depth, t.part,
                           together(), form_.depth);
    writer_.line(fmt::format("copy_16_bytes({} + {} + {} + swizzled<{}>({}, {}), {}[i]{});", stages_, into, t.offset,
                             t.units, line, t.part, t.from, there.empty() ? "" : ", " + there));
    writer_.line(fmt::format("{}[i] += {};", t.from, tiles_.depth));
    writer_.close();
    if (some) writer_.close();
  }

  // --- strips: neighbouring threads take neighbours along the depth

  int lines_of_thread(const Tile& t) const { return t.across / (tiles_.threads() / tiles_.depth); }
  std::string strip_line(const Tile& t) const {
    return fmt::format("{} + i * {}", t.line, tiles_.threads() / tiles_.depth);
  }

  void declare_strips(const Tile& t) {
    const ExprNode& load = pool_[t.factor->load];
    writer_.line(fmt::format("const int {} = threadIdx.x % {}, {} = threadIdx.x / {};", t.part, tiles_.depth, t.line,
                             tiles_.depth));
    writer_.line(fmt::format("const {}* {}[{}];", storage_type(load.dtype), t.from, lines_of_thread(t)));
    if (t.factor->tabled) return declare_tabled_strips(t);
    writer_.line("#pragma unroll");
    writer_.open(fmt::format("for (int i = 0; i < {}; ++i)", lines_of_thread(t)));
    const ExprEmitter::Mark mark = emitter_.mark();
    bind_line(t, strip_line(t));
    writer_.line(fmt::format("{}[i] = {} + ({} + {});", t.from, writer_.input(load.source),
                             emitter_.index(t.factor->across), t.part));
    emitter_.rewind(mark);
    writer_.close();
    if (form_.tensor_cores())
      writer_.line(fmt::format("unsigned short {}[{}];", t.waiting, lines_of_thread(t)));
    else
      writer_.use("copy_one");
  }

  void declare_tabled_strips(const Tile& t) {
    writer_.use("gather_32_bits");
    writer_.line(fmt::format("unsigned {}[{}];", t.outside, lines_of_thread(t)));
    writer_.line("#pragma unroll");
    writer_.open(fmt::format("for (int i = 0; i < {}; ++i)", lines_of_thread(t)));
    writer_.line(
        fmt::format("{}[i] = {}, {}[i] = ~0u;", t.from, writer_.input(pool_[t.factor->load].source), t.outside));
    find_line(t, strip_line(t), t.from + "[i]", t.outside + "[i]");
    writer_.close();
  }

  // Opens a loop over the thread's elements of a tile; what must hold for the element to be there.
  std::string open_strips(const Tile& t, const std::string& step) {
    writer_.line("#pragma unroll");
    writer_.open(fmt::format("for (int i = 0; i < {}; ++i)", lines_of_thread(t)));
    std::string there = is_there(t, strip_line(t));
    if (form_.depth % tiles_.depth != 0)
      there += fmt::format("{}{} * {} + {} < {}", there.empty() ? "" : " && ", step, tiles_.depth, t.part, form_.depth);
    return there.empty() ? "true" : there;
  }

  std::string strip_place(const Tile& t) const {
    return fmt::format("{} + swizzled<{}>({}, {} / {}) + {} % {} * {}", t.offset, t.units, strip_line(t), t.part,
                       together(), t.part, together(), form_.element_bytes());
  }

  void strips_to_registers(const Tile& t, const std::string& step) {
    const std::string there = open_strips(t, step);
    writer_.line(fmt::format("{}[i] = 0;", t.waiting));
    writer_.line(fmt::format("if ({}) {}[i] = {}[i][{} * {}];", there, t.waiting, t.from, step, tiles_.depth));
    writer_.close();
  }

  void store_strips(const Tile& t, const std::string& into) {
    writer_.line("#pragma unroll");
    writer_.line(fmt::format("for (int i = 0; i < {}; ++i)", lines_of_thread(t)));
    writer_.line(
        fmt::format("  *(unsigned short*)(dynamic_shared + {} + {}) = {}[i];", into, strip_place(t), t.waiting));
  }

  void strips_asynchronously(const Tile& t, const std::string& into, const std::string& step) {
    if (t.factor->tabled) {
      const std::string here = writer_.unique("here");
      writer_.line(fmt::format("const DepthStep {} = {}[{} * {} + {}];", here, t.table, step, tiles_.depth, t.part));
      writer_.line("#pragma unroll");
      writer_.line(fmt::format("for (int i = 0; i < {}; ++i)", lines_of_thread(t)));
      writer_.line(fmt::format("  gather_one({} + {} + {}, {}[i], {}, {}[i]);", stages_, into, strip_place(t), t.from,
                               here, t.outside));
      return;
    }
    const std::string there = open_strips(t, step);
    writer_.line(fmt::format("const bool there = {};", there));
    writer_.line(fmt::format("copy_one({} + {} + {}, {}[i] + (there ? {} * {} : 0), there);", stages_, into,
                             strip_place(t), t.from, step, tiles_.depth));
    writer_.close();
  }

  // --- the loop

  // By way of registers, a step ahead.
  bool waits(const Tile& t) const { return form_.tensor_cores() && t.factor->fill != ConvolutionFill::kCopies; }

  void to_registers(const Tile& t, const std::string& step) {
    t.factor->gathered() ? gather_to_registers(t, step) : strips_to_registers(t, step);
  }

  void fill(const Tile& t) {
    const bool gathered = t.factor->gathered();
    if (t.factor->fill == ConvolutionFill::kCopies)
      copy(t, "into", "step");
    else if (form_.tensor_cores())
      gathered ? store_gathered(t, "into") : store_strips(t, "into");
    else
      gathered ? gather_asynchronously(t, "into", "step") : strips_asynchronously(t, "into", "step");
  }

  std::string declare_fetch() {
    const std::string fetch = writer_.unique("fetch");
    for (const Tile* t : {&left_, &right_})
      if (waits(*t)) to_registers(*t, "0");
    writer_.open(fmt::format("const auto {} = [&](int step, int into)", fetch));
    for (const Tile* t : {&left_, &right_}) fill(*t);
    if (waits(left_) || waits(right_)) {
      writer_.open(fmt::format("if (step + 1 < {})", steps()));
      for (const Tile* t : {&left_, &right_})
        if (waits(*t)) to_registers(*t, "(step + 1)");
      writer_.close();
    }
    writer_.close("};");
    return fetch;
  }

  void main_loop() {
    const std::string fetch = declare_fetch();
    const int ahead = tiles_.stages - 1;
    const std::int64_t bytes = form_.stage_bytes();
    for (int s = 0; s < ahead; ++s) {
      if (s < steps()) writer_.line(fmt::format("{}({}, {});", fetch, s, s * bytes));
      writer_.line("commit_copies();");
    }
    writer_.line(fmt::format("int reading = 0, writing = {};", ahead * bytes));
    const std::string next_reading = fmt::format("reading = reading == {0} ? 0 : reading + {1};", ahead * bytes, bytes);
    const std::vector<std::string> fetch_next = {
        fmt::format("if (step + {0} < {1}) {2}(step + {0}, writing);", ahead, steps(), fetch), "commit_copies();",
        fmt::format("writing = writing == {0} ? 0 : writing + {1};", ahead * bytes, bytes)};
    const std::string wait = fmt::format("wait_for_groups<{}>();", ahead - 1);
    form_.tensor_cores() ? steps_on_tensor_cores(wait, next_reading, fetch_next)
                         : steps_in_lanes(wait, next_reading, fetch_next);
  }

  // Fragments of the next slice are loaded before the products of this one.
  void steps_on_tensor_cores(const std::string& wait, const std::string& next_reading,
                             const std::vector<std::string>& fetch_next) {
    writer_.use("tile_fragments");
    writer_.line(fmt::format("unsigned {}[2][{}][4], {}[2][{}][4];", left_.fragments, tiles_.warp_rows / 16,
                             right_.fragments, tiles_.warp_columns / 16));
    writer_.open("const auto load = [&](int buffer, unsigned stage, int depth)");
    for (const Tile* t : {&left_, &right_})
      writer_.line(fmt::format("load_fragments<{}, true, {}>({}[buffer], stage + {}, {}, depth, warp_lane);", t->left,
                               t->units, t->fragments, t->offset, t->left ? "warp_row" : "warp_column"));
    writer_.close("};");
    const int slices = tiles_.depth / 16;
    writer_.line(wait);
    writer_.line("__syncthreads();");
    writer_.line(fmt::format("load(0, {}, 0);", stages_));
    writer_.open(fmt::format("for (int step = 0; step < {}; ++step)", steps()));
    writer_.line("#pragma unroll");
    writer_.open(fmt::format("for (int slice = 0; slice < {}; ++slice)", slices));
    writer_.open(fmt::format("if (slice == {})", slices - 1));
    writer_.line(wait + "  // the next tile is there, and nobody needs the one before this");
    writer_.line("__syncthreads();");
    writer_.line(next_reading);
    writer_.close();
    writer_.line(
        fmt::format("if (slice < {} || step + 1 < {}) load((slice + 1) % 2, {} + reading, (slice + 1) % {} * 16);",
                    slices - 1, steps(), stages_, slices));
    writer_.open("if (slice == 0)");
    for (const std::string& line : fetch_next) writer_.line(line);
    writer_.close();
    const std::string mma = form_.dtype == DType::kBFloat16 ? "mma_bf16" : "mma_fp16";
    writer_.use("multiply_fragments");
    writer_.use(mma);
    writer_.line(fmt::format("multiply_fragments<{}>({}, {}[slice % 2], {}[slice % 2]);", mma, sum_, left_.fragments,
                             right_.fragments));
    writer_.close();
    writer_.close();
  }

  void steps_in_lanes(const std::string& wait, const std::string& next_reading,
                      const std::vector<std::string>& fetch_next) {
    writer_.open(fmt::format("for (int step = 0; step < {}; ++step)", steps()));
    writer_.line(wait);
    writer_.line("__syncthreads();  // this tile is there, and nobody needs the one before");
    for (const std::string& line : fetch_next) writer_.line(line);
    std::vector<LaneTile> tiles;
    for (const Tile* t : {&left_, &right_})
      tiles.push_back(
          {t->left, t->along_depth, t->units, t->fragments, fmt::format("dynamic_shared + reading + {}", t->offset)});
    multiply_in_lanes(writer_, tiles_, tiles, std::vector<LaneTerm>{{sum_, left_.fragments, right_.fragments}});
    writer_.line(next_reading);
    writer_.close();
  }

  const Kernel& kernel_;
  const Product& product_;
  const ConvolutionForm& form_;
  const GemmTiles& tiles_;
  const ExprPool& pool_;
  const Graph& graph_;
  KernelWriter& writer_;
  ExprEmitter emitter_;
  std::string stages_, row0_, column0_, batch_, sum_;
  Tile left_, right_;
};

}  // namespace

KernelSource convolution(const Kernel& kernel, const Product& product, const ConvolutionForm& form,
                         const Graph& graph) {
  KernelWriter writer(graph, false);
  return Convolution(kernel, product, form, graph, writer).emit();
}

}  // namespace fusec
