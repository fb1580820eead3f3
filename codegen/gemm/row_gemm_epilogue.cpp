#include "codegen/gemm/row_gemm_epilogue.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "analysis/kernel/copy_expr.h"
#include "analysis/kernel/loads.h"
#include "codegen/access/direct.h"
#include "codegen/access/vector_access.h"
#include "codegen/expr/limit_unrolling.h"

namespace fusec {
namespace {

using Axes = std::vector<std::uint32_t>;

// The last axis with more than one element: its neighbours may be contiguous.
std::uint32_t last_of(const ExprPool& pool, const Axes& axes) {
  std::uint32_t last = axes.back();
  for (const std::uint32_t a : axes)
    if (!pool.extent(a).is(1)) last = a;
  return last;
}

// The axes of a row, with a lane's neighbours as a separate axis.
struct RowPositions {
  Axes axes;  // without the axis of neighbours
  std::optional<std::uint32_t> lane;
};

// The kernel with columns and reduced axes split into neighbours.
struct EpilogueKernel {
  Kernel kernel;
  Axes rows;
  RowPositions columns, reduced;
  std::map<std::uint32_t, std::uint32_t> others;  // new axes by old ones
  std::map<ExprId, std::string> sums;             // rows in shared memory, by the new ids of the accumulators
};

EpilogueKernel in_neighbours(const RowGemmEpilogue& e) {
  EpilogueKernel made;
  const Kernel& kernel = e.form.kernel;
  const ExprPool& old = kernel.pool;
  // Splits an axis into new axes, and returns the old axis in terms of them.
  const auto parted = [&](ExprPool& pool, std::uint32_t axis, bool in_lanes, RowPositions& places, Axes& all) {
    const int width = in_lanes ? e.neighbours : 1;
    places.axes.push_back(pool.new_axis(simplify(floor_div(old.extent(axis), width), old.bounds())));
    all.push_back(places.axes.back());
    const IndexExpr outer = IndexExpr::axis(all.back());
    if (width == 1) return outer;
    places.lane = pool.new_axis(width);
    all.push_back(*places.lane);
    return outer * width + IndexExpr::axis(*places.lane);
  };
  std::vector<ExprId> follow;
  std::vector<std::string> where;
  for (const auto& [sum, rows] : e.sums) follow.push_back(sum), where.push_back(rows);
  for (const auto& [sum, twin] : e.form.accumulator_at_columns) follow.push_back(sum), where.push_back(e.sums.at(twin));
  made.kernel = change_axes(
      kernel,
      [&](ExprPool& pool, ExprCopier& copier) {
        AxisChange change;
        for (const std::uint32_t a : kernel.outputs[0].axes) {
          const Axes& columns = e.form.contraction.columns;
          if (contains(columns, a)) {
            change.values.push_back(parted(pool, a, a == last_of(old, columns), made.columns, change.new_axes));
            continue;
          }
          change.new_axes.push_back(pool.new_axis(old.extent(a)));
          change.values.push_back(IndexExpr::axis(change.new_axes.back()));
          if (contains(e.form.contraction.rows, a))
            made.rows.push_back(change.new_axes.back());
          else
            made.others[a] = change.new_axes.back();
        }
        Axes reduced;
        for (const std::uint32_t a : e.form.reduced)
          copier.axis[a] = parted(pool, a, a == last_of(old, e.form.reduced), made.reduced, reduced);
        copier.reduction_axes[e.form.reduced] = reduced;
        return change;
      },
      follow);
  for (std::size_t i = 0; i < follow.size(); ++i) made.sums[follow[i]] = where[i];
  return made;
}

class RowEpilogueEmitter {
 public:
  RowEpilogueEmitter(const RowGemmEpilogue& epilogue, const Graph& graph, KernelWriter& writer, ExprEmitter& outer)
      : e_(epilogue),
        r_(in_neighbours(epilogue)),
        kernel_(r_.kernel),
        pool_(kernel_.pool),
        graph_(graph),
        writer_(writer),
        emitter_(kernel_, writer) {
    for (const auto& [given, mine] : r_.others) emitter_.bind(mine, outer.index(IndexExpr::axis(given)));
  }

  void emit() {
    line_ = writer_.unique("line");
    const std::string row = writer_.unique("row");
    writer_.open(fmt::format("for (int {0} = warp; {0} < {1}; {0} += {2})", line_, e_.rows, e_.threads / 32));
    writer_.line(fmt::format("const {} {} = {} + {};", integer(), row, e_.row0, line_));
    writer_.line(fmt::format("if ({} >= {}) break;", row, text(count(r_.rows))));
    bind_flat(emitter_, r_.rows, row, "mnopq");
    emitter_.reduce_hook = [this](const std::vector<ExprId>& reductions) { return reduce(reductions); };
    for (const auto& [sum, rows] : r_.sums)
      emitter_.define(sum, rows);  // so that nothing of the GEMM is computed again
    emitter_.emit_independent(roots_of(kernel_));
    store_row();
    writer_.close();
  }

 private:
  IndexExpr count(const Axes& axes) const { return point_count(pool_, axes); }
  std::string integer() const { return writer_.index_type(); }
  std::string text(const IndexExpr& e) { return emitter_.index_text().tight(simplify(e, pool_.bounds())); }

  // Defines the accumulators at a lane's places.
  void take_sums(const std::string& place, const std::string& lane) {
    std::map<std::string, std::string> taken;
    for (const auto& [sum, rows] : r_.sums) {
      std::string& at = taken[rows];
      if (at.empty()) at = taken_sum(rows, c_type(pool_[sum].type), place);
      emitter_.define(sum, lane.empty() ? at : fmt::format("{}.v[{}]", at, lane));
    }
  }

  std::string taken_sum(const std::string& rows, const std::string& type, const std::string& place) {
    const std::string plain = fmt::format("{} * {} + {}", line_, e_.row_stride, place);
    if (e_.neighbours == 1) return fmt::format("{}[{}]", rows, plain);
    const std::string name = writer_.unique("sums");
    if (e_.neighbours == 8) {
      writer_.use("staged_sums");
      writer_.line(fmt::format("const EightSums<{}> {} = eight_staged<{}>({}, {}, {} * 8);", type, name,
                               e_.row_stride - 8, rows, line_, place));
    } else {
      writer_.use("neighbours");
      const std::string several = fmt::format("Neighbours<{}, {}>", type, e_.neighbours);
      writer_.line(
          fmt::format("const {} {} = *(const {}*)({} + {} * {});", several, name, several, rows, plain, e_.neighbours));
    }
    return name;
  }

  // Loops over a lane's places of a row, with an inner loop over the neighbours of each.
  template <class Before, class Each, class After>
  void in_lanes(const RowPositions& places, const std::vector<ExprId>& values, std::string_view preferred_name,
                bool sums, const Before& before, const Each& each, const After& after) {
    const ExprEmitter::Mark mark = emitter_.mark();
    const std::string k = writer_.unique(preferred_name), lane = places.lane ? writer_.unique("e") : "";
    writer_.open(
        fmt::format("for ({0} {1} = warp_lane; {1} < {2}; {1} += 32)", integer(), k, text(count(places.axes))));
    bind_flat(emitter_, places.axes, k, "cdefghuvw");
    if (sums) take_sums(k, lane);
    std::optional<VectorLoads> loads;
    if (places.lane) {
      loads.emplace(emitter_, graph_, *places.lane, e_.neighbours);
      loads->declare(values, lane);
      emitter_.emit_independent(values);
    }
    before();
    if (places.lane) {
      writer_.line(kUnrollToFit);
      writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", lane, e_.neighbours));
      emitter_.bind(*places.lane, lane);
    }
    each(lane);
    if (places.lane) writer_.close();
    emitter_.load_text = nullptr;
    emitter_.rewind(mark);
    after(k);
    writer_.close();
  }

  bool reduce(const std::vector<ExprId>& reductions) {
    std::vector<ExprEmitter::Accumulator> accumulators;
    std::vector<ExprId> values;
    for (const ExprId r : reductions) {
      accumulators.push_back(emitter_.accumulator(r));
      const ExprEmitter::Accumulator& a = accumulators.back();
      writer_.line(fmt::format("{} {}{}{};", a.type, a.name, a.extreme ? "" : " = ", a.identity));
      values.insert(values.end(), pool_[r].args.begin(), pool_[r].args.end());
    }
    std::erase(values, kNoExpr);
    const Axes& axes = pool_[reductions[0]].axes;
    Axes whole = r_.reduced.axes;
    if (r_.reduced.lane) whole.push_back(*r_.reduced.lane);
    Axes sorted = axes;
    std::ranges::sort(whole), std::ranges::sort(sorted);
    const bool of_row = sorted == whole;
    in_lanes(
        of_row ? r_.reduced : RowPositions{.axes = axes, .lane = std::nullopt}, values, "k", of_row, [] {},
        [&](const std::string&) { emitter_.accumulate(accumulators); }, [](const std::string&) {});
    for (const ExprEmitter::Accumulator& a : accumulators) {
      writer_.use("combine");
      writer_.use("warp_reduce");
      if (a.extreme) writer_.use("extreme_lanes");
      writer_.line(fmt::format("{0} = warp_reduce({0}, {1});", a.name, a.combine));
      emitter_.define(a.reduction, emitter_.result(a));
    }
    return true;
  }

  // The condition to store an output that lacks columns: all column indices are 0. "" if the output has columns.
  std::string condition_of(const KernelOutput& output) {
    std::string condition;
    Axes columns = r_.columns.axes;
    if (r_.columns.lane) columns.push_back(*r_.columns.lane);
    const bool runs = std::ranges::any_of(columns, [&](std::uint32_t a) {
      return std::ranges::any_of(output.index, [&](const IndexExpr& e) {
        return mentions(e, {Variable::Kind::kAxis, a});
      });
    });
    for (const std::uint32_t a : columns)
      if (!runs && !pool_.extent(a).is(1))
        condition += fmt::format("{}{} == 0", condition.empty() ? "" : " && ", emitter_.index(IndexExpr::axis(a)));
    return condition;
  }

  void store_row() {
    const std::vector<ExprId> roots = roots_of(kernel_);
    std::vector<std::optional<VectorStore>> stores(roots.size());
    const auto plan = [&] {
      for (std::size_t i = 0; i < roots.size() && r_.columns.lane; ++i)
        if (const KernelOutput& output = kernel_.outputs[i]; runs_along(output, *r_.columns.lane))
          stores[i] = VectorStore::plan(emitter_, output, *r_.columns.lane, e_.neighbours);
    };
    const auto put = [&](const std::string& lane) {
      const std::vector<std::string> values = emitter_.emit(roots);
      for (std::size_t i = 0; i < roots.size(); ++i) {
        const KernelOutput& output = kernel_.outputs[i];
        if (stores[i]) {
          stores[i]->put(emitter_, lane, values[i]);
          continue;
        }
        const std::string condition = condition_of(output);
        const IndexExpr at = position_of(pool_, output);
        const std::string store = store_text(writer_, output, emitter_.index(at), values[i]);
        writer_.line(condition.empty() ? store : fmt::format("if ({}) {}", condition, store));
      }
    };
    in_lanes(r_.columns, roots, "column", true, plan, put, [&](const std::string&) {
      for (auto& store : stores)
        if (store) store->finish(emitter_);
    });
  }

  static bool runs_along(const KernelOutput& output, std::uint32_t axis) {
    return std::ranges::any_of(output.index, [&](const IndexExpr& e) {
      return mentions(e, {Variable::Kind::kAxis, axis});
    });
  }

  const RowGemmEpilogue& e_;
  const EpilogueKernel r_;
  const Kernel& kernel_;
  const ExprPool& pool_;
  const Graph& graph_;
  KernelWriter& writer_;
  ExprEmitter emitter_;
  std::string line_;
};

}  // namespace

int row_vector_width(const RowGemm& form, int row_stride, int most) {
  const ExprPool& pool = form.kernel.pool;
  int best = 1;
  std::int64_t least = (form.columns + 31) / 32;
  for (int width = 2; width <= most; width *= 2) {
    const auto whole = [&](const Axes& axes) {
      return proves_multiple_of(pool.extent(last_of(pool, axes)), width, pool.bounds());
    };
    if (row_stride % width != 0 || !whole(form.contraction.columns) || !whole(form.reduced)) break;
    const std::int64_t places = (form.columns / width + 31) / 32 * width;
    if (places <= least) best = width, least = places;
  }
  return best;
}

void emit_row_gemm_epilogue(const RowGemmEpilogue& epilogue, const Graph& graph, KernelWriter& writer,
                            ExprEmitter& emitter) {
  RowEpilogueEmitter(epilogue, graph, writer, emitter).emit();
}

}  // namespace fusec
