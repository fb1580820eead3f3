// Split-KV attention: several blocks share the keys of a row. For each row, a block stores its accumulators, maximum
// score and total, and the last block to finish combines them into one softmax, in the order of the keys. Where outputs
// have an element per key, a second kernel combines them.
#include <fmt/format.h>

#include "codegen/access/direct.h"
#include "codegen/attention/attention_emitter.h"

namespace fusec {

IndexExpr AttentionEmitter::tiles_of_split() const {
  return simplify(max(ceil_div(count(form_.keys), splits_.most * tiles_.keys), splits_.min_tiles), pool_.bounds());
}

IndexExpr AttentionEmitter::splits_in_use() const {
  const IndexExpr all_tiles = max(ceil_div(count(form_.keys), tiles_.keys), 1);
  return simplify(ceil_div(all_tiles, tiles_of_split()), pool_.bounds());
}

bool AttentionEmitter::may_see_nothing() const {
  const bool shared = part_ == AttentionPart::kSplit;
  if (form_.first_key || (form_.last_key && (shared || !proves_nonnegative(*form_.last_key, pool_.bounds()))))
    return true;
  return !proves_nonnegative(simplify(count(form_.keys) - 1, pool_.bounds()), pool_.bounds());
}

void AttentionEmitter::restrict_keys_to_split(std::string& first, std::string& end) {
  const std::string mine = writer_.unique("share_first"), stop = writer_.unique("share_end");
  const IndexExpr of_split = tiles_of_split() * tiles_.keys;
  writer_.line(
      fmt::format("const {0} {1} = max(({0})({2}), {3} * {4});", integer(), mine, first, split_, text(of_split)));
  writer_.line(
      fmt::format("const {0} {1} = min(({0})({2}), ({3} + 1) * {4});", integer(), stop, end, split_, text(of_split)));
  first = mine;
  end = stop;
}

std::string AttentionEmitter::partial_row(const std::string& split, const std::string& row) {
  const IndexExpr rows = count(form_.rows), batches = count(form_.batch);
  const int width = partial_columns() + 4;
  const int bytes = pool_[form_.contraction].type == ScalarType::kFloat64 ? 8 : 4;
  if (partial_.empty())
    partial_ = writer_.workspace(rows * batches * (splits_.most * width * bytes), 0, type() + " partial");
  return fmt::format("{} + (({} * {} + {}) * {} + {}) * {}", partial_, split, text(batches), batch_, text(rows), row,
                     width);
}

void AttentionEmitter::open_merged_warps() {
  writer_.use("merge_key_warps");
  writer_.line(fmt::format("merge_key_warps<{}>({}, {}, {}, (float*){}, {});", tiles_.key_warps, accumulator_,
                           greatest_, total_, key_tile_, number(exponent_scale())));
  writer_.open("if (warp == 0)");
}

void AttentionEmitter::store_partial_state() {
  const std::string r = writer_.unique("r"), m = writer_.unique("m"), row_name = writer_.unique("row");
  const std::string to = writer_.unique("to");
  const int width = tiles_.tensor_cores ? 2 : tiles_.vector_columns ? 4 : 1;
  writer_.use("neighbours");
  writer_.line("#pragma unroll");
  writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", r, tiles_.thread_rows));
  for (int mask = 1; mask < tiles_.lanes_of_row(); mask *= 2)
    writer_.line(fmt::format("{0}[{1}] += __shfl_xor_sync(0xffffffffu, {0}[{1}], {2});", total_, r, mask));
  writer_.line(fmt::format("const {} {} = {};", integer(), row_name, row(r)));
  writer_.line(fmt::format("if ({} >= {}) continue;", row_name, text(count(form_.rows))));
  writer_.line(fmt::format("{}* const {} = {};", type(), to, partial_row(split_, row_name)));
  writer_.line("#pragma unroll");
  std::string values;
  for (int i = 0; i < width; ++i) values += (i ? ", " : "") + sum(r, i ? fmt::format("({} + {})", m, i) : m);
  writer_.line(fmt::format("for (int {0} = 0; {0} < {1}; {0} += {2}) *(Neighbours<{3}, {2}>*)({4} + {5}) = {{{6}}};", m,
                           tiles_.thread_columns(), width, type(), to, column(m), values));
  writer_.line(fmt::format("if ({0} == 0) {1}[{2}] = {3}[{4}], {1}[{2} + 1] = {5}[{4}];", thread_column_, to,
                           partial_columns(), greatest_, r, total_));
  writer_.close();
}

void AttentionEmitter::combine_splits() {
  const std::string r = writer_.unique("r"), m = writer_.unique("m"), row_name = writer_.unique("row");
  const std::string split = writer_.unique("share"), from = writer_.unique("from"), now = writer_.unique("now");
  const std::string before = writer_.unique("before"), more = writer_.unique("more");
  writer_.use(tiles_.tensor_cores ? "softmax_fragments" : "softmax_lanes");
  writer_.line("#pragma unroll");
  writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", r, tiles_.thread_rows));
  writer_.line(fmt::format("const {} {} = {};", integer(), row_name, row(r)));
  writer_.line(fmt::format("if ({} >= {}) continue;", row_name, text(count(form_.rows))));
  writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", split, text(splits_in_use())));
  writer_.line(fmt::format("const {}* const {} = {};", type(), from, partial_row(split, row_name)));
  const std::string theirs = fmt::format("{}[{}]", from, partial_columns());
  writer_.line(fmt::format("const {0} {1} = {2} > {3}[{4}] ? {2} : {3}[{4}];", type(), now, theirs, greatest_, r));
  writer_.line(fmt::format("const {} {} = {};", type(), before, weight_of(fmt::format("{}[{}]", greatest_, r), now)));
  writer_.line(fmt::format("const {} {} = {};", type(), more, weight_of(theirs, now)));
  writer_.line(fmt::format("{}[{}] = {};", greatest_, r, now));
  // Only one lane adds the total of the split, because the lanes of a row are summed later.
  writer_.line(fmt::format("{0}[{1}] = {0}[{1}] * {2} + ({3} == 0 ? {4}[{5}] * {6} : {7});", total_, r, before,
                           thread_column_, from, partial_columns() + 1, more, number(0)));
  // Only one block of the row stores its result.
  if (splits_keys()) writer_.line(fmt::format("if ({} > 0) continue;", split_));
  writer_.line("#pragma unroll");
  writer_.line(fmt::format("for (int {0} = 0; {0} < {1}; ++{0}) {2} = {2} * {3} + {4}[{5}] * {6};", m,
                           tiles_.thread_columns(), sum(r, m), before, from, column(m), more));
  writer_.close();
  writer_.close();
}

void AttentionEmitter::combine_in_last_block() {
  const std::string arrived = writer_.counters(row_tiles() * count(form_.batch), 1);
  writer_.use("last_block");
  writer_.line(fmt::format("if (!is_last_block({} + {}, {})) return;", arrived, row_tile_, text(splits_in_use())));
  const AttentionTiles tiles = combine_tiles(tiles_);
  AttentionEmitter last(form_, graph_, tiles, writer_, emitter_, code_, AttentionPart::kCombine, splits_);
  last.partial_ = partial_;
  last.batch_ = batch_;
  last.combine_rows(row0_, tiles_.rows);
}

void AttentionEmitter::combine_rows(const std::string& first, int most) {
  row0_ = writer_.unique("row0");
  writer_.line("#pragma unroll 1");
  writer_.open(fmt::format("for ({0} {1} = {2}; {1} < min(({0})({2} + {3}), ({0})({4})); {1} += {5})", integer(), row0_,
                           first, most, text(count(form_.rows)), tiles_.rows));
  place_threads();
  declare_state();
  combine_in_lanes();
  finish_rows();
  store_rows();
  writer_.close();
}

// The maximum of all splits is computed first. The splits are then independent, so many loads can be in flight.
void AttentionEmitter::combine_in_lanes() {
  const std::string row_name = writer_.unique("row"), split = writer_.unique("share"), from = writer_.unique("from");
  const std::string theirs = writer_.unique("theirs"), more = writer_.unique("more"), four = writer_.unique("four");
  const std::string m = writer_.unique("m");
  writer_.use("softmax_lanes");
  writer_.use("neighbours");
  writer_.line(fmt::format("const {} {} = {};", integer(), row_name, row("0")));
  writer_.open(fmt::format("if ({} < {})", row_name, text(count(form_.rows))));
  const auto each_split = [&] {
    writer_.line("#pragma unroll 8");
    writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", split, text(splits_in_use())));
    writer_.line(fmt::format("const {}* const {} = {};", type(), from, partial_row(split, row_name)));
    writer_.line(fmt::format("const {} {} = {}[{}];", type(), theirs, from, partial_columns()));
  };
  each_split();
  writer_.line(fmt::format("{0}[0] = {1} > {0}[0] ? {1} : {0}[0];", greatest_, theirs));
  writer_.close();
  each_split();
  writer_.line(fmt::format("const {} {} = {};", type(), more, weight_of(theirs, greatest_ + "[0]")));
  // Only one lane adds the total of the split, because the lanes of a row are summed later.
  writer_.line(fmt::format("{}[0] += {} == 0 ? {}[{}] * {} : {};", total_, thread_column_, from, partial_columns() + 1,
                           more, number(0)));
  writer_.line("#pragma unroll");
  writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; {0} += 4)", m, tiles_.thread_columns()));
  writer_.line(fmt::format("const auto {} = *(const Neighbours<{}, 4>*)({} + {});", four, type(), from, column(m)));
  for (int i = 0; i < 4; ++i)
    writer_.line(fmt::format("{0}[0][{1} + {2}] += {3}.v[{2}] * {4};", accumulator_, m, i, four, more));
  writer_.close();
  writer_.close();
  writer_.close();
}

}  // namespace fusec
