#include "codegen/made_kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "codegen/compile_time.h"
#include "codegen/content_key.h"
#include "codegen/identifiers.h"
#include "codegen/in_place.h"
#include "codegen/kernel_writer.h"
#include "codegen/parameter_table.h"
#include "codegen/repeated_code.h"
#include "codegen/schedules/column_folds.h"
#include "codegen/schedules/schedules.h"
#include "codegen/tuning_database.h"

namespace fusec {
namespace {

// Scratch memory of parameter tables: numbers that no schedule takes.
constexpr std::uint32_t kFirstTable = 1u << 16;

// Of several kernels: as little as there may be of it.
bool is_too_much(KernelSource& source) {
  bound_repeated_code(source);
  return compile_time(source.text).ms > kMostOfLaunchMs;
}

void add_condition(Guard& guard, const GuardCondition& condition) {
  const auto same = std::ranges::find(guard, condition.symbols, &GuardCondition::symbols);
  if (same == guard.end()) return guard.push_back(condition);
  same->multiple_of = std::lcm(same->multiple_of, condition.multiple_of);
  same->at_most = std::min(same->at_most, condition.at_most);
  same->at_least = std::max(same->at_least, condition.at_least);
}

void make_unique(std::vector<NodeId>& nodes) {
  std::ranges::sort(nodes);
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
}

// Tensors of a launch, numbered in the order in which its parts name them; the numbers stand in its key.
class TensorNumbers {
 public:
  std::string key_of(ValueId v) {
    auto at = std::ranges::find(tensors_, v);
    if (at == tensors_.end()) at = tensors_.insert(tensors_.end(), v);
    return fmt::format("p{};", at - tensors_.begin());
  }
  const std::vector<ValueId>& tensors() const { return tensors_; }

 private:
  std::vector<ValueId> tensors_;
};

}  // namespace

KernelMaker::Wanted KernelMaker::wanted_of(std::string signature) const {
  for (const Symbol& symbol : graph_.symbols) signature += fmt::format("{};", symbol.hint);
  Wanted wanted{.key = content_key(signature), .way = ""};
  if (const TunedKernel* const tuned = options_.tuning ? options_.tuning->find(target_.arch, wanted.key) : nullptr)
    wanted.way = tuned->choice;
  return wanted;
}

// A tuning database of another version may name a way that there no longer is.
void KernelMaker::warn_of_unknown(const Wanted& wanted, const GuardedSources& sources) {
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
std::vector<KernelSource>& KernelMaker::as_expected(GuardedSources& sources) const {
  std::vector<std::int64_t> hints;
  for (const Symbol& symbol : graph_.symbols) hints.push_back(symbol.hint);
  const auto form =
      std::ranges::find_if(sources.special, [&](const SpecialSources& special) { return holds(special.guard, hints); });
  return form == sources.special.end() ? sources.general : form->sources;
}

std::vector<std::uint32_t> KernelMaker::keep(std::vector<KernelSource> sources) {
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

// The guard stands above each kernel.
void KernelMaker::keep_special(MadeKernels& made, Guard guard, std::vector<std::uint32_t> kernels) {
  const auto name_of = [&](std::uint32_t s) { return graph_.symbols[s].name; };
  for (const std::uint32_t k : kernels) {
    KernelSource& source = plan_.kernels[k];
    source.text = "// Where " + comment_text(guard_text(guard, name_of), 400) + ":\n" + source.text;
    source.name += "_guarded";
  }
  made.special.push_back({std::move(guard), std::move(kernels)});
}

// Those before the last that read rows for the last time say so.
void KernelMaker::let_in_place(const Kernel& kernel, const std::vector<std::uint32_t>& kernels) {
  const bool alone = kernels.size() == 1;
  for (const std::uint32_t id : kernels) {
    KernelSource& source = plan_.kernels[id];
    if (alone || source.owns_rows) source.in_place = find_in_place(kernel, graph_, source, alone);
  }
}

MadeLaunch KernelMaker::alone(const Kernel& kernel) {
  const KernelSignature signature = signature_of(kernel, graph_);
  const auto [it, fresh] = made_.try_emplace(signature.text);
  MadeKernels& made = it->second;
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
  return {&made, signature.tensors, kernel.nodes};
}

std::vector<KernelSource> KernelMaker::sources_of_folded(const std::vector<LoweredUnit>& units,
                                                         const FoldedUnits& folded) const {
  return column_folds(folded.folds, units[folded.rows].kernel, graph_, target_);
}

MadeLaunch KernelMaker::folded(const std::vector<LoweredUnit>& units, const FoldedUnits& folded) {
  const KernelSignature signature = signature_of(folded.folds, graph_);
  const auto [it, fresh] = made_.try_emplace(signature.text);
  if (fresh) {
    it->second.tensors = signature.tensors;
    it->second.kernels = keep(sources_of_folded(units, folded));
  }
  return {&it->second, signature.tensors, folded.nodes(units)};
}

const KernelMaker::Part& KernelMaker::part_of(const Kernel& kernel, const KernelSignature& signature) {
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

const KernelMaker::Part& KernelMaker::part_of_folded(const std::vector<LoweredUnit>& units, const FoldedUnits& folded,
                                                     const KernelSignature& signature) {
  const auto [it, fresh] = parts_.try_emplace(signature.text);
  if (!fresh) return it->second;
  it->second.tensors = signature.tensors;
  std::vector<KernelSource> sources = sources_of_folded(units, folded);
  if (std::ranges::all_of(sources, can_be_part)) it->second.sources = std::move(sources);
  return it->second;
}

MadeLaunch KernelMaker::together(std::span<const Kernel* const> kernels) {
  std::vector<KernelSignature> signatures;
  TensorNumbers numbers;  // as the parts' signatures name them
  MadeLaunch launch;
  std::string key = "together;";
  for (const Kernel* const kernel : kernels) {
    signatures.push_back(signature_of(*kernel, graph_));
    key += signatures.back().text;
    for (const ValueId v : signatures.back().tensors) key += numbers.key_of(v);
    launch.nodes.insert(launch.nodes.end(), kernel->nodes.begin(), kernel->nodes.end());
  }
  make_unique(launch.nodes);
  launch.tensors = numbers.tensors();
  const auto [it, fresh] = made_.try_emplace(std::move(key));
  MadeKernels& made = it->second;
  launch.made = &made;
  if (!fresh) return launch;
  made.tensors = launch.tensors;
  std::vector<KernelSource> sources;
  if (auto source = schedule_together(kernels, graph_, target_)) sources.push_back(*std::move(source));
  made.too_much = !sources.empty() && is_too_much(sources[0]);
  if (!made.too_much) made.kernels = keep(std::move(sources));
  if (made.kernels.empty() || graph_.symbols.empty()) return launch;
  std::vector<PlacedPart> parts;
  for (std::size_t i = 0; i < kernels.size(); ++i)
    parts.push_back({&part_of(*kernels[i], signatures[i]), signatures[i].tensors});
  add_few_rows(made, parts, launch.nodes);
  return launch;
}

// Where parts have special forms, they have one launch, under the guards of all.
std::optional<MadeLaunch> KernelMaker::beside(const std::vector<LoweredUnit>& units,
                                              std::span<const LaunchPart> launch_parts) {
  std::vector<PlacedPart> parts;
  TensorNumbers numbers;  // as the parts' parameters name them
  MadeLaunch launch;
  std::string key;
  for (const auto& [kernel, folded] : launch_parts) {
    const KernelSignature signature = folded ? signature_of(folded->folds, graph_) : signature_of(*kernel, graph_);
    const Part& part = folded ? part_of_folded(units, *folded, signature) : part_of(*kernel, signature);
    if (part.sources.empty()) return std::nullopt;
    key += signature.text;
    parts.push_back({&part, signature.tensors});
    for (const KernelOfPart& stage : with_tensors(part.sources, parts.back()))
      for (const KernelParameter& p : stage.parameters)
        if (p.kind == KernelParameter::Kind::kTensor) key += numbers.key_of(p.value);
    const std::vector<NodeId> nodes = folded ? folded->nodes(units) : kernel->nodes;
    launch.nodes.insert(launch.nodes.end(), nodes.begin(), nodes.end());
  }
  make_unique(launch.nodes);
  launch.tensors = numbers.tensors();
  const auto [it, fresh] = made_.try_emplace(std::move(key));
  launch.made = &it->second;
  if (!fresh) return launch;
  std::vector<KernelPart> general;
  for (const PlacedPart& placed : parts) general.push_back(with_tensors(placed.part->sources, placed));
  std::vector<KernelSource> sources = side_by_side(general, kernel_name(graph_, launch.nodes));
  if (sources.empty() || std::ranges::any_of(sources, is_too_much)) {
    made_.erase(it);
    return std::nullopt;
  }
  MadeKernels& made = it->second;
  made.tensors = launch.tensors;
  made.kernels = keep(std::move(sources));
  add_few_rows(made, parts, launch.nodes);
  add_special(made, parts, launch.nodes, [](const Part& part) {
    const bool other = !part.special.empty() && !has_few_rows(part.special.back());
    return other ? &part.special.back() : nullptr;
  });
  return launch;
}

// The parts' sources of one form, whose parameters have the launch's tensors.
KernelPart KernelMaker::with_tensors(const std::vector<KernelSource>& sources, const PlacedPart& placed) {
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
void KernelMaker::add_few_rows(MadeKernels& made, const std::vector<PlacedPart>& parts,
                               const std::vector<NodeId>& nodes) {
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
void KernelMaker::add_special(MadeKernels& made, const std::vector<PlacedPart>& parts, const std::vector<NodeId>& nodes,
                              const FormOfPart& form_of) {
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

}  // namespace fusec
