// Attention whose keys several blocks share: each leaves sums, greatest score and total of its keys for every row, and
// another kernel makes one softmax of them, in the order of the keys.
#include <fmt/format.h>

#include "codegen/schedules/attention_emitter.h"
#include "codegen/schedules/direct.h"

namespace fusec {

void AttentionEmitter::narrow_keys(std::string& first, std::string& end) {
  const std::string mine = writer_.unique("share_first"), stop = writer_.unique("share_end");
  const IndexExpr of_share = ceil_div(count(form_.keys), shares_ * tiles_.keys) * tiles_.keys;
  writer_.line(
      fmt::format("const {0} {1} = max(({0})({2}), {3} * {4});", integer(), mine, first, share_, text(of_share)));
  writer_.line(
      fmt::format("const {0} {1} = min(({0})({2}), ({3} + 1) * {4});", integer(), stop, end, share_, text(of_share)));
  first = mine;
  end = stop;
}

std::string AttentionEmitter::partial_row(const std::string& share, const std::string& row) {
  const IndexExpr rows = count(form_.rows), batches = count(form_.batch);
  const int width = tiles_.columns + 2;
  const int bytes = pool_[form_.product].type == ScalarType::kFloat64 ? 8 : 4;
  if (partial_.empty())
    partial_ = writer_.workspace(rows * batches * (shares_ * width * bytes), 0, type() + " partial");
  return fmt::format("{} + (({} * {} + {}) * {} + {}) * {}", partial_, share, text(batches), batch_, text(rows), row,
                     width);
}

void AttentionEmitter::leave_state() {
  const std::string r = writer_.unique("r"), m = writer_.unique("m"), row_name = writer_.unique("row");
  const std::string to = writer_.unique("to");
  writer_.line("#pragma unroll");
  writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", r, tiles_.my_rows));
  for (int mask = 1; mask < tiles_.lanes_of_row(); mask *= 2)
    writer_.line(fmt::format("{0}[{1}] += __shfl_xor_sync(0xffffffffu, {0}[{1}], {2});", total_, r, mask));
  writer_.line(fmt::format("const {} {} = {};", integer(), row_name, row(r)));
  writer_.line(fmt::format("if ({} >= {}) continue;", row_name, text(count(form_.rows))));
  writer_.line(fmt::format("{}* const {} = {};", type(), to, partial_row(share_, row_name)));
  writer_.line("#pragma unroll");
  writer_.line(fmt::format("for (int {0} = 0; {0} < {1}; ++{0}) {2}[{3}] = {4};", m, tiles_.my_columns(), to, column(m),
                           sum(r, m)));
  writer_.line(fmt::format("if ({0} == 0) {1}[{2}] = {3}[{4}], {1}[{2} + 1] = {5}[{4}];", my_column_, to,
                           tiles_.columns, greatest_, r, total_));
  writer_.close();
}

void AttentionEmitter::combine_shares() {
  const std::string r = writer_.unique("r"), m = writer_.unique("m"), row_name = writer_.unique("row");
  const std::string share = writer_.unique("share"), from = writer_.unique("from"), now = writer_.unique("now");
  const std::string before = writer_.unique("before"), more = writer_.unique("more");
  writer_.use(tiles_.tensor_cores ? "softmax_fragments" : "softmax_lanes");
  writer_.line("#pragma unroll");
  writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", r, tiles_.my_rows));
  writer_.line(fmt::format("const {} {} = {};", integer(), row_name, row(r)));
  writer_.line(fmt::format("if ({} >= {}) continue;", row_name, text(count(form_.rows))));
  writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", share, shares_));
  writer_.line(fmt::format("const {}* const {} = {};", type(), from, partial_row(share, row_name)));
  const std::string theirs = fmt::format("{}[{}]", from, tiles_.columns);
  writer_.line(fmt::format("const {0} {1} = {2} > {3}[{4}] ? {2} : {3}[{4}];", type(), now, theirs, greatest_, r));
  writer_.line(fmt::format("const {} {} = weight_of({}[{}], {}, {});", type(), before, greatest_, r, now,
                           number(exponent_scale())));
  writer_.line(
      fmt::format("const {} {} = weight_of({}, {}, {});", type(), more, theirs, now, number(exponent_scale())));
  writer_.line(fmt::format("{}[{}] = {};", greatest_, r, now));
  // A row's lanes add up their totals later on: one of them has this.
  writer_.line(fmt::format("{0}[{1}] = {0}[{1}] * {2} + ({3} == 0 ? {4}[{5}] * {6} : {7});", total_, r, before,
                           my_column_, from, tiles_.columns + 1, more, number(0)));
  // One of the row's blocks stores what comes of the sums.
  if (shares_keys()) writer_.line(fmt::format("if ({} > 0) continue;", share_));
  writer_.line("#pragma unroll");
  writer_.line(fmt::format("for (int {0} = 0; {0} < {1}; ++{0}) {2} = {2} * {3} + {4}[{5}] * {6};", m,
                           tiles_.my_columns(), sum(r, m), before, from, column(m), more));
  writer_.close();
  writer_.close();
}

}  // namespace fusec
