// A CUDA program that links an emitted file and runs it: the call sequence, once.
//
//   fusec examples/gated.ir -o out.cu --emit=header=gated.h --arch=sm_80
//   nvcc -arch=sm_80 -I. examples/host.cu out.cu -o host && ./host
#include <cuda_runtime.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "gated.h"

namespace {

constexpr int kTokens = 5, kDepth = 64, kColumns = 32;

void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "%s: error %d\n", what, static_cast<int>(status));
  std::exit(1);
}

// The same, with the text that the emitted file has for what went wrong.
void check(cudaError_t status, const char* what, const gated_context* context) {
  if (status != cudaSuccess) std::fprintf(stderr, "%s\n", gated_error(context));
  check(status, what);
}

std::vector<float> values(int count, float step) {
  std::vector<float> list(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) list[static_cast<std::size_t>(i)] = step * static_cast<float>(i % 17 - 8);
  return list;
}

float* allocate(std::size_t count) {
  void* memory = nullptr;
  check(cudaMalloc(&memory, count * sizeof(float)), "cudaMalloc");
  return static_cast<float*>(memory);
}

float* on_device(const std::vector<float>& list, cudaStream_t stream) {
  float* memory = allocate(list.size());
  check(cudaMemcpyAsync(memory, list.data(), list.size() * sizeof(float), cudaMemcpyHostToDevice, stream), "a copy");
  return memory;
}

// 0 bytes need no memory.
void* allocate_bytes(std::size_t bytes, const char* what) {
  if (bytes == static_cast<std::size_t>(-1)) {
    std::fprintf(stderr, "%s: the shapes contradict the model\n", what);
    std::exit(1);
  }
  void* memory = nullptr;
  if (bytes > 0) check(cudaMalloc(&memory, bytes), what);
  return memory;
}

// sum_k x[row, k] * w[column, k]
template <class X>
double product(const std::vector<X>& x, const std::vector<float>& w, int depth, int row, int column) {
  double sum = 0;
  for (int k = 0; k < depth; ++k)
    sum +=
        double{x[static_cast<std::size_t>(row * depth + k)]} * double{w[static_cast<std::size_t>(column * depth + k)]};
  return sum;
}

struct Weights {
  std::vector<float> gate = values(kColumns * kDepth, 0.02f), up = values(kColumns * kDepth, -0.03f),
                     down = values(kDepth * kColumns, 0.01f), scale = values(kColumns, 0.25f);
};

double largest_error(const std::vector<float>& x, const Weights& w, const std::vector<float>& y) {
  double worst = 0;
  for (int row = 0; row < kTokens; ++row) {
    std::vector<double> h;
    for (int column = 0; column < kColumns; ++column) {
      const double gate = product(x, w.gate, kDepth, row, column) * double{w.scale[static_cast<std::size_t>(column)]};
      h.push_back(gate / (1 + std::exp(-gate)) * product(x, w.up, kDepth, row, column));
    }
    for (int column = 0; column < kDepth; ++column) {
      const double right = product(h, w.down, kColumns, 0, column);
      worst = std::fmax(worst, std::fabs(right - double{y[static_cast<std::size_t>(row * kDepth + column)]}));
    }
  }
  return worst;
}

}  // namespace

int main() {
  cudaStream_t stream = nullptr;
  check(cudaStreamCreate(&stream), "cudaStreamCreate");
  const std::vector<float> x = values(kTokens * kDepth, 0.1f);
  const Weights w;

  // 1. A context for this device.
  gated_context* context = nullptr;
  check(gated_create(&context, nullptr), "gated_create");

  // 2. What a call takes: device pointers, and the extents of the inputs and constants.
  gated_args args = {};
  args.x = on_device(x, stream);
  args.x_shape[0] = kTokens;
  args.x_shape[1] = kDepth;
  args.w_gate = on_device(w.gate, stream);
  args.w_gate_shape[0] = kColumns;
  args.w_gate_shape[1] = kDepth;
  args.w_up = on_device(w.up, stream);
  args.w_up_shape[0] = kColumns;
  args.w_up_shape[1] = kDepth;
  args.w_down = on_device(w.down, stream);
  args.w_down_shape[0] = kDepth;
  args.w_down_shape[1] = kColumns;
  args.scale = on_device(w.scale, stream);
  args.scale_shape[0] = kColumns;
  args.scale_shape[1] = 1;
  args.y = allocate(kTokens * kDepth);

  // 3. What depends on the weights alone, once for each set of weights.
  void* prepared = allocate_bytes(gated_prepared_bytes(&args), "the prepared memory");
  check(gated_prepare(context, &args, prepared, stream), "gated_prepare", context);

  // 4. A workspace for this stream, as large as the largest launch needs; then launches, as many as wanted.
  void* workspace = allocate_bytes(gated_workspace_bytes(&args), "the workspace");
  check(gated_launch(context, &args, prepared, workspace, stream), "gated_launch", context);

  std::vector<float> y(kTokens * kDepth);
  check(cudaMemcpyAsync(y.data(), args.y, y.size() * sizeof(float), cudaMemcpyDeviceToHost, stream), "a copy");
  check(cudaStreamSynchronize(stream), "the kernels");
  const double worst = largest_error(x, w, y);
  std::printf("%d bytes prepared, a workspace of %d; the largest error is %.2g\n",
              static_cast<int>(gated_prepared_bytes(&args)), static_cast<int>(gated_workspace_bytes(&args)), worst);

  // 5. The end.
  for (const void* memory : {args.x, args.w_gate, args.w_up, args.w_down, args.scale, static_cast<const void*>(args.y),
                             static_cast<const void*>(prepared), static_cast<const void*>(workspace)})
    cudaFree(const_cast<void*>(memory));
  gated_destroy(context);
  cudaStreamDestroy(stream);
  return worst < 1e-4 ? 0 : 1;
}
