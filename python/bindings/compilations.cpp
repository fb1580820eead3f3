// Compilations and what they tell.
#include <fmt/format.h>

#include "bindings.h"
#include "fusec/inspect.h"
#include "fusec/module.h"

namespace fusec::python {

void bind_compilations(nb::module_& m) {
  nb::class_<KernelImage>(m, "KernelImage", "Compiled kernels of one model.")
      .def(
          "__init__",
          [](KernelImage* self, std::string ptx, const nb::bytes& cubin) {
            new (self) KernelImage{std::make_shared<const std::string>(std::move(ptx)),
                                   std::make_shared<const std::string>(cubin.c_str(), cubin.size())};
          },
          "ptx"_a, "cubin"_a)
      .def_prop_ro("ptx", [](const KernelImage& self) { return self.ptx ? *self.ptx : std::string(); })
      .def_prop_ro("cubin",
                   [](const KernelImage& self) {
                     return self.cubin ? nb::bytes(self.cubin->data(), self.cubin->size()) : nb::bytes("", 0);
                   })
      .def("__repr__", [](const KernelImage& self) {
        return fmt::format("<fusec.KernelImage: {} bytes of PTX, {} of cubin>", self.ptx ? self.ptx->size() : 0,
                           self.cubin ? self.cubin->size() : 0);
      });
  nb::class_<Group>(m, "Group", "Nodes that become one kernel.")
      .def_ro("name", &Group::name)
      .def_ro("nodes", &Group::nodes)
      .def_ro("pattern", &Group::pattern, "Its pattern kind.")
      .def_ro("claimed_by", &Group::claimed_by, "The fusion pattern that claimed it; \"\" for none.")
      .def_ro("attributes", &Group::attributes, "That the fusion pattern gave it.")
      .def("__repr__", [](const Group& self) {
        return "<fusec.Group " + self.name + ": " + std::to_string(self.nodes.size()) + " nodes, " + self.pattern + ">";
      });
  nb::class_<KernelInfo>(m, "Kernel", "A __global__ function.")
      .def_ro("name", &KernelInfo::name)
      .def_ro("schedule", &KernelInfo::schedule)
      .def_ro("source", &KernelInfo::source)
      .def("__repr__",
           [](const KernelInfo& self) { return "<fusec.Kernel " + self.name + ": " + self.schedule + ">"; });
  nb::class_<Compilation>(m, "Compilation")
      .def_ro("source", &Compilation::source)
      .def_ro("manifest", &Compilation::manifest)
      .def_ro("partition", &Compilation::partition)
      .def_ro("plan", &Compilation::plan)
      .def_ro("groups", &Compilation::groups)
      .def_ro("kernels", &Compilation::kernels)
      .def_ro("diagnostics", &Compilation::diagnostics)
      .def_prop_ro("images", [](const Compilation& self) { return images_of(self); })
      .def("whole_image", &whole_image, Released())
      .def("ledger", &ledger, Released())
      .def("report", &cost_report, Released())
      .def("ir", [](const Compilation& self) { return graph_text(self); })
      .def("dot", &picture_dot, Released())
      .def("svg", &picture_svg, Released())
      .def("html", &picture_html, Released())
      .def("summary", &summary)
      .def(
          "explain",
          [](const Compilation& self, const std::vector<std::string>& nodes, bool json) {
            return explain(self, nodes, json);
          },
          "nodes"_a, "json"_a = false, Released())
      .def(
          "require_one_kernel",
          [](const Compilation& self, const std::vector<std::string>& nodes) { require_one_kernel(self, nodes); },
          "nodes"_a, Released())
      .def("stage_seconds", [](const Compilation& self) {
        std::vector<std::pair<std::string, double>> list;
        for (StageSeconds& stage : stage_seconds(self)) list.emplace_back(std::move(stage.stage), stage.seconds);
        return list;
      });
  m.def("compile", &compile, "model"_a, "options"_a, Released());
}

}  // namespace fusec::python
