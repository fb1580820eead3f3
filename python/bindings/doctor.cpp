#include "fusec/doctor.h"

#include "bindings.h"

namespace fusec::python {

void bind_doctor(nb::module_& m) {
  nb::class_<Finding>(m, "Finding", "One thing that this machine has or lacks.")
      .def_ro("subject", &Finding::subject)
      .def_prop_ro("state",
                   [](const Finding& f) {
                     return std::string(f.state == Finding::State::kGood      ? "good"
                                        : f.state == Finding::State::kMissing ? "missing"
                                                                              : "broken");
                   })
      .def_ro("found", &Finding::found)
      .def_ro("advice", &Finding::advice)
      .def("__repr__", [](nb::handle self) {
        return nb::str("<fusec.Finding {}: {}, {}>")
            .format(self.attr("subject"), self.attr("state"), self.attr("found"));
      });
  m.def("examine", &examine, "options"_a, Released());
  m.def("findings_text", &findings_text, "findings"_a);
  m.def("findings_json", &findings_json, "findings"_a);
  m.def("can_compile", &can_compile, "findings"_a);
  m.def("users_cache_directory", &users_cache_directory);
}

}  // namespace fusec::python
