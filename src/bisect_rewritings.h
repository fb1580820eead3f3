// For --bisect, when the command fails even without fusion: finds the graph rewriting that makes it fail. A binary
// search keeps the first k passes and recognized patterns and disables the rest.
//
//   fold-constants, simplify-algebra, softmax, gelu, ..., sink-split     all: fails   none: passes   ->   softmax
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "pipeline.h"

namespace fusec {

struct Rewriting {
  std::string name;
  bool is_pattern = false;
};

// The rewritings of a compilation with these options, in the order in which they run.
std::vector<Rewriting> rewritings_of(const PipelineOptions& options);

// Disables all but the first `kept` rewritings.
LeftOut without_last(const std::vector<Rewriting>& rewritings, std::size_t kept);

struct RewritingFound {
  bool fails_with_none = false;  // no rewriting is to blame
  std::size_t culprit = 0;       // fails with rewritings 0 .. culprit, passes with those before culprit
  std::size_t tests = 0;
};

// The command must fail with all rewritings. `passes` runs it with some disabled.
RewritingFound find_culprit(const std::vector<Rewriting>& rewritings,
                            const std::function<bool(const LeftOut&)>& passes);

// Nodes of `with` that `without` lacks. Each is given as its op and the file's nodes that it stands for.
std::vector<std::vector<std::string>> made_by(const PlannedModel& with, const PlannedModel& without);

}  // namespace fusec
