// examples/host.cu with the file and header that fusec emits for examples/gated.ir, compiled by nvcc, its main run with
// the emulator as the CUDA device.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "emulator/emulated_library.h"
#include "fusec/inspect.h"

using namespace fusec::emulator::testing;

TEST_CASE("a CUDA program links an emitted file and runs it") {
  const std::string examples = FUSEC_EXAMPLES_DIR;
  const fusec::Compilation made = fusec::compile(fusec::Model::read(examples + "/gated.ir"));
  const auto folder = std::filesystem::temp_directory_path() / ("fusec_host_example_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "out.cu") << made.source;
  std::ofstream(folder / "gated.h") << fusec::host_header(made);
  {
    Library program(compile_library({(folder / "out.cu").string(), examples + "/host.cu"}, folder.string(), "80"));
    if (!program.missing()) program.call("main");
  }
  std::filesystem::remove_all(folder);
}
