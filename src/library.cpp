// The public API over the internal graph and pipeline.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "analysis/annotate.h"
#include "codegen/manifest.h"
#include "fusec/fusec.h"
#include "ir/ops/common.h"
#include "ir/parse_dim.h"
#include "ir/read.h"
#include "ir/scalar_expression.h"
#include "ir/spelling.h"
#include "ir/text.h"
#include "ir/write.h"
#include "passes.h"
#include "pipeline_options.h"
#include "transforms/plan_file.h"

namespace fusec {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const Dimension& dimension) {
  return std::visit([](const auto& v) { return Json(v); }, dimension.value);
}

Json json_of(const std::vector<Dimension>& shape) {
  Json list = Json::array();
  for (const Dimension& d : shape) list.push_back(json_of(d));
  return list;
}

TensorInfo info_of(const TensorType& type, const std::vector<Symbol>& symbols) {
  TensorInfo tensor{std::string(name(type.dtype)), {}};
  for (const Dim& dim : type.shape) {
    if (const auto c = dim.as_constant())
      tensor.shape.emplace_back(*c);
    else
      tensor.shape.emplace_back(to_string(dim, symbols));
  }
  return tensor;
}

std::vector<ValueType> inferred(const OpDescription& description, const OpCall& call) {
  if (!description.infer) {
    std::optional<TensorType> result;
    for (std::size_t i = 0; i < call.operands.size(); ++i) {
      if (call.operands[i].kind != Operand::Kind::kTensor) continue;
      if (!result)
        result = call.tensor(i);
      else
        result->shape = ops::broadcast_shapes(call, result->shape, call.tensor(i).shape, ops::input_place(i));
    }
    if (!result) throw OpError{"inputs", "operands of " + description.name, "no tensor", "at least one", ""};
    return {*result};
  }
  std::vector<TensorInfo> operands;
  for (const Operand& o : call.operands) operands.push_back(info_of(o.type.tensor, call.symbols));
  const TensorInfo result = description.infer(operands);
  TensorType type;
  const auto dtype = parse_dtype(result.dtype);
  if (!dtype) throw OpError{"", "the dtype inferred for " + description.name, result.dtype, "a dtype", ""};
  type.dtype = *dtype;
  for (const Dimension& d : result.shape) {
    if (const auto* extent = std::get_if<std::int64_t>(&d.value))
      type.shape.emplace_back(*extent);
    else
      type.shape.push_back(parse_dim(std::get<std::string>(d.value), SymbolNames(call.symbols)));
  }
  return {type};
}

// The model's graph, its symbols at the values that the user gives them.
Graph hinted(const Model& model, const Options& options) {
  Graph graph = model.graph();
  set_hints(graph, options.symbols);
  return graph;
}

std::vector<Group> groups_of(const PlannedModel& planned) {
  std::vector<Group> groups;
  for (const FusionGroup& group : planned.plan.groups) {
    Group g{group.name, {}, std::string(name(group.pattern))};
    for (const NodeId n : group.nodes) g.nodes.push_back(planned.graph.nodes[n].name);
    groups.push_back(std::move(g));
  }
  return groups;
}

}  // namespace

Registry::Registry() : table_(std::make_shared<const OpTable>(OpTable::builtin())) {}

Registry Registry::with(OpDescription description) const {
  const auto pattern = parse_op_pattern(description.pattern);
  if (!pattern)
    throw Error(ErrorKind::kUsage, Error::Parts{.what = "the pattern kind of op " + description.name,
                                                .found = description.pattern,
                                                .expected = "elemwise, broadcast, injective, comm_reduce, "
                                                            "out_ewise_fusable, tuple or opaque"});
  OpDef row;
  row.name = description.name;
  row.family = "registered";
  row.summary = description.expression.empty() ? "a registered launcher" : description.expression;
  row.operands = description.operands;
  row.pattern = *pattern;
  if (description.expression.empty()) {
    row.special = Special::kExternal;
    row.symbol = description.launcher.empty() ? description.name : description.launcher;
  } else {
    row.formula = [text = description.expression](Formula& f, std::size_t, std::span<const IndexExpr> index) -> ExprId {
      return scalar_expression(text, f, index);
    };
  }
  row.infer = [description](const OpCall& call) { return inferred(description, call); };
  Registry result;
  result.table_ = std::make_shared<const OpTable>(table_->with(std::move(row)));
  return result;
}

std::vector<std::string> Registry::op_names() const {
  std::vector<std::string> names;
  for (const OpDef* row : table_->rows()) names.push_back(row->name);
  return names;
}

Model Model::read(const std::string& path, const Registry& registry) {
  return Model(std::make_shared<const Graph>(read_model(path, registry.table())));
}

Model Model::parse(std::string_view json, const std::string& directory, const Registry& registry) {
  return Model(std::make_shared<const Graph>(read_model_text(json, "model", directory, registry.table())));
}

std::string Model::name() const {
  return graph_->name;
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

struct ModelBuilder::State {
  Json model;
  Registry registry;
  std::size_t made_names = 0;
};

ModelBuilder::ModelBuilder(std::string name, Registry registry) : state_(std::make_unique<State>()) {
  state_->registry = std::move(registry);
  state_->model = {{"fusec", 1},
                   {"name", std::move(name)},
                   {"symbols", Json::object()},
                   {"inputs", Json::array()},
                   {"constants", Json::array()},
                   {"nodes", Json::array()},
                   {"outputs", Json::array()}};
}
ModelBuilder::~ModelBuilder() = default;
ModelBuilder::ModelBuilder(ModelBuilder&&) noexcept = default;
ModelBuilder& ModelBuilder::operator=(ModelBuilder&&) noexcept = default;

void ModelBuilder::symbol(const std::string& name, SymbolRange range) {
  Json bounds = {{"min", range.min}, {"max", range.max}, {"multiple_of", range.multiple_of}};
  if (range.hint) bounds["hint"] = *range.hint;
  state_->model["symbols"][name] = std::move(bounds);
}

ModelBuilder::Value ModelBuilder::input(const std::string& name, const std::string& dtype,
                                        std::vector<Dimension> shape) {
  state_->model["inputs"].push_back({{"name", name}, {"dtype", dtype}, {"shape", json_of(shape)}});
  return {name};
}

ModelBuilder::Value ModelBuilder::constant(const std::string& name, const std::string& dtype,
                                           std::vector<Dimension> shape) {
  state_->model["constants"].push_back({{"name", name}, {"dtype", dtype}, {"shape", json_of(shape)}});
  return {name};
}

ModelBuilder::Value ModelBuilder::constant(const std::string& name, const std::string& dtype,
                                           std::vector<Dimension> shape, std::vector<double> data) {
  const bool floats = parse_dtype(dtype) && is_float(*parse_dtype(dtype));
  Json list = Json::array();
  for (const double v : data) {
    if (floats)
      list.push_back(v);
    else
      list.push_back(static_cast<std::int64_t>(v));
  }
  state_->model["constants"].push_back(
      {{"name", name}, {"dtype", dtype}, {"shape", json_of(shape)}, {"data", std::move(list)}});
  return {name};
}

ModelBuilder::Value ModelBuilder::op(const std::string& op, std::vector<Operand> operands,
                                     std::vector<Attribute> attributes, const std::string& name) {
  const std::string node = name.empty() ? op + "_" + std::to_string(state_->made_names++) : name;
  Json inputs = Json::array();
  for (const Operand& operand : operands)
    inputs.push_back(std::visit(
        [](const auto& v) -> Json {
          if constexpr (std::is_same_v<std::decay_t<decltype(v)>, Value>)
            return v.name;
          else
            return v;
        },
        operand));
  Json attrs = Json::object();
  for (const Attribute& a : attributes) attrs[a.name] = std::visit([](const auto& v) { return Json(v); }, a.value);
  state_->model["nodes"].push_back(
      {{"name", node}, {"op", op}, {"inputs", std::move(inputs)}, {"attrs", std::move(attrs)}});
  return {node};
}

std::vector<ModelBuilder::Value> ModelBuilder::op_several(const std::string& op, std::size_t count,
                                                          std::vector<Operand> operands,
                                                          std::vector<Attribute> attributes, const std::string& name) {
  const Value node = this->op(op, std::move(operands), std::move(attributes), name);
  Json outputs = Json::array();
  std::vector<Value> values;
  for (std::size_t i = 0; i < count; ++i) {
    values.push_back({node.name + "." + std::to_string(i)});
    outputs.push_back(values.back().name);
  }
  state_->model["nodes"].back()["outputs"] = std::move(outputs);
  return values;
}

void ModelBuilder::output(const Value& value) {
  state_->model["outputs"].push_back(value.name);
}

Model ModelBuilder::build() const {
  return Model::parse(state_->model.dump(), ".", state_->registry);
}

Compilation compile(const Model& model, const Options& options) {
  Pipeline pipeline(pipeline_options(options));
  PlannedModel planned = pipeline.plan(hinted(model, options));
  const std::size_t units =
      options.jobs > 0 ? static_cast<std::size_t>(options.jobs) : std::max(1u, std::thread::hardware_concurrency());
  const GeneratedModel generated = pipeline.generate(planned, units);
  Compilation result;
  result.identifier = generated.launch.identifier;
  result.source = generated.file.text;
  result.manifest = manifest(planned.graph, planned.plan, generated.launch, pipeline.options().target);
  result.partition = partition_report(planned.graph, planned.plan, planned.report);
  result.plan = write_plan(planned.graph, planned.plan);
  result.groups = groups_of(planned);
  std::vector<std::shared_ptr<const std::string>> ptx, cubin;
  if (options.ptx) {
    std::string why;
    const auto nvrtc = Nvrtc::load(&why);
    if (!nvrtc) throw Error(ErrorKind::kEnvironment, why);
    for (CompiledModule& module : pipeline.compile(*nvrtc, generated)) {
      if (!module.log.empty()) result.diagnostics.push_back(module.log);
      ptx.push_back(std::make_shared<const std::string>(std::move(module.ptx)));
      cubin.push_back(std::make_shared<const std::string>(std::move(module.cubin)));
    }
  }
  for (std::size_t k = 0; k < generated.launch.kernels.size(); ++k) {
    const KernelSource& kernel = generated.launch.kernels[k];
    KernelInfo info{kernel.name, kernel.schedule, kernel.text, nullptr, nullptr};
    if (options.ptx) {
      info.ptx = ptx[generated.file.unit_of[k]];
      info.cubin = cubin[generated.file.unit_of[k]];
    }
    result.kernels.push_back(std::move(info));
  }
  return result;
}

std::vector<PassInfo> passes_in_order() {
  std::vector<PassInfo> list;
  for (const Pass& pass : passes())
    list.push_back({std::string(pass.name), std::string(pass.summary), pass.part == CompilationPart::kGraph});
  return list;
}

Model run_pass(const Model& model, std::string_view name, const Options& options) {
  const Pass& pass = find_pass(name);
  if (pass.part != CompilationPart::kGraph)
    throw Error(ErrorKind::kUsage, {.what = "the pass makes no graph",
                                    .found = in_quotes(name),
                                    .expected = "a pass from graph to graph",
                                    .hint = "annotate_patterns, partition and compile have the results of the others"});
  return Model(std::make_shared<const Graph>(Pipeline(pipeline_options(options)).rewritten(model.graph(), pass)));
}

std::vector<std::string> annotate_patterns(const Model& model, const std::string& strategy) {
  std::vector<std::string> kinds;
  for (const OpPattern kind :
       annotate(model.graph(), pattern_source(pipeline_options({.strategy = strategy}).strategy)))
    kinds.emplace_back(name(kind));
  return kinds;
}

std::vector<Group> partition(const Model& model, const Options& options) {
  return groups_of(Pipeline(pipeline_options(options)).plan(hinted(model, options)));
}

std::string_view version() {
  return FUSEC_VERSION;
}

}  // namespace fusec
