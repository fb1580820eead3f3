#include "kept_result.h"

#include <elf.h>
#include <fmt/format.h>
#include <link.h>
#include <sys/stat.h>

#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>

#include "codegen/nvrtc/nvrtc_search_paths.h"
#include "ir/error.h"
#include "ir/mapped_file.h"

namespace fusec {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Prediction, launch, memory, compute, total, flops, read, written, launches)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(LaunchRow, kernel, nodes, fused, unfused)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Summary, model, strategy, arch, chip, symbols, nodes, groups, prepared_groups,
                                   has_launches, remarks, launches, kernels, variants, prepare_launches,
                                   workspace_bytes, has_cost, rows, total, unfused, unfused_elsewhere)

namespace {

// The notes of an ELF image in memory: two sizes, a type, a name and a value, each padded to 4 bytes.
std::string build_id_in(std::span<const std::byte> notes) {
  const auto padded = [](std::size_t size) { return (size + 3) / 4 * 4; };
  while (notes.size() >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note;
    std::memcpy(&note, notes.data(), sizeof note);
    const std::size_t value = sizeof note + padded(note.n_namesz), end = value + padded(note.n_descsz);
    if (end > notes.size()) break;
    if (note.n_type == NT_GNU_BUILD_ID)
      return std::string(reinterpret_cast<const char*>(notes.data() + value), note.n_descsz);
    notes = notes.subspan(end);
  }
  return "";
}

// The linker's digest of the program or library that this function is in; "" without one.
std::string build_id() {
  std::string id;
  const auto look = [](dl_phdr_info* image, std::size_t, void* found) {
    const auto here = reinterpret_cast<std::uintptr_t>(&build_id);
    const std::span headers(image->dlpi_phdr, image->dlpi_phnum);
    bool is_ours = false;
    for (const ElfW(Phdr) & part : headers)
      is_ours |= part.p_type == PT_LOAD && here - (image->dlpi_addr + part.p_vaddr) < part.p_memsz;
    if (!is_ours) return 0;
    for (const ElfW(Phdr) & part : headers)
      if (std::string& text = *static_cast<std::string*>(found); part.p_type == PT_NOTE && text.empty())
        text = build_id_in({reinterpret_cast<const std::byte*>(image->dlpi_addr + part.p_vaddr), part.p_memsz});
    return 1;
  };
  dl_iterate_phdr(look, &id);
  return id;
}

// A file's size and time of change; "" if there is none.
std::string state_of_file(const std::string& path) {
  struct stat file {};
  if (stat(path.c_str(), &file) != 0) return "";
  return fmt::format("{} {} {}.{}", path, file.st_size, file.st_mtim.tv_sec, file.st_mtim.tv_nsec);
}

void add(std::string& key, std::string_view part) {
  key += fmt::format("{}:", part.size());
  key += part;
}

}  // namespace

std::string nvrtc_file(const std::string& chosen) {
  for (const std::string& path : nvrtc_search_paths(chosen).paths) {
    if (path.find('/') == std::string::npos) break;  // the loader finds it
    if (!state_of_file(path).empty()) return path;
  }
  return "";
}

std::optional<std::string> result_key(const CompileArguments& arguments, const std::vector<std::string>& words,
                                      const std::string& more) {
  const std::string build = build_id(), nvrtc = state_of_file(nvrtc_file(arguments.options.nvrtc_library));
  const bool varies = arguments.options.arch == "native" || arguments.options.plan_deadline > 0;
  if (build.empty() || nvrtc.empty() || varies) return std::nullopt;
  std::string key;
  for (const std::string_view part :
       {std::string_view("result"), std::string_view(build), std::string_view(nvrtc), std::string_view(more)})
    add(key, part);
  for (const std::string& word : words) add(key, word);
  std::error_code none;
  for (const std::string& file : files_read(arguments)) {
    if (file == "-" || std::filesystem::is_other(file, none)) return std::nullopt;  // cannot be read twice
    // What is no file is a name, as of a target.
    add(key, std::filesystem::is_regular_file(file, none) ? read_text_file(file) : "");
  }
  return key;
}

std::optional<KeptResult> find_result(const CompileCache& cache, const std::string& key, std::size_t outputs) {
  std::optional<std::vector<std::string>> parts = cache.find(key);
  if (!parts || parts->size() != 1 + outputs) return std::nullopt;
  KeptResult result;
  try {
    const nlohmann::json about = nlohmann::json::parse(parts->front());
    about.at("summary").get_to(result.summary);
    about.at("messages").get_to(result.messages);
    result.proven = true;  // no other result is kept
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
  result.contents.assign(std::make_move_iterator(parts->begin() + 1), std::make_move_iterator(parts->end()));
  return result;
}

void keep_result(CompileCache& cache, const std::string& key, const KeptResult& result) {
  const nlohmann::json about = {{"summary", result.summary}, {"messages", result.messages}};
  const std::string text = about.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  std::vector<std::string_view> parts = {text};
  parts.insert(parts.end(), result.contents.begin(), result.contents.end());
  cache.keep(key, parts);
}

}  // namespace fusec
