#include "codegen/schedules/runs.h"

#include <algorithm>
#include <utility>

#include "analysis/kernel_forms.h"
#include "analysis/loads.h"
#include "codegen/emit_expr.h"
#include "codegen/schedules/access_samples.h"
#include "ir/type.h"

namespace fusec {
namespace {

constexpr std::int64_t kMostBytes = 24 * 1024;  // of shared memory, for all tensors
constexpr std::int64_t kFewestRuns = 3072;
constexpr int kSampledBlocks = 6, kSampledRuns = 48, kSampledEnds = 4;

// Finds what the value of a kernel's only result is chosen from, and where that changes along the last axis.
class Reader {
 public:
  Reader(const Kernel& kernel, RunPlan& plan)
      : kernel_(kernel), pool_(kernel.pool), last_{Variable::Kind::kAxis, kernel.outputs[0].axes.back()}, plan_(plan) {}

  // False where the value is computed, or may change anywhere.
  bool read(ExprId value) {
    const ExprNode& n = pool_[value];
    switch (n.op) {
      case ExprOp::kSelect:
        return read_condition(n.args[0]) && read(n.args[1]) && read(n.args[2]);
      case ExprOp::kConstant:
        if (std::ranges::find(plan_.constants, value) == plan_.constants.end()) plan_.constants.push_back(value);
        return true;
      case ExprOp::kLoad:
        return read_load(value);
      default:
        return false;
    }
  }

 private:
  bool read_load(ExprId load) {
    const ExprNode& n = pool_[load];
    if (n.dtype != kernel_.outputs[0].type.dtype || !values_in(n).empty()) return false;
    if (n.args[0] != kNoExpr && !read_condition(n.args[0])) return false;
    for (const IndexExpr& e : n.indices)
      if (!read_index(e)) return false;
    auto at = std::ranges::find(plan_.tensors, n.source, &RunPlan::Tensor::source);
    if (at == plan_.tensors.end()) at = plan_.tensors.insert(at, {.source = n.source});
    if (std::ranges::find(at->loads, load) == at->loads.end()) at->loads.push_back(load);
    return true;
  }

  bool read_condition(ExprId condition) {
    const ExprNode& n = pool_[condition];
    switch (n.op) {
      case ExprOp::kConstant:
        return true;
      case ExprOp::kNot:
        return read_condition(n.args[0]);
      case ExprOp::kAnd:
      case ExprOp::kOr:
        return read_condition(n.args[0]) && read_condition(n.args[1]);
      case ExprOp::kLt:
      case ExprOp::kLe:
      case ExprOp::kGt:
      case ExprOp::kGe:
        break;
      default:
        return false;
    }
    bool along = false;
    for (const ExprId arg : {n.args[0], n.args[1]}) {
      if (pool_[arg].op == ExprOp::kConstant) continue;
      if (pool_[arg].op != ExprOp::kIndex || !read_index(pool_[arg].indices[0])) return false;
      along = along || mentions(pool_[arg].indices[0], last_);
    }
    if (along && std::ranges::find(plan_.breaks.conditions, condition) == plan_.breaks.conditions.end())
      plan_.breaks.conditions.push_back(condition);
    return true;
  }

  // Linear along a row wherever quotients, minima and maxima in it are.
  bool read_index(const IndexExpr& e) {
    for (const Variable v : variables_of(e))
      if (v.kind == Variable::Kind::kValue) return false;
    for (const IndexTerm& term : e.terms()) {
      int along = 0;
      for (const IndexAtomPtr& factor : term.factors) {
        if (factor->kind == IndexAtom::Kind::kVariable) {
          along += factor->variable == last_;
          continue;
        }
        if (!mentions(factor->a, last_) && !mentions(factor->b, last_)) continue;
        ++along;
        if (!read_index(factor->a) || !read_index(factor->b) || !read_atom(*factor)) return false;
      }
      if (along > 1) return false;
    }
    return true;
  }

  bool read_atom(const IndexAtom& atom) {
    RunBreaks& breaks = plan_.breaks;
    if (atom.kind == IndexAtom::Kind::kFloorDiv || atom.kind == IndexAtom::Kind::kMod) {
      if (mentions(atom.b, last_)) return false;
      const IndexExpr quotient = floor_div(atom.a, atom.b);
      if (std::ranges::find(breaks.quotients, quotient) == breaks.quotients.end()) breaks.quotients.push_back(quotient);
    } else {
      const std::pair<IndexExpr, IndexExpr> both{atom.a, atom.b};
      if (std::ranges::find(breaks.compared, both) == breaks.compared.end()) breaks.compared.push_back(both);
    }
    return true;
  }

  const Kernel& kernel_;
  const ExprPool& pool_;
  const Variable last_;
  RunPlan& plan_;
};

// What runs are like here and there.
class RunSampler {
 public:
  RunSampler(const Kernel& kernel, const Graph& graph, const RunPlan& plan)
      : kernel_(kernel), samples_(kernel, graph), plan_(plan) {}

  std::int64_t points() const { return samples_.points(); }

  struct Seen {
    std::vector<std::int64_t> most;  // vectors of a block, of each tensor
    double sectors = 0;              // of all loads, for a point
    double made = 0;                 // the part of all runs that are none
  };
  Seen sample() {
    const std::int64_t block = std::int64_t{plan_.threads} * plan_.turns * plan_.width;
    Seen seen{.most = std::vector<std::int64_t>(plan_.tensors.size(), 0)};
    std::int64_t runs = 0, made = 0, sectors = 0, points = 0;
    for (const std::int64_t start : samples_.starts(block, kSampledBlocks)) {
      std::vector<std::pair<std::int64_t, std::int64_t>> ends(plan_.tensors.size(), {-1, -1});
      const std::int64_t of_block = plan_.threads * plan_.turns;
      for (std::int64_t i = 0; i < kSampledRuns; ++i, ++runs)
        made += !add_run(start + i * (of_block - 1) / (kSampledRuns - 1) * plan_.width, 1, ends);
      // Others, which may lie far away.
      for (std::int64_t i = 1; i + 1 < of_block; i += kSampledEnds)
        add_run(start + i * plan_.width, plan_.width - 1, ends);
      points += block;
      for (std::size_t t = 0; t < ends.size(); ++t) {
        if (ends[t].second < 0) continue;
        const int bytes = bits(kernel_.outputs[0].type.dtype) / 8;
        seen.most[t] = std::max(seen.most[t], ends[t].second * bytes / 16 - ends[t].first * bytes / 16 + 1);
        sectors += ends[t].second * bytes / 32 - ends[t].first * bytes / 32 + 1;
      }
    }
    seen.made = static_cast<double>(made) / static_cast<double>(runs);
    seen.sectors = static_cast<double>(sectors) / static_cast<double>(points);
    return seen;
  }

 private:
  struct Place {
    std::size_t of = 0;  // a tensor, or a constant behind these
    std::int64_t at = 0;
  };

  Place place(ExprId value) {
    const ExprNode& n = kernel_.pool[value];
    if (n.op == ExprOp::kSelect) return place(samples_.holds(n.args[0]) ? n.args[1] : n.args[2]);
    if (n.op == ExprOp::kConstant) return {plan_.tensors.size(), 0};
    const auto at = samples_.position(value);
    if (!at) return {plan_.tensors.size(), 0};
    const auto of = std::ranges::find(plan_.tensors, n.source, &RunPlan::Tensor::source);
    return {static_cast<std::size_t>(of - plan_.tensors.begin()), *at};
  }

  // False where the elements are none, of which some are looked at, `step` apart.
  bool add_run(std::int64_t first, int step, std::vector<std::pair<std::int64_t, std::int64_t>>& ends) {
    if (first + plan_.width > samples_.points()) return false;
    Place begin;
    for (int e = 0; e < plan_.width; e += step) {
      samples_.move_to(first + e);
      const Place here = place(kernel_.outputs[0].expr);
      if (e == 0) begin = here;
      const bool constant = here.of == plan_.tensors.size();
      if (here.of != begin.of || (!constant && here.at != begin.at + e)) return false;
    }
    if (begin.of == plan_.tensors.size()) return true;
    auto& [low, high] = ends[begin.of];
    low = low < 0 ? begin.at : std::min(low, begin.at);
    high = std::max(high, begin.at + plan_.width - 1);
    return true;
  }

  const Kernel& kernel_;
  AccessSamples samples_;
  const RunPlan& plan_;
};

// Instructions for a point, as counted: of a run, of a thread for each tensor and each turn of copying it, for each
// thing that is asked of both of a run's ends, and of an element that is made by itself.
double instructions_of(const RunPlan& plan, double made, std::size_t axes) {
  constexpr double kRun = 75, kThread = 25, kTensor = 55, kCopy = 14, kBreak = 10;
  constexpr double kElement = 45, kElementAxis = 7, kElementBreak = 5;
  const auto breaks =
      static_cast<double>(plan.breaks.conditions.size() + plan.breaks.quotients.size() + plan.breaks.compared.size());
  double thread = kThread;
  for (const RunPlan::Tensor& tensor : plan.tensors)
    thread += kTensor + kCopy * ((tensor.most + plan.threads - 1) / plan.threads);
  const double run = kRun + thread / plan.turns + kBreak * breaks;
  const double element = kElement + kElementAxis * static_cast<double>(axes) + kElementBreak * breaks;
  return run / plan.width + made * element;
}

bool stores_in_order(const Kernel& kernel) {
  const KernelOutput& output = kernel.outputs[0];
  IndexExpr flat = 0;
  for (const std::uint32_t axis : output.axes) flat = flat * kernel.pool.extent(axis) + IndexExpr::axis(axis);
  const Bounds& bounds = kernel.pool.bounds();
  return simplify(flat_index(output.type.shape, output.index), bounds) == simplify(flat, bounds);
}

bool reads_stored_places(const Kernel& kernel, const Graph& graph, const RunPlan& plan) {
  const KernelOutput& output = kernel.outputs[0];
  const IndexExpr stored = simplify(flat_index(output.type.shape, output.index), kernel.pool.bounds());
  return std::ranges::any_of(plan.tensors, [&](const RunPlan::Tensor& tensor) {
    return std::ranges::any_of(tensor.loads,
                               [&](ExprId load) { return position_of(graph, kernel.pool, load) == stored; });
  });
}

}  // namespace

std::optional<RunPlan> plan_runs(const Kernel& merged, const Graph& graph, const Target& target) {
  if (merged.outputs.size() != 1 || merged.outputs[0].axes.empty()) return std::nullopt;
  const int element_bits = bits(merged.outputs[0].type.dtype);
  if (element_bits < 8 || element_bits > 32) return std::nullopt;
  RunPlan plan;
  plan.width = 128 / element_bits;
  if (!Reader(merged, plan).read(merged.outputs[0].expr) || plan.tensors.empty()) return std::nullopt;
  if (!stores_in_order(merged) || reads_stored_places(merged, graph, plan)) return std::nullopt;
  const IndexExpr points = point_count(merged.pool, merged.outputs[0].axes);
  if (needs_wide_index(merged, graph, points + std::int64_t{plan.threads} * plan.turns * plan.width))
    return std::nullopt;
  const std::int64_t runs = value_at_hint(points, graph.symbols) / plan.width;
  if (runs < kFewestRuns) return std::nullopt;
  if (runs / (plan.threads * plan.turns) < target.multiprocessors) plan.turns = 1;
  if (runs / plan.threads < target.multiprocessors) plan.threads = 128;
  const RunSampler::Seen seen = RunSampler(merged, graph, plan).sample();
  for (std::size_t t = 0; t < plan.tensors.size(); ++t) {
    plan.tensors[t].most = static_cast<int>(std::min(seen.most[t] + seen.most[t] / 8 + 4, kMostBytes / 16));
    plan.tensors[t].start = plan.ends_start;
    plan.ends_start += std::int64_t{16} * plan.tensors[t].most;
  }
  if (plan.ends_start > kMostBytes) return std::nullopt;
  plan.list_start = plan.ends_start + plan.ends_bytes() * static_cast<std::int64_t>(plan.tensors.size());
  plan.made_start = plan.list_start + std::int64_t{4} * plan.threads * plan.turns;
  plan.sectors = seen.sectors;
  plan.instructions = instructions_of(plan, seen.made, merged.outputs[0].axes.size());
  return plan;
}

}  // namespace fusec
