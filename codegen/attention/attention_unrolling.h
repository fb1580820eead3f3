// Chooses how far the attention kernel is unrolled. Loops over a thread's scores, computed vectors and results are
// unrolled because registers cannot be indexed. If NVRTC would then exceed its time limit, rows and keys become real
// loops over the first registers, and the epilogue goes through shared memory. The variants are ordered by what they
// cost at run time.
#pragma once

namespace fusec {

struct AttentionUnrolling {
  bool loop_over_columns = false;  // the epilogue goes through shared memory, a few columns at a time
  bool loop_over_rows = false;     // over a thread's rows, for scores and accumulators
  bool keys_loaded_once = false;   // code that computes keys is in the loop only, not also before it for the first tile
  int vectors_at_once = 0;         // vectors computed per iteration; 0: the compiler chooses
  int keys_at_once = 0;            // keys of a row per iteration, with tensor cores; 0: all
  bool short_tiles = false;        // fewer keys per tile, for warpgroups
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
