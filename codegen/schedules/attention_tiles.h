// The sizes of attention's tiles: what a block of threads holds of queries, keys and values, and what each thread has.
#pragma once

#include "analysis/attention_form.h"

namespace fusec {

struct AttentionTiles {
  bool tensor_cores = false;
  int threads = 128;
  int rows = 64, keys = 64;      // of a block's tile of scores
  int depth = 64, columns = 64;  // head sizes, rounded up; what is beyond is 0
  int query_stride = 72, key_stride = 72, value_stride = 72, weight_stride = 0;  // of lines in shared memory
  int my_rows = 2;                                                               // of a thread
  bool wide_columns = false;  // without tensor cores: a thread's columns come in neighbouring fours
  int element_bytes = 2;

  int lanes_of_row() const { return tensor_cores ? 4 : 8; }
  int row_step() const { return tensor_cores ? 8 : 16; }  // between a thread's rows
  int my_keys() const { return tensor_cores ? keys / 4 : keys / 8; }
  int my_columns() const { return tensor_cores ? columns / 4 : columns / 8; }

  // Keys, then values, in elements; on tensor cores queries pass through the keys' place into registers.
  int value_at() const { return keys * key_stride; }
  int query_at() const { return value_at() + keys * value_stride; }
  int weight_at() const { return query_at() + rows * query_stride; }
  int elements() const;
  int bytes() const { return elements() * element_bytes; }
  bool dynamic() const { return bytes() > kStaticBytes; }

  static constexpr int kStaticBytes = 48 * 1024;
};

AttentionTiles attention_tiles(const Attention& form);

}  // namespace fusec
