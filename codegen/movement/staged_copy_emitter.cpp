#include "codegen/movement/staged_copy_emitter.h"

#include <algorithm>
#include <numeric>

#include "codegen/access/direct.h"
#include "codegen/access/vector_access.h"
#include "codegen/movement/staged_copy_block.h"
#include "ir/type.h"

namespace fusec {
namespace {

class StagedCopyEmitter : private StagedCopyBlock {
 public:
  using StagedCopyBlock::StagedCopyBlock;

  KernelSource emit() {
    writer_.use("dynamic_shared");
    writer_.use("staged_copy");
    find_block();
    copy_operands();
    plan_.width > 0 ? store_vectors() : store_words();
    writer_.tidy();
    KernelSource source = writer_.finish({}, plan_.threads, 1);
    source.grid[0] = grid();
    source.dynamic_shared = plan_.bytes;
    source.schedule = {KernelKind::kStagedCopy};
    source.work = work();
    return source;
  }

 private:
  // "A block makes a tile of 64 x 32 elements ..."
  std::string work() const {
    std::string tile;
    for (const TileAxis& axis : plan_.axes)
      if (axis.extent > 1) tile += (tile.empty() ? "" : " x ") + std::to_string(axis.extent);
    return "A block makes a tile of " + tile + " elements from rows in shared memory; a thread stores " +
           (plan_.width > 0 ? std::to_string(plan_.width) + " neighbours." : "words of runs.");
  }

  // A thread's item: the operands' words of `planes` neighbours along what is read, `width` neighbours of the results'
  // last axis each.
  void store_vectors() {
    emitter_.rewind(tile_mark_);
    std::int64_t items = 1;
    for (const ItemDigit& digit : plan_.items) items *= digit.count;
    const std::int64_t turns = ceil_quotient(items, plan_.threads), last = plan_.items.back().count;
    const bool once = plan_.threads % (items / last) == 0;  // only the last digit differs among turns
    const int unrolled = plan_.planes > 1 ? 2 : 4;
    const CExpr turn = open_turns(once ? 1 : turns, unrolled);
    const ExprEmitter::Mark mark = emitter_.mark();
    const CExpr item = declared_int("item", CExpr("threadIdx.x") + turn * plan_.threads);
    Coordinates at;
    CExpr left = item, condition = "true";
    for (std::size_t d = 0; d < plan_.items.size(); ++d) {
      const ItemDigit& digit = plan_.items[d];
      CExpr mine = left;
      if (d + 1 < plan_.items.size()) {
        mine = digit.count == 1 ? 0 : declared_int("c", cast("unsigned", left) % digit.count);
        if (digit.count > 1) left = declared_int("above", cast("unsigned", left) / digit.count);
      }
      at[digit.axis] = at[digit.axis] + mine * digit.step;
    }
    const CExpr in_turn = open_turns(once ? turns : 1, unrolled);
    const ItemDigit& moving = plan_.items.back();
    at[moving.axis] = at[moving.axis] + in_turn * (plan_.threads / (items / last) * moving.step);
    if (turns * plan_.threads > items) condition = item + in_turn * plan_.threads < items;
    for (auto& [i, coordinate] : at) {
      if (!coordinate.is_leaf()) coordinate = declared_int("at", coordinate);
      add_condition(condition, i, coordinate);
    }
    writer_.open_if(condition);
    for (std::size_t i = 0; i < plan_.axes.size(); ++i)
      if (!is_lane(i) && !at.contains(i)) emitter_.bind(plan_.axes[i].axis, origin_[i].tight());
    for (const StagedOperand& operand : plan_.operands) read_operand(operand, at);
    const CExpr plane = open_unrolled("plane", plan_.planes);
    const ExprEmitter::Mark in_plane = emitter_.mark();
    if (plan_.planes > 1) at[plan_.along] = at[plan_.along] + plane;
    bind_axes(at);
    store_plane(plane);
    emitter_.rewind(in_plane);
    writer_.end();
    writer_.end();
    emitter_.rewind(mark);
    writer_.end();
    writer_.end();
  }
  bool is_lane(std::size_t i) const { return plan_.width > 1 && i == stored_axis(); }
  std::size_t stored_axis() const {
    const auto at = std::ranges::find(plan_.axes, kernel_.outputs[0].axes.back(), &TileAxis::axis);
    return static_cast<std::size_t>(at - plan_.axes.begin());
  }

  void read_operand(const StagedOperand& operand, const Coordinates& at) {
    const std::string name = writer_.preferred_name(kernel_.pool[operand.load].source);
    CExpr place = tiles_.at(operand.load);
    for (const auto& [i, coordinate] : at) {
      const bool halves = operand.bits == 4 && operand.in_vectors && i == operand.rows.run[0];
      place = place + (halves ? coordinate / 2 : coordinate * step_of(operand, i));
    }
    place = declared("const unsigned char* const", name + "_at", place);
    rows_[operand.load] = place;
    if (plan_.planes == 1) return;
    writer_.use("transposed_words");
    const std::string lines = writer_.unique(name + "_lines");
    writer_.declare_array(words_type(plan_.width), lines, 0);
    const CExpr e = open_unrolled("e", plan_.width);
    writer_.assign(element(lines + ".w", e), pointee("const unsigned", place + e * step_of(operand, stored_axis())));
    writer_.end();
    rows_[operand.load] = lines;
    if (plan_.width % plan_.planes != 0) return;
    const std::string turned = writer_.unique(name + "_t");
    writer_.declare_array(words_type(plan_.width / plan_.planes), turned, plan_.planes);
    writer_.run(call("transpose_words<" + std::to_string(operand.bits) + ">", {turned, lines}));
    rows_[operand.load] = turned;
  }
  static std::string words_type(int count) { return "Words<" + std::to_string(count) + ">"; }

  std::string lane_text(const StagedOperand& operand, const CExpr& plane, const CExpr& e) {
    const DType dtype = kernel_.pool[operand.load].dtype;
    const CExpr& from = rows_.at(operand.load);
    if (plan_.planes == 1)
      return value_text(operand, plan_.width > 1 ? from + e * step_of(operand, stored_axis()) : from);
    if (plan_.width % plan_.planes == 0) return element_text(dtype, element(from, plane).text(), e.text(), writer_);
    return element_text(dtype, from.text(), (e * plan_.planes + plane).text(), writer_);
  }

  void store_plane(const CExpr& plane) {
    const std::vector<ExprId> roots = roots_of(kernel_);
    const auto staged = [&](ExprId id) { return std::ranges::find(plan_.operands, id, &StagedOperand::load); };
    if (plan_.width == 1) {
      emitter_.load_text = [&](ExprId id) {
        const auto operand = staged(id);
        return operand == plan_.operands.end() ? std::string() : lane_text(*operand, plane, 0);
      };
      store_scalars(emitter_, emitter_.emit(roots));
      emitter_.load_text = nullptr;
      return;
    }
    const std::uint32_t lane_axis = kernel_.outputs[0].axes.back();
    const std::string e = writer_.unique("e");
    VectorLoads loads(emitter_, graph_, lane_axis, plan_.width);
    loads.declare(roots, e);
    emitter_.load_text = [&, others = emitter_.load_text](ExprId id) {
      const auto operand = staged(id);
      return operand == plan_.operands.end() ? others(id) : lane_text(*operand, plane, e);
    };
    std::vector<VectorStore> stores;
    for (const KernelOutput& output : kernel_.outputs)
      stores.push_back(VectorStore::plan(emitter_, output, lane_axis, plan_.width));
    emitter_.emit_independent(roots);
    writer_.open_for("int", e, plan_.width, 0);
    const ExprEmitter::Mark lanes = emitter_.mark();
    emitter_.bind(lane_axis, e);
    const std::vector<std::string> values = emitter_.emit(roots);
    for (std::size_t i = 0; i < stores.size(); ++i) stores[i].put(emitter_, e, values[i]);
    emitter_.rewind(lanes);
    writer_.end();
    for (VectorStore& store : stores) store.finish(emitter_);
    emitter_.load_text = nullptr;
  }

  // A word of the result to a thread, counted from the sector in which its run begins; words at either end of a run by
  // element.
  void store_words() {
    const KernelOutput& result = kernel_.outputs[0];
    const int element_bits = bits(result.type.dtype), bytes = element_bits / 8, each = elements_of_word(element_bits);
    const TileRows& rows = plan_.stored;
    const std::string type = storage_type(result.type.dtype) + "* const";
    writer_.use(result.type.dtype);
    writer_.use("words");
    const IndexExpr position = simplify(flat_index(result.type.shape, result.index), bounds_);
    const std::string name = writer_.preferred_name(result.value);
    const CExpr first =
        declared(type, name + "_first", CExpr(writer_.output(result.value)) + emitter_.index_text().tight(position));
    const std::int64_t run = run_elements(rows, plan_.axes);
    const bool whole = run_bytes(rows, element_bits).is(run * bytes);
    const CExpr length =
        whole && run % each == 0 && run * bytes % kSectorBytes == 0
            ? CExpr(run)
            : CExpr(writer_.declared("const int", name + "_length", run_bytes(rows, element_bits) / bytes));
    const int words = words_of_row(rows, plan_.axes, element_bits);
    over_pieces(
        rows, words, 4, plan_.store_lanes, [&](const Coordinates& row, const CExpr& condition, const CExpr& word) {
          coordinates_ = row;
          const CExpr distance =
              offset(row, [&](std::size_t i) { return CExpr(emitter_.index_text().tight(rows.steps[i])); });
          const CExpr to = declared_behind(type, "run_first", first, distance);
          CExpr place = word * each;
          if (rows.aligned < kSectorBytes)
            place = place - call("address_modulo<" + std::to_string(kSectorBytes) + ">", {to}) / bytes;
          const CExpr at = declared_int("at", place);
          for (const StagedOperand& operand : plan_.operands)
            rows_[operand.load] =
                declared("const unsigned char* const", "row_at",
                         tiles_.at(operand.load) + offset(row, [&](std::size_t i) { return step_of(operand, i); }));
          writer_.open_if(condition);
          store_word(to, at, length, each);
          writer_.end();
        });
  }

  void store_word(const CExpr& to, const CExpr& at, const CExpr& length, int each) {
    const DType dtype = kernel_.outputs[0].type.dtype;
    const std::string words = writer_.unique(writer_.preferred_name(kernel_.outputs[0].value) + "_w");
    const int count = std::max(1, bits(dtype) / 32);
    if (plan_.stored.aligned == kSectorBytes && words_are_whole())
      writer_.open_if(length.as_integer() ? "true" : at < length);
    else
      writer_.open_if(each == 1 ? cast("unsigned", at) < cast("unsigned", length) : at >= 0 && at <= length - each);
    writer_.declare(words_type(count), words, "{}");
    const int together = elements_together(each);
    const CExpr group = open_unrolled("group", each / together);
    const ExprEmitter::Mark mark = emitter_.mark();
    const std::vector<CExpr> parts = divided(at + group * together);
    const CExpr e = open_unrolled("e", together);
    with_value(parts, e, [&](const std::string& value) {
      writer_.line(put_text(dtype, words, (group * together + e).text(), value, writer_));
    });
    writer_.end();
    emitter_.rewind(mark);
    writer_.end();
    writer_.run(call("store_words<" + std::to_string(count) + ">", {to + at, words}));
    if (each > 1 && !words_are_whole()) {
      writer_.open_else();
      const std::string place = writer_.unique("place");
      writer_.open_for("int", place, call("min", {at + each, length}), 1, call("max", {at, 0}));
      with_value(divided(place), 0,
                 [&](const std::string& value) { writer_.assign(element(to, place), narrow(dtype, value)); });
      writer_.end();
    }
    writer_.end();
  }

  // No run begins or ends within a word.
  bool words_are_whole() const {
    const TileRows& rows = plan_.stored;
    const int each = elements_of_word(bits(kernel_.outputs[0].type.dtype));
    const bool cut = !rows.run.empty() && remaining_[rows.run.back()];
    return rows.aligned >= 4 && run_elements(rows, plan_.axes) % each == 0 &&
           (!cut || rows.strides[rows.run.back()] % each == 0);
  }
  // So many neighbours of a word differ in their place along the fastest axis alone.
  int elements_together(int each) const {
    const TileRows& rows = plan_.stored;
    if (rows.run.empty() || !words_are_whole()) return 1;
    return rows.run.size() == 1 ? each : std::gcd(each, plan_.axes[rows.run[0]].extent);
  }

  // A place in a run, and what it is of each axis of the run on.
  std::vector<CExpr> divided(const CExpr& place) {
    const TileRows& rows = plan_.stored;
    std::vector<CExpr> quotients = {declared_int("j", place)};
    for (std::size_t r = 0; r + 1 < rows.run.size(); ++r)
      quotients.push_back(declared_int("above", quotient(quotients.back(), plan_.axes[rows.run[r]].extent)));
    return quotients;
  }

  // Gives the value of the run's element that is e further along the fastest axis.
  template <class Body>
  void with_value(const std::vector<CExpr>& quotients, const CExpr& e, Body body) {
    const ExprEmitter::Mark mark = emitter_.mark();
    const std::vector<std::size_t>& run = plan_.stored.run;
    Coordinates coordinates = coordinates_;
    for (std::size_t r = 0; r < run.size(); ++r) {
      CExpr at = quotients[r];
      if (r + 1 < run.size()) at = at - quotients[r + 1] * plan_.axes[run[r]].extent;
      coordinates[run[r]] = r == 0 ? at + e : at;
    }
    bind_axes(coordinates);
    emitter_.load_text = [&](ExprId id) -> std::string {
      const auto operand = std::ranges::find(plan_.operands, id, &StagedOperand::load);
      return operand == plan_.operands.end() ? "" : element_of_run(*operand, quotients, e);
    };
    body(emitter_.emit(kernel_.outputs[0].expr));
    emitter_.load_text = nullptr;
    emitter_.rewind(mark);
  }

  // The step of an axis, less what the axis inside of it has gone already.
  CExpr step_beyond(const StagedOperand& operand, std::size_t i, std::size_t inside) const {
    return step_of(operand, i) - step_of(operand, inside) * plan_.axes[inside].extent;
  }

  // What one element of the result reads: its place in the run by each axis' distance, less what the axes inside of it
  // have gone already.
  std::string element_of_run(const StagedOperand& operand, const std::vector<CExpr>& quotients, const CExpr& e) {
    const std::vector<std::size_t>& run = plan_.stored.run;
    CExpr place = rows_.at(operand.load);
    for (std::size_t r = 0; r < quotients.size() && r < run.size(); ++r)
      place = place + quotients[r] * (r == 0 ? step_of(operand, run[r]) : step_beyond(operand, run[r], run[r - 1]));
    if (!run.empty()) place = place + e * step_of(operand, run[0]);
    return value_text(operand, place);
  }

  std::map<ExprId, CExpr> rows_{};  // of each operand: where a row is, or words of several
  Coordinates coordinates_{};       // of the run that is stored
};

}  // namespace

KernelSource emit_staged_copy(const StagedCopy& plan, const Graph& graph) {
  return StagedCopyEmitter(plan, graph).emit();
}

}  // namespace fusec
