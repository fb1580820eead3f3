#include "codegen/gemm/tile_load.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analysis/kernel/loads.h"
#include "codegen/access/direct.h"
#include "codegen/expr/limit_unrolling.h"
#include "ir/type.h"
#include "schedule/layout/memory_access.h"

namespace fusec {

// The neighbouring elements that one access of at most 16 bytes can copy to the tile unchanged.
int TileLoader::vector_width(const TileLoad& load) const {
  const ExprNode& n = pool_[load.operand];
  const bool unchanged =
      load.narrowed ? n.dtype == *load.narrowed : n.dtype == DType::kFloat32 || n.dtype == DType::kFloat64;
  if (n.op != ExprOp::kLoad || !unchanged || load.position_axes.empty()) return 1;
  const std::uint32_t axis = load.position_axes.back();
  if (n.args[0] != kNoExpr && (load.async || emitter_.depends_on(n.args[0], axis))) return 1;
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
  int along_lines = 0, along_places = 0;
  for (const ExprId id : reachable(pool_, std::span(&load.operand, 1))) {
    if (pool_[id].op != ExprOp::kLoad) continue;
    // A thread that loads eight places of a line stores them at once.
    const bool contiguous =
        !load.line_axes.empty() && coefficient_of(emitter_.position(id), axis_variable(load.line_axes.back())) == 1;
    if (load.narrowed && contiguous) return true;
    along_lines += sectors_of_warp(id, load, true);
    along_places += sectors_of_warp(id, load, false);
  }
  return along_lines < along_places;
}

// Sectors that a block's first warp touches if its lanes are neighbours along the lines' axes, or along the places'.
int TileLoader::sectors_of_warp(ExprId id, const TileLoad& load, bool along_lines) const {
  const IndexExpr position = emitter_.position(id);
  if (by_values(position)) return 32;
  std::vector<std::int64_t> addresses;
  for (std::int64_t lane = 0; lane < 32; ++lane) {
    std::map<std::uint32_t, std::int64_t> at;
    const auto place = [&](const std::vector<std::uint32_t>& axes, std::int64_t number) {
      for (std::size_t i = axes.size(); i-- > 0; number = i > 0 ? number / hint(axes[i]) : number)
        at[axes[i]] = i > 0 ? number % hint(axes[i]) : number;
    };
    const std::int64_t fast = along_lines ? load.lines : load.places;
    place(load.line_axes, along_lines ? lane % fast : lane / fast);
    place(load.position_axes, along_lines ? lane / fast : lane % fast);
    const std::int64_t element = evaluate(position, [&](Variable v) -> std::int64_t {
      if (v.kind == Variable::Kind::kSymbol) return pool_.bounds().symbols[v.id].hint;
      const auto known = at.find(v.id);
      return known == at.end() ? 0 : known->second;
    });
    addresses.push_back(element * bits(pool_[id].dtype) / 8);
  }
  return static_cast<int>(count_sectors(addresses));
}

std::int64_t TileLoader::hint(std::uint32_t axis) const {
  return std::max<std::int64_t>(1, value_at_hint(pool_.extent(axis), pool_.bounds().symbols));
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

// The line of the e-th access. The lanes that write at a time write 128 bytes. If these are half of the banks in each
// of two lines, these lines are chosen four apart, provided that adjacent lines share banks and those do not.
std::string TileLoader::line_of(const TileLoad& load, int width, const std::string& e) const {
  const int units = load.places / width, bytes = bits(pool_[load.operand].dtype) / 8;
  const bool apart = width > 1 && units * width * bytes == 64 && load.lines % 8 == 0 &&
                     load.stride * bytes * 4 % 128 == 64 && load.stride * bytes % 128 != 64;
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
  if (load.unrolled == TileLoad::kToFit)
    writer_.line(kUnrollToFit);
  else if (width > 1 && total % threads_ == 0 && total / threads_ <= 16)
    writer_.line("#pragma unroll");
  else if (load.unrolled > 0)
    writer_.line(fmt::format("#pragma unroll {}", load.unrolled));
  writer_.open_strided(e, total, threads_);
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
  // Computed elements would be too much code eight times, unless that is limited.
  const bool fits = pool_[load.operand].op == ExprOp::kLoad || load.unrolled == TileLoad::kToFit;
  return fits && load.narrowed && load.places % 8 == 0 && load.stride % 8 == 0 && vector_width(load) == 1 &&
         runs_along_lines(load);
}

void TileLoader::load_columns_of_eight(const TileLoad& load) {
  const std::string e = writer_.unique("e"), line = writer_.unique("line"), first = writer_.unique("place");
  const std::string eight = writer_.unique("eight"), i = writer_.unique("i");
  if (load.unrolled == TileLoad::kToFit) writer_.line(kUnrollToFit);
  writer_.open_strided(e, load.lines * load.places / 8, threads_);
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
  if (load.more)
    if (const std::string further = load.more(line, place); !further.empty()) inside += " && " + further;
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
  const ExprEmitter::Mark mark = emitter_.mark();
  const int width = vector_width(load);
  if (loads_columns_of_eight(load)) {
    load_columns_of_eight(load);
  } else if (width > 1) {
    load_vectors(load, width);
  } else {
    const std::string line = writer_.unique("line"), place = writer_.unique("place");
    open_accesses(load, 1, line, place);
    const std::string one = declare_one(load, declare_element(load, line, place));
    writer_.line(fmt::format("{}[{} * {} + {}] = {};", load.tile, line, load.stride, place, one));
    writer_.close();
  }
  emitter_.rewind(mark);
}

void TileLoader::load_vectors(const TileLoad& load, int width) {
  const std::string line = writer_.unique("line"), place = writer_.unique("place");
  open_accesses(load, width, line, place);
  const auto [at, along, inside] = declare_element(load, line, place);
  const std::string target = fmt::format("{} + {} * {} + {}", load.tile, line, load.stride, place);
  const ExprNode& n = pool_[load.operand];
  const int words = width * bits(n.dtype) / 32;
  const std::string type = words == 4 ? "uint4" : words == 2 ? "uint2" : "unsigned";
  const std::string zero = words == 4 ? "make_uint4(0, 0, 0, 0)" : words == 2 ? "make_uint2(0, 0)" : "0";
  // The position may depend on a loaded index, which exists only for valid lines.
  const bool guarded = !load.async || has_indirect_loads(load);
  const std::string one = load.async ? "" : writer_.unique("elements");
  if (!load.async) writer_.line(fmt::format("{} {} = {};", type, one, zero));
  if (guarded) writer_.open(fmt::format("if ({})", inside));
  const ExprEmitter::Mark mark = emitter_.mark();
  bind(load, at, along);
  emitter_.emit_independent({load.operand});
  const std::string there = n.args[0] == kNoExpr ? "" : fmt::format("if ({}) ", emitter_.emit(n.args[0]));
  const std::string from =
      fmt::format("{} + {}", writer_.input(n.source), emitter_.index(emitter_.position(load.operand)));
  if (load.async) {
    writer_.use("copy_async");
    writer_.line(fmt::format("copy_async<{}>({}, {}, {});", words * 4, target, from, guarded ? "true" : inside));
  } else {
    writer_.line(fmt::format("{}{} = *(const {}*)({});", there, one, type, from));
  }
  emitter_.rewind(mark);
  if (guarded && load.async) {
    writer_.close("} else {");
    writer_.reopen();
    writer_.line(fmt::format("*({}*)({}) = {};", type, target, zero));
  }
  if (guarded) writer_.close();
  if (!load.async) writer_.line(fmt::format("*({}*)({}) = {};", type, target, one));
  writer_.close();
}

}  // namespace fusec
