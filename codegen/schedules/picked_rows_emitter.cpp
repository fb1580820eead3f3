#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "analysis/loads.h"
#include "codegen/emit_expr.h"
#include "codegen/schedules/direct.h"
#include "codegen/schedules/loads_of_lanes.h"
#include "codegen/schedules/picked_rows.h"
#include "codegen/schedules/vector_access.h"
#include "ir/type.h"

namespace fusec {
namespace {

class PickedRowsEmitter {
 public:
  PickedRowsEmitter(const Kernel& kernel, const Graph& graph, const Target& target, const PickedRows& plan)
      : kernel_(kernel),
        graph_(graph),
        target_(target),
        plan_(plan),
        followed_(ids_of(plan)),
        split_(plan.width > 1 ? split_last_axis(kernel, plan.width, followed_) : kernel),
        outer_(kernel.outputs[0].axes.begin(), kernel.outputs[0].axes.end() - 1),
        rows_(simplify(point_count(kernel.pool, outer_), kernel.pool.bounds())),
        writer_(graph, false),
        before_(kernel, writer_),
        after_(split_, writer_) {}

  KernelSource emit() {
    writer_.use("dynamic_shared");
    writer_.use("picked_rows");
    row0_ = writer_.unique("row");
    writer_.line(fmt::format("const int {} = blockIdx.x * {};", row0_, plan_.rows));
    firsts_ = writer_.unique("firsts");
    writer_.line(fmt::format("int* const {} = (int*)(dynamic_shared + {});", firsts_, plan_.firsts_start));
    find_sources();
    find_picks();
    writer_.line("__syncthreads();");
    for (std::size_t s = 0; s < plan_.sources.size(); ++s) copy_rows(s);
    writer_.line("__syncthreads();");
    compute();
    // One block at a time is enough: for more of them ptxas would spill a few registers.
    KernelSource source = writer_.finish(kernel_comment(graph_, kernel_), plan_.threads, 1);
    source.grid[0] = simplify(ceil_div(rows_, plan_.rows), kernel_.pool.bounds());
    source.dynamic_shared = plan_.shared_bytes;
    return source;
  }

 private:
  // Those that are followed into the kernel with lanes: of each source its load, then of each one's picks the value.
  static std::vector<ExprId> ids_of(const PickedRows& plan) {
    std::vector<ExprId> ids;
    for (const PickedRows::Source& source : plan.sources) ids.insert(ids.end(), {source.load, source.value});
    for (const PickedRows::Picks& picks : plan.picks) ids.push_back(picks.value);
    return ids;
  }
  ExprId load_after(std::size_t source) const { return followed_[2 * source]; }
  ExprId value_after(std::size_t source) const { return followed_[2 * source + 1]; }
  ExprId picks_after(std::size_t picks) const { return followed_[2 * plan_.sources.size() + picks]; }

  bool whole() const { return proves_multiple_of(rows_, plan_.rows, kernel_.pool.bounds()); }
  std::string text(const IndexExpr& e) const { return before_.index_text().tight(e); }

  template <class Body>
  void over(const char* wish, const std::string& count, Body body) {
    const std::string i = writer_.unique(wish);
    writer_.open(fmt::format("for (int {0} = threadIdx.x; {0} < {1}; {0} += {2})", i, count, plan_.threads));
    body(i);
    writer_.close();
  }
  std::string declared(std::string_view wish, const std::string& value) {
    const std::string name = writer_.unique(wish);
    writer_.line(fmt::format("const int {} = {};", name, value));
    return name;
  }
  std::string first_of(std::size_t source, const std::string& row) const {
    return fmt::format("{}[{} + {}]", firsts_, static_cast<int>(source) * plan_.rows, row);
  }

  // Where the sources of all rows begin. Behind the last row are none of their own.
  void find_sources() {
    over("r", std::to_string(plan_.rows), [&](const std::string& r) {
      const ExprEmitter::Mark mark = before_.mark();
      const std::string here = fmt::format("{} + {}", row0_, r);
      bind_flat(before_, outer_, declared("row", whole() ? here : fmt::format("min({}, {})", here, text(rows_ - 1))));
      for (std::size_t s = 0; s < plan_.sources.size(); ++s) {
        const IndexExpr& first = plan_.sources[s].first;
        std::vector<ExprId> values;
        for (const Variable v : variables_of(first))
          if (v.kind == Variable::Kind::kValue) values.push_back(v.id);
        before_.emit(values);
        writer_.line(fmt::format("{} = {};", first_of(s, r), before_.index(first)));
      }
      before_.rewind(mark);
    });
  }

  void find_picks() {
    for (const PickedRows::Picks& picks : plan_.picks) {
      picks_.push_back(writer_.unique("picks"));
      writer_.line(fmt::format("int* const {} = (int*)(dynamic_shared + {});", picks_.back(), picks.start));
      over("j", std::to_string(plan_.columns), [&](const std::string& j) {
        const ExprEmitter::Mark mark = before_.mark();
        before_.bind(kernel_.outputs[0].axes.back(), j);
        writer_.line(fmt::format("{}[{}] = (int)({});", picks_.back(), j, before_.emit(picks.value)));
        before_.rewind(mark);
      });
    }
  }

  void copy_rows(std::size_t s) {
    const PickedRows::Source& source = plan_.sources[s];
    const ExprNode& n = kernel_.pool[source.load];
    const IndexExpr count = element_count(writer_.tensor_type(n.source).shape).value_or(0);
    const bool whole_vectors = proves_multiple_of(count, 128 / bits(n.dtype), kernel_.pool.bounds());
    writer_.line(fmt::format("copy_rows<{}, {}, {}, {}, {}, {}, {}>(dynamic_shared + {}, {}, {}, {} + {});",
                             bits(n.dtype), plan_.threads, plan_.rows, source.vectors, source.length,
                             whole_vectors ? "Inside::kSure" : "Inside::kUnknown",
                             streams_past_caches(before_, graph_, source.load, target_.l2_bytes), source.start,
                             writer_.input(n.source), before_.index(count), firsts_, static_cast<int>(s) * plan_.rows));
  }

  // This block's points, neighbouring threads neighbouring ones across the ends of rows.
  void compute() {
    const unsigned groups = static_cast<unsigned>(plan_.columns / plan_.width);
    const std::string count =
        whole() ? fmt::format("{}", groups * static_cast<unsigned>(plan_.rows))
                : declared("groups", fmt::format("min({}, {} - {}) * {}", plan_.rows, text(rows_), row0_, groups));
    writer_.line(fmt::format("#pragma unroll {}", 8 / plan_.width));
    over("t", count, [&](const std::string& t) {
      const ExprEmitter::Mark mark = after_.mark();
      r_ = declared("r", fmt::format("(int)((unsigned){} / {}u)", t, groups));
      const std::string column = declared("j", fmt::format("{} - {} * {}", t, r_, groups));
      std::vector<std::uint32_t> outer = split_.outputs[0].axes;
      outer.resize(outer_.size());
      bind_flat(after_, outer, declared("row", fmt::format("{} + {}", row0_, r_)));
      after_.bind(split_.outputs[0].axes[outer_.size()], column);
      if (plan_.width == 1)
        compute_point(column);
      else
        compute_vector(column);
      after_.rewind(mark);
    });
  }

  std::string text_of(ExprId load) {
    for (std::size_t s = 0; s < plan_.sources.size(); ++s) {
      if (load_after(s) != load) continue;
      const PickedRows::Source& source = plan_.sources[s];
      const ExprNode& n = kernel_.pool[source.load];
      writer_.use(n.dtype);
      const int each = 128 / bits(n.dtype);
      const std::string ahead = source.aligned ? "" : fmt::format(" + {} % {}", first_of(s, r_), each);
      return widen(n.dtype, fmt::format("((const {}*)(dynamic_shared + {}))[{} * {}{} + {}]", storage_type(n.dtype),
                                        source.start, r_, source.vectors * each, ahead,
                                        after_.index(IndexExpr::value(value_after(s)))));
    }
    return "";
  }

  void compute_point(const std::string& column) {
    for (std::size_t i = 0; i < picks_.size(); ++i)
      after_.define(picks_after(i), fmt::format("{}[{}]", picks_[i], column));
    after_.load_text = [&](ExprId load) { return text_of(load); };
    store_scalars(after_, after_.emit(roots_of(split_)));
    after_.load_text = nullptr;
  }

  // By anything but the values that shared memory has.
  std::vector<bool> needed_besides_picks() const {
    std::vector<bool> needed(split_.pool.size(), false), known(split_.pool.size(), false);
    for (std::size_t i = 0; i < picks_.size(); ++i) known[picks_after(i)] = true;
    std::vector<ExprId> left = roots_of(split_);
    while (!left.empty()) {
      const ExprId id = left.back();
      left.pop_back();
      if (id == kNoExpr || needed[id] || known[id]) continue;
      needed[id] = true;
      const ExprNode& n = split_.pool[id];
      left.insert(left.end(), n.args.begin(), n.args.end());
      const std::vector<ExprId> values = values_in(n);
      left.insert(left.end(), values.begin(), values.end());
    }
    return needed;
  }

  void compute_vector(const std::string& column) {
    const std::uint32_t lane = split_.outputs[0].axes.back();
    const std::vector<ExprId> roots = roots_of(split_);
    const std::string e = writer_.unique("e");
    std::vector<std::string> words;
    for (const std::string& picks : picks_) {
      words.push_back(writer_.unique(picks + "_w"));
      writer_.use("words");
      writer_.line(fmt::format("const Words<{0}> {1} = load_words<{0}>({2} + {3} * {0});", plan_.width, words.back(),
                               picks, column));
    }
    const std::vector<bool> needed = needed_besides_picks();
    VectorLoads loads(after_, graph_, lane, plan_.width);
    loads.declare(roots, e, [&](ExprId load, const VectorLoads::Fill&) {
      return needed[load] ? std::string() : std::string("picked_already");
    });
    after_.load_text = [&, others = after_.load_text](ExprId load) {
      const std::string text = text_of(load);
      return text.empty() ? others(load) : text;
    };
    std::vector<VectorStore> stores;
    for (const KernelOutput& output : split_.outputs)
      stores.push_back(VectorStore::plan(after_, output, lane, plan_.width));
    after_.emit_independent(roots);
    writer_.line("#pragma unroll");
    writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", e, plan_.width));
    const ExprEmitter::Mark mark = after_.mark();
    after_.bind(lane, e);
    for (std::size_t i = 0; i < picks_.size(); ++i)
      after_.define(picks_after(i), fmt::format("(int){}.w[{}]", words[i], e));
    const std::vector<std::string> values = after_.emit(roots);
    for (std::size_t i = 0; i < stores.size(); ++i) stores[i].put(after_, e, values[i]);
    after_.rewind(mark);
    writer_.close();
    for (VectorStore& store : stores) store.finish(after_);
    after_.load_text = nullptr;
  }

  const Kernel& kernel_;
  const Graph& graph_;
  const Target& target_;
  const PickedRows& plan_;
  std::vector<ExprId> followed_;  // in `split_`, where vectors have a lane
  const Kernel split_;
  const std::vector<std::uint32_t> outer_;
  const IndexExpr rows_;
  KernelWriter writer_;
  ExprEmitter before_, after_;  // of what is put into shared memory, and of what is computed from it
  std::string row0_, firsts_, r_;
  std::vector<std::string> picks_;
};

}  // namespace

KernelSource emit_picked_rows(const Kernel& kernel, const Graph& graph, const Target& target, const PickedRows& plan) {
  return PickedRowsEmitter(kernel, graph, target, plan).emit();
}

}  // namespace fusec
