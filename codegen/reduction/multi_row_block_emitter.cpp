#include "codegen/reduction/multi_row_block_emitter.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "analysis/kernel/loads.h"
#include "codegen/access/direct.h"
#include "codegen/access/vector_access.h"
#include "codegen/expr/emit_expr.h"
#include "codegen/expr/in_place.h"
#include "codegen/reduction/shared_rows.h"
#include "ir/type.h"

namespace fusec {
namespace {

class MultiRowBlockEmitter {
 public:
  MultiRowBlockEmitter(const RowForm& form, const Graph& graph, const MultiRowBlock& plan, bool wide)
      : form_(form),
        graph_(graph),
        plan_(plan),
        writer_(graph, wide),
        emitter_(form.kernel, writer_),
        shared_rows_(form_, graph, plan.lanes, plan.iterations, plan.block_threads(), emitter_) {}

  KernelSource emit(const Kernel& original) {
    const ExprPool& pool = form_.kernel.pool;
    writer_.use("dynamic_shared");
    writer_.use("row_tiles");
    emitter_.reduce_hook = [this](const std::vector<ExprId>& reductions) {
      return shared_rows_.reduce(reductions,
                                 [this](const auto& loop, const auto& element) { over_row(loop, element); });
    };
    emitter_.load_text = [this](ExprId load) { return load_text(load); };
    tiles_.resize(plan_.tiles.size());
    if (plan_.parallel_runs > 1) {
      thread_ = writer_.unique("thread");
      writer_.line("const int {} = threadIdx.x % {};  // of a run's", thread_, plan_.threads);
    }
    open_run();
    fill_tiles(false);
    if (plan_.runs() > 1) open_runs();
    fill_tiles(true);
    writer_.line("__syncthreads();");
    open_row();
    emitter_.emit_independent(roots_of(form_.kernel));
    if (!outputs_of(form_, true).empty()) store_row();
    if (!outputs_of(form_, false).empty()) store_columns();
    if (plan_.sequential_runs > 1) {
      writer_.line("__syncthreads();");
      writer_.close();
    }
    KernelSource source = writer_.finish(kernel_comment(graph_, original), plan_.block_threads(), 1);
    source.grid[0] = simplify(blocks_, pool.bounds());
    source.dynamic_shared = 4 * plan_.elements;
    source.name = kernel_name(graph_, original.nodes);
    source.schedule = {KernelKind::kRowReduction};
    source.rows_stay_resident = true;
    // A block reads all operands of its rows before the barrier that precedes the stores. Outputs with one element per
    // row are stored by a thread of the warp that reduced the row.
    source.owns_rows = has_whole_runs() || !has_indirect_loads(form_.kernel);
    return source;
  }

 private:
  // The number of rows that runs cover.
  IndexExpr rows_of_runs() const {
    return plan_.along_last ? form_.kernel.pool.extent(form_.rows.back()) : point_count(form_.kernel.pool, form_.rows);
  }
  bool has_whole_runs() const { return proves_multiple_of(rows_of_runs(), plan_.rows, form_.kernel.pool.bounds()); }

  // Declares the block's first row and its runs.
  void open_run() {
    const ExprPool& pool = form_.kernel.pool;
    const IndexExpr rows = rows_of_runs();
    blocks_ = simplify(ceil_div(rows, plan_.rows), pool.bounds());
    const std::string block = writer_.wide() ? "(long long)blockIdx.x" : "blockIdx.x", type = writer_.index_type();
    std::string rest = block;
    if (!plan_.along_last) {
      first_ = writer_.unique("first");
      writer_.line("const {} {} = {} * {};  // of the block's rows", type, first_, block, plan_.rows);
    } else {
      if (!blocks_.is(1)) first_ = writer_.unique("first");
      const auto part_of = [&](const IndexExpr& count) {  // of the block index, which loses that part
        const std::string limit = emitter_.index_text().tight(count), part = fmt::format("{} % {}", rest, limit);
        rest += " / " + limit;
        return part;
      };
      if (!blocks_.is(1))
        writer_.line("const {} {} = {} * {};  // of a run's rows", type, first_, part_of(blocks_), plan_.rows);
      std::vector<std::uint32_t> others(form_.rows.begin(), form_.rows.end() - 1);
      if (plan_.runs() > 1) {
        std::erase(others, *plan_.repeated_axis);
        const IndexExpr parts = simplify(ceil_div(pool.extent(*plan_.repeated_axis), plan_.runs()), pool.bounds());
        from_ = "0";
        if (!parts.is(1)) {
          from_ = writer_.declared("const " + type, "from", fmt::format("{} * {}", part_of(parts), plan_.runs()));
        }
        blocks_ *= parts;
      }
      if (!others.empty()) {
        const std::string run = writer_.declared("const " + type, "run", rest);
        bind_flat(emitter_, others, run);
      }
      for (const std::uint32_t axis : others) blocks_ *= pool.extent(axis);
    }
    count_ = std::to_string(plan_.rows * plan_.length);
    if (has_whole_runs()) return;
    count_ = writer_.unique("count");
    writer_.line("const int {} = (int)min(({}){}, {}{}) * {};  // of their elements", count_, type, plan_.rows,
                 emitter_.index_text().tight(rows), first_.empty() ? "" : " - " + first_, plan_.length);
  }

  // Opens the loop over the runs that share broadcast tiles.
  void open_runs() {
    const Bounds& bounds = form_.kernel.pool.bounds();
    const IndexExpr& extent = form_.kernel.pool.extent(*plan_.repeated_axis);
    const std::string limit = emitter_.index_text().tight(extent), type = writer_.index_type();
    const bool whole = proves_multiple_of(extent, plan_.runs(), bounds);
    std::string from = from_;
    if (plan_.sequential_runs > 1) {
      std::string end = from_ == "0" ? limit : fmt::format("{} + {}", from_, plan_.runs());
      if (from_ != "0" && !whole) end = fmt::format("min({}, {})", end, limit);
      from = writer_.unique("runs");
      writer_.open("for ({0} {1} = {2}; {1} < {3}; {1} += {4})", type, from, from_, end, plan_.parallel_runs);
    }
    std::string run = from;
    if (plan_.parallel_runs > 1) {
      run = writer_.unique("run");
      const std::string mine = fmt::format("{} + threadIdx.x / {}", from, plan_.threads);
      if (proves_multiple_of(extent, plan_.parallel_runs, bounds)) {
        writer_.line("const {} {} = {};", type, run, mine);
      } else {  // threads of a run that does not exist have no elements
        const std::string count =
            writer_.declared("const int", "count_of_run", fmt::format("{} < {} ? {} : 0", mine, limit, count_));
        writer_.line("const {0} {1} = min(({0})({2}), {3} - 1);", type, run, mine, limit);
        count_ = count;
      }
    }
    emitter_.bind(*plan_.repeated_axis, run);
  }

  void fill_tiles(bool per_run) {
    for (std::size_t i = 0; i < plan_.tiles.size(); ++i)
      if (plan_.tiles[i].per_run == per_run) fill(i);
  }

  // The position of a tile's first element.
  std::string begin_of(const IndexExpr& start, bool broadcast) {
    const bool follows = !broadcast && !first_.empty();
    const std::string along = follows ? fmt::format("{} * {}", first_, plan_.length) : "";
    if (start.is(0)) return follows ? along : "0";
    return follows ? fmt::format("{} + {}", emitter_.index(start), along) : emitter_.index(start);
  }

  // Elements between the preceding multiple of 16 bytes and this position.
  static std::string before_text(const std::string& at, DType dtype) {
    return fmt::format("(int)({} & {})", at, 128 / bits(dtype) - 1);
  }

  static std::string room_type(const MultiRowBlock::Tile& tile) {
    return tile.type == ScalarType::kBool ? "unsigned" : std::string(c_type(tile.type));
  }

  void fill(std::size_t number) {
    const MultiRowBlock::Tile& tile = plan_.tiles[number];
    const std::string preferred_name = tile.value == kNone ? "result" : writer_.preferred_name(tile.value);
    std::string place = tile.place == 0 ? "" : fmt::format(" + {}", tile.place);
    if (tile.per_run && plan_.parallel_runs > 1)
      place += fmt::format(" + threadIdx.x / {} * {}", plan_.threads, tile.elements);
    const std::string name = tiles_[number] = writer_.unique(preferred_name + "_tile");
    std::string at = begin_of(tile.start, tile.broadcast), offset, before = "0";
    if (!tile.aligned) {  // keeps its misalignment in shared memory
      const std::string start = writer_.declared("const " + writer_.index_type(), preferred_name + "_at", at);
      at = start, before = before_text(start, tile.dtype);
      offset = " + " + before;
    }
    writer_.line("{0}* const {1} = ({0}*)dynamic_shared{2}{3};", room_type(tile), name, place, offset);
    if (tile.value == kNone) return;
    writer_.use(tile.dtype);
    const std::string tensor = writer_.input(tile.value), from = at == "0" ? tensor : tensor + " + " + at;
    const std::string value = tile.type == ScalarType::kBool ? "raw" : value_of_bits(tile.dtype, "raw", writer_);
    const std::string widen = fmt::format("[](unsigned raw) {{ return {}; }}", value);
    const int threads = tile.per_run ? plan_.threads : plan_.block_threads();
    const std::string thread = tile.per_run ? thread_ : "threadIdx.x";
    if (tile.broadcast)
      writer_.line("elements_to_tile<{}, {}>({}, {}, {}, {}, {});", threads, plan_.length, thread, name, from,
                   plan_.length, widen);
    else
      writer_.line("rows_to_tile<{}, {}, {}>({}, {}, {}, {}, {}, {});", threads, plan_.rows * plan_.length,
                   tile.aligned, thread, name, from, before, count_, widen);
  }

  // The index of this thread's row in its run.
  std::string row_in_run() const {
    const int lanes = plan_.lanes, warp_row_stride = plan_.warp_row_stride, of_warps = 32 * warp_row_stride;
    if (warp_row_stride == 1) return lanes == 1 ? thread_ : fmt::format("{} / {}", thread_, lanes);
    if (plan_.threads == of_warps)
      return fmt::format("threadIdx.x % 32 / {} * {} + {} / 32", lanes, warp_row_stride, thread_);
    return fmt::format("{0} / {1} * {2} + {0} % 32 / {3} * {4} + {0} / 32 % {4}", thread_, of_warps, of_warps / lanes,
                       lanes, warp_row_stride);
  }

  // Declares this thread's row and its elements.
  void open_row() {
    const std::string type = writer_.index_type();
    row_in_block_ = writer_.declared("const int", "of_run", row_in_run());
    std::string row = row_in_block_;
    if (!first_.empty() || !has_whole_runs()) {
      const std::string there = first_.empty() ? row_in_block_ : fmt::format("{} + {}", first_, row_in_block_);
      row = writer_.unique("row");
      const std::string last = emitter_.index_text().tight(rows_of_runs());
      // threads without a row compute unused values
      writer_.line(has_whole_runs() ? fmt::format("const {} {} = {};", type, row, there)
                                    : fmt::format("const {0} {1} = min(({0})({2}), {3} - 1);", type, row, there, last));
    }
    if (plan_.along_last)
      emitter_.bind(form_.rows.back(), row);
    else
      bind_flat(emitter_, form_.rows, row);
    at_ = writer_.unique("at");
    if (plan_.lanes == 1) {
      writer_.line("const int {} = {} * {};", at_, row_in_block_, plan_.length);
      return;
    }
    begin_ = writer_.unique("begin");
    const std::string lane = fmt::format("threadIdx.x % {}", plan_.lanes);
    writer_.line(
        "const int {0} = {1}{2}, {3} = (int)kept({4} * {5} + {0});"
        "  // of this thread's elements, in its row and in all",
        begin_, lane, plan_.stride > 1 ? "" : fmt::format(" * {}", plan_.step), at_, row_in_block_, plan_.length);
    writer_.use("kept");
    const int least = plan_.min_iterations();
    if (least == plan_.iterations) return;
    if (plan_.stride > 1) {
      more_ = fmt::format("{{0}} < {} || {{1}} < {}", least, plan_.length);
      return;
    }
    const std::string mine = writer_.unique("mine");
    writer_.line("const int {} = {} == {} ? {} : {};  // so many", mine, lane, plan_.lanes - 1, least,
                 plan_.iterations);
    more_ = fmt::format("{{0}} < {} || {{0}} < {}", least, mine);
  }

  // Emits `body` for each of this thread's elements, with the axis bound.
  void over_row(const RowLoop& loop, const std::function<void()>& body) {
    const ExprEmitter::Mark outside = emitter_.mark();
    iteration_ = writer_.unique("turn");
    const bool keeps = shared_rows_.enter(loop, iteration_);
    writer_.open_unrolled(iteration_, plan_.iterations);
    const std::string on = plan_.stride == 1 ? iteration_ : fmt::format("{} * {}", iteration_, plan_.stride);
    place_ = writer_.declared("const int", "k", fmt::format("{}{}", begin_.empty() ? "" : begin_ + " + ", on));
    at_iteration_ = fmt::format("{} + {}", at_, on);
    if (!more_.empty()) writer_.open("if ({})", fmt::format(fmt::runtime(more_), iteration_, place_));
    emitter_.bind(loop.axes[0], place_);
    if (keeps) shared_rows_.registers().define_values(loop.roots, iteration_);
    body();
    emitter_.rewind(outside);
    if (!more_.empty()) writer_.close();
    writer_.close();
    shared_rows_.leave(loop);
  }

  std::string load_text(ExprId load) const {
    const auto it = plan_.tile_of.find(load);
    if (it == plan_.tile_of.end()) return "";
    const MultiRowBlock::Tile& tile = plan_.tiles[it->second];
    const std::string text =
        tile.broadcast ? fmt::format("{}[{}]", tiles_[it->second], place_) : element_of(it->second);
    return tile.type == ScalarType::kBool ? fmt::format("({} != 0)", text) : text;
  }
  std::string element_of(std::size_t tile) const { return fmt::format("{}[{}]", tiles_[tile], at_iteration_); }

  // Stores the outputs with one element per row.
  void store_row() {
    const RowOutputs outputs = outputs_of(form_, true);
    const std::vector<std::string> values = emitter_.emit(roots_of(outputs));
    std::vector<std::string> conditions;
    if (plan_.lanes > 1) conditions.push_back(fmt::format("threadIdx.x % {} == 0", plan_.lanes));
    if (count_ != std::to_string(plan_.rows * plan_.length))
      conditions.push_back(fmt::format("{} * {} < {}", row_in_block_, plan_.length, count_));
    store_scalars(emitter_, outputs, values, fmt::format("{}", fmt::join(conditions, " && ")));
  }

  std::size_t tile_of(const KernelOutput& output) const {
    return plan_.stored[static_cast<std::size_t>(&output - form_.kernel.outputs.data())];
  }

  void store_columns() {
    const RowOutputs outputs = outputs_of(form_, false);
    const std::vector<ExprId> roots = roots_of(outputs);
    over_row({.axes = form_.columns, .roots = roots}, [&] {
      std::vector<std::string> values = emitter_.emit(roots);
      // All values, before any tile is written.
      for (std::size_t i = 0; outputs.size() > 1 && i < outputs.size(); ++i) {
        const std::string value =
            writer_.declared("const " + c_type(form_.kernel.pool[roots[i]].type), "value", values[i]);
        values[i] = value;
      }
      for (std::size_t i = 0; i < outputs.size(); ++i)
        writer_.line("{} = {};", element_of(tile_of(*outputs[i])), values[i]);
    });
    writer_.line("__syncthreads();");
    for (const KernelOutput* stored : outputs) {
      const KernelOutput& output = *stored;
      const DType dtype = output.type.dtype;
      writer_.use(dtype);
      std::string four;
      if (dtype == DType::kBFloat16 || dtype == DType::kFloat16) {  // two elements per conversion
        writer_.use("packed_words");
        four = fmt::format(", [](const float (&v)[4]) {{ return {}_words(v); }}", storage_type(dtype));
      }
      const MultiRowBlock::Tile& tile = plan_.tiles[tile_of(output)];
      std::string at = begin_of(tile.start, false), before = "0";
      const bool aligned = starts_aligned(plan_, tile.start, dtype, form_.kernel.pool.bounds());
      if (!aligned) {
        const std::string start =
            writer_.declared("const " + writer_.index_type(), writer_.preferred_name(output.value) + "_at", at);
        at = start, before = before_text(start, dtype);
      }
      const std::string result = writer_.output(output.value);
      writer_.line("tile_to_rows<{}, {}, {}>({}, {}, {}, {}, {}, []({} value) {{ return {}; }}{});", plan_.threads,
                   plan_.rows * plan_.length, aligned, thread_, at == "0" ? result : result + " + " + at,
                   tiles_[tile_of(output)], before, count_, c_type(form_.kernel.pool[output.expr].type),
                   narrow(dtype, "value"), four);
    }
  }

  const RowForm& form_;
  const Graph& graph_;
  const MultiRowBlock& plan_;
  KernelWriter writer_;
  ExprEmitter emitter_;
  SharedRows shared_rows_;
  std::vector<std::string> tiles_;
  IndexExpr blocks_ = 0;
  std::string first_, count_;           // of a run: its first row ("" if 0), and the elements of its rows
  std::string from_;                    // of the block: its first run
  std::string thread_ = "threadIdx.x";  // index among the threads of its run
  std::string row_in_block_;
  std::string begin_, at_;                        // of the thread: its start in the row and in a tile
  std::string more_;                              // condition that element {1} of iteration {0} exists; "" if always
  std::string iteration_, place_, at_iteration_;  // in a loop: the iteration, its place in the row and in a tile
};

}  // namespace

KernelSource emit_multi_row_block(const RowForm& form, const Graph& graph, const MultiRowBlock& plan, bool wide,
                                  const Kernel& original) {
  return MultiRowBlockEmitter(form, graph, plan, wide).emit(original);
}

}  // namespace fusec
