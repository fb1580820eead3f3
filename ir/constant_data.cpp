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

std::optional<Scalar> number_of(const Graph& graph, ValueId v) {
  if (v == kNone) return std::nullopt;
  if (graph.value(v).kind == Value::Kind::kNumber) return graph.number(v);
  if (const Constant* constant = graph.constant_of(v)) return uniform_value(*constant);
  // A tensor that is filled with one number, of a dtype that holds it.
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
