#include "transforms/merge_trial.h"

#include <algorithm>
#include <bit>

#include "analysis/annotate.h"
#include "analysis/group_components.h"
#include "ir/budget.h"
#include "schedule/cost/cost_model.h"
#include "schedule/kernel_forms.h"

namespace fusec {
namespace {

// Nodes that the trials of one pass may lower, at about 50 us each. Large graphs get fewer, because most of them repeat
// their layers.
constexpr std::int64_t kMostNodesTried = 30'000, kFewestNodesTried = 1'500;
constexpr double kRounding = 1 + 1e-9;
constexpr double kPlainly = 0.9;        // time of a merge that has no other gain
constexpr double kSlackSeconds = 1e-7;  // a merge that saves bytes may be predicted this much slower

std::int64_t budget_for(std::size_t nodes) {
  const auto fair = kMostNodesTried * 20'000 / static_cast<std::int64_t>(nodes + 1);
  return std::clamp(fair, kFewestNodesTried, kMostNodesTried);
}

// A split or concat may have thousands of operands and results, which each question about its group visits. Only nodes
// with more than kFewOperands count, so that graphs of ordinary nodes have no limit.
constexpr std::int64_t kMostOperandsAsked = 20'000'000;
constexpr std::size_t kFewOperands = 16;

std::uint64_t mixed(std::uint64_t hash, std::uint64_t word) {
  hash = (hash ^ word) * 0xff51afd7ed558ccdu;
  return hash ^ hash >> 32;
}

MergeAnswer predicted(double joined, double apart, std::int64_t bytes_joined, std::int64_t bytes_apart) {
  MergeAnswer answer{.joined_us = static_cast<float>(1e6 * joined), .apart_us = static_cast<float>(1e6 * apart)};
  // A merge that moves more bytes may move at most 5 % more, and must save at least 10 % of the time.
  constexpr double kMoreBytes = 1.05;
  const bool pays =
      static_cast<double>(bytes_joined) <= kMoreBytes * static_cast<double>(bytes_apart) && joined <= kPlainly * apart;
  if (bytes_joined > bytes_apart && !pays)
    answer.rule = FusionRule::kMoreBytes;
  else if (joined > kRounding * apart + (bytes_joined < bytes_apart ? kSlackSeconds : 0))
    answer.rule = FusionRule::kPredictedSlower;
  return answer;
}

double launches_of(const TrialResult& result) {
  return result.work ? result.work->launches : result.launches;
}

}  // namespace

MergeTrial::MergeTrial(const GroupGraph& groups, std::span<const OpPattern> kinds, const FusionPlan& plan,
                       TrialMemory& memory)
    : groups_(groups),
      kinds_(kinds),
      plan_(plan),
      lowering_(groups.graph(), memory, budget_for(groups.graph().nodes.size())),
      operands_left_(kMostOperandsAsked),
      of_group_(groups.size()),
      open_(groups.size(), 0) {}

bool MergeTrial::open(GroupId g) {
  if (open_[g] != 0) return open_[g] == 2;
  const bool answer = plan_.groups[g].code == GroupCode::kFusec && !plan_.groups[g].prepared &&
                      std::ranges::all_of(groups_.nodes(g), [&](NodeId n) {
                        const Node& node = groups_.graph().nodes[n];
                        return node.fuse && kinds_[n] != OpPattern::kOpaque &&
                               (node.op->formula || node.op->special == Special::kTuple);
                      });
  open_[g] = answer ? 2 : 1;
  return answer;
}

MergeTrial::OfGroup& MergeTrial::known_of(GroupId g) {
  OfGroup& known = of_group_[g];
  const std::span<const NodeId> nodes = groups_.nodes(g);
  if (known.nodes != nodes.size())
    known = {.nodes = static_cast<std::uint32_t>(nodes.size()), .result = &lowered(nodes)};
  return known;
}

std::uint32_t MergeTrial::arguments_of(GroupId g) {
  OfGroup& known = known_of(g);
  if (known.arguments == 0) known.arguments = static_cast<std::uint32_t>(argument_count(groups_.nodes(g)));
  return known.arguments;
}

bool MergeTrial::is_product_group(GroupId g) {
  return of_group(g).strength >= strength(KernelForm::kContraction);
}

bool MergeTrial::is_rows(GroupId g) {
  return of_group(g).strength == strength(KernelForm::kRowReduction);
}

std::uint64_t MergeTrial::kind_of_question(GroupId a, GroupId b, NodeId from, NodeId to) const {
  const Graph& graph = groups_.graph();
  std::uint64_t kind = mixed(groups_.nodes(a).size(), groups_.nodes(b).size());
  for (const NodeId n : {from, to}) {
    count_step();
    kind = mixed(kind, std::bit_cast<std::uintptr_t>(graph.nodes[n].op));
    kind = mixed(kind, std::uint64_t{graph.nodes[n].attributes} << 32 | graph.value(graph.nodes[n].first_output).type);
  }
  return kind;
}

bool MergeTrial::hopeless(std::uint64_t kind) const {
  if (!in_haste()) return false;
  const auto it = records_.find(kind);
  return it != records_.end() && it->second.no >= kRefusalsUntilHopeless + 16 * it->second.yes;
}

void MergeTrial::note(std::uint64_t kind, bool joined) {
  if (!in_haste()) return;
  Record& record = records_[kind];
  ++(joined ? record.yes : record.no);
}

// Whether a product of these nodes, which are in topological order, has another one's result in an operand. A softmax
// may come in between, as in attention. A depthwise convolution is no product: the kernel of its group is not.
bool MergeTrial::has_product_of_product(std::span<const NodeId> nodes) {
  const Graph& graph = groups_.graph();
  const auto is_product = [&](NodeId n) {
    return kinds_[n] == OpPattern::kOutEwiseFusable && fusec::is_product(graph.nodes[n]) &&
           is_product_group(groups_.group_of(n));
  };
  std::vector<NodeId> behind;  // products, and what is computed from their results
  for (const NodeId n : nodes) {
    count_step();
    const Node& node = graph.nodes[n];
    const bool reads = std::ranges::any_of(node.inputs, [&](ValueId v) {
      return v != kNone && graph.value(v).kind == Value::Kind::kResult &&
             std::ranges::binary_search(behind, graph.value(v).producer);
    });
    if (reads && is_product(n)) return true;
    if (node.op->name == "softmax" || node.op->name == "exp") continue;
    if (reads || is_product(n)) behind.push_back(n);
  }
  return false;
}

// Checks max_fused_ops and max_args. The node limit applies to each connected component of the merged group.
FusionRule MergeTrial::within_limits(std::span<const GroupId> groups) const {
  std::size_t count = 0, most_arguments = 0;
  for (const GroupId g : groups) {
    count_step();
    count += groups_.nodes(g).size();
    for (const NodeId n : groups_.nodes(g))
      most_arguments += groups_.graph().nodes[n].inputs.size() + groups_.graph().nodes[n].output_count;
  }
  // Fast path: an upper bound that counts shared arguments repeatedly.
  if (count <= plan_.max_fused_ops && (plan_.max_args == 0 || most_arguments <= plan_.max_args))
    return FusionRule::kJoined;
  return nodes_within_limits(groups_.nodes_of(groups));
}

FusionRule MergeTrial::nodes_within_limits(std::span<const NodeId> nodes) const {
  if (nodes.size() > plan_.max_fused_ops && largest_component(groups_.graph(), nodes) > plan_.max_fused_ops)
    return FusionRule::kTooManyNodes;
  if (plan_.max_args == 0) return FusionRule::kJoined;
  const std::size_t arguments = argument_count(nodes);
  if (arguments <= plan_.max_args) return FusionRule::kJoined;
  if (arguments > plan_.max_args_side_by_side) return FusionRule::kTooManyArguments;
  for (const std::vector<NodeId>& part : connected_components(groups_.graph(), nodes))
    if (argument_count(part) > plan_.max_args) return FusionRule::kTooManyArguments;
  return FusionRule::kJoined;
}

bool MergeTrial::may_ask_about(std::span<const GroupId> parts) {
  for (const GroupId g : parts)
    for (const NodeId n : groups_.nodes(g)) {
      count_step();
      const Node& node = groups_.graph().nodes[n];
      const std::size_t operands = node.inputs.size() + node.output_count;
      if (operands > kFewOperands) operands_left_ -= static_cast<std::int64_t>(operands);
    }
  return operands_left_ > 0;
}

MergeAnswer MergeTrial::ask(std::span<const GroupId> parts) {
  if (!may_ask_about(parts)) return {.rule = FusionRule::kNotTried};
  if (const FusionRule limit = within_limits(parts); limit != FusionRule::kJoined) return {.rule = limit};
  const std::vector<NodeId> nodes = groups_.nodes_of(parts);
  if (has_product_of_product(nodes)) return {.rule = FusionRule::kNotOneKernel};
  const TrialResult& together = lowering_.of_one_launch(nodes, groups_.outputs_of(nodes));
  const FusionRule rule = compare(together, parts);
  if (rule != FusionRule::kJoined && rule != FusionRule::kWorseForm) return {.rule = rule};
  std::int64_t bytes_apart = 0;
  double apart = 0, launches_apart = 0;
  for (const GroupId g : parts) {
    count_step();
    bytes_apart += bytes(g);
    apart += of_group(g).seconds;
    launches_apart += launches_of(of_group(g));
  }
  MergeAnswer answer = predicted(together.seconds, apart, together.bytes, bytes_apart);
  // One kernel may need two launches, such as a sum that several blocks share. A merge into one launch always counts as
  // one that saves a launch: what it joins may be views, which have none.
  const bool saves_launch = launches_of(together) < std::max(launches_apart, 2.0);
  if (answer.yes() && !saves_launch && together.seconds > kPlainly * apart) answer.rule = FusionRule::kPredictedSlower;
  if (rule == FusionRule::kWorseForm) answer.rule = rule;
  return answer;
}

// Whether the merged group is one launch, of a form no worse than the parts' forms.
FusionRule MergeTrial::compare(const TrialResult& together, std::span<const GroupId> parts) {
  if (!together.known) return FusionRule::kNotTried;
  if (together.launches > 1) return FusionRule::kNotOneKernel;
  int needed = 0;
  bool some_elements = false, some_row_gemm = allows_row_gemms_;
  for (const GroupId g : parts) {
    count_step();
    const TrialResult& part = of_group(g);
    if (!part.known) return FusionRule::kNotTried;
    needed = std::max(needed, part.strength);
    some_elements = some_elements || part.has_elements;
    some_row_gemm = some_row_gemm || part.row_gemm;
  }
  if (together.row_gemm && !some_row_gemm) return FusionRule::kWorseForm;
  if (together.strength < needed) return FusionRule::kWorseForm;
  if (together.has_elements && !some_elements) return FusionRule::kWorseForm;
  return FusionRule::kJoined;
}

MergeAnswer MergeTrial::check_recompute(GroupId producer, std::span<const GroupId> readers) {
  std::int64_t bytes_apart = bytes(producer), bytes_joined = 0;
  double apart = of_group(producer).seconds, joined = 0;
  for (const GroupId reader : readers) {
    count_step();
    const GroupId both[] = {producer, reader};
    if (const FusionRule limit = within_limits(both); limit != FusionRule::kJoined) return {.rule = limit};
    const TrialResult& together = lowering_.of(groups_.nodes_of(both), groups_.outputs_of(groups_.nodes(reader)));
    if (together.kernels > 1 && together.kernels > of_group(reader).kernels) return {.rule = FusionRule::kNotOneKernel};
    if (const FusionRule rule = compare(together, both); rule != FusionRule::kJoined) return {.rule = rule};
    bytes_apart += bytes(reader);
    bytes_joined += together.bytes;
    apart += of_group(reader).seconds;
    joined += together.seconds;
  }
  return predicted(joined, apart, bytes_joined, bytes_apart);
}

MergeAnswer MergeTrial::check_instead(std::span<const GroupInstead> groups) {
  std::int64_t bytes_before = 0, bytes_after = 0;
  double before = 0, after = 0;
  std::uint32_t launches_before = 0, launches_after = 0;
  for (const GroupInstead& group : groups) {
    count_step();
    if (const FusionRule limit = nodes_within_limits(group.nodes); limit != FusionRule::kJoined) return {.rule = limit};
    const TrialResult& is = of_group(group.group);
    const TrialResult& would_be = lowering_.of(group.nodes, group.outputs);
    if (!is.known || !would_be.known) return {.rule = FusionRule::kNotTried};
    if (would_be.strength < is.strength || would_be.has_elements > is.has_elements || would_be.row_gemm > is.row_gemm)
      return {.rule = FusionRule::kWorseForm};
    launches_before += is.launches;
    launches_after += would_be.launches;
    bytes_before += is.bytes;
    bytes_after += would_be.bytes;
    before += lowering_.seconds(is);
    after += lowering_.seconds(would_be);
  }
  if (launches_after > launches_before) return {.rule = FusionRule::kNotOneKernel};
  MergeAnswer answer = predicted(after, before, bytes_after, bytes_before);
  const bool gains = kRounding * after < before || bytes_after < bytes_before;
  if (answer.yes() && !gains) answer.rule = FusionRule::kPredictedSlower;
  return answer;
}

MergeAnswer MergeTrial::check_siblings(GroupId a, GroupId b) {
  for (const GroupId g : {a, b}) {
    count_step();
    const TrialResult& part = of_group(g);
    if (!part.known) return {.rule = FusionRule::kNotTried};
    if (part.launches != 1 || !part.work) return {.rule = FusionRule::kNotOneKernel};
    if (part.strength > strength(KernelForm::kRowReduction) || part.has_elements)
      return {.rule = FusionRule::kWorseForm};
  }
  if (in_haste() && groups_.nodes(a).size() + groups_.nodes(b).size() > plan_.max_fused_ops)
    return {.rule = FusionRule::kTooManyNodes};
  // Tensors that both groups read count twice, so this is an upper bound.
  const std::uint32_t most = plan_.max_args_side_by_side == 0 ? plan_.max_args : plan_.max_args_side_by_side;
  if (most != 0 && std::uint64_t{arguments_of(a)} + arguments_of(b) > most)
    return {.rule = FusionRule::kTooManyArguments};
  const Work both = horizontally_fused(*of_group(a).work, *of_group(b).work, lowering_.target());
  return predicted(predict(both, lowering_.target()).total, of_group(a).seconds + of_group(b).seconds, 0, 0);
}

void MergeTrial::note_siblings(GroupId a, GroupId b, GroupId kept) {
  TrialResult both = *of_group_[a].result;
  const TrialResult& other = *of_group_[b].result;
  both.kernels += other.kernels;
  both.strength = std::max(both.strength, other.strength);
  both.bytes += other.bytes;
  both.work = horizontally_fused(*both.work, *other.work, lowering_.target());
  both.seconds = predict(*both.work, lowering_.target()).total;
  of_group_[kept] = {.nodes = static_cast<std::uint32_t>(groups_.nodes(kept).size()),
                     .arguments = of_group_[a].arguments + of_group_[b].arguments,
                     .result = &sibling_results_.emplace_back(std::move(both))};
}

std::size_t MergeTrial::argument_count(std::span<const NodeId> nodes) const {
  const Graph& graph = groups_.graph();
  std::vector<ValueId> inputs;
  for (const NodeId n : nodes) {
    count_step();
    for (const ValueId v : graph.nodes[n].inputs) {
      if (v == kNone) continue;
      const Value& value = graph.value(v);
      if (value.kind == Value::Kind::kNumber || value.kind == Value::Kind::kDim) continue;
      if (value.kind == Value::Kind::kResult && std::ranges::binary_search(nodes, value.producer)) continue;
      inputs.push_back(v);
    }
  }
  std::ranges::sort(inputs);
  inputs.erase(std::unique(inputs.begin(), inputs.end()), inputs.end());
  return inputs.size() + groups_.outputs_of(nodes).size();
}

}  // namespace fusec
