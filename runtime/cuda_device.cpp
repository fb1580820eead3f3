#include "runtime/cuda_device.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "ir/error.h"
#include "runtime/resolve_steps.h"

namespace fusec {
namespace {

using DevicePointer = unsigned long long;
using Handle = void*;

// The few entry points of libcuda that are needed, by the names under which they are exported.
struct Driver {
  int (*init)(unsigned);
  int (*error_text)(int, const char**);
  int (*device_get)(int*, int);
  int (*device_name)(char*, int, int);
  int (*attribute)(int*, int, int);
  int (*retain)(Handle*, int);
  int (*release)(int);
  int (*set_current)(Handle);
  int (*load)(Handle*, const void*);
  int (*unload)(Handle);
  int (*function)(Handle*, Handle, const char*);
  int (*function_attribute)(Handle, int, int);
  int (*allocate)(DevicePointer*, std::size_t);
  int (*free)(DevicePointer);
  int (*to_device)(DevicePointer, const void*, std::size_t);
  int (*to_host)(void*, DevicePointer, std::size_t);
  int (*device_copy)(DevicePointer, DevicePointer, std::size_t, Handle);
  int (*launch)(Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Handle, void**, void**);
  int (*synchronize)();
  int (*event_create)(Handle*, unsigned);
  int (*event_record)(Handle, Handle);
  int (*event_synchronize)(Handle);
  int (*event_elapsed)(float*, Handle, Handle);
  int (*event_destroy)(Handle);
  int (*encode_tiled)(void*, int, unsigned, DevicePointer, const std::uint64_t*, const std::uint64_t*, const unsigned*,
                      const unsigned*, int, int, int, int);  // null where the driver is older than TMA

  void check(int status, const std::string& what) const {
    if (status == 0) return;
    const char* text = nullptr;
    error_text(status, &text);
    throw Error(ErrorKind::kEnvironment, {.what = what, .found = text ? text : "CUDA error " + std::to_string(status)});
  }
};

Driver load_driver(const char* hint) {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library)
    throw Error(ErrorKind::kEnvironment, Error::Parts{.what = "no CUDA driver (libcuda.so.1)", .hint = hint});
  Driver d{};
  auto bind = [&](auto& function, const char* symbol) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, symbol));
    if (!function) throw Error(ErrorKind::kEnvironment, std::string("the CUDA driver lacks ") + symbol);
  };
  bind(d.init, "cuInit");
  bind(d.error_text, "cuGetErrorString");
  bind(d.device_get, "cuDeviceGet");
  bind(d.device_name, "cuDeviceGetName");
  bind(d.attribute, "cuDeviceGetAttribute");
  bind(d.retain, "cuDevicePrimaryCtxRetain");
  bind(d.release, "cuDevicePrimaryCtxRelease_v2");
  bind(d.set_current, "cuCtxSetCurrent");
  bind(d.load, "cuModuleLoadData");
  bind(d.unload, "cuModuleUnload");
  bind(d.function, "cuModuleGetFunction");
  bind(d.function_attribute, "cuFuncSetAttribute");
  bind(d.allocate, "cuMemAlloc_v2");
  bind(d.free, "cuMemFree_v2");
  bind(d.to_device, "cuMemcpyHtoD_v2");
  bind(d.to_host, "cuMemcpyDtoH_v2");
  bind(d.device_copy, "cuMemcpyDtoDAsync_v2");
  bind(d.launch, "cuLaunchKernel");
  bind(d.synchronize, "cuCtxSynchronize");
  bind(d.event_create, "cuEventCreate");
  bind(d.event_record, "cuEventRecord");
  bind(d.event_synchronize, "cuEventSynchronize");
  bind(d.event_elapsed, "cuEventElapsedTime");
  bind(d.event_destroy, "cuEventDestroy_v2");
  d.encode_tiled = reinterpret_cast<decltype(d.encode_tiled)>(dlsym(library, "cuTensorMapEncodeTiled"));
  d.check(d.init(0), "the CUDA driver does not start");
  return d;
}

constexpr int kMajor = 75, kMinor = 76;    // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_*
constexpr int kMaxDynamicSharedBytes = 8;  // CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES

class Context {
 public:
  Context(const Driver& driver, int ordinal) : driver_(driver) {
    driver.check(driver.device_get(&device_, ordinal), "no CUDA device " + std::to_string(ordinal));
    driver.check(driver.retain(&context_, device_), "the CUDA device cannot be used");
    driver.check(driver.set_current(context_), "the CUDA device cannot be used");
  }
  ~Context() {
    driver_.set_current(nullptr);
    driver_.release(device_);
  }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

 private:
  const Driver& driver_;
  int device_ = 0;
  Handle context_ = nullptr;
};

// A CUtensorMap.
struct alignas(64) DeviceTensorMap {
  std::byte bytes[128];
};

class DeviceBuffer {
 public:
  DeviceBuffer(const Driver& driver, std::size_t bytes) : driver_(&driver) {
    driver.check(driver.allocate(&address_, std::max<std::size_t>(bytes, 16)),
                 fmt::format("{} bytes of device memory", bytes));
  }
  ~DeviceBuffer() {
    if (address_) driver_->free(address_);
  }
  DeviceBuffer(DeviceBuffer&& other) noexcept : driver_(other.driver_), address_(std::exchange(other.address_, 0)) {}
  DeviceBuffer& operator=(DeviceBuffer&&) = delete;
  DevicePointer address() const { return address_; }

 private:
  const Driver* driver_;
  DevicePointer address_ = 0;
};

class CudaDevice {
 public:
  CudaDevice(const Driver& driver, const Graph& graph, const LaunchPlan& plan,
             const std::vector<CompiledModule>& modules, const std::vector<std::uint32_t>& unit_of,
             const TensorMap& tensors)
      : driver_(driver),
        graph_(graph),
        plan_(plan),
        symbols_(solve_symbols(graph, tensors)),
        resolved_(resolve_steps(plan, symbols_)) {
    require_kernels_only(graph, plan);
    load_kernels(modules, unit_of);
    for (std::uint32_t i = 0; i < graph.inputs.size(); ++i)
      upload(BufferRef::Kind::kInput, i, tensors.at(graph.value(graph.inputs[i]).name));
    for (std::uint32_t i = 0; i < graph.constants.size(); ++i) {
      const Constant& constant = graph.constants[i];
      const auto given = tensors.find(graph.value(constant.value).name);
      upload(constant.data ? BufferRef::Kind::kEmbedded : BufferRef::Kind::kConstant, i,
             given != tensors.end() ? given->second : constant_tensor(graph, constant));
    }
    for (std::uint32_t i = 0; i < plan.results.size(); ++i) {
      const HostTensor tensor = result_tensor(i);
      buffers_.emplace(Key{BufferRef::Kind::kOutput, i}, DeviceBuffer(driver, tensor.bytes.size()));
    }
    workspace_ = std::make_unique<DeviceBuffer>(driver, static_cast<std::size_t>(resolved_.workspace_bytes));
    prepared_ = std::make_unique<DeviceBuffer>(driver, static_cast<std::size_t>(resolved_.prepared_bytes));
  }
  ~CudaDevice() {
    for (const Handle module : modules_) driver_.unload(module);
  }
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  void prepare() { enqueue(resolved_.prepare_steps); }
  void enqueue() { enqueue(resolved_.steps); }
  void enqueue(const std::vector<ResolvedStep>& steps) {
    for (const ResolvedStep& step : steps) {
      if (step.kind == LaunchStep::Kind::kCopy)
        driver_.check(driver_.device_copy(address(step.arguments[0]), address(step.arguments[1]),
                                          static_cast<std::size_t>(step.bytes), nullptr),
                      "a copy");
      else
        launch(step);
    }
  }

  TensorMap outputs() {
    driver_.check(driver_.synchronize(), "the kernels failed");
    TensorMap result;
    for (std::uint32_t i = 0; i < plan_.results.size(); ++i) {
      HostTensor tensor = result_tensor(i);
      const ValueId v = plan_.results[i];
      Key key{BufferRef::Kind::kOutput, i};
      for (const Alias& alias : graph_.aliases)
        if (alias.output == v) key = {BufferRef::Kind::kInput, graph_.value(alias.input).index};
      if (!tensor.bytes.empty())
        driver_.check(driver_.to_host(tensor.bytes.data(), buffers_.at(key).address(), tensor.bytes.size()),
                      "a result");
      result[graph_.value(v).name] = std::move(tensor);
    }
    return result;
  }

  // Of each kernel of the plan.
  std::vector<double> timed_kernels() {
    std::vector<Handle> events(resolved_.steps.size() + 1, nullptr);
    for (Handle& event : events) driver_.check(driver_.event_create(&event, 0), "an event");
    driver_.check(driver_.event_record(events[0], nullptr), "an event");
    for (std::size_t i = 0; i < resolved_.steps.size(); ++i) {
      enqueue({resolved_.steps[i]});
      driver_.check(driver_.event_record(events[i + 1], nullptr), "an event");
    }
    driver_.check(driver_.event_synchronize(events.back()), "the kernels failed");
    std::vector<double> seconds(plan_.kernels.size(), 0);
    for (std::size_t i = 0; i < resolved_.steps.size(); ++i) {
      float milliseconds = 0;
      driver_.check(driver_.event_elapsed(&milliseconds, events[i], events[i + 1]), "an event");
      if (resolved_.steps[i].kind == LaunchStep::Kind::kKernel)
        seconds[resolved_.steps[i].kernel] += milliseconds * 1e-3;
    }
    for (const Handle event : events) driver_.event_destroy(event);
    return seconds;
  }

  double timed_run() {
    Handle begin = nullptr, end = nullptr;
    driver_.check(driver_.event_create(&begin, 0), "an event");
    driver_.check(driver_.event_create(&end, 0), "an event");
    driver_.check(driver_.event_record(begin, nullptr), "an event");
    enqueue();
    driver_.check(driver_.event_record(end, nullptr), "an event");
    driver_.check(driver_.event_synchronize(end), "the kernels failed");
    float milliseconds = 0;
    driver_.check(driver_.event_elapsed(&milliseconds, begin, end), "an event");
    driver_.event_destroy(begin);
    driver_.event_destroy(end);
    return milliseconds * 1e-3;
  }

 private:
  using Key = std::pair<BufferRef::Kind, std::uint32_t>;

  HostTensor result_tensor(std::uint32_t i) const {
    const TensorType& type = graph_.tensor(plan_.results[i]);
    std::vector<std::int64_t> shape;
    for (const Dim& dim : type.shape) shape.push_back(evaluate(dim, [&](Variable v) { return symbols_.at(v.id); }));
    return HostTensor(type.dtype, shape);
  }

  void load_kernels(const std::vector<CompiledModule>& modules, const std::vector<std::uint32_t>& unit_of) {
    for (const CompiledModule& module : modules) {
      modules_.push_back(nullptr);
      driver_.check(driver_.load(&modules_.back(), module.cubin.data()), "the compiled kernels cannot be loaded");
    }
    std::vector<std::int64_t> shared(plan_.kernels.size(), 0);
    for (const std::vector<ResolvedStep>* steps : {&resolved_.prepare_steps, &resolved_.steps})
      for (const ResolvedStep& step : *steps)
        if (step.kind == LaunchStep::Kind::kKernel)
          shared[step.kernel] = std::max(shared[step.kernel], step.dynamic_shared);
    for (std::size_t k = 0; k < plan_.kernels.size(); ++k) {
      functions_.push_back(nullptr);
      driver_.check(driver_.function(&functions_.back(), modules_.at(unit_of[k]), plan_.kernels[k].name.c_str()),
                    plan_.kernels[k].name);
      if (shared[k] > 48 * 1024)
        driver_.check(
            driver_.function_attribute(functions_.back(), kMaxDynamicSharedBytes, static_cast<int>(shared[k])),
            plan_.kernels[k].name);
    }
  }

  void upload(BufferRef::Kind kind, std::uint32_t index, const HostTensor& tensor) {
    const auto it = buffers_.emplace(Key{kind, index}, DeviceBuffer(driver_, tensor.bytes.size())).first;
    if (!tensor.bytes.empty())
      driver_.check(driver_.to_device(it->second.address(), tensor.bytes.data(), tensor.bytes.size()), "an input");
  }

  DevicePointer address(const ResolvedArgument& a) const {
    const DevicePointer base = a.buffer == BufferRef::Kind::kWorkspace  ? workspace_->address()
                               : a.buffer == BufferRef::Kind::kPrepared ? prepared_->address()
                                                                        : buffers_.at({a.buffer, a.index}).address();
    return base + static_cast<DevicePointer>(a.offset);
  }

  DeviceTensorMap tensor_map(const ResolvedBoxes& boxes, DevicePointer at) const {
    constexpr int kNoInterleave = 0, kSwizzle128 = 3, kPromote128 = 2, kFillZeros = 0;  // of CUtensorMap*
    if (!driver_.encode_tiled) throw Error(ErrorKind::kEnvironment, "the CUDA driver lacks cuTensorMapEncodeTiled");
    const std::vector<std::uint64_t> extents(boxes.extents.begin(), boxes.extents.end());
    const std::vector<std::uint64_t> strides(boxes.strides.begin(), boxes.strides.end());
    const std::vector<unsigned> steps(boxes.box.size(), 1);
    const int type = boxes.element_bytes / 2;  // 8, 16 or 32 bits without a sign are 0, 1 and 2
    DeviceTensorMap map;
    driver_.check(
        driver_.encode_tiled(&map, type, static_cast<unsigned>(extents.size()), at, extents.data(), strides.data(),
                             boxes.box.data(), steps.data(), kNoInterleave, kSwizzle128, kPromote128, kFillZeros),
        "the description of a tensor for TMA");
    return map;
  }

  void launch(const ResolvedStep& step) {
    const KernelSource& kernel = plan_.kernels[step.kernel];
    std::vector<std::int64_t> values;  // little-endian: an int is the low half
    values.reserve(step.arguments.size());
    std::vector<DeviceTensorMap> maps;
    maps.reserve(step.arguments.size());
    std::vector<void*> pointers;
    for (const ResolvedArgument& a : step.arguments) {
      if (a.boxes) {
        maps.push_back(tensor_map(*a.boxes, address(a)));
        pointers.push_back(&maps.back());
        continue;
      }
      values.push_back(a.is_size ? a.size : static_cast<std::int64_t>(address(a)));
      pointers.push_back(&values.back());
    }
    auto u = [](auto v) { return static_cast<unsigned>(v); };
    driver_.check(driver_.launch(functions_[step.kernel], u(step.grid[0]), u(step.grid[1]), u(step.grid[2]),
                                 u(kernel.block[0]), u(kernel.block[1]), u(kernel.block[2]), u(step.dynamic_shared),
                                 nullptr, pointers.data(), nullptr),
                  kernel.name);
  }

  const Driver& driver_;
  const Graph& graph_;
  const LaunchPlan& plan_;
  std::vector<std::int64_t> symbols_;
  ResolvedPlan resolved_;
  std::vector<Handle> modules_, functions_;
  std::map<Key, DeviceBuffer> buffers_;
  std::unique_ptr<DeviceBuffer> workspace_, prepared_;
};

std::vector<double> median_of_each(int runs, const std::function<std::vector<double>()>& run) {
  std::vector<std::vector<double>> times;
  for (int i = 0; i < std::max(runs, 1); ++i) times.push_back(run());
  std::vector<double> medians;
  for (std::size_t k = 0; k < times.front().size(); ++k) {
    std::vector<double> of_one;
    for (const std::vector<double>& all : times) of_one.push_back(all[k]);
    std::ranges::nth_element(of_one, of_one.begin() + static_cast<std::ptrdiff_t>(of_one.size() / 2));
    medians.push_back(of_one[of_one.size() / 2]);
  }
  return medians;
}

}  // namespace

std::string device_name(int device) {
  const Driver driver = load_driver("without a GPU nothing can be measured");
  int handle = 0;
  char text[256] = {};
  driver.check(driver.device_get(&handle, device), "no CUDA device " + std::to_string(device));
  driver.check(driver.device_name(text, sizeof text, handle), "the device's name");
  return text;
}

std::string native_architecture(int device) {
  const Driver driver = load_driver("name the architecture instead: sm_80, sm_90a, ...");
  int handle = 0, major = 0, minor = 0;
  driver.check(driver.device_get(&handle, device), "no CUDA device " + std::to_string(device));
  driver.check(driver.attribute(&major, kMajor, handle), "the device's compute capability");
  driver.check(driver.attribute(&minor, kMinor, handle), "the device's compute capability");
  return fmt::format("sm_{}{}{}", major, minor, major >= 9 ? "a" : "");
}

CudaResult run_on_cuda(const Graph& graph, const LaunchPlan& plan, const std::vector<CompiledModule>& modules,
                       const std::vector<std::uint32_t>& unit_of, const TensorMap& tensors, int device, int timed_runs,
                       Timing timing) {
  const Driver driver = load_driver("--device=emulator needs no GPU");
  const Context context(driver, device);
  CudaDevice run(driver, graph, plan, modules, unit_of, tensors);
  run.prepare();
  run.enqueue();
  CudaResult result;
  result.outputs = run.outputs();
  if (timing == Timing::kEachKernel) {
    result.kernel_seconds = median_of_each(timed_runs, [&] { return run.timed_kernels(); });
    return result;
  }
  for (int i = 0; i < timed_runs; ++i) result.seconds.push_back(run.timed_run());
  return result;
}

}  // namespace fusec
