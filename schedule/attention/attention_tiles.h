// The sizes of attention's tiles: what a block of threads holds of queries, keys and values, and what each thread has.
#pragma once

#include <optional>

#include "schedule/attention/attention_form.h"
#include "schedule/target/target.h"

namespace fusec {

struct AttentionTiles {
  bool tensor_cores = false;
  int threads = 128;
  int rows = 64, keys = 64;        // of a block's tile of scores
  int m16_fragments = 1;           // on tensor cores: how many times 16 rows a warp has
  bool queries_in_shared = false;  // on tensor cores: in shared memory, else they pass through it into registers
  bool warpgroups = false;         // two multiply 64 rows each, what a third one copies
  int stages = 2;                  // of warpgroups: tiles of keys, and of values, that are there or on the way
  int depth = 64, columns = 64;    // head sizes, rounded up; what is beyond is 0
  int query_stride = 72, key_stride = 72, value_stride = 72, weight_stride = 0;  // of lines in shared memory
  int thread_rows = 2;                                                           // of a thread
  bool vector_columns = false;  // without tensor cores: a thread's columns come in neighbouring fours
  int lanes_per_row = 8;        // without tensor cores: threads of a row
  int element_bytes = 2;

  int lanes_of_row() const { return tensor_cores ? 4 : lanes_per_row; }
  int row_step() const { return tensor_cores ? 8 : threads / lanes_per_row; }  // between a thread's rows
  int thread_keys() const { return tensor_cores ? keys / 4 : keys / 8; }
  int thread_columns() const { return columns / lanes_of_row(); }

  int warp_rows() const { return 16 * m16_fragments; }

  // Keys, then values, in elements; queries that pass through come in the keys' place.
  int value_at() const { return keys * key_stride; }
  int query_at() const { return tensor_cores && !queries_in_shared ? 0 : value_at() + keys * value_stride; }
  int weight_at() const { return query_at() + rows * query_stride; }
  int elements() const;
  int bytes() const { return elements() * element_bytes; }
  bool dynamic() const { return bytes() > kStaticBytes; }

  // Of warpgroups, in pieces of 64 places of 128 bytes: a warpgroup's queries, where its result passes through, too;
  // then the stages of keys, and those of values; then barriers.
  int depth_pieces() const { return (depth + 63) / 64; }
  int column_pieces() const { return columns / 64; }
  int query_bytes() const;
  int key_bytes() const { return depth_pieces() * keys * 128; }
  int value_bytes() const { return column_pieces() * keys * 128; }
  int barriers_at() const { return 2 * query_bytes() + stages * (key_bytes() + value_bytes()); }
  int warpgroup_bytes() const { return barriers_at() + 8 * (1 + 4 * stages); }

  static constexpr int kStaticBytes = 48 * 1024;
};

// Of what combines shares of keys that blocks of `tiles` left: as many lanes a row as have four columns each.
AttentionTiles combine_tiles(const AttentionTiles& tiles);
AttentionTiles attention_tiles(const Attention& form, const Target& target);
// That a block waits for at a time: a tile of keys.
inline double bytes_in_flight(const AttentionTiles& tiles) {
  return static_cast<double>(tiles.keys) * tiles.depth * tiles.element_bytes;
}
// Those of warpgroups, where the target has them and there are enough rows. Whether TMA can copy what they multiply is
// for the caller to see.
std::optional<AttentionTiles> warpgroup_tiles(const Attention& form, const Target& target);
// The same with fewer keys to a tile: half as many scores, and code for them, to a thread.
AttentionTiles with_fewer_keys(AttentionTiles tiles, const Target& target);

}  // namespace fusec
