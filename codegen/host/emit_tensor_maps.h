// Descriptions of tensors for TMA, in the host part: encoded at launch from the pointers of that launch, by the
// driver's function, which M_create asks the runtime for; libcuda is never linked.
#pragma once

#include <string>
#include <vector>

#include "codegen/host/host_names.h"
#include "codegen/launch/launch_plan.h"

namespace fusec {

bool has_tensor_maps(const LaunchPlan& launch);

// Where has_tensor_maps: the type of the driver's function and the context's field for it; what stands behind the
// context; lines of M_create (`made`, `status`).
std::string tensor_map_types();
std::string tensor_map_context_field();
std::string tensor_map_functions(const std::string& model);
std::string tensor_map_create();

// A call that encodes the argument into `map`, a CUtensorMap, where `ctx` and `n` are there.
std::string tensor_map_call(const HostNames& names, const Argument& argument, const std::string& map);

}  // namespace fusec
