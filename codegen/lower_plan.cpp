#include "codegen/lower_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "analysis/column_folds.h"
#include "analysis/kernel_signature.h"
#include "analysis/lower.h"
#include "analysis/side_by_side.h"
#include "codegen/compile_time.h"
#include "codegen/content_key.h"
#include "codegen/guarded_schedule.h"
#include "codegen/identifiers.h"
#include "codegen/in_place.h"
#include "codegen/kernel_writer.h"
#include "codegen/parameter_table.h"
#include "codegen/repeated_code.h"
#include "codegen/schedules/column_folds.h"
#include "codegen/schedules/schedules.h"
#include "codegen/schedules/side_by_side.h"
#include "codegen/schedules/special.h"
#include "codegen/tuning_database.h"
#include "ir/error.h"
#include "ir/fusion_plan.h"
#include "ir/type.h"

namespace fusec {
namespace {

// Scratch memory of parameter tables: numbers that no schedule takes.
constexpr std::uint32_t kFirstTable = 1u << 16;

// Kernels made for a signature, and the tensors they were made with.
struct Made {
  std::vector<std::uint32_t> kernels;  // indices into LoweredPlan::kernels
  std::vector<ValueId> tensors;
  bool too_much = false;  // code for one kernel
  struct Special {
    Guard guard;
    std::vector<std::uint32_t> kernels;  // no more than the general ones
  };
  std::vector<Special> special = {};
};

class PlanLowering {
 public:
  PlanLowering(const Graph& graph, const Target& target, const EmitOptions& options)
      : graph_(graph), target_(target), options_(options) {
    plan_.storage_of.resize(graph.value_count());
    for (ValueId v = 0; v < graph.value_count(); ++v) plan_.storage_of[v] = v;
    plan_.numerics = numerics_asked_for(options);
    plan_.most_shared_bytes = target.shared_bytes_per_block;
    for (const ValueId v : graph.outputs) is_output_.insert(v);
  }

  // `together`: kernels that need nothing of one another are one launch.
  void add_group(const std::vector<NodeId>& nodes, const std::vector<ValueId>& outputs, bool together) {
    plan_.groups.emplace_back();
    std::vector<LoweredUnit> units = lower_group(graph_, nodes, outputs, options_.round_intermediates);
    for (LoweredUnit& unit : units) unit.kernel.numerics = options_.numerics;
    if (!together) {
      for (const LoweredUnit& unit : units) add_unit(unit);
      return;
    }
    if (units.size() == 1) return add_unit(units[0]);
    const FormsOfUnits forms = forms_of(units);
    folded_ = folded_units(units, forms, graph_, target_);
    for (const std::vector<std::uint32_t>& launch : launches_of(units, forms, graph_, target_))
      add_launch(units, launch);
  }

  // A group that was claimed for a call of cuBLASLt: what stands before the product is views alone. Where it is none
  // after all (values inside of it have become outputs, for whoever looks for an error), it is a group as others.
  void add_matrix_call(const std::vector<NodeId>& nodes, const std::vector<ValueId>& outputs, bool together) {
    MatrixCallAnswer answer = find_matrix_call(graph_, nodes, outputs, target_, options_.round_intermediates);
    if (!answer.call) return add_group(nodes, outputs, together);
    plan_.groups.emplace_back();
    for (const LoweredUnit& unit : lower_group(graph_, nodes, outputs, options_.round_intermediates))
      if (unit.kind == LoweredUnit::Kind::kAlias) add_alias(unit.value, unit.of);
    LoweredStep step{.kind = LoweredStep::Kind::kMatrixCall,
                     .parameters = {{.kind = KernelParameter::Kind::kWorkspace,
                                     .name = "workspace",
                                     .size = workspace_bytes_of_matrix_calls(target_)}},
                     .reads = reads_of(*answer.call),
                     .writes = writes_of(*answer.call),
                     .nodes = nodes};
    for (const ValueId v : step.writes) claim(v);
    if (nothing_in(answer.call->d.value)) return;
    if (library_scratch_ == kNone) {
      library_scratch_ = static_cast<std::uint32_t>(plan_.scratch_bytes.size());
      plan_.scratch_bytes.push_back(step.parameters[0].size);
    }
    step.parameters[0].scratch = library_scratch_;
    step.matrix = std::make_shared<const MatrixCall>(*std::move(answer.call));
    steps().push_back(std::move(step));
  }

  // The group added last is prepared: to those that are not, its results are constants.
  void note_prepared(std::span<const NodeId> nodes) {
    plan_.groups.back().prepared = true;
    for (const NodeId n : nodes)
      for (std::uint32_t i = 0; i < graph_.nodes[n].output_count; ++i)
        prepared_.insert(graph_.nodes[n].first_output + i);
  }

  LoweredPlan finish() { return std::move(plan_); }

 private:
  // A kernel as the first of its signature made it, to stand beside others.
  struct Part {
    std::vector<KernelSource> sources;    // one after the other; none where it cannot
    std::vector<SpecialSources> special;  // of no more sources
    std::vector<ValueId> tensors;
  };

  std::vector<LoweredStep>& steps() { return plan_.groups.back().steps; }

  void add_unit(const LoweredUnit& unit) {
    switch (unit.kind) {
      case LoweredUnit::Kind::kKernel:
        add_kernel(unit.kernel);
        break;
      case LoweredUnit::Kind::kSpecial:
        add_special(unit.node);
        break;
      case LoweredUnit::Kind::kAlias:
        add_alias(unit.value, unit.of);
        break;
    }
  }

  // A part with a launch's tensors in place of those that it was made with.
  struct PlacedPart {
    const Part* part = nullptr;
    std::vector<ValueId> tensors;
  };

  // What was measured of a kernel.
  struct Wanted {
    std::string key, way;  // "": as predicted
  };
  Wanted wanted_of(std::string signature) const {
    for (const Symbol& symbol : graph_.symbols) signature += fmt::format("{};", symbol.hint);
    Wanted wanted{.key = content_key(signature), .way = ""};
    if (const TunedKernel* const tuned = options_.tuning ? options_.tuning->find(target_.arch, wanted.key) : nullptr)
      wanted.way = tuned->choice;
    return wanted;
  }

  // A tuning database of another version may name a way that there no longer is.
  void warn_of_unknown(const Wanted& wanted, const GuardedSources& sources) {
    if (wanted.way.empty()) return;
    std::vector<std::string> ways;
    const auto see = [&](const std::vector<KernelSource>& made) {
      for (const KernelSource& source : made)
        ways.insert(ways.end(), source.tuning.ways.begin(), source.tuning.ways.end());
    };
    see(sources.general);
    for (const SpecialSources& special : sources.special) see(special.sources);
    if (std::ranges::find(ways, wanted.way) != ways.end()) return;
    const TunedKernel& tuned = *options_.tuning->find(target_.arch, wanted.key);
    plan_.warnings.push_back(fmt::format(
        "the tuning database names an unknown way for kernel \"{}\" on {}: found \"{}\", expected one of \"{}\"; "
        "the predicted way is taken (measure again with fusec-run --tune)",
        tuned.kernel, target_.arch, wanted.way, fmt::join(ways, "\", \"")));
  }

  // The form that is taken where symbols are what is expected of them.
  std::vector<KernelSource>& as_expected(GuardedSources& sources) const {
    std::vector<std::int64_t> hints;
    for (const Symbol& symbol : graph_.symbols) hints.push_back(symbol.hint);
    const auto form = std::ranges::find_if(sources.special,
                                           [&](const SpecialSources& special) { return holds(special.guard, hints); });
    return form == sources.special.end() ? sources.general : form->sources;
  }

  bool makes_nothing(const Kernel& kernel) const {
    return std::ranges::all_of(kernel.outputs, [&](const KernelOutput& o) { return nothing_in(o.value); });
  }

  const Part& part_of(const Kernel& kernel, const KernelSignature& signature) {
    const auto [it, fresh] = parts_.try_emplace(signature.text);
    if (fresh) {
      it->second.tensors = signature.tensors;
      GuardedSources made = schedule_with_guard(kernel, graph_, beside_others(target_), wanted_of(signature.text).way);
      const auto usable = [&](std::vector<KernelSource>& sources) {
        if (sources.empty() || !std::ranges::all_of(sources, can_be_part)) return false;
        if (sources.size() == 1) sources[0].in_place = find_in_place(kernel, graph_, sources[0], true);
        return true;
      };
      if (usable(made.general)) it->second.sources = std::move(made.general);
      for (SpecialSources& special : made.special)
        if (special.sources.size() <= it->second.sources.size() && usable(special.sources))
          it->second.special.push_back(std::move(special));
    }
    return it->second;
  }

  // As one launch if that may be, else as two, and so on.
  void add_launch(const std::vector<LoweredUnit>& units, std::span<const std::uint32_t> launch) {
    if (launch.size() == 1) return add_unit(units[launch[0]]);
    if (const FoldedUnits* const folded = folded_at(launch, 0); folded && folded->columns.size() + 1 == launch.size())
      return add_folded(units, *folded);
    const Joined together = add_together(units, launch);
    if (together == Joined::kYes) return;
    if (together == Joined::kNo && add_side_by_side(units, launch)) return;
    add_launch(units, launch.first(launch.size() / 2));
    add_launch(units, launch.subspan(launch.size() / 2));
  }

  // Units of a launch, from this one on, that are one kernel's work; else null.
  const FoldedUnits* folded_at(std::span<const std::uint32_t> launch, std::size_t at) const {
    const auto folded = std::ranges::find(folded_, launch[at], &FoldedUnits::rows);
    if (folded == folded_.end() || folded->columns.size() >= launch.size() - at) return nullptr;
    return std::ranges::equal(folded->columns, launch.subspan(at + 1, folded->columns.size())) ? &*folded : nullptr;
  }

  std::vector<KernelSource> sources_of_folded(const std::vector<LoweredUnit>& units, const FoldedUnits& folded) const {
    return column_folds(folded.folds, units[folded.rows].kernel, graph_, target_);
  }

  // In launches of its own; where its rows do not stand in registers after all, as kernels one after the other.
  void add_folded(const std::vector<LoweredUnit>& units, const FoldedUnits& folded) {
    const KernelSignature signature = signature_of(folded.folds, graph_);
    const auto [it, fresh] = made_.try_emplace(signature.text);
    Made& made = it->second;
    if (fresh) {
      made.tensors = signature.tensors;
      made.kernels = keep(sources_of_folded(units, folded));
    }
    if (made.kernels.empty()) {
      add_kernel(units[folded.rows].kernel);
      for (const std::uint32_t u : folded.columns) add_kernel(units[u].kernel);
      return;
    }
    for (const KernelOutput& output : units[folded.rows].kernel.outputs) claim(output.value);
    for (const KernelOutput& output : folded.folds.columns.kernel.outputs) claim(output.value);
    launch_made(made, signature.tensors, folded.nodes(units));
  }

  const Part& part_of_folded(const std::vector<LoweredUnit>& units, const FoldedUnits& folded,
                             const KernelSignature& signature) {
    const auto [it, fresh] = parts_.try_emplace(signature.text);
    if (!fresh) return it->second;
    it->second.tensors = signature.tensors;
    std::vector<KernelSource> sources = sources_of_folded(units, folded);
    if (std::ranges::all_of(sources, can_be_part)) it->second.sources = std::move(sources);
    return it->second;
  }

  // Kernels of one launch: are they one, or none, or more code than NVRTC should get at a time?
  enum class Joined { kNo, kTooMuch, kYes };

  // Products whose tiles blocks go through one after the other.
  Joined add_together(const std::vector<LoweredUnit>& units, std::span<const std::uint32_t> launch) {
    std::vector<const Kernel*> kernels;
    std::vector<KernelSignature> signatures;
    std::vector<ValueId> tensors;  // as the parts' signatures name them
    std::vector<NodeId> nodes;
    std::string key = "together;";
    for (const std::uint32_t u : launch) {
      const Kernel& kernel = units[u].kernel;
      if (makes_nothing(kernel)) continue;
      const KernelSignature signature = signature_of(kernel, graph_);
      key += signature.text;
      for (const ValueId v : signature.tensors) {
        auto at = std::ranges::find(tensors, v);
        if (at == tensors.end()) at = tensors.insert(tensors.end(), v);
        key += "p" + std::to_string(at - tensors.begin()) + ";";
      }
      kernels.push_back(&kernel);
      signatures.push_back(signature);
      nodes.insert(nodes.end(), kernel.nodes.begin(), kernel.nodes.end());
    }
    if (kernels.size() < 2) return Joined::kNo;
    std::ranges::sort(nodes);
    nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
    const auto [it, fresh] = made_.try_emplace(std::move(key));
    if (fresh) {
      it->second.tensors = tensors;
      std::vector<KernelSource> sources;
      if (auto source = schedule_together(kernels, graph_, target_)) sources.push_back(*std::move(source));
      it->second.too_much = !sources.empty() && is_too_much(sources[0]);
      if (!it->second.too_much) it->second.kernels = keep(std::move(sources));
      if (!it->second.kernels.empty() && !graph_.symbols.empty()) {
        std::vector<PlacedPart> parts;
        for (std::size_t i = 0; i < kernels.size(); ++i)
          parts.push_back({&part_of(*kernels[i], signatures[i]), signatures[i].tensors});
        add_few_rows(it->second, parts, nodes);
      }
    }
    if (it->second.kernels.empty()) return it->second.too_much ? Joined::kTooMuch : Joined::kNo;
    for (const std::uint32_t u : launch)
      for (const KernelOutput& output : units[u].kernel.outputs) claim(output.value);
    launch_made(it->second, tensors, nodes);
    return Joined::kYes;
  }

  // False where it cannot be. Where parts have special forms, they have one launch, under the guards of all.
  bool add_side_by_side(const std::vector<LoweredUnit>& units, std::span<const std::uint32_t> launch) {
    std::vector<PlacedPart> parts;
    std::vector<NodeId> nodes;
    std::string key;
    std::map<ValueId, std::size_t> tensor_number;  // in the order in which the parts' parameters name them
    for (std::size_t at = 0; at < launch.size(); ++at) {
      const Kernel& kernel = units[launch[at]].kernel;
      if (makes_nothing(kernel)) continue;
      const FoldedUnits* const folded = folded_at(launch, at);
      const KernelSignature signature = folded ? signature_of(folded->folds, graph_) : signature_of(kernel, graph_);
      const Part& part = folded ? part_of_folded(units, *folded, signature) : part_of(kernel, signature);
      if (part.sources.empty()) return false;
      if (folded) {
        const std::vector<NodeId> of_all = folded->nodes(units);
        nodes.insert(nodes.end(), of_all.begin(), of_all.end());
        at += folded->columns.size();
      }
      key += signature.text;
      parts.push_back({&part, signature.tensors});
      for (const KernelOfPart& stage : with_tensors(part.sources, parts.back()))
        for (const KernelParameter& p : stage.parameters) {
          if (p.kind != KernelParameter::Kind::kTensor) continue;
          const auto number = tensor_number.try_emplace(p.value, tensor_number.size()).first->second;
          key += "p" + std::to_string(number) + ";";
        }
      nodes.insert(nodes.end(), kernel.nodes.begin(), kernel.nodes.end());
    }
    if (parts.size() < 2) return false;
    std::ranges::sort(nodes);
    nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
    std::vector<ValueId> tensors(tensor_number.size());
    for (const auto& [value, number] : tensor_number) tensors[number] = value;
    const auto [it, fresh] = made_.try_emplace(std::move(key));
    if (fresh) {
      std::vector<KernelPart> general;
      for (const PlacedPart& placed : parts) general.push_back(with_tensors(placed.part->sources, placed));
      std::vector<KernelSource> sources = side_by_side(general, kernel_name(graph_, nodes));
      if (sources.empty() || std::ranges::any_of(sources, is_too_much)) {
        made_.erase(it);
        return false;
      }
      Made& made = it->second;
      made.tensors = tensors;
      made.kernels = keep(std::move(sources));
      add_few_rows(made, parts, nodes);
      add_special(made, parts, nodes, [](const Part& part) {
        const bool other = !part.special.empty() && !has_few_rows(part.special.back());
        return other ? &part.special.back() : nullptr;
      });
    }
    for (const std::uint32_t u : launch)
      for (const KernelOutput& output : units[u].kernel.outputs) claim(output.value);
    launch_made(it->second, tensors, nodes);
    return true;
  }

  static void add_condition(Guard& guard, const GuardCondition& condition) {
    const auto same = std::ranges::find(guard, condition.symbols, &GuardCondition::symbols);
    if (same == guard.end()) return guard.push_back(condition);
    same->multiple_of = std::lcm(same->multiple_of, condition.multiple_of);
    same->at_most = std::min(same->at_most, condition.at_most);
    same->at_least = std::max(same->at_least, condition.at_least);
  }

  // The parts' sources of one form, whose parameters have the launch's tensors.
  static KernelPart with_tensors(const std::vector<KernelSource>& sources, const PlacedPart& placed) {
    KernelPart part;
    for (const KernelSource& source : sources) {
      part.push_back({&source, source.parameters});
      for (KernelParameter& p : part.back().parameters) {
        if (p.kind != KernelParameter::Kind::kTensor) continue;
        const auto at = std::ranges::find(placed.part->tensors, p.value);
        p.value = placed.tensors[static_cast<std::size_t>(at - placed.part->tensors.begin())];
      }
    }
    return part;
  }

  // Of a few rows, all parts that have the form take it where the same guard holds.
  void add_few_rows(Made& made, const std::vector<PlacedPart>& parts, const std::vector<NodeId>& nodes) {
    std::vector<Guard> guards;
    for (const PlacedPart& placed : parts)
      for (const SpecialSources& special : placed.part->special)
        if (has_few_rows(special) && std::ranges::find(guards, special.guard) == guards.end())
          guards.push_back(special.guard);
    for (const Guard& guard : guards)
      add_special(made, parts, nodes, [&](const Part& part) {
        const auto form = std::ranges::find(part.special, guard, &SpecialSources::guard);
        return form == part.special.end() ? nullptr : &*form;
      });
  }

  // Parts in the special forms that `form_of` names, the others as they are in general.
  void add_special(Made& made, const std::vector<PlacedPart>& parts, const std::vector<NodeId>& nodes,
                   const std::function<const SpecialSources*(const Part&)>& form_of) {
    Guard guard;
    std::vector<KernelPart> forms;
    for (const PlacedPart& placed : parts) {
      const SpecialSources* const special = form_of(*placed.part);
      const std::vector<KernelSource>& sources = special ? special->sources : placed.part->sources;
      if (sources.empty()) return;
      forms.push_back(with_tensors(sources, placed));
      if (!special) continue;
      for (const GuardCondition& condition : special->guard) add_condition(guard, condition);
    }
    if (guard.empty() || !is_possible(assume(guard, graph_.symbols))) return;
    std::vector<KernelSource> sources = side_by_side(forms, kernel_name(graph_, nodes));
    if (!sources.empty() && sources.size() <= made.kernels.size() && std::ranges::none_of(sources, is_too_much))
      keep_special(made, std::move(guard), keep(std::move(sources)));
  }

  void keep_special(Made& made, Guard guard, std::vector<std::uint32_t> kernels) {
    for (const std::uint32_t k : kernels) note_guard(plan_.kernels[k], guard);
    made.special.push_back({std::move(guard), std::move(kernels)});
  }

  void launch_made(const Made& made, const std::vector<ValueId>& tensors, const std::vector<NodeId>& nodes) {
    std::map<ValueId, ValueId> instead;
    for (std::size_t i = 0; i < made.tensors.size(); ++i) instead[made.tensors[i]] = tensors[i];
    launch(made.kernels, instead, nodes, made.special);
  }

  // The guard stands above the kernel.
  void note_guard(KernelSource& source, const Guard& guard) const {
    const auto name_of = [&](std::uint32_t s) { return graph_.symbols[s].name; };
    source.text = "// Where " + comment_text(guard_text(guard, name_of), 400) + ":\n" + source.text;
    source.name += "_guarded";
  }

  bool nothing_in(ValueId v) const {
    const Shape& shape = graph_.tensor(v).shape;
    return std::any_of(shape.begin(), shape.end(), [](const Dim& d) { return d.is(0); });
  }

  void claim(ValueId v) {
    if (is_output_.contains(v)) claimed_.insert(plan_.storage_of[v]);
  }

  void add_alias(ValueId value, ValueId of) {
    const ValueId root = plan_.storage_of[of];
    const Value::Kind kind = graph_.value(root).kind;
    const bool own_memory = is_output_.contains(value) &&
                            (kind != Value::Kind::kResult || prepared_.contains(root) || claimed_.contains(root));
    if (!own_memory) {
      plan_.storage_of[value] = root;
      claim(value);
      return;
    }
    claimed_.insert(value);
    if (nothing_in(value)) return;
    steps().push_back({.kind = LoweredStep::Kind::kCopy,
                       .parameters = {},
                       .reads = {of},
                       .writes = {value},
                       .nodes = {graph_.value(value).producer}});
  }

  void add_kernel(const Kernel& kernel) {
    for (const KernelOutput& output : kernel.outputs) claim(output.value);
    if (makes_nothing(kernel)) return;
    const KernelSignature signature = signature_of(kernel, graph_);
    auto [it, fresh] = made_.try_emplace(signature.text);
    Made& made = it->second;
    if (fresh) {
      made.tensors = signature.tensors;
      const Wanted wanted = wanted_of(signature.text);
      GuardedSources sources = schedule_with_guard(kernel, graph_, target_, wanted.way);
      warn_of_unknown(wanted, sources);
      for (KernelSource& source : as_expected(sources))
        if (source.tuning.ways.size() > 1) source.tuning.key = wanted.key;
      made.kernels = keep(std::move(sources.general));
      let_in_place(kernel, made.kernels);
      for (SpecialSources& special : sources.special) {
        keep_special(made, std::move(special.guard), keep(std::move(special.sources)));
        let_in_place(kernel, made.special.back().kernels);
      }
    }
    launch_made(made, signature.tensors, kernel.nodes);
  }

  // Those before the last that read rows for the last time say so.
  void let_in_place(const Kernel& kernel, const std::vector<std::uint32_t>& kernels) {
    const bool alone = kernels.size() == 1;
    for (const std::uint32_t id : kernels) {
      KernelSource& source = plan_.kernels[id];
      if (alone || source.owns_rows) source.in_place = find_in_place(kernel, graph_, source, alone);
    }
  }

  // Analysis takes any custom op; source needs to know what to call.
  void require_launcher(const Node& node) const {
    if (node.op->special != Special::kExternal || !node.op->symbol.empty()) return;
    if (graph_.attributes(node).has("symbol")) return;
    throw Error(ErrorKind::kInput,
                {.file = graph_.file,
                 .pointer = "/nodes/" + std::to_string(node.file_position),
                 .what = "no source for a custom op",
                 .found = "op \"" + node.op->name + "\" without a launcher",
                 .expected = node.op->custom ? "attrs.symbol, or attrs.expr on an elemwise or broadcast op"
                                             : "a launcher or an expression in its OpDescription"});
  }

  void add_special(NodeId id) {
    const Node& node = graph_.nodes[id];
    for (std::uint32_t i = 0; i < node.output_count; ++i) claim(node.first_output + i);
    if (node.op->special == Special::kExternal || node.op->special == Special::kCollective) {
      require_launcher(node);
      LoweredStep step{.kind = node.op->special == Special::kExternal ? LoweredStep::Kind::kExternal
                                                                      : LoweredStep::Kind::kCollective,
                       .parameters = {},
                       .node = id,
                       .reads = {},
                       .writes = {},
                       .nodes = {id}};
      for (const ValueId v : node.inputs)
        if (v != kNone && graph_.operand(v).kind == Operand::Kind::kTensor) step.reads.push_back(v);
      for (std::uint32_t i = 0; i < node.output_count; ++i) step.writes.push_back(node.first_output + i);
      steps().push_back(std::move(step));
      return;
    }
    if (nothing_in(node.first_output)) return;
    launch(keep(special(graph_, id, target_)), {}, {id});
  }

  // Of several kernels: as little as there may be of it.
  static bool is_too_much(KernelSource& source) {
    bound_repeated_code(source);
    return compile_time(source.text).ms > kMostOfLaunchMs;
  }

  std::vector<std::uint32_t> keep(std::vector<KernelSource> sources) {
    std::vector<std::uint32_t> kept;
    std::uint32_t table = kFirstTable;
    for (KernelSource& source : sources) {
      bound_repeated_code(source);
      for (KernelSource& kernel : with_filled_table(std::move(source), table++)) {
        kept.push_back(static_cast<std::uint32_t>(plan_.kernels.size()));
        plan_.kernels.push_back(std::move(kernel));
      }
    }
    return kept;
  }

  static void touch(LoweredStep& step, const KernelParameter& p) {
    std::vector<ValueId>& list = p.written ? step.writes : step.reads;
    if (std::find(list.begin(), list.end(), p.value) == list.end()) list.push_back(p.value);
  }

  // One step a kernel, with tensors replaced as `instead` says and scratch memory of its own; `special`: the kernels'
  // other forms, where they have any.
  void launch(const std::vector<std::uint32_t>& kernels, const std::map<ValueId, ValueId>& instead,
              const std::vector<NodeId>& nodes, const std::vector<Made::Special>& special = {}) {
    std::map<std::uint32_t, std::uint32_t> scratch;
    const auto place = [&](LoweredStep& step, std::vector<KernelParameter>& parameters) {
      for (KernelParameter& p : parameters) {
        if (p.kind == KernelParameter::Kind::kWorkspace) {
          const auto [it, fresh] =
              scratch.try_emplace(p.scratch, static_cast<std::uint32_t>(plan_.scratch_bytes.size()));
          if (fresh) plan_.scratch_bytes.push_back(p.size);
          p.scratch = it->second;
          IndexExpr& bytes = plan_.scratch_bytes[p.scratch];
          if (bytes != p.size) bytes = simplify(max(bytes, p.size), graph_.bounds());
        }
        if (p.kind != KernelParameter::Kind::kTensor && p.kind != KernelParameter::Kind::kTensorMap) continue;
        if (const auto it = instead.find(p.value); it != instead.end()) p.value = it->second;
        if (!p.address_only) touch(step, p);
      }
    };
    for (std::size_t i = 0; i < kernels.size(); ++i) {
      const std::uint32_t k = kernels[i];
      LoweredStep step{
          .kernel = k, .parameters = plan_.kernels[k].parameters, .reads = {}, .writes = {}, .nodes = nodes};
      place(step, step.parameters);
      for (const Made::Special& other : special) {
        LoweredStep::SpecialForm form{.guard = other.guard, .kernel = kNone, .parameters = {}};
        if (i < other.kernels.size()) {
          form.kernel = other.kernels[i];
          form.parameters = plan_.kernels[form.kernel].parameters;
          place(step, form.parameters);
        }
        step.special.push_back(std::move(form));
      }
      for (KernelParameter p : plan_.kernels[k].tabled) {
        if (p.kind != KernelParameter::Kind::kTensor) continue;
        if (const auto it = instead.find(p.value); it != instead.end()) p.value = it->second;
        touch(step, p);
      }
      steps().push_back(std::move(step));
    }
  }

  const Graph& graph_;
  const Target& target_;
  const EmitOptions& options_;
  LoweredPlan plan_;
  std::set<ValueId> is_output_;
  std::set<ValueId> claimed_;   // buffers that are an output's
  std::set<ValueId> prepared_;  // made before any launch
  std::map<std::string, Made> made_;
  std::map<std::string, Part> parts_;
  std::vector<FoldedUnits> folded_;        // of the group that is being added
  std::uint32_t library_scratch_ = kNone;  // one for all calls: they follow one another on a stream
};

}  // namespace

LoweredPlan lower_plan(const Graph& graph, const FusionPlan& plan, const Target& target, const EmitOptions& options) {
  PlanLowering lowering(graph, target, options);
  const std::vector<GroupInterface> interfaces = group_interfaces(graph, plan);
  for (std::size_t g = 0; g < plan.groups.size(); ++g) {
    const FusionGroup& group = plan.groups[g];
    const bool together = plan.strategy == Strategy::kFull;
    if (group.code == GroupCode::kCublasLt)
      lowering.add_matrix_call(group.nodes, interfaces[g].outputs, together);
    else
      lowering.add_group(group.nodes, interfaces[g].outputs, together);
    if (group.prepared) lowering.note_prepared(group.nodes);
  }
  return lowering.finish();
}

}  // namespace fusec
