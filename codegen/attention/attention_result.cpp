#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "analysis/kernel/loads.h"
#include "codegen/access/direct.h"
#include "codegen/attention/attention_emitter.h"
#include "ir/type.h"

namespace fusec {

void AttentionEmitter::define_row(const std::string& r) {
  const std::string row_maximum = fmt::format("{}[{}]", greatest_, r), total = fmt::format("{}[{}]", total_, r);
  emitter_.define(form_.row_maximum, form_.score_scale == 1
                                         ? row_maximum
                                         : fmt::format("({} * {})", row_maximum, number(form_.score_scale)));
  if (form_.total != kNoExpr)
    emitter_.define(form_.total,
                    form_.shrink == kNoExpr ? total : fmt::format("({} * {})", total, emitter_.emit(form_.shrink)));
  if (form_.shifted_total != kNoExpr) {
    const std::string infinite = number(std::numeric_limits<double>::infinity());
    emitter_.define(form_.shifted_total, fmt::format("({0} == {1} ? {2} : {0} == {3} ? {3} : {4})", row_maximum,
                                                     bottom(), number(0), infinite, total));
  }
  for (const ExprId id : form_.some_key)
    emitter_.define(id, fmt::format("({} != {} || {} != {})", row_maximum, bottom(), total, total));
  for (const ExprId id : form_.no_key)
    emitter_.define(id, fmt::format("({} == {} && {} == {})", row_maximum, bottom(), total, total));
}

void AttentionEmitter::finish_rows() {
  const std::string r = writer_.unique("r");
  row_scale_ = writer_.unique("row_scale");
  writer_.line(fmt::format("{} {}[{}];", type(), row_scale_, tiles_.thread_rows));
  const ExprEmitter::Mark outside = emitter_.mark();
  writer_.line("#pragma unroll");
  writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", r, tiles_.thread_rows));
  for (int mask = 1; mask < tiles_.lanes_of_row(); mask *= 2)
    writer_.line(fmt::format("{0}[{1}] += __shfl_xor_sync(0xffffffffu, {0}[{1}], {2});", total_, r, mask));
  const IndexExpr keys = count(form_.keys);
  const bool some_keys = proves_nonnegative(keys - 1, pool_.bounds());
  if (form_.empty_rows_are_nan)
    writer_.line(fmt::format("if ({}[{}] == {}) {}[{}] = {};", greatest_, r, bottom(), total_, r,
                             number(std::numeric_limits<double>::quiet_NaN())));
  std::vector<ExprId> operands;
  for (const WeightStep& step : form_.row_weight_steps) operands.push_back(step.operand);
  const bool guarded = holds_loads_outside(operands);
  const std::string row_name = writer_.unique("row");
  writer_.line(fmt::format("const {} {} = {};", integer(), row_name, row(r)));
  std::string there = some_keys ? "" : fmt::format("{} > 0", text(keys));
  if (guarded) there += fmt::format("{}{} < {}", there.empty() ? "" : " && ", row_name, text(count(form_.rows)));
  if (!there.empty()) {
    writer_.line(fmt::format("{}[{}] = {};", row_scale_, r, number(0)));
    writer_.open(fmt::format("if ({})", there));
  }
  bind_flat(emitter_, form_.rows, row_name, "mnopq");
  define_row(r);
  writer_.line(
      fmt::format("{}[{}] = {};", row_scale_, r,
                  apply(form_.row_weight_steps, form_.shrink == kNoExpr ? number(1) : emitter_.emit(form_.shrink))));
  if (!there.empty()) writer_.close();
  emitter_.rewind(outside);
  writer_.close();
}

bool AttentionEmitter::holds_loads_outside(const std::vector<ExprId>& roots) const {
  std::vector<std::uint8_t> seen(pool_.size(), 0);
  std::vector<ExprId> stack = roots;
  while (!stack.empty()) {
    const ExprId id = stack.back();
    stack.pop_back();
    if (pool_[id].op == ExprOp::kReduce || std::exchange(seen[id], 1)) continue;
    if (pool_[id].op == ExprOp::kLoad) return true;
    for (const ExprId a : pool_[id].args)
      if (a != kNoExpr) stack.push_back(a);
  }
  return false;
}

std::vector<std::size_t> AttentionEmitter::stored_rows() const {
  std::vector<std::size_t> stored;
  for (std::size_t i = 0; i < form_.kernel.outputs.size(); ++i)
    if (std::ranges::find(form_.extra_outputs, i) == form_.extra_outputs.end() &&
        std::ranges::find(form_.row_outputs, i) == form_.row_outputs.end())
      stored.push_back(i);
  return stored;
}

void AttentionEmitter::store_row_outputs() {
  if (form_.row_outputs.empty()) return;
  const std::string r = writer_.unique("r"), row_name = writer_.unique("row");
  const ExprEmitter::Mark outside = emitter_.mark();
  writer_.line("#pragma unroll");
  writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", r, tiles_.thread_rows));
  writer_.line(fmt::format("const {} {} = {};", integer(), row_name, row(r)));
  writer_.line(fmt::format("if ({} > 0 || {} >= {}) continue;", thread_column_, row_name, text(count(form_.rows))));
  bind_flat(emitter_, form_.rows, row_name, "mnopq");
  define_row(r);
  store(form_.row_outputs);
  emitter_.rewind(outside);
  writer_.close();
}

void AttentionEmitter::store_rows() {
  store_row_outputs();
  const std::vector<std::size_t> stored = stored_rows();
  if (has_epilogue(stored)) return store_computed(stored);
  if (part_ == AttentionPart::kWhole && stores_staged(stored)) return store_staged();
  const ExprEmitter::Mark outside = emitter_.mark();
  const RowLoop loop = open_rows(true, loop_over_result_rows());
  const std::string r = loop.at, m = writer_.unique("m");
  bind_flat(emitter_, form_.rows, loop.name, "mnopq");
  define_row(r);
  const int width = store_width(stored);
  writer_.line("#pragma unroll");
  writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; {2})", m, tiles_.thread_columns(),
                           width == 1 ? "++" + m : fmt::format("{} += {}", m, width)));
  const std::string column_name = writer_.unique("column");
  writer_.line(fmt::format("const int {} = {};", column_name, column(m)));
  const bool whole = tiles_.columns == form_.value_head_size();
  if (!whole) writer_.open(fmt::format("if ({} < {})", column_name, form_.value_head_size()));
  if (width == 1) {
    bind_flat(emitter_, form_.columns, column_name, "ijlst");
    emitter_.define(form_.result, fmt::format("({} * {}[{}])", sum(r, m), row_scale_, r));
    store(stored);
  } else {
    store_neighbours(width, r, m, column_name);
  }
  if (!whole) writer_.close();
  emitter_.rewind(outside);
  writer_.close();
  close_rows(loop, {accumulator_, greatest_, total_, row_scale_});
}

int AttentionEmitter::store_width(const std::vector<std::size_t>& stored) const {
  const int width = tiles_.tensor_cores ? 2 : tiles_.vector_columns ? 4 : 1;
  return stores_together(stored, width) ? width : 1;
}

bool AttentionEmitter::stores_together(const std::vector<std::size_t>& stored, int width) const {
  if (stored.size() != 1 || form_.columns.size() != 1) return false;
  const KernelOutput& output = form_.kernel.outputs[stored[0]];
  const IndexExpr position = position_of(pool_, output);
  const std::uint32_t axis = form_.columns[0];
  return coefficient_of(position, {Variable::Kind::kAxis, axis}) == 1 && bits(output.type.dtype) >= 8 &&
         proves_multiple_of(position - IndexExpr::axis(axis), width, pool_.bounds()) &&
         form_.value_head_size() % width == 0;
}

bool AttentionEmitter::stores_staged(const std::vector<std::size_t>& stored) const {
  return tiles_.tensor_cores && form_.extra_outputs.empty() && stores_together(stored, 8) &&
         bits(form_.kernel.outputs[stored[0]].type.dtype) == 16;
}

// Each warp stages pairs of columns over its own queries; then each lane stores eight columns.
void AttentionEmitter::store_staged() {
  const KernelOutput& output = form_.kernel.outputs[0];
  const std::string storage = storage_type(output.type.dtype), mine = writer_.unique("my_result");
  writer_.use("line_copies");
  writer_.use(output.type.dtype);
  if (tiles_.warpgroups) {
    writer_.line("sync_warpgroup(warp / 4);  // nobody needs its queries any more");
    writer_.line(fmt::format("{0}* const {1} = ({0}*)(dynamic_tiles + (warp / 4 - 1) * kQueryBytes) + warp % 4 * {2};",
                             storage, mine, tiles_.warp_rows() * tiles_.value_stride));
  } else {
    // With keys loaded at the end of the loop, its last barrier comes after the last read of the queries.
    if (!tiles_.queries_in_shared || code_.keys_loaded_once)
      writer_.line(fmt::format("{}  // nobody needs keys and values any more", result_barrier()));
    writer_.line(fmt::format("{0}* const {1} = ({0}*){2} + warp * {3};", storage, mine, query_tile_,
                             tiles_.warp_rows() * tiles_.value_stride));
  }
  if (stores_matrices(stored_rows()))
    stage_matrices(mine);
  else
    stage_pairs(mine);
  writer_.line("__syncwarp();");
  store_16_bytes(mine);
}

// The staging buffer has room for padding columns, so they need a guard only when the epilogue loads.
void AttentionEmitter::stage_pairs(const std::string& mine) {
  const KernelOutput& output = form_.kernel.outputs[0];
  const std::string r = writer_.unique("r"), m = writer_.unique("m");
  const bool loads = holds_loads_outside({output.expr});
  const ExprEmitter::Mark outside = emitter_.mark();
  writer_.line("#pragma unroll");
  writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", r, tiles_.thread_rows));
  const std::string row_name = writer_.unique("row");
  writer_.line(fmt::format("const {} {} = {};", integer(), row_name, row(r)));
  if (!whole_rows()) writer_.line(fmt::format("if ({} >= {}) continue;", row_name, text(count(form_.rows))));
  bind_flat(emitter_, form_.rows, row_name, "mnopq");
  define_row(r);
  writer_.line("#pragma unroll");
  writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; {0} += 2)", m, tiles_.thread_columns()));
  const std::string column_name = writer_.unique("column");
  writer_.line(fmt::format("const int {} = {};", column_name, column(m)));
  const bool guarded = loads && tiles_.columns != form_.value_head_size();
  if (guarded) writer_.open(fmt::format("if ({} < {})", column_name, form_.value_head_size()));
  const std::string pair = packed_pair(r, m, column_name);
  writer_.line(fmt::format("*(unsigned*)({} + (warp_lane / 4 + {} * 8) * {} + {}) = {};", mine, r, tiles_.value_stride,
                           column_name, pair));
  if (guarded) writer_.close();
  writer_.close();
  emitter_.rewind(outside);
  writer_.close();
}

bool AttentionEmitter::stores_matrices(const std::vector<std::size_t>& stored) const {
  if (!tiles_.warpgroups || has_epilogue(stored) || !stores_staged(stored)) return false;
  const KernelOutput& output = form_.kernel.outputs[stored[0]];
  const DType dtype = output.type.dtype;
  ExprId value = output.expr;
  while (pool_[value].op == ExprOp::kRound && pool_[value].dtype == dtype) value = pool_[value].args[0];
  return value == form_.result && (dtype == DType::kBFloat16 || dtype == DType::kFloat16);
}

void AttentionEmitter::stage_matrices(const std::string& mine) {
  const std::string rows = writer_.unique("result_rows");
  if (!whole_rows()) writer_.open(fmt::format("if (warp_row < {})", text(count(form_.rows))));
  writer_.line(fmt::format("const unsigned {} = shared_address({} + warp_lane % 16 * {} + warp_lane / 16 * 8);", rows,
                           mine, tiles_.value_stride));
  store_accumulator_matrices(rows, row_scale_);
  if (!whole_rows()) writer_.close();
}

void AttentionEmitter::store_16_bytes(const std::string& mine) {
  const KernelOutput& output = form_.kernel.outputs[0];
  const IndexExpr position = position_of(pool_, output);
  const std::string lines = writer_.unique("lines"), line = writer_.unique("line"), unit = writer_.unique("unit");
  const std::string row_name = writer_.unique("row");
  const ExprEmitter::Mark outside = emitter_.mark();
  writer_.line(fmt::format("using Result = Lines<1, {}, {}>;", tiles_.warp_rows(), form_.value_head_size() / 8));
  writer_.line(fmt::format("const Result {}(warp_lane);", lines));
  writer_.line("#pragma unroll");
  writer_.open(
      fmt::format("for (int {0} = {1}.line; {0} < {2}; {0} += Result::kHigh)", line, lines, tiles_.warp_rows()));
  writer_.line(fmt::format("const {} {} = warp_row + {};", integer(), row_name, line));
  if (!whole_rows()) writer_.line(fmt::format("if ({} >= {}) continue;", row_name, text(count(form_.rows))));
  bind_flat(emitter_, form_.rows, row_name, "mnopq");
  writer_.line("#pragma unroll");
  writer_.open(fmt::format("for (int {0} = {1}.unit; {0} < {2}; {0} += Result::kWide)", unit, lines,
                           form_.value_head_size() / 8));
  emitter_.bind(form_.columns[0], fmt::format("({} * 8)", unit));
  writer_.line(fmt::format("*(uint4*)({} + {}) = *(const uint4*)({} + {} * {} + {} * 8);", writer_.output(output.value),
                           emitter_.index(position), mine, line, tiles_.value_stride, unit));
  writer_.close();
  emitter_.rewind(outside);
  writer_.close();
}

std::vector<std::string> AttentionEmitter::neighbours(int width, const std::string& r, const std::string& m,
                                                      const std::string& first) {
  std::vector<std::string> values;
  for (int i = 0; i < width; ++i) {
    const ExprEmitter::Mark mark = emitter_.mark();
    emitter_.bind(form_.columns[0], i == 0 ? first : fmt::format("({} + {})", first, i));
    emitter_.define(form_.result,
                    fmt::format("({} * {}[{}])", sum(r, i == 0 ? m : fmt::format("({} + {})", m, i)), row_scale_, r));
    values.push_back(emitter_.emit(form_.kernel.outputs[0].expr));
    emitter_.rewind(mark);
  }
  return values;
}

std::string AttentionEmitter::packed_pair(const std::string& r, const std::string& m, const std::string& first) {
  const KernelOutput& output = form_.kernel.outputs[0];
  const std::vector<std::string> pair = neighbours(2, r, m, first);
  const DType dtype = output.type.dtype;
  if (dtype == DType::kBFloat16 || dtype == DType::kFloat16) {
    writer_.use("pack_pair");
    return fmt::format("{}({}, {})", dtype == DType::kBFloat16 ? "pack_bf16" : "pack_fp16", pair[0], pair[1]);
  }
  writer_.use(dtype);
  return fmt::format("((unsigned)(unsigned short){} | (unsigned)(unsigned short){} << 16)", narrow(dtype, pair[0]),
                     narrow(dtype, pair[1]));
}

void AttentionEmitter::store_neighbours(int width, const std::string& r, const std::string& m,
                                        const std::string& first) {
  const KernelOutput& output = form_.kernel.outputs[0];
  const IndexExpr position = position_of(pool_, output);
  std::string values;
  for (const std::string& value : neighbours(width, r, m, first))
    values += (values.empty() ? "" : ", ") + narrow(output.type.dtype, value);
  writer_.use("neighbours");
  writer_.use(output.type.dtype);
  const ExprEmitter::Mark mark = emitter_.mark();
  emitter_.bind(form_.columns[0], first);
  writer_.line(fmt::format("*(Neighbours<{}, {}>*)({} + {}) = {{{}}};", storage_type(output.type.dtype), width,
                           writer_.output(output.value), emitter_.index(position), values));
  emitter_.rewind(mark);
}

void AttentionEmitter::store(const std::vector<std::size_t>& which) {
  std::vector<ExprId> roots;
  for (const std::size_t i : which) roots.push_back(form_.kernel.outputs[i].expr);
  const std::vector<std::string> values = emitter_.emit(roots);
  for (std::size_t k = 0; k < which.size(); ++k) {
    const KernelOutput& output = form_.kernel.outputs[which[k]];
    const IndexExpr position = position_of(pool_, output);
    writer_.line(store_text(writer_, output, emitter_.index(position), values[k]));
  }
}

void AttentionEmitter::store_extra_outputs() {
  if (part_ == AttentionPart::kCombine) declare_limits();
  std::string first = "0", end = text(count(form_.keys));
  if (splits_keys()) restrict_keys_to_split(first, end);
  key0_ = writer_.unique("key0");
  if (!form_.score_buffer) wait_for_copies(key_load(key0_));
  writer_.open(fmt::format("for ({0} {1} = {2}; {1} < {3}; {1} += {4})", integer(), key0_, first, end, tiles_.keys));
  declare_scores();
  form_.score_buffer ? reload_scores() : recompute_scores();
  each_score(
      [&](const ScorePosition& place) {
        const bool guarded = open_guard(place);
        define_row(place.r);
        emitter_.define(form_.masked_score, form_.score_scale == 1
                                                ? place.at
                                                : fmt::format("({} * {})", place.at, number(form_.score_scale)));
        const std::string weight = weight_of(place.at, fmt::format("{}[{}]", greatest_, place.r));
        emitter_.define(form_.exponential, form_.shrink == kNoExpr
                                               ? weight
                                               : fmt::format("({} * {})", weight, emitter_.emit(form_.shrink)));
        store(form_.extra_outputs);
        if (guarded) writer_.close();
      },
      true, 1, {greatest_, total_});
  writer_.close();
}

void AttentionEmitter::recompute_scores() {
  writer_.line("__syncthreads();");
  load_tile(key_load(key0_));
  synchronize(key_load(key0_), "keys are there");
  multiply_keys();
  mask_scores();
}

}  // namespace fusec
