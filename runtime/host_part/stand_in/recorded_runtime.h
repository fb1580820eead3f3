// The interface between the stand-in for the CUDA runtime and the recorder that loaded the compiled host part. It uses
// plain C types, since the two sides are compiled separately. Each function returns a cudaError_t.
#pragma once

#include <stddef.h>

// A matrix product as passed to cuBLASLt: column-major; types, compute type and epilogue are the library's numbers.
struct fusec_recorded_matrix {
  int type, transposed;
  const void* address;
  long long rows, columns, leading, batch_stride;
};
struct fusec_recorded_product {
  struct fusec_recorded_matrix a, b, c, d;
  long long batch;
  int compute, epilogue, bias_type;
  double alpha, beta;
  const void *bias, *a_scale, *b_scale;
  int outer_scales;
  void* aux;
  long long aux_leading;
  void* workspace;
  size_t workspace_bytes;
};

struct fusec_recorded_runtime {
  void* recorder;
  int multiprocessors, capability_major;  // of the simulated device
  int (*launch)(void* recorder, const void* kernel, const unsigned* grid, const unsigned* block, void** arguments,
                size_t shared_bytes, const void* stream);
  int (*copy)(void* recorder, void* to, const void* from, size_t bytes, int kind, const void* stream);
  int (*symbol_address)(void* recorder, void** address, const void* symbol, size_t bytes);
  int (*set_attribute)(void* recorder, const void* kernel, int attribute, int value);
  int (*external)(void* recorder, const char* launcher, const void* const* inputs, void* const* outputs,
                  const long long* extents, const char* attributes, const void* stream);
  int (*product)(void* recorder, const struct fusec_recorded_product* product, const void* stream);
  // A collective, by the name of NCCL's function. Calls between group(0) and group(1) are one operation.
  int (*collective)(void* recorder, const char* function, const void* from, void* to, size_t count, int dtype,
                    int reduction, const void* communicator, const void* stream);
  int (*group)(void* recorder, int ends);
  // Encodes a tensor map, swizzled over a box's rows, into the 128 bytes at `map`.
  int (*tensor_map)(void* recorder, void* map, int element_bytes, unsigned rank, const void* address,
                    const unsigned long long* extents, const unsigned long long* strides, const unsigned* box);
};
