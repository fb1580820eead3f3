#include "codegen/host/emit_host_checks.h"

#include <algorithm>
#include <unordered_set>

#include "codegen/host/host_text.h"

namespace fusec {
namespace {

// Fields of M_args.
struct UsedBuffers {
  std::unordered_set<ValueId> arguments;
  std::unordered_set<std::uint32_t> results;  // positions in LaunchPlan::results
};

class Checks {
 public:
  Checks(const Graph& graph, const LaunchPlan& launch, const HostNames& names)
      : graph_(graph), launch_(launch), names_(names) {}

  std::string print() && {
    check_constants();
    solve();
    check_pointers();
    if (!launch_.prepare_steps.empty()) check_constant_pointers();
    return std::move(text_).take();
  }

 private:
  void check_constants() {
    begin("check_constants", "");
    text_.line("  if (!args) return complain(ctx, cudaErrorInvalidValue, \"no arguments\");");
    for (std::size_t i = 0; i < launch_.arguments.size(); ++i)
      if (is_known_constant(i)) check_extents(i);
    end();
  }

  void solve() {
    begin("solve", ", {0}_sizes& n");
    text_.line("  const cudaError_t status = check_constants(ctx, args);");
    text_.line("  if (status != cudaSuccess) return status;");
    for (const SymbolStep& step : launch_.solutions) solve_symbol(step);
    for (std::size_t i = 0; i < launch_.arguments.size(); ++i)
      if (!is_known_constant(i)) check_extents(i);
    for (const LaunchCheck& check : launch_.checks) {
      text_.line("  if ({} != {})", names_.sized(check.left), names_.sized(check.right));
      refuse("sizes do not agree: " + shown(check.what));
    }
    if (graph_.symbols.empty()) text_.line("  (void)n;");
    end();
  }

  void check_pointers() {
    begin("check_pointers", ", const {0}_sizes& n");
    text_.line("  (void)ctx, (void)args, (void)n;");
    const UsedBuffers used = used_by(launch_.steps);
    for (std::size_t i = 0; i < launch_.arguments.size(); ++i) check_argument(i, used);
    for (std::size_t i = 0; i < launch_.results.size(); ++i) check_result(i, used);
    end();
  }

  void check_constant_pointers() {
    begin("check_constant_pointers", "");
    text_.line("  (void)ctx, (void)args;");
    const UsedBuffers used = used_by(launch_.prepare_steps);
    for (std::size_t i = 0; i < launch_.arguments.size(); ++i)
      if (is_known_constant(i)) check_argument(i, used);
    end();
  }

  // True for a constant without symbols in its shape. Only such constants are prepared.
  bool is_known_constant(std::size_t i) const {
    const ValueId v = launch_.arguments[i];
    return graph_.value(v).kind == Value::Kind::kConstant &&
           std::ranges::all_of(graph_.tensor(v).shape, [](const Dim& dim) { return dim.is_constant(); });
  }

  void begin(const char* function, std::string_view further) {
    text_.line("inline cudaError_t {1}({0}_context* ctx, const {0}_args* args{2}) {{", names_.model(), function,
               fmt::format(fmt::runtime(further), names_.model()));
  }

  void end() {
    text_.line("  return cudaSuccess;");
    text_.line("}}");
    text_.line("");
  }

  void refuse(const std::string& why) {
    text_.line("    return complain(ctx, cudaErrorInvalidValue, {});", string_literal(why));
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

  void check_extents(std::size_t i) {
    const ValueId v = launch_.arguments[i];
    const Shape& shape = graph_.tensor(v).shape;
    std::string wrong;
    for (std::size_t d = 0; d < shape.size(); ++d)
      wrong += fmt::format("{}args->{}[{}] != {}", d ? " || " : "", names_.shape(i), d, names_.sized(shape[d]));
    if (wrong.empty()) return;
    text_.line("  if ({})", wrong);
    refuse("the extents of " + shown(graph_.value(v).name) + " are not " + names_.type_text(v));
  }

  void check_argument(std::size_t i, const UsedBuffers& used) {
    const ValueId v = launch_.arguments[i];
    if (used.arguments.contains(v)) check_null(names_.field(i), v);
    check_alignment(names_.field(i), shown(graph_.value(v).name));
  }

  void check_result(std::size_t i, const UsedBuffers& used) {
    const ValueId v = launch_.results[i];
    const std::string shown_name = shown(graph_.value(v).name);
    if (const Alias* alias = names_.alias_of(v)) {
      text_.line("  if (args->{0} && args->{0} != args->{1})", names_.result(i), names_.field_of(alias->input));
      return refuse(shown_name + " is written into the buffer of " + shown(graph_.value(alias->input).name));
    }
    if (used.results.contains(static_cast<std::uint32_t>(i))) check_null(names_.result(i), v);
    check_alignment(names_.result(i), shown_name);
  }

  // The buffers that the steps read or write, in all forms.
  UsedBuffers used_by(const std::vector<LaunchStep>& steps) const {
    UsedBuffers used;
    const auto add = [&](const std::vector<Argument>& arguments) {
      for (const Argument& a : arguments) {
        if (a.kind == Argument::Kind::kSize) continue;
        if (a.buffer.kind == BufferRef::Kind::kInput) used.arguments.insert(graph_.inputs[a.buffer.index]);
        if (a.buffer.kind == BufferRef::Kind::kConstant) used.arguments.insert(graph_.constants[a.buffer.index].value);
        if (a.buffer.kind == BufferRef::Kind::kOutput) used.results.insert(a.buffer.index);
      }
    };
    for (const LaunchStep& step : steps) {
      add(step.arguments);
      for (const LaunchStep::Specialization& form : step.special) add(form.arguments);
    }
    return used;
  }

  void check_null(const std::string& field, ValueId v) {
    std::string elements;  // condition that the tensor has elements
    for (const Dim& dim : graph_.tensor(v).shape) {
      if (dim.is(0)) return;
      if (range_of(dim, graph_.bounds()).min <= 0) elements += fmt::format(" && {} > 0", names_.sized(dim));
    }
    text_.line("  if (!args->{}{})", field, elements);
    refuse(shown(graph_.value(v).name) + " is null");
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

std::string check_functions(const Graph& graph, const LaunchPlan& launch, const HostNames& names) {
  return Checks(graph, launch, names).print();
}

}  // namespace fusec
