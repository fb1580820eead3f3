#include "transforms/choose_layouts.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/pending/disjoint_sets.hpp>
#include <set>

#include "ir/error.h"
#include "ir/spelling.h"
#include "schedule/lowering/trial_lowering.h"
#include "transforms/algebraic_rules.h"

namespace fusec {
namespace {

constexpr std::int64_t kPieceBits = 128;
constexpr std::int64_t kBudget = 100'000;  // nodes that trial lowerings may lower
constexpr double kLayoutGain = 0.95;       // largest ratio of new to old time, launches excluded, that is worth it
constexpr double kSlower = 1.25;           // largest ratio of new to old time that a single group may have
constexpr int kMostLayoutRounds = 6;
constexpr std::uint8_t kSecond = 2;  // in chosen_: dimension 1 goes to the end

bool is_convolution(const Node& node) {
  return node.op->name.starts_with("conv") && node.op->special == Special::kNone;
}

// kValues: values between groups, and the weights of convolutions that read them. kWeights: only weights, of
// convolutions whose images keep their layout.
enum class Looked : std::uint8_t { kValues, kWeights };

class Choice {
 public:
  Choice(const Graph& graph, const FusionPlan& plan, TrialMemory memory, Looked looked)
      : graph_(graph),
        plan_(plan),
        memory_(std::move(memory)),
        groups_(graph, plan),
        uses_(uses_of(graph)),
        ties_(graph.value_count()),
        looked_(looked) {
    memory_.distinguish_forms();
  }

  std::optional<PlanWithLayouts> run() {
    find_values();
    if (chosen_.empty()) return std::nullopt;
    before_ = group_interfaces(graph_, plan_);
    drop_apart_from_convolutions();
    intern_all();
    TrialLowering as_is(graph_, memory_, kBudget);
    for (int round = 0; round < kMostLayoutRounds; ++round) {
      const std::vector<ValueLayout> values = candidates();
      if (values.empty()) return std::nullopt;
      PlanWithLayouts laid = apply_layouts(graph_, plan_, values, constant_readers_);
      if (!weigh(as_is, laid)) continue;
      return laid;
    }
    return std::nullopt;
  }

 private:
  std::vector<ValueLayout> candidates() const {
    std::vector<ValueLayout> values;
    for (ValueId v = 0; v < chosen_.size(); ++v)
      if (chosen_[v]) values.push_back({v, std::size_t{chosen_[v]} - 1});
    return values;
  }

  // Interns the types and attributes that apply_layouts adds, so that they have the same ids in every trial.
  void intern_all() {
    for (const ValueLayout& layout : candidates()) {
      TensorType type = graph_.tensor(layout.value);
      const Shape shape = type.shape;
      const std::vector<std::int64_t> last = channels_last(shape.size(), layout.channels);
      for (std::size_t d = 0; d < shape.size(); ++d) type.shape[d] = shape[static_cast<std::size_t>(last[d])];
      graph_.intern(ValueType(type));
      for (auto dims : {last, channels_first(shape.size(), layout.channels)}) {
        Attributes attributes;
        attributes.set("dims", std::move(dims));
        graph_.intern(std::move(attributes));
      }
    }
  }

  bool is_ours(GroupId g) const {
    const FusionGroup& group = plan_.groups[g];
    return group.code == GroupCode::kFusec &&
           std::ranges::all_of(group.nodes, [&](NodeId n) { return graph_.nodes[n].op->special == Special::kNone; });
  }

  // Whether the channels of one position are whole 16-byte pieces, and there is more than one position. At most
  // max(behind, 3) dimensions follow the channels.
  bool has_channels(ValueId v, std::size_t channels, std::size_t behind = 0) const {
    if (graph_.type(v).is_tuple) return false;
    const TensorType& type = graph_.tensor(v);
    if (type.rank() < channels + 2 || type.rank() > channels + 1 + std::max<std::size_t>(behind, 3)) return false;
    const auto count = type.shape[channels].as_constant();
    bool of_one = true;
    for (std::size_t d = channels + 1; d < type.rank(); ++d) of_one = of_one && type.shape[d].is(1);
    return count && *count > 0 && *count * bits(type.dtype) % kPieceBits == 0 && !of_one;
  }

  // By value: 1 for values that the model already permutes to or from channels-last, and for values connected to them
  // by ops with operands and results of one shape.
  std::vector<std::uint8_t> find_channels_last() const {
    boost::disjoint_sets_with_storage<> alike(graph_.value_count());
    std::vector<ValueId> last;
    for (const Node& node : graph_.nodes) {
      if (node.output_count != 1 || node.inputs.empty() || graph_.type(node.first_output).is_tuple) continue;
      const ValueId to = node.first_output;
      const TensorType& type = graph_.tensor(to);
      if (node.op->name == "permute" || node.op->name == "transpose") {
        const std::vector<std::int64_t> dims = permutation_of(graph_, node, type.rank());
        if (type.rank() > 2 && dims == channels_last(type.rank(), 1)) last.push_back(to);
        if (type.rank() > 2 && dims == channels_first(type.rank(), 1)) last.push_back(node.inputs[0]);
        continue;
      }
      if (node.op->view || node.op->special != Special::kNone || is_convolution(node)) continue;
      for (const ValueId v : node.inputs)
        if (v != kNone && !graph_.type(v).is_tuple && graph_.tensor(v).shape == type.shape) alike.union_set(v, to);
    }
    std::vector<std::uint8_t> has(graph_.value_count(), 0);
    for (const ValueId v : last) has[alike.find_set(v)] = 1;
    for (ValueId v = 0; v < has.size(); ++v) has[v] = has[alike.find_set(v)];
    return has;
  }

  void find_values() {
    const std::vector<std::uint8_t> is_last = find_channels_last();
    chosen_.assign(graph_.value_count(), 0);
    constant_readers_.assign(graph_.nodes.size(), 0);
    std::vector<std::uint8_t> is_output(graph_.value_count(), 0);
    for (const ValueId v : graph_.outputs) is_output[v] = 1;
    for (NodeId n = 0; n < graph_.nodes.size(); ++n) {
      const Node& node = graph_.nodes[n];
      for (ValueId v = node.first_output; v < node.first_output + node.output_count; ++v)
        chosen_[v] = looked_ == Looked::kValues && !is_output[v] && !is_last[v] && has_channels(v, 1) &&
                             is_between_groups(n, v) && !is_prepared(n)
                         ? kSecond
                         : 0;
    }
    for (NodeId n = 0; n < graph_.nodes.size(); ++n) take_weights(n);
    if (std::ranges::all_of(chosen_, [](std::uint8_t c) { return c == 0; })) chosen_.clear();
  }

  bool is_between_groups(NodeId producer, ValueId v) const {
    const std::vector<GroupId> home = groups_.of(producer);
    if (home.size() != 1 || !is_ours(home[0])) return false;
    bool between = false;
    for (const NodeId n : uses_.of(v)) {
      const std::vector<GroupId> takers = groups_.of(n);
      if (takers == home) continue;
      between = true;
      if (!std::ranges::all_of(takers, [&](GroupId g) { return g != home[0] && is_ours(g); })) return false;
    }
    return between;
  }

  bool is_prepared(NodeId n) const { return plan_.groups[groups_.of(n).front()].prepared; }

  // Takes the weights of convolution n if their window has more than one point; 1x1 weights are contiguous along the
  // channels already. Looks through views and casts to the stored value, which may have leading dimensions of 1.
  void take_weights(NodeId n) {
    const Node& node = graph_.nodes[n];
    if (!is_convolution(node)) return;
    const std::vector<GroupId> home = groups_.of(n);
    if (home.size() != 1 || !is_ours(home[0])) return;
    if (looked_ == Looked::kValues && !chosen_[node.inputs[0]] && !may_come_with_channels_last(node.inputs[0], home))
      return;
    const std::size_t space = graph_.tensor(node.inputs[0]).rank() - 2;
    NodeId reader = n;
    ValueId w = node.inputs[1];
    for (NodeId producer = graph_.value(w).producer; producer != kNone && groups_.of(producer) == home;
         producer = graph_.value(w).producer) {
      const Node& view = graph_.nodes[producer];
      if ((!view.op->view && view.op->name != "cast") || !has_weights_at_end(view.inputs[0], node.inputs[1])) return;
      reader = producer;
      w = view.inputs[0];
    }
    const bool transposed = node.op->name.starts_with("conv_transpose");
    const std::size_t channels = graph_.tensor(w).rank() - space - (transposed ? 2 : 1);
    if (!has_channels(w, channels, transposed ? space + 1 : space)) return;
    const NodeId producer = graph_.value(w).producer;
    const bool constant = graph_.value(w).kind == Value::Kind::kConstant;
    if (!constant && (producer == kNone || !is_prepared(producer) || !is_between_groups(producer, w))) return;
    chosen_[w] = static_cast<std::uint8_t>(channels + 1);
    weights_.push_back(w);
    if (constant) constant_readers_[reader] = 1;
  }

  // Whether the convolution's own group permutes the image, or makes it of a chosen value. Models with channels-last
  // images permute like this.
  bool may_come_with_channels_last(ValueId image, const std::vector<GroupId>& home) const {
    constexpr std::size_t kMostNodes = 16;
    std::vector<ValueId> seen{image};
    for (std::size_t i = 0; i < seen.size() && i < kMostNodes; ++i) {
      const NodeId producer = graph_.value(seen[i]).producer;
      if (chosen_[seen[i]]) return true;
      if (producer == kNone || groups_.of(producer) != home) continue;
      const Node& node = graph_.nodes[producer];
      if (node.op->name == "permute" || node.op->name == "transpose") return true;
      for (const ValueId v : node.inputs)
        if (v != kNone && std::ranges::find(seen, v) == seen.end()) seen.push_back(v);
    }
    return false;
  }

  // Whether v has the shape of the weights after leading dimensions of 1.
  bool has_weights_at_end(ValueId v, ValueId weights) const {
    const Shape &whole = graph_.tensor(v).shape, &part = graph_.tensor(weights).shape;
    if (whole.size() < part.size()) return false;
    const auto more = static_cast<std::ptrdiff_t>(whole.size() - part.size());
    return std::all_of(whole.begin(), whole.begin() + more, [](const Dim& d) { return d.is(1); }) &&
           std::equal(part.begin(), part.end(), whole.begin() + more);
  }

  // Ties values that one group reads or writes, and drops those that are tied to no convolution's image or weights.
  void drop_apart_from_convolutions() {
    for (const GroupInterface& interface : before_) {
      ValueId first = kNone;
      for (const auto* values : {&interface.inputs, &interface.outputs})
        for (const ValueId v : *values) {
          if (!chosen_[v]) continue;
          if (first == kNone) first = v;
          ties_.union_set(v, first);
        }
    }
    std::vector<std::uint8_t> convolved(graph_.value_count(), 0);
    for (const Node& node : graph_.nodes)
      if (is_convolution(node) && chosen_[node.inputs[0]]) convolved[ties_.find_set(node.inputs[0])] = 1;
    for (const ValueId w : weights_) convolved[ties_.find_set(w)] = 1;
    for (ValueId v = 0; v < chosen_.size(); ++v)
      if (!convolved[ties_.find_set(v)]) chosen_[v] = 0;
  }

  bool touches(GroupId g) const {
    const auto is_chosen = [&](ValueId v) { return chosen_[v] != 0; };
    return std::ranges::any_of(before_[g].inputs, is_chosen) || std::ranges::any_of(before_[g].outputs, is_chosen);
  }

  // Compares every group that reads or writes a chosen value before and after. Returns false if it gave up any value.
  bool weigh(TrialLowering& as_is, const PlanWithLayouts& laid) {
    TrialLowering trial(laid.graph, memory_, kBudget);
    const std::vector<GroupInterface> after = group_interfaces(laid.graph, laid.plan);
    std::vector<double> gain(graph_.value_count(), 0), whole(graph_.value_count(), 0);
    std::vector<GroupId> spoiled;
    for (GroupId g = 0; g < plan_.groups.size(); ++g) {
      if (!touches(g)) continue;
      const std::vector<NodeId> nodes = plan_.groups[g].nodes, nodes_now = laid.plan.groups[g].nodes;
      const TrialResult was = as_is.of(nodes, before_[g].outputs), now = trial.of(nodes_now, after[g].outputs);
      if (is_spoiled(was, now)) {
        spoiled.push_back(g);
        continue;
      }
      if (plan_.groups[g].prepared) continue;
      const std::size_t of = tie_of(g);
      gain[of] += was.form_seconds - now.form_seconds;
      whole[of] += was.form_seconds - was.launches * memory_.target().launch_seconds;
    }
    for (const GroupId g : spoiled) give_up(g);
    if (!spoiled.empty()) return false;
    bool kept = true;
    for (ValueId v = 0; v < chosen_.size(); ++v) {
      const std::size_t of = ties_.find_set(v);
      if (!chosen_[v] || gain[of] > (1 - kLayoutGain) * whole[of]) continue;
      chosen_[v] = 0;
      kept = false;
    }
    return kept;
  }

  static bool is_spoiled(const TrialResult& was, const TrialResult& now) {
    return !was.known || !now.known || now.kernels != was.kernels || now.launches > was.launches ||
           now.strength < was.strength || (now.has_elements && !was.has_elements) ||
           now.form_seconds > kSlower * was.form_seconds;
  }

  std::size_t tie_of(GroupId g) {
    for (const auto* values : {&before_[g].inputs, &before_[g].outputs})
      for (const ValueId v : *values)
        if (chosen_[v]) return ties_.find_set(v);
    throw InternalError("a group without values that are laid out");
  }

  void give_up(GroupId g) {
    for (const auto* values : {&before_[g].inputs, &before_[g].outputs})
      for (const ValueId v : *values) chosen_[v] = 0;
  }

  Graph graph_;
  const FusionPlan& plan_;
  TrialMemory memory_;
  const GroupsOfNodes groups_;
  const Uses uses_;
  std::vector<GroupInterface> before_;
  std::vector<std::uint8_t> chosen_;            // by value: 1 + the dimension that goes last; 0: unchanged
  std::vector<std::uint8_t> constant_readers_;  // by node
  boost::disjoint_sets_with_storage<> ties_;    // of values
  std::vector<ValueId> weights_;                // chosen weights
  const Looked looked_;
};

}  // namespace

std::optional<PlanWithLayouts> choose_layouts(const Graph& graph, const FusionPlan& plan, const TrialMemory& trials) {
  if (std::ranges::none_of(graph.nodes, is_convolution)) return std::nullopt;
  std::optional<PlanWithLayouts> laid = Choice(graph, plan, trials.without_answers(), Looked::kValues).run();
  // Channels-last weights can also pay for images that stay channels-first.
  auto with_weights =
      Choice(laid ? laid->graph : graph, laid ? laid->plan : plan, trials.without_answers(), Looked::kWeights).run();
  return with_weights ? std::move(with_weights) : std::move(laid);
}

std::vector<std::string> layout_sentences(const Graph& graph, const PlanWithLayouts& laid,
                                          std::span<const NodeId> nodes) {
  std::set<std::string> asked;
  for (const NodeId n : nodes) {
    const Node& node = graph.nodes[n];
    for (ValueId v = node.first_output; v < node.first_output + node.output_count; ++v)
      asked.insert(graph.value(v).name);
    for (const ValueId v : node.inputs)
      if (v != kNone && graph.value(v).kind == Value::Kind::kConstant) asked.insert(graph.value(v).name);
  }
  std::vector<std::string> sentences;
  for (const Node& node : laid.graph.nodes) {
    if (graph.find_node(node.name) != kNone) continue;
    const std::string& of = laid.graph.value(node.inputs[0]).name;
    if (asked.contains(of))
      sentences.push_back(fmt::format("{} lies in memory with its channels last, as {}", in_quotes(of),
                                      to_string(laid.graph.type(node.first_output), laid.graph.symbols)));
  }
  return sentences;
}

void verify_laid_out(const Graph& graph, const FusionPlan& plan, const PlanWithLayouts& laid) {
  const auto fault = [](const std::string& what) { throw InternalError("layouts: " + what); };
  if (laid.plan.groups.size() < plan.groups.size()) fault("a group is missing");
  for (GroupId g = 0; g < laid.plan.groups.size(); ++g) {
    std::vector<std::string> was, now;
    if (g < plan.groups.size())
      for (const NodeId n : plan.groups[g].nodes) was.push_back(graph.nodes[n].name);
    for (const NodeId n : laid.plan.groups[g].nodes)
      if (graph.find_node(laid.graph.nodes[n].name) != kNone)
        now.push_back(laid.graph.nodes[n].name);
      else if (laid.graph.nodes[n].op->name != "permute")
        fault("node " + laid.graph.nodes[n].name + " was not there");
    if (was != now) fault("group " + laid.plan.groups[g].name + " has other nodes");
    if (g >= plan.groups.size() && !laid.plan.groups[g].prepared) fault("a group more is launched");
  }
}

}  // namespace fusec
