#include "codegen/convolution/grouped_implicit_gemm.h"

#include <fmt/format.h>

#include <functional>

#include "analysis/kernel/loads.h"
#include "codegen/access/delinearize.h"
#include "codegen/access/direct.h"
#include "codegen/convolution/grouped_implicit_gemm_epilogue.h"
#include "codegen/expr/emit_expr.h"
#include "codegen/gemm/gemm_block.h"
#include "ir/type.h"

namespace fusec {
namespace {

class GroupedImplicitGemmEmitter {
 public:
  GroupedImplicitGemmEmitter(const Kernel& original, const GroupedImplicitGemm& form, const Graph& graph)
      : original_(original),
        w_(form),
        pool_(w_.kernel.pool),
        graph_(graph),
        writer_(graph, needs_wide_index(original, graph, blocks() * w_.threads())),
        input_emitter_(w_.kernel, writer_),
        results_(w_.epilogue, writer_) {}

  KernelSource emit() {
    writer_.use("dynamic_shared");
    writer_.use("copy_pipeline");
    writer_.use("shared_address");
    for (const std::uint32_t a : w_.contraction.shared_rest) input_emitter_.bind(a, "0");
    place_block();
    writer_.line("const int warp = threadIdx.x / 32, warp_lane = threadIdx.x % 32;");
    image_ = writer_.unique("image");
    writer_.line(fmt::format("const unsigned {} = shared_address(dynamic_shared);", image_));
    copy_places();
    find_slots();
    place_lane();
    multiply();
    emit_grouped_epilogue(w_, {accumulator_type(), accumulator_, group_, part_, group0_, first_}, graph_, results_);
    // Without this number, ptxas assumes more blocks than shared memory allows, and spills.
    const int at_a_time = w_.registers() <= 128 ? 512 : 256;
    KernelSource source = writer_.finish(comment(), w_.threads(), std::max(1, at_a_time / w_.threads()));
    source.name = kernel_name(graph_, original_.nodes);
    source.grid[0] = blocks();
    source.dynamic_shared = w_.shared_bytes();
    source.schedule = {KernelKind::kGroupedImplicitGemm};
    return source;
  }

 private:
  std::string text(const IndexExpr& e) { return input_emitter_.index_text().tight(simplify(e, pool_.bounds())); }
  std::string integer() const { return writer_.index_type(); }
  std::int64_t slabs() const { return w_.groups / w_.groups_per_block; }
  IndexExpr count(const ImplicitGemmAxis& a) const { return a.result ? pool_.extent(*a.result) : IndexExpr(1); }
  IndexExpr tiles(const ImplicitGemmAxis& a) const { return simplify(ceil_div(count(a), a.results), pool_.bounds()); }
  IndexExpr blocks() const {
    IndexExpr count = slabs();
    for (const ImplicitGemmAxis& a : w_.axes) count *= tiles(a);
    return simplify(count, pool_.bounds());
  }
  bool whole(const ImplicitGemmAxis& a) const { return proves_multiple_of(count(a), a.results, pool_.bounds()); }
  std::int64_t elements_of_unit() const { return 16 / w_.element_bytes(); }
  std::string accumulator_type() const { return c_type(pool_[w_.contraction.loops[0].terms[0].reduction].type); }

  std::vector<std::string> comment() const {
    std::vector<std::string> lines = kernel_comment(graph_, original_);
    std::string results;
    for (const ImplicitGemmAxis& a : w_.axes) results += fmt::format("{}{}", results.empty() ? "" : "x", a.results);
    lines.push_back(fmt::format("A block makes {} results of {} groups, a warp {} of one, on tensor cores.", results,
                                w_.groups_per_block, 16 * w_.m16_tiles));
    return lines;
  }

  std::vector<std::string> digits(const std::string& number, std::string_view wishes,
                                  const std::function<IndexExpr(const ImplicitGemmAxis&)>& of) {
    return delinearize(writer_, w_.axes, number, wishes, of, [this](const IndexExpr& e) { return text(e); });
  }

  // Declares the block's first group and its first result along each axis.
  void place_block() {
    group0_ = "0";
    std::string rest = "blockIdx.x";
    if (slabs() > 1) {
      group0_ = writer_.unique("group0");
      const std::string left = writer_.unique("tile");
      writer_.line(fmt::format("const int {} = {} % {}u * {};", group0_, rest, slabs(), w_.groups_per_block));
      writer_.line(fmt::format("const unsigned {} = {} / {}u;", left, rest, slabs()));
      rest = left;
    }
    const std::vector<std::string> at = digits(rest, "jihk", [&](const ImplicitGemmAxis& a) { return tiles(a); });
    for (std::size_t a = 0; a < at.size(); ++a) {
      first_.push_back("0");
      if (at[a] == "0") continue;
      first_.back() = writer_.unique("first");
      writer_.line(fmt::format("const {} {} = {} * {};", integer(), first_.back(), at[a], w_.axes[a].results));
    }
  }

  // --- input positions of the windows

  // Threads that share a position, with the thread's position and first unit.
  struct Sides {
    std::int64_t count;
    std::string place, unit;
  };
  // Eight neighbouring threads copy one unit of neighbouring positions, the next eight the next unit. This gives whole
  // sectors and different banks. For an NCHW image, whole warps have neighbouring positions.
  Sides threads_per_positions() const {
    if (w_.image_is_nchw) {
      const std::int64_t sides = w_.threads_per_position(), together = w_.threads() / sides;
      if (sides == 1) return {1, "threadIdx.x", "0"};
      return {sides, fmt::format("threadIdx.x % {}", together), fmt::format("threadIdx.x / {}", together)};
    }
    const std::int64_t sides = w_.units_per_copy();
    if (sides == 1) return {1, "threadIdx.x", "0"};
    return {sides, fmt::format("threadIdx.x / {} * 8 + threadIdx.x % 8", 8 * sides),
            fmt::format("threadIdx.x / 8 % {}", sides)};
  }

  void copy_places() {
    const int threads = w_.threads();
    const Sides sides = threads_per_positions();
    // Positions copied at a time.
    const std::int64_t together = w_.image_is_nchw ? threads / sides.count : threads / (8 * sides.count) * 8;
    if (together * sides.count < threads) writer_.open(fmt::format("if (threadIdx.x < {})", together * sides.count));
    const std::string place = writer_.unique("place");
    writer_.open(
        fmt::format("for (unsigned {0} = {1}; {0} < {2}; {0} += {3})", place, sides.place, w_.positions(), together));
    const ExprEmitter::Mark mark = input_emitter_.mark();
    const std::vector<std::string> at =
        digits(place, "yxzw", [](const ImplicitGemmAxis& a) { return IndexExpr(a.positions()); });
    std::string there;
    const auto and_there = [&](const std::string& condition) { there += (there.empty() ? "" : " && ") + condition; };
    for (std::size_t a = 0; a < w_.axes.size(); ++a) bind_place(a, at[a], and_there);
    input_emitter_.bind(w_.group, "0");
    if (w_.channel) input_emitter_.bind(*w_.channel, "0");
    for (const ExprId guard : w_.guards) and_there("(" + input_emitter_.emit(guard) + ")");
    const std::string from = writer_.unique("from");
    const std::string& input = writer_.input(pool_[w_.image].source);
    std::string is;
    if (there.empty()) {
      writer_.line(fmt::format("const {}* const {} = {} + ({});", storage_type(pool_[w_.image].dtype), from, input,
                               channel_of_image()));
    } else {
      is = writer_.unique("there");
      writer_.line(fmt::format("const bool {} = {};", is, there));
      writer_.line(fmt::format("const {}* const {} = {} + ({} ? {} : 0);", storage_type(pool_[w_.image].dtype), from,
                               input, is, channel_of_image()));
    }
    const std::string unit = writer_.unique("unit");
    writer_.line("#pragma unroll");
    writer_.open(fmt::format("for (int {0} = {1}; {0} < {2}; {0} += {3})", unit, sides.unit,
                             w_.units() + (w_.has_empty_slots() ? 1 : 0), sides.count));
    if (w_.image_is_nchw)
      gather_unit(place, unit, from, is);
    else
      copy_unit(place, unit, from, is);
    writer_.close();
    input_emitter_.rewind(mark);
    writer_.close();
    if (together * sides.count < threads) writer_.close();
    writer_.line("commit_copies();");
  }

  // The condition that a unit belongs to the channels of an existing position; "": always.
  std::string unit_there(const std::string& unit, const std::string& is) const {
    if (!w_.has_empty_slots()) return is;
    return fmt::format("{}{}{} < {}", is, is.empty() ? "" : " && ", unit, w_.units());
  }

  void copy_unit(const std::string& place, const std::string& unit, const std::string& from, const std::string& is) {
    const std::string of_unit = fmt::format("{} * {}", unit, elements_of_unit()), condition = unit_there(unit, is);
    writer_.line(fmt::format("copy_16_bytes({} + {} * {} + {} * 16, {} + {}{});", image_, place, w_.pitch(), unit, from,
                             condition.empty() ? of_unit : fmt::format("({} ? {} : 0)", condition, of_unit),
                             condition.empty() ? "" : ", " + condition));
  }

  void gather_unit(const std::string& place, const std::string& unit, const std::string& from, const std::string& is) {
    writer_.use("gathered_unit");
    const std::int64_t channels = w_.groups_per_block * w_.channels;
    const std::string condition = unit_there(unit, is), stride = text(w_.channel_stride);
    const std::string count = channels % elements_of_unit() == 0
                                  ? std::to_string(elements_of_unit())
                                  : fmt::format("{} - {} * {}", channels, unit, elements_of_unit());
    const std::string gathered = fmt::format("gather_unit((const {}*){} + {} * {} * {}, ({}){}, {})", bits_type(), from,
                                             unit, elements_of_unit(), stride, integer(), stride, count);
    writer_.line(fmt::format(
        "*(uint4*)(dynamic_shared + {} * {} + {} * 16) = {};", place, w_.pitch(), unit,
        condition.empty() ? gathered : fmt::format("{} ? {} : make_uint4(0, 0, 0, 0)", condition, gathered)));
  }
  std::string bits_type() const {
    return w_.element_bytes() == 1 ? "unsigned char" : w_.element_bytes() == 2 ? "unsigned short" : "unsigned";
  }

  std::string channel_of_image() {
    const std::string position = input_emitter_.index(input_emitter_.position(w_.image));
    if (group0_ == "0") return position;
    const IndexExpr step = simplify(w_.channel_stride * w_.channels, pool_.bounds());
    return fmt::format("{} + {}", position, step.is(1) ? group0_ : fmt::format("{} * {}", group0_, text(step)));
  }

  // Binds a result and a tap that meet at an input position.
  template <class And>
  void bind_place(std::size_t number, const std::string& at, const And& and_there) {
    const ImplicitGemmAxis& a = w_.axes[number];
    if (!a.result) return input_emitter_.bind(*a.tap, at);
    std::string offset_in_phase = at, phase = "0";
    if (a.phases() > 1) {
      phase = writer_.unique("phase"), offset_in_phase = writer_.unique("later");
      writer_.line(fmt::format("const int {0} = (unsigned){1} / {2}u, {3} = (unsigned){1} % {2}u;", phase, at,
                               a.positions_per_phase(), offset_in_phase));
    }
    input_emitter_.bind(*a.result, sum_of(first_[number], offset_in_phase));
    if (a.tap) input_emitter_.bind(*a.tap, phase);
    // Positions beyond those of existing results may be outside. In later phases, the last tap may be one period
    // earlier.
    if ((whole(a) && (a.reach() == 0 || a.taps % a.phases() == 0)) || offset_in_phase == "0") return;
    const std::int64_t turn = a.dilation * a.phases() / a.stride;
    std::string last = text(simplify(count(a) + (a.phases() == 1 ? a.reach() : 0), pool_.bounds()));
    if (a.phases() > 1)
      last += fmt::format(" + ({} - {}) / {}{}", a.taps - 1, phase, a.phases(),
                          turn == 1 ? "" : fmt::format(" * {}", turn));
    and_there(fmt::format("{} < {}", sum_of(first_[number], offset_in_phase), last));
  }

  // --- slots along K

  std::int64_t slot_count() const { return w_.padded_steps() * w_.slots_per_step(); }

  struct Slot {
    std::string there;              // condition that the slot is used; "": always
    std::string piece;              // index among the tap's channels, in slots
    std::vector<std::string> taps;  // by axis
  };
  Slot take_slot(const std::string& slot) {
    Slot found;
    const std::int64_t of_line = w_.axes.back().taps * w_.slots_per_tap();
    const std::string line = writer_.unique("line"), in_line = writer_.unique("in_line");
    writer_.line(fmt::format("const int {0} = {1} / {2}, {3} = {1} % {2};", line, slot, w_.slots_per_line(), in_line));
    if (w_.slots_per_line() > of_line) found.there = fmt::format("{} < {}", in_line, of_line);
    if (slot_count() > w_.lines() * w_.slots_per_line())
      found.there += fmt::format("{}{} < {}", found.there.empty() ? "" : " && ", line, w_.lines());
    found.piece = w_.slots_per_tap() == 1 ? "0" : fmt::format("{} % {}", in_line, w_.slots_per_tap());
    found.taps.resize(w_.axes.size(), "0");
    std::string rest = line;
    for (std::size_t a = w_.axes.size(); a-- > 0;) {
      const std::int64_t taps = w_.axes[a].taps;
      if (taps == 1) continue;
      if (a + 1 == w_.axes.size()) {
        found.taps[a] = w_.slots_per_tap() == 1 ? in_line : fmt::format("({} / {})", in_line, w_.slots_per_tap());
        continue;
      }
      found.taps[a] = writer_.unique("tap");
      const std::string left = writer_.unique("rest");
      writer_.line(fmt::format("const int {0} = {1} % {2}, {3} = {1} / {2};", found.taps[a], rest, taps, left));
      rest = left;
    }
    return found;
  }

  // Emits the table of each slot's offset to a position's address; -1 for unused slots.
  void find_slots() {
    slots_ = writer_.unique("slots");
    writer_.line(fmt::format("__shared__ int {}[{}];", slots_, slot_count()));
    const std::string slot = writer_.unique("slot");
    const bool once = slot_count() <= w_.threads();
    writer_.open(
        once ? fmt::format("if (threadIdx.x < {})", slot_count())
             : fmt::format("for (int {0} = threadIdx.x; {0} < {1}; {0} += {2})", slot, slot_count(), w_.threads()));
    if (once) writer_.line(fmt::format("const int {} = threadIdx.x;", slot));
    const Slot found = take_slot(slot);
    std::string place;
    std::int64_t below = 1;
    for (std::size_t a = w_.axes.size(); a-- > 0; below *= w_.axes[a].positions()) {
      const ImplicitGemmAxis& axis = w_.axes[a];
      if (found.taps[a] == "0") continue;
      const std::int64_t phases = axis.phases(), turn = axis.dilation * phases / axis.stride;
      const std::string offset_in_phase = phases == 1 ? found.taps[a] : fmt::format("{} / {}", found.taps[a], phases);
      std::string here = turn == 1 ? offset_in_phase : fmt::format("{} * {}", offset_in_phase, turn);
      if (axis.reach() == 0) here = "";
      if (phases > 1)
        here = fmt::format("{} % {} * {}{}{}", found.taps[a], phases, axis.positions_per_phase(),
                           here.empty() ? "" : " + ", here);
      place += fmt::format("{}({}) * {}", place.empty() ? "" : " + ", here, below * w_.pitch());
    }
    if (found.piece != "0") place += fmt::format("{}{} * {}", place.empty() ? "" : " + ", found.piece, w_.slot_bytes());
    if (place.empty()) place = "0";
    writer_.line(fmt::format("{}[{}] = {};", slots_, slot,
                             found.there.empty() ? place : fmt::format("{} ? {} : -1", found.there, place)));
    writer_.close();
  }

  // Declares the warp's group and part of the results, and the lane's first line in shared memory.
  void place_lane() {
    group_ = "0", part_ = "0";
    const std::int64_t parts = w_.parts();
    if (w_.groups_per_block > 1) {
      group_ = parts == 1 ? "warp" : writer_.unique("group");
      if (parts > 1) writer_.line(fmt::format("const int {} = warp / {};", group_, parts));
    }
    if (parts > 1) {
      part_ = w_.groups_per_block == 1 ? "warp" : writer_.unique("part");
      if (w_.groups_per_block > 1) writer_.line(fmt::format("const int {} = warp % {};", part_, parts));
    }
    const std::string line = w_.slot_bytes() == 16 ? "warp_lane % 16" : "warp_lane / 4";
    const std::string result = writer_.unique("result");
    writer_.line(fmt::format("const unsigned {} = {}{};", result,
                             part_ == "0" ? "" : fmt::format("{} * {} + ", part_, 16 * w_.m16_tiles), line));
    const std::vector<std::string> at =
        digits(result, "jihk", [](const ImplicitGemmAxis& a) { return IndexExpr(a.results); });
    std::string place;
    std::int64_t below = 1;
    for (std::size_t a = at.size(); a-- > 0; below *= w_.axes[a].positions())
      if (at[a] != "0")
        place +=
            fmt::format("{}{}{}", place.empty() ? "" : " + ", at[a], below == 1 ? "" : fmt::format(" * {}", below));
    lane_at_ = writer_.unique("lane_at");
    writer_.line(
        fmt::format("const unsigned {} = {} + ({}) * {}{};", lane_at_, image_, place, w_.pitch(), group_at(" + ")));
    if (!w_.has_empty_slots()) return;
    empty_ = writer_.unique("empty");
    // The zeros for unused slots are in other banks than the channels read at the same time.
    const std::string other_half = w_.slot_bytes() == 8 && w_.group_bytes() % 16 == 8 && group_ != "0"
                                       ? fmt::format("8 - {} % 2 * 8", group_)
                                   : w_.slot_bytes() == 8 ? "8"
                                                          : "0";
    writer_.line(fmt::format("const int {} = {} + {}{};", empty_, 16 * w_.units(), other_half, group_at(" - ")));
  }
  std::string group_at(const std::string& sign) const {
    return group_ == "0" ? "" : fmt::format("{}{} * {}", sign, group_, w_.group_bytes());
  }

  // --- MMAs

  void multiply() {
    const std::int64_t together = w_.steps_in_registers(), steps = w_.padded_steps();
    weights_ = writer_.unique("weights"), accumulator_ = writer_.unique("sum");
    writer_.line(fmt::format("{} {}[{}][{}][4] = {{}};", accumulator_type(), accumulator_, w_.m16_tiles, w_.columns()));
    const bool iterations = together < steps;
    std::string first = "0";
    if (iterations) {
      first = writer_.unique("first_step");
      writer_.line("#pragma unroll 1");
      writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; {0} += {2})", first, steps, together));
    }
    load_weights(first, together);
    if (iterations) writer_.open(fmt::format("if ({} == 0)", first));
    writer_.line("wait_for_groups<0>();");
    writer_.line("__syncthreads();");
    if (iterations) writer_.close();
    multiply_steps(first, together);
    if (iterations) writer_.close();
  }

  // MMA operands: of eight columns and 32 bytes of K, a lane has two words of one column.
  void load_weights(const std::string& first, std::int64_t together) {
    writer_.line(fmt::format("unsigned {}[{}][{}][2];", weights_, together, w_.columns()));
    const std::string s = writer_.unique("s"), half = writer_.unique("half"), n = writer_.unique("n");
    writer_.open_unrolled(s, together);
    writer_.line("#pragma unroll");
    writer_.open(fmt::format("for (int {0} = 0; {0} < 2; ++{0})", half));
    const ExprEmitter::Mark mark = input_emitter_.mark();
    const std::string step = first == "0" ? s : fmt::format("({} + {})", first, s), slot = writer_.unique("slot");
    const std::int64_t bytes = w_.element_bytes();
    writer_.line(fmt::format("const int {} = {};", slot,
                             w_.slot_bytes() == 16  ? fmt::format("{} * 2 + {}", step, half)
                             : w_.slot_bytes() == 8 ? fmt::format("{} * 4 + warp_lane % 4", step)
                                                    : fmt::format("{} * 8 + {} * 4 + warp_lane % 4", step, half)));
    Slot found = take_slot(slot);
    for (std::size_t a = 0; a < w_.axes.size(); ++a)
      if (w_.axes[a].tap) input_emitter_.bind(*w_.axes[a].tap, found.taps[a]);
    const std::string in_slot = w_.slot_bytes() == 16  ? fmt::format("warp_lane % 4 * {}", 4 / bytes)
                                : w_.slot_bytes() == 8 ? fmt::format("{} * {}", half, 4 / bytes)
                                                       : "0";
    const std::string channel = writer_.unique("channel");
    writer_.line(fmt::format("const int {} = {} * {} + {};", channel, found.piece, w_.slot_bytes() / bytes, in_slot));
    input_emitter_.bind(w_.group, sum_of(group0_, group_));
    writer_.open_unrolled(n, w_.columns());
    input_emitter_.bind(w_.member, fmt::format("({} * 8 + warp_lane / 4)", n));
    if (w_.members % 8 != 0)
      found.there += fmt::format("{}{} * 8 + warp_lane / 4 < {}", found.there.empty() ? "" : " && ", n, w_.members);
    const std::string word = fmt::format("{}[{}][{}][{}]", weights_, s, n, half);
    const std::string& input = writer_.input(pool_[w_.weights].source);
    if (w_.weights_in_words) {
      if (w_.channel) input_emitter_.bind(*w_.channel, channel);
      const std::string loaded = fmt::format("*(const unsigned*)({} + ({}))", input,
                                             input_emitter_.index(input_emitter_.position(w_.weights)));
      writer_.line(fmt::format("{} = {};", word,
                               found.there.empty() ? loaded : fmt::format("{} ? {} : 0", found.there, loaded)));
    } else {
      writer_.line(fmt::format("{} = 0;", word));
      const std::string e = writer_.unique("e");
      if (!found.there.empty()) writer_.open(fmt::format("if ({})", found.there));
      writer_.open_unrolled(e, 4 / bytes);
      if (w_.channel) input_emitter_.bind(*w_.channel, fmt::format("({} + {})", channel, e));
      writer_.line(fmt::format("{} |= (unsigned)((const unsigned {}*){})[{}] << ({} * {});", word,
                               bytes == 2 ? "short" : "char", input,
                               input_emitter_.index(input_emitter_.position(w_.weights)), 8 * bytes, e));
      writer_.close();
      if (!found.there.empty()) writer_.close();
    }
    writer_.close();
    input_emitter_.rewind(mark);
    writer_.close();
    writer_.close();
  }

  void multiply_steps(const std::string& first, std::int64_t together) {
    const std::string s = writer_.unique("s"), lines = writer_.unique("lines");
    writer_.open_unrolled(s, together);
    writer_.line(fmt::format("unsigned {}[{}][4];", lines, w_.m16_tiles));
    const std::string step = first == "0" ? s : fmt::format("({} + {})", first, s);
    const std::int64_t tile_stride = w_.m16_tile_stride * w_.pitch(), half = w_.half_tile_stride * w_.pitch();
    switch (w_.slot_bytes()) {
      case 16:
        writer_.use("load_pieces");
        writer_.line(
            fmt::format("load_pieces<{}>({}, {});", tile_stride, lines, line_at(step + " * 2 + warp_lane / 16")));
        break;
      case 8:
        writer_.use("load_slots");
        writer_.line(fmt::format("load_slots<{}, {}>({}, {});", tile_stride, half, lines,
                                 line_at(step + " * 4 + warp_lane % 4")));
        break;
      default:
        writer_.use("load_slots");
        writer_.line(fmt::format("load_slots<{}, {}>({}, {}, {});", tile_stride, half, lines,
                                 line_at(step + " * 8 + warp_lane % 4"), line_at(step + " * 8 + 4 + warp_lane % 4")));
    }
    if (w_.dtype == DType::kFloat32) {
      writer_.use("tf32_fragments");
      writer_.line(fmt::format("round_to_tf32({});", lines));
    }
    const std::string mma = mma_name(w_.dtype, pool_[w_.image].dtype, pool_[w_.weights].dtype);
    writer_.use(mma);
    const std::string i = writer_.unique("i"), n = writer_.unique("n");
    writer_.line("#pragma unroll");
    writer_.line(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", i, w_.m16_tiles));
    writer_.line("#pragma unroll");
    writer_.line(fmt::format("  for (int {0} = 0; {0} < {1}; ++{0}) {2}({3}[{4}][{0}], {5}[{4}], {6}[{7}][{0}]);", n,
                             w_.columns(), mma, accumulator_, i, lines, weights_, s));
    writer_.close();
  }

  std::string line_at(const std::string& slot) {
    const std::string at = fmt::format("{}[{}]", slots_, slot);
    if (!w_.has_empty_slots()) return fmt::format("{} + {}", lane_at_, at);
    return fmt::format("{} + ({} < 0 ? {} : {})", lane_at_, at, empty_, at);
  }

  const Kernel& original_;
  const GroupedImplicitGemm& w_;
  const ExprPool& pool_;
  const Graph& graph_;
  KernelWriter writer_;
  ExprEmitter input_emitter_, results_;  // for copies and MMAs; for the epilogue over eights of channels
  std::string image_, group0_, slots_, group_, part_, lane_at_, empty_, weights_, accumulator_;
  std::vector<std::string> first_;  // by axis: the block's first result
};

}  // namespace

KernelSource emit_grouped_implicit_gemm(const Kernel& kernel, const GroupedImplicitGemm& form, const Graph& graph) {
  return GroupedImplicitGemmEmitter(kernel, form, graph).emit();
}

}  // namespace fusec
