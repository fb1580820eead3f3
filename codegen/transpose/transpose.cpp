#include "codegen/transpose/transpose.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "analysis/kernel/axis_merging.h"
#include "codegen/access/direct.h"
#include "codegen/access/vector_access.h"
#include "codegen/access/vectorized_loads.h"
#include "ir/type.h"

namespace fusec {
namespace {

std::string plus(const std::string& a, const std::string& b) {
  if (a == "0") return b;
  return b == "0" ? a : fmt::format("{} + {}", a, b);
}

std::string times(const std::string& a, int by) {
  if (a == "0" || by == 1) return a;
  return fmt::format("{} * {}", a, by);
}

class TransposeEmitter {
 public:
  TransposeEmitter(const Kernel& kernel, const Graph& graph, const TransposeTiles& tiles)
      : kernel_(kernel),
        graph_(graph),
        tiles_(tiles),
        staged_(ids_of(tiles)),
        split_(tiles.vector > 1 ? split_last_axis(kernel, tiles.vector, staged_) : kernel),
        writer_(tile_writer(kernel, graph, tiles.tiled, tiles.threads)),
        before_(kernel, writer_),
        after_(split_, writer_) {}

  KernelSource emit() {
    writer_.use("dynamic_shared");
    writer_.use("transposed_lines");
    tile_ = writer_.unique("tile");
    writer_.line(fmt::format("unsigned* const {} = (unsigned*)dynamic_shared;", tile_));
    find_block();
    int rounds = 1;
    for (const StagedLoad& load : tiles_.loads) rounds = std::max(rounds, rounds_of(load));
    for (int round = 0; round < rounds; ++round) {
      std::vector<std::string> lines;
      for (const StagedLoad& load : tiles_.loads)
        lines.push_back(round < rounds_of(load) ? read_lines(load, round) : "");
      for (std::size_t i = 0; i < lines.size(); ++i)
        if (!lines[i].empty()) put_lines(tiles_.loads[i], round, lines[i]);
    }
    writer_.line("__syncthreads();");
    compute();
    return finish_tiles(writer_, kernel_, graph_, tiles_.tiled,
                        {.threads = tiles_.threads, .shared_bytes = 4 * tiles_.words, .schedule = "transpose"});
  }

 private:
  static std::vector<ExprId> ids_of(const TransposeTiles& tiles) {
    std::vector<ExprId> ids;
    for (const StagedLoad& load : tiles.loads) ids.push_back(load.load);
    return ids;
  }

  // Where this block's tile begins: a variable for each axis.
  void find_block() {
    origin_ = find_tile(kernel_, tiles_.tiled, writer_, before_.index_text(),
                        [&](std::size_t axis, const std::string& variable) {
                          before_.bind(kernel_.outputs[0].axes[axis], variable);
                          after_.bind(split_.outputs[0].axes[axis], variable);
                        });
  }

  std::string declared(std::string_view preferred_name, const std::string& value) {
    const std::string name = writer_.unique(preferred_name);
    writer_.line(fmt::format("const {} {} = {};", writer_.index_type(), name, value));
    return name;
  }
  std::string declared_int(std::string_view preferred_name, const std::string& value) {
    const std::string name = writer_.unique(preferred_name);
    writer_.line(fmt::format("const int {} = {};", name, value));
    return name;
  }

  // Registers hold the accesses of so many turns on their way.
  static constexpr int kIterationsAtOnce = 8;
  int iterations_of(const ItemOrder& order) const { return (order.count() + tiles_.threads - 1) / tiles_.threads; }
  int rounds_of(const StagedLoad& load) const {
    return (iterations_of(load.items) + kIterationsAtOnce - 1) / kIterationsAtOnce;
  }
  int iterations_of_round(const StagedLoad& load, int round) const {
    return std::min(kIterationsAtOnce, iterations_of(load.items) - round * kIterationsAtOnce);
  }

  // A thread's items, one after the other, of `turns` turns from `from` on: `body` gets the fast and the rest's number
  // of each and the turn's variable.
  template <class Body>
  void over_items(const ItemOrder& order, int from, int iterations, Body body) {
    std::string item = "threadIdx.x", iteration = "0";
    if (iterations > 1) {
      iteration = writer_.unique("turn");
      writer_.line(iterations <= kIterationsAtOnce ? std::string("#pragma unroll")
                                                   : fmt::format("#pragma unroll {}", kIterationsAtOnce / 2));
      writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", iteration, iterations));
      item = declared_int("item", from == 0
                                      ? fmt::format("threadIdx.x + {} * {}", iteration, tiles_.threads)
                                      : fmt::format("threadIdx.x + ({} + {}) * {}", iteration, from, tiles_.threads));
    } else {
      writer_.open("");
      item = declared_int("item", from == 0 ? item : fmt::format("{} + {}", item, from * tiles_.threads));
    }
    const bool some_idle = (from + iterations) * tiles_.threads > order.count();
    if (some_idle) writer_.open(fmt::format("if ({} < {})", item, order.count()));
    std::string fast = fmt::format("{} % {}", item, order.lanes), rest = "0";
    if (order.lanes == 1) fast = "0";
    if (order.fast > order.lanes)
      fast = plus(fast, fmt::format("{} / {} * {}", item, order.lanes * order.rest, order.lanes));
    else if (order.rest == 1)
      fast = item;
    if (order.rest > 1) {
      rest = order.lanes == 1 ? item : fmt::format("{} / {}", item, order.lanes);
      if (order.fast > order.lanes) rest += fmt::format(" % {}", order.rest);
    }
    const std::string of_fast = fast == item ? item : declared_int("fast", fast);
    const std::string of_rest = rest == "0" ? rest : declared_int("rest", rest);
    if (order.real > 0) writer_.open(fmt::format("if ({} < {})", of_fast, order.real));
    body(of_fast, of_rest, iteration);
    if (order.real > 0) writer_.close();
    if (some_idle) writer_.close();
    writer_.close();
  }

  // The item of a load: its line of words, its place along it, and its element of other tiled axes, each in the tile.
  struct Place {
    std::string line, place;
    std::vector<std::string> of_tiled;  // of each tiled axis, "" where it is not the item's
    std::string other;
  };
  Place place_of(const StagedLoad& load, const std::string& fast, std::string rest) {
    Place at{.line = "0", .place = fast, .of_tiled = std::vector<std::string>(tiles_.tiled.size()), .other = "0"};
    const int lines = tiles_.tiled[0].extent / load.packed;
    if (load.others.empty()) {
      at.line = rest;
    } else {
      at.line = lines == 1 ? "0" : declared_int("line", fmt::format("{} % {}", rest, lines));
      at.other = declared_int("other", lines == 1 ? rest : fmt::format("{} / {}", rest, lines));
      std::string left = at.other;
      for (std::size_t i = load.others.size(); i-- > 0;) {
        const int extent = tiles_.tiled[load.others[i]].extent;
        at.of_tiled[load.others[i]] = i == 0 ? left : fmt::format("({} % {})", left, extent);
        left = fmt::format("({} / {})", left, extent);
      }
    }
    if (load.width > 1) at.place = declared_int("place", times(fast, load.width));
    at.of_tiled[load.along] = at.place;
    return at;
  }

  // "first + place", as the axis's variable; what it has to be less than goes into `condition`.
  std::string in_memory(std::size_t tiled, const std::string& in_tile, std::string& condition) {
    const TiledAxis& axis = tiles_.tiled[tiled];
    const IndexExpr& extent = kernel_.pool.extent(axis.axis);
    const std::string at = plus(origin_.at(axis.axis), in_tile);
    const std::string name = at.find(' ') == std::string::npos ? at : declared("at", at);
    if (!proves_multiple_of(extent, axis.extent, kernel_.pool.bounds()))
      condition += fmt::format("{}{} < {}", condition.empty() ? "" : " && ", name, before_.index_text().tight(extent));
    return name;
  }

  int words_of_line(const StagedLoad& load) const { return std::max(1, load.width * load.bits / 32); }

  // An access of the load: of whole words, or of less.
  std::string loaded_text(const StagedLoad& load, bool scalar) {
    const std::string& pointer = writer_.input(kernel_.pool[load.load].source);
    const IndexExpr position = before_.position(load.load);
    if (load.bits == 4 && load.width == 1) {
      writer_.use("nibble");
      return fmt::format("Words<1>{{{{nibble({}, {})}}}}", pointer, before_.index(position));
    }
    const std::string from =
        address(pointer, kernel_.pool[load.load].dtype, position, before_.index_text(), kernel_.pool.bounds());
    return scalar ? fmt::format("load_element<{}>({})", load.bits * load.width, from)
                  : fmt::format("load_words<{}>({})", words_of_line(load), from);
  }

  // The load's lines of all this thread's items, on their way at once.
  std::string read_lines(const StagedLoad& load, int round) {
    const ExprNode& n = kernel_.pool[load.load];
    const int iterations = iterations_of_round(load, round);
    const std::string name = writer_.unique(writer_.preferred_name(n.source) + "_lines");
    const std::string type = fmt::format("Words<{}>", words_of_line(load));
    writer_.line(fmt::format("{} {}[{}][{}];", type, name, iterations, load.packed));
    const bool scalar = load.width * load.bits < 32 || load.width == 1;
    over_items(load.items, round * kIterationsAtOnce, iterations,
               [&](const std::string& fast, const std::string& rest, const std::string& iteration) {
                 const ExprEmitter::Mark mark = before_.mark();
                 const Place at = place_of(load, fast, rest);
                 std::string condition;
                 for (std::size_t i = 1; i < tiles_.tiled.size(); ++i)
                   if (!at.of_tiled[i].empty())
                     before_.bind(tiles_.tiled[i].axis, in_memory(i, at.of_tiled[i], condition));
                 std::string i = "0";
                 if (load.packed > 1) {
                   i = writer_.unique("i");
                   writer_.line("#pragma unroll");
                   writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", i, load.packed));
                 }
                 const std::string stored = plus(times(at.line, load.packed), i);
                 before_.bind(tiles_.stored, in_memory(0, stored, condition));
                 if (n.args[0] != kNoExpr) {
                   const std::string guard = before_.emit(n.args[0]);
                   condition = condition.empty() ? guard : fmt::format("{} && ({})", condition, guard);
                 }
                 const std::string loaded = loaded_text(load, scalar);
                 const std::string to = fmt::format("{}[{}][{}]", name, iteration, i);
                 writer_.line(condition.empty() ? fmt::format("{} = {};", to, loaded)
                                                : fmt::format("{} = {} ? {} : {}{{}};", to, condition, loaded, type));
                 if (load.packed > 1) writer_.close();
                 before_.rewind(mark);
               });
    return name;
  }

  // Where a word is in the tile; numbers of lines that begin a unit are multiples of it.
  std::string word_text(const StagedLoad& load, const std::string& line, bool line_is_unit, const std::string& place,
                        const std::string& other) const {
    std::string at = load.start == 0 ? tile_ : fmt::format("{} + {}", tile_, load.start);
    const auto add = [&](const std::string& text, int by) {
      if (text != "0") at += " + " + times(text, by);
    };
    add(other, load.other);
    if (line_is_unit) {
      add(line, load.unit);
    } else if (load.unit == tiles_.unit * load.pitch) {
      add(line, load.pitch);
    } else {
      add(fmt::format("{} / {}", line, tiles_.unit), load.unit);
      add(fmt::format("{} % {}", line, tiles_.unit), load.pitch);
    }
    add(place, 1);
    if (load.lines > 0)
      add(fmt::format("{} / {}", line, line_is_unit ? load.lines / tiles_.unit : load.lines), load.gap);
    if (load.spread > 0 && tiles_.tiled[load.along].extent > load.every)
      add(fmt::format("{} / {}", place, load.every), load.spread);
    return at;
  }

  void put_lines(const StagedLoad& load, int round, const std::string& lines) {
    over_items(
        load.items, round * kIterationsAtOnce, iterations_of_round(load, round),
        [&](const std::string& fast, const std::string& rest, const std::string& iteration) {
          const Place at = place_of(load, fast, rest);
          writer_.line(fmt::format("put_lines<{}, {}>({}, {}, {}[{}]);", load.bits, load.width,
                                   word_text(load, at.line, false, at.place, at.other), load.plane, lines, iteration));
        });
  }

  void compute() {
    over_items(tiles_.items, 0, iterations_of(tiles_.items),
               [&](const std::string& fast, const std::string& rest, const std::string&) {
                 std::vector<std::string> in_tile(tiles_.tiled.size());
                 std::string left = rest, condition;
                 const std::vector<std::uint32_t>& axes = split_.outputs[0].axes;
                 for (std::size_t i = 1; i < tiles_.tiled.size(); ++i) {
                   const int extent = tiles_.tiled[i].extent;
                   in_tile[i] =
                       tiles_.tiled.size() == 2 ? left : declared_int("part", fmt::format("{} % {}", left, extent));
                   if (i + 1 < tiles_.tiled.size()) left = declared_int("rest", fmt::format("{} / {}", left, extent));
                   const auto axis = std::ranges::find(kernel_.outputs[0].axes, tiles_.tiled[i].axis);
                   after_.bind(axes[static_cast<std::size_t>(axis - kernel_.outputs[0].axes.begin())],
                               in_memory(i, in_tile[i], condition));
                 }
                 const std::string at = in_memory(0, times(fast, tiles_.vector), condition);
                 if (!condition.empty()) writer_.open(fmt::format("if ({})", condition));
                 bind_stored(at, fast);
                 compute_vector(fast, in_tile);
                 if (!condition.empty()) writer_.close();
               });
  }

  // The group of neighbours, of which this thread's first is `at`.
  void bind_stored(const std::string& at, const std::string&) {
    const std::vector<std::uint32_t>& axes = split_.outputs[0].axes;
    if (tiles_.vector == 1) {
      after_.bind(axes.back(), at);
      return;
    }
    after_.bind(axes[axes.size() - 2], declared("group", fmt::format("{} / {}", at, tiles_.vector)));
  }

  // The staged loads' words of this thread, and how an element of each is written.
  std::map<ExprId, std::string> take_words(const std::string& unit, const std::vector<std::string>& in_tile,
                                           const std::string& variable) {
    std::map<ExprId, std::string> texts;
    for (std::size_t l = 0; l < tiles_.loads.size(); ++l) {
      const StagedLoad& load = tiles_.loads[l];
      const ExprNode& n = kernel_.pool[load.load];
      // What is the same for all lanes stands before their loop.
      const std::string lane = after_.depends_on(staged_[l], split_.outputs[0].axes.back()) ? variable : "0";
      std::string other = "0";
      for (const std::size_t i : load.others)
        other = other == "0" ? in_tile[i] : fmt::format("({} * {} + {})", other, tiles_.tiled[i].extent, in_tile[i]);
      const std::string place = word_text(load, unit, true, in_tile[load.along], other);
      std::vector<std::string> words;
      for (int plane = 0; plane < load.planes; ++plane) {
        words.push_back(writer_.unique(writer_.preferred_name(n.source) + "_t"));
        writer_.line(fmt::format("const Words<{0}> {1} = take_words<{0}>({2}{3}, {4});", tiles_.unit, words.back(),
                                 place, plane == 0 ? "" : fmt::format(" + {}", plane * load.plane), load.pitch));
      }
      std::string raw = load.packed > 1 ? fmt::format("element<{}>({}, {})", 32 / load.packed, words[0], lane)
                                        : fmt::format("{}.w[{}]", words[0], lane);
      if (load.planes == 2) raw = fmt::format("((unsigned long long){}.w[{}] << 32 | {})", words[1], lane, raw);
      texts[staged_[l]] = value_of_bits(n.dtype, raw, writer_);
    }
    return texts;
  }

  void compute_vector(const std::string& unit, const std::vector<std::string>& in_tile) {
    const std::vector<ExprId> roots = roots_of(split_);
    const ExprEmitter::Mark mark = after_.mark();
    if (tiles_.vector == 1) {
      const std::map<ExprId, std::string> texts = take_words(unit, in_tile, "0");
      after_.load_text = [texts](ExprId id) { return texts.contains(id) ? texts.at(id) : std::string(); };
      store_scalars(after_, after_.emit(roots));
      after_.rewind(mark);
      return;
    }
    const std::uint32_t lane_axis = split_.outputs[0].axes.back();
    const std::string e = writer_.unique("e");
    const std::map<ExprId, std::string> texts = take_words(unit, in_tile, e);
    VectorLoads loads(after_, graph_, lane_axis, tiles_.vector);
    loads.declare(roots, e);
    after_.load_text = [texts, others = after_.load_text](ExprId id) {
      return texts.contains(id) ? texts.at(id) : others(id);
    };
    std::vector<VectorStore> stores;
    for (const KernelOutput& output : split_.outputs)
      stores.push_back(VectorStore::plan(after_, output, lane_axis, tiles_.vector));
    after_.emit_independent(roots);
    writer_.line("#pragma unroll");
    writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", e, tiles_.vector));
    const ExprEmitter::Mark lanes = after_.mark();
    after_.bind(lane_axis, e);
    const std::vector<std::string> values = after_.emit(roots);
    for (std::size_t i = 0; i < stores.size(); ++i) stores[i].put(after_, e, values[i]);
    after_.rewind(lanes);
    writer_.close();
    for (VectorStore& store : stores) store.finish(after_);
    after_.rewind(mark);
  }

  const Kernel& kernel_;
  const Graph& graph_;
  const TransposeTiles& tiles_;
  std::vector<ExprId> staged_;  // the staged loads in `split_`, where vectors have a lane
  const Kernel split_;
  KernelWriter writer_;
  ExprEmitter before_, after_;                   // of the tile's filling, and of what is computed from it
  std::map<std::uint32_t, std::string> origin_;  // of tiled axes: this block's first
  std::string tile_;
};

}  // namespace

std::optional<TransposeChoice> choose_transpose(const Kernel& kernel, const Graph& graph) {
  constexpr int kMostMerged = 2;
  std::optional<TransposeChoice> best;
  Kernel candidate = kernel;
  for (int merged = 0; merged <= kMostMerged; ++merged) {
    if (auto tiles = plan_transpose(candidate, graph)) {
      const auto badness = [](const TransposeTiles& t) { return (t.conflicts > 0) + 2 * t.few_points; };
      if (!best || badness(*tiles) < badness(best->tiles)) best = TransposeChoice{candidate, *std::move(tiles)};
      if (badness(best->tiles) == 0) break;
    }
    const std::vector<std::uint32_t>& axes = candidate.outputs[0].axes;
    if (axes.size() < 3 || range_of(candidate.pool.extent(axes.back()), candidate.pool.bounds()).min < 1) break;
    candidate = merge_pair(candidate, axes.size() - 2);
  }
  return best;
}

KernelSource emit_transpose(const TransposeChoice& choice, const Graph& graph) {
  return TransposeEmitter(choice.kernel, graph, choice.tiles).emit();
}

}  // namespace fusec
