#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "codegen/access/vector_access.h"
#include "codegen/expr/emit_expr.h"
#include "codegen/transpose/tiled_permute.h"
#include "ir/type.h"

namespace fusec {
namespace {

class TiledPermuteEmitter {
 public:
  TiledPermuteEmitter(const Kernel& kernel, const Graph& graph, const TiledPermute& tiles)
      : kernel_(kernel),
        graph_(graph),
        tiles_(tiles),
        bounds_(kernel.pool.bounds()),
        result_(kernel.outputs[0]),
        writer_(tile_writer(kernel, graph, tiles.axes, tiles.threads)),
        emitter_(kernel, writer_) {}

  KernelSource emit() {
    writer_.use("dynamic_shared");
    writer_.use("box_tiles");
    find_block();
    for (const PermuteLoad& load : tiles_.loads) copy_lines(load);
    writer_.line("wait_for_vectors();");
    writer_.line("__syncthreads();");
    store_lines();
    return finish_tiles(writer_, kernel_, graph_, tiles_.axes,
                        {.threads = tiles_.threads, .shared_bytes = tiles_.bytes, .schedule = "box_tiles"});
  }

 private:
  std::string declared(std::string_view type, std::string_view preferred_name, const std::string& value) {
    const std::string name = writer_.unique(preferred_name);
    writer_.line(fmt::format("{} {} = {};", type, name, value));
    return name;
  }
  static std::string plus(const std::string& a, const std::string& b) {
    if (a == "0") return b;
    return b == "0" ? a : a + " + " + b;
  }
  static std::string times(const std::string& a, const std::string& by) {
    if (a == "0" || by == "0") return "0";
    return by == "1" ? a : fmt::format("{} * {}", a, by);
  }
  static std::string times(const std::string& a, std::int64_t by) { return times(a, std::to_string(by)); }
  std::string quotient(const std::string& of, std::int64_t by) {
    return by == 1 ? of : fmt::format("(int)quotient<{}>({})", by, of);
  }

  // Where the box begins, and what of each axis is left from there on where that may be less than the box has.
  void find_block() {
    origin_ = find_tile(kernel_, tiles_.axes, writer_, emitter_);
    for (const TiledAxis& tiled : tiles_.axes) {
      const IndexExpr& extent = kernel_.pool.extent(tiled.axis);
      emitter_.bind(tiled.axis, origin_.at(tiled.axis));
      std::string& left = remaining_.emplace_back();
      if (proves_multiple_of(extent, tiled.extent, bounds_)) continue;
      left = declared("const int", "left",
                      fmt::format("(int)min(({}){}, {} - {})", writer_.index_type(), tiled.extent,
                                  emitter_.index_text().tight(extent), origin_.at(tiled.axis)));
    }
  }

  // Elements of this block's stretches.
  std::string run_length(const TileLayout& layout) const {
    const std::int64_t all = run_elements(layout, tiles_.axes);
    if (layout.run.empty() || remaining_[layout.run.back()].empty()) return std::to_string(all);
    const std::size_t last = layout.run.back();
    const std::int64_t beyond = all - tiles_.axes[last].extent * layout.strides[last];
    const std::string of_left = times(remaining_[last], layout.strides[last]);
    return beyond == 0 ? of_left : fmt::format("({} - {})", of_left, -beyond);
  }

  // Declares a line's element of each axis that lines differ in, by the line's number; gives the condition under which
  // there is such a line.
  std::string find_line(const TileLayout& layout, const std::string& line,
                        std::map<std::size_t, std::string>& coordinates) {
    std::string left = line, condition;
    for (std::size_t l = 0; l < layout.lines.size(); ++l) {
      const std::size_t i = layout.lines[l];
      const int extent = tiles_.axes[i].extent;
      if (l + 1 < layout.lines.size()) {
        const std::string above = declared("const int", "above", quotient(left, extent));
        coordinates[i] = declared("const int", "c", fmt::format("{} - {} * {}", left, above, extent));
        left = above;
      } else {
        coordinates[i] = left;
      }
      if (!remaining_[i].empty())
        condition += fmt::format("{}{} < {}", condition.empty() ? "" : " && ", coordinates[i], remaining_[i]);
    }
    return condition;
  }

  template <class Stride>
  static std::string offset(const std::map<std::size_t, std::string>& coordinates, Stride stride) {
    std::string sum = "0";
    for (const auto& [i, coordinate] : coordinates) sum = plus(sum, times(coordinate, stride(i)));
    return sum;
  }

  // Gives the body the line and the item's number in it, of all items of this thread.
  template <class Body>
  void over_items(std::int64_t lines, int of_line, int lanes, Body body) {
    const TileThreadMap items = thread_map_for(lines, of_line, tiles_.threads, lanes);
    const auto loop = [&](const std::string& variable, const std::string& from, std::int64_t to, int step, int unroll) {
      writer_.line(fmt::format("#pragma unroll {}", unroll));
      writer_.open(fmt::format("for (int {0} = {1}; {0} < {2}; {0} += {3})", variable, from, to, step));
    };
    constexpr int kUnrolled = 4;
    if (items.traversal == TileThreadMap::Traversal::kLineByLine || lines == 1) {
      std::string line = "0";
      if (lines > 1) loop(line = writer_.unique("line"), "0", lines, 1, 1);
      const std::string item = writer_.unique("item");
      loop(item, "threadIdx.x", of_line, tiles_.threads, kUnrolled);
      body(line, item);
      writer_.close();
      if (lines > 1) writer_.close();
    } else if (items.traversal == TileThreadMap::Traversal::kLinesAtOnce) {
      const int at_once = items.lines_at_once();
      const bool some_idle = at_once * items.lanes<tiles_.threads, in_iterations = items.iterations_of_line()> 1;
      const std::string first = declared("const int", "first_line", quotient("threadIdx.x", items.lanes));
      std::string item = declared("const int", in_iterations ? "lane" : "item",
                                  fmt::format("threadIdx.x - {} * {}", first, items.lanes));
      const std::string line = writer_.unique("line");
      if (some_idle) writer_.open(fmt::format("if ({} < {})", first, at_once));
      loop(line, first, lines, at_once, in_iterations ? 1 : kUnrolled);
      if (in_iterations) {
        const std::string lane = std::exchange(item, writer_.unique("item"));
        loop(item, lane, of_line, items.lanes, kUnrolled);
      }
      body(line, item);
      if (in_iterations) writer_.close();
      writer_.close();
      if (some_idle) writer_.close();
    } else {
      const std::string item = writer_.unique("item");
      loop(item, "threadIdx.x", lines * of_line, tiles_.threads, kUnrolled);
      const std::string line = declared("const int", "line", quotient(item, of_line));
      body(line, declared("const int", "place", fmt::format("{} - {} * {}", item, line, of_line)));
      writer_.close();
    }
  }

  // Vectors or elements of all lines, on their way to shared memory.
  void copy_lines(const PermuteLoad& load) {
    const ExprNode& n = kernel_.pool[load.load];
    const int bytes = bits(n.dtype) / 8;
    const std::string preferred_name = writer_.preferred_name(n.source),
                      type = fmt::format("const {}* const", storage_type(n.dtype));
    writer_.use(n.dtype);
    const std::string first = declared(type, preferred_name + "_first",
                                       fmt::format("{} + {}", writer_.input(n.source), first_position(load)));
    std::string start = fmt::format("dynamic_shared + {}", load.start);
    if (load.in_vectors) start += fmt::format(" + bytes_behind<16>({})", first);
    const std::string box = declared("unsigned char* const", preferred_name + "_box", start);
    find_places(load);
    std::string element = box;  // the first of the result's
    for (std::size_t i = 0; i < tiles_.axes.size(); ++i)
      if (load.backwards[i]) element += fmt::format(" + ({} - 1) * {}", count_of(i), place_of(load, i));
    tiles_in_shared_[load.load] =
        element == box ? box : declared("unsigned char* const", preferred_name + "_element", element);
    const std::string length = declared("const int", preferred_name + "_length", run_length(load.layout));
    // Vectors, words of smaller elements, or wider elements.
    const int piece = load.in_vectors ? 16 : std::max(4, bytes);
    const int of_line = line_bytes(load.layout, tiles_.axes, bits(n.dtype)) / piece;
    over_items(line_count(load.layout, tiles_.axes), of_line, load.layout.lanes,
               [&](const std::string& line, const std::string& item) {
                 std::map<std::size_t, std::string> at;
                 std::string condition = find_line(load.layout, line, at);
                 if (!condition.empty()) condition += " && ";
                 const std::string from = line_start(first, type, at, load.layout);
                 const std::string in_box = offset(at, [&](std::size_t i) { return place_of(load, i); });
                 std::string byte_offset = times(item, piece);
                 if (load.layout.aligned < load.layout.from)
                   byte_offset += fmt::format(" - bytes_behind<{}>({})", load.layout.from, from);
                 byte_offset = declared("const int", "behind", byte_offset);
                 const std::string to = declared("unsigned char* const", "to", plus(box, in_box));
                 writer_.open(fmt::format("if ({0}{1} > -{2} && {1} < {3})", condition, byte_offset, piece,
                                          times(length, bytes)));
                 copy_piece(load, from, byte_offset, to, length);
                 writer_.close();
               });
  }

  // Elements of the box's axis that this block has.
  std::string count_of(std::size_t i) const {
    return remaining_[i].empty() ? std::to_string(tiles_.axes[i].extent) : remaining_[i];
  }

  // Of the box's first element in memory.
  std::string first_position(const PermuteLoad& load) {
    const ExprEmitter::Mark mark = emitter_.mark();
    for (std::size_t i = 0; i < tiles_.axes.size(); ++i)
      if (load.backwards[i])
        emitter_.bind(tiles_.axes[i].axis,
                      declared("const " + writer_.index_type(), "last",
                               fmt::format("{} + {} - 1", origin_.at(tiles_.axes[i].axis), count_of(i))));
    const std::string position = emitter_.index_text().tight(emitter_.position(load.load));
    emitter_.rewind(mark);
    for (const TiledAxis& tiled : tiles_.axes) emitter_.bind(tiled.axis, origin_.at(tiled.axis));
    return position;
  }

  // Declares what of places in shared memory depends on the launch's sizes: lines are as far apart there as in memory,
  // by the remainder of 16 bytes.
  void find_places(const PermuteLoad& load) {
    std::vector<std::string>& places = places_[load.load];
    for (std::size_t i = 0; i < tiles_.axes.size(); ++i) {
      std::string& place = places.emplace_back(std::to_string(load.places[i]));
      if (!load.place_varies(i)) continue;
      const int bytes = bits(kernel_.pool[load.load].dtype) / 8;
      place = declared("const int", "place",
                       fmt::format("{} + (int)({} & 15)", load.places[i] / 16 * 16,
                                   emitter_.index_text().tight(load.layout.steps[i] * bytes)));
    }
  }
  std::string place_of(const PermuteLoad& load, std::size_t i) const { return places_.at(load.load)[i]; }

  // Bytes from one element of the box's axis to the next.
  std::string step_of(const PermuteLoad& load, std::size_t i) const {
    const std::string place = place_of(load, i);
    return load.backwards[i] && place != "0" ? "-" + place : place;
  }
  // The same less what the axis inside of it has gone already.
  std::string step_beyond(const PermuteLoad& load, std::size_t i, std::size_t inside) const {
    if (!load.place_varies(i) && !load.place_varies(inside)) {
      const auto step = [&](std::size_t a) { return load.backwards[a] ? -load.places[a] : load.places[a]; };
      return std::to_string(step(i) - step(inside) * tiles_.axes[inside].extent);
    }
    const std::string more = step_of(load, inside);
    if (more == "0") return step_of(load, i);
    return fmt::format("({} - ({}) * {})", step_of(load, i), more, tiles_.axes[inside].extent);
  }

  void copy_piece(const PermuteLoad& load, const std::string& from, const std::string& byte_offset,
                  const std::string& to, const std::string& length) {
    const ExprNode& n = kernel_.pool[load.load];
    const int element_bits = bits(n.dtype);
    const IndexExpr all = *element_count(graph_.tensor(n.source).shape);
    const std::string place = fmt::format("(const unsigned char*){} + {}", from, byte_offset);
    const std::string end = fmt::format("{} + {}", writer_.input(n.source), emitter_.index_text().tight(all));
    const bool whole = proves_multiple_of(all, (load.in_vectors ? 128 : 32) / std::min(32, element_bits), bounds_);
    if (load.in_vectors)
      writer_.line(
          fmt::format("copy_vector(shared_address({}) + {}, {}{});", to, byte_offset, place, whole ? "" : ", " + end));
    else if (element_bits >= 32)
      writer_.line(
          fmt::format("copy_element<{}>(shared_address({}) + {}, {});", element_bits / 8, to, byte_offset, place));
    else
      writer_.line(fmt::format("put_elements<{}, {}>({} + {}, load_word<{}, {}>({}, {}), {}, {});", element_bits,
                               words_are_whole(load.layout, element_bits), to, byte_offset, element_bits, whole, place,
                               whole ? "0" : fmt::format("{} - (const {}*)({})", end, storage_type(n.dtype), place),
                               element_bits == 8 ? byte_offset : fmt::format("{} / {}", byte_offset, element_bits / 8),
                               length));
  }

  // A line's first element in memory, by its place on each axis that lines differ in.
  std::string line_start(const std::string& first, const std::string& type,
                         const std::map<std::size_t, std::string>& at, const TileLayout& layout) {
    const std::string distance =
        offset(at, [&](std::size_t i) { return emitter_.index_text().tight(layout.steps[i]); });
    if (distance == "0") return first;
    const char* const wide = writer_.wide() ? "(long long)" : "";
    return declared(type, "line_start", fmt::format("{} + {}({})", first, wide, distance));
  }

  // A word of the result to a lane; words at either end of a line by element.
  void store_lines() {
    const int element_bits = bits(result_.type.dtype), bytes = element_bits / 8, each = elements_of_word(element_bits);
    const TileLayout& layout = tiles_.stored;
    const std::string type = fmt::format("{}* const", storage_type(result_.type.dtype));
    writer_.use(result_.type.dtype);
    const IndexExpr position = simplify(flat_index(result_.type.shape, result_.index), bounds_);
    const std::string first =
        declared(type, writer_.preferred_name(result_.value) + "_first",
                 fmt::format("{} + {}", writer_.output(result_.value), emitter_.index_text().tight(position)));
    const std::string length =
        declared("const int", writer_.preferred_name(result_.value) + "_length", run_length(layout));
    const int of_line = line_bytes(layout, tiles_.axes, element_bits) / std::max(4, bytes);
    over_items(line_count(layout, tiles_.axes), of_line, layout.lanes,
               [&](const std::string& line, const std::string& word) {
                 coordinates_.clear();
                 const std::string condition = find_line(layout, line, coordinates_);
                 const std::string to = line_start(first, type, coordinates_, layout);
                 std::string place = times(word, each);
                 if (layout.aligned < kSectorBytes)
                   place += fmt::format(" - bytes_behind<{}>({}){}", kSectorBytes, to,
                                        bytes == 1 ? "" : fmt::format(" / {}", bytes));
                 const std::string at = declared("const int", "at", place);
                 lines_.clear();
                 for (const PermuteLoad& load : tiles_.loads) {
                   const std::string in_box = offset(coordinates_, [&](std::size_t i) { return step_of(load, i); });
                   lines_[load.load] = in_box == "0" ? tiles_in_shared_.at(load.load)
                                                     : declared("unsigned char* const", "box_line",
                                                                plus(tiles_in_shared_.at(load.load), in_box));
                 }
                 if (!condition.empty()) writer_.open(fmt::format("if ({})", condition));
                 store_word(to, at, length, each);
                 if (!condition.empty()) writer_.close();
               });
  }

  void store_word(const std::string& to, const std::string& at, const std::string& length, int each) {
    const DType dtype = result_.type.dtype;
    const std::string words = writer_.unique(writer_.preferred_name(result_.value) + "_w");
    const int count = std::max(1, bits(dtype) / 32);
    writer_.open(each == 1 ? fmt::format("if ((unsigned){} < (unsigned){})", at, length)
                           : fmt::format("if ({0} >= 0 && {0} <= {1} - {2})", at, length, each));
    writer_.line(fmt::format("Words<{}> {} = {{}};", count, words));
    const int together = elements_together(each);
    const std::string group = each > together ? open_unrolled("group", each / together) : "0";
    const ExprEmitter::Mark mark = emitter_.mark();
    const std::vector<std::string> parts = divided(plus(at, times(group, together)));
    const std::string e = together > 1 ? open_unrolled("e", together) : "0";
    with_value(parts, e, [&](const std::string& value) {
      writer_.line(put_text(dtype, words, plus(times(group, together), e), value, writer_));
    });
    if (together > 1) writer_.close();
    emitter_.rewind(mark);
    if (each > together) writer_.close();
    writer_.line(fmt::format("store_words<{}>({} + {}, {});", count, to, at, words));
    if (each > 1 && !words_are_whole(tiles_.stored, bits(result_.type.dtype))) {
      writer_.close("} else {");
      writer_.reopen();
      const std::string place = writer_.unique("place");
      writer_.line("#pragma unroll 1");
      writer_.open(
          fmt::format("for (int {0} = max({1}, 0); {0} < min({1} + {2}, {3}); ++{0})", place, at, each, length));
      with_value(divided(place), "0", [&](const std::string& value) {
        writer_.line(fmt::format("{}[{}] = {};", to, place, narrow(dtype, value)));
      });
      writer_.close();
    }
    writer_.close();
  }

  // No line begins or ends within a word.
  bool words_are_whole(const TileLayout& layout, int element_bits) const {
    if (layout.aligned < 4) return false;
    const int each = elements_of_word(element_bits);
    const bool cut = !layout.run.empty() && !remaining_[layout.run.back()].empty();
    return run_elements(layout, tiles_.axes) % each == 0 && (!cut || layout.strides[layout.run.back()] % each == 0);
  }

  // So many neighbours of a word differ in their place along the fastest axis alone.
  int elements_together(int each) const {
    const TileLayout& layout = tiles_.stored;
    if (layout.run.empty() || !words_are_whole(layout, bits(result_.type.dtype))) return 1;
    return layout.run.size() == 1 ? each : std::gcd(each, tiles_.axes[layout.run[0]].extent);
  }

  std::string open_unrolled(std::string_view preferred_name, int count) {
    const std::string variable = writer_.unique(preferred_name);
    writer_.line("#pragma unroll");
    writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", variable, count));
    return variable;
  }

  // A place in a line, and what it is of each axis of the run on.
  std::vector<std::string> divided(const std::string& place) {
    const TileLayout& layout = tiles_.stored;
    std::vector<std::string> quotients = {declared("const int", "j", place)};
    for (std::size_t r = 0; r + 1 < layout.run.size(); ++r)
      quotients.push_back(
          declared("const int", "above", quotient(quotients.back(), tiles_.axes[layout.run[r]].extent)));
    return quotients;
  }

  // Gives the value of the line's element that is e further along the fastest axis.
  template <class Body>
  void with_value(const std::vector<std::string>& quotients, const std::string& e, Body body) {
    const ExprEmitter::Mark mark = emitter_.mark();
    const std::vector<std::size_t>& run = tiles_.stored.run;
    std::map<std::size_t, std::string> coordinates = coordinates_;
    for (std::size_t r = 0; r < run.size(); ++r) {
      std::string at = quotients[r];
      if (r + 1 < run.size()) at = fmt::format("({} - {} * {})", at, quotients[r + 1], tiles_.axes[run[r]].extent);
      coordinates[run[r]] = r == 0 ? plus(at, e) : at;
    }
    for (const auto& [i, coordinate] : coordinates)
      emitter_.bind(tiles_.axes[i].axis,
                    declared("const " + writer_.index_type(), "i", plus(origin_.at(tiles_.axes[i].axis), coordinate)));
    emitter_.load_text = [&](ExprId id) -> std::string { return element_text(id, quotients, e); };
    body(emitter_.emit(result_.expr));
    emitter_.load_text = nullptr;
    emitter_.rewind(mark);
  }

  // What one element of the result reads: its place in the line by each axis's distance, less what the axes inside of
  // it have gone already.
  std::string element_text(ExprId id, const std::vector<std::string>& quotients, const std::string& e) {
    const auto load = std::ranges::find(tiles_.loads, id, &PermuteLoad::load);
    if (load == tiles_.loads.end()) return "";
    const std::vector<std::size_t>& run = tiles_.stored.run;
    std::string place = lines_.at(id);
    for (std::size_t r = 0; r < quotients.size(); ++r) {
      const std::string step = r == 0 ? step_of(*load, run[r]) : step_beyond(*load, run[r], run[r - 1]);
      if (step != "0") place += fmt::format(" + {} * {}", quotients[r], step);
    }
    if (e != "0") place += fmt::format(" + {} * {}", e, step_of(*load, run[0]));
    const DType dtype = kernel_.pool[id].dtype;
    return widen(dtype, fmt::format("*(const {}*)({})", storage_type(dtype), place));
  }

  const Kernel& kernel_;
  const Graph& graph_;
  const TiledPermute& tiles_;
  const Bounds& bounds_;
  const KernelOutput& result_;
  KernelWriter writer_;
  ExprEmitter emitter_;
  std::map<std::uint32_t, std::string> origin_;        // of the box's axes
  std::vector<std::string> remaining_;                 // of each of them; "" where all of it is always there
  std::map<ExprId, std::vector<std::string>> places_;  // of each load: bytes between neighbours along the box's axes
  std::map<ExprId, std::string> tiles_in_shared_, lines_;  // of each load: its first element, and that of the line
  std::map<std::size_t, std::string> coordinates_;         // of the line that is stored
};

}  // namespace

KernelSource emit_tiled_permute(const Kernel& kernel, const Graph& graph, const TiledPermute& tiles) {
  return TiledPermuteEmitter(kernel, graph, tiles).emit();
}

}  // namespace fusec
