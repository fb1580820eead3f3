// The sizes of attention's tiles: what a block of threads holds of queries, keys and values, and what each thread has.
#pragma once

#include "analysis/attention_form.h"
#include "analysis/target.h"

namespace fusec {

struct AttentionTiles {
  bool tensor_cores = false;
  int threads = 128;
  int rows = 64, keys = 64;      // of a block's tile of scores
  int slabs = 1;                 // on tensor cores: how many times 16 rows a warp has
  bool queries_stay = false;     // on tensor cores: in shared memory, else they pass through it into registers
  int depth = 64, columns = 64;  // head sizes, rounded up; what is beyond is 0
  int query_stride = 72, key_stride = 72, value_stride = 72, weight_stride = 0;  // of lines in shared memory
  int my_rows = 2;                                                               // of a thread
  bool wide_columns = false;  // without tensor cores: a thread's columns come in neighbouring fours
  int element_bytes = 2;

  int lanes_of_row() const { return tensor_cores ? 4 : 8; }
  int row_step() const { return tensor_cores ? 8 : 16; }  // between a thread's rows
  int my_keys() const { return tensor_cores ? keys / 4 : keys / 8; }
  int my_columns() const { return tensor_cores ? columns / 4 : columns / 8; }

  int warp_rows() const { return 16 * slabs; }

  // Keys, then values, in elements; queries that pass through come in the keys' place.
  int value_at() const { return keys * key_stride; }
  int query_at() const { return tensor_cores && !queries_stay ? 0 : value_at() + keys * value_stride; }
  int weight_at() const { return query_at() + rows * query_stride; }
  int elements() const;
  int bytes() const { return elements() * element_bytes; }
  bool dynamic() const { return bytes() > kStaticBytes; }

  static constexpr int kStaticBytes = 48 * 1024;
};

AttentionTiles attention_tiles(const Attention& form, const Target& target);

}  // namespace fusec
