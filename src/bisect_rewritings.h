// --bisect, where the command fails without any fusion: which rewriting of the graph is to blame? Passes and recognized
// patterns are switched off, the last ones first, until one is found with which the command fails and without which it
// passes.
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

// Those of a compilation with these options, in the order in which they run.
std::vector<Rewriting> rewritings_of(const PipelineOptions& options);

// All but the first so many.
LeftOut without_last(const std::vector<Rewriting>& rewritings, std::size_t kept);

struct RewritingFound {
  bool fails_with_none = false;  // then no rewriting is to blame
  std::size_t culprit = 0;       // with it and those before it the command fails, without it it passes
  std::size_t tests = 0;
};

// Known: with all it fails. `passes` is asked about what is left out.
RewritingFound find_culprit(const std::vector<Rewriting>& rewritings,
                            const std::function<bool(const LeftOut&)>& passes);

// The nodes that one graph has and the other has not, by the file's nodes that each stands for.
std::vector<std::vector<std::string>> made_by(const PlannedModel& with, const PlannedModel& without);

}  // namespace fusec
