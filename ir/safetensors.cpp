#include "ir/safetensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>
#include <optional>
#include <tuple>

#include "ir/error.h"
#include "ir/json_document.h"
#include "ir/replace_file.h"
#include "ir/spelling.h"

namespace fusec {
namespace {

static_assert(std::endian::native == std::endian::little, "tensors are copied to and from files as they lie in memory");

constexpr std::uint64_t kLongestHeader = 100'000'000;  // bytes, as in the format's reference implementation

struct StoredDType {
  std::string_view name;
  int bits;
};
constexpr StoredDType kStoredDTypes[] = {
    {"BOOL", 8},    {"U8", 8},      {"I8", 8},   {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F4", 4},
    {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"I16", 16}, {"U16", 16},    {"F16", 16},    {"BF16", 16},   {"I32", 32},
    {"U32", 32},    {"F32", 32},    {"F64", 64}, {"I64", 64},    {"U64", 64},    {"C64", 64},
};

std::optional<int> stored_bits(std::string_view dtype) {
  for (const StoredDType& row : kStoredDTypes)
    if (row.name == dtype) return row.bits;
  return std::nullopt;
}

// Bytes of a tensor; nothing if they overflow or are not a whole number.
std::optional<std::uint64_t> byte_count(const std::vector<std::int64_t>& shape, int bits) {
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  std::uint64_t count = static_cast<std::uint64_t>(bits);
  for (const std::int64_t d : shape)
    if (__builtin_mul_overflow(count, static_cast<std::uint64_t>(d), &count)) return std::nullopt;
  if (count % 8 != 0) return std::nullopt;
  return count / 8;
}

// Reads and checks the header of one file.
class HeaderReader {
 public:
  HeaderReader(const std::string& path, std::string_view file) : path_(path), file_(file) {}

  void read(std::map<std::string, SafetensorsFile::Tensor, std::less<>>& tensors,
            std::map<std::string, std::string>& metadata) {
    const std::string_view header = header_text();
    data_ = file_.substr(8 + header.size());
    const JsonDocument document = JsonDocument::parse(header, path_);
    if (!document.root().is(JsonKind::kObject)) fail(document.root(), "the header", "an object");
    for (const Json member : document.root()) {
      if (member.key_text() == "__metadata__")
        read_metadata(member, metadata);
      else
        tensors.emplace(member.key_text(), tensor(member));
    }
    check_layout();
  }

 private:
  struct Extent {
    std::uint64_t begin, end;
    Json offsets;  // for messages; computing its pointer walks through the header
  };

  [[noreturn]] void fail(Json at, std::string what, std::string expected) {
    throw Error(ErrorKind::kInput, {.file = path_,
                                    .pointer = at.pointer(),
                                    .what = std::move(what),
                                    .found = at.description(),
                                    .expected = std::move(expected)});
  }

  std::string_view header_text() {
    if (file_.size() < 8)
      throw Error(ErrorKind::kInput, {.file = path_,
                                      .what = "not a safetensors file",
                                      .found = fmt::format("{} bytes", file_.size()),
                                      .expected = "an 8-byte header length"});
    std::uint64_t length;
    std::memcpy(&length, file_.data(), sizeof length);
    if (length > file_.size() - 8 || length > kLongestHeader)
      throw Error(ErrorKind::kInput,
                  {.file = path_,
                   .what = "truncated, or not a safetensors file",
                   .found = fmt::format("a header of {} bytes in a file of {}", length, file_.size()),
                   .expected = fmt::format("at most {} bytes", std::min(kLongestHeader, file_.size() - 8))});
    require_file_size(length, path_);
    return file_.substr(8, length);
  }

  void read_metadata(Json object, std::map<std::string, std::string>& metadata) {
    if (!object.is(JsonKind::kObject)) fail(object, "the header's metadata", "an object of strings");
    for (const Json member : object) {
      if (!member.is(JsonKind::kString)) fail(member, "the header's metadata", "a string");
      metadata.emplace(member.key_text(), member.text());
    }
  }

  SafetensorsFile::Tensor tensor(Json entry) {
    if (!entry.is(JsonKind::kObject)) fail(entry, "a tensor of the header", "an object");
    std::optional<Json> dtype, shape, offsets;
    for (const Json member : entry) {
      if (member.key_text() == "dtype")
        dtype = member;
      else if (member.key_text() == "shape")
        shape = member;
      else if (member.key_text() == "data_offsets")
        offsets = member;
      else
        fail(member, "unknown key in the header", "dtype, shape, data_offsets");
    }
    if (!dtype || !shape || !offsets) fail(entry, "a tensor of the header", "dtype, shape and data_offsets");
    if (!dtype->is(JsonKind::kString)) fail(*dtype, "a tensor's dtype", "a string");
    SafetensorsFile::Tensor tensor{.type = {.dtype = std::string(dtype->text()), .shape = naturals(*shape, "shape")}};
    const std::vector<std::int64_t> range = naturals(*offsets, "data_offsets");
    if (range.size() != 2 || range[0] > range[1]) fail(*offsets, "a tensor's data_offsets", "[begin, end]");
    const auto begin = static_cast<std::uint64_t>(range[0]), end = static_cast<std::uint64_t>(range[1]);
    if (end > data_.size())
      throw Error(ErrorKind::kInput, {.file = path_,
                                      .pointer = offsets->pointer(),
                                      .what = "truncated: a tensor lies beyond the file's end",
                                      .found = fmt::format("{} bytes of data", data_.size()),
                                      .expected = fmt::format("at least {}", end)});
    if (const auto bits = stored_bits(tensor.type.dtype)) {
      const auto bytes = byte_count(tensor.type.shape, *bits);
      if (!bytes || *bytes != end - begin)
        throw Error(ErrorKind::kInput,
                    {.file = path_,
                     .pointer = offsets->pointer(),
                     .what = "a tensor's size does not agree with its dtype and shape",
                     .found = fmt::format("{} bytes", end - begin),
                     .expected = to_string(tensor.type) + (bytes ? fmt::format(" of {} bytes", *bytes) : "")});
    }
    tensor.bytes = data_.substr(begin, end - begin);
    extents_.push_back({begin, end, *offsets});
    return tensor;
  }

  std::vector<std::int64_t> naturals(Json array, const char* what) {
    if (!array.is(JsonKind::kArray)) fail(array, fmt::format("a tensor's {}", what), "an array of integers");
    std::vector<std::int64_t> values;
    for (const Json item : array) {
      if (!item.is(JsonKind::kInteger) || item.integer() < 0)
        fail(item, fmt::format("a tensor's {}", what), "a non-negative integer");
      values.push_back(item.integer());
    }
    return values;
  }

  // The tensors must cover the data exactly: no overlap, no gap, nothing after the last one.
  void check_layout() {
    std::sort(extents_.begin(), extents_.end(),
              [](const Extent& a, const Extent& b) { return std::tie(a.begin, a.end) < std::tie(b.begin, b.end); });
    std::uint64_t covered = 0;
    for (const Extent& extent : extents_) {
      if (extent.begin != covered)
        throw Error(ErrorKind::kInput, {.file = path_,
                                        .pointer = extent.offsets.pointer(),
                                        .what = extent.begin < covered ? "tensors overlap" : "a gap between tensors",
                                        .found = fmt::format("a tensor that begins at {}", extent.begin),
                                        .expected = fmt::format("{}, where the one before it ends", covered)});
      covered = extent.end;
    }
    if (covered != data_.size())
      throw Error(ErrorKind::kInput, {.file = path_,
                                      .what = "the file's length does not agree with its header",
                                      .found = fmt::format("{} bytes of data", data_.size()),
                                      .expected = fmt::format("{}", covered)});
  }

  const std::string& path_;
  std::string_view file_, data_;
  std::vector<Extent> extents_;
};

int bits_of(const NamedTensor& tensor) {
  return stored_bits(tensor.type.dtype).value_or(8);
}

}  // namespace

StoredType stored_type(DType dtype, const std::vector<std::int64_t>& shape) {
  StoredType type{std::string(info(dtype).safetensors), shape};
  if ((dtype == DType::kInt4 || dtype == DType::kUInt4) && !shape.empty()) type.shape.back() /= 2;
  return type;
}

std::string to_string(const StoredType& type) {
  return fmt::format("{}[{}]", type.dtype, fmt::join(type.shape, ", "));
}

SafetensorsFile::SafetensorsFile(const std::string& path) : path_(path), file_(path) {
  HeaderReader(path_, file_.bytes()).read(tensors_, metadata_);
}

const SafetensorsFile::Tensor* SafetensorsFile::find(std::string_view name) const {
  const auto it = tensors_.find(name);
  return it == tensors_.end() ? nullptr : &it->second;
}

void write_safetensors(const std::string& path, const std::vector<NamedTensor>& tensors) {
  std::vector<const NamedTensor*> order;
  for (const NamedTensor& tensor : tensors) order.push_back(&tensor);
  std::stable_sort(order.begin(), order.end(),
                   [](const NamedTensor* a, const NamedTensor* b) { return bits_of(*a) > bits_of(*b); });
  std::string header = "{";
  std::uint64_t offset = 0;
  for (const NamedTensor* tensor : order) {
    if (header.size() > 1) header += ',';
    header +=
        fmt::format("{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}", json_string(tensor->name),
                    tensor->type.dtype, fmt::join(tensor->type.shape, ","), offset, offset + tensor->bytes.size());
    offset += tensor->bytes.size();
  }
  header += '}';
  header.resize((header.size() + 7) / 8 * 8, ' ');  // the data begins at a multiple of 8

  replace_file(path, [&](std::ostream& out) {
    const std::uint64_t length = header.size();
    out.write(reinterpret_cast<const char*>(&length), sizeof length);
    out << header;
    for (const NamedTensor* tensor : order)
      out.write(tensor->bytes.data(), static_cast<std::streamsize>(tensor->bytes.size()));
  });
}

}  // namespace fusec
