#include "runtime/cubin_resources.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "ir/error.h"

namespace fusec {
namespace {

// A record of .nv.info: format, attribute, then a value of two bytes, or the number of bytes that follow.
constexpr std::uint8_t kSizedValue = 0x04;
constexpr std::uint8_t kFrameSize = 0x11, kRegisterCount = 0x2f;

// Shared memory for the system, in bytes. From sm_90 on it has a section and is part of every kernel's shared memory.
constexpr std::uint64_t kReservedShared = 1024;

class Cubin {
 public:
  explicit Cubin(std::string_view bytes) : bytes_(bytes) {
    const auto header = read<Elf64_Ehdr>(0);
    if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64) broken();
    for (std::uint64_t i = 0; i < header.e_shnum; ++i)
      sections_.push_back(read<Elf64_Shdr>(header.e_shoff + i * sizeof(Elf64_Shdr)));
    names_ = section(header.e_shstrndx);
  }

  std::map<std::string, KernelResources> resources() const {
    std::map<std::string, KernelResources> result;
    for (const Elf64_Shdr& s : sections_)
      if (const std::string name = text(names_, s.sh_name); name.starts_with(".text.")) result[name.substr(6)] = {};
    std::uint64_t reserved = 0;
    for (const Elf64_Shdr& s : sections_)
      if (text(names_, s.sh_name) == ".nv.shared.reserved.0") reserved = kReservedShared;
    for (const Elf64_Shdr& s : sections_) {
      const std::string name = text(names_, s.sh_name);
      if (name == ".nv.info") read_information(s, result);
      if (!name.starts_with(".nv.shared.")) continue;
      const auto kernel = result.find(name.substr(11));
      if (kernel != result.end())
        kernel->second.static_shared_bytes = static_cast<std::int64_t>(s.sh_size - std::min(s.sh_size, reserved));
    }
    return result;
  }

 private:
  [[noreturn]] static void broken() {
    throw Error(ErrorKind::kInput, Error::Parts{.what = "the cubin cannot be read", .expected = "an ELF file of CUDA"});
  }

  template <class T>
  T read(std::uint64_t at) const {
    T value;
    if (at > bytes_.size() || bytes_.size() - at < sizeof value) broken();
    std::memcpy(&value, bytes_.data() + at, sizeof value);
    return value;
  }

  const Elf64_Shdr& section(std::uint64_t number) const {
    if (number >= sections_.size()) broken();
    return sections_[number];
  }

  std::string text(const Elf64_Shdr& strings, std::uint64_t offset) const {
    if (strings.sh_offset > bytes_.size() || offset > bytes_.size() - strings.sh_offset) broken();
    const std::string_view from = bytes_.substr(strings.sh_offset + offset);
    return std::string(from.substr(0, from.find('\0')));
  }

  std::string symbol_name(const Elf64_Shdr& symbols, std::uint64_t number) const {
    const auto symbol = read<Elf64_Sym>(symbols.sh_offset + number * sizeof(Elf64_Sym));
    return text(section(symbols.sh_link), symbol.st_name);
  }

  void read_information(const Elf64_Shdr& info, std::map<std::string, KernelResources>& result) const {
    const Elf64_Shdr& symbols = section(info.sh_link);
    for (std::uint64_t at = info.sh_offset; at + 4 <= info.sh_offset + info.sh_size;) {
      const auto format = read<std::uint8_t>(at), attribute = read<std::uint8_t>(at + 1);
      const auto size = read<std::uint16_t>(at + 2);
      at += 4;
      if (format != kSizedValue) continue;
      if ((attribute == kRegisterCount || attribute == kFrameSize) && size >= 8) {
        const auto kernel = result.find(symbol_name(symbols, read<std::uint32_t>(at)));
        const auto value = read<std::uint32_t>(at + 4);
        if (kernel != result.end() && attribute == kRegisterCount) kernel->second.registers = static_cast<int>(value);
        if (kernel != result.end() && attribute == kFrameSize) kernel->second.stack_bytes = value;
      }
      at += size;
    }
  }

  std::string_view bytes_;
  std::vector<Elf64_Shdr> sections_;
  Elf64_Shdr names_{};
};

}  // namespace

std::map<std::string, KernelResources> cubin_resources(std::string_view cubin) {
  return Cubin(cubin).resources();
}

}  // namespace fusec
