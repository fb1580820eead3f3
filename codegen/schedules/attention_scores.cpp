#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "codegen/schedules/attention_emitter.h"
#include "codegen/schedules/direct.h"
#include "ir/type.h"

namespace fusec {

std::string AttentionEmitter::mma() {
  const std::string name = *form_.tensor_dtype == DType::kBFloat16 ? "mma_bf16" : "mma_fp16";
  writer_.use(name);
  return name;
}

void AttentionEmitter::multiply_keys() {
  if (!tiles_.tensor_cores) {
    writer_.use("multiply_rows");
    writer_.line(fmt::format("{} {}[{}][{}] = {{}};", type(), score_, tiles_.my_rows, tiles_.my_keys()));
    writer_.line(fmt::format("multiply_keys<{}, {}, {}>({}, {} + group * {}, {} + group_lane * {});", tiles_.depth,
                             tiles_.query_stride, tiles_.key_stride, score_, query_tile_, tiles_.query_stride,
                             key_tile_, tiles_.key_stride));
    return;
  }
  writer_.line(fmt::format("float {}[{}][4] = {{}};", score_, tiles_.keys / 8));
  writer_.line("#pragma unroll");
  writer_.open(fmt::format("for (int e = 0; e < {}; ++e)", tiles_.depth / 16));
  writer_.line("#pragma unroll");
  writer_.open(fmt::format("for (int n = 0; n < {}; n += 2)", tiles_.keys / 8));
  writer_.line("unsigned b[4];");
  writer_.line(fmt::format("load_matrices(b, {} + n * {} + e * 32);", key_rows_, 16 * tiles_.key_stride));
  writer_.line(fmt::format("{0}({1}[n], {2}[e], {{b[0], b[1]}});", mma(), score_, query_));
  writer_.line(fmt::format("{0}({1}[n + 1], {2}[e], {{b[2], b[3]}});", mma(), score_, query_));
  writer_.close();
  writer_.close();
}

void AttentionEmitter::each_score(const std::function<void(const std::string& row, const std::string& key,
                                                           const std::string& at, const std::string& r)>& body) {
  const std::string r = writer_.unique("r"), n = writer_.unique("n");
  const ExprEmitter::Mark outside = emitter_.mark();
  writer_.line("#pragma unroll");
  writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", r, tiles_.my_rows));
  const std::string row_name = writer_.unique("row");
  writer_.line(fmt::format("const {} {} = {};", integer(), row_name, row(r)));
  bind_flat(emitter_, form_.rows, row_name, "mnopq");
  writer_.line("#pragma unroll");
  writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", n, tiles_.my_keys()));
  const std::string key_name = writer_.unique("key");
  writer_.line(fmt::format("const {} {} = {};", integer(), key_name, key(n)));
  body(row_name, key_name, score(r, n), r);
  emitter_.rewind(outside);
  writer_.close();
  writer_.close();
}

bool AttentionEmitter::holds_loads(const std::vector<ExprId>& roots) const {
  return std::ranges::any_of(reachable(pool_, roots), [&](ExprId id) { return pool_[id].op == ExprOp::kLoad; });
}

void AttentionEmitter::open_guard(bool guarded, const std::string& row, const std::string& key) {
  if (guarded)
    writer_.open(fmt::format("if ({} < {} && {} < {})", row, text(count(form_.rows)), key, text(count(form_.keys))));
  bind_flat(emitter_, form_.keys, key, "klst");
}

bool AttentionEmitter::score_loads() const {
  std::vector<std::uint8_t> seen(pool_.size(), 0);
  std::vector<ExprId> stack{form_.score};
  while (!stack.empty()) {
    const ExprId id = stack.back();
    stack.pop_back();
    if (id == form_.product || std::exchange(seen[id], 1)) continue;
    if (pool_[id].op == ExprOp::kLoad) return true;
    for (const ExprId a : pool_[id].args)
      if (a != kNoExpr) stack.push_back(a);
  }
  return false;
}

void AttentionEmitter::mask_scores() {
  if (form_.score != form_.product) {
    each_score([&](const std::string& row, const std::string& key, const std::string& at, const std::string&) {
      const bool guarded = score_loads();
      open_guard(guarded, row, key);
      emitter_.define(form_.product, at);
      const std::string value = emitter_.emit(form_.score);
      writer_.line(fmt::format("{} = {};", at, value));
      if (guarded) writer_.close();
    });
  }
  const IndexExpr keys = count(form_.keys);
  const bool whole = proves_multiple_of(keys, tiles_.keys, pool_.bounds());
  std::string some_masked;
  if (form_.last_key || !whole) some_masked = fmt::format("{} + {} > {}", key0_, tiles_.keys, all_rows_to_);
  if (form_.first_key)
    some_masked += fmt::format("{}{} < {}", some_masked.empty() ? "" : " || ", key0_, all_rows_from_);
  if (some_masked.empty()) return;
  writer_.open(fmt::format("if ({})", some_masked));
  each_score([&](const std::string& row, const std::string& key, const std::string& at, const std::string&) {
    std::string masked;
    const auto add = [&](const std::string& condition) { masked += (masked.empty() ? "" : " || ") + condition; };
    if (form_.last_key)
      add(fmt::format("{} >= {}", key, limit_at(min(keys, *form_.last_key + 1), row)));
    else if (!whole)
      add(fmt::format("{} >= {}", key, text(keys)));
    if (form_.first_key) add(fmt::format("{} < {}", key, limit_at(*form_.first_key, row)));
    writer_.line(fmt::format("if ({}) {} = {};", masked, at, bottom()));
  });
  writer_.close();
}

void AttentionEmitter::step_softmax() {
  writer_.use(tiles_.tensor_cores ? "softmax_fragments" : "softmax_lanes");
  const char* large = !tiles_.tensor_cores ? "" : form_.score == form_.product ? "<false>" : "<true>";
  writer_.line(fmt::format("softmax_step{}({}, {}, {}, {}, {});", large, score_, sum_, greatest_, total_,
                           number(exponent_scale())));
  if (form_.key_steps.empty()) return;
  std::vector<ExprId> operands;
  for (const WeightStep& step : form_.key_steps) operands.push_back(step.operand);
  each_score([&](const std::string& row, const std::string& key, const std::string& at, const std::string&) {
    const bool guarded = holds_loads(operands);
    open_guard(guarded, row, key);
    writer_.line(fmt::format("{} = {};", at, apply(form_.key_steps, at)));
    if (guarded) writer_.close();
  });
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
    writer_.line(fmt::format("for (int r = 0; r < {}; ++r)", tiles_.my_rows));
    writer_.line("#pragma unroll");
    writer_.line(
        fmt::format("  for (int n = 0; n < {}; ++n) {}[(group + r * 16) * {} + group_lane + n * 8] = {}[r][n];",
                    tiles_.my_keys(), weight_tile_, tiles_.weight_stride, score_));
    writer_.line("__syncwarp();  // a row's weights come from lanes of one warp");
    writer_.line(fmt::format("add_values<{}, {}, {}, {}>({}, {} + group * {}, {} + group_lane{});", tiles_.keys,
                             tiles_.weight_stride, tiles_.value_stride, tiles_.wide_columns, sum_, weight_tile_,
                             tiles_.weight_stride, value_tile_, tiles_.wide_columns ? " * 4" : ""));
    return;
  }
  const std::string pack = *form_.tensor_dtype == DType::kBFloat16 ? "pack_bf16" : "pack_fp16";
  writer_.use("pack_pair");
  writer_.line("#pragma unroll");
  writer_.open(fmt::format("for (int k = 0; k < {}; k += 2)", tiles_.keys / 8));
  writer_.line(
      fmt::format("const unsigned weight[4] = {{{0}({1}[k][0], {1}[k][1]), {0}({1}[k][2], {1}[k][3]),", pack, score_));
  writer_.line(
      fmt::format("                            {0}({1}[k + 1][0], {1}[k + 1][1]), {0}({1}[k + 1][2], "
                  "{1}[k + 1][3])}};",
                  pack, score_));
  writer_.line("#pragma unroll");
  writer_.open(fmt::format("for (int n = 0; n < {}; n += 2)", tiles_.columns / 8));
  writer_.line("unsigned b[4];");
  writer_.line(
      fmt::format("load_matrices_transposed(b, {} + k * {} + n * 16);", value_rows_, 16 * tiles_.value_stride));
  writer_.line(fmt::format("{0}({1}[n], weight, {{b[0], b[1]}});", mma(), sum_));
  writer_.line(fmt::format("{0}({1}[n + 1], weight, {{b[2], b[3]}});", mma(), sum_));
  writer_.close();
  writer_.close();
}

}  // namespace fusec
