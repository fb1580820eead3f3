#include "codegen/schedules/attention_tiles.h"

#include <algorithm>

namespace fusec {
namespace {

int rounded_up(std::int64_t n, int to) {
  return static_cast<int>((n + to - 1) / to * to);
}

// A line's stride is an odd number of 16-byte units: eight lines that are read at once lie in different banks.
int padded(int elements, int unit) {
  return elements + (elements / unit % 2 == 0 ? unit : 2 * unit);
}

AttentionTiles on_tensor_cores(const Attention& form) {
  AttentionTiles t;
  t.tensor_cores = true;
  t.depth = rounded_up(form.depth_count(), 16);
  t.columns = rounded_up(form.column_count(), 16);
  // Sums and queries of large heads leave few registers for scores.
  t.keys = t.depth + t.columns > 320 ? 32 : 64;
  t.query_stride = t.key_stride = padded(t.depth, 8);
  t.value_stride = padded(t.columns, 8);
  return t;
}

AttentionTiles in_lanes(const Attention& form) {
  AttentionTiles t;
  t.element_bytes = form.kernel.pool[form.product].type == ScalarType::kFloat64 ? 8 : 4;
  t.depth = rounded_up(form.depth_count(), 4);
  t.wide_columns = form.column_count() > 16;
  t.columns = rounded_up(form.column_count(), t.wide_columns ? 32 : 8);
  t.query_stride = t.key_stride = padded(t.depth, 16 / t.element_bytes);
  t.value_stride = t.columns;
  // The largest tile that leaves room for a second block; a thread's sums stay in registers.
  for (const auto& [my_rows, keys] : {std::pair{4, 32}, {2, 32}, {4, 16}, {2, 16}, {1, 16}, {1, 8}}) {
    t.my_rows = my_rows;
    t.rows = 16 * my_rows;
    t.keys = keys;
    t.weight_stride = keys + 8;
    while (t.weight_stride % 32 != 8 && t.weight_stride % 32 != 24) t.weight_stride += 8;
    if (my_rows * t.my_columns() * t.element_bytes <= 256 && t.bytes() <= AttentionTiles::kStaticBytes) break;
  }
  return t;
}

}  // namespace

int AttentionTiles::elements() const {
  if (tensor_cores) return std::max(rows * query_stride, keys * (key_stride + value_stride));
  return weight_at() + rows * weight_stride;
}

AttentionTiles attention_tiles(const Attention& form) {
  return form.tensor_dtype ? on_tensor_cores(form) : in_lanes(form);
}

}  // namespace fusec
