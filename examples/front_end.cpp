// A compiler front end that uses fusec as a library: builds a graph, registers an op of its own, compiles, and shows
// what it got.
//
//   c++ -std=c++20 front_end.cpp $(flags of find_package(fusec)) && ./front_end
#include <fusec/fusec.h>

#include <cstdio>

namespace {

// Registers `my.soft_cap`: cap * tanh(x / cap), as some attention scores are limited.
fusec::Registry registry_with_soft_cap() {
  fusec::OpDescription soft_cap;
  soft_cap.name = "my.soft_cap";
  soft_cap.operands = {"x", "cap"};
  soft_cap.pattern = "elemwise";
  soft_cap.expression = "$1 * tanh($0 / $1)";
  return fusec::Registry().with(soft_cap);
}

// y = soft_cap(linear(x, w)) * gate, for any number of tokens up to 4096.
fusec::Model build_model() {
  fusec::ModelBuilder builder("front_end", registry_with_soft_cap());
  builder.symbol("tokens", {.max = 4096});
  const auto x = builder.input("x", "float16", {"tokens", 1024});
  const auto gate = builder.input("gate", "float16", {"tokens", 512});
  const auto w = builder.constant("w", "float16", {512, 1024});
  const auto scores = builder.op("linear", {x, w}, {}, "scores");
  const auto capped = builder.op("my.soft_cap", {scores, 30.0}, {}, "capped");
  builder.output(builder.op("mul", {capped, gate}, {}, "y"));
  return builder.build();
}

}  // namespace

int main() {
  try {
    // What a compilation does, and one rewriting pass of it alone: without what computes nothing.
    for (const fusec::PassInfo& pass : fusec::passes_in_order())
      std::printf("%-16s %s\n", pass.name.c_str(), pass.summary.c_str());
    const fusec::Model model = fusec::run_pass(build_model(), "simplify-algebra");
    std::printf("\n%s\n", model.to_text().c_str());

    // What kind of op is each node?
    const auto kinds = fusec::annotate_patterns(model);
    const auto nodes = model.node_names();
    for (std::size_t i = 0; i < nodes.size(); ++i) std::printf("%-10s %s\n", nodes[i].c_str(), kinds[i].c_str());

    // The whole pipeline. With `.ptx = true`, NVRTC compiles the kernels as well.
    const fusec::Compilation result = fusec::compile(model, {.arch = "sm_80"});
    for (const fusec::Group& group : result.groups) {
      std::printf("group %s:", group.name.c_str());
      for (const std::string& node : group.nodes) std::printf(" %s", node.c_str());
      std::printf("\n");
    }
    for (const fusec::KernelInfo& kernel : result.kernels)
      std::printf("kernel %s (%s), %zu bytes of source\n", kernel.name.c_str(), kernel.schedule.c_str(),
                  kernel.source.size());
    std::printf("a plan of %zu bytes, a manifest of %zu\n", result.plan.size(), result.manifest.size());
    std::printf("out.cu has %zu bytes, its host interface begins with %s_create\n", result.source.size(),
                result.identifier.c_str());
  } catch (const fusec::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return error.exit_status();
  }
  return 0;
}
