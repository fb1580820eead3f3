#include "codegen/reduction/strided_reduction_emitter.h"

#include <fmt/format.h>

#include <functional>
#include <map>
#include <optional>

#include "analysis/kernel/loads.h"
#include "codegen/access/direct.h"
#include "codegen/access/vector_access.h"
#include "codegen/expr/emit_expr.h"
#include "codegen/reduction/row_partials.h"
#include "codegen/reduction/strided_reduction_kernel.h"
#include "codegen/reduction/strided_reduction_loops.h"
#include "codegen/reduction/strided_reduction_results.h"
#include "ir/type.h"

namespace fusec {
namespace {

class StridedReductionEmitter {
 public:
  StridedReductionEmitter(const Graph& graph, const StridedReduction& plan, bool wide, int stage)
      : form_(plan.form),
        pool_(form_.kernel.pool),
        graph_(graph),
        plan_(plan),
        kernel_(strided_reduction_kernel(graph, plan, stage)),
        writer_(graph, wide),
        emitter_(form_.kernel, writer_),
        elements_(kernel_, writer_, emitter_),
        results_(kernel_, elements_, writer_, emitter_) {}

  KernelSource emit(const Kernel& original) {
    const IndexExpr groups = point_count(pool_, plan_.outer) * plan_.strips();
    elements_.open(groups);
    if (!plan_.one_pass)
      reduce_all();
    else if (kernel_.outputs && plan_.chunks > 1)
      results_.combine_pass();
    else
      plan_.one_pass->kind == RowOnePass::Kind::kExponentials ? reduce_exponentials() : reduce_moments();
    if (!kernel_.outputs) results_.store_partials();
    if (kernel_.outputs && !kernel_.outputs_of(true).empty()) store_rows();
    if (kernel_.outputs && !kernel_.outputs_of(false).empty()) store_elements();
    KernelSource source = writer_.finish(kernel_comment(graph_, original), plan_.threads(), kernel_.blocks_at_once());
    source.grid[0] =
        simplify(ceil_div(groups, plan_.groups_per_block) * (kernel_.chunked() ? kernel_.chunks() : IndexExpr(1)),
                 pool_.bounds());
    source.resident_blocks = plan_.resident_blocks ? plan_.chunks : 1;
    source.name = kernel_name(graph_, original.nodes);
    source.schedule = {KernelKind::kColumnReduction};
    source.rows_stay_resident = kernel_.register_vectors > 0;
    source.unaligned_vectors = true;
    // Each element is last read by the thread that stores it, and no vector spans two groups.
    const bool stores_what_it_read = kernel_.own_extra_outputs().empty() ? kernel_.outputs : kernel_.reads_once();
    source.owns_rows = stores_what_it_read && (elements_.aligned() || plan_.in_strips) && !plan_.unaligned;
    return source;
  }

 private:
  void reduce_all() {
    for (const ReductionLoop& loop : kernel_.loops) {
      if (!kernel_.outputs && loop.stage > kernel_.stage) break;
      if (plan_.resident_blocks)
        reduce_with_others(loop);
      else if (plan_.chunks > 1 && (kernel_.outputs || loop.stage < kernel_.stage))
        for (const ExprId r : loop.reductions) results_.combine_partials(r);
      else
        reduce(loop);
    }
  }

  // Co-resident blocks: each stores its partial results, waits for the others, and combines all.
  void reduce_with_others(const ReductionLoop& loop) {
    reduce(loop, false);
    results_.store_partials(loop.reductions);
    results_.wait_for_blocks();
    for (const ExprId r : loop.reductions) results_.combine_partials(r);
  }

  // Reduces this stage's reductions in one loop. `places`: lanes get the results that later loops read.
  void reduce(const ReductionLoop& loop, bool places = true) {
    std::vector<ExprEmitter::Accumulator> accumulators;
    for (const ExprId r : loop.reductions) {
      const ExprEmitter::Accumulator a = emitter_.accumulator(r);
      const std::string slots = writer_.unique(a.name + "_at");
      writer_.line("{} {}[{}];", a.type, slots, plan_.width);
      writer_.line("#pragma unroll");
      writer_.line("for (int e = 0; e < {}; ++e) {}[e] = {}{};", plan_.width, slots, a.extreme ? a.type : "",
                   a.identity);
      accumulators.push_back(a);
      slots_[r] = slots;
    }
    const auto element = [&](const std::string& lane, const std::string&) {
      std::vector<ExprEmitter::Accumulator> here = accumulators;
      for (ExprEmitter::Accumulator& a : here) a.name = fmt::format("{}[{}]", slots_.at(a.reduction), lane);
      emitter_.accumulate(here);
    };
    const bool first = loop.reductions == kernel_.loops.front().reductions;
    const std::vector<ExprId> roots = first ? kernel_.roots_of_loop(loop) : loop.bodies(pool_);
    elements_.over_elements(
        loop.axes, roots, with_stores({.element = element}, first ? kernel_.own_extra_outputs() : RowOutputs{}, roots));
    for (const ExprEmitter::Accumulator& a : accumulators)
      results_.join(a, slots_.at(a.reduction), plan_.parts, plan_.width,
                    places && kernel_.is_read_per_element(a.reduction));
  }

  // Passes a vector's elements to `running` together, and edge elements as `alone` prints them.
  void over_vectors(const std::string& running,
                    const std::function<std::string(const std::string& lane, const std::string& element)>& alone,
                    const std::function<void()>& after_vectors) {
    std::string elements;
    StridedReductionLoops::Visit visit;
    visit.before = [&](const std::string&) {
      elements = writer_.unique("elements");
      writer_.line("{} {}[{}];", results_.type_of_pass(), elements, plan_.width);
    };
    visit.element = [&](const std::string& lane, const std::string& at) {
      const std::string element = emitter_.emit(plan_.one_pass->element);
      writer_.line(at.empty() ? fmt::format("{}[{}] = {};", elements, lane, element) : alone(lane, element));
    };
    visit.after = [&] { writer_.line("{}.take_elements({});", running, elements); };
    visit.after_vectors = after_vectors;
    std::vector<ExprId> roots = roots_of(kernel_.own_extra_outputs());
    roots.push_back(plan_.one_pass->element);
    elements_.over_elements(pool_[plan_.one_pass->first].axes, roots,
                            with_stores(visit, kernel_.own_extra_outputs(), roots));
  }

  // Online softmax: maxima and sums of exponentials. The sums are relative to the block's own maximum if others share
  // its rows.
  void reduce_exponentials() {
    const std::string running = writer_.unique("running");
    writer_.use("online_softmax_lanes");
    writer_.line("OnlineSoftmaxLanes<{}> {};", plan_.width, running);
    over_vectors(
        running,
        [&](const auto& lane, const auto& element) {
          return fmt::format("{}.take_element({}, {});", running, lane, element);
        },
        [] {});
    results_.join_pass({running + ".greatest_of(e)", running + ".sum[e] * ({})", running + ".shift[e]"}, plan_.parts,
                       plan_.width);
  }

  // Sum and squared deviations, relative to the first element of each thread.
  void reduce_moments() {
    const std::string running = writer_.unique("running"), moments = writer_.unique("moments");
    writer_.use("shifted_moments");
    writer_.line("{} {};", shifted_moments(results_.type_of_pass(), plan_.width, plan_.one_pass->scale), running);
    over_vectors(
        running,
        [&](const auto& lane, const auto& element) {
          return fmt::format("{}[{}].take_elements<1>({{{}}});", moments, lane, element);
        },
        [&] {
          writer_.line("{} {}[{}];", running_moments(results_.type_of_pass(), plan_.one_pass->scale), moments,
                       plan_.width);
          writer_.line("#pragma unroll");
          writer_.line("for (int e = 0; e < {}; ++e) {}[e] = {}.moments_of(e);", plan_.width, moments, running);
        });
    results_.join_pass(results_of_moments(moments + "[e]"), plan_.parts, plan_.width);
  }

  void store_rows() {
    if (plan_.has_warp_per_strip()) return store_places();
    const RowOutputs outputs = kernel_.outputs_of(true);
    std::string condition = fmt::format("{} < {}", elements_.thread(), plan_.rows);
    if (kernel_.chunked()) condition += fmt::format(" && {} == 0", elements_.chunk());
    if (!elements_.whole_strips())
      condition += fmt::format(
          " && {} + {} < {}", elements_.row_at(elements_.first_row()), elements_.thread(),
          emitter_.index_text().tight(simplify(floor_div(plan_.line_stride, plan_.elements_per_line), pool_.bounds())));
    writer_.open("if ({})", condition);
    const ExprEmitter::Mark outside = emitter_.mark();
    const std::string row = writer_.unique("row");
    writer_.line(plan_.in_strips ? fmt::format("const {} {} = {} + {};", writer_.index_type(), row,
                                               elements_.row_at(elements_.first_row()), elements_.thread())
                                 : fmt::format("const int {} = ({} + {}) % {};", row, elements_.first_row(),
                                               elements_.thread(), plan_.rows));
    emitter_.bind(plan_.inner, row);
    for (const auto& [reduction, done] : elements_.done()) emitter_.define(reduction, emitter_.result(done.own));
    store_scalars(emitter_, outputs, emitter_.emit(roots_of(outputs)));
    emitter_.rewind(outside);
    writer_.close();
  }

  // Strips of one warp: the lanes of one line store the results of their columns.
  void store_places() {
    std::string condition = elements_.idle();
    if (plan_.lanes() < 32)
      condition += fmt::format("{}{} < {}", condition.empty() ? "" : " && ", elements_.thread(), plan_.lanes());
    if (!condition.empty()) writer_.open("if ({})", condition);
    const RowOutputs outputs = kernel_.outputs_of(true);
    const ExprEmitter::Mark outside = emitter_.mark();
    emitter_.bind(plan_.inner, elements_.phase());
    std::vector<std::optional<VectorStore>> stores;
    for (const KernelOutput* output : outputs) stores.push_back(store_of_places(*output));
    emitter_.rewind(outside);
    writer_.open_unrolled("e", plan_.width);
    emitter_.bind(plan_.inner, elements_.row_at_lane("e"));
    elements_.define_results("e");
    const std::vector<std::string> values = emitter_.emit(roots_of(outputs));
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (stores[i])
        stores[i]->put(emitter_, "e", values[i]);
      else
        writer_.line(store_text(writer_, *outputs[i], emitter_.index(position_of(pool_, *outputs[i])), values[i]));
    }
    emitter_.rewind(outside);
    writer_.close();
    for (std::optional<VectorStore>& store : stores)
      if (store) store->finish(emitter_);
    if (!condition.empty()) writer_.close();
  }

  // A vector store, if the results of neighbouring rows are contiguous and fill whole words.
  std::optional<VectorStore> store_of_places(const KernelOutput& output) {
    const IndexExpr at = position_of(pool_, output);
    const IndexExpr first = simplify(at - IndexExpr::axis(plan_.inner), pool_.bounds());
    if (plan_.width * bits(output.type.dtype) % 32 != 0 ||
        coefficient_of(at, {Variable::Kind::kAxis, plan_.inner}) != 1 ||
        !proves_multiple_of(first, plan_.width, pool_.bounds()))
      return std::nullopt;
    return VectorStore::elsewhere(
        emitter_, output, plan_.width,
        fmt::format("store_words({} + {}, ", writer_.output(output.value), emitter_.index(at)));
  }

  void store_elements() {
    const RowOutputs outputs = kernel_.outputs_of(false);
    const std::vector<ExprId> roots = roots_of(outputs);
    elements_.over_elements(form_.columns, roots,
                            with_stores({.element = [](const auto&, const auto&) {}}, outputs, roots));
  }

  // A visit that also stores elements of these outputs, in a loop that computes `roots`.
  StridedReductionLoops::Visit with_stores(const StridedReductionLoops::Visit& visit, const RowOutputs& outputs,
                                           const std::vector<ExprId>& roots) {
    if (outputs.empty()) return visit;
    StridedReductionLoops::Visit both = visit;
    both.before = [=, this](const std::string& place) {
      visit.before(place);
      stores_.clear();
      for (const KernelOutput* output : outputs) {
        const std::string to = fmt::format("{} + {}", writer_.output(output->value), place);
        if (plan_.unaligned) writer_.use("store_edge_words");
        stores_.push_back(VectorStore::elsewhere(
            emitter_, *output, plan_.width,
            plan_.unaligned ? fmt::format("store_edge_words<{}>({}, {}, ", plan_.width, to, elements_.inside())
                            : fmt::format("store_words({}, ", to)));
      }
    };
    both.element = [=, this](const std::string& lane, const std::string& at) {
      // All values of the loop are emitted before the first store, which may overwrite their operands.
      emitter_.emit_independent(roots);
      visit.element(lane, at);
      const std::vector<std::string> values = emitter_.emit(roots_of(outputs));
      for (std::size_t i = 0; i < outputs.size(); ++i) {
        if (at.empty())
          stores_[i].put(emitter_, lane, values[i]);
        else
          writer_.line(store_text(writer_, *outputs[i], at, values[i]));
      }
    };
    both.after = [=, this] {
      visit.after();
      for (VectorStore& store : stores_) store.finish(emitter_);
    };
    return both;
  }

  const RowForm& form_;
  const ExprPool& pool_;
  const Graph& graph_;
  const StridedReduction& plan_;
  const StridedReductionKernel kernel_;
  KernelWriter writer_;
  ExprEmitter emitter_;
  StridedReductionLoops elements_;
  StridedReductionResults results_;
  std::map<ExprId, std::string> slots_;
  std::vector<VectorStore> stores_;  // stores of the loop's current vector
};

}  // namespace

KernelSource emit_strided_reduction(const Graph& graph, const StridedReduction& plan, bool wide, int stage,
                                    const Kernel& original) {
  return StridedReductionEmitter(graph, plan, wide, stage).emit(original);
}

}  // namespace fusec
