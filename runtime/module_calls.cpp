#include "runtime/module_calls.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "ir/error.h"
#include "ir/symbol_values.h"

namespace fusec {
namespace {

constexpr std::size_t kMostCalls = 256;  // in the cache

std::string text_of(std::string_view dtype, std::span<const std::int64_t> shape) {
  return fmt::format("{}[{}]", dtype, fmt::join(shape, ", "));
}

[[noreturn]] void refuse(const std::string& what, const CallTensor& found, const std::string& expected) {
  throw Error(ErrorKind::kInput,
              Error::Parts{.what = what, .found = text_of(found.dtype, found.shape), .expected = expected});
}

// Checks dtype and rank; for constants the whole shape.
void require_type(const Graph& graph, ValueId v, const CallTensor& tensor, bool is_constant) {
  const TensorType& type = graph.tensor(v);
  bool fits = tensor.dtype == name(type.dtype) && tensor.shape.size() == type.rank();
  for (std::size_t d = 0; fits && is_constant && d < type.rank(); ++d) fits = type.shape[d].is(tensor.shape[d]);
  if (!fits)
    refuse(fmt::format("{} \"{}\"", is_constant ? "constant" : "input", graph.value(v).name), tensor,
           to_string(type, graph.symbols));
}

}  // namespace

std::shared_ptr<const ResolvedCall> ModuleCalls::resolve(std::span<const CallTensor> arguments) {
  const Graph& graph = model_.graph;
  std::vector<ValueId> declared = graph.inputs;
  for (std::size_t c = 0; c < graph.constants.size(); ++c)
    if (!model_.embedded[c]) declared.push_back(graph.constants[c].value);
  if (arguments.size() != declared.size())
    throw Error(ErrorKind::kUsage, Error::Parts{.what = "the arguments of a call",
                                                .found = std::to_string(arguments.size()),
                                                .expected = std::to_string(declared.size())});
  for (std::size_t i = 0; i < declared.size(); ++i)
    require_type(graph, declared[i], arguments[i], i >= graph.inputs.size());
  std::vector<std::int64_t> symbols =
      symbol_values(graph, [&](std::size_t input, std::size_t dimension) { return arguments[input].shape[dimension]; });
  const std::scoped_lock lock(mutex_);
  if (const auto known = calls_.find(symbols); known != calls_.end()) return known->second;
  auto call = std::make_shared<const ResolvedCall>(resolved(symbols));
  if (calls_.size() == kMostCalls) calls_.clear();
  calls_.emplace(std::move(symbols), call);
  return call;
}

ResolvedCall ModuleCalls::resolved(std::vector<std::int64_t> symbols) const {
  ResolvedCall call{.symbols = std::move(symbols), .plan = {}, .result_shapes = {}};
  call.plan = resolve_steps(model_.plan, call.symbols);
  for (const ManifestResult& result : model_.results) {
    std::vector<std::int64_t> shape;
    for (const Dim& dim : result.type.shape)
      shape.push_back(evaluate(dim, [&](Variable v) { return call.symbols.at(v.id); }));
    call.result_shapes.push_back(std::move(shape));
  }
  return call;
}

void ModuleCalls::require_results(const ResolvedCall& call, std::span<const CallTensor> results) const {
  if (results.size() != model_.results.size())
    throw Error(ErrorKind::kUsage, Error::Parts{.what = "the results of a call",
                                                .found = std::to_string(results.size()),
                                                .expected = std::to_string(model_.results.size())});
  for (std::size_t i = 0; i < results.size(); ++i) {
    const ManifestResult& declared = model_.results[i];
    if (declared.alias_of) continue;
    if (results[i].dtype != name(declared.type.dtype) || !std::ranges::equal(results[i].shape, call.result_shapes[i]))
      refuse("result \"" + declared.name + "\"", results[i], text_of(name(declared.type.dtype), call.result_shapes[i]));
  }
}

}  // namespace fusec
