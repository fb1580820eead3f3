#include "codegen/host/emit_tensor_maps.h"

#include <fmt/format.h>

#include <algorithm>

namespace fusec {

bool has_tensor_maps(const LaunchPlan& launch) {
  return std::ranges::any_of(launch.kernels, [](const KernelSource& kernel) {
    return std::ranges::any_of(kernel.parameters,
                               [](const KernelParameter& p) { return p.kind == KernelParameter::Kind::kTensorMap; });
  });
}

std::string tensor_map_types() {
  return "typedef CUresult (*encode_tiled_function)(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*,\n"
         "                                          const cuuint64_t*, const cuuint64_t*, const cuuint32_t*,\n"
         "                                          const cuuint32_t*, CUtensorMapInterleave, CUtensorMapSwizzle,\n"
         "                                          CUtensorMapL2promotion, CUtensorMapFloatOOBfill);\n\n";
}

std::string tensor_map_context_field() {
  return "  encode_tiled_function encode_tiled;  // the driver's cuTensorMapEncodeTiled\n";
}

std::string tensor_map_functions(const std::string& model) {
  return fmt::format(
      "// Describes a tensor to TMA: innermost dimension first, strides in bytes, boxes swizzled over their lines of "
      "128,\n"
      "// 64 or 32 bytes.\n"
      "template <unsigned kRank>\n"
      "inline cudaError_t describe({0}_context* ctx, CUtensorMap* map, CUtensorMapDataType type, const void* tensor,\n"
      "                            const cuuint64_t (&extents)[kRank], const cuuint64_t (&strides)[kRank],\n"
      "                            const cuuint32_t (&box)[kRank]) {{\n"
      "  cuuint32_t steps[kRank];\n"
      "  for (unsigned d = 0; d < kRank; ++d) steps[d] = 1;\n"
      "  const cuuint64_t line = box[0] * strides[0];\n"
      "  const CUtensorMapSwizzle swizzle = line == 128  ? CU_TENSOR_MAP_SWIZZLE_128B\n"
      "                                     : line == 64 ? CU_TENSOR_MAP_SWIZZLE_64B\n"
      "                                     : line == 32 ? CU_TENSOR_MAP_SWIZZLE_32B\n"
      "                                                  : CU_TENSOR_MAP_SWIZZLE_NONE;\n"
      "  const CUresult result = ctx->encode_tiled(\n"
      "      map, type, kRank, const_cast<void*>(tensor), extents, strides + 1, box, steps,\n"
      "      CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle, CU_TENSOR_MAP_L2_PROMOTION_L2_128B,\n"
      "      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);\n"
      "  if (result == CUDA_SUCCESS) return cudaSuccess;\n"
      "  return complain(ctx, cudaErrorInvalidValue, \"the driver refused the description of a tensor for TMA\");\n"
      "}}\n\n",
      model);
}

std::string tensor_map_create() {
  return "  if (status == cudaSuccess) {\n"
         "    void* function = nullptr;\n"
         "    cudaDriverEntryPointQueryResult found;\n"
         "#if CUDART_VERSION >= 12050\n"
         "    status = cudaGetDriverEntryPointByVersion(\"cuTensorMapEncodeTiled\", &function, 12000, "
         "cudaEnableDefault, "
         "&found);\n"
         "#else\n"
         "    status = cudaGetDriverEntryPoint(\"cuTensorMapEncodeTiled\", &function, cudaEnableDefault, &found);\n"
         "#endif\n"
         "    if (status == cudaSuccess && (found != cudaDriverEntryPointSuccess || !function)) status = "
         "cudaErrorNotSupported;\n"
         "    made->encode_tiled = reinterpret_cast<encode_tiled_function>(function);\n"
         "  }\n";
}

std::string tensor_map_call(const HostNames& names, const Argument& argument, const std::string& map) {
  const TensorMapBoxes& boxes = argument.boxes;
  std::string extents, strides, box;
  for (std::size_t d = 0; d < boxes.rank(); ++d) {
    const std::string comma = d == 0 ? "" : ", ";
    extents += comma + fmt::format("cuuint64_t({})", names.sized(boxes.extents[d]));
    const IndexExpr stride = d == 0 ? IndexExpr(boxes.element_bytes) : boxes.strides[d - 1] * boxes.element_bytes;
    strides += comma + fmt::format("cuuint64_t({})", names.sized(stride));
    box += comma + std::to_string(boxes.box[d]);
  }
  std::string tensor = names.pointer(argument.buffer, false);
  if (!boxes.offset.is(0))
    tensor = fmt::format("static_cast<const char*>({}) + {}", tensor, names.sized(boxes.offset * boxes.element_bytes));
  return fmt::format(
      "describe<{}>(ctx, &{}, CU_TENSOR_MAP_DATA_TYPE_UINT{}, {},\n                        {{{}}}, {{{}}}, {{{}}})",
      boxes.rank(), map, 8 * boxes.element_bytes, tensor, extents, strides, box);
}

}  // namespace fusec
