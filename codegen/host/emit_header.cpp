#include "codegen/host/emit_header.h"

#include <fmt/format.h>

#include "codegen/expr/identifiers.h"
#include "codegen/host/host_names.h"
#include "codegen/host/host_text.h"
#include "codegen/host/host_types.h"

namespace fusec {
namespace {

// M stands for the model's identifier.
constexpr std::string_view kHow =
    R"(// How to call it. Link the out.cu that this header was made with. All pointers but ctx and args are device memory.
//
//   M_context* ctx;
//   M_create(&ctx, NULL);         // once for each device, which is current then; may wait
//   M_args args = {...};          // pointers, and the extents of every input and constant
//   void* prepared = allocate(M_prepared_bytes(&args));
//   M_prepare(ctx, &args, prepared, stream);             // once for each set of weights
//   void* workspace = allocate(M_workspace_bytes(&args));
//   M_launch(ctx, &args, prepared, workspace, stream);   // as often as wanted
//   M_destroy(ctx);
//
// M_prepare and M_launch only enqueue. Memory of 0 bytes may be a null pointer.
//
// Tensors are dense, row-major and aligned to 16 bytes, as are the workspace and the prepared memory.
// A status other than cudaSuccess comes with a text: M_error(ctx), until the next call with that context.
//
// Lifetimes. `args` is read before a call returns. Tensors, workspace and prepared memory are in use until the stream has
// done the work. Prepared memory is good as long as the constants have the same elements; it depends on no input.
//
// Sharing. A context serves one device, and one thread at a time; several threads take a context each. Launches on
// several streams may share the context, the constants and, once it is filled, the prepared memory. Each stream needs a
// workspace of its own. A launch may be captured into a CUDA graph: it allocates nothing and waits for nothing.
)";

constexpr std::string_view kHostFunctions = R"(#ifdef __cplusplus
extern "C" {
#endif

// `libs` may be null.
cudaError_t M_create(M_context** ctx, const M_libraries* libs);
// Bytes; (size_t)-1 where the extents contradict one another or the model. Pointers are not looked at.
size_t M_workspace_bytes(const M_args* args);
// The same; of the extents only those of constants are looked at. 0: nothing is prepared.
size_t M_prepared_bytes(const M_args* args);
cudaError_t M_prepare(M_context* ctx, const M_args* args, void* prepared, cudaStream_t stream);
cudaError_t M_launch(M_context* ctx, const M_args* args, const void* prepared, void* workspace,
                     cudaStream_t stream);
// What was wrong with the last call; never null.
const char* M_error(const M_context* ctx);
void M_destroy(M_context* ctx);

#ifdef __cplusplus
}
#endif
)";

std::string for_model(std::string_view text, const std::string& model) {
  std::string named;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_model = text[i] == 'M' && text.substr(i + 1, 1) == "_";
    named += is_model ? model : std::string(1, text[i]);
  }
  return named;
}

}  // namespace

std::string emit_header(const Graph& graph, const LaunchPlan& launch) {
  const HostNames names(graph, launch);
  const std::string& m = names.model();
  HostText text;
  text.line("// Made by fusec from \"{}\": the host interface of its out.cu, for C and C++.",
            comment_text(graph.name, 60));
  text.line("//");
  text.append(for_model(kHow, m));
  text.line("#ifndef {}_FUSEC_H_", m);
  text.line("#define {}_FUSEC_H_", m);
  text.line("");
  text.line("#include <cuda_runtime_api.h>");
  text.line("#include <stddef.h>");
  text.line("");
  text.append(host_types(graph, launch, names));
  text.append(for_model(kHostFunctions, m));
  text.line("");
  text.line("#endif");
  return std::move(text).take();
}

}  // namespace fusec
