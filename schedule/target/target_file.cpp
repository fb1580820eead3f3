#include "schedule/target/target_file.h"

#include <fmt/format.h>

#include <optional>

#include "ir/error.h"
#include "ir/json_document.h"
#include "ir/spelling.h"

namespace fusec {
namespace {

// The keys of a target file: the member that each sets, and its valid range.
struct Size {
  std::string_view key;
  int Target::*member;
  std::int64_t least, most;
};
constexpr Size kSizes[] = {
    {"multiprocessors", &Target::multiprocessors, 1, 4096},
    {"shared_bytes_per_block", &Target::shared_bytes_per_block, 48 * 1024, 1 << 20},
    {"registers_per_multiprocessor", &Target::registers_per_multiprocessor, 1 << 14, 1 << 20},
    {"max_threads_per_multiprocessor", &Target::max_threads_per_multiprocessor, 1024, 1 << 14},
};

struct Figure {
  std::string_view key;
  double Target::*member;
  double least, most;
};
constexpr Figure kFileFigures[] = {
    {"bandwidth", &Target::bandwidth, 1e9, 1e16},
    {"float32_rate", &Target::float32_rate, 1e9, 1e19},
    {"float64_rate", &Target::float64_rate, 1e9, 1e19},
    {"float16_rate", &Target::float16_rate, 1e9, 1e19},
    {"float8_rate", &Target::float8_rate, 1e9, 1e19},
    {"special_rate", &Target::special_rate, 1e9, 1e19},
    {"latency_seconds", &Target::latency_seconds, 1e-9, 1e-3},
    {"launch_seconds", &Target::launch_seconds, 0, 1},
};

constexpr std::string_view kKeys[] = {"fusec_target", "arch", "name", "chip", "source", "l2_bytes"};

class TargetReader {
 public:
  explicit TargetReader(const std::string& file) : file_(file) {}

  Target read(Json root) {
    expect(root, JsonKind::kObject, "an object");
    const Json version = required(root, "fusec_target", "1");
    if (!version.is(JsonKind::kInteger) || version.integer() != 1) fail(version, "wrong target version", "1");
    read_arch(required(root, "arch", "an architecture, as \"sm_90a\""));
    for (const Json member : root) read_member(member);
    return std::move(target_);
  }

 private:
  Json required(Json root, std::string_view key, std::string expected) {
    for (const Json member : root)
      if (member.key_text() == key) return member;
    throw Error(ErrorKind::kInput, {.file = file_,
                                    .pointer = "",
                                    .what = "missing key " + in_quotes(key),
                                    .found = "",
                                    .expected = std::move(expected),
                                    .hint = ""});
  }

  void read_arch(Json value) {
    expect(value, JsonKind::kString, "an architecture");
    try {
      target_ = target_for(value.text());
    } catch (const Error& error) {
      fail(value, error.parts().what, error.parts().expected);
    }
    if (target_.name != target_.arch) fail(value, "a chip, not an architecture", in_quotes(target_.arch));
    target_.source = file_;
  }

  void read_member(Json member) {
    const std::string_view key = member.key_text();
    if (key == "fusec_target" || key == "arch") return;
    if (key == "name") return read_text(member, target_.name);
    if (key == "chip") return read_text(member, target_.chip);
    if (key == "source") return read_text(member, target_.source);
    if (key == "l2_bytes") {
      target_.l2_bytes = integer(member, 0, std::int64_t{1} << 40);
      return;
    }
    for (const Size& size : kSizes)
      if (key == size.key) {
        target_.*size.member = static_cast<int>(integer(member, size.least, size.most));
        return;
      }
    for (const Figure& figure : kFileFigures)
      if (key == figure.key) {
        target_.*figure.member = number(member, figure.least, figure.most);
        return;
      }
    fail_unknown_key(member);
  }

  void read_text(Json value, std::string& text) {
    expect(value, JsonKind::kString, "a string");
    text = value.text();
  }

  std::int64_t integer(Json value, std::int64_t least, std::int64_t most) {
    if (!value.is(JsonKind::kInteger) || value.integer() < least || value.integer() > most)
      fail(value, value.is_number() ? "a size out of range" : "wrong type",
           fmt::format("an integer from {} to {}", least, most));
    return value.integer();
  }

  double number(Json value, double least, double most) {
    const bool good = value.is_number() && value.number() >= least && value.number() <= most;
    if (!good)
      fail(value, value.is_number() ? "a figure out of range" : "wrong type",
           fmt::format("a number from {:g} to {:g}", least, most));
    return value.number();
  }

  void expect(Json value, JsonKind kind, const char* what) {
    if (!value.is(kind)) fail(value, "wrong type", what);
  }

  [[noreturn]] void fail_unknown_key(Json member) {
    std::vector<std::string_view> keys(std::begin(kKeys), std::end(kKeys));
    for (const Size& size : kSizes) keys.push_back(size.key);
    for (const Figure& figure : kFileFigures) keys.push_back(figure.key);
    throw Error(ErrorKind::kInput, {.file = file_,
                                    .pointer = member.pointer(),
                                    .what = "unknown key",
                                    .found = "",
                                    .expected = fmt::format("one of {}", fmt::join(keys, ", ")),
                                    .hint = did_you_mean(member.key_text(), keys)});
  }

  [[noreturn]] void fail(Json where, std::string what, std::string expected) {
    throw Error(ErrorKind::kInput, {.file = file_,
                                    .pointer = where.pointer(),
                                    .what = std::move(what),
                                    .found = where.description(),
                                    .expected = std::move(expected),
                                    .hint = ""});
  }

  const std::string& file_;
  Target target_;
};

}  // namespace

Target read_target(std::string_view text, const std::string& file) {
  const JsonDocument document = JsonDocument::parse(text, file);
  return TargetReader(file).read(document.root());
}

}  // namespace fusec
