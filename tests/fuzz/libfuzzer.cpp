// The libFuzzer driver of a target (clang, -DFUSEC_FUZZ=ON): fuzz_NAME --write-seeds=DIR, then fuzz_NAME [FLAGS] DIR,
// as scripts/fuzz.sh calls it.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "fusec/error.h"
#include "fuzz/mutate.h"
#include "fuzz/target.h"

namespace {

std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

std::size_t store(const std::string& made, std::uint8_t* out, std::size_t most) {
  const std::size_t kept = std::min(made.size(), most);
  std::copy_n(made.begin(), kept, out);
  return kept;
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): names that libFuzzer looks for
extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  constexpr std::string_view kFlag = "--write-seeds=";
  const std::string_view first = *argc > 1 ? (*argv)[1] : "";
  if (!first.starts_with(kFlag)) return 0;
  const std::filesystem::path folder(first.substr(kFlag.size()));
  int number = 0;
  for (const std::string& seed : fusec::fuzzing::seeds())
    std::ofstream(folder / ("seed" + std::to_string(number++)), std::ios::binary) << seed;
  std::exit(number == 0 ? 1 : 0);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    fusec::fuzzing::execute(text_of(data, size));
  } catch (const fusec::Error&) {
  }
  return 0;
}

// Half of the mutations are libFuzzer's own, on bytes; the others know words and lines.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed) {
  std::mt19937 random(seed);
  if (random() % 2 == 0) return LLVMFuzzerMutate(data, size, most);
  return store(fusec::fuzzing::mutate(std::string(text_of(data, size)), {}, random), data, most);
}

// Pieces of one input move into another.
extern "C" std::size_t LLVMFuzzerCustomCrossOver(const std::uint8_t* one, std::size_t one_size,
                                                 const std::uint8_t* other, std::size_t other_size, std::uint8_t* out,
                                                 std::size_t most, unsigned seed) {
  std::mt19937 random(seed);
  const std::string made =
      fusec::fuzzing::mutate(std::string(text_of(one, one_size)), {std::string(text_of(other, other_size))}, random);
  return store(made, out, most);
}
// NOLINTEND(readability-identifier-naming)
