#include "codegen/gemm/tile_load.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/kernel/loads.h"
#include "codegen/access/direct.h"
#include "ir/type.h"

namespace fusec {

// The neighbouring elements that one access of at most 16 bytes can copy to the tile unchanged.
int TileLoader::vector_width(const TileLoad& load) const {
  const ExprNode& n = pool_[load.operand];
  const bool unchanged =
      load.narrowed ? n.dtype == *load.narrowed : n.dtype == DType::kFloat32 || n.dtype == DType::kFloat64;
  if (n.op != ExprOp::kLoad || n.args[0] != kNoExpr || !unchanged || load.position_axes.size() != 1) return 1;
  const std::uint32_t axis = load.position_axes[0];
  const IndexExpr position = emitter_.position(load.operand);
  if (coefficient_of(position, {Variable::Kind::kAxis, axis}) != 1 || is_indirect_along(position, {axis}, pool_))
    return 1;
  const IndexExpr rest = position - IndexExpr::axis(axis);
  int width = 128 / bits(n.dtype);
  const auto fits = [&] {
    return load.stride % width == 0 && load.places % width == 0 && proves_multiple_of(rest, width, pool_.bounds()) &&
           proves_multiple_of(pool_.extent(axis), width, pool_.bounds());
  };
  while (width > 1 && !fits()) width /= 2;
  return width * bits(n.dtype) >= 32 ? width : 1;
}

bool TileLoader::runs_along_lines(const TileLoad& load) const {
  if (load.line_axes.empty()) return false;
  const Variable last{Variable::Kind::kAxis, load.line_axes.back()};
  return std::ranges::any_of(reachable(pool_, std::span(&load.operand, 1)), [&](ExprId id) {
    return pool_[id].op == ExprOp::kLoad && coefficient_of(emitter_.position(id), last) == 1;
  });
}

void TileLoader::bind(const TileLoad& load, const std::string& line, const std::string& place) {
  bind_flat(emitter_, load.line_axes, line, "mnopq");
  bind_flat(emitter_, load.position_axes, place, "kluvw");
}

bool TileLoader::has_indirect_loads(const TileLoad& load) const {
  return by_values(emitter_.position(load.operand));
}

std::string TileLoader::element(const TileLoad& load) {
  const ExprNode& n = pool_[load.operand];
  if (load.narrowed && n.op == ExprOp::kLoad && n.args[0] == kNoExpr && n.dtype == *load.narrowed) {
    emitter_.emit_independent({load.operand});  // loads that the index needs
    return fmt::format("{}[{}]", writer_.input(n.source), emitter_.index(emitter_.position(load.operand)));
  }
  const std::string value = emitter_.emit(load.operand);
  if (!load.narrowed) return value;
  writer_.use(*load.narrowed);
  return narrow(*load.narrowed, value);
}

// The line of the e-th access. Eight lanes write at a time. If they cover half of the banks in each of two lines, these
// lines are chosen four apart, provided that adjacent lines share banks and those do not.
std::string TileLoader::line_of(const TileLoad& load, int width, const std::string& e) const {
  const int units = load.places / width, bytes = bits(pool_[load.operand].dtype) / 8;
  const bool apart = width * bytes == 16 && units == 4 && load.lines % 8 == 0 && load.stride * bytes * 4 % 128 == 64 &&
                     load.stride * bytes % 128 != 64;
  if (!apart) return fmt::format("{} / {}", e, units);
  return fmt::format("{0} / {1} * 8 + {0} / {2} % 2 * 4 + {0} / {3} % 4", e, 8 * units, units, 2 * units);
}

// True if eight lanes should write the same unit of eight lines: a line is no multiple of 128 bytes, and its stride is
// an odd number of 16-byte units, which puts the eight lines in different banks.
bool TileLoader::loads_eight_lines(const TileLoad& load, int width) const {
  const int bytes = width * bits(pool_[load.operand].dtype) / 8, units = load.places / width;
  return bytes == 16 && units % 8 != 0 && load.stride / width % 2 != 0 && load.lines % 8 == 0;
}

// With loads_eight_lines(): the units of each line that the threads load at a time, if the same for all lines; else 0.
int TileLoader::units_at_a_time(const TileLoad& load, int width) const {
  const int units = load.places / width;
  if (!loads_eight_lines(load, width)) return 0;
  return threads_ % load.lines == 0 && threads_ / load.lines <= units ? threads_ / load.lines : 0;
}

void TileLoader::open_accesses(const TileLoad& load, int width, const std::string& line, const std::string& place) {
  const std::string e = writer_.unique("e");
  const int total = load.lines * load.places / width, units = load.places / width;
  if (const int together = units_at_a_time(load, width)) {
    writer_.line("#pragma unroll");
    writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; {0} += {2})", e, units, together));
    writer_.line(
        fmt::format("const int {} = threadIdx.x / {} * 8 + threadIdx.x % 8, {} = ({} + threadIdx.x / 8 % {}) * {};",
                    line, 8 * together, place, e, together, width));
    if (units % together != 0) writer_.line(fmt::format("if ({} >= {}) continue;", place, load.places));
    return;
  }
  if (width > 1 && total % threads_ == 0 && total / threads_ <= 16)
    writer_.line("#pragma unroll");
  else if (load.unrolled > 0)
    writer_.line(fmt::format("#pragma unroll {}", load.unrolled));
  writer_.open(fmt::format("for (int {0} = threadIdx.x; {0} < {1}; {0} += {2})", e, total, threads_));
  if (loads_eight_lines(load, width))
    writer_.line(fmt::format("const int {0} = {1} / {2} * 8 + {1} % 8, {3} = {1} / 8 % {4} * {5};", line, e, 8 * units,
                             place, units, width));
  else if (width == 1 && runs_along_lines(load))
    writer_.line(fmt::format("const int {0} = {1} % {2}, {3} = {1} / {2};", line, e, load.lines, place));
  else
    writer_.line(fmt::format("const int {0} = {5}, {3} = {1} % {2}{4};", line, e, units, place,
                             width > 1 ? fmt::format(" * {}", width) : "", line_of(load, width, e)));
}

bool TileLoader::loads_columns_of_eight(const TileLoad& load) const {
  const bool plain = pool_[load.operand].op == ExprOp::kLoad;  // computed elements would be too much code eight times
  return plain && load.narrowed && load.places % 8 == 0 && load.stride % 8 == 0 && vector_width(load) == 1 &&
         runs_along_lines(load);
}

void TileLoader::load_columns_of_eight(const TileLoad& load) {
  const std::string e = writer_.unique("e"), line = writer_.unique("line"), first = writer_.unique("place");
  const std::string eight = writer_.unique("eight"), i = writer_.unique("i");
  writer_.open(
      fmt::format("for (int {0} = threadIdx.x; {0} < {1}; {0} += {2})", e, load.lines * load.places / 8, threads_));
  writer_.line(fmt::format("const int {0} = {1} % {2}, {3} = {1} / {2} * 8;", line, e, load.lines, first));
  writer_.line(fmt::format("unsigned {}[4] = {{}};", eight));
  writer_.line("#pragma unroll");
  writer_.open(fmt::format("for (int {0} = 0; {0} < 8; ++{0})", i));
  const std::string place = writer_.unique("place");
  writer_.line(fmt::format("const int {} = {} + {};", place, first, i));
  const std::string one = declare_one(load, declare_element(load, line, place));
  writer_.line(fmt::format("{0}[{1} / 2] |= (unsigned){2} << ({1} % 2 * 16);", eight, i, one));
  writer_.close();
  writer_.line(fmt::format("*(uint4*)({0} + {1} * {2} + {3}) = make_uint4({4}[0], {4}[1], {4}[2], {4}[3]);", load.tile,
                           line, load.stride, first, eight));
  writer_.close();
}

TileLoader::Element TileLoader::declare_element(const TileLoad& load, const std::string& line,
                                                const std::string& place) {
  const std::string at = writer_.unique("at");
  writer_.line(
      fmt::format("const {} {} = {}{};", writer_.index_type(), at, load.line0 == "0" ? "" : load.line0 + " + ", line));
  const auto count = [&](const std::vector<std::uint32_t>& axes) {
    return emitter_.index_text().tight(simplify(point_count(pool_, axes), pool_.bounds()));
  };
  std::string inside = fmt::format("{} < {}", at, count(load.line_axes));
  std::string along = place;
  if (!load.place0.empty()) {
    along = writer_.unique("k");
    writer_.line(fmt::format("const {} {} = {} + {};", writer_.index_type(), along, load.place0, place));
    inside += fmt::format(" && {} < {}", along, count(load.position_axes));
  } else if (!simplify(point_count(pool_, load.position_axes), pool_.bounds()).is(load.places))
    inside += fmt::format(" && {} < {}", place, count(load.position_axes));
  return {at, along, inside};
}

// Declares a variable with the element, or 0 outside, and returns its name.
std::string TileLoader::declare_one(const TileLoad& load, const Element& place) {
  const std::string one = writer_.unique("one");
  writer_.line(fmt::format("{} {} = 0;", load.narrowed ? "unsigned short" : c_type(pool_[load.operand].type), one));
  writer_.open(fmt::format("if ({})", place.inside));
  const ExprEmitter::Mark mark = emitter_.mark();
  bind(load, place.at, place.along);
  writer_.line(fmt::format("{} = {};", one, element(load)));
  emitter_.rewind(mark);
  writer_.close();
  return one;
}

void TileLoader::load(const TileLoad& load) {
  if (loads_columns_of_eight(load)) return load_columns_of_eight(load);
  const int width = vector_width(load);
  const std::string line = writer_.unique("line"), place = writer_.unique("place");
  open_accesses(load, width, line, place);
  const auto [at, along, inside] = declare_element(load, line, place);
  const std::string target =
      fmt::format("{}{} + {} * {} + {}", width > 1 ? "(" : "", load.tile, line, load.stride, place);
  const ExprNode& n = pool_[load.operand];
  if (width > 1) {
    const std::string one = writer_.unique("elements");
    const int words = width * bits(n.dtype) / 32;
    const std::string type = words == 4 ? "uint4" : words == 2 ? "uint2" : "unsigned";
    const std::string zero = words == 4 ? "make_uint4(0, 0, 0, 0)" : words == 2 ? "make_uint2(0, 0)" : "0";
    // The position may depend on a loaded index, which exists only for valid lines.
    const bool guarded = has_indirect_loads(load);
    if (load.async) {
      writer_.use("copy_async");
      if (guarded) writer_.open(fmt::format("if ({})", inside));
      const ExprEmitter::Mark mark = emitter_.mark();
      bind(load, at, along);
      emitter_.emit_independent({load.operand});
      writer_.line(fmt::format("copy_async<{}>({}, {} + {}, {});", words * 4, target.substr(1), writer_.input(n.source),
                               emitter_.index(emitter_.position(load.operand)), guarded ? "true" : inside));
      emitter_.rewind(mark);
      if (guarded) {
        writer_.close("} else {");
        writer_.reopen();
        writer_.line(fmt::format("*({}*){}) = {};", type, target, zero));
        writer_.close();
      }
      writer_.close();
      return;
    }
    writer_.line(fmt::format("{} {} = {};", type, one, zero));
    writer_.open(fmt::format("if ({})", inside));
    const ExprEmitter::Mark mark = emitter_.mark();
    bind(load, at, along);
    emitter_.emit_independent({load.operand});
    writer_.line(fmt::format("{} = *(const {}*)({} + {});", one, type, writer_.input(n.source),
                             emitter_.index(emitter_.position(load.operand))));
    emitter_.rewind(mark);
    writer_.close();
    writer_.line(fmt::format("*({}*){}) = {};", type, target, one));
  } else {
    const std::string one = declare_one(load, {at, along, inside});
    writer_.line(fmt::format("{}[{} * {} + {}] = {};", load.tile, line, load.stride, place, one));
  }
  writer_.close();
}

}  // namespace fusec
