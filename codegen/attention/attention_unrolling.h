// How much of attention's code stands as often as it is executed for one tile: loops over a thread's scores, over
// eights that it computes and over its results are unrolled, since registers have no index, as long as NVRTC is
// expected to compile the kernel in its time. Beyond that rows and keys take turns in the first registers, and what
// stands behind the result goes through shared memory; what costs the running kernel least goes first.
#pragma once

namespace fusec {

struct AttentionUnrolling {
  bool loop_over_columns = false;  // results go through shared memory for what stands behind them, few columns as well
  bool loop_over_rows = false;     // of a thread's scores and sums
  bool keys_loaded_once = false;   // what computes keys stands in the loop alone, not before it for the first as well
  int vectors_at_once = 0;         // that are computed; 0: as the compiler likes
  int keys_at_once = 0;            // of a row, in registers of fragments; 0: all
  bool short_tiles = false;        // of warpgroups, whose registers that take turns would have to be moved much
};

inline constexpr AttentionUnrolling kAttentionUnrollings[] = {
    {},
    {.loop_over_columns = true},
    {.loop_over_columns = true, .loop_over_rows = true},
    {.loop_over_columns = true, .loop_over_rows = true, .keys_loaded_once = true, .vectors_at_once = 2},
    {.loop_over_columns = true, .loop_over_rows = true, .keys_loaded_once = true, .vectors_at_once = 1},
    {.loop_over_columns = true,
     .loop_over_rows = true,
     .keys_loaded_once = true,
     .vectors_at_once = 1,
     .keys_at_once = 8},
    {.loop_over_columns = true,
     .loop_over_rows = true,
     .keys_loaded_once = true,
     .vectors_at_once = 1,
     .keys_at_once = 4},
    {.loop_over_columns = true,
     .loop_over_rows = true,
     .keys_loaded_once = true,
     .vectors_at_once = 1,
     .keys_at_once = 2},
};

inline constexpr AttentionUnrolling kWarpgroupUnrollings[] = {
    {},
    {.loop_over_columns = true},
    {.loop_over_columns = true, .short_tiles = true},
    {.loop_over_columns = true, .vectors_at_once = 1, .short_tiles = true},
    {.loop_over_columns = true, .loop_over_rows = true, .vectors_at_once = 1, .keys_at_once = 8, .short_tiles = true},
    {.loop_over_columns = true, .loop_over_rows = true, .vectors_at_once = 1, .keys_at_once = 4, .short_tiles = true},
    {.loop_over_columns = true, .loop_over_rows = true, .vectors_at_once = 1, .keys_at_once = 2, .short_tiles = true},
};

}  // namespace fusec
