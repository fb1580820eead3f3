#include "codegen/dispatch/special.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/dispatch/special_writer.h"
#include "codegen/movement/pointwise.h"
#include "ir/error.h"
#include "ir/type.h"

namespace fusec {
namespace {

constexpr int kThreads = 256;

std::vector<IndexExpr> counts_of(const Graph& graph, const Node& node) {
  std::vector<IndexExpr> counts;
  auto add = [&](ValueId v) {
    if (const auto count = element_count(graph.tensor(v).shape)) counts.push_back(*count);
  };
  for (const ValueId v : node.inputs)
    if (v != kNone) add(v);
  for (std::uint32_t i = 0; i < node.output_count; ++i) add(node.first_output + i);
  return counts;
}

// --- cumsum, cumprod

KernelSource scan(const Graph& graph, NodeId id) {
  const Node& node = graph.nodes[id];
  SpecialWriter special(graph, id, counts_of(graph, node));
  KernelWriter& writer = special.writer();
  const TensorType& type = graph.tensor(node.first_output);
  const ScalarType compute = compute_type(type.dtype);
  const Lines lines = lines_along(type.shape, special.attributes().integer("dim", 0));
  const bool product = node.op->name == "cumprod";
  const std::string one = is_float(compute) ? (product ? "1.0f" : "0.0f") : (product ? "1" : "0");
  const std::string combine = product ? "Product{}" : "Sum{}";
  const std::string value_type = c_type(compute);
  const std::string index = writer.index_type();
  writer.use("combine");
  if (!lines.inner.is(1)) {  // one thread per line; neighbouring threads have neighbouring lines
    const std::string t = special.open_threads(lines.count(), kThreads);
    const std::vector<IndexExpr> line = special.split(t, {lines.outer, lines.inner});
    const std::string so_far = writer.unique("so_far"), k = writer.unique("k");
    writer.line(fmt::format("{} {} = {};", value_type, so_far, one));
    writer.open(fmt::format("for ({0} {1} = 0; {1} < {2}; ++{1})", index, k, special.tight(lines.length)));
    const IndexExpr at = (line[0] * lines.length + special.coordinate(k, lines.length)) * lines.inner + line[1];
    writer.line(fmt::format("{0} = {1}({0}, {2});", so_far, combine, special.load(0, at, compute)));
    writer.line(special.store(0, special.text(at), so_far));
    writer.close();
    return special.finish(ceil_div(lines.count(), kThreads), kThreads, KernelKind::kScan);
  }
  // A block scans a row, one element per thread at a time.
  writer.use("block_scan");
  const std::string row = writer.unique("row"), before = writer.unique("before"), start = writer.unique("start");
  writer.line(fmt::format("const {} {} = blockIdx.x;", index, row));
  const IndexExpr line = special.coordinate(row, lines.outer);
  writer.line(fmt::format("{} {} = {};", value_type, before, one));
  writer.open(
      fmt::format("for ({0} {1} = 0; {1} < {2}; {1} += {3})", index, start, special.tight(lines.length), kThreads));
  const std::string k = writer.unique("k"), total = writer.unique("total"), sum = writer.unique("sum");
  writer.line(fmt::format("const {} {} = {} + threadIdx.x;", index, k, start));
  const IndexExpr at = line * lines.length + special.coordinate(k, lines.length);
  writer.line(fmt::format("{} {};", value_type, total));
  writer.line(fmt::format("const {} {} = block_scan<{}>({} < {} ? {} : ({}){}, {}, {});", value_type, sum, kThreads, k,
                          special.tight(lines.length), special.load(0, at, compute), value_type, one, combine, total));
  writer.line(fmt::format("if ({} < {}) {}", k, special.tight(lines.length),
                          special.store(0, special.text(at), fmt::format("{}({}, {})", combine, before, sum))));
  writer.line(fmt::format("{0} = {1}({0}, {2});", before, combine, total));
  writer.close();
  return special.finish(lines.outer, kThreads, KernelKind::kScan);
}

// --- sort, topk

KernelSource sort(const Graph& graph, NodeId id) {
  const Node& node = graph.nodes[id];
  SpecialWriter special(graph, id, counts_of(graph, node));
  KernelWriter& writer = special.writer();
  const TensorType& x = graph.tensor(node.inputs.at(0));
  const ScalarType compute = compute_type(x.dtype);
  const std::int64_t dim = special.attributes().integer("dim", -1);
  const bool top = node.op->name == "topk";
  const bool descending =
      top ? special.attributes().flag("largest", true) : special.attributes().flag("descending", false);
  const Lines from = lines_along(x.shape, dim), to = lines_along(graph.tensor(node.first_output).shape, dim);
  const std::string index = writer.index_type();
  writer.use("sort_line");
  writer.use("comes_before");

  const std::string line_name = writer.unique("line");
  writer.line(fmt::format("const {} {} = blockIdx.x;", index, line_name));
  const std::vector<IndexExpr> line = special.split(line_name, {from.outer, from.inner});
  const IndexExpr bytes = from.count() * from.length * 2 * (writer.wide() ? 8 : 4);
  const std::string orders = writer.workspace(bytes, 0, index + " orders");
  const std::string order = writer.unique("order"), other = writer.unique("other"), length = writer.unique("length");
  writer.line(fmt::format("const {} {} = {};", index, length, special.text(from.length)));
  writer.line(fmt::format("{0}* {1} = {2} + 2 * {3} * {4};", index, order, orders, line_name, length));
  writer.line(fmt::format("{0}* {1} = {2} + {3};", index, other, order, length));
  auto element = [&](const std::string& k) {
    return special.load(0, (line[0] * from.length + special.coordinate(k, from.length)) * from.inner + line[1],
                        compute);
  };
  const std::string a = writer.unique("a"), b = writer.unique("b");
  writer.line(fmt::format("sort_line<{}>({}, {}, {}, [&]({} {}, {} {}) {{", kThreads, order, other, length, index, a,
                          index, b));
  writer.line(fmt::format("  return is_less({}, {});", element(descending ? b : a), element(descending ? a : b)));
  writer.line("});");
  const std::string k = writer.unique("k"), chosen = writer.unique("chosen");
  writer.open(
      fmt::format("for ({0} {1} = threadIdx.x; {1} < {2}; {1} += {3})", index, k, special.tight(to.length), kThreads));
  writer.line(fmt::format("const {} {} = {}[{}];", index, chosen, order, k));
  const IndexExpr at = (line[0] * to.length + special.coordinate(k, to.length)) * to.inner + line[1];
  const IndexExpr source = (line[0] * from.length + special.coordinate(chosen, from.length)) * from.inner + line[1];
  writer.line(special.move(0, special.text(at), 0, special.text(source)));
  writer.line(special.store(1, special.text(at), chosen));
  writer.close();
  return special.finish(from.count(), kThreads, KernelKind::kSort);
}

// --- scatter, index_put

// Copies the first operand to the result.
KernelSource copy(const Graph& graph, NodeId id, const Target& target) {
  const Node& node = graph.nodes[id];
  Kernel kernel;
  kernel.pool = ExprPool(graph.symbols);
  kernel.nodes = {id};
  KernelOutput output{node.first_output, graph.tensor(node.first_output), {}, kNoExpr, {}};
  for (const Dim& extent : output.type.shape) {
    output.axes.push_back(kernel.pool.new_axis(extent));
    output.index.push_back(IndexExpr::axis(output.axes.back()));
  }
  output.expr = kernel.pool.load(node.inputs.at(0), output.type.dtype, output.index);
  kernel.outputs.push_back(std::move(output));
  ScheduleChoice predicted;
  KernelSource source = pointwise(kernel, graph, target, predicted);
  source.copies_for_update = true;
  return source;
}

Shape at_least_one_dimension(Shape shape) {
  if (shape.empty()) shape.push_back(1);
  return shape;
}

// A thread handles all updates of one line of the result, in index order: the last one wins.
KernelSource scatter(const Graph& graph, NodeId id) {
  const Node& node = graph.nodes[id];
  SpecialWriter special(graph, id, counts_of(graph, node));
  KernelWriter& writer = special.writer();
  const Shape x = at_least_one_dimension(graph.tensor(node.inputs.at(0)).shape);
  const Shape index = at_least_one_dimension(graph.tensor(node.inputs.at(1)).shape);
  const ScalarType compute = compute_type(graph.tensor(node.first_output).dtype);
  std::int64_t dim = special.attributes().integer("dim");
  if (dim < 0) dim += static_cast<std::int64_t>(x.size());
  const auto d = static_cast<std::size_t>(dim);
  Shape others = index;
  others[d] = 1;
  const IndexExpr lines = *element_count(others);
  const std::string t = special.open_threads(lines, kThreads);
  std::vector<IndexExpr> at = special.split(t, others);
  const std::string k = writer.unique("k"), to = writer.unique("to");
  writer.open(fmt::format("for ({0} {1} = 0; {1} < {2}; ++{1})", writer.index_type(), k, special.tight(index[d])));
  at[d] = special.coordinate(k, index[d]);
  writer.line(fmt::format("const long long {} = {};", to, special.load(1, flat_index(index, at), ScalarType::kInt64)));
  writer.line(fmt::format("if ({0} < 0 || {0} >= {1}) continue;", to, special.tight(x[d])));
  std::vector<IndexExpr> target = at;
  target[d] = special.coordinate("(" + writer.index_type() + ")" + to, x[d]);
  IndexExpr source = 0;
  if (graph.operand(node.inputs.at(2)).kind == Operand::Kind::kTensor && !graph.tensor(node.inputs[2]).shape.empty())
    source = flat_index(graph.tensor(node.inputs[2]).shape, at);
  writer.line(special.store(0, special.text(flat_index(x, target)), special.load(2, source, compute)));
  writer.close();
  return special.finish(ceil_div(lines, kThreads), kThreads, KernelKind::kScatter);
}

Shape broadcast(const Shape& a, const Shape& b) {
  Shape result = a.size() >= b.size() ? a : b;
  const Shape& shorter = a.size() >= b.size() ? b : a;
  const std::size_t offset = result.size() - shorter.size();
  for (std::size_t d = 0; d < shorter.size(); ++d)
    if (!shorter[d].is(1)) result[offset + d] = shorter[d];
  return result;
}

// The position in a tensor that broadcasts to the dimensions of `at` before `end`.
IndexExpr broadcast_position(const Shape& shape, const std::vector<IndexExpr>& at, std::size_t end) {
  std::vector<IndexExpr> own;
  for (std::size_t d = 0; d < shape.size(); ++d)
    own.push_back(shape[d].is(1) ? IndexExpr(0) : at[end - shape.size() + d]);
  return flat_index(shape, own);
}

// A thread has one point of the dimensions without an index, and loops over the indices in order.
KernelSource index_put(const Graph& graph, NodeId id) {
  const Node& node = graph.nodes[id];
  SpecialWriter special(graph, id, counts_of(graph, node));
  KernelWriter& writer = special.writer();
  const TensorType& x = graph.tensor(node.inputs.at(0));
  const ScalarType compute = compute_type(x.dtype);
  const bool accumulate = special.attributes().flag("accumulate", false);
  auto indexed = [&](std::size_t d) { return d + 2 < node.inputs.size() && node.inputs[d + 2] != kNone; };
  // The index dimensions replace the indexed ones if these are adjacent; otherwise they come first.
  Shape common, rest;
  std::vector<std::size_t> dims;
  for (std::size_t d = 0; d < x.shape.size(); ++d) {
    if (indexed(d)) {
      common = broadcast(common, graph.tensor(node.inputs[d + 2]).shape);
      dims.push_back(d);
    } else {
      rest.push_back(x.shape[d]);
    }
  }
  const bool neighbours = dims.back() - dims.front() + 1 == dims.size();
  const std::size_t first = neighbours ? dims.front() : 0;

  const IndexExpr points = *element_count(rest), steps = *element_count(common);
  const std::string t = special.open_threads(points, kThreads);
  const std::vector<IndexExpr> fixed = special.split(t, rest);
  const std::string k = writer.unique("k");
  writer.open(fmt::format("for ({0} {1} = 0; {1} < {2}; ++{1})", writer.index_type(), k, special.tight(steps)));
  const std::vector<IndexExpr> moving = special.split(k, common);
  std::vector<IndexExpr> at(fixed.begin(), fixed.end());
  at.insert(at.begin() + static_cast<std::ptrdiff_t>(first), moving.begin(), moving.end());
  std::vector<IndexExpr> target;
  std::size_t next = 0;
  for (std::size_t d = 0; d < x.shape.size(); ++d) {
    if (!indexed(d)) {
      target.push_back(fixed[next++]);
      continue;
    }
    const std::string to = writer.unique("to");
    const IndexExpr where = broadcast_position(graph.tensor(node.inputs[d + 2]).shape, at, first + common.size());
    writer.line(fmt::format("long long {} = {};", to, special.load(d + 2, where, ScalarType::kInt64)));
    writer.line(fmt::format("if ({0} < 0) {0} += {1};", to, special.tight(x.shape[d])));
    writer.line(fmt::format("if ({0} < 0 || {0} >= {1}) continue;", to, special.tight(x.shape[d])));
    target.push_back(special.coordinate("(" + writer.index_type() + ")" + to, x.shape[d]));
  }
  const std::string position = special.text(flat_index(x.shape, target));
  IndexExpr source = 0;
  if (graph.operand(node.inputs.at(1)).kind == Operand::Kind::kTensor)
    source = broadcast_position(graph.tensor(node.inputs[1]).shape, at, at.size());
  std::string value = special.load(1, source, compute);
  if (accumulate) {
    writer.use("combine");
    const std::string held = special.held(0, position);
    value = compute == ScalarType::kBool ? fmt::format("({} || {})", held, value)
                                         : fmt::format("Sum{{}}({}, {})", held, value);
  }
  writer.line(special.store(0, position, value));
  writer.close();
  return special.finish(ceil_div(points, kThreads), kThreads, KernelKind::kIndexPut);
}

}  // namespace

std::vector<KernelSource> special(const Graph& graph, NodeId node, const Target& target) {
  const OpDef& op = *graph.nodes[node].op;
  const bool packed = bits(graph.tensor(graph.nodes[node].first_output).dtype) == 4;
  std::vector<KernelSource> kernels;
  if (op.name == "scatter" || op.name == "index_put")
    kernels.push_back(packed ? unpack_nibbles(graph, node, 0, 0) : copy(graph, node, target));
  if (op.name == "cumsum" || op.name == "cumprod")
    kernels.push_back(scan(graph, node));
  else if (op.name == "sort" || op.name == "topk")
    kernels.push_back(sort(graph, node));
  else if (op.name == "scatter")
    kernels.push_back(scatter(graph, node));
  else if (op.name == "index_put")
    kernels.push_back(index_put(graph, node));
  else
    throw Error(ErrorKind::kInput, Error::Parts{.what = "no kernel for this op", .found = op.name});
  if (packed) kernels.push_back(pack_nibbles(graph, node, 0));
  return kernels;
}

}  // namespace fusec
