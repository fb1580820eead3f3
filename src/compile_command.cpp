#include "compile_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "bisect_rewritings.h"
#include "boundary.h"
#include "codegen/host/emit_header.h"
#include "codegen/host/manifest.h"
#include "dot.h"
#include "emissions.h"
#include "explanations.h"
#include "ir/budget.h"
#include "ir/error.h"
#include "ir/large_vector.h"
#include "ir/spelling.h"
#include "ir/text.h"
#include "kept_result.h"
#include "messages.h"
#include "model_cost.h"
#include "output_file.h"
#include "passes.h"
#include "profile.h"
#include "progress_line.h"
#include "summary.h"
#include "terminal.h"
#include "transforms/bisect_plan.h"
#include "transforms/explain_print.h"
#include "transforms/plan_file.h"
#include "view_page.h"

namespace fusec {
namespace {

// --dump-ir-before, --dump-ir-after and FUSEC_DEBUG=3 show the graph around the passes that may change it.
PipelineOptions observed(PipelineOptions options, const FusecArguments& a) {
  auto show = [](std::string_view when, std::string_view pass, const Graph& graph) {
    print_message("# {} {}\n{}\n", when, pass, graph_text(graph));
  };
  options.before_pass = [show, &a](const Pass& pass, const Graph& graph) {
    if (a.dump_before == pass.name) show("before", pass.name, graph);
  };
  options.after_pass = [show, &a, level = options.debug_level](const Pass& pass, const Graph& graph) {
    const bool all = a.dump_after == "all" || level >= 3;
    if (a.dump_after == pass.name || (all && pass.part == CompilationPart::kGraph)) show("after", pass.name, graph);
  };
  return options;
}

class CompilationRun {
 public:
  explicit CompilationRun(const FusecArguments& a)
      : a_(a),
        outputs_(emissions(a.output, a.emits, files_read(a.compile), a.no_nvrtc)),
        progress_(is_terminal() && !a.compile.quiet && !a.compile.json && !is_observed(a)) {}

  int run() {
    // Without NVRTC there is no PTX, without Graphviz no picture: before anything else takes time.
    if (wants_module()) nvrtc_ = Nvrtc::require();
    if (wants("svg")) require_graphviz();
    if (!a_.profile.empty() && !wants("html")) throw Error(ErrorKind::kUsage, "--profile without --emit=html");
    if (!a_.profile.empty()) profile_ = read_profile(a_.profile);
    enter_stage("read");
    Graph graph = read_model(a_.compile);
    look_at_budget();
    if (const std::string why = cache_warning(a_.compile); !why.empty()) warn(why);
    if (!a_.name.empty()) graph.name = require_utf8(a_.name, "--name");
    file_nodes_ = graph.nodes.size();
    const double seconds_to_read = seconds_so_far();
    const std::optional<std::string> key = keeps_results() ? key_now() : std::nullopt;
    CompileCache cache(key ? cache_folder(a_.compile) : "", a_.compile.options.cache_bytes);
    if (const auto kept = key ? find_result(cache, *key, outputs_.size()) : std::nullopt) return finish(*kept, true);

    pipeline_.emplace(observed(options_for(wants("cubin") || wants("html")), a_));
    pipeline_->record("read", seconds_to_read);
    const bool predicts = wants("report") || wants("html") || (wants_table() && file_nodes_ <= kLargestToRun);
    if (predicts || !a_.bisect.empty()) file_graph_ = graph;
    planned_ = pipeline_->plan(std::move(graph));
    if (!a_.bisect.empty()) return bisect();
    note_idle_patterns();
    generate();
    require_one_kernel();
    // Everything is made before anything is written.
    KeptResult result;
    for (const Emission& e : outputs_) result.contents.push_back(content(e.kind));
    if (wants_table()) compare();
    progress_.end();
    explain();
    describe(result);
    // Not where a file changed since it was read, nor where another NVRTC than that of the key could be loaded.
    if (key && proven_ && nvrtc_->path() == nvrtc_file(a_.compile.options.nvrtc_library) && key_now() == key)
      keep_result(cache, *key, result);
    return finish(result, false);
  }

 private:
  double seconds_so_far() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

  // Whether the results are those of NVRTC, which take long, and nothing else is asked for than what is kept of them.
  bool keeps_results() const {
    const bool only_results = !is_observed(a_) && a_.explain.empty() && a_.one_kernel.empty() && a_.profile.empty();
    const bool tells_times = a_.compile.time_passes || a_.compile.verbose || a_.stats;
    return compiles() && only_results && !tells_times && !wants("svg") && !std::getenv("FUSEC_DEBUG");
  }
  bool compiles() const { return wants_module() || ((wants("cu") || wants("html")) && !a_.no_nvrtc); }
  std::optional<std::string> key_now() const {
    return result_key(a_.compile, a_.words, wants_table() ? "with the table of launches" : "");
  }

  // What the command says of its results.
  void describe(KeptResult& result) const {
    const LaunchPlan* launch = needs_source() || wants_table() ? launch_plan() : nullptr;
    result.summary =
        summarize(planned_, launch, compared_ ? &*compared_ : nullptr, file_nodes_, pipeline_->options().target);
    result.messages = messages_;
    result.proven = proven_;
  }

  // What --stats says of memory; "" without source.
  std::string memory_text() const {
    if (!needs_source()) return "";
    const Symbols& symbols = planned_.graph.symbols;
    return fmt::format("workspace: {} bytes are alive at once, no plan needs less; prepared: {} bytes in {} steps",
                       value_at_hint(generated_.launch.live_bytes, symbols),
                       value_at_hint(generated_.launch.prepared_bytes, symbols),
                       generated_.launch.prepare_steps.size());
  }

  // Writes the outputs and the summary.
  int finish(const KeptResult& result, bool was_kept) {
    if (was_kept)
      for (const auto& [kind, text] : result.messages) kind == KeptResult::Message::kNote ? note(text) : warn(text);
    progress_.end();
    enter_stage("write");
    look_at_budget();
    for (std::size_t i = 0; i < outputs_.size(); ++i) write_output(outputs_[i].path, result.contents[i]);
    print_summary(result, was_kept);
    return 0;
  }

  PipelineOptions options_for(bool cubin) {
    CompileArguments wanted = a_.compile;
    wanted.options.report = wants("report") || wants("html");
    PipelineOptions options = pipeline_options(wanted);
    options.progress = [this](const Pass& pass) {
      if (pass.part != CompilationPart::kProgram) progress_.set(fmt::format("planning: {}", pass.name));
    };
    options.compile.progress = [this](std::size_t done, std::size_t total) { tell_nvrtc(done, total); };
    options.compile.cubin = cubin ? CubinUse::kRun : CubinUse::kProof;
    return options;
  }

  void generate() {
    if (needs_source()) {
      // PTX and cubin are one module of all kernels; the source alone is proven in pieces, side by side.
      generated_ =
          pipeline_->generate(planned_, wants_module() ? 1 : std::max(1u, std::thread::hardware_concurrency()));
      for (const std::string& warning : generated_.launch.warnings) warn(warning);
      if (compiles()) compile();
    } else if (counts_launches()) {
      count_launches();
      if (wants("html") && launch_plan() && !a_.no_nvrtc) compile();
    }
  }

  // For --bisect: makes the results with this plan, and runs the user's command on them.
  bool passes(const FusionPlan& plan, const std::string& plan_path) {
    planned_.plan = plan;
    write_output(plan_path, write_plan(planned_.graph, plan, planned_.left_out));
    generate();
    for (const Emission& e : outputs_) write_output(e.path, content(e.kind));
    const int status = std::system(a_.bisect.c_str());
    const bool is_interrupted = WIFSIGNALED(status) && WTERMSIG(status) == SIGINT;
    if (is_interrupted) std::raise(SIGINT);  // std::system() ignores the signal that ends its command
    if (status == -1 || is_interrupted)
      throw Error(ErrorKind::kEnvironment, "--bisect: the command could not be run, or was interrupted");
    std::size_t fusions = 0;
    for (const FusionGroup& group : plan.groups) fusions += group.nodes.size() > 1;
    print_message("{} fusions: the command {}\n", fusions, status == 0 ? "passes" : "fails");
    return status == 0;
  }

  int bisect() {
    progress_.end();
    for (const Emission& e : outputs_)
      if (e.path == "-")
        throw Error(ErrorKind::kUsage, "--bisect needs files for its results: -o FILE, --emit=KIND=FILE");
    const TemporaryFile plan_file;
    setenv("FUSEC_PLAN", plan_file.path().c_str(), 1);
    const FusionPlan whole = planned_.plan;
    const Bisection found = bisect_fusions(planned_.graph, planned_.kinds, whole,
                                           [&](const FusionPlan& plan) { return passes(plan, plan_file.path()); });
    if (found.outcome == Bisection::Outcome::kPassesWithAll) {
      write_output("-", "the command passes with all fusions: nothing to find\n");
      return 1;
    }
    if (found.outcome == Bisection::Outcome::kFailsWithNone) return bisect_rewritings(plan_file.path());
    const FusionGroup& group = whole.groups[found.group];
    std::vector<std::string> names;
    for (const NodeId n : group.nodes) names.push_back(in_quotes(planned_.graph.nodes[n].name));
    std::string text;
    if (group.claimed_by != kNone) text = fmt::format("claimed by {}: ", whole.claims[group.claimed_by].pattern);
    text += fmt::format("{} ({}): with this fusion{} the command fails, without it it passes; {} runs\n", group.name,
                        fmt::join(names, ", "), found.alone ? " alone" : " and those before it", found.tests);
    write_output("-", text);
    // What is left behind is the smallest case.
    passes(found.plan, plan_file.path());
    return 0;
  }

  // The file's graph, rewritten without what is left out; no fusion.
  void plan_without(const LeftOut& left_out) {
    Pipeline pipeline(leaving_out(pipeline_->options(), left_out));
    planned_ = pipeline.plan(file_graph_);
    const std::vector<bool> none(planned_.plan.groups.size(), false);
    planned_.plan = with_fusions(planned_.graph, planned_.kinds, planned_.plan, none);
  }

  int bisect_rewritings(const std::string& plan_path) {
    const std::vector<Rewriting> rewritings = rewritings_of(pipeline_->options());
    const auto test = [&](const LeftOut& left_out) {
      plan_without(left_out);
      print_message("{} passes and patterns left out, ", left_out.passes.size() + left_out.patterns.size());
      return passes(FusionPlan(planned_.plan), plan_path);
    };
    const RewritingFound found = find_culprit(rewritings, test);
    if (found.fails_with_none) {
      write_output("-", fmt::format("the command fails without any fusion{}: fusion is not to blame\n",
                                    rewritings.empty() ? "" : " and any rewriting"));
      return 1;
    }
    const Rewriting& culprit = rewritings[found.culprit];
    plan_without(without_last(rewritings, found.culprit));
    const PlannedModel without = std::move(planned_);
    plan_without(without_last(rewritings, found.culprit + 1));
    std::vector<std::string> made;
    for (const std::vector<std::string>& origins : made_by(planned_, without)) {
      std::vector<std::string> names;
      for (const std::string& name : origins) names.push_back(in_quotes(name));
      made.push_back(fmt::format("{}", fmt::join(names, ", ")));
    }
    write_output(
        "-", fmt::format("{} {} ({}): with this rewriting the command fails without any fusion, without it it "
                         "passes; {} runs\n",
                         culprit.is_pattern ? "pattern" : "pass", culprit.name, fmt::join(made, "; "), found.tests));
    passes(FusionPlan(planned_.plan), plan_path);
    return 0;
  }

  bool wants(std::string_view kind) const {
    return std::any_of(outputs_.begin(), outputs_.end(), [&](const Emission& e) { return e.kind == kind; });
  }
  bool wants_module() const { return wants("ptx") || wants("cubin"); }
  // The table of launches costs a second plan, without fusion: it is for people, and for compilations that take long.
  bool wants_table() const {
    const bool for_people = is_terminal() || a_.compile.verbose || a_.compile.json;
    const bool compiles = wants_module() || (wants("cu") && !a_.no_nvrtc);
    const bool nothing_else = outputs_.empty() && a_.explain.empty() && a_.one_kernel.empty() && !is_observed(a_);
    return !a_.compile.quiet && a_.bisect.empty() && (compiles || nothing_else || (needs_source() && for_people));
  }
  static bool is_observed(const FusecArguments& a) {
    return !a.dump_before.empty() || !a.dump_after.empty() || !a.bisect.empty();
  }
  bool needs_source() const { return wants("cu") || wants("header") || wants_module() || wants("manifest"); }

  bool counts_launches() const {
    for (const std::string_view kind : {"partition", "report", "dot", "svg", "html"})
      if (wants(kind)) return true;
    return wants_table() || !a_.one_kernel.empty() || !a_.explain.empty();
  }

  // A report's launches and memory are those of generated code, where there can be any (not for ops without a launcher)
  // and the model is of a size that somebody would run.
  void count_launches() {
    if (file_nodes_ > kLargestToRun) return;
    try {
      generated_ = pipeline_->generate(planned_, std::max(1u, std::thread::hardware_concurrency()));
    } catch (const Error&) {
      // The report then counts a launch for every group that is more than a view.
    }
  }

  void compile() {
    std::string why;
    if (!nvrtc_) nvrtc_ = Nvrtc::load(&why);
    if (!nvrtc_) {
      warn("the source is not proven to compile: " + why);
      return;
    }
    tell_nvrtc(0, generated_.file.units.size());
    std::vector<CompiledModule> modules = pipeline_->compile(*nvrtc_, generated_);
    proven_ = true;
    cache_use_ = fmt::format("compile cache: {} of {} NVRTC sources were in it",
                             std::ranges::count_if(modules, &CompiledModule::cached), modules.size());
    if (wants("html"))
      for (const CompiledModule& module : modules) resources_.merge(cubin_resources(module.cubin));
    if (wants_module()) module_ = std::move(modules.front());
  }

  void warn(const std::string& text) {
    messages_.emplace_back(KeptResult::Message::kWarning, text);
    if (a_.compile.json) return;
    progress_.erase();
    print_message("warning: {}\n", text);
  }

  void note_idle_patterns() {
    constexpr std::size_t kMost = 8;  // of a collection of patterns most may fit no part of a model
    const std::vector<std::string> idle = idle_patterns(planned_, pipeline_->options());
    for (std::size_t i = 0; i < std::min(idle.size(), kMost); ++i) note(idle[i]);
    if (idle.size() > kMost) note(fmt::format("{} more patterns changed nothing", idle.size() - kMost));
  }

  void note(const std::string& text) {
    messages_.emplace_back(KeptResult::Message::kNote, text);
    if (a_.compile.json || a_.compile.quiet) return;
    progress_.erase();
    print_message("note: {}\n", text);
  }

  // With the kernels that the next source to be compiled has.
  void tell_nvrtc(std::size_t done, std::size_t total) {
    std::vector<std::string> names;
    for (std::size_t k = 0; k < generated_.launch.kernels.size(); ++k)
      if (generated_.file.unit_of[k] == done) names.push_back(generated_.launch.kernels[k].name);
    progress_.set(fmt::format("NVRTC compiles {} of {} sources: {}", std::min(done + 1, total), total,
                              names.empty() ? "the last ones" : fmt::format("{}", fmt::join(names, ", "))));
  }

  // What fusion gains, for the summary and the report.
  void compare() {
    if (compared_ || file_nodes_ > kLargestToRun) return;
    progress_.set("predicting the model unfused");
    pipeline_->timed("predict", [&] {
      compared_ = compared_with_unfused(file_graph_, planned_, launch_plan(), pipeline_->options());
    });
  }

  const LaunchPlan* launch_plan() const { return planned_.report.launches != kNone ? &generated_.launch : nullptr; }

  void require_one_kernel() const {
    for (const std::string& list : a_.one_kernel)
      fusec::require_one_kernel(planned_, generated_.launch, pipeline_->options().patterns, name_list(list));
  }

  void explain() const {
    for (const std::string& list : a_.explain) {
      const std::vector<std::string> names = list == "all" ? std::vector<std::string>() : name_list(list);
      write_output("-", explained(planned_, generated_.launch, pipeline_->options().patterns, names, a_.compile.json));
    }
  }

  std::string content(const std::string& kind) {
    if (kind == "cu") return generated_.file.text;
    if (kind == "header") return emit_header(planned_.source_graph(), generated_.launch);
    if (kind == "ptx") return module_.ptx;
    if (kind == "cubin") return module_.cubin;
    if (kind == "manifest")
      return manifest(planned_.source_graph(), planned_.source_plan(), generated_.launch, pipeline_->options().target);
    if (kind == "partition") return partition_report(planned_.graph, planned_.plan, planned_.report);
    if (kind == "plan") return write_plan(planned_.graph, planned_.plan, planned_.left_out);
    if (kind == "report") {
      compare();
      return compared_ ? cost_report_of(file_graph_, planned_, *compared_, pipeline_->options())
                       : cost_report_of(file_graph_, planned_, launch_plan(), pipeline_->options());
    }
    if (kind == "ledger") return ledger_json(planned_.graph, planned_.kinds, planned_.plan);
    if (kind == "ir") return graph_text(planned_.graph);
    if (kind == "html" && !profile_.empty() && launch_plan()) {
      std::vector<std::string> kernels;
      for (const auto& kernel : generated_.launch.kernels) kernels.push_back(kernel.name);
      require_profile_of(profile_, a_.profile, planned_.graph.name, kernels);
    }
    if (kind == "html")
      return view_page({file_graph_, planned_, launch_plan(), pipeline_->options(), resources_, profile_});
    const std::string dot = to_dot(picture_of(planned_, launch_plan(), pipeline_->options()));
    return kind == "dot" ? dot : to_svg(dot);
  }

  void print_summary(const KeptResult& result, bool was_kept) const {
    const Summary& summary = result.summary;
    const double seconds = seconds_so_far();
    const bool tells_times = pipeline_ && (a_.compile.time_passes || a_.compile.verbose || a_.stats);
    if (a_.compile.json) {
      const auto is_warning = [](const auto& message) { return message.first == KeptResult::Message::kWarning; };
      if (a_.compile.quiet && !tells_times && std::ranges::none_of(messages_, is_warning)) return;
      Outcome outcome{.seconds = seconds, .proven = result.proven, .was_kept = was_kept};
      if (tells_times) outcome.times = pipeline_->times();
      if (a_.stats) outcome.memory = memory_text();
      if (a_.stats) outcome.cache = cache_use_;
      for (const auto& [kind, text] : messages_) outcome.warnings.push_back(text);
      for (const Emission& e : outputs_)
        if (e.path != "-") outcome.wrote.emplace_back(e.kind, e.path);
      return print_message("{}", summary_json(summary, outcome));
    }
    if (tells_times) print_times(pipeline_->times());
    if (a_.compile.quiet) return;
    const std::size_t columns = known_terminal_width();
    const std::string line = fmt::format("{} ({}, {}, {:.0f} ms{})", summary_line(summary), summary.strategy,
                                         summary.arch, seconds * 1e3, was_kept ? ", kept in the compile cache" : "");
    print_message("{}\n", folded(line, columns));
    for (const std::string& text : {memory_text(), cache_use_})
      if (a_.stats && !text.empty()) print_message("{}\n", text);
    const SummaryStyle style{.width = terminal_width(),
                             .line_width = columns,
                             .rows = a_.compile.verbose ? 0 : SummaryStyle{}.rows,
                             .colored = wants_color(a_.compile.color)};
    print_message("{}", launch_table(summary, style));
    for (const Emission& e : outputs_)
      if (e.path != "-")
        print_message("wrote {}{}\n", e.path, e.kind == "cu" && result.proven ? ", compiled by NVRTC" : "");
  }

  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  const FusecArguments& a_;
  std::vector<Emission> outputs_;
  ProgressLine progress_;
  std::optional<Pipeline> pipeline_;  // nothing while kept results may do: it parses the patterns
  std::shared_ptr<const Nvrtc> nvrtc_;
  Graph file_graph_;  // as read, for the report and the table
  PlannedModel planned_;
  GeneratedModel generated_;
  CompiledModule module_;
  std::map<std::string, KernelResources> resources_;  // of the kernels, for the page
  std::string profile_;                               // that is shown there
  std::size_t file_nodes_ = 0;
  std::optional<ComparedModel> compared_;
  decltype(KeptResult::messages) messages_;
  bool proven_ = false;
  std::string cache_use_;  // what --stats says of the compile cache; "" where NVRTC did not run
};

}  // namespace

int run_compilation(const FusecArguments& arguments) {
  auto run = std::make_unique<CompilationRun>(arguments);
  const int status = run->run();
  // Kept to the end of the process: freeing every node would take 2 % of the time.
  static const CompilationRun* const kept = run.release();
  static_cast<void>(kept);
  return status;
}

}  // namespace fusec
