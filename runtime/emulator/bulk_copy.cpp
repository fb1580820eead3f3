#include "runtime/emulator/bulk_copy.h"

#include <algorithm>

#include "runtime/emulator/access.h"
#include "runtime/emulator/bulk_store.h"
#include "runtime/emulator/lanes.h"
#include "runtime/emulator/mbarrier.h"
#include "runtime/emulator/memory.h"
#include "runtime/emulator/reduce_value.h"
#include "runtime/emulator/swizzle.h"
#include "runtime/emulator/tensor_map.h"

namespace fusec::emulator {
namespace {

struct BulkCopy {
  Warp& warp;
  const Instruction& in;
  int lane;
  Type reduced = in.from;      // element type of a reduction; kNone for a copy
  BulkStore* store = nullptr;  // set for a copy to global memory

  std::uint64_t operand(BulkPlace place) const {
    const Operand& found = warp.program->lists[in.list + place];
    return found.slot == kNoSlot ? 0 : load_raw(warp, found.slot, found.width, lane);
  }
  bool has(BulkPlace place) const { return warp.program->lists[in.list + place].slot != kNoSlot; }

  // Copies one piece from global memory to shared memory of the issuing block or of a block of its cluster.
  bool load_piece(std::uint64_t shared, std::uint64_t global, std::uint32_t bytes) const {
    const std::byte* from = resolve_global(warp, lane, global, {.space = Space::kGlobal, .bytes = bytes}, nullptr);
    std::vector<std::byte> zeros;
    if (from == nullptr) {
      zeros.resize(bytes);
      from = zeros.data();
    }
    return store_shared(shared, from, bytes);
  }

  // Returns false if the piece is outside shared memory.
  bool store_shared(std::uint64_t shared, const std::byte* data, std::uint32_t bytes) const {
    // Write 16 bytes at a time, since an access must be aligned to its size.
    for (std::uint32_t at = 0; at < bytes; at += 16) {
      const std::uint32_t piece = std::min(16u, bytes - at);
      const Request request{
          .access = Access::kWrite, .space = Space::kShared, .bytes = piece, .async = true, .async_proxy = true};
      if (resolve_shared(warp, lane, shared + at, request, data + at) == nullptr) return false;
    }
    return true;
  }

  bool load_shared(std::uint64_t shared, std::byte* data, std::uint32_t bytes) const {
    for (std::uint32_t at = 0; at < bytes; at += 16) {
      const std::uint32_t piece = std::min(16u, bytes - at);
      const Request request{
          .access = Access::kRead, .space = Space::kShared, .bytes = piece, .async = true, .async_proxy = true};
      const std::byte* host = resolve_shared(warp, lane, shared + at, request, nullptr);
      if (host == nullptr) return false;
      std::memcpy(data + at, host, piece);
      if (store != nullptr) add_piece(store->sources, shared + at, piece);
    }
    return true;
  }

  void store_global(std::uint64_t global, const std::byte* data, std::uint32_t bytes) const {
    if (reduced == Type::kNone) {
      std::byte* host = resolve_global(
          warp, lane, global, {.access = Access::kWrite, .space = Space::kGlobal, .bytes = bytes, .async = true}, data);
      if (host == nullptr) return;
      std::memcpy(host, data, bytes);
      add_piece(store->targets, global, bytes);
      return;
    }
    const auto size = static_cast<std::uint32_t>(emulator::bytes(reduced));
    for (std::uint32_t at = 0; at + size <= bytes; at += size) {
      std::byte* host = resolve_global(
          warp, lane, global + at,
          {.access = Access::kAtomic, .space = Space::kGlobal, .bytes = size, .strong = true, .async = true}, nullptr);
      if (host == nullptr) return;
      std::uint64_t value = 0;
      std::memcpy(&value, data + at, size);
      reduce_value(host, static_cast<ReduceOp>(in.reduction), reduced, value, 0, warp.block->changed);
      add_piece(store->targets, global + at, size);
    }
  }
};

bool check_alignment(Warp& warp, int lane, std::uint64_t value, std::uint64_t alignment, const char* what) {
  if (value % alignment == 0) return true;
  report(warp, lane, FindingKind::kMisaligned, what, value);
  return false;
}

void count_traffic(Warp& warp, std::uint64_t address, std::uint64_t bytes, bool is_read) {
  Counters& counters = warp.block->counters;
  if (bytes == 0) return;
  const std::uint64_t sectors = (address + bytes - 1) / 32 - address / 32 + 1;
  (is_read ? counters.sectors_read : counters.sectors_written) += sectors;
  (is_read ? counters.bytes_read : counters.bytes_written) += bytes;
  ++counters.global_requests;
}

// Ends a copy to shared memory: completes its bytes on the mbarrier of the receiving block.
void signal(const BulkCopy& copy, std::uint64_t barrier_address, std::uint64_t bytes) {
  Block* home = nullptr;
  MBarrier* barrier = find_mbarrier(copy.warp, copy.lane, barrier_address, home);
  if (barrier != nullptr) complete_bytes(*home, *barrier, bytes);
}

// The shared addresses that a copy writes and the mbarrier of each: one pair, or one per block of the multicast mask.
std::vector<std::pair<std::uint64_t, std::uint64_t>> receivers(const BulkCopy& copy, std::uint64_t target,
                                                               std::uint64_t barrier) {
  if (!copy.has(kMask)) return {{target, barrier}};
  std::vector<std::pair<std::uint64_t, std::uint64_t>> found;
  const std::uint64_t mask = copy.operand(kMask);
  for (std::uint64_t rank = 0; rank < copy.warp.block->cluster->blocks.size(); ++rank) {
    if ((mask >> rank & 1) == 0) continue;
    const std::uint64_t high = rank == copy.warp.block->rank ? 0 : (rank + 1) << kRankShift;
    found.emplace_back(high | (target & kOffsetMask), high | (barrier & kOffsetMask));
  }
  return found;
}

void copy_plain(const BulkCopy& copy) {
  const std::uint64_t target = copy.operand(kTarget), source = copy.operand(kSource), size = copy.operand(kSize);
  Warp& warp = copy.warp;
  if (!check_alignment(warp, copy.lane, target, 16, "a bulk copy's target is no multiple of 16") ||
      !check_alignment(warp, copy.lane, source, 16, "a bulk copy's source is no multiple of 16") ||
      !check_alignment(warp, copy.lane, size, 16, "a bulk copy's size is no multiple of 16")) {
    return;
  }
  if (size > (1u << kRankShift)) {
    report(warp, copy.lane, FindingKind::kOutOfBounds, "a bulk copy larger than shared memory");
    return;
  }
  const auto bytes = static_cast<std::uint32_t>(size);
  switch (static_cast<BulkDirection>(copy.in.mode)) {
    case BulkDirection::kToShared:
      count_traffic(warp, source, size, true);
      for (const auto& [shared, barrier] : receivers(copy, target, copy.operand(kBarrier))) {
        for (std::uint32_t at = 0; at < bytes && copy.load_piece(shared + at, source + at, 16);) at += 16;
        signal(copy, barrier, size);
      }
      break;
    case BulkDirection::kToGlobal: {
      count_traffic(warp, target, size, false);
      std::vector<std::byte> data(bytes);
      if (!copy.load_shared(source, data.data(), bytes)) return;
      for (std::uint32_t at = 0; at < bytes; at += 16) copy.store_global(target + at, data.data() + at, 16);
      break;
    }
    case BulkDirection::kSharedToShared: {
      std::vector<std::byte> data(bytes);
      if (!copy.load_shared(source, data.data(), bytes)) return;
      copy.store_shared(target, data.data(), bytes);
      signal(copy, copy.operand(kBarrier), size);
      break;
    }
  }
}

// ---- tensors

struct Box {
  const TensorMap& map;
  std::int64_t start[5] = {};

  std::uint64_t rows() const {
    std::uint64_t count = 1;
    for (std::uint32_t d = 1; d < map.rank; ++d) count *= map.box[d];
    return count;
  }
  std::uint32_t row_bytes() const { return map.box[0] * map.element_bytes; }
  // The device address of the row's element 0 in the tensor; nothing if the row is outside the tensor.
  std::optional<std::uint64_t> row_address(std::uint64_t row) const {
    std::uint64_t address = map.address;
    for (std::uint32_t d = 1; d < map.rank; ++d) {
      const std::int64_t at = start[d] + static_cast<std::int64_t>(row % map.box[d] * map.element_strides[d]);
      row /= map.box[d];
      if (at < 0 || static_cast<std::uint64_t>(at) >= map.extents[d]) return std::nullopt;
      address += static_cast<std::uint64_t>(at) * map.strides[d];
    }
    return address;
  }
  bool inside(std::uint32_t column) const {
    const std::int64_t at = start[0] + static_cast<std::int64_t>(column);
    return at >= 0 && static_cast<std::uint64_t>(at) < map.extents[0];
  }
  // The range [first, last) of a row's columns that are inside the tensor.
  std::pair<std::uint32_t, std::uint32_t> stretch() const {
    std::uint32_t first = 0, last = map.box[0];
    while (first < last && !inside(first)) ++first;
    while (last > first && !inside(last - 1)) --last;
    return {first, last};
  }
};

// Writes one out-of-bounds element: zero, or NaN if the map says so.
void fill_element(const TensorMap& map, std::byte* element) {
  std::memset(element, 0, map.element_bytes);
  if (!map.fill_nan) return;
  std::memset(element, 0xff, map.element_bytes);
}

// Copies a box to one receiver. `counted`: count the traffic; false for further receivers of a multicast.
void load_box(const BulkCopy& copy, const Box& box, std::uint64_t target, std::uint64_t barrier_target, bool counted) {
  const std::uint32_t row_bytes = box.row_bytes(), size = box.map.element_bytes;
  std::vector<std::byte> row(row_bytes);
  for (std::uint64_t r = 0; r < box.rows(); ++r) {
    const std::optional<std::uint64_t> address = box.row_address(r);
    for (std::uint32_t column = 0; column < box.map.box[0]; ++column) fill_element(box.map, &row[column * size]);
    const auto [first, last] = box.stretch();
    if (address && last > first) {
      const std::uint64_t from = *address + static_cast<std::uint64_t>(box.start[0] + first) * size;
      if (counted) count_traffic(copy.warp, from, (last - first) * size, true);
      for (std::uint32_t column = first; column < last; ++column) {
        const std::byte* host = resolve_global(copy.warp, copy.lane, from + std::uint64_t{column - first} * size,
                                               {.space = Space::kGlobal, .bytes = size}, nullptr);
        if (host != nullptr) std::memcpy(&row[column * size], host, size);
      }
    }
    for (std::uint32_t at = 0; at < row_bytes; at += 16) {
      const std::uint64_t place = swizzled(target + r * row_bytes + at, box.map.swizzle);
      copy.store_shared(place, &row[at], std::min(16u, row_bytes - at));
    }
  }
  signal(copy, barrier_target, box.rows() * row_bytes);
}

void store_box(const BulkCopy& copy, const Box& box, std::uint64_t source) {
  const std::uint32_t row_bytes = box.row_bytes(), size = box.map.element_bytes;
  const auto [first, last] = box.stretch();
  std::vector<std::byte> row(row_bytes);
  for (std::uint64_t r = 0; r < box.rows(); ++r) {
    const std::optional<std::uint64_t> address = box.row_address(r);
    if (!address || first == last) continue;  // elements outside the tensor need not be written in the source
    for (std::uint32_t at = first * size, piece = 0; at < last * size; at += piece) {
      piece = at % 16 == 0 && at + 16 <= last * size ? 16 : size;
      const std::uint64_t place = swizzled(source + r * row_bytes + at / 16 * 16, box.map.swizzle) + at % 16;
      if (!copy.load_shared(place, &row[at], piece)) return;
    }
    const std::uint64_t to = *address + static_cast<std::uint64_t>(box.start[0] + first) * size;
    for (std::uint32_t column = first; column < last; ++column)
      copy.store_global(to + std::uint64_t{column - first} * size, &row[column * size], size);
    count_traffic(copy.warp, to, std::uint64_t{last - first} * size, false);
  }
}

// Whether the ISA has this reduction through a tensor map for elements of this type.
bool has_reduction(ReduceOp op, Type type) {
  const auto one_of = [type](std::initializer_list<Type> types) {
    return std::find(types.begin(), types.end(), type) != types.end();
  };
  switch (op) {
    case ReduceOp::kAdd:
      return one_of({Type::kU32, Type::kS32, Type::kU64, Type::kF16, Type::kBF16, Type::kF32, Type::kF64});
    case ReduceOp::kMin:
    case ReduceOp::kMax:
      return one_of({Type::kU32, Type::kS32, Type::kU64, Type::kS64, Type::kF16, Type::kBF16});
    case ReduceOp::kInc:
    case ReduceOp::kDec:
      return one_of({Type::kU32});
    default:
      return one_of({Type::kU32, Type::kS32, Type::kU64, Type::kS64});
  }
}

void copy_tensor(BulkCopy copy) {
  const bool loads = static_cast<BulkDirection>(copy.in.mode) == BulkDirection::kToShared;
  const std::uint64_t shared = copy.operand(loads ? kTarget : kSource);
  const std::uint64_t where = copy.operand(loads ? kSource : kTarget);
  Warp& warp = copy.warp;
  // Read the map at a generic address: a parameter, a constant or a buffer.
  Addresses addresses = {};
  Hosts hosts = {};
  std::byte bytes[kTensorMapBytes];
  for (std::uint64_t at = 0; at < kTensorMapBytes; at += 64) {
    addresses[copy.lane] = where + at;
    hosts[copy.lane] = nullptr;
    resolve(warp, {.space = Space::kGeneric, .bytes = 64}, 1u << copy.lane, addresses, hosts);
    if (hosts[copy.lane] == nullptr) return;
    std::memcpy(bytes + at, hosts[copy.lane], 64);
  }
  const std::optional<TensorMap> map = decode_tensor_map(bytes);
  if (!map || map->rank != copy.in.bytes) {
    report(warp, copy.lane, FindingKind::kTrap, "no tensor map of the instruction's rank lies at the address", where);
    return;
  }
  if (const std::string_view fault = tensor_map_fault(*map); !fault.empty()) {
    report(warp, copy.lane, FindingKind::kTrap, "a tensor map that the driver refuses: " + std::string(fault), where);
    return;
  }
  if (!check_alignment(warp, copy.lane, shared, map->swizzle == 0 ? 128 : map->swizzle * 8,
                       "a box in shared memory is not aligned for its swizzle"))
    return;
  Box box{.map = *map};
  for (std::uint32_t d = 0; d < map->rank; ++d) {
    box.start[d] = static_cast<std::int32_t>(copy.operand(static_cast<BulkPlace>(kCoordinates + d)));
  }
  if (copy.in.option) {
    copy.reduced = map->type;
    if (!has_reduction(static_cast<ReduceOp>(copy.in.reduction), map->type)) {
      report(warp, copy.lane, FindingKind::kTrap, "the tensor map's element type has no such reduction", where);
      return;
    }
  }
  if (!loads) {
    store_box(copy, box, shared);
    return;
  }
  bool counted = true;
  for (const auto& [target, barrier] : receivers(copy, shared, copy.operand(kBarrier))) {
    load_box(copy, box, target, barrier, counted);
    counted = false;
  }
}

}  // namespace

void execute_bulk_copy(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  for (int lane = 0; lane < kLanes; ++lane) {
    if ((lanes >> lane & 1) == 0) continue;
    BulkCopy copy{warp, in, lane};
    BulkStore store;
    const bool stores = static_cast<BulkDirection>(in.mode) == BulkDirection::kToGlobal;
    if (stores) copy.store = &store;
    const Counters& counters = warp.block->counters;
    const std::uint64_t before = counters.bytes_read + counters.bytes_written;
    if (in.bytes != 0)
      copy_tensor(copy);
    else
      copy_plain(copy);
    warp.block->copied += counters.bytes_read + counters.bytes_written - before;
    if (stores) begin_bulk_store(warp, lane, std::move(store));
  }
}

}  // namespace fusec::emulator
