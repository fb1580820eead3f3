#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "analysis/loads.h"
#include "codegen/emit_expr.h"
#include "codegen/schedules/direct.h"
#include "codegen/schedules/runs.h"
#include "codegen/schedules/vector_access.h"
#include "ir/type.h"

namespace fusec {
namespace {

class RunsEmitter {
 public:
  RunsEmitter(const Kernel& kernel, const Graph& graph, const Target& target, const RunPlan& plan)
      : kernel_(kernel),
        graph_(graph),
        target_(target),
        plan_(plan),
        axes_(kernel.outputs[0].axes),
        dtype_(kernel.outputs[0].type.dtype),
        total_(point_count(kernel.pool, axes_)),
        groups_(simplify(ceil_div(total_, plan.width), kernel.pool.bounds())),
        writer_(graph, false),
        emitter_(kernel, writer_) {}

  KernelSource emit() {
    writer_.use("runs");
    writer_.use(dtype_);
    const int each = plan_.threads * plan_.turns;
    first_ = writer_.unique("first");
    writer_.line(fmt::format("const int {} = blockIdx.x * {} + threadIdx.x;", first_, each));
    find_runs();
    copy_tensors();
    list_others();
    make_others();
    store();
    KernelSource source = writer_.finish(kernel_comment(graph_, kernel_), plan_.threads, 1);
    source.grid[0] = simplify(ceil_div(groups_, each), kernel_.pool.bounds());
    source.dynamic_shared = plan_.shared_bytes();
    return source;
  }

 private:
  // What the text calls a tensor's part in shared memory.
  struct Names {
    std::string low, high, stretch;
  };
  // Of what the value at a point is one: 0 is none, then come tensors, constants, and the zero of loads that are not
  // made; and where it lies.
  struct Place {
    std::string of, at;
  };

  std::string text(const IndexExpr& e) const { return emitter_.index_text().tight(e); }
  int of_constant(std::size_t i) const { return static_cast<int>(plan_.tensors.size() + i) + 1; }
  int of_zero() const { return of_constant(plan_.constants.size()); }

  bool whole() const { return proves_multiple_of(total_, plan_.width, kernel_.pool.bounds()); }

  std::string open_turns() {
    turn_ = writer_.unique("turn");
    writer_.line("#pragma unroll");
    writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", turn_, plan_.turns));
    return fmt::format("{} + {} * {}", first_, turn_, plan_.threads);
  }

  std::string declared(const std::string& name, const std::string& value, const char* type = "int") {
    const std::string known = writer_.unique(name);
    writer_.line(fmt::format("const {} {} = {};", type, known, value));
    return known;
  }

  // Of all of this thread's groups what they are runs of.
  void find_runs() {
    for (const RunPlan::Tensor& tensor : plan_.tensors) {
      const std::string name = writer_.wish(tensor.source);
      names_.push_back({writer_.unique(name + "_low"), writer_.unique(name + "_high"), ""});
      writer_.line(fmt::format("unsigned {} = ~0u;", names_.back().low));
      writer_.line(fmt::format("int {} = -1;", names_.back().high));
    }
    of_ = writer_.unique("run_of"), at_ = writer_.unique("run_at");
    writer_.line(fmt::format("int {}[{}], {}[{}];", of_, plan_.turns, at_, plan_.turns));
    const ExprEmitter::Mark mark = emitter_.mark();
    const std::string group = open_turns();
    const std::string t =
        declared("t", fmt::format("min({}, {}) * {}", group,
                                  emitter_.index(simplify(groups_ - 1, kernel_.pool.bounds())), plan_.width));
    bind_flat(emitter_, axes_, t);
    const std::string begin = declared("begin", emitter_.index(IndexExpr::axis(axes_.back())));
    const std::string end = declared("end", fmt::format("{} + {}", begin, plan_.width - 1));
    const ExprEmitter::Mark row = emitter_.mark();
    emitter_.bind(axes_.back(), begin);
    const std::vector<std::string> before = breaks();
    const Place low = place(kernel_.outputs[0].expr, 0);
    const std::string of = declared("of", low.of), at = declared("at", low.at);
    emitter_.rewind(row);
    emitter_.bind(axes_.back(), end);
    const std::vector<std::string> behind = breaks();
    const std::string at_end = declared("at_end", place(kernel_.outputs[0].expr, plan_.width - 1).at);
    std::string is_run = fmt::format("{} < {} && {} - {} == {}", end, text(kernel_.pool.extent(axes_.back())), at_end,
                                     at, plan_.width - 1);
    for (std::size_t i = 0; i < before.size(); ++i) is_run += fmt::format(" && {} == {}", before[i], behind[i]);
    writer_.line(fmt::format("{}[{}] = {} ? {} : 0;", of_, turn_, is_run, of));
    writer_.line(fmt::format("{}[{}] = {};", at_, turn_, at));
    for (std::size_t i = 0; i < names_.size(); ++i)
      for (const std::string& one : {at, at_end})
        writer_.line(fmt::format("widen_stretch({}, {}, {}[{}] == {} ? {} : -1);", names_[i].low, names_[i].high, of_,
                                 turn_, i + 1, one));
    emitter_.rewind(mark);
    writer_.close();
  }

  // What has one value along a run, each as a variable.
  std::vector<std::string> breaks() {
    std::vector<std::string> names;
    for (const ExprId condition : plan_.breaks.conditions)
      names.push_back(declared("holds", emitter_.emit(condition), "bool"));
    for (const IndexExpr& quotient : plan_.breaks.quotients)
      names.push_back(declared("part", emitter_.index(quotient)));
    for (const auto& [a, b] : plan_.breaks.compared)
      names.push_back(declared("less", fmt::format("{} < {}", text(a), text(b)), "bool"));
    return names;
  }

  // Constants are as far behind their beginning as the element is behind the run's.
  Place place(ExprId value, int behind, ExprId holds = kNoExpr) {
    const ExprNode& n = kernel_.pool[value];
    const auto chosen = [](const std::string& condition, const Place& a, const Place& b) {
      return Place{fmt::format("({} ? {} : {})", condition, a.of, b.of),
                   fmt::format("({} ? {} : {})", condition, a.at, b.at)};
    };
    if (n.op == ExprOp::kSelect) {
      const std::string condition = "(" + emitter_.emit(n.args[0]) + ")";
      return chosen(condition, place(n.args[1], behind, n.args[0]), place(n.args[2], behind));
    }
    if (n.op == ExprOp::kConstant) {
      const auto at = std::ranges::find(plan_.constants, value) - plan_.constants.begin();
      return {std::to_string(of_constant(static_cast<std::size_t>(at))), std::to_string(behind)};
    }
    const auto of = std::ranges::find(plan_.tensors, n.source, &RunPlan::Tensor::source) - plan_.tensors.begin();
    const Place loaded{std::to_string(of + 1), "(" + emitter_.index(emitter_.position(value)) + ")"};
    if (n.args[0] == kNoExpr || n.args[0] == holds) return loaded;
    return chosen("(" + emitter_.emit(n.args[0]) + ")", loaded, {std::to_string(of_zero()), std::to_string(behind)});
  }

  void copy_tensors() {
    const int warps = plan_.threads / 32;
    const auto ends = [&](std::size_t i) {
      return fmt::format("(int*)(dynamic_shared + {})",
                         plan_.ends_start + plan_.ends_bytes() * static_cast<std::int64_t>(i));
    };
    for (std::size_t i = 0; i < names_.size(); ++i)
      writer_.line(fmt::format("put_ends_of_stretch<{}>({}, {}, {});", warps, ends(i), names_[i].low, names_[i].high));
    writer_.line("__syncthreads();");
    for (std::size_t i = 0; i < names_.size(); ++i) {
      const RunPlan::Tensor& tensor = plan_.tensors[i];
      names_[i].stretch = writer_.unique(writer_.wish(tensor.source) + "_stretch");
      writer_.line(fmt::format("const Stretch {} = stretch_between<{}, {}, {}>({});", names_[i].stretch, bits(dtype_),
                               warps, tensor.most, ends(i)));
      const IndexExpr count = element_count(writer_.tensor_type(tensor.source).shape).value_or(0);
      const bool whole = proves_multiple_of(count, plan_.width, kernel_.pool.bounds());
      const bool streams = std::ranges::all_of(
          tensor.loads, [&](ExprId load) { return streams_past_caches(emitter_, graph_, load, target_.l2_bytes); });
      writer_.line(fmt::format("copy_stretch<{}, {}, {}, false, {}, {}>(dynamic_shared + {}, {}, {}, {});",
                               bits(dtype_), plan_.threads, tensor.most, whole ? "Inside::kSure" : "Inside::kUnknown",
                               streams, tensor.start, writer_.input(tensor.source), emitter_.index(count),
                               names_[i].stretch));
    }
    writer_.line("__syncthreads();");
  }

  // Groups that are no runs, or runs of what is not in shared memory.
  void list_others() {
    others_ = writer_.unique("other"), list_ = writer_.unique("list"), count_ = writer_.unique("count");
    writer_.line(fmt::format("int {}[{}];", others_, plan_.turns));
    const std::string group = open_turns();
    std::string is_run = fmt::format("{}[{}] != 0", of_, turn_);
    for (std::size_t i = 0; i < names_.size(); ++i)
      is_run += fmt::format(" && !({}[{}] == {} && {}.vectors == 0)", of_, turn_, i + 1, names_[i].stretch);
    writer_.line(
        fmt::format("{0}[{1}] = {2} < {3} && !({4}) ? {2} : -1;", others_, turn_, group, text(groups_), is_run));
    writer_.close();
    writer_.line(fmt::format("int* const {} = (int*)(dynamic_shared + {}) + threadIdx.x / 32 * {};", list_,
                             plan_.list_start, plan_.runs_of_warp()));
    writer_.line(fmt::format("const int {} = list_of_warp({}, {});", count_, list_, others_));
  }

  // These, an element by each thread of the warp at a time.
  void make_others() {
    const std::string made = writer_.unique("made"), e = writer_.unique("e");
    writer_.line(fmt::format("{0}* const {1} = ({0}*)(dynamic_shared + {2}) + threadIdx.x / 32 * {3};",
                             storage_type(dtype_), made, plan_.made_start, plan_.runs_of_warp() * plan_.width));
    writer_.line("#pragma unroll 1");
    writer_.open(fmt::format("for (int {0} = threadIdx.x & 31; {0} < {1} * {2}; {0} += 32)", e, count_, plan_.width));
    const ExprEmitter::Mark mark = emitter_.mark();
    const std::string t = declared("t", fmt::format("{0}[{1} / {2}] * {2} + {1} % {2}", list_, e, plan_.width));
    if (!whole()) writer_.line(fmt::format("if ({} >= {}) break;", t, text(total_)));
    bind_flat(emitter_, axes_, t);
    emitter_.load_text = [&](ExprId load) { return element_text(load); };
    const std::string value = emitter_.emit(kernel_.outputs[0].expr);
    emitter_.load_text = nullptr;
    writer_.line(fmt::format("{}[{}] = {};", made, e, narrow(dtype_, value)));
    emitter_.rewind(mark);
    writer_.close();
    writer_.line("__syncwarp();");
  }

  // From shared memory where it is there.
  std::string element_text(ExprId load) {
    const ExprNode& n = kernel_.pool[load];
    const auto i = static_cast<std::size_t>(std::ranges::find(plan_.tensors, n.source, &RunPlan::Tensor::source) -
                                            plan_.tensors.begin());
    const std::string guard = n.args[0] == kNoExpr ? "" : emitter_.emit(n.args[0]);
    const std::string at = declared("at", emitter_.index(emitter_.position(load)));
    const std::string near = declared("near", fmt::format("{} - {}.first * {}", at, names_[i].stretch, plan_.width));
    const std::string element = fmt::format(
        "((unsigned){0} < (unsigned)({1}.vectors * {2}) ? ((const {3}*)(dynamic_shared + {4}))[{0}] : "
        "{5}[{6}])",
        near, names_[i].stretch, plan_.width, storage_type(dtype_), plan_.tensors[i].start, writer_.input(n.source),
        at);
    if (guard.empty()) return widen(dtype_, element);
    return fmt::format("(({}) ? {} : {})", guard, widen(dtype_, element), zero_text(n.type));
  }

  void store() {
    const std::string group = open_turns();
    writer_.open(fmt::format("if ({} < {})", group, text(groups_)));
    const std::string of = fmt::format("{}[{}]", of_, turn_), at = fmt::format("{}[{}]", at_, turn_);
    const std::string other = fmt::format("{}[{}]", others_, turn_);
    std::string from = fmt::format("{} + ({} - {}.first * {}) * {}", plan_.tensors[0].start, at, names_[0].stretch,
                                   plan_.width, bits(dtype_) / 8);
    for (std::size_t i = 1; i < names_.size(); ++i)
      from = fmt::format("{} == {} ? {} + ({} - {}.first * {}) * {} : {}", of, i + 1, plan_.tensors[i].start, at,
                         names_[i].stretch, plan_.width, bits(dtype_) / 8, from);
    const std::string words = writer_.unique("words");
    writer_.line(fmt::format("Words<4> {} = {{}};", words));
    writer_.open(fmt::format("if ({} >= 0)", other));
    writer_.line(fmt::format("{} = load_words<4>(dynamic_shared + {} + (threadIdx.x / 32 * {} + {}) * 16);", words,
                             plan_.made_start, plan_.runs_of_warp(), other));
    writer_.close(fmt::format("}} else if ({} <= {}) {{", of, plan_.tensors.size()));
    writer_.reopen();
    writer_.line(fmt::format("{} = run_at({});", words, from));
    writer_.close();
    const ExprEmitter::Mark mark = emitter_.mark();
    for (std::size_t i = 0; i < plan_.constants.size(); ++i) {
      writer_.open(fmt::format("if ({} == {})", of, of_constant(i)));
      const std::string value = emitter_.emit(plan_.constants[i]), e = writer_.unique("e");
      writer_.line("#pragma unroll");
      writer_.line(fmt::format("for (int {0} = 0; {0} < {1}; ++{0}) {2}", e, plan_.width,
                               put_text(dtype_, words, e, value, writer_)));
      writer_.close();
    }
    emitter_.rewind(mark);
    const std::string output = writer_.output(kernel_.outputs[0].value);
    const bool stream = bytes_at_hint(kernel_.outputs[0].type, graph_.symbols) >= target_.l2_bytes;
    if (stream) writer_.use("stream_words");
    const std::string stored = fmt::format("{}({} + ({}) * {}, {});", stream ? "stream_words_out" : "store_words",
                                           output, group, plan_.width, words);
    if (whole()) {
      writer_.line(stored);
    } else {
      writer_.open(fmt::format("if ((({}) + 1) * {} <= {})", group, plan_.width, text(total_)));
      writer_.line(stored);
      writer_.close("} else {");
      writer_.reopen();
      const std::string e = writer_.unique("e");
      writer_.line(
          fmt::format("for (int {0} = 0; ({1}) * {2} + {0} < {3}; ++{0})", e, group, plan_.width, text(total_)));
      writer_.line(fmt::format(
          "  {}[({}) * {} + {}] = (({}*)(dynamic_shared + {}))[(threadIdx.x / 32 * {} + {}) * {} + {}];", output, group,
          plan_.width, e, storage_type(dtype_), plan_.made_start, plan_.runs_of_warp(), other, plan_.width, e));
      writer_.close();
    }
    writer_.close();
    writer_.close();
  }

  const Kernel& kernel_;
  const Graph& graph_;
  const Target& target_;
  const RunPlan& plan_;
  const std::vector<std::uint32_t>& axes_;
  const DType dtype_;
  const IndexExpr total_, groups_;
  KernelWriter writer_;
  ExprEmitter emitter_;
  std::string first_, turn_;
  std::string of_, at_;                // of each turn: what its group is a run of, and where that begins
  std::string others_, list_, count_;  // of each turn: its place among groups that are none; these; how many
  std::vector<Names> names_;           // of each tensor
};

}  // namespace

KernelSource emit_runs(const Kernel& merged, const Graph& graph, const Target& target, const RunPlan& plan) {
  return RunsEmitter(merged, graph, target, plan).emit();
}

}  // namespace fusec
