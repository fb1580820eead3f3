// Attention's pipeline: while one tile of keys and values is used, copies of the next ones are in flight. A stage in
// shared memory holds the tile itself, or its quantized values, from which the block computes the one tile that it
// multiplies.
//
//   copy tiles 0, 1, 2;   for each tile t: wait for it; copy tile t + 3 over t - 1; dequantize t; multiply t
#include <fmt/format.h>

#include "codegen/attention/attention_emitter.h"
#include "ir/type.h"

namespace fusec {

// Finds whether what the stages hold can be copied asynchronously.
void AttentionEmitter::plan_pipeline() {
  if (tiles_.quantized_stages) {
    const auto place = [&](const char* preferred_name, int at) {
      const std::string name = writer_.unique(preferred_name);
      writer_.line(fmt::format("unsigned char* const {} = (unsigned char*){} + {};", name, key_tile_, at));
      return name;
    };
    quantized_keys_ = place("quantized_keys", tiles_.stages_at());
    quantized_values_ = place("quantized_values", tiles_.stages_at() + tiles_.quantized_value_at());
  }
  pipelined_ = tiles_.stages > 1;
  for (const auto& [load, copy] :
       {std::pair{key_load("0"), key_copy("0")}, std::pair{value_load("0"), value_copy("0")}}) {
    const bool made = !tiles_.quantized_stages || TransformedTile::plan(emitter_, graph_, load);
    pipelined_ = pipelined_ && made && loads_.copies(copy);
  }
}

TileLoad AttentionEmitter::copy_of(TileLoad load, const std::string& quantized) const {
  if (!tiles_.quantized_stages) return load;
  load.operand = *quantized_load(form_, load.operand);
  load.narrowed = pool_[load.operand].dtype;
  load.tile = quantized;
  load.stride = AttentionTiles::quantized_stride(load.places);
  return load;
}

void AttentionEmitter::compute_tile_of_stage(const TileLoad& load, const TileLoad& copy, const std::string& stage) {
  const TransformedTile::Staged staged{
      .source = pool_[copy.operand].source, .tile = in_stage(copy, stage).tile, .stride = copy.stride};
  TransformedTile::plan(emitter_, graph_, load)
      ->load(emitter_, graph_, load, tiles_.threads, nullptr, false, code_.vectors_at_once, staged);
}

TileLoad AttentionEmitter::in_stage(TileLoad load, const std::string& stage) const {
  const int bytes = tiles_.quantized_stages ? 1 : tiles_.element_bytes;
  if (!stage.empty()) load.tile = fmt::format("({} + {}{})", load.tile, stage, bytes == 1 ? "" : " / 2");
  return load;
}

// While a tile is used, copies of the next stages - 1 tiles are in flight. The copies of a tile are one group.
void AttentionEmitter::pipelined_key_loop(const std::string& first, const std::string& end) {
  const int ahead = tiles_.stages - 1, stage_bytes = tiles_.stage_bytes();
  const std::string stage = writer_.unique("stage"), next = writer_.unique("next_key0"),
                    free = writer_.unique("free_stage");
  writer_.use("copy_pipeline");
  const auto load = [&](const std::string& key, const std::string& to) {
    writer_.open(fmt::format("if ({} < {})", key, end));
    load_keys(key, to);
    load_values(key, to);
    writer_.close();
    writer_.line("commit_copies();");
  };
  writer_.line(fmt::format("unsigned {} = 0;  // in bytes", stage));
  writer_.line("#pragma unroll 1");
  writer_.open(fmt::format("for ({0} {1} = {2}; {3} < {4}; {1} += {5}, {3} += {6})", integer(), next, first, stage,
                           ahead * stage_bytes, tiles_.keys, stage_bytes));
  load(next, stage);
  writer_.close();
  writer_.line(fmt::format("{} = 0;", stage));
  writer_.open(
      fmt::format("for ({0} {1} = {2}; {1} < {3}; {1} += {4})", integer(), tile_key0_, first, end, tiles_.keys));
  writer_.line(fmt::format("wait_for_groups<{}>();", ahead - 1));
  writer_.line("__syncthreads();  // keys and values are there, those before are used up");
  writer_.line(
      fmt::format("const unsigned {0} = {1} == 0 ? {2} : {1} - {3};", free, stage, ahead * stage_bytes, stage_bytes));
  load(fmt::format("{} + {}", tile_key0_, ahead * tiles_.keys), free);
  if (tiles_.quantized_stages) {
    compute_tile_of_stage(key_load(tile_key0_), key_copy(tile_key0_), stage);
    compute_tile_of_stage(value_load(tile_key0_), value_copy(tile_key0_), stage);
    writer_.line("__syncthreads();  // keys and values are computed");
  }
  declare_warp_keys();
  const std::string key_rows = key_rows_, value_rows = value_rows_;
  for (std::string* rows : {&key_rows_, &value_rows_}) {
    if (tiles_.quantized_stages) break;
    const std::string now = writer_.unique("stage_" + *rows);
    writer_.line(fmt::format("const unsigned {} = {} + {};", now, *rows, stage));
    *rows = now;
  }
  declare_scores();
  multiply_keys();
  mask_scores();
  online_softmax_step();
  add_values();
  key_rows_ = key_rows, value_rows_ = value_rows;
  writer_.line(fmt::format("{0} = {0} == {1} ? 0 : {0} + {2};", stage, ahead * stage_bytes, stage_bytes));
  writer_.close();
}

}  // namespace fusec
