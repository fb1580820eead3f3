#include "ir/replace_file.h"

#include <fcntl.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "ir/error.h"
#include "ir/new_file.h"

namespace fusec {
namespace {

// A stream buffer that writes into a NewFile.
class FileBuffer : public std::streambuf {
 public:
  explicit FileBuffer(NewFile& file) : file_(file) { setp(buffer_.data(), buffer_.data() + buffer_.size()); }

 protected:
  int sync() override {
    file_.write({pbase(), static_cast<std::size_t>(pptr() - pbase())});
    setp(buffer_.data(), buffer_.data() + buffer_.size());
    return file_.error() == 0 ? 0 : -1;
  }
  int_type overflow(int_type c) override {
    if (sync() != 0) return traits_type::eof();
    if (traits_type::eq_int_type(c, traits_type::eof())) return traits_type::not_eof(c);
    return sputc(traits_type::to_char_type(c));
  }
  std::streamsize xsputn(const char* bytes, std::streamsize count) override {
    if (count <= epptr() - pptr()) return std::streambuf::xsputn(bytes, count);
    if (sync() != 0) return 0;
    file_.write({bytes, static_cast<std::size_t>(count)});
    return file_.error() == 0 ? count : 0;
  }

 private:
  NewFile& file_;
  std::array<char, 1 << 16> buffer_;
};

// The path after following symbolic links; the target need not exist.
std::string behind_links(std::filesystem::path path) {
  constexpr int kMostLinks = 40;
  std::error_code unknown;
  for (int i = 0; i < kMostLinks && std::filesystem::is_symlink(path, unknown); ++i)
    path = path.parent_path() / std::filesystem::read_symlink(path, unknown);
  return path.string();
}

[[noreturn]] void cannot_write(const std::string& path, int error) {
  throw Error(ErrorKind::kEnvironment,
              {.file = path, .what = std::string("the output cannot be written: ") + std::strerror(error)});
}

}  // namespace

void replace_file(const std::string& path, const std::function<void(std::ostream&)>& write) {
  std::error_code unknown;
  if (std::filesystem::exists(path, unknown) && !std::filesystem::is_regular_file(path, unknown) &&
      !std::filesystem::is_directory(path, unknown)) {
    std::ofstream out(path, std::ios::binary);
    write(out);
    if (!out.flush()) cannot_write(path, errno);
    return;
  }
  constexpr mode_t kAsTheUserSays = 0666;  // minus the umask
  NewFile file(AT_FDCWD, behind_links(path), kAsTheUserSays);
  if (file.error() != 0) cannot_write(path, file.error());
  FileBuffer buffer(file);
  std::ostream out(&buffer);
  write(out);
  out.flush();
  if (!file.place()) cannot_write(path, file.error());
}

}  // namespace fusec
