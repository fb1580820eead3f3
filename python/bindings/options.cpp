// Options, under the command line's names.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "bindings.h"

namespace fusec::python {

void bind_options(nb::module_& m) {
  nb::class_<MatchedValue>(m, "MatchedValue", "A value that a pattern found.")
      .def_ro("name", &MatchedValue::name, "In the pattern.")
      .def_ro("value", &MatchedValue::value, "In the model; for a number, its text.")
      .def_ro("type", &MatchedValue::type)
      .def_ro("producer", &MatchedValue::producer)
      .def_ro("users", &MatchedValue::users)
      .def_ro("is_output", &MatchedValue::is_output)
      .def("__repr__", [](const MatchedValue& self) {
        return fmt::format("<fusec.MatchedValue {}: {} {}>", self.name, self.value, text_of(self.type));
      });
  nb::class_<MatchedPattern>(m, "MatchedPattern", "What a pattern found.")
      .def_ro("pattern", &MatchedPattern::pattern)
      .def_ro("root", &MatchedPattern::root)
      .def_ro("nodes", &MatchedPattern::nodes)
      .def_ro("values", &MatchedPattern::values)
      .def("__repr__", [](const MatchedPattern& self) {
        return fmt::format("<fusec.MatchedPattern {}: {}>", self.pattern, fmt::join(self.nodes, ", "));
      });
  nb::class_<PatternText>(m, "Pattern", "Fusion patterns as a pattern file has them, and what their text cannot say.")
      .def(
          "__init__",
          [](PatternText* self, std::string text, std::function<nb::object(const MatchedPattern&)> check,
             std::function<nb::object(const MatchedPattern&)> attributes) {
            using Attributes = std::vector<std::pair<std::string, std::string>>;
            new (self) PatternText{
                std::move(text),
                returning<std::string>("the check of a pattern returns \"\" for yes, else a str that says why not",
                                       std::move(check)),
                returning<Attributes>("the attributes function of a pattern returns a list of pairs of str",
                                      std::move(attributes))};
          },
          "text"_a, "check"_a.none() = nb::none(), "attributes"_a.none() = nb::none(),
          nb::sig("def __init__(self, text: str, check: Callable[[MatchedPattern], str] | None = None, "
                  "attributes: Callable[[MatchedPattern], Sequence[tuple[str, str]]] | None = None) -> None"),
          "`check` says \"\" for yes, else why not; `attributes` are those of the group.")
      .def_ro("text", &PatternText::text)
      .def("__repr__", [](const PatternText& self) {
        const std::size_t begin = std::min(self.text.find_first_not_of(" \n"), self.text.size());
        return "<fusec.Pattern: " + self.text.substr(begin, self.text.find('\n', begin) - begin) + ">";
      });
  nb::class_<Progress>(m, "Progress", "How far a compilation is.")
      .def_prop_ro("stage", [](const Progress& p) { return std::string(p.stage); })
      .def_ro("done", &Progress::done, "Pieces of source that NVRTC compiled.")
      .def_ro("total", &Progress::total, "Pieces in all; 0 in other stages.")
      .def("__repr__", [](const Progress& self) {
        return fmt::format("<fusec.Progress {}: {} of {}>", self.stage, self.done, self.total);
      });
  nb::class_<Options>(m, "Options")
      .def(nb::init<>())
      .def_rw("strategy", &Options::strategy)
      .def_rw("arch", &Options::arch)
      .def_rw("target", &Options::target)
      .def_rw("symbol", &Options::symbols)
      .def_rw("max_fused_ops", &Options::max_fused_ops)
      .def_rw("max_args", &Options::max_args)
      .def_rw("no_fuse", &Options::no_fuse_ops)
      .def_rw("no_fuse_node", &Options::no_fuse_nodes)
      .def_rw("patterns", &Options::patterns)
      .def_rw("pattern_files", &Options::pattern_files)
      .def_rw("disable_pattern", &Options::disabled_patterns)
      .def_rw("disable_pass", &Options::disabled_passes)
      .def_rw("gemm", &Options::gemm)
      .def_rw("plan", &Options::plan)
      .def_rw("plan_deadline", &Options::plan_deadline)
      .def_rw("tuning_db", &Options::tuning_file)
      .def_rw("round_intermediates", &Options::round_intermediates)
      .def_rw("precise_math", &Options::precise_math)
      .def_rw("allow_tf32", &Options::allow_tf32)
      .def_rw("allow_atomics", &Options::allow_atomics)
      .def_rw("ptx", &Options::ptx)
      .def_rw("jobs", &Options::jobs)
      .def_rw("cache_dir", &Options::cache_directory)
      .def_rw("cache_size", &Options::cache_bytes)
      .def_rw("nvrtc_library", &Options::nvrtc_library)
      .def_rw("progress", &Options::progress, nb::for_setter("progress"_a.none()))
      .def_rw("resources", &Options::resources);
}

}  // namespace fusec::python
