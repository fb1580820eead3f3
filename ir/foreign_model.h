// Model files of other formats, given in place of a graph in JSON: PyTorch's, ONNX, safetensors, Python sources.
#pragma once

#include <string>
#include <string_view>

namespace fusec {

// Throws Error(kInput), which names the format and how to come from it to a graph, where the content or else the name
// of the file says which format it is. Call it for text that is no JSON: a graph may have any file name.
void refuse_foreign_model(std::string_view content, const std::string& file);

}  // namespace fusec
