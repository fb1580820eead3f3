// Figures worked out by hand, on the A100 of the table: 1.555e12 bytes a second, 19.5e12 and 312e12 operations a
// second, 108 multiprocessors, 3 microseconds a launch.
#include "schedule/cost/cost_model.h"

#include <doctest/doctest.h>

#include <numeric>

#include "schedule/lowering/launch_cost.h"
#include "support/short_model.h"

using namespace fusec;
using doctest::Approx;

namespace {

const Target kA100 = target_for("sm_80");

// All nodes as one group.
Prediction predicted(const Graph& graph, const Target& target = kA100) {
  std::vector<NodeId> nodes(graph.nodes.size());
  std::iota(nodes.begin(), nodes.end(), NodeId{0});
  return predict(graph, nodes, graph.outputs, true, target);
}

}  // namespace

TEST_CASE("an elementwise kernel moves its operands and result once") {
  const Prediction p = predicted(test::short_model("x float32 1024,1024; z float32 1024,1024", "y = add x z", "y"));
  CHECK(p.flops == 1024 * 1024);
  CHECK(p.read == 2 * 4 * 1024 * 1024);
  CHECK(p.written == 4 * 1024 * 1024);
  CHECK(p.launches == 1);
  CHECK(p.launch == Approx(3e-6));
  CHECK(p.memory == Approx(12582912 / 1.555e12));
  // 1024 blocks of 1024 elements: ten on the busiest of 108 multiprocessors, 9.48 on the average one.
  CHECK(p.compute == Approx(1048576 / 19.5e12 * 10 / (1024 / 108.0)));
  CHECK(p.total == Approx(3e-6 + 12582912 / 1.555e12));
  CHECK(p.additive() == Approx(p.launch + p.memory + p.compute));
  CHECK(p.roof() == Roof::kMemory);
}

TEST_CASE("silu is three operations an element, in any float type") {
  CHECK(predicted(test::short_model("x bfloat16 64,128", "y = silu x", "y")).flops == 3 * 64 * 128);
  CHECK(predicted(test::short_model("x float32 64,128", "y = silu x", "y")).flops == 3 * 64 * 128);
}

TEST_CASE("a product is two operations for each of M N K, on the unit that multiplies its factors") {
  const Prediction p =
      predicted(test::short_model("x bfloat16 1024,1024; w bfloat16 1024,1024", "y = linear x w", "y"));
  CHECK(p.flops == 2147483648.0);
  CHECK(p.read == 2 * 2097152);
  CHECK(p.written == 2097152);
  // 256 tiles: three waves where 2.37 would be enough.
  CHECK(p.compute == Approx(2147483648.0 / 312e12 * 3 / (256 / 108.0)));
  CHECK(p.memory == Approx(6291456 / 1.555e12));
  CHECK(p.roof() == Roof::kCompute);
  const Prediction wide =
      predicted(test::short_model("x float32 1024,1024; w float32 1024,1024", "y = linear x w", "y"));
  CHECK(wide.flops == p.flops);
  // Off the tensor cores tiles are smaller: 512 of 64 by 32.
  CHECK(1e6 * wide.compute == Approx(1e6 * 2147483648.0 / 19.5e12 * 5 / (512 / 108.0)));
}

TEST_CASE("softmax is five operations an element, and reads its rows once") {
  const Prediction p = predicted(test::short_model("x float32 4096,1024", "y = softmax x {\"dim\": 1}", "y"));
  CHECK(p.flops == Approx(5.0 * 4096 * 1024).epsilon(0.001));
  CHECK(p.read == 4 * 4096 * 1024);
  CHECK(p.memory == Approx(2 * 4 * 4096 * 1024 / 1.555e12));
}

TEST_CASE("a small kernel costs its launch") {
  const Prediction p = predicted(test::short_model("x float32 16", "y = relu x", "y"));
  CHECK(p.roof() == Roof::kLaunch);
  CHECK(p.total == Approx(3e-6).epsilon(0.2));
}

TEST_CASE("views cost nothing, rows that an index chooses are read, not the whole table") {
  CHECK(predicted(test::short_model("x float32 4,8", "y = reshape x {\"shape\": [32]}", "y")).total == 0);
  const Prediction p =
      predicted(test::short_model("i int64 64; w float32 32000,128", "y = index_select w i {\"dim\": 0}", "y"));
  CHECK(p.read == 64 * 8 + 64 * 128 * 4);
  const Prediction cut = predicted(
      test::short_model("x float32 64,256", "h = slice x {\"dim\": 1, \"start\": 128, \"end\": 256}; y = relu h", "y"));
  CHECK(cut.read == 64 * 128 * 4);
}

TEST_CASE("a cache that is changed in its place is not read") {
  Graph graph = test::short_model("x float32 1024,1024; v float32 2,1024; i int64 2", "y = index_put x v i", "y");
  CHECK(predicted(graph).written == 4 * 1024 * 1024);
  graph.aliases.push_back({graph.outputs[0], graph.nodes[0].inputs[0]});
  const Prediction p = predicted(graph);
  CHECK(p.written == 4 * 2 * 1024);
  CHECK(p.read == 4 * 2 * 1024 + 2 * 8);
}

TEST_CASE("a row that is read several times comes from memory once") {
  const Prediction p = predicted(
      test::short_model("x float32 512,256", "m = amax x {\"dim\": [1], \"keepdim\": true}; y = sub x m", "y"));
  CHECK(p.launches == 1);
  CHECK(p.read == 4 * 512 * 256);
}

TEST_CASE("one block alone does not draw all of the bandwidth") {
  const Prediction few = predicted(test::short_model("x float32 1,16384", "y = softmax x {\"dim\": 1}", "y"));
  // 512 threads with four times sixteen bytes on the way each, in one latency of 331 ns.
  CHECK(1e6 * few.memory == Approx(1e6 * 2 * 4 * 16384 / (512 * 64 / 331e-9)));
  CHECK(few.memory > 5 * 2 * 4 * 16384 / 1.555e12);
}

TEST_CASE("a longer row is divided among blocks, keys that one query looks at among others") {
  // Once by blocks that wait for one another, behind a launch that clears their counters, or twice: in chunks that
  // leave what one pass finds, and for what follows of that.
  const Prediction row = predicted(test::short_model("x float32 1,65536", "y = softmax x {\"dim\": 1}", "y"));
  CHECK(row.launches == 2);
  CHECK(row.memory < 3 * 2 * 4 * 65536 / 1.555e12);
  CHECK(predicted(test::short_model("x float32 1,2000000", "y = softmax x {\"dim\": 1}", "y")).launches == 2);
  const std::string cache = "; k float16 1,8,4096,64; v float16 1,8,4096,64";
  const Prediction decoding =
      predicted(test::short_model("q float16 1,8,1,64" + cache, "y = scaled_dot_product_attention q k v", "y"));
  CHECK(decoding.launches == 1);
  CHECK(decoding.written > 2 * 8 * 64);  // and what the blocks leave for the last one
  CHECK(decoding.memory < 2 * decoding.read / 1.555e12);
}

TEST_CASE("blocks share keys while they do not draw all of the bandwidth") {
  // Decoding with 32 heads: as many blocks would leave most multiprocessors idle.
  const std::string inputs = "q float16 4,8,1,64; k float16 4,8,2048,64; v float16 4,8,2048,64";
  for (const char* arch : {"sm_80", "sm_90a"}) {
    const Target target = target_for(arch);
    const Prediction p = predicted(test::short_model(inputs, "y = scaled_dot_product_attention q k v", "y"), target);
    CHECK(p.launches == 1);
    CHECK(p.written > 2 * 4 * 8 * 64);
    CHECK(p.memory < 1.5 * p.read / target.bandwidth);
  }
}

TEST_CASE("what is fused shares its launch and leaves out what stood between") {
  const Graph graph = test::short_model("x float16 2048,4096; z float16 2048,4096", "a = silu x; y = mul a z", "y");
  const double mebibyte = 1 << 20;
  const Prediction fused = predicted(graph);
  Prediction apart = predict(graph, {0}, {graph.nodes[0].first_output}, false, kA100);
  apart += predict(graph, {1}, graph.outputs, false, kA100);
  CHECK(fused.read + fused.written == 48 * mebibyte);
  CHECK(apart.read + apart.written == 80 * mebibyte);
  CHECK(apart.launches == 2);
  CHECK(apart.flops == fused.flops);
  CHECK(fused.total < apart.total);
}

TEST_CASE("kernels side by side are one launch") {
  const Graph graph = test::short_model("x float32 4096; z float32 4096", "a = relu x; b = tanh z", "a b");
  CHECK(predict(graph, {0, 1}, graph.outputs, true, kA100).launches == 1);
  CHECK(predict(graph, {0, 1}, graph.outputs, false, kA100).launches == 2);
}

TEST_CASE("what warps multiply takes longer than what warpgroups do, whatever the form") {
  // By how much more, on a target whose warps have so much of the tensor cores' rate.
  const auto longer = [](const std::string& inputs, const std::string& nodes, const std::string& outputs = "y") {
    const Target target = target_for("sm_90a");
    Target even = target;
    even.mma_sync_rate = 1;
    const Graph graph = test::short_model(inputs, nodes, outputs);
    return predicted(graph, target).compute / predicted(graph, even).compute;
  };
  const double by_warps = 1 / target_for("sm_90a").mma_sync_rate;
  REQUIRE(by_warps > 1.5);
  CHECK(longer("x float16 4096,4096; w float16 4096,4096", "y = linear x w") == Approx(1));
  // Channels first: elements are gathered one by one.
  CHECK(longer("x float16 16,128,28,28; w float16 128,128,3,3", "y = conv2d x w {\"padding\": [1, 1]}") ==
        Approx(by_warps));
  CHECK(longer("x float16 16,28,28,128; w float16 128,3,3,128",
               "i = permute x {\"dims\": [0, 3, 1, 2]}; v = permute w {\"dims\": [0, 3, 1, 2]}; "
               "p = conv2d i v {\"padding\": [1, 1]}; y = permute p {\"dims\": [0, 2, 3, 1]}") == Approx(1));
  CHECK(longer("x float16 8192,1024; w float16 256,1024", "p = linear x w; y = softmax p {\"dim\": 1}") ==
        Approx(by_warps));
  // Beside one another, too, but for what warpgroups multiply together.
  const std::string image = "x float16 16,28,28,128; w float16 128,3,3,128; d float16 128,1,1,128";
  const std::string both =
      "i = permute x {\"dims\": [0, 3, 1, 2]}; v = permute w {\"dims\": [0, 3, 1, 2]}; "
      "e = permute d {\"dims\": [0, 3, 1, 2]}; p = conv2d i v {\"stride\": [2, 2], \"padding\": [1, 1]}; "
      "q = conv2d i e {\"stride\": [2, 2]}; y = permute p {\"dims\": [0, 2, 3, 1]}; "
      "z = permute q {\"dims\": [0, 2, 3, 1]}";
  CHECK(longer(image, both, "y z") == Approx(by_warps));
  CHECK(longer("x float16 4096,4096; w float16 4096,4096; v float16 1024,4096", "y = linear x w; z = linear x v",
               "y z") == Approx(1));
  const std::string heads = " float16 16,32,1024,128";
  CHECK(longer("q" + heads + "; k" + heads + "; v" + heads, "y = scaled_dot_product_attention q k v") == Approx(1));
  const std::string few = "q float16 64,32,64,128; k float16 64,32,4096,128; v float16 64,32,4096,128";
  CHECK(longer(few, "y = scaled_dot_product_attention q k v") == Approx(by_warps));
}

TEST_CASE("figures of the target decide") {
  const Graph graph = test::short_model("x float32 1024,1024; z float32 1024,1024", "y = add x z", "y");
  const double a100 = predicted(graph).total;
  CHECK(predicted(graph, target_for("sm_89")).total > a100);
  CHECK(predicted(graph, target_for("h200")).total < predicted(graph, target_for("sm_90a")).total);
}

TEST_CASE("the additive formula of three small kernels and of one") {
  // add, relu and mul: 0.01 ms of computing, 0.04 ms of memory and 0.02 ms of launching each.
  Prediction unfused;
  for (int i = 0; i < 3; ++i) unfused += {.launch = 0.02e-3, .memory = 0.04e-3, .compute = 0.01e-3};
  const Prediction fused{.launch = 0.02e-3, .memory = 0.04e-3, .compute = 0.03e-3};
  CHECK(unfused.additive() == Approx(0.21e-3));
  CHECK(fused.additive() == Approx(0.09e-3));
}
