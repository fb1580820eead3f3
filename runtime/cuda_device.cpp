#include "runtime/cuda_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "ir/error.h"
#include "runtime/cuda_driver.h"
#include "runtime/cuda_program.h"
#include "runtime/resolve_steps.h"

namespace fusec {
namespace {

std::vector<KernelImage> images_of(const std::vector<CompiledModule>& modules) {
  std::vector<KernelImage> images;
  for (const CompiledModule& module : modules)
    images.push_back(
        {std::make_shared<const std::string>(module.ptx), std::make_shared<const std::string>(module.cubin)});
  return images;
}

constexpr int kL2Bytes = 38;              // CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE
constexpr unsigned char kNanByte = 0xff;  // each byte of a NaN, in every float of 8 to 64 bits

class CudaDevice {
 public:
  CudaDevice(const CudaDriver& driver, const Graph& graph, const LaunchPlan& plan,
             const std::vector<CompiledModule>& modules, const TensorMap& tensors, int device)
      : driver_(driver),
        graph_(graph),
        plan_(plan),
        symbols_(solve_symbols(graph, tensors)),
        resolved_(resolve_steps(plan, symbols_)) {
    require_kernels_only(graph, plan);
    program_ = std::make_unique<CudaProgram>(driver, plan, images_of(modules));
    for (std::uint32_t i = 0; i < graph.inputs.size(); ++i)
      upload(BufferRef::Kind::kInput, i, tensors.at(graph.value(graph.inputs[i]).name));
    ConstantReader constants(graph);
    for (std::uint32_t i = 0; i < graph.constants.size(); ++i) {
      const Constant& constant = graph.constants[i];
      const auto given = tensors.find(graph.value(constant.value).name);
      upload(constant.data ? BufferRef::Kind::kEmbedded : BufferRef::Kind::kConstant, i,
             given != tensors.end() ? given->second : constants.read(constant));
    }
    for (std::uint32_t i = 0; i < plan.results.size(); ++i)
      buffers_.emplace(Key{BufferRef::Kind::kOutput, i}, poisoned(result_tensor(i).bytes.size()));
    workspace_ = std::make_unique<DeviceBuffer>(poisoned(static_cast<std::size_t>(resolved_.workspace_bytes)));
    prepared_ = std::make_unique<DeviceBuffer>(poisoned(static_cast<std::size_t>(resolved_.prepared_bytes)));
    int cache = 0;
    driver.check(driver.attribute(&cache, kL2Bytes, device), "the device");
    flushed_ = std::make_unique<DeviceBuffer>(driver, 3 * static_cast<std::size_t>(cache));
  }
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  void prepare() { enqueue(resolved_.prepare_steps); }
  void enqueue() { enqueue(resolved_.steps); }
  void enqueue(const std::vector<ResolvedStep>& steps) {
    program_->enqueue(
        steps, [this](BufferRef::Kind kind, std::uint32_t index) { return address(kind, index); }, nullptr);
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

  // Seconds of each kernel of the plan in one run.
  std::vector<double> timed_kernels() {
    std::vector<double> seconds(plan_.kernels.size(), 0);
    for (const ResolvedStep& step : resolved_.steps) {
      const double of_step = timed({step});
      if (step.kind == LaunchStep::Kind::kKernel) seconds[step.kernel] += of_step;
    }
    return seconds;
  }

  double timed_run() { return timed(resolved_.steps); }

 private:
  using Key = std::pair<BufferRef::Kind, std::uint32_t>;

  // Seconds of these steps by the device's clock, with nothing of theirs in the L2 cache. While the device clears the
  // cache, the host enqueues the steps, so that they follow one another without a gap.
  double timed(const std::vector<ResolvedStep>& steps) {
    CudaHandle begin = nullptr, end = nullptr;
    driver_.check(driver_.event_create(&begin, 0), "an event");
    driver_.check(driver_.event_create(&end, 0), "an event");
    if (flushed_->bytes() > 0) driver_.check(driver_.fill(flushed_->address(), 0, flushed_->bytes(), nullptr), "L2");
    driver_.check(driver_.event_record(begin, nullptr), "an event");
    enqueue(steps);
    driver_.check(driver_.event_record(end, nullptr), "an event");
    driver_.check(driver_.event_synchronize(end), "the kernels failed");
    float milliseconds = 0;
    driver_.check(driver_.event_elapsed(&milliseconds, begin, end), "an event");
    driver_.event_destroy(begin);
    driver_.event_destroy(end);
    return milliseconds * 1e-3;
  }

  // Memory of NaN: a kernel that leaves an element out, or reads one that nobody wrote, gives a wrong result.
  DeviceBuffer poisoned(std::size_t bytes) const {
    DeviceBuffer buffer(driver_, bytes);
    if (bytes > 0) driver_.check(driver_.fill(buffer.address(), kNanByte, bytes, nullptr), "device memory");
    return buffer;
  }

  HostTensor result_tensor(std::uint32_t i) const {
    const TensorType& type = graph_.tensor(plan_.results[i]);
    std::vector<std::int64_t> shape;
    for (const Dim& dim : type.shape) shape.push_back(evaluate(dim, [&](Variable v) { return symbols_.at(v.id); }));
    return HostTensor(type.dtype, shape);
  }

  void upload(BufferRef::Kind kind, std::uint32_t index, const HostTensor& tensor) {
    const auto it = buffers_.emplace(Key{kind, index}, DeviceBuffer(driver_, tensor.bytes.size())).first;
    if (!tensor.bytes.empty())
      driver_.check(driver_.to_device(it->second.address(), tensor.bytes.data(), tensor.bytes.size()), "an input");
  }

  DevicePointer address(BufferRef::Kind kind, std::uint32_t index) const {
    if (kind == BufferRef::Kind::kWorkspace) return workspace_->address();
    return kind == BufferRef::Kind::kPrepared ? prepared_->address() : buffers_.at({kind, index}).address();
  }

  const CudaDriver& driver_;
  const Graph& graph_;
  const LaunchPlan& plan_;
  std::vector<std::int64_t> symbols_;
  ResolvedPlan resolved_;
  std::unique_ptr<CudaProgram> program_;
  std::map<Key, DeviceBuffer> buffers_;
  std::unique_ptr<DeviceBuffer> workspace_, prepared_, flushed_;
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
  const CudaDriver& driver = CudaDriver::require("without a GPU nothing can be measured");
  int handle = 0;
  char text[256] = {};
  driver.check(driver.device_get(&handle, device), "no CUDA device " + std::to_string(device));
  driver.check(driver.device_name(text, sizeof text, handle), "the device's name");
  return text;
}

std::string native_architecture(int device) {
  return architecture_of(CudaDriver::require("name the architecture instead: sm_80, sm_90a, ..."), device);
}

CudaResult run_on_cuda(const Graph& graph, const LaunchPlan& plan, const std::vector<CompiledModule>& modules,
                       const TensorMap& tensors, int device, int timed_runs, Timing timing) {
  const CudaDriver& driver = CudaDriver::require("--device=emulator needs no GPU");
  const CudaContext context(driver, device);
  const CurrentContext scope(context);
  CudaDevice run(driver, graph, plan, modules, tensors, device);
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
