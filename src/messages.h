// Prints messages of the programs to standard error. Write errors are ignored: they change neither the work nor the
// exit status.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <utility>

namespace fusec {

template <typename... Values>
void print_message(fmt::format_string<Values...> text, Values&&... values) {
  const std::string message = fmt::format(text, std::forward<Values>(values)...);
  std::fwrite(message.data(), 1, message.size(), stderr);
}

}  // namespace fusec
