// Attention by warpgroups (sm_90a). One warp has TMA copy the queries, then keys and values tile by tile, and two
// warpgroups of 64 rows multiply them.
//
// The products for the scores of one tile and for the weighted values of the tile before run together. The scores
// become weights while the values are still being accumulated. The warpgroups issue their products in turn (ping-pong),
// so that the softmax of one overlaps with the products of the other. Blocks are persistent: keys of the next tile of
// queries are copied while the results of this one are stored.
//
// Operands that need computation (rope, dequantization) are computed by all four warps of the copying warpgroup, and
// stored in the swizzled layout that TMA would use.
#include <fmt/format.h>

#include <algorithm>

#include "codegen/access/direct.h"
#include "codegen/attention/attention_emitter.h"
#include "codegen/wgmma/wgmma_chain.h"
#include "ir/type.h"

namespace fusec {
namespace {

constexpr int kCopierRegisters = 24, kConsumerRegisters = 240;  // each thread starts with 168
// If the copying warps compute tiles; the total is the same.
constexpr int kComputingRegisters = 72, kRegistersBeside = 216;
constexpr int kCopierThreads = 128;
constexpr int kSwizzleTileBytes = 8192;  // 64 lines of 128 bytes
constexpr int kConsumerWarps = 8;

std::string plus(const std::string& at, int more) {
  return more ? fmt::format("{} + {}", at, more) : at;
}

// `at`, and `count` times what a constant of the kernel counts.
std::string plus(const std::string& at, int count, const char* constant) {
  return count == 0   ? at
         : count == 1 ? fmt::format("{} + {}", at, constant)
                      : fmt::format("{} + {} * {}", at, count, constant);
}

// Names of constants in the kernel: bytes of tiles, and where keys and values begin in shared memory.
constexpr const char *kPieceBytes = "kPieceBytes", *kQueryBytes = "kQueryBytes", *kKeyBytes = "kKeyBytes";
constexpr const char *kValueBytes = "kValueBytes", *kKeysAt = "kKeysAt", *kValuesAt = "kValuesAt";
constexpr const char* kBarriersAt = "kBarriersAt";

}  // namespace

KernelSource AttentionEmitter::emit_warpgroups(std::vector<AttentionOperand> operands) {
  for (const char* part : {"dynamic_tiles", "mbarrier", "warpgroup", "warpgroup_barrier", "load_box", "load_matrices"})
    writer_.use(part);
  operands_ = std::move(operands);
  writer_.line("#ifdef __CUDA_ARCH_FEAT_SM90_ALL  // compute_90, for which nvcc -arch=sm_90a compiles too, lacks this");
  declare_offsets();
  declare_boxes();
  declare_warp();
  declare_barriers();
  writer_.open("if (warp < 4)");
  writer_.line(fmt::format("warpgroup_reg_dealloc<{}>();", computes() ? kComputingRegisters : kCopierRegisters));
  if (!computes()) writer_.open("if (warp == 0)");
  const ExprEmitter::Mark outside = emitter_.mark();
  open_tiles();
  copy_tiles();
  close_tiles();
  emitter_.rewind(outside);
  if (!computes()) writer_.close();
  writer_.close("} else {");
  writer_.reopen();
  writer_.line(fmt::format("warpgroup_reg_alloc<{}>();", computes() ? kRegistersBeside : kConsumerRegisters));
  declare_accumulators();
  if (tiles_.in_turns) {
    writer_.use("warpgroup_turns");
    writer_.line("if (warp / 4 == 2) give_turn(2);  // the first warpgroup begins");
  }
  open_tiles();
  attend_tiles();
  finish_rows();
  store_rows();
  release_queries();
  close_tiles();
  writer_.close();
  writer_.line("#else");
  writer_.line("__trap();");
  writer_.line("#endif");
  KernelSource source = writer_.finish(comment(), tiles_.threads, 1);
  source.name = kernel_name(graph_, form_.kernel.nodes);
  source.grid[0] = simplify(min(row_tiles() * count(form_.batch), tiles_.most_blocks), pool_.bounds());
  source.dynamic_shared = tiles_.warpgroup_bytes();
  source.schedule = {KernelKind::kAttention, MatrixUnit::kWarpgroup};
  return source;
}

// Names the parts of shared memory: the queries of both warpgroups, stages of keys, stages of values, barriers.
void AttentionEmitter::declare_offsets() {
  writer_.line(
      fmt::format("constexpr int {} = 64 * {};  // 64 lines of a tile, 64 elements each", kPieceBytes, kBoxLineBytes));
  writer_.line(fmt::format("constexpr int {} = {};  // the queries of a warpgroup, later its results", kQueryBytes,
                           tiles_.query_bytes()));
  writer_.line(
      fmt::format("constexpr int {} = {}, {} = {};", kKeyBytes, tiles_.key_bytes(), kValueBytes, tiles_.value_bytes()));
  writer_.line(fmt::format("constexpr int {0} = 2 * {1}, {2} = {0} + {3} * {4}, {5} = {2} + {3} * {6};", kKeysAt,
                           kQueryBytes, kValuesAt, tiles_.stages, kKeyBytes, kBarriersAt, kValueBytes));
}

void AttentionEmitter::declare_boxes() {
  const int lines[] = {64, tiles_.keys, tiles_.keys};
  for (std::size_t i = 0; i < operands_.size(); ++i) {
    maps_.emplace_back();
    if (!operands_[i].boxes) continue;
    AttentionTensorMap& made = *operands_[i].boxes;
    made.boxes.box.assign(made.boxes.rank(), 1);
    made.boxes.box[0] = kBoxColumns;
    made.boxes.box[1] = static_cast<std::uint32_t>(lines[i]);
    maps_.back() = writer_.tensor_map(made.source, made.boxes);
  }
}

// Barriers: for each warpgroup, queries ready, and queries consumed; then per stage: keys ready, keys consumed, values
// ready, values consumed.
void AttentionEmitter::declare_barriers() {
  constexpr int kOfQueries = 4;
  tiles_at_ = writer_.unique("tiles");
  const std::string barriers = writer_.unique("barriers");
  const int stages = tiles_.stages;
  writer_.line(fmt::format("const unsigned {0} = shared_address(dynamic_tiles), {1} = {0} + {2};", tiles_at_, barriers,
                           kBarriersAt));
  const auto place = [&](std::string& name, const char* preferred_name, int first) {
    name = writer_.unique(preferred_name);
    writer_.line(fmt::format("const unsigned {} = {};", name, plus(barriers, 8 * first)));
  };
  place(queries_full_, "queries_there", 0);
  place(queries_empty_, "queries_used", 2);
  place(keys_full_, "keys_there", kOfQueries);
  place(keys_empty_, "keys_used", kOfQueries + stages);
  place(values_full_, "values_there", kOfQueries + 2 * stages);
  place(values_empty_, "values_used", kOfQueries + 3 * stages);
  writer_.open("if (threadIdx.x == 0)");
  const auto init = [&](const std::string& full, const std::string& empty, int count, int warps) {
    writer_.open(fmt::format("for (int s = 0; s < {}; s += 8)", 8 * count));
    writer_.line(fmt::format("init_mbarrier({} + s, 1);", full));
    writer_.line(fmt::format("init_mbarrier({} + s, {});", empty, warps));
    writer_.close();
  };
  init(queries_full_, queries_empty_, 2, kConsumerWarps / 2);
  init(keys_full_, keys_empty_, stages, kConsumerWarps);
  init(values_full_, values_empty_, stages, kConsumerWarps);
  writer_.line("fence_mbarriers();");
  writer_.close();
  writer_.line("__syncthreads();");
}

// The loop over the block's tiles of queries. The stages go on from tile to tile: tiles of keys are numbered through.
void AttentionEmitter::open_tiles() {
  writer_.use("tile_of_turn");
  turn_ = writer_.unique("turn");
  tiles_before_ = writer_.unique("tiles_before");
  tiles_end_ = writer_.unique("tiles_end");
  tile_ = writer_.unique("t");
  const std::string tile = writer_.unique("tile");
  writer_.line(fmt::format("int {} = 0;  // tiles of keys", tiles_before_));
  writer_.line("#pragma unroll 1");
  writer_.open(fmt::format("for (int {0} = 0, {1}; ({1} = tile_of_turn({0})) < {2}; ++{0})", turn_, tile,
                           text(row_tiles() * count(form_.batch))));
  place_tile(tile);
  declare_limits();
  writer_.line(fmt::format("const int {} = {} + max(({} - {} + {}) / {}, 0);", tiles_end_, tiles_before_, keys_to_,
                           keys_from_, tiles_.keys - 1, tiles_.keys));
}

void AttentionEmitter::close_tiles() {
  writer_.line(fmt::format("{} = {};", tiles_before_, tiles_end_));
  writer_.close();
}

std::string AttentionEmitter::of_stage(const std::string& barriers, const std::string& tile) const {
  return fmt::format("{} + {} % {} * 8", barriers, tile, tiles_.stages);
}

std::string AttentionEmitter::wait_for(const std::string& barriers, const std::string& tile, int parity) const {
  return fmt::format("wait_for_phase({}, {} / {} % 2{});", of_stage(barriers, tile), tile, tiles_.stages,
                     parity ? " ^ 1" : "");
}

std::string AttentionEmitter::keys_at(const std::string& tile) const {
  return fmt::format("{} + {} + {} % {} * {}", tiles_at_, kKeysAt, tile, tiles_.stages, kKeyBytes);
}

std::string AttentionEmitter::values_at(const std::string& tile) const {
  return fmt::format("{} + {} + {} % {} * {}", tiles_at_, kValuesAt, tile, tiles_.stages, kValueBytes);
}

// Copies one box: 64 elements from `place` on, lines from `line` on.
void AttentionEmitter::copy_box(std::size_t operand, const std::string& to, const std::string& there, int place,
                                const std::string& line) {
  std::string coordinates = fmt::format("{}, {}", place, line);
  for (const IndexExpr& position : operands_[operand].boxes->batch) coordinates += ", " + emitter_.index(position);
  writer_.line(fmt::format("load_box({}, {}, {}, {});", to, maps_[operand], there, coordinates));
}

// The copying warps compute a tile and store it where TMA would swizzle it to. The tile has pieces of 64 elements. If
// `group_bytes` is not "", each 64 lines are a group, and groups are `group_bytes` apart.
void AttentionEmitter::compute_tile(std::size_t operand, const TileLoad& load, const std::string& at,
                                    const std::string& group_bytes, const std::vector<std::string>& there) {
  writer_.use("fence_tiles");
  const std::string piece =
      !group_bytes.empty() || load.lines == 64 ? kPieceBytes : fmt::format("({} * {})", load.lines, kBoxLineBytes);
  operands_[operand].pieces->load(
      emitter_, graph_, load, kCopierThreads,
      [&](const std::string& line, const std::string& eight) {
        const std::string of_group =
            group_bytes.empty() ? fmt::format("{} * {}", line, kBoxLineBytes)
                                : fmt::format("{0} / 64 * {1} + {0} % 64 * {2}", line, group_bytes, kBoxLineBytes);
        return fmt::format("dynamic_tiles + {}{} + {} / 8 * {} + ({} ^ {}) % 8 * 16", at, of_group, eight, piece, eight,
                           line);
      },
      operand > 0, code_.vectors_at_once);
  writer_.line("fence_tiles();");
  writer_.line("sync_warpgroup(3);");
  for (const std::string& barrier : there) writer_.line(fmt::format("if (threadIdx.x == 0) arrive({});", barrier));
}

// The keys of a tile come before the values of the tile before, as they are used. So do the first keys before the
// queries, which wait until the warpgroups have stored their last results.
void AttentionEmitter::copy_tiles() {
  const std::string first = writer_.unique("first");
  writer_.open(fmt::format("for (int {0} = {1}; {0} <= {2}; ++{0})", tile_, tiles_before_, tiles_end_));
  writer_.line(
      fmt::format("const int {} = {} + ({} - {}) * {};", first, keys_from_, tile_, tiles_before_, tiles_.keys));
  writer_.open(fmt::format("if ({} < {})", tile_, tiles_end_));
  copy_keys(tile_, first);
  writer_.close();
  writer_.open(fmt::format("if ({} == {})", tile_, tiles_before_));
  copy_queries();
  writer_.close("} else {");
  writer_.reopen();
  copy_values(fmt::format("({} - 1)", tile_), fmt::format("{} - {}", first, tiles_.keys));
  writer_.close();
  writer_.close();
  writer_.line("__syncwarp();");
}

// All lanes of the warp wait for room; one lane issues the copies.
void AttentionEmitter::copy_boxes(const std::string& wait, const std::string& there, const std::string& bytes,
                                  const std::function<void()>& boxes) {
  if (computes()) writer_.open("if (warp == 0)");
  writer_.line(wait);
  writer_.open(computes() ? "if (threadIdx.x == 0)" : "if (warp_lane == 0)");
  writer_.line(fmt::format("arrive_expecting({}, {});", there, bytes));
  boxes();
  writer_.close();
  if (computes()) writer_.close();
}

void AttentionEmitter::copy_queries() {
  const auto wait = [&](int group) {
    return fmt::format("wait_for_phase({}, {} % 2 ^ 1);", plus(queries_empty_, 8 * group), turn_);
  };
  if (operands_[0].pieces) {
    for (int group = 0; group < 2; ++group) writer_.line(wait(group));
    compute_tile(0, query_load(), "", kQueryBytes, {queries_full_, plus(queries_full_, 8)});
    return;
  }
  for (int group = 0; group < 2; ++group) {
    const std::string there = plus(queries_full_, 8 * group);
    copy_boxes(wait(group), there, fmt::format("{} * {}", tiles_.head_segments(), kPieceBytes), [&] {
      for (int p = 0; p < tiles_.head_segments(); ++p)
        copy_box(0, plus(plus(tiles_at_, group, kQueryBytes), p, kPieceBytes), there, p * kBoxColumns,
                 plus(row0_, 64 * group));
    });
  }
}

void AttentionEmitter::copy_keys(const std::string& tile, const std::string& first) {
  const std::string wait = wait_for(keys_empty_, tile, 1), there = of_stage(keys_full_, tile);
  if (operands_[1].pieces) {
    writer_.line(wait);
    return compute_tile(1, key_load(first),
                        fmt::format("{} + {} % {} * {} + ", kKeysAt, tile, tiles_.stages, kKeyBytes), "", {there});
  }
  copy_boxes(wait, there, kKeyBytes, [&] {
    for (int p = 0; p < tiles_.head_segments(); ++p)
      copy_box(1, plus(keys_at(tile), p * (tiles_.keys / 64), kPieceBytes), there, p * kBoxColumns, first);
  });
}

void AttentionEmitter::copy_values(const std::string& tile, const std::string& first) {
  const std::string wait = wait_for(values_empty_, tile, 1), there = of_stage(values_full_, tile);
  if (operands_[2].pieces) {
    writer_.line(wait);
    return compute_tile(2, value_load(first),
                        fmt::format("{} + {} % {} * {} + ", kValuesAt, tile, tiles_.stages, kValueBytes), "", {there});
  }
  copy_boxes(wait, there, kValueBytes, [&] {
    for (int p = 0; p < tiles_.value_segments(); ++p)
      copy_box(2, plus(values_at(tile), p * (tiles_.keys / 64), kPieceBytes), there, p * kBoxColumns, first);
  });
}

void AttentionEmitter::attend_tiles() {
  declare_state();
  weight_ = writer_.unique("weight");
  key0_ = writer_.unique("key0");
  query_ = writer_.unique("query");
  writer_.line(fmt::format("unsigned {}[{}][4];", weight_, tiles_.keys / 16));
  writer_.line(fmt::format("const unsigned long long {} = wgmma_descriptor({} + (warp / 4 - 1) * {});", query_,
                           tiles_at_, kQueryBytes));
  writer_.line(fmt::format("wait_for_phase({} + (warp / 4 - 1) * 8, {} % 2);", queries_full_, turn_));
  writer_.open(fmt::format("for (int {0} = {1}; {0} < {2}; ++{0})", tile_, tiles_before_, tiles_end_));
  writer_.line(fmt::format("const {} {} = {} + ({} - {}) * {};", integer(), key0_, keys_from_, tile_, tiles_before_,
                           tiles_.keys));
  writer_.line(fmt::format("float {}[1][{}][4];", score_, tiles_.keys / 8));
  writer_.line(wait_for(keys_full_, tile_, 0));
  if (tiles_.in_turns) writer_.line("take_turn(warp / 4);");
  writer_.line("fence_products();");
  multiply_keys_by_warpgroup();
  add_values_before();
  weigh_scores();
  take_values();
  writer_.close();
  const std::string last = fmt::format("({} - 1)", tiles_end_);
  writer_.open(fmt::format("if ({} > {})", tiles_end_, tiles_before_));
  writer_.line("fence_products();");
  add_values_by_warpgroup(last);
  writer_.line("commit_products();");
  writer_.line("wait_for_products<0>();");
  writer_.line(fmt::format("if (warp_lane == 0) arrive({});", of_stage(values_empty_, last)));
  writer_.close();
  fetch_accumulators();
}

// The results of the warp, which lay where its queries were, are stored: the next queries may come.
void AttentionEmitter::release_queries() {
  writer_.use("fence_tiles");
  writer_.line("fence_tiles();");
  writer_.line("__syncwarp();");
  writer_.line(fmt::format("if (warp_lane == 0) arrive({} + (warp / 4 - 1) * 8);", queries_empty_));
}

// Starts to multiply the previous tile's weights by its values, and waits until this tile's scores are there. Each
// branch commits and waits for its own products: ptxas serializes products whose groups differ by the path taken.
void AttentionEmitter::add_values_before() {
  writer_.open(fmt::format("if ({} > {})", tile_, tiles_before_));
  writer_.line("fence_products();");
  add_values_by_warpgroup(fmt::format("({} - 1)", tile_));
  writer_.line("commit_products();");
  if (tiles_.in_turns) writer_.line("give_turn(warp / 4);");
  writer_.line("wait_for_products<1>();  // scores are there");
  writer_.close("} else {");
  writer_.reopen();
  if (tiles_.in_turns) writer_.line("give_turn(warp / 4);");
  writer_.line("wait_for_products<0>();");
  writer_.close();
  writer_.line(fmt::format("hold({}[0]);", score_));
  writer_.line(fmt::format("if (warp_lane == 0) arrive({});", of_stage(keys_empty_, tile_)));
}

// Turns the scores into weights while the products with the values of the previous tile run.
void AttentionEmitter::weigh_scores() {
  shrink_ = writer_.unique("shrink");
  grew_ = writer_.unique("grew");
  mask_scores();
  writer_.line(fmt::format("float {}[2];", shrink_));
  writer_.line(fmt::format("bool {} = false;", grew_));
  weigh_tile("by", [&] {
    for (int r = 0; r < tiles_.thread_rows; ++r) writer_.line(fmt::format("{0}[{1}] = by[{1}];", shrink_, r));
    writer_.line(fmt::format("{} = true;", grew_));
  });
  step_weights();
}

// Waits for this tile's values and for the products with those of the previous one. ptxas moves the wait for products
// up to the last branch, which is the wait for the values; that one depends on the sums of all exponentials.
void AttentionEmitter::take_values() {
  writer_.use("parity_after");
  writer_.line(fmt::format("wait_for_phase({}, parity_after({}, {} / {} % 2));", of_stage(values_full_, tile_), total_,
                           tile_, tiles_.stages));
  writer_.line("wait_for_products<0>();  // what was weighted before is summed up");
  writer_.line(fmt::format("if ({} > {} && warp_lane == 0) arrive({});", tile_, tiles_before_,
                           of_stage(values_empty_, fmt::format("({} - 1)", tile_))));
  writer_.open(fmt::format("if ({})", grew_));
  rescale_accumulators(shrink_);
  writer_.close();
  pack_weights();
}

// Descriptors count units of 16 bytes: 16 elements of the head are two units, and 64 elements are a piece.
void AttentionEmitter::multiply_keys_by_warpgroup() {
  const std::string keys = writer_.unique("key_tile");
  writer_.line(fmt::format("const unsigned long long {} = wgmma_descriptor({});", keys, keys_at(tile_)));
  WgmmaChain chain{
      .dtype = *form_.tensor_dtype, .accumulators = score_ + "[0]", .n8_tiles = tiles_.keys / 8, .overwrites = true};
  for (int e = 0; e < tiles_.head_dim / 16; ++e)
    chain.steps.push_back({plus(query_, e / 4 * (kSwizzleTileBytes / 16) + e % 4 * 2),
                           plus(keys, e / 4 * (tiles_.keys * kBoxLineBytes / 16) + e % 4 * 2)});
  write_chain(chain, writer_);
  writer_.line("commit_products();");
}

void AttentionEmitter::add_values_by_warpgroup(const std::string& tile) {
  constexpr int kMostN8Tiles = 16;  // per instruction: ptxas takes longer for wider ones
  const std::string values = writer_.unique("value_tile");
  const int segment = tiles_.keys * kBoxLineBytes;
  writer_.line(
      fmt::format("const unsigned long long {} = wgmma_descriptor({}, {});", values, values_at(tile), segment));
  for (int first = 0; first < tiles_.columns / 8; first += kMostN8Tiles) {
    WgmmaChain chain{.dtype = *form_.tensor_dtype,
                     .accumulators = kAccumulators,
                     .named = true,
                     .first_n8_tile = first,
                     .n8_tiles = std::min(kMostN8Tiles, tiles_.columns / 8 - first),
                     .right_across = true,
                     .left_in_registers = true};
    for (int k = 0; k < tiles_.keys / 16; ++k)
      chain.steps.push_back({fmt::format("{}[{}]", weight_, k),
                             plus(values, first / 8 * (segment / 16) + k * (16 * kBoxLineBytes / 16))});
    write_chain(chain, writer_);
  }
}

void AttentionEmitter::pack_weights() {
  writer_.use("pack_pair");
  writer_.line("#pragma unroll");
  writer_.line(fmt::format("for (int w = 0; w < {}; ++w)", tiles_.keys / 4));
  writer_.line(fmt::format("  {0}[w / 4][w % 4] = {1}({2}[0][w / 2][w % 2 * 2], {2}[0][w / 2][w % 2 * 2 + 1]);",
                           weight_, *form_.tensor_dtype == DType::kBFloat16 ? "pack_bf16" : "pack_fp16", score_));
}

}  // namespace fusec
