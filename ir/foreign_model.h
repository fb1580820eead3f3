// Recognizes model files of other formats that a user gives in place of a graph: PyTorch, ONNX, safetensors, Python.
#pragma once

#include <string>
#include <string_view>

namespace fusec {

// Throws Error(kInput) if the content, or else the file's name, shows another format. The error names the format and
// how to convert it to a graph. Call it only for text that is not JSON, since a graph may have any file name.
void refuse_foreign_model(std::string_view content, const std::string& file);

}  // namespace fusec
