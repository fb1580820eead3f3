#include "codegen/gemm/gemm_epilogue.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "codegen/access/direct.h"
#include "codegen/expr/emit_expr.h"
#include "codegen/expr/limit_unrolling.h"
#include "codegen/gemm/epilogue_vectors.h"
#include "ir/type.h"

namespace fusec {
namespace {

class EpilogueEmitter {
 public:
  EpilogueEmitter(const GemmEpilogue& epilogue, const Graph& graph, KernelWriter& writer, int width)
      : e_(epilogue),
        graph_(graph),
        writer_(writer),
        width_(width),
        split_(
            with_epilogue_vectors(epilogue.kernel, epilogue.contraction, epilogue.accumulators, width, epilogue.known)),
        emitter_(split_.kernel, writer) {}

  void emit() {
    for (const std::uint32_t a : split_.unit_axes) emitter_.bind(a, "0");
    for (const auto& [value, text] : split_.known) emitter_.define(value, text);
    if (!split_.batch.empty()) bind_flat(emitter_, split_.batch, e_.batch, "bcdefgh");
    if (e_.parts > 0) return emit_parts();
    const int m16_tiles = e_.form.tiles.warp_rows / 16;
    const int tiles_at_once = m16_tiles_at_once(m16_tiles);
    const int of_warp = tiles_at_once * m16_tile_floats() * static_cast<int>(pairs() ? 1 : e_.accumulators.size());
    staged_ = writer_.unique("staged");
    const std::string m16_tile = writer_.unique("piece");
    if (pairs()) {
      warp_column_ = writer_.unique("pair_column");
      writer_.line(fmt::format("const int {} = warp_column / 2;", warp_column_));
    }
    writer_.line("__syncthreads();  // the tiles' memory is free");
    writer_.line(
        fmt::format("{0}* const {1} = ({0}*)dynamic_shared + warp * {2};", accumulator_type(), staged_, of_warp));
    writer_.line(kUnrollToFit);
    writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; {0} += {2})", m16_tile, m16_tiles, tiles_at_once));
    stage(m16_tile, m16_tiles, tiles_at_once);
    writer_.line("__syncwarp();");
    finish_rows(m16_tile, tiles_at_once);
    writer_.line("__syncwarp();");
    writer_.close();
  }

 private:
  bool pairs() const { return !e_.pairs.empty(); }
  // The columns of the results among the form's columns.
  int of_results(int columns) const { return pairs() ? columns / 2 : columns; }
  int wide() const { return of_results(e_.form.tiles.warp_columns); }
  std::string accumulator_type() const { return c_type(e_.kernel.pool[e_.accumulators.begin()->first].type); }

  // Runs the epilogue part by part. Registers cannot be indexed, so stage_part() searches for those of the part.
  void emit_parts() {
    staged_ = e_.staged;
    const std::string part = writer_.unique("part");
    if (boxed()) place_lane();
    writer_.line("#pragma unroll 1");
    writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", part, e_.parts));
    writer_.line(fmt::format("const int warp_column = {} * {};", part, wide()));
    part_ = part;
    const std::vector<std::string> accumulators = registers();
    if (e_.block.empty()) {
      stage_part(accumulators);
    } else {
      std::vector<std::string> below;
      for (const std::string& accumulator : accumulators) below.push_back(e_.below.at(accumulator));
      writer_.open(fmt::format("if ({} == 0)", e_.block));
      stage_part(accumulators);
      writer_.close("} else {");
      writer_.reopen();
      stage_part(below);
      writer_.close();
    }
    wait_for_boxes();
    writer_.line("__syncwarp();");
    finish_rows("0", 1);
    store_boxes();
    writer_.line("__syncwarp();");
    writer_.close();
  }

  // Stages the accumulators of the current part.
  void stage_part(const std::vector<std::string>& accumulators) {
    writer_.use("staged_part");
    writer_.line(fmt::format("stage_part<{}, {}, {}, 0, {}>({}, warp_lane, {}, {});", width_ > 1,
                             e_.form.tiles.warp_columns / 8, m16_tile_floats(), e_.parts, part_, into_lines(staged_),
                             fmt::join(accumulators, ", ")));
  }

  // --- boxes that TMA stores
  bool boxed() const {
    return std::ranges::any_of(e_.boxes, [](const TmaStore& b) { return !b.map.empty(); });
  }
  int element_bytes(std::size_t output) const { return bits(e_.kernel.outputs[output].type.dtype) / 8; }
  int parts_of_box(std::size_t output) const { return 128 / (wide() * element_bytes(output)); }

  // Calls `write` for each box width, at its first or last part. Widths with the most parts come last.
  template <class F>
  void for_boxes(bool at_last_part, F write) {
    std::map<int, std::vector<std::size_t>> outputs;
    for (std::size_t i = 0; i < e_.boxes.size(); ++i)
      if (!e_.boxes[i].map.empty()) outputs[parts_of_box(i)].push_back(i);
    for (const auto& [parts, list] : outputs) {
      if (parts > 1) writer_.open(fmt::format("if ({} % {} == {})", part_, parts, at_last_part ? parts - 1 : 0));
      write(parts, list);
      if (parts > 1) writer_.close();
    }
  }

  // Declares the addresses of a lane before the loop over parts. With up to four groups of eight columns, the
  // accumulators and the box units of eight lanes are in different banks.
  void place_lane() {
    writer_.use("store_box");
    writer_.use("staged_lane");
    const int groups = wide() / width_;
    lane_line_ = writer_.unique("lane_line"), lane_place_ = writer_.unique("lane_place");
    writer_.line(fmt::format("const int {} = warp_lane / {} * 8 + warp_lane % 8;", lane_line_, 8 * groups));
    writer_.line(fmt::format("const int {} = (warp_lane / 8 % {} ^ warp_lane / 4 % 2) * 8;", lane_place_, groups));
    lane_accumulators_ = writer_.unique("lane_sums");
    writer_.line(fmt::format("const unsigned {} = kept(shared_address({} + {}));", lane_accumulators_, staged_,
                             position_of_vector()));
    for (std::size_t i = 0; i < e_.boxes.size(); ++i) {
      std::string& box = lane_boxes_.emplace_back();
      if (e_.boxes[i].map.empty()) continue;
      box = writer_.unique("lane_box");
      writer_.line(fmt::format("const unsigned {} = kept(place_in_box({}, {}, {} * {}));", box, e_.boxes[i].lines,
                               lane_line_, lane_place_, element_bytes(i)));
    }
  }

  // Waits until TMA has read the boxes that were stored before.
  void wait_for_boxes() {
    for_boxes(false, [&](int, const std::vector<std::size_t>&) {
      writer_.line("if (warp_lane == 0) wait_for_stored_boxes();");
    });
  }

  void store_boxes() {
    for_boxes(true, [&](int parts, const std::vector<std::size_t>& outputs) {
      writer_.use("store_box");
      writer_.line("fence_boxes();");
      writer_.line("__syncwarp();");
      const std::string column = parts > 1 ? fmt::format("({} + 1 - {}) * {}", part_, parts, wide()) : "warp_column";
      const bool full = e_.row_end.empty();
      if (!full) {
        writer_.open(fmt::format("if ({} + warp_row + 16 > {})", e_.row0, e_.row_end));
        for (const std::size_t i : outputs) store_lines(i, column);
        writer_.close("} else {");
        writer_.reopen();
      }
      writer_.open("if (warp_lane == 0)");
      for (const std::size_t i : outputs)
        writer_.line(fmt::format("store_box({}, {}, {} + {}, {} + warp_row{});", e_.boxes[i].map, e_.boxes[i].lines,
                                 e_.column0, column, e_.row0, e_.boxes[i].batch));
      writer_.line("commit_boxes();");
      writer_.close();
      if (!full) writer_.close();
    });
  }

  // Stores the valid lines of a box whose last rows belong to another block.
  void store_lines(std::size_t output, const std::string& column) {
    const TmaStore& boxes = e_.boxes[output];
    const int element = element_bytes(output);
    std::string bytes = "128";  // valid bytes per line; negative if the box is beyond the columns
    if (const auto columns = limit(split_.columns, width_, of_results(e_.form.tiles.columns)))
      bytes = fmt::format("{} * (int)({} - ({} + {}))", element, *columns, e_.column0, column);
    writer_.line(
        fmt::format("store_lines({0} + (long long)({1} + warp_row) * {2} + {3} + {4}, {5} * (long long){2}, {6}, "
                    "(int){7} - (int){1} - warp_row, {8}, warp_lane);",
                    boxes.to, e_.row0, boxes.distance, e_.column0, column, element, boxes.lines, e_.row_end, bytes));
  }

  // For each output the start of a call that stores eight elements in a box. `after`: lines after the lane's first
  // line, such as " + later", or "".
  std::vector<std::string> into_boxes(const std::string& after) const {
    std::vector<std::string> calls;
    for (std::size_t i = 0; i < e_.boxes.size(); ++i) {
      std::string& call = calls.emplace_back();
      if (e_.boxes[i].map.empty()) continue;
      std::string at = after.empty() ? lane_boxes_[i] : fmt::format("({}{} * 128)", lane_boxes_[i], after);
      if (const int parts = parts_of_box(i); parts > 1)
        at += fmt::format(" ^ {} % {} * {}", part_, parts, wide() * element_bytes(i));
      call = fmt::format("store_in_box({}, ", at);
    }
    return calls;
  }

  // Floats from one piece of 16 rows to the next (staged_place in the prelude).
  int m16_tile_distance() const { return width_ == 1 && e_.form.tiles.warp_columns == 16 ? 256 : m16_tile_floats(); }
  int m16_tile_floats() const { return 16 * (e_.form.tiles.warp_columns + 8); }

  // The number of pieces of 16 rows that fit into shared memory.
  int m16_tiles_at_once(int m16_tiles) const {
    const std::int64_t one = staged_bytes(e_.form) * e_.form.tiles.threads() / 32;
    int tiles_at_once = m16_tiles;
    while (tiles_at_once > 1 && (tiles_at_once * one > shared_bytes(e_.form) || m16_tiles % tiles_at_once != 0))
      --tiles_at_once;
    return tiles_at_once;
  }

  std::string staged_at(std::size_t accumulator, int tiles_at_once) const {
    return accumulator == 0 ? staged_
                            : fmt::format("{} + {}", staged_,
                                          accumulator * static_cast<std::size_t>(tiles_at_once * m16_tile_floats()));
  }

  // Registers cannot be indexed: an unrolled loop over pieces selects those of the current iteration.
  void stage(const std::string& m16_tile, int m16_tiles, int tiles_at_once) {
    writer_.use(e_.form.tensor_cores() ? "staged_sums" : "staged_lane_sums");
    const std::string of = tiles_at_once > 1 ? fmt::format("i / {0} * {0}", tiles_at_once) : "i";
    const std::string place =
        tiles_at_once > 1 && m16_tiles > tiles_at_once ? fmt::format("i % {}", tiles_at_once) : "i";
    if (m16_tiles > 1) writer_.line("#pragma unroll");
    if (m16_tiles > 1) writer_.open(fmt::format("for (int i = 0; i < {}; ++i)", m16_tiles));
    if (m16_tiles > tiles_at_once) writer_.line(fmt::format("if ({} != {}) continue;", of, m16_tile));
    const std::string number = m16_tiles > 1 ? "i" : "0";
    std::size_t which = 0;
    for (const std::string& accumulator : registers()) {
      const std::string to = into_lines(staged_at(which++, tiles_at_once)) +
                             (tiles_at_once > 1 ? fmt::format(" + {} * {}", place, m16_tile_distance()) : "");
      if (e_.form.tensor_cores())
        writer_.line(fmt::format("stage_sums<{}>({}, {}[{}], warp_lane);", width_ > 1, to, accumulator, number));
      else
        writer_.line(fmt::format("stage_lane_sums<{}, {}, {}>({}, {}, {}, warp_lane);", width_ > 1,
                                 e_.form.loops[0].left[0].k_major, e_.form.loops[0].right[0].k_major, to, accumulator,
                                 number));
    }
    if (m16_tiles > 1) writer_.close();
  }

  // A lane has the same columns in several rows, so per-column values are loaded once.
  void finish_rows(const std::string& m16_tile, int tiles_at_once) {
    const int groups = wide() / width_;
    const std::string line = writer_.unique("line"), place = writer_.unique("place");
    const std::string column = writer_.unique("column");
    const bool over_positions = groups > 32;  // one column per lane
    if (over_positions) {
      writer_.line("#pragma unroll 1");  // NVRTC would unroll it
      writer_.open(fmt::format("for (int {0} = warp_lane; {0} < {1}; {0} += 32)", place, wide()));
    } else {
      writer_.open("");
    }
    std::string of_lane = "0";
    if (boxed()) {
      of_lane = lane_line_;
      writer_.line(fmt::format("const int {} = {};", place, lane_place_));
    } else if (!over_positions) {
      of_lane = width_ == 1 ? fmt::format("warp_lane / {}", groups)
                            : fmt::format("{}<{}>(warp_lane)", pairs() ? "row_of_pairs" : "staged_row", wide());
      writer_.line(fmt::format("const int {} = warp_lane % {}{};", place, groups, width_ > 1 ? " * 8" : ""));
    }
    writer_.line(
        fmt::format("const {} {} = {} + {} + {};", writer_.index_type(), column, e_.column0, warp_column_, place));
    const std::optional<std::string> columns = limit(split_.columns, width_, of_results(e_.form.tiles.columns));
    if (columns) writer_.open(fmt::format("if ({} < {})", column, *columns));
    const ExprEmitter::Mark mark = emitter_.mark();
    if (width_ > 1) {
      const std::string column_vector = writer_.unique("eight");
      writer_.line(
          fmt::format("const {0} {1} = (unsigned {0}){2} / {3};", writer_.index_type(), column_vector, column, width_));
      bind_flat(emitter_, split_.columns, column_vector, "ijlst");
    } else {
      bind_flat(emitter_, split_.columns, column, "ijlst");
    }
    open_lines(line, of_lane, m16_tile, tiles_at_once, over_positions ? 1 : 32 / groups);
    if (!e_.row_begin.empty()) writer_.open(fmt::format("if ({} >= {})", row_, e_.row_begin));
    if (boxed())
      emit_epilogue_vector_in_boxes(line, 32 / groups);
    else if (width_ > 1)
      emit_epilogue_vector(line, place, tiles_at_once);
    else
      emit_epilogue_scalar(line, place, tiles_at_once);
    emitter_.rewind(mark);
    if (!e_.row_begin.empty()) writer_.close();
    writer_.close();
    if (columns) writer_.close();
    writer_.close();
  }

  // The number of rows or columns, if tiles may exceed it; otherwise nullopt.
  std::optional<std::string> limit(const std::vector<std::uint32_t>& axes, int width, int tile) {
    const IndexExpr points = simplify(point_count(split_.kernel.pool, axes) * width, split_.kernel.pool.bounds());
    if (proves_multiple_of(points, tile, split_.kernel.pool.bounds())) return std::nullopt;
    return emitter_.index_text().tight(points);
  }

  void open_lines(const std::string& line, const std::string& of_lane, const std::string& m16_tile, int tiles_at_once,
                  int step) {
    const std::string first = writer_.unique("first_row");
    row_ = writer_.unique("row");
    const std::string of_m16_tile = e_.parts > 0 ? "" : fmt::format(" + {} * 16", m16_tile);
    writer_.line(fmt::format("const {} {} = {} + warp_row{};", writer_.index_type(), first, e_.row0, of_m16_tile));
    std::optional<std::string> end;
    if (!e_.row_end.empty())
      end = e_.row_end;
    else
      end = limit(split_.rows, 1, e_.form.tiles.rows);
    std::string lines = std::to_string(16 * tiles_at_once);
    if (end) {
      const std::string name = writer_.unique("lines");
      const std::string type = writer_.index_type();
      writer_.line(fmt::format("const {0} {1} = min(({0}){2}, ({0})({3}) - {4});", type, name, lines, *end, first));
      lines = name;
    }
    if (step >= 16 * tiles_at_once) {  // one line per lane
      writer_.open(end ? fmt::format("if (const int {0} = {1}; {0} < {2})", line, of_lane, lines) : "");
      if (!end) writer_.line(fmt::format("const int {} = {};", line, of_lane));
    } else {
      writer_.line(width_ > 1 ? "#pragma unroll 1" : fmt::format("{} 4", kUnrollToFit));
      writer_.open(fmt::format("for (int {0} = {1}; {0} < {2}; {0} += {3})", line, of_lane, lines, step));
    }
    writer_.line(fmt::format("const {} {} = {} + {};", writer_.index_type(), row_, first, line));
    bind_flat(emitter_, split_.rows, row_, "mnopq");
  }

  void emit_epilogue_vector(const std::string& line, const std::string& place, int tiles_at_once) {
    std::map<ExprId, std::string> vectors;
    if (pairs()) {
      const std::string at = fmt::format("{} + place_of_pairs<{}>({}, {})", staged_, wide(), line, place);
      return finish_vector(vectors_of_pairs(fmt::format("shared_address({})", at)), {});
    }
    std::size_t number = 0;
    for (const auto& [reduction, accumulator] : split_.accumulators)
      vectors[reduction] =
          declare_sums(accumulator, fmt::format("eight_staged<{}>({}, {}, {})", e_.form.tiles.warp_columns,
                                                staged_at(number++, tiles_at_once), line, place));
    finish_vector(vectors, {});
  }

  void emit_epilogue_vector_in_boxes(const std::string& line, int step) {
    const std::string after = step < 16 ? fmt::format(" + ({} - {})", line, lane_line_) : "";
    const int row_bytes = (e_.form.tiles.warp_columns + 8) * 4;
    std::string at = lane_accumulators_;
    if (!after.empty()) at += fmt::format("{} * {}", after, row_bytes);
    if (pairs()) return finish_vector(vectors_of_pairs(at), into_boxes(after));
    std::map<ExprId, std::string> vectors;
    int before = 0;
    for (const auto& [reduction, accumulator] : split_.accumulators) {
      vectors[reduction] = declare_sums(
          accumulator, fmt::format("eight_staged_at<{}, {}>({}{})", accumulator_type(), e_.form.tiles.warp_columns, at,
                                   before == 0 ? "" : fmt::format(" + {}", before)));
      before += m16_tile_floats() * 4;
    }
    finish_vector(vectors, into_boxes(after));
  }

  // Declares an accumulator's eight elements, and returns their array.
  std::string declare_sums(const std::string& accumulator, const std::string& value) {
    const std::string name = writer_.unique(accumulator + "_v");
    writer_.line(fmt::format("const EightSums<{}> {} = {};", accumulator_type(), name, value));
    return name + ".v";
  }

  void finish_vector(const std::map<ExprId, std::string>& vectors, const std::vector<std::string>& boxes) {
    fusec::emit_epilogue_vector(emitter_, graph_, split_.lane, width_, vectors, boxes);
  }

  void emit_epilogue_scalar(const std::string& line, const std::string& place, int tiles_at_once) {
    std::size_t number = 0;
    std::string pair;
    if (pairs()) {
      pair = writer_.unique("pair");
      writer_.line(
          fmt::format("const auto {0} = *(const Neighbours<{1}, 2>*)({2} + staged_place<{3}, false>({4}, 2 * {5}));",
                      pair, accumulator_type(), staged_, e_.form.tiles.warp_columns, line, place));
    }
    for (const auto& [reduction, accumulator] : split_.accumulators)
      emitter_.define(reduction,
                      pairs() ? fmt::format("{}.v[{}]", pair, accumulator == kOdd ? 1 : 0)
                              : fmt::format("({})[staged_place<{}, false>({}, {})]", staged_at(number++, tiles_at_once),
                                            e_.form.tiles.warp_columns, line, place));
    fusec::emit_epilogue_scalar(emitter_);
  }

  // --- interleaved columns of two accumulators
  std::vector<std::string> registers() const {
    if (pairs()) return {e_.pairs};
    std::vector<std::string> all;
    for (const auto& [reduction, accumulator] : split_.accumulators) all.push_back(accumulator);
    return all;
  }

  // Eight results are 16 columns: half of the lines are shifted by four columns (place_of_pairs).
  std::string into_lines(const std::string& staged) const {
    return pairs() && width_ > 1 ? staged + " + warp_lane / 16 * 4" : staged;
  }

  std::string position_of_vector() {
    if (pairs()) writer_.use("staged_pairs");
    return fmt::format("{}<{}>({}, {})", pairs() ? "place_of_pairs" : "staged_place", wide(), lane_line_, lane_place_);
  }

  std::map<ExprId, std::string> vectors_of_pairs(const std::string& at) {
    writer_.use("staged_pairs");
    const std::string both = writer_.unique("pairs");
    writer_.line(
        fmt::format("const EightPairs<{0}> {1} = eight_pairs<{0}, {2}>({3});", accumulator_type(), both, wide(), at));
    std::map<ExprId, std::string> vectors;
    for (const auto& [reduction, accumulator] : split_.accumulators)
      vectors[reduction] = both + (accumulator == kOdd ? ".odd.v" : ".even.v");
    return vectors;
  }

  const GemmEpilogue& e_;
  const Graph& graph_;
  KernelWriter& writer_;
  int width_;
  std::string warp_column_ = "warp_column";  // of the results
  EpilogueVectors split_;
  ExprEmitter emitter_;
  std::string staged_, part_, row_;
  std::string lane_line_, lane_place_, lane_accumulators_;  // of the lane, with boxes
  std::vector<std::string> lane_boxes_;                     // the lane's address in each output's box, or ""
};

}  // namespace

void emit_epilogue(const GemmEpilogue& epilogue, const Graph& graph, KernelWriter& writer) {
  EpilogueEmitter(epilogue, graph, writer, epilogue_vector_width(epilogue.kernel, epilogue.contraction)).emit();
}

}  // namespace fusec
