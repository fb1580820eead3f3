#include "codegen/emit_host_checks.h"

#include "codegen/host_text.h"

namespace fusec {
namespace {

class Checks {
 public:
  Checks(const Graph& graph, const LaunchPlan& launch, const HostNames& names)
      : graph_(graph), launch_(launch), names_(names) {}

  std::string solve() && {
    text_.line("inline cudaError_t solve({0}_context* ctx, const {0}_args* args, {0}_sizes& n) {{", names_.model());
    text_.line("  if (!args) return complain(ctx, cudaErrorInvalidValue, \"no arguments\");");
    for (const SymbolStep& step : launch_.solutions) solve_symbol(step);
    for (std::size_t i = 0; i < launch_.arguments.size(); ++i) check_argument(i);
    for (std::size_t i = 0; i < launch_.results.size(); ++i) check_result(i);
    for (const LaunchCheck& check : launch_.checks) {
      text_.line("  if ({} != {})", names_.sized(check.left), names_.sized(check.right));
      refuse("sizes do not agree: " + shown(check.what));
    }
    if (graph_.symbols.empty()) text_.line("  (void)n;");
    if (!names_.has_arguments()) text_.line("  (void)ctx;");
    return finish();
  }

  std::string constants() && {
    text_.line("inline cudaError_t check_constants({0}_context* ctx, const {0}_args* args) {{", names_.model());
    text_.line("  if (!args) return complain(ctx, cudaErrorInvalidValue, \"no arguments\");");
    for (std::size_t i = 0; i < launch_.arguments.size(); ++i) {
      const ValueId v = launch_.arguments[i];
      // What the symbols have a say in is nothing that is prepared.
      const Shape& shape = graph_.tensor(v).shape;
      bool known = graph_.value(v).kind == Value::Kind::kConstant;
      for (const Dim& dim : shape) known = known && dim.is_constant();
      if (known) check_argument(i);
    }
    return finish();
  }

 private:
  std::string finish() {
    text_.line("  return cudaSuccess;");
    text_.line("}}");
    text_.line("");
    return std::move(text_).take();
  }

  void refuse(const std::string& why) {
    text_.line("    return complain(ctx, cudaErrorInvalidValue, {});", quoted(why));
  }

  void solve_symbol(const SymbolStep& s) {
    const std::string extent = fmt::format("args->{}[{}]", names_.shape(s.input), s.dimension);
    const std::string rest = s.rest.is(0) ? extent : fmt::format("({} - ({}))", extent, names_.sized(s.rest));
    const Symbol& symbol = graph_.symbols[s.symbol];
    const std::string& name = names_.symbol(s.symbol);
    if (s.coefficient.is(1)) {
      text_.line("  n.{} = {};", name, rest);
    } else {
      const std::string coefficient = "(" + names_.sized(s.coefficient) + ")";
      text_.line("  if ({} % {} != 0)", rest, coefficient);
      refuse("no whole " + shown(symbol.name) + " fits dimension " + std::to_string(s.dimension) + " of " +
             shown(graph_.value(graph_.inputs[s.input]).name));
      text_.line("  n.{} = {} / {};", name, rest, coefficient);
    }
    text_.line("  if (n.{0} < {1} || n.{0} > {2}{3})", name, symbol.min, symbol.max,
               symbol.multiple_of == 1 ? "" : fmt::format(" || n.{} % {} != 0", name, symbol.multiple_of));
    refuse(fmt::format("{} is not from {} to {}, a multiple of {}", shown(symbol.name), symbol.min, symbol.max,
                       symbol.multiple_of));
  }

  void check_argument(std::size_t i) {
    const ValueId v = launch_.arguments[i];
    const Shape& shape = graph_.tensor(v).shape;
    std::string wrong;
    for (std::size_t d = 0; d < shape.size(); ++d)
      wrong += fmt::format("{}args->{}[{}] != {}", d ? " || " : "", names_.shape(i), d, names_.sized(shape[d]));
    const std::string shown_name = shown(graph_.value(v).name);
    if (!wrong.empty()) {
      text_.line("  if ({})", wrong);
      refuse("the extents of " + shown_name + " are not " + names_.type_text(v));
    }
    check_alignment(names_.field(i), shown_name);
  }

  void check_result(std::size_t i) {
    const ValueId v = launch_.results[i];
    const std::string shown_name = shown(graph_.value(v).name);
    const Alias* alias = names_.alias_of(v);
    if (!alias) return check_alignment(names_.result(i), shown_name);
    text_.line("  if (args->{0} && args->{0} != args->{1})", names_.result(i), names_.field_of(alias->input));
    refuse(shown_name + " is written into the buffer of " + shown(graph_.value(alias->input).name));
  }

  void check_alignment(const std::string& field, const std::string& shown_name) {
    text_.line("  if (reinterpret_cast<size_t>(args->{}) % 16 != 0)", field);
    refuse(shown_name + " is not aligned to 16 bytes");
  }

  const Graph& graph_;
  const LaunchPlan& launch_;
  const HostNames& names_;
  HostText text_;
};

}  // namespace

std::string solve_function(const Graph& graph, const LaunchPlan& launch, const HostNames& names) {
  return Checks(graph, launch, names).solve();
}

std::string check_constants_function(const Graph& graph, const LaunchPlan& launch, const HostNames& names) {
  return Checks(graph, launch, names).constants();
}

}  // namespace fusec
