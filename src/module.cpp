// Module of the public API: runs a module on the host, by the emulator or the reference.
#include "fusec/module.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "boundary.h"
#include "ir/spelling.h"
#include "module_state.h"
#include "runtime/reference/reference.h"
#include "type_info.h"

namespace fusec {
namespace {

HostTensor host_tensor(const NamedTensor& named) {
  const auto dtype = parse_dtype(named.tensor.dtype);
  if (!dtype)
    throw Error(ErrorKind::kInput, Error::Parts{.what = "the dtype of tensor " + in_quotes(named.name),
                                                .found = in_quotes(named.tensor.dtype),
                                                .expected = "a dtype of the graph format"});
  HostTensor tensor(*dtype, named.tensor.shape);
  if (!tensor.bytes.empty()) std::memcpy(tensor.bytes.data(), named.tensor.data, tensor.bytes.size());
  return tensor;
}

void require_given(const Graph& graph, const TensorMap& tensors) {
  const auto require = [&](ValueId v, const char* what) {
    if (!tensors.contains(graph.value(v).name))
      throw Error(ErrorKind::kUsage, Error::Parts{.what = std::string("no value is given for ") + what,
                                                  .found = in_quotes(graph.value(v).name)});
  };
  for (const ValueId v : graph.inputs) require(v, "input");
  for (const Constant& constant : graph.constants)
    if (!constant.data && constant.safetensors_file.empty()) require(constant.value, "constant");
}

}  // namespace

std::vector<CallTensor> call_tensors(std::span<const TensorView> views) {
  std::vector<CallTensor> tensors;
  tensors.reserve(views.size());
  for (const TensorView& view : views) tensors.push_back({view.dtype, view.shape});
  return tensors;
}

Module::State::State(std::string manifest_text, std::vector<KernelImage> kernel_images)
    : manifest(std::move(manifest_text)), images(std::move(kernel_images)), model(read_manifest(manifest)) {
  const Graph& graph = model.graph;
  for (const ValueId v : graph.inputs)
    arguments.push_back({.name = graph.value(v).name, .type = type_info(graph.tensor(v), graph.symbols)});
  for (std::size_t c = 0; c < graph.constants.size(); ++c) {
    if (model.embedded[c]) continue;
    const ValueId v = graph.constants[c].value;
    arguments.push_back(
        {.name = graph.value(v).name, .type = type_info(graph.tensor(v), graph.symbols), .is_constant = true});
  }
  for (const ManifestResult& result : model.results)
    results.push_back({.name = result.name,
                       .type = type_info(result.type, graph.symbols),
                       .alias_of = result.alias_of ? arguments[*result.alias_of].name : ""});
}

const EmulatedKernels& Module::State::emulated_kernels() {
  const std::scoped_lock lock(mutex);
  if (!emulated) emulated.emplace(images);
  return *emulated;
}

std::vector<KernelImage> images_of(const Compilation& compilation) {
  std::vector<KernelImage> images;
  std::set<const std::string*> seen;
  for (const KernelInfo& kernel : compilation.kernels)
    if (kernel.ptx && seen.insert(kernel.ptx.get()).second) images.push_back({kernel.ptx, kernel.cubin});
  return images;
}

Module::Module(std::string manifest, std::vector<KernelImage> images)
    : state_(at_boundary([&] { return std::make_shared<State>(std::move(manifest), std::move(images)); })) {}

const std::string& Module::manifest() const {
  return state_->manifest;
}
const std::vector<KernelImage>& Module::images() const {
  return state_->images;
}
const std::string& Module::arch() const {
  return state_->model.arch;
}
const std::vector<TensorDeclaration>& Module::arguments() const {
  return state_->arguments;
}
const std::vector<TensorDeclaration>& Module::results() const {
  return state_->results;
}

std::vector<std::vector<std::int64_t>> Module::result_shapes(std::span<const TensorView> arguments) const {
  return at_boundary([&] { return state_->calls.resolve(call_tensors(arguments))->result_shapes; });
}

namespace {

void require_memory(const std::string& name, const TensorView& view) {
  const bool empty = std::ranges::find(view.shape, 0) != view.shape.end();
  if (!view.data && !empty)
    throw Error(
        ErrorKind::kInput,
        Error::Parts{.what = "the address of tensor " + in_quotes(name), .found = "null", .expected = "host memory"});
}

}  // namespace

void Module::run_on_emulator(std::span<const TensorView> arguments, std::span<const TensorView> results, int threads,
                             const Communicate& communicate) const {
  at_boundary([&] {
    const std::shared_ptr<const ResolvedCall> call = state_->calls.resolve(call_tensors(arguments));
    state_->calls.require_results(*call, call_tensors(results));
    std::vector<void*> read, written;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      require_memory(state_->arguments[i].name, arguments[i]);
      read.push_back(arguments[i].data);
    }
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (state_->results[i].alias_of.empty()) require_memory(state_->results[i].name, results[i]);
      written.push_back(results[i].data);
    }
    fusec::run_on_emulator(state_->model, *call, state_->emulated_kernels(), read, written, threads, communicate);
  });
}

void run_reference(const Model& model, std::span<const NamedTensor> arguments, std::span<const NamedTensor> results) {
  at_boundary([&] {
    TensorMap tensors;
    for (const NamedTensor& named : arguments) tensors[named.name] = host_tensor(named);
    require_given(model.graph(), tensors);
    const TensorMap outputs = fusec::run_reference(model.graph(), tensors);
    for (const NamedTensor& named : results) {
      const auto output = outputs.find(named.name);
      if (output == outputs.end())
        throw Error(ErrorKind::kUsage,
                    Error::Parts{.what = "the model has no output of this name", .found = in_quotes(named.name)});
      if (host_tensor(named).bytes.size() != output->second.bytes.size() ||
          output->second.shape != named.tensor.shape || name(output->second.dtype) != named.tensor.dtype)
        throw Error(ErrorKind::kInput, Error::Parts{.what = "the tensor for output " + in_quotes(named.name) +
                                                            " is of another shape or dtype"});
      if (!output->second.bytes.empty())
        std::memcpy(named.tensor.data, output->second.bytes.data(), output->second.bytes.size());
    }
  });
}

}  // namespace fusec
