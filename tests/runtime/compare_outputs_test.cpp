// The verifier's own test: of every dtype and class of value the right result passes and wrong ones are refused; where
// rounding op by op misses float64, a kernel that is nearer to it passes, and a wrong kernel does not.
#include "runtime/compare_outputs.h"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include "ir/error.h"
#include "ir/text.h"

using namespace fusec;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// --- classes of values

std::uint64_t bits_of(DType dtype, double value) {
  HostTensor one(dtype, {1});
  one.set_real(0, value);
  return one.raw(0);
}

// The stored bits of zeros, ones, the least denormal, extremes, infinities and NaN, as far as the dtype has them.
std::vector<std::uint64_t> classes_of(DType dtype) {
  std::vector<std::uint64_t> found;
  const auto add = [&](std::uint64_t raw) {
    if (std::ranges::find(found, raw) == found.end()) found.push_back(raw);
  };
  if (is_float(dtype)) {
    const double most = greatest_finite(dtype);
    for (const double v : {0.0, -0.0, 1.0, -1.0, most, -most, kInfinity, -kInfinity, kNan}) add(bits_of(dtype, v));
    add(1);
    return found;
  }
  HostTensor one(dtype, {1});
  const std::int64_t least = least_integer(dtype), most = static_cast<std::int64_t>(greatest_integer(dtype));
  for (const std::int64_t v : {std::int64_t{0}, std::int64_t{1}, std::int64_t{-1}, least, least + 1, most - 1, most}) {
    one.set_integer(0, v);
    add(one.raw(0));
  }
  return found;
}

// `size` ones, but for one element.
TensorMap ones_but(DType dtype, std::int64_t size, std::int64_t at, std::uint64_t raw) {
  HostTensor made(dtype, {size});
  for (std::int64_t i = 0; i < size; ++i) made.set_integer(i, 1);
  made.set_raw(at, raw);
  return {{"y", made}};
}

double value_of(DType dtype, std::uint64_t raw) {
  return is_float(dtype) ? decode_float(dtype, raw) : 0;
}

bool both_nan(DType dtype, std::uint64_t a, std::uint64_t b) {
  return std::isnan(value_of(dtype, a)) && std::isnan(value_of(dtype, b));
}

// What no default tolerance can tell apart: zeros and the least denormal; neighbours on the grid of float4.
bool both_tiny(DType dtype, std::uint64_t a, std::uint64_t b) {
  const double least = decode_float(dtype, 1), x = value_of(dtype, a), y = value_of(dtype, b);
  return (std::fabs(x) <= least && std::fabs(y) <= least) || (dtype == DType::kFloat4E2M1FN && std::fabs(x - y) <= 0.5);
}

void check_pair(DType dtype, std::uint64_t want, std::uint64_t got) {
  const std::string text =
      std::string(name(dtype)) + ": expected " + std::to_string(want) + ", got " + std::to_string(got);
  CAPTURE(text);
  const bool same = want == got || both_nan(dtype, want, got);
  const bool right = same || (is_float(dtype) && both_tiny(dtype, want, got));
  for (const std::int64_t size : {1, 100}) {
    const TensorMap expected = ones_but(dtype, size, size / 2, want), actual = ones_but(dtype, size, size / 2, got);
    const auto difference = first_difference(actual, expected, {});
    CHECK(difference.has_value() == !right);
    if (difference) CHECK((difference->count == 1 && difference->index == std::vector<std::int64_t>{size / 2}));
    CHECK(first_difference(actual, expected, {.given = Tolerance{0, 0}, .by_value = {}}).has_value() == !same);
  }
}

}  // namespace

TEST_CASE("of every dtype and class of value the same passes and another is refused") {
  for (const DTypeInfo& row : all_dtypes()) {
    const std::vector<std::uint64_t> classes = classes_of(row.dtype);
    for (const std::uint64_t want : classes)
      for (const std::uint64_t got : classes) check_pair(row.dtype, want, got);
  }
}

TEST_CASE("an extreme value among ordinary ones excuses none of them") {
  for (const DTypeInfo& row : all_dtypes()) {
    if (row.dtype == DType::kBool) continue;
    CAPTURE(row.name);
    for (const std::uint64_t extreme : classes_of(row.dtype)) {
      const TensorMap want = ones_but(row.dtype, 100, 3, extreme);
      TensorMap got = want;
      got.at("y").set_integer(7, 4);
      CHECK(first_difference(got, want, {}));
      CHECK_FALSE(first_difference(want, want, {}));
    }
  }
}

TEST_CASE("outputs of another shape or dtype, or without an expected one, are refused by name") {
  const TensorMap want{{"y", HostTensor(DType::kFloat32, {2, 3})}};
  CHECK_THROWS_AS(first_difference({{"y", HostTensor(DType::kFloat32, {3, 2})}}, want, {}), Error);
  CHECK_THROWS_AS(first_difference({{"y", HostTensor(DType::kInt32, {2, 3})}}, want, {}), Error);
  CHECK_THROWS_AS(first_difference({{"z", HostTensor(DType::kFloat32, {2, 3})}}, want, {}), Error);
  CHECK_FALSE(first_difference({{"y", HostTensor(DType::kBFloat16, {2, 3})}}, want, {}));
}

TEST_CASE("what was compared is told: the worst error, and its share of what is allowed") {
  HostTensor want(DType::kFloat32, {2}), got(DType::kFloat32, {2});
  want.set_real(0, 1000), got.set_real(0, 1000.01);
  want.set_real(1, 1), got.set_real(1, 1);
  const Comparison comparison =
      compare_outputs({{"y", got}}, {{"y", want}}, {.given = Tolerance{0, 0.1}, .by_value = {}});
  CHECK(comparison.largest_error == doctest::Approx(0.01).epsilon(1e-2));
  CHECK(comparison.largest_share == doctest::Approx(0.1).epsilon(1e-2));
  CHECK(comparison.largest_in == "y");
  CHECK(comparison.by_float64 == 0);
}

// --- ill-conditioned graphs

namespace {

std::string with(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

TensorMap as_float32(const TensorMap& tensors) {
  TensorMap result;
  for (const auto& [key, tensor] : tensors) {
    HostTensor wide(is_float(tensor.dtype) ? DType::kFloat32 : tensor.dtype, tensor.shape);
    for (std::int64_t i = 0; i < wide.size(); ++i) wide.set_real(i, tensor.real(i));
    result.emplace(key, std::move(wide));
  }
  return result;
}

TensorMap uniform_tensors(const Graph& graph) {
  std::mt19937 engine(5);
  TensorMap tensors;
  for (const ValueId v : graph.inputs) {
    std::vector<std::int64_t> shape;
    for (const Dim& dim : graph.tensor(v).shape) shape.push_back(value_at_hint(dim, graph.symbols));
    HostTensor made(graph.tensor(v).dtype, shape);
    for (std::int64_t i = 0; i < made.size(); ++i) made.set_real(i, static_cast<double>(engine()) * 0x1p-31 - 1);
    tensors.emplace(graph.value(v).name, std::move(made));
  }
  return tensors;
}

// A model of 16-bit floats, and what a kernel makes of it that keeps its intermediates in float32.
struct Case {
  std::string text;
  Graph graph = parse_graph_text(text);
  TensorMap tensors = uniform_tensors(graph);

  TensorMap kernel_of(const std::string& model) const {
    const Graph wide = parse_graph_text(with(with(model, "bfloat16", "float32"), "float16", "float32"));
    TensorMap outputs = run_reference(wide, as_float32(tensors));
    for (const ValueId v : graph.outputs) {
      HostTensor& wide_output = outputs.at(graph.value(v).name);
      HostTensor stored(graph.tensor(v).dtype, wide_output.shape);
      for (std::int64_t i = 0; i < stored.size(); ++i) stored.set_real(i, wide_output.real(i));
      wide_output = std::move(stored);
    }
    return outputs;
  }
  TensorMap kernel() const { return kernel_of(text); }
  bool is_right(const TensorMap& got) const {
    ExpectedOutputs expected(graph, tensors, tolerances_of(graph, std::nullopt), ExpectedOutputs::Values::kOutputs);
    return !expected.compare(got).difference;
  }
  bool is_near_reference(const TensorMap& got) const {
    return !first_difference(got, run_reference(graph, tensors), tolerances_of(graph, std::nullopt));
  }
};

// What is added is rounded to 16 bits op by op, and what is left after it is subtracted is mostly that rounding.
const char* const kCancelling =
    "model \"m\"\ninput x: bfloat16[8, 16]\ninput w: bfloat16[16, 48]\nh: bfloat16[8, 16] = add(x, 32.0)\n"
    "d: bfloat16[8, 16] = sub(h, 32.0)\ny: bfloat16[8, 48] = matmul(d, w)\nreturn y\n";
const char* const kNorm =
    "model \"m\"\ninput x: bfloat16[8, 64]\nh: bfloat16[8, 64] = add(x, 32.0)\n"
    "m: bfloat16[8, 1] = mean(h, dim=[-1], keepdim=true)\nc: bfloat16[8, 64] = sub(h, m)\n"
    "s: bfloat16[8, 64] = mul(c, c)\nv: bfloat16[8, 1] = mean(s, dim=[-1], keepdim=true)\n"
    "e: bfloat16[8, 1] = add(v, 1e-05)\nr: bfloat16[8, 1] = rsqrt(e)\ny: bfloat16[8, 64] = mul(c, r)\nreturn y\n";
const char* const kSoftmax =
    "model \"m\"\ninput x: bfloat16[8, 64]\nl: bfloat16[8, 64] = mul(x, 40.0)\n"
    "e: bfloat16[8, 64] = softmax(l, dim=-1)\ny: bfloat16[8, 64] = mul(e, 16.0)\nreturn y\n";
const char* const kCodes =
    "model \"m\"\ninput x: bfloat16[8, 64]\nh: bfloat16[8, 64] = add(x, 8.0)\n"
    "d: bfloat16[8, 64] = sub(h, 8.0)\nk: bfloat16[8, 64] = mul(d, 0.1)\n"
    "y: int8[8, 64] = quantize(k, 0.001, dtype=\"int8\")\nreturn y\n";

// Wrong kernels: what they make of the right outputs.
struct Mutation {
  const char* what;
  std::function<double(const HostTensor&, std::int64_t)> element;
};

double greatest(const HostTensor& y) {
  double result = 0;
  for (std::int64_t i = 0; i < y.size(); ++i) result = std::max(result, std::fabs(y.real(i)));
  return result;
}

const std::vector<Mutation> kMutations = {
    {"an index is one further", [](const HostTensor& y, std::int64_t i) { return y.real((i + 1) % y.size()); }},
    {"a row is another's", [](const HostTensor& y, std::int64_t i) { return y.real((i + y.shape[1]) % y.size()); }},
    {"a scale is missing", [](const HostTensor& y, std::int64_t i) { return 2 * y.real(i); }},
    {"a sign is wrong", [](const HostTensor& y, std::int64_t i) { return -y.real(i); }},
    {"nothing is written", [](const HostTensor&, std::int64_t) { return 0.0; }},
    {"the last row is not written",
     [](const HostTensor& y, std::int64_t i) { return i < y.size() - y.shape[1] ? y.real(i) : 0; }},
    {"one element is far off",
     [](const HostTensor& y, std::int64_t i) { return i == 5 ? y.real(i) + 2 * greatest(y) : y.real(i); }},
    {"one element is NaN", [](const HostTensor& y, std::int64_t i) { return i == 5 ? kNan : y.real(i); }},
    {"one element is infinite", [](const HostTensor& y, std::int64_t i) { return i == 5 ? kInfinity : y.real(i); }},
};

TensorMap mutated(const TensorMap& outputs, const Mutation& mutation) {
  const HostTensor& y = outputs.at("y");
  HostTensor wrong = y;
  for (std::int64_t i = 0; i < y.size(); ++i) wrong.set_real(i, mutation.element(y, i));
  return {{"y", wrong}};
}

}  // namespace

TEST_CASE("a kernel that is nearer to float64 than op-by-op rounding is right, a wrong one is not") {
  for (const std::string text : {kCancelling, kNorm, kSoftmax, kCodes}) {
    CAPTURE(text);
    const Case model{text};
    const TensorMap kernel = model.kernel();
    CHECK_FALSE(model.is_near_reference(kernel));  // else the case shows nothing
    CHECK(model.is_right(kernel));
    CHECK(model.is_right(run_reference(model.graph, model.tensors)));
    for (const Mutation& mutation : kMutations) {
      CAPTURE(std::string(mutation.what));
      CHECK_FALSE(model.is_right(mutated(kernel, mutation)));
    }
  }
}

TEST_CASE("a reduction without its last element is refused, ill-conditioned or not") {
  const std::string cancelling = kCancelling, norm = kNorm;
  const std::string cut =
      "dc: bfloat16[8, 15] = slice(d, dim=1, start=0, end=15)\n"
      "wc: bfloat16[15, 48] = slice(w, dim=0, start=0, end=15)\n"
      "y: bfloat16[8, 48] = matmul(dc, wc)";
  const std::string right = "y: bfloat16[8, 48] = matmul(d, w)";
  for (const char* offset : {"32.0", "8.0", "0.0"}) {
    CAPTURE(offset);
    const Case model{with(cancelling, "32.0", offset)};
    CHECK(model.is_right(model.kernel()));
    CHECK_FALSE(model.is_right(model.kernel_of(with(model.text, right, cut))));
  }
}

TEST_CASE("of integers that are no codes only the expected or those of float64 are right") {
  const Case model{
      "model \"m\"\ninput x: bfloat16[64, 64]\nh: bfloat16[64, 64] = add(x, 64.0)\n"
      "y: int64[64] = argmax(h, dim=1)\nreturn y\n"};
  TensorMap kernel = model.kernel();
  CHECK_FALSE(model.is_near_reference(kernel));
  CHECK(model.is_right(kernel));
  HostTensor& y = kernel.at("y");
  y.set_integer(3, (y.integer(3) + 1) % 64);
  CHECK_FALSE(model.is_right(kernel));
}

TEST_CASE("float64 does not excuse what is not finite, nor what a tolerance of the user's refuses") {
  const Case model{
      "model \"m\"\ninput x: float16[40]\nb: float16[40] = add(x, 1000.0)\nc: float16[40] = mul(b, b)\n"
      "y: float16[40] = sqrt(c)\nreturn y\n"};
  CHECK(std::isinf(run_reference(model.graph, model.tensors).at("y").real(0)));
  CHECK_FALSE(model.is_right(model.kernel()));
  const Case norm{kNorm};
  ExpectedOutputs expected(norm.graph, norm.tensors, tolerances_of(norm.graph, Tolerance{3e-2, 3e-2}),
                           ExpectedOutputs::Values::kOutputs);
  CHECK(expected.compare(norm.kernel()).difference);
}

TEST_CASE("expected outputs from elsewhere are held to, give or take what op-by-op rounding is off") {
  const Case model{kNorm};
  const Tolerances tolerances = tolerances_of(model.graph, std::nullopt);
  const TensorMap reference = run_reference(model.graph, model.tensors);
  CHECK_FALSE(ExpectedOutputs(model.graph, model.tensors, tolerances, reference).compare(model.kernel()).difference);
  for (const Mutation& mutation : kMutations) {
    CAPTURE(std::string(mutation.what));
    const TensorMap wrong = mutated(reference, mutation);
    CHECK(ExpectedOutputs(model.graph, model.tensors, tolerances, wrong).compare(model.kernel()).difference);
  }
}
