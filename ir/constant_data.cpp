#include "ir/constant_data.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "ir/float_formats.h"

namespace fusec {

std::vector<std::byte> constant_bytes(const std::vector<Scalar>& data, DType dtype) {
  const int width = bits(dtype);
  std::vector<std::byte> bytes(static_cast<std::size_t>(packed_bytes(dtype, static_cast<std::int64_t>(data.size()))));
  for (std::size_t i = 0; i < data.size(); ++i) {
    std::uint64_t stored;
    if (is_float(dtype)) {
      stored = encode_float(dtype, data[i].as_double());
    } else {
      const Scalar& s = data[i];
      const std::int64_t whole = s.category != Category::kFloat
                                     ? s.integer
                                     : truncate_to_integer(dtype == DType::kUInt64 ? dtype : DType::kInt64, s.real);
      stored = static_cast<std::uint64_t>(wrap_integer(dtype, whole));
    }
    if (width == 4) {
      const unsigned nibble = static_cast<unsigned>(stored & 0xf) << (i % 2 * 4);
      bytes[i / 2] |= static_cast<std::byte>(nibble);
    } else {
      for (int b = 0; b < width / 8; ++b)
        bytes[i * static_cast<std::size_t>(width / 8) + static_cast<std::size_t>(b)] =
            static_cast<std::byte>(stored >> (8 * b));
    }
  }
  return bytes;
}

std::vector<Scalar> constant_data(const HostTensor& tensor) {
  std::vector<Scalar> data;
  const std::int64_t count = tensor.size();
  data.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    if (is_float(tensor.dtype))
      data.push_back(Scalar::floating(tensor.real(i)));
    else if (tensor.dtype == DType::kBool)
      data.push_back(Scalar::boolean(tensor.integer(i) != 0));
    else
      data.push_back(Scalar::whole(tensor.integer(i)));
  }
  return data;
}

std::optional<Scalar> uniform_value(const Constant& constant) {
  if (!constant.data || constant.data->empty()) return std::nullopt;
  const Scalar& first = constant.data->front();
  const auto same = [&](const Scalar& s) {
    return s.category == first.category && s.integer == first.integer &&
           std::bit_cast<std::uint64_t>(s.real) == std::bit_cast<std::uint64_t>(first.real);
  };
  if (!std::all_of(constant.data->begin(), constant.data->end(), same)) return std::nullopt;
  return first;
}

namespace {

// The greatest n so that the dtype and int32 hold all whole numbers up to n; 0 for dtypes without progressions.
std::int64_t most_whole(DType dtype) {
  switch (dtype) {
    case DType::kBFloat16:
      return 1 << 8;
    case DType::kFloat16:
      return 1 << 11;
    case DType::kFloat32:
    case DType::kFloat64:
      return 1 << 24;
    case DType::kInt32:
    case DType::kInt64:
      return (std::int64_t{1} << 31) - 1;
    default:
      return 0;
  }
}

std::optional<std::int64_t> whole_number(const Scalar& s, std::int64_t most) {
  std::int64_t number = s.integer;
  if (s.category == Category::kFloat) {
    if (!(std::abs(s.real) <= static_cast<double>(most)) || s.real != std::trunc(s.real)) return std::nullopt;
    if (s.real == 0 && std::signbit(s.real)) return std::nullopt;
    number = static_cast<std::int64_t>(s.real);
  }
  return s.category != Category::kBool && number >= -most && number <= most ? std::optional(number) : std::nullopt;
}

}  // namespace

std::optional<Progression> progression_of(const Graph& graph, const Constant& constant) {
  constexpr std::size_t kFewest = 4;
  const std::int64_t most = most_whole(graph.tensor(constant.value).dtype);
  if (most == 0 || !constant.data || constant.data->size() < kFewest) return std::nullopt;
  const std::vector<Scalar>& data = *constant.data;
  std::vector<std::int64_t> extents;
  for (const Dim& extent : graph.tensor(constant.value).shape) extents.push_back(extent.constant_term());
  const auto at = [&](std::size_t i) { return whole_number(data[i], most); };
  const std::optional<std::int64_t> start = at(0);
  if (!start) return std::nullopt;
  Progression progression{*start, std::vector<std::int64_t>(extents.size(), 0)};
  std::size_t apart = 1;  // stride of dimension d, in elements
  for (std::size_t d = extents.size(); d-- > 0; apart *= static_cast<std::size_t>(extents[d])) {
    if (extents[d] < 2) continue;
    const std::optional<std::int64_t> next = at(apart);
    if (!next) return std::nullopt;
    progression.steps[d] = *next - *start;
  }
  if (std::ranges::all_of(progression.steps, [](std::int64_t step) { return step == 0; })) return std::nullopt;
  for (std::size_t i = 0; i < data.size(); ++i) {
    std::int64_t expected = *start;
    std::size_t rest = i;
    for (std::size_t d = extents.size(); d-- > 0; rest /= static_cast<std::size_t>(extents[d]))
      expected += progression.steps[d] * static_cast<std::int64_t>(rest % static_cast<std::size_t>(extents[d]));
    if (at(i) != expected) return std::nullopt;
  }
  return progression;
}

std::optional<Scalar> number_of(const Graph& graph, ValueId v) {
  if (v == kNone) return std::nullopt;
  if (graph.value(v).kind == Value::Kind::kNumber) return graph.number(v);
  if (const Constant* constant = graph.constant_of(v)) return uniform_value(*constant);
  // The result of `full`, if its dtype holds the number.
  const NodeId producer = graph.value(v).producer;
  if (producer == kNone || graph.nodes[producer].op->name != "full") return std::nullopt;
  const AttributeValue* value = graph.attributes(graph.nodes[producer]).find("value");
  const auto* scalar = value ? std::get_if<Scalar>(value) : nullptr;
  const DType dtype = graph.tensor(v).dtype;
  if (!scalar) return std::nullopt;
  if (is_float(dtype)) return Scalar::floating(scalar->as_double());
  const bool same = dtype == DType::kBool ? scalar->category == Category::kBool
                                          : is_integer(dtype) && scalar->category == Category::kInteger;
  return same ? std::optional(*scalar) : std::nullopt;
}

}  // namespace fusec
