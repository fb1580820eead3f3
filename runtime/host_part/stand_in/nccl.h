// Stands in for NCCL when a plain C++ compiler compiles the host part of out.cu. It has only the calls, types and
// constants that such files use, with the library's values. Every call goes to a recorder.
#pragma once

#include "cuda_runtime.h"

typedef struct ncclComm* ncclComm_t;
enum ncclResult_t { ncclSuccess = 0, ncclSystemError = 2 };
enum ncclDataType_t {
  ncclInt8 = 0,
  ncclUint8 = 1,
  ncclInt32 = 2,
  ncclUint32 = 3,
  ncclInt64 = 4,
  ncclUint64 = 5,
  ncclFloat16 = 6,
  ncclFloat32 = 7,
  ncclFloat64 = 8,
  ncclBfloat16 = 9
};
enum ncclRedOp_t { ncclSum = 0, ncclProd = 1, ncclMax = 2, ncclMin = 3, ncclAvg = 4 };

inline ncclResult_t fusec_collective(const char* function, const void* from, void* to, size_t count, int dtype,
                                     int reduction, ncclComm_t communicator, cudaStream_t stream) {
  const int status = fusec_runtime->collective(fusec_runtime->recorder, function, from, to, count, dtype, reduction,
                                               communicator, stream);
  return status == 0 ? ncclSuccess : ncclSystemError;
}

inline ncclResult_t ncclAllReduce(const void* from, void* to, size_t count, ncclDataType_t dtype, ncclRedOp_t reduction,
                                  ncclComm_t communicator, cudaStream_t stream) {
  return fusec_collective("ncclAllReduce", from, to, count, dtype, reduction, communicator, stream);
}
inline ncclResult_t ncclAllGather(const void* from, void* to, size_t count, ncclDataType_t dtype,
                                  ncclComm_t communicator, cudaStream_t stream) {
  return fusec_collective("ncclAllGather", from, to, count, dtype, 0, communicator, stream);
}
inline ncclResult_t ncclReduceScatter(const void* from, void* to, size_t count, ncclDataType_t dtype,
                                      ncclRedOp_t reduction, ncclComm_t communicator, cudaStream_t stream) {
  return fusec_collective("ncclReduceScatter", from, to, count, dtype, reduction, communicator, stream);
}
inline ncclResult_t ncclGroupStart() {
  fusec_runtime->group(fusec_runtime->recorder, 0);
  return ncclSuccess;
}
inline ncclResult_t ncclGroupEnd() {
  return fusec_runtime->group(fusec_runtime->recorder, 1) == 0 ? ncclSuccess : ncclSystemError;
}
