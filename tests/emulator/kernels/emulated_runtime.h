// What a shared object of kernels needs of the emulator: memory, and a way to launch a kernel by its name.
#pragma once

#include <cstddef>

struct EmulatedDevice {
  void* owner;
  unsigned long long (*allocate)(void* owner, std::size_t bytes);
  void (*fill)(void* owner, unsigned long long address, int value, std::size_t bytes);
  void (*copy)(void* owner, unsigned long long to, unsigned long long from, std::size_t bytes);  // within the device
  void (*to_device)(void* owner, unsigned long long to, const void* from, std::size_t bytes);
  void (*to_host)(void* owner, void* to, unsigned long long from, std::size_t bytes);
  // 0 where the kernel ran. `arguments` points to one value a parameter.
  int (*launch)(void* owner, const char* kernel, const unsigned grid[3], const unsigned block[3],
                std::size_t dynamic_shared, void** arguments);
};

// To be called before anything else of the shared object.
extern "C" void use_emulated_device(const EmulatedDevice* device);
