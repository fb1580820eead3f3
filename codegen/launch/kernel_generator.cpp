#include "codegen/launch/kernel_generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "codegen/dispatch/schedules.h"
#include "codegen/dispatch/word_copy_schedule.h"
#include "codegen/expr/compile_time.h"
#include "codegen/expr/identifiers.h"
#include "codegen/expr/in_place.h"
#include "codegen/expr/kernel_writer.h"
#include "codegen/expr/limit_unrolling.h"
#include "codegen/expr/parameter_table.h"
#include "codegen/launch/content_key.h"
#include "codegen/reduction/cross_row_reduction.h"
#include "codegen/tuning/tuning_database.h"

namespace fusec {
namespace {

// Scratch indices of parameter tables; schedules use smaller ones.
constexpr std::uint32_t kFirstTable = 1u << 16;

// For fused kernels: limits unrolling first, then tests whether the code is still too much.
bool is_too_much(KernelSource& source) {
  limit_unrolling(source);
  return *source.compile_ms > kMaxLaunchCompileMs;
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

// Numbers a launch's tensors in the order in which its parts name them. The numbers are part of its key.
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

KernelGenerator::Wanted KernelGenerator::wanted_of(std::string signature) const {
  for (const Symbol& symbol : graph_.symbols) signature += fmt::format("{};", symbol.hint);
  Wanted wanted{.key = content_key(signature), .candidate = ""};
  if (const TunedKernel* const tuned = options_.tuning ? options_.tuning->find(target_.arch, wanted.key) : nullptr)
    wanted.candidate = tuned->choice;
  return wanted;
}

// Warns if a tuning database of another version names an unknown candidate.
void KernelGenerator::warn_of_unknown(const Wanted& wanted, const GuardedSources& sources) {
  if (wanted.candidate.empty()) return;
  std::vector<std::string> candidates;
  const auto see = [&](const std::vector<KernelSource>& generated) {
    for (const KernelSource& source : generated)
      candidates.insert(candidates.end(), source.tuning.candidates.begin(), source.tuning.candidates.end());
  };
  see(sources.general);
  for (const SpecializedSources& special : sources.special) see(special.sources);
  if (std::ranges::find(candidates, wanted.candidate) != candidates.end()) return;
  const TunedKernel& tuned = *options_.tuning->find(target_.arch, wanted.key);
  plan_.warnings.push_back(fmt::format(
      "the tuning database names an unknown way for kernel \"{}\" on {}: found \"{}\", expected one of \"{}\"; "
      "the predicted way is taken (measure again with fusec-run --tune)",
      tuned.kernel, target_.arch, wanted.candidate, fmt::join(candidates, "\", \"")));
}

// The form that runs if the symbols have their hints.
std::vector<KernelSource>& KernelGenerator::as_expected(GuardedSources& sources) const {
  std::vector<std::int64_t> hints;
  for (const Symbol& symbol : graph_.symbols) hints.push_back(symbol.hint);
  const auto form = std::ranges::find_if(
      sources.special, [&](const SpecializedSources& special) { return holds(special.guard, hints); });
  return form == sources.special.end() ? sources.general : form->sources;
}

std::vector<std::uint32_t> KernelGenerator::keep(std::vector<KernelSource> sources) {
  std::vector<std::uint32_t> kept;
  std::uint32_t table = kFirstTable;
  for (KernelSource& source : sources) {
    limit_unrolling(source);
    for (KernelSource& kernel : with_filled_table(std::move(source), table++)) {
      kept.push_back(static_cast<std::uint32_t>(plan_.kernels.size()));
      plan_.kernels.push_back(std::move(kernel));
    }
  }
  return kept;
}

// Adds the guard to the comment above each kernel.
void KernelGenerator::keep_special(GeneratedKernels& generated, Guard guard, std::vector<std::uint32_t> kernels) {
  const auto name_of = [&](std::uint32_t s) { return graph_.symbols[s].name; };
  for (const std::uint32_t k : kernels) {
    KernelSource& source = plan_.kernels[k];
    source.text = "// Where " + comment_text(guard_text(guard, name_of), 400) + ":\n" + source.text;
    source.name += "_guarded";
  }
  generated.special.push_back({std::move(guard), std::move(kernels)});
}

// Sets the in-place pairs. Of several kernels, only those that read the rows for the last time have any.
void KernelGenerator::allow_in_place(const Kernel& kernel, const std::vector<std::uint32_t>& kernels) {
  const bool alone = kernels.size() == 1;
  for (const std::uint32_t id : kernels) {
    KernelSource& source = plan_.kernels[id];
    if (alone || source.owns_rows) source.in_place = find_in_place(kernel, graph_, source, alone);
  }
}

GuardedSources KernelGenerator::sources_of(const Kernel& kernel, const Target& target, const std::string& wanted) {
  if (options_.variants) return schedule_with_guard(kernel, graph_, target, wanted, forms_);
  return {.general = schedule_word_copy(kernel, graph_, target, wanted, forms_), .special = {}};
}

GeneratedLaunch KernelGenerator::alone(const Kernel& kernel) {
  const KernelSignature signature = signature_of(kernel, graph_);
  const auto [it, fresh] = generated_.try_emplace(signature.text);
  GeneratedKernels& generated = it->second;
  if (fresh) {
    generated.tensors = signature.tensors;
    const Wanted wanted = wanted_of(signature.text);
    GuardedSources sources = sources_of(kernel, target_, wanted.candidate);
    warn_of_unknown(wanted, sources);
    for (KernelSource& source : as_expected(sources))
      if (source.tuning.candidates.size() > 1) source.tuning.key = wanted.key;
    generated.kernels = keep(std::move(sources.general));
    allow_in_place(kernel, generated.kernels);
    for (SpecializedSources& special : sources.special) {
      keep_special(generated, std::move(special.guard), keep(std::move(special.sources)));
      allow_in_place(kernel, generated.special.back().kernels);
    }
  }
  return {&generated, signature.tensors, kernel.nodes};
}

std::vector<KernelSource> KernelGenerator::sources_of_folded(const std::vector<LoweredUnit>& units,
                                                             const CrossRowUnits& folded) const {
  return cross_row_reduction(folded.cross_row, units[folded.rows].kernel, graph_, target_);
}

GeneratedLaunch KernelGenerator::folded(const std::vector<LoweredUnit>& units, const CrossRowUnits& folded) {
  const KernelSignature signature = signature_of(folded.cross_row, graph_);
  const auto [it, fresh] = generated_.try_emplace(signature.text);
  if (fresh) {
    it->second.tensors = signature.tensors;
    it->second.kernels = keep(sources_of_folded(units, folded));
  }
  return {&it->second, signature.tensors, folded.nodes(units)};
}

const KernelGenerator::Part& KernelGenerator::part_of(const Kernel& kernel, const KernelSignature& signature) {
  const auto [it, fresh] = parts_.try_emplace(signature.text);
  if (fresh) {
    it->second.tensors = signature.tensors;
    GuardedSources generated =
        sources_of(kernel, as_seen_in_shared_launch(target_), wanted_of(signature.text).candidate);
    const auto usable = [&](std::vector<KernelSource>& sources) {
      if (sources.empty() || !std::ranges::all_of(sources, can_be_part)) return false;
      if (sources.size() == 1) sources[0].in_place = find_in_place(kernel, graph_, sources[0], true);
      return true;
    };
    if (usable(generated.general)) it->second.sources = std::move(generated.general);
    for (SpecializedSources& special : generated.special)
      if (special.sources.size() <= it->second.sources.size() && usable(special.sources))
        it->second.special.push_back(std::move(special));
  }
  return it->second;
}

const KernelGenerator::Part& KernelGenerator::part_of_folded(const std::vector<LoweredUnit>& units,
                                                             const CrossRowUnits& folded,
                                                             const KernelSignature& signature) {
  const auto [it, fresh] = parts_.try_emplace(signature.text);
  if (!fresh) return it->second;
  it->second.tensors = signature.tensors;
  std::vector<KernelSource> sources = sources_of_folded(units, folded);
  if (std::ranges::all_of(sources, can_be_part)) it->second.sources = std::move(sources);
  return it->second;
}

GeneratedLaunch KernelGenerator::together(std::span<const Kernel* const> kernels) {
  std::vector<KernelSignature> signatures;
  TensorNumbers numbers;  // in the order of the parts' signatures
  GeneratedLaunch launch;
  std::string key = "together;";
  for (const Kernel* const kernel : kernels) {
    signatures.push_back(signature_of(*kernel, graph_));
    key += signatures.back().text;
    for (const ValueId v : signatures.back().tensors) key += numbers.key_of(v);
    launch.nodes.insert(launch.nodes.end(), kernel->nodes.begin(), kernel->nodes.end());
  }
  make_unique(launch.nodes);
  launch.tensors = numbers.tensors();
  const auto [it, fresh] = generated_.try_emplace(std::move(key));
  GeneratedKernels& generated = it->second;
  launch.generated = &generated;
  if (!fresh) return launch;
  generated.tensors = launch.tensors;
  std::vector<KernelSource> sources;
  if (auto source = schedule_together(kernels, graph_, target_, forms_)) sources.push_back(*std::move(source));
  generated.too_much = !sources.empty() && is_too_much(sources[0]);
  if (!generated.too_much) generated.kernels = keep(std::move(sources));
  if (generated.kernels.empty() || graph_.symbols.empty()) return launch;
  std::vector<PlacedPart> parts;
  for (std::size_t i = 0; i < kernels.size(); ++i)
    parts.push_back({&part_of(*kernels[i], signatures[i]), signatures[i].tensors});
  add_skinny_gemm(generated, parts, launch.nodes);
  return launch;
}

// If parts have specialized forms, these are fused too, under all their guards.
std::optional<GeneratedLaunch> KernelGenerator::fused_horizontally(const std::vector<LoweredUnit>& units,
                                                                   std::span<const LaunchPart> launch_parts) {
  std::vector<PlacedPart> parts;
  TensorNumbers numbers;  // in the order of the parts' parameters
  GeneratedLaunch launch;
  std::string key;
  for (const auto& [kernel, folded] : launch_parts) {
    const KernelSignature signature = folded ? signature_of(folded->cross_row, graph_) : signature_of(*kernel, graph_);
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
  const auto [it, fresh] = generated_.try_emplace(std::move(key));
  launch.generated = &it->second;
  if (!fresh) return launch;
  std::vector<KernelPart> general;
  for (const PlacedPart& placed : parts) general.push_back(with_tensors(placed.part->sources, placed));
  std::vector<KernelSource> sources = horizontally_fused(general, kernel_name(graph_, launch.nodes));
  if (sources.empty() || std::ranges::any_of(sources, is_too_much)) {
    generated_.erase(it);
    return std::nullopt;
  }
  GeneratedKernels& generated = it->second;
  generated.tensors = launch.tensors;
  generated.kernels = keep(std::move(sources));
  add_skinny_gemm(generated, parts, launch.nodes);
  add_special(generated, parts, launch.nodes, [](const Part& part) {
    const bool other = !part.special.empty() && !has_skinny_gemm(part.special.back());
    return other ? &part.special.back() : nullptr;
  });
  return launch;
}

// The parts' sources of one form, with the launch's tensors as parameters.
KernelPart KernelGenerator::with_tensors(const std::vector<KernelSource>& sources, const PlacedPart& placed) {
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

// Fuses the skinny GEMM forms: all parts that have a form under the same guard take it.
void KernelGenerator::add_skinny_gemm(GeneratedKernels& generated, const std::vector<PlacedPart>& parts,
                                      const std::vector<NodeId>& nodes) {
  std::vector<Guard> guards;
  for (const PlacedPart& placed : parts)
    for (const SpecializedSources& special : placed.part->special)
      if (has_skinny_gemm(special) && std::ranges::find(guards, special.guard) == guards.end())
        guards.push_back(special.guard);
  for (const Guard& guard : guards)
    add_special(generated, parts, nodes, [&](const Part& part) {
      const auto form = std::ranges::find(part.special, guard, &SpecializedSources::guard);
      return form == part.special.end() ? nullptr : &*form;
    });
}

// Fuses the parts in the forms that `form_of` selects; parts without one take their general form.
void KernelGenerator::add_special(GeneratedKernels& generated, const std::vector<PlacedPart>& parts,
                                  const std::vector<NodeId>& nodes, const FormOfPart& form_of) {
  Guard guard;
  std::vector<KernelPart> forms;
  for (const PlacedPart& placed : parts) {
    const SpecializedSources* const special = form_of(*placed.part);
    const std::vector<KernelSource>& sources = special ? special->sources : placed.part->sources;
    if (sources.empty()) return;
    forms.push_back(with_tensors(sources, placed));
    if (!special) continue;
    for (const GuardCondition& condition : special->guard) add_condition(guard, condition);
  }
  if (guard.empty() || !is_possible(assume(guard, graph_.symbols))) return;
  std::vector<KernelSource> sources = horizontally_fused(forms, kernel_name(graph_, nodes));
  if (!sources.empty() && sources.size() <= generated.kernels.size() && std::ranges::none_of(sources, is_too_much))
    keep_special(generated, std::move(guard), keep(std::move(sources)));
}

}  // namespace fusec
