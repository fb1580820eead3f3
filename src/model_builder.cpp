// ModelBuilder of the public API: writes the calls as the JSON of a model file, and lets the reader of files check it.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <set>
#include <type_traits>

#include "boundary.h"
#include "fusec/fusec.h"
#include "ir/dtype.h"
#include "ir/json_writer.h"
#include "ir/spelling.h"

namespace fusec {
namespace {

constexpr std::size_t kMostResults = 1 << 20;  // results of one node

// The reader accepts "nan", "inf" and "-inf", since JSON has no such numbers.
void write(JsonWriter& out, double v) {
  if (std::isfinite(v)) return out.value(v);
  out.value(std::isnan(v) ? "nan" : v > 0 ? "inf" : "-inf");
}

void write(JsonWriter& out, const std::vector<Dimension>& shape) {
  out.array_of(shape, [&](const Dimension& d) {
    if (const auto* expression = std::get_if<std::string>(&d.value))
      out.value(require_utf8(*expression, "a dimension"));
    else
      out.value(std::get<std::int64_t>(d.value));
  });
}

void write(JsonWriter& out, const SymbolRange& range) {
  out.object([&] {
    out.member("min", range.min);
    out.member("max", range.max);
    out.member("multiple_of", range.multiple_of);
    if (range.hint) out.member("hint", *range.hint);
  });
}

std::string result_name(const std::string& node, std::size_t i) {
  return node + "." + std::to_string(i);
}

// A bool constant takes 0 and 1. The reader refuses other values, and values that an integer dtype cannot hold.
template <typename T>
void write(JsonWriter& out, const std::vector<T>& data, const std::string& dtype) {
  const bool flags = parse_dtype(dtype) == DType::kBool;
  out.array_of(data, [&](T v) {
    if (flags && (v == 0 || v == 1)) return out.value(v == 1);
    if constexpr (std::is_same_v<T, double>)
      write(out, v);
    else
      out.value(v);
  });
}

// A number of its own for each builder.
std::uint64_t next_number() {
  static std::atomic<std::uint64_t> last = 0;
  return ++last;
}

void write(JsonWriter& out, const ModelBuilder::Operand& operand) {
  if (const auto* value = std::get_if<ModelBuilder::Value>(&operand))
    return out.value(require_utf8(value->name, "an operand's name"));
  if (const auto* number = std::get_if<double>(&operand)) {
    if (!std::isfinite(*number))
      throw Error(ErrorKind::kUsage, {.what = "a number as operand",
                                      .found = fmt::format("{}", *number),
                                      .expected = "a finite number",
                                      .hint = "a constant of shape {} holds infinities and NaN"});
    return out.value(*number);
  }
  if (const auto* whole = std::get_if<std::int64_t>(&operand)) return out.value(*whole);
  if (const auto* flag = std::get_if<bool>(&operand)) return out.value(*flag);
  out.null();
}

void write(JsonWriter& out, const ModelBuilder::Attribute& attribute) {
  const auto element = [&](const auto& v) {
    using V = std::decay_t<decltype(v)>;
    if constexpr (std::is_same_v<V, double>)
      write(out, v);
    else if constexpr (std::is_same_v<V, std::string>)
      out.value(require_utf8(v, "attribute " + attribute.name));
    else
      out.value(v);
  };
  std::visit(
      [&](const auto& v) {
        using V = std::decay_t<decltype(v)>;
        if constexpr (requires { v.size(); } && !std::is_same_v<V, std::string>)
          out.array_of(v, element);
        else
          element(v);
      },
      attribute.value);
}

}  // namespace

struct ModelBuilder::State {
  std::string model_name;
  Registry registry;
  std::vector<std::pair<std::string, SymbolRange>> symbols;
  std::vector<std::string> inputs, constants, nodes, outputs;  // JSON
  std::set<std::string> names, made;  // all names of values and nodes; the generated ones among them
  std::size_t count_of_made = 0;
  std::uint64_t number = next_number();

  // The names of two builders' values may be equal: by name alone a value of another builder would be mistaken.
  void require_own(const Value& value) const {
    if (value.builder != 0 && value.builder != number)
      throw Error(ErrorKind::kUsage, {.what = "a value of another builder",
                                      .found = in_quotes(value.name),
                                      .expected = "a value that this ModelBuilder returned"});
  }

  // Registers a user's name of a value or node. The reader refuses duplicates of users' names, with both places.
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

  // Generates a name that no value or node has, and no results "name.0", "name.1", ...
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

  template <typename T = double>
  Value declare(std::vector<std::string>& list, const std::string& name, const std::string& dtype,
                const std::vector<Dimension>& shape, const std::vector<T>* data = nullptr) {
    JsonWriter out;
    out.object([&] {
      out.member("dtype", require_utf8(dtype, "a dtype"));
      out.member("shape", [&] { write(out, shape); });
      if (data) out.member("data", [&] { write(out, *data, dtype); });
      out.member("name", given_name(name, "a value's name"));
    });
    list.push_back(std::move(out).text());
    return {name, number};
  }

  std::string add_node(const std::string& op, std::size_t results, const std::vector<Operand>& operands,
                       const std::vector<Attribute>& attributes, const std::string& name);
};

ModelBuilder::ModelBuilder(std::string name, Registry registry) : state_(std::make_unique<State>()) {
  state_->registry = std::move(registry);
  state_->model_name = require_utf8(name, "the model's name");
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

std::string ModelBuilder::name() const {
  return state().model_name;
}

void ModelBuilder::symbol(const std::string& name, SymbolRange range) {
  require_utf8(name, "a symbol's name");
  const auto is_it = [&](const auto& symbol) { return symbol.first == name; };
  if (std::ranges::any_of(state().symbols, is_it))
    throw Error(ErrorKind::kUsage,
                {.what = "duplicate symbol", .found = in_quotes(name), .expected = "each symbol once"});
  state().symbols.emplace_back(name, range);
}

ModelBuilder::Value ModelBuilder::input(const std::string& name, const std::string& dtype,
                                        std::vector<Dimension> shape) {
  return state().declare(state().inputs, name, dtype, shape);
}

ModelBuilder::Value ModelBuilder::constant(const std::string& name, const std::string& dtype,
                                           std::vector<Dimension> shape) {
  return state().declare(state().constants, name, dtype, shape);
}

ModelBuilder::Value ModelBuilder::constant(const std::string& name, const std::string& dtype,
                                           std::vector<Dimension> shape, std::vector<double> data) {
  return state().declare(state().constants, name, dtype, shape, &data);
}

template <typename T>
requires(std::same_as<T, std::int64_t> || std::same_as<T, std::uint64_t>)
ModelBuilder::Value ModelBuilder::constant(const std::string& name, const std::string& dtype,
                                           std::vector<Dimension> shape, const std::vector<T>& data) {
  return state().declare(state().constants, name, dtype, shape, &data);
}
template ModelBuilder::Value ModelBuilder::constant(const std::string&, const std::string&, std::vector<Dimension>,
                                                    const std::vector<std::int64_t>&);
template ModelBuilder::Value ModelBuilder::constant(const std::string&, const std::string&, std::vector<Dimension>,
                                                    const std::vector<std::uint64_t>&);

// Writes a node, with names for its results if there are several. Returns the node's name.
std::string ModelBuilder::State::add_node(const std::string& op, std::size_t results,
                                          const std::vector<Operand>& operands,
                                          const std::vector<Attribute>& attributes, const std::string& name) {
  for (const Operand& operand : operands)
    if (const auto* value = std::get_if<Value>(&operand)) require_own(*value);
  std::string own;
  JsonWriter out;
  out.object([&] {
    out.member("op", require_utf8(op, "an op's name"));
    out.member("inputs", [&] { out.array_of(operands, [&](const Operand& operand) { write(out, operand); }); });
    std::set<std::string> written;
    out.member("attrs", [&] {
      out.object([&] {
        for (const Attribute& attribute : attributes) {
          if (!written.insert(require_utf8(attribute.name, "an attribute's name")).second)
            throw Error(ErrorKind::kUsage, {.what = "duplicate attribute of " + op,
                                            .found = in_quotes(attribute.name),
                                            .expected = "each attribute once"});
          out.member(attribute.name, [&] { write(out, attribute); });
        }
      });
    });
    own = name.empty() ? made_name(op) : given_name(name, "a node's name");
    out.member("name", own);
    if (results > 0)
      out.member("outputs", [&] {
        out.array([&] {
          for (std::size_t i = 0; i < results; ++i) out.value(result_name(own, i));
        });
      });
  });
  nodes.push_back(std::move(out).text());
  return own;
}

ModelBuilder::Value ModelBuilder::op(const std::string& op, std::vector<Operand> operands,
                                     std::vector<Attribute> attributes, const std::string& name) {
  return {state().add_node(op, 0, operands, attributes, name), state().number};
}

std::vector<ModelBuilder::Value> ModelBuilder::op_several(const std::string& op, std::size_t count,
                                                          std::vector<Operand> operands,
                                                          std::vector<Attribute> attributes, const std::string& name) {
  if (count > kMostResults)
    throw Error(ErrorKind::kUsage, {.what = "too many results of " + op,
                                    .found = std::to_string(count),
                                    .expected = fmt::format("at most {}", kMostResults)});
  const std::string node = state().add_node(op, count, operands, attributes, name);
  std::vector<Value> values;
  for (std::size_t i = 0; i < count; ++i) {
    values.push_back({result_name(node, i), state().number});
    state().names.insert(values.back().name);
    if (name.empty()) state().made.insert(values.back().name);
  }
  return values;
}

void ModelBuilder::output(const Value& value) {
  state().require_own(value);
  state().outputs.push_back(json_string(require_utf8(value.name, "an output's name")));
}

Model ModelBuilder::build(const ResourceLimits& resources) const {
  const State& state = this->state();
  JsonWriter out;
  const auto list = [&](const char* key, const std::vector<std::string>& texts) {
    out.member(key, [&] { out.array_of(texts, [&](const std::string& text) { out.written(text); }); });
  };
  out.object([&] {
    out.member("fusec", 1);
    out.member("name", state.model_name);
    out.member("symbols", [&] {
      out.object([&] {
        for (const auto& symbol : state.symbols) out.member(symbol.first, [&] { write(out, symbol.second); });
      });
    });
    list("inputs", state.inputs);
    list("constants", state.constants);
    list("nodes", state.nodes);
    list("outputs", state.outputs);
  });
  return Model::parse(std::move(out).text(), ".", state.registry, resources);
}

}  // namespace fusec
