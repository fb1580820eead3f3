#include "runtime/resolve_steps.h"

#include <algorithm>
#include <functional>
#include <span>

#include "ir/error.h"

namespace fusec {

void require_kernels_only(const Graph& graph, const LaunchPlan& plan) {
  require_executable(graph, plan);
  for (const LaunchStep& step : plan.steps) {
    if (step.kind == LaunchStep::Kind::kCollective)
      throw Error(ErrorKind::kInput,
                  "node \"" + graph.nodes[step.node].name + "\" is a call of NCCL, which fusec-run does not load");
    if (step.kind == LaunchStep::Kind::kMatrixCall)
      throw Error(ErrorKind::kInput, {.what = "the product of \"" + graph.value(step.matrix->d.value).name + "\"",
                                      .found = "a call of cuBLASLt, which fusec-run does not load",
                                      .hint = "--gemm=builtin, or link the emitted file with cuBLASLt"});
  }
}

void require_executable(const Graph& graph, const LaunchPlan& plan) {
  for (const LaunchStep& step : plan.steps) {
    if (step.kind == LaunchStep::Kind::kExternal)
      throw Error(ErrorKind::kInput, "node \"" + graph.nodes[step.node].name +
                                         "\" is a call of a launcher, which fusec-run does not have");
    if (step.kind == LaunchStep::Kind::kCollective &&
        graph.tensor(step.reads[0]).shape != graph.tensor(step.writes[0]).shape)
      throw Error(ErrorKind::kInput, {.what = "node \"" + graph.nodes[step.node].name + "\"",
                                      .found = "a collective of several devices",
                                      .expected = "one whose group may be a single device"});
  }
}

namespace {

using ValueOf = std::function<std::int64_t(const IndexExpr&)>;

bool is_empty(const LaunchStep& step, const ResolvedStep& resolved, const ValueOf& value) {
  if (step.kind == LaunchStep::Kind::kCopy) return resolved.bytes == 0;
  if (step.kind == LaunchStep::Kind::kMatrixCall)
    return value(step.matrix->m) <= 0 || value(step.matrix->n) <= 0 || value(step.matrix->batch) <= 0;
  return std::ranges::any_of(resolved.grid, [](std::int64_t g) { return g <= 0; });
}

ResolvedBoxes resolve(const TensorMapBoxes& boxes, const ValueOf& value) {
  ResolvedBoxes resolved{.element_bytes = boxes.element_bytes, .extents = {}, .strides = {}, .box = boxes.box};
  for (const IndexExpr& extent : boxes.extents) resolved.extents.push_back(value(extent));
  for (const IndexExpr& stride : boxes.strides) resolved.strides.push_back(value(stride) * boxes.element_bytes);
  return resolved;
}

// The step with its specialized form in place of the general one.
LaunchStep in_special_form(LaunchStep step, const LaunchStep::Specialization& form) {
  step.kernel = form.kernel;
  step.arguments = form.arguments;
  step.grid = form.grid;
  step.dynamic_shared = form.dynamic_shared;
  return step;
}

std::vector<ResolvedStep> resolve(const std::vector<LaunchStep>& steps, const ValueOf& value,
                                  std::span<const std::int64_t> symbols) {
  std::vector<ResolvedStep> resolved;
  for (std::uint32_t position = 0; position < steps.size(); ++position) {
    const auto form = std::ranges::find_if(
        steps[position].special, [&](const LaunchStep::Specialization& f) { return holds(f.guard, symbols); });
    const bool special = form != steps[position].special.end();
    const LaunchStep step = special ? in_special_form(steps[position], *form) : steps[position];
    if (step.kind == LaunchStep::Kind::kKernel && step.kernel == kNone) continue;
    ResolvedStep r;
    r.kind = step.kind;
    r.kernel = step.kernel;
    r.step = &steps[position];
    r.position = position;
    for (std::size_t d = 0; d < 3; ++d) r.grid[d] = value(step.grid[d]);
    r.dynamic_shared = value(step.dynamic_shared);
    r.bytes = value(step.bytes);
    if (is_empty(step, r, value)) continue;
    for (const Argument& a : step.arguments) {
      ResolvedArgument argument;
      argument.is_size = a.kind == Argument::Kind::kSize;
      argument.bits = a.bits;
      if (argument.is_size) {
        argument.size = value(a.size);
      } else {
        argument.buffer = a.buffer.kind;
        argument.index = a.buffer.index;
        argument.offset = value(a.buffer.offset);
        if (a.kind == Argument::Kind::kTensorMap) {
          argument.offset += value(a.boxes.offset) * a.boxes.element_bytes;
          argument.boxes = resolve(a.boxes, value);
        }
      }
      r.arguments.push_back(argument);
    }
    resolved.push_back(std::move(r));
  }
  return resolved;
}

std::vector<ResolvedArenaValue> resolve(const std::vector<ArenaValue>& values, const ValueOf& value) {
  std::vector<ResolvedArenaValue> resolved;
  for (const ArenaValue& a : values) resolved.push_back({value(a.offset), value(a.bytes)});
  return resolved;
}

}  // namespace

ResolvedPlan resolve_steps(const LaunchPlan& plan, const std::vector<std::int64_t>& symbols) {
  const ValueOf value = [&](const IndexExpr& e) { return evaluate(e, [&](Variable v) { return symbols.at(v.id); }); };
  for (const LaunchCheck& check : plan.checks)
    if (value(check.left) != value(check.right))
      throw Error(ErrorKind::kInput, {.what = check.what,
                                      .found = std::to_string(value(check.left)),
                                      .expected = std::to_string(value(check.right))});
  return {.steps = resolve(plan.steps, value, symbols),
          .prepare_steps = resolve(plan.prepare_steps, value, symbols),
          .arena = resolve(plan.arena, value),
          .prepared_values = resolve(plan.prepared_values, value),
          .workspace_bytes = value(plan.workspace_bytes),
          .prepared_bytes = value(plan.prepared_bytes)};
}

}  // namespace fusec
