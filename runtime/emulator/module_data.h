// The shared data of a Module's copies: the parsed file and the programs decoded from it so far.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "runtime/emulator/program.h"

namespace fusec::emulator {

class ModuleData {
 public:
  explicit ModuleData(PtxModule parsed);
  // Decodes at the first call. Throws Error if the kernel does not exist or cannot be decoded.
  std::shared_ptr<const Program> program(std::string_view kernel);

  PtxModule ptx;
  // Places of the module's variables, by index: an offset in the constant bank, or the number of the region after
  // kModuleWindow.
  std::vector<std::uint64_t> constant_offsets, global_numbers;
  std::vector<Placed> constants;
  std::uint64_t constant_bytes = 0;

 private:
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const Program>, std::less<>> programs_;
};

}  // namespace fusec::emulator
