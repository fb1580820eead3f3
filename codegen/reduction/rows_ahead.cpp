#include "codegen/reduction/rows_ahead.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/kernel/loads.h"
#include "codegen/access/vector_access.h"
#include "ir/type.h"

namespace fusec {

RowsAhead::RowsAhead(const RowForm& form, const RowLayout& layout, const std::vector<RowLoop>& loops,
                     KernelWriter& writer, ExprEmitter& emitter)
    : form_(form), layout_(layout), loops_(loops), writer_(writer), emitter_(emitter), later_(form.kernel, writer) {
  const RowLoop& last = loops.back();
  const auto vectors = form.kernel.pool.extent(last.axes[0]).as_constant();
  if (last.width == 1 || last.axes.size() != 2 || !vectors) return;
  vectors_ = *vectors;
  iterations_ = static_cast<int>((vectors_ + layout.parts - 1) / layout.parts);
}

void RowsAhead::take(bool of_rows, const std::map<ExprId, std::size_t>& kept) {
  if (iterations_ == 0) return;
  for (const RowLoop& loop : loops_) {
    if (loop.width != loops_.back().width || loop.axes.size() != 2) continue;
    for (const ExprId id : outside_reductions(form_, loop.roots))
      if (form_.kernel.pool[id].op == ExprOp::kLoad && emitter_.depends_on(id, form_.rows[0]) == of_rows &&
          !kept.contains(id) && !has(id))
        take_load(id, loop, of_rows);
  }
  if (of_rows) find_row_scalars();
}

void RowsAhead::take_load(ExprId load, const RowLoop& loop, bool of_row) {
  constexpr int kMostWords = 4;  // of an access of shared memory
  const ExprPool& pool = form_.kernel.pool;
  const ExprNode& n = pool[load];
  const int bits_of_vector = bits(n.dtype) * loop.width;
  const IndexExpr position = emitter_.position(load);
  const std::uint32_t vector_axis = loops_.back().axes[0];
  if (n.args[0] != kNoExpr || bits(n.dtype) < 8 || bits_of_vector % 32 != 0 || bits_of_vector > 32 * kMostWords ||
      by_values(position) || !is_vector_position(position, loop.axes[1], loop.width, n.dtype, pool.bounds()))
    return;
  const IndexExpr first = with_axis(with_axis(position, loop.axes[1], 0), loop.axes[0], IndexExpr::axis(vector_axis));
  const Slot slot{.tensor = n.source,
                  .dtype = n.dtype,
                  .position = simplify(first, pool.bounds()),
                  .of_row = of_row,
                  .words = bits_of_vector / 32,
                  .place = words_};
  const auto known = std::ranges::find_if(
      slots_, [&](const Slot& other) { return other.tensor == slot.tensor && other.position == slot.position; });
  slot_of_[load] = static_cast<std::size_t>(known - slots_.begin());
  if (known != slots_.end()) return;
  words_ += slot.words * iterations_ * (of_row ? stages() : 1);
  slots_.push_back(slot);
}

// Loads of one element per row.
void RowsAhead::find_row_scalars() {
  const ExprPool& pool = form_.kernel.pool;
  for (const ExprId id : reachable(pool, roots_of(form_.kernel))) {
    const ExprNode& n = pool[id];
    if (n.op == ExprOp::kLoad && n.args[0] == kNoExpr && !by_values(emitter_.position(id)) &&
        emitter_.axes_of(id) == form_.rows)
      row_scalars_[id] = "";
  }
}

std::string RowsAhead::place_of(const Slot& slot, const std::string& iteration) const {
  if (!slot.of_row || stages() == 1) return fmt::format("{} + {} * {}", slot.name, iteration, layout_.threads);
  return fmt::format("{} + ({} * {} + {}) * {}", slot.name, stage_, iterations_, iteration, layout_.threads);
}

// Starts the copies of an iteration, in which the thread has this vector of the row.
void RowsAhead::copy(bool of_rows, const std::string& row, const std::string& iteration, const std::string& vector) {
  later_.bind(form_.rows[0], row);
  later_.bind(loops_.back().axes[0], vector);
  for (const Slot& slot : slots_)
    if (slot.of_row == of_rows)
      writer_.line("copy_over<{}>({}, {});", 4 * slot.words, place_of(slot, iteration),
                   address(writer_.input(slot.tensor), slot.dtype, slot.position, later_.index_text(),
                           form_.kernel.pool.bounds()));
}

std::string RowsAhead::row_scalar(ExprId load, const std::string& row) {
  const ExprNode& n = form_.kernel.pool[load];
  later_.bind(form_.rows[0], row);
  writer_.use(n.dtype);
  return widen(n.dtype, fmt::format("{}[{}]", writer_.input(n.source), later_.index(later_.position(load))));
}

// Declares the number of a row: this one, or the last one if there are fewer.
std::string RowsAhead::existing_row(const char* preferred_name, const std::string& row) {
  return writer_.declared("const " + writer_.index_type(), preferred_name,
                          fmt::format("{0} < {1} ? {0} : {1} - 1", row, rows_));
}

void RowsAhead::begin(const std::string& part, const std::string& first_row, const std::string& rows) {
  rows_ = rows;
  for (const char* const needed : {"words", "dynamic_shared", "copy_pipeline", "copy_over"}) writer_.use(needed);
  for (Slot& slot : slots_) {
    slot.name = writer_.unique(writer_.preferred_name(slot.tensor) + "_ahead");
    writer_.line("Words<{0}>* const {1} = (Words<{0}>*)(dynamic_shared + {2}) + threadIdx.x;", slot.words, slot.name,
                 std::int64_t{4} * layout_.threads * slot.place);
  }
  stage_ = writer_.unique("stage");
  const std::string row = writer_.unique("row_ahead"), turn = writer_.unique("turn"), vector = writer_.unique("k");
  const auto over_vectors = [&](bool of_rows) {
    writer_.open_unrolled(turn, iterations_);
    writer_.line("const int {} = {} + {} * {};", vector, part, turn, layout_.parts);
    const bool whole = vectors_ % layout_.parts == 0;
    if (!whole) writer_.open("if ({} < {})", vector, vectors_);
    copy(of_rows, row, turn, vector);
    if (!whole) writer_.close();
    writer_.close();
  };
  if (std::ranges::any_of(slots_, [](const Slot& slot) { return !slot.of_row; })) over_vectors(false);
  writer_.open_unrolled(stage_, stages());
  writer_.line("const {} {} = {} + {} * {};", writer_.index_type(), row, first_row, stage_, step());
  writer_.open("if ({} < {})", row, rows_);
  over_vectors(true);
  writer_.close();
  writer_.line("commit_copies();");
  writer_.close();
  if (stages() > 1) stage_ = writer_.declared("int", "stage", "0");
  if (row_scalars_.empty()) return;
  const std::string first = existing_row("first_row", first_row);
  for (auto& [load, next] : row_scalars_) {
    next = writer_.unique(emitter_.plain_name(load) + "_ahead");
    writer_.line("{} {} = {};", c_type(form_.kernel.pool[load].type), next, row_scalar(load, first));
  }
}

void RowsAhead::open_row(const std::string& row) {
  writer_.line("wait_for_groups<{}>();", stages() - 1);
  later_row_ = writer_.declared("const " + writer_.index_type(), "row_ahead",
                                fmt::format("{} + {}", row, std::int64_t{stages()} * step()));
  if (row_scalars_.empty()) return;
  const std::string next_row = existing_row("next_row", fmt::format("{} + {}", row, step()));
  for (const auto& [load, next] : row_scalars_) {
    emitter_.define(load, writer_.declared(fmt::format("const {}", c_type(form_.kernel.pool[load].type)),
                                           emitter_.plain_name(load) + "_v", next));
    writer_.line("{} = {};", next, row_scalar(load, next_row));
  }
}

void RowsAhead::close_row() {
  writer_.line("commit_copies();");
  if (stages() == 2) writer_.line("{} ^= 1;", stage_);
}

void RowsAhead::end() {
  if (layout_.rows == 1) return;
  writer_.line("wait_for_groups<0>();  // of warps that had no row");
  writer_.line("__syncthreads();");
}

std::string RowsAhead::words_of(ExprId load, const std::string& iteration) {
  const Slot& slot = slots_[slot_of_.at(load)];
  return writer_.declared(fmt::format("const Words<{}>", slot.words), writer_.preferred_name(slot.tensor) + "_w",
                          fmt::format("load_words<{}>({})", slot.words, place_of(slot, iteration)));
}

void RowsAhead::copy_later_row(const std::string& iteration, const std::string& vector) {
  writer_.open("if ({} < {})", later_row_, rows_);
  copy(true, later_row_, iteration, vector);
  writer_.close();
}

}  // namespace fusec
