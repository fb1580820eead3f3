#include "codegen/movement/staged_copy_block.h"

#include <algorithm>

#include "codegen/access/vector_access.h"
#include "ir/type.h"

namespace fusec {

CExpr quotient(const CExpr& of, std::int64_t by) {
  return by == 1 ? of : cast("int", call("quotient<" + std::to_string(by) + ">", {of}));
}

namespace {

constexpr const char* kBytes = "const unsigned char*";
constexpr const char* kBytesAt = "const unsigned char* const";

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

// Bytes that a place lies behind the multiple of `of` before it.
CExpr address_modulo(int of, const CExpr& place) {
  return call("address_modulo<" + std::to_string(of) + ">", {place});
}

CExpr where(bool wanted, const CExpr& condition) {
  return wanted ? condition : "true";
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
  if (std::ranges::any_of(plan_.operands, &StagedOperand::in_vectors)) writer_.run(call("wait_for_vectors"));
  writer_.run(call("__syncthreads"));
}

void StagedCopyBlock::bind_origins() {
  for (std::size_t i = 0; i < plan_.axes.size(); ++i) emitter_.bind(plan_.axes[i].axis, origin_[i].tight());
}

CExpr StagedCopyBlock::declared(std::string_view type, std::string_view preferred_name, const CExpr& value) {
  return value.as_integer() ? value : CExpr(writer_.declared(type, preferred_name, value));
}

CExpr StagedCopyBlock::declared_behind(std::string_view type, std::string_view preferred_name, const CExpr& first,
                                       const CExpr& distance) {
  if (distance.is(0)) return first;
  return declared(type, preferred_name, first + (writer_.wide() ? cast("long long", distance) : distance));
}

CExpr StagedCopyBlock::open_unrolled(std::string_view preferred_name, int count) {
  if (count == 1) {
    writer_.open_if("true");
    return 0;
  }
  const std::string variable = writer_.unique(preferred_name);
  writer_.open_for("int", variable, count, 0);
  return variable;
}

CExpr StagedCopyBlock::open_turns(std::int64_t turns, int unrolled) {
  if (turns <= 2 * unrolled) return open_unrolled("turn", static_cast<int>(turns));
  const std::string turn = writer_.unique("turn");
  writer_.open_for("int", turn, turns, unrolled);
  return turn;
}

void StagedCopyBlock::find_block() {
  CExpr rest = cast(writer_.index_type(), "blockIdx.x");
  const std::vector<std::uint32_t>& axes = kernel_.outputs[0].axes;
  origin_.resize(plan_.axes.size());
  for (std::size_t i = axes.size(); i-- > 0;) {
    const IndexExpr count = tiles_along(plan_, axes[i]);
    const bool last = std::all_of(axes.begin(), axes.begin() + static_cast<std::ptrdiff_t>(i),
                                  [&](std::uint32_t axis) { return tiles_along(plan_, axis).is(1); });
    CExpr mine = count.is(1) ? 0 : rest;
    if (!count.is(1) && !last) {
      const CExpr by = emitter_.index_text().tight(count);
      mine = rest % by;
      rest = declared_index("rest", rest / by);
    }
    const auto tiled = std::ranges::find(plan_.axes, axes[i], &TileAxis::axis);
    if (tiled == plan_.axes.end())
      emitter_.bind(axes[i], declared_index("i" + std::to_string(i), mine).tight());
    else
      origin_[static_cast<std::size_t>(tiled - plan_.axes.begin())] = declared_index("first", mine * tiled->extent);
  }
  tile_mark_ = emitter_.mark();
  for (std::size_t i = 0; i < plan_.axes.size(); ++i) {
    const IndexExpr& extent = kernel_.pool.extent(plan_.axes[i].axis);
    emitter_.bind(plan_.axes[i].axis, origin_[i].tight());
    std::optional<CExpr>& left = remaining_.emplace_back();
    if (proves_multiple_of(extent, plan_.axes[i].extent, bounds_)) continue;
    const CExpr tile = plan_.axes[i].extent, beyond = CExpr(emitter_.index_text().tight(extent)) - origin_[i];
    left = declared_int("left", writer_.wide() ? cast("int", call("min", {cast("long long", tile), beyond}))
                                               : call("min", {tile, beyond}));
  }
}

// Elements of the tile's axis that this block has.
CExpr StagedCopyBlock::count_of(std::size_t i) const {
  return remaining_[i] ? *remaining_[i] : plan_.axes[i].extent;
}

void StagedCopyBlock::add_condition(CExpr& condition, std::size_t i, const CExpr& coordinate) const {
  if (remaining_[i] && !coordinate.is(0)) condition = condition && coordinate < *remaining_[i];
}

CExpr StagedCopyBlock::find_row(const TileRows& rows, const CExpr& row, Coordinates& coordinates) {
  CExpr left = row, condition = "true";
  for (std::size_t a = 0; a < rows.across.size(); ++a) {
    const std::size_t i = rows.across[a];
    const int extent = plan_.axes[i].extent;
    coordinates[i] = left;
    if (a + 1 < rows.across.size()) {
      const CExpr above = declared_int("above", quotient(left, extent));
      coordinates[i] = declared_int("c", left - above * extent);
      left = above;
    }
    add_condition(condition, i, coordinates[i]);
  }
  return condition;
}

// One piece after the other, whatever its row.
void StagedCopyBlock::over_all_pieces(const TileRows& rows, int pieces, int unrolled, const RowBody& body) {
  const std::int64_t count = row_count(rows, plan_.axes), all = count * pieces,
                     turns = ceil_quotient(all, plan_.threads);
  const CExpr turn = open_turns(turns, unrolled);
  const CExpr piece = declared_int("piece", CExpr("threadIdx.x") + turn * plan_.threads);
  writer_.open_if(where(turns * plan_.threads > all, piece < all));
  Coordinates at;
  if (count == 1) {
    body(at, "true", piece);
  } else {
    const CExpr row = declared_int("row", quotient(piece, pieces));
    const CExpr place = declared_int("place", piece - row * pieces);
    const CExpr condition = find_row(rows, row, at);
    body(at, condition, place);
  }
  writer_.end();
  writer_.end();
}

void StagedCopyBlock::over_pieces(const TileRows& rows, int pieces, int unrolled, int wanted_lanes,
                                  const RowBody& body) {
  const ExprEmitter::Mark mark = emitter_.mark();
  const std::int64_t count = row_count(rows, plan_.axes);
  const int lanes = row_threads(count, pieces, plan_.threads, wanted_lanes).lanes;
  if (lanes == 0) {
    over_all_pieces(rows, pieces, unrolled, body);
    return emitter_.rewind(mark);
  }
  const std::int64_t at_once = plan_.threads / lanes, turns = ceil_quotient(count, at_once);
  const CExpr first = declared_int("first_row", quotient("threadIdx.x", lanes));
  const CExpr lane = declared_int(lanes < pieces ? "lane" : "piece", CExpr("threadIdx.x") - first * lanes);
  Coordinates at;
  const auto over_row = [&](const CExpr& condition) {
    if (lanes == pieces) return body(at, condition, lane);
    const std::int64_t steps = ceil_quotient(pieces, lanes);
    writer_.open_if(condition);
    const CExpr step = open_turns(steps, unrolled);
    const CExpr piece = declared_int("piece", lane + step * lanes);
    body(at, where(steps * lanes > pieces, piece < pieces), piece);
    writer_.end();
    writer_.end();
  };
  const int rows_unrolled = lanes < pieces ? 1 : unrolled;
  const bool some_idle = at_once * lanes < plan_.threads || at_once > count;
  writer_.open_if(where(some_idle, first < std::min(at_once, count)));
  // Where all turns have the same place on all axes but the last, it is found once.
  const std::size_t last = rows.across.back();
  const int extent = plan_.axes[last].extent;
  const std::int64_t inside = count / extent;
  if (turns == 1 || at_once % inside == 0) {
    CExpr condition = find_row(rows, first, at);
    if (turns > 1) {
      condition = "true";
      for (const std::size_t i : rows.across)
        if (i != last) add_condition(condition, i, at[i]);
    }
    const CExpr turn = open_turns(turns, rows_unrolled);
    if (turns > 1) {
      at[last] = declared_int("row", at[last] + turn * (at_once / inside));
      if (turns * at_once > count && !remaining_[last]) condition = condition && at[last] < extent;
      add_condition(condition, last, at[last]);
    }
    over_row(condition);
  } else {
    const CExpr turn = open_turns(turns, rows_unrolled);
    const CExpr row = declared_int("row", first + turn * at_once);
    writer_.open_if(where(turns * at_once > count, row < count));
    over_row(find_row(rows, row, at));
    writer_.end();
  }
  writer_.end();
  writer_.end();
  emitter_.rewind(mark);
}

CExpr StagedCopyBlock::bytes_text(const IndexExpr& elements, int element_bits) const {
  const IndexExpr bytes = element_bits == 4 ? floor_div(elements, 2) : elements * (element_bits / 8);
  return emitter_.index_text().tight(simplify(bytes, bounds_));
}

// Where the operand's tensor ends.
CExpr StagedCopyBlock::end_of(const StagedOperand& operand) {
  const ValueId source = kernel_.pool[operand.load].source;
  const CExpr bytes = bytes_text(*element_count(graph_.tensor(source).shape), operand.bits);
  return cast(kBytes, writer_.input(source)) + (writer_.wide() ? bytes : cast("long long", bytes));
}

// The element at the bound axes, in memory.
CExpr StagedCopyBlock::first_bytes(const StagedOperand& operand) {
  IndexExpr position = emitter_.position(operand.load);
  if (operand.bits == 4) position = simplify(floor_div(position, 2), bounds_);
  return cast(kBytes, CExpr(writer_.input(kernel_.pool[operand.load].source)) + emitter_.index_text().tight(position));
}

// The rows' vectors, on their way to shared memory.
void StagedCopyBlock::copy_rows(const StagedOperand& operand) {
  const TileRows& rows = operand.rows;
  const ValueId source = kernel_.pool[operand.load].source;
  const std::string name = writer_.preferred_name(source);
  for (std::size_t i = 0; i < plan_.axes.size(); ++i)
    if (rows.backwards[i])
      emitter_.bind(plan_.axes[i].axis, declared_index("last", origin_[i] + count_of(i) - 1).tight());
  const CExpr first = declared(kBytesAt, name + "_first", first_bytes(operand));
  bind_origins();
  const CExpr tile = find_tile(operand, rows.aligned < 16 ? address_modulo(16, first) : 0);
  CExpr element = tile;  // the first of the result's
  for (std::size_t i = 0; i < plan_.axes.size(); ++i)
    if (rows.backwards[i]) element = element + (count_of(i) - 1) * place_of(operand, i);
  if (!(element == tile)) tiles_[operand.load] = declared("unsigned char* const", name + "_element", element);
  const int from = rows.aligned < 16 ? 32 : 16;
  const int pieces = row_bytes(rows, plan_.axes, operand.bits, from) / 16;
  const CExpr length = run_bytes(rows, operand.bits);
  const bool whole = rows.aligned >= from && length.is(pieces * 16);
  const bool whole_tensor =
      proves_multiple_of(*element_count(graph_.tensor(source).shape), 128 / operand.bits, bounds_);
  const CExpr of_row = whole ? length : CExpr(writer_.declared("const int", name + "_bytes", length));
  over_pieces(rows, pieces, 4, 0, [&](const Coordinates& at, CExpr condition, const CExpr& piece) {
    const CExpr distance = offset(at, [&](std::size_t i) { return bytes_text(rows.steps[i], operand.bits); });
    const CExpr in_memory = declared_behind(kBytesAt, "row_first", first, distance);
    const CExpr place =
        declared_int("behind", piece * 16 - (rows.aligned < from ? address_modulo(from, in_memory) : 0));
    if (rows.aligned < from) condition = condition && place > -16;
    if (!whole) condition = condition && place < of_row;
    const CExpr to = tile + offset(at, [&](std::size_t i) { return place_of(operand, i); });
    std::vector<CExpr> arguments = {call("shared_address", {to}) + place, in_memory + place};
    if (!whole_tensor) arguments.push_back(end_of(operand));
    writer_.open_if(condition);
    writer_.run(call("copy_vector", std::move(arguments)));
    writer_.end();
  });
}

CExpr StagedCopyBlock::run_bytes(const TileRows& rows, int element_bits) const {
  const std::int64_t all = run_elements(rows, plan_.axes);
  if (rows.run.empty() || !remaining_[rows.run.back()]) return all * element_bits / 8;
  const std::size_t last = rows.run.back();
  const std::int64_t beyond = plan_.axes[last].extent * rows.strides[last] - all;
  if (element_bits == 4) return (*remaining_[last] * rows.strides[last] - beyond) / 2;
  return *remaining_[last] * (rows.strides[last] * element_bits / 8) - beyond * element_bits / 8;
}

// Declares what of places in shared memory depends on symbols.
void StagedCopyBlock::find_places(const StagedOperand& operand) {
  std::vector<CExpr>& places = places_[operand.load];
  for (std::size_t i = 0; i < plan_.axes.size(); ++i) {
    CExpr& place = places.emplace_back(operand.pitches[i]);
    if (!operand.pitch_varies(i)) continue;
    const CExpr step = bytes_text(operand.rows.steps[i], operand.bits);
    place = declared_int("place", cast("int", step & 15) + operand.pitches[i] / 16 * 16);
  }
}

CExpr StagedCopyBlock::step_of(const StagedOperand& operand, std::size_t i) const {
  return operand.rows.backwards[i] ? -place_of(operand, i) : place_of(operand, i);
}

CExpr StagedCopyBlock::find_tile(const StagedOperand& operand, const CExpr& behind) {
  const std::string name = writer_.preferred_name(kernel_.pool[operand.load].source);
  find_places(operand);
  CExpr tile = "dynamic_shared";
  if (operand.start > 0) tile = tile + writer_.declared("constexpr int", name + "_offset", operand.start);
  return tiles_[operand.load] = declared("unsigned char* const", name + "_tile", tile + behind);
}

// Rows that begin wherever their index says, at multiples of 16 bytes; zeros where the guard does not hold.
void StagedCopyBlock::copy_indexed_rows(const StagedOperand& operand) {
  const ExprNode& n = kernel_.pool[operand.load];
  const TileRows& rows = operand.rows;
  const CExpr tile = find_tile(operand);
  const int pieces = row_bytes(rows, plan_.axes, operand.bits, 16) / 16;
  const CExpr length = run_bytes(rows, operand.bits);
  const bool whole_tensor =
      proves_multiple_of(*element_count(graph_.tensor(n.source).shape), 128 / operand.bits, bounds_);
  over_pieces(rows, pieces, 4, 0, [&](const Coordinates& at, CExpr condition, const CExpr& piece) {
    const CExpr behind = declared_int("behind", piece * 16);
    if (!length.is(pieces * 16)) condition = condition && behind < length;
    writer_.open_if(condition);
    const ExprEmitter::Mark mark = emitter_.mark();
    bind_axes(at);
    const CExpr guard = n.args[0] == kNoExpr ? "true" : CExpr(emitter_.emit(n.args[0]));
    const CExpr from = declared(kBytesAt, "row_first", first_bytes(operand));
    const CExpr to = tile + offset(at, [&](std::size_t i) { return place_of(operand, i); });
    std::vector<CExpr> arguments = {call("shared_address", {to}) + behind, from + behind};
    if (!guard.is_true() || !whole_tensor) arguments.push_back(select(guard, end_of(operand), from + behind));
    writer_.run(call("copy_vector", std::move(arguments)));
    emitter_.rewind(mark);
    writer_.end();
  });
  bind_origins();
}

// Elements one by one, wherever they are, 0 where the load's guard does not hold.
void StagedCopyBlock::copy_elements(const StagedOperand& operand) {
  const ExprNode& n = kernel_.pool[operand.load];
  const std::string type = bits_type(operand.element_bytes());
  const CExpr tile = find_tile(operand);
  const std::size_t along = operand.rows.run[0];
  const ExprEmitter::Mark mark = emitter_.mark();
  over_pieces(operand.rows, plan_.axes[along].extent, 4, 0, [&](Coordinates at, CExpr condition, const CExpr& piece) {
    at[along] = piece;
    add_condition(condition, along, piece);
    writer_.open_if(condition);
    bind_axes(at);
    const CExpr guard = n.args[0] == kNoExpr ? "true" : CExpr(emitter_.emit(n.args[0]));
    const CExpr position = emitter_.index(emitter_.position(operand.load)), tensor = writer_.input(n.source);
    CExpr value = element(cast("const " + type + "*", tensor), position);
    if (operand.bits == 4) {
      writer_.use("nibble");
      value = cast(type, call("nibble", {tensor, position}));
    }
    const CExpr to = tile + offset(at, [&](std::size_t i) { return place_of(operand, i); });
    writer_.assign(pointee(type, to), select(guard, value, cast(type, 0)));
    writer_.end();
  });
  emitter_.rewind(mark);
  bind_origins();
}

void StagedCopyBlock::bind_axes(const Coordinates& coordinates) {
  for (const auto& [i, coordinate] : coordinates) {
    const CExpr at = origin_[i] + coordinate;
    emitter_.bind(plan_.axes[i].axis, at.is_leaf() ? at.tight() : declared_index("i", at).tight());
  }
}

std::string StagedCopyBlock::value_text(const StagedOperand& operand, const CExpr& place) {
  const DType dtype = kernel_.pool[operand.load].dtype;
  writer_.use(dtype);
  if (operand.bits == 4) return value_of_bits(dtype, cast("unsigned", pointee(place)).text(), writer_);
  return widen(dtype, pointee("const " + storage_type(dtype), place).text());
}

}  // namespace fusec
