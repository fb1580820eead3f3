#include "runtime/host_part/check_host_part.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ir/error.h"
#include "ir/symbol_values.h"

namespace fusec {
namespace {

constexpr std::uint64_t kNoSize = SIZE_MAX;  // M_workspace_bytes and M_prepared_bytes return it for wrong arguments
constexpr std::uint64_t kWorkspace = 0x7000'0000'0000, kConstants = 0x6000'0000'0000, kPrepared = 0x5000'0000'0000;

class Checker {
 public:
  Checker(HostPart& host, const Graph& graph, const LaunchPlan& plan, const HostArguments& good)
      : host_(host), graph_(graph), plan_(plan), good_(good) {}

  std::vector<std::string> run() {
    check_create();
    check_null();
    expect_planned(good_, "a good launch");
    expect_planned(good_, "the same launch again");
    for (std::size_t i = 0; i < good_.arguments.size(); ++i) {
      check_extents(i);
      check_alignment(i);
    }
    for (std::size_t i = 0; i < good_.results.size(); ++i) check_result(i);
    check_null_tensors();
    check_memory();
    for (std::size_t s = 0; s < graph_.symbols.size(); ++s) check_symbol(s);
    check_refusals();
    check_prepare();
    return std::move(wrong_);
  }

 private:
  template <class... T>
  void expect(bool good, fmt::format_string<T...> format, T&&... arguments) {
    if (!good && wrong_.size() < 20) wrong_.push_back(fmt::format(format, std::forward<T>(arguments)...));
  }

  static std::optional<std::uint64_t> constant_address(std::size_t position, std::span<const std::byte>) {
    return kConstants + (position << 32);
  }

  void check_create() {
    expect(host_.create_nowhere() != 0, "M_create takes no place for its context");
    if (!plan_.embedded.empty()) {
      const int status = host_.create([](std::size_t, std::span<const std::byte>) { return std::nullopt; });
      expect(status != 0 && !host_.has_context(), "M_create succeeds though the runtime refuses");
    }
    expect(host_.create(constant_address) == 0, "M_create fails");
    for (const KernelSource& kernel : plan_.kernels) {
      const Range range = range_of(kernel.dynamic_shared, graph_.bounds());
      if (range.max > 48 * 1024)
        expect(
            host_.allowed_shared(kernel.name).value_or(0) >= std::min<std::int64_t>(range.max, plan_.most_shared_bytes),
            "M_create allows {} too little dynamic shared memory", kernel.name);
    }
  }

  void check_null() {
    expect(host_.launch_without_context(good_) != 0, "M_launch takes no context");
    const HostAnswer answer = host_.launch(nullptr, kPrepared, kWorkspace);
    expect(answer.status != 0 && !answer.error.empty() && answer.calls.empty(), "M_launch takes no arguments");
    expect(host_.workspace_bytes(nullptr) == kNoSize, "M_workspace_bytes has a size for no arguments");
    expect(host_.prepared_bytes(nullptr) == kNoSize, "M_prepared_bytes has a size for no arguments");
    if (std::ranges::none_of(plan_.steps,
                             [](const LaunchStep& step) { return step.kind == LaunchStep::Kind::kCollective; }))
      return;
    expect(host_.create(constant_address, false) == 0, "M_create fails without libraries");
    expect_refused(good_, "no communicators");
    expect(host_.create(constant_address) == 0, "M_create fails");
  }

  // The symbols' values for these extents; nothing if the extents are wrong.
  std::optional<std::vector<std::int64_t>> solve(const HostArguments& a) const {
    try {
      const std::vector<std::int64_t> symbols =
          symbol_values(graph_, [&](std::size_t input, std::size_t d) { return a.arguments[input].extents[d]; });
      const auto value = [&](const IndexExpr& e) { return evaluate(e, [&](Variable v) { return symbols.at(v.id); }); };
      for (std::size_t i = 0; i < plan_.arguments.size(); ++i) {
        const Shape& shape = graph_.tensor(plan_.arguments[i]).shape;
        for (std::size_t d = 0; d < shape.size(); ++d)
          if (value(shape[d]) != a.arguments[i].extents[d]) return std::nullopt;
      }
      for (const LaunchCheck& check : plan_.checks)
        if (value(check.left) != value(check.right)) return std::nullopt;
      return symbols;
    } catch (const Error&) {
      return std::nullopt;
    }
  }

  std::uint64_t base(const HostArguments& a, BufferRef::Kind kind, std::uint32_t index) const {
    switch (kind) {
      case BufferRef::Kind::kInput:
        return a.arguments.at(index).address;
      case BufferRef::Kind::kConstant:
        return a.arguments.at(position(plan_.arguments, graph_.constants.at(index).value)).address;
      case BufferRef::Kind::kEmbedded:
        return *constant_address(position(plan_.embedded, graph_.constants.at(index).value), {});
      case BufferRef::Kind::kOutput:
        return a.results.at(index);
      case BufferRef::Kind::kWorkspace:
        return kWorkspace;
      case BufferRef::Kind::kPrepared:
        return kPrepared;
      case BufferRef::Kind::kNowhere:
        break;
    }
    throw InternalError("a buffer that no launch is given");
  }
  static std::size_t position(const std::vector<ValueId>& list, ValueId v) {
    return static_cast<std::size_t>(std::find(list.begin(), list.end(), v) - list.begin());
  }

  // Whether all grids are within CUDA's limits, which sizes within a model's bounds may exceed.
  static bool fits_a_device(const ResolvedPlan& resolved) {
    return std::ranges::all_of(resolved.steps, [](const ResolvedStep& step) {
      return step.grid[0] <= INT32_MAX && step.grid[1] <= 65535 && step.grid[2] <= 65535;
    });
  }

  void expect_planned(const HostArguments& a, const std::string& what) {
    const auto symbols = solve(a);
    if (symbols && !fits_a_device(resolve_steps(plan_, *symbols))) return;
    const HostAnswer answer = host_.launch(&a, kPrepared, kWorkspace);
    if (!symbols) {
      expect(answer.status != 0, "{}: M_launch accepts extents that are wrong", what);
      expect(answer.status == 0 || !answer.error.empty(), "{}: M_error says nothing", what);
      expect(answer.calls.empty(), "{}: something is launched all the same", what);
      expect(host_.workspace_bytes(&a) == kNoSize, "{}: M_workspace_bytes is {}", what, host_.workspace_bytes(&a));
      return;
    }
    expect(answer.status == 0, "{}: M_launch says \"{}\"", what, answer.error);
    if (answer.status != 0) return;
    const ResolvedPlan resolved = resolve_steps(plan_, *symbols);
    const auto bytes = static_cast<std::uint64_t>(resolved.workspace_bytes);
    const HostArguments nulls = all_null(a);
    for (const HostArguments* asked : {&a, &nulls})
      expect(host_.workspace_bytes(asked) == bytes, "{}: M_workspace_bytes is {}, planned are {}", what,
             host_.workspace_bytes(asked), bytes);
    const std::string difference = first_difference(answer.calls, planned(a, resolved, *symbols));
    expect(difference.empty(), "{}: {}", what, difference);
    const HostArguments few = without_empty_tensors(a, *symbols);
    const HostAnswer answer_to_few = host_.launch(&few, kPrepared, bytes ? kWorkspace : 0);
    expect(answer_to_few.status == 0, "{}, tensors without elements are null: M_launch says \"{}\"", what,
           answer_to_few.error);
  }

  std::vector<DeviceCall> planned(const HostArguments& a, const ResolvedPlan& resolved,
                                  const std::vector<std::int64_t>& symbols) const {
    return planned_calls(graph_, plan_, resolved.steps, symbols,
                         [&](BufferRef::Kind kind, std::uint32_t index) { return base(a, kind, index); });
  }

  static HostArguments all_null(HostArguments a) {
    for (HostArguments::Tensor& tensor : a.arguments) tensor.address = 0;
    for (std::uint64_t& result : a.results) result = 0;
    return a;
  }

  bool has_elements(ValueId v, const std::vector<std::int64_t>& symbols) const {
    return std::ranges::none_of(graph_.tensor(v).shape, [&](const Dim& dim) {
      return evaluate(dim, [&](Variable s) { return symbols.at(s.id); }) == 0;
    });
  }

  HostArguments without_empty_tensors(HostArguments a, const std::vector<std::int64_t>& symbols) const {
    for (std::size_t i = 0; i < a.arguments.size(); ++i)
      if (!has_elements(plan_.arguments[i], symbols)) a.arguments[i].address = 0;
    for (std::size_t i = 0; i < a.results.size(); ++i)
      if (!has_elements(plan_.results[i], symbols)) a.results[i] = 0;
    return a;
  }

  // M_launch must refuse a null pointer for every tensor that it uses.
  void check_null_tensors() {
    const auto symbols = solve(good_);
    if (!symbols) return;
    const ResolvedPlan resolved = resolve_steps(plan_, *symbols);
    const std::vector<DeviceCall> calls = planned(good_, resolved, *symbols);
    const auto check = [&](const HostArguments& a, ValueId v) {
      if (!has_elements(v, *symbols) || first_difference(planned(a, resolved, *symbols), calls).empty()) return;
      expect_refused(a, fmt::format("a null \"{}\"", graph_.value(v).name));
    };
    for (std::size_t i = 0; i < good_.arguments.size(); ++i) {
      HostArguments a = good_;
      a.arguments[i].address = 0;
      check(a, plan_.arguments[i]);
    }
    for (std::size_t i = 0; i < good_.results.size(); ++i) {
      HostArguments a = good_;
      a.results[i] = 0;
      if (good_.results[i] != 0) check(a, plan_.results[i]);  // an alias may be null
    }
  }

  // M_launch must refuse a null workspace or prepared memory if its size is not 0.
  void check_memory() {
    const auto symbols = solve(good_);
    if (!symbols) return;
    const ResolvedPlan resolved = resolve_steps(plan_, *symbols);
    const auto check = [&](std::uint64_t prepared, std::uint64_t workspace, bool needed, const char* what) {
      const HostAnswer answer = host_.launch(&good_, prepared, workspace);
      expect((answer.status != 0) == needed, "M_launch {} {}", needed ? "accepts" : "refuses", what);
      expect(!needed || (!answer.error.empty() && answer.calls.empty()), "M_launch goes on with {}", what);
    };
    const bool work = resolved.workspace_bytes > 0, prepared = resolved.prepared_bytes > 0;
    check(kPrepared, 0, work, "no workspace");
    check(kPrepared, kWorkspace + 8, work, "a misaligned workspace");
    check(0, kWorkspace, prepared, "no prepared memory");
    check(kPrepared + 8, kWorkspace, prepared, "misaligned prepared memory");
  }

  std::string name_of(std::size_t argument) const { return graph_.value(plan_.arguments[argument]).name; }

  void check_extents(std::size_t i) {
    for (std::size_t d = 0; d < good_.arguments[i].extents.size(); ++d) {
      const std::int64_t extent = good_.arguments[i].extents[d];
      for (const std::int64_t other : {extent - 1, extent + 1, 2 * extent, std::int64_t{0}, std::int64_t{-1}}) {
        if (other == extent) continue;
        HostArguments a = good_;
        a.arguments[i].extents[d] = other;
        expect_planned(a, fmt::format("dimension {} of \"{}\" is {}", d, name_of(i), other));
      }
    }
  }

  // Launches with other values of one symbol in all extents.
  void check_symbol(std::size_t s) {
    const auto now = solve(good_);
    if (!now) return;
    const Symbol& symbol = graph_.symbols[s];
    const std::int64_t step = symbol.multiple_of;
    for (const std::int64_t other : {symbol.min, symbol.min + step, symbol.max - symbol.max % step, (*now)[s] + step,
                                     (*now)[s] + 1, symbol.min - step, symbol.max + step}) {
      std::vector<std::int64_t> symbols = *now;
      symbols[s] = other;
      HostArguments a = good_;
      for (std::size_t i = 0; i < plan_.arguments.size(); ++i) {
        const Shape& shape = graph_.tensor(plan_.arguments[i]).shape;
        for (std::size_t d = 0; d < shape.size(); ++d)
          a.arguments[i].extents[d] = evaluate(shape[d], [&](Variable v) { return symbols.at(v.id); });
      }
      expect_planned(a, fmt::format("{} is {}", symbol.name, other));
    }
  }

  void expect_refused(const HostArguments& a, const std::string& what) {
    const HostAnswer answer = host_.launch(&a, kPrepared, kWorkspace);
    expect(answer.status != 0 && !answer.error.empty() && answer.calls.empty(), "M_launch accepts {}", what);
  }

  void check_alignment(std::size_t i) {
    HostArguments a = good_;
    a.arguments[i].address += 8;
    for (const Alias& alias : graph_.aliases)  // an output in place moves with its input
      if (alias.input == plan_.arguments[i]) a.results[position(plan_.results, alias.output)] = 0;
    expect_refused(a, fmt::format("a misaligned \"{}\"", name_of(i)));
  }

  void check_result(std::size_t i) {
    const std::string name = graph_.value(plan_.results[i]).name;
    HostArguments a = good_;
    for (const Alias& alias : graph_.aliases) {
      if (alias.output != plan_.results[i]) continue;
      a.results[i] = 0;
      expect_planned(a, "\"" + name + "\" is null, its input's buffer is written");
      a.results[i] = a.arguments[position(plan_.arguments, alias.input)].address;
      expect_planned(a, "\"" + name + "\" is its input's buffer");
      a.results[i] += 16;
      expect_refused(a, fmt::format("another buffer for \"{}\" than its input's", name));
      return;
    }
    a.results[i] += 4;
    expect_refused(a, fmt::format("a misaligned \"{}\"", name));
  }

  // If the runtime refuses an operation, M_launch must return its error and enqueue nothing else.
  void check_refusals() {
    const std::size_t count = host_.launch(&good_, kPrepared, kWorkspace).calls.size();
    for (const std::size_t k : {std::size_t{0}, count / 2, count - 1}) {
      if (k >= count) continue;
      const HostAnswer answer = host_.launch(&good_, kPrepared, kWorkspace, k);
      expect(answer.status != 0 && !answer.error.empty() && answer.calls.size() == k,
             "the runtime refuses operation {}: M_launch returns {} after {} operations", k, answer.status,
             answer.calls.size());
    }
  }

  // M_prepare must work with and without inputs, since it uses only constants.
  void check_prepare() {
    const auto symbols = solve(good_);
    if (!symbols) return;
    const ResolvedPlan resolved = resolve_steps(plan_, *symbols);
    const auto expected =
        planned_calls(graph_, plan_, resolved.prepare_steps, *symbols,
                      [&](BufferRef::Kind kind, std::uint32_t index) { return base(good_, kind, index); });
    HostArguments constants = good_;
    for (std::size_t i = 0; i < graph_.inputs.size(); ++i) {
      constants.arguments[i].address = 4;
      for (std::int64_t& extent : constants.arguments[i].extents) extent = -1;
    }
    for (std::uint64_t& result : constants.results) result = 4;
    const HostArguments nulls = all_null(constants);
    for (const HostArguments* a : {&good_, &std::as_const(constants), &nulls})
      expect(host_.prepared_bytes(a) == static_cast<std::uint64_t>(resolved.prepared_bytes),
             "M_prepared_bytes is {}, planned are {}", host_.prepared_bytes(a), resolved.prepared_bytes);
    for (const HostArguments* a : {&good_, &std::as_const(constants)}) {
      const HostAnswer answer = host_.prepare(a, kPrepared);
      const std::string difference = first_difference(answer.calls, expected);
      expect(answer.status == 0 && difference.empty(), "M_prepare says \"{}\": {}", answer.error, difference);
    }
    if (expected.empty()) return;
    const auto refused = [&](const HostArguments* a, std::uint64_t prepared, const std::string& what) {
      const HostAnswer answer = host_.prepare(a, prepared);
      expect(answer.status != 0 && !answer.error.empty() && answer.calls.empty(), "M_prepare accepts {}", what);
    };
    refused(nullptr, kPrepared, "no arguments");
    refused(&good_, 0, "no memory");
    refused(&good_, kPrepared + 8, "misaligned memory");
    for (std::size_t i = graph_.inputs.size(); i < good_.arguments.size(); ++i) {
      HostArguments a = good_;
      const Shape& shape = graph_.tensor(plan_.arguments[i]).shape;
      if (!std::ranges::all_of(shape, [](const Dim& dim) { return dim.is_constant(); })) continue;
      a.arguments[i].address += 8;
      refused(&a, kPrepared, fmt::format("a misaligned \"{}\"", name_of(i)));
      a.arguments[i].address = 0;
      const auto calls = planned_calls(graph_, plan_, resolved.prepare_steps, *symbols,
                                       [&](auto kind, auto index) { return base(a, kind, index); });
      if (has_elements(plan_.arguments[i], *symbols) && !first_difference(calls, expected).empty())
        refused(&a, kPrepared, fmt::format("a null \"{}\"", name_of(i)));
      if (shape.empty()) continue;
      a = good_;
      ++a.arguments[i].extents[0];
      refused(&a, kPrepared, fmt::format("another extent of \"{}\"", name_of(i)));
      expect(host_.prepared_bytes(&a) == kNoSize, "M_prepared_bytes has a size for another extent of \"{}\"",
             name_of(i));
    }
    for (std::size_t k = 0; k < expected.size(); k += std::max<std::size_t>(1, expected.size() - 1)) {
      const HostAnswer answer = host_.prepare(&good_, kPrepared, k);
      expect(answer.status != 0 && !answer.error.empty() && answer.calls.size() == k,
             "the runtime refuses operation {} of M_prepare, which returns {} after {}", k, answer.status,
             answer.calls.size());
    }
  }

  HostPart& host_;
  const Graph& graph_;
  const LaunchPlan& plan_;
  const HostArguments& good_;
  std::vector<std::string> wrong_;
};

}  // namespace

std::vector<std::string> check_host_part(HostPart& host, const Graph& graph, const LaunchPlan& plan,
                                         const HostArguments& arguments) {
  return Checker(host, graph, plan, arguments).run();
}

}  // namespace fusec
