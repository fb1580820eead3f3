// What lies the other way round than the strips that a block has (analysis/turned_lines): it comes to tiles in shared
// memory before threads take their vectors from there, and goes back when all have put theirs there.
#include <fmt/format.h>

#include <set>

#include "codegen/schedules/interleaved_elements.h"
#include "ir/type.h"

namespace fusec {

// All of it at once where blocks keep their lines.
void InterleavedElements::open_tiles() {
  if (way_.turned.empty()) return;
  writer_.use("dynamic_shared");
  writer_.use("turned_rows");
  for (const TurnedLines& tile : way_.turned) {
    turned_.push_back(writer_.unique(writer_.wish(tile.value) + "_tile"));
    const std::string at = tile.place == 0 ? "" : fmt::format(" + {}", tile.place);
    writer_.line(fmt::format("unsigned* const {} = (unsigned*)dynamic_shared{};", turned_.back(), at));
    writer_.use(tile.dtype);
  }
  if (streams()) return;
  block_line_ = "0";
  block_last_ = last_;
  if (part_.chunked()) {
    block_line_ = writer_.unique("block_line");
    writer_.line(fmt::format("const {} {} = {} * {};", writer_.index_type(), block_line_, chunk_, way_.lines_of_block));
    find_lines_of_block();
  }
  load_turned(way_.loads);
}

void InterleavedElements::find_lines_of_block() {
  block_last_ = writer_.unique("block_last");
  writer_.line(fmt::format("const {0} {1} = min({2} + {3}, ({0}){4});", writer_.index_type(), block_last_, block_line_,
                           way_.lines_of_block, last_));
}

// The block's lines, some at a time.
void InterleavedElements::over_blocks(const std::vector<std::uint32_t>& axes, const std::vector<ExprId>& roots,
                                      const Visit& visit) {
  beside_ = words_beside(roots);
  block_line_ = writer_.unique("block_line");
  const std::string begin = fmt::format("{} * {}", chunk_, way_.lines_of_block);
  writer_.line("#pragma unroll 1");
  writer_.open(fmt::format("for ({0} {1} = {2}; {1} < {3}; {1} += {4})", writer_.index_type(), block_line_,
                           part_.chunked() ? begin : "0", last_,
                           way_.lines_of_block * (part_.chunked() ? way_.chunks : 1)));
  find_lines_of_block();
  load_turned(loads_of(roots));
  vector_loop(axes, roots, visit);
  if (visit.stores_turned) store_turned();
  writer_.close();
}

void InterleavedElements::load_turned(const std::vector<ExprId>& loads) {
  std::set<std::size_t> read;
  for (const ExprId load : loads)
    if (const auto tile = way_.turned_loads.find(load); tile != way_.turned_loads.end()) read.insert(tile->second);
  if (read.empty()) return;
  if (streams()) writer_.line("__syncthreads();");
  for (const std::size_t i : read)
    writer_.line(fmt::format("lines_to_rows<{}>({}, {} + {}, {});", arguments_of(way_.turned[i]), turned_[i],
                             writer_.input(way_.turned[i].value), first_of(way_.turned[i]),
                             pitch_and_count(way_.turned[i])));
  writer_.line("__syncthreads();");
}

void InterleavedElements::store_turned() {
  writer_.line("__syncthreads();");
  for (const auto& [value, i] : way_.turned_results)
    writer_.line(fmt::format("rows_to_lines<{}>({} + {}, {}, {});", arguments_of(way_.turned[i]), writer_.output(value),
                             first_of(way_.turned[i]), turned_[i], pitch_and_count(way_.turned[i])));
  if (streams()) writer_.line("__syncthreads();");
}

std::string InterleavedElements::arguments_of(const TurnedLines& tile) const {
  return fmt::format("{}, {}, {}, {}, {}, {}, {}", way_.threads(), tile.vector, tile.lanes, way_.lines_of_block,
                     way_.columns(), tile.words, tile.skew);
}

// Where the block's first element is.
std::string InterleavedElements::first_of(const TurnedLines& tile) {
  return fmt::format("({} + {} * {} + {})", emitter_.index(tile.start), begins_,
                     emitter_.index_text().tight(tile.pitch), block_line_);
}

// From a line's element to the next, and how many of the tile's lines there are.
std::string InterleavedElements::pitch_and_count(const TurnedLines& tile) {
  return fmt::format("({}){}, (int)({} - {})", writer_.index_type(), emitter_.index_text().tight(tile.pitch),
                     block_last_, block_line_);
}

// This thread's vector of so many words.
std::string InterleavedElements::vector_in(std::size_t tile, const std::string& line, int words) {
  const TurnedLines& lines = way_.turned[tile];
  const std::string number = block_line_ == "0" ? line : fmt::format("({} - {})", line, block_line_);
  return fmt::format("{} + word_of_row<{}, {}, {}>((int){}) + {} % {} * {}", turned_[tile], lines.vector, lines.words,
                     lines.skew, number, thread_, way_.lanes(), words);
}

std::string InterleavedElements::turned_vector(const KernelOutput& output, const std::string& line) {
  const auto tile = way_.turned_results.find(output.value);
  if (tile == way_.turned_results.end()) return "";
  return vector_in(tile->second, line, way_.width * bits(output.type.dtype) / 32);
}

}  // namespace fusec
