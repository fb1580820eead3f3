// The stages of a compilation by name, in order, each with one sentence: what --list-passes prints.
#pragma once

#include <span>
#include <string_view>

namespace fusec {

struct PassName {
  std::string_view name;
  std::string_view summary;
};

std::span<const PassName> pass_names();

}  // namespace fusec
