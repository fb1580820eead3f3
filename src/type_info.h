// Types as the public interface has them.
#pragma once

#include "fusec/fusec.h"
#include "ir/graph.h"

namespace fusec {

TensorInfo type_info(const TensorType& type, const Symbols& symbols);
TensorInfo type_info(const Graph& graph, ValueId value);

}  // namespace fusec
