// Depthwise convolutions and pooling with channels last (analysis/channel_windows.h): a thread has vectors of channels
// of several neighbouring results, and loads each vector that their windows have in common once. What belongs to
// channels alone, weights, goes through shared memory.
#pragma once

#include "analysis/channel_windows.h"
#include "codegen/kernel_source.h"

namespace fusec {

KernelSource channel_windows(const Kernel& kernel, const ChannelWindows& windows, const Graph& graph);

}  // namespace fusec
