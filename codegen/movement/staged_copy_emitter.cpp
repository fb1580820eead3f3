#include "codegen/movement/staged_copy_emitter.h"

#include <fmt/format.h>

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
    writer_.use({KernelKind::kStagedCopy});
    find_block();
    copy_operands();
    plan_.width > 0 ? store_vectors() : store_words();
    KernelSource source = writer_.finish(kernel_comment(graph_, kernel_), plan_.threads, 1);
    source.grid[0] = grid();
    source.dynamic_shared = plan_.bytes;
    source.schedule = {KernelKind::kStagedCopy};
    return source;
  }

 private:
  // A thread's item: the operands' words of `planes` neighbours along what is read, `width` neighbours of the results'
  // last axis each.
  void store_vectors() {
    emitter_.rewind(tile_mark_);
    std::int64_t items = 1;
    for (const ItemDigit& digit : plan_.items) items *= digit.count;
    const std::int64_t turns = (items + plan_.threads - 1) / plan_.threads, last = plan_.items.back().count;
    const bool once = turns == 1 || plan_.threads % (items / last) == 0;  // only the last digit differs among turns
    const std::string turn = once || turns == 1 ? "" : open_turns(turns, plan_.planes > 1 ? 2 : 4);
    const ExprEmitter::Mark mark = emitter_.mark();
    const std::string item = declared(
        "const int", "item", turn.empty() ? "threadIdx.x" : fmt::format("threadIdx.x + {} * {}", turn, plan_.threads));
    Coordinates at;
    std::string left = item, condition;
    std::size_t moving = plan_.axes.size();
    for (std::size_t d = 0; d < plan_.items.size(); ++d) {
      const ItemDigit& digit = plan_.items[d];
      std::string mine = left;
      if (d + 1 < plan_.items.size()) {
        mine = digit.count == 1 ? "0" : declared("const int", "c", fmt::format("(unsigned){} % {}", left, digit.count));
        if (digit.count > 1) left = declared("const int", "above", fmt::format("(unsigned){} / {}", left, digit.count));
      } else {
        moving = digit.axis;
      }
      std::string& coordinate = at[digit.axis];
      coordinate = plus(coordinate.empty() ? "0" : coordinate, times(mine, digit.step));
    }
    std::string in_turn;
    if (once && turns > 1) {
      in_turn = open_turns(turns, plan_.planes > 1 ? 2 : 4);
      at[moving] = plus(at[moving], times(in_turn, plan_.threads / (items / last) * plan_.items.back().step));
    }
    if (turns * plan_.threads > items)
      condition = fmt::format(
          "{} < {}", in_turn.empty() ? item : fmt::format("{} + {} * {}", item, in_turn, plan_.threads), items);
    for (auto& [i, coordinate] : at) {
      if (coordinate.find(' ') != std::string::npos) coordinate = declared("const int", "at", coordinate);
      add_condition(condition, i, coordinate);
    }
    if (!condition.empty()) writer_.open(fmt::format("if ({})", condition));
    for (std::size_t i = 0; i < plan_.axes.size(); ++i)
      if (!is_lane(i) && !at.contains(i)) emitter_.bind(plan_.axes[i].axis, origin_[i]);
    for (const StagedOperand& operand : plan_.operands) read_operand(operand, at);
    if (plan_.planes > 1) {
      const std::string plane = open_unrolled("plane", plan_.planes);
      const ExprEmitter::Mark in_plane = emitter_.mark();
      at[plan_.along] = plus(at.contains(plan_.along) ? at[plan_.along] : "0", plane);
      bind_axes(at);
      store_plane(plane);
      emitter_.rewind(in_plane);
      writer_.close();
    } else {
      bind_axes(at);
      store_plane("0");
    }
    if (!condition.empty()) writer_.close();
    emitter_.rewind(mark);
    if (!turn.empty() || !in_turn.empty()) writer_.close();
  }
  bool is_lane(std::size_t i) const { return plan_.width > 1 && plan_.axes[i].axis == kernel_.outputs[0].axes.back(); }
  std::size_t stored_axis() const {
    const auto at = std::ranges::find(plan_.axes, kernel_.outputs[0].axes.back(), &TileAxis::axis);
    return static_cast<std::size_t>(at - plan_.axes.begin());
  }

  void read_operand(const StagedOperand& operand, const Coordinates& at) {
    const std::string name = writer_.preferred_name(kernel_.pool[operand.load].source);
    std::string place = tiles_.at(operand.load);
    for (const auto& [i, coordinate] : at) {
      const bool halves = operand.bits == 4 && operand.in_vectors && i == operand.rows.run[0];
      place = plus(place, halves ? coordinate + " / 2" : times(coordinate, step_of(operand, i)));
    }
    place = declared("const unsigned char* const", name + "_at", place);
    if (plan_.planes == 1) {
      rows_[operand.load] = place;
      return;
    }
    writer_.use("turned_words");
    const std::string lines = writer_.unique(name + "_lines");
    writer_.line(fmt::format("Words<{}> {};", plan_.width, lines));
    const std::string e = open_unrolled("e", plan_.width);
    writer_.line(fmt::format("{}.w[{}] = *(const unsigned*)({} + {});", lines, e, place,
                             times(e, step_of(operand, stored_axis()))));
    writer_.close();
    rows_[operand.load] = lines;
    if (plan_.width % plan_.planes != 0) return;
    const std::string turned = writer_.unique(name + "_t");
    writer_.line(fmt::format("Words<{}> {}[{}];", plan_.width / plan_.planes, turned, plan_.planes));
    writer_.line(fmt::format("turn_words<{}>({}, {});", operand.bits, turned, lines));
    rows_[operand.load] = turned;
  }

  std::string lane_text(const StagedOperand& operand, const std::string& plane, const std::string& e) {
    const DType dtype = kernel_.pool[operand.load].dtype;
    const std::string& from = rows_.at(operand.load);
    if (plan_.planes == 1)
      return value_text(operand, plus(from, plan_.width > 1 ? times(e, step_of(operand, stored_axis())) : "0"));
    if (plan_.width % plan_.planes == 0) return element_text(dtype, fmt::format("{}[{}]", from, plane), e, writer_);
    return element_text(dtype, from, fmt::format("{} * {} + {}", e, plan_.planes, plane), writer_);
  }

  void store_plane(const std::string& plane) {
    const std::vector<ExprId> roots = roots_of(kernel_);
    const auto staged = [&](ExprId id) { return std::ranges::find(plan_.operands, id, &StagedOperand::load); };
    if (plan_.width == 1) {
      emitter_.load_text = [&](ExprId id) {
        const auto operand = staged(id);
        return operand == plan_.operands.end() ? std::string() : lane_text(*operand, plane, "0");
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
    writer_.line("#pragma unroll");
    writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", e, plan_.width));
    const ExprEmitter::Mark lanes = emitter_.mark();
    emitter_.bind(lane_axis, e);
    const std::vector<std::string> values = emitter_.emit(roots);
    for (std::size_t i = 0; i < stores.size(); ++i) stores[i].put(emitter_, e, values[i]);
    emitter_.rewind(lanes);
    writer_.close();
    for (VectorStore& store : stores) store.finish(emitter_);
    emitter_.load_text = nullptr;
  }

  // A word of the result to a thread, counted from the sector in which its run begins; words at either end of a run by
  // element.
  void store_words() {
    const KernelOutput& result = kernel_.outputs[0];
    const int element_bits = bits(result.type.dtype), bytes = element_bits / 8, each = elements_of_word(element_bits);
    const TileRows& rows = plan_.stored;
    const std::string type = fmt::format("{}* const", storage_type(result.type.dtype));
    writer_.use(result.type.dtype);
    writer_.use("words");
    const IndexExpr position = simplify(flat_index(result.type.shape, result.index), bounds_);
    const std::string name = writer_.preferred_name(result.value);
    const std::string first =
        declared(type, name + "_first",
                 fmt::format("{} + {}", writer_.output(result.value), emitter_.index_text().tight(position)));
    const std::int64_t run = run_elements(rows, plan_.axes);
    const bool whole = run_bytes(rows, element_bits) == std::to_string(run * bytes);
    const std::string length =
        whole && run % each == 0 && run * bytes % kSectorBytes == 0
            ? std::to_string(run)
            : declared("const int", name + "_length", fmt::format("({}) / {}", run_bytes(rows, element_bits), bytes));
    const int words = row_bytes(rows, plan_.axes, element_bits, kSectorBytes) / std::max(4, bytes);
    over_pieces(rows, words, 4, plan_.store_lanes,
                [&](const Coordinates& row, const std::string& condition, const std::string& word) {
                  coordinates_ = row;
                  const std::string distance =
                      offset(coordinates_, [&](std::size_t i) { return emitter_.index_text().tight(rows.steps[i]); });
                  const char* const wide = writer_.wide() ? "(long long)" : "";
                  const std::string to =
                      distance == "0" ? first
                                      : declared(type, "run_first", fmt::format("{} + {}({})", first, wide, distance));
                  std::string place = times(word, each);
                  if (rows.aligned < kSectorBytes)
                    place += fmt::format(" - bytes_behind<{}>({}) / {}", kSectorBytes, to, bytes);
                  const std::string at = declared("const int", "at", place);
                  for (const StagedOperand& operand : plan_.operands)
                    rows_[operand.load] =
                        declared("const unsigned char* const", "row_at",
                                 plus(tiles_.at(operand.load),
                                      offset(coordinates_, [&](std::size_t i) { return step_of(operand, i); })));
                  if (!condition.empty()) writer_.open(fmt::format("if ({})", condition));
                  store_word(to, at, length, each);
                  if (!condition.empty()) writer_.close();
                });
  }

  void store_word(const std::string& to, const std::string& at, const std::string& length, int each) {
    const DType dtype = kernel_.outputs[0].type.dtype;
    const std::string words = writer_.unique(writer_.preferred_name(kernel_.outputs[0].value) + "_w");
    const int count = std::max(1, bits(dtype) / 32);
    if (plan_.stored.aligned == kSectorBytes && words_are_whole())
      writer_.open(length.find('_') == std::string::npos ? "" : fmt::format("if ({} < {})", at, length));
    else
      writer_.open(each == 1 ? fmt::format("if ((unsigned){} < (unsigned){})", at, length)
                             : fmt::format("if ({0} >= 0 && {0} <= {1} - {2})", at, length, each));
    writer_.line(fmt::format("Words<{}> {} = {{}};", count, words));
    const int together = elements_together(each);
    const std::string group = each > together ? open_unrolled("group", each / together) : "0";
    const ExprEmitter::Mark mark = emitter_.mark();
    const std::vector<std::string> parts = divided(plus(at, times(group, together)));
    const std::string e = together > 1 ? open_unrolled("e", together) : "0";
    with_value(parts, e, [&](const std::string& value) {
      writer_.line(put_text(dtype, words, plus(times(group, together), e), value, writer_));
    });
    if (together > 1) writer_.close();
    emitter_.rewind(mark);
    if (each > together) writer_.close();
    writer_.line(fmt::format("store_words<{}>({} + {}, {});", count, to, at, words));
    if (each > 1 && !words_are_whole()) {
      writer_.close("} else {");
      writer_.reopen();
      const std::string place = writer_.unique("place");
      writer_.line("#pragma unroll 1");
      writer_.open(
          fmt::format("for (int {0} = max({1}, 0); {0} < min({1} + {2}, {3}); ++{0})", place, at, each, length));
      with_value(divided(place), "0", [&](const std::string& value) {
        writer_.line(fmt::format("{}[{}] = {};", to, place, narrow(dtype, value)));
      });
      writer_.close();
    }
    writer_.close();
  }

  // No run begins or ends within a word.
  bool words_are_whole() const {
    const TileRows& rows = plan_.stored;
    const int each = elements_of_word(bits(kernel_.outputs[0].type.dtype));
    const bool cut = !rows.run.empty() && !remaining_[rows.run.back()].empty();
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
  std::vector<std::string> divided(const std::string& place) {
    const TileRows& rows = plan_.stored;
    std::vector<std::string> quotients = {declared("const int", "j", place)};
    for (std::size_t r = 0; r + 1 < rows.run.size(); ++r)
      quotients.push_back(declared("const int", "above", quotient(quotients.back(), plan_.axes[rows.run[r]].extent)));
    return quotients;
  }

  // Gives the value of the run's element that is e further along the fastest axis.
  template <class Body>
  void with_value(const std::vector<std::string>& quotients, const std::string& e, Body body) {
    const ExprEmitter::Mark mark = emitter_.mark();
    const std::vector<std::size_t>& run = plan_.stored.run;
    Coordinates coordinates = coordinates_;
    for (std::size_t r = 0; r < run.size(); ++r) {
      std::string at = quotients[r];
      if (r + 1 < run.size()) at = fmt::format("({} - {} * {})", at, quotients[r + 1], plan_.axes[run[r]].extent);
      coordinates[run[r]] = r == 0 ? plus(at, e) : at;
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

  // The same less what the axis inside of it has gone already.
  std::string step_beyond(const StagedOperand& operand, std::size_t i, std::size_t inside) const {
    if (!operand.place_varies(i) && !operand.place_varies(inside)) {
      const auto step = [&](std::size_t a) {
        return operand.rows.backwards[a] ? -operand.places[a] : operand.places[a];
      };
      return std::to_string(step(i) - step(inside) * plan_.axes[inside].extent);
    }
    const std::string more = step_of(operand, inside);
    if (more == "0") return step_of(operand, i);
    return fmt::format("({} - ({}) * {})", step_of(operand, i), more, plan_.axes[inside].extent);
  }

  // What one element of the result reads: its place in the run by each axis' distance, less what the axes inside of it
  // have gone already.
  std::string element_of_run(const StagedOperand& operand, const std::vector<std::string>& quotients,
                             const std::string& e) {
    const std::vector<std::size_t>& run = plan_.stored.run;
    std::string place = rows_.at(operand.load);
    for (std::size_t r = 0; r < quotients.size(); ++r) {
      const std::string step = r == 0 ? step_of(operand, run[r]) : step_beyond(operand, run[r], run[r - 1]);
      if (step != "0") place += fmt::format(" + {} * {}", quotients[r], step);
    }
    if (e != "0") place += fmt::format(" + {} * {}", e, step_of(operand, run[0]));
    return value_text(operand, place);
  }

  std::map<ExprId, std::string> rows_{};  // of each operand: where a row is, or words of several
  Coordinates coordinates_{};             // of the run that is stored
};

}  // namespace

KernelSource emit_staged_copy(const StagedCopy& plan, const Graph& graph) {
  return StagedCopyEmitter(plan, graph).emit();
}

}  // namespace fusec
