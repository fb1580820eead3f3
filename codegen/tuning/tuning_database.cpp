#include "codegen/tuning/tuning_database.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "ir/error.h"
#include "ir/json_document.h"
#include "ir/spelling.h"

namespace fusec {
namespace {

class TuningReader {
 public:
  explicit TuningReader(const std::string& file) : file_(file) {}

  TuningDatabase read(Json root) {
    expect(root, JsonKind::kObject, "an object");
    const Json version = required(root, "fusec_tuning");
    if (!version.is(JsonKind::kInteger) || version.integer() != 1) fail(version, "wrong tuning version", "1");
    const Json kernels = required(root, "kernels");
    expect(kernels, JsonKind::kArray, "a list of kernels");
    TuningDatabase database;
    for (const Json kernel : kernels) database.set(kernel_of(kernel));
    return database;
  }

 private:
  TunedKernel kernel_of(Json kernel) {
    expect(kernel, JsonKind::kObject, "an object");
    TunedKernel tuned{.arch = text(required(kernel, "arch")),
                      .key = text(required(kernel, "key")),
                      .kernel = text(required(kernel, "kernel")),
                      .device = text(required(kernel, "device")),
                      .choice = text(required(kernel, "choice")),
                      .microseconds = {}};
    const Json microseconds = required(kernel, "microseconds");
    expect(microseconds, JsonKind::kObject, "an object");
    for (const Json candidate : microseconds) {
      if (!candidate.is_number()) fail(candidate, "a time", "a number");
      tuned.microseconds.emplace_back(candidate.key_text(), candidate.number());
    }
    return tuned;
  }

  Json required(Json object, std::string_view key) {
    for (const Json member : object)
      if (member.key_text() == key) return member;
    fail(object, "missing key " + in_quotes(key), "");
  }

  std::string text(Json value) {
    expect(value, JsonKind::kString, "a string");
    return std::string(value.text());
  }

  void expect(Json value, JsonKind kind, const std::string& expected) {
    if (!value.is(kind)) fail(value, "wrong type", expected);
  }

  [[noreturn]] void fail(Json value, std::string what, std::string expected) {
    throw Error(ErrorKind::kInput, {.file = file_,
                                    .pointer = value.pointer(),
                                    .what = std::move(what),
                                    .found = value.description(),
                                    .expected = std::move(expected),
                                    .hint = "fusec-run --tune writes such files"});
  }

  const std::string& file_;
};

}  // namespace

const TunedKernel* TuningDatabase::find(const std::string& arch, const std::string& key) const {
  const auto it = kernels_.find({arch, key});
  return it == kernels_.end() ? nullptr : &it->second;
}

void TuningDatabase::set(TunedKernel kernel) {
  std::pair<std::string, std::string> at{kernel.arch, kernel.key};
  kernels_.insert_or_assign(std::move(at), std::move(kernel));
}

TuningDatabase read_tuning(std::string_view text, const std::string& file) {
  const JsonDocument document = JsonDocument::parse(text, file);
  return TuningReader(file).read(document.root());
}

std::string write_tuning(const TuningDatabase& database) {
  using OrderedJson = nlohmann::ordered_json;
  OrderedJson kernels = OrderedJson::array();
  for (const auto& [at, kernel] : database.kernels()) {
    OrderedJson microseconds = OrderedJson::object();
    for (const auto& [candidate, time] : kernel.microseconds) microseconds[candidate] = time;
    kernels.push_back({{"arch", kernel.arch},
                       {"device", kernel.device},
                       {"kernel", kernel.kernel},
                       {"key", kernel.key},
                       {"choice", kernel.choice},
                       {"microseconds", microseconds}});
  }
  return OrderedJson{{"fusec_tuning", 1}, {"kernels", kernels}}.dump(1) + "\n";
}

}  // namespace fusec
