#include "codegen/host/host_types.h"

#include <algorithm>

#include "codegen/host/emit_collective.h"
#include "codegen/host/host_text.h"
#include "ir/budget.h"

namespace fusec {
namespace {

bool has_steps(const LaunchPlan& launch, LaunchStep::Kind kind) {
  const auto is_it = [&](const LaunchStep& step) { return step.kind == kind; };
  return std::ranges::any_of(launch.prepare_steps, is_it) || std::ranges::any_of(launch.steps, is_it);
}

std::string group_names_text(const Graph& graph) {
  std::string text;
  for (const std::string& name : collective_groups(graph)) text += (text.empty() ? "" : ", ") + name;
  return text;
}

}  // namespace

std::string host_types(const Graph& graph, const LaunchPlan& launch, const HostNames& names) {
  const std::string& m = names.model();
  HostText text;
  text.line("typedef struct {0}_context {0}_context;", m);
  text.line("typedef struct {{");
  text.line("  void* cublaslt;           // {}", has_steps(launch, LaunchStep::Kind::kMatrixCall)
                                                     ? "a cublasLtHandle_t, or null: M_create makes one"
                                                     : "unused: this file calls no cuBLASLt");
  text.line("  void* const* nccl_comms;  // {}",
            has_steps(launch, LaunchStep::Kind::kCollective)
                ? "one ncclComm_t for each group name: " + shown(group_names_text(graph))
                : "unused: this file calls no NCCL");
  text.line("}} {}_libraries;", m);
  text.line("typedef struct {{");
  for (std::size_t i = 0; i < launch.arguments.size(); ++i) {
    count_step();
    const ValueId v = launch.arguments[i];
    text.line("  const void* {};  // {}{}", names.field(i), names.type_text(v),
              graph.value(v).kind == Value::Kind::kConstant ? ", constant" : "");
    if (!names.shape(i).empty()) text.line("  long long {}[{}];", names.shape(i), graph.tensor(v).rank());
  }
  for (std::size_t i = 0; i < launch.results.size(); ++i) {
    count_step();
    const ValueId v = launch.results[i];
    const Alias* alias = names.alias_of(v);
    text.line("  void* {};  // {}{}", names.result(i), names.type_text(v),
              alias ? ", written into " + names.field_of(alias->input) + "'s buffer: null or that pointer" : "");
  }
  if (!names.has_arguments()) text.line("  int unused;");
  text.line("}} {}_args;", m);
  text.line("");
  return std::move(text).take();
}

}  // namespace fusec
