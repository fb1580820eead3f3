// Which way a kernel of windows or of single elements' loops takes, and what that executes: asked by the schedule and
// by the cost model.
#pragma once

#include <optional>

#include "analysis/channel_windows.h"
#include "analysis/column_windows.h"
#include "analysis/group_windows.h"
#include "analysis/kernel_forms.h"
#include "analysis/plane_windows.h"
#include "analysis/target.h"
#include "ir/graph.h"

namespace fusec {

// Of a kernel of rows or of elements, at most one of them; none where rows are shared out or threads have an element
// each.
struct WindowWay {
  std::optional<Kernel> written;  // pointwise
  std::optional<ChannelWindows> channels;
  std::optional<PlaneWindows> planes;
  std::optional<ColumnWindows> columns;
};
WindowWay window_way(const Graph& graph, const Kernel& kernel, KernelForm form, const Target& target);

// Of a product in groups, or of a kernel that would be one if groups were an axis: where that is predicted to be the
// fastest.
std::optional<GroupWindows> group_way(const Graph& graph, const Kernel& kernel, const FormOfKernel& form,
                                      const Target& target);

// Instructions that loops of threads execute; nothing where rows are shared out among threads.
std::optional<double> loop_instructions(const Graph& graph, const Kernel& kernel, KernelForm form,
                                        const Target& target);

}  // namespace fusec
