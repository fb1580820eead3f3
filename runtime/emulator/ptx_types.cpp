#include "runtime/emulator/ptx_types.h"

#include <array>

namespace fusec::emulator {
namespace {

struct TypeRow {
  Type type;
  std::string_view name;
  int bits;
};

constexpr std::array kTypes = {
    TypeRow{Type::kNone, "", 0},          TypeRow{Type::kPred, "pred", 1},
    TypeRow{Type::kB1, "b1", 1},          TypeRow{Type::kB8, "b8", 8},
    TypeRow{Type::kB16, "b16", 16},       TypeRow{Type::kB32, "b32", 32},
    TypeRow{Type::kB64, "b64", 64},       TypeRow{Type::kB128, "b128", 128},
    TypeRow{Type::kU4, "u4", 4},          TypeRow{Type::kU8, "u8", 8},
    TypeRow{Type::kU16, "u16", 16},       TypeRow{Type::kU32, "u32", 32},
    TypeRow{Type::kU64, "u64", 64},       TypeRow{Type::kU16x2, "u16x2", 32},
    TypeRow{Type::kS4, "s4", 4},          TypeRow{Type::kS8, "s8", 8},
    TypeRow{Type::kS16, "s16", 16},       TypeRow{Type::kS32, "s32", 32},
    TypeRow{Type::kS64, "s64", 64},       TypeRow{Type::kS16x2, "s16x2", 32},
    TypeRow{Type::kF16, "f16", 16},       TypeRow{Type::kF16x2, "f16x2", 32},
    TypeRow{Type::kBF16, "bf16", 16},     TypeRow{Type::kBF16x2, "bf16x2", 32},
    TypeRow{Type::kTF32, "tf32", 32},     TypeRow{Type::kF32, "f32", 32},
    TypeRow{Type::kF32x2, "f32x2", 64},   TypeRow{Type::kF64, "f64", 64},
    TypeRow{Type::kE4M3, "e4m3", 8},      TypeRow{Type::kE5M2, "e5m2", 8},
    TypeRow{Type::kE2M1, "e2m1", 4},      TypeRow{Type::kE2M3, "e2m3", 8},
    TypeRow{Type::kE3M2, "e3m2", 8},      TypeRow{Type::kUE8M0, "ue8m0", 8},
    TypeRow{Type::kE4M3x2, "e4m3x2", 16}, TypeRow{Type::kE5M2x2, "e5m2x2", 16},
    TypeRow{Type::kE2M1x2, "e2m1x2", 8},  TypeRow{Type::kE2M3x2, "e2m3x2", 16},
    TypeRow{Type::kE3M2x2, "e3m2x2", 16}, TypeRow{Type::kUE8M0x2, "ue8m0x2", 16},
};

const TypeRow& row(Type type) {
  return kTypes[static_cast<std::size_t>(type)];
}

constexpr bool in_enum_order() {
  for (std::size_t i = 0; i < kTypes.size(); ++i) {
    if (static_cast<std::size_t>(kTypes[i].type) != i) return false;
  }
  return true;
}
static_assert(in_enum_order());

}  // namespace

int bits(Type type) {
  return row(type).bits;
}
std::string_view name(Type type) {
  return row(type).name;
}

bool is_signed(Type type) {
  return type >= Type::kS4 && type <= Type::kS64;
}
bool is_float(Type type) {
  return type >= Type::kF16;
}
bool is_integer(Type type) {
  return (type >= Type::kB8 && type <= Type::kB64) || (type >= Type::kU8 && type <= Type::kU64) ||
         (type >= Type::kS8 && type <= Type::kS64);
}

std::optional<Type> parse_type(std::string_view text) {
  if (text.empty()) return std::nullopt;
  for (const TypeRow& candidate : kTypes) {
    if (candidate.name == text) return candidate.type;
  }
  return std::nullopt;
}

std::string_view name(Space space) {
  switch (space) {
    case Space::kGeneric:
      return "generic";
    case Space::kGlobal:
      return "global";
    case Space::kShared:
      return "shared";
    case Space::kSharedCluster:
      return "shared::cluster";
    case Space::kLocal:
      return "local";
    case Space::kParam:
      return "param";
    case Space::kConst:
      return "const";
  }
  return "?";
}

}  // namespace fusec::emulator
