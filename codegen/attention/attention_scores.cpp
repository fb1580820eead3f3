#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "analysis/kernel/loads.h"
#include "codegen/access/direct.h"
#include "codegen/access/vector_access.h"
#include "codegen/attention/attention_emitter.h"
#include "ir/type.h"

namespace fusec {

std::string AttentionEmitter::mma() {
  const std::string name = *form_.tensor_dtype == DType::kBFloat16 ? "mma_bf16" : "mma_fp16";
  writer_.use(name);
  return name;
}

void AttentionEmitter::declare_scores() {
  if (tiles_.tensor_cores)
    writer_.line(fmt::format("float {}[{}][{}][4] = {{}};", score_, tiles_.m16_fragments, tiles_.warp_keys() / 8));
  else
    writer_.line(fmt::format("{} {}[{}][{}] = {{}};", type(), score_, tiles_.thread_rows, tiles_.thread_keys()));
}

void AttentionEmitter::multiply_keys() {
  if (!tiles_.tensor_cores) {
    writer_.use("multiply_rows");
    writer_.line(fmt::format("multiply_keys<{}, {}, {}>({}, {} + group * {}, {} + group_lane * {});", tiles_.head_dim,
                             tiles_.query_stride, tiles_.key_stride, score_, query_tile_, tiles_.query_stride,
                             key_tile_, tiles_.key_stride));
    return;
  }
  // Queries in registers need constant indices. For queries in shared memory, less unrolling limits the loads in
  // flight.
  const int pieces = tiles_.warp_keys() / 16;
  writer_.line(tiles_.queries_in_shared ? "#pragma unroll 2" : "#pragma unroll");
  writer_.open(fmt::format("for (int e = 0; e < {}; ++e)", tiles_.head_dim / 16));
  if (tiles_.queries_in_shared) {
    writer_.line(fmt::format("unsigned {}[{}][4];", query_, tiles_.m16_fragments));
    writer_.line(fmt::format("load_pieces<{}>({}, {} + e * 32);", 32 * tiles_.query_stride, query_, query_rows_));
  }
  writer_.line(fmt::format("unsigned b[{}][4];", pieces));
  writer_.line(fmt::format("load_pieces<{}>(b, {} + e * 32);", 32 * tiles_.key_stride, key_rows_));
  writer_.line("#pragma unroll");
  writer_.line(fmt::format("for (int i = 0; i < {}; ++i) {{", 2 * pieces * tiles_.m16_fragments));
  writer_.line(fmt::format("  const int n = i / {0}, s = i % {0};", tiles_.m16_fragments));
  const std::string query = query_ + (tiles_.queries_in_shared ? "[s]" : "[e][s]");
  writer_.line(
      fmt::format("  {0}({1}[s][n], {{{2}[0], {2}[2], {2}[1], {2}[3]}}, {{b[n / 2][n % 2 * 2], b[n / 2][n % 2 * 2 "
                  "+ 1]}});",
                  mma(), score_, query));
  writer_.line("}");
  writer_.close();
}

AttentionEmitter::RowLoop AttentionEmitter::open_rows(bool guarded, bool looped) {
  const std::string r = writer_.unique("r"), name = writer_.unique("row");
  writer_.line(looped ? "#pragma unroll 1" : "#pragma unroll");
  writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", r, tiles_.thread_rows));
  writer_.line(fmt::format("const {} {} = {};", integer(), name, row(r)));
  const std::string rows = text(count(form_.rows));
  if (guarded && looped)
    writer_.open(fmt::format("if ({} < {})", name, rows));
  else if (guarded)
    writer_.line(fmt::format("if ({} >= {}) continue;", name, rows));
  return {.name = name, .at = looped ? "0" : r, .guarded = guarded, .looped = looped};
}

void AttentionEmitter::close_rows(const RowLoop& loop, const std::vector<std::string>& loop_registers) {
  if (loop.looped) {
    if (loop.guarded) writer_.close();
    writer_.use("turn_registers");
    for (const std::string& registers : loop_registers) writer_.line(fmt::format("rotate_rows({});", registers));
  }
  writer_.close();
}

int AttentionEmitter::keys_at_once() const {
  const bool all = !loop_over_rows() || !tiles_.tensor_cores || code_.keys_at_once == 0;
  return all ? tiles_.thread_keys() : std::min(code_.keys_at_once, tiles_.thread_keys());
}

void AttentionEmitter::each_score(const ScoreBody& body, bool guarded, int keys_at_a_time,
                                  std::vector<std::string> loop_registers) {
  const ExprEmitter::Mark outside = emitter_.mark();
  const RowLoop loop = open_rows(guarded && !whole_rows(), loop_over_rows());
  bind_flat(emitter_, form_.rows, loop.name, "mnopq");
  const std::string first = writer_.unique("first_key"), n = writer_.unique("n");
  writer_.line(fmt::format("const {} {} = {} + {};", integer(), first, key0_, thread_column_));
  std::string of_thread = n;
  const bool in_turn = keys_at_once() < tiles_.thread_keys();
  if (in_turn) {
    const std::string before = writer_.unique("before");
    of_thread = fmt::format("({} + {})", before, n);
    writer_.line("#pragma unroll 1");
    writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; {0} += {2})", before, tiles_.thread_keys(), keys_at_once()));
  }
  writer_.line("#pragma unroll");
  writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; {2})", n, keys_at_once(),
                           keys_at_a_time == 1 ? "++" + n : fmt::format("{} += {}", n, keys_at_a_time)));
  const std::string key_name = writer_.unique("key"), offset = key_offset(of_thread);
  writer_.line(fmt::format("const {} {} = {} + {};", integer(), key_name, first, offset));
  std::string there = fmt::format("{} < {} - {}", offset, text(count(form_.keys)), first);
  if (const int sure = keys_always_there(); sure > 0) there = fmt::format("{} < {} || {}", offset, sure, there);
  body({.row = loop.name,
        .key = key_name,
        .at = score(loop.at, n),
        .r = loop.at,
        .n = n,
        .there = guarded && !whole_keys() ? there : ""});
  writer_.close();
  if (in_turn) {
    writer_.line(fmt::format("rotate_keys<{}>({});", keys_at_once(), score_));
    writer_.close();
  }
  emitter_.rewind(outside);
  loop_registers.push_back(score_);
  close_rows(loop, loop_registers);
}

int AttentionEmitter::keys_always_there() const {
  constexpr int kLanes = 8;  // upper bound of a lane's first key in a tile
  const auto keys = count(form_.keys).as_constant();
  if (!keys || form_.first_key || part_ == AttentionPart::kSplit || tiles_.key_warps > 1) return 0;
  return static_cast<int>((*keys - 1) % tiles_.keys) + 2 - kLanes;
}

bool AttentionEmitter::holds_loads(const std::vector<ExprId>& roots) const {
  return std::ranges::any_of(reachable(pool_, roots), [&](ExprId id) { return pool_[id].op == ExprOp::kLoad; });
}

bool AttentionEmitter::open_guard(const ScorePosition& place) {
  if (!place.there.empty()) writer_.open(fmt::format("if ({})", place.there));
  bind_flat(emitter_, form_.keys, place.key, "klst");
  return !place.there.empty();
}

std::vector<ExprId> AttentionEmitter::score_loads() const {
  std::vector<ExprId> loads;
  std::vector<std::uint8_t> seen(pool_.size(), 0);
  std::vector<ExprId> stack{form_.score};
  while (!stack.empty()) {
    const ExprId id = stack.back();
    stack.pop_back();
    if (id == form_.contraction || std::exchange(seen[id], 1)) continue;
    if (pool_[id].op == ExprOp::kLoad) loads.push_back(id);
    for (const ExprId a : pool_[id].args)
      if (a != kNoExpr) stack.push_back(a);
  }
  return loads;
}

std::vector<ExprId> AttentionEmitter::pair_loads() const {
  std::vector<ExprId> pairs;
  if (!tiles_.tensor_cores || form_.keys.size() != 1 || !proves_multiple_of(count(form_.keys), 2, pool_.bounds()))
    return pairs;
  const Variable key{Variable::Kind::kAxis, form_.keys[0]};
  for (const ExprId id : score_loads()) {
    const ExprNode& n = pool_[id];
    if (by_values(emitter_.position(id))) continue;
    const bool word = bits(n.dtype) == 8 || bits(n.dtype) == 16 || n.dtype == DType::kFloat32;
    if (word && n.args[0] == kNoExpr && coefficient_of(emitter_.position(id), key) == 1 &&
        proves_multiple_of(emitter_.position(id) - IndexExpr::axis(form_.keys[0]), 2, pool_.bounds()))
      pairs.push_back(id);
  }
  return pairs;
}

void AttentionEmitter::transform_scores() {
  const bool loads = !score_loads().empty();
  if (const std::vector<ExprId> pairs = pair_loads(); !pairs.empty()) return transform_score_pairs(pairs);
  each_score(
      [&](const ScorePosition& place) {
        const bool guarded = open_guard(place);
        emitter_.define(form_.contraction, place.at);
        const std::string value = emitter_.emit(form_.score);
        writer_.line(fmt::format("{} = {};", place.at, value));
        if (guarded) close_guard({place.at});
      },
      loads);
}

bool AttentionEmitter::masks_end() const {
  return tiles_.tensor_cores && !score_loads().empty() && !whole_keys() && !form_.last_key;
}

void AttentionEmitter::close_guard(const std::vector<std::string>& scores) {
  if (masks_end()) {
    writer_.close("} else {");
    writer_.reopen();
    for (const std::string& at : scores) writer_.line(fmt::format("{} = {};", at, bottom()));
  }
  writer_.close();
}

// A lane has pairs of neighbouring keys. One access loads the mask values of a pair.
void AttentionEmitter::transform_score_pairs(const std::vector<ExprId>& pairs) {
  const std::uint32_t axis = form_.keys[0];
  const std::string second = writer_.unique("i"), next = writer_.unique("key");
  each_score(
      [&](const ScorePosition& place) {
        const bool guarded = open_guard(place);
        std::vector<std::string> words;
        for (const ExprId id : pairs) {
          const ExprNode& n = pool_[id];
          words.push_back(writer_.unique(writer_.preferred_name(n.source) + "_pair"));
          const char* word = bits(n.dtype) == 8 ? "unsigned short" : bits(n.dtype) == 16 ? "unsigned" : "float2";
          writer_.line(fmt::format("const {0} {1} = *(const {0}*)({2} + {3});", word, words.back(),
                                   writer_.input(n.source), emitter_.index(emitter_.position(id))));
        }
        writer_.line("#pragma unroll");
        writer_.open(fmt::format("for (int {0} = 0; {0} < 2; ++{0})", second));
        writer_.line(fmt::format("const {} {} = {} + {};", integer(), next, place.key, second));
        emitter_.bind(axis, next);
        for (std::size_t i = 0; i < pairs.size(); ++i) {
          const DType dtype = pool_[pairs[i]].dtype;
          emitter_.define(pairs[i], dtype == DType::kFloat32
                                        ? fmt::format("({0} ? {1}.y : {1}.x)", second, words[i])
                                        : value_of_bits(dtype,
                                                        fmt::format("({} >> {} * {} & {:#x}u)", words[i], second,
                                                                    bits(dtype), (1u << bits(dtype)) - 1),
                                                        writer_));
        }
        const std::string at = score(place.r, fmt::format("({} + {})", place.n, second));
        emitter_.define(form_.contraction, at);
        const std::string value = emitter_.emit(form_.score);
        writer_.line(fmt::format("{} = {};", at, value));
        writer_.close();
        if (guarded) close_guard({score(place.r, place.n), score(place.r, fmt::format("({} + 1)", place.n))});
      },
      true, 2);
}

void AttentionEmitter::mask_scores() {
  if (form_.score != form_.contraction) transform_scores();
  std::string some_masked;
  if (form_.last_key || (!whole_keys() && !masks_end()))
    some_masked = fmt::format("{} + {} > {}", key0_, tiles_.warp_keys(), all_rows_to_);
  if (form_.first_key)
    some_masked += fmt::format("{}{} < {}", some_masked.empty() ? "" : " || ", key0_, all_rows_from_);
  if (some_masked.empty()) return;
  writer_.open(fmt::format("if ({})", some_masked));
  if (tiles_.tensor_cores)
    keep_keys_of_fragments();
  else
    keep_keys_of_lanes();
  writer_.close();
}

std::string AttentionEmitter::last_limit(const std::string& row) {
  const IndexExpr keys = count(form_.keys);
  return form_.last_key ? limit_at(min(keys, *form_.last_key + 1), row) : text(keys);
}

void AttentionEmitter::keep_keys_of_lanes() {
  each_score(
      [&](const ScorePosition& place) {
        std::string masked = fmt::format("{} >= {}", place.key, last_limit(place.row));
        if (form_.first_key) masked += fmt::format(" || {} < {}", place.key, limit_at(*form_.first_key, place.row));
        writer_.line(fmt::format("if ({}) {} = {};", masked, place.at, bottom()));
      },
      false);
}

void AttentionEmitter::keep_keys_of_fragments() {
  writer_.use("mask_keys");
  const std::string r = writer_.unique("r"), row_name = writer_.unique("row"), first = writer_.unique("lane_key");
  writer_.line(fmt::format("const {} {} = {} + {};", integer(), first, key0_, thread_column_));
  writer_.line("#pragma unroll");
  writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", r, tiles_.thread_rows));
  writer_.line(fmt::format("const {} {} = {};", integer(), row_name, row(r)));
  const std::string from = form_.first_key ? fmt::format("{} - {}, ", limit_at(*form_.first_key, row_name), first) : "";
  writer_.line(fmt::format("mask_keys<{0}>({1}[{2} / 2], {2} % 2, {3}{4} - {5});", integer(), score_, r, from,
                           last_limit(row_name), first));
  writer_.close();
}

std::string AttentionEmitter::score_buffer_element() {
  const KernelOutput& output = form_.kernel.outputs[*form_.score_buffer];
  const IndexExpr position = position_of(pool_, output);
  return fmt::format("{}[{}]", writer_.output(output.value), emitter_.index(position));
}

void AttentionEmitter::spill_scores() {
  each_score(
      [&](const ScorePosition& place) {
        const bool guarded = open_guard(place);
        writer_.line(fmt::format("{} = {};", score_buffer_element(), place.at));
        if (guarded) writer_.close();
      },
      true);
}

// Keys beyond a row's limits have no stored score.
void AttentionEmitter::reload_scores() {
  each_score(
      [&](const ScorePosition& place) {
        const bool guarded = open_guard(place);
        const std::string score_buffer = score_buffer_element();
        std::string seen;
        if (form_.last_key) seen = fmt::format("{} < {}", place.key, last_limit(place.row));
        if (form_.first_key)
          seen +=
              fmt::format("{}{} >= {}", seen.empty() ? "" : " && ", place.key, limit_at(*form_.first_key, place.row));
        writer_.line(seen.empty() ? fmt::format("{} = {};", place.at, score_buffer)
                                  : fmt::format("{} = {} ? {} : {};", place.at, seen, score_buffer, bottom()));
        if (guarded) writer_.close();
      },
      true);
}

void AttentionEmitter::online_softmax_step() {
  if (!tiles_.tensor_cores) writer_.use("softmax_lanes");
  if (tiles_.tensor_cores)
    weigh_tile("by", [&] { rescale_accumulators("by"); });
  else
    writer_.line(fmt::format("softmax_step({}, {}, {}, {}, {});", score_, accumulator_, greatest_, total_,
                             number(exponent_scale())));
  step_weights();
}

void AttentionEmitter::weigh_tile(const std::string& by, const std::function<void()>& shrink) {
  writer_.use("softmax_fragments");
  writer_.open(fmt::format("online_softmax_tile<{}, {}>({}, {}, {}, {}, [&](const float (&{})[{}])",
                           form_.score != form_.contraction, exact_maximum(), score_, greatest_, total_,
                           number(exponent_scale()), by, tiles_.thread_rows));
  shrink();
  writer_.close("});");
}

void AttentionEmitter::step_weights() {
  if (form_.key_weight_steps.empty()) return;
  std::vector<ExprId> operands;
  for (const WeightStep& step : form_.key_weight_steps) operands.push_back(step.operand);
  each_score(
      [&](const ScorePosition& place) {
        const bool guarded = open_guard(place);
        writer_.line(fmt::format("{} = {};", place.at, apply(form_.key_weight_steps, place.at)));
        if (guarded) writer_.close();
      },
      holds_loads(operands));
}

std::string AttentionEmitter::apply(const std::vector<WeightStep>& steps, std::string value) {
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    const std::string operand = "(" + emitter_.emit(step->operand) + ")";
    switch (step->kind) {
      case WeightStep::Kind::kTimes:
        value = fmt::format("({} * {})", value, operand);
        break;
      case WeightStep::Kind::kOver:
        value = fmt::format("({} / {})", value, operand);
        break;
      case WeightStep::Kind::kWhere:
        value = fmt::format("({} ? {} : {})", operand, value, number(0));
        break;
      case WeightStep::Kind::kWhereNot:
        value = fmt::format("({} ? {} : {})", operand, number(0), value);
        break;
    }
  }
  return value;
}

void AttentionEmitter::add_values() {
  if (!tiles_.tensor_cores) {
    writer_.line("#pragma unroll");
    writer_.line(fmt::format("for (int r = 0; r < {}; ++r)", tiles_.thread_rows));
    writer_.line("#pragma unroll");
    writer_.line(
        fmt::format("  for (int n = 0; n < {}; ++n) {}[(group + r * 16) * {} + group_lane + n * 8] = {}[r][n];",
                    tiles_.thread_keys(), weight_tile_, tiles_.weight_stride, score_));
    writer_.line("__syncwarp();  // a row's weights come from lanes of one warp");
    writer_.line(fmt::format("add_values<{}, {}, {}, {}>({}, {} + group * {}, {} + group_lane{});", tiles_.keys,
                             tiles_.weight_stride, tiles_.value_stride, tiles_.vector_columns, accumulator_,
                             weight_tile_, tiles_.weight_stride, value_tile_, tiles_.vector_columns ? " * 4" : ""));
    return;
  }
  const std::string pack = *form_.tensor_dtype == DType::kBFloat16 ? "pack_bf16" : "pack_fp16";
  writer_.use("pack_pair");
  writer_.line("#pragma unroll");
  writer_.open(fmt::format("for (int k = 0; k < {}; k += 2)", tiles_.warp_keys() / 8));
  writer_.line(fmt::format("unsigned weight[{}][4];", tiles_.m16_fragments));
  writer_.line("#pragma unroll");
  writer_.line(fmt::format("for (int w = 0; w < {}; ++w)", 4 * tiles_.m16_fragments));
  writer_.line(
      fmt::format("  weight[w / 4][w % 4] = {0}({1}[w / 4][k + w % 4 / 2][w % 2 * 2], {1}[w / 4][k + w % 4 / "
                  "2][w % 2 * 2 + 1]);",
                  pack, score_));
  add_values_by_warp("weight", fmt::format("{} + k * {}", value_rows_, 16 * tiles_.value_stride));
  writer_.close();
}

bool AttentionEmitter::exact_maximum() const {
  const auto over_total = [&](ExprOp op, ExprId divisor) { return op == ExprOp::kDiv && divisor == form_.total; };
  const bool weighed = std::ranges::any_of(form_.row_weight_steps, [&](const WeightStep& step) {
    return step.kind == WeightStep::Kind::kOver && step.operand == form_.total;
  });
  std::array<std::vector<std::uint8_t>, 2> seen;  // visited undivided, and divided by the total
  seen.fill(std::vector<std::uint8_t>(pool_.size(), 0));
  std::vector<std::pair<ExprId, bool>> stack;
  for (const KernelOutput& output : form_.kernel.outputs) stack.emplace_back(output.expr, false);
  for (const WeightStep& step : form_.row_weight_steps)
    if (step.operand != form_.total) stack.emplace_back(step.operand, false);
  while (!stack.empty()) {
    const auto [id, divided] = stack.back();
    stack.pop_back();
    const bool relative = id == form_.result || id == form_.exponential;
    if (id == form_.row_maximum || id == form_.total || id == form_.shifted_total) return true;
    if (relative && !divided && !(weighed && id == form_.result)) return true;
    if (relative || id == form_.masked_score || std::exchange(seen[divided][id], 1)) continue;
    const ExprNode& n = pool_[id];
    const bool quotient = over_total(n.op, n.args[1]);
    for (std::size_t i = 0; i < n.args.size(); ++i)
      if (n.args[i] != kNoExpr && !(quotient && i == 1)) stack.emplace_back(n.args[i], divided || quotient);
  }
  return false;
}

}  // namespace fusec
