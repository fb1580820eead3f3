#include "codegen/host/host_names.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/host/host_expression.h"
#include "ir/error.h"

namespace fusec {

HostNames::HostNames(const Graph& graph, const LaunchPlan& launch) : graph_(graph), launch_(launch) {
  for (const ValueId v : launch.arguments) {
    fields_.push_back(names_.take(graph.value(v).name));
    shapes_.push_back(graph.tensor(v).rank() ? names_.take(fields_.back() + "_shape") : "");
  }
  for (const ValueId v : launch.results) results_.push_back(names_.take(graph.value(v).name));
  UniqueNames symbol_names;
  for (const Symbol& symbol : graph.symbols) symbols_.push_back(symbol_names.take(symbol.name));
}

std::string HostNames::field_of(ValueId v) const {
  const auto at = std::find(launch_.arguments.begin(), launch_.arguments.end(), v) - launch_.arguments.begin();
  return fields_.at(static_cast<std::size_t>(at));
}

const Alias* HostNames::alias_of(ValueId v) const {
  for (const Alias& alias : graph_.aliases)
    if (alias.output == v) return &alias;
  return nullptr;
}

std::string HostNames::type_text(ValueId v) const {
  return comment_text(to_string(graph_.type(v), graph_.symbols), 96);
}

std::string HostNames::sized(const IndexExpr& e) const {
  return host_expression(e, [&](Variable v) { return "n." + symbols_.at(v.id); });
}

std::string HostNames::pointer(const BufferRef& buffer, bool written) const {
  const auto offset_from = [&](const char* base) {
    return buffer.offset.is(0) ? fmt::format("static_cast<void*>({})", base)
                               : fmt::format("static_cast<void*>({} + ({}))", base, sized(buffer.offset));
  };
  switch (buffer.kind) {
    case BufferRef::Kind::kInput: {
      const std::string field = field_of(graph_.inputs[buffer.index]);
      return written ? fmt::format("const_cast<void*>(args->{})", field) : "args->" + field;
    }
    case BufferRef::Kind::kConstant:
      return "args->" + field_of(graph_.constants[buffer.index].value);
    case BufferRef::Kind::kOutput:
      return "args->" + results_.at(buffer.index);
    case BufferRef::Kind::kWorkspace:
      return offset_from("work");
    case BufferRef::Kind::kPrepared:
      return offset_from("ready");
    case BufferRef::Kind::kEmbedded: {
      const ValueId v = graph_.constants[buffer.index].value;
      const auto at = std::find(launch_.embedded.begin(), launch_.embedded.end(), v) - launch_.embedded.begin();
      return fmt::format("ctx->constants[{}]", at);
    }
    case BufferRef::Kind::kNowhere:
      break;
  }
  throw InternalError("an argument without a buffer");
}

}  // namespace fusec
