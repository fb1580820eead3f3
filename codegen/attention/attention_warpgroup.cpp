// Attention by warpgroups (sm_90a). One warp has TMA copy the queries, then keys and values tile by tile, and two
// warpgroups of 64 rows multiply them.
//
// The products for the scores of one tile and for the weighted values of the tile before run together. The scores
// become weights while the values are still being accumulated. The exponentials of one warpgroup overlap with the
// products of the other. With large heads the products take much longer than the exponentials, so only that second
// overlap is used: this saves the last product after the loop, a third of the kernel's code.
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
constexpr int kMostOverlapped = 128;  // the most columns for which scores and accumulators are live together

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
  place_block();
  declare_limits();
  declare_barriers();
  writer_.open("if (warp < 4)");
  writer_.line(fmt::format("warpgroup_reg_dealloc<{}>();", computes() ? kComputingRegisters : kCopierRegisters));
  if (!computes()) writer_.open("if (warp == 0)");
  copy_tiles();
  if (!computes()) writer_.close();
  writer_.close("} else {");
  writer_.reopen();
  writer_.line(fmt::format("warpgroup_reg_alloc<{}>();", computes() ? kRegistersBeside : kConsumerRegisters));
  attend_tiles();
  finish_rows();
  store_rows();
  writer_.close();
  writer_.line("#else");
  writer_.line("__trap();");
  writer_.line("#endif");
  KernelSource source = writer_.finish(comment(), tiles_.threads, 1);
  source.name = kernel_name(graph_, form_.kernel.nodes);
  source.grid[0] = simplify(row_tiles() * count(form_.batch), pool_.bounds());
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
  const int lines[] = {64, tiles_.keys, 64};
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

// Barriers: queries ready; then per stage: keys ready, keys consumed, values ready, values consumed.
void AttentionEmitter::declare_barriers() {
  tiles_at_ = writer_.unique("tiles");
  barriers_ = writer_.unique("barriers");
  tile_count_ = writer_.unique("tile_count");
  tile_ = writer_.unique("t");
  const int stages = tiles_.stages;
  writer_.line(fmt::format("const int {} = ({} - {} + {}) / {};", tile_count_, keys_to_, keys_from_, tiles_.keys - 1,
                           tiles_.keys));
  writer_.line(fmt::format("const unsigned {0} = shared_address(dynamic_tiles), {1} = {0} + {2};", tiles_at_, barriers_,
                           kBarriersAt));
  for (std::string* name : {&keys_full_, &keys_empty_, &values_full_, &values_empty_}) {
    const bool values = name == &values_full_ || name == &values_empty_;
    const bool used = name == &keys_empty_ || name == &values_empty_;
    *name = writer_.unique(fmt::format("{}_{}", values ? "values" : "keys", used ? "used" : "there"));
    writer_.line(fmt::format("const unsigned {} = {} + {};", *name, barriers_,
                             8 * (1 + (values ? 2 * stages : 0) + (used ? stages : 0))));
  }
  writer_.open("if (threadIdx.x == 0)");
  writer_.line(fmt::format("init_mbarrier({}, 1);", barriers_));
  writer_.open(fmt::format("for (int s = 0; s < {}; s += 8)", 8 * stages));
  for (const std::string& there : {keys_full_, values_full_})
    writer_.line(fmt::format("init_mbarrier({} + s, 1);", there));
  for (const std::string& used : {keys_empty_, values_empty_})
    writer_.line(fmt::format("init_mbarrier({} + s, {});", used, kConsumerWarps));
  writer_.close();
  writer_.line("fence_mbarriers();");
  writer_.close();
  writer_.line("__syncthreads();");
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
                                    const std::string& group_bytes, const std::string& there) {
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
  writer_.line(fmt::format("if (threadIdx.x == 0) arrive({});", there));
}

// All lanes of the warp wait for a stage; one lane issues the copies.
void AttentionEmitter::copy_tiles() {
  const std::string first = writer_.unique("first"), to = writer_.unique("to"), there = writer_.unique("there");
  const char* one = computes() ? "if (threadIdx.x == 0)" : "if (warp_lane == 0)";
  if (operands_[0].pieces) {
    compute_tile(0, query_load(), "", kQueryBytes, barriers_);
  } else {
    writer_.open(one);
    writer_.line(fmt::format("arrive_expecting({}, {} * {});", barriers_, 2 * tiles_.head_segments(), kPieceBytes));
    for (int group = 0; group < 2; ++group)
      for (int p = 0; p < tiles_.head_segments(); ++p)
        copy_box(0, plus(plus(tiles_at_, group, kQueryBytes), p, kPieceBytes), barriers_, p * kBoxColumns,
                 plus(row0_, 64 * group));
    writer_.close();
  }
  writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", tile_, tile_count_));
  writer_.line(fmt::format("const int {} = {} + {} * {};", first, keys_from_, tile_, tiles_.keys));
  const auto copy = [&](const std::string& used, const std::string& ready, const char* bytes, const std::string& at,
                        const auto& boxes) {
    if (computes()) writer_.open("if (warp == 0)");
    writer_.line(wait_for(used, tile_, 1));
    writer_.open(one);
    writer_.line(fmt::format("const unsigned {} = {}, {} = {};", to, at, there, of_stage(ready, tile_)));
    writer_.line(fmt::format("arrive_expecting({}, {});", there, bytes));
    boxes();
    writer_.close();
    if (computes()) writer_.close();
  };
  if (operands_[1].pieces) {
    writer_.line(wait_for(keys_empty_, tile_, 1));
    compute_tile(1, key_load(first), fmt::format("{} + {} % {} * {} + ", kKeysAt, tile_, tiles_.stages, kKeyBytes), "",
                 of_stage(keys_full_, tile_));
  } else {
    copy(keys_empty_, keys_full_, kKeyBytes, keys_at(tile_), [&] {
      for (int p = 0; p < tiles_.head_segments(); ++p)
        copy_box(1, plus(to, p * (tiles_.keys / 64), kPieceBytes), there, p * kBoxColumns, first);
    });
  }
  if (operands_[2].pieces) {
    writer_.line(wait_for(values_empty_, tile_, 1));
    compute_tile(2, value_load(first),
                 fmt::format("{} + {} % {} * {} + ", kValuesAt, tile_, tiles_.stages, kValueBytes),
                 fmt::format("({} * {})", tiles_.value_segments(), kPieceBytes), of_stage(values_full_, tile_));
  } else {
    copy(values_empty_, values_full_, kValueBytes, values_at(tile_), [&] {
      for (int half = 0; half < tiles_.keys / 64; ++half)
        for (int p = 0; p < tiles_.value_segments(); ++p)
          copy_box(2, plus(to, half * tiles_.value_segments() + p, kPieceBytes), there, p * kBoxColumns,
                   plus(first, 64 * half));
    });
  }
  writer_.close();
  writer_.line("__syncwarp();");
}

void AttentionEmitter::attend_tiles() {
  declare_state();
  weight_ = writer_.unique("weight");
  key0_ = writer_.unique("key0");
  query_ = writer_.unique("query");
  writer_.line(fmt::format("unsigned {}[{}][4];", weight_, tiles_.keys / 16));
  writer_.line(fmt::format("const unsigned long long {} = wgmma_descriptor({} + (warp / 4 - 1) * {});", query_,
                           tiles_at_, kQueryBytes));
  writer_.line(fmt::format("wait_for_phase({}, 0);", barriers_));
  writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", tile_, tile_count_));
  writer_.line(fmt::format("const {} {} = {} + {} * {};", integer(), key0_, keys_from_, tile_, tiles_.keys));
  writer_.line(fmt::format("float {}[1][{}][4];", score_, tiles_.keys / 8));
  writer_.line(wait_for(keys_full_, tile_, 0));
  writer_.line("fence_products();");
  multiply_keys_by_warpgroup();
  if (tiles_.columns > kMostOverlapped)
    finish_tile();
  else
    overlap_tile();
  writer_.close();
  if (tiles_.columns <= kMostOverlapped) {
    writer_.open(fmt::format("if ({} > 0)", tile_count_));
    add_values_by_warpgroup(fmt::format("({} - 1)", tile_count_));
    writer_.line("commit_products();");
    writer_.close();
  }
  writer_.line("wait_for_products<0>();");
  fetch_accumulators();
}

// Multiplies the previous tile's weights by its values while this tile's scores become weights.
void AttentionEmitter::overlap_tile() {
  const std::string shrink = writer_.unique("shrink"), grew = writer_.unique("grew");
  const std::string before = fmt::format("({} - 1)", tile_);
  writer_.open(fmt::format("if ({} > 0)", tile_));
  add_values_by_warpgroup(before);
  writer_.close();
  writer_.line("commit_products();");
  writer_.line("wait_for_products<1>();  // scores are there");
  writer_.line(fmt::format("hold({}[0]);", score_));
  writer_.line(fmt::format("if (warp_lane == 0) arrive({});", of_stage(keys_empty_, tile_)));
  mask_scores();
  writer_.line(fmt::format("float {}[2];", shrink));
  writer_.line(fmt::format("bool {} = false;", grew));
  weigh_tile("by", [&] {
    for (int r = 0; r < tiles_.thread_rows; ++r) writer_.line(fmt::format("{0}[{1}] = by[{1}];", shrink, r));
    writer_.line(fmt::format("{} = true;", grew));
  });
  step_weights();
  writer_.line("wait_for_products<0>();  // what was weighted before is summed up");
  writer_.line(fmt::format("if ({} > 0 && warp_lane == 0) arrive({});", tile_, of_stage(values_empty_, before)));
  writer_.open(fmt::format("if ({})", grew));
  rescale_accumulators(shrink);
  writer_.close();
  pack_weights();
}

// Accumulates the values of a tile without overlap: the products of the previous tile are complete when the scores of
// this one are.
void AttentionEmitter::finish_tile() {
  writer_.line("wait_for_products<0>();");
  writer_.line(fmt::format("hold({}[0]);", score_));
  writer_.open("if (warp_lane == 0)");
  writer_.line(fmt::format("arrive({});", of_stage(keys_empty_, tile_)));
  writer_.line(
      fmt::format("if ({0} > 0) arrive({1});", tile_, of_stage(values_empty_, fmt::format("({} - 1)", tile_))));
  writer_.close();
  mask_scores();
  online_softmax_step();
  pack_weights();
  add_values_by_warpgroup(tile_);
  writer_.line("commit_products();");
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
  writer_.line(wait_for(values_full_, tile, 0));
  writer_.line("fence_products();");
  writer_.line(fmt::format("const unsigned long long {} = wgmma_descriptor({});", values, values_at(tile)));
  for (int first = 0; first < tiles_.columns / 8; first += kMostN8Tiles) {
    WgmmaChain chain{.dtype = *form_.tensor_dtype,
                     .accumulators = kAccumulators,
                     .named = true,
                     .first_n8_tile = first,
                     .n8_tiles = std::min(kMostN8Tiles, tiles_.columns / 8 - first),
                     .right_across = true,
                     .left_in_registers = true};
    for (int k = 0; k < tiles_.keys / 16; ++k)
      chain.steps.push_back(
          {fmt::format("{}[{}]", weight_, k),
           plus(values, (k / 4 * tiles_.value_segments() + first / 8) * (kSwizzleTileBytes / 16) + k % 4 * 128)});
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
