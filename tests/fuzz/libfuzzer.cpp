// The libFuzzer target (clang, -DFUSEC_FUZZ=ON): fuzz_ptx CORPUS tests/fuzz/seeds. tests/README.md has the commands.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "fuzz/execute.h"
#include "fuzz/mutate.h"

// NOLINTBEGIN(readability-identifier-naming): names that libFuzzer looks for
extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fusec::emulator::fuzzing::execute_ptx({reinterpret_cast<const char*>(data), size});
  return 0;
}

// Half of the mutations are libFuzzer's own, on bytes; the others know words and lines.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed) {
  std::mt19937 random(seed);
  if (random() % 2 == 0) return LLVMFuzzerMutate(data, size, most);
  const std::string made = fusec::emulator::fuzzing::mutate({reinterpret_cast<const char*>(data), size}, {}, random);
  const std::size_t kept = std::min(made.size(), most);
  std::copy_n(made.begin(), kept, data);
  return kept;
}

// Lines of one input move into another.
extern "C" std::size_t LLVMFuzzerCustomCrossOver(const std::uint8_t* one, std::size_t one_size,
                                                 const std::uint8_t* other, std::size_t other_size, std::uint8_t* out,
                                                 std::size_t most, unsigned seed) {
  std::mt19937 random(seed);
  const std::string made =
      fusec::emulator::fuzzing::mutate({reinterpret_cast<const char*>(one), one_size},
                                       {std::string(reinterpret_cast<const char*>(other), other_size)}, random);
  const std::size_t kept = std::min(made.size(), most);
  std::copy_n(made.begin(), kept, out);
  return kept;
}
// NOLINTEND(readability-identifier-naming)
