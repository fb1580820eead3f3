#include "codegen/schedules/short_row_emitter.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "codegen/emit_expr.h"
#include "codegen/in_place.h"
#include "codegen/schedules/direct.h"
#include "codegen/schedules/kept_row.h"
#include "codegen/schedules/row_registers.h"
#include "codegen/schedules/vector_access.h"
#include "ir/type.h"

namespace fusec {
namespace {

class ShortRowEmitter {
 public:
  ShortRowEmitter(const RowForm& form, const Graph& graph, const ShortRows& way, bool wide)
      : form_(form),
        graph_(graph),
        way_(way),
        writer_(graph, wide),
        emitter_(form.kernel, writer_),
        kept_(form_, writer_, emitter_) {
    RowRegisters plan = plan_row_registers(form_, graph_, loops(), 1, way_.threads());
    // Loads alone are no better in registers than in shared memory.
    if (std::ranges::none_of(plan.slots, &RowRegisters::Slot::words)) kept_.keep(std::move(plan), way_.threads());
  }

  KernelSource emit(const Kernel& original) {
    const ExprPool& pool = form_.kernel.pool;
    const IndexExpr rows = point_count(pool, form_.rows);
    open_tiles(rows);
    open_row(rows);
    emitter_.reduce_hook = [this](const std::vector<ExprId>& reductions) { return reduce(reductions); };
    emitter_.load_text = [this](ExprId load) { return load_text(load); };
    emitter_.emit_independent(roots_of(form_.kernel));
    if (!outputs_of(true).empty()) store_row();
    if (!outputs_of(false).empty()) store_columns();
    KernelSource source = writer_.finish(kernel_comment(graph_, original), way_.threads(), 1);
    source.grid[0] = simplify(ceil_div(rows, way_.rows), pool.bounds());
    source.dynamic_shared = 4 * way_.elements;
    source.name = kernel_name(graph_, original.nodes);
    source.schedule = "row_reduction";
    source.keeps_rows = true;
    // Everything that a block reads of its rows it has read before the barrier behind which it stores them; what has an
    // element a row is stored by a thread whose warp has reduced the row.
    source.owns_rows = proves_multiple_of(rows, way_.rows, pool.bounds()) || !looks_up(form_.kernel);
    return source;
  }

 private:
  std::vector<std::size_t> outputs_of(bool row) const {
    std::vector<std::size_t> outputs;
    for (std::size_t i = 0; i < way_.stored.size(); ++i)
      if ((way_.stored[i] == ShortRows::kNoTile) == row) outputs.push_back(i);
    return outputs;
  }

  std::vector<ExprId> roots_of_outputs(bool row) const {
    std::vector<ExprId> roots;
    for (const std::size_t i : outputs_of(row)) roots.push_back(form_.kernel.outputs[i].expr);
    return roots;
  }

  RowLoop loop_over(const std::vector<std::uint32_t>& axes, std::vector<ExprId> roots) const {
    return {.axes = axes, .roots = std::move(roots), .vectors = IndexExpr(way_.turns)};
  }

  // In the order in which they run.
  std::vector<RowLoop> loops() const {
    std::vector<RowLoop> result;
    for (const ReductionLoop& loop : reduction_loops(form_))
      result.push_back(loop_over(loop.axes, loop.bodies(form_.kernel.pool)));
    if (!outputs_of(false).empty()) result.push_back(loop_over(form_.columns, roots_of_outputs(false)));
    return result;
  }

  std::string pointer(ValueId value, const std::string& offset) {
    return offset == "0" ? writer_.input(value) : writer_.input(value) + " + " + offset;
  }

  void open_tiles(const IndexExpr& rows) {
    writer_.use("dynamic_shared");
    writer_.use("row_tiles");
    for (const ShortRows::Tile& tile : way_.tiles) {
      const std::string wish = tile.value == kNone ? "result" : writer_.wish(tile.value);
      tiles_.push_back(writer_.unique(wish + "_tile"));
      const std::string place = tile.place == 0 ? "" : fmt::format(" + {}", tile.place);
      writer_.line(fmt::format("{0}* const {1} = ({0}*)dynamic_shared{2};", c_type(tile.type), tiles_.back(), place));
    }
    first_ = writer_.unique("first");
    const std::string block = writer_.wide() ? "(long long)blockIdx.x" : "blockIdx.x";
    writer_.line(
        fmt::format("const {} {} = {} * {};  // of the block's rows", writer_.index_type(), first_, block, way_.rows));
    count_ = std::to_string(way_.rows * way_.length);
    if (!proves_multiple_of(rows, way_.rows, form_.kernel.pool.bounds())) {
      const std::string limit = emitter_.index_text().tight(rows), count = writer_.unique("count");
      writer_.line(fmt::format("const int {0} = (int)min(({1}){2}, {3} - {4}) * {5};  // of their elements", count,
                               writer_.index_type(), way_.rows, limit, first_, way_.length));
      count_ = count;
    }
    for (std::size_t i = 0; i < way_.tiles.size(); ++i)
      if (way_.tiles[i].value != kNone) fill(way_.tiles[i], tiles_[i]);
    writer_.line("__syncthreads();");
  }

  void fill(const ShortRows::Tile& tile, const std::string& name) {
    writer_.use(tile.dtype);
    const int most = tile.beside ? way_.length : way_.rows * way_.length;
    const std::string from =
        pointer(tile.value, tile.beside ? std::to_string(tile.first) : fmt::format("{} * {}", first_, way_.length));
    writer_.line(fmt::format("{}<{}, {}>({}, {}, {}, [](unsigned raw) {{ return {}; }});",
                             tile.beside ? "elements_to_tile" : "rows_to_tile", way_.threads(), most, name, from,
                             tile.beside ? std::to_string(most) : count_, value_of_bits(tile.dtype, "raw", writer_)));
  }

  // This thread's row, and its elements of it.
  void open_row(const IndexExpr& rows) {
    const int lanes = way_.lanes();
    row_in_block_ = lanes == 1 ? "threadIdx.x" : fmt::format("threadIdx.x / {}", lanes);
    std::string row = writer_.unique("row");
    const std::string type = writer_.index_type();
    if (proves_multiple_of(rows, way_.rows, form_.kernel.pool.bounds())) {
      writer_.line(fmt::format("const {} {} = {} + {};", type, row, first_, row_in_block_));
    } else {  // threads without a row compute what nobody asks for
      const std::string limit = emitter_.index_text().tight(rows);
      writer_.line(
          fmt::format("const {} {} = min({} + ({})({}), {} - 1);", type, row, first_, type, row_in_block_, limit));
    }
    bind_flat(emitter_, form_.rows, row);
    at_ = writer_.unique("at");
    if (lanes == 1) {
      writer_.line(fmt::format("const int {} = threadIdx.x * {};", at_, way_.length));
      return;
    }
    begin_ = writer_.unique("begin");
    const int of_piece = way_.lanes_of_piece, pieces = way_.length / way_.piece;
    std::string begin = begin_in_piece();
    if (of_piece == 1) begin = fmt::format("threadIdx.x % {} * {}", pieces, way_.piece);
    if (of_piece > 1 && pieces > 1)
      begin = fmt::format("threadIdx.x / {} % {} * {} + {}", of_piece, pieces, way_.piece, begin);
    writer_.line(
        fmt::format("const int {} = {}, {} = {} * {} + {};  // of this thread's elements, in its row and in all",
                    begin_, begin, at_, row_in_block_, way_.length, begin_));
    const int least = way_.least_turns();
    if (least == way_.turns) return;
    if (way_.stride > 1) {
      more_ = fmt::format("{{0}} < {} || {{1}} < {}", least, way_.length);
      return;
    }
    const std::string mine = writer_.unique("mine");
    writer_.line(fmt::format("const int {} = {};  // so many", mine, elements_of_lane()));
    more_ = fmt::format("{{0}} < {} || {{0}} < {}", least, mine);
  }

  // The number among these that belongs to this thread's lane of its piece, out of a word with a byte for each.
  std::string of_lane(const std::vector<int>& numbers) const {
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < numbers.size(); ++i) bytes |= static_cast<std::uint64_t>(numbers[i]) << 8 * i;
    return fmt::format("(int)({:#x}ull >> threadIdx.x % {} * 8 & 255)", bytes, numbers.size());
  }

  // Where this thread's elements begin in their piece.
  std::string begin_in_piece() const {
    const int lanes = way_.lanes_of_piece;
    if (way_.begins.empty()) return fmt::format("threadIdx.x % {} * {}", lanes, way_.step);
    std::vector<int> places(way_.begins.begin(), way_.begins.end() - 1);
    for (int& place : places) place /= 32 / lanes;
    return fmt::format("{} * {}", of_lane(places), 32 / lanes);
  }

  // How many they are.
  std::string elements_of_lane() const {
    const int lanes = way_.lanes_of_piece;
    if (way_.begins.empty())
      return fmt::format("threadIdx.x % {} == {} ? {} : {}", lanes, lanes - 1, way_.piece - (lanes - 1) * way_.step,
                         way_.step);
    std::vector<int> counts;
    for (std::size_t i = 1; i < way_.begins.size(); ++i) counts.push_back(way_.begins[i] - way_.begins[i - 1]);
    return of_lane(counts);
  }

  // `body` for each of this thread's elements; the axis is bound.
  void over_row(const RowLoop& loop, const std::function<void()>& body) {
    const ExprEmitter::Mark outside = emitter_.mark();
    if (kept_.turns_of(loop.axes) > 0) kept_.declare_arrays(loop.axes);
    turn_ = writer_.unique("turn");
    if (kept_.turns_of(loop.axes) > 0) kept_.enter(turn_);
    writer_.line("#pragma unroll");
    writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", turn_, way_.turns));
    const std::string on = way_.stride == 1 ? turn_ : fmt::format("{} * {}", turn_, way_.stride);
    place_ = writer_.unique("k");
    writer_.line(fmt::format("const int {} = {}{};", place_, begin_.empty() ? "" : begin_ + " + ", on));
    at_turn_ = fmt::format("{} + {}", at_, on);
    if (!more_.empty()) writer_.open(fmt::format("if ({})", fmt::format(fmt::runtime(more_), turn_, place_)));
    emitter_.bind(loop.axes[0], place_);
    if (kept_.turns_of(loop.axes) > 0) kept_.define_values(loop.roots, turn_);
    body();
    emitter_.rewind(outside);
    if (!more_.empty()) writer_.close();
    writer_.close();
    kept_.leave();
    kept_.loop_is_done(loop);
  }

  std::string load_text(ExprId load) const {
    const auto it = way_.tile_of.find(load);
    if (it == way_.tile_of.end()) return "";
    return way_.tiles[it->second].beside ? fmt::format("{}[{}]", tiles_[it->second], place_) : element_of(it->second);
  }
  std::string element_of(std::size_t tile) const { return fmt::format("{}[{}]", tiles_[tile], at_turn_); }

  bool reduce(const std::vector<ExprId>& reductions) {
    const ExprPool& pool = form_.kernel.pool;
    if (std::ranges::find(form_.reductions, reductions[0]) == form_.reductions.end()) return false;
    std::vector<ExprEmitter::Accumulator> accumulators;
    std::vector<ExprId> bodies;
    for (const ExprId r : reductions) {
      const ExprEmitter::Accumulator a = emitter_.accumulator(r);
      writer_.line(fmt::format("{} {}{}{};", a.type, a.name, a.extreme ? "" : " = ", a.identity));
      accumulators.push_back(a);
      bodies.push_back(pool[r].args[0]);
    }
    over_row(loop_over(pool[reductions[0]].axes, bodies), [&] { emitter_.accumulate(accumulators); });
    for (const ExprEmitter::Accumulator& a : accumulators) {
      if (way_.lanes() > 1) {
        writer_.use("combine");
        if (a.extreme) writer_.use("extreme_lanes");
        writer_.use("warp_reduce");
        writer_.line(fmt::format("{0} = warp_reduce<{1}>({0}, {2});", a.name, way_.lanes(), a.combine));
      }
      emitter_.define(a.reduction, emitter_.result(a));
    }
    return true;
  }

  // Outputs with an element a row.
  void store_row() {
    const std::vector<std::string> values = emitter_.emit(roots_of_outputs(true));
    std::vector<std::string> conditions;
    if (way_.lanes() > 1) conditions.push_back(fmt::format("threadIdx.x % {} == 0", way_.lanes()));
    if (count_ != std::to_string(way_.rows * way_.length))
      conditions.push_back(fmt::format("(int)({}) * {} < {}", row_in_block_, way_.length, count_));
    if (!conditions.empty()) writer_.open(fmt::format("if ({})", fmt::join(conditions, " && ")));
    for (std::size_t i = 0; i < values.size(); ++i) {
      const KernelOutput& output = form_.kernel.outputs[outputs_of(true)[i]];
      const IndexExpr at = simplify(flat_index(output.type.shape, output.index), form_.kernel.pool.bounds());
      writer_.line(store_text(writer_, output, emitter_.index(at), values[i]));
    }
    if (!conditions.empty()) writer_.close();
  }

  void store_columns() {
    const std::vector<std::size_t> outputs = outputs_of(false);
    const std::vector<ExprId> roots = roots_of_outputs(false);
    over_row(loop_over(form_.columns, roots), [&] {
      std::vector<std::string> values = emitter_.emit(roots);
      for (std::size_t i = 0; outputs.size() > 1 && i < outputs.size(); ++i) {  // all, before a tile is written
        const std::string value = writer_.unique("value");
        writer_.line(fmt::format("const {} {} = {};", c_type(form_.kernel.pool[roots[i]].type), value, values[i]));
        values[i] = value;
      }
      for (std::size_t i = 0; i < outputs.size(); ++i)
        writer_.line(fmt::format("{} = {};", element_of(way_.stored[outputs[i]]), values[i]));
    });
    writer_.line("__syncthreads();");
    for (const std::size_t i : outputs) {
      const KernelOutput& output = form_.kernel.outputs[i];
      const DType dtype = output.type.dtype;
      writer_.use(dtype);
      std::string four;
      if (dtype == DType::kBFloat16 || dtype == DType::kFloat16) {  // two by one conversion
        writer_.use("packed_words");
        four = fmt::format(", [](const float (&v)[4]) {{ return {}_words(v); }}", storage_type(dtype));
      }
      writer_.line(fmt::format("tile_to_rows<{}, {}>({} + {} * {}, {}, {}, []({} value) {{ return {}; }}{});",
                               way_.threads(), way_.rows * way_.length, writer_.output(output.value), first_,
                               way_.length, tiles_[way_.stored[i]], count_, c_type(form_.kernel.pool[output.expr].type),
                               narrow(dtype, "value"), four));
    }
  }

  const RowForm& form_;
  const Graph& graph_;
  const ShortRows& way_;
  KernelWriter writer_;
  ExprEmitter emitter_;
  KeptRow kept_;
  std::vector<std::string> tiles_;
  std::string first_, count_;  // of the block: its first row, and how many elements its rows have
  std::string row_in_block_;
  std::string begin_, at_;              // of the thread: where it begins in its row and in a tile
  std::string more_;                    // of turn {0}, element {1} of the row: is there one for it? "": always
  std::string turn_, place_, at_turn_;  // in a loop: which turn this is, where it is in the row and in a tile
};

}  // namespace

KernelSource emit_short_rows(const RowForm& form, const Graph& graph, const ShortRows& way, bool wide,
                             const Kernel& original) {
  return ShortRowEmitter(form, graph, way, wide).emit(original);
}

}  // namespace fusec
