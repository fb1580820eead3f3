// The summary of a compiled model on standard error. Counts of groups, launches and kernels differ, so each is named:
//
//   mlp: 5 nodes in 2 groups; 2 launches a run (2 kernels, and 6 variants for other sizes); workspace 45.1 MB
//
//     kernel                   nodes                    bytes  predicted  unfused  share
//     fused_linear_silu_mul    gate, act, up, h        242 MB     1.34 ms  1.71 ms   67 %
//     linear                   y                       153 MB      664 us   664 us   33 %
//
//   predicted on A100 SXM 40GB at tokens = 2048: 2.0 ms in 2 launches, 395 MB moved
//   each operator alone:                         2.4 ms in 5 launches, 575 MB moved; fused is 1.2 times as fast
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "model_cost.h"
#include "pipeline.h"

namespace fusec {

// A group with at least one launch.
struct LaunchRow {
  std::string kernel;  // the group's first kernel at the hints of the symbols
  std::vector<std::string> nodes;
  Prediction fused, unfused;
};

struct Summary {
  std::string model, strategy, arch, chip;
  std::string symbols;  // "tokens = 2048, heads = 32"
  std::size_t nodes = 0, groups = 0, prepared_groups = 0;
  bool has_launches = false;  // the next members are known
  std::string remarks;        // groups without a launch or with several, and copies
  std::size_t launches = 0, kernels = 0, variants = 0, prepare_launches = 0;
  std::int64_t workspace_bytes = 0;
  bool has_cost = false;  // the next members are known
  std::vector<LaunchRow> rows;
  Prediction total, unfused;
  Prediction unfused_elsewhere;  // nodes in no row: prepared, folded, dropped, views
};

// `launch` is null if no source was generated, `compared` if nothing was predicted.
Summary summarize(const PlannedModel& planned, const LaunchPlan* launch, const ComparedModel* compared,
                  std::size_t file_nodes, const Target& target);

struct SummaryStyle {
  std::size_t width = 100;
  std::size_t line_width = 0;  // of the lines below the table; 0: as long as they are
  std::size_t rows = 12;       // most rows, those with the longest times; 0: all
  bool colored = false;
};

// Text in lines of at most `width` columns where a separator or else a blank allows it; 0 for one line.
std::string folded(const std::string& text, std::size_t width);

std::string summary_line(const Summary& summary);  // without the compile time
std::string launch_table(const Summary& summary, const SummaryStyle& style);

struct Outcome {
  double seconds = 0;
  bool proven = false;    // compiled by NVRTC
  bool was_kept = false;  // the results come from the compile cache
  std::vector<std::string> warnings = {};
  std::vector<std::pair<std::string, std::string>> wrote = {};  // kinds and files of outputs
  std::vector<StageTime> times = {};                            // where they are asked for
  std::string memory = {}, cache = {};                          // what --stats says of them
};
std::string summary_json(const Summary& summary, const Outcome& outcome);

std::string time_text(double seconds);  // "512 us", "1.34 ms"
std::string bytes_text(double bytes);   // "242 MB"

}  // namespace fusec
