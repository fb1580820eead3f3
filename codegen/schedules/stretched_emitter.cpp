#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>

#include "analysis/loads.h"
#include "codegen/emit_expr.h"
#include "codegen/schedules/direct.h"
#include "codegen/schedules/stretches.h"
#include "codegen/schedules/vector_access.h"
#include "ir/type.h"

namespace fusec {
namespace {

using Way = TensorStretch::Way;

class StretchedEmitter {
 public:
  StretchedEmitter(const Kernel& kernel, const Graph& graph, const Target& target, const StretchPlan& plan)
      : kernel_(kernel),
        graph_(graph),
        target_(target),
        plan_(plan),
        total_(point_count(kernel.pool, kernel.outputs[0].axes)),
        writer_(graph, false),
        emitter_(kernel, writer_) {}

  KernelSource emit() {
    writer_.use("dynamic_shared");
    writer_.use("stretches");
    first_ = writer_.unique("first");
    const int points = plan_.threads * plan_.each;
    writer_.line(fmt::format("const int {} = blockIdx.x * {} + threadIdx.x;", first_, points));
    find_stretches();
    copy_stretches();
    compute();
    // One block at a time is enough: for more of them ptxas would spill a few registers.
    KernelSource source = writer_.finish(kernel_comment(graph_, kernel_), plan_.threads, 1);
    source.grid[0] = simplify(ceil_div(total_, points), kernel_.pool.bounds());
    source.dynamic_shared = plan_.shared_bytes();
    return source;
  }

 private:
  // What the text calls a stretch.
  struct Names {
    std::string low, high, stretch, base, tile;
  };

  bool whole() const { return proves_multiple_of(total_, plan_.threads * plan_.each, kernel_.pool.bounds()); }

  void open_points() {
    turn_ = writer_.unique("turn");
    writer_.line("#pragma unroll");
    writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", turn_, plan_.each));
  }

  // Positions of all of this thread's points, and where they begin and end. Behind the last point are none of their
  // own.
  void find_stretches() {
    for (const TensorStretch& stretch : plan_.stretches) {
      const std::string tensor = writer_.wish(kernel_.pool[stretch.loads[0]].source);
      Names& name = names_.emplace_back();
      name.low = writer_.unique(tensor + "_low");
      name.high = writer_.unique(tensor + "_high");
      writer_.line(fmt::format("unsigned {} = ~0u;", name.low));
      writer_.line(fmt::format("int {} = -1;", name.high));
      for (const ExprId load : stretch.loads) {
        at_[load] = writer_.unique(tensor + "_at");
        writer_.line(fmt::format("int {}[{}];", at_[load], plan_.each));
        if (stretch.way != Way::kNear && stretch.way != Way::kInParts) continue;
        near_[load] = writer_.unique(tensor + (stretch.way == Way::kNear ? "_near" : "_parts"));
        writer_.line(fmt::format("unsigned {} = 0;", near_[load]));
      }
    }
    const ExprEmitter::Mark mark = emitter_.mark();
    open_points();
    const std::string point = writer_.unique("t");
    const std::string here = fmt::format("{} + {} * {}", first_, turn_, plan_.threads);
    writer_.line(whole() ? fmt::format("const int {} = {};", point, here)
                         : fmt::format("const int {} = min({}, {});", point, here,
                                       emitter_.index_text()(simplify(total_ - 1, kernel_.pool.bounds()))));
    bind_flat(emitter_, kernel_.outputs[0].axes, point);
    for (std::size_t s = 0; s < plan_.stretches.size(); ++s)
      for (const ExprId load : plan_.stretches[s].loads) {
        emitter_.emit(values_in(kernel_.pool[load]));  // what its place is made of
        const ExprId guard = kernel_.pool[load].args[0];
        const std::string wanted = guard == kNoExpr ? "" : emitter_.emit(guard);
        const std::string position = emitter_.index(emitter_.position(load));
        writer_.line(wanted.empty() ? fmt::format("{}[{}] = {};", at_[load], turn_, position)
                                    : fmt::format("{}[{}] = ({}) ? {} : -1;", at_[load], turn_, wanted, position));
        const std::string at = fmt::format("{}[{}]", at_[load], turn_);
        const TensorStretch& stretch = plan_.stretches[s];
        writer_.line(near_.contains(load)
                         ? fmt::format("{}<{}>({}, {}, {}, {}, {});",
                                       stretch.way == Way::kNear ? "widen_where_near" : "widen_in_parts",
                                       bits(kernel_.pool[load].dtype), names_[s].low, names_[s].high, near_[load],
                                       turn_, at)
                         : fmt::format("widen_stretch({}, {}, {});", names_[s].low, names_[s].high, at));
      }
    emitter_.rewind(mark);
    writer_.close();
  }

  void copy_stretches() {
    const int warps = plan_.threads / 32;
    const auto ends = [&](std::size_t s) {
      return fmt::format("(int*)(dynamic_shared + {})",
                         plan_.ends_start + plan_.ends_bytes() * static_cast<std::int64_t>(s));
    };
    for (std::size_t s = 0; s < plan_.stretches.size(); ++s)
      writer_.line(fmt::format("put_ends_of_stretch<{}>({}, {}, {});", warps, ends(s), names_[s].low, names_[s].high));
    writer_.line("__syncthreads();");
    for (std::size_t s = 0; s < plan_.stretches.size(); ++s) {
      const TensorStretch& stretch = plan_.stretches[s];
      const ExprNode& n = kernel_.pool[stretch.loads[0]];
      const std::string tensor = writer_.wish(n.source);
      names_[s].stretch = writer_.unique(tensor + "_stretch");
      writer_.line(fmt::format("const Stretch {} = stretch_between<{}, {}, {}>({});", names_[s].stretch, bits(n.dtype),
                               warps, stretch.most, ends(s)));
      const IndexExpr count = element_count(writer_.tensor_type(n.source).shape).value_or(0);
      const bool whole_vectors = proves_multiple_of(count, 128 / bits(n.dtype), kernel_.pool.bounds());
      writer_.line(fmt::format("copy_stretch<{}, {}, {}, {}, {}, {}>(dynamic_shared + {}, {}, {}, {});", bits(n.dtype),
                               plan_.threads, stretch.most, stretch.way == Way::kApart,
                               whole_vectors ? "Inside::kSure" : "Inside::kUnknown", streams(stretch), stretch.start,
                               writer_.input(n.source), emitter_.index(count), names_[s].stretch));
      names_[s].tile = writer_.unique(tensor + "_tile");
    }
    writer_.line("__syncthreads();");
    for (std::size_t s = 0; s < plan_.stretches.size(); ++s) declare_tile(plan_.stretches[s], names_[s]);
  }

  // Where the elements are, by their positions in the tensor: in shared memory, or where the stretch is too long,
  // there.
  void declare_tile(const TensorStretch& stretch, Names& name) {
    const ExprNode& n = kernel_.pool[stretch.loads[0]];
    writer_.use(n.dtype);
    const std::string tile = fmt::format("(const {}*)(dynamic_shared + {})", storage_type(n.dtype), stretch.start);
    if (stretch.way == Way::kApart) {
      writer_.line(fmt::format("const {}* const {} = {};", storage_type(n.dtype), name.tile, tile));
      name.base = writer_.unique(writer_.wish(n.source) + "_base");
      writer_.line(fmt::format("const int {} = {}.first * {};", name.base, name.stretch, 128 / bits(n.dtype)));
    } else {
      writer_.line(fmt::format("const {}* const {} = {}.vectors > 0 ? {} - {}.first * {} : {};", storage_type(n.dtype),
                               name.tile, name.stretch, tile, name.stretch, 128 / bits(n.dtype),
                               writer_.input(n.source)));
    }
  }

  bool streams(const TensorStretch& stretch) const {
    return std::ranges::all_of(
        stretch.loads, [&](ExprId load) { return streams_past_caches(emitter_, graph_, load, target_.l2_bytes); });
  }

  void compute() {
    const ExprEmitter::Mark mark = emitter_.mark();
    open_points();
    const std::string point = writer_.unique("t");
    writer_.line(fmt::format("const int {} = {} + {} * {};", point, first_, turn_, plan_.threads));
    if (!whole()) writer_.open(fmt::format("if ({} < {})", point, emitter_.index_text().tight(total_)));
    bind_flat(emitter_, kernel_.outputs[0].axes, point);
    emitter_.load_text = [&](ExprId load) { return element_text(load); };
    store_scalars(emitter_, emitter_.emit(roots_of(kernel_)));
    emitter_.load_text = nullptr;
    if (!whole()) writer_.close();
    emitter_.rewind(mark);
    writer_.close();
  }

  std::string element_text(ExprId load) {
    const auto known = at_.find(load);
    if (known == at_.end()) return "";
    const auto of = std::ranges::find_if(plan_.stretches, [&](const TensorStretch& stretch) {
      return std::ranges::find(stretch.loads, load) != stretch.loads.end();
    });
    const Names& name = names_[static_cast<std::size_t>(of - plan_.stretches.begin())];
    const ExprNode& n = kernel_.pool[load];
    const std::string at = fmt::format("{}[{}]", known->second, turn_);
    if (of->way == Way::kNear)
      return widen(n.dtype, fmt::format("({} >> {} & 1 ? {} : {})[{}]", near_.at(load), turn_, name.tile,
                                        writer_.input(n.source), at));
    if (of->way == Way::kInParts) {
      // A statement of its own, which reads nothing where nothing is wanted, is no branch.
      const std::string raw = writer_.unique(writer_.wish(n.source) + "_bits");
      writer_.line(fmt::format("const auto {} = element_in_parts<{}>({} + {}, {} >> 3 * {} & 7);", raw, bits(n.dtype),
                               name.tile, at, near_.at(load), turn_));
      return value_of_bits(n.dtype, raw, writer_);
    }
    if (of->way == Way::kAsTheyLie) return widen(n.dtype, fmt::format("{}[{}]", name.tile, at));
    const std::string place = writer_.unique("place");
    const int elements = std::max(1, 32 / bits(n.dtype));  // that are left out
    writer_.line(fmt::format("const int {} = {} - {};", place, at, name.base));
    return widen(n.dtype, fmt::format("({0}.vectors > 0 ? {1}[{2} + {2} / {3} * {4}] : {5}[{6}])", name.stretch,
                                      name.tile, place, 1024 / bits(n.dtype), elements, writer_.input(n.source), at));
  }

  const Kernel& kernel_;
  const Graph& graph_;
  const Target& target_;
  const StretchPlan& plan_;
  const IndexExpr total_;
  KernelWriter writer_;
  ExprEmitter emitter_;
  std::string first_, turn_;
  std::vector<Names> names_;                 // of each stretch
  std::map<ExprId, std::string> at_, near_;  // of each load: positions; which lie near to its warp's, or in which part
};

}  // namespace

KernelSource emit_stretches(const Kernel& kernel, const Graph& graph, const Target& target, const StretchPlan& plan) {
  if (plan.stretches.empty()) return direct(kernel, graph, target);
  return StretchedEmitter(kernel, graph, target, plan).emit();
}

}  // namespace fusec
