#include "codegen/reduction/strided_reduction_results.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <numeric>

namespace fusec {

void StridedReductionResults::join(const ExprEmitter::Accumulator& a, const std::string& mine, int parts, int width,
                                   bool all) {
  if (plan_.has_warp_per_strip()) return join_lines(a, mine);
  std::string places = mine;
  if (all && width != plan_.width) {
    places = writer_.unique(a.name + "_all");
    writer_.line("{} {}[{}];", a.type, places, plan_.width);
  }
  writer_.use("combine");
  if (a.extreme) {
    writer_.use("padded_extremes");
    writer_.use("extreme_lanes");
  }
  writer_.line("const {} {} = {};", a.type, a.name,
               width == plan_.width && (plan_.unaligned || plan_.elements_per_line > 1 || are_lines_of_warps())
                   ? reduced_strip(a, mine, places, all ? width : 0)
                   : reduced_sequentially(a, mine, places, parts, width, all && plan_.elements_per_line == 1));
  if (all && width != plan_.width && plan_.elements_per_line > 1) {
    writer_.use("broadcast_row_results");
    writer_.line("broadcast_row_results<{}, {}>({}, {}, (int)({} - {}));", plan_.elements_per_line, plan_.rows, a.name,
                 places, elements_.phase(), elements_.first_row());
  }
  elements_.done()[a.reduction] = {.own = a, .slots = all ? places : ""};
}

// A warp with all lines of its strip: each lane gets the results of its columns.
void StridedReductionResults::join_lines(const ExprEmitter::Accumulator& a, const std::string& mine) {
  elements_.done()[a.reduction] = {.own = a, .slots = mine};
  if (plan_.lanes() == 32) return;
  writer_.use("combine");
  writer_.use("join_lines");
  if (a.extreme) writer_.use("extreme_lanes");
  writer_.line("join_lines<{}>({}, {});", plan_.lanes(), mine, a.combine);
}

void StridedReductionResults::join_pass(const PassResults& lane, int parts, int width) {
  const ExprEmitter::Accumulator first = emitter_.accumulator(plan_.one_pass->first);
  const ExprEmitter::Accumulator second = emitter_.accumulator(plan_.one_pass->second);
  const bool own = width == plan_.width;
  const std::string first_at = writer_.unique(first.name + "_at"), second_at = writer_.unique(second.name + "_at");
  writer_.line("{} {}[{}], {}[{}];", first.type, first_at, width, second_at, width);
  writer_.line("#pragma unroll");
  writer_.line("for (int e = 0; e < {}; ++e) {}[e] = {};", width, first_at, lane.first);
  join(first, first_at, parts, width, kernel_.is_read_per_element(first.reduction));
  ExprEmitter::Accumulator all = first;
  if (own || parts > plan_.rows)
    all.name = (own ? elements_.done().at(first.reduction).slots : results_of_rows(first)) + "[e]";
  writer_.open_unrolled("e", width);
  const ExprEmitter::Mark outside = emitter_.mark();
  for (const std::uint32_t a : pool_[second.reduction].axes) emitter_.bind(a, "0");
  emitter_.bind(plan_.inner, elements_.row_at_lane(own ? "e" : ""));
  // Without outputs, results are relative to what this block has of its rows.
  if (kernel_.outputs)
    emitter_.define(first.reduction, emitter_.result(all));
  else if (plan_.one_pass->kind == RowOnePass::Kind::kExponentials)
    emitter_.define(first.reduction, fmt::format("OnlineSoftmax::shift_of({})", emitter_.result(all)));
  else
    emitter_.define(plan_.one_pass->mean,
                    fmt::format("({} / {})", all.name,
                                scaled_count(elements_.elements_of_chunk(elements_.chunk(), own ? "e" : ""))));
  emitter_.define(plan_.one_pass->element, lane.element);
  const std::string of_all = emitter_.emit(pool_[second.reduction].args[0]);
  writer_.line("{}[e] = {};", second_at, fmt::format(fmt::runtime(lane.second), of_all));
  emitter_.rewind(outside);
  writer_.close();
  join(second, second_at, parts, width, kernel_.is_read_per_element(second.reduction));
}

std::string StridedReductionResults::type_of_pass() const {
  return c_type(pool_[plan_.one_pass->first].type);
}

std::string StridedReductionResults::scaled_count(const std::string& count) const {
  return divisor_of_sum(count, type_of_pass(), plan_.one_pass->scale);
}

// If threads have one element each, of row `thread % rows`: the result of that row, computed by another thread of it.
std::string StridedReductionResults::results_of_rows(const ExprEmitter::Accumulator& a) {
  const std::string mine = writer_.unique("mine");
  writer_.use("interleaved_result");
  writer_.line("const {} {}[1] = {{interleaved_result<{}>({}, {})}};", a.type, mine, plan_.rows, a.name,
               elements_.thread());
  return mine;
}

// True if each warp has whole lines of a strip, without a remainder.
bool StridedReductionResults::are_lines_of_warps() const {
  return plan_.in_strips && 32 % plan_.lanes() == 0 && plan_.parts == plan_.group_threads;
}

std::string StridedReductionResults::reduced_sequentially(const ExprEmitter::Accumulator& a, const std::string& mine,
                                                          const std::string& places, int parts, int width, bool all) {
  writer_.use("interleaved_reduce");
  return fmt::format("interleaved_reduce<{}, {}, {}, {}, {}, {}>({}, {}, {}, {})", plan_.group_threads,
                     plan_.groups_per_block, parts, width, plan_.rows, all ? plan_.width : 0, mine, places,
                     elements_.thread(), a.combine);
}

// For strips, and for rows with several elements per line.
std::string StridedReductionResults::reduced_strip(const ExprEmitter::Accumulator& a, const std::string& mine,
                                                   const std::string& places, int count) {
  const std::string none = a.extreme ? a.type + a.identity : fmt::format("({}){}", a.type, a.identity);
  const std::string first = fmt::format("(int)({} - {})", elements_.phase(), elements_.first_row());
  if (plan_.elements_per_line == 1 && !plan_.unaligned) {
    writer_.use("reduce_strip");
    return fmt::format("reduce_strip<{}, {}, {}>({}, {}, {})", plan_.group_threads, plan_.lanes(), count, mine, places,
                       a.combine);
  }
  if (plan_.elements_per_line == 1) {
    writer_.use("unaligned_strip");
    return fmt::format("reduce_unaligned_strip<{}, {}, {}, {}, {}>({}, {}, {}, {})", plan_.group_threads, plan_.parts,
                       plan_.lanes(), plan_.rows, count, mine, places, first, a.combine);
  }
  writer_.use("reduce_pieces");
  if (!plan_.unaligned)
    return fmt::format("reduce_pieces<{}, {}, {}, {}, {}>({}, {}, {}, {})", plan_.group_threads, plan_.parts,
                       plan_.elements_per_line, plan_.rows, count, mine, places, none, a.combine);
  return fmt::format("reduce_piece<{}, {}, {}, {}, {}>({}, {}, {}, {}, {})", plan_.group_threads, plan_.parts,
                     plan_.elements_per_line, count, strip_reductions_++, mine, places, first, none, a.combine);
}

std::string StridedReductionResults::partials(const ExprEmitter::Accumulator& a) {
  std::string& pointer = partials_[a.reduction];
  const IndexExpr groups_per_block = point_count(pool_, plan_.outer) * plan_.strips();
  if (pointer.empty()) pointer = row_partials(writer_, form_, a, groups_per_block * kernel_.chunks() * plan_.rows);
  return pointer;
}

void StridedReductionResults::store_partials(const std::vector<ExprId>& reductions) {
  writer_.open("if ({} < {})", elements_.thread(), plan_.rows);
  for (const ExprId r : reductions)
    writer_.line("{}[({} * {} + {}) * {} + {}] = {};", partials(elements_.done().at(r).own), elements_.group(),
                 elements_.chunks(), elements_.chunk(), plan_.rows, elements_.thread(),
                 elements_.done().at(r).own.name);
  writer_.close();
}

void StridedReductionResults::store_partials() {
  std::vector<ExprId> here;
  for (const ReductionLoop& loop : kernel_.loops)
    if (plan_.one_pass || loop.stage == kernel_.stage) std::ranges::copy(loop.reductions, std::back_inserter(here));
  store_partials(here);
}

// Threads that combine the blocks' partial results: one per row for co-resident blocks.
int StridedReductionResults::combining() const {
  return plan_.resident_blocks ? plan_.rows : plan_.group_threads / plan_.rows * plan_.rows;
}

// The number of partial results of a group's rows.
std::string StridedReductionResults::partials_of_rows() const {
  return kernel_.chunks().as_constant() ? std::to_string(plan_.chunks * plan_.rows)
                                        : fmt::format("({} * {})", elements_.chunks(), plan_.rows);
}

// Emits the loop in which each of these threads takes partial results of its row; `take` gets the place of one and the
// number of its chunk.
void StridedReductionResults::over_partials(const std::function<void(const std::string&, const std::string&)>& take) {
  const std::string i = writer_.unique("i"), at = writer_.unique("at");
  const std::string count = partials_of_rows();
  writer_.line("if ({} < {})", elements_.thread(), combining());
  writer_.open("  for (int {0} = {1}; {0} < {2}; {0} += {3})", i, elements_.thread(), count, combining());
  writer_.line("const {} {} = {} * {} + {};", writer_.index_type(), at, elements_.group(), count, i);
  take(at, fmt::format("{} / {}", i, plan_.rows));
  writer_.close();
}

void StridedReductionResults::combine_partials(ExprId reduction) {
  const ExprEmitter::Accumulator a = emitter_.accumulator(reduction);
  const std::string mine = writer_.unique(a.name + "_at"), pointer = partials(a);
  writer_.line("{} {}[1] = {{{}{}}};", a.type, mine, a.extreme ? a.type : "", a.identity);
  writer_.use("combine");
  over_partials([&](const std::string& at, const std::string&) {
    writer_.line("{0}[0] = {1}({0}[0], {2}[{3}]);", mine, a.combine, pointer, at);
  });
  join(a, mine, combining(), 1, kernel_.is_read_per_element(reduction));
}

void StridedReductionResults::combine_pass() {
  const std::string first = partials(emitter_.accumulator(plan_.one_pass->first));
  const std::string second = partials(emitter_.accumulator(plan_.one_pass->second));
  if (plan_.one_pass->kind == RowOnePass::Kind::kExponentials) {
    const std::string running = writer_.unique("running");
    writer_.use("online_softmax");
    writer_.line("OnlineSoftmax {};", running);
    over_partials([&](const std::string& at, const std::string&) {
      writer_.line("{0}.merge_partial({1}[{3}], {2}[{3}]);", running, first, second, at);
    });
    return join_pass(results_of_exponentials(running), combining(), 1);
  }
  const std::string moments = writer_.unique("moments"), about = writer_.unique("about");
  writer_.use("running_moments");
  writer_.line("{} {}[1];", running_moments(type_of_pass(), plan_.one_pass->scale), moments);
  writer_.line("const {} {} = {}[{} * {} + {} % {}] / {};", type_of_pass(), about, first, elements_.group(),
               partials_of_rows(), elements_.thread(), plan_.rows, scaled_count(elements_.elements_of_chunk("0", "")));
  over_partials([&](const std::string& at, const std::string& chunk) {
    writer_.line("{0}[0].merge_partial({1}[{3}], {2}[{3}], {4}, {5});", moments, first, second, at,
                 elements_.elements_of_chunk(chunk, ""), about);
  });
  join_pass(results_of_moments(moments + "[e]", about), combining(), 1);
}

void StridedReductionResults::wait_for_blocks() {
  writer_.line("cohort_barrier({} + 1 + {}, {});", elements_.arrived(), elements_.group(), plan_.chunks * ++barriers_);
}

}  // namespace fusec
