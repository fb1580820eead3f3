// Converts internal types to the TensorInfo of the public API.
#pragma once

#include "fusec/fusec.h"
#include "ir/graph.h"

namespace fusec {

TensorInfo type_info(const TensorType& type, const Symbols& symbols);
TensorInfo type_info(const Graph& graph, ValueId value);

}  // namespace fusec
