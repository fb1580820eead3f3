// DeviceModule, CapturedLaunch and DeviceMemory of the public API: modules on a GPU through the CUDA driver.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <thread>

#include "boundary.h"
#include "fusec/module.h"
#include "ir/error.h"
#include "ir/spelling.h"
#include "module_state.h"
#include "runtime/collective.h"
#include "runtime/cuda_driver.h"
#include "runtime/cuda_program.h"

namespace fusec {
namespace {

constexpr const char* kHint = "device=\"emulator\" and device=\"reference\" need no GPU; `fusec doctor` looks for one";
constexpr std::uint64_t kStreamPerThread = 2;

std::shared_ptr<CudaContext> context_of(int device) {
  static std::mutex mutex;
  static std::map<int, std::shared_ptr<CudaContext>> contexts;  // kept until the process ends
  const CudaDriver& driver = CudaDriver::require(kHint);
  const std::scoped_lock lock(mutex);
  std::shared_ptr<CudaContext>& context = contexts[device];
  if (!context) context = std::make_shared<CudaContext>(driver, device);
  return context;
}

}  // namespace

// Device memory that can grow. Its context is made current before the memory is freed.
class ContextMemory {
 public:
  explicit ContextMemory(std::shared_ptr<CudaContext> context) : context_(std::move(context)) {}
  ~ContextMemory() {
    try {
      release();
    } catch (const Error&) {
      // The device is gone, and its memory with it.
    }
  }
  ContextMemory(const ContextMemory&) = delete;
  ContextMemory& operator=(const ContextMemory&) = delete;

  // Ensures at least that many bytes. Returns true if it allocated new memory; the old contents are lost then. The
  // context must be current.
  bool reserve(std::int64_t bytes) {
    const auto size = static_cast<std::size_t>(bytes);
    if (buffer_ && buffer_->bytes() >= size) return false;
    buffer_.reset();
    buffer_ = std::make_unique<DeviceBuffer>(context_->driver(), size);
    return true;
  }
  DevicePointer address() const { return buffer_ ? buffer_->address() : 0; }

 private:
  void release() {
    if (!buffer_) return;
    const CurrentContext scope(*context_);
    buffer_.reset();
  }

  std::shared_ptr<CudaContext> context_;
  std::unique_ptr<DeviceBuffer> buffer_;
};

// The memory of one stream or of one captured launch. The prepared part is valid for these constants, symbols and
// generation.
struct LaunchMemories {
  explicit LaunchMemories(const std::shared_ptr<CudaContext>& context) : workspace(context), prepared(context) {}
  ContextMemory workspace, prepared;
  std::vector<const void*> constants;
  std::vector<std::int64_t> symbols;
  std::uint64_t generation = 0;  // 0: not prepared
};

namespace {

DevicePointer device_pointer(const void* data) {
  return static_cast<DevicePointer>(reinterpret_cast<std::uintptr_t>(data));
}
void* pointer_of(DevicePointer address) {
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address));  // NOLINT(performance-no-int-to-ptr)
}

}  // namespace

struct DeviceModule::State {
  State(std::shared_ptr<Module::State> of, int device) : module(std::move(of)), context(context_of(device)) {
    const CurrentContext scope(*context);
    const std::string own = architecture_of(context->driver(), device);
    try {
      program = std::make_unique<CudaProgram>(context->driver(), module->model.plan, module->images);
    } catch (const Error& error) {
      Error::Parts parts = error.parts();
      if (module->model.arch != own)
        parts.hint = fmt::format("they are for {}, the device is {}: compile for that", module->model.arch, own);
      throw Error(error.kind(), std::move(parts));
    }
    for (const auto& embedded : module->model.embedded) {
      constants.push_back(std::make_unique<ContextMemory>(context));
      if (!embedded) continue;
      constants.back()->reserve(static_cast<std::int64_t>(embedded->bytes.size()));
      if (!embedded->bytes.empty())
        context->driver().check(
            context->driver().to_device(constants.back()->address(), embedded->bytes.data(), embedded->bytes.size()),
            "a constant");
    }
  }
  ~State() {
    try {
      const CurrentContext scope(*context);
      program.reset();
    } catch (const Error&) {
      // The device is gone, and its modules with it.
    }
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  std::shared_ptr<const ResolvedCall> checked(std::span<const TensorView> arguments,
                                              std::span<const TensorView> results, const Communicate& communicate) {
    require_communication(module->model, communicate);
    auto call = module->calls.resolve(call_tensors(arguments));
    module->calls.require_results(*call, call_tensors(results));
    for (std::size_t i = 0; i < arguments.size(); ++i) require_address(module->arguments[i].name, arguments[i]);
    for (std::size_t i = 0; i < results.size(); ++i)
      if (module->results[i].alias_of.empty()) require_address(module->results[i].name, results[i]);
    return call;
  }

  static void require_address(const std::string& name, const TensorView& view) {
    const bool empty = std::ranges::find(view.shape, 0) != view.shape.end();
    if ((!view.data && !empty) || device_pointer(view.data) % kDeviceAlignment != 0)
      throw Error(ErrorKind::kInput, Error::Parts{.what = "the address of tensor " + in_quotes(name),
                                                  .found = fmt::format("{:#x}", device_pointer(view.data)),
                                                  .expected = fmt::format("device memory aligned to {} bytes",
                                                                          kDeviceAlignment)});
  }

  DevicePointer address(BufferRef::Kind kind, std::uint32_t index, const LaunchMemories& memories,
                        std::span<const TensorView> arguments, std::span<const TensorView> results) const {
    switch (kind) {
      case BufferRef::Kind::kInput:
        return device_pointer(arguments[index].data);
      case BufferRef::Kind::kConstant:
        return device_pointer(arguments[module->model.graph.inputs.size() + index].data);
      case BufferRef::Kind::kEmbedded:
        return constants[index]->address();
      case BufferRef::Kind::kOutput:
        return device_pointer(results[index].data);
      case BufferRef::Kind::kWorkspace:
        return memories.workspace.address();
      case BufferRef::Kind::kPrepared:
        return memories.prepared.address();
      case BufferRef::Kind::kNowhere:
        break;
    }
    throw InternalError("an argument that lies nowhere");
  }

  struct Enqueued {
    std::shared_ptr<const ResolvedCall> call;
    std::span<const TensorView> arguments, results;
    const Communicate& communicate;
    CudaHandle stream = nullptr;
  };

  void enqueue(const std::vector<ResolvedStep>& steps, const LaunchMemories& memories, const Enqueued& e) const {
    program->enqueue(
        steps,
        [&](BufferRef::Kind kind, std::uint32_t index) {
          return address(kind, index, memories, e.arguments, e.results);
        },
        e.stream,
        [&](const ResolvedStep& step, DevicePointer from, DevicePointer to) {
          const ManifestCollective& collective = module->model.collectives[step.step->node];
          for (const Collective& c : collectives_of(collective, e.call->symbols, pointer_of(from), pointer_of(to)))
            e.communicate(c, e.stream);
        });
  }

  // Grows the workspace. Runs M_prepare again if weights or sizes have changed.
  void prepare(LaunchMemories& memories, const Enqueued& e) {
    const ResolvedCall& call = *e.call;
    memories.workspace.reserve(call.plan.workspace_bytes);
    std::vector<const void*> given;
    for (std::size_t i = module->model.graph.inputs.size(); i < e.arguments.size(); ++i)
      given.push_back(e.arguments[i].data);
    const bool current =
        memories.generation == generation && memories.symbols == call.symbols && memories.constants == given;
    memories.generation = 0;  // not prepared if an allocation or launch below fails
    const bool moved = memories.prepared.reserve(call.plan.prepared_bytes);
    if (moved || !current) enqueue(call.plan.prepare_steps, memories, e);
    memories.constants = std::move(given);
    memories.symbols = call.symbols;
    memories.generation = generation;
  }

  std::shared_ptr<Module::State> module;
  std::shared_ptr<CudaContext> context;
  std::unique_ptr<CudaProgram> program;
  std::vector<std::unique_ptr<ContextMemory>>
      constants;     // constants embedded in the manifest, by position in the graph
  std::mutex mutex;  // guards the members below, and enqueueing
  std::map<std::pair<void*, std::thread::id>, std::unique_ptr<LaunchMemories>> of_stream;
  std::uint64_t generation = 1;
};

DeviceModule::DeviceModule(const Module& module, int device)
    : state_(at_boundary([&] { return std::make_shared<State>(module.state_, device); })) {}

void DeviceModule::launch(std::span<const TensorView> arguments, std::span<const TensorView> results, void* stream,
                          const Communicate& communicate) {
  at_boundary([&] {
    const State::Enqueued e{state_->checked(arguments, results, communicate), arguments, results, communicate, stream};
    const std::scoped_lock lock(state_->mutex);
    // CU_STREAM_PER_THREAD is a different stream in each thread.
    const bool per_thread = device_pointer(stream) == kStreamPerThread;
    std::unique_ptr<LaunchMemories>& memories =
        state_->of_stream[{stream, per_thread ? std::this_thread::get_id() : std::thread::id()}];
    if (!memories) memories = std::make_unique<LaunchMemories>(state_->context);
    const CurrentContext scope(*state_->context);
    state_->prepare(*memories, e);
    state_->enqueue(e.call->plan.steps, *memories, e);
  });
}

void DeviceModule::constants_changed() {
  const std::scoped_lock lock(state_->mutex);
  ++state_->generation;
}

struct CapturedLaunch::State {
  explicit State(std::shared_ptr<DeviceModule::State> of) : module(std::move(of)), memories(module->context) {}
  ~State() {
    const CudaDriver& driver = module->context->driver();
    try {
      const CurrentContext scope(*module->context);
      if (executable) driver.graph_exec_destroy(executable);
      if (graph) driver.graph_destroy(graph);
      if (stream) driver.stream_destroy(stream);
    } catch (const Error&) {
      // The device is gone.
    }
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  std::shared_ptr<DeviceModule::State> module;
  LaunchMemories memories;
  CudaHandle stream = nullptr, graph = nullptr, executable = nullptr;
  std::mutex mutex;  // CUDA allows only one thread at a time to launch a graph
};

CapturedLaunch DeviceModule::capture(std::span<const TensorView> arguments, std::span<const TensorView> results,
                                     const Communicate& communicate) {
  return at_boundary([&] {
    constexpr unsigned kNonBlocking = 1;
    constexpr int kThreadLocal = 1;  // CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
    State::Enqueued e{state_->checked(arguments, results, communicate), arguments, results, communicate};
    const std::scoped_lock lock(state_->mutex);
    const CurrentContext scope(*state_->context);
    const CudaDriver& driver = state_->context->driver();
    CapturedLaunch captured;
    captured.state_ = std::make_shared<CapturedLaunch::State>(state_);
    CapturedLaunch::State& s = *captured.state_;
    driver.check(driver.stream_create(&s.stream, kNonBlocking), "a stream");
    e.stream = s.stream;
    state_->prepare(s.memories, e);
    driver.check(driver.stream_synchronize(s.stream), "the kernels failed");
    driver.check(driver.begin_capture(s.stream, kThreadLocal), "the capture of a launch");
    try {
      state_->enqueue(e.call->plan.steps, s.memories, e);
    } catch (...) {
      driver.end_capture(s.stream, &s.graph);
      throw;
    }
    driver.check(driver.end_capture(s.stream, &s.graph), "the capture of a launch");
    driver.check(driver.graph_instantiate(&s.executable, s.graph, 0), "a CUDA graph");
    return captured;
  });
}

void CapturedLaunch::launch(void* stream) const {
  at_boundary([&] {
    const CurrentContext scope(*state_->module->context);
    const CudaDriver& driver = state_->module->context->driver();
    const std::scoped_lock lock(state_->mutex);
    driver.check(driver.graph_launch(state_->executable, stream), "a CUDA graph");
  });
}

struct DeviceMemory::State {
  State(int device, std::size_t size) : context(context_of(device)), memory(context), bytes(size) {
    const CurrentContext scope(*context);
    memory.reserve(static_cast<std::int64_t>(size));
  }
  void require(std::size_t size) const {
    if (size > bytes)
      throw Error(ErrorKind::kUsage,
                  Error::Parts{.what = "more bytes than the device memory has", .found = std::to_string(size)});
  }
  std::shared_ptr<CudaContext> context;
  ContextMemory memory;
  std::size_t bytes;
};

DeviceMemory::DeviceMemory(int device, std::size_t bytes) : state_(std::make_shared<State>(device, bytes)) {}

void* DeviceMemory::data() const {
  return pointer_of(state_->memory.address());
}

void DeviceMemory::copy_from_host(const void* source, std::size_t bytes) {
  state_->require(bytes);
  if (bytes == 0) return;
  const CurrentContext scope(*state_->context);
  const CudaDriver& driver = state_->context->driver();
  driver.check(driver.to_device(state_->memory.address(), source, bytes), "a copy to the device");
  driver.check(driver.stream_synchronize(nullptr), "a copy to the device");  // to_device may return too early
}

void DeviceMemory::copy_to_host(void* target, std::size_t bytes) const {
  state_->require(bytes);
  if (bytes == 0) return;
  const CurrentContext scope(*state_->context);
  const CudaDriver& driver = state_->context->driver();
  driver.check(driver.synchronize(), "the kernels failed");
  driver.check(driver.to_host(target, state_->memory.address(), bytes), "a copy from the device");
}

bool has_device(int device) {
  try {
    const CudaDriver& driver = CudaDriver::require(kHint);
    int handle = 0;
    return driver.device_get(&handle, device) == 0;
  } catch (const Error&) {
    return false;
  }
}

void synchronize(int device, void* stream) {
  const std::shared_ptr<CudaContext> context = context_of(device);
  const CurrentContext scope(*context);
  context->driver().check(context->driver().stream_synchronize(stream), "the kernels failed");
}

}  // namespace fusec
