#include "codegen/host/emit_matrix_calls.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/error.h"
#include "ir/type.h"

namespace fusec {
namespace {

std::string_view cuda_type(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return "CUDA_R_64F";
    case DType::kFloat32:
      return "CUDA_R_32F";
    case DType::kFloat16:
      return "CUDA_R_16F";
    case DType::kBFloat16:
      return "CUDA_R_16BF";
    case DType::kFloat8E4M3FN:
      return "CUDA_R_8F_E4M3";
    case DType::kFloat8E5M2:
      return "CUDA_R_8F_E5M2";
    case DType::kInt8:
      return "CUDA_R_8I";
    case DType::kInt32:
      return "CUDA_R_32I";
    default:
      throw InternalError("a dtype that cuBLASLt does not have");
  }
}

std::string epilogue_text(const CublasLtCall& call) {
  std::string text;
  switch (call.activation) {
    case CublasLtEpilogue::kIdentity:
      return call.bias == kNone ? "CUBLASLT_EPILOGUE_DEFAULT" : "CUBLASLT_EPILOGUE_BIAS";
    case CublasLtEpilogue::kRelu:
      text = "CUBLASLT_EPILOGUE_RELU";
      break;
    case CublasLtEpilogue::kGeluTanh:
      text = "CUBLASLT_EPILOGUE_GELU";
      break;
  }
  if (call.aux != kNone) text += "_AUX";
  return text + (call.bias == kNone ? "" : "_BIAS");
}

// The type of alpha and beta: its CUDA name and its C type.
struct ScaleType {
  std::string_view cuda, c;
};
ScaleType scale_type(CublasLtCompute compute) {
  switch (compute) {
    case CublasLtCompute::kFloat32:
      return {"CUDA_R_32F", "float"};
    case CublasLtCompute::kFloat64:
      return {"CUDA_R_64F", "double"};
    case CublasLtCompute::kInt32:
      return {"CUDA_R_32I", "int"};
  }
  throw InternalError("unknown compute type");
}
std::string_view compute_text(CublasLtCompute compute) {
  switch (compute) {
    case CublasLtCompute::kFloat32:
      return "CUBLAS_COMPUTE_32F";
    case CublasLtCompute::kFloat64:
      return "CUBLAS_COMPUTE_64F";
    case CublasLtCompute::kInt32:
      return "CUBLAS_COMPUTE_32I";
  }
  throw InternalError("unknown compute type");
}

std::string number_text(double value, std::string_view type) {
  if (type == "int") return fmt::format("{}", static_cast<std::int64_t>(value));
  const std::string digits = type == "float" ? fmt::format("{:.9g}", value) : fmt::format("{:.17g}", value);
  const bool whole = digits.find_first_of(".en") == std::string::npos;
  return digits + (whole ? ".0" : "") + (type == "float" ? "f" : "");
}

const CublasLtMatrix& c_of(const CublasLtCall& call) {
  return call.c ? *call.c : call.d;
}

// The parts of the text that do not depend on the model. @ is replaced by the model's identifier.
constexpr std::string_view kCublasTypes =
    R"(// A product that cuBLASLt computes: d = epilogue(alpha * a b + beta * c), column-major, in this order of matrices.
struct @_product_kind {
  cublasComputeType_t compute;
  cudaDataType_t scale, types[4], bias;
  cublasOperation_t a, b;
  cublasLtEpilogue_t epilogue;
  unsigned alignments[4];
  bool outer_scales;  // one for each row of d and one for each column, not one for all
};
struct @_product_sizes {
  long long m, n, k, batch, leading[4], strides[4];
};
// Its descriptors, and the algorithm picked for the sizes of its last launch.
struct @_product {
  cublasLtMatmulDesc_t operation;
  cublasLtMatrixLayout_t layouts[4];
  cublasLtMatmulPreference_t preference;
  cublasLtMatmulAlgo_t algorithm;
  @_product_sizes sizes;
  bool chosen;
};
struct @_product_operands {
  const void *a, *b, *c;
  void* d;
  const void *bias, *a_scale, *b_scale;
  void* aux;
};

)";

constexpr std::string_view kFunctions = R"(template <class Value>
inline bool set(cublasLtMatmulDesc_t operation, cublasLtMatmulDescAttributes_t attribute, const Value& value) {
  return cublasLtMatmulDescSetAttribute(operation, attribute, &value, sizeof value) == CUBLAS_STATUS_SUCCESS;
}
template <class Value>
inline bool set(cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t attribute, const Value& value) {
  return cublasLtMatrixLayoutSetAttribute(layout, attribute, &value, sizeof value) == CUBLAS_STATUS_SUCCESS;
}
template <class Value>
inline bool set(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute,
                const Value& value) {
  return cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value) == CUBLAS_STATUS_SUCCESS;
}

inline bool make_product(@_product& p, const @_product_kind& kind) {
  if (cublasLtMatmulDescCreate(&p.operation, kind.compute, kind.scale) != CUBLAS_STATUS_SUCCESS) return false;
  for (int i = 0; i < 4; ++i)
    if (cublasLtMatrixLayoutCreate(&p.layouts[i], kind.types[i], 1, 1, 1) != CUBLAS_STATUS_SUCCESS) return false;
  if (cublasLtMatmulPreferenceCreate(&p.preference) != CUBLAS_STATUS_SUCCESS) return false;
  bool good = set(p.operation, CUBLASLT_MATMUL_DESC_TRANSA, kind.a) &&
              set(p.operation, CUBLASLT_MATMUL_DESC_TRANSB, kind.b) &&
              set(p.operation, CUBLASLT_MATMUL_DESC_EPILOGUE, kind.epilogue);
  // Algorithms may be asked for before there are pointers: any aligned address stands for them.
  const size_t somewhere = 256;
  if (kind.epilogue & CUBLASLT_EPILOGUE_BIAS)
    good = good && set(p.operation, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, kind.bias) &&
           set(p.operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, somewhere);
  if (kind.epilogue & 128) good = good && set(p.operation, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, somewhere);
@@  // Parts of a sum are added up in the compute type, or not at all.
  const unsigned reductions = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  const size_t workspace = kLibraryWorkspace;
  return good && set(p.preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, reductions) &&
         set(p.preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace) &&
         set(p.preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, kind.alignments[0]) &&
         set(p.preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, kind.alignments[1]) &&
         set(p.preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, kind.alignments[2]) &&
         set(p.preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, kind.alignments[3]);
}

inline void release_product(@_product& p) {
  if (p.operation) cublasLtMatmulDescDestroy(p.operation);
  for (int i = 0; i < 4; ++i)
    if (p.layouts[i]) cublasLtMatrixLayoutDestroy(p.layouts[i]);
  if (p.preference) cublasLtMatmulPreferenceDestroy(p.preference);
}

// Picks the algorithm for these sizes, unless it was picked already. Touches no device.
inline bool choose(cublasLtHandle_t handle, @_product& p, const @_product_kind& kind,
                   const @_product_sizes& sizes) {
  bool same = p.chosen && p.sizes.m == sizes.m && p.sizes.n == sizes.n && p.sizes.k == sizes.k &&
              p.sizes.batch == sizes.batch;
  for (int i = 0; i < 4; ++i)
    same = same && p.sizes.leading[i] == sizes.leading[i] && p.sizes.strides[i] == sizes.strides[i];
  if (same) return true;
  p.chosen = false;
  const long long rows[] = {kind.a == CUBLAS_OP_N ? sizes.m : sizes.k, kind.b == CUBLAS_OP_N ? sizes.k : sizes.n,
                            sizes.m, sizes.m};
  const long long columns[] = {kind.a == CUBLAS_OP_N ? sizes.k : sizes.m, kind.b == CUBLAS_OP_N ? sizes.n : sizes.k,
                               sizes.n, sizes.n};
  for (int i = 0; i < 4; ++i)
    if (!set(p.layouts[i], CUBLASLT_MATRIX_LAYOUT_ROWS, rows[i]) ||
        !set(p.layouts[i], CUBLASLT_MATRIX_LAYOUT_COLS, columns[i]) ||
        !set(p.layouts[i], CUBLASLT_MATRIX_LAYOUT_LD, sizes.leading[i]) ||
        !set(p.layouts[i], CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, int(sizes.batch)) ||
        !set(p.layouts[i], CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, sizes.strides[i]))
      return false;
  if ((kind.epilogue & 128) && !set(p.operation, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, sizes.leading[3])) return false;
  cublasLtMatmulHeuristicResult_t found = {};
  int count = 0;
  if (cublasLtMatmulAlgoGetHeuristic(handle, p.operation, p.layouts[0], p.layouts[1], p.layouts[2], p.layouts[3],
                                     p.preference, 1, &found, &count) != CUBLAS_STATUS_SUCCESS)
    return false;
  if (count < 1 || found.state != CUBLAS_STATUS_SUCCESS) return false;
  p.algorithm = found.algo;
  p.sizes = sizes;
  p.chosen = true;
  return true;
}

inline bool multiply(@_context* ctx, int product, const @_product_sizes& sizes, const void* alpha,
                     const void* beta, const @_product_operands& x, void* workspace, cudaStream_t stream) {
  @_product& p = ctx->products[product];
  const @_product_kind& kind = @_product_kinds[product];
  if (!choose(ctx->cublaslt, p, kind, sizes)) return false;
  if (x.bias && !set(p.operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, x.bias)) return false;
  if (x.aux && !set(p.operation, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, x.aux)) return false;
  if (x.a_scale && !set(p.operation, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, x.a_scale)) return false;
  if (x.b_scale && !set(p.operation, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, x.b_scale)) return false;
  return cublasLtMatmul(ctx->cublaslt, p.operation, alpha, x.a, p.layouts[0], x.b, p.layouts[1], beta, x.c,
                        p.layouts[2], x.d, p.layouts[3], &p.algorithm, workspace, kLibraryWorkspace,
                        stream) == CUBLAS_STATUS_SUCCESS;
}

inline void release(@_context* ctx) {
  for (@_product& p : ctx->products) release_product(p);
  if (ctx->cublaslt && ctx->cublaslt != ctx->libraries.cublaslt) cublasLtDestroy(ctx->cublaslt);
}

)";

// Printed only if some product has outer scales: cuBLASLt supports them from CUDA 12.9 on.
constexpr std::string_view kOuterScalesPlace = "@@";
constexpr std::string_view kOuterScales = R"(  if (kind.outer_scales) {
    const cublasLtMatmulMatrixScale_t vectors = CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F;
    good = good && set(p.operation, CUBLASLT_MATMUL_DESC_A_SCALE_MODE, vectors) &&
           set(p.operation, CUBLASLT_MATMUL_DESC_B_SCALE_MODE, vectors) &&
           set(p.operation, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, somewhere) &&
           set(p.operation, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, somewhere);
  }
)";

}  // namespace

MatrixCallsText::MatrixCallsText(const Graph& graph, const LaunchPlan& launch,
                                 std::function<std::string(const IndexExpr&)> sized)
    : graph_(graph), m_(launch.identifier), sized_(std::move(sized)) {
  for (const LaunchStep& step : launch.steps) {
    if (step.kind != LaunchStep::Kind::kMatrixCall) continue;
    if (Product product = product_of(*step.matrix); std::ranges::find(products_, product) == products_.end())
      products_.push_back(std::move(product));
    workspace_bytes_ = step.bytes.constant_term();
  }
}

MatrixCallsText::Product MatrixCallsText::product_of(const CublasLtCall& call) const {
  const CublasLtMatrix& c = c_of(call);
  const auto operation = [](const CublasLtMatrix& view) { return view.transposed ? "CUBLAS_OP_T" : "CUBLAS_OP_N"; };
  Product product;
  product.kind = fmt::format("{{{}, {}, {{{}, {}, {}, {}}}, {},\n     {}, {}, {}, {{{}, {}, {}, {}}}, {}}}",
                             compute_text(call.compute), scale_type(call.compute).cuda, cuda_type(call.a.dtype),
                             cuda_type(call.b.dtype), cuda_type(c.dtype), cuda_type(call.d.dtype),
                             cuda_type(call.bias == kNone ? call.d.dtype : call.bias_dtype), operation(call.a),
                             operation(call.b), epilogue_name(call), call.a.alignment, call.b.alignment, c.alignment,
                             call.d.alignment, call.outer_scales);
  product.outer_scales = call.outer_scales;
  product.sizes = fmt::format(
      "{{{}, {}, {}, {}, {{{}, {}, {}, {}}}, {{{}, {}, {}, {}}}}}", sized_(call.m), sized_(call.n), sized_(call.k),
      sized_(call.batch), sized_(call.a.leading), sized_(call.b.leading), sized_(c.leading), sized_(call.d.leading),
      sized_(call.a.batch_stride), sized_(call.b.batch_stride), sized_(c.batch_stride), sized_(call.d.batch_stride));
  product.known = true;
  for (const IndexExpr* e : {&call.m, &call.n, &call.k, &call.batch, &call.a.leading, &call.b.leading, &c.leading,
                             &call.a.batch_stride, &call.b.batch_stride, &c.batch_stride})
    product.known = product.known && e->is_constant();
  return product;
}

std::string MatrixCallsText::with_identifier(std::string_view text) const {
  std::string out;
  for (const char c : text) {
    if (c == '@')
      out += m_;
    else
      out += c;
  }
  return out;
}

std::string MatrixCallsText::types() const {
  return empty() ? "" : with_identifier(kCublasTypes);
}

std::string MatrixCallsText::context_fields() const {
  if (empty()) return "";
  return fmt::format(
      "  cublasLtHandle_t cublaslt;  // that of the libraries, or one of its own\n  {}_product products[{}];\n", m_,
      products_.size());
}

std::string MatrixCallsText::functions() const {
  if (empty()) return "";
  std::string text =
      fmt::format("constexpr size_t kLibraryWorkspace = {};\nconst {}_product_kind {}_product_kinds[] = {{\n",
                  workspace_bytes_, m_, m_);
  for (const Product& product : products_) text += "    " + product.kind + ",\n";
  std::string functions(kFunctions);
  const std::size_t place = functions.find(kOuterScalesPlace);
  functions.replace(place, kOuterScalesPlace.size(),
                    std::ranges::any_of(products_, &Product::outer_scales) ? kOuterScales : "");
  return text + "};\n\n" + with_identifier(functions);
}

std::string MatrixCallsText::create() const {
  if (empty()) return "";
  std::string text = with_identifier(
      "  made->cublaslt = static_cast<cublasLtHandle_t>(made->libraries.cublaslt);\n"
      "  if (!made->cublaslt && cublasLtCreate(&made->cublaslt) != CUBLAS_STATUS_SUCCESS) status = "
      "cudaErrorUnknown;\n");
  text += fmt::format(
      "  for (int i = 0; i < {} && status == cudaSuccess; ++i)\n"
      "    if (!make_product(made->products[i], {}_product_kinds[i])) status = cudaErrorUnknown;\n",
      products_.size(), m_);
  for (std::size_t i = 0; i < products_.size(); ++i)
    if (products_[i].known)
      text += fmt::format(
          "  if (status == cudaSuccess && !choose(made->cublaslt, made->products[{0}], {1}_product_kinds[{0}], {2}))\n"
          "    status = cudaErrorNotSupported;\n",
          i, m_, products_[i].sizes);
  return text;
}

std::string MatrixCallsText::call(const LaunchStep& step, const MatrixCallOperands& operands) const {
  const CublasLtCall& call = *step.matrix;
  const auto number = std::ranges::find(products_, product_of(call)) - products_.begin();
  const Bounds bounds = graph_.bounds();
  std::string condition;
  for (const IndexExpr* size : {&call.m, &call.n, &call.batch})
    if (range_of(*size, bounds).min < 1)
      condition += (condition.empty() ? "" : " && ") + fmt::format("{} > 0", sized_(*size));
  std::size_t next = 0;
  // A pointer plus the view's offset.
  const auto pointer = [&](const IndexExpr& offset, DType dtype, bool written) {
    const std::string& given = operands.pointers.at(next++);
    if (offset.is(0)) return given;
    const std::string_view character = written ? "char*" : "const char*";
    return fmt::format("static_cast<{}>({}) + ({})", character, given, sized_(offset * (bits(dtype) / 8)));
  };
  const auto optional = [&](ValueId v, const IndexExpr& offset, DType dtype) {
    return v == kNone ? std::string("nullptr") : pointer(offset, dtype, false);
  };
  const std::string a = pointer(call.a.offset, call.a.dtype, false), b = pointer(call.b.offset, call.b.dtype, false);
  const std::string c_given = call.c ? pointer(call.c->offset, call.c->dtype, false) : "";
  const std::string bias = optional(call.bias, call.bias_offset, call.bias_dtype);
  const std::string a_scale = optional(call.a_scale, 0, DType::kFloat32),
                    b_scale = optional(call.b_scale, 0, DType::kFloat32);
  const std::string d = pointer(0, call.d.dtype, true);
  const std::string aux = call.aux == kNone ? "nullptr" : pointer(0, call.d.dtype, true);
  const std::string workspace = operands.pointers.at(next);
  const std::string_view type = scale_type(call.compute).c;
  std::string text = condition.empty() ? "  {\n" : fmt::format("  if ({}) {{\n", condition);
  text += fmt::format("    const {0} alpha = {1}, beta = {2};\n", type, number_text(call.alpha, type),
                      number_text(call.beta, type));
  text +=
      fmt::format("    const {}_product_sizes sizes = {};\n", m_, products_.at(static_cast<std::size_t>(number)).sizes);
  text += fmt::format(
      "    const {}_product_operands operands = {{{},\n        {},\n        {},\n        {},\n        {}, {}, {}, "
      "{}}};\n",
      m_, a, b, call.c ? c_given : d, d, bias, a_scale, b_scale, aux);
  text += fmt::format(
      "    if (!multiply(ctx, {}, sizes, &alpha, &beta, operands,\n                  {}, stream))\n"
      "      return complain(ctx, cudaErrorUnknown, {});\n  }}\n",
      number, workspace, operands.refused);
  return text;
}

std::string epilogue_name(const CublasLtCall& call) {
  return epilogue_text(call);
}
std::string compute_type_name(const CublasLtCall& call) {
  return std::string(compute_text(call.compute));
}
std::string scale_type_name(const CublasLtCall& call) {
  return std::string(scale_type(call.compute).cuda);
}

}  // namespace fusec
