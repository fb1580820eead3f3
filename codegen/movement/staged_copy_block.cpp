#include "codegen/movement/staged_copy_block.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/access/vector_access.h"
#include "ir/type.h"

namespace fusec {

std::string plus(const std::string& a, const std::string& b) {
  if (a == "0") return b;
  return b == "0" ? a : a + " + " + b;
}
std::string times(const std::string& a, const std::string& by) {
  if (a == "0" || by == "0") return "0";
  return by == "1" ? a : fmt::format("{} * {}", a, by);
}
std::string quotient(const std::string& of, std::int64_t by) {
  return by == 1 ? of : fmt::format("(int)quotient<{}>({})", by, of);
}

namespace {

void also(std::string& condition, const std::string& more) {
  condition += (condition.empty() ? "" : " && ") + more;
}

IndexExpr tiles_along(const StagedCopy& plan, std::uint32_t axis) {
  const auto at = std::ranges::find(plan.axes, axis, &TileAxis::axis);
  const IndexExpr& extent = plan.kernel.pool.extent(axis);
  return at == plan.axes.end() ? extent : simplify(ceil_div(extent, at->extent), plan.kernel.pool.bounds());
}

IndexExpr grid_of(const StagedCopy& plan) {
  IndexExpr blocks = 1;
  for (const std::uint32_t axis : plan.kernel.outputs[0].axes) blocks *= tiles_along(plan, axis);
  return blocks;
}

std::string bits_type(int bytes) {
  return bytes == 1 ? "unsigned char" : bytes == 2 ? "unsigned short" : bytes == 4 ? "unsigned" : "unsigned long long";
}

}  // namespace

StagedCopyBlock::StagedCopyBlock(const StagedCopy& plan, const Graph& graph)
    : plan_(plan),
      kernel_(plan.kernel),
      graph_(graph),
      bounds_(kernel_.pool.bounds()),
      writer_(graph, needs_wide_index(kernel_, graph, grid_of(plan) * plan.threads)),
      emitter_(kernel_, writer_) {}

IndexExpr StagedCopyBlock::grid() const {
  return simplify(grid_of(plan_), bounds_);
}

void StagedCopyBlock::copy_operands() {
  for (const StagedOperand& operand : plan_.operands)
    operand.indexed ? copy_indexed_rows(operand) : operand.in_vectors ? copy_rows(operand) : copy_elements(operand);
  if (std::ranges::any_of(plan_.operands, &StagedOperand::in_vectors)) writer_.line("wait_for_vectors();");
  writer_.line("__syncthreads();");
}

void StagedCopyBlock::bind_origins() {
  for (std::size_t i = 0; i < plan_.axes.size(); ++i) emitter_.bind(plan_.axes[i].axis, origin_[i]);
}

std::string StagedCopyBlock::declared(std::string_view type, std::string_view preferred_name,
                                      const std::string& value) {
  const std::string name = writer_.unique(preferred_name);
  writer_.line(fmt::format("{} {} = {};", type, name, value));
  return name;
}
std::string StagedCopyBlock::open_unrolled(std::string_view preferred_name, int count) {
  const std::string variable = writer_.unique(preferred_name);
  writer_.line("#pragma unroll");
  writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", variable, count));
  return variable;
}

// Where the tile begins along each axis, and what of the axis is left from there on where that may be less than the
// tile has.
void StagedCopyBlock::find_block() {
  std::string rest = writer_.wide() ? "(long long)blockIdx.x" : "(int)blockIdx.x";
  const std::vector<std::uint32_t>& axes = kernel_.outputs[0].axes;
  origin_.resize(plan_.axes.size());
  for (std::size_t i = axes.size(); i-- > 0;) {
    const IndexExpr count = tiles_along(plan_, axes[i]);
    const bool last = std::all_of(axes.begin(), axes.begin() + static_cast<std::ptrdiff_t>(i),
                                  [&](std::uint32_t axis) { return tiles_along(plan_, axis).is(1); });
    std::string mine = count.is(1) ? "0" : rest;
    if (!count.is(1) && !last) {
      const std::string by = emitter_.index_text().tight(count);
      mine = fmt::format("{} % {}", rest, by);
      rest = declared_index("rest", fmt::format("{} / {}", rest, by));
    }
    const auto tiled = std::ranges::find(plan_.axes, axes[i], &TileAxis::axis);
    if (tiled == plan_.axes.end()) {
      emitter_.bind(axes[i], declared_index(fmt::format("i{}", i), mine));
    } else {
      const bool scaled = tiled->extent > 1 && mine != "0";
      const std::string text = scaled ? fmt::format("({}) * {}", mine, tiled->extent) : mine;
      origin_[static_cast<std::size_t>(tiled - plan_.axes.begin())] =
          mine == "0" ? mine : declared_index("first", text);
    }
  }
  tile_mark_ = emitter_.mark();
  for (std::size_t i = 0; i < plan_.axes.size(); ++i) {
    const IndexExpr& extent = kernel_.pool.extent(plan_.axes[i].axis);
    emitter_.bind(plan_.axes[i].axis, origin_[i]);
    std::string& left = remaining_.emplace_back();
    if (proves_multiple_of(extent, plan_.axes[i].extent, bounds_)) continue;
    left = declared("const int", "left",
                    fmt::format("(int)min(({}){}, {} - {})", writer_.index_type(), plan_.axes[i].extent,
                                emitter_.index_text().tight(extent), origin_[i]));
  }
}
// Elements of the tile's axis that this block has.
std::string StagedCopyBlock::count_of(std::size_t i) const {
  return remaining_[i].empty() ? std::to_string(plan_.axes[i].extent) : remaining_[i];
}

void StagedCopyBlock::add_condition(std::string& condition, std::size_t i, const std::string& coordinate) const {
  if (remaining_[i].empty() || coordinate == "0") return;
  also(condition, fmt::format("{} < {}", coordinate, remaining_[i]));
}

std::string StagedCopyBlock::find_row(const TileRows& rows, const std::string& row, Coordinates& coordinates) {
  std::string left = row, condition;
  for (std::size_t a = 0; a < rows.across.size(); ++a) {
    const std::size_t i = rows.across[a];
    const int extent = plan_.axes[i].extent;
    coordinates[i] = left;
    if (a + 1 < rows.across.size()) {
      const std::string above = declared("const int", "above", quotient(left, extent));
      coordinates[i] = declared("const int", "c", fmt::format("{} - {} * {}", left, above, extent));
      left = above;
    }
    add_condition(condition, i, coordinates[i]);
  }
  return condition;
}

std::string StagedCopyBlock::open_turns(std::int64_t turns, int unrolled) {
  const std::string turn = writer_.unique("turn");
  writer_.line(turns <= 2 * unrolled ? std::string("#pragma unroll") : fmt::format("#pragma unroll {}", unrolled));
  writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", turn, turns));
  return turn;
}

void StagedCopyBlock::over_pieces(const TileRows& rows, int pieces, int unrolled, int wanted_lanes,
                                  const RowBody& body) {
  const ExprEmitter::Mark mark = emitter_.mark();
  const std::int64_t count = row_count(rows, plan_.axes);
  Coordinates at;
  const auto turns_of = [](std::int64_t all, std::int64_t each) { return (all + each - 1) / each; };
  const int lanes = row_threads(count, pieces, plan_.threads, wanted_lanes).lanes;
  if (lanes == 0) {
    const std::int64_t all = count * pieces, turns = turns_of(all, plan_.threads);
    const std::string turn = open_turns(turns, unrolled);
    const std::string piece = declared("const int", "piece", fmt::format("threadIdx.x + {} * {}", turn, plan_.threads));
    if (turns * plan_.threads > all) writer_.open(fmt::format("if ({} < {})", piece, all));
    if (count == 1) {
      body(at, "", piece);
    } else {
      const std::string row = declared("const int", "row", quotient(piece, pieces));
      const std::string place = declared("const int", "place", fmt::format("{} - {} * {}", piece, row, pieces));
      const std::string condition = find_row(rows, row, at);
      body(at, condition, place);
    }
    if (turns * plan_.threads > all) writer_.close();
    writer_.close();
    emitter_.rewind(mark);
    return;
  }
  const std::int64_t at_once = plan_.threads / lanes, turns = turns_of(count, at_once);
  const std::string first = declared("const int", "first_row", quotient("threadIdx.x", lanes));
  const std::string lane =
      declared("const int", lanes < pieces ? "lane" : "piece", fmt::format("threadIdx.x - {} * {}", first, lanes));
  const auto over_row = [&](const std::string& condition) {
    if (lanes == pieces) return body(at, condition, lane);
    const std::int64_t steps = turns_of(pieces, lanes);
    if (!condition.empty()) writer_.open(fmt::format("if ({})", condition));
    const std::string step = open_turns(steps, unrolled);
    const std::string piece = declared("const int", "piece", fmt::format("{} + {} * {}", lane, step, lanes));
    body(at, steps * lanes > pieces ? fmt::format("{} < {}", piece, pieces) : "", piece);
    writer_.close();
    if (!condition.empty()) writer_.close();
  };
  const int rows_unrolled = lanes < pieces ? 1 : unrolled;
  const bool some_idle = at_once * lanes < plan_.threads || at_once > count;
  if (some_idle) writer_.open(fmt::format("if ({} < {})", first, std::min(at_once, count)));
  // Where all turns have the same place on all axes but the last, it is found once.
  const std::size_t last = rows.across.back();
  const std::int64_t inside = count / plan_.axes[last].extent;
  if (turns == 1 || at_once % inside == 0) {
    std::string condition = find_row(rows, first, at);
    if (turns > 1) {
      condition.clear();
      for (const std::size_t i : rows.across)
        if (i != last) add_condition(condition, i, at[i]);
    }
    const std::string turn = turns > 1 ? open_turns(turns, rows_unrolled) : "";
    if (turns > 1) {
      at[last] = declared("const int", "row", fmt::format("{} + {} * {}", at[last], turn, at_once / inside));
      if (turns * at_once > count && remaining_[last].empty())
        also(condition, fmt::format("{} < {}", at[last], plan_.axes[last].extent));
      add_condition(condition, last, at[last]);
    }
    over_row(condition);
    if (turns > 1) writer_.close();
  } else {
    const std::string turn = open_turns(turns, rows_unrolled);
    const std::string row = declared("const int", "row", fmt::format("{} + {} * {}", first, turn, at_once));
    if (turns * at_once > count) writer_.open(fmt::format("if ({} < {})", row, count));
    const std::string condition = find_row(rows, row, at);
    over_row(condition);
    if (turns * at_once > count) writer_.close();
    writer_.close();
  }
  if (some_idle) writer_.close();
  emitter_.rewind(mark);
}

std::string StagedCopyBlock::bytes_text(const IndexExpr& elements, int element_bits) const {
  const IndexExpr bytes = element_bits == 4 ? floor_div(elements, 2) : elements * (element_bits / 8);
  return emitter_.index_text().tight(simplify(bytes, bounds_));
}

// The rows' vectors, on their way to shared memory.
void StagedCopyBlock::copy_rows(const StagedOperand& operand) {
  const ExprNode& n = kernel_.pool[operand.load];
  const TileRows& rows = operand.rows;
  const std::string name = writer_.preferred_name(n.source), type = "const unsigned char* const";
  const std::string first =
      declared(type, name + "_first", fmt::format("(const unsigned char*)({})", first_element(operand)));
  std::string start = fmt::format("dynamic_shared + {}", operand.start);
  if (rows.aligned < 16) start += fmt::format(" + bytes_behind<16>({})", first);
  const std::string tile = declared("unsigned char* const", name + "_tile", start);
  find_places(operand);
  std::string element = tile;  // the first of the result's
  for (std::size_t i = 0; i < plan_.axes.size(); ++i)
    if (rows.backwards[i] && place_of(operand, i) != "0")
      element += fmt::format(" + ({} - 1) * {}", count_of(i), place_of(operand, i));
  tiles_[operand.load] = element == tile ? tile : declared("unsigned char* const", name + "_element", element);
  const int from = rows.aligned < 16 ? 32 : 16;
  const int pieces = row_bytes(rows, plan_.axes, operand.bits, from) / 16;
  const std::string length = run_bytes(rows, operand.bits);
  const bool whole = rows.aligned >= from && length == std::to_string(pieces * 16);
  const IndexExpr all = *element_count(graph_.tensor(n.source).shape);
  const bool whole_tensor = proves_multiple_of(all, 128 / operand.bits, bounds_);
  const std::string of_row = whole ? length : declared("const int", name + "_bytes", length);
  over_pieces(rows, pieces, 4, 0, [&](const Coordinates& at, std::string condition, const std::string& piece) {
    const std::string distance = offset(at, [&](std::size_t i) { return bytes_text(rows.steps[i], operand.bits); });
    const char* const wide = writer_.wide() ? "(long long)" : "";
    const std::string in_memory =
        distance == "0" ? first : declared(type, "row_first", fmt::format("{} + {}({})", first, wide, distance));
    std::string place = times(piece, 16);
    if (rows.aligned < from) place += fmt::format(" - bytes_behind<{}>({})", from, in_memory);
    place = declared("const int", "behind", place);
    if (rows.aligned < from) also(condition, fmt::format("{} > -16", place));
    if (!whole) also(condition, fmt::format("{} < {}", place, of_row));
    const std::string to = plus(tile, offset(at, [&](std::size_t i) { return place_of(operand, i); }));
    if (!condition.empty()) writer_.open(fmt::format("if ({})", condition));
    const std::string end =
        fmt::format(", (const unsigned char*){} + {}", writer_.input(n.source),
                    writer_.wide() ? bytes_text(all, operand.bits) : "(long long)" + bytes_text(all, operand.bits));
    writer_.line(fmt::format("copy_vector(shared_address({}) + {}, {} + {}{});", to, place, in_memory, place,
                             whole_tensor ? "" : end));
    if (!condition.empty()) writer_.close();
  });
}

std::string StagedCopyBlock::run_bytes(const TileRows& rows, int element_bits) const {
  const std::int64_t all = run_elements(rows, plan_.axes);
  if (rows.run.empty() || remaining_[rows.run.back()].empty()) return std::to_string(all * element_bits / 8);
  const std::size_t last = rows.run.back();
  const std::int64_t beyond = plan_.axes[last].extent * rows.strides[last] - all;
  if (element_bits == 4) return fmt::format("({} * {} - {}) / 2", remaining_[last], rows.strides[last], beyond);
  const std::string bytes = times(remaining_[last], rows.strides[last] * element_bits / 8);
  return beyond == 0 ? bytes : fmt::format("{} - {}", bytes, beyond * element_bits / 8);
}

// The tile's first element in memory.
std::string StagedCopyBlock::first_element(const StagedOperand& operand) {
  const ExprNode& n = kernel_.pool[operand.load];
  for (std::size_t i = 0; i < plan_.axes.size(); ++i)
    if (operand.rows.backwards[i])
      emitter_.bind(plan_.axes[i].axis, declared_index("last", fmt::format("{} + {} - 1", origin_[i], count_of(i))));
  const IndexExpr position = emitter_.position(operand.load);
  const std::string text = fmt::format(
      "{} + {}", writer_.input(n.source),
      emitter_.index_text().tight(operand.bits == 4 ? simplify(floor_div(position, 2), bounds_) : position));
  bind_origins();
  return text;
}

// Declares what of places in shared memory depends on symbols.
void StagedCopyBlock::find_places(const StagedOperand& operand) {
  std::vector<std::string>& places = places_[operand.load];
  for (std::size_t i = 0; i < plan_.axes.size(); ++i) {
    std::string& place = places.emplace_back(std::to_string(operand.places[i]));
    if (operand.place_varies(i))
      place = declared("const int", "place",
                       fmt::format("{} + (int)({} & 15)", operand.places[i] / 16 * 16,
                                   bytes_text(operand.rows.steps[i], operand.bits)));
  }
}
// Bytes from one element of the tile's axis to the next.
std::string StagedCopyBlock::step_of(const StagedOperand& operand, std::size_t i) const {
  const std::string place = place_of(operand, i);
  return operand.rows.backwards[i] && place != "0" ? "-" + place : place;
}
std::string StagedCopyBlock::find_tile(const StagedOperand& operand) {
  find_places(operand);
  const std::string name = writer_.preferred_name(kernel_.pool[operand.load].source) + "_tile";
  return tiles_[operand.load] =
             declared("unsigned char* const", name, fmt::format("dynamic_shared + {}", operand.start));
}

// The same of rows that begin wherever their index says, at multiples of 16 bytes; zeros where the guard does not hold.
void StagedCopyBlock::copy_indexed_rows(const StagedOperand& operand) {
  const ExprNode& n = kernel_.pool[operand.load];
  const TileRows& rows = operand.rows;
  const std::string tile = find_tile(operand);
  const int pieces = row_bytes(rows, plan_.axes, operand.bits, 16) / 16;
  const std::string length = run_bytes(rows, operand.bits);
  const bool whole = length == std::to_string(pieces * 16);
  over_pieces(rows, pieces, 4, 0, [&](const Coordinates& at, std::string condition, const std::string& piece) {
    const std::string behind = declared("const int", "behind", times(piece, 16));
    if (!whole) also(condition, fmt::format("{} < {}", behind, length));
    if (!condition.empty()) writer_.open(fmt::format("if ({})", condition));
    const ExprEmitter::Mark mark = emitter_.mark();
    bind_axes(at);
    const std::string guard = n.args[0] == kNoExpr ? "" : emitter_.emit(n.args[0]);
    IndexExpr position = emitter_.position(operand.load);
    if (operand.bits == 4) position = simplify(floor_div(position, 2), bounds_);
    const std::string from = declared(
        "const unsigned char* const", "row_first",
        fmt::format("(const unsigned char*)({} + {})", writer_.input(n.source), emitter_.index_text().tight(position)));
    const std::string to = plus(tile, offset(at, [&](std::size_t i) { return place_of(operand, i); }));
    const IndexExpr all = *element_count(graph_.tensor(n.source).shape);
    std::string end = fmt::format("(const unsigned char*){} + {}{}", writer_.input(n.source),
                                  writer_.wide() ? "" : "(long long)", bytes_text(all, operand.bits));
    if (!guard.empty()) end = fmt::format("{} ? {} : {} + {}", guard, end, from, behind);
    writer_.line(fmt::format("copy_vector(shared_address({}) + {}, {} + {}{});", to, behind, from, behind,
                             guard.empty() && proves_multiple_of(all, 128 / operand.bits, bounds_) ? "" : ", " + end));
    emitter_.rewind(mark);
    if (!condition.empty()) writer_.close();
  });
  bind_origins();
}

// Elements one by one, wherever they are, 0 where the load's guard does not hold.
void StagedCopyBlock::copy_elements(const StagedOperand& operand) {
  const ExprNode& n = kernel_.pool[operand.load];
  const std::string type = bits_type(operand.element_bytes()), tile = find_tile(operand);
  const std::size_t along = operand.rows.run[0];
  const ExprEmitter::Mark mark = emitter_.mark();
  over_pieces(operand.rows, plan_.axes[along].extent, 4, 0,
              [&](Coordinates at, std::string condition, const std::string& piece) {
                at[along] = piece;
                add_condition(condition, along, piece);
                if (!condition.empty()) writer_.open(fmt::format("if ({})", condition));
                bind_axes(at);
                const std::string guard = n.args[0] == kNoExpr ? "" : emitter_.emit(n.args[0]);
                const std::string position = emitter_.index(emitter_.position(operand.load));
                std::string value = fmt::format("((const {}*){})[{}]", type, writer_.input(n.source), position);
                if (operand.bits == 4) {
                  writer_.use("nibble");
                  value = fmt::format("({})nibble({}, {})", type, writer_.input(n.source), position);
                }
                if (!guard.empty()) value = fmt::format("{} ? {} : ({})0", guard, value, type);
                const std::string to = plus(tile, offset(at, [&](std::size_t i) { return place_of(operand, i); }));
                writer_.line(fmt::format("*({}*)({}) = {};", type, to, value));
                if (!condition.empty()) writer_.close();
              });
  emitter_.rewind(mark);
  bind_origins();
}

void StagedCopyBlock::bind_axes(const Coordinates& coordinates) {
  for (const auto& [i, coordinate] : coordinates) {
    const std::string at = plus(origin_[i], coordinate);
    emitter_.bind(plan_.axes[i].axis, at.find(' ') == std::string::npos ? at : declared_index("i", at));
  }
}

std::string StagedCopyBlock::value_text(const StagedOperand& operand, const std::string& place) {
  const DType dtype = kernel_.pool[operand.load].dtype;
  writer_.use(dtype);
  if (operand.bits == 4) return value_of_bits(dtype, fmt::format("(unsigned)*({})", place), writer_);
  return widen(dtype, fmt::format("*(const {}*)({})", storage_type(dtype), place));
}

}  // namespace fusec
