#include "ir/attribute_defaults.h"

namespace fusec {
namespace {

struct Row {
  std::string_view op;  // empty: all ops without a row above for this attribute
  std::string_view attribute;
  AttributeDefault otherwise;
};

constexpr Row kRows[] = {
    {"hardtanh", "min_val", {"-1"}},
    {"hardtanh", "max_val", {"1"}},
    {"clamp", "min", {"", "no lower bound"}},
    {"clamp", "max", {"", "no upper bound"}},
    {"leaky_relu", "negative_slope", {"0.01"}},
    {"softplus", "threshold", {"20"}},
    {"", "approximate", {"\"none\""}},
    {"", "alpha", {"1"}},
    {"", "beta", {"1"}},
    {"div", "rounding_mode", {"", "the quotient is not rounded"}},
    {"pad", "value", {"0"}},
    {"pad", "mode", {"\"constant\""}},
    {"interpolate", "mode", {"\"nearest\""}},
    {"interpolate", "align_corners", {"false"}},
    {"", "value", {"1"}},  // addcmul, addcdiv
    {"flatten", "start_dim", {"0"}},
    {"flatten", "end_dim", {"-1"}},
    {"squeeze", "dim", {"", "every dimension of 1"}},
    {"repeat_interleave", "dim", {"", "the elements in row-major order, as one dimension"}},
    {"topk", "dim", {"-1"}},
    {"sort", "dim", {"-1"}},
    {"slice", "dim", {"0"}},
    {"split", "dim", {"0"}},
    {"chunk", "dim", {"0"}},
    {"concat", "dim", {"0"}},
    {"stack", "dim", {"0"}},
    {"", "dim", {"", "all dimensions"}},  // reductions
    {"slice", "start", {"0"}},
    {"slice", "end", {"", "the dimension's end"}},
    {"arange", "start", {"0"}},
    {"", "step", {"1"}},
    {"roll", "dims", {"", "the elements in row-major order, as one dimension"}},
    {"", "diagonal", {"0"}},
    {"index_put", "accumulate", {"false"}},
    {"topk", "largest", {"true"}},
    {"topk", "sorted", {"true"}},
    {"sort", "descending", {"false"}},
    {"sort", "stable", {"false"}},
    {"", "keepdim", {"false"}},
    {"", "correction", {"1"}},
    {"vector_norm", "ord", {"2"}},
    {"rms_norm", "eps", {"", "2^-23, for float64 2^-52"}},
    {"", "eps", {"1e-5"}},
    {"conv1d", "stride", {"1"}},
    {"conv2d", "stride", {"1"}},
    {"conv3d", "stride", {"1"}},
    {"conv_transpose1d", "stride", {"1"}},
    {"conv_transpose2d", "stride", {"1"}},
    {"conv_transpose3d", "stride", {"1"}},
    {"", "stride", {"", "kernel_size"}},  // pooling
    {"", "padding", {"0"}},
    {"", "dilation", {"1"}},
    {"", "groups", {"1"}},
    {"", "output_padding", {"0"}},
    {"", "ceil_mode", {"false"}},
    {"", "count_include_pad", {"true"}},
    {"", "divisor_override", {"", "the number of positions that count"}},
    {"scaled_dot_product_attention", "is_causal", {"false"}},
    {"scaled_dot_product_attention", "enable_gqa", {"false"}},
    {"scaled_dot_product_attention", "scale", {"", "1 / sqrt(the last dimension of q)"}},
    {"", "swapped", {"false"}},
    {"", "interleaved", {"false"}},
    {"", "limit", {"", "no limit"}},
    {"", "up_offset", {"0"}},
    {"", "axis", {"-1"}},
    {"", "block", {"", "no blocks"}},
    {"", "reduce_op", {"\"sum\""}},
};

}  // namespace

AttributeDefault attribute_default(std::string_view op, std::string_view attribute) {
  for (const Row& row : kRows)
    if (row.attribute == attribute && (row.op.empty() || row.op == op)) return row.otherwise;
  return {};
}

}  // namespace fusec
