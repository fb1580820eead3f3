#include "codegen/nvrtc/nvrtc_search_paths.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>

#include "codegen/nvrtc/nvrtc.h"

using namespace fusec;

namespace {

// An environment variable with a value, or without one, as long as this lives.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* const before = std::getenv(name)) before_ = before, was_set_ = true;
    value ? setenv(name, value, 1) : unsetenv(name);
  }
  ~Variable() { was_set_ ? setenv(name_, before_.c_str(), 1) : unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::string before_;
  bool was_set_ = false;
};

}  // namespace

TEST_SUITE("where NVRTC is looked for") {
  TEST_CASE("every place is an absolute path, or a name for the loader's path") {
    const Variable given("FUSEC_NVRTC", nullptr), home("CUDA_HOME", "toolkit"), path("CUDA_PATH", "/opt/toolkit");
    const auto places = nvrtc_search_paths("").paths;
    REQUIRE_FALSE(places.empty());
    for (const std::string& place : places) CHECK((place.front() == '/' || place.find('/') == std::string::npos));
    CHECK(std::ranges::find(places, "/opt/toolkit/lib64/libnvrtc.so.13") != places.end());
  }

  TEST_CASE("what is chosen is the only place, the environment before the program") {
    {
      const Variable given("FUSEC_NVRTC", nullptr);
      CHECK(nvrtc_search_paths("/x/libnvrtc.so").paths == std::vector<std::string>{"/x/libnvrtc.so"});
    }
    const Variable given("FUSEC_NVRTC", "/y/libnvrtc.so");
    CHECK(nvrtc_search_paths("/x/libnvrtc.so").paths == std::vector<std::string>{"/y/libnvrtc.so"});
    CHECK(nvrtc_search_paths("").chosen_by == "FUSEC_NVRTC");
  }

  TEST_CASE("a wrong choice is said to be one") {
    std::string why;
    const auto wrong = [&why](const char* path, const char* chosen) {
      const Variable given("FUSEC_NVRTC", path);
      CHECK(Nvrtc::load(&why, chosen) == nullptr);
      return why;
    };
    CHECK(wrong("/no/such.so", "").find("FUSEC_NVRTC names no NVRTC: found \"/no/such.so\"") == 0);
    CHECK(wrong("./x.so", "").find("counts from the working directory") != std::string::npos);
    CHECK(wrong("/etc/passwd", "").find("FUSEC_NVRTC names no NVRTC") == 0);
    CHECK(wrong("libm.so.6", "").find("it has no nvrtc") != std::string::npos);
    CHECK(wrong(nullptr, "x/y.so").find("the option nvrtc_library names no NVRTC") == 0);
  }
}
