#include "codegen/schedules/attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

#include "codegen/emit_expr.h"
#include "codegen/schedules/attention_tiles.h"
#include "codegen/schedules/direct.h"
#include "codegen/schedules/tile_load.h"
#include "ir/type.h"

namespace fusec {
namespace {

class AttentionEmitter {
 public:
  AttentionEmitter(const Attention& form, const Graph& graph, KernelWriter& writer, ExprEmitter& emitter)
      : form_(form),
        pool_(form.kernel.pool),
        graph_(graph),
        writer_(writer),
        emitter_(emitter),
        tiles_(attention_tiles(form)),
        loads_(emitter, writer, tiles_.threads) {}

  KernelSource emit() {
    declare_shared();
    place_block();
    load_queries();
    declare_state();
    key_loop();
    finish_rows();
    store_rows();
    if (!form_.beside.empty()) store_beside();
    KernelSource source = writer_.finish(comment(), tiles_.threads);
    source.name = kernel_name(graph_, form_.kernel.nodes);
    source.grid[0] = simplify(row_tiles() * count(form_.batch), pool_.bounds());
    source.dynamic_shared = tiles_.dynamic() ? tiles_.bytes() : 0;
    source.schedule = tiles_.tensor_cores ? "attention_mma" : "attention";
    return source;
  }

 private:
  IndexExpr count(const std::vector<std::uint32_t>& axes) const { return point_count(pool_, axes); }
  IndexExpr row_tiles() const { return simplify(ceil_div(count(form_.rows), tiles_.rows), pool_.bounds()); }
  std::string integer() const { return writer_.index_type(); }
  std::string text(const IndexExpr& e) { return emitter_.index_text().tight(simplify(e, pool_.bounds())); }
  std::string type() const { return c_type(pool_[form_.product].type); }
  std::string number(double v) const {
    ExprNode n;
    n.type = pool_[form_.product].type;
    n.real = v;
    return constant_text(n);
  }
  std::string bottom() const { return number(-std::numeric_limits<double>::infinity()); }

  std::vector<std::string> comment() const {
    std::vector<std::string> lines = kernel_comment(graph_, form_.kernel);
    lines.push_back(fmt::format(
        "A block takes {} rows; {} keys at a time go through shared memory, their softmax is kept as it goes"
        "{}.",
        tiles_.rows, tiles_.keys, tiles_.tensor_cores ? ", products on tensor cores" : ""));
    return lines;
  }

  // --- tiles and places

  void declare_shared() {
    key_tile_ = writer_.unique("key_tile");
    value_tile_ = writer_.unique("value_tile");
    query_tile_ = tiles_.tensor_cores ? key_tile_ : writer_.unique("query_tile");
    const std::string element = tiles_.tensor_cores ? "unsigned short" : type();
    const std::string tiles = writer_.unique("tiles");
    if (tiles_.dynamic()) {
      writer_.use("dynamic_shared");
      writer_.line(fmt::format("{0}* const {1} = ({0}*)dynamic_shared;", element, tiles));
    } else {
      writer_.line(fmt::format("__shared__ __align__(16) {} {}[{}];", element, tiles, tiles_.elements()));
    }
    const auto place = [&](const std::string& name, std::int64_t at) {
      writer_.line(at == 0 ? fmt::format("{}* const {} = {};", element, name, tiles)
                           : fmt::format("{}* const {} = {} + {};", element, name, tiles, at));
    };
    place(key_tile_, 0);
    place(value_tile_, tiles_.value_at());
    if (tiles_.tensor_cores) return;
    place(query_tile_, tiles_.query_at());
    weight_tile_ = writer_.unique("weight_tile");
    place(weight_tile_, tiles_.weight_at());
  }

  void place_block() {
    const std::string tile = writer_.unique("tile");
    row0_ = writer_.unique("row0");
    const std::string across = text(row_tiles());
    writer_.line(fmt::format("const {} {} = blockIdx.x;", integer(), tile));
    // The rows that see most keys first, so that short work fills the end.
    const bool falling = form_.last_key && !form_.rows.empty();
    if (row_tiles().is(1)) {
      writer_.line(fmt::format("const {} {} = 0;", integer(), row0_));
    } else {
      writer_.line(falling ? fmt::format("const {0} {1} = ({2} - 1 - {3} % {2}) * {4};", integer(), row0_, across, tile,
                                         tiles_.rows)
                           : fmt::format("const {} {} = {} % {} * {};", integer(), row0_, tile, across, tiles_.rows));
    }
    for (const std::uint32_t a : form_.unit) emitter_.bind(a, "0");
    if (!form_.batch.empty()) {
      const std::string batch = writer_.unique("batch");
      writer_.line(row_tiles().is(1) ? fmt::format("const {} {} = {};", integer(), batch, tile)
                                     : fmt::format("const {} {} = {} / {};", integer(), batch, tile, across));
      bind_flat(emitter_, form_.batch, batch, "bcdefgh");
    }
    my_row_ = writer_.unique("my_row");
    my_column_ = writer_.unique("my_column");
    if (tiles_.tensor_cores) {
      writer_.line("const int warp = threadIdx.x / 32, warp_lane = threadIdx.x % 32;");
      writer_.line(fmt::format("const {} {} = {} + warp * 16 + warp_lane / 4;  // and 8 further down", integer(),
                               my_row_, row0_));
      writer_.line(fmt::format("const int {} = warp_lane % 4 * 2;", my_column_));
    } else {
      writer_.line("const int group = threadIdx.x / 8, group_lane = threadIdx.x % 8;");
      writer_.line(fmt::format("const {} {} = {} + group;", integer(), my_row_, row0_));
      my_column_ = "group_lane";
    }
  }

  std::string row(const std::string& r) const { return fmt::format("{} + {} * {}", my_row_, r, tiles_.row_step()); }
  std::string score(const std::string& r, const std::string& n) const {
    return tiles_.tensor_cores ? fmt::format("{0}[{2} / 2][2 * {1} + {2} % 2]", score_, r, n)
                               : fmt::format("{}[{}][{}]", score_, r, n);
  }
  std::string key(const std::string& n) const {
    return tiles_.tensor_cores ? fmt::format("{0} + {1} + {2} / 2 * 8 + {2} % 2", key0_, my_column_, n)
                               : fmt::format("{} + {} + {} * 8", key0_, my_column_, n);
  }
  std::string sum(const std::string& r, const std::string& m) const {
    return tiles_.tensor_cores ? fmt::format("{0}[{2} / 2][2 * {1} + {2} % 2]", sum_, r, m)
                               : fmt::format("{}[{}][{}]", sum_, r, m);
  }
  std::string column(const std::string& m) const {
    if (tiles_.tensor_cores) return fmt::format("{0} + {1} / 2 * 8 + {1} % 2", my_column_, m);
    return tiles_.wide_columns ? fmt::format("{0} * 4 + {1} / 4 * 32 + {1} % 4", my_column_, m)
                               : fmt::format("{} + {} * 8", my_column_, m);
  }

  void load_queries() {
    loads_.load({.tile = query_tile_,
                 .stride = tiles_.query_stride,
                 .lines = tiles_.rows,
                 .places = tiles_.depth,
                 .factor = form_.query,
                 .along_lines = form_.rows,
                 .along_places = form_.depth,
                 .line0 = row0_,
                 .narrowed = form_.tensor_dtype});
    if (!tiles_.tensor_cores) return;
    query_ = writer_.unique("query");
    writer_.use("load_matrices");
    writer_.line("__syncthreads();");
    writer_.line(fmt::format("unsigned {}[{}][4];", query_, tiles_.depth / 16));
    const auto rows_of = [&](const char* wish, const std::string& tile, const std::string& place) {
      const std::string name = writer_.unique(wish);
      writer_.line(fmt::format("const unsigned {} = shared_address({} + {});", name, tile, place));
      return name;
    };
    const std::string query_rows =
        rows_of("query_rows", query_tile_,
                fmt::format("(warp * 16 + warp_lane % 16) * {} + warp_lane / 16 * 8", tiles_.query_stride));
    key_rows_ =
        rows_of("key_rows", key_tile_,
                fmt::format("(warp_lane / 16 * 8 + warp_lane % 8) * {} + warp_lane / 8 % 2 * 8", tiles_.key_stride));
    value_rows_ = rows_of("value_rows", value_tile_,
                          fmt::format("warp_lane % 16 * {} + warp_lane / 16 * 8", tiles_.value_stride));
    writer_.line("#pragma unroll");
    writer_.line(fmt::format("for (int e = 0; e < {}; ++e) load_matrices({}[e], {} + e * 32);", tiles_.depth / 16,
                             query_, query_rows));
  }

  void declare_state() {
    score_ = writer_.unique("score");
    sum_ = writer_.unique("sum");
    greatest_ = writer_.unique("greatest");
    total_ = writer_.unique("total");
    const std::string shape = tiles_.tensor_cores ? fmt::format("[{}][4]", tiles_.columns / 8)
                                                  : fmt::format("[{}][{}]", tiles_.my_rows, tiles_.my_columns());
    std::string least;
    for (int r = 0; r < tiles_.my_rows; ++r) least += (r ? ", " : "") + bottom();
    writer_.line(fmt::format("{0} {1}{2} = {{}}, {3}[{4}] = {{{5}}}, {6}[{4}] = {{}};", type(), sum_, shape, greatest_,
                             tiles_.my_rows, least, total_));
  }

  // --- the loop over keys

  // A limit on keys, at a row that is a C variable.
  std::string limit_at(const IndexExpr& limit, const std::string& row) {
    const ExprEmitter::Mark mark = emitter_.mark();
    if (!form_.rows.empty()) emitter_.bind(form_.rows.back(), row);
    const std::string result = text(limit);
    emitter_.rewind(mark);
    return result;
  }

  void key_loop() {
    const IndexExpr keys = count(form_.keys);
    std::string last_row;
    if (form_.last_key || form_.first_key) {
      last_row = writer_.unique("last_row");
      const std::string rows = text(count(form_.rows));
      writer_.line(fmt::format("const {0} {1} = {2} + {3} < {4} ? {2} + {3} : {4} - 1;", integer(), last_row, row0_,
                               tiles_.rows - 1, rows));
    }
    // Keys that some row of the tile sees; those that all of them see.
    std::string end = text(keys), first = "0";
    all_rows_to_ = end;
    if (form_.last_key) {
      end = writer_.unique("keys_end");
      writer_.line(
          fmt::format("const {} {} = {};", integer(), end, limit_at(min(keys, *form_.last_key + 1), last_row)));
      all_rows_to_ = writer_.unique("all_rows_to");
      writer_.line(
          fmt::format("const {} {} = {};", integer(), all_rows_to_, limit_at(min(keys, *form_.last_key + 1), row0_)));
    }
    if (form_.first_key) {
      first = fmt::format("{} / {} * {}", limit_at(max(*form_.first_key, 0), row0_), tiles_.keys, tiles_.keys);
      all_rows_from_ = writer_.unique("all_rows_from");
      writer_.line(
          fmt::format("const {} {} = {};", integer(), all_rows_from_, limit_at(max(*form_.first_key, 0), last_row)));
    }
    key0_ = writer_.unique("key0");
    if (first != "0") {
      const std::string name = writer_.unique("first_key");
      writer_.line(fmt::format("const {} {} = {};", integer(), name, first));
      first = name;
    }
    if (tiles_.tensor_cores) writer_.line("__syncthreads();");  // the queries' tile is free
    loads_.load(key_load(first));
    writer_.open(fmt::format("for ({0} {1} = {2}; {1} < {3}; {1} += {4})", integer(), key0_, first, end, tiles_.keys));
    const std::string next = fmt::format("{} + {}", key0_, tiles_.keys);
    synchronize(key_load(first), "keys are there, values used up");
    loads_.load(value_load());
    multiply_keys();
    synchronize(value_load(), "values are there, keys used up");
    writer_.open(fmt::format("if ({} < {})", next, end));
    loads_.load(key_load(next));
    writer_.close();
    mask_scores();
    step_softmax();
    add_values();
    writer_.close();
  }

  TileLoad key_load(const std::string& first) const {
    return {.tile = key_tile_,
            .stride = tiles_.key_stride,
            .lines = tiles_.keys,
            .places = tiles_.depth,
            .factor = form_.key,
            .along_lines = form_.keys,
            .along_places = form_.depth,
            .line0 = first,
            .async = true,
            .narrowed = form_.tensor_dtype};
  }

  TileLoad value_load() const {
    return {.tile = value_tile_,
            .stride = tiles_.value_stride,
            .lines = tiles_.keys,
            .places = tiles_.columns,
            .factor = form_.value,
            .along_lines = form_.keys,
            .along_places = form_.columns,
            .line0 = key0_,
            .async = true,
            .narrowed = form_.tensor_dtype};
  }

  // What was loaded is there for all threads, and what all of them were done with may be overwritten.
  void synchronize(const TileLoad& loaded, const char* why) {
    if (loads_.copies(loaded)) writer_.line("wait_for_copies();");
    writer_.line(fmt::format("__syncthreads();  // {}", why));
  }

  // The scale of what is exponentiated, to base 2 on tensor cores.
  double exponent_scale() const { return form_.score_scale * (tiles_.tensor_cores ? 1.4426950408889634 : 1); }

  std::string mma() {
    const std::string name = *form_.tensor_dtype == DType::kBFloat16 ? "mma_bf16" : "mma_fp16";
    writer_.use(name);
    return name;
  }

  void multiply_keys() {
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

  // Loops over a thread's rows and the keys of each: `row` and `key` are variables, their axes bound.
  void each_score(const std::function<void(const std::string& row, const std::string& key, const std::string& at,
                                           const std::string& r)>& body) {
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

  bool holds_loads(const std::vector<ExprId>& roots) const {
    return std::ranges::any_of(reachable(pool_, roots), [&](ExprId id) { return pool_[id].op == ExprOp::kLoad; });
  }

  // Where it loads, an expression is made only for rows and keys that are there.
  void open_guard(bool guarded, const std::string& row, const std::string& key) {
    if (guarded)
      writer_.open(fmt::format("if ({} < {} && {} < {})", row, text(count(form_.rows)), key, text(count(form_.keys))));
    bind_flat(emitter_, form_.keys, key, "klst");
  }

  // Leaves of the score that are made for every row and key; the product's own loads are none.
  bool score_loads() const {
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

  void mask_scores() {
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

  void step_softmax() {
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

  // The steps' linear function of `value`, the innermost first.
  std::string apply(const std::vector<WeightStep>& steps, std::string value) {
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

  void add_values() {
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
    writer_.line(fmt::format("const unsigned weight[4] = {{{0}({1}[k][0], {1}[k][1]), {0}({1}[k][2], {1}[k][3]),", pack,
                             score_));
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

  // --- the result

  // What the formulas call the row's maximum and sum.
  void define_row(const std::string& r) {
    const std::string greatest = fmt::format("{}[{}]", greatest_, r), total = fmt::format("{}[{}]", total_, r);
    emitter_.define(form_.greatest,
                    form_.score_scale == 1 ? greatest : fmt::format("({} * {})", greatest, number(form_.score_scale)));
    if (form_.total != kNoExpr) emitter_.define(form_.total, total);
    for (const ExprId id : form_.some_key)
      emitter_.define(id, fmt::format("({} != {} || {} != {})", greatest, bottom(), total, total));
    for (const ExprId id : form_.no_key)
      emitter_.define(id, fmt::format("({} == {} && {} == {})", greatest, bottom(), total, total));
  }

  void finish_rows() {
    const std::string r = writer_.unique("r");
    row_scale_ = writer_.unique("row_scale");
    writer_.line(fmt::format("{} {}[{}];", type(), row_scale_, tiles_.my_rows));
    const ExprEmitter::Mark outside = emitter_.mark();
    writer_.line("#pragma unroll");
    writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", r, tiles_.my_rows));
    for (int mask = 1; mask < tiles_.lanes_of_row(); mask *= 2)
      writer_.line(fmt::format("{0}[{1}] += __shfl_xor_sync(0xffffffffu, {0}[{1}], {2});", total_, r, mask));
    const IndexExpr keys = count(form_.keys);
    const bool some_keys = proves_nonnegative(keys - 1, pool_.bounds());
    if (form_.empty_rows_are_nan)
      writer_.line(fmt::format("if ({}[{}] == {}) {}[{}] = {};", greatest_, r, bottom(), total_, r,
                               number(std::numeric_limits<double>::quiet_NaN())));
    std::vector<ExprId> operands;
    for (const WeightStep& step : form_.row_steps) operands.push_back(step.operand);
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
    writer_.line(fmt::format("{}[{}] = {};", row_scale_, r, apply(form_.row_steps, number(1))));
    if (!there.empty()) writer_.close();
    emitter_.rewind(outside);
    writer_.close();
  }

  // Loads outside of the reductions that are there already.
  bool holds_loads_outside(const std::vector<ExprId>& roots) const {
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

  void store_rows() {
    const std::string r = writer_.unique("r"), m = writer_.unique("m");
    const ExprEmitter::Mark outside = emitter_.mark();
    writer_.line("#pragma unroll");
    writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", r, tiles_.my_rows));
    const std::string row_name = writer_.unique("row");
    writer_.line(fmt::format("const {} {} = {};", integer(), row_name, row(r)));
    writer_.line(fmt::format("if ({} >= {}) continue;", row_name, text(count(form_.rows))));
    bind_flat(emitter_, form_.rows, row_name, "mnopq");
    define_row(r);
    std::vector<std::size_t> stored;
    for (std::size_t i = 0; i < form_.kernel.outputs.size(); ++i)
      if (std::find(form_.beside.begin(), form_.beside.end(), i) == form_.beside.end()) stored.push_back(i);
    const int width = store_width(stored);
    writer_.line("#pragma unroll");
    writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; {2})", m, tiles_.my_columns(),
                             width == 1 ? "++" + m : fmt::format("{} += {}", m, width)));
    const std::string column_name = writer_.unique("column");
    writer_.line(fmt::format("const int {} = {};", column_name, column(m)));
    const bool whole = tiles_.columns == form_.column_count();
    if (!whole) writer_.open(fmt::format("if ({} < {})", column_name, form_.column_count()));
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
    writer_.close();
  }

  // Neighbouring columns of a thread that one access stores: all that it has side by side, or one.
  int store_width(const std::vector<std::size_t>& stored) const {
    const int width = tiles_.tensor_cores ? 2 : tiles_.wide_columns ? 4 : 1;
    if (stored.size() != 1 || form_.columns.size() != 1) return 1;
    const KernelOutput& output = form_.kernel.outputs[stored[0]];
    const IndexExpr position = simplify(flat_index(output.type.shape, output.index), pool_.bounds());
    const std::uint32_t axis = form_.columns[0];
    if (coefficient_of(position, {Variable::Kind::kAxis, axis}) != 1 || bits(output.type.dtype) < 8 ||
        !proves_multiple_of(position - IndexExpr::axis(axis), width, pool_.bounds()) ||
        form_.column_count() % width != 0)
      return 1;
    return width;
  }

  void store_neighbours(int width, const std::string& r, const std::string& m, const std::string& first) {
    const KernelOutput& output = form_.kernel.outputs[0];
    const IndexExpr position = simplify(flat_index(output.type.shape, output.index), pool_.bounds());
    std::string values, at;
    for (int i = 0; i < width; ++i) {
      const ExprEmitter::Mark mark = emitter_.mark();
      emitter_.bind(form_.columns[0], i == 0 ? first : fmt::format("({} + {})", first, i));
      emitter_.define(form_.result,
                      fmt::format("({} * {}[{}])", sum(r, i == 0 ? m : fmt::format("({} + {})", m, i)), row_scale_, r));
      values += (i ? ", " : "") + narrow(output.type.dtype, emitter_.emit(output.expr));
      if (i == 0) at = emitter_.index(position);
      emitter_.rewind(mark);
    }
    writer_.use("neighbours");
    writer_.use(output.type.dtype);
    writer_.line(fmt::format("*(Neighbours<{}, {}>*)({} + {}) = {{{}}};", storage_type(output.type.dtype), width,
                             writer_.output(output.value), at, values));
  }

  void store(const std::vector<std::size_t>& which) {
    std::vector<ExprId> roots;
    for (const std::size_t i : which) roots.push_back(form_.kernel.outputs[i].expr);
    const std::vector<std::string> values = emitter_.emit(roots);
    for (std::size_t k = 0; k < which.size(); ++k) {
      const KernelOutput& output = form_.kernel.outputs[which[k]];
      const IndexExpr position = simplify(flat_index(output.type.shape, output.index), pool_.bounds());
      writer_.line(store_text(writer_, output, emitter_.index(position), values[k]));
    }
  }

  // A second pass over the keys, now that their maximum and sum are known: weights (or scores) go to memory.
  void store_beside() {
    const std::string keys = text(count(form_.keys));
    key0_ = writer_.unique("key0");
    if (loads_.copies(key_load(key0_))) writer_.line("wait_for_copies();");
    writer_.open(fmt::format("for ({0} {1} = 0; {1} < {2}; {1} += {3})", integer(), key0_, keys, tiles_.keys));
    writer_.line("__syncthreads();");
    loads_.load(key_load(key0_));
    synchronize(key_load(key0_), "keys are there");
    multiply_keys();
    mask_scores();
    each_score([&](const std::string& row, const std::string& key, const std::string& at, const std::string& r) {
      open_guard(true, row, key);
      define_row(r);
      emitter_.define(form_.whole_score,
                      form_.score_scale == 1 ? at : fmt::format("({} * {})", at, number(form_.score_scale)));
      emitter_.define(form_.exponential,
                      fmt::format("weight_of({}, {}[{}], {})", at, greatest_, r, number(exponent_scale())));
      store(form_.beside);
      writer_.close();
    });
    writer_.close();
  }

  const Attention& form_;
  const ExprPool& pool_;
  const Graph& graph_;
  KernelWriter& writer_;
  ExprEmitter& emitter_;
  AttentionTiles tiles_;
  TileLoader loads_;
  std::string query_tile_, key_tile_, value_tile_, weight_tile_;    // in shared memory
  std::string key_rows_, value_rows_;                               // addresses of a lane's rows of matrices
  std::string all_rows_from_, all_rows_to_;                         // the keys that all of a tile's rows see
  std::string row0_, key0_, my_row_, my_column_;                    // places
  std::string query_, score_, sum_, greatest_, total_, row_scale_;  // in registers
};

}  // namespace

KernelSource attention(const Attention& form, const Graph& graph) {
  KernelWriter writer(
      graph, needs_wide_index(form.kernel, graph, point_count(form.kernel.pool, form.kernel.outputs.at(0).axes)));
  ExprEmitter emitter(form.kernel, writer);
  return AttentionEmitter(form, graph, writer, emitter).emit();
}

}  // namespace fusec
