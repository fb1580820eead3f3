#include "codegen/schedules/interleaved_results.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <numeric>

#include "codegen/schedules/row_partials.h"

namespace fusec {

void InterleavedResults::join(const ExprEmitter::Accumulator& a, const std::string& mine, int parts, int width,
                              bool all) {
  if (way_.of_warps()) return join_lines(a, mine);
  std::string places = mine;
  if (all && width != way_.width) {
    places = writer_.unique(a.name + "_all");
    writer_.line(fmt::format("{} {}[{}];", a.type, places, way_.width));
  }
  writer_.use("combine");
  if (a.extreme) {
    writer_.use("spread_extremes");
    writer_.use("extreme_lanes");
  }
  writer_.line(fmt::format("const {} {} = {};", a.type, a.name,
                           width == way_.width && (way_.shifted || way_.breadth > 1 || are_lines_of_warps())
                               ? reduced_strip(a, mine, places, all ? width : 0)
                               : reduced_in_turn(a, mine, places, parts, width, all && way_.breadth == 1)));
  if (all && width != way_.width && way_.breadth > 1) {
    writer_.use("places_of_pieces");
    writer_.line(fmt::format("places_of_pieces<{}, {}>({}, {}, (int)({} - {}));", way_.breadth, way_.rows, a.name,
                             places, elements_.phase(), elements_.begins()));
  }
  elements_.done()[a.reduction] = {.own = a, .slots = all ? places : ""};
}

// Of a warp that has all lines: each lane's places get what their columns have.
void InterleavedResults::join_lines(const ExprEmitter::Accumulator& a, const std::string& mine) {
  elements_.done()[a.reduction] = {.own = a, .slots = mine};
  if (way_.lanes() == 32) return;
  writer_.use("combine");
  writer_.use("join_lines");
  if (a.extreme) writer_.use("extreme_lanes");
  writer_.line(fmt::format("join_lines<{}>({}, {});", way_.lanes(), mine, a.combine));
}

void InterleavedResults::join_exponentials(const std::string& greatest, const std::string& sum,
                                           const std::string& shift, int parts, int width) {
  const ExprEmitter::Accumulator first = emitter_.accumulator(way_.one_pass->first);
  const ExprEmitter::Accumulator second = emitter_.accumulator(way_.one_pass->second);
  const bool own = width == way_.width;
  const std::string greatest_at = writer_.unique(first.name + "_at"), sum_at = writer_.unique(second.name + "_at");
  writer_.line(fmt::format("float {}[{}], {}[{}];", greatest_at, width, sum_at, width));
  writer_.line("#pragma unroll");
  writer_.line(fmt::format("for (int e = 0; e < {}; ++e) {}[e] = {};", width, greatest_at, greatest));
  join(first, greatest_at, parts, width, part_.is_asked_for(first.reduction));
  ExprEmitter::Accumulator all = first;
  if (own)
    all.name = elements_.done().at(first.reduction).slots + "[e]";
  else if (parts > way_.rows)
    all.name = results_of_rows(first) + "[e]";
  writer_.line("#pragma unroll");
  writer_.open(fmt::format("for (int e = 0; e < {}; ++e)", width));
  const ExprEmitter::Mark outside = emitter_.mark();
  for (const std::uint32_t a : pool_[way_.one_pass->second].axes) emitter_.bind(a, "0");
  emitter_.bind(way_.inner, elements_.row_of_place(own ? "e" : ""));
  const std::string of_all = emitter_.result(all);
  emitter_.define(first.reduction, part_.outputs ? of_all : fmt::format("RunningExponentials::shift_of({})", of_all));
  emitter_.define(way_.one_pass->element, shift);
  const std::string below = emitter_.emit(pool_[way_.one_pass->second].args[0]);
  writer_.line(fmt::format("{}[e] = {} * ({});", sum_at, sum, below));
  emitter_.rewind(outside);
  writer_.close();
  join(second, sum_at, parts, width, part_.is_asked_for(second.reduction));
}

void InterleavedResults::join_moments(const std::string& moments, int parts, int width, const std::string& about) {
  const ExprEmitter::Accumulator first = emitter_.accumulator(way_.one_pass->first);
  const ExprEmitter::Accumulator second = emitter_.accumulator(way_.one_pass->second);
  const std::string sums = writer_.unique(first.name + "_at"), squares = writer_.unique(second.name + "_at");
  writer_.line(fmt::format("{} {}[{}], {}[{}];", first.type, sums, width, squares, width));
  writer_.line("#pragma unroll");
  writer_.line(fmt::format("for (int e = 0; e < {}; ++e) {}[e] = {}[e].sum;", width, sums, moments));
  join(first, sums, parts, width, part_.is_asked_for(first.reduction));
  ExprEmitter::Accumulator all = first;
  const std::string e = writer_.unique("e");
  all.name = fmt::format("{}[{}]",
                         width == way_.width ? elements_.done().at(first.reduction).slots : results_of_rows(first), e);
  writer_.line("#pragma unroll");
  writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", e, width));
  const ExprEmitter::Mark outside = emitter_.mark();
  for (const std::uint32_t a : pool_[way_.one_pass->second].axes) emitter_.bind(a, "0");
  const bool own = width == way_.width;
  emitter_.bind(way_.inner, elements_.row_of_place(own ? e : ""));
  if (part_.outputs)
    emitter_.define(first.reduction, emitter_.result(all));
  else  // of what this block has of its rows
    emitter_.define(
        way_.one_pass->mean,
        fmt::format("({} / {})", all.name, scaled_count(elements_.elements_of_chunk(elements_.chunk(), own ? e : ""))));
  emitter_.define(way_.one_pass->element, about.empty() ? fmt::format("{}[{}].mean", moments, e)
                                                        : fmt::format("({} + {}[{}].mean)", about, moments, e));
  const std::string of_all = emitter_.emit(pool_[way_.one_pass->second].args[0]);
  writer_.line(fmt::format("{0}[{1}] = {2}[{1}].squares + {2}[{1}].count * ({3});", squares, e, moments, of_all));
  emitter_.rewind(outside);
  writer_.close();
  join(second, squares, parts, width, part_.is_asked_for(second.reduction));
}

std::string InterleavedResults::type_of_pass() const {
  return c_type(pool_[way_.one_pass->first].type);
}

std::string InterleavedResults::scaled_count(const std::string& count) const {
  return divisor_of_sum(count, type_of_pass(), way_.one_pass->scale);
}

// Where threads have an element each, of row `thread % rows`: that row's result, which a thread of it has found.
std::string InterleavedResults::results_of_rows(const ExprEmitter::Accumulator& a) {
  const std::string mine = writer_.unique("mine");
  writer_.use("result_in_turn");
  writer_.line(fmt::format("const {} {}[1] = {{result_in_turn<{}>({}, {})}};", a.type, mine, way_.rows, a.name,
                           elements_.thread()));
  return mine;
}

// Has each warp whole lines of a strip, and neither part nor rest of one?
bool InterleavedResults::are_lines_of_warps() const {
  return way_.in_strips && 32 % way_.lanes() == 0 && way_.parts == way_.team;
}

std::string InterleavedResults::reduced_in_turn(const ExprEmitter::Accumulator& a, const std::string& mine,
                                                const std::string& places, int parts, int width, bool all) {
  writer_.use("interleaved_reduce");
  return fmt::format("interleaved_reduce<{}, {}, {}, {}, {}, {}>({}, {}, {}, {})", way_.team, way_.teams, parts, width,
                     way_.rows, all ? way_.width : 0, mine, places, elements_.thread(), a.combine);
}

// Of strips, and of rows with several elements of a line.
std::string InterleavedResults::reduced_strip(const ExprEmitter::Accumulator& a, const std::string& mine,
                                              const std::string& places, int count) {
  const std::string none = a.extreme ? a.type + a.identity : fmt::format("({}){}", a.type, a.identity);
  const std::string first = fmt::format("(int)({} - {})", elements_.phase(), elements_.begins());
  if (way_.breadth == 1 && !way_.shifted) {
    writer_.use("reduce_strip");
    return fmt::format("reduce_strip<{}, {}, {}>({}, {}, {})", way_.team, way_.lanes(), count, mine, places, a.combine);
  }
  if (way_.breadth == 1) {
    writer_.use("shifted_lines");
    return fmt::format("reduce_shifted<{}, {}, {}, {}, {}>({}, {}, {}, {})", way_.team, way_.parts, way_.lanes(),
                       way_.rows, count, mine, places, first, a.combine);
  }
  writer_.use("reduce_pieces");
  if (!way_.shifted)
    return fmt::format("reduce_pieces<{}, {}, {}, {}, {}>({}, {}, {}, {})", way_.team, way_.parts, way_.breadth,
                       way_.rows, count, mine, places, none, a.combine);
  return fmt::format("reduce_piece<{}, {}, {}, {}, {}>({}, {}, {}, {}, {})", way_.team, way_.parts, way_.breadth, count,
                     pieces_reduced_++, mine, places, first, none, a.combine);
}

std::string InterleavedResults::partials(const ExprEmitter::Accumulator& a) {
  std::string& pointer = partials_[a.reduction];
  const IndexExpr teams = point_count(pool_, way_.outer) * way_.strips();
  if (pointer.empty()) pointer = row_partials(writer_, form_, a, teams * part_.chunks() * way_.rows);
  return pointer;
}

void InterleavedResults::leave_partials(const std::vector<ExprId>& reductions) {
  writer_.open(fmt::format("if ({} < {})", elements_.thread(), way_.rows));
  for (const ExprId r : reductions)
    if (!is_left_from_places(r))
      leave_partial(partials(elements_.done().at(r).own), elements_.thread(), elements_.done().at(r).own.name);
  writer_.close();
  for (const ExprId r : reductions)
    if (is_left_from_places(r)) leave_from_places(elements_.done().at(r));
}

void InterleavedResults::leave_partials() {
  std::vector<ExprId> here;
  for (const ReductionLoop& loop : part_.loops)
    if (way_.one_pass || loop.stage == part_.stage) std::ranges::copy(loop.reductions, std::back_inserter(here));
  leave_partials(here);
}

void InterleavedResults::leave_partial(const std::string& pointer, const std::string& row, const std::string& value) {
  writer_.line(fmt::format("{}[({} * {} + {}) * {} + {}] = {};", pointer, elements_.group(), elements_.chunks(),
                           elements_.chunk(), way_.rows, row, value));
}

// What each place has of it is in registers. Of so many rows, another look into shared memory would meet in its banks.
bool InterleavedResults::is_left_from_places(ExprId reduction) const {
  return way_.one_pass && reduction == way_.one_pass->first && !way_.in_strips && way_.breadth == 1 &&
         way_.rows / std::gcd(way_.rows, way_.width) > 32;
}

// As many threads as have all rows between them, each those that are its own.
void InterleavedResults::leave_from_places(const InterleavedElements::Done& done) {
  const int each = std::gcd(way_.rows, way_.width);
  const std::string e = writer_.unique("e"), pointer = partials(done.own);
  writer_.open(fmt::format("if ({} < {})", elements_.thread(), way_.rows / each));
  writer_.line("#pragma unroll");
  writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", e, each));
  leave_partial(pointer, fmt::format("({} * {} + {}) % {}", elements_.thread(), way_.width, e, way_.rows),
                fmt::format("{}[{}]", done.slots, e));
  writer_.close();
  writer_.close();
}

// Threads that combine what blocks have left: one for each row where those are few.
int InterleavedResults::combining() const {
  return way_.cohort ? way_.rows : way_.team / way_.rows * way_.rows;
}

// How many of them blocks have left of a team's rows.
std::string InterleavedResults::partials_of_rows() const {
  return part_.chunks().as_constant() ? std::to_string(way_.chunks * way_.rows)
                                      : fmt::format("({} * {})", elements_.chunks(), way_.rows);
}

void InterleavedResults::combine_partials(ExprId reduction) {
  const ExprEmitter::Accumulator a = emitter_.accumulator(reduction);
  const std::string mine = writer_.unique(a.name + "_at"), i = writer_.unique("i"), pointer = partials(a);
  const int parts = combining();
  const std::string count = partials_of_rows();
  writer_.line(fmt::format("{} {}[1] = {{{}{}}};", a.type, mine, a.extreme ? a.type : "", a.identity));
  writer_.line(fmt::format("if ({} < {})", elements_.thread(), parts));
  writer_.line(fmt::format("  for (int {0} = {1}; {0} < {2}; {0} += {3})", i, elements_.thread(), count, parts));
  writer_.use("combine");
  writer_.line(fmt::format("    {0}[0] = {1}({0}[0], {2}[{3} * {4} + {5}]);", mine, a.combine, pointer,
                           elements_.group(), count, i));
  join(a, mine, parts, 1, part_.is_asked_for(reduction));
}

void InterleavedResults::combine_exponentials() {
  const std::string first = partials(emitter_.accumulator(way_.one_pass->first));
  const std::string second = partials(emitter_.accumulator(way_.one_pass->second));
  const std::string running = writer_.unique("running"), i = writer_.unique("i"), at = writer_.unique("at");
  const int parts = combining();
  const std::string count = partials_of_rows();
  writer_.line(fmt::format("RunningExponentials {};", running));
  writer_.line(fmt::format("if ({} < {})", elements_.thread(), parts));
  writer_.open(fmt::format("  for (int {0} = {1}; {0} < {2}; {0} += {3})", i, elements_.thread(), count, parts));
  writer_.line(fmt::format("const {} {} = {} * {} + {};", writer_.index_type(), at, elements_.group(), count, i));
  writer_.line(fmt::format("{0}.take_part({1}[{3}], {2}[{3}]);", running, first, second, at));
  writer_.close();
  join_exponentials(running + ".greatest", running + ".sum", running + ".shift()", parts, 1);
}

void InterleavedResults::combine_moments() {
  const std::string sums = partials(emitter_.accumulator(way_.one_pass->first));
  const std::string squares = partials(emitter_.accumulator(way_.one_pass->second));
  const std::string moments = writer_.unique("moments"), i = writer_.unique("i"), at = writer_.unique("at");
  const std::string about = writer_.unique("about"), type = writer_.index_type();
  const int parts = combining();
  const std::string count = partials_of_rows();
  writer_.use("running_moments");
  writer_.line(fmt::format("{} {}[1];", running_moments(type_of_pass(), way_.one_pass->scale), moments));
  writer_.line(fmt::format("const {} {} = {}[{} * {} + {} % {}] / {};", type_of_pass(), about, sums, elements_.group(),
                           count, elements_.thread(), way_.rows, scaled_count(elements_.elements_of_chunk("0", ""))));
  writer_.line(fmt::format("if ({} < {})", elements_.thread(), parts));
  writer_.open(fmt::format("  for (int {0} = {1}; {0} < {2}; {0} += {3})", i, elements_.thread(), count, parts));
  writer_.line(fmt::format("const {} {} = {} * {} + {};", type, at, elements_.group(), count, i));
  writer_.line(fmt::format("{0}[0].take_part({1}[{3}], {2}[{3}], {4}, {5});", moments, sums, squares, at,
                           elements_.elements_of_chunk(fmt::format("{} / {}", i, way_.rows), ""), about));
  writer_.close();
  join_moments(moments, parts, 1, about);
}

void InterleavedResults::meet() {
  writer_.line(
      fmt::format("cohort_meet({} + 1 + {}, {});", elements_.arrived(), elements_.group(), way_.chunks * ++meetings_));
}

}  // namespace fusec
