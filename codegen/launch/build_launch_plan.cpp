#include "codegen/launch/build_launch_plan.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "codegen/expr/identifiers.h"
#include "codegen/expr/in_place.h"
#include "codegen/launch/arena_values.h"
#include "codegen/launch/update_in_place.h"
#include "ir/budget.h"
#include "ir/error.h"

namespace fusec {
namespace {

class Builder {
 public:
  Builder(const Graph& graph, LoweredPlan lowered)
      : graph_(graph),
        lowered_(std::move(lowered)),
        buffers_(graph.value_count()),
        scratch_(lowered_.scratch_bytes.size()) {}

  LaunchPlan build() {
    // The identifier's own names (M_args, M_launch) must stay clear of the kernels' M_<index>_<ops>.
    result_.identifier = model_identifier(graph_.name);
    result_.numerics = lowered_.numerics;
    result_.warnings = lowered_.warnings;
    result_.most_shared_bytes = lowered_.most_shared_bytes;
    collect_arguments();
    find_homes();
    find_aliases();
    place_prepared();
    place_workspace();
    make_steps();
    for (const auto& [kernel, pairs] : may_alias_) allow_alias(lowered_.kernels[kernel], pairs);
    name_kernels();
    result_.solutions = solve_symbols(graph_).steps;
    result_.checks = graph_.checks;
    return std::move(result_);
  }

 private:
  using RootPair = std::pair<ValueId, ValueId>;  // read, and written in the same place
  using InPlaceForms = std::vector<ArenaValues::InPlaceForm>;
  using FormsInPlace = std::map<RootPair, InPlaceForms>;

  ValueId root(ValueId v) const { return lowered_.storage_of[v]; }

  void collect_arguments() {
    result_.arguments = graph_.inputs;
    for (const Constant& constant : graph_.constants)
      if (!constant.data) result_.arguments.push_back(constant.value);
    std::set<ValueId> seen;
    for (const ValueId v : graph_.outputs)
      if (seen.insert(v).second) result_.results.push_back(v);
  }

  // Assigns the buffers that the caller owns.
  void find_homes() {
    for (std::uint32_t i = 0; i < graph_.inputs.size(); ++i)
      buffers_[graph_.inputs[i]] = {BufferRef::Kind::kInput, i, 0};
    for (std::uint32_t i = 0; i < graph_.constants.size(); ++i)
      buffers_[graph_.constants[i].value] = {
          graph_.constants[i].data ? BufferRef::Kind::kEmbedded : BufferRef::Kind::kConstant, i, 0};
    for (std::uint32_t i = 0; i < result_.results.size(); ++i) {
      count_step();
      const ValueId r = root(result_.results[i]);
      if (buffers_[r].kind == BufferRef::Kind::kNowhere) buffers_[r] = {BufferRef::Kind::kOutput, i, 0};
    }
  }

  // An output that aliases an input's buffer is written there directly if nothing reads the input later. Otherwise it
  // is computed elsewhere and copied at the end.
  void find_aliases() {
    if (graph_.aliases.empty()) return;
    const std::vector<Span> span = spans();
    std::vector<bool> overwritten(graph_.value_count(), false);
    for (const Alias& alias : graph_.aliases) {
      count_step();
      const ValueId output = root(alias.output), input = root(alias.input);
      if (output == input) continue;
      const std::int64_t written = span[output].first_write;
      if (is_result(output) && !span[input].is_output && written != INT64_MAX &&
          (span[input].last_read < written || (span[input].last_read == written && reads_in_place(input, output)))) {
        buffers_[output] = buffers_[input];
        continue;
      }
      if (is_result(output)) buffers_[output] = {};
      copies_.push_back({output, input, false});
      overwritten[input] = true;
    }
    // For swaps (x into y, y into x): a value that another copy overwrites is first copied to `aside`.
    for (AliasCopy& copy : copies_) copy.put_aside = overwritten[copy.output];
  }

  // True if the step that makes the output reads the input element by element, so that it may write in place.
  bool reads_in_place(ValueId input, ValueId output) {
    if (!in_place_) in_place_ = forms_in_place();
    const auto forms = in_place_->find({input, output});
    if (forms == in_place_->end()) return false;
    for (const ArenaValues::InPlaceForm& form : forms->second) may_alias_[form.kernel].push_back(form.parameters);
    return true;
  }

  // By root: the step of its first write and of its last read.
  struct Span {
    std::int64_t first_write = INT64_MAX, last_read = -1;
    bool is_output = false;
  };
  std::vector<Span> spans() const {
    std::vector<Span> found(graph_.value_count());
    std::int64_t step = 0;
    for_each_step(false, [&](const LoweredStep& lowered, std::uint32_t) {
      for (const ValueId v : lowered.writes) found[root(v)].first_write = std::min(found[root(v)].first_write, step);
      for (const ValueId v : lowered.reads) found[root(v)].last_read = step;
      ++step;
    });
    for (const ValueId v : graph_.outputs) found[root(v)].is_output = true;
    return found;
  }

  // Visits the steps of the prepared groups, or of the others.
  template <typename F>
  void for_each_step(bool prepared, F f) const {
    for (std::uint32_t g = 0; g < lowered_.groups.size(); ++g)
      if (lowered_.groups[g].prepared == prepared)
        for (const LoweredStep& step : lowered_.groups[g].steps) f(step, g);
  }

  bool is_result(ValueId v) const { return graph_.value(v).kind == Value::Kind::kResult; }

  // Results of prepared groups have their own memory, permanently if a launch reads them.
  void place_prepared() {
    ArenaValues values(graph_, lowered_, BufferRef::Kind::kPrepared);
    std::uint32_t position = 0;
    touch_steps(true, values, position);
    if (position == 0) return;
    for_each_step(false, [&](const LoweredStep& step, std::uint32_t) {
      for (const ValueId v : step.reads)
        if (values.has(root(v))) values.touch(root(v), position);
    });
    result_.prepared_bytes = values.place(result_.prepared_values, buffers_, scratch_).bytes;
    note_aliases(values);
  }

  void touch_steps(bool prepared, ArenaValues& values, std::uint32_t& position) const {
    for_each_step(prepared, [&](const LoweredStep& step, std::uint32_t) {
      values.touch(step, position, buffers_);
      for_each_in_place(step, [&](ValueId read, ValueId written, const InPlaceForms& forms) {
        values.offer_in_place(read, written, position, forms);
      });
      ++position;
    });
  }

  // By pair: the in-place forms of the first step that may read and write both in one buffer.
  FormsInPlace forms_in_place() const {
    FormsInPlace found;
    for_each_step(false, [&](const LoweredStep& step, std::uint32_t) {
      for_each_in_place(step, [&](ValueId read, ValueId written, InPlaceForms forms) {
        found.try_emplace({read, written}, std::move(forms));
      });
    });
    return found;
  }

  // Visits the pairs of roots that the step's kernel, in every form, may read and write in one buffer. Each root
  // belongs to exactly one parameter.
  template <typename F>
  void for_each_in_place(const LoweredStep& step, F f) const {
    if (step.kind != LoweredStep::Kind::kKernel) return;
    std::vector<std::pair<std::uint32_t, std::map<RootPair, KernelSource::InPlace>>> special;
    for (const LoweredStep::Specialization& form : step.special) {
      if (form.kernel == kNone) continue;
      const auto pairs = pairs_in_place(form.kernel, form.parameters);
      special.push_back({form.kernel, {pairs.begin(), pairs.end()}});
    }
    for (const auto& [roots, parameters] : pairs_in_place(step.kernel, step.parameters)) {
      count_step();
      InPlaceForms forms{{step.kernel, parameters}};
      for (const auto& [kernel, pairs] : special)
        if (const auto same = pairs.find(roots); same != pairs.end()) forms.push_back({kernel, same->second});
      if (forms.size() == 1 + special.size()) f(roots.first, roots.second, forms);
    }
  }

  std::vector<std::pair<RootPair, KernelSource::InPlace>> pairs_in_place(
      std::uint32_t kernel, const std::vector<KernelParameter>& parameters) const {
    std::map<ValueId, int> uses;  // parameters per root
    for (const KernelParameter& p : parameters)
      if (p.kind == KernelParameter::Kind::kTensor || p.kind == KernelParameter::Kind::kTensorMap)
        ++uses[root(p.value)];
    std::vector<std::pair<RootPair, KernelSource::InPlace>> pairs;
    for (const KernelSource::InPlace& pair : lowered_.kernels[kernel].in_place) {
      count_step();
      const ValueId read = root(parameters[pair.read].value), written = root(parameters[pair.written].value);
      if (uses[read] == 1 && uses[written] == 1) pairs.push_back({{read, written}, pair});
    }
    return pairs;
  }

  void note_aliases(const ArenaValues& values) {
    for (const ArenaValues::InPlaceForm& form : values.in_place()) may_alias_[form.kernel].push_back(form.parameters);
  }

  // All other values of a step are in the arena, from first write to last use.
  void place_workspace() {
    ArenaValues values(graph_, lowered_, BufferRef::Kind::kWorkspace);
    std::uint32_t position = 0;
    touch_steps(false, values, position);
    std::vector<std::uint32_t> aside(copies_.size(), kNone);
    for (std::size_t c = 0; c < copies_.size(); ++c)
      if (copies_[c].put_aside)
        aside[c] = values.add(bytes_of(graph_.tensor(copies_[c].output)), position);
      else if (is_result(copies_[c].output))
        values.touch(copies_[c].output, position);
    const Arena arena = values.place(result_.arena, buffers_, scratch_);
    note_aliases(values);
    for (std::size_t c = 0; c < copies_.size(); ++c)
      if (copies_[c].put_aside) copies_[c].aside = values.place_of(aside[c]);
    result_.workspace_bytes = arena.bytes;
    result_.live_bytes = arena.live_bytes;
  }

  Argument buffer_argument(ValueId v) {
    Argument argument;
    argument.buffer = buffers_[root(v)];
    if (argument.buffer.kind == BufferRef::Kind::kNowhere)
      throw InternalError("value \"" + graph_.value(v).name + "\" has no buffer");
    if (argument.buffer.kind == BufferRef::Kind::kEmbedded && embedded_.insert(root(v)).second)
      result_.embedded.push_back(root(v));
    return argument;
  }

  LaunchStep make_step(const LoweredStep& lowered, std::uint32_t group) {
    LaunchStep step;
    step.group = group;
    step.node = lowered.node;
    step.reads = lowered.reads;
    step.writes = lowered.writes;
    switch (lowered.kind) {
      case LoweredStep::Kind::kKernel: {
        step.kernel = lowered.kernel;
        const KernelSource& kernel = lowered_.kernels[lowered.kernel];
        step.grid = kernel.grid;
        step.dynamic_shared = kernel.dynamic_shared;
        for (const KernelParameter& parameter : lowered.parameters) step.arguments.push_back(argument_of(parameter));
        for (const LoweredStep::Specialization& form : lowered.special) step.special.push_back(special_form(form));
        return step;
      }
      case LoweredStep::Kind::kCopy:
        step.kind = LaunchStep::Kind::kCopy;
        step.bytes = bytes_of(graph_.tensor(lowered.writes[0]));
        step.arguments = {buffer_argument(lowered.writes[0]), buffer_argument(lowered.reads[0])};
        return step;
      case LoweredStep::Kind::kExternal:
        step.kind = LaunchStep::Kind::kExternal;
        break;
      case LoweredStep::Kind::kCollective:
        step.kind = LaunchStep::Kind::kCollective;
        break;
      case LoweredStep::Kind::kMatrixCall:
        step.kind = LaunchStep::Kind::kMatrixCall;
        step.matrix = lowered.matrix;
        step.bytes = lowered.parameters.at(0).size;
        break;
    }
    for (const ValueId v : lowered.reads) step.arguments.push_back(buffer_argument(v));
    for (const ValueId v : lowered.writes) step.arguments.push_back(buffer_argument(v));
    for (const KernelParameter& parameter : lowered.parameters) step.arguments.push_back(argument_of(parameter));
    return step;
  }

  LaunchStep::Specialization special_form(const LoweredStep::Specialization& lowered) {
    LaunchStep::Specialization form{.guard = lowered.guard, .kernel = lowered.kernel, .arguments = {}};
    if (lowered.kernel == kNone) return form;
    const KernelSource& kernel = lowered_.kernels[lowered.kernel];
    form.grid = kernel.grid;
    form.dynamic_shared = kernel.dynamic_shared;
    for (const KernelParameter& parameter : lowered.parameters) form.arguments.push_back(argument_of(parameter));
    return form;
  }

  Argument argument_of(const KernelParameter& parameter) {
    Argument argument;
    switch (parameter.kind) {
      case KernelParameter::Kind::kTensor:
        return buffer_argument(parameter.value);
      case KernelParameter::Kind::kSize:
        argument.kind = Argument::Kind::kSize;
        argument.size = parameter.size;
        argument.bits = parameter.bits;
        return argument;
      case KernelParameter::Kind::kTensorMap:
        argument = buffer_argument(parameter.value);
        argument.kind = Argument::Kind::kTensorMap;
        argument.boxes = parameter.boxes;
        return argument;
      case KernelParameter::Kind::kWorkspace:
        argument.buffer = scratch_.at(parameter.scratch);
        return argument;
    }
    throw InternalError("unknown kernel parameter");
  }

  void make_steps() {
    for (const bool prepared : {true, false}) {
      count_step();
      std::vector<LaunchStep>& steps = prepared ? result_.prepare_steps : result_.steps;
      for_each_step(prepared, [&](const LoweredStep& lowered, std::uint32_t group) {
        steps.push_back(make_step(lowered, group));
      });
    }
    const std::size_t kernel_steps = result_.steps.size();
    std::set<ValueId> aliased;
    for (const Alias& alias : graph_.aliases) aliased.insert(alias.output);
    // Results that are an input or a constant. They precede the copies below, which may overwrite an input.
    for (std::uint32_t i = 0; i < result_.results.size(); ++i) {
      count_step();
      const ValueId v = result_.results[i];
      if (is_result(v) || aliased.contains(v)) continue;
      push_copy(v, {BufferRef::Kind::kOutput, i, 0}, v, buffer_argument(v).buffer);
    }
    for (const AliasCopy& copy : copies_)
      if (copy.put_aside) push_copy(copy.output, copy.aside, copy.output, buffer_argument(copy.output).buffer);
    for (const AliasCopy& copy : copies_)
      push_copy(copy.input, buffer_argument(copy.input).buffer, copy.output,
                copy.put_aside ? copy.aside : buffer_argument(copy.output).buffer);
    // Operands of the final copies are alive until the end.
    for (ArenaValue& value : result_.arena)
      if (value.last_step >= kernel_steps) value.last_step = static_cast<std::uint32_t>(result_.steps.size());
  }

  // Adds a final copy of the value `from`, stored at `source`, to `to`.
  void push_copy(ValueId written, BufferRef to, ValueId from, BufferRef source) {
    LaunchStep step;
    step.kind = LaunchStep::Kind::kCopy;
    step.bytes = bytes_of(graph_.tensor(from));
    step.arguments.resize(2);
    step.arguments[0].buffer = std::move(to);
    step.arguments[1].buffer = std::move(source);
    step.reads = {from};
    step.writes = {written};
    step.group = kNone;
    result_.steps.push_back(std::move(step));
  }

  void name_kernels() {
    result_.kernels = std::move(lowered_.kernels);
    for (std::size_t k = 0; k < result_.kernels.size(); ++k) {
      count_step();
      KernelSource& kernel = result_.kernels[k];
      kernel.name = result_.identifier + "_" + std::to_string(k) + "_" + clean_identifier(kernel.name, 64);
      static constexpr std::string_view kPlaceholder = "@KERNEL@";
      for (std::size_t at = kernel.text.find(kPlaceholder); at != std::string::npos;
           at = kernel.text.find(kPlaceholder, at + kernel.name.size()))
        kernel.text.replace(at, kPlaceholder.size(), kernel.name);
    }
  }

  const Graph& graph_;
  LoweredPlan lowered_;
  LaunchPlan result_;
  std::vector<BufferRef> buffers_;  // by root value
  std::vector<BufferRef> scratch_;
  std::optional<FormsInPlace> in_place_;                                   // computed for the first alias
  std::map<std::uint32_t, std::vector<KernelSource::InPlace>> may_alias_;  // by kernel: parameters that share a buffer

  // A final copy of an output's value into an input's buffer.
  struct AliasCopy {
    ValueId output, input;  // roots
    bool put_aside;         // copied via `aside`, since another copy overwrites the output's value (itself an input)
    BufferRef aside = {};
  };
  std::vector<AliasCopy> copies_;
  std::set<ValueId> embedded_;
};

}  // namespace

LaunchPlan build_launch_plan(const Graph& graph, LoweredPlan lowered) {
  update_in_place(graph, lowered);
  return Builder(graph, std::move(lowered)).build();
}

}  // namespace fusec
