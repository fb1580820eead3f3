#include "codegen/reduction/row_emitter.h"

#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <iterator>

#include "analysis/kernel/loads.h"
#include "codegen/access/direct.h"
#include "codegen/access/vector_access.h"
#include "codegen/expr/emit_expr.h"
#include "codegen/expr/in_place.h"
#include "codegen/reduction/cross_row_accumulators.h"
#include "codegen/reduction/row_chunk_results.h"
#include "codegen/reduction/row_loop_emitter.h"
#include "codegen/reduction/row_partials.h"
#include "codegen/reduction/row_threads.h"
#include "ir/type.h"
#include "schedule/reduction/extra_outputs.h"
#include "schedule/reduction/row_one_pass.h"
#include "schedule/reduction/row_segments.h"

namespace fusec {
namespace {

class RowEmitter {
 public:
  explicit RowEmitter(const RowKernel& kernel)
      : form_(kernel.form),
        graph_(kernel.graph),
        layout_(kernel.layout),
        split_(kernel.split),
        stage_(kernel.stage),
        outputs_(kernel.layout.chunks == 1 || kernel.stage + 1 == launches_of(kernel.form, kernel.layout)),
        writer_(kernel.graph, kernel.wide),
        emitter_(kernel.form.kernel, writer_),
        threads_(form_, layout_, writer_, emitter_),
        chunk_results_(form_, layout_, writer_, emitter_, threads_),
        row_loops_({form_, graph_, layout_, split_, kernel.shared_bytes}, writer_, emitter_) {
    if (kernel.cross_row) cross_row_.emplace(*kernel.cross_row, writer_);
    folded_count_ = kernel.cross_row ? kernel.cross_row->folded : 0;
    if (split_.start) emitter_.reduced_from = *split_.start;
    if (layout_.chunks > 1) {
      one_pass_ = row_one_pass(form_);
      return;
    }
    row_loops_.plan_reuse(loops());
    if (cross_row_) return;
    if (!row_loops_.reads_again() && !(outputs_of(false).empty() && row_loops_.keeps_too_many_registers())) return;
    one_pass_ = row_one_pass(form_);
    if (one_pass_) row_loops_.plan_reuse(loops());
  }

  bool keeps_in_registers() const { return row_loops_.iterations_in_registers(form_.columns) > 0; }

  KernelSource emit(const Kernel& original) {
    const ExprPool& pool = form_.kernel.pool;
    const IndexExpr rows = point_count(pool, form_.rows);
    open_rows(rows);
    emitter_.reduce_hook = [this](const std::vector<ExprId>& reductions) { return reduce(reductions); };
    if (layout_.chunks == 1) emitter_.emit_independent(roots_of_extra_outputs(form_));
    if (outputs_) {
      emitter_.emit_independent(roots_of(form_.kernel));
      if (const RowOutputs of_row = outputs_of(true); !of_row.empty()) store_row(of_row);
      if (const RowOutputs of_columns = outputs_of(false); !of_columns.empty() || cross_row_) store_columns(of_columns);
    } else if (one_pass_) {
      store_one_pass();
    } else {
      for (const ReductionLoop& loop : reduction_loops(form_))
        if (loop.stage == stage_) store_partials(loop);
    }
    if (cross_row_) close_rows();
    IndexExpr blocks = simplify(
        ceil_div(rows, layout_.rows) * layout_.blocks_sharing_row() * (chunked() ? threads_.chunks() : IndexExpr(1)),
        pool.bounds());
    if (layout_.blocks > 0) blocks = layout_.blocks;
    // With fewer blocks per multiprocessor, a higher minimum would only make ptxas spill.
    const std::int64_t at_once =
        std::min<std::int64_t>(row_loops_.blocks_at_once(), blocks.as_constant().value_or(INT_MAX));
    KernelSource source = writer_.finish(kernel_comment(graph_, original), layout_.threads,
                                         std::max(1, static_cast<int>(at_once)), layout_.cluster);
    source.dynamic_shared = cross_row_
                                ? IndexExpr(std::max(cross_row_->shared_bytes(), row_loops_.bytes_of_rows_ahead()))
                                : row_loops_.shared_bytes();
    source.grid[0] = blocks;
    source.resident_blocks = layout_.resident_blocks;
    source.name = kernel_name(graph_, original.nodes);
    const bool by_columns = layout_.reduction_group == ReductionGroup::kColumn;
    source.schedule = {by_columns ? KernelKind::kColumnReduction : KernelKind::kRowReduction};
    source.rows_stay_resident = row_loops_.rows_stay_resident() && !row_loops_.reads_again();
    // Threads without a row of their own read another thread's row, which may be stored before. That matters only if
    // results overwrite loaded elements without a barrier in between. The last of several kernels only combines partial
    // results: each element is read by the thread that stores it.
    const bool meet = layout_.reduction_group != ReductionGroup::kWarp && layout_.parts > 1;
    source.owns_rows = stores_extra_outputs()
                           ? reads_once() && !has_indirect_loads(form_.kernel)
                           : outputs_ && (threads_.active().empty() || meet || !has_indirect_loads(form_.kernel));
    source.unaligned_vectors = split_.start.has_value();
    for (KernelParameter& p : source.parameters)
      p.address_only = p.address_only || (p.written && !outputs_ && !is_extra_output(p.value));
    return source;
  }

 private:
  // True if a block takes one chunk of its row. False if the kernel only combines partial results.
  bool chunked() const { return layout_.chunks > 1 && (!outputs_ || !outputs_of(false).empty()); }

  // The outputs with one element per row (`row`), or those with one per column.
  RowOutputs outputs_of(bool row) const {
    RowOutputs outputs = fusec::outputs_of(form_, row);
    std::erase_if(outputs, [&](const KernelOutput* o) { return o >= form_.kernel.outputs.data() + stored_count(); });
    return outputs;
  }
  // The last outputs are reduced along the columns instead.
  std::size_t stored_count() const { return form_.kernel.outputs.size() - folded_count_; }

  // The expressions that are reduced along the columns.
  std::vector<ExprId> folded() const {
    std::vector<ExprId> roots;
    for (std::size_t i = stored_count(); i < form_.kernel.outputs.size(); ++i)
      roots.push_back(form_.kernel.outputs[i].expr);
    return roots;
  }

  RowLoop loop_of_columns(const RowOutputs& outputs) const {
    std::vector<ExprId> roots = roots_of(outputs);
    std::ranges::copy(folded(), std::back_inserter(roots));
    return row_loops_.loop_over(form_.columns, std::move(roots));
  }

  // True if this kernel's first loop stores extra outputs.
  bool stores_extra_outputs() const { return stage_ == 0 && !form_.extra_outputs.empty(); }
  bool is_extra_output(ValueId value) const {
    return stores_extra_outputs() && std::ranges::count(form_.extra_outputs, value, &KernelOutput::value) > 0;
  }
  bool reads_once() const { return one_pass_ || reduction_loops(form_).size() == 1; }

  // All loops in execution order, the columns' loop last.
  std::vector<RowLoop> loops() const {
    std::vector<RowLoop> result;
    if (one_pass_)
      result.push_back(loop_of_one_pass());
    else
      for (const ReductionLoop& loop : reduction_loops(form_))
        result.push_back(loop_of(loop.axes, loop.bodies(form_.kernel.pool), loop.stage == 0));
    if (const RowOutputs columns = outputs_of(false); !columns.empty() || cross_row_)
      result.push_back(loop_of_columns(columns));
    return result;
  }

  // Opens the loop in which blocks, or their warps, take rows one after the other.
  void open_sequential_rows(const IndexExpr& rows) {
    threads_.declare_lane();
    row_loops_.begin({.part = threads_.part()});
    cross_row_->declare(row_loops_.iterations_in_registers(form_.columns), split_.column_width);
    row_loops_.load_row_invariants(loops());
    row_loops_.begin_rows(threads_.first_sequential_row(), emitter_.index_text().tight(rows));
    threads_.open_sequential_rows(rows);
    row_loops_.open_row(threads_.row());
  }

  // Consecutive reductions use different memory and have a barrier between them. A single one needs a barrier before
  // the next row.
  void close_rows() {
    row_loops_.close_row();
    if (layout_.reduction_group == ReductionGroup::kBlock && threads_.block_reductions() == 1)
      writer_.line("__syncthreads();");
    writer_.close();
    row_loops_.end_rows();
    cross_row_->store_accumulators(threads_.part());
  }

  void open_rows(const IndexExpr& rows) {
    if (cross_row_) return open_sequential_rows(rows);
    threads_.open(rows, chunked());
    row_loops_.begin({.part = threads_.part(),
                      .block = threads_.chunk(),
                      .chunks = chunked() ? layout_.chunks : 1,
                      .chunk_count = threads_.chunk_count()});
  }

  // Reduces the segment that contains this iteration's vector; neighbouring lanes have its other vectors.
  void reduce_segments(const RowLoop& loop) {
    for (const ExprId segment : form_.segments) {
      const ExprEmitter::Accumulator a = emitter_.declared(segment);
      row_loops_.over_vector(loop, {form_.kernel.pool[segment].args[0]},
                             [&](const std::string&) { emitter_.accumulate({a}); });
      if (const std::int64_t lanes_of_segment = form_.segment / loop.width; lanes_of_segment > 1) {
        writer_.use("combine");
        writer_.use("segment_reduce");
        writer_.line("{0} = segment_reduce<{1}>({0}, {2});", a.name, lanes_of_segment, a.combine);
      }
      emitter_.define(segment, emitter_.result(a));
    }
  }

  // Stores outputs with one element per segment, by the segment's first lane.
  void store_segments(const RowOutputs& outputs) {
    if (outputs.empty()) return;
    const std::uint32_t vector = form_.columns[0], lane = form_.columns[1];
    const ExprEmitter::Mark outside = emitter_.mark();
    emitter_.bind(lane, "0");
    const std::vector<std::string> values = emitter_.emit(roots_of(outputs));
    const std::int64_t vectors = form_.segment / split_.column_width;
    const std::string first = fmt::format("{} % {} == 0", emitter_.index(IndexExpr::axis(vector)), vectors);
    store_scalars(emitter_, outputs, values, vectors > 1 ? first : "");
    emitter_.rewind(outside);
  }

  bool reduce(const std::vector<ExprId>& reductions) {
    if (std::ranges::find(form_.reductions, reductions[0]) == form_.reductions.end()) return false;
    if (one_pass_) {
      if (reductions[0] == one_pass_->second)
        reduce_second();
      else if (layout_.chunks > 1)
        combine_one_pass();
      else
        reduce_in_one_pass();
      return true;
    }
    if (layout_.chunks > 1) {
      chunk_results_.combine(reductions);
      return true;
    }
    for (const ExprEmitter::Accumulator& a : reduced(reductions)) emitter_.define(a.reduction, emitter_.result(a));
    return true;
  }

  RowLoop loop_of_one_pass() const {
    return loop_of(form_.kernel.pool[one_pass_->first].axes, {one_pass_->element}, true);
  }

  // A reduction loop; the `first` one also stores extra outputs.
  RowLoop loop_of(const std::vector<std::uint32_t>& axes, std::vector<ExprId> bodies, bool first) const {
    if (first && stores_extra_outputs()) std::ranges::copy(roots_of_extra_outputs(form_), std::back_inserter(bodies));
    return row_loops_.loop_over(axes, std::move(bodies));
  }

  // The first loop over the row, with the stores of extra outputs.
  void over_row_first(const RowLoop& loop, const RowLoopEmitter::Visit& visit) {
    if (!stores_extra_outputs() || is_stored_) return row_loops_.over_row(loop, "k", visit);
    RowOutputs outputs;
    for (const KernelOutput& output : form_.extra_outputs) outputs.push_back(&output);
    row_loops_.over_row(loop, "k", with_stores(visit, outputs, loop, threads_.active()));
    is_stored_ = true;
  }
  std::string type_of_pass() const { return c_type(form_.kernel.pool[one_pass_->first].type); }
  std::string scaled_count(const std::string& count) const {
    return divisor_of_sum(count, type_of_pass(), one_pass_->scale);
  }
  bool of_exponentials() const { return one_pass_->kind == RowOnePass::Kind::kExponentials; }

  ExprEmitter::Accumulator define_reduced(ExprId reduction, const std::string& mine) {
    const ExprEmitter::Accumulator a = emitter_.accumulator(reduction);
    writer_.line("{} {} = {};", a.type, a.name, mine);
    threads_.reduce({a});
    emitter_.define(reduction, emitter_.result(a));
    return a;
  }

  void declare_running(const char* part, const std::string& type) {
    writer_.use(part);
    running_ = writer_.unique("running");
    writer_.line("{} {};", type, running_);
  }

  // The one-pass accumulation over the row, or over this block's chunk of it. Returns the first reduction.
  ExprEmitter::Accumulator reduce_in_one_pass() {
    const RowLoop loop = loop_of_one_pass();
    const bool shifted = !of_exponentials() && loop.width == 1;
    if (of_exponentials())
      declare_running("online_softmax", "OnlineSoftmax");
    else if (shifted)
      declare_running("shifted_moments", shifted_moments(type_of_pass(), 1, one_pass_->scale));
    else
      declare_running("running_moments", running_moments(type_of_pass(), one_pass_->scale));
    std::string elements;
    RowLoopEmitter::Visit visit;
    visit.before = [&] {
      elements = writer_.unique("elements");
      writer_.line("{} {}[{}];", type_of_pass(), elements, loop.width);
    };
    visit.element = [&](const std::string& lane) {
      const std::string value = emitter_.emit(one_pass_->element);
      writer_.line(lane.empty() ? fmt::format("{}.take_elements{}({{{}}});", running_, shifted ? "" : "<1>", value)
                                : fmt::format("{}[{}] = {};", elements, lane, value));
    };
    visit.after = [&] { writer_.line("{}.take_elements({});", running_, elements); };
    over_row_first(loop, visit);
    if (shifted) {
      const std::string all = writer_.declared("const " + running_moments(type_of_pass(), one_pass_->scale), "moments",
                                               fmt::format("{}.moments_of(0)", running_));
      running_ = all;
    }
    return reduce_first();
  }

  // Reduces the first result. `about`: the value that means are relative to, "" for 0.
  ExprEmitter::Accumulator reduce_first(const std::string& about = "") {
    pass_ = of_exponentials() ? results_of_exponentials(running_) : results_of_moments(running_, about);
    return define_reduced(one_pass_->first, pass_.first);
  }

  // Each thread's contribution to the second reduction, relative to the row's first result.
  ExprEmitter::Accumulator reduce_second() {
    const ExprNode& second = form_.kernel.pool[one_pass_->second];
    const ExprEmitter::Mark outside = emitter_.mark();
    for (const std::uint32_t a : second.axes) emitter_.bind(a, "0");
    emitter_.define(one_pass_->element, pass_.element);
    const std::string of_all = emitter_.emit(second.args[0]);
    emitter_.rewind(outside);
    return define_reduced(one_pass_->second, fmt::format(fmt::runtime(pass_.second), of_all));
  }

  // Stores both results of a chunk: the sum relative to its own maximum (which may be infinite though the row's is
  // not), or the squared deviations from its own mean and the element count.
  void store_one_pass() {
    const ExprEmitter::Accumulator first = reduce_in_one_pass();
    if (of_exponentials()) {
      emitter_.define(first.reduction, fmt::format("OnlineSoftmax::shift_of({})", first.name));
      return chunk_results_.store({first, reduce_second()});
    }
    ExprEmitter::Accumulator count = first;
    count.name = writer_.unique("count");
    writer_.line("{} {} = {}.count;", count.type, count.name, running_);
    threads_.reduce({count});
    const std::string divisor = fmt::format("max({}, ({})1)", count.name, count.type);
    emitter_.define(one_pass_->mean, fmt::format("({} / {})", first.name, scaled_count(divisor)));
    chunk_results_.store({first, reduce_second()}, count.name);
  }

  // Combines both partial results of the chunks. Means are relative to the first chunk's mean.
  void combine_one_pass() {
    const std::string first = chunk_results_.memory_of(emitter_.accumulator(one_pass_->first)),
                      second = chunk_results_.memory_of(emitter_.accumulator(one_pass_->second)),
                      i = writer_.unique("i");
    const std::string counts = of_exponentials() ? "" : chunk_results_.memory_of_counts();
    of_exponentials() ? declare_running("online_softmax", "OnlineSoftmax")
                      : declare_running("running_moments", running_moments(type_of_pass(), one_pass_->scale));
    std::string about;
    if (!of_exponentials()) {
      about = writer_.unique("about");
      const std::string at = chunk_results_.place("0");
      writer_.line("const {} {} = {}[{}] / {};", type_of_pass(), about, first, at,
                   scaled_count(fmt::format("{}[{}]", counts, at)));
    }
    const std::string at = chunk_results_.place(i);
    chunk_results_.open_chunks(i);
    writer_.line(of_exponentials() ? fmt::format("{0}.merge_partial({1}[{3}], {2}[{3}]);", running_, first, second, at)
                                   : fmt::format("{0}.merge_partial({1}[{4}], {2}[{4}], {3}[{4}], {5});", running_,
                                                 first, second, counts, at, about));
    writer_.close();
    reduce_first(about);
  }

  // Reduces the row, or this block's chunk of it. All threads get the results.
  std::vector<ExprEmitter::Accumulator> reduced(const std::vector<ExprId>& reductions) {
    std::vector<ExprEmitter::Accumulator> accumulators;
    std::vector<ExprId> bodies;
    for (const ExprId r : reductions) {
      accumulators.push_back(emitter_.declared(r));
      bodies.push_back(form_.kernel.pool[r].args[0]);
    }
    over_row_first(loop_of(form_.kernel.pool[reductions[0]].axes, bodies, !is_stored_),
                   {.element = [&](const std::string&) { emitter_.accumulate(accumulators); }});
    threads_.reduce(accumulators);
    return accumulators;
  }

  // Stores this stage's partial results of a chunk of the row.
  void store_partials(const ReductionLoop& loop) {
    emitter_.emit_independent(
        loop_of(loop.axes, loop.bodies(form_.kernel.pool), true).roots);  // combines the results of earlier stages
    chunk_results_.store(reduced(loop.reductions));
  }

  // Stores the outputs with one element per row.
  void store_row(const RowOutputs& outputs) {
    const std::vector<std::string> values = emitter_.emit(roots_of(outputs));
    std::string mine = threads_.part() + " == 0";
    if (chunked()) mine += " && " + threads_.chunk() + " == 0";
    if (!threads_.active().empty()) mine += " && " + threads_.active();
    store_scalars(emitter_, outputs, values, mine);
  }

  // In the loop over columns: stores an output that lacks some column axes where these are 0.
  void store_where_it_runs(const KernelOutput& output, const std::string& value) {
    std::string condition;
    for (const std::uint32_t a : columns_without(form_, output))
      condition += fmt::format("{}{} == 0", condition.empty() ? "" : " && ", emitter_.index(IndexExpr::axis(a)));
    store_scalars(emitter_, {&output}, {value}, condition);
  }

  void store_columns(const RowOutputs& outputs) {
    RowOutputs of_columns, of_segments;
    for (const KernelOutput* output : outputs)
      (is_of_segments(form_, *output) ? of_segments : of_columns).push_back(output);
    const RowLoop loop = loop_of_columns(outputs);
    if (!threads_.active().empty()) writer_.open("if ({})", threads_.active());
    RowLoopEmitter::Visit visit{.element = [this](const std::string& lane) {
      if (cross_row_) cross_row_->take(row_loops_.place_of_thread(lane), emitter_.emit(folded()));
    }};
    visit.before = [&] { reduce_segments(loop); };
    visit.after = [&] { store_segments(of_segments); };
    row_loops_.over_row(loop, "j", with_stores(visit, of_columns, loop));
    if (!threads_.active().empty()) writer_.close();
  }

  // A visit that also stores elements of these outputs, under the condition.
  RowLoopEmitter::Visit with_stores(const RowLoopEmitter::Visit& visit, const RowOutputs& outputs, const RowLoop& loop,
                                    const std::string& condition = "") {
    RowLoopEmitter::Visit both = visit;
    both.before = [=, this] {
      stores_.clear();
      for (const KernelOutput* output : outputs)
        stores_.push_back(VectorStore::plan(emitter_, *output, loop.axes.back(), loop.width));
      visit.before();
    };
    both.element = [=, this](const std::string& lane) {
      // All values of the loop are emitted before the first store, which may overwrite their operands.
      emitter_.emit_independent(loop.roots);
      visit.element(lane);
      const std::vector<std::string> values = emitter_.emit(roots_of(outputs));
      for (std::size_t i = 0; i < outputs.size(); ++i) {
        const bool stores = !condition.empty() && (lane.empty() || stores_[i].stores_scalars());
        if (stores) writer_.open("if ({})", condition);
        if (lane.empty())
          store_where_it_runs(*outputs[i], values[i]);
        else
          stores_[i].put(emitter_, lane, values[i]);
        if (stores) writer_.close();
      }
    };
    both.after = [=, this] {
      const bool guarded = !condition.empty() && !std::ranges::all_of(stores_, &VectorStore::stores_scalars);
      if (guarded) writer_.open("if ({})", condition);
      for (VectorStore& store : stores_) store.finish(emitter_);
      if (guarded) writer_.close();
      visit.after();
    };
    return both;
  }

  const RowForm& form_;
  const Graph& graph_;
  const RowLayout layout_;
  const RowSplit split_;
  const int stage_;
  const bool outputs_;  // computes the form's outputs
  KernelWriter writer_;
  ExprEmitter emitter_;
  RowThreads threads_;
  RowChunkResults chunk_results_;
  RowLoopEmitter row_loops_;
  bool is_stored_ = false;                         // the first loop's outputs are stored
  std::vector<VectorStore> stores_;                // stores of the loop's current vector
  std::optional<RowOnePass> one_pass_;             // set if one pass makes both reductions
  std::optional<CrossRowAccumulators> cross_row_;  // for rows taken one after the other
  std::size_t folded_count_ = 0;                   // number of outputs reduced along columns; they are the last
  std::string running_;                            // one-pass accumulator
  PassResults pass_;                               // and its results
};

}  // namespace

bool keeps_in_registers(const RowKernel& kernel) {
  return RowEmitter(kernel).keeps_in_registers();
}

KernelSource emit_rows(const RowKernel& kernel, const Kernel& original) {
  return RowEmitter(kernel).emit(original);
}

}  // namespace fusec
