#include "runtime/emulator/ptx_command.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "ir/dtype.h"
#include "ir/error.h"
#include "ir/mapped_file.h"
#include "ir/safetensors.h"
#include "runtime/emulator/memory.h"
#include "runtime/emulator/numerics.h"
#include "runtime/emulator/tensor_map.h"

namespace fusec::emulator {
namespace {

constexpr int kMaxNesting = 16;
constexpr std::byte kPoison{0xcd};

[[noreturn]] void bad_argument(std::string_view text, std::string expected) {
  throw Error(ErrorKind::kUsage,
              {.what = "malformed --arg", .found = std::string(text), .expected = std::move(expected)});
}

template <class T>
std::optional<T> parse_number(std::string_view text) {
  T value{};
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::vector<std::int64_t> parse_extents(std::string_view text, std::string_view argument) {
  std::vector<std::int64_t> extents;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('x'), text.size());
    const std::optional<std::int64_t> extent = parse_number<std::int64_t>(text.substr(0, end));
    if (!extent || *extent < 0 || *extent > (std::int64_t{1} << 40)) bad_argument(argument, "extents such as 4x8");
    extents.push_back(*extent);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return extents;
}

// The element type of a tensor map over a tensor with this stored dtype; reductions use it.
Type element_type(std::string_view stored) {
  constexpr std::pair<std::string_view, Type> kTypes[] = {
      {"U8", Type::kU8},     {"I8", Type::kU8},   {"BOOL", Type::kU8}, {"U16", Type::kU16}, {"I16", Type::kU16},
      {"U32", Type::kU32},   {"I32", Type::kS32}, {"U64", Type::kU64}, {"I64", Type::kS64}, {"F16", Type::kF16},
      {"BF16", Type::kBF16}, {"F32", Type::kF32}, {"F64", Type::kF64}};
  for (const auto& [name, type] : kTypes) {
    if (name == stored) return type;
  }
  return Type::kNone;
}

// A buffer that arguments name.
struct NamedBuffer {
  std::string name;
  StoredType type;
  std::vector<std::byte> bytes;
  bool writable = false, initialized = true, is_input = false;
  Memory::Id id = 0;
};

// An argument's bytes and alignment in C's layout.
struct Laid {
  std::vector<std::byte> bytes;
  std::size_t alignment = 1;
};

class Command {
 public:
  explicit Command(const PtxCommand& command) : command_(command) {
    if (!command.inputs_file.empty()) inputs_.emplace(command.inputs_file);
  }

  PtxReport run() {
    const Module module(read_text_file(command_.ptx_file), command_.ptx_file);
    for (const std::string& argument : command_.arguments) declare(argument, 0, false);
    for (const std::string& argument : command_.arguments) declare(argument, 0, true);
    for (NamedBuffer& buffer : buffers_) {
      buffer.id = memory_.add(
          {.name = buffer.name, .bytes = buffer.bytes, .initialized = buffer.initialized, .writable = buffer.writable});
    }
    Launch launch{.kernel = command_.kernel,
                  .grid = command_.grid,
                  .block = command_.block,
                  .cluster = command_.cluster,
                  .dynamic_shared_bytes = command_.dynamic_shared_bytes};
    for (const std::string& argument : command_.arguments) launch.arguments.push_back(lay_out(argument, 0).bytes);
    PtxReport report{emulator::run(module, launch, memory_, command_.options)};
    report.least_bytes = least_bytes();
    write_outputs();
    return report;
  }

 private:
  // ---- first pass: declares buffers, then those that only tensor maps name

  void declare(std::string_view text, int depth, bool of_maps) {
    if (depth > kMaxNesting) bad_argument(text, "fewer nested structures");
    const auto [kind, rest] = split(text);
    if (kind == "struct") {
      for (std::string_view part : members(rest, text)) declare(part, depth + 1, of_maps);
    } else if (!of_maps) {
      declare_buffer(kind, rest, text);
    } else if (kind == "tensormap") {
      const std::string_view over = fields(rest, text)[0];
      if (find(over) != nullptr) return;
      const auto [inner, name] = split(over);
      if (declare_buffer(inner, name, text)) return;
      if (!inputs_ || inputs_->find(over) == nullptr)
        bad_argument(text, "the name of a buffer among the arguments, or of a tensor of the inputs file");
      declare_input(over, false, text);
    }
  }

  bool declare_buffer(std::string_view kind, std::string_view rest, std::string_view argument) {
    if (kind == "in" || kind == "inout")
      declare_input(rest, kind == "inout", argument);
    else if (kind == "out" || kind == "zeros")
      declare_fresh(rest, kind == "zeros", argument);
    else
      return false;
    return true;
  }

  void declare_input(std::string_view name, bool writable, std::string_view argument) {
    if (NamedBuffer* known = find(name)) {
      known->writable = known->writable || writable;
      return;
    }
    const SafetensorsFile::Tensor* tensor = inputs_ ? inputs_->find(name) : nullptr;
    if (tensor == nullptr) {
      if (!inputs_) bad_argument(argument, "--inputs=FILE with that tensor");
      throw Error(ErrorKind::kInput,
                  {.file = command_.inputs_file, .what = "no such tensor", .found = std::string(name)});
    }
    NamedBuffer buffer{.name = std::string(name), .type = tensor->type, .writable = writable, .is_input = true};
    const auto bytes = std::as_bytes(std::span(tensor->bytes.data(), tensor->bytes.size()));
    buffer.bytes.assign(bytes.begin(), bytes.end());
    buffers_.push_back(std::move(buffer));
  }

  void declare_fresh(std::string_view rest, bool zeros, std::string_view argument) {
    // The name may hold colons; dtype and extents are the last two fields.
    const std::size_t last = rest.rfind(':');
    const std::size_t middle =
        last == std::string_view::npos || last == 0 ? std::string_view::npos : rest.rfind(':', last - 1);
    if (middle == std::string_view::npos) {
      if (find(rest) != nullptr) return;  // named before
      bad_argument(argument, "out:NAME:DTYPE:D0xD1...");
    }
    const std::string_view name = rest.substr(0, middle);
    const std::optional<DType> dtype = parse_dtype(rest.substr(middle + 1, last - middle - 1));
    if (!dtype) bad_argument(argument, "a dtype such as float32");
    const std::vector<std::int64_t> extents = parse_extents(rest.substr(last + 1), argument);
    std::int64_t elements = 1;
    for (std::int64_t extent : extents) {
      if (extent != 0 && elements > (std::int64_t{1} << 34) / extent) bad_argument(argument, "a smaller tensor");
      elements *= extent;
    }
    const StoredType type = stored_type(*dtype, extents);
    if (NamedBuffer* known = find(name)) {
      if (!(known->type == type)) bad_argument(argument, "the dtype and extents that the name has elsewhere");
      known->writable = true;
      return;
    }
    NamedBuffer buffer{.name = std::string(name), .type = type, .writable = true, .initialized = zeros};
    buffer.bytes.assign(static_cast<std::size_t>(packed_bytes(*dtype, elements)), zeros ? std::byte{0} : kPoison);
    buffers_.push_back(std::move(buffer));
  }

  // ---- second pass: makes the arguments' bytes

  Laid lay_out(std::string_view text, int depth) {
    const auto [kind, rest] = split(text);
    if (kind == "in" || kind == "inout" || kind == "out" || kind == "zeros") return pointer(name_of(kind, rest), text);
    if (kind == "null" && rest.empty()) return {Argument(8), 8};
    if (kind == "bytes") return {hex(rest, text), 1};
    if (kind == "struct") return structure(rest, text, depth);
    if (kind == "tensormap") return tensor_map(rest, text);
    return scalar(kind, rest, text);
  }

  // The buffer's name in in:, inout:, out: and zeros: arguments.
  static std::string_view name_of(std::string_view kind, std::string_view rest) {
    if (kind == "in" || kind == "inout") return rest;
    const std::size_t last = rest.rfind(':');
    const std::size_t middle =
        last == std::string_view::npos || last == 0 ? std::string_view::npos : rest.rfind(':', last - 1);
    return middle == std::string_view::npos ? rest : rest.substr(0, middle);
  }

  Laid pointer(std::string_view name, std::string_view argument) {
    const NamedBuffer* buffer = find(name);
    if (buffer == nullptr) bad_argument(argument, "the name of a buffer");
    return {pointer_argument(memory_, buffer->id), 8};
  }

  template <class T>
  static Laid integer(std::string_view value, std::string_view argument) {
    const std::optional<T> number = parse_number<T>(value);
    if (!number) bad_argument(argument, "an integer that fits");
    return {scalar_argument(*number), sizeof(T)};
  }

  static Laid scalar(std::string_view kind, std::string_view value, std::string_view argument) {
    if (kind == "i8") return integer<std::int8_t>(value, argument);
    if (kind == "u8") return integer<std::uint8_t>(value, argument);
    if (kind == "i16") return integer<std::int16_t>(value, argument);
    if (kind == "u16") return integer<std::uint16_t>(value, argument);
    if (kind == "i32") return integer<std::int32_t>(value, argument);
    if (kind == "u32") return integer<std::uint32_t>(value, argument);
    if (kind == "i64") return integer<std::int64_t>(value, argument);
    if (kind == "u64") return integer<std::uint64_t>(value, argument);
    if (kind != "f16" && kind != "bf16" && kind != "f32" && kind != "f64") {
      bad_argument(argument, "in: out: zeros: inout: null bytes: struct: tensormap: or a scalar such as i32:5");
    }
    const std::optional<double> number = parse_number<double>(value);
    if (!number) bad_argument(argument, "a number");
    if (kind == "f32") return {scalar_argument(static_cast<float>(*number)), 4};
    if (kind == "f64") return {scalar_argument(*number), 8};
    const FloatFormat& format = kind == "f16" ? kHalf : kBFloat;
    return {scalar_argument(static_cast<std::uint16_t>(encode_float(*number, format, Rounding::kNearestEven))), 2};
  }

  static Argument hex(std::string_view digits, std::string_view argument) {
    if (digits.size() % 2 != 0) bad_argument(argument, "two hexadecimal digits a byte");
    Argument bytes;
    for (std::size_t i = 0; i < digits.size(); i += 2) {
      unsigned value = 0;
      const auto [end, error] = std::from_chars(digits.data() + i, digits.data() + i + 2, value, 16);
      if (error != std::errc() || end != digits.data() + i + 2) bad_argument(argument, "hexadecimal digits");
      bytes.push_back(static_cast<std::byte>(value));
    }
    return bytes;
  }

  Laid structure(std::string_view rest, std::string_view argument, int depth) {
    Laid whole;
    const auto pad = [&whole](std::size_t alignment) {
      whole.bytes.resize((whole.bytes.size() + alignment - 1) / alignment * alignment);
    };
    for (std::string_view part : members(rest, argument)) {
      const Laid member = lay_out(part, depth + 1);
      whole.alignment = std::max(whole.alignment, member.alignment);
      pad(member.alignment);
      whole.bytes.insert(whole.bytes.end(), member.bytes.begin(), member.bytes.end());
    }
    pad(whole.alignment);
    return whole;
  }

  Laid tensor_map(std::string_view rest, std::string_view argument) {
    const auto [over, extents, swizzle] = fields(rest, argument);
    const NamedBuffer* buffer = find(over);
    if (buffer == nullptr) {
      const auto [kind, name] = split(over);
      buffer = find(name_of(kind, name));
    }
    if (buffer == nullptr) bad_argument(argument, "the name of a buffer among the arguments");
    std::optional<int> element;
    for (const DTypeInfo& row : all_dtypes()) {
      if (row.safetensors == buffer->type.dtype) element = (row.bits + 7) / 8;
    }
    TensorMap map{.address = memory_.address(buffer->id),
                  .element_bytes = static_cast<std::uint32_t>(element.value_or(1)),
                  .type = element_type(buffer->type.dtype)};
    if (swizzle == "none")
      map.swizzle = 0;
    else if (const std::optional<std::uint32_t> width = parse_number<std::uint32_t>(swizzle);
             width && (*width == 32 || *width == 64 || *width == 128))
      map.swizzle = *width;
    else
      bad_argument(argument, "a swizzle of none, 32, 64 or 128");
    const std::vector<std::int64_t> box = parse_extents(extents, argument);
    const std::vector<std::int64_t>& shape = buffer->type.shape;
    if (box.size() != shape.size() || box.empty() || box.size() > 5)
      bad_argument(argument, "a box of as many extents as the tensor has, at most 5");
    map.rank = static_cast<std::uint32_t>(box.size());
    std::uint64_t stride = map.element_bytes;
    for (std::size_t i = 0; i < box.size(); ++i) {  // the innermost dimension comes first
      map.extents[i] = static_cast<std::uint64_t>(shape[shape.size() - 1 - i]);
      map.box[i] = static_cast<std::uint32_t>(box[box.size() - 1 - i]);
      map.strides[i] = stride;
      stride *= map.extents[i];
    }
    return {encode_tensor_map(map), 64};
  }

  // ---- text

  static std::pair<std::string_view, std::string_view> split(std::string_view text) {
    const std::size_t colon = text.find(':');
    if (colon == std::string_view::npos) return {text, {}};
    return {text.substr(0, colon), text.substr(colon + 1)};
  }

  // NAME, BOX and SWIZZLE of a tensor map; the name may hold colons.
  static std::array<std::string_view, 3> fields(std::string_view rest, std::string_view argument) {
    const std::size_t last = rest.rfind(':');
    const std::size_t middle =
        last == std::string_view::npos || last == 0 ? std::string_view::npos : rest.rfind(':', last - 1);
    if (middle == std::string_view::npos) bad_argument(argument, "tensormap:NAME:BOX:SWIZZLE");
    return {rest.substr(0, middle), rest.substr(middle + 1, last - middle - 1), rest.substr(last + 1)};
  }

  // The members of {A;B;...}, split outside inner braces.
  static std::vector<std::string_view> members(std::string_view text, std::string_view argument) {
    if (text.size() < 2 || text.front() != '{' || text.back() != '}') bad_argument(argument, "struct:{ARG;ARG;...}");
    text = text.substr(1, text.size() - 2);
    std::vector<std::string_view> parts;
    int depth = 0;
    std::size_t begin = 0;
    for (std::size_t i = 0; i <= text.size(); ++i) {
      if (i < text.size() && text[i] == '{') ++depth;
      if (i < text.size() && text[i] == '}') --depth;
      if (i < text.size() && (text[i] != ';' || depth != 0)) continue;
      if (i > begin) parts.push_back(text.substr(begin, i - begin));
      begin = i + 1;
    }
    if (depth != 0) bad_argument(argument, "balanced braces");
    return parts;
  }

  NamedBuffer* find(std::string_view name) {
    const auto found =
        std::find_if(buffers_.begin(), buffers_.end(), [&](const NamedBuffer& buffer) { return buffer.name == name; });
    return found == buffers_.end() ? nullptr : &*found;
  }

  // Counts whole sectors, since a kernel that reads every second element moves all of them.
  std::uint64_t least_bytes() {
    const auto touched = [](const std::vector<std::uint8_t>& sectors, const NamedBuffer& buffer) {
      const auto count = static_cast<std::size_t>(std::count_if(sectors.begin(), sectors.end(), std::identity{}));
      return std::min<std::uint64_t>(32 * count, buffer.bytes.size());
    };
    std::uint64_t bytes = 0;
    for (const NamedBuffer& buffer : buffers_) {
      const Region& region = *memory_.data().regions.at(buffer.id);
      if (!region.touched) continue;
      if (buffer.is_input) bytes += touched(region.sectors_read, buffer);
      if (buffer.writable) bytes += touched(region.sectors_written, buffer);
    }
    return bytes;
  }

  void write_outputs() const {
    if (command_.outputs_file.empty()) return;
    std::vector<NamedTensor> tensors;
    for (const NamedBuffer& buffer : buffers_) {
      if (!buffer.writable) continue;
      tensors.push_back(
          {buffer.name, buffer.type, {reinterpret_cast<const char*>(buffer.bytes.data()), buffer.bytes.size()}});
    }
    write_safetensors(command_.outputs_file, tensors);
  }

  const PtxCommand& command_;
  std::optional<SafetensorsFile> inputs_;
  std::vector<NamedBuffer> buffers_;
  Memory memory_;
};

}  // namespace

PtxReport run_ptx_command(const PtxCommand& command) {
  return Command(command).run();
}

Dim3 parse_dim3(std::string_view text, std::string_view option) {
  std::uint32_t size[3] = {1, 1, 1};
  std::string_view left = text;
  for (std::size_t i = 0; i < 3; ++i) {
    const std::size_t end = std::min(left.find(','), left.size());
    const std::optional<std::uint32_t> value = parse_number<std::uint32_t>(left.substr(0, end));
    if (!value || (i == 2 && end != left.size())) break;
    size[i] = *value;
    if (end == left.size()) return {size[0], size[1], size[2]};
    left.remove_prefix(end + 1);
  }
  throw Error(ErrorKind::kUsage,
              {.what = std::string(option), .found = std::string(text), .expected = "X, X,Y or X,Y,Z"});
}

}  // namespace fusec::emulator
