#include "transforms/patterns/gated_layout.h"

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

#include "ir/attribute_defaults.h"
#include "ir/attribute_text.h"

namespace fusec {
namespace {

// A piece and its position in the value that it is cut from. Positions count pieces or elements and only compare.
struct GatedPiece {
  ValueId whole = kNone;
  std::int64_t place = 0;
  bool alternates = false;
};

std::optional<GatedPiece> piece_of(const Graph& graph, ValueId v) {
  const NodeId producer = v == kNone ? kNone : graph.value(v).producer;
  if (producer == kNone) return std::nullopt;
  const Node& node = graph.nodes[producer];
  const Attributes& attributes = graph.attributes(node);
  if (node.op->name == "split" || node.op->name == "chunk")
    return GatedPiece{node.inputs[0], v - node.first_output, false};
  if (node.op->name != "slice" && node.op->name != "select") return std::nullopt;
  GatedPiece piece{.whole = node.inputs[0]};
  const auto rank = static_cast<std::int64_t>(graph.tensor(piece.whole).rank());
  const bool is_slice = node.op->name == "slice";
  if (const AttributeValue* at = attributes.find(is_slice ? "start" : "index")) {
    if (const auto* whole = std::get_if<std::int64_t>(at)) piece.place = *whole;
    if (const auto* dim = std::get_if<Dim>(at)) piece.place = dim->as_constant().value_or(1);
  }
  if (is_slice) {
    piece.alternates = attributes.integer("step", 1) == 2;
  } else {
    const std::int64_t dim = attributes.integer("dim", 0);
    piece.alternates = dim == -1 || dim == rank - 1;
  }
  return piece;
}

std::optional<double> as_number(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

// An attribute with its default value says as much as none: 1.0 for "1".
bool is_default(std::string_view op, std::string_view attribute, std::string_view text) {
  const std::string_view value = attribute_default(op, attribute).value;
  return text == value || (as_number(text) && as_number(text) == as_number(value));
}

}  // namespace

std::vector<std::pair<std::string, std::string>> gated_layout(const PatternCheckContext& context) {
  const Graph& graph = context.graph();
  std::vector<std::pair<std::string, std::string>> result;
  for (const NodeId n : context.match.nodes) {
    if (graph.nodes[n].op->family != "gated") continue;
    for (const Attribute& attribute : graph.attributes(graph.nodes[n]).list()) {
      std::string text = json_text(attribute.value, graph.symbols);
      if (is_default(graph.nodes[n].op->name, attribute.name, text)) continue;
      if (text.starts_with('"')) text = text.substr(1, text.size() - 2);
      result.emplace_back(attribute.name, std::move(text));
    }
  }
  const auto gate = piece_of(graph, context.value("gate")), up = piece_of(graph, context.value("up"));
  if (!gate || !up || gate->whole != up->whole) return result;
  if (gate->place > up->place) result.emplace_back("swapped", "true");
  if (gate->alternates && up->alternates) result.emplace_back("interleaved", "true");
  return result;
}

}  // namespace fusec
