#include "codegen/reduction/transposed_row_reduction_emitter.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>

#include "analysis/kernel/loads.h"
#include "codegen/access/direct.h"
#include "codegen/access/vector_access.h"
#include "codegen/expr/emit_expr.h"
#include "codegen/expr/in_place.h"
#include "codegen/reduction/shared_rows.h"
#include "ir/type.h"

namespace fusec {
namespace {

using Orientation = TransposedRowReduction::Orientation;

class TransposedRowReductionEmitter {
 public:
  TransposedRowReductionEmitter(const Graph& graph, const TransposedRowReduction& plan, bool wide)
      : form_(plan.form),
        pool_(form_.kernel.pool),
        graph_(graph),
        plan_(plan),
        writer_(graph, wide),
        emitter_(form_.kernel, writer_),
        shared_rows_(form_, graph, plan.lanes, plan.iterations() * plan.width, plan.threads, emitter_) {}

  KernelSource emit(const Kernel& original) {
    open_strip();
    fill_tiles();
    writer_.line("__syncthreads();");
    open_rows();
    emitter_.reduce_hook = [this](const std::vector<ExprId>& reductions) {
      return shared_rows_.reduce(reductions, [this](const RowLoop& loop, const auto& element) {
        over_row(loop, {.element = [&](const std::string&) { element(); }});
      });
    };
    emitter_.emit_independent(roots_of(form_.kernel));
    if (const RowOutputs of_row = outputs_of(form_, true); !of_row.empty())
      store_scalars(emitter_, of_row, emitter_.emit(roots_of(of_row)), lane_ + " == 0");
    if (!outputs_of(form_, false).empty()) store_elements();
    writer_.close();
    store_results();
    KernelSource source = writer_.finish(kernel_comment(graph_, original), plan_.threads, blocks_at_once());
    source.grid[0] = simplify(point_count(pool_, plan_.outer) * plan_.strips(), pool_.bounds());
    source.dynamic_shared = 4 * plan_.words;
    source.name = kernel_name(graph_, original.nodes);
    source.schedule = {KernelKind::kRowReduction};
    source.rows_stay_resident = true;
    // A block reads all operands of its rows before the barrier that precedes the stores.
    source.owns_rows = !has_indirect_loads(form_.kernel);
    return source;
  }

 private:
  // Minimum of resident blocks per multiprocessor. Without it, ptxas spills kept values to fit more blocks.
  int blocks_at_once() const {
    constexpr int kRegisters = 65536, kComputing = 56;  // of a multiprocessor; per thread in addition to kept values
    return std::max(1, kRegisters / (plan_.threads * (shared_rows_.register_words() + kComputing)));
  }

  // --- the block's rows
  void open_strip() {
    const std::string type = writer_.index_type(), block = writer_.wide() ? "(long long)blockIdx.x" : "blockIdx.x";
    const std::string strips = emitter_.index_text().tight(simplify(plan_.strips(), pool_.bounds()));
    first_ = writer_.unique("first");
    count_ = writer_.unique("count");
    std::string strip = block, outer = "0";
    if (!plan_.outer.empty()) {
      outer = writer_.declared("const " + type, "outer", fmt::format("{} / {}", block, strips));
      strip = fmt::format("({} - {} * {})", block, outer, strips);
    }
    bind_flat(emitter_, plan_.outer, outer);
    writer_.line("const {} {} = {} * {}{};  // of the block's rows", type, first_, strip, plan_.rows,
                 plan_.leading_rows == 0 ? "" : fmt::format(" - {}", plan_.leading_rows));
    if (plan_.leading_rows > 0) {
      begin_ = writer_.declared("const int", "begin", fmt::format("(int)max(({})0, -{})", type, first_));
    }
    if (proves_multiple_of(plan_.extent() + plan_.leading_rows, plan_.rows, pool_.bounds())) {
      count_ = std::to_string(plan_.rows);
    } else {
      const std::string limit = emitter_.index_text().tight(plan_.extent());
      writer_.line("const int {} = (int)min(({}){}, {} - {});", count_, type, plan_.rows, limit, first_);
    }
  }

  // The range of the block's rows that have such elements: the end, preceded by the beginning if that is not 0.
  std::string rows_of(const TransposedRowReduction::Tile& tile) const {
    const std::string type = writer_.index_type();
    const std::string end =
        tile.until ? fmt::format("(int)min(({}){}, {} - {})", type, count_, *tile.until, first_) : count_;
    if (tile.from == 0 && begin_.empty()) return end;
    return fmt::format("{}, {}", end,
                       tile.from == 0 ? begin_ : fmt::format("(int)max(({})0, {} - {})", type, tile.from, first_));
  }

  std::string of_tile(const TransposedRowReduction::Tile& tile) const {
    const TransposedRowReduction::Grid& grid = plan_.grid(tile);
    return fmt::format("{}, {}, {}, {}, {}", grid.vector, plan_.rows, plan_.length, grid.pitch, grid.skew);
  }
  std::string lines_of_tile(const TransposedRowReduction::Tile& tile) const {
    const TransposedRowReduction::Grid& grid = plan_.grid(tile);
    return fmt::format("{}, {}, {}, {}, {}, {}, {}", plan_.threads, grid.vector, grid.lanes, plan_.rows, plan_.length,
                       grid.pitch, grid.skew);
  }
  std::string declare_tile(const std::string& preferred_name, int place) {
    const std::string name = writer_.unique(preferred_name + "_tile");
    const std::string at = place == 0 ? "" : fmt::format(" + {}", place);
    writer_.line("unsigned* const {} = (unsigned*)dynamic_shared{};", name, at);
    return name;
  }
  // A pointer to the block's first row; the pitch is in the index type.
  std::string start_of(const TransposedRowReduction::Tile& tile, const std::string& pointer) {
    const std::string start = emitter_.index(tile.start);
    return start == "0" ? pointer : fmt::format("{} + ({})", pointer, start);
  }
  std::string pitch_of(const TransposedRowReduction::Tile& tile) {
    return fmt::format("({}){}", writer_.index_type(), emitter_.index_text().tight(tile.pitch));
  }

  void fill_tiles() {
    writer_.use("dynamic_shared");
    writer_.use("transposed_rows");
    const ExprEmitter::Mark outside = emitter_.mark();
    emitter_.bind(plan_.inner, first_);
    for (const TransposedRowReduction::Tile& tile : plan_.tiles) {
      tiles_.push_back(declare_tile(writer_.preferred_name(tile.value), tile.place));
      writer_.use(tile.dtype);
      const std::string from = start_of(tile, writer_.input(tile.value));
      if (tile.orientation != Orientation::kAcross) clear_row_padding(tile, tiles_.back());
      if (tile.orientation == Orientation::kAcross)
        writer_.line("lines_to_rows<{}>({}, {}, {}, {});", lines_of_tile(tile), tiles_.back(), from, pitch_of(tile),
                     rows_of(tile));
      else if (tile.orientation == Orientation::kAlong)
        writer_.line("rows_to_rows<{}, {}, {}>({}, {}, {}, {});", plan_.threads, tile.vector, of_tile(tile),
                     tiles_.back(), from, pitch_of(tile), rows_of(tile));
      else
        writer_.line("rows_to_rows<{}, {}, 1, 1, {}, 0, 0>({}, {}, 0, 1);", plan_.threads, tile.vector, plan_.length,
                     tiles_.back(), from);
    }
    for (std::size_t i = 0; i < plan_.results.size(); ++i) {
      const auto& result = plan_.results[i];
      const auto other = plan_.reuses_tile_of.find(i);
      if (!result)
        results_.emplace_back();
      else if (other != plan_.reuses_tile_of.end())
        results_.push_back(tiles_[other->second]);
      else
        results_.push_back(declare_tile(writer_.preferred_name(form_.kernel.outputs[i].value), result->place));
      if (result && other == plan_.reuses_tile_of.end()) clear_row_padding(*result, results_.back());
    }
    emitter_.rewind(outside);
  }

  // Clears the unused elements of the last word of a row, if lines are stored from it.
  void clear_row_padding(const TransposedRowReduction::Tile& tile, const std::string& name) {
    if (tile.orientation == Orientation::kBroadcast || plan_.length * tile.bytes() % 4 == 0) return;
    writer_.line("clear_row_padding<{}, {}>(({}*){});", plan_.threads, of_tile(tile), storage_type(tile.dtype), name);
  }

  // --- a row
  void open_rows() {
    const int at_once = plan_.threads / plan_.lanes;
    const std::string place = writer_.unique("place"), row = writer_.unique("row");
    lane_ = writer_.declared("const int", "lane", fmt::format("threadIdx.x % {}", plan_.lanes));
    writer_.line("#pragma unroll 1");
    writer_.open("for (int {0} = threadIdx.x / {1}; {0} < {2}; {0} += {3})", place, plan_.lanes, count_, at_once);
    if (!begin_.empty()) writer_.line("if ({} < {}) continue;", place, begin_);
    writer_.line("const {} {} = {} + {};", writer_.index_type(), row, first_, place);
    emitter_.bind(plan_.inner, row);
    for (std::size_t i = 0; i < tiles_.size(); ++i)
      rows_.push_back(plan_.tiles[i].orientation == Orientation::kBroadcast ? tiles_[i]
                                                                            : row_in(plan_.tiles[i], tiles_[i], place));
    for (std::size_t i = 0; i < results_.size(); ++i) {
      const auto other = plan_.reuses_tile_of.find(i);
      if (!plan_.results[i])
        result_rows_.emplace_back();
      else
        result_rows_.push_back(other == plan_.reuses_tile_of.end() ? row_in(*plan_.results[i], results_[i], place)
                                                                   : rows_[other->second]);
    }
  }

  std::string row_in(const TransposedRowReduction::Tile& tile, const std::string& name, const std::string& place) {
    const TransposedRowReduction::Grid& grid = plan_.grid(tile);
    const std::string row = writer_.unique(name.substr(0, name.size() - 5) + "_of_row");
    writer_.line("unsigned* const {} = {} + word_of_row<{}, {}, {}>({});", row, name, grid.vector, grid.pitch,
                 grid.skew, place);
    return row;
  }

  bool in_words(const TransposedRowReduction::Tile& tile) const { return plan_.width * tile.bytes() % 4 == 0; }
  int words_of(const TransposedRowReduction::Tile& tile) const { return plan_.width * tile.bytes() / 4; }

  // Callbacks of a loop: `element` emits one element with its axis bound, `before` and `after` surround a vector.
  struct Visit {
    std::function<void(const std::string& lane)> element;
    std::function<void()> before = [] {};
    std::function<void()> after = [] {};
  };
  void over_row(const RowLoop& loop, const Visit& visit) {
    const ExprEmitter::Mark outside = emitter_.mark();
    emitter_.emit_independent(loop.roots);
    const std::string iteration = writer_.unique("turn"), e = writer_.unique("e");
    vector_ = writer_.unique("v");
    const bool keeps = shared_rows_.enter(loop, iteration);
    const int unrolled = unroll_factor(code_of_element(form_, loop.roots) * plan_.width);
    writer_.line(keeps ? "#pragma unroll" : fmt::format("#pragma unroll {}", std::min(unrolled, plan_.iterations())));
    writer_.open("for (int {0} = 0; {0} < {1}; ++{0})", iteration, plan_.iterations());
    writer_.line("const int {} = {} + {} * {};", vector_, lane_, iteration, plan_.lanes);
    const int vectors = plan_.length / plan_.width, whole = vectors / plan_.lanes;
    const bool part = vectors % plan_.lanes != 0;
    if (part)
      writer_.open(whole > 0 ? fmt::format("if ({} < {} || {} < {})", iteration, whole, vector_, vectors)
                             : fmt::format("if ({} < {})", vector_, vectors));
    const std::map<std::size_t, std::string> words = declare_words(loop.roots);
    visit.before();
    const std::string place = writer_.unique("k");
    writer_.open_unrolled(e, plan_.width);
    const ExprEmitter::Mark lanes = emitter_.mark();
    writer_.line("const int {} = {} * {} + {};", place, vector_, plan_.width, e);
    emitter_.bind(loop.axes[0], place);
    emitter_.load_text = [&](ExprId load) { return load_text(load, words, place, e); };
    if (keeps)
      shared_rows_.registers().define_values(loop.roots, fmt::format("{} * {} + {}", iteration, plan_.width, e));
    visit.element(e);
    emitter_.load_text = nullptr;
    emitter_.rewind(lanes);
    writer_.close();
    visit.after();
    if (part) writer_.close();
    emitter_.rewind(outside);
    writer_.close();
    shared_rows_.leave(loop);
  }

  // Declares this iteration's vectors of the tiles that the roots read, if they are whole words.
  std::map<std::size_t, std::string> declare_words(const std::vector<ExprId>& roots) {
    std::map<std::size_t, std::string> words;
    for (const ExprId load : shared_rows_.registers().loads_of(roots)) {
      const auto it = plan_.tile_of.find(load);
      if (it == plan_.tile_of.end() || words.contains(it->second)) continue;
      const TransposedRowReduction::Tile& tile = plan_.tiles[it->second];
      if (!in_words(tile)) continue;
      words[it->second] = writer_.unique(writer_.preferred_name(tile.value) + "_w");
      writer_.line("const Words<{0}> {1} = load_words<{0}>({2} + {3} * {0});", words_of(tile), words[it->second],
                   rows_[it->second], vector_);
    }
    return words;
  }

  std::string load_text(ExprId load, const std::map<std::size_t, std::string>& words, const std::string& place,
                        const std::string& lane) {
    const auto it = plan_.tile_of.find(load);
    if (it == plan_.tile_of.end()) return "";
    const TransposedRowReduction::Tile& tile = plan_.tiles[it->second];
    if (const auto found = words.find(it->second); found != words.end())
      return element_text(tile.dtype, found->second, lane, writer_);
    return widen(tile.dtype, fmt::format("((const {}*){})[{}]", storage_type(tile.dtype), rows_[it->second], place));
  }

  // --- outputs
  // Stores elements into the tiles, or directly if contiguous.
  void store_elements() {
    const RowOutputs outputs = outputs_of(form_, false);
    const std::vector<ExprId> roots = roots_of(outputs);
    std::vector<std::optional<VectorStore>> stores;
    Visit visit;
    visit.before = [&] {
      for (const KernelOutput* output : outputs) stores.push_back(vector_store(*output));
    };
    visit.element = [&](const std::string& lane) {
      std::vector<std::string> values = emitter_.emit(roots);
      for (std::size_t i = 0; i < outputs.size(); ++i) {
        if (stores[i]) {
          stores[i]->put(emitter_, lane, values[i]);
          continue;
        }
        const DType dtype = outputs[i]->type.dtype;
        writer_.use(dtype);
        if (plan_.results[number_of(*outputs[i])])
          writer_.line("(({}*){})[{}] = {};", storage_type(dtype), result_rows_[number_of(*outputs[i])],
                       emitter_.index(IndexExpr::axis(form_.columns[0])), narrow(dtype, values[i]));
        else
          store_scalars(emitter_, {outputs[i]}, {values[i]});
      }
    };
    visit.after = [&] {
      for (auto& store : stores)
        if (store) store->finish(emitter_);
    };
    over_row({.axes = form_.columns, .roots = roots}, visit);
  }

  // Nothing if elements are stored one by one.
  std::optional<VectorStore> vector_store(const KernelOutput& output) {
    const std::size_t number = number_of(output);
    if (plan_.width * bits(output.type.dtype) % 32 != 0 || plan_.width == 1) return std::nullopt;
    const int words = plan_.width * bits(output.type.dtype) / 32;
    std::string to = fmt::format("{} + {} * {}", result_rows_[number], vector_, words);
    if (!plan_.results[number]) {
      const IndexExpr start = simplify(with_axis(position_of(pool_, output), form_.columns[0], 0), pool_.bounds());
      to =
          fmt::format("{} + ({} + {} * {})", writer_.output(output.value), emitter_.index(start), vector_, plan_.width);
    }
    return VectorStore::elsewhere(emitter_, output, plan_.width, fmt::format("store_words({}, ", to));
  }

  std::size_t number_of(const KernelOutput& output) const {
    return static_cast<std::size_t>(&output - form_.kernel.outputs.data());
  }

  void store_results() {
    if (std::ranges::none_of(plan_.results, [](const auto& result) { return result.has_value(); })) return;
    writer_.line("__syncthreads();");
    emitter_.bind(plan_.inner, first_);
    for (std::size_t i = 0; i < plan_.results.size(); ++i) {
      if (!plan_.results[i]) continue;
      const TransposedRowReduction::Tile& tile = *plan_.results[i];
      const std::string to = start_of(tile, writer_.output(form_.kernel.outputs[i].value));
      if (tile.orientation == Orientation::kAlong) {
        writer_.line("rows_to_words<{}, {}>({}, {}, {});", plan_.threads, of_tile(tile), to, results_[i], count_);
        continue;
      }
      writer_.line("rows_to_lines<{}>({}, {}, {}, {});", lines_of_tile(tile), to, results_[i], pitch_of(tile),
                   rows_of(tile));
    }
  }

  const RowForm& form_;
  const ExprPool& pool_;
  const Graph& graph_;
  const TransposedRowReduction& plan_;
  KernelWriter writer_;
  ExprEmitter emitter_;
  SharedRows shared_rows_;
  std::string first_, count_;                    // of the block's rows
  std::string begin_;                            // first index that exists; "" if all from 0 on do
  std::vector<std::string> tiles_, results_;     // in shared memory
  std::vector<std::string> rows_, result_rows_;  // this lane's row in them
  std::string lane_;                             // index within the row
  std::string vector_;                           // in a loop over the row: the lane's current vector
};

}  // namespace

KernelSource emit_transposed_row_reduction(const Graph& graph, const TransposedRowReduction& plan, bool wide,
                                           const Kernel& original) {
  return TransposedRowReductionEmitter(graph, plan, wide).emit(original);
}

}  // namespace fusec
