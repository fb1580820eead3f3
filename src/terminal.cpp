#include "terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>

namespace fusec {

bool is_terminal() {
  return isatty(STDERR_FILENO) == 1;
}

bool wants_color(const std::string& choice) {
  if (choice != "auto") return choice == "always";
  const char* const no_color = std::getenv("NO_COLOR");
  const char* const terminal = std::getenv("TERM");
  const bool dumb = terminal != nullptr && std::string(terminal) == "dumb";
  return is_terminal() && !dumb && (no_color == nullptr || *no_color == '\0');
}

std::size_t known_terminal_width() {
  constexpr std::size_t kLeast = 40;
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= kLeast) return size.ws_col;
  const char* const columns = std::getenv("COLUMNS");
  const long told = columns ? std::atol(columns) : 0;
  return told >= static_cast<long>(kLeast) && told <= 1000 ? static_cast<std::size_t>(told) : 0;
}

std::size_t terminal_width() {
  constexpr std::size_t kUsual = 100;
  const std::size_t known = known_terminal_width();
  return known ? known : kUsual;
}

}  // namespace fusec
