#include "ir/read.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>

#include "ir/alias_order.h"
#include "ir/error.h"
#include "ir/foreign_model.h"
#include "ir/mapped_file.h"
#include "ir/read_context.h"
#include "ir/read_nodes.h"
#include "ir/read_values.h"
#include "ir/spelling.h"
#include "ir/symbol_solution.h"
#include "ir/text.h"
#include "ir/type_rules.h"

namespace fusec {
namespace {

constexpr std::size_t kMostTriedAlone = 32;  // aliases; each trial walks the whole graph

enum {
  kModelVersion,
  kModelName,
  kModelSymbols,
  kModelInputs,
  kModelConstants,
  kModelNodes,
  kModelOutputs,
  kModelAliases,
  kModelMetadata
};

// Checks the version before all other keys, since another version may have other keys.
void check_version(const ReadContext& context, Json model) {
  for (const Json member : context.object(model, "a model")) {
    if (member.key_text() != "fusec") continue;
    if (!member.is(JsonKind::kInteger) || member.integer() != 1)
      context.unfit(member, "wrong format version", "the integer 1");
    return;
  }
}

class ModelReader {
 public:
  ModelReader(const ReadContext& context, const std::string& directory, const OpTable& table)
      : context_(context), graph_(table), values_(context), weights_(context, directory) {
    graph_.file = context.file;
    graph_.directory = directory;
  }

  Graph read() {
    const Json model = context_.document.root();
    check_version(context_, model);
    const Fields fields(context_, model, "a model",
                        {{"fusec", true},
                         {"name", false},
                         {"symbols", false},
                         {"inputs", true},
                         {"constants", false},
                         {"nodes", true},
                         {"outputs", true},
                         {"aliases", false},
                         {"metadata", false}});
    if (fields[kModelName]) graph_.name = context_.string(*fields[kModelName], "the model's name").text();
    if (fields[kModelSymbols]) {
      graph_.symbols = read_symbols(context_, *fields[kModelSymbols]);
      context_.require_within(&Limits::symbols, static_cast<std::int64_t>(graph_.symbols.size()),
                              *fields[kModelSymbols]);
    }
    const SymbolNames symbols(graph_.symbols);
    read_inputs(*fields[kModelInputs], symbols);
    if (fields[kModelConstants]) read_constants(*fields[kModelConstants], symbols);
    check_symbols(fields[kModelSymbols]);
    NodeReader(context_, symbols, values_, graph_).read(*fields[kModelNodes]);
    read_outputs(*fields[kModelOutputs]);
    if (fields[kModelAliases]) read_aliases(*fields[kModelAliases]);
    drop_repeated_checks();
    return std::move(graph_);
  }

 private:
  void read_inputs(Json at, const SymbolNames& symbols) {
    for (const Json input : context_.array(at, "the model's inputs")) {
      Declaration d = read_input(context_, input, symbols, graph_.checks);
      values_.define(d.name, d.name.string(), kNone, kNone);
      values_.set_value(d.name.string(), graph_.add_input(std::string(d.name.text()), std::move(d.type)));
    }
  }

  void read_constants(Json at, const SymbolNames& symbols) {
    graph_.constants.reserve(context_.array(at, "the model's constants").size());
    for (const Json element : at) {
      Constant constant{};
      Declaration d = read_constant(context_, element, symbols, weights_, graph_.checks, constant);
      values_.define(d.name, d.name.string(), kNone, kNone);
      constant.value = graph_.add_constant(std::string(d.name.text()), std::move(d.type));
      values_.set_value(d.name.string(), constant.value);
      graph_.constants.back() = std::move(constant);
    }
  }

  void check_symbols(const std::optional<Json>& at) {
    const std::vector<std::uint32_t> undetermined = solve_symbols(graph_).undetermined;
    if (undetermined.empty()) return;
    std::uint32_t position = 0;
    for (const Json member : *at)
      if (position++ == undetermined.front())
        context_.fail(member, "a symbol that no input determines", in_quotes(member.key_text()),
                      "an input with a dimension from which its value follows");
  }

  // Repeated layers make the same checks again and again.
  void drop_repeated_checks() {
    std::set<std::pair<Dim, Dim>> seen;
    std::erase_if(graph_.checks, [&](const LaunchCheck& c) { return !seen.insert({c.left, c.right}).second; });
  }

  ValueId named_value(Json at, const char* what) {
    const ValueId value = values_[context_.string(at, what).string()].value;
    if (value == kNone) values_.undefined(at, "undefined output");
    return value;
  }

  void read_outputs(Json at) {
    if (context_.array(at, "the model's outputs").size() == 0)
      context_.unfit(at, "a model without outputs", "at least one value's name");
    ErrorList undefined;
    for (const Json output : at) undefined.attempt([&] { named_value(output, "an output"); });
    undefined.raise();
    for (const Json output : at) {
      const ValueId value = named_value(output, "an output");
      if (graph_.type(value).is_tuple)
        context_.fail(output, "an output", in_quotes(output.text()) + ", a tuple", "a tensor",
                      "get_item takes a field of a tuple");
      graph_.outputs.push_back(value);
    }
  }

  void read_aliases(Json at) {
    std::vector<bool> is_output(graph_.value_count(), false), taken(graph_.value_count(), false);
    for (const ValueId v : graph_.outputs) is_output[v] = true;
    for (const Json member : context_.object(at, "the model's aliases")) {
      const ValueId input = alias_input(member), output = alias_output(member, is_output);
      if (taken[input])
        context_.unfit(member, "two outputs in one input's buffer", "an input that no other alias names");
      taken[input] = true;
      const std::string what = "the alias of " + in_quotes(member.key_text());
      if (!types_agree(graph_.tensor(output), graph_.tensor(input), graph_.symbols, &graph_.checks, what))
        context_.fail(member, "an alias of another type", to_string(graph_.tensor(input), graph_.symbols),
                      to_string(graph_.tensor(output), graph_.symbols) + ", the output's type");
      graph_.aliases.push_back({output, input});
    }
    check_alias_order(at);
    // Sort, since the keys of a JSON object have no order.
    std::ranges::sort(graph_.aliases, {}, &Alias::output);
  }

  ValueId alias_input(Json member) {
    const ValueId v = values_[context_.string(member, "an alias").string()].value;
    if (v == kNone || graph_.value(v).kind != Value::Kind::kInput)
      context_.unfit(member, "an alias", "the name of an input");
    return v;
  }

  ValueId alias_output(Json member, const std::vector<bool>& is_output) {
    const ValueId v = values_[member.key()].value;
    if (v == kNone || !is_output[v])
      context_.fail(member, "an alias of what is no output", in_quotes(member.key_text()),
                    "the name of an output of the model");
    return v;
  }

  void check_alias_order(Json at) {
    if (order_for_aliases(graph_, graph_.aliases)) return;
    std::size_t i = 0;
    for (const Json member : at) {  // an alias that cannot be served even alone is the best message
      if (i == kMostTriedAlone) break;
      if (!order_for_aliases(graph_, {graph_.aliases[i++]}))
        context_.unfit(member, "no order of execution allows the alias",
                       "an input that nothing reads once the output is written");
    }
    context_.fail(at, "no order of execution allows the aliases", "aliases that exclude each other",
                  "inputs that nothing reads once the outputs are written");
  }

  const ReadContext& context_;
  Graph graph_;
  ValueNames values_;
  WeightFiles weights_;
};

Graph read_document(const JsonDocument& document, const std::string& file, const std::string& directory,
                    const OpTable& table, const Limits& limits) {
  const ReadContext context{document, file, limits};
  return ModelReader(context, directory, table).read();
}

// Text that is not JSON may be a model in another format.
JsonDocument parse_model_document(std::string_view text, const std::string& file) {
  try {
    return JsonDocument::parse(text, file);
  } catch (const Error&) {
    refuse_foreign_model(text, file);
    throw;
  }
}

}  // namespace

Graph read_model_text(std::string_view text, const std::string& file, const std::string& directory,
                      const OpTable& table, const Limits& limits) {
  if (is_graph_text(text)) return parse_graph_text(text, table, directory, file, limits);
  const JsonDocument document = parse_model_document(text, file);
  return read_document(document, file, directory, table, limits);
}

Graph read_model(const std::string& path, const OpTable& table, const Limits& limits) {
  if (path == "-") return read_model_text(read_standard_input(), path, "", table, limits);
  std::optional<MappedFile> mapped(path);
  require_file_size(mapped->bytes().size(), path);
  const std::string directory = std::filesystem::path(path).parent_path().string();
  if (is_graph_text(mapped->bytes())) return parse_graph_text(mapped->bytes(), table, directory, path, limits);
  const JsonDocument document = parse_model_document(mapped->bytes(), path);
  mapped.reset();  // the pages that were read count as this process's memory
  return read_document(document, path, directory, table, limits);
}

}  // namespace fusec
