#include "codegen/gemm/gemm_operand_loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "analysis/kernel/loads.h"
#include "codegen/access/direct.h"
#include "codegen/expr/limit_unrolling.h"
#include "codegen/gemm/transformed_operand.h"
#include "ir/type.h"

namespace fusec {

GemmOperandLoader::GemmOperandLoader(const Contraction& contraction, const ContractionLoop& loop,
                                     const GemmLoop& operands, const GemmForm& form, const GemmBlockContext& block,
                                     const Graph& graph, ExprEmitter& emitter)
    : contraction_(contraction),
      loop_(loop),
      operands_(operands),
      form_(form),
      block_(block),
      graph_(graph),
      emitter_(emitter),
      writer_(emitter.writer()),
      pool_(emitter.kernel().pool) {
  std::int64_t staged = 0, shared_end = stage_bytes(form_) * form_.tiles.stages;
  for (const bool left : {true, false})
    for (const GemmOperand& operand : left ? operands.left : operands.right)
      operand_tiles_.push_back(place(operand, left, staged, shared_end));
}

GemmOperandTile GemmOperandLoader::place(const GemmOperand& operand, bool left, std::int64_t& staged,
                                         std::int64_t& shared_end) {
  const GemmTiles& t = form_.tiles;
  GemmOperandTile f{.operand = &operand, .left = left, .across = left ? t.rows : t.columns};
  const int line = operand.k_major ? t.k : f.across, lines = operand.k_major ? f.across : t.k;
  f.units = line * form_.element_bytes() / 16;
  f.bytes = std::int64_t{line} * lines * form_.element_bytes();
  f.tile = operand.transformed() ? shared_end : staged;
  shared_end += transformed_bytes(form_, operand, left);
  f.scales = shared_end;
  shared_end += scale_bytes(form_, operands_, operand, left);
  int elements = operand.transformed() ? operand.piece : 16 / form_.element_bytes();
  // Halves the pieces, down to eight elements, until all threads have one.
  while (operand.transformed() && elements > 8 && (line * lines / elements < t.threads() || !operand.k_major))
    elements /= 2;
  const auto add = [&](const GemmOperand& copied) {
    GemmCopy c{.operand = &copied, .offset = staged, .elements = elements, .units = line / elements, .lines = lines};
    c.lines_per_pass = t.threads() / c.units;
    c.copies = std::max(1, c.lines / c.lines_per_pass);
    const std::string name = writer_.preferred_name(pool_[copied.load].source);
    c.to = writer_.unique(name + "_to");
    c.from = writer_.unique(name + "_from");
    c.unit = writer_.unique(name + "_unit");
    c.line = writer_.unique(name + "_line");
    staged += std::int64_t{line} * lines * copied.element_bits / 8;
    // The swizzle repeats every eight lines, so passes of a multiple of eight lines have a constant stride.
    c.tf32_order = form_.tf32 && !operand.k_major;
    c.constant_distance = !operand.transformed() && (c.copies == 1 || c.lines_per_pass % 8 == 0);
    c.derived_address = !c.constant_distance && !operand.transformed() && !c.tf32_order &&
                        std::has_single_bit(static_cast<unsigned>(c.lines_per_pass));
    c.source_stride = source_stride_of(f, c);
    const bool some_rows = c.source_stride && copied.k_major && clamped(f);
    if (c.constant_distance && copied.k_stride && (some_rows || !whole_tiles()))
      c.valid_bytes = writer_.unique(name + "_there");
    f.copies.push_back(std::move(c));
  };
  if (!operand.transformed()) add(operand);
  for (const GemmOperand& copied : operand.copies) add(copied);
  f.fragments = writer_.unique(left ? "left" : "right");
  f.fragment_addresses = writer_.unique(f.fragments + "_places");
  return f;
}

IndexExpr GemmOperandLoader::count(const std::vector<std::uint32_t>& axes) const {
  return point_count(pool_, axes);
}
std::string GemmOperandLoader::text(const IndexExpr& e) {
  return emitter_.index_text().tight(simplify(e, pool_.bounds()));
}
std::string GemmOperandLoader::line_of(const GemmCopy& c) const {
  return c.copies > 1 ? fmt::format("{} + {} * {}", c.line, block_.each, c.lines_per_pass) : c.line;
}
bool GemmOperandLoader::whole_tiles() const {
  return proves_multiple_of(count(loop_.k), form_.tiles.k, pool_.bounds());
}
bool GemmOperandLoader::computes() const {
  return std::ranges::any_of(operand_tiles_, [](const GemmOperandTile& f) { return f.operand->transformed(); });
}

bool GemmOperandLoader::clamped(const GemmOperandTile& f) const {
  // Groups begin at any row.
  const bool anywhere = f.left && form_.groups.has_value();
  return anywhere || !proves_multiple_of(count(across(f)), f.across, pool_.bounds());
}

// Positions beyond the last row or column read the last one; their products are not stored.
std::string GemmOperandLoader::across_at(const GemmOperandTile& f, const std::string& place, int elements) {
  const std::string here = fmt::format("{} + {}", f.left ? block_.row0 : block_.column0, place);
  if (!clamped(f)) return here;
  return fmt::format("min({0}({1}), {0}{2})", writer_.wide() ? "(long long)" : "", here,
                     text(count(across(f)) - elements));
}

namespace {

const char* swizzle_of(const GemmCopy& c) {
  return c.tf32_order ? "swizzled_in_pairs" : "swizzled";
}

}  // namespace

std::optional<std::int64_t> GemmOperandLoader::source_stride_of(const GemmOperandTile& f, const GemmCopy& c) const {
  const GemmOperand& operand = *c.operand;
  if (!c.constant_distance || !operand.k_stride) return std::nullopt;
  if (by_values(operand.across)) return std::nullopt;  // rows that are looked up
  const std::optional<IndexExpr> stride =
      operand.k_major ? flat_stride(operand.across, across(f), pool_) : operand.k_stride;
  const auto line = stride ? simplify(*stride, pool_.bounds()).as_constant() : std::nullopt;
  constexpr std::int64_t kMostBytes = 1 << 23;  // of an instruction's immediate offset
  if (!line || std::abs(*line) * c.lines * operand.element_bits / 8 >= kMostBytes) return std::nullopt;
  return *line * c.lines_per_pass;
}

// Elements from one tile along K to the next.
std::string GemmOperandLoader::step_of(const GemmOperand& operand) {
  return text(in_storage(*operand.k_stride * form_.tiles.k, operand, pool_.bounds()));
}

// The first K of a step.
std::string GemmOperandLoader::k_at(const std::string& step) const {
  return block_.first_step.empty() ? fmt::format("{} * {}", step, form_.tiles.k)
                                   : fmt::format("({} + {}) * {}", block_.first_step, step, form_.tiles.k);
}

void GemmOperandLoader::declare_copies() {
  writer_.use("copy_pipeline");
  writer_.use("swizzle");
  if (form_.tf32) writer_.use("tf32_fragments");
  for (const GemmOperandTile& f : operand_tiles_)
    for (const GemmCopy& c : f.copies) declare_copy(f, c);
}

void GemmOperandLoader::declare_copy(const GemmOperandTile& f, const GemmCopy& c) {
  const GemmOperand& operand = *c.operand;
  const ExprNode& load = pool_[operand.load];
  const Bounds& bounds = pool_.bounds();
  writer_.line(fmt::format("const int {} = threadIdx.x % {} * {}, {} = threadIdx.x / {};", c.unit, c.units, c.elements,
                           c.line, c.units));
  if (c.derived_address) writer_.use("swizzle_advance");
  if (c.constant_distance || c.derived_address) {
    const std::string first =
        c.derived_address ? "" : block_.stages + " + " + (c.offset ? fmt::format("{} + ", c.offset) : "");
    writer_.line(fmt::format("unsigned {} = {}{}<{}>({}, {} / {});", c.to, first, swizzle_of(c), f.units, c.line,
                             c.unit, c.elements));
    writer_.line(fmt::format("asm(\"\" : \"+r\"({}));  // or else it is computed anew in the loop", c.to));
  }
  const bool several = !c.source_stride;
  writer_.line(several ? fmt::format("const {}* {}[{}];", storage_type(load.dtype), c.from, c.copies)
                       : fmt::format("const {}* {};", storage_type(load.dtype), c.from));
  if (several) writer_.line("#pragma unroll");
  writer_.open(several ? fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", block_.each, c.copies) : "");
  const ExprEmitter::Mark mark = emitter_.mark();
  const std::vector<std::uint32_t>& axes = across(f);
  const std::string at = writer_.unique(f.left ? "row" : "column");
  // Threads beyond the tile's lines copy nothing, but must not look up rows that do not exist.
  const bool beyond = operand.k_major && c.lines < c.lines_per_pass && by_values(operand.across);
  const std::string line = beyond ? fmt::format("{} % {}", c.line, c.lines) : several ? line_of(c) : c.line;
  // Rows with a constant stride need no clamping: lines that do not exist copy zero bytes.
  const std::string here = operand.k_major && c.source_stride
                               ? fmt::format("{} + {}", f.left ? block_.row0 : block_.column0, line)
                               : across_at(f, operand.k_major ? line : c.unit, operand.k_major ? 1 : c.elements);
  writer_.line(fmt::format("const {} {} = {};", writer_.index_type(), at, here));
  bind_flat(emitter_, axes, at, f.left ? "mnopq" : "ijlst");
  const std::string half = operand.element_bits == 4 ? " / 2" : "";
  emitter_.emit(values_in(operand.across));
  std::string position = emitter_.index(in_storage(operand.across, operand, bounds));
  if (operand.k_stride)
    position += operand.k_major ? " + " + c.unit + half
                                : fmt::format(" + ({}) * {}{}", line, writer_.wide() ? "(long long)" : "",
                                              text(in_storage(*operand.k_stride, operand, bounds)));
  if (operand.k_stride && !block_.first_step.empty())
    position += fmt::format(" + ({}){} * {}", writer_.index_type(), block_.first_step, step_of(operand));
  writer_.line(fmt::format("{} = {} + ({});", several ? fmt::format("{}[{}]", c.from, block_.each) : c.from,
                           writer_.input(load.source), position));
  emitter_.rewind(mark);
  writer_.close();
  if (!c.valid_bytes.empty()) declare_valid_bytes(f, c);
}

void GemmOperandLoader::declare_valid_bytes(const GemmOperandTile& f, const GemmCopy& c) {
  std::string bytes = "16";
  if (c.source_stride && c.operand->k_major && clamped(f))
    bytes =
        fmt::format("{} + {} < {} ? 16 : 0", f.left ? block_.row0 : block_.column0, line_of(c), text(count(across(f))));
  writer_.line(fmt::format("int {}[{}];", c.valid_bytes, c.copies));
  writer_.line("#pragma unroll");
  writer_.line(
      fmt::format("for (int {0} = 0; {0} < {1}; ++{0}) {2}[{0}] = {3};", block_.each, c.copies, c.valid_bytes, bytes));
}

std::string GemmOperandLoader::declare_fetch() {
  const std::string fetch = writer_.unique("fetch"), into = writer_.unique("stage");
  const auto jumps = [](const GemmCopy& c) { return !c.operand->k_stride; };
  const bool some_jump = std::ranges::any_of(
      operand_tiles_, [&](const GemmOperandTile& f) { return std::ranges::any_of(f.copies, jumps); });
  const bool counts = some_jump || !whole_tiles();
  const std::string next = writer_.unique("next_k");
  if (counts)
    writer_.line(fmt::format("{} {} = {};", writer_.index_type(), next,
                             block_.first_step.empty()
                                 ? "0"
                                 : fmt::format("({}){} * {}", writer_.index_type(), block_.first_step, form_.tiles.k)));
  writer_.open(fmt::format("const auto {} = [&](unsigned {})", fetch, into));
  for (const GemmOperandTile& f : operand_tiles_)
    for (const GemmCopy& c : f.copies) copy(f, c, into, next);
  if (counts) writer_.line(fmt::format("{} += {};", next, form_.tiles.k));
  writer_.close("};");
  return fetch;
}

void GemmOperandLoader::copy(const GemmOperandTile& f, const GemmCopy& c, const std::string& into,
                             const std::string& next) {
  const GemmOperand& operand = *c.operand;
  const bool some = c.lines < c.lines_per_pass;
  if (some) writer_.open(fmt::format("if (threadIdx.x < {})", c.threads()));
  if (c.constant_distance && operand.k_stride)
    copy_lines(c, into, next);
  else
    copy_each(f, c, into, next);
  if (some) writer_.close();
}

void GemmOperandLoader::copy_lines(const GemmCopy& c, const std::string& into, const std::string& next) {
  const GemmOperand& operand = *c.operand;
  const std::string each = fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", block_.each, c.copies);
  if (!whole_tiles()) {
    const std::string all = text(count(loop_.k));
    writer_.line("#pragma unroll");
    writer_.line(each);
    writer_.line(fmt::format("  if ({} + {} >= {}) {}[{}] = 0;", next, operand.k_major ? c.unit : line_of(c), all,
                             c.valid_bytes, block_.each));
  }
  std::string steps = std::to_string(16 * c.lines_per_pass * c.units);
  if (c.source_stride) steps += fmt::format(", {}", *c.source_stride * operand.element_bits / 8);
  if (c.source_stride && c.valid_bytes.empty()) steps += fmt::format(", {}", c.copies);
  writer_.line(fmt::format("copy_lines<{}>({} + {}, {}{});", steps, c.to, into, c.from,
                           c.valid_bytes.empty() ? "" : ", " + c.valid_bytes));
  const std::string step = step_of(operand);
  if (!c.source_stride) writer_.line("#pragma unroll");
  writer_.line(c.source_stride ? fmt::format("{} += {};", c.from, step)
                               : fmt::format("{} {}[{}] += {};", each, c.from, block_.each, step));
}

void GemmOperandLoader::copy_each(const GemmOperandTile& f, const GemmCopy& c, const std::string& into,
                                  const std::string& next) {
  const GemmOperand& operand = *c.operand;
  const bool strides = operand.k_stride.has_value();
  const ExprEmitter::Mark mark = emitter_.mark();
  std::string jump;
  if (!strides) {
    const std::string k_index = writer_.unique("k");
    writer_.line(fmt::format("const {} {} = {} + {};", writer_.index_type(), k_index, next, c.unit));
    bind_flat(emitter_, loop_.k, k_index, "kluvw");
    jump = " + " + emitter_.index_text().tight(in_storage(operand.k, operand, pool_.bounds()));
  }
  writer_.open_unrolled(block_.each, c.copies);
  const std::string k_here = operand.k_major ? c.unit : line_of(c);
  const std::string valid_bytes = fmt::format("{} + {} < {}", next, k_here, text(count(loop_.k)));
  const std::string from = fmt::format("{}[{}]{}", c.from, block_.each, jump);
  if (f.operand->transformed()) {
    writer_.use("copy_pieces");
    writer_.line(fmt::format("copy_piece<{}, {}>({} + {} + {}, {}, {}, {});", c.bytes(), c.threads(), block_.stages,
                             into, c.offset, from, block_.each, whole_tiles() ? "true" : valid_bytes));
  } else {
    std::string to = c.to;
    if (c.derived_address)
      to = fmt::format("{} + {} + swizzle_advance<{}>({}, {} * {}, 0)", block_.stages, c.offset, f.units, c.to,
                       block_.each, c.lines_per_pass);
    else if (!c.constant_distance)
      to = fmt::format("{} + {} + {}<{}>({}, {} / {})", block_.stages, c.offset, swizzle_of(c), f.units, line_of(c),
                       c.unit, c.elements);
    else if (c.copies > 1)
      to += fmt::format(" + {} * {}", block_.each, 16 * c.lines_per_pass * c.units);
    writer_.line(fmt::format("copy_16_bytes({} + {}, {}{});", into, to, from, whole_tiles() ? "" : ", " + valid_bytes));
  }
  if (strides) writer_.line(fmt::format("{}[{}] += {};", c.from, block_.each, step_of(operand)));
  writer_.close();
  emitter_.rewind(mark);
}

void GemmOperandLoader::declare_compute() {
  for (GemmOperandTile& f : operand_tiles_)
    if (f.operand->transformed()) declare_piece(f);
  if (!scaled_in_blocks()) return;
  scale_blocks_ = writer_.unique("scale_blocks");
  const std::string step = writer_.unique("step");
  writer_.open(fmt::format("const auto {} = [&](int {})", scale_blocks_, step));
  const int steps = steps_per_block(), blocks = blocks_per_step();
  if (steps > 1) writer_.open(fmt::format("if ({} % {} == 0)", step, steps));
  const std::string slot = steps > 1 ? fmt::format("{} / {} % 3", step, steps) : step + " % 3";
  for (const GemmOperandTile& f : operand_tiles_)
    for (int b = 0; b < blocks && !f.operand->scales.empty(); ++b) {
      std::string first = k_at(step);
      if (b > 0) first += fmt::format(" + {}", b * form_.tiles.k / blocks);
      if (b > 0 && !whole_tiles()) first = fmt::format("min({}, {} - 1)", first, text(count(loop_.k)));
      scales(f, first, blocks == 1 ? slot : fmt::format("({} * {} + {})", slot, blocks, b));
    }
  if (steps > 1) writer_.close();
  writer_.close("};");
}

void GemmOperandLoader::compute(const std::string& step, const std::string& stage, bool first) {
  int pieces = 0;
  for (const GemmOperandTile& f : operand_tiles_)
    if (f.operand->transformed()) pieces += f.copies[0].copies;
  for (const GemmOperandTile& f : operand_tiles_) {
    if (!f.operand->transformed()) continue;
    const int all = f.copies[0].copies;
    int unrolled = first ? std::min(all, kMaxUnrolledBeforeLoop) : all;
    for (int left = pieces; left > kMaxUnrolledPieces && unrolled > 1; left /= 2) unrolled /= 2;
    writer_.line(unrolled == all ? std::string(kUnrollToFit) : fmt::format("#pragma unroll {}", unrolled));
    writer_.line(fmt::format("for (int {0} = 0; {0} < {1}; ++{0}) {2}({0}, {3}, {4});", block_.each, all,
                             f.compute_function, step, stage));
  }
  if (!scale_blocks_.empty()) writer_.line(fmt::format("{}({});", scale_blocks_, step));
}

// Declares `make(each, step, stage)`, which computes a thread's each-th piece.
void GemmOperandLoader::declare_piece(GemmOperandTile& f) {
  f.compute_function = writer_.unique("make_" + writer_.preferred_name(pool_[f.operand->load].source));
  const std::string step = writer_.unique("step"), stage = writer_.unique("stage");
  writer_.open(
      fmt::format("const auto {} = [&](int {}, int {}, int {})", f.compute_function, block_.each, step, stage));
  writer_.use("copy_pieces");
  const GemmCopy& c = f.copies[0];
  const bool some = c.lines < c.lines_per_pass;
  if (some) writer_.open(fmt::format("if (threadIdx.x < {})", c.threads()));
  const std::string line = line_of(c);
  const bool along = f.operand->k_major;
  const std::string k_index = fmt::format("{} + {}", k_at(step), along ? c.unit : line);
  const std::string to = fmt::format("dynamic_shared + {} + {} % 2 * {}", f.tile, step, f.bytes);
  const std::string bytes = form_.element_bytes() == 1 ? "" : fmt::format(" * {}", form_.element_bytes());
  const std::string place = fmt::format("{}, {}{}", line, c.unit, bytes);
  writer_.use("store_units");
  const bool whole = whole_tiles();
  if (!whole) writer_.open(fmt::format("if ({} < {})", k_index, text(count(loop_.k))));
  const std::string here = across_at(f, along ? line : c.unit, along ? 1 : c.elements);
  const std::string made = emit_transformed_piece(
      {.kernel = emitter_.kernel(),
       .graph = graph_,
       .writer = writer_,
       .operand = *f.operand,
       .axes = {across(f), loop_.k, holds_within_groups(pool_, contraction_, form_.groups)},
       .batch = contraction_.batch,
       .unit_axes = contraction_.shared_rest,
       .expert_index = contraction_.expert_index ? std::optional(contraction_.expert_index->axis) : std::nullopt,
       .matrix = block_.matrix,
       .multiplied = form_.dtype,
       .piece = c.elements,
       .batch_number = block_.batch,
       .across_at = here,
       .k_at = k_index,
       .words = [&](std::size_t i) {
         const GemmCopy& copied = f.copies[i];
         return fmt::format("load_copied_piece<{}, {}>(dynamic_shared + {} + {}, {})", copied.bytes(), copied.threads(),
                            stage, copied.offset, block_.each);
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

void GemmOperandLoader::load_k_invariant_scales() {
  if (operands_.block != 0) return;
  for (const GemmOperandTile& f : operand_tiles_)
    if (!f.operand->scales.empty()) scales(f, "0", "0");
}

void GemmOperandLoader::scales(const GemmOperandTile& f, const std::string& k0, const std::string& slot) {
  const std::string i = writer_.unique("i");
  writer_.line("#pragma unroll 1");
  writer_.open_strided(i, f.across, form_.tiles.threads());
  const ExprEmitter::Mark mark = emitter_.mark();
  const std::string at = writer_.unique(f.left ? "row" : "column"), k_index = writer_.unique("k");
  const std::string here = across_at(f, i, 1);
  writer_.line(fmt::format("const {0} {1} = {2}, {3} = {4};", writer_.index_type(), at, here, k_index, k0));
  bind_flat(emitter_, across(f), at, f.left ? "mnopq" : "ijlst");
  bind_flat(emitter_, loop_.k, k_index, "kluvw");
  if (form_.groups) {  // rows after the last group have no matrix
    const std::string matrix = writer_.unique("scaled_matrix");
    const IndexExpr last = pool_.extent(contraction_.expert_index->axis) - 1;
    writer_.line(fmt::format("const int {} = min((int){}, {});", matrix, block_.matrix, text(last)));
    emitter_.bind(contraction_.expert_index->axis, matrix);
  }
  std::string product;
  for (const std::string& scale : emitter_.emit(f.operand->scales))
    product += (product.empty() ? "(" : " * (") + scale + ")";
  writer_.line(
      fmt::format("((float*)(dynamic_shared + {}))[{} * {} + {}] = {};", f.scales, slot, f.across, i, product));
  emitter_.rewind(mark);
  writer_.close();
}

void GemmOperandLoader::add_parts(const ContractionTerm& term, const std::string& accumulator, const std::string& part,
                                  const std::string& slot) {
  writer_.use("add_parts");
  const auto of = [&](const GemmOperandTile& f) -> std::string {
    if (f.operand->scales.empty()) return "0";
    return fmt::format("(const float*)(dynamic_shared + {}) + {} * {} + {}", f.scales, slot, f.across,
                       f.left ? "warp_row" : "warp_column");
  };
  const GemmOperandTile &l = left(term.left), &r = right(term.right);
  writer_.line(fmt::format("add_parts<{}, {}>({}, {}, {}, {}, warp_lane);", !l.operand->scales.empty(),
                           !r.operand->scales.empty(), accumulator, part, of(l), of(r)));
}

}  // namespace fusec
