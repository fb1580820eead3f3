// Running what was compiled: on the emulator, and on GPUs through the driver.
#include <algorithm>

#include "c_api/handles.h"

using namespace fusec;
using namespace fusec::c_api;

namespace {

std::shared_ptr<const std::string> bytes_of(const void* data, std::size_t size) {
  return data ? std::make_shared<const std::string>(static_cast<const char*>(data), size) : nullptr;
}

std::vector<KernelImage> images_of(const fusec_image* images, std::size_t count) {
  require_list(images, count, "the images");
  std::vector<KernelImage> made;
  for (std::size_t i = 0; i < count; ++i)
    made.push_back({bytes_of(images[i].ptx, images[i].ptx_size), bytes_of(images[i].cubin, images[i].cubin_size)});
  return made;
}

std::vector<std::vector<fusec_dimension>> shapes_of(const std::vector<TensorDeclaration>& declarations) {
  std::vector<std::vector<fusec_dimension>> shapes;
  for (const TensorDeclaration& declaration : declarations) {
    std::vector<fusec_dimension>& shape = shapes.emplace_back();
    for (const Dimension& dimension : declaration.type.shape) {
      const auto* expression = std::get_if<std::string>(&dimension.value);
      shape.push_back(expression ? fusec_dimension{0, expression->c_str()}
                                 : fusec_dimension{std::get<std::int64_t>(dimension.value), nullptr});
    }
  }
  return shapes;
}

template <class List>
auto& at(List& list, std::size_t index) {
  if (index < list.size()) return list[index];
  throw Error(ErrorKind::kUsage, {.what = "the index of a tensor",
                                  .found = std::to_string(index),
                                  .expected = "below " + std::to_string(list.size())});
}

void declare(const TensorDeclaration& from, const std::vector<fusec_dimension>& shape, fusec_declaration* to) {
  require(to, "the place for the declaration");
  *to = {.name = from.name.c_str(),
         .dtype = from.type.dtype.c_str(),
         .shape = shape.data(),
         .rank = shape.size(),
         .is_constant = from.is_constant,
         .alias_of = from.alias_of.c_str()};
}

// The tensors of a call.
struct Call {
  Call(const fusec_tensor* given, std::size_t given_count, const fusec_tensor* wanted, std::size_t wanted_count)
      : arguments(views_of(given, given_count, "the arguments")),
        results(views_of(wanted, wanted_count, "the results")) {}
  std::vector<TensorView> arguments, results;
};

}  // namespace

std::vector<TensorView> c_api::views_of(const fusec_tensor* tensors, std::size_t count, const char* what) {
  require_list(tensors, count, what);
  std::vector<TensorView> views;
  for (std::size_t i = 0; i < count; ++i) {
    const fusec_tensor& t = tensors[i];
    require(t.dtype, "a tensor's dtype");
    require_list(t.shape, t.rank, "a tensor's shape");
    TensorView view{.data = t.data, .dtype = t.dtype, .shape = {}};
    for (std::size_t d = 0; d < t.rank; ++d) view.shape.push_back(t.shape[d]);
    views.push_back(std::move(view));
  }
  return views;
}

fusec_module::fusec_module(Module loaded)
    : module(std::move(loaded)),
      argument_shapes(shapes_of(module.arguments())),
      result_shapes(shapes_of(module.results())) {}

DeviceModule fusec_module::on_device(int device) {
  const std::scoped_lock lock(mutex);
  const auto known = devices.find(device);
  return known != devices.end() ? known->second : devices.emplace(device, DeviceModule(module, device)).first->second;
}

fusec_status fusec_module_load(const char* manifest, size_t manifest_size, const fusec_image* images,
                               size_t image_count, fusec_module** module, fusec_error** error) {
  return guarded_new(module, error, [&] {
    require(manifest, "the manifest");
    return new fusec_module(Module(std::string(manifest, manifest_size), images_of(images, image_count)));
  });
}

fusec_status fusec_module_of(const fusec_compilation* compilation, fusec_module** module, fusec_error** error) {
  return guarded_new(module, error, [&] {
    require(compilation, "the compilation");
    const Compilation& made = compilation->compilation;
    std::vector<KernelImage> images = fusec::images_of(made);
    if (images.empty() && !made.kernels.empty())
      throw Error(ErrorKind::kUsage,
                  Error::Parts{.what = "the compilation has no compiled kernels", .hint = "set option \"ptx\""});
    return new fusec_module(Module(made.manifest, std::move(images)));
  });
}

const char* fusec_module_arch(const fusec_module* module) {
  return module ? module->module.arch().c_str() : "";
}
size_t fusec_module_argument_count(const fusec_module* module) {
  return module ? module->module.arguments().size() : 0;
}
size_t fusec_module_result_count(const fusec_module* module) {
  return module ? module->module.results().size() : 0;
}

fusec_status fusec_module_argument(const fusec_module* module, size_t index, fusec_declaration* declaration,
                                   fusec_error** error) {
  return guarded(error, [&] {
    require(module, "the module");
    declare(at(module->module.arguments(), index), module->argument_shapes[index], declaration);
  });
}

fusec_status fusec_module_result(const fusec_module* module, size_t index, fusec_declaration* declaration,
                                 fusec_error** error) {
  return guarded(error, [&] {
    require(module, "the module");
    declare(at(module->module.results(), index), module->result_shapes[index], declaration);
  });
}

fusec_status fusec_module_result_shape(const fusec_module* module, const fusec_tensor* arguments, size_t argument_count,
                                       size_t index, int64_t* shape, fusec_error** error) {
  return guarded(error, [&] {
    require(module, "the module");
    const auto shapes = module->module.result_shapes(views_of(arguments, argument_count, "the arguments"));
    const std::vector<std::int64_t>& found = at(shapes, index);
    require_list(shape, found.size(), "the place for the shape");
    std::ranges::copy(found, shape);
  });
}

fusec_status fusec_module_set_communicate(fusec_module* module, fusec_communicate communicate, void* user,
                                          fusec_error** error) {
  return guarded(error, [&] {
    require(module, "the module");
    module->communicate = nullptr;
    if (!communicate) return;
    module->communicate = [communicate, user](const Collective& c, void* stream) {
      const fusec_collective given{.op = c.op.c_str(),
                                   .group = c.group.c_str(),
                                   .reduce_op = c.reduce_op.c_str(),
                                   .dtype = c.dtype.c_str(),
                                   .source = c.source,
                                   .source_elements = c.source_elements,
                                   .target = c.target,
                                   .target_elements = c.target_elements};
      if (communicate(user, &given, stream) != 0) throw Cancelled();
    };
  });
}

fusec_status fusec_module_run_on_emulator(const fusec_module* module, const fusec_tensor* arguments,
                                          size_t argument_count, const fusec_tensor* results, size_t result_count,
                                          int32_t threads, fusec_error** error) {
  return guarded(error, [&] {
    require(module, "the module");
    const Call call(arguments, argument_count, results, result_count);
    module->module.run_on_emulator(call.arguments, call.results, threads, module->communicate);
  });
}

fusec_status fusec_module_launch(fusec_module* module, int32_t device, const fusec_tensor* arguments,
                                 size_t argument_count, const fusec_tensor* results, size_t result_count, void* stream,
                                 fusec_error** error) {
  return guarded(error, [&] {
    require(module, "the module");
    const Call call(arguments, argument_count, results, result_count);
    module->on_device(device).launch(call.arguments, call.results, stream, module->communicate);
  });
}

fusec_status fusec_module_constants_changed(fusec_module* module, fusec_error** error) {
  return guarded(error, [&] {
    require(module, "the module");
    const std::scoped_lock lock(module->mutex);
    for (auto& [device, loaded] : module->devices) loaded.constants_changed();
  });
}

void fusec_module_free(fusec_module* module) {
  delete module;
}

fusec_status fusec_module_capture(fusec_module* module, int32_t device, const fusec_tensor* arguments,
                                  size_t argument_count, const fusec_tensor* results, size_t result_count,
                                  fusec_captured** captured, fusec_error** error) {
  return guarded_new(captured, error, [&] {
    require(module, "the module");
    const Call call(arguments, argument_count, results, result_count);
    return new fusec_captured{module->on_device(device).capture(call.arguments, call.results, module->communicate)};
  });
}

fusec_status fusec_captured_launch(const fusec_captured* captured, void* stream, fusec_error** error) {
  return guarded(error, [&] {
    require(captured, "the captured launch");
    captured->launch.launch(stream);
  });
}

void fusec_captured_free(fusec_captured* captured) {
  delete captured;
}

int32_t fusec_has_device(int32_t device) {
  int32_t has = 0;
  guarded(nullptr, [&] { has = has_device(device); });
  return has;
}

fusec_status fusec_synchronize(int32_t device, void* stream, fusec_error** error) {
  return guarded(error, [&] { synchronize(device, stream); });
}

fusec_status fusec_memory_new(int32_t device, size_t bytes, fusec_memory** memory, fusec_error** error) {
  return guarded_new(memory, error, [&] { return new fusec_memory{DeviceMemory(device, bytes)}; });
}

void* fusec_memory_data(const fusec_memory* memory) {
  return memory ? memory->memory.data() : nullptr;
}

fusec_status fusec_memory_copy_from_host(fusec_memory* memory, const void* source, size_t bytes, fusec_error** error) {
  return guarded(error, [&] {
    require(memory, "the memory");
    require_list(source, bytes, "the source");
    memory->memory.copy_from_host(source, bytes);
  });
}

fusec_status fusec_memory_copy_to_host(const fusec_memory* memory, void* target, size_t bytes, fusec_error** error) {
  return guarded(error, [&] {
    require(memory, "the memory");
    require_list(target, bytes, "the target");
    memory->memory.copy_to_host(target, bytes);
  });
}

void fusec_memory_free(fusec_memory* memory) {
  delete memory;
}
