#include "codegen/convolution/convolution_tile_loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <utility>

#include "analysis/kernel/loads.h"
#include "codegen/access/direct.h"
#include "codegen/gemm/gemm_block.h"
#include "codegen/gemm/k_offset_table.h"
#include "ir/type.h"
#include "schedule/gemm/gemm_operand.h"

namespace fusec {

ConvolutionTileLoader::ConvolutionTileLoader(const Kernel& kernel, const Contraction& contraction,
                                             const ConvolutionForm& form, KernelWriter& writer, ExprEmitter& emitter)
    : contraction_(contraction),
      form_(form),
      tiles_(form.tiles),
      pool_(kernel.pool),
      writer_(writer),
      emitter_(emitter),
      left_(tile(form.left, true)),
      right_(tile(form.right, false)) {}

void ConvolutionTileLoader::place(const std::string& row0, const std::string& column0, const std::string& stages,
                                  const std::string& first, const std::string& end) {
  row0_ = row0;
  column0_ = column0;
  stages_ = stages;
  first_ = first;
  end_ = end;
}

IndexExpr ConvolutionTileLoader::count(const std::vector<std::uint32_t>& axes) const {
  return point_count(pool_, axes);
}

std::string ConvolutionTileLoader::text(const IndexExpr& e) {
  return emitter_.index_text().tight(simplify(e, pool_.bounds()));
}

const std::vector<std::uint32_t>& ConvolutionTileLoader::across(const ConvolutionOperandTile& t) const {
  return t.left ? contraction_.rows : contraction_.columns;
}

void ConvolutionTileLoader::declare() {
  for (const ConvolutionOperandTile* t : {&left_, &right_})
    if (t->operand->has_offset_table) make_table(*t);
  for (const ConvolutionOperandTile* t : {&left_, &right_}) declare(*t);
  if (form_.left.has_offset_table || form_.right.has_offset_table)
    writer_.line("__syncthreads();  // the tables are there");
}

ConvolutionOperandTile ConvolutionTileLoader::tile(const ConvolutionOperand& operand, bool left) {
  ConvolutionOperandTile t{.operand = &operand, .left = left};
  t.k_major = !form_.words() || !operand.gathered();
  t.across = left ? tiles_.rows : tiles_.columns;
  t.units = (t.k_major ? tiles_.k : t.across) / elements_per_unit();
  t.offset = left ? 0 : std::int64_t{form_.element_bytes()} * tiles_.rows * tiles_.k;
  const std::string name = writer_.preferred_name(pool_[operand.load].source);
  for (auto [member, preferred_name] : {std::pair{&t.table, "_steps"},
                                        {&t.from, "_from"},
                                        {&t.outside, "_outside"},
                                        {&t.line, "_line"},
                                        {&t.part, "_part"},
                                        {&t.to, "_to"},
                                        {&t.lines, "_places"},
                                        {&t.waiting, "_waiting"}})
    *member = writer_.unique(name + preferred_name);
  t.fragments = writer_.unique(left ? "left" : "right");
  t.places = writer_.unique(t.fragments + "_places");
  if (operand.fill == ConvolutionFill::kScalarAlongK && !operand.has_offset_table) t.distance = source_stride_of(t);
  return t;
}

std::optional<std::int64_t> ConvolutionTileLoader::source_stride_of(const ConvolutionOperandTile& t) const {
  if (by_values(t.operand->across)) return std::nullopt;
  const auto stride = flat_stride(t.operand->across, across(t), pool_);
  const auto line = stride ? simplify(*stride, pool_.bounds()).as_constant() : std::nullopt;
  constexpr std::int64_t kMostBytes = 1 << 23;  // of an immediate offset
  if (!line || std::abs(*line) * t.across * form_.element_bytes() >= kMostBytes) return std::nullopt;
  return *line * line_distance();
}

// --- gathered elements

void ConvolutionTileLoader::make_table(const ConvolutionOperandTile& t) {
  const std::int64_t at = form_.stage_bytes() * tiles_.stages + (t.left ? 0 : form_.table_bytes(form_.left));
  const int each = form_.entry_elements(*t.operand);
  writer_.line(fmt::format("KOffsetEntry* const {} = (KOffsetEntry*)(dynamic_shared + {});", t.table, at));
  emit_k_offset_table(
      emitter_,
      {*t.operand, form_.axes, form_.k, form_.table_entries(*t.operand), each, position_table_stride(t.across)},
      t.table, tiles_.threads());
  if (t.operand->has_position_table) make_position_table(t);
}

// Each thread fills one line and some of its taps. Positions past the end of K count as outside.
void ConvolutionTileLoader::make_position_table(const ConvolutionOperandTile& t) {
  const std::int64_t stride = position_table_stride(t.across);
  writer_.line(fmt::format("int* const {} = (int*)({} + {});", t.lines, t.table, form_.table_entries(*t.operand)));
  writer_.open("");
  const ExprEmitter::Mark mark = emitter_.mark();
  const std::string line = writer_.unique("line");
  writer_.line(fmt::format("const int {} = threadIdx.x % {};", line, t.across));
  bind_line(t, line);
  find_positions(emitter_, *t.operand,
                 {.places = fmt::format("({} + {})", t.lines, line),
                  .there = is_there(t, line),
                  .first = fmt::format("threadIdx.x / {}", t.across),
                  .further = tiles_.threads() / t.across,
                  .stride = stride});
  writer_.line(fmt::format("{}[{} + {}] = -1;", t.lines, t.operand->places * stride, line));
  emitter_.rewind(mark);
  writer_.close();
}

void ConvolutionTileLoader::declare(const ConvolutionOperandTile& t) {
  switch (t.operand->fill) {
    case ConvolutionFill::kVectorCopy:
      return declare_copy(t);
    case ConvolutionFill::kVectorGather:
      return declare_pieces(t);
    case ConvolutionFill::kScalarAlongK:
      return declare_strips(t);
    case ConvolutionFill::kScalarAcrossK:
      return declare_gather(t);
  }
}

// Declares this thread's line: its start, and its taps that are outside.
void ConvolutionTileLoader::declare_gather(const ConvolutionOperandTile& t) {
  const ExprNode& load = pool_[t.operand->load];
  writer_.line(
      fmt::format("const int {} = threadIdx.x % {}, {} = threadIdx.x / {};", t.line, t.across, t.part, t.across));
  if (!t.operand->has_position_table) {
    writer_.line(fmt::format("const {}* {} = {};", storage_type(load.dtype), t.from, writer_.input(load.source)));
    writer_.line(fmt::format("unsigned {} = ~0u;", t.outside));
    find_line(t, t.line, t.from, t.outside);
  }
  if (t.operand->has_position_table)
    writer_.use(form_.words() ? "gather_32_by_position" : "gather_placed");
  else
    writer_.use(form_.words() ? "gather_32_bits" : "gather_to_registers");
  if (form_.tf32) return;
  if (form_.words()) {
    writer_.use("swizzle_advance");
    writer_.line(fmt::format("const unsigned {} = {} + swizzled<{}>({}, {} / 4) + {} % 4 * 4;", t.to, t.offset, t.units,
                             t.part, t.line, t.line));
    return;
  }
  writer_.line(fmt::format("GatheredElements<{}> {}[{}];", element_type(), t.waiting, units_of_thread(t)));
}

// Sets where a tile's line begins and which of its taps are outside. Both stay unchanged if the row or column does not
// exist.
void ConvolutionTileLoader::find_line(const ConvolutionOperandTile& t, const std::string& line, const std::string& from,
                                      const std::string& outside) {
  const std::string at = writer_.unique(t.left ? "row" : "column");
  writer_.line(fmt::format("const int {} = {} + {};", at, t.left ? row0_ : column0_, line));
  writer_.open(fmt::format("if ({} < {})", at, text(count(across(t)))));
  const ExprEmitter::Mark mark = emitter_.mark();
  bind_flat(emitter_, across(t), at, t.left ? "mnopq" : "ijlst");
  writer_.line(fmt::format("{} += {};", from, emitter_.index(t.operand->across)));
  writer_.line(fmt::format("{} = 1u << 31;", outside));
  find_taps_outside(emitter_, *t.operand, outside);
  emitter_.rewind(mark);
  writer_.close();
}

// The base of positions: the tensor itself for a table of absolute positions.
std::string ConvolutionTileLoader::from(const ConvolutionOperandTile& t) {
  return t.operand->has_position_table ? writer_.input(pool_[t.operand->load].source) : t.from;
}

// Units of its line that a thread gathers: 8 elements of 16 bits, or one float32.
int ConvolutionTileLoader::units_of_thread(const ConvolutionOperandTile& t) const {
  const int of_line = form_.words() ? tiles_.k : t.units;
  return of_line / (tiles_.threads() / t.across);
}

// A step's index in the table, and the offset of its positions relative to the table's.
ConvolutionTileLoader::TableStep ConvolutionTileLoader::step_of_table(const ConvolutionOperandTile& t,
                                                                      const std::string& step) {
  if (t.operand->period == 0) return {step, ""};
  const std::int64_t steps = t.operand->period / tiles_.k;
  const std::string again = writer_.unique("again");
  writer_.line(fmt::format("const int {} = {} / {};  // as often the table has begun anew", again, step, steps));
  return {fmt::format("({} - {} * {})", step, again, steps),
          fmt::format(" + {} * {}", again, text(t.operand->further))};
}

void ConvolutionTileLoader::gather_to_registers(const ConvolutionOperandTile& t, const std::string& step) {
  const TableStep here = step_of_table(t, step);
  writer_.line("#pragma unroll");
  writer_.line(fmt::format("for (int i = 0; i < {}; ++i)", units_of_thread(t)));
  writer_.line(fmt::format("  gather({}[i], {}{}, {} + ({} * {} + {} * {} + i) * {}, {});", t.waiting, from(t),
                           here.further, t.table, here.step, t.units, t.part, units_of_thread(t), elements_per_unit(),
                           t.operand->has_position_table ? fmt::format("{} + {}", t.lines, t.line) : t.outside));
}

void ConvolutionTileLoader::store_gathered(const ConvolutionOperandTile& t, const std::string& into) {
  writer_.line("#pragma unroll");
  writer_.line(fmt::format("for (int i = 0; i < {}; ++i)", units_of_thread(t)));
  writer_.line(fmt::format("  store_gathered(dynamic_shared + {} + {} + swizzled<{}>({}, {} * {} + i), {}[i]);", into,
                           t.offset, t.units, t.line, t.part, units_of_thread(t), t.waiting));
}

// Neighbouring threads have neighbouring columns, so their simultaneous copies go to different banks.
void ConvolutionTileLoader::gather_asynchronously(const ConvolutionOperandTile& t, const std::string& into,
                                                  const std::string& step) {
  const TableStep here = step_of_table(t, step);
  writer_.open_unrolled("i", units_of_thread(t));
  const int distance = tiles_.threads() / t.across;  // distance along K
  const std::string place = form_.tf32 ? fmt::format("{} + swizzled_in_pairs<{}>({} + i * {}, {} / 4) + {} % 4 * 4",
                                                     t.offset, t.units, t.part, distance, t.line, t.line)
                                       : fmt::format("swizzle_advance<{}>({}, i * {}, 0)", t.units, t.to, distance);
  writer_.line(fmt::format("gather_one({} + {} + {}, {}{}, {}[{} * {} + {} + i * {}], {});", stages_, into, place,
                           from(t), here.further, t.table, here.step, tiles_.k, t.part, distance,
                           t.operand->has_position_table ? fmt::format("{} + {}", t.lines, t.line) : t.outside));
  writer_.close();
}

// --- contiguous copies

int ConvolutionTileLoader::copies(const ConvolutionOperandTile& t) const {
  return std::max(1, t.across / pass(t));
}

bool ConvolutionTileLoader::fills(const ConvolutionOperandTile& t) const {
  return proves_multiple_of(count(across(t)), t.across, pool_.bounds());
}

// Binds the axes of the row or column of a tile's line, clamped to the last one.
void ConvolutionTileLoader::bind_line(const ConvolutionOperandTile& t, const std::string& line) {
  std::string here = fmt::format("{} + {}", t.left ? row0_ : column0_, line);
  if (!fills(t)) here = fmt::format("min({}, {})", here, text(count(across(t)) - 1));
  bind_position(t, here);
}

void ConvolutionTileLoader::bind_position(const ConvolutionOperandTile& t, const std::string& here) {
  const std::string at = writer_.unique(t.left ? "row" : "column");
  writer_.line(fmt::format("const int {} = {};", at, here));
  bind_flat(emitter_, across(t), at, t.left ? "mnopq" : "ijlst");
}

std::string ConvolutionTileLoader::is_there(const ConvolutionOperandTile& t, const std::string& line) {
  return fills(t) ? "" : fmt::format("{} + {} < {}", t.left ? row0_ : column0_, line, text(count(across(t))));
}

void ConvolutionTileLoader::declare_copy(const ConvolutionOperandTile& t) {
  const ExprNode& load = pool_[t.operand->load];
  writer_.line(
      fmt::format("const int {} = threadIdx.x % {}, {} = threadIdx.x / {};", t.part, t.units, t.line, t.units));
  writer_.line(fmt::format("const {}* {}[{}];", storage_type(load.dtype), t.from, copies(t)));
  writer_.open_unrolled("i", copies(t));
  const ExprEmitter::Mark mark = emitter_.mark();
  bind_line(t, fmt::format("{} + i * {}", t.line, pass(t)));
  const bool from_split = !keeps_one_position() && first_ != "0";
  writer_.line(fmt::format("{}[i] = {} + ({} + {} * {}{});", t.from, writer_.input(load.source),
                           emitter_.index(t.operand->across), t.part, elements_per_unit(),
                           from_split ? fmt::format(" + {} * {}", first_, tiles_.k) : ""));
  emitter_.rewind(mark);
  writer_.close();
}

void ConvolutionTileLoader::copy(const ConvolutionOperandTile& t, const std::string& into, const std::string& step) {
  const bool some = t.across < pass(t);
  if (some) writer_.open(fmt::format("if (threadIdx.x < {})", t.across * t.units));
  writer_.open_unrolled("i", copies(t));
  const std::string line = fmt::format("{} + i * {}", t.line, pass(t));
  std::string there = is_there(t, line);
  if (form_.k % tiles_.k != 0)
    there += fmt::format("{}{} * {} + {} * {} < {}", there.empty() ? "" : " && ", step, tiles_.k, t.part,
                         elements_per_unit(), form_.k);
  const std::string further = keeps_one_position() ? fmt::format(" + {} * {}", step, tiles_.k) : "";
  writer_.line(fmt::format("copy_16_bytes({} + {} + {} + swizzled<{}>({}, {}), {}[i]{}{});", stages_, into, t.offset,
                           t.units, line, t.part, t.from, further, there.empty() ? "" : ", " + there));
  if (!keeps_one_position()) writer_.line(fmt::format("{}[i] += {};", t.from, tiles_.k));
  writer_.close();
  if (some) writer_.close();
}

// --- 16-byte pieces along K, gathered through a table

void ConvolutionTileLoader::declare_pieces(const ConvolutionOperandTile& t) {
  const std::string type = storage_type(pool_[t.operand->load].dtype);
  writer_.use(t.operand->has_position_table ? "copy_placed_channels" : "copy_channels");
  writer_.line(
      fmt::format("const int {} = threadIdx.x % {}, {} = threadIdx.x / {};", t.part, t.units, t.line, t.units));
  if (t.operand->has_position_table) return;
  writer_.line(fmt::format("const {}* {}[{}];", type, t.from, copies(t)));
  writer_.line(fmt::format("unsigned {}[{}];", t.outside, copies(t)));
  writer_.open_unrolled("i", copies(t));
  writer_.line(
      fmt::format("{}[i] = {}, {}[i] = ~0u;", t.from, writer_.input(pool_[t.operand->load].source), t.outside));
  find_line(t, fmt::format("{} + i * {}", t.line, pass(t)), t.from + "[i]", t.outside + "[i]");
  writer_.close();
}

void ConvolutionTileLoader::copy_pieces(const ConvolutionOperandTile& t, const std::string& into,
                                        const std::string& step) {
  const bool some = t.across < pass(t);
  if (some) writer_.open(fmt::format("if (threadIdx.x < {})", t.across * t.units));
  const std::string here = writer_.unique("here");
  writer_.line(fmt::format("const KOffsetEntry {} = {}[{} * {} + {}];", here, t.table, step, t.units, t.part));
  writer_.line("#pragma unroll");
  writer_.line(fmt::format("for (int i = 0; i < {}; ++i)", copies(t)));
  const std::string line = fmt::format("{} + i * {}", t.line, pass(t));
  const std::string which = t.operand->has_position_table ? fmt::format("{}, {}, {} + {}", from(t), here, t.lines, line)
                                                          : fmt::format("{}[i], {}, {}[i]", t.from, here, t.outside);
  writer_.line(fmt::format("  copy_channels({} + {} + {} + swizzled<{}>({}, {}), {});", stages_, into, t.offset,
                           t.units, line, t.part, which));
  if (some) writer_.close();
}

// --- strips: neighbouring threads load neighbours along K

std::string ConvolutionTileLoader::strip_line(const ConvolutionOperandTile& t) const {
  return fmt::format("{} + i * {}", t.line, line_distance());
}
int ConvolutionTileLoader::line_distance() const {
  return tiles_.threads() / tiles_.k;
}

void ConvolutionTileLoader::declare_strips(const ConvolutionOperandTile& t) {
  const ExprNode& load = pool_[t.operand->load];
  writer_.line(
      fmt::format("const int {} = threadIdx.x % {}, {} = threadIdx.x / {};", t.part, tiles_.k, t.line, tiles_.k));
  const std::string several = t.distance ? "" : fmt::format("[{}]", lines_of_thread(t));
  writer_.line(fmt::format("const {}* {}{};", storage_type(load.dtype), t.from, several));
  if (t.operand->has_offset_table) return declare_tabled_strips(t);
  if (!t.distance) writer_.line("#pragma unroll");
  writer_.open(t.distance ? "" : fmt::format("for (int i = 0; i < {}; ++i)", lines_of_thread(t)));
  const ExprEmitter::Mark mark = emitter_.mark();
  if (t.distance)  // lines that do not exist are not copied
    bind_position(t, fmt::format("{} + {}", t.left ? row0_ : column0_, t.line));
  else
    bind_line(t, strip_line(t));
  writer_.line(fmt::format("{}{} = {} + ({} + {});", t.from, t.distance ? "" : "[i]", writer_.input(load.source),
                           emitter_.index(t.operand->across), t.part));
  emitter_.rewind(mark);
  writer_.close();
  if (form_.words())
    writer_.use("copy_one");
  else
    declare_waiting(t);
}

// Declares where a thread stores its elements: the swizzle of units repeats every eight lines.
void ConvolutionTileLoader::declare_waiting(const ConvolutionOperandTile& t) {
  writer_.use("kept");
  if (widens_e4m3(t)) writer_.use("widen_e4m3");
  writer_.line(fmt::format("{} {}[{}];", element_type(), t.waiting, lines_of_thread(t)));
  writer_.line(fmt::format("unsigned {}[{}];", t.to, copies_per_strip(t)));
  writer_.line("#pragma unroll");
  writer_.line(
      fmt::format("for (int i = 0; i < {}; ++i) {}[i] = kept({});", copies_per_strip(t), t.to, strip_address(t)));
}

int ConvolutionTileLoader::copies_per_strip(const ConvolutionOperandTile& t) const {
  return std::min(lines_of_thread(t), 8 / std::gcd(8, line_distance()));
}

void ConvolutionTileLoader::declare_tabled_strips(const ConvolutionOperandTile& t) {
  writer_.use("gather_32_bits");
  writer_.line(fmt::format("unsigned {}[{}];", t.outside, lines_of_thread(t)));
  writer_.open_unrolled("i", lines_of_thread(t));
  writer_.line(
      fmt::format("{}[i] = {}, {}[i] = ~0u;", t.from, writer_.input(pool_[t.operand->load].source), t.outside));
  find_line(t, strip_line(t), t.from + "[i]", t.outside + "[i]");
  writer_.close();
}

// Opens a loop over the thread's elements of a tile. Returns the condition that the element exists.
std::string ConvolutionTileLoader::open_strips(const ConvolutionOperandTile& t, const std::string& step) {
  writer_.open_unrolled("i", lines_of_thread(t));
  std::string there = is_there(t, strip_line(t));
  if (form_.k % tiles_.k != 0)
    there += fmt::format("{}{} * {} + {} < {}", there.empty() ? "" : " && ", step, tiles_.k, t.part, form_.k);
  return there.empty() ? "true" : there;
}

std::string ConvolutionTileLoader::strip_address(const ConvolutionOperandTile& t) const {
  return fmt::format("{} + swizzled<{}>({}, {} / {}) + {} % {} * {}", t.offset, t.units, strip_line(t), t.part,
                     elements_per_unit(), t.part, elements_per_unit(), form_.element_bytes());
}

void ConvolutionTileLoader::strips_to_registers(const ConvolutionOperandTile& t, const std::string& step) {
  const std::string there = open_strips(t, step);
  writer_.line(fmt::format("{}[i] = 0;", t.waiting));
  writer_.line(t.distance ? fmt::format("if ({}) {}[i] = ({} + {} * {})[i * {}];", there, t.waiting, t.from, step,
                                        tiles_.k, *t.distance)
                          : fmt::format("if ({}) {}[i] = {}[i][{} * {}];", there, t.waiting, t.from, step, tiles_.k));
  writer_.close();
}

bool ConvolutionTileLoader::widens_e4m3(const ConvolutionOperandTile& t) const {
  return t.operand->widened && pool_[t.operand->load].dtype == DType::kFloat8E4M3FN;
}

void ConvolutionTileLoader::store_strips(const ConvolutionOperandTile& t, const std::string& into) {
  const int places = copies_per_strip(t);
  if (widens_e4m3(t)) writer_.line(fmt::format("widen_e4m3({});", t.waiting));
  const bool upper_half = t.operand->widened && !widens_e4m3(t);  // an e5m2 value is the upper half of a float16
  writer_.line("#pragma unroll");
  writer_.line(fmt::format("for (int i = 0; i < {}; ++i)", lines_of_thread(t)));
  writer_.line(fmt::format("  *({5}*)(dynamic_shared + ({0} + {1}[i % {2}]) + i / {2} * {3}) = {4}[i]{6};", into, t.to,
                           places, places * line_distance() * t.units * 16, t.waiting, element_type(),
                           upper_half ? " << 8" : ""));
}

void ConvolutionTileLoader::strips_asynchronously(const ConvolutionOperandTile& t, const std::string& into,
                                                  const std::string& step) {
  if (t.operand->has_offset_table) {
    const std::string here = writer_.unique("here");
    const TableStep place = step_of_table(t, step);
    writer_.line(fmt::format("const KOffsetEntry {} = {}[{} * {} + {}];", here, t.table, place.step, tiles_.k, t.part));
    writer_.line("#pragma unroll");
    writer_.line(fmt::format("for (int i = 0; i < {}; ++i)", lines_of_thread(t)));
    writer_.line(fmt::format("  gather_one({} + {} + {}, {}[i]{}, {}, {}[i]);", stages_, into, strip_address(t), t.from,
                             place.further, here, t.outside));
    return;
  }
  const std::string there = open_strips(t, step);
  writer_.line(fmt::format("const bool there = {};", there));
  const std::string from = t.distance ? fmt::format("{} + {} * {} + i * {}", t.from, step, tiles_.k, *t.distance)
                                      : fmt::format("{}[i] + (there ? {} * {} : 0)", t.from, step, tiles_.k);
  writer_.line(fmt::format("copy_one({} + {} + {}, {}, there);", stages_, into, strip_address(t), from));
  writer_.close();
}

// True if elements are staged in registers one step ahead.
bool ConvolutionTileLoader::waits(const ConvolutionOperandTile& t) const {
  return !form_.words() && t.operand->is_scalar();
}

void ConvolutionTileLoader::to_registers(const ConvolutionOperandTile& t, const std::string& step) {
  t.operand->gathered() ? gather_to_registers(t, step) : strips_to_registers(t, step);
}

void ConvolutionTileLoader::fill(const ConvolutionOperandTile& t) {
  const bool gathered = t.operand->gathered();
  if (t.operand->fill == ConvolutionFill::kVectorCopy)
    copy(t, "into", "step");
  else if (t.operand->fill == ConvolutionFill::kVectorGather)
    copy_pieces(t, "into", "step");
  else if (!form_.words())
    gathered ? store_gathered(t, "into") : store_strips(t, "into");
  else
    gathered ? gather_asynchronously(t, "into", "step") : strips_asynchronously(t, "into", "step");
}

// False for strips: their addresses would be recomputed in the prologue's loop.
bool ConvolutionTileLoader::keeps_in_loop() const {
  return keeps() && (!waits(left_) || left_.operand->gathered()) && (!waits(right_) || right_.operand->gathered());
}

bool ConvolutionTileLoader::keeps() const {
  return waits(left_) || waits(right_);
}

std::string ConvolutionTileLoader::declare_keep() {
  const std::string keep = writer_.unique("keep");
  writer_.open(fmt::format("const auto {} = [&](int step)", keep));
  writer_.open(fmt::format("if (step < {})", end_));
  for (const ConvolutionOperandTile* t : {&left_, &right_})
    if (waits(*t)) to_registers(*t, "step");
  writer_.close();
  writer_.close("};");
  return keep;
}

std::string ConvolutionTileLoader::declare_fetch() {
  const std::string fetch = writer_.unique("fetch");
  writer_.open(fmt::format("const auto {} = [&](int step, int into)", fetch));
  for (const ConvolutionOperandTile* t : {&left_, &right_}) fill(*t);
  writer_.close("};");
  return fetch;
}

}  // namespace fusec
