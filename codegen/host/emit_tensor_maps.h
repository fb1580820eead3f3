// Emits TMA descriptors in the host part. Each launch encodes them from its own pointers. M_create gets the driver's
// encode function from the CUDA runtime, so libcuda is never linked.
#pragma once

#include <string>
#include <vector>

#include "codegen/host/host_names.h"
#include "codegen/launch/launch_plan.h"

namespace fusec {

bool has_tensor_maps(const LaunchPlan& launch);

// Used only if has_tensor_maps(): the type of the driver's function, its field in the context, the functions after the
// context type, and the lines of M_create (which use its variables `made` and `status`).
std::string tensor_map_types();
std::string tensor_map_context_field();
std::string tensor_map_functions(const std::string& model);
std::string tensor_map_create();

// A call that encodes the argument into `map`, a CUtensorMap. `ctx` and `n` must be in scope.
std::string tensor_map_call(const HostNames& names, const Argument& argument, const std::string& map);

}  // namespace fusec
