// The public API (fusec/fusec.h) over the internal graph and pipeline.
#include <filesystem>
#include <system_error>
#include <thread>

#include "analysis/annotate.h"
#include "boundary.h"
#include "codegen/host/manifest.h"
#include "codegen/nvrtc/compile_cache.h"
#include "compilation_details.h"
#include "fusec/fusec.h"
#include "ir/budget.h"
#include "ir/mapped_file.h"
#include "ir/read.h"
#include "ir/spelling.h"
#include "ir/text.h"
#include "ir/write.h"
#include "model_cost.h"
#include "passes.h"
#include "pattern_options.h"
#include "pipeline_options.h"
#include "runtime/reference/reference.h"
#include "transforms/plan_file.h"
#include "type_info.h"

namespace fusec {
namespace {

// Reads a file again, for an error about it; "" if it cannot be read twice.
std::string text_again(const std::string& path) {
  std::error_code none;
  if (!std::filesystem::is_regular_file(path, none)) return "";
  try {
    return read_text_file(path);
  } catch (const Error&) {
    return "";
  }
}

// The model's graph with the user's values as hints of its symbols.
Graph hinted(const Model& model, const Options& options) {
  Graph graph = model.graph();
  set_hints(graph, options.symbols);
  return graph;
}

std::vector<Group> groups_of(const PlannedModel& planned) {
  std::vector<Group> groups;
  for (const FusionGroup& group : planned.plan.groups) {
    count_step();
    if (group.prepared) continue;
    Group g{.name = group.name,
            .nodes = {},
            .pattern = std::string(name(group.pattern)),
            .claimed_by = "",
            .attributes = {}};
    if (group.claimed_by != kNone) {
      g.claimed_by = planned.plan.claims[group.claimed_by].pattern;
      g.attributes = planned.plan.claims[group.claimed_by].attributes;
    }
    for (const NodeId n : group.nodes) g.nodes.push_back(planned.graph.nodes[n].name);
    groups.push_back(std::move(g));
  }
  return groups;
}

// A Compilation must not call the caller's functions later.
PipelineOptions without_callbacks(PipelineOptions options) {
  options.progress = nullptr;
  options.compile.progress = nullptr;
  return options;
}

Compilation compiled(const Model& model, const Options& options) {
  const std::shared_ptr<const Nvrtc> nvrtc = options.ptx ? Nvrtc::require(options.nvrtc_library) : nullptr;
  Pipeline pipeline(pipeline_options(options));
  Graph graph = hinted(model, options);
  PlannedModel planned = pipeline.plan(graph);
  const std::size_t units =
      options.jobs > 0 ? static_cast<std::size_t>(options.jobs) : std::max(1u, std::thread::hardware_concurrency());
  GeneratedModel generated = pipeline.generate(planned, units);
  Compilation result;
  result.diagnostics = generated.launch.warnings;
  result.identifier = generated.launch.identifier;
  result.source = generated.file.text;
  result.manifest =
      manifest(planned.source_graph(), planned.source_plan(), generated.launch, pipeline.options().target);
  result.partition = partition_report(planned.graph, planned.plan, planned.report);
  result.plan = write_plan(planned.graph, planned.plan, planned.left_out);
  if (options.report) result.report = cost_report_of(graph, planned, &generated.launch, pipeline.options());
  result.groups = groups_of(planned);
  std::vector<std::shared_ptr<const std::string>> ptx, cubin;
  if (options.ptx) {
    for (CompiledModule& module : pipeline.compile(*nvrtc, generated)) {
      count_step();
      if (!module.log.empty()) result.diagnostics.push_back(module.log);
      ptx.push_back(std::make_shared<const std::string>(std::move(module.ptx)));
      cubin.push_back(std::make_shared<const std::string>(std::move(module.cubin)));
    }
  }
  for (std::size_t k = 0; k < generated.launch.kernels.size(); ++k) {
    count_step();
    const KernelSource& kernel = generated.launch.kernels[k];
    KernelInfo info{kernel.name, name(kernel.schedule), kernel.text, nullptr, nullptr};
    if (options.ptx) {
      info.ptx = ptx[generated.file.unit_of[k]];
      info.cubin = cubin[generated.file.unit_of[k]];
    }
    result.kernels.push_back(std::move(info));
  }
  generated.file.text.clear();
  generated.file.units.clear();
  result.details =
      std::make_shared<const CompilationDetails>(CompilationDetails{.graph = std::move(graph),
                                                                    .planned = std::move(planned),
                                                                    .generated = std::move(generated),
                                                                    .options = without_callbacks(pipeline.options()),
                                                                    .nvrtc = nvrtc,
                                                                    .times = pipeline.times()});
  return result;
}

}  // namespace

Model Model::read(const std::string& path, const Registry& registry, const ResourceLimits& resources) {
  return at_boundary(resources, [&]() -> Model {
    try {
      return Model(std::make_shared<const Graph>(read_model(path, registry.table(), Limits(resources.sizes))));
    } catch (const Error& error) {
      if (error.parts().file != path || error.parts().pointer.empty()) throw;
      throw with_place(error, text_again(path));
    }
  });
}

Model Model::parse(std::string_view json, const std::string& directory, const Registry& registry,
                   const ResourceLimits& resources) {
  return at_boundary(resources, [&]() -> Model {
    try {
      return Model(std::make_shared<const Graph>(
          read_model_text(json, "model", directory, registry.table(), Limits(resources.sizes))));
    } catch (const Error& error) {
      if (error.parts().file != "model") throw;
      throw with_place(error, json);
    }
  });
}

std::string Model::name() const {
  return graph_->name;
}

std::string Model::directory() const {
  return graph_->directory;
}

std::vector<ModelTensor> Model::inputs() const {
  std::vector<ModelTensor> list;
  for (const ValueId v : graph_->inputs) list.push_back({graph_->value(v).name, type_info(*graph_, v)});
  return list;
}

std::vector<ModelTensor> Model::constants() const {
  std::vector<ModelTensor> list;
  for (const Constant& c : graph_->constants)
    list.push_back({.name = graph_->value(c.value).name,
                    .type = type_info(*graph_, c.value),
                    .is_known = c.data != nullptr || !c.safetensors_file.empty()});
  return list;
}

std::vector<ModelTensor> Model::outputs() const {
  std::vector<ModelTensor> list;
  for (const ValueId v : graph_->outputs) list.push_back({graph_->value(v).name, type_info(*graph_, v)});
  return list;
}

std::vector<std::byte> Model::constant_bytes(const std::string& name) const {
  for (const Constant& c : graph_->constants)
    if (graph_->value(c.value).name == name && (c.data || !c.safetensors_file.empty()))
      return at_boundary([&] { return ConstantReader(*graph_).read(c).bytes; });
  throw Error(ErrorKind::kUsage,
              {.what = "the model has no elements of a constant of this name", .found = in_quotes(name)});
}

std::vector<std::string> Model::node_names() const {
  std::vector<std::string> names;
  for (const Node& node : graph_->nodes) names.push_back(node.name);
  return names;
}

std::string Model::to_json() const {
  return model_text(*graph_);
}
std::string Model::to_text() const {
  return graph_text(*graph_);
}

Compilation compile(const Model& model, const Options& options) {
  return at_boundary(options.resources, [&] { return compiled(model, options); });
}

std::vector<PassInfo> passes_in_order() {
  std::vector<PassInfo> list;
  for (const Pass& pass : passes())
    list.push_back({std::string(pass.name), std::string(pass.summary), pass.part == CompilationPart::kGraph});
  return list;
}

std::vector<PatternInfo> patterns_in_order(const Options& options) {
  return at_boundary(options.resources, [&] {
    std::vector<PatternInfo> list;
    for (const auto& p : pattern_list(options))
      list.push_back({p->name, p->summary, p->match_text, p->becomes_text, p->priority});
    return list;
  });
}

Model run_pass(const Model& model, std::string_view name, const Options& options) {
  const Pass& pass = find_pass(name);
  if (pass.part != CompilationPart::kGraph)
    throw Error(ErrorKind::kUsage, {.what = "the pass makes no graph",
                                    .found = in_quotes(name),
                                    .expected = "a pass from graph to graph",
                                    .hint = "annotate_patterns, partition and compile have the results of the others"});
  return at_boundary(options.resources, [&] {
    return Model(std::make_shared<const Graph>(Pipeline(pipeline_options(options)).rewritten(model.graph(), pass)));
  });
}

std::vector<std::string> annotate_patterns(const Model& model, const std::string& strategy) {
  return at_boundary([&] {
    std::vector<std::string> kinds;
    for (const OpPattern kind :
         annotate(model.graph(), pattern_source(pipeline_options({.strategy = strategy}).strategy)))
      kinds.emplace_back(name(kind));
    return kinds;
  });
}

std::vector<Group> partition(const Model& model, const Options& options) {
  return at_boundary(options.resources,
                     [&] { return groups_of(Pipeline(pipeline_options(options)).plan(hinted(model, options))); });
}

std::string_view version() {
  return FUSEC_VERSION;
}

std::string users_cache_directory() {
  const std::string folder = default_cache_directory();
  return why_not_private(folder).empty() ? folder : "";
}

}  // namespace fusec
