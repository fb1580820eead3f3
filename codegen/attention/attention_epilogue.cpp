// The attention epilogue for threads with many results: gating, residual, quantization. Unrolled over a thread's
// accumulators, it would be repeated a hundred times in the code. So the results go to shared memory, some columns at a
// time, and a loop reads and stores four neighbouring columns.
//
//   2 x 32 columns of accumulators in registers   ->   float thread_columns[16][72]   ->   per four: y = quantize(four)
#include <fmt/format.h>

#include <algorithm>

#include "analysis/kernel/loads.h"
#include "codegen/access/direct.h"
#include "codegen/attention/attention_emitter.h"

namespace fusec {
namespace {

constexpr int kManyAccumulators = 64;  // per thread
constexpr int kLinePadding = 8;        // floats, so that pairs of four lines are in different banks

bool hands_on(ExprOp op) {
  return op == ExprOp::kConstant || op == ExprOp::kIndex || op == ExprOp::kRound || op == ExprOp::kConvert;
}

}  // namespace

// Vectors of four in different lines are in different banks if the columns are a multiple of 32. Other column counts
// are only for kernels with much code.
int AttentionEmitter::columns_at_once() const {
  constexpr int kWarps = 4;
  const std::int64_t bytes = tiles_.warpgroups ? tiles_.query_bytes() / kWarps : tiles_.bytes() / (tiles_.threads / 32);
  const auto fits = [&](int columns) { return 4 * tiles_.warp_rows() * (columns + kLinePadding) <= bytes; };
  int columns = tiles_.columns;
  if (!code_.loop_over_columns) {
    while (columns % 32 == 0 && !fits(columns)) columns /= 2;
    return columns % 32 == 0 ? columns : 0;
  }
  const int unit = columns % 32 == 0 ? 32 : 16;
  while (columns > 0 && (tiles_.columns % columns != 0 || !fits(columns))) columns -= unit;
  return columns;
}

bool AttentionEmitter::has_epilogue(const std::vector<std::size_t>& stored) const {
  const bool many = code_.loop_over_columns || tiles_.thread_rows * tiles_.thread_columns() >= kManyAccumulators;
  // Extra outputs need the queries once more, and the staged results may overwrite them.
  const bool alone = form_.extra_outputs.empty() || (code_.loop_over_columns && !tiles_.queries_in_shared);
  // A combining kernel that multiplies nothing has no shared memory.
  const bool shared = part_ != AttentionPart::kSplit && (part_ == AttentionPart::kWhole || !form_.score_buffer);
  if (!tiles_.tensor_cores || !alone || !shared || form_.columns.size() != 1 || stored.empty() ||
      form_.value_head_size() % 4 != 0 || !many || columns_at_once() == 0)
    return false;
  std::vector<std::uint8_t> seen(pool_.size(), 0);
  std::vector<ExprId> stack;
  for (const std::size_t i : stored) stack.push_back(form_.kernel.outputs[i].expr);
  bool computes = false;
  while (!stack.empty()) {
    const ExprId id = stack.back();
    stack.pop_back();
    if (id == form_.result || seen[id]) continue;
    seen[id] = 1;
    // Row reductions are in registers of the lanes of that row only.
    const bool of_row = pool_[id].op == ExprOp::kReduce || id == form_.total || id == form_.shifted_total ||
                        std::ranges::find(form_.some_key, id) != form_.some_key.end() ||
                        std::ranges::find(form_.no_key, id) != form_.no_key.end();
    if (of_row) return false;
    computes = computes || !hands_on(pool_[id].op);
    for (const ExprId a : pool_[id].args)
      if (a != kNoExpr) stack.push_back(a);
    for (const ExprId value : values_in(pool_[id])) stack.push_back(value);
  }
  return computes;
}

void AttentionEmitter::store_computed(const std::vector<std::size_t>& stored) {
  const int columns = columns_at_once(), stride = columns + kLinePadding, fours = columns / 4;
  const std::string mine = writer_.unique("my_columns"), first = writer_.unique("first_column");
  if (tiles_.warpgroups) {
    writer_.line("sync_warpgroup(warp / 4);  // nobody needs its queries any more");
    writer_.line(
        fmt::format("float* const {} = (float*)(dynamic_tiles + (warp / 4 - 1) * kQueryBytes) + warp % 4 * {};", mine,
                    tiles_.warp_rows() * stride));
  } else {
    writer_.line(fmt::format("{}  // nobody needs queries, keys and values any more", result_barrier()));
    writer_.line(
        fmt::format("float* const {} = (float*){} + warp * {};", mine, key_tile_, tiles_.warp_rows() * stride));
  }
  const bool all = columns == tiles_.columns;
  if (!all) {
    writer_.line("#pragma unroll 1");
    writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; {0} += {2})", first, tiles_.columns, columns));
  }
  stage_columns(mine, stride, first, columns);
  writer_.line("__syncwarp();");
  const std::string i = writer_.unique("i"), line = writer_.unique("line"), row_name = writer_.unique("row");
  const std::string column_name = writer_.unique("column"), four = writer_.unique("four");
  const ExprEmitter::Mark outside = emitter_.mark();
  // Keeps the loads of two iterations in flight, unless the compiler has much other code to unroll.
  const bool copied = tiles_.warpgroups ? !computes() : key_lines_ && value_lines_;
  writer_.line(copied ? "#pragma unroll 2" : "#pragma unroll 1");
  writer_.open(fmt::format("for (int {0} = warp_lane; {0} < {1}; {0} += 32)", i, tiles_.warp_rows() * fours));
  const std::string place = writer_.unique("place");
  // The vectors of eight lanes are in different banks: in one line, or in four lines if a line has too few columns.
  writer_.line(fours % 8 == 0
                   ? fmt::format("const int {0} = {1} / {2}, {3} = {1} % {2} * 4;", line, i, fours, place)
                   : fmt::format("const int {0} = {1} / {2} * 4 + {1} / 2 % 4, {3} = {1} / 8 % {4} * 8 + {1} % 2 * 4;",
                                 line, i, 4 * fours, place, fours / 2));
  writer_.line(fmt::format("const int {} = {}{};", column_name, all ? "" : first + " + ", place));
  writer_.line(fmt::format("const {} {} = warp_row + {};", integer(), row_name, line));
  std::string beyond = whole_rows() ? "" : fmt::format("{} >= {}", row_name, text(count(form_.rows)));
  if (tiles_.columns != form_.value_head_size())
    beyond += fmt::format("{}{} >= {}", beyond.empty() ? "" : " || ", column_name, form_.value_head_size());
  if (!beyond.empty()) writer_.line(fmt::format("if ({}) continue;", beyond));
  writer_.line(fmt::format("const float4 {} = *(const float4*)({} + {} * {} + {});", four, mine, line, stride, place));
  bind_flat(emitter_, form_.rows, row_name, "mnopq");
  store_epilogue_vectors(stored, four, column_name);
  writer_.close();
  emitter_.rewind(outside);
  if (all) return;
  writer_.line("__syncwarp();");
  writer_.close();
}

// Stages `columns` columns of the warp's results from column `first` on, two neighbours at a time.
void AttentionEmitter::stage_columns(const std::string& mine, int stride, const std::string& first, int columns) {
  if (!has_named_accumulators() || tiles_.key_warps > 1) return stage_combined(mine, stride, first, columns);
  const std::string at = writer_.unique("my_place");
  writer_.line(fmt::format("const unsigned {} = shared_address({} + warp_lane / 4 * {} + {});", at, mine, stride,
                           thread_column_));
  const int bytes = static_cast<int>(sizeof(float));
  for (int from = 0; from < tiles_.columns; from += columns) {
    if (columns != tiles_.columns) writer_.open(fmt::format("if ({} == {})", first, from));
    store_accumulators(at, row_scale_, 8 * stride * bytes, 8 * bytes, from, columns);
    if (columns != tiles_.columns) writer_.close();
  }
}

// Stages results whose accumulators are variables, as in the kernel that combines splits.
void AttentionEmitter::stage_combined(const std::string& mine, int stride, const std::string& first, int columns) {
  const std::string r = writer_.unique("r"), m = writer_.unique("m");
  for (int from = 0; from < tiles_.columns; from += columns) {
    if (columns != tiles_.columns) writer_.open(fmt::format("if ({} == {})", first, from));
    writer_.line("#pragma unroll");
    writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", r, tiles_.thread_rows));
    writer_.line("#pragma unroll");
    writer_.line(fmt::format("for (int {0} = {1}; {0} < {2}; {0} += 2)", m, from / 4, (from + columns) / 4));
    writer_.line(
        fmt::format("  *(float2*)({0} + (warp_lane / 4 + {1} * 8) * {2} + {3} - {4}) = "
                    "make_float2({5} * {7}[{1}], {6} * {7}[{1}]);",
                    mine, r, stride, column(m), from, sum(r, m), sum(r, "(" + m + " + 1)"), row_scale_));
    writer_.close();
    if (columns != tiles_.columns) writer_.close();
  }
}

void AttentionEmitter::store_epilogue_vectors(const std::vector<std::size_t>& stored, const std::string& four,
                                              const std::string& column) {
  const bool together = stores_together(stored, 4);
  std::vector<std::string> values;
  const ExprEmitter::Mark mark = emitter_.mark();
  for (int i = 0; i < 4; ++i) {
    emitter_.bind(form_.columns[0], i == 0 ? column : fmt::format("({} + {})", column, i));
    emitter_.define(form_.result, fmt::format("{}.{}", four, "xyzw"[i]));
    if (together)
      values.push_back(emitter_.emit(form_.kernel.outputs[stored[0]].expr));
    else
      store(stored);
    emitter_.rewind(mark);
  }
  if (!together) return;
  const KernelOutput& output = form_.kernel.outputs[stored[0]];
  const IndexExpr position = position_of(pool_, output);
  std::string narrowed;
  for (const std::string& value : values) narrowed += (narrowed.empty() ? "" : ", ") + narrow(output.type.dtype, value);
  writer_.use("neighbours");
  writer_.use(output.type.dtype);
  emitter_.bind(form_.columns[0], column);
  writer_.line(fmt::format("*(Neighbours<{}, 4>*)({} + {}) = {{{}}};", storage_type(output.type.dtype),
                           writer_.output(output.value), emitter_.index(position), narrowed));
  emitter_.rewind(mark);
}

}  // namespace fusec
