// The op rows of the movement family in four parts; movement_ops() joins them.
#pragma once

#include <vector>

#include "ir/op.h"

namespace fusec::ops {

std::vector<OpDef> reordering_ops();  // reshape ... expand: the same elements under other indices
std::vector<OpDef> cutting_ops();     // slice, select, split, chunk
std::vector<OpDef> joining_ops();     // concat, stack, tuple, get_item
std::vector<OpDef> tiling_ops();      // pad, flip, roll, repeat, repeat_interleave, tril, triu

// The field number of a get_item on a tuple of `count` fields. Throws OpError if there is no such field.
std::size_t field_of(const Attributes& attributes, std::size_t count);

}  // namespace fusec::ops
