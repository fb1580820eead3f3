// The op rows of the pooling and resampling family.
#pragma once

#include <vector>

#include "ir/op.h"

namespace fusec::ops {

std::vector<OpDef> window_ops();      // max_pool1d ... avg_pool3d, adaptive_avg_pool2d
std::vector<OpDef> resampling_ops();  // interpolate

}  // namespace fusec::ops
