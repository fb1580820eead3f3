// A shared object of kernels and their host code whose CUDA runtime (kernels/emulated_runtime.cu) is the emulator.
#pragma once

#include <dlfcn.h>
#include <doctest/doctest.h>

#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "emulator/compile.h"
#include "emulator/kernels/emulated_runtime.h"
#include "runtime/emulator/emulator.h"

namespace fusec::emulator::testing {

// A shared object with its PTX, and a device of its own.
class Library {
 public:
  // None: nvcc is missing.
  explicit Library(std::optional<CompiledLibrary> compiled) : compiled_(std::move(compiled)) {
    if (!compiled_) return;
    module_ = std::make_unique<Module>(compiled_->ptx, "kernels");
    handle_ = dlopen(compiled_->path.c_str(), RTLD_NOW | RTLD_LOCAL);
    const std::string why = handle_ == nullptr ? dlerror() : "";
    INFO(why);
    REQUIRE(handle_ != nullptr);
    device_ = {.owner = this,
               .allocate = allocate,
               .fill = fill,
               .copy = copy,
               .to_device = to_device,
               .to_host = to_host,
               .launch = launch};
    find<void(const EmulatedDevice*)>("use_emulated_device")(&device_);
  }
  ~Library() {
    if (handle_ != nullptr) dlclose(handle_);
  }
  bool missing() const { return handle_ == nullptr; }

  template <class T>
  T* input(std::vector<T>& values) {
    return static_cast<T*>(add(std::as_writable_bytes(std::span(values)), true));
  }
  template <class T>
  T* output(std::vector<T>& values) {
    return static_cast<T*>(add(std::as_writable_bytes(std::span(values)), false));
  }

  template <class... Arguments>
  void call(const char* function, Arguments... arguments) {
    CAPTURE(function);
    launches_ = 0;
    const int status = find<int(Arguments...)>(function)(arguments...);
    CHECK(status == 0);
    CHECK(launches_ > 0);
  }

  int host_threads = 1;

 private:
  void* add(std::span<std::byte> bytes, bool initialized) {
    const Memory::Id id = memory_.add({.name = "x", .bytes = bytes, .initialized = initialized});
    buffers_.push_back(id);
    return reinterpret_cast<void*>(memory_.address(id));
  }
  template <class Function>
  Function* find(const char* name) const {
    void* found = dlsym(handle_, name);
    REQUIRE(found != nullptr);
    return reinterpret_cast<Function*>(found);
  }

  static unsigned long long allocate(void* owner, std::size_t bytes) {
    Library& library = *static_cast<Library*>(owner);
    std::vector<std::byte>& block = library.allocations_.emplace_back(bytes);
    library.buffers_.push_back(library.memory_.add({.name = "temporary", .bytes = block, .initialized = false}));
    return library.memory_.address(library.buffers_.back());
  }

  // Bytes of the buffer that holds `address`; where `writes`, they count as written from now on.
  std::byte* bytes_at(unsigned long long address, std::size_t bytes, bool writes) {
    for (Memory::Id id : buffers_) {
      const std::uint64_t begin = memory_.address(id);
      const std::span<std::byte> all = memory_.buffer(id).bytes;
      if (address < begin || address + bytes > begin + all.size()) continue;
      if (writes) memory_.mark_written(id, address - begin, bytes);
      return all.data() + (address - begin);
    }
    FAIL("an address outside every buffer");
    return nullptr;
  }
  std::byte* written(unsigned long long address, std::size_t bytes) { return bytes_at(address, bytes, true); }
  static void fill(void* owner, unsigned long long address, int value, std::size_t bytes) {
    std::memset(static_cast<Library*>(owner)->written(address, bytes), value, bytes);
  }
  static void copy(void* owner, unsigned long long to, unsigned long long from, std::size_t bytes) {
    Library& library = *static_cast<Library*>(owner);
    std::memcpy(library.written(to, bytes), library.written(from, bytes), bytes);
  }
  static void to_device(void* owner, unsigned long long to, const void* from, std::size_t bytes) {
    std::memcpy(static_cast<Library*>(owner)->written(to, bytes), from, bytes);
  }
  static void to_host(void* owner, void* to, unsigned long long from, std::size_t bytes) {
    std::memcpy(to, static_cast<Library*>(owner)->bytes_at(from, bytes, false), bytes);
  }

  static int launch(void* owner, const char* kernel, const unsigned grid[3], const unsigned block[3],
                    std::size_t dynamic_shared, void** arguments) {
    Library& library = *static_cast<Library*>(owner);
    Launch made{.kernel = kernel,
                .grid = {grid[0], grid[1], grid[2]},
                .block = {block[0], block[1], block[2]},
                .dynamic_shared_bytes = static_cast<std::uint32_t>(dynamic_shared)};
    const KernelInfo info = library.module_->kernel(kernel);
    for (std::size_t i = 0; i < info.parameter_bytes.size(); ++i) {
      const auto* from = static_cast<const std::byte*>(arguments[i]);
      made.arguments.emplace_back(from, from + info.parameter_bytes[i]);
    }
    const Report report = run(*library.module_, made, library.memory_, {.threads = library.host_threads});
    ++library.launches_;
    INFO(describe(report));
    CHECK(report.findings.empty());
    return 0;
  }

  std::optional<CompiledLibrary> compiled_;
  std::unique_ptr<Module> module_;
  void* handle_ = nullptr;
  EmulatedDevice device_{};
  Memory memory_;
  std::vector<Memory::Id> buffers_;
  std::deque<std::vector<std::byte>> allocations_;
  int launches_ = 0;
};

}  // namespace fusec::emulator::testing
