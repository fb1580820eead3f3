#include "ir/safetensors.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "ir/error.h"

namespace fusec {
namespace {

namespace fs = std::filesystem;

struct TemporaryFile {
  fs::path path = fs::temp_directory_path() / fmt::format("fusec_{}.safetensors", std::random_device{}());
  ~TemporaryFile() { fs::remove(path); }
  std::string bytes() const {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }
  void write(const std::string& text) const { std::ofstream(path, std::ios::binary | std::ios::trunc) << text; }
};

}  // namespace

TEST_CASE("tensors come back as they were written") {
  const TemporaryFile file;
  const std::string halves = "abcdef", doubles = "01234567", nothing;
  write_safetensors(
      file.path.string(),
      {{"h \"1\"\n", {"F16", {3}}, halves}, {"empty", {"F32", {0, 4}}, nothing}, {"d", {"F64", {}}, doubles}});
  const SafetensorsFile read(file.path.string());
  CHECK(read.tensors().size() == 3);
  REQUIRE(read.find("h \"1\"\n"));
  CHECK(read.find("h \"1\"\n")->bytes == halves);
  CHECK(read.find("h \"1\"\n")->type == StoredType{"F16", {3}});
  CHECK(read.find("d")->bytes == doubles);
  CHECK(read.find("empty")->bytes.empty());
  CHECK(read.find("x") == nullptr);
  // Values lie aligned: the data begins at a multiple of 8 and wider elements come first.
  CHECK(file.bytes().find(doubles) % 8 == 0);
}

TEST_CASE("4-bit integers are stored as bytes, 4-bit floats as they are") {
  CHECK(to_string(stored_type(DType::kInt4, {3, 8})) == "U8[3, 4]");
  CHECK(to_string(stored_type(DType::kUInt4, {8})) == "U8[4]");
  CHECK(to_string(stored_type(DType::kFloat4E2M1FN, {3, 8})) == "F4[3, 8]");
  CHECK(to_string(stored_type(DType::kBFloat16, {})) == "BF16[]");
}

TEST_CASE("the corpus' files are read") {
  const SafetensorsFile file(FUSEC_TESTS_DIR "/corpus/models/fmt_consts_f32.weights.safetensors");
  REQUIRE(file.find("layer.w"));
  CHECK(file.find("layer.w")->type == StoredType{"F32", {7, 7}});
}

TEST_CASE("a weight file cut off or changed anywhere is read or refused") {
  const TemporaryFile file;
  write_safetensors(file.path.string(), {{"a", {"F32", {2, 2}}, std::string_view("0123456789abcdef")},
                                         {"b", {"U8", {3}}, std::string_view("xyz")}});
  const std::string good = file.bytes();
  const auto attempt = [&](const std::string& text) {
    file.write(text);
    try {
      const SafetensorsFile read(file.path.string());
      for (const auto& [name, tensor] : read.tensors())  // every byte of every tensor can be touched
        CHECK(std::string(tensor.bytes).size() == tensor.bytes.size());
      return true;
    } catch (const Error&) {
      return false;
    }
  };
  for (std::size_t length = 0; length < good.size(); ++length) CHECK_FALSE(attempt(good.substr(0, length)));
  CHECK_FALSE(attempt(good + "!"));
  std::mt19937 random(11);
  for (int i = 0; i < 3000; ++i) {
    std::string text = good;
    for (unsigned changes = 1 + random() % 2; changes > 0; --changes)
      text[random() % text.size()] =
          random() % 2 ? static_cast<char>(random() % 256) : static_cast<char>('0' + random() % 10);
    attempt(text);
  }
}

TEST_CASE("a file that cannot be written is an error of the environment, and nothing is left") {
  try {
    write_safetensors("/nowhere/at/all.safetensors", {});
    FAIL("written");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kEnvironment);
    CHECK(std::string(error.what()) ==
          "/nowhere/at/all.safetensors: the output cannot be written: No such file or directory");
  }
}

TEST_CASE("a link or a device is written to, not replaced") {
  const TemporaryFile file, link;
  fs::create_symlink(file.path, link.path);
  write_safetensors(link.path.string(), {{"a", {"U8", {3}}, std::string_view("xyz")}});
  CHECK(fs::is_symlink(link.path));
  CHECK(file.bytes().ends_with("xyz"));
  const fs::path pipe = file.path.string() + ".pipe";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  const int reader = open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  REQUIRE(reader != -1);
  write_safetensors(pipe.string(), {{"a", {"U8", {3}}, std::string_view("xyz")}});
  CHECK(fs::is_fifo(pipe));
  std::string content(file.bytes().size() + 1, '\0');
  content.resize(static_cast<std::size_t>(std::max<ssize_t>(0, read(reader, content.data(), content.size()))));
  close(reader);
  fs::remove(pipe);
  CHECK(content == file.bytes());
}

TEST_CASE("a header of many tensors takes time by their number") {
  const auto seconds = [](int count) {
    const TemporaryFile file;
    std::vector<std::string> names;
    for (int i = 0; i < count; ++i) names.push_back("layer." + std::to_string(i) + ".weight");
    const std::string element = "1234";
    std::vector<NamedTensor> tensors;
    for (const std::string& name : names) tensors.push_back({name, {"F32", {1}}, element});
    write_safetensors(file.path.string(), tensors);
    double least = 1e9;
    for (int run = 0; run < 3; ++run) {
      const std::clock_t start = std::clock();
      CHECK(SafetensorsFile(file.path.string()).tensors().size() == names.size());
      least = std::min(least, static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
    }
    return least;
  };
  // Eight times as many: a walk through the header for each took 64 times as long.
  CHECK(seconds(40000) < 24 * seconds(5000));
}

}  // namespace fusec
