#include "codegen/schedules/gemm_factors.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "analysis/loads.h"
#include "codegen/repeated_code.h"
#include "codegen/schedules/direct.h"
#include "codegen/schedules/gemm_pieces.h"
#include "ir/type.h"

namespace fusec {

GemmFactors::GemmFactors(const Product& product, const ProductLoop& loop, const GemmLoop& operands,
                         const GemmForm& form, const GemmBlock& block, const Graph& graph, ExprEmitter& emitter)
    : product_(product),
      loop_(loop),
      operands_(operands),
      form_(form),
      block_(block),
      graph_(graph),
      emitter_(emitter),
      writer_(emitter.writer()),
      pool_(emitter.kernel().pool) {
  std::int64_t staged = 0, beside = stage_bytes(form_) * form_.tiles.stages;
  for (const bool left : {true, false})
    for (const GemmOperand& operand : left ? operands.left : operands.right)
      factors_.push_back(place(operand, left, staged, beside));
}

GemmFactor GemmFactors::place(const GemmOperand& operand, bool left, std::int64_t& staged, std::int64_t& beside) {
  const GemmTiles& t = form_.tiles;
  GemmFactor f{.operand = &operand, .left = left, .across = left ? t.rows : t.columns};
  const int line = operand.along_depth ? t.depth : f.across, lines = operand.along_depth ? f.across : t.depth;
  f.units = line * form_.element_bytes() / 16;
  f.bytes = std::int64_t{line} * lines * form_.element_bytes();
  f.tile = operand.computed() ? beside : staged;
  beside += computed_bytes(form_, operand, left);
  f.scales = beside;
  beside += scale_bytes(form_, operands_, operand, left);
  int elements = operand.computed() ? operand.piece : 16 / form_.element_bytes();
  // All threads take part, where pieces can be short enough.
  while (operand.computed() && elements > 8 && (line * lines / elements < t.threads() || !operand.along_depth))
    elements /= 2;
  const auto add = [&](const GemmOperand& copied) {
    GemmCopy c{.operand = &copied, .offset = staged, .elements = elements, .units = line / elements, .lines = lines};
    c.pass = t.threads() / c.units;
    c.copies = std::max(1, c.lines / c.pass);
    const std::string name = writer_.wish(pool_[copied.load].source);
    c.to = writer_.unique(name + "_to");
    c.from = writer_.unique(name + "_from");
    c.unit = writer_.unique(name + "_unit");
    c.line = writer_.unique(name + "_line");
    staged += std::int64_t{line} * lines * copied.element_bits / 8;
    // Units change places every eight lines: passes of so many find theirs where the first one has.
    c.in_pairs = form_.tf32 && !operand.along_depth;
    c.placed = !operand.computed() && (c.copies == 1 || c.pass % 8 == 0);
    c.turned = !c.placed && !operand.computed() && !c.in_pairs && std::has_single_bit(static_cast<unsigned>(c.pass));
    c.apart = elements_apart(f, c);
    const bool some_rows = c.apart && copied.along_depth && clamped(f);
    if (c.placed && copied.depth_stride && (some_rows || !whole_tiles())) c.there = writer_.unique(name + "_there");
    f.copies.push_back(std::move(c));
  };
  if (!operand.computed()) add(operand);
  for (const GemmOperand& copied : operand.copies) add(copied);
  f.fragments = writer_.unique(left ? "left" : "right");
  f.places = writer_.unique(f.fragments + "_places");
  return f;
}

IndexExpr GemmFactors::count(const std::vector<std::uint32_t>& axes) const {
  return point_count(pool_, axes);
}
std::string GemmFactors::text(const IndexExpr& e) {
  return emitter_.index_text().tight(simplify(e, pool_.bounds()));
}
std::string GemmFactors::line_of(const GemmCopy& c) const {
  return c.copies > 1 ? fmt::format("{} + {} * {}", c.line, block_.each, c.pass) : c.line;
}
bool GemmFactors::whole_tiles() const {
  return proves_multiple_of(count(loop_.depth), form_.tiles.depth, pool_.bounds());
}
bool GemmFactors::computes() const {
  return std::ranges::any_of(factors_, [](const GemmFactor& f) { return f.operand->computed(); });
}

bool GemmFactors::clamped(const GemmFactor& f) const {
  // Groups of rows begin anywhere.
  const bool anywhere = f.left && form_.groups.has_value();
  return anywhere || !proves_multiple_of(count(across(f)), f.across, pool_.bounds());
}

// What lies beyond the last row or column is copied from there; nothing of its products is stored.
std::string GemmFactors::across_at(const GemmFactor& f, const std::string& place, int elements) {
  const std::string here = fmt::format("{} + {}", f.left ? block_.row0 : block_.column0, place);
  if (!clamped(f)) return here;
  return fmt::format("min({0}({1}), {0}{2})", writer_.wide() ? "(long long)" : "", here,
                     text(count(across(f)) - elements));
}

namespace {

const char* swizzle_of(const GemmCopy& c) {
  return c.in_pairs ? "swizzled_in_pairs" : "swizzled";
}

}  // namespace

std::optional<std::int64_t> GemmFactors::elements_apart(const GemmFactor& f, const GemmCopy& c) const {
  const GemmOperand& operand = *c.operand;
  if (!c.placed || !operand.depth_stride) return std::nullopt;
  if (by_values(operand.across)) return std::nullopt;  // rows that are looked up
  const std::optional<IndexExpr> stride =
      operand.along_depth ? flat_stride(operand.across, across(f), pool_) : operand.depth_stride;
  const auto line = stride ? simplify(*stride, pool_.bounds()).as_constant() : std::nullopt;
  constexpr std::int64_t kMostBytes = 1 << 23;  // of an offset in an instruction
  if (!line || std::abs(*line) * c.lines * operand.element_bits / 8 >= kMostBytes) return std::nullopt;
  return *line * c.pass;
}

// From one tile along the depth to the next.
std::string GemmFactors::step_of(const GemmOperand& operand) {
  return text(in_storage(*operand.depth_stride * form_.tiles.depth, operand, pool_.bounds()));
}

// Where the block's step along the depth begins.
std::string GemmFactors::depth_at(const std::string& step) const {
  return block_.first_step.empty() ? fmt::format("{} * {}", step, form_.tiles.depth)
                                   : fmt::format("({} + {}) * {}", block_.first_step, step, form_.tiles.depth);
}

void GemmFactors::declare_copies() {
  writer_.use("copy_pipeline");
  writer_.use("swizzle");
  if (form_.tf32) writer_.use("tf32_fragments");
  for (const GemmFactor& f : factors_)
    for (const GemmCopy& c : f.copies) declare_copy(f, c);
}

void GemmFactors::declare_copy(const GemmFactor& f, const GemmCopy& c) {
  const GemmOperand& operand = *c.operand;
  const ExprNode& load = pool_[operand.load];
  const Bounds& bounds = pool_.bounds();
  writer_.line(fmt::format("const int {} = threadIdx.x % {} * {}, {} = threadIdx.x / {};", c.unit, c.units, c.elements,
                           c.line, c.units));
  if (c.turned) writer_.use("swizzled_further");
  if (c.placed || c.turned) {
    const std::string first = c.turned ? "" : block_.stages + " + " + (c.offset ? fmt::format("{} + ", c.offset) : "");
    writer_.line(fmt::format("unsigned {} = {}{}<{}>({}, {} / {});", c.to, first, swizzle_of(c), f.units, c.line,
                             c.unit, c.elements));
    writer_.line(fmt::format("asm(\"\" : \"+r\"({}));  // or else it is computed anew in the loop", c.to));
  }
  const bool several = !c.apart;
  writer_.line(several ? fmt::format("const {}* {}[{}];", storage_type(load.dtype), c.from, c.copies)
                       : fmt::format("const {}* {};", storage_type(load.dtype), c.from));
  if (several) writer_.line("#pragma unroll");
  writer_.open(several ? fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", block_.each, c.copies) : "");
  const ExprEmitter::Mark mark = emitter_.mark();
  const std::vector<std::uint32_t>& axes = across(f);
  const std::string at = writer_.unique(f.left ? "row" : "column");
  // Threads beyond the tile's lines copy nothing, but what a line's place is looked up in ends where the lines do.
  const bool beyond = operand.along_depth && c.lines < c.pass && by_values(operand.across);
  const std::string line = beyond ? fmt::format("{} % {}", c.line, c.lines) : several ? line_of(c) : c.line;
  // Rows that are a step apart need no place of their own where there are none: nothing is copied of them.
  const std::string here =
      operand.along_depth && c.apart
          ? fmt::format("{} + {}", f.left ? block_.row0 : block_.column0, line)
          : across_at(f, operand.along_depth ? line : c.unit, operand.along_depth ? 1 : c.elements);
  writer_.line(fmt::format("const {} {} = {};", writer_.index_type(), at, here));
  bind_flat(emitter_, axes, at, f.left ? "mnopq" : "ijlst");
  const std::string half = operand.element_bits == 4 ? " / 2" : "";
  emitter_.emit(values_in(operand.across));
  std::string position = emitter_.index(in_storage(operand.across, operand, bounds));
  if (operand.depth_stride)
    position += operand.along_depth ? " + " + c.unit + half
                                    : fmt::format(" + ({}) * {}{}", line, writer_.wide() ? "(long long)" : "",
                                                  text(in_storage(*operand.depth_stride, operand, bounds)));
  if (operand.depth_stride && !block_.first_step.empty())
    position += fmt::format(" + ({}){} * {}", writer_.index_type(), block_.first_step, step_of(operand));
  writer_.line(fmt::format("{} = {} + ({});", several ? fmt::format("{}[{}]", c.from, block_.each) : c.from,
                           writer_.input(load.source), position));
  emitter_.rewind(mark);
  writer_.close();
  if (!c.there.empty()) declare_there(f, c);
}

void GemmFactors::declare_there(const GemmFactor& f, const GemmCopy& c) {
  std::string bytes = "16";
  if (c.apart && c.operand->along_depth && clamped(f))
    bytes =
        fmt::format("{} + {} < {} ? 16 : 0", f.left ? block_.row0 : block_.column0, line_of(c), text(count(across(f))));
  writer_.line(fmt::format("int {}[{}];", c.there, c.copies));
  writer_.line("#pragma unroll");
  writer_.line(
      fmt::format("for (int {0} = 0; {0} < {1}; ++{0}) {2}[{0}] = {3};", block_.each, c.copies, c.there, bytes));
}

std::string GemmFactors::declare_fetch() {
  const std::string fetch = writer_.unique("fetch"), into = writer_.unique("stage");
  const auto jumps = [](const GemmCopy& c) { return !c.operand->depth_stride; };
  const bool some_jump =
      std::ranges::any_of(factors_, [&](const GemmFactor& f) { return std::ranges::any_of(f.copies, jumps); });
  const bool counts = some_jump || !whole_tiles();
  const std::string next = writer_.unique("next_k");
  if (counts)
    writer_.line(fmt::format("{} {} = {};", writer_.index_type(), next,
                             block_.first_step.empty() ? "0"
                                                       : fmt::format("({}){} * {}", writer_.index_type(),
                                                                     block_.first_step, form_.tiles.depth)));
  writer_.open(fmt::format("const auto {} = [&](unsigned {})", fetch, into));
  for (const GemmFactor& f : factors_)
    for (const GemmCopy& c : f.copies) copy(f, c, into, next);
  if (counts) writer_.line(fmt::format("{} += {};", next, form_.tiles.depth));
  writer_.close("};");
  return fetch;
}

void GemmFactors::copy(const GemmFactor& f, const GemmCopy& c, const std::string& into, const std::string& next) {
  const GemmOperand& operand = *c.operand;
  const bool some = c.lines < c.pass;
  if (some) writer_.open(fmt::format("if (threadIdx.x < {})", c.threads()));
  if (c.placed && operand.depth_stride)
    copy_lines(c, into, next);
  else
    copy_each(f, c, into, next);
  if (some) writer_.close();
}

void GemmFactors::copy_lines(const GemmCopy& c, const std::string& into, const std::string& next) {
  const GemmOperand& operand = *c.operand;
  const std::string each = fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", block_.each, c.copies);
  if (!whole_tiles()) {
    const std::string all = text(count(loop_.depth));
    writer_.line("#pragma unroll");
    writer_.line(each);
    writer_.line(fmt::format("  if ({} + {} >= {}) {}[{}] = 0;", next, operand.along_depth ? c.unit : line_of(c), all,
                             c.there, block_.each));
  }
  std::string steps = std::to_string(16 * c.pass * c.units);
  if (c.apart) steps += fmt::format(", {}", *c.apart * operand.element_bits / 8);
  if (c.apart && c.there.empty()) steps += fmt::format(", {}", c.copies);
  writer_.line(
      fmt::format("copy_lines<{}>({} + {}, {}{});", steps, c.to, into, c.from, c.there.empty() ? "" : ", " + c.there));
  const std::string step = step_of(operand);
  if (!c.apart) writer_.line("#pragma unroll");
  writer_.line(c.apart ? fmt::format("{} += {};", c.from, step)
                       : fmt::format("{} {}[{}] += {};", each, c.from, block_.each, step));
}

void GemmFactors::copy_each(const GemmFactor& f, const GemmCopy& c, const std::string& into, const std::string& next) {
  const GemmOperand& operand = *c.operand;
  const bool strides = operand.depth_stride.has_value();
  const ExprEmitter::Mark mark = emitter_.mark();
  std::string jump;
  if (!strides) {
    const std::string k = writer_.unique("k");
    writer_.line(fmt::format("const {} {} = {} + {};", writer_.index_type(), k, next, c.unit));
    bind_flat(emitter_, loop_.depth, k, "kluvw");
    jump = " + " + emitter_.index_text().tight(in_storage(operand.depth, operand, pool_.bounds()));
  }
  writer_.line("#pragma unroll");
  writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", block_.each, c.copies));
  const std::string k_here = operand.along_depth ? c.unit : line_of(c);
  const std::string there = fmt::format("{} + {} < {}", next, k_here, text(count(loop_.depth)));
  const std::string from = fmt::format("{}[{}]{}", c.from, block_.each, jump);
  if (f.operand->computed()) {
    writer_.use("copy_pieces");
    writer_.line(fmt::format("copy_piece<{}, {}>({} + {} + {}, {}, {}, {});", c.bytes(), c.threads(), block_.stages,
                             into, c.offset, from, block_.each, whole_tiles() ? "true" : there));
  } else {
    std::string to = c.to;
    if (c.turned)
      to = fmt::format("{} + {} + swizzled_further<{}>({}, {} * {}, 0)", block_.stages, c.offset, f.units, c.to,
                       block_.each, c.pass);
    else if (!c.placed)
      to = fmt::format("{} + {} + {}<{}>({}, {} / {})", block_.stages, c.offset, swizzle_of(c), f.units, line_of(c),
                       c.unit, c.elements);
    else if (c.copies > 1)
      to += fmt::format(" + {} * {}", block_.each, 16 * c.pass * c.units);
    writer_.line(fmt::format("copy_16_bytes({} + {}, {}{});", into, to, from, whole_tiles() ? "" : ", " + there));
  }
  if (strides) writer_.line(fmt::format("{}[{}] += {};", c.from, block_.each, step_of(operand)));
  writer_.close();
  emitter_.rewind(mark);
}

void GemmFactors::declare_compute() {
  for (GemmFactor& f : factors_)
    if (f.operand->computed()) declare_piece(f);
  if (!scaled_in_blocks()) return;
  scale_blocks_ = writer_.unique("scale_blocks");
  const std::string step = writer_.unique("step");
  writer_.open(fmt::format("const auto {} = [&](int {})", scale_blocks_, step));
  const int steps = steps_of_block(), blocks = blocks_of_step();
  if (steps > 1) writer_.open(fmt::format("if ({} % {} == 0)", step, steps));
  const std::string slot = steps > 1 ? fmt::format("{} / {} % 3", step, steps) : step + " % 3";
  for (const GemmFactor& f : factors_)
    for (int b = 0; b < blocks && !f.operand->scales.empty(); ++b) {
      std::string first = depth_at(step);
      if (b > 0) first += fmt::format(" + {}", b * form_.tiles.depth / blocks);
      if (b > 0 && !whole_tiles()) first = fmt::format("min({}, {} - 1)", first, text(count(loop_.depth)));
      scales(f, first, blocks == 1 ? slot : fmt::format("({} * {} + {})", slot, blocks, b));
    }
  if (steps > 1) writer_.close();
  writer_.close("};");
}

void GemmFactors::compute(const std::string& step, const std::string& stage, bool first) {
  int pieces = 0;
  for (const GemmFactor& f : factors_)
    if (f.operand->computed()) pieces += f.copies[0].copies;
  for (const GemmFactor& f : factors_) {
    if (!f.operand->computed()) continue;
    const int all = f.copies[0].copies;
    int unrolled = first ? std::min(all, kMostUnrolledAtFirst) : all;
    for (int left = pieces; left > kMostUnrolled && unrolled > 1; left /= 2) unrolled /= 2;
    writer_.line(unrolled == all ? std::string(kUnrollAsFits) : fmt::format("#pragma unroll {}", unrolled));
    writer_.line(
        fmt::format("for (int {0} = 0; {0} < {1}; ++{0}) {2}({0}, {3}, {4});", block_.each, all, f.make, step, stage));
  }
  if (!scale_blocks_.empty()) writer_.line(fmt::format("{}({});", scale_blocks_, step));
}

// `make(each, step, stage)` computes a thread's each-th piece.
void GemmFactors::declare_piece(GemmFactor& f) {
  f.make = writer_.unique("make_" + writer_.wish(pool_[f.operand->load].source));
  const std::string step = writer_.unique("step"), stage = writer_.unique("stage");
  writer_.open(fmt::format("const auto {} = [&](int {}, int {}, int {})", f.make, block_.each, step, stage));
  writer_.use("copy_pieces");
  const GemmCopy& c = f.copies[0];
  const bool some = c.lines < c.pass;
  if (some) writer_.open(fmt::format("if (threadIdx.x < {})", c.threads()));
  const std::string line = line_of(c);
  const bool along = f.operand->along_depth;
  const std::string k = fmt::format("{} + {}", depth_at(step), along ? c.unit : line);
  const std::string to = fmt::format("dynamic_shared + {} + {} % 2 * {}", f.tile, step, f.bytes);
  const std::string bytes = form_.element_bytes() == 1 ? "" : fmt::format(" * {}", form_.element_bytes());
  const std::string place = fmt::format("{}, {}{}", line, c.unit, bytes);
  writer_.use("store_units");
  const bool whole = whole_tiles();
  if (!whole) writer_.open(fmt::format("if ({} < {})", k, text(count(loop_.depth))));
  const std::string here = across_at(f, along ? line : c.unit, along ? 1 : c.elements);
  const std::string made =
      emit_piece({.kernel = emitter_.kernel(),
                  .graph = graph_,
                  .writer = writer_,
                  .operand = *f.operand,
                  .axes = {across(f), loop_.depth, holds_in_groups(pool_, product_, form_.groups)},
                  .batch = product_.batch,
                  .ones = product_.shared_rest,
                  .choice = product_.choice ? std::optional(product_.choice->axis) : std::nullopt,
                  .matrix = block_.matrix,
                  .multiplied = form_.dtype,
                  .piece = c.elements,
                  .batch_number = block_.batch,
                  .across_at = here,
                  .depth_at = k,
                  .words = [&](std::size_t i) {
                    const GemmCopy& copied = f.copies[i];
                    return fmt::format("copied_piece<{}, {}>(dynamic_shared + {} + {}, {})", copied.bytes(),
                                       copied.threads(), stage, copied.offset, block_.each);
                  }});
  writer_.line(fmt::format("store_units<{}>({}, {}, {});", f.units, to, place, made));
  if (!whole) {
    writer_.close("} else {");
    writer_.reopen();
    writer_.line(fmt::format("store_units<{}>({}, {}, Words<{}>{{}});", f.units, to, place,
                             c.elements * form_.element_bytes() / 4));
    writer_.close();
  }
  if (some) writer_.close();
  writer_.close("};");
}

void GemmFactors::whole_depth_scales() {
  if (operands_.block != 0) return;
  for (const GemmFactor& f : factors_)
    if (!f.operand->scales.empty()) scales(f, "0", "0");
}

void GemmFactors::scales(const GemmFactor& f, const std::string& k0, const std::string& slot) {
  const std::string i = writer_.unique("i");
  writer_.line("#pragma unroll 1");
  writer_.open(fmt::format("for (int {0} = threadIdx.x; {0} < {1}; {0} += {2})", i, f.across, form_.tiles.threads()));
  const ExprEmitter::Mark mark = emitter_.mark();
  const std::string at = writer_.unique(f.left ? "row" : "column"), k = writer_.unique("k");
  const std::string here = across_at(f, i, 1);
  writer_.line(fmt::format("const {0} {1} = {2}, {3} = {4};", writer_.index_type(), at, here, k, k0));
  bind_flat(emitter_, across(f), at, f.left ? "mnopq" : "ijlst");
  bind_flat(emitter_, loop_.depth, k, "kluvw");
  if (form_.groups) {  // rows behind the last group have no matrix
    const std::string matrix = writer_.unique("scaled_matrix");
    const IndexExpr last = pool_.extent(product_.choice->axis) - 1;
    writer_.line(fmt::format("const int {} = min((int){}, {});", matrix, block_.matrix, text(last)));
    emitter_.bind(product_.choice->axis, matrix);
  }
  std::string product;
  for (const std::string& scale : emitter_.emit(f.operand->scales))
    product += (product.empty() ? "(" : " * (") + scale + ")";
  writer_.line(
      fmt::format("((float*)(dynamic_shared + {}))[{} * {} + {}] = {};", f.scales, slot, f.across, i, product));
  emitter_.rewind(mark);
  writer_.close();
}

void GemmFactors::add_parts(const ProductTerm& term, const std::string& sum, const std::string& part,
                            const std::string& slot) {
  writer_.use("add_parts");
  const auto of = [&](const GemmFactor& f) -> std::string {
    if (f.operand->scales.empty()) return "0";
    return fmt::format("(const float*)(dynamic_shared + {}) + {} * {} + {}", f.scales, slot, f.across,
                       f.left ? "warp_row" : "warp_column");
  };
  const GemmFactor &l = left(term.left), &r = right(term.right);
  writer_.line(fmt::format("add_parts<{}, {}>({}, {}, {}, {}, warp_lane);", !l.operand->scales.empty(),
                           !r.operand->scales.empty(), sum, part, of(l), of(r)));
}

}  // namespace fusec
