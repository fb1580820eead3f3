// Emits the attention kernel described in codegen/attention/attention.h. attention.cpp maps blocks to tiles and loops
// over keys, attention_pipeline.cpp keeps several tiles of keys in flight, attention_scores.cpp makes scores and
// weights, attention_accumulators.cpp accumulates the weighted values, and attention_result.cpp stores the result.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "codegen/access/direct.h"
#include "codegen/attention/async_line_copy.h"
#include "codegen/attention/attention.h"
#include "codegen/attention/attention_tensor_maps.h"
#include "codegen/attention/attention_unrolling.h"
#include "codegen/expr/emit_expr.h"
#include "codegen/gemm/tile_load.h"
#include "codegen/gemm/transformed_tile.h"
#include "schedule/attention/attention_tiles.h"
#include "schedule/attention/split_kv.h"

namespace fusec {

// What to emit: all of attention; the kernel of a split that leaves partial results in scratch memory; or the code that
// combines them.
enum class AttentionPart : std::uint8_t { kWhole, kSplit, kCombine };

// How warpgroups fill a tile of queries, keys or values: TMA copies boxes, or threads compute the elements.
struct AttentionOperand {
  std::optional<AttentionTensorMap> boxes;
  std::optional<TransformedTile> pieces;
};

class AttentionEmitter {
 public:
  AttentionEmitter(const Attention& form, const Graph& graph, const AttentionTiles& tiles, KernelWriter& writer,
                   ExprEmitter& emitter, const AttentionUnrolling& code, AttentionPart part = AttentionPart::kWhole,
                   KeySplits splits = {})
      : code_(code),
        part_(part),
        splits_(splits),
        form_(form),
        pool_(form.kernel.pool),
        graph_(graph),
        writer_(writer),
        emitter_(emitter),
        tiles_(tiles),
        loads_(emitter, writer, tiles_.threads) {}
  double expected_ms() const;  // expected NVRTC compile time (attention_unrolling.cpp)
  KernelSource emit();
  KernelSource emit_warpgroups(std::vector<AttentionOperand> operands);

 private:
  IndexExpr count(const std::vector<std::uint32_t>& axes) const { return point_count(pool_, axes); }
  IndexExpr row_tiles() const { return simplify(ceil_div(count(form_.rows), tiles_.rows), pool_.bounds()); }
  bool whole_rows() const { return proves_multiple_of(count(form_.rows), tiles_.rows, pool_.bounds()); }
  bool whole_keys() const { return proves_multiple_of(count(form_.keys), tiles_.keys, pool_.bounds()); }
  std::string integer() const { return writer_.index_type(); }
  std::string text(const IndexExpr& e) { return emitter_.index_text().tight(simplify(e, pool_.bounds())); }
  std::string type() const { return c_type(pool_[form_.contraction].type); }
  int blocks_at_once() const;
  std::string number(double v) const;
  std::string bottom() const { return number(-std::numeric_limits<double>::infinity()); }
  std::vector<std::string> comment() const;

  // --- size of the code (attention_unrolling.cpp)
  bool recomputes_scores() const;
  double ms_of_scores() const;
  double ms_of_operands() const;
  double ms_of_results() const;

  // --- tiles and positions
  void declare_shared();
  void declare_warp();
  void place_block();
  void place_tile(const std::string& tile);
  void place_threads();
  std::string row(const std::string& r) const { return fmt::format("{} + {} * {}", thread_row_, r, tiles_.row_step()); }
  std::string score(const std::string& r, const std::string& n) const;
  // A loop over a thread's rows. A loop that is not unrolled always uses the registers of row 0: close_rows() rotates
  // the register arrays `loop_registers` by one row after each iteration, and after the loop each row is in its own
  // registers.
  struct RowLoop {
    std::string name;  // name of the variable of the row
    std::string at;    // index of its registers
    bool guarded = false, looped = false;
  };
  bool loop_over_rows() const { return code_.loop_over_rows && tiles_.thread_rows > 1; }
  // On tensor cores the accumulators are most of the registers. Rotating them would cost too much.
  bool loop_over_result_rows() const { return loop_over_rows() && !tiles_.tensor_cores; }
  RowLoop open_rows(bool guarded, bool looped);
  void close_rows(const RowLoop& loop, const std::vector<std::string>& loop_registers);
  std::string key_offset(const std::string& n) const;  // of the thread's n-th key from its first one
  std::string sum(const std::string& r, const std::string& m) const;
  std::string column(const std::string& m) const;
  void load_queries();
  void plan_pipeline();
  void plan_copies();
  // Computes eight elements at a time where that pays.
  void load_tile(const TileLoad& load);
  TileLoad in_stage(TileLoad load, const std::string& stage) const;  // `stage`: bytes from the first tile
  void load_keys(const std::string& first, const std::string& stage = "");
  void load_values(const std::string& first, const std::string& stage = "");
  void declare_state();

  // --- split-KV
  // True when the grid has a block per split. The kernel that combines stores outputs of single keys.
  bool splits_keys() const {
    return part_ == AttentionPart::kSplit || (part_ == AttentionPart::kCombine && !form_.extra_outputs.empty());
  }
  IndexExpr tiles_of_split() const;
  // The number of splits with at least one tile of keys. A launch with few tiles has fewer than the maximum.
  IndexExpr splits_in_use() const;
  // True when a block can have no keys.
  bool may_see_nothing() const;
  // Narrows the range [first, end) of keys to the block's split.
  void restrict_keys_to_split(std::string& first, std::string& end);
  // A pointer to the partial result of `row` in `split`: its accumulators, its maximum score, its total.
  std::string partial_row(const std::string& split, const std::string& row);
  int partial_columns() const { return (tiles_.columns + 31) / 32 * 32; }
  void store_partial_state();
  // Merges the results of warps with different keys into warp 0 and opens a block for it alone.
  void open_merged_warps();
  void combine_splits();
  // The last block of a tile of rows to finish combines the results of all, some rows at a time.
  void combine_in_last_block();
  void combine_rows(const std::string& first, int most);
  // Combines with a few lanes per row.
  void combine_in_lanes();

  // --- the loop over keys
  // The text of a limit on keys at a row that is a C variable.
  std::string limit_at(const IndexExpr& limit, const std::string& row);
  void key_loop();
  void pipelined_key_loop(const std::string& first, const std::string& end);
  void declare_warp_keys();
  // Declares the range of keys that the rows of a block, or of a warp, see. It follows from the limits of the first row
  // and of the last one.
  void declare_limits();
  std::string open_seen();
  void declare_scores();
  TileLoad query_load() const;
  TileLoad key_load(const std::string& first) const;
  TileLoad value_load(const std::string& first) const;
  // What a stage of the pipeline holds of them: the elements, or the quantized values that they are computed from.
  TileLoad copy_of(TileLoad load, const std::string& quantized) const;
  TileLoad key_copy(const std::string& first) const { return copy_of(key_load(first), quantized_keys_); }
  TileLoad value_copy(const std::string& first) const { return copy_of(value_load(first), quantized_values_); }
  void compute_tile_of_stage(const TileLoad& load, const TileLoad& copy, const std::string& stage);
  void wait_for_copies(const TileLoad& loaded);  // if it is copied asynchronously
  // A barrier: the data of `loaded` is in shared memory for all threads, and tiles that all threads have read may be
  // overwritten.
  void synchronize(const TileLoad& loaded, const char* why);
  // The weight of a score relative to a row maximum, by the function of the prelude for these tiles.
  std::string weight_of(const std::string& score, const std::string& row_maximum) const {
    return fmt::format("{}({}, {}, {})", tiles_.tensor_cores ? "weight_of" : "weight_in_lanes", score, row_maximum,
                       number(exponent_scale()));
  }
  // True when the kernel needs the exact row maximum. Results that are divided by the sum of the weights do not: any
  // shared reference value near the maximum gives the same quotient.
  bool exact_maximum() const;
  // The factor of the exponent. Tensor-core kernels use exp2, so theirs includes log2(e).
  double exponent_scale() const { return form_.score_scale * (tiles_.tensor_cores ? 1.4426950408889634 : 1); }
  std::string mma();
  void multiply_keys();
  // Loops over a thread's rows and the keys of each row, `keys_at_a_time` keys at a time. Row and key are variables,
  // and their axes are bound.
  struct ScorePosition {
    std::string row, key;
    std::string at;     // the (first) score
    std::string r, n;   // indices of the thread's row and key
    std::string there;  // condition that row and key exist; "" if they always do
  };
  using ScoreBody = std::function<void(const ScorePosition& place)>;
  // `guarded`: the body loads, so it runs only for rows and keys that exist. `loop_registers`: further per-row
  // registers that the body uses.
  void each_score(const ScoreBody& body, bool guarded, int keys_at_a_time = 1,
                  std::vector<std::string> loop_registers = {});
  int keys_at_once() const;
  // The first keys of a thread, counted from its first one, that exist even in the last tile. They need no bounds
  // check.
  int keys_always_there() const;
  bool holds_loads(const std::vector<ExprId>& roots) const;
  // Opens a guard and returns true if the place needs one. Binds the axes of the keys in both cases.
  bool open_guard(const ScorePosition& place);
  // True when applying the masks also sets the scores of keys that do not exist to -inf.
  bool masks_end() const;
  void close_guard(const std::vector<std::string>& scores);
  // Loads of the score that depend on row and key, other than those of the product.
  std::vector<ExprId> score_loads() const;
  // The loads among score_loads() that have neighbouring keys contiguous in memory.
  std::vector<ExprId> pair_loads() const;
  void transform_scores();
  void transform_score_pairs(const std::vector<ExprId>& pairs);
  void mask_scores();
  std::string last_limit(const std::string& row);  // one past the last key that a row sees
  void keep_keys_of_lanes();
  void keep_keys_of_fragments();
  // Scores are stored in the memory of an output that is computed from them, and read back when maximum and sum are
  // known. Each thread reads only what it wrote.
  std::string score_buffer_element();
  void spill_scores();
  void reload_scores();
  void online_softmax_step();
  // Turns scores into weights. `shrink` emits the rescaling: accumulators of row r are multiplied by `by`[r].
  void weigh_tile(const std::string& by, const std::function<void()>& shrink);
  // Applies the operations between softmax and the product with the values.
  void step_weights();
  // Applies the steps to `value`, the innermost step first.
  std::string apply(const std::vector<WeightStep>& steps, std::string value);
  void add_values();

  // --- tensor-core accumulators in named registers (attention_accumulators.cpp)
  static constexpr const char* kAccumulators = "sum";
  bool has_named_accumulators() const { return tiles_.tensor_cores && part_ != AttentionPart::kCombine; }
  int accumulator_count() const;
  std::string accumulator_register(int m16_fragment, int n8_tile, int i) const;
  void declare_accumulators();
  void clear_accumulators();
  void rescale_accumulators(const std::string& by);
  void add_values_by_warp(const std::string& weight, const std::string& values);
  // Copies the accumulators into variables, unless they go to shared memory directly.
  void fetch_accumulators();
  // Stores a thread's accumulators of the columns [first, first + columns), each multiplied by the factor of its row,
  // to shared memory. Pairs of neighbouring columns are stored together; rows are `row_bytes` apart, groups of eight
  // columns `n8_tile_bytes`.
  void store_accumulators(const std::string& at, const std::string& by, int row_bytes, int n8_tile_bytes, int first,
                          int columns);
  // Rounds them to 16 bits and stores them with stmatrix, four 8x8 matrices at a time. `at`: the lane's row.
  void store_accumulator_matrices(const std::string& at, const std::string& by);

  // --- warpgroups (attention_warpgroup.cpp)
  void declare_offsets();
  void declare_boxes();
  bool computes() const {
    return std::ranges::any_of(operands_, [](const AttentionOperand& f) { return f.pieces.has_value(); });
  }
  void compute_tile(std::size_t operand, const TileLoad& load, const std::string& at, const std::string& group_bytes,
                    const std::vector<std::string>& there);
  void declare_barriers();
  void open_tiles();
  void close_tiles();
  // Of a tile's pipeline stage: its barrier, the wait for a phase, its keys and its values in shared memory.
  std::string of_stage(const std::string& barriers, const std::string& tile) const;
  std::string wait_for(const std::string& barriers, const std::string& tile, int parity) const;
  std::string keys_at(const std::string& tile) const;
  std::string values_at(const std::string& tile) const;
  void copy_box(std::size_t operand, const std::string& to, const std::string& there, int place,
                const std::string& line);
  void copy_boxes(const std::string& wait, const std::string& there, const std::string& bytes,
                  const std::function<void()>& boxes);
  void copy_queries();
  void copy_tiles();
  void copy_keys(const std::string& tile, const std::string& first);
  void copy_values(const std::string& tile, const std::string& first);
  void attend_tiles();
  void add_values_before();
  void weigh_scores();
  void take_values();
  void multiply_keys_by_warpgroup();
  void add_values_by_warpgroup(const std::string& tile);
  void pack_weights();
  void release_queries();

  // --- the result
  // Defines the row's maximum and sum for the expressions.
  void define_row(const std::string& r);
  void finish_rows();
  // True when `roots` contain loads outside of reductions, which are already computed.
  bool holds_loads_outside(const std::vector<ExprId>& roots) const;
  void store_rows();
  // Columns per store: all that a thread has contiguously, or 1.
  int store_width(const std::vector<std::size_t>& stored) const;
  bool stores_together(const std::vector<std::size_t>& stored, int width) const;
  std::vector<std::size_t> stored_rows() const;
  // Outputs with one element per row. The first lane of the row stores them.
  void store_row_outputs();
  void store_neighbours(int width, const std::string& r, const std::string& m, const std::string& first);
  // The values of neighbouring columns; packed_pair() makes one word of two 16-bit values.
  std::vector<std::string> neighbours(int width, const std::string& r, const std::string& m, const std::string& first);
  std::string packed_pair(const std::string& r, const std::string& m, const std::string& first);
  // True when the output can be stored 16 bytes at a time through shared memory. The result then overwrites the
  // queries.
  bool stores_staged(const std::vector<std::size_t>& stored) const;
  void store_staged();
  // Before results overwrite keys and values in shared memory. Merged results belong to one warp.
  const char* result_barrier() const { return tiles_.key_warps > 1 ? "__syncwarp();" : "__syncthreads();"; }
  void stage_pairs(const std::string& mine);
  // True when warpgroups store the result as it is. Then stmatrix stages it.
  bool stores_matrices(const std::vector<std::size_t>& stored) const;
  void stage_matrices(const std::string& mine);
  void store_16_bytes(const std::string& mine);
  // True when the epilogue runs on results in shared memory, four columns at a time (attention_epilogue.cpp).
  bool has_epilogue(const std::vector<std::size_t>& stored) const;
  void store_computed(const std::vector<std::size_t>& stored);
  void stage_columns(const std::string& mine, int stride, const std::string& first, int columns);
  void stage_combined(const std::string& mine, int stride, const std::string& first, int columns);
  void store_epilogue_vectors(const std::vector<std::size_t>& stored, const std::string& four,
                              const std::string& column);
  int columns_at_once() const;
  void store(const std::vector<std::size_t>& which);
  // A second pass over the keys, when the row maximum and sum are known: it stores weights (or scores).
  void store_extra_outputs();
  void recompute_scores();

  const AttentionUnrolling code_;
  const AttentionPart part_;
  const KeySplits splits_;
  std::string split_, batch_ = "0", row_tile_, partial_;
  const Attention& form_;
  const ExprPool& pool_;
  const Graph& graph_;
  KernelWriter& writer_;
  ExprEmitter& emitter_;
  const AttentionTiles& tiles_;
  TileLoader loads_;
  bool pipelined_ = false;
  std::string quantized_keys_, quantized_values_;  // in shared memory
  // Set if the lines are copied unchanged.
  std::optional<AsyncLineCopy> key_lines_, value_lines_;
  std::string query_tile_, key_tile_, value_tile_, weight_tile_;      // in shared memory
  std::string query_rows_, key_rows_, value_rows_;                    // addresses of a lane's matrix rows for ldmatrix
  std::string keys_from_, keys_to_, warp_keys_to_;                    // keys that at least one row of the tile sees
  std::string all_rows_from_, all_rows_to_;                           // keys that all rows of the warp see
  std::string row0_, tile_key0_, key0_, thread_row_, thread_column_;  // row and key indices
  std::vector<AttentionOperand> operands_;                            // queries, keys, values
  std::vector<std::string> maps_;
  // With warpgroups: the number of the block's tile of queries; how many tiles of keys the block has had before it, and
  // at its end.
  std::string turn_, tiles_before_, tiles_end_;
  std::string queries_full_, queries_empty_, keys_full_, keys_empty_, values_full_, values_empty_;  // barriers
  std::string tiles_at_, tile_, weight_;
  std::string shrink_, grew_;  // how much a tile's new maximum shrinks the accumulators, and whether there is one
  std::string query_, score_, accumulator_, greatest_, total_, row_scale_;  // in registers
};

// The most unrolled variant that NVRTC is expected to compile within its time limit.
AttentionUnrolling attention_unrolling(const Attention& form, const Graph& graph, const AttentionTiles& tiles,
                                       const Target& target, AttentionPart part = AttentionPart::kWhole,
                                       KeySplits splits = {});

}  // namespace fusec
