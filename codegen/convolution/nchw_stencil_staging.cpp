#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "analysis/kernel/loads.h"
#include "codegen/access/direct.h"
#include "codegen/access/vector_access.h"
#include "codegen/convolution/nchw_stencil_emitter.h"
#include "ir/type.h"

namespace fusec {

void NchwStencilEmitter::bind_point(ExprEmitter& emitter, const std::string& point) {
  std::string at = sum_of_terms({from_.empty() ? "0" : from_, point});
  if (at.find(' ') != std::string::npos) {
    const std::string name = writer_.unique("k");
    writer_.line(fmt::format("const int {} = {};", name, at));
    at = name;
  }
  bind_flat(emitter, w_.rolled_axes, at, "cdefgh");
}

void NchwStencilEmitter::stage_weights() {
  if (w_.weights.empty()) return;
  const std::string e = writer_.unique("e");
  const std::int64_t of_plane = t_.points_per_stage * w_.taps() * w_.members();
  const bool once = t_.planes == 1 && of_plane <= t_.threads();
  if (once) writer_.line(fmt::format("const int {} = threadIdx.x;", e));
  writer_.open(
      once ? fmt::format("if ({} < {})", e, of_plane)
           : fmt::format("for (int {0} = threadIdx.x; {0} < {1}; {0} += {2})", e, t_.planes * of_plane, t_.threads()));
  const ExprEmitter::Mark mark = input_emitter_.mark();
  std::string rest = e;
  const auto take = [&](std::int64_t count, const std::string& preferred_name) -> std::string {
    if (count == 1) return "0";
    const std::string name = writer_.unique(preferred_name), left = writer_.unique("rest");
    writer_.line(fmt::format("const int {0} = {1} % {2}, {3} = {1} / {2};", name, rest, count, left));
    rest = left;
    return name;
  };
  if (w_.member) input_emitter_.bind(*w_.member, take(w_.members(), "m"));
  input_emitter_.bind(w_.columns.tap, take(w_.columns.taps, "v"));
  if (w_.rows) input_emitter_.bind(w_.rows->tap, take(w_.rows->taps, "u"));
  bind_point(input_emitter_, take(t_.points_per_stage, "point"));
  const std::string plane = writer_.unique("here");
  writer_.line(
      fmt::format("const {} {} = {};", integer(), plane, sum_of_terms({plane0_, t_.planes == 1 ? "0" : rest})));
  if (t_.planes > 1 && !whole(plane_count_, t_.planes))
    writer_.line(fmt::format("if ({} >= {}) break;", plane, text(plane_count_)));
  bind_flat(input_emitter_, w_.planes, plane, "nopq");
  const std::vector<std::string> values = input_emitter_.emit(w_.weights);
  for (std::size_t i = 0; i < values.size(); ++i)
    writer_.line(fmt::format("{}[{}] = {};", tiles_.at(w_.weights[i]),
                             t_.planes == 1 || w_.weights_per_plane() == of_plane
                                 ? e
                                 : sum_of_terms({e, times(w_.weights_per_plane() - of_plane, rest)}),
                             values[i]));
  input_emitter_.rewind(mark);
  writer_.close();
}

void NchwStencilEmitter::stage_places() {
  const auto copies = static_cast<int>(std::min<std::int64_t>(w_.copies(), t_.threads()));
  const int lines = std::max(1, std::min(static_cast<int>(w_.block_height()), t_.threads() / copies));
  const int planes = std::max(1, std::min(t_.planes, t_.threads() / (copies * lines)));
  const std::string columns_here =
      places_here(w_.columns, width(), t_.block_columns(), w_.block_width(), column0_, "columns_here");
  const std::string rows_here =
      w_.rows ? places_here(*w_.rows, height(), t_.block_rows(), w_.block_height(), row0_, "rows_here") : "1";
  const std::string copy = writer_.unique("copy"), line = writer_.unique("line");
  writer_.line(fmt::format("const int {0} = threadIdx.x % {1}, {2} = threadIdx.x / {1}{3};", copy, copies, line,
                           planes == 1 ? "" : fmt::format(" % {}", lines)));
  const int more = w_.before + w_.copy_width - 1;
  const std::string end =
      w_.copy_width == 1 ? columns_here : fmt::format("({} + {}) / {}", columns_here, more, w_.copy_width);
  const std::string busy =
      planes * lines * copies == t_.threads() ? "" : fmt::format("threadIdx.x < {} && ", planes * lines * copies);
  writer_.open(fmt::format("if ({}{} < {})", busy, copy, end));
  const ExprEmitter::Mark mark = input_emitter_.mark();
  if (copies == w_.copies()) begin_copy(copy);
  std::string p = "0";
  if (t_.planes > 1) {
    p = writer_.unique("p");
    writer_.open(fmt::format("for (int {0} = {1}; {0} < {2}; {0} += {3})", p,
                             planes == 1 ? "0" : fmt::format("threadIdx.x / {}", copies * lines), t_.planes, planes));
  }
  const std::string plane = writer_.unique("here");
  writer_.line(fmt::format("const {} {} = {};", integer(), plane, sum_of_terms({plane0_, p})));
  if (t_.planes > 1 && !whole(plane_count_, t_.planes))
    writer_.line(fmt::format("if ({} >= {}) break;", plane, text(plane_count_)));
  bind_flat(input_emitter_, w_.planes, plane, "nopq");
  const std::string point = open_each("point", t_.points_per_stage, "");
  bind_point(input_emitter_, point);
  const std::string r = writer_.unique("r");
  writer_.open(fmt::format("for (int {0} = {1}; {0} < {2}; {0} += {3})", r, line, rows_here, lines));
  if (w_.rows) bind_place(*w_.rows, row0_, r);
  std::string c = copy;
  if (copies < w_.copies()) {
    c = writer_.unique("c");
    writer_.open(fmt::format("for (int {0} = {1}; {0} < {2}; {0} += {3})", c, copy, end, copies));
    begin_copy(c);
  }
  const std::string at =
      sum_of_terms({times(t_.plane, in_parentheses(sum_of_terms({times(t_.points_per_stage, p), point}))),
                    times(t_.line, r), times(w_.copy_width, c)});
  w_.copy_width == 1 ? copy_one(c, at) : copy_vector(at);
  if (copies < w_.copies()) writer_.close();
  writer_.close();
  close_each();
  if (t_.planes > 1) writer_.close();
  writer_.close();
  input_emitter_.rewind(mark);
}

void NchwStencilEmitter::begin_copy(const std::string& c) {
  first_ = c;
  if (w_.copy_width > 1) {
    first_ = writer_.unique("first");
    writer_.line(fmt::format("const int {} = {}{};", first_, times(w_.copy_width, c),
                             w_.before > 0 ? " - " + std::to_string(w_.before) : ""));
  }
  bind_place(w_.columns, column0_, first_);
  std::vector<ExprId> guards;
  for (const ExprId id : reachable(pool_, w_.staged))
    if (pool_[id].type == ScalarType::kBool && is_of_indices(pool_, id)) guards.push_back(id);
  input_emitter_.emit_independent(guards);
}

std::string NchwStencilEmitter::places_here(const StencilAxis& window, const IndexExpr& extent, std::int64_t of_block,
                                            std::int64_t most, const std::string& first,
                                            const std::string& preferred_name) {
  if (whole(extent, of_block)) return std::to_string(most);
  const std::string name = writer_.unique(preferred_name);
  const IndexExpr results = simplify(extent - 1, pool_.bounds());
  const std::string further =
      times(window.stride, fmt::format("(int)({}{})", text(results), first == "0" ? "" : " - " + first));
  writer_.line(
      fmt::format("const int {} = min({}, {} + {});", name, most, further, (window.taps - 1) * window.dilation + 1));
  return name;
}

void NchwStencilEmitter::bind_place(const StencilAxis& window, const std::string& first, const std::string& place) {
  const bool results_move = window.stride == 1;
  input_emitter_.bind(window.result, !results_move  ? first
                                     : first == "0" ? place
                                                    : fmt::format("({} + {})", first, place));
  input_emitter_.bind(window.tap, results_move ? "0" : place);
}

void NchwStencilEmitter::copy_one(const std::string& c, const std::string& at) {
  const ExprEmitter::Mark mark = input_emitter_.mark();
  bind_place(w_.columns, column0_, c);
  const std::vector<std::string> values = input_emitter_.emit(w_.staged);
  for (std::size_t i = 0; i < values.size(); ++i)
    writer_.line(fmt::format("{}[{}] = {};", tiles_.at(w_.staged[i]), at, values[i]));
  input_emitter_.rewind(mark);
}

void NchwStencilEmitter::copy_vector(const std::string& at) {
  const ExprId staged = w_.staged[0];
  const ExprEmitter::Mark mark = input_emitter_.mark();
  std::map<ExprId, std::string> words, guards;
  for (const ExprId id : reachable(pool_, std::span(&staged, 1))) {
    const ExprNode& n = pool_[id];
    if ((n.op == ExprOp::kSelect || n.op == ExprOp::kLoad) && n.args[0] != kNoExpr && !guards.contains(n.args[0]) &&
        is_of_indices(pool_, n.args[0])) {
      const std::string holds = input_emitter_.emit(n.args[0]);
      guards[n.args[0]] = writer_.unique("inside");
      writer_.line(fmt::format("const bool {} = {};", guards[n.args[0]], holds));
    }
    if (n.op == ExprOp::kLoad && moves(id)) words[id] = load_words(id, guards);
  }
  input_emitter_.rewind(mark);
  const std::string type = c_type(pool_[staged].type), four = writer_.unique("four"), e = writer_.unique("e");
  writer_.line(fmt::format("__align__({}) {} {}[{}];", 4 * w_.copy_width, type, four, w_.copy_width));
  writer_.line("#pragma unroll");
  writer_.open(for_each(e, w_.copy_width));
  bind_place(w_.columns, column0_, fmt::format("({} + {})", first_, e));
  for (const auto& [guard, holds] : guards) input_emitter_.define(guard, holds);
  // Masked elements are a vector of zeros.
  for (const auto& [id, name] : words)
    for (const ExprId selected : guarded_by_zeros(staged, id))
      input_emitter_.define(selected, element_text(pool_[id].dtype, name, e, writer_));
  input_emitter_.load_text = [&](ExprId id) {
    const auto known = words.find(id);
    return known == words.end() ? "" : element_text(pool_[id].dtype, known->second, e, writer_);
  };
  writer_.line(fmt::format("{}[{}] = {};", four, e, input_emitter_.emit(staged)));
  input_emitter_.load_text = nullptr;
  input_emitter_.rewind(mark);
  writer_.close();
  const std::string vector =
      (pool_[staged].type == ScalarType::kInt32 ? "int" : "float") + std::to_string(w_.copy_width);
  writer_.line(fmt::format("*({0}*)&{1}[{2}] = *(const {0}*){3};", vector, tiles_.at(staged), at, four));
}

std::vector<ExprId> NchwStencilEmitter::guarded_by_zeros(ExprId staged, ExprId load) const {
  std::vector<ExprId> found;
  for (const ExprId id : reachable(pool_, std::span(&staged, 1))) {
    const ExprNode& n = pool_[id];
    if (n.op != ExprOp::kSelect || n.args[1] != load || n.args[0] != pool_[load].args[0]) continue;
    const ExprNode& otherwise = pool_[n.args[2]];
    if (otherwise.op == ExprOp::kConstant && otherwise.real == 0 && otherwise.integer == 0) found.push_back(id);
  }
  return found;
}

bool NchwStencilEmitter::moves(ExprId load) const {
  const IndexExpr position = input_emitter_.position(load);
  return mentions(position, {Variable::Kind::kAxis, w_.columns.result}) ||
         mentions(position, {Variable::Kind::kAxis, w_.columns.tap});
}

std::string NchwStencilEmitter::load_words(ExprId id, const std::map<ExprId, std::string>& guards) {
  const ExprNode& n = pool_[id];
  const int loaded = bits(n.dtype) * w_.copy_width, count = std::max(1, loaded / 32);
  if (loaded < 32) writer_.use("part_of_word");
  const std::string from =
      fmt::format("{} + ({})", writer_.input(n.source), input_emitter_.index(input_emitter_.position(id)));
  std::string value =
      loaded < 32 ? fmt::format("load_part<{}>({})", loaded, from) : fmt::format("load_words<{}>({})", count, from);
  if (n.args[0] != kNoExpr) value = fmt::format("{} ? {} : Words<{}>{{}}", guards.at(n.args[0]), value, count);
  const std::string name = writer_.unique(writer_.preferred_name(n.source) + "_w");
  writer_.line(fmt::format("const Words<{}> {} = {};", count, name, value));
  return name;
}

}  // namespace fusec
