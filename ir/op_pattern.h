// Pattern kinds of ops, which the fusion rules use: how the index of an output element relates to the indices read for
// it. The kinds are totally ordered, from "fuses with nearly everything" to "fuses with nothing".
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace fusec {

enum class OpPattern : std::uint8_t {
  kElemwise,         // out[i] reads only in[i]
  kBroadcast,        // axes in order, some operands lack some: out[i, j] reads in[i]
  kInjective,        // every output element reads one element of an operand, at any index: transpose, reshape
  kCommReduce,       // a commutative reduction over axes
  kOutEwiseFusable,  // a complex op that fuses with elementwise consumers: matmul, convolution
  kTuple,            // bundles values for an injective consumer
  kOpaque,           // nothing is known, nothing fuses
};

inline constexpr std::array<std::string_view, 7> kOpPatternNames = {
    "elemwise", "broadcast", "injective", "comm_reduce", "out_ewise_fusable", "tuple", "opaque"};

constexpr std::string_view name(OpPattern pattern) {
  return kOpPatternNames[static_cast<std::size_t>(pattern)];
}

constexpr std::optional<OpPattern> parse_op_pattern(std::string_view text) {
  for (std::size_t i = 0; i < kOpPatternNames.size(); ++i) {
    if (kOpPatternNames[i] == text) return static_cast<OpPattern>(i);
  }
  return std::nullopt;
}

// The kind of a path is the greatest kind on it.
constexpr OpPattern kind_of_path(OpPattern a, OpPattern b) {
  return std::max(a, b);
}

}  // namespace fusec
