// Tile sizes of an attention kernel: how much of queries, keys and values a block holds, and what each thread computes.
#pragma once

#include <optional>

#include "schedule/attention/attention_form.h"
#include "schedule/target/target.h"

namespace fusec {

struct AttentionTiles {
  bool tensor_cores = false;
  int threads = 128;
  int rows = 64, keys = 64;  // of a block's tile of scores
  int m16_fragments = 1;     // on tensor cores: groups of 16 rows per warp
  int key_warps = 1;         // warps that share all rows and take different keys of each tile (decoding)
  // On tensor cores: keep queries in shared memory, else load them through it into registers.
  bool queries_in_shared = false;
  bool warpgroups = false;        // two warpgroups multiply 64 rows each, a third one copies
  int stages = 1;                 // tiles of keys, and of values, in shared memory
  bool quantized_stages = false;  // of 8-bit values, from which one tile of keys and of values is computed
  // With warpgroups: these issue their products in turn. Products of larger heads take longer than the softmax, which
  // they hide in any order.
  bool in_turns = false;
  int most_blocks = 0;    // with warpgroups: of the grid, where each block makes tile after tile
  int heads_at_once = 1;  // if causal: tiles of so many heads are in the order of their lengths, the longest first
  int head_dim = 64, columns = 64;  // head sizes of queries and values, rounded up with zeros
  // Elements between lines in shared memory.
  int query_stride = 72, key_stride = 72, value_stride = 72, weight_stride = 0;
  int thread_rows = 2;          // per thread
  bool vector_columns = false;  // without tensor cores: a thread's columns are vectors of four
  int lanes_per_row = 8;        // without tensor cores: threads per row
  int element_bytes = 2;

  int lanes_of_row() const { return tensor_cores ? 4 : lanes_per_row; }
  int row_step() const { return tensor_cores ? 8 : threads / lanes_per_row; }  // between the rows of a thread
  int warp_keys() const { return keys / key_warps; }
  int thread_keys() const { return tensor_cores ? warp_keys() / 4 : keys / 8; }
  int thread_columns() const { return columns / lanes_of_row(); }

  int warp_rows() const { return 16 * m16_fragments; }
  bool warps_split_rows() const { return tensor_cores && rows > warp_rows(); }

  // Offsets in shared memory, in elements: keys, values, queries, weights. Queries that pass through use the space of
  // keys. Further stages of keys and values follow the first.
  int stage_elements() const { return keys * (key_stride + value_stride); }
  // Bytes between lines of quantized values, and of a stage.
  static int quantized_stride(int places) { return places / 16 % 2 == 0 ? places + 16 : places; }
  int quantized_value_at() const { return keys * quantized_stride(head_dim); }
  int stage_bytes() const {
    return quantized_stages ? quantized_value_at() + keys * quantized_stride(columns)
                            : stage_elements() * element_bytes;
  }
  int stages_at() const { return quantized_stages ? stage_elements() * element_bytes : 0; }
  int value_at() const { return keys * key_stride; }
  int query_at() const { return tensor_cores && !queries_in_shared ? 0 : value_at() + keys * value_stride; }
  int weight_at() const { return query_at() + rows * query_stride; }
  int elements() const;
  int bytes() const { return elements() * element_bytes; }
  bool dynamic() const { return bytes() > kStaticBytes; }

  // Sizes with warpgroups, in bytes. Shared memory holds both warpgroups' queries (which the result reuses), the stages
  // of keys and of values, then barriers. Matrices are split along columns into pieces of 64 elements (128 bytes).
  int head_segments() const { return (head_dim + 63) / 64; }
  int value_segments() const { return columns / 64; }
  int query_bytes() const;
  int key_bytes() const { return head_segments() * keys * 128; }
  int value_bytes() const { return value_segments() * keys * 128; }
  int barriers_at() const { return 2 * query_bytes() + stages * (key_bytes() + value_bytes()); }
  int warpgroup_bytes() const { return barriers_at() + 8 * (4 + 4 * stages); }

  static constexpr int kStaticBytes = 48 * 1024;
};

// Returns the tiles by which a block with `tiles` combines split-KV results: four columns per lane.
AttentionTiles combine_tiles(const AttentionTiles& tiles);
AttentionTiles attention_tiles(const Attention& form, const Target& target);
// Returns the one load of 8-bit values in keys or values that are computed; nothing if there are none or several.
std::optional<ExprId> quantized_load(const Attention& form, ExprId operand);
// Bytes that a block has in flight: all stages but the one in use, or one tile of keys.
double bytes_in_flight(const AttentionTiles& tiles);
// Returns tiles for warpgroups; nothing unless the target has them and there are enough rows. The caller checks whether
// TMA can copy the operands.
std::optional<AttentionTiles> warpgroup_tiles(const Attention& form, const Target& target);
struct AttentionCandidates {
  AttentionTiles by_warps;
  std::optional<AttentionTiles> by_warpgroups = {};  // taken where blocks do not split the keys and TMA can copy
};
// Returns these tiles with at most 64 keys: half the scores, and half the code, per thread.
AttentionTiles with_fewer_keys(AttentionTiles tiles, const Target& target);

}  // namespace fusec
