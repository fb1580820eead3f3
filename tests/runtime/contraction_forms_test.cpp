// Groups with matrix products in them: that they are one kernel of the form that an expert would write, and that the
// kernel computes what the reference computes.
#include <doctest/doctest.h>

#include "runtime/tensor_file.h"
#include "support/check_lowered.h"
#include "support/short_model.h"

using namespace fusec;
using namespace fusec::test;

namespace {

std::string schedules_of(const LoweredPlan& plan) {
  std::string names;
  for (const LoweredStep& step : plan.groups[0].steps)
    names += (names.empty() ? "" : " ") +
             (step.kind == LoweredStep::Kind::kKernel ? name(plan.kernels[step.kernel].schedule) : std::string("copy"));
  return names;
}

struct Case {
  const char* what;
  const char* inputs;
  const char* nodes;
  const char* outputs;
  const char* schedules;  // of the steps of the one group that holds all nodes
  const char* symbols = "";
};

// Where groups of rows end: increasing, some groups empty, the last rows in none.
void make_group_ends(TensorMap& tensors) {
  HostTensor& ends = tensors.at("o");
  const std::int64_t rows = tensors.contains("x") ? tensors.at("x").shape[0] : tensors.at("i").shape[0];
  for (std::int64_t e = 0; e < ends.size(); ++e)
    ends.set_integer(e, e == 1 ? ends.integer(0) : (e + 1) * (rows - 3) / ends.size());
}

void check_cases(const std::vector<Case>& cases, const char* arch = "sm_80", bool groups = false) {
  const auto nvrtc = nvrtc_or_skip();
  const Target target = target_for(arch);
  for (const Case& c : cases) {
    INFO(std::string(c.what));
    const Graph graph = short_model(c.inputs, c.nodes, c.outputs, c.symbols);
    const FusionPlan plan = plain_plan(graph, true);
    CHECK(schedules_of(lower_plan(graph, plan, target, {})) == c.schedules);
    if (!nvrtc) continue;
    TensorMap tensors = random_tensors(graph, 5);
    if (groups) make_group_ends(tensors);
    const TensorMap want = run_reference(graph, tensors);
    const TensorMap got = run_on_emulator(*nvrtc, graph, plan, tensors, {}, target);
    for (const auto& [name, tensor] : want) check_close(std::string(c.what) + ", " + name, got.at(name), tensor, 0.3);
  }
}

const char* const kGemm = "gemm_mma";
const char* const kGemmLanes = "gemm";
const char* const kJoined = "convolution_mma";  // one sum after the other
const char* const kLanes = "contraction";
const char* const kConvolution = "convolution";
const char* const kFewRows = "skinny_gemm_mma";
const char* const kRows = "row_reduction";
const char* const kRowMma = "row_gemm_mma";
const char* const kRowLanes = "row_gemm";

}  // namespace

TEST_SUITE("product forms") {
  TEST_CASE("several products over one space are one kernel that loads what they share once") {
    const char* gated = "g = linear x wg; u = linear x wu; a = silu g; h = mul a u";
    const std::vector<Case> cases = {
        {"bfloat16", "x bfloat16 70,48; wg bfloat16 40,48; wu bfloat16 40,48", gated, "h", kGemm},
        {"float16, odd", "x float16 33,45; wg float16 67,45; wu float16 67,45", gated, "h", kJoined},
        {"float32, symbolic", "x float32 n,20; wg float32 24,20; wu float32 24,20", gated, "h", kGemmLanes, "n"},
        {"float64", "x float64 17,20; wg float64 24,20; wu float64 24,20", gated, "h", kLanes},
        {"three siblings", "x float16 b,5,16; a float16 24,16; b float16 24,16; c float16 24,16",
         "q = linear x a; k = linear x b; v = linear x c", "q k v", kGemm, "b"},
        {"batched", "x bfloat16 3,20,16; a bfloat16 3,16,18; b bfloat16 3,16,18",
         "p = bmm x a; q = bmm x b; s = sigmoid p; h = mul s q", "h", kJoined},
        {"different depths", "x float32 18,20; y float32 18,7; a float32 30,20; b float32 30,7",
         "p = linear x a; q = linear y b; h = add p q", "h", kLanes},
        {"int8", "x int8 18,40; a int8 30,40; b int8 30,40; sa float32 30; sb float32 30; sx float32 1; o int8 1",
         "p = static_quant_linear x a sa sx o {\"out_dtype\": \"float16\"};"
         "q = static_quant_linear x b sb sx o {\"out_dtype\": \"float16\"}; s = silu p; h = mul s q",
         "h", kGemm},
        {"convolutions", "x float16 2,8,9,9; a float16 24,8,3,3; b float16 24,8,3,3",
         "p = conv2d x a {\"padding\": [1, 1]}; q = conv2d x b {\"padding\": [1, 1]}; s = sigmoid q; h = mul p s", "h",
         kJoined},
    };
    check_cases(cases);
    check_cases({cases.begin(), cases.begin() + 3}, "sm_90a");
  }

  TEST_CASE("a product is read in pieces, or stored in another order") {
    const std::vector<Case> cases = {
        {"halves", "x bfloat16 70,48; w bfloat16 80,48",
         "p = linear x w; g = slice p {\"dim\": 1, \"start\": 0, \"end\": 40}; u = slice p {\"dim\": 1, "
         "\"start\": 40, \"end\": 80}; a = silu g; h = mul a u",
         "h", kGemm},
        {"chunk, symbolic", "x float16 n,48; w float16 72,48",
         "p = linear x w; c = chunk p {\"chunks\": 2, \"dim\": 1}; a = gelu c.1; h = mul a c.0", "h", kGemm, "n"},
        {"interleaved", "x float32 19,24; w float32 44,24; b float32 44",
         "p = linear x w b; g = slice p {\"dim\": 1, \"step\": 2}; u = slice p {\"dim\": 1, \"start\": 1, "
         "\"step\": 2}; a = sigmoid g; h = mul a u",
         "h", kGemmLanes},
        {"select", "x float32 19,24; w float32 24,44",
         "p = matmul x w; r = reshape p {\"shape\": [19, 2, 22]}; g = select r {\"dim\": 1, \"index\": 0}; u = "
         "select r {\"dim\": 1, \"index\": 1}; a = sigmoid g; h = mul a u",
         "h", kLanes},
        {"heads", "x bfloat16 2,35,48; w bfloat16 96,48",
         "p = linear x w; r = reshape p {\"shape\": [2, 35, 4, 24]}; h = permute r {\"dims\": [0, 2, 1, 3]}", "h",
         kGemm},
        {"transposed", "x bfloat16 35,48; w bfloat16 72,48; y bfloat16 72,35",
         "p = linear x w; t = transpose p {\"dim0\": 0, \"dim1\": 1}; h = add t y", "h", kGemm},
        {"flattened rows", "x bfloat16 2,35,48; w bfloat16 96,48; r bfloat16 70,96",
         "p = linear x w; f = reshape p {\"shape\": [70, 96]}; h = add f r", "h", kGemm},
        {"neighbours overlap: stored first", "x float32 19,24; w float32 44,24",
         "p = linear x w; g = slice p {\"dim\": 1, \"end\": 43}; u = slice p {\"dim\": 1, \"start\": 1}; h = mul g "
         "u",
         "h", "gemm pointwise"},
        {"read at other rows for each element: stored first", "x float32 19,24; w float32 44,24",
         "p = linear x w; e = reshape p {\"shape\": [19, 1, 44]}; h = expand e {\"shape\": [19, 3, 44]}", "h",
         "gemm pointwise"},
    };
    check_cases(cases);
  }

  TEST_CASE("a product has several results") {
    const std::vector<Case> cases = {
        {"before and after the activation", "x bfloat16 70,48; w bfloat16 40,48; b bfloat16 40",
         "p = linear x w b; h = gelu p", "p h", kGemm},
        {"two functions of it", "x float32 19,24; w float32 44,24; r float32 19,44",
         "p = linear x w; h = sigmoid p; t = tanh p; k = mul t r", "h k", kGemmLanes},
        {"the residual stream, too", "x float32 19,24; w float32 44,24; a float32 19,44; b float32 19,44",
         "r = add a b; p = linear x w; h = add p r", "r h", kGemmLanes},
        {"quantized for the next", "x float16 19,24; w float16 44,24; s float32 1; t float32 19,1",
         "p = linear x w; h = relu p; q = quantize h s {\"dtype\": \"int8\"}; f = quantize h t {\"dtype\": "
         "\"float8_e4m3fn\"}",
         "q f", kGemm},
    };
    check_cases(cases);
  }

  TEST_CASE("rows that choose their matrix: experts") {
    const char* gated = "g = grouped_matmul x a o; u = grouped_matmul x b o; s = silu g; h = mul s u";
    const std::vector<Case> cases = {
        {"one", "x bfloat16 150,16; w bfloat16 5,16,24; o int32 5", "h = grouped_matmul x w o", "h", kGemm},
        {"gated", "x float16 70,24; a float16 7,24,40; b float16 7,24,40; o int32 7", gated, "h", kGemm},
        {"gated, of one row", "x bfloat16 1,64; a bfloat16 7,64,64; b bfloat16 7,64,64; o int32 7", gated, "h",
         "column_reduction"},
        {"one expert", "x bfloat16 150,16; w bfloat16 1,16,24; o int32 1; c bfloat16 1,24",
         "p = grouped_matmul x w o c; h = relu p", "h", kGemm},
        {"gated, symbolic", "x float32 n,13; a float32 3,13,20; b float32 3,13,20; o int64 3", gated, "h", kLanes, "n"},
        {"with a bias, read in halves", "x bfloat16 70,24; w bfloat16 7,24,48; o int32 7; c bfloat16 7,48",
         "p = grouped_matmul x w o c; g = slice p {\"dim\": 1, \"end\": 24}; u = slice p {\"dim\": 1, \"start\": 24};"
         "s = silu g; h = mul s u",
         "h", kGemm},
        {"of gathered rows", "t bfloat16 33,24; i int64 70; a bfloat16 7,24,40; b bfloat16 7,24,40; o int32 7",
         "x = index_select t i {\"dim\": 0}; g = grouped_matmul x a o; u = grouped_matmul x b o; s = silu g; h = mul s "
         "u",
         "h", kGemm},
    };
    check_cases(cases, "sm_80", true);
  }

  TEST_CASE("what stands before a product is computed where its operands are loaded") {
    const std::vector<Case> cases = {
        {"weights in int8, a scale each row", "x float16 35,48; w int8 40,48; s float16 40",
         "d = dequantize w s {\"dtype\": \"float16\", \"axis\": 0}; h = linear x d", "h", kGemm},
        {"weights in int4, a scale and a zero each group",
         "x bfloat16 35,64; w int4 40,64; s bfloat16 40,4; z int8 40,4",
         "d = dequantize w s z {\"dtype\": \"bfloat16\", \"axis\": 1, \"block\": 16}; h = linear x d", "h", kGemm},
        {"weights in fp8, written out", "x bfloat16 35,64; w float8_e4m3fn 40,64; s float32 40,1",
         "c = cast w {\"dtype\": \"float32\"}; m = mul c s; d = cast m {\"dtype\": \"bfloat16\"}; t = permute d "
         "{\"dims\": [1, 0]}; h = matmul x t",
         "h", kGemm},
        {"weights in groups, seen as such", "x float16 35,64; w int8 40,64; s float16 40,4,1; z int8 40,4,1",
         "r = reshape w {\"shape\": [40, 4, 16]}; a = cast r {\"dtype\": \"float16\"}; b = cast z {\"dtype\": "
         "\"float16\"}; c = sub a b; m = mul c s; d = reshape m {\"shape\": [40, 64]}; h = linear x d",
         "h", kGemm},
        {"both operands dequantized", "x int8 35,64; w int8 40,64; a float32 35,1; b float32 40,1",
         "c = cast x {\"dtype\": \"float32\"}; d = mul c a; e = cast w {\"dtype\": \"float32\"}; f = mul e b; h = "
         "linear d f",
         "h", kGemm},
        {"an activation", "x float16 35,48; w float16 40,48", "a = relu x; h = linear a w", "h", kGemm},
        {"gelu", "x float16 35,48; w float16 40,48", "a = gelu x; h = linear a w", "h", kGemm},
        {"silu times", "x bfloat16 35,48; y bfloat16 35,48; w bfloat16 40,48",
         "a = silu x; b = mul a y; h = linear b w", "h", kGemm},
        {"a residual, also an output", "x float16 35,48; y float16 35,48; w float16 48,48",
         "a = add x y; p = linear a w; h = add p a", "h", kGemm},
        {"scales by row and by column", "x float32 35,48; r float32 35,1; c float32 48; w float32 40,48",
         "a = mul x r; b = mul a c; h = linear b w", "h", kGemmLanes},
        {"heads", "x float16 2,35,48; y float16 2,30,48",
         "a = reshape x {\"shape\": [2, 35, 3, 16]}; q = permute a {\"dims\": [0, 2, 1, 3]}; b = reshape y {\"shape\": "
         "[2, 30, 3, 16]}; k = permute b {\"dims\": [0, 2, 3, 1]}; h = matmul q k",
         "h", kGemm},
        {"folded heads", "x float16 2,35,48; y float16 2,30,48",
         "a = reshape x {\"shape\": [2, 35, 3, 16]}; q = permute a {\"dims\": [0, 2, 1, 3]}; f = reshape q {\"shape\": "
         "[6, 35, 16]}; b = reshape y {\"shape\": [2, 30, 3, 16]}; k = permute b {\"dims\": [0, 2, 3, 1]}; g = reshape "
         "k "
         "{\"shape\": [6, 16, 30]}; p = bmm f g; h = reshape p {\"shape\": [2, 3, 35, 30]}",
         "h", kGemm},
        {"grouped heads", "q float16 6,35,16; k float16 2,30,16",
         "u = unsqueeze k {\"dim\": 1}; e = expand u {\"shape\": [2, 3, 30, 16]}; r = reshape e {\"shape\": [6, 30, "
         "16]}; t = transpose r {\"dim0\": 1, \"dim1\": 2}; h = bmm q t",
         "h", kGemm},
        {"joined operands", "x float32 35,20; y float32 35,12; w float32 40,32",
         "c = concat x y {\"dim\": 1}; h = linear c w", "h", kLanes},
        {"a padded operand", "x float32 35,20; w float32 40,24", "c = pad x {\"pad\": [0, 4]}; h = linear c w", "h",
         kConvolution},
        {"gathered rows", "t float16 90,48; i int64 35; w float16 40,48",
         "x = index_select t i {\"dim\": 0}; h = linear x w", "h", kGemm},
        {"two products of one dequantized weight", "x float16 35,48; y float16 35,48; w int8 40,48; s float16 40",
         "d = dequantize w s {\"dtype\": \"float16\", \"axis\": 0}; p = linear x d; q = linear y d; h = mul p q", "h",
         kGemm},
    };
    check_cases(cases);
  }

  TEST_CASE("products of a matrix and a vector: weights in 16 bits or less stream by, others are rows") {
    const std::vector<Case> cases = {
        {"one row", "x bfloat16 1,200; w bfloat16 40,200; b bfloat16 40", "p = linear x w b; h = silu p", "h",
         kFewRows},
        {"one row, weights as columns", "x float16 1,200; w float16 200,48", "h = matmul x w", "h", kFewRows},
        {"one row, gated", "x bfloat16 1,200; a bfloat16 40,200; b bfloat16 40,200",
         "g = linear x a; u = linear x b; s = silu g; h = mul s u", "h", kFewRows},
        {"one row, in halves", "x bfloat16 1,200; w bfloat16 80,200",
         "p = linear x w; g = slice p {\"dim\": 1, \"end\": 40}; u = slice p {\"dim\": 1, \"start\": 40}; s = silu g; "
         "h "
         "= mul s u",
         "h", kFewRows},
        {"one row, heads", "x bfloat16 1,200; w bfloat16 96,200",
         "p = linear x w; r = reshape p {\"shape\": [1, 1, 4, 24]}; h = permute r {\"dims\": [0, 2, 1, 3]}", "h",
         kFewRows},
        {"one row, weights in int8", "x float16 1,200; w int8 40,200; s float16 40",
         "d = dequantize w s {\"dtype\": \"float16\", \"axis\": 0}; h = linear x d", "h", kFewRows},
        {"one column", "x bfloat16 70,200; w bfloat16 1,200", "p = linear x w; h = sigmoid p", "h", kFewRows},
        {"a batch of rows", "q float16 6,1,64; k float16 6,50,64",
         "t = transpose k {\"dim0\": 1, \"dim1\": 2}; h = bmm q t", "h", kRows},
        {"quantized", "x int8 1,64; a int8 30,64; sa float32 30; sx float32 1",
         "p = static_quant_linear x a sa sx {\"out_dtype\": \"float16\"}; h = silu p", "h", kRows},
    };
    check_cases(cases);
  }

  TEST_CASE("rows of a product are reduced in the block that makes them") {
    const std::vector<Case> cases = {
        {"layer norm", "x bfloat16 35,48; w bfloat16 72,48; r bfloat16 35,72; g bfloat16 72; b bfloat16 72",
         "p = linear x w; h = add p r; y = layer_norm h g b {\"normalized_shape\": [72]}", "y", kRowMma},
        {"layer norm and the residual stream", "x float32 35,20; w float32 72,20; r float32 35,72; g float32 72",
         "p = linear x w; h = add p r; y = layer_norm h g {\"normalized_shape\": [72]}", "h y", kRowLanes},
        {"softmax, symbolic", "x float16 n,20; w float16 300,20", "p = linear x w; y = softmax p {\"dim\": 1}", "y",
         kRowMma, "n"},
        {"root mean square, written out", "x float16 2,35,48; w float16 64,48; g float16 64",
         "p = linear x w; c = cast p {\"dtype\": \"float32\"}; s = mul c c; m = mean s {\"dim\": [2], \"keepdim\": "
         "true}; e = add m 0.00001; q = rsqrt e; n = mul c q; d = cast n {\"dtype\": \"float16\"}; y = mul d g",
         "y", kRowMma},
        {"quantized by row", "x float32 35,20; w float32 72,20",
         "p = linear x w; a = abs p; m = amax a {\"dim\": [1], \"keepdim\": true}; s = mul m 0.007874; q = quantize p "
         "s "
         "{\"dtype\": \"int8\"}",
         "q s", kRowLanes},
        {"gated, then normed", "x float16 35,20; a float16 72,20; b float16 72,20; g float16 72",
         "p = linear x a; q = linear x b; s = silu p; h = mul s q; y = rms_norm h g {\"normalized_shape\": [72]}", "y",
         kRowMma},
        {"batched", "x float32 3,35,20; w float32 3,20,24", "p = bmm x w; y = log_softmax p {\"dim\": -1}", "y",
         kRowLanes},
        {"outer axes of the weights alone", "x float32 3,1,9,20; w float32 2,20,24",
         "p = matmul x w; y = layer_norm p {\"normalized_shape\": [24]}", "y", kRowLanes},
        {"in a pipeline, many rows",
         "x bfloat16 n,256; w bfloat16 250,256; r bfloat16 n,250; g bfloat16 250; b bfloat16 250",
         "p = linear x w; h = add p r; y = layer_norm h g b {\"normalized_shape\": [250]}", "y h", kRowMma, "n"},
        {"in a pipeline, gated", "x float16 150,64; a float16 100,64; c float16 100,64; g float16 100",
         "p = linear x a; q = linear x c; s = silu p; h = mul s q; y = rms_norm h g {\"normalized_shape\": [100]}", "y",
         kRowMma},
        {"in a pipeline, in lanes", "x float32 150,64; w float32 64,200; r float32 150,200",
         "p = matmul x w; h = add p r; y = softmax h {\"dim\": 1}", "y", kRowLanes},
        {"rows of more than a tile of a pipeline", "x bfloat16 40,64; w bfloat16 301,64; g bfloat16 301",
         "p = linear x w; y = rms_norm p g {\"normalized_shape\": [301]}", "y", kRowMma},
        {"rows too long", "x float16 35,20; w float16 1500,20", "p = linear x w; y = softmax p {\"dim\": 1}", "y",
         "convolution_mma row_reduction"},
        {"columns of a product", "x float32 35,20; w float32 72,20", "p = linear x w; y = softmax p {\"dim\": 0}", "y",
         "gemm column_reduction"},
    };
    check_cases(cases);
  }

  TEST_CASE("a result of kernels side by side and a view of it are results both") {
    check_cases({{"view", "x bfloat16 5; y bfloat16 7,5", "s = sigmoid x; a = silu y; r = reshape s {\"shape\": [5]}",
                  "a r s", "side_by_side copy"},
                 {"rows", "x float32 5,64; y float32 5,64",
                  "s = softmax x {\"dim\": 1}; n = rms_norm y {\"normalized_shape\": [64]}; r = reshape s {\"shape\": "
                  "[320]}",
                  "n r s", "side_by_side copy"}});
  }

  TEST_CASE("a product of one column and reductions of the same rows") {
    check_cases({{"reduction first", "x float32 8,7,32; w float32 1,32",
                  "m = amin x {\"dim\": [2], \"keepdim\": true}; p = linear x w", "p m", "side_by_side"},
                 {"product first", "x float32 8,7,32; w float32 1,32",
                  "p = linear x w; m = sum x {\"dim\": [2], \"keepdim\": true}", "p m", "side_by_side"}});
  }

  TEST_CASE("products of unequal widths that read the same run side by side") {
    const std::vector<Case> cases = {
        {"grouped heads", "x bfloat16 70,48; a bfloat16 96,48; b bfloat16 24,48; c bfloat16 24,48",
         "q = linear x a; k = linear x b; v = linear x c", "q k v", "side_by_side"},
        {"symbolic, with what follows", "x float32 n,20; a float32 72,20; b float32 30,20",
         "p = linear x a; h = silu p; q = linear x b; k = reshape q {\"shape\": [\"n\", 3, 10]}", "h k", "side_by_side",
         "n"},
        {"nothing in common", "x float32 40,20; y float32 50,20; a float32 72,20; b float32 30,20",
         "p = linear x a; q = linear y b", "p q", "gemm gemm"},
        {"one after the other", "x float32 40,20; a float32 72,20; b float32 72,72", "p = linear x a; q = linear p b",
         "q", "gemm gemm"},
    };
    check_cases(cases);
  }
}
