// The table of schedule/kernel_forms: which form a kernel has and why no better one, and that schedules implement it.
#include "schedule/kernel_forms.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "codegen/dispatch/schedules.h"
#include "ir/read.h"
#include "schedule/lowering/lower_group.h"
#include "schedule/plan/kernel_planner.h"
#include "support/short_model.h"

using namespace fusec;

namespace {

// The kernels of a group of these nodes.
std::vector<Kernel> kernels_of(const Graph& graph, const std::vector<NodeId>& nodes,
                               const std::vector<ValueId>& outputs) {
  std::vector<Kernel> kernels;
  for (LoweredUnit& unit : lower_group(graph, nodes, outputs))
    if (unit.kind == LoweredUnit::Kind::kKernel) kernels.push_back(std::move(unit.kernel));
  return kernels;
}

std::vector<Kernel> kernels_of_node(const Graph& graph, NodeId n) {
  const Node& node = graph.nodes[n];
  std::vector<ValueId> outputs;
  for (std::uint32_t o = 0; o < node.output_count; ++o) outputs.push_back(node.first_output + o);
  return kernels_of(graph, {n}, outputs);
}

// "form: why not better" of the one kernel of a model's nodes.
std::string form_text(const std::string& inputs, const std::string& nodes, const std::string& output) {
  const Graph graph = read_model_text(
      R"({"fusec": 1, "symbols": {"n": {}}, "inputs": [{"name": "s", "dtype": "bool", "shape": ["n"]}, )" + inputs +
          R"(], "nodes": [)" + nodes + R"(], "outputs": [")" + output + R"("]})",
      "test.json", ".");
  std::vector<NodeId> all;
  for (NodeId n = 0; n < graph.nodes.size(); ++n) all.push_back(n);
  const std::vector<Kernel> kernels = kernels_of(graph, all, graph.outputs);
  REQUIRE(kernels.size() == 1);
  const FormOfKernel form = form_of(kernels[0]);
  return std::string(name(form.form)) + ": " + std::string(form.why_not_better);
}

const std::map<KernelForm, std::set<std::string>> kSchedulesOf = {
    {KernelForm::kPointwise, {"pointwise", "staged_copy", "sliding_window"}},
    {KernelForm::kTensorCoreContraction,
     {"gemm_mma", "gemm_wgmma", "split_k_reduction", "convolution_mma", "convolution_wgmma", "contraction_mma",
      "skinny_gemm_mma", "grouped_implicit_gemm"}},
    {KernelForm::kContraction,
     {"gemm", "gemm_mma", "split_k_reduction", "convolution", "convolution_mma", "convolution_wgmma", "contraction",
      "skinny_gemm_mma", "grouped_implicit_gemm"}},
    {KernelForm::kRowReduction,
     {"pointwise", "row_reduction", "column_reduction", "nhwc_stencil", "nchw_stencil", "sliding_window", "direct",
      "skinny_gemm_mma", "grouped_implicit_gemm"}},
    {KernelForm::kRowGemm, {"row_gemm", "row_gemm_mma"}},
    {KernelForm::kAttention, {"attention", "attention_mma", "attention_wgmma"}},
    {KernelForm::kThreadPerElement,
     {"pointwise", "grouped_implicit_gemm", "nhwc_stencil", "nchw_stencil", "sliding_window", "direct"}},
};

}  // namespace

TEST_CASE("the form of a kernel, and why it is no better one") {
  const std::string x = R"({"name": "x", "dtype": "float32", "shape": ["n", 64]})";
  const std::string x16 = R"({"name": "x", "dtype": "bfloat16", "shape": ["n", 64]})";
  const std::string w = R"(, {"name": "w", "dtype": "float32", "shape": [48, 64]})";
  const std::string w16 = R"(, {"name": "w", "dtype": "bfloat16", "shape": [48, 64]})";
  const std::string linear = R"({"name": "y", "op": "linear", "inputs": ["x", "w"]})";
  CHECK(form_text(x, R"({"name": "y", "op": "silu", "inputs": ["x"]})", "y") == "pointwise: ");
  CHECK(form_text(x + w, linear + R"(, {"name": "z", "op": "relu", "inputs": ["y"]})", "z") ==
        "product: its factors are not of one 16-bit float dtype, summed in float32");
  CHECK(form_text(x16 + w16, linear + R"(, {"name": "z", "op": "relu", "inputs": ["y"]})", "z") ==
        "tensor_core_product: it holds a reduction");
  CHECK(form_text(x, R"({"name": "y", "op": "softmax", "inputs": ["x"], "attrs": {"dim": 1}})", "y") ==
        "rows: it holds more than one reduction");
  CHECK(form_text(x, R"({"name": "y", "op": "sum", "inputs": ["x"], "attrs": {"dim": [1]}})", "y") ==
        "rows: what it sums is no product of two factors");
  CHECK(form_text(x, R"({"name": "y", "op": "amax", "inputs": ["x"], "attrs": {"dim": [1]}})", "y") ==
        "rows: its reduction is no sum");
  const std::string heads = R"({"name": "q", "dtype": "float16", "shape": [2, 9, 16]}, )"
                            R"({"name": "k", "dtype": "float16", "shape": [2, 11, 16]}, )"
                            R"({"name": "v", "dtype": "float16", "shape": [2, 11, 16]})";
  CHECK(form_text(heads, R"({"name": "y", "op": "scaled_dot_product_attention", "inputs": ["q", "k", "v"]})", "y")
            .starts_with("attention: "));
  const std::string large = R"({"name": "q", "dtype": "float16", "shape": [2, 9, 300]}, )"
                            R"({"name": "k", "dtype": "float16", "shape": [2, 11, 300]}, )"
                            R"({"name": "v", "dtype": "float16", "shape": [2, 11, 16]})";
  CHECK(!form_text(large, R"({"name": "y", "op": "scaled_dot_product_attention", "inputs": ["q", "k", "v"]})", "y")
             .starts_with("attention: "));
  CHECK(form_text(x + R"(, {"name": "v", "dtype": "float32", "shape": [1, 64]})",
                  R"({"name": "y", "op": "linear", "inputs": ["x", "v"]})",
                  "y") == "rows: a factor has no output axis of its own: a product of a matrix and a vector");
}

TEST_CASE("several products, whole rows, and what keeps them apart") {
  const auto form_of_all = [](const std::string& inputs, const std::string& nodes, const std::string& output) {
    const Graph graph = test::short_model(inputs, nodes, output);
    std::vector<NodeId> all;
    for (NodeId n = 0; n < graph.nodes.size(); ++n) all.push_back(n);
    return kernels_of(graph, all, graph.outputs);
  };
  const std::string inputs = "x float16 70,48; a float16 40,48; b float16 40,48; w float16 80,48; r float16 70,40";
  SUBCASE("one loop in which what two share is one factor") {
    const auto kernels = form_of_all(inputs, "p = linear x a; q = linear x b; s = silu p; h = mul s q", "h");
    REQUIRE(kernels.size() == 1);
    const FormOfKernel form = form_of(kernels[0]);
    REQUIRE(form.form == KernelForm::kTensorCoreContraction);
    REQUIRE(form.contraction->loops.size() == 1);
    CHECK(form.contraction->loops[0].left.size() == 1);
    CHECK(form.contraction->loops[0].right.size() == 2);
    CHECK(form.contraction->loops[0].terms.size() == 2);
  }
  SUBCASE("halves of one") {
    const auto kernels =
        form_of_all(inputs, "p = linear x w; c = chunk p {\"chunks\": 2, \"dim\": 1}; h = mul c.0 c.1", "h");
    REQUIRE(kernels.size() == 1);
    CHECK(term_count(*form_of(kernels[0]).contraction) == 2);
  }
  SUBCASE("what is joined along the depth is a sum for each piece, where these begin at 16 bytes") {
    const auto sums_of = [&](const std::string& joined) {
      const auto kernels =
          form_of_all(joined + "; w float16 80,48", "c = concat a b {\"dim\": 1}; p = linear c w", "p");
      REQUIRE(kernels.size() == 1);
      const FormOfKernel form = form_of(kernels[0]);
      REQUIRE(form.form == KernelForm::kTensorCoreContraction);
      return term_count(*form.contraction);
    };
    CHECK(sums_of("a float16 70,32; b float16 70,16") == 2);
    CHECK(sums_of("a float16 70,29; b float16 70,19") == 1);
  }
  SUBCASE("a factor in 16 bits beside one in 32 is another kernel") {
    const auto kernels =
        form_of_all("x float16 70,48; a float16 40,48; y float32 70,48; b float32 40,48",
                    "p = linear x a; c = cast p {\"dtype\": \"float32\"}; q = linear y b; h = add c q", "h");
    CHECK(kernels.size() == 2);
  }
  SUBCASE("whole rows") {
    const auto kernels = form_of_all(inputs, "p = linear x a; h = add p r; y = softmax h {\"dim\": 1}", "y");
    REQUIRE(kernels.size() == 1);
    const FormOfKernel form = form_of(kernels[0]);
    REQUIRE(form.form == KernelForm::kRowGemm);
    CHECK(form.row_gemm->columns == 40);
    CHECK(form.row_gemm->accumulator_at_columns.size() == 1);
    FormMemory forms;
    const auto sources =
        schedule(kernels[0], test::short_model(inputs, "p = linear x a; h = add p r; y = softmax h {\"dim\": 1}", "y"),
                 Target{}, forms);
    CHECK(sources.at(0).schedule == Schedule{KernelKind::kRowGemm, MatrixUnit::kMma});
  }
  SUBCASE("many rows under long sums: reading the matrix more often is dearer than storing the rows") {
    const auto kernels =
        form_of_all("x float16 16384,4096; a float16 1024,4096", "p = linear x a; y = softmax p {\"dim\": 1}", "y");
    REQUIRE(kernels.size() == 2);
    CHECK(form_of(kernels[0]).form == KernelForm::kTensorCoreContraction);
    CHECK(form_of(kernels[1]).form == KernelForm::kRowReduction);
  }
}

TEST_CASE("a convolution in groups is a batch of products") {
  const Graph graph = read_model_text(
      R"({"fusec": 1, "inputs": [{"name": "x", "dtype": "float16", "shape": [2, 32, 9, 9]},
                                 {"name": "w", "dtype": "float16", "shape": [64, 8, 3, 3]}],
          "nodes": [{"name": "y", "op": "conv2d", "inputs": ["x", "w"], "attrs": {"groups": 4}}], "outputs": ["y"]})",
      "test.json", ".");
  const FormOfKernel form = form_of(kernels_of_node(graph, 0).at(0));
  CHECK(form.form == KernelForm::kTensorCoreContraction);
  REQUIRE(form.rewritten);
  CHECK(form.rewritten->outputs[0].axes.size() == 5);
  CHECK(form.contraction->batch.size() == 1);
}

TEST_CASE("every kernel of the corpus is scheduled as its form says") {
  std::map<KernelForm, int> seen;
  const std::filesystem::path tests = FUSEC_TESTS_DIR;
  for (const std::filesystem::path& folder : {tests / "corpus" / "models", tests / "golden"})
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      const std::string file = entry.path().filename().string();
      const bool model = folder.filename() == "golden" ? file.ends_with(".json") && !file.ends_with(".partition.json")
                                                       : file.ends_with(".tiny.json");
      if (!model) continue;
      const Graph graph = read_model(entry.path().string());
      for (NodeId n = 0; n < graph.nodes.size(); ++n)
        for (const Kernel& kernel : kernels_of_node(graph, n)) {
          const FormOfKernel form = form_of(kernel);
          ++seen[form.form];
          FormMemory forms;
          const Target target;
          const std::vector<KernelSource> sources = schedule(kernel, graph, target, forms);
          const Schedule planned = KernelPlanner(kernel, form, graph, target).plan().schedule;
          // Movement decides as it emits.
          if (planned.kind != KernelKind::kPointwise)
            CHECK_MESSAGE(std::ranges::count(sources, planned, &KernelSource::schedule) > 0, name(planned));
          for (const KernelSource& source : sources) {
            INFO(file, ": ", graph.nodes[n].name);
            CHECK_MESSAGE(kSchedulesOf.at(form.form).contains(name(source.schedule)), name(form.form), " as ",
                          name(source.schedule));
          }
        }
    }
  for (const KernelForm form : {KernelForm::kPointwise, KernelForm::kTensorCoreContraction, KernelForm::kContraction,
                                KernelForm::kRowReduction})
    CHECK_MESSAGE(seen[form] > 0, name(form));
}
