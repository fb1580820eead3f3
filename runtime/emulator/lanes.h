// Lane-wise execution: a register's 32 lanes as an array, and loops that apply a function to them. The loops compute
// all lanes so that the compiler can vectorize them; only active lanes are stored.
#pragma once

#include <cstring>

#include "runtime/emulator/machine.h"

namespace fusec::emulator {

template <class T>
struct Lanes {
  T at[kLanes];
};

template <class T>
Lanes<T> load_lanes(const Warp& warp, Slot slot) {
  Lanes<T> value;
  std::memcpy(value.at, warp.source(slot), sizeof(value.at));
  return value;
}

template <class T>
void store_lanes(Warp& warp, Slot slot, const Lanes<T>& value, std::uint32_t lanes) {
  std::byte* target = warp.lanes(slot);
  if (lanes == kAllLanes) {
    std::memcpy(target, value.at, sizeof(value.at));
    return;
  }
  for (int lane = 0; lane < kLanes; ++lane) {
    if ((lanes >> lane & 1) != 0) std::memcpy(target + lane * sizeof(T), &value.at[lane], sizeof(T));
  }
}

inline std::uint32_t load_predicate(const Warp& warp, Slot slot) {
  std::uint32_t mask;
  std::memcpy(&mask, warp.source(slot), sizeof(mask));
  return mask;
}

inline void store_predicate(Warp& warp, Slot slot, std::uint32_t value, std::uint32_t lanes) {
  const std::uint32_t mask = (load_predicate(warp, slot) & ~lanes) | (value & lanes);
  std::memcpy(warp.lanes(slot), &mask, sizeof(mask));
}

// One lane's value as an unsigned integer; of registers wider than 8 bytes the low 64 bits.
inline std::uint64_t load_raw(const Warp& warp, Slot slot, int width, int lane) {
  std::uint64_t value = 0;
  std::memcpy(&value, warp.source(slot) + lane * width, static_cast<std::size_t>(width < 8 ? width : 8));
  return value;
}
inline void store_raw(Warp& warp, Slot slot, int width, int lane, std::uint64_t value) {
  std::byte* target = warp.lanes(slot) + lane * width;
  std::memcpy(target, &value, static_cast<std::size_t>(width < 8 ? width : 8));
  if (width > 8) std::memset(target + 8, 0, static_cast<std::size_t>(width - 8));
}

template <class R, class A, class F>
void map_lanes(Warp& warp, const Instruction& in, std::uint32_t lanes, F function) {
  const Lanes<A> a = load_lanes<A>(warp, in.a);
  Lanes<R> result;
  for (int lane = 0; lane < kLanes; ++lane) result.at[lane] = function(a.at[lane]);
  store_lanes(warp, in.d, result, lanes);
}

template <class R, class A, class B, class F>
void map_lanes(Warp& warp, const Instruction& in, std::uint32_t lanes, F function) {
  const Lanes<A> a = load_lanes<A>(warp, in.a);
  const Lanes<B> b = load_lanes<B>(warp, in.b);
  Lanes<R> result;
  for (int lane = 0; lane < kLanes; ++lane) result.at[lane] = function(a.at[lane], b.at[lane]);
  store_lanes(warp, in.d, result, lanes);
}

template <class R, class A, class B, class C, class F>
void map_lanes(Warp& warp, const Instruction& in, std::uint32_t lanes, F function) {
  const Lanes<A> a = load_lanes<A>(warp, in.a);
  const Lanes<B> b = load_lanes<B>(warp, in.b);
  const Lanes<C> c = load_lanes<C>(warp, in.c);
  Lanes<R> result;
  for (int lane = 0; lane < kLanes; ++lane) result.at[lane] = function(a.at[lane], b.at[lane], c.at[lane]);
  store_lanes(warp, in.d, result, lanes);
}

template <template <class> class Op, class T>
void unary(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  map_lanes<T, T>(warp, in, lanes, [](T a) { return Op<T>::apply(a); });
}
template <template <class> class Op, class T>
void binary(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  map_lanes<T, T, T>(warp, in, lanes, [](T a, T b) { return Op<T>::apply(a, b); });
}

}  // namespace fusec::emulator
