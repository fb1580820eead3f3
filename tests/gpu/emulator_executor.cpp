#include <stdexcept>

#include "gpu/launch.h"
#include "runtime/emulator/emulator.h"

namespace fusec::gpu_test {
namespace {

class EmulatorExecutor : public Executor {
 public:
  std::string name() const override { return "emulator"; }
  int capability() const override { return 90; }

  std::vector<std::uint32_t> run(const TestLaunch& launch) override {
    const emulator::Module module(launch.ptx, "gpu_test.ptx");
    std::vector<std::uint32_t> in = launch.in, out(launch.out_words);
    emulator::Memory memory;
    const auto in_id = memory.add({.name = "in", .bytes = std::as_writable_bytes(std::span(in)), .writable = false});
    const auto out_id = memory.add({.name = "out", .bytes = std::as_writable_bytes(std::span(out))});
    const emulator::Report report = emulator::run(
        module,
        {.kernel = "k",
         .grid = {launch.blocks},
         .block = {launch.threads},
         .arguments = {emulator::pointer_argument(memory, in_id), emulator::pointer_argument(memory, out_id)}},
        memory);
    if (!report.findings.empty()) throw std::runtime_error(emulator::describe(report));
    return out;
  }
};

}  // namespace

std::unique_ptr<Executor> emulator_executor() {
  return std::make_unique<EmulatorExecutor>();
}

}  // namespace fusec::gpu_test
