// The ways that a schedule may go with one kernel: tiles of a product, threads of a block. The schedule ranks them by
// what it predicts; where the tuning database has measured (codegen/tuning/tuning_database.h), that decides instead.
#pragma once

#include <string>
#include <vector>

namespace fusec {

class ScheduleChoice {
 public:
  // `wanted` is the way to go, "" for the one that is predicted to be best.
  explicit ScheduleChoice(std::string wanted = "") : wanted_(std::move(wanted)) {}

  // The index of the way to go. `ways` are names, the best first as predicted; a wanted one that is not among them
  // (written by another version) counts for nothing, which its caller warns of. A schedule that asks again goes as
  // predicted.
  std::size_t take(std::vector<std::string> candidates);

  const std::vector<std::string>& candidates() const { return candidates_; }

 private:
  std::string wanted_;
  std::vector<std::string> candidates_;
};

}  // namespace fusec
