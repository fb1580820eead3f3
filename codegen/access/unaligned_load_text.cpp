#include "codegen/access/unaligned_load_text.h"

#include <fmt/format.h>

#include "ir/type.h"

namespace fusec {

std::string unaligned_load_text(ExprEmitter& emitter, const UnalignedLoad& window, const std::string& wanted,
                                bool sometimes, int step) {
  KernelWriter& writer = emitter.writer();
  const ExprNode& n = emitter.kernel().pool[window.load];
  const std::string& tensor = writer.input(n.source);
  const std::string first = emitter.index(window.first);
  if (!window.together) {
    writer.use("words");
    const std::string from = window.first.is(0) ? tensor : fmt::format("{} + ({})", tensor, first);
    const std::string loaded = fmt::format("load_words<{}>({})", window.words, from);
    return wanted.empty() ? loaded : fmt::format("{} ? {} : Words<{}>{{}}", wanted, loaded, window.words);
  }
  writer.use("windows");
  // An unconditional load must be in range for threads without points too.
  const char* const inside = window.whole && n.args[0] == kNoExpr && !sometimes ? "Inside::kSure"
                             : window.whole                                     ? "Inside::kWholeVectors"
                                                                                : "Inside::kUnknown";
  const IndexExpr count = element_count(writer.tensor_type(n.source).shape).value_or(0);
  return fmt::format("load_window<{}, {}, {}, {}, {}, {}, {}>({}, {}, {}, {})", bits(n.dtype), vectors_of(window),
                     window.aligned, inside, window.stream, window.backwards ? -step : step, writer.index_type(),
                     tensor, emitter.index(count), first, wanted.empty() ? "true" : wanted);
}

}  // namespace fusec
