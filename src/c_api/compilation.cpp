// Compilations and what they tell.
#include <algorithm>

#include "c_api/handles.h"
#include "fusec/inspect.h"
#include "ir/spelling.h"

using namespace fusec;
using namespace fusec::c_api;

namespace {

std::string warnings(const Compilation& compilation) {
  std::string text;
  for (const std::string& warning : compilation.diagnostics) text += warning + "\n";
  return text;
}

struct Product {
  std::string_view kind;
  std::string (*make)(const Compilation&);
};

constexpr Product kProducts[] = {
    {"cu", [](const Compilation& c) { return c.source; }},
    {"header", host_header},
    {"ptx", [](const Compilation& c) { return *whole_image(c).ptx; }},
    {"cubin", [](const Compilation& c) { return *whole_image(c).cubin; }},
    {"manifest", [](const Compilation& c) { return c.manifest; }},
    {"partition", [](const Compilation& c) { return c.partition; }},
    {"plan", [](const Compilation& c) { return c.plan; }},
    {"ir", graph_text},
    {"report", cost_report},
    {"ledger", ledger},
    {"dot", picture_dot},
    {"svg", picture_svg},
    {"html", picture_html},
    {"summary", summary},
    {"warnings", warnings},
};

std::string product_of(const Compilation& compilation, std::string_view kind) {
  const auto* product = std::ranges::find(kProducts, kind, &Product::kind);
  if (product != std::end(kProducts)) return product->make(compilation);
  std::vector<std::string> names;
  for (const Product& p : kProducts) names.emplace_back(p.kind);
  throw Error(ErrorKind::kUsage,
              {.what = "a product", .found = in_quotes(kind), .expected = "one of " + listed(names)});
}

}  // namespace

fusec_status fusec_compile(const fusec_model* model, const fusec_options* options, fusec_compilation** compilation,
                           fusec_error** error) {
  return guarded_new(compilation, error, [&] {
    require(model, "the model");
    return new fusec_compilation{compile(model->model, options_of(options))};
  });
}

const char* fusec_compilation_identifier(const fusec_compilation* compilation) {
  return compilation ? compilation->compilation.identifier.c_str() : "";
}

fusec_status fusec_compilation_product(const fusec_compilation* compilation, const char* kind, fusec_text** product,
                                       fusec_error** error) {
  return guarded_new(product, error, [&] {
    require(compilation, "the compilation");
    require(kind, "the product's kind");
    return new_text(product_of(compilation->compilation, kind));
  });
}

fusec_status fusec_compilation_explain(const fusec_compilation* compilation, const char* const* nodes, size_t count,
                                       int32_t json, fusec_text** explanation, fusec_error** error) {
  return guarded_new(explanation, error, [&] {
    require(compilation, "the compilation");
    return new_text(explain(compilation->compilation, texts(nodes, count, "the nodes"), json != 0));
  });
}

fusec_status fusec_compilation_require_one_kernel(const fusec_compilation* compilation, const char* const* nodes,
                                                  size_t count, fusec_error** error) {
  return guarded(error, [&] {
    require(compilation, "the compilation");
    require_one_kernel(compilation->compilation, texts(nodes, count, "the nodes"));
  });
}

void fusec_compilation_free(fusec_compilation* compilation) {
  delete compilation;
}
