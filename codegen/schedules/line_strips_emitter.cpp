#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>

#include "analysis/target.h"
#include "codegen/emit_expr.h"
#include "codegen/schedules/box_walk.h"
#include "codegen/schedules/line_strips.h"
#include "codegen/schedules/vector_access.h"
#include "ir/type.h"

namespace fusec {
namespace {

constexpr int kNowhere = 1 << 30;

class LineStripsEmitter {
 public:
  LineStripsEmitter(const Kernel& kernel, const Graph& graph, const LineStrips& strips)
      : kernel_(kernel),
        graph_(graph),
        strips_(strips),
        bounds_(kernel.pool.bounds()),
        stored_(strips.tiled[0]),
        along_(strips.tiled[1]),
        result_(kernel.outputs[0]),
        result_bits_(bits(result_.type.dtype)),
        each_(elements_of_word(result_bits_)),
        sector_(8 * kSectorBytes / result_bits_),
        position_(simplify(flat_index(result_.type.shape, result_.index), bounds_)),
        writer_(tile_writer(kernel, graph, strips.tiled, strips.threads)),
        emitter_(kernel, writer_) {}

  KernelSource emit() {
    writer_.use("dynamic_shared");
    writer_.use("line_strips");
    writer_.use("kept");
    writer_.use(result_.type.dtype);
    find_block();
    for (const StripLines& lines : strips_.loads) find_strip(lines);
    if (along_.extent > strips_.step)
      go_along();
    else
      take_whole();
    return finish_tiles(writer_, kernel_, graph_, strips_.tiled,
                        {.threads = strips_.threads, .shared_bytes = strips_.bytes, .schedule = "transpose"});
  }

 private:
  std::string declared(std::string_view type, std::string_view wish, const std::string& value) {
    const std::string name = writer_.unique(wish);
    writer_.line(fmt::format("const {} {} = {};", type, name, value));
    return name;
  }
  static std::string plus(const std::string& a, const std::string& b) {
    if (a == "0") return b;
    return b == "0" ? a : a + " + " + b;
  }

  // Where the strip begins, and what of the tensor is left from there on along either axis.
  void find_block() {
    origin_ = find_tile(kernel_, strips_.tiled, writer_, emitter_);
    lane_ = declared("int", "lane", fmt::format("threadIdx.x % {}", kWarpLanes));
    warp_ = declared("int", "warp", fmt::format("threadIdx.x / {}", kWarpLanes));
    left_ = declared("int", "left", left_of(stored_));
    lines_ = declared("int", "lines", fmt::format("min({}, {})", left_, stored_.extent + strips_.more_lines));
    rows_ = declared("int", "rows", fmt::format("min({}, {})", left_of(along_), along_.extent));
  }
  std::string left_of(const TiledAxis& tiled) {
    const std::string extent = emitter_.index_text().tight(kernel_.pool.extent(tiled.axis));
    const std::string& first = origin_.at(tiled.axis);
    return first == "0" ? "(int)" + extent : fmt::format("(int)({} - {})", extent, first);
  }

  // A load's lines in memory and in shared memory.
  void find_strip(const StripLines& lines) {
    const ExprNode& n = kernel_.pool[lines.load];
    const int size = bits(n.dtype) / 8;
    writer_.use(n.dtype);
    Load& load = loads_[lines.load];
    const ExprEmitter::Mark mark = emitter_.mark();
    emitter_.bind(stored_.axis, origin_.at(stored_.axis));
    emitter_.bind(along_.axis, origin_.at(along_.axis));
    const IndexExpr position = emitter_.position(lines.load);
    const std::string first = emitter_.index_text().tight(position);
    const IndexExpr stride = lines.evenly ? *step_along(position, stored_.axis, bounds_) : IndexExpr(0);
    load.wish = writer_.wish(n.source);
    load.name = writer_.unique(load.wish + "_strip");
    const auto behind = [&](const IndexExpr& of, const std::string& text) {
      const IndexExpr bytes = simplify(of * size, bounds_);
      if (const auto known = bytes.as_constant()) return std::to_string(*known % 32);
      return proves_multiple_of(bytes, 32, bounds_) ? std::string("0") : fmt::format("(int)({} * {} & 31)", text, size);
    };
    const bool aligned = proves_multiple_of(position - IndexExpr::axis(along_.axis), kSectorBytes / size, bounds_) &&
                         along_.extent * size % 32 == 0;
    load.stride = emitter_.index_text().tight(stride);
    writer_.line(fmt::format("const Strip<{}, {}, {}, {}> {} = {{dynamic_shared + {}, {}, {}}};", lines.ring,
                             lines.pitch, lines.group, lines.gap, load.name, lines.start,
                             aligned ? "0" : behind(position, first), behind(stride, load.stride)));
    if (lines.ring > 0)
      load.first = declared("unsigned char* const", load.wish + "_first",
                            fmt::format("(const unsigned char*)({} + {})", writer_.input(n.source), first));
    emitter_.rewind(mark);
  }

  void copy(const StripLines& lines, const std::string& step) {
    const ExprNode& n = kernel_.pool[lines.load];
    const Load& load = loads_.at(lines.load);
    const int size = bits(n.dtype) / 8;
    const IndexExpr all = *element_count(graph_.tensor(n.source).shape);
    const bool whole = proves_multiple_of(all, 16 / size, bounds_);
    const std::string end =
        whole ? "nullptr" : fmt::format("{} + {}", writer_.input(n.source), emitter_.index_text().tight(all));
    const std::string length = fmt::format("{} * {}", rows_, size);
    if (lines.ring > 0) {
      const std::string bytes = fmt::format("{}ll * {}", size, load.stride);
      writer_.line(fmt::format("copy_step<{}, {}, {}, {}>({}, {}, {}, {}, {}, {}, {});", strips_.step * size,
                               strips_.threads, lines.apart, whole, load.name, load.first, bytes, lines_, step, length,
                               end));
      return;
    }
    const std::string line = writer_.unique("line");
    writer_.line(fmt::format("copy_lines<{}, {}, {}>({}, {}, {}, {}, {}, [&](int {}) {{ return {}; }});", lines.pieces,
                             strips_.threads, whole, load.name, writer_.input(n.source), lines_, length, end, line,
                             line_begin(lines, plus(origin_.at(stored_.axis), line))));
  }
  // The element of the tensor in which a line begins, by its number in the tensor.
  std::string line_begin(const StripLines& lines, const std::string& line) {
    const ExprEmitter::Mark mark = emitter_.mark();
    emitter_.bind(stored_.axis, line.find(' ') == std::string::npos ? line : fmt::format("({})", line));
    emitter_.bind(along_.axis, origin_.at(along_.axis));
    const std::string begin = emitter_.index(emitter_.position(lines.load));
    emitter_.rewind(mark);
    return begin;
  }
  void copy_all(const std::string& step) {
    for (const StripLines& lines : strips_.loads) copy(lines, step);
  }
  void wait() {
    writer_.line("wait_for_vectors();");
    writer_.line("__syncthreads();");
  }

  // Lines of the result that lie as many apart as a sector has elements begin alike by sectors, and so do a lane's
  // elements of the load's lines: what is known of these stands in front of the loop, of `turns_` lines a warp.
  void find_places() {
    const int of_warp = strips_.lines_of_warp, warps = strips_.threads / kWarpLanes, apart = strips_.apart;
    lanes_ = kWarpLanes / of_warp;
    const bool in_groups = of_warp > 1 && apart <= warps;
    rows_of_turn_ = in_groups ? warps * of_warp : warps;
    rows_at_once_ = along_.extent > strips_.step ? strips_.step : std::max(sector_, of_warp * std::max(warps, apart));
    turns_ = rows_at_once_ / (warps * of_warp);
    std::string row = warp_;
    if (in_groups)
      row = apart == 1 ? fmt::format("{} * {}", warp_, of_warp)
                       : fmt::format("{0} / {1} * {2} + {0} % {1}", warp_, apart, of_warp * apart);
    if (strips_.joined) row += " - 1";  // what is in the first line's first sector and belongs to the line before
    first_row_ = row == warp_ ? row : declared("int", "first_row", row);
    lane_row_ = of_warp == 1 ? first_row_
                             : declared("int", "lane_row",
                                        plus(first_row_, times(fmt::format("{} / {}", lane_, lanes_), apart)));
    place_ = writer_.unique("place"), end_ = writer_.unique("end");
    writer_.line(fmt::format("int {0}[{2}], {1}[{2}];", place_, end_, turns_));
    const int rounds = rounds_of_ends();
    if (rounds > 0) {
      end_place_ = writer_.unique("end_place"), end_row_ = writer_.unique("end_row");
      writer_.line(fmt::format("int {0}[{2}][{3}], {1}[{2}][{3}];", end_place_, end_row_, turns_, rounds));
    }
    for (const StripLines& lines : strips_.loads) {
      Load& load = loads_.at(lines.load);
      load.slot = writer_.unique(load.wish + "_slot"), load.behind = writer_.unique(load.wish + "_behind");
      writer_.line(fmt::format("int {0}[{2}][{3}], {1}[{2}][{3}];", load.slot, load.behind, turns_, each_ + rounds));
    }
    const ExprEmitter::Mark mark = emitter_.mark();
    const std::string turn = open_unrolled("turn", turns_);
    const Line line = line_at(row_of("0", lane_row_, turn));
    const std::string lane = of_warp == 1 ? lane_ : fmt::format("{} % {}", lane_, lanes_);
    writer_.line(fmt::format("{}[{}] = kept({});", place_, turn, plus(line.up, times(lane, each_))));
    writer_.line(fmt::format(
        "{}[{}] = kept({});", end_, turn,
        strips_.whole_sectors ? line.below : fmt::format("min({}, {} + {})", line.below, line.up, stored_.extent)));
    find_elements(turn, each_, 0, [&](const std::string& e) { return fmt::format("{}[{}] + {}", place_, turn, e); });
    if (strips_.joined)
      find_joined_ends(turn, line.below, lane);
    else if (rounds > 0)
      find_ends(turn, rounds);
    writer_.close();
    emitter_.rewind(mark);
  }
  // Of a line of the result in this strip: the first place that begins a sector, the first that no whole sector has.
  struct Line {
    std::string up, below;
  };
  Line line_at(const std::string& row) {
    if (strips_.whole_sectors) return {.up = "0", .below = fmt::format("min({}, {})", left_, stored_.extent)};
    emitter_.bind(along_.axis, declared(writer_.index_type(), "i", plus(origin_.at(along_.axis), row)));
    emitter_.bind(stored_.axis, origin_.at(stored_.axis));
    const std::string begin = declared(writer_.index_type(), "begin", emitter_.index(position_));
    const std::string up = declared("int", "up", fmt::format("(int)(-{} & {})", begin, sector_ - 1));
    return {.up = up,
            .below = declared("int", "below", fmt::format("{0} - (int)({1} + {0} & {2})", left_, begin, sector_ - 1))};
  }
  static std::string times(const std::string& a, int by) {
    return by == 1 || a == "0" ? a : fmt::format("{} * {}", a, by);
  }
  std::string row_of(const std::string& from, const std::string& first_row, const std::string& turn) const {
    return plus(plus(from, first_row), turn == "0" ? turn : times(turn, rows_of_turn_));
  }
  // Bytes behind a sector's beginning that a line of the strip begins.
  std::string behind(const StripLines& lines, const std::string& line) {
    if (lines.evenly) return fmt::format("{}.behind({})", loads_.at(lines.load).name, line);
    return fmt::format("(int)(({}) * {} & 31)", line_begin(lines, plus(origin_.at(stored_.axis), line)),
                       bits(kernel_.pool[lines.load].dtype) / 8);
  }
  // Places of so many elements, the first of which has this number.
  template <class PlaceOf>
  void find_elements(const std::string& turn, int count, int first, PlaceOf place_of) {
    const std::string e = open_unrolled("e", count);
    const std::string place = declared("int", "line", place_of(e));
    for (const StripLines& lines : strips_.loads) {
      const Load& load = loads_.at(lines.load);
      const std::string number = plus(e, std::to_string(first));
      writer_.line(fmt::format("{}[{}][{}] = kept({}.slot({}));", load.slot, turn, number, load.name, place));
      writer_.line(fmt::format("{}[{}][{}] = kept({});", load.behind, turn, number, behind(lines, place)));
    }
    writer_.close();
  }

  // Of the sector in which a line ends and the next one begins, a lane's word, or its element where all lanes have the
  // same line: places, and which of the two lines has each.
  int of_end() const { return strips_.lines_of_warp == 1 ? 1 : each_; }
  void find_joined_ends(const std::string& turn, const std::string& below, const std::string& lane) {
    const std::string e = open_unrolled("e", of_end());
    const std::string k = declared("int", "k", plus(times("(" + lane + ")", of_end()), e));
    const std::string beyond = declared("int", "beyond", fmt::format("{} + {} - {}", below, k, left_));
    const std::string at = fmt::format("{}[{}][{}]", end_place_, turn, e);
    writer_.line(fmt::format("{0} = kept({1} < 0 ? {2} + {1} : {1});", at, beyond, left_));
    writer_.line(fmt::format("{}[{}][{}] = kept({} < {} && {} < {} ? (int)({} >= 0) : {});", end_row_, turn, e, below,
                             left_, k, sector_, beyond, kNowhere));
    writer_.close();
    find_elements(turn, of_end(), each_,
                  [&](const std::string& n) { return fmt::format("{}[{}][{}]", end_place_, turn, n); });
  }

  // Elements of sectors in which lines end, of as many lines at a time as a warp has lanes for: of each line its first
  // and its last ones. `end_row_` is which line, or one of no tensor.
  int elements_of_ends() const { return 2 * sector_; }
  int ends_at_once() const { return std::clamp(kWarpLanes / elements_of_ends(), 1, strips_.lines_of_warp); }
  // Places that are found in front of the loop.
  int rounds_of_ends() const {
    if (strips_.whole_sectors) return 0;
    if (strips_.joined) return of_end();
    return strips_.lines_of_warp / ends_at_once() * ((elements_of_ends() + kWarpLanes - 1) / kWarpLanes);
  }
  void find_ends(const std::string& turn, int rounds) {
    const int lanes = kWarpLanes / ends_at_once(), of_line = (elements_of_ends() + kWarpLanes - 1) / kWarpLanes;
    const std::string round = open_unrolled("round", rounds);
    std::string number = of_line == 1 ? times(round, ends_at_once()) : fmt::format("{} / {}", round, of_line);
    if (ends_at_once() > 1) number = plus(number, fmt::format("{} / {}", lane_, lanes));
    const std::string beyond = declared("int", "beyond", times("(" + number + ")", strips_.apart));
    const ExprEmitter::Mark mark = emitter_.mark();
    const auto [up, below] = line_at(plus(row_of("0", first_row_, turn), beyond));
    emitter_.rewind(mark);
    const std::string lane = ends_at_once() == 1 ? lane_ : fmt::format("{} % {}", lane_, lanes);
    const std::string k =
        declared("int", "k", of_line == 1 ? lane : plus(lane, fmt::format("{} % {} * {}", round, of_line, kWarpLanes)));
    const std::string at = fmt::format("{}[{}][{}]", end_place_, turn, round);
    const std::string row = fmt::format("{}[{}][{}]", end_row_, turn, round);
    const std::string head = declared("bool", "head", fmt::format("{} < {}", k, sector_));
    writer_.line(fmt::format("{0} = kept({1} ? {2} : {3} + {2} - {4});", at, head, k, below, sector_));
    const std::string& origin = origin_.at(stored_.axis);
    const std::string first = origin == "0" ? "" : fmt::format("{} == 0 && ", origin);
    const std::string tail = fmt::format("{0} >= {1} && {0} < {1} + {2}", below, up, stored_.extent);
    writer_.line(fmt::format("{} = kept({} < {} && ({} ? {}{} < {} : {}) ? {} : {});", row, at, left_, head, first, at,
                             up, tail, beyond, kNowhere));
    writer_.close();
    find_elements(turn, rounds, each_,
                  [&](const std::string& e) { return fmt::format("{}[{}][{}]", end_place_, turn, e); });
  }

  void take_whole() {
    copy_all("0");
    find_places();
    wait();
    const std::string from = writer_.unique("from");
    writer_.line("#pragma unroll 1");
    writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; {0} += {2})", from,
                             strips_.joined ? fmt::format("{} + 1", rows_) : rows_, rows_at_once_));
    store_rows(from);
    writer_.close();
  }

  // What ends within a sector waits for the next line's beginning.
  void go_along() {
    copy_all("0");
    find_places();
    const std::string step = writer_.unique("step");
    writer_.line("#pragma unroll 1");
    writer_.open(fmt::format("for (int {0} = 0;; ++{0})", step));
    wait();
    store_rows(fmt::format("{} * {}", step, strips_.step));
    const int waits = strips_.joined ? 1 : 0;
    writer_.line(
        fmt::format("if (({} + 1) * {} >= {}) break;", step, strips_.step, plus(rows_, std::to_string(waits))));
    writer_.line("__syncthreads();");
    copy_all(fmt::format("{} + 1", step));
    writer_.close();
  }

  std::string open_unrolled(std::string_view wish, int count) {
    if (count == 1) {
      writer_.open("");
      return "0";
    }
    const std::string variable = writer_.unique(wish);
    writer_.line("#pragma unroll");
    writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", variable, count));
    return variable;
  }

  // Lines of the result: words of whole sectors, then elements of others.
  void store_rows(const std::string& from) {
    const ExprEmitter::Mark mark = emitter_.mark();
    const std::string turn = open_unrolled("turn", turns_);
    const std::string row = declared("int", "row", row_of(from, lane_row_, turn));
    writer_.open(fmt::format("if ((unsigned){} < (unsigned){})", row, rows_));
    bind_row(row);
    const std::string place = fmt::format("{}[{}]", place_, turn);
    const std::string to = pointer_to(place);
    for (const StripLines& lines : strips_.loads) {
      if (!lines.evenly) continue;
      Load& load = loads_.at(lines.load);
      load.elements = writer_.unique(load.wish + "_elements");
      writer_.line(fmt::format("const unsigned char* {}[{}];", load.elements, each_));
      const std::string e = open_unrolled("e", each_);
      writer_.line(fmt::format("{}[{}] = {};", load.elements, e, element_text(lines, turn, e, row)));
      writer_.close();
    }
    const int of_turn = lanes_ * each_;
    const std::string word = open_unrolled("word", (stored_.extent + of_turn - 1) / of_turn);
    const std::string at =
        declared("int", "at", plus(place, word == "0" ? word : fmt::format("{} * {}", word, of_turn)));
    writer_.open(fmt::format("if ({} < {}[{}])", at, end_, turn));
    store_word(to, row, at, word, of_turn);
    for (int i = 0; i < 3; ++i) writer_.close();
    emitter_.rewind(mark);
    if (strips_.joined)
      store_joined_end(turn, row);
    else if (rounds_of_ends() > 0)
      store_ends(turn, row_of(from, first_row_, turn));
    writer_.close();
    emitter_.rewind(mark);
  }
  void bind_row(const std::string& row) {
    emitter_.bind(along_.axis, declared(writer_.index_type(), "i", plus(origin_.at(along_.axis), row)));
    emitter_.emit_independent({result_.expr});
  }
  std::string pointer_to(const std::string& place) {
    const ExprEmitter::Mark mark = emitter_.mark();
    emitter_.bind(stored_.axis, plus(origin_.at(stored_.axis), place));
    const std::string at = emitter_.index(position_);
    emitter_.rewind(mark);
    const std::string to = writer_.unique("to");
    writer_.line(fmt::format("{}* const {} = {} + kept({});", storage_type(result_.type.dtype), to,
                             writer_.output(result_.value), at));
    return to;
  }
  std::string element_text(const StripLines& lines, const std::string& turn, const std::string& e,
                           const std::string& row) const {
    const Load& load = loads_.at(lines.load);
    return fmt::format("{0}.begin + kept({1}[{3}][{4}] + {0}.in_ring({2}[{3}][{4}] + {5} * {6}))", load.name, load.slot,
                       load.behind, turn, e, row, bits(kernel_.pool[lines.load].dtype) / 8);
  }

  void store_word(const std::string& to, const std::string& row, const std::string& at, const std::string& word,
                  int of_turn) {
    const DType dtype = result_.type.dtype;
    const int count = std::max(1, result_bits_ / 32);
    const std::string words = writer_.unique(writer_.wish(result_.value) + "_w");
    const std::string parts = each_ == 4 ? writer_.unique("bytes") : words;
    writer_.line(each_ == 4 ? fmt::format("Words<1> {}[4] = {{}};", parts)
                            : fmt::format("Words<{}> {} = {{}};", count, words));
    const std::string e = each_ > 1 ? open_unrolled("e", each_) : "0";
    const std::string value = value_at(plus(at, e), [&](const StripLines& lines) {
      const Load& load = loads_.at(lines.load);
      if (lines.evenly) return plus(fmt::format("{}[{}]", load.elements, e), times(word, lines.slot(of_turn)));
      const std::string line = declared("int", "line", plus(at, e));
      return fmt::format("{0}.begin + ({0}.slot({1}) + {2} + {3} * {4})", load.name, line, behind(lines, line), row,
                         bits(kernel_.pool[lines.load].dtype) / 8);
    });
    writer_.line(each_ == 4 ? put_text(dtype, fmt::format("{}[{}]", parts, e), "0", value, writer_)
                            : put_text(dtype, words, e, value, writer_));
    if (each_ > 1) writer_.close();
    if (each_ == 4) writer_.line(fmt::format("const Words<1> {} = word_of_bytes({});", words, parts));
    writer_.line(
        fmt::format("store_words<{}>({}, {});", count, plus(to, word == "0" ? word : times(word, of_turn)), words));
  }

  // Its text at a place of the line; `from` gives where a load's element is.
  template <class From>
  std::string value_at(const std::string& place, From from) {
    emitter_.bind(stored_.axis, declared(writer_.index_type(), "j", plus(origin_.at(stored_.axis), place)));
    emitter_.load_text = [&](ExprId id) -> std::string {
      const auto lines = std::ranges::find(strips_.loads, id, &StripLines::load);
      if (lines == strips_.loads.end()) return "";
      const DType dtype = kernel_.pool[id].dtype;
      return widen(dtype, fmt::format("*(const {}*)({})", storage_type(dtype), from(*lines)));
    };
    const std::string value = emitter_.emit(result_.expr);
    emitter_.load_text = nullptr;
    return value;
  }

  // A word of which both lines have some, or either all; by element where one of them is another block's.
  void store_joined_end(const std::string& turn, const std::string& of_row) {
    const ExprEmitter::Mark mark = emitter_.mark();
    const DType dtype = result_.type.dtype;
    const int count = of_end();
    const auto each = [&](const auto& body) {
      const ExprEmitter::Mark inside = emitter_.mark();
      const std::string e = open_unrolled("e", count);
      const std::string row = declared("int", "row", fmt::format("{} + {}[{}][{}]", of_row, end_row_, turn, e));
      body(e, row, fmt::format("{}[{}][{}]", end_place_, turn, e));
      writer_.close();
      emitter_.rewind(inside);
    };
    const auto value = [&](const std::string& e, const std::string& row, const std::string& place) {
      return value_at(place, [&](const StripLines& lines) {
        return element_text(lines, turn, plus(e, std::to_string(each_)), row);
      });
    };
    const auto store_element = [&](const std::string& e, const std::string& row, const std::string& place) {
      writer_.open(fmt::format("if ((unsigned){} < (unsigned){})", row, rows_));
      bind_row(row);
      const std::string to = pointer_to(place), text = value(e, row, place);
      writer_.line(fmt::format("*{} = {};", to, narrow(dtype, text)));
      writer_.close();
    };
    if (count == 1) {
      each(store_element);
    } else {
      const std::string first = declared("int", "first_of_word", fmt::format("{} + {}[{}][0]", of_row, end_row_, turn));
      const std::string last =
          declared("int", "last_of_word", fmt::format("{} + {}[{}][{}]", of_row, end_row_, turn, count - 1));
      const std::string words = writer_.unique(writer_.wish(result_.value) + "_w");
      writer_.open(fmt::format("if ({} >= 0 && {} < {})", first, last, rows_));
      writer_.line(fmt::format("Words<1> {} = {{}};", words));
      each([&](const std::string& e, const std::string& row, const std::string& place) {
        bind_row(row);
        const std::string text = value(e, row, place);
        writer_.line(put_text(dtype, words, e, text, writer_));
      });
      bind_row(first);
      const std::string to = pointer_to(fmt::format("{}[{}][0]", end_place_, turn));
      writer_.line(fmt::format("store_words<1>({}, {});", to, words));
      writer_.close(fmt::format("}} else if ({} >= 0 && {} < {}) {{", last, first, rows_));
      writer_.reopen();
      each(store_element);
      writer_.close();
    }
    emitter_.rewind(mark);
  }

  void store_ends(const std::string& turn, const std::string& of_row) {
    const ExprEmitter::Mark mark = emitter_.mark();
    const std::string round = open_unrolled("round", rounds_of_ends());
    const std::string row = declared("int", "row", fmt::format("{} + {}[{}][{}]", of_row, end_row_, turn, round));
    writer_.open(fmt::format("if ((unsigned){} < (unsigned){})", row, rows_));
    bind_row(row);
    const std::string place = fmt::format("{}[{}][{}]", end_place_, turn, round);
    const std::string to = pointer_to(place);
    const std::string number = plus(round, std::to_string(each_));
    const std::string value =
        value_at(place, [&](const StripLines& lines) { return element_text(lines, turn, number, row); });
    writer_.line(fmt::format("*{} = {};", to, narrow(result_.type.dtype, value)));
    for (int i = 0; i < 2; ++i) writer_.close();
    emitter_.rewind(mark);
  }

  struct Load {
    std::string wish, name, first, stride;  // of its source; its strip; the first line; elements from line to line
    std::string slot, behind;               // of a lane's elements: of their lines
    std::string elements;                   // in shared memory
  };

  const Kernel& kernel_;
  const Graph& graph_;
  const LineStrips& strips_;
  const Bounds& bounds_;
  const TiledAxis stored_, along_;
  const KernelOutput& result_;
  const int result_bits_, each_, sector_;  // elements of a word and of a sector
  const IndexExpr position_;
  KernelWriter writer_;
  ExprEmitter emitter_;
  std::map<std::uint32_t, std::string> origin_;
  std::map<ExprId, Load> loads_;
  std::string lane_, warp_;
  // Lanes to a line of the result; lines at a time, of which warps have some at each of their turns.
  int lanes_ = 0, rows_at_once_ = 0, rows_of_turn_ = 0, turns_ = 0;
  std::string first_row_, lane_row_, place_, end_, end_place_, end_row_;
  std::string left_, lines_, rows_;  // of the tensor's line from this strip on; lines of it here; the result's here
};

}  // namespace

KernelSource emit_line_strips(const Kernel& kernel, const Graph& graph, const LineStrips& strips) {
  return LineStripsEmitter(kernel, graph, strips).emit();
}

}  // namespace fusec
