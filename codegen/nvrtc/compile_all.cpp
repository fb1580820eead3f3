#include "codegen/nvrtc/compile_all.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <string_view>
#include <thread>
#include <unordered_map>

#include "codegen/nvrtc/nvrtc_process.h"
#include "ir/threads.h"

namespace fusec {
namespace {

// By source: the index of the first equal source.
std::vector<std::size_t> first_equal(const std::vector<std::string>& sources) {
  std::unordered_map<std::string_view, std::size_t> first_of;
  std::vector<std::size_t> first;
  for (const std::string& source : sources) first.push_back(first_of.emplace(source, first.size()).first->second);
  return first;
}

std::size_t job_count(int wanted) {
  return wanted > 0 ? static_cast<std::size_t>(wanted) : std::max(1u, std::thread::hardware_concurrency());
}

// The part of the cache key that is not the source: compiler, architecture and kind of result.
std::string conditions(const Nvrtc& nvrtc, const std::string& arch, CubinUse cubin) {
  return nvrtc.identity() + "\n" + arch + (cubin == CubinUse::kProof ? " proof\n" : "\n");
}

}  // namespace

std::vector<CompiledModule> compile_all(const Nvrtc& nvrtc, const std::vector<std::string>& sources,
                                        const std::string& arch, const CompileOptions& options) {
  const std::vector<std::size_t> first = first_equal(sources);
  std::vector<std::size_t> distinct;
  for (std::size_t i = 0; i < sources.size(); ++i)
    if (first[i] == i) distinct.push_back(i);
  std::vector<CompiledModule> modules(sources.size());
  std::vector<std::exception_ptr> failures(sources.size());
  CompileCache cache(options.cache_directory, options.cache_bytes);
  const std::string wanted = conditions(nvrtc, arch, options.cubin);
  const std::string better = conditions(nvrtc, arch, CubinUse::kRun);  // a module to run also serves as a proof
  const auto find = [&](const std::string& key, CompiledModule& module) {
    auto parts = cache.find(key);
    if (!parts || parts->size() != 3) return false;
    module = {std::move((*parts)[0]), std::move((*parts)[1]), std::move((*parts)[2]), true};
    return true;
  };
  const auto compile = [&](NvrtcProcess& process, std::size_t i) {
    CompiledModule& module = modules[i];
    if (find(wanted + sources[i], module)) return;
    if (better != wanted && find(better + sources[i], module)) return;
    module = process.compile(sources[i], arch, options.cubin);
    const std::string_view parts[] = {module.ptx, module.cubin, module.log};
    cache.keep(wanted + sources[i], parts);
  };
  std::mutex telling;
  std::size_t done = 0;
  const auto tell = [&] {
    const std::scoped_lock lock(telling);
    options.progress(++done, distinct.size());
  };
  std::atomic<std::size_t> next{0};
  in_threads(std::min(job_count(options.jobs), distinct.size()), [&](std::size_t) {
    NvrtcProcess process(nvrtc);
    for (std::size_t k = next++; k < distinct.size(); k = next++) {
      const std::size_t i = distinct[k];
      try {
        compile(process, i);
        if (options.progress) tell();
      } catch (...) {
        failures[i] = std::current_exception();
        next = distinct.size();
      }
    }
  });
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
  for (std::size_t i = 0; i < sources.size(); ++i)
    if (first[i] != i) modules[i] = modules[first[i]];
  return modules;
}

}  // namespace fusec
