#include "runtime/cuda_program.h"

#include <bit>

#include "ir/error.h"

namespace fusec {
namespace {

constexpr int kMultiprocessors = 16;       // CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
constexpr int kMaxDynamicSharedBytes = 8;  // CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
constexpr int kNoBinary = 209;             // CUDA_ERROR_NO_BINARY_FOR_GPU
constexpr int kNotFound = 500;             // CUDA_ERROR_NOT_FOUND

// The driver's CUtensorMap.
struct alignas(64) DeviceTensorMap {
  std::byte bytes[128];
};

DevicePointer address(const ResolvedArgument& a, const BaseAddress& base) {
  return base(a.buffer, a.index) + static_cast<DevicePointer>(a.offset);
}

DeviceTensorMap tensor_map(const CudaDriver& driver, const ResolvedBoxes& boxes, DevicePointer at) {
  constexpr int kNoInterleave = 0, kPromote128 = 2, kFillZeros = 0;  // values of the CUtensorMap enums
  if (!driver.encode_tiled) throw Error(ErrorKind::kEnvironment, "the CUDA driver lacks cuTensorMapEncodeTiled");
  const std::vector<std::uint64_t> extents(boxes.extents.begin(), boxes.extents.end());
  const std::vector<std::uint64_t> strides(boxes.strides.begin(), boxes.strides.end());
  const std::vector<unsigned> steps(boxes.box.size(), 1);
  const int type = boxes.element_bytes / 2;  // 0, 1, 2: unsigned 8, 16, 32 bits
  // 1, 2, 3: swizzle of 32, 64, 128 bytes.
  const std::uint32_t swizzle = swizzle_of_lines(boxes.box[0] * static_cast<std::uint32_t>(boxes.element_bytes)) / 32;
  DeviceTensorMap map;
  driver.check(driver.encode_tiled(&map, type, static_cast<unsigned>(extents.size()), at, extents.data(),
                                   strides.data(), boxes.box.data(), steps.data(), kNoInterleave,
                                   std::bit_width(swizzle), kPromote128, kFillZeros),
               "the description of a tensor for TMA");
  return map;
}

}  // namespace

CudaProgram::CudaProgram(const CudaDriver& driver, const LaunchPlan& plan, std::span<const KernelImage> images)
    : driver_(driver), plan_(plan) {
  try {
    for (const KernelImage& image : images) load(image);
    for (const KernelSource& kernel : plan.kernels) functions_.push_back(find(kernel.name));
  } catch (...) {
    for (const CudaHandle module : modules_) driver_.unload(module);
    throw;
  }
}

CudaProgram::~CudaProgram() {
  for (const CudaHandle module : modules_) driver_.unload(module);
}

void CudaProgram::load(const KernelImage& image) {
  CudaHandle module = nullptr;
  int status = kNoBinary;
  if (image.cubin && !image.cubin->empty()) status = driver_.load(&module, image.cubin->data());
  if (status != 0 && image.ptx && !image.ptx->empty()) status = driver_.load(&module, image.ptx->c_str());
  driver_.check(status, "the compiled kernels cannot be loaded");
  modules_.push_back(module);
}

CudaHandle CudaProgram::find(const std::string& kernel) const {
  for (const CudaHandle module : modules_) {
    CudaHandle function = nullptr;
    const int status = driver_.function(&function, module, kernel.c_str());
    if (status == kNotFound) continue;
    driver_.check(status, kernel);
    return function;
  }
  throw Error(ErrorKind::kEnvironment, Error::Parts{.what = "the compiled kernels lack one", .found = kernel});
}

void CudaProgram::enqueue(std::span<const ResolvedStep> steps, const BaseAddress& base, CudaHandle stream,
                          const Collect& collect) const {
  for (const ResolvedStep& step : steps) {
    if (step.kind == LaunchStep::Kind::kCopy)
      driver_.check(driver_.device_copy(address(step.arguments[0], base), address(step.arguments[1], base),
                                        static_cast<std::size_t>(step.bytes), stream),
                    "a copy");
    else if (step.kind == LaunchStep::Kind::kCollective)
      collect(step, address(step.arguments[0], base), address(step.arguments[1], base));
    else
      launch(step, base, stream);
  }
}

// Blocks that wait for one another must be on the device at once.
void CudaProgram::require_room(const ResolvedStep& step) const {
  const KernelSource& kernel = plan_.kernels[step.kernel];
  int device = 0, multiprocessors = 0, at_once = 0;
  driver_.check(driver_.current_device(&device), "the device");
  driver_.check(driver_.attribute(&multiprocessors, kMultiprocessors, device), "the device");
  driver_.check(driver_.blocks_at_once(&at_once, functions_[step.kernel], kernel.block[0],
                                       static_cast<std::size_t>(step.dynamic_shared)),
                kernel.name);
  if (multiprocessors * at_once < kernel.resident_blocks)
    throw Error(ErrorKind::kEnvironment, {.what = "the device cannot hold a kernel's blocks at once",
                                          .found = std::to_string(multiprocessors * at_once),
                                          .expected = std::to_string(kernel.resident_blocks) + " of " + kernel.name});
}

void CudaProgram::launch(const ResolvedStep& step, const BaseAddress& base, CudaHandle stream) const {
  const KernelSource& kernel = plan_.kernels[step.kernel];
  std::vector<std::int64_t> values;  // little-endian, so a 32-bit argument is the low half
  values.reserve(step.arguments.size());
  std::vector<DeviceTensorMap> maps;
  maps.reserve(step.arguments.size());
  std::vector<void*> pointers;
  for (const ResolvedArgument& a : step.arguments) {
    if (a.boxes) {
      maps.push_back(tensor_map(driver_, *a.boxes, address(a, base)));
      pointers.push_back(&maps.back());
      continue;
    }
    values.push_back(a.is_size ? a.size : static_cast<std::int64_t>(address(a, base)));
    pointers.push_back(&values.back());
  }
  // Setting it is cheap and does not affect running launches, so set it before each launch. Dynamic and static shared
  // memory together may exceed the 48 KiB that every kernel may use, so the dynamic part alone does not decide.
  if (step.dynamic_shared > 0)
    driver_.check(driver_.function_attribute(functions_[step.kernel], kMaxDynamicSharedBytes,
                                             static_cast<int>(step.dynamic_shared)),
                  kernel.name);
  if (kernel.resident_blocks > 1) require_room(step);
  auto u = [](auto v) { return static_cast<unsigned>(v); };
  driver_.check(
      driver_.launch(functions_[step.kernel], u(step.grid[0]), u(step.grid[1]), u(step.grid[2]), u(kernel.block[0]),
                     u(kernel.block[1]), u(kernel.block[2]), u(step.dynamic_shared), stream, pointers.data(), nullptr),
      kernel.name);
}

}  // namespace fusec
