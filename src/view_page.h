// --emit=html: one file that shows a compiled model in a browser, without a network. It holds the page and its
// libraries (src/view, third_party) and the data of all three strategies: the same JSON that --emit=partition, report
// and ledger write, with launches, kernels, memory and repeated blocks beside it (src/view_data.cpp says in which
// form).
#pragma once

#include <map>
#include <string>

#include "pipeline.h"
#include "runtime/cubin_resources.h"

namespace fusec {

struct ViewedModel {
  const Graph& file;            // as it was read
  const PlannedModel& planned;  // as it was asked for
  const LaunchPlan* launch;     // of that; null where no source can be made
  const PipelineOptions& options;
  std::map<std::string, KernelResources> resources;  // of its kernels, where they were compiled
  std::string profile = "";                          // what `fusec-run --profile=FILE --json` wrote, or nothing
};

// Plans the model under the other two strategies, too.
std::string view_data(const ViewedModel& model);

std::string view_page(const ViewedModel& model);

}  // namespace fusec
