#include "fusec/inspect.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "boundary.h"
#include "codegen/host/emit_header.h"
#include "compilation_details.h"
#include "dot.h"
#include "explanations.h"
#include "fusec/module.h"
#include "ir/text.h"
#include "model_cost.h"
#include "summary.h"
#include "transforms/explain_print.h"
#include "view_page.h"

namespace fusec {
namespace {

const CompilationDetails& details_of(const Compilation& compilation) {
  if (!compilation.details) throw Error(ErrorKind::kUsage, "this Compilation is not what fusec::compile returned");
  return *compilation.details;
}

}  // namespace

std::string host_header(const Compilation& compilation) {
  const CompilationDetails& d = details_of(compilation);
  return at_boundary([&] { return emit_header(d.planned.source_graph(), d.generated.launch); });
}

std::string ledger(const Compilation& compilation) {
  const PlannedModel& p = details_of(compilation).planned;
  return at_boundary([&] { return ledger_json(p.graph, p.kinds, p.plan); });
}

std::string cost_report(const Compilation& compilation) {
  if (!compilation.report.empty()) return compilation.report;
  const CompilationDetails& d = details_of(compilation);
  return at_boundary([&] { return cost_report_of(d.graph, d.planned, &d.generated.launch, d.options); });
}

std::string graph_text(const Compilation& compilation) {
  return graph_text(details_of(compilation).planned.graph);
}

std::string picture_dot(const Compilation& compilation) {
  const CompilationDetails& d = details_of(compilation);
  return at_boundary([&] { return to_dot(picture_of(d.planned, &d.generated.launch, d.options)); });
}

std::string picture_svg(const Compilation& compilation) {
  return to_svg(picture_dot(compilation));
}

std::string picture_html(const Compilation& compilation) {
  const CompilationDetails& d = details_of(compilation);
  return at_boundary([&] {
    std::map<std::string, KernelResources> resources;
    for (const KernelImage& image : images_of(compilation))
      if (image.cubin && !image.cubin->empty()) resources.merge(cubin_resources(*image.cubin));
    return view_page({d.graph, d.planned, &d.generated.launch, d.options, std::move(resources)});
  });
}

std::string summary(const Compilation& compilation) {
  const CompilationDetails& d = details_of(compilation);
  return summary_line(summarize(d.planned, &d.generated.launch, nullptr, d.graph.nodes.size(), d.options.target));
}

std::string explain(const Compilation& compilation, const std::vector<std::string>& nodes, bool json) {
  const CompilationDetails& d = details_of(compilation);
  return at_boundary([&] { return explained(d.planned, d.generated.launch, d.options.patterns, nodes, json); });
}

void require_one_kernel(const Compilation& compilation, const std::vector<std::string>& nodes) {
  const CompilationDetails& d = details_of(compilation);
  at_boundary([&] { require_one_kernel(d.planned, d.generated.launch, d.options.patterns, nodes); });
}

KernelImage whole_image(const Compilation& compilation) {
  const std::vector<KernelImage> images = images_of(compilation);
  if (images.size() == 1) return images.front();
  const CompilationDetails& d = details_of(compilation);
  if (!d.nvrtc)
    throw Error(ErrorKind::kUsage, Error::Parts{.what = "nothing was compiled", .hint = "compile with Options::ptx"});
  return at_boundary([&] {
    Pipeline pipeline(d.options);
    PlannedModel planned = d.planned;
    CompiledModule module = std::move(pipeline.compile(*d.nvrtc, pipeline.generate(planned, 1)).front());
    return KernelImage{std::make_shared<const std::string>(std::move(module.ptx)),
                       std::make_shared<const std::string>(std::move(module.cubin))};
  });
}

std::vector<StageSeconds> stage_seconds(const Compilation& compilation) {
  std::vector<StageSeconds> list;
  for (const StageTime& time : details_of(compilation).times) list.push_back({time.name, time.seconds});
  return list;
}

}  // namespace fusec
