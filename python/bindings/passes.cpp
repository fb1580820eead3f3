// Single passes, and what this build knows.
#include "bindings.h"

namespace fusec::python {

void bind_passes(nb::module_& m) {
  nb::class_<PassInfo>(m, "PassInfo", "A stage of a compilation.")
      .def_ro("name", &PassInfo::name)
      .def_ro("summary", &PassInfo::summary)
      .def_ro("rewrites", &PassInfo::rewrites, "From graph to graph: run_pass runs it.")
      .def("__repr__", [](const PassInfo& self) { return "<fusec.PassInfo " + self.name + ": " + self.summary + ">"; });
  nb::class_<PatternInfo>(m, "PatternInfo", "A fusion pattern.")
      .def_ro("name", &PatternInfo::name)
      .def_ro("summary", &PatternInfo::summary)
      .def_ro("match", &PatternInfo::match)
      .def_ro("becomes", &PatternInfo::becomes)
      .def_ro("priority", &PatternInfo::priority)
      .def("__repr__",
           [](const PatternInfo& self) { return "<fusec.PatternInfo " + self.name + ": " + self.summary + ">"; });
  m.def("passes", &passes_in_order);
  m.def("patterns", &patterns_in_order, "options"_a, Released());
  m.def(
      "run_pass",
      [](const Model& model, const std::string& name, const Options& options) {
        return run_pass(model, name, options);
      },
      "model"_a, "name"_a, "options"_a, Released());
  m.def("annotate", &annotate_patterns, "model"_a, "strategy"_a = "full", Released());
  m.def("partition", &partition, "model"_a, "options"_a, Released());
  m.def("version", [] { return std::string(version()); });
}

}  // namespace fusec::python
