#include "analysis/evaluate/special_ops.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ir/budget.h"
#include "ir/error.h"

namespace fusec {
namespace {

using Extents = std::vector<std::int64_t>;

// A tensor seen as lines along one dimension: element k of line (o, i) is at (o * length + k) * inner + i.
struct Lines {
  std::int64_t outer = 1, length = 1, inner = 1;
  std::int64_t at(std::int64_t line, std::int64_t k) const {
    return (line / inner * length + k) * inner + line % inner;
  }
  std::int64_t count() const { return outer * inner; }
};

std::size_t dimension(const Attributes& attributes, std::size_t rank, std::int64_t otherwise) {
  const std::int64_t dim = attributes.integer("dim", otherwise);
  return static_cast<std::size_t>(dim < 0 ? dim + static_cast<std::int64_t>(std::max<std::size_t>(rank, 1)) : dim);
}

Lines lines_along(const Extents& shape, std::size_t dim) {
  Lines lines;
  for (std::size_t d = 0; d < shape.size(); ++d)
    (d < dim ? lines.outer : d == dim ? lines.length : lines.inner) *= shape[d];
  return lines;
}

// Floats through double, everything else through int64.
void copy_element(const HostTensor& from, std::int64_t source, HostTensor& to, std::int64_t target) {
  if (from.dtype == to.dtype)
    to.set_raw(target, from.raw(source));
  else if (is_float(from.dtype))
    to.set_real(target, from.real(source));
  else
    to.set_integer(target, from.integer(source));
}

// --- scans

void scan(const Attributes& attributes, const HostTensor& x, HostTensor& result, bool product) {
  const Lines lines = lines_along(x.shape, dimension(attributes, x.shape.size(), 0));
  for (std::int64_t line = 0; line < lines.count(); ++line) {
    count_step();
    double real = product ? 1 : 0;
    auto whole = static_cast<std::uint64_t>(product ? 1 : 0);
    for (std::int64_t k = 0; k < lines.length; ++k) {
      const std::int64_t at = lines.at(line, k);
      if (is_float(result.dtype)) {
        real = product ? real * x.real(at) : real + x.real(at);
        result.set_real(at, real);
      } else {
        const auto next = static_cast<std::uint64_t>(x.integer(at));
        whole = product ? whole * next : whole + next;
        result.set_integer(at, static_cast<std::int64_t>(whole));
      }
    }
  }
}

// --- sorts: NaN is greater than everything; equal elements keep their order

bool comes_before(const HostTensor& x, std::int64_t a, std::int64_t b, bool descending) {
  if (descending) std::swap(a, b);
  if (is_float(x.dtype)) {
    const double left = x.real(a), right = x.real(b);
    return std::isnan(right) ? !std::isnan(left) : left < right;
  }
  if (x.dtype == DType::kUInt64) return x.raw(a) < x.raw(b);
  return x.integer(a) < x.integer(b);
}

void sort_lines(const Attributes& attributes, const HostTensor& x, std::span<HostTensor> results, bool descending) {
  const std::size_t dim = dimension(attributes, x.shape.size(), -1);
  const Lines from = lines_along(x.shape, dim), to = lines_along(results[0].shape, dim);
  std::vector<std::int64_t> order(static_cast<std::size_t>(from.length));
  for (std::int64_t line = 0; line < from.count(); ++line) {
    count_step();
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
      return comes_before(x, from.at(line, a), from.at(line, b), descending);
    });
    for (std::int64_t k = 0; k < to.length; ++k) {
      const std::int64_t chosen = order[static_cast<std::size_t>(k)];
      copy_element(x, from.at(line, chosen), results[0], to.at(line, k));
      results[1].set_integer(to.at(line, k), chosen);
    }
  }
}

// --- scatters: an index out of range writes nothing

// Calls `body` with every index of the shape, in row-major order.
template <class Body>
void for_each_index(const Extents& shape, const Body& body) {
  Extents index(shape.size(), 0);
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return;
  for (;;) {
    count_step();
    body(index);
    std::size_t d = shape.size();
    while (d-- > 0) {
      if (++index[d] < shape[d]) break;
      index[d] = 0;
    }
    if (d >= shape.size()) return;  // every dimension has wrapped around
  }
}

std::int64_t flat(const Extents& shape, const Extents& index) {
  std::int64_t position = 0;
  for (std::size_t d = 0; d < shape.size(); ++d) position = position * shape[d] + index[d];
  return position;
}

// Returns the flat position of `index` in a tensor that is broadcast along it. The tensor's dimensions end at dimension
// `end` of `index`.
std::int64_t flat_broadcast(const Extents& shape, const Extents& index, std::size_t end) {
  std::int64_t position = 0;
  for (std::size_t d = 0; d < shape.size(); ++d)
    position = position * shape[d] + (shape[d] == 1 ? 0 : index[end - shape.size() + d]);
  return position;
}

void scatter(const Attributes& attributes, const HostTensor& x, const HostTensor& index, const HostTensor& source,
             HostTensor& result) {
  result.bytes = x.bytes;
  const std::size_t dim = dimension(attributes, x.shape.size(), 0);
  for_each_index(index.shape, [&](const Extents& at) {
    Extents target = at;
    const std::int64_t position = index.integer(flat(index.shape, at));
    if (x.shape.empty() ? position != 0 : position < 0 || position >= x.shape[dim]) return;
    if (x.shape.empty())
      target.clear();
    else if (!target.empty())
      target[dim] = position;
    else
      target.push_back(position);
    copy_element(source, source.shape.empty() ? 0 : flat(source.shape, at), result, flat(x.shape, target));
  });
}

Extents broadcast(const Extents& a, const Extents& b) {
  Extents result = a.size() >= b.size() ? a : b;
  const Extents& shorter = a.size() >= b.size() ? b : a;
  for (std::size_t d = 0; d < shorter.size(); ++d)
    if (shorter[d] != 1) result[result.size() - shorter.size() + d] = shorter[d];
  return result;
}

void index_put(const Attributes& attributes, std::span<const HostTensor* const> operands, HostTensor& result) {
  const HostTensor& x = *operands[0];
  const HostTensor& values = *operands[1];
  const std::span<const HostTensor* const> indices = operands.subspan(2);
  const bool accumulate = attributes.flag("accumulate", false);
  result.bytes = x.bytes;
  // The broadcast index dimensions replace the indexed dimensions, or come first if those are not adjacent.
  Extents common, shape;
  std::vector<std::size_t> indexed;
  for (std::size_t d = 0; d < indices.size(); ++d)
    if (indices[d]) {
      common = broadcast(common, indices[d]->shape);
      indexed.push_back(d);
    }
  const bool neighbours = indexed.empty() || indexed.back() - indexed.front() + 1 == indexed.size();
  const std::size_t first = neighbours && !indexed.empty() ? indexed.front() : 0;
  for (std::size_t d = 0; d < x.shape.size(); ++d)
    if (d >= indices.size() || !indices[d]) shape.push_back(x.shape[d]);
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(first), common.begin(), common.end());

  for_each_index(shape, [&](const Extents& at) {
    Extents target;
    std::size_t next = 0;  // next dimension of `shape`; skips those of the index
    for (std::size_t d = 0; d < x.shape.size(); ++d) {
      count_step();
      if (d >= indices.size() || !indices[d]) {
        if (next == first) next += common.size();
        target.push_back(at[next++]);
        continue;
      }
      std::int64_t position = indices[d]->integer(flat_broadcast(indices[d]->shape, at, first + common.size()));
      if (position < 0) position += x.shape[d];
      if (position < 0 || position >= x.shape[d]) return;
      target.push_back(position);
    }
    const std::int64_t to = flat(x.shape, target), from = flat_broadcast(values.shape, at, at.size());
    if (!accumulate)
      copy_element(values, from, result, to);
    else if (is_float(x.dtype))
      result.set_real(to, result.real(to) + values.real(from));
    else
      result.set_integer(to, static_cast<std::int64_t>(static_cast<std::uint64_t>(result.integer(to)) +
                                                       static_cast<std::uint64_t>(values.integer(from))));
  });
}

// In a group of one device, the reduced or gathered result is the device's own tensor.
void collect_alone(const OpDef& op, const HostTensor& x, HostTensor& result) {
  if (x.shape != result.shape)
    throw Error(ErrorKind::kInput, Error::Parts{.what = "a collective of several devices cannot be evaluated",
                                                .found = op.name + " whose result is of another shape than its operand",
                                                .expected = "a group of one"});
  result.bytes = x.bytes;
}

}  // namespace

void evaluate_special(const OpDef& op, const Attributes& attributes, std::span<const HostTensor* const> operands,
                      std::span<HostTensor> results) {
  if (op.name == "cumsum" || op.name == "cumprod")
    return scan(attributes, *operands[0], results[0], op.name == "cumprod");
  if (op.name == "sort") return sort_lines(attributes, *operands[0], results, attributes.flag("descending", false));
  if (op.name == "topk") return sort_lines(attributes, *operands[0], results, attributes.flag("largest", true));
  if (op.name == "scatter") return scatter(attributes, *operands[0], *operands[1], *operands[2], results[0]);
  if (op.name == "index_put") return index_put(attributes, operands, results[0]);
  if (op.special == Special::kCollective) return collect_alone(op, *operands[0], results[0]);
  throw Error(ErrorKind::kInput,
              Error::Parts{.what = "the reference device cannot evaluate this op",
                           .found = op.name,
                           .expected = "an op with a formula, a scan, a sort, a scatter or a collective"});
}

}  // namespace fusec
