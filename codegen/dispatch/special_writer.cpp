#include "codegen/dispatch/special_writer.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/expr/emit_expr.h"
#include "ir/error.h"

namespace fusec {
namespace {

bool any_is_wide(const Graph& graph, const std::vector<IndexExpr>& counts) {
  const Bounds bounds = graph.bounds();
  return std::any_of(counts.begin(), counts.end(), [&](const IndexExpr& e) { return !fits_int32(e + 4096, bounds); });
}

// Scratch memory for a result's unpacked elements, shared by all kernels of the node.
std::string declare_nibbles(KernelWriter& writer, const TensorType& type, std::size_t result) {
  constexpr std::uint32_t kFirst = 8;  // schedules number their own scratch memory from 0
  writer.use(type.dtype);
  return writer.workspace(*element_count(type.shape), kFirst + static_cast<std::uint32_t>(result),
                          "unsigned char codes");
}

}  // namespace

SpecialWriter::SpecialWriter(const Graph& graph, NodeId node, const std::vector<IndexExpr>& counts)
    : graph_(graph),
      id_(node),
      node_(graph.nodes[node]),
      bounds_(graph.bounds()),
      writer_(graph, any_is_wide(graph, counts)),
      text_{bounds_, writer_.wide(), {}, &writer_.prelude} {
  text_.variable = [this](Variable v) {
    return v.kind == Variable::Kind::kSymbol ? writer_.symbol(v.id) : names_.at(v.id);
  };
  for (std::uint32_t i = 0; i < node_.output_count; ++i) {
    const TensorType& type = graph.tensor(node_.first_output + i);
    nibbles_.push_back(bits(type.dtype) == 4 ? declare_nibbles(writer_, type, i) : "");
    if (nibbles_.back().empty()) writer_.output(node_.first_output + i);
  }
}

IndexExpr SpecialWriter::coordinate(std::string variable, IndexExpr extent) {
  names_.push_back(std::move(variable));
  bounds_.axes.push_back(std::move(extent));
  return IndexExpr::axis(static_cast<std::uint32_t>(names_.size() - 1));
}

std::vector<IndexExpr> SpecialWriter::split(const std::string& flat, const Shape& space) {
  std::vector<IndexExpr> coordinates(space.size(), IndexExpr(0));
  std::string rest = flat;
  for (std::size_t d = space.size(); d-- > 0;) {
    if (space[d].is(1)) continue;
    if (d == 0) {
      coordinates[d] = coordinate(rest, space[d]);
      break;
    }
    const std::string variable = writer_.unique(d < 6 ? std::string(1, "ijlmnp"[d]) : "i" + std::to_string(d));
    const std::string left = writer_.unique("rest");
    writer_.line(fmt::format("const {} {} = {} % {};", writer_.index_type(), variable, rest, tight(space[d])));
    writer_.line(fmt::format("const {} {} = {} / {};", writer_.index_type(), left, rest, tight(space[d])));
    coordinates[d] = coordinate(variable, space[d]);
    rest = left;
  }
  return coordinates;
}

std::string SpecialWriter::load(std::size_t operand, const IndexExpr& position, ScalarType as) {
  const ValueId v = node_.inputs.at(operand);
  const Operand o = graph_.operand(v);
  if (o.kind == Operand::Kind::kDim) return fmt::format("({}){}", c_type(as), tight(o.dim));
  if (o.kind == Operand::Kind::kNumber) {
    ExprNode n;
    n.type = as;
    n.real = is_float(as) ? o.number.as_double() : 0;
    n.integer = o.number.category == Category::kFloat ? static_cast<std::int64_t>(o.number.real) : o.number.integer;
    return constant_text(n);
  }
  const DType dtype = o.type.tensor.dtype;
  const std::string element = widen(dtype, element_text(v, text(position)));
  return compute_type(dtype) == as ? element : fmt::format("({}){}", c_type(as), element);
}

std::string SpecialWriter::store(std::size_t result, const std::string& position, const std::string& value) {
  const DType dtype = graph_.tensor(node_.first_output + static_cast<ValueId>(result)).dtype;
  return fmt::format("{} = {};", stored(result, position), narrow(dtype, value));
}

std::string SpecialWriter::held(std::size_t result, const std::string& position) {
  const std::string text = stored(result, position);
  return widen(graph_.tensor(node_.first_output + static_cast<ValueId>(result)).dtype,
               nibbles_[result].empty() ? text : "(unsigned)" + text);
}

std::string SpecialWriter::move(std::size_t result, const std::string& to, std::size_t operand,
                                const std::string& from) {
  return fmt::format("{} = {};", stored(result, to), element_text(node_.inputs.at(operand), from));
}

// An operand's element in its storage type.
std::string SpecialWriter::element_text(ValueId v, const std::string& position) {
  if (bits(graph_.tensor(v).dtype) != 4) return fmt::format("{}[{}]", writer_.input(v), position);
  writer_.use("nibble");
  return fmt::format("nibble({}, {})", writer_.input(v), position);
}

std::string SpecialWriter::stored(std::size_t result, const std::string& position) {
  const ValueId v = node_.first_output + static_cast<ValueId>(result);
  return fmt::format("{}[{}]", nibbles_[result].empty() ? writer_.output(v) : nibbles_[result], position);
}

std::string SpecialWriter::open_threads(const IndexExpr& count, int threads) {
  const std::string t = writer_.unique("t");
  writer_.line(fmt::format("const {} {} = {}blockIdx.x * {} + threadIdx.x;", writer_.index_type(), t,
                           writer_.wide() ? "(long long)" : "", threads));
  writer_.line(fmt::format("if ({} >= {}) return;", t, tight(count)));
  return t;
}

KernelSource SpecialWriter::finish(const IndexExpr& blocks, int threads, KernelKind kind) {
  Kernel described;
  described.nodes = {id_};
  KernelSource source = writer_.finish(kernel_comment(graph_, described), threads);
  source.name = kernel_name(graph_, {id_});
  source.grid[0] = simplify(blocks, graph_.bounds());
  source.schedule = {kind};
  return source;
}

KernelSource unpack_nibbles(const Graph& graph, NodeId node, std::size_t result, std::size_t operand) {
  constexpr int kThreads = 256;
  const IndexExpr count = *element_count(graph.tensor(graph.nodes[node].inputs.at(operand)).shape);
  SpecialWriter special(graph, node, {count});
  const std::string t = special.open_threads(count, kThreads);
  special.writer().line(special.move(result, t, operand, t));
  return special.finish(ceil_div(count, kThreads), kThreads, KernelKind::kUnpack);
}

KernelSource pack_nibbles(const Graph& graph, NodeId node, std::size_t result) {
  constexpr int kThreads = 256;
  const ValueId v = graph.nodes[node].first_output + static_cast<ValueId>(result);
  const TensorType& type = graph.tensor(v);
  const IndexExpr count = *element_count(type.shape);
  SpecialWriter special(graph, node, {count});
  const std::string nibbles = special.nibbles(result);
  const std::string t = special.open_threads(ceil_div(count, 2), kThreads);
  // Two elements per byte along the last dimension, which is even. A tensor without dimensions has one element.
  const std::string high = type.shape.empty() ? "" : fmt::format(" | {}[2 * {} + 1] << 4", nibbles, t);
  special.writer().line(fmt::format("{}[{}] = {}[2 * {}]{};", special.writer().output(v), t, nibbles, t, high));
  return special.finish(ceil_div(ceil_div(count, 2), kThreads), kThreads, KernelKind::kPack);
}

Lines lines_along(const Shape& shape, std::int64_t dim) {
  Lines lines;
  if (shape.empty()) return lines;
  if (dim < 0) dim += static_cast<std::int64_t>(shape.size());
  for (std::size_t d = 0; d < shape.size(); ++d) {
    IndexExpr& part = d < static_cast<std::size_t>(dim)    ? lines.outer
                      : d == static_cast<std::size_t>(dim) ? lines.length
                                                           : lines.inner;
    part *= shape[d];
  }
  return lines;
}

}  // namespace fusec
