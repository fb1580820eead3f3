// Ranges of index expressions, and proofs from them, that remember the ranges of atoms from one question to the next.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "ir/bounds.h"

namespace fusec {

// The quotient rounded down; the limits of int64 stand for "no limit" and stay.
std::int64_t floor_quotient(std::int64_t a, std::int64_t b);

class Ranges {
 public:
  explicit Ranges(const Bounds& bounds) : bounds_(&bounds) {}

  const Bounds& bounds() const { return *bounds_; }
  // The same bounds, or these with further axes, at another address.
  void set_bounds(const Bounds& bounds) { bounds_ = &bounds; }
  Range of(const IndexExpr& e);
  Range of(const IndexAtomPtr& atom);

 private:
  const Bounds* bounds_;
  std::unordered_map<IndexAtomPtr, Range> known_;  // keeps the atoms alive, so their addresses stay unique
};

bool proves_nonnegative(const IndexExpr& e, Ranges& ranges);
inline bool proves_less(const IndexExpr& a, const IndexExpr& b, Ranges& ranges) {
  return proves_nonnegative(b - a - 1, ranges);
}

}  // namespace fusec
