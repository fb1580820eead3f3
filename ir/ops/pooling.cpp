// Pooling: a reduction over a window that slides over 1 to 3 spatial dimensions. Positions outside the input are left
// out.
#include "ir/ops/pooling.h"

#include <algorithm>
#include <limits>

#include "ir/float_formats.h"
#include "ir/ops/matrix.h"
#include "ir/ops/positions.h"
#include "ir/ops/table.h"

namespace fusec::ops {
namespace {

using Index = std::span<const IndexExpr>;

struct Window {
  std::vector<std::int64_t> kernel, stride, padding, dilation;
  bool ceil_mode;
};

Window window_of(const Attributes& attributes, std::size_t spatial) {
  Window w;
  w.kernel = per_dimension(attributes, "kernel_size", spatial, 1);
  w.stride = w.kernel;
  if (const auto stride = attributes.integers("stride"); stride && !stride->empty())
    w.stride = per_dimension(attributes, "stride", spatial, 1);
  w.padding = per_dimension(attributes, "padding", spatial, 0);
  w.dilation = per_dimension(attributes, "dilation", spatial, 1);
  w.ceil_mode = attributes.flag("ceil_mode", false);
  return w;
}

const TensorType& spatial_operand(const OpCall& call, std::size_t spatial) {
  const TensorType& x = tensor_of_min_rank(call, 0, spatial + 1);
  return x.rank() > spatial + 2 ? tensor_of_rank(call, 0, spatial + 2) : x;
}

// The extent of a dilated window: (kernel - 1) * dilation + 1.
Dim reach_of(const Window& w, std::size_t d) {
  return Dim(w.dilation[d]) * (w.kernel[d] - 1) + 1;
}

// PyTorch's output size. With ceil_mode the last window may extend over the end, but must start inside the input or its
// left padding.
Dim windows_along(const Window& w, std::size_t d, const Dim& size, const Bounds& bounds) {
  const Dim reach = reach_of(w, d);
  const Dim room = size + 2 * w.padding[d] - reach;
  if (!w.ceil_mode) return simplify(floor_div(room, w.stride[d]) + 1, bounds);
  const Dim rounded_up = ceil_div(room, w.stride[d]) + 1;
  return simplify(min(rounded_up, ceil_div(size + w.padding[d], w.stride[d])), bounds);
}

std::vector<ValueType> infer_window(const OpCall& call, std::size_t spatial) {
  TensorType type = spatial_operand(call, spatial);
  per_dimension(call, "kernel_size", spatial, 1, 1);
  per_dimension(call, "stride", spatial, 1, 1);
  per_dimension(call, "padding", spatial, 0, 0);
  per_dimension(call, "dilation", spatial, 1, 1);
  const Window w = window_of(call.attributes, spatial);
  for (std::size_t d = 0; d < spatial; ++d) {
    const Dim reach = reach_of(w, d);
    require_at_most(call, w.padding[d], floor_div(reach, 2), "padding is at most half the window",
                    attribute_place("padding"));
    Dim& size = type.shape[type.rank() - spatial + d];
    const std::int64_t overhang = w.ceil_mode ? w.stride[d] - 1 : 0;
    require_at_most(call, reach, size + 2 * w.padding[d] + overhang,
                    "the window of a pooling fits into its padded input", attribute_place("kernel_size"));
    size = windows_along(w, d, size, bounds_of(call));
  }
  return {type};
}

// The reduction of the window at `index`, with `otherwise` for positions outside the input.
E over_window(Formula& f, Index index, std::size_t spatial, Reduction reduction, E otherwise) {
  const Window w = window_of(f.attributes(), spatial);
  const Shape& shape = f.type(0).shape;
  const std::size_t leading = shape.size() - spatial;
  std::vector<IndexExpr> extents(w.kernel.begin(), w.kernel.end());
  return f.reduce(reduction, extents, [&](Index k) {
    std::vector<IndexExpr> own(index.begin(), index.end());
    E inside = f.boolean(true);
    for (std::size_t d = 0; d < spatial; ++d) {
      IndexExpr& position = own[leading + d];
      position = position * w.stride[d] + k[d] * w.dilation[d] - w.padding[d];
      inside = inside && f.inside(position, shape[leading + d]);
    }
    return f.guarded(
        inside, [&] { return f.load(0, own); }, otherwise);
  });
}

E least_value(Formula& f, DType dtype) {
  const ScalarType type = compute_type(dtype);
  if (is_float(dtype)) return f.number(-std::numeric_limits<double>::infinity(), type);
  return f.integer(least_integer(dtype), type);
}

// --- average pooling

std::vector<ValueType> infer_average(const OpCall& call, std::size_t spatial) {
  require_float(call, 0);
  for (const std::int64_t step : per_dimension(call, "dilation", spatial, 1, 1))
    if (step != 1) fail(attribute_place("dilation"), "dilation of an average pooling", std::to_string(step), "1");
  if (call.attributes.has("divisor_override") && call.attributes.integer("divisor_override") == 0)
    fail(attribute_place("divisor_override"), "a divisor of zero", "0", "any other integer");
  return infer_window(call, spatial);
}

// The number of positions of the window at output position `at` that an average divides by.
IndexExpr counted(const Window& w, std::size_t d, const IndexExpr& at, const Dim& size, bool include_padding) {
  const IndexExpr start = at * w.stride[d] - w.padding[d];
  const IndexExpr end = min(start + w.kernel[d], size + w.padding[d]);
  if (!include_padding) return min(end, size) - max(start, 0);
  return w.ceil_mode ? end - start : IndexExpr(w.kernel[d]);
}

ExprId average_formula(Formula& f, Index index, std::size_t spatial) {
  const Window w = window_of(f.attributes(), spatial);
  const TensorType& x = f.type(0);
  const ScalarType type = compute_type(x.dtype);
  const E total = over_window(f, index, spatial, Reduction::kSum, zero(f, type));
  if (f.attributes().has("divisor_override"))
    return total / f.integer(f.attributes().integer("divisor_override"), type);
  const std::size_t leading = x.rank() - spatial;
  const bool include_padding = f.attributes().flag("count_include_pad", true);
  IndexExpr count = 1;
  for (std::size_t d = 0; d < spatial; ++d)
    count *= f.simplified(counted(w, d, index[leading + d], x.shape[leading + d], include_padding));
  return total / f.convert(f.index(count), type);
}

// --- adaptive average pooling: window i covers floor(i * in / out) to ceil((i + 1) * in / out)

std::vector<ValueType> infer_adaptive(const OpCall& call) {
  TensorType type = spatial_operand(call, 2);
  require_float(call, 0);
  const std::vector<std::int64_t> size = per_dimension(call, "output_size", 2, 1, 0);
  for (std::size_t d = 0; d < 2; ++d) type.shape[type.rank() - 2 + d] = size[d];
  return {type};
}

// Greater than any real dimension; products of smaller extents and a few thousand do not overflow.
constexpr std::int64_t kLargeExtent = std::int64_t{1} << 40;

// The greatest extent of a window.
Dim widest_window(Formula& f, const Dim& in, std::int64_t out) {
  const Dim even = f.simplified(floor_mod(in, out));
  if (even.is(0)) return f.simplified(floor_div(in, out));
  const Dim bound = f.simplified(ceil_div(in, out) + 1);
  const auto known = in.as_constant();
  if (!known || *known > kLargeExtent || out > 4096) return bound;
  std::int64_t widest = 0;
  for (std::int64_t i = 0; i < out; ++i)
    widest = std::max(widest, ((i + 1) * *known + out - 1) / out - i * *known / out);
  return widest;
}

ExprId adaptive_formula(Formula& f, std::size_t, Index index) {
  const TensorType& x = f.type(0);
  const std::vector<std::int64_t> out = per_dimension(f.attributes(), "output_size", 2, 1);
  const std::size_t leading = x.rank() - 2;
  const ScalarType type = compute_type(x.dtype);
  std::vector<IndexExpr> start(2), end(2);
  std::vector<Dim> extents;
  for (std::size_t d = 0; d < 2; ++d) {
    const Dim& in = x.shape[leading + d];
    if (out[d] == 0) return zero(f, type);  // the result is empty
    const IndexExpr at = out[d] == 1 ? IndexExpr(0) : index[leading + d];
    start[d] = f.simplified(floor_div(at * in, out[d]));
    end[d] = f.simplified(ceil_div((at + 1) * in, out[d]));
    extents.push_back(widest_window(f, in, out[d]));
  }
  const E total = sum_over(f, extents, [&](Index k) {
    std::vector<IndexExpr> own(index.begin(), index.end());
    E inside = f.boolean(true);
    for (std::size_t d = 0; d < 2; ++d) {
      own[leading + d] = start[d] + k[d];
      inside = inside && f.less(own[leading + d], end[d]);
    }
    return f.guarded(
        inside, [&] { return f.load(0, own); }, zero(f, type));
  });
  const IndexExpr count = f.simplified(end[0] - start[0]) * f.simplified(end[1] - start[1]);
  return total / f.convert(f.index(count), type);
}

OpDef window_row(std::size_t spatial, bool average) {
  using enum AttributeType;
  const std::string dims = std::to_string(spatial);
  OpDef row{.name = (average ? "avg_pool" : "max_pool") + dims + "d", .family = "pooling, resampling"};
  row.summary =
      std::string(average ? "The mean" : "The greatest element") + " of each window over " + dims + "-d positions.";
  row.operands = {"x"};
  // Both kinds have the same attributes. Average pooling requires a dilation of 1; max pooling ignores
  // count_include_pad.
  row.attributes = {{"kernel_size", kIntegers, true}, {"stride", kIntegers}, {"padding", kIntegers},
                    {"dilation", kIntegers},          {"ceil_mode", kFlag},  {"count_include_pad", kFlag}};
  if (average) {
    if (spatial > 1) row.attributes.push_back({"divisor_override", kInteger});
    row.infer = [spatial](const OpCall& call) { return infer_average(call, spatial); };
    row.formula = [spatial](Formula& f, std::size_t, Index index) { return average_formula(f, index, spatial); };
  } else {
    row.infer = [spatial](const OpCall& call) { return infer_window(call, spatial); };
    row.formula = [spatial](Formula& f, std::size_t, Index index) -> ExprId {
      return over_window(f, index, spatial, Reduction::kMax, least_value(f, f.type(0).dtype));
    };
  }
  return row;
}

}  // namespace

std::vector<OpDef> window_ops() {
  std::vector<OpDef> rows;
  for (const bool average : {false, true})
    for (std::size_t spatial = 1; spatial <= 3; ++spatial) rows.push_back(window_row(spatial, average));
  OpDef adaptive{.name = "adaptive_avg_pool2d", .family = "pooling, resampling"};
  adaptive.summary = "The means of as many windows as the output has positions, evenly spread.";
  adaptive.operands = {"x"};
  adaptive.attributes = {{"output_size", AttributeType::kIntegers, true}};
  adaptive.infer = infer_adaptive;
  adaptive.formula = adaptive_formula;
  rows.push_back(std::move(adaptive));
  return rows;
}

std::vector<OpDef> pooling_ops() {
  std::vector<OpDef> rows;
  for (auto* part : {window_ops, resampling_ops})
    for (OpDef& def : part()) rows.push_back(std::move(def));
  return rows;
}

}  // namespace fusec::ops
