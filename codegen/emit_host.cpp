// The host part of out.cu: the library that a user calls (create, prepare, launch), printed from the launch plan.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "codegen/emit_collective.h"
#include "codegen/emit_file.h"
#include "codegen/emit_matrix_calls.h"
#include "codegen/host_expression.h"
#include "codegen/identifiers.h"
#include "ir/constant_data.h"
#include "ir/error.h"
#include "ir/spelling.h"

namespace fusec {
namespace {

// A C string literal of any text.
std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\' || c == '?')
      out += std::string("\\") + c;
    else if (byte < 0x20 || byte >= 0x7f)
      out += fmt::format("\\{:03o}", byte);
    else
      out += c;
  }
  return out + "\"";
}

// The name of a value in a message: cleaned as a comment is, short.
std::string shown(std::string_view text) {
  return comment_text(text, 48);
}

class HostPart {
 public:
  HostPart(const Graph& graph, const FusionPlan& plan, const LaunchPlan& launch)
      : graph_(graph), plan_(plan), launch_(launch), m_(launch.identifier) {
    for (const ValueId v : launch.arguments) {
      fields_.push_back(names_.take(graph.value(v).name));
      shapes_.push_back(graph.tensor(v).rank() ? names_.take(fields_.back() + "_shape") : "");
    }
    for (const ValueId v : launch.results) result_fields_.push_back(names_.take(graph.value(v).name));
    UniqueNames symbol_names;
    for (const Symbol& symbol : graph.symbols) symbols_.push_back(symbol_names.take(symbol.name));
    matrix_calls_.emplace(graph, launch, [this](const IndexExpr& e) { return sized(e); });
    for (const LaunchStep& step : all_steps())
      if (step.kind == LaunchStep::Kind::kCollective)
        collectives_ = true;
      else if (step.kind == LaunchStep::Kind::kExternal)
        externals_ = true;
  }

  std::string print() {
    // The functions are printed first, though they stand last: what they call is known only then.
    functions();
    const std::string body = std::exchange(out_, "");
    const std::string solving = solve_text();
    includes();
    types();
    embedded_constants();
    helpers(solving + body);
    out_ += solving;
    line("}}  // namespace");
    line("");
    return out_ + body;
  }

 private:
  template <class... T>
  void line(fmt::format_string<T...> format, T&&... arguments) {
    out_ += fmt::format(format, std::forward<T>(arguments)...);
    out_ += '\n';
  }

  std::vector<LaunchStep> all_steps() const {
    std::vector<LaunchStep> steps = launch_.prepare_steps;
    steps.insert(steps.end(), launch_.steps.begin(), launch_.steps.end());
    return steps;
  }

  std::string expression(const IndexExpr& e, std::string_view prefix) const {
    return host_expression(e, [&](Variable v) { return std::string(prefix) + symbols_.at(v.id); });
  }
  std::string sized(const IndexExpr& e) const { return expression(e, "n."); }

  void includes() {
    line("#include <cuda_runtime.h>");
    line("#include <stddef.h>");
    line("#include <stdio.h>");
    if (!matrix_calls_->empty()) line("#include <cublasLt.h>");
    if (collectives_) line("#include <nccl.h>");
    line("");
  }

  void types() {
    line("typedef struct {0}_context {0}_context;", m_);
    line("typedef struct {{");
    line("  void* cublaslt;           // {}", matrix_calls_->empty()
                                                  ? "unused: this file calls no cuBLASLt"
                                                  : "a cublasLtHandle_t, or null: M_create makes one");
    line("  void* const* nccl_comms;  // {}", collectives_
                                                  ? "one ncclComm_t for each group name: " + shown(group_names_text())
                                                  : "unused: this file calls no NCCL");
    line("}} {}_libraries;", m_);
    line("typedef struct {{");
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      const ValueId v = launch_.arguments[i];
      line("  const void* {};  // {}{}", fields_[i], type_text(v),
           graph_.value(v).kind == Value::Kind::kConstant ? ", constant" : "");
      if (!shapes_[i].empty()) line("  long long {}[{}];", shapes_[i], graph_.tensor(v).rank());
    }
    for (std::size_t i = 0; i < result_fields_.size(); ++i) {
      const ValueId v = launch_.results[i];
      const Alias* alias = alias_of(v);
      line("  void* {};  // {}{}", result_fields_[i], type_text(v),
           alias ? ", written into " + field_of_input(alias->input) + "'s buffer: null or that pointer" : "");
    }
    if (fields_.empty() && result_fields_.empty()) line("  int unused;");
    line("}} {}_args;", m_);
    line("");
    if (externals_) external_declarations();
  }

  void external_declarations() {
    std::vector<std::string> symbols;
    for (const LaunchStep& step : all_steps()) {
      if (step.kind != LaunchStep::Kind::kExternal) continue;
      symbols.push_back(external_symbol(graph_.nodes[step.node]));
      if (symbols.back().starts_with(m_ + "_"))
        throw Error(ErrorKind::kInput, {.file = graph_.file,
                                        .what = "the launcher of node " + shown(graph_.nodes[step.node].name) +
                                                " has a name of this file's",
                                        .found = symbols.back(),
                                        .expected = "a name that does not begin with " + m_ + "_"});
    }
    std::sort(symbols.begin(), symbols.end());
    symbols.erase(std::unique(symbols.begin(), symbols.end()), symbols.end());
    line("// Launchers of custom ops; the program that links this file defines them.");
    for (const std::string& symbol : symbols)
      line(
          "extern \"C\" cudaError_t {}(const void* const* inputs, void* const* outputs, const long long* extents,\n"
          "                              const char* attrs_json, cudaStream_t stream);",
          symbol);
    line("");
  }

  std::string external_symbol(const Node& node) const {
    if (!node.op->symbol.empty()) return node.op->symbol;
    const AttributeValue* given = graph_.attributes(node).find("symbol");
    if (!given) throw InternalError("an external node without a symbol");
    if (const auto* text = std::get_if<std::string>(given)) return *text;
    const std::string& json = std::get<RawJson>(*given).text;  // a JSON string
    return json.substr(1, json.size() - 2);
  }

  void embedded_constants() {
    if (launch_.embedded.empty()) return;
    line("namespace {{");
    for (std::size_t i = 0; i < launch_.embedded.size(); ++i) {
      const ValueId v = launch_.embedded[i];
      const std::vector<std::byte> bytes = constant_bytes(*graph_.constant_of(v)->data, graph_.tensor(v).dtype);
      line("// constant {}: {}", shown(graph_.value(v).name), type_text(v));
      std::string text = fmt::format("alignas(16) __device__ const unsigned char constant_{}[{}] = {{", i,
                                     std::max<std::size_t>(bytes.size(), 1));
      for (std::size_t b = 0; b < bytes.size(); ++b) {
        if (b % 24 == 0) text += "\n    ";
        text += std::to_string(static_cast<unsigned>(bytes[b])) + ",";
      }
      if (bytes.empty()) text += "0";
      line("{}}};", text);
    }
    line("}}  // namespace");
    line("");
  }

  // What the text below calls, and the context.
  void helpers(const std::string& calling) {
    out_ += matrix_calls_->types();
    line("struct {}_context {{", m_);
    line("  char error[256];");
    line("  {}_libraries libraries;", m_);
    if (!launch_.embedded.empty()) line("  const void* constants[{}];", launch_.embedded.size());
    out_ += matrix_calls_->context_fields();
    line("}};");
    line("");
    line("namespace {{");
    line("");
    line("struct {}_sizes {{", m_);
    for (std::size_t i = 0; i < symbols_.size(); ++i)
      line("  long long {};  // {} to {}, a multiple of {}", symbols_[i], graph_.symbols[i].min, graph_.symbols[i].max,
           graph_.symbols[i].multiple_of);
    if (symbols_.empty()) line("  int unused;");
    line("}};");
    line("");
    auto used = [&](const char* call) { return calling.find(call) != std::string::npos; };
    if (used("floor_div(") || used("floor_mod("))
      line(
          "inline long long floor_div(long long a, long long b) {{ return a / b - (a % b != 0 && (a < 0) != (b < 0)); "
          "}}");
    if (used("floor_mod("))
      line("inline long long floor_mod(long long a, long long b) {{ return a - floor_div(a, b) * b; }}");
    if (used("least(")) line("inline long long least(long long a, long long b) {{ return a < b ? a : b; }}");
    if (used("greatest(")) line("inline long long greatest(long long a, long long b) {{ return a > b ? a : b; }}");
    line("");
    line("inline cudaError_t complain({}_context* ctx, cudaError_t status, const char* text) {{", m_);
    line("  if (ctx) snprintf(ctx->error, sizeof ctx->error, \"%s\", text);");
    line("  return status;");
    line("}}");
    line("");
    out_ += matrix_calls_->functions();
    if (used(" launch(")) {
      line("// Enqueues one kernel; a grid without blocks is nothing to do.");
      line("template <class... Arguments>");
      line(
          "inline cudaError_t launch(const void* kernel, long long grid_x, long long grid_y, long long grid_z, dim3 "
          "block,");
      line("                          long long shared_bytes, cudaStream_t stream, Arguments... arguments) {{");
      line("  if (grid_x <= 0 || grid_y <= 0 || grid_z <= 0) return cudaSuccess;");
      line("  void* pointers[] = {{&arguments...}};");
      line(
          "  return cudaLaunchKernel(kernel, dim3(unsigned(grid_x), unsigned(grid_y), unsigned(grid_z)), block, "
          "pointers,");
      line("                          size_t(shared_bytes), stream);");
      line("}}");
      line("");
    }
  }

  // Finds the symbols and checks every extent, every bound and every pointer's alignment.
  std::string solve_text() {
    std::string kept = std::move(out_);
    out_.clear();
    line("inline cudaError_t solve({0}_context* ctx, const {0}_args* args, {0}_sizes& n) {{", m_);
    line("  if (!args) return complain(ctx, cudaErrorInvalidValue, \"no arguments\");");
    for (const SymbolStep& s : launch_.solutions) {
      const std::string extent = fmt::format("args->{}[{}]", shapes_[s.input], s.dimension);
      const std::string rest = s.rest.is(0) ? extent : fmt::format("({} - ({}))", extent, sized(s.rest));
      if (s.coefficient.is(1)) {
        line("  n.{} = {};", symbols_[s.symbol], rest);
      } else {
        const std::string coefficient = "(" + sized(s.coefficient) + ")";
        line("  if ({} % {} != 0)", rest, coefficient);
        line("    return complain(ctx, cudaErrorInvalidValue, {});",
             quoted("no whole " + shown(graph_.symbols[s.symbol].name) + " fits dimension " +
                    std::to_string(s.dimension) + " of " + shown(graph_.value(graph_.inputs[s.input]).name)));
        line("  n.{} = {} / {};", symbols_[s.symbol], rest, coefficient);
      }
      const Symbol& symbol = graph_.symbols[s.symbol];
      line("  if (n.{0} < {1} || n.{0} > {2}{3})", symbols_[s.symbol], symbol.min, symbol.max,
           symbol.multiple_of == 1 ? "" : fmt::format(" || n.{} % {} != 0", symbols_[s.symbol], symbol.multiple_of));
      line("    return complain(ctx, cudaErrorInvalidValue, {});",
           quoted(fmt::format("{} is not from {} to {}, a multiple of {}", shown(symbol.name), symbol.min, symbol.max,
                              symbol.multiple_of)));
    }
    for (std::size_t i = 0; i < fields_.size(); ++i) check_argument(i);
    for (std::size_t i = 0; i < result_fields_.size(); ++i) check_result(i);
    for (const LaunchCheck& check : launch_.checks) {
      line("  if ({} != {})", sized(check.left), sized(check.right));
      line("    return complain(ctx, cudaErrorInvalidValue, {});", quoted("sizes do not agree: " + shown(check.what)));
    }
    if (symbols_.empty()) line("  (void)n;");
    if (fields_.empty() && result_fields_.empty()) line("  (void)ctx;");
    line("  return cudaSuccess;");
    line("}}");
    line("");
    std::string text = std::move(out_);
    out_ = std::move(kept);
    return text;
  }

  void check_argument(std::size_t i) {
    const ValueId v = launch_.arguments[i];
    const Shape& shape = graph_.tensor(v).shape;
    std::string wrong;
    for (std::size_t d = 0; d < shape.size(); ++d)
      wrong += fmt::format("{}args->{}[{}] != {}", d ? " || " : "", shapes_[i], d, sized(shape[d]));
    const std::string shown_name = shown(graph_.value(v).name);
    if (!wrong.empty()) {
      line("  if ({})", wrong);
      line("    return complain(ctx, cudaErrorInvalidValue, {});",
           quoted("the extents of " + shown_name + " are not " + type_text(v)));
    }
    line("  if (reinterpret_cast<size_t>(args->{}) % 16 != 0)", fields_[i]);
    line("    return complain(ctx, cudaErrorInvalidValue, {});", quoted(shown_name + " is not aligned to 16 bytes"));
  }

  void check_result(std::size_t i) {
    const ValueId v = launch_.results[i];
    const std::string shown_name = shown(graph_.value(v).name);
    if (const Alias* alias = alias_of(v)) {
      const std::string input = field_of_input(alias->input);
      line("  if (args->{0} && args->{0} != args->{1})", result_fields_[i], input);
      line("    return complain(ctx, cudaErrorInvalidValue, {});",
           quoted(shown_name + " is written into the buffer of " + shown(graph_.value(alias->input).name)));
      return;
    }
    line("  if (reinterpret_cast<size_t>(args->{}) % 16 != 0)", result_fields_[i]);
    line("    return complain(ctx, cudaErrorInvalidValue, {});", quoted(shown_name + " is not aligned to 16 bytes"));
  }

  void functions() {
    line("extern \"C\" {{");
    line("");
    create();
    size_function("workspace_bytes", launch_.workspace_bytes);
    size_function("prepared_bytes", launch_.prepared_bytes);
    line("cudaError_t {0}_prepare({0}_context* ctx, const {0}_args* args, void* prepared, cudaStream_t stream) {{", m_);
    if (launch_.prepare_steps.empty()) {
      line("  (void)ctx, (void)args, (void)prepared, (void)stream;  // nothing depends on constants alone");
      line("  return cudaSuccess;");
    } else {
      out_ += enqueue_text(launch_.prepare_steps, "static_cast<char*>(prepared)", "nullptr");
    }
    line("}}");
    line("");
    line("cudaError_t {0}_launch({0}_context* ctx, const {0}_args* args, const void* prepared, void* workspace,", m_);
    line("                     cudaStream_t stream) {{");
    out_ += steps_text();
    line("}}");
    line("");
    line("const char* {0}_error(const {0}_context* ctx) {{ return ctx ? ctx->error : \"no context\"; }}", m_);
    line("");
    if (matrix_calls_->empty()) {
      line("void {0}_destroy({0}_context* ctx) {{ delete ctx; }}", m_);
    } else {
      line("void {0}_destroy({0}_context* ctx) {{", m_);
      line("  if (ctx) release(ctx);");
      line("  delete ctx;");
      line("}}");
    }
    line("");
    line("}}  // extern \"C\"");
  }

  void create() {
    line("cudaError_t {0}_create({0}_context** ctx, const {0}_libraries* libs) {{", m_);
    line("  if (!ctx) return cudaErrorInvalidValue;");
    line("  *ctx = nullptr;");
    line("  {0}_context* made = new {0}_context();", m_);
    line("  if (libs) made->libraries = *libs;");
    line("  cudaError_t status = cudaSuccess;");
    for (std::size_t i = 0; i < launch_.embedded.size(); ++i)
      line(
          "  if (status == cudaSuccess) status = cudaGetSymbolAddress(const_cast<void**>(&made->constants[{0}]), "
          "constant_{0});",
          i);
    for (std::size_t k = 0; k < launch_.kernels.size(); ++k) {
      const IndexExpr& shared = launch_.kernels[k].dynamic_shared;
      if (shared.is(0)) continue;
      // A size that depends on symbols is bounded by what a block may have at all.
      const std::int64_t most = std::min<std::int64_t>(range_of(shared, graph_.bounds()).max, 227 * 1024);
      if (most > 48 * 1024)
        line(
            "  if (status == cudaSuccess)\n    status = cudaFuncSetAttribute(reinterpret_cast<const void*>({}), "
            "cudaFuncAttributeMaxDynamicSharedMemorySize, {});",
            launch_.kernels[k].name, most);
    }
    out_ += matrix_calls_->create();
    line("  if (status != cudaSuccess) {{");
    if (!matrix_calls_->empty()) line("    release(made);");
    line("    delete made;");
    line("    return status;");
    line("  }}");
    line("  *ctx = made;");
    line("  return cudaSuccess;");
    line("}}");
    line("");
  }

  void size_function(const char* function, const IndexExpr& bytes) {
    line("size_t {0}_{1}(const {0}_args* args) {{", m_, function);
    if (bytes.is_constant()) {
      line("  (void)args;");
      line("  return {};", sized(bytes));
    } else {
      line("  {}_sizes n;", m_);
      line("  return solve(nullptr, args, n) == cudaSuccess ? size_t({}) : 0;", sized(bytes));
    }
    line("}}");
    line("");
  }

  std::string steps_text() {
    return enqueue_text(launch_.steps, "const_cast<char*>(static_cast<const char*>(prepared))",
                        "static_cast<char*>(workspace)");
  }

  std::string enqueue_text(const std::vector<LaunchStep>& steps, const std::string& prepared,
                           const std::string& workspace) {
    std::string kept = std::move(out_);
    out_.clear();
    line("  if (!ctx) return cudaErrorInvalidValue;");
    line("  {}_sizes n;", m_);
    line("  cudaError_t status = solve(ctx, args, n);");
    line("  if (status != cudaSuccess) return status;");
    line("  char* const work = {};", workspace);
    line("  char* const ready = {};", prepared);
    line("  (void)work, (void)ready, (void)stream;");
    std::uint32_t group = UINT32_MAX;
    for (const LaunchStep& step : steps) {
      if (step.group != group && step.group < plan_.groups.size()) {
        group = step.group;
        line("  // {}", group_text(plan_.groups[group]));
      }
      enqueue(step);
    }
    line("  return cudaSuccess;");
    std::string text = std::move(out_);
    out_ = std::move(kept);
    return text;
  }

  std::string group_text(const FusionGroup& group) const {
    std::string text;
    for (const NodeId n : group.nodes) {
      if (text.size() > 90) return text + ", ...";
      text += (text.empty() ? "" : ", ") + comment_text(graph_.nodes[n].name, 40);
    }
    return text;
  }

  void enqueue(const LaunchStep& step) {
    switch (step.kind) {
      case LaunchStep::Kind::kKernel:
        return enqueue_kernel(step);
      case LaunchStep::Kind::kCopy:
        return enqueue_copy(step);
      case LaunchStep::Kind::kExternal:
        return enqueue_external(step);
      case LaunchStep::Kind::kCollective:
        return enqueue_collective(step);
      case LaunchStep::Kind::kMatrixCall:
        return enqueue_matrix_call(step);
    }
  }

  void enqueue_matrix_call(const LaunchStep& step) {
    MatrixCallOperands operands;
    for (std::size_t i = 0; i < step.arguments.size(); ++i)
      operands.pointers.push_back(pointer(step.arguments[i], i >= step.reads.size()));
    operands.refused = quoted("cuBLASLt refused the product of node " + shown(graph_.value(step.matrix->d.value).name));
    out_ += matrix_calls_->call(step, operands);
  }

  void enqueue_copy(const LaunchStep& step) {
    if (step.bytes.is(0)) return;
    const Range bytes = range_of(step.bytes, graph_.bounds());
    line("  {}status = cudaMemcpyAsync({}, {}, size_t({}), cudaMemcpyDeviceToDevice, stream);",
         bytes.min > 0 ? "" : fmt::format("if ({} > 0) ", sized(step.bytes)), pointer(step.arguments[0], true),
         pointer(step.arguments[1], false), sized(step.bytes));
    line("  if (status != cudaSuccess) return complain(ctx, status, {});", quoted("a copy could not be enqueued"));
  }

  void enqueue_kernel(const LaunchStep& step) {
    const KernelSource& kernel = launch_.kernels[step.kernel];
    std::string arguments;
    for (std::size_t i = 0; i < step.arguments.size(); ++i) {
      const Argument& a = step.arguments[i];
      const bool written = kernel.parameters[i].written;
      arguments += ",\n                  ";
      if (a.kind == Argument::Kind::kBuffer)
        arguments += fmt::format("static_cast<{}void*>({})", written ? "" : "const ", pointer(a, written));
      else
        arguments += fmt::format("static_cast<{}>({})", a.bits == 64 ? "long long" : "int", sized(a.size));
    }
    line("  status = launch(reinterpret_cast<const void*>({}), {}, {}, {}, dim3({}, {}, {}), {}, stream{});",
         kernel.name, sized(step.grid[0]), sized(step.grid[1]), sized(step.grid[2]), kernel.block[0], kernel.block[1],
         kernel.block[2], sized(step.dynamic_shared), arguments);
    line("  if (status != cudaSuccess) return complain(ctx, status, {});",
         quoted(kernel.name + " could not be launched"));
  }

  void enqueue_external(const LaunchStep& step) {
    const Node& node = graph_.nodes[step.node];
    std::string inputs, outputs, extents;
    auto add_extents = [&](ValueId v) {
      for (const Dim& dim : graph_.tensor(v).shape) extents += (extents.empty() ? "" : ", ") + sized(dim);
    };
    for (std::size_t i = 0; i < step.arguments.size(); ++i) {
      const bool output = i >= step.reads.size();
      std::string& list = output ? outputs : inputs;
      list += (list.empty() ? "" : ", ") + pointer(step.arguments[i], output);
      add_extents(output ? step.writes[i - step.reads.size()] : step.reads[i]);
    }
    line("  {{");
    line("    const void* const inputs[] = {{{}}};", inputs.empty() ? "nullptr" : inputs);
    line("    void* const outputs[] = {{{}}};", outputs.empty() ? "nullptr" : outputs);
    line("    const long long extents[] = {{{}}};", extents.empty() ? "0" : extents);
    line("    status = ::{}(inputs, outputs, extents, {}, stream);", external_symbol(node),
         quoted(attributes_json(node)));
    line("  }}");
    line("  if (status != cudaSuccess) return complain(ctx, status, {});",
         quoted("the launcher of node " + shown(node.name) + " failed"));
  }

  std::string attributes_json(const Node& node) const {
    std::string json = "{";
    for (const Attribute& a : graph_.attributes(node).list()) {
      const auto* raw = std::get_if<RawJson>(&a.value);
      const auto* text = std::get_if<std::string>(&a.value);
      if (!raw && !text) throw InternalError("an attribute of a custom op that is no JSON");
      json += (json.size() > 1 ? "," : "") + json_string(a.name) + ":" + (raw ? raw->text : json_string(*text));
    }
    return json + "}";
  }

  void enqueue_collective(const LaunchStep& step) {
    const Node& node = graph_.nodes[step.node];
    out_ += collective_call(graph_, step,
                            {.from = pointer(step.arguments[0], false),
                             .to = pointer(step.arguments[1], true),
                             .communicators = "ctx->libraries.nccl_comms",
                             .sized = [this](const IndexExpr& e) { return sized(e); }});
    line("    return complain(ctx, cudaErrorUnknown, {});",
         quoted("NCCL refused the collective of node " + shown(node.name)));
  }

  std::string group_names_text() const {
    std::string text;
    for (const std::string& name : collective_groups(graph_)) text += (text.empty() ? "" : ", ") + name;
    return text;
  }

  std::string pointer(const Argument& argument, bool written) const {
    const BufferRef& b = argument.buffer;
    switch (b.kind) {
      case BufferRef::Kind::kInput: {
        const std::string field = field_of_input(graph_.inputs[b.index]);
        return written ? fmt::format("const_cast<void*>(args->{})", field) : "args->" + field;
      }
      case BufferRef::Kind::kConstant:
        return "args->" + field_of_input(graph_.constants[b.index].value);
      case BufferRef::Kind::kOutput:
        return "args->" + result_fields_.at(b.index);
      case BufferRef::Kind::kWorkspace:
        return b.offset.is(0) ? "static_cast<void*>(work)"
                              : fmt::format("static_cast<void*>(work + ({}))", sized(b.offset));
      case BufferRef::Kind::kPrepared:
        return b.offset.is(0) ? "static_cast<void*>(ready)"
                              : fmt::format("static_cast<void*>(ready + ({}))", sized(b.offset));
      case BufferRef::Kind::kEmbedded: {
        const ValueId v = graph_.constants[b.index].value;
        const auto at = std::find(launch_.embedded.begin(), launch_.embedded.end(), v) - launch_.embedded.begin();
        return fmt::format("ctx->constants[{}]", at);
      }
      case BufferRef::Kind::kNowhere:
        break;
    }
    throw InternalError("an argument without a buffer");
  }

  std::string field_of_input(ValueId v) const {
    const auto at = std::find(launch_.arguments.begin(), launch_.arguments.end(), v) - launch_.arguments.begin();
    return fields_.at(static_cast<std::size_t>(at));
  }
  const Alias* alias_of(ValueId v) const {
    for (const Alias& alias : graph_.aliases)
      if (alias.output == v) return &alias;
    return nullptr;
  }
  std::string type_text(ValueId v) const { return comment_text(to_string(graph_.type(v), graph_.symbols), 96); }

  const Graph& graph_;
  const FusionPlan& plan_;
  const LaunchPlan& launch_;
  const std::string& m_;
  UniqueNames names_;
  std::vector<std::string> fields_, shapes_, result_fields_, symbols_;
  std::optional<MatrixCallsText> matrix_calls_;
  bool collectives_ = false, externals_ = false;
  std::string out_;
};

}  // namespace

std::string emit_host(const Graph& graph, const FusionPlan& plan, const LaunchPlan& launch) {
  return HostPart(graph, plan, launch).print();
}

}  // namespace fusec
