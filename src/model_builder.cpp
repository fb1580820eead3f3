// Models built call by call: gathered as a model file, which the reader of files then checks.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "boundary.h"
#include "fusec/fusec.h"
#include "ir/dtype.h"
#include "ir/spelling.h"

namespace fusec {
namespace {

constexpr std::size_t kMostResults = 1 << 20;  // of one node

using Json = nlohmann::ordered_json;

// JSON that the reader takes for the value: it has no numbers for infinities and NaN.
Json json_of(double v) {
  if (std::isfinite(v)) return v;
  return std::isnan(v) ? "nan" : v > 0 ? "inf" : "-inf";
}

Json json_of(const std::string& text, const std::string& what) {
  return require_utf8(text, what);
}

Json json_of(const std::vector<Dimension>& shape) {
  Json list = Json::array();
  for (const Dimension& d : shape) {
    if (const auto* expression = std::get_if<std::string>(&d.value))
      list.push_back(json_of(*expression, "a dimension"));
    else
      list.push_back(std::get<std::int64_t>(d.value));
  }
  return list;
}

// Of a bool constant, 0 and 1 are the elements; anything else the reader refuses, as it does what an integer dtype
// cannot hold.
Json json_of(const std::vector<double>& data, const std::string& dtype) {
  const bool flags = parse_dtype(dtype) == DType::kBool;
  Json list = Json::array();
  for (const double v : data) list.push_back(flags && (v == 0 || v == 1) ? Json(v == 1) : json_of(v));
  return list;
}

Json json_of(const ModelBuilder::Operand& operand) {
  if (const auto* value = std::get_if<ModelBuilder::Value>(&operand)) return json_of(value->name, "an operand's name");
  if (const auto* number = std::get_if<double>(&operand)) {
    if (!std::isfinite(*number))
      throw Error(ErrorKind::kUsage, {.what = "a number as operand",
                                      .found = fmt::format("{}", *number),
                                      .expected = "a finite number",
                                      .hint = "a constant of shape {} holds infinities and NaN"});
    return *number;
  }
  if (const auto* whole = std::get_if<std::int64_t>(&operand)) return *whole;
  if (const auto* flag = std::get_if<bool>(&operand)) return *flag;
  return nullptr;
}

Json json_of(const ModelBuilder::Attribute& attribute) {
  const std::string what = "attribute " + attribute.name;
  if (const auto* number = std::get_if<double>(&attribute.value)) return json_of(*number);
  if (const auto* text = std::get_if<std::string>(&attribute.value)) return json_of(*text, what);
  if (const auto* texts = std::get_if<std::vector<std::string>>(&attribute.value)) {
    Json list = Json::array();
    for (const std::string& text : *texts) list.push_back(json_of(text, what));
    return list;
  }
  return std::visit([](const auto& v) { return Json(v); }, attribute.value);
}

}  // namespace

struct ModelBuilder::State {
  Json model;
  Registry registry;
  std::set<std::string> names, made;  // of all values and nodes; those of them that no user gave
  std::size_t count_of_made = 0;

  // Of a value or node. Two that a user gave alike are the reader's to refuse, who tells both places.
  std::string given_name(const std::string& name, const std::string& what) {
    require_utf8(name, what);
    if (made.contains(name))
      throw Error(ErrorKind::kUsage, {.what = "duplicate value name",
                                      .found = in_quotes(name),
                                      .expected = "a name of its own: this one was made for a node that was given none",
                                      .hint = "a node's last argument is its name"});
    names.insert(name);
    return name;
  }

  // One that neither a value nor a node has, nor one of results "name.0", "name.1", ...
  std::string made_name(const std::string& op) {
    for (;;) {
      std::string name = op + "_" + std::to_string(count_of_made++);
      const auto result = names.lower_bound(name + ".");
      if (names.contains(name) || (result != names.end() && result->starts_with(name + "."))) continue;
      names.insert(name);
      made.insert(name);
      return name;
    }
  }

  Value declare(const char* list, const std::string& name, const std::string& dtype,
                const std::vector<Dimension>& shape) {
    Json declaration = {{"name", nullptr}, {"dtype", json_of(dtype, "a dtype")}, {"shape", json_of(shape)}};
    declaration["name"] = given_name(name, "a value's name");
    model[list].push_back(std::move(declaration));
    return {name};
  }
};

ModelBuilder::ModelBuilder(std::string name, Registry registry) : state_(std::make_unique<State>()) {
  state_->registry = std::move(registry);
  state_->model = {{"fusec", 1},
                   {"name", json_of(name, "the model's name")},
                   {"symbols", Json::object()},
                   {"inputs", Json::array()},
                   {"constants", Json::array()},
                   {"nodes", Json::array()},
                   {"outputs", Json::array()}};
}
ModelBuilder::~ModelBuilder() = default;
ModelBuilder::ModelBuilder(ModelBuilder&&) noexcept = default;
ModelBuilder& ModelBuilder::operator=(ModelBuilder&&) noexcept = default;

ModelBuilder::State& ModelBuilder::state() const {
  if (!state_)
    throw Error(ErrorKind::kUsage, Error::Parts{.what = "a ModelBuilder that was moved from",
                                                .hint = "its model is in the builder that it was moved to"});
  return *state_;
}

void ModelBuilder::symbol(const std::string& name, SymbolRange range) {
  require_utf8(name, "a symbol's name");
  Json& symbols = state().model["symbols"];
  if (symbols.contains(name))
    throw Error(ErrorKind::kUsage,
                {.what = "duplicate symbol", .found = in_quotes(name), .expected = "each symbol once"});
  Json bounds = {{"min", range.min}, {"max", range.max}, {"multiple_of", range.multiple_of}};
  if (range.hint) bounds["hint"] = *range.hint;
  symbols[name] = std::move(bounds);
}

ModelBuilder::Value ModelBuilder::input(const std::string& name, const std::string& dtype,
                                        std::vector<Dimension> shape) {
  return state().declare("inputs", name, dtype, shape);
}

ModelBuilder::Value ModelBuilder::constant(const std::string& name, const std::string& dtype,
                                           std::vector<Dimension> shape) {
  return state().declare("constants", name, dtype, shape);
}

ModelBuilder::Value ModelBuilder::constant(const std::string& name, const std::string& dtype,
                                           std::vector<Dimension> shape, std::vector<double> data) {
  Value value = state().declare("constants", name, dtype, shape);
  state().model["constants"].back()["data"] = json_of(data, dtype);
  return value;
}

ModelBuilder::Value ModelBuilder::op(const std::string& op, std::vector<Operand> operands,
                                     std::vector<Attribute> attributes, const std::string& name) {
  Json node = {
      {"name", nullptr}, {"op", json_of(op, "an op's name")}, {"inputs", Json::array()}, {"attrs", Json::object()}};
  for (const Operand& operand : operands) node["inputs"].push_back(json_of(operand));
  for (const Attribute& attribute : attributes) {
    Json& value = node["attrs"][require_utf8(attribute.name, "an attribute's name")];
    if (!value.is_null())
      throw Error(ErrorKind::kUsage, {.what = "duplicate attribute of " + op,
                                      .found = in_quotes(attribute.name),
                                      .expected = "each attribute once"});
    value = json_of(attribute);
  }
  std::string own = name.empty() ? state().made_name(op) : state().given_name(name, "a node's name");
  node["name"] = own;
  state().model["nodes"].push_back(std::move(node));
  return {std::move(own)};
}

std::vector<ModelBuilder::Value> ModelBuilder::op_several(const std::string& op, std::size_t count,
                                                          std::vector<Operand> operands,
                                                          std::vector<Attribute> attributes, const std::string& name) {
  if (count > kMostResults)
    throw Error(ErrorKind::kUsage, {.what = "too many results of " + op,
                                    .found = std::to_string(count),
                                    .expected = fmt::format("at most {}", kMostResults)});
  const Value node = this->op(op, std::move(operands), std::move(attributes), name);
  Json outputs = Json::array();
  std::vector<Value> values;
  for (std::size_t i = 0; i < count; ++i) {
    values.push_back({node.name + "." + std::to_string(i)});
    outputs.push_back(values.back().name);
    state().names.insert(values.back().name);
    if (name.empty()) state().made.insert(values.back().name);
  }
  state().model["nodes"].back()["outputs"] = std::move(outputs);
  return values;
}

void ModelBuilder::output(const Value& value) {
  state().model["outputs"].push_back(json_of(value.name, "an output's name"));
}

Model ModelBuilder::build(const ResourceLimits& resources) const {
  return Model::parse(state().model.dump(), ".", state().registry, resources);
}

}  // namespace fusec
