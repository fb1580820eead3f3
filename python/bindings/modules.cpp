// Running what was compiled. Tensors come as (address, dtype, shape): the Python caller keeps the buffers alive.
#include "bindings.h"
#include "fusec/module.h"

namespace fusec::python {
namespace {

using View = std::tuple<std::uintptr_t, std::string, std::vector<std::int64_t>>;
using NamedView = std::tuple<std::string, std::uintptr_t, std::string, std::vector<std::int64_t>>;

void* pointer(std::uintptr_t address) {
  return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr)
}

std::vector<TensorView> views(std::vector<View> given) {
  std::vector<TensorView> list;
  for (View& view : given)
    list.push_back({pointer(std::get<0>(view)), std::move(std::get<1>(view)), std::move(std::get<2>(view))});
  return list;
}

std::vector<NamedTensor> named_views(std::vector<NamedView> given) {
  std::vector<NamedTensor> list;
  for (NamedView& view : given)
    list.push_back({std::move(std::get<0>(view)),
                    {pointer(std::get<1>(view)), std::move(std::get<2>(view)), std::move(std::get<3>(view))}});
  return list;
}

std::uintptr_t address(const void* data) {
  return reinterpret_cast<std::uintptr_t>(data);
}

// A callable of Python takes the stream as a number.
using Communicating = std::optional<std::function<void(const Collective&, std::uintptr_t stream)>>;

Communicate communication(const Communicating& given) {
  if (!given) return {};
  return [&given](const Collective& collective, void* stream) { (*given)(collective, address(stream)); };
}

}  // namespace

void bind_modules(nb::module_& m) {
  nb::class_<TensorDeclaration>(m, "TensorDeclaration", "What a call takes or gives.")
      .def_ro("name", &TensorDeclaration::name)
      .def_prop_ro("dtype", [](const TensorDeclaration& t) { return t.type.dtype; })
      .def_prop_ro("shape", [](const TensorDeclaration& t) { return shape_of(t.type.shape); })
      .def_ro("is_constant", &TensorDeclaration::is_constant)
      .def_ro("alias_of", &TensorDeclaration::alias_of)
      .def("__repr__", [](const TensorDeclaration& t) {
        return "<fusec.TensorDeclaration " + t.name + ": " + text_of(t.type) + ">";
      });
  nb::class_<Collective>(m, "Collective", "What the devices of a group do together in one step of a call.")
      .def_ro("op", &Collective::op)
      .def_ro("group", &Collective::group)
      .def_ro("reduce_op", &Collective::reduce_op)
      .def_ro("dtype", &Collective::dtype)
      .def_prop_ro("source", [](const Collective& c) { return address(c.source); })
      .def_ro("source_elements", &Collective::source_elements)
      .def_prop_ro("target", [](const Collective& c) { return address(c.target); })
      .def_ro("target_elements", &Collective::target_elements);
  nb::class_<Module>(m, "Executable")
      .def(nb::init<std::string, std::vector<KernelImage>>(), "manifest"_a, "images"_a, Released())
      .def_prop_ro("manifest", &Module::manifest)
      .def_prop_ro("arch", &Module::arch)
      .def_prop_ro("arguments", &Module::arguments)
      .def_prop_ro("results", &Module::results)
      .def(
          "result_shapes",
          [](const Module& self, std::vector<View> arguments) {
            return self.result_shapes(views(std::move(arguments)));
          },
          "arguments"_a)
      .def(
          "run_on_emulator",
          [](const Module& self, std::vector<View> arguments, std::vector<View> results, int threads,
             const Communicating& communicate) {
            self.run_on_emulator(views(std::move(arguments)), views(std::move(results)), threads,
                                 communication(communicate));
          },
          "arguments"_a, "results"_a, "threads"_a = 0, "communicate"_a = nb::none(), Released());
  nb::class_<DeviceMemory>(m, "DeviceMemory")
      .def(nb::init<int, std::size_t>(), "device"_a, "bytes"_a, Released())
      .def_prop_ro("address", [](const DeviceMemory& self) { return address(self.data()); })
      .def(
          "copy_from_host",
          [](DeviceMemory& self, std::uintptr_t source, std::size_t bytes) {
            self.copy_from_host(pointer(source), bytes);
          },
          "source"_a, "bytes"_a, Released())
      .def(
          "copy_to_host",
          [](const DeviceMemory& self, std::uintptr_t target, std::size_t bytes) {
            self.copy_to_host(pointer(target), bytes);
          },
          "target"_a, "bytes"_a, Released());
  nb::class_<CapturedLaunch>(m, "CapturedLaunch")
      .def(
          "launch", [](const CapturedLaunch& self, std::uintptr_t stream) { self.launch(pointer(stream)); }, "stream"_a,
          Released());
  nb::class_<DeviceModule>(m, "DeviceModule")
      .def(nb::init<const Module&, int>(), "module"_a, "device"_a, Released())
      .def(
          "launch",
          [](DeviceModule& self, std::vector<View> arguments, std::vector<View> results, std::uintptr_t stream,
             const Communicating& communicate) {
            self.launch(views(std::move(arguments)), views(std::move(results)), pointer(stream),
                        communication(communicate));
          },
          "arguments"_a, "results"_a, "stream"_a, "communicate"_a = nb::none(), Released())
      .def("constants_changed", &DeviceModule::constants_changed, Released())
      .def(
          "capture",
          [](DeviceModule& self, std::vector<View> arguments, std::vector<View> results,
             const Communicating& communicate) {
            return self.capture(views(std::move(arguments)), views(std::move(results)), communication(communicate));
          },
          "arguments"_a, "results"_a, "communicate"_a = nb::none(), Released());
  m.attr("DEVICE_ALIGNMENT") = kDeviceAlignment;
  m.def(
      "run_reference",
      [](const Model& model, std::vector<NamedView> arguments, std::vector<NamedView> results) {
        run_reference(model, named_views(std::move(arguments)), named_views(std::move(results)));
      },
      "model"_a, "arguments"_a, "results"_a, Released());
  m.def("has_device", &has_device, "device"_a = 0, Released());
  m.def(
      "synchronize", [](int device, std::uintptr_t stream) { synchronize(device, pointer(stream)); }, "device"_a,
      "stream"_a, Released());
}

}  // namespace fusec::python
