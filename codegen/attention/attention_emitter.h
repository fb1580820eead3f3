// How attention's kernel is written, part by part (codegen/attention/attention.h says what it does): attention.cpp
// places blocks and walks over keys, attention_scores.cpp makes scores and weights, attention_accumulators.cpp adds up
// what they weigh, attention_result.cpp stores what comes out.
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

// Where blocks share the keys of their rows, they leave what they have in scratch memory, and another kernel combines
// it.
enum class AttentionPart : std::uint8_t { kWhole, kSplit, kCombine };

// How warpgroups get a tile of queries, keys or values: boxes that TMA copies, or elements that are computed.
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
  double expected_ms() const;  // of NVRTC (attention_unrolling.cpp)
  KernelSource emit();
  KernelSource emit_warpgroups(std::vector<AttentionOperand> operands);

 private:
  IndexExpr count(const std::vector<std::uint32_t>& axes) const { return point_count(pool_, axes); }
  IndexExpr row_tiles() const { return simplify(ceil_div(count(form_.rows), tiles_.rows), pool_.bounds()); }
  bool whole_rows() const { return proves_multiple_of(count(form_.rows), tiles_.rows, pool_.bounds()); }
  bool whole_keys() const { return proves_multiple_of(count(form_.keys), tiles_.keys, pool_.bounds()); }
  std::string integer() const { return writer_.index_type(); }
  std::string text(const IndexExpr& e) { return emitter_.index_text().tight(simplify(e, pool_.bounds())); }
  std::string type() const { return c_type(pool_[form_.product].type); }
  int blocks_at_once() const;
  std::string number(double v) const;
  std::string bottom() const { return number(-std::numeric_limits<double>::infinity()); }
  std::vector<std::string> comment() const;

  // --- how much code (attention_unrolling.cpp)
  bool recomputes_scores() const;
  double ms_of_scores() const;
  double ms_of_pieces() const;
  double ms_of_results() const;

  // --- tiles and places
  void declare_shared();
  void place_block();
  std::string row(const std::string& r) const { return fmt::format("{} + {} * {}", thread_row_, r, tiles_.row_step()); }
  std::string score(const std::string& r, const std::string& n) const;
  // A loop over a thread's rows. Where they take turns, the registers `turned` of each are at the first's place in its
  // turn, and where they were behind the loop.
  struct RowLoop {
    std::string name;  // the row's variable
    std::string at;    // its registers' index
    bool guarded = false, looped = false;
  };
  bool loop_over_rows() const { return code_.loop_over_rows && tiles_.thread_rows > 1; }
  // Sums on tensor cores are most of the registers that there are: none is moved.
  bool loop_over_result_rows() const { return loop_over_rows() && !tiles_.tensor_cores; }
  RowLoop open_rows(bool guarded, bool looped);
  void close_rows(const RowLoop& loop, const std::vector<std::string>& loop_registers);
  std::string key_offset(const std::string& n) const;  // of the thread's n-th key behind its first
  std::string sum(const std::string& r, const std::string& m) const;
  std::string column(const std::string& m) const;
  void load_queries();
  void plan_copies();
  // Computed elements eight at a time where that pays.
  void load_tile(const TileLoad& load);
  void load_keys(const std::string& first);
  void load_values();
  void declare_state();

  // --- keys that several blocks share
  // Has this kernel a block for each share? Of those that combine, where they store what is made of single keys.
  bool splits_keys() const {
    return part_ == AttentionPart::kSplit || (part_ == AttentionPart::kCombine && !form_.extra_outputs.empty());
  }
  IndexExpr tiles_of_split() const;
  // Of whole tiles: fewer than there may be where a launch has fewer tiles, so that each has keys.
  IndexExpr splits_in_use() const;
  // May a block have no key at all to look at?
  bool may_see_nothing() const;
  // The block's own keys, from `first` to `end`, of those of its rows.
  void restrict_keys_to_split(std::string& first, std::string& end);
  // A pointer to what share `share` has of the row `row`: its sums, its greatest score, its total.
  std::string partial_row(const std::string& split, const std::string& row);
  int partial_columns() const { return (tiles_.columns + 31) / 32 * 32; }
  void store_partial_state();
  void combine_splits();
  // By lanes that have nothing else to do than that.
  void combine_in_lanes();

  // --- the loop over keys
  // A limit on keys, at a row that is a C variable.
  std::string limit_at(const IndexExpr& limit, const std::string& row);
  void key_loop();
  // What keys rows of a block, or of a warp, see: from the first row's limits and the last one's.
  void declare_limits();
  std::string open_seen();
  void declare_scores();
  TileLoad query_load() const;
  TileLoad key_load(const std::string& first) const;
  TileLoad value_load() const;
  void wait_for_copies(const TileLoad& loaded);  // where it is copied while threads go on
  // What was loaded is there for all threads, and what all of them were done with may be overwritten.
  void synchronize(const TileLoad& loaded, const char* why);
  // A score's weight beside a greatest one, by the prelude's function of these tiles.
  std::string weight_of(const std::string& score, const std::string& row_maximum) const {
    return fmt::format("{}({}, {}, {})", tiles_.tensor_cores ? "weight_of" : "weight_in_lanes", score, row_maximum,
                       number(exponent_scale()));
  }
  // Must the greatest score be known exactly? What is divided by the weights' sum only needs one and the same near it.
  bool exact_maximum() const;
  // The scale of what is exponentiated, to base 2 on tensor cores.
  double exponent_scale() const { return form_.score_scale * (tiles_.tensor_cores ? 1.4426950408889634 : 1); }
  std::string mma();
  void multiply_keys();
  // Loops over a thread's rows and the keys of each, `together` at a time: row and key are variables, their axes bound.
  struct ScorePlace {
    std::string row, key;
    std::string at;     // the (first) score
    std::string r, n;   // which of the thread's rows and keys
    std::string there;  // a condition, where not all are: row and key exist
  };
  using ScoreBody = std::function<void(const ScorePlace& place)>;
  // `guarded`: what loads is made only for rows and keys that are there; rows that are not are left out here.
  // `turned`: what else the body needs of rows.
  void each_score(const ScoreBody& body, bool guarded, int together = 1, std::vector<std::string> loop_registers = {});
  int keys_at_once() const;
  // Of the keys behind the thread's first, how many are there in the last tile, too, so that none of them is asked for.
  int keys_always_there() const;
  bool holds_loads(const std::vector<ExprId>& roots) const;
  // True where the place has to be asked for; the keys' axes are bound in any case.
  bool open_guard(const ScorePlace& place);
  // Are scores of keys that do not exist -inf as soon as masks have been read?
  bool masks_end() const;
  void close_guard(const std::vector<std::string>& scores);
  // Leaves of the score that are made for every row and key; the product's own loads are none.
  std::vector<ExprId> score_loads() const;
  // Of these, such as have neighbouring keys side by side in memory.
  std::vector<ExprId> pair_loads() const;
  void transform_scores();
  void transform_score_pairs(const std::vector<ExprId>& pairs);
  void mask_scores();
  std::string last_limit(const std::string& row);  // behind the last key that a row sees
  void keep_keys_of_lanes();
  void keep_keys_of_fragments();
  // Scores go to the place of an output that is made of them, and come back when maximum and sum are known: each from
  // the thread that put it there.
  std::string score_buffer_element();
  void spill_scores();
  void reload_scores();
  void online_softmax_step();
  // Scores become weights; `shrink` writes what happens where they grow: sums of row r become `by`[r] times as much.
  void weigh_tile(const std::string& by, const std::function<void()>& shrink);
  // What stands between softmax and values.
  void step_weights();
  // The steps' linear function of `value`, the innermost first.
  std::string apply(const std::vector<WeightStep>& steps, std::string value);
  void add_values();

  // --- what is summed up on tensor cores, in registers by name (attention_accumulators.cpp)
  static constexpr const char* kAccumulators = "sum";
  bool has_named_accumulators() const { return tiles_.tensor_cores && part_ != AttentionPart::kCombine; }
  int accumulator_count() const;
  std::string accumulator_register(int m16_fragment, int eight, int i) const;
  void declare_accumulators();
  void rescale_accumulators(const std::string& by);
  void add_values_by_warp(const std::string& weight, const std::string& values);
  // Into variables, but where they go to shared memory as they are.
  void fetch_accumulators();
  // A thread's sums of columns first .. first + columns - 1, each multiplied by its row's factor, to shared memory:
  // pairs of neighbours, rows and eights so many bytes apart.
  void store_accumulators(const std::string& at, const std::string& by, int row_bytes, int eight_bytes, int first,
                          int columns);

  // --- by warpgroups (attention_warpgroup.cpp)
  void declare_boxes();
  bool computes() const {
    return std::ranges::any_of(operands_, [](const AttentionOperand& f) { return f.pieces.has_value(); });
  }
  void compute_tile(std::size_t operand, const TileLoad& load, const std::string& at, int group_bytes,
                    const std::string& there);
  void declare_barriers();
  // Barriers, tiles and waiting, of the stage that a tile has.
  std::string of_stage(const std::string& barriers, const std::string& tile) const;
  std::string wait_for(const std::string& barriers, const std::string& tile, int parity) const;
  std::string keys_at(const std::string& tile) const;
  std::string values_at(const std::string& tile) const;
  void copy_box(std::size_t operand, const std::string& to, const std::string& there, int place,
                const std::string& line);
  void copy_tiles();
  void attend_tiles();
  void overlap_tile();
  void finish_tile();
  void multiply_keys_by_warpgroup();
  void add_values_by_warpgroup(const std::string& tile);
  void pack_weights();

  // --- the result
  // What the formulas call the row's maximum and sum.
  void define_row(const std::string& r);
  void finish_rows();
  // Loads outside of the reductions that are there already.
  bool holds_loads_outside(const std::vector<ExprId>& roots) const;
  void store_rows();
  // Neighbouring columns of a thread that one access stores: all that it has side by side, or one.
  int store_width(const std::vector<std::size_t>& stored) const;
  bool stores_together(const std::vector<std::size_t>& stored, int width) const;
  std::vector<std::size_t> stored_rows() const;
  // One element a row: by the first of its lanes.
  void store_row_outputs();
  void store_neighbours(int width, const std::string& r, const std::string& m, const std::string& first);
  // The values of neighbouring columns; two of 16 bits as a word.
  std::vector<std::string> neighbours(int width, const std::string& r, const std::string& m, const std::string& first);
  std::string packed_pair(const std::string& r, const std::string& m, const std::string& first);
  // 16 bytes at a time, by way of the queries' place in shared memory: may the output be stored so?
  bool stores_staged(const std::vector<std::size_t>& stored) const;
  void store_staged();
  void stage_pairs(const std::string& mine);
  void stage_matrices(const std::string& mine);
  void store_16_bytes(const std::string& mine);
  // What is made of the result by way of shared memory, four columns at a time (attention_epilogue.cpp): may it be?
  bool has_epilogue(const std::vector<std::size_t>& stored) const;
  void store_computed(const std::vector<std::size_t>& stored);
  void stage_columns(const std::string& mine, int stride, const std::string& first, int columns);
  void stage_combined(const std::string& mine, int stride, const std::string& first, int columns);
  void store_epilogue_vectors(const std::vector<std::size_t>& stored, const std::string& four,
                              const std::string& column);
  int columns_at_once() const;
  void store(const std::vector<std::size_t>& which);
  // A second pass over the keys, now that their maximum and sum are known: weights (or scores) go to memory.
  void store_extra_outputs();
  void recompute_scores();

  const AttentionUnrolling code_;
  const AttentionPart part_;
  const KeySplits splits_;
  std::string split_, batch_ = "0", partial_;
  const Attention& form_;
  const ExprPool& pool_;
  const Graph& graph_;
  KernelWriter& writer_;
  ExprEmitter& emitter_;
  const AttentionTiles& tiles_;
  TileLoader loads_;
  std::optional<AsyncLineCopy> key_lines_, value_lines_;          // where they are copied as they lie in memory
  std::string query_tile_, key_tile_, value_tile_, weight_tile_;  // in shared memory
  std::string query_rows_, key_rows_, value_rows_;                // addresses of a lane's rows of matrices
  std::string keys_from_, keys_to_, warp_keys_to_;                // the keys that some of a tile's rows see
  std::string all_rows_from_, all_rows_to_;                       // the keys that all of a warp's rows see
  std::string row0_, key0_, thread_row_, thread_column_;          // places
  std::vector<AttentionOperand> operands_;                        // queries, keys, values
  std::vector<std::string> maps_;
  std::string tiles_at_, barriers_, keys_there_, keys_used_, values_there_, values_used_, tile_count_, tile_, weight_;
  std::string query_, score_, sum_, greatest_, total_, row_scale_;  // in registers
};

// With as much code unrolled as NVRTC is expected to compile in its time.
AttentionUnrolling attention_unrolling(const Attention& form, const Graph& graph, const AttentionTiles& tiles,
                                       const Target& target, AttentionPart part = AttentionPart::kWhole,
                                       KeySplits splits = {});

}  // namespace fusec
