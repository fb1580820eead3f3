#include "view_page.h"

#include "ir/error.h"
#include "view_files.h"

namespace fusec {
namespace {

std::string_view file_text(std::string_view wanted) {
  for (const ViewFile& file : view_files())
    if (file.name == wanted) return file.text;
  throw InternalError("no file " + std::string(wanted) + " is embedded");
}

// JSON in a script element: a `<` of a string may not end it.
std::string in_script(const std::string& json) {
  std::string text;
  text.reserve(json.size());
  for (const char c : json) {
    if (c == '<')
      text += "\\u003c";
    else
      text += c;
  }
  return text;
}

std::string in_html(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else
      out += c;
  }
  return out;
}

}  // namespace

// page.html names what goes where: a line `@@ FILE` is replaced by the file, `@@ title` and `@@ data` by the model's.
std::string view_page(const ViewedModel& model) {
  std::string page;
  for (std::string_view rest = file_text("page.html"); !rest.empty();) {
    const std::size_t end = rest.find('\n');
    const std::string_view line = rest.substr(0, end);
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
    if (!line.starts_with("@@ "))
      page += line;
    else if (line == "@@ title")
      page += in_html(model.file.name);
    else if (line == "@@ data")
      page += in_script(view_data(model));
    else
      page += file_text(line.substr(3));
    page += '\n';
  }
  return page;
}

}  // namespace fusec
