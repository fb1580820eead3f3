#include "codegen/nvrtc/compile_all.h"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>

#include "codegen/nvrtc/nvrtc_process.h"
#include "ir/budget.h"
#include "ir/error.h"

using namespace fusec;

namespace {

// FUSEC_NVRTC and what the stand-in does (tests/environment/stand_in_nvrtc.cpp), as long as this lives.
class StandIn {
 public:
  explicit StandIn(const char* variable = "", const char* value = "") : variable_(variable) {
    if (const char* const before = std::getenv("FUSEC_NVRTC")) before_ = before;
    setenv("FUSEC_NVRTC", FUSEC_STAND_IN_NVRTC, 1);
    if (*variable) setenv(variable, value, 1);
    nvrtc = Nvrtc::require();
  }
  ~StandIn() {
    before_.empty() ? unsetenv("FUSEC_NVRTC") : setenv("FUSEC_NVRTC", before_.c_str(), 1);
    if (!variable_.empty()) unsetenv(variable_.c_str());
  }
  StandIn(const StandIn&) = delete;
  StandIn& operator=(const StandIn&) = delete;

  std::shared_ptr<const Nvrtc> nvrtc;

 private:
  std::string variable_, before_;
};

std::atomic<int> interrupts{0};

void count_interrupt(int) {
  ++interrupts;
}

}  // namespace

TEST_SUITE("compile all") {
  TEST_CASE("sources come back in order, equal ones alike") {
    const StandIn stand_in;
    std::vector<std::string> sources;
    for (int i = 0; i < 20; ++i) sources.push_back("source " + std::to_string(i % 7));
    const auto modules = compile_all(*stand_in.nvrtc, sources, "sm_80", {.jobs = 4});
    REQUIRE(modules.size() == sources.size());
    for (std::size_t i = 0; i < sources.size(); ++i) {
      const CompiledModule alone = stand_in.nvrtc->compile(sources[i], "out.cu", "sm_80");
      CHECK(modules[i].ptx == alone.ptx);
      CHECK(modules[i].cubin == alone.cubin);
    }
  }

  TEST_CASE("while NVRTC works, the program's handlers of signals stay, and are called") {
    const StandIn stand_in("STAND_IN_MS", "300");
    struct sigaction own {
    }, interrupt_before{}, terminate_before{}, now{};
    own.sa_handler = count_interrupt;
    sigaction(SIGINT, &own, &interrupt_before);
    sigaction(SIGTERM, &own, &terminate_before);
    interrupts = 0;
    std::atomic<bool> done{false};
    std::vector<CompiledModule> modules;
    std::thread compiling([&] {
      modules = compile_all(*stand_in.nvrtc, {"a", "b"}, "sm_80", {.jobs = 2});
      done = true;
    });
    int sent = 0, replaced = 0;
    while (!done) {
      for (const int signal : {SIGINT, SIGTERM}) {
        sigaction(signal, nullptr, &now);
        replaced += now.sa_handler != count_interrupt;
        raise(signal);
        ++sent;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    compiling.join();
    sigaction(SIGINT, &interrupt_before, nullptr);
    sigaction(SIGTERM, &terminate_before, nullptr);
    CHECK(sent >= 10);
    CHECK(interrupts == sent);
    CHECK(replaced == 0);
    CHECK(modules.size() == 2);
  }

  TEST_CASE("where NVRTC aborts, that is an error, and the next source is compiled") {
    {
      const StandIn stand_in("STAND_IN_ABORT", "1");
      CHECK_THROWS_WITH_AS(compile_all(*stand_in.nvrtc, {"a"}, "sm_80", {}),
                           doctest::Contains("LLVM ERROR: out of memory"), Error);
    }
    const StandIn stand_in;
    NvrtcProcess process(*stand_in.nvrtc);
    setenv("STAND_IN_ABORT", "1", 1);
    CHECK_THROWS_AS(process.compile("a", "sm_80", CubinUse::kRun), Error);
    unsetenv("STAND_IN_ABORT");
    CHECK(process.compile("a", "sm_80", CubinUse::kRun).ptx == stand_in.nvrtc->compile("a", "out.cu", "sm_80").ptx);
  }

  TEST_CASE("past the caller's time limit NVRTC's processes are ended, in every thread") {
    const StandIn stand_in("STAND_IN_MS", "20000");
    Budget budget({.seconds = 0.1});
    const BudgetScope scope(&budget);
    const auto start = std::chrono::steady_clock::now();
    CHECK_THROWS_WITH_AS(compile_all(*stand_in.nvrtc, {"a", "b", "c"}, "sm_80", {.jobs = 2}),
                         doctest::Contains("the time limit is exceeded"), Error);
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(10));
  }

  TEST_CASE("a program whose children are reaped without it compiles, too") {
    const StandIn stand_in;
    struct sigaction ignore {
    }, before{};
    ignore.sa_handler = SIG_IGN;
    sigaction(SIGCHLD, &ignore, &before);
    CHECK(compile_all(*stand_in.nvrtc, {"a", "b", "c"}, "sm_80", {.jobs = 2}).size() == 3);
    sigaction(SIGCHLD, &before, nullptr);
  }
}
