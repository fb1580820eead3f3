#include "codegen/schedules/convolution_tiles.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <utility>

#include "analysis/gemm_operand.h"
#include "analysis/loads.h"
#include "codegen/schedules/depth_table.h"
#include "codegen/schedules/direct.h"
#include "codegen/schedules/gemm_block.h"
#include "ir/type.h"

namespace fusec {

ConvolutionTiles::ConvolutionTiles(const Kernel& kernel, const Product& product, const ConvolutionForm& form,
                                   KernelWriter& writer, ExprEmitter& emitter)
    : product_(product),
      form_(form),
      tiles_(form.tiles),
      pool_(kernel.pool),
      writer_(writer),
      emitter_(emitter),
      left_(tile(form.left, true)),
      right_(tile(form.right, false)) {}

void ConvolutionTiles::place(const std::string& row0, const std::string& column0, const std::string& stages,
                             const std::string& first, const std::string& end) {
  row0_ = row0;
  column0_ = column0;
  stages_ = stages;
  first_ = first;
  end_ = end;
}

IndexExpr ConvolutionTiles::count(const std::vector<std::uint32_t>& axes) const {
  return point_count(pool_, axes);
}

std::string ConvolutionTiles::text(const IndexExpr& e) {
  return emitter_.index_text().tight(simplify(e, pool_.bounds()));
}

const std::vector<std::uint32_t>& ConvolutionTiles::across(const ConvolutionTile& t) const {
  return t.left ? product_.rows : product_.columns;
}

void ConvolutionTiles::declare() {
  for (const ConvolutionTile* t : {&left_, &right_})
    if (t->factor->tabled) make_table(*t);
  for (const ConvolutionTile* t : {&left_, &right_}) declare(*t);
  if (form_.left.tabled || form_.right.tabled) writer_.line("__syncthreads();  // the tables are there");
}

ConvolutionTile ConvolutionTiles::tile(const ConvolutionFactor& factor, bool left) {
  ConvolutionTile t{.factor = &factor, .left = left};
  t.along_depth = !form_.words() || !factor.gathered();
  t.across = left ? tiles_.rows : tiles_.columns;
  t.units = (t.along_depth ? tiles_.depth : t.across) / together();
  t.offset = left ? 0 : std::int64_t{form_.element_bytes()} * tiles_.rows * tiles_.depth;
  const std::string name = writer_.wish(pool_[factor.load].source);
  for (auto [member, wish] : {std::pair{&t.table, "_steps"},
                              {&t.from, "_from"},
                              {&t.outside, "_outside"},
                              {&t.line, "_line"},
                              {&t.part, "_part"},
                              {&t.to, "_to"},
                              {&t.lines, "_places"},
                              {&t.waiting, "_waiting"}})
    *member = writer_.unique(name + wish);
  t.fragments = writer_.unique(left ? "left" : "right");
  t.places = writer_.unique(t.fragments + "_places");
  if (factor.fill == ConvolutionFill::kStrips && !factor.tabled) t.apart = elements_apart(t);
  return t;
}

std::optional<std::int64_t> ConvolutionTiles::elements_apart(const ConvolutionTile& t) const {
  if (by_values(t.factor->across)) return std::nullopt;
  const auto stride = flat_stride(t.factor->across, across(t), pool_);
  const auto line = stride ? simplify(*stride, pool_.bounds()).as_constant() : std::nullopt;
  constexpr std::int64_t kMostBytes = 1 << 23;  // of an offset in an instruction
  if (!line || std::abs(*line) * t.across * form_.element_bytes() >= kMostBytes) return std::nullopt;
  return *line * lines_apart();
}

// --- gathered elements

void ConvolutionTiles::make_table(const ConvolutionTile& t) {
  const std::int64_t at = form_.stage_bytes() * tiles_.stages + (t.left ? 0 : form_.table_bytes(form_.left));
  const int each = form_.entry_elements(*t.factor);
  writer_.line(fmt::format("DepthStep* const {} = (DepthStep*)(dynamic_shared + {});", t.table, at));
  make_depth_table(emitter_,
                   {*t.factor, form_.axes, form_.depth, form_.table_entries(*t.factor), each, place_stride(t.across)},
                   t.table, tiles_.threads());
  if (t.factor->placed) make_places(t);
}

// Each thread has one line, and some of its taps; what is beyond the depth is outside of every line.
void ConvolutionTiles::make_places(const ConvolutionTile& t) {
  const std::int64_t stride = place_stride(t.across);
  writer_.line(fmt::format("int* const {} = (int*)({} + {});", t.lines, t.table, form_.table_entries(*t.factor)));
  writer_.open("");
  const ExprEmitter::Mark mark = emitter_.mark();
  const std::string line = writer_.unique("line");
  writer_.line(fmt::format("const int {} = threadIdx.x % {};", line, t.across));
  bind_line(t, line);
  find_places(emitter_, *t.factor,
              {.places = fmt::format("({} + {})", t.lines, line),
               .there = is_there(t, line),
               .first = fmt::format("threadIdx.x / {}", t.across),
               .further = tiles_.threads() / t.across,
               .stride = stride});
  writer_.line(fmt::format("{}[{} + {}] = -1;", t.lines, t.factor->places * stride, line));
  emitter_.rewind(mark);
  writer_.close();
}

void ConvolutionTiles::declare(const ConvolutionTile& t) {
  switch (t.factor->fill) {
    case ConvolutionFill::kCopies:
      return declare_copy(t);
    case ConvolutionFill::kPieces:
      return declare_pieces(t);
    case ConvolutionFill::kStrips:
      return declare_strips(t);
    case ConvolutionFill::kGathered:
      return declare_gather(t);
  }
}

// This thread's line: where it begins, and which taps are outside.
void ConvolutionTiles::declare_gather(const ConvolutionTile& t) {
  const ExprNode& load = pool_[t.factor->load];
  writer_.line(
      fmt::format("const int {} = threadIdx.x % {}, {} = threadIdx.x / {};", t.line, t.across, t.part, t.across));
  if (!t.factor->placed) {
    writer_.line(fmt::format("const {}* {} = {};", storage_type(load.dtype), t.from, writer_.input(load.source)));
    writer_.line(fmt::format("unsigned {} = ~0u;", t.outside));
    find_line(t, t.line, t.from, t.outside);
  }
  if (t.factor->placed)
    writer_.use(form_.words() ? "gather_placed_32_bits" : "gather_placed");
  else
    writer_.use(form_.words() ? "gather_32_bits" : "gather_to_registers");
  if (form_.tf32) return;
  if (form_.words()) {
    writer_.use("swizzled_further");
    writer_.line(fmt::format("const unsigned {} = {} + swizzled<{}>({}, {} / 4) + {} % 4 * 4;", t.to, t.offset, t.units,
                             t.part, t.line, t.line));
    return;
  }
  writer_.line(fmt::format("OnTheWay<{}> {}[{}];", element_type(), t.waiting, units_of_thread(t)));
}

// Where a line of the tile begins, and its taps outside; both stay as they are where there is no such row or column.
void ConvolutionTiles::find_line(const ConvolutionTile& t, const std::string& line, const std::string& from,
                                 const std::string& outside) {
  const std::string at = writer_.unique(t.left ? "row" : "column");
  writer_.line(fmt::format("const int {} = {} + {};", at, t.left ? row0_ : column0_, line));
  writer_.open(fmt::format("if ({} < {})", at, text(count(across(t)))));
  const ExprEmitter::Mark mark = emitter_.mark();
  bind_flat(emitter_, across(t), at, t.left ? "mnopq" : "ijlst");
  writer_.line(fmt::format("{} += {};", from, emitter_.index(t.factor->across)));
  writer_.line(fmt::format("{} = 1u << 31;", outside));
  find_taps_outside(emitter_, *t.factor, outside);
  emitter_.rewind(mark);
  writer_.close();
}

// What positions count from: of a table of places, from the tensor's beginning.
std::string ConvolutionTiles::from(const ConvolutionTile& t) {
  return t.factor->placed ? writer_.input(pool_[t.factor->load].source) : t.from;
}

// Of 16-bit elements: eights of its line that a thread gathers; of float32: elements.
int ConvolutionTiles::units_of_thread(const ConvolutionTile& t) const {
  const int of_line = form_.words() ? tiles_.depth : t.units;
  return of_line / (tiles_.threads() / t.across);
}

// Where a step is in the table, and how much further its positions are than those there.
ConvolutionTiles::TableStep ConvolutionTiles::step_of_table(const ConvolutionTile& t, const std::string& step) {
  if (t.factor->period == 0) return {step, ""};
  const std::int64_t steps = t.factor->period / tiles_.depth;
  const std::string again = writer_.unique("again");
  writer_.line(fmt::format("const int {} = {} / {};  // as often the table has begun anew", again, step, steps));
  return {fmt::format("({} - {} * {})", step, again, steps), fmt::format(" + {} * {}", again, text(t.factor->further))};
}

void ConvolutionTiles::gather_to_registers(const ConvolutionTile& t, const std::string& step) {
  const TableStep here = step_of_table(t, step);
  writer_.line("#pragma unroll");
  writer_.line(fmt::format("for (int i = 0; i < {}; ++i)", units_of_thread(t)));
  writer_.line(fmt::format("  gather({}[i], {}{}, {} + ({} * {} + {} * {} + i) * {}, {});", t.waiting, from(t),
                           here.further, t.table, here.step, t.units, t.part, units_of_thread(t), together(),
                           t.factor->placed ? fmt::format("{} + {}", t.lines, t.line) : t.outside));
}

void ConvolutionTiles::store_gathered(const ConvolutionTile& t, const std::string& into) {
  writer_.line("#pragma unroll");
  writer_.line(fmt::format("for (int i = 0; i < {}; ++i)", units_of_thread(t)));
  writer_.line(fmt::format("  store_gathered(dynamic_shared + {} + {} + swizzled<{}>({}, {} * {} + i), {}[i]);", into,
                           t.offset, t.units, t.line, t.part, units_of_thread(t), t.waiting));
}

// Neighbouring threads have neighbouring columns: what they copy at a time goes to different banks.
void ConvolutionTiles::gather_asynchronously(const ConvolutionTile& t, const std::string& into,
                                             const std::string& step) {
  const TableStep here = step_of_table(t, step);
  writer_.line("#pragma unroll");
  writer_.open(fmt::format("for (int i = 0; i < {}; ++i)", units_of_thread(t)));
  const int apart = tiles_.threads() / t.across;  // along the depth
  const std::string place = form_.tf32 ? fmt::format("{} + swizzled_in_pairs<{}>({} + i * {}, {} / 4) + {} % 4 * 4",
                                                     t.offset, t.units, t.part, apart, t.line, t.line)
                                       : fmt::format("swizzled_further<{}>({}, i * {}, 0)", t.units, t.to, apart);
  writer_.line(fmt::format("gather_one({} + {} + {}, {}{}, {}[{} * {} + {} + i * {}], {});", stages_, into, place,
                           from(t), here.further, t.table, here.step, tiles_.depth, t.part, apart,
                           t.factor->placed ? fmt::format("{} + {}", t.lines, t.line) : t.outside));
  writer_.close();
}

// --- what is copied as it lies

int ConvolutionTiles::copies(const ConvolutionTile& t) const {
  return std::max(1, t.across / pass(t));
}

bool ConvolutionTiles::fills(const ConvolutionTile& t) const {
  return proves_multiple_of(count(across(t)), t.across, pool_.bounds());
}

// The flattened row or column of a tile's line, or the last one for what lies beyond; binds its axes.
void ConvolutionTiles::bind_line(const ConvolutionTile& t, const std::string& line) {
  std::string here = fmt::format("{} + {}", t.left ? row0_ : column0_, line);
  if (!fills(t)) here = fmt::format("min({}, {})", here, text(count(across(t)) - 1));
  bind_place(t, here);
}

void ConvolutionTiles::bind_place(const ConvolutionTile& t, const std::string& here) {
  const std::string at = writer_.unique(t.left ? "row" : "column");
  writer_.line(fmt::format("const int {} = {};", at, here));
  bind_flat(emitter_, across(t), at, t.left ? "mnopq" : "ijlst");
}

std::string ConvolutionTiles::is_there(const ConvolutionTile& t, const std::string& line) {
  return fills(t) ? "" : fmt::format("{} + {} < {}", t.left ? row0_ : column0_, line, text(count(across(t))));
}

void ConvolutionTiles::declare_copy(const ConvolutionTile& t) {
  const ExprNode& load = pool_[t.factor->load];
  writer_.line(
      fmt::format("const int {} = threadIdx.x % {}, {} = threadIdx.x / {};", t.part, t.units, t.line, t.units));
  writer_.line(fmt::format("const {}* {}[{}];", storage_type(load.dtype), t.from, copies(t)));
  writer_.line("#pragma unroll");
  writer_.open(fmt::format("for (int i = 0; i < {}; ++i)", copies(t)));
  const ExprEmitter::Mark mark = emitter_.mark();
  bind_line(t, fmt::format("{} + i * {}", t.line, pass(t)));
  const bool from_share = !stand_still() && first_ != "0";
  writer_.line(fmt::format("{}[i] = {} + ({} + {} * {}{});", t.from, writer_.input(load.source),
                           emitter_.index(t.factor->across), t.part, together(),
                           from_share ? fmt::format(" + {} * {}", first_, tiles_.depth) : ""));
  emitter_.rewind(mark);
  writer_.close();
}

void ConvolutionTiles::copy(const ConvolutionTile& t, const std::string& into, const std::string& step) {
  const bool some = t.across < pass(t);
  if (some) writer_.open(fmt::format("if (threadIdx.x < {})", t.across * t.units));
  writer_.line("#pragma unroll");
  writer_.open(fmt::format("for (int i = 0; i < {}; ++i)", copies(t)));
  const std::string line = fmt::format("{} + i * {}", t.line, pass(t));
  std::string there = is_there(t, line);
  if (form_.depth % tiles_.depth != 0)
    there += fmt::format("{}{} * {} + {} * {} < {}", there.empty() ? "" : " && ", step, tiles_.depth, t.part,
                         together(), form_.depth);
  const std::string further = stand_still() ? fmt::format(" + {} * {}", step, tiles_.depth) : "";
  writer_.line(fmt::format("copy_16_bytes({} + {} + {} + swizzled<{}>({}, {}), {}[i]{}{});", stages_, into, t.offset,
                           t.units, line, t.part, t.from, further, there.empty() ? "" : ", " + there));
  if (!stand_still()) writer_.line(fmt::format("{}[i] += {};", t.from, tiles_.depth));
  writer_.close();
  if (some) writer_.close();
}

// --- pieces of 16 bytes along the depth, by a table

void ConvolutionTiles::declare_pieces(const ConvolutionTile& t) {
  const std::string type = storage_type(pool_[t.factor->load].dtype);
  writer_.use(t.factor->placed ? "copy_placed_channels" : "copy_channels");
  writer_.line(
      fmt::format("const int {} = threadIdx.x % {}, {} = threadIdx.x / {};", t.part, t.units, t.line, t.units));
  if (t.factor->placed) return;
  writer_.line(fmt::format("const {}* {}[{}];", type, t.from, copies(t)));
  writer_.line(fmt::format("unsigned {}[{}];", t.outside, copies(t)));
  writer_.line("#pragma unroll");
  writer_.open(fmt::format("for (int i = 0; i < {}; ++i)", copies(t)));
  writer_.line(fmt::format("{}[i] = {}, {}[i] = ~0u;", t.from, writer_.input(pool_[t.factor->load].source), t.outside));
  find_line(t, fmt::format("{} + i * {}", t.line, pass(t)), t.from + "[i]", t.outside + "[i]");
  writer_.close();
}

void ConvolutionTiles::copy_pieces(const ConvolutionTile& t, const std::string& into, const std::string& step) {
  const bool some = t.across < pass(t);
  if (some) writer_.open(fmt::format("if (threadIdx.x < {})", t.across * t.units));
  const std::string here = writer_.unique("here");
  writer_.line(fmt::format("const DepthStep {} = {}[{} * {} + {}];", here, t.table, step, t.units, t.part));
  writer_.line("#pragma unroll");
  writer_.line(fmt::format("for (int i = 0; i < {}; ++i)", copies(t)));
  const std::string line = fmt::format("{} + i * {}", t.line, pass(t));
  const std::string which = t.factor->placed ? fmt::format("{}, {}, {} + {}", from(t), here, t.lines, line)
                                             : fmt::format("{}[i], {}, {}[i]", t.from, here, t.outside);
  writer_.line(fmt::format("  copy_channels({} + {} + {} + swizzled<{}>({}, {}), {});", stages_, into, t.offset,
                           t.units, line, t.part, which));
  if (some) writer_.close();
}

// --- strips: neighbouring threads take neighbours along the depth

std::string ConvolutionTiles::strip_line(const ConvolutionTile& t) const {
  return fmt::format("{} + i * {}", t.line, lines_apart());
}
int ConvolutionTiles::lines_apart() const {
  return tiles_.threads() / tiles_.depth;
}

void ConvolutionTiles::declare_strips(const ConvolutionTile& t) {
  const ExprNode& load = pool_[t.factor->load];
  writer_.line(fmt::format("const int {} = threadIdx.x % {}, {} = threadIdx.x / {};", t.part, tiles_.depth, t.line,
                           tiles_.depth));
  const std::string several = t.apart ? "" : fmt::format("[{}]", lines_of_thread(t));
  writer_.line(fmt::format("const {}* {}{};", storage_type(load.dtype), t.from, several));
  if (t.factor->tabled) return declare_tabled_strips(t);
  if (!t.apart) writer_.line("#pragma unroll");
  writer_.open(t.apart ? "" : fmt::format("for (int i = 0; i < {}; ++i)", lines_of_thread(t)));
  const ExprEmitter::Mark mark = emitter_.mark();
  if (t.apart)  // nothing is copied of lines that are not there
    bind_place(t, fmt::format("{} + {}", t.left ? row0_ : column0_, t.line));
  else
    bind_line(t, strip_line(t));
  writer_.line(fmt::format("{}{} = {} + ({} + {});", t.from, t.apart ? "" : "[i]", writer_.input(load.source),
                           emitter_.index(t.factor->across), t.part));
  emitter_.rewind(mark);
  writer_.close();
  if (form_.words())
    writer_.use("copy_one");
  else
    declare_waiting(t);
}

// Where a thread puts its elements: units change places every eight lines, and beyond these as before.
void ConvolutionTiles::declare_waiting(const ConvolutionTile& t) {
  writer_.use("kept");
  if (widens_e4m3(t)) writer_.use("widen_e4m3");
  writer_.line(fmt::format("{} {}[{}];", element_type(), t.waiting, lines_of_thread(t)));
  writer_.line(fmt::format("unsigned {}[{}];", t.to, places_of_strips(t)));
  writer_.line("#pragma unroll");
  writer_.line(
      fmt::format("for (int i = 0; i < {}; ++i) {}[i] = kept({});", places_of_strips(t), t.to, strip_place(t)));
}

int ConvolutionTiles::places_of_strips(const ConvolutionTile& t) const {
  return std::min(lines_of_thread(t), 8 / std::gcd(8, lines_apart()));
}

void ConvolutionTiles::declare_tabled_strips(const ConvolutionTile& t) {
  writer_.use("gather_32_bits");
  writer_.line(fmt::format("unsigned {}[{}];", t.outside, lines_of_thread(t)));
  writer_.line("#pragma unroll");
  writer_.open(fmt::format("for (int i = 0; i < {}; ++i)", lines_of_thread(t)));
  writer_.line(fmt::format("{}[i] = {}, {}[i] = ~0u;", t.from, writer_.input(pool_[t.factor->load].source), t.outside));
  find_line(t, strip_line(t), t.from + "[i]", t.outside + "[i]");
  writer_.close();
}

// Opens a loop over the thread's elements of a tile; what must hold for the element to be there.
std::string ConvolutionTiles::open_strips(const ConvolutionTile& t, const std::string& step) {
  writer_.line("#pragma unroll");
  writer_.open(fmt::format("for (int i = 0; i < {}; ++i)", lines_of_thread(t)));
  std::string there = is_there(t, strip_line(t));
  if (form_.depth % tiles_.depth != 0)
    there += fmt::format("{}{} * {} + {} < {}", there.empty() ? "" : " && ", step, tiles_.depth, t.part, form_.depth);
  return there.empty() ? "true" : there;
}

std::string ConvolutionTiles::strip_place(const ConvolutionTile& t) const {
  return fmt::format("{} + swizzled<{}>({}, {} / {}) + {} % {} * {}", t.offset, t.units, strip_line(t), t.part,
                     together(), t.part, together(), form_.element_bytes());
}

void ConvolutionTiles::strips_to_registers(const ConvolutionTile& t, const std::string& step) {
  const std::string there = open_strips(t, step);
  writer_.line(fmt::format("{}[i] = 0;", t.waiting));
  writer_.line(t.apart ? fmt::format("if ({}) {}[i] = ({} + {} * {})[i * {}];", there, t.waiting, t.from, step,
                                     tiles_.depth, *t.apart)
                       : fmt::format("if ({}) {}[i] = {}[i][{} * {}];", there, t.waiting, t.from, step, tiles_.depth));
  writer_.close();
}

bool ConvolutionTiles::widens_e4m3(const ConvolutionTile& t) const {
  return t.factor->widened && pool_[t.factor->load].dtype == DType::kFloat8E4M3FN;
}

void ConvolutionTiles::store_strips(const ConvolutionTile& t, const std::string& into) {
  const int places = places_of_strips(t);
  if (widens_e4m3(t)) writer_.line(fmt::format("widen_e4m3({});", t.waiting));
  const bool upper_half = t.factor->widened && !widens_e4m3(t);  // what e5m2 is of float16
  writer_.line("#pragma unroll");
  writer_.line(fmt::format("for (int i = 0; i < {}; ++i)", lines_of_thread(t)));
  writer_.line(fmt::format("  *({5}*)(dynamic_shared + ({0} + {1}[i % {2}]) + i / {2} * {3}) = {4}[i]{6};", into, t.to,
                           places, places * lines_apart() * t.units * 16, t.waiting, element_type(),
                           upper_half ? " << 8" : ""));
}

void ConvolutionTiles::strips_asynchronously(const ConvolutionTile& t, const std::string& into,
                                             const std::string& step) {
  if (t.factor->tabled) {
    const std::string here = writer_.unique("here");
    const TableStep place = step_of_table(t, step);
    writer_.line(
        fmt::format("const DepthStep {} = {}[{} * {} + {}];", here, t.table, place.step, tiles_.depth, t.part));
    writer_.line("#pragma unroll");
    writer_.line(fmt::format("for (int i = 0; i < {}; ++i)", lines_of_thread(t)));
    writer_.line(fmt::format("  gather_one({} + {} + {}, {}[i]{}, {}, {}[i]);", stages_, into, strip_place(t), t.from,
                             place.further, here, t.outside));
    return;
  }
  const std::string there = open_strips(t, step);
  writer_.line(fmt::format("const bool there = {};", there));
  const std::string from = t.apart ? fmt::format("{} + {} * {} + i * {}", t.from, step, tiles_.depth, *t.apart)
                                   : fmt::format("{}[i] + (there ? {} * {} : 0)", t.from, step, tiles_.depth);
  writer_.line(fmt::format("copy_one({} + {} + {}, {}, there);", stages_, into, strip_place(t), from));
  writer_.close();
}

// By way of registers, a step ahead.
bool ConvolutionTiles::waits(const ConvolutionTile& t) const {
  return !form_.words() && t.factor->one_by_one();
}

void ConvolutionTiles::to_registers(const ConvolutionTile& t, const std::string& step) {
  t.factor->gathered() ? gather_to_registers(t, step) : strips_to_registers(t, step);
}

void ConvolutionTiles::fill(const ConvolutionTile& t) {
  const bool gathered = t.factor->gathered();
  if (t.factor->fill == ConvolutionFill::kCopies)
    copy(t, "into", "step");
  else if (t.factor->fill == ConvolutionFill::kPieces)
    copy_pieces(t, "into", "step");
  else if (!form_.words())
    gathered ? store_gathered(t, "into") : store_strips(t, "into");
  else
    gathered ? gather_asynchronously(t, "into", "step") : strips_asynchronously(t, "into", "step");
}

// Not strips: their addresses would be computed anew in each loop, as none of them would be used before.
bool ConvolutionTiles::keeps_in_loop() const {
  return keeps() && (!waits(left_) || left_.factor->gathered()) && (!waits(right_) || right_.factor->gathered());
}

bool ConvolutionTiles::keeps() const {
  return waits(left_) || waits(right_);
}

std::string ConvolutionTiles::declare_keep() {
  const std::string keep = writer_.unique("keep");
  writer_.open(fmt::format("const auto {} = [&](int step)", keep));
  writer_.open(fmt::format("if (step < {})", end_));
  for (const ConvolutionTile* t : {&left_, &right_})
    if (waits(*t)) to_registers(*t, "step");
  writer_.close();
  writer_.close("};");
  return keep;
}

std::string ConvolutionTiles::declare_fetch() {
  const std::string fetch = writer_.unique("fetch");
  writer_.open(fmt::format("const auto {} = [&](int step, int into)", fetch));
  for (const ConvolutionTile* t : {&left_, &right_}) fill(*t);
  writer_.close("};");
  return fetch;
}

}  // namespace fusec
