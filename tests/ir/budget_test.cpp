#include "ir/budget.h"

#include <doctest/doctest.h>

#include <thread>
#include <vector>

#include "ir/error.h"
#include "ir/mapped_file.h"

namespace fusec {
namespace {

std::string error_of_steps(const ResourceLimits& limits, std::int64_t steps) {
  Budget budget(limits);
  const BudgetScope scope(&budget);
  enter_stage("counting");
  try {
    for (std::int64_t i = 0; i < steps; ++i) count_step();
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kInput);
    return error.what();
  }
  return "";
}

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("steps without a budget, and within one, pass") {
  for (int i = 0; i < 1000; ++i) count_step();
  CHECK(error_of_steps({}, 1000) == "");
  CHECK(error_of_steps({.seconds = 3600, .memory_bytes = std::int64_t{1} << 50}, 1000) == "");
}

TEST_CASE("a limit that is exceeded ends the steps, and the error names limit, stage and option") {
  const std::string late = error_of_steps({.seconds = 1e-9}, 1000);
  CHECK(contains(late, "time limit"));
  CHECK(contains(late, "counting"));
  CHECK(contains(late, "--timeout"));
  CHECK(contains(late, "at most 1e-09 s"));
}

TEST_CASE("memory counts from the budget's beginning, in a program from nothing") {
  CHECK(error_of_steps({.memory_bytes = std::int64_t{64} << 20}, 1000) == "");
  Budget budget({.memory_bytes = 1 << 20}, Budget::Memory::kOfProcess);
  CHECK_THROWS_WITH_AS(budget.require(), doctest::Contains("memory limit is exceeded"), Error);
}

TEST_CASE("a block beyond the limit is refused before it is taken") {
  Budget budget({.memory_bytes = std::int64_t{64} << 20});
  const BudgetScope scope(&budget);
  require_memory(std::size_t{16} << 20);
  CHECK_THROWS_WITH_AS(require_memory(std::size_t{1} << 40), doctest::Contains("memory limit is exceeded"), Error);
  CHECK_THROWS_AS(look_at_budget(), Error);  // from now on
}

TEST_CASE("once a limit is exceeded every step throws, in every thread of the budget") {
  Budget budget({.seconds = 1e-9});
  int thrown = 0;
  const auto work = [&] {
    const BudgetScope scope(&budget);
    for (int i = 0; i < 200; ++i) try {
        count_step();
      } catch (const Error&) {
        ++thrown;
      }
  };
  std::thread(work).join();
  CHECK(thrown == 137);  // the first look is at the 64th step
  work();
  CHECK(thrown == 2 * 137);
  count_step();  // this thread has no budget now
}

TEST_CASE("a scope within another gives the budget back") {
  Budget outer({.seconds = 3600}), inner({.seconds = 1800});
  const BudgetScope scope(&outer);
  {
    const BudgetScope nested(&inner);
    CHECK(current_budget() == &inner);
  }
  CHECK(current_budget() == &outer);
}

TEST_CASE("limits below zero are refused") {
  CHECK_THROWS_AS(Budget({.seconds = -1}), Error);
  CHECK_THROWS_AS(Budget({.seconds = std::numeric_limits<double>::quiet_NaN()}), Error);
  CHECK_THROWS_AS(Budget({.memory_bytes = -1}), Error);
  CHECK_THROWS_AS(Budget({.file_bytes = -1}), Error);
}

TEST_CASE("a file without an end is read up to the limit") {
  Budget budget({.file_bytes = 100000});
  const BudgetScope scope(&budget);
  CHECK_THROWS_WITH_AS(read_text_file("/dev/zero"), doctest::Contains("larger than the limit"), Error);
  CHECK_THROWS_WITH_AS(MappedFile("/dev/zero"), doctest::Contains("--max-file-size"), Error);
  CHECK(read_text_file("/dev/null") == "");
}

}  // namespace fusec
