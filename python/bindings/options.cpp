// What a compilation is asked for, under the names of the command line.
#include "bindings.h"

namespace fusec::python {

void bind_options(nb::module_& m) {
  nb::class_<MatchedValue>(m, "MatchedValue", "A value that a pattern found.")
      .def_ro("name", &MatchedValue::name, "In the pattern.")
      .def_ro("value", &MatchedValue::value, "In the model; for a number, its text.")
      .def_ro("type", &MatchedValue::type)
      .def_ro("producer", &MatchedValue::producer)
      .def_ro("users", &MatchedValue::users)
      .def_ro("is_output", &MatchedValue::is_output);
  nb::class_<MatchedPattern>(m, "MatchedPattern", "What a pattern found.")
      .def_ro("pattern", &MatchedPattern::pattern)
      .def_ro("root", &MatchedPattern::root)
      .def_ro("nodes", &MatchedPattern::nodes)
      .def_ro("values", &MatchedPattern::values);
  nb::class_<PatternText>(m, "Pattern", "Fusion patterns as a pattern file has them, and what their text cannot say.")
      .def(
          "__init__",
          [](PatternText* self, std::string text, std::function<std::string(const MatchedPattern&)> check,
             std::function<std::vector<std::pair<std::string, std::string>>(const MatchedPattern&)> attributes) {
            new (self) PatternText{std::move(text), std::move(check), std::move(attributes)};
          },
          "text"_a, "check"_a.none() = nb::none(), "attributes"_a.none() = nb::none(),
          "`check` says \"\" for yes, else why not; `attributes` are those of the group.")
      .def_ro("text", &PatternText::text);
  nb::class_<Progress>(m, "Progress", "How far a compilation is.")
      .def_prop_ro("stage", [](const Progress& p) { return std::string(p.stage); })
      .def_ro("done", &Progress::done, "Pieces of source that NVRTC compiled.")
      .def_ro("total", &Progress::total, "Pieces in all; 0 in other stages.");
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
