#include "ir/synonyms.h"

#include <algorithm>
#include <cctype>
#include <string>

namespace fusec {
namespace {

// One row per name. A word may be in several rows if its meaning depends on the context; the first match is used.
constexpr Synonyms kSynonyms[] = {
    // Operators.
    {"silu", "swish sigmoid_linear_unit"},
    {"conv2d", "conv convolution conv_2d convolution2d"},
    {"conv1d", "conv convolution conv_1d"},
    {"conv3d", "conv_3d convolution3d"},
    {"conv_transpose2d", "conv_transpose convtranspose deconv deconvolution deconv2d conv2d_transpose"},
    {"linear", "dense fully_connected fullyconnected fc affine"},
    {"matmul", "gemm mm dot mat_mul matrix_multiply"},
    {"bmm", "batch_matmul batched_matmul batchmatmul"},
    {"scaled_dot_product_attention", "attention sdpa flash_attention multi_head_attention mha"},
    {"layer_norm", "layernorm layernormalization"},
    {"rms_norm", "rmsnorm rmsnormalization"},
    {"group_norm", "groupnorm groupnormalization"},
    {"instance_norm", "instancenorm instancenormalization"},
    {"batch_norm", "batchnorm batchnormalization batchnorm2d batch_norm2d"},
    {"sum", "reduce_sum reducesum add_reduce"},
    {"mean", "reduce_mean reducemean average"},
    {"amax", "reduce_max reducemax max"},
    {"amin", "reduce_min reducemin min"},
    {"prod", "reduce_prod reduceprod product"},
    {"logsumexp", "reduce_log_sum_exp reducelogsumexp log_sum_exp"},
    {"vector_norm", "norm l2_norm reducel2"},
    {"std", "stddev standard_deviation"},
    {"var", "variance"},
    {"maximum", "max"},
    {"minimum", "min"},
    {"add", "plus"},
    {"sub", "subtract minus"},
    {"mul", "multiply times"},
    {"div", "divide true_divide truediv"},
    {"neg", "negative negate"},
    {"abs", "absolute"},
    {"pow", "power"},
    {"remainder", "mod modulo"},
    {"eq", "equal equals"},
    {"ne", "not_equal"},
    {"lt", "less less_than"},
    {"le", "less_equal less_or_equal"},
    {"gt", "greater greater_than"},
    {"ge", "greater_equal greater_or_equal"},
    {"logical_not", "not"},
    {"logical_and", "and"},
    {"logical_or", "or"},
    {"logical_xor", "xor"},
    {"where", "if_then_else ifelse cond"},
    {"clamp", "clip clip_by_value"},
    {"cast", "to astype convert convert_element_type type_as"},
    {"identity", "dropout copy clone contiguous noop"},
    {"concat", "cat concatenate"},
    {"reshape", "view"},
    {"permute", "transpose_nd"},
    {"transpose", "swapaxes t"},
    {"expand", "broadcast broadcast_to broadcast_in_dim"},
    {"repeat", "tile"},
    {"index_select", "take"},
    {"embedding", "embedding_lookup lookup"},
    {"full", "constant fill full_like ones zeros ones_like zeros_like"},
    {"arange", "range iota"},
    {"topk", "top_k"},
    {"interpolate", "upsample resize"},
    {"max_pool2d", "maxpool max_pool maxpool2d"},
    {"avg_pool2d", "avgpool avg_pool averagepool average_pool avgpool2d"},
    {"adaptive_avg_pool2d", "globalaveragepool global_average_pool global_avg_pool"},
    {"leaky_relu", "leakyrelu"},
    {"log_sigmoid", "logsigmoid"},
    {"hardswish", "hard_swish"},
    {"hardsigmoid", "hard_sigmoid"},
    {"rope", "rotary rotary_embedding rotary_position_embedding"},
    {"quantize", "quantize_linear quantizelinear"},
    {"dequantize", "dequantize_linear dequantizelinear"},
    {"grouped_matmul", "moe grouped_gemm"},
    {"all_reduce", "allreduce"},
    {"all_gather", "allgather"},
    {"reduce_scatter", "reducescatter"},
    // Dtypes.
    {"bfloat16", "bf16 bfloat"},
    {"float16", "fp16 f16 half float16_t"},
    {"float32", "fp32 f32 float single"},
    {"float64", "fp64 f64 double"},
    {"float8_e4m3fn", "fp8 float8 e4m3 fp8_e4m3 float8_e4m3"},
    {"float8_e5m2", "e5m2 fp8_e5m2"},
    {"float8_e8m0fnu", "e8m0 ue8m0 float8_e8m0"},
    {"float4_e2m1fn", "fp4 float4 e2m1 nvfp4"},
    {"int64", "i64 long"},
    {"int32", "i32 int"},
    {"int16", "i16 short"},
    {"int8", "i8 char"},
    {"uint8", "u8 byte"},
    {"uint16", "u16"},
    {"uint32", "u32"},
    {"uint64", "u64"},
    {"int4", "i4"},
    {"uint4", "u4"},
    {"bool", "boolean"},
    // Keys of a model.
    {"op", "op_type operator kind"},
    {"name", "id"},
    {"inputs", "args arguments operands"},
    {"outputs", "results returns"},
    {"attrs", "attributes params kwargs"},
    {"nodes", "ops operators layers"},
    {"constants", "weights parameters params initializers initializer"},
    {"symbols", "dims dynamic_shapes"},
    {"dtype", "type data_type elem_type to"},
    {"shape", "dims size"},
    {"fuse", "fusion fusable"},
    {"metadata", "meta"},
    {"fusec", "version"},
    // Attributes.
    {"dim", "axis axes dims"},
    {"dims", "axes axis perm permutation dim"},
    {"axis", "dim"},
    {"keepdim", "keepdims keep_dims keep_dim"},
    {"eps", "epsilon"},
    {"kernel_size", "kernel kernel_shape ksize"},
    {"stride", "strides"},
    {"padding", "pads pad"},
    {"dilation", "dilations"},
    {"groups", "group feature_group_count"},
    {"is_causal", "causal"},
    {"num_groups", "groups"},
    {"normalized_shape", "shape"},
    {"approximate", "tanh approximation"},
    {"negative_slope", "alpha slope"},
    {"min", "min_val minimum"},
    {"max", "max_val maximum"},
    {"k", "topk"},
    {"split_sizes", "sizes sections"},
    {"chunks", "num_chunks"},
    // Targets.
    {"sm_80", "a100 ampere"},
    {"sm_86", "a10"},
    {"sm_89", "l4 ada"},
    {"sm_90a", "h100 hopper"},
    {"sm_100a", "b200 blackwell"},
    // Kinds of output.
    {"cu", "cuda source code c++ cpp"},
    {"ptx", "assembly asm"},
    {"cubin", "binary fatbin sass elf"},
    {"partition", "groups fusion json"},
    {"report", "cost costs prediction"},
    {"ledger", "why reasons"},
    {"svg", "png pdf picture image"},
    {"dot", "graph graphviz"},
    {"ir", "text txt"},
    // Options.
    {"-o", "--output --out"},
    {"--emit", "--format --print"},
    {"--arch", "--sm --gpu-architecture --compute"},
    {"--target", "--gpu --device"},
    {"--strategy", "--fusion --fuse --mode"},
    {"--explain", "--why"},
    {"--list-ops", "--ops --operators"},
    {"--no-nvrtc", "--no-compile"},
    {"--max-fused-ops", "--max-nodes"},
};

bool has_word(std::string_view words, std::string_view word) {
  while (!words.empty()) {
    const std::string_view next = words.substr(0, words.find(' '));
    if (next == word) return true;
    words.remove_prefix(std::min(next.size() + 1, words.size()));
  }
  return false;
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

bool is_lower_case_of(std::string_view lower, std::string_view text) {
  return std::ranges::equal(
      lower, text, [](char a, char b) { return a == static_cast<char>(std::tolower(static_cast<unsigned char>(b))); });
}

std::string_view candidate_like(std::string_view word, std::span<const std::string_view> candidates) {
  for (const std::string_view candidate : candidates)
    if (is_lower_case_of(word, candidate)) return candidate;
  for (const Synonyms& row : kSynonyms)
    if (has_word(row.words, word))
      if (const auto at = std::ranges::find(candidates, row.name); at != candidates.end()) return *at;
  return "";
}

}  // namespace

std::span<const Synonyms> synonyms() {
  return kSynonyms;
}

std::string_view name_by_synonym(std::string_view word, std::span<const std::string_view> candidates) {
  constexpr std::size_t kLongest = 64;  // bytes; longer words are not guessed
  if (word.empty() || word.size() > kLongest) return "";
  const std::string lower = lower_case(word);
  if (const std::string_view name = candidate_like(lower, candidates); !name.empty()) return name;
  // "aten.relu.default", "torch.nn.functional.silu", "torch.float16"
  std::string_view rest = lower;
  while (rest.find('.') != std::string_view::npos) {
    const std::string_view part = rest.substr(0, rest.find('.'));
    rest.remove_prefix(part.size() + 1);
    const std::string_view next = rest.substr(0, rest.find('.'));
    if (const std::string_view name = candidate_like(next, candidates); !name.empty()) return name;
  }
  return "";
}

}  // namespace fusec
