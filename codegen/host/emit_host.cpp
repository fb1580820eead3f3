// Prints the host part of out.cu, the library that a user calls (create, prepare, launch), from the launch plan.
#include <algorithm>

#include "codegen/host/emit_collective.h"
#include "codegen/host/emit_file.h"
#include "codegen/host/emit_host_checks.h"
#include "codegen/host/emit_host_steps.h"
#include "codegen/host/emit_matrix_calls.h"
#include "codegen/host/emit_tensor_maps.h"
#include "codegen/host/host_names.h"
#include "codegen/host/host_text.h"
#include "codegen/host/host_types.h"
#include "ir/budget.h"
#include "ir/constant_data.h"
#include "ir/error.h"
#include "ir/reserved_words.h"
#include "ir/spelling.h"

namespace fusec {
namespace {

class HostPart {
 public:
  HostPart(const Graph& graph, const FusionPlan& plan, const LaunchPlan& launch)
      : graph_(graph),
        plan_(plan),
        launch_(launch),
        m_(launch.identifier),
        names_(graph, launch),
        matrix_calls_(graph, launch, [this](const IndexExpr& e) { return sized(e); }) {
    for (const LaunchStep& step : all_steps())
      if (step.kind == LaunchStep::Kind::kCollective)
        collectives_ = true;
      else if (step.kind == LaunchStep::Kind::kExternal)
        externals_ = true;
  }

  std::string print() {
    // The functions are printed first, although they come last: only then are the helpers known that they call.
    functions();
    std::string body = std::exchange(text_, HostText()).take();
    const std::string checks = check_functions(graph_, launch_, names_);
    includes();
    types();
    embedded_constants();
    helpers(checks + body);
    text_.append(checks);
    text_.line("}}  // namespace");
    text_.line("");
    text_.append(body);
    return std::move(text_).take();
  }

 private:
  template <class... T>
  void line(fmt::format_string<T...> format, T&&... arguments) {
    text_.line(format, std::forward<T>(arguments)...);
  }

  std::vector<LaunchStep> all_steps() const {
    std::vector<LaunchStep> steps = launch_.prepare_steps;
    steps.insert(steps.end(), launch_.steps.begin(), launch_.steps.end());
    return steps;
  }

  std::string sized(const IndexExpr& e) const { return names_.sized(e); }

  void includes() {
    line("#include <cuda_runtime.h>");
    line("#include <stddef.h>");
    line("#include <stdio.h>");
    if (has_tensor_maps(launch_)) line("#include <cuda.h>");
    if (!matrix_calls_.empty()) line("#include <cublasLt.h>");
    if (collectives_) line("#include <nccl.h>");
    line("");
  }

  void types() {
    text_.append(host_types(graph_, launch_, names_));
    if (externals_) external_declarations();
  }

  // The launcher's name must not be that of a library function or of a function in this file.
  void check_launcher(const Node& node, const std::string& symbol) const {
    std::string_view fault = launcher_name_fault(symbol);
    if (fault.empty() && symbol.starts_with(m_ + "_")) fault = "a name of this file's";
    if (fault.empty()) return;
    throw Error(ErrorKind::kInput,
                {.file = graph_.file,
                 .pointer = fmt::format("/nodes/{}{}", node.file_position, node.op->custom ? "/attrs/symbol" : ""),
                 .what = "the launcher of node " + shown(node.name),
                 .found = fmt::format("{}, {}", in_quotes(symbol), fault),
                 .expected = fmt::format("{}; it does not begin with {}_", kLauncherName, m_)});
  }

  void external_declarations() {
    std::vector<std::string> symbols;
    for (const LaunchStep& step : all_steps()) {
      count_step();
      if (step.kind != LaunchStep::Kind::kExternal) continue;
      symbols.push_back(external_symbol(graph_, graph_.nodes[step.node]));
      check_launcher(graph_.nodes[step.node], symbols.back());
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

  void embedded_constants() {
    if (launch_.embedded.empty()) return;
    line("namespace {{");
    for (std::size_t i = 0; i < launch_.embedded.size(); ++i) {
      count_step();
      const ValueId v = launch_.embedded[i];
      const std::vector<std::byte> bytes = constant_bytes(*graph_.constant_of(v)->data, graph_.tensor(v).dtype);
      line("// constant {}: {}", shown(graph_.value(v).name), names_.type_text(v));
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

  // The helpers that the text below calls, and the context type.
  void helpers(const std::string& calling) {
    text_.append(matrix_calls_.types());
    if (has_tensor_maps(launch_)) text_.append(tensor_map_types());
    line("struct {}_context {{", m_);
    line("  char error[256];");
    line("  {}_libraries libraries;", m_);
    if (!launch_.embedded.empty()) line("  const void* constants[{}];", launch_.embedded.size());
    text_.append(matrix_calls_.context_fields());
    if (has_tensor_maps(launch_)) text_.append(tensor_map_context_field());
    line("}};");
    line("");
    line("namespace {{");
    line("");
    line("struct {}_sizes {{", m_);
    for (std::size_t i = 0; i < graph_.symbols.size(); ++i)
      line("  long long {};  // {} to {}, a multiple of {}", names_.symbol(i), graph_.symbols[i].min,
           graph_.symbols[i].max, graph_.symbols[i].multiple_of);
    if (graph_.symbols.empty()) line("  int unused;");
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
    if (std::ranges::any_of(launch_.kernels, [](const KernelSource& kernel) { return kernel.resident_blocks > 1; })) {
      line("// Blocks that wait for one another have to be on the device at once.");
      line("inline cudaError_t has_room(const void* kernel, int threads, size_t shared_bytes, int blocks) {{");
      line("  int device = 0, multiprocessors = 0, at_once = 0;");
      line("  cudaError_t status = cudaGetDevice(&device);");
      line(
          "  if (status == cudaSuccess)\n    status = cudaDeviceGetAttribute(&multiprocessors, "
          "cudaDevAttrMultiProcessorCount, device);");
      line(
          "  if (status == cudaSuccess)\n    status = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&at_once, kernel, "
          "threads, shared_bytes);");
      line("  if (status != cudaSuccess) return status;");
      line("  return multiprocessors * at_once < blocks ? cudaErrorCooperativeLaunchTooLarge : cudaSuccess;");
      line("}}");
      line("");
    }
    if (has_warpgroup_kernels()) {
      line("// Kernels of sm_90a run on devices of compute capability 9.0 alone.");
      line("inline cudaError_t is_hopper() {{");
      line("  int device = 0, major = 0;");
      line("  cudaError_t status = cudaGetDevice(&device);");
      line(
          "  if (status == cudaSuccess)\n    status = cudaDeviceGetAttribute(&major, "
          "cudaDevAttrComputeCapabilityMajor, device);");
      line("  return status == cudaSuccess && major != 9 ? cudaErrorNoKernelImageForDevice : status;");
      line("}}");
      line("");
    }
    text_.append(matrix_calls_.functions());
    if (has_tensor_maps(launch_)) text_.append(tensor_map_functions(m_));
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

  void functions() {
    line("extern \"C\" {{");
    line("");
    create();
    size_functions();
    prepare();
    launch();
    line("const char* {0}_error(const {0}_context* ctx) {{ return ctx ? ctx->error : \"no context\"; }}", m_);
    line("");
    if (matrix_calls_.empty()) {
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

  bool has_warpgroup_kernels() const {
    return std::ranges::any_of(launch_.kernels,
                               [](const KernelSource& kernel) { return kernel.prelude.contains("warpgroup"); });
  }

  // The maximum dynamic shared memory; for symbolic sizes, at most the block's limit.
  std::int64_t most_dynamic_shared(const KernelSource& kernel) const {
    return std::min<std::int64_t>(range_of(kernel.dynamic_shared, graph_.bounds()).max, launch_.most_shared_bytes);
  }

  void create() {
    line("cudaError_t {0}_create({0}_context** ctx, const {0}_libraries* libs) {{", m_);
    line("  if (!ctx) return cudaErrorInvalidValue;");
    line("  *ctx = nullptr;");
    line("  {0}_context* made = new {0}_context();", m_);
    line("  if (libs) made->libraries = *libs;");
    line("  cudaError_t status = {};", has_warpgroup_kernels() ? "is_hopper()" : "cudaSuccess");
    for (std::size_t i = 0; i < launch_.embedded.size(); ++i)
      line(
          "  if (status == cudaSuccess) status = cudaGetSymbolAddress(const_cast<void**>(&made->constants[{0}]), "
          "constant_{0});",
          i);
    for (std::size_t k = 0; k < launch_.kernels.size(); ++k) {
      count_step();
      const std::int64_t most = most_dynamic_shared(launch_.kernels[k]);
      // Without it, dynamic and static shared memory together have 48 KiB.
      if (most > 0)
        line(
            "  if (status == cudaSuccess)\n    status = cudaFuncSetAttribute(reinterpret_cast<const void*>({}), "
            "cudaFuncAttributeMaxDynamicSharedMemorySize, {});",
            launch_.kernels[k].name, most);
    }
    for (const KernelSource& kernel : launch_.kernels)
      if (kernel.resident_blocks > 1)
        line("  if (status == cudaSuccess)\n    status = has_room(reinterpret_cast<const void*>({}), {}, {}, {});",
             kernel.name, kernel.block[0], most_dynamic_shared(kernel), kernel.resident_blocks);
    text_.append(matrix_calls_.create());
    if (has_tensor_maps(launch_)) text_.append(tensor_map_create());
    line("  if (status != cudaSuccess) {{");
    if (!matrix_calls_.empty()) line("    release(made);");
    line("    delete made;");
    line("    return status;");
    line("  }}");
    line("  *ctx = made;");
    line("  return cudaSuccess;");
    line("}}");
    line("");
  }

  void size_functions() {
    line("// Bytes; (size_t)-1 where the extents contradict one another or the model. Pointers are not looked at.");
    line("size_t {0}_workspace_bytes(const {0}_args* args) {{", m_);
    line("  {}_sizes n;", m_);
    line("  return solve(nullptr, args, n) == cudaSuccess ? size_t({}) : size_t(-1);", sized(launch_.workspace_bytes));
    line("}}");
    line("");
    line("// The same; of the extents only those of constants are looked at. 0: nothing is prepared.");
    line("size_t {0}_prepared_bytes(const {0}_args* args) {{", m_);
    line("  return check_constants(nullptr, args) == cudaSuccess ? size_t({}) : size_t(-1);",
         sized(launch_.prepared_bytes));
    line("}}");
    line("");
  }

  void prepare() {
    line("cudaError_t {0}_prepare({0}_context* ctx, const {0}_args* args, void* prepared, cudaStream_t stream) {{", m_);
    if (launch_.prepare_steps.empty()) {
      line("  (void)ctx, (void)args, (void)prepared, (void)stream;  // nothing is prepared");
    } else {
      line("  if (!ctx) return cudaErrorInvalidValue;");
      line("  cudaError_t status = check_constants(ctx, args);");
      line("  if (status == cudaSuccess) status = check_constant_pointers(ctx, args);");
      line("  if (status != cudaSuccess) return status;");
      require_prepared();
      require_communicators(launch_.prepare_steps);
      line("  char* const ready = static_cast<char*>(prepared);");
      enqueue(launch_.prepare_steps);
    }
    line("  return cudaSuccess;");
    line("}}");
    line("");
  }

  void launch() {
    line("cudaError_t {0}_launch({0}_context* ctx, const {0}_args* args, const void* prepared, void* workspace,", m_);
    line("                     cudaStream_t stream) {{");
    line("  if (!ctx) return cudaErrorInvalidValue;");
    line("  {}_sizes n;", m_);
    line("  cudaError_t status = solve(ctx, args, n);");
    line("  if (status == cudaSuccess) status = check_pointers(ctx, args, n);");
    line("  if (status != cudaSuccess) return status;");
    if (!launch_.prepare_steps.empty()) require_prepared();
    require_memory("workspace", launch_.workspace_bytes, "no workspace", "the workspace");
    require_communicators(launch_.steps);
    line("  char* const work = static_cast<char*>(workspace);");
    line("  char* const ready = const_cast<char*>(static_cast<const char*>(prepared));");
    line("  (void)work, (void)ready, (void)stream;");
    enqueue(launch_.steps);
    line("  return cudaSuccess;");
    line("}}");
    line("");
  }

  void require_prepared() {
    require_memory("prepared", launch_.prepared_bytes, "no prepared memory: " + m_ + "_prepare fills it",
                   "the prepared memory");
  }

  void require_memory(const char* pointer, const IndexExpr& bytes, const std::string& missing, const char* what) {
    if (bytes.is(0)) return;
    const bool always = range_of(bytes, graph_.bounds()).min > 0;
    line("  if (!{}{}) return complain(ctx, cudaErrorInvalidValue, {});", pointer,
         always ? "" : " && " + sized(bytes) + " > 0", string_literal(missing));
    line("  if (reinterpret_cast<size_t>({}) % 16 != 0)", pointer);
    line("    return complain(ctx, cudaErrorInvalidValue, \"{} is not aligned to 16 bytes\");", what);
  }

  void require_communicators(const std::vector<LaunchStep>& steps) {
    if (std::ranges::none_of(steps, [](const LaunchStep& s) { return s.kind == LaunchStep::Kind::kCollective; }))
      return;
    line("  if (!ctx->libraries.nccl_comms)");
    line("    return complain(ctx, cudaErrorInvalidValue, \"{}_create was given no NCCL communicators\");", m_);
  }

  void enqueue(const std::vector<LaunchStep>& steps) {
    text_.append(steps_text({graph_, plan_, launch_, names_, matrix_calls_}, steps));
  }

  const Graph& graph_;
  const FusionPlan& plan_;
  const LaunchPlan& launch_;
  const std::string& m_;
  HostNames names_;
  MatrixCallsText matrix_calls_;
  bool collectives_ = false, externals_ = false;
  HostText text_;
};

}  // namespace

std::string emit_host(const Graph& graph, const FusionPlan& plan, const LaunchPlan& launch) {
  return HostPart(graph, plan, launch).print();
}

}  // namespace fusec
