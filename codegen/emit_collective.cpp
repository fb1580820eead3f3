#include "codegen/emit_collective.h"

#include <fmt/format.h>

#include <span>
#include <string_view>

#include "ir/error.h"
#include "ir/type.h"

namespace fusec {
namespace {

std::string_view nccl_dtype(const Node& node, DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return "ncclFloat64";
    case DType::kFloat32:
      return "ncclFloat32";
    case DType::kFloat16:
      return "ncclFloat16";
    case DType::kBFloat16:
      return "ncclBfloat16";
    case DType::kInt64:
      return "ncclInt64";
    case DType::kInt32:
      return "ncclInt32";
    case DType::kInt8:
      return "ncclInt8";
    case DType::kUInt64:
      return "ncclUint64";
    case DType::kUInt32:
      return "ncclUint32";
    case DType::kUInt8:
    case DType::kBool:
      return "ncclUint8";
    default:
      throw Error(ErrorKind::kInput,
                  {.what = fmt::format("node \"{}\": NCCL has no collective of this dtype", node.name),
                   .found = std::string(name(dtype))});
  }
}

std::string_view nccl_reduction(const Attributes& attributes) {
  const std::string op = attributes.text("reduce_op", "sum");
  if (op == "sum") return "ncclSum";
  if (op == "prod" || op == "product") return "ncclProd";
  if (op == "max") return "ncclMax";
  if (op == "min") return "ncclMin";
  return "ncclAvg";
}

}  // namespace

std::string collective_call(const Graph& graph, const LaunchStep& step, const CollectiveOperands& operands) {
  const Node& node = graph.nodes[step.node];
  const Attributes& attributes = graph.attributes(node);
  const TensorType& input = graph.tensor(step.reads[0]);
  const TensorType& output = graph.tensor(step.writes[0]);
  const std::string_view dtype = nccl_dtype(node, input.dtype), reduction = nccl_reduction(attributes);
  const auto& [from, to, communicator, sized] = operands;
  if (node.op->name == "all_reduce")
    return fmt::format("  if (ncclAllReduce({}, {}, size_t({}), {}, {}, {}, stream) != ncclSuccess)\n", from, to,
                       sized(*element_count(input.shape)), dtype, reduction, communicator);

  std::int64_t dim = attributes.integer("dim", 0);
  if (dim < 0) dim += static_cast<std::int64_t>(input.rank());
  const auto split = static_cast<std::size_t>(dim);
  const IndexExpr outer = *element_count(std::span(input.shape).first(split));
  const IndexExpr in_slice = *element_count(std::span(input.shape).subspan(split));
  const IndexExpr out_slice = *element_count(std::span(output.shape).subspan(split));
  const bool gather = node.op->name == "all_gather";
  const int width = bits(input.dtype) / 8;
  const std::string_view call = gather ? "ncclAllGather" : "ncclReduceScatter";
  const std::string with = gather ? "" : fmt::format("{}, ", reduction);
  return fmt::format(
      "  ncclGroupStart();\n"
      "  for (long long slice = 0; slice < {}; ++slice)\n"
      "    {}(static_cast<const char*>({}) + slice * ({}), static_cast<char*>({}) + slice * ({}), size_t({}), {}, "
      "{}{}, "
      "stream);\n"
      "  if (ncclGroupEnd() != ncclSuccess)\n",
      sized(outer), call, from, sized(in_slice * width), to, sized(out_slice * width),
      sized(gather ? in_slice : out_slice), dtype, with, communicator);
}

}  // namespace fusec
