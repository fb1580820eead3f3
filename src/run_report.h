// What fusec-run tells of a run: lines as they come, or under --json one object when it ends.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "pipeline.h"
#include "runtime/compare_outputs.h"
#include "tune.h"

namespace fusec {

class RunReport {
 public:
  RunReport(bool json, bool quiet, std::string device);
  ~RunReport();
  RunReport(const RunReport&) = delete;
  RunReport& operator=(const RunReport&) = delete;

  void warning(const std::string& text);
  void finding(const std::string& text);  // of the emulator
  void hint(const std::string& text);     // on why outputs differ
  void times(const std::vector<StageTime>& times);
  void bench(const std::vector<double>& seconds);  // sorted, not empty
  void tuning(const TuningResult& result, const std::string& note);
  void compared(const Comparison& comparison, const std::string& with);
  // The first node whose values differ from the reference's.
  void wrong_node(const std::string& node, const std::string& group, bool inside, const Difference& difference);

  // Tells the end of the run. `file` is the file of the outputs, or "".
  void finish(bool good, std::size_t outputs, const std::string& file);
  void finish(bool good);  // of a run without outputs to tell of

 private:
  bool json_, quiet_;
  std::string device_;
  std::string told_;  // what the outputs were compared with
  struct Facts;
  std::unique_ptr<Facts> facts_;  // under --json
};

}  // namespace fusec
