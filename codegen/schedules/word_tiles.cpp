#include "codegen/schedules/word_tiles.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>

#include "analysis/kernel_forms.h"
#include "analysis/loads.h"
#include "codegen/emit_expr.h"
#include "codegen/schedules/access_samples.h"
#include "codegen/schedules/vector_access.h"
#include "ir/type.h"

namespace fusec {
namespace {

constexpr int kThreads = 256, kLanes = 32, kWarps = kThreads / kLanes;
constexpr int kSectorBits = 256;

// Elements of a word.
int each(int element_bits) {
  return std::max(1, 32 / element_bits);
}

// Elements of a line that so many words of each lane hold wherever it begins; and the words that so many need.
int line_elements(int element_bits, int words) {
  return words * kLanes * each(element_bits) - kSectorBits / element_bits;
}
int words_of_lane(int element_bits, int elements) {
  const int of_lanes = kLanes * each(element_bits);
  return (elements + kSectorBits / element_bits - 1 + of_lanes - 1) / of_lanes;
}

// The tile has places in front of a line and behind it for what else is in its first and its last word.
int tile_bytes(const WordTiles& tiles, int element_bits) {
  const int lines = tiles.tiled[1].extent + 2 * (each(element_bits) - 1);
  return (lines * tiles.pitch * element_bits / 8 + 15) / 16 * 16;
}

class Planner {
 public:
  Planner(const TransposeChoice& choice, const Graph& graph)
      : kernel_(choice.kernel),
        pool_(kernel_.pool),
        graph_(graph),
        staged_(choice.tiles),
        result_bits_(bits(kernel_.outputs[0].type.dtype)) {}

  std::optional<WordTiles> run() {
    if (!takes_words() || !begins_between_vectors() || !long_lines()) return std::nullopt;
    constexpr int kMostWords = 3, kMostBytes = 52 * 1024;  // three such blocks have any multiprocessor
    std::optional<WordTiles> best;
    double least = 0;  // of sectors that are touched in part, for an element
    for (int stored = kMostWords; stored > 0; --stored)
      for (int along = kMostWords; along > 0; --along) {
        WordTiles tiles = laid_out(stored, along);
        const double parts = 1.0 / tiles.tiled[0].extent + 1.0 / tiles.tiled[1].extent;
        if (tiles.bytes > kMostBytes || (best && parts >= least)) continue;
        least = parts;
        best = std::move(tiles);
      }
    if (best) best->time = time_of(*best);
    return best;
  }

 private:
  // One result; loads along one other axis that are all there, of no wider elements where a word of the result has
  // several (lanes would read every other word of the tile); what else is loaded along the result's lines is a word of
  // each lane as well.
  bool takes_words() const {
    if (kernel_.outputs.size() != 1 || result_bits_ < 8 || staged_.tiled.size() != 2) return false;
    std::vector<ExprId> staged;
    for (const StagedLoad& load : staged_.loads) {
      if (!load.linear || load.bits < 8 || pool_[load.load].args[0] != kNoExpr) return false;
      if (each(result_bits_) > 1 && load.bits > result_bits_) return false;
      staged.push_back(load.load);
    }
    if (each(result_bits_) == 1) return true;
    const auto depends = dependences(pool_);
    return std::ranges::all_of(reachable(pool_, roots_of(kernel_)), [&](ExprId id) {
      return pool_[id].op != ExprOp::kLoad || std::ranges::find(staged, id) != staged.end() ||
             std::ranges::find(depends[id], staged_.stored) == depends[id].end();
    });
  }

  // Then every access of it is 16 bytes wide.
  bool lies_in_vectors(const Shape& shape, const std::vector<IndexExpr>& index, std::uint32_t axis,
                       int element_bits) const {
    const IndexExpr rest = simplify(flat_index(shape, index), pool_.bounds()) - IndexExpr::axis(axis);
    const int vector = 128 / element_bits;
    return proves_multiple_of(rest, vector, pool_.bounds()) &&
           proves_multiple_of(pool_.extent(axis), vector, pool_.bounds());
  }
  bool begins_between_vectors() const {
    const KernelOutput& output = kernel_.outputs[0];
    const bool loads = std::ranges::all_of(staged_.loads, [&](const StagedLoad& load) {
      const ExprNode& n = pool_[load.load];
      return lies_in_vectors(graph_.tensor(n.source).shape, n.indices, staged_.tiled[1].axis, load.bits);
    });
    return !loads || !lies_in_vectors(output.type.shape, output.index, staged_.stored, result_bits_);
  }

  bool long_lines() const {
    constexpr std::int64_t kShortest = 64;
    return std::ranges::all_of(staged_.tiled, [&](const TiledAxis& tiled) {
      return value_at_hint(pool_.extent(tiled.axis), graph_.symbols) >= kShortest;
    });
  }

  // With so many words of the result's lines to a lane, and of the loads'.
  WordTiles laid_out(int words_stored, int words_along) const {
    const auto capped = [&](std::uint32_t axis, int elements) {
      const std::int64_t most = range_of(pool_.extent(axis), pool_.bounds()).max;
      return TiledAxis{.axis = axis, .extent = static_cast<int>(std::min<std::int64_t>(elements, most))};
    };
    WordTiles tiles{.tiled = {capped(staged_.stored, line_elements(result_bits_, words_stored))}, .loads = {}};
    int along = line_elements(staged_.loads[0].bits, words_along);
    for (const StagedLoad& load : staged_.loads) {
      tiles.loads.push_back(load.load);
      along = std::min(along, line_elements(load.bits, words_along));
    }
    tiles.tiled.push_back(capped(staged_.tiled[1].axis, along));
    tiles.pitch = (tiles.tiled[0].extent + each(result_bits_) - 1) | 1;
    for (const StagedLoad& load : staged_.loads) tiles.bytes += tile_bytes(tiles, load.bits);
    return tiles;
  }

  double time_of(const WordTiles& tiles) const {
    const auto line = [&](const IndexExpr& position, const TiledAxis& tiled, int element_bits) {
      const int aligned = alignment_of(position - IndexExpr::axis(tiled.axis), element_bits, pool_.bounds());
      return sectors_of_tiled_line(value_at_hint(pool_.extent(tiled.axis), graph_.symbols), tiled.extent, tiled.extent,
                                   element_bits, aligned);
    };
    const KernelOutput& output = kernel_.outputs[0];
    const IndexExpr stored = simplify(flat_index(output.type.shape, output.index), pool_.bounds());
    double sectors = line(stored, tiles.tiled[0], result_bits_);
    // Less than a word at either end of a line is stored one by one.
    sectors += (each(result_bits_) - 1.0) /
               static_cast<double>(value_at_hint(pool_.extent(tiles.tiled[0].axis), graph_.symbols));
    const double more = 1 + (each(result_bits_) - 1.0) / tiles.tiled[0].extent;  // lines that two tiles have
    for (const ExprId load : tiles.loads)
      sectors += more * line(position_of(graph_, pool_, load), tiles.tiled[1], bits(pool_[load].dtype));
    // Of an element and of a word of either side; lanes beyond a line's end have as many.
    constexpr double kInstructions = 6, kOfWord = 10, kPasses = 2;
    const auto lanes_for_element = [&](const TiledAxis& tiled, int element_bits) {
      const std::int64_t extent = value_at_hint(pool_.extent(tiled.axis), graph_.symbols);
      const std::int64_t lines = (extent + tiled.extent - 1) / tiled.extent;
      return static_cast<double>(lines * words_of_lane(element_bits, tiled.extent) * kLanes) /
             static_cast<double>(extent);
    };
    const auto issued = [&](const TiledAxis& tiled, int element_bits) {
      return lanes_for_element(tiled, element_bits) * (each(element_bits) * kInstructions + kOfWord);
    };
    double instructions = issued(tiles.tiled[0], result_bits_);
    for (const ExprId load : tiles.loads) instructions += more * issued(tiles.tiled[1], bits(pool_[load].dtype));
    return movement_time(sectors, instructions / 32, static_cast<double>(tiles.loads.size()) * kPasses / 32);
  }

  const Kernel& kernel_;
  const ExprPool& pool_;
  const Graph& graph_;
  const TransposeTiles& staged_;
  const int result_bits_;
};

class Emitter {
 public:
  Emitter(const Kernel& kernel, const Graph& graph, const WordTiles& tiles)
      : kernel_(kernel),
        graph_(graph),
        tiles_(tiles),
        bounds_(kernel.pool.bounds()),
        stored_(tiles.tiled[0]),
        along_(tiles.tiled[1]),
        result_(kernel.outputs[0]),
        writer_(tile_writer(kernel, graph, tiles.tiled, kThreads)),
        emitter_(kernel, writer_) {}

  KernelSource emit() {
    writer_.use("dynamic_shared");
    writer_.use("word_tiles");
    find_block();
    int start = 0;
    for (const ExprId load : tiles_.loads) {
      fill_tile(load, start);
      start += tile_bytes(tiles_, bits(kernel_.pool[load].dtype));
    }
    writer_.line("__syncthreads();");
    compute();
    return finish_tiles(writer_, kernel_, graph_, tiles_.tiled,
                        {.threads = kThreads, .shared_bytes = tiles_.bytes, .schedule = "transpose"});
  }

 private:
  std::string declared(std::string_view type, std::string_view wish, const std::string& value) {
    const std::string name = writer_.unique(wish);
    writer_.line(fmt::format("const {} {} = {};", type, name, value));
    return name;
  }

  // Where the tile begins, and what of the tensor is left from there on along either axis.
  void find_block() {
    origin_ = find_tile(kernel_, tiles_.tiled, writer_, emitter_);
    lane_ = declared("int", "lane", fmt::format("threadIdx.x % {}", kLanes));
    warp_ = declared("int", "warp", fmt::format("threadIdx.x / {}", kLanes));
    stored_left_ = left_of(stored_, "columns");
    const std::string rows = left_of(along_, "rows");
    height_ = declared("int", "height", fmt::format("{0} < {1} ? {0} : {1}", rows, along_.extent));
  }
  std::string left_of(const TiledAxis& tiled, std::string_view wish) {
    const std::string extent = emitter_.index_text().tight(kernel_.pool.extent(tiled.axis));
    const std::string& first = origin_.at(tiled.axis);
    return declared("int", wish, first == "0" ? "(int)" + extent : fmt::format("(int)({} - {})", extent, first));
  }

  // A line's words are counted from the sector on in which it begins: that one's first element, and the place in the
  // line that a lane's first word has.
  struct Line {
    std::string first, place;
  };
  Line line_at(const IndexExpr& begin, const IndexExpr& beside, int element_bits) {
    const int sector = kSectorBits / element_bits;
    const std::string words = each(element_bits) == 1 ? lane_ : fmt::format("{} * {}", lane_, each(element_bits));
    const std::string at = declared(writer_.index_type(), "begin", emitter_.index(begin));
    if (proves_multiple_of(beside, sector, bounds_))
      return {.first = at, .place = words};  // tiles are of whole sectors
    const std::string in_front = declared("int", "in_front", fmt::format("(int)({} & {})", at, sector - 1));
    return {.first = fmt::format("({} - {})", at, in_front), .place = fmt::format("{} - {}", words, in_front)};
  }

  static std::string element_type(int element_bits) {
    return element_bits == 64   ? "unsigned long long"
           : element_bits == 32 ? "unsigned"
           : element_bits == 16 ? "unsigned short"
                                : "unsigned char";
  }
  static std::string words_type(int element_bits) { return fmt::format("Words<{}>", std::max(1, element_bits / 32)); }

  std::string open_unrolled(std::string_view wish, int count) {
    const std::string variable = writer_.unique(wish);
    writer_.line("#pragma unroll");
    writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", variable, count));
    return variable;
  }

  // Several lines of each warp on their way at once; then their elements to the tile.
  void fill_tile(ExprId load, int start) {
    const ExprNode& n = kernel_.pool[load];
    const int element_bits = bits(n.dtype), words = words_of_lane(element_bits, along_.extent);
    const int lines = stored_.extent + each(bits(result_.type.dtype)) - 1, turns = (lines + kWarps - 1) / kWarps;
    constexpr int kWordsAtOnce = 14;
    const int rounds = (turns * words + kWordsAtOnce - 1) / kWordsAtOnce, at_once = (turns + rounds - 1) / rounds;
    const std::string tile = tiles_of_[load] = writer_.unique(writer_.wish(n.source) + "_tile");
    writer_.line(
        fmt::format("{0}* const {1} = ({0}*)(dynamic_shared + {2});", element_type(element_bits), tile, start));
    const std::string count = declared("int", "lines", fmt::format("{0} < {1} ? {0} : {1}", stored_left_, lines));
    const std::string line = writer_.unique("line");
    writer_.line("#pragma unroll 1");
    writer_.open(fmt::format("for (int {0} = {1}; {0} < {2}; {0} += {3})", line, warp_, count, at_once * kWarps));
    const std::string held = writer_.unique(writer_.wish(n.source) + "_words"), places = writer_.unique("places");
    writer_.line(fmt::format("{} {}[{}][{}];", words_type(element_bits), held, at_once, words));
    writer_.line(fmt::format("int {}[{}];", places, at_once));
    read_lines(load, held, places, line, count, at_once, words);
    const int per = each(element_bits);
    const std::string turn = open_unrolled("turn", at_once), word = open_unrolled("word", words);
    const std::string at = open_if_needed(fmt::format("{}[{}]", places, turn), word, element_bits);
    writer_.line(fmt::format("put_word<{0}, {1}>({2} + ({9} + {3}) * {1} + {4} + {5} * {6}, {7}[{5}][{8}]);",
                             element_bits, tiles_.pitch, tile, per - 1, line, turn, kWarps, held, word, at));
    for (int i = 0; i < 4; ++i) writer_.close();
  }

  // The place of the lane's word in its line; what follows is for words that hold some of it.
  std::string open_if_needed(const std::string& place, const std::string& word, int element_bits) {
    const int per = each(element_bits);
    const std::string at = declared("int", "at", fmt::format("{} + {} * {}", place, word, kLanes * per));
    writer_.open(fmt::format("if ({0} > {1} && {0} < {2})", at, -per, height_));
    return at;
  }

  void read_lines(ExprId load, const std::string& held, const std::string& places, const std::string& line,
                  const std::string& count, int at_once, int words) {
    const ExprNode& n = kernel_.pool[load];
    const int element_bits = bits(n.dtype), per = each(element_bits);
    const std::string turn = open_unrolled("turn", at_once);
    const ExprEmitter::Mark mark = emitter_.mark();
    const std::string of_line = fmt::format("{} + {} * {}", line, turn, kWarps);
    emitter_.bind(along_.axis, origin_.at(along_.axis));
    emitter_.bind(stored_.axis, declared(writer_.index_type(), "j", plus(origin_.at(stored_.axis), of_line)));
    const IndexExpr begin = emitter_.position(load);
    const Line from = line_at(begin, begin - IndexExpr::axis(along_.axis), element_bits);
    constexpr int kNowhere = 1 << 20;
    writer_.line(fmt::format("{}[{}] = {} < {} ? {} : {};", places, turn, of_line, count, from.place, kNowhere));
    const std::string word = open_unrolled("word", words);
    open_if_needed(fmt::format("{}[{}]", places, turn), word, element_bits);
    const IndexExpr all = *element_count(graph_.tensor(n.source).shape);
    const bool whole = proves_multiple_of(all, per, bounds_);
    const std::string first =
        declared(writer_.index_type(), "first",
                 fmt::format("{} + {} * {} + {} * {}", from.first, lane_, per, word, kLanes * per));
    writer_.line(fmt::format("{}[{}][{}] = load_word<{}, {}>({} + {}, {});", held, turn, word, element_bits, whole,
                             writer_.input(n.source), first,
                             whole ? "0" : fmt::format("{} - {}", emitter_.index_text().tight(all), first)));
    for (int i = 0; i < 2; ++i) writer_.close();
    emitter_.rewind(mark);
    writer_.close();
  }

  static std::string plus(const std::string& a, const std::string& b) { return a == "0" ? b : a + " + " + b; }

  // Lines of the result, a word of one to a lane: whole ones; those at either end of the tensor's lines by element.
  void compute() {
    const int element_bits = bits(result_.type.dtype), per = each(element_bits);
    const std::string whole =
        declared("int", "whole", fmt::format("min({}, max({} - {}, 0))", stored_.extent, stored_left_, per - 1));
    const std::string row = writer_.unique("row");
    writer_.line("#pragma unroll 2");
    writer_.open(fmt::format("for (int {0} = {1}; {0} < {2}; {0} += {3})", row, warp_, height_, kWarps));
    const ExprEmitter::Mark mark = emitter_.mark();
    emitter_.bind(along_.axis, declared(writer_.index_type(), "i", plus(origin_.at(along_.axis), row)));
    emitter_.emit_independent({result_.expr});
    emitter_.bind(stored_.axis, origin_.at(stored_.axis));
    const IndexExpr begin = simplify(flat_index(result_.type.shape, result_.index), bounds_);
    const Line to = line_at(begin, begin - IndexExpr::axis(stored_.axis), element_bits);
    const std::string word = open_unrolled("word", words_of_lane(element_bits, stored_.extent));
    const std::string place = declared("int", "place", fmt::format("{} + {} * {}", to.place, word, kLanes * per));
    const std::string first = fmt::format("{} + {} + {} * {} + {} * {}", writer_.output(result_.value), to.first, lane_,
                                          per, word, kLanes * per);
    const std::string type = words_type(element_bits), words = writer_.unique(writer_.wish(result_.value) + "_w");
    const auto elements = [&](const std::string& guard) {
      writer_.line(fmt::format("{} {} = {{}};", type, words));
      const std::string e = open_unrolled("e", per);
      if (!guard.empty()) writer_.open(fmt::format("if ({0} + {1} >= 0 && {0} + {1} < {2})", place, e, stored_left_));
      put_value(row, place, e, words);
      if (!guard.empty()) writer_.close();
      writer_.close();
    };
    writer_.open(fmt::format("if ((unsigned){} < (unsigned){})", place, whole));
    elements("");
    writer_.line(fmt::format("store_words<{}>({}, {});", std::max(1, element_bits / 32), first, words));
    if (per > 1) {
      const std::string& origin = origin_.at(stored_.axis);
      const std::string lowest =
          origin == "0" ? std::to_string(-per) : fmt::format("({} == 0 ? {} : -1)", origin, -per);
      writer_.close(
          fmt::format("}} else if ({0} > {1} && {0} < min({2}, {3})) {{", place, lowest, stored_.extent, stored_left_));
      writer_.reopen();
      elements("guarded");
      writer_.line(fmt::format("store_elements<{}>({}, {}, {}, {});", element_bits, first, words, place, stored_left_));
    }
    writer_.close();
    writer_.close();
    emitter_.rewind(mark);
    writer_.close();
  }

  // The value of the word's element e, which is made of the tiles' elements.
  void put_value(const std::string& row, const std::string& place, const std::string& e, const std::string& words) {
    const ExprEmitter::Mark mark = emitter_.mark();
    const std::string at = declared("int", "at", each(bits(result_.type.dtype)) == 1 ? place : plus(place, e));
    emitter_.bind(stored_.axis, declared(writer_.index_type(), "j", plus(origin_.at(stored_.axis), at)));
    emitter_.load_text = [&](ExprId id) -> std::string {
      const auto tile = tiles_of_.find(id);
      if (tile == tiles_of_.end()) return "";
      const ExprNode& n = kernel_.pool[id];
      return value_of_bits(
          n.dtype, fmt::format("{}[({} + {}) * {} + {}]", tile->second, row, each(bits(n.dtype)) - 1, tiles_.pitch, at),
          writer_);
    };
    const std::string value = emitter_.emit(result_.expr);
    writer_.line(put_text(result_.type.dtype, words, e, value, writer_));
    emitter_.load_text = nullptr;
    emitter_.rewind(mark);
  }

  const Kernel& kernel_;
  const Graph& graph_;
  const WordTiles& tiles_;
  const Bounds& bounds_;
  const TiledAxis stored_, along_;
  const KernelOutput& result_;
  KernelWriter writer_;
  ExprEmitter emitter_;
  std::map<std::uint32_t, std::string> origin_;
  std::map<ExprId, std::string> tiles_of_;
  std::string lane_, warp_;
  std::string stored_left_;  // of the tensor's line, from this tile on
  std::string height_;       // lines of the result in this tile
};

}  // namespace

std::optional<WordTiles> plan_word_tiles(const TransposeChoice& choice, const Graph& graph) {
  return Planner(choice, graph).run();
}

KernelSource emit_word_tiles(const Kernel& kernel, const Graph& graph, const WordTiles& tiles) {
  return Emitter(kernel, graph, tiles).emit();
}

}  // namespace fusec
