#include "schedule/plan/kernel_planner.h"

#include <algorithm>
#include <limits>
#include <list>
#include <optional>
#include <utility>

#include "analysis/kernel/index_width.h"
#include "ir/error.h"
#include "schedule/convolution/find_sliding_window.h"
#include "schedule/gemm/row_gemm.h"
#include "schedule/plan/count_work.h"
#include "schedule/plan/operand_fetch.h"
#include "schedule/reduction/row_form.h"

namespace fusec {

// A rung: not looked for yet; null if the kernel has none.
template <typename T>
using Rung = std::optional<std::shared_ptr<const T>>;

struct PlannedRungs {
  Target target;
  Rung<SkinnyGemmForm> skinny = {};
  Rung<GemmForm> gemm = {}, pipelined_row_gemm = {};
  Rung<ConvolutionForm> convolution = {};
  Rung<JoinedConvolutions> joined = {};
  Rung<std::vector<WarpgroupGemms>> warpgroups = {};
  Rung<Gemv> gemv = {};
  Rung<RowCandidates> rows = {};
  Rung<NchwStencil> planes = {};
  Rung<StencilCandidate> stencil = {};
  Rung<GroupedImplicitGemm> groups = {};
  Rung<AttentionCandidates> attention = {};
  std::optional<Work> work = {};
  std::optional<double> seconds_of_form = {};
  std::optional<ContractionCodeSize> code = {};
};

// By the types of the tensors that the kernel loads.
struct RungsOfTensors {
  std::vector<std::pair<ValueId, TensorType>> loaded;
  Symbols symbols;
  Rung<RowForm> row_form = {};
  std::list<PlannedRungs> on_target = {};
};

struct PlansOfKernel {
  std::list<RungsOfTensors> all;
};

namespace {

RungsOfTensors& rungs_of(const Kernel& kernel, const FormOfKernel& form, const Graph& graph) {
  if (!form.plans) form.plans = std::make_shared<PlansOfKernel>();
  for (RungsOfTensors& known : form.plans->all)
    if (known.symbols == graph.symbols &&
        std::ranges::all_of(known.loaded, [&](const auto& one) { return graph.tensor(one.first) == one.second; }))
      return known;
  RungsOfTensors& made = form.plans->all.emplace_back(RungsOfTensors{.loaded = {}, .symbols = graph.symbols});
  for (const ValueId v : inputs_of(kernel)) made.loaded.emplace_back(v, graph.tensor(v));
  return made;
}

PlannedRungs& rungs_on(const Target& target, RungsOfTensors& of_tensors) {
  const auto known = std::ranges::find(of_tensors.on_target, target, &PlannedRungs::target);
  return known != of_tensors.on_target.end() ? *known : of_tensors.on_target.emplace_back(PlannedRungs{target});
}

// `find` returns an optional, and may read other rungs.
template <typename T, typename Find>
const T* found(Rung<T>& rung, const Find& find) {
  if (!rung) {
    std::optional<T> made = find();
    rung = made ? std::make_shared<const T>(*std::move(made)) : nullptr;
  }
  return rung->get();
}

template <typename T, typename Find>
const T& found(std::optional<T>& rung, const Find& find) {
  if (!rung) rung = find();
  return *rung;
}

// Takes a candidate of a ranking, best first.
template <typename T>
const T& take(const std::vector<T>& ranking, ScheduleChoice& choice) {
  std::vector<std::string> names;
  for (const T& one : ranking) names.push_back(name_of(one));
  return ranking[choice.take(std::move(names))];
}

// A tiling by warpgroups, or else one by warps. Warpgroups with a smaller predicted time come first, then warps, then
// the other warpgroups.
struct TileCandidate {
  const WarpgroupGemmForm* wide = nullptr;
  GemmTiles tiles;
};
TileCandidate take(const std::vector<WarpgroupGemms>& wide, const std::vector<GemmTiles>& by_warps, double cycles,
                   ScheduleChoice& choice) {
  const auto first = static_cast<std::size_t>(
      std::ranges::count_if(wide, [&](const WarpgroupGemms& gemms) { return gemms.cycles < cycles; }));
  std::vector<std::string> names;
  for (std::size_t i = 0; i < first; ++i) names.push_back(name_of(wide[i].forms[0].tiles));
  for (const GemmTiles& tiles : by_warps) names.push_back(name_of(tiles));
  for (std::size_t i = first; i < wide.size(); ++i) names.push_back(name_of(wide[i].forms[0].tiles));
  const std::size_t taken = choice.take(std::move(names));
  if (taken >= first && taken < first + by_warps.size()) return {nullptr, by_warps[taken - first]};
  return {&wide[taken < first ? taken : taken - by_warps.size()].forms[0], {}};
}

void plan_by_warpgroups(const WarpgroupGemmForm& form, GemmForm by_warps, KernelPlan& plan) {
  plan.schedule.unit = MatrixUnit::kWarpgroup;
  plan.detail = WarpgroupPlan{form, std::move(by_warps)};
}

const GemmForm& as_gemm(const GemmForm& form) {
  return form;
}

// A GEMM, or a convolution, in copied tiles.
template <typename Form>
void plan_in_tiles(const KernelPlanner& planner, Form form, KernelPlan& plan) {
  const TileCandidate taken = take(planner.warpgroups(), form.ranking, form.cycles, plan.choice);
  if (taken.wide) return plan_by_warpgroups(*taken.wide, as_gemm(form), plan);
  form.tiles = taken.tiles;
  plan.schedule.unit = mma_if(form.tensor_cores());
  plan.detail = std::move(form);
}

// Contractions without tiles of warps: several convolutions, each with its own K, computed one after the other, or
// boxes of images that warpgroups multiply. Warpgroups come first: the prediction for sequential convolutions models
// their loads too roughly.
void plan_images(const std::vector<WarpgroupGemms>& wide, const JoinedConvolutions* joined, KernelPlan& plan) {
  if (wide.empty() && !joined) return;
  plan.schedule.kind = KernelKind::kConvolution;
  const TileCandidate taken = take(wide, joined ? joined->ranking : std::vector<GemmTiles>(),
                                   std::numeric_limits<double>::infinity(), plan.choice);
  if (taken.wide) {
    GemmForm by_warps{.dtype = taken.wide->dtype, .loops = {}, .tiles = {}, .accumulators = taken.wide->accumulators};
    return plan_by_warpgroups(*taken.wide, std::move(by_warps), plan);
  }
  JoinedConvolutions all = *joined;
  all.take(taken.tiles);
  plan.schedule.unit = mma_if(all.forms[0].tensor_cores());
  plan.detail = std::move(all);
}

// Of a contraction that is no skinny GEMM. Tables of gathered operands hold 32-bit positions.
void plan_tiles(const KernelPlanner& planner, KernelPlan& plan) {
  const Kernel& kernel = planner.shaped();
  const Contraction& contraction = *planner.form().contraction;
  const KernelKind kind = plan.schedule.kind;
  if (kind == KernelKind::kGemm) return plan_in_tiles(planner, *planner.gemm(), plan);
  const bool gathers = !needs_wide_index(kernel, planner.graph(), point_count(kernel.pool, kernel.outputs.at(0).axes));
  const bool convolves = kind == KernelKind::kConvolution;
  if (convolves && gathers) return plan_in_tiles(planner, *planner.convolution(), plan);
  if (convolves) plan.why_not_better = "positions of its gathered operands need 64 bits";
  plan.schedule = {KernelKind::kContraction, mma_if(contraction.tensor_dtype.has_value())};
  plan.detail = ContractionPlan{};
  plan_images(
      convolves ? rank_warpgroup_images(planner.graph(), kernel, contraction, planner.target()) : planner.warpgroups(),
      gathers ? planner.joined() : nullptr, plan);
}

KernelKind kind_of_rows(const RowPlan& plan) {
  const RowCandidate& taken = plan.candidates->plans[plan.taken];
  const auto* layout = std::get_if<RowLayout>(&taken);
  const bool columns =
      layout ? layout->reduction_group == ReductionGroup::kColumn : std::holds_alternative<StridedReduction>(taken);
  return columns ? KernelKind::kColumnReduction : KernelKind::kRowReduction;
}

}  // namespace

KernelPlanner::KernelPlanner(const Kernel& kernel, const FormOfKernel& form, const Graph& graph, const Target& target)
    : kernel_(kernel),
      form_(form),
      graph_(graph),
      target_(target),
      rungs_(&rungs_on(target, rungs_of(kernel, form, graph))) {}

KernelKind KernelPlanner::kind() const {
  if (groups()) return KernelKind::kGroupedImplicitGemm;
  switch (form_.form) {
    case KernelForm::kPointwise:
      return KernelKind::kPointwise;
    case KernelForm::kTensorCoreContraction:
    case KernelForm::kContraction:
      return skinny() ? KernelKind::kSkinnyGemm : kind_of_tiles();
    case KernelForm::kRowGemm:
      return KernelKind::kRowGemm;
    case KernelForm::kAttention:
      return KernelKind::kAttention;
    case KernelForm::kRowReduction:
      return gemv() ? KernelKind::kSkinnyGemm : kind_of_loops();
    case KernelForm::kThreadPerElement:
      return kind_of_loops();
  }
  throw InternalError("a kernel of unknown form");
}

KernelKind KernelPlanner::kind_of_tiles() const {
  return gemm() ? KernelKind::kGemm : convolution() ? KernelKind::kConvolution : KernelKind::kContraction;
}

KernelKind KernelPlanner::kind_of_loops() const {
  const StencilCandidate& windows = stencil();
  if (windows.channels) return KernelKind::kNhwcStencil;
  if (windows.written) return KernelKind::kPointwise;
  if (windows.planes) return KernelKind::kNchwStencil;
  if (windows.columns) return KernelKind::kSlidingWindow;
  return rows() ? KernelKind::kRowReduction : KernelKind::kDirect;
}

KernelPlan KernelPlanner::plan(const std::string& wanted) const {
  KernelPlan plan{.schedule = {kind()}, .why_not_better = form_.why_not_better, .choice = ScheduleChoice(wanted)};
  switch (plan.schedule.kind) {
    case KernelKind::kGroupedImplicitGemm:
      plan.detail = *rungs_->groups;
      break;
    case KernelKind::kSkinnyGemm:
      plan.schedule.unit = MatrixUnit::kMma;
      if (form_.contraction) {
        SkinnyGemmForm form = *skinny();
        form.block = take(form.candidates, plan.choice);
        plan.detail = std::move(form);
      } else {
        Gemv vector = *gemv();
        vector.form.block = take(vector.form.candidates, plan.choice);
        plan.detail = std::move(vector);
      }
      break;
    case KernelKind::kGemm:
    case KernelKind::kConvolution:
    case KernelKind::kContraction:
      plan_tiles(*this, plan);
      break;
    case KernelKind::kRowGemm: {
      RowGemmPlan rows{pipelined_row_gemm() ? std::optional(*pipelined_row_gemm()) : std::nullopt};
      if (rows.pipelined) rows.pipelined->tiles = take(rows.pipelined->ranking, plan.choice);
      plan.schedule.unit = mma_if(form_.row_gemm->contraction.tensor_dtype.has_value());
      plan.detail = std::move(rows);
      break;
    }
    case KernelKind::kAttention:
      plan.schedule.unit = mma_if(attention().by_warps.tensor_cores);
      plan.detail = attention();
      break;
    case KernelKind::kRowReduction: {
      RowPlan taken{.candidates = *rungs_->rows};
      taken.taken = plan.choice.take(names_of(*taken.candidates));
      plan.schedule.kind = kind_of_rows(taken);
      plan.detail = std::move(taken);
      break;
    }
    case KernelKind::kPointwise:
      if (form_.form == KernelForm::kPointwise)
        plan.detail = PointwisePlan{find_sliding_window(kernel_, graph_, target_)};
      else
        plan.detail = *rungs_->stencil;
      break;
    case KernelKind::kNhwcStencil:
    case KernelKind::kNchwStencil:
    case KernelKind::kSlidingWindow:
      plan.detail = *rungs_->stencil;
      break;
    default:
      break;  // kDirect; emitters alone have other kinds
  }
  return plan;
}

const SkinnyGemmForm* KernelPlanner::skinny() const {
  if (!form_.contraction) return nullptr;
  return found(rungs_->skinny, [&] { return find_skinny_gemm(graph_, shaped(), *form_.contraction, target_); });
}

const GemmForm* KernelPlanner::gemm() const {
  return found(rungs_->gemm, [&] { return find_gemm(graph_, shaped(), *form_.contraction, target_); });
}

const ConvolutionForm* KernelPlanner::convolution() const {
  return found(rungs_->convolution, [&] { return find_convolution(graph_, shaped(), *form_.contraction, target_); });
}

const JoinedConvolutions* KernelPlanner::joined() const {
  return found(rungs_->joined, [&] { return find_joined_convolutions(graph_, shaped(), *form_.contraction, target_); });
}

double KernelPlanner::cycles_of_tiles() const {
  const KernelKind kind = kind_of_tiles();
  return kind == KernelKind::kGemm          ? gemm()->cycles
         : kind == KernelKind::kConvolution ? convolution()->cycles
                                            : std::numeric_limits<double>::infinity();
}

const std::vector<WarpgroupGemms>& KernelPlanner::warpgroups() const {
  const Contraction& contraction = *form_.contraction;
  const auto ranked = [&] {
    const KernelKind kind = kind_of_tiles();
    if (kind == KernelKind::kConvolution)
      return rank_warpgroup_convolutions(graph_, shaped(), contraction, *convolution(), target_);
    if (kind == KernelKind::kContraction) return rank_warpgroup_images(graph_, shaped(), contraction, target_);
    const WarpgroupCandidate candidate{&shaped(), &contraction, gemm(), nullptr, &graph_};
    return rank_warpgroup_gemms({&candidate, 1}, target_);
  };
  return *found(rungs_->warpgroups, [&] { return std::optional(ranked()); });
}

const WarpgroupGemms* KernelPlanner::best_warpgroups() const {
  const std::vector<WarpgroupGemms>& ranking = warpgroups();
  return !ranking.empty() && ranking[0].cycles < cycles_of_tiles() ? ranking.data() : nullptr;
}

const ContractionCodeSize& KernelPlanner::code() const {
  return found(rungs_->code, [&] {
    return skinny() ? skinny_gemm_code_size(shaped(), *form_.contraction, *skinny())
                    : contraction_code_size(shaped(), *form_.contraction, gemm(), target_);
  });
}

const Gemv* KernelPlanner::gemv() const {
  if (form_.form != KernelForm::kRowReduction) return nullptr;
  return found(rungs_->gemv, [&] { return find_gemv(kernel_, graph_, target_); });
}

const RowCandidates* KernelPlanner::rows() const {
  if (form_.form != KernelForm::kRowReduction) return nullptr;
  return found(rungs_->rows, [&]() -> std::optional<RowCandidates> {
    const RowForm* form = row_form_of(kernel_, form_, graph_);
    return form ? find_row_candidates(*form, graph_, target_) : std::nullopt;
  });
}

RowLaunch KernelPlanner::row_launch() const {
  return gemv() || !rows() ? RowLaunch{} : fusec::row_launch(*rows(), graph_);
}

const NchwStencil* KernelPlanner::planes() const {
  return found(rungs_->planes, [&] { return find_nchw_stencil(kernel_, graph_, target_); });
}

const StencilCandidate& KernelPlanner::stencil() const {
  return *found(rungs_->stencil, [&] { return std::optional(best_stencil(*this)); });
}

const GroupedImplicitGemm* KernelPlanner::groups() const {
  return found(rungs_->groups, [&] { return best_grouped_implicit_gemm(*this); });
}

const GemmForm* KernelPlanner::pipelined_row_gemm() const {
  return found(rungs_->pipelined_row_gemm, [&] { return find_pipelined_row_gemm(graph_, *form_.row_gemm, target_); });
}

const AttentionCandidates& KernelPlanner::attention() const {
  return *found(rungs_->attention, [&] {
    const Attention& form = *form_.attention;
    return std::optional(AttentionCandidates{attention_tiles(form, target_), warpgroup_tiles(form, target_)});
  });
}

const Work& KernelPlanner::work() const {
  return found(rungs_->work, [&] { return count_work(*this); });
}

double KernelPlanner::seconds_of_form() const {
  return found(rungs_->seconds_of_form, [&] { return fusec::seconds_of_form(*this); });
}

const RowForm* row_form_of(const Kernel& kernel, const FormOfKernel& form, const Graph& graph) {
  return found(rungs_of(kernel, form, graph).row_form, [&] { return row_form(kernel, graph); });
}

std::vector<WarpgroupGemmForm> multiplied_together(std::span<const KernelPlanner> planners) {
  std::vector<WarpgroupCandidate> candidates;
  if (!has_warpgroups(planners[0].target())) return {};
  for (const KernelPlanner& planner : planners) {
    if (planner.form().form != KernelForm::kTensorCoreContraction || planner.skinny() || !planner.gemm()) return {};
    candidates.push_back({&planner.shaped(), &*planner.form().contraction, planner.gemm()});
  }
  return find_warpgroup_gemms(candidates, planners[0].target());
}

}  // namespace fusec
