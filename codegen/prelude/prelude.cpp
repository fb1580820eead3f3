#include "codegen/prelude/prelude.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "codegen/prelude/warpgroup_multiplies.h"
#include "ir/error.h"

namespace fusec {
namespace {

struct Part {
  std::string_view name;
  std::vector<std::string_view> needs;
  std::string_view text;
  const WarpgroupMultiply* product = nullptr;  // generates the text, in place of `text`
};

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  std::size_t at = 0;
  while (at < line.size()) {
    const std::size_t end = std::min(line.find(' ', at), line.size());
    if (end > at) words.push_back(line.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

std::vector<Part> split(std::string_view file) {
  constexpr std::string_view kMarker = "//@ part ";
  std::vector<Part> parts;
  std::size_t at = file.find(kMarker);
  while (at != std::string_view::npos) {
    const std::size_t line_end = file.find('\n', at);
    const std::size_t next = file.find(kMarker, line_end);
    const auto words = words_of(file.substr(at + kMarker.size(), line_end - at - kMarker.size()));
    Part part{.name = words.at(0), .needs = {}, .text = {}};
    if (words.size() > 2) part.needs.assign(words.begin() + 2, words.end());
    std::string_view text =
        file.substr(line_end + 1, (next == std::string_view::npos ? file.size() : next) - line_end - 1);
    while (text.ends_with("\n\n")) text.remove_suffix(1);
    part.text = text;
    parts.push_back(std::move(part));
    at = next;
  }
  return parts;
}

const std::vector<Part>& all_parts() {
  static const std::vector<WarpgroupMultiply> made = warpgroup_multiplies();
  static const std::vector<Part> parts = [] {
    std::vector<Part> list;
    for (const std::string_view file : prelude_files())
      for (Part& part : split(file)) list.push_back(std::move(part));
    for (const WarpgroupMultiply& product : made) list.push_back({product.part, product.needs, {}, &product});
    return list;
  }();
  return parts;
}

std::size_t part_named(std::string_view name) {
  const auto& parts = all_parts();
  for (std::size_t i = 0; i < parts.size(); ++i)
    if (parts[i].name == name) return i;
  throw InternalError("the prelude has no part named " + std::string(name));
}

}  // namespace

std::string prelude_text(const std::set<std::string>& wanted) {
  const auto& parts = all_parts();
  std::vector<std::uint8_t> state(parts.size(), 0);  // 1: its dependencies are on the stack, 2: printed
  std::vector<std::size_t> stack;
  for (auto it = wanted.rbegin(); it != wanted.rend(); ++it) stack.push_back(part_named(*it));
  // Helpers come in families, and most files call only some of a family.
  std::string text =
      wanted.empty() ? "" : "#if defined(__NVCC__) || defined(__CUDACC_RTC__)\n#pragma nv_diag_suppress 177\n#endif\n";
  while (!stack.empty()) {
    const std::size_t i = stack.back();
    if (state[i] == 0) {
      state[i] = 1;
      for (auto it = parts[i].needs.rbegin(); it != parts[i].needs.rend(); ++it) {
        const std::size_t needed = part_named(*it);
        if (state[needed] == 0) stack.push_back(needed);
      }
      continue;
    }
    stack.pop_back();
    if (state[i] == 2) continue;
    state[i] = 2;
    if (!text.empty()) text += '\n';
    if (parts[i].product)
      text += parts[i].product->text();
    else
      text += parts[i].text;
  }
  return text;
}

bool is_prelude_name(std::string_view name) {
  static const std::vector<std::string> generated = warpgroup_functions();
  return std::ranges::binary_search(names_of_prelude_files(), name) ||
         std::ranges::find(generated, name) != generated.end();
}

}  // namespace fusec
