#include "lists.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "ir/attribute_defaults.h"
#include "ir/op.h"
#include "passes.h"
#include "schedule/target/target.h"

namespace fusec {
namespace {

using Json = nlohmann::ordered_json;

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ", ") + part;
  return text;
}

// "dim, keepdim=false, ord?": a required attribute, one with a default, an optional one without.
std::string attribute_names(const OpDef& row) {
  std::vector<std::string> names;
  for (const AttributeSpec& attribute : row.attributes) {
    const std::string_view otherwise = attribute_default(row.name, attribute.name).value;
    const std::string optional = otherwise.empty() ? "?" : fmt::format("={}", otherwise);
    names.push_back(attribute.name + (attribute.required ? "" : optional));
  }
  return joined(names);
}

// The JSON type of an attribute, in the words of docs/ops.md.
const char* type_name(AttributeType type) {
  switch (type) {
    case AttributeType::kFlag:
      return "boolean";
    case AttributeType::kInteger:
      return "integer";
    case AttributeType::kNumber:
      return "number";
    case AttributeType::kText:
      return "string";
    case AttributeType::kDType:
      return "dtype";
    case AttributeType::kScalar:
      return "scalar";
    case AttributeType::kDim:
      return "dimension";
    case AttributeType::kIntegers:
      return "integer or integers";
    case AttributeType::kDims:
    case AttributeType::kDimOrDims:
      return "dimension or dimensions";
    case AttributeType::kIntegersOrText:
      return "integer, integers or string";
    case AttributeType::kScalarOrDim:
      return "scalar or dimension";
  }
  return "";
}

Json attribute_json(const OpDef& row, const AttributeSpec& attribute) {
  Json json = {{"name", attribute.name}, {"type", type_name(attribute.type)}, {"required", attribute.required}};
  if (!attribute.choices.empty()) json["choices"] = attribute.choices;
  if (attribute.required) return json;
  const AttributeDefault otherwise = attribute_default(row.name, attribute.name);
  if (!otherwise.value.empty()) json["default"] = Json::parse(otherwise.value);
  if (!otherwise.meaning.empty()) json["absent"] = otherwise.meaning;
  return json;
}

}  // namespace

std::string list_ops(bool json) {
  const auto rows = OpTable::builtin().rows();
  if (json) {
    Json list = Json::array();
    for (const OpDef* row : rows) {
      Json attributes = Json::array();
      for (const AttributeSpec& a : row->attributes) attributes.push_back(attribute_json(*row, a));
      list.push_back({{"name", row->name},
                      {"family", row->family},
                      {"operands", row->operands},
                      {"attributes", attributes},
                      {"several_results", row->several},
                      {"summary", row->summary}});
    }
    return list.dump(2) + "\n";
  }
  std::string text;
  std::string family;
  for (const OpDef* row : rows) {
    if (row->family != family) text += fmt::format("{}{}\n", text.empty() ? "" : "\n", family = row->family);
    const std::string attributes = attribute_names(*row);
    text += fmt::format("  {:<28} ({}){}  {}\n", row->name, joined(row->operands),
                        attributes.empty() ? "" : " {" + attributes + "}", row->summary);
  }
  return text;
}

std::string list_passes(bool json) {
  if (json) {
    Json list = Json::array();
    for (const Pass& pass : passes()) list.push_back({{"name", pass.name}, {"summary", pass.summary}});
    return list.dump(2) + "\n";
  }
  std::string text;
  for (const Pass& pass : passes()) text += fmt::format("{:<22} {}\n", pass.name, pass.summary);
  return text;
}

std::string list_patterns(const PatternList& patterns, bool json) {
  if (json) {
    Json list = Json::array();
    for (const auto& p : patterns)
      list.push_back({{"name", p->name},
                      {"priority", p->priority},
                      {"summary", p->summary},
                      {"match", p->match_text},
                      {"becomes", p->becomes_text},
                      {"file", p->file.empty() ? Json() : Json(p->file)}});
    return list.dump(2) + "\n";
  }
  std::string text;
  for (const auto& p : patterns)
    text += fmt::format("{:<36} {:>4}  {}\n    {}\n    -> {}\n", p->name, p->priority, p->summary, p->match_text,
                        p->becomes_text);
  return text;
}

std::string list_targets(bool json) {
  if (json) {
    Json list = Json::array();
    for (const Target& t : known_targets())
      list.push_back({{"name", t.name},
                      {"arch", t.arch},
                      {"chip", t.chip},
                      {"multiprocessors", t.multiprocessors},
                      {"shared_bytes_per_block", t.shared_bytes_per_block},
                      {"registers_per_multiprocessor", t.registers_per_multiprocessor},
                      {"max_threads_per_multiprocessor", t.max_threads_per_multiprocessor},
                      {"l2_bytes", t.l2_bytes},
                      {"bandwidth", t.bandwidth},
                      {"float32_rate", t.float32_rate},
                      {"float64_rate", t.float64_rate},
                      {"float16_rate", t.float16_rate},
                      {"float8_rate", t.float8_rate},
                      {"special_rate", t.special_rate},
                      {"latency_seconds", t.latency_seconds},
                      {"launch_seconds", t.launch_seconds},
                      {"source", t.source}});
    return list.dump(2) + "\n";
  }
  std::string text;
  for (const Target& t : known_targets())
    text += fmt::format("{:<8} {:<24} {:>4} SMs {:>6.2f} TB/s  TFLOP/s {:>5.1f} float32 {:>6.0f} float16   {}\n",
                        t.name, t.chip, t.multiprocessors, t.bandwidth / 1e12, t.float32_rate / 1e12,
                        t.float16_rate / 1e12, t.source);
  return text;
}

}  // namespace fusec
