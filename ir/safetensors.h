// Tensors on disk in the safetensors format: an 8-byte header length, a JSON header, the tensors' bytes.
//
// The reader maps the file: opening it reads only the header, and a tensor's pages are read when they are used. The
// reader checks all lengths, offsets, sizes and overlaps in the header first.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ir/dtype.h"
#include "ir/mapped_file.h"

namespace fusec {

// The dtype and shape of a tensor in a file. int4 and uint4 are U8 with the last dimension halved.
struct StoredType {
  std::string dtype;  // "BF16"
  std::vector<std::int64_t> shape;
  bool operator==(const StoredType&) const = default;
};
StoredType stored_type(DType dtype, const std::vector<std::int64_t>& shape);
std::string to_string(const StoredType& type);  // "BF16[2, 3]"

class SafetensorsFile {
 public:
  struct Tensor {
    StoredType type;
    std::string_view bytes;  // in the mapping
  };

  // Throws Error(kInput) that names the file and, if the header is JSON, the pointer of the wrong element.
  explicit SafetensorsFile(const std::string& path);

  const std::string& path() const { return path_; }
  const Tensor* find(std::string_view name) const;
  const std::map<std::string, Tensor, std::less<>>& tensors() const { return tensors_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

 private:
  std::string path_;
  MappedFile file_;
  std::map<std::string, Tensor, std::less<>> tensors_;
  std::map<std::string, std::string> metadata_;
};

struct NamedTensor {
  std::string name;
  StoredType type;
  std::string_view bytes;
};

// Writes a file completely or not at all. Tensors are ordered by falling alignment, then as given. Throws
// Error(kEnvironment) if the file cannot be written.
void write_safetensors(const std::string& path, const std::vector<NamedTensor>& tensors);

}  // namespace fusec
