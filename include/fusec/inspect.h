// Further results of a compilation, computed on request; some take as long as the compilation did. Every function takes
// the result of fusec::compile and may be called from several threads.
#pragma once

#include <string>
#include <vector>

#include "fusec/fusec.h"
#include "fusec/kernel_image.h"

namespace fusec {

// The host interface of the emitted file as a header for C and C++, with how to call it.
std::string host_header(const Compilation& compilation);
// The ledger, JSON: every edge between two groups, with why it was not fused.
std::string ledger(const Compilation& compilation);
// What the cost model predicts, JSON, as Options::report gives it.
std::string cost_report(const Compilation& compilation);
// The graph after the passes, as text.
std::string graph_text(const Compilation& compilation);
// The groups as a picture: Graphviz text, or laid out as SVG, which throws Error(kEnvironment) without Graphviz.
std::string picture_dot(const Compilation& compilation);
std::string picture_svg(const Compilation& compilation);
// The model under all strategies as one page for a browser, as --emit=html writes it.
std::string picture_html(const Compilation& compilation);
// One line of counts: nodes, groups, launches, kernels, workspace.
std::string summary(const Compilation& compilation);

// Why these nodes are, or are not, in one kernel; without names, of all groups. Throws Error(kInput) for a name that no
// node has.
std::string explain(const Compilation& compilation, const std::vector<std::string>& nodes, bool json = false);
// Throws Error(kInput), with the reasons, unless the nodes are in one kernel.
void require_one_kernel(const Compilation& compilation, const std::vector<std::string>& nodes);

// All kernels as one module, compiled anew by NVRTC where the compilation has several.
KernelImage whole_image(const Compilation& compilation);

// Wall time of each stage, in order.
struct StageSeconds {
  std::string stage;
  double seconds = 0;
};
std::vector<StageSeconds> stage_seconds(const Compilation& compilation);

}  // namespace fusec
