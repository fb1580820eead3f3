#include "transforms/merge_trial.h"

#include <algorithm>
#include <bit>

#include "analysis/cost_model.h"
#include "analysis/kernel_forms.h"
#include "analysis/lower.h"
#include "analysis/side_by_side.h"

namespace fusec {
namespace {

// Nodes that may be lowered in trials of one model, each of some fifty microseconds; in large graphs fewer, since those
// have many equal layers, or too many different ones for it to matter.
constexpr std::int64_t kMostNodesTried = 30'000, kFewestNodesTried = 1'500;
constexpr std::uint32_t kRefusalsUntilHopeless = 8;
constexpr double kRounding = 1 + 1e-9;

std::int64_t budget_for(std::size_t nodes) {
  const auto fair = kMostNodesTried * 20'000 / static_cast<std::int64_t>(nodes + 1);
  return std::clamp(fair, kFewestNodesTried, kMostNodesTried);
}

std::uint64_t mixed(std::uint64_t hash, std::uint64_t word) {
  hash = (hash ^ word) * 0xff51afd7ed558ccdu;
  return hash ^ hash >> 32;
}

}  // namespace

MergeTrial::MergeTrial(const GroupGraph& groups, std::span<const OpPattern> kinds, const FusionPlan& plan,
                       const Target& target)
    : groups_(groups),
      kinds_(kinds),
      plan_(plan),
      target_(target),
      external_(groups.graph().value_count(), 0),
      external_stamp_(groups.graph().value_count(), 0),
      budget_(budget_for(groups.graph().nodes.size())),
      of_group_(groups.size()),
      open_(groups.size(), 0),
      bytes_(groups.graph()) {}

bool MergeTrial::open(GroupId g) {
  if (open_[g] != 0) return open_[g] == 2;
  const bool answer = plan_.groups[g].code == GroupCode::kFusec && std::ranges::all_of(groups_.nodes(g), [&](NodeId n) {
                        const Node& node = groups_.graph().nodes[n];
                        return node.fuse && kinds_[n] != OpPattern::kOpaque &&
                               (node.op->formula || node.op->special == Special::kTuple);
                      });
  open_[g] = answer ? 2 : 1;
  return answer;
}

const MergeTrial::Lowered& MergeTrial::of_group(GroupId g) {
  OfGroup& known = of_group_[g];
  const std::span<const NodeId> nodes = groups_.nodes(g);
  if (known.nodes != nodes.size()) known = {nodes.size(), lowered(nodes)};
  return known.lowered;
}

std::uint64_t MergeTrial::kind_of_question(GroupId a, GroupId b, NodeId from, NodeId to) const {
  const Graph& graph = groups_.graph();
  std::uint64_t kind = mixed(groups_.nodes(a).size(), groups_.nodes(b).size());
  for (const NodeId n : {from, to}) {
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

FusionRule MergeTrial::within_limits(std::span<const GroupId> parts) const {
  std::size_t count = 0;
  for (const GroupId g : parts) count += groups_.nodes(g).size();
  if (count > plan_.max_fused_ops) return FusionRule::kTooManyNodes;
  if (plan_.max_args != 0 && argument_count(groups_.nodes_of(parts)) > plan_.max_args)
    return FusionRule::kTooManyArguments;
  return FusionRule::kJoined;
}

FusionRule MergeTrial::ask(std::span<const GroupId> parts) {
  if (const FusionRule limit = within_limits(parts); limit != FusionRule::kJoined) return limit;
  const Lowered together = lowered(groups_.nodes_of(parts));
  const FusionRule rule = compare(together, parts);
  if (rule != FusionRule::kJoined) return rule;
  std::int64_t apart = 0;
  double seconds_apart = 0;
  for (const GroupId g : parts) {
    apart += bytes(g);
    seconds_apart += of_group(g).seconds;
  }
  if (together.bytes > apart) return FusionRule::kMoreBytes;
  return together.seconds > kRounding * seconds_apart ? FusionRule::kPredictedSlower : FusionRule::kJoined;
}

// Whether what these become together is one launch, of a form no worse than theirs.
FusionRule MergeTrial::compare(const Lowered& together, std::span<const GroupId> parts) {
  if (!together.known) return FusionRule::kNotTried;
  if (together.launches > 1) return FusionRule::kNotOneKernel;
  int needed = 0;
  bool some_elements = false, some_row_product = row_products_;
  for (const GroupId g : parts) {
    const Lowered& part = of_group(g);
    if (!part.known) return FusionRule::kNotTried;
    needed = std::max(needed, part.strength);
    some_elements = some_elements || part.has_elements;
    some_row_product = some_row_product || part.row_product;
  }
  if (together.row_product && !some_row_product) return FusionRule::kWorseForm;
  if (together.strength < needed) return FusionRule::kWorseForm;
  if (together.has_elements && !some_elements) return FusionRule::kWorseForm;
  return FusionRule::kJoined;
}

FusionRule MergeTrial::ask_again(GroupId producer, GroupId reader, std::int64_t& bytes) {
  const GroupId parts[] = {producer, reader};
  if (const FusionRule limit = within_limits(parts); limit != FusionRule::kJoined) return limit;
  const Lowered together = lowered(groups_.nodes_of(parts), groups_.outputs_of(groups_.nodes(reader)));
  bytes = together.bytes;
  return together.kernels > 1 ? FusionRule::kNotOneKernel : compare(together, parts);
}

FusionRule MergeTrial::ask_beside(GroupId a, GroupId b) {
  const GroupId both[] = {a, b};
  for (const GroupId g : both) {
    const Lowered& part = of_group(g);
    if (!part.known) return FusionRule::kNotTried;
    if (part.launches != 1) return FusionRule::kNotOneKernel;
    if (part.strength > strength(KernelForm::kRows) || part.has_elements) return FusionRule::kWorseForm;
  }
  return within_limits(both);
}

std::size_t MergeTrial::argument_count(std::span<const NodeId> nodes) const {
  const Graph& graph = groups_.graph();
  std::vector<ValueId> inputs;
  for (const NodeId n : nodes) {
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

const MergeTrial::Lowered& MergeTrial::lowered(std::span<const NodeId> nodes, const std::vector<ValueId>& outputs) {
  static const Lowered kUnknown{.known = false};
  write_key(nodes, outputs);
  const auto found = tried_.find(key_);
  if (found != tried_.end()) return found->second;
  budget_ -= static_cast<std::int64_t>(nodes.size());
  if (budget_ < 0) return kUnknown;
  Lowered result;
  const std::vector<LoweredUnit> units = lower_group(groups_.graph(), {nodes.begin(), nodes.end()}, outputs);
  for (const std::vector<std::uint32_t>& launch : launches_of(units))
    result.launches += units[launch[0]].kind == LoweredUnit::Kind::kAlias ? 0 : 1;
  for (const LoweredUnit& unit : units) {
    if (unit.kind == LoweredUnit::Kind::kAlias) continue;
    ++result.kernels;
    if (unit.kind != LoweredUnit::Kind::kKernel) continue;
    for (const ValueId v : inputs_of(unit.kernel)) result.bytes += bytes_.of(v);
    for (const KernelOutput& output : unit.kernel.outputs) result.bytes += bytes_.of(output.value);
    const KernelForm form = form_of(unit.kernel).form;
    result.strength = std::max(result.strength, strength(form));
    result.has_elements = result.has_elements || form == KernelForm::kElements;
    result.row_product = result.row_product || form == KernelForm::kRowProduct;
  }
  result.seconds = predict(groups_.graph(), units, true, target_).total;
  return tried_.emplace(key_, result).first->second;
}

// Nodes as op, attributes and types, with operands as places in the list, or as numbers in order of first use; what
// else lowering looks at (numbers, dimensions, constants that may be literals, what a tuple holds) by itself.
void MergeTrial::write_key(std::span<const NodeId> nodes, std::span<const ValueId> outputs) {
  const Graph& graph = groups_.graph();
  key_.clear();
  ++now_;
  std::uint32_t externals = 0;
  constexpr std::uint64_t kInside = std::uint64_t{1} << 62, kNumber = std::uint64_t{2} << 62,
                          kItself = std::uint64_t{3} << 62;
  std::size_t next_output = 0;
  for (const NodeId n : nodes) {
    const Node& node = graph.nodes[n];
    key_.push_back(std::bit_cast<std::uintptr_t>(node.op));
    key_.push_back(std::uint64_t{node.attributes} << 32 | std::uint64_t{node.inputs.size()} << 8 | node.output_count);
    for (ValueId v = node.first_output; v < node.first_output + node.output_count; ++v) {
      const bool is_output = next_output < outputs.size() && outputs[next_output] == v;
      next_output += is_output ? 1 : 0;
      key_.push_back(std::uint64_t{graph.value(v).type} << 1 | std::uint64_t{is_output});
    }
    for (const ValueId v : node.inputs) {
      if (v == kNone) {
        key_.push_back(kItself | v);
        continue;
      }
      const Value& value = graph.value(v);
      if (value.kind == Value::Kind::kNumber) {
        const Scalar& number = graph.number(v);
        key_.push_back(kNumber | static_cast<std::uint64_t>(number.category));
        key_.push_back(std::bit_cast<std::uint64_t>(number.as_double()));
        key_.push_back(static_cast<std::uint64_t>(number.integer));
        continue;
      }
      if (value.kind == Value::Kind::kResult) {
        const auto at = std::ranges::lower_bound(nodes, value.producer);
        if (at != nodes.end() && *at == value.producer) {
          key_.push_back(kInside | static_cast<std::uint64_t>(at - nodes.begin()) << 16 | value.index);
          continue;
        }
      }
      const Constant* constant = graph.constant_of(v);
      if (value.kind == Value::Kind::kDim || (constant && constant->data) || node.op->special == Special::kTuple) {
        key_.push_back(kItself | v);
        continue;
      }
      if (external_stamp_[v] != now_) {
        external_stamp_[v] = now_;
        external_[v] = externals++;
      }
      key_.push_back(std::uint64_t{graph.value(v).type} << 32 | external_[v]);
    }
  }
}

std::size_t MergeTrial::KeyHash::operator()(const std::vector<std::uint64_t>& key) const {
  std::uint64_t hash = 0x9e3779b97f4a7c15u;
  for (const std::uint64_t word : key) {
    hash = (hash ^ word) * 0xff51afd7ed558ccdu;
    hash ^= hash >> 32;
  }
  return hash;
}

}  // namespace fusec
