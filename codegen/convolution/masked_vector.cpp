#include "codegen/convolution/masked_vector.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analysis/kernel/loads.h"
#include "codegen/access/vector_access.h"
#include "ir/type.h"

namespace fusec {
namespace {

// The selects `there ? load : 0` with the same mask as the load.
std::vector<ExprId> guarded_by_zeros(const ExprPool& pool, ExprId value, ExprId load) {
  std::vector<ExprId> found;
  for (const ExprId id : reachable(pool, std::span(&value, 1))) {
    const ExprNode& n = pool[id];
    if (n.op != ExprOp::kSelect || n.args[1] != load || n.args[0] != pool[load].args[0]) continue;
    const ExprNode& otherwise = pool[n.args[2]];
    if (otherwise.op == ExprOp::kConstant && otherwise.real == 0 && otherwise.integer == 0) found.push_back(id);
  }
  return found;
}

bool moves(const ExprEmitter& emitter, ExprId load, const StencilAxis& along) {
  const IndexExpr position = emitter.position(load);
  return mentions(position, axis_variable(along.result)) || mentions(position, axis_variable(along.tap));
}

// Neighbours of one load as 32-bit words. Fewer than four bytes are the lower part of a word.
std::string load_words(ExprEmitter& emitter, ExprId id, int width, const std::map<ExprId, std::string>& guards) {
  KernelWriter& writer = emitter.writer();
  const ExprNode& n = emitter.kernel().pool[id];
  const int loaded = bits(n.dtype) * width, count = std::max(1, loaded / 32);
  if (loaded < 32) writer.use("subword");
  const std::string from = fmt::format("{} + ({})", writer.input(n.source), emitter.index(emitter.position(id)));
  std::string value =
      loaded < 32 ? fmt::format("load_subword<{}>({})", loaded, from) : fmt::format("load_words<{}>({})", count, from);
  if (n.args[0] != kNoExpr) value = fmt::format("{} ? {} : Words<{}>{{}}", guards.at(n.args[0]), value, count);
  const std::string name = writer.unique(writer.preferred_name(n.source) + "_w");
  writer.line(fmt::format("const Words<{}> {} = {};", count, name, value));
  return name;
}

}  // namespace

std::string emit_masked_vector(ExprEmitter& emitter, ExprId value, int width, const StencilAxis& along,
                               const std::function<void(const std::string& neighbour)>& bind) {
  KernelWriter& writer = emitter.writer();
  const ExprPool& pool = emitter.kernel().pool;
  const ExprEmitter::Mark mark = emitter.mark();
  std::map<ExprId, std::string> words, guards;
  for (const ExprId id : reachable(pool, std::span(&value, 1))) {
    const ExprNode& n = pool[id];
    if ((n.op == ExprOp::kSelect || n.op == ExprOp::kLoad) && n.args[0] != kNoExpr && !guards.contains(n.args[0]) &&
        is_of_indices(pool, n.args[0])) {
      const std::string holds = emitter.emit(n.args[0]);
      guards[n.args[0]] = writer.unique("inside");
      writer.line(fmt::format("const bool {} = {};", guards[n.args[0]], holds));
    }
    if (n.op == ExprOp::kLoad && moves(emitter, id, along)) words[id] = load_words(emitter, id, width, guards);
  }
  emitter.rewind(mark);
  const std::string four = writer.unique("four"), e = writer.unique("e");
  writer.line(fmt::format("__align__({}) {} {}[{}];", 4 * width, c_type(pool[value].type), four, width));
  writer.open_unrolled(e, width);
  bind(e);
  for (const auto& [guard, holds] : guards) emitter.define(guard, holds);
  // Masked elements are a vector of zeros.
  for (const auto& [id, name] : words)
    for (const ExprId selected : guarded_by_zeros(pool, value, id))
      emitter.define(selected, element_text(pool[id].dtype, name, e, writer));
  emitter.load_text = [&](ExprId id) {
    const auto known = words.find(id);
    return known == words.end() ? "" : element_text(pool[id].dtype, known->second, e, writer);
  };
  writer.line(fmt::format("{}[{}] = {};", four, e, emitter.emit(value)));
  emitter.load_text = nullptr;
  emitter.rewind(mark);
  writer.close();
  return four;
}

}  // namespace fusec
