#include "codegen/host/manifest.h"

#include <algorithm>

#include "codegen/host/emit_matrix_calls.h"
#include "ir/constant_data.h"
#include "ir/json_writer.h"

namespace fusec {
namespace {

std::string hexadecimal(const std::vector<std::byte>& bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (const std::byte byte : bytes) {
    text += kDigits[std::to_integer<unsigned>(byte) >> 4];
    text += kDigits[std::to_integer<unsigned>(byte) & 15];
  }
  return text;
}

class Printer {
 public:
  Printer(const Graph& graph, const FusionPlan& plan, const LaunchPlan& launch)
      : graph_(graph), plan_(plan), launch_(launch) {}

  std::string print(const Target& target) && {
    out_.object([&] {
      out_.member("fusec_manifest", 1);
      out_.member("model", graph_.name);
      out_.member("identifier", launch_.identifier);
      out_.member("arch", target.arch);
      out_.member("numerics", launch_.numerics);
      out_.member("symbols", [&] { symbols(); });
      list("arguments", launch_.arguments, [&](ValueId v) { parameter(v); });
      list("results", launch_.results, [&](ValueId v) { result(v); });
      list("embedded", launch_.embedded, [&](ValueId v) { embedded(v); });
      list("checks", launch_.checks, [&](const LaunchCheck& check) {
        out_.object([&] {
          formula("left", check.left);
          formula("right", check.right);
          out_.member("what", check.what);
        });
      });
      formula("workspace_bytes", launch_.workspace_bytes);
      formula("prepared_bytes", launch_.prepared_bytes);
      formula("least_workspace_bytes", launch_.live_bytes);
      list("kernels", launch_.kernels, [&](const KernelSource& k) { kernel(k); });
      list("prepare", launch_.prepare_steps, [&](const LaunchStep& s) { step(s); });
      list("launches", launch_.steps, [&](const LaunchStep& s) { step(s); });
    });
    return std::move(out_).text() + "\n";
  }

 private:
  template <typename List, typename F>
  void list(std::string_view key, const List& elements, const F& write) {
    out_.member(key, [&] { out_.array_of(elements, write); });
  }
  std::string text(const IndexExpr& e) const { return to_string(e, graph_.symbols); }
  void formula(std::string_view key, const IndexExpr& e) { out_.member(key, text(e)); }
  template <typename List>
  void formulas(std::string_view key, const List& expressions) {
    list(key, expressions, [&](const IndexExpr& e) { out_.value(text(e)); });
  }

  void symbols() {
    out_.array([&] {
      for (std::size_t i = 0; i < graph_.symbols.size(); ++i) {
        const Symbol& s = graph_.symbols[i];
        out_.object([&] {
          out_.member("name", s.name);
          out_.member("min", s.min);
          out_.member("max", s.max);
          out_.member("multiple_of", s.multiple_of);
          out_.member("hint", s.hint);
          const auto is_its = [&](const SymbolStep& solution) { return solution.symbol == i; };
          const auto solution = std::ranges::find_if(launch_.solutions, is_its);
          if (solution != launch_.solutions.end()) out_.member("from", [&] { solved(*solution); });
        });
      }
    });
  }

  void solved(const SymbolStep& solution) {
    out_.object([&] {
      out_.member("input", graph_.value(graph_.inputs[solution.input]).name);
      out_.member("dimension", solution.dimension);
      formula("coefficient", solution.coefficient);
      formula("rest", solution.rest);
    });
  }

  void tensor(ValueId v) {
    out_.member("name", graph_.value(v).name);
    out_.member("dtype", name(graph_.tensor(v).dtype));
    formulas("shape", graph_.tensor(v).shape);
  }

  void parameter(ValueId v) {
    out_.object([&] {
      tensor(v);
      if (graph_.value(v).kind == Value::Kind::kConstant) out_.member("constant", true);
    });
  }

  void result(ValueId v) {
    out_.object([&] {
      tensor(v);
      for (const Alias& alias : graph_.aliases)
        if (alias.output == v) out_.member("alias_of", graph_.value(alias.input).name);
    });
  }

  void embedded(ValueId v) {
    out_.object([&] {
      tensor(v);
      out_.member("data", hexadecimal(constant_bytes(*graph_.constant_of(v)->data, graph_.tensor(v).dtype)));
    });
  }

  void kernel(const KernelSource& kernel) {
    out_.object([&] {
      out_.member("name", kernel.name);
      out_.member("schedule", name(kernel.schedule));
      out_.member("block", kernel.block);
      out_.member("cluster", kernel.cluster);
      list("parameters", kernel.parameters, [&](const KernelParameter& p) { parameter(p); });
    });
  }

  void parameter(const KernelParameter& p) {
    out_.object([&] {
      out_.member("name", p.name);
      if (p.kind == KernelParameter::Kind::kSize)
        out_.member("kind", p.bits == 64 ? "int64" : "int32");
      else if (p.kind == KernelParameter::Kind::kTensorMap)
        out_.member("kind", "tensor_map");
      else {
        out_.member("kind", "pointer");
        out_.member("written", p.written);
      }
    });
  }

  void buffer(const BufferRef& b) {
    switch (b.kind) {
      case BufferRef::Kind::kInput:
        return out_.member("argument", graph_.value(graph_.inputs[b.index]).name);
      case BufferRef::Kind::kConstant:
        return out_.member("argument", graph_.value(graph_.constants[b.index].value).name);
      case BufferRef::Kind::kEmbedded:
        return out_.member("embedded", graph_.value(graph_.constants[b.index].value).name);
      case BufferRef::Kind::kOutput:
        return out_.member("result", graph_.value(launch_.results[b.index]).name);
      case BufferRef::Kind::kWorkspace:
        return formula("workspace", b.offset);
      case BufferRef::Kind::kPrepared:
        return formula("prepared", b.offset);
      case BufferRef::Kind::kNowhere:
        break;
    }
  }

  // In elements, innermost dimension first.
  void boxes(const TensorMapBoxes& boxes) {
    out_.object([&] {
      out_.member("element_bytes", boxes.element_bytes);
      formula("offset", boxes.offset);
      formulas("extents", boxes.extents);
      formulas("strides", boxes.strides);
      out_.member("box", boxes.box);
      out_.member("swizzle_bytes", boxes.swizzle_bytes());
    });
  }

  void matrix(const CublasLtMatrix& view) {
    out_.object([&] {
      out_.member("tensor", graph_.value(view.value).name);
      out_.member("dtype", name(view.dtype));
      formula("offset", view.offset);
      formula("rows", view.rows);
      formula("columns", view.columns);
      formula("leading", view.leading);
      formula("batch_stride", view.batch_stride);
      out_.member("transposed", view.transposed);
      out_.member("alignment", view.alignment);
    });
  }

  // Column-major, as in cuBLASLt.
  void product(const CublasLtCall& call) {
    out_.object([&] {
      formula("m", call.m);
      formula("n", call.n);
      formula("k", call.k);
      formula("batch", call.batch);
      out_.member("compute_type", compute_type_name(call));
      out_.member("scale_type", scale_type_name(call));
      out_.member("epilogue", epilogue_name(call));
      out_.member("alpha", call.alpha);
      out_.member("beta", call.beta);
      out_.member("a", [&] { matrix(call.a); });
      out_.member("b", [&] { matrix(call.b); });
      if (call.c) out_.member("c", [&] { matrix(*call.c); });
      out_.member("d", [&] { matrix(call.d); });
      if (call.bias != kNone) out_.member("bias", [&] { bias(call); });
      if (call.a_scale != kNone) out_.member("a_scale", graph_.value(call.a_scale).name);
      if (call.b_scale != kNone) out_.member("b_scale", graph_.value(call.b_scale).name);
      if (call.outer_scales) out_.member("outer_scales", true);
      if (call.aux != kNone) out_.member("aux", graph_.value(call.aux).name);
    });
  }

  void bias(const CublasLtCall& call) {
    out_.object([&] {
      out_.member("tensor", graph_.value(call.bias).name);
      out_.member("dtype", name(call.bias_dtype));
      formula("offset", call.bias_offset);
    });
  }

  void argument(const Argument& a) {
    if (a.kind != Argument::Kind::kSize && a.buffer.kind == BufferRef::Kind::kNowhere) return out_.null();
    out_.object([&] {
      if (a.kind == Argument::Kind::kSize)
        formula("size", a.size);
      else
        buffer(a.buffer);
      if (a.kind == Argument::Kind::kTensorMap) out_.member("tensor_map", [&] { boxes(a.boxes); });
    });
  }
  void arguments(const std::vector<Argument>& those) {
    list("arguments", those, [&](const Argument& a) { argument(a); });
  }

  void condition(const GuardCondition& condition) {
    IndexExpr product = 1;
    for (const std::uint32_t s : condition.symbols) product *= IndexExpr::symbol(s);
    out_.object([&] {
      formula("value", product);
      if (condition.multiple_of != 1) out_.member("multiple_of", condition.multiple_of);
      if (condition.at_least > 0) out_.member("at_least", condition.at_least);
      if (condition.at_most != GuardCondition::kNoLimit) out_.member("at_most", condition.at_most);
    });
  }

  // What is launched instead if all of `when` holds. Without a kernel, nothing is launched.
  void special_form(const LaunchStep::Specialization& form) {
    out_.object([&] {
      list("when", form.guard, [&](const GuardCondition& c) { condition(c); });
      if (form.kernel == kNone) return;
      out_.member("kernel", launch_.kernels[form.kernel].name);
      formulas("grid", form.grid);
      formula("dynamic_shared_bytes", form.dynamic_shared);
      arguments(form.arguments);
    });
  }

  void communication(const LaunchStep& step) {
    const Node& node = graph_.nodes[step.node];
    const Attributes& attributes = graph_.attributes(node);
    const TensorType &operand = graph_.tensor(step.reads[0]), &result = graph_.tensor(step.writes[0]);
    out_.object([&] {
      out_.member("op", node.op->name);
      out_.member("group", attributes.text("group"));
      if (node.op->name != "all_gather") out_.member("reduce_op", attributes.text("reduce_op", "sum"));
      if (node.op->name != "all_reduce") out_.member("dim", attributes.integer("dim", 0));
      out_.member("dtype", name(operand.dtype));
      formulas("operand_shape", operand.shape);
      formulas("result_shape", result.shape);
    });
  }

  void step(const LaunchStep& step) {
    out_.object([&] {
      switch (step.kind) {
        case LaunchStep::Kind::kKernel:
          out_.member("kernel", launch_.kernels[step.kernel].name);
          formulas("grid", step.grid);
          formula("dynamic_shared_bytes", step.dynamic_shared);
          if (!step.special.empty())
            list("special", step.special, [&](const LaunchStep::Specialization& form) { special_form(form); });
          break;
        case LaunchStep::Kind::kCopy:
          formula("copy_bytes", step.bytes);
          break;
        case LaunchStep::Kind::kExternal:
          out_.member("external", graph_.nodes[step.node].name);
          break;
        case LaunchStep::Kind::kCollective:
          out_.member("collective", graph_.nodes[step.node].name);
          out_.member("communication", [&] { communication(step); });
          break;
        case LaunchStep::Kind::kMatrixCall:
          out_.member("library", "cublaslt");
          formula("workspace_bytes", step.bytes);
          out_.member("product", [&] { product(*step.matrix); });
          break;
      }
      if (step.group < plan_.groups.size()) out_.member("group", plan_.groups[step.group].name);
      arguments(step.arguments);
    });
  }

  const Graph& graph_;
  const FusionPlan& plan_;
  const LaunchPlan& launch_;
  JsonWriter out_{2};
};

}  // namespace

std::string manifest(const Graph& graph, const FusionPlan& plan, const LaunchPlan& launch, const Target& target) {
  return Printer(graph, plan, launch).print(target);
}

}  // namespace fusec
