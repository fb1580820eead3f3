#include "pattern_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "ir/error.h"
#include "ir/mapped_file.h"
#include "ir/spelling.h"
#include "transforms/patterns/builtin_patterns.h"
#include "transforms/patterns/conditions.h"
#include "transforms/patterns/library_patterns.h"
#include "transforms/patterns/pattern_text.h"

namespace fusec {
namespace {

MatchedValue matched_value(const PatternCheckContext& context, std::size_t number) {
  const Graph& graph = context.graph();
  const ValueId v = context.match.values[number];
  const Value& value = graph.value(v);
  MatchedValue result{.name = context.match.pattern->names[number]};
  if (value.kind == Value::Kind::kNumber) {
    result.value = fmt::format("{}", graph.number(v).as_double());
    return result;
  }
  if (value.kind == Value::Kind::kDim) {
    result.value = to_string(graph.dim(v), graph.symbols);
    return result;
  }
  result.value = value.name;
  if (!graph.type(v).is_tuple) {
    result.type.dtype = name(graph.tensor(v).dtype);
    for (const Dim& dim : graph.tensor(v).shape) result.type.shape.emplace_back(to_string(dim, graph.symbols));
  }
  if (value.producer != kNone) result.producer = graph.nodes[value.producer].name;
  for (const NodeId user : context.searched.uses.of(v)) result.users.push_back(graph.nodes[user].name);
  result.is_output = context.searched.is_output[v];
  return result;
}

MatchedPattern matched_pattern(const PatternCheckContext& context) {
  MatchedPattern result{.pattern = context.match.pattern->name,
                        .root = context.graph().nodes[context.match.root].name,
                        .nodes = {},
                        .values = {}};
  for (const NodeId n : context.match.nodes) result.nodes.push_back(context.graph().nodes[n].name);
  for (std::size_t i = 0; i < context.match.values.size(); ++i)
    if (context.match.values[i] != kNone) result.values.push_back(matched_value(context, i));
  return result;
}

// Adds patterns that the library's user declares. Their functions get the match in terms of the public API.
void add_declared(const PatternText& declared, std::vector<FusionPattern>& patterns) {
  for (FusionPattern& pattern : parse_patterns(declared.text, "patterns")) {
    if (declared.check)
      pattern.check = [check = declared.check](const PatternCheckContext& c) { return check(matched_pattern(c)); };
    if (declared.attributes)
      pattern.attributes_getter = [get = declared.attributes](const PatternCheckContext& c) {
        return get(matched_pattern(c));
      };
    patterns.push_back(std::move(pattern));
  }
}

// "swiglu" is near "fusec.swiglu", too.
std::string nearest_pattern(std::string_view wanted, const PatternList& patterns) {
  std::vector<std::string_view> known, without_backend;
  for (const ListedPattern& p : patterns) {
    known.push_back(p.name());
    without_backend.push_back(known.back().substr(known.back().find('.') + 1));
  }
  if (std::string hint = did_you_mean(wanted, known); !hint.empty()) return hint;
  const auto near = std::ranges::find(without_backend, nearest_name(wanted, without_backend));
  return near == without_backend.end()
             ? ""
             : "did you mean " + in_quotes(known[static_cast<std::size_t>(near - without_backend.begin())]) + "?";
}

void disable(const std::vector<std::string>& names, PatternList& patterns) {
  for (const std::string& disabled : names) {
    if (disabled == "all") continue;
    if (std::ranges::find(patterns, disabled, &ListedPattern::name) != patterns.end()) continue;
    throw Error(ErrorKind::kUsage, {.what = "no such pattern to disable",
                                    .found = in_quotes(disabled),
                                    .expected = "a name that --list-patterns shows, or all",
                                    .hint = nearest_pattern(disabled, patterns)});
  }
  std::erase_if(patterns, [&](const ListedPattern& p) {
    return std::ranges::any_of(names, [&](const std::string& d) { return d == "all" || d == p.name(); });
  });
}

// All patterns but those of the names `options.disabled_patterns`.
PatternList all_patterns(const Options& options) {
  static const PatternList builtin = listed(builtin_pattern_table());
  std::vector<FusionPattern> given;
  for (const std::string& path : options.pattern_files)
    std::ranges::move(parse_patterns(read_text_file(path), path), std::back_inserter(given));
  for (const PatternText& declared : options.patterns) add_declared(declared, given);
  PatternList patterns;
  for (FusionPattern& pattern : given) patterns.emplace_back(std::move(pattern));
  patterns.insert(patterns.end(), builtin.begin(), builtin.end());
  disable(options.disabled_patterns, patterns);
  return patterns;
}

}  // namespace

PatternList pattern_list(const Options& options) {
  return ordered(all_patterns(options));
}

PatternList pattern_list(const Options& options, const Target& target) {
  const std::optional<Gemm> gemm = parse_gemm(options.gemm);
  if (!gemm)
    throw Error(ErrorKind::kUsage,
                {.what = "gemm", .found = in_quotes(options.gemm), .expected = "builtin, cublaslt or auto"});
  return ordered(with_library_patterns(all_patterns(options), *gemm, target, options.round_intermediates));
}

}  // namespace fusec
