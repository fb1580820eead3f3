// The candidates of a schedule for one kernel, such as GEMM tile sizes or threads per block. The schedule ranks them by
// predicted time. A measured choice from the tuning database (codegen/tuning/tuning_database.h) overrides the ranking.
#pragma once

#include <string>
#include <vector>

namespace fusec {

class ScheduleChoice {
 public:
  // `wanted` is the candidate to take, "" for the best predicted one.
  explicit ScheduleChoice(std::string wanted = "") : wanted_(std::move(wanted)) {}

  // Returns the index of the candidate to take. `candidates` are names, best predicted first. A wanted name that is not
  // among them (written by another version) is ignored; the caller warns. Only the first call honors `wanted`; later
  // calls return the best predicted candidate.
  std::size_t take(std::vector<std::string> candidates);

  const std::vector<std::string>& candidates() const { return candidates_; }

 private:
  std::string wanted_;
  std::vector<std::string> candidates_;
};

}  // namespace fusec
