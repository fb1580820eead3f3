// Copies expressions from one pool to another while replacing axes and loads. Code generation rewrites expressions in
// this way: it substitutes a producer for a load, splits an axis in two, or renames axes.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "analysis/kernel/kernel.h"
#include "ir/expr.h"

namespace fusec {

class ExprCopier {
 public:
  ExprCopier(const ExprPool& from, ExprPool& to);
  ExprCopier(const ExprCopier&) = delete;
  ExprCopier& operator=(const ExprCopier&) = delete;

  // Returns the copy of `root` in `to`. Copies each node once and does not recurse.
  ExprId copy(ExprId root);
  // Loaded values in `e` must have been copied already, with some root.
  IndexExpr copy(const IndexExpr& e);
  std::uint32_t copy_axis(std::uint32_t axis);

  // To be set before the first copy, as all members are, since copied parts of indices are remembered.
  // By axis of `from`: the expression over axes of `to` that replaces it; nullopt: a new axis. The axes of a reduction
  // must become plain axes, unless `reduction_axes` lists them.
  std::vector<std::optional<IndexExpr>> axis;
  // Replaces axes of extent 1 that have no entry in `axis` by 0, and drops them from reductions.
  bool drops_units = false;
  // A reduction over exactly the key's axes of `from` becomes one over the mapped axes of `to`, outermost first.
  std::map<std::vector<std::uint32_t>, std::vector<std::uint32_t>> reduction_axes;
  // Returns the expression of `from` that replaces a load; kNoExpr keeps the load.
  std::function<ExprId(ExprId load)> replacement = nullptr;
  // Returns the expression of `to` that replaces `id`; kNoExpr: copy it as usual. `copied` returns the copies of its
  // operands and of their operands.
  using Copied = std::function<ExprId(ExprId)>;
  std::function<ExprId(ExprId id, const Copied& copied)> rewritten = nullptr;
  // Changes the copy of a load's replacement, for example rounds it.
  std::function<ExprId(ExprId load, ExprId copied)> finish = nullptr;
  // Changes the copy of a load that stays a load.
  std::function<ExprId(ExprId load, ExprId copied)> finish_load = nullptr;

 private:
  void find_operands(ExprId id);
  const IndexExpr& value_of(std::uint32_t axis);
  std::optional<IndexExpr> copy_variable(Variable v);
  ExprId copy_node(ExprId id);

  const ExprPool& from_;
  ExprPool& to_;
  std::vector<ExprId> done_;
  std::vector<ExprId> operands_;  // of the expression that is being visited
  IndexRewriter index_copier_;
};

// How the output axes of a kernel change. The caller adds the new axes to the new pool.
struct AxisChange {
  std::vector<IndexExpr> values;        // by old output axis: its value over the new axes
  std::vector<std::uint32_t> new_axes;  // output axes of the new kernel
};
Kernel change_axes(const Kernel& kernel, const std::function<AxisChange(ExprPool&)>& make_axes);
// Returns the kernel with changed output axes. `make_axes` may also set how the copier maps axes of reductions.
// `follow` holds expressions of `kernel` and receives their copies in the result.
Kernel change_axes(const Kernel& kernel, const std::function<AxisChange(ExprPool&, ExprCopier&)>& make_axes,
                   std::span<ExprId> follow = {});
// Returns a change that keeps all output axes.
AxisChange same_axes(const Kernel& kernel, ExprPool& pool);

}  // namespace fusec
