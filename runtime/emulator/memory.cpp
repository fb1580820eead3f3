#include "runtime/emulator/memory.h"

#include <algorithm>

#include "ir/error.h"
#include "runtime/emulator/module_data.h"

namespace fusec::emulator {

std::uint32_t MemoryData::add(std::string name, std::span<std::byte> bytes, bool initialized, bool writable) {
  if (bytes.size() >= kRegionBase) throw Error(ErrorKind::kUsage, "a buffer of 32 GiB or more cannot be emulated");
  auto region = std::make_unique<Region>();
  region->name = std::move(name);
  region->host = bytes.data();
  region->bytes = bytes.size();
  region->base = (std::uint64_t{regions.size() + 1} << kRegionShift) + kRegionBase;
  region->writable = writable;
  if (writable || !initialized) region->writers.assign(bytes.size(), initialized ? kBefore : kNobody);
  regions.push_back(std::move(region));
  return static_cast<std::uint32_t>(regions.size()) - 1;
}

namespace {

void begin_launch(Region& region, bool check_races, bool has_bulk_stores) {
  // Shadow state is as large as the buffer, so skip buffers that the last launch did not access.
  const bool tracks_readers = check_races && region.writable, tracks_stores = has_bulk_stores && region.writable;
  if (!region.touched.exchange(false) && tracks_readers == !region.readers.empty() &&
      tracks_stores == !region.bulk_stores.empty()) {
    return;
  }
  region.sectors_read.assign(region.bytes / 32 + 1, 0);
  region.sectors_written.assign(region.bytes / 32 + 1, 0);
  for (ByteOwner& owner : region.writers) owner = std::min(owner, kBefore);
  if (tracks_readers)
    region.readers.assign(region.bytes, kNobody);
  else
    region.readers.clear();
  if (tracks_stores)
    region.bulk_stores.assign(region.bytes, 0);
  else
    region.bulk_stores.clear();
}

}  // namespace

void MemoryData::begin_launch(bool check_races, bool has_bulk_stores, ModuleVariables& variables) {
  for (const std::unique_ptr<Region>& region : regions) emulator::begin_launch(*region, check_races, has_bulk_stores);
  for (const std::unique_ptr<Region>& region : variables.regions)
    emulator::begin_launch(*region, check_races, has_bulk_stores);
}

ModuleVariables& MemoryData::variables_of(const std::shared_ptr<ModuleData>& module) {
  const auto [at, fresh] = modules.try_emplace(module.get());
  ModuleVariables& made = at->second;
  if (!fresh) return made;
  made.module = module;
  made.constant.resize(module->constant_bytes);
  const std::vector<PtxVariable>& variables = module->ptx.variables;
  const auto address_of = [&](const PtxVariable::Relocation& relocation) -> std::uint64_t {
    for (std::size_t i = 0; i < variables.size(); ++i) {
      if (variables[i].name != relocation.variable) continue;
      const auto offset = static_cast<std::uint64_t>(relocation.offset);
      if (variables[i].space == Space::kConst) {
        return module->constant_offsets[i] + offset + (relocation.generic ? kConstWindow : 0);
      }
      return kModuleWindow + (module->global_numbers[i] << kRegionShift) + kRegionBase + offset;
    }
    return 0;
  };
  for (std::size_t i = 0; i < variables.size(); ++i) {
    const PtxVariable& variable = variables[i];
    if (variable.space != Space::kGlobal && variable.space != Space::kConst) continue;
    std::vector<std::byte> initial = variable.initial;
    initial.resize(variable.bytes);
    for (const PtxVariable::Relocation& relocation : variable.relocations) {
      const std::uint64_t address = address_of(relocation);
      if (relocation.at + 8 <= initial.size()) std::memcpy(&initial[relocation.at], &address, 8);
    }
    if (variable.space == Space::kConst) {
      std::copy(initial.begin(), initial.end(),
                made.constant.begin() + static_cast<std::ptrdiff_t>(module->constant_offsets[i]));
      continue;
    }
    auto region = std::make_unique<Region>();
    made.storage.push_back(std::move(initial));
    region->name = variable.name;
    region->host = made.storage.back().data();
    region->bytes = variable.bytes;
    region->base = kModuleWindow + (std::uint64_t{made.regions.size()} << kRegionShift) + kRegionBase;
    region->writers.assign(variable.bytes, kBefore);  // device variables start as zeros
    made.regions.push_back(std::move(region));
  }
  return made;
}

// ---- Memory

Memory::Memory() : data_(std::make_unique<MemoryData>()) {}
Memory::~Memory() = default;
Memory::Memory(Memory&&) noexcept = default;
Memory& Memory::operator=(Memory&&) noexcept = default;

Memory::Id Memory::add(Buffer buffer) {
  const Id id = data_->add(buffer.name, buffer.bytes, buffer.initialized, buffer.writable);
  data_->buffers.push_back(std::move(buffer));
  return id;
}

std::uint64_t Memory::address(Id id, std::int64_t offset) const {
  return data_->regions.at(id)->base + static_cast<std::uint64_t>(offset);
}

const Buffer& Memory::buffer(Id id) const {
  return data_->buffers.at(id);
}

void Memory::mark_written(Id id, std::size_t offset, std::size_t bytes) {
  std::vector<ByteOwner>& writers = data_->regions.at(id)->writers;
  if (writers.empty()) return;
  offset = std::min(offset, writers.size());
  std::fill_n(writers.begin() + static_cast<std::ptrdiff_t>(offset), std::min(bytes, writers.size() - offset), kBefore);
}

void Memory::mark_unwritten(Id id, std::size_t offset, std::size_t bytes) {
  Region& region = *data_->regions.at(id);
  if (region.writers.empty()) region.writers.assign(region.bytes, kBefore);
  offset = std::min(offset, region.writers.size());
  std::fill_n(region.writers.begin() + static_cast<std::ptrdiff_t>(offset),
              std::min(bytes, region.writers.size() - offset), kNobody);
}

void Memory::take_over(Id id, std::string name) {
  Region& region = *data_->regions.at(id);
  for (ByteOwner& owner : region.writers)
    if (owner == kBefore) owner = kNobody;
  region.name = data_->buffers.at(id).name = std::move(name);
}

void Memory::remove(Id id) {
  Region& region = *data_->regions.at(id);
  region.host = nullptr;
  region.bytes = 0;
  region.writers = region.readers = {};
  region.bulk_stores = {};
  region.sectors_read = region.sectors_written = {};
  region.touched = true;
  data_->buffers.at(id).bytes = {};
}

std::optional<std::size_t> Memory::first_unwritten(Id id, std::size_t offset) const {
  const std::vector<ByteOwner>& writers = data_->regions.at(id)->writers;
  for (std::size_t i = offset; i < writers.size(); ++i) {
    if (writers[i] == kNobody) return i;
  }
  return std::nullopt;
}

}  // namespace fusec::emulator
