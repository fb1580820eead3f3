#include "codegen/schedules/few_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "codegen/emit_expr.h"
#include "codegen/schedules/column_eights.h"
#include "codegen/schedules/direct.h"
#include "codegen/schedules/vector_access.h"
#include "codegen/schedules/widened_codes.h"
#include "ir/type.h"

namespace fusec {
namespace {

// A factor's values on the way: words as they come from memory, by load, and as operands.
struct Stream {
  const FewRowsFactor* factor = nullptr;
  bool left = false;
  ExprId value = kNoExpr;               // what is computed, where the factor is not plain: without its last rounding
  std::map<ExprId, std::string> words;  // by load: [step][which]
  std::string operands;                 // [which]
  // Of codes that are widened two at a time: their zero points' and scales' bits, [step][which]; "" for none.
  std::optional<WidenedCodes> codes = std::nullopt;
  std::string zeros, scales;
  std::string block_scales;  // what sums of the step are multiplied by, [step][which]
};

class FewRows {
 public:
  FewRows(const Kernel& kernel, const Product& product, const FewRowsForm& form, const Graph& graph,
          KernelWriter& writer)
      : kernel_(kernel),
        product_(product),
        form_(form),
        pool_(form.kernel.pool),
        graph_(graph),
        writer_(writer),
        emitter_(form.kernel, writer) {}

  KernelSource emit() {
    writer_.use("dynamic_shared");
    for (const std::uint32_t a : form_.ones) emitter_.bind(a, "0");
    place_block();
    row_values();
    for (std::size_t i = 0; i < form_.loops.size(); ++i) declare_sums(form_.loops[i]);
    for (std::size_t i = 0; i < form_.loops.size(); ++i) {
      if (form_.loops.size() > 1) writer_.open("");
      main_loop(form_.loops[i]);
      if (form_.loops.size() > 1) writer_.close();
    }
    stage();
    finish();
    KernelSource source = writer_.finish(comment(), form_.block.warps * 32, 1);
    source.name = kernel_name(graph_, kernel_.nodes);
    source.grid[0] = simplify(tiles_across() * count(form_.batch), pool_.bounds());
    source.dynamic_shared = shared_bytes(form_);
    source.schedule = "few_rows_mma";
    return source;
  }

 private:
  IndexExpr count(const std::vector<std::uint32_t>& axes) const {
    return simplify(point_count(pool_, axes), pool_.bounds());
  }
  std::string text(const IndexExpr& e) { return emitter_.index_text().tight(simplify(e, pool_.bounds())); }
  std::string integer() const { return writer_.index_type(); }
  int columns_a_lane() const { return form_.along_depth ? 1 : 8; }  // neighbours, of one load
  IndexExpr tiles_across() const {
    return simplify(ceil_div(count(form_.columns), form_.block.columns / columns_a_lane()), pool_.bounds());
  }
  int pieces() const { return form_.block.columns / 16; }
  int eights() const { return form_.eights_of_rows(); }
  // Of a stream in one step: columns, or lines along the depth where neighbours lie across it; or rows.
  int which(const Stream& s) const { return s.left ? eights() : form_.along_depth ? 2 * pieces() : 8; }
  int operand_words(int elements) const { return elements * bits(form_.dtype) / 32; }
  std::string dtype_name() const { return form_.dtype == DType::kInt8 ? "s8" : short_name(form_.dtype); }
  std::string_view sum_type() const { return form_.whole_sums ? "int" : "float"; }
  bool rows_fill() const { return proves_multiple_of(count(form_.rows), 8, pool_.bounds()); }

  std::vector<std::string> comment() const {
    std::vector<std::string> lines = kernel_comment(graph_, kernel_);
    lines.push_back(fmt::format(
        "A block makes all {}rows of {} columns on tensor cores; its {} warps share the depth, {} steps of {} each on "
        "the way.",
        count(form_.rows).is_constant() ? "" : "of at most 32 ", form_.block.columns, form_.block.warps,
        form_.block.ahead, 4 * form_.together));
    return lines;
  }

  void place_block() {
    column0_ = writer_.unique("column0");
    std::string tile = "(int)blockIdx.x";
    if (!form_.batch.empty()) {
      const std::string across = text(tiles_across());
      batch_ = writer_.unique("batch");
      writer_.line(fmt::format("const {} {} = (int)blockIdx.x / {};", integer(), batch_, across));
      bind_flat(emitter_, form_.batch, batch_, "bcdefgh");
      tile += " % " + across;
    }
    writer_.line(
        fmt::format("const {} {} = {} * {};", integer(), column0_, tile, form_.block.columns / columns_a_lane()));
    writer_.line("const int warp = threadIdx.x / 32, warp_lane = threadIdx.x % 32;");
    writer_.line("const int group = warp_lane / 4, part = warp_lane % 4;");
  }

  // Reductions that are one value for a row, by a warp a row.
  void row_values() {
    if (form_.row_values.empty()) return;
    for (const ExprId id : form_.row_values) {
      of_row_.push_back(writer_.unique("of_row"));
      writer_.line(fmt::format("__shared__ {} {}[{}];", c_type(pool_[id].type), of_row_.back(), form_.most_rows));
    }
    const std::string row = writer_.unique("row");
    writer_.open(
        fmt::format("for (int {0} = warp; {0} < {1}; {0} += {2})", row, text(count(form_.rows)), form_.block.warps));
    const ExprEmitter::Mark mark = emitter_.mark();
    if (!form_.rows.empty()) bind_flat(emitter_, form_.rows, row, "mnopq");
    emitter_.reduce_hook = [this](const std::vector<ExprId>& reductions) { return reduce_by_lanes(reductions); };
    const std::vector<std::string> values = emitter_.emit(form_.row_values);
    emitter_.reduce_hook = nullptr;
    for (std::size_t i = 0; i < values.size(); ++i)
      writer_.line(fmt::format("if (warp_lane == 0) {}[{}] = {};", of_row_[i], row, values[i]));
    emitter_.rewind(mark);
    writer_.close();
    writer_.line("__syncthreads();");
  }

  bool reduce_by_lanes(const std::vector<ExprId>& reductions) {
    std::vector<ExprEmitter::Accumulator> accumulators;
    for (const ExprId r : reductions) {
      accumulators.push_back(emitter_.accumulator(r));
      const ExprEmitter::Accumulator& a = accumulators.back();
      writer_.line(fmt::format("{} {}{}{};", a.type, a.name, a.extreme ? "" : " = ", a.identity));
    }
    const ExprEmitter::Mark outside = emitter_.mark();
    const std::vector<std::uint32_t>& axes = pool_[reductions[0]].axes;
    const std::string k = writer_.unique("k");
    writer_.open(fmt::format("for ({0} {1} = warp_lane; {1} < {2}; {1} += 32)", integer(), k, text(count(axes))));
    bind_flat(emitter_, axes, k, "cdefghuvw");
    emitter_.accumulate(accumulators);
    emitter_.rewind(outside);
    writer_.close();
    for (const ExprEmitter::Accumulator& a : accumulators) {
      writer_.use("combine");
      writer_.use("warp_reduce");
      if (a.extreme) writer_.use("extreme_lanes");
      writer_.line(fmt::format("{0} = warp_reduce({0}, {1});", a.name, a.combine));
      emitter_.define(a.reduction, emitter_.result(a));
    }
    return true;
  }

  void declare_sums(const FewRowsLoop& loop) {
    for (const ProductTerm& term : loop.terms) {
      std::string& sum = sums_[term.reduction] = writer_.unique("sum");
      writer_.line(fmt::format("{} {}[{}][{}][4] = {{}};", sum_type(), sum, pieces(), eights()));
    }
  }

  // --- the loop along the depth

  void main_loop(const FewRowsLoop& loop) {
    const IndexExpr units = count(loop.depth);
    const int a_turn = form_.block.warps * form_.block.ahead;
    steps_ = text(ceil_div(units, 4));
    units_ = text(units);
    whole_ = proves_multiple_of(units, 4 * a_turn, pool_.bounds());
    turn_ = writer_.unique("turn");
    ahead_ = writer_.unique("ahead");
    std::vector<Stream> streams;
    for (const bool left : {true, false})
      for (const FewRowsFactor& f : left ? loop.left : loop.right) streams.push_back({.factor = &f, .left = left});
    if (!rows_fill()) declare_row_there();
    writer_.line("#pragma unroll 1");
    writer_.open(fmt::format("for (int {0} = warp; {0} < {1}; {0} += {2})", turn_, steps_, a_turn));
    for (Stream& s : streams) declare_words(s, loop);
    open_step();
    for (Stream& s : streams) load(s, loop);
    writer_.close();
    open_step();
    const bool computes = std::ranges::any_of(streams, [](const Stream& s) { return !s.left && !s.factor->plain; });
    const bool in_pieces = form_.along_depth && (computes || loop.scaled() || form_.dtype == DType::kInt8);
    for (Stream& s : streams)
      if (s.left || !in_pieces) make_operands(s, loop);
    const std::size_t left_count = loop.left.size();
    if (in_pieces) {
      multiply_in_pieces(streams, loop);
    } else {
      writer_.use(fmt::format("multiply_few_{}", dtype_name()));
      for (const ProductTerm& term : loop.terms)
        writer_.line(fmt::format("multiply_few_{}({}, {}, {});", dtype_name(), sums_.at(term.reduction),
                                 streams[left_count + term.right].operands, streams[term.left].operands));
    }
    writer_.close();
    writer_.close();
  }

  // Columns that are computed are multiplied before the next ones are: else all of them are in registers.
  void multiply_in_pieces(std::vector<Stream>& streams, const FewRowsLoop& loop) {
    writer_.use(fmt::format("multiply_piece_{}", dtype_name()));
    piece_ = writer_.unique("piece");
    writer_.line("#pragma unroll");
    writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", piece_, pieces()));
    for (Stream& s : streams)
      if (!s.left) make_operands(s, loop);
    const auto column = [&](const Stream& s, int i) {
      return s.factor->plain ? fmt::format("{}[2 * {} + {}]", s.operands, piece_, i)
                             : fmt::format("{}[{}]", s.operands, i);
    };
    for (const ProductTerm& term : loop.terms) {
      const Stream& s = streams[loop.left.size() + term.right];
      const std::string sum = fmt::format("{}[{}]", sums_.at(term.reduction), piece_);
      const std::string part = loop.scaled() ? writer_.unique("part") : sum;
      if (loop.scaled())
        writer_.line(
            fmt::format("{} {}[{}][4] = {{}};", form_.dtype == DType::kInt8 ? "int" : "float", part, eights()));
      writer_.line(fmt::format("multiply_piece_{}({}, {}, {}, {});", dtype_name(), part, column(s, 0), column(s, 1),
                               streams[term.left].operands));
      if (!loop.scaled()) continue;
      writer_.use("add_scaled_piece");
      const auto scale = [&](int i) {
        return s.block_scales.empty() ? "1.0f" : fmt::format("{}[{}][2 * {} + {}]", s.block_scales, ahead_, piece_, i);
      };
      writer_.line(fmt::format("add_scaled_piece({}, {}, {}, {});", sum, part, scale(0), scale(1)));
    }
    writer_.close();
    piece_.clear();
  }

  void declare_row_there() {
    row_there_ = writer_.unique("row_there");
    writer_.line(fmt::format("bool {}[{}];", row_there_, eights()));
    writer_.line("#pragma unroll");
    writer_.line(fmt::format("for (int m = 0; m < {0}; ++m) {1}[m] = 8 * m + group < {2};", eights(), row_there_,
                             text(count(form_.rows))));
  }

  void open_step() {
    writer_.line("#pragma unroll");
    writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", ahead_, form_.block.ahead));
    unit_ = writer_.unique("unit");
    writer_.line(
        fmt::format("const {} {} = ({} + {} * {}) * 4 + part;", integer(), unit_, turn_, ahead_, form_.block.warps));
  }

  ExprId root_of(const Stream& s) const {
    if (s.factor->plain) return s.factor->factor;
    const ExprNode& n = pool_[s.factor->factor];
    return n.op == ExprOp::kRound && n.dtype == form_.dtype ? n.args[0] : s.factor->factor;
  }

  std::uint32_t vector_axis(const Stream& s, const FewRowsLoop& loop) const {
    return s.left || form_.along_depth ? loop.member : form_.column_member;
  }
  int vector_width(const Stream& s) const { return s.left || form_.along_depth ? form_.together : 8; }

  // Binds what a stream's element depends on but the neighbours of its vectors. `c` is the text of which; sure: the row
  // is there.
  void bind(const Stream& s, const FewRowsLoop& loop, const std::string& c, bool sure) {
    bind_flat(emitter_, loop.depth, unit_, "kluvw");
    if (s.left) {
      if (form_.rows.empty()) return;
      const std::string row = writer_.unique("row");
      const std::string here = fmt::format("8 * {} + group", c);
      writer_.line(fmt::format("const {} {} = {};", integer(), row,
                               sure ? here : fmt::format("min({}, {})", here, text(count(form_.rows) - 1))));
      bind_flat(emitter_, form_.rows, row, "mnopq");
      for (std::size_t i = 0; i < of_row_.size(); ++i)
        emitter_.define(form_.row_values[i], fmt::format("{}[{}]", of_row_[i], row));
      return;
    }
    const std::string column = writer_.unique("column");
    const std::string here =
        column0_ + (form_.along_depth ? fmt::format(" + 8 * {} + group", c) : std::string(" + group"));
    const int of_block = form_.block.columns / columns_a_lane();
    writer_.line(fmt::format("const {} {} = {};", integer(), column,
                             proves_multiple_of(count(form_.columns), of_block, pool_.bounds())
                                 ? here
                                 : fmt::format("min({0}({1}), {0}{2})", writer_.wide() ? "(long long)" : "", here,
                                               text(count(form_.columns) - 1))));
    bind_flat(emitter_, form_.columns, column, "ijlst");
    if (!form_.along_depth) emitter_.bind(loop.member, c);
  }

  std::string open_which(const Stream& s) { return open_which(which(s), s.left); }
  std::string open_which(int count, bool left) {
    const std::string c = writer_.unique(left ? "m" : "c");
    writer_.line("#pragma unroll");
    writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", c, count));
    return c;
  }

  // Arrays for what loads bring, found by a trial whose text is dropped: where neighbours lie, all other axes are
  // bound.
  void declare_words(Stream& s, const FewRowsLoop& loop) {
    s.value = root_of(s);
    const ExprEmitter::Mark mark = emitter_.mark();
    const auto bind_all = [&](const std::vector<std::uint32_t>& axes) {
      for (const std::uint32_t a : axes)
        if (!emitter_.bound(a)) emitter_.bind(a, "0");
    };
    bind_all(loop.depth);
    bind_all(form_.rows);
    bind_all(form_.columns);
    if (!s.left && !form_.along_depth) emitter_.bind(loop.member, "0");
    const VectorLoads loads(emitter_, graph_, vector_axis(s, loop), vector_width(s));
    for (const auto& [id, type] : loads.vector_loads({s.value})) {
      const std::string name = s.words[id] = writer_.unique(writer_.wish(pool_[id].source) + "_w");
      writer_.line(fmt::format("{} {}[{}][{}];", type, name, form_.block.ahead, which(s)));
    }
    declare_codes(s, loop);
    if (!s.factor->scales.empty()) {
      s.block_scales = writer_.unique("of_block");
      writer_.line(fmt::format("float {}[{}][{}];", s.block_scales, form_.block.ahead, which(s)));
    }
    emitter_.rewind(mark);
  }

  void declare_codes(Stream& s, const FewRowsLoop& loop) {
    if (s.factor->plain) return;
    s.codes = find_widened_codes(emitter_, s.value, form_.dtype, vector_axis(s, loop));
    if (!s.codes) return;
    if (!s.words.contains(s.codes->codes) || (s.codes->scales_apart && !s.words.contains(s.codes->scale)))
      return s.codes.reset();
    const auto declare = [&](ExprId number, std::string_view wish) {
      if (number == kNoExpr) return std::string();
      const std::string name = writer_.unique(std::string(wish));
      writer_.line(fmt::format("unsigned {}[{}][{}];", name, form_.block.ahead, which(s)));
      return name;
    };
    s.zeros = declare(s.codes->zero, "zero");
    s.scales = s.codes->scales_apart ? s.words.at(s.codes->scale) : declare(s.codes->scale, "scale");
  }

  void load(Stream& s, const FewRowsLoop& loop) {
    if (s.words.empty()) return;
    const std::string c = open_which(s);
    std::string there = whole_ ? "" : fmt::format("{} < {}", unit_, units_);
    if (s.left && !row_there_.empty()) there += fmt::format("{}{}[{}]", there.empty() ? "" : " && ", row_there_, c);
    for (const auto& [id, name] : s.words)
      if (!there.empty()) writer_.line(fmt::format("{}[{}][{}] = {{}};", name, ahead_, c));
    if (!there.empty() && !s.block_scales.empty())
      writer_.line(fmt::format("{}[{}][{}] = 0;", s.block_scales, ahead_, c));
    if (!there.empty()) writer_.open(fmt::format("if ({})", there));
    const ExprEmitter::Mark mark = emitter_.mark();
    bind(s, loop, c, true);
    VectorLoads loads(emitter_, graph_, vector_axis(s, loop), vector_width(s));
    loads.declare({s.value}, "0", [&](ExprId id, const VectorLoads::Fill& fill) {
      const std::string to = fmt::format("{}[{}][{}]", s.words.at(id), ahead_, c);
      fill(to);
      return to;
    });
    emitter_.load_text = nullptr;
    if (s.codes)
      for (const auto& [names, number] : {std::pair(s.zeros, s.codes->zero), std::pair(s.scales, s.codes->scale)})
        if (!names.empty() && !s.words.contains(number))
          writer_.line(fmt::format("{}[{}][{}] = {};", names, ahead_, c, bits_text(number, form_.dtype, emitter_)));
    if (!s.block_scales.empty())
      writer_.line(fmt::format("{}[{}][{}] = ({});", s.block_scales, ahead_, c,
                               fmt::join(emitter_.emit(s.factor->scales), ") * (")));
    emitter_.rewind(mark);
    if (!there.empty()) writer_.close();
    writer_.close();
  }

  // The operands of one step: words as they are, or computed of them.
  void make_operands(Stream& s, const FewRowsLoop& loop) {
    const bool turned = !s.left && !form_.along_depth;
    if (s.factor->plain && !turned) {
      s.operands = fmt::format("{}[{}]", s.words.at(s.factor->factor), ahead_);
      return;
    }
    s.operands = writer_.unique(s.left ? "rows" : "columns");
    if (s.factor->plain) {
      writer_.use("columns_of_rows");
      writer_.line(fmt::format("Words<4> {}[8];", s.operands));
      writer_.line(fmt::format("columns_of_rows({}, {}[{}]);", s.operands, s.words.at(s.factor->factor), ahead_));
      return;
    }
    const bool of_piece = !s.left && !piece_.empty();
    writer_.line(fmt::format("Words<{}> {}[{}];", operand_words(form_.together), s.operands,
                             turned     ? 8
                             : of_piece ? 2
                                        : which(s)));
    const std::string lines = turned ? writer_.unique("lines") : "";
    if (turned) writer_.line(fmt::format("Words<4> {}[8];", lines));
    const std::string into = turned ? lines : s.operands;
    const std::string i = open_which(of_piece ? 2 : which(s), s.left);
    std::string c = i;
    if (of_piece) {
      c = writer_.unique("c");
      writer_.line(fmt::format("const int {} = 2 * {} + {};", c, piece_, i));
    }
    const std::string made = fmt::format("{}[{}]", into, i);
    if (s.codes) {
      const auto here = [&](const std::string& names) {
        return names.empty() ? "" : fmt::format("{}[{}][{}]", names, ahead_, c);
      };
      writer_.line(fmt::format("{} = {};", made,
                               widened_text(*s.codes, form_.dtype, operand_words(vector_width(s)),
                                            here(s.words.at(s.codes->codes)), here(s.zeros), here(s.scales), writer_)));
    } else {
      compute_bound(s, loop, c, made);
    }
    // Beyond the depth both factors are zeros, whatever is computed of them.
    if (!whole_) writer_.line(fmt::format("if ({} >= {}) {} = {{}};", unit_, units_, made));
    writer_.close();
    if (!turned) return;
    writer_.use("columns_of_rows");
    writer_.line(fmt::format("columns_of_rows({}, {});", s.operands, lines));
  }

  // At the step's place along the depth, or the last one.
  void compute_bound(Stream& s, const FewRowsLoop& loop, const std::string& c, const std::string& into) {
    const ExprEmitter::Mark mark = emitter_.mark();
    if (!whole_) {
      const std::string inside = writer_.unique("unit");
      writer_.line(fmt::format("const {} {} = min({}, {});", integer(), inside, unit_, text(count(loop.depth) - 1)));
      const std::string outside = std::exchange(unit_, inside);
      bind(s, loop, c, rows_fill());
      unit_ = outside;
    } else {
      bind(s, loop, c, rows_fill());
    }
    compute(s, loop, c, into);
    emitter_.rewind(mark);
  }

  // The neighbours of one vector, rounded and packed.
  void compute(Stream& s, const FewRowsLoop& loop, const std::string& c, const std::string& into) {
    const std::string e = writer_.unique("e"), values = writer_.unique("values");
    const int width = vector_width(s);
    VectorLoads loads(emitter_, graph_, vector_axis(s, loop), width);
    loads.declare({s.value}, e, [&](ExprId id, const VectorLoads::Fill&) {
      return fmt::format("{}[{}][{}]", s.words.at(id), ahead_, c);
    });
    emitter_.emit_independent({s.value});
    const bool whole = form_.dtype == DType::kInt8;
    writer_.line(whole ? fmt::format("Words<{}> {} = {{}};", operand_words(width), values)
                       : fmt::format("float {}[{}];", values, width));
    writer_.line("#pragma unroll");
    writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", e, width));
    const ExprEmitter::Mark mark = emitter_.mark();
    emitter_.bind(vector_axis(s, loop), e);
    define_codes(s, c, e);
    const std::string value = emitter_.emit(s.value);
    writer_.line(whole ? put_text(form_.dtype, values, e, value, writer_)
                       : fmt::format("{}[{}] = {};", values, e, value));
    emitter_.rewind(mark);
    writer_.close();
    emitter_.load_text = nullptr;
    const std::string pack = fmt::format("pack_{}", dtype_name());
    if (!whole) writer_.use(pack);
    writer_.line(whole ? fmt::format("{} = {};", into, values)
                       : fmt::format("{} = {}<{}>({});", into, pack, width / 2, values));
  }

  // Integers that become floats, straight from their words.
  void define_codes(const Stream& s, const std::string& c, const std::string& e) {
    for (const ExprId id : reachable(pool_, std::span(&s.value, 1))) {
      const ExprNode& n = pool_[id];
      if (n.op != ExprOp::kConvert || n.type != ScalarType::kFloat32 || !s.words.contains(n.args[0])) continue;
      const DType dtype = pool_[n.args[0]].dtype;
      if (is_float(dtype) || dtype == DType::kBool || bits(dtype) > 8) continue;
      const bool has_sign = dtype == DType::kInt8 || dtype == DType::kInt4;
      writer_.use("code_as_float");
      emitter_.define(id, fmt::format("code_as_float<{}, {}>({}[{}][{}], {})", bits(dtype), has_sign,
                                      s.words.at(n.args[0]), ahead_, c, e));
    }
  }

  // --- the sums of all warps, and what stands behind them

  int of_warp() const { return 8 * eights() * (form_.block.columns + 8); }
  std::string staged(std::size_t number) const {
    return fmt::format("({}*)dynamic_shared + {}", sum_type(),
                       number * static_cast<std::size_t>(form_.block.warps * of_warp()));
  }

  void stage() {
    writer_.use("stage_few_sums");
    std::size_t number = 0;
    for (const auto& [reduction, sum] : sums_)
      writer_.line(fmt::format("stage_few_sums<{}>({} + warp * {}, {}, warp_lane);", form_.along_depth,
                               staged(number++), of_warp(), sum));
    writer_.line("__syncthreads();");
  }

  void finish() {
    const int width = columns_together(kernel_, product_);
    std::map<ExprId, std::string> made = sums_;
    for (std::size_t i = 0; i < of_row_.size(); ++i) made[form_.row_values_before[i]] = of_row_[i];
    const ColumnEights split = in_column_eights(kernel_, product_, made, width);
    ExprEmitter behind(split.kernel, writer_);
    const ExprPool& pool = split.kernel.pool;
    for (const std::uint32_t a : split.ones) behind.bind(a, "0");
    if (!split.batch.empty()) bind_flat(behind, split.batch, batch_, "bcdefgh");
    const int groups = form_.block.columns / width;
    const std::string item = writer_.unique("item"), line = writer_.unique("line"), place = writer_.unique("place");
    const std::string row = writer_.unique("row"), column = writer_.unique("column");
    writer_.open(fmt::format("for (int {0} = threadIdx.x; {0} < {1}; {0} += {2})", item, 8 * eights() * groups,
                             form_.block.warps * 32));
    if (width > 1)
      writer_.line(fmt::format("const int {0} = staged_row<{1}>({2}), {3} = {2} % {4} * {5};", line,
                               form_.block.columns, item, place, groups, width));
    else  // lanes go over eight columns of four lines, which are in different banks
      writer_.line(fmt::format("const int {0} = {1} / 8 % {2}, {3} = {1} / {4} * 8 + {1} % 8;", line, item,
                               8 * eights(), place, 64 * eights()));
    writer_.line(fmt::format("const {} {} = row_of_line({}), {} = {}{} + {};", integer(), row, line, column, column0_,
                             columns_a_lane() > 1 ? fmt::format(" * {}", columns_a_lane()) : "", place));
    const IndexExpr columns = simplify(point_count(pool, split.columns) * width, pool.bounds());
    const auto number = [&](const IndexExpr& e) { return behind.index_text().tight(simplify(e, pool.bounds())); };
    std::string inside = fmt::format("{} < {}", row, number(point_count(pool, split.rows)));
    if (!proves_multiple_of(columns, form_.block.columns, pool.bounds()))
      inside += fmt::format(" && {} < {}", column, number(columns));
    writer_.line(fmt::format("if (!({})) continue;", inside));
    if (!split.rows.empty()) bind_flat(behind, split.rows, row, "mnopq");
    std::string flat = column;
    if (width > 1) {
      flat = writer_.unique("eight");
      writer_.line(fmt::format("const {} {} = {} / {};", integer(), flat, column, width));
    }
    bind_flat(behind, split.columns, flat, "ijlst");
    std::map<ExprId, std::string> names;
    for (const auto& [reduction, sum] : split.sums) {
      if (std::ranges::find(of_row_, sum) != of_row_.end()) {
        behind.define(reduction, fmt::format("{}[{}]", sum, row));
        continue;
      }
      const std::string of_warps = fmt::format("_of_warps<{}, {}>({}, {}, {}, {});", form_.block.columns,
                                               form_.block.warps, staged(number_of(sum)), of_warp(), line, place);
      std::string& name = names[reduction] = writer_.unique(sum + "_v");
      writer_.line(width > 1 ? fmt::format("const EightSums<{}> {} = eight{}", sum_type(), name, of_warps)
                             : fmt::format("const {} {} = one{}", sum_type(), name, of_warps));
      if (width == 1) behind.define(reduction, name);
    }
    if (width > 1)
      finish_eight(behind, graph_, split, names);
    else
      finish_one(behind, split);
    writer_.close();
  }

  // The place of a sum among those that were staged; its id is another behind the product.
  std::size_t number_of(const std::string& sum) const {
    std::size_t number = 0;
    for (const auto& [reduction, name] : sums_) {
      if (name == sum) break;
      ++number;
    }
    return number;
  }

  const Kernel& kernel_;
  const Product& product_;
  const FewRowsForm& form_;
  const ExprPool& pool_;
  const Graph& graph_;
  KernelWriter& writer_;
  ExprEmitter emitter_;
  std::map<ExprId, std::string> sums_;  // by reduction of the kernel as it was
  std::vector<std::string> of_row_;
  std::string column0_, batch_, turn_, ahead_, unit_, units_, steps_, row_there_, piece_;
  bool whole_ = false;  // no step goes beyond the depth
};

}  // namespace

KernelSource few_rows(const Kernel& kernel, const Product& product, const FewRowsForm& form, const Graph& graph) {
  KernelWriter writer(graph, needs_wide_index(kernel, graph, point_count(kernel.pool, kernel.outputs.at(0).axes)));
  return FewRows(kernel, product, form, graph, writer).emit();
}

}  // namespace fusec
