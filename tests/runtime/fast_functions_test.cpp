// The fast forms of functions (docs/numerics.md) over every float16 and bfloat16 value and a sample of float32: within
// the errors that are stated there, and infinities and NaN as PyTorch has them.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "support/check_lowered.h"
#include "support/short_model.h"

using namespace fusec;
using namespace fusec::test;

namespace {

constexpr double kUnit = 0x1p-23;  // the last place of a float32
constexpr double kLastDenormal = 0x1p-149;
constexpr double kLeast = 0x1p-126;  // the least normal float32

struct Function {
  const char* call;            // of the node; the operand is x
  double (*exact)(double x);   // in float64
  double (*error)(double x);   // relative to the exact value, in units of the last place
  double (*beside)(double x);  // and what may come on top
};

double sigmoid_of(double x) {
  return 1 / (1 + std::exp(-x));
}
double tanh_argument(double x) {
  return 2 * std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x);
}
double nothing(double) {
  return 0;
}
double flushed(double) {
  return kLeast;
}
double flushed_times_x(double x) {
  return std::min(1e5, std::abs(x)) * kLeast;
}

const Function kFunctions[] = {
    {"sigmoid x", sigmoid_of, [](double x) { return 4 + 0.7 * std::abs(x); }, flushed},
    {"silu x", [](double x) { return x * sigmoid_of(x); }, [](double x) { return 5 + 0.7 * std::abs(x); },
     flushed_times_x},
    {"gelu x {\"approximate\": \"tanh\"}", [](double x) { return x * sigmoid_of(tanh_argument(x)); },
     [](double x) { return 6 + 2 * std::abs(tanh_argument(x)); }, flushed_times_x},
    {"gelu x", [](double x) { return x * std::erfc(-x * std::sqrt(0.5)) / 2; }, [](double) { return 2.0; },
     [](double x) { return std::abs(x) < 20 ? 2.5e-7 * std::abs(x) : flushed_times_x(x); }},
    {"log x", [](double x) { return std::log(x); }, [](double) { return 10.0; }, nothing},
    {"log1p x", [](double x) { return std::log1p(x); }, [](double) { return 10.0; }, nothing},
    {"expm1 x", [](double x) { return std::expm1(x); }, [](double x) { return 6 + 0.7 * std::abs(x); }, nothing},
    {"elu x", [](double x) { return x > 0 ? x : std::expm1(x); }, [](double) { return 6.0; }, nothing},
    {"elu x {\"alpha\": 0.5}", [](double x) { return x > 0 ? x : 0.5 * std::expm1(x); }, [](double) { return 7.0; },
     nothing},
    {"selu x",
     [](double x) {
       return 1.0507009873554804934193349852946 * (x > 0 ? x : 1.6732632423543772848170429916717 * std::expm1(x));
     },
     [](double) { return 7.0; }, nothing},
    {"softplus x", [](double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); },
     [](double x) { return 5 + 0.7 * std::max(-x, 0.0); }, flushed},
    {"softplus x {\"beta\": 2, \"threshold\": 5}",
     [](double x) { return 2 * x > 5 ? x : (std::max(x, 0.0) + std::log1p(std::exp(-2 * std::abs(x))) / 2); },
     [](double x) { return 6 + 1.4 * std::max(-x, 0.0); }, flushed},
    {"mish x", [](double x) { return x * std::tanh(std::log1p(std::exp(x))); },
     [](double x) { return 8 + 1.5 * std::abs(x); }, flushed_times_x},
    {"log_sigmoid x", [](double x) { return std::min(x, 0.0) - std::log1p(std::exp(-std::abs(x))); },
     [](double x) { return 5 + 0.7 * std::max(x, 0.0); }, flushed},
};

// float32: the values around which forms change, and random bits.
HostTensor operands(DType dtype) {
  HostTensor x(dtype, {65536});
  std::mt19937 random(3);
  for (std::int64_t i = 0; i < x.size(); ++i) {
    if (dtype != DType::kFloat32) {
      x.set_raw(i, static_cast<std::uint64_t>(i));
    } else if (i % 2 == 0) {
      x.set_raw(i, random());
    } else {
      static constexpr float kTurns[] = {0, 0.125f, 0.35f, 1.125f, 0.875f, -1, 1, 4, 9.3f, 20, 87.4f, 88.7f};
      const float turn = kTurns[(i / 2) % 12];
      const float away = std::ldexp(static_cast<float>(random() % 4096) - 2048.0f, -static_cast<int>(random() % 24));
      x.set_raw(i, std::bit_cast<std::uint32_t>((random() % 2 ? turn : -turn) + away * 0.01f));
    }
  }
  return x;
}

void check_function(const Function& f, const HostTensor& x, const HostTensor& got) {
  std::int64_t wrong = 0, first = 0;
  for (std::int64_t i = 0; i < x.size(); ++i) {
    const double at = x.real(i), want = f.exact(at), is = got.real(i);
    bool good = std::isnan(want) ? std::isnan(is) : is == want;
    if (!good && std::isfinite(want)) {
      const double allowed = f.error(at) * kUnit * std::abs(want) + f.beside(at) + 2 * kLastDenormal;
      good = std::abs(is - want) <= allowed || (std::abs(want) > 3.4028234e38 && std::isinf(is));
    }
    if (!good && wrong++ == 0) first = i;
  }
  CHECK_MESSAGE(wrong == 0, std::string(f.call), " of ", name(x.dtype), ": ", wrong, " values; of ", x.real(first),
                " it is ", got.real(first), ", exactly ", f.exact(x.real(first)));
}

}  // namespace

TEST_SUITE("fast functions") {
  TEST_CASE("are within their errors") {
    const auto nvrtc = nvrtc_or_skip();
    if (!nvrtc) return;
    for (const DType dtype : {DType::kFloat16, DType::kBFloat16, DType::kFloat32}) {
      std::string nodes = "x = cast w {\"dtype\": \"float32\"}", outputs;
      for (std::size_t i = 0; i < std::size(kFunctions); ++i) {
        const std::string result = "y" + std::to_string(i);
        nodes += "; " + result + " = " + kFunctions[i].call;
        outputs += result + " ";
      }
      const Graph graph = short_model("w " + std::string(name(dtype)) + " 65536", nodes, outputs);
      const HostTensor w = operands(dtype);
      const TensorMap results = run_on_emulator(*nvrtc, graph, plain_plan(graph, false), {{"w", w}});
      for (std::size_t i = 0; i < std::size(kFunctions); ++i)
        check_function(kFunctions[i], w, results.at("y" + std::to_string(i)));
    }
  }

  // Where sigmoid has a denormal, or 0 since an exponential overflows, as float32 has it step by step.
  TEST_CASE("the logarithm of sigmoid") {
    const auto nvrtc = nvrtc_or_skip();
    if (!nvrtc) return;
    const Graph graph = short_model("x float32 65536", "s = sigmoid x; y = log s", "y");
    const HostTensor x = operands(DType::kFloat32);
    const HostTensor y = run_on_emulator(*nvrtc, graph, plain_plan(graph, true), {{"x", x}}).at("y");
    const Function f{"log(sigmoid x)",
                     [](double at) {
                       return std::isinf(std::exp(static_cast<float>(-at))) ? -std::numeric_limits<double>::infinity()
                                                                            : std::log(sigmoid_of(at));
                     },
                     [](double at) { return 12 + 0.7 * std::abs(at); }, [](double) { return 2 * kUnit; }};
    check_function(f, x, y);
  }

  // What is subtracted before exponentials is no infinity, in whichever way rows are read.
  TEST_CASE("rows with infinities and NaN") {
    const auto nvrtc = nvrtc_or_skip();
    if (!nvrtc) return;
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    const char* lse = "l = logsumexp x {\"dim\": [1], \"keepdim\": true}; y = sub x l";
    for (const char* nodes : {lse, "y = log_softmax x {\"dim\": 1}", "y = softmax x {\"dim\": 1}"})
      for (const int columns : {5, 300, 9000, 40000}) {
        CAPTURE(nodes);
        CAPTURE(columns);
        const Graph graph = short_model("x float32 5," + std::to_string(columns), nodes, "y");
        HostTensor x(DType::kFloat32, {5, columns});
        for (std::int64_t i = 0; i < x.size(); ++i) x.set_real(i, i / columns == 1 ? -kInfinity : i % 19 * 0.25 - 2);
        x.set_real(columns / 3, kInfinity);
        x.set_real(2 * columns + columns / 2, -kInfinity);
        x.set_real(4 * columns - 1, std::numeric_limits<double>::quiet_NaN());
        for (const int c : {0, columns - 2}) x.set_real(4 * columns + c, kInfinity);
        const TensorMap tensors = {{"x", x}}, want = run_reference(graph, tensors);
        const TensorMap got = run_on_emulator(*nvrtc, graph, plain_plan(graph, true), tensors);
        check_close("y", got.at("y"), want.at("y"));
      }
  }

  TEST_CASE("softmax's exponentials") {
    const auto nvrtc = nvrtc_or_skip();
    if (!nvrtc) return;
    constexpr std::int64_t kRows = 256, kColumns = 256;
    for (const DType dtype : {DType::kFloat16, DType::kBFloat16}) {
      const Graph graph = short_model("w " + std::string(name(dtype)) + " 256,256",
                                      "x = cast w {\"dtype\": \"float32\"}; y = softmax x {\"dim\": 1}", "y");
      HostTensor w(dtype, {kRows, kColumns});
      // Every value up to 100 in size, in an order that mixes large and small; beyond, and NaN, are replaced.
      for (std::int64_t i = 0; i < w.size(); ++i) {
        w.set_raw(i, static_cast<std::uint64_t>(i) * 40503u % 65536u);
        if (!(std::abs(w.real(i)) <= 100)) w.set_real(i, static_cast<double>(i % 97) - 60);
      }
      const HostTensor y = run_on_emulator(*nvrtc, graph, plain_plan(graph, false), {{"w", w}}).at("y");
      double most = 0;
      for (std::int64_t r = 0; r < kRows; ++r) {
        double greatest = -1e9, total = 0;
        for (std::int64_t c = 0; c < kColumns; ++c) greatest = std::max(greatest, w.real(r * kColumns + c));
        for (std::int64_t c = 0; c < kColumns; ++c) total += std::exp(w.real(r * kColumns + c) - greatest);
        for (std::int64_t c = 0; c < kColumns; ++c) {
          const double below = greatest - w.real(r * kColumns + c), want = std::exp(-below) / total;
          const double allowed = (16 + below) * kUnit * want + kLeast;
          most = std::max(most, std::abs(y.real(r * kColumns + c) - want) / allowed);
        }
      }
      CHECK(most <= 1);
    }
  }

  TEST_CASE("precise math has CUDA's own functions") {
    const Graph graph = short_model("x float32 64", "y = silu x; z = log y; v = gelu z", "v");
    const FusionPlan plan = plain_plan(graph, true);
    const std::string fast = source_of(lower_plan(graph, plan, Target{}, {}));
    const std::string exact = source_of(lower_plan(graph, plan, Target{}, {.numerics = {.precise_math = true}}));
    for (const char* form : {"ex2.approx", "rcp.approx", "log_fast(", "one_plus_erf("}) {
      CHECK(fast.find(form) != std::string::npos);
      CHECK(exact.find(form) == std::string::npos);
    }
    for (const char* function : {"expf(", "logf(", "erff("}) CHECK(exact.find(function) != std::string::npos);
  }

  TEST_CASE("means are IEEE's quotients") {
    const auto nvrtc = nvrtc_or_skip();
    if (!nvrtc) return;
    for (const int count : {3, 33, 100, 4095}) {
      const std::string rows = "4096," + std::to_string(count);
      const Graph graph = short_model("x float32 " + rows, "y = mean x {\"dim\": [1]}", "y");
      const std::string text = lower_plan(graph, plain_plan(graph, true), Target{}, {}).kernels[0].text;
      CHECK(text.find("exact_mean(") != std::string::npos);
      // One element of a row is anything, the others are 0: its sum is exact.
      HostTensor x(DType::kFloat32, {4096, count});
      std::mt19937 random(5);
      for (std::int64_t r = 0; r < 4096; ++r) {
        const float value = std::ldexp(1.0f + static_cast<float>(random() % (1u << 23)) / (1 << 23),
                                       static_cast<int>(random() % 200) - 90);
        x.set_raw(r * count + r % count, std::bit_cast<std::uint32_t>(r % 2 ? value : -value));
      }
      x.set_raw(0, 0x7f800000u);
      const HostTensor y = run_on_emulator(*nvrtc, graph, plain_plan(graph, true), {{"x", x}}).at("y");
      std::int64_t wrong = 0;
      for (std::int64_t r = 0; r < 4096; ++r) {
        const float want = static_cast<float>(x.real(r * count + r % count)) / static_cast<float>(count);
        wrong += static_cast<float>(y.real(r)) != want;
      }
      CHECK(wrong == 0);
    }
  }

  TEST_CASE("quotients of exact values stay IEEE's, others take the fast form") {
    const auto text = [](const char* nodes) {
      const Graph graph = short_model("x float32 8,64; s float32 8,1", nodes, "y");
      return lower_plan(graph, plain_plan(graph, true), Target{}, {}).kernels[0].text;
    };
    CHECK(text("q = div x s; y = round q").find("divide_fast") == std::string::npos);
    CHECK(text("m = amax x {\"dim\": [1], \"keepdim\": true}; q = div x m; y = round q").find("_fast(") ==
          std::string::npos);
    CHECK(text("e = exp x; y = div e s").find("divide_fast(") != std::string::npos);
    CHECK(text("v = sum x {\"dim\": [1], \"keepdim\": true}; r = sqrt v; y = div x r").find("reciprocal_fast(r)") !=
          std::string::npos);
  }
}
