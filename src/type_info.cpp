#include "type_info.h"

namespace fusec {

TensorInfo type_info(const TensorType& type, const Symbols& symbols) {
  TensorInfo tensor{std::string(name(type.dtype)), {}};
  for (const Dim& dim : type.shape) {
    if (const auto extent = dim.as_constant())
      tensor.shape.emplace_back(*extent);
    else
      tensor.shape.emplace_back(to_string(dim, symbols));
  }
  return tensor;
}

TensorInfo type_info(const Graph& graph, ValueId value) {
  return type_info(graph.tensor(value), graph.symbols);
}

}  // namespace fusec
