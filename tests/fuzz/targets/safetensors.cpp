// Files of tensors. An input that begins with a brace is a header whose length is put before it, so that mutations of
// the header alone are not all refused for their length.
#include "ir/safetensors.h"

#include <cstring>
#include <numeric>

#include "fuzz/input_pipe.h"
#include "fuzz/seed_files.h"
#include "fuzz/target.h"

namespace fusec::fuzzing {
namespace {

constexpr std::size_t kDataBytes = 4096;

std::string with_length(std::string_view header) {
  const std::uint64_t length = header.size();
  std::string file(sizeof length, '\0');
  std::memcpy(file.data(), &length, sizeof length);
  return file + std::string(header) + std::string(kDataBytes, '\1');
}

std::string header_of(const std::string& file) {
  std::uint64_t length;
  std::memcpy(&length, file.data(), sizeof length);
  return file.substr(sizeof length, length);
}

}  // namespace

bool execute(std::string_view input) {
  const std::string file = input.starts_with('{') ? with_length(input) : std::string(input);
  if (file.size() > InputPipe::kMost) return false;
  const InputPipe pipe(file);
  const SafetensorsFile read(pipe.path());
  // Every byte that is handed out can be read.
  volatile std::uint64_t sum = 0;
  for (const auto& [name, tensor] : read.tensors())
    sum = sum + std::accumulate(tensor.bytes.begin(), tensor.bytes.end(), std::uint64_t{name.size()});
  return true;
}

std::vector<std::string> seeds() {
  std::vector<std::string> all = files_of("tests/corpus/models", ".safetensors", 3000);
  const std::size_t files = all.size();
  for (std::size_t i = 0; i < files; ++i) all.push_back(header_of(all[i]));
  return all;
}

}  // namespace fusec::fuzzing
