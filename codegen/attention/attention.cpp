#include "codegen/attention/attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "codegen/access/direct.h"
#include "codegen/attention/attention_emitter.h"
#include "ir/type.h"

namespace fusec {

KernelSource AttentionEmitter::emit() {
  const bool multiplies = part_ != AttentionPart::kCombine || (!form_.extra_outputs.empty() && !form_.score_buffer);
  if (multiplies) declare_shared();
  place_block();
  if (multiplies) load_queries();
  declare_state();
  if (part_ == AttentionPart::kCombine)
    combine_splits();
  else
    key_loop();
  if (has_named_accumulators()) fetch_accumulators();
  if (tiles_.key_warps > 1) open_merged_warps();
  if (part_ == AttentionPart::kSplit) {
    store_partial_state();
  } else {
    finish_rows();
    if (splits_keys()) writer_.open(fmt::format("if ({} == 0)", split_));
    store_rows();
    if (splits_keys()) writer_.close();
    if (!form_.extra_outputs.empty()) store_extra_outputs();
  }
  if (tiles_.key_warps > 1) writer_.close();
  if (part_ == AttentionPart::kSplit && form_.extra_outputs.empty()) combine_in_last_block();
  KernelSource source = writer_.finish(comment(), tiles_.threads, blocks_at_once());
  source.name = kernel_name(graph_, form_.kernel.nodes);
  source.grid[0] = simplify(row_tiles() * count(form_.batch) * (splits_keys() ? splits_in_use() : 1), pool_.bounds());
  source.dynamic_shared = tiles_.dynamic() && multiplies ? tiles_.bytes() : 0;
  source.has_named_registers = has_named_accumulators();
  source.schedule = {KernelKind::kAttention, mma_if(tiles_.tensor_cores)};
  return source;
}

// Minimum blocks per multiprocessor for __launch_bounds__; 0: none. Without this bound ptxas limits registers for one
// more block and spills: without tensor cores, if all keys are one tile, and for head sizes from 65 to 96. Smaller
// heads have registers to spare.
int AttentionEmitter::blocks_at_once() const {
  const auto keys = count(form_.keys).as_constant();
  if (!tiles_.tensor_cores || (keys && *keys <= tiles_.keys)) return 1;
  return tiles_.columns > 64 && tiles_.columns <= 96 ? 2 : 0;
}

std::string AttentionEmitter::number(double v) const {
  ExprNode n;
  n.type = pool_[form_.contraction].type;
  n.real = v;
  return constant_text(n);
}

std::vector<std::string> AttentionEmitter::comment() const {
  std::vector<std::string> lines = kernel_comment(graph_, form_.kernel);
  const bool divided = std::ranges::any_of(form_.row_weight_steps, [&](const WeightStep& step) {
    return step.kind == WeightStep::Kind::kOver && step.operand == form_.total;
  });
  lines.push_back("score[m, n] = sum of query[m, e] * key[n, e]; weight[m, n] = exp(score[m, n] - max of score[m])");
  lines.push_back(fmt::format("result[m, d] = sum over n of weight[m, n] * value[n, d]{}",
                              divided ? ", over the sum of weight[m]" : ""));
  lines.push_back(
      fmt::format("A block takes {} rows; {} keys at a time go through shared memory, their softmax is kept as it goes"
                  "{}.",
                  tiles_.rows, tiles_.keys,
                  tiles_.warpgroups     ? ", products by warpgroups"
                  : tiles_.tensor_cores ? ", products on tensor cores"
                                        : ""));
  return lines;
}

void AttentionEmitter::declare_shared() {
  key_tile_ = writer_.unique("key_tile");
  value_tile_ = writer_.unique("value_tile");
  query_tile_ = tiles_.query_at() == 0 ? key_tile_ : writer_.unique("query_tile");
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
  if (tiles_.query_at() > 0) place(query_tile_, tiles_.query_at());
  if (tiles_.tensor_cores) return;
  weight_tile_ = writer_.unique("weight_tile");
  place(weight_tile_, tiles_.weight_at());
}

void AttentionEmitter::declare_warp() {
  writer_.line("const int warp = threadIdx.x / 32, warp_lane = threadIdx.x % 32;");
}

void AttentionEmitter::place_block() {
  if (tiles_.tensor_cores) declare_warp();
  const std::string tile = row_tile_ = writer_.unique("tile");
  if (splits_keys()) {
    split_ = writer_.unique("share");
    const std::string splits = text(splits_in_use());
    writer_.line(fmt::format("const int {} = blockIdx.x % {};  // of the keys", split_, splits));
    writer_.line(fmt::format("const {} {} = blockIdx.x / {};", integer(), tile, splits));
  } else {
    writer_.line(fmt::format("const {} {} = blockIdx.x;", integer(), tile));
  }
  place_tile(tile);
}

// Tile number `tile`: its head and rows. Tiles with the most keys come first, so that short ones fill the end of the
// launch.
void AttentionEmitter::place_tile(const std::string& tile) {
  const bool one = row_tiles().is(1), falling = form_.last_key && !form_.rows.empty() && !one;
  const std::string across = text(row_tiles()), batches = text(count(form_.batch));
  std::string of_rows = fmt::format("{} % {}", tile, across), of_batch = fmt::format("{} / {}", tile, across);
  if (falling && tiles_.heads_at_once > 1) {
    of_rows = fmt::format("{} / {}", tile, batches), of_batch = fmt::format("{} % {}", tile, batches);
    if (!proves_nonnegative(IndexExpr(tiles_.heads_at_once) - count(form_.batch), pool_.bounds())) {
      writer_.use("tile_order");
      const std::string place = writer_.unique("place");
      writer_.line(fmt::format("const TilePlace {} = tile_in_order<{}>({}, {}, {});", place, tiles_.heads_at_once, tile,
                               batches, across));
      of_rows = place + ".column", of_batch = place + ".row";
    }
  }
  row0_ = writer_.unique("row0");
  writer_.line(one ? fmt::format("const {} {} = 0;", integer(), row0_)
               : falling
                   ? fmt::format("const {} {} = ({} - 1 - {}) * {};", integer(), row0_, across, of_rows, tiles_.rows)
                   : fmt::format("const {} {} = {} * {};", integer(), row0_, of_rows, tiles_.rows));
  for (const std::uint32_t a : form_.unit) emitter_.bind(a, "0");
  if (!form_.batch.empty()) {
    const std::string batch = writer_.unique("batch");
    writer_.line(fmt::format("const {} {} = {};", integer(), batch, one ? tile : of_batch));
    bind_flat(emitter_, form_.batch, batch, "bcdefgh");
    batch_ = batch;
  }
  place_threads();
}

void AttentionEmitter::place_threads() {
  thread_row_ = writer_.unique("my_row");
  thread_column_ = writer_.unique("my_column");
  if (tiles_.tensor_cores) {
    writer_.line(tiles_.warps_split_rows() ? fmt::format("const {} warp_row = {} + {} * {};", integer(), row0_,
                                                         tiles_.warpgroups ? "(warp - 4)" : "warp", tiles_.warp_rows())
                                           : fmt::format("const {} warp_row = {};", integer(), row0_));
    writer_.line(fmt::format("const {} {} = warp_row + warp_lane / 4;  // and 8 further down", integer(), thread_row_));
    writer_.line(fmt::format("const int {} = warp_lane % 4 * 2;", thread_column_));
  } else {
    writer_.line(
        fmt::format("const int group = threadIdx.x / {0}, group_lane = threadIdx.x % {0};", tiles_.lanes_per_row));
    writer_.line(fmt::format("const {} {} = {} + group;", integer(), thread_row_, row0_));
    thread_column_ = "group_lane";
  }
}

std::string AttentionEmitter::score(const std::string& r, const std::string& n) const {
  return tiles_.tensor_cores ? fmt::format("{0}[{1} / 2][{2} / 2][2 * ({1} % 2) + {2} % 2]", score_, r, n)
                             : fmt::format("{}[{}][{}]", score_, r, n);
}

std::string AttentionEmitter::key_offset(const std::string& n) const {
  return tiles_.tensor_cores ? fmt::format("{0} / 2 * 8 + {0} % 2", n) : n + " * 8";
}

std::string AttentionEmitter::sum(const std::string& r, const std::string& m) const {
  return tiles_.tensor_cores ? fmt::format("{0}[{1} / 2][{2} / 2][2 * ({1} % 2) + {2} % 2]", accumulator_, r, m)
                             : fmt::format("{}[{}][{}]", accumulator_, r, m);
}

std::string AttentionEmitter::column(const std::string& m) const {
  if (tiles_.tensor_cores) return fmt::format("{0} + {1} / 2 * 8 + {1} % 2", thread_column_, m);
  return tiles_.vector_columns
             ? fmt::format("{0} * 4 + {1} / 4 * {2} + {1} % 4", thread_column_, m, 4 * tiles_.lanes_per_row)
             : fmt::format("{} + {} * 8", thread_column_, m);
}

TileLoad AttentionEmitter::query_load() const {
  return {.tile = query_tile_,
          .stride = tiles_.query_stride,
          .lines = tiles_.rows,
          .places = tiles_.head_dim,
          .operand = form_.query,
          .line_axes = form_.rows,
          .position_axes = form_.head_dim,
          .line0 = row0_,
          .async = tiles_.tensor_cores,
          .narrowed = form_.tensor_dtype};
}

void AttentionEmitter::load_queries() {
  const TileLoad load = query_load();
  if (auto lines = AsyncLineCopy::plan(loads_, emitter_, load, tiles_.threads)) {
    lines->declare(emitter_);
    lines->copy(emitter_, row0_);
    lines->clear_rest(writer_);
  } else {
    load_tile(load);
  }
  if (!tiles_.tensor_cores) return;
  writer_.use("load_pieces");
  writer_.use("kept");
  // A lane's row address for ldmatrix of four 8x8 matrices. The left operand has 16 rows by 16 columns; the right
  // operand uses the same order.
  const std::string lane_row = writer_.unique("lane_row"), lane_place = writer_.unique("lane_place");
  writer_.line(fmt::format("const int {} = warp_lane / 16 * 8 + warp_lane % 8, {} = warp_lane / 8 % 2 * 8;", lane_row,
                           lane_place));
  const auto rows_of = [&](const char* preferred_name, const std::string& tile, int stride, int of_warp) {
    const std::string name = writer_.unique(preferred_name);
    const std::string first = of_warp == 0 ? "" : fmt::format("warp * {} + ", of_warp);
    writer_.line(fmt::format("const unsigned {} = kept(shared_address({} + ({}{}) * {} + {}));", name, tile, first,
                             lane_row, stride, lane_place));
    return name;
  };
  const int keys_of_warp = tiles_.key_warps > 1 ? tiles_.warp_keys() : 0;
  query_rows_ =
      rows_of("query_rows", query_tile_, tiles_.query_stride, tiles_.warps_split_rows() ? tiles_.warp_rows() : 0);
  key_rows_ = rows_of("key_rows", key_tile_, tiles_.key_stride, keys_of_warp);
  value_rows_ = rows_of("value_rows", value_tile_, tiles_.value_stride, keys_of_warp);
  query_ = writer_.unique("query");
  if (tiles_.queries_in_shared) {
    // If keys are copied asynchronously, the wait for the keys covers the queries.
    if (!loads_.copies(key_load("0"))) wait_for_copies(load);
    return;
  }
  synchronize(load, "queries are there");
  writer_.line(fmt::format("unsigned {}[{}][{}][4];", query_, tiles_.head_dim / 16, tiles_.m16_fragments));
  writer_.line("#pragma unroll");
  writer_.line(fmt::format("for (int e = 0; e < {}; ++e) load_pieces<{}>({}[e], {} + e * 32);", tiles_.head_dim / 16,
                           32 * tiles_.query_stride, query_, query_rows_));
}

void AttentionEmitter::declare_state() {
  score_ = writer_.unique("score");
  accumulator_ = writer_.unique("sum");
  greatest_ = writer_.unique("greatest");
  total_ = writer_.unique("total");
  const std::string shape = tiles_.tensor_cores ? fmt::format("[{}][{}][4]", tiles_.m16_fragments, tiles_.columns / 8)
                                                : fmt::format("[{}][{}]", tiles_.thread_rows, tiles_.thread_columns());
  std::string least;
  for (int r = 0; r < tiles_.thread_rows; ++r) least += (r ? ", " : "") + bottom();
  const std::string sums = has_named_accumulators() ? "" : fmt::format("{}{} = {{}}, ", accumulator_, shape);
  writer_.line(fmt::format("{0} {1}{2}[{3}] = {{{4}}}, {5}[{3}] = {{}};", type(), sums, greatest_, tiles_.thread_rows,
                           least, total_));
  if (has_named_accumulators()) {
    if (!tiles_.warpgroups) declare_accumulators();
    clear_accumulators();
  }
  // Values that depend on neither row nor key, such as the slope of a head.
  if (part_ != AttentionPart::kCombine && form_.score != form_.contraction) emitter_.emit_independent({form_.score});
}

std::string AttentionEmitter::limit_at(const IndexExpr& limit, const std::string& row) {
  const ExprEmitter::Mark mark = emitter_.mark();
  if (!form_.rows.empty()) emitter_.bind(form_.rows.back(), row);
  const std::string result = text(limit);
  emitter_.rewind(mark);
  return result;
}

void AttentionEmitter::declare_limits() {
  const IndexExpr keys = count(form_.keys);
  keys_from_ = "0";
  keys_to_ = all_rows_to_ = text(keys);
  if (!form_.last_key && !form_.first_key) return;
  const std::string rows = text(count(form_.rows));
  const auto last_of = [&](const char* preferred_name, const std::string& first, int count) {
    const std::string name = writer_.unique(preferred_name);
    writer_.line(
        fmt::format("const {0} {1} = {2} + {3} < {4} ? {2} + {3} : {4} - 1;", integer(), name, first, count - 1, rows));
    return name;
  };
  const auto limit = [&](const char* preferred_name, const IndexExpr& at, const std::string& row) {
    const std::string name = writer_.unique(preferred_name);
    writer_.line(fmt::format("const {} {} = {};", integer(), name, limit_at(at, row)));
    return name;
  };
  const std::string last_row = last_of("last_row", row0_, tiles_.rows);
  const bool warps = tiles_.warps_split_rows();
  const std::string first_row = warps ? "warp_row" : row0_;
  const std::string last_warp_row = warps ? last_of("last_warp_row", first_row, tiles_.warp_rows()) : last_row;
  if (form_.last_key) {
    const IndexExpr end = min(keys, *form_.last_key + 1);
    keys_to_ = limit("keys_end", end, last_row);
    if (warps) warp_keys_to_ = limit("warp_keys_end", end, last_warp_row);
    all_rows_to_ = limit("all_rows_to", end, first_row);
  }
  if (form_.first_key) {
    const IndexExpr first = max(*form_.first_key, 0);
    keys_from_ = writer_.unique("first_key");
    writer_.line(
        fmt::format("const {0} {1} = {2} / {3} * {3};", integer(), keys_from_, limit_at(first, row0_), tiles_.keys));
    all_rows_from_ = limit("all_rows_from", first, last_warp_row);
  }
}

// Skips a tile of keys of which no row of the warp sees any.
std::string AttentionEmitter::open_seen() {
  if (warp_keys_to_.empty()) return "";
  writer_.open(fmt::format("if ({} < {})", key0_, warp_keys_to_));
  return "}";
}

void AttentionEmitter::key_loop() {
  declare_limits();
  std::string first = keys_from_, end = keys_to_;
  tile_key0_ = key0_ = writer_.unique("key0");
  if (part_ == AttentionPart::kSplit) restrict_keys_to_split(first, end);
  plan_pipeline();
  plan_copies();
  // The tiles overwrite the queries, which are in registers now.
  if (tiles_.tensor_cores && !tiles_.queries_in_shared) writer_.line("__syncthreads();");
  for (const auto* lines : {&key_lines_, &value_lines_})
    if (*lines) (*lines)->clear_rest(writer_, tiles_.stages, tiles_.stage_elements());
  if (pipelined_) return pipelined_key_loop(first, end);
  const bool copied = key_lines_ || loads_.copies(key_load(first));
  // Asynchronous copies of the next keys overlap with the softmax. Computed keys are loaded after it, because they need
  // the registers that hold the scores until then.
  const bool once = code_.keys_loaded_once && !copied;
  if (!once) {
    if (may_see_nothing()) writer_.open(fmt::format("if ({} < {})", first, end));
    load_keys(first);
    if (may_see_nothing()) writer_.close();
  }
  writer_.open(fmt::format("for ({0} {1} = {2}; {1} < {3}; {1} += {4})", integer(), key0_, first, end, tiles_.keys));
  const std::string next = fmt::format("{} + {}", key0_, tiles_.keys);
  synchronize(key_load(first), once ? "keys and values are used up" : "keys are there, values used up");
  if (once) {
    load_keys(tile_key0_);
    load_values(tile_key0_);
    synchronize(value_load(tile_key0_), "keys and values are there");
  } else {
    load_values(tile_key0_);
  }
  declare_warp_keys();
  declare_scores();
  std::string seen = open_seen();
  multiply_keys();
  if (!seen.empty()) writer_.close();
  if (!once) synchronize(value_load(tile_key0_), "values are there, keys used up");
  const auto load_next = [&] {
    writer_.open(fmt::format("if ({} < {})", next, end));
    load_keys(next);
    writer_.close();
  };
  if (copied) load_next();
  seen = open_seen();
  mask_scores();
  if (form_.score_buffer) spill_scores();
  online_softmax_step();
  add_values();
  if (!seen.empty()) writer_.close();
  if (!copied && !once) load_next();
  writer_.close();
  // A block without keys has not waited for the queries, and the result overwrites them in shared memory.
  if (tiles_.tensor_cores && tiles_.queries_in_shared && may_see_nothing() && part_ == AttentionPart::kWhole)
    synchronize(query_load(), "queries are there");
}

// Narrows key0 to the first key of the warp, for the scores.
void AttentionEmitter::declare_warp_keys() {
  if (tiles_.key_warps == 1) return;
  key0_ = writer_.unique("warp_key0");
  writer_.line(fmt::format("const {} {} = {} + warp * {};", integer(), key0_, tile_key0_, tiles_.warp_keys()));
}

void AttentionEmitter::plan_copies() {
  const TileLoad keys = pipelined_ ? key_copy("0") : key_load("0");
  const TileLoad values = pipelined_ ? value_copy("0") : value_load("0");
  key_lines_ = AsyncLineCopy::plan(loads_, emitter_, keys, tiles_.threads);
  value_lines_ = AsyncLineCopy::plan(loads_, emitter_, values, tiles_.threads);
  if (key_lines_) key_lines_->declare(emitter_);
  if (!value_lines_) return;
  if (key_lines_ && value_lines_->same_offsets(*key_lines_))
    value_lines_->declare_like(
        *key_lines_, tiles_.quantized_stages ? tiles_.quantized_value_at() : tiles_.value_at() * tiles_.element_bytes);
  else
    value_lines_->declare(emitter_);
}

void AttentionEmitter::load_tile(const TileLoad& load) {
  if (loads_.vector_width(load) == 1)
    if (const auto pieces = TransformedTile::plan(emitter_, graph_, load))
      // The accumulators of two m16 fragments leave few registers for unrolling.
      return pieces->load(emitter_, graph_, load, tiles_.threads, nullptr, false,
                          code_.vectors_at_once > 0  ? code_.vectors_at_once
                          : tiles_.m16_fragments > 1 ? 2
                                                     : 0);
  TileLoad once = load;
  once.unrolled = code_.vectors_at_once;
  loads_.load(once);
}

void AttentionEmitter::load_keys(const std::string& first, const std::string& stage) {
  if (key_lines_)
    key_lines_->copy(emitter_, first, stage);
  else
    load_tile(pipelined_ ? in_stage(key_copy(first), stage) : key_load(first));
}

void AttentionEmitter::load_values(const std::string& first, const std::string& stage) {
  if (value_lines_)
    value_lines_->copy(emitter_, first, stage);
  else
    load_tile(pipelined_ ? in_stage(value_copy(first), stage) : value_load(first));
}

TileLoad AttentionEmitter::key_load(const std::string& first) const {
  return {.tile = key_tile_,
          .stride = tiles_.key_stride,
          .lines = tiles_.keys,
          .places = tiles_.head_dim,
          .operand = form_.key,
          .line_axes = form_.keys,
          .position_axes = form_.head_dim,
          .line0 = first,
          .async = true,
          .narrowed = form_.tensor_dtype};
}

TileLoad AttentionEmitter::value_load(const std::string& first) const {
  return {.tile = value_tile_,
          .stride = tiles_.value_stride,
          .lines = tiles_.keys,
          .places = tiles_.columns,
          .operand = form_.value,
          .line_axes = form_.keys,
          .position_axes = form_.columns,
          .line0 = first,
          .async = true,
          .narrowed = form_.tensor_dtype};
}

void AttentionEmitter::wait_for_copies(const TileLoad& loaded) {
  if (!loads_.copies(loaded)) return;
  writer_.use("copy_async");
  writer_.line("wait_for_copies();");
}

void AttentionEmitter::synchronize(const TileLoad& loaded, const char* why) {
  wait_for_copies(loaded);
  writer_.line(fmt::format("__syncthreads();  // {}", why));
}

namespace {

// Returns nullopt without tiles, or when an operand can neither be copied by TMA nor computed in vectors.
std::optional<KernelSource> with_warpgroups(const Attention& form, std::optional<AttentionTiles> tiles,
                                            const Graph& graph, const Target& target, bool wide) {
  // Head size; beyond it the computing warps take registers that the accumulators need.
  constexpr int kMostComputed = 128;
  if (!tiles) return std::nullopt;
  const AttentionUnrolling code = attention_unrolling(form, graph, *tiles, target);
  if (code.short_tiles) tiles = with_fewer_keys(*tiles, target);
  KernelWriter writer(graph, wide);
  ExprEmitter emitter(form.kernel, writer);
  std::vector<AttentionOperand> operands;
  for (const auto& [operand, lines, places, width] :
       {std::tuple{form.query, &form.rows, &form.head_dim, tiles->head_dim},
        {form.key, &form.keys, &form.head_dim, tiles->head_dim},
        {form.value, &form.keys, &form.columns, tiles->columns}}) {
    AttentionOperand made{.boxes = boxes_of(form, graph, operand, *lines, *places), .pieces = std::nullopt};
    if (!made.boxes && std::max(tiles->head_dim, tiles->columns) <= kMostComputed)
      made.pieces = TransformedTile::plan(emitter, graph,
                                          {.stride = width,
                                           .lines = tiles->keys,
                                           .places = width,
                                           .operand = operand,
                                           .line_axes = *lines,
                                           .position_axes = *places,
                                           .line0 = "0",
                                           .narrowed = form.tensor_dtype});
    if (!made.boxes && !made.pieces) return std::nullopt;
    operands.push_back(std::move(made));
  }
  return AttentionEmitter(form, graph, *tiles, writer, emitter, code).emit_warpgroups(std::move(operands));
}

}  // namespace

std::vector<KernelSource> attention(const Attention& form, const AttentionCandidates& candidates, const Graph& graph,
                                    const Target& target) {
  const bool wide = needs_wide_index(form.kernel, graph, point_count(form.kernel.pool, form.kernel.outputs.at(0).axes));
  const AttentionTiles& tiles = candidates.by_warps;
  const auto emit = [&](AttentionPart part, KeySplits splits) {
    const AttentionUnrolling code = attention_unrolling(form, graph, tiles, target, part, splits);
    KernelWriter writer(graph, wide);
    ExprEmitter emitter(form.kernel, writer);
    return AttentionEmitter(form, graph, tiles, writer, emitter, code, part, splits).emit();
  };
  const KeySplits splits = split_keys(form, tiles, target);
  if (splits.most == 1) {
    if (auto source = with_warpgroups(form, candidates.by_warpgroups, graph, target, wide)) return {*std::move(source)};
    return {emit(AttentionPart::kWhole, {})};
  }
  std::vector<KernelSource> sources = {emit(AttentionPart::kSplit, splits)};
  if (launches_of_splits(form) > 1) sources.push_back(emit(AttentionPart::kCombine, splits));
  return sources;
}

}  // namespace fusec
