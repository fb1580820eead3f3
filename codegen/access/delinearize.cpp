#include "codegen/access/delinearize.h"

#include <fmt/format.h>

#include <algorithm>

namespace fusec {

std::string sum_of(const std::string& a, const std::string& b) {
  return a == "0" ? b : b == "0" ? a : fmt::format("({} + {})", a, b);
}

std::vector<std::string> delinearize(KernelWriter& writer, const std::vector<ImplicitGemmAxis>& axes,
                                     const std::string& number, std::string_view wishes,
                                     const std::function<IndexExpr(const ImplicitGemmAxis&)>& of,
                                     const std::function<std::string(const IndexExpr&)>& text) {
  std::vector<std::string> names(axes.size(), "0");
  const std::string integer = writer.index_type();
  std::string rest = number;
  for (std::size_t a = axes.size(); a-- > 0;) {
    const IndexExpr here = of(axes[a]);
    if (here.is(1)) continue;
    const bool last = std::all_of(axes.begin(), axes.begin() + static_cast<std::ptrdiff_t>(a),
                                  [&](const ImplicitGemmAxis& other) { return of(other).is(1); });
    if (last) {
      names[a] = fmt::format("({}){}", integer, rest);
      break;
    }
    names[a] = writer.unique(std::string(1, wishes[std::min(wishes.size() - 1, axes.size() - 1 - a)]));
    const std::string left = writer.unique("rest");
    const std::string by = here.is_constant() ? text(here) + "u" : "(unsigned)" + text(here);
    writer.line(fmt::format("const {} {} = {} % {};", integer, names[a], rest, by));
    writer.line(fmt::format("const unsigned {} = {} / {};", left, rest, by));
    rest = left;
  }
  return names;
}

}  // namespace fusec
