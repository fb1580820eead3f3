// Stands in for cuBLASLt when a plain C++ compiler compiles the host part of out.cu. It has only the calls, types and
// constants that such files use, with the library's values. Descriptors store their attributes; products go to the
// recorder. It refuses what the library's documentation says the library refuses, so tests find a launch plan with an
// unsupported call without a GPU.
#pragma once

#include "cuda_runtime.h"

enum cudaDataType_t {
  CUDA_R_32F = 0,
  CUDA_R_64F = 1,
  CUDA_R_16F = 2,
  CUDA_R_8I = 3,
  CUDA_R_32I = 10,
  CUDA_R_16BF = 14,
  CUDA_R_8F_E4M3 = 28,
  CUDA_R_8F_E5M2 = 29
};
enum cublasStatus_t {
  CUBLAS_STATUS_SUCCESS = 0,
  CUBLAS_STATUS_INVALID_VALUE = 7,
  CUBLAS_STATUS_EXECUTION_FAILED = 13,
  CUBLAS_STATUS_NOT_SUPPORTED = 15
};
enum cublasComputeType_t { CUBLAS_COMPUTE_32F = 68, CUBLAS_COMPUTE_64F = 70, CUBLAS_COMPUTE_32I = 72 };
enum cublasOperation_t { CUBLAS_OP_N = 0, CUBLAS_OP_T = 1 };
enum cublasLtEpilogue_t {
  CUBLASLT_EPILOGUE_DEFAULT = 1,
  CUBLASLT_EPILOGUE_RELU = 2,
  CUBLASLT_EPILOGUE_BIAS = 4,
  CUBLASLT_EPILOGUE_RELU_BIAS = 6,
  CUBLASLT_EPILOGUE_GELU = 32,
  CUBLASLT_EPILOGUE_GELU_BIAS = 36,
  CUBLASLT_EPILOGUE_GELU_AUX = 160,
  CUBLASLT_EPILOGUE_GELU_AUX_BIAS = 164
};
enum { CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE = 2 };
enum cublasLtMatmulMatrixScale_t {
  CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F = 0,
  CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F = 3
};
enum cublasLtMatmulDescAttributes_t {
  CUBLASLT_MATMUL_DESC_TRANSA = 3,
  CUBLASLT_MATMUL_DESC_TRANSB = 4,
  CUBLASLT_MATMUL_DESC_EPILOGUE = 7,
  CUBLASLT_MATMUL_DESC_BIAS_POINTER = 8,
  CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER = 11,
  CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD = 12,
  CUBLASLT_MATMUL_DESC_A_SCALE_POINTER = 17,
  CUBLASLT_MATMUL_DESC_B_SCALE_POINTER = 18,
  CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE = 26,
  CUBLASLT_MATMUL_DESC_A_SCALE_MODE = 31,
  CUBLASLT_MATMUL_DESC_B_SCALE_MODE = 32
};
enum cublasLtMatrixLayoutAttribute_t {
  CUBLASLT_MATRIX_LAYOUT_ROWS = 2,
  CUBLASLT_MATRIX_LAYOUT_COLS = 3,
  CUBLASLT_MATRIX_LAYOUT_LD = 4,
  CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT = 5,
  CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET = 6
};
enum cublasLtMatmulPreferenceAttributes_t {
  CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES = 1,
  CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK = 3,
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES = 5,
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES = 6,
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES = 7,
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES = 8
};

// Attribute values, eight bytes each, indexed by the attribute's number.
struct fusec_attributes {
  long long values[33];
};
struct cublasLtContext {
  int unused;
};
typedef cublasLtContext* cublasLtHandle_t;
struct fusec_matmul_desc : fusec_attributes {
  cublasComputeType_t compute;
  cudaDataType_t scale;
};
struct fusec_matrix_layout : fusec_attributes {
  cudaDataType_t type;
};
struct fusec_matmul_preference : fusec_attributes {};
typedef fusec_matmul_desc* cublasLtMatmulDesc_t;
typedef fusec_matrix_layout* cublasLtMatrixLayout_t;
typedef fusec_matmul_preference* cublasLtMatmulPreference_t;
// An algorithm. It is valid only for the layouts, workspace and alignments that it was picked for.
struct cublasLtMatmulAlgo_t {
  unsigned long long layouts;
  unsigned alignments[4];
  size_t workspace_bytes;
};
struct cublasLtMatmulHeuristicResult_t {
  cublasLtMatmulAlgo_t algo;
  size_t workspaceSize;
  cublasStatus_t state;
};

inline cublasStatus_t fusec_set(fusec_attributes* object, int attribute, const void* value, size_t bytes) {
  if (!object || !value || attribute < 0 || attribute >= 33 || (bytes != 4 && bytes != 8))
    return CUBLAS_STATUS_INVALID_VALUE;
  object->values[attribute] =
      bytes == 8 ? *static_cast<const long long*>(value) : static_cast<long long>(*static_cast<const int*>(value));
  return CUBLAS_STATUS_SUCCESS;
}

inline cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  *handle = new cublasLtContext();
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* desc, cublasComputeType_t compute,
                                               cudaDataType_t scale) {
  *desc = new fusec_matmul_desc();
  (*desc)->compute = compute;
  (*desc)->scale = scale;
  (*desc)->values[CUBLASLT_MATMUL_DESC_EPILOGUE] = CUBLASLT_EPILOGUE_DEFAULT;
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) {
  delete desc;
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
                                                     cublasLtMatmulDescAttributes_t attribute, const void* value,
                                                     size_t bytes) {
  return fusec_set(desc, attribute, value, bytes);
}
inline cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType_t type,
                                                 unsigned long long rows, unsigned long long columns,
                                                 long long leading) {
  *layout = new fusec_matrix_layout();
  (*layout)->type = type;
  (*layout)->values[CUBLASLT_MATRIX_LAYOUT_ROWS] = static_cast<long long>(rows);
  (*layout)->values[CUBLASLT_MATRIX_LAYOUT_COLS] = static_cast<long long>(columns);
  (*layout)->values[CUBLASLT_MATRIX_LAYOUT_LD] = leading;
  (*layout)->values[CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT] = 1;
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete layout;
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                       cublasLtMatrixLayoutAttribute_t attribute, const void* value,
                                                       size_t bytes) {
  return fusec_set(layout, attribute, value, bytes);
}
inline cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  *preference = new fusec_matmul_preference();
  for (int i = 0; i < 4; ++i) (*preference)->values[CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES + i] = 256;
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete preference;
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                           cublasLtMatmulPreferenceAttributes_t attribute,
                                                           const void* value, size_t bytes) {
  return fusec_set(preference, attribute, value, bytes);
}

inline unsigned long long fusec_layouts(const fusec_matrix_layout* const* layouts) {
  unsigned long long hash = 1469598103934665603ull;
  for (int i = 0; i < 4; ++i) {
    hash = (hash ^ static_cast<unsigned long long>(layouts[i]->type)) * 1099511628211ull;
    for (int attribute = CUBLASLT_MATRIX_LAYOUT_ROWS; attribute <= CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET;
         ++attribute)
      hash = (hash ^ static_cast<unsigned long long>(layouts[i]->values[attribute])) * 1099511628211ull;
  }
  return hash;
}

// Whether the library would find an algorithm.
inline bool fusec_is_supported(const fusec_matmul_desc* desc, const fusec_matrix_layout* const* layouts,
                               const fusec_matmul_preference* preference) {
  const auto value = [&](int matrix, int attribute) { return layouts[matrix]->values[attribute]; };
  const bool a_transposed = desc->values[CUBLASLT_MATMUL_DESC_TRANSA] == CUBLAS_OP_T;
  const bool b_transposed = desc->values[CUBLASLT_MATMUL_DESC_TRANSB] == CUBLAS_OP_T;
  const long long m =
      value(a_transposed ? 0 : 0, a_transposed ? CUBLASLT_MATRIX_LAYOUT_COLS : CUBLASLT_MATRIX_LAYOUT_ROWS);
  const long long k = value(0, a_transposed ? CUBLASLT_MATRIX_LAYOUT_ROWS : CUBLASLT_MATRIX_LAYOUT_COLS);
  const long long n = value(1, b_transposed ? CUBLASLT_MATRIX_LAYOUT_ROWS : CUBLASLT_MATRIX_LAYOUT_COLS);
  if (k != value(1, b_transposed ? CUBLASLT_MATRIX_LAYOUT_COLS : CUBLASLT_MATRIX_LAYOUT_ROWS)) return false;
  for (int i = 0; i < 4; ++i) {
    if (value(i, CUBLASLT_MATRIX_LAYOUT_ROWS) < 1 || value(i, CUBLASLT_MATRIX_LAYOUT_COLS) < 1) return false;
    if (value(i, CUBLASLT_MATRIX_LAYOUT_LD) < value(i, CUBLASLT_MATRIX_LAYOUT_ROWS)) return false;
    if (value(i, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT) != value(0, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT)) return false;
    if (i >= 2 && (value(i, CUBLASLT_MATRIX_LAYOUT_ROWS) != m || value(i, CUBLASLT_MATRIX_LAYOUT_COLS) != n))
      return false;
  }
  const cudaDataType_t a = layouts[0]->type, b = layouts[1]->type, d = layouts[3]->type;
  if (layouts[2]->type != d) return false;
  const int epilogue = static_cast<int>(desc->values[CUBLASLT_MATMUL_DESC_EPILOGUE]);
  // Vectors of scales are supported only for both operands together, and only for float8.
  const bool float8 = a == CUDA_R_8F_E4M3 || a == CUDA_R_8F_E5M2;
  const long long scale_mode = desc->values[CUBLASLT_MATMUL_DESC_A_SCALE_MODE];
  if (scale_mode != desc->values[CUBLASLT_MATMUL_DESC_B_SCALE_MODE]) return false;
  if (scale_mode != CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F &&
      (scale_mode != CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F || !float8 ||
       desc->values[CUBLASLT_MATMUL_DESC_A_SCALE_POINTER] == 0 ||
       desc->values[CUBLASLT_MATMUL_DESC_B_SCALE_POINTER] == 0))
    return false;
  if ((epilogue & 128) && (desc->values[CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD] < m ||
                           desc->values[CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD] % 8 != 0))
    return false;
  const auto tensor_cores = [&](int sizes, int alignment) {
    return a_transposed && !b_transposed && m % sizes == 0 && k % sizes == 0 &&
           value(0, CUBLASLT_MATRIX_LAYOUT_LD) % sizes == 0 && value(1, CUBLASLT_MATRIX_LAYOUT_LD) % sizes == 0 &&
           preference->values[CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES] >= alignment &&
           preference->values[CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES] >= alignment;
  };
  switch (a) {
    case CUDA_R_16F:
    case CUDA_R_16BF:
      return a == b && (d == a || d == CUDA_R_32F) && desc->compute == CUBLAS_COMPUTE_32F && desc->scale == CUDA_R_32F;
    case CUDA_R_32F:
      return a == b && d == a && desc->compute == CUBLAS_COMPUTE_32F && desc->scale == CUDA_R_32F;
    case CUDA_R_64F:
      return a == b && d == a && desc->compute == CUBLAS_COMPUTE_64F && desc->scale == CUDA_R_64F &&
             epilogue == CUBLASLT_EPILOGUE_DEFAULT;
    case CUDA_R_8I:
      return a == b && d == CUDA_R_32I && desc->compute == CUBLAS_COMPUTE_32I && desc->scale == CUDA_R_32I &&
             epilogue == CUBLASLT_EPILOGUE_DEFAULT && tensor_cores(4, 4);
    case CUDA_R_8F_E4M3:
    case CUDA_R_8F_E5M2:
      return (b == CUDA_R_8F_E4M3 || b == CUDA_R_8F_E5M2) && (a == CUDA_R_8F_E4M3 || b == CUDA_R_8F_E4M3) &&
             (d == CUDA_R_16F || d == CUDA_R_16BF || d == CUDA_R_32F) && desc->compute == CUBLAS_COMPUTE_32F &&
             desc->scale == CUDA_R_32F && tensor_cores(16, 16);
    default:
      return false;
  }
}

inline cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                                                     cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                                     cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                                     cublasLtMatmulPreference_t preference, int wanted,
                                                     cublasLtMatmulHeuristicResult_t* results, int* count) {
  *count = 0;
  const fusec_matrix_layout* const layouts[] = {a, b, c, d};
  if (!handle || wanted < 1) return CUBLAS_STATUS_INVALID_VALUE;
  if (!fusec_is_supported(desc, layouts, preference)) return CUBLAS_STATUS_NOT_SUPPORTED;
  results[0].algo.layouts = fusec_layouts(layouts);
  for (int i = 0; i < 4; ++i)
    results[0].algo.alignments[i] =
        static_cast<unsigned>(preference->values[CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES + i]);
  results[0].algo.workspace_bytes = static_cast<size_t>(preference->values[CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES]);
  results[0].workspaceSize = results[0].algo.workspace_bytes;
  results[0].state = CUBLAS_STATUS_SUCCESS;
  *count = 1;
  return CUBLAS_STATUS_SUCCESS;
}

inline double fusec_scalar(const void* value, cudaDataType_t type) {
  if (type == CUDA_R_64F) return *static_cast<const double*>(value);
  if (type == CUDA_R_32I) return *static_cast<const int*>(value);
  return static_cast<double>(*static_cast<const float*>(value));
}

inline cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void* alpha,
                                     const void* a, cublasLtMatrixLayout_t a_layout, const void* b,
                                     cublasLtMatrixLayout_t b_layout, const void* beta, const void* c,
                                     cublasLtMatrixLayout_t c_layout, void* d, cublasLtMatrixLayout_t d_layout,
                                     const cublasLtMatmulAlgo_t* algorithm, void* workspace, size_t workspace_bytes,
                                     cudaStream_t stream) {
  const fusec_matrix_layout* const layouts[] = {a_layout, b_layout, c_layout, d_layout};
  const void* const pointers[] = {a, b, c, d};
  if (!handle || !algorithm || algorithm->layouts != fusec_layouts(layouts)) return CUBLAS_STATUS_INVALID_VALUE;
  if (algorithm->workspace_bytes > workspace_bytes) return CUBLAS_STATUS_INVALID_VALUE;
  fusec_recorded_product product = {};
  fusec_recorded_matrix* const matrices[] = {&product.a, &product.b, &product.c, &product.d};
  for (int i = 0; i < 4; ++i) {
    if (reinterpret_cast<size_t>(pointers[i]) % algorithm->alignments[i] != 0) return CUBLAS_STATUS_INVALID_VALUE;
    matrices[i]->type = layouts[i]->type;
    matrices[i]->address = pointers[i];
    matrices[i]->rows = layouts[i]->values[CUBLASLT_MATRIX_LAYOUT_ROWS];
    matrices[i]->columns = layouts[i]->values[CUBLASLT_MATRIX_LAYOUT_COLS];
    matrices[i]->leading = layouts[i]->values[CUBLASLT_MATRIX_LAYOUT_LD];
    matrices[i]->batch_stride = layouts[i]->values[CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET];
  }
  product.a.transposed = desc->values[CUBLASLT_MATMUL_DESC_TRANSA] == CUBLAS_OP_T;
  product.b.transposed = desc->values[CUBLASLT_MATMUL_DESC_TRANSB] == CUBLAS_OP_T;
  product.batch = a_layout->values[CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT];
  product.compute = desc->compute;
  product.alpha = fusec_scalar(alpha, desc->scale);
  product.beta = fusec_scalar(beta, desc->scale);
  product.epilogue = static_cast<int>(desc->values[CUBLASLT_MATMUL_DESC_EPILOGUE]);
  if (product.epilogue & CUBLASLT_EPILOGUE_BIAS) {
    product.bias = reinterpret_cast<const void*>(desc->values[CUBLASLT_MATMUL_DESC_BIAS_POINTER]);
    product.bias_type = static_cast<int>(desc->values[CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE]);
  }
  if (product.epilogue & 128) {
    product.aux = reinterpret_cast<void*>(desc->values[CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER]);
    product.aux_leading = desc->values[CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD];
  }
  product.a_scale = reinterpret_cast<const void*>(desc->values[CUBLASLT_MATMUL_DESC_A_SCALE_POINTER]);
  product.b_scale = reinterpret_cast<const void*>(desc->values[CUBLASLT_MATMUL_DESC_B_SCALE_POINTER]);
  product.outer_scales = desc->values[CUBLASLT_MATMUL_DESC_A_SCALE_MODE] == CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F;
  product.workspace = workspace;
  product.workspace_bytes = workspace_bytes;
  return fusec_runtime->product(fusec_runtime->recorder, &product, stream) == 0 ? CUBLAS_STATUS_SUCCESS
                                                                                : CUBLAS_STATUS_EXECUTION_FAILED;
}
