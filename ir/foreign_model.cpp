#include "ir/foreign_model.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "ir/error.h"

namespace fusec {
namespace {

constexpr std::string_view kFromModule =
    "python -m fusec import MODULE.py:FACTORY -o model.json exports the PyTorch module";

struct Format {
  std::string_view name, hint;
};
constexpr Format kExportedProgram{"a program saved by torch.export",
                                  "python -m fusec import MODEL.pt2 -o model.json converts it"};
constexpr Format kOnnxModel{"an ONNX model", "python -m fusec import MODEL.onnx -o model.json converts it"};
constexpr Format kTorchFile{"a file written by torch.save or torch.jit.save", kFromModule};
constexpr Format kSafetensorsFile{"a safetensors file, which has weights and no graph",
                                  "give the .json file whose constants name it"};
constexpr Format kPythonFile{"a Python file", kFromModule};

bool holds_text(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// The format of a zip archive by its member names, which are before each member and in the list at the end.
const Format* format_of_archive(std::string_view content) {
  constexpr std::size_t kLooked = 1 << 16;
  const std::string_view first = content.substr(0, kLooked);
  const std::string_view last = content.substr(content.size() - std::min(content.size(), kLooked));
  const auto has = [&](std::string_view member) { return holds_text(first, member) || holds_text(last, member); };
  if (has("archive_format") || has("serialized_exported_program.json")) return &kExportedProgram;
  return has("data.pkl") ? &kTorchFile : nullptr;
}

// A safetensors file begins with the length of its JSON header in 8 bytes.
bool is_safetensors(std::string_view content) {
  if (content.size() < 10 || content[8] != '{') return false;
  std::uint64_t length = 0;
  for (int i = 7; i >= 0; --i) length = length << 8 | static_cast<unsigned char>(content[static_cast<std::size_t>(i)]);
  return length >= 2 && length <= content.size() - 8;
}

// An ONNX file is a ModelProto: field 1 is a small version number, followed by another field of the message.
bool is_onnx(std::string_view content) {
  return content.size() > 2 && content[0] == 0x08 && content[1] > 0 && content[1] < 0x40 &&
         holds_text("\x12\x1a\x22\x28\x32\x3a\x42", content.substr(2, 1));
}

const Format* format_by_content(std::string_view content) {
  if (content.starts_with("PK\x03\x04")) return format_of_archive(content);
  if (is_safetensors(content)) return &kSafetensorsFile;
  if (is_onnx(content)) return &kOnnxModel;
  const bool is_pickle = content.size() > 2 && content[0] == '\x80' && content[1] >= 2 && content[1] <= 5;
  return is_pickle ? &kTorchFile : nullptr;
}

const Format* format_by_name(std::string_view file) {
  constexpr std::pair<std::string_view, const Format*> kEndings[] = {
      {".pt2", &kExportedProgram}, {".onnx", &kOnnxModel}, {".pt", &kTorchFile},
      {".pth", &kTorchFile},       {".ckpt", &kTorchFile}, {".safetensors", &kSafetensorsFile},
      {".py", &kPythonFile}};
  for (const auto& [ending, format] : kEndings)
    if (file.ends_with(ending)) return format;
  return nullptr;
}

}  // namespace

void refuse_foreign_model(std::string_view content, const std::string& file) {
  const Format* format = format_by_content(content);
  const bool by_content = format != nullptr;
  if (!by_content) format = format_by_name(file);
  if (!format) return;
  throw Error(ErrorKind::kInput, {.file = file,
                                  .what = "not a graph in fusec's JSON format",
                                  .found = std::string(format->name) + (by_content ? "" : ", by its name"),
                                  .expected = "JSON",
                                  .hint = std::string(format->hint)});
}

}  // namespace fusec
