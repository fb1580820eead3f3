#include "runtime/host_part/host_part.h"

#include <cstring>
#include <map>

#include "codegen/host/emit_collective.h"
#include "ir/error.h"
#include "runtime/emulator/tensor_map.h"
#include "runtime/host_part/stand_in/recorded_runtime.h"

namespace fusec {
namespace {

constexpr int kMultiprocessors = 108, kCapabilityMajor = 9;  // of the simulated device
constexpr int kInvalidValue = 1;
constexpr std::uintptr_t kStream = 0x5742;  // stream that every operation must be enqueued on

// The fields of M_args, all of 8 bytes and therefore contiguous.
std::vector<std::uint64_t> fields_of(const HostArguments& arguments) {
  std::vector<std::uint64_t> fields;
  for (const HostArguments::Tensor& tensor : arguments.arguments) {
    fields.push_back(tensor.address);
    for (const std::int64_t extent : tensor.extents) fields.push_back(static_cast<std::uint64_t>(extent));
  }
  fields.insert(fields.end(), arguments.results.begin(), arguments.results.end());
  fields.push_back(0);  // a model without arguments has one unused field
  return fields;
}

std::uint64_t number(const void* address) {
  return reinterpret_cast<std::uintptr_t>(address);
}
void* pointer(std::uint64_t address) {
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address));
}

// The dtype of a cudaDataType_t.
DType dtype_of(int type) {
  switch (type) {
    case 0:
      return DType::kFloat32;
    case 1:
      return DType::kFloat64;
    case 2:
      return DType::kFloat16;
    case 3:
      return DType::kInt8;
    case 10:
      return DType::kInt32;
    case 14:
      return DType::kBFloat16;
    case 28:
      return DType::kFloat8E4M3FN;
    case 29:
      return DType::kFloat8E5M2;
    default:
      throw InternalError("the stand-in of cuBLASLt lets through a type that it does not know");
  }
}

MatrixInNumbers matrix_of(const fusec_recorded_matrix& m) {
  return {.dtype = dtype_of(m.type),
          .address = number(m.address),
          .rows = m.rows,
          .columns = m.columns,
          .leading = m.leading,
          .batch_stride = m.batch_stride,
          .transposed = m.transposed != 0};
}

struct Libraries {
  void* cublaslt = nullptr;
  void* const* nccl_comms = nullptr;
};

}  // namespace

// The recorder that the stand-in's functions call. Exceptions must not pass through the host part, so errors are kept
// in `fault`.
struct HostRecorder {
  HostRecorder(const Graph& graph, const LaunchPlan& launch_plan, const SharedLibrary& library) : plan(launch_plan) {
    for (std::size_t i = 0; i < collective_groups(graph).size(); ++i) communicators.push_back(pointer(i + 1));
    for (const KernelSource& kernel : plan.kernels) kernels[library.symbol(kernel.name)] = &kernel;
    for (const LaunchStep& step : plan.steps)
      if (step.kind == LaunchStep::Kind::kExternal) {
        externals.push_back(&step);
        std::size_t extents = 0;
        for (const std::vector<ValueId>* list : {&step.reads, &step.writes})
          for (const ValueId v : *list) extents += graph.tensor(v).rank();
        external_extents.push_back(extents);
      }
    runtime = {this,           kMultiprocessors, kCapabilityMajor, &launch,     &copy,  &symbol_address,
               &set_attribute, &external,        &product,         &collective, &group, &tensor_map};
  }

  static HostRecorder& self(void* recorder) { return *static_cast<HostRecorder*>(recorder); }

  // Records or refuses an operation.
  int add(DeviceCall call, const void* stream) {
    if (number(stream) != kStream) fault = "an operation is enqueued on another stream";
    if (refuse == attempts++) return kInvalidValue;
    calls.push_back(std::move(call));
    return 0;
  }

  static int launch(void* recorder, const void* kernel, const unsigned* grid, const unsigned* block, void** arguments,
                    std::size_t shared_bytes, const void* stream) {
    HostRecorder& r = self(recorder);
    const auto found = r.kernels.find(kernel);
    if (found == r.kernels.end()) {
      r.fault = "a kernel is launched that the file does not have";
      return kInvalidValue;
    }
    DeviceCall call;
    call.name = found->second->name;
    for (std::size_t d = 0; d < 3; ++d) {
      call.grid[d] = grid[d];
      call.block[d] = block[d];
    }
    call.dynamic_shared = static_cast<std::int64_t>(shared_bytes);
    for (std::size_t i = 0; i < found->second->parameters.size(); ++i) {
      const KernelParameter& p = found->second->parameters[i];
      const bool narrow = p.kind == KernelParameter::Kind::kSize && p.bits == 32;
      const auto* bytes = static_cast<const std::byte*>(arguments[i]);
      const std::size_t size = p.kind == KernelParameter::Kind::kTensorMap ? emulator::kTensorMapBytes : narrow ? 4 : 8;
      call.arguments.emplace_back(bytes, bytes + size);
    }
    return r.add(std::move(call), stream);
  }

  static int copy(void* recorder, void* to, const void* from, std::size_t bytes, int kind, const void* stream) {
    HostRecorder& r = self(recorder);
    if (kind != 3) r.fault = "a copy that is not from device to device";
    DeviceCall call;
    call.kind = DeviceCall::Kind::kCopy;
    call.arguments = {address_bytes(number(to)), address_bytes(number(from))};
    call.bytes = static_cast<std::int64_t>(bytes);
    return r.add(std::move(call), stream);
  }

  static int external(void* recorder, const char* launcher, const void* const* inputs, void* const* outputs,
                      const long long* extents, const char* attributes, const void* stream) {
    HostRecorder& r = self(recorder);
    if (r.next_external == r.externals.size()) {
      r.fault = "a launcher of a custom op is called once too often";
      return kInvalidValue;
    }
    const LaunchStep& step = *r.externals[r.next_external];
    const std::size_t count = r.external_extents[r.next_external++];
    if (!attributes || attributes[0] != '{') r.fault = "attributes of a custom op that are no JSON object";
    DeviceCall call;
    call.kind = DeviceCall::Kind::kExternal;
    call.name = launcher;
    for (std::size_t i = 0; i < step.reads.size(); ++i) call.arguments.push_back(address_bytes(number(inputs[i])));
    for (std::size_t i = 0; i < step.writes.size(); ++i) call.arguments.push_back(address_bytes(number(outputs[i])));
    call.extents.assign(extents, extents + count);
    return r.add(std::move(call), stream);
  }

  static int product(void* recorder, const fusec_recorded_product* given, const void* stream) {
    HostRecorder& r = self(recorder);
    MatrixProduct p;
    p.a = matrix_of(given->a);
    p.b = matrix_of(given->b);
    p.c = matrix_of(given->c);
    p.d = matrix_of(given->d);
    p.batch = given->batch;
    p.compute = given->compute == 70   ? CublasLtCompute::kFloat64
                : given->compute == 72 ? CublasLtCompute::kInt32
                                       : CublasLtCompute::kFloat32;
    p.alpha = given->alpha;
    p.beta = given->beta;
    p.activation = given->epilogue & 2    ? CublasLtEpilogue::kRelu
                   : given->epilogue & 32 ? CublasLtEpilogue::kGeluTanh
                                          : CublasLtEpilogue::kIdentity;
    p.has_bias = (given->epilogue & 4) != 0;
    p.has_aux = (given->epilogue & 128) != 0;
    p.bias_dtype = p.has_bias ? dtype_of(given->bias_type) : p.d.dtype;
    p.bias = number(given->bias);
    p.a_scale = number(given->a_scale);
    p.b_scale = number(given->b_scale);
    p.outer_scales = given->outer_scales != 0;
    p.aux = number(given->aux);
    p.workspace = number(given->workspace);
    p.workspace_bytes = static_cast<std::int64_t>(given->workspace_bytes);
    if (p.has_aux && given->aux_leading != given->d.leading) r.fault = "a value before an activation lies otherwise";
    DeviceCall call;
    call.kind = DeviceCall::Kind::kProduct;
    call.product = p;
    return r.add(std::move(call), stream);
  }

  static int collective(void* recorder, const char* function, const void* from, void* to, std::size_t count, int dtype,
                        int reduction, const void* communicator, const void* stream) {
    HostRecorder& r = self(recorder);
    DeviceCall call;
    call.kind = DeviceCall::Kind::kCollective;
    call.name = function;
    call.extents = {static_cast<std::int64_t>(count), dtype, reduction,
                    static_cast<std::int64_t>(number(communicator)) - 1};
    const std::vector<std::vector<std::byte>> arguments = {address_bytes(number(from)), address_bytes(number(to))};
    if (!r.open_group) {
      call.arguments = arguments;
      return r.add(std::move(call), stream);
    }
    if (number(stream) != kStream) r.fault = "a collective is enqueued on another stream";
    DeviceCall& together = *r.open_group;
    if (!together.name.empty() && (together.name != call.name || together.extents != call.extents))
      r.fault = "different collectives in one group";
    together.name = call.name;
    together.extents = call.extents;
    together.arguments.insert(together.arguments.end(), arguments.begin(), arguments.end());
    return 0;
  }

  static int group(void* recorder, int ends) {
    HostRecorder& r = self(recorder);
    if (ends == 0) {
      if (r.open_group) r.fault = "a group of collectives begins in another";
      r.open_group.emplace();
      r.open_group->kind = DeviceCall::Kind::kCollective;
      return 0;
    }
    if (!r.open_group) {
      r.fault = "a group of collectives ends that did not begin";
      return kInvalidValue;
    }
    DeviceCall call = std::move(*r.open_group);
    r.open_group.reset();
    return r.add(std::move(call), pointer(kStream));
  }

  static int symbol_address(void* recorder, void** address, const void* symbol, std::size_t bytes) {
    HostRecorder& r = self(recorder);
    const auto given = (*r.address_of_constant)(r.next_constant++, {static_cast<const std::byte*>(symbol), bytes});
    if (!given) return kInvalidValue;
    *address = pointer(*given);
    return 0;
  }

  // Replaces cuTensorMapEncodeTiled; refuses what the driver would refuse.
  static int tensor_map(void*, void* map, int element_bytes, unsigned rank, const void* address,
                        const unsigned long long* extents, const unsigned long long* strides, const unsigned* box) {
    if (rank < 1 || rank > 5) return kInvalidValue;
    const ResolvedBoxes boxes{.element_bytes = element_bytes,
                              .extents = {extents, extents + rank},
                              .strides = {strides, strides + rank - 1},
                              .box = {box, box + rank}};
    if (!emulator::tensor_map_fault(tensor_map_of(boxes, number(address))).empty()) return kInvalidValue;
    const std::vector<std::byte> bytes = tensor_map_bytes(boxes, number(address));
    std::memcpy(map, bytes.data(), bytes.size());
    return 0;
  }

  static int set_attribute(void* recorder, const void* kernel, int attribute, int value) {
    HostRecorder& r = self(recorder);
    const auto found = r.kernels.find(kernel);
    if (found == r.kernels.end() || attribute != 8 || value > r.plan.most_shared_bytes) return kInvalidValue;
    r.allowed_shared[found->second->name] = value;
    return 0;
  }

  const LaunchPlan& plan;
  fusec_recorded_runtime runtime{};
  std::map<const void*, const KernelSource*> kernels;  // looked up, never iterated
  std::vector<const LaunchStep*> externals;
  std::vector<std::size_t> external_extents;
  std::map<std::string, std::int64_t> allowed_shared;
  const HostPart::AddressOfConstant* address_of_constant = nullptr;
  std::size_t next_constant = 0, next_external = 0, attempts = 0;
  std::optional<std::size_t> refuse;
  std::optional<DeviceCall> open_group;  // between ncclGroupStart and ncclGroupEnd
  std::vector<DeviceCall> calls;
  std::vector<void*> communicators;  // that of group i is the number i + 1
  std::string fault;
};

HostPart::HostPart(const std::string& out_cu, const Graph& graph, const LaunchPlan& plan, const std::string& compiler)
    : plan_(plan),
      library_(compile_host(out_cu, graph, plan, compiler)),
      recorder_(std::make_unique<HostRecorder>(graph, plan, *library_)) {
  *static_cast<const fusec_recorded_runtime**>(library_->symbol("fusec_runtime")) = &recorder_->runtime;
}

HostPart::~HostPart() {
  if (context_) function<void(void*)>("destroy")(context_);
}

int HostPart::create(const AddressOfConstant& address, bool with_libraries) {
  if (context_) function<void(void*)>("destroy")(context_);
  context_ = this;  // M_create must overwrite it
  recorder_->address_of_constant = &address;
  recorder_->next_constant = 0;
  const Libraries libraries{.nccl_comms = recorder_->communicators.data()};
  const int status =
      function<int(void**, const Libraries*)>("create")(&context_, with_libraries ? &libraries : nullptr);
  if (context_ == this) throw InternalError("M_create leaves the context as it was");
  if (status == 0 && !context_) throw InternalError("M_create succeeds without a context");
  return status;
}

int HostPart::create_nowhere() {
  return function<int(void**, const Libraries*)>("create")(nullptr, nullptr);
}

HostAnswer HostPart::record(const std::function<int()>& call, std::optional<std::size_t> refuse) {
  recorder_->calls.clear();
  recorder_->next_external = recorder_->attempts = 0;
  recorder_->refuse = refuse;
  recorder_->fault.clear();
  HostAnswer answer;
  answer.status = call();
  answer.error = function<const char*(const void*)>("error")(context_);
  answer.calls = std::move(recorder_->calls);
  recorder_->calls.clear();
  if (!recorder_->fault.empty()) throw InternalError("the host part: " + recorder_->fault);
  return answer;
}

HostAnswer HostPart::launch(const HostArguments* arguments, std::uint64_t prepared, std::uint64_t workspace,
                            std::optional<std::size_t> refuse) {
  const std::vector<std::uint64_t> fields = fields_of(arguments ? *arguments : HostArguments{});
  auto* launch = function<int(void*, const void*, const void*, void*, void*)>("launch");
  return record(
      [&] {
        return launch(context_, arguments ? fields.data() : nullptr, pointer(prepared), pointer(workspace),
                      pointer(kStream));
      },
      refuse);
}

HostAnswer HostPart::prepare(const HostArguments* arguments, std::uint64_t prepared,
                             std::optional<std::size_t> refuse) {
  const std::vector<std::uint64_t> fields = fields_of(arguments ? *arguments : HostArguments{});
  auto* prepare = function<int(void*, const void*, void*, void*)>("prepare");
  return record(
      [&] { return prepare(context_, arguments ? fields.data() : nullptr, pointer(prepared), pointer(kStream)); },
      refuse);
}

int HostPart::launch_without_context(const HostArguments& arguments) {
  auto* launch = function<int(void*, const void*, const void*, void*, void*)>("launch");
  return launch(nullptr, fields_of(arguments).data(), nullptr, nullptr, pointer(kStream));
}

std::uint64_t HostPart::workspace_bytes(const HostArguments* arguments) const {
  const std::vector<std::uint64_t> fields = fields_of(arguments ? *arguments : HostArguments{});
  return function<std::size_t(const void*)>("workspace_bytes")(arguments ? fields.data() : nullptr);
}

std::uint64_t HostPart::prepared_bytes(const HostArguments* arguments) const {
  const std::vector<std::uint64_t> fields = fields_of(arguments ? *arguments : HostArguments{});
  return function<std::size_t(const void*)>("prepared_bytes")(arguments ? fields.data() : nullptr);
}

std::optional<std::int64_t> HostPart::allowed_shared(const std::string& kernel) const {
  const auto found = recorder_->allowed_shared.find(kernel);
  if (found == recorder_->allowed_shared.end()) return std::nullopt;
  return found->second;
}

}  // namespace fusec
