#include "fusec/doctor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "codegen/nvrtc/compile_cache.h"
#include "codegen/nvrtc/nvrtc.h"
#include "dot.h"
#include "runtime/cuda_driver.h"

namespace fusec {
namespace {

using State = Finding::State;

std::string name(State state) {
  return state == State::kGood ? "good" : state == State::kMissing ? "missing" : "broken";
}

std::string mebibytes(std::uint64_t bytes) {
  return fmt::format("{} MiB", bytes >> 20);
}

Finding examine_nvrtc(const Options& options, std::shared_ptr<const Nvrtc>& nvrtc) {
  std::string why;
  nvrtc = Nvrtc::load(&why, options.nvrtc_library);
  if (!nvrtc)
    return {"NVRTC", State::kBroken, why,
            "install the CUDA toolkit, or `pip install nvidia-cuda-nvrtc`, or name a libnvrtc.so.13 in FUSEC_NVRTC; "
            "without it CUDA source can be emitted, not compiled"};
  const std::vector<int> known = nvrtc->supported_architectures();
  return {"NVRTC", State::kGood,
          fmt::format("{}.{} in {}, for sm_{}", nvrtc->version().major, nvrtc->version().minor, nvrtc->path(),
                      fmt::join(known, ", sm_")),
          ""};
}

std::string gpu_text(const CudaDriver& driver, int device) {
  int handle = 0;
  char text[256] = {};
  std::size_t bytes = 0;
  driver.check(driver.device_get(&handle, device), "the device");
  driver.check(driver.device_name(text, sizeof text, handle), "its name");
  driver.check(driver.device_memory(&bytes, handle), "its memory");
  return fmt::format("{}: {}, {}, {}", device, text, architecture_of(driver, device), mebibytes(bytes));
}

// Examines one GPU, and whether NVRTC compiles for it.
Finding examine_gpu(const CudaDriver& driver, int device, const Nvrtc* nvrtc) {
  const std::string arch = architecture_of(driver, device);
  const int number = std::atoi(arch.c_str() + 3);
  const std::vector<int> known = nvrtc ? nvrtc->supported_architectures() : std::vector<int>{number};
  Finding finding{"GPU", State::kGood, gpu_text(driver, device), ""};
  if (number < 80)
    finding = {"GPU", State::kMissing, finding.found, "fusec compiles for sm_80 and newer"};
  else if (std::ranges::find(known, number) == known.end())
    finding = {"GPU", State::kMissing, finding.found,
               "this NVRTC does not know " + arch + ": a newer one does, or --arch names an older architecture"};
  return finding;
}

void examine_driver(const Nvrtc* nvrtc, std::vector<Finding>& findings) {
  const std::string advice =
      "only running kernels needs it: models compile, and run on --device=emulator and reference";
  try {
    const CudaDriver& driver = CudaDriver::require("");
    int version = 0, count = 0;
    driver.check(driver.version(&version), "the driver's version");
    driver.check(driver.device_count(&count), "the number of devices");
    findings.push_back(
        {"CUDA driver", State::kGood, fmt::format("for CUDA {}.{}", version / 1000, version % 1000 / 10), ""});
    if (nvrtc && nvrtc->version().major > version / 1000)
      findings.back() = {"CUDA driver", State::kMissing, findings.back().found,
                         fmt::format("NVRTC is of CUDA {}: update the driver, or take an NVRTC of CUDA {}",
                                     nvrtc->version().major, version / 1000)};
    if (count == 0) findings.push_back({"GPU", State::kMissing, "none", advice});
    for (int device = 0; device < count; ++device) findings.push_back(examine_gpu(driver, device, nvrtc));
  } catch (const Error& error) {
    findings.push_back({"CUDA driver", State::kMissing, error.what(), advice});
  }
}

Finding examine_cache(const Options& options) {
  const std::string folder = options.cache_directory.empty() ? default_cache_directory() : options.cache_directory;
  if (folder.empty())
    return {"compile cache", State::kMissing, "no folder: HOME is not set", "name one: --cache-dir=DIR"};
  if (const std::string why = why_not_private(folder); !why.empty())
    return {"compile cache", State::kMissing, fmt::format("{}, to which others can write ({})", folder, why),
            fmt::format("chmod go-w {}, or take another folder: --cache-dir=DIR", folder)};
  if (const std::string why = why_not_usable(folder); !why.empty())
    return {"compile cache", State::kMissing, fmt::format("nothing can be kept in {}: {}", folder, why),
            "take another folder: --cache-dir=DIR"};
  const CacheUse use = cache_use(folder);
  return {"compile cache", State::kGood,
          fmt::format("{}: {} entries, {} of {}", folder, use.entries, mebibytes(use.bytes),
                      mebibytes(options.cache_bytes)),
          ""};
}

Finding examine_graphviz() {
  try {
    require_graphviz();
    return {"Graphviz", State::kGood, "there", ""};
  } catch (const Error&) {
    return {"Graphviz", State::kMissing, "no `dot` program", "install graphviz: pictures (--emit=svg) need it"};
  }
}

}  // namespace

std::vector<Finding> examine(const Options& options) {
  std::vector<Finding> findings = {{"fusec", State::kGood, std::string(version()), ""}};
  std::shared_ptr<const Nvrtc> nvrtc;
  findings.push_back(examine_nvrtc(options, nvrtc));
  examine_driver(nvrtc.get(), findings);
  findings.push_back(examine_cache(options));
  findings.push_back(examine_graphviz());
  return findings;
}

std::string findings_text(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& f : findings) {
    text += fmt::format("{:<8} {:<14} {}\n", name(f.state), f.subject, f.found);
    if (!f.advice.empty()) text += fmt::format("{:<23} {}\n", "", f.advice);
  }
  return text + (can_compile(findings) ? "models can be compiled\n" : "models cannot be compiled\n");
}

std::string findings_json(const std::vector<Finding>& findings) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Finding& f : findings)
    list.push_back({{"subject", f.subject}, {"state", name(f.state)}, {"found", f.found}, {"advice", f.advice}});
  return list.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

bool can_compile(const std::vector<Finding>& findings) {
  return std::ranges::none_of(findings, [](const Finding& f) { return f.state == State::kBroken; });
}

}  // namespace fusec
