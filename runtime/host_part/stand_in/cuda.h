// Stands in for the CUDA driver's header when a plain C++ compiler compiles the host part of out.cu. It has tensor maps
// and the runtime call that returns the driver's function for encoding them.
#pragma once

#include <string.h>

#include "cuda_runtime.h"

typedef unsigned cuuint32_t;
typedef unsigned long long cuuint64_t;
enum CUresult { CUDA_SUCCESS = 0, CUDA_ERROR_INVALID_VALUE = 1 };
enum CUtensorMapDataType {
  CU_TENSOR_MAP_DATA_TYPE_UINT8 = 0,
  CU_TENSOR_MAP_DATA_TYPE_UINT16 = 1,
  CU_TENSOR_MAP_DATA_TYPE_UINT32 = 2
};
enum CUtensorMapInterleave { CU_TENSOR_MAP_INTERLEAVE_NONE = 0 };
enum CUtensorMapSwizzle {
  CU_TENSOR_MAP_SWIZZLE_NONE = 0,
  CU_TENSOR_MAP_SWIZZLE_32B = 1,
  CU_TENSOR_MAP_SWIZZLE_64B = 2,
  CU_TENSOR_MAP_SWIZZLE_128B = 3
};
enum CUtensorMapL2promotion { CU_TENSOR_MAP_L2_PROMOTION_L2_128B = 2 };
enum CUtensorMapFloatOOBfill { CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE = 0 };
typedef struct alignas(64) {
  cuuint64_t opaque[16];
} CUtensorMap;

inline CUresult fusec_encode_tiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
                                   const cuuint64_t* extents, const cuuint64_t* strides, const cuuint32_t* box,
                                   const cuuint32_t* steps, CUtensorMapInterleave interleave,
                                   CUtensorMapSwizzle swizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill fill) {
  for (cuuint32_t d = 0; d < rank; ++d)
    if (steps[d] != 1) return CUDA_ERROR_INVALID_VALUE;
  // The swizzle width must equal the box's row of bytes; rows of 16 bytes are not swizzled.
  const cuuint32_t line = box[0] << int(type);
  if (interleave != CU_TENSOR_MAP_INTERLEAVE_NONE || line != 16u << int(swizzle) ||
      fill != CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE)
    return CUDA_ERROR_INVALID_VALUE;
  return CUresult(
      fusec_runtime->tensor_map(fusec_runtime->recorder, map, 1 << int(type), rank, address, extents, strides, box));
}

enum { cudaEnableDefault = 0 };
enum cudaDriverEntryPointQueryResult { cudaDriverEntryPointSuccess = 0, cudaDriverEntryPointSymbolNotFound = 1 };

inline cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned version,
                                                    unsigned long long flags, cudaDriverEntryPointQueryResult* result) {
  const bool found = strcmp(name, "cuTensorMapEncodeTiled") == 0 && version >= 12000 && flags == cudaEnableDefault;
  *function = found ? reinterpret_cast<void*>(&fusec_encode_tiled) : nullptr;
  *result = found ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}
