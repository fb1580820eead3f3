#include "transforms/patterns/mutations.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "fusec/error.h"
#include "ir/read.h"
#include "support/short_model.h"

namespace fusec::test {
namespace {

using Json = nlohmann::json;

bool is_number_word(const std::string& word) {
  return std::isdigit(static_cast<unsigned char>(word[0])) || (word[0] == '-' && word.size() > 1);
}

Json operand_json(const std::string& word) {
  if (word == "null") return nullptr;
  return is_number_word(word) ? Json::parse(word) : Json(word);
}

Json tensor_json(const std::string& line) {
  const std::vector<std::string> words = split_text(line, ' ');
  Json tensor = {{"name", words[0]}, {"dtype", words[1]}, {"shape", Json::array()}};
  std::size_t count = 1;
  for (const std::string& extent : split_text(words[2], ',')) {
    tensor["shape"].push_back(std::stoll(extent));
    count *= static_cast<std::size_t>(std::stoll(extent));
  }
  if (words.size() > 3 && words[3] == "=") tensor["data"] = Json::parse(line.substr(line.find('=') + 1));
  if (words.size() > 3 && words[3] == "filled")
    for (std::size_t i = 0; i < count; ++i) tensor["data"].push_back(0.25 + 0.125 * static_cast<double>(i * 7 % 11));
  return tensor;
}

ShortNode node_of(const std::string& line) {
  const std::size_t brace = line.find('{');
  const std::vector<std::string> words = split_text(line.substr(0, brace), ' ');  // name = op operands
  return {words[0], words[2], {words.begin() + 3, words.end()}, brace == std::string::npos ? "" : line.substr(brace)};
}

std::string type_text(const TensorType& type) {
  std::string text(name(type.dtype));
  for (std::size_t d = 0; d < type.rank(); ++d)
    text += (d == 0 ? " " : ",") + std::to_string(type.shape[d].as_constant().value_or(1));
  return text;
}

class Mutating {
 public:
  Mutating(const ShortModel& model, const Graph& graph, const PatternMatch& match)
      : model_(model), graph_(graph), match_(match) {}

  std::vector<Mutation> run() {
    for (const NodeId n : match_.nodes) {
      if (n != match_.root) inner_value(n);
      axes(n);
    }
    all_axes();
    gate_twice();
    for (const PatternCondition& condition : match_.pattern->conditions)
      if (condition.negated && condition.predicate == "quantized") quantized(condition.arguments[0].name);
    return std::move(mutations_);
  }

 private:
  bool is_inside(const std::string& node) const {
    const NodeId n = graph_.find_node(node);
    return n != kNone && std::ranges::binary_search(match_.nodes, n);
  }
  std::size_t place(NodeId n) const {
    const auto it = std::ranges::find(model_.nodes, graph_.nodes[n].name, &ShortNode::name);
    return static_cast<std::size_t>(it - model_.nodes.begin());
  }
  void keep(std::string name, ShortModel model) {
    try {
      graph_of(model);
      mutations_.push_back({std::move(name), std::move(model)});
    } catch (const Error&) {  // another dtype or axis than the op takes
    }
  }
  // Readers inside of the match read another value.
  void replace_inside(ShortModel& model, const std::string& from, const std::string& to) const {
    for (ShortNode& node : model.nodes)
      if (is_inside(node.name)) std::ranges::replace(node.operands, from, to);
  }

  void inner_value(NodeId n) {
    const std::string& v = graph_.nodes[n].name;
    const TensorType& type = graph_.tensor(graph_.nodes[n].first_output);
    ShortModel output = model_;
    output.outputs.push_back(v);
    keep("output " + v, std::move(output));
    ShortModel use = model_;
    use.nodes.push_back({"probe", type.dtype == DType::kBool ? "logical_not" : "neg", {v}, ""});
    use.outputs.push_back("probe");
    keep("use " + v, std::move(use));
    if (!is_float(type.dtype)) return;
    lossy_cast(n, v, type.dtype);
    if (type.rank() > 0) circles(n, v, type);
  }

  void lossy_cast(NodeId n, const std::string& v, DType dtype) {
    const DType result = graph_.tensor(graph_.nodes[match_.root].first_output).dtype;
    const DType narrow =
        bits(dtype) == 16 ? DType::kFloat8E4M3FN : (result == DType::kFloat16 ? DType::kBFloat16 : DType::kFloat16);
    ShortModel model = model_;
    replace_inside(model, v, "wide_again");
    const auto at = model.nodes.begin() + static_cast<std::ptrdiff_t>(place(n)) + 1;
    const auto cast_to = [](DType to) { return Json{{"dtype", std::string(name(to))}}.dump(); };
    model.nodes.insert(
        at, {{"narrowed", "cast", {v}, cast_to(narrow)}, {"wide_again", "cast", {"narrowed"}, cast_to(dtype)}});
    keep("cast " + v, std::move(model));
  }

  // What a later node of the match reads from outside is made of an inner value, by a node that stays outside.
  void circles(NodeId n, const std::string& v, const TensorType& type) {
    for (const NodeId later : match_.nodes) {
      if (later <= n) continue;
      const Node& node = graph_.nodes[later];
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        const ValueId operand = node.inputs[i];
        if (operand == kNone || graph_.value(operand).kind == Value::Kind::kNumber) continue;
        const NodeId producer = graph_.value(operand).producer;
        if (producer != kNone && std::ranges::binary_search(match_.nodes, producer)) continue;
        if (graph_.tensor(operand) != type) continue;
        ShortModel model = model_;
        const std::size_t at = place(later);
        model.nodes[at].operands[i] = "loop";
        model.nodes.insert(model.nodes.begin() + static_cast<std::ptrdiff_t>(at),
                           {"loop", "cumsum", {v}, "{\"dim\": 0}"});
        keep("circle " + v + " " + node.name + "." + std::to_string(i), std::move(model));
      }
    }
  }

  void axes(NodeId n) {
    const ShortNode& node = model_.nodes[place(n)];
    if (node.attributes.empty()) return;
    const auto rank = static_cast<std::int64_t>(graph_.tensor(graph_.nodes[n].first_output).rank());
    const Json attributes = Json::parse(node.attributes);
    for (const char* attribute : {"dim", "dim0"}) {
      if (!attributes.contains(attribute)) continue;
      const Json& given = attributes[attribute];
      if (given.is_array() && given.size() != 1) continue;
      const std::int64_t now = given.is_array() ? given[0].get<std::int64_t>() : given.get<std::int64_t>();
      for (std::int64_t d = 0; d < rank; ++d) {
        if (d == (now < 0 ? now + rank : now)) continue;
        ShortModel model = model_;
        Json changed = attributes;
        changed[attribute] = given.is_array() ? Json::array({d}) : Json(d);
        model.nodes[place(n)].attributes = changed.dump();
        keep("axis " + node.name + " " + std::to_string(d), std::move(model));
      }
    }
  }

  // All nodes of the match that name one dimension name another.
  void all_axes() {
    std::map<std::int64_t, std::vector<std::size_t>> by_dim;
    std::int64_t most = 0;
    for (const NodeId n : match_.nodes) {
      const ShortNode& node = model_.nodes[place(n)];
      const Json attributes = node.attributes.empty() ? Json::object() : Json::parse(node.attributes);
      if (attributes.contains("dim") && attributes["dim"].is_number())
        by_dim[attributes["dim"].get<std::int64_t>()].push_back(place(n));
      most = std::max(most, static_cast<std::int64_t>(graph_.tensor(graph_.nodes[n].first_output).rank()));
    }
    for (const auto& [now, places] : by_dim)
      for (std::int64_t d = 0; d < most && places.size() > 1; ++d) {
        if (d == (now < 0 ? now + most : now)) continue;
        ShortModel model = model_;
        for (const std::size_t at : places) {
          Json changed = Json::parse(model.nodes[at].attributes);
          changed["dim"] = d;
          model.nodes[at].attributes = changed.dump();
        }
        keep("axes " + std::to_string(now) + " " + std::to_string(d), std::move(model));
      }
  }

  ValueId named(const char* wanted) const {
    const auto it = std::ranges::find(match_.pattern->names, wanted);
    if (it == match_.pattern->names.end()) return kNone;
    return match_.values[static_cast<std::size_t>(it - match_.pattern->names.begin())];
  }

  void gate_twice() {
    const ValueId gate = named("gate"), up = named("up");
    if (gate == kNone || up == kNone) return;
    ShortModel model = model_;
    replace_inside(model, graph_.value(up).name, graph_.value(gate).name);
    keep("gate twice", std::move(model));
  }

  void quantized(std::uint32_t number) {
    const ValueId v = match_.values[number];
    if (v == kNone || graph_.value(v).producer != kNone) return;
    const std::string& value = graph_.value(v).name;
    TensorType type = graph_.tensor(v);
    ShortModel model = model_;
    const std::string dtype(name(type.dtype));
    type.dtype = DType::kInt8;
    model.inputs.push_back("stored " + type_text(type));
    model.inputs.push_back("scale float32 1");
    replace_inside(model, value, "dequantized");
    model.nodes.insert(model.nodes.begin(),
                       {"dequantized", "dequantize", {"stored", "scale"}, Json{{"dtype", dtype}}.dump()});
    keep("quantized " + value, std::move(model));
  }

  const ShortModel& model_;
  const Graph& graph_;
  const PatternMatch& match_;
  std::vector<Mutation> mutations_;
};

}  // namespace

Graph graph_of(const ShortModel& model) {
  Json json = {{"fusec", 1}, {"inputs", Json::array()}, {"constants", Json::array()}, {"nodes", Json::array()}};
  for (const std::string& line : model.inputs)
    json[split_text(line, ' ').size() > 3 ? "constants" : "inputs"].push_back(tensor_json(line));
  for (const ShortNode& node : model.nodes) {
    Json entry = {{"name", node.name}, {"op", node.op}, {"inputs", Json::array()}};
    for (const std::string& operand : node.operands) entry["inputs"].push_back(operand_json(operand));
    if (!node.attributes.empty()) entry["attrs"] = Json::parse(node.attributes);
    json["nodes"].push_back(std::move(entry));
  }
  json["outputs"] = model.outputs;
  return read_model_text(json.dump(), "example.json", ".");
}

std::map<std::string, std::vector<PatternExample>> pattern_examples() {
  std::map<std::string, std::vector<PatternExample>> examples;
  for (const auto& entry : std::filesystem::directory_iterator(FUSEC_TESTS_DIR "/transforms/patterns/examples")) {
    std::ifstream file(entry.path());
    PatternExample* example = nullptr;
    for (std::string line; std::getline(file, line);) {
      if (line.empty() || line[0] == '#') continue;
      const std::vector<std::string> words = split_text(line, ' ');
      if (words[0] == "pattern") {
        example = &examples[words[1]].emplace_back();
      } else if (words[0] == "return") {
        example->model.outputs.assign(words.begin() + 1, words.end());
      } else if (words[0] == "still") {
        for (const std::string& name : split_text(line.substr(6), ',')) example->still.insert(name);
      } else if (words[1] == "=") {
        example->model.nodes.push_back(node_of(line));
      } else {
        example->model.inputs.push_back(line);
      }
    }
  }
  return examples;
}

std::vector<Mutation> mutations_of(const ShortModel& model, const Graph& graph, const PatternMatch& match) {
  return Mutating(model, graph, match).run();
}

}  // namespace fusec::test
