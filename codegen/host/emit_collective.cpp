#include "codegen/host/emit_collective.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string_view>

#include "ir/error.h"
#include "ir/type.h"

namespace fusec {
namespace {

using CallConstant = CollectiveCall::Constant;

CallConstant nccl_dtype(const Node& node, DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return {"ncclFloat64", 8};
    case DType::kFloat32:
      return {"ncclFloat32", 7};
    case DType::kFloat16:
      return {"ncclFloat16", 6};
    case DType::kBFloat16:
      return {"ncclBfloat16", 9};
    case DType::kInt64:
      return {"ncclInt64", 4};
    case DType::kInt32:
      return {"ncclInt32", 2};
    case DType::kInt8:
      return {"ncclInt8", 0};
    case DType::kUInt64:
      return {"ncclUint64", 5};
    case DType::kUInt32:
      return {"ncclUint32", 3};
    case DType::kUInt8:
    case DType::kBool:
      return {"ncclUint8", 1};
    default:
      throw Error(ErrorKind::kInput,
                  {.what = fmt::format("node \"{}\": NCCL has no collective of this dtype", node.name),
                   .found = std::string(name(dtype))});
  }
}

CallConstant nccl_reduction(const Attributes& attributes) {
  const std::string op = attributes.text("reduce_op", "sum");
  if (op == "sum") return {"ncclSum", 0};
  if (op == "prod" || op == "product") return {"ncclProd", 1};
  if (op == "max") return {"ncclMax", 2};
  if (op == "min") return {"ncclMin", 3};
  return {"ncclAvg", 4};
}

}  // namespace

std::vector<std::string> collective_groups(const Graph& graph) {
  std::vector<std::string> names;
  for (const Node& node : graph.nodes) {
    if (node.op->special != Special::kCollective) continue;
    const std::string group = graph.attributes(node).text("group");
    if (std::find(names.begin(), names.end(), group) == names.end()) names.push_back(group);
  }
  return names;
}

CollectiveSlices collective_slices(std::string_view op, std::int64_t dim, const TensorType& operand,
                                   const TensorType& result) {
  if (op == "all_reduce") dim = 0;
  if (dim < 0) dim += static_cast<std::int64_t>(operand.rank());
  const auto split = static_cast<std::size_t>(dim);
  return {*element_count(std::span(operand.shape).first(split)),
          *element_count(std::span(operand.shape).subspan(split)),
          *element_count(std::span(result.shape).subspan(split))};
}

CollectiveCall collective_of(const Graph& graph, const LaunchStep& step) {
  const Node& node = graph.nodes[step.node];
  const Attributes& attributes = graph.attributes(node);
  const TensorType& input = graph.tensor(step.reads[0]);
  const TensorType& output = graph.tensor(step.writes[0]);
  CollectiveCall call;
  call.dtype = nccl_dtype(node, input.dtype);
  const std::vector<std::string> groups = collective_groups(graph);
  call.communicator = std::find(groups.begin(), groups.end(), attributes.text("group")) - groups.begin();
  if (node.op->name != "all_gather") call.reduction = nccl_reduction(attributes);
  const CollectiveSlices slices = collective_slices(node.op->name, attributes.integer("dim", 0), input, output);
  call.slices = slices.count, call.from_slice = slices.operand_elements, call.to_slice = slices.result_elements;
  const bool scatter = node.op->name == "reduce_scatter";
  call.function = scatter ? "ncclReduceScatter" : node.op->name == "all_gather" ? "ncclAllGather" : "ncclAllReduce";
  call.count = scatter ? call.to_slice : call.from_slice;
  return call;
}

std::string collective_call(const Graph& graph, const LaunchStep& step, const CollectiveOperands& operands) {
  const CollectiveCall call = collective_of(graph, step);
  const auto& [from, to, communicators, sized] = operands;
  const std::string communicator = fmt::format("static_cast<ncclComm_t>({}[{}])", communicators, call.communicator);
  if (call.function == "ncclAllReduce")
    return fmt::format("  if (ncclAllReduce({}, {}, size_t({}), {}, {}, {}, stream) != ncclSuccess)\n", from, to,
                       sized(call.count), call.dtype.name, call.reduction.name, communicator);
  const int width = bits(graph.tensor(step.reads[0]).dtype) / 8;
  const std::string with = call.reduction.name.empty() ? "" : fmt::format("{}, ", call.reduction.name);
  return fmt::format(
      "  ncclGroupStart();\n"
      "  for (long long slice = 0; slice < {}; ++slice)\n"
      "    {}(static_cast<const char*>({}) + slice * ({}), static_cast<char*>({}) + slice * ({}), size_t({}), {}, "
      "{}{}, "
      "stream);\n"
      "  if (ncclGroupEnd() != ncclSuccess)\n",
      sized(call.slices), call.function, from, sized(call.from_slice * width), to, sized(call.to_slice * width),
      sized(call.count), call.dtype.name, with, communicator);
}

}  // namespace fusec
