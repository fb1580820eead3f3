// What the handles of fusec/c_api.h hold, and the boundary that no exception crosses.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "command_line.h"
#include "fusec/c_api.h"
#include "fusec/fusec.h"
#include "fusec/module.h"

struct fusec_text {
  std::string text;
};

struct fusec_options {
  fusec::GivenOptions given;
  fusec::Options options;  // what they say
  std::string plan_file;
  bool uses_cache = true;
};

struct fusec_registry {
  fusec::Registry registry;
};

struct fusec_model {
  fusec::Model model;
};

struct fusec_builder {
  fusec::ModelBuilder builder;
  std::set<std::string> names;  // of results, whose addresses the caller has
};

struct fusec_compilation {
  fusec::Compilation compilation;
};

struct fusec_module {
  explicit fusec_module(fusec::Module loaded);

  fusec::DeviceModule on_device(int device);

  fusec::Module module;
  fusec::Communicate communicate;
  std::vector<std::vector<fusec_dimension>> argument_shapes, result_shapes;
  std::mutex mutex;  // of what follows
  std::map<int, fusec::DeviceModule> devices;
};

struct fusec_captured {
  fusec::CapturedLaunch launch;
};

struct fusec_memory {
  fusec::DeviceMemory memory;
};

namespace fusec::c_api {

// What a callback of the caller's asks for.
struct Cancelled {};

// The status of the exception that is being handled; `error`, where it is not null, is set to it.
fusec_status told(fusec_error** error) noexcept;

// Runs what a function of the API does.
template <class F>
fusec_status guarded(fusec_error** error, const F& function) noexcept {
  if (error) *error = nullptr;
  try {
    function();
    return FUSEC_OK;
  } catch (...) {
    return told(error);
  }
}

// Throws Error(kUsage) where the pointer is null.
void require(const void* pointer, const char* what);
// The same of a list, where it has elements.
void require_list(const void* list, std::size_t count, const char* what);

inline std::string text_or_empty(const char* text) {
  return text ? text : "";
}
std::vector<std::string> texts(const char* const* list, std::size_t count, const char* what);

// The same, with a place for the handle that the function makes.
template <class Handle, class F>
fusec_status guarded_new(Handle** made, fusec_error** error, const F& make) noexcept {
  if (made) *made = nullptr;
  return guarded(error, [&] {
    require(made, "the place for the result");
    *made = std::unique_ptr<Handle>(make()).release();
  });
}

inline fusec_text* new_text(std::string text) {
  return new fusec_text{std::move(text)};
}

// Null stands for the defaults.
Options options_of(const fusec_options* options);
Registry registry_of(const fusec_registry* registry);
std::vector<Dimension> dimensions_of(const fusec_dimension* shape, std::size_t rank);
std::vector<TensorView> views_of(const fusec_tensor* tensors, std::size_t count, const char* what);

}  // namespace fusec::c_api
